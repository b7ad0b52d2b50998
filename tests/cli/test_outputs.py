"""Outputs are written over no input, all at once, and rows never without a certificate."""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from dp_accounting import GaussianDpEvent

from skdpgen import DPSWFlowSampler, PrivacyBudget
from skdpgen.__main__ import main
from skdpgen.accounting.rounding import show
from skdpgen.cli import outputs as module
from skdpgen.cli.forms import Form, escape_formulas
from skdpgen.cli.outputs import Interrupted, filled_folder, interruptible, replaced
from skdpgen.data.texts import MARKS, TextStyle
from skdpgen.learners.training import Adam
from skdpgen.privacy import Certificate
from skdpgen.releases import PublishedRelease
from skdpgen.tables import Boolean, Category, Identifier, Number, Schema


@pytest.fixture
def unread(folder, monkeypatch):
    """Whatever is refused is so before a row is read."""

    def fit(*args, **kwargs):
        raise AssertionError("The private table was read.")

    monkeypatch.setattr(DPSWFlowSampler, "fit", fit)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    yield folder
    assert {path: path.read_bytes() for path in before} == before


def make_links(folder):
    os.symlink("private.csv", "link.csv")
    os.link("private.csv", "hard.csv")
    os.symlink(folder, "again")
    os.symlink("loop.csv", "loop.csv")
    (folder / "folder.csv").mkdir()
    (folder / "full").mkdir()
    (folder / "full" / "certificate.json").write_text("{}")
    os.mkfifo("pipe.csv")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--output", "private.csv"], "is no folder"),
        (["--output", "link.csv"], "is no folder"),
        (["--output", "pipe.csv"], "is no folder"),
        (["--output", "loop.csv"], "is no folder"),
        (["--output", "."], "holds files already"),
        (["--output", "again"], "holds files already"),
        (["--output", "full"], "holds files already. Name a new folder: each release has"),
        (["--output", "no/such/made"], "there is no folder .*no/such"),
        (["--n-rows", "0"], "--n-rows must be at least 1"),
        (["--epsilon", "0"], "epsilon must be"),
        (["--epsilon", "nan"], "epsilon must be"),
        (["--delta", "1"], "delta must be"),
        (["--target", "AGE"], r"--target must be one of the columns \['age', 'ward'\]"),
        (["--seed", "-1"], "--seed must be"),
        (["--schema", "none.json"], "none.json"),
    ],
)
def test_senseless_options_are_refused_before_anything_is_read(
    unread, synthesize, capsys, options, match
):
    make_links(unread)
    assert synthesize(*options) == 1
    printed = capsys.readouterr()
    assert re.search(match, printed.err), printed.err
    assert printed.err.count("\n") == 1
    assert ".skdpgen-" not in printed.err
    assert printed.out == ""


def test_a_folder_that_cannot_be_written_to(unread, synthesize, capsys, monkeypatch):
    refused = {os.path.realpath(".")}
    monkeypatch.setattr(module.os, "access", lambda path, mode: path not in refused)
    assert synthesize() == 1
    assert f"the folder {os.path.realpath('.')} cannot be written to" in capsys.readouterr().err


def test_outputs_over_other_files_are_refused(folder, capsys):
    make_links(folder)
    for path, match in (
        ("hard.csv", "are the same file"),
        ("again/schema.json", "--schema schema.json are the same file"),
        ("folder.csv", "is a folder"),
        ("/dev/null", "is a device, a pipe"),
        ("no/s.json", "there is no folder"),
    ):
        assert main(["look", "private.csv", "--schema", "schema.json", "-o", path]) == 1
        assert match in capsys.readouterr().err
    assert main(["schema", "private.csv", "--output", "hard.csv"]) == 1
    assert "are the same file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("table", "match"),
    [
        ("none.csv", "There is no file none.csv"),
        ("private.xls", "must end in .csv or .jsonl or .ndjson or .parquet"),
        ("folder.csv", "is no regular file"),
        ("pipe.csv", "is no regular file"),
    ],
)
def test_tables_that_are_none(unread, synthesize, capsys, table, match):
    make_links(unread)
    assert synthesize(table=table) == 1
    assert match in capsys.readouterr().err


