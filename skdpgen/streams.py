# SPDX-License-Identifier: BSD-3-Clause
"""Releases of growing data, period by period, within one privacy budget."""

import secrets
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from sklearn.base import BaseEstimator, clone

from ._process.isolation import isolated
from .accounting.calibration import check_delta, check_epsilon
from .accounting.composition import join
from .accounting.plan import Plan, Terms
from .curator.curator import open_curator
from .curator.dataset import Dataset
from .data.record_functions import RecordFunction, clears_frames
from .exceptions import FitQualityWarning, warn_caller
from .mechanisms.noise import NoiseSource
from .mechanisms.streams import (
    MAX_HORIZON,
    StreamedTablesMechanism,
    estimate_tables,
    factorize,
)
from .mechanisms.two_way import Tables
from .params import warn_of_delta
from .planning.fits import list_assumptions
from .releases.published import PublishedRelease
from .releases.two_way_tables import TwoWayTables
from .saving.serialization import Saves
from .tables import Category, Schema
from .tables.declaration import check_labels
from .tables.format import TableFormat
from .tables.layout import TableLayout

__all__ = ["ReleaseStream"]

# Each period would find other interactions.
_RELEASE = TwoWayTables(max_order=2)
# Standard deviations: noise alone is larger in one of three million updates.
_BEYOND_NOISE = 5.0
_ASSUMED = (
    "all {n} updates of a stream are covered together, each made once: a second one of the same "
    "saved state is a further stream, whose certificate composes with this one",
    "no record changes its period between updates",
    "the periods were fixed beforehand, and the number of records at each update is public",
)


