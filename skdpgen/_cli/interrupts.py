# SPDX-License-Identifier: BSD-3-Clause
"""Signals that end a process, as exceptions, so that what is half done is undone."""

import contextlib
import signal
import threading

_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


class Interrupted(KeyboardInterrupt):
    """A signal has asked the process to end."""

    def __init__(self, number, says="interrupted."):
        super().__init__(says)
        self.number = number


@contextlib.contextmanager
def interruptible():
    """Raise `Interrupted` where a signal asks to end; signals that are ignored stay so.

    Only the first one counts, so that none disturbs the cleaning up.

    Yields
    ------
    callable
        Is called when it is too late: signals are ignored from then on, until the end.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    before = {n: signal.getsignal(n) for n in numbers}
    before = {n: handler for n, handler in before.items() if handler not in (signal.SIG_IGN, None)}

    def ignore():
        for number in before:
            signal.signal(number, signal.SIG_IGN)

    def interrupt(number, frame):
        ignore()
        raise Interrupted(number)

    try:
        for number in before:
            signal.signal(number, interrupt)
        yield ignore
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
