"""Tables in partitions: sums are those of a table in one piece; nothing private leaves."""

import traceback
import warnings

import numpy as np
import pandas as pd
import pytest
from dp_accounting import GaussianDpEvent

from skdpgen import Category, DPSlicedWassersteinGenerator, DPSWFlowSampler, Number, Schema
from skdpgen.accounting.plan import Plan, gaussian_plan
from skdpgen.curator.chunks import adapt_table
from skdpgen.engines.partitioned import merge_sums
from skdpgen.exceptions import SpentError, TableError
from skdpgen.privacy import Certificate, Curator, GaussianSumMechanism, NoiseSource, RecordFunction
from skdpgen.releases import SliceSketch

from .conftest import SECRET, Parts, cut

pytestmark = pytest.mark.filterwarnings("ignore")

SCHEMA = Schema({"age": Number(0, 99, decimals=0), "job": Category(["nurse", "cook"])})

WIDER = Schema({**SCHEMA, "ill": Number(0, 1)})


def make_table(n=400):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "job": rng.choice(["nurse", "cook"], n),
            "income": rng.lognormal(7, 1, n).round(2),
        }
    )


@pytest.mark.catches(
    "curator.curator:Curator.certificate", "self._engine", "None", param="sketch-DPSWFlowSampler"
)
@pytest.mark.parametrize("cls", [DPSlicedWassersteinGenerator, DPSWFlowSampler])
@pytest.mark.parametrize("release", ["sketch", SliceSketch(n_projections=40)])
def test_partitions_give_what_the_table_gives(cls, release):
    table = make_table()
    generator = cls(3.0, schema="private", release=release, n_steps=3, random_state=0)
    whole = generator.fit(table)
    rows, certificate = whole.sample(50), whole.privacy_
    # Partitions have no row, one, and many.
    parts = generator.fit(cut(table, 0, 1, 1, 300))
    assert parts.privacy_ == certificate
    assert (certificate.engine, parts.privacy_.engine) == (None, "parts")
    assert parts.privacy_.digest == certificate.digest
    assert "summed by parts" in " ".join(str(parts.privacy_).split())
    assert Certificate.from_json(parts.privacy_.to_json()).engine == "parts"
    pd.testing.assert_frame_equal(parts.sample(50), rows)


class Changing(Parts):
    """Partitions whose source has other rows from the second reading on."""

    n_read, later = 0, None

    def _call_for(self, function, frames):
        self.n_read += 1
        (parts,) = frames
        changed = [*parts, *self.later] if self.later else parts[:-1]
        return super()._call_for(function, frames if self.n_read == 1 else [changed])


@pytest.mark.catches(
    "curator.batches:RecordSource.add_up",
    "not total or total.n_units != self.n_units",
    "not total",
    param="None-one",
)
@pytest.mark.catches(
    "curator.batches:RecordSource.add_up",
    "not total or total.n_units != self.n_units",
    "not total or (self.max_rows is None and total.n_units != self.n_units)",
    param="patient-one",
)
@pytest.mark.parametrize("later", [1, 400, None], ids=["one", "many", "fewer"])
@pytest.mark.parametrize("persons", [None, "patient"])
def test_rows_of_a_later_reading_are_counted(flow, later, persons, monkeypatch):
    """They would be in sums of which the certificate states another number of records."""
    table = make_table().assign(is_ill=False)
    more = [] if later is None else [table[:later].assign(patient="new")]
    names = [f"p{i}" for i in range(len(table))]
    X = Changing([table[:200].assign(patient=names[:200]), table[200:].assign(patient=names[200:])])
    monkeypatch.setattr(Changing, "later", more)
    schema = flow.schema if persons else Schema({**flow.schema, "patient": Category(["p0"])})
    with pytest.raises(SpentError, match="another number of rows, or of persons, than before"):
        flow.set_params(schema=schema).fit(X, persons=persons)


def test_target_and_dtypes_are_kept():
    table = make_table().astype({"age": np.int16, "income": np.float32})
    sampler = DPSWFlowSampler(3.0, schema="private", n_steps=3, random_state=0)
    rows = sampler.fit(cut(table, 100), target="job").sample(y=["cook", "nurse"])
    assert rows["job"].tolist() == ["cook", "nurse"]
    assert rows.dtypes.to_dict() == table.dtypes.to_dict()


@pytest.mark.catches(
    "curator.dataset:Dataset.validate_array", "isinstance(X, TableInParts)", "False"
)
@pytest.mark.catches(
    "curator.dataset:Dataset._split_persons", "is_in_parts and not is_column", "False"
)
@pytest.mark.parametrize(
    ("params", "fit_params", "match"),
    [
        ({"schema": SCHEMA, "release": "rows"}, {}, "SlicedRows reads rows at random"),
        ({"schema": None}, {}, "generator with a schema"),
        ({"schema": SCHEMA}, {"persons": np.arange(20)}, "have no positions"),
        ({"schema": SCHEMA}, {"persons": "patient"}, "the name of no column"),
        ({"schema": WIDER}, {"y": np.zeros(20)}, "target, not y"),
        ({"schema": SCHEMA.drop("age")}, {}, "does not declare"),
    ],
)
def test_impossible_fits_are_refused_before_a_row_is_read(params, fit_params, match):
    class Closed(Parts):
        def _iter_partitions(self):
            raise AssertionError("A row was read.")

        def _add_up(self, function):
            raise AssertionError("A row was read.")

    parts = Closed([make_table(20)[["age", "job"]]])
    with pytest.raises((ValueError, TableError), match=match):
        DPSlicedWassersteinGenerator(1.0, **params).fit(parts, **fit_params)


