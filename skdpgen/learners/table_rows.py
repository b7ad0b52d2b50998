# SPDX-License-Identifier: BSD-3-Clause
"""Rows of tables that are learnt: for each column, probabilities of its levels."""

import numpy as np
import torch
from torch import nn

from ..registry import savable


@savable
class SoftmaxBlocks(nn.Module):
    """Turns each block of columns into probabilities.

    Blocks are narrow: along columns in memory it takes a tenth of the time.
    """

    def __init__(self, sizes):
        super().__init__()
        self.sizes = sizes

    def forward(self, logits):
        blocks = logits.T.contiguous().split(self.sizes)
        return torch.cat([block.softmax(0) for block in blocks]).T


class TableRows(nn.Module):
    """Something that gives, for each column of a table, probabilities of its levels.

    Given the code, columns are independent: the mean product of two blocks of probabilities is the
    joint law of two columns. Rows may be of several *parts*: of records with different levels of
    another column. Codes say of which.

    Parameters
    ----------
    sizes : list of int
        Number of levels of each column.
    marginals : tensor of shape (n_parts, n_levels)
        Probabilities to start from.
    """

    def __init__(self, sizes, marginals):
        super().__init__()
        self.blocks = SoftmaxBlocks(sizes)
        self.register_buffer("offset", marginals.clamp(min=1e-6).log())
        self.register_buffer("is_empty", None)

    def forbid(self, is_empty):
        """Give some levels a probability of exactly 0, from now on."""
        if np.any(is_empty):
            self.is_empty = torch.as_tensor(is_empty, device=self.offset.device)

    def to_probabilities(self, logits):
        """Turn logits into blocks of probabilities."""
        if self.is_empty is not None:
            logits = logits.masked_fill(self.is_empty, -torch.inf)
        return self.blocks(logits)

    @torch.no_grad()
    def sample(self, classes, generator):
        """Return a row for each of `classes`, as the encoder of tables makes them.

        Its blocks sum to 1/√(columns). Classes are one of the columns, and are not looked at. Rows
        of several parts are sampled by `RowsByLevel`.
        """
        rows = self(self.draw([len(classes)], generator)).double().cpu().numpy()
        return rows / len(self.blocks.sizes) ** 0.5


@savable
class TableNetwork(TableRows):
    """A network from Gaussian codes to probabilities of levels, one for all parts.

    What parts have in common, it learns from all of them: where noise hides how they differ, they
    are alike, but for how frequent levels are.

    Parameters
    ----------
    network : torch.nn.Module
        Maps codes of shape (n, latent_dim) or, if there are several parts,
        (n, latent_dim + n_parts) to (n, n_levels).
    latent_dim : int
        Width of the Gaussian code, beside which the part is one-hot.
    sizes, marginals
        As in `TableRows`.
    """

    def __init__(self, network, latent_dim, sizes, marginals):
        super().__init__(sizes, marginals)
        self.network = network
        self.latent_dim = latent_dim

    @staticmethod
    def count_inputs(latent_dim, n_parts):
        """Return the width of a code with its part."""
        return latent_dim + (n_parts if n_parts > 1 else 0)

    def forward(self, codes):
        """Map codes to blocks of probabilities."""
        parts = codes[:, self.latent_dim :]
        offset = parts @ self.offset if parts.shape[1] else self.offset
        return self.to_probabilities(self.network(codes) + offset)

    def shift(self, change):
        """Add a change, of shape (n_parts, n_levels), to all logits of each part."""
        self.offset += change

    def draw(self, n_rows, generator):
        """Draw so many codes of each part; on the CPU, so that every device gets the same."""
        codes = torch.randn(sum(n_rows), self.latent_dim, generator=generator, dtype=torch.float32)
        if len(n_rows) > 1:
            parts = torch.eye(len(n_rows)).repeat_interleave(torch.tensor(n_rows), dim=0)
            codes = torch.cat([codes, parts], dim=1)
        return codes.to(self.offset.device)


@savable
class TableParticles(TableRows):
    """Particles, each with its own probabilities of levels. Their codes are their positions.

    Parameters
    ----------
    n_particles : list of int
        For each part.
    generator : torch.Generator
        Where the particles' starts come from.
    sizes, marginals
        As in `TableRows`.
    """

    def __init__(self, n_particles, generator, sizes, marginals):
        super().__init__(sizes, marginals)
        self.n_particles = n_particles
        noise = torch.randn(sum(n_particles), self.offset.shape[1], generator=generator)
        self.logits = nn.Parameter(self._repeat(self.offset) + noise.to(self.offset))

    def _repeat(self, of_parts):
        counts = torch.tensor(self.n_particles, device=of_parts.device)
        return of_parts.repeat_interleave(counts, dim=0)

    def forward(self, codes):
        """Return the blocks of probabilities of particles."""
        return self.to_probabilities(self.logits[codes])

    def shift(self, change):
        """Add a change, of shape (n_parts, n_levels), to all logits of each part."""
        self.logits.data += self._repeat(change)

    def draw(self, n_rows, generator):
        """Draw so many of each part in random order, again and again if there are fewer."""
        starts = np.cumsum([0, *self.n_particles]).tolist()
        codes = [
            start + draw_in_rounds(n_particles, n, generator)
            for start, n_particles, n in zip(starts, self.n_particles, n_rows, strict=False)
        ]
        return torch.cat(codes).to(self.offset.device)


@savable
class RowsByLevel(nn.Module):
    """Rows for each level of a column, in proportion to how many records each is taken to have.

    Parameters
    ----------
    rows : TableRows
        Those of the other columns, a part for each level.
    shares : ndarray of shape (n_parts,)
        With sum 1.
    start : int
        Where the levels are among those of all columns.
    """

    def __init__(self, rows, shares, start):
        super().__init__()
        self.rows = rows
        self.register_buffer("shares", torch.as_tensor(shares, dtype=torch.float64))
        self.start = start

    @torch.no_grad()
    def sample(self, classes, generator):
        """Return a row for each of `classes`, which are not looked at; see `TableRows.sample`."""
        n_rows, n_parts = len(classes), len(self.shares)
        # As near to the shares as it goes, in random order.
        places = torch.rand(1, generator=generator, dtype=torch.float64) + torch.arange(n_rows)
        level = torch.searchsorted(self.shares.cumsum(0), places / n_rows).clamp(max=n_parts - 1)
        counts = level.bincount(minlength=n_parts)
        rows = self.rows(self.rows.draw(counts.tolist(), generator)).double().cpu().numpy()
        # The column of the levels is put in.
        block = np.eye(n_parts).repeat(counts.numpy(), axis=0)
        rows = np.hstack([rows[:, : self.start], block, rows[:, self.start :]])
        rows = rows[torch.randperm(n_rows, generator=generator).numpy()]
        return rows / (len(self.rows.blocks.sizes) + 1) ** 0.5


def draw_in_rounds(n_particles, n, generator):
    """Return `n` positions of particles: all in random order, again and again."""
    order = [
        torch.randperm(n_particles, generator=generator)
        for _ in range(max(1, -(-n // n_particles)))
    ]
    return torch.cat(order)[:n]
