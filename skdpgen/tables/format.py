# SPDX-License-Identifier: BSD-3-Clause
"""Data format of tables: columns, encoding of cells, and decoding of samples."""

from dataclasses import dataclass, replace
from itertools import compress

import numpy as np
import pandas as pd
import torch

from ..curator.dataset import Dataset
from ..data.cells import CellReader, as_frame
from ..data.dtypes import is_text
from ..data.names import find_ambiguous
from ..data.record_functions import RecordFunction
from ..data.texts import PLAIN, TextStyle
from ..format import Format
from ..mechanisms.codes import Refinement
from ..quality import warn_of_columns
from ..registry import savable
from .columns import Unknown
from .columns.number import N_KNOTS
from .columns.texts import parse_inferred
from .discovery.densities import find_far, is_beyond
from .discovery.stages import Histograms, Inferred, SchemaInference
from .encoder import TableEncoder, check_columns, check_dtypes, check_held, check_names
from .layout import TableLayout
from .marginal_calibration import calibrate_scales
from .report import describe
from .sampling import TableSampler
from .schema import Schema
from .strata import Halves


@dataclass(frozen=True)
class FormatConstants:
    """Constants of the table format. Those without a source are set by hand."""

    # Shares of ρ for inference of a schema, or of knots alone.
    inference_share: float = 0.25
    knots_share: float = 0.05


CONSTANTS = FormatConstants()


