"""The table of the papers has rows for each command of papers.py, and --seeds means one thing."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# The scripts are there in a clone, and not beside an installed package.
sys.path.append(str(ROOT / "benchmarks"))
papers = pytest.importorskip("papers")
TABLE = ROOT / "doc" / "benchmarks" / "data" / "papers.csv"


def test_each_command_has_rows_and_each_row_a_command(tmp_path, capsys, monkeypatch):
    found, items = papers.read(TABLE), papers.list_items()
    assert {command for command, _ in found} == {item.command for item in items if item.cases}
    papers.write(tmp_path / "papers.csv", found)
    assert (tmp_path / "papers.csv").read_text("utf-8") == TABLE.read_text("utf-8")
    monkeypatch.setattr(sys, "argv", ["papers.py", "--list"])
    papers.main()
    assert [line[:32].strip() for line in capsys.readouterr().out.splitlines()] == [
        item.command for item in items
    ]


def test_seeds_are_their_number_in_every_script():
    for path in [*ROOT.glob("benchmarks/*.py"), *ROOT.glob("examples/*.py")]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and "'--seeds'" in map(ast.unparse, node.args):
                names = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
                assert names["type"] == "int", path.name
                assert "nargs" not in names, path.name
