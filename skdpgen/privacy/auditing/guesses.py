# SPDX-License-Identifier: BSD-3-Clause
"""Guesses of which records a whole fit had seen, and what the right ones among them show of ε."""

import math

import numpy as np
from dp_accounting import NonPrivateDpEvent
from scipy import special, stats
from sklearn.neighbors import KernelDensity, NearestNeighbors

from ...accounting.events import ThresholdDpEvent, split_repetition, split_sampling
from ..mechanisms.gradients import ClippedGradientMechanism
from ..mechanisms.sampled import SlicedRowsMechanism
from ..noise import NoiseSource
from .runs import Run, take_alone

# Beyond this ε nothing can be shown.
_MOST = 50.0


def bound_of_guesses(n_canaries, n_guesses, n_right, delta, alpha):
    """Return what ε is above, if so many guesses were right of whether a record was there.

    Parameters
    ----------
    n_canaries : int
        Records, each left out by a fair coin of its own.
    n_guesses, n_right : int
        Of how many of them it was guessed, and rightly.
    delta : float
    alpha : float
        Probability with which the bound is wrong.

    References
    ----------
    Steinke, Nasr & Jagielski, "Privacy Auditing with One (1) Training Run", NeurIPS 2023.
    """
    low, high = 0.0, _MOST
    if _chance(low, n_canaries, n_guesses, n_right, delta) > alpha:
        return 0.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        if _chance(middle, n_canaries, n_guesses, n_right, delta) > alpha:
            high = middle
        else:
            low = middle
    return low


def _chance(epsilon, n_canaries, n_guesses, n_right, delta):
    """Return with which probability, at most, so many guesses are right under (ε, δ)."""
    law = stats.binom(n_guesses, special.expit(epsilon))
    steps = np.arange(1, n_right + 1)
    # P[right in (v - i, v)] over i, of which δ can shift the largest.
    shifted = np.cumsum(law.pmf(n_right - steps)) / steps
    return min(1.0, law.sf(n_right - 1) + 2 * n_canaries * delta * np.max(shifted, initial=0.0))


class HeardAll(Exception):
    """Raised, with a certificate, after the last release: what is made of it would say no more."""


class Listener:
    """Listens to releases, and scores each record: how likely it is there, by all of them.

    Of sums of what records add, each by a coin, with Gaussian noise, the score is the best linear
    estimate of the coins. Of projected rows it is how much likelier they are with the record in
    one of the slots.

    Parameters
    ----------
    n_records : int
    seed : numpy.random.Generator
    """

    def __init__(self, n_records, seed):
        self._seed = seed
        self._n_heard = 0
        self._products = np.zeros((n_records, n_records))
        self._scores = np.zeros(n_records)

    def listen(self, curator, mechanism, release):
        """Release, and take notice."""
        planned = dict(curator.plan.releases).get(mechanism.name)
        heard = _Heard(mechanism)
        result = release(heard)
        event, _ = split_repetition(planned)
        base, rate, _ = split_sampling(event)
        unheard = NonPrivateDpEvent, ThresholdDpEvent
        if not isinstance(base, unheard) and not isinstance(mechanism, ClippedGradientMechanism):
            self._note(curator._source, mechanism, base, curator.plan.relation, rate, heard.run_)
        self._n_heard += 1
        if self._n_heard == sum(split_repetition(event)[1] for event in curator.plan.events):
            raise HeardAll(curator.certificate())
        return result

    def _note(self, source, mechanism, base, relation, rate, run):
        if isinstance(mechanism, SlicedRowsMechanism):
            self._note_rows(source, mechanism, rate, run)
            return
        seed = int(self._seed.integers(2**63))
        added = np.stack(
            [
                Run(
                    mechanism,
                    take_alone(source, position),
                    base,
                    relation,
                    NoiseSource(seed),
                    told=run.told,
                ).exact
                for position in range(len(self._scores))
            ]
        )
        noised = run.std > 0
        added = rate * added[:, noised] / run.std[noised]
        heard = run.noisy[noised] / run.std[noised]
        heard -= added.sum(0) / 2
        variance = _find_variance(added, heard)
        self._products += added @ added.T / variance
        self._scores += added @ heard / variance

    def _note_rows(self, source, mechanism, rate, run):
        rows, membership = source.take(np.arange(len(self._scores)))
        if mechanism.encode is not None:
            rows = mechanism.encode.on(rows, width=mechanism.n_columns)
        # Of each record the projections in the block of its class, without nulls.
        joined = mechanism.join(rows.double(), membership).numpy()
        projected = joined @ run.result.directions.numpy()
        values, std = run.result.values, run.result.std
        labels = membership.argmax(1).numpy()
        along = np.einsum("nk,nks->ns", projected, values[labels]) / std**2
        losses = along - np.square(projected).sum(1, keepdims=True) / (2 * std**2)
        share = rate / values.shape[2]
        self._scores += np.logaddexp(math.log1p(-share), math.log(share) + losses).sum(1)

    def score(self):
        # Coins, of -1/2 and 1/2, have a variance of 1/4.
        return np.linalg.solve(self._products + 4 * np.eye(len(self._scores)), self._scores)


def _find_variance(added, heard):
    """Return the variance of noise by what no records explain, in place of what is stated."""
    n_left = len(heard) - len(added)
    if n_left < len(added):
        return 1.0
    coins = np.linalg.lstsq(added.T, heard, rcond=None)[0]
    return max(1e-9, np.sum((heard - coins @ added) ** 2) / n_left)


class _Heard:
    """Stands in for a mechanism, and keeps its run."""

    def __init__(self, mechanism):
        self._mechanism = mechanism
        self.name, self.check = mechanism.name, mechanism.check
        self.is_sum = mechanism.is_sum

    def run(self, source, event, *, relation, noise):
        self.run_ = Run(self._mechanism, source, event, relation, noise)
        return self.run_.result


def score_by_distance(rows, synthetic, reference):
    """Score rows by how near the nearest synthetic one is, and how far others are (the ratio)."""
    near, far = (
        NearestNeighbors(n_neighbors=1).fit(others).kneighbors(rows)[0][:, 0]
        for others in (synthetic, reference)
    )
    return np.log(far + 1e-12) - np.log(near + 1e-12)


def score_by_density(rows, synthetic, reference):
    """Score rows by the density of synthetic ones there, over that of others.

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


def guess(scores, is_there, n_guesses):
    """Guess that those of the highest scores are there, and of the lowest not; count right ones."""
    order = np.argsort(scores)
    out, inside = order[: n_guesses // 2], order[len(order) - (n_guesses - n_guesses // 2) :]
    return int(np.sum(~is_there[out]) + np.sum(is_there[inside]))
