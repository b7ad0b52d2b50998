"""A step of DP-Sinkhorn, and its loss side by side with GeomLoss: seconds and peak memory.

The loss is the semi-debiased one, of n generated images and n real ones with a label each, and
what is timed is its gradient in the generated images, as the mechanism takes it. GeomLoss has the
same cost joined to its rows, and the regularisation that is the same in its units (its cost is half
the squared distance). Both are taken on one thread, in float32; runs alternate. The whole step adds
coins, reading, noise, and the network's forward and backward passes and update. Peak memory is what
is added to that of the process, of one that runs nothing else; it is read as Linux tells it.

    python benchmarks/bench_sinkhorn_step.py [--repeats 15] [--sizes 50 100 200]
"""

import argparse
import multiprocessing
import re
import statistics
import time
import warnings
from pathlib import Path

import numpy as np
import torch

from skdpgen import DPSinkhornGenerator
from skdpgen.releases import SampledGradients
from skdpgen.transport.sinkhorn_losses import SinkhornGradient

try:
    import geomloss
except ImportError:
    geomloss = None

D, N_CLASSES, LABEL_WEIGHT, REG = 784, 10, 15.0, 5.0


def samples(n, n_debias):
    """Rows in [0, 1] around a centre for each class."""
    generator = torch.Generator().manual_seed(0)
    centres = torch.rand(N_CLASSES, D, generator=generator) ** 4
    made_codes, real_codes = torch.arange(n + n_debias) % N_CLASSES, torch.arange(n) % N_CLASSES
    made, real = (
        (centres[codes] + 0.2 * torch.randn(len(codes), D, generator=generator)).clamp(0, 1)
        for codes in (made_codes, real_codes)
    )
    return made, made_codes, real, real_codes


def own(made, codes, real, real_codes, n, n_debias):
    loss = SinkhornGradient(REG, 0.0, LABEL_WEIGHT)
    membership = torch.eye(N_CLASSES)[real_codes]
    gradient = loss.apart(made, codes, n_debias)
    gradient[:n] += loss.cross(made[:n], codes[:n], real, membership)[0]
    return gradient


def theirs(scaling):
    kernel = geomloss and geomloss.SamplesLoss(
        "sinkhorn", p=2, blur=(REG / 2) ** 0.5, scaling=scaling, debias=False, backend="tensorized"
    )

    def gradient(made, codes, real, real_codes, n, n_debias):
        made = made.clone().requires_grad_()
        X = torch.cat([made, LABEL_WEIGHT * torch.eye(N_CLASSES)[codes]], dim=1)
        Y = torch.cat([real, LABEL_WEIGHT * torch.eye(N_CLASSES)[real_codes]], dim=1)
        # Its cost is half of ours.
        loss = 2 * (2 * kernel(X[:n], Y) - kernel(X[:n], X[n_debias:]))
        return torch.autograd.grad(loss, made)[0]

    return gradient


def solvers():
    yield "skdpgen", own
    if geomloss is not None:
        for scaling in (0.5, 0.9):
            yield f"GeomLoss, scaling={scaling}", theirs(scaling)


def milliseconds(function, *args):
    start = time.perf_counter()
    function(*args)
    return 1e3 * (time.perf_counter() - start)


def fit(n_steps, n):
    rows = np.random.RandomState(0).uniform(size=(5000, D)).astype(np.float32)
    generator = DPSinkhornGenerator(
        10.0,
        bounds=(0, 1),
        classes=range(N_CLASSES),
        release=SampledGradients(n_steps, batch_size=n, n_generated=n),
        network="conv28",
        accountant="rdp",
        random_state=0,
    )
    return generator.fit(rows, np.arange(5000) % N_CLASSES)


def peak_memory(name, n, queue):
    """Megabytes that a solver, or a fit, adds to the process."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    args = (*samples(n, n // 5), n, n // 5)
    # Imports have a peak of their own, which Linux forgets on demand.
    Path("/proc/self/clear_refs").write_text("5")
    before = peak_of_process()
    fit(5, n) if name == "step" else dict(solvers())[name](*args)
    queue.put((peak_of_process() - before) / 1024)


def peak_of_process():
    """Kilobytes."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1])


def in_new_process(*args):
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=peak_memory, args=(*args, queue))
    process.start()
    result = queue.get()
    process.join()
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 100, 200])
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for n in options.sizes:
        print(f"\nn = {n}, n' = {n // 5}, d = {D}, reg = {REG:g}")
        args = (*samples(n, n // 5), n, n // 5)
        ready = dict(solvers())
        exact = own(*args)
        times = [[milliseconds(f, *args) for f in ready.values()] for _ in range(options.repeats)]
        for (name, function), own_times in zip(
            ready.items(), zip(*times[1:], strict=True), strict=True
        ):
            off = (function(*args) - exact).norm() / exact.norm()
            print(
                f"  {name:<24}{statistics.median(own_times):>8.1f} ms, "
                f"{in_new_process(name, n):>6.0f} MB, gradient differs by {off:.1%}"
            )
        few, many = (milliseconds(fit, n_steps, n) for n_steps in (5, 105))
        memory = in_new_process("step", n)
        print(f"  {'whole step, conv28':<24}{(many - few) / 100:>8.1f} ms, {memory:>6.0f} MB")


if __name__ == "__main__":
    main()
