"""A table, and how a generator is fitted to it, for all engines."""

import numpy as np
import pandas as pd
import pytest

from skdpgen import DPSlicedWassersteinGenerator, DPSWFlowSampler

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


def check_same(generator, table, partitioned):
    """Check that both tables give the same certificate, schema and samples."""
    whole = generator.fit(table)
    rows, found = whole.sample(100), (whole.privacy_, whole.schema_)
    parts = generator.fit(partitioned)
    assert (parts.privacy_, parts.schema_) == found
    # Engines have their own dtypes of texts.
    assert parts.sample(100).astype(object).to_numpy().tolist() == rows.to_numpy().tolist()
