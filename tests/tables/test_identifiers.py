"""Identifiers are made up: nothing of them is read, released or paid for."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest

from skdpgen import DPSWFlowSampler
from skdpgen.privacy import FitQualityWarning, preview
from skdpgen.tables import Boolean, Category, Identifier, Number, Schema, Unique, Unknown, sampling
from skdpgen.tables.columns.identifier import go_on
from skdpgen.tables.columns.texts import parse_cells
from skdpgen.tables.encoder import TableEncoder

SECRET = "Smith-31415"
OTHERS = {"a": Number(0, 9, decimals=0), "b": Boolean()}
SCHEMA = Schema({"a": OTHERS["a"], "id": Identifier(), "b": OTHERS["b"]})


def make_table(n=400, ids=None):
    rng = np.random.RandomState(0)
    ids = np.arange(n) + 7000 if ids is None else ids
    return pd.DataFrame({"a": rng.randint(10, size=n), "id": ids, "b": rng.rand(n) < 0.4})


def make(schema=SCHEMA, **params):
    return DPSWFlowSampler(schema=schema, random_state=0, n_steps=3, n_particles=50, **params)


def test_numbers_in_the_place_and_dtype_of_the_column():
    generator = make().fit(make_table())
    made = generator.sample(300)
    assert list(made.columns) == ["a", "id", "b"]
    assert made["id"].dtype == np.int64
    assert made["id"].tolist() == list(range(1, 301))
    assert generator.schema_ == SCHEMA
    assert generator.schema_report_.loc["id", "kind"] == "identifier"
    assert np.isfinite(generator.score(make_table()))


@pytest.mark.parametrize(
    ("kind", "first", "last"),
    [
        (Identifier(template="P{:06d}"), "P000001", "P000300"),
        (Identifier(start=50, template="{}-x"), "50-x", "349-x"),
        (Identifier(), "1", "300"),
    ],
)
def test_texts(kind, first, last):
    table = make_table(ids=[f"{SECRET}-{i}" for i in range(400)])
    generator = make(Schema({**SCHEMA, "id": kind})).fit(table)
    made = generator.sample(300)["id"]
    assert made.dtype == table["id"].dtype
    assert (made.iloc[0], made.iloc[-1]) == (first, last)
    assert made.is_unique
    assert SECRET.encode() not in pickle.dumps(generator)


def test_random_keys_differ_and_follow_the_seed():
    generator = make(Schema({**SCHEMA, "id": Identifier(random=True)})).fit(make_table())
    one, other, again = (generator.sample(200, random_state=seed)["id"] for seed in (0, 1, 0))
    assert len({*one, *other}) == 400
    assert one.tolist() == again.tolist()
    assert one.str.len().unique().tolist() == [36]


def test_numbers_that_do_not_fit_the_dtype_are_not_folded():
    made = make().fit(make_table().astype({"id": "int8"})).sample(300)["id"]
    assert made.tolist() == list(range(1, 301))


def test_nothing_is_released_or_paid_for():
    with_it, without = (preview(make(schema), 400, 3) for schema in (SCHEMA, Schema(OTHERS)))
    assert with_it.events == without.events
    table = make_table()
    rows = TableEncoder(SCHEMA).encode(table)
    assert (rows == TableEncoder(Schema(OTHERS)).encode(table.drop(columns="id"))).all()
    # Whatever is in its cells, a record counts.
    odd = make_table(ids=pd.Series([None, [1], SECRET, 3.5] * 100, dtype=object))
    pd.testing.assert_frame_equal(
        make().fit(odd).sample(50).astype(str), make().fit(table).sample(50).astype(str)
    )


@pytest.mark.parametrize("kind", [Unknown(), Category()])
def test_beside_columns_that_are_open(kind):
    schema = Schema({"id": Identifier(), "b": kind})
    table = make_table()[["id", "b"]].assign(b=np.array(["x", "y"])[np.arange(400) % 2])
    made = make(schema, epsilon=math.inf, strict=True).fit(table).sample(100)
    assert made["id"].tolist() == list(range(1, 101))
    assert set(made["b"]) == {"x", "y"}


def test_pieces_go_on():
    kinds = {"id": Identifier(template="{:04d}"), "n": Identifier(start=9), "b": Boolean()}
    piece = pd.DataFrame({"id": ["0001", "0002"], "n": ["9", "10"], "b": [True, False]})
    found = go_on(piece, Schema(kinds), 5)
    assert found["id"].tolist() == ["0006", "0007"]
    assert found["n"].tolist() == ["14", "15"]
    assert found["b"].tolist() == [True, False]


def test_batches_go_on(monkeypatch):
    """Identifiers and unique values are not repeated, and weights are made in small blocks."""
    monkeypatch.setattr(sampling, "SAMPLE_BLOCK", 30)
    sizes, draw = [], TableEncoder.draw
    monkeypatch.setattr(
        TableEncoder,
        "draw",
        lambda self, rows, *args: sizes.append(len(rows)) or draw(self, rows, *args),
    )
    generator = make().fit(make_table())
    batches = list(generator.sample_batches(100, batch_size=40, where={"b": True}))
    assert [len(batch) for batch in batches] == [40, 40, 20]
    assert max(sizes) == 30
    made = pd.concat(batches)
    assert made["id"].tolist() == list(range(1, 101))
    assert made["b"].all()
    whole = generator.sample(40)
    assert next(generator.sample_batches(40)).equals(whole)
    assert whole["id"].tolist() == list(range(1, 41))


def test_batches_share_unique_values():
    schema = Schema({**OTHERS, "a": Number(0, 9, decimals=2)}, rules=[Unique("a")])
    generator = make(schema).fit(make_table()[["a", "b"]].astype({"a": float}))
    made = pd.concat(generator.sample_batches(90, batch_size=30))
    assert made["a"].is_unique


def test_sizes_of_batches_are_checked_at_the_call():
    generator = make().fit(make_table())
    with pytest.raises(ValueError, match="batch_size"):
        generator.sample_batches(10, batch_size=0)
    with pytest.raises(ValueError, match="n_samples"):
        generator.sample_batches(0)


def test_json_and_texts_of_files():
    schema = Schema({**SCHEMA, "key": {"type": "identifier", "random": True}})
    assert Schema.from_json(schema.to_json()) == schema
    texts = pd.DataFrame({"id": [" 007 ", "NA"]})
    assert parse_cells(texts, SCHEMA)["id"].tolist() == ["007", "NA"]


@pytest.mark.parametrize(
    ("params", "match"),
    [
        (dict(start=-1), "start must be a whole number"),
        (dict(template="P"), "one place for a whole number"),
        (dict(template="{0.real}"), "one place"),
        (dict(template="{}{}"), "one place"),
        (dict(template="{:0999999999d}"), "one place"),
        (dict(template=7), "one place"),
        (dict(random=1), "random must be"),
        (dict(random=True, start=5), "neither start nor template"),
    ],
)
def test_bad_parameters(params, match):
    with pytest.raises(ValueError, match=match):
        Identifier(**params)


def test_refusals():
    with pytest.raises(ValueError, match="identifiers only"):
        make(Schema({"id": Identifier()})).fit(make_table()[["id"]])
    with pytest.raises(ValueError, match="'id' is an identifier"):
        make().fit(make_table(), target="id")
    with pytest.raises(ValueError, match="'id' is an identifier"):
        make().fit(make_table().drop(columns="id"), make_table()["id"])
    with pytest.raises(ValueError, match=r"where names \['id'\]"):
        make().fit(make_table()).sample(3, where={"id": 1})


def test_it_is_suggested_where_no_text_is_frequent():
    table = make_table(ids=[f"{SECRET}-{i}" for i in range(400)])
    with pytest.warns(FitQualityWarning, match=r"Identifier\(\)"):
        make(Schema({**OTHERS, "id": Category()}), epsilon=2.0).fit(table)


def make_numbers(n):
    rng = np.random.default_rng(0)
    keys = {
        "running": np.arange(1, n + 1),
        "shuffled": 100_000 + rng.permutation(n),
        "random": rng.integers(10**7, 10**8, n),
        "integers beyond floats": rng.integers(10**16, 10**17, n),
        "beyond floats": np.char.mod("%d", rng.integers(10**18, 9 * 10**18, n)).astype(object),
    }
    others = {
        "ages": rng.integers(0, 90, n),
        "normal": rng.normal(1e6, 1e5, n).astype(int),
        "triangular": rng.triangular(0, 5e5, 1e6, n).astype(int),
        "large": rng.lognormal(33, 1, n).astype(int),
        "round": 1000 * rng.integers(0, 10**4, n),
        "lognormal": rng.lognormal(10, 1, n).astype(int),
        "fractions": rng.uniform(0, 1e6, n),
        "many zeros": np.where(rng.random(n) < 0.5, 0, rng.integers(0, 10**6, n)),
        "days": pd.Timestamp("1990") + pd.to_timedelta(rng.integers(0, 9000, n), unit="D"),
    }
    return keys, others


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("epsilon", [pytest.param(4.0, marks=pytest.mark.slow), 10.0])
def test_numbers_that_may_identify_records_are_named(epsilon):
    keys, others = make_numbers(3000)
    sampler = DPSWFlowSampler(epsilon, 1e-6, n_steps=2, random_state=0)
    report = sampler.fit(pd.DataFrame({**keys, **others})).schema_report_
    found = [name for name, cause in report["finding"].items() if cause == "identifiers"]
    assert found == list(keys)


def test_bounds_that_no_float_equals_may_be_declared():
    """The fit found this out after it had spent most of the budget."""
    lower, upper = 10**18 + 1, 10**18 + 10**6
    ids = np.random.default_rng(0).integers(lower, upper, 400)
    assert Number(lower, upper).lower == 1e18
    sampler = make(Schema({"id": Number(lower, upper)}), epsilon=2.0)
    made = sampler.fit(pd.DataFrame({"id": ids})).sample()["id"]
    assert made.dtype == ids.dtype
    assert made.between(lower - 128, upper + 128).all()
