"""Tables of mixed types with a public schema: what comes back, and what is refused."""

import dataclasses
import datetime
import functools
import math
import pickle
import warnings
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose

from skdpgen import DPSlicedWassersteinGenerator, DPSWFlowSampler, PrivacyBudget
from skdpgen.curator.dataset import Dataset
from skdpgen.encoders import PrivatePCA
from skdpgen.learners import tables as _table_learner
from skdpgen.learners.marginals import Marginals
from skdpgen.learners.table_rows import TableNetwork, TableParticles
from skdpgen.learners.table_targets import TablesGap, TablesTarget, join_narrow_tables
from skdpgen.learners.tables import (
    approach_noise,
    fit_to_tables,
    hold_at_noise,
    match_marginals,
)
from skdpgen.mechanisms.two_way import Tables, count_cells, one_way_weight, tables_with_later
from skdpgen.privacy import TablesMechanism, preview, verify
from skdpgen.releases import SlicedRows
from skdpgen.tables import Boolean, Category, Date, Number, Ordinal, Schema, Unknown
from skdpgen.tables.format import TableFormat
from skdpgen.tables.layout import TableLayout

SCHEMA = Schema(
    {
        "age": Number(18, 90, decimals=0),
        "income": Number(0, 1e5, decimals=2, scale="log", missing=True),
        "job": Category(["nurse", "clerk", "cook"], other="another"),
        "risk": Ordinal(["low", "medium", "high"]),
        "smoker": Boolean(),
        "admitted": Date("2020-01-01", "2020-12-31"),
    }
).with_even_knots()
SECRET = "Smith-31415"


def make_table(n=600, seed=0):
    rng = np.random.RandomState(seed)
    age = rng.randint(18, 91, n)
    old = age > 55
    income = np.round(rng.lognormal(8, 1, n).clip(0, 1e5), 2)
    income[rng.rand(n) < 0.1] = np.nan
    return pd.DataFrame(
        {
            "age": age,
            "income": income,
            "job": np.array(["nurse", "clerk", "cook"])[rng.randint(3, size=n)],
            "risk": np.where(old, "high", np.where(rng.rand(n) < 0.5, "low", "medium")),
            "smoker": rng.rand(n) < 0.3,
            "admitted": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.randint(366, size=n), "D"),
        }
    )


def make(**params):
    return DPSlicedWassersteinGenerator(
        **{"schema": SCHEMA, "random_state": 0, "n_steps": 10, "batch_size": 200, **params}
    )


@pytest.fixture(scope="module")
def fitted():
    return make(epsilon=math.inf, n_steps=200, batch_size=1000).fit(make_table(3000), target="risk")


# Samples.


def test_columns_dtypes_and_values(fitted):
    table, made = make_table(), fitted.sample(500)
    assert list(made.columns) == list(table.columns)
    assert dict(made.dtypes) == dict(table.dtypes)
    assert made["age"].between(18, 90).all()
    assert made["income"].isna().any()
    assert made["income"].dropna().between(0, 1e5).all()
    assert_allclose(made["income"], made["income"].round(2))
    assert set(made["job"]) <= {"nurse", "clerk", "cook", "another"}
    assert made["admitted"].between("2020-01-01", "2020-12-31").all()


def test_dependence_is_kept(fitted):
    made = fitted.sample(3000)
    old = made["age"] > 55
    assert (made["risk"] == "high")[old].mean() > 0.75
    assert (made["risk"] == "high")[~old].mean() < 0.2


def test_where(fitted):
    made = fitted.sample(400, where={"risk": "high", "smoker": True})
    assert (made["risk"] == "high").all()
    assert made["smoker"].all()
    assert (made["age"] > 50).mean() > 0.7  # as among the private rows with this level
    with pytest.raises(ValueError, match="No generated row can satisfy"):
        fitted.sample(3, where={"job": "another"})  # there is none


