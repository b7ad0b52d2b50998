"""Tables that pairs of columns do not explain: what interactions bring, and what they cost.

Four tables without a target, which follow from a seed: exclusive ors of booleans, the same of signs
of numbers, a mixture of eight Gaussian distributions, and a structural model with products. Each is
fitted twice, with interactions and without, at δ = 1e-6.

    python benchmarks/run_three_way.py [--epsilon 1] [--rows 10000] [--seeds 3]

Printed are the mean total variations of all one-, two- and three-way tables, numbers in ten
quantiles, and the processor's seconds of a fit.
"""

import argparse
import time

import numpy as np
import pandas as pd
from run_tables import report, variations

from skdpgen import Boolean, Category, DPSlicedWassersteinGenerator, Number, Schema


def make_booleans(n, rng):
    bits = rng.random((n, 8)) < 0.5
    bits[:, 2] = bits[:, 0] ^ bits[:, 1]
    bits[:, 7] = bits[:, 5] ^ bits[:, 6] ^ (rng.random(n) < 0.1)
    table = pd.DataFrame(bits, columns=[f"b{i}" for i in range(8)])
    return table, Schema(dict.fromkeys(table, Boolean()))


def make_signs(n, rng):
    x = rng.uniform(-1, 1, (n, 6))
    x[:, 2] = np.abs(x[:, 2]) * np.sign(x[:, 0] * x[:, 1])
    return of_numbers(x, 1)


def make_mixture(n, rng):
    centres, shares = rng.normal(0, 2.0, (8, 5)), rng.dirichlet(np.full(8, 3.0))
    return of_numbers(centres[rng.choice(8, n, p=shares)] + rng.normal(0, 0.5, (n, 5)), 8)


def of_numbers(x, bound):
    table = pd.DataFrame(
        x.clip(-bound, bound).round(3), columns=[f"x{i}" for i in range(x.shape[1])]
    )
    return table, Schema(dict.fromkeys(table, Number(-bound, bound, decimals=3)))


def make_structural(n, rng):
    a = rng.choice(4, n, p=[0.4, 0.3, 0.2, 0.1])
    b = rng.normal(size=n) + 0.5 * (a == 1)
    s = rng.random(n) < 0.5
    c = np.where(s, b, -b) + 0.4 * rng.normal(size=n)
    d = c * a / 2 + 0.5 * rng.normal(size=n)
    e = (a + 2 * s + rng.integers(0, 2, n)) % 5
    table = pd.DataFrame({"a": a.astype(str), "b": b, "s": s, "c": c, "d": d, "e": e.astype(str)})
    schema, bounds = {"s": Boolean()}, {"b": 4, "c": 4, "d": 6}
    for name, bound in bounds.items():
        table[name] = table[name].clip(-bound, bound).round(3)
        schema[name] = Number(-bound, bound, decimals=3)
    schema |= {"a": Category(list("0123")), "e": Category(list("01234"))}
    return table, Schema({name: schema[name] for name in table})


CASES = {
    "booleans": make_booleans,
    "signs": make_signs,
    "mixture": make_mixture,
    "structural": make_structural,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    options = parser.parse_args()
    print(f"{'':<44}" + "".join(f"{head:>8}" for head in ("1-way", "2-way", "3-way", "cpu")))
    for name in options.cases:
        for seed in range(options.seeds):
            table, schema = CASES[name](options.rows, np.random.default_rng(seed))
            for what, release in (("pairs alone", "pairs"), ("interactions", "sketch")):
                generator = DPSlicedWassersteinGenerator(
                    options.epsilon, 1e-6, schema=schema, release=release, random_state=seed
                )
                start = time.process_time()
                generator.fit(table)
                spent = time.process_time() - start
                made = generator.sample(len(table))
                figures = variations(made, table, generator.schema_)
                report(f"{name}, {what}, seed {seed}", figures, [spent])


if __name__ == "__main__":
    main()
