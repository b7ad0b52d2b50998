# SPDX-License-Identifier: BSD-3-Clause
"""Privacy checks: noise, sensitivity, ledger and failures of `fit`.

They watch the releases of the curator, the only place where an estimator can read private rows.
"""

import contextlib
import math
import pickle
import warnings
from functools import partial

import numpy as np
import pandas as pd
import torch
from dp_accounting import LaplaceDpEvent, RandomizedResponseDpEvent
from sklearn.exceptions import NotFittedError

from ..accounting.accountants import ACCOUNTANTS, RELATIONS
from ..accounting.budget import PrivacyBudget
from ..accounting.events import split_repetition, split_sampling, step_std
from ..accounting.previews import preview
from ..accounting.verification import verify
from ..exceptions import BudgetExceededError, FitQualityWarning
from .common import (
    EXTREMES,
    LABELS,
    assert_not_quoted,
    assert_raises,
    assert_same,
    choices_of,
    fitted_state,
    make_data,
    make_plain,
    make_quick,
)
from .spies import release_exactly, release_only, spying

# A record that is easy to find in a pickle: digits of π, e and Euler's constant.
_MARKER = np.array([0.3141592653589793, -0.2718281828459045, 0.5772156649015329])


def check_epsilon(estimator):
    """`fit` spends at most `epsilon` and nearly all of it, and the certificate can be verified."""
    X, y = make_data(estimator)
    for accountant in choices_of(estimator, "accountant", ACCOUNTANTS):
        for relation in choices_of(estimator, "relation", RELATIONS):
            # autodp takes long to invert, the more so for a small ε.
            for epsilon in (4.0,) if accountant == "autodp" else (0.3, 4.0):
                fitted = make_quick(
                    estimator, y, accountant=accountant, relation=relation, epsilon=epsilon
                ).fit(X, y)
                spent, case = fitted.epsilon_, f"{accountant}, {relation}, epsilon={epsilon}"
                assert spent <= epsilon, f"{case}: ε = {spent} is spent."
                assert spent > 0.95 * epsilon, f"{case}: only ε = {spent} is spent."
                certificate = fitted.privacy_
                assert certificate.epsilon == spent, f"{case}: epsilon_ is not the certificate's."
                assert verify(certificate.to_json()) == spent, f"{case}: verified ε differs."
                if accountant != "autodp":
                    overspent = certificate.delta_at(epsilon) > certificate.delta * (1 + 1e-9)
                    assert not overspent, f"{case}: δ is overspent."


def check_infinite_epsilon(estimator):
    """With epsilon=inf no noise is added, and the certificate says so."""
    X, y = make_data(estimator)
    with spying(repeat=1) as spies:
        fitted = make_quick(estimator, y, epsilon=math.inf).fit(X, y)
    for spy in spies:
        assert np.array_equal(spy.noisy[0], spy.exact), f"{spy.name} is noisy at epsilon=inf."
    assert fitted.epsilon_ == math.inf, f"epsilon=inf is certified as {fitted.epsilon_}."
    assert "No differential privacy" in str(fitted.privacy_), "The certificate hides ε = inf."


def check_ledger(estimator):
    """The certificate lists every release in order, with the event that it ran under."""
    X, y = make_data(estimator)
    with spying() as spies:
        fitted = make_quick(estimator, y).fit(X, y)
    names = [spy.name for spy in spies]
    assert names, "The curator released nothing."
    certified = []
    for name, event in zip(fitted.privacy_.releases, fitted.privacy_.events, strict=True):
        event, count = split_repetition(event)
        certified += [(name, event)] * count
    listed = [name for name, _ in certified]
    assert listed == names, f"Released {names}, but the certificate lists {listed}."
    release, relation = fitted.release_, fitted.privacy_.relation
    for spy, (_, event) in zip(spies, certified, strict=True):
        assert event == spy.event, f"{spy.name}: {spy.event} is certified as {event}."
        if spy.name == getattr(release, "name", None):
            stated, true = release.sensitivity(relation, 2), spy.mechanism.sensitivity(relation)
            assert math.isclose(stated, true), f"{release} states {stated}, {spy.name} has {true}."


