# SPDX-License-Identifier: BSD-3-Clause
"""Lower bounds on what Gaussian releases cost, by running their mechanisms again and again.

One record takes a seat, or another one, or none. For each, the mechanism measures the same whole
numbers before their noise, from which it follows by how much neighbours move them, exactly. Then it
runs with fresh noise. Along the direction of the largest move, the deviation of the noise is
bounded from above. So no less than the move over that can be told from a release, if noise is what
it is tested to be: normal, of each number and each run its own, and the same for both neighbours.

The neighbours take turns. If their deviations differ, s < s', the bound is for one in between,
and holds. For N(0, s'²) and N(m, s²) give x < t, for t ≤ 0, probabilities that are at least, and
just, those of N(0, s²) and N(m, s²). So ε(δ) is at least that of μ = m/s wherever this is μ²/2 or
more, as it is for δ ≤ 1/2 - exp(μ²/2)·Φ(-μ).

A release by a threshold also has δ', which bounds the probability that it releases something that
only one record holds. Runs on that record alone, with given noise, find how much noise that takes.
The probability of so much noise follows from its deviation, which is bounded from below.
"""

import math
from itertools import cycle, islice

import numpy as np
from scipy import stats
from scipy.spatial.distance import cdist

from ..accounting.events import ThresholdDpEvent
from ..mechanisms.gradients import ClippedGradientMechanism
from ..mechanisms.noise import NoiseSource
from ..mechanisms.sampled import SampledMechanism
from .findings import WhiteBox
from .runs import list_numbers
from .statistics import (
    Lags,
    deviation_above,
    deviation_below,
    equal_scale,
    find_equal,
    mean_below,
    normality,
    share_below,
    standardize,
)

# Runs that say how numbers are weighed, before those that count: at most, and for each of these.
_N_PILOT, _PILOT_SHARE = 250, 0.25
# Runs in which numbers that share a draw stay equal: on a coarse grid others are, too, in a few.
_N_EQUAL, _FINE = 8, 1e-3
# Records that are tried as the company of another.
_N_COMPANIES = 8
# How many numbers are tested to be normal.
_N_TESTED = 50_000
# Deviations of noise beyond which a double knows no probability.
_MOST_NOISE = 40
# On a coarser grid, in deviations of the noise, rounded noise is far from normal.
_COARSEST = 0.25


