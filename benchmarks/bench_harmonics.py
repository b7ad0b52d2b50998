"""Loss and gradient of the sketch learner against plain automatic differentiation.

Both compute the same gradient: `SliceBasis.squared_distance` in closed form and in chunks of
slices, the other by differentiating through all basis values. One thread.

    python benchmarks/bench_harmonics.py [--repeats 7]
"""

import torch
from side_by_side import compare, run

from skdpgen.transport import SliceBasis, random_directions

TITLE = "loss and gradient of the sketch learner"
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


def find_rows(repeats):
    generator = torch.Generator().manual_seed(0)
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
        ours, plain = (
            lambda loss=loss, rows=rows: torch.autograd.grad(loss(rows), rows) for loss in losses
        )
        case = f"{n_classes}×{m} rows, d={d}, k={k}, B={n_harmonics}"
        yield from compare(case, ours, {"plain autograd": plain}, repeats)


if __name__ == "__main__":
    run(__doc__, TITLE, find_rows)
