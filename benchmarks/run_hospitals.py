"""Twenty hospitals publish releases that are merged, beside one curator who is trusted by all.

    SKDPGEN_DATA=folder python benchmarks/run_hospitals.py [--epsilon 1] [--seeds 3]

Adult is split at random into hospitals of very different sizes; which rows are whose is public.
Each releases its tables with noise of its own. Printed are ε, the standard deviation of the noise
on a cell of a two-way table, in records, and areas under ROC curves and mean total variations, as
in run_tables.py.
"""

import argparse
import warnings

import numpy as np
from run_tables import NUMBERS, load, make_schema, measure_utility, variations

from skdpgen import DPSWFlowSampler, Number, Schema
from skdpgen.releases import from_release, merge


def split(table, n_hospitals):
    """Return the rows of each hospital: the largest has 100 times those of the smallest."""
    rng = np.random.default_rng(0)
    shares = rng.lognormal(sigma=1.2, size=n_hospitals)
    whose = rng.choice(n_hospitals, size=len(table), p=shares / shares.sum())
    return [table[whose == i].reset_index(drop=True) for i in range(n_hospitals)]


def declare(schema):
    """Return the schema with all knots declared, as hospitals have to agree on them beforehand."""
    numbers = {
        name: Number(column.lower, column.upper, decimals=column.decimals, knots=column.positions)
        for name, column in schema.items()
        if isinstance(column, Number)
    }
    return Schema({**schema, **numbers})


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--seeds", type=int, default=3, help="how many fits; noise has no seed")
    parser.add_argument("--hospitals", type=int, nargs="+", default=[5, 20])
    options = parser.parse_args()

    train, test = load("adult")
    schema, numbers = declare(make_schema("adult", train, test)), list(NUMBERS["adult"])
    sampler = DPSWFlowSampler(options.epsilon, options.delta, schema=schema, release="pairs")
    heads = ("epsilon", "noise", "LR", "trees", "1-way", "2-way", "3-way")
    print(f"{'':<32}" + "".join(f"{head:>9}" for head in heads), flush=True)

    def report(what, generator):
        rows = generator.sample(len(train))
        sigma = generator.release_.published.main.pairs_std
        figures = [generator.epsilon_, sigma, *measure_utility(rows, test, numbers)]
        figures += variations(rows, train, schema)
        print(f"{what:<32}" + "".join(f"{figure:>9.4f}" for figure in figures), flush=True)

    warnings.simplefilter("ignore")
    for seed in range(options.seeds):
        report(f"one trusted curator, {seed}", sampler.fit(train, target="target"))
        for n_hospitals in options.hospitals:
            # One step: only the releases of the hospitals are used.
            parts = [
                DPSWFlowSampler(
                    options.epsilon, options.delta, schema=schema, release="pairs", n_steps=1
                ).fit(rows, target="target")
                for rows in split(train, n_hospitals)
            ]
            merged = merge(*(part.release_ for part in parts))
            report(f"{n_hospitals} hospitals, {seed}", from_release(merged, sampler))


if __name__ == "__main__":
    main()
