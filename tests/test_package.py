"""The package itself: names are there when they are asked for, and not before."""

import ast
import functools
import graphlib
import importlib
import importlib.util
import inspect
import os
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import skdpgen
from skdpgen import registry


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


# Each runs in a process of its own, the first before libraries that others share are imported.
FORKS = """
import os, sys
for i, code in enumerate(sys.argv[1:]):
    if i == 1:
        import dp_accounting, numpy, pandas, scipy.optimize, scipy.stats, sklearn.datasets, torch
    if not (child := os.fork()):
        exec(code)
        sys.stdout.flush()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, code
"""
needs_forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs forks")


IMPORTS = [
    "import skdpgen; assert 'torch' not in sys.modules; "
    "assert not {'numpy', 'dp_accounting', 'autodp', 'ot'} & {*sys.modules}; "
    "skdpgen.base.BaseGenerator",
    "from skdpgen import *; DPSWFlowSampler(epsilon=2.0)",
    "import skdpgen.privacy; skdpgen.privacy.Curator; "
    "leaves = ('auditing', 'engines.files'); "
    "assert not {f'skdpgen.{leaf}' for leaf in leaves} & {*sys.modules}; "
    "skdpgen.privacy.audit_fit, skdpgen.privacy.TableFile",
    "import skdpgen.auditing; assert callable(skdpgen.audit)",
    "from skdpgen import DPSWFlowSampler; "
    "others = {'autodp', 'mpmath', 'matplotlib', 'ot', 'dask', 'pyspark', 'polars', 'duckdb'}; "
    "assert not others & {*sys.modules}",
    "import skdpgen.evaluation; assert 'matplotlib' not in sys.modules",
]


def test_estimators_are_pickled_by_their_own_homes():
    generator = skdpgen.DPSlicedWassersteinGenerator(epsilon=2.0)
    assert pickle.loads(pickle.dumps(generator)).get_params() == generator.get_params()


SCRIPTS = [
    path
    for folder in ("benchmarks", "examples")
    for path in sorted((Path(__file__).parents[1] / folder).glob("*.py"))
]


@functools.cache
def list_imports(path):
    """List what a file imports from modules, at the top or in a function."""
    tree = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return [node for node in tree if isinstance(node, ast.ImportFrom)]


@pytest.mark.skipif(not SCRIPTS, reason="needs the repository")
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_scripts_import_what_is_there(path):
    """Benchmarks are run by hand, and seldom."""
    for node in list_imports(path):
        if node.module.split(".")[0] == "skdpgen":
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
    for node in list_imports(path):
        if node.level:
            home = package.split(".")[: package.count(".") + 2 - node.level]
            home = ".".join([*home, *([node.module] if node.module else [])])
            names = (f"{home}.{alias.name}" for alias in node.names)
            found |= {full if full in below else home for full in names}
    return found & below.keys() - {name, "skdpgen"}


LEAVES = ("cli", "auditing", "engines", "evaluation", "testing")
LEAVES += ("inference", "integrations", "metadata", "streams")
LEAVES += ("generators._schema_inference",)
# Those and the packages of generators that few use.
ALL_LEAVES = (*LEAVES, "adaptation", "histories")
FITS = """
import sys
import numpy as np, pandas as pd
from skdpgen.adaptation import *
from skdpgen.generators import *
from skdpgen.releases import *
X, y = np.random.default_rng(0).random((60, 4)), np.arange(60) % 2
frame = pd.DataFrame(X, columns=list("abcd"))
common = {"epsilon": 5.0, "bounds": (0, 1), "classes": [0, 1], "random_state": 0}
for fit in (
    lambda: DPSlicedWassersteinGenerator(n_steps=2, **common).fit(X, y),
    lambda: DPSWFlowSampler(release=SlicedRows(n_steps=2), **common).fit(X, y),
    lambda: DPSWFlowSampler(n_steps=2).fit(lambda: iter([frame])),
    lambda: DPSinkhornGenerator(release=SampledGradients(n_steps=2), **common).fit(X, y),
    lambda: DPAFGenerator(release=ForwardAggregates(n_steps=2), **common).fit(X, y),
    lambda: LDPEntropicGAN(n_steps=2, **common).fit(X, y),
    lambda: DPSWDDomainAdapter(n_steps=2, bounds=(0, 1)).fit(X, y, X_target=X),
):
    fitted = fit()
    if hasattr(fitted, "sample"):
        fitted.sample(3)
    loaded = {".".join(name.split(".")[:2]) for name in sys.modules}
    assert {"skdpgen.base", "skdpgen.curator", "skdpgen.mechanisms"} <= loaded
    assert not unused & loaded, fitted
"""
FIND = """
from skdpgen.registry import find_class
for name in names:
    assert find_class(name).__name__ == name
"""


