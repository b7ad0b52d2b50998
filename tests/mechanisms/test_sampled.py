"""Releases from samples: who is drawn, what tells it, and what one step costs by simulation."""

import itertools
import math

import numpy as np
import pytest
import torch
from dp_accounting import (
    GaussianDpEvent,
    NonPrivateDpEvent,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
)
from scipy import stats

from skdpgen.accounting.events import split_sampling
from skdpgen.accounting.loss_distributions import _laws_of_change
from skdpgen.accounting.moments import rdp_of
from skdpgen.mechanisms import sampled as sampled_mechanisms
from skdpgen.mechanisms.sampled import count_slots
from skdpgen.privacy import (
    Curator,
    NoiseSource,
    Plan,
    PlanError,
    RecordFunction,
    SlicedGaussianDpEvent,
    SlicedRowsMechanism,
    gaussian_plan,
    ledger_delta,
    ledger_epsilon,
    repeated_plan,
)

from .common import UNIT, Drawn, Rows, assert_variance

P = 1e-4


def sliced(multiplier=0.0, d=2, k=2, orthogonal=True, n_classes=1):
    return SlicedGaussianDpEvent(multiplier, d, k, orthogonal, n_classes)


def run(mechanism, source, event, noise, relation="zero_out"):
    return mechanism.run(source, event, relation=relation, noise=noise)


def circle(n, null=()):
    """Unit rows that can be told apart."""
    angles = 2 * np.pi * np.arange(n) / n
    return Rows(np.c_[np.cos(angles), np.sin(angles)], [-(i in null) for i in range(n)])


def occupants(released, n):
    """Which row of a circle is in each slot of an exact release on a basis; -1 for none."""
    x, y = (released.values[0].T @ released.directions.numpy().T).T
    index = np.rint(np.arctan2(y, x) * n / (2 * np.pi)).astype(int) % n
    return np.where(np.hypot(x, y) > 0.5, index, -1)


def draws(source, event, n_runs, seed=0):
    """Slots of `n_runs` exact releases from one stream."""
    noise, mechanism = NoiseSource(seed), SlicedRowsMechanism(2)
    return np.stack(
        [occupants(run(mechanism, source, event, noise), source.n_records) for _ in range(n_runs)]
    )


def assert_uniform(counts):
    assert stats.chisquare(counts).pvalue > P


# --- who is drawn --------------------------------------------------------------------------------


@pytest.mark.catches(
    "mechanisms.sampled:SampledMechanism.query",
    "noise.poisson_sample(n_records, rate)",
    "noise.fixed_sample(n_records, round(rate * n_records))",
)
@pytest.mark.parametrize(("n", "q"), [(12, 0.2), (5, 0.5)])
def test_poisson_samples_are_independent_coins(n, q):
    n_runs = 1000
    slots = draws(circle(n), PoissonSampledDpEvent(q, sliced()), n_runs)
    n_slots = slots.shape[1]
    assert n_slots == count_slots(n, q)
    # None joins if more are drawn than there are slots.
    pmf = stats.binom.pmf(np.arange(n_slots + 1), n, q)
    pmf[0] += 1 - pmf.sum()
    sizes = np.bincount((slots >= 0).sum(1), minlength=n_slots + 1)
    rare = n_runs * pmf < 5
    observed, expected = np.r_[sizes[~rare], sizes[rare].sum()], np.r_[pmf[~rare], pmf[rare].sum()]
    observed, expected = observed[expected > 0], expected[expected > 0]
    assert stats.chisquare(observed, n_runs * expected).pvalue > P

    included = (slots[:, :, None] == np.arange(n)).any(1)
    rate = q * stats.binom.cdf(n_slots - 1, n - 1, q)
    excess = (included.sum(0) - n_runs * rate) ** 2 / (n_runs * rate * (1 - rate))
    assert P < stats.chi2(n).sf(excess.sum()) < 1 - P
    correlation = np.corrcoef(included.T)[np.triu_indices(n, 1)]
    assert np.abs(correlation).max() < 5 / math.sqrt(n_runs)


@pytest.mark.parametrize(("n", "size"), [(12, 3), (5, 4)])
def test_fixed_samples_are_uniform_subsets_of_their_size(n, size):
    n_runs = 600
    event = SampledWithoutReplacementDpEvent(n, size, sliced())
    slots = draws(circle(n), event, n_runs)
    assert slots.shape == (n_runs, size)
    assert all(len(set(row) - {-1}) == size for row in slots)
    counts, share = np.bincount(slots.ravel(), minlength=n), size / n
    # Counts have a fixed sum: n - 1 degrees of freedom.
    excess = (counts - n_runs * share) ** 2 / (n_runs * share * (1 - share)) * (n - 1) / n
    assert P < stats.chi2(n - 1).sf(excess.sum()) < 1 - P


