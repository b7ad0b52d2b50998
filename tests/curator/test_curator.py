"""The door to private rows: plans are kept, ledgers come first, nothing private gets out."""

import copy
import gc
import math
import pickle
import re
import traceback
import warnings
import weakref
from functools import partial
from unittest import mock

import numpy as np
import pytest
import torch
from dp_accounting import (
    ComposedDpEvent,
    GaussianDpEvent,
    NonPrivateDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
)

from skdpgen.curator.batches import RecordSource
from skdpgen.curator.curator import Digest, find_digest
from skdpgen.privacy import (
    BudgetExceededError,
    CategoryCountsMechanism,
    CovarianceMechanism,
    Curator,
    GaussianSumMechanism,
    NoiseSource,
    Plan,
    PlanError,
    PrivacyBudget,
    RecordFunction,
    SlicedGaussianDpEvent,
    SliceSketchMechanism,
    SpentError,
    TableError,
    compose,
    gaussian_plan,
    ledger_epsilon,
)
from skdpgen.transport import SliceBasis

SECRET = 271828.125
N = 1100


def total(name="a"):
    return GaussianSumMechanism(RecordFunction(lambda rows: rows), 1.0, name=name)


def plan(*names, epsilon=1.0):
    names = names or ("a",)
    return gaussian_plan({name: 1 / len(names) for name in names}, epsilon, 1e-5)


def rows(n=N, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 3))


def curator(X, y=None, *, prepare=None, **options):
    prepare = None if prepare is None else RecordFunction(prepare)
    return Curator(X, y, prepare=prepare, **({"plan": plan(), "noise": NoiseSource(0)} | options))


def messages(error):
    """Everything that a traceback would print of an error."""
    texts, seen = [], set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        texts += [str(error), repr(error), *getattr(error, "__notes__", [])]
        error = error.__cause__ or error.__context__
    return "\n".join(texts)


class Watched:
    """Chunks of rows that count how often they are read."""

    def __init__(self, X=None):
        self.X, self.reads = rows() if X is None else X, 0

    def __call__(self):
        self.reads += 1
        return iter([self.X])


# --- the plan ------------------------------------------------------------------------------------


@pytest.mark.parametrize("sequence", [["b"], ["unplanned"], ["a", "a"], ["a", "b", "b"]])
def test_releases_follow_the_plan_or_read_nothing(sequence):
    watched = Watched()
    held = curator(watched, plan=plan("a", "b"))
    for name in sequence[:-1]:
        held.release(total(name))
    reads, certificate = watched.reads, held.certificate()
    with pytest.raises(PlanError, match="is not the next planned release"):
        held.release(total(sequence[-1]))
    assert watched.reads == reads
    assert held.certificate() == certificate


@pytest.mark.catches(
    "curator.curator:Curator._release",
    """
    if position == len(self._ledger):
        self._ledger.append(_Entry(mechanism.name, event))
    self._ledger[position].count += 1
    """,
    "pass",
)
def test_the_ledger_is_written_before_rows_are_read():
    class Failing(GaussianSumMechanism):
        def _block_sum(self, rows, membership, scale):
            assert held.certificate().releases == ("a",)
            raise KeyboardInterrupt

    held = curator(rows(), plan=plan("a", "b"))
    with pytest.raises(KeyboardInterrupt):
        held.release(Failing(RecordFunction(lambda rows: rows), 1.0, name="a"))
    assert held.certificate().events == (held.plan.events[0],)


@pytest.mark.catches("curator.curator:Curator.certificate", "self._noise.reproducible", "False")
@pytest.mark.parametrize("seed", [None, 0])
def test_the_certificate_says_whether_the_seed_was_fixed(seed):
    held = curator(rows(), noise=NoiseSource(seed))
    held.release(total())
    assert held.certificate().reproducible == (seed is not None)


