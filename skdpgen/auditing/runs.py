# SPDX-License-Identifier: BSD-3-Clause
"""Instrumented runs of mechanisms on neighbouring data sets."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, fields, is_dataclass, replace

import numpy as np
import torch


@dataclass(frozen=True)
class Canary:
    """Record in which neighbouring data sets differ, and records that can take its place."""

    # Positions of its rows; a person has several.
    rows: np.ndarray
    # Positions of rows, each of which can take the place of all rows of the canary. At their own
    # positions they count as absent in the whole fit, so that inferred bounds do not cover them.
    candidates: np.ndarray

    def insert(
        self,
        source,
        position: int | np.ndarray | None,
        *,
        rows: np.ndarray | None = None,
        present: Sequence[int] | None = None,
    ):
        """Return a copy of a source in memory in which a candidate takes the place of the canary.

        `position` is that of the candidate, or of one for each row; None: the canary is absent. It
        takes `rows`, those of the canary by default. `present` are the other records that are
        present, all but the candidates by default.
        """
        # A shallow copy: arrays are replaced, never written to, since other runs share them.
        filled, rows = copy(source), self.rows if rows is None else rows
        X, y = source._arrays
        null = np.zeros(len(X), bool) if source._null is None else source._null.numpy().copy()
        # The fit counted candidates as absent; here only those that stay away are.
        null[self.candidates] = False
        away = np.zeros(len(X), bool)
        if present is None:
            away[self.candidates] = True
        else:
            away[:] = True
            away[[*rows, *present]] = False
        null |= away
        if position is None:
            null[rows] = True
        elif len(rows) == len(X):
            null[:] = False
        taken = np.arange(len(X))
        taken[rows] = taken[rows] if position is None else position
        _set_rows(filled, X[taken], None if y is None else y[taken])
        filled._null = torch.as_tensor(null)
        return filled


class Run:
    """One run of a mechanism, with the values that it measures and releases.

    Later measurements depend on `released`, if given, in place of the noisy values of this run; a
    measurement that is given takes the place of that of `source`.

    Attributes
    ----------
    measured : list of Measurement
        Several if one depends on the noisy values of another.
    released : list of ndarray
        The noisy values of each measurement, before post-processing.
    exact, noisy, std : ndarray
        Values of all measurements without and with noise, and its stated standard deviations.
    result : object
        The released object.
    """

    def __init__(
        self, mechanism, source, event, relation, noise, *, released=None, measured=None
    ) -> None:
        self._mechanism, self._pinned = mechanism, released
        self.measured: list = []
        self.released: list[np.ndarray] = []
        # A copy is instrumented, so that the audited mechanism stays as it is.
        copied = copy(mechanism)
        copied.postprocess = self.postprocess
        copied.query = lambda *args: self._keep(
            mechanism.query(*args) if measured is None else measured
        )
        self.result = copied.run(source, event, relation=relation, noise=noise)

    @property
    def exact(self) -> np.ndarray:
        return np.concatenate([(m.exact / m.scale).ravel() for m in self.measured])

    @property
    def noisy(self) -> np.ndarray:
        return np.concatenate([noisy.ravel() for noisy in self.released])

    @property
    def std(self) -> np.ndarray:
        return np.concatenate(
            [np.broadcast_to(m.std, m.exact.shape).ravel() for m in self.measured]
        )

    @property
    def coarseness(self) -> float:
        """Largest step of the grid of values, in standard deviations of the noise."""
        steps = [
            # Numbers without noise have no grid that matters.
            1 / (np.asarray(m.std)[np.asarray(m.std) > 0] * m.scale).min()
            for m in self.measured
            if m.exact.size and np.any(np.asarray(m.std) > 0)
        ]
        return max(steps, default=0.0)

    def _keep(self, measured):
        self.measured.append(measured)
        if measured.then is None:
            return measured

        def then(noisy):
            self.released.append(np.array(noisy))
            if self._pinned is not None:
                # Neighbours see the same values before: their densities are compared given the
                # past.
                noisy = self._pinned[len(self.released) - 1]
            return self._keep(measured.then(noisy))

        return replace(measured, then=then)

    def postprocess(self, noisy, measured):
        self.released.append(np.array(noisy))
        return self._mechanism.postprocess(noisy, measured)


class RecordedMechanism:
    """Substitute of a mechanism that keeps its run, as `recorded`."""

    def __init__(self, mechanism) -> None:
        self.mechanism = mechanism
        self.name, self.check, self.is_sum = mechanism.name, mechanism.check, mechanism.is_sum

    def run(self, source, event, *, relation, noise):
        """Run the mechanism; see `Mechanism.run`."""
        self.recorded = Run(self.mechanism, source, event, relation, noise)
        return self.recorded.result


class FixedNoise:
    """Noise source that adds the same whole number to all numbers, and replaces no label."""

    def __init__(self, added: int) -> None:
        self._added = added

    def rounded_gaussian(self, scale: np.ndarray) -> np.ndarray:
        return np.full(np.shape(scale), self._added, dtype=np.int64)

    rounded_laplace = rounded_gaussian

    def randomized_response(self, codes, n_classes, probability):
        return codes


def measure_given(released: Sequence[np.ndarray], mechanism, source, event, relation, noise):
    """Return the exact values of other records, given the same noisy values before them."""
    measured = mechanism.query(source, event, relation, noise)
    parts = [measured.exact / measured.scale]
    # The last one decides nothing that is measured.
    for noisy in released[:-1]:
        measured = measured.then(noisy)
        parts.append(measured.exact / measured.scale)
    return np.concatenate([part.ravel() for part in parts])


def flatten_numbers(released) -> np.ndarray:
    """Return all numbers of a released object as one vector.

    Scalar fields of dataclasses, such as standard deviations, are public and left out.
    """
    if is_dataclass(released):
        released = [getattr(released, field.name) for field in fields(released)]
        released = [value for value in released if isinstance(value, np.ndarray | tuple | list)]
    elif isinstance(released, dict):
        values = released.values()
        released = [np.asarray(v, dtype=float) if np.isscalar(v) else v for v in values]
    if isinstance(released, tuple | list):
        parts = [flatten_numbers(part) for part in released]
        return np.concatenate(parts) if parts else np.zeros(0)
    is_number = isinstance(released, np.ndarray | np.float64)
    return np.ravel(released).astype(float) if is_number else np.zeros(0)


def select_record(source, position: int):
    """Return a copy of a record source that holds one record, which is present."""
    alone = copy(source)
    X, y = source._arrays
    _set_rows(alone, X[[position]], None if y is None else y[[position]])
    alone._null, alone._n_rows = None, 1
    alone.n_units = alone.n_records = 1
    return alone


def _set_rows(source, X, y) -> None:
    source._arrays = X, y
    source._chunks = lambda: iter([source._arrays])
