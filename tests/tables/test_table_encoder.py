import datetime
import decimal
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from pandas.testing import assert_frame_equal

from skdpgen.exceptions import TableError
from skdpgen.tables import Boolean, Category, Date, Number, Ordinal, Schema
from skdpgen.tables.encoder import TableEncoder, check_dtypes

from .random_tables import tables

SCHEMA = Schema(
    {
        "age": Number(17, 90, decimals=0, n_knots=5),
        "pay": Number(0, 1e5, decimals=2, scale="log", n_knots=8, missing=True),
        "kg": Number(-0.5, 4, knots=[-0.5, 1, 4]),
        "pet": Category(["cat", "dog"], other="another", missing=True),
        "size": Ordinal([36, 38.5, 40]),
        "fit": Boolean(),
        "ill": Boolean(missing=True),
        "born": Date("1900-01-01", "2020-12-31", n_knots=4),
        "seen": Date("2020-01-01", "2020-01-02T00:00", unit="second", n_knots=3, missing=True),
    }
)


@pytest.fixture
def encoder():
    return TableEncoder(SCHEMA)


@pytest.fixture
def table():
    return pd.DataFrame(
        {
            "age": [17, 90, 40],
            "pay": [0.01, None, 99999.99],
            "kg": [-0.5, np.pi, 1.0],
            "pet": ["dog", None, "another"],
            "size": [38.5, 36, 40],
            "fit": [True, False, True],
            "ill": [None, True, False],
            "born": pd.to_datetime(["1900-01-01", "2020-12-31", "1999-12-31"]),
            "seen": pd.to_datetime(["2020-01-01T00:00:01", None, "2020-01-01T23:59:59"]),
        }
    )


def decode(encoder, rows):
    """Return the table that encoded rows come from: the way back that leaves nothing to chance."""
    columns = {}
    for (name, where), block in zip(encoder.blocks, encoder.make_blocks(), strict=True):
        weights = np.asarray(rows)[:, where] * len(encoder.blocks) ** 0.5
        if hasattr(block, "knots"):
            knots, others = np.split(weights, [len(block.knots)], axis=1)
            # Atoms, and missing values: -1 where it is neither.
            others = np.column_stack([1 - others.sum(axis=1), others]).argmax(axis=1) - 1
            # From the first knot on, as far-off knots that are close together need all digits.
            offset = knots @ (block.knots - block.knots[0]) / np.maximum(knots.sum(axis=1), 1e-9)
            columns[name] = block.make_cells(block.knots[0] + offset, others)
        else:
            columns[name] = block.make_cells(weights.argmax(axis=1))
    return pd.DataFrame(columns)


def random_rows(encoder, n_rows, random_state=0):
    """Rows whose blocks are random probabilities, some of them 0."""
    rng = np.random.RandomState(random_state)
    rows = np.zeros((n_rows, encoder.n_columns))
    for _, where in encoder.blocks:
        size = where.stop - where.start
        weights = rng.exponential(size=(n_rows, size)) * (rng.uniform(size=(n_rows, size)) < 0.7)
        weights[:, 0] += 1e-3
        rows[:, where] = weights / weights.sum(axis=1, keepdims=True)
    return rows / len(encoder.blocks) ** 0.5


def assert_same(decoded, expected, schema):
    """Assert that tables are equal, up to the last digits of numbers that are not rounded."""
    exact = [n for n, k in schema.items() if not isinstance(k, Number) or k.decimals is not None]
    assert_frame_equal(decoded[exact], expected[exact])
    for name in decoded.columns.difference(exact):
        assert decoded[name].dtype == expected[name].dtype
        reach = schema[name].upper - schema[name].lower
        assert_allclose(decoded[name], expected[name], rtol=1e-12, atol=1e-12 * reach)


@given(tables())
@settings(max_examples=100, deadline=None)
def test_decoding_gives_back_what_was_encoded(case):
    encoder, table, expected = case
    decoded = decode(encoder, encoder.encode(table))
    assert_same(decoded, expected, encoder.schema)
    # Decoded rows can be encoded.
    again = decode(encoder, encoder.encode(decoded))
    assert_same(again, decoded, encoder.schema)


