# SPDX-License-Identifier: BSD-3-Clause
"""Private inference of undeclared column types, bounds and categories, one release a stage."""

import contextlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from ...data.cells import as_frame
from ...data.names import name_cell
from ...data.record_functions import RecordFunction
from ...data.texts import TextStyle, is_writable
from ...exceptions import TableError
from ...histograms.ranges import choose_per_octave, count_affordable
from ...mechanisms.categories import CategoryCountsMechanism, FrequentValuesMechanism
from ...mechanisms.sums import LevelCountsMechanism, WeightSumMechanism
from ...mechanisms.two_way import TablesMechanism
from ...quality import warn_of_columns
from ...registry import savable
from ..columns.cells import find_present
from ..columns.column_type import mask
from ..columns.number import N_KNOTS
from ..columns.texts import parse_private, read_cell
from ..columns.values import CodeScale
from ..declaration import explain
from ..encoder import TableEncoder
from ..rules.ordered import reconcile_orders
from ..schema import Schema
from ..strata import may_stratify
from .column import ColumnInference
from .counts import ValueCounts
from .decimals import (
    DECIMALS,
    encode_decimals,
    find_decimals,
    list_counted,
    list_rough,
    read_levels,
)
from .locations import N_LEVELS, SIZE, encode_locations, place_counters
from .type_inference import KINDS, encode_types, find_types, read_types

_review: ContextVar[Callable] = ContextVar("review", default=lambda inference, curator: None)
# Names of releases.
FREQUENT, CATEGORIES = FrequentValuesMechanism.name, CategoryCountsMechanism.name
RANGES, LOCATIONS, COUNTS = "value ranges", "value locations", "value counts"


@dataclass(frozen=True)
class StageConstants:
    """Constants of stages; set by hand unless stated."""

    # Weights of releases in the budget, relative to that of all others.
    decimals: float = 0.25
    locations: float = 0.8
    categories: float = 4 / 3
    # The weight of frequent values over all of many columns, each of which has at most 1.
    all_frequent: float = 2.4
    # Number of standard deviations of noise that the count of all records should have where
    # categories are found, and most of the budget for that: a threshold hides categories of few
    # records. Found on held-out rows of Adult, bank_marketing and diabetes130.
    wanted: float = 67.0
    most: float = 0.3
    # Weight of the counts of the target's categories: no model can learn those that are lost. It
    # costs eight other columns 15 % more noise.
    target_weight: int = 2
    # Most categories that are inferred for a column: the most frequent ones.
    max_levels: int = 1000
    # Fewest and most knots of the finer grid.
    min_fine: int = 16
    max_fine: int = 128
    # Knots that a column has in the end, at least; and what a cell of two columns is to have of the
    # records, on average, in units of its noise: twice as much where the records of each level of
    # the target have tables of their own (found on Adult and bank_marketing, on training rows).
    min_knots: int = 5
    cell: float = 10.0


CONSTANTS = StageConstants()


@savable
@dataclass(frozen=True)
class Histograms:
    """Released counts of the values of numbers and dates on fine grids.

    Attributes
    ----------
    schema : Schema
        The columns, with a knot at each point of the grid.
    counts : ndarray of shape (n_levels,)
        Noisy numbers of records near the knots of all columns, as `TableEncoder` orders them.
    std : float
        Standard deviation of their noise.
    """

    schema: Schema
    counts: np.ndarray
    std: float


@savable
@dataclass(frozen=True)
class Inferred:
    """Results of inference for one column, apart from its type.

    Attributes
    ----------
    parameters : tuple of str
        The parameters of the type that were inferred.
    style : TextStyle, default=None
        How its texts are written, if its type was inferred.
    histograms : sequence of Histogram
        Noisy counts of its values, if breakpoints were inferred, until its scale is calibrated.
    scale : CodeScale, default=None
        The calibrated scale of a number or date, from `calibrate_marginals`.
    loss : float, default=None
        As in `ColumnInference`.
    """

    parameters: tuple = ()
    style: TextStyle | None = None
    histograms: Sequence = ()
    scale: CodeScale | None = None
    loss: float | None = None


@contextlib.contextmanager
def reviewing_types(review: Callable) -> Iterator[None]:
    """Call ``review(inference, curator)`` once column types are known; it may end the fit."""
    token = _review.set(review)
    try:
        yield
    finally:
        _review.reset(token)


