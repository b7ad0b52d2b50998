"""Options about the table, and about the fit."""

import json
import re
import warnings

import numpy as np
import pandas as pd
import pytest

from skdpgen import DPSlicedWassersteinGenerator, DPSWFlowSampler
from skdpgen.__main__ import main
from skdpgen.accounting.accountants import RELATIONS
from skdpgen.cli import synthesis
from skdpgen.cli.outputs import collected_warnings
from skdpgen.cli.parser import make_parser
from skdpgen.messages import COMMAND_LINE, Message
from skdpgen.privacy import FitQualityWarning
from skdpgen.quality import CAUSES


def read_json(path):
    return json.loads(path.read_text(encoding="utf-8"))


def make_table(n=900):
    rng = np.random.RandomState(0)
    return pd.DataFrame(
        {
            "price": rng.uniform(1200, 9000, n).round(2),
            "city": rng.choice(["Köln", "Bern"], n),
            "day": pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.randint(0, 700, n), "D"),
        }
    )


US = dict(float_format=lambda x: f"${x:,.2f}", date_format="%m/%d/%Y")
COMMAS = dict(sep=";", decimal=",")
# How a table is written, in which encoding, and what is said of it.
FORMS = {
    "plain": ({}, "utf-8", []),
    "with a mark of the byte order": ({}, "utf-8-sig", []),
    "latin-1": ({}, "latin-1", ["--encoding", "latin-1"]),
    "utf-16": ({}, "utf-16", ["--encoding", "utf-16"]),
    "tabs": (dict(sep="\t"), "utf-8", ["--sep", r"\t"]),
    "commas for decimals": (COMMAS, "utf-8", ["--sep", ";", "--decimal", ","]),
    "commas for decimals, unsaid": (COMMAS, "utf-8", ["--sep", ";"]),
    "of the US": (US, "utf-8", ["--thousands", ",", "--date-format", "%m/%d/%Y"]),
    "of the US, unsaid": (US, "utf-8", []),
}


@pytest.mark.filterwarnings("ignore::skdpgen.privacy.FitQualityWarning")
@pytest.mark.parametrize(
    "form",
    [
        pytest.param(
            case,
            marks=()
            if case in ("commas for decimals", "commas for decimals, unsaid", "utf-16", "of the US")
            else pytest.mark.slow,
        )
        for case in FORMS
    ],
)
def test_forms_of_csv_files(folder, infer, form):
    written, encoding, options = FORMS[form]
    make_table().to_csv("private.csv", index=False, encoding=encoding, **written)
    assert infer(*options) == 0
    has_days = form != "of the US, unsaid"
    found = read_json(folder / "made/schema.json")["schema"]
    assert found["price"]["type"] == "number"
    assert found["day"]["type"] == ("date" if has_days else "category")
    assert set(found["city"]["categories"]) == {"Köln", "Bern"}
    # The form is that of the private table.
    decimal, encoding = written.get("decimal", "."), encoding.removesuffix("-sig")
    read = {"sep": written.get("sep", ","), "encoding": encoding, "decimal": decimal}
    made = pd.read_csv("made/synthetic.csv", **read)
    if written.get("float_format"):
        assert made["price"].str.fullmatch(r"\$(\d?\d,)?\d{3}\.\d\d").all()
        made["price"] = made["price"].str.replace("[$,]", "", regex=True).astype(float)
    assert decimal in (folder / "made/synthetic.csv").read_text(encoding)
    assert 600 < made["price"].median() < 18000
    if has_days:
        days = pd.to_datetime(made["day"], format=written.get("date_format"))
        assert 2019 < days.dt.year.median() < 2022


@pytest.mark.parametrize("n_rows", [1, 20])
def test_few_rows_stop_before_anything_is_spent(folder, infer, capsys, n_rows):
    make_table(n_rows).to_csv("private.csv", index=False)
    assert infer("--epsilon", "1") == 3
    printed = capsys.readouterr().err
    assert printed.startswith(
        f"skdpgen: stopped: {n_rows} rows are too few: at --epsilon 1, with 3"
    )
    assert printed.endswith("Nothing was spent; --anyway goes on.\n")
    assert not (folder / "made").exists()
    assert infer("--epsilon", "1", "--anyway") == 0
    assert f"counts of {n_rows} rows have noise" in capsys.readouterr().err
    assert len(pd.read_csv("made/synthetic.csv")) == n_rows
    make_table(1500).to_csv("private.csv", index=False)
    assert infer() == 0
    assert "hardly more than chance" not in capsys.readouterr().err


