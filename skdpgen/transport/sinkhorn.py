# SPDX-License-Identifier: BSD-3-Clause
"""Entropic optimal transport between weighted points.

The plan of a cost C (n × m) at regularisation reg is the minimiser over plans π with marginals
a and b of ``⟨π, C⟩ + reg · KL(π | a ⊗ b)``. It is ``π = a b exp((f + g - C) / reg)``, where the
potentials f and g are found by Sinkhorn's alternate scalings of a kernel.
"""

import math
import warnings

import numpy as np
import torch
from sklearn.exceptions import ConvergenceWarning

from ..checks import check_number
from .slices import _as_float, _as_weights, full_precision

# Scalings stay within exp(± this) of 1: beyond it, kernel entries that underflow could matter.
SAFE_LOG = {torch.float32: 30.0, torch.float64: 200.0}
# Stands in for zero weights during iterations: far below any tolerance; the plan has exact zeros.
LEAST_WEIGHT = 1e-20
# If the range of costs exceeds this multiple of reg, larger values of reg are solved first, each a
# quarter of the one before, to this marginal error.
COST_RANGE, COARSE_TOL = 50, 1e-3
# Newton steps change the logarithms of scalings by at most this.
LONGEST_STEP = 5.0
# Costs up to which an accelerator's problems are solved on the CPU, where launches of kernels would
# take longer than arithmetic; measured on an H200, where 300 × 300 take a third of the time.
SMALL = 2**17


def _kernel(C: torch.Tensor, g: torch.Tensor, reg) -> tuple[torch.Tensor, torch.Tensor]:
    """``exp((g - C - top) / reg)``, with the ``top`` of each row that makes its maximum 1."""
    Z = g.mT - C
    # The largest entry of each row is 1: the others may underflow without harm.
    top = Z.amax(-1, keepdim=True)
    return Z.sub_(top).div_(reg).exp_(), top


def _transform(C, g, reg, b):
    """Potential of the other side: one update of Sinkhorn in the log domain."""
    K, top = _kernel(C, g, reg)
    return -top - reg * (K @ b).log()


def _newton_direction(K, KT, u, w, a, b, t, residual, n_iter):
    """Ascent direction of the dual in log(w), by conjugate gradients, and the steps it took.

    The Hessian is ``diag(πᵀ1) - πᵀ diag(1/a) π``; a step costs two products, as does a Sinkhorn
    iteration, which is the gradient step preconditioned by the diagonal. Where the direction
    leaves a box the search ends: it follows flat directions, far along which the dual is not
    quadratic.
    """
    xp = torch if isinstance(K, torch.Tensor) else np
    diagonal, bw, auu = b * t, b * w, a * u * u
    z = residual / diagonal
    d, p, rho = 0 * z, z, (residual * z).sum(-2, keepdims=True)
    goal, resolution = 0.01 * rho, xp.finfo(K.dtype).eps
    for step in range(n_iter):
        Dp = diagonal * p
        Hp = Dp - bw * (KT @ (auu * (K @ (bw * p))))
        curvature = (p * Hp).sum(-2, keepdims=True)
        active = (rho > goal) & (curvature > resolution * (p * Dp).sum(-2, keepdims=True))
        active = active & (xp.amax(abs(d), -2, keepdims=True) < LONGEST_STEP)
        if not active.any():
            n_iter = step + 1
            break
        length = xp.where(active, rho / curvature, 0 * rho)
        d, residual = d + length * p, residual - length * Hp
        z = residual / diagonal
        rho, last = (residual * z).sum(-2, keepdims=True), rho
        p = z + xp.where(active, rho / last, 0 * rho) * p
    return d * (LONGEST_STEP / xp.amax(abs(d), -2, keepdims=True).clip(LONGEST_STEP)), n_iter


