# SPDX-License-Identifier: BSD-3-Clause
"""Boolean columns."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from pandas.api.types import infer_dtype, is_bool_dtype

from ...data.cells import find_dtype, read_cell
from ...data.names import map_cells
from ...data.texts import MISSING_TEXTS, TextStyle
from ..declaration import check_flag, check_labels
from .category import Category
from .column_type import LevelColumn, mask

_STYLE = TextStyle(expected="boolean")


@dataclass(frozen=True, repr=False)
class Boolean(LevelColumn):
    """A column of True and False, which may be written as 1 and 0.

    Parameters
    ----------
    missing : bool, default=False
        Whether values may be missing.
    words : (str, str), default=None
        How False and True are written in a column of texts, such as ``("no", "yes")``. None: a
        generator infers it there, at a small cost.

    Attributes
    ----------
    levels : tuple
        False and True.

    Raises
    ------
    ValueError
        If `missing` is not a bool, or `words` are not two texts.

    Examples
    --------
    >>> from skdpgen import Boolean
    >>> Boolean(missing=True)
    Boolean(missing=True)
    """

    missing: bool = False
    words: Sequence | None = None

    n_values = 2
    is_dtype_inferred = True
    # Numbers, too: 0 and 1, as floats where cells are missing; and texts.
    dtype_codes = "SiufbO"
    expected_text = "boolean"
    evidence = {"boolean": (("boolean",), ())}
    forms = ("boolean",)

    def __post_init__(self):
        check_flag(self.missing)
        if self.words is not None:
            words = check_labels(self.words) if self.words else ()
            if words and [*map(type, words)] != [str, str]:
                raise ValueError(f"words must be two different texts; got {self.words!r}.")
            self._set(words=words)

    @property
    def is_open(self):
        """Whether it is not known how the values of a column of texts are written."""
        return self.words == ()

    @property
    def open_parameters(self):
        """Names of the parameters that a generator infers."""
        return ("words",) * self.is_open

    @property
    def cell_types(self):
        """The types of cells that are values; None for texts, which are read with their words."""
        return ("boolean",) if self.words is None else None

    def of_texts(self):
        return replace(self, words=()) if self.words is None else self

    def with_words(self, counts):
        """Return the column with the most frequent word of each value, if there are two."""
        values = {word: read_cell(word, _STYLE) for word in sorted(counts, key=counts.get)}
        found = {value: word for word, value in values.items() if isinstance(value, bool)}
        words = found.get(False), found.get(True)
        if None in words and len(counts) > len(found):
            # They come back as they are, but which one is True is not known.
            return Category(sorted(counts), missing=self.missing)
        is_plain = None in words or words == ("False", "True")
        return replace(self, words=None if is_plain else words)

    def resolves(self, declared):
        if isinstance(declared, Boolean) and not declared.words:
            declared = replace(declared, words=self.words)
        return super().resolves(declared)

    def example(self):
        return replace(self, words=None)

    @classmethod
    def infer(cls, cells, counts, std):
        return cls(missing=True, words=())

    @classmethod
    def of_dtype(cls, dtype, missing):
        return cls(missing) if is_bool_dtype(dtype) else None

    @classmethod
    def of_public(cls, column, missing, n_knots):
        return cls(missing) if infer_dtype(column, skipna=True) == "boolean" else None

    @classmethod
    def of_field(cls, field):
        if field.categories is not None:
            field.drop("the values", field.categories)
        return cls(field.missing, field.words)

    def to_field(self):
        return {"type": "boolean", "words": self.words or None}

    @property
    def levels(self):
        """All values that synthetic rows have."""
        return (False, True)

    @property
    def labels(self):
        return self.words if self.words and self.words != ("0", "1") else self.levels

    def describe_mismatch(self, dtype):
        """Return the fault of cells of another dtype, and the remedy, for an error."""
        what = f"are other than True and False (dtype {dtype})"
        return what, "convert them, or declare the column as a category"

    def encode(self, column):
        """Return which cells are present, and the codes of these, NaN for other values."""
        return super().encode(self._read(column))

    def to_values(self, column):
        """Return the codes of cells as floats: NaN for missing values, -1 for other values."""
        return super().to_values(self._read(pd.Series(column)))

    def parse(self, cells, style):
        """Return the values of texts; texts whose words are known, or inferred, as they are."""
        if self.words is None:
            return super().parse(cells, style)
        missing = MISSING_TEXTS.difference(self.words)
        return cells.map(lambda cell: None if cell in missing else cell).astype(object)

    def _read(self, column):
        """Return cells of which texts are values, or missing."""
        if getattr(column.dtype, "kind", "O") in "iufb":
            return column
        words = zip(self.words or (), self.levels, strict=False)
        known = {**dict.fromkeys(MISSING_TEXTS), **dict(words)}

        def read(cell):
            text = cell.strip() if isinstance(cell, str) else None
            return known[text] if text in known else read_cell(cell, _STYLE)

        return find_dtype(map_cells(read, column))

    def decode(self, codes, missing):
        """Return the cells of synthetic codes, 0 and 1."""
        if self.words == ("0", "1"):
            codes = codes.clip(0, 1).astype("int64")
            return mask(codes, missing) if self.missing else codes
        if self.words:
            return pd.Categorical.from_codes(np.where(missing, -1, codes), list(self.words))
        # The nullable dtype of pandas: a plain bool has no missing values.
        return mask(codes == 1, missing) if self.missing else codes == 1