@pytest.mark.catches("cli.runs:list_doubts", "delta >= 1 / read.n_units", "False")
def test_a_delta_that_allows_to_publish_a_record_stops(folder, synthesize, capsys):
    assert synthesize("--delta", "0.01") == 3
    assert "--delta 0.01 is not below 1 / 300" in capsys.readouterr().err
    assert not (folder / "made").exists()
    assert synthesize("--delta", "0.01", "--anyway") == 0
    assert "allows to publish a record outright" in capsys.readouterr().err
    assert main(["look", "private.csv", "-o", "s.json", "--delta", "0.01"]) == 3
    assert not (folder / "s.json").exists()


def test_semicolons_and_declared_numbers_stop_until_decimals_are_said(folder, synthesize, capsys):
    """Only the first line and the schema are looked at; decimals that are inferred need no word."""
    for cost in ("1,5", "1.5"):
        table = pd.read_csv("private.csv")[["age", "ward"]].assign(cost=cost)
        table.to_csv("private.csv", index=False, sep=";")
        cost = {"type": "number", "lower": 0, "upper": 9, "decimals": 1}
        schema = read_json(folder / "schema.json") | {"cost": cost}
        (folder / "costs.json").write_text(json.dumps(schema))
        assert synthesize(schema="costs.json") == 3
        printed = capsys.readouterr().err
        assert "semicolons, so numbers may have decimal commas: say how cost are written" in printed
        table.to_csv("private.csv", index=False)
    table.assign(cost="1,5").to_csv("private.csv", index=False, sep=";")
    assert synthesize("--decimal", ",", schema="costs.json") == 0
    made = pd.read_csv("made/synthetic.csv", sep=";", decimal=",")
    assert made["cost"].mean() == pytest.approx(1.5, abs=0.5)
    # Whole numbers have no decimals, and those of columns that are inferred are found.
    assert synthesize() == 0


def test_separators_are_found_in_the_first_line(folder, synthesize):
    frame = pd.read_csv("private.csv")
    for suffix, sep in (("tsv", "\t"), ("TXT", "|"), ("csv", ";")):
        frame.to_csv(f"table.{suffix}", sep=sep, index=False)
        assert synthesize(table=f"table.{suffix}") == 0
        # It is read, and comes back, in the form of the private table.
        made = pd.read_csv(f"made/synthetic.{suffix.lower()}", sep=sep)
        assert (list(made), len(made)) == (["age", "ward"], 300)
    assert synthesize("--sep", ",", table="table.csv") == 1


@pytest.mark.parametrize(
    ("options", "match"),
    [
        (["--sep", ",,"], "--sep must be"),
        (["--sep", "a"], "--sep must be"),
        (["--encoding", "latin-99"], "--encoding latin-99 is unknown"),
        (["--decimal", ".."], "decimal must be"),
        (["--decimal", ",", "--thousands", ","], "must be different"),
        (["--date-format", "%d"], "date_format must contain"),
        (["--drop", "town"], "no columns ['town'] to drop"),
        (["--na-values", "town=-"], "na_values names ['town']"),
        (["--types", "town=date"], "--types names ['town']"),
        (["--types", "age=float"], "a type must be one of ['integer', 'number'"),
        (["--types", "age=integer"], "--types and --schema both have ['age']"),
        (["--types", "none.json"], "none.json"),
        (["--types", "schema.json"], "both have ['age', 'ward']"),
    ],
)
def test_options_that_make_no_sense(folder, synthesize, capsys, monkeypatch, options, match):
    monkeypatch.setattr(DPSWFlowSampler, "fit", None)
    assert synthesize(*options) == 1
    printed = capsys.readouterr().err
    assert match in printed
    assert printed.count("\n") == 1


