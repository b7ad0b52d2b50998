"""A file holds a fitted estimator to the bit, and nothing that could run."""

import dataclasses
import functools
import hashlib
import io
import json
import math
import pickle
import zipfile

import numpy as np
import pandas as pd
import pytest
from scipy.stats import loguniform, randint
from sklearn.base import BaseEstimator, clone
from sklearn.decomposition import FastICA
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from torch import nn

import skdpgen
from skdpgen import (
    Category,
    Date,
    DPAFGenerator,
    DPSinkhornGenerator,
    DPSlicedWassersteinGenerator,
    DPSWDDomainAdapter,
    DPSWFlowSampler,
    Identifier,
    LDPEntropicGAN,
    Number,
    Schema,
)
from skdpgen.adaptation import DPSWDDomainClassifier, PrivateSearch
from skdpgen.encoders import PrivatePCA
from skdpgen.generators import DPHistorySampler
from skdpgen.preprocessing import DPPCA, LocalPrivatizer, LowFrequencies
from skdpgen.releases import ForwardAggregates, SampledGradients, SlicedRows
from skdpgen.testing.common import differ

pytestmark = pytest.mark.filterwarnings("ignore")

RNG = np.random.RandomState(0)
X = RNG.uniform(size=(60, 64))
Y = np.array(["a", "b"] * 30, dtype=object)
IMAGES = {"bounds": (0, 1), "epsilon": 5.0, "device": "cpu"}
TABLE = pd.DataFrame(
    {
        "n": pd.array([1, 2, None] * 20, dtype="Int64"),
        "c": pd.Series(["x", "y"] * 30, dtype="category"),
        "d": pd.date_range("2020-01-01", periods=60),
        "s": ["p", "q"] * 30,
    }
)
TEXTS = pd.DataFrame(
    {
        "pay": [f"{i},50" for i in range(300)],
        "day": ["2020-01-01", "2020-05-05", "NA"] * 100,
        "kind": ["x", "y", "z"] * 100,
        "is_new": ["yes", "no", ""] * 100,
        "count": np.arange(300.0),
        "id": np.arange(300),
    }
)
SCHEMA = Schema(
    {
        "n": Number(0, 5, decimals=0, missing=True),
        "c": Category(["x", "y"]),
        "d": Date("2020-01-01", "2020-03-31"),
        "s": Category(["p", "q"], other="r"),
    }
)


def _of_frame():
    frame = pd.DataFrame(X[:, :3].astype(np.float32), columns=["u", "v", "w"])
    label = pd.Series(Y, dtype="category", name="label")
    generator = DPSlicedWassersteinGenerator(**IMAGES, classes=["a", "b"], n_steps=3)
    return generator.fit(frame, label)


def fit_to_noised_rows(rows):
    privatizer = LocalPrivatizer(mechanism="gaussian", epsilon=5.0, bounds=(0, 1)).fit(rows)
    noised = privatizer.transform(rows)
    return LDPEntropicGAN(n_steps=2).fit_privatized(noised, privatizer=privatizer)


