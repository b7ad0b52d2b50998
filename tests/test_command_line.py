"""The command line: files in, files out, one clear line when something is wrong."""

import json
import shutil
import subprocess
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest

from skdpgen import DPSWFlowSampler
from skdpgen.__main__ import main
from skdpgen.learners import interactions

SECRET = "Smith-31415"
# Without a target of few levels.
SCHEMA = {
    "age": {"type": "number", "lower": 0, "upper": 99, "decimals": 0},
    "ward": {"type": "category", "categories": ["A", "B"], "missing": True},
    "code": {"type": "category", "categories": [1, 2]},
    "smoker": {"type": "boolean", "words": ["False", "True"]},
    "day": {"type": "date", "lower": "2020-01-01", "upper": "2020-12-31"},
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a private table and its schema, where fits take a few steps only."""
    quick = partial(few_steps, interactions.fit_to_table)
    monkeypatch.setattr(interactions, "fit_to_table", quick)
    monkeypatch.chdir(tmp_path)
    rng = np.random.RandomState(0)
    n = 250
    frame = pd.DataFrame(
        {
            "age": rng.randint(0, 100, n),
            "ward": np.array(["A", "B", ""])[rng.randint(3, size=n)],
            "code": rng.randint(1, 3, n),
            "smoker": rng.rand(n) < 0.5,
            "day": (pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.randint(366, size=n), "D")),
        }
    )
    frame.to_csv("private.csv", index=False)
    (tmp_path / "schema.json").write_text(json.dumps(SCHEMA))
    return tmp_path


def few_steps(fit, *args, **kwargs):
    return fit(*args, **{**kwargs, "n_steps": 3})


def synthesize(*options, table="private.csv", schema="schema.json"):
    shutil.rmtree("made", ignore_errors=True)
    always = ["--epsilon", "1", "--delta", "1e-6", "--output", "made", "--quiet", "--anyway"]
    always += [] if schema is None else ["--schema", schema]
    return main(["synthesize", table, *always, *options])


def read_certificate():
    with open("made/certificate.json", encoding="utf-8") as file:
        return json.load(file)


def test_synthesize(folder):
    assert synthesize("--target", "ward") == 0
    made = pd.read_csv("made/synthetic.csv")
    assert list(made.columns) == list(SCHEMA)
    assert len(made) == 250
    assert made["age"].between(0, 99).all()
    assert set(made["ward"].dropna()) <= {"A", "B"}
    assert set(made["code"]) <= {1, 2}
    assert made["smoker"].dtype == bool
    assert pd.to_datetime(made["day"]).between("2020-01-01", "2020-12-31").all()
    assert main(["verify", "made/certificate.json"]) == 0
    assert read_certificate()["epsilon"] <= 1
    assert sorted(path.name for path in folder.iterdir()) == ["made", "private.csv", "schema.json"]


def test_the_relation_is_the_one_that_is_asked_for(folder, capsys):
    assert synthesize("--relation", "replace_one") == 0
    assert read_certificate()["relation"] == "replace_one"
    options = ["--schema", "schema.json", "--epsilon", "2", "--relation", "replace_one"]
    assert main(["preview", "private.csv", *options, "--anyway"]) == 0
    assert "replace_one" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("column", "match"),
    [("age", "no numbers"), ("ward", "not among"), ("smoker", "True and"), ("day", "no dates")],
)
def test_bad_cells_are_absent_or_named_by_column_and_not_quoted(folder, capsys, column, match):
    frame = pd.read_csv("private.csv", dtype=str, keep_default_na=False)
    frame.loc[5, column] = SECRET
    frame.to_csv("private.csv", index=False)
    assert synthesize() == 0
    assert SECRET not in (folder / "made/synthetic.csv").read_text()
    assert SECRET not in "".join(capsys.readouterr())
    assert synthesize("--strict") == 1
    printed = capsys.readouterr().err
    assert column in printed
    assert match in printed
    assert SECRET not in printed
    assert printed.count("\n") == 1
    assert not (folder / "made").exists()


@pytest.mark.catches("accounting.verification:_parse", "not certificate.events", "False")
def test_verify_prints_what_is_certified_and_what_is_not_as_it_should_be(folder, capsys):
    assert synthesize("--delta", "0.004") == 0
    path = folder / "made/certificate.json"
    stated = json.loads(path.read_text())
    capsys.readouterr()
    assert main(["verify", "made/certificate.json"]) == 0
    printed = capsys.readouterr()
    for text in ("ε = 1 at δ = 0.004.", "(zero_out)", "two-way tables", "Assumes: one person has"):
        assert text in printed.out
    assert printed.out.splitlines()[-1] == "The events cost ε = 1, as stated."
    assert printed.err.startswith("skdpgen: warning: δ = 0.004 is above 0.001")
    nothing = {"releases": [], "epsilon": 0.0, "mu": 0.0, "rho": 0.0}
    for change, message in (
        ({"epsilon": 3.00001}, "states epsilon = 3.00001, but its events cost"),
        ({"epsilon": 0.5}, "states"),
        (nothing, "lists no release"),
    ):
        path.write_text(json.dumps({**stated, **change}))
        assert main(["verify", "made/certificate.json"]) == 1
        assert message in capsys.readouterr().err


def test_an_interrupt_before_a_release_says_that_nothing_was_spent(folder, capsys, monkeypatch):
    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(DPSWFlowSampler, "fit", interrupt)
    assert synthesize() == 130
    assert "ε = 0 was spent" in capsys.readouterr().err
    assert sorted(path.name for path in folder.iterdir()) == ["private.csv", "schema.json"]


def test_as_a_module():
    printed = subprocess.run(
        [sys.executable, "-m", "skdpgen", "--help"], capture_output=True, text=True, check=True
    )
    assert "synthesize" in printed.stdout


def test_long_tables_are_read_and_written_in_pieces(folder, monkeypatch):
    pytest.importorskip("pyarrow")
    from skdpgen.cli import synthesis as module
    from skdpgen.engines import files

    monkeypatch.setattr(files, "_CHUNK_ROWS", 30)
    monkeypatch.setattr(module, "_PIECE", 40)
    assert synthesize() == 0
    assert len(pd.read_csv("made/synthetic.csv")) == 250
    # All pieces are whole.
    assert synthesize("--n-rows", "80") == 0
    assert len(pd.read_csv("made/synthetic.csv")) == 80


def test_a_header_that_looks_like_a_record_is_one_if_that_is_said(folder):
    lines = (folder / "private.csv").read_text().splitlines(keepends=True)
    (folder / "private.csv").write_text("".join(lines[1:]))
    assert synthesize("--epsilon", "9", "--header", "yes", schema=None) == 0
