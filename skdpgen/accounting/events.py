# SPDX-License-Identifier: BSD-3-Clause
"""Events of differential privacy: those of dp-accounting, and others that it lacks.

An event describes one release, and its meaning never changes. A noise multiplier is the standard
deviation of the noise over the sensitivity *under the neighbouring relation in force*. For a
sampled event under ``replace_one`` the sensitivity is twice the radius, the largest norm of one
record's contribution: a sampled record is also compared with its absence, and twice the radius can
exceed the diameter. `DiameterGaussianDpEvent` is for releases that are not sums over records.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import attrs
import dp_accounting
from dp_accounting import (
    ComposedDpEvent,
    DpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    RandomizedResponseDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
)
from dp_accounting.dp_event import RepeatAndSelectDpEvent

from ..exceptions import PlanError

# More repetitions would take too long to price.
MAX_COUNT = 10**7
# Least standard deviation of a share of noise, in units of the grid: by the proof in
# `SharedGaussianDpEvent` the divergence from a Gaussian is then below 10^-1000.
LEAST_SHARE = 16.0


@attrs.frozen
class SlicedGaussianDpEvent(dp_accounting.DpEvent):
    """Release of XU + V, where each record has a row z of X; U is fresh and independent of X.

    U is public, and V is Gaussian noise.

    Attributes
    ----------
    noise_multiplier : float
        σ / ‖z‖: the standard deviation of V's entries over the largest change of a row *before*
        the projection: the rows' radius, or twice that under ``replace_one``.
    n_features, n_projections : int
        U is n_features × n_projections.
    orthogonal : bool
        True: U stacks Haar-distributed orthonormal blocks. False: iid uniform unit columns.
    n_classes : int
        Number of classes. If above one, XU is released for each class, with zeros for rows of
        other classes; so under ``replace_one`` a record can change one row of each of two classes.
    beside : float
        Squared sensitivity, relative to ‖z‖², of another release from the same sample: a vector
        that a record changes by at most √beside·‖z‖ (in the units of `noise_multiplier`: twice its
        contribution, under ``replace_one``), with the same noise. The vector may depend on U and
        on XU + V. Given U, both together are a Gaussian release of squared sensitivity
        H + beside·‖z‖², since a Gaussian mechanism is isotropic, and its directions may be chosen
        adaptively. Must be 0 with several classes.
    """

    noise_multiplier: float
    n_features: int
    n_projections: int
    orthogonal: bool = False
    n_classes: int = 1
    beside: float = 0.0

    @property
    def rounding(self) -> float:
        """Increment of H / ‖z‖² for the difference of two rounded rows.

        A projected row is shortened by m = 1e-5 and rounded towards zero to a grid, of a step of
        at most 2^-20 of the rows' radius or 2^-39 of the noise. So its norm does not grow, which
        suffices where a row is compared with none. The difference of two rows can grow, by less
        than a step a coordinate: with g the step over ‖z‖, twice the radius, it is at most
        (1-m)√H + g√k. Its square is at most H + g²k / (1 - (1-m)²), since
        (x + y)² ≤ (1+r)x² + (1+1/r)y². A hundredth more covers the rounding of products.
        """
        step = max(2.0**-21, 2.0**-39 * self.noise_multiplier)
        return 1.01 * self.n_projections * step**2 / (1 - (1 - 1e-5) ** 2)


@attrs.frozen
class DiameterGaussianDpEvent(dp_accounting.DpEvent):
    """Gaussian release of a function of the sampled records whose range has a known diameter.

    The function need not be a sum over records. So a sample without a record, with it, and with
    another in its place give three values, no two of which are further apart than the diameter of
    the range. If all records are used, and under ``zero_out``, only two of them are compared, and
    the event is equivalent to a `GaussianDpEvent`. It differs from one for samples under
    ``replace_one``, since the multiplier of a `GaussianDpEvent` is then relative to twice the
    distance from the value without the record.

    Attributes
    ----------
    noise_multiplier : float
        Standard deviation of the noise over the diameter.
    """

    noise_multiplier: float


@attrs.frozen
class ThresholdDpEvent(dp_accounting.DpEvent):
    """Release of the values whose noisy counts exceed a threshold, with these counts.

    A value that one record alone has stays below the threshold with probability 1 - δ' at least,
    independently of all other noise and given all earlier releases. If it does, the release is a
    Gaussian release G of the counts of the other records' values, as for the neighbour. So its law
    M is at least (1 - δ')·G and within δ' of it: M(S) ≤ G(S) + δ', and G(S) ≤ M(S) / (1 - δ').
    Hence, under any composition, ε(δ) of the Gaussian release becomes ε(δ - δ') - log(1 - δ'); for
    several thresholds both sums add up.

    Attributes
    ----------
    noise_multiplier : float
        Standard deviation of the noise over the L2 sensitivity of the counts.
    delta : float
        δ', the probability that a value of one record alone exceeds the threshold.
    """

    noise_multiplier: float
    delta: float


@attrs.frozen
class SharedGaussianDpEvent(dp_accounting.DpEvent):
    """Gaussian release of whole numbers, to which each of several clients adds a share of noise.

    At least K - D of K clients stay, and at most A of these reveal their noise. So the shares of
    at least m = K - D - A clients are secret. Each is round(G_i), G_i ~ N(0, s²), in units of the
    grid, with m·s² ≥ σ². The contributions of other clients are known, or are more noise, which is
    post-processing.

    A sum N of rounded Gaussians is not a rounded Gaussian. Let N* be the rounded sum of all G_i
    and of m - 1 numbers that are uniform on [-1/2, 1/2]. For a whole number S, S + N* is
    round(S + ΣG_i + ΣU_i): a post-processing of the Gaussian mechanism, whose guarantee it has.
    Both laws are nearly the same. With μ_k the law of a sum of k such uniform numbers, and φ_v the
    density of N(0, v), P(N* = n) = ∫ φ_{ms²}(n - w) dμ_m(w). For one share, P(round(G) = n) is the
    same integral, with m = 1. From k shares to k + 1, given w and u,

        Σ_j φ_{ks²}(j - w) φ_{s²}(n - j - u) = φ_{(k+1)s²}(n - w - u) · Σ_j φ_v(j - x),

    where v = s²k/(k+1), and x follows from n, w and u. By Poisson's summation formula the last sum
    is 1 + 2 Σ_j exp(-2π²v j²) cos(2πjx), j ≥ 1, which is within 1 ± θ_k. So P(N = n) is within
    Π_k (1 ± θ_k), and so within e^±τ, of P(N* = n), τ = -Σ_k log(1 - θ_k). For d numbers, ε(δ)
    becomes 2dτ + ε(e^-dτ δ). Shares have s ≥ 16 (`LEAST_SHARE`), by which τ < 10^-1000 for any m:
    the cost equals that of a `GaussianDpEvent` to all digits of a double, and is charged as such.

    Attributes
    ----------
    noise_multiplier : float
        σ, the standard deviation of the noise of m shares, over the sensitivity.
    n_clients, n_dropouts, n_colluding : int
        Numbers of clients K, of dropouts D and of colluding clients A.

    References
    ----------
    The proof follows the sums of discrete Gaussians of Kairouz, Liu & Steinke, "The Distributed
    Discrete Gaussian Mechanism for Federated Learning with Secure Aggregation", ICML 2021,
    Theorem 1.
    """

    noise_multiplier: float
    n_clients: int
    n_dropouts: int
    n_colluding: int

    def __attrs_post_init__(self) -> None:
        check_clients(self.n_clients, self.n_dropouts, self.n_colluding)


def check_clients(n_clients: int, n_dropouts: int, n_colluding: int) -> None:
    """Raise ValueError unless at least one client neither drops out nor colludes."""
    counts = n_clients, n_dropouts, n_colluding
    if not all(type(n) is int and n >= 0 for n in counts) or n_clients <= n_dropouts + n_colluding:
        raise ValueError(
            "n_clients, n_dropouts and n_colluding must be whole numbers that leave at least one "
            f"client which neither drops out nor colludes; got {', '.join(map(repr, counts))}."
        )


def gaussian_event(noise_multiplier: float, threshold_delta: float | None = None) -> DpEvent:
    """Return the event of a Gaussian release, plain or by a threshold.

    Parameters
    ----------
    noise_multiplier : float
        0 for a release without noise, which has no privacy.
    threshold_delta : float, default=None
        δ' of a `ThresholdDpEvent`. None: no threshold.

    Returns
    -------
    DpEvent
    """
    # Negated so that NaN is no noise, which costs ε = inf.
    if not noise_multiplier > 0:
        return NonPrivateDpEvent()
    if threshold_delta is None:
        return GaussianDpEvent(noise_multiplier)
    return ThresholdDpEvent(noise_multiplier, threshold_delta)


def plain_multiplier(event: DpEvent) -> float:
    """Return the noise multiplier of an unsampled Gaussian release; 0 for no noise."""
    if isinstance(event, NonPrivateDpEvent):
        return 0.0
    if not isinstance(event, (GaussianDpEvent, SharedGaussianDpEvent, ThresholdDpEvent)):
        raise PlanError(f"{event} is not an unsampled Gaussian release.")
    return event.noise_multiplier


def step_multiplier(event: DpEvent) -> float:
    """Return the noise multiplier of one step of a release; 0 for no noise."""
    base = split_sampling(split_repetition(event)[0])[0]
    return 0.0 if isinstance(base, NonPrivateDpEvent) else base.noise_multiplier


def pure_epsilon(event: DpEvent) -> float | None:
    """Return the ε of a release at δ = 0, or None if none is known.

    Laplace noise of scale b on vectors that differ by at most Δ in L1 norm has ε = Δ / b, since
    each coordinate's densities differ by a factor of at most exp(|difference| / b). Randomised
    response over k labels, uniform with probability p, has e^ε = (1 - p + p/k) / (p/k), the
    largest ratio of two probabilities of one answer.
    """
    if isinstance(event, LaplaceDpEvent):
        return math.inf if event.noise_multiplier == 0 else 1 / event.noise_multiplier
    if isinstance(event, RandomizedResponseDpEvent):
        p, k = event.noise_parameter, event.num_buckets
        # One label reveals nothing.
        if k == 1:
            return 0.0
        return math.inf if p == 0 else math.log1p(k * (1 - p) / p)
    return None


def is_pure(events: Iterable[DpEvent]) -> bool:
    """Return whether the ε of all releases holds at δ = 0."""
    return all(pure_epsilon(event) is not None for event in flatten(events))


def threshold_delta(events: Iterable[DpEvent]) -> float:
    """Return the sum of δ' over all releases by a threshold."""
    return sum(
        count * event.delta
        for event, count in flatten(events).items()
        if isinstance(event, ThresholdDpEvent)
    )


