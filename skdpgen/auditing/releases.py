# SPDX-License-Identifier: BSD-3-Clause
"""Audits: lower bounds, with confidence, on what fits cost, to hold against what is claimed."""

import json
import math
import numbers
import warnings
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from .._html import make_table
from .._muting import muted
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
from ..exceptions import PrivacyLeakWarning
from . import audit_release
from .made_records import (
    can_be_audited,
    count_rows_per_person,
    fit_records,
    make_records,
)
from .runs import Seat

# Who may take the seat, at most.
_MOST_CANDIDATES = 25
# With so few runs hardly anything is shown.
_FEWEST_RUNS = 100


@dataclass(frozen=True)
class AuditReport:
    """What an audit found, and what is claimed.

    Attributes
    ----------
    releases : tuple of ReleaseAudit
        What was found of each release that has noise.
    certificate : Certificate
        What is claimed of them.
    confidence : float
        With which each bound, and each test, is right.
    reads_rows : bool
        Whether rows were given to `audit`. If they are private, the report answers about them, and
        no noise covers that. Otherwise they were made, and it may be published.

    Examples
    --------
    >>> from skdpgen.preprocessing import DPPCA
    >>> from skdpgen.privacy import audit
    >>> report = audit(DPPCA(bounds=(0, 1)), 50, 3, n_runs=500, random_state=0)
    >>> report.verdict
    'consistent'
    >>> bool(0.8 * report.claim < report.bound < report.claim)
    True
    """

    releases: tuple
    certificate: Certificate
    confidence: float
    reads_rows: bool

    @property
    def claim(self):
        """ε of the certificate, at its δ."""
        return self.certificate.epsilon

    @property
    def bound(self):
        """What ε was shown to be above, at the δ of the claim.

        Of Gaussian releases of which each sees all records it is what they cost together. Of one
        that is repeated only a step is in it. Releases of samples, of random directions, and of
        pure ε beside others show what they cost in `releases` only; where there are just these,
        it is 0.
        """
        events = dict(zip(self.certificate.releases, self.certificate.events, strict=True))
        squares, pure = np.zeros((1, 1)), 0.0
        for found in self.releases:
            base, _, sampling = split_sampling(split_repetition(events[found.name])[0])
            if found.measure == "epsilon":
                pure += found.bound
            elif sampling == "none" and not isinstance(base, SlicedGaussianDpEvent):
                squares = squares + found.squares
        mu = math.sqrt(np.max(squares))
        if math.isinf(mu):
            return mu
        return max(pure, self._price(mu) if mu > 0 else 0.0)

    def _price(self, mu):
        return ledger_epsilon([gaussian_event(1 / mu)], self.certificate.delta)

    @property
    def verdict(self):
        """``"convicted"`` if any release is, else ``"consistent"`` with what is claimed."""
        is_bad = any(found.verdict == "convicted" for found in self.releases)
        return "convicted" if is_bad or self.bound > self.claim else "consistent"

    def to_json(self):
        """Write the report down, with the certificate that it is of."""
        return json.dumps(
            {
                "audit": "differential privacy",
                "verdict": self.verdict,
                "bound": _plain(self.bound),
                "claim": _plain(self.claim),
                "confidence": self.confidence,
                "reads_rows": self.reads_rows,
                "releases": [
                    {
                        "name": found.name,
                        "verdict": found.verdict,
                        "reasons": list(found.reasons),
                        "measure": found.measure,
                        "bound": _plain(found.bound),
                        "claim": _plain(found.claim),
                        "n_runs": found.n_runs,
                        "rate": found.rate and list(found.rate),
                        "threshold": found.threshold and list(found.threshold),
                        "tests": found.tests,
                    }
                    for found in self.releases
                ],
                "certificate": json.loads(self.certificate.to_json()),
            },
            ensure_ascii=False,
            indent=2,
        )

    def plot(self, ax=None):
        """Show, for each release, what was shown of it as a share of what is claimed.

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
        shares = [min(found.bound / found.claim, 2.0) for found in self.releases]
        colours = ["C3" if found.reasons else "C0" for found in self.releases]
        names = [found.name for found in self.releases]
        ax.barh(names[::-1], shares[::-1], color=colours[::-1])
        ax.axvline(1.0, color="black")
        ax.set_xlabel("shown, as a share of what is claimed")
        ax.set_title(f"{self.verdict}, with confidence {self.confidence:g}")
        return ax

    def _list_rows(self):
        for found in self.releases:
            symbol = {"mu": "μ", "epsilon": "ε"}[found.measure]
            beside = ""
            if found.rate is not None:
                claimed, shown = found.rate
                beside = f"; a record joins at a rate > {shown:.3g}, of {claimed:.3g} claimed"
            if found.threshold is not None:
                claimed, shown = found.threshold
                beside = (
                    "; what one record alone holds is released with probability > "
                    f"{shown:.3g}, of {claimed:.3g} claimed"
                )
            yield (
                found.name,
                f"{symbol} > {found.bound:.4g}",
                f"{symbol} = {found.claim:.4g}",
                "; ".join(found.reasons or ("consistent",)) + beside,
            )

    def _list_statements(self):
        lines = [
            f"{self.verdict.capitalize()}: ε > {self.bound:.4g} was shown at δ = "
            f"{show(self.certificate.delta)}, and ε = {show(self.claim)} is claimed "
            f"(confidence {self.confidence:g})."
        ]
        if self.reads_rows:
            lines.append("Rows that were given were read, outside of any ledger.")
        return lines

    def _repr_html_(self):
        head = ["Release", "Shown", "Claimed", "Verdict"]
        return make_table(" ".join(self._list_statements()), head, self._list_rows())

    def __str__(self):
        lines = self._list_statements()
        lines += [
            f"  - {name}: {bound}, of {claim} claimed; {verdict}"
            for name, bound, claim, verdict in self._list_rows()
        ]
        return "\n".join(lines)


def audit(
    estimator,
    X=300,
    y=None,
    *,
    target=None,
    persons=None,
    n_classes=None,
    n_runs=5000,
    confidence=1 - 1e-6,
    random_state=None,
):
    """Show, from the outcomes of many runs, how much can be told from what a fit releases.

    An unfitted clone is fitted to made records, and each of its releases is stopped at the door:
    there the very mechanism that was about to run is run again and again, on neighbours, with its
    own noise. See the user guide for how bounds are found, and what they show. What is audited is
    the code on this machine; nothing follows for releases that were made elsewhere.

    Parameters
    ----------
    estimator : estimator
        An unfitted generator, `DPPCA` or `LocalPrivatizer`.
    X : int, array-like or DataFrame, default=300
        How many records are made, by a seed and public numbers of the estimator; with `persons`,
        for how many of these. No private row is then read, and the report may be published. Or
        records to audit on. Of these the audit is a query that no noise covers, and a
        `PrivacyLeakWarning` says so: if they are private, so is the report.
    y : int or array-like, default=None
        Beside a number of records, that of their features. None: as many as the estimator's bounds
        or encoder say, or a few. Or labels, or numbers, as in `fit`.
    target : str, default=None
        As in `fit`.
    persons : array-like or bool, default=None
        As in `fit`. Or, beside a number, whether made records are of persons.
    n_classes : int, default=None
        Beside a number, how many classes made records have. None: those of the estimator.
    n_runs : int, default=5000
        How often each release is run.
    confidence : float, default=1 - 1e-6
        With which each bound and each test is right.
    random_state : None, int or RandomState, default=None
        By which records are made, and noise is drawn.

    Returns
    -------
    AuditReport

    Examples
    --------
    >>> from skdpgen import DPSWFlowSampler
    >>> from skdpgen.privacy import audit
    >>> sampler = DPSWFlowSampler(epsilon=2.0, bounds=(0, 1))
    >>> print(audit(sampler, 100, 3, n_runs=1000, random_state=0))  # doctest: +SKIP
    Consistent: ε > 1.796 was shown at δ = 1e-05, and ε = 2 is claimed (confidence 0.999999).
      - slice sketch: μ > 0.4527, of μ = 0.4982 claimed; consistent
    """
    if not can_be_audited(estimator):
        raise TypeError(
            f"{type(estimator).__name__} cannot be audited: generators, adapters, privatizers and "
            "DPPCA can. Of a search or a pipeline, audit the estimator that it fits."
        )
    if not (isinstance(n_runs, numbers.Integral) and n_runs >= _FEWEST_RUNS):
        raise ValueError(
            f"n_runs must be a whole number of at least {_FEWEST_RUNS}; got {n_runs!r}."
        )
    if not 0.5 <= confidence < 1:
        raise ValueError(f"confidence must be in [0.5, 1); got {confidence!r}.")
    seeds = _seeds(random_state)
    is_given = not isinstance(X, numbers.Integral)
    if is_given:
        warnings.warn(
            "An audit on records that are given reads them outside of any ledger: if they are "
            "private, the report is, too. audit(estimator, n_samples) makes records.",
            PrivacyLeakWarning,
            stacklevel=2,
        )
        copied, data, seat = clone(estimator), *_take_data(X, y, persons, seeds)
    else:
        copied, data, seat = _make_data(estimator, int(X), y, persons, n_classes, seeds)
    if target is not None:
        data["target"] = target
    found, plans = {}, []

    def watch(curator, mechanism, release):
        planned = dict(curator.plan.releases)
        if mechanism.name not in found and mechanism.name in planned:
            event, _ = split_repetition(planned[mechanism.name])
            mechanism.check(event)
            found[mechanism.name] = audit_release(
                mechanism,
                curator._source,
                event,
                curator.plan.relation,
                seat=seat,
                n_runs=int(n_runs),
                alpha=1 - confidence,
                seed=seeds,
            )
            if len(found) == len(planned):
                plans.append(curator.plan)
                raise _Audited
        return release(mechanism)

    with intercept_releases(watch, np.isin(np.arange(len(data["X"])), seat.candidates)), muted():
        try:
            fit_records(copied, data, int(seeds.integers(2**32)))
        except _Audited:
            pass
    return AuditReport(
        tuple(audited for audited in found.values() if audited is not None),
        Certificate.of_plan(
            plans[0],
            reproducible=getattr(estimator, "random_state", None) is not None,
            n_records=None if is_given else int(X),
        ),
        confidence,
        is_given,
    )


def _seeds(random_state):
    """Return what seeds are drawn from, for fits that no budget would take."""
    if find_open_budgets():
        raise ValueError("Audit outside of a PrivacyBudget: it refuses fits that have a seed.")
    if isinstance(random_state, np.random.RandomState):
        random_state = random_state.randint(2**31, size=8)
    return np.random.default_rng(random_state)


class _Audited(Exception):
    """Raised where all releases were audited, in place of the last of them."""


def _make_data(estimator, n_samples, n_features, persons, n_classes, seeds):
    """Return a clone, made records of which the first are extreme, and the seat."""
    if n_samples < 4:
        raise ValueError(f"To audit takes 4 records at least; got {n_samples}.")
    n_more = 0
    if persons:
        max_rows = count_rows_per_person(estimator)
        # More than count.
        n_more = 2 * max_rows
    n_rows = n_samples + n_more
    copied, data = make_records(estimator, n_rows, n_features, n_classes, seeds)
    if persons:
        data["persons"] = np.minimum(np.arange(n_rows), n_samples - 1)
    candidates = np.arange(min(_MOST_CANDIDATES, n_samples // 2))
    return copied, data, Seat(np.arange(n_samples - 1, n_rows), candidates)


def _take_data(X, y, persons, seeds):
    """Return records that were given, and a seat among them."""
    if callable(X) or not hasattr(X, "__len__") or len(X) < 4:
        raise ValueError("To audit on records takes an array or a DataFrame of 4 rows at least.")
    data, rows = {"X": X}, np.array([len(X) - 1])
    if y is not None:
        data["y"] = y
    if persons is not None:
        data["persons"] = persons
        rows = np.flatnonzero(np.asarray(persons) == np.asarray(persons)[-1])
    others = np.setdiff1d(np.arange(len(X)), rows)
    n_candidates = min(_MOST_CANDIDATES, max(1, len(others) // 2))
    return data, Seat(rows, seeds.choice(others, n_candidates, replace=False))


def _plain(number):
    return number if math.isfinite(number) else "inf"
