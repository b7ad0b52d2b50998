# SPDX-License-Identifier: BSD-3-Clause
"""Formulas over the columns of a table: safe parsing, checks and evaluation."""

import ast
import math
import operator
import re

import numpy as np

from ..columns import Date, Number

_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
# Largest depth of nested operations.
_DEEPEST = 50
# Result types of operations: dates only have differences and shifts by days.
_TYPES = {(sign, "number", "number"): "number" for sign in _OPERATORS} | {
    ("-", "date", "date"): "number",
    ("-", "date", "number"): "date",
    ("+", "date", "number"): "date",
    ("+", "number", "date"): "date",
}


class Formula:
    """A formula over numbers and dates: columns, numbers, ``+ - * /`` and brackets.

    Dates count in days. Names of columns that are no names in Python stand between backticks.

    Parameters
    ----------
    text : str

    Attributes
    ----------
    names : tuple of str
        The columns, each once.

    Raises
    ------
    ValueError
        If it is something else.

    Examples
    --------
    >>> formula = Formula("nights * (rate + `city tax`)")
    >>> formula.names
    ('nights', 'rate', 'city tax')
    >>> formula.compute({"nights": np.array([2.0]), "rate": 90.0, "city tax": 3.0})
    array([186.])
    """

    def __init__(self, text):
        if not isinstance(text, str):
            raise ValueError(f"a formula must be a text, such as 'nights * rate'; got {text!r}.")
        quoted, self._text = [], text

        def put_aside(match):
            quoted.append(match[1])
            return f" _{len(quoted) - 1}_quoted "

        plain = re.sub("`([^`]+)`", put_aside, text).strip()
        self._quoted = {f"_{i}_quoted": name for i, name in enumerate(quoted)}
        try:
            tree = ast.parse(plain, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            tree = None
        names = {}
        self._tree = self._read(tree, names, 0)
        self.names = tuple(names)
        if not names:
            raise ValueError(f"the formula {text!r} names no column.")

    def _read(self, node, names, depth):
        """Return a part of the formula as a name, a number, or (sign, left, right)."""
        if depth > _DEEPEST:
            raise ValueError(f"the formula {self._text!r} is too deep; split it.")
        if isinstance(node, ast.Name):
            name = self._quoted.get(node.id, node.id)
            names[name] = None
            return name
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            if abs(node.value) < 1e300:
                return float(node.value)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return ("-", 0.0, self._read(node.operand, names, depth + 1))
        if isinstance(node, ast.BinOp) and type(node.op) in _SIGNS:
            parts = (self._read(part, names, depth + 1) for part in (node.left, node.right))
            return (_SIGNS[type(node.op)], *parts)
        raise ValueError(
            f"{self._text!r} is no formula of columns, numbers, + - * / and brackets; a name with "
            "blanks stands between backticks."
        )

    def _fold(self, node, leaf, join):
        """Return what a part of the formula comes to, from its leaves up."""
        if not isinstance(node, tuple):
            return leaf(node)
        sign, left, right = node
        return join(sign, self._fold(left, leaf, join), self._fold(right, leaf, join))

    def find_type(self, kinds):
        """Return whether the formula makes a ``"number"`` or a ``"date"`` of columns of kinds."""

        def leaf(part):
            if isinstance(part, float):
                return "number"
            kind = kinds[part]
            if isinstance(kind, Date) and kind.zone is None:
                return "date"
            if not isinstance(kind, Number):
                raise ValueError(
                    f"formulas are of numbers, and of dates without time zone; {part!r} is "
                    f"{kind!r}."
                )
            return "number"

        def join(sign, left, right):
            if (sign, left, right) not in _TYPES:
                raise ValueError(
                    f"{self._text!r} has a {left} {sign} a {right}; dates take a date away, or "
                    "days away or more."
                )
            return _TYPES[sign, left, right]

        return self._fold(self._tree, leaf, join)

    def compute(self, values):
        """Return the formula of columns of floats, by their names; dates are days.

        NaN where an operand is, and where a number is divided by zero.
        """
        with np.errstate(all="ignore"):
            found = self._fold(
                self._tree,
                lambda part: part if isinstance(part, float) else values[part],
                lambda sign, left, right: np.asarray(_OPERATORS[sign](left, right)),
            )
        return np.where(np.isfinite(found), found, np.nan)

    def find_range(self, ranges):
        """Return bounds on the formula from those of columns, by their names."""

        def join(sign, left, right):
            if sign == "/" and right[0] <= 0 <= right[1]:
                return -math.inf, math.inf
            with np.errstate(all="ignore"):
                ends = [_OPERATORS[sign](np.float64(a), np.float64(b)) for a in left for b in right]
            # Nothing is known of what infinite parts come to.
            return (-math.inf, math.inf) if np.isnan(ends).any() else (min(ends), max(ends))

        return self._fold(
            self._tree, lambda part: (part, part) if isinstance(part, float) else ranges[part], join
        )
