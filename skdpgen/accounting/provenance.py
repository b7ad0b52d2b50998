# SPDX-License-Identifier: BSD-3-Clause
"""Provenance of a certificate: estimator, public parameters, version and date."""

import inspect
import numbers
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .._version import __version__

# Parameters that are not stated: a seed would undo the guarantee, the others do not affect it.
UNSAID = ("random_state", "device", "verbose")
# Longer texts of values are cut, so that a certificate stays readable.
_MAX_CHARACTERS = 120
_MAX_ITEMS = 8


@dataclass(frozen=True)
class Provenance:
    """Public description of the fit that a certificate is for."""

    # Name of the estimator's class.
    estimator: str
    # Names and values, as text, of parameters that differ from their defaults, without seeds.
    parameters: tuple = ()
    # Version of skdpgen.
    version: str = __version__
    # Day of the fit, as ISO 8601.
    date: str = ""

    @classmethod
    def of(cls, estimator: BaseEstimator) -> "Provenance":
        """Return the provenance of an estimator, dated today."""
        parameters = tuple(list_parameters(estimator))
        return cls(type(estimator).__name__, parameters, date=date.today().isoformat())

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Provenance":
        """Return the provenance of a dict from `to_dict`."""
        parameters = tuple((str(k), str(v)) for k, v in data["parameters"].items())
        return cls(str(data["estimator"]), parameters, str(data["version"]), str(data["date"]))

    def check(self, estimator: BaseEstimator) -> None:
        """Raise ValueError if an estimator's parameters differ from those of the fit.

        Nothing is checked for another version, whose defaults may differ, or for another class,
        such as a search, which states its own parameters.
        """
        # Other versions may have other parameters, or show them otherwise.
        if (self.estimator, self.version) != (type(estimator).__name__, __version__):
            return
        fitted, given = dict(self.parameters), dict(list_parameters(estimator))
        # Pairs that differ: names on one side only, and names with another value.
        if changed := sorted({name for name, _ in fitted.items() ^ given.items()}):
            raise ValueError(
                f"{', '.join(changed)} of {self.estimator} differs from the certificate, which "
                "states the parameters of the fit. Fit again, or restore the value."
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the provenance as a dict that JSON can hold."""
        return {
            "estimator": self.estimator,
            "version": self.version,
            "date": self.date,
            "parameters": dict(self.parameters),
        }

    def describe(self) -> list[str]:
        """Return the lines of the printed certificate on its provenance."""
        lines = [f"By {self.estimator} of skdpgen {self.version}, on {self.date}."]
        if self.parameters:
            shown = ", ".join(f"{name}={value}" for name, value in self.parameters)
            lines.append(f"Public parameters: {shown}; all others are at their defaults.")
        return lines


def list_parameters(estimator: BaseEstimator) -> Iterator[tuple[str, str]]:
    """Yield names and texts of parameters that differ from their defaults."""
    given = estimator.get_params(deep=False)
    for name, parameter in inspect.signature(type(estimator)).parameters.items():
        if name in given and name not in UNSAID:
            text = show_value(given[name])
            # Defaults are left out, so that a certificate names what somebody chose.
            if text != show_value(parameter.default):
                yield name, text


def show_value(value: Any) -> str:
    """Return a short text of a value, without seeds or addresses."""
    # Before numbers: an estimator is shown by its own parameters, and so without its seed.
    if hasattr(value, "get_params") and not isinstance(value, type):
        parts = ", ".join(f"{name}={text}" for name, text in list_parameters(value))
        text = f"{type(value).__name__}({parts})"
    elif isinstance(value, str | numbers.Number | range | None):
        # Scalars of NumPy print as Python's.
        text = repr(getattr(value, "item", lambda: value)())
    elif isinstance(value, tuple | list):
        shown = ", ".join(map(show_value, value[:_MAX_ITEMS]))
        text = f"[{shown}{', ...' * (len(value) > _MAX_ITEMS)}]"
    elif isinstance(value, np.ndarray) and value.size <= _MAX_ITEMS:
        text = show_value(value.tolist())
    elif hasattr(value, "shape"):
        # Shapes only: contents of arrays may be large, or private.
        text = f"{type(value).__name__} of shape {tuple(value.shape)}"
    elif hasattr(value, "names") and hasattr(value, "__len__"):
        text = f"{type(value).__name__} of {len(value)} columns"
    else:
        # No repr: it would hold an address, which differs in each run.
        text = getattr(value, "__name__", type(value).__name__)
    return text if len(text) <= _MAX_CHARACTERS else f"{text[: _MAX_CHARACTERS - 3]}..."
