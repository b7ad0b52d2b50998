# SPDX-License-Identifier: BSD-3-Clause
"""Optimal transport on slices: Wasserstein distances between one-dimensional projections.

In one dimension the optimal plan pairs sorted samples, so a distance costs a sort. The sliced
distances average it over projections on random directions. Slices are laid out (k, n), one per
row, which sorts along contiguous memory.
"""

import functools
import math
from numbers import Integral

import numpy as np
import torch
from torch.utils.checkpoint import checkpoint

from ..checks import check_number
from .directions import random_directions

# Projected values, k * (n + m), held at once; beyond it slices are taken in chunks. A GPU holds one
# for each so many bytes that are free, about twice what the backward pass keeps.
CHUNK_ELEMENTS, CHUNK_BYTES = 2**24, 256


def full_precision(function):
    """Make a function compute in the dtype of its arguments, under torch.autocast, too."""

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        with torch.autocast("cpu", enabled=False), torch.autocast("cuda", enabled=False):
            return function(*args, **kwargs)

    return wrapped


def _as_float(values, name, is_checked=True):
    """Non-empty floating tensor, finite if checked: all but float32 becomes float64."""
    if not isinstance(values, torch.Tensor):
        try:
            values = np.asarray(values)
            dtype = values.dtype if values.dtype in (np.float32, np.float64) else np.float64
            values = torch.from_numpy(np.array(values, dtype=dtype, order="C"))
        except (TypeError, ValueError):  # their messages quote the data
            raise ValueError(f"{name} is not an array of numbers; encode it first.") from None
    if values.dtype not in (torch.float32, torch.float64):
        values = values.to(torch.float64)
    if values.ndim == 0 or values.numel() == 0:
        raise ValueError(f"{name} must be a non-empty array, got shape {tuple(values.shape)}.")
    if is_checked:
        _check_finite(values, name)
    return values


def _check_finite(values, name):
    if not values.isfinite().all():
        raise ValueError(f"{name} holds NaN or infinite values; impute or drop them first.")


def _as_weights(weights, name, samples):
    """Checked weights, in float64: next to 1 a float32 level would lose the small ones."""
    if weights is None:
        return None
    weights = _as_float(weights, name).to(samples.device, torch.float64)
    n = samples.shape[-1]
    if weights.shape[-1] != n:
        raise ValueError(f"{name} has {weights.shape[-1]} weights for {n} samples; give one each.")
    if (weights < 0).any():
        raise ValueError(f"{name} holds negative weights; weights must be at least 0.")
    if (weights.sum(-1) == 0).any():
        raise ValueError(f"{name} sums to 0; at least one weight must be positive.")
    if not weights.sum(-1).isfinite().all():
        raise ValueError(f"{name} sums to more than float64 holds; divide it by one number.")
    return weights


def _check_order(p):
    check_number("p", p)
    if p < 1:
        raise ValueError(f"p must be a finite number of at least 1, got {p}.")


def _generator(random_state):
    """Fresh torch generator, so that no global one is read or moved."""
    generator = torch.Generator()
    if random_state is None:
        generator.seed()
    elif isinstance(random_state, np.random.RandomState):
        generator.manual_seed(int(random_state.randint(2**31 - 1)))
    elif isinstance(random_state, Integral) and -(2**63) <= random_state < 2**64:
        generator.manual_seed(int(random_state))
    else:
        raise ValueError(
            "random_state must be None, an int of 64 bits or a numpy RandomState; "
            f"got {type(random_state).__name__}."
        )
    return generator


def _sort(x, with_order=False):
    """Sorted last axis, and the permutation that sorts it (None where nobody needs it)."""
    # On one thread numpy's vectorised sorts (AVX2 and later) take an eighth to a half of the
    # time of torch's, which catch up once they can spread the rows over several threads.
    if x.device.type != "cpu" or torch.get_num_threads() > 4:
        return x.sort(-1)
    values = x.detach().numpy()
    if not (with_order or x.requires_grad):
        return torch.from_numpy(np.sort(values, axis=-1)), None
    order = torch.from_numpy(np.argsort(values, axis=-1))
    return x.gather(-1, order), order


