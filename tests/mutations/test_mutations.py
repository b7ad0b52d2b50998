"""Do the tests notice when privacy breaks? Each mutation breaks it in a copy of the library.

A mutation replaces a text, which must be in its file exactly once, and names the test that must
then fail, by an assertion. On an unbroken copy the same tests pass.
"""

import multiprocessing
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

import skdpgen

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
sys.exit(pytest.main(["-q", "-x", "-s", "--import-mode=importlib", *tests]))
"""
_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(
    ["autodp.transformer_zoo", "dp_accounting", "pandas", "pytest", "sklearn", "torch"]
)


@dataclass(frozen=True)
class Mutation:
    """A change to one file of the package, and the test that must catch it."""

    file: str
    old: str
    new: str
    test: str

    def apply(self, package):
        path = package / self.file
        text = path.read_text(encoding="utf-8")
        found = text.count(self.old)
        assert found == 1, f"{self.old!r} is {found} times in {self.file}, not once."
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")


def _common(check, estimator="sliced-pca"):
    return f"tests/test_common.py::test_generator[{estimator}-{check}]"


MUTATIONS = {
    "no noise": Mutation(
        "privacy/mechanisms.py",
        "total = total + noise.rounded_gaussian(",
        "noise.rounded_gaussian(",
        _common("check_noise"),
    ),
    "noise over √2": Mutation(
        "privacy/mechanisms.py",
        "std * scale * self._noise_shape(total)",
        "std * scale * self._noise_shape(total) / math.sqrt(2)",
        _common("check_noise"),
    ),
    "noise for another relation": Mutation(
        "privacy/curator.py",
        "relation=self.plan.relation,",
        'relation="zero_out",',
        _common("check_noise"),
    ),
    "numbers without noise": Mutation(
        "privacy/mechanisms.py",
        "np.triu(noisy.value) + np.triu(noisy.value, 1).T",
        "noisy.value",
        _common("check_noise"),
    ),
    "an event is missing from the certificate": Mutation(
        "privacy/curator.py",
        "releases=tuple(self._ledger)",
        "releases=tuple(self._ledger[1:])",
        _common("check_ledger"),
    ),
    "a release is not in the ledger": Mutation(
        "privacy/curator.py",
        "self._ledger.append(self.plan.releases[done])",
        "pass",
        _common("check_ledger", "sliced"),
    ),
    "a budget is not charged": Mutation(
        "privacy/curator.py",
        "self._reservation.settle(event for _, event in self._ledger)",
        "self._reservation.settle(())",
        "tests/generators/test_sliced_wasserstein.py::test_budget",
    ),
    "a row is kept": Mutation(
        "base.py",
        "del X, y  # from here",
        "self._first = X[7:8].copy()\n            del X, y  # from here",
        _common("check_no_row_in_pickle", "sliced"),
    ),
    "a sum without noise is kept": Mutation(
        "base.py",
        "del X, y  # from here",
        "self.mean_ = X.mean(0)\n            del X, y  # from here",
        "tests/test_base.py::test_fitted_attributes_are_those_that_are_documented",
    ),
    "rows are not clipped": Mutation(
        "privacy/curator.py",
        "clip_rows(rows.to(self.device), self.clip_norm)",
        "rows.to(self.device)",
        _common("check_neighbours"),
    ),
    "rows are clipped by the largest of them": Mutation(
        "privacy/mechanisms.py",
        "norms.clamp(min=radius)",
        "norms.max().clamp(min=radius)",
        _common("check_neighbours"),
    ),
    "sensitivity of the sketch is understated": Mutation(
        "privacy/mechanisms.py",
        "max(2 * math.sqrt(k), across)",
        "max(math.sqrt(k), across)",
        _common("check_neighbours", "sliced"),
    ),
    "sensitivity of label flips is understated": Mutation(
        "privacy/mechanisms.py",
        "max(2 * math.sqrt(k), across)",
        "math.sqrt(k + c2)",
        _common("check_neighbours", "sliced"),
    ),
    "sensitivity of the moments is understated": Mutation(
        "privacy/mechanisms.py",
        '"replace_one": math.sqrt(2)}',
        '"replace_one": 1.0}',
        _common("check_neighbours"),
    ),
    "null records are counted": Mutation(
        "privacy/curator.py",
        "membership[torch.as_tensor(self._null[start : start + len(rows)])] = 0",
        "pass",
        _common("check_neighbours", "sliced"),
    ),
    "noise follows a global seed": Mutation(
        "privacy/noise.py",
        "key = secrets.randbits(256)",
        "key = int(np.random.randint(2**31))",
        _common("check_seeds", "sliced"),
    ),
    "an error quotes a cell": Mutation(
        "privacy/records.py",
        "        cells_are_numbers = False\n",
        "        raise\n",
        _common("check_failing_fit", "sliced"),
    ),
}


def _copy_library(target):
    """Copy the package, the tests and their settings, and return the copy of the package."""
    package = Path(skdpgen.__file__).parent
    ignore = shutil.ignore_patterns("__pycache__", "mutations")
    shutil.copytree(package, target / "skdpgen", ignore=ignore)
    shutil.copytree(Path(__file__).parents[1], target / "tests", ignore=ignore)
    settings = package.parent / "pyproject.toml"
    if settings.exists():
        shutil.copy(settings, target)
    return target / "skdpgen"


def _run(folder, *tests):
    """Run tests in a copy, and return the exit status and the output."""
    process = _SERVER.Process(target=exec, args=(_RUN, {"folder": str(folder), "tests": tests}))
    process.start()
    process.join(timeout=300)
    process.kill()
    imported, _, output = (folder / "output.txt").read_text().partition("\n")
    assert imported == str(folder / "skdpgen" / "__init__.py"), f"Tested {imported}.\n{output}"
    return process.exitcode, output


def test_the_tests_pass_without_a_mutation(tmp_path):
    _copy_library(tmp_path)
    status, output = _run(tmp_path, *dict.fromkeys(m.test for m in MUTATIONS.values()))
    assert status == pytest.ExitCode.OK, output


@pytest.mark.parametrize("mutation", MUTATIONS.values(), ids=MUTATIONS)
def test_mutation_is_caught(mutation, tmp_path):
    mutation.apply(_copy_library(tmp_path))
    status, output = _run(tmp_path, mutation.test)
    assert status == pytest.ExitCode.TESTS_FAILED, output
    # A mutant that merely crashes would prove nothing.
    assert "AssertionError" in output, output


def test_a_text_that_is_not_there_fails_loudly(tmp_path):
    package = _copy_library(tmp_path)
    for old in ("no such text", "import"):
        with pytest.raises(AssertionError, match="not once"):
            Mutation("privacy/curator.py", old, "", "").apply(package)
