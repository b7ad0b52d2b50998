"""Budgets that outlive a process: whatever is killed, copied or full, nothing is forgotten."""

import json
import multiprocessing
import os
import resource
import shutil
import signal
import sqlite3
import sys
import warnings

import numpy as np
import pytest

from skdpgen.accounting import budget as _budget
from skdpgen.accounting import budget_stores as _stores
from skdpgen.curator import curator as _curator
from skdpgen.privacy import (
    BudgetExceededError,
    Curator,
    NoiseSource,
    PrivacyBudget,
    PrivacyLeakWarning,
    gaussian_plan,
)

from .killing import kill_at
from .test_budget import fit, together

FORK = multiprocessing.get_context("fork")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "budget.sqlite"


def run(work, *args):
    """Run in a child process; return its exit code."""
    process = FORK.Process(target=work, args=args)
    process.start()
    process.join(timeout=60)
    return process.exitcode


def spend(path, epsilon=1.0):
    """A fit; exit code 7 if it was refused."""
    try:
        with PrivacyBudget.from_file(path):
            fit(epsilon)
    except BudgetExceededError:
        sys.exit(7)


@pytest.mark.parametrize(("name", "n_released"), [("add", 0), ("settle", 1)])
def test_a_signal_while_a_charge_is_written_loses_no_ticket(path, name, n_released, monkeypatch):
    write = getattr(_stores.FileStore, name)

    def interrupted(*args):
        written = write(*args)
        signal.raise_signal(signal.SIGINT)
        return written

    monkeypatch.setattr(_stores.FileStore, name, interrupted)
    # A shell ignores the signal in what it runs in the background.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    first = PrivacyBudget(2.0, 1e-5)
    try:
        with first, PrivacyBudget(2.0, 1e-5, path=path) as budget, pytest.raises(KeyboardInterrupt):
            fit(1.0, shares={"a": 0.5, "b": 0.5}, released=1)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert first.spent == budget.spent
    assert 0 < budget.spent < 0.9 if n_released else budget.spent == 0


def test_spending_is_kept(path):
    with PrivacyBudget(2.0, 1e-5, path=path) as budget:
        fit(1.0)
    assert budget.spent == pytest.approx(together(1.0))
    assert budget.path == path
    assert run(spend, path) == 0
    again = PrivacyBudget(2.0, 1e-5, path=path)
    assert again.spent == budget.spent == pytest.approx(together(1.0, 1.0))
    with pytest.raises(BudgetExceededError, match="over the budget of 2"), again:
        fit(1.9)
    assert PrivacyBudget.from_file(path).spent == again.spent


@pytest.mark.catches("accounting.budget_stores:FileStore.__init__", "stored != terms", "False")
def test_terms_are_those_of_the_file(path):
    PrivacyBudget(2.0, 1e-5, relation="replace_one", threshold_delta=1e-6, path=path)
    kept = PrivacyBudget.from_file(path)
    assert (kept.epsilon, kept.delta) == (2.0, 1e-5)
    assert (kept.relation, kept.threshold_delta) == ("replace_one", 1e-6)
    for terms in ((3.0, 1e-5, "replace_one"), (2.0, 2e-6, "replace_one"), (2.0, 1e-5, "zero_out")):
        with pytest.raises(ValueError, match=r"is a budget of epsilon=2\.0, delta=1e-05"):
            PrivacyBudget(*terms[:2], relation=terms[2], threshold_delta=1e-6, path=path)


@pytest.mark.catches(
    "accounting.budget_stores:FileStore._create",
    "os.link(draft, self.path)",
    "os.replace(draft, self.path)",
)
def test_a_file_that_another_process_has_made_meanwhile_stays(path):
    with PrivacyBudget(2.0, 1e-5, path=path) as budget:
        fit(1.0)
    spent = budget.spent
    # As if it had not been there yet when this was decided.
    budget._store._create(_stores.read_terms(path)[0])
    assert budget.spent == spent > 0


