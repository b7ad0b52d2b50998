"""Mutation tests: each fault breaks a copy of the package, and a test must notice it.

``@pytest.mark.catches(target, old, new)`` stands above the test that must then fail, by an
assertion. ``param`` is the name of the parameters with which it fails. On an unbroken copy the same
tests pass.
"""

import ast
import builtins
import functools
import multiprocessing
import shutil
from pathlib import Path

import pytest

import skdpgen

from .fault import read_faults

pytestmark = pytest.mark.skipif(
    "forkserver" not in multiprocessing.get_all_start_methods(), reason="needs a fork server"
)

# Runs in a process of its own, which has imported others' libraries, but nothing of ours. The
# first line says which package is tested, so that no test of the wrong one goes unnoticed.
_RUN = """
import os, sys
os.chdir(folder)
sys.path.insert(0, folder)
output = os.open("output.txt", os.O_WRONLY | os.O_CREAT)
os.dup2(output, 1)
os.dup2(output, 2)
import pytest, skdpgen
print(skdpgen.__file__, flush=True)
sys.exit(pytest.main(["-q", "-x", "-s", "--import-mode=importlib", "-m", "", *tests]))
"""
_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(
    ["autodp.transformer_zoo", "dp_accounting", "pandas", "pytest", "sklearn", "torch"]
)
_PACKAGE = Path(skdpgen.__file__).parent
_TESTS = Path(__file__).parents[1]
FAULTS = [
    fault
    for path in sorted(_TESTS.rglob("test_*.py"))
    for fault in read_faults(path, path.relative_to(_TESTS.parent).as_posix())
]


def _copy_library(target):
    """Copy the package, the tests and their settings, and return the copy of the package."""
    ignore = shutil.ignore_patterns("__pycache__", "mutations")
    shutil.copytree(_PACKAGE, target / "skdpgen", ignore=ignore)
    shutil.copytree(_TESTS, target / "tests", ignore=ignore)
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(_TESTS.parent / name, target)
    return target / "skdpgen"


def _run(folder, *tests):
    """Run tests in a copy, and return the exit status and the output."""
    process = _SERVER.Process(target=exec, args=(_RUN, {"folder": str(folder), "tests": tests}))
    process.start()
    process.join(timeout=600)
    process.kill()
    imported, _, output = (folder / "output.txt").read_text().partition("\n")
    assert imported == str(folder / "skdpgen" / "__init__.py"), f"Tested {imported}.\n{output}"
    return process.exitcode, output


def test_each_fault_can_be_planted():
    trees = _parse_modules()
    for fault in FAULTS:
        assert fault.old != fault.new, fault
        fault.find(trees[fault.find_file(_PACKAGE)])


def test_faults_use_names_of_their_modules():
    """A mutant with an unknown name crashes, so that its test need not look at any property."""
    trees = _parse_modules()
    known = {path: set(vars(builtins)) | set(_find_names(tree)) for path, tree in trees.items()}
    for fault in FAULTS:
        path = fault.find_file(_PACKAGE)
        *_, new = fault.find(trees[path])
        nodes = [node for part in new for node in ast.walk(part) if isinstance(node, ast.Name)]
        bound = {node.id for node in nodes if isinstance(node.ctx, ast.Store)}
        assert {node.id for node in nodes} <= known[path] | bound, fault


@functools.cache
def _parse_modules():
    """Return the tree of each module that faults are planted in, by its path."""
    paths = {fault.find_file(_PACKAGE) for fault in FAULTS}
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def _find_names(tree):
    """Yield each name that a module reads, binds, imports or defines."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name


def test_parameters_that_catch_are_those_of_the_test(request):
    collected = request.session.collected
    functions = {name.partition("[")[0] for name in collected}
    tests = {fault.test for fault in FAULTS if fault.test.partition("[")[0] in functions}
    assert tests <= collected | functions, tests - collected


@pytest.mark.slow
def test_the_tests_pass_without_a_mutation(tmp_path):
    _copy_library(tmp_path)
    status, output = _run(tmp_path, *dict.fromkeys(fault.test for fault in FAULTS))
    assert status == pytest.ExitCode.OK, output


# The default run tries a fault that breaks all methods at once; ``-m slow`` tries the others.
QUICK = "mechanisms.base:Measurement.add_noise"


def _list_params():
    for fault in FAULTS:
        file, _, test = fault.test.removesuffix("]").partition("::test_")
        name = f"{Path(file).stem.removeprefix('test_')}: {test} ({fault.target})"
        is_quick = fault.target == QUICK and "check_noise" in test
        yield pytest.param(fault, id=name, marks=() if is_quick else pytest.mark.slow)


@pytest.mark.parametrize("fault", list(_list_params()))
def test_mutation_is_caught(fault, tmp_path):
    fault.apply(_copy_library(tmp_path))
    status, output = _run(tmp_path, fault.test)
    assert status == pytest.ExitCode.TESTS_FAILED, output
    # A mutant that merely crashes would prove nothing.
    said = ("AssertionError", "oracle.Fault: ", "DID NOT RAISE", "DID NOT WARN")
    assert any(what in output for what in said), output
