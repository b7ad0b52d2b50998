# SPDX-License-Identifier: BSD-3-Clause
"""Base of column types, and checks of their parameters."""

import math
import sys
from collections import Counter
from dataclasses import MISSING, fields, replace

import numpy as np
import pandas as pd

from ...data.cells import read_cells
from ...data.record_functions import call_quietly
from ...data.texts import MISSING_TEXTS, is_writable

# Advice on cells of a wrong dtype.
CONVERT = "convert them, as with pandas.{}, or declare the column as another kind"


# Elements of a list that a message shows at most.
_MOST_SHOWN = 8


class Column:
    """Base of column types.

    A type has a file of its own: its parameters and their checks, the dtypes that it accepts, and
    the maps of its cells from texts, to numbers or codes, and back.
    """

    # Whether bounds or categories have to be inferred; whether knots are.
    is_open = takes_knots = False
    # Whether values are encoded between knots; have an order; are generated rather than learned;
    # have no declared type.
    has_knots = is_ordered = is_generated = is_unknown = False
    # Codes of the NumPy dtypes that may hold values; "S" stands for the string dtypes of pandas.
    dtype_codes = "SOiufb"
    # Whether readers of files choose the dtype by the cells, so that a refusal would tell of one.
    is_dtype_inferred = False
    # The type of the texts of a declared column, as `TextStyle` has it.
    expected_text: str | None = None
    # The types of cells that an inferred column of the type accepts, others becoming missing; None:
    # all cells are names of categories.
    text_kinds: tuple[str, ...] | None = None
    # The level of values that are not listed, if there is one.
    other: object = None
    # Number of units of a day; 1 for columns that are no dates.
    units_per_day = 1

    @property
    def open_parameters(self):
        """Names of the parameters that a generator infers."""
        names = ("lower", "upper", "categories")
        names += ("atoms",) * (self.is_open or self.takes_knots)
        return tuple(n for n in names if self.is_unknown or getattr(self, n, ()) is None)

    def resolves(self, declared):
        """Return whether another type declares nothing else than this one, which may infer more."""
        if declared.is_unknown or not (declared.is_open or declared.takes_knots):
            return declared.is_unknown or self == declared
        is_same = (getattr(self, name) == value for name, value in declared._given().items())
        return type(self) is type(declared) and all(is_same)

    def accepts(self, dtype):
        """Whether a column of a dtype may hold values of this type."""
        return get_dtype_code(dtype) in self.dtype_codes

    def to_values(self, column):
        """Return cells as floats, NaN for missing values."""
        return pd.Series(column).to_numpy(np.float64, na_value=np.nan, copy=True)

    def conform(self, column):
        """Return a column whose numbers or dates beyond the bounds are at the next bound."""
        if not self.has_knots:
            return column
        number, (present, numbers) = self.to_number(), self.read(column)
        values = np.full(len(column), np.nan)
        values[present] = numbers
        lower, upper, *atoms = _store([number.lower, number.upper, *(number.atoms or ())], column)
        nearest = np.clip(values, lower, upper)
        is_beyond = (abs(nearest - values) > 0) & ~np.isin(values, atoms)
        if not is_beyond.any():
            return column
        bounds = self.make_cells(np.where(is_beyond, nearest, number.lower), ~is_beyond)
        bounds = pd.Series(bounds, index=column.index)
        if getattr(column.dtype, "kind", "O") == "f":
            bounds = bounds.astype(column.dtype)
        try:
            return column.mask(is_beyond, bounds)
        except (TypeError, ValueError):  # a bound with decimals, of nullable integers
            return column.astype(object).mask(is_beyond, bounds)

    def parse(self, cells, style):
        """Return cells, of which texts are stripped, in their canonical form; see `read_cells`.

        A text that is no value stays, so that it counts as invalid rather than as missing.
        """
        style = replace(style, expected=self.expected_text)
        found = read_cells(cells.to_numpy(dtype=object), style, MISSING_TEXTS)
        return pd.Series(found, index=cells.index, dtype=object)

    def to_dict(self):
        """Return the column as a dict, without what is at its default.

        Returns
        -------
        dict
        """
        given = {k: list(v) if isinstance(v, tuple) else v for k, v in self._given().items()}
        return {"type": type(self).__name__.lower(), **given}

    def __repr__(self):
        return self._write(self._given())

    def __str__(self):
        # Inferred columns have hundreds of knots and breakpoints, which no message should list.
        shown = {
            name: value
            for name, value in self._given().items()
            if not isinstance(value, tuple) or len(value) <= _MOST_SHOWN
        }
        return self._write(shown)

    def _write(self, given):
        given = ", ".join(f"{name}={value!r}" for name, value in given.items())
        return f"{type(self).__name__}({given})"

    def _given(self):
        values = ((field, getattr(self, field.name)) for field in fields(self))
        return {field.name: value for field, value in values if value != field.default}

    def _set(self, **values):
        """Put checked values in place of those that were given."""
        for name, value in values.items():
            object.__setattr__(self, name, value)


