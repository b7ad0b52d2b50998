"""CSV files as people have them: refused for nothing in one sentence, read, or named."""

import json
import zipfile

import numpy as np
import pandas as pd
import pytest

from skdpgen import DPSWFlowSampler

pytestmark = pytest.mark.filterwarnings("ignore")

N = 900
rng = np.random.default_rng(0)
ages, is_odd = rng.integers(18, 90, N), rng.random(N) < 0.3
ROWS = "".join(f"{age},{age * 100}.5\n" for age in ages)
FILES = {
    "UTF-16": ("age,pay\n" + ROWS, "utf-16", "--encoding utf-16"),
    "Latin-1": ("größe,pay\n" + ROWS, "latin-1", "--encoding, such as latin-1"),
    "two lines of names": ("Person,,\nage,pay,\n" + ROWS, "utf-8", "at position 2, 3"),
    "a title": ("Report of 2020\n\nage,pay\n" + ROWS, "utf-8", "no row longer than that"),
    "a comment": ("# monday\nage,pay\n" + ROWS, "utf-8", "no row longer than that"),
    "an index": (",age\n" + ROWS, "utf-8", "at position 1"),
    "equal names": ("age, age \n" + ROWS, "utf-8", "at position 1, 2"),
    "Latin-1 cells": ("age,city\n1,Zürich\n", "latin-1", "--encoding, such as latin-1"),
    "an open quote": ('age,pay\n1,"2\n', "utf-8", ""),
    "no names": (ROWS, "utf-8", "looks like a record"),
    "longer rows": ("age\n" + ROWS, "utf-8", "no row longer than that"),
    "a longer row": ("age,pay\n1,2,3\n" + ROWS, "utf-8", "no row longer than that"),
    "names alone": ("age,pay\n", "utf-8", "has no rows"),
    "nothing": ("", "utf-8", "is no CSV file"),
    "blank lines": ("\n\n", "utf-8", "is no CSV file"),
    "spaces": ("age pay\n" + ROWS.replace(",", " "), "utf-8", "say by --sep"),
    "one row": ("age,pay\n1,2\n", "utf-8", "1 rows are too few"),
}
OBJECTS = {
    "an object": ('{"age": {"of": 1}}\n', "has lists or objects in column 'age'"),
    "a list": ('{"age": 1}\n{"age": [1, 2]}\n', "has lists or objects in column 'age'"),
    "another name": ('{"age": 1}\n{"age": 1, "pay": 2}\n', "with the names that the first one has"),
    "no object": ("[1, 2]\n", "with the names that the first one has"),
    "no JSON": ("age\n1\n", "with the names that the first one has"),
}


@pytest.mark.catches(
    "engines.files:TableFile._read_names_of", "not self._has_header", "False", param="no names"
)
@pytest.mark.parametrize("name", FILES)
def test_files_that_cannot_be_read_are_refused_for_nothing(
    name, folder, infer, capsys, monkeypatch
):
    def fit(*args, **kwargs):
        raise AssertionError("The table was fitted.")

    monkeypatch.setattr(DPSWFlowSampler, "fit", fit)
    text, encoding, advice = FILES[name]
    (folder / "private.csv").write_bytes(text.encode(encoding))
    assert infer() in (1, 3)
    said = capsys.readouterr().err
    assert advice in said
    assert said.count("\n") == 1
    assert not (folder / "made").exists()


@pytest.mark.parametrize("name", OBJECTS)
def test_lines_that_are_no_records_are_refused_for_nothing(name, folder, infer, capsys):
    text, advice = OBJECTS[name]
    (folder / "private.jsonl").write_text(text)
    assert infer(table="private.jsonl") == 1
    assert advice in capsys.readouterr().err


@pytest.mark.parametrize("suffix", [".csv.gz", ".zip", ".csv"])
def test_archives_are_refused_for_nothing(suffix, folder, infer, capsys):
    with zipfile.ZipFile(folder / f"table{suffix}", "w") as archive:
        archive.writestr("table.csv", "age,pay\n" + ROWS)
    assert infer(table=f"table{suffix}") == 1
    said = capsys.readouterr().err
    assert "unpack it" in said or "must end in .csv" in said


@pytest.mark.parametrize(
    ("start", "end", "encoding"),
    [
        ("", "\r\n", "utf-8"),
        pytest.param("", "\n\n", "utf-8", marks=pytest.mark.slow),
        pytest.param("", "\r", "utf-8", marks=pytest.mark.slow),
        ("\ufeff", "\n", "utf-8"),
    ],
    ids=["CRLF", "blank lines", "CR", "byte order mark"],
)
def test_line_ends_and_marks_change_nothing(start, end, encoding, folder, infer):
    text = start + ("age,pay\n" + ROWS).replace("\n", end)
    (folder / "private.csv").write_bytes(text.encode(encoding))
    assert infer() == 0
    made = pd.read_csv(folder / "made/synthetic.csv")
    assert list(made) == ["age", "pay"]
    assert made["age"].median() == pytest.approx(np.median(ages), abs=8)
    assert made["pay"].median() == pytest.approx(100 * np.median(ages), rel=0.2)
    written = (folder / "made/synthetic.csv").read_bytes().decode(encoding)
    assert written.startswith(start + "age,pay" + end[:1])


