# SPDX-License-Identifier: BSD-3-Clause
"""The network of methods that learn step by step: rows of numbers, images, or tables."""

import torch
from torch import nn

from ..networks import build, find_factory
from .table_rows import SoftmaxBlocks
from .training import RowNetwork


def make_rows(network, format, latent_dim, n_classes, seed, n_encoded=None):
    """Return a `RowNetwork` that makes rows of a format.

    Parameters
    ----------
    network : str or callable
        Name of the network, or a factory.
    format : Format
    latent_dim, n_classes : int
        Widths of the code, and of the one-hot class beside it.
    seed : int
        Of the weights to start from.
    n_encoded : int, default=None
        Number of the components that are to be set afterwards; None: of all columns.
    """
    unit, n_outputs = _find_outputs(network, format, n_encoded or format.n_columns)
    spread = even_spread(format.n_columns)
    module = build(find_factory(network), latent_dim + n_classes, n_outputs, seed)
    if format.has_blocks:
        module = nn.Sequential(module, SoftmaxBlocks(format.block_sizes))
        spread.fill_(len(format.block_sizes) ** -0.5)
    return RowNetwork(module, n_classes, latent_dim, spread, unit=unit)


def try_network(network, format, n_inputs, n_encoded):
    """Refuse a network that makes other rows than those of a format, if any is read beforehand.

    Where it is still to be found how many columns there are (`n_encoded` is None), it has to make
    any number.
    """
    if not format.shares:
        return  # as it is made
    _, n_outputs = _find_outputs(network, format, n_encoded or len(format.schema))
    build(find_factory(network), n_inputs, n_outputs, seed=0)


def _find_outputs(network, format, n_encoded):
    """Return the scale of outputs that are features in [0, 1], or None, and their number."""
    if not has_unit_output(network):
        return None, n_encoded
    if format.feature_scale is None:
        raise ValueError(
            f"network={network!r} makes features in [0, 1]: it needs bounds, and "
            "no encoder object or numeric y beside them."
        )
    return format.feature_scale, format.n_columns


def even_spread(n_columns):
    """Return the scale of rows in the unit ball; their random projections are as small."""
    return torch.full((n_columns,), n_columns**-0.5)


def has_unit_output(network):
    """Whether a network makes features in [0, 1]."""
    return getattr(find_factory(network), "unit_output", False)


def input_scale(format):
    """Return what rows are multiplied by to have features in [0, 1] again; 1 for other rows."""
    return 1.0 if format.feature_scale is None else 1 / format.feature_scale
