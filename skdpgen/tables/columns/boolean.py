# SPDX-License-Identifier: BSD-3-Clause
"""Boolean columns."""

from dataclasses import dataclass

from .base import LevelColumn, check_flag, mask


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
    text_kinds = ("boolean",)

    def __post_init__(self):
        check_flag(self.missing)

    @property
    def levels(self):
        """All values that synthetic rows have."""
        return (False, True)

    def describe_mismatch(self, dtype):
        """Return the fault of cells of another dtype, and the remedy, for an error."""
        what = f"are other than True and False (dtype {dtype})"
        return what, "convert them, or declare the column as a category"

    def make_cells(self, codes):
        """Return the cells of synthetic codes: 0, 1, and 2 for missing values."""
        # The nullable dtype of pandas: a plain bool has no missing values.
        return mask(codes == 1, codes == 2) if self.missing else codes == 1
