"""Two tables in files: what is written, what is spent, and what is refused for nothing."""

import json
import os
import re

import numpy as np
import pandas as pd
import pytest

from skdpgen import Category, Date, Number, Schema
from skdpgen.__main__ import main
from skdpgen.learners.training import Adam
from skdpgen.privacy import Certificate, PrivacyBudget, verify

pytestmark = pytest.mark.filterwarnings("ignore")

GIVEN = ["--table", "patients=patients.csv", "--table", "visits=visits.csv", "--key", "id"]
RUN = ["histories", *GIVEN, "--epsilon", "6.5", "-o", "out"]


@pytest.fixture
def folder(few_steps, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    patients = pd.DataFrame(
        {"id": [f"p{i}" for i in range(400)], "sex": rng.choice(["f", "m"], 400)}
    )
    visits = pd.DataFrame(
        {
            "id": rng.choice(patients["id"], 1200),
            "day": (np.datetime64("2020-01-01") + rng.integers(0, 300, 1200)).astype(str),
            "cost": rng.integers(0, 90, 1200),
        }
    )
    patients.to_csv("patients.csv", index=False)
    visits.to_csv("visits.csv", index=False, sep=";")
    schemas = {
        "patients": Schema({"sex": Category(["f", "m"])}),
        "visits": Schema(
            {"day": Date("2020-01-01", "2020-12-31"), "cost": Number(0, 99, decimals=0)}
        ),
    }
    for name, schema in schemas.items():
        schema.to_json(f"{name}.json")
    rule = {"type": "ordered", "lower": "patients.born", "upper": "visits.day"}
    (tmp_path / "rules.json").write_text(json.dumps({"rules": [rule]}))
    return tmp_path


DECLARED = ["--schema", "patients=patients.json", "--schema", "visits=visits.json"]


def test_both_tables_are_written_in_their_form(folder, capsys):
    options = [*RUN, *DECLARED, "--order", "day", "--n-persons", "50", "--json"]
    assert main([*options, "--preview"]) == 0
    assert json.loads(capsys.readouterr().out)["planned"]["epsilon"] <= 6.5
    assert not (folder / "out").exists()
    assert main(options) == 0
    written = json.loads(capsys.readouterr().out)
    assert written["spent"]["epsilon"] <= 6.5
    assert written["read"]["persons"] == 400
    out = folder / "out"
    assert sorted(path.name for path in out.iterdir()) == [
        "certificate.json",
        "datapackage.json",
        "patients.csv",
        "release.skdpgen",
        "report.html",
        "schemas.json",
        "visits.csv",
    ]
    assert written["files"]["release"] == "out/release.skdpgen"
    patients, visits = pd.read_csv(out / "patients.csv"), pd.read_csv(out / "visits.csv", sep=";")
    assert (list(patients), list(visits)) == (["id", "sex"], ["id", "day", "cost"])
    assert len(patients) == 50
    assert set(visits["id"]) <= set(patients["id"])
    assert visits["day"].str.fullmatch("2020-[0-9]{2}-[0-9]{2}").all()
    assert visits.groupby("id")["day"].is_monotonic_increasing.all()
    text = (out / "certificate.json").read_text()
    assert verify(text) == pytest.approx(written["spent"]["epsilon"])
    assert json.loads(text)["unit"] == "person"
    schemas = json.loads((out / "schemas.json").read_text())
    assert Schema(schemas["patients"]) == Schema({"sex": Category(["f", "m"])})
    package = json.loads((out / "datapackage.json").read_text())
    files = {resource["name"]: resource["path"] for resource in package["resources"]}
    assert files == {"patients": "patients.csv", "visits": "visits.csv"}
    assert package["resources"][1]["dialect"] == {"delimiter": ";"}
    of_patients, of_visits = (resource["schema"] for resource in package["resources"])
    assert of_patients["primaryKey"] == ["id"]
    reference = {"resource": "patients", "fields": ["id"]}
    assert of_visits["foreignKeys"] == [{"fields": ["id"], "reference": reference}]
    for name, schema in schemas.items():
        again = Schema.from_metadata(out / "datapackage.json", table=name).drop("id")
        assert list(again) == list(Schema(schema))
    # The folder holds a certificate, and a second one would count as well.
    assert main([*RUN, *DECLARED]) == 1


def test_histories_go_on_from_the_release_of_a_run_that_failed(folder, monkeypatch, capsys):
    def fail(*args):
        raise MemoryError

    options = [*DECLARED, "--order", "day", "--quiet"]
    with monkeypatch.context() as patched:
        patched.setattr(Adam, "step", fail)
        assert main([*RUN, *options]) == 1
    assert "the same command with --release out/release.skdpgen" in capsys.readouterr().err
    assert sorted(os.listdir("out")) == ["certificate.json", "release.skdpgen"]
    again = [*RUN[:-1], "again", *options, "--release", "out/release.skdpgen"]
    assert main([*again, "--n-persons", "50"]) == 0
    visits = pd.read_csv("again/visits.csv", sep=";")
    assert visits.groupby("id")["day"].is_monotonic_increasing.all()
    assert len(pd.read_csv("again/patients.csv")) == 50
    made, first = (
        Certificate.from_json((folder / name / "certificate.json").read_text())
        for name in ("again", "out")
    )
    assert made.digest == first.digest is not None


def test_undeclared_columns_are_inferred_and_a_budget_is_charged(folder):
    assert main(["budget", "init", "all.budget", "--epsilon", "7", "--delta", "1e-4"]) == 0
    assert main([*RUN, "--budget", "all.budget", "--quiet", "--anyway"]) == 0
    assert 3 < PrivacyBudget.from_file("all.budget").spent <= 6
    other = [*RUN[:-1], "other"]
    assert main([*other, "--budget", "all.budget", "--quiet", "--anyway"]) == 3
    assert not (folder / "other").exists()


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--table", "third=visits.csv"], 1, "--table must be given twice"),
        (["--table", "visits"], 1, "--table must be NAME=FILE"),
        (["--key", "who"], 1, "--key must be a column of both tables"),
        (["--order", "when"], 1, "order must be a column of 'visits'"),
        (["--schema", "stays=visits.json"], 1, r"--schema names \['stays'\]"),
        (["--rules", "rules.json"], 1, r"which are no columns"),
        (["--rules", "visits.json"], 1, r"visits.json is none"),
        (["--epsilon", "0.01"], 3, "400 persons are too few"),
        (["--delta", "0.1"], 3, "is not below 1 / 400"),
        (["--output", "."], 1, "holds files already"),
        (["--na-values", "kosten=9"], 1, r"name \['kosten'\], which no table has"),
        (["--drop", "age,cost"], 1, r"name \['age'\], which no table has"),
        (["--engine", "dask"], 1, "--engine is for Parquet files"),
    ],
)
def test_refusals_cost_nothing(folder, options, code, message, capsys):
    assert main([*RUN, *DECLARED, *options]) == code
    assert not (folder / "out").exists()
    assert re.search(message, capsys.readouterr().err)


