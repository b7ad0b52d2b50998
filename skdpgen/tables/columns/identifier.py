# SPDX-License-Identifier: BSD-3-Clause
"""Identifier columns, which are generated and never learned."""

import math
import re
import uuid
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..declaration import check_whole
from .column_type import ColumnType

# A whole number in a template, with or without a width.
_FIELD = re.compile(r"[^{}]*\{(:0?[0-9]{0,2}d?)?\}[^{}]*")


@dataclass(frozen=True, repr=False)
class Identifier(ColumnType):
    """A column that names records: numbers, or keys, that are all different.

    Nothing of it is released, and it takes no budget: synthetic rows get numbers or keys that are
    made up, all different within a sample.

    Parameters
    ----------
    start : int, default=1
        The first number.
    template : str, default=None
        How a number is written, with its place in braces as in `str.format`: ``"P{:06d}"``.
        None: as a number, in the dtype of the table.
    random : bool, default=False
        Whether to make up random keys (UUIDs) instead of numbers.

    Raises
    ------
    ValueError
        If a parameter makes no sense.

    Examples
    --------
    >>> from skdpgen import Identifier
    >>> Identifier(template="P{:04d}").make(3)
    array(['P0001', 'P0002', 'P0003'], dtype=object)
    """

    start: int = 1
    template: str | None = None
    random: bool = False

    # Each synthetic row has one.
    is_generated = True
    forms = ("identifier",)

    @classmethod
    def of_field(cls, field):
        if field.is_random:
            if not field.is_unique:
                field.drop("that its UUIDs may repeat (they are all different)")
            return cls(random=True)
        start = 1
        if field.type == "integer" and field.lower is not None:
            number = math.ceil(field.read_number("lower"))
            # A bound of 0 is that of an unsigned type.
            if 1 <= number <= 2**62:
                start, field.lower = number, None
        field.drop_bounds()
        return cls(start, field.template)

    def to_field(self):
        has_texts = self.random or self.template is not None
        return {
            "type": "string" if has_texts else "integer",
            "lower": None if has_texts or self.start == 1 else self.start,
            "template": self.template,
            "is_identifier": True,
            "is_random": self.random,
        }

    def accepts(self, dtype):
        """Whether a column of a dtype may hold identifiers: any may."""
        return True

    def parse(self, cells, style):
        """Return the texts as they are."""
        return cells

    def __post_init__(self):
        self._set(start=check_whole("start", self.start, 0, 2**62))
        if not isinstance(self.random, bool):
            raise ValueError(f"random must be True or False; got {self.random!r}.")
        if self.random and (self.start, self.template) != (1, None):
            raise ValueError("random keys have neither start nor template.")
        template = self.template
        if template is not None and not (isinstance(template, str) and _FIELD.fullmatch(template)):
            raise ValueError(
                "template must be a text with one place for a whole number, such as 'P{:06d}'; "
                f"got {template!r}."
            )

    def make(self, n_rows, random_state=None, n_before=0):
        """Make identifiers up.

        Parameters
        ----------
        n_rows : int
        random_state : RandomState or Generator of NumPy, default=None
            Where random keys come from.
        n_before : int, default=0
            Number of rows that were made before: numbers go on from there.
        """
        if self.random:
            drawn = random_state.bytes(16 * n_rows)
            parts = (drawn[i : i + 16] for i in range(0, len(drawn), 16))
            return np.array([str(uuid.UUID(bytes=part, version=4)) for part in parts], dtype=object)
        numbers = np.arange(n_rows, dtype=np.int64) + self.start + n_before
        if self.template is None:
            return numbers
        return np.array([self.template.format(number) for number in numbers], dtype=object)


def go_on(frame, schema, n_before):
    """Let the numbers of a piece of a sample follow those of the pieces before it."""
    for name, column in schema.items():
        if column.is_generated and not column.random:
            made = pd.Series(column.make(len(frame), n_before=n_before), index=frame.index)
            frame = frame.assign(**{name: made.astype(frame[name].dtype)})
    return frame
