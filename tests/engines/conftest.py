"""A table, and how a generator is fitted to it, for all engines."""

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
