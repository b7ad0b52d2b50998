# SPDX-License-Identifier: BSD-3-Clause
"""Checks of parts that users give to estimators."""

from collections.abc import Callable

import torch

from ..learners.rehearsal import try_generator


def validate_network(network: str | Callable, n_inputs: int, n_outputs: int) -> list[str]:
    """List what keeps a generator network from being trained; it costs nothing.

    It is made for `latent_dim` and the number of classes together, trained for a step, and used, as
    before a fit. Only generated rows pass it: batch normalisation and dropout are fine.

    Examples
    --------
    >>> import torch
    >>> from skdpgen.testing import validate_network
    >>> validate_network(torch.nn.Linear, 20, 4)
    []
    >>> validate_network(lambda i, o: torch.nn.Linear(i, o).requires_grad_(False), 20, 4)[0][:34]
    'network has no weights to train: a'
    """
    try:
        try_generator(network, n_inputs, 0, n_outputs, 8, torch.device("cpu"))
    except (TypeError, ValueError) as error:
        return [str(error)]
    return []
