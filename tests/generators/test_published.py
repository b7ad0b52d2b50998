# SPDX-License-Identifier: BSD-3-Clause
"""Published releases: fitted again to the bit, merged, and refused after edits."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import skdpgen
from skdpgen import Category, DPSlicedWassersteinGenerator, DPSWFlowSampler, Number, Schema
from skdpgen.mechanisms.noise import NoiseSource, PublicSource
from skdpgen.releases import SliceSketch, from_release, merge
from skdpgen.streams import ReleaseStream
from skdpgen.tables import Implies

BOTH = [DPSWFlowSampler, DPSlicedWassersteinGenerator]
SCHEMA = Schema(
    {
        "age": Number(0, 80, decimals=0, knots=[0, 20, 40, 80]),
        "smokes": Category(["no", "yes"]),
        "city": Category(["x", "y", "z"]),
    }
)
RULE = Implies({"smokes": "yes"}, {"city": ["x"]})


def make_table(n_rows=400, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(0, 81, n_rows),
            "smokes": rng.choice(["no", "yes"], n_rows),
            "city": rng.choice(list("xyz"), n_rows),
        }
    )


def fit_table(seed=0, cls=DPSWFlowSampler, **params):
    params = {"epsilon": 8.0, "schema": SCHEMA, "n_steps": 5} | params
    return cls(**params).fit(make_table(seed=seed))


def as_parts(sample):
    return [np.asarray(part) for part in (sample if isinstance(sample, tuple) else (sample,))]


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("kind", ["table", "inferred", "array", "components"])
def test_file_gives_the_same_fit_to_the_bit(cls, kind, tmp_path):
    params, data = {"epsilon": 8.0, "n_steps": 5}, (make_table(),)
    if kind == "table":
        params["schema"] = SCHEMA
    if kind in ("array", "components"):
        rng = np.random.default_rng(0)
        data = rng.uniform(0, 1, (300, 5)), rng.integers(0, 2, 300)
        params |= {"bounds": (0, 1), "encoder": None if kind == "array" else "dp-pca"}
    fitted = cls(**params).fit(*data)
    fitted.release_.to_file(tmp_path / "release")
    again = from_release(tmp_path / "release", cls(**params))
    samples = [as_parts(one.sample(50, random_state=1)) for one in (fitted, again)]
    for first, second in zip(*samples, strict=True):
        np.testing.assert_array_equal(first, second)
    assert again.privacy_ == fitted.privacy_
    assert vars(again).keys() == vars(fitted).keys()
    again.save(tmp_path / "estimator")
    skdpgen.load(tmp_path / "estimator")


@pytest.mark.parametrize(("cls", "other"), [BOTH, BOTH[::-1]])
def test_tables_take_either_class_and_other_parameters(cls, other):
    fitted = fit_table(cls=cls)
    again = from_release(fitted.release_, other(epsilon=0.1, n_steps=3, random_state=0))
    assert again.epsilon == 8.0
    assert again.n_iter_ <= 3
    assert again.privacy_.epsilon == fitted.privacy_.epsilon


def test_rules_can_be_added():
    again = from_release(fit_table().release_, DPSWFlowSampler(n_steps=5), rules=[RULE])
    rows = again.sample(300, random_state=0)
    assert set(rows.city[rows.smokes == "yes"]) == {"x"}


def test_sketch_takes_the_class_that_released_it():
    X = np.random.default_rng(0).uniform(0, 1, (200, 3))
    fitted = DPSWFlowSampler(epsilon=8.0, bounds=(0, 1), n_steps=3).fit(X)
    with pytest.raises(ValueError, match="use that class"):
        from_release(fitted.release_, DPSlicedWassersteinGenerator())
    with pytest.raises(ValueError, match="rules are for tables"):
        from_release(fitted.release_, DPSWFlowSampler(), rules=[RULE])


def test_values_of_many_steps_are_not_kept():
    X = np.random.default_rng(0).uniform(0, 1, (60, 2))
    fitted = DPSWFlowSampler(epsilon=8.0, bounds=(0, 1), release="resample").fit(X)
    with pytest.raises(ValueError, match="has no released values"):
        fitted.release_.to_file("never")
    for release in (fitted.release_, SliceSketch()):
        with pytest.raises(ValueError, match="has no released values"):
            from_release(release, DPSWFlowSampler())


def test_values_must_be_those_of_the_certificate(tmp_path, monkeypatch):
    published = fit_table().release_.published
    tables, *others = published.values
    edited = replace(published, values=(replace(tables, cells=tables.cells + 1), *others))
    with pytest.raises(ValueError, match="not those of its certificate"):
        edited.save(tmp_path / "edited")
    monkeypatch.setattr(type(edited), "_check_savable", lambda self: None)
    edited.save(tmp_path / "edited")
    monkeypatch.undo()
    with pytest.raises(ValueError, match="not those of its certificate"):
        skdpgen.load(tmp_path / "edited")


def test_file_holds_what_the_ledger_lists():
    published = fit_table(schema="auto").release_.published
    names = [name for name, _ in published.plan.releases]
    assert len(published.values) == len(names) == len(published.certificate.releases)


def test_merged_tables_add_up(tmp_path):
    one, other = (fit_table(seed).release_ for seed in (0, 1))
    merged = merge(one, other)
    parts = [release.published.main for release in (one, other)]
    tables = merged.main
    np.testing.assert_allclose(tables.cells, parts[0].cells + parts[1].cells)
    np.testing.assert_allclose(tables.pairs_std, np.hypot(*(p.pairs_std for p in parts)))
    assert merged.n_samples == 800
    assert merged.certificate.epsilon == one.published.certificate.epsilon
    # Twice the records have √2 times the noise.
    assert tables.columns_std == pytest.approx(np.sqrt(2) * parts[0].columns_std)
    fitted = from_release(merged, DPSWFlowSampler(n_steps=20))
    assert fitted.n_samples_ == 800
    fitted.save(tmp_path / "fitted")
    assert skdpgen.load(tmp_path / "fitted").privacy_ == fitted.privacy_
    everything = pd.concat([make_table(seed=0), make_table(seed=1)])
    share = (fitted.sample(4000, random_state=0).smokes == "yes").mean()
    assert share == pytest.approx((everything.smokes == "yes").mean(), abs=0.05)


def test_merged_data_that_overlap_are_composed(tmp_path):
    one, other = (fit_table(seed).release_ for seed in (0, 1))
    merged = merge(one, other, overlap=True)
    assert len(merged.certificate.events) == 2 * len(one.published.certificate.events)
    assert merged.certificate.epsilon > one.published.certificate.epsilon
    merged.save(tmp_path / "merged")
    fitted = from_release(tmp_path / "merged", DPSWFlowSampler(n_steps=2))
    assert fitted.privacy_.epsilon == merged.certificate.epsilon


@pytest.mark.parametrize("overlap", [False, True])
@pytest.mark.parametrize("kind", ["release", "file", "sum", "stream"])
def test_a_release_is_merged_once(kind, overlap, tmp_path):
    one = fit_table().release_
    twice = [one, one]
    if kind == "file":
        one.to_file(tmp_path / "release")
        twice = [one, tmp_path / "release"]
    if kind == "sum":
        other = fit_table(1).release_
        twice = [merge(one, other), merge(one, other)]
    if kind == "stream":
        rows = make_table().assign(period="a")
        stream = ReleaseStream(8.0, ["a", "b"], SCHEMA).update(rows)
        twice = [stream.release_, stream.update(rows).release_]
    with pytest.raises(ValueError, match="same release is given twice, or two of the same stream"):
        merge(*twice, overlap=overlap)


def test_tables_that_cannot_be_merged_are_refused():
    one = fit_table().release_
    wider = SCHEMA.replace({"city": Category(["x", "y", "z", "w"])})
    with pytest.raises(ValueError, match="different schemas"):
        merge(one, fit_table(schema=wider).release_)
    with pytest.raises(ValueError, match="overlap=True"):
        merge(one, fit_table(epsilon=4.0).release_)
    with pytest.raises(ValueError, match="at least two"):
        merge(one)
    X = np.random.default_rng(0).uniform(0, 1, (100, 2))
    sketch = DPSWFlowSampler(epsilon=8.0, bounds=(0, 1), n_steps=2).fit(X).release_
    with pytest.raises(ValueError, match="Only tables"):
        merge(sketch, sketch)


def test_public_source_repeats_draws_and_goes_on():
    source = NoiseSource(3)
    drawn = source.seed(), source.public_generator().random()
    repeated = PublicSource(source.public_words, 5)
    assert (repeated.seed(), repeated.public_generator().random()) == drawn
    assert repeated.seed() != source.seed()


def test_a_replayed_fit_draws_nothing_from_the_stream_of_the_noise():
    """With the seed of the fit its later draws would be those that noise was made of."""
    of_noise, of_samples = (NoiseSource(3, stream=i).seed() for i in (0, 1))
    assert PublicSource([], 3).seed() not in (of_noise, of_samples)
