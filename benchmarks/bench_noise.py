"""Exact noise beside NumPy's, from the same ChaCha20 stream; and its part in whole fits.

Noise: nanoseconds a number, for grids as releases have them. Fits: with the noise of the library,
and with normals in doubles in its place, in turn. One thread; CPU time.

    OMP_NUM_THREADS=1 python benchmarks/bench_noise.py [--repeats 7]
"""

import argparse
import statistics
import time
import warnings
from unittest import mock

import numpy as np
import torch

from skdpgen import DPSlicedWassersteinGenerator, DPSWFlowSampler, SlicedRows
from skdpgen.privacy import NoiseSource

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


def seconds(run):
    start = time.process_time()
    run()
    return time.process_time() - start


def compare(exact, plain, repeats):
    """Return the medians of both, and of their ratios in neighbouring runs, the first apart."""
    times = [(seconds(exact), seconds(plain)) for _ in range(repeats + 1)][1:]
    ratios = [a / b for a, b in times]
    return (*(statistics.median(column) for column in zip(*times, strict=True)), ratios)


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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    source = NoiseSource(0)
    print("numbers    scale |   exact  in doubles  (ns) | ratio (min-max)")
    for n in N_NUMBERS:
        for bits in (9, 19, 30, 40):
            scale = np.full(n, 2.0**bits)
            exact, plain, ratios = compare(
                lambda s=scale: source.rounded_gaussian(s),
                lambda s=scale: in_doubles(source, s),
                10 * repeats,
            )
            print(
                f"{n:7d}     2^{bits:<3d} | {1e9 * exact / n:7.1f} {1e9 * plain / n:11.1f}       |"
                f" {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
            )
    print("\nfit                 |   exact  in doubles  (s)  | ratio (min-max)")
    plain_source = mock.patch.object(NoiseSource, "rounded_gaussian", in_doubles)
    for name, fit in fits():

        def plain_fit(fit=fit):
            with plain_source:
                fit()

        exact, plain, ratios = compare(fit, plain_fit, repeats)
        print(
            f"{name:19} | {exact:7.2f} {plain:11.2f}       |"
            f" {statistics.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"
        )


if __name__ == "__main__":
    main()
