"""One training step of DP-SWD on single rows, beside its matrix products and sorts alone.

A step is a release (coins, directions, reading and projecting rows, noise) through a curator and
the smoothed sliced distance from generated rows to it, forward and backward. Beside it: three
matrix products (private rows, generated rows, their gradient) and two sorts, in the same sizes and
dtypes. Orthonormal directions also need a QR factorisation. One thread. At the end: where the time
of a step is taken.

    OMP_NUM_THREADS=1 python benchmarks/bench_sliced_rows.py [--repeats 7]
"""

import contextlib
import math
import time
from collections import defaultdict
from functools import partial
from unittest import mock

import numpy as np
import torch
from dp_accounting import PoissonSampledDpEvent, SelfComposedDpEvent
from side_by_side import compare, run

from skdpgen.curator.batches import RecordSource
from skdpgen.learners import slices as learner
from skdpgen.mechanisms import sampled as mechanisms
from skdpgen.privacy import Curator, NoiseSource, Plan, SlicedGaussianDpEvent, SlicedRowsMechanism
from skdpgen.transport import random_directions, slices, wasserstein_1d

TITLE = "a step on sliced rows, d=794, k=1000"
N_RECORDS, D, K = 60_000, 794, 1000
BATCHES = [100, 250, 500, 1000]
# Where time is taken, and what it is called: calls inside of each other count for the inner one.
PARTS = [
    (NoiseSource, "poisson_sample", "coins"),
    (RecordSource, "take", "reading"),
    (mechanisms, "random_directions", "directions"),
    (SlicedRowsMechanism, "query_batch", "projection"),
    (NoiseSource, "rounded_gaussian", "noise"),
    (learner, "_project", "generated"),
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
    def intercept_releases(self):
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
    projected = learner._project(made, classes, mechanism, released, generator)
    (wasserstein_1d(projected, real).sum() / K).backward()
    made.grad = None


def kernels(rows, made, directions, slots):
    """Products and sorts of a step, alone."""
    directions32 = directions.to(made.dtype)
    rows @ directions
    projected = made @ directions32
    projected @ directions32.T
    np.sort(slots, axis=-1)
    np.argsort(slots, axis=-1)


def factorise(gaussian):
    for matrix in gaussian:
        torch.linalg.qr(matrix)


def find_steps():
    """Yield what a case is called, a step, and what it is compared with."""
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(N_RECORDS, D, generator=generator).div_(math.sqrt(D)).numpy()
    mechanism = SlicedRowsMechanism(D)
    for orthogonal in (False, True):
        for batch in BATCHES:
            curator = make_curator(X, batch, orthogonal)
            n_slots = mechanisms.count_slots(N_RECORDS, batch / N_RECORDS)
            rows = torch.randn(n_slots, D, generator=generator, dtype=torch.float64)
            made = torch.randn(batch, D, generator=generator).div_(math.sqrt(D)).requires_grad_()
            directions = random_directions(D, K, dtype=torch.float64)
            slots = torch.randn(K, n_slots, generator=generator).numpy()
            alone = partial(kernels, rows, made.detach(), directions, slots)
            peers = {"products and sorts": alone}
            if orthogonal:
                gaussian = [
                    torch.randn(D, n, generator=generator, dtype=torch.float64) for n in (D, K - D)
                ]
                peers["these, and a QR"] = lambda a=alone, g=gaussian: (a(), factorise(g))
            kind = "orthonormal" if orthogonal else "independent"
            yield (
                f"batch {batch}, {kind}",
                partial(step, curator, mechanism, made, generator),
                peers,
            )


def find_rows(repeats):
    for case, run_step, peers in find_steps():
        yield from compare(case, run_step, peers, repeats)


def print_parts():
    """Print where the time of a step is taken."""
    for case, run_step, _ in find_steps():
        run_step()
        stopwatch = Stopwatch()
        with stopwatch.intercept_releases():
            run_step()
        parts = sorted(stopwatch.seconds.items(), key=lambda part: -part[1])
        print(f"  {case}: " + ", ".join(f"{name} {1e3 * s:.1f}" for name, s in parts) + " ms")


if __name__ == "__main__":
    run(__doc__, TITLE, find_rows)
    print_parts()
