"""Seconds and memory of a fit to a table in DuckDB, which computes the sums itself.

Ten columns: four numbers, a date, a boolean, and categories of 4 to 17 levels. Above ten million
rows, a view repeats them:
    OMP_NUM_THREADS=1 python benchmarks/bench_database.py --rows 1e7 1e8 1e9
"""

import argparse
import os
import resource
import tempfile
import time
from pathlib import Path

import duckdb

from skdpgen import Boolean, Category, Date, DPSWFlowSampler, Number, Ordinal, Schema
from skdpgen.engines import sql
from skdpgen.releases import TwoWayTables

_STORED = 10_000_000
JOBS, REGIONS = ["nurse", "clerk", "teacher", "cook", "driver"], ["north", "south", "east", "west"]
SCHEMA = Schema(
    {
        "age": Number(0, 100, n_knots=16),
        "income": Number(1, 22_000, n_knots=16, scale="log"),
        "weight": Number(0, 200, decimals=1, n_knots=16),
        "visits": Number(0, 49, decimals=0, n_knots=16),
        "education": Ordinal(list(range(17))),
        "job": Category(JOBS),
        "region": Category(REGIONS),
        "letter": Category(list("abcdefgh")),
        "day": Date("2015-01-01", "2024-12-31", n_knots=16),
        "ill": Boolean(),
    }
)
_TABLE = f"""
    CREATE TABLE stored AS SELECT
        (hash(range) % 100)::DOUBLE + 0.25 AS age,
        exp((hash(range + 1) % 1000000) / 1e5) AS income,
        (hash(range + 2) % 2000)::DOUBLE / 10 AS weight,
        (hash(range + 3) % 50)::INTEGER AS visits,
        (hash(range + 4) % 17)::INTEGER AS education,
        {JOBS}[1 + (hash(range + 5) % 5)::INT] AS job,
        {REGIONS}[1 + (hash(range + 6) % 4)::INT] AS region,
        {list("abcdefgh")}[1 + (hash(range + 7) % 8)::INT] AS letter,
        DATE '2015-01-01' + (hash(range + 8) % 3650)::INT AS day,
        hash(range + 9) % 3 = 0 AS ill
    FROM range(?)"""


def fit(n_rows, options, folder):
    """Return elapsed and CPU seconds of a fit, and its certificate."""
    settings = {"threads": options.threads, "memory_limit": "2GB", "temp_directory": folder}
    with duckdb.connect(str(Path(folder, "rows.duckdb")), config=settings) as connection:
        connection.execute(_TABLE, [min(n_rows, _STORED)])
        copies = -(-n_rows // _STORED)
        connection.execute(
            f"CREATE VIEW people AS SELECT stored.* FROM stored, range({copies}) AS copy"
        )
        release = TwoWayTables(max_order=options.order)
        sampler = DPSWFlowSampler(1.0, 1e-10, schema=SCHEMA, n_steps=20, release=release)
        start, before = time.perf_counter(), os.times()
        sampler.fit(sql(connection, "people"))
        spent = os.times()
    elapsed = time.perf_counter() - start
    return elapsed, spent.user + spent.system - before.user - before.system, sampler.privacy_


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=float, nargs="+", default=[1e6])
    parser.add_argument("--order", type=int, default=2, help="columns of an interaction, at most")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    for n_rows in map(int, options.rows):
        with tempfile.TemporaryDirectory() as folder:
            elapsed, seconds, certificate = fit(n_rows, options, folder)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{n_rows:>13,} rows, order {options.order}: {elapsed:7.1f} s, {seconds:7.1f} s of "
            f"CPU, peak {peak:.0f} MiB, epsilon {certificate.epsilon:.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