def test_columns_of_one_table_are_dropped_or_have_missing_values(folder):
    """A name was refused unless both tables had it."""
    visits = pd.read_csv("visits.csv", sep=";").assign(note="x")
    visits.loc[::2, "cost"] = 7777
    visits.to_csv("visits.csv", index=False, sep=";")
    options = ["--na-values", "cost=7777", "--na-values", "7778", "--drop", "note"]
    assert main([*RUN, "--epsilon", "100", *options]) == 0
    made = pd.read_csv("out/visits.csv", sep=";")
    assert list(made) == ["id", "day", "cost"]
    is_missing = made["cost"] == 7777
    assert 0.3 < is_missing.mean() < 0.7
    assert made["cost"][~is_missing].max() < 200
    assert main([*MADE, *PAGE]) == 0
    columns = json.loads((folder / "report.json").read_text())["marginals"]["columns"]
    (cost,) = [column for column in columns if column["column"] == "visits.cost"]
    assert cost["levels"][-1] == "missing"
    assert cost["synthetic"][-1] == pytest.approx(is_missing.mean())


def test_texts_are_written_as_they_were(folder):
    visits = pd.read_csv("visits.csv", sep=";").rename(columns={"day": "von"})
    day = pd.to_datetime(visits["von"])
    visits["bis"] = (day + pd.to_timedelta(visits["cost"] % 5, "D")).dt.strftime("%d.%m.%Y")
    visits["von"] = day.dt.strftime("%d.%m.%Y")
    visits["cost"] = (visits["cost"] / 4).map("{:.2f}".format).str.replace(".", ",")
    visits.to_csv("visits.csv", index=False, sep=";")
    unknown = {"type": "unknown", "date_format": "%d.%m.%Y"}
    columns = {"von": unknown, "bis": unknown, "cost": {"type": "unknown", "decimal": ","}}
    rule = {"type": "ordered", "lower": "von", "upper": "bis"}
    (folder / "visits.json").write_text(json.dumps({"columns": columns, "rules": [rule]}))
    declared = ["--schema", "visits=visits.json", "--order", "von", "--anyway"]
    assert main([*RUN, *declared, "--quiet"]) == 0
    drawn = pd.read_csv(folder / "out" / "visits.csv", sep=";")
    first, last = (pd.to_datetime(drawn[n], format="%d.%m.%Y") for n in ("von", "bis"))
    assert ((last - first).dt.days.dropna() >= 0).all()
    assert first.notna().mean() > 0.9
    assert drawn["cost"].dropna().str.fullmatch(r"-?\d+(,\d+)?").all()


