# SPDX-License-Identifier: BSD-3-Clause
"""Rows without data obey the schema, and are even where no rule bends them; rows put within it."""

import decimal

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd
import pytest

from skdpgen import Boolean, Category, Date, Identifier, Number, Ordinal, Schema, Unknown
from skdpgen.tables import Implies, Ordered, sample_from_schema

pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
SCHEMA = Schema(
    {
        "patient": Identifier(),
        "age": Number(0, 100, decimals=0),
        "sex": Category(["f", "m"]),
        "admitted": Date("2020-01-01", "2020-12-31"),
        "discharged": Date("2020-01-01", "2020-12-31"),
        "pregnant": Category(["no", "yes"]),
    },
    rules=[Ordered("admitted", "discharged"), Implies({"sex": "m"}, {"pregnant": ["no"]})],
)


def test_rows_obey_bounds_categories_and_rules():
    rows = sample_from_schema(SCHEMA, 2_000, random_state=0)
    assert rows.columns.tolist() == list(SCHEMA)
    assert rows.patient.is_unique
    assert rows.age.between(0, 100).all()
    assert (rows.admitted <= rows.discharged).all()
    assert set(rows.pregnant[rows.sex == "m"]) == {"no"}


def test_levels_and_numbers_are_even():
    rows = sample_from_schema(Schema({"x": Number(-1, 3), "c": Category([*"abcd"])}), 20_000)
    # Six standard deviations of a share and of a mean.
    assert rows.c.value_counts(normalize=True).sub(0.25).abs().max() < 0.02
    assert rows.x.mean() == pytest.approx(1, abs=0.05)


def test_conditions_and_seeds_hold():
    rows = sample_from_schema(SCHEMA, 50, where={"age": (18, 30)}, random_state=3)
    assert rows.age.between(18, 30).all()
    assert rows.equals(sample_from_schema(SCHEMA, 50, where={"age": (18, 30)}, random_state=3))


def test_undeclared_columns_are_refused_by_name():
    with pytest.raises(ValueError, match="'town'"):
        sample_from_schema(SCHEMA.replace({"town": Unknown()}), 5)


WIDE = Schema(
    {
        "age": Number(0, 90, decimals=0),
        "dose": Number(0.5, 1.5, decimals=1, atoms=[-1.0, 9.0]),
        "job": Category(["nurse"], other="other", missing=True),
        "town": Category(["a", "b"]),
        "day": Date("2020-01-01", "2021-01-01", missing=True),
        "ill": Boolean(),
        "grade": Ordinal([1, 2]),
    }
)
DAYS = ["2019-05-01", "2020-06-01", "2022-01-01", None]
FAR = pd.DataFrame(
    {
        "age": [-3, 5, 100, 90],
        "dose": [0.1, 9.0, np.nan, 2.0],
        "job": ["pilot", None, "nurse", "cook"],
        "town": ["a", "b", "c", "a"],
        "day": pd.to_datetime(DAYS),
        "ill": [True, False, True, True],
        "grade": [1, 2, 3, 1],
        "new": [1, 2, 3, 4],
    }
)
NEAR = FAR.assign(
    age=[0, 5, 90, 90],
    dose=[0.5, 9.0, np.nan, 1.5],
    job=["other", None, "nurse", "other"],
    day=pd.to_datetime(["2020-01-01", "2020-06-01", "2021-01-01", None]),
)


@pytest.mark.parametrize(
    "convert",
    [
        lambda table: table,
        lambda table: table.convert_dtypes(),
        lambda table: table.convert_dtypes(dtype_backend="pyarrow"),
        lambda table: table.astype({"age": "int8", "dose": "float32", "job": "category"}),
        lambda table: table.astype(object).set_axis([3, 3, 1, 0]),
        lambda table: table[["job", "new", "age"]],
    ],
)
def test_far_cells_are_put_within_the_schema(convert):
    given = convert(FAR)
    made, expected = WIDE.conform(given), NEAR[given.columns].set_axis(given.index)
    # Whatever the dtypes and signs of missing cells are.
    plain = [frame.astype(object).where(frame.notna(), None) for frame in (made, expected)]
    pd.testing.assert_frame_equal(*plain, check_dtype=False)
    again = WIDE.conform(made)
    pd.testing.assert_frame_equal(again, made)
    kept = [name for name in given if name not in ("job", "dose", "age", "day")]
    pd.testing.assert_frame_equal(made[kept], given[kept])