class Stage(ABC):
    """One release of schema inference, and what follows from it.

    `is_planned` follows from what is declared alone: a planned release is made whatever the types
    that earlier stages infer, since what is spent must not depend on the records.

    Attributes
    ----------
    name : str
        Name of the release.
    """

    name = ""

    @staticmethod
    @abstractmethod
    def is_planned(inference):
        """Return whether the release is planned for what is declared."""

    @abstractmethod
    def plan(self, inference):
        """Return the mechanism, a function of cells to what it reads, and the radius of that.

        The function is None if the mechanism reads cells, and the radius if it reads codes.
        """

    @abstractmethod
    def read(self, inference, released):
        """Take what was released."""

    def _count_nothing(self):
        """Return a release of zeros, where no column needs one."""
        return WeightSumMechanism(self.name), lambda cells, y=None: np.zeros((len(cells), 1)), 1.0


class Types(Stage):
    """Counts of the cells of undeclared columns that parse as numbers, dates, and so on.

    Each cell has one type, one form, and one sign at most. A record is encoded by squared weights
    of 7/(8m) at a type, and of 1/(16m) at a form and at a sign, for each of the m columns: a
    non-negative vector of norm 1, and two of these are at most √2 apart.
    """

    name = KINDS

    @staticmethod
    def is_planned(inference):
        return bool(inference.unknown)

    def plan(self, inference):
        return WeightSumMechanism(self.name), partial(self.encode, inference), 1.0

    def encode(self, inference, cells, y=None):
        """Encode each cell of undeclared columns by its type."""
        unknown = inference.unknown
        return encode_types(inference.parse(cells)[list(unknown)], unknown)

    def read(self, inference, released):
        found, inference.texts, inference.looks = find_types(
            *read_types(inference.unknown, released), inference.n_rows
        )
        inference.set_schema(inference.schema.replace(found))


class Steps(Stage):
    """Counts of the decimals of numbers and of the units of dates; encoded as `Types` does."""

    name = DECIMALS

    @staticmethod
    def is_planned(inference):
        return bool(inference.unknown or list_rough(inference.schema))

    def plan(self, inference):
        if not list_counted(inference.schema):
            return self._count_nothing()
        return WeightSumMechanism(self.name), partial(self.encode, inference), 1.0

    def encode(self, inference, cells, y=None):
        """Encode each cell of a number or date by its decimals or unit."""
        return encode_decimals(inference.parse(cells), inference.schema)

    def read(self, inference, released):
        counted = list_counted(inference.schema)
        levels = read_levels(inference.schema, released, inference.n_rows) if counted else {}
        warn_of_columns("dates as numbers", [n for n, found in levels.items() if found.are_dates])
        inference.set_schema(find_decimals(inference.schema, levels), levels)


class NumericStage(Stage):
    """A release about numbers and dates: planned if a bound, or a type, is open."""

    @staticmethod
    def is_planned(inference):
        return bool(inference.unknown or inference.opened)

    def _count(self, inference, columns):
        """Plan the counts of the values of some columns near the knots of their grids."""
        if not columns:
            return self._count_nothing()
        self.std = inference.noise_on(self.name, len(columns))
        types = {name: c.declared.from_number(c.grid) for name, c in columns.items()}
        self.encoder = TableEncoder(Schema(types))
        sizes = [where.stop - where.start for _, where in self.encoder.blocks]
        return LevelCountsMechanism(self.name, sizes), partial(self._encode, inference), None

    def _encode(self, inference, cells, y=None):
        return self.encoder.encode_cells(inference.parse(cells)[list(self.encoder.schema)])

    def _read_counts(self, inference, columns, released):
        """Yield each of the columns and its `ValueCounts`."""
        if not columns:
            return
        value = released.value * math.sqrt(len(columns))
        # The last ones are the finest.
        inference.histograms = Histograms(self.encoder.schema, value, self.std)
        for name, where in self.encoder.blocks:
            column = columns[name]
            yield column, ValueCounts(column.grid, value[where], self.std, inference.n_rows)


class FrequentValues(NumericStage):
    """Counts of frequent values above a threshold, which are candidates for point masses."""

    name = FREQUENT

    def plan(self, inference):
        opened = [name for name, c in inference.columns.items() if c.number.atoms is None]
        names = inference.schema.names
        # At least one column is counted, as the release is planned.
        names = [name for name in names if name in opened] or names[:1]
        positions = {name: inference.schema.names.index(name) for name in names}
        return FrequentValuesMechanism(positions), None, None

    def read(self, inference, released):
        for name, counts in released.items():
            if name in inference.columns:
                inference.columns[name].find_frequent(counts)


