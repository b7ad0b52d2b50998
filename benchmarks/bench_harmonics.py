"""Loss and gradient of the sketch learner against plain automatic differentiation.

Both compute the same gradient: `SliceBasis.squared_distance` in closed form and in chunks of
slices, the other by differentiating through all basis values. One thread, runs in turn.

    python benchmarks/bench_harmonics.py [--repeats 5]
"""

import argparse
import statistics
import time

import torch

from skdpgen.transport import SliceBasis, random_directions

SIZES = [  # classes, rows of each, features, slices, harmonics
    (10, 25, 64, 1600, 3),
    (10, 25, 64, 1600, 6),
    (10, 100, 64, 2000, 6),
    (1, 256, 10, 250, 6),
]


def values_of(basis, rows):
    """The basis values of rows, by their definition."""
    angles = rows @ basis.frequencies
    b = torch.arange(1, len(basis.weights) + 1)[:, None] * angles[:, None]
    return torch.stack([b.cos(), b.sin()], dim=2) * basis.weights[:, None, None]


def plain_squared_distance(basis, rows, means, weights):
    """The same estimate, with every basis value in memory."""
    n_classes, m, _ = rows.shape
    mean = values_of(basis, rows.flatten(0, 1)).unflatten(0, (n_classes, m)).mean(1)
    square = m / (m - 1) * mean.square() - 2 * mean * means + means.square()
    return (weights * square.sum((1, 2, 3))).sum() / basis.n_projections - weights.sum() / (m - 1)


def seconds(loss, rows):
    start = time.perf_counter()
    loss(rows).backward()
    rows.grad = None
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    print("classes rows features slices harmonics |   ours   plain | plain / ours (min-max)")
    for n_classes, m, d, k, n_harmonics in SIZES:
        basis = SliceBasis(random_directions(d, k, generator=generator), 1.0, n_harmonics)
        rows = torch.randn(n_classes, m, d, generator=generator).mul_(0.1).requires_grad_()
        means = torch.randn(n_classes, n_harmonics, 2, k, generator=generator) * 0.1
        weights = torch.ones(n_classes)
        losses = (
            lambda x, b=basis, t=means, w=weights: b.squared_distance(x, t, w),
            lambda x, b=basis, t=means, w=weights: plain_squared_distance(b, x, t, w),
        )
        torch.testing.assert_close(*(loss(rows) for loss in losses), rtol=1e-3, atol=1e-4)
        times = [[seconds(loss, rows) for loss in losses] for _ in range(repeats + 1)][1:]
        ours, plain = (statistics.median(column) for column in zip(*times, strict=True))
        ratios = [b / a for a, b in times]
        print(
            f"{n_classes:7d} {m:4d} {d:8d} {k:6d} {n_harmonics:9d} | {1e3 * ours:5.1f} ms "
            f"{1e3 * plain:6.1f} ms | {statistics.median(ratios):.1f} "
            f"({min(ratios):.1f}-{max(ratios):.1f})"
        )


if __name__ == "__main__":
    main()
