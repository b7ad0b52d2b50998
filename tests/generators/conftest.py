"""Real data for the tests of generators."""

import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.model_selection import train_test_split


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return train_test_split(X, y, test_size=450, random_state=0, stratify=y)


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)
