"""Particles of persons with rows: their tables are those that a mechanism counts."""

import numpy as np
import pytest
import torch
from scipy import stats

from skdpgen import Date
from skdpgen.histories.calendars import _couple, find_times, list_calendars
from skdpgen.histories.learner import HistoryParticles, HistoryTarget, find_absent, make_tables
from skdpgen.histories.mechanism import HistorySizes
from skdpgen.histories.orders import add_gaps
from skdpgen.histories.shrinkage import make_cycles, make_waves, shrink, shrink_tables

from ..mechanisms.common import Blocks
from ..mechanisms.test_tables import release

M = 3
SIZES = HistorySizes((2, 3, M + 2), (3, 4), M)


def make_certain(codes, has_gaps=False):
    """Particles that are each one person, for certain."""
    n = len(codes)
    n_levels = sum(SIZES.persons) + sum(SIZES.rows)
    generator = torch.Generator().manual_seed(0)
    particles = HistoryParticles(n, generator, SIZES, np.ones(n_levels), has_gaps)
    persons, _, rows = SIZES.split(torch.as_tensor(codes))
    for logits, own, sizes in (
        (particles.persons, persons, SIZES.persons),
        (particles.rows, rows, SIZES.rows),
    ):
        levels = [torch.nn.functional.one_hot(own[..., c].long(), s) for c, s in enumerate(sizes)]
        logits.data = 1e3 * torch.cat(levels, dim=-1).float()
    return particles


def make_codes(n, rng):
    persons = np.column_stack([rng.integers(size, size=n) for size in SIZES.persons])
    rows = [rng.integers(size, size=n) for _ in range(M) for size in SIZES.rows]
    return np.column_stack([persons, *rows]).astype(float)


def make_target(codes, multiplier=0.0, seed=0):
    released = [
        release(mechanism, Blocks(codes), multiplier, seed=seed + i)
        for i, mechanism in enumerate(SIZES.make_mechanisms())
    ]
    return HistoryTarget.of(released, SIZES, None, len(codes), "cpu")


def test_tables_of_particles_are_those_that_are_released():
    codes = make_codes(200, np.random.default_rng(0))
    particles = make_certain(codes)
    persons, rows = particles.find_probabilities(torch.arange(200))
    tables = make_tables(particles, persons, rows)
    target = make_target(codes)
    for made, (table, mask) in zip(tables, target.tables, strict=True):
        assert (made * mask).detach() == pytest.approx(table, abs=3e-4)
    # The mean row is that of marginals, to which particles are shifted.
    mean = (rows * particles.find_shares(persons)[0][..., None]).sum(1)
    expected = torch.cat([persons, mean], dim=1).mean(0).detach()
    assert particles(torch.arange(200)).mean(0).detach() == pytest.approx(expected, abs=1e-6)


def test_the_gap_to_exact_tables_is_the_energy_of_the_noise():
    codes = make_codes(200, np.random.default_rng(0))
    exact = make_target(codes)
    at = [table for table, _ in exact.tables]
    assert float(exact.gap(at, at)) == pytest.approx(0, abs=1e-9)
    assert exact.noise_energy == 0
    noisy = [make_target(codes, 5.0, 5 * i) for i in range(40)]
    gaps = [float(target.gap(at, at)) for target in noisy]
    assert np.mean(gaps) == pytest.approx(noisy[0].noise_energy, rel=0.1)


def test_tables_of_uncertain_particles_are_those_of_their_persons():
    """The number of rows decides which ones a person has: the two are not independent."""
    rng, n = np.random.default_rng(0), 40_000
    particles = make_certain(make_codes(1, rng))
    for logits in (particles.persons, particles.rows):
        logits.data = torch.as_tensor(rng.normal(size=logits.shape)).float()
    persons, rows = (part.detach() for part in particles.find_probabilities(torch.arange(1)))
    tables = make_tables(particles, persons, rows)
    blocks = [(persons[0], SIZES.persons), *((row, SIZES.rows) for row in rows[0])]
    codes = [
        rng.choice(len(p), n, p=p.double().numpy() / p.double().numpy().sum())
        for weights, sizes in blocks
        for p in weights.split(sizes)
    ]
    target = make_target(np.column_stack(codes).astype(float))
    for made, (table, mask) in zip(tables, target.tables, strict=True):
        assert (made * mask).numpy() == pytest.approx(table.numpy(), abs=0.01)


def test_one_row_of_each_person_is_drawn_for_calibration():
    codes = make_codes(400, np.random.default_rng(0))
    codes[:, 2] = np.arange(400) % 2 * 2  # no rows, or two
    particles = make_certain(codes)
    drawn = particles.sample(torch.zeros(4000), torch.Generator().manual_seed(0)) * 2
    rows = codes[:, 3:].reshape(400, M, 2)[codes[:, 2] == 2, :2]
    expected = np.bincount(rows[..., 0].ravel().astype(int), minlength=3) / rows[..., 0].size
    of_rows = drawn[:, 5:8]
    assert (drawn.sum(1) == 4).all()
    # Half of the persons have no row, and one of theirs is any.
    assert of_rows.mean(0) == pytest.approx(expected, abs=0.08)