class Ranges(NumericStage):
    """Counts near the knots of a wide grid, which show the ranges of numbers and dates."""

    name = RANGES

    def plan(self, inference):
        std = inference.noise_on(self.name, len(inference.opened))
        for column in inference.opened.values():
            column.widen(choose_per_octave(inference.n_rows, std))
        return self._count(inference, inference.opened)

    def read(self, inference, released):
        for column, counted in self._read_counts(inference, inference.opened, released):
            column.read_range(counted)


class Locations(NumericStage):
    """Counts of the positions of values within few cells of the wide grid; see `locations`."""

    name = LOCATIONS

    def plan(self, inference):
        clusters = {name: c.wide.find_clusters() for name, c in inference.opened.items()}
        self.clusters = {name: found for name, found in clusters.items() if found}
        if not self.clusters:
            return self._count_nothing()
        counters = place_counters([len(found) for found in self.clusters.values()])
        mechanism = LevelCountsMechanism(self.name, *counters)
        return mechanism, partial(self.encode, inference), None

    def encode(self, inference, cells, y=None):
        """Encode numbers by their position in the clusters of their column."""
        table, codes = inference.parse(cells), []
        for name, found in self.clusters.items():
            column = inference.columns[name]
            present, values = column.known.encode(table[name])
            numbers = np.full(len(present), np.nan)
            numbers[present] = np.where(np.isin(values, column.wide.atoms), np.nan, values)
            codes.append(encode_locations(numbers, found))
        return np.hstack(codes)

    def read(self, inference, released):
        if self.clusters:
            n_parts = len(self.clusters) * N_LEVELS
            std = inference.noise_on(self.name, n_parts)
            located = iter(released.value.reshape(-1, SIZE) * math.sqrt(n_parts))
            for name, found in self.clusters.items():
                counted = {cells: next(located) for cells in found}
                inference.columns[name].read_clusters(counted, std)
        for column in inference.opened.values():
            column.refine(*inference.fine_grid)


class Categories(Stage):
    """Counts of categories above a threshold, whose names the records state."""

    name = CATEGORIES

    @staticmethod
    def is_planned(inference):
        return bool(inference.unknown or inference.categories)

    def plan(self, inference):
        names = inference.schema.names
        positions = {name: names.index(name) for name in inference.categories}
        weights = {inference.label: CONSTANTS.target_weight}
        return CategoryCountsMechanism(positions, weights), None, None

    def read(self, inference, released):
        lost = []
        for name, counts in released.items():
            column = inference.schema[name]
            found = explain(partial(with_categories, column, counts), f"Column {name!r}")
            inference.resolved[name] = found
            lost += [name] * (found.levels == (found.other,))
        warn_of_columns("no category", lost)


class Counts(NumericStage):
    """Counts on a grid within the range, which show knots, point masses and breakpoints."""

    name = COUNTS

    @staticmethod
    def is_planned(inference):
        return bool(inference.unknown or inference.columns)

    def plan(self, inference):
        for name, column in inference.columns.items():
            if name not in inference.opened:
                column.refine(*inference.fine_grid)
        self.n_affordable = count_knots(
            inference.plan,
            len(inference.schema.learned),
            inference.n_rows,
            inference.noise_on(self.name, len(inference.columns)),
            may_stratify(inference.schema.learned, inference.target),
        )
        return self._count(inference, inference.columns)

    def read(self, inference, released):
        for column, counted in self._read_counts(inference, inference.columns, released):
            column.read_counts(counted, self.n_affordable)
        for name, column in inference.columns.items():
            inference.resolved[name] = column.resolve()


STAGES = Types, Steps, FrequentValues, Ranges, Locations, Categories, Counts


