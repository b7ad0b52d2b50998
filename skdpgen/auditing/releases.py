# SPDX-License-Identifier: BSD-3-Clause
"""Audits of all releases of a fit, compared with the certificate."""

import contextlib
import json
import math
import numbers
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from dp_accounting import NonPrivateDpEvent
from sklearn.base import clone

from .._process.muting import muted
from ..accounting.accountants import ledger_epsilon
from ..accounting.budget import find_open_budgets
from ..accounting.certificate import Certificate
from ..accounting.events import (
    SlicedGaussianDpEvent,
    gaussian_event,
    split_repetition,
    split_sampling,
)
from ..accounting.rounding import show
from ..curator.curator import intercept_releases
from ..exceptions import EndOfFit, PrivacyLeakWarning
from ..mechanisms.local import LocalLabelsMechanism, LocalRowsMechanism
from .gaussian import GaussianAudit
from .local import LabelsAudit, RowsAudit
from .made_records import can_be_audited, count_rows_per_person, fit_records, make_records
from .mechanism_audit import (
    DEFAULT_CONFIDENCE,
    NO_VIOLATION,
    VIOLATION,
    MechanismAudit,
    ReleaseAudit,
)
from .runs import Canary

# Candidates for the place of the canary, at most: distances are compared for each pair of them.
_MOST_CANDIDATES = 25
# With fewer runs, bounds at the default confidence are near 0.
_LEAST_RUNS = 100
# Fields of each release in the JSON of a report.
_WRITTEN = ("name verdict reasons measure bound claim n_runs rate threshold tests").split()


@dataclass(frozen=True)
class AuditReport:
    """Lower bounds on the privacy loss of each release, beside the certificate's claim.

    Attributes
    ----------
    releases : tuple of ReleaseAudit
        The audits of all releases with noise.
    certificate : Certificate
        The claim.
    confidence : float
        Confidence of each bound and each test.
    reads_rows : bool
        Whether rows were given to `audit`. If they are private, so is the report, and no noise
        covers it. Otherwise the records were generated, and the report may be published.

    Examples
    --------
    >>> from skdpgen.preprocessing import DPPCA
    >>> from skdpgen.privacy import audit
    >>> report = audit(DPPCA(bounds=(0, 1)), 50, 3, n_runs=500, random_state=0)
    >>> report.verdict
    'no violation found'
    >>> bool(0.8 * report.claim < report.bound < report.claim)
    True
    """

    releases: tuple[ReleaseAudit, ...]
    certificate: Certificate
    confidence: float
    reads_rows: bool

    @property
    def claim(self) -> float:
        """ε of the certificate, at its δ."""
        return self.certificate.epsilon

    @property
    def bound(self) -> float:
        """Lower bound on ε, at the δ of the claim.

        It composes Gaussian releases that read all records, each for one step if it is repeated.
        Releases of samples or random projections, and pure ε beside Gaussian releases, are bounded
        in `releases` only; with no other release the bound is 0.
        """
        events = dict(zip(self.certificate.releases, self.certificate.events, strict=True))
        squares, pure = np.zeros((1, 1)), 0.0
        for audited in self.releases:
            base, _, sampling = split_sampling(split_repetition(events[audited.name])[0])
            if audited.measure == "epsilon":
                pure += audited.bound
            elif sampling == "none" and not isinstance(base, SlicedGaussianDpEvent):
                squares = squares + audited.squares
        mu = math.sqrt(np.max(squares))
        if mu == 0 or math.isinf(mu):
            return max(pure, mu)
        return max(pure, ledger_epsilon([gaussian_event(1 / mu)], self.certificate.delta))

    @property
    def verdict(self) -> str:
        """``"violation found"`` in a release or over all, else ``"no violation found"``."""
        is_bad = any(audited.verdict == VIOLATION for audited in self.releases)
        return VIOLATION if is_bad or self.bound > self.claim else NO_VIOLATION

    def to_json(self) -> str:
        """Return the report and its certificate as JSON."""
        return json.dumps(
            {
                "audit": "differential privacy",
                "verdict": self.verdict,
                "bound": _plain(self.bound),
                "claim": _plain(self.claim),
                "confidence": self.confidence,
                "reads_rows": self.reads_rows,
                "releases": [
                    {name: _plain(getattr(audited, name)) for name in _WRITTEN}
                    for audited in self.releases
                ],
                "certificate": json.loads(self.certificate.to_json()),
            },
            ensure_ascii=False,
            indent=2,
        )

    def plot(self, ax=None):
        """Plot the bound of each release, as a share of its claim.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, default=None
            None: those of a new figure.

        Returns
        -------
        matplotlib.axes.Axes
        """
        import matplotlib.pyplot as plt

        if ax is None:
            _, ax = plt.subplots()
        releases = self.releases[::-1]
        ax.barh(
            [audited.name for audited in releases],
            [min(audited.bound / audited.claim, 2.0) for audited in releases],
            color=["C3" if audited.reasons else "C0" for audited in releases],
        )
        ax.axvline(1.0, color="black")
        ax.set_xlabel("lower bound, as a share of the claim")
        ax.set_title(f"{self.verdict}, with confidence {self.confidence:g}")
        return ax

    def _list_rows(self) -> Iterator[tuple[str, str, str, str]]:
        for audited in self.releases:
            symbol = {"mu": "μ", "epsilon": "ε"}[audited.measure]
            notes = [*(audited.reasons or (NO_VIOLATION,))]
            if audited.rate is not None:
                claim, bound = audited.rate
                notes.append(f"sampling rate > {bound:.3g}, claimed {claim:.3g}")
            if audited.threshold is not None:
                claim, bound = audited.threshold
                notes.append(
                    f"probability to release a value of one record > {bound:.3g}, "
                    f"claimed {claim:.3g}"
                )
            yield (
                audited.name,
                f"{symbol} > {audited.bound:.4g}",
                f"{symbol} = {audited.claim:.4g}",
                "; ".join(notes),
            )

    def _list_statements(self) -> list[str]:
        lines = [
            f"{self.verdict.capitalize()}: the audit shows ε > {self.bound:.4g} at δ = "
            f"{show(self.certificate.delta)}; the certificate claims ε = {show(self.claim)} "
            f"(confidence {self.confidence:g})."
        ]
        if self.reads_rows:
            lines.append("The audit read the given rows, outside of any ledger.")
        return lines

    def _repr_html_(self) -> str:
        from .._html import make_table

        head = ["Release", "Lower bound", "Claim", "Verdict"]
        return make_table(" ".join(self._list_statements()), head, self._list_rows())

    def __str__(self) -> str:
        rows = (
            f"  - {name}: {bound}, claimed {claim}; {verdict}"
            for name, bound, claim, verdict in self._list_rows()
        )
        return "\n".join([*self._list_statements(), *rows])