def _quantiles(x, weights):
    """Steps of the quantile function: sorted values, and the levels in (0, 1] where they end."""
    if weights is None:
        n = x.shape[-1]
        levels = torch.arange(1, n + 1, dtype=torch.float64, device=x.device) / n
        return _sort(x)[0], levels
    values, order = _sort(x, with_order=True)
    levels = weights.expand_as(x).gather(-1, order).cumsum(-1)
    return values, levels / levels[..., -1:]


def _gaps(x, y, a, b):
    """Distances of paired quantiles along the last axis, and the mass of each pair."""
    if a is None and b is None and x.shape[-1] == y.shape[-1]:
        return _sort(x)[0] - _sort(y)[0], None

    x, u = _quantiles(x, a)
    y, v = _quantiles(y, b)
    if u.ndim != v.ndim:  # one side is uniform: the same levels in every slice
        u, v = u.expand(x.shape), v.expand(y.shape)
    # Between two neighbours of the merged levels both quantile functions are constant.
    levels = _sort(torch.cat([u, v], -1))[0]
    widths = levels.diff(dim=-1, prepend=torch.zeros_like(levels[..., :1]))

    def at_levels(values, ends):
        steps = torch.searchsorted(ends.detach().contiguous(), levels.detach())
        steps = steps.clamp_(max=values.shape[-1] - 1)  # rounding of a parallel cumsum
        return values.gather(-1, steps.expand(*values.shape[:-1], -1))

    return at_levels(x, u) - at_levels(y, v), widths.to(x.dtype)


def _transport_cost(gaps, widths, p):
    """W_p^p of what `_gaps` returns."""
    costs = gaps.square() if p == 2 else gaps.abs().pow(p)
    return costs.mean(-1) if widths is None else (widths * costs).sum(-1)


@full_precision
def wasserstein_1d(x, y, *, a=None, b=None, p: float = 2):
    """Wasserstein cost between one-dimensional samples, **to the p-th power**.

    ``W_p^p = ∫₀¹ |F⁻¹(q) - G⁻¹(q)|^p dq``, where F⁻¹ and G⁻¹ are the quantile functions
    [1]_ (Remark 2.30). It is exact for any sizes and weights, and differentiable in ``x``, ``y``
    and the weights.

    Parameters
    ----------
    x : tensor or array-like of shape (..., n)
        Samples of the first side; leading axes are separate problems, and broadcast.
    y : tensor or array-like of shape (..., m)
        Samples of the second side.
    a : tensor or array-like of shape (n,) or (..., n), optional
        Non-negative weights of ``x``, normalised to sum to 1; None is uniform.
    b : tensor or array-like of shape (m,) or (..., m), optional
        Weights of ``y``, likewise.
    p : float, default=2
        Order, at least 1.

    Returns
    -------
    cost : tensor of shape (...)
        W_p^p; take the power ``1 / p`` for a distance.

    Raises
    ------
    ValueError
        For p < 1, empty or non-finite samples, leading axes that do not broadcast, weights that
        are negative, sum to 0 or are not one per sample, and costs that exceed the dtype's range.

    References
    ----------
    .. [1] G. Peyré, M. Cuturi, "Computational Optimal Transport", 2019, section 2.6.

    Examples
    --------
    >>> import torch
    >>> wasserstein_1d(torch.tensor([0.0, 1.0]), torch.tensor([3.0, 2.0]))
    tensor(4.)
    >>> wasserstein_1d(torch.tensor([0.0, 1.0]), torch.tensor([1.0]), a=[1, 3], p=1)
    tensor(0.2500)
    """
    _check_order(p)
    is_weighted = a is not None or b is not None
    x, y = _as_float(x, "x", is_weighted), _as_float(y, "y", is_weighted)
    dtype = torch.promote_types(x.dtype, y.dtype)
    x, y = x.to(dtype), y.to(x.device, dtype)
    a, b = _as_weights(a, "a", x), _as_weights(b, "b", y)
    try:
        batch = np.broadcast_shapes(*(t.shape[:-1] for t in (x, y, a, b) if t is not None))
    except ValueError:
        raise ValueError("x, y, a and b have leading axes that do not broadcast.") from None
    gaps, widths = _gaps(x.expand(*batch, -1), y.expand(*batch, -1), a, b)
    cost = _transport_cost(gaps, widths, p)
    if not cost.isfinite().all():
        _check_finite(x, "x")
        _check_finite(y, "y")
        raise ValueError(
            f"x and y are too far apart: their distance to the power p = {p} leaves the range of "
            f"{str(dtype).removeprefix('torch.')}. Divide both by the same number."
        )
    return cost


