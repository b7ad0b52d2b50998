# SPDX-License-Identifier: BSD-3-Clause
"""A look at releases: what goes into mechanisms, and what comes out."""

import contextlib
from copy import copy
from dataclasses import fields, is_dataclass, replace

import numpy as np
import torch

from ..accounting.events import split_repetition
from ..curator.curator import watching
from ..mechanisms.noise import NoiseSource


class _SilentSource(NoiseSource):
    """A noise source whose noise is zero."""

    def rounded_gaussian(self, scale):
        return np.zeros(np.shape(scale), dtype=np.int64)

    def rounded_laplace(self, scale):
        return np.zeros(np.shape(scale), dtype=np.int64)

    def randomized_response(self, codes, n_classes, probability):
        return codes


class _WatchedSource:
    """Keeps what a mechanism reads."""

    def __init__(self, source):
        self._source = source
        self.n_records, self.n_classes = source.n_records, source.n_classes
        self.max_rows, self.count_rows = source.max_rows, source.count_rows
        self.seen = []

    def add_up(self, function):
        return function(self)

    def blocks(self, name, *size):
        for block in self._source.blocks(name, *size):
            self.seen.append(block)
            yield block

    def places(self, name, size):
        return self._source.places(name, size)

    def take(self, positions):
        self.seen.append(self._source.take(positions))
        return self.seen[-1]


class _Spy:
    """Stands in for a mechanism and keeps what goes in and comes out."""

    def __init__(self, mechanism, repeat, told=(), result=None):
        self.mechanism = mechanism
        self.name = mechanism.name
        self.check, self.is_sum = mechanism.check, mechanism.is_sum
        self._repeat = repeat
        # What was released between the measurements of one event, or is to be taken for that.
        self.told = list(told)
        # What was released, or is to be taken for that.
        self.result = result
        self._stages = []

    def run(self, source, event, *, relation, noise):
        source = _WatchedSource(source)
        first = self.mechanism._measure(source, event, relation, noise)
        self.event, self.blocks = event, source.seen
        directions = first.context
        is_projection = isinstance(directions, torch.Tensor)
        self.stretch = torch.linalg.matrix_norm(directions, 2).item() if is_projection else 1.0
        result = self._run(self._watch(first), source, relation, noise)

        # What follows the measurements: with and without noise, before and after reshaping.
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
        """Keep a measurement, and those that follow from what is released of it."""
        self._stages.append(replace(measured, then=None))
        if measured.then is None:
            return measured

        def then(noisy):
            if len(self.told) < len(self._stages):
                self.told.append(noisy)
            return self._watch(measured.then(self.told[len(self._stages) - 1]))

        return replace(measured, then=then)

    def _run(self, measured, source, relation, noise, **changes):
        """Run the mechanism from a measurement on."""
        mechanism = copy(self.mechanism)
        mechanism._measure = lambda *args: measured
        vars(mechanism).update(changes)
        return mechanism.run(source, self.event, relation=relation, noise=noise)


@contextlib.contextmanager
def spying(*, repeat=0, others=None, after_last=None, null=None):
    """Have a spy on each release; optionally, do as others did, and call after the last one.

    With ``repeat=0`` the spies draw no noise of their own, so that seeded fits are as without them.
    """
    spies = []

    def watch(curator, mechanism, release):
        if others is None:
            spies.append(_Spy(mechanism, repeat))
        else:
            other = others[len(spies)]
            spies.append(_Spy(other.mechanism, repeat, other.told, other.result))
        result = release(spies[-1])
        planned = sum(split_repetition(event)[1] for event in curator.plan.events)
        if after_last is not None and len(spies) == planned:
            after_last(curator)
        return result

    with watching(watch, null):
        yield spies


class _StopFit(Exception):
    pass


def _stop(curator):
    raise _StopFit


def release_only(estimator, X, y, others=None, null=None):
    """Fit up to the last release and return the spies."""
    looking = spying(others=others, after_last=_stop, null=null)
    with looking as spies, contextlib.suppress(_StopFit):
        estimator.fit(X, y)
    return spies


def release_exactly(make, spies, X, y, null=None):
    """Return what the mechanisms of another fit release on these rows, without noise."""
    return [spy.exact for spy in release_only(make(), X, y, spies, null)]


def _numbers(result):
    """Return all arrays of a released dataclass, as one vector."""
    assert is_dataclass(result), f"A release gives {type(result)}, not a dataclass of arrays."
    values = [getattr(result, field.name) for field in fields(result)]
    return np.concatenate([value.ravel() for value in values if isinstance(value, np.ndarray)])
