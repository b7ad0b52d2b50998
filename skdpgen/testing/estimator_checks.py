"""Checks for estimators that sample, beside those of scikit-learn.

scikit-learn's `check_estimator` knows nothing of `sample`, nor of privacy. These checks do: they
raise AssertionError where an estimator breaks what its interface or its certificate promises. They
look at private rows through the curator only, the one place where an estimator can read them.
"""

import contextlib
import math
import pickle
import warnings
from copy import copy
from dataclasses import fields, is_dataclass, replace
from functools import partial
from unittest import mock

import numpy as np
import pandas as pd
import torch
from dp_accounting import LaplaceDpEvent, RandomizedResponseDpEvent
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from .. import base
from ..accounting.accountants import ACCOUNTANTS, RELATIONS
from ..accounting.budget import PrivacyBudget
from ..accounting.certificate import verify
from ..accounting.events import split_repetition, split_sampling
from ..exceptions import BudgetExceededError, PrivacyLeakWarning
from ..privacy import Curator, NoiseSource

__all__ = ["check_generator", "yield_checks"]

# A record that is easy to find again: no other number in an estimator looks like it.
_MARKER = np.array([0.3141592653589793, -0.2718281828459045, 0.5772156649015329])
_LABELS = [0, 1]


def check_generator(estimator):
    """Run all checks on an estimator that samples.

    Parameters
    ----------
    estimator : estimator
        An unfitted instance; it is cloned, and its numbers of steps are lowered.

    Raises
    ------
    AssertionError
        From the first check that fails.

    Examples
    --------
    >>> from skdpgen import DPSlicedWassersteinGenerator
    >>> from skdpgen.testing import check_generator
    >>> check_generator(DPSlicedWassersteinGenerator())
    """
    for name, check in yield_checks(estimator):
        try:
            check(estimator)
        except AssertionError as error:
            raise AssertionError(f"{name}, {estimator}: {error}") from error


def yield_checks(estimator):
    """Yield the checks that suit what an estimator can do.

    Parameters
    ----------
    estimator : estimator
        An unfitted instance.

    Yields
    ------
    name : str
        Name of the check.
    check : callable
        ``check(estimator)`` raises AssertionError if something is wrong.
    """
    checks = [
        check_sample_shapes,
        check_dtypes,
        check_seeds,
        check_frames,
        check_not_fitted,
        check_n_samples,
        check_score,
        check_pickle,
        check_clone,
        check_global_generators,
        check_input_unchanged,
        check_epsilon,
        check_infinite_epsilon,
        check_ledger,
        check_noise,
        check_rows_in_ball,
        check_neighbours,
        check_post_processing,
        check_no_row_in_pickle,
        check_bad_records,
        check_failing_fit,
        check_refusal_is_reserved,
        check_failing_refit,
    ]
    names = estimator.get_params(deep=False)
    if "classes" in names:
        checks += [check_labels, check_unknown_labels, check_class_warning]
    if "y_bounds" in names:
        checks += [check_number]
    for check in checks:
        yield check.__name__, check


# The interface.


def check_sample_shapes(estimator):
    """`sample` gives as many finite rows as it is asked for."""
    X, y = _make_data()
    for target in (None, y):
        fitted = _make(estimator, target).fit(X, target)
        for n in (1, 2, 7, 100, 10_001):
            made, labels = _sample(fitted, target, n)
            assert made.shape == (n, X.shape[1]), f"sample({n}) has shape {made.shape}."
            assert np.isfinite(made).all(), f"sample({n}) is not finite."
            assert labels is None or labels.shape == (n,), f"sample({n}) has {labels.shape} labels."
        made, _ = _sample(fitted, target)
        assert made.shape == (1, X.shape[1]), "sample() does not give one row."


def check_dtypes(estimator):
    """The floating dtype of X comes back, and float64 for integers."""
    X, _ = _make_data()
    for dtype in (np.float32, np.float64, np.int64, np.int32, np.uint8, bool):
        made = _make(estimator).fit((X > 0).astype(dtype)).sample(5)
        expected = np.float32 if dtype == np.float32 else np.float64
        assert made.dtype == expected, f"fit on {np.dtype(dtype)} makes {made.dtype} rows."
    made = _make(estimator).fit(X.tolist()).sample(5)
    assert isinstance(made, np.ndarray), "A list of lists does not come back as an array."
    assert made.dtype == np.float64, "A list of lists does not come back as float64."


