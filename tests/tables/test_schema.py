import copy
import datetime
import json
import pickle
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from numpy.testing import assert_allclose, assert_array_equal

from skdpgen.tables import Boolean, Category, Date, Number, Ordinal, Schema, Unique, Unknown
from skdpgen.tables.columns.date import DATE_CODES
from skdpgen.tables.rules.predicates import bind

from .random_tables import tables

ALL_KINDS = {
    "age": Number(17, 90, decimals=0),
    "pay": Number(0, 1e5, 2, scale="log", n_knots=8, missing=True),
    "kg": Number(-0.5, 4, knots=[-0.5, 1, 4]),
    "gain": Number(-900, 1e4, 0, scale="symlog", atoms=[0, 99_999]),
    "pet": Category(["cat", "dog"], other="Ünïcode", missing=True),
    "size": Ordinal([36, 38.5, 40]),
    "fit": Boolean(missing=True),
    "born": Date("1900-01-01", datetime.date(2020, 12, 31)),
    "seen": Date("2020-01-01", "2020-01-02T12:30:01", unit="second", n_knots=4),
}


@pytest.fixture
def schema():
    return Schema(ALL_KINDS)


@given(tables())
@settings(max_examples=100, deadline=None)
def test_a_schema_survives_dicts_json_pickle_and_repr(case):
    schema = case[0].schema
    spec = schema.to_dict()
    assert Schema(spec) == schema
    assert Schema(spec).to_dict() == spec
    assert Schema.from_json(schema.to_json()) == schema
    assert json.loads(schema.to_json()) == spec
    assert Schema.from_json(schema.to_json()).to_json() == schema.to_json()
    assert eval(repr(schema)) == schema
    for twin in (pickle.loads(pickle.dumps(schema)), copy.deepcopy(schema), Schema(schema)):
        assert twin == schema
        assert hash(twin) == hash(schema)


@given(tables())
@settings(max_examples=100, deadline=None)
def test_knots_increase_from_bound_to_bound(case):
    for kind in case[0].schema.values():
        if not kind.has_knots:
            continue
        number, knots = kind.to_number(), kind.positions
        assert (np.diff(knots) > 0).all()
        atoms = number.atoms or ()
        assert 2 <= len(knots) <= max(kind.n_knots or 16, len(kind.knots or ())) + len(atoms)
        step = 10.0**-number.decimals if atoms and number.decimals is not None else 0
        within = len(atoms) * step * (1 + 1e-9)
        assert number.lower <= knots[0] <= number.lower + within
        assert number.upper - within <= knots[-1] <= number.upper
        assert not (step and set(atoms) & set(knots))
        if number.decimals is not None:
            assert_array_equal(np.round(knots, number.decimals), knots)


def test_a_dict_says_no_more_than_it_has_to(schema):
    written = schema.to_dict()
    assert list(written) == list(schema)
    assert written["age"] == {"type": "number", "lower": 17, "upper": 90, "decimals": 0}
    assert written["kg"] == {"type": "number", "lower": -0.5, "upper": 4, "knots": [-0.5, 1, 4]}
    levels = {"categories": ["cat", "dog"], "other": "Ünïcode", "missing": True}
    assert written["pet"] == {"type": "category", **levels}
    bounds = {"lower": "2020-01-01T00:00:00", "upper": "2020-01-02T12:30:01"}
    assert written["seen"] == {"type": "date", **bounds, "unit": "second", "n_knots": 4}


def test_json_files_and_texts(schema, tmp_path):
    path = tmp_path / "schema.json"
    text = schema.to_json(path)
    assert path.read_text(encoding="utf-8") == text
    for source in (path, str(path), text, "\n " + text):
        assert Schema.from_json(source) == schema
    # One column a line, so that differences are easy to see.
    assert len(text.splitlines()) == len(schema) + 2
    assert "Ünïcode" in text


def test_a_schema_is_a_mapping_that_keeps_its_order(schema):
    assert schema.names == tuple(schema) == tuple(ALL_KINDS)
    assert schema["age"] == ALL_KINDS["age"]
    assert len(schema) == 9
    assert "age" in schema
    assert "AGE" not in schema
    assert dict(schema) == ALL_KINDS
    reverse = Schema(dict(reversed(ALL_KINDS.items())))
    assert reverse != schema
    assert reverse.select(schema.names) == schema
    with pytest.raises(KeyError, match="no column 'AGE' among"):
        schema["AGE"]


