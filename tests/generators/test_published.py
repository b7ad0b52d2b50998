# SPDX-License-Identifier: BSD-3-Clause
"""Published releases: fitted again to the bit, merged, and refused after edits."""

import itertools
from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest
from dp_accounting import GaussianDpEvent

import skdpgen
from skdpgen import (
    Category,
    DPSlicedWassersteinGenerator,
    DPSWFlowSampler,
    Number,
    Schema,
    compose,
)
from skdpgen.accounting.provenance import Provenance
from skdpgen.inference import estimate
from skdpgen.mechanisms.noise import NoiseSource, PublicSource
from skdpgen.privacy import Certificate
from skdpgen.releases import SliceSketch, TwoWayTables, from_release, merge
from skdpgen.streams import ReleaseStream
from skdpgen.tables import Implies, Unknown

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


def make_release(kind):
    if kind == "stream":
        rows = make_table().assign(period="a")
        return ReleaseStream(8.0, ["a", "b"], SCHEMA).update(rows).release_
    one = fit_table().release_.published
    if kind == "release":
        return one
    return merge(one, fit_table(seed=1).release_.published, overlap=kind == "overlap")


@pytest.mark.catches(
    "releases.published:PublishedRelease.check",
    "found != self.digest",
    "False",
    param="replaced-sum",
)
@pytest.mark.catches(
    "releases.published:open_release", "published.check()", "pass", param="in place-release"
)
@pytest.mark.catches(
    "inference.model:Model.__init__", "published.check()", "pass", param="in place-release"
)
@pytest.mark.catches(
    "releases.published:PublishedRelease.check",
    "stated != (self.plan.relation, self.plan.accountant, self.plan.max_rows)",
    "False",
    param="certificate-release",
)
@pytest.mark.parametrize("kind", ["release", "sum", "overlap", "stream"])
@pytest.mark.parametrize("way", ["replaced", "made", "in place", "other noise", "certificate"])
def test_whoever_takes_a_release_compares_its_values(kind, way):
    published, another = make_release(kind), fit_table(seed=2).release_
    fitted = from_release(published, DPSWFlowSampler(n_steps=2))
    tables, *others = published.values
    if way == "certificate":
        edited = replace(
            published, certificate=replace(published.certificate, relation="replace_one")
        )
    elif way == "other noise":
        edited = replace(published, values=(replace(tables, pairs_std=tables.pairs_std / 2),))
    elif way == "in place":
        edited = published
        tables.columns[0] += 1
    else:
        values = (replace(tables, columns=tables.columns + 1), *others)
        edited = replace(published, values=values)
        # Without the digest that was written down, one of a sum cannot be told from another.
        if way == "made" and kind == "release":
            edited = replace(edited, digest=None)
    fitted.release_.published = edited
    takers = {
        "from_release": lambda: from_release(edited, DPSWFlowSampler(n_steps=2)),
        "merge": lambda: merge(edited, another),
        "merge second": lambda: merge(another, edited, overlap=True),
        "estimate": lambda: estimate(fitted, lambda X: X.age.mean()),
        "file": lambda: edited.save("never"),
    }
    for take in takers.values():
        with pytest.raises(ValueError, match=r"not th(at|ose) of its certificate"):
            take()


@pytest.mark.catches(
    "releases.published:PublishedRelease.check", "certificate.digest not in (None, found)", "False"
)
def test_a_release_has_no_certificate_of_another_one():
    """Its events could be others that cost less."""
    one, other = (fit_table(seed).release_.published for seed in (0, 1))
    edited = replace(one, certificate=other.certificate)
    with pytest.raises(ValueError, match="not those of its certificate"):
        from_release(edited, DPSWFlowSampler(n_steps=2))


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


@pytest.mark.catches(
    "releases.merging:merge", "max(first.plan.epsilon, certificate.epsilon)", "first.plan.epsilon"
)
def test_merged_data_that_overlap_are_composed(tmp_path):
    one, other = (fit_table(seed).release_ for seed in (0, 1))
    merged = merge(one, other, overlap=True)
    assert len(merged.certificate.events) == 2 * len(one.published.certificate.events)
    assert merged.certificate.epsilon > one.published.certificate.epsilon
    merged.save(tmp_path / "merged")
    fitted = from_release(tmp_path / "merged", DPSWFlowSampler(n_steps=2))
    assert fitted.privacy_.epsilon == merged.certificate.epsilon
    # A file may not state a smaller budget than what was spent.
    assert fitted.epsilon >= fitted.epsilon_
    fitted.save(tmp_path / "fitted")
    assert skdpgen.load(tmp_path / "fitted").privacy_ == fitted.privacy_


@pytest.mark.catches(
    "releases.merging:merge",
    "len(set.union(*digests)) < sum(map(len, digests))",
    "False",
    param="release-False",
)
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


