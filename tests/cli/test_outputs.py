"""What is written: nothing over what is read, all at once, and never rows without a certificate."""

import os
import re
import signal
import stat
import subprocess
import sys

import pandas as pd
import pytest

from skdpgen import DPSlicedWassersteinGenerator
from skdpgen._cli import outputs as module
from skdpgen._cli.outputs import Interrupted, escape_formulas, interruptible, replaced_together


@pytest.fixture
def unread(folder, monkeypatch):
    """Whatever is refused is so before a row is read."""

    def fit(*args, **kwargs):
        raise AssertionError("The private table was read.")

    monkeypatch.setattr(DPSlicedWassersteinGenerator, "fit", fit)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    yield folder
    assert {path: path.read_bytes() for path in before} == before


def make_links(folder):
    os.symlink("private.csv", "link.csv")
    os.link("private.csv", "hard.csv")
    os.symlink("schema.json", "schema.csv")
    os.symlink(folder, "again")
    os.symlink("loop.csv", "loop.csv")
    (folder / "folder.csv").mkdir()
    os.mkfifo("pipe.csv")


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--output", "private.csv"], "the private table private.csv are the same file"),
        (["--output", "./again/private.csv"], "are the same file"),
        (["--output", "link.csv"], "are the same file"),
        (["--output", "hard.csv"], "are the same file"),
        (["--output", "schema.csv"], "--schema schema.json are the same file"),
        (["--certificate", "private.csv"], "--certificate private.csv and the private table"),
        (["--certificate", "made.csv"], "--certificate made.csv are the same file"),
        (["--schema-out", "again/schema.json"], "are the same file"),
        (["--schema-out", "c.json", "--certificate", "c.json"], "are the same file"),
        (["--output", "folder.csv"], "is a folder"),
        (["--output", "pipe.csv"], "is a device, a pipe"),
        (["--certificate", "/dev/null"], "is a device, a pipe"),
        (["--output", "loop.csv"], "--output loop.csv"),
        (["--output", "no/such/made.csv"], "there is no folder .*no/such"),
        (["--certificate", "no/c.json"], "--certificate no/c.json: there is no folder .*no"),
        (["--output", "made.xlsx"], "must end in .csv or .parquet"),
        (["--output", "made"], "must end in .csv or .parquet"),
        (["--output", "made.csv.gz"], "must end in .csv or .parquet"),
        (["--n-rows", "0"], "--n-rows must be at least 1"),
        (["--epsilon", "0"], "epsilon must be"),
        (["--epsilon", "nan"], "epsilon must be"),
        (["--delta", "1"], "delta must be"),
        (["--target", "AGE"], r"--target must be one of the columns \['age', 'ward'\]"),
        (["--seed", "-1"], "--seed must be"),
        (["--escape-formulas", "--output", "made.parquet"], "--escape-formulas is for .csv"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_read(
    unread, synthesize, capsys, options, match
):
    make_links(unread)
    assert synthesize(*options) == 1
    printed = capsys.readouterr()
    assert re.search(match, printed.err), printed.err
    assert printed.err.count("\n") == 1
    assert ".skdpgen-" not in printed.err
    assert printed.out == ""


def test_a_folder_and_a_file_that_cannot_be_written_to(unread, synthesize, capsys, monkeypatch):
    (unread / "made.csv").write_text("")
    refused = {os.path.realpath("made.csv")}
    monkeypatch.setattr(module.os, "access", lambda path, mode: path not in refused)
    assert synthesize() == 1
    assert "--output made.csv is read-only" in capsys.readouterr().err
    refused = {os.path.realpath(".")}
    assert synthesize() == 1
    assert f"the folder {os.path.realpath('.')} cannot be written to" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("table", "match"),
    [
        ("none.csv", "There is no file none.csv"),
        ("private.xls", "must end in .csv or .parquet or .tsv or .txt or .xlsx"),
        ("folder.csv", "is no regular file"),
        ("pipe.csv", "is no regular file"),
    ],
)
def test_tables_that_are_none(unread, synthesize, capsys, table, match):
    make_links(unread)
    assert synthesize(table=table) == 1
    assert match in capsys.readouterr().err


def test_links_are_followed_and_modes_kept(folder, synthesize):
    (folder / "far").mkdir()
    (folder / "far" / "old.csv").write_text("old")
    os.chmod("far/old.csv", 0o604)
    os.symlink("far/old.csv", "made.csv")
    os.symlink("far/new.json", "certificate.json")
    umask = os.umask(0o027)
    try:
        assert synthesize("--certificate", "certificate.json") == 0
    finally:
        os.umask(umask)
    assert os.path.islink("made.csv")
    assert os.path.islink("certificate.json")
    assert len(pd.read_csv("far/old.csv")) == 300
    assert stat.S_IMODE(os.stat("far/old.csv").st_mode) == 0o604
    assert stat.S_IMODE(os.stat("far/new.json").st_mode) == 0o640
    assert sorted(os.listdir("far")) == ["new.json", "old.csv"]


