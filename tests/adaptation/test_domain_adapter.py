"""Domain adaptation: what is adapted, what is read of the target, how scikit-learn passes it."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from skdpgen import (
    DPSinkhornGenerator,
    DPSlicedWassersteinGenerator,
    DPSWDDomainAdapter,
    DPSWFlowSampler,
    PrivacyBudget,
)
from skdpgen.adaptation import DPSWDDomainClassifier, Whole
from skdpgen.exceptions import FitQualityWarning
from skdpgen.learners import particles
from skdpgen.learners.particles import fit_particles_to_sketch
from skdpgen.privacy import PrivacyLeakWarning, preview, verify
from skdpgen.releases import SampledGradients, SlicedRows

QUICK = {"epsilon": 5.0, "delta": 1e-4, "n_steps": 20, "n_projections": 20, "random_state": 0}


@pytest.fixture(autouse=True)
def few_steps_of_particles(monkeypatch):
    def fit(*args, n_steps, **kwargs):
        return fit_particles_to_sketch(*args, n_steps=min(n_steps, 50), **kwargs)

    monkeypatch.setattr(particles, "fit_particles_to_sketch", fit)


without_target = pytest.mark.filterwarnings("ignore:X_target is None")


def make_domains(n=300, seed=0):
    """Two classes far apart in one direction; the target is rotated by 50 degrees, and moved."""
    rng = np.random.default_rng(seed)
    angle = np.deg2rad(50)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])

    def draw():
        y = np.arange(n) % 2
        return rng.normal(size=(n, 2)) * [0.5, 1.0] + np.outer(y - 0.5, [4, 0]), y

    X, y = draw()
    X_target, y_target = draw()
    return X, y, X_target @ turn.T + [1.0, -1.0], y_target


@without_target
@pytest.mark.parametrize("epsilon", [8.0, np.inf])
def test_it_adapts(epsilon):
    X, y, X_target, y_target = make_domains(500)
    params = {"delta": 1e-5, "n_steps": 300, "n_projections": 20, "random_state": 0}
    alone = DPSWDDomainClassifier(**params).fit(X, y)
    adapted = DPSWDDomainClassifier(epsilon, **params).fit(X, y, X_target=X_target)
    assert alone.score(X_target, y_target) < 0.85
    assert adapted.score(X_target, y_target) > 0.92
    assert adapted.score(X, y) > 0.95


def test_synthetic_rows_start_from_the_source():
    X, y, X_target, _ = make_domains(600)
    sampler = DPSWDDomainAdapter(**QUICK).fit(X, y, X_target=X_target).target_sampler_
    rows = {tuple(row) for row in X.astype(np.float32)}
    assert len(sampler.init) == 500
    assert {tuple(row) for row in sampler.init} < rows


# Releases of the target.


def test_the_certificate_is_that_of_the_sketch():
    X, y, X_target, _ = make_domains()
    adapter = DPSWDDomainAdapter(**QUICK).fit(X, y, X_target=X_target)
    assert adapter.privacy_.releases == ("slice sketch",)
    assert adapter.epsilon_ == adapter.target_sampler_.epsilon_ <= 5.0
    assert adapter.n_target_ == adapter.target_sampler_.n_samples_ == 300
    assert any("source are public" in text for text in adapter.privacy_.assumptions)
    with pytest.warns(PrivacyLeakWarning, match="fixed seed"):
        assert verify(adapter.privacy_.to_json()) == adapter.epsilon_


@pytest.mark.catches(
    "adaptation._domain_adapter:DPSWDDomainAdapter._adapt",
    "return self._train_on_samples(start, sampler)",
    """
    sampler.sample = lambda n: X_target
    return self._train_on_samples(start, sampler)
    """,
)
def test_all_but_the_sketch_is_post_processing(monkeypatch):
    """With the same synthetic rows, other target rows make no difference."""
    X, y, X_target, _ = make_domains()
    synthetic = X_target[:50] + 0.1
    monkeypatch.setattr(DPSWFlowSampler, "sample", lambda self, n: synthetic)
    monkeypatch.setattr(DPSWFlowSampler, "project", lambda self, rows: rows)
    fits = [
        DPSWDDomainClassifier(**QUICK).fit(X, y, X_target=target)
        for target in (X_target, 2 * X_target[::-1])
    ]
    np.testing.assert_array_equal(fits[0].loss_curve_, fits[1].loss_curve_)
    np.testing.assert_array_equal(fits[0].predict_proba(X), fits[1].predict_proba(X))


@pytest.mark.catches(
    "adaptation._domain_adapter:DPSWDDomainAdapter._adapt",
    "sampler.fit(X_target)",
    "sampler.set_params(bounds=(X_target.min(), X_target.max())).fit(X_target)",
)
def test_units_follow_from_the_source():
    """Bounds, the radius and the components of few rows do not depend on the target."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 80)), np.arange(200) % 2
    samplers = [
        DPSWDDomainAdapter(**QUICK).fit(X, y, X_target=target).target_sampler_
        for target in (rng.normal(size=(150, 80)), 9 + 5 * rng.normal(size=(150, 80)))
    ]
    assert samplers[0].clip_norm == samplers[1].clip_norm
    np.testing.assert_array_equal(samplers[0].bounds, samplers[1].bounds)
    components = [sampler.encoder.estimator[-1].components_ for sampler in samplers]
    np.testing.assert_array_equal(*components)
    assert samplers[0].privacy_.releases == ("slice sketch",)


