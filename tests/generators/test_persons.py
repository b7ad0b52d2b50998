"""Fits of rows of persons: what follows from them alone, what is refused, and what comes out."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import skdpgen
from skdpgen import (
    Category,
    DPAFGenerator,
    DPSinkhornGenerator,
    DPSlicedWassersteinGenerator,
    DPSWDDomainAdapter,
    DPSWFlowSampler,
    LDPEntropicGAN,
    Number,
    Schema,
)
from skdpgen.accounting.accountants import RELATIONS
from skdpgen.accounting.units import unit_sensitivity
from skdpgen.adaptation import DPSWDDomainClassifier, PrivateSearch
from skdpgen.encoders import PrivatePCA
from skdpgen.preprocessing import DPPCA, LocalPrivatizer
from skdpgen.privacy import (
    Certificate,
    PrivacyBudget,
    preview,
    verify,
)
from skdpgen.testing.common import EXTREMES, assert_not_quoted
from skdpgen.testing.spies import release_only

SECRET = "Smith-271828"
COMMON = {"epsilon": 5.0, "delta": 1e-4, "random_state": 0, "device": "cpu"}
NETWORK = COMMON | {"n_steps": 2, "classes": [0, 1]}
FEW = COMMON | {"n_steps": 2, "n_particles": 100}
OPEN = Schema({"age": Number(), "city": Category()})
DECLARED = Schema({"age": Number(0, 100, n_knots=4), "city": Category(["Graz", "Lyon"])})
ARRAYS = {
    "network": DPSlicedWassersteinGenerator(**NETWORK, batch_size=40),
    "bounds declared": DPSWFlowSampler(**NETWORK, bounds=(-3, 3)),
    "components": DPSWFlowSampler(**NETWORK, encoder=PrivatePCA(2)),
    "DPPCA": DPPCA(n_components=2, **COMMON),
}
TABLES = {
    "declared": DPSWFlowSampler(**FEW, schema=DECLARED),
    "open": DPSWFlowSampler(**FEW, schema=OPEN),
    "private": DPSWFlowSampler(**FEW, schema="private"),
}


def make_rows(n_more, n_persons=60):
    """Return rows of persons, some of whom have many more of them, and rows of nobody."""
    rng = np.random.RandomState(0)
    persons = np.r_[np.arange(n_persons), np.repeat(np.arange(5), n_more)].astype(object)
    persons = np.r_[persons, [None] * n_more]
    rng.shuffle(persons)
    X = rng.normal(size=(len(persons), 3))
    return X, rng.randint(2, size=len(X)), persons


def make_table(n_more):
    X, y, persons = make_rows(n_more, 400)
    cities = np.array(["Graz", "Lyon"])[y]
    return pd.DataFrame({"age": (50 + 15 * X[:, 0]).clip(0, 99), "city": cities}), persons


def fit(estimator, n_more, max_rows, **params):
    """Return a fit, and its warnings."""
    estimator = clone(estimator).set_params(max_rows_per_person=max_rows, **params)
    if getattr(estimator, "schema", "auto") != "auto":
        table, persons = make_table(n_more)
        data = (table,)
    else:
        X, y, persons = make_rows(n_more)
        data = (X, y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(*data, persons=persons)
    return estimator, [str(warning.message) for warning in caught]


@pytest.mark.catches(
    "curator.dataset:Dataset._hold",
    "n_rows if persons is None else persons.n_persons",
    "n_rows",
    param="declared-1",
)
@pytest.mark.parametrize("max_rows", [1, 3])
@pytest.mark.parametrize("name", [*ARRAYS, *TABLES])
def test_all_that_is_seen_follows_from_persons_alone(name, max_rows, capsys):
    """Two data sets of the same persons, with other numbers of rows."""
    shown = []
    for n_more in (0, 500):
        fitted, caught = fit((ARRAYS | TABLES)[name], n_more, max_rows, verbose=1)
        n_made = None
        if name != "DPPCA":
            made = fitted.sample()
            n_made = len(made[0] if isinstance(made, tuple) else made)
        # The digest is of what was released, with its noise.
        certificate, progress = replace(fitted.privacy_, digests=()), capsys.readouterr().err
        for release in set(certificate.releases) - {"row count"}:
            steps = re.findall(rf"{release}: [^\r\n]*?(\d+)/(\d+)", progress)
            assert set(steps) == {("0", "1"), ("1", "1")}
        assert (certificate.max_rows, certificate.n_records) == (max_rows, fitted.n_samples_)
        rows = getattr(getattr(fitted, "_rows", None), "rows", ())
        shown.append(
            {
                "certificate": (str(certificate), certificate.to_json()),
                "sizes": (fitted.n_samples_, fitted.sigma_, n_made, np.shape(rows)),
                "release": repr(getattr(fitted, "release_", None)),
                "announced": [text for text in caught if "takes about" in text],
                "steps": getattr(fitted, "n_iter_", None),
            }
        )
    assert shown[0] == shown[1]


@pytest.mark.parametrize(
    ("name", "relation"),
    [*((name, "zero_out") for name in [*ARRAYS, *TABLES]), ("components", "replace_one")],
)
def test_one_row_of_each_person_costs_what_rows_do(name, relation):
    """The plan, its noise and the sizes are those of so many rows."""
    estimator = clone((ARRAYS | TABLES)[name]).set_params(relation=relation)
    data = (make_table(0)[0],) if name in TABLES else make_rows(0)[:2]
    persons = [f"P{i}" for i in range(len(data[0]))]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain, of_persons = clone(estimator).fit(*data), clone(estimator)
        of_persons.fit(*data, persons=persons)
    assert plain.privacy_.events == of_persons.privacy_.events
    assert plain.sigma_ == of_persons.sigma_
    assert plain.n_samples_ == of_persons.n_samples_
    assert repr(getattr(plain, "release_", 0)) == repr(getattr(of_persons, "release_", 0))
    assert "one person has one record" in plain.privacy_.assumptions
    assert "one person has one record" not in of_persons.privacy_.assumptions


@pytest.mark.catches(
    "accounting.plan:Plan.weight",
    "self.max_rows if self.max_weight is None else self.max_weight",
    "1 if self.max_weight is None else self.max_weight",
    param="declared-zero_out",
)
@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("name", ["bounds declared", "declared"])
def test_the_noise_of_several_rows_is_so_many_times_as_much(name, relation):
    sigmas = {}
    for max_rows in (1, 2, 8):
        planned, _ = fit((ARRAYS | TABLES)[name], 10, max_rows, relation=relation, epsilon=3.0)
        assert planned.privacy_.epsilon <= 3.0
        sigmas[max_rows] = planned.sigma_
    # Beside the hundredth of the budget that shows how many rows there are, and of a sketch the
    # number of harmonics, and what the radius gets, which follow from the noise.
    assert 2.0 < sigmas[2] / sigmas[1] < 2.2
    assert 8.0 < sigmas[8] / sigmas[1] < 9.2


def test_without_noise_only_rows_that_count_are_seen():
    """Each person's rows are alike, so that it does not matter which of them count."""
    persons = np.repeat(np.arange(50), np.r_[np.ones(30, dtype=int), np.full(20, 9)])
    X = np.where(persons < 30, 1.0, 3.0)[:, None] * [1.0, 0.5]
    X = np.r_[X, np.full((40, 2), 100.0)]
    persons = [*persons, *[np.nan] * 40]
    for max_rows in (1, 2, 20):
        pca = DPPCA(n_components=1, epsilon=np.inf, clip_norm=1000.0, max_rows_per_person=max_rows)
        pca.fit(X, persons=persons)
        n_many = min(max_rows, 9)
        counted = np.r_[np.full(30, 1.0), np.full(20 * n_many, 3.0)]
        moment = 1.25 * np.mean(counted**2)
        # Squares of numbers that are shortened and rounded towards zero.
        assert pca.explained_variance_[0] == pytest.approx(moment, rel=1e-3)


