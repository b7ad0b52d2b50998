# SPDX-License-Identifier: BSD-3-Clause
"""Loss specifications: values of the parameter `loss`."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import nn

from ._process.isolation import seeded
from .checks import flag, in_range, positive
from .params import Specification
from .transport.sinkhorn_losses import (
    SinkhornGradient,
    entropic_wasserstein,
    pairwise_cost,
    sinkhorn_divergence,
)

__all__ = ["EntropicWasserstein", "SemiDebiasedSinkhorn", "SinkhornDivergence", "Wasserstein"]

# Marginal error of transport plans, which is far below the sampling error of a batch.
_TOL = 1e-3


@dataclass(eq=False, repr=False)
class SemiDebiasedSinkhorn(Specification):
    """The semi-debiased Sinkhorn loss between generated and private rows (DP-Sinkhorn).

    ``2 Ŵ(X[:n], Y) - Ŵ(X[:n], X[n':])`` for n + n' generated rows X and a batch Y of rows, where Ŵ
    is the cost of the entropic plan (Definition 4.3 of [1]_).

    Parameters
    ----------
    reg : float, default=None
        Entropic regularisation, in the units of the cost. None: 0.05, or n_features / 160
        if that is more and rows are compared by features in [0, 1]: with `bounds`, without a public
        encoder and without a numeric `y`.
    l1_weight : float, default=0.0
        Weight m of the L1 part of the cost ``L2² + m L1`` between rows: of features in [0, 1] under
        the conditions of `reg`, otherwise of rows in the unit ball. [1]_ uses 1 for sharper images;
        it takes time, and here it lowered the accuracy of classifiers trained on samples.
    label_weight : float, default=15.0
        Scale of the one-hot class that is appended to a row.
    n_debias : int, default=None
        Number n' of additional generated rows for debiasing, at most n. None: n / 5.
    balance_classes : bool, default=True
        Whether to weight the rows of a batch so that each class has the same share as among
        generated rows, without classes that are absent. False: equal weights, as in [1]_.

    References
    ----------
    .. [1] Cao, Bie, Vahdat, Fidler & Kreis, "Don't Generate Me: Training Differentially Private
       Generative Models with Sinkhorn Divergence", NeurIPS 2021.

    Examples
    --------
    >>> from skdpgen import DPSinkhornGenerator
    >>> from skdpgen.losses import SemiDebiasedSinkhorn
    >>> DPSinkhornGenerator(loss=SemiDebiasedSinkhorn(reg=0.1)).get_params()["loss__reg"]
    0.1
    """

    reg: float | None = None
    l1_weight: float = 0.0
    label_weight: float = 15.0
    n_debias: int | None = None
    balance_classes: bool = True

    _checks = {
        "reg": positive(optional=True),
        "l1_weight": in_range(),
        "label_weight": in_range(),
        "n_debias": in_range(whole=True, optional=True),
        "balance_classes": flag,
    }

    def make_gradient(self, n_columns: int, n_classes: int, scale: float) -> SinkhornGradient:
        """Return the gradient of the loss, for rows that are multiplied by `scale` before."""
        # Costs of rows that are no features in [0, 1] grow with the number of columns.
        default_reg = 0.05 if scale == 1 else max(0.05, n_columns / 160)
        return SinkhornGradient(
            self.reg or default_reg,
            self.l1_weight,
            self.label_weight if n_classes > 1 else 0.0,
            scale,
            self.balance_classes,
        )


@dataclass(eq=False, repr=False)
class EntropicWasserstein(Specification):
    """The entropic transport cost ⟨π, C⟩ at the entropic plan π, which deconvolves local noise.

    Algorithm 1 of [1]_. If the regularisation matches the noise, the minimiser is the distribution
    of the rows without noise (Theorem 1).

    Parameters
    ----------
    reg : float, default=None
        Regularisation λ, in the units after `bounds`. None: matched to the noise, that is the scale
        of Laplace noise (p = 1), or twice the variance of Gaussian noise (p = 2).

    References
    ----------
    .. [1] Reshetova, Chen & Özgür, "Training generative models from privatized data", 2023.
    """

    reg: float | None = None

    _checks = {"reg": positive(optional=True)}

    def distance(self, generated, noised, *, p: int, reg: float) -> torch.Tensor:
        """Return the loss of each pair of batches, of shape (n_pairs,).

        Parameters
        ----------
        generated, noised : tensor of shape (n_pairs, n, n_columns)
        p : {1, 2}
            The cost is ‖·‖_p^p.
        reg : float
            Regularisation, in units of the cost.
        """
        return entropic_wasserstein(generated, noised, p=p, reg=reg, tol=_TOL)


class OwnLoss:
    """A function of users, ``function(generated, real)``, as a loss and its `SinkhornGradient`.

    It may be any: the mechanism clips the whole gradient, and that alone bounds what a record
    changes. But it must follow from the batch and public numbers. So a copy of the object is given
    new tensors of a private batch, with torch's global generator at a public seed.
    """

    # It has no rows for debiasing, and no regularisation to be matched to the noise.
    n_debias, reg = 0, math.inf

    def __init__(self, function: Callable, n_classes: int = 1, scale: float = 1.0) -> None:
        self.function, self.n_classes, self.scale = function, n_classes, scale
        self._seed = 0

    def make_gradient(self, n_columns: int, n_classes: int, scale: float) -> "OwnLoss":
        """See `SemiDebiasedSinkhorn.make_gradient`."""
        return OwnLoss(self.function, n_classes, scale)

    def cross(self, generated, classes, rows, membership):
        """Return the gradient in the generated rows, and that all of them are involved."""
        joined, made = membership.any(1), generated.clone().requires_grad_()
        left = self._join(made, nn.functional.one_hot(classes, self.n_classes))
        right = self._join(rows[joined].to(made), membership[joined])
        with torch.enable_grad(), seeded(self._seed):
            value = self.function(left, right)
            if getattr(value, "grad_fn", None) is None or value.numel() != 1:
                raise TypeError("loss must return one number, a tensor with a gradient.")
            (gradient,) = torch.autograd.grad(value, made)
        return gradient, torch.ones_like(made[:, :1], dtype=torch.bool)

    def apart(self, generated, classes, n_debias):
        """Return no further gradient, and go on to another seed, outside the trust boundary."""
        self._seed += 1
        return torch.zeros_like(generated)

    def _join(self, rows, one_hot):
        # Also without classes a new tensor, which the function may change.
        return torch.cat([rows * self.scale, one_hot.to(rows)[:, self.n_classes == 1 :]], dim=1)

    def distance(self, generated: torch.Tensor, noised: torch.Tensor, **_) -> torch.Tensor:
        """Return the loss of each pair of batches; see `EntropicWasserstein.distance`."""
        pairs = zip(generated, noised, strict=True)
        return torch.stack([self.function(*pair).squeeze() for pair in pairs])


class SinkhornDivergence(EntropicWasserstein):
    """The debiased entropic cost, a baseline that learns the noised distribution.

    Parameters
    ----------
    reg : float, default=None
        As in `EntropicWasserstein`.
    """

    def distance(self, generated, noised, *, p: int, reg: float) -> torch.Tensor:
        """Return the loss of each pair of batches; see `EntropicWasserstein.distance`."""
        return sinkhorn_divergence(generated, noised, p=p, reg=reg, tol=_TOL)


class Wasserstein(Specification):
    """W_p^p without regularisation, a baseline that learns the noised distribution."""

    reg = None

    def distance(self, generated, noised, *, p: int, reg: float) -> torch.Tensor:
        """Return the cost of the best assignment; see `EntropicWasserstein.distance`."""
        costs = pairwise_cost(generated, noised, p=p)
        # Detached: by the envelope theorem the optimal plan is constant to first order.
        plans = [linear_sum_assignment(cost)[1] for cost in costs.detach().cpu().numpy()]
        chosen = torch.as_tensor(np.stack(plans), device=costs.device)
        return costs.gather(2, chosen.unsqueeze(2)).mean((1, 2))
