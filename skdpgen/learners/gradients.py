# SPDX-License-Identifier: BSD-3-Clause
"""Training on noisy gradients of the semi-debiased Sinkhorn loss.

`CrossGradient` is the public function of private rows. Only a mechanism applies it, within the
trust boundary.
"""

import copy
from collections.abc import Callable

import numpy as np
import torch
from torch import nn
from torch.func import functional_call

from ..data.record_functions import BatchFunction
from ..mechanisms.gradients import ClippedGradientMechanism, clip_whole
from .interface import Sampler
from .rows import RowNetwork
from .training import Training, list_trained, run_steps


class CrossGradient:
    """The gradient of the loss in the first n generated rows, as a function of a real batch.

    Generated rows (n, n_columns), with their classes, are constants here. The gradient of the
    debiasing term, of the same shape, depends on no private row. `encode` maps real rows as
    generated ones are.
    """

    def __init__(self, loss, generated, classes, debiasing, encode):
        self.loss, self.generated, self.classes = loss, generated, classes
        self.debiasing, self.encode = debiasing, encode

    def __call__(self, rows, membership):
        rows = self.encode(rows)
        # A copy, which saw no batch before: amplification by sampling needs a function of this one.
        loss = copy.deepcopy(self.loss)
        gradient, active = loss.cross(self.generated, self.classes, rows, membership)
        return gradient + self.debiasing * active


class WeightGradient:
    """The gradient in the weights of a network, as a function of a real batch.

    `function` is the gradient in the first n rows that the network generates from its codes
    `latent`, and `debiasing` that in the other rows. Weights and statistics of the network are
    copied.
    """

    def __init__(self, function, debiasing, network, latent):
        self.function, self.debiasing = function, debiasing
        self.network, self.latent = network, latent
        self.weights = {
            k: v.detach().clone() for k, v in network.named_parameters() if v.requires_grad
        }
        # Batch normalisation updates statistics in a forward pass; each call starts from the same
        # ones.
        self.statistics = {k: v.clone() for k, v in network.named_buffers()}

    def __call__(self, rows, membership):
        gradient = torch.cat([self.function(rows, membership), self.debiasing])
        # Copies: the curator calls the function, and may not change the network.
        weights = {k: v.clone().requires_grad_() for k, v in self.weights.items()}
        statistics = {k: v.clone() for k, v in self.statistics.items()}
        generated = functional_call(self.network, weights | statistics, (self.latent,))
        product = (generated * gradient).sum()
        products = torch.autograd.grad(product, list(weights.values()))
        return nn.utils.parameters_to_vector(products)


def fit_to_gradients(
    rows: RowNetwork,
    loss,
    release: Callable,
    *,
    n_steps: int,
    n_generated: int,
    n_debias: int,
    grad_clip: float,
    shares: np.ndarray,
    perturb: str,
    optimizer: str | Callable,
    learning_rate: float,
    generator: torch.Generator,
    verbose: int = 0,
) -> Sampler:
    """Train a network in place by noisy gradients.

    This is Algorithm 1 of the paper of `DPSinkhornGenerator`. Losses are, at each step, the squared
    norm of the released gradient, less the energy of its noise, over Δ²: an unbiased estimate of a
    number of at most 1.

    Parameters
    ----------
    loss : SinkhornGradient or OwnLoss
    release : callable
        Returns the `NoisySum` of a `ClippedGradientMechanism`; called `n_steps` times.
    n_generated, n_debias : int
        Sizes n and n' of the generated batch, which do not depend on the size of the real batch.
    grad_clip : float
        Radius Δ of the gradients.
    shares : ndarray of shape (n_classes,)
        Shares of the classes among generated rows.
    perturb : {"images", "parameters"}
        Whether the gradient in the generated rows is released, or that in the weights.
    optimizer, learning_rate
        As in `Training`; the rate decays linearly to 0.
    """
    training = Training(rows, learning_rate, optimizer=optimizer)
    n, weights = n_generated, list_trained(rows.parameters())

    def draw():
        classes = _draw_stratified(shares, n, generator)
        # A debiasing row has the class of the row that it replaces.
        classes = torch.cat([classes, classes[:n_debias]])
        return classes.to(rows.scale.device), rows.draw(classes, generator)

    def take_step(rate):
        classes, latent = draw()
        generated = rows(latent)
        fixed = generated.detach()
        debiasing = loss.apart(fixed, classes, n_debias)
        function = CrossGradient(loss, fixed[:n], classes[:n], debiasing[:n], rows.encode)
        shape = n, generated.shape[1]
        if perturb == "parameters":
            function = WeightGradient(function, debiasing[n:], rows, latent)
            shape = (sum(weight.numel() for weight in weights),)
        released = release(ClippedGradientMechanism(BatchFunction(function), shape, grad_clip))
        noisy = torch.as_tensor(released.value)
        # Less the expected energy of the noise, which makes the squared norm unbiased.
        energy = noisy.square().sum() - noisy.numel() * released.std**2
        if perturb == "images":
            # No private row enters the debiasing block: it is clipped only.
            noisy = torch.cat([noisy.to(generated), clip_whole(debiasing[n:], grad_clip)])
            # Back-propagation of a released gradient is post-processing.
            linear = (generated * noisy).sum()
        else:
            flat = nn.utils.parameters_to_vector(weights)
            linear = (flat * noisy.to(flat)).sum()
        training.step(linear, rate)
        return energy / grad_clip**2

    losses = run_steps(take_step, n_steps, verbose=verbose)
    return Sampler(training.finish(lambda: draw()[1]), losses, shares)


def _draw_stratified(shares, size, generator):
    """Draw classes in random order; the count of each differs by less than 1 from its share."""
    edges = torch.as_tensor(shares, dtype=torch.float64).cumsum(0)
    # Systematic sampling: one offset for all points, which removes most variance of the counts.
    offset = torch.rand(1, generator=generator, dtype=torch.float64)
    points = (torch.arange(size, dtype=torch.float64) + offset) / size * edges[-1]
    classes = torch.searchsorted(edges, points, right=True).clamp(max=len(shares) - 1)
    return classes[torch.randperm(size, generator=generator)]
