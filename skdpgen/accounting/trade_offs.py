# SPDX-License-Identifier: BSD-3-Clause
"""Trade-off functions: the power of tests between neighbours against their error rate."""

from collections.abc import Iterable

import numpy as np
from dp_accounting import DpEvent

from .accountants import ledger_delta, ledger_epsilon
from .events import scale_noise

# Values of ε at which profiles are evaluated. Each gives two lines that bound the trade-off
# function, so 33 of them suffice.
_EPSILONS = np.concatenate([np.linspace(0, 4, 17), np.geomspace(4.5, 50, 16)])


class TradeOff:
    """Upper bound on the power of any test that tells neighbours apart by the releases of a ledger.

    A test with a false positive rate x has a power of at most F(x), the minimum of e^ε·x + δ(ε) and
    1 - e^-ε·(1 - δ(ε) - x) over all ε. Profiles of accountants are upper bounds, and so is F, for
    any set of ε over which the minimum is taken.

    Parameters
    ----------
    events : sequence of DpEvent
        Releases of the ledger.
    relation, accountant : str
        As in `ledger_epsilon`.
    scale : float, default=1.0
        Factor by which all noise exceeds that of the events.

    References
    ----------
    Dong, Roth & Su, "Gaussian Differential Privacy", JRSS B 2022, Proposition 2.12.
    """

    def __init__(
        self, events: Iterable[DpEvent], relation: str, accountant: str = "pld", scale: float = 1.0
    ) -> None:
        self._ledger = [scale_noise(event, lambda _: scale) for event in events]
        self._priced = {"relation": relation, "accountant": accountant}
        self._lines: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def advantage(self) -> float:
        """Largest power minus false positive rate of a test: the total variation, δ(0)."""
        return ledger_delta(self._ledger, 0.0, **self._priced)

    def epsilon(self, delta: float) -> float:
        """Return the smallest ε that is proved at `delta`."""
        return ledger_epsilon(self._ledger, delta, **self._priced)

    def min_false_positive_rate(self, power: float) -> float:
        """Return the smallest false positive rate x with F(x) at least `power`."""
        # Computed at the first question, since each profile is a price.
        if self._lines is None:
            profile = [ledger_delta(self._ledger, float(e), **self._priced) for e in _EPSILONS]
            self._lines = np.exp(_EPSILONS), np.array(profile)
        factors, deltas = self._lines
        # The two families of lines, solved for x; the larger one binds.
        first = np.max((power - deltas) / factors)
        return max(0.0, first, np.max(1 - deltas - factors * (1 - power)))