def write_new(paths):
    with replaced_together(paths) as temporary:
        for name in temporary:
            with open(name, "w") as file:
                file.write("new")


def read(path):
    return path.read_text() if path.exists() else None


@pytest.mark.parametrize("old", [None, "old"])
def test_rows_are_never_beside_the_certificate_of_others(tmp_path, monkeypatch, old):
    """Also where the process is killed between any two steps."""
    certificate, output = tmp_path / "c.json", tmp_path / "o.csv"
    for path in (certificate, output) if old else ():
        path.write_text(old)
    states = []

    def watch(function):
        def watched(*args):
            function(*args)
            states.append((read(certificate), read(output)))

        return watched

    monkeypatch.setattr(module.os, "replace", watch(os.replace))
    monkeypatch.setattr(module.os, "unlink", watch(os.unlink))
    write_new([certificate, output])
    assert states[-1] == ("new", "new")
    assert {found for found in states if found[1]} <= {("old", "old"), ("new", "new")}
    assert sorted(tmp_path.iterdir()) == [certificate, output]


@pytest.mark.parametrize("olds", [(), ("c.json",), ("o.csv",), ("c.json", "o.csv")])
@pytest.mark.parametrize("failing", [1, 2, 3, 4])
def test_a_failure_leaves_all_as_it_was(tmp_path, monkeypatch, olds, failing):
    for name in olds:
        (tmp_path / name).write_text("old")
    calls, replace = [], os.replace

    def fail(*args):
        calls.append(args)
        if len(calls) == failing:
            raise OSError("The disk is full.")
        replace(*args)

    monkeypatch.setattr(module.os, "replace", fail)
    if failing <= 2 + len(olds):
        with pytest.raises(OSError, match="disk is full"):
            write_new([tmp_path / "c.json", tmp_path / "o.csv"])
        assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict.fromkeys(
            olds, "old"
        )
    else:
        write_new([tmp_path / "c.json", tmp_path / "o.csv"])
        assert sorted(path.name for path in tmp_path.iterdir()) == ["c.json", "o.csv"]


def test_a_fit_that_fails_leaves_old_files(folder, synthesize, monkeypatch):
    def fail(*args, **kwargs):
        raise ValueError("no")

    monkeypatch.setattr(DPSlicedWassersteinGenerator, "sample", fail)
    (folder / "made.csv").write_text("old")
    assert synthesize("--certificate", "c.json") == 1
    assert sorted(os.listdir()) == ["made.csv", "private.csv", "schema.json"]
    assert (folder / "made.csv").read_text() == "old"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signals_leave_no_file_and_say_what_was_spent(
    folder, synthesize, capsys, monkeypatch, number
):
    # Processes in the background, and those of nohup, ignore some of them.
    ours = signal.default_int_handler
    before = signal.signal(number, ours)

    def stop(*args, **kwargs):
        signal.raise_signal(number)

    monkeypatch.setattr(DPSlicedWassersteinGenerator, "sample", stop)
    assert synthesize("--certificate", "c.json") == 128 + number
    printed = capsys.readouterr().err
    assert "no file was written. Until then ε = 5 was spent" in printed
    assert sorted(os.listdir()) == ["private.csv", "schema.json"]
    assert signal.signal(number, before) is ours


def stop_twice(cleaned):
    with interruptible():
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)
            cleaned.append(True)


def test_a_second_signal_does_not_disturb_the_cleaning_up():
    cleaned = []
    with pytest.raises(Interrupted):
        stop_twice(cleaned)
    assert cleaned


def test_signals_that_are_ignored_or_too_late():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible():
            signal.raise_signal(signal.SIGHUP)  # as under nohup
        with interruptible() as end:
            end()
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGHUP, before)


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
        assert set(pd.read_csv("made.csv")["ward"]) == {level, "B"}


def test_help_is_quick():
    """It imports neither torch nor pandas, whatever the machine's speed."""
    code = (
        "import sys; from skdpgen.__main__ import main\ntry: main(['--help'])\nexcept SystemExit:"
    )
    code += " print(sorted({'torch', 'pandas', 'numpy'} & set(sys.modules)))"
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert printed.stdout.splitlines()[-1] == "[]"
