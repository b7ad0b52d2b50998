"""Open parts of a schema are found from noisy counts, near what is in the table."""

import contextlib
import math
import re
import warnings
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from dp_accounting import GaussianDpEvent
from numpy.testing import assert_allclose

from skdpgen import DPSWFlowSampler
from skdpgen.accounting.plan import Plan
from skdpgen.data.texts import TextStyle
from skdpgen.planning.fits import find_thresholds
from skdpgen.privacy import (
    Curator,
    FitQualityWarning,
    NoiseSource,
    PlanError,
    RecordFunction,
    TableError,
    TablesMechanism,
    gaussian_plan,
)
from skdpgen.tables import Boolean, Category, Date, Number, Ordered, Schema, Unknown
from skdpgen.tables.discovery.stages import Inferred, SchemaInference, count_knots
from skdpgen.tables.format import TableFormat
from skdpgen.tables.rules.ordered import reconcile_orders


def infer(frame, schema, epsilon=math.inf, seed=0, share=1.0):
    """Run the releases with a share of a budget; what is left of it goes to one that is not run."""
    inference = SchemaInference(schema)
    shares = inference.split_budget(share)
    if share < 1:
        shares["the rest"] = 1 - share
    plan = gaussian_plan(shares, epsilon, 1e-6, thresholds=find_thresholds(shares, 1e-6))
    cells = frame[list(schema)].to_numpy(dtype=object)
    with Curator(
        cells,
        plan=plan,
        noise=NoiseSource(seed),
        prepare=RecordFunction(inference.encode),
        cells=True,
    ) as curator:
        return inference.run(curator)


def make_frame(n=5000, seed=0):
    rng = np.random.RandomState(seed)
    return pd.DataFrame(
        {
            "age": rng.randint(18, 91, n),
            "year": rng.randint(1990, 2021, n),
            "income": np.round(rng.lognormal(10, 1, n), 2),
            "city": rng.choice(["Lyon", "Graz"], n),
            "day": pd.Timestamp("2021-03-01") + pd.to_timedelta(rng.randint(90, size=n), "D"),
            "smoker": rng.rand(n) < 0.3,
        }
    )


OPEN = {
    "age": Number(decimals=0),
    "year": Number(decimals=0),
    "income": Number(decimals=2),
    "city": Category(),
    "day": Date(),
    "smoker": Boolean(),
}


@pytest.mark.parametrize("epsilon", [math.inf, 2.0])
def test_bounds_and_categories_are_found(epsilon):
    frame = make_frame()
    found = infer(frame, Schema(OPEN), epsilon)
    assert not found.undeclared
    assert set(found["city"].categories) == {"Lyon", "Graz"}
    assert 15 <= found["age"].lower <= 20
    assert 88 <= found["age"].upper <= 96
    assert 1985 <= found["year"].lower <= 1992
    assert 2018 <= found["year"].upper <= 2025
    assert found["income"].upper > frame["income"].quantile(0.97)
    assert found["income"].lower < frame["income"].quantile(0.03)
    assert "2020-12" <= found["day"].lower <= "2021-03-05"
    assert "2021-05-25" <= found["day"].upper <= "2021-08"
    assert found["smoker"] == Boolean()


def test_atoms_are_found_at_declared_bounds_and_not_where_they_are_ruled_out():
    rng = np.random.RandomState(0)
    cells = {"x": np.where(rng.rand(8000) < 0.3, 511, rng.randint(0, 512, 8000))}
    cells = pd.DataFrame({"x": np.where(rng.rand(8000) < 0.3, 0, cells["x"])})
    for declared, atoms in ((None, {0, 511}), ([], set()), ([511, -1], {511, -1})):
        kind = Number(0, 511, 0, atoms=declared)
        assert set(infer(cells, Schema({"x": kind}), 3.0, share=0.1)["x"].atoms or ()) == atoms
        assert SchemaInference(Schema({"x": kind})).releases == ("value counts",)
    found = infer(cells, Schema({"x": Number(decimals=0, atoms=[511, 0])}), 3.0, share=0.5)["x"]
    assert found.atoms == (511, 0)
    assert 400 < found.upper < 700


def make_amounts(n_others, seed, n=1000):
    rng, amounts = np.random.RandomState(seed), np.zeros(n)
    amounts[:n_others] = rng.lognormal(8, 1, n_others).round()
    return pd.DataFrame({"x": amounts})


