"""Tables with several rows of a person, in files."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skdpgen.__main__ import main


@pytest.fixture
def persons(folder):
    """Write private.csv with whose each row is; some rows are nobody's."""
    frame = pd.read_csv("private.csv")
    rng = np.random.RandomState(0)
    codes = np.r_[np.arange(100), rng.randint(100, size=170)]
    names = [f" P{code}" for code in codes] + ["", "NA"] * 15
    frame.insert(1, "patient", names)
    frame.to_csv("private.csv", index=False)
    return frame


def read(name):
    return json.loads(Path(name).read_text(encoding="utf-8"))


def test_the_person_column_says_whose_rows_are_and_is_not_learnt(persons, synthesize):
    options = ["--person-column", "patient", "--max-rows-per-person", "2"]
    assert synthesize(*options) == 0
    made = pd.read_csv("made/synthetic.csv")
    # As many rows as there are persons.
    assert (list(made.columns), len(made)) == (["age", "ward"], 100)
    certificate = read("made/certificate.json")
    assert certificate["unit"] == "person"
    assert (certificate["max_rows"], certificate["n_persons"]) == (2, 100)
    assert list(read("made/schema.json")["schema"]) == ["age", "ward"]


def test_one_row_of_each_counts_if_nothing_is_said(persons, infer, capsys):
    assert infer("--person-column", "patient", "--n-rows", "7") == 0
    assert len(pd.read_csv("made/synthetic.csv")) == 7
    assert read("made/certificate.json")["max_rows"] == 1
    # Once column types are known, cells are others: the same number of rows counts.
    assert "absent" not in capsys.readouterr().err


def test_the_person_column_of_a_parquet_file(persons, synthesize):
    pytest.importorskip("pyarrow")
    persons["patient"] = persons["patient"].where(persons["patient"].str.strip() != "")
    persons.to_parquet("private.parquet")
    options = ["--person-column", "patient"]
    assert synthesize(*options, table="private.parquet") == 0
    assert read("made/certificate.json")["n_persons"] == 100


@pytest.mark.parametrize(
    ("forms", "options"),
    [
        (["{},0"], []),
        (["{},0", "{}"], ["--decimal", ","]),
        (["1.{}", "1{}", "1{},00"], ["--decimal", ",", "--thousands", "."]),
        (["1,{}", "1{}"], []),
    ],
)
def test_identifiers_are_written_as_other_numbers_are(forms, options, persons, synthesize):
    """Chunks with and without a missing one write them in two ways."""
    codes = persons["patient"].str.strip().str.removeprefix("P")
    names = [
        forms[i % len(forms)].format(f"{int(c) + 100}") if c.isdigit() else ""
        for i, c in enumerate(codes)
    ]
    persons.assign(patient=names).to_csv("private.csv", sep=";", index=False)
    assert synthesize("--person-column", "patient", *options) == 0
    assert read("made/certificate.json")["n_persons"] == 100


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--person-column", "nurse"], "There is no column 'nurse' of persons among"),
        (["--person-column", "ward"], "--person-column ward is in --schema"),
        (
            ["--max-rows-per-person", "2", "--drop", "patient"],
            "--max-rows-per-person goes with --person-column",
        ),
        (
            ["--person-column", "patient", "--max-rows-per-person", "0"],
            "max_rows_per_person must be a positive whole number",
        ),
        (["--person-column", "patient", "--types", "patient=category"], "are no columns"),
    ],
)
def test_senseless_options_are_refused(persons, synthesize, capsys, options, message):
    assert synthesize(*options) == 1
    assert message in capsys.readouterr().err


def test_a_preview_of_persons(persons, capsys):
    shown = {}
    for name, unit in {
        "rows": ["--drop", "patient"],
        "persons": ["--person-column", "patient", "--max-rows-per-person", "3"],
    }.items():
        options = ["--schema", "schema.json", "--epsilon", "1", "--json", "--anyway"]
        assert main(["preview", "private.csv", *unit, *options]) == 0
        shown[name] = json.loads(capsys.readouterr().out)
    assert shown["rows"]["read"] == {"files": "private.csv", "rows": 300, "columns": 2}
    assert shown["persons"]["read"] == {"files": "private.csv", "persons": 100, "columns": 2}
    # A hundredth of the budget shows how many rows there are.
    noise = {name: said["tables"][0]["noise"] for name, said in shown.items()}
    assert noise["persons"] == pytest.approx(3 * noise["rows"], rel=0.02)
