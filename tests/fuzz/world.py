"""State that a call must leave as it was: generators, threads, dtypes, filters, the environment."""

import functools
import importlib
import os
import random
import signal
import threading
import warnings

import numpy as np
import pandas as pd
import torch
from tqdm import tqdm

from skdpgen._process.muting import _FILTERS


@functools.cache
def settle():
    """Start what others start once: the thread of all bars, and what optimizers of torch import."""
    importlib.import_module("torch._dynamo")  # which sets variables of the environment
    tqdm(disable=True).close()


def look():
    """Return the state of all that is global, by name."""
    settle()
    options = pd.options.display
    return {
        "random's generator": random.getstate(),
        "NumPy's generator": [np.asarray(part).tobytes() for part in np.random.get_state()],  # noqa: NPY002
        "torch's generator": torch.get_rng_state().numpy().tobytes(),
        "torch's threads": torch.get_num_threads(),
        "torch's dtype": torch.get_default_dtype(),
        "torch's gradients": torch.is_grad_enabled(),
        "torch's determinism": torch.are_deterministic_algorithms_enabled(),
        "NumPy's errors": np.geterr(),
        "NumPy's printing": np.get_printoptions(),
        "pandas' printing": (options.max_rows, options.max_columns, options.precision),
        # Those of the package stay in place.
        "filters of warnings": [item for item in warnings.filters if item not in _FILTERS],
        "the way warnings are shown": warnings.showwarning,
        "the environment": dict(os.environ),
        "the folder": os.getcwd(),
        "threads": threading.active_count(),
        "signals": [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)],
    }


def differences(before, after):
    """Return the names of what is not as it was."""
    return [name for name in before if before[name] != after[name]]