@pytest.mark.catches(
    "adaptation._domain_adapter:DPSWDDomainAdapter._adapt",
    "sampler.fit(X_target)",
    "sampler.set_params(init=X_target).fit(X_target)",
)
def test_no_target_row_is_kept():
    X, y, X_target, _ = make_domains()
    X_target[7] = 0.3141592653589793, -0.2718281828459045
    model = DPSWDDomainClassifier(**QUICK).fit(X, y, X_target=X_target)
    assert np.float64(X_target[7, 0]).tobytes() not in pickle.dumps(model)
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copied.predict(X), model.predict(X))


def test_labels_of_the_target_do_not_widen_those_of_the_source():
    X, y, X_target, _ = make_domains()
    labels = np.r_[np.where(y, "a", "b"), np.full(300, "a rare disease")][:300]
    model = DPSWDDomainClassifier(**QUICK).fit(X, labels, X_target=X_target)
    assert model.classes_.dtype == np.dtype("<U1")


# Samplers.


def test_a_sampler_gets_what_it_leaves_open():
    X, y, X_target, _ = make_domains()
    given = DPSWFlowSampler(n_particles=40, epsilon=5.0, device="cpu")
    adapter = DPSWDDomainAdapter(**QUICK, relation="replace_one", sampler=given)
    adapter.set_params(sampler__release__n_harmonics=4, bounds=(-9, 9)).fit(X, y, X_target=X_target)
    sampler, default = adapter.target_sampler_, DPSWDDomainAdapter(**QUICK, bounds=(-9, 9))
    default = default.fit(X, y, X_target=X_target).target_sampler_
    assert sampler.n_particles == len(sampler.init) == 40
    assert (sampler.release.n_harmonics, sampler.delta, sampler.random_state) == (4, 1e-4, 0)
    assert sampler.relation == adapter.privacy_.relation == "replace_one"
    assert sampler.clip_norm == default.clip_norm != 1.0
    np.testing.assert_array_equal(sampler.bounds, default.bounds)
    fresh = DPSWFlowSampler(n_particles=40, epsilon=5.0, device="cpu")
    fresh.set_params(release__n_harmonics=4)
    assert repr(given.get_params()) == repr(fresh.get_params())
    assert not hasattr(given, "privacy_")


def test_a_sampler_keeps_what_it_says():
    X, y, X_target, _ = make_domains()
    own = {"bounds": (-7, 7), "clip_norm": 0.6, "init": X[:9]}
    adapter = DPSWDDomainAdapter(**QUICK, sampler=DPSWFlowSampler(**own))
    sampler = adapter.fit(X, y, X_target=X_target).target_sampler_
    assert (sampler.bounds, sampler.clip_norm, len(sampler.init)) == ((-7, 7), 0.6, 9)


