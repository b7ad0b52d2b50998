# SPDX-License-Identifier: BSD-3-Clause
"""Checks of parts that users give to estimators."""

from collections.abc import Callable

import torch

from ..learners.rehearsal import try_generator


def validate_network(network: str | Callable, n_inputs: int, n_outputs: int) -> list[str]:
    """List what keeps a generator network from being trained; it costs nothing.

    A network is made, trained for a step and used on made-up codes, as a fit does before anything
    is spent. Only generated rows pass it: batch normalisation, dropout and frozen layers are fine.

    Parameters
    ----------
    network : str or callable
        As the parameter `network` of an estimator.
    n_inputs, n_outputs : int
        `latent_dim` and the number of classes together; the number of features.

    Returns
    -------
    list of str
        Empty for a network that can be used.

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