LOADED = """
import sys, warnings
warnings.simplefilter("ignore")
import numpy as np, pandas as pd
from skdpgen import DPSWFlowSampler
rng = np.random.default_rng(0)
sampler = DPSWFlowSampler(epsilon=1.0, n_steps=3)
if data == "array":
    sampler.fit(rng.random((60, 2)), rng.integers(0, 2, 60))
else:
    columns = {"a": rng.integers(0, 9, 300), "b": rng.choice(["x", "y"], 300)}
    sampler.fit(pd.DataFrame({**columns, "c": rng.normal(size=300)}), target="b")
sampler.sample(3)
print(*(name for name in sys.modules if name.split(".")[0] == "skdpgen"))
"""
# Most lines and modules of the package that a fit loads; the numbers may only fall.
MOST_LOADED = {"array": (20_900, 100), "table": (28_700, 131)}


@functools.cache
def run_fresh():
    """Return what all codes print, each in a fork of one fresh process."""
    unused = {f"skdpgen.{name}" for name in (*LEAVES, "privacy")}
    unused |= {"torch._dynamo", "sympy", "matplotlib", "autodp", "ot"}
    classes = registry._classes.items()
    names = [name for name, cls in classes if cls.__module__.startswith("skdpgen")]
    codes = [*IMPORTS, f"unused = {unused}\n{FITS}"]
    codes += [f"names = {some}\n{FIND}" for some in (names, ["TableParticles"])]
    codes += [f"data = {data!r}\n{LOADED}" for data in MOST_LOADED]
    command = [sys.executable, "-W", "ignore", "-c", FORKS, *codes]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


@needs_forks
def test_imports_in_a_fresh_process():
    """Fits import no leaf: the core can be read, and runs, without them.

    Nor the compiler of torch, which has 800 modules, and takes a second and 70 MB. Classes of saved
    files are found without a fit.
    """
    run_fresh()


@needs_forks
def test_a_fit_loads_what_it_needs():
    """A reader of one fit need not know other generators, other data, and no leaf."""
    loaded = map(str.split, run_fresh().splitlines())
    for modules, most in zip(loaded, MOST_LOADED.values(), strict=True):
        files = (importlib.util.find_spec(name).origin for name in modules)
        n_lines = sum(len(Path(file).read_text(encoding="utf-8").splitlines()) for file in files)
        assert n_lines <= most[0], n_lines
        assert len(modules) <= most[1], modules
        leaves = {name for name in modules if ".".join(name.split(".")[1:]) in ALL_LEAVES}
        others = {name for name in modules if name.startswith("skdpgen.generators._")}
        assert not leaves
        assert others == {"skdpgen.generators._sliced_flow"}


# Methods that users call by name, and the leaves that they import.
LATE = {("tables/schema.py", "metadata")}


def test_no_module_of_the_core_imports_a_leaf():
    """Also not within a function; `privacy` and `__main__` give names of leaves to users."""
    root = Path(skdpgen.__file__).parent
    for path in root.rglob("*.py"):
        home = path.relative_to(root).with_suffix("").parts[0]
        if home in (*LEAVES, "privacy", "__init__", "__main__"):
            continue
        level = len(path.relative_to(root).parts)
        for node in list_imports(path):
            if node.level == level:
                names = [node.module] if node.module else [a.name for a in node.names]
                leaves = {name.split(".")[0] for name in names} & {*LEAVES, "privacy"}
                here = path.relative_to(root).as_posix()
                assert {(here, leaf) for leaf in leaves} <= LATE
