"""Two-way tables judged by their own noise: shrunk ones, and those with empty cells."""

from dataclasses import replace

import numpy as np
import pytest

from skdpgen.learners import dependence as _dependence
from skdpgen.learners.marginals import Marginals
from skdpgen.mechanisms.two_way import Tables, tables_with_later

SHARES = np.arange(1, 9) / 36
EXPECTED = 4000 * np.outer(SHARES, SHARES)
CHECKS = np.where(np.indices((8, 8)).sum(0) % 2, 1.0, -1.0)
CONSTANTS = _dependence.CONSTANTS


def release(exact, noise, std, is_knot=False):
    """Tables of two columns with noise of a standard deviation, and their exact marginals."""
    levels, cells = np.concatenate([exact.sum(1), exact.sum(0)]), (exact + noise).ravel()
    tables = Tables(exact.shape, cells, levels, 1.0, std, std * 2**0.5)
    return tables, Marginals(levels, 0 * levels, exact.sum(), levels < 0, is_knot)


def find_empty(exact, std, rng):
    noisy = release(exact, std * rng.normal(size=exact.shape), std)
    return _dependence.estimate_with_empty(*noisy, np.ones(exact.size)).reshape(exact.shape)


def test_tables_of_independent_columns_are_shrunk_but_at_the_rate():
    rng, errors, shrunk = np.random.default_rng(0), [], []
    for _ in range(400):
        noisy = [release(EXPECTED, 10 * rng.normal(size=(8, 8)), 10.0) for _ in range(3)]
        found, shares = _dependence.shrink_to_independence(*map(list, zip(*noisy, strict=True)))
        shrunk.append((shares < 1).all())
        errors += [((part.cells - EXPECTED.ravel()) ** 2).mean() for part in found]
    assert 1 - np.mean(shrunk) == pytest.approx(CONSTANTS.dependent_rate, abs=0.025)
    assert np.mean(errors) < 0.1 * 10**2


@pytest.mark.parametrize(("size", "kept"), [(1.1, 1 - 62 / (64 * 1.1**2)), (2.0, 1)])
def test_shrunk_tables_keep_the_share_of_james_and_stein(size, kept):
    noisy = release(EXPECTED, 10 * size * CHECKS, 10.0)
    (found,), shares = _dependence.shrink_to_independence(*([part] for part in noisy))
    np.testing.assert_allclose(found.cells, (EXPECTED + kept * 10 * size * CHECKS).ravel())
    np.testing.assert_allclose(shares, kept)


def test_each_pair_of_columns_is_judged_alone():
    sizes = (8, 8, 8)
    cells, levels = np.zeros(3 * 64), np.tile(4000 * SHARES, 3)
    first, second, _ = tables_with_later(cells, sizes)
    first[:] = np.hstack([EXPECTED + 50 * CHECKS, EXPECTED + 10.5 * CHECKS])
    second[:] = EXPECTED + 10.5 * CHECKS
    tables = Tables(sizes, cells, levels, 1.0, 10.0, 10 * 2**0.5)
    marginal = Marginals(levels, 0 * levels, 4000.0, levels < 0, levels < 0)
    (found,), (shares,) = _dependence.shrink_to_independence([tables], [marginal])
    kept = 1 - 62 / (64 * 1.05**2)
    for c, d, own in ((0, 1, 1.0), (0, 2, kept), (1, 2, kept)):
        gap = tables.pair(c, d) - EXPECTED
        np.testing.assert_allclose(found.pair(c, d), EXPECTED + own * gap)
        np.testing.assert_allclose(replace(tables, cells=shares).pair(c, d), own)


def test_cells_far_above_the_noise_stay_beside_empty_ones():
    rng = np.random.default_rng(0)
    exact = EXPECTED * rng.choice([0, 0.62, 1.37, 2.6], size=(8, 8))
    found = find_empty(exact, 2.0, rng)
    is_far = exact > 100
    assert is_far.sum() > 10
    assert np.sqrt(((found - exact)[is_far] ** 2).mean()) < 1.5 * 2.0


def test_blocks_are_found_with_their_marginals():
    exact = EXPECTED * np.kron(np.eye(2), np.ones((4, 4)))
    found = find_empty(exact, 2.0, np.random.default_rng(0))
    np.testing.assert_array_equal(found == -CONSTANTS.pull * 2.0, exact == 0)
    sums = [[part.sum(0), part.sum(1)] for part in (found.clip(0), exact)]
    np.testing.assert_allclose(*sums, rtol=1e-6)


def test_empty_cells_are_false_at_most_at_their_rate():
    rng, (is_empty, is_false, is_dense) = np.random.default_rng(0), ([], [], [])
    for std in [3.0, 10.0, 30.0] * 20:
        exact = EXPECTED * rng.choice([0, 0, 0.5, 1, 2, 3], size=(8, 8))
        is_empty.append(find_empty(exact, std, rng) < 0)
        is_false.append(is_empty[-1] & (exact > 0))
        is_dense.append(np.isnan(find_empty(EXPECTED * (1 + 0.5 * CHECKS), std, rng)).all())
    assert np.sum(is_false) < CONSTANTS.empty_rate * np.sum(is_empty)
    assert np.mean(is_dense) > 0.95


def test_the_table_of_a_uniform_number_with_itself_is_exact():
    exact = 1200 * np.diag([0.25, 0.5, 0.25])
    found = _dependence.list_own_tables(exact.ravel(), (3, 3), release(exact, 0, 1.0, True)[1])
    for _, table in found:  # integrals of products of hat functions of three knots
        np.testing.assert_allclose(table, np.array([[2, 1, 0], [1, 4, 1], [0, 1, 2]]) / 12)
