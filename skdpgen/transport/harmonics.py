# SPDX-License-Identifier: BSD-3-Clause
"""Trigonometric features of one-dimensional projections, bounded on each slice."""

import math
from copy import copy
from functools import cache
from itertools import pairwise

import torch

from .products import ExactMatrix

# Grid points per harmonic in the search for the largest distance.
_GRID = 1024

# Steps per turn to which angles are rounded: a power of 2, for a table of sines.
N_STEPS = 2**16


class SliceBasis:
    """Harmonics of the projections on k directions, with norm 1 on each slice.

    On slice j a row x has the angle a = π θ_j·x / r_j, and the values w_b cos(b a), w_b sin(b a)
    for b = 1, ..., B, with w_b² ∝ 1/b and Σ w_b² = 1. Sums of them over a sample are the empirical
    characteristic functions of its projections; low harmonics, which decide the large-scale shape
    of the one-dimensional distribution functions, have the larger weights.

    Parameters
    ----------
    directions : tensor of shape (n_features, k)
        θ, one direction per column.
    ranges : tensor of shape (k,) or float
        r: the projections' half-period; beyond it values repeat.
    n_harmonics : int
        B.

    Notes
    -----
    `angles` and `harmonics` give values to release: those of a row follow from that row alone, to
    the bit. Times the weights w_b, they have norm 1 on each slice but for 1e-6.
    `squared_distance`, for learning, computes as is fastest.
    """

    def __init__(self, directions: torch.Tensor, ranges: torch.Tensor, n_harmonics: int) -> None:
        if not 1 <= n_harmonics <= 1000:
            raise ValueError(f"n_harmonics must be in [1, 1000]; got {n_harmonics}.")
        self.frequencies = directions * (math.pi / ranges)
        self._turns = ExactMatrix(directions / (2 * ranges))
        self.weights = _weights(n_harmonics).to(self.frequencies)

    def to(self, device) -> "SliceBasis":
        """Move the basis to `device`, in place."""
        self.frequencies, self.weights = self.frequencies.to(device), self.weights.to(device)
        self._turns.to(device)
        return self

    @property
    def dtype(self) -> torch.dtype:
        return self.frequencies.dtype

    @property
    def n_projections(self) -> int:
        """Number of slices k; a row's values have norm √k."""
        return self.frequencies.shape[1]

    @property
    def n_values(self) -> int:
        """Number of values of a row: 2·B·k."""
        return 2 * len(self.weights) * self.n_projections

    @property
    def diameter(self) -> float:
        """Largest distance between the values of two rows on a slice; see `slice_diameter`."""
        return slice_diameter(len(self.weights))

    def angles(self, rows: torch.Tensor) -> torch.Tensor:
        """Return the angles of `rows` on each slice, rounded to whole steps, of shape (n, k).

        They are, to the bit, a function of each row alone: they do not depend on other rows, on the
        order of summation or on the machine.
        """
        turns = self._turns.times(rows)
        steps = turns.sub_(turns.round()).mul_(N_STEPS).round_()
        # NaN and infinities get angle 0, so that every row has finite values.
        return steps.nan_to_num_(0.0, 0.0, 0.0).int()

    def harmonics(self, angles: torch.Tensor) -> torch.Tensor:
        """Return cosines and sines of b times the `angles`, all or some of a row, (B, 2, n, k).

        Those of the first harmonic are looked up; the others follow by the addition theorem.
        Cosines and sines are off by 2^-31 each at most, together by e = 2^-30.5 as complex numbers.
        Their b-th power is off by (1 + e)^b - 1, and a complex product in doubles adds √5·2^-53 of
        its size [1]_: for b ≤ 1000 that is together below b·2^-30, times w_b. On a slice, all
        harmonics are off by 2.5e-7 at most.

        References
        ----------
        .. [1] Brent, Percival & Zimmermann, "Error bounds on complex floating-point
           multiplication", Mathematics of Computation 2007.
        """
        sines = _table_of_sines(angles.device)
        positions = (angles & (N_STEPS - 1)).flatten()
        values = sines.new_empty(len(self.weights), 2, *angles.shape)
        cos, sin = values[0]
        torch.index_select(sines, 0, positions, out=sin.view(-1))
        torch.index_select(sines, 0, positions.add_(N_STEPS // 4), out=cos.view(-1))
        product = torch.empty_like(cos)
        for (c, s), (next_c, next_s) in pairwise(values):
            torch.mul(c, cos, out=next_c).sub_(torch.mul(s, sin, out=product))
            torch.mul(s, cos, out=next_s).add_(torch.mul(c, sin, out=product))
        return values

    def subset(self, slices: torch.Tensor | slice) -> "SliceBasis":
        """Return the basis restricted to some slices, for learning only."""
        subset = copy(self)
        subset.frequencies = self.frequencies[:, slices]
        vars(subset).pop("_turns", None)
        return subset

    def squared_distance(
        self,
        rows: torch.Tensor,
        means: torch.Tensor,
        weights: torch.Tensor,
        *,
        unbiased: bool = True,
    ) -> torch.Tensor:
        """Estimate Σ_c weight_c ‖E φ(G_c) - mean_c‖² / k from a batch of each G_c, differentiably.

        Parameters
        ----------
        rows : tensor of shape (n_classes, m, n_features)
            m ≥ 2 rows of each class.
        means : tensor of shape (n_classes, B, 2, k)
            Mean values to match, noisy or not.
        weights : tensor of shape (n_classes,)
        unbiased : bool, default=True
            False: the rows are the whole of G_c, and the distance is exact.

        Returns
        -------
        tensor, 0-dimensional
            Unbiased for fixed `means`, hence not always positive. The batch's own mean in place
            of the expectation would add (1 - ‖E φ‖²/k) / m, and reward rows that are all alike.
            Since every ‖φ(x)‖² is k, it suffices to stretch ‖mean φ‖² by m/(m-1) and to subtract
            a constant.
        """
        excess = 1 / (rows.shape[1] - 1) if unbiased else 0.0
        return _SquaredDistance.apply(rows, means, weights, excess, self.frequencies, self.weights)


@cache
def _table_of_sines(device: torch.device) -> torch.Tensor:
    """Return the sines of all steps of five quarters of a turn.

    They are rounded to 30 binary digits, on which all implementations of the sine agree.
    """
    steps = torch.arange(N_STEPS * 5 // 4, dtype=torch.float64)
    sines = (steps * (2 * math.pi / N_STEPS)).sin().mul(2.0**30).round().div(2.0**30)
    return sines.to(device)


@cache
def slice_diameter(n_harmonics: int) -> float:
    """Return an upper bound on the distance between the values of two rows on a slice.

    For angles that differ by t it is √f(t), with f(t) = 4 Σ w_b² sin²(b t / 2) = 2 - 2 Σ w_b²
    cos(b t). A grid of step h has a point within h/2 of the place of the largest f, where the slope
    is 0. The second derivative is at most 2 Σ w_b² b², so that the grid's largest value is less by
    at most (h²/4) Σ w_b² b².

    It is 2 for one harmonic, where t is half a turn; with several they cannot all be opposite: it
    is 1.71 for three, 1.61 for six, and falls towards √2.
    """
    squares = torch.zeros(_GRID * n_harmonics, dtype=torch.float64)
    squares[1 : n_harmonics + 1] = _weights(n_harmonics).square()
    # The sums of cosines at all points of the grid.
    lowest = torch.fft.rfft(squares).real.min().item()
    step = 2 * math.pi / len(squares)
    slack = step**2 / 4 * (squares * torch.arange(len(squares)).square()).sum().item()
    return min(2.0, math.sqrt(2 - 2 * lowest + slack) * (1 + 1e-12))


@cache
def _weights(n_harmonics: int) -> torch.Tensor:
    """Return w_1, ..., w_B, in double precision."""
    inverse = torch.arange(1, n_harmonics + 1, dtype=torch.float64).reciprocal()
    return (inverse / inverse.sum()).sqrt()


class _SquaredDistance(torch.autograd.Function):
    """Squared distance and its gradient, by chunks of slices: memory does not grow with m·k·B.

    Harmonics follow by Chebyshev's recurrence, cos((b + 1) a) = 2 cos(a) cos(b a) - cos((b - 1) a),
    and the same with sines. Rounding of the angle moves the b-th by b times as much, at most.
    """

    # Slices per chunk: fewer take more calls, and more leave the processor's cache.
    chunk = 512

    @staticmethod
    def forward(ctx, rows, means, weights, excess, frequencies, harmonic_weights):
        n_classes, m, _ = rows.shape
        k, n_harmonics = frequencies.shape[1], len(harmonic_weights)
        flat = rows.reshape(n_classes * m, -1)
        targets = means.permute(1, 2, 0, 3)
        # The slope on an angle of a class is Σ_b cos(b a) (gain_b Σ sin - pull_b target of sines) -
        # sin(b a) (gain_b Σ cos - pull_b target of cosines).
        # Numbers from the CPU, and factors on the device: an accelerator would wait for the copies.
        numbers = _weights(n_harmonics).to(rows.dtype)
        pulls, on_device = (
            w * torch.arange(1, n_harmonics + 1, dtype=w.dtype, device=w.device) * (2 / (m * k))
            for w in (numbers, harmonic_weights)
        )
        gains = (pulls * numbers * ((1 + excess) / m)).tolist()
        pulled = targets * on_device[:, None, None, None]
        sums = torch.empty_like(pulled)
        gradient = torch.zeros_like(flat)
        for start in range(0, k, _SquaredDistance.chunk):
            chunk = slice(start, start + _SquaredDistance.chunk)
            slope = (flat @ frequencies[:, chunk]).view(n_classes, m, -1)
            values = torch.stack([slope.cos(), slope.sin()])
            before = torch.zeros_like(values)
            before[0] = 1
            twice = 2 * values[0]
            slope.zero_()
            for b, gain in enumerate(gains):
                total = sums[b, ..., chunk]
                torch.sum(values, 2, out=total)
                cos, sin = torch.sub(pulled[b, ..., chunk], total, alpha=gain).unsqueeze(2)
                slope.addcmul_(values[1], cos).addcmul_(values[0], sin, value=-1)
                if b + 1 < n_harmonics:
                    before, values = values, before.neg_().addcmul_(values, twice)
            gradient.addmm_(slope.view(n_classes * m, -1), frequencies[:, chunk].T)
        ctx.save_for_backward(gradient.view_as(rows) * weights[:, None, None])
        mean = sums * (harmonic_weights / m)[:, None, None, None]
        squares = ((1 + excess) * mean - 2 * targets).mul_(mean) + targets.square()
        return squares.sum((0, 1, 3)) @ weights / k - excess * weights.sum()

    @staticmethod
    def backward(ctx, grad_output):
        (gradient,) = ctx.saved_tensors
        return grad_output * gradient, None, None, None, None, None
