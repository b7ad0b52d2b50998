"""CPU seconds and memory of the release of a table's two-way tables, and of what is learnt of them.

One kind of table a run, since memory is that of the process at its peak:
    OMP_NUM_THREADS=1 python benchmarks/bench_tables.py --table long --rows 1000000
    OMP_NUM_THREADS=1 python benchmarks/bench_tables.py --table long --rows 1000000 --chunks
    OMP_NUM_THREADS=1 python benchmarks/bench_tables.py --table wide
    OMP_NUM_THREADS=1 python benchmarks/bench_tables.py --table many
"""

import argparse
import resource
import time
import warnings

import numpy as np
import pandas as pd

from skdpgen import Category, DPSlicedWassersteinGenerator, DPSWFlowSampler, Number, Schema

# Columns: numbers of levels of categories, and of numbers.
TABLES = {
    "long": ([2, 4, 6, 8, 10, 12, 14, 16, 18, 20], 10),
    "wide": ([10_000, *[8] * 10], 0),
    "many": ([100] * 100, 0),
}
METHODS = {"network": DPSlicedWassersteinGenerator, "particles": DPSWFlowSampler}


def make_schema(table):
    sizes, n_numbers = TABLES[table]
    kinds = {f"c{i}": Category([f"v{j}" for j in range(size)]) for i, size in enumerate(sizes)}
    return Schema(kinds | {f"x{i}": Number(-4, 4, n_knots=16) for i in range(n_numbers)})


def make_table(schema, n_rows, seed):
    rng, columns = np.random.default_rng(seed), {}
    for name, kind in schema.items():
        if isinstance(kind, Category):
            columns[name] = np.array(kind.levels, dtype=object)[
                rng.integers(len(kind.levels), size=n_rows)
            ]
        else:
            columns[name] = rng.normal(size=n_rows)
    return pd.DataFrame(columns)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--table", choices=TABLES, default="long")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--chunks", action="store_true", help="rows from a function, in pieces")
    parser.add_argument("--method", choices=METHODS, default="network")
    parser.add_argument("--steps", type=int, default=1)
    options = parser.parse_args()
    schema, size = make_schema(options.table), 50_000

    def chunks():
        for start in range(0, options.rows, size):
            yield make_table(schema, min(size, options.rows - start), start)

    made_in = time.process_time()
    X = chunks if options.chunks else pd.concat(chunks(), ignore_index=True)
    for chunk in chunks() if options.chunks else ():
        del chunk
    made_in = time.process_time() - made_in
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10

    generator = METHODS[options.method](epsilon=1.0, schema=schema, n_steps=options.steps)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        generator.fit(X)
    spent = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    print(f"{options.table}: {options.rows:,} rows, {len(schema)} columns, {options.steps} steps")
    print(f"fit: {spent:.1f} s of one core (to make the table once: {made_in:.1f} s)")
    print(f"memory: {peak:,.0f} MB at most, {before:,.0f} MB before fit")


if __name__ == "__main__":
    main()
