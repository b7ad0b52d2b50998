"""Released counts to publish: consistent, of least variance, and labelled by their levels."""

import functools
import itertools
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from skdpgen import Boolean, Category, Date, DPSWFlowSampler, Number, Schema
from skdpgen.__main__ import main
from skdpgen.mechanisms.base import Measurement
from skdpgen.mechanisms.two_way import TablesMechanism
from skdpgen.releases.tabulation import Tabulation

pytestmark = pytest.mark.filterwarnings("ignore")

SCHEMA = Schema(
    {
        "age": Number(0, 80, decimals=0, knots=[0, 1, 2, 40, 80], atoms=[99], missing=True),
        "=city": Category(["x", "y", "z"], missing=True),
        "day": Date("2020-01-01", "2020-12-31", knots=["2020-01-01", "2020-05-01", "2020-12-31"]),
        "ok": Boolean(),
        "few": Number(0, 2, decimals=0),
    }
)
N = 300


def make_rows():
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.choice([0.0, 1, 2, 10, 80, 99, np.nan], N),
            "=city": rng.choice(["x", "y", "z", None], N),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 300, N), "D"),
            "ok": rng.choice([True, False], N),
            "few": rng.integers(0, 3, N),
        }
    )


@functools.cache
def fit(target=None):
    sampler = DPSWFlowSampler(50.0, schema=SCHEMA, n_steps=2, release="pairs")
    return sampler.fit(make_rows(), target=target)


@pytest.fixture(params=[None, "=city"])
def found(request):
    return Tabulation(fit(request.param).release_.published, 0.9)


def test_the_noise_is_that_of_all_released_numbers_together(found):
    """Estimates are linear: each number that is released has noise of its own."""
    tables = TablesMechanism((2, 3, 4)).postprocess(np.zeros(35), Measurement(None, 1.0, 1.0, 1.0))
    small = Tabulation(found._published, 0.9)
    chosen = [(), *itertools.permutations(range(3), 1), *itertools.permutations(range(3), 2)]
    sums = [0.0] * len(chosen)
    for place in range(26 + 9):
        noise = np.eye(35)[place]
        small._tables = replace(
            tables, cells=noise[:26] * tables.pairs_std, columns=noise[26:] * tables.columns_std
        )
        for i, places in enumerate(chosen):
            counts, variance = small._estimate(*places)
            sums[i] = sums[i] + counts**2 / variance
    for ratio in sums:
        np.testing.assert_allclose(ratio, 1, rtol=1e-9)
    assert small._estimate(0, 1)[1] < tables.pairs_std**2
    # Strata have noise of their own.
    n_strata = found._tables.columns.shape[0] if found._tables.columns.ndim > 1 else 1
    one, pair = found.tabulate(["few"]), found.tabulate(["few", "ok"])
    assert one["std"].iloc[0] ** 2 == pytest.approx(
        n_strata * found._estimate(found._places["few"])[1]
    )
    np.testing.assert_allclose(pair.upper - pair.lower, 2 * 1.6449 * pair["std"], rtol=1e-4)


def test_margins_and_totals_agree_and_are_counts(found):
    # A record without the target is absent.
    target = found._published.format.layout.label
    rows, total = make_rows().dropna(subset=[target] if target else []), found.describe()["total"]
    for name, other in itertools.permutations(["=city", "few", "ok"], 2):
        one, pair = found.tabulate([name]), found.tabulate([name, other])
        margin = pair["count"].groupby(name, sort=False, dropna=False).sum()
        np.testing.assert_allclose(margin, one["count"], atol=1e-6)
        assert one["count"].sum() == pytest.approx(total["count"], abs=1e-6)
        exact = rows.groupby([name, other], dropna=False).size()
        exact = exact.reindex(pair.index, fill_value=0)
        assert (abs(exact - pair["count"]) < 5 * pair["std"]).all()
    assert abs(total["count"] - len(rows)) < 5 * total["std"]


def test_levels_say_what_is_counted():
    release = fit().release_
    ages = release.to_frame("age")
    assert ages.index.names == ["age", "age from", "age to"]
    levels = [(0, 0, 0), (1, 1, 1), (2, 2, 40), (40, 2, 80), (80, 40, 80), (99, 99, 99)]
    assert [*ages.index[:-1]] == levels
    assert pd.isna(ages.index[-1][0])
    counted = make_rows().age.value_counts(dropna=False)
    between = counted[10] * np.array([30, 8]) / 38
    expected = [counted[0], counted[1], counted[2] + between[0], between[1], counted[80]]
    np.testing.assert_allclose(ages["count"], [*expected, counted[99], counted[np.nan]], atol=4)
    # The bound of the codebook: 10 is between 2 and 80, and so are 2 and 80.
    assert (
        ages["count"].iloc[3] - 1 < counted[[2, 10, 80]].sum() < ages["count"].iloc[2:5].sum() + 1
    )
    # Each value has a level of its own.
    assert release.to_frame("few").index.names == ["few"]
    assert release.to_frame("day", "ok").index.names == ["day", "day from", "day to", "ok"]
    for columns in ((), ("age", "age"), ("nothing",), ("age", "few", "ok")):
        with pytest.raises(ValueError, match="must be one or two of"):
            release.to_frame(*columns)
    array = DPSWFlowSampler(9.0, bounds=(0, 1), n_steps=2).fit(np.ones((60, 2))).release_
    with pytest.raises(ValueError, match="Only releases of tables"):
        array.to_frame("age")


def test_command_writes_all_tables_and_a_codebook(tmp_path, capsys):
    fitted = fit()
    fitted.release_.to_file(tmp_path / "release")
    common = ["tables", str(tmp_path / "release"), "--output"]
    assert main([*common, str(tmp_path / "whole")]) == 0
    assert "Wrote 15 tables" in capsys.readouterr().out
    written = pd.read_csv(tmp_path / "whole" / "tables.csv", dtype=str)
    alone = written[(written.column_1 == "=city") & written.column_2.isna()]
    np.testing.assert_allclose(
        alone["count"].astype(float), fitted.release_.to_frame("=city")["count"]
    )
    codebook = json.loads((tmp_path / "whole" / "codebook.json").read_text("utf-8"))
    assert codebook["schema"] == fitted.schema_.to_dict()
    assert codebook["certificate"]["epsilon"] == fitted.epsilon_
    assert codebook["interval"] == 0.95
    more = ["--epsilon", "2", "--interval", "0.5", "--escape-formulas"]
    assert main([*common, str(tmp_path / "less"), *more]) == 0
    less = pd.read_csv(tmp_path / "less" / "tables.csv", dtype=str)
    assert set(less.column_1) == set(written.column_1) - {"=city"} | {"'=city"}
    assert (less["std"].astype(float) > 2 * written["std"].astype(float)).all()
    codebook = json.loads((tmp_path / "less" / "codebook.json").read_text("utf-8"))
    assert codebook["certificate"]["epsilon"] <= 2.0
    assert main([*common, str(tmp_path / "again"), "--epsilon", "50"]) == 1
    assert not (tmp_path / "again").exists()
    assert main(["tables", str(tmp_path / "less" / "release.skdpgen"), "-o", f"{tmp_path}/x"]) == 0