class GaussianAudit(WhiteBox):
    """Of a release with Gaussian noise: what it shows of μ."""

    def audit(self):
        compared = [self._compare(company) for company in self._list_companies()]
        widest = max(compared, key=lambda neighbours: neighbours.distances.max())
        faults = {fault for neighbours in compared for fault in neighbours.faults}
        run = widest.runs[0]
        if "its noise follows from the record" in faults:
            return self._report(math.inf, {}, faults, n_runs=0)
        distance, threshold = widest.distances.max(), self._audit_threshold()
        if run.coarseness > _COARSEST or distance == 0:
            return self._report(0.0, {}, faults, threshold=threshold, n_runs=0)
        one, other = np.unravel_index(widest.distances.argmax(), widest.distances.shape)
        noised, levels = widest.noised, widest.levels
        n_pilot = min(_N_PILOT, math.ceil(_PILOT_SHARE * self._n_runs))
        found = _Noise(self._alpha, _N_EQUAL if run.coarseness < _FINE else n_pilot)
        pairs = self._draw_pairs(widest.sources[one], widest.sources[other], noised)
        for _, residual in islice(pairs, n_pilot):
            found.weigh(residual)
        for moved, residual in islice(pairs, self._n_runs):
            found.add(moved, residual)
        bound, shared = found.bound(), found.find_shared(run.coarseness)
        if len(shared):
            faults.add("numbers share their noise")
            apart = np.abs(levels[1:, shared] - levels[0, shared])
            if np.ptp(apart, axis=2).max() > 4 * run.coarseness:
                bound = math.inf  # their difference has none
        shares = np.square(widest.distances / distance)
        squares = np.multiply(bound**2, shares, where=shares > 0, out=np.zeros(shares.shape))
        rate = self._audit_rate(max(one, other))
        return self._report(bound, found.p_values(), faults, squares, rate, threshold)

    def _list_companies(self):
        """Yield who is there beside the record in question."""
        yield None
        if isinstance(self._mechanism, SampledMechanism):
            # What a record adds may follow from what was released of others.
            yield []
        if isinstance(self._mechanism, ClippedGradientMechanism):
            # A record alone adds a gradient, half of what it moves if it turns another one round.
            # Of made records the last are small, and turned round most easily.
            yield from ([position] for position in self._seat.candidates[-_N_COMPANIES:])

    def _draw_pairs(self, source, other, noised):
        """Yield the distance of neighbours, and the noise of one in turn, in stated deviations."""
        sources = source, other
        runs = [self._run(source, self._seed()) for source in sources]
        std = runs[0].std[noised]
        if not isinstance(self._mechanism, SampledMechanism) and len(runs[0].measured) == 1:
            moved = (runs[1].exact - runs[0].exact)[noised] / std
            noise = NoiseSource(self._seed())
            for taken, first in cycle(zip(sources, runs, strict=True)):
                run = self._run(taken, noise, measured=first.measured[0])
                yield moved, (run.noisy - first.exact)[noised] / std
        for turn in cycle((0, 1)):
            # Slots, directions and coins of both are the same, and so is what was released before.
            seed = self._seed()
            run = self._run(source, seed)
            runs = run, self._run(other, seed, run.told)
            moved, residual = runs[1].exact - run.exact, runs[turn].noisy - runs[turn].exact
            yield moved[noised] / std, residual[noised] / std

    def _compare(self, company):
        """Run the mechanism on all neighbours, with the same noise."""
        sources = [
            self._seat.fill(self._source, position, company=company)
            for position in [None, *self._seat.candidates]
        ]
        first = self._seed()
        absent = [self._run(sources[0], seed) for seed in [first, *self._seeds(_N_EQUAL - 1)]]
        runs = [absent[0], *(self._run(source, first, absent[0].told) for source in sources[1:])]
        if isinstance(self._base, ThresholdDpEvent):
            # What a record alone holds would be one more number: that is what δ' is for.
            same = [len(run.std) == len(runs[0].std) for run in runs]
            runs = [run if is_same else runs[0] for run, is_same in zip(runs, same, strict=True)]
        return _Neighbours(sources, runs, absent, self._relation)

    def _audit_rate(self, who):
        """Return how often a record is said to join, and what that is shown to be above."""
        if self._sampling == "none":
            return None
        position = self._seat.candidates[who - 1]
        alone, n_joined = self._seat.fill(self._source, position, company=[]), 0
        for seed in self._seeds(self._n_runs):
            measured = self._mechanism._measure(
                alone, self._event, self._relation, NoiseSource(seed)
            )
            n_joined += bool(np.any(measured.exact))
        return self._rate, share_below(n_joined, self._n_runs, self._alpha)

    def _audit_threshold(self):
        """Return the event's δ', and what it is shown to be above."""
        if not isinstance(self._base, ThresholdDpEvent):
            return None
        candidates = self._seat.candidates
        # The last one is a person with unlike rows.
        held = [*candidates, np.resize(candidates, len(self._seat.rows))]
        sources = [self._seat.fill(self._source, rows, company=[]) for rows in held]
        chances = [self._find_chance(source, 1.0) for source in sources]
        source = sources[int(np.argmax(chances))]
        first, noise = self._run(source, self._seed()), NoiseSource(self._seed())
        if not first.std.size:
            return self._base.delta, 0.0
        # Rounding to whole numbers adds a twelfth to the variance.
        std = np.sqrt(first.std**2 + 1 / 12)
        drawn = [
            (self._run(source, noise, measured=first.measured[0]).noisy - first.exact) / std
            for _ in range(-(-self._n_runs // std.size))
        ]
        least = deviation_below(np.ravel(drawn), self._alpha)
        return self._base.delta, self._find_chance(source, least)

    def _find_chance(self, source, deviation):
        """Return the probability that something is released of a record that is alone.

        Its noise has `deviation` of its stated deviations. Where none is needed, it counts as 1.
        """
        first = self._run(source, self._seed())

        def count_released(added):
            run = self._run(source, _Given(added), measured=first.measured[0])
            return len(list_numbers(run.result))

        std = first.std.max(initial=0.0)
        # Too little noise, and noise that is enough.
        least, enough = 0, math.ceil(_MOST_NOISE * std)
        while enough - least > 1:
            middle = (least + enough) // 2
            least, enough = (least, middle) if count_released(middle) else (middle, enough)
        if std == 0 or not (n_released := count_released(enough)):
            return 0.0
        chance = stats.norm.sf((enough - 0.5) / (std * deviation))
        return -math.expm1(n_released * math.log1p(-chance))


class _Given:
    """Stands in for a noise source that gives the same noise to all numbers."""

    def __init__(self, added):
        self._added = added

    def rounded_gaussian(self, scale):
        return np.full(scale.shape, self._added, dtype=np.int64)


class _Neighbours:
    """Runs on neighbours: with nobody in the seat, and with each of the candidates.

    Attributes
    ----------
    faults : list of str
        What was found that needs no statistics.
    noised : ndarray of bool
        Which numbers have noise before they are presented; others are not released.
    levels : ndarray of shape (n_neighbours, n_noised)
        Numbers before their noise, in its stated deviations.
    distances : ndarray of shape (n_neighbours, n_neighbours)
        Between levels; 0 for those that are no neighbours.
    """

    def __init__(self, sources, runs, absent, relation):
        self.sources, self.runs = sources, runs
        self.faults = []
        if runs[0].coarseness <= _COARSEST:  # else numbers are often equal
            self.faults += _find_bare(runs, absent)
        self.noised = runs[0].std > 0
        self.distances = np.zeros((len(runs), len(runs)))
        if any(not _has_noise_of(run, runs[0]) for run in runs):
            self.faults.append("its noise follows from the record")
            return
        std = runs[0].std[self.noised]
        self.levels = np.stack([run.exact[self.noised] / std for run in runs])
        self.distances = cdist(self.levels, self.levels)
        if relation == "zero_out":
            self.distances[1:, 1:] = 0.0


class _Noise:
    """What runs show of the noise, in its stated deviations."""

    def __init__(self, alpha, n_kept):
        self._alpha, self._n_kept = alpha, n_kept
        self._kept, self._n_weighed, self._weighed = [], 0, 0.0
        self._moves, self._along, self._lags, self._tested = [], [], None, []
        # For each neighbour: their runs take turns.
        self._squares = [0.0, 0.0]

    def weigh(self, residual):
        """Learn how large the noise of each number is, for the direction to look along."""
        self._n_weighed, self._weighed = self._n_weighed + 1, self._weighed + residual**2
        if len(self._kept) < self._n_kept:
            self._kept.append(residual)

    def add(self, moved, residual):
        if self._lags is None:
            self._lags = Lags(len(residual))
        with np.errstate(divide="ignore"):
            precision = np.where(self._weighed > 0, self._n_weighed / self._weighed, 0.0)
        length = np.sqrt(np.sum(precision * moved**2))
        self._squares[len(self._moves) % 2] += residual**2
        self._moves.append(length)
        self._along.append(0.0 if length == 0 else (precision * moved) @ residual / length)
        self._lags.add(residual)
        if len(self._tested) < 2 or len(self._tested) * len(residual) < _N_TESTED:
            self._tested.append(residual)

    def bound(self):
        """Return what μ is above."""
        above = deviation_above(self._along, self._alpha)
        moved = math.sqrt(mean_below(np.square(self._moves), self._alpha))
        return math.inf if above == 0 else moved / above

    def p_values(self):
        runs = Lags(len(self._along))
        runs.add(np.array(self._along))
        tested = [np.ravel(self._tested[turn::2])[:_N_TESTED] for turn in (0, 1)]
        along = [self._along[turn::2] for turn in (0, 1)]
        return {
            "normality": normality(standardize(*along), standardize(*tested)),
            "equal scale for both neighbours": equal_scale(self._squares, [*map(len, along)]),
            "independence of numbers": self._lags.p_value(),
            "independence of runs": runs.p_value(),
        }

    def find_shared(self, coarseness):
        """Return pairs of numbers that share their noise."""
        return find_equal(np.stack(self._kept), 2 * coarseness)


def _find_bare(runs, absent):
    """Say if there are numbers without noise that the record moves."""
    always, *others = (list_numbers(run.result) for run in absent)
    moved = [list_numbers(run.result) for run in runs]
    if any(len(numbers) != len(always) for numbers in (*others, *moved)):
        return
    bare = np.all([numbers == always for numbers in others], axis=0)
    if np.any(bare & np.any([numbers != always for numbers in moved], axis=0)):
        yield "numbers are released without noise"


def _has_noise_of(run, other):
    """Whether two runs measured as many numbers, with the same noise."""
    return np.array_equal(run.std, other.std) and all(
        one.scale == another.scale
        for one, another in zip(run.measured, other.measured, strict=True)
    )
