"""Audits of what a synthesis would release, on made rows."""

import json
import math
from pathlib import Path

import pytest

from skdpgen.__main__ import main
from skdpgen.privacy import NoiseSource

ALWAYS = ["audit", "--epsilon", "2", "--delta", "1e-6", "--n-runs", "200", "--seed", "0"]
SAID = ["--types", "n=number", "--types", "d=date", "--types", "b=boolean", "--types", "i=integer"]


@pytest.mark.parametrize(
    "options",
    [
        ["--schema", "schema.json", "--n-rows", "60"],
        ["--schema", "schema.json", "--n-rows", "60", "--target", "ward", "--method", "flow"],
        ["--schema", "schema.json", "--n-persons", "60", "--max-rows-per-person", "2"],
        [*SAID, "--n-rows", "60", "--epsilon", "8"],
    ],
)
def test_an_audit(options, folder, capsys):
    Path("private.csv").unlink()  # no row is read
    assert main([*ALWAYS, *options, "--output", "audit.json"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("No violation found: the audit shows ε > ")
    assert "two-way tables: μ > " in said.out
    assert "outside of any ledger" not in said.out + said.err
    written = json.loads(Path("audit.json").read_text(encoding="utf-8"))
    assert 0.5 * written["claim"] < written["bound"] <= written["claim"]
    assert written["certificate"]["relation"] == "zero_out"
    assert ("n_persons" in written["certificate"]) == ("--n-persons" in options)


def test_a_violation(folder, capsys, monkeypatch):
    draw = NoiseSource.rounded_gaussian
    monkeypatch.setattr(
        NoiseSource, "rounded_gaussian", lambda self, scale: draw(self, scale / math.sqrt(2))
    )
    assert main([*ALWAYS, "--schema", "schema.json", "--n-rows", "60"]) == 4
    assert "privacy loss exceeds the claim" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "generates rows of declared columns"),
        (["--schema", "schema.json", "--target", "sex"], "--target must be one of"),
        (["--schema", "schema.json", "--n-rows", "2"], "needs at least 4 records"),
        (["--schema", "schema.json", "--n-runs", "9"], "n_runs must be"),
        (["--schema", "schema.json", "--output", "schema.json"], "schema.json"),
        (["--schema", "schema.json", "--max-rows-per-person", "2"], "goes with --n-persons"),
    ],
)
def test_refusals(options, message, folder, capsys):
    assert main([*ALWAYS, *options]) == 1
    assert message in capsys.readouterr().err
