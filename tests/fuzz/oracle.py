"""Outcomes of a call: a sound result, a free refusal, or an error that says what was spent."""

import contextlib
import io
import math
import pickle
import re
import tempfile
import traceback
import warnings
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import sklearn
import torch
from sklearn.exceptions import DataConversionWarning, NotFittedError

import skdpgen
from skdpgen.curator.curator import intercept_releases
from skdpgen.exceptions import BudgetExceededError, SpentError
from skdpgen.privacy import FitQualityWarning, PrivacyBudget, PrivacyLeakWarning, verify

from . import markers, world

# Whose words an error may be in: others' speak of what they do, not of what was asked for.
_OURS = {Path(module.__file__).parent for module in (skdpgen, sklearn, markers)}
_WARNINGS = (FitQualityWarning, PrivacyLeakWarning, DataConversionWarning)


class Fault(AssertionError):
    """Outcome that a call must not have."""


@dataclass
class Call:
    """Call of the library, and what is known of it.

    Attributes
    ----------
    run : callable
        ``run()`` makes the call and returns its result.
    given : tuple
        Objects of the caller's that the call gets; it changes none.
    words : set of str
        Names of parameters and columns, of which a refusal has one.
    refusals : tuple of type
        Types that a refusal may have.
    check : callable
        ``check(result)`` raises a `Fault` if the result is not sound.
    state : callable
        ``state()`` returns what a call that fails leaves as it was.
    has_budget : bool
        Whether it runs under a `PrivacyBudget`.
    may_refuse_cells : bool
        Whether a refusal may follow from private cells.
    benign : Call, default=None
        The same of harmless cells, which is refused if and only if this one is.
    """

    run: object
    given: tuple = ()
    words: frozenset = frozenset()
    refusals: tuple = (ValueError, TypeError, NotFittedError, BudgetExceededError)
    check: object = staticmethod(lambda result: None)
    state: object = staticmethod(lambda: None)
    has_budget: bool = False
    may_refuse_cells: bool = False
    benign: object = None
    releases: list = field(default_factory=list)


def judge(call):
    """Return "sound", "refused" or "spent"; raise a `Fault` for anything else."""
    before, state = world.look(), call.state()
    result, error, caught, spent = _try(call)
    changed = world.differences(before, world.look())
    fault_if(changed, f"Global state is changed: {changed}.")
    _check_warnings(caught)
    if error is None:
        call.check(result)
        return "sound"
    told = markers.find_in_error(error, call.given)
    fault_if(told, f"An error tells what is private: {told}.", error)
    fault_if(call.state() != state, "A failed call leaves something behind.", error)
    is_said = any(found in str(error) for found in ("was spent, on: ", "fit is charged: ε = "))
    fault_if((call.releases or spent) and not is_said, "It is not said what was spent.", error)
    if isinstance(error, SpentError):
        fault_if(not is_said, "It is not said what was spent.", error)
        # Values learnt from releases may be of no use, and are then refused in our words.
        check_refusal(error.__cause__, call.words | {"diverged"})
        return "spent"
    fault_if(call.releases, f"Spent and refused: {call.releases}.", error)
    check_refusal(error, call.words, call.refusals)
    if call.benign is not None and not call.may_refuse_cells:
        _, other, _, _ = _try(call.benign)
        same = type(other) is type(error) and _text_of(other) == _text_of(error)
        fault_if(not same, f"A refusal follows from private cells: else {other!r}.", error)
    return "refused"


def check_refusal(error, words, refusals=Call.refusals):
    """Raise a `Fault` unless an error is of a right type, in our words, and names something."""
    if isinstance(error, OSError) and OSError in refusals:
        return  # which names a file
    wrong = not isinstance(error, refusals) or isinstance(error, UnicodeError)
    fault_if(wrong, "An error of a wrong type.", error)
    *_, last = traceback.extract_tb(error.__traceback__)
    is_ours = not _OURS.isdisjoint(Path(last.filename).parents)
    fault_if(not is_ours, "An error in others' words.", error)
    named = set(re.findall(r"\w+", str(error))) & words
    fault_if(not named or len(str(error)) < 20, "An error that names nothing.", error)


