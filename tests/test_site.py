"""The site: public names are shown whole, pages are short, links and pictures lead somewhere."""

import importlib
import inspect
import math
import pkgutil
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

import pytest

import skdpgen
from skdpgen.privacy import preview

ROOT = Path(__file__).parents[1]
DOC = ROOT / "doc"
API = [DOC / "api.rst", DOC / "api_authors.rst"]
SECTIONS = ["getting_started", "how_to", "privacy", "estimators", "theory", "benchmarks", "project"]
PAGES = [
    *(DOC / name for name in ("index.rst", "gallery.rst", "api.rst", "api_authors.rst")),
    *sorted(page for section in SECTIONS for page in (DOC / section).glob("*.rst")),
]
EXAMPLES = sorted((ROOT / "examples").glob("*_*.py"))
MODULES = [
    f"skdpgen.{module.name}"
    for module in pkgutil.iter_modules(skdpgen.__path__)
    if not module.name.startswith("_")
]
PACKAGES = ["skdpgen", *(m for m in MODULES if hasattr(importlib.import_module(m), "__all__"))]


def list_public():
    """Return the package, name and object of everything public, re-exports too."""
    return [
        (package, name, getattr(importlib.import_module(package), name))
        for package in PACKAGES
        for name in importlib.import_module(package).__all__
        if name != "__version__"
    ]


def list_shown():
    """Return the package, name and directive of each entry of the pages of the API."""
    package, directive, entries = None, None, []
    for line in "".join(page.read_text() for page in API).splitlines():
        if found := re.match(r"\.\. ([a-z]+):: *(\S*)", line):
            directive, argument = found.groups()
            if directive == "currentmodule":
                package = argument
            elif directive == "data":
                entries.append((package, argument, directive))
        elif directive == "autosummary" and (found := re.fullmatch(r"   (\w+)", line)):
            entries.append((package, found[1], directive))
        elif line and not line.startswith(" "):
            directive = None
    return entries


