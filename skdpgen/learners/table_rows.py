# SPDX-License-Identifier: BSD-3-Clause
"""Generators of table rows: probabilities of the levels of each column."""

import numpy as np
import torch
from torch import nn

from ..registry import savable

# Codes of a network from which its tables are computed.
_N_CODES = 4000


@savable
class SoftmaxBlocks(nn.Module):
    """Softmax of each block of columns.

    Blocks are narrow: with columns contiguous in memory, this takes a tenth of the time.
    """

    def __init__(self, sizes):
        super().__init__()
        self.sizes = sizes

    def forward(self, logits):
        blocks = logits.T.contiguous().split(self.sizes)
        return torch.cat([block.softmax(0) for block in blocks]).T


class TableRows(nn.Module):
    """Base of generators of table rows.

    Given a code, columns are independent: the mean product of two blocks of probabilities is the
    joint distribution of two columns. Rows may belong to several strata, of records with different
    levels of another column; the code holds the stratum. Marginals, of shape (n_strata, n_levels),
    are the initial probabilities.
    """

    offset: torch.Tensor
    is_empty: torch.Tensor | None
    to_knots: torch.Tensor | None

    def __init__(self, sizes: list[int], marginals: torch.Tensor) -> None:
        super().__init__()
        self.blocks = SoftmaxBlocks(sizes)
        self.register_buffer("offset", marginals.clamp(min=1e-6).log())
        self.register_buffer("is_empty", None)
        self.register_buffer("to_knots", None)

    def draw(self, n_rows: list[int], generator: torch.Generator) -> torch.Tensor:
        """Draw `n_rows` codes of each stratum."""
        raise NotImplementedError

    def draw_pair(self, n_rows: list[int], generator: torch.Generator) -> torch.Tensor:
        """Draw `n_rows` codes of each stratum, and then as many independently.

        A loss that multiplies the errors of two samples estimates the squared error without bias
        only if these are independent, as the halves of one permutation of particles are not.
        """
        return torch.cat([self.draw(n_rows, generator) for _ in range(2)])

    def shift(self, change: torch.Tensor) -> None:
        """Add a change, of shape (n_strata, n_levels), to the logits of each stratum."""
        raise NotImplementedError

    def forbid(self, is_empty: np.ndarray) -> None:
        """Give some levels a probability of exactly 0, from now on."""
        if np.any(is_empty):
            self.is_empty = torch.as_tensor(is_empty, device=self.offset.device)

    def to_probabilities(self, logits: torch.Tensor) -> torch.Tensor:
        """Map logits to blocks of probabilities."""
        if self.is_empty is not None:
            # Unlike `masked_fill`, a sum has a gradient that needs no pass over memory.
            logits = logits + self.offset.new_zeros(()).masked_fill(self.is_empty, -torch.inf)
        return self.blocks(logits)

    def generate(self, n_rows: list[int], generator: torch.Generator) -> np.ndarray:
        """Generate `n_rows` of each stratum; bins become weights of the knots at their edges."""
        rows = self(self.draw(n_rows, generator))
        if self.to_knots is not None:
            rows = rows @ self.to_knots
        return rows.double().cpu().numpy()

    @property
    def n_codes(self) -> list[int]:
        """Numbers of codes of each stratum whose mean is that of all rows, but for little error."""
        raise NotImplementedError

    @torch.no_grad()
    def sample(self, classes: torch.Tensor, generator: torch.Generator) -> np.ndarray:
        """Sample a row for each of `classes`, encoded as by the encoder of tables.

        Its blocks sum to 1/√(columns). Classes are one of the columns, so that their values are
        ignored. Rows of several strata are sampled by `StratifiedRows`.
        """
        rows = self.generate([len(classes)], generator)
        return rows / len(self.blocks.sizes) ** 0.5