@pytest.mark.parametrize("max_rows", [1, 4])
def test_shares_of_a_table_are_those_of_the_rows_that_count(max_rows):
    persons = [*range(300), *np.repeat(np.arange(300, 400), 7)]
    city = np.where(np.array(persons) < 300, "Graz", "Lyon")
    table = pd.DataFrame({"age": np.linspace(1, 99, 1000), "city": city})
    sampler = DPSWFlowSampler(**FEW | {"epsilon": np.inf}, schema=DECLARED)
    sampler.set_params(max_rows_per_person=max_rows, n_particles=500).fit(table, persons=persons)
    made = sampler.sample(4000, random_state=0)
    share = 100 * max_rows / (300 + 100 * max_rows)
    assert np.mean(made["city"] == "Lyon") == pytest.approx(share, abs=0.06)


class Owned:
    """A generator whose fits know whose the rows are."""

    def __init__(self, estimator, persons):
        self.estimator, self.persons = estimator, persons

    def fit(self, X, y):
        self.estimator.fit(X, y, persons=self.persons)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("has_classes", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize("name", ["network", "components"])
def test_without_its_noise_no_release_of_a_fit_moves_by_more_than_is_claimed(
    name, has_classes, relation
):
    """A person with eight rows, of which three count: equal ones, different ones, and none."""
    others = np.tile([0.6, 0.8, 0.0], (12, 1))
    estimator = clone(ARRAYS[name]).set_params(relation=relation, max_rows_per_person=3)
    estimator.set_params(classes=[0, 1] if has_classes else None)

    def release(rows, label, spies=None, null=None):
        X, persons = np.r_[others, rows], [*(np.arange(12) // 2), *["me"] * len(rows)]
        y = np.r_[np.arange(12) % 2, np.full(len(rows), label)] if has_classes else None
        owned = Owned(clone(estimator), persons)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return release_only(owned, X, y, spies, null)

    cases = [np.tile(row, (8, 1)) for row in EXTREMES[:7]] + [EXTREMES[:8], EXTREMES[1:2]]
    # Later mechanisms may depend on earlier releases: keep those of one fit.
    spies = release(cases[0], 0)
    null = np.arange(20) >= 12
    absent = [spy.exact for spy in release(cases[0], 0, spies, null)]
    labels = [0, 1] if has_classes else [0]
    moved = [[s.exact for s in release(rows, label, spies)] for rows in cases for label in labels]
    pairs = [(present, absent) for present in moved]
    if relation == "replace_one":
        pairs += [(a, b) for i, a in enumerate(moved) for b in moved[:i]]
    assert {spy.name for spy in spies} == set(release_names(estimator, others))
    for i, spy in enumerate(spies):
        stated = unit_sensitivity(spy.mechanism.sensitivity, relation, 3)
        largest = max(np.linalg.norm(a[i] - b[i]) for a, b in pairs)
        assert stated / 3 < largest <= stated, spy.name


def release_names(estimator, X):
    planned = preview(estimator, len(X), X.shape[1], n_classes=1, persons=True)
    return planned.releases


# --- what is refused -----------------------------------------------------------------------------


class Untouchable:
    """Rows that cannot be looked at."""

    shape, dtype, ndim = (9, 2), np.dtype(float), 2

    def __len__(self):
        raise AssertionError("Rows were looked at.")

    __array__ = __getitem__ = __iter__ = __len__


@pytest.mark.catches(
    "planning.fits:Planning._refuse_samples", "not release.is_sum", "release is None"
)
@pytest.mark.parametrize(
    "estimator",
    [
        DPSinkhornGenerator(),
        DPAFGenerator(),
        LDPEntropicGAN(),
        DPSlicedWassersteinGenerator(release="rows"),
        DPSWFlowSampler(release="resample"),
        DPSWFlowSampler(release="presample"),
    ],
)
def test_releases_that_are_no_sum_over_all_rows_are_refused_before_any_read(estimator):
    with PrivacyBudget(5.0, 1e-4) as budget:
        with pytest.raises(ValueError, match=r"known for one row.*release='sketch'.*no persons"):
            estimator.fit(Untouchable(), persons=Untouchable())
        assert budget.spent == 0
    with pytest.raises(ValueError, match="known for one row"):
        preview(estimator, 100, 3, persons=True)
    assert not hasattr(estimator, "privacy_")


def test_adapters_take_samplers_that_were_fitted_with_persons():
    X, y, persons = make_rows(5)
    estimators = [
        DPSWDDomainAdapter(),
        PrivateSearch(DPSWDDomainClassifier(), {"align_weight": [1.0]}),
    ]
    for estimator in estimators:
        with pytest.raises(ValueError, match=r"does not take persons: .*fit_to_sampler"):
            estimator.fit(X, y, X_target=Untouchable(), persons=persons)
    sampler = DPSWFlowSampler(**COMMON, n_steps=2, bounds=(-3, 3), max_rows_per_person=2)
    sampler.fit(X, persons=persons)
    adapter = DPSWDDomainAdapter(n_steps=2, random_state=0).fit_to_sampler(X, y, sampler)
    assert adapter.privacy_.max_rows == 2
    assert "Unit: person" in str(adapter.privacy_)


@pytest.mark.parametrize("name", [*ARRAYS, *TABLES])
def test_bad_persons_are_refused_before_anything_is_spent(name):
    estimator = clone((ARRAYS | TABLES)[name]).set_params(random_state=None)
    data = (make_table(9)[0],) if name in TABLES else make_rows(9)[:2]
    n = len(data[0])
    cases = [[SECRET] * (n - 1), [SECRET] * (n + 1), [[SECRET]] * n, [None] * n, SECRET]
    cases += [np.full((n, 1), SECRET), pd.DataFrame({"a": [SECRET] * n})]
    with PrivacyBudget(50.0, 1e-3) as budget:
        for persons in cases:
            with pytest.raises((TypeError, ValueError), match="persons") as raised:
                clone(estimator).fit(*data, persons=persons)
            assert_not_quoted(raised.value, SECRET)
            assert str(n) not in str(raised.value)
        assert budget.spent == 0


def test_identifiers_are_no_column_of_the_data():
    table, persons = make_table(3)
    table["patient"] = pd.Series(persons).fillna(-1).astype(float)
    for estimator, X in [
        (TABLES["private"], table),
        (ARRAYS["network"], table.drop(columns="city")),
    ]:
        with pytest.raises(ValueError, match=r"persons is the column 'patient' of X.*drop"):
            clone(estimator).fit(X, persons=table["patient"])


@pytest.mark.parametrize("max_rows", [0, -1, 1.5, True, None, "2"])
def test_numbers_of_rows_are_whole_and_positive(max_rows):
    X, y, persons = make_rows(0)
    for estimator in ARRAYS.values():
        estimator = clone(estimator).set_params(max_rows_per_person=max_rows)
        with pytest.raises(ValueError, match="max_rows_per_person must be a positive whole number"):
            estimator.fit(X, y, persons=persons)


def test_labels_of_another_length_do_not_tell_how_many_rows_there_are():
    X, y, persons = make_rows(9)
    with pytest.raises(ValueError, match="inconsistent numbers of samples") as raised:
        clone(ARRAYS["network"]).fit(X, y[:-1], persons=persons)
    assert str(len(X)) not in str(raised.value)


# --- what is certified ---------------------------------------------------------------------------


@pytest.mark.catches("accounting.certificate:Certificate._list_statements", "self.max_rows", "None")
def test_the_certificate_is_for_persons(tmp_path):
    fitted, _ = fit(ARRAYS["bounds declared"], 9, 3)
    certificate = fitted.privacy_
    text = str(certificate).replace("\n    ", " ")
    assert "Unit: person, with all their rows (at most 3 of them are used)." in text
    assert "the number of persons, 60, is public, and that of rows is not" in text
    assert "one person has one identifier" in text
    assert "one record" not in text
    assert "Unit: person" in certificate._repr_html_()
    written = certificate.to_json()
    assert '"n_persons": 60' in written
    assert "n_records" not in written
    again = Certificate.from_json(written)
    assert (again.max_rows, again.n_records, str(again)) == (3, 60, str(certificate))
    with pytest.warns(UserWarning, match="fixed seed"):
        assert verify(written) == certificate.epsilon
    fitted.save(tmp_path / "fitted.zip")
    loaded = skdpgen.load(tmp_path / "fitted.zip")
    assert (str(loaded.privacy_), loaded.max_rows_per_person) == (str(certificate), 3)
    assert np.array_equal(loaded.sample()[0], fitted.sample()[0])


@pytest.mark.parametrize("max_rows", [1, 3])
@pytest.mark.parametrize("name", ["network", "components", "declared", "open"])
def test_a_preview_says_what_a_fit_of_persons_costs(name, max_rows):
    fitted, _ = fit((ARRAYS | TABLES)[name], 9, max_rows)
    estimator = clone((ARRAYS | TABLES)[name]).set_params(max_rows_per_person=max_rows)
    data = make_table(9) if name in TABLES else make_rows(9)
    *data, persons = data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        planned = preview(estimator, *data, persons=persons)
    assert planned.events == fitted.privacy_.events
    assert planned.sigma == fitted.sigma_
    assert str(planned).splitlines()[:5] == str(fitted.privacy_).splitlines()[:5]
    counted = preview(estimator, planned.n_records, data[0].shape[1], n_classes=2, persons=True)
    assert counted.max_rows == max_rows
    assert counted.n_records == planned.n_records


def test_a_preview_of_few_persons_tells_how_many_rows_there_can_be():
    note = preview(DPSWFlowSampler(1.0, max_rows_per_person=4), 50, 8, persons=True).notes[0]
    assert "200 at most, of 50 persons" in note
    with pytest.raises(ValueError, match="LocalPrivatizer releases rows one by one"):
        preview(LocalPrivatizer(), 50, 8, persons=True)


# --- scikit-learn --------------------------------------------------------------------------------


def test_pipelines_and_searches_hand_persons_on():
    X, y, persons = make_rows(4)
    sampler = DPSWFlowSampler(**NETWORK, bounds=(-3, 3))
    pipeline = make_pipeline(FunctionTransformer(), sampler)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline.fit(X, y, dpswflowsampler__persons=persons)
        assert pipeline[-1].privacy_.max_rows == 1
        whose = pd.Series(persons).fillna("nobody").astype(str)
        search = GridSearchCV(sampler, {"max_rows_per_person": [1, 2]}, cv=GroupKFold(2))
        search.fit(X, y, groups=whose, persons=whose.to_numpy())
    assert search.best_estimator_.privacy_.max_rows in (1, 2)
    assert search.best_estimator_.n_samples_ == 61


def test_persons_are_asked_for_by_routing():
    X, y, persons = make_rows(4)
    sampler = DPSWFlowSampler(**NETWORK, bounds=(-3, 3))
    with sklearn.config_context(enable_metadata_routing=True), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline = make_pipeline(FunctionTransformer(), sampler.set_fit_request(persons=True))
        pipeline.fit(X, y, persons=persons)
    assert pipeline[-1].privacy_.n_records == 60


def test_chunks_of_a_table_name_the_column_of_persons():
    table, persons = make_table(20)
    whole = table.assign(patient=persons)
    chunks = lambda: iter([whole[:130], whole[130:]])  # noqa: E731
    estimator = clone(TABLES["declared"]).set_params(max_rows_per_person=2)
    made = [
        clone(estimator).fit(data, persons=given).sample(50)
        for data, given in [(table, persons), (whole, "patient"), (chunks, "patient")]
    ]
    for other in made[1:]:
        assert made[0].astype(object).equals(other.astype(object))
    for by_position in (persons, lambda: iter([persons])):
        with pytest.raises(ValueError, match="must be the name of the column"):
            clone(estimator).fit(lambda: iter([table]), persons=by_position)
