# SPDX-License-Identifier: BSD-3-Clause
"""Guesses of which records a whole fit had seen, by releases or by samples."""

import math

import numpy as np
from dp_accounting import NonPrivateDpEvent
from sklearn.neighbors import KernelDensity, NearestNeighbors

from ..accounting.events import ThresholdDpEvent, split_repetition, split_sampling
from ..mechanisms.gradients import ClippedGradientMechanism
from ..mechanisms.noise import NoiseSource
from ..mechanisms.sampled import SlicedRowsMechanism
from .runs import Run, measure_after, take_alone


class HeardAll(Exception):
    """Raised, with a certificate, after the last release: what is made of it would say no more."""


class Listener:
    """Listens to releases, and scores canaries: how much likelier it is, by all, that one is there.

    Other canaries than the one in question count as Gaussian, and all other records as absent. So
    the score of a lone canary is the log of the likelihood ratio, and no test is better.

    Parameters
    ----------
    n_canaries : int
        They are the first records.
    seed : numpy.random.Generator
    """

    def __init__(self, n_canaries, seed):
        self._n, self._seed = n_canaries, seed
        self._n_heard = 0
        # Of releases of all records together: how canaries overlap, and agree with what is heard.
        self._products, self._agreement = np.zeros((n_canaries, n_canaries)), np.zeros(n_canaries)
        self._scores = np.zeros(n_canaries)

    def listen(self, curator, mechanism, release):
        """Release, and take notice."""
        planned = dict(curator.plan.releases).get(mechanism.name)
        heard = _Heard(mechanism)
        result = release(heard)
        base, rate, _ = split_sampling(split_repetition(planned)[0])
        # Of what is clipped as a whole, canaries do not add up.
        is_whole = isinstance(mechanism, ClippedGradientMechanism) and self._n > 1
        if not isinstance(base, NonPrivateDpEvent | ThresholdDpEvent) and not is_whole:
            note = self._note_rows if isinstance(mechanism, SlicedRowsMechanism) else self._note
            note(curator._source, mechanism, base, curator.plan.relation, rate, heard)
        self._n_heard += 1
        if self._n_heard == sum(split_repetition(event)[1] for event in curator.plan.events):
            raise HeardAll(curator.certificate())
        return result

    def _note(self, source, mechanism, base, relation, rate, heard):
        run, seed = heard.run_, int(self._seed.integers(2**63))
        added = np.stack(
            [
                measure_after(run.told, mechanism, alone, base, relation, NoiseSource(seed))
                for alone in (take_alone(source, position) for position in range(self._n))
            ]
        )
        noised = run.std > 0
        added = added[:, noised] / run.std[noised]
        agreement = added @ (run.noisy[noised] / run.std[noised])
        if rate == 1:
            self._products += added @ added.T
            self._agreement += agreement
        else:
            losses = _find_losses(added @ added.T, agreement, rate / 2)
            self._scores += np.logaddexp(math.log1p(-rate), math.log(rate) + losses)

    def _note_rows(self, source, mechanism, base, relation, rate, heard):
        rows, membership = source.take(np.arange(self._n))
        if mechanism.encode is not None:
            rows = mechanism.encode.on(rows, width=mechanism.n_columns)
        # Of each canary the projections in the block of its class, without nulls.
        joined = mechanism.join(rows.double(), membership).numpy()
        result = heard.run_.result
        projected = joined @ result.directions.numpy()
        labels = membership.argmax(1).numpy()
        along = np.einsum("nk,nks->ns", projected, result.values[labels]) / result.std**2
        losses = along - np.square(projected).sum(1, keepdims=True) / (2 * result.std**2)
        n_slots = losses.shape[1]
        if self._n == 1:
            # Told is the slot that it was put in or, if it was not drawn, any: what a release
            # costs is found as if slots were no secret.
            slot = heard.draws.slot_of(0)
            losses = losses[:, [int(self._seed.integers(n_slots)) if slot is None else slot]]
        share = rate / losses.shape[1]
        rest = math.log1p(-share) if share < 1 else -math.inf
        self._scores += np.logaddexp(rest, math.log(share) + losses).sum(1)

    def score(self):
        return self._scores + _find_losses(self._products, self._agreement, 0.5)


def _find_losses(products, agreement, mean):
    """Return how much likelier each of some variables is to be 1 than 0, as the log of the ratio.

    They are 0 or 1, have the same mean, and vectors are added up of those that are 1, with noise of
    deviation 1. All but the one in question are taken for Gaussian.

    Parameters
    ----------
    products : ndarray of shape (n, n)
        Of the vectors.
    agreement : ndarray of shape (n,)
        Their products with the noisy sum.
    mean : float
    """
    variance = mean * (1 - mean)
    covariance = np.linalg.inv(products + np.eye(len(products)) / variance)
    means = mean + covariance @ (agreement - mean * products.sum(1))
    # Without what is known of it beforehand.
    precision = 1 / np.diag(covariance) - 1 / variance
    return means / np.diag(covariance) - mean / variance - precision / 2


class _Heard:
    """Stands in for a mechanism, and keeps its run."""

    def __init__(self, mechanism):
        self._mechanism = mechanism
        self.name, self.check = mechanism.name, mechanism.check
        self.is_sum = mechanism.is_sum

    def run(self, source, event, *, relation, noise):
        self.draws = _Draws(noise)
        self.run_ = Run(self._mechanism, source, event, relation, self.draws)
        return self.run_.result


class _Draws:
    """Stands in for a noise source, and keeps who was drawn, and put where."""

    def __init__(self, noise):
        self._noise, self._drawn = noise, []

    def __getattr__(self, name):
        return getattr(self._noise, name)

    def poisson_sample(self, n_records, rate):
        return self._keep(self._noise.poisson_sample(n_records, rate))

    def fixed_sample(self, n_records, size):
        return self._keep(self._noise.fixed_sample(n_records, size))

    def slot_of(self, position):
        """Return the slot of a record, or None for one that has none."""
        *drawn, slots = self._drawn
        drawn = drawn[0] if drawn else np.arange(len(slots))
        if len(slots) < len(drawn):
            return None  # more were drawn than there is room for
        found = slots[drawn == position]
        return int(found[0]) if len(found) else None

    def _keep(self, drawn):
        self._drawn.append(drawn)
        return drawn


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
