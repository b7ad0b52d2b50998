"""Domain adaptation: what is adapted, what is read of the target, how scikit-learn passes it."""

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from skdpgen import DPSWDDomainAdapter, DPSWFlowSampler, PrivacyBudget
from skdpgen.accounting.events import split_repetition
from skdpgen.adaptation import DPSWDDomainClassifier, Whole, split_domains
from skdpgen.generators import _sliced_flow
from skdpgen.learners import adaptation as _adaptation_learner
from skdpgen.learners.adaptation import EncodedRecords, fit_adaptation
from skdpgen.learners.particles import fit_particles_to_sketch
from skdpgen.privacy import BudgetExceededError, PrivacyLeakWarning, verify

QUICK = {"epsilon": 5.0, "delta": 1e-4, "n_steps": 60, "n_projections": 20, "random_state": 0}


@pytest.fixture(autouse=True)
def few_steps_of_particles(monkeypatch):
    def fit(*args, n_steps, **kwargs):
        return fit_particles_to_sketch(*args, n_steps=min(n_steps, 150), **kwargs)

    monkeypatch.setattr(_sliced_flow, "fit_particles_to_sketch", fit)


without_target = pytest.mark.filterwarnings("ignore:There is no X_target")


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


def test_one_map_for_both_domains():
    X, y, X_target, _ = make_domains()
    adapter = DPSWDDomainAdapter(**QUICK, n_components=7).fit(X, y, X_target=X_target)
    both = adapter.transform(np.vstack([X, X_target]))
    assert both.shape == (600, 7)
    np.testing.assert_allclose(both[300:], adapter.transform(X_target), atol=1e-5)
    assert adapter.transform(X.astype(np.float32)).dtype == np.float32
    names = adapter.get_feature_names_out()
    assert list(names[:2]) == ["dpswddomainadapter0", "dpswddomainadapter1"]
    assert len(adapter.loss_curve_) == adapter.n_iter_ == 60


def two_linear_maps(n_inputs):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return torch.nn.Linear(n_inputs, 2), torch.nn.Linear(2, 2)


def adapt(maps, source, target, **params):
    options = {"align_weight": 0.0, "class_align_weight": 0.0, "n_projections": 5, "n_steps": 150}
    options |= {"batch_size": 100, "learning_rate": 0.02, **params}
    generator = torch.Generator().manual_seed(0)
    return fit_adaptation(*maps, source, target, **options, generator=generator)


def test_the_weight_of_classes_brings_their_means_together():
    """Both classes lie elsewhere along a column that tells nothing of them in the source."""
    generator = torch.Generator().manual_seed(0)
    codes = torch.arange(400) % 2
    X = 0.3 * torch.randn(400, 3, generator=generator)
    X[:, 0] += 4.0 * codes - 2
    target = X + torch.where(codes[:, None] == 1, 1.0, -1.0) * torch.tensor([0.0, 3.0, 0.0])
    gaps = []
    for weight in (0.0, 1.0):
        maps = two_linear_maps(3)
        adapt(maps, (X, codes), target, class_align_weight=weight)
        with torch.no_grad():
            one, other = maps[0](X), maps[0](target)
        scale = one.std()
        moved = [(one[codes == c].mean(0) - other[codes == c].mean(0)).norm() for c in (0, 1)]
        gaps.append(float(max(moved) / scale))
    assert gaps[1] < 0.2 * gaps[0]