def _scale(K, a, b, n_iter, tol, limit):
    """Scalings u, w of a plan ``a u K b w`` with exact rows, its error on columns, steps left.

    Three Sinkhorn iterations and a Newton step take turns. No steps are left at convergence; some
    are where the scalings came to the limit of what the kernel can hold.
    """
    xp = torch if isinstance(K, torch.Tensor) else np
    KT = K.swapaxes(-2, -1)
    w = safe = xp.ones_like(b)
    while True:
        for _ in range(3):
            w = 1 / (KT @ (a / (K @ (b * w))))
        u = 1 / (K @ (b * w))
        t = w * (KT @ (a * u))  # marginal over b
        residual = b * (1 - t)
        error = abs(residual).sum(-2, keepdims=True)
        # The three iterations above, and the one that gives the error.
        n_iter -= 4
        # Beyond the limit the kernel may have lost entries: the caller absorbs the scalings first.
        if not (abs(xp.log(w)).max() <= limit and xp.isfinite(error).all()):
            w = w if xp.isfinite(xp.log(w)).all() else safe
            return 1 / (K @ (b * w)), w, math.inf * error, n_iter
        going = error > tol
        if n_iter <= 0 or not going.any():
            return u, w, error, 0
        safe = w

        # Only problems of the batch that have not converged move.
        d, steps = _newton_direction(K, KT, u, w, a, b, t, residual * going, n_iter)
        slope = (residual * d).sum(-2, keepdims=True)
        length = xp.ones_like(slope)
        for _ in range(5):  # back off from points far beyond the maximum of the (concave) dual
            trial = w * xp.exp(length * d)
            t = trial * (KT @ (a / (K @ (b * trial))))
            steps += 1
            ahead = (b * (1 - t) * d).sum(-2, keepdims=True)
            beyond = ahead < -0.9 * slope
            if not beyond.any():
                break
            length = length * xp.where(beyond, (slope / (slope - ahead)).clip(0.1), 1 + 0 * slope)
        w = xp.where(beyond, w, trial)
        n_iter -= steps


def _solve(C, reg, a, b, n_iter, tol):
    """Potentials and plan of checked problems, C (B, n, m), a (B, n, 1) and b (B, m, 1)."""
    dtype, eps = C.dtype, torch.finfo(C.dtype).eps
    a_, b_ = a.clamp_min(LEAST_WEIGHT), b.clamp_min(LEAST_WEIGHT)
    low, high = C.amin((-2, -1), keepdim=True), C.amax((-2, -1), keepdim=True)
    # Within the resolution of the dtype next to the costs, beyond which the plan is the same.
    size = torch.maximum(-low, high).clamp_min(torch.finfo(dtype).tiny / eps**2)
    reg = torch.full_like(size, reg, dtype=torch.float64)
    reg = reg.clamp(8 * eps * size.double(), size.double() / eps).to(dtype)
    coarse, regs = (high - low) / COST_RANGE, [reg]
    g = torch.zeros_like(b)
    while (coarse > 2 * regs[0]).any():
        regs.insert(0, 4 * regs[0])

    def array(x):  # numpy's products of a matrix and a vector take about half the time of torch's
        return x.numpy() if x.device.type == "cpu" else x

    for reg in regs:
        last, left = reg is regs[-1], n_iter
        while True:
            K, top = _kernel(C, g, reg)
            with np.errstate(all="ignore"):
                u, w, error, left = _scale(
                    *map(array, (K, a_, b_)), left, tol if last else COARSE_TOL, SAFE_LOG[dtype]
                )
            u, w = torch.as_tensor(u), torch.as_tensor(w)
            g = g + reg * w.log()
            if left <= 0:
                break
            # Two updates in the log domain, exact for any range, before the kernel is built again.
            g = _transform(C.mT, _transform(C, g, reg, b_), reg, a_)
            left -= 2
    if not (error <= tol).all():
        warnings.warn(
            f"Sinkhorn did not reach a marginal error of tol={tol} in n_iter={n_iter} iterations; "
            "raise reg, n_iter or tol.",
            ConvergenceWarning,
            stacklevel=5,
        )
    # The last kernel becomes the plan in place: it is the largest array here.
    return reg * u.log() - top, g, K.mul_(a * u).mul_((b * w).mT)


def as_pair(X, Y, *weights):
    """Two samples, checked, of one dtype and device; and whether any argument was a tensor."""
    as_tensor = any(isinstance(part, torch.Tensor) for part in (X, Y, *weights))
    device = next((Z.device for Z in (X, Y) if isinstance(Z, torch.Tensor)), "cpu")
    X, Y = _as_float(X, "X"), _as_float(Y, "Y")
    if min(X.ndim, Y.ndim) < 2 or X.shape[-1] != Y.shape[-1]:
        raise ValueError(
            "X and Y must have rows of the same number of features, "
            f"got shapes {tuple(X.shape)} and {tuple(Y.shape)}."
        )
    dtype = torch.promote_types(X.dtype, Y.dtype)
    return X.to(device, dtype), Y.to(device, dtype), as_tensor


def _shares(cost, a, b):
    """Weights of a problem, (..., n) and (..., m), that sum to 1, and their total (..., 1)."""
    a, b = _as_weights(a, "a", cost.mT), _as_weights(b, "b", cost)
    given = next((w for w in (a, b) if w is not None), None)
    total = 1.0 if given is None else given.sum(-1, keepdim=True)
    # 1e-5: totals of float32 weights differ by their rounding.
    if a is not None and b is not None and (total / b.sum(-1, keepdim=True) - 1).abs().max() > 1e-5:
        raise ValueError("a and b have different totals; scale them to the same one.")

    def share(weights, name, n):
        if weights is None:
            return cost.new_full((*cost.shape[:-2], n), 1 / n)
        try:
            weights = weights.expand(*cost.shape[:-2], n)
        except RuntimeError:
            raise ValueError(f"{name} has leading axes that do not fit those of cost.") from None
        return (weights / weights.sum(-1, keepdim=True)).to(cost.dtype)

    n, m = cost.shape[-2:]
    return share(a, "a", n), share(b, "b", m), total


