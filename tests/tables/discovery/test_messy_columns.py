"""Columns as people have them, in one fit without noise: nothing is declared but date formats."""

import math
import warnings

import numpy as np
import pandas as pd
import pytest

from skdpgen import DPSWFlowSampler
from skdpgen.tables import Schema, Unknown
from skdpgen.tables.public_tables import read_public

N = 1500
rng = np.random.default_rng(0)


def moments(n, unit):
    """Dates and times from 2020 on."""
    return pd.Series(pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, n, N), unit=unit))


def with_share(column, share, value):
    return column.mask(rng.random(N) < share, value)


days, seconds, fractions = moments(3000, "D"), moments(10**7, "s"), moments(10**10, "ms")
amounts = 1500 * rng.normal(size=N)
ages = pd.Series(rng.integers(18, 90, N).astype(float))
keys = pd.Series(rng.integers(10**16, 10**17, N))
# Each column, and its values if it holds texts.
COLUMNS = {
    "large": 1e13 * rng.lognormal(0, 0.5, N),
    "cents at 2e12": (2e12 * rng.lognormal(0, 0.3, N)).round(2),
    "integers at 2e12": (2e12 * rng.lognormal(0, 0.3, N)).astype("int64"),
    "small, both signs": 1e-5 * rng.normal(size=N),
    "17 digits": keys,
    "17 digits, nullable": keys.astype("Int64"),
    "17 digits, texts": (keys.astype(str), keys),
    "all of 64 bits": pd.Series(rng.integers(-(2**63), 2**63 - 1, N)),
    "tiny": 1e-12 * rng.normal(size=N),
    "narrow": 1e6 + 0.01 * rng.normal(size=N),
    "narrow and negative": -273.15 + 0.5 * rng.normal(size=N),
    "texts in UTC": (seconds.dt.strftime("%Y-%m-%dT%H:%M:%SZ"), seconds),
    "texts with an offset": (seconds.dt.strftime("%Y-%m-%d %H:%M:%S+00:00"), seconds),
    "texts with fractions": (seconds.dt.strftime("%Y-%m-%d %H:%M:%S.000000"), seconds),
    "texts with milliseconds": (fractions.astype(str), fractions),
    "nanoseconds": fractions.astype("M8[ns]"),
    "milliseconds": fractions.astype("M8[ms]"),
    "dates of Python": fractions.astype(object),
    "compact texts": (seconds.dt.strftime("%Y%m%dT%H%M%S"), seconds),
    "shared date": with_share(days, 0.3, pd.Timestamp("1970-01-01")),
    "shared number": with_share(ages, 0.1, 7777.0),
    "per cent": (pd.Series(ages.astype(int).astype(str)) + "%", ages),
    "accounting": ([f"({-x:,.2f})" if x < 0 else f"{x:,.2f}" for x in amounts], amounts),
    "currency": ([f"EUR {x:.2f}" for x in abs(amounts)], abs(amounts)),
    "decimal comma": ([f"{x:.2f}".replace(".", ",") for x in amounts], amounts),
    "nullable": pd.Series(rng.integers(0, 100, N), dtype="Int64"),
    "arrow": pd.Series(rng.normal(size=N), dtype="float64[pyarrow]"),
    "zoned": seconds.dt.tz_localize("UTC").dt.tz_convert("America/New_York"),
}
FORMATS = {f"format {format}": format for format in ("%Y%m%d", "%d%m%Y", "%y%m%d", "%Y%j")}
COLUMNS |= {name: (days.dt.strftime(format), days) for name, format in FORMATS.items()}


def split(column):
    return column if isinstance(column, tuple) else (column, column)


def make_messy():
    """Return the table of the columns, and its schema, which declares how dates are written."""
    frame = pd.DataFrame({name: split(column)[0] for name, column in COLUMNS.items()})
    schema = dict(Schema.from_dtypes(frame.dtypes))
    schema |= {name: Unknown(date_format=format) for name, format in FORMATS.items()}
    return frame, Schema(schema)


@pytest.fixture(scope="module")
def made():
    frame, schema = make_messy()
    sampler = DPSWFlowSampler(math.inf, schema=schema, random_state=0, n_steps=30, n_particles=500)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        styles = {name: schema[name] for name in FORMATS}
        return read_public(sampler.fit(frame).sample(4000), styles)


def quartiles(values):
    values = pd.Series(values).dropna().infer_objects()
    if isinstance(values.dtype, pd.DatetimeTZDtype):
        values = values.dt.tz_convert("UTC").dt.tz_localize(None)
    is_date = values.dtype.kind == "M"
    numbers = values.astype("datetime64[s]").astype("int64") if is_date else values.astype(float)
    return np.quantile(numbers, [0.25, 0.5, 0.75])


@pytest.mark.parametrize("name", COLUMNS)
def test_quartiles_are_kept(name, made):
    real, found = quartiles(split(COLUMNS[name])[1]), quartiles(made[name])
    width = real[2] - real[0]
    assert abs(found - real).max() < 0.15 * width
    assert made[name].isna().mean() < 0.02


@pytest.mark.parametrize(
    "name", ["texts with milliseconds", "nanoseconds", "milliseconds", "dates of Python"]
)
def test_fractions_of_seconds_are_kept(name, made):
    found = pd.Series(made[name]).dropna().to_numpy().astype("M8[us]").astype("int64")
    assert np.mean(found % 1000) == 0
    assert np.mean(found // 1000 % 1000) == pytest.approx(499.5, abs=30)


def test_shares_of_sentinels_are_kept(made):
    assert (made["shared number"] > 7000).mean() == pytest.approx(0.1, abs=0.03)
    assert (made["shared date"] < "2019").mean() == pytest.approx(0.3, abs=0.03)
