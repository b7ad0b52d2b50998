# SPDX-License-Identifier: BSD-3-Clause
"""Lower bounds on the privacy loss of Gaussian releases, from repeated runs on neighbours.

A candidate takes the place of the canary, or the canary is absent. For each of these neighbours the
mechanism measures exact values on a grid; their differences are known without error. Then it runs
with fresh noise. Along the direction of the largest difference, the standard deviation of the noise
has an upper confidence bound. The quotient of both is a lower bound on μ, if the noise is as
tested: normal, independent between numbers and runs, and equally distributed for both neighbours.

The runs alternate between both neighbours. If their standard deviations differ, s < s', the
estimate lies in between, and the bound holds still. For t ≤ 0, N(0, s'²) and N(m, s²) give x < t
probabilities that are at least, and equal to, those of N(0, s²) and N(m, s²). So ε(δ) is at least
that of μ = m/s wherever this is at least μ²/2, as it is for δ ≤ 1/2 - exp(μ²/2)·Φ(-μ).

A release with a threshold has a δ', which bounds the probability that it releases a value that
only one record holds. Runs on that record alone, with given noise, find how much noise that takes.
The probability of so much noise follows from a lower bound on the noise's standard deviation.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice

import numpy as np
from scipy import stats
from scipy.spatial.distance import cdist

from ..accounting.events import ThresholdDpEvent
from ..mechanisms.gradients import ClippedGradientMechanism
from ..mechanisms.noise import NoiseSource
from ..mechanisms.sampled import SampledMechanism
from .mechanism_audit import N_TESTED, MechanismAudit, ReleaseAudit
from .runs import FixedNoise, Run, flatten_numbers
from .statistics import (
    Autocorrelation,
    equal_scale_p_value,
    find_equal_columns,
    mean_lower_bound,
    normality_p_value,
    rate_lower_bound,
    standardize,
    std_lower_bound,
    std_upper_bound,
)


@dataclass(frozen=True)
class _Settings:
    """Constants of the audit. They affect its power and its time, not its validity."""

    # Pilot runs estimate the weights of numbers: a quarter of the other runs, which has little
    # effect on their time, and at most so many.
    n_pilot: int = 250
    pilot_share: float = 0.25
    # Pilot runs in which numbers with shared noise must be equal. On a grid coarser than `fine`
    # independent numbers are equal in a few runs, so that all pilot runs are compared.
    n_equal: int = 8
    fine: float = 1e-3
    # Other records, one at a time, whose gradients a canary may turn around.
    n_others: int = 8
    # In standard deviations: beyond it, a tail probability underflows.
    largest_noise: float = 40
    # On a coarser grid, in standard deviations, rounded noise is far from normal.
    coarsest: float = 0.25


_SETTINGS = _Settings()
_DEPENDENT = "noise depends on the record"
_SHARED = "numbers share their noise"
_BARE = "numbers are released without noise"


class GaussianAudit(MechanismAudit):
    """Audit of a release with Gaussian noise: a lower bound on μ."""

    def audit(self) -> ReleaseAudit:
        compared = [self._compare(present) for present in self._list_present()]
        # The audit measures the pair that is furthest apart, where a violation shows first.
        widest = max(compared, key=lambda neighbours: neighbours.distances.max())
        faults = {fault for neighbours in compared for fault in neighbours.faults}
        run = widest.runs[0]
        if _DEPENDENT in faults:
            # Noise that depends on the record distinguishes neighbours by itself.
            return self._report(math.inf, {}, faults, n_runs=0)
        distance, threshold = widest.distances.max(), self._audit_threshold()
        if run.coarseness > _SETTINGS.coarsest or distance == 0:
            return self._report(0.0, {}, faults, threshold=threshold, n_runs=0)
        one, other = np.unravel_index(widest.distances.argmax(), widest.distances.shape)
        noised, levels = widest.noised, widest.levels
        n_pilot = min(_SETTINGS.n_pilot, math.ceil(_SETTINGS.pilot_share * self._n_runs))
        is_fine = run.coarseness < _SETTINGS.fine
        n_kept = _SETTINGS.n_equal if is_fine else n_pilot
        noise = _Noise(int(np.count_nonzero(noised)), self._alpha, n_kept)
        pairs = self._draw_pairs(widest.sources[one], widest.sources[other], noised)
        for _, residual in islice(pairs, n_pilot):
            noise.weigh(residual)
        for moved, residual in islice(pairs, self._n_runs):
            noise.add(moved, residual)
        bound, shared = noise.bound(), noise.find_shared(run.coarseness)
        if len(shared):
            faults.add(_SHARED)
            apart = np.abs(levels[1:, shared] - levels[0, shared])
            if np.ptp(apart, axis=2).max() > 4 * run.coarseness:
                bound = math.inf  # the difference of two such numbers has no noise
        shares = np.square(widest.distances / distance)
        squares = np.multiply(bound**2, shares, where=shares > 0, out=np.zeros(shares.shape))
        # Position 0 is the absent canary; the larger one is a candidate.
        rate = self._audit_rate(int(max(one, other)))
        return self._report(
            bound, noise.p_values(), faults, squares=squares, rate=rate, threshold=threshold
        )

    def _list_present(self) -> Iterator[list[int] | None]:
        """Yield the positions of the records beside the canary; None for all but candidates."""
        yield None
        if isinstance(self._mechanism, SampledMechanism):
            # The values of a record may depend on what was released of others.
            yield []
        if isinstance(self._mechanism, ClippedGradientMechanism):
            # A lone record adds one clipped gradient. It moves a sum by twice as much if it turns
            # the gradient of another around, most easily that of a small record: these are last.
            others = self._canary.candidates[-_SETTINGS.n_others :]
            yield from ([position] for position in others)

    def _draw_pairs(self, source, other, noised) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the difference of neighbours and the noise of one of them, in stated std."""
        sources = source, other
        runs = [self._run(source, self._seed()) for source in sources]
        std = runs[0].std[noised]
        if not isinstance(self._mechanism, SampledMechanism) and len(runs[0].measured) == 1:
            moved = (runs[1].exact - runs[0].exact)[noised] / std
            noise = NoiseSource(self._seed())
            for taken, first in cycle(zip(sources, runs, strict=True)):
                run = self._run(taken, noise, measured=first.measured[0])
                # Measured once: exact values do not depend on noise here, and drawing is all that
                # is repeated.
                yield moved, (run.noisy - first.exact)[noised] / std
        for turn in cycle((0, 1)):
            # Both have the same samples and directions, and the same values released before.
            seed = self._seed()
            run = self._run(source, seed)
            runs = [run, self._run(other, seed, released=run.released)]
            moved, residual = runs[1].exact - run.exact, runs[turn].noisy - runs[turn].exact
            yield moved[noised] / std, residual[noised] / std

    def _compare(self, present: list[int] | None) -> "_Neighbours":
        """Run the mechanism on all neighbours, with the same noise."""
        sources = [
            self._canary.insert(self._source, position, present=present)
            for position in [None, *self._canary.candidates]
        ]
        first = self._seed()
        seeds = [first, *self._seeds(_SETTINGS.n_equal - 1)]
        absent = [self._run(sources[0], seed) for seed in seeds]
        # All runs see the values that the first one released, so that they differ by the record
        # alone.
        pinned = absent[0].released
        runs = [absent[0], *(self._run(one, first, released=pinned) for one in sources[1:])]
        if isinstance(self._base, ThresholdDpEvent):
            # A value that a record alone holds would be one more number, which δ' covers.
            same = [len(run.std) == len(runs[0].std) for run in runs]
            runs = [run if is_same else runs[0] for run, is_same in zip(runs, same, strict=True)]
        return _Neighbours(sources, runs, absent, self._relation)

    def _audit_rate(self, which: int) -> tuple[float, float] | None:
        """Return the claimed sampling rate and a lower bound on it."""
        if self._sampling == "none":
            return None
        position = self._canary.candidates[which - 1]
        alone, n_sampled = self._canary.insert(self._source, position, present=[]), 0
        for seed in self._seeds(self._n_runs):
            measured = self._mechanism.query(alone, self._event, self._relation, NoiseSource(seed))
            n_sampled += bool(np.any(measured.exact))
        return self._rate, rate_lower_bound(n_sampled, self._n_runs, self._alpha)

    def _audit_threshold(self) -> tuple[float, float] | None:
        """Return the claimed δ' and a lower bound on it."""
        if not isinstance(self._base, ThresholdDpEvent):
            return None
        candidates = self._canary.candidates
        # The last one is a person with different rows.
        filled = [*candidates, np.resize(candidates, len(self._canary.rows))]
        sources = [self._canary.insert(self._source, rows, present=[]) for rows in filled]
        source = max(sources, key=lambda source: self._find_pass_probability(source, 1.0))
        first, noise = self._run(source, self._seed()), NoiseSource(self._seed())
        if not first.std.size:
            return self._base.delta, 0.0
        # Rounding to integers adds 1/12 to the variance.
        std = np.sqrt(first.std**2 + 1 / 12)
        drawn = [
            (self._run(source, noise, measured=first.measured[0]).noisy - first.exact) / std
            for _ in range(-(-self._n_runs // std.size))
        ]
        least = std_lower_bound(np.ravel(drawn), self._alpha)
        return self._base.delta, self._find_pass_probability(source, least)

    def _find_pass_probability(self, source, factor: float) -> float:
        """Return the probability that a value of a lone record passes the threshold.

        The noise has `factor` times its stated standard deviation. Values that need no noise to
        pass count as if they needed one step of it.
        """
        first = self._run(source, self._seed())

        def count_released(added):
            run = self._run(source, FixedNoise(added), measured=first.measured[0])
            return len(flatten_numbers(run.result))

        std = first.std.max(initial=0.0)
        # Bisection for the smallest noise with which a value passes.
        least, enough = 0, math.ceil(_SETTINGS.largest_noise * std)
        # Whether a value passes is monotone in noise that is added to all numbers.
        while enough - least > 1:
            middle = (least + enough) // 2
            least, enough = (least, middle) if count_released(middle) else (middle, enough)
        if std == 0 or not (n_released := count_released(enough)):
            return 0.0
        chance = stats.norm.sf((enough - 0.5) / (std * factor))
        return -math.expm1(n_released * math.log1p(-chance))


class _Neighbours:
    """Runs on neighbours: with the canary absent, and with each candidate in its place.

    Attributes
    ----------
    faults : list of str
        Violations that need no statistics.
    noised : ndarray of bool
        Numbers with noise before post-processing; others are not released.
    levels : ndarray of shape (n_neighbours, n_noised)
        Exact values, in stated standard deviations of the noise.
    distances : ndarray of shape (n_neighbours, n_neighbours)
        Between levels; 0 for pairs that are no neighbours.
    """

    def __init__(self, sources, runs: Sequence[Run], absent: Sequence[Run], relation: str) -> None:
        self.sources, self.runs = sources, runs
        self.faults = []
        # On a coarser grid, noisy numbers are often equal by chance.
        if runs[0].coarseness <= _SETTINGS.coarsest and _has_bare_numbers(runs, absent):
            self.faults.append(_BARE)
        self.noised = runs[0].std > 0
        self.distances = np.zeros((len(runs), len(runs)))
        if any(not _has_noise_of(run, runs[0]) for run in runs):
            self.faults.append(_DEPENDENT)
            return
        std = runs[0].std[self.noised]
        self.levels = np.stack([run.exact[self.noised] / std for run in runs])
        self.distances = cdist(self.levels, self.levels)
        if relation == "zero_out":
            # Two candidates are no neighbours under zero_out; each is a neighbour of the absent
            # canary only.
            self.distances[1:, 1:] = 0.0


class _Noise:
    """Statistics of the noise of many runs of n numbers, in its stated standard deviations.

    A bound errs with probability `alpha`; `n_kept` pilot runs are compared for shared noise.
    """

    def __init__(self, n: int, alpha: float, n_kept: int) -> None:
        self._alpha, self._n_kept = alpha, n_kept
        self._n_weighed, self._weighed = 0, np.zeros(n)
        self._kept: list[np.ndarray] = []
        self._tested: list[np.ndarray] = []
        self._moves: list[float] = []
        self._along: list[float] = []
        self._lags = Autocorrelation(n)
        # Sums of squares for each neighbour; their runs alternate.
        self._squares = np.zeros((2, n))

    def weigh(self, residual: np.ndarray) -> None:
        """Update the estimated variances, which determine the direction of projection."""
        self._n_weighed, self._weighed = self._n_weighed + 1, self._weighed + residual**2
        if len(self._kept) < self._n_kept:
            self._kept.append(residual)

    def add(self, moved: np.ndarray, residual: np.ndarray) -> None:
        """Add a run: the difference of neighbours and the noise of one of them."""
        with np.errstate(divide="ignore"):
            precision = np.where(self._weighed > 0, self._n_weighed / self._weighed, 0.0)
        length = np.sqrt(np.sum(precision * moved**2))
        self._squares[len(self._moves) % 2] += residual**2
        self._moves.append(length)
        self._along.append(0.0 if length == 0 else (precision * moved) @ residual / length)
        self._lags.add(residual)
        if len(self._tested) < 2 or len(self._tested) * len(residual) < N_TESTED:
            self._tested.append(residual)

    def bound(self) -> float:
        """Return a lower confidence bound on μ."""
        std = std_upper_bound(self._along, self._alpha)
        moved = math.sqrt(mean_lower_bound(np.square(self._moves), self._alpha))
        return math.inf if std == 0 else moved / std

    def p_values(self) -> dict[str, float]:
        runs = Autocorrelation(len(self._along))
        runs.add(np.array(self._along))
        tested = [np.ravel(self._tested[turn::2])[:N_TESTED] for turn in (0, 1)]
        along = [np.array(self._along[turn::2]) for turn in (0, 1)]
        return {
            "normality": normality_p_value(standardize(*along), standardize(*tested)),
            "equal scale for both neighbours": equal_scale_p_value(
                self._squares, [*map(len, along)]
            ),
            "independence of numbers": self._lags.p_value(),
            "independence of runs": runs.p_value(),
        }

    def find_shared(self, coarseness: float) -> np.ndarray:
        """Return pairs of numbers that share their noise."""
        return find_equal_columns(np.stack(self._kept), 2 * coarseness)


def _has_bare_numbers(runs: Sequence[Run], absent: Sequence[Run]) -> bool:
    """Return whether the record moves numbers that are released without noise."""
    always, *others = (flatten_numbers(run.result) for run in absent)
    moved = [flatten_numbers(run.result) for run in runs]
    if any(len(numbers) != len(always) for numbers in (*others, *moved)):
        return False
    bare = np.all([numbers == always for numbers in others], axis=0)
    return bool(np.any(bare & np.any([numbers != always for numbers in moved], axis=0)))


def _has_noise_of(run: Run, other: Run) -> bool:
    """Return whether two runs measured equally many numbers, with noise of the same scales."""
    return np.array_equal(run.std, other.std) and all(
        one.scale == another.scale
        for one, another in zip(run.measured, other.measured, strict=True)
    )
