"""Synthetic tables by MST and AIM of smartnoise-synth, for run_tables.py to call.

It needs an environment with smartnoise-synth, and not skdpgen. Rows are codes from 0. How many
levels each column has, and how many rows there are, is public, so that nothing is spent on
preprocessing. The noise comes from the system and has no seed: the seed is that of the choices of
tables, and of sampling.

MST is fitted as it comes. AIM is fitted with two changes, without which it takes hours: its budget
is divided by 3 rounds per column rather than 16, and the size of its model is that of the junction
tree, as in the paper, and at most 4 MB. smartnoise-synth adds up the measured tables only, which
bounds neither time nor memory. On one core, adult takes MST 2 minutes, and AIM 20.

Both draw independent rows from their models. By default mbi 1.1.0 rounds counts, without shuffling
within the groups that it rounds: columns that are independent given a third then come out as
functions of each other.

    python benchmarks/peers_tables.py mst rows.csv synthetic.csv --sizes 16 9 2 [--epsilon 1]
"""

import argparse
from functools import partialmethod

import mbi.junction_tree
import numpy as np
import pandas as pd
import snsynth.aim.aim
from mbi import MarkovRandomField
from snsynth import Synthesizer
from snsynth.transform import LabelTransformer, TableTransformer

snsynth.aim.aim.hypothetical_model_size = mbi.junction_tree.hypothetical_model_size
MarkovRandomField.synthetic_data = partialmethod(MarkovRandomField.synthetic_data, method="sample")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("method", choices=["mst", "aim"])
    parser.add_argument("rows")
    parser.add_argument("synthetic")
    parser.add_argument("--sizes", type=int, nargs="+", required=True)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    np.random.seed(options.seed)  # noqa: NPY002, the one that both draw from
    rows = pd.read_csv(options.rows)
    columns = [LabelTransformer(nullable=False) for _ in options.sizes]
    for column, size in zip(columns, options.sizes, strict=True):
        column.fit(range(size))
    params = {"rounds": 3 * len(columns), "max_model_size": 4} if options.method == "aim" else {}
    synthesizer = Synthesizer.create(options.method, options.epsilon, delta=options.delta, **params)
    synthesizer.fit(rows, transformer=TableTransformer(columns), preprocessor_eps=0.0)
    if synthesizer.epsilon != options.epsilon:
        raise RuntimeError("A part of epsilon went into preprocessing.")
    synthesizer.sample(len(rows)).to_csv(options.synthetic, index=False)


if __name__ == "__main__":
    main()
