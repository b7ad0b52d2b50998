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
from skdpgen import params


def test_public_names_are_those_that_are_imported_for_tools():
    """Editors and type checkers see what is imported where nothing runs."""
    tree = ast.parse(inspect.getsource(skdpgen))
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    shown = {alias.name: node.module for node in block.body for alias in node.names}
    assert set(shown) == set(skdpgen.__all__)
    for name, home in shown.items():
        module = importlib.import_module(f"skdpgen.{home}")
        assert getattr(skdpgen, name) is getattr(module, name), name


def test_twenty_names_are_shown_and_others_are_found():
    assert len(skdpgen.__all__) <= 20
    assert set(dir(skdpgen)) == {*skdpgen.__all__, "__version__"}
    from skdpgen import DPPCA, Implies, PrivatePCA, SliceSketch, Wasserstein

    homes = {"preprocessing", "tables", "encoders", "releases", "losses"}
    found = {c.__module__.split(".")[1] for c in (DPPCA, Implies, PrivatePCA, SliceSketch)}
    assert {*found, Wasserstein.__module__.split(".")[1]} == homes


def test_names_that_are_not_there():
    assert not hasattr(skdpgen, "nothing")
    assert not hasattr(skdpgen, "_nothing")
    with pytest.raises(ImportError, match="nothing"):
        from skdpgen import nothing  # noqa: F401


@pytest.mark.parametrize(
    "code",
    [
        "import skdpgen; assert 'torch' not in sys.modules; skdpgen.base.BaseGenerator",
        "import skdpgen; assert not {'numpy', 'dp_accounting', 'autodp', 'ot'} & {*sys.modules}",
        "from skdpgen import *; DPSWFlowSampler(epsilon=2.0)",
        "import skdpgen.privacy; skdpgen.privacy.Curator; "
        "leaves = ('auditing', 'federated', 'engines.files'); "
        "assert not {f'skdpgen.{leaf}' for leaf in leaves} & {*sys.modules}; "
        "skdpgen.privacy.audit_fit, skdpgen.privacy.FederatedFit",
        "import skdpgen.auditing; assert callable(skdpgen.audit)",
        "from skdpgen import DPSWFlowSampler; "
        "assert not {'autodp', 'mpmath', 'matplotlib', 'ot', 'dask', 'pyspark'} & {*sys.modules}",
        "import skdpgen.evaluation; assert 'matplotlib' not in sys.modules",
    ],
)
def test_imports_in_a_fresh_process(code):
    subprocess.run([sys.executable, "-c", f"import sys; {code}"], check=True)


def test_estimators_are_pickled_by_their_own_homes():
    generator = skdpgen.DPSlicedWassersteinGenerator(epsilon=2.0)
    assert pickle.loads(pickle.dumps(generator)).get_params() == generator.get_params()


def test_estimators_link_to_their_pages_once_there_is_a_site(monkeypatch):
    estimators = {
        "skdpgen.DPSWFlowSampler": skdpgen.DPSWFlowSampler(),
        "skdpgen.releases.SliceSketch": skdpgen.releases.SliceSketch(),
        "skdpgen.adaptation.DPSWDRowAdapter": skdpgen.adaptation.DPSWDRowAdapter(),
        "skdpgen.preprocessing.LowFrequencies": skdpgen.preprocessing.LowFrequencies(3),
    }
    for estimator in estimators.values():
        assert "href" not in estimator._repr_html_()
    monkeypatch.setattr(params, "SITE", "https://example.org")
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


LEAVES = ("_cli", "auditing", "engines", "evaluation", "federated", "testing")
FIT = """
import sys, warnings
import numpy as np, pandas as pd
from skdpgen import DPSWFlowSampler
warnings.simplefilter("ignore")
data = np.random.default_rng(0).random((60, 2))
X = {X}
DPSWFlowSampler(10.0, 1e-3, schema={schema!r}, n_steps=2).fit(X).sample(3)
print(*(name for name in sys.modules if name.startswith("skdpgen.")))
"""


@pytest.mark.parametrize(
    ("X", "schema"),
    [
        ("data", None),
        ("pd.DataFrame(data, columns=['a', 'b'])", "private"),
        ("lambda: iter([pd.DataFrame(data, columns=['a', 'b'])])", "private"),
    ],
    ids=["array", "table", "chunks"],
)
def test_a_fit_imports_no_leaf(X, schema):
    """The core can be read, and runs, without them."""
    code = FIT.format(X=X, schema=schema)
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    packages = {name.split(".")[1] for name in found.stdout.split()}
    assert {"base", "curator", "mechanisms"} <= packages
    assert not packages & {*LEAVES, "privacy"}


def test_no_module_of_the_core_imports_a_leaf():
    """Also not within a function; `privacy` and `__main__` give names of leaves to users."""
    root = Path(skdpgen.__file__).parent
    for path in root.rglob("*.py"):
        home = path.relative_to(root).with_suffix("").parts[0]
        if home in (*LEAVES, "privacy", "__init__", "__main__"):
            continue
        level = len(path.relative_to(root).parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.level == level:
                names = [node.module] if node.module else [a.name for a in node.names]
                assert not {name.split(".")[0] for name in names} & {*LEAVES, "privacy"}, path
