"""Exact noise beside NumPy's, from the same ChaCha20 stream; and its part in whole fits.

Noise for grids as releases have them. Fits: with the noise of the library, and with normals in
doubles in its place. One thread; CPU time.

    OMP_NUM_THREADS=1 python benchmarks/bench_noise.py [--repeats 7]
"""

import time
import warnings
from unittest import mock

import numpy as np
from side_by_side import compare, run

from skdpgen import DPSlicedWassersteinGenerator, DPSWFlowSampler
from skdpgen.privacy import NoiseSource
from skdpgen.releases import SlicedRows

TITLE = "exact noise"
N_NUMBERS = 26_000, 480_000
N_RECORDS, D = 20_000, 64


def in_doubles(source, scale):
    """Rounded normals, of which a second one is added where the first have gaps."""
    draw = source._draw()
    coarse = np.rint(scale * draw.standard_normal(scale.shape)).astype(np.int64)
    if not (scale > 2.0**20).any():
        return coarse
    fine = np.rint(scale * 2.0**-20 * draw.standard_normal(scale.shape)).astype(np.int64)
    return coarse + fine


def fits():
    X = np.random.RandomState(0).normal(size=(N_RECORDS, D)) / D**0.5
    y = np.arange(N_RECORDS) % 10
    params = {"epsilon": 3.0, "classes": range(10), "device": "cpu"}
    estimators = {
        "sketch, particles": DPSWFlowSampler(n_steps=100, **params),
        "sketch, network": DPSlicedWassersteinGenerator(n_steps=100, **params),
        "rows, network": DPSlicedWassersteinGenerator(release=SlicedRows(n_steps=100), **params),
        "rows, 1000 slices": DPSlicedWassersteinGenerator(
            release=SlicedRows(1000, batch_size=100, n_steps=30), epsilon=3.0
        ),
    }
    for name, estimator in estimators.items():
        labels = None if name.endswith("slices") else y
        yield name, lambda e=estimator, labels=labels: e.fit(X, labels)


def find_rows(repeats):
    source = NoiseSource(0)
    for n in N_NUMBERS:
        for bits in (9, 19, 30, 40):
            scale = np.full(n, 2.0**bits)
            yield from compare(
                f"{n:,} numbers, scale 2^{bits}",
                lambda s=scale: source.rounded_gaussian(s),
                {"in doubles": lambda s=scale: in_doubles(source, s)},
                10 * repeats,
                time.process_time,
            )
    plain_source = mock.patch.object(NoiseSource, "rounded_gaussian", in_doubles)
    for name, fit in fits():

        def plain_fit(fit=fit):
            with plain_source:
                fit()

        yield from compare(
            f"fit: {name}", fit, {"in doubles": plain_fit}, repeats, time.process_time
        )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    run(__doc__, TITLE, find_rows)