def test_where_looks_at_all_conditions(monkeypatch):
    """Rows are drawn by how likely all conditions are, not the first one alone."""
    schema = Schema({name: Boolean() for name in ("a", "b", "c")})
    table = pd.DataFrame({name: [True, False] for name in schema})
    generator = make(schema=schema, n_steps=1).fit(table)

    def generate(codes, generator):
        """In all rows a is true. In every other one b is false; c is true where b is."""
        rows = np.tile([0.0, 1.0, 1.0, 0.0, 1.0, 0.0], (len(codes), 1))
        rows[::2, 2:] = [0.0, 1.0, 0.0, 1.0]
        return rows / math.sqrt(3)

    monkeypatch.setattr(generator, "_generate", generate)
    for b in (True, False):
        made = generator.sample(200, where={"a": True, "b": b})
        assert made["a"].all()
        assert (made["b"] == b).all()
        assert (made["c"] == b).all()


def test_where_takes_ranges_levels_and_missing(fitted):
    asked = {
        "age": [(None, 25), (60, 61.5), 70],
        "income": [None, (10_000, 10_500.5)],
        "job": ["nurse", "another"],
        "risk": ["high", "low"],
        "admitted": ("2020-02-01", datetime.date(2020, 2, 3)),
    }
    others = {name: asked[name] for name in asked if name != "risk"}
    by_class = fitted.sample(y=["low", "high"] * 20, where=others)
    assert by_class["risk"].tolist() == ["low", "high"] * 20
    for made in (fitted.sample(300, where=asked), by_class):
        age, income = made["age"], made["income"]
        assert ((age <= 25) | age.isin([60, 61, 70])).all()
        assert (income.isna() | income.between(10_000, 10_500.5)).all()
        assert made["job"].isin(["nurse", "another"]).all()
        assert made["risk"].isin(["high", "low"]).all()
        assert made["admitted"].between("2020-02-01", "2020-02-03").all()
        assert list(made.columns) == list(make_table().columns)
    with pytest.raises(ValueError, match="y and where both ask for levels of 'risk'"):
        fitted.sample(y=["low"], where=asked)


def test_levels_of_the_target_can_be_asked_for(fitted):
    made = fitted.sample(y=["low", "high", "low"])
    assert made["risk"].tolist() == ["low", "high", "low"]
    assert fitted.classes_.tolist() == ["low", "medium", "high"]
    with pytest.raises(ValueError, match="all among"):
        fitted.sample(y=["none"])


@pytest.mark.catches(
    "tables.format:TableFormat.__post_init__", "replace(target, missing=False)", "target"
)
@pytest.mark.parametrize("kind", [Category(["a", "b"], missing=True), Boolean(missing=True)])
def test_a_record_without_a_target_counts_as_absent(kind):
    """The value to be predicted is known; beside it, values may be missing."""
    schema = Schema({"x": Category(["u", "v"], missing=True), "t": kind})
    known, other = kind.levels
    table = pd.DataFrame({"x": ["u", None, "v"], "t": [known, other, None]}, dtype=object)
    cells = table.to_numpy(dtype=object)
    format = TableFormat(schema, TableLayout.of(schema, Dataset(table, target="t")))
    assert np.isnan(format.encode(cells)).any(axis=1).tolist() == [False, False, True]
    assert format.levels_of_target == kind.levels
    assert not np.isnan(TableFormat(schema).encode(cells)).any()


def test_a_label_apart():
    table = make_table()
    X, y = table.drop(columns="job"), table["job"]
    generator = make(epsilon=5.0).fit(X, y)
    made, labels = generator.sample(20)
    assert list(made.columns) == list(X.columns)
    assert isinstance(labels, pd.Series)
    assert labels.name == "job"
    assert isinstance(make(n_steps=2).fit(X, y.to_numpy()).sample(2)[1], np.ndarray)
    made, labels = generator.sample(y=["cook", "nurse"])
    assert labels.tolist() == ["cook", "nurse"]
    assert np.isfinite(generator.score(X))


# Costs.

# Without a target of few levels.
ALL_TABLES = ("two-way tables", "interactions", "multi-way tables")


# Refusals; messages quote no cell.


def assert_tells_nothing(error):
    while error is not None:
        assert SECRET not in str(error)
        error = error.__cause__ or error.__context__


