# SPDX-License-Identifier: BSD-3-Clause
"""Checks of parts that users give to estimators."""

import math
from collections.abc import Callable

import torch

from ..learners.aggregates import try_discriminator
from ..learners.rehearsal import try_generator


def validate_network(
    network: str | Callable, n_inputs: int | tuple, n_outputs: int | None = None
) -> list[str]:
    """List what keeps a network from being trained; it costs nothing.

    A generator's is made for `latent_dim` and the number of classes together, trained for a step,
    and used, as before a fit. Only generated rows pass it: batch normalisation and dropout are
    fine. Without `n_outputs`, these are `discriminator_layers` of `DPAFGenerator` for rows of a
    shape, each of which passes them by itself.

    Examples
    --------
    >>> import torch
    >>> from skdpgen.testing import validate_network
    >>> validate_network(torch.nn.Linear, 20, 4)
    []
    >>> validate_network(lambda i, o: torch.nn.Linear(i, o).requires_grad_(False), 20, 4)[0][:34]
    'network has no weights to train: a'
    >>> validate_network(lambda shape: torch.nn.Conv2d(shape[0], 8, 3), (1, 8, 8))
    []
    """
    try:
        if n_outputs is not None and isinstance(n_inputs, int):
            try_generator(network, n_inputs, 0, n_outputs, 8, torch.device("cpu"))
        else:
            shape = (n_inputs,) if isinstance(n_inputs, int) else n_inputs
            try_discriminator(network, math.prod(shape), 1, shape if len(shape) == 3 else None)
    except (TypeError, ValueError) as error:
        return [str(error)]
    return []
