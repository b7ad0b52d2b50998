"""The file of a budget, on the command line."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from skdpgen import DPSWFlowSampler, load
from skdpgen.__main__ import main
from skdpgen.cli.kept_types import KeptTypes
from skdpgen.cli.runs import _describe_looks
from skdpgen.data.texts import TextStyle
from skdpgen.privacy import BudgetExceededError, Certificate, PrivacyBudget

INIT = ["budget", "init", "kept.budget", "--epsilon", "6", "--delta", "1e-5"]


def test_syntheses_are_charged_until_nothing_is_left(synthesize, capsys, folder):
    assert main(INIT) == 0
    assert "ε = 0 of 6 is spent at δ = 1e-05 (zero_out); the budget is open." in (
        capsys.readouterr().out
    )
    assert synthesize("--budget", "kept.budget") == 0
    assert 4 < PrivacyBudget.from_file("kept.budget").spent < 5
    assert main(["budget", "show", "kept.budget"]) == 0
    assert "ε = 4." in capsys.readouterr().out
    assert synthesize("--budget", "kept.budget") == 3
    assert "over the budget of 6" in capsys.readouterr().err
    assert not (folder / "made").exists()
    assert main(["budget", "close", "kept.budget"]) == 0
    assert "the budget is closed" in capsys.readouterr().out
    assert synthesize("--budget", "kept.budget", "--epsilon", "0.5") == 3
    assert "is closed" in capsys.readouterr().err


SYNTHESIS = ["synthesize", "private.csv", "--epsilon", "5", "-o", "made"]


@pytest.mark.parametrize(
    ("command", "code", "message"),
    [
        (["budget", "show", "other.budget"], 1, "neither read nor charged"),
        (["budget", "close", "other.budget"], 1, "neither read nor charged"),
        ([*INIT[:2], "private.csv", *INIT[3:]], 1, "exists already"),
        ([*SYNTHESIS, "--budget", "none.budget"], 1, "none.budget can be neither read"),
        ([*SYNTHESIS, "--budget", "kept.budget", "--seed", "1"], 3, "fixed random_state"),
    ],
)
def test_budgets_that_cannot_be_used(folder, capsys, command, code, message):
    assert main(INIT) == 0
    assert main(command) == code
    assert message in capsys.readouterr().err
    assert not (folder / "other.budget").exists()
    assert not (folder / "made").exists()


def test_budgets_leave_something_for_categories_that_are_found(capsys, folder):
    """By default, so that a synthesis of undeclared columns is not refused."""
    assert main(INIT) == 0
    assert PrivacyBudget.from_file("kept.budget").threshold_delta == pytest.approx(1e-6)
    (folder / "kept.budget").unlink()
    assert main([*INIT, "--threshold-delta", "0"]) == 0
    assert PrivacyBudget.from_file("kept.budget").threshold_delta == 0


def test_a_refusal_of_categories_says_what_budget_to_make(folder):
    table = pd.DataFrame({"kind": ["x", "y"] * 500, "n": range(1000)})
    with PrivacyBudget(1.0, 1e-5), pytest.raises(BudgetExceededError) as refused:
        DPSWFlowSampler(1.0, 1e-5, n_steps=2).fit(table)
    assert "threshold_delta=1.001e-06 or more (--threshold-delta)" in str(refused.value)
    with PrivacyBudget(1.0, 1e-5, threshold_delta=1e-6):
        DPSWFlowSampler(1.0, 1e-5, n_steps=2).fit(table)


def test_the_last_line_says_that_syntheses_add_up(capsys, folder):
    def synthesize(folder, *options):
        terms = ["--epsilon", "5", "--schema", "schema.json", "-o", folder]
        return main(["synthesize", "private.csv", *terms, *options])

    assert synthesize("first") == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("give all of them one --budget.")
    assert main(INIT) == 0
    assert synthesize("second", "--budget", "kept.budget") == 0
    assert "Another synthesis" not in capsys.readouterr().out


def test_several_syntheses_that_infer_fit_into_one_budget(synthesize, folder):
    """Without --delta, each has a tenth of what the budget sets aside for categories."""
    assert main(INIT) == 0
    command = ["synthesize", "private.csv", "--epsilon", "2", "--budget", "kept.budget", "--quiet"]
    for name in ("first", "second", "third"):
        assert main([*command, "-o", name]) == 0
    assert PrivacyBudget.from_file("kept.budget").spent < 6


@pytest.mark.catches(
    "cli.synthesis:Synthesis._find_rest", "compose(spent, planned).epsilon", "planned.epsilon"
)
@pytest.mark.catches("cli.synthesis:Synthesis.certify", "kept is None", "True")
@pytest.mark.catches("cli.kept_types:KeptTypes.read", "event not in charged", "False")
@pytest.mark.catches(
    "cli.kept_types:KeptTypes.read", 'kept["table"] != _describe_table(options, names)', "False"
)
def test_a_run_stops_once_types_show_that_dates_are_not_read(folder, capsys):
    """A later run goes on from the types, and spends the rest of epsilon only."""
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(2000) % 700, "D")
    frame = pd.DataFrame({"day": days.strftime("%d.%m.%Y"), "x": np.arange(2000) % 90})
    frame["at"] = (days + pd.to_timedelta(np.arange(2000) % 1440, "m")).strftime("%d.%m.%Y %H:%M")
    frame.to_csv("private.csv", index=False)
    assert main(INIT) == 0
    run = [*SYNTHESIS, "--delta", "1e-6", "--budget", "kept.budget"]
    assert main(run) == 3
    said = capsys.readouterr().err
    assert "day, at look like dates as %d.%m.%Y" in said
    assert "give --date-format %d.%m.%Y. A later run goes on from kept.budget-types.json" in said
    assert 0.5 < PrivacyBudget.from_file("kept.budget").spent < 1.5
    assert not (folder / "made").exists()
    assert main([*run, "--date-format", "%d.%m.%Y", "--json"]) == 0
    done = json.loads(capsys.readouterr().out)
    assert done["spent"]["epsilon"] < done["with_look"]["epsilon"] <= 5
    assert done["with_look"]["epsilon"] > 4.95
    certificate = Certificate.from_json(Path("made/certificate.json").read_text())
    # Rows follow from the types, too, which are released once.
    assert certificate.releases.count("column kinds") == 1
    assert certificate.epsilon == pytest.approx(done["with_look"]["epsilon"])
    assert load("made/release.skdpgen").certificate.releases == certificate.releases
    assert PrivacyBudget.from_file("kept.budget").spent < 5
    made = pd.read_csv("made/synthetic.csv")
    # One format is that of days and of times.
    for name, form in {"day": "%d.%m.%Y", "at": "%d.%m.%Y %H:%M"}.items():
        assert pd.to_datetime(made[name], format=form).dt.year.isin([2020, 2021]).mean() > 0.9
    # What is of other columns, or was not charged to this budget, is released anew.
    for lines in ("--drop", "x"), ():
        assert main(["preview", *run[1:], *lines, "--output", "other"]) == 0
        assert "planned ε = 5 at" in capsys.readouterr().out
        Path("kept.budget").unlink(missing_ok=True)
        assert main(INIT) == 0


def test_dates_of_two_formats_are_declared_each():
    looks = {"a": "look like dates as %d.%m.%Y", "b": "look like dates as %m/%d/%Y"}
    kept, style = KeptTypes(None, {}, {}, looks), TextStyle(date_format="%d.%m.%Y")
    assert [kept.find_type(name, style) is not None for name in looks] == [True, False]
    for said in _describe_looks(looks), _describe_looks({"b": looks["b"]}, "%d.%m.%Y"):
        assert '{"type": "unknown", "date_format": "%m/%d/%Y"}' in said
        assert "--date-format" not in said
    assert "--date-format %m" in _describe_looks({"b": looks["b"]}, "%m/%d/%Y %H:%M")
    assert "--date-format in their form, as %d/%m/%Y" in _describe_looks({"c": "look like dates"})