def releases_of(generator, table):
    """Return what the mechanisms of a fit measure."""
    exact, present = [], TablesMechanism.postprocess

    def watched(mechanism, noisy, measured):
        exact.append(noisy)
        return present(mechanism, noisy, measured)

    with mock.patch.object(TablesMechanism, "postprocess", watched):
        generator.fit(table)
    return exact


@functools.cache
def releases_without_a_record():
    return releases_of(make(epsilon=math.inf, n_steps=3), make_table().drop(index=7))


def _with(name, value, dtype):
    table = make_table()
    column = table[name].astype(dtype)
    column.at[7] = value
    return table.assign(**{name: column})


@pytest.mark.catches(
    "curator.batches:RecordSource.encode_cells_by", "is_finite[:, None]", "is_finite.all()"
)
@pytest.mark.parametrize(
    ("name", "value", "dtype"),
    [
        ("age", SECRET, object),
        ("risk", SECRET, object),
        ("smoker", SECRET, object),
        ("admitted", SECRET, object),
        ("age", np.nan, float),
        ("age", [1], object),
    ],
)
def test_a_record_with_a_bad_cell_counts_as_absent(name, value, dtype):
    table, params = _with(name, value, dtype), {"epsilon": math.inf, "n_steps": 3}
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", message="The noise follows from a seed")
        found = releases_of(make(**params), table)
        expected = releases_without_a_record()
    assert not said
    assert len(found) == len(expected) > 0
    assert all((a == b).all() for a, b in zip(found, expected, strict=True))

    budget, generator = PrivacyBudget(10.0, 1e-5), make(random_state=None, strict=True)
    with budget, pytest.raises(ValueError, match=name) as raised:
        generator.fit(table)
    assert budget.spent > 0
    assert_tells_nothing(raised.value)
    assert "every record is valid" in str(generator.fit(make_table()).privacy_)


@pytest.mark.parametrize("declared", [Boolean(), Unknown(expected="boolean")])
@pytest.mark.parametrize("words", [("ja", "nein"), ("j", "n")])
def test_words_of_booleans_are_never_refused(words, declared):
    table = pd.DataFrame({"a": [*words] * 500, "b": range(1000)})
    schema = Schema({"a": declared, "b": Number(0, 1000, 0)})
    generator = DPSWFlowSampler(30.0, 1e-6, schema=schema, strict=True, random_state=0, n_steps=1)
    assert set(generator.fit(table).sample(50)["a"]) == {*words}


@pytest.mark.parametrize(
    ("table", "match"),
    [
        (make_table().assign(age=pd.Timestamp("2020-01-01")), "no numbers"),
        (make_table().assign(admitted=7), "no dates"),
        (make_table().drop(columns="age"), "lacks columns"),
        (make_table().assign(name=SECRET), "does not declare"),
        (pd.concat([make_table(), make_table()[["age"]]], axis=1), "same name"),
        (make_table().iloc[:0], "no rows"),
        (make_table().to_numpy(), "must be a DataFrame"),
    ],
)
def test_bad_tables(table, match):
    budget, generator = PrivacyBudget(10.0, 1e-5), make(random_state=None)
    with budget, pytest.raises(ValueError, match=match) as raised:
        generator.fit(table)
    assert budget.spent == 0
    assert not hasattr(generator, "privacy_")
    assert_tells_nothing(raised.value)


@pytest.mark.parametrize(
    ("params", "match"),
    [
        (dict(schema={"age": Number(0, 1)}), "schema must be .*a Schema"),
        (dict(schema="public"), "schema must be 'auto', 'private', a Schema"),
        (dict(schema="private", bounds=(0, 1)), "bounds is for arrays"),
        (dict(bounds=(0, 1)), "bounds is for arrays"),
        (dict(clip_norm=2.0), "clip_norm is for arrays"),
        (dict(classes=np.array(["low", "high"])), "classes is for arrays"),
        (dict(encoder="dp-pca"), "encoder is for arrays"),
        (dict(encoder=PrivatePCA()), "encoder is for arrays"),
        (dict(network="conv28"), "network is for arrays"),
    ],
)
def test_bad_parameters(params, match):
    with pytest.raises(ValueError, match=match):
        make(**params).fit(make_table())


