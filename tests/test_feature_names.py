"""Rows that the package passes on have the names that estimators were fitted with."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator

from skdpgen import DPSlicedWassersteinGenerator, DPSWFlowSampler
from skdpgen.adaptation import DPSWDDomainClassifier, reverse_validation_score
from skdpgen.arrays.numbers import match_names

pytestmark = pytest.mark.filterwarnings(
    "ignore", "error:X (does not have valid|has) feature names:UserWarning"
)

RNG = np.random.default_rng(0)
Y = np.arange(60) % 2
X = pd.DataFrame(RNG.normal(size=(60, 2)) + np.c_[4 * Y, 0 * Y], columns=["u", "v"])
TARGET = X + 1.0
CLASSIFIER = DPSWDDomainClassifier(epsilon=5.0, delta=1e-3, n_steps=2)
SAMPLER = DPSWFlowSampler(5.0, 1e-3, bounds=(-9, 9), clip_norm=1.0, encoder=None, n_steps=2)
ROWS = {"frame": TARGET, "array": TARGET.to_numpy(), "numbered": TARGET.set_axis([0, 1], axis=1)}


@pytest.mark.parametrize("source", [X, X.to_numpy()], ids=["frame", "array"])
@pytest.mark.parametrize("rows", ROWS.values(), ids=ROWS)
def test_a_sampler_of_any_container_gives_target_rows(source, rows):
    fitted = clone(CLASSIFIER).fit_to_sampler(source, Y, clone(SAMPLER).fit(rows))
    assert reverse_validation_score(fitted, source, Y, rows) >= 0


def test_target_rows_of_objects_stay_an_array():
    target = TARGET.to_numpy().astype(object)
    fitted = clone(CLASSIFIER).set_params(bounds=(-9, 9)).fit(X.to_numpy(), Y, X_target=target)
    assert isinstance(fitted.target_sampler_.sample(2), np.ndarray)


@pytest.mark.parametrize("rows", [TARGET[["v", "u"]], TARGET.assign(w=1.0)], ids=["order", "more"])
def test_a_sampler_of_other_columns_is_refused(rows):
    sampler = clone(SAMPLER).fit(rows)
    with pytest.raises(ValueError, match="feature names should match"):
        clone(CLASSIFIER).fit_to_sampler(X, Y, sampler)


def test_labels_of_a_sampler_are_ignored():
    sampler = DPSlicedWassersteinGenerator(5.0, 1e-3, bounds=(-9, 9), classes=[0, 1], n_steps=2)
    fitted = clone(CLASSIFIER).fit_to_sampler(X, Y, sampler.fit(TARGET, Y))
    assert fitted.predict(X).shape == (60,)


@pytest.mark.parametrize("sampler", [None, "flow", DPSWFlowSampler])
def test_objects_that_are_no_sampler_are_refused_by_name(sampler):
    with pytest.raises(ValueError, match=r"^sampler must be a fitted generator"):
        clone(CLASSIFIER).fit_to_sampler(X, Y, sampler)


def test_encoders_get_the_names_of_their_fit():
    encoder = FrozenEstimator(PCA(1).fit(X))
    sampler = clone(SAMPLER).set_params(encoder=encoder).fit(X)
    assert sampler.score(X) <= 0
    adapter = clone(CLASSIFIER).set_params(sampler=clone(SAMPLER).set_params(encoder=encoder))
    assert adapter.fit(X, Y, X_target=TARGET).transform(X).shape == (60, 50)


def test_rows_of_another_width_stay():
    encoder = PCA(1).fit(X)
    assert match_names(encoder, np.ones((3, 5))).shape == (3, 5)
    assert list(match_names(encoder, np.ones((3, 2)))) == ["u", "v"]
