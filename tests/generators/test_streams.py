"""Streams of releases: periods, budgets, files, learners and refusals."""

import copy
import itertools
import multiprocessing
import os
import pickle
import signal
import sys
import warnings
from unittest import mock

import numpy as np
import pandas as pd
import pytest

import skdpgen
from skdpgen import Category, DPSWFlowSampler, Number, PrivacyBudget, Schema, compose, streams
from skdpgen.accounting import budget as budget_module
from skdpgen.accounting import budget_stores
from skdpgen.curator import curator as curator_module
from skdpgen.privacy import BudgetExceededError, Curator, FitQualityWarning, TableError
from skdpgen.releases import from_release, merge
from skdpgen.streams import ReleaseStream
from skdpgen.tables import Implies

from ..accounting.killing import kill_at

SCHEMA = Schema(
    {"age": Number(0, 80, decimals=0, knots=[0, 40, 80]), "smokes": Category(["no", "yes"])},
    [Implies({"smokes": "yes"}, {"age": [(40, None)]})],
)
MONTHS = ["jan", "feb", "mar"]


def make_rows(month, share, n_rows=400):
    rng = np.random.default_rng(MONTHS.index(month))
    smokes = rng.random(n_rows) < share
    age = np.where(smokes, 60, rng.integers(0, 81, n_rows))
    return pd.DataFrame({"month": month, "age": age, "smokes": np.where(smokes, "yes", "no")})


ROWS = pd.concat([make_rows("jan", 0.2), make_rows("feb", 0.2), make_rows("mar", 0.8)])


def make_stream(epsilon=8.0, **params):
    return ReleaseStream(epsilon, MONTHS, SCHEMA, period="month", **params)


def test_each_update_adds_the_rows_of_a_period(tmp_path):
    stream = make_stream()
    for t in (1, 2, 3):
        # Rows of later periods are not counted before their turn.
        stream.update(ROWS)
        tables = stream.release_.main
        expected = ROWS[ROWS.month.isin(MONTHS[:t])]
        counts = expected.smokes.value_counts()[["no", "yes"]]
        levels, std = tables.count_levels()
        np.testing.assert_allclose(levels[-2:], counts, atol=5 * std[-1])
        stream.save(tmp_path / "stream")
        stream = skdpgen.load(tmp_path / "stream")
    assert stream.release_.certificate.epsilon <= 8.0
    assert len(stream.release_.certificate.events) == 1
    with pytest.raises(ValueError, match="All 3 updates"):
        stream.update(ROWS)


def test_learners_fit_what_was_released(tmp_path):
    stream = make_stream().update(ROWS[ROWS.month == "jan"])
    stream.release_.save(tmp_path / "release")
    fitted = from_release(tmp_path / "release", DPSWFlowSampler(n_steps=50))
    rows = fitted.sample(2000, random_state=0)
    assert list(rows) == ["age", "smokes"]
    assert rows.age.dtype == ROWS.age.dtype
    assert (rows.age[rows.smokes == "yes"] >= 40).all()
    assert (rows.smokes == "yes").mean() == pytest.approx(0.2, abs=0.05)
    fitted.save(tmp_path / "fitted")
    skdpgen.load(tmp_path / "fitted")


def test_first_update_charges_the_whole_stream():
    budget, other = PrivacyBudget(8.0, 1e-5), PrivacyBudget(8.0, 1e-5)
    stream = make_stream()
    with budget:
        stream.update(ROWS)
        assert budget.spent == pytest.approx(8.0, rel=1e-6)
        stream.update(pd.concat([ROWS, ROWS]))
        assert budget.spent == pytest.approx(8.0, rel=1e-6)
    # A budget that is opened later is charged with all updates.
    with other:
        stream.update(pd.concat([ROWS, ROWS]))
    assert other.spent == pytest.approx(8.0, rel=1e-6)
    with budget, pytest.raises(BudgetExceededError):
        make_stream(1.0).update(ROWS)


@pytest.mark.catches(
    "accounting.budget:PrivacyBudget._reserve",
    "plan.follows is not None and paid == replace(charge, digest=plan.follows)",
    "plan.follows is not None and paid.events == charge.events",
    param="True",
)
@pytest.mark.parametrize("stored", [False, True])
def test_each_stream_pays_for_itself(stored, tmp_path):
    budget = PrivacyBudget(20.0, 1e-5, path=tmp_path / "budget" if stored else None)
    one, other = make_stream(), make_stream().update(ROWS)
    with budget:
        one.update(ROWS)
        spent = budget.spent
        other.update(ROWS)
        both = budget.spent
        assert both > 1.2 * spent
        one.update(ROWS)
        other.update(ROWS)
    assert budget.spent == both


