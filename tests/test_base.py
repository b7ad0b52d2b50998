"""The template: what it refuses, what it keeps, and what it lets go."""

import gc
import sys
import warnings
import weakref

import numpy as np
import pandas as pd
import pytest
import torch
from joblib import Parallel, delayed
from numpy.testing import assert_array_equal
from randomgen import ChaCha

from skdpgen import DPSlicedWassersteinGenerator, DPSWFlowSampler, PrivacyBudget
from skdpgen.checks import check_number
from skdpgen.learners.training import Adam
from skdpgen.mechanisms.noise import NoiseSource
from skdpgen.preprocessing import DPPCA, LocalPrivatizer
from skdpgen.privacy import PrivacyLeakWarning, SpentError
from skdpgen.releases import from_release

# Not every test declares its classes.
pytestmark = pytest.mark.filterwarnings("ignore::skdpgen.privacy.PrivacyLeakWarning")

CLASSES = [0, 1]


@pytest.fixture
def X():
    return np.random.RandomState(0).normal(scale=0.4, size=(40, 3))


@pytest.fixture
def y():
    return np.arange(40) % 2


def make(**params):
    return DPSlicedWassersteinGenerator(**{"n_steps": 3, "random_state": 0, **params})


# Parameters.


@pytest.mark.parametrize("value", [0, -1, "1", None, np.inf, np.nan, True, [1]])
def test_check_positive(value):
    with pytest.raises(ValueError, match="width must be a positive number; got"):
        check_number("width", value)


def test_check_positive_takes_numbers_of_every_kind():
    for value in (1, 0.5, np.float32(2), np.int64(3)):
        check_number("width", value)
    check_number("width", None, optional=True)
    check_number("width", np.int64(3), whole=True)
    with pytest.raises(ValueError, match="a positive whole number or None"):
        check_number("width", 1.5, whole=True, optional=True)


@pytest.mark.catches(
    "base:BaseGenerator._start_sampling",
    "NoiseSource(self._find_seed(random_state), stream=1)",
    "NoiseSource(self._find_seed(random_state), stream=0)",
)
def test_samples_do_not_come_from_the_stream_of_the_noise(X, monkeypatch):
    """Whoever sees samples would learn of the noise: no two sources have one key."""
    keys = []

    def watched(key, **options):
        keys.append(key)
        return ChaCha(key=key, **options)

    monkeypatch.setattr("skdpgen.mechanisms.noise.ChaCha", watched)
    make(random_state=0).fit(X).sample(3)
    assert len(set(keys)) == len(keys) == 2


# Rows come in and go out.


@pytest.mark.parametrize(
    "params", [{}, {"encoder": "dp-pca"}, pytest.param({"bounds": (-1, 1)}, marks=pytest.mark.slow)]
)
def test_no_reference_to_the_rows_is_kept(X, y, params):
    X, y = X.copy(), y.astype(float)
    references = sys.getrefcount(X), sys.getrefcount(y)
    fitted = make(**params, y_bounds=(0, 1)).fit(X, y)
    gc.collect()
    assert (sys.getrefcount(X), sys.getrefcount(y)) == references
    frame = pd.DataFrame(X, columns=list("abc"))
    watched = weakref.ref(frame)
    fitted.fit(frame)
    del frame
    gc.collect()
    assert watched() is None


@pytest.mark.catches(
    "base:BaseGenerator._fit",
    "vars(self).pop(name, None)",
    """
    vars(self).pop(name, None)
    self.mean_ = dataset._held[0][0].mean(0)
    """,
)
def test_fitted_attributes_are_those_that_are_documented(X, y):
    """A new attribute could be a leak: whoever adds one says here that it is post-processing."""
    fitted = make(encoder="dp-pca").fit(pd.DataFrame(X, columns=list("abc")), y)
    public = {"n_samples_", "n_features_in_", "feature_names_in_", "classes_", "privacy_"}
    public |= {"release_", "encoder_"}
    released = {"class_probabilities_", "loss_curve_", "n_iter_", "bounds_", "clip_norm_"}
    private = {"_format", "_rows"}
    known = public | released | private
    assert vars(fitted).keys() - fitted.get_params().keys() == known, "Unknown attributes."