def test_bad_targets(fitted):
    table = make_table()
    with pytest.raises(ValueError, match="target must be a column"):
        make().fit(table, target="name")
    with pytest.raises(ValueError, match="X has a column 'job' as well"):
        make().fit(table, table["job"])
    with pytest.raises(ValueError, match="not both"):
        make().fit(table.drop(columns="job"), table["job"], target="risk")
    with pytest.raises(ValueError, match="names a column of a table"):
        make(schema=None).fit(table[["age"]], target="age")
    with pytest.raises(ValueError, match=r"names \['size'\], which are no columns"):
        fitted.sample(3, where={"size": 18})
    with pytest.raises(ValueError, match="not among the levels"):
        fitted.sample(3, where={"job": SECRET})
    with pytest.raises(ValueError, match="needs a schema"):
        make(schema=None, n_steps=1).fit(table[["age"]]).sample(3, where={"age": 18})
    with pytest.raises(ValueError, match="fit was given none"):
        make(n_steps=1).fit(table).sample(y=["low"])


# Schemas that leave something open, and tables in chunks.


def test_a_schema_pays_for_what_it_leaves_open():
    schema = Schema({**SCHEMA, "age": Number(decimals=0)})
    generator = make(epsilon=5.0, schema=schema).fit(make_table())
    names = ("frequent values", "value ranges", "value locations", "value counts", *ALL_TABLES)
    assert generator.privacy_.releases == names
    precisions = [event.noise_multiplier**-2 for event in generator.privacy_.events]
    parts = [share / 3.8 for share in (1, 1, 0.8, 1)]
    expected = [*(share / 4 for share in parts), *(0.75 * share for share in (0.92, 0.03, 0.05))]
    assert_allclose(np.array(precisions) / sum(precisions), expected)
    assert not generator.schema_.undeclared
    assert generator.schema_.drop("age") == SCHEMA.drop("age")
    assert generator.schema is schema


def test_sliced_rows_need_a_schema_that_leaves_nothing_open():
    params = {"epsilon": 5.0, "release": "rows", "random_state": None}
    params |= {"n_steps": None, "batch_size": None}
    with (
        PrivacyBudget(9.0, 1e-5) as budget,
        pytest.raises(ValueError, match="a schema without undeclared"),
    ):
        make(**params, schema="private").fit(make_table())
    assert budget.spent == 0


@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_open_columns_are_paid_for(relation):
    table = make_table(3000)
    generator = make(epsilon=5.0, delta=1e-6, schema="private", relation=relation)
    generator.fit(table, target="risk")
    names = (
        "column kinds",
        "decimals",
        "frequent values",
        "value ranges",
        "value locations",
        "category counts",
        "value counts",
        *ALL_TABLES,
    )
    assert generator.privacy_.releases == names
    assert 0.99 * 5 < generator.epsilon_ <= 5
    verify(generator.privacy_.to_json())
    precisions = [event.noise_multiplier**-2 for event in generator.privacy_.events]
    assert_allclose(
        np.array(precisions) / sum(precisions),
        [
            *(0.25 * np.array([1, 0.25, 0.48, 1, 0.8, 4 / 3, 1]) / (4.53 + 4 / 3)),
            *(0.75 * np.array([0.92, 0.03, 0.05])),
        ],
    )
    made = generator.sample(500)
    assert list(made.columns) == list(table.columns)
    assert made["age"].dtype == table["age"].dtype
    assert set(generator.classes_) == {"low", "medium", "high"}
    assert 10 < made["age"].min()
    assert made["age"].max() < 110
    assert len(generator.sample(50, where={"job": "nurse"})) == 50
    assert not generator.schema_.undeclared


def test_knots_of_declared_bounds_are_paid_for():
    schema = Schema({**SCHEMA, "age": Number(0, 150, decimals=0)})
    names = ("value counts", *ALL_TABLES)
    assert preview(make(epsilon=3.0, schema=schema), 2000, 2).releases == names
    generator = make(epsilon=3.0, schema=schema).fit(make_table(2000))
    assert generator.privacy_.releases == names
    precisions = [event.noise_multiplier**-2 for event in generator.privacy_.events]
    expected = [0.05, 0.95 * 0.92, 0.95 * 0.03, 0.95 * 0.05]
    assert_allclose(np.array(precisions) / sum(precisions), expected)
    assert generator.schema_.drop("age") == SCHEMA.drop("age")
    age = generator.schema_["age"]
    assert (age.lower, age.upper) == (0, 150)
    assert np.sum((age.positions > 18) & (age.positions < 90)) > len(age.positions) - 6
    assert generator.sample(50)["age"].between(0, 150).all()