@pytest.mark.catches(
    "accounting.budget_stores:FileStore.settle",
    "_write_charge(database, ticket, charge)",
    "_write_charge(database, max(_read_charges(database)), charge)",
)
def test_rest_of_one_fit_is_taken_from_no_other(path):
    """Three are under way; the second of them ends."""
    for budget in (PrivacyBudget(9.0, 1e-5, path=path), PrivacyBudget(9.0, 1e-5)):
        store, plans = budget._store, [gaussian_plan({"a": 1.0}, e, 1e-5) for e in (1.0, 2.0, 3.0)]
        tickets = [budget._reserve(plan, False) for plan in plans]
        store.settle(*tickets[1])
        assert [charge.events for charge in store.read()] == [plans[0].events, (), plans[2].events]


@pytest.mark.catches("accounting.budget_stores:_transaction", '"?mode=rw"', '"?mode=rwc"')
def test_files_that_are_no_budgets(path):
    with pytest.raises(OSError, match="neither read nor charged"):
        PrivacyBudget.from_file(path)
    assert not path.exists()
    for content in (b"", b"other" * 1000):
        path.write_bytes(content)
        with pytest.raises(OSError, match="neither read nor charged"):
            PrivacyBudget(1.0, 1e-5, path=path)
        assert path.read_bytes() == content


def test_a_file_that_is_gone_is_not_made_anew(path):
    with PrivacyBudget(2.0, 1e-5, path=path):
        path.unlink()
        with pytest.raises(OSError, match="neither read nor charged"):
            fit(1.0)
    assert not path.exists()


@pytest.mark.catches("accounting.budget_stores:FileStore.add", "_is_closed(database)", "False")
def test_a_closed_budget_takes_nothing(path):
    budget = PrivacyBudget(2.0, 1e-5, path=path)
    assert not budget.is_closed
    PrivacyBudget.from_file(path).close()
    assert budget.is_closed
    with pytest.raises(BudgetExceededError, match="is closed"), budget:
        fit(1.0)
    with pytest.raises(ValueError, match="with a path"):
        PrivacyBudget(2.0, 1e-5).close()


def test_reprs_name_the_file_and_survive_its_loss(path):
    budget = PrivacyBudget(2.0, 1e-5, path=path)
    assert str(path) in repr(budget)
    budget.close()
    assert repr(budget).endswith("; closed>")
    assert "closed" in budget._repr_html_()
    path.unlink()
    assert "unknown of 2 is spent" in repr(budget)
    assert "neither read nor charged" in budget._repr_html_()