def test_select_and_drop(schema):
    assert schema.select(["pet", "age"]).names == ("pet", "age")
    assert schema.select("pet").names == ("pet",)
    assert schema.drop("age").names == schema.names[1:]
    assert schema.drop(["age", "seen"]).names == schema.names[1:-1]
    assert schema.names == tuple(ALL_KINDS)
    for change in (schema.select, schema.drop):
        with pytest.raises(KeyError, match="no column 'x'"):
            change("x")
    with pytest.raises(ValueError, match="at least one column"):
        schema.drop(schema.names)


def test_nothing_can_be_changed(schema):
    with pytest.raises(AttributeError):
        schema.columns = ()
    with pytest.raises(AttributeError):
        schema["age"].lower = 0
    with pytest.raises(TypeError):
        schema["age"] = Boolean()
    columns = {"pet": {"type": "category", "categories": ["cat"]}}
    schema = Schema(columns)
    columns["pet"]["categories"].append("dog")
    assert schema["pet"].levels == ("cat",)


def test_scalars_of_numpy_and_pandas_become_plain():
    ordinal = Ordinal(np.array([1, 2]))
    assert ordinal == Ordinal([1, 2]) == Ordinal(pd.Index([1, 2]))
    number = Number(np.float32(0), np.int64(2), np.int8(0), n_knots=np.int64(3), knots=None)
    assert Schema({"a": number, "b": ordinal}).to_json() == (
        '{\n  "a": {"type": "number", "lower": 0.0, "upper": 2, "decimals": 0, "n_knots": 3},\n'
        '  "b": {"type": "ordinal", "categories": [1, 2]}\n}\n'
    )
    for lower in (
        datetime.datetime(2020, 1, 31),
        pd.Timestamp("2020-01-31"),
        np.datetime64("2020-01-31", "ns"),
        np.datetime64("2020-01-31"),
    ):
        assert Date(lower, "2021-01-01").lower == "2020-01-31"


LAST = {"day": "2020-01-31", "hour": "2020-01-31T23", "minute": "2020-01-31T23:59"}
LAST["second"] = "2020-01-31T23:59:59"


@pytest.mark.parametrize("unit", LAST)
def test_a_day_without_a_time_is_whole(unit):
    day = datetime.date(2020, 1, 31)
    for upper in (day, "2020-01-31", "20200131", np.datetime64("2020-01-31")):
        assert Date("2020-01-01", upper, unit).upper == LAST[unit]
    # Elsewhere it is its first unit.
    kind, first = (
        Date(day, "2020-12-31", unit, atoms=[day]),
        str(np.datetime64(day, DATE_CODES[unit])),
    )
    assert (kind.lower, kind.atoms) == (first, (first,))
    for upper in (datetime.datetime(2020, 1, 31), pd.Timestamp("2020-01-31"), "2020-01-31T00:00"):
        assert Date("2020-01-01", upper, unit).upper == first
    assert Schema.from_json(Schema({"a": kind}).to_json())["a"] == kind
    condition = bind("a", kind, [("2020-02-01", datetime.date(2020, 2, 3)), "2020-03-01"])
    texts = ["2020-02-01", "2020-02-03T23:59:59", "2020-03-01T12:00", "2020-02-04"]
    units = np.floor(kind.to_values(pd.to_datetime(texts, format="ISO8601")))
    assert_array_equal(condition.holds(units), [True, True, True, False])


def test_other_may_be_listed():
    assert Category(["a", "b"], other="b").levels == ("a", "b")
    assert Category(["a", "b"], other="c").levels == ("a", "b", "c")
    assert Category([1, 2], other=0).levels == (1, 2, 0)


def test_where_knots_are():
    assert_allclose(Number(-1, 1, n_knots=5).positions, [-1, -0.5, 0, 0.5, 1])
    assert_allclose(Number(0, 99, n_knots=3, scale="log").positions, [0, 9, 99])
    assert_allclose(Number(5, 104, n_knots=3, scale="log").positions, [5, 14, 104])
    assert_allclose(Number(0, 3, knots=[0, 0.1, 3]).positions, [0, 0.1, 3])
    # Knots are values, each once.
    assert_array_equal(Number(0, 3, decimals=0).positions, [0, 1, 2, 3])
    assert_array_equal(Number(0, 0.3, decimals=1).positions, [0, 0.1, 0.2, 0.3])
    assert_array_equal(Number(0, 9, decimals=0, n_knots=5).positions, [0, 2, 4, 7, 9])
    assert_array_equal(Date("1970-01-02", "1970-01-04").positions, [1, 2, 3])
    assert_array_equal(
        Date("1970-01-02", "1970-01-03T00:00", "second", 2).positions, [86400, 172800]
    )
    # Even where floats have no room for more.
    assert_array_equal(Number(1, np.nextafter(1, 2)).positions, [1, np.nextafter(1, 2)])
    assert np.isfinite(Number(-8e307, 8e307, scale="symlog").positions).all()


