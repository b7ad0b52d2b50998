# SPDX-License-Identifier: BSD-3-Clause
"""Rehearsal of the releases and of a few steps of a fit, on made-up records."""

import copy
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import torch

from .._process.muting import muted
from ..accounting.budget import PublicRun
from ..accounting.plan import Plan
from ..curator.curator import Curator
from ..curator.dataset import Dataset
from ..data.cells import FrameCells
from ..data.record_functions import RecordFunction
from ..exceptions import PublicError
from ..learners.training import shortens_loops
from ..mechanisms.noise import NoiseSource
from ..mechanisms.sums import RowCountMechanism
from ..params import choose_device, is_out_of_memory

# Made-up records of a table, of which sums read one block.
_CELLS = 2**11
# Steps of each training loop by which the time of the others is estimated.
_TIMED_STEPS = 5


class _NoNoise(NoiseSource):
    """Noise of zeros, as exact draws take longer than the rest of a rehearsal."""

    def rounded_gaussian(self, scale):
        return np.zeros(np.shape(scale), dtype=np.int64)

    rounded_laplace = rounded_gaussian


class _MadeUpCurator(Curator):
    """A curator of made-up records, as many as there are, of which sums read the first block."""

    def __init__(self, X, y, **params):
        super().__init__(X, y, **params)
        source = self._source
        # What reading the other blocks would take.
        self.seconds = 0.0

        def read_first(size):
            X, y, _ = next(source._batches(size))
            start = time.perf_counter()
            yield X, y, None
            self.seconds += (time.perf_counter() - start) * (self.n_records / len(X) - 1)

        source._read_records = read_first

    def release(self, mechanism):
        start, before = time.perf_counter(), self.seconds
        # Not through `intercept_releases`: whoever counts releases must not see this one.
        released = self._release(mechanism)
        for name in ("values", "codes") if self.plan.local else ():
            # Records are noised one by one, and each is learned from.
            if (values := getattr(released, name, None)) is not None:
                times = self.n_records / len(values)
                self.seconds = before + (time.perf_counter() - start) * (times - 1)
                values = np.resize(values, (self.n_records, *values.shape[1:]))
                released = replace(released, **{name: values})
        return released

    def _read(self, read):
        # Errors say what they are, as no private row is read.
        return read()


def rehearse_fit(estimator, format, plan: Plan, dataset: Dataset, device: torch.device) -> None:
    """Raise an error if an accelerator lacks the memory for a fit, or a database fails.

    All releases are made of made-up records, zeros or missing cells, and training takes a step. A
    database adds up no records, by the statements of the fit but for the columns that it chooses.
    Other errors are left to the fit, which states what it spent. Inferred columns of a table are
    not known, and take less memory here than in the fit. The estimator stays as it is, and no
    record of the dataset is read.
    """
    error = None
    with muted(), PublicRun(), shortens_loops():
        try:
            _rehearse(copy.copy(estimator), format, plan, dataset, device, _NoNoise(0))
        except Exception as raised:
            error = raised
    if device.type == "cuda":
        torch.cuda.empty_cache()
    if dataset.database is not None and isinstance(error, PublicError):
        raise error
    if error is not None and is_out_of_memory(error):
        raise ValueError(
            f"device {str(device)!r} has too little memory for this fit, of which a rehearsal on "
            "rows of zeros has failed before anything was spent: set device='cpu', or a smaller "
            "batch_size or release."
        ) from error


def note_seconds(estimator, format, plan: Plan, dataset: Dataset) -> tuple[str, ...]:
    """Return a note of how long a fit of arrays takes here, if its rehearsal does not fail."""
    start, device = time.perf_counter(), choose_device(estimator.device)
    try:
        with muted(), PublicRun(), shortens_loops(_TIMED_STEPS) as short:
            left = _rehearse(copy.copy(estimator), format, plan, dataset, device, NoiseSource(0))
    except Exception:
        return ()  # errors are left to the fit
    seconds = time.perf_counter() - start + left + short.seconds
    return (f"a fit takes about {float(f'{seconds:.2g}'):g} s on this machine.",)


def _rehearse(estimator, format, plan, dataset, device, noise):
    """Make all releases, and take some steps; return the seconds that other blocks would take."""
    n_records, y = dataset.n_records, None
    if dataset.reader is None:
        X = np.broadcast_to(0.0, (n_records, dataset.n_columns))
        label = dataset.classes[:1] if dataset.classes is not None else np.zeros(1)
        y = np.broadcast_to(label, n_records) if dataset.label is not None else None
    else:
        shape = min(n_records, _CELLS), len(format.schema)
        X = FrameCells(pd.DataFrame(np.full(shape, None), columns=list(format.schema)))
    releases = [pair for pair in plan.releases if pair[0] != RowCountMechanism.name]
    curator = _MadeUpCurator(
        X,
        y,
        classes=dataset.classes,
        plan=replace(plan, releases=tuple(releases), max_rows=None),
        noise=noise,
        prepare=RecordFunction(format.encode),
        cells=dataset.reader or False,
        clip_norm=format.clip_norm,
        device=device,
    )
    if dataset.database is not None:
        curator._source.database = dataset.database.without_rows()
    with curator:
        curator.n_records = curator.n_rows = n_records
        estimator._learn(curator, format.resolve(curator), noise)
    return curator.seconds
