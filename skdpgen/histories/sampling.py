# SPDX-License-Identifier: BSD-3-Clause
"""Sampling of persons and their rows from generated weights, in pieces of bounded memory."""

import copy
import itertools
from dataclasses import replace

import numpy as np
import pandas as pd

from ..format import SAMPLE_BLOCK
from ..tables.blocks import draw_levels, to_probabilities
from ..tables.columns.identifier import go_on
from ..tables.encoder import TableEncoder
from ..tables.rules.draws import CONSTANTS, GivenBlock, RuleDraws
from ..tables.rules.ordered import Ordered, list_ordered
from ..tables.schema import Schema
from .joining import join_names
from .orders import add_days, add_gaps, obey_orders
from .schema import Elapsed


class HistorySampler:
    """Draws persons and their rows; the keys of all that it draws are different.

    First persons are drawn, with the order of their first row, then the orders of their rows and
    dates relative to these, then other columns of rows. All obey the rules.

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
        self._schemas = [format.list_schemas().get(name, {}) for name in format.names]
        self._n_drawn, self._n_keys, self._used = [0, 0], 0, {}
        schema = format.table.schema
        self._types = _with_units(schema)
        blocks = {b.name: b for b in TableEncoder(schema, format.table.scales).make_blocks()}
        self._blocks, self._parts = blocks, [[blocks[n] for n in p] for p in format.learned_names]
        # Columns of rows that are known before others are drawn.
        self._dated = [n for n in (format.order_name, *schema.dates) if n is not None]
        own = {*format.person_names}
        rules = [rule for rule in schema.rules if not isinstance(rule, Elapsed)]
        of_persons = [rule for rule in rules if own.issuperset(rule.names)]
        # Persons also obey what follows from orders of their rows.
        implied = [Ordered(*pair) for pair in list_ordered(rules) if own.issuperset(pair)]
        known = {rule.names for rule in of_persons}
        of_persons += [rule for rule in implied if rule.names not in known]
        known = own.union(self._dated)
        self._orders = [rule for rule in rules if known.issuperset(rule.names)]
        of_rows = [rule for rule in rules if not known.issuperset(rule.names)]
        self._person_schema = self._select(format.person_names, of_persons)
        gap = format.gap_block
        left = set(schema) - own - {gap.name if gap else None}
        self._row_schema = self._select(left, of_rows)

    def _select(self, names, rules):
        """Return the schema of learned and derived columns, and of those that rules need."""
        needed = {name for rule in rules for name in rule.names}.union(names)
        types = {n: t for n, t in self._types.items() if n in needed and not t.is_generated}
        return Schema(types, rules) if types else None

    def draw(self, n_persons):
        """Return new persons and their rows, a dict of tables."""
        # Weights of all rows that a person may have take the memory.
        most = max(1, SAMPLE_BLOCK // self._format.max_rows)
        sizes = [min(most, n_persons - start) for start in range(0, n_persons, most)]
        pieces = zip(*(self._draw_piece(size) for size in sizes), strict=True)
        tables = {}
        for i, (name, parts) in enumerate(zip(self._format.names, pieces, strict=True)):
            frame = pd.concat(parts, ignore_index=True)
            frame = go_on(frame, self._schemas[i], self._n_drawn[i])
            self._n_drawn[i] += len(frame)
            tables[name] = self._restore(i, frame)
        return tables

    def _draw_piece(self, n_persons):
        format, M = self._format, self._format.max_rows
        persons, weights, rows = self._draw_persons(n_persons)
        numbers = to_probabilities(weights[:, -M - 2 :])
        counts = np.minimum(draw_levels(numbers, self._public), M)
        person = np.repeat(np.arange(n_persons), counts)
        of_rows = self._draw_rows(persons, rows[np.arange(M) < counts[:, None]], person)
        keys, sizes = np.arange(n_persons) + self._n_keys, (n_persons, len(person))
        self._n_keys += n_persons
        frames = []
        for i, cells in enumerate((persons, of_rows)):
            joined = {name: join_names(format.names[i], name) for name in self._schemas[i]}
            own = {n: cells[name] for n, name in joined.items() if name in cells}
            frame = TableEncoder(self._schemas[i]).assemble(own, sizes[i], self._public)
            frame.insert(0, format.key, keys[person] if i else keys)
            frames.append(frame)
        return frames

    def _draw_persons(self, n_persons):
        """Return columns of persons, and the weights of persons and of rows they came from."""
        kept, first = [], self._blocks.get(self._format.order_name)

        def make_rows(left):
            drawn = self._generate(len(left), self._generator)
            # Rows are those of the particle from which the person was drawn in the end.
            for i, part in enumerate(drawn):
                if len(kept) < len(drawn):
                    kept.append(part.copy())
                kept[i][left] = part
            if first is not None and first.column_type.missing:
                # Persons with rows have a first order.
                kept[0][:, first.where.stop - 1] = 0
            return kept[0][left]

        if self._person_schema is None:
            make_rows(np.arange(n_persons))
            return {}, *kept
        draws = RuleDraws(self._person_schema, self._parts[0], {}, self._used)
        return draws.draw(make_rows, n_persons, self._public), *kept

    def _draw_rows(self, persons, weights, person):
        """Return the columns of rows, from the columns of persons and weights of rows."""
        start = 0 if not self._parts[1] else self._parts[1][0].where.start
        blocks = {b.name: _move(b, b.where.start - start) for b in self._parts[1]}
        given = {name: pd.Series(cells).iloc[person].array for name, cells in persons.items()}
        columns = self._draw_dates(given, weights, blocks, person)
        if not set(self._row_schema or ()) - columns.keys() - given.keys():
            return columns
        # Known numbers and dates are found by the number of the row; known levels become weights.
        width, numbers, known = weights.shape[1], np.arange(float(len(person))), []
        parts, end = [weights, numbers[:, None]], width + 1
        for name, cells in (given | columns).items():
            if name not in self._row_schema:
                continue
            if self._types[name].has_knots:
                known.append(GivenBlock(name, self._types[name], cells, width))
                continue
            block = blocks[name] = _move(self._blocks[name], end)
            codes = block.encode_cells(pd.Series(cells), strict=False).astype(np.int64)
            parts.append(np.eye(block.where.stop - end)[codes])
            end = block.where.stop
        joined, rounds = np.hstack(parts), itertools.count()

        def make_rows(left):
            drawn = joined[left]
            if next(rounds) > 2 * CONSTANTS.first_repair:
                # Their own weights allow no such row: those of any other row replace them.
                others = self._public.integers(len(weights), size=len(left))
                drawn[:, :width] = weights[others]
            return drawn

        learned = [blocks[name] for name in self._row_schema.learned if name in blocks]
        draws = RuleDraws(self._row_schema, learned, {}, self._used, known)
        return columns | draws.draw(make_rows, len(person), self._public)

    def _draw_dates(self, given, weights, blocks, person):
        """Return the orders of rows, and the dates relative to them."""
        format, types, name = self._format, self._types, self._format.order_name
        if name is None or format.gap_block is None:
            return {} if name is None else {name: given[name]}

        def draw(column):
            cells = blocks[column].draw(weights[:, blocks[column].where], self._public)
            return format.table.schema[column].to_values(cells)

        needed = {n for rule in self._orders for n in rule.names}.intersection(given)
        values = {n: types[n].to_values(given[n]) for n in {*needed, name}}
        gaps = draw(format.gap_block.name)
        values[name] = add_gaps(values[name], gaps, person, types[name])
        # Dates follow the order that is drawn in the end.
        implied = [Ordered(*pair) for pair in list_ordered(self._orders)]
        values |= obey_orders(values, [name], implied, types)
        for difference, rule in format.table.schema.differences.items():
            if isinstance(rule, Elapsed):
                pair = types[name], types[rule.date]
                values[rule.date] = add_days(values[name], draw(difference), *pair)
        dates = obey_orders(values, self._dated, self._orders, types)
        return {
            n: replace(types[n], missing=n != name).decode(np.nan_to_num(column), np.isnan(column))
            for n, column in dates.items()
        }

    def _restore(self, i, frame):
        """Return a table in the container and dtypes that `fit` was given."""
        format = self._format
        layout, dtypes = format.layouts[i], format.table.layout.dtypes
        joined = {n: join_names(format.names[i], n) for n in layout.names}
        dtypes = {n: dtypes[name] for n, name in joined.items() if name in dtypes}
        layout = replace(layout, names=(format.key, *layout.names), dtypes=dtypes)
        return layout.restore(frame, self._schemas[i])


def _with_units(schema):
    """Return the types of columns, where dates relative to an order have a unit."""
    types = dict(schema)
    for name, rule in schema.differences.items():
        if isinstance(rule, Elapsed) and types[rule.date].unit is None:
            is_whole = types[rule.order].unit == "day" and schema[name].decimals == 0
            types[rule.date] = replace(types[rule.date], unit="day" if is_whole else "second")
    return types


def _move(block, start):
    """Return a block whose weights start at another column."""
    moved = copy.copy(block)
    moved.where = slice(start, start + block.where.stop - block.where.start)
    return moved
