"""Sliced Wasserstein distance, forward and backward, side by side with POT.

Both take the same float32 tensors and the same directions on one thread of the CPU; runs
alternate, and each ratio is between two neighbouring runs, so that a busy machine slows both.

    python benchmarks/bench_slices.py [--repeats 7]
"""

import argparse
import statistics
import time

import ot
import torch

from skdpgen.transport import random_directions, sliced_wasserstein_distance

SIZES = [(250, 784, 1000), (1000, 784, 1000), (5000, 64, 1000)]  # n, d, k


def milliseconds(distance, X, Y, directions):
    X = X.clone().requires_grad_()
    start = time.perf_counter()
    distance(X, Y, projections=directions).backward()
    return 1e3 * (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)

    print(f"{'n, d, k':<18}{'skdpgen':>10}{'POT':>10}   POT / skdpgen: median (min-max)")
    for n, d, k in SIZES:
        X, Y = (torch.randn(n, d, generator=generator) for _ in range(2))
        directions = random_directions(d, k, generator=generator)
        runs = []
        for _ in range(repeats + 1):
            runs.append(
                [
                    milliseconds(distance, X, Y, directions)
                    for distance in (sliced_wasserstein_distance, ot.sliced_wasserstein_distance)
                ]
            )
        ours, theirs = zip(*runs[1:], strict=True)  # the first run warms up
        ratios = [b / a for a, b in zip(ours, theirs, strict=True)]
        print(
            f"{f'{n}, {d}, {k}':<18}"
            f"{statistics.median(ours):>7.0f} ms{statistics.median(theirs):>7.0f} ms"
            f"   {statistics.median(ratios):.1f} ({min(ratios):.1f}-{max(ratios):.1f})"
        )


if __name__ == "__main__":
    main()