def test_delta_that_allows_to_publish_a_record(X):
    with pytest.warns(UserWarning, match="not below 1 / n_samples = 0.025"):
        make(delta=0.03).fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(delta=0.02, bounds=(-1, 1), clip_norm=1.0, random_state=None).fit(X)


def test_refit_forgets_labels(X, y):
    fitted = make(classes=CLASSES).fit(X, y)
    assert_array_equal(fitted.classes_, CLASSES)
    fitted.set_params(classes=None).fit(X)
    assert not hasattr(fitted, "classes_")
    assert isinstance(fitted.sample(3), np.ndarray)


def test_more_rows_than_a_score_or_a_block_holds():
    X = np.random.RandomState(0).normal(size=(12_000, 2))
    fitted = make(epsilon=5.0).fit(X)
    assert fitted.score(X) == fitted.score(X)
    assert fitted.sample(25_000).shape == (25_000, 2)


def test_a_score_looks_along_many_directions(X, monkeypatch):
    """Rows that were all moved by v score -|v| / √d; one direction tells next to nothing."""
    X = np.random.RandomState(0).normal(scale=0.02, size=(40, 30))
    fitted = make(bounds=(-1, 1), clip_norm=1.0).fit(X)
    for axis in range(5):
        moved = np.eye(30)[axis]
        monkeypatch.setattr(fitted, "sample", lambda *args, moved=moved, **kwargs: X + moved)
        # The mean of 100 squared cosines is off by less: their standard deviation is √2 / 30.
        # In the units of the release they were moved by v / 2√d.
        assert fitted.score(X) == pytest.approx(-0.5 / 30, rel=0.4)


def test_score_warns_of_other_names(X):
    for schema in ("auto", None):
        fitted = make(schema=schema).fit(pd.DataFrame(X, columns=list("abc")))
        with pytest.raises(ValueError, match="feature names should match"):
            fitted.score(pd.DataFrame(X, columns=list("abd")))


def test_fits_in_threads_are_those_of_one_thread(X):
    alone = [make(random_state=seed).fit(X).sample(5) for seed in range(4)]
    together = Parallel(n_jobs=2, backend="threading")(
        delayed(lambda seed: make(random_state=seed).fit(X).sample(5))(seed) for seed in range(4)
    )
    assert_array_equal(alone, together)


# Failures on the way.


def interrupt(*args, **kwargs):
    raise KeyboardInterrupt


def test_failed_training_was_paid_for(X, monkeypatch):
    monkeypatch.setattr(Adam, "step", interrupt)
    budget, estimator = PrivacyBudget(2.0, 1e-5), make(random_state=None)
    with budget, pytest.raises(KeyboardInterrupt):
        estimator.fit(X)
    assert 0.99 < budget.spent <= 1
    assert not hasattr(estimator, "privacy_")


def test_a_refit_that_is_interrupted_leaves_its_release_alone(X, y, monkeypatch):
    fitted = make(classes=CLASSES).fit(X, y)
    before = fitted.release_
    monkeypatch.setattr(Adam, "step", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fitted.fit(X, np.ones(40, dtype=int))
    # Neither what follows from the first release, nor from the second one.
    assert vars(fitted).keys() - fitted.get_params(deep=False).keys() == {"release_"}
    assert fitted.release_.published is not before.published
    monkeypatch.undo()
    again = from_release(fitted.release_, fitted)
    assert again.class_probabilities_[1] > again.class_probabilities_[0]
    monkeypatch.setattr(NoiseSource, "rounded_gaussian", interrupt)
    with pytest.raises(KeyboardInterrupt):
        again.fit(X, y)
    assert again.sample(3, random_state=0)[0].shape == (3, 3)


def test_a_failing_refit_keeps_the_number_of_features(X):
    fitted = make().fit(X)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        fitted.fit(X[:, :2], np.zeros(3))
    assert fitted.n_features_in_ == 3
    fitted.score(X)


def test_fit_with_another_default_dtype(X):
    default = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64)
        assert np.isfinite(make(encoder="dp-pca").fit(X).sample(5)).all()
    finally:
        torch.set_default_dtype(default)