def _text_of(error):
    """Return the message without addresses, which differ from object to object."""
    return re.sub("0x[0-9a-f]+", "", str(error))


def _try(call):
    budget = PrivacyBudget(1e9, 0.9, threshold_delta=0.5) if call.has_budget else None
    result = error = None

    def watch(curator, mechanism, release):
        call.releases.append(mechanism.name)
        return release(mechanism)

    with (
        warnings.catch_warnings(record=True) as caught,
        intercept_releases(watch),
        contextlib.redirect_stderr(io.StringIO()) as printed,
    ):
        warnings.simplefilter("always")
        try:
            with budget or contextlib.nullcontext():
                result = call.run()
        except Exception as raised:
            error = raised
    told = markers.find_in_text(printed.getvalue())
    fault_if(told, f"Something private is printed: {told}.")
    return result, error, caught, budget.spent if budget else 0


def _check_warnings(caught):
    for warning in caught:
        told = markers.find_in_text(str(warning.message))
        fault_if(told, f"A warning tells what is private: {warning.message}")
        ours = issubclass(warning.category, _WARNINGS) or warning.category is UserWarning
        where = f"{warning.category.__name__} of {warning.filename}:{warning.lineno}"
        fault_if(not ours, f"A warning in others' words: {where}: {warning.message}")


def fault_if(condition, what, error=None):
    """Raise a `Fault` if something is so."""
    if condition:
        said = "" if error is None else f" {type(error).__name__}: {str(error)[:500]}"
        raise Fault(what + said) from error


def check_fitted(fitted, *, epsilon, is_noisy):
    """Raise a `Fault` unless what was fitted costs what was asked for, and tells no more."""
    certificate = fitted.privacy_
    cost = fitted.epsilon_
    is_nan = math.isnan(cost) or math.isnan(certificate.epsilon)
    fault_if(is_nan or cost > epsilon or cost < 0, f"ε = {cost} where {epsilon} was asked for.")
    if certificate.events:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fault_if(verify(certificate.to_json()) != cost, "The certificate does not verify.")
    if not is_noisy:
        return
    texts = [repr(fitted), str(certificate), certificate.to_json(), fitted._repr_html_()]
    if hasattr(fitted, "schema_report_"):
        texts += [fitted.schema_report_.to_string(), repr(fitted.schema_)]
    told = markers.find_in_text("\n".join(texts))
    fault_if(told, f"A fitted estimator shows what is private: {told}.")


def check_stored(fitted, is_noisy, use):
    """Raise a `Fault` unless a fit comes back from a pickle and a file, which tell nothing.

    What `use` makes of it is compared.
    """
    expected = use(fitted)
    with contextlib.suppress(pickle.PicklingError, AttributeError):  # of what the caller gave
        stored = pickle.dumps(fitted)
        told = is_noisy and markers.find_in_text(stored)
        fault_if(told, f"A pickle tells what is private: {told}.")
        fault_if(_differ(use(pickle.loads(stored)), expected), "A pickle changes an estimator.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "saved"
        try:
            fitted.save(path)
        except ValueError as error:
            check_refusal(error, set(fitted.get_params(deep=True)))
            fault_if(path.exists(), "A refused file is there.")
            return
        with zipfile.ZipFile(path) as file:
            told = [markers.find_in_text(file.read(name)) for name in file.namelist()]
        fault_if(is_noisy and any(told), f"A file tells what is private: {told}.")
        fault_if(_differ(use(skdpgen.load(path)), expected), "A file changes an estimator.")


def _differ(first, second):
    if isinstance(first, tuple):
        return any(_differ(a, b) for a, b in zip(first, second, strict=True))
    if isinstance(first, pd.DataFrame):
        return not first.equals(second) or list(first.dtypes) != list(second.dtypes)
    if isinstance(first, torch.Tensor):
        return not torch.equal(first, second)
    if isinstance(first, pd.Series):
        return not first.equals(second) or first.dtype != second.dtype
    return first.dtype != second.dtype or not np.array_equal(first, second)