def test_the_folder_is_as_one_that_is_made(folder):
    os.symlink("far", "made")
    umask = os.umask(0o027)
    try:
        assert main(["synthesize", "private.csv", "--epsilon", "5", "-o", "made", "--quiet"]) == 0
    finally:
        os.umask(umask)
    assert os.path.islink("made")
    names = ["certificate.json", "release.skdpgen", "report.html", "schema.json", "synthetic.csv"]
    assert sorted(os.listdir("far")) == names
    assert stat.S_IMODE(os.stat("far").st_mode) == 0o750
    assert stat.S_IMODE(os.stat("far/synthetic.csv").st_mode) == 0o640


def test_links_are_followed_and_modes_kept(tmp_path):
    (tmp_path / "old.csv").write_text("old")
    (tmp_path / "old.csv").chmod(0o604)
    (tmp_path / "link.csv").symlink_to("old.csv")
    with replaced([str(tmp_path / "link.csv")]) as (name,), open(name, "w") as file:
        file.write("new")
    assert os.path.islink(tmp_path / "link.csv")
    assert (tmp_path / "old.csv").read_text() == "new"
    assert stat.S_IMODE(os.stat(tmp_path / "old.csv").st_mode) == 0o604
    assert sorted(os.listdir(tmp_path)) == ["link.csv", "old.csv"]


def test_files_are_there_in_full_or_not_at_all(tmp_path, monkeypatch):
    """Also where the process is killed between any two steps, and a release is there already."""
    states, path = [], tmp_path / "made"

    def watch(function):
        def watched(*args, **kwargs):
            function(*args, **kwargs)
            states.append([file.read_text() for file in path.iterdir()] if path.exists() else [])

        return watched

    for name in ("fsync", "replace"):
        monkeypatch.setattr(module.os, name, watch(getattr(os, name)))
    path.mkdir()
    (path / "release.skdpgen").write_text("in full")
    with filled_folder(str(path)) as folder:
        for name in ("certificate.json", "synthetic.csv"):
            (folder / name).write_text("in full")
    assert [len(state) for state in states] == [1, 1, 2, 3]
    assert {text for state in states for text in state} == {"in full"}
    with pytest.raises(OSError, match="full"), filled_folder(str(tmp_path / "other")):
        raise OSError("The disk is full.")
    assert os.listdir(tmp_path) == ["made"]


def is_trial(*args):
    """Return whether a form tries made-up rows, before anything is spent."""
    return getattr(args[-1], "name", None) == "tried"


def fail(*args, **kwargs):
    if not is_trial(*args):
        raise TypeError("Dates with zones cannot be written")


def stop(*args, **kwargs):
    if not is_trial(*args):
        signal.raise_signal(signal.SIGTERM)


# Within training, from draws, and where rows are written.
@pytest.mark.parametrize("failure", [fail, stop])
@pytest.mark.parametrize(
    "place",
    [(Adam, "step"), (DPSWFlowSampler, "sample_batches"), (Form, "write")],
    ids=["learning", "drawing", "writing"],
)
def test_a_run_that_fails_after_its_release_goes_on_from_it_at_no_cost(
    folder, synthesize, monkeypatch, capsys, place, failure
):
    main(["budget", "init", "all.json", "--epsilon", "8", "--delta", "1e-4"])
    monkeypatch.setattr(*place, failure)
    assert synthesize("--budget", "all.json") == {fail: 1, stop: 143}[failure]
    printed = capsys.readouterr().err
    assert printed.count("ε = 5 ") == 1
    assert printed.endswith(
        "The release is kept: the same command with --release made/release.skdpgen and another "
        "--output goes on from it, at no cost.\n"
    )
    assert "error.release" not in printed
    assert sorted(os.listdir("made")) == ["certificate.json", "release.skdpgen"]
    assert main(["verify", "made/certificate.json"]) == 0
    os.rename("made", "first")
    monkeypatch.undo()
    monkeypatch.chdir(folder)
    spent = PrivacyBudget.from_file("all.json").spent
    options = ["--release", "first/release.skdpgen", "--budget", "all.json", "--n-rows", "7"]
    assert synthesize(*options) == 0
    assert len(pd.read_csv("made/synthetic.csv")) == 7
    assert PrivacyBudget.from_file("all.json").spent == spent > 3
    made, first = (
        Certificate.from_json(Path(name, "certificate.json").read_text())
        for name in ("made", "first")
    )
    assert made.digest == first.digest is not None