@pytest.mark.parametrize("scale", ["linear", "log", "symlog"])
def test_bounds_may_be_integers_that_numpy_lacks(scale):
    assert Number(0, 2**64, decimals=0, n_knots=3, scale=scale).positions[-1] == 2.0**64


def test_symlog_knots_are_even_on_either_side_of_zero():
    knots = Number(-1000, 1e6, 0, n_knots=10, scale="symlog").positions
    assert_allclose(knots, [-1000, -99, -9, 0, 9, 99, 999, 9999, 99_999, 1e6])
    places = np.log1p(Number(0, 1e6, n_knots=10, scale="symlog").positions)
    assert_allclose(np.diff(places), np.log1p(1e6) / 9)
    for lower, upper in ((-50, 2000), (-2000, 50), (-1, 1000), (-1000, 1)):
        knots = Number(lower, upper, n_knots=9, scale="symlog").positions
        assert 0 in knots
        assert_allclose(-Number(-upper, -lower, n_knots=9, scale="symlog").positions[::-1], knots)
    assert_array_equal(Number(-5, 7, n_knots=2, scale="symlog").positions, [-5, 7])
    # Knots of numbers of one sign are as on a log scale that begins at 0.
    assert_allclose(
        Number(0, 5000, scale="symlog").positions, Number(0, 5000, scale="log").positions
    )


