# SPDX-License-Identifier: BSD-3-Clause
"""Actions on warnings that threads can take at the same time.

`warnings.catch_warnings` saves the filters of the whole process, and restores them. Where threads
interleave, warnings of one that is inside get out, or those of all stay muted for good. Here two
filters stay in place, and decide by what is the case when a warning is raised.
"""

import contextlib
import warnings
from contextvars import ContextVar

# In this thread or task: pairs of an action and a category of warnings, the innermost first.
_actions = ContextVar("actions on warnings", default=())
# Categories that are muted by any thread. It may have started others, which nothing tells apart.
_muted = []


class _ActedOn:
    """The categories on which an action is taken now, as one category that filters can name."""

    def __init__(self, action):
        self._action = action

    def __subclasscheck__(self, category):
        others = [("ignore", muted) for muted in tuple(_muted)]
        for action, acted_on in (*_actions.get(), *others):
            if issubclass(category, acted_on):
                return action == self._action
        return False

    def __reduce__(self):
        # Some send filters to worker processes, which are not inside and need not import this.
        return type, ("NoWarning", (Warning,), {})


_FILTERS = [(action, None, _ActedOn(action), None, 0) for action in ("ignore", "error")]


@contextlib.contextmanager
def muted(category=Warning):
    """Drop warnings, also those of other threads meanwhile."""
    _muted.append(category)
    try:
        with _acting("ignore", category):
            yield
    finally:
        _muted.remove(category)


def raised(category=Warning):
    """Raise warnings of this thread or task as errors."""
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
    """Put the filters first, by one assignment: no thread sees a list without them."""
    if warnings.filters[: len(_FILTERS)] != _FILTERS:
        others = [item for item in warnings.filters if item not in _FILTERS]
        warnings.filters = [*_FILTERS, *others]


# Lists that others save from now on have them, too.
_install()
