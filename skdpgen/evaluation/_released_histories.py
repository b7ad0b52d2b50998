# SPDX-License-Identifier: BSD-3-Clause
"""Releases of histories, beside both synthetic tables."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import torch

from .._process.muting import muted
from ..histories.calendars import count_times, list_calendars
from ..histories.learner import estimate_marginals, find_undated, read_tables
from ..histories.schema import Elapsed
from ..mechanisms.codes import HatBasis
from ..mechanisms.two_way import own_and_later
from ..quality import WITHIN_NOISE
from ..tables.encoder import TableEncoder
from ..tables.rules.rules import Unique
from ..tables.schema import Schema
from ._forecasts import CountTable
from ._histories import join_histories
from ._released import compare_pair, describe
from ._verdicts import CONSTANTS

# Names of the cells of calendars, but for that of no date.
_CELLS = {
    "months": [*map(str, range(1, 13))],
    "weekdays": ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"],
    "hours": [*map(str, range(24))],
}


class ReleasedHistories:
    """A release of `DPHistorySampler`, and what a report on both of its tables needs of it.

    Parameters
    ----------
    published : PublishedRelease
    """

    def __init__(self, published):
        self._values, self._n = [*published.values[published.n_inferred :]], published.n_samples
        has_undated = find_undated(self._values, published.format)
        self._format = replace(published.format, has_undated=has_undated)

    def join(self, tables):
        """Return both tables as one; see `join_histories`."""
        return join_histories(tables, persons=self._format.key, order=self._format.order)

    @property
    def schema(self):
        """The schema of joined rows, with the rules of both tables and across them."""
        schema, own = self._format.table.schema, {*self._format.person_names}
        rules = [
            rule
            for rule in schema.rules
            # A person is in several rows.
            if not (
                isinstance(rule, Elapsed) or (isinstance(rule, Unique) and own >= {*rule.names})
            )
        ]
        gap = f"{self._format.names[1]} gap"
        return Schema({name: c for name, c in schema.items() if name != gap}, rules)

    @property
    def schema_report(self):
        """The report on the columns."""
        with muted():
            return read_tables(self._values, self._format, self._n)[1]

    def compare(self, tables):
        """Compare released tables with those of synthetic ones; see `compare_released`.

        Persons have one share each. ``pairs`` are of a row and the next. ``histories`` are columns,
        too: the number of rows of a person and, by the cells of calendars, all rows, those above
        the median of a number, and those of the most frequent level.
        """
        format, n, sizes = self._format, self._n, self._format.history_sizes
        codes = format.encode_public(tables)
        codes = torch.from_numpy(codes[~np.isnan(codes).any(axis=1)])
        if not len(codes):
            return None
        times, steps = (m.count(codes) / len(codes) for m in sizes.make_mechanisms()[3:])
        marginals, numbers = estimate_marginals(self._values, format, n)
        counts = np.where(marginals.is_empty, 0.0, marginals.counts)
        persons = HatBasis(codes[:, : len(sizes.persons)], sizes.persons).to_dense().mean(0)
        shares = np.r_[persons, times[:, -sizes.max_rows :].sum(axis=1)]
        parts = [np.delete(part, numbers) for part in (shares, counts, marginals.std)]
        none, blocks = pd.Series(dtype=object), TableEncoder(format.schema).make_blocks()
        rows = list(zip(blocks[len(sizes.persons) - 1 :], _slice(sizes.rows), strict=True))
        released, std = self._values[4].cells / n, self._values[4].pairs_std / n
        pairs = [
            compare_pair(a.name, f"next {b.name}", released[i, j], steps[i, j], std, len(codes))
            for (a, i), (b, j) in product(rows, repeat=2)
        ]
        levels = [*map(str, range(sizes.max_rows + 1)), "more"]
        lengths = levels, counts[numbers] / n, shares[numbers], marginals.std[numbers] / n
        return {
            "n_records": n,
            "columns": [describe(b, none, parts[0][None], *parts[1:], n) for b in blocks],
            "pairs": sorted(pairs, key=lambda pair: -pair["beyond_noise"]),
            "histories": [
                _describe("rows of a person", *lengths),
                *self._describe_calendars(times, rows),
            ],
        }

    def _describe_calendars(self, made, rows):
        """Yield shares by the cells of calendars, of which `made` are those of synthetic rows."""
        format, sizes, released = self._format, self._format.history_sizes, self._values[3]
        tables, std = (released.cells / self._n, made), released.pairs_std / self._n
        (counts, noise), (found, _) = (count_times(table, std, sizes) for table in tables)
        for name, where in zip(
            list_calendars(format.order_type), _slice(sizes.times), strict=False
        ):
            # The last cell has no date.
            part, cells = slice(where.start, where.stop - 1), np.array(_CELLS[name])
            yield _describe(f"rows by {name[:-1]}", cells, counts[part], found[part], noise)
            is_clear = counts[part] > WITHIN_NOISE * noise
            for block, own in rows[: len(rows) - (format.gap_block is not None)]:
                # Without missing values.
                own = slice(own.start, own.start + block.n_levels)
                table, other = (x[own, part][:, is_clear] for x in tables)
                totals, column = table.sum(axis=1).clip(0), block.column_type
                if column.has_knots:
                    values = np.r_[block.knots, block.atoms]
                    order = np.argsort(values)
                    middle = np.searchsorted(totals[order].cumsum(), totals.sum() / 2)
                    is_in, what = values > values[order[middle]], "above the median"
                else:
                    is_in = np.arange(block.n_levels) == totals.argmax()
                    what = f"= {column.levels[totals.argmax()]}"
                # Of no cell, or all levels or none, there is no share to show.
                if not is_clear.any() or is_in.all() or not is_in.any():
                    continue
                sums = [np.maximum(x.sum(axis=0), std) for x in (table, other)]
                both = [x[is_in].sum(axis=0) / s for x, s in zip((table, other), sums, strict=True)]
                errors = std * np.linalg.norm(is_in[:, None] - both[0], axis=0) / sums[0]
                yield _describe(
                    f"{block.name} {what} by {name[:-1]}", cells[is_clear], *both, errors
                )


def _slice(sizes):
    return [own for own, _ in own_and_later(sizes)]


def _describe(name, levels, released, synthetic, noise):
    """Return shares of levels as a column of `compare_released`, with a verdict on their noise."""
    noise = np.mean(noise)
    return {
        "column": name,
        "verdict": CountTable(1, noise / max(np.mean(released), 1e-9), 1).verdict,
        "levels": levels,
        "released": released,
        "synthetic": synthetic,
        "margin": CONSTANTS.confident * noise,
    }