def test_no_atom_is_a_knot_of_numbers_with_decimals():
    kind = Number(0, 100, 0, knots=[0, 10, 100], atoms=[0, 10, 11, 99_999, -1])
    assert_array_equal(kind.positions, [1, 9, 12, 100])
    assert_array_equal(Number(-2, 2, 1, knots=[-2, 0, 2], atoms=[0]).positions, [-2, -0.1, 0.1, 2])
    assert_array_equal(Number(0, 9, 0, knots=[0, 9], atoms=[9, 8]).positions, [0, 7])
    # Numbers without decimals have none that is nearest to an atom.
    assert_array_equal(Number(0, 1, knots=[0, 1], atoms=[0]).positions, [0, 1])


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"type": "number", "lower": 1, "upper": 1}, "lower must be below upper; got 1 and 1"),
        ({"type": "number", "lower": 2, "upper": 1}, "lower must be below upper"),
        ({"type": "number", "lower": 0, "upper": float("inf")}, "upper must be a finite number"),
        ({"type": "number", "lower": float("nan"), "upper": 1}, "lower must be a finite number"),
        ({"type": "number", "lower": 0, "upper": 10**400}, "upper must be a finite number"),
        ({"type": "number", "lower": "0", "upper": 1}, "lower must be a finite number; got '0'"),
        ({"type": "number", "lower": False, "upper": 1}, "lower must be a finite number"),
        ({"type": "number", "lower": -1e308, "upper": 1e308}, "too far apart"),
        ({"type": "number", "lower": 0, "upper": 1, "knot": 3}, "a number has no \\['knot'\\]; it"),
        ({"type": "number", "lower": 0, "upper": 1, "decimals": 1.0}, "decimals must be a whole"),
        ({"type": "number", "lower": 0, "upper": 1, "decimals": -1}, "decimals must be a whole"),
        ({"type": "number", "lower": 0, "upper": 1, "decimals": True}, "decimals must be a whole"),
        ({"type": "number", "lower": 0.5, "upper": 1, "decimals": 0}, "at most the given number"),
        ({"type": "number", "lower": 0, "upper": 1e12, "decimals": 4}, "too large for decimals=4"),
        ({"type": "number", "lower": 0, "upper": 1, "n_knots": 1}, "n_knots must be a whole"),
        ({"type": "number", "lower": 0, "upper": 1, "n_knots": 2.5}, "n_knots must be a whole"),
        ({"type": "number", "lower": 0, "upper": 1, "scale": "sqrt"}, "scale must be 'linear', "),
        ({"type": "number", "lower": -1, "upper": 9, "scale": "log"}, "Use scale='symlog' for"),
        ({"type": "number", "lower": 0, "upper": 1, "atoms": 0}, "atoms must be a list; got 0"),
        ({"type": "number", "lower": 0, "upper": 1, "atoms": ["?"]}, "atoms must be a finite num"),
        ({"type": "number", "lower": 0, "upper": 1, "atoms": [2, 2.0]}, "atoms must be different"),
        (
            {"type": "number", "lower": 0, "upper": 9, "decimals": 0, "atoms": [0.5]},
            "at most the given number",
        ),
        (
            {"type": "number", "lower": 0, "upper": 2, "decimals": 0, "atoms": [0, 2]},
            "too few values beside the atoms",
        ),
        ({"type": "number", "lower": 0, "upper": 1, "missing": 1}, "missing must be True or"),
        ({"type": "number", "lower": 0, "upper": 1, "knots": [0, 2]}, "begin with lower and end"),
        ({"type": "number", "lower": 0, "upper": 1, "knots": []}, "begin with lower and end"),
        ({"type": "number", "lower": 0, "upper": 1, "knots": [0, 0.5, 0.5, 1]}, "must increase"),
        ({"type": "number", "lower": 0, "upper": 1, "knots": 5}, "knots must be a list"),
        ({"type": "number", "lower": 0, "upper": 1, "knots": [0, None, 1]}, "knots must be a fin"),
        ({"type": "number", "lower": 0, "upper": 1, "knots": [0, 1], "n_knots": 2}, "either knots"),
        (
            {"type": "number", "lower": 0, "upper": 1, "decimals": 0, "knots": [0, 0.5, 1]},
            "at most the given number",
        ),
        ({"type": "ordinal"}, "ordinal needs \\['categories'\\]"),
        ({"type": "category", "categories": []}, "categories must not be empty"),
        ({"type": "category", "categories": "abc"}, "categories must be a list; got 'abc'"),
        ({"type": "category", "categories": {"a", "b"}}, "categories must be a list"),
        ({"type": "category", "categories": ["a", "b", "a"]}, "different; got \\['a'\\] more than"),
        ({"type": "category", "categories": [1, True]}, "categories must be different"),
        ({"type": "category", "categories": ["a", 1]}, "all strings or all numbers"),
        ({"type": "category", "categories": ["a", None]}, "missing=True"),
        ({"type": "category", "categories": [1, float("nan")]}, "missing=True"),
        ({"type": "category", "categories": [["a"]]}, "strings or finite numbers"),
        ({"type": "category", "categories": ["a"], "other": 1}, "all strings or all numbers"),
        ({"type": "category", "categories": ["a"], "other": ["b"]}, "strings or finite numbers"),
        ({"type": "ordinal", "categories": ["a", "a"]}, "categories must be different"),
        (
            {"type": "ordinal", "categories": ["a"], "other": "b"},
            "an? ordinal has no \\['other'\\]",
        ),
        ({"type": "boolean", "missing": None}, "missing must be True or False"),
        ({"type": "date", "lower": "2020-01-02", "upper": "2020-01-02"}, "lower must be before"),
        ({"type": "date", "lower": "02.01.2020", "upper": "2020-01-02"}, "lower must be a date"),
        ({"type": "date", "lower": 1999, "upper": "2020-01-02"}, "lower must be a date"),
        ({"type": "date", "lower": pd.NaT, "upper": "2020-01-02"}, "lower must be a date"),
        (
            {"type": "date", "lower": np.datetime64("NaT", "s"), "upper": "2020-01-02"},
            "lower must be a",
        ),
        (
            {"type": "date", "lower": "1999-01-01T00:00:00+01:00", "upper": "2020-01-02"},
            "time zone",
        ),
        ({"type": "date", "lower": "1999-01-01T08:00:00", "upper": "2020-01-02"}, "a whole day"),
        (
            {"type": "date", "lower": "1999-01-01", "upper": "2020-01-02", "unit": "h"},
            "unit must be",
        ),
        ({"type": "text"}, "its 'type' must be one of \\['number', .*; got 'text'"),
        ({"lower": 0, "upper": 1}, "its 'type' must be one of"),
        ({"type": ["number"]}, "its 'type' must be one of"),
        (Number, "must be one of .* or a dict"),
        ((17, 90), "must be one of .* or a dict; got \\(17, 90\\)"),
    ],
)
def test_senseless_columns_are_refused_by_name(spec, message):
    with pytest.raises(ValueError, match=f"^Column 'here': .*{message}"):
        Schema({"fine": Boolean(), "here": spec})


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({}, "at least one column"),
        ([("age", Boolean())], "must be a dict of names to column types"),
        ("age", "must be a dict"),
        ({1: Boolean()}, "non-empty strings; got 1"),
        ({"": Boolean()}, "non-empty strings; got ''"),
    ],
)
def test_objects_that_are_no_schema(columns, message):
    with pytest.raises(ValueError, match=message):
        Schema(columns)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not valid JSON"),
        ('{"a": {"type": "boolean"},}', "not valid JSON: .*line 1"),
        ('{"a": {"type": "boolean"}, "a": {"type": "boolean"}}', "\\['a'\\] more than once"),
        (
            '{"a": {"type": "number", "lower": 1, "lower": 2, "upper": 3}}',
            "\\['lower'\\] more than",
        ),
        ('{"a": {"type": "number", "lower": NaN, "upper": 3}}', "Column 'a': lower must be a fin"),
        ("{}", "at least one column"),
    ],
)
def test_json_that_is_no_schema(text, message, tmp_path):
    path = tmp_path / "schema.json"
    path.write_text(text)
    for source in (text, path):
        with pytest.raises(ValueError, match=message):
            Schema.from_json(source)


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"[" * 100_000, "nested too deeply"), (b"\xff", "is no text in UTF-8")],
)
def test_files_that_hold_no_schema(content, message, tmp_path):
    (tmp_path / "schema.json").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        Schema.from_json(str(tmp_path / "schema.json"))
    with pytest.raises(FileNotFoundError):
        Schema.from_json(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([3, 1, 2], Number(1, 3, 0)),
        (pd.array([3, None, 2]), Number(2, 3, 0, missing=True)),
        ([3.0, None, 2.0], Number(2, 3, 0, missing=True)),
        ([0.25, 1.5], Number(0.25, 1.5, 2)),
        ([0.1, 1 / 3], Number(0.1, 1 / 3)),
        ([1e-7, 1.0], Number(1e-7, 1.0)),
        ([0.0, 1e16], Number(0.0, 1e16)),
        ([-np.inf, 1.5, 2.5, np.inf], Number(1.5, 2.5, 1)),
        (pd.Series([1, 2.5], dtype=object), Number(1.0, 2.5, 1)),
        (["b", "a", None, "b"], Category(["a", "b"], missing=True)),
        (pd.Series(["b", "a"], dtype="string"), Category(["a", "b"])),
        (pd.Categorical(["b", "a"], ["b", "a", "c"]), Category(["b", "a", "c"])),
        (pd.Categorical([1, None], [2, 1], ordered=True), Ordinal([2, 1], missing=True)),
        ([True, True], Boolean()),
        ([True, None], Boolean(missing=True)),
        (pd.array([True, None], dtype="boolean"), Boolean(missing=True)),
        (pd.to_datetime(["2020-01-02", "2020-01-01"]), Date("2020-01-01", "2020-01-02")),
        ([datetime.date(1500, 1, 1), datetime.date(1600, 1, 1)], Date("1500-01-01", "1600-01-01")),
        (
            pd.to_datetime(["2020-01-02T00:00:01.5", None, "2020-01-01T00:00:00.0"]),
            Date("2020-01-01", "2020-01-02T00:00:01.5", unit="millisecond", missing=True),
        ),
    ],
)
def test_from_public(cells, kind):
    assert Schema.from_public(pd.DataFrame({"a": cells})) == Schema({"a": kind})