@pytest.mark.catches(
    "accounting.budget_stores:FileStore._warn_of_copies",
    "self._inode == _find_inode(self.path)",
    "True",
)
def test_a_copy_warns(path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PrivacyBudget(2.0, 1e-5, path=path)
        PrivacyBudget.from_file(path)
    shutil.copy(path, path.with_suffix(".copy"))
    with pytest.warns(PrivacyLeakWarning, match="copied, restored or moved") as said:
        PrivacyBudget.from_file(path.with_suffix(".copy"))
    assert len(said) == 1


def open_silently(path):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        budget = PrivacyBudget.from_file(path)
    assert not said
    return budget


@pytest.mark.catches(
    "accounting.budget_stores:FileStore._warn_of_copies",
    "not _is_restored(database, self.path)",
    "True",
    param="in place-1",
)
@pytest.mark.catches(
    "accounting.budget_stores:_transaction",
    "database.total_changes and not _is_restored(database, path)",
    "database.total_changes",
    param="in place-1",
)
@pytest.mark.parametrize("n_kept", [0, 1, 2])
@pytest.mark.parametrize("way", ["in place", "anew", "with its time", "by rename"])
def test_a_restored_file_is_noticed(path, way, n_kept):
    budget = PrivacyBudget(9.0, 1e-5, path=path)
    kept = path.with_suffix(".kept")
    for n in range(3):
        if n == n_kept:
            shutil.copy2(path, kept)
        with open_silently(path):
            fit(1.0)
    if way == "anew":
        path.unlink()
    if way == "by rename":
        kept.rename(path)
    else:
        (shutil.copy2 if way == "with its time" else shutil.copyfile)(kept, path)
    # By whoever charges it, for as long as it is used.
    for _ in range(3):
        with pytest.warns(PrivacyLeakWarning, match="copied, restored or moved"):
            PrivacyBudget.from_file(path)
        with pytest.warns(PrivacyLeakWarning, match="copied, restored or moved"), budget:
            fit(1.0)
        budget._store._is_warned = False


@pytest.mark.catches(
    "accounting.budget_stores:FileStore._create", "_read_count(self.path) + 1", "0"
)
def test_ordinary_use_is_not_called_a_copy(path, tmp_path):
    first, second = PrivacyBudget(9.0, 1e-5, path=path), open_silently(path)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks
        for budget in (first, second, first):
            with budget:
                fit(0.5)
        assert run(spend, path, 0.5) == 0
        with first, second:
            fit(0.5)
        os.utime(path, (1e9, 1e9))
        path.chmod(0o600)
        shutil.copy(path, tmp_path / "backup")
        with pytest.raises(BudgetExceededError), first:
            fit(50.0)
        first.close()
        path.unlink()
        # Another one of the same name begins, whatever the deleted one had counted.
        with PrivacyBudget(2.0, 1e-5, path=path):
            fit(0.5)
    assert not said
    assert open_silently(path).spent == pytest.approx(together(0.5))


def test_processes_cannot_both_take_the_rest(path):
    """As many fits as one after the other, however they meet."""
    PrivacyBudget(2.0, 1e-5, path=path)
    processes = [FORK.Process(target=spend, args=(path, 0.8)) for _ in range(8)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=60)
    allowed = next(n for n in range(1, 9) if together(*[0.8] * (n + 1)) > 2)
    assert sorted(p.exitcode for p in processes) == [0] * allowed + [7] * (8 - allowed)
    assert PrivacyBudget.from_file(path).spent == pytest.approx(together(*[0.8] * allowed))


@pytest.mark.catches(
    "accounting.budget_stores:_transaction",
    """
    database.execute("BEGIN IMMEDIATE")
    yield database
    """,
    """
    database.execute("BEGIN")
    yield database
    """,
)
def test_nobody_decides_on_what_another_is_deciding_on(path, tmp_path, monkeypatch):
    monkeypatch.setattr(_stores, "_TIMEOUT", 0.05)
    store = PrivacyBudget(2.0, 1e-5, path=path)._store
    charge, mark = _stores.Charge((), 1e-5, False), tmp_path / "decided"

    def decide_meanwhile():
        def decide(charges):
            mark.touch()
            return None, charge, charge

        store.add(decide)

    def decide(charges):
        assert run(decide_meanwhile) != 0
        return None, charge, charge

    store.add(decide)
    assert not mark.exists()
    assert len(store.read()) == 1


@pytest.mark.catches(
    "accounting.budget:find_open_budgets",
    "[PrivacyBudget.from_file(path) for path in _inherited if path not in known]",
    "[PrivacyBudget.from_file(path) for path in ()]",
)
def test_processes_that_are_started_inside_know_of_it(path):
    assert _budget._VARIABLE not in os.environ
    with PrivacyBudget(2.0, 1e-5, path=path) as budget:
        told = json.loads(os.environ[_budget._VARIABLE])
        assert told == [str(path)]
        # As in a process of its own, which has the environment only.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_budget, "_open_budgets", [])
            patch.setattr(_budget, "_inherited", tuple(told))
            fit(1.0)
    assert budget.spent == pytest.approx(together(1.0))
    assert _budget._VARIABLE not in os.environ


@pytest.mark.catches("accounting.budget_stores:FileStore._create", "os.fsync(descriptor)", "pass")
@pytest.mark.catches(
    "accounting.budget_stores:_transaction", '"PRAGMA synchronous=FULL"', '"PRAGMA synchronous=OFF"'
)
def test_written_entries_are_on_the_disk(path, monkeypatch):
    """Each connection syncs in full; the folder is synced after the file is in it."""
    committed, synced, connect, fsync = [], [], sqlite3.connect, os.fsync

    class Connection(sqlite3.Connection):
        def execute(self, statement, *args):
            if statement == "COMMIT":
                (level,) = super().execute("PRAGMA synchronous").fetchone()
                committed.append(level)
            return super().execute(statement, *args)

    def sync(file):
        synced.append((os.fstat(file).st_ino, path.exists()))
        fsync(file)

    monkeypatch.setattr(
        sqlite3, "connect", lambda *args, **options: connect(*args, factory=Connection, **options)
    )
    monkeypatch.setattr(os, "fsync", sync)
    with PrivacyBudget(2.0, 1e-5, path=path) as budget:
        made = len(committed)
        assert made >= 1
        assert (path.parent.stat().st_ino, True) in synced
        fit(1.0)
        assert len(committed) >= made + 2  # reserved, and settled
    budget.close()
    full = 2
    assert set(committed) == {full}


def test_a_full_disk_lets_nothing_out(path):
    PrivacyBudget(2.0, 1e-5, path=path)

    def fill():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        released = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Curator, "release", lambda self, mechanism: released.append(mechanism))
            try:
                with PrivacyBudget.from_file(path):
                    fit(1.0)
            except OSError as error:
                says = "neither read nor charged" in str(error)
                os._exit(0 if says and not released else 3)
        os._exit(4)

    assert run(fill) == 0
    assert PrivacyBudget.from_file(path).spent == 0


