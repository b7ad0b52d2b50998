# SPDX-License-Identifier: BSD-3-Clause
"""What every release offers."""

from sklearn.base import clone

from ..params import Specification


class Release(Specification):
    """What leaves the data, how it is planned, and how the curator is asked for it."""

    # What a certificate rests on because of it.
    assumptions = ()
    # Whether it is made of sums over all rows: a person may have several, and chunks are read once.
    is_sum = False
    # Whether what it costs follows from the number of columns.
    needs_columns = False

    def of(self, format):
        """Return the release of data of a format."""
        return self

    def resolved(self, plan, terms):
        """Return the release with the numbers that were chosen for it in place of None."""
        chosen = self._count(plan, terms)
        left = {name: n for name, n in chosen.items() if getattr(self, name) is None}
        return clone(self).set_params(**left)

    def sensitivity(self, relation, n_classes):
        """Return the sensitivity of the settled release called `name`."""
        raise NotImplementedError

    def find_sigma(self, certificate, n_classes):
        """Return the standard deviation of the noise of the settled release, as certified."""
        return certificate.find_sigma(
            self.name, lambda relation: self.sensitivity(relation, n_classes)
        )

    def _count(self, plan, terms):
        """Return the numbers that follow from a plan and its terms, by the names of parameters."""
        return {}

    def min_samples(self, plan, terms, format):
        """Return how many records it takes to be of use, about, or None if that is not known.

        From public numbers only; the constants were found on small public data.
        """
        return None