def check_events(events: Any) -> list[DpEvent]:
    """Return events as a list; raise TypeError if they are anything else."""
    # A string is iterable, and would be reported letter by letter.
    is_list = isinstance(events, Iterable) and not isinstance(events, str | bytes | Mapping)
    listed = list(events) if is_list else [events]
    if wrong := [part for part in listed if not (is_list and isinstance(part, DpEvent))]:
        raise TypeError(
            "events must be a list of events of dp_accounting, as [GaussianDpEvent(4.0)]; got "
            f"{type(wrong[0]).__name__}{' in it' * is_list}."
        )
    return listed


def flatten(events: Iterable[DpEvent]) -> dict[DpEvent, int]:
    """Undo compositions: return the number of occurrences of each leaf event.

    A `SharedGaussianDpEvent` is counted as the Gaussian event of the same cost.

    Parameters
    ----------
    events : iterable of DpEvent

    Returns
    -------
    dict of DpEvent to int

    Examples
    --------
    >>> from dp_accounting import GaussianDpEvent, SelfComposedDpEvent
    >>> flatten([GaussianDpEvent(2.0), SelfComposedDpEvent(GaussianDpEvent(2.0), 3)])
    {GaussianDpEvent(noise_multiplier=2.0): 4}
    """
    counts: dict[DpEvent, int] = {}

    def visit(event: DpEvent, count: int) -> None:
        if isinstance(event, ComposedDpEvent):
            for part in event.events:
                visit(part, count)
        elif isinstance(event, SelfComposedDpEvent):
            if type(event.count) is not int or not 0 <= event.count <= MAX_COUNT:
                raise ValueError(
                    f"count must be a whole number of at most {MAX_COUNT:,}; got {event.count!r}."
                )
            visit(event.event, count * event.count)
        elif not isinstance(event, RepeatAndSelectDpEvent) and isinstance(
            getattr(event, "event", None), (ComposedDpEvent, SelfComposedDpEvent)
        ):
            # Both would read the same sample; composition takes them for independent samples.
            raise dp_accounting.UnsupportedEventError(
                "Several releases from one sample must be one event: combine their multipliers."
            )
        elif isinstance(event, SharedGaussianDpEvent):
            visit(GaussianDpEvent(event.noise_multiplier), count)
        elif not isinstance(event, NoOpDpEvent) and count > 0:
            try:
                counts[event] = counts.get(event, 0) + count
            except TypeError:
                error = f"Unsupported event: {event}, of which a parameter is no number or tuple."
                raise dp_accounting.UnsupportedEventError(error) from None

    for event in events:
        visit(event, 1)
    return counts


