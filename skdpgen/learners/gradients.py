# SPDX-License-Identifier: BSD-3-Clause
"""Learner: a network that descends noisy gradients of the semi-debiased Sinkhorn loss.

What reads private rows here is `CrossGradient`, a public function, and only where a mechanism
applies it behind the curator's door.
"""

import torch
from torch import nn
from torch.func import functional_call
from tqdm import tqdm

from ..curator.record_functions import BatchFunction
from ..mechanisms.gradients import ClippedGradientMechanism, clip_whole
from .training import Training


class CrossGradient:
    """The gradient of the loss in the first n generated rows, as a function of a real batch.

    Parameters
    ----------
    loss : SinkhornGradient
    made : tensor of shape (n, n_columns)
        Generated rows, fixed.
    classes : tensor of shape (n,)
        Their classes.
    apart : tensor of shape (n, n_columns)
        What the debiasing term adds, which reads no private row.
    encode : callable
        Maps real rows to columns as generated ones have.
    """

    def __init__(self, loss, made, classes, apart, encode):
        self.loss, self.made, self.classes, self.apart = loss, made, classes, apart
        self.encode = encode

    def __call__(self, rows, membership):
        rows = self.encode(rows)
        gradient, active = self.loss.cross(self.made, self.classes, rows, membership)
        return gradient + self.apart * active


class WeightGradient:
    """The gradient in the weights of a network, as a function of a real batch.

    Parameters
    ----------
    function : CrossGradient
        The gradient in the first n rows that the network makes.
    apart : tensor of shape (n', n_columns)
        The gradient in the others.
    network : torch.nn.Module
        Weights and statistics are kept as they are now.
    latent : tensor
        What rows are made of.
    """

    def __init__(self, function, apart, network, latent):
        self.function, self.apart, self.network, self.latent = function, apart, network, latent
        self.weights = {k: v.detach().clone() for k, v in network.named_parameters()}
        self.statistics = {k: v.clone() for k, v in network.named_buffers()}

    def __call__(self, rows, membership):
        gradient = torch.cat([self.function(rows, membership), self.apart])
        weights = {k: v.clone().requires_grad_() for k, v in self.weights.items()}
        statistics = {k: v.clone() for k, v in self.statistics.items()}
        with torch.enable_grad():
            made = functional_call(self.network, weights | statistics, (self.latent,))
        pulled = torch.autograd.grad(made, list(weights.values()), gradient)
        return nn.utils.parameters_to_vector(pulled)


@torch.inference_mode(False)
@torch.enable_grad()
def fit_to_gradients(
    rows,
    loss,
    release,
    *,
    n_steps,
    n_generated,
    n_debias,
    grad_clip,
    shares,
    perturb,
    optimizer,
    learning_rate,
    generator,
    verbose=0,
):
    """Train a network by noisy gradients: Algorithm 1 of the DP-Sinkhorn paper.

    Parameters
    ----------
    rows : RowNetwork
        To be trained, in place, on its device.
    loss : SinkhornGradient
    release : callable
        Returns the `NoisyGradient` of a `ClippedGradientMechanism`.
    n_steps : int
        Number of releases.
    n_generated, n_debias : int
        Sizes n and n' of the generated batch, which never follow that of the real one.
    grad_clip : float
        Radius of the gradients.
    shares : ndarray of shape (n_classes,)
        How often each class is generated.
    perturb : {"images", "parameters"}
        What is released: the gradient in the generated rows, or in the network's weights.
    optimizer : {"adam", "sgd"}
    learning_rate : float
        Of the optimizer, after a warm-up; it decays linearly to 0.
    generator, verbose
        As in `fit_to_sketch`.

    Returns
    -------
    rows : RowNetwork
        With averaged weights, on the CPU and in evaluation mode.
    losses : list of float
        At each step, the squared norm of the released gradient, less the energy of its noise, over
        Δ²: an estimate of at most 1 of how far there is to go.
    """
    losses = []
    training = Training(rows, learning_rate, 0.999, optimizer)
    n, weights = n_generated, list(rows.parameters())

    def draw():
        classes = _stratified(shares, n, generator)
        # A debiasing row has the class of the row that it stands in for.
        classes = torch.cat([classes, classes[:n_debias]])
        return classes.to(rows.spread.device), rows.draw(classes, generator)

    for step in tqdm(range(n_steps), desc="generator", disable=not verbose):
        classes, latent = draw()
        made = rows(latent)
        fixed = made.detach()
        apart = loss.apart(fixed, classes, n_debias)
        function = CrossGradient(loss, fixed[:n], classes[:n], apart[:n], rows.encode)
        shape = n, made.shape[1]
        if perturb == "parameters":
            function = WeightGradient(function, apart[n:], rows, latent)
            shape = (sum(weight.numel() for weight in weights),)
        mechanism = ClippedGradientMechanism(BatchFunction(function), shape, grad_clip)
        released = release(mechanism)
        noisy = torch.as_tensor(released.value)
        energy = noisy.square().sum().item() - noisy.numel() * released.std**2
        losses.append(energy / grad_clip**2)
        if perturb == "images":
            # No private row has a part in the debiasing block: it is clipped only.
            noisy = torch.cat([noisy.to(made), clip_whole(apart[n:], grad_clip)])
            # Back-propagation of what was released is post-processing.
            pull = (made * noisy).sum()
        else:
            flat = nn.utils.parameters_to_vector(weights)
            pull = (flat * noisy.to(flat)).sum()
        training.step(pull, 1 - step / n_steps)
    return training.finish(lambda: draw()[1]), losses


def _stratified(shares, size, generator):
    """Draw classes, each as often as its share says, up to less than 1, in random order."""
    edges = torch.as_tensor(shares, dtype=torch.float64).cumsum(0)
    offset = torch.rand(1, generator=generator, dtype=torch.float64)
    places = (torch.arange(size, dtype=torch.float64) + offset) / size * edges[-1]
    classes = torch.searchsorted(edges, places, right=True).clamp(max=len(shares) - 1)
    return classes[torch.randperm(size, generator=generator)]