def test_without_sampling_all_records_join():
    slots = draws(circle(7), sliced(), 20)
    assert (np.sort(slots, axis=1) == np.arange(7)).all()


@pytest.mark.parametrize(
    "sample",
    [
        lambda base: base,
        lambda base: PoissonSampledDpEvent(0.4, base),
        lambda base: SampledWithoutReplacementDpEvent(6, 4, base),
    ],
    ids=["none", "poisson", "fixed"],
)
def test_slots_are_uniform(sample):
    slots = draws(circle(6), sample(sliced()), 600)
    for record in (0, 5):
        assert_uniform((slots == record).sum(0))


@pytest.mark.parametrize("q", [1e-9, 0.001, 0.1, 0.5, 0.97])
@pytest.mark.parametrize("n", [1, 2, 10, 300, 60_000])
def test_slots_are_seldom_too_few_and_not_too_many(n, q):
    n_slots, law = count_slots(n, q), stats.binom(n, q)
    assert 1 <= n_slots <= n
    assert law.sf(n_slots) <= 0.002
    assert n_slots == 1 or law.sf(n_slots - 1) > 0.002


# --- what tells how many joined ------------------------------------------------------------------


N_RECORDS, RATE = 40, 0.2
N_SLOTS = count_slots(N_RECORDS, RATE)


@pytest.mark.catches(
    "mechanisms.sampled:SampledMechanism.query",
    """
    n_slots = count_slots(n_records, rate)
    positions = noise.poisson_sample(n_records, rate)
    """,
    """
    positions = noise.poisson_sample(n_records, rate)
    n_slots = max(1, len(positions))
    """,
)
@pytest.mark.parametrize("n_drawn", [0, 1, 5, N_SLOTS, N_SLOTS + 1, N_RECORDS])
@pytest.mark.parametrize("n_classes", [1, 3])
def test_shape_and_noise_do_not_tell_how_many_joined(n_drawn, n_classes):
    source = Rows(circle(N_RECORDS)._rows, np.arange(N_RECORDS) % n_classes, n_classes)
    mechanism = SlicedRowsMechanism(2, n_classes)
    joined, occupied, residuals = n_drawn if n_drawn <= N_SLOTS else 0, [], []
    for seed in range(20):
        results = []
        for multiplier in (0.0, 3.0):
            base = sliced(multiplier, mechanism.n_features, 5, n_classes=n_classes)
            noise, event = Drawn(range(n_drawn), seed), PoissonSampledDpEvent(RATE, base)
            results.append(run(mechanism, source, event, noise))
        exact, noisy = results
        assert exact.values.shape == noisy.values.shape == (n_classes, 5, N_SLOTS)
        assert (exact.std, noisy.std) == (0.0, 3.0)
        occupied.append(exact.values.any((0, 1)))
        residuals.append(noisy.values - exact.values)
    occupied, residuals = np.array(occupied), np.moveaxis(residuals, 3, 1)
    assert (occupied.sum(1) == joined).all()
    for part in (residuals[occupied], residuals[~occupied]):
        assert part.size < 1000 or np.std(part) == pytest.approx(3.0, rel=0.1)
    assert_variance(residuals, 3.0)


def test_noise_follows_the_relation():
    noisy = {}
    for relation in ("zero_out", "replace_one"):
        event = PoissonSampledDpEvent(0.5, sliced(2.0, k=400))
        noisy[relation] = run(
            SlicedRowsMechanism(2), circle(9, range(9)), event, NoiseSource(0), relation
        )
    # Both have the noise of a row of norm 1, whose event has another price.
    assert noisy["zero_out"].std == noisy["replace_one"].std == 2.0
    for released in noisy.values():
        assert_variance(released.values, released.std)


@pytest.mark.catches(
    "mechanisms.sampled:SampledMechanism.query", "positions[:0]", "positions[:n_slots]"
)
def test_more_records_than_slots_leave_noise_only():
    event = PoissonSampledDpEvent(RATE, sliced())
    for n_drawn, joined in ((N_SLOTS, N_SLOTS), (N_SLOTS + 1, 0)):
        released = run(SlicedRowsMechanism(2), circle(N_RECORDS), event, Drawn(range(n_drawn)))
        assert released.values.any((0, 1)).sum() == joined


