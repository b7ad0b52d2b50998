"""Histories as one table, for reports."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from skdpgen import DPHistorySampler
from skdpgen.evaluation import join_histories, report

PERSONS = pd.DataFrame({"id": [1, 2, 2, 3], "sex": ["f", "m", "f", "f"]})
ROWS = pd.DataFrame({"id": [2, 1, 9, 1], "ward": list("ABXC"), "day": [1, 5, 2, 3]})


def test_rows_have_the_columns_of_their_person_and_of_the_row_before():
    joined = join_histories({"a": PERSONS, "b": ROWS}, persons="id", order="day")
    assert joined["b.ward"].tolist() == list("CBA")
    assert joined["a.sex"].tolist() == list("ffm")
    assert joined["number"].tolist() == [1, 2, 1]
    assert joined["previous b.ward"].fillna("").tolist() == ["", "C", ""]
    in_order = join_histories({"a": PERSONS, "b": ROWS}, persons="id")
    assert in_order["b.ward"].tolist() == list("BCA")
    both = {"a": pl.from_pandas(PERSONS), "b": pl.from_pandas(ROWS)}
    assert join_histories(both, persons="id")["b.ward"].tolist() == list("BCA")


@pytest.mark.parametrize(
    ("tables", "order", "message"),
    [
        ([PERSONS, ROWS], None, "dict of two tables"),
        ({"a": PERSONS, "b": ROWS}, "date", "no column 'date'"),
        ({"a": PERSONS.rename(columns={"id": "x"}), "b": ROWS}, None, "no column 'id'"),
    ],
)
def test_tables_that_do_not_belong_together_are_refused(tables, order, message):
    with pytest.raises(ValueError, match=message):
        join_histories(tables, persons="id", order=order)


def test_reports_show_how_rows_follow_each_other():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"id": np.repeat(np.arange(60), 3), "ward": rng.choice(["A", "B"], 180)})
    persons = pd.DataFrame({"id": range(60), "sex": rng.choice(["f", "m"], 60)})
    joined = join_histories({"patients": persons, "visits": rows}, persons="id")
    page = report(joined, joined).to_html()
    assert "previous visits.ward" in page
    assert "patients.sex" in page


def test_identifiers_are_numbers_in_one_table_and_texts_in_the_other():
    as_texts = ROWS.assign(id=ROWS["id"].map("{:03d}".format))
    joined = [join_histories({"a": PERSONS, "b": b}, persons="id") for b in (ROWS, as_texts)]
    pd.testing.assert_frame_equal(*joined)
    with pytest.raises(ValueError, match="No row belongs to a person: the 'id' of both tables"):
        join_histories({"a": PERSONS, "b": ROWS.assign(id="x")}, persons="id")
    assert not len(join_histories({"a": PERSONS, "b": ROWS[:0]}, persons="id"))


@pytest.mark.filterwarnings("ignore")
def test_reports_show_no_histories_but_noise(monkeypatch):
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(range(0, 600, 3), "D")
    rows = pd.DataFrame({"id": range(200), "day": days, "cost": [None] * 190 + [1.5] * 10})
    tables = {"patients": rows[["id"]].assign(sex="f"), "visits": rows}
    sampler = DPHistorySampler(0.1, 1e-6, max_rows_per_person=2, n_steps=1, random_state=0)
    sampler.fit(tables, persons="id", order="day")
    found = report(tables, release=sampler.release_)
    assert "Histories" in found.to_html()
    shown = {curve["column"] for curve in found.results["released"]["histories"]}
    assert shown == {"rows of a person", "rows by month", "rows by weekday", "rows by hour"}
    # All cells are taken for clear: counts, and their sums, may be negative.
    monkeypatch.setattr("skdpgen.evaluation._released_histories.WITHIN_NOISE", -np.inf)
    for seed in range(3):
        fitted = sampler.set_params(random_state=seed).fit(tables, persons="id", order="day")
        found = report(tables, release=fitted.release_)
        verdicts = {curve["verdict"] for curve in found.results["released"]["histories"][1:]}
        assert "good" not in verdicts


def test_released_tables_are_those_of_the_private_ones_without_noise():
    rng = np.random.default_rng(0)
    sizes = rng.integers(0, 6, 300)
    day = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 600, sizes.sum()), "D")
    rows = pd.DataFrame({"id": np.repeat(np.arange(300), sizes), "day": day})
    rows["ward"] = np.where(day.month < 7, "A", rng.choice(["A", "B"], len(rows)))
    rows["cost"] = rng.integers(0, 90, len(rows)) + 5 * day.month
    persons = pd.DataFrame({"id": range(300), "sex": rng.choice(["f", "m"], 300)})
    tables = {"patients": persons, "visits": rows}
    sampler = DPHistorySampler(np.inf, 1e-6, max_rows_per_person=4, n_steps=1)
    sampler.fit(tables, persons="id", order="day")
    found = report(tables, release=sampler.release_)
    released = found.results["released"]
    for table in released["columns"] + released["pairs"] + released["histories"]:
        np.testing.assert_allclose(table["released"], table["synthetic"], atol=1e-3)
    curves = {curve["column"]: curve["synthetic"] for curve in released["histories"]}
    assert len(curves) == 1 + 3 + 3
    numbers = np.bincount(sizes.clip(0, 5), minlength=6) / 300
    np.testing.assert_allclose(curves["rows of a person"], numbers)
    assert curves["visits.ward = A by month"][0] == 1
    assert "visits.ward × next visits.ward" in found.to_html()
