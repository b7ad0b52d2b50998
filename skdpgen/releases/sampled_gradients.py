# SPDX-License-Identifier: BSD-3-Clause
"""The release of the DP-Sinkhorn paper: clipped gradients of random batches."""

import math

import numpy as np
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent

from ..accounting.events import DiameterGaussianDpEvent
from ..mechanisms.gradients import ClippedGradientMechanism
from ..mechanisms.sums import ClassCountsMechanism
from ..params import parameters
from ..quality import warn_of_absent
from ..validation import check_size, one_of, positive, whole
from .release import Release

# Share of the budget, of Σ s⁻², for how frequent the classes are, beside gradients.
_COUNTS_SHARE = 0.01
# Deviations of noise by which gradients are to show.
_SHOWN = 0.45
# It takes so many steps to train a network.
_FEWEST_STEPS = 500


@parameters
class SampledGradients(Release):
    """Clipped gradients of a loss between generated rows and a random batch of rows, at each step.

    This is what the DP-Sinkhorn paper releases. The gradient is clipped as a whole: it is no sum
    over records, and a record can turn it from any vector of norm Δ into any other, so that the
    sensitivity is 2Δ.

    Parameters
    ----------
    n_steps : int, default=None
        Private steps. None: n_samples / 4 within [30, 15000].
    batch_size : int, default=None
        Expected records a step (q is capped at 1). None: n_samples / 4 within [10, 100].
    grad_clip : float, default=0.1
        Radius Δ of the gradients. Where it is less than their norms it only sets the scale, and
        Adam does not look at the scale.
    n_generated : int, default=None
        Size of the generated batch. None: `batch_size` within [2, 50].
    perturb : {"images", "parameters"}, default="images"
        The gradient in the generated rows, or that of the whole loss in the network's weights.

    Examples
    --------
    >>> from skdpgen import DPSinkhornGenerator, SampledGradients
    >>> DPSinkhornGenerator(release=SampledGradients(n_steps=40_000, batch_size=50))
    DPSinkhornGenerator(release=SampledGradients(batch_size=50, n_steps=40000))
    """

    n_steps: int | None = None
    batch_size: int | None = None
    grad_clip: float = 0.1
    n_generated: int | None = None
    perturb: str = "images"

    _checks = {
        "n_steps": whole(optional=True),
        "batch_size": whole(optional=True),
        "grad_clip": positive(),
        "n_generated": whole(optional=True),
        "perturb": one_of("images", "parameters"),
    }

    name = ClippedGradientMechanism.name
    n_components, scaling = 40, {"whiten": 0.0}

    def _check_params(self):
        super()._check_params()
        if self.n_generated == 1:
            raise ValueError("n_generated must be at least 2: batches are normalised.")

    def plan(self, terms, format):
        """Return the `Plan`, from public numbers only."""
        rate = self._count_rows(terms.n_samples) / terms.n_samples
        n_generated = self.count_generated(terms.n_samples)
        check_size("n_generated", n_generated, max(n_generated, self._count_rows(terms.n_samples)))
        if terms.n_columns is not None:
            check_size("n_generated", n_generated, terms.n_columns)

        def step(multiplier):
            if rate == 1:
                return GaussianDpEvent(multiplier)
            return PoissonSampledDpEvent(rate, DiameterGaussianDpEvent(multiplier))

        return terms.plan_steps(
            self.name,
            step,
            self.count_steps(terms.n_samples),
            shares={ClassCountsMechanism.name: _COUNTS_SHARE} if terms.n_classes > 1 else {},
            sensitivity=self.sensitivity(terms.relation, terms.n_classes),
        )

    def sensitivity(self, relation, n_classes):
        return ClippedGradientMechanism.sensitivity_of(self.grad_clip)

    def _count(self, plan, terms):
        return {
            "n_steps": self.count_steps(terms.n_samples),
            "batch_size": self._count_rows(terms.n_samples),
            "n_generated": self.count_generated(terms.n_samples),
        }

    def min_samples(self, plan, terms, format):
        """Return how many records it takes for the direction of gradients to show.

        A gradient of norm Δ in n'·d numbers, each with noise of deviation σ, shows over T steps by
        √T·Δ / (σ√(n'd)) deviations, which grows with the number of records. Found on data of two
        to ten classes: below .45, what was generated had not left where it started from. Nor had it
        in 250 steps, whatever the noise.
        """
        if terms.n_columns is None or plan.sigma == 0:
            return None
        enough = terms.n_samples * _FEWEST_STEPS / self.count_steps(terms.n_samples)
        n_numbers = self.count_generated(terms.n_samples) * terms.n_columns
        steps = math.sqrt(self.count_steps(terms.n_samples) / n_numbers)
        shown = steps * 2 * self.grad_clip / plan.sigma
        return math.ceil(max(_SHOWN * terms.n_samples / shown, enough))

    def count_steps(self, n_samples):
        """Return the number of releases."""
        return self.n_steps or min(15_000, max(30, n_samples // 4))

    def count_generated(self, n_samples):
        """Return how many rows a step generates."""
        return self.n_generated or max(2, min(50, self._count_rows(n_samples)))

    def _count_rows(self, n_samples):
        return min(self.batch_size or max(10, min(100, n_samples // 4)), n_samples)

    def find_shares(self, curator):
        """Release how frequent the classes are, if there are several."""
        if curator.n_classes == 1:
            return np.ones(1)
        released, n_records = curator.release(ClassCountsMechanism()), curator.n_records
        counts, std = released.value, released.std * math.sqrt(curator.n_classes)
        warn_of_absent(counts.sum() / n_records, std / n_records)
        # Each is taken to have one record at least.
        return np.maximum(counts, 1) / np.maximum(counts, 1).sum()
