"""Bounds and tests that audits rest on, against closed forms and simulations."""

import numpy as np
import pytest
from scipy import stats

from skdpgen.auditing.statistics import (
    Autocorrelation,
    equal_scale_p_value,
    find_equal_columns,
    mean_lower_bound,
    normality_p_value,
    rate_lower_bound,
    rate_upper_bound,
    standardize,
    std_lower_bound,
    std_upper_bound,
)


@pytest.mark.catches(
    "auditing.statistics:std_upper_bound",
    "stats.chi2.ppf(alpha, len(values) - 1)",
    "stats.chi2.isf(alpha, len(values) - 1)",
    param="0.1",
)
@pytest.mark.parametrize("alpha", [0.1, 0.01])
def test_bounds_hold_as_often_as_they_say(alpha):
    rng = np.random.default_rng(0)
    n_wrong = {"deviation": 0, "deviation below": 0, "mean": 0, "below": 0, "above": 0}
    for _ in range(1500):
        values = rng.normal(3.0, 2.0, size=200)
        n_wrong["deviation"] += std_upper_bound(values, alpha) < 2.0
        n_wrong["deviation below"] += std_lower_bound(values, alpha) > 2.0
        n_wrong["mean"] += mean_lower_bound(values, alpha) > 3.0
        n_found = rng.binomial(200, 0.3)
        n_wrong["below"] += rate_lower_bound(n_found, 200, alpha) > 0.3
        n_wrong["above"] += rate_upper_bound(n_found, 200, alpha) < 0.3
    # Clopper and Pearson's are wrong less often.
    most = stats.binom.isf(1e-6, 1500, alpha)
    assert max(n_wrong.values()) <= most * 1.15
    assert min(n_wrong.values()) > 0.4 * alpha * 1500


def test_bounds_at_the_ends():
    assert rate_lower_bound(0, 10, 0.05) == 0
    assert rate_upper_bound(10, 10, 0.05) == 1
    # No success in n trials bounds the rate by 1 - alpha^(1/n).
    assert rate_upper_bound(0, 10, 0.05) == pytest.approx(1 - 0.05**0.1)
    assert rate_lower_bound(10, 10, 0.05) == pytest.approx(0.05**0.1)
    assert std_upper_bound(np.ones(5), 0.01) == 0
    assert mean_lower_bound(np.full(9, 2.0), 1e-6) == 2
    # Audits state this ratio for their runs.
    spread = np.sqrt(stats.chi2.ppf(1e-3, 2500) / 2500)
    assert spread == pytest.approx(0.957, abs=0.001)


def test_normality():
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(300, 500))
    p_values = np.array([normality_p_value(sample) for sample in samples])
    assert 0.01 < np.mean(p_values < 0.05) < 0.12
    assert normality_p_value(rng.laplace(size=2000)) < 1e-9
    assert normality_p_value(rng.uniform(size=2000)) < 1e-9
    assert normality_p_value(samples[0], rng.uniform(size=2000)) < 1e-9


@pytest.mark.parametrize("power", [1, 2])
def test_equal_scale(power):
    """Scales are compared by squares of normal numbers, and by absolute values of Laplace noise."""
    rng, n_rows = np.random.default_rng(power), (40, 60)
    degrees = [(2 if power == 1 else 1) * n for n in n_rows]
    draw = rng.laplace if power == 1 else rng.normal

    def compare(factors, scale):
        drawn = [np.abs(draw(size=(n, 5))) * scale for n in n_rows]
        drawn[1] = drawn[1] * factors
        return equal_scale_p_value([(part**power).sum(0) for part in drawn], degrees)

    scale = np.array([0.1, 1, 1, 3, 0])
    p_values = np.array([compare(1.0, scale) for _ in range(2000)])
    # P-values of 4 numbers are combined by Bonferroni's inequality.
    assert 0.05 < np.mean(p_values < 0.1) < 0.13
    assert np.mean(p_values < 0.01) < 0.02
    for factors in (3.0, 1 / 3, [1, 4, 1, 1, 1], [1, 0, 1, 1, 1]):
        assert compare(np.array(factors), scale) < 1e-6
    assert equal_scale_p_value([np.zeros(2), np.zeros(2)], (5, 5)) == 1


def test_groups_of_different_scales_are_normal_together():
    rng = np.random.default_rng(0)
    groups = rng.normal(size=1000), rng.normal(3, 10, size=1000)
    assert normality_p_value(np.concatenate(groups)) < 1e-9
    assert normality_p_value(standardize(*groups)) > 1e-3
    assert standardize(np.ones(3), [1.0, 3.0]).tolist() == [0, 0, 0, -1, 1]


@pytest.mark.catches(
    "auditing.statistics:Autocorrelation.p_value",
    "np.where(2 * lags == self._n, 2.0, 1.0)",
    "np.where(2 * lags == self._n, 1.0, 1.0)",
    param="2",
)
@pytest.mark.parametrize("n", [2, 7, 12])
def test_lags(n):
    rng = np.random.default_rng(n)
    p_values = []
    for _ in range(400):
        lags = Autocorrelation(n)
        for row in rng.normal(size=(30, n)):
            lags.add(row)
        p_values.append(lags.p_value())
    assert 0.01 < np.mean(np.array(p_values) < 0.1) < 0.2
    for lag in range(1, n):
        lags = Autocorrelation(n)
        for row in rng.normal(size=(2000, n)):
            row[lag] = 0.8 * row[0] + 0.6 * row[lag]
            lags.add(row)
        assert lags.p_value() < 1e-6


def test_lags_of_one_number():
    lags = Autocorrelation(1)
    lags.add(np.ones(1))
    assert lags.p_value() == 1
    assert Autocorrelation(5).p_value() == 1


def test_equal_columns():
    rows = np.random.default_rng(0).normal(size=(5, 40))
    assert not len(find_equal_columns(rows, 1e-6))
    rows[:, 30] = rows[:, 3] + 1e-8
    rows[:, 7] = -rows[:, 20]
    pairs = {tuple(sorted(pair)) for pair in find_equal_columns(rows, 1e-6).tolist()}
    assert pairs == {(3, 30), (7, 20)}
