"""Releases of sums: sensitivities, noise, exactness; and the basis functions of the sketch."""

import math

import numpy as np
import pytest
import torch

from skdpgen.accounting.events import gaussian_event
from skdpgen.data.rows import clip_rows, sum_rows
from skdpgen.mechanisms.sums import WeightSumMechanism
from skdpgen.networks.components import PrincipalComponents
from skdpgen.privacy import (
    ClassCountsMechanism,
    CovarianceMechanism,
    GaussianSumMechanism,
    NoiseSource,
    RecordFunction,
    SliceSketchMechanism,
    TablesMechanism,
)
from skdpgen.transport import SliceBasis, random_directions, slice_diameter

from .common import UNIT, assert_variance

D = 5
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def basis(k=7, n_harmonics=3, dtype=torch.float32, d=D, seed=0):
    generator = torch.Generator().manual_seed(seed)
    directions = random_directions(d, k, generator=generator, dtype=dtype)
    return SliceBasis(directions, 0.9, n_harmonics)


MECHANISMS = {
    "covariance": lambda: CovarianceMechanism(),
    "tables": lambda: TablesMechanism([2] * D),
    "sketch": lambda: SliceSketchMechanism(basis(), 3),
    "sketch of one harmonic": lambda: SliceSketchMechanism(basis(1, 1), 3),
    "sum": lambda: GaussianSumMechanism(RecordFunction(lambda rows: 3 * rows), 2.0),
    "sum of weights": lambda: WeightSumMechanism("weights"),
    "class counts": lambda: ClassCountsMechanism(),
    "float32 sum": lambda: GaussianSumMechanism(
        RecordFunction(lambda rows: rows.float() * 100), 0.7
    ),
}


# Equal blocks of two and three columns: nothing in common, and another sign.
EXTREMES = torch.tensor(
    [[1.0, 0, 1, 0, 0], [0, 1, 0, 1, 0], [1, 0, -1, 0, 0]], dtype=torch.float64
) / math.sqrt(2)


def unit_rows(n, seed=0, inside=True):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, D))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return torch.tensor(rows * rng.random((n, 1)) ** 0.3 if inside else rows)


def members(classes, n_classes=3):
    """One-hot rows; class -1 is a null record."""
    return torch.eye(n_classes + 1, dtype=torch.float64)[torch.as_tensor(classes)][:, :n_classes]


class Blocks:
    """A source of records that are given in blocks."""

    n_records, max_rows, database = 1000, None, None

    def __init__(self, blocks):
        self._blocks = blocks

    def add_up(self, function):
        return function(self)

    def blocks(self, name, size=None):
        return iter(self._blocks)

    codes = blocks


def vector(released):
    """A release as the vector whose norm the sensitivity bounds."""
    if hasattr(released, "counts"):
        weight = released.sums_std and released.sums_std / released.counts_std
        weight = weight or math.sqrt(0.02 * released.sums.shape[1] / vector.values_per_slice)
        return np.r_[released.sums.ravel(), released.counts * weight]
    if hasattr(released, "cells"):
        return np.r_[math.sqrt(2) * released.cells, released.columns] / vector.records
    return released.value.ravel()  # a symmetric matrix has the norm of (x_i², √2 x_i x_j)


def release(mechanism, blocks, multiplier=0.0, relation="zero_out", seed=0):
    if isinstance(mechanism, SliceSketchMechanism):
        vector.values_per_slice = mechanism.basis.n_values // mechanism.basis.n_projections
    if isinstance(mechanism, TablesMechanism):
        vector.records = mechanism.records
    event = gaussian_event(multiplier)
    return mechanism.run(Blocks(blocks), event, relation=relation, noise=NoiseSource(seed))


def one(mechanism, row, label):
    return vector(release(mechanism, [(row[None], members([label]))]))


# --- sensitivity -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_null_record_adds_nothing(name):
    mechanism = MECHANISMS[name]()
    assert not one(mechanism, unit_rows(1)[0], -1).any()


@pytest.mark.catches(
    "mechanisms.sums:WeightSumMechanism",
    '{"zero_out": 1.0, "replace_one": math.sqrt(2)}',
    '{"zero_out": math.sqrt(0.5), "replace_one": math.sqrt(2)}',
    param="sum of weights",
)
@pytest.mark.parametrize("name", MECHANISMS)
def test_zero_out_sensitivity_is_a_bound_and_is_reached(name):
    mechanism = MECHANISMS[name]()
    rows = [unit_rows(100), unit_rows(100, inside=False), torch.eye(D).double(), EXTREMES]
    rows = torch.cat(rows)
    changes = [np.linalg.norm(one(mechanism, row, i % 3)) for i, row in enumerate(rows)]
    bound = mechanism.sensitivity("zero_out")
    assert bound * 0.95 < max(changes) <= bound