def _sliced(X, Y, a, b, n_projections, p, projections, random_state, sigma):
    _check_order(p)
    as_tensor = any(isinstance(part, torch.Tensor) for part in (X, Y, a, b))
    device = next((Z.device for Z in (X, Y) if isinstance(Z, torch.Tensor)), "cpu")
    is_weighted = a is not None or b is not None
    X, Y = _as_float(X, "X", is_weighted), _as_float(Y, "Y", is_weighted)
    if X.ndim != 2 or Y.ndim != 2 or X.shape[1] != Y.shape[1]:
        raise ValueError(
            "X and Y must be 2-dimensional with the same number of features, "
            f"got shapes {tuple(X.shape)} and {tuple(Y.shape)}."
        )
    dtype = torch.promote_types(X.dtype, Y.dtype)
    X, Y = X.to(device, dtype), Y.to(device, dtype)
    a, b = _as_weights(a, "a", X.T), _as_weights(b, "b", Y.T)
    for name, weights in (("a", a), ("b", b)):
        if weights is not None and weights.ndim != 1:
            raise ValueError(f"{name} must be 1-dimensional, got {weights.ndim} dimensions.")

    generator = _generator(random_state)
    d = X.shape[1]
    if projections is None:
        projections = random_directions(
            d, n_projections, generator=generator, dtype=dtype, device=device
        )
    else:
        projections = _as_float(projections, "projections", is_weighted).to(device, dtype)
        if projections.ndim != 2 or projections.shape[0] != d:
            raise ValueError(
                f"projections must have one row for each of the {d} features, "
                f"got shape {tuple(projections.shape)}."
            )

    most = CHUNK_ELEMENTS
    if X.device.type == "cuda" and not sigma:  # noise is drawn by chunks
        most = max(most, torch.cuda.mem_get_info(X.device)[0] // CHUNK_BYTES)
    chunks = projections.split(max(1, most // (len(X) + len(Y))), dim=1)
    seeds = torch.randint(2**62, (len(chunks),), generator=generator).tolist()

    def find_gaps(directions, seed, unit):
        x, y = directions.T @ (X / unit).T, directions.T @ (Y / unit).T
        if sigma:
            # Seeded here, so that a recomputation under checkpoint sees the same noise.
            noise = torch.Generator().manual_seed(seed)
            x, y = (
                z + sigma / unit * torch.randn(z.shape, generator=noise, dtype=dtype).to(device)
                for z in (x, y)
            )
        return _gaps(x, y, a, b)

    def mean_cost(unit, scale):
        """Mean cost of the rows, if distances are in multiples of `scale · unit`."""

        def cost(directions, seed):
            gaps, widths = find_gaps(directions, seed, unit)
            return _transport_cost(gaps if scale == 1 else gaps / scale, widths, p).sum()

        if len(chunks) == 1:
            total = cost(projections, *seeds)
        else:  # nothing of size k * n is kept for the backward pass: it computes each chunk again
            total = sum(
                checkpoint(cost, chunk, seed, use_reentrant=False, preserve_rng_state=False)
                for chunk, seed in zip(chunks, seeds, strict=True)
            )
        return total / projections.shape[1]

    mean, unit, scale = mean_cost(1.0, 1.0), 1.0, 1.0
    # Powers of gaps leave the range of the dtype where the distance does not.
    smallest = torch.finfo(dtype).tiny / torch.finfo(dtype).eps
    # Otherwise no other number is waited for.
    if not smallest <= mean.item() < math.inf:
        for Z, name in ((X, "X"), (Y, "Y"), (projections, "projections")):
            _check_finite(Z, name)
        largest = max(*(Z.detach().abs().max().item() for Z in (X, Y)), sigma)
        # The power of 2 below it: products with it are exact.
        unit = 2.0 ** (math.frexp(largest)[1] - 1)
        with torch.no_grad():
            gaps = (find_gaps(*chunk, unit)[0] for chunk in zip(chunks, seeds, strict=True))
            scale = max(part.abs().max().item() for part in gaps)
        if scale > 0:
            mean = mean_cost(unit, scale)
    # The root has an infinite slope at 0, where it gets the gradient 0.
    root = torch.where(mean > 0, torch.where(mean > 0, mean, 1).pow(1 / p), mean)
    distance = root * scale * unit
    return distance if as_tensor else distance.item()


@full_precision
def sliced_wasserstein_distance(
    X,
    Y,
    *,
    a=None,
    b=None,
    n_projections: int = 100,
    p: float = 2,
    projections=None,
    random_state=None,
):
    """Sliced Wasserstein distance: the p-th root of the mean W_p^p over projections [1]_.

    Beyond ``CHUNK_ELEMENTS`` projected values, or what the free memory of a GPU holds, the slices
    are taken in chunks; the backward pass then computes each chunk again instead of keeping it.

    Parameters
    ----------
    X : tensor or array-like of shape (n, d)
        Samples of the first side; its device, and the wider of the two dtypes, are used.
        Integers are taken as float64.
    Y : tensor or array-like of shape (m, d)
        Samples of the second side.
    a, b : tensor or array-like of shape (n,) and (m,), optional
        Non-negative weights, normalised to sum to 1; None is uniform.
    n_projections : int, default=100
        Number of random directions, in orthonormal blocks (see `random_directions`).
    p : float, default=2
        Order, at least 1.
    projections : tensor or array-like of shape (d, k), optional
        Directions to use as they are, instead of ``n_projections`` random ones.
    random_state : None, int or numpy RandomState, optional
        Seed of the directions; global generators are neither read nor moved.

    Returns
    -------
    distance : 0-d tensor, or float
        Differentiable tensor if samples or weights are one, else a float. At distance 0 the
        gradient is 0.

    Raises
    ------
    ValueError
        For p < 1, n_projections < 1, features that differ in number, projections with a wrong
        number of rows, samples that are empty or not finite, and invalid weights.

    References
    ----------
    .. [1] N. Bonneel, J. Rabin, G. Peyré, H. Pfister, "Sliced and Radon Wasserstein barycenters
       of measures", JMIV 51 (2015).

    Examples
    --------
    >>> X = [[0.0, 0.0], [1.0, 2.0], [2.0, 1.0]]
    >>> Y = [[3.0, 4.0], [4.0, 6.0], [5.0, 5.0]]  # X moved by a vector of norm 5
    >>> round(sliced_wasserstein_distance(X, Y, random_state=0), 4)  # 5 / sqrt(2)
    3.5355
    """
    return _sliced(X, Y, a, b, n_projections, p, projections, random_state, sigma=0)


@full_precision
def smoothed_sliced_wasserstein_distance(
    X,
    Y,
    *,
    sigma: float,
    a=None,
    b=None,
    n_projections: int = 100,
    p: float = 2,
    projections=None,
    random_state=None,
):
    """Gaussian-smoothed sliced Wasserstein distance [1]_ (Algorithm 1).

    Independent N(0, sigma²) noise is added to every projected sample of both sides before the
    sliced distance is taken. This is the estimator only: it neither bounds the samples nor
    accounts for privacy, and its noise is drawn from an ordinary, predictable generator.

    Parameters
    ----------
    X : tensor or array-like of shape (n, d)
        Samples of the first side.
    Y : tensor or array-like of shape (m, d)
        Samples of the second side.
    sigma : float
        Standard deviation of the noise; 0 gives `sliced_wasserstein_distance`.
    a, b, n_projections, p, projections
        As in `sliced_wasserstein_distance`.
    random_state : None, int or numpy RandomState, optional
        Seed of the directions and of the noise.

    Returns
    -------
    distance : 0-d tensor, or float
        As in `sliced_wasserstein_distance`. With sigma > 0 it is not 0 at ``X = Y``: the two
        sides have their own noise.

    Raises
    ------
    ValueError
        For sigma < 0, and as in `sliced_wasserstein_distance`.

    References
    ----------
    .. [1] A. Rakotomamonjy, L. Ralaivola, "Differentially private sliced Wasserstein distance",
       ICML 2021.

    Examples
    --------
    >>> X = [[0.0, 0.0], [1.0, 2.0], [2.0, 1.0]]
    >>> smoothed_sliced_wasserstein_distance(X, X, sigma=0, random_state=0)
    0.0
    >>> smoothed_sliced_wasserstein_distance(X, X, sigma=1, random_state=0) > 0
    True
    """
    check_number("sigma", sigma, zero=True, most=math.inf)
    return _sliced(X, Y, a, b, n_projections, p, projections, random_state, sigma)