def test_rows_within_the_schema_stay_as_they_are():
    rows = sample_from_schema(SCHEMA, 200, random_state=0)
    pd.testing.assert_frame_equal(SCHEMA.conform(rows), rows)
    zoned = Schema({"day": Date("2020-01-01", "2021-01-01", zone="Europe/Vienna")})
    days = pd.DataFrame({"day": pd.to_datetime(DAYS[:3]).tz_localize("Europe/Vienna")})
    made = zoned.conform(days)["day"]
    assert made.dt.tz_localize(None).tolist() == NEAR["day"][:3].tolist()


@pytest.mark.parametrize("dtype", ["int64", "Int8", "int8[pyarrow]", object])
def test_bounds_may_be_no_values_of_a_dtype(dtype):
    made = Schema({"x": Number(0.5, 2)}).conform(pd.DataFrame({"x": [0, 1, 9]}, dtype=dtype))
    assert made["x"].tolist() == [0.5, 1, 2]


@pytest.mark.parametrize("dtype", ["float32", "Float32"])
def test_bounds_and_point_masses_of_32_bits_stay(dtype):
    table = pd.DataFrame({"x": [0.1, 0.7, -99.9]}, dtype=dtype)
    made = Schema({"x": Number(0.1, 0.7, atoms=[-99.9])}).conform(table)
    pd.testing.assert_frame_equal(made, table)
    made = Schema({"x": Number(0.1, 0.7)}).conform(table)
    pd.testing.assert_frame_equal(made, pd.DataFrame({"x": [0.1, 0.7, 0.1]}, dtype=dtype))


def test_rows_are_put_within_no_open_schema():
    with pytest.raises(ValueError, match="does not declare the bounds"):
        Schema({"age": Number()}).conform(FAR)


@pytest.mark.parametrize("convert", [pl.from_pandas, pa.Table.from_pandas])
def test_rows_stay_in_their_library(convert):
    table = FAR[["age", "dose", "job", "day", "new"]]
    given = convert(table)
    made = WIDE.conform(given)
    assert type(made) is type(given)
    pd.testing.assert_frame_equal(
        made.to_pandas().astype(object),
        convert(NEAR[[*table]]).to_pandas().astype(object),
    )
    assert nw.from_native(made).schema == nw.from_native(given).schema
    rules = Schema({"age": Number(0, 90), "new": Number(0, 90)}, rules=[Ordered("new", "age")])
    assert rules.share_obeying(given).tolist() == [0.75]


class Hostile:
    """An object all of whose code fails."""

    def _fail(self, *args):
        raise ValueError("Smith")

    __eq__ = __hash__ = __str__ = __repr__ = __float__ = _fail
    __class__ = property(_fail)


@pytest.mark.parametrize("make", [lambda: ["list"], lambda: decimal.Decimal("sNaN"), Hostile])
def test_a_cell_that_cannot_be_read_changes_no_other(make):
    cell = make()
    columns = {"age": [30, cell, 99, None], "job": ["a", cell, "pilot", None]}
    table = pd.DataFrame({n: pd.Series(np.fromiter(c, object)) for n, c in columns.items()})
    schema = Schema({"age": Number(0, 90, missing=True), "job": Category(["a"], other="other")})
    made = schema.conform(table)
    assert made["age"].iloc[[0, 2]].tolist() == [30, 90]
    assert pd.isna(made["age"].iloc[3])
    assert made["job"].tolist() == ["a", "other", "other", None]
