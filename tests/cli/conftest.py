"""A small private table and its schema, in files."""

import json
import shutil
from functools import partial

import numpy as np
import pandas as pd
import pytest

from skdpgen.__main__ import main
from skdpgen.learners import interactions


def few_steps(fit, *args, **kwargs):
    return fit(*args, **{**kwargs, "n_steps": 2})


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder, the current one, where fits take a few steps only."""
    monkeypatch.setattr(interactions, "fit_to_table", partial(few_steps, interactions.fit_to_table))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")  # whatever terminal tests run in
    rng = np.random.RandomState(0)
    frame = pd.DataFrame({"age": rng.randint(20, 80, 300), "ward": rng.choice(["A", "B"], 300)})
    frame.to_csv("private.csv", index=False)
    schema = {
        "age": {"type": "number", "lower": 0, "upper": 99, "decimals": 0},
        "ward": {"type": "category", "categories": ["A", "B"]},
    }
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    return tmp_path


@pytest.fixture
def synthesize(folder):
    """The command, at ε = 5, quietly, of private.csv to a new folder, made."""

    def run(*options, table="private.csv", schema="schema.json"):
        shutil.rmtree("made", ignore_errors=True)
        given = ["--epsilon", "5", "--delta", "1e-6", "--output", "made", "--quiet"]
        given += [] if schema is None else ["--schema", schema]
        tables = [table] if isinstance(table, str) else table
        return main(["synthesize", *tables, *given, *options])

    return run


@pytest.fixture
def infer(synthesize):
    """The same without a schema, as whoever knows nothing would."""
    return partial(synthesize, "--epsilon", "20", schema=None)
