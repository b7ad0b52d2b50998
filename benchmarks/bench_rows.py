"""CPU seconds and memory of a slice sketch of many rows, read in chunks, and how they grow.

The rows are one chunk, over and over, so that making them takes no time:
    OMP_NUM_THREADS=1 python benchmarks/bench_rows.py --rows 10000 100000 1000000
    OMP_NUM_THREADS=1 python benchmarks/bench_rows.py --rows 20000 --projections 25 100 400 1600
    OMP_NUM_THREADS=1 python benchmarks/bench_rows.py --rows 10000 100000 --rows-per-person 3
"""

import argparse
import math
import resource
import time
from dataclasses import replace

import numpy as np
import torch

from skdpgen.curator.persons import Persons
from skdpgen.privacy import Curator, NoiseSource, SliceSketchMechanism, gaussian_plan
from skdpgen.transport import SliceBasis, random_directions

_CHUNK, _COLUMNS, _HARMONICS = 10_000, 100, 4


def sketch(n_rows, k, rows, max_rows=None):
    """Return CPU seconds, and the released sums; of persons, everybody has five rows."""
    directions = random_directions(_COLUMNS, k, generator=torch.Generator().manual_seed(0))
    mechanism = SliceSketchMechanism(SliceBasis(directions, 0.5, _HARMONICS))
    plan = gaussian_plan({mechanism.name: 1.0}, epsilon=1.0, delta=1e-10)
    starts, persons = range(0, n_rows, _CHUNK), None

    def chunks():
        for start in starts:
            stop = min(start + _CHUNK, n_rows)
            chunk = rows[: stop - start]
            yield chunk if max_rows is None else (chunk, None, np.arange(start, stop) // 5)

    if max_rows is not None:
        plan = replace(plan, max_rows=max_rows)
        persons = Persons(lambda: (whose for _, _, whose in chunks()))
    start = time.process_time()
    with Curator(chunks, persons=persons, plan=plan, noise=NoiseSource()) as curator:
        released = curator.release(mechanism)
    return time.process_time() - start, released


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--projections", type=int, nargs="+", default=[100])
    parser.add_argument("--rows-per-person", type=int, help="how many of five count")
    options = parser.parse_args()
    rows = np.random.default_rng(0).normal(size=(_CHUNK, _COLUMNS)) / math.sqrt(2 * _COLUMNS)
    sketch(1000, options.projections[0], rows)
    measured = []
    for k in options.projections:
        for n in options.rows:
            seconds, released = sketch(n, k, rows, options.rows_per_person)
            measured.append((n, k, seconds))
            print(
                f"{n:>11,} rows, {k:>5} slices: {seconds:8.2f} s of CPU, "
                f"{seconds / n * 1e6:7.2f} µs a row, {released.sums.nbytes:,} bytes of sums, "
                f"noise {released.sums_std:.1f}",
                flush=True,
            )
    for place, name in enumerate(("rows", "slices")):
        sizes = [line[place] for line in measured]
        if len(set(sizes)) > 1:
            exponent = np.polyfit(np.log(sizes), np.log([line[2] for line in measured]), 1)[0]
            print(f"seconds grow as {name}^{exponent:.3f}")
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"memory at the peak: {most:.0f} MiB")


if __name__ == "__main__":
    main()
