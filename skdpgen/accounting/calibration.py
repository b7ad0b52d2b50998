# SPDX-License-Identifier: BSD-3-Clause
"""Calibration of noise levels to a budget, which the cost never exceeds."""

import contextlib
import math
import numbers
from collections.abc import Callable

from dp_accounting import DpEvent, GaussianDpEvent
from scipy.optimize import brentq

from ..checks import check_number
from .accountants import ledger_epsilon
from .events import noise_unit
from .rounding import at_most

# Events must have multipliers of at least 1e-9.
_LEAST_LEVEL = 1e-8


def calibrate(
    epsilon_of: Callable[[float], float], epsilon: float, *, guess: float = 1.0, rtol: float = 1e-4
) -> float:
    """Return the smallest noise level, within `rtol`, whose cost is within the budget.

    `epsilon_of` gives ε, which decreases in the noise level; the search starts at `guess`. The
    result never costs more than `epsilon`. Raises ValueError as `calibrate_noise`.

    Examples
    --------
    >>> round(calibrate(lambda level: 2 / level, 4.0), 3)
    0.5
    """

    # An infinite cost would stop the root search; any finite one far above the budget does as well.
    def excess(log_level: float) -> float:
        return min(epsilon_of(math.exp(log_level)), 2 * epsilon + 1e6) - epsilon

    low = high = math.log(guess)
    # The guess is mostly close: a narrow bracket that doubles takes the fewest prices.
    width = 0.03
    while excess(high) > 0:
        low, high, width = high, high + width, 2 * width
        # Noise e^64 times the guess costs nothing: the rest is the cost of fixed releases.
        if width > 64:
            raise ValueError("No noise level was found that meets the budget; it is too small.")
    while excess(low) <= 0:
        low, high, width = low - width, low, 2 * width
        check_level(math.exp(low))
    level = brentq(excess, low, high, xtol=rtol / 2)
    # The root is within a tolerance on either side: steps upwards end on the side of the budget.
    while excess(level) > 0:
        level += rtol / 2
    return math.exp(level)


def calibrate_noise(
    make_event: Callable[[float], DpEvent],
    epsilon: float,
    delta: float,
    *,
    accountant: str = "pld",
    relation: str = "zero_out",
    guess: float = 1.0,
) -> float:
    """Return the smallest noise level at which an event is within (ε, δ).

    Parameters
    ----------
    make_event : callable
        Event as a function of a positive number, in which its ε decreases: of a noise multiplier,
        for instance. Several releases are a `ComposedDpEvent`.
    epsilon : float
        The budget; ``inf`` gives 0.
    delta : float
        Target δ in (0, 1).
    accountant, relation
        As in `ledger_epsilon`, by which the event at the result costs at most `epsilon`.
    guess : float, default=1.0
        Start of the search.

    Returns
    -------
    float

    Raises
    ------
    ValueError
        If the budget is too small for any noise level, or so large that none is needed.

    Examples
    --------
    The noise of DP-SGD: 1,000 steps with Poisson samples of 1 % of the records.

    >>> from dp_accounting import GaussianDpEvent, PoissonSampledDpEvent, SelfComposedDpEvent
    >>> def make_event(s):
    ...     return SelfComposedDpEvent(PoissonSampledDpEvent(0.01, GaussianDpEvent(s)), 1000)
    >>> round(calibrate_noise(make_event, 1.0, 1e-5), 3)
    1.416

    That of one projection of rows with 64 columns on 32 random directions, over their radius:

    >>> from skdpgen.privacy import SlicedGaussianDpEvent
    >>> 2.5 < calibrate_noise(lambda s: SlicedGaussianDpEvent(s, 64, 32), 1.0, 1e-5) < 3.0
    True
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    check_number("guess", guess)
    if not callable(make_event) or not isinstance(make_event(guess), DpEvent):
        raise TypeError("make_event must be a function that returns an event of dp_accounting.")

    def epsilon_under(accountant: str) -> Callable[[float], float]:
        return lambda level: ledger_epsilon(
            [make_event(level)], delta, accountant=accountant, relation=relation
        )

    if math.isinf(epsilon):
        return 0.0
    if accountant in ("pld", "autodp"):
        # Rényi moments are cheap, and give a close start where they reach: those of samples, which
        # are computed at few orders, exceed small budgets at any noise.
        with contextlib.suppress(ValueError):
            guess = calibrate(epsilon_under("rdp"), epsilon, guess=guess, rtol=1e-3)
    return calibrate(epsilon_under(accountant), epsilon, guess=guess)


def calibrate_gaussian(
    epsilon: float, delta: float, *, accountant: str = "pld", relation: str = "zero_out"
) -> float:
    """Return the total noise multiplier of unsampled Gaussian releases at (ε, δ).

    Shares of the budget are fractions of ρ, in proportion to Σ s⁻²: a release with share p has the
    multiplier s / √p, and all releases together cost exactly as much as one release at s. It is
    that of a `GaussianDpEvent`, twice as large under ``"replace_one"``: the noise of a release with
    all of the budget is s times its sensitivity under ``"zero_out"``, and s/2 times that under
    ``"replace_one"``.

    Parameters
    ----------
    epsilon : float
        The budget; ``inf`` gives 0.
    delta : float
        Target δ in (0, 1).
    accountant : {"pld", "rdp", "autodp"}, default="pld"
    relation : {"zero_out", "replace_one"}, default="zero_out"

    Returns
    -------
    float

    Examples
    --------
    >>> round(calibrate_gaussian(1.0, 1e-5), 3)
    3.731
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    if math.isinf(epsilon):
        return 0.0

    unit = noise_unit(GaussianDpEvent(1.0), relation)

    # The cost is a function of total ρ only, so one event stands for any number of them.
    def epsilon_of(level: float) -> float:
        event = [GaussianDpEvent(unit * level)]
        return ledger_epsilon(event, delta, accountant=accountant, relation=relation)

    return unit * calibrate(epsilon_of, epsilon, rtol=1e-7)


def check_level(level: float) -> None:
    """Raise ValueError if a noise level is so small that no event can have it."""
    if level < _LEAST_LEVEL:
        raise ValueError("The budget is so large that no noise is needed; use epsilon=inf.")


def check_epsilon(epsilon: float) -> float:
    """Return ε as the largest float that does not exceed it; raise ValueError if it is invalid."""
    is_number = isinstance(epsilon, numbers.Real) and not isinstance(epsilon, bool)
    # NaN fails this comparison, too.
    if not is_number or not at_most(epsilon) > 0:
        raise ValueError(
            f"epsilon must be a positive number, or inf for no noise; got {epsilon!r}."
        )
    return at_most(epsilon)


def check_delta(delta: float) -> float:
    """Return δ as the largest float that does not exceed it; raise ValueError outside (0, 1)."""
    is_number = isinstance(delta, numbers.Real) and not isinstance(delta, bool)
    if not is_number or not 0 < at_most(delta) < 1:
        raise ValueError(f"delta must be a number in (0, 1); got {delta!r}.")
    return at_most(delta)


def find_delta(delta: float | None, n_records: int, most: float = 1e-5) -> float:
    """Return δ; by default a power of ten, at most `most` and a tenth of 1 over the public n.

    Examples
    --------
    >>> find_delta(None, 500), find_delta(None, 60_000), find_delta(0.001, 500)
    (1e-05, 1e-06, 0.001)
    """
    if delta is not None:
        return check_delta(delta)
    # "1.6e-06" is between 1e-06 and 1e-05; its exponent is that of the power below.
    return float(f"1e{int(f'{min(most, 0.1 / n_records):.6e}'.partition('e')[2])}")