@pytest.mark.catches(
    "mechanisms.sums:WeightSumMechanism._block_sum",
    "rows.double().clamp(min=0)",
    "rows.double()",
    param="sum of weights",
)
@pytest.mark.parametrize("name", MECHANISMS)
def test_replace_one_sensitivity_is_a_bound_and_is_approached(name):
    mechanism = MECHANISMS[name]()
    rows = [unit_rows(60), unit_rows(60, inside=False), torch.eye(D).double(), EXTREMES]
    rows = torch.cat(rows)
    values = np.stack([one(mechanism, row, i % 2) for i, row in enumerate(rows)])
    opposite = np.stack([one(mechanism, -row, i % 2) for i, row in enumerate(rows)])
    changes = np.linalg.norm(values[:, None] - np.concatenate([values, opposite])[None], axis=2)
    bound = mechanism.sensitivity("replace_one")
    assert bound / 2 < changes.max() <= bound


@pytest.mark.parametrize(
    ("n_harmonics", "relation", "expected"),
    [
        (1, "zero_out", 10.2),
        (3, "zero_out", 10.2),
        (1, "replace_one", 40),
        (2, "replace_one", 30),
        (3, "replace_one", 320 / 11),
    ],
)
@pytest.mark.parametrize("n_classes", [1, 4])
def test_sensitivity_of_a_sketch(n_harmonics, n_classes, relation, expected):
    # √(k + c²), and a√k or √(2(k + c²)), with c² = k/50; by hand, a² = 4, 3 and 32/11.
    sensitivity = SliceSketchMechanism.sensitivity_of(10, n_harmonics, n_classes, relation)
    assert sensitivity == pytest.approx(expected**0.5, rel=2e-6)


@pytest.mark.catches(
    "transport.harmonics:slice_diameter", "2 - 2 * lowest + slack", "2 - 2 * lowest"
)
@pytest.mark.parametrize("n_harmonics", [1, 2, 3, 4, 6, 25, 60])
def test_diameter_of_a_slice(n_harmonics):
    # Σ w_b² cos(b t) is a polynomial of cos t: its extremes are at the roots of the derivative.
    b = np.arange(1, n_harmonics + 1)
    mean = np.polynomial.Chebyshev(np.r_[0, 1 / b / (1 / b).sum()])
    roots = mean.deriv().roots()
    roots = roots.real[(np.abs(roots.imag) < 1e-7) & (np.abs(roots.real) < 1)]
    exact = math.sqrt(2 - 2 * mean(np.r_[-1, roots, 1]).min())
    assert exact * (1 - 1e-13) <= slice_diameter(n_harmonics) <= exact * (1 + 1e-6)


@pytest.mark.parametrize(
    ("n_harmonics", "scale"), [(1, 2.0**5), (4, 2.0), (4, 2.0**5), (4, 2.0**20)]
)
def test_whole_numbers_of_two_rows_are_no_further_apart_than_a_slice_is_wide(n_harmonics, scale):
    mechanism = SliceSketchMechanism(SliceBasis(torch.eye(1), 1.0, n_harmonics))
    one = torch.ones(1, 1).double()
    angles = torch.linspace(-1, 1, 901).double()[:, None, None]
    sums = torch.stack([mechanism._block_sum(row, one, scale)[0] for row in angles]).double()
    largest = torch.cdist(sums, sums).max().item() / scale
    bound = mechanism.sensitivity("replace_one")
    assert largest <= bound
    assert scale < 2.0**20 or largest > 0.999 * bound


