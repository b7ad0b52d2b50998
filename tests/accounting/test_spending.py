"""Errors after a release: whatever they are of, they say what was spent."""

import pytest
from dp_accounting import GaussianDpEvent

from skdpgen.accounting.budget import PublicRun
from skdpgen.accounting.rounding import show
from skdpgen.accounting.spending import note_price, report_spent_on_error
from skdpgen.exceptions import BudgetExceededError, PlanError, SpentError, TableError
from skdpgen.privacy import Certificate, gaussian_plan

SPENT = Certificate((GaussianDpEvent(4.0),), ("slice sketch",))
NOTHING = Certificate((), ())
PRICE = f"Until then ε = {show(SPENT.epsilon)} at δ = 1e-05 was spent, on: slice sketch."
LOST = "The released values are not kept: another fit is charged anew."


@pytest.mark.catches(
    "accounting.spending:report_spent_on_error",
    "BaseException",
    "(RuntimeError, ValueError, KeyboardInterrupt)",
    param="ZeroDivisionError",
)
@pytest.mark.parametrize(
    "kind",
    [
        AssertionError,
        KeyError,
        MemoryError,
        OSError,
        StopIteration,
        TypeError,
        UnicodeError,
        ValueError,
        ZeroDivisionError,
    ],
)
def test_errors_of_learning_say_what_was_spent(kind):
    error = kind("it failed")
    with pytest.raises((SpentError, kind)) as raised, report_spent_on_error(lambda: SPENT):
        raise error
    assert type(raised.value) is SpentError
    said = str(error) if kind in (UnicodeError, ValueError) else f"{kind.__name__}: {error}"
    assert str(raised.value) == f"{said}. {PRICE} {LOST}"
    assert error in (raised.value.__cause__, raised.value.__context__)
    assert raised.value.certificate is SPENT
    assert raised.value.release is None
    with pytest.raises(kind) as raised, report_spent_on_error(lambda: NOTHING):
        raise error
    assert raised.value is error


# The others state the price of the whole plan, which is charged where rows cannot be read.
@pytest.mark.catches(
    "accounting.spending:report_spent_on_error",
    "BaseException",
    "Exception",
    param="KeyboardInterrupt-False",
)
@pytest.mark.parametrize(
    ("kind", "states_price"),
    [
        (BudgetExceededError, False),
        (KeyboardInterrupt, False),
        (PlanError, False),
        (SystemExit, False),
        (SpentError, True),
        (TableError, True),
    ],
)
def test_errors_that_callers_tell_apart_keep_their_type_and_get_a_note(kind, states_price):
    error = kind("it was refused")
    with pytest.raises(kind) as raised, report_spent_on_error(lambda: SPENT):
        raise error
    assert raised.value is error
    assert getattr(error, "__notes__", None) == [LOST if states_price else f"{PRICE} {LOST}"]
    assert error.certificate is SPENT
    # A fit of which this one is a part says how it goes on, and no other price.
    with pytest.raises(kind), report_spent_on_error(lambda: None, lambda: (None, "Go on.")):
        raise error
    assert error.__notes__[1:] == ["Go on."]
    free = kind("it was refused")
    with pytest.raises(kind), report_spent_on_error(lambda: NOTHING):
        raise free
    assert vars(free) == {}


@pytest.mark.catches(
    "accounting.spending:report_spent_on_error",
    'kept = {"certificate": spent, "release": release}',
    'kept = {"certificate": spent, "release": None}',
)
def test_an_error_keeps_its_release():
    with (
        pytest.raises(SpentError, match=r"It is kept\.$") as raised,
        report_spent_on_error(lambda: SPENT, lambda: ("released", "It is kept.")),
    ):
        raise MemoryError
    assert str(raised.value).startswith("MemoryError. Until then")
    assert raised.value.release == "released"


@pytest.mark.catches("accounting.spending:note_price", "not is_search_run()", "True")
def test_a_run_of_a_search_notes_no_price_of_its_own():
    alone, run = KeyboardInterrupt(), KeyboardInterrupt()
    plan = gaussian_plan({"sum": 1.0}, 1.0, 1e-5)
    note_price(alone, "All of it is charged", plan)
    assert alone.__notes__ == ["All of it is charged: ε = 1 at δ = 1e-05."]
    with PublicRun():
        note_price(run, "All of it is charged", plan)
    assert not hasattr(run, "__notes__")