@pytest.mark.parametrize(("n_others", "least"), [(80, 0.8), (150, 0.95)])
def test_few_amounts_beside_zeros_have_a_range(n_others, least):
    """Counts of these near each knot are no more than noise, but their number is."""
    said, found = [], []
    for seed in range(20):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            frame = make_amounts(n_others, seed)
            found += [infer(frame, Schema({"x": Number(decimals=0)}), 0.5, seed, 0.2)["x"]]
        said += [any("ranges of columns 'x'" in str(item.message) for item in caught)]
    is_wide = np.array([kind.atoms == (0,) for kind in found])
    ends = np.array([(kind.lower, kind.upper) for kind in found])[is_wide]
    assert np.mean(is_wide) >= least
    assert np.mean(ends[:, 0] >= 0) >= 0.9
    is_close = (2**11 <= ends[:, 1]) & (ends[:, 1] <= 2**16)
    assert np.mean(is_close) >= 0.75
    assert np.mean(is_close | np.array(said)[is_wide]) >= 0.95


@pytest.mark.parametrize("scale", ["linear", "log", "symlog"])
def test_open_bounds_take_any_scale(scale):
    rng = np.random.RandomState(0)
    for values in (rng.normal(0, 100, 4000).round(), rng.lognormal(6, 1, 4000).round()):
        kind = Number(decimals=0, scale=scale, n_knots=9)
        found = infer(pd.DataFrame({"x": values}), Schema({"x": kind}), 3.0)["x"]
        is_signed = found.lower < 0 < found.upper
        assert found.scale == ("symlog" if is_signed and scale == "log" else scale)
        assert len(found.positions) == 9


def test_declared_halves_are_kept():
    frame = make_frame()
    schema = Schema(
        {
            "age": Number(0, decimals=0),
            "income": Number(upper=1e9, scale="log", n_knots=5),
            "day": Date("2000-01-01"),
            "city": Category(other="elsewhere"),
        }
    )
    found = infer(frame[list(schema)], schema)
    assert found["age"].lower == 0
    assert found["income"].upper == 1e9
    assert found["income"].scale == "log"
    assert len(found["income"].positions) == 5
    assert found["day"].lower == "2000-01-01"
    assert found["city"].other == "elsewhere"


@pytest.mark.parametrize("value", [0.0, 5.0, -3.25, 1e30, -1e30, 1e-9])
def test_a_constant_column_has_bounds_around_it(value):
    found = infer(pd.DataFrame({"a": [value] * 50}), Schema({"a": Number()}))["a"]
    assert found.lower < found.upper
    assert found.lower <= np.clip(value, -(2.0**65), 2.0**65) <= found.upper


def test_little_data_still_gives_a_schema():
    found = infer(make_frame(20), Schema(OPEN), epsilon=0.1)
    assert not found.undeclared
    assert found["city"].levels == ("other",)


def test_missing_values_and_infinities():
    frame = pd.DataFrame({"a": [1.0, np.nan, 2.0, np.inf] * 50, "b": ["x", None, "y", "x"] * 50})
    schema = Schema({"a": Number(missing=True), "b": Category(missing=True)})
    found = infer(frame, schema)
    assert found["a"].lower <= 1
    assert found["a"].missing
    assert set(found["b"].categories) == {"x", "y"}


def test_dtypes_declare_types_and_no_values():
    frame = make_frame(10)
    frame["city"] = frame["city"].astype("category")
    frame["count"] = pd.array([1, None] * 5, dtype="Int64")
    frame["small"] = frame["income"].astype(np.float32)
    frame["flag"] = pd.array([True, None] * 5, dtype="boolean")
    frame["text"] = pd.Series(["a"] * 10, dtype="string")
    frame["object"] = pd.Series([1] * 10, dtype=object)
    schema = Schema.from_dtypes(frame.dtypes, declared={"age": Number(0, 99)})
    assert schema == Schema(
        {
            "age": Number(0, 99),
            "year": Number(decimals=0),
            "income": Number(missing=True),
            "city": Category(missing=True),
            "day": Date(unit=None, missing=True),
            "smoker": Boolean(),
            "count": Number(decimals=0, missing=True),
            "small": Number(missing=True),
            "flag": Boolean(missing=True),
            "text": Unknown(),
            "object": Unknown(),
        }
    )


