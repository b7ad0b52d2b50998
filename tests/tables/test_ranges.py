"""Ranges and quantiles from noisy counts, against counts that are written down."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skdpgen.histograms.grids import wide_knots
from skdpgen.histograms.ranges import (
    choose_per_octave,
    count_affordable,
    find_range,
    narrow_range,
    weigh_sizes,
)
from skdpgen.tables.discovery.densities import _denoise, find_cuts, find_far, quantile_knots


def count(knots, values):
    """Return the sums of the hat functions on the knots."""
    places = np.interp(values, knots, np.arange(len(knots)))
    left = np.floor(places).astype(int)
    share, size = places - left, len(knots) + 1
    return (np.bincount(left, 1 - share, size) + np.bincount(left + 1, share, size))[:-1]


def test_the_wide_grid():
    knots = wide_knots()
    assert len(knots) == 2 * (125 * 8 + 1) + 1
    assert_array_equal(knots, -knots[::-1])
    assert_allclose(knots[-1001:], 2.0 ** (np.arange(-480, 521) / 8))
    # Floats hold fewer numbers of two decimals.
    assert wide_knots(2)[-1] == 2.0**45
    assert set(wide_knots(n_per_octave=2)) < set(knots)


def test_knots_closer_than_a_unit_are_one():
    knots = wide_knots(0, 4)
    assert_array_equal(knots[(knots > 0) & (knots < 12)], [1, 2, 3, 4, 5, 6, 7, 8, 10, 11])
    assert 0.5 in wide_knots(1)
    assert 0.25 not in wide_knots(1)


def test_counts_that_can_be_told_from_noise():
    assert count_affordable(6000, 10.0, 8, 500) == 100
    assert count_affordable(6000, 0.0, 8, 500) == 500
    assert [count_affordable(60, 10.0, 8, 500), count_affordable(10**6, 10.0, 8, 500)] == [8, 500]
    # 24 octaves, six deviations in each cell of them.
    assert [choose_per_octave(n, 10.0) for n in (100, 2879, 2880, 5760, 10**5)] == [1, 1, 2, 4, 8]
    assert choose_per_octave(5, 0.0) == 8


KNOTS = np.arange(1.0, 65)


@pytest.mark.parametrize("std", [0.0, 1.0])
def test_a_range_reaches_from_the_first_to_the_last_count(std):
    counts = np.zeros(64)
    counts[20:31] = 100
    counts[[19, 31]] = 50  # what values between the knots 20 and 32 leave on these
    assert find_range(KNOTS, counts, std) == (20, 32, True)


def test_a_last_knot_with_more_than_its_inner_side_brings_has_values_beyond():
    counts = np.zeros(64)
    counts[20:31] = 100
    assert find_range(KNOTS, counts, 1.0) == (20, 32, True)
    counts[30] = 51
    assert find_range(KNOTS, counts, 1.0) == (20, 31, True)


def test_windows_show_what_no_knot_does():
    counts = np.zeros(64)
    counts[16:48] = 2.0
    lower, upper, is_resolved = find_range(KNOTS, counts, 1.0)
    assert is_resolved
    assert (lower, upper) == pytest.approx((17, 48), abs=1)
    assert not find_range(KNOTS, counts / 4, 1.0)[2]


def test_mere_noise_is_seldom_taken_for_values():
    rng = np.random.RandomState(0)
    knots = wide_knots(0, 2)
    found = [find_range(knots, rng.normal(0, 7, len(knots)), 7.0)[2] for _ in range(1000)]
    assert np.mean(found) < 0.01


def test_a_hidden_range_is_where_its_values_are_most_likely():
    """Windows have a posterior distribution, by the number of values and by usual sizes."""
    knots, rng = wide_knots(0, 1), np.random.RandomState(0)
    exact = count(knots, rng.lognormal(8, 1, 300))
    found = [
        find_range(knots, exact + noise, 60.0, 300, 1, weigh_sizes(knots))
        for noise in rng.normal(0, 60, (40, len(knots)))
    ]
    lower, upper, is_resolved = np.transpose(found)
    assert is_resolved.mean() < 0.5
    assert np.mean((lower >= 0) & (lower < 2**12) & (upper >= 2**11) & (upper <= 2**16)) > 0.8


def test_a_range_seldom_grows_into_noise():
    rng = np.random.RandomState(0)
    knots, ends = wide_knots(None, 8), []
    exact = count(knots, rng.uniform(18, 89, 3000))
    for _ in range(300):
        lower, upper, _ = find_range(knots, exact + rng.normal(0, 13, len(knots)), 13.0)
        ends.append((lower, upper))
    lower, upper = np.transpose(ends)
    assert np.quantile(lower, 0.95) < 22
    assert np.quantile(upper, 0.05) > 84
    assert np.mean((upper > 200) | (lower < 8)) < 0.02


def test_both_sides_are_treated_alike():
    rng = np.random.RandomState(0)
    for scale in (1, 30):
        knots = wide_knots(None, 2)
        counts = count(knots, scale * rng.normal(size=500)) + rng.normal(0, 5, len(knots))
        lower, upper, is_resolved = find_range(knots, counts, 5.0)
        assert find_range(-knots[::-1], counts[::-1], 5.0) == (-upper, -lower, is_resolved)


def test_zero_is_an_end_unless_there_is_more_beyond():
    knots = np.array([-4.0, -2, -1, 0, 1, 2, 4, 8])
    counts = np.array([0.0, 0, 2, 100, 100, 90, 0, 0])
    assert find_range(knots, counts, 1.0)[0] == 0
    counts[1] = 50
    assert find_range(knots, counts, 1.0)[0] < 0


def test_range_near_zero_begins_there():
    knots = wide_knots(None, 2)
    assert find_range(knots, count(knots, np.linspace(0.3, 10, 1000)), 1.0)[0] == 0
    assert find_range(knots, count(knots, -np.linspace(0.3, 10, 1000)), 1.0)[1] == 0
    assert find_range(knots, count(knots, np.linspace(3, 10, 1000)), 1.0)[0] > 2


@pytest.mark.parametrize("value", [-7.0, 0.0, 3.0, 2.0**40, -(2.0**40)])
def test_a_range_of_one_value(value):
    knots = wide_knots(0, 1)
    lower, upper, is_resolved = find_range(knots, count(knots, np.full(100, value)), 1.0)
    assert is_resolved
    assert lower < upper
    assert lower <= value <= upper
    assert upper - lower <= max(1, 4 * abs(value))


def test_a_range_that_lacks_many_values_is_not_resolved():
    counts = np.zeros(64)
    counts[20] = 1000
    assert find_range(KNOTS, counts, 1.0, 1000)[2]
    assert not find_range(KNOTS, counts, 1.0, 1300)[2]
    assert find_range(KNOTS, counts, 100.0, 1300)[2], "That may be noise."


def test_a_range_is_narrowed_where_nothing_is():
    counts = np.zeros(64)
    counts[20:31] = 100
    assert narrow_range(KNOTS, counts, 0.1, 1100) == (20, 32)


def test_a_range_stays_where_nothing_cannot_be_told_from_something():
    counts = np.zeros(64)
    counts[20:31] = 100
    lower, upper = narrow_range(KNOTS, counts, 100.0, 1100)
    assert (lower, upper) == (1, 64)
    # Not full, but a twentieth of all.
    counts[5] = 60
    assert narrow_range(KNOTS, counts, 10.0, 1160)[0] <= 6


def test_quantiles():
    knots = np.linspace(0, 1, 101)
    values = np.linspace(0, 1, 20_001) ** 2
    found = quantile_knots(knots, count(knots, values), 1.0, 11)
    assert_allclose(found, np.linspace(0, 1, 11) ** 2, atol=0.02)


def test_quantiles_of_nothing_are_even():
    knots = np.linspace(0, 10, 21)
    for counts in (np.zeros(21), np.full(21, -5.0)):
        found = quantile_knots(knots, counts, 10.0, 5)
        assert_allclose(found, [0, 2.5, 5, 7.5, 10])


def test_long_tails_get_knots_that_grow_apart():
    knots = np.r_[0, 2.0 ** np.arange(0, 20, 0.25)]
    values = np.random.RandomState(0).lognormal(3, 1, 20_000)
    found = quantile_knots(knots, count(knots, values), 1.0, 11)
    last = np.quantile(values, 0.9)
    beyond = found[found > last * 1.1]
    assert beyond[-1] == knots[-1]
    assert 7 <= len(beyond) <= 10
    ratios = beyond[1:-1] / beyond[:-2]
    assert ((2 < ratios) & (ratios < 4)).all()
    # On the other side alike, and not where there is no long tail.
    mirrored = quantile_knots(-knots[::-1], count(knots, values)[::-1], 1.0, 11)
    assert_allclose(mirrored, -found[::-1], rtol=1e-2)
    even = np.linspace(0, 1, 101)
    assert len(quantile_knots(even, count(even, np.linspace(0, 1, 20_000)), 1.0, 11)) == 11


def test_noise_is_not_taken_for_a_tail():
    """Quantiles follow from what shows in sums: positive noise far out adds up to nothing."""
    rng = np.random.RandomState(0)
    knots, n_near, far = np.linspace(0, 100, 201), [], []
    exact = count(knots, rng.uniform(0, 10, 3000))
    for _ in range(50):
        noisy = exact + rng.normal(0, 15, 201)
        n_near.append((quantile_knots(knots, noisy, 15.0, 11) <= 11).sum())
        found = _denoise(noisy, 15.0)
        assert found.min() >= 0
        assert found.sum() == pytest.approx(max(noisy.sum(), 0))
        far.append(found[knots > 11].sum() / found.sum())
    assert np.mean(n_near) > 9
    assert np.mean(far) < 0.02
    exact_quantile = quantile_knots(knots, exact, 0.0, 11)
    assert exact_quantile[exact_quantile < 10][-1] == pytest.approx(9, abs=0.3)
    assert_allclose(_denoise(exact, 0.0), exact, atol=1e-9)


def test_cuts_part_what_was_counted_in_equal_shares():
    knots = np.linspace(0, 1, 201)
    values = np.linspace(0, 1, 20_001) ** 3
    counts, positions = count(knots, values), np.array([0, 0.125, 1])
    cuts = find_cuts(knots, counts, 0.0, positions)
    expected = [*np.linspace(0, 0.5, 9)[1:-1] ** 3, *np.linspace(0.5, 1, 9)[1:-1] ** 3]
    # A twentieth of each interval is even.
    assert_allclose(cuts, expected, atol=0.02)
    assert (np.diff(cuts) > 0).all()
    # Where each part would be within noise, there are fewer, and then none.
    assert [len(find_cuts(knots, counts, std, positions)) for std in (1e4, 3e4, 2e5)] == [8, 4, 0]
    # Whole numbers with nothing between, and no counts at all.
    few = np.array([0, 0.01, 0.02, 1])
    assert min(find_cuts(knots, counts, 0.0, few, unit=0.01)) > 0.02
    assert find_cuts(knots, 0 * counts, 1.0, positions) == []


@pytest.mark.parametrize(
    ("knots", "far"),
    [
        (np.linspace(0, 1, 16), []),
        ([0, 1, 2, 3, 4, 10, 30], [5, 6]),
        ([-30, -10, 0, 1, 2, 3, 4], [0, 1]),
        ([-300, 0, 1, 2, 3, 4, 5], [0]),
        ([0, 1], []),
        ([0, 10, 100], [2]),
        ([0, 1, 1.9, 2.9], []),
    ],
)
def test_knots_that_are_far_out(knots, far):
    assert_array_equal(np.flatnonzero(find_far(np.array(knots, dtype=float))), far)


@pytest.mark.parametrize("n_knots", range(2, 8))
def test_some_knots_are_not_far_out(n_knots):
    """Evenly spaced ones are not, too, whose gaps differ by rounding."""
    rng = np.random.default_rng(0)
    for _ in range(300):
        gaps = 1 + rng.choice([1e-15, 0.1, 3]) * rng.random(n_knots - 1)
        assert not find_far(rng.normal() + np.r_[0, np.cumsum(gaps)]).all()
