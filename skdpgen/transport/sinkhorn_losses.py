# SPDX-License-Identifier: BSD-3-Clause
"""Entropic transport losses between samples, and the gradient of the DP-Sinkhorn loss."""

import math

import torch
from sklearn.exceptions import ConvergenceWarning

from .._process.muting import muted
from ..checks import check_number, flag
from .sinkhorn import as_pair, sinkhorn_plan, transport
from .slices import full_precision

# Marginal error and iterations of the plans of gradients, whose clipping noise is far larger.
_TOL = 1e-2
_N_ITER = 100
# Elements of the differences x - y of pairs of rows that are held at once.
_CHUNK = 2**21


def _pairwise_cost(X, Y, p, l1_weight):
    check_number("l1_weight", l1_weight, zero=True, most=math.inf)
    check_number("p", p)
    if p not in (1, 2):
        raise ValueError(f"p must be 1 or 2, got {p!r}.")
    if p == 1:
        if l1_weight:
            raise ValueError("l1_weight is a share of L1 next to p=2; leave it at 0 with p=1.")
        return torch.cdist(X, Y, p=1)
    # Distances do not depend on the origin, but their rounding does.
    origin = Y.detach().mean(-2, keepdim=True)
    A, B = X - origin, Y - origin
    cost = A.square().sum(-1)[..., None] + B.square().sum(-1)[..., None, :] - 2 * (A @ B.mT)
    cost = cost.clamp_min(0)
    _check_range(cost, A, B, origin)
    return cost + float(l1_weight) * torch.cdist(X, Y, p=1) if l1_weight else cost


def _check_range(cost, A, B, origin):
    """Raise a ValueError if squares of differences leave the range of the dtype."""
    dtype = torch.finfo(cost.dtype)
    size, largest = max(A.detach().abs().max(), B.detach().abs().max()), cost.detach().max()
    # Equal rows differ by the rounding of their mean.
    differ = size > 8 * dtype.eps * origin.abs().max()
    if not largest < math.inf or (differ and largest < dtype.tiny / dtype.eps):
        what = "small" if largest < 1 else "large"
        raise ValueError(
            f"The squares of the differences between X and Y are too {what} for {dtype.dtype}: "
            "multiply both by one number, and reg by its square."
        )


@full_precision
def pairwise_cost(X, Y, *, p: int = 2, l1_weight: float = 0.0):
    """Costs between rows: ‖x - y‖₁ for p=1, ‖x - y‖₂² + l1_weight ‖x - y‖₁ for p=2.

    The mixture is the cost of DP-Sinkhorn [1]_ (section 4.4). Nothing of size n m d is held:
    squared distances come from the product of X and Y.

    Parameters
    ----------
    X : tensor or array-like of shape (..., n, d)
    Y : tensor or array-like of shape (..., m, d)
    p : {1, 2}, default=2
    l1_weight : float, default=0
        Weight m of the L1 part; 0 with p=1.

    Returns
    -------
    cost : tensor or array of shape (..., n, m)
        Differentiable in tensors ``X`` and ``Y``.

    Raises
    ------
    ValueError
        For other ``p``, negative ``l1_weight``, samples that are empty, not finite or of
        different numbers of features, and squared distances that exceed the dtype's range.

    References
    ----------
    .. [1] T. Cao, A. Bie, A. Vahdat, S. Fidler, K. Kreis, "Don't generate me: training
       differentially private generative models with Sinkhorn divergence", NeurIPS 2021.

    Examples
    --------
    >>> pairwise_cost([[0.0, 0.0]], [[3.0, 4.0]])
    array([[25.]])
    >>> pairwise_cost([[0.0, 0.0]], [[3.0, 4.0]], l1_weight=2)
    array([[39.]])
    """
    X, Y, as_tensor = as_pair(X, Y)
    cost = _pairwise_cost(X, Y, p, l1_weight)
    return cost if as_tensor else cost.numpy()


def _loss(X, Y, reg, p, l1_weight, a, b, n_iter, tol, entropy):
    cost = _pairwise_cost(X, Y, p, l1_weight)
    plan, objective = transport(cost, reg, a, b, n_iter, tol)
    value = (plan * cost).sum((-2, -1))
    # The plan is fixed (envelope theorem): costs have the gradient of the value, weights that of
    # the objective.
    return value + (objective - (value if entropy else objective).detach())


def _plain(value, as_tensor):
    return value if as_tensor else value.numpy() if value.ndim else value.item()