class ReleaseStream(Saves):
    """Tables of all rows so far, released once a period within one budget for all periods.

    Each update reads the rows of all periods so far. The releases have noise whose parts cancel
    in later ones (the factorisation mechanism), so that a record, which belongs to one period,
    costs its share of the budget once. The stream holds noisy values only: it can be saved,
    loaded and published between updates.

    Parameters
    ----------
    epsilon_total : float
        ε of all updates together.
    horizon : sequence
        Different labels of all periods, in order, fixed beforehand.
    schema : Schema
        The columns of the rows other than the period. All bounds and categories must be declared;
        knots of numbers that are not given are evenly spaced.
    period : str, default="period"
        The column that holds the period of each row.
    delta, relation, accountant
        As in the generators.

    Attributes
    ----------
    released : list of Tables
        The noisy releases so far.
    release_ : PublishedRelease
        The tables of all rows so far, after the last update, for `from_release`.

    Notes
    -----
    A row without one of the labels counts as absent, as do rows of later periods. A record must
    stay in its period; its other cells may be corrected. A person with rows in k periods needs
    group privacy: ε is for each row.

    A budget is charged with the whole stream at the first update inside it, and each later one
    claims that charge before its noise is drawn. Only the update that follows the last one can: a
    second update of the same state, from an older file, another copy or after a crash, has other
    noise, and is charged with the whole stream again. So save the stream after each update.
    Without a budget nobody keeps account of copies; by their digests, `compose` counts the
    certificates of several updates of one stream once, and those of two copies twice.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdpgen import Category, DPSWFlowSampler, Number, Schema
    >>> from skdpgen.releases import from_release
    >>> from skdpgen.streams import ReleaseStream
    >>> schema = Schema({"age": Number(0, 100, decimals=0), "smokes": Category(["no", "yes"])})
    >>> stream = ReleaseStream(4.0, ["2026-01", "2026-02", "2026-03"], schema, period="month")
    >>> january = pd.DataFrame({"age": range(20, 80), "smokes": "no", "month": "2026-01"})
    >>> february = pd.DataFrame({"age": range(30, 90), "smokes": "yes", "month": "2026-02"})
    >>> stream.update(january)
    <ReleaseStream: 1 of 3 updates, ε = 4 for all at δ = 1e-05>
    >>> stream.update(pd.concat([january, february]))
    <ReleaseStream: 2 of 3 updates, ε = 4 for all at δ = 1e-05>
    >>> sampler = from_release(stream.release_, DPSWFlowSampler(n_steps=50))
    >>> sampler.sample(3).shape
    (3, 2)
    """

    def __init__(
        self,
        epsilon_total: float,
        horizon: Sequence,
        schema: Schema,
        *,
        period: str = "period",
        delta: float = 1e-5,
        relation: str = "zero_out",
        accountant: str = "pld",
    ) -> None:
        self.epsilon_total, self.delta = check_epsilon(epsilon_total), check_delta(delta)
        self.horizon = check_labels(horizon, "horizon")
        self.schema, self.period = schema, period
        self.relation, self.accountant = relation, accountant
        self.released: list[Tables] = []
        # The first update follows it, so that copies are known as one stream.
        self._start = secrets.token_hex(32)
        # Certificate of all updates so far, their plan, and the format of the last one.
        self._last: tuple | None = None
        if not 1 < len(self.horizon) <= MAX_HORIZON:
            raise ValueError(
                f"horizon must list 2 to {MAX_HORIZON:,} labels of periods; got "
                f"{len(self.horizon)}."
            )
        if not isinstance(self.schema, Schema) or self.schema.undeclared:
            raise ValueError(
                "schema must declare the bounds and categories of all columns: what is inferred "
                "from one period need not fit the next. Use Schema({'age': Number(0, 120), ...})."
            )
        if self.period in self.schema:
            raise ValueError(
                f"The period {self.period!r} must not be a column of the schema, since its levels "
                "are those of horizon. Drop it from the schema."
            )
        self.schema = self.schema.with_even_knots()
        self._factor = factorize(len(self.horizon))

    def __repr__(self):
        return (
            f"<ReleaseStream: {len(self.released)} of {len(self.horizon)} updates, "
            f"ε = {self.epsilon_total:g} for all at δ = {self.delta:g}>"
        )

    @clears_frames()
    @isolated()
    def update(self, X):
        """Release the tables of all rows so far.

        Parameters
        ----------
        X : DataFrame of shape (n_samples, n_columns)
            Private rows of **all** periods up to this one, with the column of the period; any
            table that `fit` takes. Rows of the new period alone spoil this and all later updates;
            a `FitQualityWarning` says so, by released counts, once the update is made.

        Returns
        -------
        self : ReleaseStream

        Raises
        ------
        ValueError
            If all updates were made, the columns are not those of the schema, or there are fewer
            rows than at the last update.
        BudgetExceededError
            If an open budget cannot pay for the whole stream.
        """
        t = len(self.released) + 1
        if t > len(self.horizon):
            raise ValueError(
                f"All {len(self.horizon)} updates were made. Start a new stream, whose certificate "
                "composes with this one."
            )
        dataset = Dataset.of(X, target=self.period)
        schema = Schema({**self.schema, self.period: Category(self.horizon)}, self.schema.rules)
        dataset.take_columns(schema, are_declared=True)
        format = TableFormat(schema, TableLayout.of(schema, dataset))
        dataset.validate_table(BaseEstimator(), format)
        names = [name for name, _ in format.blocks]
        by = names.index(self.period)
        mechanism = StreamedTablesMechanism(format.block_sizes, by, t, self._factor)
        n_records, (last, plan, _) = dataset.n_records, self._last or (None,) * 3
        n_before = 0 if last is None else last.n_records
        if n_records < n_before:
            raise ValueError(
                f"X has {n_records:,} rows, fewer than the {n_before:,} of the last update: give "
                "the rows of all periods so far. Keep deleted ones as empty rows."
            )
        # All updates share one plan, whose price is that of the first.
        plan = plan or self._make_plan(n_records)
        digests = (self._start,) if last is None else last.digests[0]
        warn_of_delta(self.delta, n_records)
        following = replace(plan, follows=digests[-1])
        with open_curator(dataset, format, following, NoiseSource(), strict=False) as curator:
            curator.encode_cells_by(RecordFunction(format.encode_cells))
            released = [*self.released, curator.release(mechanism)]
            assumed = [text.format(n=len(self.horizon)) for text in _ASSUMED]
            own = curator.certificate((*list_assumptions(format), *assumed))
            certificate = join(
                [own] if last is None else [last, own],
                [(*own.releases, *own.events, (*digests, own.digest))],
                n_records=n_records,
            )
            # At once, whatever comes after: the next update follows this one.
            vars(self).update(released=released, _last=(certificate, plan, format))
        self._warn(n_records, n_records - n_before)
        return self

    def _make_plan(self, n_records) -> Plan:
        budget = self.epsilon_total, self.delta, self.relation, self.accountant
        return _RELEASE.plan(Terms(*budget, n_records, 1, None), TableFormat(self.schema))

    @property
    def release_(self) -> PublishedRelease | None:
        """The estimate of the tables of all rows so far, for learners."""
        if self._last is None:
            return None
        certificate, plan, format = self._last
        layout = format.layout
        names = tuple(name for name in layout.names if name != self.period)
        layout = replace(layout, names=names, label=None).without_dtypes([self.period])
        format = TableFormat(self.schema, layout)
        tables = estimate_tables(self.released, self._factor)
        if self.schema.rules:
            tables = tables.without_impossible(format.find_impossible())
        n_records = certificate.n_records
        return PublishedRelease(
            type(self).__name__,
            clone(_RELEASE),
            plan,
            format,
            (tables,),
            0,
            (),
            n_records,
            1,
            n_records,
            {"n_features_in_": len(names), "feature_names_in_": np.array(names, dtype=object)},
            certificate,
        )

    def _warn(self, n_records, n_new):
        """Warn if more, or hardly any, records were released than there are rows."""
        # Earlier releases hold the missing rows; numbers of rows by period are private.
        horizon = self.horizon
        count, std = estimate_tables(self.released, self._factor).count_records()
        if count - n_records > _BEYOND_NOISE * std:
            warn_caller(
                f"X has {n_records:,} rows, and about {count:,.0f} ± {2 * std:,.0f} records were "
                "released so far: rows of earlier periods are missing, and later updates keep a "
                "part of this error. Start a new stream with the rows of all periods, "
                "pd.concat([january, february]); its certificate composes with this one.",
                FitQualityWarning,
            )
        *before, period = horizon[: len(self.released)]
        if before:
            earlier, earlier_std = estimate_tables(self.released[:-1], self._factor).count_records()
            count, std = count - earlier, std + earlier_std
        if count < _BEYOND_NOISE * std < n_new / 2:
            warn_caller(
                f"About {count:,.0f} ± {2 * std:,.0f} of {n_new:,} new rows are of the period "
                f"{period!r}: rows whose {self.period!r} is spelled otherwise than in horizon are "
                "absent, and later updates keep a part of this error. Start a new stream with the "
                "labels of horizon; its certificate composes with this one.",
                FitQualityWarning,
            )

    def _check_savable(self):
        """Raise an error if there is nothing to save yet."""
        if not self.released:
            raise ValueError("The stream has released nothing yet: call update first.")
