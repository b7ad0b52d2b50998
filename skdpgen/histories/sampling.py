# SPDX-License-Identifier: BSD-3-Clause
"""Sampling of persons and their rows from generated weights, in pieces of bounded memory."""

import copy
import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import torch

from ..format import SAMPLE_BLOCK
from ..tables.blocks import draw_levels, to_probabilities
from ..tables.columns.identifier import go_on
from ..tables.encoder import TableEncoder
from ..tables.rules.draws import CONSTANTS, GivenBlock, RuleDraws
from ..tables.rules.ordered import Ordered, list_ordered
from ..tables.schema import Schema
from .calendars import find_times
from .joining import join_names
from .orders import add_days, add_gaps, obey_orders
from .schema import Elapsed


class HistorySampler:
    """Draws persons and their rows; the keys of all that it draws are different.

    First persons are drawn, with the order of their first row, then the orders of their rows and
    dates relative to these, then other columns of rows. All obey the rules. An order that is
    missing is drawn, too, so that dates relative to it have one; only its own cell is empty.

    Parameters
    ----------
    format : HistoryFormat
    particles : HistoryParticles
    generator : torch.Generator
        Draws particles.
    public : numpy.random.Generator
        Draws cells.
    """

    def __init__(self, format, particles, generator, public):
        self._format, self._particles = format, particles
        self._generator, self._public = generator, public
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
        ordered = [rule for rule in rules if isinstance(rule, Ordered)]
        self._orders = [rule for rule in ordered if known.issuperset(rule.names)]
        of_rows = [rule for rule in rules if not known.issuperset(rule.names)]
        self._person_schema = self._select(format.person_names, of_persons)
        gap = format.gap_block
        self._gap = gap.name if gap else None
        start = 0 if not self._parts[1] else self._parts[1][0].where.start
        self._row_blocks = {b.name: _move(b, b.where.start - start) for b in self._parts[1]}
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
        rows = rows[np.arange(M) < counts[:, None]]
        of_rows = self._draw_rows(persons, weights, rows, person)
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
        kept = []

        def make_rows(left):
            drawn = self._particles.draw_persons(len(left), self._generator)
            # Rows are those of the particle from which the person was drawn in the end.
            for i, part in enumerate(drawn):
                if len(kept) < len(drawn):
                    kept.append(part.copy())
                kept[i][left] = part
            return self._with_first(kept[0])[left]

        if self._person_schema is None:
            make_rows(np.arange(n_persons))
            return {}, *kept
        draws = RuleDraws(self._person_schema, self._parts[0], {}, self._used)
        return draws.draw(make_rows, n_persons, self._public), *kept

    def _with_first(self, weights):
        """Return weights of persons who have a first order, unless orders are missing."""
        first = self._blocks.get(self._format.order_name)
        if first is not None and first.column_type.missing and not self._format.has_undated:
            weights[:, first.where.stop - 1] = 0
        return weights

    def draw_times(self, weights, rows):
        """Return the cells of calendars of all M rows; see `HistoryParticles.draw_times`."""
        n, M = rows.shape[:2]
        name, person = self._format.order_name, np.repeat(np.arange(n), M)
        first, order = self._blocks[name], self._types[name]
        cells = first.draw(self._with_first(weights)[:, first.where], self._public)
        orders, is_missing = self._draw_orders(
            order.to_values(cells)[person], weights, rows.reshape(n * M, -1), person
        )
        return find_times(order, np.where(is_missing, np.nan, orders)).reshape(n, M, -1)

    def _draw_orders(self, first, own, weights, person):
        """Draw the orders of rows, from that of the first row of each row's person.

        `first` is in units, and NaN for missing ones. Return the orders of rows, also of those that
        are missing, and which ones are.
        """
        block, gap = self._blocks[self._format.order_name], self._row_blocks[self._gap]
        is_first, is_missing = np.diff(person, prepend=-1) > 0, np.isnan(first)
        p_missing = to_probabilities(weights[:, gap.where])[:, -1]
        if block.column_type.missing:
            lacking = np.flatnonzero(is_missing & is_first)
            drawn = block.draw(_present(own[person[lacking]][:, block.where]), self._public)
            found = np.zeros(len(own))
            found[person[lacking]] = block.column_type.to_values(drawn)
            first = np.where(is_missing, found[person], first)
        # Rows without an order are the last ones of a person.
        is_missing |= self._public.uniform(size=len(own))[person] < p_missing * ~is_first
        total = np.cumsum(is_missing)
        first_row = np.flatnonzero(is_first)[np.cumsum(is_first) - 1]
        is_missing |= total > (total - is_missing)[first_row]
        cells = gap.draw(_present(weights[:, gap.where]), self._public)
        gaps = gap.column_type.to_values(cells)
        orders = add_gaps(first, gaps, person, block.column_type, self._public)
        return orders, is_missing

    def _draw_rows(self, persons, own, weights, person):
        """Return the columns of rows, from the columns and weights of persons, and of rows."""
        given = {name: pd.Series(cells).iloc[person].array for name, cells in persons.items()}
        columns, weights = self._draw_dates(given, own, weights, person)
        blocks = dict(self._row_blocks)
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

    def _draw_dates(self, given, own, weights, person):
        """Return the orders of rows, dates relative to them, and weights of other columns."""
        format, types, name = self._format, self._types, self._format.order_name
        if name is None or self._gap is None:
            return {} if name is None else {name: given[name]}, weights
        needed = {n for rule in self._orders for n in rule.names}.intersection(given)
        values = {n: types[n].to_values(given[n]) for n in {*needed, name}}
        values[name], is_missing = self._draw_orders(values[name], own, weights, person)
        # Dates follow the order that is drawn in the end.
        implied = [Ordered(*pair) for pair in list_ordered(self._orders)]
        values |= obey_orders(values, [name], implied, types)
        # Dates follow from the order, even if its cell is empty.
        dated = self._move(weights, values[name])
        weights = self._move(weights, np.where(is_missing, np.nan, values[name]))
        for difference, rule in format.table.schema.differences.items():
            if isinstance(rule, Elapsed):
                pair, block = (types[name], types[rule.date]), self._row_blocks[difference]
                cells = block.draw(dated[:, block.where], self._public)
                days = format.table.schema[difference].to_values(cells)
                values[rule.date] = add_days(values[name], days, *pair)
        dates = obey_orders(values, self._dated, self._orders, types)
        dates[name] = np.where(is_missing, np.nan, dates[name])
        columns = {}
        for n, column in dates.items():
            declared = replace(types[n], missing=n != name or format.has_undated)
            columns[n] = declared.decode(np.nan_to_num(column), np.isnan(column))
        return columns, weights

    @torch.no_grad()
    def _move(self, weights, orders):
        """Return the weights of rows in the cells of the calendars of their orders."""
        times = find_times(self._types[self._format.order_name], orders)
        weights = torch.as_tensor(weights, dtype=torch.float32)
        return self._particles.move(weights, torch.as_tensor(times)).double().numpy()

    def _restore(self, i, frame):
        """Return a table in the container and dtypes that `fit` was given."""
        format = self._format
        layout, dtypes = format.layouts[i], format.table.layout.dtypes
        joined = {n: join_names(format.names[i], n) for n in layout.names}
        dtypes = {n: dtypes[name] for n, name in joined.items() if name in dtypes}
        layout = replace(layout, names=(format.key, *layout.names), dtypes=dtypes)
        texts = {n: format.table.texts[m] for n, m in joined.items() if m in format.table.texts}
        return layout.restore(frame, self._schemas[i], texts)


def _with_units(schema):
    """Return the types of columns, where dates relative to an order have a unit."""
    types = dict(schema)
    for name, rule in schema.differences.items():
        if isinstance(rule, Elapsed) and types[rule.date].unit is None:
            is_whole = types[rule.order].unit == "day" and schema[name].decimals == 0
            types[rule.date] = replace(types[rule.date], unit="day" if is_whole else "second")
    return types


def _present(weights):
    """Return weights of a column without that of missing values."""
    return np.column_stack([weights[:, :-1], np.zeros(len(weights))])


def _move(block, start):
    """Return a block whose weights start at another column."""
    moved = copy.copy(block)
    moved.where = slice(start, start + block.where.stop - block.where.start)
    return moved
