"""One training step of DP-SWD on single rows, beside its matrix products and sorts alone.

A step is a release (coins, directions, reading and projecting rows, noise) through a curator and
the smoothed sliced distance from generated rows to it, forward and backward. Beside it: three
matrix products (private rows, generated rows, their gradient) and two sorts, in the same sizes and
dtypes. Orthonormal directions also need a QR factorisation, which is timed on its own. One thread;
runs alternate, and each ratio is between two neighbouring runs.

    OMP_NUM_THREADS=1 python benchmarks/bench_sliced_rows.py [--repeats 9]
"""

import argparse
import contextlib
import math
import statistics
import time
from collections import defaultdict
from unittest import mock

import numpy as np
import torch
from dp_accounting import PoissonSampledDpEvent, SelfComposedDpEvent

from skdpgen.generators import _network_learner
from skdpgen.privacy import Curator, NoiseSource, Plan, SlicedGaussianDpEvent, SlicedRowsMechanism
from skdpgen.privacy.mechanisms import sampled as mechanisms
from skdpgen.privacy.source import RecordSource
from skdpgen.transport import random_directions, slices, wasserstein_1d

N_RECORDS, D, K = 60_000, 794, 1000
BATCHES = [100, 250, 500, 1000]
# Where time is taken, and what it is called: calls inside of each other count for the inner one.
PARTS = [
    (NoiseSource, "poisson_sample", "coins"),
    (RecordSource, "take", "reading"),
    (mechanisms, "random_directions", "directions"),
    (SlicedRowsMechanism, "_measure_batch", "projection"),
    (NoiseSource, "rounded_gaussian", "noise"),
    (_network_learner, "_project", "generated"),
    (slices, "_sort", "sorting"),
    (torch.Tensor, "backward", "backward"),
]


class Stopwatch:
    """Time spent in functions, without what they call that is timed itself."""

    def __init__(self):
        self.seconds = defaultdict(float)
        self._name, self._since = "other", time.perf_counter()

    def switch(self, name):
        """Book the time until now, and from here on to `name`; return what was timed before."""
        now = time.perf_counter()
        self.seconds[self._name] += now - self._since
        before, self._name, self._since = self._name, name, now
        return before

    def wrap(self, function, name):
        def timed(*args, **kwargs):
            before = self.switch(name)
            try:
                return function(*args, **kwargs)
            finally:
                self.switch(before)

        return timed

    @contextlib.contextmanager
    def watching(self):
        with contextlib.ExitStack() as stack:
            for owner, attribute, name in PARTS:
                timed = self.wrap(getattr(owner, attribute), name)
                stack.enter_context(mock.patch.object(owner, attribute, timed))
            self._since = time.perf_counter()
            yield
            self.switch("other")


def make_curator(X, batch, orthogonal):
    event = SlicedGaussianDpEvent(0.65, D, K, orthogonal=orthogonal)
    event = SelfComposedDpEvent(PoissonSampledDpEvent(batch / N_RECORDS, event), 10**6)
    plan = Plan(((SlicedRowsMechanism.name, event),), math.inf, 1e-5, accountant="rdp")
    return Curator(X, plan=plan, noise=NoiseSource())


def step(curator, mechanism, made, generator):
    released = curator.release(mechanism)
    classes = torch.zeros(len(made), dtype=torch.long)
    real = torch.as_tensor(released.values, dtype=made.dtype)
    projected = _network_learner._project(made, classes, mechanism, released, generator)
    (wasserstein_1d(projected, real).sum() / K).backward()
    made.grad = None


def kernels(rows, made, directions, slots):
    """Products and sorts of a step, alone."""
    directions32 = directions.to(made.dtype)
    start = time.perf_counter()
    rows @ directions
    projected = made @ directions32
    projected @ directions32.T
    np.sort(slots, axis=-1)
    np.argsort(slots, axis=-1)
    return time.perf_counter() - start


def factorisation(orthogonal, generator):
    gaussian = [torch.randn(D, n, generator=generator, dtype=torch.float64) for n in (D, K - D)]
    start = time.perf_counter()
    if orthogonal:
        for matrix in gaussian:
            torch.linalg.qr(matrix)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=9)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(N_RECORDS, D, generator=generator).div_(math.sqrt(D)).numpy()
    mechanism = SlicedRowsMechanism(D)

    names = [*(name for _, _, name in PARTS), "other"]
    print(f"d = {D}, k = {K}, {N_RECORDS} records; milliseconds; ratios: median (min-max)")
    for orthogonal in (False, True):
        print(f"\n{'orthonormal' if orthogonal else 'independent'} directions")
        header = f"{'batch':>5} {'step':>7} {'kernels':>8} {'QR':>6}"
        print(f"{header}  {'step / kernels':<18}step / (kernels + QR)")
        breakdowns = []
        for batch in BATCHES:
            curator = make_curator(X, batch, orthogonal)
            n_slots = mechanisms.count_slots(N_RECORDS, batch / N_RECORDS)
            rows = torch.randn(n_slots, D, generator=generator, dtype=torch.float64)
            made = torch.randn(batch, D, generator=generator).div_(math.sqrt(D)).requires_grad_()
            directions = random_directions(D, K, dtype=torch.float64)
            slots = torch.randn(K, n_slots, generator=generator).numpy()
            runs, parts = [], []
            for _ in range(repeats + 1):
                stopwatch = Stopwatch()
                with stopwatch.watching():
                    step(curator, mechanism, made, generator)
                alone = kernels(rows, made.detach(), directions, slots)
                qr = factorisation(orthogonal, generator)
                runs.append((sum(stopwatch.seconds.values()), alone, qr))
                parts.append(stopwatch.seconds)
            runs, parts = runs[1:], parts[1:]  # the first run warms up

            medians = [1e3 * statistics.median(times) for times in zip(*runs, strict=True)]
            line = "{:5d} {:7.1f} {:8.1f} {:6.1f}".format(batch, *medians)
            for ratios in ([a / b for a, b, _ in runs], [a / (b + c) for a, b, c in runs]):
                spread = f"({min(ratios):.2f}-{max(ratios):.2f})"
                line += f"  {statistics.median(ratios):.2f} {spread:<13}"
            print(line.rstrip())
            breakdowns.append([1e3 * statistics.median(p[name] for p in parts) for name in names])
        print("\nbatch" + "".join(f"{name:>11}" for name in names))
        for batch, times in zip(BATCHES, breakdowns, strict=True):
            print(f"{batch:5d}" + "".join(f"{t:11.1f}" for t in times))


if __name__ == "__main__":
    main()
