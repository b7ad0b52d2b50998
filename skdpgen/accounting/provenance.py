# SPDX-License-Identifier: BSD-3-Clause
"""Who made a certificate: which estimator, of which version, when, and with which parameters."""

import inspect
import numbers
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from .._version import __version__

# What says nothing of the guarantee, or, as a seed, would undo it.
UNSAID = ("random_state", "device", "verbose")
# Longer values are cut.
_MOST_SIGNS = 120
_MOST_CELLS = 8


@dataclass(frozen=True)
class Origin:
    """What a certificate says of the fit that it is of; all of it is public.

    Attributes
    ----------
    estimator : str
        The name of its class.
    parameters : tuple of (str, str)
        Those that are not at their defaults, and their values as text. No seed is among them.
    version : str
        Of skdpgen.
    date : str
        The day, as ISO 8601.
    """

    estimator: str
    parameters: tuple = ()
    version: str = __version__
    date: str = ""

    @classmethod
    def of(cls, estimator: BaseEstimator) -> "Origin":
        """Describe an estimator, today."""
        parameters = tuple(_list_parameters(estimator))
        return cls(type(estimator).__name__, parameters, date=date.today().isoformat())

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> "Origin":
        """Read what `to_dict` wrote."""
        parameters = tuple((str(k), str(v)) for k, v in data["parameters"].items())
        return cls(str(data["estimator"]), parameters, str(data["version"]), str(data["date"]))

    def check(self, estimator: BaseEstimator) -> None:
        """Refuse an estimator whose parameters are not those that it was fitted with.

        Defaults may differ between versions, and a search states its own parameters: nothing is
        known then.
        """
        if (self.estimator, self.version) != (type(estimator).__name__, __version__):
            return
        fitted, given = dict(self.parameters), dict(_list_parameters(estimator))
        if changed := sorted({name for name, _ in fitted.items() ^ given.items()}):
            raise ValueError(
                f"{', '.join(changed)} of {self.estimator} differs from the certificate, which "
                "states the parameters of the fit. Fit again, or set it back."
            )

    def to_dict(self) -> dict[str, Any]:
        """Return what is written to JSON."""
        return {
            "estimator": self.estimator,
            "version": self.version,
            "date": self.date,
            "parameters": dict(self.parameters),
        }

    def describe(self) -> list[str]:
        """List who made it, and with what, line by line."""
        lines = [f"By {self.estimator} of skdpgen {self.version}, on {self.date}."]
        if self.parameters:
            said = ", ".join(f"{name}={value}" for name, value in self.parameters)
            lines.append(f"Public parameters: {said}; all others are at their defaults.")
        return lines


def join_origins(origins: Sequence[Origin | None]) -> Origin | None:
    """Return the origin of several fits together, or None if it is not known of all."""
    if None in origins:
        return None
    return Origin(
        join_names(origin.estimator for origin in origins),
        version=join_names(origin.version for origin in origins),
        date=max(origin.date for origin in origins),
    )


def join_names(texts: Iterable[str]) -> str:
    """List names, each once, by a text; texts may be such lists themselves."""
    return " and ".join(dict.fromkeys(name for text in texts for name in text.split(" and ")))


def _list_parameters(estimator: BaseEstimator) -> Iterator[tuple[str, str]]:
    """Give the names and texts of parameters that are not at their defaults."""
    given = estimator.get_params(deep=False)
    for name, parameter in inspect.signature(type(estimator)).parameters.items():
        if name in given and name not in UNSAID:
            text = _show(given[name])
            if text != _show(parameter.default):
                yield name, text


def _show(value: Any) -> str:
    """Write a value down, without seeds, addresses, or much of it."""
    if hasattr(value, "get_params") and not isinstance(value, type):
        parts = ", ".join(f"{name}={text}" for name, text in _list_parameters(value))
        text = f"{type(value).__name__}({parts})"
    elif isinstance(value, str | numbers.Number | range | None):
        text = repr(getattr(value, "item", lambda: value)())
    elif isinstance(value, tuple | list):
        shown = ", ".join(map(_show, value[:_MOST_CELLS]))
        text = f"[{shown}{', ...' * (len(value) > _MOST_CELLS)}]"
    elif isinstance(value, np.ndarray) and value.size <= _MOST_CELLS:
        text = _show(value.tolist())
    elif hasattr(value, "shape"):
        text = f"{type(value).__name__} of shape {tuple(value.shape)}"
    elif hasattr(value, "names") and hasattr(value, "__len__"):
        text = f"{type(value).__name__} of {len(value)} columns"
    else:
        text = getattr(value, "__name__", type(value).__name__)
    return text if len(text) <= _MOST_SIGNS else f"{text[: _MOST_SIGNS - 3]}..."