def test_a_release_that_the_disk_cannot_hold_is_kept_elsewhere(
    folder, synthesize, monkeypatch, capsys, tmp_path_factory
):
    other = tmp_path_factory.mktemp("other")
    monkeypatch.setattr(tempfile, "tempdir", str(other))
    write = os.fsync

    def is_full(handle):
        if str(folder) in os.readlink(f"/proc/self/fd/{handle}"):
            raise OSError("No space left on device")
        write(handle)

    monkeypatch.setattr(module.os, "fsync", is_full)
    assert synthesize() == 1
    (place,) = other.iterdir()
    assert sorted(file.name for file in place.iterdir()) == ["certificate.json", "release.skdpgen"]
    assert f"--release {place}/release.skdpgen" in capsys.readouterr().err


def test_a_file_that_holds_no_release_is_not_said_to_be_kept(folder, synthesize, capsys):
    Path("broken.skdpgen").write_text("nothing")
    assert synthesize("--release", "broken.skdpgen") == 1
    printed = capsys.readouterr().err
    assert "broken.skdpgen" in printed
    assert "is kept" not in printed
    assert "goes on from it" not in printed


def test_a_release_that_no_disk_can_hold_is_not_said_to_be_kept(
    folder, synthesize, monkeypatch, capsys
):
    def save(release, path):
        raise OSError("No space left on device")

    monkeypatch.setattr(PublishedRelease, "save", save)
    assert synthesize() == 1
    printed = capsys.readouterr().err
    assert "--release" not in printed
    assert "is kept" not in printed
    assert "was spent" in printed
    assert not os.path.exists("made/release.skdpgen")


def test_a_report_that_fails_leaves_the_rows(folder, synthesize, capsys):
    assert synthesize("--n-rows", "1") == 0
    assert "There is no report: synthetic needs at least 2 rows" in capsys.readouterr().err
    names = ["certificate.json", "release.skdpgen", "schema.json", "synthetic.csv"]
    assert sorted(os.listdir("made")) == names


@pytest.mark.parametrize(
    "name", ["skdpgen.cli.runs.make_report", "skdpgen.evaluation.Report.to_html"]
)
def test_no_error_of_a_report_loses_the_rows(folder, synthesize, monkeypatch, capsys, name):
    monkeypatch.setattr(name, lambda *args, **known: {}[()])
    assert synthesize() == 0
    assert "There is no report" in capsys.readouterr().err
    assert os.path.exists("made/synthetic.csv")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signals_leave_the_release_and_say_what_was_spent(
    folder, synthesize, capsys, monkeypatch, number
):
    # Processes in the background, and those of nohup, ignore some of them.
    ours = signal.default_int_handler
    before = signal.signal(number, ours)

    def stop(*args, **kwargs):
        signal.raise_signal(number)

    monkeypatch.setattr(DPSWFlowSampler, "sample_batches", stop)
    assert synthesize() == 128 + number
    assert "interrupted. Until then ε = 5 was spent. The release" in capsys.readouterr().err
    assert sorted(os.listdir("made")) == ["certificate.json", "release.skdpgen"]
    assert signal.signal(number, before) is ours


def test_signals_that_are_ignored_or_later_or_too_late_disturb_nothing():
    before, cleaned = signal.signal(signal.SIGHUP, signal.SIG_IGN), []

    def stop_twice():
        with interruptible():
            signal.raise_signal(signal.SIGHUP)  # as under nohup
            try:
                signal.raise_signal(signal.SIGTERM)
            finally:
                signal.raise_signal(signal.SIGINT)
                cleaned.append(True)

    try:
        with pytest.raises(Interrupted):
            stop_twice()
        with interruptible() as end:
            end()
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert cleaned