def test_columns_are_left_out(folder, synthesize, infer):
    assert synthesize("--drop", "ward") == 0
    assert list(pd.read_csv("made/synthetic.csv")) == ["age"]
    frame = pd.read_csv("private.csv").assign(x="x", y="y", z="z")
    frame.to_csv("private.csv", index=False)
    assert synthesize("--drop", "x, y", "--drop", "z") == 0
    assert list(pd.read_csv("made/synthetic.csv")) == ["age", "ward"]


def test_placeholders_do_not_hide_numbers_and_codes_are_missing_if_said(folder, infer):
    """Dashes and words stand among numbers; -999 is a number until it is declared missing."""
    rng = np.random.default_rng(0)
    for name, placeholders in (("age", ["-", "?", "unknown", "#DIV/0!"]), ("code", [-999])):
        cells = rng.integers(20, 80, 900).astype(object)
        cells[:270] = rng.choice(placeholders, 270)
        frame = pd.DataFrame({name: cells, "ward": rng.choice(["-", "A"], 900)})
        frame.to_csv("private.csv", index=False)
        assert infer(*(["--na-values=-998,-999"] if name == "code" else [])) == 0
        assert read_json(folder / "made/schema.json")["schema"][name]["type"] == "number"
        made = pd.read_csv("made/synthetic.csv", keep_default_na=False)
        # The most frequent word stands for all.
        assert len({*made[name]} & {"-", "?", "unknown", "#DIV/0!", -999}) == 1
        ages = pd.to_numeric(made[name].replace(-999, None), errors="coerce")
        assert 0.2 < ages.isna().mean() < 0.4
        assert ages.min() > 0
        assert 35 < ages.median() < 65
        # Among texts, a dash is a category.
        assert 0.3 < (made["ward"] == "-").mean() < 0.7


def test_rules_of_a_schema_are_obeyed(folder, synthesize, capsys, monkeypatch):
    schema = json.loads((folder / "schema.json").read_text())
    schema["twice"] = {"type": "number", "decimals": 0}
    rules = [
        {"type": "derived", "column": "twice", "formula": "2 * age"},
        {"type": "implies", "when": {"ward": "B"}, "then": {"age": {"lower": 50, "upper": None}}},
        {"type": "unique", "columns": ["age", "ward"]},
    ]
    (folder / "schema.json").write_text(json.dumps({"columns": schema, "rules": rules}))
    frame = pd.read_csv("private.csv").assign(twice=0)
    frame.to_csv("private.csv", index=False)
    # In pieces, of which the rows of a key are all different.
    monkeypatch.setattr(synthesis, "_PIECE", 10)
    assert synthesize("--n-rows", "60") == 0
    made = pd.read_csv("made/synthetic.csv")
    assert (made["twice"] == 2 * made["age"]).all()
    assert (made["age"][made["ward"] == "B"] >= 50).all()
    assert not made.duplicated().any()
    assert read_json(folder / "made/schema.json")["schema"]["rules"] == rules
    assert synthesize("--drop", "twice", "--n-rows", "20") == 0
    assert list(pd.read_csv("made/synthetic.csv")) == ["age", "ward"]
    assert synthesize("--drop", "age") == 1
    assert "'twice' cannot be computed without ['age']" in capsys.readouterr().err


@pytest.mark.parametrize(
    "columns", [{}, {"columns": {}}, {"columns": {"ward": {"type": "unknown"}}}]
)
def test_rules_alone_are_obeyed_by_inferred_columns(folder, infer, columns):
    frame = pd.read_csv("private.csv").assign(first=lambda frame: frame["age"] - 9)
    frame.assign(twice=2 * frame["age"] + 0.5).to_csv("private.csv", index=False)
    rules: list = [{"type": "ordered", "lower": "first", "upper": "age"}]
    rules.append({"type": "derived", "column": "twice", "formula": "age + age + 0.5"})
    (folder / "rules.json").write_text(json.dumps({**columns, "rules": rules}))
    assert infer("--schema", "rules.json", "--drop", "ward") == 0
    made = pd.read_csv("made/synthetic.csv")
    assert (made["first"] <= made["age"]).all()
    assert (made["twice"] == 2 * made["age"] + 0.5).all()