@given(tables())
@settings(max_examples=100, deadline=None)
def test_every_row_is_made_of_simplexes_in_the_unit_ball(case):
    encoder, table, _ = case
    rows = encoder.encode(table)
    assert rows.dtype == np.float64
    assert rows.shape == (len(table), encoder.n_columns)
    assert (rows >= 0).all()
    assert np.linalg.norm(rows, axis=1).max() <= 1 + 1e-12
    assert [name for name, _ in encoder.blocks] == list(encoder.schema)
    assert sum(where.stop - where.start for _, where in encoder.blocks) == encoder.n_columns
    for _, where in encoder.blocks:
        assert_allclose(rows[:, where].sum(axis=1), len(encoder.blocks) ** -0.5)
        assert ((rows[:, where] > 0).sum(axis=1) <= 2).all()


@given(tables(), st.integers(0, 2**32 - 1), st.booleans())
@settings(max_examples=100, deadline=None)
def test_whatever_is_generated_is_decoded_to_valid_values(case, seed, are_probabilities):
    encoder, _, expected = case
    if are_probabilities:
        rows = random_rows(encoder, 20, seed)
    else:
        rows = np.random.RandomState(seed).normal(size=(20, encoder.n_columns))
    drawn = encoder.draw(rows, np.random.RandomState(seed))
    assert_array_equal(drawn.dtypes, expected.dtypes)
    assert list(drawn) == list(encoder.schema)
    # Encoding clips, and refuses what is not declared; here it changes nothing.
    assert_same(decode(encoder, encoder.encode(drawn)), drawn, encoder.schema)
    assert_array_equal(drawn.isna().any() <= [k.missing for k in encoder.schema.values()], True)


def test_weights_of_an_example(encoder, table):
    rows = encoder.encode(table) * 3
    blocks = {name: rows[:, where] for name, where in encoder.blocks}
    # knots 17, 35, 54, 72, 90
    assert_allclose(
        blocks["age"],
        [[1, 0, 0, 0, 0], [0, 0, 0, 0, 1], [0, 14 / 19, 5 / 19, 0, 0]],
        atol=1e-12,
    )
    assert_allclose(blocks["kg"], [[1, 0, 0], [0, (4 - np.pi) / 3, (np.pi - 1) / 3], [0, 1, 0]])
    assert_allclose(blocks["pay"][1], [0, 0, 0, 0, 0, 0, 0, 0, 1])
    assert_allclose(blocks["pet"], [[0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]])
    assert_allclose(blocks["size"], [[0, 1, 0], [1, 0, 0], [0, 0, 1]])
    assert_allclose(blocks["fit"], [[0, 1], [1, 0], [0, 1]])
    assert_allclose(blocks["ill"], [[0, 0, 1], [0, 1, 0], [1, 0, 0]])
    assert_allclose(blocks["born"][:2], [[1, 0, 0, 0], [0, 0, 0, 1]])
    assert_allclose(
        blocks["seen"],
        [[1 - 1 / 43200, 1 / 43200, 0, 0], [0, 0, 0, 1], [0, 1 / 43200, 1 - 1 / 43200, 0]],
        atol=1e-12,
    )


