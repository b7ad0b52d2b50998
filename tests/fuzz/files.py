"""Cases of the command line: options, and files of tables, schemas and certificates."""

import contextlib
import io
import json
import os
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from unittest import mock

import pandas as pd
from hypothesis import strategies as st

from skdpgen.__main__ import main
from skdpgen.curator.curator import intercept_releases
from skdpgen.learners import interactions

from . import markers, world
from .markers import NUMBER, TEXT, WHOLE
from .oracle import fault_if

SCHEMA = {
    "age": {"type": "number", "lower": 0, "upper": 99, "decimals": 0},
    "ward": {"type": "category", "categories": ["A", "B"], "missing": True},
    "day": {"type": "date", "lower": "2000-01-01", "upper": "2020-12-31"},
}
_GOOD = [["31", "A", "2010-01-01"], ["52", "B", "2012-05-06"], ["17", "", "2001-02-03"]] * 8
# Cells of a CSV file as they are written.
CELLS = (
    *(TEXT, f'"{TEXT}', f'"{TEXT}"', f'"a""{TEXT}"', f"{TEXT}\0", f'"{TEXT}\n{TEXT}"'),
    *(str(NUMBER), str(WHOLE), "1e999", "-0", "1,5", '"1,5"', "1_000", "٣", "0x10", "NaN", "NA"),
    "",
    *(" ", "\t", "TRUE", "yes", "=1+1", "1987-06-05", "1987-13-45", "06/05/1987", "9" * 400),
    *("é", "\ufeff", "\u2028", "😀", "x" * 200_000, f"{TEXT};{TEXT}", "$5", "1987-06-05T00:00:00Z"),
)
_ENCODINGS = ("utf-8",) * 6 + ("utf-8-sig", "latin-1", "utf-16", "utf-16-le", "utf-32", "cp037")
_FORMS = ("plain",) * 12 + (
    *("empty", "header", "no header", "no newline", "ragged", "short", "blank lines", "crlf"),
    *("cr", "tabs", "semicolons", "index", "twice", "blank name", "odd bytes", "bytes", "folder"),
    *("parquet", "parquet", "broken parquet", "csv as parquet", "lacking", "quoted", "lists"),
)
_SCHEMAS = ("good",) * 8 + (
    *("none", "empty", "list", "broken", "infinite", "odd kind", "other", "bytes", "deep", "rule"),
    *("twice", "surrogate", "lacking", "string"),
)
# Options that are added to the usual ones, and what else they need.
OPTIONS = (
    *(("--json",), ("--quiet",), ("--strict",), ("--target", "ward"), ("--target", "nobody")),
    *(("--n-rows", "5"), ("--n-rows", "0"), ("--n-rows", "-1"), ("--seed", "3"), ("--seed", "-3")),
    *(("--encoding", "latin-1"), ("--encoding", "utf-16"), ("--encoding", "none")),
    *(("--encoding", "rot13"), ("--encoding", "idna"), ("--encoding", "base64"), ("--sep", ";")),
    *(("--sep", "\\t"), ("--sep", ""), ("--sep", "ab"), ("--sep", "é"), ("--sep", "\0")),
    *(("--header", "yes"), ("--drop", "ward"), ("--drop", "nobody"), ("--drop", "age,ward,day")),
    *(("--types", "age=integer"), ("--types", "age=none"), ("--types", "none.json")),
    *(("--decimal", ","), ("--decimal", "x"), ("--thousands", ","), ("--thousands", ".")),
    *(("--date-format", "%d.%m.%Y"), ("--date-format", "%Q"), ("--date-format", "\ud800")),
    *(("--person-column", "ward"), ("--person-column", "nobody"), ("--max-rows-per-person", "2")),
    *(("--relation", "replace_one"), ("--method", "flow"), ("--fail-on-warning",)),
    *(("--epsilon", "nan"), ("--epsilon", "-1"), ("--epsilon", "inf"), ("--epsilon", "1e-300")),
    *(("--delta", "0"), ("--delta", "1"), ("--delta", "nan"), ("--delta", "0.5")),
    *(("--output", "other"), ("--output", "."), ("--output", "no/made")),
    *(("--output", "private.csv"), ("--output", "\0"), ("--escape-formulas",)),
    *(("--budget", "none.json"), ("--budget", "private.csv")),
)