def test_what_is_like_the_target_is_learnt_from_and_compared(monkeypatch):
    """Rows that lack a column, as the target does, tell classes by another column alone."""
    codes = torch.arange(400) % 2
    sides, nothing = 2.0 * codes[:, None] - 1, torch.zeros(400, 1)
    X, seen = torch.cat([4 * sides, nothing], 1), torch.cat([nothing, sides], 1)
    compared = []

    def watched(first, second, *args):
        compared.append((first.detach(), second.detach()))
        return sliced_gap(first, second, *args)

    sliced_gap = _adaptation_learner._sliced_gap
    monkeypatch.setattr(_adaptation_learner, "_sliced_gap", watched)
    maps = two_linear_maps(2)
    adapt(maps, (X, codes), seen, seen=seen, align_weight=1.0)
    with torch.no_grad():
        loss = torch.nn.functional.cross_entropy(maps[1](maps[0](seen)), codes)
    assert loss < 0.1
    # There are two rows of each kind, and those that are compared are of one kind.
    for first, second in compared:
        apart = (first[:, None] - second).abs().sum(2)
        assert apart.min(1).values.max() < 1e-4


# What is read of the target.


def test_the_certificate_is_that_of_the_sketch():
    X, y, X_target, _ = make_domains()
    adapter = DPSWDDomainAdapter(**QUICK).fit(X, y, X_target=X_target)
    assert adapter.privacy_.releases == ("slice sketch",)
    assert adapter.epsilon_ == adapter.target_sampler_.epsilon_ <= 5.0
    assert adapter.n_target_ == adapter.target_sampler_.n_samples_ == 300
    assert any("source are public" in text for text in adapter.privacy_.assumptions)
    with pytest.warns(PrivacyLeakWarning, match="fixed seed"):
        assert verify(adapter.privacy_.to_json()) == adapter.epsilon_


def test_all_but_the_sketch_is_post_processing(monkeypatch):
    """With the same synthetic rows, other target rows make no difference."""
    X, y, X_target, _ = make_domains()
    synthetic = X_target[:50] + 0.1
    monkeypatch.setattr(DPSWFlowSampler, "sample", lambda self, n: synthetic)
    monkeypatch.setattr(DPSWFlowSampler, "_project", lambda self, rows: rows)
    fits = [
        DPSWDDomainClassifier(**QUICK).fit(X, y, X_target=target)
        for target in (X_target, 2 * X_target[::-1])
    ]
    np.testing.assert_array_equal(fits[0].loss_curve_, fits[1].loss_curve_)
    np.testing.assert_array_equal(fits[0].predict_proba(X), fits[1].predict_proba(X))


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
    components = [sampler.encoder[-1].components_ for sampler in samplers]
    np.testing.assert_array_equal(*components)
    assert samplers[0].privacy_.releases == ("slice sketch",)


def test_no_target_row_is_kept():
    X, y, X_target, _ = make_domains()
    X_target[7] = 0.3141592653589793, -0.2718281828459045
    model = DPSWDDomainClassifier(**QUICK).fit(X, y, X_target=X_target)
    assert np.float64(X_target[7, 0]).tobytes() not in pickle.dumps(model)
    copied = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copied.predict(X), model.predict(X))


def test_target_labels_are_not_read():
    X, y, X_target, y_target = make_domains()
    stacked, domain = np.vstack([X, X_target]), np.r_[np.full(300, 2), np.full(300, -1)]
    expected = DPSWDDomainClassifier(**QUICK).fit(X, y, X_target=X_target).predict_proba(X)
    for labels in (y_target, 1 - y_target, np.full(300, 77)):
        model = DPSWDDomainClassifier(**QUICK)
        model.fit(stacked, np.r_[y, labels], sample_domain=domain)
        np.testing.assert_array_equal(model.classes_, [0, 1])
        np.testing.assert_array_equal(model.predict_proba(X), expected)


def test_fits_add_up_in_a_budget():
    X, y, X_target, _ = make_domains()
    adapter = DPSWDDomainAdapter(**QUICK | {"random_state": None})
    with PrivacyBudget(6.0, 2e-4) as budget:
        adapter.fit(X, y, X_target=X_target)
        with pytest.raises(BudgetExceededError):
            adapter.fit(X, y, X_target=X_target)
    assert 0 < budget.spent <= 6.0