@pytest.mark.parametrize(
    ("sampler", "release"),
    [
        (DPSWFlowSampler(release=SlicedRows(n_steps=3)), "sliced rows"),
        (DPSlicedWassersteinGenerator(n_steps=3), "slice sketch"),
        (DPSinkhornGenerator(release=SampledGradients(n_steps=3)), "clipped gradient"),
    ],
)
def test_any_generator_may_be_the_sampler(sampler, release):
    X, y, X_target, _ = make_domains()
    adapter = DPSWDDomainAdapter(**QUICK, sampler=sampler).fit(X, y, X_target=X_target)
    assert type(adapter.target_sampler_) is type(sampler)
    assert adapter.privacy_.releases == (release,)
    assert 4.5 < adapter.epsilon_ <= 5.0
    assert any("source are public" in text for text in adapter.privacy_.assumptions)


def test_a_bad_sampler_is_refused_without_a_target():
    X, y, _, _ = make_domains()
    with pytest.raises(ValueError, match="n_steps must be"):
        DPSWDDomainAdapter(**QUICK, sampler=DPSWFlowSampler(n_steps=-1)).check_fit(X, y)


def test_a_fit_to_a_sampler_is_free():
    X, y, X_target, _ = make_domains()
    fitted = DPSWDDomainClassifier(**QUICK).fit(X, y, X_target=X_target)
    with PrivacyBudget(0.1, 1e-9) as budget:
        again = DPSWDDomainClassifier(**QUICK).fit_to_sampler(X, y, fitted.target_sampler_)
    assert budget.spent == 0
    np.testing.assert_array_equal(again.predict_proba(X), fitted.predict_proba(X))
    assert again.privacy_ == fitted.privacy_


# Pipelines and searches.


def test_earlier_steps_do_not_see_the_target_unless_asked_to():
    X, y, X_target, _ = make_domains()
    steps = [("scale", StandardScaler()), ("adapt", DPSWDDomainAdapter(**QUICK, bounds=(-4, 4)))]
    seen = []

    class Seeing(StandardScaler):
        def transform(self, X, copy=None):
            seen.append(len(X))
            return super().transform(X, copy)

    steps[0] = ("scale", Seeing())
    X = X[:200], y[:200]
    with pytest.warns(FitQualityWarning, match=r"not mapped by the steps \['scale'\]"):
        fitted = Pipeline(steps).fit(*X, adapt__X_target=X_target)[-1]
    assert 300 not in seen
    planned = preview(steps[1][1], 300, 2)
    assert (planned.epsilon, planned.assumptions) == (fitted.epsilon_, fitted.privacy_.assumptions)
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = Pipeline(steps, transform_input=["X_target"])
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message="X_target is not mapped")
            pipe.fit(*X, X_target=X_target)
        assert 300 in seen
        # As many rows as the source, and whole and scaled all the same.
        search = GridSearchCV(pipe, {"adapt__n_steps": [1]}, cv=2, scoring=lambda *args: 0.0)
        whole = pickle.loads(pickle.dumps(Whole(X_target[:200] * 1e3)))
        best = search.fit(*X, X_target=whole).best_estimator_
    synthetic = best[-1].target_sampler_.sample(50)
    assert best[-1].n_target_ == 200
    # Rows far away are at the bounds, which are in the units of the scaler.
    assert np.abs(synthetic).max() > 3.9
    np.testing.assert_allclose(best[0].mean_, X[0].mean(axis=0))


def test_searches_slice_a_target_of_equal_length_unless_it_is_whole():
    X, y, X_target, _ = make_domains()
    grid = {"align_weight": [0.05, 0.2], "n_projections": [10, 20]}
    search = GridSearchCV(DPSWDDomainClassifier(**QUICK), grid, cv=2)
    assert search.fit(X, y, X_target=Whole(X_target)).best_estimator_.n_target_ == 300
    seen = []

    class Counting(DPSWDDomainClassifier):
        def fit(self, X, y=None, *, X_target=None):
            super().fit(X, y, X_target=X_target)
            seen.append(self.n_target_)
            return self

    cross_val_score(Counting(**QUICK), X, y, cv=2, params={"X_target": X_target})
    cross_val_score(Counting(**QUICK), X, y, cv=2, params={"X_target": Whole(X_target)})
    assert seen == [150, 150, 300, 300]
    assert "300" not in repr(Whole(X_target))


