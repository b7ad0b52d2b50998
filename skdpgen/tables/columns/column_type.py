# SPDX-License-Identifier: BSD-3-Clause
"""The interface of column types, and their two bases: levels, and values between knots."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from ...data.cells import read_cells
from ...data.names import encode_levels
from ...data.record_functions import call_quietly
from ...data.texts import MISSING_TEXTS
from ..declaration import Declaration
from .cells import find_present

# Advice on cells of a wrong dtype.
CONVERT = "convert them, as with pandas.{}, or declare the column as another type"
# Elements of a list that a message shows at most.
_MOST_SHOWN = 8


class ColumnType(Declaration):
    """Base of column types. A type is a file with a frozen dataclass, and an entry of `TYPES`.

    The package asks a type by the members below, never by its class. Parameters are public: they
    are checked in ``__post_init__``, and written to JSON by `to_dict`. A type derives from
    `LevelColumn` or `KnotColumn`, and overrides the members in which it differs.

    Members that are given cells map each cell on its own. They keep nothing of a cell, and neither
    raise errors for one nor quote one: what is no value of the type becomes NaN.

    ``parse(cells, style)`` is given texts of a file, and returns values of the type; texts that are
    none stay. ``encode(cells)`` is given private cells of any dtype, texts and objects included,
    and returns which are present, and for these a code: the number of a level, or a number in the
    unit of the knots. ``decode(codes, missing)`` is given codes that were drawn, and returns cells
    of synthetic rows, whose dtype depends on the parameters alone. ``n_levels`` is the number of
    weights, once nothing is undeclared.

    ``infer(cells, counts, std)`` is given noisy counts, and must not see cells: it returns an
    undeclared column. ``of_dtype``, ``of_public`` and ``of_field`` are given a dtype, a public
    column and a field of metadata, and return None for those of other types. ``to_field`` is the
    inverse of the last one.
    """

    # Whether bounds or categories have to be inferred; whether knots are.
    is_open = takes_knots = False
    # Whether values are encoded between knots; have an order; are generated rather than learned;
    # have no declared type.
    has_knots = is_ordered = is_generated = is_unknown = False
    # Whether formulas take values as numbers, or as dates, of which a day has so many units.
    is_number = is_date = False
    units_per_day = 1
    # Decimals of values; None if they are not rounded.
    decimals: int | None = 0
    # All values that synthetic rows have, if they are listed; that of others, if there is one.
    levels: tuple = ()
    other: object = None
    missing = False
    # Codes of the NumPy dtypes that may hold values; "S" stands for the string dtypes of pandas.
    dtype_codes = "SOiufb"
    # Whether readers of files choose the dtype by the cells, so that a refusal would tell of one.
    is_dtype_inferred = False
    # The type of the texts of a declared column, as `TextStyle` has it.
    expected_text: str | None = None
    # Types of cells that an inferred column accepts, others becoming missing; None: all are names
    # of categories.
    cell_types: tuple[str, ...] | None = None
    # Types of cells by which the type is inferred, by names: those that nearly all cells have to be
    # of, and those of which half of the cells are enough. See `infer`.
    evidence: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    # Forms of fields of metadata that declare the type; see `of_field`.
    forms: tuple[str | None, ...] = ()
    # Bounds of all values, in units, and how many there are, as far as it is known.
    bounds: tuple[float, float] = (-np.inf, np.inf)
    n_values = np.inf
    # Decimals of the values of each level of `find_levels`, for types with steps; and whether it is
    # not declared how fine values are.
    level_decimals: tuple = ()
    is_rough = False
    # Whether tables may be stratified by halves of the values; see `Halves`.
    has_halves = False

    @classmethod
    def of_dtype(cls, dtype, missing):
        """Return the undeclared column that a dtype shows, or None; see `Schema.from_dtypes`."""

    @classmethod
    def of_public(cls, column, missing, n_knots):
        """Return the column that describes a public one, a Series; see `Schema.from_public`.

        None stands for other values. It raises ValueError for values that need a declaration.
        """

    @classmethod
    def of_field(cls, field):
        """Return the column that a field of metadata of one of `forms` declares."""
        raise NotImplementedError

    def to_field(self):
        """Return the parameters of a `Field` that declares the column, for other formats."""
        raise NotImplementedError

    @classmethod
    def infer(cls, cells, counts, std):
        """Return an undeclared column if most cells are of a type that `evidence` lists.

        Parameters
        ----------
        cells : str
            The type of cells.
        counts : dict of str to float
            Noisy counts of the types of all cells.
        std : float
        """
        return cls(missing=True)

    @property
    def open_parameters(self):
        """Names of the parameters that a generator infers."""
        names = ("lower", "upper", "categories")
        names += ("atoms",) * (self.is_open or self.takes_knots)
        return tuple(n for n in names if self.is_unknown or getattr(self, n, ()) is None)

    def of_texts(self):
        """Return the declared column as one of a table of texts."""
        return self

    def resolves(self, declared):
        """Return whether another type declares nothing else than this one, which may infer more."""
        if declared.is_unknown or not (declared.is_open or declared.takes_knots):
            return declared.is_unknown or self == declared
        is_same = (getattr(self, name) == value for name, value in declared._given().items())
        return type(self) is type(declared) and all(is_same)

    def compares_with(self, other):
        """Return whether values can be ordered beside those of another column, or subtracted."""
        return self.has_knots and type(self) is type(other)

    def with_even_knots(self):
        """Return the column with evenly spaced knots in place of inferred ones."""
        return self

    def as_classes(self, present=None):
        """Return integers with few values as ordered classes, other columns as they are."""
        return self

    @property
    def may_be_class(self):
        """Whether tables can be stratified by the levels of a target once all is inferred.

        A float is a number; an integer with few values is a class, and that is private until then.
        """
        return self.is_open or len(self.levels) > 1

    def example(self):
        """Return a declared column like the undeclared one, for made-up records."""
        return self

    def accepts(self, dtype):
        """Whether a column of a dtype may hold values of this type."""
        return get_dtype_code(dtype) in self.dtype_codes

    def conform(self, column):
        """Return a column of synthetic or public cells, those that no row can have replaced."""
        return column

    def parse(self, cells, style):
        """Return cells, of which texts are stripped, in their canonical form; see `read_cells`.

        A text that is no value stays, so that it counts as invalid rather than as missing.
        """
        style = replace(style, expected=self.expected_text or style.expected)
        found = read_cells(cells.to_numpy(dtype=object), style, MISSING_TEXTS)
        return pd.Series(found, index=cells.index, dtype=object)

    def __str__(self):
        # Inferred columns have hundreds of knots and breakpoints, which no message should list.
        shown = {
            name: value
            for name, value in self._given().items()
            if not isinstance(value, tuple) or len(value) <= _MOST_SHOWN
        }
        return self._write(shown)


class LevelColumn(ColumnType):
    """Base of column types whose values are one of a list of `levels`."""

    @property
    def labels(self):
        """The levels as cells show them."""
        return self.levels

    @property
    def n_levels(self):
        """Number of weights of a column, without that of missing values."""
        return len(self.levels)

    @property
    def n_values(self):
        """How many values there are; infinite if they are not known."""
        return np.inf if self.is_open else len(self.levels)

    def encode(self, column):
        """Return which cells are present, and the codes of these, NaN for undeclared levels."""
        present, codes = find_present(column), encode_levels(column, self.levels)
        codes = codes[present]
        if self.other is not None:
            codes = np.where(codes < 0, self.levels.index(self.other), codes)
        return present, np.where(codes < 0, np.nan, codes)

    def to_values(self, column):
        """Return the codes of cells as floats: NaN for missing values, -1 for other values."""
        positions = {level: float(i) for i, level in enumerate(self.levels)}
        cells = call_quietly(pd.Categorical, column)
        if cells is None:
            # One of them, such as a list, cannot be looked up.
            found = [call_quietly(_look_up, positions, cell) for cell in column]
            return np.array([-1.0 if code is None else code for code in found])
        # Levels are looked up once a category, not once a cell.
        known = [positions.get(level, -1) for level in cells.categories]
        return np.array([*known, np.nan])[cells.codes]

    def make_extremes(self):
        """Return a cell of each level."""
        return self.decode(np.arange(len(self.levels)), np.zeros(len(self.levels), dtype=bool))


class KnotColumn(ColumnType):
    """Base of column types whose values lie between bounds, in whole units or in fractions.

    `to_number` returns the column as a `Number` of units, which has the knots.
    """

    has_knots = is_dtype_inferred = True
    # Steps and shares of rounded values; those that are not inferred are an empty list.
    heaps: object = ()
    # Shares of the cells of each cycle, and the width of a cell and the start of one, in units.
    cycles: object = ()
    # Values that often encode missing information.
    candidates: tuple = ()

    @property
    def is_open(self):
        """Whether a bound is not known."""
        return self.lower is None or self.upper is None

    @property
    def positions(self):
        """Positions of the knots, in units."""
        return self.to_number().positions

    @property
    def takes_knots(self):
        """Whether knots must be inferred: the bounds are known, and no knots are declared."""
        return self.to_number().takes_knots

    @property
    def has_halves(self):
        """Whether a knot is near the median: inferred knots are quantiles."""
        number = self.to_number()
        return not self.is_open and number.knots is not None and len(number.positions) > 2

    @property
    def n_levels(self):
        """Number of weights of a column, without that of missing values."""
        number = self.to_number()
        return len(number.positions) + len(number.atoms or ())

    @property
    def bounds(self):
        """Bounds of all values in units, point masses included; infinite if undeclared."""
        if self.is_open:
            return super().bounds
        number = self.to_number()
        values = np.append(number.positions[[0, -1]], number.atoms or ())
        return values.min(), values.max()

    @property
    def n_values(self):
        """How many values there are between the bounds; infinite if it is not known."""
        return self.to_number().n_values

    @property
    def may_be_class(self):
        return False

    def wide_knots(self, n_per_octave):
        """Return the knots, in units, of the grid for private inference of a range."""
        return self.to_number().wide_knots(n_per_octave)

    def encode_levels(self, column):
        """Return which cells are present, their levels, or -1, and of dates those of `CYCLES`."""
        present, values = self.encode(column)
        return present, self.find_levels(values)

    def write(self, number):
        """Return about what value a number of units is, for findings."""
        (cell,) = self.decode(np.array([number]), np.array([False]))
        return str(cell)

    def make_extremes(self):
        """Return the cells of both bounds."""
        return self.decode(np.array(self.bounds), np.zeros(2, dtype=bool))

    def conform(self, column):
        """Return a column whose numbers or dates beyond the bounds are at the next bound."""
        number, (present, numbers) = self.to_number(), self.encode(column)
        values = np.full(len(column), np.nan)
        values[present] = numbers
        lower, upper, *atoms = _store([number.lower, number.upper, *(number.atoms or ())], column)
        nearest = np.clip(values, lower, upper)
        is_beyond = (abs(nearest - values) > 0) & ~np.isin(values, atoms)
        if not is_beyond.any():
            return column
        bounds = self.decode(np.where(is_beyond, nearest, number.lower), ~is_beyond)
        bounds = pd.Series(bounds, index=column.index)
        if getattr(column.dtype, "kind", "O") == "f":
            bounds = bounds.astype(column.dtype)
        try:
            return column.mask(is_beyond, bounds)
        except (TypeError, ValueError):  # a bound with decimals, of nullable integers
            return column.astype(object).mask(is_beyond, bounds)


def _look_up(positions, cell):
    return np.nan if pd.isna(cell) is True else positions.get(cell, -1.0)


def get_dtype_code(dtype):
    """Return the code of a dtype: "S" for string dtypes, else that of NumPy, or "O"."""
    return "S" if isinstance(dtype, pd.StringDtype) else getattr(dtype, "kind", "O")


def mask(values, missing):
    """Return values of a nullable dtype."""
    values = pd.array(values)
    values[missing] = pd.NA
    return values


def _store(numbers, column):
    """Return numbers as a column of floats holds them, which may have less than 64 bits."""
    dtype = getattr(column.dtype, "numpy_dtype", column.dtype)
    is_float = getattr(dtype, "kind", "O") == "f"
    return np.array(numbers, dtype=dtype if is_float else np.float64).astype(np.float64)