def test_rows_with_a_private_gradient():
    X, y, X_target, y_target = make_domains(1500)
    params = {"n_projections": 10, "align_weight": 1.0, "random_state": 0, "release": "rows"}
    model = DPSWDDomainClassifier(20.0, 1e-5, **params).fit(X, y, X_target=X_target)
    assert model.score(X_target, y_target) > 0.9
    assert model.privacy_.releases == ("sliced rows",)
    assert 19 < model.epsilon_ <= 20
    assert model.target_sampler_ is None
    step, n_steps = split_repetition(model.privacy_.events[0])
    assert n_steps == 75
    assert step.event.beside == 10 / 50
    # Without it the encoder cannot follow the target, but has less noise.
    detached = DPSWDDomainClassifier(20.0, 1e-5, target_gradient="none", **params)
    detached.fit(X, y, X_target=X_target)
    assert detached.sigma_ < model.sigma_
    assert detached.privacy_.events[0].event.event.beside == 0
    np.testing.assert_allclose(model.transform(X[:5]), model.transform(X)[:5], atol=1e-5)


def test_products_are_gradients_of_single_rows():
    encoder = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    records = EncodedRecords(encoder, lambda rows: 2 * rows.float(), radius=3.0)
    rows, cotangents = torch.randn(70, 3), torch.randn(70, 2)
    encoded, pull = records(rows)
    products = pull(cotangents)
    for i in (0, 69):
        expected = encoder(2 * rows[i : i + 1]) / 3
        torch.testing.assert_close(encoded[i : i + 1], expected)
        slopes = torch.autograd.grad((expected * cotangents[i]).sum(), list(encoder.parameters()))
        torch.testing.assert_close(products[i], torch.cat([slope.flatten() for slope in slopes]))


def untracked(n_inputs, n_components):
    return torch.nn.Sequential(
        torch.nn.Linear(n_inputs, 4), torch.nn.BatchNorm1d(4, track_running_stats=False)
    )


def mixing(n_inputs, n_components):
    class Mixing(torch.nn.Linear):
        def forward(self, rows):
            return super().forward(rows - rows.mean(0))

    return Mixing(n_inputs, 4)


@pytest.mark.parametrize("gradient", ["dp-sgd", "none"])
def test_no_network_mixes_private_rows(gradient):
    X, y, X_target, _ = make_domains()
    params = QUICK | {"release": "rows", "target_gradient": gradient, "n_steps": 2}
    with pytest.raises(ValueError, match="batch normalisation"):
        DPSWDDomainAdapter(**params, network=untracked).fit(X, y, X_target=X_target)
    # Rows come to the network one by one: in a batch of one, nothing is mixed.
    records = EncodedRecords(mixing(3, None), lambda rows: rows, 1.0)
    rows = torch.randn(5, 3)
    torch.testing.assert_close(records.encode(rows)[:1], records.encode(rows[:1]))


def test_labels_of_the_target_do_not_widen_those_of_the_source():
    X, y, X_target, _ = make_domains()
    labels = np.r_[np.where(y, "a", "b"), np.full(300, "a rare disease")]
    model = DPSWDDomainClassifier(**QUICK)
    model.fit(np.vstack([X, X_target]), labels, sample_domain=np.repeat([0, -1], 300))
    assert model.classes_.dtype == np.dtype("<U1")


# Pipelines and searches.


def test_pipelines():
    X, y, X_target, _ = make_domains()
    pipe = make_pipeline(DPSWDDomainAdapter(**QUICK), LogisticRegression())
    direct = pipe.fit(X, y, dpswddomainadapter__X_target=X_target).predict(X_target)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = sklearn.clone(pipe).fit(X, y, X_target=X_target)
    np.testing.assert_array_equal(routed.predict(X_target), direct)
    assert routed[0].epsilon_ > 0


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
    Pipeline(steps).fit(*X, adapt__X_target=X_target)
    assert 300 not in seen
    with sklearn.config_context(enable_metadata_routing=True):
        Pipeline(steps, transform_input=["X_target"]).fit(*X, X_target=X_target)
    assert 300 in seen