@pytest.mark.catches(
    "mechanisms.sampled:SlicedRowsMechanism.query_batch",
    "self.encode.on(rows, width=self.n_columns)",
    "self.encode._function(rows[membership.any(1)]).new_zeros(rows.shape)",
)
@pytest.mark.parametrize("n_drawn", [0, 1, N_SLOTS, N_RECORDS])
def test_public_maps_see_as_many_rows_however_many_joined(n_drawn):
    seen = []

    def watched(rows, *_):
        if len(rows) > 1:  # one public row of zeros is a trial
            seen.append(len(rows))
        return rows

    event = PoissonSampledDpEvent(RATE, sliced(3.0))
    plan = Plan((("sliced rows", event),), 10.0, 1e-5)
    X = circle(N_RECORDS)._rows.numpy()
    watched = RecordFunction(watched)
    curator = Curator(X, plan=plan, noise=Drawn(range(n_drawn)), prepare=watched)
    seen.clear()
    curator.release(SlicedRowsMechanism(2, encode=watched))
    assert seen == [N_SLOTS, N_SLOTS]


def test_others_are_the_same_to_the_bit_whether_or_not_a_record_joins():
    # Products of matrices of other shapes are rounded otherwise.
    rng = np.random.default_rng(0)
    weights = torch.tensor(rng.normal(size=(300, 30)) / 17, dtype=torch.float32)
    mechanism = SlicedRowsMechanism(30, encode=RecordFunction(lambda rows: rows.float() @ weights))
    source = Rows(rng.normal(size=(100, 300)) / 17)
    event, slots = PoissonSampledDpEvent(0.4, sliced(0.0, 30, 30)), rng.permutation(100)
    n_slots = count_slots(100, 0.4)
    slots = slots[slots < n_slots]
    values = [
        run(mechanism, source, event, Drawn(range(n), 0, slots)).values for n in range(n_slots + 1)
    ]
    for n in range(n_slots):
        changed = (values[n + 1] != values[n]).any((0, 1))
        assert np.flatnonzero(changed).tolist() == [slots[n]]


@pytest.mark.catches(
    "mechanisms.sampled:SlicedRowsMechanism.query_batch",
    "Measurement(exact, scale, std, context=directions)",
    "Measurement(exact, scale, std * exact.any((0, 1)), context=directions)",
)
def test_an_empty_sample_releases_noise_and_is_charged():
    event = PoissonSampledDpEvent(1e-3, sliced(20.0, 2, 800))
    plan = Plan((("sliced rows", event),), 5.0, 1e-5)
    curator = Curator(np.ones((50, 2)), plan=plan, noise=Drawn([]))
    released = curator.release(SlicedRowsMechanism(2))
    assert_variance(released.values, 20.0)
    assert curator.certificate().events == (event,)


@pytest.mark.catches(
    "mechanisms.sampled:SampledMechanism.query",
    "positions = noise.poisson_sample(n_records, rate)",
    """
    positions = noise.poisson_sample(n_records, rate)
    positions = positions[source.take(positions)[1].any(1).numpy()]
    """,
)
def test_a_null_record_takes_a_slot_and_adds_nothing():
    event, absent = PoissonSampledDpEvent(RATE, sliced()), circle(N_RECORDS, null=[0])
    for n_drawn, joined in ((1, 0), (N_SLOTS, N_SLOTS - 1), (N_SLOTS + 1, 0)):
        released = run(SlicedRowsMechanism(2), absent, event, Drawn(range(n_drawn)))
        assert released.values.any((0, 1)).sum() == joined


@pytest.mark.parametrize("n_classes", [1, 2])
def test_neighbours_differ_in_one_slot_and_overflow_together(n_classes, monkeypatch):
    monkeypatch.setattr(sampled_mechanisms, "count_slots", lambda n_records, rate: 2)
    x, mechanism = np.eye(2)[[0, 1, 0, 1]], SlicedRowsMechanism(2, n_classes)
    present = Rows(x, np.zeros(4, int), n_classes)
    absent = Rows(x, [-1, 0, 0, 0], n_classes)
    other = Rows(np.r_[-x[:1], x[1:]], [n_classes - 1, 0, 0, 0], n_classes)
    event = PoissonSampledDpEvent(0.4, sliced(0.0, mechanism.n_features, 3, n_classes=n_classes))
    empty = changed = 0
    for seed in range(60):
        first = run(mechanism, present, event, NoiseSource(seed)).values
        for neighbour in (absent, other):
            second = run(mechanism, neighbour, event, NoiseSource(seed)).values
            slots = (first != second).any((0, 1)).sum()
            assert slots <= 1
            changed += slots
        empty += not first.any()
    # None of four is drawn, or at least three; a record is drawn with at most one other.
    assert 60 * 0.31 * 0.6 < empty < 60 * 0.31 * 1.4
    assert 120 * 0.26 * 0.6 < changed < 120 * 0.26 * 1.4