def test_a_failed_release_is_charged_and_cannot_be_repeated():
    class Failing(GaussianSumMechanism):
        def _block_sum(self, rows, membership, scale):
            raise RuntimeError

    budget = PrivacyBudget(5.0, 1e-5)
    with budget, curator(rows(), noise=NoiseSource()) as held:
        with pytest.raises(RuntimeError):
            held.release(Failing(RecordFunction(lambda rows: rows), 1.0, name="a"))
        with pytest.raises(PlanError):
            held.release(total())
    assert budget.spent == pytest.approx(1.0, rel=1e-3)


class Panic(BaseException):
    """As panics of Rust libraries, which are no `Exception`."""


@pytest.mark.catches(
    "accounting.spending:read_at_full_price",
    "not isinstance(error, PublicError)",
    "False",
    param="True-KeyError",
)
@pytest.mark.catches(
    "accounting.spending:read_at_full_price",
    "restated = restate_with_price(error, reason, plan, kinds)",
    "raise restate_with_price(error, reason, plan, kinds)",
    param="True-KeyError",
)
@pytest.mark.catches(
    "accounting.spending:read_at_full_price", "BaseException", "Exception", param="False-Panic"
)
@pytest.mark.catches(
    "curator.curator:Curator._read", "self._has_failed = True", "pass", param="False-KeyError"
)
@pytest.mark.parametrize("kind", [KeyError, MemoryError, OverflowError, Panic, ValueError])
@pytest.mark.parametrize("is_first", [True, False])
def test_errors_while_rows_are_read_are_withheld_and_charge_all(kind, is_first):
    """They may follow from a single cell, and quote it; so may what they come from."""

    def fail(*args):
        try:
            raise RuntimeError(SECRET)
        except RuntimeError as error:
            raise kind(SECRET) from error

    class Failing(GaussianSumMechanism):
        _block_sum = fail

    budget = PrivacyBudget(5.0, 1e-5)
    said = rf"could not be read .{kind.__name__}.*withheld.*all of the fit is charged: ε = 1 "

    def fit():
        refuse = fail if is_first else None
        with curator(rows(), plan=plan("a", "b"), noise=NoiseSource(), refuse=refuse) as held:
            held.release(Failing(RecordFunction(lambda rows: rows), 1.0, name="a"))

    with budget, pytest.raises((SpentError, Panic)) as caught:
        fit()
    assert type(caught.value) is SpentError
    assert re.search(said, str(caught.value))
    assert budget.spent == pytest.approx(1.0, rel=1e-3)
    assert caught.value.__context__ is None
    assert str(SECRET) not in "".join(traceback.format_exception(caught.value))


@pytest.mark.catches("curator.curator:Curator._read", "PlanError", "(PlanError, TableError)")
def test_a_table_that_does_not_match_its_schema_later_charges_all():
    """Which rows a later reading meets may follow from private cells."""

    class Failing(GaussianSumMechanism):
        def _block_sum(self, rows, membership, scale):
            raise TableError("The columns differ.")

    budget = PrivacyBudget(5.0, 1e-5)
    opened = partial(curator, rows(), plan=plan("a", "b"), noise=NoiseSource())
    with budget, pytest.raises(TableError, match="all of the fit is charged: ε = 1 "):
        with opened() as held:
            held.release(Failing(RecordFunction(lambda rows: rows), 1.0, name="a"))
    assert budget.spent == pytest.approx(1.0, rel=1e-3)


@pytest.mark.catches(
    "curator.curator:Curator.encode_cells_by",
    "self._read(partial(self._open_source().encode_cells_by, function))",
    "self._open_source().encode_cells_by(function)",
    param="Panic",
)
@pytest.mark.parametrize("kind", [KeyError, Panic])
def test_errors_while_cells_are_encoded_are_withheld_and_charge_all(kind):
    def fail(cells):
        raise kind(SECRET)

    budget = PrivacyBudget(5.0, 1e-5)
    cells = np.full((4, 1), SECRET, dtype=object)
    opened = partial(curator, cells, cells=fail, plan=plan("a", "b"), noise=NoiseSource())
    with budget, pytest.raises((SpentError, Panic)) as caught, opened() as held:
        held.encode_cells_by(RecordFunction(lambda cells: np.zeros((len(cells), 1))))
    assert type(caught.value) is SpentError
    assert budget.spent == pytest.approx(1.0, rel=1e-3)
    assert str(SECRET) not in messages(caught.value)


