"""Coverage of 95 % intervals with declared and with inferred bounds.

    python benchmarks/run_intervals.py [--fits 200] [--epsilon 0.5 1 3] [--rows 1000 10000]
        [--schema declared inferred] [--csv doc/benchmarks/data/intervals.csv]

Each fit is to new records of a clinic: counts of visits, ages, skew incomes, and two binary
columns. An interval with an infinite end is *open*; *covered* is the share of the others that hold
the value of the population, and *as clipped* how often estimate ± 1.96 std_error holds the value of
the population with numbers clipped to the bounds, declared or inferred, for means and slopes.
"""

import argparse
import csv
import warnings

import numpy as np
import pandas as pd

from skdpgen import Boolean, Category, DPSWFlowSampler, Number, Schema
from skdpgen.exceptions import FitQualityWarning
from skdpgen.inference import estimate, estimate_quantiles

KNOTS = [0, 8_000, 16_000, 24_000, 40_000, 70_000, 120_000]
SCHEMA = Schema(
    {
        "visits": Number(0, 15, decimals=0, n_knots=16),
        "age": Number(18, 90, decimals=0, knots=[18, 30, 40, 50, 60, 75, 90]),
        "income": Number(0, 120_000, knots=KNOTS),
        "ill": Category(["no", "yes"]),
        "smokes": Boolean(),
    }
)
QUANTILES = {"visits": [0.5, 0.9], "age": [0.1, 0.5, 0.9], "income": [0.1, 0.5, 0.9]}
# Rows of a simulated population.
N_POPULATION = 1_000_000
Z = 1.96


def draw(n_rows, rng):
    """Return records of the clinic."""
    smokes = rng.random(n_rows) < 0.3
    ill = rng.random(n_rows) < np.where(smokes, 0.4, 0.2)
    age = rng.normal(48 + 5 * ill, 14, n_rows).clip(18, 90).round().astype(int)
    income = rng.lognormal(10 - 0.2 * smokes, 0.5, n_rows).clip(0, 120_000)
    visits = rng.poisson(0.5 + 2 * ill).clip(0, 15)
    ill = np.where(ill, "yes", "no")
    return pd.DataFrame(
        {"visits": visits, "age": age, "income": income, "ill": ill, "smokes": smokes}
    )


def compute_visits(rows):
    """Return statistics of visits and illness."""
    visits, ill = rows["visits"].to_numpy(float), (rows["ill"] == "yes").to_numpy(float)
    return {
        "mean visits": visits.mean(),
        "share ill": ill.mean(),
        "share of 3 visits": (visits >= 3).mean(),
        "slope visits ~ ill": np.cov(visits, ill)[0, 1] / ill.var(ddof=1),
    }


def compute_smokers(rows):
    """Return statistics of illness and smoking."""
    ill, smokes = (rows["ill"] == "yes").to_numpy(float), rows["smokes"].to_numpy(float)
    return {
        "share smokes": smokes.mean(),
        "slope ill ~ smokes": np.cov(ill, smokes)[0, 1] / smokes.var(ddof=1),
    }


def compute_age(rows):
    """Return the mean age."""
    return {"mean age": rows["age"].to_numpy(float).mean()}


FUNCTIONS = [compute_visits, compute_smokers, compute_age]


def measure(seed, n_rows, epsilon, schema, population, truth):
    """Return a row for each interval of one fit."""
    records = draw(n_rows, np.random.default_rng(seed))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sampler = DPSWFlowSampler(
            epsilon, 1e-6, schema=schema, n_steps=5, n_particles=200, random_state=seed
        ).fit(records)
    numbers = {name: sampler.schema_[name] for name in QUANTILES}
    clipped = {name: population[name].clip(k.lower, k.upper) for name, k in numbers.items()}
    clipped, found = population.assign(**clipped), []
    for function in FUNCTIONS:
        values = function(clipped)
        for name, row in call(estimate, sampler, function, random_state=seed).iterrows():
            near = abs(row.estimate - values[name]) <= Z * row.std_error
            found.append((name, row, truth[name], None if "share" in name else near))
    for column, levels in QUANTILES.items():
        for level, row in call(estimate_quantiles, sampler, column, levels).iterrows():
            name = f"quantile {level:g} of {column}"
            found.append((name, row, truth[name], None))
    return [
        {
            "statistic": name,
            "is_open": np.isinf([row.lower, row.upper]).any(),
            "is_nan": np.isnan([row.lower, row.upper]).any(),
            "covers": row.lower <= value <= row.upper,
            "clipped": near,
            "is_said": row.is_said,
        }
        for name, row, value, near in found
    ]


def call(function, *args, **params):
    """Return estimates, and whether a warning says that intervals are open."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FitQualityWarning)
        found = function(*args, **params)
    return found.assign(is_said=any("are open" in str(one.message) for one in caught))


def main():
    """Print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fits", type=int, default=200)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.5, 1.0, 3.0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--schema", nargs="+", default=["declared", "inferred"])
    parser.add_argument("--csv")
    options = parser.parse_args()
    population = draw(N_POPULATION, np.random.default_rng(0))
    truth = {name: value for f in FUNCTIONS for name, value in f(population).items()}
    for column, levels in QUANTILES.items():
        values = population[column].quantile(levels, interpolation="lower")
        truth |= {f"quantile {level:g} of {column}": value for level, value in values.items()}
    # Enough for values of clipped numbers, which are computed for each fit.
    population = population[:200_000]
    lines = []
    for schema in options.schema:
        for n_rows in options.rows:
            for epsilon in options.epsilon:
                given = SCHEMA if schema == "declared" else "private"
                found = pd.DataFrame(
                    row
                    for seed in range(options.fits)
                    for row in measure(seed + 1, n_rows, epsilon, given, population, truth)
                )
                for name, rows in found.groupby("statistic", sort=False):
                    closed = rows[~rows.is_open & ~rows.is_nan]
                    lines.append(
                        {
                            "Bounds": schema,
                            "Rows": f"{n_rows:,}",
                            "ε": epsilon,
                            "Statistic": name,
                            "Closed": len(closed),
                            "Open": int(rows.is_open.sum()),
                            "NaN": int((rows.is_nan & ~rows.is_open).sum()),
                            "Unsaid": int((rows.is_open & ~rows.is_said).sum()),
                            "Covered": f"{closed.covers.mean():.1%}" if len(closed) else "",
                            "As clipped": ""
                            if rows.clipped.isna().any()
                            else f"{rows.clipped.mean():.1%}",
                        }
                    )
                    print(*lines[-1].values(), sep="\t", flush=True)
    if options.csv:
        with open(options.csv, "w", newline="") as file:
            writer = csv.DictWriter(file, lines[0])
            writer.writeheader()
            writer.writerows(lines)


if __name__ == "__main__":
    main()
