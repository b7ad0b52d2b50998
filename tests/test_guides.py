"""The guides hold what they say: their snippets run, and their commands are understood."""

import copy
import re
import shlex
import textwrap
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits

import skdpgen
from skdpgen import Boolean, Number, Schema
from skdpgen.cli.parser import make_parser
from skdpgen.preprocessing import LocalPrivatizer

ROOT = Path(__file__).parents[1]
DOC = ROOT / "doc"
SECTIONS = ("getting_started", "how_to", "privacy", "estimators")
PAGES = [DOC / "index.rst", *sorted(page for s in SECTIONS for page in (DOC / s).glob("*.rst"))]


def read_blocks(page, language):
    """Return the code blocks of a page in a language, without their indents."""
    pattern = rf"^( *)\.\. code-block:: {language}\n\n((?:\1 {{3}}.*\n|\s*\n)+)"
    found = re.findall(pattern, page.read_text(encoding="utf-8") + "\n", re.MULTILINE)
    return [textwrap.dedent(block) for _, block in found]


def few_digits(return_X_y=True):
    """Return so little of scikit-learn's digits that fits take no time."""
    X, y = load_digits(return_X_y=True)
    return X[:100, 20:32], y[:100]


SCHEMA = Schema({"age": Number(18, 90, decimals=0), "smoker": Boolean()})


def make_table(n=1500):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "income": rng.lognormal(10, 0.5, n).round(2),
            "balance": rng.normal(0, 5000, n).round(2),
            "job": rng.choice(["nurse", "clerk", "cook"], n),
            "smoker": rng.random(n) < 0.3,
            "admitted": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 366, n), "D"),
        }
    )


@pytest.fixture(scope="module")
def generator():
    sampler = skdpgen.DPSWFlowSampler(1.0, 1e-6, schema=SCHEMA, n_steps=20)
    return sampler.fit(make_table()[["age", "smoker"]])


def name_what_pages_speak_of(generator):
    """Return what a reader of the guides has at hand: a table, arrays, and generators."""
    rng = np.random.default_rng(1)
    table, (X, y) = make_table(), few_digits()
    half = len(X) // 2
    visits = table[["age", "smoker"]].assign(patient=rng.integers(2000, size=len(table)))
    names = dict(
        table=table, visits=visits, X=X, y=y, X_public=X[half:], y_public=y[half:], X_new=X
    )
    names |= dict(X_synthetic=X, y_synthetic=y, X_source=X[:half], y_source=y[:half])
    stays = table[["job", "income", "admitted"]].assign(patient=visits["patient"])
    patients = table[["smoker"]].assign(patient=visits["patient"]).drop_duplicates("patient")
    names |= dict(patients=patients, stays=stays)
    names |= dict(synthetic=table[100:], public=table[:100])
    names |= dict(
        X_target=X[half:], schema=SCHEMA, generator=copy.deepcopy(generator), skdpgen=skdpgen
    )
    privatizer = LocalPrivatizer(5.0, clip_norm=2**0.5).fit([[0.0, 0.0]])
    noised = privatizer.transform(rng.normal(size=(200, 2)))
    names |= dict(row=[[0.5, 0.5]], all_noised=noised, pd=pd)
    return names | {name: getattr(skdpgen, name) for name in skdpgen.__all__}


# Searches fit many candidates.
MARKS = {
    "searches": pytest.mark.slow,
    "engines": pytest.mark.engines,
    # .ci/engines installs them in an environment of their own.
    "platforms": pytest.mark.skipif(
        not all(map(find_spec, ("datasets", "mlflow", "snsynth"))), reason="needs the platforms"
    ),
}


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem, marks=MARKS.get(page.stem, []))
        for page in PAGES
        if read_blocks(page, "python")
    ],
)
def test_snippets_run_in_the_order_of_their_page(page, generator, few_steps, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sklearn.datasets.load_digits", few_digits)
    with warnings.catch_warnings():
        # So few rows give many warnings of bad quality; those that a page is about are in its text.
        warnings.simplefilter("ignore")
        names = name_what_pages_speak_of(generator)
        for folder in ("table", "visits"):
            (tmp_path / folder).mkdir()
            names[folder].to_parquet(f"{folder}/0.parquet")
        names["table"].to_csv("private.csv", index=False)
        for number, block in enumerate(read_blocks(page, "python"), 1):
            exec(compile(block, f"{page.name}, snippet {number}", "exec"), names)


def test_commands_are_understood():
    parser = make_parser()
    commands = []
    for page in [ROOT / "README.rst", *PAGES]:
        for block in read_blocks(page, "bash"):
            for line in re.sub(r" *\\\n *", " ", block).splitlines():
                if line.startswith("skdpgen ") and "--help" not in line:
                    commands.append(line)
    assert len(commands) > 8
    for command in commands:
        words = shlex.split(command, comments=True)
        assert parser.parse_args(words[1:]).command in command


def test_the_readme_is_short_and_its_figures_and_links_are_true():
    text = (ROOT / "README.rst").read_text(encoding="utf-8")
    assert text.count("\n") <= 120
    for link in re.findall(r"<([\w./]+)>`_", text) + re.findall(r"image:: (\S+)", text):
        assert (ROOT / link).exists(), link
    measured = pd.read_csv(DOC / "benchmarks/data/tables_eps1.csv", dtype=str).iloc[:9]
    scores = {row.Method: f"{row.LR}, {row.Trees}" for row in measured.itertuples()}
    shown = {
        "skdpgen, nothing declared": "particles, nothing declared",
        "skdpgen, bounds declared": "particles",
        "AIM of smartnoise-synth 1.0.8": "AIM",
        "MST of smartnoise-synth 1.0.8": "MST",
    }
    for label, method in shown.items():
        assert re.search(rf"^{label} +{scores[method]} ", text, re.MULTILINE), label
    assert f"(real rows: {scores['real rows']})" in text
