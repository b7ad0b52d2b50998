"""A learner: rows of several groups of records, each fitted to the tables of its own."""

from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import nn

from ..privacy.mechanisms.tables import own_and_later
from .tables import Levels, fit_to_tables

# What groups' batches have of a batch, at the least.
_LEAST_BATCH = 0.25
# Steps from where all records were fitted, relative to those steps.
_FURTHER = 0.4
# Rows by which tables are told that were fitted.
_ROWS = 20_000


class GroupedRows(nn.Module):
    """Rows of groups, in proportion to how many records each is taken to have.

    Parameters
    ----------
    parts : list of TableRows
    shares : ndarray of shape (n_groups,)
        With sum 1.
    left_out : (slice, ndarray) or None
        Where the column by which groups are told apart belongs, and the level that each group has
        of it, if `parts` have no such column.
    """

    def __init__(self, parts, shares, left_out=None):
        super().__init__()
        self.parts = nn.ModuleList(parts)
        self.register_buffer("shares", torch.as_tensor(shares, dtype=torch.float64))
        self.left_out = left_out

    def sample(self, classes, generator):
        """Return a row for each of `classes`, which are not looked at; see `TableRows.sample`."""
        n_rows = len(classes)
        # As near to the shares as it goes, in random order.
        places = torch.rand(1, generator=generator, dtype=torch.float64) + torch.arange(n_rows)
        group = torch.searchsorted(self.shares.cumsum(0), places / n_rows)
        group = group.clamp(max=len(self.parts) - 1)[torch.randperm(n_rows, generator=generator)]
        parts = []
        for g in group.unique().tolist():
            chosen = (group == g).nonzero().flatten()
            rows = self.parts[g].sample(classes[chosen], generator)
            parts.append((chosen, rows if self.left_out is None else self._complete(rows, g)))
        chosen, rows = zip(*parts, strict=True)
        return np.concatenate(rows)[torch.cat(chosen).argsort()]

    def _complete(self, rows, group):
        """Put in the column of the groups."""
        where, levels = self.left_out
        n_columns = len(self.parts[group].blocks.sizes) + 1
        block = np.zeros((len(rows), where.stop - where.start))
        block[:, levels[group]] = 1 / n_columns**0.5
        rows = rows * ((n_columns - 1) / n_columns) ** 0.5
        return np.hstack([rows[:, : where.start], block, rows[:, where.start :]])


def fit_to_release(
    released, make_rows, levels, is_spare, *, n_steps, batch_size, generator, verbose=0, **training
):
    """Train rows until they have the released tables, but for their noise.

    Where records are told apart, each group has rows of its own. They start from those that fit
    the tables of all records, if these were released: what a group's tables do not show above
    their noise stays as it is among all.

    Parameters
    ----------
    released : skdpgen.releases.tables.ReleasedTables
    make_rows : callable
        Gives `TableRows`, from the sizes of columns, noisy marginals, and a share of the records.
    levels : Levels
        What the tables say of each level.
    is_spare : ndarray of bool of shape (n_levels,)
        As in `Levels.of`.
    n_steps, batch_size, generator, verbose, **training
        As in `fit_to_tables`.

    Returns
    -------
    rows : TableRows or GroupedRows
    losses : list of float
        Of `fit_to_tables`, one after the other.
    """
    training |= {"generator": generator, "verbose": verbose}
    pooled, groups, grouped = released.pooled, released.groups, released.grouped
    losses, start = [], None
    if pooled is not None:
        if grouped is not None and groups.are_single:
            pooled, levels = pooled.without(groups.column), levels.select(released.is_kept)
        start, losses = fit_to_tables(
            partial(make_rows, 1.0),
            pooled,
            levels,
            n_steps=n_steps,
            batch_size=batch_size,
            **training,
        )
        if grouped is None:
            return start, losses
    counts, std = grouped.count_records()
    counts = np.maximum(counts, max(std, 1.0))
    shares, parts = counts / counts.sum(), []
    for g, share in enumerate(shares):
        tables = grouped.of_group(g)
        levels = Levels.of(tables, counts[g], is_spare[released.is_kept])
        if not groups.are_single and released.hard:
            import dataclasses
            bad=levels.is_empty.copy(); bad[released.own] |= groups.members[:,g]==0
            levels=dataclasses.replace(levels,is_empty=bad)
        size = max(2, round(max(share, _LEAST_BATCH) * batch_size))
        if start is None:
            make, n_group = partial(make_rows, share), n_steps
        else:
            tables = _shrink(tables, start, levels, generator)
            make, n_group = partial(start.moved_to, share), round(_FURTHER * n_steps)
        part, further = fit_to_tables(
            make, tables, levels, n_steps=max(1, n_group), batch_size=size, **training
        )
        parts.append(part)
        losses = losses + further
    left_out = (released.own, groups.members.argmax(axis=0)) if groups.are_single else None
    return GroupedRows(parts, shares, left_out), losses


@torch.no_grad()
def _shrink(tables, start, levels, generator):
    """Return tables on the way from those of rows that were fitted before to noisy ones.

    With a squared distance R between both, of which N is the noise's, the share 1 - N/R of the way
    is the best that can be told (James and Stein), and leaves N·(1 - N/R) of noise.
    """
    n_records, sizes = levels.n_records, tables.sizes
    rows = start.moved_to(1.0, sizes, levels.marginals())
    made = rows(rows.draw(_ROWS, generator)).double().cpu()
    cells = [(made[:, own].T @ made[:, later]).flatten() for own, later in own_and_later(sizes)]
    cells = torch.cat(cells).numpy() * (n_records / len(made))
    columns = made.mean(0).numpy() * tables.weight * n_records
    gap = 2 * np.square(tables.cells - cells).sum() + np.square(tables.columns - columns).sum()
    noise = tables.columns_std**2 * (cells.size + columns.size)
    way = max(0.0, 1 - noise / gap) if gap > 0 else 0.0
    return replace(
        tables,
        cells=cells + way * (tables.cells - cells),
        columns=columns + way * (tables.columns - columns),
        pairs_std=way**0.5 * tables.pairs_std,
        columns_std=way**0.5 * tables.columns_std,
    )


def count_levels(released, n_records, is_spare):
    """Return the `Levels` of all columns, in the order of rows.

    Where there are tables of groups only, they are added up.
    """
    if released.pooled is not None:
        return Levels.of(released.pooled, n_records, is_spare)
    grouped, is_kept = released.grouped, released.is_kept
    counts, std = np.zeros(len(is_kept)), np.zeros(len(is_kept))
    of_groups, std_of_groups = grouped.count_levels()
    counts[is_kept], std[is_kept] = of_groups.sum(axis=0), std_of_groups * len(of_groups) ** 0.5
    of_own, std_of_own = grouped.count_records()
    counts[~is_kept], std[~is_kept] = released.groups.members @ of_own, std_of_own
    return Levels.from_counts(counts, std, released.sizes, n_records, is_spare)


def count_present(released):
    """Return the noisy number of the records in the tables, and its standard deviation."""
    if released.pooled is not None:
        return released.pooled.count_records()
    counts, std = released.grouped.count_records()
    return counts.sum(), std * len(counts) ** 0.5
