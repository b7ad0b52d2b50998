"""Medians and inter-quartile ranges of synthetic columns at many levels and scales.

    python benchmarks/run_ranges.py [--seeds 10] [--epsilon 1.0] [--rows 3000] [--columns 1 15]

Nothing is declared. Each of six distributions stands at 12 levels and scales, alone or as one of 15
columns. A column passes if the errors of its median and of its inter-quartile range (IQR) are below
a tenth of the private IQR, for nine of ten seeds.
"""

import argparse
import warnings

import numpy as np
import pandas as pd

from skdpgen import DPSWFlowSampler

LEVELS = [
    *((0, 10.0**k) for k in (0, -12, -5, 6, 12, 15)),
    *((100, 1.0), (-273.15, 0.5), (1e6, 0.01), (-1e9, 1.0), (1e15, 1e9), (1e-6, 1e-9)),
]


def make_columns(n, rng):
    """Return a dict of columns by (distribution, level, scale)."""
    made = {}
    for level, scale in LEVELS:
        z = rng.normal(size=(5, n))
        shapes = {
            "normal": z[0],
            "lognormal": np.exp(z[1]),
            "uniform": rng.uniform(size=n),
            "Student-3": rng.standard_t(3, size=n),
            "mixture": np.where(rng.random(n) < 0.4, -3 + z[2] / 2, 2 + z[3]),
        }
        made |= {(name, level, scale): level + scale * x for name, x in shapes.items()}
        positive = level + scale * np.exp(z[4])
        made["zero-inflated", level, scale] = np.where(rng.random(n) < 0.3, 0, positive)
    return made


def find_errors(private, made):
    """Return the errors of the median and of the IQR, as shares of the private IQR."""
    (q1, median, q3), (r1, found, r3) = (
        np.nanquantile(x, [0.25, 0.5, 0.75]) for x in (private, made)
    )
    return abs(found - median) / (q3 - q1), abs((r3 - r1) / (q3 - q1) - 1)


def run(options, n_columns, seed):
    """Yield the key of each column and its errors."""
    rng = np.random.default_rng(seed)
    columns = make_columns(options.rows, rng)
    keys = [list(columns)[i] for i in rng.permutation(len(columns))]
    # The last table is filled up with the first columns.
    keys += keys[: -len(keys) % n_columns]
    for start in range(0, len(keys), n_columns):
        chosen = keys[start : start + n_columns]
        X = pd.DataFrame({str(key): columns[key] for key in chosen})
        fitted = DPSWFlowSampler(options.epsilon, 1e-5, random_state=seed, n_steps=options.steps)
        made = fitted.fit(X).sample(10_000)
        for key in chosen:
            yield key, find_errors(columns[key], made[str(key)].to_numpy(float))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--rows", type=int, default=3000)
    parser.add_argument("--columns", type=int, nargs="+", default=[1, 15])
    parser.add_argument("--steps", type=int, default=None)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for n_columns in options.columns:
        errors: dict = {}
        for seed in range(options.seeds):
            for key, found in run(options, n_columns, seed):
                errors.setdefault(key, []).append(found)
        rows = {
            key: [(np.array(found) < 0.1).all(axis=1).mean(), *np.median(found, axis=0)]
            for key, found in errors.items()
        }
        index = pd.MultiIndex.from_tuples(rows, names=["distribution", "level", "scale"])
        names = ["within a tenth", "median error", "IQR error"]
        table = pd.DataFrame(list(rows.values()), index=index, columns=names).sort_index()
        print(f"\nOne of {n_columns} columns, {options.seeds} seeds")
        print(table.round(3).to_string())
        print(f"{(table['within a tenth'] >= 0.9).sum()} of {len(table)} columns pass")


if __name__ == "__main__":
    main()
