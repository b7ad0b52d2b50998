"""Audits of persons with histories: with M equal rows, M different ones, more, and none."""

from unittest import mock

import pytest
import torch

from skdpgen import Category, Date, Number, Schema, audit
from skdpgen.generators import DPHistorySampler
from skdpgen.histories.mechanism import HistorySizes

SCHEMAS = {
    "patients": Schema({"sex": Category(["f", "m"]), "age": Number(0, 99, n_knots=3)}),
    "visits": Schema(
        {
            "day": Date("2020-01-01", "2021-12-31", n_knots=3),
            "ward": Category(["A", "B", "C"]),
            "cost": Number(0, 9, n_knots=3),
        }
    ),
}
TABLES = ["row tables", "person tables", "person-row tables", "time tables", "step tables"]


def audit_histories(**params):
    sampler = DPHistorySampler(2.0, schemas=SCHEMAS, max_rows_per_person=4, **params)
    return audit(sampler, 40, n_runs=300, random_state=0)


@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_sound_releases_are_shown_to_be_nearly_what_is_claimed(relation):
    report = audit_histories(relation=relation)
    assert report.verdict == "no violation found"
    assert {audited.name for audited in report.releases} >= set(TABLES)
    assert 0.5 * report.claim < report.bound < report.claim


def count_rows_as_persons(self, codes, list_rows=HistorySizes.list_rows):
    rows, persons, shares = list_rows(self, codes)
    return rows, persons, torch.ones_like(shares)


def test_rows_that_weigh_as_persons_are_found():
    with mock.patch.object(HistorySizes, "list_rows", count_rows_as_persons):
        report = audit_histories()
    found = [a.name for a in report.releases if a.verdict == "violation found"]
    assert found == ["row tables", "person-row tables", "time tables"]


def test_records_are_made_of_declared_tables():
    with pytest.raises(ValueError, match="must declare both tables to make records of"):
        audit(DPHistorySampler(), 40)