@savable
class TableNetwork(TableRows):
    """A network from Gaussian codes to probabilities of levels, shared by all strata.

    The network learns from all strata: where noise hides how they differ, only their marginals do.
    If there are several, the one-hot stratum is joined with the code, of width `latent_dim`.
    """

    def __init__(self, network, latent_dim, sizes, marginals):
        super().__init__(sizes, marginals)
        self.network = network
        self.latent_dim = latent_dim

    @staticmethod
    def count_inputs(latent_dim: int, n_strata: int) -> int:
        """Return the width of a code with its stratum."""
        return latent_dim + (n_strata if n_strata > 1 else 0)

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        """Map codes to blocks of probabilities."""
        strata = codes[:, self.latent_dim :]
        offset = strata @ self.offset if strata.shape[1] else self.offset
        return self.to_probabilities(self.network(codes) + offset)

    @property
    def n_codes(self) -> list[int]:
        """Numbers of codes, set by hand; see `TableRows.n_codes`."""
        return [_N_CODES] * len(self.offset)

    def shift(self, change: torch.Tensor) -> None:
        """Shift the offsets of strata; see `TableRows.shift`."""
        self.offset += change

    def draw(self, n_rows: list[int], generator: torch.Generator) -> torch.Tensor:
        """Draw `n_rows` codes of each stratum; on the CPU, so that every device gets the same."""
        codes = torch.randn(sum(n_rows), self.latent_dim, generator=generator, dtype=torch.float32)
        if len(n_rows) > 1:
            strata = torch.eye(len(n_rows)).repeat_interleave(torch.tensor(n_rows), dim=0)
            codes = torch.cat([codes, strata], dim=1)
        return codes.to(self.offset.device)


@savable
class TableParticles(TableRows):
    """Particles of each stratum, with probabilities of levels of their own. A code is an index."""

    def __init__(self, n_particles, generator, sizes, marginals):
        super().__init__(sizes, marginals)
        self.n_particles = n_particles
        noise = torch.randn(sum(n_particles), self.offset.shape[1], generator=generator)
        self.logits = nn.Parameter(self._repeat(self.offset) + noise.to(self.offset))

    def _repeat(self, strata):
        counts = torch.tensor(self.n_particles, device=strata.device)
        return strata.repeat_interleave(counts, dim=0)

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        """Return the blocks of probabilities of particles."""
        # Its gradient takes a third of the time of that of `logits[codes]`.
        return self.to_probabilities(self.logits.index_select(0, codes))

    @property
    def n_codes(self) -> list[int]:
        """Numbers of particles; see `TableRows.n_codes`."""
        return self.n_particles

    def shift(self, change: torch.Tensor) -> None:
        """Shift the logits of particles; see `TableRows.shift`."""
        self.logits.data += self._repeat(change)

    def draw(self, n_rows: list[int], generator: torch.Generator) -> torch.Tensor:
        """Draw `n_rows` particles of each stratum in random order, repeatedly if need be."""
        starts = np.cumsum([0, *self.n_particles]).tolist()
        codes = [
            start + draw_in_rounds(n_particles, n, generator)
            for start, n_particles, n in zip(starts, self.n_particles, n_rows, strict=False)
        ]
        return torch.cat(codes).to(self.offset.device)


@savable
class StratifiedRows(nn.Module):
    """Rows of strata of records, in proportion to their estimated counts.

    If strata are the levels of another column, `start` is the position of the first of these among
    the levels of all columns. Shares sum to 1.
    """

    shares: torch.Tensor

    def __init__(self, rows: TableRows, shares: np.ndarray, start: int | None) -> None:
        super().__init__()
        self.rows = rows
        self.register_buffer("shares", torch.as_tensor(shares, dtype=torch.float64))
        self.start = start

    @torch.no_grad()
    def sample(self, classes: torch.Tensor, generator: torch.Generator) -> np.ndarray:
        """Sample a row for each of `classes`, whose values are ignored; see `TableRows.sample`."""
        n_rows, n_strata = len(classes), len(self.shares)
        # Stratified counts: each differs by less than 1 from its share.
        points = torch.rand(1, generator=generator, dtype=torch.float64) + torch.arange(n_rows)
        strata = torch.searchsorted(self.shares.cumsum(0), points / n_rows).clamp(max=n_strata - 1)
        counts = strata.bincount(minlength=n_strata)
        rows = self.rows.generate(counts.tolist(), generator)
        n_columns = len(self.rows.blocks.sizes)
        if self.start is not None:
            block = np.eye(n_strata).repeat(counts.numpy(), axis=0)
            rows = np.hstack([rows[:, : self.start], block, rows[:, self.start :]])
            n_columns += 1
        return rows[torch.randperm(n_rows, generator=generator).numpy()] / n_columns**0.5


def draw_in_rounds(n_particles: int, n: int, generator: torch.Generator) -> torch.Tensor:
    """Draw `n` positions of particles: all of them in random order, repeatedly."""
    n_rounds = max(1, -(-n // n_particles))
    order = [torch.randperm(n_particles, generator=generator) for _ in range(n_rounds)]
    return torch.cat(order)[:n]