def test_searches_slice_a_target_of_equal_length_unless_it_is_whole():
    X, y, X_target, _ = make_domains()
    grid = {"align_weight": [0.05, 0.2], "n_projections": [10, 20]}
    search = GridSearchCV(DPSWDDomainClassifier(**QUICK), grid, cv=2)
    assert search.fit(X, y, X_target=Whole(X_target)).best_estimator_.n_target_ == 300
    seen = []

    class Counting(DPSWDDomainClassifier):
        def fit(self, X, y=None, *, X_target=None, sample_domain=None):
            super().fit(X, y, X_target=X_target)
            seen.append(self.n_target_)
            return self

    cross_val_score(Counting(**QUICK), X, y, cv=2, params={"X_target": X_target})
    cross_val_score(Counting(**QUICK), X, y, cv=2, params={"X_target": Whole(X_target)})
    assert seen == [150, 150, 300, 300]
    assert "300" not in repr(Whole(X_target))


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
    assert made.shape == (300, 50)


def test_split_domains():
    X, y = pd.DataFrame({"a": [1, 2, 3]}), pd.Series(["x", None, "y"])
    source, labels, target = split_domains(X, y, [1, -2, 0])
    assert list(source["a"]) == [1, 3]
    assert list(labels) == ["x", "y"]
    assert list(target["a"]) == [2]
    with pytest.raises(ValueError, match="no row as one of the source"):
        split_domains(X, y, [-1, -1, -1])
    with pytest.raises(ValueError, match="whole number"):
        split_domains(X, y, [0.5, -1, 1])


# Without a target, and bad input.


@pytest.mark.parametrize("cls", [DPSWDDomainAdapter, DPSWDDomainClassifier])
def test_without_a_target(cls):
    X, y, _, _ = make_domains()
    with pytest.warns(UserWarning, match="nothing was adapted") as record:
        adapter = cls(**QUICK).fit(X, y)
    assert record[0].filename == __file__
    assert adapter.epsilon_ == 0
    assert adapter.target_sampler_ is None
    assert adapter.n_target_ == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X_target": np.zeros((9, 3))}, "3 features"),
        ({"X_target": np.zeros((1, 2))}, "one row"),
        ({"X_target": [["Smith", "1"]] * 9}, "not numbers"),
        ({"y": None}, "requires y"),
        ({"y": np.arange(300) % 3 - 1}, "-1 among other labels"),
        ({"y": np.linspace(0, 1, 300)}, "Unknown label type"),
        ({"y": np.zeros(300)}, "one class only"),
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


@pytest.mark.parametrize("release", ["sketch", "rows"])
def test_bad_target_rows_count_as_absent(release):
    X, y, X_target, _ = make_domains()
    X_target[::4, 1] = np.nan
    adapter = DPSWDDomainAdapter(**QUICK, release=release).fit(X, y, X_target=X_target)
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
        ({"encoder": "pca"}, "encoder"),
        ({"bounds": (1, 0)}, "bounds"),
        ({"augment": "affine"}, "square grey images"),
        ({"augment": lambda rows, generator: rows[:1]}, "augment must return"),
    ],
)
def test_bad_parameters_cost_nothing(params, message):
    X, y, X_target, _ = make_domains()
    with PrivacyBudget(5.0, 1e-4) as budget, pytest.raises(ValueError, match=message):
        DPSWDDomainAdapter(**QUICK | {"random_state": None} | params).fit(X, y, X_target=X_target)
    assert budget.spent == 0


def test_sample_domain_and_target_exclude_each_other():
    X, y, X_target, _ = make_domains()
    with pytest.raises(ValueError, match="not both"):
        DPSWDDomainClassifier(**QUICK).fit(X, y, X_target=X_target, sample_domain=y)
