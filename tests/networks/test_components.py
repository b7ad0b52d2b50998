import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator

from skdpgen.arrays.box import BoxFormat
from skdpgen.images import draw_windows, find_shape
from skdpgen.mechanisms.base import NoisySum
from skdpgen.networks.components import (
    PrincipalComponents,
    choose_space,
    find_spaces,
    held_by_leading,
)
from skdpgen.preprocessing import LowFrequencies
from skdpgen.releases.sketches import _draw_directions
from skdpgen.transport import random_directions


@pytest.fixture
def X():
    rng = np.random.RandomState(0)
    axes = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    return rng.normal(size=(500, 6)) * [1, 0.5, 0.25, 0.1, 0.01, 0] @ axes.T


def test_exact_moments_give_the_singular_vectors(X):
    components = PrincipalComponents.from_noisy_moments(NoisySum(X.T @ X, 0.0), len(X), 3)
    _, values, vectors = np.linalg.svd(X, full_matrices=False)
    overlap = np.abs(vectors[:3] @ components.axes.numpy())
    assert_allclose(overlap, np.eye(3), atol=1e-5)
    assert_allclose(components.scale * components.spread, values[:3] / np.sqrt(500), rtol=1e-5)


@pytest.mark.parametrize(("whiten", "spread"), [(0.0, [4.0, 1.0]), (0.5, [2, 1]), (1.0, [1, 1])])
def test_whitening(whiten, spread):
    components = PrincipalComponents(torch.eye(2), torch.tensor([4.0, 1.0]), whiten)
    assert_allclose(components.spread, spread)
    row = torch.tensor([[4.0, 1.0]])
    assert_allclose(components.encode(row)[0], spread)
    assert_allclose(components.decode(components.encode(row)), row)


def test_components_that_are_mostly_noise_are_told_of():
    """500 rows of norm 1 that are alike, or in all directions, and noise on their moments."""
    rng = np.random.default_rng(0)
    for axes, is_told in ((np.eye(200)[:1], False), (np.eye(200), True)):
        X = rng.normal(size=(500, len(axes))) @ axes
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        noise = np.triu(rng.normal(size=(200, 200)), 1) * 2**0.5
        moments = NoisySum(X.T @ X + noise + noise.T + 2 * np.diag(rng.normal(size=200)), 2.0)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            PrincipalComponents.from_noisy_moments(moments, 500, 10)
        assert any("directions of noise" in str(w.message) for w in caught) == is_told


def test_pure_noise_gives_finite_components():
    rng = np.random.RandomState(0)
    noise = rng.normal(size=(6, 6))
    for std, moments in [(1.0, noise + noise.T), (1.0, -np.eye(6)), (0.0, np.zeros((6, 6)))]:
        components = PrincipalComponents.from_noisy_moments(NoisySum(moments, std), 10, 6)
        assert (components.spread > 0).all()
        assert torch.isfinite(components.encode(torch.ones(1, 6))).all()
        gram = components.axes.T @ components.axes
        assert_allclose(gram, np.eye(6), atol=1e-5)


def noisy(moments, std, seed=0):
    """Moments with the noise that is released on them: the same above the diagonal and below."""
    noise = np.triu(np.random.default_rng(seed).normal(size=moments.shape))
    noise[np.triu_indices(len(noise), 1)] /= np.sqrt(2)
    return NoisySum(moments + std * (noise + np.triu(noise, 1).T), std)


def smooth_images(side, n=2000, seed=0):
    """Sums of a few blots, with noise on pixels."""
    rng, at = np.random.default_rng(seed), np.arange(side)
    blots = np.exp(-((at - rng.uniform(2, side - 2, (40, 2, 1))) ** 2) / 8)
    blots = (blots[:, 0, :, None] * blots[:, 1, None]).reshape(40, -1)
    return rng.normal(size=(n, 40)) @ blots / 20 + 0.002 * rng.normal(size=(n, side**2))


@pytest.mark.parametrize("std", [10.0, 40.0, 200.0])
def test_share_that_components_hold_is_estimated(std):
    axes = np.linalg.qr(np.random.default_rng(1).normal(size=(300, 300)))[0]
    truth = (axes[:, :4] * [4000, 2000, 1000, 50]) @ axes[:, :4].T
    released = noisy(truth, std)
    values, vectors = np.linalg.eigh(released.value)
    held = np.trace(vectors[:, -4:].T @ truth @ vectors[:, -4:])
    assert held_by_leading(values, 4, std) == pytest.approx(held, rel=0.05)


@pytest.mark.parametrize("std", [1.0, 4.0, 20.0])
def test_components_of_images_are_smooth_where_there_is_noise(std):
    X = smooth_images(16)
    released = noisy(X.T @ X, std)
    components = PrincipalComponents.from_noisy_moments(released, len(X), 20)
    axes = components.axes.numpy()
    assert_allclose(axes.T @ axes, np.eye(20), atol=1e-5)
    plain = np.linalg.eigh(released.value)[1][:, -20:]
    held, by_plain = (np.square(X @ some).sum() for some in (axes, plain))
    assert held > {1.0: 1.01, 4.0: 1.05, 20.0: 1.05}[std] * by_plain
    # The more noise, the fewer frequencies.
    assert len(choose_space(released, 20)[1]) <= {1.0: 200, 4.0: 100, 20.0: 50}[std]


def test_columns_without_an_order_keep_all_of_the_space():
    X = smooth_images(16)[:, np.random.default_rng(0).permutation(256)]
    for moments in (noisy(X.T @ X, 4.0), NoisySum(smooth_images(16).T @ smooth_images(16), 0.0)):
        space, inside, _ = choose_space(moments, 20)
        assert (space == np.eye(256)).all()
        assert (inside == moments.value).all()