def test_chunks_cannot_be_sampled():
    event = PoissonSampledDpEvent(0.5, sliced(3.0))
    plan = Plan((("sliced rows", event),), 10.0, 1e-5)
    curator = Curator(lambda: iter([np.ones((5, 2))]), plan=plan, noise=NoiseSource(0))
    with pytest.raises(PlanError, match="chunks and partitions cannot be read"):
        curator.release(SlicedRowsMechanism(2))


# --- directions ----------------------------------------------------------------------------------


def directions(event, n_runs):
    noise, source = NoiseSource(0), circle(2)
    mechanism = SlicedRowsMechanism(2)
    mechanism.n_columns = event.n_features
    source._rows = torch.zeros(2, event.n_features, dtype=torch.float64)
    return torch.stack([run(mechanism, source, event, noise).directions for _ in range(n_runs)])


@pytest.mark.catches(
    "mechanisms.sampled:SlicedRowsMechanism.query_batch",
    "noise.public_generator()",
    "np.random.default_rng(0)",
)
@pytest.mark.parametrize("orthogonal", [True, False])
def test_directions_are_fresh_at_each_step(orthogonal):
    drawn = directions(sliced(1.0, 3, 2, orthogonal), 400)
    columns = drawn.transpose(1, 2).reshape(-1, 3).numpy()
    assert len(np.unique(columns.round(9), axis=0)) == len(columns)
    # Uniform on the sphere: in three dimensions, so is each coordinate, also of later steps.
    assert stats.kstest(columns[:, 0], stats.uniform(-1, 2).cdf).pvalue > P
    cosines = (columns[:-2] * columns[2:]).sum(1)
    assert stats.kstest(cosines, stats.uniform(-1, 2).cdf).pvalue > P
    squares = drawn[:, 0].square().sum(1).numpy()
    if orthogonal:
        assert stats.kstest(squares, stats.beta(1, 0.5).cdf).pvalue > P


# --- what is released of a record ----------------------------------------------------------------


def test_an_exact_release_is_the_projected_row_in_its_slot_and_class():
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(6, 3)) / 4, np.array([0, 2, 1, -1, 2, 0])
    mechanism, source = SlicedRowsMechanism(3, 3), Rows(x, labels, 3)
    weight = 0.3
    joined = np.c_[math.sqrt(1 - weight**2) * x, weight * np.eye(4)[labels][:, :3]]
    released = run(mechanism, source, sliced(0.0, 6, 4, False, 3), NoiseSource(0))
    projected = joined @ released.directions.numpy()
    found = []
    for slot in range(6):
        values = released.values[:, :, slot]
        classes = np.flatnonzero(values.any(1))
        if len(classes) == 0:
            continue
        (code,) = classes
        (record,) = np.flatnonzero(np.isclose(projected, values[code], atol=1e-4).all(1))
        assert code == labels[record]
        # Rounded towards zero on a grid, and never longer.
        assert (np.abs(values[code]) <= np.abs(projected[record])).all()
        assert np.abs(values[code] - projected[record]).max() < 2e-5
        found.append(record)
    assert sorted(found) == [0, 1, 2, 4, 5]


HUGE = [1e-320, 1e-12, 1.0, 3.0, 1e6, 1e160, 1e300, 1.7e308, math.inf, math.nan]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("n_classes", [1, 2])
def test_no_encoder_moves_a_release_by_more_than_a_unit_row(n_classes, dtype):
    scales = torch.tensor(HUGE, dtype=torch.float64)[:, None]
    encode = RecordFunction(lambda x: (x * scales[: len(x)]).to(dtype))
    mechanism = SlicedRowsMechanism(3, n_classes, encode)
    source = Rows(np.ones((len(HUGE), 3)), np.arange(len(HUGE)) % n_classes, n_classes)
    d = mechanism.n_features
    # On an orthonormal basis a projection has the length of its row.
    released = run(mechanism, source, sliced(0.0, d, d, n_classes=n_classes), NoiseSource(0))
    norms = np.linalg.norm(released.values, axis=(0, 1))
    assert np.isfinite(norms).all()
    assert 0.999 < norms.max() <= 1


