"""Forked children neither hang nor keep the state of threads that they do not have."""

import os
import subprocess
import sys
import threading
import warnings

import pytest

from skdpgen._process import isolation
from skdpgen._process.muting import muted
from skdpgen.engines import warehouse

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")

# A child that hangs is ended by the alarm; its parent returns its exit status.
FORKS = """
import os, signal, sys, warnings
import numpy as np
from skdpgen import DPSWFlowSampler
from skdpgen.transport import sliced_wasserstein_distance
warnings.simplefilter("ignore")
X = np.random.default_rng(0).random((30_000, 8))
def run():
    DPSWFlowSampler(2.0, bounds=(0, 1), n_steps=5, device="cpu").fit(X[:3000]).sample(1000)
    sliced_wasserstein_distance(X, X + 1)
run()
child = os.fork()
if not child:
    signal.alarm(60)
    run()
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_children_compute_after_their_parent():
    threads = {"OMP_NUM_THREADS": "2", "MKL_NUM_THREADS": "2"}
    forks = [sys.executable, "-c", FORKS]
    assert subprocess.run(forks, env={**os.environ, **threads}).returncode == 0


def in_child(function):
    """Return whether a function returns True in a forked child."""
    child = os.fork()
    if not child:
        try:
            os._exit(function() is True)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1


@pytest.fixture
def in_thread():
    """Enter a context in another thread until the test ends."""
    entered, done = threading.Event(), threading.Event()

    def enter(context):
        with context:
            entered.set()
            done.wait()

    def start(context):
        threading.Thread(target=enter, args=(context,)).start()
        entered.wait()

    yield start
    done.set()


@pytest.mark.parametrize(("module", "name"), [(isolation, "_generator_lock"), (warehouse, "_LOCK")])
def test_locks_of_other_threads_are_free(in_thread, module, name):
    in_thread(getattr(module, name))
    assert in_child(lambda: getattr(module, name).acquire(timeout=5))
    assert not getattr(module, name).acquire(blocking=False)


def test_other_threads_mute_nothing(in_thread):
    def is_shown(category):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with muted(ImportWarning):
                warnings.warn("Smith", category, stacklevel=1)
        return bool(caught)

    in_thread(muted(DeprecationWarning))
    assert not is_shown(DeprecationWarning)
    assert in_child(lambda: is_shown(DeprecationWarning))
    with muted(RuntimeWarning):
        assert in_child(lambda: not is_shown(RuntimeWarning))