@pytest.mark.catches(
    "mechanisms.sums:SliceSketchMechanism._values",
    "scale * (1 - MARGIN) * self._shortening(scale)",
    "scale * (1 - MARGIN)",
)
def test_truncation_does_not_move_two_rows_further_apart():
    # Angles that truncation moves apart by .04 % of the bound.
    angles = np.array([1.8816229290105075, 1.8816229290105075 + 2.095557361841202])
    scale, mechanism = 256.0, SliceSketchMechanism(SliceBasis(torch.eye(1).double(), math.pi, 2))
    waves = np.array([f(b * angles) / b**0.5 for b in (1, 2) for f in (np.cos, np.sin)])
    waves = np.trunc(waves / 1.5**0.5 * scale * (1 - 1e-5))
    assert np.linalg.norm(waves[:, 0] - waves[:, 1]) > scale * mechanism.sensitivity("replace_one")
    one = torch.ones(1, 1).double()
    rows = torch.tensor(angles)[:, None, None]
    first, second = (mechanism._block_sum(row, one, scale)[0].numpy() for row in rows)
    assert np.linalg.norm(first - second) <= scale * mechanism.sensitivity("replace_one")


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=needs_cuda)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n_harmonics", [1, 6, 300, 1000])
def test_rounding_of_harmonics(n_harmonics, dtype, device):
    functions = SliceBasis(torch.eye(1, dtype=dtype), 1.0, n_harmonics).to(device)
    rows = 20 * torch.rand(1000, 1, dtype=dtype, generator=torch.Generator().manual_seed(0))
    steps = functions.angles(rows.to(device))
    values = functions.harmonics(steps).cpu()[..., 0]
    b = torch.arange(1, n_harmonics + 1).double()[:, None]
    weights = (1 / b / (1 / b).sum()).sqrt()
    angles = steps.cpu()[:, 0].double() * (2 * math.pi / 2**16)
    exact = torch.stack([(b * angles).cos(), (b * angles).sin()], dim=1)
    errors = (weights[:, None] * (values - exact)).square().sum((0, 1)).sqrt()
    # Those of long chains are far below the worst case.
    assert 1e-10 < errors.max() <= 2.5e-7


class Inflated(SliceBasis):
    """A basis whose values have the largest error that it may have."""

    def harmonics(self, angles):
        return super().harmonics(angles) * (1 + 2.5e-7)


def test_sensitivity_covers_the_rounding_of_harmonics():
    mechanism = SliceSketchMechanism(Inflated(torch.eye(1), 1.0, 1000))
    one = torch.ones(1, 1).double()
    angles = torch.linspace(0, 1, 21).double()[:, None, None]  # up to half a turn
    sums = torch.stack([mechanism._block_sum(row, one, 2.0**20)[0] for row in angles]).double()
    assert (sums / 2.0**20).norm(dim=1).max() <= mechanism.sensitivity("zero_out")
    widest = torch.cdist(sums, sums).max() / 2.0**20
    assert 0.99 < widest / mechanism.sensitivity("replace_one") <= 1


# --- noise ---------------------------------------------------------------------------------------


def noise_of(mechanism, multiplier, relation, n_seeds):
    """Noise alone: the release of a null record, from `n_seeds` sources."""
    empty = [(torch.zeros(1, D).double(), members([-1]))]
    return [release(mechanism, empty, multiplier, relation, seed) for seed in range(n_seeds)]


@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
@pytest.mark.parametrize("multiplier", [0.01, 5.0, 1e6])
def test_noise_of_a_sketch(multiplier, relation):
    mechanism = SliceSketchMechanism(basis(), 3)
    releases = noise_of(mechanism, multiplier, relation, 200)
    std = multiplier * UNIT[relation] * mechanism.sensitivity(relation)
    count_weight = math.sqrt(0.02 * 7)
    assert_variance([r.sums for r in releases], std)
    assert_variance([r.counts for r in releases], std / count_weight)
    assert (releases[0].sums_std, releases[0].counts_std) == pytest.approx(
        (std, std / count_weight)
    )


@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
@pytest.mark.parametrize("multiplier", [0.01, 5.0, 1e6])
def test_noise_of_a_sum(multiplier, relation):
    mechanism = GaussianSumMechanism(RecordFunction(lambda rows: rows), 0.3)
    releases = noise_of(mechanism, multiplier, relation, 200)
    std = multiplier * UNIT[relation] * mechanism.sensitivity(relation)
    assert_variance([r.value for r in releases], std)
    assert releases[0].std == pytest.approx(std)


@pytest.mark.parametrize("radius", [1e-7, 1e-3, 1e6])
def test_a_sum_keeps_its_precision_at_any_radius(radius):
    mechanism = GaussianSumMechanism(RecordFunction(lambda rows: rows * radius), radius)
    rows = unit_rows(50)
    released = release(mechanism, [(rows, torch.ones(50, 1).double())])
    assert released.value / radius == pytest.approx(rows.sum(0).numpy(), abs=0.02)
    assert_variance([r.value for r in noise_of(mechanism, 1.0, "zero_out", 200)], radius)


