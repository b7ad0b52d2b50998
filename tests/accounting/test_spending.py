"""Errors after a release: whatever they are of, they say what was spent."""

import pytest
from dp_accounting import GaussianDpEvent

from skdpgen.accounting.rounding import show
from skdpgen.accounting.spending import report_finished_fits_on_error, report_spent_on_error
from skdpgen.exceptions import BudgetExceededError, PlanError, SpentError, TableError
from skdpgen.privacy import Certificate, compose

SPENT = Certificate((GaussianDpEvent(4.0),), ("slice sketch",))
NOTHING = Certificate((), ())


@pytest.mark.parametrize(
    "kind",
    [
        FloatingPointError,
        MemoryError,
        OverflowError,
        RecursionError,
        RuntimeError,
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
    assert str(raised.value) == (
        f"it failed Until then ε = {show(SPENT.epsilon)} at δ = 1e-05 was spent, on: slice sketch."
    )
    assert raised.value.__cause__ is error
    with pytest.raises(kind) as raised, report_spent_on_error(lambda: NOTHING):
        raise error
    assert raised.value is error


@pytest.mark.parametrize("kind", [BudgetExceededError, PlanError, SpentError, TableError])
def test_errors_that_callers_tell_apart_stay_as_they_are(kind):
    error = kind("it was refused")
    with pytest.raises(kind) as raised, report_spent_on_error(lambda: SPENT):
        raise error
    assert raised.value is error


@pytest.mark.parametrize("kind", [BudgetExceededError, SpentError, TableError, ValueError])
def test_an_error_of_one_of_several_fits_states_what_the_others_cost_together(kind):
    error, others = kind("it failed"), [SPENT, Certificate((GaussianDpEvent(2.0),), ("sum",))]
    with pytest.raises(kind) as raised, report_finished_fits_on_error(others):
        raise error
    price = show(compose(*others).epsilon)
    assert f"The 2 fits that have finished spent ε = {price} at δ = 1e-05" in str(raised.value)
    with pytest.raises(kind) as raised, report_finished_fits_on_error([]):
        raise error
    assert raised.value is error
