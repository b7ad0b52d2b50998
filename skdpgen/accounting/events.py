# SPDX-License-Identifier: BSD-3-Clause
"""What happened to private rows: dp-accounting's events, and those that it lacks.

An event says what was done and never changes its meaning. A noise multiplier is the noise's
standard deviation over the sensitivity *under the neighbouring relation in force*. For a sampled
event under ``replace_one`` that is twice the radius, the largest norm of what one record adds: a
sampled record is also compared with its absence, and twice the radius can exceed the diameter.
Where a release is no sum over records, `DiameterGaussianDpEvent` says what is known instead.
"""

import math

import attrs
import dp_accounting
from dp_accounting import (
    ComposedDpEvent,
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
from .strict_json import ANY, FLAG, Member, check_members, number, whole

# Beyond this many repetitions pricing takes forever.
_MAX_COUNT = 10**7
# Least standard deviation of a share of noise, in units of the grid.
LEAST_SHARE = 16.0


@attrs.frozen
class SlicedGaussianDpEvent(dp_accounting.DpEvent):
    """One record's row z of XU + V is released; U is fresh, public and independent of X.

    Attributes
    ----------
    noise_multiplier : float
        σ / ‖z‖: the standard deviation of V's entries over the largest change of a row *before*
        the projection: the rows' radius, or twice that under ``replace_one``.
    n_features, n_projections : int
        U is n_features × n_projections.
    orthogonal : bool
        Whether U stacks Haar-distributed orthonormal blocks (True) or iid uniform unit columns.
    n_classes : int
        With more than one, XU is released for each class, with zeros for rows of other classes;
        so under ``replace_one`` a record can change one row of each of two classes.
    beside : float
        What else is released of the same sample: a vector that a record changes by at most
        √beside·‖z‖ (in the units of `noise_multiplier`: twice what it adds, under
        ``replace_one``), with the same noise. It may follow from U and from XU + V. Given U, both
        together are a Gaussian release of squared sensitivity H + beside·‖z‖², since a Gaussian
        mechanism looks the same in all directions, which may be chosen one after the other. Not
        with several classes.
    """

    noise_multiplier: float
    n_features: int
    n_projections: int
    orthogonal: bool = False
    n_classes: int = 1
    beside: float = 0.0

    @property
    def rounding(self):
        """What is added to H / ‖z‖² where two rows are compared that were both rounded.

        A projected row is shortened by m = 1e-5 and rounded towards zero to a grid, of a step of
        at most 2^-20 of the rows' radius or 2^-39 of the noise. So it becomes no longer, which is
        all that matters where it is compared with none. The difference of two of them can grow,
        by less than a step a coordinate: with g the step over ‖z‖, twice the radius, it is at most
        (1-m)√H + g√k. Its square is at most H + g²k / (1 - (1-m)²), since
        (x + y)² ≤ (1+r)x² + (1+1/r)y². A hundredth more covers the rounding of products.
        """
        step = max(2.0**-21, 2.0**-39 * self.noise_multiplier)
        return 1.01 * self.n_projections * step**2 / (1 - (1 - 1e-5) ** 2)


@attrs.frozen
class DiameterGaussianDpEvent(dp_accounting.DpEvent):
    """A function of the records that joined is released, any two of whose values are close.

    Nothing else is known of the function: it need not be a sum over records. So a sample without
    a record, with it, and with another in its place give three values, no two of which are further
    apart than the diameter of the set that values lie in. Where all records join, and under
    ``zero_out``, only two of them are compared, and it is a `GaussianDpEvent`. It differs from one
    where samples are taken under ``replace_one``, since the multiplier of that is relative to
    twice the distance from the value without the record.

    Attributes
    ----------
    noise_multiplier : float
        The standard deviation of the noise over the diameter.
    """

    noise_multiplier: float


@attrs.frozen
class ThresholdDpEvent(dp_accounting.DpEvent):
    """Noisy counts of what records hold are released, of those things that pass a threshold.

    What one record alone holds fails the threshold, independently of all other noise and given all
    that was released before, with probability 1 - δ' at least. If it does, this is a Gaussian
    release G of the counts of what others hold, which is all that the neighbour shows. So its law
    M is at least (1 - δ')·G and within δ' of it: M(S) ≤ G(S) + δ', and G(S) ≤ M(S) / (1 - δ').
    Hence, whatever is composed with it, ε(δ) of the Gaussian release becomes
    ε(δ - δ') - log(1 - δ'); for several thresholds both sums add up.

    Attributes
    ----------
    noise_multiplier : float
        The standard deviation of the noise over the largest change of the counts.
    delta : float
        δ'.
    """

    noise_multiplier: float
    delta: float


@attrs.frozen
class SharedGaussianDpEvent(dp_accounting.DpEvent):
    """A Gaussian release of whole numbers, to which several clients add a share of the noise each.

    At least K - D of K clients stay, and at most A of them disclose their noise. So the shares of
    at least m = K - D - A clients are secret. Each is round(G_i), G_i ~ N(0, s²), in
    units of the grid, with m·s² ≥ σ². All others add known noise, or
    more of it, which is post-processing.

    A sum N of rounded Gaussians is no rounded Gaussian. But let N* be the rounded sum of all G_i
    and of m - 1 numbers that are uniform on [-1/2, 1/2]. For a whole number S, S + N* is
    round(S + ΣG_i + ΣU_i): a post-processing of the Gaussian mechanism, whose guarantee it has. And
    both laws are nearly the same. With μ_k the law of a sum of k such uniform numbers, and φ_v the
    density of N(0, v), P(N* = n) = ∫ φ_{ms²}(n - w) dμ_m(w). Of one share, P(round(G) = n) is the
    same integral, with m = 1. Going from k shares to one more, given w and u,

        Σ_j φ_{ks²}(j - w) φ_{s²}(n - j - u) = φ_{(k+1)s²}(n - w - u) · Σ_j φ_v(j - x),

    where v = s²k/(k+1), and x follows from n, w and u. By Poisson's summation formula the last sum
    is 1 + 2 Σ_j exp(-2π²v j²) cos(2πjx), j ≥ 1, which is within 1 ± θ_k. So P(N = n) is within
    Π_k (1 ± θ_k), and so within e^±τ, of P(N* = n): see `sum_divergence`. Of d numbers, ε(δ)
    becomes 2dτ + ε(e^-dτ δ). Shares have s ≥ 16 (`LEAST_SHARE`), by which τ < 10^-1000, whatever m
    is: no double can tell the price from that of a `GaussianDpEvent`, which is what is charged.

    Attributes
    ----------
    noise_multiplier : float
        σ, the standard deviation of the noise of m shares, over the sensitivity.
    n_clients, n_dropouts, n_colluding : int
        K, D and A.

    References
    ----------
    After the sums of discrete Gaussians of Kairouz, Liu & Steinke, "The Distributed Discrete
    Gaussian Mechanism for Federated Learning with Secure Aggregation", ICML 2021, Theorem 1.
    """

    noise_multiplier: float
    n_clients: int
    n_dropouts: int
    n_colluding: int

    def __attrs_post_init__(self):
        check_clients(self.n_clients, self.n_dropouts, self.n_colluding)


_KNOWN = {
    cls.__name__: cls
    for cls in (
        ComposedDpEvent,
        DiameterGaussianDpEvent,
        GaussianDpEvent,
        LaplaceDpEvent,
        NoOpDpEvent,
        NonPrivateDpEvent,
        PoissonSampledDpEvent,
        RandomizedResponseDpEvent,
        RepeatAndSelectDpEvent,
        SampledWithoutReplacementDpEvent,
        SelfComposedDpEvent,
        SharedGaussianDpEvent,
        SlicedGaussianDpEvent,
        ThresholdDpEvent,
    )
}

# What members of events may be, by their names. No noise at all has a price, which is infinite;
# infinite noise would be an event that is none.
_RATE = number("a number in (0, 1]", lambda given: 0 < given <= 1)
_MEMBERS = {
    "noise_multiplier": number(
        "0 or a number from 1e-9 to 1e100", lambda given: given == 0 or 1e-9 <= given <= 1e100
    ),
    "noise_parameter": number("a number in [0, 1]", lambda given: 0 <= given <= 1),
    "num_buckets": whole(),
    "sampling_probability": _RATE,
    "source_dataset_size": whole(),
    "sample_size": whole(),
    "count": whole(most=_MAX_COUNT),
    "n_features": whole(),
    "n_projections": whole(),
    "orthogonal": FLAG,
    "n_classes": whole(),
    "beside": number("a number of at least 0", lambda given: given >= 0),
    "delta": number("a number in [0, 1)", lambda given: 0 <= given < 1),
    "n_clients": whole(),
    "n_dropouts": whole(least=0),
    "n_colluding": whole(least=0),
    "mean": number("a number of at least 1", lambda given: given >= 1),
    "shape": number("a number of at least 0", lambda given: given >= 0),
    "event": ANY,
    "events": Member("a list", lambda given: type(given) is list),
}


def check_clients(n_clients, n_dropouts, n_colluding):
    """Refuse numbers of clients that leave none whose noise is secret."""
    counts = n_clients, n_dropouts, n_colluding
    if not all(type(n) is int and n >= 0 for n in counts) or n_clients <= n_dropouts + n_colluding:
        raise ValueError(
            "n_clients, n_dropouts and n_colluding must be whole numbers that leave at least one "
            f"client which neither drops out nor colludes; got {', '.join(map(repr, counts))}."
        )


def gaussian_event(noise_multiplier, threshold_delta=None):
    """Return the event of a Gaussian release, of all or by a threshold; no noise is no privacy."""
    if not noise_multiplier > 0:
        return NonPrivateDpEvent()
    if threshold_delta is None:
        return GaussianDpEvent(noise_multiplier)
    return ThresholdDpEvent(noise_multiplier, threshold_delta)


def plain_multiplier(event):
    """Return the noise multiplier of an unsampled Gaussian release; 0 for no noise."""
    if isinstance(event, NonPrivateDpEvent):
        return 0.0
    if not isinstance(event, (GaussianDpEvent, SharedGaussianDpEvent, ThresholdDpEvent)):
        raise PlanError(f"{event} is no plain Gaussian release.")
    return event.noise_multiplier


def step_multiplier(event):
    """Return the noise multiplier of a step of a release; 0 for no noise."""
    base = split_sampling(split_repetition(event)[0])[0]
    return 0.0 if isinstance(base, NonPrivateDpEvent) else base.noise_multiplier


def pure_epsilon(event):
    """Return the ε that a release has at δ = 0, or None for events of which none is known.

    Laplace noise of scale b on vectors that differ by at most Δ in L1 norm: Δ / b, since each
    coordinate's densities differ by a factor of at most exp(|difference| / b). Randomised
    response over k labels, uniform with probability p: the largest ratio of two probabilities of
    one answer, (1 - p + p/k) / (p/k).
    """
    if isinstance(event, LaplaceDpEvent):
        return math.inf if event.noise_multiplier == 0 else 1 / event.noise_multiplier
    if isinstance(event, RandomizedResponseDpEvent):
        p, k = event.noise_parameter, event.num_buckets
        if k == 1:
            return 0.0
        return math.inf if p == 0 else math.log1p(k * (1 - p) / p)
    return None


def is_pure(events):
    """Whether the ε of all releases holds at δ = 0."""
    return all(pure_epsilon(event) is not None for event in flatten(events))


def threshold_delta(events):
    """Return the sum of the δ' of all releases by a threshold."""
    return sum(
        count * event.delta
        for event, count in flatten(events).items()
        if isinstance(event, ThresholdDpEvent)
    )


def flatten(events):
    """Undo compositions: return a dict from each leaf event to how often it happened.

    What costs as much as another event is given as that: see `SharedGaussianDpEvent`.
    """
    counts = {}

    def visit(event, count):
        if isinstance(event, ComposedDpEvent):
            for part in event.events:
                visit(part, count)
        elif isinstance(event, SelfComposedDpEvent):
            if type(event.count) is not int or not 0 <= event.count <= _MAX_COUNT:
                raise ValueError(f"An event cannot happen {event.count!r} times.")
            visit(event.event, count * event.count)
        elif not isinstance(event, RepeatAndSelectDpEvent) and isinstance(
            getattr(event, "event", None), (ComposedDpEvent, SelfComposedDpEvent)
        ):
            raise dp_accounting.UnsupportedEventError(
                "Several releases from one sample are one event: stack their multipliers into it."
            )
        elif isinstance(event, SharedGaussianDpEvent):
            visit(GaussianDpEvent(event.noise_multiplier), count)
        elif not isinstance(event, NoOpDpEvent) and count > 0:
            counts[event] = counts.get(event, 0) + count

    for event in events:
        visit(event, 1)
    return counts


def repeat(event, count):
    """Return the event of `count` times `event`."""
    return event if count == 1 else SelfComposedDpEvent(event, int(count))


def split_repetition(event):
    """Inverse of `repeat`: return the event that is repeated, and how often."""
    return (event.event, event.count) if isinstance(event, SelfComposedDpEvent) else (event, 1)


def split_sampling(event):
    """Split a leaf event into its base, its sampling rate, and "poisson", "fixed" or "none"."""
    if isinstance(event, PoissonSampledDpEvent):
        base, rate, sampling = event.event, event.sampling_probability, "poisson"
    elif isinstance(event, SampledWithoutReplacementDpEvent):
        base, sampling = event.event, "fixed"
        sizes = event.sample_size, event.source_dataset_size
        if not all(type(size) is int for size in sizes) or not 0 <= sizes[0] <= sizes[1] > 0:
            raise ValueError("A sample's size is a whole number, at most that of its source.")
        rate = event.sample_size / event.source_dataset_size
    else:
        base, rate, sampling = event, 1.0, "none"
    return base, rate, "none" if rate == 1 else sampling


def compares_any_two(base, relation):
    """Whether samples without a record, with it and with another are compared pair by pair."""
    return relation == "replace_one" and isinstance(base, DiameterGaussianDpEvent)


def total_gaussian_multiplier(leaves):
    """Pool the unsampled Gaussians among `leaves`: (Σ s⁻²)^(-1/2), exact and adaptive."""
    precision = sum(
        count / event.noise_multiplier**2
        for event, count in leaves.items()
        if isinstance(event, GaussianDpEvent)
    )
    return math.inf if precision == 0 else precision**-0.5


def gaussian_mu(events):
    """Return μ of Gaussian differential privacy, which is exact, or None if it is not known.

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


def concentrated_rho(events):
    """Return ρ of zero-concentrated differential privacy, or None if it is not known.

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


def event_to_dict(event):
    """Return `event` as plain data, ready for JSON."""
    name = type(event).__name__
    if _KNOWN.get(name) is not type(event):
        raise TypeError(f"Events of type {name} cannot be written down.")
    fields = {}
    for field in (f.name for f in attrs.fields(type(event))):
        value = getattr(event, field)
        if isinstance(value, dp_accounting.DpEvent):
            value = event_to_dict(value)
        elif isinstance(value, (list, tuple)):
            value = [event_to_dict(part) for part in value]
        fields[field] = value
    return {"type": name, **fields}


def event_from_dict(data):
    """Inverse of `event_to_dict`; knows a fixed list of events and imports nothing by name.

    Raises
    ------
    ValueError
        If a member is missing, unknown, of another type or out of its range.
    """
    if not isinstance(data, dict):
        raise ValueError(f"An event must be an object of JSON; got {data!r:.60}.")
    fields = dict(data)
    name = fields.pop("type", None)
    if not isinstance(name, str) or name not in _KNOWN:
        raise ValueError(f"Unknown event {name!r:.60}; known are {sorted(_KNOWN)}.")
    required = {field.name: _MEMBERS[field.name] for field in attrs.fields(_KNOWN[name])}
    check_members(fields, name, required)
    if "event" in fields:
        fields["event"] = event_from_dict(fields["event"])
    if "events" in fields:
        fields["events"] = [event_from_dict(part) for part in fields["events"]]
    return _KNOWN[name](**fields)


def touches_data(event):
    """Whether any part of an event reads records, whatever noise there is."""
    if isinstance(event, ComposedDpEvent):
        return any(map(touches_data, event.events))
    if hasattr(event, "event"):
        return touches_data(event.event)
    return not isinstance(event, NoOpDpEvent)
