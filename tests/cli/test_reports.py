"""`skdpgen report`: a page of what `skdpgen synthesize` has written."""

import json

import numpy as np
import pandas as pd
import pytest

from skdpgen import __version__
from skdpgen.__main__ import main


@pytest.fixture
def made(folder):
    """Synthetic, public and private rows, and a certificate."""
    rng = np.random.RandomState(1)
    for name in ("made", "public"):
        frame = pd.DataFrame({"age": rng.randint(20, 80, 90), "ward": rng.choice(["A", "B"], 90)})
        frame.to_csv(f"{name}.csv", index=False)
    return ["report", "made.csv", "--output", "report.html"]


def test_a_page_and_its_numbers(made, synthesize, folder):
    assert synthesize() == 0
    found = ["--certificate", "made/certificate.json", "--schema", "made/schema.json"]
    options = [*found, "--target", "ward"]
    assert main([*made, "--reference", "public.csv", "--json", "r.json", *options]) == 0
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "<title>Synthetic rows: made.csv</title>" in page
    assert "they predict ward" in page
    assert 'class="alarm"' not in page
    results = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    assert (
        results["certificate"]["epsilon"]
        == json.loads((folder / "made/certificate.json").read_text())["epsilon"]
    )
    assert results["n_reference"] == 90
    assert results["rules"] == []


def test_from_a_synthesis_over_its_audit_to_a_page(synthesize, folder):
    assert synthesize() == 0
    options = "--schema schema.json --epsilon 5 --delta 1e-6 --n-runs 100 --seed 0".split()
    assert main(["audit", *options, "--n-rows", "300", "--output", "audit.json"]) == 0
    page = ["report", "made/synthetic.csv", "--output", "report.html", "--json", "r.json"]
    assert main([*page, "--audit", "audit.json"]) == 0
    results = json.loads((folder / "r.json").read_text(encoding="utf-8"))
    # Found beside the table, but not beside one that may be of another fit.
    assert results["released"] is not None
    (folder / "made/synthetic.csv").rename("made/other.csv")
    page = ["report", "made/other.csv", "--output", "other.html", "--json", "other.json"]
    assert main(page) == 0
    assert json.loads((folder / "other.json").read_text("utf-8"))["certificate"] is None
    audit = json.loads((folder / "audit.json").read_text(encoding="utf-8"))
    assert results["audit"] == audit | {"is_of_certificate": True}
    assert "<h3>Audit</h3>" in (folder / "report.html").read_text(encoding="utf-8")


def test_found_columns_are_a_schema_for_later_fits(synthesize, folder):
    assert synthesize() == 0
    (folder / "made").rename("first")
    assert synthesize(schema="first/schema.json") == 0
    certificate = json.loads((folder / "made/certificate.json").read_text())
    # Knots were found already.
    assert "value counts" not in [release["name"] for release in certificate["releases"]]


def test_rows_in_the_form_of_a_table_with_decimal_commas(infer, folder):
    table = pd.concat([pd.read_csv("private.csv").assign(cost=[1.25, 3.5, 7.75] * 100)] * 10)
    table.to_csv("private.csv", index=False, sep=";", decimal=",")
    assert infer() == 0
    page = ["report", "made/synthetic.csv", "--output", "report.html", "--json", "r.json"]
    for known in (["--schema", "made/schema.json"], ["--decimal", ","]):
        assert main([*page, *known]) == 0
        results = json.loads((folder / "r.json").read_text(encoding="utf-8"))
        columns = results["marginals"]["columns"]
        is_number = {column["column"]: column["is_number"] for column in columns}
        assert is_number == {"age": True, "ward": False, "cost": True}


def test_dates_of_a_schema_are_compared_as_dates(folder):
    days = pd.date_range("2020-01-01", periods=40, freq="7D")
    for name, shift in (("made.csv", 0), ("public.csv", 3)):
        rows = pd.DataFrame({"day": days + pd.Timedelta(days=shift)})
        rows.to_csv(name, index=False, date_format="%d.%m.%Y")
    schema = {"day": {"type": "date", "lower": "2020-01-01", "upper": "2020-12-31"}}
    (folder / "schema.json").write_text(json.dumps(schema))
    page = ["report", "made.csv", "--output", "report.html", "--json", "r.json"]
    options = ["--reference", "public.csv", "--schema", "schema.json", "--date-format", "%d.%m.%Y"]
    assert main([*page, *options]) == 0
    (column,) = json.loads((folder / "r.json").read_text())["marginals"]["columns"]
    assert column["is_number"]
    assert column["total_variation"] < 0.2


def test_private_rows_need_a_word(made, folder, capsys):
    assert main([*made, "--private", "private.csv"]) == 1
    assert "add --reads-private-rows" in capsys.readouterr().err
    assert not (folder / "report.html").exists()
    assert main([*made, "--reads-private-rows"]) == 1
    assert "goes with --private" in capsys.readouterr().err
    assert main([*made, "--private", "private.csv", "--reads-private-rows"]) == 0
    printed = capsys.readouterr().err
    # One line, without that of the code that warned.
    assert printed.startswith("skdpgen: warning: The report is computed from private rows.")
    assert printed.count("\n") == 1
    assert "This report was computed from PRIVATE rows" in (folder / "report.html").read_text()


def test_either_public_or_private_rows(made, capsys):
    with pytest.raises(SystemExit):
        main([*made, "--private", "private.csv", "--reference", "public.csv"])
    assert "not allowed with" in capsys.readouterr().err


def test_the_form_is_that_of_the_reference(made, folder):
    public = pd.read_csv("public.csv").assign(id=range(90))
    public.to_csv("public.tsv", sep="|", index=False)
    assert main([*made, "--reference", "public.tsv", "--sep", "|", "--drop", "id"]) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--reference", "private.csv", "--output", "private.csv"], "are the same file"),
        (["--output", "report.pdf"], "must end in .html"),
        (["--reference", "none.csv"], "There is no file none.csv"),
        (["--certificate", "none.json"], "none.json"),
        (["--certificate", "made.csv"], "The certificate is not valid JSON"),
        (["--audit", "made.csv"], "The audit is not valid JSON"),
    ],
)
def test_refusals(made, folder, capsys, options, message):
    assert main([*made, *options]) == 1
    assert message in capsys.readouterr().err
    assert not (folder / "report.html").exists()


def test_the_version(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"skdpgen {__version__}\n"