def test_from_public_with_declared_columns():
    frame = pd.DataFrame({"a": [1, 2], "b": [["x"], None], "c": [0.5, 1.5]})
    schema = Schema.from_public(frame, declared={"b": {"type": "boolean"}}, n_knots=4)
    assert schema == Schema(
        {"a": Number(1, 2, 0, n_knots=4), "b": Boolean(), "c": Number(0.5, 1.5, 1, n_knots=4)}
    )
    with pytest.raises(ValueError, match="frame does not have: \\['d'\\]"):
        Schema.from_public(frame, declared={"d": Boolean()})


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ([77, 77], "one value only. Drop it"),
        (pd.to_datetime(["2077-07-07"]), "one value only"),
        ([None, None], "of no type"),
        ([np.nan, np.inf], "of no type"),
        (["77", 77], "one value only"),
        ([["77"], ["78"]], "of no type"),
        (pd.to_timedelta([77, 78]), "of no type"),
        ([77j, 1], "of no type"),
        ([f"77-{i}" for i in range(101)], "more than 100 different values"),
        (pd.cut([77, 78], 2), r"category of interval.*cat\.rename_categories"),
        (pd.Categorical(pd.to_datetime(["2088-08-08"])), "one value only"),
    ],
)
def test_public_columns_that_cannot_be_described(cells, message):
    with pytest.raises(ValueError, match=f"^Column 'here' .*{message}") as error:
        Schema.from_public(pd.DataFrame({"fine": [True] * len(cells), "here": cells}))
    # Someone may have called it with private rows nevertheless.
    assert "77" not in str(error.value)
    assert error.value.__context__ is None


