"""Numbers and dates between their knots: synthetic columns beside the density they were drawn from.

A released table has the weights of knots, which do not say how values lie between them. Each column
is declared in several ways, and drawn by `DPSWFlowSampler` from 20,000 rows; or from the merged
releases of two halves; or with the schema that a first fit inferred.

    SKDPGEN_DATA=folder python benchmarks/run_knots.py [--epsilon 3] [--seeds 3] [--rows 20000]

Printed are the total variation in 100 cells of equal probability (20 of log-normal amounts, years
of NIST's ages, real ones as the reference), the largest ratio of a cell to its probability, and the
error that `schema_report_` states. The sampling error of 20,000 rows in 100 cells is 0.028.
"""

import argparse
import os
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import lognorm

from skdpgen import Category, Date, DPSWFlowSampler, Number, Schema
from skdpgen.releases import from_release, merge

TENS = [*range(0, 101, 10)]
FIRST, LAST = pd.Timestamp("2010-01-01"), pd.Timestamp("2019-12-31")
UNIFORM = {
    "bounds alone": Number(0, 100),
    "knots": Number(0, 100, knots=TENS),
    "n_knots": Number(0, 100, n_knots=5),
    "linear": Number(0, 100, scale="linear"),
    "knots, one decimal": Number(0, 100, decimals=1, knots=TENS),
}
AMOUNTS = {
    "log": Number(0, 20_000, scale="log"),
    "linear": Number(0, 20_000, scale="linear"),
    "bounds alone": Number(0, 20_000),
}
AGES = {
    "16 knots": Number(0, 99, decimals=0, n_knots=16),
    "every 5 years": Number(0, 99, decimals=0, knots=[*range(0, 99, 5), 99]),
}
DATES = {"11 knots": Date(FIRST, LAST, n_knots=11), "bounds alone": Date(FIRST, LAST)}


def fit(values, column, epsilon, seed):
    table = pd.DataFrame({"x": values, "c": np.arange(len(values)) % 2})
    schema = Schema({"x": column, "c": Category([0, 1])})
    return DPSWFlowSampler(epsilon, 1e-6, schema=schema, random_state=seed).fit(table)


def compare(sampler, edges, shares=None, first=None):
    """Return the total variation from shares of cells, the largest ratio, and the stated error."""
    values = sampler.sample(20_000, random_state=0)["x"]
    values = (values - first).dt.days if first is not None else values
    found = np.histogram(values, edges)[0] / len(values)
    shares = np.full(len(found), 1 / len(found)) if shares is None else shares
    ratios = found[shares > 1e-3] / shares[shares > 1e-3]
    stated = sampler.schema_report_.loc["x", "error"]
    return 0.5 * np.abs(found - shares).sum(), ratios.max(), stated


def run(epsilon, seed, n):
    """Yield the name of each column, and what `compare` returns."""
    rng, cells = np.random.default_rng(seed), np.linspace(0, 100, 101)
    uniform = rng.uniform(0, 100, n)
    for name, column in UNIFORM.items():
        yield f"uniform, {name}", compare(fit(uniform, column, epsilon, seed), cells)
    halves = [fit(part, UNIFORM["knots"], epsilon, None) for part in (uniform[::2], uniform[1::2])]
    merged = from_release(merge(*(half.release_ for half in halves)), DPSWFlowSampler())
    yield "uniform, merged", compare(merged, cells)
    amounts = np.exp(rng.normal(6, 1, n)).clip(0, 20_000)
    edges = lognorm(1, scale=np.exp(6)).ppf(np.linspace(0, 1, 21))
    for name, column in AMOUNTS.items():
        first = fit(amounts, column, epsilon, seed)
        yield f"log-normal, {name}", compare(first, edges)
    second = fit(amounts, first.schema_["x"], epsilon, seed)
    yield "log-normal, inferred schema", compare(second, edges)
    days = FIRST + pd.to_timedelta(rng.integers(0, 3652, n), unit="D")
    for name, column in DATES.items():
        found = fit(days, column, epsilon, seed)
        yield f"dates, {name}", compare(found, np.linspace(0, 3652, 101), first=FIRST)
    folder = Path(os.environ["SKDPGEN_DATA"])
    ages = pd.read_csv(folder / "nist_national2019.csv.gz", usecols=["AGEP"])["AGEP"].to_numpy()
    years = np.arange(-0.5, 100)
    shares = np.histogram(ages, years)[0] / len(ages)
    for name, column in AGES.items():
        found = fit(rng.permutation(ages)[:n], column, epsilon, seed)
        yield f"ages, {name}", compare(found, years, shares)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=20_000)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    results = [dict(run(options.epsilon, seed, options.rows)) for seed in range(options.seeds)]
    for name in results[0]:
        shown = "  ".join("{:.3f} ({:.2f}; {:.3f})".format(*result[name]) for result in results)
        print(f"{name:<28} {shown}")


if __name__ == "__main__":
    main()