@pytest.mark.catches("curator.curator:Curator._read", "PlanError", "()", param="PlanError")
@pytest.mark.parametrize("kind", [PlanError, KeyboardInterrupt])
def test_errors_that_no_cell_causes_charge_what_was_released(kind):
    class Failing(GaussianSumMechanism):
        def _block_sum(self, rows, membership, scale):
            raise kind

    budget = PrivacyBudget(5.0, 1e-5)
    opened = partial(curator, rows(), plan=plan("a", "b"), noise=NoiseSource())
    with budget, opened() as held, pytest.raises(kind):
        held.release(Failing(RecordFunction(lambda rows: rows), 1.0, name="a"))
    assert 0 < budget.spent < 0.9


@pytest.mark.catches(
    "accounting.spending:read_at_full_price", "muted(RuntimeWarning)", "muted(DeprecationWarning)"
)
def test_warnings_of_numpy_that_rows_cause_are_muted():
    class Overflowing(GaussianSumMechanism):
        def _block_sum(self, rows, membership, scale):
            np.full(2, 1e308) * 10
            return super()._block_sum(rows, membership, scale)

    held = curator(rows(), noise=NoiseSource())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        held.release(Overflowing(RecordFunction(lambda rows: rows), 1.0, name="a"))
    assert not caught


def test_the_certificate_names_what_was_released_only():
    held = curator(rows(), plan=plan("a", "b"))
    assert held.certificate().epsilon == 0
    held.release(total())
    part = held.certificate().epsilon
    held.release(total("b"))
    assert 0 < part < held.certificate().epsilon <= 1.0


@pytest.mark.catches(
    "curator.curator:Curator._release",
    "self._digest.add(released)",
    """
    self._digest = Digest()
    self._digest.add(released)
    """,
)
def test_the_digest_is_of_all_releases_in_their_order():
    expected, digests = Digest(), [curator(rows()).certificate().digest]
    held = curator(rows(), plan=plan("a", "b", "c"))
    for name in "abc":
        expected.add(held.release(total(name)))
        digests.append(held.certificate().digest)
        assert digests[-1] == str(expected)
    assert digests[0] is None
    assert len(set(digests)) == 4


@pytest.mark.catches(
    "curator.curator:Curator._find_digest",
    "self._digest.n_added == n_released > 0",
    "n_released > 0",
)
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupted_release_has_no_digest(error, monkeypatch):
    """Releases of which nothing is known must not be taken for one."""
    budget = PrivacyBudget(5.0, 1e-5)
    with budget, curator(rows(), plan=plan("a", "b"), noise=NoiseSource()) as held:
        held.release(total())
        monkeypatch.setattr(RecordSource, "blocks", mock.Mock(side_effect=error))
        with pytest.raises((error, SpentError)):
            held.release(total("b"))
    certificate = held.certificate()
    assert (len(certificate.events), certificate.digest) == (2, None)
    assert len(compose(certificate, certificate).events) == 4
    assert [charge.digest for charge in budget._store.read()] == [None]


@pytest.mark.catches(
    "curator.curator:Curator._release",
    """
    self._digest.add(released)
    if self.released is not None:
        self.released.append(released)
        self.on_release()
    """,
    """
    if self.released is not None:
        self.released.append(released)
        self.on_release()
    self._digest.add(released)
    """,
)
def test_a_release_has_its_digest_where_it_is_published():
    """At once after it was made, since a fit may be interrupted then."""
    found = []
    with curator(rows(), plan=plan("a", "b"), noise=NoiseSource()) as held:
        held.on_release = lambda: found.append(held.certificate().digest)
        first = held.release(total())
        second = held.release(total("b"))
    assert found == [find_digest([first]), find_digest([first, second])]


def test_the_noise_is_that_of_the_plan():
    events = (("a", GaussianDpEvent(30.0)), ("b", GaussianDpEvent(3000.0)))
    values = []
    for seed in range(100):
        held = curator(rows(), plan=Plan(events, 1.0, 1e-5), noise=NoiseSource(seed))
        values.append([held.release(total(name)).value for name in "ab"])
    assert np.std(values, axis=0).mean(1) == pytest.approx([30, 3000], rel=0.2)