@pytest.mark.catches(
    "accounting.budget:PrivacyBudget._reserve", "replace(charge, events=())", "charge"
)
@pytest.mark.catches(
    "accounting.budget:PrivacyBudget._reserve",
    "return ticket, charge, paid",
    "return ticket, charge, charge",
)
def test_an_update_that_failed_has_paid_for_nothing(monkeypatch):
    budget, stream = PrivacyBudget(30.0, 1e-5), make_stream()

    def fail(*args, **params):
        raise RuntimeError

    def fail_to_update():
        with monkeypatch.context() as patched:
            patched.setattr("skdpgen.curator.curator.Curator.release", fail)
            with pytest.raises(RuntimeError):
                stream.update(ROWS)

    with budget:
        fail_to_update()
        assert budget.spent == 0
        stream.update(ROWS)
        assert budget.spent == pytest.approx(8.0, rel=1e-6)
        fail_to_update()
        # Nothing was released, so that the update can still be made.
        stream.update(ROWS)
    assert budget.spent == pytest.approx(8.0, rel=1e-6)


@pytest.mark.catches(
    "accounting.budget:Reservation.settle",
    "replace(left, events=events, digest=digest) if events else left",
    "replace(left, events=events, digest=digest)",
)
def test_an_update_that_was_refused_by_one_budget_can_be_made_in_another():
    first, small = PrivacyBudget(30.0, 1e-5), PrivacyBudget(7.0, 1e-5)
    with first:
        stream = make_stream().update(ROWS)
        with small, pytest.raises(BudgetExceededError):
            stream.update(ROWS)
        stream.update(ROWS)
    assert (len(stream.released), len(first._store.read()), small.spent) == (2, 1, 0)
    assert first.spent == pytest.approx(8.0, rel=1e-6)


def copy_by_file(stream, folder):
    stream.save(folder / "copied")
    return skdpgen.load(folder / "copied")


COPIES = {
    "file": copy_by_file,
    "pickle": lambda stream, folder: pickle.loads(pickle.dumps(stream)),
    "copy": lambda stream, folder: copy.copy(stream),
}


@pytest.mark.catches(
    "accounting.budget_stores:_read_charges",
    "Charge(_read(events), delta, bool(flag), digest)",
    "Charge(_read(events), delta, bool(flag))",
    param="file-True",
)
@pytest.mark.catches(
    "streams:ReleaseStream.update", "(*digests, own.digest)", "digests", param="copy-False"
)
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("way", COPIES)
def test_only_one_copy_of_a_stream_is_paid_for(way, stored, tmp_path):
    """The price of two copies is that of two streams, in budgets and of their certificates."""
    budget = PrivacyBudget(30.0, 1e-5, path=tmp_path / "budget" if stored else None)
    with budget:
        stream = make_stream().update(ROWS)
        other = COPIES[way](stream, tmp_path)
        stream.update(ROWS)
        assert budget.spent == pytest.approx(8.0, rel=1e-6)
        other.update(ROWS)
        both = compose(stream.release_.certificate, other.release_.certificate)
        assert budget.spent == pytest.approx(both.epsilon, rel=1e-6)
        # Either goes on for what it has paid.
        stream.update(ROWS)
        other.update(ROWS)
    both = compose(stream.release_.certificate, other.release_.certificate)
    assert len(both.events) == 2
    assert budget.spent == pytest.approx(both.epsilon, rel=1e-6)
    with pytest.raises(ValueError, match="two of the same stream"):
        merge(stream.release_, other.release_)


@pytest.mark.catches("streams:ReleaseStream.update", "(*digests, own.digest)", "(own.digest,)")
def test_certificates_of_one_stream_cost_one_event():
    stream, certificates = make_stream(), []
    for n in (200, 300, 400):
        certificates.append(stream.update(ROWS[:n]).release_.certificate)
    for order in itertools.permutations(certificates):
        assert compose(*order).events == certificates[0].events
    assert [certificate.n_records for certificate in certificates] == [200, 300, 400]
    # That of no update may be taken for one of another stream, or for one without a past.
    assert len({certificate.digests for certificate in certificates}) == 3
    assert len(compose(*certificates, make_stream().update(ROWS).release_.certificate).events) == 2