def test_chunks_give_what_the_table_gives():
    table = make_table(700)
    whole = make(epsilon=1.0).fit(table, target="risk")
    chunked = make(epsilon=1.0).fit(
        lambda: (table[i : i + 90] for i in range(0, 700, 90)), target="risk"
    )
    assert chunked.n_samples_ == 700
    one, other = (generator.sample(20).astype(object) for generator in (whole, chunked))
    pd.testing.assert_frame_equal(one, other)


@pytest.mark.parametrize(
    ("X", "match"),
    [
        (lambda: iter([]), "has no rows"),
        (lambda: iter([1]), "must be tables; got int"),
        (lambda: iter([make_table(), make_table().drop(columns="age")]), "lacks \\[.age"),
    ],
)
def test_bad_chunks(X, match):
    with pytest.raises(ValueError, match=match):
        make().fit(X)
    with pytest.raises(ValueError, match="give target, not y"):
        make().fit(lambda: iter([make_table().drop(columns="risk")]), make_table()["risk"])


@pytest.mark.slow
def test_tables_from_sliced_rows():
    table = make_table(2000)
    generator = make(
        epsilon=math.inf, release=SlicedRows(n_steps=300), n_steps=None, batch_size=None
    )
    made = generator.fit(table, target="risk").sample(1000)
    assert_allclose(made["smoker"].mean(), table["smoker"].mean(), atol=0.15)
    assert set(generator.sample(y=["low"])["risk"]) == {"low"}


# The learner.


def cells_of(matrix, sizes):
    """Return the products of the levels of each column with those of later ones, level by level."""
    column = np.repeat(np.arange(len(sizes)), sizes)
    return matrix[column[:, None] < column]


def noisy_tables(codes, sizes, std, rng):
    """Tables of records with these codes of levels, with noise of a standard deviation."""
    rows = np.hstack([np.eye(size)[code] for size, code in zip(sizes, codes.T, strict=True)])
    weight = one_way_weight(sizes)
    return Tables(
        sizes=sizes,
        cells=cells_of(rows.T @ rows, sizes)
        + rng.normal(size=count_cells(sizes)) * std / math.sqrt(2),
        columns=weight * rows.sum(0) + rng.normal(size=sum(sizes)) * std,
        weight=weight,
        pairs_std=std / math.sqrt(2),
        columns_std=std,
    )


@pytest.mark.parametrize("sizes", [[7], [2, 2], [12, 5], [9, 3, 4]])
def test_one_and_two_way_tables_together_have_the_least_noise_on_one_way_tables(sizes):
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(size, size=200) for size in sizes])
    exact = np.hstack([np.bincount(c, minlength=L) for c, L in zip(codes.T, sizes, strict=True)])
    errors = [noisy_tables(codes, sizes, 10.0, rng).count_levels()[0] - exact for _ in range(4000)]
    for i, (size, block) in enumerate(zip(sizes, np.cumsum(sizes), strict=True)):
        # Measures of a level: a row sum of L cells for each other column, and its own count.
        variances = [50.0 * other for j, other in enumerate(sizes) if j != i]
        weight = one_way_weight(sizes)
        variances += [100.0 / weight**2] if weight else []
        best = 1 / sum(1 / variance for variance in variances)
        # χ² of 4,000 draws and more; the levels of a column are independent.
        found = np.mean(np.square([error[block - size : block] for error in errors]))
        assert_allclose(found, best, rtol=5 * math.sqrt(2 / 4000 / size))