@pytest.mark.catches(
    "releases.merging:merge",
    "{digest for own in c.digests for digest in own}",
    "{own[0] for own in c.digests}",
)
@pytest.mark.catches(
    "releases.merging:merge", "(*certificate.assumptions, _DISJOINT)", "certificate.assumptions"
)
def test_parts_of_sums_are_merged_once(tmp_path):
    a, b, c = (fit_table(seed).release_.published for seed in range(3))
    ab, bc = merge(a, b), merge(b, c, overlap=True)
    assert "each record, or person, is in the data of one" in " ".join(ab.certificate.assumptions)
    assert bc.certificate.assumptions == b.certificate.assumptions
    ab.save(tmp_path / "sum")
    for parts in ((ab, a), (b, ab), (ab, merge(c, a)), (tmp_path / "sum", b), (bc, c), (a, bc, b)):
        for overlap in (False, True):
            with pytest.raises(ValueError, match="same release is given twice"):
                merge(*parts, overlap=overlap)
    everything = merge(ab, c)
    assert everything.n_samples == 1200
    np.testing.assert_allclose(everything.main.cells, sum(part.main.cells for part in (a, b, c)))
    # Each record is in one of them, and all of them cost what one does.
    certificates = [part.certificate for part in (a, b, c, ab, everything)]
    assert compose(*certificates).events == a.certificate.events
    # Each of overlapping ones counts, and none twice.
    assert len(compose(bc.certificate, b.certificate).events) == 2 * len(a.certificate.events)


# Another value of each member of a certificate, and what is said of a merged one; or the error.
MEMBERS = {
    "events": ((GaussianDpEvent(9.0),), "overlap=True"),
    "releases": (("another",), "overlap=True"),
    "relation": ("replace_one", "not that of its certificate"),
    "accountant": ("rdp", "not that of its certificate"),
    "delta": (1e-4, 1e-4),
    "assumptions": (("the moon is full",), ("the moon is full",)),
    "reproducible": (True, True),
    "sigma": (9.0, None),
    "local": (True, False),
    "n_records": (7, 800),
    "notes": (("see there",), ("see there",)),
    "max_rows": (3, "not that of its certificate"),
    "provenance": (Provenance("Other", (), "9", "2026-01-01"), None),
    "digests": ((), None),
    "engine": ("spark", "spark"),
}


@pytest.fixture(scope="module")
def two_parts():
    release = TwoWayTables(max_order=2)
    return [fit_table(seed, release=release).release_.published for seed in (0, 1)]


@pytest.mark.catches(
    "releases.merging:merge",
    "join(certificates, releases, n_records=n_samples)",
    "join(certificates[:1], releases, n_records=n_samples)",
    param="False-reproducible",
)
@pytest.mark.parametrize("name", MEMBERS)
@pytest.mark.parametrize("is_first", [False, True])
def test_a_sum_says_what_any_of_its_parts_does(name, is_first, two_parts):
    assert {field.name for field in fields(Certificate)} == set(MEMBERS), "A member is not tried."
    value, said = MEMBERS[name]
    one, other = two_parts
    options = {name: value} | ({"relation": "replace_one"} if name == "local" else {})
    odd = replace(other, certificate=replace(other.certificate, **options))
    parts = (odd, one) if is_first else (one, odd)
    if name == "local":
        # Tables are none: each record would be noised on its own.
        with pytest.raises(ValueError, match="not that of its certificate"):
            merge(*parts)
        return
    if isinstance(said, str) and name != "engine":
        with pytest.raises(ValueError, match=said):
            merge(*parts)
        return
    merged = merge(*parts)
    found = getattr(merged.certificate, name)
    if name == "digests":
        # The digest of its values is that of a part whose certificate has none.
        digests = [part.certificate.digest for part in (one, other)]
        assert found == (tuple(digests[::-1] if is_first else digests),)
    elif name in ("assumptions", "notes"):
        assert {*said, *getattr(one.certificate, name)} <= set(found)
    else:
        assert found == said
    fitted = from_release(merged, DPSWFlowSampler(n_steps=2))
    assert getattr(fitted.privacy_, name) == found or name in ("provenance", "assumptions")
    fitted.check_certified()


@pytest.mark.catches("releases.merging:_describe_sums", "part.plan.max_rows", "None")
def test_sums_of_persons_need_the_same_number_of_rows():
    persons = np.arange(400) // 2

    def fit_to(max_rows, seed):
        sampler = DPSWFlowSampler(
            8.0, schema=SCHEMA, n_steps=2, max_rows_per_person=max_rows, release="pairs"
        )
        return sampler.fit(
            make_table(seed=seed), persons=persons if max_rows > 1 else None
        ).release_

    for other in (1, 3):
        for parts in itertools.permutations([fit_to(2, 0), fit_to(other, 1)]):
            for overlap in (False, True):
                with pytest.raises(ValueError, match="strata or units cannot be merged"):
                    merge(*parts, overlap=overlap)


@pytest.mark.catches(
    "releases.merging:_describe_sums", "part.main.by, part.main.columns.shape", "None"
)
def test_sums_need_the_same_strata():
    by_level, pooled = (
        DPSWFlowSampler(
            8.0, schema=SCHEMA, n_steps=2, release=TwoWayTables(max_order=2, strata=strata)
        )
        .fit(make_table(seed=i), target="city")
        .release_
        for i, strata in enumerate(("auto", "never"))
    )
    with pytest.raises(ValueError, match="strata or units cannot be merged"):
        merge(by_level, pooled)


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