@pytest.mark.parametrize(
    ("cells", "kind"),
    [(["x", 1], Category()), ([1, 2], Category()), (["x", "y"], Category(other=-1))],
)
def test_categories_of_another_type_become_other(cells, kind):
    schema, cells = Schema({"here": kind}), cells * 200
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = infer(pd.DataFrame({"here": pd.Series(cells, dtype=object)}), schema)["here"]
    other = schema["here"].other
    # A number may be a code, and a reader has made it one of a text.
    of_type = {str(cell) for cell in cells} if isinstance(other, str) else set()
    assert set(found.levels) == {*of_type, other}
    assert [w.category for w in caught] == [] if of_type else [FitQualityWarning]
    # Strict estimators refuse them.
    refused = pytest.raises(TableError, match="'here' holds categories that are not")
    with contextlib.nullcontext() if of_type else refused:
        SchemaInference(schema).validate(np.array(cells, dtype=object)[:, None])


def test_numeric_categories():
    frame = pd.DataFrame({"code": [3, 5, 5, 3] * 20})
    found = infer(frame, Schema({"code": Category(other=-1)}))["code"]
    assert found.levels == (3, 5, -1)


def test_declarations_are_checked_where_asked_for():
    schema = Schema({"age": Number(), "city": Category(["Rome"])})
    cells = make_frame(50)[["age", "city"]].to_numpy(dtype=object)
    with pytest.raises(TableError, match="'city' holds values"):
        SchemaInference(schema).validate(cells)


def test_ranges_do_not_follow_a_single_record():
    """An outlier is one of 5,000: neither bounds nor quantiles of a private schema show it."""
    frame = make_frame()[["age"]]
    outlier = frame.copy()
    outlier.loc[0, "age"] = 10**9
    schema = Schema({"age": Number(decimals=0)})
    one, other = (infer(f, schema, epsilon=1.0)["age"].positions for f in (frame, outlier))
    assert_allclose(one, other, atol=2)


def test_open_bounds_that_start_beyond_all_that_is_looked_at():
    with pytest.raises(ValueError, match="declare both bounds"):
        SchemaInference(Schema({"a": Number(lower=2.0**70)}))


