"""CPU seconds and memory of default fits, as users run them, split into their parts.

    SKDPGEN_DATA=folder python benchmarks/run_defaults_speed.py [--cases adult-3000 adult] \
        [--methods particles network] [--seeds 3]

Each fit runs in a process of its own, with one thread. Printed are the CPU seconds of releases
(from reading the rows to noisy sums), of learning from these, and of drawing as many rows as were
fitted; the sum with all else that `fit` does; and the most memory above that of the imports and the
data. The last lines are the exponents by which seconds grow with rows.

Tables have nothing declared but their target, except for cases that end in ``-declared``, which
declare the bounds of numbers and all categories. `csv` is the command line from a file to a file,
with its start; its seconds are those of the clock. Others are run on the same rows by ``--peers``,
with the Python of an environment of theirs; see run_tables.py and peers_tables.py.
"""

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from run_tables import PEERS, cpu_seconds, load, make_schema, synthesize_by_peer
from sklearn.datasets import load_digits

from skdpgen import DPSlicedWassersteinGenerator, DPSWFlowSampler
from skdpgen.curator.curator import Curator

CLASSES = {"particles": DPSWFlowSampler, "network": DPSlicedWassersteinGenerator}


def load_adult(n_rows):
    return load("adult")[0].sample(n_rows, random_state=0)


def load_long():
    """Return 200,000 rows of 20 columns, drawn with replacement."""
    table = load("census_income")[0]
    columns = [*table.columns[:19], "target"]
    return table[columns].sample(200_000, replace=True, random_state=0, ignore_index=True)


def load_wide():
    """Return 30,000 rows of 60 columns, from two tables side by side."""
    left = load("diabetes130")[0].sample(30_000, random_state=0, ignore_index=True)
    right = load("adult")[0].drop(columns="target").sample(30_000, random_state=0)
    wide = pd.concat([right.reset_index(drop=True), left], axis=1)
    return wide.iloc[:, -60:]


TABLES = {
    "adult-3000": lambda: load_adult(3_000),
    "adult": lambda: load_adult(30_000),
    "long": load_long,
    "wide": load_wide,
}
CASES = [*TABLES, "adult-declared", "digits", "mnist", "csv"]


def load_arrays(name):
    """Return keyword arguments of an estimator, rows and classes."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return {"bounds": (0, 16)}, X, y
    with np.load(Path(os.environ["SKDPGEN_DATA"], "mnist.npz")) as data:
        return {"bounds": (0, 255)}, data["x_train"].reshape(-1, 784), data["y_train"]


def run(case, method, seed):
    """Fit and sample; return seconds and megabytes."""
    warnings.simplefilter("ignore")
    params = {"epsilon": 1.0, "delta": 1e-6, "random_state": seed}
    if case in ("digits", "mnist"):
        more, X, y = load_arrays(case)
        params |= more | {"classes": np.unique(y)}
        data, options = (X, y), {}
    else:
        name = case.removesuffix("-declared")
        data, options = (TABLES[name](),), {"target": "target"}
        if case.endswith("-declared"):
            params["schema"] = make_schema(name, *load(name))
    memory, seconds = peak_memory(), dict.fromkeys(("releases", "learning", "sampling"), 0.0)

    def timed(function, part, *inner):
        def call(*args, **kwargs):
            start = time.process_time(), sum(seconds[name] for name in inner)
            value = function(*args, **kwargs)
            others = sum(seconds[name] for name in inner) - start[1]
            seconds[part] += time.process_time() - start[0] - others
            return value

        return call

    for name in ("release", "encode_cells_by"):
        setattr(Curator, name, timed(getattr(Curator, name), "releases"))
    generator = CLASSES[method](**params)
    generator._learn = timed(generator._learn, "learning", "releases")
    generator.sample = timed(generator.sample, "sampling")
    start = time.process_time()
    generator.fit(*data, **options)
    del generator._learn
    generator.sample(len(data[0]))
    return seconds | {"all": time.process_time() - start, "MB": peak_memory() - memory}


def run_command(method):
    """Run the command line on a CSV file of 5,000 rows; return the seconds of the clock."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "private.csv")
        load_adult(5_000).to_csv(path, index=False)
        start = time.perf_counter()
        command = [sys.executable, "-m", "skdpgen", "synthesize", path, "--epsilon", "1"]
        command += ["--method", {"particles": "flow", "network": "sliced"}[method]]
        subprocess.run([*command, "-o", Path(folder, "out")], check=True, capture_output=True)
        return {"all": time.perf_counter() - start}


def peak_memory():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run_apart(case, method, seed):
    """Run a fit in a fresh process of one thread."""
    if case == "csv":
        return run_command(method)
    command = [sys.executable, __file__, "--one", case, method, str(seed)]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def run_peer(case, method, seed, options):
    table = TABLES[case]()
    schema = make_schema(case.split("-")[0], *load(case.split("-")[0]))
    start = cpu_seconds()
    synthesize_by_peer(method, table, schema, 1.0, seed, options)
    return {"all": cpu_seconds() - start}


def report(what, measured):
    heads = ("releases", "learning", "sampling", "all", "MB")
    cells = (f"{measured[head]:>10.1f}" if head in measured else f"{'':>10}" for head in heads)
    print(f"{what:<36}" + "".join(cells), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cases", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--methods", nargs="+", choices=[*CLASSES, *PEERS], default=list(CLASSES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--peers", metavar="PYTHON", help="of an environment for peers_tables.py")
    parser.add_argument("--peer-path", metavar="FOLDER", help="of peers that are not installed")
    parser.add_argument("--limit", metavar="SECONDS", type=float, help="for each run of a peer")
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        case, method, seed = options.one
        print(json.dumps(run(case, method, int(seed))))
        return
    print(
        f"{'':<36}" + "".join(f"{h:>10}" for h in ("releases", "learning", "sampling", "all", "MB"))
    )
    means = {}
    for case in options.cases:
        for method in options.methods:
            measured = []
            for seed in range(options.seeds):
                if method in CLASSES:
                    measured.append(run_apart(case, method, seed))
                elif case in ("adult-3000", "adult"):
                    measured.append(run_peer(case, method, seed, options))
                else:
                    continue
                report(f"{case}, {method}, seed {seed}", measured[-1])
            if measured:
                means[case, method] = np.mean([one["all"] for one in measured])
    for method in options.methods:
        if {("adult-3000", method), ("adult", method)} <= means.keys():
            ratio = means["adult", method] / means["adult-3000", method]
            print(f"{method}: seconds grow by the power {math.log10(ratio):.2f} of rows")


if __name__ == "__main__":
    main()
