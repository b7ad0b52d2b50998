# SPDX-License-Identifier: BSD-3-Clause
"""Base of rules."""

from dataclasses import fields

from .predicates import format_range


class Rule:
    """Base of rules: a repr, conversion to a dict, and the interface of constraints.

    Rules are evaluated on a dict of float columns: codes of levels, numbers, or dates in their
    units since 1970, and NaN for missing values. See `Column.to_values`.

    Attributes
    ----------
    names : tuple of str
        The columns that the rule constrains.
    """

    names: tuple[str, ...]

    def to_dict(self):
        """Return the rule as a dict, without parameters at their defaults.

        Returns
        -------
        dict
        """
        return {"type": type(self).__name__.lower(), **self._given(format_range)}

    def __repr__(self):
        given = ", ".join(f"{name}={value!r}" for name, value in self._given(tuple).items())
        return f"{type(self).__name__}({given})"

    def _given(self, write_range):
        values = ((field, getattr(self, field.name)) for field in fields(self))
        return {f.name: self._show(v, write_range) for f, v in values if v != f.default}

    def _show(self, value, write_range):
        return list(value) if isinstance(value, tuple) else value

    def _set(self, **values):
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def check(self, kinds):
        """Raise an error if the rule does not apply to columns of these types."""

    def rename(self, names):
        """Return the rule with other names of columns, a dict from the old names."""
        raise NotImplementedError

    def restrict(self, names):
        """Return the rule for a subset of columns, or None if nothing is left of it."""
        return self if set(self.names) <= set(names) else None

    def bind(self, kinds):
        """Return a function that maps columns of these types to which rows obey."""
        raise NotImplementedError