def check_plan(estimator):
    """All planned releases are made, and the plan follows from public numbers alone."""
    X, y = make_data(estimator)
    planned = preview(make_quick(estimator, y), X, y)
    for rows in (X, 100 * X):
        made = make_quick(estimator, y).fit(rows, y).privacy_
        same = (made.releases, made.events) == (planned.releases, planned.events)
        assert same, f"preview plans {planned.events}; fit makes {made.events}."


def check_noise(estimator):
    """Each released number has noise of the certified scale; see `step_std`."""
    X, y = make_data(estimator, n_features=12)
    for relation in choices_of(estimator, "relation", RELATIONS):
        with spying(repeat=20) as spies:
            make_quick(estimator, y, relation=relation).fit(X, y)
        for spy in spies:
            base = split_sampling(spy.event)[0]
            if isinstance(base, RandomizedResponseDpEvent):
                _check_response(spy, base)
                continue
            stated = step_std(base, spy.mechanism.sensitivity(relation), relation)
            # The standard deviation of Laplace noise is √2 times its scale, its kurtosis 6, not 3.
            is_laplace = isinstance(base, LaplaceDpEvent)
            stated, kurtosis = stated * math.sqrt(2 if is_laplace else 1), 6 if is_laplace else 3
            shape = np.broadcast_to(spy.std / np.max(spy.std), spy.exact.shape)
            noise = np.stack(spy.noisy) - spy.exact
            noise = (noise[:, shape > 0] / shape[shape > 0]).ravel()
            # Six standard errors of a standard deviation and of a mean.
            error = 6 * math.sqrt((kurtosis - 1) / (4 * noise.size))
            ratio = noise.std() / stated
            assert abs(ratio - 1) < error, (
                f"{spy.name}, {relation}: noise has {ratio:.3f} times its stated deviation."
            )
            mean = abs(noise.mean()) / stated
            assert mean < math.sqrt(2) * error, f"{spy.name}, {relation}: noise has a mean."
            # The released numbers, after any reshaping, must all be noisy, too.
            clean = np.mean(spy.numbers == spy.silent_result)
            assert clean < 0.01, f"{spy.name}, {relation}: releases numbers without noise."


def _check_response(spy, event):
    """Check that randomized response replaces a label by each other one as often as certified."""
    k = event.num_buckets
    steps = (np.stack(spy.noisy) - spy.exact) % k
    stated = event.noise_parameter / k
    for step in range(1, k):
        share = np.mean(steps == step)
        error = 6 * math.sqrt(stated * (1 - stated) / steps.size)
        assert abs(share - stated) < error, (
            f"{spy.name}: another label is drawn at a rate of {share:.3f}, not {stated:.3f}."
        )


def check_rows_in_ball(estimator):
    """Mechanisms get rows in the unit ball, whatever the data are."""
    for X in (np.vstack([make_data(estimator)[0], EXTREMES]), EXTREMES * 1e290):
        with spying() as spies:
            make_quick(estimator).fit(X)
        for spy in spies:
            norms = torch.cat([rows.double().norm(dim=1) for rows, _ in spy.blocks])
            assert (norms <= 1 + 1e-9).all(), f"{spy.name} gets a row of norm {norms.max()}."


def check_neighbours(estimator):
    """Between neighbours, a release without its noise moves by at most its sensitivity.

    One record among many equal ones takes extreme values in turn, so that a statistic of the whole
    data set would move. Some pair of neighbours must reach half the sensitivity (or a mechanism's
    `least_reach`, where the bound is seldom attained), so that it is not grossly overstated.
    """
    has_classes = (False, True)[: 1 + estimator._takes_classes]
    _check_neighbours(make_plain(estimator), 0.5, has_classes)
    if repr(make_plain(estimator)) != repr(estimator):
        _check_neighbours(estimator, 0.3, has_classes=(False,))