def check_seeds(estimator):
    """An int seed repeats fits and samples; None repeats neither, whatever is seeded globally."""
    X, y = _make_data()
    first, second = (_make(estimator, y, random_state=3).fit(X, y) for _ in range(2))
    same = partial(_assert_same, "random_state=3")
    same(first.sample(20), first.sample(20), "sampled twice")
    same(first.sample(20), second.sample(20), "fitted twice")
    same(_fitted_state(first), _fitted_state(second), "fitted twice")
    same(first.sample(20, random_state=1), second.sample(20, random_state=1), "sampled with a seed")
    assert _differ(first.sample(20), first.sample(20, random_state=1)), "Seeds of sample are idle."
    other = _make(estimator, y, random_state=4).fit(X, y)
    assert _differ(first.sample(20), other.sample(20)), "Seeds of fit are idle."
    state = np.random.RandomState(0)
    assert _differ(first.sample(20, random_state=state), first.sample(20, random_state=state)), (
        "A RandomState does not move on."
    )
    fits = []
    with _kept_global_generators():
        for _ in range(2):
            np.random.seed(0)  # noqa: NPY002
            torch.manual_seed(0)
            fits.append(_make(estimator, y, random_state=None).fit(X, y))
    assert _differ(fits[0].sample(20), fits[0].sample(20)), "Samples repeat without a seed."
    # The same seed for both samples: what differs must come from the fits.
    drawn = [fitted.sample(20, random_state=0) for fitted in fits]
    assert _differ(*drawn), "Fits repeat without a seed: their noise follows a global seed."


def check_frames(estimator):
    """Frames and series come back with their names; their order of columns is kept."""
    X, y = _make_data()
    frame, series = pd.DataFrame(X, columns=["c", "a", "b"]), pd.Series(y, name="label")
    made, labels = _make(estimator, y).fit(frame, series).sample(6)
    assert isinstance(made, pd.DataFrame), f"A DataFrame comes back as {type(made)}."
    assert list(made.columns) == ["c", "a", "b"], f"Columns are {list(made.columns)}."
    assert isinstance(labels, pd.Series), f"A Series comes back as {type(labels)}."
    assert labels.name == "label", f"The Series is called {labels.name!r}."
    assert len(made) == len(labels) == 6, "sample(6) does not give 6 rows."
    made, labels = _make(estimator, y).fit(frame.astype(np.float32), y).sample(6)
    assert set(made.dtypes) == {np.dtype(np.float32)}, "A float32 DataFrame changes its dtype."
    assert isinstance(labels, np.ndarray), "An array of labels does not come back as an array."
    made = _make(estimator).fit(frame).sample(2)
    assert isinstance(made, pd.DataFrame), "Without y, a DataFrame does not come back."


def check_not_fitted(estimator):
    """`sample` and `score` need a fit."""
    estimator = _make(estimator)
    for call in (estimator.sample, partial(estimator.score, np.zeros((2, 3)))):
        _assert_raises(NotFittedError, call)


def check_n_samples(estimator):
    """Numbers of rows that are not positive whole numbers are refused."""
    fitted = _make(estimator).fit(_make_data()[0])
    for n in (0, -1, 1.5, "3", None):
        _assert_raises(ValueError, partial(fitted.sample, n))


def check_score(estimator):
    """`score` is a finite number, higher for rows like those of `fit`, and checks its input."""
    X, _ = _make_data()
    fitted = _make(estimator, epsilon=math.inf, n_steps=100, random_state=0).fit(X)
    near, far = fitted.score(X), fitted.score(X + 100)
    assert isinstance(near, float), f"score gives {type(near)}."
    assert math.isfinite(near), f"score gives {near}."
    assert near > far, "score prefers rows that are far away."
    assert near == fitted.score(X), "score gives two values for the same rows."
    for bad in (X[:, :2], np.full_like(X, np.nan)):
        _assert_raises(ValueError, partial(fitted.score, bad))