@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
@pytest.mark.parametrize("multiplier", [0.01, 5.0, 1e6])
def test_noise_of_a_covariance_is_symmetric_with_half_the_variance_off_the_diagonal(
    multiplier, relation
):
    mechanism = CovarianceMechanism()
    values = np.stack([r.value for r in noise_of(mechanism, multiplier, relation, 200)])
    std = multiplier * UNIT[relation] * mechanism.sensitivity(relation)
    above, below = np.triu_indices(D, 1), np.tril_indices(D, -1)
    assert (values == values.transpose(0, 2, 1)).all()
    assert_variance(values[:, range(D), range(D)], std)
    assert_variance(values[:, above[0], above[1]], std / math.sqrt(2))
    assert_variance(values[:, below[0], below[1]], std / math.sqrt(2))


# --- sums ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("multiplier", [0.0, 2.0])
@pytest.mark.parametrize("name", MECHANISMS)
def test_sums_do_not_depend_on_order_or_blocks(name, multiplier):
    mechanism = MECHANISMS[name]()
    rows, labels = unit_rows(500), members(np.arange(500) % 4 - 1)
    order = torch.randperm(500, generator=torch.Generator().manual_seed(0))
    reference = vector(release(mechanism, [(rows, labels)], multiplier))
    for sizes in ([500], [1] * 20 + [480], [33] * 15 + [5]):
        parts = zip(rows[order].split(sizes), labels[order].split(sizes), strict=True)
        assert (vector(release(mechanism, list(parts), multiplier)) == reference).all()


@pytest.mark.parametrize("multiplier", [0.0, 2.0])
def test_sums_lie_on_the_grid(multiplier):
    blocks = [(unit_rows(100), members([0] * 100))]
    for mechanism in (
        GaussianSumMechanism(RecordFunction(lambda rows: rows), 1.0),
        CovarianceMechanism(),
    ):
        grid = 2.0**40
        value = release(mechanism, blocks, multiplier).value * grid
        assert (value == np.rint(value)).all()


def test_values_are_accurate():
    rows, labels = unit_rows(400), members(np.arange(400) % 3)
    blocks = [(rows, labels)]
    covariance = release(CovarianceMechanism(), blocks).value
    assert covariance == pytest.approx((rows.T @ rows).numpy(), abs=0.02)
    total = release(GaussianSumMechanism(RecordFunction(lambda x: x), 1.0), blocks).value
    assert total == pytest.approx(rows.sum(0).numpy(), abs=0.01)
    sketch = release(SliceSketchMechanism(basis(), 3), blocks)
    values = features(basis(), rows).flatten(1)
    assert sketch.sums == pytest.approx((labels.T @ values).numpy(), abs=0.02)
    assert sketch.counts == pytest.approx(labels.sum(0).numpy(), rel=1e-4)


def test_class_counts_are_unbiased():
    mechanism = SliceSketchMechanism(basis(), 3)
    labels = members([0] * 50 + [1] * 10 + [-1] * 7)
    rows = unit_rows(67)
    counts = np.stack(
        [release(mechanism, [(rows, labels)], 1.0, seed=seed).counts for seed in range(400)]
    )
    std = mechanism.sensitivity("zero_out") / math.sqrt(0.02 * 7)
    assert counts.mean(0) == pytest.approx([50, 10, 0], abs=4.5 * std / 20)


def test_encode_comes_before_the_basis():
    rows = unit_rows(30)
    blocks = [(rows, torch.ones(30, 1).double())]
    halved = release(
        SliceSketchMechanism(basis(), 1, encode=RecordFunction(lambda x: x / 2)), blocks
    )
    expected = release(SliceSketchMechanism(basis()), [(rows / 2, blocks[0][1])])
    assert (halved.sums == expected.sums).all()


# --- a record's integers -------------------------------------------------------------------------

D_WIDE, K = 60, 40


def summands():
    """Releases of rows (n, D_WIDE), and what each of them makes of a block, as int64."""
    directions = random_directions(D_WIDE, K, generator=torch.Generator().manual_seed(3))
    axes = random_directions(D_WIDE, 20, generator=torch.Generator().manual_seed(4))
    components = PrincipalComponents(axes, torch.linspace(1, 0.01, 20))
    on_components = SliceBasis(directions[:20], 0.4, 3)
    sketches = {
        "sketch": SliceSketchMechanism(SliceBasis(directions, 0.4, 4), 2),
        "sketch of components": SliceSketchMechanism(
            on_components, 2, RecordFunction(components.encode_exactly)
        ),
    }
    return sketches | {
        "covariance": CovarianceMechanism(),
        "sum": GaussianSumMechanism(RecordFunction(lambda rows: 3 * rows.float() + 0.1), 1.0),
        "sum of weights": WeightSumMechanism("weights"),
    }