def test_public_frames_that_are_none():
    with pytest.raises(ValueError, match="must be a DataFrame; got list"):
        Schema.from_public([1, 2])
    with pytest.raises(ValueError, match="several columns of the same name"):
        Schema.from_public(pd.DataFrame([[1, 2]], columns=["a", "a"]))
    with pytest.raises(ValueError, match="at least one column"):
        Schema.from_public(pd.DataFrame())
    with pytest.raises(ValueError, match="non-empty strings; got 0"):
        Schema.from_public(pd.DataFrame([[1], [2]]))


def test_a_schema_as_html_has_a_row_for_each_column_and_escapes_it():
    schema = Schema({"<b>": Number(0, 1), "c": Category(["<i>", "&"]), "u": Unknown()})
    page = schema._repr_html_()
    table = ElementTree.fromstring(page).find("table")
    rows = [[cell.text for cell in row] for row in table.iter("tr")][1:]
    assert rows == [
        ["<b>", "Number", "lower=0, upper=1"],
        ["c", "Category", "categories=('<i>', '&')"],
        ["u", "Unknown", None],
    ]


@pytest.mark.parametrize("bad", [5, None, np.array([1.0, 2.0]), pd.NA, pd.DataFrame({"a": [1]})])
def test_objects_of_another_type_are_named(bad):
    frame = pd.DataFrame({"a": [1, 2]})
    for call, name in [
        (lambda: Schema.from_dtypes(bad), "dtypes"),
        (lambda: Schema({"a": Number(0, 1)}).select(bad), "names"),
        (lambda: Unknown(expected=5 if bad is None else bad), "expected"),
        (lambda: Number(0, 1, scale=5 if bad is None else bad), "scale"),
        (lambda: Date("2000-01-01", "2001-01-01", unit=bad), "unit"),
    ]:
        # A list of names may be of others.
        with pytest.raises((TypeError, ValueError, KeyError), match=f"{name}|no column"):
            call()
    if bad is not None:
        with pytest.raises(TypeError, match="declared must be"):
            Schema.from_public(frame, declared=bad)


@pytest.mark.parametrize(
    ("document", "nearest"),
    [
        ({"a": {"type": "number", "uper": 3}}, "upper"),
        ({"a": {"type": "numbr"}}, "number"),
        ({"columns": {"a": {"type": "boolean"}}, "rule": []}, "rules"),
        ({"columns": {"a": {"type": "boolean"}}, "rules": [{"type": "uniqe"}]}, "unique"),
        ({"columns": {"age": {"type": "boolean"}}, "rules": [Unique("agee")]}, "age"),
        ({"schema": {"a": {"type": "boolean"}}, "rule": [{"type": "nonsense"}]}, "rules"),
    ],
)
def test_unknown_keys_are_refused_with_the_nearest_known_one(document, nearest):
    with pytest.raises(ValueError, match=f"Is '{nearest}' meant"):
        Schema.from_metadata(document)


def test_columns_stand_without_rules_and_rules_beside_them():
    columns = {"age": {"type": "number", "lower": 0, "upper": 9}}
    plain = Schema(columns)
    assert Schema({"columns": columns}) == plain
    beside = {"schema": columns, "rules": [{"type": "unique", "columns": ["age"]}]}
    assert Schema.from_metadata(beside) == Schema(columns, [Unique("age")])
    dtypes = {"age": np.dtype("int64"), "other": np.dtype("float64")}
    assert Schema.from_dtypes(dtypes, rules=[Unique("other")]).rules == (Unique("other"),)
