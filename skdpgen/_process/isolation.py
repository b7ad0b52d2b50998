# SPDX-License-Identifier: BSD-3-Clause
"""The state of the process that results depend on, set aside while a public method runs."""

import contextlib
import copy
import decimal
import numbers
import secrets
import threading
from collections.abc import Iterator, Sequence

import numpy as np
import sklearn
import torch

from .forking import in_forked_children

# Number of contexts that are open in all threads, and how to restore the process after the last.
_lock, _n_open, _restore = threading.Lock(), 0, contextlib.ExitStack()
# Held while torch's global generator is seeded or restored, and while weights are drawn from it.
# Reentrant, as an object of a user that is rehearsed may make networks.
_generator_lock = threading.RLock()
in_forked_children(
    lambda: globals().update(_lock=threading.Lock(), _n_open=0, _generator_lock=threading.RLock())
)


@contextlib.contextmanager
def isolated(random_state: object = None, device: torch.device | None = None) -> Iterator[None]:
    """Run with the defaults of torch, NumPy, decimal and scikit-learn, whatever the caller has set.

    The caller's settings are restored. Settings of the whole process, such as torch's default
    dtype, are restored once no thread is inside.

    Parameters
    ----------
    random_state : None, int or RandomState, default=None
        Seed of torch's global generators, from which a custom network may draw, as for Dropout; a
        RandomState is not advanced. With a seed, torch computes on one thread, as results depend
        on the number of threads.
    device : torch.device, default=None
        A GPU whose generator is seeded, too.
    """
    gpus = [device] if device is not None and device.type == "cuda" else []
    with contextlib.ExitStack() as state:
        enter = state.enter_context
        enter(_shared_defaults())
        enter(_seeded_anew(_find_seed(random_state), gpus))
        if random_state is not None:
            state.callback(torch.set_num_threads, torch.get_num_threads())
            torch.set_num_threads(1)
        enter(torch.inference_mode(False))
        enter(torch.enable_grad())
        for device_type in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device_type):
                enter(torch.autocast(device_type, enabled=False))
        # Only if there is another one: it slows down each call of torch.
        if torch.get_default_device().type != "cpu":
            enter(torch.device("cpu"))
        enter(np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"))
        enter(decimal.localcontext(_DECIMAL))
        enter(sklearn.config_context(**_SKLEARN))
        yield


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Seed torch's global generator, from which weights are drawn, and restore it afterwards.

    No other thread seeds it in the meantime.
    """
    with _generator_lock, _forked_generators(seed):
        yield


@contextlib.contextmanager
def _seeded_anew(seed: int, gpus: list[torch.device]) -> Iterator[None]:
    """Seed the global generators, and restore them, while no other thread draws weights."""
    with contextlib.ExitStack() as state:
        with _generator_lock:
            state.enter_context(_forked_generators(seed, gpus))
        try:
            yield
        finally:
            with _generator_lock:
                state.close()


@contextlib.contextmanager
def _forked_generators(seed: int, gpus: Sequence[torch.device] = ()) -> Iterator[None]:
    with torch.random.fork_rng(gpus):
        torch.default_generator.manual_seed(seed)
        for gpu in gpus:
            with torch.cuda.device(gpu):
                torch.cuda.manual_seed(seed)
        yield


def isolate_each(batches: Iterator, random_state: object = None) -> Iterator:
    """Yield what an iterator computes, isolated while it does."""
    end = object()
    while True:
        with isolated(random_state):
            batch = next(batches, end)
        if batch is end:
            return
        yield batch


# Settings that Python and scikit-learn start with.
_DECIMAL = decimal.Context(
    28,
    decimal.ROUND_HALF_EVEN,
    traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
)
_SKLEARN = {"assume_finite": False, "array_api_dispatch": False, "transform_output": "default"}


@contextlib.contextmanager
def _shared_defaults() -> Iterator[None]:
    """Set the settings that all threads share, unless another thread has set them."""
    global _n_open
    with _lock:
        if not _n_open:
            _restore.callback(torch.set_default_dtype, torch.get_default_dtype())
            torch.set_default_dtype(torch.float32)
            precision = torch.get_float32_matmul_precision()
            _restore.callback(torch.set_float32_matmul_precision, precision)
            torch.set_float32_matmul_precision("highest")
            # Threads restore the generator, and what new threads start with, in any order.
            _restore.callback(torch.set_num_threads, torch.get_num_threads())
            _restore.callback(torch.set_rng_state, torch.get_rng_state())
        _n_open += 1
    try:
        yield
    finally:
        with _lock:
            _n_open -= 1
            if not _n_open:
                _restore.close()


def _find_seed(random_state: object) -> int:
    if isinstance(random_state, np.random.RandomState):
        return int(copy.deepcopy(random_state).randint(2**31))
    if isinstance(random_state, numbers.Integral):
        return int(random_state) % 2**63
    # Also for what is no seed, which the caller refuses.
    return secrets.randbits(63)
