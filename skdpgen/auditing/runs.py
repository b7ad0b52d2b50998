# SPDX-License-Identifier: BSD-3-Clause
"""Runs of mechanisms that can be seen into, on neighbours: one record is exchanged for another."""

from copy import copy
from dataclasses import dataclass, fields, is_dataclass, replace

import numpy as np
import torch


@dataclass(frozen=True)
class Seat:
    """Where the record is that neighbours differ in, and who may take its place.

    Attributes
    ----------
    rows : ndarray of int
        Positions of its rows: one or, of a person, several.
    candidates : ndarray of int
        Positions of rows, each of which can take the place of all of those. Where they are
        themselves they count as absent, from the fit on: so they may lie outside of whatever is
        inferred.
    """

    rows: np.ndarray
    candidates: np.ndarray

    def fill(self, source, position, *, rows=None, company=None):
        """Return a copy of a source of records in which the row at `position` takes the seat.

        Parameters
        ----------
        source : RecordSource
            Of rows in memory.
        position : int or None
            None: the seat is of an absent record.
        rows : ndarray of int, default=None
            The seat, if it is not that of the audit.
        company : sequence of int, default=None
            Positions of the records that are present beside it. None: all but the candidates.
        """
        filled, rows = copy(source), self.rows if rows is None else rows
        X, y = source._arrays
        null = np.zeros(len(X), bool) if source._null is None else source._null.numpy().copy()
        null[self.candidates] = False  # unless they stay away
        away = np.zeros(len(X), bool)
        if company is None:
            away[self.candidates] = True
        else:
            away[:] = True
            away[[*rows, *company]] = False
        null |= away
        if position is None:
            null[rows] = True
        elif len(rows) == len(X):
            null[:] = False
        taken = np.arange(len(X))
        taken[rows] = taken[rows] if position is None else position
        filled._arrays = X[taken], None if y is None else y[taken]
        filled._chunks = lambda: iter([filled._arrays])
        filled._null = torch.as_tensor(null)
        return filled


class Run:
    """A run of a mechanism: what it measures, and what it releases of that.

    Attributes
    ----------
    measured : list of Measurement
        Several where one follows from what was released of another.
    told : list of ndarray
        What was released of each, before it is presented.
    exact, noisy, std : ndarray
        The numbers of all measurements before their noise and with it; their stated deviations.
    result : object
        What is released in the end.
    """

    def __init__(self, mechanism, source, event, relation, noise, *, told=None, measured=None):
        self._mechanism, self._pinned = mechanism, told
        self.measured, self.told = [], []
        copied = copy(mechanism)
        copied._present = self._present
        if measured is None:
            copied._measure = lambda *args: self._keep(mechanism._measure(*args))
        else:
            copied._measure = lambda *args: self._keep(measured)
        self.result = copied.run(source, event, relation=relation, noise=noise)

    @property
    def exact(self):
        return np.concatenate([(m.exact / m.scale).ravel() for m in self.measured])

    @property
    def noisy(self):
        return np.concatenate([noisy.ravel() for noisy in self.told])

    @property
    def std(self):
        return np.concatenate(
            [np.broadcast_to(m.std, m.exact.shape).ravel() for m in self.measured]
        )

    @property
    def coarseness(self):
        """The grid's step, over the least deviation of noise."""
        steps = [
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
            self.told.append(np.array(noisy))
            if self._pinned is not None:
                # What follows is to be what it is after that release.
                noisy = self._pinned[len(self.told) - 1]
            return self._keep(measured.then(noisy))

        return replace(measured, then=then)

    def _present(self, noisy, measured):
        self.told.append(np.array(noisy))
        return self._mechanism._present(noisy, measured)


def measure_after(told, mechanism, source, event, relation, noise):
    """Return what a mechanism would measure of other records, if it had released just the same."""
    measured = mechanism._measure(source, event, relation, noise)
    parts = [measured.exact / measured.scale]
    for noisy in told[:-1]:
        measured = measured.then(noisy)
        parts.append(measured.exact / measured.scale)
    return np.concatenate([part.ravel() for part in parts])


def list_numbers(released):
    """Return all numbers of what was released, as one vector.

    Those that stand alone, as standard deviations do, are public.
    """
    if is_dataclass(released):
        released = [getattr(released, field.name) for field in fields(released)]
        released = [value for value in released if isinstance(value, np.ndarray | tuple | list)]
    elif isinstance(released, dict):
        released = [
            np.float64(value) if np.isscalar(value) else value for value in released.values()
        ]
    if isinstance(released, tuple | list):
        parts = [list_numbers(part) for part in released]
        return np.concatenate(parts) if parts else np.zeros(0)
    is_numbers = isinstance(released, np.ndarray | np.float64)
    return np.ravel(released).astype(float) if is_numbers else np.zeros(0)


def take_alone(source, position):
    """Return a copy of a source of records that holds one of them, present, and no other."""
    alone = copy(source)
    X, y = source._arrays
    alone._arrays = X[[position]], None if y is None else y[[position]]
    alone._chunks = lambda: iter([alone._arrays])
    alone._null, alone._n_rows = None, 1
    alone.n_units = alone.n_records = 1
    return alone