def test_cells_without_an_exact_place_are_rounded_clipped_or_gathered(encoder, table):
    table["age"] = [16.9, 17.6, 1e300]
    table["pay"] = [-np.inf, 1.005001, np.inf]
    table["pet"] = ["horse", ["a", "list"], ("a", "tuple")]
    table["born"] = [pd.Timestamp("1800-01-01"), pd.Timestamp("1999-12-31T23:59:59"), None]
    table.loc[2, "born"] = pd.Timestamp("2100-01-01")
    table["seen"] = pd.to_datetime(["2020-01-01T00:00:00.9", None, "2020-01-02T00:00:01.0"])
    decoded = decode(encoder, encoder.encode(table))
    assert decoded["age"].tolist() == [17, 18, 90]
    assert decoded["pay"].tolist() == [0, 1.01, 1e5]
    assert decoded["pet"].tolist() == ["another"] * 3
    assert decoded["born"].astype(str).tolist() == ["1900-01-01", "1999-12-31", "2020-12-31"]
    assert decoded["seen"].tolist()[::2] == [pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-02")]


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("age", [[17, 90, 40], [17.0, 90.0, 40.0]]),
        ("age", [np.array([17, 90, 40], dtype) for dtype in ("int8", "uint64", "float32")]),
        ("age", [pd.array([17, 90, 40], dtype) for dtype in ("Int8", "UInt64", "Float32")]),
        ("age", [pd.Series([17, 90.0, np.int8(40)], dtype=object), pd.Categorical([17, 90, 40])]),
        ("age", [[decimal.Decimal(number) for number in (17, 90, 40)], [17, 90, 40]]),
        (
            "pay",
            [[1, None, 3], [1, np.nan, 3], pd.array([1, None, 3]), pd.Categorical([1, None, 3])],
        ),
        (
            "pay",
            [
                pd.Series([1, pd.NA, 3], dtype=object),
                pd.array([1, None, 3], dtype="Int8"),
                [decimal.Decimal(1), None, decimal.Decimal(3)],
            ],
        ),
        ("pay", [[None] * 3, [np.nan] * 3, [pd.NaT] * 3, pd.array([None] * 3, "string")]),
        ("pet", [["cat", None, "dog"], pd.array(["cat", pd.NA, "dog"], "string")]),
        (
            "pet",
            [["cat", np.nan, "dog"], pd.Categorical(["cat", None, "dog"], ["dog", "b", "cat"])],
        ),
        ("size", [[36, 38.5, 40], pd.Categorical([36, 38.5, 40]), pd.array([36, 38.5, 40])]),
        ("fit", [[True, False, True], [1, 0, 1], [1.0, 0.0, 1.0], pd.array([True, False, True])]),
        ("ill", [[True, None, False], pd.array([True, pd.NA, False]), [1, np.nan, 0]]),
        (
            "born",
            [
                [datetime.date(2000, 1, 1), datetime.date(1900, 1, 2), datetime.date(2020, 1, 1)],
                pd.to_datetime(["2000-01-01", "1900-01-02", "2020-01-01"]),
                pd.to_datetime(["2000-01-01", "1900-01-02", "2020-01-01"]).astype("M8[ns]"),
                np.array(["2000-01-01", "1900-01-02", "2020-01-01"], dtype="M8[s]"),
                pd.Categorical(pd.to_datetime(["2000-01-01", "1900-01-02", "2020-01-01"])),
            ],
        ),
        (
            "seen",
            [
                [datetime.datetime(2020, 1, 1), None, pd.NaT],
                [pd.Timestamp("2020-01-01"), None, None],
            ],
        ),
    ],
)
def test_a_column_may_have_any_dtype_that_holds_its_values(encoder, table, name, same):
    first, *others = [encoder.encode(table.assign(**{name: pd.Series(c)})) for c in same]
    for other in others:
        assert_array_equal(other, first)


def test_order_and_index_of_the_table_do_not_matter(encoder, table):
    rows = encoder.encode(table)
    assert_array_equal(encoder.encode(table[table.columns[::-1]]), rows)
    assert_array_equal(encoder.encode(table.set_index(np.array([5, 5, -1]))), rows)
    assert_array_equal(encoder.encode(table.iloc[[2]]), rows[[2]])
    kept = table.copy(deep=True)
    encoder.encode(table)
    assert_frame_equal(table, kept)


