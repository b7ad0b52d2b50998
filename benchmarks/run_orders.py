"""Targets that no pair of columns shows: signs of products of several numbers.

A classifier is trained on synthetic rows, and tested on real ones. Numbers are uniform or normal,
the target is the sign of the product of the first ones, and idle columns stand beside them. Nothing
is declared, or the bounds of the numbers are.

    python benchmarks/run_orders.py [--epsilon 1] [--rows 10000] [--seeds 3]

Printed are the accuracies of trees that were trained on real rows and on synthetic ones, the share
of synthetic rows whose target is the sign of their own product, the processor's seconds of a fit
with its sample, and the interactions whose tables were released.
"""

import argparse
import itertools
import time

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

from skdpgen import DPSlicedWassersteinGenerator, DPSWFlowSampler, Number, Schema
from skdpgen.tables import Category

METHODS = {"particles": DPSWFlowSampler, "network": DPSlicedWassersteinGenerator}
# Numbers in the product, and idle ones.
CASES = [(2, 0), (3, 0), (4, 0), (2, 3), (3, 3), (4, 3)]
# Declared bounds, per law.
BOUNDS = {"uniform": 1, "normal": 5}


def make_table(n_rows, n_factors, n_idle, law, rng):
    """Return numbers, and as last column the sign of the product of the first ones."""
    shape = n_rows, n_factors + n_idle
    x = rng.uniform(-1, 1, shape) if law == "uniform" else rng.normal(size=shape)
    table = pd.DataFrame(x, columns=[f"x{i}" for i in range(shape[1])])
    return table.assign(target=np.where(find_signs(table, n_factors) > 0, "yes", "no"))


def find_signs(table, n_factors):
    return np.sign(table.iloc[:, :n_factors].to_numpy()).prod(axis=1)


def make_schema(table, law):
    bound = BOUNDS[law]
    numbers = {name: Number(-bound, bound) for name in table.columns.drop("target")}
    return Schema({**numbers, "target": Category(["no", "yes"])})


def find_accuracy(table, test):
    """Return the accuracy on `test` of trees that were trained on `table`."""
    trees = HistGradientBoostingClassifier(random_state=0)
    if table["target"].nunique() == 1:
        return (test["target"] == table["target"].iloc[0]).mean()
    trees.fit(table.drop(columns="target"), table["target"])
    return trees.score(test.drop(columns="target"), test["target"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=3, help="their number, from 0 on")
    parser.add_argument("--laws", nargs="+", choices=list(BOUNDS), default=list(BOUNDS))
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=["particles"])
    parser.add_argument("--factors", type=int, nargs="+", default=[2, 3, 4])
    parser.add_argument("--idle", type=int, nargs="+", default=[0, 3])
    parser.add_argument("--declare", nargs="+", choices=["nothing", "bounds"], default=["nothing"])
    options = parser.parse_args()
    heads = ("real", "trees", "own", "cpu")
    print(f"{'':<52}" + "".join(f"{head:>8}" for head in heads) + "  kept", flush=True)
    runs = itertools.product(
        options.factors,
        options.idle,
        options.laws,
        options.declare,
        options.methods,
        range(options.seeds),
    )
    for n_factors, n_idle, law, declared, method, seed in runs:
        rng = np.random.default_rng(seed)
        table, test = (make_table(n, n_factors, n_idle, law, rng) for n in (options.rows, 10_000))
        schema = make_schema(table, law) if declared == "bounds" else "auto"
        start = time.process_time()
        generator = METHODS[method](
            options.epsilon, options.delta, schema=schema, random_state=seed
        ).fit(table, target="target")
        made = generator.sample(options.rows)
        spent = time.process_time() - start
        is_own = np.where(find_signs(made, n_factors) > 0, "yes", "no") == made["target"]
        figures = [find_accuracy(table, test), find_accuracy(made, test), is_own.mean()]
        what = f"{n_factors} + {n_idle}, {law}, {declared}, {method}, seed {seed}"
        kept = generator.schema_report_["interactions"].dropna().unique().tolist()
        print(
            f"{what:<52}" + "".join(f"{f:>8.3f}" for f in figures) + f"{spent:>8.0f}  {kept}",
            flush=True,
        )


if __name__ == "__main__":
    main()
