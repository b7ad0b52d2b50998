"""Numbers and dates between their knots: synthetic columns beside the density they were drawn from.

A released table has the weights of knots, which do not say how values lie between them. Each column
is declared in several ways, and drawn by `DPSWFlowSampler` from 20,000 rows; or from the merged
releases of two halves; or with the schema that a first fit inferred.

    SKDPGEN_DATA=folder python benchmarks/run_knots.py [--epsilon 3] [--seeds 3]

Printed are the total variation in 100 cells of equal probability (20 of log-normal amounts, years
of NIST's ages, real ones as the reference), and the largest ratio of a cell to its probability. The
sampling error of 20,000 rows in 100 cells is 0.028.
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

N = 20_000
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


def compare(values, edges, shares=None):
    """Return the total variation from shares of cells, and the largest ratio."""
    found = np.histogram(values, edges)[0] / len(values)
    shares = np.full(len(found), 1 / len(found)) if shares is None else shares
    ratios = found[shares > 1e-3] / shares[shares > 1e-3]
    return 0.5 * np.abs(found - shares).sum(), ratios.max()


def run(epsilon, seed):
    """Yield the name of each column, and what `compare` returns."""
    rng, cells = np.random.default_rng(seed), np.linspace(0, 100, 101)
    uniform = rng.uniform(0, 100, N)
    for name, column in UNIFORM.items():
        yield f"uniform, {name}", compare(fit(uniform, column, epsilon, seed).sample(N)["x"], cells)
    halves = [fit(part, UNIFORM["knots"], epsilon, None) for part in (uniform[::2], uniform[1::2])]
    merged = from_release(merge(*(half.release_ for half in halves)), DPSWFlowSampler())
    yield "uniform, merged", compare(merged.sample(N, random_state=seed)["x"], cells)
    amounts = np.exp(rng.normal(6, 1, N)).clip(0, 20_000)
    edges = lognorm(1, scale=np.exp(6)).ppf(np.linspace(0, 1, 21))
    for name, column in AMOUNTS.items():
        first = fit(amounts, column, epsilon, seed)
        yield f"log-normal, {name}", compare(first.sample(N)["x"], edges)
    second = fit(amounts, first.schema_["x"], epsilon, seed)
    yield "log-normal, inferred schema", compare(second.sample(N)["x"], edges)
    days = FIRST + pd.to_timedelta(rng.integers(0, 3652, N), unit="D")
    for name, column in DATES.items():
        drawn = (fit(days, column, epsilon, seed).sample(N)["x"] - FIRST).dt.days
        yield f"dates, {name}", compare(drawn, np.linspace(0, 3652, 101))
    folder = Path(os.environ["SKDPGEN_DATA"])
    ages = pd.read_csv(folder / "nist_national2019.csv.gz", usecols=["AGEP"])["AGEP"].to_numpy()
    years = np.arange(-0.5, 100)
    for name, column in AGES.items():
        drawn = fit(ages, column, epsilon, seed).sample(len(ages))["x"]
        yield f"ages, {name}", compare(drawn, years, np.histogram(ages, years)[0] / len(ages))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    results = [dict(run(options.epsilon, seed)) for seed in range(options.seeds)]
    for name in results[0]:
        shown = "  ".join("{:.3f} ({:.2f})".format(*result[name]) for result in results)
        print(f"{name:<28} {shown}")


if __name__ == "__main__":
    main()