def test_each_row_is_encoded_by_itself():
    """Alone, in blocks of 7 and of 8,191, and shifted by 3: the same to the bit."""
    rng, n = np.random.default_rng(0), 8191
    schema = SCHEMA.select(["age", "pay", "kg", "size", "born"])
    table = pd.DataFrame(
        {
            "age": rng.uniform(0, 100, n),
            "pay": rng.lognormal(8, 3, n),
            "kg": rng.normal(1, 2, n),
            "size": rng.choice([36, 38.5, 40], n),
            "born": pd.Timestamp("1910-01-01") + pd.to_timedelta(rng.integers(0, 30_000, n), "D"),
        }
    )
    encoder = TableEncoder(schema)
    rows = encoder.encode(table)
    for start in (0, 7, 700, n - 7):
        block = encoder.encode(table[start : start + 7])
        assert (block == rows[start : start + 7]).all()
        for i in range(start, start + 7):
            assert (encoder.encode(table[i : i + 1]) == rows[i]).all()
    assert (encoder.encode(table[3:]) == rows[3:]).all()


def test_generated_rows_need_not_be_probabilities():
    encoder = TableEncoder(
        Schema({"x": Number(0, 10, knots=[0, 4, 10], missing=True), "y": Category(["a", "b"])})
    )
    rows = np.array(
        [
            # A scale does not matter, and negative entries are 0.
            [0.2, 0.2, 0.0, 0.0, 0.1, 0.3],
            [0.0, 200.0, 200.0, 399.0, 3.0, 1.0],
            [-5.0, 3.0, -1e-9, -0.1, -0.2, -0.1],
            # Missing outweighs all knots together.
            [0.1, 0.1, 0.1, 0.31, 0.5, 0.5],
            [0.1, 0.1, 0.1, 0.29, 0.5, 0.5],
            # No weight at all, or a lot.
            [0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
            [0.0, 1.7e308, 1.7e308, 0.0, 1.7e308, 1.7e308],
        ]
    )
    drawn = encoder.draw(rows, np.random.RandomState(0))
    assert 0 <= drawn["x"][0] <= 4
    assert drawn["x"][2] == 4
    assert 4 <= drawn["x"][6] <= 10
    assert set(drawn["y"]) == {"a", "b"}
    assert encoder.draw(rows[:0], np.random.RandomState(0)).shape == (0, 2)


def test_decoded_numbers_keep_to_their_bounds_to_the_last_bit():
    # Here lower + (upper - lower) is above upper.
    pairs = [(-0.85, 0.22), (-0.44, 0.68), (-4.4, 1.98)]
    schema = Schema({f"x{i}": Number(*pair, n_knots=2) for i, pair in enumerate(pairs)})
    encoder = TableEncoder(schema)
    drawn = encoder.draw(np.array([[0, 1] * 3]), np.random.RandomState(0))
    assert drawn.loc[0].tolist() == [upper for _, upper in pairs]


def test_there_is_no_negative_zero():
    encoder = TableEncoder(Schema({"x": Number(-1, 1, decimals=1)}))
    decoded = decode(encoder, encoder.encode(pd.DataFrame({"x": [-0.04]})))
    assert str(decoded["x"][0]) == "0.0"


@pytest.mark.parametrize("uniform", [0.0, np.nextafter(1, 0)])
def test_extreme_draws_avoid_what_has_no_weight(uniform):
    class Extreme(np.random.RandomState):
        def uniform(self, size=()):
            return np.full(size, uniform)

    encoder = TableEncoder(
        Schema({"x": Number(0, 3, 0, missing=True), "y": Category([0, 1, 2, 3])})
    )
    drawn = encoder.draw(np.array([[*(0, 1, 1e-9, 0, 0), *(0, 1, 1, 0)]]), Extreme())
    assert drawn["x"][0] in (1, 2)
    assert drawn["y"][0] in (1, 2)


@pytest.mark.parametrize("n_rows", [1, 3])
def test_draws_have_the_weights_as_their_mean(encoder, n_rows):
    n_draws = 20_000
    rows = random_rows(encoder, n_rows, n_rows)
    drawn = encoder.draw(np.repeat(rows, n_draws, axis=0), np.random.RandomState(0))
    means = encoder.encode(drawn).reshape(n_rows, n_draws, -1).mean(axis=1)
    # By Hoeffding, one weight is off by 0.03 with a probability below 2 exp(-2 n 0.03²) < 1e-15.
    assert np.abs(means - rows).max() * 3 < 0.03


@pytest.mark.parametrize("decimals", [None, 0, 1])
def test_cuts_say_where_numbers_are_between_knots(decimals):
    kind = Number(0, 100, decimals=decimals, knots=[0, 60, 100], cuts=[3, 5, 20, 70])
    encoder = TableEncoder(Schema({"x": kind}))
    # Cuts part the way to the next knot in four and in two.
    for value, place in ((0, 0), (2, 1 / 6), (3, 0.25), (20, 0.75), (60, 1), (65, 1.25), (100, 2)):
        weights = encoder.encode(pd.DataFrame({"x": [float(value)]}))[0]
        assert weights @ np.arange(3) == pytest.approx(place)
        assert weights.sum() == 1
        assert np.count_nonzero(weights) == 1 + (place % 1 > 0)
    rows = np.array([[0.5, 0.5, 0], [0.2, 0.5, 0.3], [0.1, 0, 0.9]])
    drawn = encoder.draw(np.repeat(rows, 20_000, axis=0), np.random.RandomState(0))
    means = encoder.encode(drawn).reshape(3, 20_000, -1).mean(axis=1)
    assert np.abs(means - rows).max() < 0.015
    # Equal weights of neighbours have a quarter of what is drawn in each of four parts.
    counts, _ = np.histogram(drawn["x"][:20_000], [0, 3, 5, 20, 60])
    if decimals is None:
        assert_allclose(counts, 5000, atol=300)
    assert Schema.from_json(encoder.schema.to_json()) == encoder.schema


def test_a_row_between_two_knots_is_drawn_between_them():
    encoder = TableEncoder(Schema({"x": Number(0, 3, knots=[0, 1, 2, 3])}))
    x = np.array([0.0, 0.2, 1.0, 1.5, 1.8, 3.0])
    rows = np.repeat(encoder.encode(pd.DataFrame({"x": x})), 5000, axis=0)
    drawn = encoder.draw(rows, np.random.RandomState(0))["x"].to_numpy().reshape(6, -1)
    assert_allclose(drawn.mean(axis=1), x, atol=0.03)
    assert (np.floor(x) <= drawn.min(axis=1)).all()
    assert (drawn.max(axis=1) <= np.ceil(x)).all()
    # Only a weight of 1 is an atom.
    assert [len(np.unique(values)) for values in drawn] == [1, 5000, 1, 5000, 5000, 1]


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_flat_weights_are_drawn_flat(scale):
    encoder = TableEncoder(Schema({"x": Number(0, 1000, n_knots=11, scale=scale)}))
    knots = encoder.schema["x"].positions
    uniform = pd.DataFrame({"x": np.linspace(0, 1000, 100_001)})
    row = encoder.encode(uniform).mean(axis=0)
    drawn = encoder.draw(np.tile(row, (50_000, 1)), np.random.RandomState(0))["x"].to_numpy()
    inner = np.linspace(knots[2], knots[-3], 50)
    shares = (drawn[:, None] <= inner).mean(axis=0)
    assert np.abs(shares - inner / 1000).max() < 0.02


def test_numbers_are_rounded_at_random_so_that_weights_stay():
    """To the nearest, a weight of 0.1 on the upper knot would be drawn in 0.002 of all cases."""
    schema = Schema({"n": Number(0, 1, 0, knots=[0, 1]), "x": Number(0, 0.1, 1, knots=[0, 0.1])})
    drawn = TableEncoder(schema).draw(
        np.tile([0.9, 0.1, 0.1, 0.9], (20_000, 1)), np.random.RandomState(0)
    )
    # Six standard errors of a share.
    assert abs(drawn["n"].mean() - 0.1) < 6 * math.sqrt(0.09 / 20_000)
    assert abs((drawn["x"] > 0).mean() - 0.9) < 6 * math.sqrt(0.09 / 20_000)


def test_draws_are_reproducible_and_leave_the_global_state_alone(encoder):
    rows = random_rows(encoder, 50)
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    assert_frame_equal(
        encoder.draw(rows, np.random.RandomState(1)), encoder.draw(rows, np.random.RandomState(1))
    )
    assert_frame_equal(
        encoder.draw(rows, np.random.default_rng(1)), encoder.draw(rows, np.random.default_rng(1))
    )
    assert not encoder.draw(rows, np.random.RandomState(1)).equals(
        encoder.draw(rows, np.random.RandomState(2))
    )
    assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


SECRET = 98765.25
SECRETS = ("98765", "secret", "9876-05-04")


class Secret:
    """Says what it is wherever it can."""

    def __repr__(self):
        return "secret"

    def __float__(self):
        raise ValueError("secret")


def assert_tells_nothing(error):
    """Assert that an error, and those that it came from, quote no secret."""
    while error is not None:
        told = f"{error} {error!r} {error.args}"
        assert not any(secret in told for secret in SECRETS)
        error = error.__context__ or error.__cause__


@pytest.mark.parametrize(
    ("name", "cells", "message"),
    [
        ("age", [SECRET, "secret", 1], "no numbers \\(dtype .*pandas.to_numeric"),
        ("age", ["98765", "1", "2"], "no numbers"),
        ("age", pd.Series(["98765", "1", "2"], dtype="string"), "no numbers \\(dtype string"),
        ("age", pd.Categorical(["98765", "1", "2"]), "no numbers \\(dtype category\\)"),
        ("age", [98765, 98765.25, True], "no numbers"),
        ("age", [True, False, True], "no numbers \\(dtype bool\\)"),
        ("age", [SECRET * 1j, 1, 2], "no numbers \\(dtype complex128\\)"),
        ("age", pd.Series([98765 * 10**400, 1, 2], dtype=object), "no numbers"),
        ("age", [Secret(), 1, 2], "no numbers"),
        ("age", [[SECRET], 1, 2], "no numbers"),
        ("age", pd.to_datetime(["2098-07-06"] * 3), "no numbers \\(dtype datetime64"),
        ("age", [SECRET, None, 1], "missing values; declare it with missing=True"),
        ("age", pd.array([98765, None, 1]), "missing values"),
        ("age", [pd.NaT] * 3, "missing values"),
        ("kg", [SECRET, np.nan, 1], "missing values"),
        ("size", [SECRET, 36, 36], "not among its categories .*float64.* type float and int"),
        ("size", [36, None, 36], "missing values"),
        ("size", ["secret", 36, 40], "not among its categories .*declare all that may occur"),
        ("size", [Secret(), [Secret()], 40], "not among its categories"),
        ("size", pd.Categorical(["secret", "secret", "b"]), "not among .*dtype category"),
        ("fit", ["secret", True, False], "other than True and False .*as a category"),
        ("fit", [98765, 1, 0], "other than True and False \\(dtype int64\\)"),
        ("fit", [True, None, False], "missing values"),
        ("ill", ["secret", None, False], "other than True and False"),
        ("born", ["9876-05-04", "2000-01-01", "2000-01-01"], "no dates .*pandas.to_datetime"),
        ("born", [98765, 1, 2], "no dates without time zone \\(dtype int64\\)"),
        ("born", [datetime.date(9876, 5, 4), "secret", None], "no dates"),
        ("born", [datetime.date(9876, 5, 4), 98765, None], "no dates"),
        ("born", pd.to_datetime(["2020-01-01"] * 3).tz_localize("UTC"), "no dates .*, UTC\\]"),
        (
            "born",
            pd.Series(
                [datetime.datetime(9876, 5, 4, tzinfo=datetime.timezone.utc)] * 3, dtype=object
            ),
            "no dates",
        ),
        ("born", pd.to_datetime(["2020-01-01", None, None]), "missing values"),
        ("born", pd.period_range("2020-01-01", periods=3), "no dates .*period"),
    ],
)
def test_cells_that_are_refused_are_not_quoted(encoder, table, name, cells, message):
    table = table.assign(**{name: pd.Series(cells)})
    with pytest.raises(ValueError, match=f"^Column '{name}' h.*{message}") as error:
        encoder.encode(table)
    assert_tells_nothing(error.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.to_numpy(), "must be a pandas DataFrame; got ndarray"),
        (lambda table: table["age"], "must be a pandas DataFrame; got Series"),
        (
            lambda table: table.drop(columns=["age", "ill"]),
            "lacks columns \\['age', 'ill'\\]: give",
        ),
        (
            lambda table: table.assign(x=SECRET, y="secret"),
            "columns \\['x', 'y'\\] that the schema",
        ),
        (lambda table: table.rename(columns={"age": "Age"}), "lacks columns \\['age'\\]"),
        (
            lambda table: table.assign(**{"0": SECRET}).rename(columns={"0": 0}),
            "columns \\[0\\] that",
        ),
        (lambda table: pd.concat([table, table["age"]], axis=1), "same name: \\['age'\\]"),
        (lambda table: table.iloc[:0], "no rows"),
    ],
)
def test_tables_that_are_refused(encoder, table, change, message):
    table.loc[0, "kg"] = SECRET
    with pytest.raises(ValueError, match=message) as error:
        encoder.encode(change(table))
    assert_tells_nothing(error.value)


