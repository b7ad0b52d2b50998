"""Amounts with heavy tails, both signs and many zeros: quantiles and means of synthetic columns.

Four public tables, of at most so many rows each, drawn by the seed 0: the numbers of California
housing, of KDD Cup 1999 and of Adult, and of bank_marketing. Bounds are in round numbers, as a
codebook has them; the real columns beside the synthetic ones are clipped to them.

    SKDPGEN_DATA=folder python benchmarks/run_amounts.py [--epsilon 3] [--rows 50000] [--seeds 3]

Columns are declared in four ways:

- "even": bounds, and even knots;
- "scaled": bounds, special values as atoms, and knots even on a logarithmic or symlog scale;
- "found": bounds alone; knots and atoms are found and paid for;
- "open": nothing but the dtypes.

Printed are the quantiles at 1, 10, 50, 90 and 99 % of the real column, and the means over seeds of
those of synthetic ones; then the relative errors of the mean, of each seed.
"""

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from skdpgen import DPSlicedWassersteinGenerator
from skdpgen.exceptions import FitQualityWarning
from skdpgen.tables import Number, Schema

WAYS = ("even", "scaled", "found", "open")
# Synthetic rows, so many that they hardly add to the errors.
N_SYNTHETIC = 200_000
QUANTILES = (0.01, 0.1, 0.5, 0.9, 0.99)
# Lower and upper bound, decimals, and special values.
COLUMNS = {
    "california_housing": {
        "MedInc": (0, 16, 4),
        "HouseAge": (0, 60, 0),
        "AveRooms": (0, 200, None),
        "AveBedrms": (0, 50, None),
        "Population": (0, 50_000, 0),
        "AveOccup": (0, 2000, None),
        "Latitude": (32, 42, 2),
        "Longitude": (-125, -114, 2),
        "MedHouseVal": (0, 5.1, 5),
    },
    "kdd99_10percent": {
        "duration": (0, 60_000, 0, 0),
        "src_bytes": (0, 1_000_000, 0, 0),
        "dst_bytes": (0, 1_000_000, 0, 0),
        "hot": (0, 100, 0, 0),
        "num_compromised": (0, 1000, 0, 0),
        "count": (0, 511, 0, 511),
        "srv_count": (0, 511, 0, 511),
        "serror_rate": (0, 1, 2, 0, 1),
        "same_srv_rate": (0, 1, 2, 0, 1),
        "dst_host_count": (0, 255, 0, 255),
    },
    "adult": {
        "age": (17, 90, 0),
        "education_num": (1, 16, 0),
        "capital_gain": (0, 99_999, 0, 0, 99_999),
        "capital_loss": (0, 5000, 0, 0),
        "hours_per_week": (1, 99, 0),
    },
    "bank_marketing": {
        "age": (18, 95, 0),
        "balance": (-10_000, 110_000, 0, 0),
        "duration": (0, 5000, 0),
        "campaign": (1, 65, 0),
        "pdays": (1, 900, 0, -1),
        "previous": (0, 300, 0, 0),
    },
}


def declare(way, name, frame):
    """Return a schema of a table."""
    if way == "open":
        return Schema.from_dtypes(frame.dtypes)
    kinds = {}
    for column, public in COLUMNS[name].items():
        lower, upper, decimals, *atoms = public
        if way == "scaled":
            # Tails from 0 on, or on both sides of it.
            scale = "symlog" if lower <= 0 and upper >= 50 else "linear"
            kinds[column] = Number(lower, upper, decimals, scale=scale, atoms=atoms)
        else:
            scale = "linear" if way == "even" else None
            kinds[column] = Number(*widen(*public), decimals, scale=scale)
    return Schema(kinds)


def load(name, n_rows):
    folder = Path(os.environ["SKDPGEN_DATA"])
    frame = pd.read_csv(folder / f"{name}.csv.gz", usecols=list(COLUMNS[name]))
    frame = frame[list(COLUMNS[name])]
    return frame.sample(min(n_rows, len(frame)), random_state=0).reset_index(drop=True)


def synthesize(frame, schema, options, seed):
    generator = DPSlicedWassersteinGenerator(
        epsilon=options.epsilon, delta=options.delta, schema=schema, random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitQualityWarning)
        generator.fit(frame)
    if options.verbose:
        print(generator.schema_)
    return generator.sample(N_SYNTHETIC)


def widen(lower, upper, decimals, *atoms):
    """Return bounds that hold special values, too."""
    return min(lower, *atoms, upper), max(lower, *atoms, upper)


def clip(frame, name):
    return frame.apply(lambda column: column.clip(*widen(*COLUMNS[name][column.name])))


def compare(name, way, real, made):
    for column in real:
        quantiles = np.mean([table[column].quantile(QUANTILES) for table in made], axis=0)
        errors = [table[column].mean() / real[column].mean() - 1 for table in made]
        shown = zip(real[column].quantile(QUANTILES), quantiles, strict=True)
        print(
            f"{name[:5]} {way:<7}{column:<16}",
            *(f"{f'{a:.5g} {b:.5g}':>16}" for a, b in shown),
            "  ",
            *(f"{error:>+8.1%}" for error in errors),
            "  " if max(np.abs(errors)) <= 0.05 else " *",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epsilon", type=float, default=3.0)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data", nargs="+", choices=list(COLUMNS), default=list(COLUMNS))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--verbose", action="store_true", help="print the schemas, too")
    options = parser.parse_args()
    for name in options.data:
        frame = load(name, options.rows)
        for way in options.ways:
            start, schema = time.perf_counter(), declare(way, name, frame)
            made = [synthesize(frame, schema, options, seed) for seed in range(options.seeds)]
            compare(name, way, clip(frame, name), made)
            print(f"{name}, {way}: {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main()
