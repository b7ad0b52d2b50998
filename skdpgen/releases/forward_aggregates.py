# SPDX-License-Identifier: BSD-3-Clause
"""The release of the DPAF paper: sums of features, and products of single records."""

import math
import numbers
from collections.abc import Sequence

from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent

from ..checks import check_size, positive, whole
from ..mechanisms.aggregates import ForwardAggregateMechanism
from ..params import parameters
from .release import Release

# Records of each class, at an ε of 1 and more.
_NEEDED = 300


@parameters
class ForwardAggregates(Release):
    """Summed features of a random batch of rows, and clipped products of each, at each step.

    This is what the DPAF paper releases, repaired: all aggregates are noised, and cotangents are
    taken there.

    Parameters
    ----------
    n_steps : int, default=None
        Private steps of the generator's phase. None: n_samples / 60 within [20, 1000].
    batch_size : int, default=None
        Expected records a step (q is capped at 1). None: n_samples / 30 within [200, 2000].
    n_pretrain : int, default=None
        Private steps of the classifier's phase, if it has a budget. None: `n_steps` / 4.
    budget_split : tuple of (float, float, float), default=(0.0, 0.2, 0.8)
        Shares of the budget, of Σ s⁻² over the noise multipliers s of all steps, of conv1, of
        conv2* and of the aggregates. They sum to 1. Without a share, conv1 is random and there is
        no first phase; conv2* stays random, too. In the first phase, aggregates and products have
        half of its share each.
    grad_clip : float, default=1.0
        Radius of each record's products.
    keep : float, default=1.0
        Share of the numbers of a product, the largest ones, that are kept; 0.9 in the paper.
    asymmetry : int, default=8
        Steps for one update of conv2*.

    Examples
    --------
    >>> from skdpgen import DPAFGenerator
    >>> from skdpgen.releases import ForwardAggregates
    >>> DPAFGenerator(release=ForwardAggregates(keep=0.9))
    DPAFGenerator(release=ForwardAggregates(keep=0.9))
    """

    n_steps: int | None = None
    batch_size: int | None = None
    n_pretrain: int | None = None
    budget_split: Sequence = (0.0, 0.2, 0.8)
    grad_clip: float = 1.0
    keep: float = 1.0
    asymmetry: int = 8

    _checks = {
        "n_steps": whole(optional=True),
        "batch_size": whole(optional=True),
        "n_pretrain": whole(optional=True),
        "budget_split": lambda name, value: _check_split(value),
        "grad_clip": positive(),
        "keep": positive(most=1),
        "asymmetry": whole(),
    }

    # Names of the releases of the two phases.
    first, second = "classifier's aggregate", "discriminator's aggregate"
    name = second

    def plan(self, terms, format):
        """Return the `Plan`, from public numbers only."""
        first, _, _ = self.budget_split
        if first > 0 and terms.n_classes == 1:
            raise ValueError(
                "The classifier of the first phase needs two classes or more. Give a y that holds "
                "classes, or no budget to conv1: budget_split=(0, ..., ...)."
            )
        n_steps, n_first = self.count_steps(terms.n_samples), self.count_first(terms.n_samples)
        rate = self.count_rows(terms.n_samples) / terms.n_samples
        if terms.n_columns is not None:
            check_size("batch_size", self.count_rows(terms.n_samples), terms.n_columns)

        def step(multiplier):
            event = GaussianDpEvent(multiplier)
            return event if rate == 1 else PoissonSampledDpEvent(rate, event)

        before = []
        if first > 0:
            # Its steps have a share of Σ s⁻² over all steps.
            ratio = math.sqrt(n_first / first * (1 - first) / n_steps)
            before = [(self.first, lambda multiplier: step(ratio * multiplier), n_first)]
        return terms.plan_steps(
            self.second,
            step,
            n_steps,
            before=before,
            sensitivity=self.sensitivity(terms.relation, terms.n_classes),
        )

    def sensitivity(self, relation, n_classes):
        return ForwardAggregateMechanism.sensitivity_of(relation)

    def _count(self, plan, terms):
        return {
            "n_steps": self.count_steps(terms.n_samples),
            "batch_size": self.count_rows(terms.n_samples),
            "n_pretrain": self.count_first(terms.n_samples),
        }

    def min_samples(self, plan, terms, format):
        """Return how many records it takes to train the networks at all; found on digits."""
        return math.ceil(_NEEDED * terms.n_classes * max(1.0, 1 / terms.epsilon))

    def count_steps(self, n_samples):
        """Return the number of releases of the generator's phase."""
        return self.n_steps or min(1000, max(20, n_samples // 60))

    def count_first(self, n_samples):
        """Return the number of releases of the classifier's phase."""
        return self.n_pretrain or max(1, self.count_steps(n_samples) // 4)

    def count_rows(self, n_samples):
        """Return the expected number of records at a step."""
        return min(self.batch_size or max(200, min(2000, n_samples // 30)), n_samples)


def _check_split(split):
    """Refuse what are no three shares of a budget."""
    is_split = (
        isinstance(split, tuple | list)
        and len(split) == 3
        and all(isinstance(share, numbers.Real) and 0 <= share <= 1 for share in split)
        and math.isclose(sum(split), 1)
    )
    if not is_split or split[2] == 0:
        raise ValueError(
            "budget_split must be shares of conv1, conv2* and the aggregates that sum to 1, the "
            f"last one positive; got {split!r}."
        )
