"""Time to price and to calibrate sliced Gaussian releases, beside dp-accounting's plain Gaussian.

The settings are those of the DP-SWD paper on MNIST: d = 784, k = 1000, 60,000 steps at a sampling
rate of 1/600. dp-accounting prices a Gaussian of the mean sensitivity, for the scale of things
only: that is no bound for the sliced release.

    python benchmarks/bench_accounting.py [--repeats 7]
"""

import itertools
import math
from functools import partial

from dp_accounting import (
    GaussianDpEvent,
    NeighboringRelation,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
)
from dp_accounting.pld import PLDAccountant
from dp_accounting.rdp import RdpAccountant
from side_by_side import compare, run

from skdpgen.privacy import calibrate_sliced_gaussian, sliced_gaussian_epsilon

TITLE = "accounting of 60,000 steps"
SHAPE = {"n_features": 784, "n_projections": 1000, "sampling_rate": 1 / 600, "n_steps": 60_000}


# Prices are remembered: each run has a little more noise.
sigmas = (0.65 + 1e-6 * i for i in itertools.count())


def price(method):
    sliced_gaussian_epsilon(next(sigmas), 1e-5, method=method, **SHAPE)


def calibrate(method):
    calibrate_sliced_gaussian(10 + next(sigmas), 1e-5, method=method, **SHAPE)


def plain(accountant):
    multiplier = next(sigmas) / math.sqrt(1000 / 784)
    event = PoissonSampledDpEvent(1 / 600, GaussianDpEvent(multiplier))
    relation = NeighboringRelation.REPLACE_SPECIAL
    ledger = accountant(neighboring_relation=relation).compose(SelfComposedDpEvent(event, 60_000))
    return ledger.get_epsilon(1e-5)


def find_rows(repeats):
    for method, accountant in {"pld": PLDAccountant, "rdp": RdpAccountant}.items():
        peers = {f"dp-accounting, {method}, a plain one": partial(plain, accountant)}
        yield from compare(f"price, {method}", partial(price, method), peers, repeats)
        yield from compare(f"calibrate, {method}", partial(calibrate, method), peers, repeats)


if __name__ == "__main__":
    run(__doc__, TITLE, find_rows)
