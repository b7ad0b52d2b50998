"""Tables, and how generators are fitted to them, for all engines; and an engine for tests."""

import pickle

import cloudpickle
import numpy as np
import pandas as pd
import pytest

from skdpgen import (
    Boolean,
    Category,
    DPSlicedWassersteinGenerator,
    DPSWFlowSampler,
    Number,
    Schema,
)
from skdpgen.engines.partitioned import PartitionedTable, mark_persons, merge_sums
from skdpgen.generators import DPHistorySampler
from skdpgen.tables import Date

SECRET = "Smith-31415"


def make_table(n=600):
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "job": rng.choice(["nurse", "clerk", "cook"], n),
            "income": rng.lognormal(7, 1, n).round(2),
            "is_ill": rng.random(n) < 0.3,
        }
    )


@pytest.fixture(params=[DPSlicedWassersteinGenerator, DPSWFlowSampler])
def generator(request):
    return request.param(3.0, 1e-6, schema="private", n_steps=3, random_state=0)


def make_visits(n=600):
    """Return a table of persons with many rows, with one, and of nobody, all over it."""
    rng = np.random.default_rng(1)
    patients = rng.choice([f"{SECRET}-{i} " for i in range(40)] + [" ", None], n)
    patients[: n // 10] = [f" {SECRET}-{i}" for i in range(n // 10)]
    return make_table(n).assign(patient=patients)


@pytest.fixture
def flow():
    """Few releases: each brings the rows of persons together."""
    schema = Schema(
        {
            "age": Number(0, 99, n_knots=4),
            "job": Category(["nurse", "clerk", "cook"]),
            "income": Number(0, 1e5, n_knots=4),
            "is_ill": Boolean(),
        }
    )
    return DPSWFlowSampler(9.0, 1e-5, schema=schema, n_steps=3, random_state=0)


def check_same(generator, table, partitioned, **given):
    """Check that both tables give the same certificate, schema and samples."""
    whole = generator.fit(table, **given)
    rows, found = whole.sample(100), (whole.privacy_, whole.schema_)
    digest = whole.privacy_.digest
    parts = generator.fit(partitioned, **given)
    assert (parts.privacy_, parts.schema_) == found
    assert parts.privacy_.digest == digest
    # Engines have their own dtypes of texts.
    pd.testing.assert_frame_equal(
        parts.sample(100).astype(object), rows.astype(object), check_column_type=False
    )


def make_histories(n=60):
    """Return patients and visits, with many visits, with none, of nobody, all over the table."""
    rng = np.random.default_rng(2)
    patients = make_table(n)[["age", "job"]].assign(patient=[f"{SECRET}-{i}" for i in range(n)])
    names = np.array([*patients["patient"], "nobody", " ", None], dtype=object)
    visits = make_table(4 * n)[["income", "is_ill"]]
    visits["patient"] = np.where(
        rng.random(4 * n) < 0.2, names[0], names[rng.integers(5, n + 3, 4 * n)]
    )
    seconds = rng.choice(10**7, 4 * n, replace=False)  # all are different
    visits["day"] = np.datetime64("2020-01-01", "s") + seconds.astype("m8[s]")
    return {"patients": patients, "visits": visits}


HISTORIES = {
    "patients": Schema({"age": Number(0, 99, n_knots=4), "job": Category(["nurse", "clerk"])}),
    "visits": Schema(
        {
            "income": Number(0, 1e5, n_knots=4),
            "is_ill": Boolean(),
            "day": Date("2020-01-01", "2020-12-31"),
        }
    ),
}


def check_same_histories(tables, engine, *partitioned, schemas=HISTORIES):
    """Check that all pairs of tables give the same certificate, schemas and samples."""
    sampler = DPHistorySampler(
        9.0, 1e-5, schemas=schemas, max_rows_per_person=3, n_steps=3, n_particles=50, random_state=0
    )
    whole = sampler.fit(tables, persons="patient", order="day")
    drawn, found = whole.sample(50), (whole.privacy_, whole.schemas_)
    digest = whole.privacy_.digest
    for given in partitioned:
        parts = sampler.fit(given, persons="patient", order="day")
        assert (parts.privacy_, parts.schemas_) == found
        assert (parts.privacy_.digest, parts.privacy_.engine) == (digest, engine)
        assert parts.n_samples_ == len(tables["patients"])
        for name, table in parts.sample(50).items():
            pd.testing.assert_frame_equal(
                table.astype(object), drawn[name].astype(object), check_column_type=False
            )


class Parts(PartitionedTable):
    """Partitions in this process, to which functions are sent as to another one."""

    engine = "parts"

    @property
    def _empty_frame(self):
        return self._frame[0].iloc[:0]

    def _group_by_person(self, name):
        rows = pd.concat([mark_persons(part, self.person_column, name) for part in self._frame])
        rows = rows.sample(frac=1, random_state=1)
        return [rows[rows[name] % 3 == i].drop(columns=name) for i in range(3)]

    def _iter_partitions(self):
        return iter(self._frame)

    def _add_up(self, function):
        return self._call_for(function, [self._grouped])

    def _add_up_pairs(self, other, name, function):
        return self._call_for(function, [self._grouped, other._grouped])

    def _call_for(self, function, frames):
        sent = cloudpickle.dumps(function)
        return merge_sums(
            pickle.loads(pickle.dumps(cloudpickle.loads(sent)(*parts)))
            for parts in zip(*frames, strict=True)
        )


def cut(table, *stops):
    """Return partitions that end at these rows."""
    starts = (0, *stops)
    return Parts([table[a:b] for a, b in zip(starts, (*stops, len(table)), strict=True)])