def test_levels_that_are_empty_or_impossible_are_never_drawn():
    particles = make_certain(make_codes(20, np.random.default_rng(0)), has_gaps=True)
    is_empty = np.zeros(sum(SIZES.persons) + sum(SIZES.rows), dtype=bool)
    is_empty[[0, 11]] = True
    particles.forbid(is_empty)
    persons, rows = particles.draw_persons(20, torch.Generator().manual_seed(0))
    assert (persons[:, 0] == 0).all()
    assert (rows[:, :, 1] == 0).all()
    # The first row has no gap, and others have one.
    assert (rows[:, 0, -1] == 1).all()
    assert (rows[:, 1:, -1] == 0).all()
    assert rows.sum(2) == pytest.approx(2)


@pytest.mark.parametrize(
    ("counts", "absent"),
    [
        # Within noise, but between others.
        ([0, 50, 2, 50, 0, 0], [1, 0, 0, 0, 1, 1]),
        # Each within noise, and together not.
        ([0, 50, 50, 20, 25, 15], [1, 0, 0, 0, 0, 0]),
        ([0, 50, 50, 20, -25, 15], [1, 0, 0, 1, 1, 1]),
        ([0, 0, 0, 50, 0, 0], [1, 1, 1, 0, 1, 1]),
        ([50, 0, 0, 0, 0, 50], [0, 0, 0, 0, 0, 0]),
    ],
)
def test_numbers_of_rows_are_absent_at_an_end_and_within_noise_together(counts, absent):
    counts, std = np.array(counts, dtype=float), np.full(6, 10.0)
    assert find_absent(counts, std, counts <= 30).tolist() == [bool(a) for a in absent]


def test_kernels_move_a_column_to_its_distribution_in_a_cell():
    rng = np.random.default_rng(0)
    first, second = rng.random((2, 6))
    first, second = first / first.sum(), second / second.sum()
    for n_ordered in (0, 4, 6):
        kernel = _couple(first, second, n_ordered)
        assert kernel.sum(axis=1) == pytest.approx(1)
        assert first @ kernel == pytest.approx(second)
        assert _couple(first, first, n_ordered) == pytest.approx(np.eye(6))
    # Numbers keep their ranks.
    means = kernel @ np.arange(6)
    assert (np.diff(means) >= -1e-9).all()


def test_waves_are_shrunk_by_the_energy_of_their_group():
    levels = make_waves(np.array([0.1, 0.2, 0.4, 0.2, 0.1, 0.0]), 5)
    cells = make_cycles(12)
    for waves in (levels, cells):
        assert waves.basis.T @ waves.basis == pytest.approx(np.eye(len(waves.bands)), abs=1e-9)
    # Half a wave over the ranks, and the sine and cosine of one wave a year.
    assert (cells.bands == 1).sum() == 2
    season = 50 * np.outer(cells.basis[:, cells.bands == 1][:, 0], levels.basis[:, 1])
    found, n_left = shrink(season, 10.0, cells, levels, 0.1)
    kept = 1 - stats.chi2.isf(0.1, 2) / 5**2
    assert found == pytest.approx(kept * season, abs=1e-9)
    assert n_left == pytest.approx(2 * kept)
    assert not shrink(season / 5, 10.0, cells, levels, 0.1)[0].any()
    # A table of its own shares is that of independent columns, whatever its noise.
    mask, shares = np.ones((6, 6)), levels.shares
    table, energy = shrink_tables(99 * np.outer(shares, shares), mask, 1.0, [levels], [levels])
    assert table == pytest.approx(99 * np.outer(shares, shares))
    assert energy == 0


def test_orders_keep_first_days_and_weekdays():
    rng, n = np.random.default_rng(0), 300
    person, first = np.repeat(np.arange(n), 5), Date("2020-01-01", "2022-12-31").to_values
    gaps = rng.uniform(26, 34, 5 * n)
    monthly = Date("2020-01-01", "2022-12-31", heaps=[("month", 1.0)])
    starts = rng.choice(["2020-01-01", "2020-03-01"], n).astype("M8[s]")
    found = monthly.to_dates(add_gaps(first(starts)[person], gaps, person, monthly, rng))
    assert (found == found.astype("M8[M]")).all()
    weekly = Date("2020-01-01", "2022-12-31", weekdays=[0.2] * 5 + [0] * 2)
    starts = np.datetime64("2020-01-06", "s") + rng.integers(0, 5, n) * np.timedelta64(1, "D")
    found = weekly.to_dates(add_gaps(first(starts)[person], gaps, person, weekly, rng))
    assert np.is_busday(found.astype("M8[D]")).all()
    times = find_times(weekly, np.array([first(starts)[0], np.nan]))
    assert list_calendars(monthly) == ["months"]
    assert times.tolist() == [[0, starts[0].astype("M8[D]").item().weekday()], [12, 7]]