@savable
@dataclass(frozen=True)
class TableFormat(Format):
    """Maps tables with a public schema to rows in the unit ball and back.

    Parameters
    ----------
    schema : Schema
        The columns. `resolve` infers undeclared bounds and categories.
    layout : TableLayout, default=None
        Containers and dtypes of samples.
    inferred : dict of str to Inferred, default=None
        Results of inference for the columns, apart from their types.
    histograms : Histograms, default=None
        The counts in which knots were found.
    absent : tuple, default=()
        Levels of the target that are not generated, as `without_absent` finds them.
    share_std : dict of str to float, default=None
        Standard deviation of the noise on the share of a level of each column, if it is released.
    coincident : tuple, default=()
        Groups of point masses that are drawn together, from `find_coincident`.
    """

    schema: Schema
    layout: TableLayout | None = None
    inferred: dict | None = None
    histograms: Histograms | None = None
    absent: tuple = ()
    share_std: dict | None = None
    coincident: tuple = ()

    def __post_init__(self):
        # A record without a target counts as absent, so the target has no missing values.
        label = self.layout and self.layout.label
        target = self.schema.get(label)
        if target is not None and target.missing and not target.is_unknown:
            known = replace(target, missing=False)
            object.__setattr__(self, "schema", self.schema.replace({label: known}))

    @property
    def texts(self):
        """The text styles of the columns whose types were inferred, a dict."""
        return self._list_inferred("style")

    @property
    def scales(self):
        """The calibrated scales of numbers and dates, a dict by column name."""
        return self._list_inferred("scale")

    @property
    def inferred_parameters(self):
        """The names of the inferred parameters of each column, a dict."""
        return self._list_inferred("parameters")

    @property
    def losses(self):
        """The most by which the means of numbers with inferred bounds may be low, a dict."""
        return self._list_inferred("loss")

    @property
    def _histograms(self):
        """The noisy histograms of numbers with inferred breakpoints, a dict."""
        return self._list_inferred("histograms")

    def _list_inferred(self, name):
        """Return an attribute of `Inferred` of the columns that have it, by column name."""
        found = {column: getattr(x, name) for column, x in (self.inferred or {}).items()}
        return {
            n: x for n, x in found.items() if x is not None and not (isinstance(x, tuple) and not x)
        }

    def without_histograms(self, names):
        """Return the format without the histograms of some columns, which are not calibrated."""
        inferred = {
            n: replace(x, histograms=()) if n in names else x
            for n, x in (self.inferred or {}).items()
        }
        return replace(self, inferred=inferred)

    @property
    def parameters(self):
        return {"schema": self.schema}

    @property
    def fitted_attributes(self):
        return {"schema_": self.schema}

    def describe(self):
        """Return the report on the columns; see `Format.describe`."""
        return {"schema_report_": describe(self.schema)}

    @property
    def has_class_target(self):
        """Whether tables may be stratified by the levels of the target; see `strata_pay`."""
        return self.target is not None and self.target.may_be_class

    @property
    def is_open(self):
        """Whether `resolve` releases anything."""
        return bool(SchemaInference(self.schema).releases)

    def split_budget(self, noise):
        """Return the shares of the releases of `resolve`; see `Format.split_budget`."""
        inference = SchemaInference(self.schema)
        is_open = any(map(inference.lacks_levels, self.schema.undeclared))
        share = CONSTANTS.inference_share if is_open else CONSTANTS.knots_share
        return inference.split_budget(share, noise)

    def with_even_knots(self):
        """Return the format with evenly spaced knots in place of inferred ones."""
        return replace(self, schema=self.schema.with_even_knots())

    @property
    def classes(self):
        if not self.levels_of_target:
            return None
        pairs = zip(self.levels_of_target, self.target.labels, strict=True)
        return np.array([label for level, label in pairs if level not in self.absent])

    @property
    def n_columns(self):
        """Number of columns of a row."""
        return TableEncoder(self.schema).n_columns

    @property
    def n_planned(self):
        # Neither levels nor knots are known where any are inferred.
        return None if self.is_open else self.n_columns

    @property
    def blocks(self):
        """Each column's name, and its slice of rows."""
        return TableEncoder(self.schema).blocks

    @property
    def block_sizes(self):
        """Number of columns of each block."""
        return [where.stop - where.start for _, where in self.blocks]

    def find_masks(self):
        """Return which weights are optional, of knots, and far out: three masks, (n_columns,).

        Optional weights are not generated if their counts are within noise of 0: those of knots far
        out, of `other` and of missing values. Knots are those that are not far out. Far out are
        knots and point masses.
        """
        is_optional, is_knot, is_far = np.zeros((3, self.n_columns), dtype=bool)
        for block in TableEncoder(self.schema).make_blocks():
            column, start = block.column_type, block.where.start
            if column.has_knots:
                end = start + len(block.knots)
                is_far[start:end] = is_optional[start:end] = find_far(block.knots)
                is_knot[start:end] = ~is_far[start:end]
                is_far[end : end + len(block.atoms)] = is_beyond(np.array(block.atoms), block.knots)
            is_optional[block.where.stop - 1] |= column.missing
            if column.other is not None:
                is_optional[start + column.levels.index(column.other)] = True
        return is_optional, is_knot, is_far

    @property
    def is_ordered(self):
        """Whether the levels of each block have an order."""
        columns = (self.schema[name] for name, _ in self.blocks)
        return [column.has_knots or column.is_ordered for column in columns]

    @property
    def target(self):
        """The column type of the target, or None."""
        return None if self.layout is None else self.schema.get(self.layout.label)

    @property
    def levels_of_target(self):
        """The levels of the target; empty without a target, and for a numeric one."""
        return getattr(self.target, "levels", ())

    @property
    def halves(self):
        """The `Halves` by which tables are stratified, or None."""
        blocks = TableEncoder(self.schema).make_blocks()
        if len(blocks) < 2 or self.target is None or not self.target.has_halves:
            return None
        column = [block.name for block in blocks].index(self.layout.label)
        return Halves.of(column, blocks[column])

    @property
    def by(self):
        """Position of the column of codes by which tables may be stratified, or None.

        It is the target, or the column of its halves, after all others.
        """
        if self.halves is not None:
            return len(self.blocks)
        if len(self.blocks) < 2 or len(self.levels_of_target) < 2:
            return None
        return [name for name, _ in self.blocks].index(self.layout.label)

    @property
    def code_sizes(self):
        """Numbers of levels of the columns of codes, from `encode_codes`."""
        return self.block_sizes + [2] * (self.halves is not None)

    def without_absent(self, is_empty):
        """Return the format without the classes that `Marginals.is_empty` tells of all levels."""
        if not self.levels_of_target:
            return self
        its_own = is_empty[dict(self.blocks)[self.layout.label]]
        return replace(self, absent=tuple(compress(self.levels_of_target, its_own)))

    def refine(self, columns):
        """Return the format with finer knots in some columns, and how codes among them follow.

        Inferred knots are refined, of numbers whose histograms show values between them.

        Parameters
        ----------
        columns : collection of int
            Positions of the columns.

        Returns
        -------
        TableFormat
        Refinement
            Its bins lie between the knots of that format.
        """
        blocks, refined, counted = TableEncoder(self.schema).make_blocks(), {}, self._histograms
        sizes = tuple(self.code_sizes)
        n_knots, n_parts = [0] * len(sizes), [0] * len(sizes)
        for i, block in enumerate(blocks):
            if i not in columns or not block.column_type.has_knots:
                continue
            # Bins would merge values, each of which has a knot.
            n_knots[i], n_parts[i] = len(block.knots), int(not block.is_discrete)
            # An even number of bins has an edge at the median of inferred knots.
            n = 2 * max(1, round(N_KNOTS / (2 * (n_knots[i] - 1))))
            column = block.refine(n) if block.name in counted else None
            if column is not None:
                n_parts[i], refined[block.name] = n, column
        # Rows match counts of the bins, which the histograms would move the edges between.
        refinement = Refinement(sizes, tuple(n_knots), tuple(n_parts))
        schema = self.schema.replace(refined)
        return replace(self.without_histograms(refined), schema=schema), refinement

    def find_impossible(self):
        """Return the pairs of weights that the rules exclude, a symmetric matrix of bool.

        Released counts of such a pair are noise and can be set to 0, since the rules are public.
        """
        from .rules.feasibility import find_impossible  # of rules alone

        return find_impossible(self.schema.rules, TableEncoder(self.schema).make_blocks())

    def _levels(self, name):
        column = self.schema.get(name)
        return (column.levels or None) if column is not None else None

    # Private tables.

    def check_held(self, table):
        """Refuse columns whose cells no column type holds, by their dtypes."""
        check_held(table, self.schema)

    def check_columns(self, table):
        """Raise an error if a table has other columns than the schema."""
        check_columns(table, self.schema)

    def check_dtypes(self, table, *, are_stated=False):
        """Raise an error for columns whose dtype cannot hold declared values."""
        check_dtypes(table, self.schema, are_stated=are_stated)

    def make_reader(self, stated):
        """Return the `CellReader` of private tables.

        Parameters
        ----------
        stated : sequence of str or None
            Columns that the source states to be texts, which are categories as written. None: all
            cells were already parsed as the declared types.

        Raises
        ------
        ValueError
            If readers of files may parse two categories as the same value.
        """
        styles = (None,) * len(self.schema)
        if stated is not None:
            styles = tuple(_style_of(n, c, n in stated) for n, c in self.schema.items())
        levels = (() if c.is_open else self._levels(n) or () for n, c in self.schema.items())
        return CellReader(styles, tuple(levels))

    def resolve(self, curator):
        """Infer undeclared properties; return the resolved format, which the curator applies."""
        if not self.is_open:
            return self
        inference = SchemaInference(self.schema, self.layout.label, self.has_class_target)
        schema, layout = self.layout.put_in_order(inference.run(curator))
        # Objects may be texts or values of Python, which come back, as do the values of texts that
        # are declared to be written otherwise than in Python; other texts and days stay.
        of_objects = [n for n in inference.unknown if self.layout.dtypes.get(n) == np.dtype(object)]
        days = {n for n in of_objects if getattr(schema[n], "unit", None) == "day"}
        layout = layout.without_dtypes(
            name
            for name, declared in inference.unknown.items()
            if name not in days
            and schema[name].cell_types is not None
            and not (is_text(layout.dtypes.get(name)) and declared.is_as_in_python)
        )
        # Their texts are read as readers of files would read them; those of other dtypes stay.
        are_whole = {n: schema[n].is_number and schema[n].decimals == 0 for n in of_objects}
        warn_of_columns("codes", [n for n, is_whole in are_whole.items() if is_whole])
        resolved = TableFormat(schema, layout, inference.describe(), inference.histograms)
        curator.prepare(RecordFunction(resolved.encode), 1.0)
        return resolved

    def validate(self, X, y=None):
        """Raise an error that names the column if cells are not as the schema declares them."""
        if self.is_open:
            SchemaInference(self.schema).validate(X)
        else:
            TableEncoder(self.schema).encode(self._parse(X))

    @property
    def encode(self):
        """A function of cells, an array of objects in the order of the schema, to rows.

        NaN marks invalid rows. Grids of undeclared columns are made once, and not for each block.
        """
        if self.schema.undeclared:
            return SchemaInference(self.schema).encode
        return self._encode_declared

    def _encode_declared(self, X, y=None):
        return TableEncoder(self.schema).encode_private(self._parse(X))

    def encode_cells(self, X, y=None):
        """Map cells to codes in the columns of a resolved schema; see `HatBasis`."""
        return TableEncoder(self.schema).encode_cells(self._parse(X))

    def encode_codes(self, X, y=None):
        """Map cells to codes of all columns, and of the halves of the target; see `by`."""
        # Once for a batch, as it makes the blocks of all columns.
        codes, halves = self.encode_cells(X), self.halves
        return codes if halves is None else halves.append(codes)

    def match_rows(self, tables):
        """Return released tables as those of rows, in which the column of halves is not."""
        return tables if self.halves is None else replace(tables, by=None)

    def _parse(self, X):
        return parse_inferred(as_frame(X, list(self.schema)), self.schema, self.texts)

    # Public tables.

    def without_target(self):
        return TableFormat(self.schema.select(list(self.layout.names)), self.layout, self.inferred)

    def read_public(self, estimator, X):
        dataset = Dataset(X)
        dataset.take_columns(self.schema, are_declared=True)
        dataset.validate_table(estimator, self, reset=False)
        return dataset.reader(dataset.release_ownership()[0][:])

    def calibrate_marginals(self, generate, report=None):
        generator = torch.Generator().manual_seed(0)
        calibrated = calibrate_scales(
            TableEncoder(self.schema).make_blocks(),
            self._histograms,
            self.share_std or {},
            lambda n_rows: generate(torch.zeros(n_rows, dtype=torch.int64), generator),
        )
        inferred = {n: replace(x, histograms=()) for n, x in (self.inferred or {}).items()}
        for name, (scale, _) in calibrated.items():
            inferred[name] = replace(inferred.get(name, Inferred()), scale=scale)
        if report is not None:
            report["error"] = [calibrated.get(n, (None, np.nan))[1] for n in report.index]
        return replace(self, inferred=inferred, histograms=None)

    def decode(self, rows, sizes, *, y=None, where=None):
        encoder = TableEncoder(self.schema, self.scales)
        sampler = TableSampler(encoder, rows.generate, rows.noise, self.coincident)
        for size in sizes:
            if isinstance(where, pd.DataFrame):
                if y is not None:
                    raise ValueError("Pass the classes as a column of where, and not as y.")
                table = sampler.complete(where, size)
            elif y is None:
                table = sampler.draw(size, where)
            else:
                from ..data.inputs import find_positions

                positions = find_positions(y, self.classes)
                table = sampler.draw_classes(positions, self.classes, self.layout.label, where)
            yield self.layout.restore(table, self.schema, self.texts)


