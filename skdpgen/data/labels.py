# SPDX-License-Identifier: BSD-3-Clause
"""Labels beside rows: public facts about them, and labels as a column of a table."""

from dataclasses import dataclass

import pandas as pd
from pandas.api.extensions import ExtensionArray
from sklearn.utils.validation import column_or_1d

from .cells import as_objects
from .containers import Container, adapt, adapt_column
from .record_functions import call_quietly


@dataclass(frozen=True)
class Label:
    """Public facts about `y`.

    Attributes
    ----------
    name : object
        The name of a Series.
    dtype : dtype or None
        As the container states it; None for a list.
    read_dtype : dtype or None
        As it is read: see `adapt`.
    container : Container
    """

    name: object
    dtype: object
    read_dtype: object
    container: Container

    @classmethod
    def of(cls, y) -> "Label":
        """Return the public facts about labels or numbers."""
        y, container, dtypes = adapt_column(y)
        if isinstance(y, pd.DataFrame) and len(y.columns):
            y = y.iloc[:, 0]
        name, dtype = getattr(y, "name", None), dtypes[0] if dtypes else None
        return cls(name, dtype, getattr(y, "dtype", None), container)


def join_label(X, y, name):
    """Return a table with labels as a column of it."""
    # A list has no dtype: NumPy would choose one by the labels.
    y = adapt(as_objects(y) if isinstance(y, list | tuple) else y).data
    # By position, as all labels: `check_order` has refused another order of the same index.
    y = y.array if isinstance(y, pd.Series) else y
    if not isinstance(y, ExtensionArray):
        y = column_or_1d(y, warn=True)
    check_length(y, len(X))
    # pandas would choose a dtype by the labels, if all of them are dates.
    dtype = object if y.dtype == object else None
    return X.assign(**{name: pd.Series(y, index=X.index, dtype=dtype)})


def check_length(y, n_rows: int) -> None:
    """Refuse `y` of another length than X; no length is quoted, as it may be private."""
    if len(y) != n_rows:
        raise ValueError(
            "y must have one entry for each row of X: inconsistent numbers of samples."
        )


def check_order(X, other, name: str, whose: str = "another row's") -> None:
    """Refuse labels or identifiers that have the index of X in another order.

    The message names the parameter, and whose each entry would be, but no row.
    """
    index, order = getattr(X, "index", None), getattr(other, "index", None)
    if not (isinstance(index, pd.Index) and isinstance(order, pd.Index)):
        return
    # A plain difference of length is reported by the check of lengths. Some indexes cannot be
    # compared.
    if len(index) != len(order) or call_quietly(index.equals, order):
        return
    difference = call_quietly(index.symmetric_difference, order, None, False)
    if difference is not None and not len(difference):
        raise ValueError(
            f"{name} has the index of X in another order, and rows are matched by position: each "
            f"would be {whose}. Give {name}.loc[X.index], or {name}.array if the order is right."
        )
