# SPDX-License-Identifier: BSD-3-Clause
"""Membership inference: scores of canaries by all releases of a fit, or by synthetic rows."""

import math

import numpy as np
from dp_accounting import NonPrivateDpEvent
from sklearn.neighbors import KernelDensity, NearestNeighbors

from ..accounting.events import ThresholdDpEvent, split_repetition, split_sampling
from ..exceptions import EndOfFit
from ..mechanisms.gradients import ClippedGradientMechanism
from ..mechanisms.noise import NoiseSource
from ..mechanisms.sampled import SlicedRowsMechanism
from .runs import RecordedMechanism, measure_given, select_record


class AllReleased(EndOfFit):
    """Raised with the certificate after the last release: post-processing adds no information."""


class ReleaseScorer:
    """Log-likelihood ratios that a canary is included rather than not, over all releases.

    Canaries are the first records. Other canaries are approximated as Gaussian, and all other
    records are absent. The score of a lone canary is the exact ratio, which is the most powerful
    test.
    """

    def __init__(self, n_canaries: int, rng: np.random.Generator) -> None:
        self._n, self._rng = n_canaries, rng
        self._n_releases = 0
        # Over releases of all records: inner products of canaries with each other, and with the
        # noisy values.
        self._products, self._agreement = np.zeros((n_canaries, n_canaries)), np.zeros(n_canaries)
        self._scores = np.zeros(n_canaries)

    def watch(self, curator, mechanism, release):
        """Release, and add the release to the scores."""
        planned = dict(curator.plan.releases).get(mechanism.name)
        recorded = _RecordedSample(mechanism)
        result = release(recorded)
        base, rate, _ = split_sampling(split_repetition(planned)[0])
        # If gradients are clipped as a whole, the contributions of canaries are not additive.
        is_whole = isinstance(mechanism, ClippedGradientMechanism) and self._n > 1
        if not isinstance(base, NonPrivateDpEvent | ThresholdDpEvent) and not is_whole:
            add = self._add_rows if isinstance(mechanism, SlicedRowsMechanism) else self._add_sum
            add(curator._source, mechanism, base, curator.plan.relation, rate, recorded)
        self._n_releases += 1
        if self._n_releases == sum(split_repetition(event)[1] for event in curator.plan.events):
            raise AllReleased(curator.certificate())
        return result

    def score(self) -> np.ndarray:
        """Return the scores of all canaries, of shape (n_canaries,)."""
        return self._scores + _log_ratios(self._products, self._agreement, 0.5)

    def _add_sum(self, source, mechanism, base, relation, rate, recorded):
        # One seed for all: draws that a measurement makes must be the same for each canary.
        run, seed = recorded.recorded, int(self._rng.integers(2**63))
        added = np.stack(
            [
                measure_given(run.released, mechanism, alone, base, relation, NoiseSource(seed))
                for alone in (select_record(source, position) for position in range(self._n))
            ]
        )
        # Numbers without noise have no likelihood ratio.
        noised = run.std > 0
        added = added[:, noised] / run.std[noised]
        agreement = added @ (run.noisy[noised] / run.std[noised])
        if rate == 1:
            self._products += added @ added.T
            self._agreement += agreement
        else:
            ratios = _log_ratios(added @ added.T, agreement, rate / 2)
            # A mixture: with probability 1 - rate the canary was not drawn, and the release says
            # nothing.
            self._scores += np.logaddexp(math.log1p(-rate), math.log(rate) + ratios)

    def _add_rows(self, source, mechanism, base, relation, rate, recorded):
        rows, membership = source.take(np.arange(self._n))
        if mechanism.encode is not None:
            rows = mechanism.encode.on(rows, width=mechanism.n_columns)
        # The projections of each canary, in the block of its class.
        joined = mechanism.join(rows.double(), membership).cpu().numpy()
        result = recorded.recorded.result
        projected = joined @ result.directions.cpu().numpy()
        labels = membership.argmax(1).cpu().numpy()
        along = np.einsum("nk,nks->ns", projected, result.values[labels]) / result.std**2
        ratios = along - np.square(projected).sum(1, keepdims=True) / (2 * result.std**2)
        n_slots = ratios.shape[1]
        if self._n == 1:
            # The attacker may know the slot of the canary, or a random one if it was not drawn:
            # the accounting does not rely on slots being secret.
            slot = recorded.draws.slot_of(0)
            ratios = ratios[:, [int(self._rng.integers(n_slots)) if slot is None else slot]]
        # Each slot is equally likely to hold the canary.
        share = rate / ratios.shape[1]
        rest = math.log1p(-share) if share < 1 else -math.inf
        self._scores += np.logaddexp(rest, math.log(share) + ratios).sum(1)


