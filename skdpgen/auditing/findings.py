# SPDX-License-Identifier: BSD-3-Clause
"""What an audit finds of one release, and what audits of all releases share."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from ..accounting.events import SlicedGaussianDpEvent, pure_epsilon, split_sampling
from ..mechanisms.noise import NoiseSource
from .runs import Run


@dataclass(frozen=True)
class ReleaseAudit:
    """What an audit found of one release.

    Attributes
    ----------
    name : str
        Of the release.
    measure : {"mu", "epsilon"}
        Of what there is a bound. ``"mu"``: of a Gaussian mechanism, 1 over the noise multiplier; of
        one whose sensitivity is random, the root of the mean square. ``"epsilon"``: of a pure one.
        Of a release that is repeated, or samples records, it is that of one step, given that
        the record joins.
    claim : float
        What the certificate says.
    bound : float
        What was shown: no less can be told from the release.
    n_runs : int
        How often it was run.
    tests : dict of str to float
        p-values of the tests that noise is what it is taken to be.
    faults : tuple of str
        What was found that needs no statistics.
    rate : tuple of (float, float) or None
        If it samples records: how often a record is said to join, and what it is shown to be above.
    threshold : tuple of (float, float) or None
        If it is by a threshold: δ', and the probability that something is released which one record
        (or person) alone holds is shown to be above.
    alpha : float
        Probability with which a bound or a test is wrong.
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
    alpha: float = 1e-6
    # The square of the bound for each two who may take the seat, if noise is alike all around.
    squares: object = field(default=0.0, compare=False, repr=False)

    @property
    def reasons(self):
        """Why the release is convicted."""
        reasons = [
            f"noise fails the test of {name}" for name, p in self.tests.items() if p < self.alpha
        ]
        if self.bound > self.claim:
            reasons.append("more can be told from it than is claimed")
        if self.rate is not None and self.rate[1] > self.rate[0]:
            reasons.append("records join more often than is claimed")
        if self.threshold is not None and self.threshold[1] > self.threshold[0]:
            reasons.append("what one record alone holds is released more often than is claimed")
        return (*self.faults, *reasons)

    @property
    def verdict(self):
        """``"convicted"`` if there is a reason, else ``"consistent"`` with what is claimed."""
        return "convicted" if self.reasons else "consistent"


class WhiteBox(ABC):
    """A mechanism, and records that are no secret, on which it is run.

    Parameters
    ----------
    mechanism : Mechanism
    source : RecordSource
    event : DpEvent
        What is planned; of a repeated release, of one step.
    relation : {"zero_out", "replace_one"}
    seat : Seat
    n_runs : int
    alpha : float
        Probability with which a bound, or a test, may be wrong.
    seed : numpy.random.Generator
        Gives the seeds of the noise.
    """

    def __init__(self, mechanism, source, event, relation, *, seat, n_runs, alpha, seed):
        self._mechanism, self._source, self._event = mechanism, source, event
        self._relation, self._seat = relation, seat
        self._n_runs, self._alpha = n_runs, alpha
        self._base, self._rate, self._sampling = split_sampling(event)
        self._random = seed

    @abstractmethod
    def audit(self):
        """Return the `ReleaseAudit`."""

    def _run(self, source, seed, told=None, measured=None):
        noise = NoiseSource(seed) if isinstance(seed, int) else seed
        return Run(
            self._mechanism,
            source,
            self._base,
            self._relation,
            noise,
            told=told,
            measured=measured,
        )

    def _report(self, bound, tests, faults, squares=0.0, rate=None, threshold=None, n_runs=None):
        claim, measure = _find_claim(self._base)
        return ReleaseAudit(
            name=self._mechanism.name,
            measure=measure,
            claim=float(claim),
            bound=float(bound),
            n_runs=self._n_runs if n_runs is None else n_runs,
            tests=tests,
            faults=tuple(sorted(faults)),
            rate=rate,
            threshold=threshold,
            alpha=self._alpha,
            squares=squares,
        )

    def _seed(self):
        return int(self._random.integers(2**63))

    def _seeds(self, n):
        return (self._seed() for _ in range(n))


def _find_claim(base):
    """Return what an event says of one step in which a record joins, and in which measure."""
    if (epsilon := pure_epsilon(base)) is not None:
        return epsilon, "epsilon"
    mean = 1.0
    if isinstance(base, SlicedGaussianDpEvent):
        mean = base.n_projections / base.n_features + base.beside + base.rounding
    return math.sqrt(mean) / base.noise_multiplier, "mu"
