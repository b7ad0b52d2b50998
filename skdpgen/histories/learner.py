# SPDX-License-Identifier: BSD-3-Clause
"""Particles of persons with rows in order, fitted to released two-way tables."""

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
import torch
from torch import nn

from ..learners.marginals import Marginals
from ..learners.table_rows import SoftmaxBlocks, TableRows, draw_in_rounds
from ..learners.tables import CONSTANTS, match_marginals
from ..learners.training import Training, descend_to_noise
from ..mechanisms.two_way import own_and_later
from ..messages import Message
from ..quality import (
    WITHIN_NOISE,
    advise_on_columns,
    find_signal,
    warn_of_absent,
    warn_of_fit,
    warn_of_noise,
    withdraw,
)
from ..registry import savable
from ..tables.quality import warn_of_table
from ..tables.report import describe
from .shrinkage import TIME_RATE, shrink_tables

# Numbers of a batch at most, and persons in it at least and at most: set by hand, for speed.
_MAX_NUMBERS, _LEAST_BATCH, _MOST_BATCH = 2**21, 400, 2000
# Standard deviation of initial logits, of 0.1, 0.3 and 0.6, by seed 0 of both swings of
# run_histories_calendar.py.
_SPREAD = 0.3
# Steps of the training between two draws of the dates of particles; set by hand.
_SAME_DATES = 5
# Largest share of persons that are few: with rows that are left out without a warning.
_MANY_MORE = 0.05