def _style_of(name, column, is_stated):
    """Return the style by which the texts of a column are parsed; None to keep them."""
    if column.expected_text is not None and getattr(column, "words", None) is None:
        return TextStyle(expected=column.expected_text)
    if is_stated:
        return None
    pair = find_ambiguous(getattr(column, "levels", None) or ())
    if pair is not None:
        raise ValueError(
            f"Column {name!r} has categories {pair[0]!r} and {pair[1]!r}, which readers of files "
            "may turn into the same value. Pass the table in memory with a string dtype, or "
            "declare one of them."
        )
    return column if column.is_unknown else PLAIN


def declare(schema, dataset):
    """Return the schema of a table: the given one or, for ``"private"`` or rules, undeclared."""
    declared = schema if isinstance(schema, Schema) else None
    if declared:
        dataset.take_columns(declared, are_declared=True)
        return declared.of_texts(dataset.list_text_columns(declared))
    check_names(dataset.head)
    dataset.take_columns(dataset.head, are_declared=False)
    if not dataset.has_public_dtypes:
        # Readers infer the dtypes of a chunk from its private cells.
        return Schema(dict.fromkeys(dataset.head, Unknown()), getattr(declared, "rules", ()))
    dtypes, label = dict(dataset.head.dtypes), dataset.label
    if label is not None:
        dtype = np.dtype(object) if label.dtype is None else label.read_dtype
        dtypes[label.name or "target"] = dtype
    return Schema.from_dtypes(dtypes, declared=declared)