def test_the_energy_of_the_noise_is_that_of_all_parts(monkeypatch):
    """Noise on their counts is the same, however many records a part has."""
    rng, sizes, ns = np.random.default_rng(0), [20, 9, 8], [300, 60]
    codes = [np.column_stack([rng.integers(size, size=n) for size in sizes]) for n in ns]
    rows = [
        np.hstack([np.eye(size)[code] for size, code in zip(sizes, part.T, strict=True)])
        for part in codes
    ]
    # The records of each part, in both samples of a batch.
    made = torch.tensor(np.vstack([*rows, *rows]), dtype=torch.float32)
    losses, energies, generator = [], [], torch.Generator()

    class Records(TableParticles):
        def draw(self, n_rows, generator):
            self.n_rows = n_rows
            return torch.zeros(sum(n_rows), dtype=torch.int64)

        def forward(self, codes):
            assert self.n_rows == [300, 60]
            return made

    def make_rows(shares, sizes, marginals):
        assert shares == pytest.approx([5 / 6, 1 / 6])
        return Records([3, 2], generator, sizes, marginals)

    def spy(training, loss, noise_energy, n_steps, verbose):
        losses.append(loss().sum().item())
        energies.append(noise_energy.sum().item())
        return []

    monkeypatch.setattr(_table_learner, "descend_to_noise", spy)
    constants = dataclasses.replace(_table_learner.CONSTANTS, least_batch=0)
    monkeypatch.setattr(_table_learner, "CONSTANTS", constants)
    for name in ("match_clear", "match_marginals"):
        monkeypatch.setattr(_table_learner, name, lambda *_: None)
    kept = np.ones((2, count_cells(sizes)))
    monkeypatch.setattr(_table_learner, "shrink_to_independence", lambda tables, _: (tables, kept))
    for _ in range(150):
        tables = [noisy_tables(part, sizes, 10.0, rng) for part in codes]
        fit_to_tables(
            make_rows,
            tables,
            [Marginals.of(table, n, False) for table, n in zip(tables, ns, strict=True)],
            n_steps=1,
            batch_size=720,
            learning_rate=0.1,
            generator=generator,
            device=torch.device("cpu"),
        )
    spread = np.std(losses) / math.sqrt(150)
    assert spread < 0.05 * energies[0]
    assert abs(np.mean(losses) - energies[0]) < 5.5 * spread
    # Noise of two-way and one-way tables adds to the loss, in shares of all records.
    expected = 2 * 100 / 2 * count_cells(sizes) + 100 * sum(sizes)
    assert energies[0] == pytest.approx(2 * expected / 360**2)


def test_parts_within_their_noise_wait_for_others():
    gaps, energies, seen = torch.tensor([3.0, 0.5, 1.0]), torch.tensor([2.0, 0.6, 1.1]), []

    def gradient():
        given = gaps.clone().requires_grad_()
        held = hold_at_noise(given, energies, seen)
        assert held.tolist() == gaps.tolist()
        return torch.autograd.grad(held.sum(), given)[0].tolist()

    assert [gradient() for _ in range(50)] == 50 * [[1, 1, 1]]
    assert gradient() == [1, 0, 0]
    gaps[1] = 20.0
    assert gradient() == [1, 0, 0]
    assert gradient() == [1, 1, 0]
    # At the end, where all are near, all go on.
    gaps[:] = 0.1
    assert [gradient() for _ in range(100)][-1] == [1, 1, 1]