ARRAY = {
    "bounds": ((0, 1), (0, 2)),
    "y_bounds": ((0, 5), (0, 4)),
    "clip_norm": (0.9, 0.5),
    "encoder": (None, "dp-pca"),
    "release": ("sketch", SliceSketch(n_projections=7)),
}
OPEN = Schema({"age": Number(), "smokes": Category(), "city": Category(["x", "y", "z"])})
TABLE = {
    "schema": (OPEN, OPEN.replace({"city": Category(["x", "y"])})),
    "release": ("pairs", TwoWayTables(max_order=3)),
}


@pytest.mark.parametrize(
    "name", [*ARRAY, *TABLE, "classes", "schema of an array", "bounds of a table"]
)
def test_parameters_that_the_release_determines_must_be_the_same(name):
    """At their defaults they are not read, and what was declared can be declared again."""
    rng = np.random.default_rng(0)
    X, y = rng.uniform(0, 1, (300, 3)), rng.uniform(0, 5, 300)
    declared = {key: own for key, (own, _) in ARRAY.items()}
    refused = {name: ARRAY[name][1]} if name in ARRAY else {}
    if name in ("classes", "schema of an array"):
        declared, y = {"bounds": (0, 1), "classes": ["b", "a"]}, rng.choice(["a", "b"], 300)
        refused = {"classes": ["a", "b"]} if name == "classes" else {"schema": SCHEMA}
    data = X, y
    if name in TABLE or name == "bounds of a table":
        declared, data = {key: own for key, (own, _) in TABLE.items()}, (make_table(),)
        refused = {name: TABLE[name][1]} if name in TABLE else {"bounds": (0, 1)}
    fitted = DPSWFlowSampler(epsilon=8.0, n_steps=2, **declared).fit(*data)
    for same in ({}, declared, {"epsilon": 0.5}):
        from_release(fitted.release_, DPSWFlowSampler(**{"n_steps": 2} | same))
    with pytest.raises(ValueError, match=f"^{next(iter(refused))}|^n_projections|^max_order"):
        from_release(fitted.release_, DPSWFlowSampler(n_steps=2, **refused))


@pytest.mark.parametrize(
    ("column", "declared", "other"),
    [
        ("age", Number(0, 80), Number(0, 90)),
        ("age", Number(decimals=0), Number(decimals=1)),
        ("age", Number(0, 80, decimals=0, knots=[0, 40, 80]), Number(0, 80, knots=[0, 20, 80])),
        ("age", Number(0, 80, n_knots=4), Number(0, 80, n_knots=5)),
        ("city", Category(["x", "y", "z"]), Category(["x", "z", "y"])),
        ("city", Category(["x", "y", "z"]), Category()),
        ("city", Unknown(), Number()),
    ],
)
def test_a_schema_resolves_what_it_infers(column, declared, other):
    given = SCHEMA.replace({column: declared})
    fitted = fit_table(schema=given).release_.published.format.schema
    assert fitted.resolves(given)
    assert fitted.resolves(SCHEMA.replace({column: Unknown()}))
    assert not fitted.resolves(SCHEMA.replace({column: other}))
    assert not fitted.resolves(given.drop(column))
    assert not fitted.resolves(Schema(dict(SCHEMA), [RULE]))
    assert fitted.resolves(fitted)


@pytest.mark.catches("base:BaseGenerator._fit_published", "(*known, *own)", "known")
def test_an_estimator_assumes_that_its_start_is_public():
    X = np.random.default_rng(0).uniform(0, 1, (200, 3))
    fitted = DPSWFlowSampler(epsilon=8.0, bounds=(0, 1), n_steps=3).fit(X)
    again = from_release(fitted.release_, DPSWFlowSampler(n_steps=3, init=X[:20]))
    own = ("the rows in init are public",)
    assert again.privacy_.assumptions == fitted.privacy_.assumptions + own
    assert compose(fitted.privacy_, again.privacy_).epsilon == fitted.privacy_.epsilon


def test_public_source_repeats_draws_and_goes_on():
    source = NoiseSource(3)
    drawn = source.seed(), source.public_generator().random()
    repeated = PublicSource(source.public_words, 5)
    assert (repeated.seed(), repeated.public_generator().random()) == drawn
    assert repeated.seed() != source.seed()


@pytest.mark.catches(
    "mechanisms.noise:PublicSource.__init__",
    "super().__init__(random_state, stream=2)",
    "super().__init__(random_state, stream=0)",
)
def test_a_replayed_fit_draws_nothing_from_the_stream_of_the_noise():
    """With the seed of the fit its later draws would be those that noise was made of."""
    of_noise, of_samples = (NoiseSource(3, stream=i).seed() for i in (0, 1))
    assert PublicSource([], 3).seed() not in (of_noise, of_samples)
