# SPDX-License-Identifier: BSD-3-Clause
"""Rehearsal of a network's training and use on public inputs, before a budget is spent."""

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from ..checks import tried
from ..networks.generators import build, find_shaped, rehearsing
from .training import Training, list_trained

_OPTIMIZER = (
    "It is called as optimizer(parameters, lr=0.001), and its step() without a closure: give a "
    "class of torch.optim such as Adam, or a function of both."
)


def try_generator(
    network: str | Callable,
    latent_dim: int,
    n_classes: int,
    n_outputs: int,
    batch_size: int,
    device: torch.device,
    optimizer: str | Callable = "adam",
    images: Any = None,
) -> None:
    """Raise an error if a network cannot be made, trained or sampled from."""
    with tried("network"):
        module = build(find_shaped(network, images), latent_dim + n_classes, n_outputs, seed=0)
    # The library's own networks need no rehearsal, but on an accelerator the memory for one.
    if isinstance(network, str) and isinstance(optimizer, str) and device.type == "cpu":
        return
    if not list_trained(module.parameters()):
        raise ValueError(
            "network has no weights to train: a generator needs some, before or after layers "
            "that are frozen."
        )
    generator = torch.Generator().manual_seed(0)
    codes = torch.randn(batch_size, latent_dim, generator=generator, dtype=torch.float32)
    if n_classes:
        one_hot = nn.functional.one_hot(torch.arange(batch_size) % n_classes, n_classes)
        codes = torch.cat([codes, one_hot.to(codes)], dim=1)
    rehearse(module, codes.to(device), n_outputs, optimizer)


def try_loss(loss: Any, sizes: tuple[int, int], n_columns: int, device: torch.device) -> None:
    """Raise an error if an `OwnLoss` has no gradient, or follows from more than its batch.

    The sizes are the numbers of generated and of real rows.
    """
    with rehearsing("loss"):
        generator = torch.Generator().manual_seed(0)
        parts = [*sizes, sizes[1]]
        rows = torch.rand(sum(parts), n_columns, generator=generator).to(device) / n_columns**0.5
        generated, *real = rows.split(parts)
        classes = torch.arange(max(sizes), device=device) % loss.n_classes
        one_hot = nn.functional.one_hot(classes[: sizes[1]], loss.n_classes)
        # The first one again, after another.
        calls = [(generated, classes[: sizes[0]], real[i], one_hot) for i in (0, 1, 0)]
        found = [copy.deepcopy(loss).cross(*call)[0] for call in calls]
        if not all(bool(gradient.isfinite().all()) for gradient in found):
            raise ValueError("loss has a gradient of NaN or infinity for made-up rows.")
        if torch.equal(found[0], found[1]):
            raise ValueError("loss has a gradient that does not depend on the real rows.")
        if not torch.equal(found[0], found[2]):
            raise ValueError(
                "loss gives two gradients for the same rows: it must keep nothing of earlier "
                "batches, and draw from torch's global generator only."
            )


@rehearsing("network")
def rehearse(
    network: nn.Module,
    inputs: torch.Tensor,
    n_outputs: int,
    optimizer: str | Callable = "adam",
) -> None:
    """Train a copy of a network for one step, as a fit does, and use it in evaluation mode.

    Inputs are a batch of training, on the device of the fit. Raises a ValueError or TypeError,
    which shows the network's own error.
    """
    network = copy.deepcopy(network).to(inputs.device)
    with tried("optimizer", _OPTIMIZER):
        training = Training(network, 1e-3, optimizer=optimizer)
    weights = list_trained(network.parameters())
    outputs = _check_outputs(network(inputs), len(inputs), n_outputs, "in training mode")
    if weights:
        if not outputs.requires_grad:
            raise ValueError(
                "network gives outputs without a gradient, so that its weights cannot be trained: "
                "leave out detach() and no_grad()."
            )
        # Not zero for outputs that are.
        loss = (outputs - 1).square().mean()
        # Layers may be unused, but not all of them.
        found = torch.autograd.grad(loss, weights, retain_graph=True, allow_unused=True)
        gradients = [gradient for gradient in found if gradient is not None]
        if not gradients:
            raise ValueError("network gives outputs that do not depend on its weights.")
        if not all(bool(gradient.isfinite().all()) for gradient in gradients):
            raise ValueError("network has a gradient of NaN or infinity.")
        with tried("optimizer", _OPTIMIZER):
            training.step(loss, 1.0)
    trained = training.finish(lambda: inputs)
    with torch.no_grad():
        # Samples may be of any number of rows.
        for rows in (inputs[:1], inputs[:3], inputs[:32]):
            _check_outputs(trained(rows.cpu()), len(rows), n_outputs, "in evaluation mode")


def _check_outputs(outputs, n_rows, n_outputs, when):
    """Return outputs, or raise an error unless they are finite rows in single precision."""
    if not isinstance(outputs, torch.Tensor):
        raise TypeError(f"network must return a tensor; it returns {type(outputs).__name__}.")
    if outputs.shape != (n_rows, n_outputs) or outputs.dtype != torch.float32:
        raise ValueError(
            f"network maps {n_rows} rows, {when}, to {outputs.dtype} numbers of shape "
            f"{tuple(outputs.shape)}; torch.float32 and {(n_rows, n_outputs)} are needed."
        )
    if not outputs.isfinite().all():
        raise ValueError(f"network gives NaN or infinity, {when}, for made-up rows.")
    return outputs