def test_particles_come_near_to_the_noise_before_they_are_sampled():
    """By the two-way tables of all particles; a stratum within its noise stays as it is."""
    sizes, n, generator = [2, 3], [200, 150], torch.Generator().manual_seed(0)
    shares = torch.tensor([[0.4, 0.1, 0.0, 0.0, 0.1, 0.4], [0.0, 0.3, 0.1, 0.3, 0.1, 0.2]])
    pairs = shares.reshape(2, 2, 3)
    levels = torch.cat([pairs.sum(2), pairs.sum(1)], dim=1)

    def target(i):
        blocks = join_narrow_tables(tables_with_later(shares[i].numpy(), sizes), sizes)
        joined = [(own, later, *map(as_float, made)) for own, later, *made in blocks]
        return TablesTarget(joined, levels[i], 1.0, 0.5, 0.0)

    def gaps(rows):
        for i, drawn in enumerate(rows(torch.arange(350)).split(n)):
            pair = drawn[:, :2].T @ drawn[:, 2:] / len(drawn)
            own = (drawn.mean(0) - levels[i]).square().sum()
            yield 0.25 * (2 * (pair - pairs[i]).square().sum() + own).item()

    def as_float(array):
        return torch.tensor(array, dtype=torch.float32)

    rows = TableParticles(n, generator, sizes, levels)
    before, start = list(gaps(rows)), rows.logits.detach().clone()
    subset = SimpleNamespace(gap=lambda first, second: 1e-9 * (first * second).mean())
    energies = torch.tensor([1e-4, math.inf, 1.0, 0.0])
    approach_noise(rows, [target(0), target(1)], 2 * [subset], None, energies)
    after = list(gaps(rows))
    assert before[0] > 1e-3
    assert 1e-4 < after[0] < 3e-4
    assert torch.equal(rows.logits[200:], start[200:])
    assert not torch.equal(rows.logits[:200], start[:200])


@pytest.mark.parametrize("is_exact", [False, True])
@pytest.mark.parametrize("sizes", [[4], [2, 3], [3, 2, 4], [40, 80, 30, 200, 50, 9]])
def test_gap_of_tables_and_its_gradient(sizes, is_exact):
    generator = torch.Generator().manual_seed(0)
    first, second, given = (
        torch.rand(n, sum(sizes), dtype=torch.float64, generator=generator)
        for n in (7, 7, sum(sizes))
    )
    # Exact tables are those of the same rows twice.
    rows = [first.requires_grad_(), first if is_exact else second.requires_grad_()]
    column = np.repeat(range(len(sizes)), sizes)
    is_later = torch.tensor(column[:, None] < column)
    one, other = (part.T @ part / 7 - given for part in rows)
    expected = (one * other)[is_later].sum()
    cells = tables_with_later(given[is_later].numpy(), sizes)
    joined = [
        (own, later, *map(torch.tensor, made))
        for own, later, *made in join_narrow_tables(cells, sizes)
    ]
    assert all(own.stop - own.start <= 200 for own, *_ in joined)
    found = TablesGap.apply(*rows, joined)
    torch.testing.assert_close(found, expected)
    gradients = (torch.autograd.grad(3 * gap, rows) for gap in (found, expected))
    for gradient, its in zip(*gradients, strict=True):
        torch.testing.assert_close(gradient, its)


@pytest.mark.parametrize("n_parts", [1, 2])
@pytest.mark.parametrize("has_network", [True, False])
def test_levels_become_as_frequent_as_they_were_released(has_network, n_parts):
    sizes, counts = [3, 4], np.array([970.0, 25, 5, 500, 480, -7, 27])
    generator = torch.Generator().manual_seed(0)
    start = torch.tensor([[0.8, 0.15, 0.05, 0.3, 0.6, 0.05, 0.05]]).repeat(n_parts, 1)
    if has_network:
        torch.manual_seed(0)
        n_inputs = TableNetwork.count_inputs(2, n_parts)
        rows = TableNetwork(torch.nn.Linear(n_inputs, 7), 2, sizes, start)
    else:
        rows = TableParticles([200, 100][:n_parts], generator, sizes, start)
    rows.forbid(counts < 0)
    other = np.array([30.0, 100, 70, 20, 120, 0, 60])
    levels = [
        Marginals(counts, np.ones(7), 1000.0, counts < 0),
        Marginals(other, np.ones(7), 200.0, counts < 0),
    ][:n_parts]
    match_marginals(rows, levels, 20 * [[1000, 800][:n_parts]], generator)
    made = rows(rows.draw(n_parts * [20_000], generator)).split(20_000)
    expected = counts.clip(0)
    expected[3:] *= 1000 / expected[3:].sum()
    for part, shares in zip(made, [expected / 1000, other / 200], strict=False):
        assert_allclose(part.mean(0).detach(), shares, rtol=0.1, atol=1e-9)