def test_releases_of_one_plan_have_distinct_names():
    with pytest.raises(PlanError, match="distinct names"):
        Plan((("a", GaussianDpEvent(3000.0)), ("a", GaussianDpEvent(30.0))), 1.0, 1e-5)


@pytest.mark.parametrize(
    "event",
    [
        PoissonSampledDpEvent(0.01, GaussianDpEvent(20.0)),
        SelfComposedDpEvent(SelfComposedDpEvent(GaussianDpEvent(20.0), 2), 2),
        ComposedDpEvent((GaussianDpEvent(20.0),)),
        SlicedGaussianDpEvent(20.0, 50, 2),
    ],
    ids=lambda event: type(event).__name__,
)
def test_events_that_a_sum_does_not_execute_are_refused(event):
    with pytest.raises((PlanError, ValueError, TypeError)):
        curator(rows(), plan=Plan((("a", event),), 5.0, 1e-5)).release(total())


def test_a_repeated_sum_is_charged_as_often_as_it_happened():
    event, budget = GaussianDpEvent(20.0), PrivacyBudget(5.0, 1e-5)
    repeated = Plan((("a", SelfComposedDpEvent(event, 3)), ("b", event)), 5.0, 1e-5)
    for n_done in (2, 3):
        before = budget.spent
        with budget, curator(rows(), plan=repeated, noise=NoiseSource()) as held:
            values = [held.release(total()).value for _ in range(n_done)]
            if n_done == 2:
                with pytest.raises(PlanError, match="not the next planned release"):
                    held.release(total("b"))
            else:
                held.release(total("b"))
            certificate = held.certificate()
        assert len(np.unique(values)) == 3 * n_done  # each has its own noise
        assert certificate.epsilon == ledger_epsilon(
            [SelfComposedDpEvent(event, {2: 2, 3: 4}[n_done])], 1e-5
        )
        assert budget.spent > before
    assert budget.spent == pytest.approx(ledger_epsilon([event] * 6, 1e-5))


@pytest.mark.catches(
    "accounting.plan:Plan.__post_init__", "cost > self.epsilon", "cost > self.epsilon * (1 + 1e-2)"
)
def test_a_plan_that_overruns_by_a_millionth_is_refused():
    releases = (("a", GaussianDpEvent(2.0)), ("b", GaussianDpEvent(3.0)))
    cost = ledger_epsilon([event for _, event in releases], 1e-5)
    Plan(releases, cost, 1e-5)
    with pytest.raises(BudgetExceededError, match="over its budget"):
        Plan(releases, cost * (1 - 1e-6), 1e-5)


@pytest.mark.parametrize("shares", [{"a": 0.5}, {"a": 1.5}, {}])
def test_shares_sum_to_one(shares):
    with pytest.raises(ValueError, match="sum to 1"):
        gaussian_plan(shares, 1.0, 1e-5)


@pytest.mark.parametrize("shares", [{"a": 1.5, "b": -0.5}, {"a": 1.0, "b": 0.0}])
def test_shares_are_positive(shares):
    with pytest.raises(ValueError, match="must be positive"):
        gaussian_plan(shares, 1.0, 1e-5)


# --- rows ----------------------------------------------------------------------------------------


def test_a_closed_curator_holds_no_rows():
    X = rows()
    held = curator(X, null=np.zeros(N, bool), prepare=lambda X, y: X)
    held.release(total())
    reference = weakref.ref(X)
    held.close()
    del X
    gc.collect()
    assert reference() is None
    with pytest.raises(PlanError, match="closed and holds no rows"):
        held.release(total())


def test_leaving_closes_even_after_an_error():
    held = curator(rows())
    with pytest.raises(ZeroDivisionError), held:
        raise ZeroDivisionError
    with pytest.raises(PlanError, match="closed"):
        held.release(total())