def audit(
    estimator,
    X=300,
    y=None,
    *,
    target: str | None = None,
    persons=None,
    n_classes: int | None = None,
    n_runs: int = 5000,
    confidence: float = DEFAULT_CONFIDENCE,
    random_state=None,
) -> AuditReport:
    """Bound the privacy loss of a fit from below, by many runs of each release.

    An unfitted clone is fitted to generated records. Each of its releases is intercepted: the very
    mechanism that was about to run is run many times on neighbouring data sets, with its own
    noise. The user guide explains the bounds. The audit tests the code on this machine; it says
    nothing about releases from elsewhere.

    Parameters
    ----------
    estimator : estimator
        An unfitted generator, adapter, `DPPCA` or `LocalPrivatizer`.
    X : int, array-like or DataFrame, default=300
        Number of records (with `persons`, of persons) to generate, by a seed and public
        parameters of the estimator. No private row is then read, and the report may be published.
        Or records to audit on. No noise covers what such an audit says of them, as a
        `PrivacyLeakWarning` says: if they are private, so is the report.
    y : int or array-like, default=None
        Beside a number of records, the number of features; None: that of the estimator's bounds
        or encoder, or 4. Beside records, labels or numbers, as in `fit`.
    target : str, default=None
        As in `fit`.
    persons : array-like or bool, default=None
        As in `fit`. Beside a number of records, whether generated records belong to persons.
    n_classes : int, default=None
        Beside a number of records, the number of their classes. None: that of the estimator.
    n_runs : int, default=5000
        How often each release is run.
    confidence : float, default=1 - 1e-6
        Confidence of each bound and each test.
    random_state : None, int or RandomState, default=None
        Seed of the generated records and of the noise.

    Returns
    -------
    AuditReport

    Raises
    ------
    TypeError
        If the estimator releases nothing itself, as a search or a pipeline.
    ValueError
        If a parameter is out of range, if there are fewer than 4 records, or if a `PrivacyBudget`
        is open.

    Examples
    --------
    >>> from skdpgen import DPSWFlowSampler
    >>> from skdpgen.privacy import audit
    >>> sampler = DPSWFlowSampler(epsilon=2.0, bounds=(0, 1))
    >>> report = audit(sampler, 100, 3, n_runs=1000, random_state=0)
    >>> for audited in report.releases:
    ...     print(audited.name, audited.verdict, audited.bound < audited.claim)
    squared norms no violation found True
    slice sketch no violation found True
    """
    if not can_be_audited(estimator):
        raise TypeError(
            f"{type(estimator).__name__} cannot be audited: it makes no release itself. Audit the "
            "generator, adapter, privatizer or DPPCA that it fits."
        )
    if not (isinstance(n_runs, numbers.Integral) and n_runs >= _LEAST_RUNS):
        raise ValueError(f"n_runs must be an integer of at least {_LEAST_RUNS}; got {n_runs!r}.")
    check_confidence(confidence)
    rng = make_rng(random_state)
    is_given = not isinstance(X, numbers.Integral)
    if is_given:
        warnings.warn(
            "An audit of given records reads them outside of any ledger: if they are private, so "
            "is the report. Use audit(estimator, n_samples) to audit on generated records.",
            PrivacyLeakWarning,
            stacklevel=2,
        )
        copied, data, canary = clone(estimator), *_take_data(X, y, persons, rng)
    else:
        copied, data, canary = _generate_data(estimator, int(X), y, persons, n_classes, rng)
    if target is not None:
        data["target"] = target
    audits: dict[str, ReleaseAudit | None] = {}
    plans: list = []

    def watch(curator, mechanism, release):
        planned = dict(curator.plan.releases)
        if mechanism.name not in audits and mechanism.name in planned:
            event, _ = split_repetition(planned[mechanism.name])
            mechanism.check(event)
            audits[mechanism.name] = _audit_mechanism(
                mechanism,
                curator._source,
                event,
                curator.plan.relation,
                canary=canary,
                n_runs=int(n_runs),
                alpha=1 - confidence,
                rng=rng,
            )
            if len(audits) == len(planned):
                plans.append(curator.plan)
                raise _AllAudited
        return release(mechanism)

    # Records are the rows of the first of two tables.
    first = next(iter(data["X"].values())) if isinstance(data["X"], dict) else data["X"]
    null = np.isin(np.arange(len(first)), canary.candidates)
    with intercept_releases(watch, null), muted(), contextlib.suppress(_AllAudited):
        fit_records(copied, data, int(rng.integers(2**32)))
    return AuditReport(
        tuple(audited for audited in audits.values() if audited is not None),
        Certificate.of_plan(
            plans[0],
            reproducible=getattr(estimator, "random_state", None) is not None,
            n_records=None if is_given else int(X),
        ),
        confidence,
        is_given,
    )


