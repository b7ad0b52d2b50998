# SPDX-License-Identifier: BSD-3-Clause
"""What tests can find of neighbours: how right they are, for how often they are wrong."""

from collections.abc import Iterable

import attrs
import numpy as np
from dp_accounting import DpEvent, NonPrivateDpEvent

from .accountants import ledger_delta, ledger_epsilon

# Where profiles are looked at: each ε gives two lines above the curve, so that a few do.
_EPSILONS = np.concatenate([np.linspace(0, 4, 17), np.geomspace(4.5, 50, 16)])


class TradeOff:
    """The most that any test can find of neighbours that a ledger of events was made of.

    Where a test sees what is not there with probability x, it sees what is there with one of F(x)
    at most: F(x) is the least of e^ε·x + δ(ε) and 1 - e^-ε·(1 - δ(ε) - x), over all ε. Profiles of
    accountants are upper bounds, and so is F, whatever ε it is found by.

    Parameters
    ----------
    events : sequence of DpEvent
    relation, accountant : str
    scale : float, default=1.0
        All noise is so many times as large as the events say.

    References
    ----------
    Dong, Roth & Su, "Gaussian Differential Privacy", JRSS B 2022, Proposition 2.12.
    """

    def __init__(
        self, events: Iterable[DpEvent], relation: str, accountant: str = "pld", scale: float = 1.0
    ) -> None:
        self._ledger = [scale_noise(event, scale) for event in events]
        self._priced = {"relation": relation, "accountant": accountant}
        self._lines = None

    @property
    def advantage(self) -> float:
        """The most that a test can be oftener right than wrong: the total variation, δ(0)."""
        return ledger_delta(self._ledger, 0.0, **self._priced)

    def epsilon(self, delta: float) -> float:
        """Return ε at a δ."""
        return ledger_epsilon(self._ledger, delta, **self._priced)

    def min_false_positive_rate(self, power: float) -> float:
        """Return the least x for which F(x) is as large as `power`."""
        if self._lines is None:
            deltas = [ledger_delta(self._ledger, float(e), **self._priced) for e in _EPSILONS]
            self._lines = np.exp(_EPSILONS), np.array(deltas)
        factors, deltas = self._lines
        first = np.max((power - deltas) / factors)
        return max(0.0, first, np.max(1 - deltas - factors * (1 - power)))


def scale_noise(event: DpEvent, scale: float) -> DpEvent:
    """Return an event with so many times the noise; what has none keeps none."""
    if isinstance(event, NonPrivateDpEvent):
        return event
    if hasattr(event, "event"):
        return attrs.evolve(event, event=scale_noise(event.event, scale))
    return attrs.evolve(event, noise_multiplier=scale * event.noise_multiplier)