@pytest.mark.parametrize("start", ["=1+1", "+1", "-1", "@a", "\ta", "\ra"])
def test_formulas_are_escaped_on_request(start):
    frame = pd.DataFrame(
        {
            "=name": [start, "a=b", None],
            "category": pd.Categorical([start, "a", None]),
            "number": [-1.5, 2, None],
            "day": pd.to_datetime(["2020-01-01"] * 3),
        }
    )
    escaped = escape_formulas(frame)
    assert list(escaped) == ["'=name", "category", "number", "day"]
    assert escaped["'=name"].tolist()[:2] == ["'" + start, "a=b"]
    assert escaped["category"].tolist()[:2] == ["'" + start, "a"]
    assert escaped.isna().sum().tolist() == [1, 1, 1, 0]
    pd.testing.assert_frame_equal(escaped[["number", "day"]], frame[["number", "day"]])


def test_formulas_are_left_unless_it_is_asked_for(folder, synthesize):
    table = (folder / "private.csv").read_text().replace(",A", ",=A")
    (folder / "private.csv").write_text(table)
    schema = (folder / "schema.json").read_text().replace('"A"', '"=A"')
    (folder / "schema.json").write_text(schema)
    for options, level in (([], "=A"), (["--escape-formulas"], "'=A")):
        assert synthesize(*options) == 0
        assert set(pd.read_csv("made/synthetic.csv")["ward"]) == {level, "B"}


def with_level(level):
    return Schema({"age": Number(0, 9), "ward": Category(["a", level]), "id": Identifier()})


MANY = Schema(dict.fromkeys(map(str, range(2**14 + 1)), Boolean()))


@pytest.mark.parametrize(
    ("form", "schema", "n_rows", "match"),
    [
        (Form(".csv", encoding="latin-1"), with_level("Ł"), 9, "in latin-1 cannot hold column"),
        (Form(".xlsx"), with_level("B"), 2**20, "more than a sheet holds"),
        (Form(".parquet", escapes=True), with_level("B"), 9, "--escape-formulas is for CSV files"),
        (Form(".xlsx"), with_level("\x01"), 9, "'ward' as it is declared: .* cannot be used"),
        (Form(".xlsx"), with_level("b" * 32768), 9, "at most 32,767 char"),
        (Form(".xlsx"), MANY, 9, "16,385 columns are more than a sheet holds"),
    ],
)
def test_forms_that_cannot_hold_the_rows(form, schema, n_rows, match, capfd):
    with pytest.raises(ValueError, match=match):
        replace(form, schema=schema).check(n_rows)
    Form(".parquet", schema=with_level("\x01")).check(9)
    # openpyxl would print an error of its own.
    assert capfd.readouterr().err == ""


def test_a_sheet_gets_texts_for_what_it_cannot_hold(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    table = pd.DataFrame(
        {
            "zoned": pd.to_datetime(["2022-01-01 08:00", None]).tz_localize("Europe/Berlin"),
            "old": np.array(["1850-01-02", "2022-01-02"], dtype="M8[s]"),
            "long": [2**53 + 1, 7],
        }
    )
    Form(".xlsx").write([table], tmp_path / "x.xlsx")
    rows = list(openpyxl.load_workbook(tmp_path / "x.xlsx").active.values)
    assert rows[1] == ("2022-01-01 08:00:00+01:00", "1850-01-02 00:00:00", "9007199254740993")
    assert rows[2] == (None, datetime(2022, 1, 2), 7)


def test_a_full_disk_stops_a_command_before_anything_is_spent(
    folder, synthesize, capsys, monkeypatch
):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=10))
    assert synthesize() == 1
    printed = capsys.readouterr().err
    assert "its disk has 0 MB left" in printed
    assert "was spent" not in printed
    assert not (folder / "made").exists()


def test_a_key_of_too_few_values_stops_a_command_before_anything_is_spent(
    folder, synthesize, capsys
):
    schema = json.loads((folder / "schema.json").read_text())
    document = {"columns": schema, "rules": [{"type": "unique", "columns": ["ward"]}]}
    (folder / "schema.json").write_text(json.dumps(document))
    assert synthesize() == 1
    printed = capsys.readouterr().err
    assert "cannot be obeyed by" in printed
    assert "was spent" not in printed