def check_confidence(confidence: float) -> None:
    """Raise ValueError unless a confidence is in [0.5, 1)."""
    if not 0.5 <= confidence < 1:
        raise ValueError(f"confidence must be in [0.5, 1); got {confidence!r}.")


def make_rng(random_state) -> np.random.Generator:
    """Return a generator of seeds, unless a budget is open, which refuses fits with seeds."""
    if find_open_budgets():
        raise ValueError("Audit outside of a PrivacyBudget: it refuses fits that have a seed.")
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31, size=8)
    return np.random.default_rng(random_state)


class _AllAudited(EndOfFit):
    """Raised once all releases were audited, in place of the last of them."""


def _audit_mechanism(mechanism, source, event, relation, **settings) -> ReleaseAudit | None:
    """Audit a mechanism; return None for a release without noise, which claims nothing."""
    if isinstance(split_sampling(event)[0], NonPrivateDpEvent):
        return None
    audit_class: type[MechanismAudit] = GaussianAudit
    if isinstance(mechanism, LocalLabelsMechanism):
        audit_class = LabelsAudit
    elif isinstance(mechanism, LocalRowsMechanism):
        audit_class = RowsAudit
    return audit_class(mechanism, source, event, relation, **settings).audit()


def _generate_data(estimator, n_samples, n_features, persons, n_classes, rng):
    """Return a clone, generated records with extreme ones first, and the canary."""
    if n_samples < 4:
        raise ValueError(f"An audit needs at least 4 records; got {n_samples}.")
    n_more = 0
    if persons:
        # The canary has more rows than may count, so that an audit sees whether more do.
        max_rows = count_rows_per_person(estimator)
        n_more = 2 * max_rows
    n_rows = n_samples + n_more
    copied, data = make_records(estimator, n_rows, n_features, n_classes, rng)
    if persons:
        data["persons"] = np.minimum(np.arange(n_rows), n_samples - 1)
    candidates = np.arange(min(_MOST_CANDIDATES, n_samples // 2))
    return copied, data, Canary(np.arange(n_samples - 1, n_rows), candidates)


def _take_data(X, y, persons, rng):
    """Return given records, and a canary among them: the last record or person."""
    if callable(X) or not hasattr(X, "__len__") or len(X) < 4:
        raise ValueError("X must be an array or a DataFrame with at least 4 rows.")
    data, rows = {"X": X}, np.array([len(X) - 1])
    if y is not None:
        data["y"] = y
    if persons is not None:
        data["persons"] = persons
        rows = np.flatnonzero(np.asarray(persons) == np.asarray(persons)[-1])
    others = np.setdiff1d(np.arange(len(X)), rows)
    n_candidates = min(_MOST_CANDIDATES, max(1, len(others) // 2))
    return data, Canary(rows, rng.choice(others, n_candidates, replace=False))


def _plain(value):
    """Return a value that JSON can hold."""
    return "inf" if isinstance(value, float) and math.isinf(value) else value
