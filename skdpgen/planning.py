# SPDX-License-Identifier: BSD-3-Clause
"""What generators would release, before any data are read; see `skdpgen.privacy.preview`."""

from dataclasses import replace

from sklearn.base import clone

from .accounting.certificate import Certificate
from .accounting.units import count_worth, show_rows
from .curator.dataset import list_refusals
from .curator.record_functions import clears_frames


class Previews:
    """Prices fits, by the plans that a generator makes for them."""

    def _preview(self, n_samples, n_features, n_classes, has_persons=False):
        """Price a fit without data; see `skdpgen.privacy.preview`."""
        self._check_params()
        max_rows = self._find_max_rows(has_persons)
        if isinstance(self.schema, str):
            raise ValueError("preview needs a Schema: without a table, no column is known.")
        if self.schema is not None:
            format = self._make_table_format(self.schema)
        else:
            n_worth = count_worth(n_samples, max_rows)
            format = self._make_format(n_worth, n_features, n_classes or 1)
        plan, _, min_samples = self._make_plan(n_samples, format, n_classes or 1, max_rows)
        return self._certify(n_samples, format, plan, min_samples, list_refusals(self.strict))

    @clears_frames()
    def _preview_data(self, X, y, target, persons):
        """Price a fit; what is public of the data is checked."""
        copied = clone(self)
        copied._check_params()
        format, records = copied._read(X, y, target, persons)
        n_classes = 1 if records.classes is None else len(records.classes)
        n_samples, max_rows = records.n_records, records.max_rows
        plan, _, min_samples = copied._make_plan(n_samples, format, n_classes, max_rows)
        refusals, plan = records.list_assumptions(self.strict), records.cover(plan)
        return copied._certify(n_samples, format, plan, min_samples, refusals)

    def _certify(self, n_samples, format, plan, min_samples, refusals):
        certificate = Certificate.of_plan(
            plan,
            (*refusals, *self._list_assumptions(format)),
            reproducible=self.random_state is not None,
            n_records=n_samples,
        )
        given = show_rows(n_samples, plan.max_rows)
        note = f"it takes about {min_samples:,} rows to be of use; here are {given}."
        return replace(certificate.made_by(self), notes=(note,) * bool(min_samples))