def test_rows_of_both_domains_are_told_by_their_sign():
    X, y, X_target, _ = make_domains()
    both, labels = np.vstack([X_target, X]), np.r_[np.full(300, -1), y]
    domains = np.repeat([-2, 1], 300)
    given = DPSWDDomainClassifier(**QUICK).fit(X, y, X_target=X_target)
    for rows, classes in ((both, labels), (pd.DataFrame(both), list(labels))):
        told = clone(given).fit(rows, classes, sample_domain=domains)
        np.testing.assert_array_equal(told.predict(X_target), given.predict(X_target))
    refused = {
        "not both": {"X_target": X_target},
        "some of both": {"sample_domain": np.ones(600, dtype=int)},
        "whole number": {"sample_domain": np.sign(domains) * 1.0},
        "each row": {"sample_domain": domains[1:]},
    }
    for match, options in refused.items():
        with pytest.raises(ValueError, match=match), PrivacyBudget(1.0, 1e-5) as budget:
            clone(given).fit(both, labels, **{"sample_domain": domains} | options)
        assert budget.spent == 0


@pytest.mark.catches(
    "adaptation._domains:split_domains",
    'name.startswith("sklearn.") and not name.startswith(inner)',
    "False",
)
def test_other_steps_and_scores_get_no_target_rows():
    X, y, X_target, _ = make_domains(n=20)
    both, labels = np.vstack([X, X_target]), np.r_[y, np.full(20, -1)]
    domains, classifier = np.repeat([1, -1], 20), DPSWDDomainClassifier(**QUICK)
    pipe = Pipeline([("scale", StandardScaler()), ("adapt", classifier)])
    with pytest.raises(ValueError, match="not taken from a pipeline or search"):
        pipe.fit(both, labels, adapt__sample_domain=domains)
    search = GridSearchCV(classifier, {"n_steps": [1]}, cv=2, error_score="raise")
    with pytest.raises(ValueError, match="not taken from a pipeline or search"):
        search.fit(both, labels, sample_domain=domains)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (np.dtypes.StringDType(), ["1", "2"]),
        (pd.StringDtype(), ["1", "2"]),
        (pd.Int8Dtype(), [1, 2]),
        (pd.BooleanDtype(), [False, True]),
    ],
)
def test_labels_of_any_dtype_are_classes(dtype, expected):
    X, y, X_target, _ = make_domains(60)
    y = pd.Series(y == 1 if expected == [False, True] else y + 1)
    y = y.astype(str).to_numpy().astype(dtype) if dtype.kind == "T" else y.astype(dtype)
    fitted = DPSWDDomainClassifier(**QUICK | {"n_steps": 1}).fit(X, y, X_target=X_target)
    assert fitted.classes_.tolist() == expected
    assert all(type(label) is type(expected[0]) for label in fitted.classes_.tolist())


def test_frames():
    X, y, X_target, _ = make_domains()
    frames = [pd.DataFrame(rows, columns=["a", "b"]) for rows in (X, X_target)]
    labels = pd.Series(np.where(y, "yes", "no"))
    model = DPSWDDomainClassifier(**QUICK).fit(frames[0], labels, X_target=frames[1])
    assert set(model.predict(frames[1])) <= {"yes", "no"}
    with pytest.raises(ValueError, match="feature names"):
        model.fit(frames[0], labels, X_target=frames[1][["b", "a"]])
    adapter = DPSWDDomainAdapter(**QUICK).set_output(transform="pandas")
    made = adapter.fit(frames[0], labels, X_target=frames[1]).transform(frames[1])
    assert isinstance(made, pd.DataFrame)
    assert list(made) == list(adapter.get_feature_names_out())
    assert made.shape == (300, 50)


# Without a target, and bad input.