def test_types_that_are_said(folder, infer):
    rng = np.random.RandomState(0)
    frame = pd.DataFrame(
        {
            "zip": rng.choice(["10115", "50667"], 1500),
            "smoker": rng.choice(["yes", "no"], 1500),
            "visits": rng.choice(["1.0", "2.0", "5.0"], 1500),
            "code": rng.choice(["007", "011"], 1500),
        }
    )
    frame.to_csv("private.csv", index=False)
    (folder / "types.json").write_text('{"visits": "integer", "code": "number"}')
    options = ["--types", "zip=category", "--types", "smoker=boolean", "--types", "types.json"]
    assert infer(*options) == 0
    found = read_json(folder / "made/schema.json")["schema"]
    assert set(found["zip"]["categories"]) == {"10115", "50667"}
    assert found["smoker"] == {"type": "boolean", "missing": True, "words": ["no", "yes"]}
    assert found["visits"]["decimals"] == 0
    assert found["code"]["type"] == "number"


@pytest.mark.parametrize(("column", "kind"), [("ward", "integer"), ("age", "boolean")])
def test_it_stops_where_a_column_is_not_what_it_was_said_to_be(folder, infer, capsys, column, kind):
    frame = pd.read_csv("private.csv").sample(2000, replace=True, random_state=0)
    frame.to_csv("private.csv", index=False)
    assert infer("--types", f"{column}={kind}") == 1
    printed = capsys.readouterr().err
    assert f"Column {column!r} was said to be of type {kind!r}" in printed
    assert "was spent, on: column kinds. The released values are not kept" in printed
    assert not (folder / "made").exists()


def test_types_of_parquet_are_checked_for_nothing(folder, infer, capsys, monkeypatch):
    pytest.importorskip("pyarrow")
    pd.read_csv("private.csv").to_parquet("private.parquet")
    options = {"table": "private.parquet"}
    assert infer("--types", "age=integer", "--types", "ward=category", **options) == 0
    monkeypatch.setattr(DPSWFlowSampler, "fit", None)
    capsys.readouterr()
    for wrong, match in (("age=date", "no dates"), ("ward=number", "no numbers")):
        assert infer("--types", wrong, **options) == 1
        assert match in capsys.readouterr().err
    assert infer("--sep", ";", **options) == 1
    assert "--sep: private.parquet is a Parquet file" in capsys.readouterr().err


def test_a_seed_gives_the_same_rows_and_says_so(folder, synthesize, capsys, monkeypatch):
    monkeypatch.setattr(synthesis, "_PIECE", 40)
    options = ["--seed", "7", "--n-rows", "80"]
    made = []
    for _ in range(2):
        assert synthesize(*options) == 0
        made.append(pd.read_csv("made/synthetic.csv"))
        assert "protects nobody" in capsys.readouterr().err
    pd.testing.assert_frame_equal(*made)
    assert not made[0][:40].equals(made[0][40:].reset_index(drop=True)), "A piece came twice."
    assert read_json(folder / "made/certificate.json")["reproducible"] is True
    assert main(["verify", "made/certificate.json"]) == 0
    assert "REPRODUCIBLE" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("method", "kind"), [("sliced", DPSlicedWassersteinGenerator), ("flow", DPSWFlowSampler)]
)
def test_the_method_is_the_one_that_is_asked_for(folder, synthesize, monkeypatch, method, kind):
    fitted, fit = [], kind.fit

    def watch(self, *args, **kwargs):
        fitted.append(type(self))
        return fit(self, *args, **kwargs)

    monkeypatch.setattr(kind, "fit", watch)
    assert synthesize("--method", method) == 0
    assert fitted == [kind]


