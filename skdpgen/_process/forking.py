# SPDX-License-Identifier: BSD-3-Clause
"""State that a forked child must not inherit: locks and thread pools.

A child has only the thread that forked. It would wait for ever for a lock that another thread of
its parent held, and for the workers of an OpenMP pool that its parent has started.
"""

import os
import sys
from collections.abc import Callable


def in_forked_children(function: Callable[[], object]) -> Callable[[], object]:
    """Call a function in each child, as soon as it is forked; a decorator."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=function)
    return function


@in_forked_children
def _use_one_thread():
    """Compute on one thread: libgomp, which torch uses, cannot start its pool anew in a child."""
    # Not imported here, since it takes seconds; without it there is no pool.
    if set_num_threads := getattr(sys.modules.get("torch"), "set_num_threads", None):
        set_num_threads(1)