@pytest.mark.catches(
    "data.dtypes:hide_values", 'isinstance(dtype, np.dtype) and dtype.kind in "US"', "False"
)
@pytest.mark.parametrize("label", ["x", "a label that is longer than all others"])
def test_the_width_of_private_labels_does_not_get_out(label):
    table = make_table(200)
    jobs = table.pop("job").to_numpy(dtype=str)
    short = make(n_steps=2).fit(table, jobs)
    jobs = jobs.astype(object)
    jobs[7] = label  # one of `other`
    fitted = make(n_steps=2).fit(table, jobs.astype(str))
    dtypes = fitted._format.layout.dtypes
    assert dtypes == short._format.layout.dtypes
    assert "U" not in {getattr(dtype, "kind", "O") for dtype in dtypes.values()}
    first, second = (g.sample(5, random_state=0)[1] for g in (short, fitted))
    assert first.dtype == second.dtype == object


@pytest.mark.parametrize("schema", [SCHEMA.select(["job", "smoker"]), "private"])
def test_categorical_dtypes_do_not_carry_private_categories_out(schema):
    table = make_table(500)[["job", "smoker"]]
    table.loc[3, "job"] = SECRET
    table["job"] = table["job"].astype("category")
    generator = make(epsilon=3.0, schema=schema, n_steps=5).fit(table)
    made = generator.sample(50)
    assert SECRET not in list(made["job"].cat.categories)
    assert schema == "private" or not made["job"].isna().any()
    assert SECRET.encode() not in pickle.dumps(generator)


AUTO = {
    "names": ({}, None, True),
    "declared": ({"schema": SCHEMA}, None, True),
    "bounds": ({"bounds": (0, 8)}, None, False),
    "radius": ({"clip_norm": 1.0}, None, False),
    "classes": ({"classes": [0, 1]}, [0, 1] * 20, False),
    "encoder": ({"encoder": None}, None, False),
    "none": ({"schema": None}, None, False),
    "release": (
        {"release": SlicedRows(n_steps=2), "n_steps": None, "batch_size": None},
        None,
        False,
    ),
}


@pytest.mark.parametrize(("params", "y", "is_table"), AUTO.values(), ids=AUTO)
def test_a_frame_is_a_table_unless_parameters_say_that_it_is_an_array(params, y, is_table):
    frame = pd.DataFrame(np.random.default_rng(0).random((40, 2)), columns=["a", "b"])
    frame = make_table() if params.get("schema") is SCHEMA else frame
    fitted = make(**({"schema": "auto"} | params)).fit(frame, y)
    assert hasattr(fitted, "schema_") == is_table
    assert isinstance(fitted.sample(3)[0] if y else fitted.sample(3), pd.DataFrame)


def test_a_frame_without_names_is_an_array():
    frame = pd.DataFrame(np.random.default_rng(0).random((40, 2)))
    assert not hasattr(DPSWFlowSampler(n_steps=2).fit(frame), "schema_")
    named = frame.set_axis(["a", "b"], axis=1)
    inferred, private = (
        DPSWFlowSampler(n_steps=2, random_state=0, schema=schema).fit(named)
        for schema in ("auto", "private")
    )
    pd.testing.assert_frame_equal(inferred.sample(5), private.sample(5))


@pytest.mark.parametrize(
    ("params", "target"),
    [
        ({"classes": ["a", "b"]}, "text"),
        ({"classes": ["a", "b"]}, None),
        ({"bounds": (0, 1)}, None),
        ({"encoder": "dp-pca"}, "text"),
    ],
)
def test_parameters_that_make_an_array_of_a_table_are_named(params, target):
    table = pd.DataFrame({"text": ["a", "b"] * 50, "x": np.arange(100) / 100})
    (name,) = params
    match = f"taken for an array because {name} is set: leave it at its default"
    with pytest.raises(ValueError, match=match) as named:
        DPSWFlowSampler(1.0, 1e-3, **params).fit(table, target=target)
    assert named.value.__context__ is named.value.__cause__ is None
    # Another error of an array of numbers has nothing to do with it.
    with pytest.raises(ValueError, match="one entry for each row") as raised:
        DPSWFlowSampler(1.0, 1e-3, **params).fit(table[["x"]], ["a"] * 9)
    assert name not in str(raised.value)