@pytest.mark.parametrize("name", summands())
@pytest.mark.parametrize("n_threads", [1, 2])
def test_terms_of_a_record_follow_from_it_alone(name, n_threads):
    """Rows alone, in blocks of 7 and of 8,191, and shifted by 3: the same to the bit."""
    mechanism, n = summands()[name], 8191
    generator = torch.Generator().manual_seed(0)
    raw = torch.randn(n, D_WIDE, dtype=torch.float64, generator=generator)
    raw *= torch.rand(n, 1, generator=generator, dtype=torch.float64)
    shown = [6, 8190]
    mark = torch.zeros(n, 2, dtype=torch.float64)

    def added(start, stop, i):
        """Return the terms of row i, read in the block of the rows from `start` to `stop`."""
        mark.zero_()
        mark[i, i % 2] = 1
        rows = clip_rows(raw[start:stop], 2.0) / 2.0
        return mechanism._block_sum(rows, mark[start:stop], 2.0**20)

    threads = torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        for i in shown:
            alone = added(i, i + 1, i)
            assert alone.dtype == torch.int64
            assert alone.any()
            assert torch.equal(alone, added(0, n, i))
            assert torch.equal(alone, added(max(0, i - 3), min(n, i + 4), i))
            assert torch.equal(alone, added(min(i, 3), n, i))
    finally:
        torch.set_num_threads(threads)


@pytest.mark.catches(
    "mechanisms.sums:SliceSketchMechanism._sum_by_table",
    "zip(angles.split(_ROWS), membership.split(_ROWS), strict=True)",
    "[(angles, membership)]",
)
@pytest.mark.catches(
    "mechanisms.sums:SliceSketchMechanism._sum_rows",
    "order[: int(membership.sum())]",
    "order[: len(order)]",
)
@pytest.mark.parametrize("n_classes", [1, 3])
def test_a_table_of_all_angles_gives_the_same_sums(n_classes):
    """To the bit, with the largest sums that there are, for absent rows and empty classes, too."""
    mechanism, n = SliceSketchMechanism(basis(4, 2), n_classes), 2**15
    rows, labels = (
        unit_rows(1).repeat(n, 1),
        members(np.arange(n) % max(1, n_classes - 1), n_classes),
    )
    labels[::5] = 0
    scale = 2.0**20
    values = mechanism._values(mechanism.basis.angles(rows[:1]), scale)[:, :, 0]
    counts = labels.sum(0).long()
    expected = counts[:, None] * values.flatten().long()
    sums = mechanism._block_sum(rows, labels, scale)
    assert mechanism._table is not None
    assert torch.equal(sums[:, :-1], expected)
    assert torch.equal(mechanism._block_sum(rows, 0 * labels, scale), 0 * sums)


@pytest.mark.parametrize("n_columns", [1, 2, 3, 7, 64, 785])
def test_norms_of_rows_are_functions_of_each(n_columns):
    rows = torch.randn(300, n_columns, dtype=torch.float64, generator=torch.Generator())
    added = sum_rows(rows.square())
    assert added.shape == (300, 1)
    exact = [math.fsum(row) for row in rows.square().tolist()]
    assert added[:, 0] == pytest.approx(torch.tensor(exact, dtype=torch.float64), rel=1e-14)
    for layout in (rows[5:12], rows.T.contiguous().T, rows.repeat(1, 2)[:, :n_columns]):
        at = slice(5, 12) if len(layout) == 7 else slice(None)
        assert torch.equal(sum_rows(layout.square()), added[at])


# --- basis ---------------------------------------------------------------------------------------


def features(functions, rows):
    """Values in floating point, by their definition: of shape (n, B, 2, k)."""
    angles = (rows.to(functions.dtype) @ functions.frequencies).double()
    b = torch.arange(1, len(functions.weights) + 1)[:, None]
    waves = torch.stack([(b * angles[:, None]).cos(), (b * angles[:, None]).sin()], dim=2)
    return waves * functions.weights.double()[:, None, None]


