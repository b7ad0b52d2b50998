"""Time to price and to calibrate sliced Gaussian releases, beside dp-accounting's plain Gaussian.

The settings are those of the DP-SWD paper on MNIST: d = 784, k = 1000, 60,000 steps at a sampling
rate of 1/600. dp-accounting prices a Gaussian of the mean sensitivity, for the scale of things
only: that is no bound for the sliced release.

    python benchmarks/bench_accounting.py [--repeats 3]
"""

import argparse
import math
import statistics
import time

from dp_accounting import (
    GaussianDpEvent,
    NeighboringRelation,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
)
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant

from skdpgen.privacy import calibrate_sliced_gaussian, sliced_gaussian_epsilon

SHAPE = {"n_features": 784, "n_projections": 1000, "sampling_rate": 1 / 600, "n_steps": 60_000}


def plain(accountant):
    multiplier = 0.65 / math.sqrt(1000 / 784)
    event = PoissonSampledDpEvent(1 / 600, GaussianDpEvent(multiplier))
    relation = NeighboringRelation.REPLACE_SPECIAL
    ledger = accountant(neighboring_relation=relation).compose(SelfComposedDpEvent(event, 60_000))
    return ledger.get_epsilon(1e-5)


RUNS = {
    "price, pld": lambda: sliced_gaussian_epsilon(0.65, 1e-5, method="pld", **SHAPE),
    "price, dp-accounting PLD": lambda: plain(PLDAccountant),
    "price, rdp": lambda: sliced_gaussian_epsilon(0.65, 1e-5, method="rdp", **SHAPE),
    "price, dp-accounting RDP": lambda: plain(RdpAccountant),
    "calibrate, pld": lambda: calibrate_sliced_gaussian(10, 1e-5, method="pld", **SHAPE),
    "calibrate, rdp": lambda: calibrate_sliced_gaussian(10, 1e-5, method="rdp", **SHAPE),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    times = {name: [] for name in RUNS}
    for _ in range(parser.parse_args().repeats):
        for name, run in RUNS.items():
            start = time.perf_counter()
            run()
            times[name].append(time.perf_counter() - start)
    for name, seconds in times.items():
        print(f"{name:25s} {statistics.median(seconds):6.2f} s (min {min(seconds):.2f})")


if __name__ == "__main__":
    main()
