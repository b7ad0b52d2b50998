# SPDX-License-Identifier: BSD-3-Clause
"""Audit result of one release, and the base class of audits of mechanisms."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from ..accounting.events import (
    SlicedGaussianDpEvent,
    over_sensitivity,
    pure_epsilon,
    split_sampling,
)
from ..mechanisms.noise import NoiseSource
from .runs import Canary, Run

# Verdicts of all audits.
VIOLATION, NO_VIOLATION = "violation found", "no violation found"
# By default, a bound or a test of a correct release errs once in a million audits.
DEFAULT_CONFIDENCE = 1 - 1e-6
# Numbers whose noise is tested for normality, at most: the test's time grows with them.
N_TESTED = 50_000


@dataclass(frozen=True)
class ReleaseAudit:
    """Audit result of one release.

    A release that is repeated, or that samples records, is audited for one step, given that the
    record is in the sample.

    Attributes
    ----------
    name : str
        Name of the release.
    measure : {"mu", "epsilon"}
        The bounded quantity. ``"mu"``: the parameter of a Gaussian mechanism, the sensitivity over
        the noise (its root mean square if the sensitivity is random). ``"epsilon"``: that of a
        pure mechanism.
    claim : float
        The value on the certificate.
    bound : float
        Lower bound that the audit found.
    n_runs : int
        How often the mechanism ran.
    tests : dict of str to float
        p-values of the tests of the noise's distribution.
    faults : tuple of str
        Violations that need no statistics.
    rate : tuple of (float, float) or None
        For sampled records: the claimed sampling rate, and a lower bound on it.
    threshold : tuple of (float, float) or None
        For thresholded counts: the claimed δ', and a lower bound on the probability that a value
        is released which only one record (or person) holds.
    alpha : float
        Probability that a bound or a test errs.
    """

    name: str
    measure: str
    claim: float
    bound: float
    n_runs: int
    tests: dict
    faults: tuple = ()
    rate: tuple | None = None
    threshold: tuple | None = None
    alpha: float = 1 - DEFAULT_CONFIDENCE
    # The squared bound for each pair of neighbours, if their noise is equally large.
    squares: np.ndarray | float = field(default=0.0, compare=False, repr=False)

    @property
    def reasons(self) -> tuple[str, ...]:
        """The violations that were found."""
        reasons = [
            f"noise fails the test of {name}" for name, p in self.tests.items() if p < self.alpha
        ]
        if self.bound > self.claim:
            reasons.append("privacy loss exceeds the claim")
        if self.rate is not None and self.rate[1] > self.rate[0]:
            reasons.append("sampling rate exceeds the claim")
        if self.threshold is not None and self.threshold[1] > self.threshold[0]:
            reasons.append("values of a single record pass the threshold too often")
        return (*self.faults, *reasons)

    @property
    def verdict(self) -> str:
        """``"violation found"`` if there are `reasons`, else ``"no violation found"``."""
        return VIOLATION if self.reasons else NO_VIOLATION


class MechanismAudit(ABC):
    """White-box audit of a mechanism, by runs on public records.

    The event is the planned one; for a repeated release, that of one step. A bound or a test errs
    with probability `alpha`. `rng` draws the seeds of the noise.
    """

    def __init__(
        self,
        mechanism,
        source,
        event,
        relation: str,
        *,
        canary: Canary,
        n_runs: int,
        alpha: float,
        rng: np.random.Generator,
    ) -> None:
        self._mechanism, self._source, self._event = mechanism, source, event
        self._relation, self._canary = relation, canary
        self._n_runs, self._alpha, self._rng = n_runs, alpha, rng
        self._base, self._rate, self._sampling = split_sampling(event)

    @abstractmethod
    def audit(self) -> ReleaseAudit:
        """Run the mechanism and return what its outcomes show."""

    def _run(self, source, noise, **pinned) -> Run:
        """Run the mechanism with a seed or a noise source."""
        noise = NoiseSource(noise) if isinstance(noise, int) else noise
        return Run(self._mechanism, source, self._base, self._relation, noise, **pinned)

    def _report(self, bound: float, tests: dict, faults=(), **fields) -> ReleaseAudit:
        claim, measure = _find_claim(over_sensitivity(self._base, self._relation))
        return ReleaseAudit(
            name=self._mechanism.name,
            measure=measure,
            claim=float(claim),
            bound=float(bound),
            tests=tests,
            faults=tuple(sorted(faults)),
            alpha=self._alpha,
            **{"n_runs": self._n_runs, **fields},
        )

    def _seed(self) -> int:
        return int(self._rng.integers(2**63))

    def _seeds(self, n: int) -> Iterator[int]:
        return (self._seed() for _ in range(n))


def _find_claim(base) -> tuple[float, str]:
    """Return the claim of an event for one step with the record in the sample, and its measure.

    Its noise multiplier is over the sensitivity.
    """
    if (epsilon := pure_epsilon(base)) is not None:
        return epsilon, "epsilon"
    mean_square = 1.0
    if isinstance(base, SlicedGaussianDpEvent):
        mean_square = base.n_projections / base.n_features + base.beside + base.rounding
    return math.sqrt(mean_square) / base.noise_multiplier, "mu"
