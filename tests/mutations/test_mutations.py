"""Mutation tests: each fault breaks a copy of the package, and a test must notice it.

A fault edits one object of the package and names the test that must then fail, by an assertion. On
an unbroken copy the same tests pass. The faults stand in ``faults``, in one file for each part of
the package.
"""

import ast
import builtins
import functools
import multiprocessing
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import skdpgen

from .faults import KINDS, LISTS

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
FAULTS = KINDS["privacy"] | KINDS["function"]


def _copy_library(target):
    """Copy the package, the tests and their settings, and return the copy of the package."""
    ignore = shutil.ignore_patterns("__pycache__", "mutations")
    shutil.copytree(_PACKAGE, target / "skdpgen", ignore=ignore)
    shutil.copytree(Path(__file__).parents[1], target / "tests", ignore=ignore)
    settings = _PACKAGE.parent / "pyproject.toml"
    if settings.exists():
        shutil.copy(settings, target)
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


def test_no_fault_hides_another():
    assert len(FAULTS) == sum(len(faults) for lists in LISTS.values() for faults in lists)


def test_each_fault_can_be_planted():
    trees = _parse_modules()
    for name, fault in FAULTS.items():
        assert fault.old != fault.new, name
        fault.find(trees[fault.find_file(_PACKAGE)])


def test_faults_use_names_of_their_modules():
    """A mutant with an unknown name crashes, so that its test need not look at any property."""
    trees = _parse_modules()
    known = {path: set(vars(builtins)) | set(_find_names(tree)) for path, tree in trees.items()}
    for name, fault in FAULTS.items():
        path = fault.find_file(_PACKAGE)
        *_, new = fault.find(trees[path])
        nodes = [node for part in new for node in ast.walk(part) if isinstance(node, ast.Name)]
        bound = {node.id for node in nodes if isinstance(node.ctx, ast.Store)}
        assert {node.id for node in nodes} <= known[path] | bound, name


@functools.cache
def _parse_modules():
    """Return the tree of each module that faults are planted in, by its path."""
    paths = {fault.find_file(_PACKAGE) for fault in FAULTS.values()}
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


def test_the_tests_that_are_to_fail_are_there(collected):
    tests = {fault.test for fault in FAULTS.values()} - collected
    if not tests:
        return
    collect = ["-m", "pytest", "--collect-only", "-q", "-m", "", "-p", "no:cacheprovider"]
    found = subprocess.run(
        [sys.executable, *collect, *tests],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == pytest.ExitCode.OK, found.stderr


@pytest.mark.slow
def test_the_tests_pass_without_a_mutation(tmp_path):
    _copy_library(tmp_path)
    status, output = _run(tmp_path, *dict.fromkeys(fault.test for fault in FAULTS.values()))
    assert status == pytest.ExitCode.OK, output


# The default run tries a fault that breaks all methods at once; ``-m slow`` tries the others.
QUICK = ["no noise"]


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(fault, id=f"{kind}: {name}", marks=() if name in QUICK else pytest.mark.slow)
        for kind, faults in KINDS.items()
        for name, fault in faults.items()
    ],
)
def test_mutation_is_caught(fault, tmp_path):
    fault.apply(_copy_library(tmp_path))
    status, output = _run(tmp_path, fault.test)
    assert status == pytest.ExitCode.TESTS_FAILED, output
    # A mutant that merely crashes would prove nothing.
    said = ("AssertionError", "oracle.Fault: ", "DID NOT RAISE", "DID NOT WARN")
    assert any(what in output for what in said), output