def add_births():
    """Give patients the date of birth that the rule across both tables names."""
    patients = pd.read_csv("patients.csv")
    births = np.datetime64("2019-06-01") + np.arange(400) % 213 * np.timedelta64(1, "D")
    patients.assign(born=births.astype(str)).to_csv("patients.csv", index=False)
    columns = {"sex": Category(["f", "m"]), "born": Date("2019-06-01", "2020-06-01")}
    Schema(columns).to_json("patients.json")
    return ["--order", "day", "--rules", "rules.json"]


MADE = ["report", "out/visits.csv", "out/patients.csv"]
PAGE = ["--output", "report.html", "--json", "report.json"]


def test_rules_across_tables_hold_and_are_reported(folder):
    options = add_births()
    assert main([*RUN, *DECLARED, *options, "--quiet", "--anyway"]) == 0
    patients = pd.read_csv("out/patients.csv").set_index("id")
    visits = pd.read_csv("out/visits.csv", sep=";")
    assert (visits["id"].map(patients["born"]) <= visits["day"]).all()
    reference = ["--reference", "patients=patients.csv", "--reference", "visits=visits.csv"]
    assert main([*MADE, *reference, *PAGE, "--target", "patients.sex"]) == 0
    assert "Synthetic rows: patients.csv, visits.csv" in (folder / "report.html").read_text()
    results = json.loads((folder / "report.json").read_text())
    assert (results["n_rows"], results["n_reference"]) == (len(visits), 1200)
    assert [rule["share_breaking"] for rule in results["rules"]] == [0]
    columns = {"visits.cost", "number", "patients.sex", "patients.born", "previous visits.cost"}
    assert columns <= {column["column"] for column in results["marginals"]["columns"]}


def test_keys_of_persons_are_no_keys_of_their_rows(folder):
    options = add_births()
    columns = json.loads((folder / "patients.json").read_text())
    rules = [{"type": "unique", "columns": ["born"]}]
    (folder / "patients.json").write_text(json.dumps({"columns": columns, "rules": rules}))
    assert main([*RUN, *DECLARED, *options, "--quiet", "--anyway", "--n-persons", "50"]) == 0
    assert main([*MADE, *PAGE]) == 0
    (rule,) = json.loads((folder / "report.json").read_text())["rules"]
    assert "Ordered" in rule["rule"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["report", "patients.csv", "visits.csv"], "the two files that `skdpgen histories` wrote"),
        (["report", "out/visits.csv", "out/visits.csv"], "the two files that `skdpgen histories`"),
        ([*MADE, "--reference", "patients=patients.csv"], "--reference must be two tables"),
        ([*MADE, "--reference", "patients.csv"], "--reference must be NAME=FILE"),
        ([*MADE, "--schema", "visits.json"], "--schema is for one table"),
        ([*MADE, "--release", "no.skdpgen"], "There is no file no.skdpgen"),
    ],
)
def test_reports_of_tables_that_do_not_belong_together_are_refused(
    folder, options, message, capsys
):
    (folder / "out").mkdir()
    for name in ("patients", "visits"):
        (folder / "out" / f"{name}.csv").write_bytes((folder / f"{name}.csv").read_bytes())
    parts = [{"name": name, "path": f"{name}.csv"} for name in ("patients", "visits")]
    (folder / "out" / "datapackage.json").write_text(json.dumps({"resources": parts}))
    (folder / "out" / "release.skdpgen").write_bytes(b"")
    assert main([*options, *PAGE]) == 1
    assert message in capsys.readouterr().err
    assert not (folder / "report.html").exists()
