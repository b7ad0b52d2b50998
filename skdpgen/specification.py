# SPDX-License-Identifier: BSD-3-Clause
"""Specifications: small objects of parameters that belong together, which estimators take."""

from sklearn.base import clone

from ._documentation import DocumentedEstimator
from .accounting.rounding import plain
from .registry import Savable
from .validation import Checked


class Specification(Savable, Checked, DocumentedEstimator):
    """Parameters that belong together: no `fit`, no state.

    They are checked in the `fit` of the estimator that takes them.
    """

    def checked(self):
        """Return a copy whose numbers are Python's own, or raise a ValueError if one is bad."""
        copy = type(self)(**{k: plain(v) for k, v in self.get_params(deep=False).items()})
        copy._check_params()
        return copy


class TakesSpecifications(Checked):
    """Takes specifications as parameters, and strings that stand for some of them."""

    # For each such parameter, what its strings stand for.
    _shorthands = {}

    def _resolve_spec(self, name):
        """Return the specification that a parameter is, or stands for.

        Raises
        ------
        ValueError
            If it is neither, or one of its own parameters is bad.
        """
        known, value = self._shorthands[name], getattr(self, name)
        if isinstance(value, str) and value in known:
            return clone(known[value])
        kinds = {type(specification) for specification in known.values()}
        if type(value) not in kinds:
            names = " or ".join(sorted(kind.__name__ for kind in kinds))
            raise ValueError(f"{name} must be one of {list(known)} or a {names}; got {value!r}.")
        return value.checked()

    def set_params(self, **params):
        """Set parameters, also those of specifications: ``release__n_projections=100``.

        A string is first exchanged for what it stands for.
        """
        for key in list(params):
            name, _, nested = key.partition("__")
            value = params.get(name, getattr(self, name, None))
            known = self._shorthands.get(name, {})
            if nested and name in self._shorthands and value is None:
                raise ValueError(f"{name} is None, which has no parameter {nested!r}.")
            if nested and isinstance(value, str) and value in known:
                params[name] = clone(known[value])
        return super().set_params(**params)
