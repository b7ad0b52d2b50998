# SPDX-License-Identifier: BSD-3-Clause
"""Synthetic rows of a generator, beside the tables that it was fitted to."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd

from ..data.containers import PANDAS
from ..mechanisms.noise import NoiseSource
from ..mechanisms.two_way import Tables
from ..quality import WITHIN_NOISE
from ..tables import sample_from_schema
from ..tables.encoder import TableEncoder
from ..tables.format import TableFormat
from .constants import CONSTANTS

# Kinds of probes: see `Model.draw_probes`.
N_PARTS = 3


class Model:
    """Synthetic rows of a generator, and the tables that it was fitted to.

    Attributes
    ----------
    generator : estimator
    rows : DataFrame
    tables : Tables
    format : TableFormat
        The format of the released tables.
    n_given, n_records, count_std : float
        Numbers of all records and of those that are not absent, and the standard deviation of the
        noise of the second.
    inferred : dict of str to tuple of str
        Inferred parameters of columns.
    """

    def __init__(self, generator, random_state):
        published = getattr(getattr(generator, "release_", None), "published", None)
        format = getattr(published, "format", None)
        if not isinstance(format, TableFormat) or not isinstance(published.main, Tables):
            raise ValueError(
                "Estimates need the released tables of independent records, and "
                f"{type(generator).__name__} has none: fit DPSWFlowSampler or "
                "DPSlicedWassersteinGenerator to a DataFrame with a row for each record, or give "
                "from_release(release, DPSWFlowSampler()) for a release of such tables."
            )
        published.check()
        if (published.plan.max_rows or 1) > 1:
            raise ValueError(
                "Estimates need records that are independent: rows of the same person are not. Fit "
                "with max_rows_per_person=1."
            )
        self.generator, self._seed, self.format = generator, random_state, format
        self.inferred = format.inferred_parameters
        self.tables = self.format.match_rows(published.main)
        self.encoder = TableEncoder(self.format.schema)
        self.n_given = self.n_records = float(published.n_samples)
        self.count_std = 0.0
        counts, std = self.tables.count_records()
        std *= np.size(counts) ** 0.5
        if self.n_records - np.sum(counts) > WITHIN_NOISE * std:
            # Absent records: their number is known with noise only.
            self.n_records, self.count_std = float(np.sum(counts)), std
        self.rows = self._sample(CONSTANTS.n_rows)
        self._public = NoiseSource(random_state, stream=3).public_generator()

    def _sample(self, n_rows):
        """Return synthetic rows as a pandas DataFrame with the target."""
        format = self.generator._format
        # Numbers and dates among texts are values here.
        parsed = [name for name in format.texts if format.schema[name].cell_types is not None]
        layout = format.layout.without_dtypes(parsed)
        names = (*layout.names, *([layout.label] if layout.y is not None else []))
        self._layout = replace(layout, names=names, X=PANDAS, y=None)
        plain = replace(format, layout=self._layout)
        return next(plain.decode(self.generator._start_sampling(self._seed), [n_rows]))

    def find_inferred_ends(self, block):
        """Return which ends of a column of numbers, dates or numeric levels were inferred."""
        inferred, column = self.inferred.get(block.name, ()), block.column_type
        if column.has_knots:
            return sorted({"lower", "upper"} & {*inferred})
        # Records with other levels are absent, if there is none for these.
        are_numbers = all(type(level) in (int, float) for level in column.levels)
        return ["lower", "upper"] if inferred and are_numbers else []

    def move(self, rows, block, end):
        """Return rows with a bound in place of a column's cells, and a list with values beyond."""
        column, decimals = block.column_type, 0
        if column.has_knots:
            number, decimals = column.to_number(), block.decimals
            ends = [number.lower, number.upper]
        else:
            ends = [min(column.levels), max(column.levels)]
        least = 0.0 if decimals is None else 10.0**-decimals
        steps = np.r_[0, np.multiply(CONSTANTS.beyond, np.ptp(ends)).clip(least)]
        numbers = ends[0] - steps if end == "lower" else ends[1] + steps
        if decimals == 0:
            most = max(*np.abs(ends), 2.0**62)
            numbers = np.round(numbers).clip(-most, most)
        at, *beyond = (self._put(rows, block, np.full(len(rows), number)) for number in numbers)
        return at, beyond

    def _put(self, rows, block, cells):
        if block.column_type.has_knots:
            cells = block.column_type.decode(cells, np.zeros(len(cells), dtype=bool))
        rows = rows.assign(**{block.name: pd.Series(cells, rows.index)})
        return self._layout.restore(rows, self.format.schema)

    def _list_moved(self, name):
        """Yield lists of tables that the release cannot tell apart, if bounds were inferred.

        A tenth of the cells of a column is at a bound, or beyond it.
        """
        some = self.rows.iloc[::10]
        rest = self.rows.drop(some.index)
        for block in self.encoder.make_blocks():
            for end in self.find_inferred_ends(block) if block.name == name else ():
                at, beyond = self.move(some, block, end)
                yield [pd.concat([rest, moved]) for moved in (at, *beyond)]

    def find_number(self, name):
        """Return the block of a numeric column."""
        blocks = {block.name: block for block in self.encoder.make_blocks()}
        if name not in blocks or not blocks[name].column_type.is_number:
            raise ValueError(f"Quantiles are of a column of numbers; got {name!r}.")
        return blocks[name]

    def find_columns(self, statistic):
        """Return the columns on which a `Statistic` depends."""
        learned = [block.name for block in self.encoder.make_blocks()]
        return statistic.find_columns(learned, self._public, self._list_moved)

    def calibrate(self, features):
        """Draw rows again, with the released sums of features as far as these exceed the noise.

        Errors of the model in what a statistic uses enter its estimate squared. The weights are
        those of a regression estimator, the best linear prediction if the model's error has the
        covariance of sampling.
        """
        values = features.evaluate(self.rows) / features.std
        mean = values.mean(0)
        centred, n = values - mean, self.n_records
        gram = centred.T @ centred / len(values)
        gram[np.diag_indices_from(gram)] += 1 / n
        weights = 1 + centred @ np.linalg.solve(gram, features.sums / features.std / n - mean)
        weights = weights.clip(0).cumsum()
        # Systematic sampling, which has little variance.
        at = (np.arange(len(weights)) + self._public.random()) / len(weights) * weights[-1]
        chosen = self._public.permutation(np.searchsorted(weights, at))
        self.rows = self.rows.iloc[chosen].reset_index(drop=True)

    def draw_probes(self, n_probes, columns):
        """Return rows of which influences are computed: three parts of equal size, in turn.

        They are synthetic rows; such with other numbers between the same knots; and rows of the
        schema, whose cells the model may lack.
        """
        part = np.arange(n_probes) % N_PARTS
        rows = self._draw(n_probes)
        for block in self.encoder.make_blocks():
            if block.name in columns and block.column_type.has_knots:
                codes = block.encode_cells(rows[block.name], strict=False)
                is_moved = (part == 1) & (codes < len(block.knots) - 1)
                codes = np.floor(codes) + self._public.random(n_probes)
                numbers = block.scale.decode(codes[is_moved])
                cells = pd.Series(block.make_cells(numbers, np.full(len(numbers), -1)))
                rows.loc[is_moved, block.name] = cells.astype(rows[block.name].dtype).array
        drawn = sample_from_schema(self.format.schema, n_probes, random_state=self._seed)
        drawn = self._layout.restore(drawn, self.format.schema)[list(rows)]
        return drawn.where(pd.Series(part == 2), rows)

    def draw_corners(self, columns):
        """Return rows whose influences show interactions of triples of columns, and their number.

        They come in eights: a row, with cells of another one in each subset of three columns. A
        function without interactions of the three has alternating sums of 0. The target, if
        records are stratified by it, is the same in all.
        """
        label = None if self.tables.by is None else self.format.layout.label
        triples = list(itertools.combinations([n for n in columns if n != label], 3))
        if not triples:
            return self.rows[:0], 0
        n = CONSTANTS.n_corners
        rows, others = (self._draw(n).loc[np.repeat(np.arange(n), 8)] for _ in range(2))
        triple = np.repeat(self._public.integers(len(triples), size=n), 8)
        corner = np.tile(np.arange(8), n)
        rows, others = rows.reset_index(drop=True), others.reset_index(drop=True)
        for i, chosen in enumerate(triples):
            for bit, name in enumerate(chosen):
                is_other = (triple == i) & (corner >> bit & 1 == 1)
                rows.loc[is_other, name] = others.loc[is_other, name]
        return rows, len(triples)

    def _draw(self, n_rows):
        rows = self.rows.iloc[self._public.choice(len(self.rows), n_rows)]
        return rows.reset_index(drop=True)