@pytest.mark.filterwarnings("default::skdpgen.privacy.PrivacyLeakWarning")
@pytest.mark.parametrize("seed", [0, np.random.RandomState(0)])
@pytest.mark.parametrize("cls", [DPSlicedWassersteinGenerator, DPPCA, LocalPrivatizer])
def test_a_seed_is_warned_of_where_fit_is_called(X, cls, seed):
    with pytest.warns(PrivacyLeakWarning, match="follows from a seed") as caught:
        cls(bounds=(-1, 1), random_state=seed).fit(X)
    said = [warning for warning in caught if "follows from a seed" in str(warning.message)]
    assert [warning.filename for warning in said] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)
        cls(bounds=(-1, 1)).fit(X)


def test_a_score_always_warns(X):
    fitted = make(bounds=(-1, 1)).fit(X)
    with pytest.warns(PrivacyLeakWarning, match="Score public rows") as caught:
        fitted.score(X)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("cls", [DPSlicedWassersteinGenerator, DPPCA])
def test_nobody_is_told_to_fit_an_imputer_on_private_rows(X, cls):
    bad = np.array(X)
    bad[0, 0] = np.nan
    with pytest.raises(ValueError, match="strict=False they count as absent") as caught:
        cls(bounds=(-1, 1), strict=True).fit(bad)
    assert "impute or" not in str(caught.value)


@pytest.mark.parametrize("kind", ["tensor", "list", "float32"])
def test_rows_of_a_third_party_may_be_any_array_like(X, kind):
    convert = {"tensor": torch.tensor, "list": np.ndarray.tolist, "float32": np.float32}[kind]

    class Other(DPSlicedWassersteinGenerator):
        def _generate(self, classes, generator):
            return convert(super()._generate(classes, generator))

    assert Other(n_steps=2).fit(X).sample(7).shape == (7, X.shape[1])


@pytest.mark.parametrize("wrong", ["a row too few", "a column too few", "integers", "texts"])
def test_rows_of_a_wrong_shape_end_a_fit(X, wrong):
    class Wrong(DPSlicedWassersteinGenerator):
        def _generate(self, classes, generator):
            rows = super()._generate(classes, generator)
            return {
                "a row too few": rows[1:],
                "a column too few": rows[:, 1:],
                "integers": np.zeros(rows.shape, dtype=int),
                "texts": rows.astype(str),
            }[wrong]

    with pytest.raises(SpentError, match=r"Wrong._generate returned .* were expected"):
        Wrong(n_steps=2).fit(X)


INTEGERS = ["int8", "uint8", "int64", "uint64", "bool", "Int16", "boolean"]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_come_back_as_integers_within_their_bounds(dtype):
    X = pd.DataFrame(np.random.RandomState(0).randint(0, 2, (60, 2)), columns=["a", "b"])
    X["a"], X["b"] = X["a"].astype(dtype), X["b"].astype(np.float32)
    for schema in (None, "auto"):
        made = DPSWFlowSampler(n_steps=2, schema=schema).fit(X).sample(50)
        assert list(made.dtypes) == list(X.dtypes)
    rows = X[["a"]].to_numpy()
    assert DPSWFlowSampler(n_steps=2).fit(rows).sample(50).dtype == rows.dtype
    if dtype.startswith("int"):
        made = DPSWFlowSampler(n_steps=2, bounds=(-1.5, 1.5)).fit(X).sample(200)
        assert set(made["a"]) <= {-1, 0, 1}
