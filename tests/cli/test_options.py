"""What options say of the table, and of the fit."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

from skdpgen import DPSlicedWassersteinGenerator, DPSWFlowSampler
from skdpgen.__main__ import main
from skdpgen._cli import commands
from skdpgen._cli.parser import make_parser
from skdpgen.accounting.accountants import RELATIONS
from skdpgen.privacy import FitQualityWarning


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


# How a table is written, what is said of it, and whether prices and days are then understood.
FORMS = {
    "plain": (dict(), "utf-8", [], True, True),
    "with a mark of the byte order": (dict(), "utf-8-sig", [], True, True),
    "latin-1": (dict(), "latin-1", ["--encoding", "latin-1"], True, True),
    "utf-16": (dict(), "utf-16", ["--encoding", "utf-16"], True, True),
    "tabs": (dict(sep="\t"), "utf-8", ["--sep", r"\t"], True, True),
    "commas for decimals": (
        dict(sep=";", decimal=","),
        "utf-8",
        ["--sep", ";", "--decimal", ","],
        True,
        True,
    ),
    "commas for decimals, unsaid": (
        dict(sep=";", decimal=","),
        "utf-8",
        ["--sep", ";"],
        True,
        True,
    ),
    "of the US": (
        dict(float_format=lambda x: f"${x:,.2f}", date_format="%m/%d/%Y"),
        "utf-8",
        ["--thousands", ",", "--date-format", "%m/%d/%Y"],
        True,
        True,
    ),
    "of the US, unsaid": (
        dict(float_format=lambda x: f"${x:,.2f}", date_format="%m/%d/%Y"),
        "utf-8",
        [],
        True,
        False,
    ),
}


@pytest.mark.filterwarnings("ignore::skdpgen.privacy.FitQualityWarning")
@pytest.mark.parametrize("form", FORMS)
def test_forms_of_csv_files(folder, infer, form):
    written, encoding, options, has_prices, has_days = FORMS[form]
    make_table().to_csv("private.csv", index=False, encoding=encoding, **written)
    assert infer(*options, "--schema-out", "found.json") == 0
    found = read_json(folder / "found.json")["schema"]
    assert found["price"]["type"] == ("number" if has_prices else "category")
    assert found["day"]["type"] == ("date" if has_days else "category")
    assert set(found["city"]["categories"]) == {"Köln", "Bern"}
    made = pd.read_csv("made.csv")
    if has_prices:
        assert 600 < made["price"].median() < 18000
    if has_days:
        assert 2019 < pd.to_datetime(made["day"]).dt.year.median() < 2022


@pytest.mark.parametrize(
    ("text", "encoding", "match"),
    [
        ("a;b\n1;2\n", "utf-8", "--sep ';'"),
        ("a\tb\n1\t2\n", "utf-8", r"--sep '\t'"),
        ("größe,b\n1,2\n", "latin-1", "--encoding, such as latin-1"),
        ("a,b\nZürich,2\n", "latin-1", "--encoding, such as latin-1"),
        ("a,b\n1,2\n", "utf-16", "--encoding utf-16"),
        ("a, a \n1,2\n", "utf-8", "give each a name"),
        (",a\n1,2\n", "utf-8", "give each a name"),
        ("1,2\n1,2\n", "utf-8", "looks like a record"),
        ("a,b\n1,2,3\n", "utf-8", "no row longer"),
        ("a,b\n", "utf-8", "no rows"),
        ("", "utf-8", "is no CSV file"),
    ],
)
def test_bad_files_are_refused_with_what_to_do(folder, infer, capsys, text, encoding, match):
    (folder / "private.csv").write_bytes(text.encode(encoding))
    assert infer() == 1
    printed = capsys.readouterr().err
    assert match in printed
    assert printed.count("\n") == 1
    # Nothing was spent, or it would be said.
    assert "was spent" not in printed
    assert not (folder / "made.csv").exists()


@pytest.mark.parametrize("n_rows", [1, 20])
def test_few_rows_are_warned_of(folder, infer, capsys, n_rows):
    make_table(n_rows).to_csv("private.csv", index=False)
    assert infer("--epsilon", "1") == 0
    assert f"since counts of {n_rows} rows have noise" in capsys.readouterr().err
    assert len(pd.read_csv("made.csv")) == n_rows
    make_table(1500).to_csv("private.csv", index=False)
    assert infer() == 0
    assert "hardly more than chance" not in capsys.readouterr().err


def test_tables_with_tabs_and_texts(folder, synthesize, capsys):
    frame = pd.read_csv("private.csv")
    frame.to_csv("private.tsv", sep="\t", index=False)
    frame.to_csv("private.TXT", sep="|", index=False)
    assert synthesize(table="private.tsv") == 0
    assert synthesize(table="private.TXT") == 1
    assert "needs --sep" in capsys.readouterr().err
    assert synthesize("--sep", "|", "--output", "MADE.CSV", table="private.TXT") == 0
    assert len(pd.read_csv("MADE.CSV")) == 300


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
        (["--types", "town=date"], "--types names ['town']"),
        (["--types", "age=float"], "a type must be one of ['integer', 'number'"),
        (["--types", "age=integer"], "--types and --schema both have ['age']"),
        (["--types", "none.json"], "none.json"),
        (["--types", "schema.json"], "both have ['age', 'ward']"),
    ],
)
def test_options_that_make_no_sense(folder, synthesize, capsys, monkeypatch, options, match):
    monkeypatch.setattr(DPSlicedWassersteinGenerator, "fit", None)
    assert synthesize(*options) == 1
    printed = capsys.readouterr().err
    assert match in printed
    assert printed.count("\n") == 1


def test_columns_are_left_out(folder, synthesize, infer):
    assert synthesize("--drop", "ward") == 0
    assert list(pd.read_csv("made.csv")) == ["age"]
    frame = pd.read_csv("private.csv").assign(x="x", y="y", z="z")
    frame.to_csv("private.csv", index=False)
    assert synthesize("--drop", "x, y", "--drop", "z") == 0
    assert list(pd.read_csv("made.csv")) == ["age", "ward"]


def test_rules_of_a_schema_are_obeyed(folder, synthesize, capsys):
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
    options = ["--schema-out", "found.json", "--n-rows", "60"]
    assert synthesize(*options) == 0
    made = pd.read_csv("made.csv")
    assert (made["twice"] == 2 * made["age"]).all()
    assert (made["age"][made["ward"] == "B"] >= 50).all()
    assert not made.duplicated().any()
    assert read_json(folder / "found.json")["schema"]["rules"] == rules
    assert synthesize("--drop", "twice", "--n-rows", "20") == 0
    assert list(pd.read_csv("made.csv")) == ["age", "ward"]
    assert main("preview --schema schema.json --n-rows 300 --epsilon 1 --delta 1e-6".split()) == 0
    capsys.readouterr()
    assert synthesize("--drop", "age") == 1
    assert "'twice' cannot be computed without ['age']" in capsys.readouterr().err


def test_what_is_different_in_all_rows_is_written_at_once(folder, synthesize, monkeypatch):
    monkeypatch.setattr(commands, "_PIECE", 10)
    schema = json.loads((folder / "schema.json").read_text())
    rules = [{"type": "unique", "columns": ["age", "ward"]}]
    (folder / "schema.json").write_text(json.dumps({"columns": schema, "rules": rules}))
    assert synthesize("--n-rows", "100") == 0
    assert not pd.read_csv("made.csv").duplicated().any()


def test_rules_alone_are_obeyed_by_inferred_columns(folder, infer):
    frame = pd.read_csv("private.csv").assign(first=lambda frame: frame["age"] - 9)
    frame.to_csv("private.csv", index=False)
    rules = [{"type": "ordered", "lower": "first", "upper": "age"}]
    (folder / "rules.json").write_text(json.dumps({"columns": {}, "rules": rules}))
    assert infer("--schema", "rules.json", "--drop", "ward") == 0
    made = pd.read_csv("made.csv")
    assert (made["first"] <= made["age"]).all()


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
    assert infer(*options, "--schema-out", "found.json") == 0
    found = read_json(folder / "found.json")["schema"]
    assert set(found["zip"]["categories"]) == {"10115", "50667"}
    assert found["smoker"] == {"type": "boolean", "missing": True}
    assert found["visits"]["decimals"] == 0
    assert found["code"]["type"] == "number"


def test_types_do_without_a_schema(folder, synthesize, capsys):
    assert synthesize("--types", "age=integer", schema=None) == 1
    assert "['ward'] are neither in --schema nor in --types" in capsys.readouterr().err
    assert synthesize("--types", "age=integer", "--types", "ward=category", schema=None) == 0
    assert list(pd.read_csv("made.csv")) == ["age", "ward"]


@pytest.mark.parametrize(("column", "kind"), [("ward", "integer"), ("age", "boolean")])
def test_it_stops_where_a_column_is_not_what_it_was_said_to_be(folder, infer, capsys, column, kind):
    frame = pd.read_csv("private.csv").sample(2000, replace=True, random_state=0)
    frame.to_csv("private.csv", index=False)
    assert infer("--types", f"{column}={kind}") == 1
    printed = capsys.readouterr().err
    assert f"Column {column!r} was said to be of kind {kind!r}" in printed
    assert printed.endswith("was spent, on: column kinds.\n")
    assert not (folder / "made.csv").exists()


def test_types_of_parquet_are_checked_for_nothing(folder, infer, capsys, monkeypatch):
    pytest.importorskip("pyarrow")
    pd.read_csv("private.csv").to_parquet("private.parquet")
    options = {"table": "private.parquet"}
    assert infer("--types", "age=integer", "--types", "ward=category", **options) == 0
    monkeypatch.setattr(DPSlicedWassersteinGenerator, "fit", None)
    capsys.readouterr()
    for wrong, match in (("age=date", "no dates"), ("ward=number", "no numbers")):
        assert infer("--types", wrong, **options) == 1
        assert match in capsys.readouterr().err
    assert infer("--sep", ";", **options) == 1
    assert "--sep: private.parquet is a Parquet file" in capsys.readouterr().err


def test_a_seed_gives_the_same_rows_and_says_so(folder, synthesize, capsys, monkeypatch):
    monkeypatch.setattr(commands, "_PIECE", 40)
    options = ["--seed", "7", "--n-rows", "80", "--certificate", "c.json"]
    made = []
    for _ in range(2):
        assert synthesize(*options) == 0
        made.append(pd.read_csv("made.csv"))
        assert "protects nobody" in capsys.readouterr().err
    pd.testing.assert_frame_equal(*made)
    assert not made[0][:40].equals(made[0][40:].reset_index(drop=True)), "A piece came twice."
    assert read_json(folder / "c.json")["reproducible"] is True
    assert main(["verify", "c.json"]) == 0
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


def warn(self, *args, **kwargs):
    warnings.warn("Bad rows.", FitQualityWarning, stacklevel=1)
    warnings.warn("Bad rows.", FitQualityWarning, stacklevel=1)
    return type(self).plain_fit(self, *args, **kwargs)


def test_warnings_are_one_line_and_fail_on_request(folder, synthesize, capsys, monkeypatch):
    kind = DPSlicedWassersteinGenerator
    assert synthesize("--fail-on-warning") == 0
    monkeypatch.setattr(kind, "plain_fit", kind.fit, raising=False)
    monkeypatch.setattr(kind, "fit", warn)
    for options, code in (([], 0), (["--fail-on-warning"], 3)):
        capsys.readouterr()
        assert synthesize(*options) == code
        assert capsys.readouterr().err == "skdpgen: warning: Bad rows.\n"
        assert len(pd.read_csv("made.csv")) == 300


def test_what_was_found_is_written(folder, synthesize, capsys):
    assert synthesize("--schema-out", "found.json") == 0
    found = read_json(folder / "found.json")
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
    assert "category" not in capsys.readouterr().out
    options = ["--schema", "schema.json", "--epsilon", "1", "--delta", "1e-6", "--output", "b.csv"]
    assert main(["synthesize", "private.csv", *options]) == 0
    assert "category" in capsys.readouterr().out


def test_a_preview_of_columns_that_are_not_known(folder, capsys):
    options = ["preview", "--n-rows", "1000", "--epsilon", "1", "--delta", "1e-6"]
    noise = []
    for n_columns in ("1", "16"):
        assert main([*options, "--infer", "private", "--n-columns", n_columns]) == 0
        (line,) = [x for x in capsys.readouterr().out.splitlines() if "Counts of column kinds" in x]
        noise.append(float(line.partition("±")[2].split()[0]))
    assert noise[1] / noise[0] == pytest.approx(4, rel=1e-3)
    # What is known counts, too.
    assert main([*options, "--schema", "schema.json", "--n-columns", "3"]) == 1
    assert "--infer private" in capsys.readouterr().err
    assert main([*options, "--schema", "schema.json", "--n-columns", "1"]) == 1
    assert "must be at least 2" in capsys.readouterr().err
    assert main([*options, "--types", "age=integer", "--types", "ward=category"]) == 0
    assert "value ranges" in capsys.readouterr().out


def test_a_schema_of_a_public_table_in_any_form(folder, capsys):
    text = "größe;Tag;x\n1.234,5;31.01.2020;1\n2,5;01.02.2020;2\n"
    (folder / "public.csv").write_bytes(text.encode("latin-1"))
    options = ["--sep", ";", "--decimal", ",", "--thousands", ".", "--encoding", "latin-1"]
    options += ["--date-format", "%d.%m.%Y", "--drop", "x", "--output", "found.json"]
    assert main(["schema", "public.csv", *options]) == 0
    found = read_json(folder / "found.json")
    assert {name: kind["type"] for name, kind in found.items()} == {
        "größe": "number",
        "Tag": "date",
    }
    assert found["größe"]["upper"] == 1234.5
    assert found["Tag"]["upper"] == "2020-02-01"
    assert main(["schema", "public.csv", *options[:-1], "public.csv"]) == 1
    assert "are the same file" in capsys.readouterr().err


def test_the_relations_are_those_that_there_are():
    always = ["preview", "--n-rows", "9", "--epsilon", "1", "--delta", "1e-6"]
    for relation in RELATIONS:
        assert make_parser().parse_args([*always, "--relation", relation]).relation == relation
    with pytest.raises(SystemExit):
        make_parser().parse_args([*always, "--relation", "none"])