def test_a_text_is_no_formula_of_a_workbook(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    pieces = [pd.DataFrame({"=a": ["=1+1", None], "n": [1, 2]})] * 2
    Form(".xlsx").write(pieces, tmp_path / "x.xlsx")
    rows = list(openpyxl.load_workbook(tmp_path / "x.xlsx").active.iter_rows())
    assert [[cell.value for cell in row] for row in rows[:3]] == [
        ["=a", "n"],
        ["=1+1", 1],
        [None, 2],
    ]
    assert len(rows) == 5
    assert rows[1][0].data_type == "s"


def test_lines_of_json_hold_numbers_as_they_are(tmp_path):
    cells = [1 / 3, 1.5e-13, 2**53 + 1, None, "a/b"]
    Form(".jsonl").write([pd.DataFrame({"x": cells}, dtype=object)], tmp_path / "x.jsonl")
    lines = (tmp_path / "x.jsonl").read_text().splitlines()
    assert [json.loads(line)["x"] for line in lines] == cells


def test_words_of_missing_values_are_found_by_their_marks(tmp_path):
    styles = {n: TextStyle(written=[mark]) for n, mark in zip("abc", MARKS, strict=False)}
    form = Form(".csv", styles=styles, absent={"b": ["-9"], None: ["-9", "none"]})
    pieces = [pd.DataFrame({name: [None] for name in "abc"})]
    form.write(pieces, tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text() == "a,b,c\n-9,none,\n"
    replace(form, suffix=".jsonl").write(pieces, tmp_path / "x.jsonl")
    assert (tmp_path / "x.jsonl").read_text() == '{"a": -9, "b": "none", "c": ""}\n'


@pytest.mark.parametrize(
    ("arguments", "modules"),
    [(["--help"], {"torch", "pandas", "numpy"}), (["verify", "none.json"], {"torch"})],
)
def test_commands_without_a_network_are_quick(arguments, modules):
    """It does not import torch, whatever the machine's speed."""
    code = f"import sys; from skdpgen.__main__ import main\ntry: main({arguments})\n"
    code += f"except SystemExit: pass\nprint(sorted({modules} & set(sys.modules)))"
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert printed.stdout.splitlines()[-1] == "[]"


def test_verify_prints_a_screen_or_all_or_json(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = [f"release {i}" for i in range(40)]
    texts = tuple(
        f"assumption {i} is as long as those of fits are, or longer" * 3 for i in range(9)
    )
    certificate = Certificate((GaussianDpEvent(30.0),) * 40, tuple(names), assumptions=texts)
    Path("certificate.json").write_text(certificate.to_json())

    assert main(["verify", "certificate.json"]) == 0
    short = capsys.readouterr().out
    n_hidden = len(texts) - short.count("Assumes:")
    assert len(short.splitlines()) <= 25
    assert max(map(len, short.splitlines())) <= 90
    assert f"Assumptions that are not shown: {n_hidden}." in short
    assert short.endswith(f"The events cost ε = {show(certificate.epsilon)}, as stated.\n")

    assert main(["verify", "certificate.json", "--full"]) == 0
    assert str(certificate) in capsys.readouterr().out

    assert main(["verify", "certificate.json", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["epsilon"] == certificate.epsilon
    assert found["certificate"] == json.loads(certificate.to_json())
    assert not found["is_signed"]


def test_types_of_parquet_files_come_back(folder):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rng = np.random.default_rng(0)
    days = np.datetime64("2020-01-01", "us") + rng.integers(0, 90, 300) * np.timedelta64(1, "D")
    table = pa.table(
        {
            "bytes": pa.array(rng.integers(0, 9, 300), pa.uint8()),
            "whole": pa.array(rng.integers(0, 90, 300), pa.int32()),
            "share": pa.array(rng.random(300), pa.float32()),
            "job": pa.array(rng.choice(["nurse", "cook"], 300)).dictionary_encode(),
            "text": pa.array(rng.choice(["a", "b"], 300)),
            "day": pa.array(days.astype("M8[D]")),
            "at": pa.array(days),
        }
    )
    parquet.write_table(table, "typed.parquet")
    given = ["--epsilon", "20", "--output", "made", "--quiet"]
    assert main(["synthesize", "typed.parquet", *given]) == 0
    made = parquet.read_schema("made/synthetic.parquet")
    for field in table.schema:
        if pa.types.is_dictionary(field.type):
            assert pa.types.is_dictionary(made.field(field.name).type)
        else:
            # Arrow writes pandas' strings as large ones.
            assert str(made.field(field.name).type).removeprefix("large_") == str(field.type)