@savable
class HistoryParticles(TableRows):
    """Particles of persons, each with its own probabilities of levels in each of M rows.

    Given a particle, all columns are independent: those of the person, among them the number of
    rows, and those of each row. How columns go together, within a row and from a row to the next,
    is in the differences between particles. Their rows have no season: the kernels of the cells
    in which their dates are move them; see `make_kernels`.

    Parameters
    ----------
    n_particles : int
    generator : torch.Generator
        Generator of the initial logits.
    history : HistorySizes
    marginals : ndarray of shape (n_levels,)
        Initial probabilities, of the levels of persons and of rows.
    has_gaps : bool
        Whether the last column of rows holds gaps: the first row has none, and others have one.
    kernels : list of list of ndarray of shape (n_cells, n_levels, n_levels), default=()
        From `make_kernels`, by calendar and column.
    has_undated : bool, default=False
        Whether rows but the first may have no gap, as they have no order.
    """

    is_possible: torch.Tensor
    times: torch.Tensor
    kernels: torch.Tensor

    def __init__(
        self, n_particles, generator, history, marginals, has_gaps, kernels=(), has_undated=False
    ):
        starts = torch.tensor(marginals[None], dtype=torch.float32)
        super().__init__([*history.persons, *history.rows], starts)
        self.history, self.n_particles = history, n_particles
        self.person_blocks = SoftmaxBlocks(list(history.persons))
        self.row_blocks = SoftmaxBlocks(list(history.rows))
        is_possible = torch.ones(history.max_rows, sum(history.rows), dtype=torch.bool)
        if has_gaps:
            is_possible[0, -history.rows[-1] : -1] = False
            is_possible[1:, -1] = has_undated
        self.register_buffer("is_possible", is_possible)
        # The cells of the dates that each row had when they were drawn last.
        times = torch.zeros(n_particles, history.max_rows, len(kernels), dtype=torch.int64)
        self.register_buffer("times", times)
        # Of each calendar, the columns that it moves.
        self.moved = [[i for i, k in enumerate(parts) if k is not None] for parts in kernels]
        flat = [torch.as_tensor(k).flatten() for parts in kernels for k in parts if k is not None]
        self.register_buffer("kernels", torch.cat(flat or [torch.empty(0)]).to(starts))
        persons, rows = self.offset[0].split([sum(history.persons), sum(history.rows)])

        def perturb(levels, *shape):
            noise = _SPREAD * torch.randn(*shape, len(levels), generator=generator)
            return levels + noise.to(levels)

        self.persons = nn.Parameter(perturb(persons, n_particles))
        # Rows of a particle start alike: what persons have in common with themselves lasts, unless
        # the tables of steps say that it does not.
        lasting = perturb(rows, n_particles, 1)
        self.rows = nn.Parameter(lasting.repeat(1, history.max_rows, 1))

    def find_probabilities(
        self, codes: torch.Tensor, is_dated: bool = True
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Return probabilities of persons, (n, n_levels), and of rows, (n, M, n_levels).

        Those of rows are in the cells of their dates, or without a season.
        """
        persons, rows = self.persons[codes], self.rows[codes]
        if self.is_empty is not None:
            ends = persons.shape[1], rows.shape[2]
            for_persons, for_rows = self.is_empty.split(ends)
            persons = persons.masked_fill(for_persons, -torch.inf)
            rows = rows.masked_fill(for_rows, -torch.inf)
        rows = rows.masked_fill(~self.is_possible, -torch.inf)
        found = self.row_blocks(rows.flatten(0, 1))
        if is_dated:
            found = self.move(found, self.times[codes].flatten(0, 1))
        return self.person_blocks(persons), found.view(rows.shape)

    def move(self, rows: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
        """Return the probabilities of rows in the cells of their dates, (n, n_calendars)."""
        columns, start = list(rows.split(self.history.rows, dim=1)), 0
        for moved, n_cells, cells in zip(self.moved, self.history.calendars, times.T, strict=True):
            # One product for each cell and column.
            order, numbers = cells.argsort(), cells.bincount(minlength=n_cells).tolist()
            back = order.argsort() if moved else order
            for i in moved:
                size, end = columns[i].shape[1], start + n_cells * columns[i].shape[1] ** 2
                kernels, start = self.kernels[start:end].view(n_cells, size, size), end
                pairs = zip(columns[i][order].split(numbers), kernels, strict=True)
                columns[i] = torch.cat([part @ kernel for part, kernel in pairs])[back]
        return torch.cat(columns, dim=1)

    @torch.no_grad()
    def draw_times(self, draw: Callable) -> None:
        """Draw the dates of all rows; ``draw(persons, rows)`` returns their cells of calendars."""
        if len(self.history.calendars):
            codes = torch.arange(self.n_particles, device=self.times.device)
            parts = self.find_probabilities(codes, is_dated=False)
            self.times.copy_(torch.as_tensor(draw(*(p.double().cpu().numpy() for p in parts))))

    def find_shares(self, persons: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the mean shares that each row, and each pair of a row and the next, has.

        A person with n rows has the share 1/n in each of them, and 1 / (n - 1) in pairs.
        """
        M = self.history.max_rows
        numbers = persons[:, -M - 1 : -1] + torch.nn.functional.pad(persons[:, -1:], (M - 1, 0))
        counts = torch.arange(1, M + 1, device=persons.device)
        rows = (numbers / counts).flip(1).cumsum(1).flip(1)
        steps = (numbers[:, 1:] / counts[:-1]).flip(1).cumsum(1).flip(1)
        return rows, steps

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        """Return the probabilities of persons, and of their mean row."""
        persons, rows = self.find_probabilities(codes)
        shares = self.find_shares(persons)[0]
        return torch.cat([persons, (shares[:, None] @ rows)[:, 0]], dim=1)

    def shift(self, change: torch.Tensor) -> None:
        """Shift the logits of persons and of all rows; see `TableRows.shift`."""
        persons, rows = change[0].split([self.persons.shape[1], self.rows.shape[2]])
        self.persons.data += persons
        self.rows.data += rows

    def draw(self, n_rows: list[int], generator: torch.Generator) -> torch.Tensor:
        """Draw particles in random order, repeatedly if need be."""
        codes = draw_in_rounds(self.n_particles, n_rows[0], generator)
        return codes.to(self.offset.device)

    @torch.no_grad()
    def draw_persons(
        self, n_persons: int, generator: torch.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Draw probabilities of persons and of their rows, without a season."""
        codes = self.draw([n_persons], generator)
        parts = self.find_probabilities(codes, is_dated=False)
        persons, rows = (part.double().cpu().numpy() for part in parts)
        return persons, rows

    @torch.no_grad()
    def sample(self, classes: torch.Tensor, generator: torch.Generator) -> np.ndarray:
        """Sample a person with one of their rows for each of `classes`; see `TableRows.sample`."""
        persons, rows = self.find_probabilities(self.draw([len(classes)], generator))
        # Persons without rows get one: these are not in the marginals of rows.
        shares = self.find_shares(persons)[0] + 1e-12
        chosen = torch.multinomial(shares, 1, generator=generator)[:, 0]
        rows = rows[torch.arange(len(rows)), chosen]
        joined = torch.cat([persons[:, : -self.history.persons[-1]], rows], dim=1)
        n_columns = len(self.history.persons) - 1 + len(self.history.rows)
        return joined.double().cpu().numpy() / n_columns**0.5


@dataclass(frozen=True)
class HistoryTarget:
    """The released tables as shares of the persons: targets of the training.

    Attributes
    ----------
    tables : list of (tensor, tensor)
        Shares, and 1 where these have a cell, in the order of release.
    noise_energy : float
        Expected contribution of the noise to the gap.
    """

    tables: list
    noise_energy: float

    @classmethod
    def of(cls, released: list, history, waves, n_records: float, device) -> "HistoryTarget":
        """Return the targets of released tables, shrunk in the waves of `list_waves`, if any."""
        rows, persons, links, times, steps = released
        # Calendars are matched by kernels.
        numbers = times.cells[:, sum(history.calendars) :]
        tables = [_join(rows), _join(persons)]
        tables += [(part, np.ones_like(part)) for part in (links.cells, numbers, steps.cells)]
        stds = [part.pairs_std for part in released]
        energies = [std**2 * mask.sum() for std, (_, mask) in zip(stds, tables, strict=True)]
        if waves is not None:
            own, others, in_order = waves
            sides: list[tuple] = [(others, others), (own, own), (own, [*others, in_order])]
            sides += [(others, [in_order], TIME_RATE), (2 * others, others)]
            for i, ((cells, mask), std) in enumerate(zip(tables, stds, strict=True)):
                cells, energies[i] = shrink_tables(cells, mask, std, *sides[i])
                tables[i] = cells, mask
        pairs = [(cells / n_records, mask) for cells, mask in tables]
        as_tensor = partial(torch.tensor, dtype=torch.float32, device=device)
        found = [(as_tensor(cells), as_tensor(mask)) for cells, mask in pairs]
        return cls(found, float(sum(energies)) / n_records**2)

    def gap(self, first: list, second: list) -> torch.Tensor:
        """Estimate the squared distance to the tables, from two independent samples."""
        pairs = zip(first, second, self.tables, strict=True)
        return torch.stack([((a - t) * mask * (b - t)).sum() for a, b, (t, mask) in pairs]).sum()


def make_tables(particles: HistoryParticles, persons: torch.Tensor, rows: torch.Tensor) -> list:
    """Return the mean tables of persons and rows, as those of a `HistoryTarget`."""
    n, M, n_levels = rows.shape
    shares, steps = particles.find_shares(persons)
    shared = rows * shares[..., None]
    # Means of the first k rows of a person with k rows, and of their numbers in the order.
    first = (
        torch.eye(M, device=rows.device).cumsum(0).T / torch.arange(1, M + 1, device=rows.device)
    ).T
    counts, means = persons[:, -M - 1 :], rows.cumsum(1) * first[:, :1]
    # k and its mean row are not independent, as other columns of the person and rows are.
    of_counts = [
        torch.cat(
            [counts[:, k] @ means[:, min(k, M - 1)], counts[:, k].sum() * first[min(k, M - 1)]]
        )
        for k in range(M + 1)
    ]
    mean_row = torch.cat([shared.sum(1), shares], dim=1)
    links = [persons[:, : -M - 2].T @ mean_row, mean_row.new_zeros(1, n_levels + M)]
    before = (rows[:, :-1] * steps[..., None]).reshape(-1, n_levels)
    later = (rows[:, 1:] * steps[..., None]).sum(1)
    tables = [
        shared.reshape(-1, n_levels).T @ rows.reshape(-1, n_levels),
        persons.T @ persons,
        torch.cat([*links, torch.stack(of_counts)]),
        shared.sum(0).T,
        torch.cat([before.T @ rows[:, 1:].reshape(-1, n_levels), rows[:, 0].T @ later]),
    ]
    return [table / n for table in tables]


def _join(tables):
    """Return the two-way tables as one array, and 1 where it has a cell of a pair."""
    cells, mask = np.zeros((2, sum(tables.sizes), sum(tables.sizes)))
    for (own, later), table in zip(own_and_later(tables.sizes), tables.with_later, strict=True):
        cells[own, later], mask[own, later] = table, 1
    return cells, mask


def fit_particles(
    particles: HistoryParticles,
    released: list,
    marginals: Marginals,
    waves: tuple,
    draw_times: Callable,
    *,
    generator: torch.Generator,
    n_steps: int,
    learning_rate: float,
    verbose: int = 0,
) -> tuple[HistoryParticles, list[float]]:
    """Train particles to match released tables, up to the noise.

    See `HistoryTables.run`, `read_tables`, `list_waves`, `HistoryParticles.draw_times` and, for
    other parameters, `fit_to_tables`. Return the particles, on the CPU, and the losses.
    """
    history, device = particles.history, particles.offset.device
    target = HistoryTarget.of(released, history, waves, marginals.n_records, device)
    particles.forbid(marginals.is_empty)
    most = max(_LEAST_BATCH, _MAX_NUMBERS // history.width)
    half = max(1, min(particles.n_particles, _MOST_BATCH, most) // 2)
    training, steps = Training(particles, learning_rate, memory=0.99), itertools.count()

    def loss():
        if next(steps) % _SAME_DATES == 0:
            particles.draw_times(draw_times)
        persons, rows = particles.find_probabilities(particles.draw_pair([half], generator))
        halves = zip(persons.chunk(2), rows.chunk(2), strict=True)
        return target.gap(*(make_tables(particles, *half) for half in halves))

    losses = descend_to_noise(training, loss, target.noise_energy, n_steps, verbose)
    particles = training.finish(lambda: particles.draw([2 * half], generator))
    particles.draw_times(draw_times)
    n_batches = min(CONSTANTS.most_batches, 1 + len(losses) // CONSTANTS.steps_per_batch)
    match_marginals(particles, [marginals], n_batches * [[2 * half]], generator)
    return particles, losses


def read_tables(released: list, format, n_records: float) -> tuple[Marginals, pd.DataFrame]:
    """Estimate the marginals of persons and rows, describe columns, and warn of poor quality.

    Counts of columns of rows are of persons, who have one share each.
    """
    persons, std = released[1], max(part.pairs_std for part in released)
    advise_on_columns(format.list_advice())
    present, present_std = persons.count_records()
    absent = warn_of_absent(present / n_records, present_std / n_records)
    # Without records, all else is noise.
    is_noise = absent == "all" or warn_of_noise(
        find_signal(np.concatenate([part.cells.ravel() for part in released]), std),
        "tables of persons and rows",
    )
    if absent:
        n_records *= max(present / n_records, present_std / n_records, 1 / n_records)
    marginals, numbers = estimate_marginals(released, format, n_records)
    # Numbers of rows are no column.
    counts, noise = (np.delete(part, numbers) for part in (marginals.counts, marginals.std))
    schema, blocks = format.table.schema, format.table.blocks
    report = describe(schema, counts, noise, n_records, {name: std for name, _ in blocks})
    if not is_noise:
        warn_of_table(
            report,
            schema,
            None,
            {name: counts[where] for name, where in blocks},
            {name: noise[where.start] for name, where in blocks},
            format.table.inferred_parameters,
            has_absent=absent is not None,
        )
        _excuse_orders(format, counts, noise)
    if absent != "all":
        _warn_of_order(format)
        _warn_of_counts(marginals.counts[numbers], marginals.std[numbers.start], n_records)
    return marginals, report


def estimate_marginals(released, format, n_records):
    """Estimate the marginals of persons and rows; return the slice of the numbers of rows, too."""
    (rows, persons), sizes = released[:2], format.history_sizes
    end = sum(sizes.persons)
    numbers = slice(end - sizes.persons[-1], end)
    is_optional, is_knot, _ = (
        # Any number of rows may be that of nobody.
        np.insert(mask, [numbers.start] * sizes.persons[-1], fill)
        for mask, fill in zip(format.table.find_masks(), (True, False, False), strict=True)
    )
    parts = [
        Marginals.of(persons, n_records, is_optional[:end], is_knot[:end]),
        Marginals.of(rows, n_records, is_optional[end:], is_knot[end:]),
    ]
    counts, std, is_empty, is_knot = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("counts", "std", "is_empty", "is_knot")
    )
    if format.gap_block is not None:
        # First rows have none, whatever the noise.
        is_empty[-1] = False
    is_empty[numbers] = find_absent(counts[numbers], std[numbers], is_empty[numbers])
    return Marginals(counts, std, n_records, is_empty, is_knot), numbers


def find_undated(released: list, format) -> bool:
    """Return whether released counts show rows without an order, among those of persons with rows.

    The first row of a person has no gap; later ones have none if they have no order.
    """
    if format.gap_block is None:
        return False
    _, persons, _, times, _ = released
    of_gaps = times.cells[-1, 1 + sum(format.history_sizes.calendars) :]
    of_first = persons.pair(len(persons.sizes) - 2, len(persons.sizes) - 1)[-1, 1:]
    noise = math.hypot(
        times.pairs_std * math.sqrt(len(of_gaps)), persons.pairs_std * math.sqrt(len(of_first))
    )
    return bool(of_gaps.sum() + of_first.sum() > CONSTANTS.clear * noise)


def find_absent(counts, std, is_empty):
    """Return which numbers of rows nobody has: those at an end that are within noise together.

    `is_empty` are those whose own counts are within noise, not all of them.
    """
    present = np.flatnonzero(~is_empty)
    is_absent = np.zeros_like(is_empty)
    for end in slice(present[0]), slice(present[-1] + 1, None):
        noise = WITHIN_NOISE * math.sqrt((std[end] ** 2).sum())
        is_absent[end] = counts[end].sum() <= noise
    return is_absent


def _excuse_orders(format, counts, noise):
    """Withdraw findings on the order and its gaps that are none of them.

    All first orders may be equal, and so may all gaps, which come back then; without later rows
    there are none. Orders are often spread evenly.
    """
    block = format.gap_block
    if block is None:
        return
    order, values = format.order_type, np.r_[block.knots, block.atoms]
    is_clear = counts[block.where][: block.n_levels] > WITHIN_NOISE * noise[block.where.start]
    found = values[is_clear]
    withdraw(block.name, ("missing",))
    # Orders are rounded to units: gaps that differ by less are equal.
    step = 10.0 ** -(order.decimals or 0) / order.units_per_day
    if len(found) and np.ptp(found) < step / 2:
        withdraw(block.name, ("values unresolved", "constant", "cut"))
    if format.max_rows > 1 and found.max(initial=0) > 0:
        withdraw(format.order_name, ("constant", "identifiers"))
    if np.any(found % 1 > step):
        # Rows are at other hours than the first one.
        withdraw(format.order_name, ("hours",))


def _warn_of_order(format):
    """Warn if no cells are found by which rows of a person could be in order."""
    if format.order is not None and format.gap_block is None:
        warn_of_fit(
            Message(
                "The order, {column!r}, has no numbers or dates by released counts: rows are in "
                "the order of the table. Declare how it is written, as {date_format}, or leave "
                "{order} out.",
                {"column": format.order},
            )
        )


def _warn_of_counts(counts, std, n):
    """Warn if of n persons most have no rows, or one, or many that are left out.

    `counts` are of persons with so many rows, and `std` is that of their noise.
    """

    def are_few(levels):
        noise = CONSTANTS.clear * std * math.sqrt(len(levels))
        return levels.sum() < max(_MANY_MORE * n, noise) < n / 2

    if are_few(counts[1:]):
        warn_of_fit(
            Message(
                "Hardly any person has rows in the second table, by released counts. Check that "
                "{key} names a column with the same identifiers in both tables."
            )
        )
    elif are_few(counts[2:]):
        warn_of_fit(
            "Hardly any person has several rows in the second table, by released counts. Give the "
            "table of persons first; tables with one row for each person can be merged."
        )
    if counts[-1] > max(_MANY_MORE * n, CONSTANTS.clear * std):
        warn_of_fit(
            Message(
                "About {share:.0%} of the persons have more than {max_rows}{n} rows, and those "
                "after the first are left out. Raise it, which costs no privacy.",
                {"share": counts[-1] / n, "n": len(counts) - 2},
            )
        )
