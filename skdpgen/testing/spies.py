# SPDX-License-Identifier: BSD-3-Clause
"""Spies on releases: they record the rows, exact values and noisy values of each mechanism."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
import torch

from ..accounting.events import split_repetition
from ..auditing.runs import FixedNoise, RecordedMechanism, Run, flatten_numbers
from ..curator.curator import intercept_releases
from ..exceptions import EndOfFit


class _RecordingSource:
    """Record source that keeps the batches which a mechanism reads."""

    def __init__(self, source):
        self._source = source
        self.n_records, self.n_classes = source.n_records, source.n_classes
        self.max_rows, self.count_rows = source.max_rows, source.count_rows
        self.database = source.database
        self.batches = []

    def add_up(self, function):
        return function(self)

    def blocks(self, name, *size):
        for block in self._source.blocks(name, *size):
            self.batches.append(block)
            yield block

    def codes(self, name, *size):
        return self._source.codes(name, *size)

    def cells(self, name):
        return self._source.cells(name)

    def take(self, positions):
        self.batches.append(self._source.take(positions))
        return self.batches[-1]


class _Spy(RecordedMechanism):
    """Substitute of a mechanism that records its input and output.

    Parameters
    ----------
    mechanism : Mechanism
    repeat : int
        How often the noise is drawn again, for `noisy`.
    other : spy, default=None
        Spy of another fit, whose released values are used in place of new ones.

    Attributes
    ----------
    blocks : list of (Tensor, Tensor)
        The rows and memberships that the mechanism read.
    exact, std : ndarray
        Measured numbers before their noise, and the standard deviations of the noise.
    noisy : list of ndarray
        The numbers with noise, `repeat` times.
    numbers, silent_result : ndarray
        All numbers of the release, and what they are without noise.
    stretch : float
        The spectral norm of the projection of rows; 1 if there is none.
    """

    def __init__(self, mechanism, repeat, other=None):
        super().__init__(mechanism)
        self._repeat, self._other = repeat, other

    def run(self, source, event, *, relation, noise):
        self.event, source = event, _RecordingSource(source)
        pinned = self._other and self._other.recorded.released
        self.recorded = Run(self.mechanism, source, event, relation, noise, released=pinned)
        self.blocks, self.exact, self.std = source.batches, self.recorded.exact, self.recorded.std
        self.numbers = flatten_numbers(self.recorded.result)
        first = self.recorded.measured[0]
        is_projection = isinstance(first.context, torch.Tensor)
        self.stretch = torch.linalg.matrix_norm(first.context, 2).item() if is_projection else 1.0
        again = partial(Run, self.mechanism, source, event, relation, measured=first)
        released = self.recorded.released
        self.noisy = [again(noise, released=released).noisy for _ in range(self._repeat)]
        self.silent_result = flatten_numbers(again(FixedNoise(0)).result)
        self.result = self._other.result if self._other else self.recorded.result
        return self.result


@contextlib.contextmanager
def spying(
    *,
    repeat: int = 0,
    others: Sequence[_Spy] | None = None,
    after_last: Callable | None = None,
    null: np.ndarray | None = None,
) -> Iterator[list[_Spy]]:
    """Replace the mechanism of each release by a spy.

    Parameters
    ----------
    repeat : int, default=0
        How often each spy draws the noise again. With 0, fits with a seed are not changed.
    others : list of spies, default=None
        Those of another fit, whose mechanisms and results are used.
    after_last : callable, default=None
        ``after_last(curator)`` is called after the last release.
    null : ndarray of bool, default=None
        Records that count as absent.
    """
    spies: list[_Spy] = []

    def watch(curator, mechanism, release):
        if others is None:
            spies.append(_Spy(mechanism, repeat))
        else:
            # The values that the other fit released are kept, so that later mechanisms are the
            # same.
            other = others[len(spies)]
            spies.append(_Spy(other.mechanism, repeat, other))
        result = release(spies[-1])
        planned = sum(split_repetition(event)[1] for event in curator.plan.events)
        if after_last is not None and len(spies) == planned:
            after_last(curator)
        return result

    with intercept_releases(watch, null):
        yield spies


class _StopFit(EndOfFit):
    """Raised after the last release."""


def _stop(curator):
    raise _StopFit


def release_only(estimator, X, y, others=None, null=None) -> list[_Spy]:
    """Fit up to the last release and return the spies."""
    spied = spying(others=others, after_last=_stop, null=null)
    with spied as spies, contextlib.suppress(_StopFit):
        estimator.fit(X, y)
    return spies


def release_exactly(make: Callable, spies: Sequence[_Spy], X, y, null=None) -> list[np.ndarray]:
    """Return the values without noise that the mechanisms of another fit measure on these rows."""
    return [spy.exact for spy in release_only(make(), X, y, spies, null)]
