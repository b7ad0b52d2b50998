"""Printed summaries: at most 25 lines for people, one object for machines."""

import json
import re
import warnings

import pandas as pd
import pytest

from skdpgen.__main__ import main
from skdpgen.cli.exits import DESCRIPTION
from skdpgen.cli.outputs import collected_warnings
from skdpgen.cli.parser import make_parser
from skdpgen.cli.summaries import Summary
from skdpgen.privacy import FitQualityWarning, PrivacyLeakWarning

COMMAND = ["synthesize", "private.csv", "--epsilon", "5", "--output", "made"]


@pytest.mark.parametrize("width", [60, 80, 100])
@pytest.mark.parametrize("n_warnings", [0, 1, 5, 9])
@pytest.mark.parametrize("n_columns", [0, 1, 8, 200])
def test_a_summary_fits_a_terminal(width, n_warnings, n_columns):
    columns = pd.DataFrame({"column": [f"c{i}" for i in range(n_columns)], "found": "x" * 200})
    messages = [f"Warning {i} {'says much ' * 40}" for i in range(n_warnings)]
    summary = Summary(["Read."], columns, ["A note."], messages, ["Next."], details="s.json")
    lines = summary.to_text(width).splitlines()
    said = [line for line in lines if "Warning" in line or "says much" in line]
    assert len(lines) - len(said) <= 25
    assert max(map(len, lines)) <= width
    assert (lines[0], lines[-1]) == ("Read.", "Next.")
    # Messages are not cut, and whatever is left out can be found elsewhere.
    assert " ".join(" ".join(said).split()).count("says much") == 40 * min(n_warnings, 5)
    assert ("s.json" in "\n".join(lines)) == (n_columns == 200 or n_warnings > 5)


def test_summary_of_a_synthesis(folder, capsys):
    assert main(COMMAND) == 0
    printed = capsys.readouterr()
    # No progress bar, as this is no terminal.
    assert printed.err == ""
    lines = printed.out.splitlines()
    assert len(lines) <= 25
    assert lines[0] == (
        "Read private.csv: 300 rows, 2 columns. Spent ε = 5 at δ = 1e-05 for each row (zero_out)."
    )
    assert re.match(r"Whether a row took part can be guessed rightly in at most \d\d%", lines[1])
    assert re.match("column +type +found +other +missing +(low by +)?noise +counts", lines[2])
    assert re.search("^ward +category +2: A, B .*±", printed.out, re.MULTILINE)
    assert "Wrote made/synthetic.csv, made/certificate.json, made/report.html" in printed.out
    assert lines[-2] == (
        "If a person can have several rows, --person-column protects persons, not rows."
    )
    assert lines[-1].startswith("Another synthesis of these rows adds to this ε")


def test_warnings_that_ask_for_declarations_say_where_they_stand(folder, capsys):
    table = pd.read_csv("private.csv").assign(code=[f"C{i}" for i in range(300)])
    table.to_csv("private.csv", index=False)
    assert main([*COMMAND, "--anyway"]) == 0
    printed = capsys.readouterr().out
    assert "Worry about" in printed
    assert "To declare columns, edit made/schema.json by what is public, and give it" in printed


def test_one_object_for_machines(folder, capsys):
    assert main([*COMMAND, "--json"]) == 0
    printed = capsys.readouterr()
    assert (printed.out.count("\n"), printed.err) == (1, "")
    result = json.loads(printed.out)
    certificate = json.loads((folder / "made/certificate.json").read_text(encoding="utf-8"))
    assert result["spent"]["epsilon"] == certificate["epsilon"]
    assert result["read"] == {"files": "private.csv", "rows": 300, "columns": 2}
    assert [column["column"] for column in result["columns"]] == ["age", "ward"]
    assert {*result["files"]} == {"rows", "certificate", "release", "schema", "report"}
    assert main([*COMMAND, "--json"]) == 1
    failed = json.loads(capsys.readouterr().out)
    assert failed["exit_code"] == 1
    assert "made holds files already" in failed["error"]


def test_progress_is_for_terminals(folder, capsys, monkeypatch):
    monkeypatch.setattr("skdpgen.cli.runs.shows_progress", lambda options: True)
    monkeypatch.setattr("skdpgen.cli.synthesis.shows_progress", lambda options: True)
    assert main(COMMAND) == 0
    assert "two-way tables" in capsys.readouterr().err


def test_warnings_are_listed_once_and_those_of_privacy_first():
    def warn(category, text):
        warnings.warn(text, category, stacklevel=2)

    def warn_often():
        with collected_warnings() as caught:
            warn(FitQualityWarning, "rows")
            warn(PrivacyLeakWarning, "leak")
            warn(FitQualityWarning, "rows")
            warn(FitQualityWarning, "columns")
            warn(FutureWarning, "of a library")
        return list(map(str, caught))

    with pytest.warns(FutureWarning, match="library"):
        listed = warn_often()
    assert listed == ["leak", "rows", "columns"]


def test_warnings_before_an_error_are_printed(capsys):
    def fail():
        with collected_warnings():
            warnings.warn("columns", FitQualityWarning, stacklevel=1)
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fail()
    assert capsys.readouterr().err == "skdpgen: warning: columns\n"


def test_exit_codes_are_in_every_help(capsys):
    for command in ([], ["synthesize"], ["preview"], ["look"], ["audit"], ["budget"]):
        with pytest.raises(SystemExit):
            make_parser().parse_args([*command, "--help"])
        assert DESCRIPTION in capsys.readouterr().out
