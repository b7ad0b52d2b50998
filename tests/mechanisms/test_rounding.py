"""Rounding towards zero, at 10⁴ to 10⁶ numbers: no vector of whole numbers is longer than allowed.

Rounded to nearest, a vector of d equal numbers grows by up to half a step in each: by √d/2 steps,
where the margin is 1e-5 of its norm. At d = 10⁶ that is 5e-4 of a norm of 2^20 steps.
"""

import math

import numpy as np
import pytest
import torch
from dp_accounting import GaussianDpEvent, LaplaceDpEvent, NonPrivateDpEvent

from skdpgen.histories.mechanism import HistorySizes, LinkTablesMechanism
from skdpgen.mechanisms import gradients as _gradients
from skdpgen.mechanisms import local as _local
from skdpgen.mechanisms.base import GRID_BITS, MARGIN, NOISE_BITS, to_grid
from skdpgen.mechanisms.codes import Refinement
from skdpgen.mechanisms.sums import WeightSumMechanism
from skdpgen.mechanisms.two_way import count_cells
from skdpgen.privacy import (
    BatchFunction,
    ClippedGradientMechanism,
    CovarianceMechanism,
    ForwardAggregateMechanism,
    GaussianSumMechanism,
    LocalRowsMechanism,
    MultiWayMechanism,
    NoiseSource,
    PullingFunction,
    RecordFunction,
    SlicedGaussianDpEvent,
    SlicedRowsMechanism,
    SliceSketchMechanism,
    TablesMechanism,
)
from skdpgen.transport import SliceBasis

from .common import Blocks

WIDTHS = [10_000, 100_003, 1_000_000]


