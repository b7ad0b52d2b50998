# SPDX-License-Identifier: BSD-3-Clause
"""Refutation of trade-off functions by correct membership guesses, and the ε that remain.

Each of m canaries is included by an independent fair coin. Under a bound F on the power of tests
(see `TradeOff`), a guess of a coin from the outcome is right with bounded probability, given the
coins of all others. Two bounds on the number of right guesses follow.

*Many independent fits.* A guess is right with probability at most p = (1 + δ(0))/2. If all coins of
a fit are guessed, p also bounds the mean share x of right guesses, however these depend on each
other. The product of 1 + λ(x - p) over all fits, for λ in [0, 1/p], has a mean of at most 1. So has
its mean over several λ, and it exceeds 1/α with probability at most α.

*One fit, or fits together.* Let W of r guesses be right, of m canaries in all. The event that guess
j is right and W ≥ v depends on the outcome and the other coins as does the event that guess j is
wrong and W ≥ v - 1. So the probability of the first is at most F of that of the second: for the
outcome under either coin, by concavity for both, for all other coins, and for the mean over the m:

    E[W; W ≥ v] / m ≤ F(E[r - W; W ≥ v - 1] / m)   for all v.

Suppose that P(W ≥ c) were α. The mass below c is smallest if all mass at or above c is at c, and if
each inequality is an equality, from v = c downwards: `right` and `wrong` are the two means. By
induction, no other law that satisfies the inequalities has less mass. If more than all mass would
be needed, P(W ≥ c) is less than α. The guesses of one fit need not be wrong independently, since a
fit may seldom reveal all coins at once: that is why this bound stays below the true ε however many
canaries there are.

References
----------
Mahloujifar, Melis & Chaudhuri, "Auditing f-Differential Privacy in One Run", ICML 2025; for the
bets, Waudby-Smith & Ramdas, "Estimating means of bounded random variables by betting", JRSS B 2024.
"""

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from dp_accounting import DpEvent
from scipy.special import logsumexp

from ..accounting.accountants import ledger_delta, ledger_epsilon
from ..accounting.certificate import Certificate
from ..accounting.events import scale_noise

# Bets λ as shares of their maximum 1/p: large ones refute by few fits, small ones by many.
_STAKES = np.geomspace(0.02, 0.98, 12)
# Range of factors of the noise for the bisection, and its relative precision.
_LEAST, _MOST, _PRECISION = 1 / 32, 128.0, 1e-3
# Values of ε at which profiles are evaluated, set by hand. Each gives two lines that bound the
# trade-off function; fewer only loosen the bound.
_EPSILONS = np.concatenate([np.linspace(0, 4, 17), np.geomspace(4.5, 50, 16)])


class TradeOff:
    """Upper bound on the power of any test between neighbours, by the releases of a ledger.

    A test with a false positive rate x has a power of at most F(x), the minimum of e^ε·x + δ(ε) and
    1 - e^-ε·(1 - δ(ε) - x) over all ε; 1 - F is the trade-off function of Dong et al. Profiles of
    accountants are upper bounds, and so is F, for any set of ε over which the minimum is taken. All
    noise exceeds that of the events by the factor `scale`.

    References
    ----------
    Dong, Roth & Su, "Gaussian Differential Privacy", JRSS B 2022, Proposition 2.12.
    """

    def __init__(self, events: Iterable[DpEvent], relation: str, scale: float = 1.0) -> None:
        self._ledger = [scale_noise(event, lambda _: scale) for event in events]
        self._relation = relation
        self._lines: tuple[np.ndarray, np.ndarray] | None = None

    @property
    def advantage(self) -> float:
        """Largest power minus false positive rate of a test: the total variation, δ(0)."""
        return ledger_delta(self._ledger, 0.0, relation=self._relation)

    def epsilon(self, delta: float) -> float:
        """Return the smallest ε that is proved at `delta`."""
        return ledger_epsilon(self._ledger, delta, relation=self._relation)

    def min_false_positive_rate(self, power: float) -> float:
        """Return the smallest false positive rate x with F(x) at least `power`."""
        # Computed on first use, since accounting is slow.
        if self._lines is None:
            profile = [
                ledger_delta(self._ledger, float(e), relation=self._relation) for e in _EPSILONS
            ]
            self._lines = np.exp(_EPSILONS), np.array(profile)
        factors, deltas = self._lines
        # The two families of lines, solved for x; the largest value binds.
        first = np.max((power - deltas) / factors)
        return max(0.0, first, np.max(1 - deltas - factors * (1 - power)))


def refute_by_fits(curve: TradeOff, shares: Sequence[float], alpha: float) -> bool:
    """Return whether shares of right guesses in independent fits refute a trade-off function."""
    most = (1 + curve.advantage) / 2
    gains = np.log1p(np.outer(_STAKES / most, np.asarray(shares) - most)).sum(1)
    return logsumexp(gains) - math.log(len(_STAKES)) >= -math.log(alpha)


def refute_by_guesses(
    curve: TradeOff, n_canaries: int, n_guesses: int, n_right: int, alpha: float
) -> bool:
    """Return whether `n_right` or more right guesses have a probability below alpha."""
    right = alpha * n_right / n_canaries
    wrong = alpha * (n_guesses - n_right) / n_canaries
    for v in range(n_right - 1, -1, -1):
        least = max(wrong, curve.min_false_positive_rate(right))
        right += v / (n_guesses - v) * (least - wrong)
        wrong = least
        # A total probability of more than 1 is a contradiction.
        if right + wrong > n_guesses / n_canaries:
            return True
    return False


def find_bound(certificate: Certificate, refute: Callable[[TradeOff], bool]) -> float:
    """Return a lower bound on ε: that of the least noise of which ``refute(curve)`` is true.

    It is at the certificate's δ, to within 0.1 % of the noise; 0 if 128 times the noise of the
    certificate is not refuted, or if its ε is infinite.
    """

    def scaled(factor: float) -> TradeOff:
        return TradeOff(certificate.events, certificate.relation, scale=factor)

    if math.isinf(certificate.epsilon) or not refute(scaled(_MOST)):
        return 0.0
    low, high = (_LEAST, 1.0) if refute(scaled(1.0)) else (1.0, _MOST)
    while high / low > 1 + _PRECISION:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if refute(scaled(middle)) else (middle, high)
    return scaled(high).epsilon(certificate.delta)
