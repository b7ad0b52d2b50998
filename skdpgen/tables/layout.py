# SPDX-License-Identifier: BSD-3-Clause
"""Containers, dtypes and target of fitted tables, which samples get again."""

from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
import pandas as pd

from ..data.cells import read_cell
from ..data.containers import PANDAS, Container
from ..data.dtypes import cast, find_held_range, hide_values, is_text
from ..data.names import name_cell
from ..data.texts import PLAIN
from ..registry import savable
from .columns import Category, Ordinal
from .columns.texts import write_cells
from .columns.values import Values


@savable
@dataclass(frozen=True)
class TableLayout:
    """Columns, dtypes and label of the table passed to `fit`, which samples get again.

    Attributes
    ----------
    names : tuple of str
        Columns of X.
    dtypes : dict of str to dtype
        Dtypes to which columns of samples are cast.
    label : str or None
        Name of the target.
    X, y : Container
        Containers of X and, if the target was passed as y, of this.
    listed : dict of str to dtype
        Dtypes that state an order or a type of categories, until these are inferred. Those that are
        ordered list them, and are private.
    """

    names: tuple
    dtypes: dict
    label: object = None
    X: Container = PANDAS
    y: Container | None = None
    listed: dict = field(default_factory=dict)

    @classmethod
    def of(cls, schema, dataset):
        head, y = dataset.head, dataset.label
        names, label = tuple(head.columns), dataset.target
        if y is not None:
            if label is not None:
                raise ValueError("Give y or target, not both.")
            # The schema declares the target as well: the one name that X does not have.
            lacking = [name for name in schema if name not in names]
            if not lacking and y.name in names:
                raise ValueError(
                    f"X has a column {y.name!r} as well, which is the name of y: rename y, or give "
                    f"target={y.name!r}."
                )
            if len(lacking) != 1:
                raise ValueError(
                    "y must be the one column of the schema that X lacks; X lacks "
                    f"{lacking or 'none'}."
                )
            label = lacking[0]
        elif label is not None and label not in schema:
            raise ValueError(f"target must be a column of the schema; got {label!r}.")
        if label in schema and label not in schema.learned:
            raise ValueError(
                f"{label!r} is an identifier or derived, not learned: it cannot be the target."
            )
        dtypes, listed = {}, {}
        if dataset.has_fixed_dtypes:
            stated = dataset.stated_dtypes | ({} if y is None else {label: y.dtype})
            _check_dtypes(schema, stated)
            # Only dtypes that a source states: those that readers infer depend on private cells.
            dtypes = {name: hide_values(dtype) for name, dtype in stated.items()}
            dtypes = {name: dtype for name, dtype in dtypes.items() if dtype is not None}
            read = {**head.dtypes, **({} if y is None else {label: y.read_dtype})}
            listed = {
                name: _list_categories(dtype)
                for name, dtype in read.items()
                # Parts list categories of their own.
                if schema.get(name) in _INFERRED
                and not (dataset.is_in_parts and isinstance(dtype, pd.CategoricalDtype))
            }
            listed = {name: dtype for name, dtype in listed.items() if dtype is not None}
        return cls(names, dtypes, label, dataset.container, y and y.container, listed)

    def without_dtypes(self, names):
        """Return the same without the dtypes of some columns, which are then not cast."""
        names = set(names)
        return replace(self, dtypes={k: v for k, v in self.dtypes.items() if k not in names})

    @property
    def ordered(self):
        """Names of the columns whose inferred categories have the order that a dtype states."""
        return [name for name, dtype in self.listed.items() if dtype.ordered]

    def put_in_order(self, schema):
        """Return a schema with released categories in the order and type that dtypes state.

        Returns
        -------
        Schema
        TableLayout
            Without the categories that are listed, as these are private.
        """
        columns = {name: _put_in_order(schema[name], dtype) for name, dtype in self.listed.items()}
        return schema.replace(columns), replace(self, listed={})

    def restore(self, frame, schema, styles=MappingProxyType({})):
        """Return a table of samples in the containers and dtypes of `fit`, texts in its styles."""
        for name, dtype in self.dtypes.items():
            if name in styles and is_text(dtype):
                frame[name] = write_cells(frame[name], schema[name], styles[name])
            if frame[name].dtype != dtype:
                frame[name] = _cast(frame[name], dtype, schema[name])
        X = self.X.give(frame[list(self.names)])
        return X if self.y is None else (X, self.y.give(frame[self.label]))


def _check_dtypes(schema, dtypes):
    """Raise an error for bounds, and rules on numbers, that the cast to a dtype would break."""
    for name, dtype in dtypes.items():
        column_type = schema.get(name)
        # Columns that no schema declares are named elsewhere.
        if column_type is None or not column_type.is_number or column_type.is_open:
            continue
        lower, upper = find_held_range(dtype, *_round_bounds(column_type, _find_places(dtype)))
        if lower > upper:
            raise ValueError(
                f"Column {name!r} has dtype {dtype}, and no value of it lies between the bounds "
                f"{column_type.lower!r} and {column_type.upper!r}: declare bounds in the units of "
                "the column."
            )
    for rule in schema.rules:
        for name in rule.names:
            column_type, dtype = schema[name], dtypes.get(name)
            if column_type.decimals is None and getattr(dtype, "kind", "O") in "iu":
                raise ValueError(
                    f"Column {name!r} holds integers: declare it with decimals=0, for {rule!r}."
                )