@pytest.mark.parametrize(
    ("n_columns", "n_components", "sizes"),
    [
        (64, 16, {16, 25, 36, 49}),
        (64, 64, set()),
        (48, 12, {12, 27}),  # three colours, 4 × 4
        (10, 4, {4, 6, 7, 9}),  # a line
        (1, 1, set()),
    ],
)
def test_spaces_of_low_frequencies(n_columns, n_components, sizes):
    spaces = list(find_spaces(n_columns, n_components))
    assert {space.shape[1] for space in spaces} == sizes
    for space in spaces:
        assert_allclose(space.T @ space, np.eye(space.shape[1]), atol=1e-12)
        # Each image of one brightness, of each channel, is in it.
        channel = np.zeros(n_columns)
        channel[: n_columns // (3 if n_columns == 48 else 1)] = 1
        assert_allclose(space @ (space.T @ channel), channel, atol=1e-12)


def test_local_directions_show_windows_of_decoded_images():
    generator = torch.Generator().manual_seed(0)
    for n_features in (100, 300):  # grey, and in three colours
        axes = torch.linalg.qr(torch.randn(n_features, 5, generator=generator))[0]
        components = PrincipalComponents(axes, torch.linspace(2, 0.1, 5), 0.4)
        blocks = list(
            draw_windows(find_shape(n_features, (1, 3)), 300, torch.Generator().manual_seed(1))
        )
        directions, windows = components.find_directions(blocks), torch.cat(blocks)
        assert_allclose(directions.norm(dim=0), 1, rtol=1e-6)
        codes = torch.randn(7, 5, generator=generator, dtype=torch.float64)
        shown = components.double().decode(codes) @ windows.T
        along = codes @ directions
        # The same but for the unit of each.
        units = (shown / along).median(0).values
        assert_allclose(shown, along * units, atol=1e-6 * shown.abs().max())
        assert (units > 0).all()


def test_windows_are_small_and_everywhere():
    windows = torch.cat([*draw_windows((1, 20, 20), 2000, torch.Generator().manual_seed(0))])
    energy = windows.square().view(-1, 20, 20)
    energy = energy / energy.sum((1, 2), keepdim=True)
    at = torch.arange(20.0, dtype=torch.float64)
    for axis in (1, 2):
        along = energy.sum(3 - axis)
        mean = along @ at
        spread = (along @ at.square() - mean**2).sqrt()
        # Isotropic filters have 5.8.
        assert 1 < spread.median() < 4
        assert mean.min() < 3
        assert mean.max() > 16


@pytest.mark.parametrize("n_columns", [401, 81, 1])
def test_rows_that_are_no_images_or_tiny_ones_have_no_windows(n_columns):
    assert list(draw_windows(find_shape(n_columns), 10, torch.Generator())) == []
    components = PrincipalComponents(torch.eye(5), torch.ones(5))
    assert components.find_directions([]).shape == (5, 0)


def test_half_of_the_slices_of_images_are_local():
    axes = torch.linalg.qr(torch.randn(100, 6, generator=torch.Generator().manual_seed(0)))[0]
    components = PrincipalComponents(axes, torch.linspace(2, 0.1, 6))
    format = BoxFormat(100)
    directions = _draw_directions(format, components, 6, 24, torch.Generator().manual_seed(1))
    assert directions.shape == (6, 24)
    assert_allclose(directions.norm(dim=0), 1, rtol=1e-6)
    windows = draw_windows((1, 10, 10), 12, torch.Generator().manual_seed(1))
    assert_allclose(directions[:, :12], components.find_directions(windows), atol=1e-6)
    assert_allclose(directions[:, 12:18].T @ directions[:, 12:18], torch.eye(6), atol=1e-6)
    # Random directions remain for rows that are no images, or with a number, or no components.
    longer = PrincipalComponents(torch.eye(101)[:, :6], torch.ones(6))
    no_images = [(BoxFormat(101), longer), (BoxFormat(100, has_number=True), longer)]
    for of in (*no_images, (format, None)):
        whole = _draw_directions(*of, 6, 24, torch.Generator().manual_seed(1))
        assert_allclose(whole, random_directions(6, 24, generator=torch.Generator().manual_seed(1)))


@pytest.mark.parametrize("n_frequencies", [6, 20])
def test_windows_go_through_low_frequencies(n_frequencies):
    """A direction of coefficients says of those of an image what its window says of the image."""
    named = pd.DataFrame(np.zeros((1, 144)), columns=[f"pixel {i}" for i in range(144)])
    encoder = FrozenEstimator(LowFrequencies(n_frequencies).fit(named))
    format = BoxFormat(144, encoder=encoder)
    windows = torch.cat([*draw_windows((1, 12, 12), 300, torch.Generator().manual_seed(1))])
    with warnings.catch_warnings(action="error"):  # such as that windows have no names
        seen = torch.cat([*format.draw_windows(300, torch.Generator().manual_seed(1))])
    coefficients = np.random.default_rng(0).normal(size=(5, format.n_columns))
    images = encoder.inverse_transform(coefficients)
    assert_allclose(coefficients @ seen.numpy().T, images @ windows.numpy().T, atol=1e-10)


@pytest.mark.parametrize(
    "encoder",
    [
        PCA(5).fit(np.random.default_rng(0).normal(size=(20, 144))),
        LowFrequencies(6, image_shape=(9, 16)).fit(np.zeros((1, 144))),
        LowFrequencies(6, image_shape=None).fit(np.zeros((1, 144))),
    ],
)
def test_other_encoders_show_no_windows(encoder):
    format = BoxFormat(144, encoder=FrozenEstimator(encoder))
    assert list(format.draw_windows(10, torch.Generator())) == []
