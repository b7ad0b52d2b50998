# SPDX-License-Identifier: BSD-3-Clause
"""Clipped gradients of random batches, as in the DP-Sinkhorn paper."""

import math
from dataclasses import dataclass

import numpy as np
from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent

from ..accounting.events import DiameterGaussianDpEvent
from ..accounting.plan import Plan, Terms
from ..checks import check_size, one_of, positive, whole
from ..mechanisms.gradients import ClippedGradientMechanism
from ..mechanisms.sums import ClassCountsMechanism
from ..quality import warn_of_absent
from .release import Release, within


@dataclass(frozen=True)
class GradientDefaults:
    """Constants of `SampledGradients`. Those without a source are set by hand."""

    # Share of ρ for the shares of the classes.
    counts_share: float = 0.01
    # Least signal-to-noise ratio of all gradients, and steps for each class, for useful results;
    # found on data of two to ten classes. With ten, accuracy is .37 after 1,500 steps on USPS, and
    # .45 after 7,000 on MNIST without components.
    least_signal: float = 0.45
    class_steps: int = 500
    # Records for one step, and the range of steps.
    records_per_step: int = 4
    steps: tuple[int, int] = (30, 15_000)
    # Ranges of batch sizes, of records and of generated rows.
    batch_sizes: tuple[int, int] = (10, 100)
    generated: tuple[int, int] = (2, 50)


DEFAULTS = GradientDefaults()


@dataclass(eq=False, repr=False)
class SampledGradients(Release):
    """Clipped gradients of a loss between generated rows and a random batch of rows, at each step.

    This is the release of the DP-Sinkhorn paper. The gradient is clipped as a whole: it is no sum
    over records, and a record can change it from any vector of norm Δ to any other, so that the
    sensitivity is 2Δ.

    Parameters
    ----------
    n_steps : int, default=None
        Private steps. None: n_samples / 4 within [30, 15000].
    batch_size : int, default=None
        Expected records a step (q is capped at 1). None: n_samples / 4 within [10, 100].
    grad_clip : float, default=0.1
        Radius Δ of the gradients. If it is less than their norms it only sets the scale, to which
        Adam is invariant.
    n_generated : int, default=None
        Size of the generated batch. None: `batch_size` within [2, 50].
    perturb : {"images", "parameters"}, default="images"
        Whether the gradient in the generated rows is released, or that of the whole loss in the
        network's weights.

    Examples
    --------
    >>> from skdpgen import DPSinkhornGenerator
    >>> from skdpgen.releases import SampledGradients
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

    name, learner = ClippedGradientMechanism.name, "gradients"
    n_components, scaling = 40, {"whiten": 0.0}

    def _check_params(self):
        super()._check_params()
        # Batch normalisation of one row would make it constant.
        if self.n_generated == 1:
            raise ValueError("n_generated must be at least 2, since batches are normalised.")

    def plan(self, terms: Terms, format) -> Plan:
        """Return the `Plan`; see `Release.plan`."""
        rate = self._count_rows(terms.n_samples) / terms.n_samples
        n_generated = self.count_generated(terms.n_samples)
        # Costs between generated rows and records, and between generated rows, are matrices.
        check_size("n_generated", n_generated, max(n_generated, self._count_rows(terms.n_samples)))
        if terms.n_columns is not None:
            check_size("n_generated", n_generated, terms.n_columns)

        def step(multiplier):
            if rate == 1:
                return GaussianDpEvent(multiplier)
            return PoissonSampledDpEvent(rate, DiameterGaussianDpEvent(multiplier))

        counts = {ClassCountsMechanism.name: DEFAULTS.counts_share}
        return terms.plan_steps(
            self.name,
            step,
            self.count_steps(terms.n_samples),
            shares=counts if terms.n_classes > 1 else {},
            sensitivity=self.sensitivity(terms.relation, terms.n_classes),
        )

    def sensitivity(self, relation: str, n_classes: int) -> float:
        """Return the sensitivity of a step; see `Release.sensitivity`."""
        return ClippedGradientMechanism.sensitivity_of(self.grad_clip)

    def _count(self, plan, terms):
        return {
            "n_steps": self.count_steps(terms.n_samples),
            "batch_size": self._count_rows(terms.n_samples),
            "n_generated": self.count_generated(terms.n_samples),
        }

    def min_samples(self, plan: Plan, terms: Terms, format) -> int | None:
        """Return the number of records at which the direction of gradients exceeds the noise.

        A gradient of norm Δ in n'·d numbers, each with noise of standard deviation σ, has over T
        steps a signal-to-noise ratio of √T·Δ / (σ√(n'd)), which grows with the number of records.
        Generated rows had not changed at ratios below .45. By default, the number of steps grows
        with that of records, and each class takes 500.
        """
        if terms.n_columns is None or not plan.sigma:
            return None
        n_samples, n_steps = terms.n_samples, self.count_steps(terms.n_samples)
        n_numbers = self.count_generated(n_samples) * terms.n_columns
        signal = math.sqrt(n_steps / n_numbers) * 2 * self.grad_clip / plan.sigma
        enough = 0 if self.n_steps else DEFAULTS.records_per_step * DEFAULTS.class_steps
        return math.ceil(max(DEFAULTS.least_signal * n_samples / signal, enough * terms.n_classes))

    def count_steps(self, n_samples: int) -> int:
        """Return the number of releases."""
        return self.n_steps or within(n_samples // DEFAULTS.records_per_step, DEFAULTS.steps)

    def count_generated(self, n_samples: int) -> int:
        """Return the number of generated rows in a step."""
        return self.n_generated or within(self._count_rows(n_samples), DEFAULTS.generated)

    def _count_rows(self, n_samples):
        return min(self.batch_size or within(n_samples // 4, DEFAULTS.batch_sizes), n_samples)

    def find_shares(self, curator) -> np.ndarray:
        """Release the shares of the classes, if there are several."""
        if curator.n_classes == 1:
            return np.ones(1)
        released, n_records = curator.release(ClassCountsMechanism()), curator.n_records
        counts, std = released.value, released.std * math.sqrt(curator.n_classes)
        warn_of_absent(counts.sum() / n_records, std / n_records)
        # Each class has at least one record here, so that all shares are positive.
        return np.maximum(counts, 1) / np.maximum(counts, 1).sum()