@pytest.mark.catches(
    "mechanisms.sampled:SlicedRowsMechanism.join",
    "clip_rows(rows, 1.0)",
    "rows / torch.linalg.vector_norm(rows, dim=1).max().clamp(min=1.0)",
)
def test_no_row_looks_at_another_when_joined():
    rows = torch.tensor([[0.3, 0.4], [30.0, 40.0], [0.0, 1.0]]).double()
    membership = torch.eye(2).double()[[0, 1, 0]]
    mechanism = SlicedRowsMechanism(2, 2)
    together = mechanism.join(rows, membership)
    for i in range(3):
        assert (mechanism.join(rows[i : i + 1], membership[i : i + 1])[0] == together[i]).all()
    alone = SlicedRowsMechanism(2).join(rows, torch.ones(3, 1).double())
    torch.testing.assert_close(alone[:2], torch.tensor([[0.3, 0.4], [0.6, 0.8]]).double())


def test_encode_comes_before_the_clip():
    event = sliced(0.0, 2, 2)
    scaled = SlicedRowsMechanism(2, encode=RecordFunction(lambda rows: 5 * rows))
    halves = Rows(0.5 * circle(6)._rows)
    values = [
        run(mechanism, source, event, NoiseSource(0)).values
        for mechanism, source in ((scaled, halves), (SlicedRowsMechanism(2), circle(6)))
    ]
    assert values[0] == pytest.approx(values[1], abs=1e-5)


def test_class_shares_are_unbiased():
    labels = [0, 0, 0, 1, -1]
    source = Rows(np.full((5, 1), 0.7), labels, 3)
    mechanism, noise = SlicedRowsMechanism(1, 3), NoiseSource(0)
    event = sliced(0.2, 4, 2, n_classes=3)
    estimates = np.stack(
        [mechanism.class_shares(run(mechanism, source, event, noise)) for _ in range(1000)]
    )
    error = estimates.std(0) / math.sqrt(len(estimates))
    assert (np.abs(estimates.mean(0) - [0.6, 0.2, 0]) < 4.5 * error).all()
    assert (error < 0.03).all()


# --- what a step costs ---------------------------------------------------------------------------


def log_likelihood(released, source, event, std):
    """Log density of releases, relative to noise alone: a sum over all samples and their slots."""
    values, directions = released
    joined = SlicedRowsMechanism(source._rows.shape[1], source.n_classes).join(
        source._rows, source._membership
    )
    projected = np.einsum("id,rdk->rik", joined.numpy(), directions)
    inner = np.einsum("rcks,rik->rics", values, projected)
    membership = source._membership.numpy()
    inner -= ((projected**2).sum(2) / 2)[:, :, None, None]
    gains = np.einsum("rics,ic->ris", inner, membership) / std**2
    _, rate, sampling = split_sampling(event)
    n, n_slots = source.n_records, values.shape[3]
    if sampling == "poisson":
        sizes = range(n + 1)
        weights = {m: rate**m * (1 - rate) ** (n - m) for m in sizes}
    else:
        sizes = [n_slots]
        weights = {n_slots: 1 / math.comb(n, n_slots)}
    logs = []
    for size in sizes:
        for sample in itertools.combinations(range(n), size):
            if size > n_slots:
                logs.append(np.full(len(values), math.log(weights[size])))
                continue
            for slots in itertools.permutations(range(n_slots), size):
                gain = sum((gains[:, i, s] for i, s in zip(sample, slots, strict=True)), 0.0)
                weight = math.log(weights[size] / math.perm(n_slots, size))
                logs.append(weight + gain * np.ones(len(values)))
    return np.logaddexp.reduce(logs)


def delta_of(released, source, neighbour, event, std, epsilon):
    """Estimate δ(ε) of releases of `source` against `neighbour`, and its standard error."""
    loss = log_likelihood(released, source, event, std) - log_likelihood(
        released, neighbour, event, std
    )
    deltas = np.maximum(0.0, -np.expm1(epsilon - loss))
    return deltas.mean(), deltas.std() / math.sqrt(len(deltas))


def release(mechanism, source, event, relation, n_runs, seed):
    noise = NoiseSource(seed)
    results = [run(mechanism, source, event, noise, relation) for _ in range(n_runs)]
    return (
        np.stack([result.values for result in results]),
        np.stack([result.directions.numpy() for result in results]),
    )


