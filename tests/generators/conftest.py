"""Real data for the tests of generators, and what they release."""

import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.model_selection import train_test_split

from skdpgen.privacy import Curator


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X, y, test_size=450, random_state=0, stratify=y)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.fixture
def seen(monkeypatch):
    """Pairs of each mechanism that is released, and its result."""
    pairs, release = [], Curator.release

    def watched(curator, mechanism):
        released = release(curator, mechanism)
        pairs.append((mechanism, released))
        return released

    monkeypatch.setattr(Curator, "release", watched)
    return pairs