class SchemaInference:
    """Resolves a schema by private releases, one a stage.

    Parameters
    ----------
    schema : Schema
    label : str, default=None
        The target, by which tables may be stratified.
    has_classes : bool, default=True
        Whether integers with few values become classes if they are the target.

    Attributes
    ----------
    releases : tuple of str
        Names of the releases to plan, in order; empty if the schema declares everything.
    unknown : dict of str to Unknown
        Columns that are declared to be of no type.
    columns : dict of str to ColumnInference
        Numbers and dates whose knots are inferred.
    opened : dict of str to ColumnInference
        Those of which a bound is open.
    categories : list of str
        Columns whose categories are inferred.
    resolved : dict of str to ColumnType
        Types that were inferred.
    texts : dict of str to TextStyle
        After `run`, how the texts of unknown columns are written.
    looks : dict of str to str
        After `run`, what unknown columns look like that are of no type.
    histograms : Histograms or None
        After `run`, the counts in which knots were found.
    """

    def __init__(self, schema, label=None, has_classes=True):
        self.label, self.has_classes = label, has_classes
        self.unknown = {
            n: declared for n, declared in schema.learned.items() if declared.is_unknown
        }
        self.texts, self.looks, self.resolved = {}, {}, {}
        self.histograms: Histograms | None = None
        self._declared = schema
        self.set_schema(schema)
        self.stages = [stage() for stage in STAGES if stage.is_planned(self)]
        self.releases = tuple(stage.name for stage in self.stages)

    def set_schema(self, schema, levels=None):
        """Take a schema of which more is known, and the counts of decimals."""
        self.schema, levels = schema, levels or {}
        known = {n: declared for n, declared in schema.learned.items() if not declared.is_unknown}
        self.categories = [
            n for n, declared in known.items() if declared.is_open and not declared.has_knots
        ]
        self.columns = {
            name: ColumnInference(
                declared,
                levels.get(name),
                name in self.texts,
                name == self.label,
                name == self.label and self.has_classes,
            )
            for name, declared in known.items()
            if (declared.is_open and declared.has_knots) or declared.takes_knots
        }
        self.opened = {n: column for n, column in self.columns.items() if column.declared.is_open}

    def split_budget(self, share, noise=0.0):
        """Return the share of the budget of each release; see `split_budget`."""
        n_categories = len(self.unknown) + sum(map(self.lacks_levels, self.categories))
        return split_budget(self.releases, len(self.schema.undeclared), n_categories, share, noise)

    def lacks_levels(self, name):
        """Return whether more than the words of a column is open."""
        return self.schema[name].n_values == np.inf

    @cached_property
    def _encoder(self):
        """The encoder of all columns of known types, open ones by the grids of their first look."""
        types = {
            n: declared for n, declared in self.schema.learned.items() if n not in self.unknown
        }
        types |= {n: with_categories(types[n], {}) for n in self.categories}
        types |= {n: c.declared.from_number(c.grid) for n, c in self.opened.items()}
        return TableEncoder(Schema(types))

    def encode(self, cells, y=None):
        """Encode cells as the first release reads them."""
        if isinstance(self.stages[0], Types | Steps):
            return self.stages[0].encode(self, cells)
        return self._encoder.encode_private(self._accept_words(self.parse(cells)))

    def validate(self, cells):
        """Raise an error that names the column if cells are not of the declared types."""
        table = self.parse(cells)
        for name in filter(self.lacks_levels, self.categories):
            check_type(name, table[name], self.schema[name].other)
        if learned := [name for name in self.schema.learned if name not in self.unknown]:
            self._encoder.encode(self._accept_words(table)[learned])

    def _accept_words(self, table):
        """Return a table in which unknown words of booleans are values, as any two may be."""
        for name in self.categories:
            if not self.lacks_levels(name):
                codes = self.schema[name].to_values(table[name])
                table = table.assign(**{name: mask(codes == 1, np.isnan(codes))})
        return table

    def parse(self, cells):
        """Return cells in the order of the schema as a table, with differences of columns."""
        return self.schema.add_differences(as_frame(cells, list(self.schema)))

    def run(self, curator):
        """Make the releases and return a schema that leaves nothing open."""
        self.plan, self.n_rows = curator.plan, curator.n_rows
        for stage in self.stages:
            mechanism, encode, radius = stage.plan(self)
            if encode is not None:
                curator.prepare(RecordFunction(encode), radius)
            stage.read(self, curator.release(mechanism))
            if isinstance(stage, Types):
                _review.get()(self, curator)
                # After the review, which may end the fit for the same reason.
                warn_of_columns("looks", self.looks)
                known = partial(parse_private, schema=self.schema, styles=self.texts)
                curator.parse_cells(known)
        self._warn()
        types = {**self.schema, **self.resolved}
        return self.schema.replace(reconcile_orders(self.schema, types))

    def describe(self):
        """Return what is `Inferred` of the columns, after `run`: a dict."""
        # Breakpoints of dates that are knots after rounding are none.
        histograms = {
            name: tuple(column.histograms)
            for name, column in self.columns.items()
            if column.histograms and self.resolved[name].cuts
        }
        names = {name: declared.open_parameters for name, declared in self._declared.items()}
        return {
            name: Inferred(
                names.get(name, ()),
                self.texts.get(name),
                histograms.get(name, ()),
                loss=self.columns[name].loss if name in self.opened else None,
            )
            for name in (*names, *self.columns.keys() - names.keys())
            if names.get(name) or name in self.texts or name in histograms
        }

    def _warn(self):
        """Warn of the findings on columns, by cause."""
        found: dict[str, dict[str, str]] = {}
        for name, column in self.columns.items():
            for cause, detail in column.findings.items():
                found.setdefault(cause, {})[name] = detail
        for cause, details in found.items():
            warn_of_columns(cause, details)

    def noise_on(self, release, n_columns):
        """Return the standard deviation of the noise on the counts of some columns."""
        return noise_on_counts(self.plan, release, n_columns)

    @property
    def fine_grid(self):
        """The number of knots of finer grids, and of knots an octave where bounds are declared."""
        std = self.noise_on(COUNTS, len(self.columns))
        n_knots = count_affordable(self.n_rows, std, CONSTANTS.min_fine, CONSTANTS.max_fine)
        return n_knots, choose_per_octave(self.n_rows, std)

    @property
    def target(self):
        """The type of the target, as far as it is known before the last counts."""
        if self.label in self.opened:
            grid = self.columns[self.label].grid
            return grid.as_classes() if self.has_classes else grid
        return self.resolved.get(self.label, self.schema.get(self.label))