@pytest.mark.parametrize("n_harmonics", [1, 2, 9, 1000])
def test_features_have_norm_one_on_each_slice(n_harmonics):
    functions = basis(11, n_harmonics, torch.float64)
    values = functions.harmonics(functions.angles(10 * unit_rows(40)))
    assert values.shape == (n_harmonics, 2, 40, 11)
    norms = values.square().sum(1)
    b = torch.arange(1, n_harmonics + 1, dtype=torch.float64)
    assert (abs(norms - 1).amax((1, 2)) < 1.01 * b * 2.0**-29).all()
    weighted = (functions.weights.square()[:, None, None] * norms).sum(0)
    assert (abs(weighted - 1) < 1e-6).all()


@pytest.mark.parametrize("n_harmonics", [1, 2, 9])
def test_features_are_weighted_cosines_and_sines(n_harmonics):
    k, rows = 6, unit_rows(20)
    directions = random_directions(
        D, k, generator=torch.Generator().manual_seed(2), dtype=torch.float64
    )
    ranges = torch.linspace(0.5, 2, k, dtype=torch.float64)
    functions = SliceBasis(directions, ranges, n_harmonics)
    values = functions.harmonics(functions.angles(rows))
    b = torch.arange(1, n_harmonics + 1, dtype=torch.float64)[:, None]
    weights = (1 / b / (1 / b).sum()).sqrt()
    angles = math.pi * (rows @ directions) / ranges
    for part, wave in enumerate((torch.cos, torch.sin)):
        expected = wave(b * angles[:, None]).movedim(1, 0)
        # Angles are rounded to steps of 2^-16 of a turn.
        error = (values[:, part] - expected).abs().amax((1, 2))
        assert (error < 1.01 * b[:, 0] * math.pi / 2**16).all()
    assert functions.weights == pytest.approx(weights[:, 0])


def squared_distance(functions, rows, means, weights):
    """The estimator by its definition: ‖φ̄ - mean‖², less the batch's own variance."""
    m = rows.shape[1]
    values = features(functions, rows.flatten(0, 1)).unflatten(0, rows.shape[:2])
    centre = values.mean(1)
    variance = (values - centre[:, None]).square().sum((1, 2, 3, 4)) / (m * (m - 1))
    distance = (centre - means).square().sum((1, 2, 3)) - variance
    return (weights * distance).sum() / functions.n_projections


@pytest.mark.parametrize(("k", "n_harmonics"), [(3, 1), (8, 4), (300, 2)])
def test_squared_distance_and_gradient_match_autograd(k, n_harmonics):
    functions = basis(k, n_harmonics, torch.float64)
    generator = torch.Generator().manual_seed(1)
    rows = torch.randn(2, 9, D, dtype=torch.float64, generator=generator).requires_grad_()
    means = 0.3 * torch.randn(2, n_harmonics, 2, k, dtype=torch.float64, generator=generator)
    weights = torch.tensor([0.3, 0.9], dtype=torch.float64)
    results = []
    for distance in (functions.squared_distance, lambda *args: squared_distance(functions, *args)):
        loss = distance(rows, means, weights)
        results.append((loss.detach(), torch.autograd.grad(2 * loss, rows)[0]))
    torch.testing.assert_close(results[0], results[1])


def test_squared_distance_of_many_harmonics_is_accurate():
    """In single precision, the recurrence keeps what matters of a thousand harmonics."""
    generator = torch.Generator().manual_seed(1)
    rows = torch.randn(2, 9, D, dtype=torch.float64, generator=generator)
    means = 0.01 * torch.randn(2, 1000, 2, 8, dtype=torch.float64, generator=generator)
    results = []
    for dtype in (torch.float32, torch.float64):
        given = rows.to(dtype).requires_grad_()
        loss = basis(8, 1000, dtype).squared_distance(
            given, means.to(dtype), torch.ones(2).to(dtype)
        )
        results.append((loss.detach().double(), torch.autograd.grad(loss, given)[0].double()))
    torch.testing.assert_close(*results, rtol=2e-3, atol=2e-3)


def test_squared_distance_is_unbiased():
    functions = basis(5, 2, torch.float64)
    generator = torch.Generator().manual_seed(0)
    population = torch.randn(6, D, dtype=torch.float64, generator=generator) / 3
    means = 0.2 * torch.randn(1, 2, 2, 5, dtype=torch.float64, generator=generator)
    exact = (features(functions, population).mean(0) - means[0]).square().sum() / 5
    weights = torch.ones(1, dtype=torch.float64)
    # All pairs with replacement: the exact expectation of a batch of two.
    losses = [
        functions.squared_distance(population[[i, j]][None], means, weights)
        for i in range(6)
        for j in range(6)
    ]
    torch.testing.assert_close(torch.stack(losses).mean(), exact)
