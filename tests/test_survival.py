"""A paid release survives errors and interrupts of learning, and warnings that are errors."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from torch import nn

from skdpgen import (
    DPAFGenerator,
    DPHistorySampler,
    DPSinkhornGenerator,
    DPSlicedWassersteinGenerator,
    DPSWDDomainAdapter,
    DPSWFlowSampler,
    LDPEntropicGAN,
    PrivacyBudget,
)
from skdpgen.accounting.budget import PublicRun
from skdpgen.adaptation import DPSWDDomainClassifier, PrivateSearch
from skdpgen.exceptions import FitQualityWarning
from skdpgen.learners import particles
from skdpgen.learners.interactions import InteractionSearch
from skdpgen.learners.training import Adam
from skdpgen.preprocessing import DPPCA
from skdpgen.privacy import CovarianceMechanism, SpentError, infer_schema
from skdpgen.releases import SlicedRows, from_release

rng = np.random.default_rng(0)
X, y = rng.random((400, 3)), rng.integers(0, 2, 400)
TABLE = pd.DataFrame({"a": 100 * X[:, 0], "b": rng.choice(["u", "v"], 400), "c": X[:, 1] > 0.5})
HISTORIES = {
    "persons": pd.DataFrame({"id": range(100), "b": ["u", "v"] * 50}),
    "rows": pd.DataFrame({"id": [i // 3 for i in range(300)], "a": X[:300, 0]}),
}
ARRAY = {"bounds": (0, 1), "n_steps": 3}
CLASSIFIER = DPSWDDomainClassifier(5.0, n_steps=3)

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def fit_to_target(estimator):
    return estimator.fit(X, y, X_target=X)


# An estimator, how it is fitted, and where learning fails.
KEPT = {
    "network": (
        DPSlicedWassersteinGenerator(5.0, n_steps=3),
        lambda e: e.fit(X, y),
        (Adam, "step"),
    ),
    "particles": (DPSWFlowSampler(5.0, **ARRAY), lambda e: e.fit(X), (Adam, "step")),
    "rows": (
        DPSWFlowSampler(5.0, release="presample", **ARRAY),
        lambda e: e.fit(X),
        (particles, "flow_along_slices"),
    ),
    "table": (DPSWFlowSampler(5.0, n_steps=3), lambda e: e.fit(TABLE), (Adam, "step")),
    "samples": (DPSWFlowSampler(5.0, **ARRAY), lambda e: e.fit(X), (DPSWFlowSampler, "_generate")),
    "histories": (
        DPHistorySampler(9.0, max_rows_per_person=3, n_steps=3),
        lambda e: e.fit(HISTORIES, persons="id", order="a"),
        (Adam, "step"),
    ),
    "local": (LDPEntropicGAN(5.0, **ARRAY), lambda e: e.fit(X, y), (Adam, "step")),
    "components": (DPPCA(5.0, bounds=(0, 1)), lambda e: e.fit(X), (np.linalg, "eigh")),
}
LOST = {
    "steps": (
        DPSlicedWassersteinGenerator(5.0, release="rows", bounds=(0, 1)),
        lambda e: e.fit(X),
        (Adam, "step"),
    ),
    "gradients": (DPSinkhornGenerator(5.0, bounds=(0, 1)), lambda e: e.fit(X), (Adam, "step")),
    "aggregates": (DPAFGenerator(5.0, bounds=(0, 1)), lambda e: e.fit(X, y), (Adam, "step")),
}


class Fails:
    """Raises an error from the n-th call on."""

    def __init__(self, function, error, n):
        self.function, self.error, self.n = function, error, n

    def __call__(self, *args, **kwargs):
        self.n -= 1
        if self.n < 0:
            raise self.error
        return self.function(*args, **kwargs)

    def __deepcopy__(self, memo):
        return self

    def __get__(self, owner, cls):
        return lambda *args, **kwargs: self(owner, *args, **kwargs)


def fail(estimator, fit, place, error, monkeypatch, n=0):
    """Return the error that a fit ends with."""
    with monkeypatch.context() as patched:
        patched.setattr(*place, Fails(getattr(*place), error, n))
        with pytest.raises((KeyboardInterrupt, SpentError)) as raised:
            fit(estimator)
    assert isinstance(raised.value, KeyboardInterrupt) == isinstance(error, KeyboardInterrupt)
    return raised.value


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), KeyError("k")], ids=lambda e: type(e).__name__
)
@pytest.mark.parametrize("name", KEPT)
def test_a_release_is_kept_whatever_learning_meets(name, error, monkeypatch, tmp_path):
    estimator, fit, place = KEPT[name]
    estimator = clone(estimator)
    raised = fail(estimator, fit, place, type(error)(*error.args), monkeypatch)
    text = " ".join([str(raised), *getattr(raised, "__notes__", [])])
    assert "Until then ε = " in text
    assert text.count("The release is kept: skdpgen.releases.from_release(error.release, ") == 1
    # Not fitted, but what is paid for is there.
    assert vars(estimator).keys() - estimator.get_params(deep=False).keys() == {"release_"}
    kept = estimator.release_
    assert raised.release is getattr(kept, "published", kept)
    assert raised.certificate.digest == raised.release.certificate.digest
    raised.release.save(tmp_path / "release")
    for release in (kept, raised.release, tmp_path / "release"):
        fitted = from_release(release, estimator)
        assert fitted.privacy_.digest == raised.certificate.digest
        assert fitted.privacy_.epsilon == raised.certificate.epsilon <= estimator.epsilon
    # The code in the message.
    code = text.partition("from_release(error.release, ")[2].partition(") learns")[0]
    assert eval(code).get_params()["epsilon"] == 1.0


@pytest.mark.parametrize("name", LOST)
def test_values_of_many_steps_are_not_kept_and_the_error_says_so(name, monkeypatch):
    estimator, fit, place = LOST[name]
    estimator = clone(estimator)
    n = 10 if name == "target rows" else 1
    raised = fail(estimator, fit, place, KeyboardInterrupt(), monkeypatch, n)
    (note,) = raised.__notes__
    assert note.endswith("The released values are not kept: another fit is charged anew.")
    assert raised.release is None
    assert raised.certificate.epsilon > 0
    assert vars(estimator).keys() == estimator.get_params(deep=False).keys()


def test_a_release_without_its_values_is_not_kept_where_no_row_can_be_drawn(monkeypatch):
    sampler = DPSWFlowSampler(5.0, bounds=(0, 1), release=SlicedRows(n_steps=3))
    place = DPSWFlowSampler, "_generate_rows"
    fail(sampler, lambda one: one.fit(X), place, KeyboardInterrupt(), monkeypatch)
    assert vars(sampler).keys() == sampler.get_params(deep=False).keys()


@pytest.mark.parametrize("name", ["particles", "table"])
def test_a_fit_that_goes_on_from_an_interrupted_one_is_that_fit(name, monkeypatch):
    estimator, fit, place = KEPT[name]
    estimator = clone(estimator).set_params(random_state=0)
    expected = fit(clone(estimator)).sample(9, random_state=1)
    raised = fail(estimator, fit, place, KeyboardInterrupt(), monkeypatch, 2)
    made = from_release(raised.release, estimator).sample(9, random_state=1)
    assert_array_equal(np.asarray(made), np.asarray(expected))


def test_pairs_are_kept_where_training_between_releases_fails(monkeypatch):
    sampler = DPSWFlowSampler(9.0, n_steps=3)
    budget = PrivacyBudget(99.0, 1e-4, threshold_delta=1e-6)
    columns = pd.DataFrame(rng.integers(0, 2, (3000, 4)).astype(bool), columns=list("abcd"))
    place = (InteractionSearch, "run")
    with budget:
        raised = fail(sampler, lambda e: e.fit(columns), place, KeyboardInterrupt(), monkeypatch)
    assert raised.certificate.releases[-1] == "two-way tables"
    assert raised.release is not None
    assert 0 < budget.spent < 9.0
    fitted = from_release(sampler.release_, DPSWFlowSampler(n_steps=3))
    assert fitted.privacy_.epsilon < 9.0
    assert fitted.sample(3).columns.tolist() == list("abcd")


def test_without_a_release_an_error_is_free_and_leaves_the_estimator_as_it_was(monkeypatch):
    sampler, budget = DPSWFlowSampler(5.0, **ARRAY), PrivacyBudget(5.0, 1e-5)
    fitted = vars(sampler.fit(X)).copy()
    monkeypatch.setattr(DPSWFlowSampler, "_learn", Fails(None, KeyboardInterrupt(), 0))
    with budget, pytest.raises(KeyboardInterrupt) as raised:
        sampler.set_params(clip_norm=1.0).fit(X)
    assert vars(raised.value) == {}
    assert budget.spent == 0
    assert vars(sampler) == fitted | {"clip_norm": 1.0}


class Fragile(nn.Module):
    """Fails in the middle of training."""

    def __init__(self, n_inputs, n_outputs, error=None):
        super().__init__()
        self.layer, self.error, self.n_left = nn.Linear(n_inputs, n_outputs), error, 12

    def forward(self, rows):
        self.n_left -= self.training
        if self.n_left < 0 and self.error is not None:
            raise self.error
        return self.layer(rows)


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), AttributeError("a")], ids=lambda e: type(e).__name__
)
def test_an_adapter_keeps_its_sampler(error):
    adapter = DPSWDDomainAdapter(
        5.0, n_steps=20, n_components=3, network=lambda i, o: Fragile(i, o, error)
    )
    with pytest.raises((KeyboardInterrupt, SpentError)) as raised:
        fit_to_target(adapter)
    said = " ".join([str(raised.value), *getattr(raised.value, "__notes__", [])])
    assert "was spent, on: slice sketch." in said
    assert "adapter.fit_to_sampler(X, y, adapter.target_sampler_) goes on at no cost." in said
    assert raised.value.release is adapter.target_sampler_.release_.published
    adapter.set_params(network=Fragile).fit_to_sampler(X, y, adapter.target_sampler_)
    assert adapter.epsilon_ <= 5.0
    # Then it costs nothing, and an error says nothing of a cost.
    before = vars(adapter).copy()
    with pytest.raises(type(error)) as raised:
        adapter.set_params(network=lambda i, o: Fragile(i, o, error)).fit_to_sampler(
            X, y, adapter.target_sampler_
        )
    assert not hasattr(raised.value, "release") or isinstance(error, KeyboardInterrupt)
    assert vars(adapter).keys() == before.keys()


def test_an_adapter_keeps_the_release_of_a_sampler_that_fails(monkeypatch):
    adapter = DPSWDDomainAdapter(5.0, n_steps=3, sampler=DPSWFlowSampler(n_steps=3))
    raised = fail(adapter, fit_to_target, (Adam, "step"), KeyboardInterrupt(), monkeypatch)
    assert raised.__notes__[1] == "adapter.fit_to_sampler(X, y, that sampler) goes on at no cost."
    sampler = from_release(raised.release, adapter.target_sampler_)
    assert adapter.fit_to_sampler(X, y, sampler).privacy_.digest == raised.certificate.digest


# The first call tries it on public rows.
@pytest.mark.parametrize("n", [1, 2], ids=["first score", "second score"])
def test_a_search_keeps_the_sampler_of_all_candidates(n):
    scoring = Fails(lambda *args: 0.5, TypeError("no score"), n)
    search = PrivateSearch(
        CLASSIFIER, {"align_weight": [0.1, 0.2]}, n_candidates=3, scoring=scoring
    )
    with pytest.raises(SpentError, match=r"TypeError: no score\. Until then ε = 5 at") as raised:
        fit_to_target(search)
    text = "search.estimator.fit_to_sampler(X, y, search.target_sampler_) costs nothing"
    assert text in str(raised.value)
    assert raised.value.release is search.target_sampler_.release_.published
    model = clone(CLASSIFIER).fit_to_sampler(X, y, search.target_sampler_)
    assert model.privacy_.digest == raised.value.certificate.digest


def test_a_search_of_releases_states_its_price_where_it_is_interrupted():
    scoring = Fails(lambda *args: 0.5, KeyboardInterrupt(), 1)
    grid = {"sampler__release__n_projections": [20, 30]}
    estimator = clone(CLASSIFIER).set_params(sampler=DPSWFlowSampler(release="sketch", n_steps=3))
    estimator.set_params(sampler__release__n_projections=20)
    search = PrivateSearch(estimator, grid, n_candidates=2, scoring=scoring)
    with pytest.raises(KeyboardInterrupt) as raised:
        fit_to_target(search)
    (note,) = raised.value.__notes__
    assert note == "All of the search is charged: ε = 5 at δ = 1e-05."
    # Nothing of a single run, which has no price.
    assert not hasattr(raised.value, "release")
    assert not hasattr(search, "target_sampler_")


NARROW = {
    "absent": (DPSWFlowSampler(5.0, **ARRAY), lambda e: e.fit(np.where(X < 0.3, np.nan, X))),
    "constant": (
        DPSWFlowSampler(5.0, n_steps=3),
        lambda e: e.fit(pd.DataFrame({"a": X[:, 0], "id": np.full(400, 7)})),
    ),
    "target": (
        DPSWDDomainAdapter(5.0, n_steps=3),
        lambda e: e.fit(X, y, X_target=np.where(X < 0.3, np.nan, X)),
    ),
    "search": (
        PrivateSearch(CLASSIFIER, {"align_weight": [0.1, 0.2]}, n_candidates=2),
        lambda e: e.fit(X, y, X_target=np.where(X < 0.3, np.nan, X)),
    ),
}


@pytest.mark.parametrize("name", NARROW)
def test_where_warnings_are_errors_the_estimator_is_fitted_all_the_same(name):
    estimator, fit = NARROW[name]
    estimator = clone(estimator)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FitQualityWarning)
        with pytest.raises((FitQualityWarning, SpentError)) as raised:
            fit(estimator)
    assert isinstance(raised.value, FitQualityWarning)
    fitted = fit(clone(estimator))
    assert vars(estimator).keys() == vars(fitted).keys()
    estimator.check_certified()
    report = getattr(estimator, "schema_report_", None)
    assert report is None or report["finding"].notna().any()


def test_a_fit_that_fails_says_so_where_warnings_are_errors(monkeypatch):
    """Also where its findings may say why."""
    sampler = DPSWFlowSampler(5.0, **ARRAY)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FitQualityWarning)
        fit = NARROW["absent"][1]
        raised = fail(sampler, fit, (Adam, "step"), MemoryError(), monkeypatch)
    assert str(raised).startswith("MemoryError. Until then")


def test_an_inferred_schema_is_kept_where_warnings_are_errors():
    table = pd.DataFrame({"a": X[:, 0], "id": np.arange(400) + 10**7})
    with warnings.catch_warnings():
        warnings.simplefilter("error", FitQualityWarning)
        with pytest.raises(
            SpentError, match=r"Until then ε = .* It is kept, as error\.release\."
        ) as e:
            infer_schema(table, epsilon=5.0, delta=1e-6)
    assert list(e.value.release.schema) == ["a", "id"]
    assert e.value.release.privacy_ is e.value.certificate


@pytest.mark.catches(
    "params:fitting", 'paid and getattr(error, "certificate", None) is not None', "paid"
)
def test_a_run_of_a_search_that_fails_keeps_no_release(monkeypatch):
    """Nothing of a run is published, and only the search knows its price."""
    sampler = DPSWFlowSampler(5.0, **ARRAY)
    with PublicRun():
        fit = KEPT["particles"][1]
        raised = fail(sampler, fit, (Adam, "step"), KeyboardInterrupt(), monkeypatch)
    assert (raised.certificate, raised.release) == (None, None)
    assert vars(sampler).keys() == sampler.get_params(deep=False).keys()


@pytest.mark.catches("preprocessing._dp_pca:DPPCA._fit", 'vars(self).pop("release_", None)', "pass")
def test_earlier_moments_are_not_those_of_a_fit_that_fails(monkeypatch):
    pca = DPPCA(5.0)
    fit, error = lambda one: one.fit(X), KeyboardInterrupt
    raised = fail(pca, fit, (np.linalg, "eigh"), error(), monkeypatch)
    assert raised.release is pca.release_
    raised = fail(pca, fit, (CovarianceMechanism, "_block_sum"), error(), monkeypatch)
    assert raised.certificate.releases
    assert raised.release is None
