# SPDX-License-Identifier: BSD-3-Clause
"""Two-way tables of persons with several rows, in order, of which each person has one share.

A record is a person: codes of the person, and of n ≤ M rows in order. Let x_t ⊗ y_t be a table to
which row t contributes, with non-negative factors of norm at most 1 (see `HatBasis`). A person
contributes the mean Σ_t (x_t ⊗ y_t) / n over the rows. By the triangle inequality its norm is at
most max_t ‖x_t‖·‖y_t‖ ≤ 1, whether rows are alike or not, and for any n and M. The sum of n equal
rows would have the norm n, and a weight of 1/√M would not bound it by 1. No entry is negative, so
that two such contributions are at most √2 apart. The same holds of the n - 1 pairs of a row and
the next one, with a weight of 1 / (n - 1), and of several tables together, divided by the root of
their number. So a person costs what a record with one row costs. The number of a row, its cells of
calendars, and the codes of a person's first row are further columns of it, of weights of norm at
most 1, and are covered by the same bounds.

*Integer arithmetic.* Each factor is rounded towards zero, one of them with the weight, so that a
product is at most its exact value and at least 0, and the bounds hold. Rounding of the weights
themselves is below `MARGIN`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from ..mechanisms.base import FixedSensitivity, to_grid
from ..mechanisms.codes import HatBasis
from ..mechanisms.two_way import CONSTANTS, ProductMechanism, TablesMechanism
from ..registry import savable

# Names of the releases.
ROWS, PERSONS, LINKS = "row tables", "person tables", "person-row tables"
TIMES, STEPS = "time tables", "step tables"


@savable
@dataclass(frozen=True)
class HistorySizes:
    """Numbers of levels of the columns of persons and of their rows.

    The codes of a person are those of the person, of which the last is the number of rows, and
    those of M rows with their cells of calendars, one after the other. M + 1 stands for all larger
    numbers of rows, of which M are used. Codes of rows beyond the number are ignored.

    Attributes
    ----------
    persons : tuple of int
        Numbers of levels of the columns of a person; the last one has M + 2, for the number of
        rows.
    rows : tuple of int
        Numbers of levels of the columns of a row.
    max_rows : int
        M.
    calendars : tuple of int, default=()
        Numbers of cells of the calendars of a row's order.
    """

    persons: tuple[int, ...]
    rows: tuple[int, ...]
    max_rows: int
    calendars: tuple[int, ...] = ()

    @property
    def numbered_rows(self) -> tuple[int, ...]:
        """Numbers of levels of the columns of a row, and of its number in the order."""
        return (*self.rows, self.max_rows)

    @property
    def times(self) -> tuple[int, ...]:
        """Numbers of cells of the calendars of a row, and of its numbers in the order."""
        return (*self.calendars, self.max_rows)

    @property
    def width(self) -> int:
        """Number of levels of a person with M rows."""
        return sum(self.persons) + self.max_rows * (sum(self.rows) + sum(self.calendars))

    def split(self, codes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return codes of persons, their numbers of rows, and of rows, (n, M, n_columns).

        Those of rows have the cells of their calendars last.
        """
        n, M, n_codes = len(self.persons), self.max_rows, len(self.rows) + len(self.calendars)
        # The last column of persons is their number of rows, which may be above M.
        n_rows = codes[:, n - 1].round().clamp(0, M).long()
        return codes[:, :n], n_rows, codes[:, n:].reshape(len(codes), M, n_codes)

    def list_persons(self, codes: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Return codes of persons, who have one share each."""
        return codes[:, : len(self.persons)], None

    def list_rows(self, codes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return codes of all rows with their times, those of their persons, and their shares."""
        persons, n_rows, rows = self.split(codes)
        numbers = torch.arange(self.max_rows, device=codes.device).expand(len(codes), -1)
        rows = torch.cat([rows, numbers[..., None].to(rows)], dim=2)
        is_row = numbers < n_rows[:, None]
        person = is_row.nonzero()[:, 0]
        return rows[is_row], persons[person], (1 / n_rows[person]).to(rows)[:, None]

    def list_links(self, codes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return codes of the persons of all rows, those of the rows, and their shares."""
        rows, persons, shares = self.list_rows(codes)
        return persons, rows[:, [*range(len(self.rows)), -1]], shares

    def list_times(self, codes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return codes of all rows, those of their times, and their shares."""
        rows, _, shares = self.list_rows(codes)
        return *rows.split([len(self.rows), len(self.times)], dim=1), shares

    def list_steps(self, codes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Return codes of rows with the first row of the person, of the next row, and shares."""
        _, n_rows, rows = self.split(codes)
        rows = rows[..., : len(self.rows)]
        n_steps = (n_rows - 1).clamp(min=0)
        is_step = torch.arange(self.max_rows - 1, device=codes.device) < n_steps[:, None]
        shares = (1 / n_steps[is_step.nonzero()[:, 0]]).to(rows)[:, None]
        before = torch.cat([rows[:, :-1], rows[:, :1].expand_as(rows[:, :-1])], dim=2)
        return before[is_step], rows[:, 1:][is_step], shares

    def make_mechanisms(self) -> list["HistoryTablesMechanism | LinkTablesMechanism"]:
        """Return the mechanisms of all tables, in the order of their release."""
        own, rows, M = self.persons, self.rows, self.max_rows
        return [
            HistoryTablesMechanism(ROWS, rows, self.list_rows, M),
            HistoryTablesMechanism(PERSONS, own, self.list_persons, 1),
            LinkTablesMechanism(LINKS, own, self.numbered_rows, self.list_links, M),
            LinkTablesMechanism(TIMES, rows, self.times, self.list_times, M),
            LinkTablesMechanism(STEPS, 2 * rows, rows, self.list_steps, M),
        ]


class HistoryTablesMechanism(TablesMechanism):
    """All two-way tables of the columns of persons, or of their rows; see `TablesMechanism`.

    `list_rows` returns, for the codes of persons, those of the columns first, and shares of a
    person last, who contribute the mean vector of at most `max_rows` rows.
    """

    def __init__(
        self, name: str, sizes: tuple[int, ...], list_rows: Callable, max_rows: int
    ) -> None:
        super().__init__(sizes)
        self.name, self._select, self._max_rows = name, list_rows, max_rows

    def _count_at_once(self, n_rows):
        return max(1, n_rows // self._max_rows)

    def _list_rows(self, codes):
        rows, *_, shares = self._select(codes)
        return rows[:, : len(self.sizes)], shares


@savable
@dataclass(frozen=True)
class LinkTables:
    """Released two-way tables of each column of one side with each column of another.

    Attributes
    ----------
    cells : ndarray of shape (n_levels of all columns, n_levels of all others)
        Noisy numbers of persons, of whom each has one share.
    pairs_std : float
        Standard deviation of the noise.
    """

    cells: np.ndarray
    pairs_std: float


class LinkTablesMechanism(FixedSensitivity, ProductMechanism):
    """The two-way tables of each of k columns with each of l other columns.

    For a pair of rows with weights b_c and d_e of the levels, the vector that holds all b_c ⊗ d_e
    has norm at most √(kl). A person contributes the mean over the pairs, divided by √(kl).

    `list_pairs` returns, for the codes of persons, codes of both sides, and shares of a person, (n,
    1); at most `max_rows` pairs of each are in memory at once.
    """

    sensitivities = TablesMechanism.sensitivities

    def __init__(
        self,
        name: str,
        left: tuple[int, ...],
        right: tuple[int, ...],
        list_pairs: Callable,
        max_rows: int,
    ) -> None:
        self.name, self.left, self.right = name, left, right
        self._list_pairs, self._max_rows = list_pairs, max_rows

    def count(self, codes: torch.Tensor) -> np.ndarray:
        """Return the tables of public persons without noise."""
        left, right, shares = self._list_pairs(codes)
        weights = HatBasis(left, self.left).to_dense() * shares
        return (weights.T @ HatBasis(right, self.right).to_dense()).numpy()

    @property
    def records(self) -> float:
        """Number of persons in one unit of the sensitivity."""
        return math.sqrt(len(self.left) * len(self.right))

    def _add_products(self, half, source):
        total = np.zeros((sum(self.left), sum(self.right)), dtype=np.int64)
        n_rows = CONSTANTS.batch_size(sum(self.left) + sum(self.right))
        scale = half / math.sqrt(self.records)
        size = max(1, n_rows // self._max_rows)
        for codes, membership in source.codes(self.name, size):
            left, right, shares = self._list_pairs(codes[membership.sum(1) > 0])
            left = HatBasis(left, self.left).to_dense(lambda w, s=shares: to_grid(w * s, scale))
            right = HatBasis(right, self.right).to_dense(lambda w: to_grid(w, scale))
            total += (left.T @ right).long().cpu().numpy()
        return total

    def postprocess(self, noisy, measured):
        return LinkTables(noisy * self.records, measured.context * self.records)