@pytest.mark.catches("tables.encoder:check_dtypes", "not are_stated", "are_stated")
@pytest.mark.parametrize("name", ["age", "kg", "born", "seen"])
def test_texts_in_place_of_values_are_refused_where_the_source_states_them(table, name):
    """A reader makes texts of a column for a single cell, of which a refusal would tell."""
    texts = table.assign(**{name: table[name].astype("string")})
    with pytest.raises(TableError, match=f"'{name}' holds values that are"):
        check_dtypes(texts, SCHEMA, are_stated=True)
    check_dtypes(texts, SCHEMA)
    check_dtypes(table, SCHEMA, are_stated=True)


def test_many_digits_survive():
    schema = Schema(
        {
            "units": Number(-(10**14), 10**14, decimals=0),
            "cents": Number(0, 999_999_999_999.99, decimals=2, scale="log"),
            "late": Number(1e12, 1e12 + 1),
            "time": Date("0001-01-01", "9999-12-31T23:59:59", unit="second"),
        }
    )
    rng = np.random.RandomState(0)
    table = pd.DataFrame(
        {
            "units": rng.randint(-(10**14), 10**14, 1000),
            "cents": rng.randint(0, 10**14, 1000) / 100,
            "late": 1e12 + rng.uniform(size=1000),
            "time": rng.randint(-62135596800, 253402300800, 1000).astype("M8[s]"),
        }
    )
    encoder = TableEncoder(schema)
    decoded = decode(encoder, encoder.encode(table))
    assert_frame_equal(decoded.drop(columns="late"), table.drop(columns="late"))
    assert_allclose(decoded["late"] - 1e12, table["late"] - 1e12, atol=2e-4)


def test_decimals_that_signal_are_bad_cells_like_others():
    """Pandas asks of them whether they are missing, and fails."""
    cells = pd.DataFrame({"a": [1.5, decimal.Decimal("sNaN")], "c": ["A", decimal.Decimal("sNaN")]})
    encoder = TableEncoder(Schema({"a": Number(0, 2, n_knots=3), "c": Category(["A"])}))
    assert np.isnan(encoder.encode_private(cells)).all(axis=1).tolist() == [False, True]
    with pytest.raises(TableError, match="Column 'a' holds"):
        encoder.encode(cells)


@pytest.mark.parametrize("kind", [Category, Ordinal])
def test_half_of_a_pair_is_no_text(kind):
    with pytest.raises(ValueError, match="categories must be texts that UTF-8 can write"):
        kind(["A", "\ud800"])
    with pytest.raises(ValueError, match="Names of columns must be"):
        Schema({"\ud800": kind(["A"])})
