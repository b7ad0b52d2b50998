# SPDX-License-Identifier: BSD-3-Clause
"""Where estimators are described: notebooks link to it from the diagrams of scikit-learn."""

from sklearn.base import BaseEstimator

# Of the published pages, such as "https://example.org/skdpgen"; without it there are no links.
SITE = ""


class DocumentedEstimator(BaseEstimator):
    """Links to its own page, as scikit-learn's estimators do to theirs."""

    _doc_link_module = "skdpgen"

    @property
    def _doc_link_template(self):
        return f"{SITE}/api/{{page}}.html" if SITE else ""

    def _doc_link_url_param_generator(self):
        import skdpgen

        name, package = type(self).__name__, ".".join(type(self).__module__.split(".")[:2])
        return {"page": f"{'skdpgen' if name in skdpgen.__all__ else package}.{name}"}
