"""`skdpgen preview`, which is a dry run of `synthesize`, and `skdpgen look`."""

import json

import numpy as np
import pandas as pd
import pytest

from skdpgen import DPSWFlowSampler, preview
from skdpgen.__main__ import main
from skdpgen.accounting.calibration import find_delta
from skdpgen.cli.runs import choose_delta
from skdpgen.privacy import PrivacyBudget, infer_schema


def read_json(path):
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture
def shown(folder, capsys):
    """Run a command with --json, and return its exit code and object."""

    def run(*arguments):
        code = main([*arguments, "--json"])
        printed = capsys.readouterr().out
        assert printed.count("\n") == 1
        result = json.loads(printed)
        assert result["exit_code"] == code
        return result

    return run


PREVIEW = ["preview", "private.csv", "--epsilon", "5"]


def test_a_preview_spends_nothing_and_writes_nothing(folder, capsys, monkeypatch):
    monkeypatch.setattr(DPSWFlowSampler, "fit", None)
    assert main([*PREVIEW, "--target", "ward", "-o", "made"]) == 0
    printed = capsys.readouterr().out
    assert "Read private.csv: 300 rows, 2 columns. Spent nothing; planned ε = 5 at δ = 1e-05" in (
        printed
    )
    assert "Categories that are inferred have at least about" in printed
    assert "--drop identifiers and free text. If a person can have several rows" in printed
    assert not (folder / "made").exists()


def test_a_preview_has_the_options_of_the_synthesis(folder, shown):
    """A target, and columns of many levels, raise what it takes."""
    plain = shown(*PREVIEW)
    needed = [plain["rows_needed"], shown(*PREVIEW, "--target", "ward")["rows_needed"]]
    assert needed[1] > needed[0]
    codes = {"type": "category", "categories": list(map(str, range(300)))}
    (folder / "codes.json").write_text(json.dumps({"ward": codes}))
    of_codes = shown(*PREVIEW, "--schema", "codes.json", "--anyway")
    errors = [
        next(row["error"] for row in result["tables"] if (row["column"], row["other"]) == pair)
        for result in (plain, of_codes)
        for pair in [("ward", "")]
    ]
    assert errors[1] > 5 * errors[0]
    assert plain["least_count"] > 0
    assert plain["seconds"] > 0


def test_a_preview_stops_where_the_synthesis_would(folder, shown, capsys):
    result = shown(*PREVIEW[:2], "--epsilon", "0.1")
    assert result["exit_code"] == 3
    assert result["warnings"][0].startswith(
        "300 rows are too few: at --epsilon 0.1, with 2 columns"
    )
    command = ["synthesize", "private.csv", "--epsilon", "0.1", "--output", "made"]
    stopped = shown(*command)
    assert stopped["exit_code"] == 3
    assert stopped["error"].startswith(result["warnings"][0])
    assert shown(*PREVIEW[:2], "--epsilon", "0.1", "--anyway")["exit_code"] == 0


@pytest.mark.parametrize("epsilon", ["1e-3", "0.02", "inf"])
def test_any_budget_has_a_preview(folder, shown, epsilon):
    result = shown(*PREVIEW[:2], "--epsilon", epsilon)
    assert result["exit_code"] == (0 if epsilon == "inf" else 3)
    assert float(result["planned"]["epsilon"]) == pytest.approx(float(epsilon), rel=0.01)


def test_columns_that_will_be_noise_are_named(folder, shown):
    codes = {"type": "category", "categories": list(map(str, range(3000)))}
    (folder / "codes.json").write_text(json.dumps({"ward": codes}))
    result = shown(*PREVIEW, "--schema", "codes.json", "--anyway")
    assert "Columns ward will be noise." in result["warnings"][-1]


@pytest.mark.catches(
    "accounting.calibration:find_delta",
    "0.1 / n_records",
    "1 / n_records",
)
def test_delta_follows_from_the_public_number_of_rows():
    sizes = (1, 300, 9_999, 10_001, 10**9)
    found = [find_delta(None, n) for n in sizes]
    assert found == [choose_delta(None, n, None) for n in sizes] == [1e-5, 1e-5, 1e-5, 1e-6, 1e-10]
    assert preview(DPSWFlowSampler(), np.zeros((10_001, 2))).delta == 1e-6
    assert infer_schema(pd.DataFrame({"x": np.arange(10_001)})).privacy_.delta == 1e-6
    assert choose_delta(None, 300, PrivacyBudget(1.0, 1e-5)) == 1e-6


