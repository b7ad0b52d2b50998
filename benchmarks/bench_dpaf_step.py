"""A step of DPAF on images of 28, 64 and 128 pixels: seconds and peak memory.

For each size: the products of a chunk of records, as the library takes them, from the inputs of a
layer and the gradients at its outputs, and by ``torch.func.vmap``; and whole steps, with and
without products. A step draws a batch, reads it, makes the release, and updates the generator
twice. All is on one thread. Peak memory is what a fit adds to that of a process that runs nothing
else, the private images included; it is read as Linux tells it.

    python benchmarks/bench_dpaf_step.py [--batch-size 500] [--sizes 28 64 128]
"""

import argparse
import math
import multiprocessing
import statistics
from pathlib import Path

import numpy as np
import torch
from bench_sinkhorn_step import milliseconds, peak_of_process
from torch.func import functional_call, grad, vmap

from skdpgen import DPAFGenerator
from skdpgen.learners.aggregates import RecordFeatures
from skdpgen.networks.discriminators import Discriminator, default_layers
from skdpgen.releases import ForwardAggregates

N_CLASSES, N_RECORDS, CHUNK = 10, 2000, 64


def shape_of(size):
    return (1 if size == 28 else 3, size, size)


def products(size):
    """Return two functions that give the products of a chunk of records."""
    shape = shape_of(size)
    torch.manual_seed(0)
    network = Discriminator(math.prod(shape), N_CLASSES, default_layers(shape), shape, 2.0, -1.0)
    function = RecordFeatures(network)
    rows, one_hot = torch.rand(CHUNK, math.prod(shape)), torch.zeros(CHUNK, N_CLASSES)
    v = torch.randn(CHUNK, network.n_features)
    weights = {name: w.detach() for name, w in network.trained.named_parameters("trained")}

    def of_one(weights, seen, cotangent):
        return functional_call(network, weights, (seen[None],))[0] @ cotangent

    def by_vmap():
        with torch.no_grad():
            seen = network.look(rows, one_hot)
            found = vmap(grad(of_one), (None, 0, 0))(weights, seen, v)
        return torch.cat([part.flatten(1) for part in found.values()], dim=1)

    return {"by layer": lambda: function(rows, one_hot)[1](v), "by vmap": by_vmap}


def fit(size, n_steps, batch_size, split):
    n_features = math.prod(shape_of(size))
    rows = np.random.RandomState(0).randint(256, size=(N_RECORDS, n_features)).astype(np.uint8)
    return DPAFGenerator(
        10.0,
        bounds=(0, 255),
        classes=range(N_CLASSES),
        release=ForwardAggregates(n_steps, batch_size, budget_split=split),
        accountant="rdp",
        random_state=0,
    ).fit(rows, np.arange(N_RECORDS) % N_CLASSES)


def peak_memory(queue, *args):
    """Megabytes that a fit adds to the process."""
    torch.set_num_threads(1)
    # Imports have a peak of their own, which Linux forgets on demand.
    Path("/proc/self/clear_refs").write_text("5")
    before = peak_of_process()
    fit(*args)
    queue.put((peak_of_process() - before) / 1024)


def in_new_process(*args):
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=peak_memory, args=(queue, *args))
    process.start()
    result = queue.get()
    process.join()
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--batch-size", type=int, default=500)
    parser.add_argument("--sizes", type=int, nargs="+", default=[28, 64, 128])
    options = parser.parse_args()
    torch.set_num_threads(1)
    for size in options.sizes:
        print(f"\n{size}×{size}, {shape_of(size)[0]} channels, batches of {options.batch_size}")
        ways = products(size)
        first, second = (way() for way in ways.values())
        off = ((first - second).norm() / second.norm()).item()
        print(f"  {first.shape[1]:,} numbers a product; the two ways differ by {off:.0e}")
        times = [[milliseconds(way) for way in ways.values()] for _ in range(7)]
        for name, taken in zip(ways, zip(*times[1:], strict=True), strict=True):
            print(f"  {'products ' + name:<24}{statistics.median(taken) / CHUNK:>8.2f} ms a record")
        for name, split in {"aggregate": (0, 0, 1), "with products": (0, 0.2, 0.8)}.items():
            few, many = (milliseconds(fit, size, n, options.batch_size, split) for n in (1, 5))
            memory = in_new_process(size, 2, options.batch_size, split)
            step = (many - few) / 4000
            print(f"  {'step, ' + name:<24}{step:>8.2f} s, {memory:>6.0f} MB")


if __name__ == "__main__":
    main()
