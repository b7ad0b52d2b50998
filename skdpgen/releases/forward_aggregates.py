# SPDX-License-Identifier: BSD-3-Clause
"""Forward aggregates: sums of features and of clipped products, as in the DPAF paper."""

import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass

from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent

from ..accounting.plan import Plan, Terms
from ..checks import check_size, positive, whole
from ..mechanisms.aggregates import ForwardAggregateMechanism
from .release import Release, within


@dataclass(frozen=True)
class AggregateDefaults:
    """Constants of the default numbers of `ForwardAggregates`; all were found on digits."""

    # Records of each class for useful results, at an ε of 1 and more.
    min_class_size: int = 300
    # Records for one step, and the range of steps.
    records_per_step: int = 60
    steps: tuple[int, int] = (20, 1000)
    # Steps of the generator's phase for one step of the classifier's.
    pretrain_ratio: int = 4
    # The share of records in a batch is 1 over this, and the range of batch sizes.
    batches: int = 30
    batch_sizes: tuple[int, int] = (200, 2000)


DEFAULTS = AggregateDefaults()


@dataclass(eq=False, repr=False)
class ForwardAggregates(Release):
    """Sums of features of a random batch of rows, and of clipped products, at each step.

    This is the release of the DPAF paper with two corrections: all aggregates are noised, and
    cotangents are computed at the noisy aggregates.

    Parameters
    ----------
    n_steps : int, default=None
        Private steps of the generator's phase. None: n_samples / 60 within [20, 1000].
    batch_size : int, default=None
        Expected records a step (q is capped at 1). None: n_samples / 30 within [200, 2000].
    n_pretrain : int, default=None
        Private steps of the classifier's phase, if it has a budget. None: `n_steps` / 4.
    budget_split : tuple of (float, float, float), default=(0.0, 0.2, 0.8)
        Shares of the budget (of Σ s⁻² over the noise multipliers s of all steps) of conv1, of
        conv2* and of the aggregates. They sum to 1. Layers without a share stay random; without a
        share of conv1 there is no first phase. In the first phase, aggregates and products have
        half of its share each.
    grad_clip : float, default=1.0
        Radius of each record's products.
    keep : float, default=1.0
        Share of the entries of a product, the largest ones, that are kept; 0.9 in the paper.
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
    name, learner = second, "aggregates"

    def plan(self, terms: Terms, format) -> Plan:
        """Return the `Plan`; see `Release.plan`."""
        first, _, _ = self.budget_split
        if first > 0 and terms.n_classes == 1:
            raise ValueError(
                "budget_split has a share for conv1, whose classifier needs at least two classes. "
                "Pass a y with classes, or set budget_split=(0, 0.2, 0.8)."
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
            # The steps of the first phase have the share `first` of Σ s⁻² over all steps.
            ratio = math.sqrt(n_first / first * (1 - first) / n_steps)
            before = [(self.first, lambda multiplier: step(ratio * multiplier), n_first)]
        return terms.plan_steps(
            self.second,
            step,
            n_steps,
            before=before,
            sensitivity=self.sensitivity(terms.relation, terms.n_classes),
        )

    def sensitivity(self, relation: str, n_classes: int) -> float:
        """Return the sensitivity of a step; see `Release.sensitivity`."""
        return ForwardAggregateMechanism.sensitivity_of(relation)

    def _count(self, plan, terms):
        return {
            "n_steps": self.count_steps(terms.n_samples),
            "batch_size": self.count_rows(terms.n_samples),
            "n_pretrain": self.count_first(terms.n_samples),
        }

    def min_samples(self, plan: Plan, terms: Terms, format) -> int:
        """Return the number of records needed to train the networks; see `Release.min_samples`."""
        return math.ceil(DEFAULTS.min_class_size * terms.n_classes * max(1.0, 1 / terms.epsilon))

    def count_steps(self, n_samples: int) -> int:
        """Return the number of releases of the generator's phase."""
        return self.n_steps or within(n_samples // DEFAULTS.records_per_step, DEFAULTS.steps)

    def count_first(self, n_samples: int) -> int:
        """Return the number of releases of the classifier's phase."""
        return self.n_pretrain or max(1, self.count_steps(n_samples) // DEFAULTS.pretrain_ratio)

    def count_rows(self, n_samples: int) -> int:
        """Return the expected number of records at a step."""
        size = within(n_samples // DEFAULTS.batches, DEFAULTS.batch_sizes)
        return min(self.batch_size or size, n_samples)


def _check_split(split):
    """Raise a ValueError unless `split` is three shares of a budget."""
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