@pytest.mark.parametrize("cls", [DPSWDDomainAdapter, DPSWDDomainClassifier])
def test_without_a_target(cls):
    X, y, X_target, _ = make_domains()
    adapter = cls(**QUICK).fit(X, y, X_target=X_target)
    with pytest.warns(UserWarning, match="nothing is adapted") as record:
        adapter.fit(X, y)
    assert record[0].filename == __file__
    assert adapter.epsilon_ == 0
    assert getattr(adapter, "target_sampler_", None) is None
    assert adapter.n_target_ == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X_target": np.zeros((9, 3))}, "3 features"),
        ({"X_target": np.zeros((1, 2))}, "at least 2 rows"),
        ({"X_target": [["Smith", "1"]] * 9}, "not numbers"),
        ({"y": None}, "requires y"),
        ({"y": np.arange(300) % 3 - 1}, "label -1, which often"),
        ({"y": np.linspace(0, 1, 300)}, "Unknown label type"),
        ({"y": np.zeros(300)}, "at least 2 classes"),
    ],
)
def test_bad_data(change, message):
    X, y, X_target, _ = make_domains()
    data = {"y": y, "X_target": X_target} | change
    adapter = DPSWDDomainAdapter(**QUICK)
    with pytest.raises(ValueError, match=message) as raised:
        adapter.fit(X, **data)
    assert "Smith" not in str(raised.value)
    assert not hasattr(adapter, "privacy_")


def test_bad_target_rows_count_as_absent():
    X, y, X_target, _ = make_domains()
    X_target[::4, 1] = np.nan
    adapter = DPSWDDomainAdapter(**QUICK).fit(X, y, X_target=X_target)
    assert np.isfinite(adapter.transform(X)).all()
    assert "every record is valid" not in str(adapter.privacy_)
    adapter.set_params(strict=True)
    with pytest.raises(ValueError, match="NaN or infinity"):
        adapter.fit(X, y, X_target=X_target)
    strict = adapter.fit(X, y, X_target=np.nan_to_num(X_target))
    assert "every record is valid" in str(strict.privacy_)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"network": "resnet"}, "network must be one of"),
        ({"network": 3}, "network must be one of"),
        ({"network": "conv28"}, "784 pixels"),
        ({"align_weight": -1}, "align_weight"),
        ({"n_projections": 0}, "n_projections"),
        ({"n_steps": 2.5}, "n_steps"),
        ({"sampler": DPSWFlowSampler(encoder="pca")}, "encoder"),
        ({"sampler": DPSWFlowSampler(n_particles=2.5)}, "n_particles"),
        ({"sampler": DPSWFlowSampler}, "sampler must be None or a generator"),
        ({"sampler": DPSWFlowSampler(epsilon=3.0)}, "sampler has epsilon=3.0"),
        ({"sampler": DPSWFlowSampler(delta=1e-6)}, "sampler has delta"),
        ({"sampler": DPSWFlowSampler(relation="replace_one")}, "sampler has relation"),
        ({"sampler": DPSWFlowSampler(random_state=7)}, "sampler has random_state=7"),
        ({"bounds": (1, 0)}, "bounds"),
        ({"augment": "affine"}, "is for images"),
        ({"augment": lambda rows, generator: rows[:1]}, "augment must return"),
    ],
)
def test_bad_parameters_cost_nothing(params, message):
    X, y, X_target, _ = make_domains()
    with PrivacyBudget(5.0, 1e-4) as budget, pytest.raises(ValueError, match=message):
        DPSWDDomainAdapter(**QUICK | {"random_state": None} | params).fit(X, y, X_target=X_target)
    assert budget.spent == 0


def test_nested_seeds_are_those_of_the_adapter():
    """Meta-estimators of scikit-learn give every nested estimator a seed of its own."""
    X, y, X_target, _ = make_domains(60)
    model = DPSWDDomainClassifier(**QUICK | {"sampler": DPSWFlowSampler(n_steps=2)})
    with sklearn.config_context(enable_metadata_routing=True):
        fitted = BaggingClassifier(model, n_estimators=2, random_state=0).fit(
            X, y, X_target=Whole(X_target)
        )
    seeds = {(m.random_state, m.target_sampler_.random_state) for m in fitted.estimators_}
    assert len(seeds) == 2
    assert all(outer == inner for outer, inner in seeds)
