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

from skdpgen.privacy import SlicedGaussianDpEvent, calibrate_noise, ledger_epsilon

TITLE = "accounting of 60,000 steps"


# Prices are remembered: each run has a little more noise.
sigmas = (0.65 + 1e-6 * i for i in itertools.count())


def take_steps(sigma):
    step = PoissonSampledDpEvent(1 / 600, SlicedGaussianDpEvent(sigma, 784, 1000))
    return SelfComposedDpEvent(step, 60_000)


def price(accountant):
    ledger_epsilon([take_steps(next(sigmas))], 1e-5, accountant=accountant)


def calibrate(accountant):
    calibrate_noise(take_steps, 10 + next(sigmas), 1e-5, accountant=accountant)


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
