# SPDX-License-Identifier: BSD-3-Clause
"""Shares of the privacy budget for the releases that infer a schema."""

from collections.abc import Sequence
from dataclasses import dataclass

from ...mechanisms.sums import CategoryCountsMechanism
from ..columns.decimals import DECIMALS
from .frequencies import FREQUENT

# Names of releases.
RANGES, LOCATIONS, COUNTS = "value ranges", "value locations", "value counts"


@dataclass(frozen=True)
class BudgetConstants:
    """Constants of the shares; set by hand unless stated."""

    # Weights of releases, relative to that of all others.
    decimals: float = 0.25
    locations: float = 0.8
    categories: float = 4 / 3
    # The weight of frequent values for few columns, and over all of many.
    frequent: float = 0.6
    all_frequent: float = 2.4
    # Number of standard deviations of noise that the count of all records should have where
    # categories are found, and most of the budget for that: a threshold hides categories of few
    # records. Found on held-out rows of Adult, bank_marketing and diabetes130.
    wanted: float = 67.0
    most: float = 0.3


CONSTANTS = BudgetConstants()


def split_budget(
    releases: Sequence[str], n_undeclared: int, n_categories: int, share: float, noise: float
) -> dict[str, float]:
    """Return the share of the budget of each release.

    Parameters
    ----------
    releases : sequence of str
        Their names.
    n_undeclared, n_categories : int
        Numbers of undeclared columns, and of those that may have categories.
    share : float
        Share of all releases together, if there are many records.
    noise : float
        As in `Format.split_budget`. The larger this is, the more has the release of categories.
    """
    weights = dict.fromkeys(releases, 1.0)
    weights |= {
        # The more columns there are, the fewer values are clear of the noise.
        FREQUENT: min(CONSTANTS.frequent, CONSTANTS.all_frequent / max(n_undeclared, 1)),
        DECIMALS: CONSTANTS.decimals,
        LOCATIONS: CONSTANTS.locations,
        CategoryCountsMechanism.name: CONSTANTS.categories,
    }
    total = sum(weights[name] for name in releases)
    shares = {name: share * weights[name] / total for name in releases}
    if (name := CategoryCountsMechanism.name) in shares:
        wanted = n_categories * (CONSTANTS.wanted * noise) ** 2
        shares[name] = max(shares[name], min(CONSTANTS.most, wanted))
    return shares
