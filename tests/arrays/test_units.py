"""Warnings of columns that are at their bounds, from released values."""

import math
import warnings

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator

from skdpgen import (
    DPSlicedWassersteinGenerator,
    DPSWFlowSampler,
    LDPEntropicGAN,
)
from skdpgen.adaptation import DPSWDDomainAdapter
from skdpgen.arrays.box import BoxFormat
from skdpgen.arrays.units import _find_means, _sum_at, are_near, warn_of_moments, warn_of_norms
from skdpgen.mechanisms.base import NoisySum
from skdpgen.preprocessing import DPPCA
from skdpgen.releases import SlicedRows
from skdpgen.transport import SliceBasis, random_directions

BOX = BoxFormat(3, bounds=(0, 1))


def said(function, *args, **params):
    """Return the warnings of columns or rows at a bound."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function(*args, **params)
    messages = [str(warning.message) for warning in caught]
    return [text for text in messages if text.startswith("Nearly all")]


def draw(n=2000, seed=0):
    return np.random.default_rng(seed).random((n, 3))


def test_small_distances_are_those_that_noise_cannot_hide():
    # 3.72 deviations leave 1 chance of 10,000.
    assert are_near(0.0, 0.0134)
    assert not are_near(0.0, 0.0135)
    # Each of two has half of the chance.
    assert not are_near(np.zeros(2), 0.0134).any()
    # Beyond three deviations it is a distance, unless it is negligible.
    assert are_near(np.array([0.029, 0.031]), 0.01).tolist() == [False, False]
    assert are_near(np.array([0.014, 0.016]), 0.005).tolist() == [True, False]
    assert are_near(np.array([0.0049, -0.0049, 0.0051]), 1e-6).tolist() == [True, True, False]


@pytest.mark.parametrize("std", [0.001, 0.004, 0.01, 0.03, 0.3])
def test_distances_beyond_a_twentieth_are_not_called_small(std):
    noise = np.random.default_rng(0).normal(scale=std, size=(2000, 20))
    # 0.2 of 2,000 fits are expected at most, and more than 2 come in 0.1% of such draws.
    assert sum(are_near(0.0501 + part, std).any() for part in noise) <= 2


def make_basis(d, k=800, n_harmonics=3):
    directions = random_directions(d, k, generator=torch.Generator().manual_seed(0))
    return SliceBasis(directions.double(), 3 / math.sqrt(d), n_harmonics)


def sum_up(basis, rows):
    """Return the sums of harmonics over rows, of shape (B, 2, k)."""
    values = basis.harmonics(basis.angles(torch.as_tensor(rows)))
    return (values * basis.weights.double()[:, None, None, None]).sum(2)


@pytest.mark.parametrize("d", [1, 3, 40])
def test_means_of_equal_rows_are_exact_whatever_phases_wrap(d):
    basis, row = make_basis(d), np.full(d, 1 / math.sqrt(d))
    sums = sum_up(basis, np.tile(row, (7, 1)))
    means, _ = _find_means(basis.frequencies.numpy(), sums[0].numpy(), 0.1)
    np.testing.assert_allclose(means, row, atol=2e-4)
    # Their harmonics have all of the sums there, and little of them at 0.
    assert _sum_at(torch.as_tensor(row) @ basis.frequencies, basis, sums) == pytest.approx(7, 1e-3)
    assert _sum_at(torch.zeros(basis.n_projections), basis, sums) < 4


def test_means_have_the_stated_covariance():
    basis, rng, rows = make_basis(3), np.random.default_rng(0), draw(500) / math.sqrt(3)
    exact = sum_up(basis, rows)[0].numpy()
    found = [
        _find_means(basis.frequencies.numpy(), exact + 8 * rng.normal(size=exact.shape), 8.0)
        for _ in range(300)
    ]
    means, covariances = map(np.array, zip(*found, strict=True))
    ratio = means.std(axis=0) / np.sqrt(covariances.mean(axis=0).diagonal())
    # The deviation of 300 draws is off by 4%.
    np.testing.assert_allclose(ratio, 1, atol=0.16)
    np.testing.assert_allclose(means.mean(axis=0), rows.mean(axis=0), atol=0.002)


def test_moments_tell_bounds_by_squares():
    def warn(squares, clip_norm=1.0, std=0.1):
        format = BoxFormat(3, bounds=([0, 2, 0], 5), clip_norm=clip_norm)
        value = np.diag(1000 * np.array(squares) / 3 / clip_norm**2)
        return said(warn_of_moments, format, NoisySum(value, std), 1000)

    assert not warn([0.0, 0.01, 0.3])
    (message,) = warn([0.0, 0.0, 0.999])
    # A lower bound of 0 is where most values of sparse columns are.
    assert "column 1 (2), column 2 (5)." in message
    assert "column 0 (0), column 1 (2), column 2 (0)" in warn([0.0, 0.0, 0.0])[0]
    # Rows may have been scaled down by the radius: squares of 0.002 were as much as 0.2.
    assert warn([0.3, 0.0002, 0.3])
    assert not warn([0.3, 0.0002, 0.3], clip_norm=0.1)
    assert not warn([0.3, 0.0, 0.3], std=5.0)


def test_counts_of_norms_tell_rows_at_all_bounds():
    names = "column 0 ({0}), column 1 ({0}), column 2 ({0})"
    (upper,) = said(warn_of_norms, BOX, np.array([0.0, 9.0, 991.0]), 5.0, 1000)
    (lower,) = said(warn_of_norms, BOX, np.array([1004.0, 0.0, 2.0]), 5.0, 1000)
    assert names.format(1) in upper
    assert names.format(0) in lower
    assert not said(warn_of_norms, BOX, np.array([0.0, 60.0, 940.0]), 5.0, 1000)
    assert not said(warn_of_norms, BOX, np.array([0.0, 0.0, 1000.0]), 50.0, 1000)


FITS = {
    "sketch": DPSWFlowSampler(bounds=(0, 1), n_steps=2),
    "declared radius": DPSWFlowSampler(bounds=(0, 1), clip_norm=1.0, n_steps=2),
    "components": DPSWFlowSampler(bounds=(0, 1), encoder="dp-pca", clip_norm=1.0, n_steps=2),
    "network": DPSlicedWassersteinGenerator(bounds=(0, 1), n_steps=2),
    "resampled": DPSWFlowSampler(bounds=(0, 1), release=SlicedRows(n_steps=40), clip_norm=1.0),
    "rows": DPSlicedWassersteinGenerator(
        bounds=(0, 1), release=SlicedRows(n_steps=40), clip_norm=1.0
    ),
    "local": LDPEntropicGAN(bounds=(0, 1), n_steps=2),
    "second moments": DPPCA(bounds=(0, 1)),
}


@pytest.mark.parametrize("name", FITS)
def test_a_column_in_other_units_is_named(name):
    fitted = clone(FITS[name]).set_params(epsilon=30.0, random_state=0)
    X = draw(6000)
    assert not said(fitted.fit, X)
    X[:, 1] += 1
    (message,) = said(fitted.fit, X)
    assert "in column 1 (1). Declare bounds" in message


def test_a_number_beyond_its_bounds_is_named():
    sampler = DPSWFlowSampler(5.0, bounds=(0, 1), y_bounds=(0, 1), n_steps=2, random_state=0)
    X = draw()
    assert not said(sampler.fit, X, X[:, 0])
    assert (
        "in y (1). Declare bounds (of a numeric y, y_bounds)"
        in said(sampler.fit, X, 9 + X[:, 0])[0]
    )


def test_rows_beyond_the_bounds_of_an_encoder_are_named():
    encoder = FrozenEstimator(PCA(2, random_state=0).fit(draw()))
    sampler = DPSWFlowSampler(10.0, bounds=(0, 1), encoder=encoder, n_steps=2, random_state=0)
    assert not said(sampler.fit, draw())
    assert "column 0 (0), column 1 (0), column 2 (0)" in said(sampler.fit, draw() - 9)[0]
    sampler.set_params(y_bounds=(0, 1))
    assert "in y (1)" in said(sampler.fit, draw(), 9 + draw()[:, 0])[0]


@pytest.mark.parametrize(
    ("target", "bound"), [(lambda X: 1 + 254 * X, 1), (lambda X: X - 1000, 0), (lambda X: X, None)]
)
def test_a_target_in_other_units_than_the_source_is_named(target, bound):
    X, y = draw(), np.arange(2000) % 2
    X[0], X[1] = 0, 1
    sampler = DPSWFlowSampler(n_steps=2)
    adapter = DPSWDDomainAdapter(10.0, n_steps=2, sampler=sampler, random_state=0)
    messages = said(adapter.fit, X, y, X_target=target(X))
    if bound is None:
        assert not messages
    else:
        assert f"column 2 ({bound})" in messages[0]
        assert "in the units of its source" in messages[0]


def test_columns_of_zeros_among_others_are_no_fault():
    """Sparse columns, and pixels at the edge, are as they should be."""
    rng = np.random.default_rng(0)
    X = np.eye(30)[(30 * rng.random(3000) ** 2).astype(int)]
    X[:, 7] = 0
    sampler = DPSWFlowSampler(10.0, bounds=(0, 1), encoder=None, n_steps=2, random_state=0)
    assert not said(sampler.fit, X)
    assert not said(sampler.set_params(clip_norm=1.0).fit, X)


def test_rows_as_long_as_a_declared_radius_are_told_of():
    pca = DPPCA(5.0, clip_norm=1.0, random_state=0)
    (message,) = said(pca.fit, 100 + draw())
    assert "a norm of clip_norm=1 or more" in message
    assert "Declare a larger clip_norm" in message
    assert not said(pca.set_params(clip_norm=2.0).fit, draw())
    # An inferred radius is near norms that are all alike.
    assert not said(DPPCA(5.0, bounds=(0, 1), random_state=0).fit, np.tile(draw(), (1, 100)))
