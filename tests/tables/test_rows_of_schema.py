# SPDX-License-Identifier: BSD-3-Clause
"""Rows without data obey the schema, and are even where no rule bends them."""

import pytest

from skdpgen import Category, Date, Identifier, Number, Schema, Unknown
from skdpgen.tables import Implies, Ordered, sample_from_schema

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
