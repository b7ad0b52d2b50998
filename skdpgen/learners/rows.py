# SPDX-License-Identifier: BSD-3-Clause
"""Generator networks of encoded rows: numbers, images, or tables."""

from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from ..data.rows import clip_rows
from ..networks.generators import build, find_factory, find_shaped
from ..registry import savable
from .table_rows import SoftmaxBlocks


@savable
class RowNetwork(nn.Module):
    """A generator network whose outputs are mapped to encoded rows.

    Parameters
    ----------
    network : torch.nn.Module
        Maps (n, latent_dim + n_classes) codes to (n, n_outputs).
    n_classes, latent_dim : int
        Widths of the one-hot class and of the Gaussian code.
    scale : tensor of shape (n_encoded,)
        Standard deviations of encoded rows, by which outputs are multiplied.
    unit : float, default=None
        For networks whose outputs are features in [0, 1]: the scale of features in a row.

    Attributes
    ----------
    components : None or PrincipalComponents
        The linear encoder, if there is one.
    """

    scale: torch.Tensor

    def __init__(
        self,
        network: nn.Module,
        n_classes: int,
        latent_dim: int,
        scale: torch.Tensor,
        unit: float | None = None,
    ) -> None:
        super().__init__()
        self.network = network
        self.n_classes = n_classes
        self.latent_dim = latent_dim
        self.register_buffer("scale", scale)
        self.components = None
        self.unit = unit

    def set_components(self, components) -> None:
        """Generate rows in the coordinates of components, unless these are None."""
        if components is not None:
            self.components = components
            self.scale = components.spread

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        """Map codes to encoded rows."""
        outputs = self.network(codes)
        if self.unit is None:
            return outputs * self.scale
        # Records are clipped, too.
        return self.encode(clip_rows(outputs * self.unit, 1.0))

    def encode(self, rows: torch.Tensor) -> torch.Tensor:
        """Encode rows in the unit ball."""
        return rows if self.components is None else self.components.encode(rows)

    def draw(self, classes: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
        """Draw a code for each of `classes`; on the CPU, so that every device gets the same."""
        latent = torch.randn(
            len(classes), self.latent_dim, generator=generator, dtype=torch.float32
        )
        one_hot = nn.functional.one_hot(classes, self.n_classes)
        return torch.cat([latent, one_hot.to(latent.dtype)], dim=1).to(self.scale.device)

    @torch.no_grad()
    def sample(self, classes: torch.Tensor, generator: torch.Generator) -> np.ndarray:
        """Sample a row in the unit ball for each of `classes`, of shape (n, n_columns).

        The sketch does not cover directions outside the span of the components, so that outputs
        there carry no information about the records: they are dropped.
        """
        rows = self(self.draw(classes, generator))
        if self.components is not None:
            rows = self.components.decode(rows)
        return rows.double().cpu().numpy()


def make_rows(
    network: str | Callable,
    format,
    latent_dim: int,
    n_classes: int,
    seed: int,
    n_encoded: int | None = None,
) -> RowNetwork:
    """Make the generator network of a format's rows.

    `network` is a name or a factory, and `n_encoded` the number of the components that will be set;
    None: rows are not encoded.
    """
    unit, n_outputs = find_outputs(network, format, n_encoded or format.n_columns)
    scale = even_scale(format.n_columns)
    factory = find_shaped(network, format.images)
    module = build(factory, latent_dim + n_classes, n_outputs, seed)
    if format.block_sizes:
        module = nn.Sequential(module, SoftmaxBlocks(format.block_sizes))
        scale.fill_(len(format.block_sizes) ** -0.5)
    return RowNetwork(module, n_classes, latent_dim, scale, unit=unit)


def find_outputs(network, format, n_encoded):
    """Return the scale of features in [0, 1], or None for other outputs, and their number."""
    if not has_unit_output(network):
        return None, n_encoded
    if format.feature_scale is None:
        raise ValueError(
            f"network={network!r} makes features in [0, 1], which needs bounds, and no encoder "
            "object or numeric y. Set bounds=(lower, upper), or choose network='mlp'."
        )
    return format.feature_scale, format.n_columns


def even_scale(n_columns: int) -> torch.Tensor:
    """Return the scale of rows in the unit ball whose columns vary equally."""
    return torch.full((n_columns,), n_columns**-0.5)


def has_unit_output(network: str | Callable) -> bool:
    """Return whether a network makes features in [0, 1]."""
    return getattr(find_factory(network), "unit_output", False)


def input_scale(format) -> float:
    """Return the factor that maps rows to features in [0, 1]; 1 if they are no such features."""
    return 1.0 if format.feature_scale is None else 1 / format.feature_scale