LOOK = ["look", "private.csv", "--epsilon", "2", "--output", "found.json"]


@pytest.mark.catches(
    "cli.synthesis:_add_earlier",
    "compose(*earlier, certificate)",
    "certificate",
)
@pytest.mark.catches("cli.synthesis:look", 'Path(outputs["certificate"]).exists()', "False")
def test_a_look_and_the_synthesis_after_it(folder, shown, capsys):
    table = pd.read_csv("private.csv").assign(cost=[1.25, 3.5, 7.75] * 100)
    # Many rows, so that each of them is found.
    pd.concat([table] * 20).to_csv("private.csv", index=False, sep=";", decimal=",")
    looked = shown(*LOOK)
    assert looked["files"] == {"certificate": "found.certificate.json", "schema": "found.json"}
    found = read_json(folder / "found.json")
    assert found["schema"]["ward"]["categories"] == ["A", "B"]
    assert found["schema"]["cost"]["type"] == "number"
    assert "knots" not in found["schema"]["age"]
    assert found["texts"]["cost"]["decimal"] == ","
    assert read_json(folder / "found.certificate.json")["epsilon"] == looked["spent"]["epsilon"]
    assert main(["verify", "found.certificate.json"]) == 0
    capsys.readouterr()
    command = ["synthesize", "private.csv", "--epsilon", "1", "--schema", "found.json"]
    made = shown(*command, "--output", "made")
    # Decimal commas need not be found again, and both certificates add up.
    frame = pd.read_csv("made/synthetic.csv", sep=";", decimal=",")
    assert pd.api.types.is_numeric_dtype(frame["cost"])
    assert 1 < frame["cost"].median() < 8
    assert looked["spent"]["epsilon"] < made["with_look"]["epsilon"] <= 3
    assert main(LOOK) == 1
    assert "found.certificate.json is there already, and that look counts" in (
        capsys.readouterr().err
    )


def test_a_schema_knows_which_texts_are_missing(folder, shown, capsys):
    """Otherwise they were numbers again in the synthesis after a look."""
    ages = np.where(np.arange(6000) % 3, 20 + np.arange(6000) % 60, -999)
    pd.DataFrame({"age": ages, "ward": "A"}).to_csv("private.csv", index=False)
    shown(*LOOK, "--na-values", "age=-999")
    shown("synthesize", "private.csv", "--epsilon", "9", "--schema", "found.json", "-o", "made")
    assert read_json(folder / "made/schema.json")["na_values"] == ["age=-999"]
    found = pd.read_csv("made/synthetic.csv", na_values={"age": "-999"})["age"]
    assert 0.2 < found.isna().mean() < 0.5
    assert found.min() > 0


def test_the_last_line_of_a_look_says_that_the_synthesis_adds_up(folder, capsys):
    assert main(LOOK) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.endswith("before you read the schema, or give both commands one --budget.")
    init = ["budget", "init", "kept.budget", "--epsilon", "6", "--delta", "1e-5"]
    assert main(init) == 0
    assert main([*LOOK[:-1], "again.json", "--budget", "kept.budget"]) == 0
    assert 1 < PrivacyBudget.from_file("kept.budget").spent <= 2


def test_a_look_in_vain_stops(folder, capsys):
    few = ["look", "private.csv", "--epsilon", "0.05", "-o", "few.json"]
    assert main(few) == 3
    assert "300 rows are too few: at --epsilon 0.05, with 2 columns, about" in (
        capsys.readouterr().err
    )
    assert not (folder / "few.json").exists()
    assert main([*few, "--anyway"]) == 0


def test_a_certificate_that_cannot_be_added_is_said(folder, synthesize, capsys):
    assert main([*LOOK, "--relation", "replace_one"]) == 0
    capsys.readouterr()
    assert synthesize(schema="found.json") == 0
    assert "found.certificate.json and the certificate of this synthesis cannot be added" in (
        capsys.readouterr().err
    )
