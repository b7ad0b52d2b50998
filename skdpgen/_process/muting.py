# SPDX-License-Identifier: BSD-3-Clause
"""Thread-safe muting and raising of warnings.

`warnings.catch_warnings` saves and restores the filters of the whole process. If threads
interleave, muted warnings are shown, or all warnings stay muted. Here two filters stay in place,
and decide for each warning when it is raised.
"""

import contextlib
import warnings
from contextvars import ContextVar

from .forking import in_forked_children

# Pairs of an action and a category in this thread or task, the innermost first.
_actions = ContextVar("actions on warnings", default=())
# Categories that any thread mutes: threads that it started cannot be recognised.
_muted: list[type[Warning]] = []


@in_forked_children
def _forget_other_threads():
    """Drop the entries of other threads, which do not exist in a child."""
    _muted[:] = [category for action, category in _actions.get() if action == "ignore"]


class _ActedOn:
    """A category for filters, whose subclasses are those on which an action is taken now."""

    def __init__(self, action):
        self._action = action

    def __subclasscheck__(self, category):
        others = [("ignore", muted) for muted in tuple(_muted)]
        for action, acted_on in (*_actions.get(), *others):
            if issubclass(category, acted_on):
                return action == self._action
        return False

    def __reduce__(self):
        # joblib sends filters to worker processes, which mute nothing and need not import this.
        return type, ("NoWarning", (Warning,), {})


_UNUSED = _ActedOn("none")
_FILTERS = [(action, None, _ActedOn(action), None, 0) for action in ("ignore", "error")]


@contextlib.contextmanager
def muted(category=Warning):
    """Mute warnings, also those of other threads."""
    _muted.append(category)
    try:
        with _acting("ignore", category):
            yield
    finally:
        _muted.remove(category)


def is_muted(category):
    """Return whether warnings of a category are muted now."""
    return issubclass(category, _FILTERS[0][2])


def raised(category=Warning):
    """Raise warnings of this thread or task as errors, also those that have been shown before."""
    # Python passes over a warning that the same line has shown until filters change. This one
    # matches none.
    warnings.simplefilter("ignore", _UNUSED, append=True)
    return _acting("error", category)


@contextlib.contextmanager
def _acting(action, category):
    token = _actions.set(((action, category), *_actions.get()))
    _install()
    try:
        yield
    finally:
        _actions.reset(token)


def _install():
    """Put the filters first, in one assignment, so that every thread sees them."""
    if warnings.filters[: len(_FILTERS)] != _FILTERS:
        others = [item for item in warnings.filters if item not in _FILTERS]
        warnings.filters = [*_FILTERS, *others]


# Lists that others save from now on hold them, too.
_install()