class LevelColumn(Column):
    """Base of column types whose values are one of a list of `levels`."""

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


def plain(value):
    """Turn scalars of NumPy into those of Python, which JSON knows."""
    return value.item() if isinstance(value, np.generic) else value


def check_list(name, values):
    """Refuse strings, and sets, whose order changes from run to run."""
    if hasattr(values, "tolist"):
        values = values.tolist()
    if not isinstance(values, list | tuple):
        raise ValueError(f"{name} must be a list; got {values!r}.")
    return values


def check_labels(labels, name="categories"):
    labels = tuple(plain(label) for label in check_list(name, labels))
    if not labels:
        raise ValueError(f"{name} must not be empty.")
    for label in labels:
        # Types that JSON can write, and that compare by value.
        if not isinstance(label, str | int | float) or (
            isinstance(label, float) and not math.isfinite(label)
        ):
            raise ValueError(
                f"{name} must be strings or finite numbers; got {label!r}. Missing values are "
                "declared with missing=True."
            )
        if not is_writable(label):
            raise ValueError(f"{name} must be texts that UTF-8 can write; got {label!r}.")
    # A text "1" and a number 1 would be the same in a file of texts.
    if len({isinstance(label, str) for label in labels}) > 1:
        raise ValueError(f"{name} must be all strings or all numbers.")
    repeated = find_repeated(labels)
    if repeated:
        raise ValueError(f"{name} must be different; got {repeated} more than once.")
    return labels


def check_number(name, value):
    value = plain(value)
    # True is an int in Python, and no number of a schema.
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not abs(value) <= sys.float_info.max:
        raise ValueError(f"{name} must be a finite number; got {value!r}.")
    # Values are floats: a whole number that none of them equals becomes the nearest one.
    return value if float(value) == value else float(value)


def check_numbers(name, values):
    return tuple(check_number(name, value) for value in check_list(name, values))


def check_whole(name, value, lowest, highest=None):
    value = plain(value)
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not is_whole or value < lowest or (highest is not None and value > highest):
        upto = "" if highest is None else f" and at most {highest}"
        raise ValueError(f"{name} must be a whole number, at least {lowest}{upto}; got {value!r}.")
    return value


def check_heaps(heaps, n_numbers, steps=None):
    """Return heaps as tuples: of a known step, or of so many numbers, and of a share."""
    if heaps is None:
        return None
    found = tuple(tuple(plain(part) for part in check_list("heaps", heap)) for heap in heaps)
    for heap in found:
        *step, share = heap or (None,)
        is_step = (
            step[0] in steps if steps and step else len(check_numbers("heaps", step)) == n_numbers
        )
        is_share = isinstance(share, int | float) and 0 < share <= 1
        if not (is_step and is_share and (steps or step[0] > 0)):
            raise ValueError(
                "heaps must be a list of a step"
                + (f" among {list(steps)}" if steps else ", a gap")
                + f" and a share of at most 1; got {list(heap)}."
            )
    if sum(heap[-1] for heap in found) > 1 + 1e-9:
        raise ValueError("the shares of heaps must sum to at most 1.")
    return found


def check_flag(missing):
    if not isinstance(missing, bool):
        raise ValueError(f"missing must be True or False; got {missing!r}.")


def find_repeated(values):
    return [value for value, count in Counter(values).items() if count > 1]


def read_dict(spec, classes):
    """Return what a dict describes, of the class that its ``"type"`` names."""
    given = dict(spec)
    name = given.pop("type", None)
    if not isinstance(name, str) or name not in classes:
        raise ValueError(f"its 'type' must be one of {list(classes)}; got {name!r}.")
    known = fields(classes[name])
    unknown = [key for key in given if key not in [field.name for field in known]]
    if unknown:
        raise ValueError(
            f"a {name} has no {unknown}; it may have {[field.name for field in known]}."
        )
    lacking = [f.name for f in known if f.default is MISSING and f.name not in given]
    if lacking:
        raise ValueError(f"{name} needs {lacking}.")
    return classes[name](**given)