def test_no_rows():
    parts = cut(make_table(0), 0)
    with pytest.raises(TableError, match="no rows"):
        DPSWFlowSampler(1.0, schema="private").fit(parts)


@pytest.mark.catches("curator.chunks:Partitions.add_up", "type(error).__name__", "str(error)")
@pytest.mark.catches(
    "curator.chunks:Partitions.add_up",
    "failure = type(error).__name__",
    'raise RuntimeError("workers failed (KeyError)") from error',
)
@pytest.mark.parametrize("is_loud", [False, True])
def test_output_of_a_worker_is_dropped(is_loud):
    class Failing(Parts):
        def _add_up(self, function):
            if is_loud:
                raise KeyError(SECRET)
            return super()._add_up(function)

    def fail(part):
        warnings.warn(SECRET, stacklevel=1)
        raise ValueError(SECRET)

    kind = "KeyError" if is_loud else "could not be added up"
    with pytest.raises(RuntimeError, match=kind) as info:
        Failing([make_table(3)]).add_up(fail)
    assert info.value.__context__ is None
    assert info.value.__cause__ is None
    assert SECRET not in "".join(traceback.format_exception(info.value))


class Panic(BaseException):
    """Raised by a library that is not of Python, for a cell."""


@pytest.mark.catches("curator.chunks:Partitions.add_up", "BaseException", "Exception")
def test_a_panic_of_a_worker_is_withheld_and_an_interrupt_is_not():
    class Failing(Parts):
        def _add_up(self, function):
            raise kind(SECRET)

    kind = Panic
    with pytest.raises((RuntimeError, Panic), match=r"failed \(Panic\)") as info:
        Failing([make_table(3)]).add_up(len)
    assert SECRET not in "".join(traceback.format_exception(info.value))
    kind = KeyboardInterrupt
    with pytest.raises(KeyboardInterrupt):
        Failing([make_table(3)]).add_up(len)


@pytest.mark.catches("engines.partitioned:merge_sums", "return None", "continue")
def test_a_failure_after_a_release_says_what_is_charged():
    class Once(Parts):
        calls = []

        def _add_up(self, function):
            self.calls.append(function)
            # The first counts rows, the second is of the first release.
            fails = [None] * (len(self.calls) > 1)
            return merge_sums([*fails, super()._add_up(function)])

    sampler = DPSWFlowSampler(1.0, schema="private", n_steps=2)
    with pytest.raises(SpentError, match=r"workers failed.*all of the fit is charged: ε = 1 "):
        sampler.fit(Once([make_table(30)]))


def test_noise_is_not_sent():
    noise = NoiseSource(None)
    function = RecordFunction(lambda rows: noise.rounded_gaussian(1.0) * rows)
    plan = gaussian_plan({"Gaussian sum": 1.0}, epsilon=1.0, delta=1e-5)
    with Curator(Parts([make_table(5)[["age"]]]), plan=plan, noise=noise) as curator:
        with pytest.raises(RuntimeError, match=r"failed \(TypeError\)"):
            curator.release(GaussianSumMechanism(function, 1.0))


# --- persons -------------------------------------------------------------------------------------


