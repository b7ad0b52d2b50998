# SPDX-License-Identifier: BSD-3-Clause
"""The interface of rules."""

from ..declaration import Declaration


class Rule(Declaration):
    """Base of rules: public constraints that all rows of a sample obey.

    Rules are evaluated on a dict of float columns: codes of levels, numbers, or dates in their
    units since 1970, and NaN for missing values. See `LevelColumn.to_values`.
    """

    @property
    def names(self):
        """The columns that the rule constrains, a tuple."""
        raise NotImplementedError

    def _show(self, value, is_json):
        return super()._show(list(value) if isinstance(value, tuple) else value, is_json)

    def check(self, types):
        """Raise an error if the rule does not apply to columns of these types."""

    def rename(self, names):
        """Return the rule with other names of columns, a dict from the old names."""
        raise NotImplementedError

    def restrict(self, names):
        """Return the rule for a subset of columns, or None if nothing is left of it."""
        return self if set(self.names) <= set(names) else None

    def bind(self, types):
        """Return a function that maps columns of these types to which rows obey."""
        raise NotImplementedError
