"""Budgets that several threads and processes open, in any order, are charged as the guide says."""

import contextlib
import json
import multiprocessing
import os
import threading

import pytest
from joblib import Parallel, delayed
from joblib.externals.loky import get_reusable_executor
from joblib.parallel import get_active_backend

from skdpgen.accounting import budget as _budget
from skdpgen.privacy import PrivacyBudget

from .test_budget import fit, together

FORK, SPAWN = map(multiprocessing.get_context, ("fork", "spawn"))


def make(tmp_path, *names):
    return [PrivacyBudget(5.0, 1e-5, path=tmp_path / name) for name in names]


def list_told():
    """Return the list that a process that starts now finds in its environment."""
    return json.loads(os.environ.get(_budget._VARIABLE, "[]"))


def list_paths(*budgets):
    return [str(budget.path) for budget in budgets]


def find_backend():
    return type(get_active_backend()[0]).__name__


def run(process, timeout=60):
    process.start()
    process.join(timeout)
    with contextlib.suppress(Exception):
        process.kill()
    return process.exitcode


def interleave(*steps):
    """Run functions in threads of their own, each of its steps after all those before it.

    A step is a thread's name and a function.
    """
    turns, failed = [threading.Event() for _ in steps], []

    def work(name):
        for i, (owner, function) in enumerate(steps):
            if owner == name:
                if i:
                    assert turns[i - 1].wait(30)
                try:
                    function()
                except BaseException as error:
                    failed.append(error)
                turns[i].set()

    threads = [threading.Thread(target=work, args=(name,)) for name in {name for name, _ in steps}]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    if failed:
        raise failed[0]


@pytest.mark.catches(
    "accounting.budget:_ThreadingConfig.close",
    """
    while _configs.entered and _configs.entered[-1]._is_closed:
        _configs.entered.pop()._config.unregister()
    """,
    """
    if _configs.entered:
        _configs.entered.pop()._config.unregister()
    """,
    param="nested",
)
@pytest.mark.catches("accounting.budget:_tell_processes", "*opened", "*opened[:1]", param="crossed")
@pytest.mark.parametrize("names", ["abab", "abba", "aaaa"], ids=["crossed", "nested", "alone"])
def test_interleaved_budgets(names, tmp_path):
    """Whichever is closed first, the other one is charged, here and by those who are told."""
    first, second = make(tmp_path, "first", "second")
    was = find_backend()
    seen = []

    def check(*budgets):
        assert list_told() == list_paths(*budgets)
        assert set(_budget.find_open_budgets()) == set(budgets)
        seen.append(find_backend())

    opened, also, closed, over = names
    interleave(
        (opened, first.__enter__),
        (opened, lambda: check(first)),
        (also, second.__enter__),
        (also, lambda: check(first, second)),
        (closed, lambda: first.__exit__(None, None, None)),
        (also, lambda: check(second)),
        (over, lambda: second.__exit__(None, None, None)),
        (opened, lambda: check()),
    )
    # In the thread of an open budget joblib runs in threads, and afterwards as before.
    assert seen[:3] == ["ThreadingBackend"] * 3
    if names != "abba":
        assert seen[3] == was
    assert find_backend() == was


def test_budgets_that_are_closed_out_of_order_leave_the_backend_as_it_was(tmp_path):
    was, budgets = find_backend(), make(tmp_path, "a", "b", "c")
    for budget in budgets:
        budget.__enter__()
    for left, budget in zip((2, 1, 0), (budgets[0], budgets[2], budgets[1]), strict=True):
        budget.__exit__(None, None, None)
        assert find_backend() == ("ThreadingBackend" if left else was)


def test_one_budget_in_two_threads(tmp_path):
    (budget,), was, seen = make(tmp_path, "budget"), find_backend(), []

    def look():
        seen.append((find_backend(), list_told()))

    interleave(
        ("a", budget.__enter__),
        ("b", budget.__enter__),
        ("a", lambda: budget.__exit__(None, None, None)),
        ("a", look),
        ("b", look),
        ("b", lambda: budget.__exit__(None, None, None)),
        ("b", look),
    )
    told = list_paths(budget)
    assert seen == [(was, told), ("ThreadingBackend", told), (was, [])]


