"""Low frequencies of images."""

import numpy as np
import pytest
from scipy.fft import dctn
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator

from skdpgen import DPSWFlowSampler
from skdpgen.encoders import PrivatePCA
from skdpgen.preprocessing import LowFrequencies


def test_coefficients_are_those_of_the_cosine_transform():
    X = load_digits().data[:20]
    expected = dctn(X.reshape(-1, 8, 8), axes=(1, 2), norm="ortho")[:, :5, :5].reshape(20, -1)
    encoder = LowFrequencies(5).fit(X)
    np.testing.assert_allclose(encoder.transform(X), expected, atol=1e-12)
    np.testing.assert_allclose(
        encoder.transform(encoder.inverse_transform(expected)), expected, atol=1e-12
    )
    np.testing.assert_allclose(
        LowFrequencies(8)
        .fit(X)
        .inverse_transform(dctn(X.reshape(-1, 8, 8), axes=(1, 2), norm="ortho").reshape(20, -1)),
        X,
        atol=1e-12,
    )


def test_channels_and_lines():
    X = np.random.RandomState(0).normal(size=(6, 60))
    images = X.reshape(6, 5, 6, 2)
    coded = LowFrequencies(2, image_shape=(2, 5, 6)).fit(X).transform(images.transpose(0, 3, 1, 2))
    assert coded.shape == (6, 8)
    for data, shape in ((images, "auto"), (X, (5, 6, 2))):
        encoder = LowFrequencies(2, image_shape=shape).fit(data)
        np.testing.assert_allclose(encoder.transform(data), coded, atol=1e-12)
        assert encoder.inverse_transform(coded).shape == data.shape
    assert LowFrequencies(5).fit(X).transform(X).shape == (6, 5)
    with pytest.raises(ValueError, match="do not tell which axis"):
        LowFrequencies().fit(X.reshape(6, 4, 5, 3))
    # A square that is said to be none is a line.
    assert LowFrequencies(5, image_shape=None).fit(X[:, :16]).image_shape_ == (1, 1, 16)
    made = LowFrequencies(2).fit(X[:, :16]).set_output(transform="pandas").transform(X[:, :16])
    assert list(made) == [f"lowfrequencies{i}" for i in range(4)]
    with pytest.raises(ValueError, match="of 60 features"):
        LowFrequencies(image_shape=(5, 5)).fit(X)
    with pytest.raises(ValueError, match="n_frequencies"):
        LowFrequencies(0).fit(X)


def test_components_of_what_an_object_encodes():
    X = load_digits().data
    encoder = LowFrequencies(5).fit(X)
    sampler = DPSWFlowSampler(
        20.0,
        bounds=(0, 16),
        clip_norm=60.0,
        encoder=[FrozenEstimator(encoder), PrivatePCA(8)],
        n_steps=200,
        random_state=0,
    ).fit(X)
    assert sampler.privacy_.releases == ("second moments", "slice sketch")
    made = sampler.sample(300)
    assert made.shape == (300, 64)
    # Nothing of what was left out.
    smooth = encoder.inverse_transform(encoder.transform(X))
    assert np.abs(made.mean(0) - smooth.mean(0)).max() < 2
    with pytest.raises(ValueError, match=r"encoder as a list is \[public transformer, PrivatePCA"):
        DPSWFlowSampler(encoder=[FrozenEstimator(encoder), "pca"]).fit(X)