def test_warnings_are_one_line_and_fail_on_request(folder, synthesize, capsys, monkeypatch):
    fit = DPSWFlowSampler.fit

    def warn(self, *args, **kwargs):
        for _ in range(2):
            warnings.warn("Bad rows.", FitQualityWarning, stacklevel=1)
        return fit(self, *args, **kwargs)

    assert synthesize("--fail-on-warning") == 0
    monkeypatch.setattr(DPSWFlowSampler, "fit", warn)
    for options, code in (([], 0), (["--fail-on-warning"], 4)):
        capsys.readouterr()
        assert synthesize(*options) == code
        assert capsys.readouterr().err == "skdpgen: warning: Bad rows.\n"
        assert len(pd.read_csv("made/synthetic.csv")) == 300


def test_found_schema_is_written(folder, synthesize):
    assert synthesize() == 0
    found = read_json(folder / "made/schema.json")
    # With knots, and cuts between them, that were found, beside what was declared.
    declared = read_json(folder / "schema.json")
    age = found["schema"]["age"]
    assert age.keys() - declared["age"].keys() == {"knots", "cuts"}
    assert {**found["schema"], "age": {k: age[k] for k in declared["age"]}} == declared
    assert [(row["column"], row["kind"]) for row in found["report"]] == [
        (name, kind["type"]) for name, kind in declared.items()
    ]
    assert found["report"][0]["lower"] == declared["age"]["lower"]
    assert found["report"][0]["noise"] > 0


def test_a_schema_of_a_public_table_in_any_form(folder, capsys):
    text = "größe;Tag;x\n1.234,5;31.01.2020;1\n2,5;01.02.2020;2\n"
    (folder / "public.csv").write_bytes(text.encode("latin-1"))
    options = ["--sep", ";", "--decimal", ",", "--thousands", ".", "--encoding", "latin-1"]
    options += ["--date-format", "%d.%m.%Y", "--drop", "x", "--output", "found.json"]
    assert main(["schema", "public.csv", *options]) == 0
    assert "must be public" in capsys.readouterr().err
    found = read_json(folder / "found.json")
    assert {name: kind["type"] for name, kind in found.items()} == {
        "größe": "number",
        "Tag": "date",
    }
    assert found["größe"]["upper"] == 1234.5
    assert found["Tag"]["upper"] == "2020-02-01"
    assert main(["schema", "public.csv", *options[:-1], "public.csv"]) == 1
    assert "are the same file" in capsys.readouterr().err


def test_the_relations_are_those_that_there_are(capsys):
    always = ["preview", "private.csv", "--epsilon", "1"]
    for relation in RELATIONS:
        assert make_parser().parse_args([*always, "--relation", relation]).relation == relation
    with pytest.raises(SystemExit):
        make_parser().parse_args([*always, "--relation", "none"])
    # Without the usage, which is longer than a screen.
    assert capsys.readouterr().err.count("\n") == 1


def test_remedies_are_options_of_the_command_line():
    """Code that a warning gives is no remedy of somebody without Python."""
    options = {
        o
        for a in make_parser()._subparsers._group_actions[0].choices.values()
        for o in a._option_string_actions
    }
    for code in CAUSES.keys() - {"clipped"}:  # of estimates, for which there is no command
        text = Message(CAUSES[code], {"columns": "'x'"}).write(COMMAND_LINE)
        assert not re.findall(r"[A-Za-z]\(|\w=[\w(\['.]", text.replace("NAME=category", ""))
        assert options.issuperset(re.findall(r"--[a-z-]+", text))


def test_warnings_are_in_words_of_the_command_line():
    with collected_warnings() as caught:
        message = Message("Declare {column!r}, as {thousands}.", {"column": "{x}"})
        warnings.warn(FitQualityWarning(message), stacklevel=1)
    assert [str(w) for w in caught] == ["Declare '{x}', as --thousands ' '."]
    assert isinstance(caught[0], FitQualityWarning)
    assert str(message) == "Declare '{x}', as Unknown(thousands=' ')."


def test_a_schema_with_other_columns_names_the_option(synthesize, folder, capsys):
    schema = json.loads((folder / "schema.json").read_text())
    (folder / "other.json").write_text(json.dumps(schema | {"wrd": {"type": "boolean"}}))
    assert synthesize(schema="other.json") == 1
    message = capsys.readouterr().err
    assert "lacks columns ['wrd']" in message
    assert "remove them from --schema" in message
