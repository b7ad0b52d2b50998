"""From texts to values."""

import pandas as pd
import pytest

from skdpgen.data.names import map_cells
from skdpgen.data.texts import MISSING_TEXTS, PLAIN, TextStyle
from skdpgen.tables import Category, Date, Number, Ordinal, Schema
from skdpgen.tables.columns.texts import parse_cells


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("level", sorted(MISSING_TEXTS))
def test_declared_levels_are_no_missing_values(level, missing):
    """The NA of a schema may be Namibia."""
    texts = [level, "A", *(sorted(MISSING_TEXTS - {level}) if missing else [])]
    frame = pd.DataFrame({"a": texts, "b": texts})
    schema = Schema(
        {"a": Category([level, "A"], missing=missing), "b": Ordinal([level, "A"], missing)}
    )
    for name, column in parse_cells(frame, schema).items():
        assert column.tolist()[:2] == [level, "A"], name
        assert column[2:].isna().all()


@pytest.mark.parametrize("style", [PLAIN, TextStyle(thousands="'")])
@pytest.mark.parametrize("kind", [Category(None, other=-1), Number(0, 1e16)])
@pytest.mark.parametrize("other", ["", "abc", "inf", "2.5"])
def test_a_number_is_read_as_it_is_alone(other, kind, style):
    """Large integers are not kept exactly in a column of integers only."""
    schema, large = Schema({"id": kind}), "9007199254740993"
    alone = parse_cells(pd.DataFrame({"id": [large]}), schema, style)["id"].tolist()[0]
    beside = parse_cells(pd.DataFrame({"id": [large, other]}), schema, style)["id"].tolist()[0]
    assert type(alone) is type(beside) is float
    assert alone == beside


def test_declared_columns_are_read_in_the_style_of_the_file():
    frame = pd.DataFrame({"n": ["1.234,5 €", "1.5", "", "7"], "d": ["31.01.2020", "x", "", ""]})
    schema = Schema({"n": Number(0, 9999), "d": Date("2020-01-01", "2020-12-31")})
    style = TextStyle(decimal=",", thousands=".", date_format="%d.%m.%Y")
    read = parse_cells(frame, schema, style)
    # A cell that is no number stays a text, which counts as bad.
    assert read["n"].tolist()[:2] == [1234.5, "1.5"]
    assert pd.isna(read["n"][2])
    assert read["n"][3] == 7
    assert read["d"][0] == pd.Timestamp("2020-01-31")
    assert read["d"][1] == "x"
    plain = parse_cells(pd.DataFrame({"n": ["$12.50", "3", "1,5"]}), Schema({"n": Number(0, 99)}))
    assert plain["n"].tolist() == [12.5, 3.0, "1,5"]


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_a_date_is_read_on_its_own(zone):
    """Nanoseconds once narrowed the years that others could be of."""
    schema = Schema({"day": Date("1900-01-01", "2600-01-01", unit="second", zone=zone)})
    far = "2500-01-01T00:00:00" + "Z" * (zone is not None)
    fine = "2020-01-01T00:00:00.123456789"
    alone = parse_cells(pd.DataFrame({"day": [far]}), schema)["day"][0]
    for other in (fine, f"{fine}Z", f"{fine}+05:30", "2020-01-01T00:00:00+00:00", "x", ""):
        beside = parse_cells(pd.DataFrame({"day": [far, other]}), schema)["day"][0]
        # One that is not read stays a text.
        assert not isinstance(alone, str)
        assert not isinstance(beside, str)
        assert pd.Timestamp(beside) == pd.Timestamp(alone)


def test_equal_cells_of_different_types_are_parsed_on_their_own():
    cells = [True, 1, 1.0, 0.0, -0.0, "1", None, 1]
    assert map_cells(repr, pd.Series(cells, dtype=object)).tolist() == list(map(repr, cells))
    calls = []
    assert map_cells(calls.append, pd.Series(["a", "b", "a"])).tolist() == [None] * 3
    assert calls == ["a", "b", None]


@pytest.mark.parametrize(
    ("text", "number"),
    [("($5)", "-5"), ("$-5", "-5"), ("+$5", "+5"), ("+$-5", None), ("($-5)", None), ("(-5)", None)],
)
def test_a_number_has_one_sign(text, number):
    assert PLAIN.plain_number(text) == number