def mix(form, other):
    return [other.format(x) if odd else form.format(x) for x, odd in zip(ages, is_odd, strict=True)]


dates = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, N), unit="D")
# Columns whose values come back, with the numbers or categories that they are.
READ = {
    "pounds": (mix("£{}", "-£{}"), np.where(is_odd, -ages, ages)),
    "shares": (mix("{}%", "{} %"), ages),
    "brackets": (mix("{}", "({})"), np.where(is_odd, -ages, ages)),
    "thousands": (mix("1,2{}", "1,2{}.50"), 1200 + ages + is_odd / 2),
    "scientific": (mix("{}E-05", "{}.0e-5"), 1e-5 * ages),
    "missing": (mix("{}", "#N/A"), np.where(is_odd, np.nan, ages)),
    "dashes": (mix("{}", "-"), np.where(is_odd, np.nan, ages)),
    "postcodes": (mix("04109", "80331"), {"04109", "80331"}),
    "answers": (mix("ja", "nein"), {"ja", "nein"}),
    "letters": (mix("t", "f"), {"t", "f"}),
    "quoted": (mix("two\nlines", 'a "quote"'), {"two\nlines", 'a "quote"'}),
    "bands": (mix("10-19", ">70"), {"10-19", ">70"}),
    "bounds": (mix(">70", ">80"), {">70", ">80"}),
    "constant": (["x"] * N, {"x"}),
}
# Columns that are not read, and the cause for which they are named.
NAMED = {
    "spaces": (mix("1 2{}", "1 3{}"), "looks: look like numbers as 1 000"),
    "apostrophes": (mix("1'2{}.5", "1'3{}.25"), "looks: look like numbers as 1'000"),
    "points": (mix("1.2{}", "13.4{}"), "looks: look like numbers as 2.157"),
    "units": (mix("{} kg", "{}.5 kg"), "looks: look like quantities"),
    "times": (mix("12:{}", "13:{}"), "looks: look like times"),
    "days first": (dates.strftime("%d/%m/%Y"), "looks: look like dates as %d/%m/%Y"),
    "months first": (dates.strftime("%m/%d/%Y"), "looks: look like dates as %m/%d/%Y"),
    "two orders": (
        np.where(is_odd, dates.strftime("%d.%m.%Y"), dates.strftime("%Y/%m/%d")),
        "looks: look like dates",
    ),
    "months": (dates.strftime("%d-%b-%y"), "looks: look like dates"),
    "two decimals": (mix("{}.25", "{},25"), "other type: "),
    "minus after": (mix("{}.5", "{}.5-"), "other type: "),
    "empty": ([""] * N, "missing: 100%"),
    "long texts": ([f"{x}{'abc ' * 500}" for x in rng.random(N)], "no category"),
    "numbers of rows": (range(N), "identifiers"),
}


@pytest.fixture(scope="module")
def made(few_steps, tmp_path_factory):
    """One synthesis of all columns: the table, and the findings that the schema file has."""
    from skdpgen.__main__ import main

    folder = tmp_path_factory.mktemp("strange")
    frame = pd.DataFrame({name: list(given[0]) for name, given in {**READ, **NAMED}.items()})
    frame.to_csv(folder / "t.csv", index=False)
    options = ["--epsilon", "200", "--delta", "1e-5", "--seed", "1", "--quiet", "--anyway"]
    assert main(["synthesize", str(folder / "t.csv"), *options, "-o", str(folder / "made")]) == 0
    report = json.loads((folder / "made/schema.json").read_text())["report"]
    texts = pd.read_csv(folder / "made/synthetic.csv", dtype=str, keep_default_na=False)
    return texts, {row["column"]: row["finding"] for row in report}


@pytest.mark.parametrize("name", READ)
def test_cells_that_are_read_come_back(name, made):
    cells, real = made[0][name], READ[name][1]
    if isinstance(real, set):
        assert set(cells) <= real | {"other"}
        assert (cells != "other").mean() > 0.95
        return
    plain = cells.replace(r"^\((.*)\)$", r"-\1", regex=True).str.replace("[,£%]", "", regex=True)
    found = pd.to_numeric(plain, errors="coerce")
    assert found.isna().mean() == pytest.approx(np.isnan(real).mean(), abs=0.05)
    width = np.nanquantile(real, 0.9) - np.nanquantile(real, 0.1)
    for q in (0.1, 0.25, 0.5, 0.75, 0.9):
        assert found.quantile(q) == pytest.approx(np.nanquantile(real, q), abs=0.2 * width)


@pytest.mark.parametrize("name", NAMED)
def test_cells_that_are_lost_are_named(name, made):
    assert (made[1][name] or "").startswith(NAMED[name][1])


def test_columns_that_come_back_are_not_named(made):
    findings = {name: made[1][name] for name in READ if name != "constant"}
    assert not any(findings.values()), findings
