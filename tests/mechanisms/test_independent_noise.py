"""Each number of a release has noise of its own: no two share a draw, of whatever class or row."""

import itertools
import math

import numpy as np
import pytest
import torch
from dp_accounting import GaussianDpEvent

from skdpgen.mechanisms.codes import Refinement
from skdpgen.mechanisms.sums import WeightSumMechanism
from skdpgen.privacy import (
    BatchFunction,
    ClassCountsMechanism,
    ClippedGradientMechanism,
    CovarianceMechanism,
    Curator,
    ForwardAggregateMechanism,
    GaussianSumMechanism,
    MultiWayMechanism,
    NoiseSource,
    Plan,
    PullingFunction,
    RecordFunction,
    SlicedGaussianDpEvent,
    SlicedRowsMechanism,
    SliceSketchMechanism,
    TablesMechanism,
)
from skdpgen.transport import SliceBasis, random_directions

N_SEEDS = 120
# The noise spans 2^40 units of the grid: no two draws are equal by accident.
MULTIPLIER = 2.0**20
GAUSSIAN = GaussianDpEvent(MULTIPLIER)


def make_sketch():
    directions = random_directions(3, 4, generator=torch.Generator().manual_seed(0))
    return SliceSketchMechanism(SliceBasis(directions, 0.9, 2), 2)


def make_aggregate(share):
    def function(rows, membership):
        return rows, lambda cotangents: rows

    cotangent = (lambda aggregate: torch.zeros(2, 3)) if share < 1 else None
    return ForwardAggregateMechanism(
        PullingFunction(function), 3, 2, cotangent=cotangent, n_products=3, share=share
    )


def halves(values):
    return np.array_split(np.ravel(values), 2)


# A mechanism, its event, and the parts of what it releases. Parts are those of the two classes
# where there are some.
MECHANISMS = {
    "slice sketch": (make_sketch, GAUSSIAN, lambda r: [*r.sums, *r.counts[:, None]]),
    "sliced rows": (
        lambda: SlicedRowsMechanism(3, 2),
        SlicedGaussianDpEvent(MULTIPLIER, 5, 4, True, 2),
        lambda r: r.values.reshape(2, -1),
    ),
    "forward aggregate": (
        lambda: make_aggregate(1.0),
        GAUSSIAN,
        lambda r: [*r.features, *r.counts[:, None]],
    ),
    "forward aggregate and products": (
        lambda: make_aggregate(0.5),
        GAUSSIAN,
        lambda r: [*r.features, *r.counts[:, None], r.products],
    ),
    "clipped gradient": (
        lambda: ClippedGradientMechanism(BatchFunction(lambda rows, membership: rows), (2, 3), 1.0),
        GAUSSIAN,
        lambda r: r.value,
    ),
    "class counts": (ClassCountsMechanism, GAUSSIAN, lambda r: r.value[:, None]),
    "second moments": (
        CovarianceMechanism,
        GAUSSIAN,
        lambda r: [np.diag(r.value), *halves(r.value[np.triu_indices(3, 1)])],
    ),
    "tables": (
        lambda: TablesMechanism([1, 1, 2]),
        GAUSSIAN,
        lambda r: [r.cells, r.columns],
    ),
    "tables by level": (
        lambda: TablesMechanism([2, 1, 1], 0),
        GAUSSIAN,
        lambda r: r.columns,
    ),
    "multi-way tables": (
        lambda: MultiWayMechanism(
            "three",
            Refinement.none([1] * 3),
            [[(c, torch.ones(1, 1)) for c in columns] for columns in ((0, 1, 2), (0, 2, 1))],
        ),
        GAUSSIAN,
        lambda r: [cells.ravel() for cells in r.cells],
    ),
    "sum of weights": (
        lambda: WeightSumMechanism("weights"),
        GAUSSIAN,
        lambda r: [r.value],
    ),
    "Gaussian sum": (
        lambda: GaussianSumMechanism(RecordFunction(lambda rows: torch.cat([rows, rows], 1)), 1.0),
        GAUSSIAN,
        lambda r: halves(r.value),
    ),
}


@pytest.mark.catches(
    "mechanisms.base:Mechanism.run",
    "noisy = measured.add_noise(noise)",
    """
    noisy = measured.add_noise(noise)
    if self.name == "sliced rows":
        exact = measured.exact / measured.scale
        noisy = exact + (noisy - exact)[:1]
    """,
    param="sliced rows",
)
@pytest.mark.catches(
    "mechanisms.base:Mechanism.run",
    "noisy = measured.add_noise(noise)",
    """
    noisy = measured.add_noise(noise)
    if self.name == "forward aggregate":
        exact = measured.exact / measured.scale
        noisy = exact + (noisy - exact)[:1]
    """,
    param="forward aggregate",
)
@pytest.mark.catches(
    "mechanisms.two_way:TablesMechanism.postprocess",
    "noisy *= self.records",
    """
    noisy = noisy[:1].repeat(len(noisy), axis=0)
    noisy *= self.records
    """,
    param="tables by level",
)
@pytest.mark.parametrize("name", MECHANISMS)
def test_no_two_numbers_share_their_noise(name):
    """Null records leave nothing but noise in all releases."""
    make, event, part = MECHANISMS[name]
    mechanism, parts = make(), []
    plan = Plan(((mechanism.name, event),), 1.0, 1e-5)
    for seed in range(N_SEEDS):
        with Curator(
            np.zeros((3, 3)),
            np.array([0, 1, 0]),
            classes=[0, 1],
            null=np.ones(3, dtype=bool),
            plan=plan,
            noise=NoiseSource(seed),
        ) as curator:
            if isinstance(mechanism, TablesMechanism | MultiWayMechanism):
                curator.encode_cells_by(RecordFunction(lambda rows, y: rows))
            parts.append(part(curator.release(mechanism)))
    # For each part its numbers, of standard deviation 1, in (n_seeds, n_numbers).
    parts = [np.stack(values) for values in zip(*parts, strict=True)]
    parts = [values / values.std() for values in parts]
    for values in parts:
        assert all(len(set(row)) == len(row) for row in values), "Numbers share a draw."
    for one, other in itertools.combinations(parts, 2):
        width = min(one.shape[1], other.shape[1])
        one, other = one[:, :width].ravel(), other[:, :width].ravel()
        # Six standard errors: one pair fails with probability 2e-9.
        assert abs(np.corrcoef(one, other)[0, 1]) < 6 / math.sqrt(len(one)), "Parts share noise."
