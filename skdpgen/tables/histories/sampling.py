# SPDX-License-Identifier: BSD-3-Clause
"""Sampling of persons and their rows from generated weights, in pieces of bounded memory."""

from dataclasses import replace

import numpy as np
import pandas as pd

from ...format import SAMPLE_BLOCK
from ..blocks import draw_levels, to_probabilities
from ..columns.identifier import go_on
from ..encoder import TableEncoder
from .joining import join_names, name_difference


class HistorySampler:
    """Draws persons and their rows; the keys of all that it draws are different.

    Parameters
    ----------
    format : HistoryFormat
    generate : callable
        ``generate(n_persons, generator)`` returns weights of persons, of shape (n, n_levels), the
        last of which are those of numbers of rows, and weights of rows, (n, M, n_levels).
    noise : NoiseSource
    """

    def __init__(self, format, generate, noise):
        self._format, self._generate = format, generate
        self._generator, self._public = noise.torch_generator(), noise.public_generator()
        self._blocks = TableEncoder(format.table.schema, format.table.codes).make_blocks()
        self._schemas = [format.list_schemas().get(name, {}) for name in format.names]
        self._n_drawn, self._n_keys = [0, 0], 0

    def draw(self, n_persons):
        """Return new persons and their rows, a dict of tables."""
        # Weights of all rows that a person may have take the memory.
        most = max(1, SAMPLE_BLOCK // self._format.max_rows)
        sizes = [min(most, n_persons - start) for start in range(0, n_persons, most)]
        pieces = zip(*(self._draw_piece(size) for size in sizes), strict=True)
        tables = [pd.concat(parts, ignore_index=True) for parts in pieces]
        found, names = {}, self._format.names
        for i, (name, frame) in enumerate(zip(names, tables, strict=True)):
            frame = go_on(frame, self._schemas[i], self._n_drawn[i])
            self._n_drawn[i] += len(frame)
            found[name] = self._restore(i, frame)
        return found

    def _draw_piece(self, n_persons):
        format = self._format
        persons, rows = self._generate(n_persons, self._generator)
        M = format.max_rows
        persons, numbers = persons[:, : -M - 2], to_probabilities(persons[:, -M - 2 :])
        counts = np.minimum(draw_levels(numbers, self._public), M)
        rows = rows[np.arange(M) < counts[:, None]]
        person, order = np.repeat(np.arange(n_persons), counts), format.order_name
        cells = {}
        for block in self._blocks:
            own = block.where.stop <= persons.shape[1]
            shift = 0 if own else persons.shape[1]
            weights = (persons if own else rows)[:, block.where.start - shift :]
            weights = weights[:, : block.where.stop - block.where.start]
            if block.name == order:
                # Persons with rows have a first order.
                weights = np.where(np.arange(weights.shape[1]) < block.n_levels, weights, 0)
            cells[block.name] = block.draw(weights, self._public)
        if order is not None:
            cells[order] = self._put_in_order(cells, person)
            for name in (name for name in format.dates if name != format.order):
                cells[join_names(format.names[1], name)] = self._find_dates(name, cells)
        keys, sizes = np.arange(n_persons) + self._n_keys, (n_persons, len(rows))
        self._n_keys += n_persons
        frames = []
        for i, (table, schema) in enumerate(zip(format.names, self._schemas, strict=True)):
            own = {n: cells[join_names(table, n)] for n in schema if join_names(table, n) in cells}
            frame = TableEncoder(schema).assemble(own, sizes[i], self._public)
            frame.insert(0, format.key, keys[person] if i else keys)
            frames.append(frame)
        return frames

    def _put_in_order(self, cells, person):
        """Return the orders of rows: the first of the person, and what the gaps add up to."""
        format = self._format
        name, gap = format.order_name, format.gap_block
        kind = format.table.schema[name]
        first = pd.Series(cells[name]).iloc[person].reset_index(drop=True)
        if gap is None:
            return first
        gaps = np.nan_to_num(format.table.schema[gap.name].to_values(cells[gap.name]))
        is_first, number = np.diff(person, prepend=-1) > 0, kind.to_number()
        total = np.cumsum(np.where(is_first, 0, np.maximum(gaps, 0)))
        total -= total[is_first][np.cumsum(is_first) - 1]
        values = kind.to_values(first) + total * getattr(kind, "units_per_day", 1)
        if number.decimals is not None:
            values = np.round(values, number.decimals)
        values = np.clip(values, number.lower, number.upper)
        return replace(kind, missing=False).make_cells(values, np.zeros(len(values), dtype=bool))

    def _find_dates(self, name, cells):
        """Return the dates of a column: the orders of rows, and the days after them."""
        format, schema = self._format, self._format.table.schema
        kind, order = format.dates[name], schema[format.order_name]
        after = name_difference(format.names[1], name, format.order)
        first = order.to_values(cells[format.order_name]) / order.units_per_day
        days = schema[after].to_values(cells[after])
        is_whole = order.unit == "day" and schema[after].decimals == 0
        kind = replace(kind, unit=kind.unit or ("day" if is_whole else "second"))
        missing = np.isnan(days)
        units = np.floor(np.where(missing, 0, first + days) * kind.units_per_day + 1e-6)
        if not kind.is_open:
            number = kind.to_number()
            units = np.clip(units, number.lower, number.upper)
        for rule in format.dates.rules:
            if rule.upper == name:
                least = np.floor(first) if kind.unit == "day" else first
                least = np.ceil(least * kind.units_per_day - 1e-6) + rule.strict
                units = np.maximum(units, least)
        return kind.make_cells(units, missing)

    def _restore(self, i, frame):
        """Return a table in the container and dtypes that `fit` was given."""
        format = self._format
        table, kind, dtypes = format.names[i], format.kinds[i], format.table.kind.dtypes
        dtypes = {
            n: dtypes[join_names(table, n)] for n in kind.names if join_names(table, n) in dtypes
        }
        kind = replace(kind, names=(format.key, *kind.names), dtypes=dtypes)
        return kind.restore(frame, self._schemas[i])