def assert_certified(
    mechanism, event, relation, source, neighbour, *, epsilons=(0.3,), least=0.0, n_runs=600
):
    """δ is at most what is certified in both directions, and at least `least` times that."""
    multiplier = split_sampling(event)[0].noise_multiplier
    std = multiplier * UNIT[relation] * mechanism.sensitivity(relation)
    certified = {e: ledger_delta([event], e, relation=relation) for e in epsilons}
    estimates = []
    for seed, (one, other) in enumerate([(source, neighbour), (neighbour, source)]):
        released = release(mechanism, one, event, relation, n_runs, seed)
        for epsilon, bound in certified.items():
            delta, error = delta_of(released, one, other, event, std, epsilon)
            assert delta <= bound + 4 * error
            # One of the two directions can be smaller, but not at ε = 0.
            if epsilon == 0 or one is source:
                assert delta + 4 * error >= least * bound
            estimates.append((delta, error))
    return estimates


ONE, TWO = SlicedRowsMechanism(3), SlicedRowsMechanism(1, 2)
AXIS = np.eye(3)[:1]


@pytest.mark.parametrize("orthogonal", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_sampled_step_costs_what_is_certified(orthogonal):
    event = PoissonSampledDpEvent(0.3, sliced(0.4, 3, 2, orthogonal, 2))
    source, absent = Rows([[1.0]], [0], 2), Rows([[1.0]], [-1], 2)
    assert_certified(
        TWO, event, "zero_out", source, absent, epsilons=(0.0, 0.3), least=0.95, n_runs=1200
    )


def test_a_sampled_step_among_other_records_costs_no_more(monkeypatch):
    monkeypatch.setattr(sampled_mechanisms, "count_slots", lambda n_records, rate: 1)
    event = PoissonSampledDpEvent(0.4, sliced(0.3, 3, 2, n_classes=2))
    # With both records drawn, nobody has room.
    present, absent = ([label, 1] for label in (0, -1))
    source, neighbour = (Rows([[1.0], [-1.0]], labels, 2) for labels in (present, absent))
    assert_certified(TWO, event, "zero_out", source, neighbour)


def test_replacing_a_record_in_a_poisson_sample_costs_what_is_certified():
    event = PoissonSampledDpEvent(0.3, sliced(0.6, 3, 2))
    # The bound is for the larger of two rows, which depend on each other in any way.
    assert_certified(ONE, event, "replace_one", Rows(AXIS), Rows(-AXIS), epsilons=(0.0,), least=0.8)


def test_a_record_of_another_class_in_a_poisson_sample_costs_no_more():
    event = PoissonSampledDpEvent(0.3, sliced(0.4, 3, 1, n_classes=2))
    source, neighbour = (Rows([[1.0]], [label], 2) for label in (0, 1))
    assert_certified(TWO, event, "replace_one", source, neighbour)


@pytest.mark.catches(
    "mechanisms.sampled:SlicedRowsMechanism",
    '{"zero_out": 1.0, "replace_one": 2.0}',
    '{"zero_out": 1.0, "replace_one": 1.0}',
)
def test_replacing_a_record_in_a_fixed_sample_costs_what_is_certified():
    event = SampledWithoutReplacementDpEvent(2, 1, sliced(0.6, 3, 2))
    source, neighbour = Rows(np.r_[AXIS, -AXIS]), Rows(np.r_[-AXIS, -AXIS])
    assert_certified(ONE, event, "replace_one", source, neighbour, epsilons=(0.0, 0.3), least=0.95)


@pytest.mark.catches(
    "accounting.loss_distributions:_laws_of_change", "law.values + base.rounding", "law.values"
)
@pytest.mark.parametrize(("d", "k"), [(3, 40), (50, 7)])
@pytest.mark.parametrize("apart", [2e-7, 1e-5, 2.0])
def test_rounding_moves_two_rows_apart_by_at_most_what_is_paid_for(d, k, apart):
    rng, grew = np.random.default_rng(0), 0
    event = sliced(0.0, d, k, orthogonal=False)  # no noise, the finest grid
    for seed in range(60):
        # On either side of 0, so that both are in the unit ball.
        row = rng.normal(size=d)
        row *= apart / 2 / np.linalg.norm(row)
        offset = np.zeros(d) if apart == 2.0 else rng.normal(size=d) / d
        released = [
            run(
                SlicedRowsMechanism(d),
                Rows([offset + sign * row]),
                event,
                NoiseSource(seed),
                "replace_one",
            )
            for sign in (1, -1)
        ]
        moved = ((released[0].values - released[1].values) ** 2).sum() / 4
        exact = ((row @ released[0].directions.numpy()) ** 2).sum()
        assert moved <= exact + event.rounding
        grew += moved > exact
    assert grew > 1 or apart > 1e-6
    # And it is paid for, where two rows are compared that were both rounded.
    replaced, zeroed = (
        _laws_of_change(event, relation)[0].values for relation in ("replace_one", "zero_out")
    )
    np.testing.assert_allclose(replaced, zeroed + event.rounding, rtol=1e-12)
    event, order = sliced(2.0**30, d, k, orthogonal=False), np.array([3.0])
    replaced, zeroed = (
        rdp_of(event, relation, order)[0] for relation in ("replace_one", "zero_out")
    )
    expected = 3 * event.rounding / (2 * event.noise_multiplier**2)
    assert replaced - zeroed == pytest.approx(expected, rel=1e-3)


@pytest.mark.catches(
    "accounting.loss_distributions:_laws_of_change",
    "[law, larger._replace(values=larger.values / 2)]",
    "[law]",
)
def test_a_record_of_another_class_costs_more_than_one_of_its_own():
    # With little noise: two independent projections are seldom both small.
    mechanism, event = SlicedRowsMechanism(2, 2), sliced(0.1, 4, 1, n_classes=2)
    source, neighbour = Rows([[1.0, 0.0]], [0], 2), Rows([[0.0, 1.0]], [1], 2)
    options = {"epsilons": (0.0,), "least": 0.95, "n_runs": 400}
    estimates = assert_certified(mechanism, event, "replace_one", source, neighbour, **options)
    delta, error = estimates[0]
    one_class = ledger_delta([sliced(0.1, 4, 1)], 0.0, relation="replace_one")
    assert delta - 4 * error > one_class


def test_rows_without_padding_cost_more_than_is_certified():
    """The shape of an unpadded release tells who joined: amplification by sampling is lost."""

    class Unpadded(SlicedRowsMechanism):
        def postprocess(self, noisy, measured):
            joined = measured.exact.any((0, 1))
            return super().postprocess(noisy[:, :, joined], measured)

    # On a basis H = 1: a Gaussian release of μ = 1, and its amplification at q = 0.1.
    event, epsilon = PoissonSampledDpEvent(0.1, sliced(1.0)), 0.5
    padded = ledger_delta([event], epsilon)
    assert padded == pytest.approx(0.0020, abs=5e-5)
    noise, source, deltas = NoiseSource(0), circle(1), []
    row = source._rows.numpy()[0]
    for _ in range(2000):
        released = run(Unpadded(2), source, event, noise)
        mean = row @ released.directions.numpy()
        # Given the shape: noise on the row against noise alone, or nothing against nothing.
        loss = ((released.values[0] * mean[:, None] - mean[:, None] ** 2 / 2) / 1.0).sum()
        deltas.append(max(0.0, -math.expm1(epsilon - loss)))
    delta, error = np.mean(deltas), np.std(deltas) / math.sqrt(len(deltas))
    exact = 0.1 * (stats.norm.cdf(0.5 - 0.5) - math.exp(0.5) * stats.norm.cdf(-0.5 - 0.5))
    assert exact == pytest.approx(0.0238, abs=5e-5)
    assert delta == pytest.approx(exact, abs=4 * error)
    assert delta - 4 * error > 3 * padded


# --- plans ---------------------------------------------------------------------------------------


def plan_of(*events, epsilon=50.0, relation="replace_one"):
    names = ["sums", "sliced rows"][-len(events) :]
    return Plan(tuple(zip(names, events, strict=True)), epsilon, 1e-5, relation)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (sliced(3.0, 3, 2, n_classes=2), "projects rows of 4 columns and 2 classes"),
        (sliced(3.0, 4, 2, n_classes=1), "projects rows of 4 columns and 2 classes"),
        (sliced(3.0, 4, 2, n_classes=3), "projects rows of 4 columns and 2 classes"),
        (PoissonSampledDpEvent(0.1, sliced(3.0, 5, 2, n_classes=2)), "planned as"),
        (GaussianDpEvent(3.0), "planned as GaussianDpEvent"),
        (PoissonSampledDpEvent(0.1, GaussianDpEvent(3.0)), "planned as GaussianDpEvent"),
        (SampledWithoutReplacementDpEvent(11, 2, sliced(3.0, 4, 2, n_classes=2)), "11 records"),
    ],
)
def test_another_event_is_refused_and_nothing_is_read(event, message):
    calls = []

    def prepare(X, y):
        calls.append(1)
        return X

    X, y = np.ones((10, 2)), np.arange(10) % 2
    curator = Curator(
        X,
        y,
        plan=plan_of(event),
        noise=NoiseSource(0),
        classes=[0, 1],
        prepare=RecordFunction(prepare),
    )
    calls.clear()
    with pytest.raises(PlanError, match=message):
        curator.release(SlicedRowsMechanism(2, 2))
    assert not calls