def repeat(event: DpEvent, count: int) -> DpEvent:
    """Return the event of `count` repetitions of `event`."""
    return event if count == 1 else SelfComposedDpEvent(event, int(count))


def split_repetition(event: DpEvent) -> tuple[DpEvent, int]:
    """Return the repeated event and the number of repetitions; inverse of `repeat`."""
    return (event.event, event.count) if isinstance(event, SelfComposedDpEvent) else (event, 1)


def split_sampling(event: DpEvent) -> tuple[DpEvent, float, str]:
    """Split a leaf event into its base event, sampling rate and sampling scheme.

    Returns
    -------
    base : DpEvent
    rate : float
    sampling : {"poisson", "fixed", "none"}
    """
    if isinstance(event, PoissonSampledDpEvent):
        base, rate, sampling = event.event, event.sampling_probability, "poisson"
    elif isinstance(event, SampledWithoutReplacementDpEvent):
        base, sampling = event.event, "fixed"
        sizes = event.sample_size, event.source_dataset_size
        if not all(type(size) is int for size in sizes) or not 0 <= sizes[0] <= sizes[1] > 0:
            raise ValueError("sample_size must be a whole number of at most source_dataset_size.")
        rate = event.sample_size / event.source_dataset_size
    else:
        base, rate, sampling = event, 1.0, "none"
    # A rate of 1 is no sampling, and gets the tighter price of unsampled events.
    return base, rate, "none" if rate == 1 else sampling


