"""A trace that kills its process, for tests of what budgets and streams keep."""

import os
import signal


def kill_at(number, files):
    """Return a trace, for `sys.settrace`, that kills the process at a line of some files."""
    left = number

    def trace(frame, event, arg):
        nonlocal left
        if frame.f_code.co_filename not in files:
            return None
        if event == "line":
            left -= 1
            if left < 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    return trace