def test_no_noise_has_no_price_but_a_plain_event_of_it_is_refused():
    exact = Plan((("sliced rows", sliced(0.0)),), math.inf, 1e-5)
    curator = Curator(np.ones((3, 2)), plan=exact, noise=NoiseSource(0))
    assert curator.release(SlicedRowsMechanism(2)).std == 0
    assert curator.certificate().epsilon == math.inf
    with pytest.raises(PlanError, match="planned as NonPrivateDpEvent"):
        SlicedRowsMechanism(2).check(NonPrivateDpEvent())


@pytest.mark.parametrize("classes", [None, [0, 1, 2]])
def test_rows_of_another_number_of_classes_are_refused(classes):
    plan = plan_of(sliced(3.0, 4, 2, n_classes=2))
    y = None if classes is None else np.zeros(10, int)
    curator = Curator(np.ones((10, 2)), y, plan=plan, noise=NoiseSource(0), classes=classes)
    with pytest.raises(PlanError, match="is for 2 classes; the rows have"):
        curator.release(SlicedRowsMechanism(2, 2))


STEPS = {
    "unsampled": lambda s: sliced(s, 6, 3),
    "poisson": lambda s: PoissonSampledDpEvent(0.05, sliced(s, 6, 3)),
    "fixed": lambda s: SampledWithoutReplacementDpEvent(100, 5, sliced(s, 6, 3)),
}


