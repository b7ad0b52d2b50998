# SPDX-License-Identifier: BSD-3-Clause
"""CPU seconds per row of a fit, with nothing declared and with everything declared.

The table has 20 columns of each type that readers of files make: numbers, texts, dates as texts,
categories and booleans, some with missing cells.

    python benchmarks/run_reading_cost.py [--rows 100000 300000]

Printed are the CPU seconds between both fits, for 100,000 rows, and their ratio.
"""

import argparse
import time
import warnings

import numpy as np
import pandas as pd

from skdpgen import (
    Boolean,
    Category,
    Date,
    DPSlicedWassersteinGenerator,
    Number,
    Schema,
)

LETTERS = [f"{letter}{digit}" for letter in "abcdef" for digit in range(5)]


def make_table(n_rows):
    """Return a table of 20 columns, drawn from a fixed seed."""
    rng = np.random.default_rng(0)
    columns = {}
    for i in range(4):
        columns[f"whole{i}"] = rng.poisson(40, n_rows)
        columns[f"real{i}"] = rng.lognormal(3, 1, n_rows).round(2 if i < 2 else 6)
        columns[f"word{i}"] = rng.choice(LETTERS[: 5 * (i + 1)], n_rows).astype(object)
    days = np.datetime64("2015-01-01") + rng.integers(0, 3650, n_rows)
    columns["day"] = days.astype(str).astype(object)
    columns["moment"] = days.astype("M8[s]") + rng.integers(0, 86_400, n_rows)
    columns["amount"] = [f"{x:.2f}" for x in rng.gamma(2, 50, n_rows)]
    columns["category"] = pd.Categorical(rng.choice(LETTERS[:7], n_rows))
    columns["flag"] = rng.random(n_rows) < 0.3
    columns["answer"] = rng.choice(["True", "False"], n_rows).astype(object)
    table = pd.DataFrame(columns)
    table["gap"] = pd.Series(rng.normal(0, 5, n_rows).round(1)).mask(rng.random(n_rows) < 0.2)
    table["note"] = pd.Series(rng.choice(LETTERS, n_rows)).mask(rng.random(n_rows) < 0.1)
    return table


def declare():
    """Return a schema that leaves nothing to infer."""
    schema = {}
    for i in range(4):
        schema[f"whole{i}"] = Number(0, 100, decimals=0, n_knots=16)
        schema[f"real{i}"] = Number(0, 3000, decimals=2 if i < 2 else 6, scale="log")
        schema[f"word{i}"] = Category(LETTERS[: 5 * (i + 1)])
    schema["day"] = Date("2015-01-01", "2024-12-31", n_knots=16)
    schema["moment"] = Date("2015-01-01", "2024-12-31", unit="second", n_knots=16)
    schema["amount"] = Number(0, 2000, decimals=2, n_knots=16)
    schema["category"] = Category(LETTERS[:7])
    schema["flag"] = Boolean()
    schema["answer"] = Boolean()
    schema["gap"] = Number(-30, 30, decimals=1, n_knots=16, missing=True)
    schema["note"] = Category(LETTERS, missing=True)
    return Schema(schema)


def measure(n_rows, schema):
    """Return the CPU seconds of a fit."""
    table = make_table(n_rows)
    generator = DPSlicedWassersteinGenerator(
        epsilon=3.0, delta=1e-7, schema=schema, n_steps=20, random_state=0
    )
    start = time.process_time()
    generator.fit(table)
    return time.process_time() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs=2, default=[100_000, 300_000])
    few, many = parser.parse_args().rows
    warnings.simplefilter("ignore")
    costs = {}
    for name, schema in (("declared", declare()), ("undeclared", "private")):
        seconds = measure(many, schema) - measure(few, schema)
        costs[name] = seconds / (many - few) * 100_000
        print(f"{name:>10}: {costs[name]:5.1f} CPU seconds per 100,000 rows", flush=True)
    print(f"{'ratio':>10}: {costs['undeclared'] / costs['declared']:5.1f}")


if __name__ == "__main__":
    main()