def _find_places(dtype):
    """Return how many decimals a dtype holds: those of integers and of Arrow's decimals."""
    if getattr(dtype, "kind", "O") in "iu":
        return 0
    if isinstance(dtype, pd.ArrowDtype) and str(dtype).startswith("decimal"):
        return dtype.pyarrow_dtype.scale
    return None


def _round_bounds(column_type, places):
    """Return the bounds of a number, rounded inwards to so many decimals."""
    values = Values(places)
    return values.at_least(column_type.lower), values.at_most(column_type.upper)


# Categorical columns without a declaration.
_INFERRED = Category(), Category(missing=True)


def _list_categories(dtype):
    """Return the order and type of categories that a dtype states, as another dtype, or None.

    A list that is not ordered follows from the rows, in any order, and is left empty.
    """
    if isinstance(dtype, pd.CategoricalDtype):
        if dtype.ordered:
            return dtype
        dtype = dtype.categories.dtype
    held = {"b": "bool", "f": "float64"}.get(kind := getattr(dtype, "kind", "O"), "int64")
    return pd.CategoricalDtype(pd.Index([], dtype=held)) if kind in "iufb" else None


def _put_in_order(column_type, dtype):
    """Return a column of released categories in the order, and of the type, of a dtype.

    An ordered dtype lists all categories, released or not. The result depends on the released ones
    alone, given the order of each two of them; the certificate states that this is public. Other
    categories are sorted, by value if they are numbers.
    """
    if column_type.categories == (column_type.other,):
        return column_type
    found, number = column_type.categories, dtype.categories.dtype.kind
    if number in "iuf":
        found = sorted(map(float, found))
        found = found if number == "f" else list(map(int, found))
    if dtype.ordered:
        positions = {}
        # Released names may be texts that were parsed, so that both spellings are known.
        for category in dtype.categories.tolist():
            for name in (name_cell(category), name_cell(read_cell(category, PLAIN))):
                positions.setdefault(name, len(positions))
        found = sorted(found, key=lambda c: positions.get(name_cell(c), len(positions)))
    # Neither an order nor a type of numbers has a place for "other".
    return (Ordinal if dtype.ordered else Category)(found, missing=column_type.missing)


def _cast(column, dtype, column_type):
    """Cast a column to its dtype in the private table, if that holds what the schema lists.

    Numbers within bounds that the dtype cannot hold are put at the end of its range. Categories are
    of the type of the dtype, if they are texts of its values.
    """
    if column_type.missing and isinstance(dtype, np.dtype) and dtype.kind in "iub":
        # NumPy's dtype holds no missing cell, and a declared column may have some.
        dtype = pd.Series([], dtype=dtype).convert_dtypes().dtype
    if not _can_hold(dtype, column_type):
        return column
    if isinstance(column.dtype, pd.CategoricalDtype) and getattr(dtype, "kind", "O") in "iufb":
        values = pd.Series(_read_levels(column.cat.categories), dtype=object)
        column = pd.Series(values.array.take(column.cat.codes, allow_fill=True), column.index)
    places = _find_places(dtype)
    if column.dtype.kind == "f" and (places is not None or dtype.kind == "f"):
        column = _round_within(column, places, column_type, dtype)
    if getattr(dtype, "kind", "O") in "iu" and column.dtype.kind == "i":
        least, most = map(float, find_held_range(dtype))
        if not column.dropna().between(least, most).all():
            if column_type.is_generated:  # clipping would make identifiers equal
                return column
            column = column.clip(least, most)
    if dtype == np.dtype(object) and column.dtype == "M8[s]" and column_type.unit == "day":
        column = column.dt.date.where(column.notna(), None)  # those of Python
    return cast(column, dtype)


def _can_hold(dtype, column_type):
    """Whether a dtype holds all that a schema lists: the dtype of a draw must not depend on it."""
    if isinstance(dtype, pd.CategoricalDtype) or column_type.is_open:
        return True
    listed = pd.Series([*column_type.levels]).infer_objects()
    if column_type.has_knots:
        number = column_type.to_number()
        numbers = np.array([number.lower, number.upper, *(number.atoms or ())])
        if column_type.is_number:
            first, last = find_held_range(dtype)
            return bool(((first <= numbers) & (numbers <= last))[2:].all())
        listed = pd.Series(column_type.decode(numbers, np.zeros(len(numbers), dtype=bool)))
    if getattr(dtype, "kind", "O") in "iufb":
        listed = pd.Series(_read_levels(listed), dtype=object)
    return cast(listed, dtype).dtype == dtype


def _read_levels(levels):
    """Return levels, of which texts are read as cells are."""
    return [read_cell(level, PLAIN) if isinstance(level, str) else level for level in levels]


def _round_within(column, places, column_type, dtype):
    """Round numbers to what a dtype holds; those within the bounds of their column stay there."""
    rounded = column if places is None else column.round(places)
    # Clipped, since a cast out of range wraps around, or gives infinities, without an error.
    rounded = rounded.clip(*map(float, find_held_range(dtype)))
    if not column_type.is_number or column_type.is_open:
        return rounded
    # Point masses may be beyond the bounds.
    is_within = column.between(column_type.lower, column_type.upper)
    ends = find_held_range(dtype, *_round_bounds(column_type, places))
    return rounded.mask(is_within, rounded.clip(*map(float, ends)))