@pytest.mark.parametrize("spread", [pickle.dumps, copy.copy, copy.deepcopy])
def test_pickles_and_copies_are_refused(spread):
    with pytest.raises(TypeError, match="holds private rows"):
        spread(curator(rows()))


def mechanisms():
    basis = SliceBasis(torch.eye(3), 1.0, 2)
    return [CovarianceMechanism(), total(), SliceSketchMechanism(basis, 2)]


def released(X, y):
    named = plan("second moments", "a", "slice sketch")
    with curator(X, y, plan=named, classes=[0, 1], clip_norm=2.0) as held:
        moments, sums, sketch = map(held.release, mechanisms())
    return np.concatenate([moments.value.ravel(), sums.value, sketch.sums.ravel(), sketch.counts])


@pytest.mark.parametrize("source", ["memmap", "chunks", "uneven", "single rows", "generator"])
def test_rows_that_arrive_otherwise_give_the_same_bits(source, tmp_path):
    X, y = rows(), np.arange(N) % 2
    reference = released(X, y)
    if source == "memmap":
        np.save(tmp_path / "X.npy", X)
        assert (released(np.load(tmp_path / "X.npy", mmap_mode="r"), y) == reference).all()
        return
    sizes = {"uneven": [700, 1, 399], "single rows": [1] * N}.get(source, [100] * 11)
    stops = np.cumsum(sizes)

    def chunks():
        for start, stop in zip(stops - sizes, stops, strict=True):
            yield X[start:stop], y[start:stop]

    chosen = chunks if source == "generator" else lambda: iter(list(chunks()))
    assert (released(chosen, None) == reference).all()


def test_rows_are_clipped_one_by_one():
    X = np.array([[30.0, 0, 0], [0, 0.5, 0], [0, 0, -2.0]])
    held = curator(X, plan=Plan((("a", NonPrivateDpEvent()),), np.inf, 1e-5), clip_norm=2.0)
    assert held.release(total()).value == pytest.approx([1, 0.25, -1], abs=1e-4)


@pytest.mark.parametrize(
    ("X", "error"),
    [
        ([rows(5), rows(5)], ValueError),
        (iter([rows(5)]), (TypeError, ValueError)),
        (lambda: [rows(5)], TypeError),
        (lambda: rows(5), TypeError),
        (rows(5)[0], ValueError),
        (np.empty((0, 3)), ValueError),
        (lambda: iter([]), ValueError),
        (lambda: iter([(rows(5), np.zeros(4))]), ValueError),
    ],
    ids=["list", "iterator", "list of chunks", "array", "1-D", "no rows", "no chunks", "short y"],
)
def test_misuse_is_explained(X, error):
    with pytest.raises(error, match=r"2-dimensional|iterator|no rows"):
        curator(X)


def test_an_iterator_that_can_be_read_once_is_refused():
    chunks = iter([rows(20)])
    with pytest.raises((TypeError, SpentError), match=r"fresh iterator|read again|rows"):
        curator(lambda: chunks).release(total())


def test_rows_that_change_their_number_between_readings_are_refused():
    sizes = iter([20, 400])
    held = curator(lambda: iter([rows(next(sizes))]))
    with pytest.raises(SpentError, match=r"another number of rows"):
        held.release(total())


def test_chunks_without_labels_are_refused():
    with pytest.raises((TypeError, ValueError)):
        curator(lambda: iter([rows(5)]), classes=[0, 1])


@pytest.mark.catches(
    "curator.batches:RecordSource.prepare",
    "1e-100 <= clip_norm < math.inf",
    "0 < clip_norm < math.inf",
    param="5e-324",
)
@pytest.mark.parametrize("clip_norm", [0.0, -1.0, np.inf, np.nan, 5e-324, 1e-101])
def test_bad_clip_norm(clip_norm):
    with pytest.raises(ValueError, match="clip_norm must be positive and finite"):
        curator(rows(), clip_norm=clip_norm)


@pytest.mark.parametrize("clip_norm", [1e-100, 1e-50, 1e150])
def test_rows_are_clipped_by_any_radius_that_is_taken(clip_norm):
    held = exact(np.array([[3.0, 4.0, 0.0]]) * clip_norm, clip_norm=clip_norm)
    assert summed(held) == pytest.approx([0.6, 0.8, 0], abs=1e-4)