def check_pickle(estimator):
    """A fitted estimator survives pickling."""
    X, y = _make_data()
    fitted = _make(estimator, y, random_state=0).fit(X, y)
    loaded = pickle.loads(pickle.dumps(fitted))
    _assert_same("pickle", fitted.sample(20), loaded.sample(20), "the samples")
    _assert_same("pickle", _fitted_state(fitted), _fitted_state(loaded), "the state")


def check_clone(estimator):
    """A clone has the parameters, and nothing that was learnt."""
    X, y = _make_data()
    fitted = _make(estimator, y, random_state=0).fit(X, y)
    cloned = clone(fitted)
    _assert_raises(NotFittedError, cloned.sample)
    _assert_same("clone", fitted.sample(20), cloned.fit(X, y).sample(20), "the samples")


def check_global_generators(estimator):
    """Global generators are neither read nor written (see `check_seeds` for the reading)."""
    X, y = _make_data()
    for random_state in (None, 0):
        numpy_before, torch_before = np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
        fitted = _make(estimator, y, random_state=random_state).fit(X, y)
        fitted.sample(10)
        fitted.score(X)
        numpy_after = np.random.get_state()  # noqa: NPY002
        same = all(np.array_equal(a, b) for a, b in zip(numpy_before, numpy_after, strict=True))
        assert same, "NumPy's global generator was used."
        assert torch.equal(torch_before, torch.get_rng_state()), "torch's generator was used."


def check_input_unchanged(estimator):
    """What is given to `fit` and `score` is not written to, and need not be writable."""
    X, y = _make_data()
    X[0] *= 100  # to be clipped
    kept = X.copy(), y.copy()
    _make(estimator, y).fit(X, y).score(X)
    _assert_same("input", (X, y), kept, "X or y")
    X.flags.writeable = y.flags.writeable = False
    always = torch.is_warn_always_enabled()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.set_warn_always(True)
        try:
            _make(estimator, y).fit(X, y).score(X)
        finally:
            torch.set_warn_always(always)
    assert not caught, f"Rows that cannot be written to give a warning: {caught[0].message}"


def check_labels(estimator):
    """Rows come with declared labels, and on request with the labels that are asked for."""
    X, y = _make_data()
    for labels in ([0, 1], ["no", "yes"], [False, True], [3, -1]):
        target = np.array(labels)[y]
        fitted = _make(estimator, classes=labels, random_state=0).fit(X, target)
        _, drawn = fitted.sample(50)
        assert set(drawn) <= set(labels), f"Labels {set(drawn)} are sampled for {labels}."
        asked = [labels[1], labels[0], labels[1]]
        made, drawn = fitted.sample(y=asked)
        assert list(drawn) == asked, f"sample(y={asked}) gives {list(drawn)}."
        assert made.shape == (3, X.shape[1]), f"sample(y={asked}) has shape {made.shape}."
        for unknown in (["other"], [7], [], [labels[0], None]):
            _assert_raises(ValueError, partial(fitted.sample, y=unknown))
    fitted = _make(estimator).fit(X)
    _assert_raises(ValueError, partial(fitted.sample, y=[0]))