FITS = {
    "sketch": _of_frame,
    "defaults": lambda: DPSlicedWassersteinGenerator(n_steps=3).fit(X, Y),
    "number": lambda: DPSlicedWassersteinGenerator(
        y_bounds=(0, 1), n_steps=3, encoder="dp-pca", random_state=7, **IMAGES
    ).fit(X, X[:, 0]),
    "rows": lambda: DPSlicedWassersteinGenerator(
        **IMAGES, release=SlicedRows(n_steps=2), encoder=PrivatePCA(5), classes=range(2)
    ).fit(X, [0, 1] * 30),
    "table": lambda: DPSlicedWassersteinGenerator(schema=SCHEMA, n_steps=3).fit(TABLE, target="c"),
    "particles": lambda: DPSWFlowSampler(
        **IMAGES,
        n_steps=3,
        init=X[:9],
        encoder=[FrozenEstimator(LowFrequencies(4).fit(X)), PrivatePCA(5)],
    ).fit(X),
    "flow": lambda: DPSWFlowSampler(**IMAGES, n_steps=3, release="presample").fit(X),
    "open table": lambda: DPSWFlowSampler(schema="private", n_steps=3, n_particles=20).fit(TABLE),
    "open texts": lambda: DPSlicedWassersteinGenerator(schema="private", n_steps=3).fit(
        TEXTS, target="kind"
    ),
    "identifier": lambda: DPSWFlowSampler(
        schema=Schema.from_dtypes(TEXTS.dtypes, declared={"id": Identifier()}),
        n_steps=3,
        n_particles=20,
    ).fit(TEXTS),
    "gradients, table": lambda: DPSinkhornGenerator(
        schema=SCHEMA, release=SampledGradients(n_steps=2)
    ).fit(TABLE),
    "aggregates": lambda: DPAFGenerator(
        **IMAGES, release=ForwardAggregates(2), classes=["a", "b"]
    ).fit(X, Y),
    "local": lambda: LDPEntropicGAN(**IMAGES, n_steps=2, classes=["a", "b"]).fit(X, Y),
    "shapes": lambda: DPSWFlowSampler(
        math.inf, schema=Schema({"x": Number(0, 1), "y": Number(0, 1)}), n_steps=2
    ).fit(pd.DataFrame(X[:, :2], columns=["x", "y"])),
    "components": lambda: DPPCA(n_components=3, **IMAGES).fit(X),
    "encoded": lambda: DPSWFlowSampler(
        **IMAGES, n_steps=2, encoder=FrozenEstimator(DPPCA(n_components=3, **IMAGES).fit(X))
    ).fit(X),
    "adapter": lambda: DPSWDDomainAdapter(5.0, n_steps=3).fit(X, Y, X_target=X[:, ::-1]),
    "privatizer": lambda: LocalPrivatizer(
        mechanism="gaussian", epsilon=5.0, bounds=(0, 1), classes=["a", "b"]
    ).fit(X),
    "persons": lambda: DPSWFlowSampler(**IMAGES, n_steps=2, max_rows_per_person=2).fit(
        X[:, :3], persons=np.arange(60) // 3
    ),
    "histories": lambda: DPHistorySampler(n_steps=2, n_particles=20).fit(
        {
            "persons": TABLE.assign(id=range(len(TABLE))),
            "rows": TABLE.assign(id=[i // 2 for i in range(len(TABLE))]),
        },
        persons="id",
    ),
    "components of persons": lambda: DPPCA(
        n_components=3, **IMAGES, relation="replace_one", max_rows_per_person=2
    ).fit(X, persons=np.arange(60) // 3),
    "noised rows": lambda: fit_to_noised_rows(X[:, :2]),
    "no target": lambda: DPSWDDomainAdapter(5.0, n_steps=3).fit(X, Y),
    "to a sampler": lambda: DPSWDDomainAdapter(0.1, n_steps=3).fit_to_sampler(
        X, Y, DPSWFlowSampler(5.0, 1e-6, n_steps=2, bounds=(0, 1)).fit(X)
    ),
    "classifier": lambda: DPSWDDomainClassifier(5.0, n_steps=3).fit(X, Y, X_target=X[:, ::-1]),
    # The sampler's encoder is a pipeline of scikit-learn, fitted to the source.
    "classifier of wide rows": lambda: DPSWDDomainClassifier(5.0, n_steps=3).fit(
        WIDE, Y, X_target=WIDE + 0.1
    ),
    "search": lambda: _search(align_weight=[0.1, 0.3]),
    "search among releases": lambda: _search(sampler__n_particles=[10, 20]),
    "frequencies": lambda: LowFrequencies(3).fit(X),
}
WIDE = RNG.uniform(size=(60, 70))


@functools.cache
def fit(name):
    """Fit an estimator once for all tests, which only save, sample and read it."""
    return FITS[name]()


def _search(scoring=None, **params):
    sampler = DPSWFlowSampler(n_steps=2, n_particles=20)
    classifier = DPSWDDomainClassifier(5.0, n_steps=2, sampler=sampler)
    search = PrivateSearch(classifier, params, n_candidates=2, scoring=scoring)
    return search.fit(X, Y, X_target=X[:, ::-1])


def _save(estimator):
    file = io.BytesIO()
    estimator.save(file)
    return file.getvalue()


def _load(content, tmp_path):
    path = tmp_path / "estimator.skdpgen"
    path.write_bytes(content)
    return skdpgen.load(path)


def _made_by(estimator):
    if hasattr(estimator, "sample"):
        made = estimator.sample(10, random_state=0)
        made = tuple(made.values()) if isinstance(made, dict) else made
        return made if isinstance(made, tuple) else (made,)
    if isinstance(estimator, LocalPrivatizer):
        return (estimator.inverse_transform(X),)
    return (estimator.transform(WIDE[:, : estimator.n_features_in_]),)


def _assert_same(made, again):
    assert type(made) is type(again)
    if isinstance(made, pd.DataFrame):
        pd.testing.assert_frame_equal(made, again, check_exact=True)
    elif isinstance(made, pd.Series):
        pd.testing.assert_series_equal(made, again, check_exact=True)
    else:
        assert made.dtype == again.dtype
        assert np.array_equal(made, again)


# Kinds of files whose parts are in others, too.
SLOW = ("sketch", "defaults", "few components", "table", "flow", "open table", "identifier")
SLOW += ("shapes", "components", "no target", "to a sampler", "search among releases")
SLOW += ("classifier of wide rows",)


@pytest.mark.parametrize(
    "name", [pytest.param(case, marks=[pytest.mark.slow] * (case in SLOW)) for case in FITS]
)
def test_loaded_estimator_is_the_saved_one(name, tmp_path):
    fitted = fit(name)
    loaded = _load(_save(fitted), tmp_path)
    assert type(loaded) is type(fitted)
    for made, again in zip(_made_by(fitted), _made_by(loaded), strict=True):
        _assert_same(made, again)
    assert vars(loaded).keys() == vars(fitted).keys()
    if hasattr(fitted, "privacy_"):
        assert loaded.privacy_ == fitted.privacy_
        assert loaded.privacy_.sigma == fitted.privacy_.sigma
        assert loaded.privacy_.to_json() == fitted.privacy_.to_json()
    assert repr(loaded) == repr(fitted)
    for public in [key for key in vars(fitted) if key.endswith("_")]:
        pair = getattr(fitted, public), getattr(loaded, public)
        if isinstance(pair[0], BaseEstimator):
            pair = tuple(map(repr, pair))
        assert not differ(*pair)
    if hasattr(fitted, "schema_report_"):
        _assert_same(fitted.schema_report_, loaded.schema_report_)
    # A loaded estimator is whole: it can be cloned, saved and fitted again.
    assert repr(clone(loaded)) == repr(clone(fitted))
    assert _save(loaded) == _save(fitted)


def test_every_public_estimator_is_saved():
    public = {
        value
        for home in (skdpgen, *(getattr(skdpgen, name) for name in skdpgen.HOMES))
        for value in (getattr(home, name) for name in home.__all__)
        if isinstance(value, type) and issubclass(value, BaseEstimator) and hasattr(value, "fit")
    }
    assert public == {type(fit(name)) for name in FITS.keys() - {*SLOW}}


def test_searches_by_distributions_are_saved(tmp_path):
    fitted = _search(align_weight=loguniform(0.1, 1.0), n_projections=randint(2, high=9))
    loaded = _load(_save(fitted), tmp_path)
    for name, drawn in fitted.param_distributions.items():
        again = loaded.param_distributions[name]
        assert (drawn.dist.name, drawn.args, drawn.kwds) == (
            again.dist.name,
            again.args,
            again.kwds,
        )


def test_searches_by_code_say_what_to_save_instead(tmp_path):
    fitted = _search(scoring=lambda model, X, y: 0.0, align_weight=[0.1, 0.3])
    with pytest.raises(ValueError, match=r"scoring cannot be saved.*Save best_estimator_"):
        fitted.save(tmp_path / "search")
    assert _load(_save(fitted.best_estimator_), tmp_path).privacy_ == fitted.privacy_


@pytest.mark.catches(
    "adaptation._private_search:PrivateSearch._list_certified",
    'yield "privacy_ of best_estimator_", best.privacy_, self.privacy_',
    'yield "privacy_ of best_estimator_", self.privacy_, self.privacy_',
)
def test_a_search_with_another_certificate_is_refused():
    fitted = _search(align_weight=[0.1, 0.3])
    fitted.privacy_ = dataclasses.replace(fitted.privacy_, delta=1e-7)
    with pytest.raises(ValueError, match=r"^privacy_ of best_estimator_ of PrivateSearch"):
        fitted.save(io.BytesIO())


def test_a_file_is_json_and_arrays():
    content = _save(fit("flow"))
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        for name in file.namelist():
            held = file.read(name)
            if name == "estimator.json":
                json.loads(held)
            elif name == "digest":
                assert len(bytes.fromhex(held.decode())) == 32
            else:
                np.lib.format.read_array(io.BytesIO(held), allow_pickle=False)


class _Encoder:
    def transform(self, X):
        return X

    inverse_transform = transform


REFUSED = {
    "factory": (dict(network=lambda n, m: nn.Linear(n, m)), "network cannot be saved.*by its name"),
    "object": (dict(encoder=_Encoder()), "encoder cannot be saved: it is a _Encoder.*pickle"),
    "of others": (
        dict(encoder=FrozenEstimator(FastICA(3).fit(X))),
        "encoder.estimator cannot be .* FastICA.* scalers and PCA .* pickle",
    ),
    "seed": (dict(random_state=np.random.RandomState(0)), "random_state cannot be saved"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_code_is_refused(name, tmp_path):
    params, match = REFUSED[name]
    fitted = DPSlicedWassersteinGenerator(**IMAGES, n_steps=2).set_params(**params).fit(X)
    path = tmp_path / "estimator.skdpgen"
    with pytest.raises(ValueError, match=match):
        fitted.save(path)
    assert not path.exists()
    with pytest.raises(NotFittedError):
        clone(fitted).save(path)


def test_copies_of_a_privatizer_do_not_repeat_its_noise(tmp_path):
    fitted = LocalPrivatizer(random_state=0).fit(X)
    with pytest.raises(ValueError, match="copies would repeat its noise"):
        fitted.save(tmp_path / "privatizer")
    with pytest.raises(ValueError, match="copies would repeat its noise"):
        fitted.set_params(random_state=None).save(tmp_path / "privatizer")
    loaded = _load(_save(fit("privatizer")), tmp_path)
    assert not np.array_equal(loaded.transform(X), loaded.transform(X))


@pytest.fixture(scope="module")
def content():
    return _save(DPSWFlowSampler(**IMAGES, n_steps=2).fit(X))


def _unpack(content):
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return {name: file.read(name) for name in file.namelist()}


def _pack(entries, *, is_forged=True):
    """Write an archive, as a forger would, who computes its digest anew."""
    digest, file = hashlib.blake2b(digest_size=32), io.BytesIO()
    with zipfile.ZipFile(file, "w") as new:
        for name, held in entries.items():
            if name != "digest":
                digest.update(name.encode() + held)
            elif is_forged:
                held = digest.hexdigest()
            new.writestr(name, held)
    return file.getvalue()


def _changed(content, change, *, is_forged=True):
    """Write the archive anew, with other JSON."""
    entries = _unpack(content)
    held = json.loads(entries["estimator.json"])
    change(held)
    entries["estimator.json"] = json.dumps(held).encode()
    return _pack(entries, is_forged=is_forged)


CHANGES = {
    "no estimator": lambda held: held.update(estimator=[1]),
    "a class of others": lambda held: held["estimator"].update({"is": "Popen"}),
    "a class by its path": lambda held: held["estimator"].update({"is": "os.system"}),
    "an unfitted one": lambda held: held["estimator"]["of"].update(attributes={}),
    "a hidden method": lambda held: held["estimator"]["of"]["attributes"].update(sample=1),
    "another class": lambda held: held["estimator"]["of"]["attributes"].update(__class__="int"),
    "a lacking array": lambda held: held["estimator"]["of"]["attributes"].update(
        a_={"is": "array", "of": 999}
    ),
    "a path": lambda held: held["estimator"]["of"]["attributes"].update(
        a_={"is": "array", "of": "../x"}
    ),
    "an unknown event": lambda held: held["estimator"]["of"]["attributes"].update(
        a_={"is": "event", "of": {"type": "Popen"}}
    ),
    "a hook": lambda held: held["estimator"]["of"]["attributes"].update(
        a_={"is": "Linear", "of": {"attributes": {"_forward_hooks": 1}}}
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_tampered_files_are_refused(name, content, tmp_path):
    with pytest.raises(ValueError, match="no file of a fitted skdpgen estimator, or it is damaged"):
        _load(_changed(content, CHANGES[name]), tmp_path)


class _Runs:
    """Its pickle writes a file when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_a_pickle_among_the_arrays_is_not_run(content, tmp_path):
    trace, pickled = tmp_path / "trace", io.BytesIO()
    np.save(pickled, np.array([_Runs(trace)], dtype=object), allow_pickle=True)
    entries = _unpack(content)
    entries.update({name: pickled.getvalue() for name in entries if name.endswith(".npy")})
    # The digest of the file is right, so that `load` reads the arrays.
    with pytest.raises(ValueError, match="damaged") as refused:
        _load(_pack(entries), tmp_path)
    assert not trace.exists()
    assert "Object arrays cannot be loaded" in str(refused.value)


def test_foreign_files_are_refused(content, tmp_path):
    array = io.BytesIO()
    with zipfile.ZipFile(array, "w") as file:
        file.writestr("estimator.json", "{}")
    flipped = bytearray(content)
    flipped[len(content) // 2] ^= 255
    bad = [b"", b"skdpgen", content[:-100], content[: len(content) // 2], bytes(flipped)]
    for held in [*bad, pickle.dumps(SCHEMA), array.getvalue()]:
        with pytest.raises(ValueError, match="damaged"):
            _load(held, tmp_path)
    with pytest.raises(FileNotFoundError):
        skdpgen.load(tmp_path / "nowhere")


def test_other_formats_are_refused(content, tmp_path):
    with pytest.raises(ValueError, match="was written in format 5, by skdpgen 9"):
        _load(_changed(content, lambda held: held.update(format=[5, 0], version="9")), tmp_path)
    with pytest.raises(ValueError, match="was written in format 3, by skdpgen"):
        _load(_changed(content, lambda held: held.update(format=[3, 0])), tmp_path)
    _load(_changed(content, lambda held: held.update(format=[4, 7])), tmp_path)


def test_a_privatizer_from_elsewhere_has_its_own_noise_and_its_own_price(monkeypatch, tmp_path):
    """Else whoever wrote the file could recompute the noise that owners add."""
    monkeypatch.setattr(LocalPrivatizer, "save", skdpgen.saving.serialization.Saves.save)
    seeded = LocalPrivatizer(epsilon=1.0, random_state=7).fit(X).set_params(random_state=None)
    with pytest.raises(ValueError, match="The noise follows from a seed"):
        _load(_save(seeded), tmp_path)
    cheap = LocalPrivatizer(epsilon=1.0).fit(X)
    cheap.plan_ = LocalPrivatizer(epsilon=9.0).fit(X).plan_
    with pytest.raises(ValueError, match=r"plan_ of LocalPrivatizer is Plan\("):
        _save(cheap)
    monkeypatch.setattr(LocalPrivatizer, "check_certified", lambda self: None)
    content = _save(cheap)
    monkeypatch.undo()
    with pytest.raises(ValueError, match=r"plan_ of LocalPrivatizer is Plan\("):
        _load(content, tmp_path)


# Contradictions to the certificate of a file, by how the JSON of its attributes is changed.
CONTRADICTIONS = {
    "a smaller price": (dict(epsilon_=0.1), "epsilon_ is no attribute"),
    "more noise": (dict(sigma_=99.0), "sigma_ is no attribute"),
    "other records": (dict(n_samples_=7), "n_samples_ of DPSWFlowSampler is 7"),
    "a smaller budget": (dict(epsilon=0.1), "epsilon of DPSWFlowSampler differs"),
    "another delta": (dict(delta=1e-9), "delta of DPSWFlowSampler differs"),
    "another relation": (dict(relation="replace_one"), "relation of DPSWFlowSampler differs"),
    "another accountant": (dict(accountant="rdp"), "accountant of DPSWFlowSampler differs"),
    "other bounds": (dict(bounds=None), "bounds of DPSWFlowSampler differs"),
}


@pytest.mark.catches(
    "accounting.provenance:Provenance.check",
    "sorted({name for name, _ in fitted.items() ^ given.items()})",
    "[]",
)
@pytest.mark.catches(
    "saving.serialization:_check_digest",
    "file.read(_DIGEST) != digest.hexdigest().encode()",
    "False",
)
@pytest.mark.catches("saving.values:Reader._make", "made._check_loaded()", "pass")
@pytest.mark.catches(
    "saving.values:Reader._make", "isinstance(getattr(cls, name, None), property)", "False"
)
@pytest.mark.parametrize("name", CONTRADICTIONS)
def test_a_file_cannot_contradict_its_certificate(name, content, tmp_path):
    change, match = CONTRADICTIONS[name]

    def edit(held):
        held["estimator"]["of"]["attributes"].update(change)

    with pytest.raises(ValueError, match=match):
        _load(_changed(content, edit), tmp_path)
    with pytest.raises(ValueError, match="was damaged or edited"):
        _load(_changed(content, edit, is_forged=False), tmp_path)


@pytest.mark.catches("saving.serialization:Certified.check_certified", "own != certified", "False")
@pytest.mark.catches(
    "saving.serialization:Certified._list_certified",
    "certificate.epsilon > epsilon * (1 + _TOLERANCE)",
    "False",
)
def test_terms_are_compared_also_where_the_origin_says_the_same(content, tmp_path):
    """Whoever edits parameters may edit what the certificate says of them, too."""

    def edit(held):
        attributes = held["estimator"]["of"]["attributes"]
        attributes["epsilon"] = 0.1
        written = attributes["privacy_"]["of"]
        certificate = json.loads(written[0])
        certificate["made_by"]["parameters"]["epsilon"] = "0.1"
        written[0] = json.dumps(certificate)

    with pytest.raises(
        ValueError, match=r"epsilon of DPSWFlowSampler is 0\.1, and its certificate"
    ):
        _load(_changed(content, edit), tmp_path)


@pytest.mark.catches(
    "saving.serialization:Certified.check_certified",
    "not _is_close(certificate.sigma, sigma)",
    "False",
    param="sketch",
)
@pytest.mark.parametrize(
    "name", ["sketch", "table", "classifier", "search", "adapter", "privatizer", "components"]
)
def test_the_noise_is_that_of_the_certificate(name, tmp_path):
    fitted = fit(name)

    def edit(held):
        of_certificate = held["estimator"]["of"]["attributes"]["privacy_"]["of"]
        of_certificate[1] = 0.25 if of_certificate[1] is None else 1.01 * of_certificate[1] + 1e-3

    of_sampler = "sigma of target_sampler_ of DPSWDDomain.* is"
    match = {
        "classifier": of_sampler,
        "search": "sigma_ of PrivateSearch is",
        "adapter": of_sampler,
        "privatizer": "plan_ of LocalPrivatizer is",
    }.get(name, "sigma_ is .*, and the releases have")
    with pytest.raises(ValueError, match=match):
        _load(_changed(_save(fitted), edit), tmp_path)


def test_the_best_of_a_search_is_saved_with_the_price_of_the_search(tmp_path):
    sampler = DPSWFlowSampler(n_steps=2)
    adapter = DPSWDDomainAdapter(5.0, network="mlp", n_steps=3, n_components=4, sampler=sampler)
    searched = {"sampler__clip_norm": [1.0, 2.0]}
    search = PrivateSearch(adapter, searched, n_candidates=2, scoring=lambda model, X, y: 1.0)
    best = search.fit(X, Y, X_target=X[:, ::-1]).best_estimator_
    loaded = _load(_save(best), tmp_path)
    assert loaded.privacy_.releases == ("best of several fits",)
    assert (loaded.epsilon_, loaded.sigma_) == (best.epsilon_, best.sigma_)
    assert loaded.epsilon_ == search.epsilon_ > 4.9


def test_parameters_that_were_changed_after_the_fit_are_not_saved(tmp_path):
    fitted = DPSWFlowSampler(**IMAGES, n_steps=2).fit(X[:, :2])
    fitted.set_params(epsilon=0.1)
    with pytest.raises(ValueError, match=r"epsilon of DPSWFlowSampler differs .* Fit again"):
        fitted.save(tmp_path / "sampler")
    assert not (tmp_path / "sampler").exists()
    # A seed, a device and what is shown are no part of it.
    fitted.set_params(epsilon=5.0, random_state=3, verbose=1, device="auto")
    _load(_save(fitted), tmp_path)
    with pytest.raises(AttributeError):
        fitted.epsilon_ = 0.1


def test_names_occur_once_and_entries_are_those_that_were_written(content, tmp_path):
    entries = _unpack(content)
    text = entries["estimator.json"]
    twice = text.replace(b'"format":', b'"format": [9, 9], "format":', 1)
    with pytest.raises(ValueError, match=r"\['format'\] more than once"):
        _load(_pack({**entries, "estimator.json": twice}), tmp_path)
    nested = text.replace(b'"epsilon":', b'"epsilon": 0.1, "epsilon":', 1)
    with pytest.raises(ValueError, match=r"\['epsilon'\] more than once"):
        _load(_pack({**entries, "estimator.json": nested}), tmp_path)
    others = {"estimator.json": text, "arrays/99.npy": entries["arrays/0.npy"], **entries}
    without = {name: held for name, held in entries.items() if name != "digest"}
    for changed in (others, without, dict(reversed(entries.items()))):
        with pytest.raises(ValueError, match="other entries than were written"):
            _load(_pack(changed), tmp_path)
    further = _changed(content, lambda held: held.update(epsilon_=0.1))
    with pytest.raises(ValueError, match="a part of the file has the members"):
        _load(further, tmp_path)


def _list_parts(node):
    """Give all parts of a file that say what they are."""
    if isinstance(node, dict):
        if node.keys() == {"is", "of"}:
            yield node
        node = node.values()
    for part in node if not isinstance(node, str | int | float | None) else ():
        yield from _list_parts(part)


@pytest.mark.catches("saving.values:Reader.read", 'check_members_of(node, "is", "of")', "pass")
def test_parts_of_a_file_have_the_members_that_were_written(tmp_path):
    entries = _unpack(_save(fit("table")))
    held = json.loads(entries["estimator.json"])
    first = {part["is"]: part for part in _list_parts(held)}
    assert {"array", "certificate", "dict", "schema", "tuple"} <= first.keys()
    for part in first.values():
        part["further"] = 1
        changed = {**entries, "estimator.json": json.dumps(held).encode()}
        with pytest.raises(ValueError, match=r"members \['further', 'is', 'of'\]"):
            _load(_pack(changed), tmp_path)
        del part["further"]


@pytest.mark.catches("saving.values:_read_dict", "len(value) < len(content)", "False")
def test_a_dict_has_a_key_once(tmp_path):
    content = _save(fit("table"))
    assert b'"is": "dict"' in _unpack(content)["estimator.json"]

    def double(node):
        if isinstance(node, dict) and node.get("is") == "dict" and node["of"]:
            node["of"].append(node["of"][0])
            return True
        parts = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
        return any(map(double, parts))

    with pytest.raises(ValueError, match="a key more than once"):
        _load(_changed(content, lambda held: double(held["estimator"])), tmp_path)


class Shifted(DPSWFlowSampler):
    """A generator of somebody else's: it is known to files since it is defined."""


def test_a_generator_of_another_package_saves(tmp_path):
    X = np.random.RandomState(0).normal(size=(90, 3))
    Shifted(5.0, 1e-4, bounds=(-4, 4), n_steps=3).fit(X).save(tmp_path / "shifted")
    loaded = skdpgen.load(tmp_path / "shifted")
    assert type(loaded) is Shifted
    for name in ("Shifted", "DPSWFlowSampler"):
        type(name, (DPSWFlowSampler,), {"__module__": "elsewhere"})
    assert type(skdpgen.load(tmp_path / "shifted")) is Shifted
