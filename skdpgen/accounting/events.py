# SPDX-License-Identifier: BSD-3-Clause
"""Events of differential privacy: those of dp-accounting, and others that it lacks.

An event describes one release, and its meaning never changes. Its noise multiplier follows the
convention of dp-accounting: the noise over the largest norm C of one record's contribution. If the
record is replaced, the release changes by up to 2C: under ``replace_one`` an event of multiplier m
has the noise m·Δ/2, with Δ the sensitivity, and under ``zero_out`` m·Δ. `over_sensitivity` alone
converts, for accountants and mechanisms. Where the sensitivity is less than 2C, as √2·C for counts,
Δ/2 stands for C; for a sampled event Δ is 2C, since a sampled record is also compared with its
absence. `DiameterGaussianDpEvent` is for releases that are not sums over records.

dp-accounting 0.6 itself prices events in this way

- by its ``PLDAccountant``: Gaussian noise, of Poisson samples or of all records, under each of its
  relations; Laplace noise under all but REPLACE_ONE, where it is refused; randomised response, but
  once for any number of repetitions. It refuses samples of a fixed size, and private selection.
- by its ``RdpAccountant``: Gaussian and Laplace noise under all relations but REPLACE_ONE. There it
  takes multipliers for those over the *sensitivity*, and so states half of the ε of Laplace noise,
  and about that of Gaussian noise of all records, or of samples of a fixed size, and of private
  selection. It refuses Poisson samples there.
"""

import math
from collections.abc import Callable, Iterable, Mapping
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


@attrs.frozen
class SlicedGaussianDpEvent(dp_accounting.DpEvent):
    """Release of XU + V, where each record has a row z of X; U is fresh and independent of X.

    U is public, and V is Gaussian noise.

    Attributes
    ----------
    noise_multiplier : float
        The standard deviation of V's entries over the rows' radius *before* the projection. The
        largest change z of a row is the radius, or twice that under ``replace_one``.
    n_features, n_projections : int
        U is n_features × n_projections.
    orthogonal : bool, default=False
        True: U stacks Haar-distributed orthonormal blocks. False: iid uniform unit columns.
    n_classes : int, default=1
        Number of classes. If above one, XU is released for each class, with zeros for rows of
        other classes; so under ``replace_one`` a record can change one row of each of two classes.
    beside : float, default=0.0
        Squared sensitivity, relative to ‖z‖², of another release from the same sample: a vector
        that a record changes by at most √beside·‖z‖, with the same noise. The vector may depend on
        U and on XU + V. Given U, both together are a Gaussian release of squared sensitivity
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
        """Increment of H / ‖z‖² for the difference of two rounded rows; see `over_sensitivity`.

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
    the event is equivalent to a `GaussianDpEvent` with that noise. It differs from one for samples
    under ``replace_one``, where a `GaussianDpEvent` says how far two of them are from the value
    without the record.

    Attributes
    ----------
    noise_multiplier : float
        Standard deviation of the noise over the diameter, under both relations.
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
        Standard deviation of the noise over the largest L2 norm of one record's counts; as for a
        `GaussianDpEvent`.
    delta : float
        δ', the probability that a value of one record alone exceeds the threshold.
    """

    noise_multiplier: float
    delta: float


@attrs.frozen
class DegradedGaussianDpEvent(GaussianDpEvent):
    """Gaussian release made of a released one, by independent noise on top; the noise is of both.

    Whoever has the first release, whose digest is the first of its own, learns nothing more: it
    counts for others only. See `compose`.
    """

    noise_multiplier: float


def gaussian_event(noise_multiplier: float, threshold_delta: float | None = None) -> DpEvent:
    """Return the event of a Gaussian release, plain or by a threshold of some δ'.

    A multiplier of 0 is a release without noise, which has no privacy.
    """
    # Negated so that NaN is no noise, which costs ε = inf.
    if not noise_multiplier > 0:
        return NonPrivateDpEvent()
    if threshold_delta is None:
        return GaussianDpEvent(noise_multiplier)
    return ThresholdDpEvent(noise_multiplier, threshold_delta)


def noise_unit(base: DpEvent, relation: str) -> float:
    """Return the sensitivity, in units of what the noise multiplier of an event is relative to."""
    is_over_sensitivity = relation == "zero_out" or isinstance(base, DiameterGaussianDpEvent)
    return 1.0 if is_over_sensitivity else 2.0


def over_sensitivity(event: DpEvent, relation: str) -> DpEvent:
    """Return an event with noise multipliers over the sensitivity under a relation.

    Accountants price this event, and mechanisms draw its noise.

    Examples
    --------
    >>> from dp_accounting import GaussianDpEvent
    >>> over_sensitivity(GaussianDpEvent(3.0), "replace_one")
    GaussianDpEvent(noise_multiplier=1.5)
    """
    return scale_noise(event, lambda base: 1 / noise_unit(base, relation))


def scale_noise(event: DpEvent, find_factor: Callable[[DpEvent], float]) -> DpEvent:
    """Return an event with each noise multiplier times a factor of its unsampled event."""
    if isinstance(event, ComposedDpEvent):
        return ComposedDpEvent(tuple(scale_noise(one, find_factor) for one in event.events))
    if hasattr(event, "event"):
        return attrs.evolve(event, event=scale_noise(event.event, find_factor))
    if not hasattr(event, "noise_multiplier"):
        return event
    return attrs.evolve(event, noise_multiplier=find_factor(event) * event.noise_multiplier)


def plain_multiplier(event: DpEvent) -> float:
    """Return the noise multiplier of an unsampled Gaussian release; 0 for no noise."""
    if isinstance(event, NonPrivateDpEvent):
        return 0.0
    if not isinstance(event, (GaussianDpEvent, ThresholdDpEvent)):
        raise PlanError(f"{event} is not an unsampled Gaussian release.")
    return event.noise_multiplier


def step_std(event: DpEvent, sensitivity: float, relation: str) -> float:
    """Return the scale of the Gaussian or Laplace noise of one step of a release; 0 for no noise.

    The sensitivity is that of the step under the relation and the privacy unit.
    """
    base = split_sampling(split_repetition(over_sensitivity(event, relation))[0])[0]
    return sensitivity * getattr(base, "noise_multiplier", 0.0)


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
    """Split a leaf event into its base event, sampling rate and sampling scheme, or ``"none"``."""
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


def reveals_nothing(event: DpEvent) -> bool:
    """Return whether releases are independent of the records, as with infinite noise."""
    if isinstance(event, ComposedDpEvent | SelfComposedDpEvent | NoOpDpEvent):
        return all(map(reveals_nothing, flatten([event])))
    if isinstance(event, RepeatAndSelectDpEvent):
        return reveals_nothing(event.event)
    base, rate, _ = split_sampling(event)
    return rate == 0 or getattr(base, "noise_multiplier", 0.0) == math.inf