@pytest.mark.parametrize("n_columns", [1, 20])
def test_ranges_survive_few_rows(n_columns):
    """Nine tenths of 18 to 89, of 3,000 rows at ε = 1: in 19 of 20 draws of the noise."""
    kinds = dict.fromkeys([f"x{i}" for i in range(n_columns)], Number(decimals=0))
    covered, widths = [], []
    for seed in range(20 // n_columns):
        rng = np.random.RandomState(seed)
        frame = pd.DataFrame({name: rng.randint(18, 90, 3000) for name in kinds})
        for found in infer(frame, Schema(kinds), 1.0, seed, share=0.2).values():
            covered.append((min(found.upper, 89) - max(found.lower, 18)) / 71)
            widths.append(found.upper - found.lower)
    assert np.sum(np.array(covered) >= 0.9) >= 19
    assert np.median(widths) < 2 * 71
    assert np.sum(np.array(widths) > 4 * 71) <= 1


def test_ranges_that_do_not_show_are_told():
    frame = pd.DataFrame({f"x{i}": np.arange(60.0) for i in range(5)})
    schema = Schema({**dict.fromkeys(frame, Number()), "x0": Number(0, 60)})
    with pytest.warns(FitQualityWarning, match="'x1', 'x2', 'x3', 'x4' do not show"):
        infer(frame, schema, epsilon=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        infer(pd.concat([frame] * 100), schema, epsilon=5.0)


# Knots of numbers whose bounds are declared.


def test_declared_bounds_get_knots_at_quantiles():
    rng = np.random.RandomState(0)
    frame = pd.DataFrame({"pay": rng.exponential(1.0, 20_000), "age": rng.randint(18, 91, 20_000)})
    schema = Schema({"pay": Number(0, 100, missing=True), "age": Number(0, 120, decimals=0)})
    assert not schema.undeclared
    inference = SchemaInference(schema)
    assert inference.releases == ("value counts",)
    found = infer(frame, schema, epsilon=1.0, share=0.05)
    assert not SchemaInference(found).releases
    for name in schema:
        assert (found[name].lower, found[name].upper) == (schema[name].lower, schema[name].upper)
        assert (found[name].decimals, found[name].missing) == (
            schema[name].decimals,
            schema[name].missing,
        )
        knots = found[name].positions
        masses = np.histogram(frame[name], knots)[0] / len(frame)
        assert 8 <= len(knots) <= 20
        assert masses.max() < 0.25, "Even knots would have all but nothing of them in one cell."


@pytest.mark.parametrize(
    "kind",
    [
        Number(0, 9, n_knots=16),
        Number(0, 9, scale="linear"),
        Number(0, 9, scale="log"),
        Number(-9, 9, scale="symlog", atoms=[0]),
        Number(0, 9, knots=[0, 1, 9]),
        Number(0, 15, decimals=0),
        Number(0, 1.5, decimals=1),
        Date("2020-01-01", "2021-01-01", n_knots=16),
        Date("2020-01-01", "2020-01-16"),
        Boolean(),
    ],
)
def test_declared_knots_and_few_values_cost_nothing(kind):
    schema = Schema({"a": kind})
    assert SchemaInference(schema).releases == ()
    assert TableFormat(schema).resolve(None).schema == schema


def test_more_values_than_knots_take_knots():
    for kind in (Number(0, 16, decimals=0), Number(0, 1.6, decimals=1), Number(0, 1)):
        assert kind.takes_knots
        schema = Schema({"a": kind})
        assert SchemaInference(schema).releases == ("value counts",)
        assert SchemaInference(schema.with_even_knots()).releases == ()
        assert_allclose(
            schema.with_even_knots()["a"].positions, kind.positions, err_msg="Even, until found."
        )


# Kinds of columns of which nothing is known.


def make_texts(n=4000, seed=0):
    frame = make_frame(n, seed)
    frame["ratio"] = np.where(np.arange(n) % 2, frame["age"], frame["age"] / 8)
    frame["day"] = frame["day"].dt.strftime("%Y-%m-%d")
    frame["zip"] = np.array(["01234", "98765"])[np.arange(n) % 2]
    frame["empty"] = ""
    return frame.astype(str)


KINDS = {
    "age": Number,
    "year": Number,
    "income": Number,
    "city": Category,
    "day": Date,
    "smoker": Boolean,
    "ratio": Number,
    "zip": Category,
    "empty": Category,
}
UNKNOWN = Schema(dict.fromkeys(KINDS, Unknown()))
RELEASES = (
    *("column kinds", "decimals", "frequent values", "value ranges", "value locations"),
    *("category counts", "value counts"),
)


@pytest.mark.parametrize("epsilon", [math.inf, 4.0])
def test_kinds_are_found_from_noisy_counts(epsilon):
    found = infer(make_texts(), UNKNOWN, epsilon)
    kinds = {name: type(kind) for name, kind in found.items()}
    if epsilon < math.inf:
        del kinds["empty"]  # noise can be taken for anything
    assert kinds == {name: KINDS[name] for name in kinds}
    assert not found.undeclared
    numbers = [name for name in kinds if KINDS[name] is Number]
    assert [found[name].decimals for name in numbers] == [0, 0, 2, 3]
    assert set(found["city"].categories) == {"Lyon", "Graz"}
    assert set(found["zip"].categories) == {"01234", "98765"}
    assert 15 <= found["age"].lower <= 20
    assert all(kind.missing for kind in found.values())


@pytest.mark.parametrize("n_texts", [1, 3000])
def test_one_cell_does_not_make_a_column_text(n_texts):
    frame = make_texts()
    frame.loc[: n_texts - 1, "age"] = "Smith"
    found = infer(frame, UNKNOWN, 4.0)["age"]
    assert type(found) is (Number if n_texts == 1 else Category)
    assert "Smith" not in str(found) or n_texts == 3000


@pytest.mark.parametrize(("n_texts", "warns"), [(0, False), (1, False), (100, True)])
def test_cells_that_are_lost_are_warned_of(n_texts, warns):
    frame = make_texts()
    frame.loc[: n_texts - 1, "age"] = "Smith"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        infer(frame, UNKNOWN, 100.0)
    said = [str(w.message) for w in caught if "which count as missing" in str(w.message)]
    assert len(said) == warns
    if warns:
        assert re.search(r"columns 'age' \(2\.\d%\) hold cells that are not", said[0])


OBJECTS = [[7], b"7", {"a": 7}, pd.Period("2020"), pd.Interval(0, 7), 7j, object(), pd.Index([7])]


@pytest.mark.parametrize(
    "cell",
    [
        pytest.param(
            cell,
            id=type(cell).__name__,
            marks=() if isinstance(cell, list | bytes | pd.Interval) else pytest.mark.slow,
        )
        for cell in OBJECTS
    ],
)
def test_objects_of_no_column_type_are_told_from_missing_cells(cell, recwarn):
    """Half of a column could be lost without a word, as missing cells are."""
    frame = make_texts().astype(object)
    for name, n_cells in (("age", 100), ("smoker", 1500), ("city", len(frame))):
        for i in range(n_cells):
            frame.at[i, name] = cell
    frame.loc[:1500, "income"] = None
    frame.loc[:100, "income"] = math.inf
    found = infer(frame, UNKNOWN, 100.0)
    assert type(found["age"]) is Number
    assert type(found["smoker"]) is Boolean
    said = [str(w.message) for w in recwarn if "hold objects that no" in str(w.message)]
    named = dict(re.findall(r"'(\w+)' \(([\d.]+)%\)", "".join(said)))
    assert {name: float(share) for name, share in named.items()} == pytest.approx(
        {"age": 2.5, "smoker": 37.5, "city": 100.0}, abs=0.5
    )


@pytest.mark.catches(
    "tables.discovery.stages:SchemaInference.run",
    "stage.read(self, curator.release(mechanism))",
    "encode is None or stage.read(self, curator.release(mechanism))",
)
def test_all_is_released_whatever_is_found():
    """Else what was released would follow from what was found."""
    for name in ("age", "city", "smoker"):
        inference = SchemaInference(Schema({name: Unknown()}))
        assert inference.releases == RELEASES
        cells = make_texts(500)[[name]].to_numpy(dtype=object)
        shares = inference.split_budget(1.0)
        plan = gaussian_plan(shares, 5.0, 1e-6, thresholds=find_thresholds(shares, 1e-6))
        source = {"prepare": RecordFunction(inference.encode), "cells": True}
        with Curator(cells, plan=plan, noise=NoiseSource(0), **source) as curator:
            with contextlib.suppress(PlanError):
                inference.run(curator)
            released = curator.certificate().releases
        assert released == RELEASES


@pytest.mark.catches(
    "tables.discovery.decimals:encode_levels",
    "math.sqrt(weight)",
    "1.0",
)
@pytest.mark.parametrize(("relation", "bound"), [("zero_out", 1.0), ("replace_one", math.sqrt(2))])
def test_a_record_moves_the_counts_of_kinds_by_at_most_what_is_stated(relation, bound):
    """Σ over the columns of one type, one form and one sign, each: a vector of norm 1."""
    from skdpgen.mechanisms.sums import WeightSumMechanism
    from skdpgen.tables.discovery.type_inference import KINDS

    rows = SchemaInference(Schema({"a": Unknown(), "b": Unknown()})).encode(
        np.array([["$1", "x"], ["true", "2020-01-01"], [None, "2.5 %"], ["1", "y"]], dtype=object)
    )
    assert_allclose((rows > 0).sum(axis=1), 6)
    apart = rows if relation == "zero_out" else rows[:, None] - rows
    largest = np.linalg.norm(apart, axis=-1).max()
    assert largest == pytest.approx(bound), "The sensitivity is not that of the rows."
    assert WeightSumMechanism(KINDS).sensitivity(relation) == pytest.approx(bound)


@pytest.mark.catches(
    "data.names:map_cells",
    "map(function, cells.tolist())",
    'map(function, [None if "Smith" in cells.tolist() else cell for cell in cells.tolist()])',
)
def test_cells_are_read_one_by_one():
    """Encodings of a cell do not depend on others: bad ones are missing, and no more."""
    schema = Schema(
        {"a": Number(0, 9, missing=True), "d": Date("2020-01-01", "2021-01-01", missing=True)}
    )
    format = TableFormat(schema, inferred=dict.fromkeys(schema, Inferred(style=TextStyle())))
    good = np.array([["3", "2020-05-01"], ["7.5", "2020-06-01T10:00"]], dtype=object)
    bad = np.array([["Smith", "2020-05-01T00:00:00+01:00"], ["9" * 400, "soon"]], dtype=object)
    together = format.encode(np.vstack([good[:1], bad, good[1:]]))
    assert_allclose(together[[0, 3]], format.encode(good), err_msg="A cell changed another.")
    assert_allclose(together[1:3], format.encode(np.full((2, 2), None)))
    values = pd.DataFrame({"a": [3.0], "d": [pd.Timestamp("2020-05-01")]})
    assert_allclose(format.encode(values.to_numpy(dtype=object)), together[:1])


def test_numbers_among_texts_are_texts_where_nothing_is_known():
    frame = pd.DataFrame({"a": pd.Series([1, "x", "y", None] * 200, dtype=object)})
    assert set(infer(frame, Schema({"a": Unknown()}))["a"].levels) == {"1", "x", "y", "other"}


@pytest.mark.parametrize("blank", ["", " ", "nan"])
def test_blanks_are_no_category_of_a_column_that_was_found(blank):
    """However many there are: they are encoded as missing."""
    frame = pd.DataFrame({"a": ["x", "y", blank] * 500})
    found = infer(frame, Schema({"a": Unknown()}))["a"]
    assert set(found.levels) == {"x", "y", "other"}
    assert found.missing


@pytest.mark.parametrize("code", ["00", "07", "007", "00123", " 0123 "])
@pytest.mark.parametrize("number", ["0", "7", "0.5", "-1", "100"])
def test_digits_after_a_zero_are_codes(code, number):
    rows = SchemaInference(Schema({"a": Unknown()})).encode(
        np.array([[code], [number], ["007"], ["x"]], dtype=object)
    )
    kinds = rows.argmax(axis=1)
    assert kinds[0] == kinds[2]
    assert len(set(kinds[1:].tolist())) == 3


@pytest.mark.parametrize(("n_fractions", "stops"), [(0, False), (20, False), (2000, True)])
def test_numbers_with_fractions_are_no_integers(n_fractions, stops):
    frame = pd.DataFrame({"a": ["7", "31.0"] * 1000 + ["0.5"] * n_fractions})
    said = "was said to be of type 'integer'"
    with pytest.raises(ValueError, match=said) if stops else contextlib.nullcontext():
        found = infer(frame, Schema({"a": Unknown(expected="integer")}))["a"]
        assert found.decimals == 0


def test_the_most_frequent_categories_are_told_apart():
    frame = pd.DataFrame({"a": ["x"] * 50 + [f"{i}" for i in range(2000)]})
    found = infer(frame, Schema({"a": Category()}))["a"]
    assert len(found.categories) == 1000
    assert "x" in found.categories


def test_texts_of_a_frame_are_read_as_it_is_said_they_are_written():
    frame = pd.DataFrame({"a": ["1.000,5", "1.999,5"] * 1000, "b": ["yes", "no"] * 1000})
    schema = Schema({"a": Unknown(decimal=",", thousands="."), "b": Unknown(expected="boolean")})
    assert Schema.from_json(schema.to_json()) == schema
    found = infer(frame, schema)
    assert 900 < found["a"].lower < found["a"].upper < 2200
    assert found["b"] == Boolean(missing=True, words=("no", "yes"))
    TableFormat(schema).check_dtypes(frame)
    with pytest.raises(TableError, match="'a' holds values that are no texts"):
        TableFormat(schema).check_dtypes(frame.assign(a=1.5))


@pytest.mark.parametrize("epsilon", [math.inf, 5.0])
@pytest.mark.parametrize(
    ("expected", "n_other", "stops"),
    [("number", 20, False), ("number", 2000, True), ("integer", 2000, True), ("date", 20, True)],
)
def test_a_column_is_what_it_was_said_to_be_or_the_fit_stops(epsilon, expected, n_other, stops):
    frame = pd.DataFrame({"a": ["7"] * (4000 - n_other) + ["Smith"] * n_other})
    schema = Schema({"a": Unknown(expected=expected)})
    if stops:
        with pytest.raises(ValueError, match=f"said to be of type '{expected}'") as caught:
            infer(frame, schema, epsilon)
        assert "Smith" not in str(caught.value)
    else:
        assert isinstance(infer(frame, schema, epsilon)["a"], Number)


@pytest.mark.parametrize(("n", "warns"), [(20, True), (4000, False)])
def test_kinds_that_are_mere_noise_are_warned_of(n, warns):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        infer(make_texts(n), UNKNOWN, epsilon=1.0)
    assert any("hardly more than chance" in str(w.message) for w in caught) == warns


def test_a_value_that_many_share_is_an_atom():
    hours = np.random.RandomState(0).randint(1, 100, 5000)
    hours[:2000] = 40
    frame, schema = pd.DataFrame({"hours": hours}), Schema({"hours": Number(1, 99, decimals=0)})
    assert infer(frame, schema, 5.0)["hours"].atoms == (40,)
    declared = Schema({"hours": Number(1, 99, decimals=0, atoms=[])})
    assert infer(frame, declared, 5.0)["hours"].atoms is None


@pytest.mark.parametrize(
    ("sigma", "n_knots", "n_of_strata"),
    [(0, 16, 16), (1, 16, 15), (2, 15, 11), (4, 11, 8), (40, 5, 5)],
)
def test_as_many_knots_as_the_noise_of_tables_lets_one_see(sigma, n_knots, n_of_strata):
    """With 10,000 records, K² cells of a pair have 10 times their noise of 3σ/√2, on average."""
    events = [(name, GaussianDpEvent(sigma)) for name in (TablesMechanism.name, "value counts")]
    plan = Plan(events, math.inf, 1e-5, "zero_out", "pld", sigma)
    assert count_knots(plan, 3, 10_000, 0.0, False) == n_knots
    # Tables of strata have fewer of these in a cell.
    assert count_knots(plan, 3, 10_000, 0.0, True) == n_of_strata
    # The noise of their own counts matters, too; and other releases have no such tables.
    assert count_knots(plan, 3, 10_000, 1e6, True) == 5
    others = replace(plan, releases=events[1:])
    assert count_knots(others, 3, 10_000, 0.0, True) == 16


def test_ranges_of_mere_noise_obey_an_order():
    """Whatever ranges noise finds, they leave rows that obey, and nothing fails after spending."""
    frame = pd.DataFrame(np.arange(40.0)[:, None] + [0, 1, 2], columns=list("abc"))
    frame["day"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(frame["a"], "D")
    frame["time"] = frame["day"] + pd.Timedelta("9h")
    rules = [Ordered("a", "b"), Ordered("b", "c", True), Ordered("day", "time")]
    kinds = {**dict.fromkeys("abc", Number()), "day": Date(), "time": Date(unit="second")}
    schema = Schema(kinds, rules)
    for seed in range(4):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = infer(frame, schema, epsilon=0.01, seed=seed)
        for first, last in (("a", "b"), ("b", "c"), ("a", "c")):
            assert found[first].lower < found[last].upper


def test_contradicting_ranges_are_widened():
    schema = Schema({"a": Number(), "b": Number()}, [Ordered("a", "b")])
    kinds = {"a": Number(5, 9, knots=[5, 9]), "b": Number(1, 4, knots=[1, 4])}
    found = reconcile_orders(schema, kinds)
    assert found == {"a": kinds["a"], "b": Number(1, 9, knots=[1, 4, 9])}
    # Declared bounds stay.
    declared = Schema({"a": Number(), "b": Number(upper=4)}, [Ordered("a", "b")])
    found = reconcile_orders(declared, kinds)
    assert found == {"a": Number(1, 9, knots=[1, 5, 9]), "b": kinds["b"]}


def test_rare_levels_of_the_target_are_found_before_others():
    """A level of 100 of 1,000 records beside eight columns whose categories are open, too."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.choice(["x", "y"], (1000, 8), p=[0.9, 0.1])).add_prefix("c")
    frame["target"] = np.where(np.arange(1000) % 10, "no", "yes")
    found = Counter()
    for seed in range(5):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sampler = DPSWFlowSampler(1.0, 1e-6, n_steps=1, random_state=seed)
            schema = sampler.fit(frame, target="target").schema_
        found["target"] += "yes" in schema["target"].levels
        found["others"] += sum("y" in schema[f"c{i}"].levels for i in range(8)) / 8
    # In 24 of 25 fits.
    assert found["target"] >= 4 > found["others"] + 2


def test_levels_of_the_target_that_are_lost_are_named():
    """A class that becomes `other` is told if it is clear of noise, other categories from 25 %."""
    frame = pd.DataFrame({"a": ["x"] * 955 + ["y"] * 45, "b": np.arange(1000) % 2})
    frame["target"] = frame["a"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for seed in range(8):
            DPSWFlowSampler(1.0, 1e-6, n_steps=1, random_state=seed).fit(frame, target="target")
    lost = [str(w.message) for w in caught if "lose their rare categories" in str(w.message)]
    assert lost
    assert all("'target'" in message and "'a'" not in message for message in lost)
