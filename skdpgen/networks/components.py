# SPDX-License-Identifier: BSD-3-Clause
"""Principal components from noisy second moments."""

import math

import numpy as np
import torch
from torch import nn

from ..transport import ExactMatrix


class PrincipalComponents(nn.Module):
    """A linear map onto leading components, partly whitened, and back.

    Parameters
    ----------
    axes : tensor of shape (n_features, p)
        Orthonormal columns.
    deviations : tensor of shape (p,)
        Standard deviations of the components.
    whiten : float, default=0.5
        Components are divided by their deviation to this power: 0 keeps their scales, 1 makes
        them equal.
    unit_ball : bool, default=False
        Scale all components once more by one number, so that the root mean square norm of encoded
        rows is 1.

    Attributes
    ----------
    spread : tensor of shape (p,)
        Standard deviations of the scaled components.
    """

    def __init__(self, axes, deviations, whiten=0.5, unit_ball=False):
        super().__init__()
        spread = deviations ** (1 - whiten)
        radius = torch.linalg.vector_norm(spread) if unit_ball else 1.0
        self.register_buffer("axes", axes)
        self.register_buffer("scale", deviations**whiten * radius)
        self.register_buffer("spread", spread / radius)

    @classmethod
    def from_noisy_moments(cls, moments, n_records, n_components, *, whiten=0.5, unit_ball=False):
        """Take the leading components of released second moments: post-processing.

        Parameters
        ----------
        moments : NoisySum
            Noisy Σ xxᵀ, a matrix.
        n_records : int
            Number of records.
        n_components : int
            p ≤ n_features.
        whiten, unit_ball
            As in the constructor.
        """
        values, vectors = np.linalg.eigh(moments.value)
        values, vectors = values[::-1][:n_components], vectors[:, ::-1][:, :n_components]
        # Noise alone has eigenvalues up to σ√(2d); what is far below them says nothing.
        floor = 0.1 * moments.std * math.sqrt(2 * len(vectors)) + 1e-9 * n_records
        deviations = np.sqrt(np.maximum(values, floor) / n_records)
        return cls(
            torch.tensor(vectors.copy(), dtype=torch.float32),
            torch.tensor(deviations, dtype=torch.float32),
            whiten=whiten,
            unit_ball=unit_ball,
        )

    def encode(self, rows):
        """Map rows (n, n_features) to scaled components (n, p)."""
        return rows.to(self.axes.dtype) @ (self.axes / self.scale)

    def encode_exactly(self, rows):
        """Map rows as `encode` does, each to the bit by itself, whatever rows are around it.

        There is no gradient.
        """
        return ExactMatrix(self.axes / self.scale).times(rows)

    def decode(self, components):
        """Map scaled components back to rows."""
        return (components * self.scale) @ self.axes.T