@pytest.mark.catches("accounting.budget:_tell_processes", "[*_inherited, *opened]", "opened")
def test_inherited_budgets_of_a_process_stay(tmp_path, monkeypatch):
    inherited, own = make(tmp_path, "inherited", "own")
    monkeypatch.setattr(_budget, "_inherited", tuple(list_paths(inherited)))
    monkeypatch.setenv(_budget._VARIABLE, json.dumps(list_paths(inherited)))
    with own:
        assert list_told() == list_paths(inherited, own)
        fit(1.0)
    assert list_told() == list_paths(inherited)
    fit(1.0)
    assert own.spent == pytest.approx(together(1.0))
    assert inherited.spent == pytest.approx(together(1.0, 1.0))
    # Open here, too, it is one budget.
    with inherited:
        fit(1.0)
    assert inherited.spent == pytest.approx(together(1.0, 1.0, 1.0))


NAMES = ["a:b", "with space", "Zürich 数据", "two\nlines", '"quoted", \\', "%41;?#"]


def test_a_path_may_hold_any_character(tmp_path, monkeypatch):
    budgets = make(tmp_path, *NAMES)
    with contextlib.ExitStack() as stack:
        for budget in budgets:
            stack.enter_context(budget)
        told = list_told()
        fit(1.0)
    assert told == list_paths(*budgets)
    monkeypatch.setattr(_budget, "_inherited", tuple(told))
    fit(1.0)
    spent = together(1.0, 1.0)
    assert [budget.spent for budget in budgets] == pytest.approx([spent] * len(NAMES))


@pytest.mark.slow
def test_spawned_children_are_charged(tmp_path):
    budgets = make(tmp_path, *NAMES)
    with contextlib.ExitStack() as stack:
        for budget in budgets:
            stack.enter_context(budget)
        assert run(SPAWN.Process(target=fit, args=(1.0,))) == 0
    assert [budget.spent for budget in budgets] == pytest.approx([together(1.0)] * len(NAMES))


def test_when_a_process_was_started_decides_whether_it_is_charged(tmp_path):
    (budget,) = make(tmp_path, "budget")
    go = FORK.Event()

    def work():
        assert go.wait(30)
        fit(1.0)

    before = FORK.Process(target=work)
    before.start()
    with budget:
        inside = FORK.Process(target=work)
        inside.start()
    go.set()
    for process in (before, inside):
        process.join(60)
        assert process.exitcode == 0
    # By that which was started inside, after the end of the block.
    assert budget.spent == pytest.approx(together(1.0))


@pytest.mark.catches(
    "accounting.budget",
    """
    os.register_at_fork(
        before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release
    )
    """,
    "os.register_at_fork(before=lambda: None)",
)
def test_a_fork_while_another_thread_reserves():
    """A child that copied a lock which nobody gives back would wait for ever."""
    held = threading.Event()

    def hold():
        with _budget._lock:
            held.set()
            threading.Event().wait(0.3)

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(30)
    assert run(FORK.Process(target=fit, args=(1.0,)), timeout=20) == 0
    thread.join()


@pytest.mark.slow
def test_workers_of_loky(tmp_path):
    """Those that were started before a budget was opened are not charged; those inside are, on."""
    first, second = make(tmp_path, "first", "second")

    def work(n):
        Parallel(n_jobs=2, backend="loky")(delayed(fit)(1.0) for _ in range(n))

    get_reusable_executor().shutdown(wait=True)
    with first:
        work(3)
    assert first.spent == pytest.approx(together(1.0, 1.0, 1.0))
    with second:
        work(1)
    assert second.spent == 0
    assert first.spent == pytest.approx(together(*[1.0] * 4))
    get_reusable_executor().shutdown(wait=True)
    work(1)
    assert first.spent == pytest.approx(together(*[1.0] * 4))
    get_reusable_executor().shutdown(wait=True)