def compares_any_two(base: DpEvent, relation: str) -> bool:
    """Return whether a sample without a record, with it and with another differ pair by pair.

    Then any two of the three are neighbours; see `DiameterGaussianDpEvent`.
    """
    return relation == "replace_one" and isinstance(base, DiameterGaussianDpEvent)


def total_gaussian_multiplier(leaves: Mapping[DpEvent, int]) -> float:
    """Return the multiplier (Σ s⁻²)^(-1/2) of all unsampled Gaussians together.

    It is exact, also if releases are chosen adaptively.
    """
    # Precisions 1/s² of independent Gaussians add up.
    precision = sum(
        count / event.noise_multiplier**2
        for event, count in leaves.items()
        if isinstance(event, GaussianDpEvent)
    )
    return math.inf if precision == 0 else precision**-0.5


def gaussian_mu(events: Iterable[DpEvent]) -> float | None:
    """Return μ of Gaussian differential privacy, which is exact, or None if it is unknown.

    Unsampled Gaussian releases with multipliers s together have μ² = Σ s⁻² (Dong, Roth & Su 2022).
    """
    leaves = flatten(events)
    if any(isinstance(event, NonPrivateDpEvent) for event in leaves):
        return math.inf
    if not all(isinstance(event, GaussianDpEvent) for event in leaves):
        return None
    if any(event.noise_multiplier == 0 for event in leaves):
        return math.inf
    return 1 / total_gaussian_multiplier(leaves)


def concentrated_rho(events: Iterable[DpEvent]) -> float | None:
    """Return ρ of zero-concentrated differential privacy, or None if it is unknown.

    An unsampled Gaussian release with multiplier s has ρ = 1/(2s²), and one of pure ε has ε²/2 at
    most; they add up (Bun & Steinke 2016).
    """
    total = 0.0
    for event, count in flatten(events).items():
        epsilon = pure_epsilon(event)
        mu = gaussian_mu([event]) if epsilon is None else epsilon
        if mu is None:
            return None
        total += count * mu**2 / 2
    return total


def touches_data(event: DpEvent) -> bool:
    """Return whether any part of an event reads records, with or without noise."""
    if isinstance(event, ComposedDpEvent):
        return any(map(touches_data, event.events))
    if hasattr(event, "event"):
        return touches_data(event.event)
    return not isinstance(event, NoOpDpEvent)