def transport(cost, reg, a, b, n_iter, tol):
    """Return the plan and the dual objective of a problem that is checked first.

    The objective alone has a gradient, in the weights: the potentials, by the envelope theorem.
    """
    if cost.ndim < 2:
        raise ValueError(f"cost must have at least 2 dimensions, got shape {tuple(cost.shape)}.")
    check_number("reg", reg, most=math.inf)
    reg = float(reg)
    check_number("n_iter", n_iter, whole=True)
    check_number("tol", tol)
    cost = cost.detach()
    a, b, total = _shares(cost, a, b)
    batch, (n, m) = cost.shape[:-2], cost.shape[-2:]
    columns = (weights.detach().reshape(-1, weights.shape[-1], 1) for weights in (a, b))
    device = "cpu" if cost.numel() <= SMALL else cost.device
    C, *columns = (part.to(device) for part in (cost.reshape(-1, n, m), *columns))
    f, g, plan = (part.to(cost.device) for part in _solve(C, reg, *columns, n_iter, tol))
    f, g, plan = f.view(*batch, n), g.view(*batch, m), plan.view(*batch, n, m)
    objective = ((a * f).sum(-1, keepdim=True) + (b * g).sum(-1, keepdim=True)) * total
    if isinstance(total, torch.Tensor):
        plan = plan * total.detach()[..., None].to(plan)
    return plan, objective[..., 0].to(plan)


@full_precision
def sinkhorn_plan(cost, reg: float, *, a=None, b=None, n_iter: int = 1000, tol: float = 1e-6):
    """Entropic optimal transport plan by Sinkhorn's algorithm [1]_, with Newton steps.

    Scalings of a kernel are iterated, which costs products of a matrix and a vector only; they are
    absorbed into potentials in the log domain [2]_ before they leave the range of the dtype. Small
    regularisations are reached over larger ones. In between, Newton steps on the dual [3]_, solved
    by conjugate gradients with the same products, take over where Sinkhorn's iterations are slow.

    Parameters
    ----------
    cost : tensor or array-like of shape (..., n, m)
        Costs; leading axes are separate problems. float32 and float64 are kept.
    reg : float
        Regularisation, positive, in the units of the cost: the factor of ``KL(π | a ⊗ b)``.
    a : tensor or array-like of shape (n,) or (..., n), optional
        Non-negative weights of the rows; None is uniform.
    b : tensor or array-like of shape (m,) or (..., m), optional
        Weights of the columns, of the same total as ``a``; the plan has that total, or 1.
    n_iter : int, default=1000
        About the most iterations, of two products of the kernel and a vector each, at ``reg`` and
        at each larger one before it.
    tol : float, default=1e-6
        Iterations end where the plan's marginals differ from the weights by at most this share
        of the total, summed over rows or columns.

    Returns
    -------
    plan : tensor or array of shape (..., n, m)
        An array for an array of costs, a tensor for a tensor; without gradient.

    Raises
    ------
    ValueError
        For reg <= 0, costs that are not finite, and weights that are negative, sum to 0, are not
        one per row or column, or have different totals.

    Warns
    -----
    ConvergenceWarning
        If ``tol`` was not reached; the plan is then as near as ``n_iter`` iterations came.

    Notes
    -----
    A ``reg`` below the rounding of the costs, 8 eps max|C|, is taken as that. Rows are exact up to
    rounding; the error is in the columns.

    References
    ----------
    .. [1] M. Cuturi, "Sinkhorn distances: lightspeed computation of optimal transport",
       NeurIPS 2013.
    .. [2] B. Schmitzer, "Stabilized sparse scaling algorithms for entropy regularized transport
       problems", SIAM Journal on Scientific Computing 41 (2019).
    .. [3] C. Brauer, C. Clason, D. Lorenz, B. Wirth, "A Sinkhorn-Newton method for entropic
       optimal transport", 2017.

    Examples
    --------
    >>> import numpy as np
    >>> sinkhorn_plan(np.array([[0.0, 1.0], [1.0, 0.0]]), 0.1).round(3)
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    checked = _as_float(cost, "cost")
    plan, _ = transport(checked, reg, a, b, n_iter, tol)
    return plan if isinstance(cost, torch.Tensor) else plan.numpy()