def test_null_has_one_entry_per_record():
    with pytest.raises(ValueError, match="one entry per record"):
        curator(rows(), null=np.zeros(N - 1, bool))


# --- what must not get out ---------------------------------------------------------------------


def summed(held):
    """Return the sum, released without noise, of rows that were made for it."""
    return held.release(GaussianSumMechanism(RecordFunction(lambda rows: rows), 1.0, "sum")).value


def exact(X, y=None, **options):
    plan = Plan((("sum", NonPrivateDpEvent()),), math.inf, 1e-5)
    return curator(X, y, plan=plan, **options)


BAD_RECORDS = {
    "NaN": (np.nan, 0),
    "infinite": (np.inf, 0),
    "minus infinity": (-np.inf, 0),
    "label": (0.3, 7),
    "missing label": (0.3, None),
    "unhashable label": (0.3, [1]),
}


@pytest.mark.catches(
    "curator.batches:RecordSource._map_rows", "np.isfinite(block)", "~np.isnan(block)"
)
@pytest.mark.parametrize("as_chunks", [False, True])
@pytest.mark.parametrize("prepare", [None, lambda X, y: X, lambda X, y: X.clip(-1, 1)])
@pytest.mark.parametrize("name", BAD_RECORDS)
def test_a_bad_record_counts_as_absent_and_changes_no_other(name, prepare, as_chunks):
    value, label = BAD_RECORDS[name]
    X, y = rows() / 10, np.zeros(N, dtype=object)
    X[7, 1], y[7] = value, label
    good, null = np.where(np.isfinite(X), X, 0.5), np.arange(N) == 7
    options = {"classes": [0, 1], "prepare": prepare}

    def given(X, y):
        return (lambda: iter([(X[:9], y[:9]), (X[9:], y[9:])]), None) if as_chunks else (X, y)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = summed(exact(*given(X, y), **options))
    absent = summed(exact(*given(good, np.zeros(N, dtype=int)), **options, null=null))
    assert (found == absent).all()


@pytest.mark.catches(
    "curator.batches:RecordSource.cells", "classes >= 0", "classes >= -1", param="7"
)
@pytest.mark.parametrize("label", [7, None, [1], np.nan])
def test_a_bad_label_counts_as_absent_where_cells_are_read(label):
    cells = np.array([["a"], ["b"], ["b"], ["c"]], dtype=object)
    y = np.array([0, 1, 1, 1], dtype=object)
    y[2] = label
    counts = CategoryCountsMechanism({"column": 0})
    plan = Plan(((counts.name, NonPrivateDpEvent()),), math.inf, 1e-5)
    held = curator(cells, y, plan=plan, classes=[0, 1], cells=True)
    assert held.release(counts) == {"column": {"a": 1, "b": 1, "c": 1}}


@pytest.mark.catches(
    "curator.batches:RecordSource._map_rows",
    "enumerate(blocks)",
    "enumerate(blocks[:1])",
    param="inf",
)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_bad_number_beside_a_row_makes_it_absent(bad):
    """Though the map would make a finite row of it."""
    X, y, null = rows() / 10, np.full(N, 0.25), np.arange(N) == 7

    def join(X, y):
        return np.column_stack([X, np.nan_to_num(y).clip(0, 1)])

    absent = summed(exact(X, y, prepare=join, null=null))
    y[7] = bad
    assert (summed(exact(X, y, prepare=join)) == absent).all()


