# SPDX-License-Identifier: BSD-3-Clause
"""Formulas over the columns of a table: safe parsing, checks and evaluation."""

import ast
import math
import operator
import re

import numpy as np

_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_OPERATORS = {"+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv}
# Largest depth of nested operations, far below Python's limit of recursion.
_DEEPEST = 50
# Result types of operations. Dates have only differences, and shifts by days.
_TYPES = {(sign, "number", "number"): "number" for sign in _OPERATORS} | {
    ("-", "date", "date"): "number",
    ("-", "date", "number"): "date",
    ("+", "date", "number"): "date",
    ("+", "number", "date"): "date",
}


class Formula:
    """An arithmetic expression of columns, numbers, ``+ - * /`` and parentheses.

    Dates are numbers of days. Names of columns that are no Python identifiers are in backticks.

    Parameters
    ----------
    text : str

    Attributes
    ----------
    names : tuple of str
        The distinct columns.

    Raises
    ------
    ValueError
        If `text` is no such expression.

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
            raise ValueError(f"a formula must be a string, such as 'nights * rate'; got {text!r}.")
        quoted, self._text = [], text

        def replace(match):
            quoted.append(match[1])
            return f" _{len(quoted) - 1}_quoted "

        plain = re.sub("`([^`]+)`", replace, text).strip()
        self._quoted = {f"_{i}_quoted": name for i, name in enumerate(quoted)}
        try:
            tree = ast.parse(plain, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            tree = None
        names = {}
        self._tree = self._parse(tree, names, 0)
        self.names = tuple(names)
        if not names:
            raise ValueError(f"the formula {text!r} names no column.")

    def _parse(self, node, names, depth):
        """Return a node as a name, a number, or (sign, left, right); collect names."""
        if depth > _DEEPEST:
            raise ValueError(f"the formula {self._text!r} is nested too deeply; split it.")
        if isinstance(node, ast.Name):
            name = self._quoted.get(node.id, node.id)
            names[name] = None
            return name
        # By type: True is an int.
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            if abs(node.value) < 1e300:
                return float(node.value)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return ("-", 0.0, self._parse(node.operand, names, depth + 1))
        if isinstance(node, ast.BinOp) and type(node.op) in _SIGNS:
            parts = (self._parse(part, names, depth + 1) for part in (node.left, node.right))
            return (_SIGNS[type(node.op)], *parts)
        raise ValueError(
            f"{self._text!r} is no formula of columns, numbers, + - * / and parentheses; put names "
            "with spaces in backticks."
        )

    def _fold(self, node, leaf, join):
        """Evaluate a node recursively, from its leaves."""
        if not isinstance(node, tuple):
            return leaf(node)
        sign, left, right = node
        return join(sign, self._fold(left, leaf, join), self._fold(right, leaf, join))

    def rename(self, names):
        """Return the text of the formula with other names of columns, a dict from the old ones."""

        def write(part):
            return repr(part) if isinstance(part, float) else f"`{names[part]}`"

        return self._fold(self._tree, write, lambda sign, *sides: f"({f' {sign} '.join(sides)})")

    def find_type(self, types):
        """Return the result type, ``"number"`` or ``"date"``, for columns of these types."""

        def leaf(part):
            if isinstance(part, float):
                return "number"
            declared = types[part]
            if declared.is_date and declared.zone is None:
                return "date"
            if not declared.is_number:
                raise ValueError(
                    f"formulas take numbers, and dates without time zone; {part!r} is {declared}."
                )
            return "number"

        def join(sign, left, right):
            if (sign, left, right) not in _TYPES:
                raise ValueError(
                    f"{self._text!r} has a {left} {sign} a {right}; subtract two dates, or add or "
                    "subtract days."
                )
            return _TYPES[sign, left, right]

        return self._fold(self._tree, leaf, join)

    def find_decimals(self, decimals):
        """Return how many decimals results have for columns of some, by name; None for any."""

        def leaf(part):
            return 0 if isinstance(part, float) and part == int(part) else decimals.get(part)

        def join(sign, left, right):
            if sign == "/" or None in (left, right):
                return None
            return left + right if sign == "*" else max(left, right)

        return self._fold(self._tree, leaf, join)

    def compute(self, values):
        """Evaluate the formula for columns of floats, by name; dates are days.

        The result is NaN if an operand is NaN, and for a division by zero.
        """
        with np.errstate(all="ignore"):
            found = self._fold(
                self._tree,
                lambda part: part if isinstance(part, float) else values[part],
                lambda sign, left, right: np.asarray(_OPERATORS[sign](left, right)),
            )
        return np.where(np.isfinite(found), found, np.nan)

    def find_range(self, ranges):
        """Return bounds on the result from bounds on columns, by interval arithmetic."""

        def join(sign, left, right):
            if sign == "/" and right[0] <= 0 <= right[1]:
                return -math.inf, math.inf
            with np.errstate(all="ignore"):
                ends = [_OPERATORS[sign](np.float64(a), np.float64(b)) for a in left for b in right]
            # Infinite operands may give NaN, which bounds nothing.
            return (-math.inf, math.inf) if np.isnan(ends).any() else (min(ends), max(ends))

        return self._fold(
            self._tree, lambda part: (part, part) if isinstance(part, float) else ranges[part], join
        )