@pytest.mark.parametrize(
    ("sampling", "relation", "accountant", "shares"),
    [
        ("unsampled", "zero_out", "pld", {"sums": 0.3}),
        ("poisson", "zero_out", "pld", None),
        ("poisson", "zero_out", "pld", {"sums": 0.2, "moments": 0.1}),
        ("poisson", "zero_out", "rdp", {"sums": 0.3}),
        ("poisson", "zero_out", "autodp", None),
        ("poisson", "replace_one", "rdp", {"sums": 0.3}),
        ("fixed", "replace_one", "pld", {"sums": 0.3}),
        ("fixed", "replace_one", "rdp", None),
    ],
)
def test_a_repeated_plan_spends_its_budget(sampling, relation, accountant, shares):
    epsilon, options = 2.0, {"relation": relation, "accountant": accountant}
    plan = repeated_plan("rows", STEPS[sampling], 20, epsilon, 1e-5, shares=shares, **options)
    cost = ledger_epsilon(plan.events, 1e-5, **options)
    assert 0.99 * epsilon < cost <= epsilon
    names = [name for name, _ in plan.releases]
    assert names == [*(shares or {}), "rows"]
    multiplier = plan.sigma / UNIT[relation]
    assert plan.events[-1] == SelfComposedDpEvent(STEPS[sampling](multiplier), 20)
    # A share is that of the Gaussian releases that could be made instead.
    if shares:
        alone = gaussian_plan(
            {**shares, "rest": 1 - sum(shares.values())}, epsilon, 1e-5, **options
        )
        for name in shares:
            assert plan.multiplier(name) == pytest.approx(alone.multiplier(name), rel=1e-6)


def test_a_plan_of_one_step_is_that_step():
    plan = repeated_plan("rows", STEPS["poisson"], 1, 1.0, 1e-5, sensitivity=2.0)
    assert plan.events == (STEPS["poisson"](plan.sigma / 2),)


def test_an_infinite_budget_plans_no_noise():
    plan = repeated_plan("rows", sliced, 7, math.inf, 1e-5, shares={"sums": 0.1})
    assert plan.events == (NonPrivateDpEvent(), SelfComposedDpEvent(sliced(0.0), 7))
    assert plan.sigma == 0


@pytest.mark.parametrize("shares", [{"sums": 0.0}, {"sums": -1.0}, {"sums": 1.0}, {"sums": 1.2}])
def test_shares_leave_something_for_the_steps(shares):
    with pytest.raises(ValueError, match=r"positive|too small"):
        repeated_plan("rows", STEPS["poisson"], 5, 1.0, 1e-5, shares=shares)