def make_visits(n=400, n_persons=30):
    """Return a table of persons with many rows and with few, and of nobody, all over it."""
    rng = np.random.default_rng(1)
    names = np.array([f"{SECRET}-{i}" for i in range(n_persons)] + [" NA", None], dtype=object)
    whose = rng.integers(0, n_persons + 2, n)
    # Each is there; the first has most of the rows.
    whose[: n_persons + 2] = np.arange(n_persons + 2)
    whose[n // 2 :] = 0
    rng.shuffle(whose)
    return make_table(n).assign(patient=names[whose])


@pytest.mark.catches(
    "curator.batches:RecordSource.add_up", "self._key", "bytes(32)", param="stops0-1"
)
@pytest.mark.parametrize(
    ("stops", "max_rows"), [([], 1), ([0, 1, 1, 2, 300], 3), (range(0, 400, 20), 3)]
)
def test_persons_in_partitions_give_what_the_table_gives(max_rows, stops):
    visits = make_visits()
    sampler = DPSWFlowSampler(9.0, 1e-5, schema="private", n_steps=3, random_state=0)
    sampler.set_params(max_rows_per_person=max_rows)
    whole = sampler.fit(visits.drop(columns="patient"), persons=visits["patient"])
    rows, certificate = whole.sample(50), whole.privacy_
    # The name of a column says the same, in memory and in partitions.
    for table in (visits, cut(visits, *stops)):
        fitted = sampler.fit(table, persons="patient")
        assert fitted.privacy_ == certificate
        assert fitted.privacy_.digest == certificate.digest
        assert (fitted.privacy_.max_rows, fitted.n_samples_) == (max_rows, 30)
        assert fitted.feature_names_in_.tolist() == ["age", "job", "income"]
    pd.testing.assert_frame_equal(fitted.sample(50), rows)


@pytest.mark.catches(
    "curator.batches:_add_up_part",
    "RecordSource(rows, None, persons=persons, **parameters)",
    "RecordSource(rows, None, **parameters)",
    param="stops0-3",
)
@pytest.mark.catches(
    "engines.partitioned:PartitionedTable.by_person",
    "table._group_by_person(draw_name())",
    "table._grouped",
    param="stops1-1",
)
@pytest.mark.catches(
    "mechanisms.base:Mechanism._find_std",
    "unit_sensitivity(self.sensitivity, relation, source.max_rows)",
    "unit_sensitivity(self.sensitivity, relation)",
    param="stops0-3",
)
@pytest.mark.parametrize("max_rows", [1, 3])
@pytest.mark.parametrize("stops", [[], [0, 1, 1, 2, 300], range(0, 400, 20)])
def test_rows_of_a_person_are_bounded_across_partitions(max_rows, stops):
    visits = make_visits()
    parts = cut(visits, *stops).by_person("patient")
    event = GaussianDpEvent(9.0)
    plan = Plan((("Gaussian sum", event),), 1.0, 1e-5, max_rows=max_rows)
    with Curator(parts.map_parts(_ages)[0], plan=plan, noise=NoiseSource(0)) as curator:
        ones = GaussianSumMechanism(RecordFunction(lambda rows: rows[:, :1] * 0 + 1), 1.0)
        measured = ones.query(curator._source, event, "zero_out", NoiseSource(0))
        assert curator.n_records == 30
    counts = visits["patient"].str.strip().replace("NA", None).value_counts()
    assert len(counts) == 30
    counted = counts.clip(upper=max_rows).sum()
    assert measured.exact.item() / measured.scale == pytest.approx(counted, rel=1e-4)
    # As many times the noise as for records.
    assert measured.std == 9.0 * max_rows


def _ages(part):
    return part[["age"]].to_numpy(dtype=float)


@pytest.mark.catches("curator.persons:_write_name", "str.strip(name)", "name")
def test_equal_numbers_and_texts_in_other_partitions_make_one_person():
    persons = [
        1,
        1.0,
        True,
        "a",
        " a ",
        np.int64(1),
        2,
        None,
        "",
        [SECRET],
        1j,
        ("b", 1),
        ("b", 1.0),
    ]
    persons = pd.Series(persons, dtype=object)
    table = pd.DataFrame({"age": range(len(persons)), "patient": persons})
    assert cut(table, *range(1, len(table))).by_person("patient").n_units == 5


@pytest.mark.catches("curator.persons:_write_name", "_WHOLE.fullmatch(plain)", "None")
def test_numbers_and_texts_that_read_alike_are_one_person():
    persons = pd.Series(
        [7, "7", 7.0, "007", " 7.0 ", "a", 10**17 + 1, str(10**17 + 1)], dtype=object
    )
    table = pd.DataFrame({"age": range(len(persons)), "patient": persons})
    parts = cut(table, *range(1, len(table)))
    assert (parts.n_units, parts.by_person("patient").n_units) == (len(table), 3)


def test_rows_of_nobody_are_refused():
    parts = cut(make_visits().assign(patient=[" ", None] * 200), 7)
    with pytest.raises(ValueError, match="holds no identifier"):
        DPSWFlowSampler(1.0, schema="private").fit(parts, persons="patient")


def test_a_failure_for_persons_is_told_without_them():
    class Loud(Parts):
        def _add_up(self, function):
            warnings.warn("called", stacklevel=1)
            raise KeyError(self._frame[0]["patient"].iloc[0])

    with pytest.raises(RuntimeError, match="KeyError") as info:
        DPSWFlowSampler(1.0, schema="private").fit(Loud([make_visits()]), persons="patient")
    assert SECRET not in "".join(traceback.format_exception(info.value))


def test_positions_of_null_records_and_persons_do_not_go_together():
    plan = gaussian_plan({"Gaussian sum": 1.0}, epsilon=1.0, delta=1e-5)
    plan = Plan(plan.releases, 1.0, 1e-5, max_rows=2)
    parts = cut(make_visits()).by_person("patient")
    with pytest.raises(ValueError, match="null is by position"):
        Curator(parts, plan=plan, noise=NoiseSource(0), null=np.zeros(400, dtype=bool))


def test_other_tables_are_as_they_were():
    table = make_table(3)
    assert adapt_table(table) is table
    assert adapt_table(np.eye(2)).shape == (2, 2)
