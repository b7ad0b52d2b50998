# SPDX-License-Identifier: BSD-3-Clause
"""What right guesses of who was there show: which trade-offs they refute, and of what ε those are.

Each of m canaries is there by a fair coin of its own. Under a trade-off F (see `TradeOff`) what is
guessed of it by the outcome is right with a bounded probability, given the coins of all others. Two
bounds follow on how often guesses are right.

*Of many fits*, which are independent. A guess is right with probability (1 + δ(0))/2 at most, and
so is the mean share of right ones in a fit, however those of one fit depend on each other. Let x be
such a share, and p that bound. The product of 1 + λ(x - p) over all fits, for λ in [0, 1/p], has a
mean of at most 1. So has its mean over several λ, and it exceeds 1/α with probability α at most.

*Of one fit.* Let W of r guesses be right. That guess j is right, and W ≥ v, says of the outcome and
of the other coins what it says if guess j is wrong, and W ≥ v - 1. So the probability of the first
is at most F of that of the second: for the outcome under either coin, by concavity for both, for
all other coins, and for the mean over the m canaries:

    E[W; W ≥ v] / m ≤ F(E[r - W; W ≥ v - 1] / m)   for all v.

If P(W ≥ c) were α, least of all has to be below c if that is all at c, and below if each inequality
is met just so: with r and h the two sides, from above. By induction, no other law with these
inequalities has less (that of E[(W - v)₊] is the third quantity, which grows by P(W > v) each
time). Where more than all would be needed, P(W ≥ c) is less than α. Nothing says that guesses of
one fit are wrong independently of each other, since all might be told at once, if seldom: that is
why this bound stays below the truth however many canaries there are.

References
----------
Mahloujifar, Melis & Chaudhuri, "Auditing f-Differential Privacy in One Run", ICML 2025; for the
bets, Waudby-Smith & Ramdas, "Estimating means of bounded random variables by betting", JRSS B 2024.
"""

import math

import numpy as np
from scipy.special import logsumexp

from ..accounting.trade_offs import TradeOff

# Stakes, as shares of all that can be lost.
_STAKES = np.geomspace(0.02, 0.98, 12)
# By how much noise may differ from what is said, and how closely that is found.
_LEAST, _MOST, _CLOSE = 1 / 32, 128.0, 1e-3


def refute_by_fits(curve, shares, alpha):
    """Whether the shares of right guesses in independent fits are too large for a trade-off."""
    most = (1 + curve.advantage) / 2
    gains = np.log1p(np.outer(_STAKES / most, np.asarray(shares) - most)).sum(1)
    return logsumexp(gains) - math.log(len(_STAKES)) >= -math.log(alpha)


def refute_by_guesses(curve, n_canaries, n_guesses, n_right, alpha):
    """Whether so many guesses of one fit are right with a probability below alpha."""
    right = alpha * n_right / n_canaries
    wrong = alpha * (n_guesses - n_right) / n_canaries
    for v in range(n_right - 1, -1, -1):
        least = max(wrong, curve.min_false_positive_rate(right))
        right += v / (n_guesses - v) * (least - wrong)
        wrong = least
        # All of it; a probability of more than 1 is none.
        if right + wrong > n_guesses / n_canaries:
            return True
    return False


def find_bound(certificate, refute):
    """Return the ε of the most noise, relative to what a certificate says, that is not refuted.

    Parameters
    ----------
    certificate : Certificate
    refute : callable
        Of ``refute(curve)``, whether a `TradeOff` is refuted.

    Returns
    -------
    float
        At the certificate's δ; 0 if nothing was shown.
    """

    def make(scale):
        return TradeOff(certificate.events, certificate.relation, scale=scale)

    if math.isinf(certificate.epsilon) or not refute(make(_MOST)):
        return 0.0
    low, high = (_LEAST, 1.0) if refute(make(1.0)) else (1.0, _MOST)
    while high / low > 1 + _CLOSE:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if refute(make(middle)) else (middle, high)
    return make(high).epsilon(certificate.delta)