@dataclass(frozen=True)
class Files:
    """A call of the command line in a folder of files."""

    command: str = "synthesize"
    form: str = "plain"
    encoding: str = "utf-8"
    cells: tuple = ()
    schema: str = "good"
    options: tuple = ()

    def write(self, folder):
        """Write the files, and return the name of the table."""
        _write_schema(self.schema, folder / "schema.json")
        rows = [list(row) for row in _GOOD]
        for i, j, cell in self.cells:
            rows[i % len(rows)][j % 3] = cell
        return _write_table(self.form, self.encoding, rows, folder)

    def arguments(self, table):
        options = [part for option in self.options for part in option]
        usual = ["--epsilon", "5", "--delta", "1e-6"]
        usual += [] if self.schema == "none" else ["--schema", "schema.json"]
        if self.command == "synthesize":
            return ["synthesize", table, *usual, "--output", "made", "--anyway", *options]
        if self.command == "preview":
            return ["preview", table, *usual, *options]
        if self.command == "look":
            unknown = ("--n-rows", "--fail-on-warning", "--escape-formulas", "--method")
            options = [part for o in self.options if o[0] not in unknown for part in o]
            return ["look", table, *usual, "--output", "found.json", *options]
        if self.command == "verify":
            return ["verify", "schema.json" if self.schema != "none" else table]
        return ["budget", "show", "schema.json" if self.schema != "none" else table]


def judge_files(case):
    """Return "sound", "refused" or "spent"; raise a `Fault` for anything else."""
    before, releases = world.look(), []
    with tempfile.TemporaryDirectory() as folder:
        table = case.write(Path(folder))
        there = sorted(os.listdir(folder))
        code, printed = _run(case.arguments(table), folder, releases)
        made = [name for name in sorted(os.listdir(folder)) if name not in there]
        is_fit = case.command in ("synthesize", "look")
        is_noisy = is_fit and ("--epsilon", "inf") not in case.options
        # All else that is printed comes from public files, or is a name of a column.
        told = is_noisy and case.form != "no header" and markers.find_in_text(printed)
        fault_if(told, f"Something private is printed: {told}: {printed[:400]}")
        if code in (0, 4):
            _check_made(case, Path(folder), made, is_noisy)
        else:
            fault_if(made, f"{made} are there after {printed[:300]}")
    changed = world.differences(before, world.look())
    fault_if(changed, f"Global state is changed: {changed}.")
    if code in (0, 4):
        return "sound"
    fault_if(code not in (1, 2, 3), f"The exit code is {code}.")
    begin = ("skdpgen: error: ", "skdpgen: stopped: ")
    errors = [line for line in printed.splitlines() if line.startswith(begin)]
    # A preview that says why a synthesis would stop is no error.
    is_long = (code == 2 and "usage: " in printed) or (case.command == "preview" and code == 3)
    fault_if(len(errors) != 1 and not is_long, f"An error is no line: {printed[:400]}")
    lines = [line for line in printed.splitlines() if not line.startswith("skdpgen: warning: ")]
    told = ("types of these columns", "must be public")
    lines = [line for line in lines if not any(text in line for text in told)]
    lines = [line for line in lines if not line.startswith("{")]
    fault_if(not is_long and len(lines) != 1, f"An error is of several lines: {printed[:400]}")
    is_said = "was spent" in printed or "is charged" in printed
    fault_if(releases and not is_said, f"Spent and not said: {releases}: {printed[:400]}")
    return "spent" if releases else "refused"


def _run(arguments, folder, releases):
    def watch(curator, mechanism, release):
        releases.append(mechanism.name)
        return release(mechanism)

    with contextlib.ExitStack() as stack:
        quick = partial(_few_steps, interactions.fit_to_table)
        stack.enter_context(mock.patch.object(interactions, "fit_to_table", quick))
        stack.enter_context(contextlib.chdir(folder))
        printed = stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(contextlib.redirect_stderr(printed))
        stack.enter_context(intercept_releases(watch))
        try:
            code = main(arguments)
        except SystemExit as end:
            code = end.code
    return code, printed.getvalue()


def _few_steps(fit, *args, **kwargs):
    return fit(*args, **{**kwargs, "n_steps": 2, "batch_size": 16})


