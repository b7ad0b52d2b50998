"""The site: public names are on the API page, examples in the gallery. Sphinx checks the links."""

import importlib
import math
import pkgutil
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pandas as pd
import pytest

import skdpgen
from skdpgen.privacy import preview, preview_tables

ROOT = Path(__file__).parents[1]
DOC = ROOT / "doc"
API = [DOC / "api.rst", DOC / "api_authors.rst"]
EXAMPLES = sorted((ROOT / "examples").glob("*_*.py"))
MODULES = [
    f"skdpgen.{module.name}"
    for module in pkgutil.iter_modules(skdpgen.__path__)
    if not module.name.startswith("_")
]
PACKAGES = ["skdpgen", *(m for m in MODULES if hasattr(importlib.import_module(m), "__all__"))]


def list_public():
    """Return the package and name of everything public, re-exports too."""
    return {
        (package, name)
        for package in PACKAGES
        for name in importlib.import_module(package).__all__
        if name != "__version__"
    }


def list_shown():
    """Return the package and name of each entry of the pages of the API."""
    package, entries, is_listing = None, [], False
    for line in "".join(page.read_text() for page in API).splitlines():
        if found := re.match(r"\.\. ([a-z]+):: *(\S*)", line):
            directive, argument = found.groups()
            is_listing = directive == "autosummary"
            package = argument if directive == "currentmodule" else package
            entries += [(package, argument)] if directive == "data" else []
        elif is_listing and (found := re.fullmatch(r"   (\w+)", line)):
            entries.append((package, found[1]))
        elif line and not line.startswith(" "):
            is_listing = False
    return entries


def test_the_api_page_shows_every_public_name_once():
    shown, public = list_shown(), list_public()
    assert len(shown) == len(set(shown)) > 100
    stale = set(shown) - public
    assert not stale, f"On doc/api.rst, but not in __all__: {sorted(stale)}."
    # Names of the package itself are shown there alone.
    own = {(name, id(getattr(importlib.import_module(package), name))) for package, name in shown}
    lacking = [
        (package, name)
        for package, name in sorted(public)
        if (name, id(getattr(importlib.import_module(package), name))) not in own
    ]
    assert not lacking, f"Add to doc/api.rst, or take out of __all__: {lacking}."


def list_lost_links(folder):
    """Return links of built pages to no file, and what they would load from elsewhere."""
    lost = []
    for page in set(folder.rglob("*.html")) - set((folder / "_static").rglob("*.html")):
        content = page.read_text(encoding="utf-8")
        loaded = re.findall(r'<(?:script|link|img)[^>]* (?:href|src)="(https?:[^"]+)', content)
        targets = re.findall(r'(?:href|src)="(?!\w+:|//)([^"#?]+)', content)
        lost += [f"{target} of {page.relative_to(folder)}" for target in loaded] + [
            f"{target} of {page.relative_to(folder)}"
            for target in targets
            if not (page.parent / unquote(target)).exists()
        ]
    return lost


def test_the_gallery_shows_every_example_once_with_a_stored_picture():
    gallery = (DOC / "gallery.rst").read_text()
    short = [path.name for path in EXAMPLES if path.name.startswith("plot_")]
    assert len(short) >= 19
    assert sorted(re.findall(r"/(plot_\w+\.py)", gallery)) == short
    for path in EXAMPLES:
        found = re.search(r"# sphinx_gallery_thumbnail_path = '(.+)'", path.read_text())
        assert found, f"No picture: {path.name}."
        assert (DOC / found[1]).is_file(), found[1]


def test_the_example_of_dask_says_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "dask", None)
    monkeypatch.setitem(sys.modules, "dask.dataframe", None)
    with pytest.raises(SystemExit, match=r"pip install 'skdpgen\[dask\]'"):
        runpy.run_path(str(ROOT / "examples" / "plot_dask.py"))


def test_cited_version_is_the_installed_one():
    cited = (ROOT / "CITATION.cff").read_text()
    version = re.search(r"^version: (.+)$", cited, re.MULTILINE)[1]
    assert skdpgen.__version__.split(".dev")[0] == version