def _check_neighbours(estimator, least_reach, has_classes):
    others = np.tile([0.6, 0.8, 0.0], (12, 1))
    for relation in choices_of(estimator, "relation", RELATIONS):
        for y in [np.arange(len(others)) % 2 if has else None for has in has_classes]:
            # Later mechanisms depend on earlier releases: those of one fit are kept, whose noise is
            # so small that ranges are those of the rows.
            params = {"epsilon": 100.0, "relation": relation, "random_state": 0}
            make = partial(make_quick, estimator, y, **params)
            spies = release_only(make(), others, y)
            release = partial(release_exactly, make, spies)
            moved = []
            for record in EXTREMES:
                for label in [None] if y is None else LABELS:
                    X, target = others.copy(), None if y is None else y.copy()
                    X[0] = record
                    if y is not None:
                        target[0] = label
                    moved.append(release(X, target))
            # Under either relation, an invalid record counts as absent.
            absent = release(others, y, np.arange(len(others)) == 0)
            pairs = [(present, absent) for present in moved]
            if relation == "replace_one":
                pairs += [(a, b) for i, a in enumerate(moved) for b in moved[:i]]
            reached = dict.fromkeys([spy.name for spy in spies], 0.0)
            needed = {spy.name: getattr(spy.mechanism, "least_reach", least_reach) for spy in spies}
            for i, spy in enumerate(spies):
                # Projections may stretch rows by their spectral norm, which the event covers.
                stated = spy.mechanism.sensitivity(relation) * spy.stretch
                order = getattr(spy.mechanism, "norm_order", 2)
                largest = max(np.linalg.norm((a[i] - b[i]).ravel(), order) for a, b in pairs)
                case = f"{spy.name}, {relation}, {'no ' if y is None else ''}classes"
                assert largest <= stated, f"{case}: moves by {largest}, not at most {stated}."
                reached[spy.name] = max(reached[spy.name], largest / stated)
            # Over all steps together, since a record is not in every sample.
            for name, share in reached.items():
                assert share >= needed[name], (
                    f"{name}, {relation}: moves by only {share:.0%} of its sensitivity."
                )


def check_post_processing(estimator):
    """No row is read after the last release, nor kept: rows overwritten then change nothing."""
    X, y = make_data(estimator)
    expected = make_quick(estimator, y, random_state=0).fit(X, y)
    X, y = X.copy(), y.copy()

    def overwrite(curator):
        X[:], y[:] = 1e6, 1
        for spy in spies:
            for block, _ in spy.blocks:
                block.fill_(0.5)

    with spying(after_last=overwrite) as spies:
        fitted = make_quick(estimator, y, random_state=0).fit(X, y)
    assert (X == 1e6).all(), "The check did not overwrite the rows."
    assert_same("post-processing", fitted_state(expected), fitted_state(fitted), "the state")
    assert_same("post-processing", expected.sample(20), fitted.sample(20), "the samples")


def check_no_row_in_pickle(estimator):
    """A fitted estimator keeps no private row, neither as given nor as mechanisms got it."""
    X, y = make_data(estimator)
    X[7] = _MARKER
    for rows in (X, pd.DataFrame(X, columns=list("abc"))):
        with spying() as spies:
            fitted = make_quick(estimator, y).fit(rows, y)
        stored = pickle.dumps(fitted)
        encoded = [block.double().cpu().numpy() for spy in spies for block, _ in spy.blocks]
        private = [row for block in (X, *encoded) for row in block if not _is_common(row)]
        for row in private:
            # Four bytes may occur by chance.
            for dtype in (np.float32, np.float64)[row.size == 1 :]:
                assert row.astype(dtype).tobytes() not in stored, "A private row is in the pickle."
        for cell in _MARKER:
            assert cell.tobytes() not in stored, "A private number is in the pickle."
            assert repr(cell.item())[:10].encode() not in stored, "A private number is in a text."


def _is_common(row):
    """Return whether a row is a corner of a box, to single precision, or a number 0 or 1.

    All rows may be clipped to one corner, if the noisy box is far from them.
    """
    if row.size == 1:
        return row.item() in (0, 1)
    return len(np.unique(np.abs(row[row != 0]).astype(np.float32))) <= 1


