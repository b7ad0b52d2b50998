"""How samples are handed back: as what `fit` was given."""

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..privacy.records import first_chunk

__all__ = ["ArrayFormat", "TableFormat", "check_frame"]


@dataclass(frozen=True)
class ArrayFormat:
    """How to hand back what `fit` was given."""

    columns: pd.Index | None
    dtype: np.dtype
    has_target: bool
    is_series: bool
    target_name: object
    is_categorical: bool
    classes: np.ndarray | None = None

    @classmethod
    def of(cls, X, y):
        is_frame, is_series = isinstance(X, pd.DataFrame), isinstance(y, pd.Series)
        dtypes = set(X.dtypes) if is_frame else {getattr(X, "dtype", None)}
        return cls(
            columns=X.columns if is_frame else None,
            dtype=np.dtype(np.float32 if dtypes == {np.dtype(np.float32)} else np.float64),
            has_target=y is not None,
            is_series=is_series,
            target_name=y.name if is_series else None,
            is_categorical=is_series and isinstance(y.dtype, pd.CategoricalDtype),
        )

    def give(self, X, numbers, codes):
        X = X.astype(self.dtype, copy=False)
        if self.columns is not None:
            X = pd.DataFrame(X, columns=self.columns)
        if not self.has_target:
            return X
        y = np.concatenate(numbers) if self.classes is None else self.classes[codes]
        if self.is_series:
            y = pd.Series(y, name=self.target_name)
            y = y.astype("category") if self.is_categorical else y
        return X, y


@dataclass(frozen=True)
class TableFormat:
    """How to hand back a table: its columns and dtypes, and which column is the label."""

    names: tuple
    dtypes: dict
    label: object
    is_split: bool
    is_series: bool
    classes: np.ndarray | None = None

    @classmethod
    def of(cls, schema, X, y, target):
        head = check_frame(first_chunk(X))
        names, label = tuple(head.columns), target
        if y is not None:
            if target is not None:
                raise ValueError("Give y or target, not both.")
            lacking = [name for name in schema if name not in names]
            if len(lacking) != 1:
                raise ValueError(
                    "y must be the one column of the schema that X lacks; X lacks "
                    f"{lacking or 'none'}."
                )
            label = lacking[0]
        elif target is not None and target not in schema:
            raise ValueError(f"target must be a column of the schema; got {target!r}.")
        return cls(
            names=names,
            # Chunks may differ in them.
            dtypes={}
            if callable(X)
            else _keep_plain({label: getattr(y, "dtype", None), **X.dtypes}),
            label=label,
            is_split=y is not None,
            is_series=isinstance(y, pd.Series),
        )

    def give(self, frame):
        for name, dtype in self.dtypes.items():
            if frame[name].dtype != dtype:
                frame[name] = _cast(frame[name], dtype)
        X = frame[list(self.names)]
        if not self.is_split:
            return X
        y = frame[self.label]
        return X, y if self.is_series else y.to_numpy()


# Of pandas' own dtypes, those that hold no values.
_PLAIN = re.compile(r"(U?Int|Float)\d+|boolean|str(ing)?")


def _keep_plain(dtypes):
    """Leave out dtypes that say more than a type.

    A categorical one holds private categories, and NumPy's of texts the length of the longest.
    """
    return {
        name: dtype
        for name, dtype in dtypes.items()
        if (isinstance(dtype, np.dtype) and dtype.kind not in "US") or _PLAIN.fullmatch(str(dtype))
    }


def _cast(column, dtype):
    """Give a column the dtype that it had in the private table, where that can hold it."""
    if getattr(dtype, "kind", "O") in "iu" and column.dtype.kind == "f":
        # What pandas makes of fractions and of numbers that do not fit is no rounding.
        column, limits = column.round(), np.iinfo(getattr(dtype, "numpy_dtype", dtype))
        if not column.dropna().between(limits.min, np.nextafter(limits.max + 1.0, 0)).all():
            return column
    try:
        return column.astype(dtype)
    except (TypeError, ValueError):
        return column


def check_frame(X):
    """Refuse tables that are no DataFrames."""
    if not isinstance(X, pd.DataFrame):
        raise ValueError(f"With a schema, X must be a DataFrame; got {type(X).__name__}.")
    return X