def test_shares_that_cannot_be_given_back_stay_charged(path):
    """A fit is not lost because its budget cannot be reached at its end."""
    plan = gaussian_plan({"a": 0.5, "b": 0.5}, 1.0, 1e-5)
    with PrivacyBudget(2.0, 1e-5, path=path) as budget:
        curator = Curator(np.zeros((3, 1)), plan=plan, noise=NoiseSource())
        path.rename(path.with_suffix(".away"))
        with pytest.warns(RuntimeWarning, match="stays charged"):
            curator.close()
    path.with_suffix(".away").rename(path)
    assert budget.spent == pytest.approx(together(1.0))


MODULES = {module.__file__ for module in (_budget, _stores, _curator)}


def fit_killed_at(path, mark, number):
    """A fit that kills itself at a line of what keeps the budget, and marks what gets out."""
    budget, release = PrivacyBudget.from_file(path), Curator.release

    def released(curator, mechanism):
        found = release(curator, mechanism)
        mark.touch()
        return found

    Curator.release = released
    sys.settrace(kill_at(number, MODULES))
    with budget:
        fit(1.0)
    sys.settrace(None)


@pytest.mark.catches(
    "accounting.budget_stores:_transaction",
    """
    if is_counted:
        database.execute("UPDATE budget SET n_changes = n_changes + 1")
    database.execute("COMMIT")
    """,
    """
    if is_counted:
        database.execute("UPDATE budget SET n_changes = n_changes + 1")
        _write_count(path, _count_changes(database))
    database.execute("COMMIT")
    """,
    param="1",
)
@pytest.mark.parametrize("step", [23, pytest.param(1, marks=pytest.mark.slow)])
def test_whatever_got_out_is_charged_wherever_it_is_killed(tmp_path, step):
    costs, number = set(), 0
    while True:
        path, mark = tmp_path / f"{number}.sqlite", tmp_path / f"{number}.mark"
        PrivacyBudget(2.0, 1e-5, path=path)
        code = run(fit_killed_at, path, mark, number)
        spent = open_silently(path).spent
        costs.add(round(spent, 6))
        if mark.exists():
            assert spent == pytest.approx(together(1.0))
        assert run(spend, path, 0.1) == 0, "A kill locks the file."
        if code == 0:
            break
        assert code == -signal.SIGKILL
        number += step
    assert number > 50
    assert costs == {0, round(together(1.0), 6)}