@pytest.mark.catches(
    "streams:ReleaseStream.update", "[own] if last is None else [last, own]", "[own]"
)
@pytest.mark.catches(
    "streams:ReleaseStream.update",
    "(*list_assumptions(format), *assumed)",
    "list_assumptions(format)",
)
def test_a_stream_assumes_what_any_of_its_updates_does():
    stream, later = make_stream().update(lambda: iter([ROWS])), make_stream().update(ROWS)
    (of_chunks,) = {*stream.release_.certificate.assumptions} - {
        *later.release_.certificate.assumptions
    }
    assert "chunk" in of_chunks
    assumed = stream.update(ROWS).release_.certificate.assumptions
    assert of_chunks in assumed
    text = " ".join(assumed)
    for what in ("no record changes its period", "each made once", "periods were fixed beforehand"):
        assert what in text
    assert len(set(assumed)) == len(assumed)


def test_a_stream_keeps_what_it_paid_for_whatever_comes_after(monkeypatch):
    """An update is made once its values are there: the next one follows it."""
    budget, stream = PrivacyBudget(8.0, 1e-5), make_stream()
    with budget, warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(FitQualityWarning, match="spelled otherwise"):
            stream.update(ROWS.assign(month="JAN"))
        with monkeypatch.context() as patched:
            patched.setattr(ReleaseStream, "_warn", mock.Mock(side_effect=KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                stream.update(ROWS)
        stream.update(pd.concat([ROWS, ROWS]))
    assert len(stream.released) == 3
    assert budget.spent == pytest.approx(8.0, rel=1e-6)


WATCHED = {module.__file__ for module in (budget_module, budget_stores, curator_module, streams)}


# Killed as soon as the release is seen, at whatever line that is, and not at all.
SEEN, NEVER = 99_998, 99_999


def attack(folder, number):
    """Update a stream from its file, killed at a line of what keeps account of it."""
    stream, release = skdpgen.load(folder / "stream"), Curator.release

    def leak(curator, mechanism):
        released = release(curator, mechanism)
        # As soon as there is something to see.
        folder.joinpath(f"seen {number}").touch()
        if number == SEEN:
            os.kill(os.getpid(), signal.SIGKILL)
        return released

    Curator.release = leak
    with PrivacyBudget.from_file(folder / "budget"):
        sys.settrace(kill_at(number, WATCHED))
        stream.update(ROWS)


@pytest.mark.catches(
    "accounting.budget:PrivacyBudget._reserve",
    "return ticket, charge, paid",
    "return ticket, paid, paid",
    param="numbers0",
)
@pytest.mark.parametrize(
    "numbers",
    [
        [100, 350, SEEN, NEVER],
        pytest.param([*range(0, 950, 50), SEEN, NEVER], marks=pytest.mark.slow),
    ],
)
def test_an_update_that_is_repeated_is_paid_for_each_time_it_is_seen(numbers, tmp_path):
    """By processes that start from the same file, and are killed somewhere."""
    budget = PrivacyBudget(100.0, 1e-5, path=tmp_path / "budget")
    with budget:
        make_stream(2.0).update(ROWS).save(tmp_path / "stream")
    codes = set()
    for number in numbers:
        process = multiprocessing.get_context("fork").Process(
            target=attack, args=(tmp_path, number)
        )
        process.start()
        process.join(60)
        codes.add(process.exitcode)
    # Not by their values: in tests, all children draw noise from the key of their parent.
    seen = [*tmp_path.glob("seen *")]
    charges = [charge for charge in budget._store.read() if charge.events]
    assert codes == {0, -signal.SIGKILL}
    assert 2 <= len(seen) <= len(charges)
    alone = [make_stream(2.0).update(ROWS).release_.certificate for _ in charges]
    assert budget.spent == pytest.approx(compose(*alone).epsilon, rel=1e-6)


@pytest.mark.catches(
    "streams:ReleaseStream.update",
    "plan or self._make_plan(n_records)",
    "self._make_plan(n_records)",
)
def test_all_updates_share_the_first_plan():
    stream = make_stream().update(ROWS)
    first = stream.release_
    stream.epsilon_total = 0.1
    stream.update(pd.concat([ROWS, ROWS]))
    assert stream.release_.plan == first.plan
    assert stream.release_.certificate.epsilon == first.certificate.epsilon


def test_rows_without_a_period_are_absent():
    odd = ROWS.assign(month=ROWS.month.where(np.arange(len(ROWS)) % 2 == 0, "dec"))
    stream = make_stream()
    for _ in MONTHS:
        stream.update(odd)
    count, std = stream.release_.main.count_records()
    assert count == pytest.approx(len(ROWS) / 2, abs=6 * std)


@pytest.mark.catches("streams:ReleaseStream.update", "NoiseSource()", "NoiseSource(0)")
def test_noise_is_fresh():
    one, other = make_stream().update(ROWS), make_stream().update(ROWS)
    assert (one.released[0].columns != other.released[0].columns).all()
    one.update(ROWS)
    assert not np.array_equal(one.released[0].cells, one.released[1].cells)


def test_rows_of_earlier_periods_are_needed():
    stream = make_stream().update(ROWS[ROWS.month == "jan"])
    with pytest.raises(ValueError, match="fewer than the 400 of the last"):
        stream.update(ROWS[ROWS.month == "feb"][:300])


@pytest.mark.parametrize("n_updates", [2, 3])
def test_rows_of_the_new_period_alone_are_noticed(n_updates):
    stream = make_stream()
    for month in MONTHS[: n_updates - 1]:
        stream.update(ROWS[ROWS.month.isin(["jan", month])])
    new = make_rows(MONTHS[n_updates - 1], 0.2, 800)
    with pytest.warns(FitQualityWarning, match="X has 800 rows, and about .* so far") as warned:
        stream.update(new)
    assert warned[0].filename == __file__
    assert len(stream.released) == n_updates


def test_rows_of_all_periods_are_not_missed(recwarn):
    for _ in range(20):
        stream = make_stream()
        for t in (1, 2, 3):
            stream.update(ROWS[ROWS.month.isin(MONTHS[:t])])
    assert not [w for w in recwarn if "are missing" in str(w.message)]


@pytest.mark.parametrize("spelled", ["Feb", " feb.", "mar", None])
def test_a_period_of_which_no_row_is_is_named(spelled):
    january, february = (make_rows(month, 0.2) for month in ("jan", "feb"))
    absent = february.assign(month=pd.Series([spelled] * len(february), dtype=object))
    for rows, first, period in (
        (absent, None, "'jan'"),
        (pd.concat([january, absent]), january, "'feb'"),
    ):
        stream = make_stream() if first is None else make_stream().update(first)
        with pytest.warns(FitQualityWarning, match=f"of 400 new rows are of the period {period}"):
            stream.update(rows)


def test_a_period_is_not_missed_where_it_has_rows(recwarn):
    for n_rows in (20, 400):
        for _ in range(3):
            stream, so_far = make_stream(), []
            for month in MONTHS:
                so_far.append(make_rows(month, 0.2, n_rows))
                stream.update(pd.concat(so_far))
            # Nor where nothing is new.
            stream = make_stream()
            for _month in MONTHS:
                stream.update(make_rows("jan", 0.2, n_rows))
    assert not [w for w in recwarn if "spelled" in str(w.message)]


def test_public_facts_are_refused_before_anything_is_spent():
    with pytest.raises(ValueError, match="2 to 1,000 labels"):
        ReleaseStream(1.0, ["jan"], SCHEMA)
    with pytest.raises(ValueError, match="horizon must be different; got"):
        ReleaseStream(1.0, ["jan", "feb", "jan"], SCHEMA)
    with pytest.raises(ValueError, match="horizon must be all strings or all numbers"):
        ReleaseStream(1.0, ["1", 2], SCHEMA)
    with pytest.raises(ValueError, match="horizon must be a list"):
        ReleaseStream(1.0, "jan", SCHEMA)
    with pytest.raises(ValueError, match="bounds and categories of all columns"):
        ReleaseStream(1.0, MONTHS, Schema({"age": Number()}))
    with pytest.raises(ValueError, match="must not be a column"):
        ReleaseStream(1.0, MONTHS, SCHEMA, period="age")
    with pytest.raises(ValueError, match="released nothing"):
        make_stream().save("never")
    budget, stream = PrivacyBudget(8.0, 1e-5), make_stream()
    with budget, pytest.raises(TableError):
        stream.update(ROWS.drop(columns="month"))
    assert budget.spent == 0


@pytest.mark.catches("streams:ReleaseStream.update", "warn_of_delta(self.delta, n_records)", "pass")
def test_a_delta_that_allows_to_publish_a_record_is_warned_of():
    with pytest.warns(UserWarning, match="publish a record outright"):
        make_stream(delta=1e-3).update(ROWS)