@full_precision
def entropic_wasserstein(
    X,
    Y,
    *,
    reg: float,
    p: int = 2,
    l1_weight: float = 0.0,
    a=None,
    b=None,
    n_iter: int = 1000,
    tol: float = 1e-6,
    entropy: bool = False,
):
    """Cost of the entropic optimal transport plan π between samples, ⟨π, C⟩.

    Its gradient in samples is that of ⟨π, C⟩ at the fixed plan, and in weights the potentials. By
    the envelope theorem both are the exact gradient of the entropic objective
    ``min ⟨π, C⟩ + reg · KL(π | a ⊗ b)``, the loss of entropic Wasserstein GANs: with ``p`` and
    ``reg = p σ^p`` it removes in expectation the Laplace (p=1, scale σ) or Gaussian (p=2) noise of
    privatised data [1]_ (Algorithm 1).

    Parameters
    ----------
    X : tensor or array-like of shape (..., n, d)
    Y : tensor or array-like of shape (..., m, d)
    reg : float
        Regularisation, positive, in the units of the cost.
    p, l1_weight
        The cost, as in `pairwise_cost`.
    a, b, n_iter, tol
        Weights and iterations, as in `sinkhorn_plan`.
    entropy : bool, default=False
        True: the value is the entropic objective; the gradient is the same. Next to it the value
        has the rounding of ``reg``, which matters where ``reg`` is far above the costs.

    Returns
    -------
    value : tensor of shape (...), differentiable in tensors; a float for arrays

    Raises
    ------
    ValueError
        As in `pairwise_cost` and `sinkhorn_plan`.

    References
    ----------
    .. [1] D. Reshetova, W.-N. Chen, A. Özgür, "Training generative models from privatized data",
       2023.

    Examples
    --------
    >>> X, Y = [[0.0], [1.0]], [[1.0], [2.0]]
    >>> round(entropic_wasserstein(X, Y, reg=0.01), 6)
    1.0
    """
    flag("entropy", entropy)
    X, Y, as_tensor = as_pair(X, Y, a, b)
    return _plain(_loss(X, Y, reg, p, l1_weight, a, b, n_iter, tol, entropy), as_tensor)


@full_precision
def sinkhorn_divergence(
    X,
    Y,
    *,
    reg: float,
    p: int = 2,
    l1_weight: float = 0.0,
    a=None,
    b=None,
    n_iter: int = 1000,
    tol: float = 1e-6,
):
    """Sinkhorn divergence, ``W(X, Y) - W(X, X) / 2 - W(Y, Y) / 2`` of entropic objectives W [1]_.

    It is 0 between equal samples, at least 0, and exact in its gradients, by the envelope theorem.

    The convention is that of [1]_, as in GeomLoss: W is ``min ⟨π, C⟩ + reg · KL(π | a ⊗ b)``, with
    GeomLoss's costs and ``reg`` (``blur^p``) doubled for ``p=2``, and L1 for ``p=1``. POT's
    ``empirical_sinkhorn_divergence`` has ⟨π, C⟩ in place of W, at the same plans: the same
    differences of `entropic_wasserstein`.

    Parameters
    ----------
    X, Y, reg, p, l1_weight, a, b, n_iter, tol
        As in `entropic_wasserstein`.

    Returns
    -------
    value : tensor of shape (...), differentiable in tensors; a float for arrays

    Raises
    ------
    ValueError
        As in `entropic_wasserstein`.

    References
    ----------
    .. [1] J. Feydy, T. Séjourné, F.-X. Vialard, S. Amari, A. Trouvé, G. Peyré, "Interpolating
       between optimal transport and MMD using Sinkhorn divergences", AISTATS 2019, equation 3.

    Examples
    --------
    >>> X, Y = [[0.0], [1.0]], [[1.0], [2.0]]
    >>> round(sinkhorn_divergence(X, Y, reg=0.5), 4)
    1.0
    """
    X, Y, as_tensor = as_pair(X, Y, a, b)

    def objective(X, Y, a, b):
        return _loss(X, Y, reg, p, l1_weight, a, b, n_iter, tol, entropy=True)

    selves = (objective(X, X, a, a) + objective(Y, Y, b, b)) / 2
    return _plain(objective(X, Y, a, b) - selves, as_tensor)


