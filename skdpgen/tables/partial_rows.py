# SPDX-License-Identifier: BSD-3-Clause
"""Sampling of the free cells of partial rows, whose other cells are given."""

import functools

import numpy as np
import pandas as pd

from ..format import SAMPLE_BLOCK
from .blocks import KnotBlock
from .columns.identifier import go_on
from .declaration import explain
from .rules.conditions import is_missing, make_condition

# A number of any decimals has a density instead of a probability. It is compared by the mass of
# this share of its range on either side.
_HALF_WIDTH = 1e-6


class Pool:
    """Generated rows that all conditions share: a condition of its own would need many for each.

    Parameters
    ----------
    generate : callable
        ``generate(classes, generator)`` returns rows of weights.
    """

    def __init__(self, generate):
        self._generate, self._blocks, self._position = generate, [], 0

    def restart(self):
        """Return the first rows again at the next call."""
        self._position = 0

    def __call__(self, classes, generator):
        # Only whole blocks are shared, since conditions ask for candidates in whole blocks.
        if len(classes) < SAMPLE_BLOCK:
            return self._generate(classes, generator)
        if self._position == len(self._blocks):
            self._blocks.append(self._generate(classes, generator))
        self._position += 1
        return self._blocks[self._position - 1]


def complete_rows(partial, n_samples, schema, blocks, pool, draw):
    """Return one row for each partial row, with its given cells.

    Equal partial rows are drawn together.

    Parameters
    ----------
    partial : DataFrame
        Missing cells are free.
    n_samples : int
        Must be the number of rows.
    schema : Schema
    blocks : list of Block
    pool : Pool
    draw : callable
        ``draw(n_rows, conditions)`` returns a table.

    Raises
    ------
    ValueError
        If a column cannot be given, or no row can have the cells that are given.
    """
    if n_samples != len(partial):
        raise ValueError(
            f"n_samples must be None or the number of rows of where, {len(partial)}; got "
            f"{n_samples!r}."
        )
    if not len(partial):
        raise ValueError("where has no rows; pass a row for each row to draw.")
    known = {block.name: block for block in blocks}
    unknown = [name for name in partial if name not in known]
    if unknown or not partial.columns.is_unique:
        repeated = partial.columns[partial.columns.duplicated()].unique().tolist()
        raise ValueError(
            f"where has columns {unknown or repeated} that cannot be given; it may have each of "
            f"{list(known)} once."
        )

    def draw_part(given, n_rows):
        conditions = {name: _make(known[name], value) for name, value in given.items()}
        return draw(n_rows, conditions)

    parts = []
    for positions in _group(partial):
        row = {name: partial[name].iloc[positions[0]] for name in partial}
        # Cells that are no scalars are given, and refused with their row's label.
        given = {
            name: _plain(known[name].column_type, cell)
            for name, cell in row.items()
            if not is_missing(cell)
        }
        pool.restart()
        failure = f"Row {partial.index[positions[0]]!r} of where, with {given}, cannot be drawn"
        part = explain(functools.partial(draw_part, given, len(positions)), failure)
        parts.append(part.set_index(np.array(positions)))
    rows = pd.concat(parts).sort_index()
    # Each part has its own identifiers, which would repeat.
    return go_on(rows, schema, 0).set_axis(partial.index)


def _group(partial):
    """Return the positions of rows, a list for each different row."""
    codes = []
    for name, column in partial.items():
        try:
            # Missing cells all get -1, so that rows with the same free cells are one group.
            codes.append(pd.factorize(column)[0])
        except TypeError:
            raise ValueError(f"Cells of {name!r} in where must be single values.") from None
    groups = {}
    keys = zip(*codes, strict=True) if codes else [()] * len(partial)
    for position, key in enumerate(keys):
        groups.setdefault(key, []).append(position)
    return groups.values()


def _plain(column, cell):
    """Return a cell as conditions take it: a value of Python, without the column's time zone."""
    if isinstance(cell, pd.Timestamp) and cell.tzinfo is not None:
        zone = getattr(column, "zone", None)
        return cell if zone is None else cell.tz_convert(zone).tz_localize(None)
    is_plain = isinstance(cell, np.generic) and not isinstance(cell, np.datetime64)
    return cell.item() if is_plain else cell


def _make(block, value):
    is_continuous = isinstance(block, KnotBlock) and block.values.unit is None
    if not is_continuous or value in block.atoms:
        return make_condition(block, value)
    number, (first, last) = block.column_type.check_value(block.name, value), block.knots[[0, -1]]
    if not first <= number <= last:
        # Raises an error that states the bounds.
        return make_condition(block, value)
    # The width cancels when rows are weighed: it only has to be the same for all of them.
    half = _HALF_WIDTH * (last - first)
    near = make_condition(block, (max(first, number - half), min(last, number + half)))
    return _PointCondition(block, near, number)


class _PointCondition:
    """The condition that a number of any decimals has a given value.

    Parameters
    ----------
    block : KnotBlock
    near : condition
        That the number is near the value, whose probability stands for the density.
    value : float
    """

    def __init__(self, block, near, value):
        self._block, self._near, self._value = block, near, value

    def probability(self, rows):
        """Return a multiple of the density at the value in each row."""
        return self._near.probability(rows)

    def holds(self, values):
        """Return where numbers have the value."""
        return np.asarray(values) == self._value

    def draw(self, weights, random_state):
        """Return the value for each row."""
        numbers = np.full(len(weights), self._value)
        return self._block.make_cells(numbers, np.full(len(weights), -1))
