# SPDX-License-Identifier: BSD-3-Clause
"""Shares of the budget of inference."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

from skdpgen import Category, Date, DPSWFlowSampler, Number, Unknown
from skdpgen.tables import Schema
from skdpgen.tables.discovery.stages import CONSTANTS
from skdpgen.tables.discovery.type_inference import COUNTED, find_types
from skdpgen.tables.format import TableFormat

CATEGORIES = "category counts"


def shares_of(noise, n_columns=9):
    names = [f"c{i}" for i in range(n_columns)]
    dtypes = pd.DataFrame([["a"] * n_columns], columns=names, dtype=object).dtypes
    return TableFormat(Schema.from_dtypes(dtypes)).split_budget(noise)


def test_categories_of_few_rows_have_more_of_the_budget():
    many = shares_of(0.0)
    assert sum(many.values()) == pytest.approx(0.25)
    for noise in np.geomspace(1e-5, 1, 20):
        few = shares_of(noise)
        assert {**few, CATEGORIES: 0} == {**many, CATEGORIES: 0}
        # All records stand out so clearly, if the bounds of the share leave it.
        share = np.clip(9 * (CONSTANTS.wanted * noise) ** 2, many[CATEGORIES], CONSTANTS.most)
        assert_allclose(few[CATEGORIES], share)


@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_the_share_follows_from_public_numbers(relation):
    """From rows, columns, ε, δ and the relation, whatever the cells are."""
    plans = []
    for cell in ("a", "b"):
        table = pd.DataFrame({name: [cell] * 1500 for name in "xyz"}, dtype=object)
        sampler = DPSWFlowSampler(1.0, 1e-6, relation=relation, n_steps=1, schema="private")
        with pytest.warns(match="category|noise|rows"):
            fitted = sampler.fit(table)
        precisions = {
            name: event.noise_multiplier**-2
            for name, event in zip(fitted.privacy_.releases, fitted.privacy_.events, strict=True)
        }
        plans.append({n: value / sum(precisions.values()) for n, value in precisions.items()})
    assert plans[0] == plans[1]
    assert_allclose(
        plans[0][CATEGORIES], shares_of(sampler._find_multiplier(1500) / 1500, 3)[CATEGORIES]
    )


def test_categories_of_a_fifth_of_few_rows_are_found():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({f"c{i}": rng.choice(list("aabbc"), 1000) for i in range(10)})
    fitted = DPSWFlowSampler(1.0, 1e-6, random_state=0, n_steps=1).fit(table)
    found = [len(fitted.schema_[name].categories) for name in table]
    assert np.mean([n >= 3 for n in found]) >= 0.8


@pytest.mark.parametrize("kind", ["text", "whole", "date"])
def test_few_cells_are_seldom_taken_for_another_type(kind):
    """Five deviations of noise, beside twelve other types of cells without any."""
    unknown, rng = {f"c{i}": Unknown() for i in range(2000)}, np.random.default_rng(0)
    counts = rng.normal(0, 1, (2000, len(COUNTED)))
    counts[:, COUNTED.index(kind)] += 5
    found = find_types(unknown, counts, 1.0, 1000)[0].values()
    expected = {"text": Category, "whole": Number, "date": Date}[kind]
    wrong = np.mean([type(column) is not expected for column in found])
    assert wrong < {"text": 0.02, "whole": 0.08, "date": 0.06}[kind]


@pytest.mark.parametrize("declared", [(".", ","), (",", " ")])
def test_noise_changes_no_declared_separator(declared):
    counts = np.where(np.isin(COUNTED, ["whole", "grouped"]), [[1000.0]], 0)
    _, styles, _ = find_types({"pay": Unknown(*declared)}, counts, 1.0, 2000)
    assert (styles["pay"].decimal, styles["pay"].thousands) == declared
