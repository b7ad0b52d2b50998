# SPDX-License-Identifier: BSD-3-Clause
"""Spies on releases: they record the rows, exact values and noisy values of each mechanism."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import fields, is_dataclass, replace

import numpy as np
import torch

from ..accounting.events import split_repetition
from ..curator.curator import intercept_releases
from ..exceptions import EndOfFit
from ..mechanisms.noise import NoiseSource


class _SilentSource(NoiseSource):
    """Noise source that adds no noise."""

    def rounded_gaussian(self, scale):
        return np.zeros(np.shape(scale), dtype=np.int64)

    def rounded_laplace(self, scale):
        return np.zeros(np.shape(scale), dtype=np.int64)

    def randomized_response(self, codes, n_classes, probability):
        return codes


class _RecordingSource:
    """Record source that keeps the batches which a mechanism reads."""

    def __init__(self, source):
        self._source = source
        self.n_records, self.n_classes = source.n_records, source.n_classes
        self.max_rows, self.count_rows = source.max_rows, source.count_rows
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


class _Spy:
    """Substitute of a mechanism that records its input and output.

    Parameters
    ----------
    mechanism : Mechanism
    repeat : int
        How often the noise is drawn again, for `noisy`.
    released : sequence of ndarray, default=()
        Noisy values between the measurements of one event, to be used in place of new ones.
    result : object, default=None
        The result of the release, to be used in place of a new one.

    Attributes
    ----------
    blocks : list of (Tensor, Tensor)
        The rows and memberships that the mechanism read.
    exact, std : ndarray
        Measured numbers before their noise, and the standard deviations of the noise.
    noisy : list of ndarray
        The numbers with noise, `repeat` times.
    stretch : float
        The spectral norm of the projection of rows; 1 if there is none.
    """

    def __init__(self, mechanism, repeat, released=(), result=None):
        self.mechanism = mechanism
        self.name = mechanism.name
        self.check, self.is_sum = mechanism.check, mechanism.is_sum
        self._repeat = repeat
        self.released, self.result = list(released), result
        self._stages = []

    def run(self, source, event, *, relation, noise):
        source = _RecordingSource(source)
        first = self.mechanism._measure(source, event, relation, noise)
        self.event, self.blocks = event, source.batches
        directions = first.context
        is_projection = isinstance(directions, torch.Tensor)
        self.stretch = torch.linalg.matrix_norm(directions, 2).item() if is_projection else 1.0
        result = self._run(self._watch(first), source, relation, noise)
        # Without noise, what is left are the exact values as the mechanism presents them.
        silence = _SilentSource(0)

        def run(noise):
            raw = {"_present": lambda noisy, measured: noisy.ravel()}
            return np.concatenate(
                [self._run(stage, source, relation, noise, **raw) for stage in self._stages]
            )

        self.std = np.concatenate(
            [np.broadcast_to(stage.std, stage.exact.shape).ravel() for stage in self._stages]
        )
        self.exact = run(silence)
        self.noisy = [run(noise) for _ in range(self._repeat)]
        self.silent_result = _numbers(self._run(first, source, relation, silence))
        self.numbers = _numbers(result)
        if self.result is None:
            self.result = result
        return self.result

    def _watch(self, measured):
        """Record a measurement, and those that depend on its noisy values."""
        self._stages.append(replace(measured, then=None))
        if measured.then is None:
            return measured

        def then(noisy):
            if len(self.released) < len(self._stages):
                self.released.append(noisy)
            return self._watch(measured.then(self.released[len(self._stages) - 1]))

        return replace(measured, then=then)

    def _run(self, measured, source, relation, noise, **changes):
        """Run the mechanism from a measurement on."""
        # A copy, since the spied mechanism may release again at the next step.
        mechanism = copy(self.mechanism)
        mechanism._measure = lambda *args: measured
        vars(mechanism).update(changes)
        return mechanism.run(source, self.event, relation=relation, noise=noise)


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
            spies.append(_Spy(other.mechanism, repeat, other.released, other.result))
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


def _numbers(result) -> np.ndarray:
    """Return all arrays of a released dataclass, or the counts of columns, as one vector."""
    if isinstance(result, dict):
        return np.array([count for counts in result.values() for count in counts.values()])
    assert is_dataclass(result), f"A release gives {type(result)}, not a dataclass of arrays."
    values = [getattr(result, field.name) for field in fields(result)]
    return np.concatenate([value.ravel() for value in values if isinstance(value, np.ndarray)])
