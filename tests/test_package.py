"""The package itself: names are there when they are asked for, and not before."""

import ast
import graphlib
import importlib
import inspect
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import skdpgen
from skdpgen import _documentation


def test_public_names_are_those_that_are_imported_for_tools():
    """Editors and type checkers see what is imported where nothing runs."""
    tree = ast.parse(inspect.getsource(skdpgen))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    shown = {alias.name: node.module for node in block.body for alias in node.names}
    assert {*shown, "__version__"} == set(skdpgen.__all__)
    for name, home in shown.items():
        assert getattr(skdpgen, name) is getattr(getattr(skdpgen, home), name), name


def test_names_that_are_not_there():
    assert set(skdpgen.__all__) <= set(dir(skdpgen))
    assert not hasattr(skdpgen, "nothing")
    assert not hasattr(skdpgen, "_nothing")
    with pytest.raises(ImportError, match="nothing"):
        from skdpgen import nothing  # noqa: F401


# Each import is the first one of the package. Between two, others' libraries stay: what they
# are asked for grows.
_IMPORTS = """
import sys
def forget():
    for name in [name for name in sys.modules if name.split(".")[0] == "skdpgen"]:
        del sys.modules[name]

import skdpgen
assert not {'numpy', 'torch', 'dp_accounting', 'autodp', 'ot'} & {*sys.modules}
skdpgen.base.BaseGenerator
forget()
from skdpgen import DPSWFlowSampler
assert not {'autodp', 'mpmath', 'matplotlib', 'ot', 'dask', 'pyspark'} & {*sys.modules}
forget()
import skdpgen.privacy
skdpgen.privacy.Curator
forget()
import skdpgen.evaluation
assert 'matplotlib' not in sys.modules
forget()
from skdpgen import *
DPSWFlowSampler(epsilon=2.0)
"""


def test_imports_in_a_fresh_process():
    subprocess.run([sys.executable, "-c", _IMPORTS], check=True)


def test_estimators_are_pickled_by_their_own_homes():
    generator = skdpgen.DPSlicedWassersteinGenerator(epsilon=2.0)
    assert pickle.loads(pickle.dumps(generator)).get_params() == generator.get_params()


def test_estimators_link_to_their_pages_once_there_is_a_site(monkeypatch):
    estimators = {
        "skdpgen.DPSWFlowSampler": skdpgen.DPSWFlowSampler(),
        "skdpgen.SliceSketch": skdpgen.SliceSketch(),
        "skdpgen.adaptation.DPSWDRowAdapter": skdpgen.adaptation.DPSWDRowAdapter(),
        "skdpgen.preprocessing.LowFrequencies": skdpgen.preprocessing.LowFrequencies(3),
    }
    for estimator in estimators.values():
        assert "href" not in estimator._repr_html_()
    monkeypatch.setattr(_documentation, "SITE", "https://example.org")
    for page, estimator in estimators.items():
        assert f'href="https://example.org/api/{page}.html"' in estimator._repr_html_()


SCRIPTS = [
    path
    for folder in ("benchmarks", "examples")
    for path in sorted((Path(__file__).parents[1] / folder).glob("*.py"))
]


@pytest.mark.skipif(not SCRIPTS, reason="needs the repository")
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_scripts_import_what_is_there(path):
    """Benchmarks are run by hand, and seldom."""
    tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    for node in tree:
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "skdpgen":
            home = importlib.import_module(node.module)
            for alias in node.names:
                if not hasattr(home, alias.name):
                    importlib.import_module(f"{node.module}.{alias.name}")


def test_no_import_of_the_package_is_circular():
    """Also not by an import within a function."""
    root = Path(skdpgen.__file__).parent
    below = {}
    for path in root.rglob("*.py"):
        name = ".".join(path.relative_to(root.parent).with_suffix("").parts)
        below[name.removesuffix(".__init__")] = path
    graph = {name: _find_imports(name, path, below) for name, path in below.items()}
    graphlib.TopologicalSorter(graph).prepare()


def _find_imports(name, path, below):
    """Return the modules of the package that a module imports, at the top or in a function."""
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            home = package.split(".")[: package.count(".") + 2 - node.level]
            home = ".".join([*home, *([node.module] if node.module else [])])
            names = (f"{home}.{alias.name}" for alias in node.names)
            found |= {full if full in below else home for full in names}
    return found & below.keys() - {name, "skdpgen"}