def _check_made(case, folder, made, is_noisy):
    is_made = case.command in ("synthesize", "look")
    fault_if(not is_made and made, f"{case.command} makes {made}.")
    files = [path for name in made for path in _list_files(folder / name)]
    for name in files:
        told = markers.find_in_text((folder / name).read_bytes())
        fault_if(is_noisy and told, f"{name} tells what is private: {told}.")
    if case.form == "plain" and folder / "made" / "synthetic.csv" in files:
        form = dict(option for option in case.options if len(option) == 2)
        sep = form.get("--sep", ",").replace("\\t", "\t")
        encoding = form.get("--encoding", "utf-8")
        frame = pd.read_csv(folder / "made" / "synthetic.csv", sep=sep, encoding=encoding)
        fault_if(not len(frame), "There are no synthetic rows.")
        if case.schema == "good" and "age" in frame:
            fault_if(not frame["age"].between(0, 99).all(), "A number is out of its bounds.")


def _list_files(path):
    return sorted(path.iterdir()) if path.is_dir() else [path]


def _write_schema(kind, path):
    if kind == "none":
        return
    texts = {
        "good": lambda: json.dumps(SCHEMA),
        "empty": lambda: "{}",
        "list": lambda: "[1, 2]",
        "string": lambda: '"age"',
        "broken": lambda: "{",
        "infinite": lambda: '{"age": {"type": "number", "lower": -Infinity, "upper": NaN}}',
        "odd kind": lambda: json.dumps({**SCHEMA, "age": {"type": "nothing", "more": 1}}),
        "other": lambda: json.dumps({"z": {"type": "boolean"}}),
        "bytes": lambda: None,
        "deep": lambda: "[" * 100_000,
        "rule": lambda: json.dumps({"columns": SCHEMA, "rules": [{"type": "ordered", "lower": 5}]}),
        "twice": lambda: '{"age": {"type": "boolean"}, "age": {"type": "boolean"}}',
        "surrogate": lambda: json.dumps(
            {**SCHEMA, "ward": {"type": "category", "categories": ["\ud800", "B"]}}
        ),
        "lacking": lambda: json.dumps({"age": SCHEMA["age"]}),
    }
    text = texts[kind]()
    path.write_bytes(b"\xff\xfe\0" if text is None else text.encode())


def _write_table(form, encoding, rows, folder):
    header, path = list(SCHEMA), folder / "private.csv"
    if "parquet" in form:
        return _write_parquet(form, rows, header, folder)
    if form == "folder":
        path.mkdir()
        return path.name
    if form in ("empty", "bytes"):
        path.write_bytes(b"" if form == "empty" else bytes(range(256)) * 20)
        return path.name
    changes = {
        "header": lambda: [header],
        "no header": lambda: rows,
        "ragged": lambda: [header, *rows, [*rows[0], TEXT, TEXT]],
        "short": lambda: [header, *rows, [TEXT]],
        "blank lines": lambda: [header, [""], *rows, ["", "", ""], [""]],
        "index": lambda: [header, *([str(i), *row] for i, row in enumerate(rows))],
        "twice": lambda: [["age", "ward", "age"], *rows],
        "blank name": lambda: [["", "ward", "day"], *rows],
        "lacking": lambda: [header[:2], *(row[:2] for row in rows)],
        "quoted": lambda: [[f'"{cell}"' for cell in row] for row in [header, *rows]],
    }
    lines = changes.get(form, lambda: [header, *rows])()
    sep = {"tabs": "\t", "semicolons": ";"}.get(form, ",")
    end = {"crlf": "\r\n", "cr": "\r"}.get(form, "\n")
    text = end.join(sep.join(row) for row in lines) + (end if form != "no newline" else "")
    content = text.encode(encoding, "replace")
    path.write_bytes(content + (b"\xff\xfe,\x81,\n" if form == "odd bytes" else b""))
    return path.name


def _write_parquet(form, rows, header, folder):
    path = folder / "private.parquet"
    frame = pd.DataFrame(rows, columns=header)
    if form == "broken parquet":
        path.write_bytes(b"PAR1" + TEXT.encode() * 9 + b"PAR1")
    elif form == "csv as parquet":
        frame.to_csv(path, index=False)
    else:
        frame["age"] = pd.to_numeric(frame["age"], errors="coerce")
        frame.to_parquet(path)
    return path.name


@st.composite
def files(draw):
    commands = ("synthesize",) * 12 + ("preview", "preview", "look", "verify", "budget")
    cells = st.tuples(st.integers(0, 23), st.integers(0, 2), st.sampled_from(CELLS))
    return Files(
        draw(st.sampled_from(commands)),
        draw(st.sampled_from(_FORMS)),
        draw(st.sampled_from(_ENCODINGS)),
        tuple(draw(st.lists(cells, max_size=3))),
        draw(st.sampled_from(_SCHEMAS)),
        tuple(draw(st.lists(st.sampled_from(OPTIONS), max_size=3))),
    )
