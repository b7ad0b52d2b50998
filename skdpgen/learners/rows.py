"""The network of generators that learn step by step: rows of numbers, images, or tables."""

import torch
from torch import nn

from ..formats.table import TableCodec
from ..networks import build, find_factory
from .tables import SoftmaxBlocks
from .training import RowNetwork

__all__ = ["even_spread", "has_unit_output", "input_scale", "make_rows"]


def make_rows(generator, codec, latent_dim, n_classes, noise, n_encoded=None):
    """Return a `RowNetwork` that makes rows of a codec.

    Parameters
    ----------
    generator : str or callable
        Name of the network, or a factory.
    codec : RowCodec or TableCodec
    latent_dim, n_classes : int
        Widths of the code, and of the one-hot class beside it.
    noise : NoiseSource
        Where weights start from.
    n_encoded : int, default=None
        Number of the components that are to be set afterwards; None: of all columns.
    """
    is_table, unit, n_outputs = isinstance(codec, TableCodec), None, n_encoded or codec.n_columns
    spread = even_spread(codec.n_columns)
    if has_unit_output(generator):
        if is_table or not codec.has_unit_features:
            raise ValueError(
                f"generator={generator!r} makes features in [0, 1]: it needs bounds, and "
                "no encoder object or numeric y beside them."
            )
        unit, n_outputs = codec.unit / codec.radius, codec.n_columns
    network = build(find_factory(generator), latent_dim + n_classes, n_outputs, noise.seed())
    if is_table:
        network = nn.Sequential(network, SoftmaxBlocks(codec.block_sizes))
        spread.fill_(len(codec.block_sizes) ** -0.5)
    return RowNetwork(network, n_classes, latent_dim, spread, unit=unit)


def even_spread(n_columns):
    """Return the scale of rows in the unit ball; their random projections are as small."""
    return torch.full((n_columns,), n_columns**-0.5)


def has_unit_output(generator):
    """Whether a network makes features in [0, 1]."""
    return getattr(find_factory(generator), "unit_output", False)


def input_scale(codec):
    """Return what rows are multiplied by to have features in [0, 1] again; 1 for other rows."""
    is_table = isinstance(codec, TableCodec)
    return 1.0 if is_table or not codec.has_unit_features else codec.radius / codec.unit
