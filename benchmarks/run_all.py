"""All speeds beside others', in one process, with what they depend on.

    OMP_NUM_THREADS=1 python benchmarks/run_all.py [--repeats 7] [--only slices noise]

GeomLoss is compared with where it is installed.
"""

import argparse
import warnings
from importlib import import_module

import torch
from side_by_side import describe_machine, print_rows

BENCHMARKS = "slices", "sinkhorn", "harmonics", "sliced_rows", "noise", "accounting"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, default=BENCHMARKS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    print(describe_machine())
    for name in options.only:
        benchmark = import_module(f"bench_{name}")
        print_rows(benchmark.TITLE, benchmark.find_rows(options.repeats))


if __name__ == "__main__":
    main()