def check_bad_records(estimator):
    """An invalid record (a number that is not finite, an undeclared label) affects no other.

    It counts as absent or, in local releases, as a fixed public record, whatever is wrong with
    it; no warning or error mentions it. A strict estimator refuses it and says so on the
    certificate.
    """
    X, y = make_data(estimator)
    bad = np.arange(len(X)) == 5
    cases = [(np.where(bad[:, None], value, X), y) for value in (np.nan, np.inf, -np.inf)]
    cases += [(np.where(bad[:, None] & [True, False, False], np.nan, X), y)]
    if "classes" in estimator.get_params(deep=False) and estimator._takes_classes:
        cases += [(X, np.where(bad, 7, y)), (X, np.where(bad, None, y))]
    else:
        y = None
    make = partial(make_quick, estimator, y, random_state=0, n_projections=9)
    others = release_only(make(), X, y)
    expected = release_exactly(make, others, X, y, bad)
    for rows, target in cases:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            # These follow from released values and from parameters.
            warnings.simplefilter("ignore", FitQualityWarning)
            warnings.filterwarnings("ignore", message="The noise follows from a seed")
            try:
                measured = release_exactly(make, others, rows, None if y is None else target)
            except Exception as error:
                raise AssertionError("An invalid record is refused.") from error
        same = all(np.array_equal(a, b) for a, b in zip(measured, expected, strict=True))
        assert same, "An invalid record does not count as absent."
        strict = make(strict=True)
        assert_raises(ValueError, partial(strict.fit, rows, None if y is None else target))
    certificates = [str(make(strict=strict).fit(X, y).privacy_) for strict in (False, True)]
    stated = ["every record is valid" in text for text in certificates]
    assert stated == [False, True], "The certificate does not state what strict=True assumes."


def check_failing_fit(estimator):
    """A failing fit quotes no private value and leaves no fitted state.

    It spends nothing if it fails for public reasons. A refusal that depends on the rows answers
    a question about them.
    """
    X, y = make_data(estimator)
    text = X.astype(object)
    text[3, 1] = "Smith"
    cases = [(X[:, :0], y, 0), (X[:0], y[:0], 0), (X, y[:-1], 0), (text, y, 1)]
    for rows, target, is_answer in cases:
        failing, budget = make_quick(estimator, y, random_state=None), PrivacyBudget(100.0, 1e-5)
        # An open budget would refuse this estimator's fit before the error that is checked.
        with contextlib.nullcontext() if is_answer else budget:
            error = assert_raises(ValueError, partial(failing.fit, rows, target))
        assert_not_quoted(error, "Smith")
        assert_raises(NotFittedError, failing.sample)
        assert not hasattr(failing, "privacy_"), "A failed fit leaves a certificate."
        assert budget.spent == 0, f"A failing fit spent ε = {budget.spent}."


def check_refusal_is_reserved(estimator):
    """With an exhausted budget, a fit raises BudgetExceededError whatever the rows hold."""
    X, y = make_data(estimator)
    X[3, 1] = np.nan
    text = X.astype(object)
    text[3, 1] = "Smith"
    for rows in (X, text):
        failing = make_quick(estimator, y, random_state=None, strict=True)
        with PrivacyBudget(1e-3, 1e-5):
            assert_raises(BudgetExceededError, partial(failing.fit, rows, y))


def check_failing_refit(estimator):
    """A failing fit leaves the results of an earlier fit unchanged."""
    X, y = make_data(estimator)
    fitted = make_quick(estimator, y, random_state=0).fit(X, y)
    before, sampled = fitted_state(fitted), fitted.sample(20)
    assert_raises(ValueError, partial(fitted.fit, np.full(X.shape, "Smith", dtype=object), y))
    assert_same("failing refit", before, fitted_state(fitted), "the state")
    assert_same("failing refit", sampled, fitted.sample(20), "the samples")
