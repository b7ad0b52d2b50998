"""A column type of its own: one class, and an entry of the list of types."""

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

import skdpgen
from skdpgen import Category, DPSWFlowSampler, Number, Schema
from skdpgen.saving.serialization import load
from skdpgen.tables import Implies
from skdpgen.tables.columns import TYPES
from skdpgen.tables.columns.column_type import LevelColumn


@dataclass(frozen=True, repr=False)
class Hour(LevelColumn):
    """Hours of a day, as "07:00"."""

    missing: bool = False

    levels: ClassVar = tuple(f"{hour:02}:00" for hour in range(24))
    is_ordered, forms = True, ("time",)

    @classmethod
    def of_public(cls, column, missing, n_knots):
        return cls(missing) if column.dropna().isin(cls.levels).all() else None

    @classmethod
    def of_field(cls, field):
        return cls(field.missing)

    def to_field(self):
        return {"type": "time"}

    def describe_mismatch(self, dtype):
        return f"are no hours (dtype {dtype})", "write them as 07:00"

    def decode(self, codes, missing):
        return np.where(missing, None, np.array(self.levels, dtype=object)[codes * ~missing])


@pytest.fixture
def schema(monkeypatch):
    # Before categories, which would take hours for themselves in a public table.
    types = {"hour": Hour, **TYPES}
    monkeypatch.setattr("skdpgen.tables.schema.TYPES", types)
    monkeypatch.setattr("skdpgen.metadata.fields.TYPES", types)
    columns = {"at": Hour(missing=True), "shift": Category(["day", "night"]), "x": Number(0, 1)}
    return Schema(columns, [Implies({"at": ["23:00", "00:00"]}, {"shift": "night"})])


def test_a_type_goes_through_json_metadata_and_public_tables(schema):
    assert Schema.from_json(schema.to_json()) == schema
    assert Schema.from_metadata(schema.to_metadata())["at"] == Hour(missing=True)
    sql = Schema.from_metadata("CREATE TABLE t (at TIME NOT NULL, n INT)")
    assert sql["at"] == Hour()
    public = pd.DataFrame({"at": ["09:00", "17:00", None], "x": [0, 1, 0.5]})
    assert Schema.from_public(public)["at"] == Hour(missing=True)
    assert {*Schema.from_public(public)} == {"at", "x"}


def test_a_type_is_fitted_sampled_and_saved(schema, tmp_path):
    hours = np.array([*Hour.levels, None], dtype=object)
    codes = np.random.default_rng(0).integers(0, 25, 2000) // 3 * 3
    shift = np.where((codes < 8) | (codes > 20), "night", "day")
    table = pd.DataFrame({"at": hours[codes], "shift": shift, "x": codes / 24})
    fitted = DPSWFlowSampler(epsilon=50, delta=1e-6, schema=schema, random_state=0, n_steps=30)
    fitted.fit(table)
    rows = fitted.sample(800, random_state=0)
    assert rows["at"].isin([*Hour.levels, None]).all()
    assert rows["at"].isin(hours[::3]).mean() > 0.7
    assert (schema.share_obeying(rows) == 1).all()
    assert {*fitted.sample(20, where={"at": ["06:00", None]})["at"].dropna()} == {"06:00"}
    fitted.save(tmp_path / "fit.skdpgen")
    again = load(tmp_path / "fit.skdpgen")
    pd.testing.assert_frame_equal(again.sample(9, random_state=1), fitted.sample(9, random_state=1))


def test_other_modules_ask_no_column_for_its_class():
    root = Path(skdpgen.__file__).parent
    names = {cls.__name__ for cls in TYPES.values()}
    for path in root.rglob("*.py"):
        calls = [n for n in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(n, ast.Call)]
        asked = [n.args[1] for n in calls if getattr(n.func, "id", None) == "isinstance"]
        found = {getattr(node, "id", None) for classes in asked for node in ast.walk(classes)}
        assert path.parent == root / "tables" / "columns" or not found & names, path
