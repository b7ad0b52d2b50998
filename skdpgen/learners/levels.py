# SPDX-License-Identifier: BSD-3-Clause
"""A learner: rows that have released tables, those of each level of a column if they have such."""

from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import nn

from .tables import Levels, fit_to_tables

# What the batches of a level have of a batch, at the least.
_LEAST_BATCH = 0.25


class RowsByLevel(nn.Module):
    """Rows for each level of a column, in proportion to how many records each is taken to have.

    Parameters
    ----------
    parts : list of TableRows
        For each level, those of the other columns.
    shares : ndarray of shape (n_parts,)
        With sum 1.
    start : int
        Where the levels are among those of all columns.
    """

    def __init__(self, parts, shares, start):
        super().__init__()
        self.parts = nn.ModuleList(parts)
        self.register_buffer("shares", torch.as_tensor(shares, dtype=torch.float64))
        self.start = start

    def sample(self, classes, generator):
        """Return a row for each of `classes`, which are not looked at; see `TableRows.sample`."""
        n_rows = len(classes)
        # As near to the shares as it goes, in random order.
        places = torch.rand(1, generator=generator, dtype=torch.float64) + torch.arange(n_rows)
        level = torch.searchsorted(self.shares.cumsum(0), places / n_rows)
        level = level.clamp(max=len(self.parts) - 1)[torch.randperm(n_rows, generator=generator)]
        parts = []
        for which in level.unique().tolist():
            chosen = (level == which).nonzero().flatten()
            rows = self.parts[which].sample(classes[chosen], generator)
            parts.append((chosen, self._complete(rows, which)))
        chosen, rows = zip(*parts, strict=True)
        return np.concatenate(rows)[torch.cat(chosen).argsort().numpy()]

    def _complete(self, rows, level):
        """Put in the column of the levels."""
        n_others = len(self.parts[level].blocks.sizes)
        block = np.zeros((len(rows), len(self.parts)))
        block[:, level] = 1 / n_others**0.5
        rows = np.hstack([rows[:, : self.start], block, rows[:, self.start :]])
        return rows * (n_others / (n_others + 1)) ** 0.5


def fit_to_release(tables, make_rows, levels, *, n_steps, batch_size, **training):
    """Train rows until they have the released tables, but for their noise.

    Where records are told apart by the level of a column, each level has rows of its own, which
    are trained until their tables are down to the noise. That is sooner where there are few.

    Parameters
    ----------
    tables : skdpgen.privacy.Tables
    make_rows : callable
        Gives `TableRows`, from a share of the records, the sizes of columns and noisy marginals.
    levels : Levels
        What the tables say of each level.
    n_steps, batch_size, **training
        As in `fit_to_tables`.

    Returns
    -------
    rows : TableRows or RowsByLevel
    losses : list of float
        Of `fit_to_tables`; of each level, one after the other.
    """
    if tables.by is None:
        make_rows = partial(make_rows, 1.0)
        return fit_to_tables(
            make_rows, tables, levels, n_steps=n_steps, batch_size=batch_size, **training
        )
    counts, std = tables.count_records()
    counts = np.maximum(counts, max(std, 1.0))
    shares, parts, losses = counts / counts.sum(), [], []
    is_empty = np.delete(levels.is_empty, tables.by)
    for level, share in enumerate(shares):
        of_level = tables.of_part(level)
        rows, of_losses = fit_to_tables(
            partial(make_rows, share),
            of_level,
            # What is empty is told best by all records together.
            replace(Levels.of(of_level, counts[level], False), is_empty=is_empty),
            n_steps=n_steps,
            batch_size=max(2, round(max(share, _LEAST_BATCH) * batch_size)),
            **training,
        )
        parts.append(rows)
        losses += of_losses
    return RowsByLevel(parts, shares, tables.by.start).eval(), losses