@pytest.mark.slow
def test_the_pages_build_with_the_outputs_of_their_examples(tmp_path):
    pytest.importorskip("sphinx_gallery")
    shutil.copytree(ROOT, tmp_path / "tree", ignore=shutil.ignore_patterns(".git", "_build", "api"))
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-b", "html", "doc", "html"]
    built = subprocess.run(command, cwd=tmp_path / "tree", capture_output=True, text=True)
    assert built.returncode == 0, built.stderr[-3000:]
    examples = (tmp_path / "tree" / "html" / "auto_examples").glob("*.html")
    told = [page.name for page in examples if str(tmp_path) in page.read_text(encoding="utf-8")]
    assert not told, f"They show warnings, and where they ran: {told}."
    lost = list_lost_links(tmp_path / "tree" / "html")
    assert not lost, f"Links to nothing: {lost[:20]}."


def test_stated_noise_of_tables_is_as_it_is_computed():
    page = (DOC / "privacy" / "lost.rst").read_text(encoding="utf-8")
    for epsilon in (0.3, 1, 3, 10):
        row = [str(epsilon)]
        for n_columns in (5, 15, 40):
            levels = {f"column {i}": list("abcdefgh") for i in range(n_columns)}
            schema = skdpgen.Schema({name: skdpgen.Category(own) for name, own in levels.items()})
            sampler = skdpgen.DPSWFlowSampler(epsilon, 1e-6, schema=schema)
            tables = preview_tables(sampler, pd.DataFrame(levels).iloc[[0] * 20_000])
            row.append(f"{tables['noise'].iloc[0]:.0f}, {tables['noise'].iloc[-1]:.0f}")
        assert ",".join(f'"{cell}"' for cell in row) in page


def test_figures_in_the_text_of_pages_are_those_of_tables():
    def read(page):
        return " ".join((DOC / page).read_text(encoding="utf-8").split())

    def load(table):
        return pd.read_csv(DOC / f"benchmarks/data/{table}.csv", dtype=str)

    landing, adult = load("landing"), load("tables_eps1").iloc[:9].set_index("Method")
    scores = {method: f"{row.LR}, {row.Trees}" for method, row in adult.iterrows()}
    methods = ["particles, nothing declared", "AIM", "MST"]
    assert landing["ROC area"].str.strip("*").tolist()[:3] == [scores[m] for m in methods]
    assert f"(real rows: {scores['real rows']})" in read("index.rst")
    network = (
        load("images").set_index("Data").loc["MNIST, ε = 1", "Mean"].strip("*").split(" · ")[2]
    )
    assert f"scores {network} % on the real test images of MNIST" in read("index.rst")
    ours, theirs = landing["Seconds"][:2]
    times = read("benchmarks/tables.rst")
    assert f"{ours} by particles on Adult" in times
    assert f"AIM took {theirs}," in times
    digits = load("small_data").iloc[0]
    runs = {epsilon: sorted(digits[f"ε = {epsilon}"].split(", ")) for epsilon in (1, 3)}
    told = [f"{low} to {high} at ε = {epsilon}" for epsilon, (low, _, high) in runs.items()]
    page = read("getting_started/first_images.rst")
    assert all(text in page for text in told)
    assert "trained on the real rows, 0.962" in page
    assert "(0.962 by the real rows" in read("benchmarks/small_data.rst")


def test_stated_noise_for_persons_is_as_it_is_computed():
    """Noise is per 10/√2 records for ten columns, whose one-way tables weigh as two-way ones."""
    schema = skdpgen.Schema({f"column {i}": skdpgen.Category(list("abcde")) for i in range(10)})
    page = (DOC / "how_to" / "persons.rst").read_text(encoding="utf-8")
    for max_rows in (1, 2, 5, 10):
        sampler = skdpgen.DPSWFlowSampler(1.0, 1e-6, schema=schema, max_rows_per_person=max_rows)
        noise = preview(sampler, 10_000, 10, persons=True).sigma * 10 / math.sqrt(2)
        n_rows = 5_000 + 5_000 * min(max_rows, 5)
        row = [
            str(max_rows),
            f"{n_rows:,}",
            f"±{noise:.1f}",
            f"{noise / n_rows:.2%}".replace("%", " %"),
        ]
        assert ",".join(f'"{cell}"' for cell in row) in page