@pytest.mark.catches(
    "mechanisms.base:to_grid",
    "(vectors * (scale * (1 - MARGIN))).trunc_().nan_to_num_(0.0, 0.0, 0.0)",
    "(vectors * (scale * (1 - MARGIN))).trunc_().nan_to_num_(0.0)",
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_missing_numbers_are_0_on_the_grid(dtype):
    vectors = torch.tensor([math.nan, math.inf, -math.inf, 1.5, -1.5], dtype=dtype)
    assert to_grid(vectors, 2.0).tolist() == [0.0, 0.0, 0.0, 2.0, -2.0]


def one_record(row, n_records=1):
    """A source of one record, of as many as are said."""
    return Blocks(torch.as_tensor(row)[None], n_records=n_records)


def find_growing(steps, counts, power=2):
    """Return which of some numbers of equal entries grow most, if each is rounded to nearest.

    The norm of all of them is `steps`, of a power.
    """
    entries = steps * (1 - MARGIN) / np.asarray(counts) ** (1 / power)
    # Not those that are just above a half, which float32 may round down.
    return counts[np.argmax(np.rint(entries - 1e-3) / entries)]


def make_row(width, steps, power=2, dtype=torch.float64):
    """Return a row of norm 1, of which each entry would grow; every third is negative."""
    n_equal = find_growing(steps, np.arange(1 + width // 1000, width + 1), power)
    row = torch.zeros(width, dtype=dtype)
    row[:n_equal] = n_equal ** (-1 / power)
    row[::3] *= -1
    return row


def noise_of(bits, noise_bits=NOISE_BITS):
    """Return the level of noise for which the grid has so many bits a unit."""
    return 2.0 ** (noise_bits - bits)


def nearest(vectors, scale):
    return (vectors * (scale * (1 - MARGIN))).round().double()


def measure(mechanism, source, event):
    return mechanism.query(source, event, "zero_out", NoiseSource(0))


def measure_batch(mechanism, base, row=(0.0,)):
    rows, membership = torch.tensor([row], dtype=torch.float64), torch.ones(1, 1).double()
    return mechanism.query_batch(rows, membership, base, "zero_out", NoiseSource(0))


# Each case measures one record, and returns whole numbers and how long they may be, in steps.


def of_sum(width, bits, radius=1.0):
    # The grid follows the radius, to a power of 2.
    fine = bits - math.ceil(math.log2(radius))
    row = 2 * radius * make_row(width, radius * 2.0**fine)
    mechanism = GaussianSumMechanism(RecordFunction(lambda rows: rows), radius)
    measured = measure(mechanism, one_record(row), GaussianDpEvent(noise_of(fine) / radius))
    assert measured.scale == 2.0**fine
    return measured.exact, radius * measured.scale


def of_weights(width, bits):
    row = make_row(width, 2.0**bits).abs()
    measured = measure(WeightSumMechanism("w"), one_record(row), GaussianDpEvent(noise_of(bits)))
    assert measured.scale == 2.0**bits
    return measured.exact, measured.scale


def of_moments(width, bits):
    """Measure √width columns: second moments are the products of their numbers."""
    n_columns, half = math.isqrt(width), 2.0 ** (bits - 4)
    # So many records, with so much noise, that products have 2·bits - 8 bits.
    row, n_records = make_row(n_columns, half), 2 ** (62 - 2 * (bits - 4)) - 1
    mechanism = CovarianceMechanism()
    measured = measure(mechanism, one_record(row, n_records), NonPrivateDpEvent())
    assert measured.scale == half**2
    return measured.exact, measured.scale


def of_tables(width, bits):
    """Measure binary columns, in tables of four cells."""
    most, half = round(math.sqrt(width / 2)), 2.0 ** (bits - 4)
    n_records = 2 ** (62 - 2 * (bits - 4)) - 1
    # Each number of a column is divided by the root of the number of records that the unit is.
    units = {TablesMechanism([2] * m).records: m for m in range(most // 4, most + 1)}
    sizes = [2] * units[find_growing(half, [*units])]
    mechanism = TablesMechanism(sizes)
    place = torch.arange(len(sizes), dtype=torch.float64) % 2
    measured = measure(mechanism, one_record(place, n_records), NonPrivateDpEvent())
    assert measured.scale == half**2
    assert measured.exact.size == count_cells(sizes) + sum(sizes)
    return measured.exact, measured.scale / math.sqrt(2)


def of_multi_way(width, bits):
    """Measure signs of columns: a table is a single number."""
    most, half = round((6 * width) ** (1 / 3)), 2.0 ** (bits - 4)
    n_columns = np.arange(most // 4, most + 1)
    n_columns = dict(zip((math.comb(m, 3) for m in n_columns.tolist()), n_columns, strict=True))
    m = n_columns[find_growing(half, [*n_columns])]
    triples = [(a, b, c) for c in range(m) for b in range(c) for a in range(b)]
    signs = [torch.tensor([[-1.0], [1.0]], dtype=torch.float64)] * m
    products = [[(c, signs[c]) for c in triple] for triple in triples]
    mechanism = MultiWayMechanism("multi-way tables", Refinement.none([2] * m), products)
    place = torch.arange(m, dtype=torch.float64) % 2
    n_records = 2 ** (62 - 2 * (bits - 4)) - 1
    measured = measure(mechanism, one_record(place, n_records), NonPrivateDpEvent())
    assert measured.scale == half**2
    return measured.exact, measured.scale


def of_steps(width, bits):
    """A person has two rows of binary columns, in tables of four cells."""
    most, half = round(math.sqrt(width) / 2), 2.0 ** (bits - 4)
    n_columns = int(find_growing(half, np.arange(most // 4, most + 1)))
    sizes = HistorySizes((4,), (2,) * n_columns, 2)

    def list_pairs(codes):
        before, after, shares = sizes.list_steps(codes)
        return before[:, :n_columns], after, shares

    mechanism = LinkTablesMechanism("step tables", sizes.rows, sizes.rows, list_pairs, 2)
    codes = torch.arange(2 * n_columns, dtype=torch.float64) % 2
    codes = torch.cat([torch.tensor([2.0], dtype=torch.float64), codes])
    n_records = 2 ** (62 - 2 * (bits - 4)) - 1
    measured = measure(mechanism, one_record(codes, n_records), NonPrivateDpEvent())
    assert measured.scale == half**2
    return measured.exact, measured.scale


def of_gradient(width, bits, dtype=torch.float64):
    row = 3 * make_row(width, 2.0 ** min(bits, _gradients._BITS), dtype=dtype)
    mechanism = ClippedGradientMechanism(BatchFunction(lambda *_: row), (width,), 1.0)
    measured = measure_batch(mechanism, GaussianDpEvent(noise_of(bits) / 2))
    return measured.exact, measured.scale


def aggregate(width, bits, dtype):
    """Measure features and products; the features' norm is what the count leaves of the half."""
    w = ForwardAggregateMechanism.count_weight
    weight = math.sqrt(0.5 * (1 - w**2))
    features = 3 * make_row(width, weight * 2.0**bits, dtype=dtype)[None]
    products = 3 * make_row(width, math.sqrt(0.5) * 2.0**bits, dtype=dtype)[None]

    def function(rows, membership):
        return features.expand(len(rows), -1), lambda cotangents: products.expand(len(rows), -1)

    mechanism = ForwardAggregateMechanism(
        PullingFunction(function),
        width,
        cotangent=lambda aggregate: torch.zeros(1, width),
        n_products=width,
        share=0.5,
    )
    first = measure_batch(mechanism, GaussianDpEvent(noise_of(bits)))
    second = first.then(first.exact / first.scale)
    return first.exact, second.exact, math.sqrt(0.5) * first.scale


def of_features(width, bits, dtype=torch.float64):
    features, _, bound = aggregate(width, bits, dtype)
    return features, bound


def of_products(width, bits, dtype=torch.float64):
    _, products, bound = aggregate(width, bits, dtype)
    return products, bound


def of_local_rows(width, bits, p=2):
    row = 5 * make_row(width, 2.0**bits, p)
    event = LaplaceDpEvent if p == 1 else GaussianDpEvent
    event = event(noise_of(bits, _local.NOISE_BITS))
    measured = LocalRowsMechanism(p).query(one_record(row), event, "replace_one", NoiseSource(0))
    return measured.exact, measured.scale, p


def of_laplace_rows(width, bits):
    return of_local_rows(width, bits, p=1)


# With the module in which each is rounded.
CASES = {
    "sum of weights": (of_weights, "mechanisms.sums"),
    "Gaussian sum": (of_sum, "mechanisms.sums"),
    "Gaussian sum of radius 3": (lambda *sizes: of_sum(*sizes, radius=3.0), "mechanisms.sums"),
    "Gaussian sum of radius 0.2": (lambda *sizes: of_sum(*sizes, radius=0.2), "mechanisms.sums"),
    "second moments": (of_moments, "mechanisms.sums"),
    "two-way tables": (of_tables, "mechanisms.two_way"),
    "multi-way tables": (of_multi_way, "mechanisms.multi_way"),
    "step tables": (of_steps, "histories.mechanism"),
    "clipped gradient": (of_gradient, "mechanisms.gradients"),
    "features": (of_features, "mechanisms.aggregates"),
    "features in float32": (
        lambda *sizes: of_features(*sizes, torch.float32),
        "mechanisms.aggregates",
    ),
    "products": (of_products, "mechanisms.sampled"),
    "products in float32": (
        lambda *sizes: of_products(*sizes, torch.float32),
        "mechanisms.sampled",
    ),
    "local rows, L1": (of_laplace_rows, "mechanisms.local"),
    "local rows, L2": (of_local_rows, "mechanisms.local"),
}

SLOW = {"multi-way tables"}


def excess(exact, bound, p=2):
    """Return by how much whole numbers are longer than they may be, relative to that."""
    assert exact.dtype == np.int64
    return np.linalg.norm(exact.ravel().astype(float), ord=p) / bound - 1


@pytest.mark.catches(
    "histories.mechanism:LinkTablesMechanism._add_products",
    """
    left = HatBasis(left, self.left).to_dense(lambda w, s=shares: to_grid(w * s, scale))
    right = HatBasis(right, self.right).to_dense(lambda w: to_grid(w, scale))
    """,
    """
    scale = scale * (1 - 1e-5)
    left = HatBasis(left, self.left).to_dense(lambda w, s=shares: (w * s * scale).round())
    right = HatBasis(right, self.right).to_dense(lambda w: (w * scale).round())
    """,
    param="step tables-10000-20",
)
@pytest.mark.catches(
    "mechanisms.aggregates:ForwardAggregateMechanism.query_batch",
    "to_grid(self._join(features), scale)",
    "(self._join(features) * ((1 - 1e-5) * scale)).round().double()",
    param="features in float32-100003-20",
)
@pytest.mark.catches(
    "mechanisms.sampled:sum_products",
    "to_grid(bounded_rows(products, radius, weight), scale)",
    "(bounded_rows(products, radius, weight) * ((1 - 1e-5) * scale)).round().double()",
    param="products in float32-100003-20",
)
@pytest.mark.catches(
    "mechanisms.base:to_grid",
    "(vectors * (scale * (1 - MARGIN))).trunc_",
    "(vectors * (scale * (1 - MARGIN))).round_",
    param="Gaussian sum-1000000-20",
)
@pytest.mark.catches(
    "mechanisms.gradients:ClippedGradientMechanism.query_batch",
    "to_grid(clip_whole(gradient, self.grad_clip), scale)",
    "(clip_whole(gradient, self.grad_clip) * ((1 - 1e-5) * scale)).round()",
    param="clipped gradient-100003-20",
)
@pytest.mark.catches(
    "mechanisms.local:LocalRowsMechanism.query",
    "to_grid(rows, scale)",
    "(rows * ((1 - 1e-5) * scale)).round()",
    param="local rows, L1-10000-20",
)
@pytest.mark.catches(
    "mechanisms.sums:GaussianSumMechanism._block_sum",
    "to_grid(self._clip(vectors), scale)",
    "(clip_rows(vectors, self.radius) * (1 - MARGIN) * scale).round()",
    param="Gaussian sum of radius 3-100003-20",
)
@pytest.mark.catches(
    "mechanisms.sums:WeightSumMechanism._block_sum",
    "to_grid(rows.double().clamp(min=0), scale)",
    "(rows.double().clamp(min=0) * (1 - MARGIN) * scale).round()",
    param="sum of weights-100003-20",
)
@pytest.mark.catches(
    "mechanisms.sums:CovarianceMechanism._block_sum",
    "to_grid(rows, half)",
    "(rows * (1 - MARGIN) * half).round()",
    param="second moments-1000000-20",
)
@pytest.mark.catches(
    "mechanisms.two_way:TablesMechanism._add_products",
    "to_grid(weights * share, scale)",
    "(weights * share * ((1 - 1e-5) * scale)).round()",
    param="two-way tables-1000000-20",
)
@pytest.mark.catches(
    "mechanisms.multi_way:MultiWayMechanism._add_products",
    "to_grid(multiply(first) / divisor, half)",
    "(multiply(first) / divisor * ((1 - 1e-5) * half)).round()",
    param="multi-way tables-10000-20",
)
@pytest.mark.parametrize("bits", [GRID_BITS, 12])
@pytest.mark.parametrize(
    ("name", "width"),
    [
        # Tables of signs are looked at one by one: so many take a while.
        pytest.param(name, width, marks=pytest.mark.slow if name in SLOW and width > 1e4 else ())
        for name in CASES
        for width in WIDTHS[: 2 if name in SLOW else 3]
    ],
)
def test_no_vector_of_whole_numbers_is_longer_than_its_bound(name, width, bits, monkeypatch):
    case, module = CASES[name]
    found = excess(*case(width, bits))
    assert found <= 0
    assert found > -0.5 or bits < GRID_BITS
    # To nearest, they are longer: rows show what they are made for.
    monkeypatch.setattr(f"skdpgen.{module}.to_grid", nearest)
    assert excess(*case(width, bits)) > 0


@pytest.mark.parametrize("bits", [GRID_BITS, 12])
@pytest.mark.parametrize("width", WIDTHS)
def test_sums_of_slices_are_no_longer_than_their_bound(width, bits):
    """All slices along one direction: their numbers are the same, and so is how they round."""
    n_harmonics = 3
    k = width // (2 * n_harmonics)
    basis = SliceBasis(torch.ones(1, k, dtype=torch.float64), 1.0, n_harmonics)
    mechanism = SliceSketchMechanism(basis)
    bound = mechanism.sensitivity("zero_out")
    event = GaussianDpEvent(noise_of(bits) / bound)
    for x in np.linspace(-0.9, 0.9, 3 if width == WIDTHS[-1] else 20):
        measured = measure(mechanism, one_record([x]), event)
        assert measured.scale == 2.0**bits
        assert -0.01 < excess(measured.exact, bound * measured.scale) <= 0


@pytest.mark.catches(
    "mechanisms.sampled:SlicedRowsMechanism.query_batch",
    "to_grid(directions.T.to(joined.device) @ joined.T, scale)",
    "(directions.T @ joined.T * ((1 - 1e-5) * scale)).round()",
    param="10000-2",
)
@pytest.mark.parametrize("bits", [GRID_BITS, 2])
@pytest.mark.parametrize("width", WIDTHS)
def test_projections_are_no_longer_than_before(width, bits, monkeypatch):
    """By the law of H, what is released has to be no longer than zᵀU is."""
    row, mechanism = (0.6, 0.8), SlicedRowsMechanism(2)
    base = SlicedGaussianDpEvent(noise_of(bits), 2, width, True)

    def growth():
        measured = measure_batch(mechanism, base, row)
        exact = (torch.tensor(row, dtype=torch.float64) @ measured.context).numpy()
        whole = np.abs(measured.exact.ravel())
        grown = (whole > np.abs(exact) * measured.scale).any()
        return grown, excess(measured.exact, np.linalg.norm(exact) * measured.scale)

    grown, found = growth()
    assert not grown
    assert -0.5 < found <= 0
    monkeypatch.setattr("skdpgen.mechanisms.sampled.to_grid", nearest)
    assert growth()[0] or bits == GRID_BITS
