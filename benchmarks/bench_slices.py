"""Sliced Wasserstein distance, forward and backward, side by side with POT.

Both take the same float32 tensors and the same directions on one thread of the CPU.

    python benchmarks/bench_slices.py [--repeats 7]
"""

import ot
import torch
from side_by_side import compare, run

from skdpgen.transport import random_directions, sliced_wasserstein_distance

TITLE = "sliced distance and gradient"
SIZES = [(250, 784, 1000), (1000, 784, 1000), (5000, 64, 1000)]  # n, d, k


def find_rows(repeats):
    generator = torch.Generator().manual_seed(0)
    for n, d, k in SIZES:
        X, Y = (torch.randn(n, d, generator=generator) for _ in range(2))
        X.requires_grad_()
        directions = random_directions(d, k, generator=generator)

        def gradient(distance, X=X, Y=Y, directions=directions):
            torch.autograd.grad(distance(X, Y, projections=directions), X)

        yield from compare(
            f"n={n}, d={d}, k={k}",
            lambda gradient=gradient: gradient(sliced_wasserstein_distance),
            {"POT": lambda gradient=gradient: gradient(ot.sliced_wasserstein_distance)},
            repeats,
        )


if __name__ == "__main__":
    run(__doc__, TITLE, find_rows)