class SinkhornGradient:
    """Gradients of the semi-debiased Sinkhorn loss of labelled rows.

    ``2 Ŵ(X[:n], Y) - Ŵ(X[:n], X[n':])`` (Definition 4.3 of the paper of `DPSinkhornGenerator`),
    where Ŵ is the cost of the entropic plan, and the cost of two rows is ``L2² + l1_weight L1`` of
    the rows, each multiplied by `scale` and joined with `label_weight` times the one-hot of its
    class. As there, plans are fixed when gradients are taken. With `balance` each class of real
    rows has its weight among the generated.
    """

    def __init__(
        self,
        reg: float,
        l1_weight: float,
        label_weight: float,
        scale: float = 1.0,
        balance: bool = True,
    ) -> None:
        self.reg = reg
        self.l1_weight = l1_weight
        self.label_weight = label_weight
        self.scale = scale
        self.balance = balance

    def cross(self, generated: torch.Tensor, classes, rows, membership) -> tuple:
        """Return the gradient of 2 Ŵ(generated, rows), and which generated rows are in it, (n, 1).

        Rows are (n, n_columns), with classes (n,), and (n_slots, n_columns), with one-hot classes
        or zeros where there is no row. With `balance`, generated rows of a class without real rows
        are left out.
        """
        joined = membership.any(1)
        rows, real = rows[joined].to(generated), membership[joined].argmax(1)
        gradient = torch.zeros_like(generated)
        active = torch.ones(len(generated), dtype=torch.bool, device=generated.device)
        b = None
        if self.balance:
            n_classes = membership.shape[1]
            wanted, found = (torch.bincount(c, minlength=n_classes) for c in (classes, real))
            active = (found > 0)[classes]
            # Real rows of classes that are not generated would be transported to other classes.
            kept = (wanted > 0)[real]
            if not active.any():
                return gradient, active[:, None]
            rows, real = rows[kept], real[kept]
            b = (wanted / found.clamp(min=1))[real].to(generated) / active.sum()
        gradient[active] = 2 * self._pull(generated[active], classes[active], rows, real, b)[0]
        return gradient, active[:, None]

    def apart(self, generated, classes, n_debias):
        """Return the gradient of ``-Ŵ(generated[:n], generated[n':])`` in all n + n' rows."""
        gradient, n = torch.zeros_like(generated), len(generated) - n_debias
        left, right = self._pull(
            generated[:n], classes[:n], generated[n_debias:], classes[n_debias:]
        )
        gradient[:n] -= left
        gradient[n_debias:] -= right
        return gradient

    def _pull(self, X, x_classes, Y, y_classes, b=None):
        """Return the gradients of Ŵ(X, Y) at its plan, in X and in Y."""
        X, Y = X * self.scale, Y * self.scale
        origin = Y.mean(0)
        A, B = X - origin, Y - origin
        cost = (A.square().sum(1)[:, None] + B.square().sum(1) - 2 * (A @ B.T)).clamp_(min=0)
        if self.l1_weight:
            cost += self.l1_weight * torch.cdist(X, Y, p=1)
        if self.label_weight:
            # ‖w e_c - w e_k‖² + l1_weight·‖w e_c - w e_k‖₁
            apart = 2 * self.label_weight**2 + self.l1_weight * 2 * self.label_weight
            if self.balance:
                # No mass has to change its class, and none does where that costs more than rows
                # can gain. A smaller range of costs needs fewer iterations.
                apart = min(apart, cost.max().item() + 10 * self.reg)
            cost += apart * (x_classes[:, None] != y_classes)
        # An approximate plan suffices; a warning at each step would not help.
        with muted(ConvergenceWarning):
            plan = sinkhorn_plan(cost, self.reg, b=b, n_iter=_N_ITER, tol=_TOL)
        in_x = 2 * (plan.sum(1, keepdim=True) * X - plan @ Y)
        in_y = 2 * (plan.sum(0)[:, None] * Y - plan.T @ X)
        if self.l1_weight:
            sign_x, sign_y = _sum_signs(plan, X, Y)
            in_x += self.l1_weight * sign_x
            in_y += self.l1_weight * sign_y
        return in_x * self.scale, in_y * self.scale


def _sum_signs(plan, X, Y):
    """Return Σ_j π_ij sign(x_i - y_j) and Σ_i π_ij sign(y_j - x_i), chunk by chunk."""
    in_x, in_y = torch.empty_like(X), torch.zeros_like(Y)
    size = max(1, _CHUNK // max(1, Y.numel()))
    for start in range(0, len(X), size):
        part = slice(start, start + size)
        signs = torch.sign(X[part, None] - Y)
        in_x[part] = torch.bmm(plan[part, None], signs)[:, 0]
        in_y -= torch.einsum("ij,ijd->jd", plan[part], signs)
    return in_x, in_y
