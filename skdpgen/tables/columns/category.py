# SPDX-License-Identifier: BSD-3-Clause
"""Categorical columns, unordered and ordered."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype

from ...data.dtypes import check_dtype
from ...data.texts import MISSING_TEXTS
from ..declaration import check_flag, check_labels, plain
from .column_type import LevelColumn

# A public sample with more different values than this holds names or texts rather than categories.
_MAX_INFERRED = 100


class _Categories(LevelColumn):
    """Base of both types of categories."""

    @classmethod
    def of_public(cls, column, missing, n_knots):
        """Return the categories of a categorical dtype that is ordered as the type is."""
        dtype = column.dtype
        if not isinstance(dtype, pd.CategoricalDtype) or dtype.ordered != cls.is_ordered:
            return None
        check_dtype(dtype, "it", f"frame[{column.name!r}]")
        return cls(dtype.categories.tolist(), missing=missing)

    @classmethod
    def of_field(cls, field):
        field.drop_bounds()
        levels, missing = field.read_levels()
        return cls(levels, missing=missing)

    def to_field(self):
        levels = None if self.is_open else list(self.levels)
        known, form = levels or [self.other], "number"
        if all(isinstance(level, str) for level in known):
            form = "string"
        elif all(isinstance(level, int) for level in known):
            form = "integer"
        return {"type": form, "categories": levels, "is_ordered": self.is_ordered}

    def describe_mismatch(self, dtype):
        """Return the fault of cells of another dtype, and the remedy, for an error."""
        types = " and ".join(sorted({type(level).__name__ for level in self.levels}))
        what = (
            f"are not among its categories (the column has dtype {dtype}, the categories are of "
            f"type {types})"
        )
        return what, "declare all that may occur, or other=... for a category"

    def decode(self, codes, missing):
        """Return the cells of synthetic codes of levels."""
        codes = np.where(missing, -1, codes)
        # All levels, also those that no row has, so that all samples have one dtype.
        return pd.Categorical.from_codes(codes, list(self.levels), ordered=self.is_ordered)

    def parse(self, cells, style):
        """Return the levels of texts, in the levels' own type, and other texts as they are."""
        # Files hold texts: a level 1 is read from "1".
        levels = {str(level): level for level in self.levels}
        return cells.map(lambda c: levels.get(c, None if c in MISSING_TEXTS else c)).astype(object)


@dataclass(frozen=True, repr=False)
class Category(_Categories):
    """A column of unordered categories.

    Parameters
    ----------
    categories : list of str or of numbers, default=None
        All values that may occur, in the type that they have in the table. None: a generator infers
        them, at a cost.
    other : str or number, default=None
        A category, listed or new, for values that are not listed. Without it they are refused.
        Where categories are not known it is ``"other"``, unless it is given.
    missing : bool, default=False
        Whether values may be missing.

    Attributes
    ----------
    levels : tuple
        The categories, and `other` if it is new.

    Raises
    ------
    ValueError
        If there are no categories, or some are equal, missing or of different types.

    Examples
    --------
    >>> from skdpgen import Category
    >>> Category(["cat", "dog"], other="another animal").levels
    ('cat', 'dog', 'another animal')
    """

    categories: Sequence | None = None
    other: object = None
    missing: bool = False

    forms = ("category", "string")

    def __post_init__(self):
        categories, other = self.categories, plain(self.other)
        if categories is None:
            # Undeclared categories always have it, as rare ones are merged.
            other = "other" if other is None else other
        else:
            categories = check_labels(categories)
        if other is not None:
            check_labels([other])
        self._set(categories=categories, other=other)
        check_labels(self.levels)
        check_flag(self.missing)

    @classmethod
    def of_public(cls, column, missing, n_knots):
        if infer_dtype(column, skipna=True) != "string":
            return super().of_public(column, missing, n_knots)
        found = sorted(column.dropna().unique())
        if len(found) > _MAX_INFERRED:
            raise ValueError(f"it has more than {_MAX_INFERRED} different values.")
        return cls(found, missing=missing)

    def example(self):
        return Category(["a", "b", "c"]) if self.is_open else self

    @property
    def is_open(self):
        """Whether the categories are not known."""
        return self.categories is None

    @property
    def levels(self):
        """All values that synthetic rows have."""
        known = self.categories or ()
        # `other` may be one of the categories, which then also stands for values that are not
        # listed.
        is_new = self.other is not None and self.other not in known
        return known + (self.other,) * is_new

    def conform(self, column):
        """Return a column whose categories that are not listed are `other`, if there is one."""
        is_new = self.to_values(column) < 0
        is_any = self.other is not None and is_new.any()
        return column.astype(object).mask(is_new, self.other) if is_any else column

    def parse(self, cells, style):
        """Return the categories of texts; numbers where undeclared categories are numbers."""
        if self.is_open and not isinstance(self.other, str):
            return LevelColumn.parse(self, cells, replace(style, expected="number"))
        return super().parse(cells, style)


@dataclass(frozen=True, repr=False)
class Ordinal(_Categories):
    """A column of ordered categories.

    Parameters
    ----------
    categories : list of str or of numbers
        All values that may occur, from the lowest to the highest, in the type that they have in
        the table.
    missing : bool, default=False
        Whether values may be missing.

    Attributes
    ----------
    levels : tuple
        The categories.

    Raises
    ------
    ValueError
        If there are no categories, or some are equal, missing or of different types.

    Examples
    --------
    >>> from skdpgen import Ordinal
    >>> Ordinal(["low", "medium", "high"])
    Ordinal(categories=('low', 'medium', 'high'))
    """

    categories: Sequence
    missing: bool = False

    is_ordered = True
    forms = ("ordinal",)

    def __post_init__(self):
        self._set(categories=check_labels(self.categories))
        check_flag(self.missing)

    @property
    def levels(self):
        """All values that synthetic rows have."""
        return self.categories
