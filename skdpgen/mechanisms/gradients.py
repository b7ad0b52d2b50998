# SPDX-License-Identifier: BSD-3-Clause
"""Clipped gradients of functions of a random sample of the records.

The gradient has a fixed, public shape, such as that of a batch of generated rows, for any size of
the sample, and it is clipped *as a whole*. One record can change every row of it, through a
transport plan for instance, so that bounds on single rows do not bound the influence of a record.
"""

import math
from collections.abc import Sequence

import torch
from dp_accounting import GaussianDpEvent, NonPrivateDpEvent

from ..accounting.events import DiameterGaussianDpEvent, step_std
from ..data.record_functions import BatchFunction, check_function
from ..exceptions import PlanError
from .base import Measurement, NoisySum, check_radius, grid_scale, to_grid
from .sampled import SampledMechanism

# Finest grid, relative to the radius of the gradient; set by hand.
_BITS = 18


class ClippedGradientMechanism(SampledMechanism):
    """The gradient of a function of a sample of the records, clipped as a whole, with noise.

    Let f(S) be the clipped gradient for a sample S: ``‖f(S)‖ ≤ Δ``. f can be any function of S: it
    is no sum over records, since one record can change all of it. But any two of its values are at
    most 2Δ apart. Noise of standard deviation 2Δσ on it, for a Poisson sample of rate q, is a
    ``PoissonSampledDpEvent(q, DiameterGaussianDpEvent(σ))``.

    *zero_out.* Let the neighbours differ in record i, which is x or null, and condition on the
    coins of all others, which drew S. If x is null, ``f(S) + N`` is released, and otherwise its
    mixture with ``f(S + x) + N``, of weights 1-q and q. Both values lie in a ball of radius Δ and
    can be opposite to each other: ``‖f(S + x) - f(S)‖ ≤ 2Δ``. So for each S the two releases are,
    up to a shift, a rotation and parts that are the same noise in both, the pair ``N(0, 1)`` and
    ``(1-q) N(0, 1) + q N(h, 1)`` of a Poisson-sampled Gaussian mechanism, with h at most 2Δ over
    the noise's standard deviation; the pair with the largest h dominates the others. The coins have
    the same distribution for both neighbours, so δ(ε) is at most an average over S of values, none
    of which exceeds that of the one pair (joint convexity).

    *replace_one.* No two of ``f(S)``, ``f(S + x)`` and ``f(S + x')`` are further apart than 2Δ, and
    the two releases are mixtures of the first with one of the others, of weights 1-q and q. By
    advanced joint convexity δ(ε) is at most ``q·δ_Gauss(log(1 + (e^ε - 1)/q); 1/σ)`` for ε ≥ 0, the
    profile of a pair that dominates them all. It is not that of two records that add Δ each to a
    sum, which costs less: those are only Δ away from the sum without them.

    Parameters
    ----------
    function : BatchFunction
        ``function(rows, membership)`` returns the gradient, a tensor of shape `shape`, for slots
        with rows (n_slots, n_columns) in the unit ball and their classes (n_slots, n_classes). An
        empty slot holds zeros, and belongs to no class. The function is not called if no record was
        drawn: then the gradient is 0, as it is for a sample on which the function fails.
    shape : tuple of int
        Shape of the gradient.
    grad_clip : float
        The whole gradient is scaled down to at most this norm Δ, by one factor. A gradient that is
        not finite becomes 0.
    name : str, default="clipped gradient"
        Name of the release.

    References
    ----------
    Cao, Bie, Vahdat, Fidler & Kreis, "Don't Generate Me: Training Differentially Private
    Generative Models with Sinkhorn Divergence", NeurIPS 2021, Theorem 4.1; Balle, Barthe &
    Gaboardi, "Privacy Amplification by Subsampling", NeurIPS 2018.

    Examples
    --------
    >>> from skdpgen.privacy import BatchFunction, ClippedGradientMechanism
    >>> total = BatchFunction(lambda rows, membership: rows.sum(0))
    >>> ClippedGradientMechanism(total, (3,), grad_clip=0.5).sensitivity("zero_out")
    1.0
    """

    name = "clipped gradient"
    # Share of the bound that a check of random neighbours can expect: only opposite gradients reach
    # all of it.
    least_reach = 0.03

    def __init__(
        self,
        function: BatchFunction,
        shape: Sequence[int],
        grad_clip: float,
        name: str | None = None,
    ) -> None:
        check_function(function, BatchFunction, type(self).__name__)
        check_radius("grad_clip", grad_clip)
        self.function = function
        self.shape = tuple(shape)
        self.grad_clip = grad_clip
        if name is not None:
            self.name = name

    @staticmethod
    def sensitivity_of(grad_clip: float) -> float:
        """Return the diameter of the ball, for any function and relation."""
        return 2 * grad_clip

    def sensitivity(self, relation: str) -> float:
        """Return the sensitivity; see `Mechanism.sensitivity`."""
        return self.sensitivity_of(self.grad_clip)

    def _check_base(self, base, sampling):
        known = GaussianDpEvent if sampling == "none" else DiameterGaussianDpEvent
        if not isinstance(base, (known, NonPrivateDpEvent)):
            raise PlanError(
                f"{self.name!r} of {'all records' if sampling == 'none' else 'a sample'} is a "
                f"{known.__name__}; it is planned as {base}."
            )

    def query_batch(self, rows, membership, base, relation, noise):
        std = step_std(base, self.sensitivity(relation), relation)
        # Relative to the radius: gradients can be far smaller than 1.
        scale = grid_scale(std, _BITS - math.ceil(math.log2(self.grad_clip)))
        joined = membership.any(1, keepdim=True)
        gradient = torch.zeros(self.shape, dtype=torch.float64)
        if joined.any():
            # The record that fills empty slots must not reach the function.
            gradient = self.function.on(
                torch.where(joined, rows, 0.0), membership, shape=self.shape
            )
        exact = to_grid(clip_whole(gradient, self.grad_clip), scale).long().cpu().numpy()
        return Measurement(exact, scale, std)

    def postprocess(self, noisy, measured):
        return NoisySum(noisy, measured.std)


def clip_whole(values: torch.Tensor, radius: float) -> torch.Tensor:
    """Scale a tensor down to norm at most `radius`, by one factor; one that is not finite is 0."""
    if values.numel() == 0 or not torch.isfinite(values).all():
        return torch.zeros_like(values)
    # Scaled first, since squares of large numbers overflow.
    largest = values.abs().max().clamp(min=torch.finfo(values.dtype).tiny)
    norm = largest * torch.linalg.vector_norm(values / largest)
    return values * (radius / norm.clamp(min=radius))