def list_files():
    """Return the files that a commit of the tree would hold, or all outside of a clone."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    except (OSError, subprocess.CalledProcessError):
        return {path for path in ROOT.rglob("*") if path.is_file()}
    return {path for name in listed.split("\0") if name and (path := ROOT / name).is_file()}


def test_every_public_name_is_on_the_api_page():
    # Names of the package itself are shown there, and once.
    shown = {
        (name, id(getattr(importlib.import_module(package), name)))
        for package, name, _ in list_shown()
    }
    lacking = sorted(
        f"{package}.{name}"
        for package, name, value in list_public()
        if (name, id(value)) not in shown
    )
    assert not lacking, f"Add to doc/api.rst, or take out of __all__: {', '.join(lacking)}."


def test_every_name_on_the_api_page_is_public():
    public = {(package, name) for package, name, _ in list_public()}
    assert len(list_shown()) > 100
    stale = [f"{p}.{name}" for p, name, _ in list_shown() if (p, name) not in public]
    assert not stale, f"On doc/api.rst, but not in __all__: {', '.join(stale)}."
    twice = {entry for entry in list_shown() if list_shown().count(entry) > 1}
    assert not twice, f"Several times on doc/api.rst: {twice}."


def test_names_are_shown_by_their_kind():
    wrong, undocumented = [], []
    for package, name, directive in list_shown():
        value = getattr(importlib.import_module(package), name)
        if (directive == "autosummary") != callable(value):
            wrong.append(f"{package}.{name}")
        # Sphinx shows nothing that has no docstring.
        if callable(value) and not inspect.getdoc(value):
            undocumented.append(f"{package}.{name}")
    assert not wrong, (
        "In doc/api.rst classes and functions belong under '.. autosummary::', anything else "
        f"under '.. data::': {', '.join(wrong)}."
    )
    assert not undocumented, f"No docstring: {', '.join(undocumented)}."


def test_pages_show_all_methods():
    is_chosen = any(":template:" in page.read_text() for page in API)
    assert not is_chosen, "By itself autosummary takes the template of a name's kind."
    template = (DOC / "_templates" / "autosummary" / "class.rst").read_text()
    options = dict(re.findall(r"^   :([a-z-]+):(.*)$", template, re.MULTILINE))
    assert {"members", "inherited-members"} <= options.keys()
    is_overruled = "autodoc_default_options" in (DOC / "conf.py").read_text()
    assert not is_overruled, "autodoc_default_options overrule the template."
    unshown = set(re.findall(r"\w+", options.get("exclude-members", "")))
    strangers = set(re.findall(r"\w+", options["inherited-members"]))
    hidden = set()
    for package, name, value in list_public():
        for owner in value.__mro__ if inspect.isclass(value) else ():
            for method, member in vars(owner).items():
                is_ours = owner.__module__.startswith("skdpgen") and inspect.isroutine(member)
                if not is_ours or method.startswith("_") or method in unshown:
                    continue
                # Their own docstring, or that of the method that they stand in for.
                if not inspect.getdoc(getattr(value, method)) or owner.__name__ in strangers:
                    hidden.add(f"{package}.{name}.{method}")
    assert not hidden, f"Their pages lack these, which have no docstring: {sorted(hidden)}."
    # Methods that are left out are scikit-learn's.
    assert all(re.fullmatch(r"set_\w+_request|get_metadata_routing", name) for name in unshown)


def test_every_picture_is_in_the_tree():
    files, lacking = list_files(), []
    for page in sorted(files):
        if page.suffix not in (".rst", ".py") or page.is_relative_to(ROOT / "tests"):
            continue
        pattern = r"^ *\.\. (?:\|.*\| )?(?:figure|image):: *(\S+)"
        for target in re.findall(pattern, page.read_text(), re.MULTILINE):
            folder = DOC if target.startswith("/") else page.parent
            if "://" not in target and (folder / target.lstrip("/")).resolve() not in files:
                lacking.append(f"{target} of {page.relative_to(ROOT)}")
    assert not lacking, f"Missing, or ignored by git: {', '.join(lacking)}."


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


def test_no_page_is_longer_than_1200_words():
    long = {
        str(page.relative_to(DOC)): n_words
        for page in PAGES
        if page not in API and (n_words := len(page.read_text().split())) > 1200
    }
    assert not long, f"Split these, or move what belongs elsewhere: {long}."


def test_links_between_pages_lead_somewhere():
    text = {page: page.read_text(encoding="utf-8") for page in PAGES}
    labels = {label for page in text.values() for label in re.findall(r"^\.\. _(\w+):", page, re.M)}
    labels |= {f"sphx_glr_auto_examples_{path.name}" for path in EXAMPLES} | {"search"}
    lost = []
    for page, content in text.items():
        found = re.findall(r":doc:`(?:[^`<]*<)?([^`<>]+)>?`", content)
        found += re.findall(r":link: (\S+)\n +:link-type: doc", content)
        found += re.findall(r"\.\. button-ref:: (\S+)", content)
        for target in found:
            folder = DOC if target.startswith("/") else page.parent
            if not (folder / f"{target.lstrip('/')}.rst").is_file():
                lost.append(f"{target} of {page.relative_to(DOC)}")
        found = re.findall(r":ref:`(?:[^`<]*<)?([^`<>]+)>?`", content)
        found += re.findall(r":link: (\S+)\n +:link-type: ref", content)
        lost += [f"{label} of {page.relative_to(DOC)}" for label in found if label not in labels]
        for target in re.findall(r'(?:href|src)="([^"]+)"', content):
            if "://" in target or not (page.parent / target).exists():
                lost.append(f"{target} of {page.relative_to(DOC)}")
    assert not lost, f"Links to nothing: {lost}."


def test_every_page_of_theory_cites_what_is_listed():
    pages = {page.stem: page.read_text() for page in (DOC / "theory").glob("*.rst")}
    listed = re.findall(r"^\.\. \[(\w+)\]", pages.pop("references"), re.MULTILINE)
    cited = {name: re.findall(r"\[(\w+)\]_", page) for name, page in pages.items()}
    assert sorted({key for keys in cited.values() for key in keys}) == sorted(listed)
    lacking = [name for name, keys in cited.items() if not keys and name != "index"]
    assert not lacking, f"No references: {lacking}."


def test_the_gallery_shows_every_example_once_with_a_stored_picture():
    gallery = (DOC / "gallery.rst").read_text()
    short = [path.name for path in EXAMPLES if path.name.startswith("plot_")]
    assert len(short) >= 19
    assert sorted(re.findall(r"/(plot_\w+\.py)", gallery)) == short
    for path in EXAMPLES:
        found = re.search(r"# sphinx_gallery_thumbnail_path = '(.+)'", path.read_text())
        assert found, f"No picture: {path.name}."
        assert (DOC / found[1]) in list_files(), found[1]


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
