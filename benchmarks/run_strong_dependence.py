"""Columns that nearly determine each other, with nothing declared.

Each table has four amounts of one law, whose Spearman correlations are 0.967; a code that
determines a name; an amount that exists where a flag is yes; and six numbers that are independent
of all others.

    python benchmarks/run_strong_dependence.py [--epsilon 1] [--rows 12000] [--levels 12]

Printed, for each seed: the least Spearman correlation among the amounts, and the largest with an
independent number; the share of rows whose name is not that of their code; the shares of rows with
a flag but no amount, among those with the flag, and of those with an amount but no flag, among
those with an amount; the largest total variation of an amount on 50 quantiles of the real one; and
seconds of processors for the fit.
"""

import argparse
import time
import warnings

import numpy as np
import pandas as pd

from skdpgen import DPSlicedWassersteinGenerator, DPSWFlowSampler

# Standard deviation of the logarithm of a ratio of two amounts, over √2: a correlation of 0.97.
SPREAD = 0.176
N_AMOUNTS, N_IDLE = 4, 6


def make_table(n_rows, n_levels, seed):
    """Return a table of so many records, and of so many levels of the code."""
    rng = np.random.default_rng(1000 + seed)
    common = rng.normal(size=n_rows)
    table = {}
    for i in range(N_AMOUNTS):
        logs = common + SPREAD * rng.normal(size=n_rows)
        table[f"amount{i}"] = np.exp(3 + 0.3 * i + 0.8 * logs).round(2)
    for i in range(N_IDLE):
        table[f"idle{i}"] = rng.normal(50, 10, n_rows).round(1)
    shares = 1 / np.arange(3, n_levels + 3)
    code = rng.choice(n_levels, n_rows, p=shares / shares.sum())
    table["code"] = np.array([f"C{i:02}" for i in range(n_levels)])[code]
    table["name"] = np.array([f"name of {i}" for i in range(n_levels)])[code]
    has_amount = rng.random(n_rows) < 0.1
    table["flag"] = np.where(has_amount, "yes", "no")
    table["paid"] = np.where(has_amount, np.exp(4 + 0.6 * rng.normal(size=n_rows)).round(2), np.nan)
    return pd.DataFrame(table)


def measure(real, made):
    """Return the figures of a synthetic table; see the module."""
    amounts = [f"amount{i}" for i in range(N_AMOUNTS)]
    idle = [f"idle{i}" for i in range(N_IDLE)]
    ranks = made[amounts + idle].corr("spearman").abs().to_numpy(copy=True)
    np.fill_diagonal(ranks, np.nan)
    code, name = (made[c].astype(str) for c in ("code", "name"))
    flag, has_paid = made["flag"].astype(str) == "yes", made["paid"].notna()
    distances = []
    for amount in amounts:
        edges = np.r_[-np.inf, real[amount].quantile(np.arange(1, 50) / 50), np.inf]
        shares = [np.histogram(table[amount], edges)[0] / len(table) for table in (real, made)]
        distances.append(0.5 * np.abs(shares[0] - shares[1]).sum())
    return {
        "least": np.nanmin(ranks[:N_AMOUNTS, :N_AMOUNTS]),
        "idle": np.nanmax(ranks[N_AMOUNTS:]),
        "code, other name": _mismatch(code, name),
        "yes, no amount": (~has_paid[flag]).mean(),
        "amount, not yes": (~flag[has_paid]).mean(),
        "variation": max(distances),
    }


def _mismatch(code, name):
    codes, names = (
        pd.to_numeric(column.str.extract(r"(\d+)$")[0], errors="coerce") for column in (code, name)
    )
    return (codes.fillna(-1) != names.fillna(-1)).mean()


METHODS = {"particles": DPSWFlowSampler, "network": DPSlicedWassersteinGenerator}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--rows", type=int, default=12_000)
    parser.add_argument("--levels", type=int, default=12)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--method", choices=list(METHODS), default="particles")
    options = parser.parse_args()
    for seed in range(options.seeds):
        real = make_table(options.rows, options.levels, seed)
        sampler = METHODS[options.method](options.epsilon, options.delta, random_state=seed)
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sampler.fit(real)
        spent = time.process_time() - start
        figures = measure(real, sampler.sample(options.rows))
        shown = "  ".join(f"{name} {figure:.3f}" for name, figure in figures.items())
        print(f"seed {seed}  {shown}  seconds {spent:.1f}", flush=True)


if __name__ == "__main__":
    main()