def _log_ratios(products: np.ndarray, agreement: np.ndarray, mean: float) -> np.ndarray:
    """Return the log-likelihood ratio of 1 to 0 for each of some binary variables.

    The vectors of all variables that are 1 are added up, with noise of standard deviation 1. All
    variables but the one in question are approximated as Gaussian, with the prior probability
    `mean` to be 1. `products` are the inner products of the vectors, and `agreement` those with the
    noisy sum.
    """
    variance = mean * (1 - mean)
    # A Gaussian in place of each binary variable: exact sums over 2^n canaries would take too long.
    covariance = np.linalg.inv(products + np.eye(len(products)) / variance)
    means = mean + covariance @ (agreement - mean * products.sum(1))
    # The posterior without the Gaussian prior of the variable itself.
    precision = 1 / np.diag(covariance) - 1 / variance
    return means / np.diag(covariance) - mean / variance - precision / 2


class _RecordedSample(RecordedMechanism):
    """Substitute of a mechanism that also keeps the draws of its noise source."""

    def run(self, source, event, *, relation, noise):
        self.draws = _RecordedDraws(noise)
        return super().run(source, event, relation=relation, noise=self.draws)


class _RecordedDraws:
    """Noise source that keeps the drawn samples and their slots."""

    def __init__(self, noise) -> None:
        self._noise = noise
        self._drawn: list[np.ndarray] = []

    def __getattr__(self, name):
        return getattr(self._noise, name)

    def poisson_sample(self, n_records, rate):
        return self._keep(self._noise.poisson_sample(n_records, rate))

    def fixed_sample(self, n_records, size):
        return self._keep(self._noise.fixed_sample(n_records, size))

    def slot_of(self, position: int) -> int | None:
        """Return the slot of a record, or None if it has none."""
        *samples, slots = self._drawn
        drawn = samples[0] if samples else np.arange(len(slots))
        if len(slots) < len(drawn):
            return None  # more records were drawn than there are slots
        matches = slots[drawn == position]
        return int(matches[0]) if len(matches) else None

    def _keep(self, drawn):
        self._drawn.append(drawn)
        return drawn


def score_by_distance(rows: np.ndarray, synthetic: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return log ratios of the distances to the nearest reference and nearest synthetic row."""
    near, far = (
        NearestNeighbors(n_neighbors=1).fit(others).kneighbors(rows)[0][:, 0]
        for others in (synthetic, reference)
    )
    # The constant keeps copies, at a distance of 0, finite.
    return np.log(far + 1e-12) - np.log(near + 1e-12)


def score_by_density(rows: np.ndarray, synthetic: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Return log ratios of the densities of synthetic and reference rows at each row.

    References
    ----------
    van Breugel, Sun, Qian & van der Schaar, "Membership Inference Attacks against Synthetic Data
    through Overfitting Detection" (DOMIAS), AISTATS 2023.
    """
    inside, outside = (
        KernelDensity(bandwidth="scott").fit(others).score_samples(rows)
        for others in (synthetic, reference)
    )
    return inside - outside


SCORES = {"distance": score_by_distance, "density": score_by_density}


def count_right_guesses(scores: np.ndarray, is_included: np.ndarray, n_guesses: int) -> int:
    """Guess the highest scores to be included and the lowest not; return the right guesses."""
    order = np.argsort(scores)
    out, inside = order[: n_guesses // 2], order[len(order) - (n_guesses - n_guesses // 2) :]
    return int(np.sum(~is_included[out]) + np.sum(is_included[inside]))
