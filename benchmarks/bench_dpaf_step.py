"""A step of DPAF on images of 28, 64 and 128 pixels: seconds and peak memory.

For each size: the products of a chunk of records, as the library takes them (``torch.func.vmap``),
and by the formula for a last convolution, from its inputs and the gradients at its outputs, as
samplers of per-record gradients do; and whole steps, with and without products. A step draws a
batch, reads it, makes the release, and updates the generator four times. All is on one thread. Peak
memory is what a fit adds to that of a process that runs nothing else, the private images included;
it is read as Linux tells it.

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
from torch import nn

from skdpgen import DPAFGenerator
from skdpgen.generators._aggregate_learner import RecordFeatures
from skdpgen.networks import Discriminator, default_layers

N_CLASSES, N_RECORDS, CHUNK = 10, 2000, 64


def shape_of(size):
    return (1 if size == 28 else 3, size, size)


def products(size):
    """Return two functions that give the products of a chunk of records."""
    shape, layers = shape_of(size), (*default_layers(shape_of(size))[:1], 1, 0)
    torch.manual_seed(0)
    network = Discriminator(math.prod(shape), N_CLASSES, layers, shape, 2.0, -1.0)
    function = RecordFeatures(network)
    rows, one_hot = torch.rand(CHUNK, math.prod(shape)), torch.eye(N_CLASSES)[:1].expand(CHUNK, -1)
    v = torch.randn(CHUNK, network.n_features)
    (layer,) = network.trained

    def by_formula():
        inputs, outputs = network.look(rows, one_hot), []
        handle = layer.register_forward_hook(lambda *args: outputs.append(args[2]))
        features = network(inputs)
        handle.remove()
        (gradient,) = torch.autograd.grad((features * v).sum(), outputs)
        patches = nn.functional.unfold(
            inputs, layer.kernel_size, padding=layer.padding, stride=layer.stride
        )
        gradient = gradient.flatten(2)
        return torch.cat([(gradient @ patches.mT).flatten(1), gradient.sum(2)], dim=1)

    return {"by vmap": lambda: function(rows, one_hot)[1](v), "by formula": by_formula}


def fit(size, n_steps, batch_size, split):
    n_features = math.prod(shape_of(size))
    rows = np.random.RandomState(0).randint(256, size=(N_RECORDS, n_features)).astype(np.uint8)
    return DPAFGenerator(
        10.0,
        bounds=(0, 255),
        classes=range(N_CLASSES),
        batch_size=batch_size,
        n_steps=n_steps,
        n_generated=40,
        budget_split=split,
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
