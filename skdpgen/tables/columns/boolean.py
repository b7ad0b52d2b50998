# SPDX-License-Identifier: BSD-3-Clause
"""Boolean columns."""

from dataclasses import dataclass

from pandas.api.types import infer_dtype, is_bool_dtype

from ..declaration import check_flag
from .column_type import LevelColumn, mask


@dataclass(frozen=True, repr=False)
class Boolean(LevelColumn):
    """A column of True and False, which may be written as 1 and 0.

    Parameters
    ----------
    missing : bool, default=False
        Whether values may be missing.

    Attributes
    ----------
    levels : tuple
        False and True.

    Raises
    ------
    ValueError
        If `missing` is not a bool.

    Examples
    --------
    >>> from skdpgen import Boolean
    >>> Boolean(missing=True)
    Boolean(missing=True)
    """

    missing: bool = False

    is_dtype_inferred = True
    # Numbers, too: 0 and 1, as floats where cells are missing.
    dtype_codes = "iufbO"
    expected_text = "boolean"
    cell_types = ("boolean",)
    evidence = {"boolean": (("boolean",), ())}
    forms = ("boolean",)

    def __post_init__(self):
        check_flag(self.missing)

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
        return cls(field.missing)

    def to_field(self):
        return {"type": "boolean"}

    @property
    def levels(self):
        """All values that synthetic rows have."""
        return (False, True)

    def describe_mismatch(self, dtype):
        """Return the fault of cells of another dtype, and the remedy, for an error."""
        what = f"are other than True and False (dtype {dtype})"
        return what, "convert them, or declare the column as a category"

    def decode(self, codes, missing):
        """Return the cells of synthetic codes, 0 and 1."""
        # The nullable dtype of pandas: a plain bool has no missing values.
        return mask(codes == 1, missing) if self.missing else codes == 1