@pytest.mark.catches(
    "curator.curator:Curator.__init__",
    "read_at_full_price(self._source.open, plan)",
    """
    try:
        read_at_full_price(self._source.open, plan)
    except ValueError:
        self.close()
        raise
    """,
)
@pytest.mark.parametrize("name", BAD_RECORDS)
def test_strict_curators_refuse_bad_records_after_the_reservation(name):
    value, label = BAD_RECORDS[name]
    X, y = rows(), np.zeros(N, dtype=object)
    X[7, 1], X[7, 0], y[7] = value, SECRET, label

    def refuse(X, y):
        pass

    def open_curator():
        curator(X, y, noise=NoiseSource(), classes=[0, 1], refuse=refuse)

    budget = PrivacyBudget(5.0, 1e-5)
    with budget, pytest.raises(ValueError, match=r"NaN or infinity|not among") as caught:
        open_curator()
    assert str(SECRET)[:5] not in messages(caught.value)
    # A refusal is an answer, and not for nothing; where nothing is left there is none.
    assert budget.spent > 0
    with PrivacyBudget(1e-3, 1e-5), pytest.raises(BudgetExceededError):
        open_curator()
    X = X.astype(object)
    X[7, 0] = "Smith"
    with PrivacyBudget(1e-3, 1e-5), pytest.raises(BudgetExceededError):
        curator(X, noise=NoiseSource())


@pytest.mark.catches("data.record_functions:_by_record", "range(n)", "range(0)")
def test_a_record_for_which_an_encoder_fails_counts_as_absent():
    def prepare(X, y):
        if (np.abs(X) > 5).any():
            warnings.warn(f"{X}", UserWarning, stacklevel=2)
            raise ValueError(f"cannot encode {X}") from KeyError(X[0, 0])
        return X

    X = rows() / 10
    X[3] = SECRET
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = summed(exact(X, prepare=prepare))
    assert (found == summed(exact(X, prepare=prepare, null=np.arange(N) == 3))).all()
    assert (found == summed(exact(np.delete(X, 3, 0)))).all()
    # Where it fails for all, all are absent, and nothing is said.
    assert not summed(exact(np.full((5, 3), SECRET), prepare=prepare)).any()


@pytest.mark.catches("_process.muting:muted", '"ignore"', '"default"')
def test_warnings_of_an_encoder_are_withheld():
    def prepare(X, y):
        warnings.warn(f"{X}", UserWarning, stacklevel=2)
        return X * np.nan

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert not summed(exact(rows(), prepare=prepare)).any()
    assert not caught


@pytest.mark.parametrize("X", [np.ones((N, 3)), np.full((N, 3), SECRET)])
@pytest.mark.parametrize(
    "prepare",
    [
        lambda X, y: X[:-1],
        lambda X, y: X[0],
        lambda X, y: [["Smith"]] * len(X),
        lambda X, y: 1 / 0,
    ],
)
def test_encoders_that_cannot_be_are_refused_whatever_the_rows(prepare, X):
    budget = PrivacyBudget(5.0, 1e-5)
    with budget, pytest.raises(ValueError, match="on a public row of zeros it does not"):
        curator(X, noise=NoiseSource(), prepare=prepare)
    assert budget.spent == 0


def test_a_width_that_follows_from_the_rows_is_none():
    """An encoder that gives another number of columns for some rows fails for these."""

    def prepare(X, y):
        return np.hstack([X, X]) if (X[:, 0] > 5).any() else X

    X = rows() / 10
    X[3, 0] = 6.0
    assert (summed(exact(X, prepare=prepare)) == summed(exact(np.delete(X, 3, 0)))).all()


@pytest.mark.parametrize("X", [np.array([["Smith", "1"]]), np.array([["Smith", 1]], dtype=object)])
@pytest.mark.parametrize("prepare", [None, lambda X, y: X])
def test_cells_that_are_no_numbers_are_not_quoted(X, prepare):
    with pytest.raises((TypeError, ValueError)) as caught:
        curator(lambda: iter([X]), prepare=prepare)
    assert "Smith" not in messages(caught.value)


def test_numbers_reach_the_encoder_and_labels_do_not():
    seen = []

    def prepare(X, y):
        seen.append(y)
        return X

    summed(exact(rows(4), np.arange(4), classes=range(4), prepare=prepare))
    summed(exact(rows(4), np.arange(4.0), prepare=prepare))
    # Each time first for a public row of zeros.
    assert seen[:2] == [None, None]
    assert seen[2].tolist() == [0.0]
    assert (seen[3] == np.arange(4.0)).all()