def check_unknown_labels(estimator):
    """Labels that were not declared are refused by strict estimators only, and never told."""
    X, y = _make_data()
    target = np.where(np.arange(len(y)) == 5, "Smith", np.array(["no", "yes"])[y])
    make = partial(_make, estimator, classes=["no", "yes"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _, drawn = make().fit(X, target).sample(50)
    assert set(drawn) <= {"no", "yes"}, "A label that was not declared is sampled."
    error = _assert_raises(ValueError, partial(make(strict=True).fit, X, target))
    _assert_untold(error, "Smith")
    _assert_raises(ValueError, partial(make().fit, X))


def check_class_warning(estimator):
    """A class set that is inferred from y is announced, and stated on the certificate."""
    X, y = _make_data()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        inferred = _make(estimator).fit(X, y)
    announced = any(issubclass(w.category, PrivacyLeakWarning) for w in caught)
    assert announced, "Classes are inferred without a PrivacyLeakWarning."
    assert "inferred" in str(inferred.privacy_), "The certificate hides that classes were inferred."
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)
        declared = _make(estimator, classes=_LABELS).fit(X, y)
    assert "inferred" not in str(declared.privacy_), "Declared classes are stated as inferred."


def check_number(estimator):
    """A floating y is one more column, whatever its values, and stays in its bounds."""
    X, y = _make_data()
    fitted = _make(estimator, y_bounds=(-1, 2)).fit(X, y.astype(np.float64))
    assert not hasattr(fitted, "classes_"), "A floating y is taken for classes."
    _, drawn = fitted.sample(50)
    assert drawn.dtype == np.float64, f"A floating y comes back as {drawn.dtype}."
    assert len(set(drawn)) > 2, "A floating y comes back as classes."
    assert drawn.min() >= -1, "y leaves its bounds."
    assert drawn.max() <= 2, "y leaves its bounds."
    _assert_raises(ValueError, partial(fitted.sample, y=[0.0]))
    series = pd.Series(y, name="t").astype(float)
    _, drawn = _make(estimator, y_bounds=(0, 1)).fit(X, series).sample(3)
    assert isinstance(drawn, pd.Series), "A Series of numbers does not come back as one."
    assert drawn.name == "t", "A Series of numbers loses its name."


# Privacy.


def check_epsilon(estimator):
    """No more is spent than was asked for, and the certificate can be verified."""
    X, y = _make_data()
    for accountant in _choices(estimator, "accountant", ACCOUNTANTS):
        for relation in _choices(estimator, "relation", RELATIONS):
            for epsilon in (0.3, 4.0):
                fitted = _make(
                    estimator, y, accountant=accountant, relation=relation, epsilon=epsilon
                ).fit(X, y)
                spent, case = fitted.epsilon_, f"{accountant}, {relation}, epsilon={epsilon}"
                assert spent <= epsilon, f"{case}: ε = {spent} is spent."
                assert spent > 0.95 * epsilon, f"{case}: only ε = {spent} is spent."
                certificate = fitted.privacy_
                assert certificate.epsilon == spent, f"{case}: epsilon_ is not the certificate's."
                assert verify(certificate.to_json()) == spent, f"{case}: verified ε differs."
                if accountant != "autodp":  # which is slow to invert
                    overspent = certificate.delta_at(epsilon) > fitted.delta * (1 + 1e-9)
                    assert not overspent, f"{case}: δ is overspent."


def check_infinite_epsilon(estimator):
    """epsilon=inf adds exactly no noise, and the certificate says so."""
    X, y = _make_data()
    with _spies(repeat=1) as spies:
        fitted = _make(estimator, y, epsilon=math.inf).fit(X, y)
    for spy in spies:
        assert np.array_equal(spy.noisy[0], spy.exact), f"{spy.name} is noisy at epsilon=inf."
    assert fitted.epsilon_ == math.inf, f"epsilon=inf is certified as {fitted.epsilon_}."
    assert "No differential privacy" in str(fitted.privacy_), "The certificate hides ε = inf."


def check_ledger(estimator):
    """Every release is on the certificate, in order, with the noise that it had."""
    X, y = _make_data()
    with _spies() as spies:
        fitted = _make(estimator, y).fit(X, y)
    names = [spy.name for spy in spies]
    assert names, "Nothing was released by the curator."
    certified = []
    for name, event in zip(fitted.privacy_.releases, fitted.privacy_.events, strict=True):
        event, count = split_repetition(event)
        certified += [(name, event)] * count
    listed = [name for name, _ in certified]
    assert listed == names, f"Released {names}, but the certificate lists {listed}."
    for spy, (_, event) in zip(spies, certified, strict=True):
        assert event == spy.event, f"{spy.name}: {spy.event} is certified as {event}."


def check_noise(estimator):
    """Releases are as noisy as certified: multiplier × sensitivity, on every number."""
    X, y = _make_data(n_features=12)
    for relation in _choices(estimator, "relation", RELATIONS):
        with _spies(repeat=20) as spies:
            _make(estimator, y, relation=relation).fit(X, y)
        for spy in spies:
            base = split_sampling(spy.event)[0]
            if isinstance(base, RandomizedResponseDpEvent):
                _check_response(spy, base)
                continue
            stated = base.noise_multiplier * spy.mechanism.sensitivity(relation)
            # Laplace noise has √2 times its scale, and a kurtosis of 6 in place of 3.
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
            # What leaves the mechanism, after any reshaping, holds no number without noise.
            clean = np.mean(spy.result == spy.silent_result)
            assert clean < 0.01, f"{spy.name}, {relation}: numbers are released without noise."


def _check_response(spy, event):
    """Labels are replaced as often as certified, by each of the others alike."""
    k = event.num_buckets
    steps = (np.stack(spy.noisy) - spy.exact) % k
    stated = event.noise_parameter / k
    for step in range(1, k):
        share = np.mean(steps == step)
        error = 6 * math.sqrt(stated * (1 - stated) / steps.size)
        assert abs(share - stated) < error, (
            f"{spy.name}: {share:.3f} of the labels become a certain other, not {stated:.3f}."
        )


def check_rows_in_ball(estimator):
    """Mechanisms see rows in the unit ball, whatever the data are."""
    for X in (np.vstack([_make_data()[0], _EXTREMES]), _EXTREMES * 1e290):
        with _spies() as spies:
            _make(estimator).fit(X)
        for spy in spies:
            norms = torch.cat([rows.double().norm(dim=1) for rows, _ in spy.blocks])
            assert (norms <= 1 + 1e-9).all(), f"{spy.name} sees a row of norm {norms.max()}."


def check_neighbours(estimator):
    """Without its noise, a release moves by no more than its sensitivity between neighbours.

    One record among many that are alike takes extreme values in turn, so that a statistic of all
    records would show. Some pair of neighbours reaches half the sensitivity, or the `least_reach`
    of a mechanism whose bound is seldom met: it is not grossly overstated either.
    """
    others = np.tile([0.6, 0.8, 0.0], (12, 1))
    for relation in _choices(estimator, "relation", RELATIONS):
        for y in (None, np.arange(len(others)) % 2):
            make = partial(_make, estimator, y, relation=relation, random_state=0)
            # What later mechanisms are may depend on earlier releases: keep those of one fit.
            spies = _release_only(make(), others, y)
            release = partial(_release_exactly, make, spies)
            moved = []
            for record in _EXTREMES:
                for label in [None] if y is None else _LABELS:
                    X, target = others.copy(), None if y is None else y.copy()
                    X[0] = record
                    if y is not None:
                        target[0] = label
                    moved.append(release(X, target))
            # A bad record counts as absent, under either relation.
            absent = release(others, y, np.arange(len(others)) == 0)
            pairs = [(present, absent) for present in moved]
            if relation == "replace_one":
                pairs += [(a, b) for i, a in enumerate(moved) for b in moved[:i]]
            reached = dict.fromkeys([spy.name for spy in spies], 0.0)
            needed = {spy.name: getattr(spy.mechanism, "least_reach", 0.5) for spy in spies}
            for i, spy in enumerate(spies):
                # Directions of rows may stretch them, which their event accounts for.
                stated = spy.mechanism.sensitivity(relation) * spy.stretch
                order = getattr(spy.mechanism, "norm_order", 2)
                largest = max(np.linalg.norm((a[i] - b[i]).ravel(), order) for a, b in pairs)
                case = f"{spy.name}, {relation}, {'no ' if y is None else ''}classes"
                assert largest <= stated, f"{case}: moves by {largest}, over {stated}."
                reached[spy.name] = max(reached[spy.name], largest / stated)
            # A record is not in every sample.
            for name, share in reached.items():
                assert share >= needed[name], (
                    f"{name}, {relation}: moves by {share:.0%} of the stated."
                )


def check_post_processing(estimator):
    """Rows that are overwritten after the last release change nothing: they are not read again."""
    X, y = _make_data()
    expected = _make(estimator, y, random_state=0).fit(X, y)
    X, y = X.copy(), y.copy()

    def overwrite(curator):
        X[:], y[:] = 1e6, 1

    with _spies(after_last=overwrite):
        fitted = _make(estimator, y, random_state=0).fit(X, y)
    assert (X == 1e6).all(), "The check did not overwrite the rows."
    _assert_same("post-processing", _fitted_state(expected), _fitted_state(fitted), "the state")
    _assert_same("post-processing", expected.sample(20), fitted.sample(20), "the samples")


def check_no_row_in_pickle(estimator):
    """No private row is kept, as given or as the mechanisms saw it."""
    X, y = _make_data()
    X[7] = _MARKER
    for rows in (X, pd.DataFrame(X, columns=list("abc"))):
        with _spies() as spies:
            fitted = _make(estimator, y).fit(rows, y)
        stored = pickle.dumps(fitted)
        seen = [block.double().cpu().numpy() for spy in spies for block, _ in spy.blocks]
        for row in np.vstack([X, *seen]):
            for dtype in (np.float32, np.float64):
                assert row.astype(dtype).tobytes() not in stored, "A private row is in the pickle."
        for cell in _MARKER:
            assert cell.tobytes() not in stored, "A private number is in the pickle."
            assert repr(cell.item())[:10].encode() not in stored, "A private number is in a text."


def check_bad_records(estimator):
    """A record with a number that is not finite, or an undeclared label, changes no other.

    It counts as absent, or, where all records are answered for, as one that is public: what is
    measured is the same whatever is wrong with it. Nothing is said of it.
    """
    X, y = _make_data()
    bad = np.arange(len(X)) == 5
    cases = [(np.where(bad[:, None], value, X), y) for value in (np.nan, np.inf, -np.inf)]
    cases += [(np.where(bad[:, None] & [True, False, False], np.nan, X), y)]
    if "classes" in estimator.get_params(deep=False):
        cases += [(X, np.where(bad, 7, y)), (X, np.where(bad, None, y))]
    else:
        y = None
    make = partial(_make, estimator, y, random_state=0, n_projections=9)
    others = _release_only(make(), X, y)
    expected = _release_exactly(make, others, X, y, bad)
    for rows, target in cases:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = _release_exactly(make, others, rows, None if y is None else target)
        same = all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
        assert same, "A bad record is not the same as an absent one."
        strict = make(strict=True)
        _assert_raises(ValueError, partial(strict.fit, rows, None if y is None else target))
    certificates = [str(make(strict=strict).fit(X, y).privacy_) for strict in (False, True)]
    told = ["every record is valid" in text for text in certificates]
    assert told == [False, True], "Certificates do not say what strict=True means."


def check_failing_fit(estimator):
    """A fit that fails tells nothing, and leaves nothing to sample from.

    It spends nothing, unless it is for what is in the rows: a refusal is an answer.
    """
    X, y = _make_data()
    text = X.astype(object)
    text[3, 1] = "Smith"
    cases = [(X[:, :0], y, 0), (X[:0], y[:0], 0), (X, y[:-1], 0), (text, y, 1)]
    for rows, target, is_answer in cases:
        failing, budget = _make(estimator, y, random_state=None), PrivacyBudget(100.0, 1e-5)
        # Budgets are not for all estimators, and say so before anything else.
        with contextlib.nullcontext() if is_answer else budget:
            error = _assert_raises(ValueError, partial(failing.fit, rows, target))
        _assert_untold(error, "Smith")
        _assert_raises(NotFittedError, failing.sample)
        assert not hasattr(failing, "privacy_"), "A failed fit leaves a certificate."
        assert budget.spent == 0, f"A failing fit spent ε = {budget.spent}."


def check_refusal_is_reserved(estimator):
    """Where nothing is left to spend, fits are refused for that, whatever is in the rows."""
    X, y = _make_data()
    X[3, 1] = np.nan
    text = X.astype(object)
    text[3, 1] = "Smith"
    for rows in (X, text):
        failing = _make(estimator, y, random_state=None, strict=True)
        with PrivacyBudget(1e-3, 1e-5):
            _assert_raises(BudgetExceededError, partial(failing.fit, rows, y))


def check_failing_refit(estimator):
    """A fit that fails leaves the results of an earlier one as they were."""
    X, y = _make_data()
    fitted = _make(estimator, y, random_state=0).fit(X, y)
    before, made = _fitted_state(fitted), fitted.sample(20)
    _assert_raises(ValueError, partial(fitted.fit, np.full(X.shape, "Smith", dtype=object), y))
    _assert_same("failing refit", before, _fitted_state(fitted), "the state")
    _assert_same("failing refit", made, fitted.sample(20), "the samples")


# Data and estimators to check with.

# Records at the ends of what may come: opposite, huge, tiny, zero.
_EXTREMES = np.array(
    [
        [0, 0, 0],
        [1, 0, 0],
        [-1, 0, 0],
        [0, 1, 0],
        [1e6, 0, 0],
        [0, -1e6, 0],
        [1e9, 1e9, 1e9],
        [-1e9, -1e9, -1e9],
        [1e-9, 0, 0],
        [0.3, -0.4, 0.5],
        [-0.1, 0.2, 0.9],
    ],
    dtype=np.float64,
)


def _make_data(n_samples=40, n_features=3):
    rng = np.random.RandomState(0)
    return rng.normal(scale=0.4, size=(n_samples, n_features)), rng.randint(2, size=n_samples)


def _make(estimator, y=None, **params):
    """Clone, for a quick fit with declared classes, and set the parameters that there are."""
    known = estimator.get_params(deep=False)
    params = {"n_steps": 5, **({} if y is None else {"classes": _LABELS}), **params}
    return clone(estimator).set_params(**{k: v for k, v in params.items() if k in known})


def _choices(estimator, name, choices):
    if name in estimator.get_params(deep=False):
        return list(choices)
    # Some estimators know one choice only.
    return [getattr(estimator, name, None)]


def _sample(fitted, y, *args):
    return (fitted.sample(*args), None) if y is None else fitted.sample(*args)


# A look at releases.


class _SilentSource(NoiseSource):
    """A noise source whose noise is zero."""

    def rounded_gaussian(self, scale):
        return np.zeros(np.shape(scale), dtype=np.int64)

    def rounded_laplace(self, scale):
        return np.zeros(np.shape(scale), dtype=np.int64)

    def randomized_response(self, codes, n_classes, probability):
        return codes


class _WatchedSource:
    """Keeps what a mechanism reads."""

    def __init__(self, source):
        self._source = source
        self.n_records, self.n_classes = source.n_records, source.n_classes
        self.seen = []

    def blocks(self, name):
        for block in self._source.blocks(name):
            self.seen.append(block)
            yield block

    def take(self, positions):
        self.seen.append(self._source.take(positions))
        return self.seen[-1]


class _Spy:
    """Stands in for a mechanism and keeps what goes in and comes out."""

    def __init__(self, mechanism, repeat, told=()):
        self.mechanism = mechanism
        self.name = mechanism.name
        self.check = mechanism.check
        self._repeat = repeat
        # What was released between the measurements of one event, or is to be taken for that.
        self.told = list(told)
        self._stages = []

    def run(self, source, event, *, relation, noise):
        source = _WatchedSource(source)
        first = self.mechanism._measure(source, event, relation, noise)
        self.event, self.blocks = event, source.seen
        directions = first.context
        is_projection = isinstance(directions, torch.Tensor)
        self.stretch = torch.linalg.matrix_norm(directions, 2).item() if is_projection else 1.0
        result = self._run(self._watch(first), source, relation, noise)

        # What follows the measurements: with and without noise, before and after reshaping.
        silence = _SilentSource(0)

        def run(noise):
            raw = {"_present": lambda noisy, measured: noisy.ravel()}
            return np.concatenate(
                [self._run(stage, source, relation, noise, **raw) for stage in self._stages]
            )

        self.std = np.concatenate(
            [np.broadcast_to(stage.std, stage.exact.shape).ravel() for stage in self._stages]
        )
        self.exact = run(silence)
        self.noisy = [run(noise) for _ in range(self._repeat)]
        self.result = _numbers(result)
        self.silent_result = _numbers(self._run(first, source, relation, silence))
        return result

    def _watch(self, measured):
        """Keep a measurement, and those that follow from what is released of it."""
        self._stages.append(replace(measured, then=None))
        if measured.then is None:
            return measured

        def then(noisy):
            if len(self.told) < len(self._stages):
                self.told.append(noisy)
            return self._watch(measured.then(self.told[len(self._stages) - 1]))

        return replace(measured, then=then)

    def _run(self, measured, source, relation, noise, **changes):
        """Run the mechanism from a measurement on."""
        mechanism = copy(self.mechanism)
        mechanism._measure = lambda *args: measured
        vars(mechanism).update(changes)
        return mechanism.run(source, self.event, relation=relation, noise=noise)


@contextlib.contextmanager
def _spies(*, repeat=0, others=None, after_last=None):
    """Have a spy on each release; optionally, do as others did, and call after the last one.

    With ``repeat=0`` the spies draw no noise of their own, so that seeded fits are as without them.
    """
    spies = []
    release = Curator.release

    def watched(curator, mechanism):
        if others is None:
            spies.append(_Spy(mechanism, repeat))
        else:
            other = others[len(spies)]
            spies.append(_Spy(other.mechanism, repeat, other.told))
        result = release(curator, spies[-1])
        planned = sum(split_repetition(event)[1] for event in curator.plan.events)
        if after_last is not None and len(spies) == planned:
            after_last(curator)
        return result

    with mock.patch.object(Curator, "release", watched):
        yield spies


class _StopFit(Exception):
    pass


def _stop(curator):
    raise _StopFit


def _release_only(estimator, X, y, others=None):
    """Fit up to the last release and return the spies."""
    with _spies(others=others, after_last=_stop) as spies, contextlib.suppress(_StopFit):
        estimator.fit(X, y)
    return spies


def _release_exactly(make, spies, X, y, null=None):
    """Return what the mechanisms of another fit release on these rows, without noise."""
    with mock.patch.object(base, "Curator", partial(Curator, null=null)):
        return [spy.exact for spy in _release_only(make(), X, y, spies)]


def _numbers(result):
    """Return all arrays of a released dataclass, as one vector."""
    assert is_dataclass(result), f"A release gives {type(result)}, not a dataclass of arrays."
    values = [getattr(result, field.name) for field in fields(result)]
    return np.concatenate([value.ravel() for value in values if isinstance(value, np.ndarray)])


# Comparisons.


def _fitted_state(estimator):
    """Return fitted attributes and the weights of networks."""
    state = {}
    for name, value in sorted(vars(estimator).items()):
        if isinstance(value, torch.nn.Module):
            state.update({f"{name}.{k}": v.numpy() for k, v in value.state_dict().items()})
        elif name.endswith("_") and not name.startswith("_"):
            state[name] = value
    return state


def _assert_same(what, first, second, which):
    """Fail unless two nested structures are the same to the bit."""
    assert not _differ(first, second), f"{what}: {which} differ."


def _differ(first, second):
    if isinstance(first, dict):
        return first.keys() != second.keys() or any(_differ(first[k], second[k]) for k in first)
    if isinstance(first, (tuple, list)):
        pairs = zip(first, second, strict=False)
        return len(first) != len(second) or any(_differ(a, b) for a, b in pairs)
    if isinstance(first, (np.ndarray, pd.DataFrame, pd.Series)):
        return not np.array_equal(np.asarray(first), np.asarray(second))
    return first != second


def _assert_raises(expected, call):
    """Return the error that `call` raises, which must be of the expected type."""
    try:
        call()
    except expected as error:
        return error
    except Exception as error:
        raise AssertionError(f"{type(error).__name__} instead of {expected.__name__}.") from error
    raise AssertionError(f"No {expected.__name__} is raised.")


def _assert_untold(error, secret):
    """Fail if an error, or one that it was raised from or during, quotes a private value."""
    while error is not None:
        assert secret not in str(error), "An error quotes a private value."
        error = error.__cause__ or error.__context__


@contextlib.contextmanager
def _kept_global_generators():
    numpy_state, torch_state = np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    try:
        yield
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
        torch.set_rng_state(torch_state)