def split_budget(
    releases: Sequence[str], n_undeclared: int, n_categories: int, share: float, noise: float
) -> dict[str, float]:
    """Return the share of the budget of each release.

    Parameters
    ----------
    releases : sequence of str
        Their names.
    n_undeclared, n_categories : int
        Numbers of undeclared columns, and of those that may have categories.
    share : float
        Share of all releases together, if there are many records.
    noise : float
        As in `Format.split_budget`. The larger this is, the more has the release of categories.
    """
    weights = dict.fromkeys(releases, 1.0)
    weights |= {
        # The more columns there are, the fewer values are clear of the noise.
        FREQUENT: min(1.0, CONSTANTS.all_frequent / max(n_undeclared, 1)),
        DECIMALS: CONSTANTS.decimals,
        LOCATIONS: CONSTANTS.locations,
        CATEGORIES: CONSTANTS.categories,
    }
    total = sum(weights[name] for name in releases)
    shares = {name: share * weights[name] / total for name in releases}
    if CATEGORIES in shares:
        wanted = n_categories * (CONSTANTS.wanted * noise) ** 2
        shares[CATEGORIES] = max(shares[CATEGORIES], min(CONSTANTS.most, wanted))
    return shares


def noise_on_counts(plan, release, n_columns):
    """Return the standard deviation of the noise on the counts of some columns in a release."""
    unit = plan.bound(WeightSumMechanism(release).sensitivity) * math.sqrt(n_columns or 1)
    return plan.multiplier(release) * unit


def count_knots(plan, n_columns, n_rows, std, is_stratified):
    """Return the largest number of inferred knots of a column, whose counts have noise `std`.

    Tables may be stratified by the target, or its halves.
    """
    most, least = N_KNOTS, CONSTANTS.min_knots
    has_tables = TablesMechanism.name in dict(plan.releases)
    if has_tables and plan.sigma > 0:
        noise = TablesMechanism.noise_on_cells(plan.sigma, n_columns)
        most = min(most, round(math.sqrt(n_rows / ((1 + is_stratified) * CONSTANTS.cell * noise))))
    return count_affordable(n_rows, std, least, max(least, most))


def with_categories(category, counts):
    """Return a category with the most frequent of those found, of the type of `other`.

    Texts that UTF-8 cannot write stay `other`: no schema holds them.
    """
    counts = {name: count for name, count in counts.items() if is_writable(name)}
    if category.other is None:
        return category.with_words(counts)
    if not isinstance(category.other, str):
        counts = _as_numbers(counts)
    found = sorted(sorted(counts, key=counts.get)[-CONSTANTS.max_levels :])
    return replace(category, categories=found or [category.other])


def _as_numbers(counts):
    """Return the counts of categories that are numbers."""
    read = {name: read_cell(name)[1] for name in counts}
    numbers = {name: value for name, value in read.items() if isinstance(value, bool | float)}
    return {
        int(value) if value == int(value) else value: counts[name]
        for name, value in numbers.items()
    }


def check_type(name, column, other):
    """Raise an error for categories of another type than `other`, of which all will be."""
    names = [name_cell(cell) for cell in column[find_present(column.to_numpy())]]
    if not isinstance(other, str):
        names = [name if name and _as_numbers({name: 1}) else None for name in names]
    if None in names:
        what = "strings; convert them" if isinstance(other, str) else "numbers"
        raise TableError(
            f"Column {name!r} holds categories that are not {what}. Declare it, with other=... of "
            "the type of its categories if these are to be found."
        )
