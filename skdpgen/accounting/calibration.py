# SPDX-License-Identifier: BSD-3-Clause
"""Calibration of noise levels to a budget, which the cost never exceeds."""

import contextlib
import math
import numbers
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from dp_accounting import (
    DpEvent,
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
)
from scipy.optimize import brentq

from ..checks import check_choice, check_number, flag
from .accountants import find_rdp, ledger_epsilon
from .directions import check_shape, sensitivity_bound, table4_bound
from .events import SlicedGaussianDpEvent, noise_unit
from .moments import ORDERS
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


def sliced_gaussian_epsilon(
    sigma: float,
    delta: float,
    *,
    n_features: int,
    n_projections: int,
    sampling_rate: float = 1.0,
    n_steps: int = 1,
    method: str = "pld",
    orthogonal: bool = False,
    relation: str = "zero_out",
    sampling: str = "poisson",
) -> float:
    """Return ε of `n_steps` sliced Gaussian releases XU + V.

    Each step draws a fresh U, samples rows, and adds to each projected row noise of standard
    deviation `sigma` times the radius of the rows.

    Parameters
    ----------
    sigma : float
        Noise multiplier: the standard deviation of the noise over the radius of the rows; 0 gives
        ``inf``. Rows that are at most 1 apart are in a ball of radius 1/2.
    delta : float
        Target δ in (0, 1).
    n_features, n_projections : int
        U is n_features × n_projections.
    sampling_rate : float, default=1.0
        Probability, or fraction, with which a record is sampled in a step.
    n_steps : int, default=1
        Number of releases.
    method : {"pld", "rdp", "bernstein", "clt"}, default="pld"
        ``"pld"`` and ``"rdp"`` average over the exact distribution of the directions.
        ``"bernstein"`` and ``"clt"`` reproduce Table 4 of [1]_, for comparison: a bound on H that
        holds with probability 1 - δ/2 is charged once for all steps, and Rényi moments are
        converted as in Proposition 1. As in that table, the variance term of ``"bernstein"``
        counts the directions twice, and so exceeds that of Lemma 2 (`sensitivity_bound`).
        ``"clt"`` is an approximation, no bound, and warns.
    orthogonal : bool, default=False
        True: Haar-orthonormal blocks of directions (``"pld"``, ``"rdp"`` only). False: iid ones.
    relation : {"zero_out", "replace_one"}, default="zero_out"
        Neighbouring relation.
    sampling : {"poisson", "fixed"}, default="poisson"
        Independent coins, or a fixed number of rows without replacement (``"replace_one"`` only).

    Returns
    -------
    float

    References
    ----------
    .. [1] Rakotomamonjy & Ralaivola, "Differentially Private Sliced Wasserstein Distance",
       ICML 2021.

    Examples
    --------
    >>> eps = sliced_gaussian_epsilon(
    ...     0.65, 1e-5, n_features=784, n_projections=1000, sampling_rate=1 / 600, n_steps=60_000
    ... )
    >>> 9.5 < eps < 10
    True
    """
    delta = check_delta(delta)
    check_number("sigma", sigma, zero=True, most=math.inf)
    setting = n_features, n_projections, sampling_rate, n_steps, orthogonal, relation, sampling
    return _price_slices(method, delta, *setting)[1](float(sigma))


def calibrate_sliced_gaussian(
    epsilon: float,
    delta: float,
    *,
    n_features: int,
    n_projections: int,
    sampling_rate: float = 1.0,
    n_steps: int = 1,
    method: str = "pld",
    orthogonal: bool = False,
    relation: str = "zero_out",
    sampling: str = "poisson",
) -> float:
    """Return the smallest noise of `n_steps` sliced Gaussian releases within (ε, δ).

    Parameters
    ----------
    epsilon : float
        The budget; ``inf`` gives 0.
    delta, n_features, n_projections, sampling_rate, n_steps, method, orthogonal, relation, sampling
        As in `sliced_gaussian_epsilon`, by which the result costs at most `epsilon`.

    Returns
    -------
    float
        The noise multiplier: the standard deviation of the noise over the radius of the rows.

    Examples
    --------
    >>> sigma = calibrate_sliced_gaussian(1.0, 1e-5, n_features=64, n_projections=32)
    >>> 2.5 < sigma < 3.0
    True
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    setting = n_features, n_projections, sampling_rate, n_steps, orthogonal, relation, sampling
    make_event, epsilon_of = _price_slices(method, delta, *setting)
    guess = noise_unit(GaussianDpEvent(1.0), relation) * math.sqrt(n_projections / n_features)
    if method in ("pld", "rdp"):
        terms = {"accountant": method, "relation": relation}
        return calibrate_noise(make_event, epsilon, delta, guess=guess, **terms)
    return 0.0 if math.isinf(epsilon) else calibrate(epsilon_of, epsilon, guess=guess)


def _price_slices(
    method: str,
    delta: float,
    n_features: int,
    n_projections: int,
    sampling_rate: float,
    n_steps: int,
    orthogonal: bool,
    relation: str,
    sampling: str,
) -> tuple[Callable[[float], DpEvent], Callable[[float], float]]:
    """Check the arguments; return the event, and ε, as functions of the noise multiplier."""
    n_features, n_projections = check_shape(n_features, n_projections)
    check_number("sampling_rate", sampling_rate)
    if sampling_rate > 1:
        raise ValueError(f"sampling_rate must be in (0, 1]; got {sampling_rate}.")
    check_number("n_steps", n_steps, whole=True)
    flag("orthogonal", orthogonal)
    check_choice("sampling", sampling, ("poisson", "fixed"))

    def repeat(event: DpEvent) -> DpEvent:
        if sampling_rate < 1 and sampling == "poisson":
            event = PoissonSampledDpEvent(sampling_rate, event)
        elif sampling_rate < 1:
            # The sizes whose share is exactly this float: near ones may be less, or none at all.
            share = Fraction(sampling_rate)
            event = SampledWithoutReplacementDpEvent(share.denominator, share.numerator, event)
        return SelfComposedDpEvent(event, int(n_steps))

    def make_event(sigma: float) -> DpEvent:
        return repeat(SlicedGaussianDpEvent(sigma, n_features, n_projections, bool(orthogonal)))

    methods = ["pld", "rdp", "bernstein", "clt"]
    check_choice("method", method, methods)
    if orthogonal and method in ("bernstein", "clt"):
        raise ValueError(f"method={method!r} needs iid directions; set orthogonal=False.")
    # Computed once, not at each σ, since "clt" warns.
    if method == "bernstein":
        bound = table4_bound(n_features, n_projections, delta / 2)
    elif method == "clt":
        bound = sensitivity_bound(n_features, n_projections, delta / 2, kind="clt")

    def epsilon_of(sigma: float) -> float:
        if sigma == 0:
            return math.inf
        if method in ("pld", "rdp"):
            event = [make_event(sigma)]
            return float(ledger_epsilon(event, delta, accountant=method, relation=relation))
        # With one direction in one dimension H is 1, and sampled moments are those of the paper.
        event = SlicedGaussianDpEvent(sigma / math.sqrt(bound), 1, 1)
        rdp = find_rdp(repeat(event), relation)
        # The conversion from Rényi moments to ε of the paper, which is looser than the
        # accountant's.
        return float(np.min(rdp + math.log(2 / delta) / (ORDERS - 1)))

    return make_event, epsilon_of


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
