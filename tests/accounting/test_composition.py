"""Composition of unlike certificates: what it costs, and what the certificate of all says."""

import itertools
import json
import math
from dataclasses import fields, replace

import numpy as np
import pytest
from dp_accounting import (
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    NoOpDpEvent,
    PoissonSampledDpEvent,
    RandomizedResponseDpEvent,
    SelfComposedDpEvent,
    get_epsilon_gaussian,
)
from scipy import optimize, stats

from skdpgen.accounting.provenance import Provenance
from skdpgen.privacy import (
    Certificate,
    DegradedGaussianDpEvent,
    SlicedGaussianDpEvent,
    ThresholdDpEvent,
    compose,
    verify,
)

pytestmark = pytest.mark.filterwarnings("ignore")

RESPONSE = RandomizedResponseDpEvent(0.4, 3)
RESPONSE_EPSILON = math.log1p(3 * 0.6 / 0.4)


def make(*events, **options):
    options = {"relation": "replace_one"} | options
    return Certificate(events, tuple(f"release {i}" for i in range(len(events))), **options)


# Certificates that differ in each member, of events of each kind; without a digest each counts.
# Records are replaced, so that μ is 2 over a noise multiplier.
PARTS = {
    "Gaussian": make(
        GaussianDpEvent(8.0),
        delta=1e-6,
        assumptions=("a", "b"),
        sigma=2.0,
        n_records=100,
        provenance=Provenance("First", (("epsilon", "2"),), "0.1.0", "2026-01-02"),
        engine="dask",
    ),
    "other": make(GaussianDpEvent(12.0), delta=1e-5, assumptions=("c",)),
    "seeded": make(
        GaussianDpEvent(10.0),
        GaussianDpEvent(14.0),
        assumptions=("b",),
        reproducible=True,
        n_records=100,
        provenance=Provenance("Second", (), "0.2.0", "2026-03-01"),
        engine="spark",
    ),
    "Laplace": make(LaplaceDpEvent(4.0), delta=1e-7, local=True, n_records=90, sigma=1.0),
    "responses": make(SelfComposedDpEvent(RESPONSE, 2), reproducible=True),
    "threshold": make(ThresholdDpEvent(10.0, 1e-7), notes=("few rows",)),
    "sliced": make(SlicedGaussianDpEvent(6.0, 20, 10, True), delta=1e-4),
    "sampled": make(PoissonSampledDpEvent(0.1, GaussianDpEvent(4.0))),
    "nothing": make(NoOpDpEvent()),
    "none": make(NonPrivateDpEvent()),
}
PAIRS = [*itertools.combinations_with_replacement(PARTS, 2)]
MU = {"Gaussian": 1 / 4, "other": 1 / 6, "seeded": math.hypot(1 / 5, 1 / 7), "nothing": 0.0}
PURE = {"Laplace": 0.5, "responses": 2 * RESPONSE_EPSILON}
RHO = (
    {name: mu**2 / 2 for name, mu in MU.items()}
    | {"Laplace": 0.5**2 / 2, "responses": RESPONSE_EPSILON**2}
    | {"none": math.inf}
)
SEEDS = "the seeds of the fits are different: fits that share a seed share noise"
FIXED = "the number of fits and the terms of each were fixed before the first result was known"


def same(certificate):
    """All that a certificate says, but for the order of its parts."""
    said = {field.name: getattr(certificate, field.name) for field in fields(certificate)}
    parts = zip(certificate.releases, map(repr, certificate.events), strict=True)
    return said | {
        "events": sorted(parts),
        "releases": sorted(said["releases"]),
        "assumptions": set(said["assumptions"]),
        "engine": sorted((said["engine"] or "").split(" and ")),
        "provenance": said["provenance"]
        and (
            sorted(said["provenance"].estimator.split(" and ")),
            sorted(said["provenance"].version.split(" and ")),
            said["provenance"].parameters,
            said["provenance"].date,
        ),
    }


@pytest.mark.catches(
    "accounting.composition:join",
    "any(certificate.reproducible for certificate in certificates)",
    "all(certificate.reproducible for certificate in certificates)",
    param="Gaussian-seeded",
)
@pytest.mark.catches(
    "accounting.composition:join",
    "len({c.digest or i for i, c in enumerate(certificates) if c.reproducible}) > 1",
    "len({c.digest or i for i, c in enumerate(certificates) if c.reproducible}) > 2",
    param="seeded-responses",
)
@pytest.mark.catches(
    "accounting.composition:join",
    "max(certificate.delta for certificate in certificates)",
    "min(certificate.delta for certificate in certificates)",
    param="Gaussian-Laplace",
)
@pytest.mark.catches(
    "accounting.composition:join",
    "[assumption for c in certificates for assumption in c.assumptions]",
    "list(certificates[0].assumptions)",
    param="Gaussian-other",
)
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_each_member_of_a_composition(first, second):
    one, other = parts = PARTS[first], PARTS[second]
    both = compose(one, other)
    n_records = one.n_records if one.n_records == other.n_records else None
    assumptions = dict.fromkeys(one.assumptions + other.assumptions)
    engines = dict.fromkeys(part.engine for part in parts if part.engine)
    expected = {
        "events": one.events + other.events,
        "releases": one.releases + other.releases,
        "relation": "replace_one",
        "accountant": "pld",
        "delta": max(one.delta, other.delta),
        "assumptions": (
            *assumptions,
            *[SEEDS] * (one.reproducible and other.reproducible),
            *[FIXED] * (both.mu is None),
        ),
        "reproducible": one.reproducible or other.reproducible,
        # There is no one level of noise, nor is each record noised once.
        "sigma": None,
        "local": False,
        "notes": tuple(dict.fromkeys(one.notes + other.notes)),
        "digests": one.digests + other.digests,
        "n_records": n_records,
        "max_rows": None,
        "engine": " and ".join(engines) or None,
    }
    if one.provenance is None or other.provenance is None:
        expected["provenance"] = None
    else:
        names = {part.provenance.estimator: part.provenance.version for part in parts}
        date = max(part.provenance.date for part in parts)
        expected["provenance"] = Provenance(
            " and ".join(names), (), " and ".join(names.values()), date
        )
    assert {field.name for field in fields(Certificate)} == set(expected), "A member is not tried."
    for name, value in expected.items():
        assert getattr(both, name) == value, name
    assert both.reproducible == ("REPRODUCIBLE" in repr(both)) == ("NOT A PRIVATE" in str(both))
    if not any(isinstance(event, NoOpDpEvent) for event in both.events):
        assert Certificate.from_json(both.to_json()) == both
        assert verify(both.to_json()) == both.epsilon


@pytest.mark.catches(
    "accounting.events:concentrated_rho",
    "gaussian_mu([event]) if epsilon is None else epsilon",
    "gaussian_mu([event]) if epsilon is None else epsilon / math.sqrt(2)",
    param="Gaussian-Laplace",
)
@pytest.mark.catches(
    "accounting.events:concentrated_rho", "count * mu**2", "mu**2", param="Laplace-responses"
)
@pytest.mark.catches(
    "accounting.events:concentrated_rho", "return None", "continue", param="Gaussian-sampled"
)
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_readings_of_a_composition_in_closed_form(first, second):
    both, names = compose(PARTS[first], PARTS[second]), (first, second)
    if "none" in names:
        assert both.mu == math.inf
    else:
        mu = math.hypot(*(MU.get(name, math.nan) for name in names))
        assert both.mu == (None if math.isnan(mu) else pytest.approx(mu, rel=1e-12))
    rho = sum(RHO.get(name, math.nan) for name in names)
    assert both.rho == (None if math.isnan(rho) else pytest.approx(rho, rel=1e-12))


def laplace_losses(epsilon):
    """Losses of Laplace noise and their probabilities: two atoms, and a density between them."""
    edges = np.linspace(-epsilon, epsilon, 20_001)
    middles = (edges[1:] + edges[:-1]) / 2
    density = np.exp((middles - epsilon) / 2) / 4 * np.diff(edges)
    return np.r_[-epsilon, middles, epsilon], np.r_[math.exp(-epsilon) / 2, density, 0.5]


def response_losses():
    """Losses of two answers of three labels, of which 0.4 are drawn anew."""
    losses = np.r_[-1, 0, 1] * RESPONSE_EPSILON
    chances = np.r_[0.4 / 3, 0.4 / 3, 0.6 + 0.4 / 3]
    return np.add.outer(losses, losses).ravel(), np.outer(chances, chances).ravel()


PAIRS_OF_PURE = {"Laplace": laplace_losses(0.5), "responses": response_losses()}


def mixed_delta(epsilon, mu, pure):
    """Return the mean over pure losses of the profile of a Gaussian at what they leave of ε."""
    losses, chances = pure
    left = epsilon - losses
    gains = stats.norm.cdf(mu / 2 - left / mu) - np.exp(left) * stats.norm.cdf(-mu / 2 - left / mu)
    return chances @ gains


@pytest.mark.catches(
    "accounting.accountants:_Ledger.__init__",
    "self.pure_epsilon += count * pure",
    "self.pure_epsilon = max(self.pure_epsilon, count * pure)",
    param="Laplace-responses-1e-05",
)
@pytest.mark.catches(
    "accounting.accountants:_Ledger._find_least",
    "{**self.leaves, **self._pure}",
    "{**self.leaves}",
    param="Gaussian-Laplace-1e-05",
)
@pytest.mark.catches(
    "accounting.loss_distributions:_pure_profile",
    "1 / event.noise_multiplier",
    "0.5 / event.noise_multiplier",
    param="Gaussian-Laplace-1e-05",
)
@pytest.mark.parametrize("delta", [1e-9, 1e-5])
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_costs_of_a_composition_in_closed_form(first, second, delta):
    """Pure ε alone add up, beside Gaussians they are composed, and thresholds take δ away."""
    both, names = compose(PARTS[first], PARTS[second]), (first, second)
    n_thresholds = names.count("threshold")
    left = delta - 1e-7 * n_thresholds
    if "none" in names or (n_thresholds and left <= 0):
        assert both.epsilon_at(delta) == math.inf
        return
    beside = sum(PURE.get(name, 0.0) for name in names) - n_thresholds * math.log1p(-1e-7)
    mus = [{**MU, "threshold": 1 / 5}.get(name, 0.0) for name in names]
    mu = math.hypot(*mus)
    gaussian = get_epsilon_gaussian(1 / mu, left) if mu else 0.0
    found = both.epsilon_at(delta)
    pure = [PAIRS_OF_PURE[name] for name in names if name in PURE]
    if mu and pure and {"sliced", "sampled"}.isdisjoint(names):
        beside -= sum(PURE.get(name, 0.0) for name in names)
        exact = optimize.brentq(lambda e: mixed_delta(e, mu, *pure) - left, 0, 20, xtol=1e-12)
        assert exact + beside <= found <= (exact + beside) * (1 + 1e-4)
    elif {"sliced", "sampled"}.isdisjoint(names):
        assert found == pytest.approx(gaussian + beside, rel=1e-9)
    else:
        # The other parts cost something, and no more than on their own, at half of δ.
        alone = [PARTS[n].epsilon_at(left / 2) for n in names if n in ("sliced", "sampled")]
        rest = get_epsilon_gaussian(1 / mu, left / 2) if mu else 0.0
        assert gaussian < found <= sum(alone) + rest + beside + 1e-6


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_the_order_of_parts_says_nothing(first, second):
    one, other = PARTS[first], PARTS[second]
    here, there = compose(one, other), compose(other, one)
    assert same(here) == same(there)
    for delta in (1e-9, 1e-5, 1e-3):
        assert here.epsilon_at(delta) == pytest.approx(there.epsilon_at(delta), rel=1e-6)


@pytest.mark.catches(
    "accounting.composition:_join_names",
    'text.split(" and ")',
    "[text]",
    param="Gaussian-seeded-responses",
)
@pytest.mark.parametrize(
    "names", [*itertools.permutations(["Gaussian", "seeded", "responses"])], ids="-".join
)
def test_compositions_are_composed_as_their_parts_are(names):
    a, b, c = (PARTS[name] for name in names)
    for left, right in [
        (compose(compose(a, b), c), compose(a, b, c)),
        (compose(a, compose(b, c)), compose(a, b, c)),
        (compose(compose(a, b), a), compose(a, b, a)),
    ]:
        assert same(left) == same(right)
        assert left.epsilon == right.epsilon


@pytest.mark.parametrize("name", PARTS)
def test_a_composition_of_one_is_that_one(name):
    one = PARTS[name]
    alone = compose(one)
    provenance = one.provenance and replace(one.provenance, parameters=())
    assert alone == replace(one, local=False)
    assert (alone.provenance, alone.engine) == (provenance, one.engine)
    for delta in (1e-9, 1e-5):
        assert alone.epsilon_at(delta) == one.epsilon_at(delta)
    assert (alone.mu, alone.rho) == (one.mu, one.rho)


@pytest.mark.catches(
    "accounting.composition:join",
    "max(max_rows, default=None)",
    "max_rows[0] if max_rows else None",
    param="max_rows0",
)
@pytest.mark.parametrize("max_rows", [(2, 3), (3, 2), (1, 1), (5, 1, 2)])
def test_persons_of_different_numbers_of_rows(max_rows):
    """Each multiplier is relative to what a person moves with so many rows: it stays as it is."""
    parts = [make(GaussianDpEvent(4.0), max_rows=m, n_records=50) for m in max_rows]
    together = compose(*parts)
    assert together.max_rows == max(max_rows)
    assert together.mu == pytest.approx(math.sqrt(len(parts)) / 2)
    assert together.n_records == 50
    assert f"at most {max(max_rows)} of them are used" in str(together)
    assert verify(together.to_json()) == together.epsilon
    for mixed in ((*parts, PARTS["Gaussian"]), (PARTS["Gaussian"], *parts)):
        with pytest.raises(ValueError, match="for records and for persons cannot be composed"):
            compose(*mixed)


@pytest.mark.catches(
    "accounting.composition:join",
    "n_records.pop() if len(n_records) == 1 else None",
    "certificates[0].n_records",
    param="n_records1-None",
)
@pytest.mark.parametrize(
    ("n_records", "expected"),
    [((5, 5), 5), ((5, 6), None), ((5, None), None), ((None, None), None), ((5, 6, 5), None)],
)
def test_numbers_of_records_are_said_where_all_are_the_same(n_records, expected):
    together = compose(*(make(GaussianDpEvent(4.0), n_records=n) for n in n_records))
    assert together.n_records == expected
    assert (f", {expected}," in str(together)) == (expected is not None)


@pytest.mark.catches(
    "accounting.composition:join", '("relation", "accountant")', '("relation",)', param="option1"
)
@pytest.mark.catches(
    "accounting.composition:join", '("relation", "accountant")', '("accountant",)', param="option0"
)
@pytest.mark.parametrize(
    "option", [{"relation": "zero_out"}, {"accountant": "rdp"}, {"accountant": "autodp"}]
)
def test_unlike_terms_are_refused_in_any_order(option):
    one, other = make(GaussianDpEvent(4.0)), make(GaussianDpEvent(4.0), **option)
    (name,) = option
    for parts in itertools.permutations([one, one, other]):
        with pytest.raises(ValueError, match=f"different {name} cannot be composed"):
            compose(*parts)


@pytest.mark.parametrize("accountant", ["pld", "rdp", "autodp"])
def test_each_accountant_prices_all_parts(accountant):
    parts = [
        replace(PARTS[name], accountant=accountant)
        for name in ("Gaussian", "threshold", "Laplace", "sampled")
    ]
    together = compose(*parts)
    assert together.accountant == accountant
    costs = [compose(*parts[:i], *parts[i + 1 :]).epsilon_at(1e-5) for i in range(len(parts))]
    # Each of them shows.
    assert together.epsilon_at(1e-5) > 1.001 * max(costs)


@pytest.mark.catches(
    "accounting.composition:join",
    "_join_names(c.engine for c in certificates if c.engine is not None) or None",
    "None",
)
def test_whose_engines_held_rows_is_said():
    text = " ".join(str(compose(*(PARTS[n] for n in ("Gaussian", "other", "seeded")))).split())
    assert "Rows were summed by dask and spark: its workers" in text
    assert "summed by" not in str(compose(PARTS["other"], PARTS["Laplace"]))


A, B, C, D = (letter * 64 for letter in "abcd")
EVENT = GaussianDpEvent(8.0)


def release(*digests, events=(EVENT,), **options):
    """The certificate of one release, of the sum of several, or of updates of a stream."""
    return make(*events, digests=[digests] * len(events), **options)


@pytest.mark.catches(
    "accounting.composition:_covers",
    "set(needed) <= set(held)",
    "False",
    param="parts3-1",
)
@pytest.mark.catches(
    "accounting.composition:_covers",
    "set(needed) <= set(held)",
    "set(needed) & set(held)",
    param="parts4-2",
)
@pytest.mark.catches("accounting.composition:_covers", "0 < len(needed)", "True", param="parts8-2")
@pytest.mark.catches(
    "accounting.composition:compose", "(*one, digests)", "(*one, ())", param="parts1-2"
)
@pytest.mark.catches(
    "accounting.certificate_form:read_digests",
    'release.get("digests", shared)',
    "shared",
    param="parts1-2",
)
@pytest.mark.parametrize(
    ("parts", "n_counted"),
    [
        ([(A,), (A,)], 1),
        ([(A,), (B,), (A,), (B,), (A,)], 2),
        # Updates of a stream, of which later ones cover earlier ones.
        ([(A,), (A, B), (A, B, C)], 1),
        ([(A, B, C), (A,)], 1),
        # Two copies of a stream, and sums that share a part: what they share is in both.
        ([(A, B), (A, C)], 2),
        ([(A,), (A, B), (A, C), (A, B)], 2),
        ([(A, B), (B, C), (C, A)], 3),
        # A sum of all covers them.
        ([(A, B), (B, C), (A, B, C, D)], 1),
        ([(), ()], 2),
        ([(A,), (), (A,), ()], 3),
    ],
)
def test_a_release_counts_once_by_its_digest(parts, n_counted):
    for order in itertools.permutations([release(*digests) for digests in parts]):
        nested = order[0]
        for part in order[1:]:
            nested = compose(nested, part)
        for together in (compose(*order), nested):
            assert together.events == (EVENT,) * n_counted
            assert together.mu == pytest.approx(math.sqrt(n_counted) / 4)
            again = Certificate.from_json(together.to_json())
            assert sorted(again.digests) == sorted(together.digests)
            n_unknown = sum(not digests for digests in parts)
            assert len(compose(again, *order).events) == n_counted + n_unknown


@pytest.mark.catches(
    "accounting.composition:_covers",
    "_is_degraded(group) != _is_degraded(other)",
    "_is_degraded(other)",
    param="A>B A>C-0-2",
)
@pytest.mark.parametrize(
    ("parts", "n_first", "n_degraded"),
    [
        # Whoever has the first release learns nothing from what was made of it.
        ("A A>B", 1, 0),
        ("A A>B A>C D", 2, 0),
        ("A>B A>B", 0, 1),
        ("A>B A>C", 0, 2),
        ("A+D A>B", 1, 0),
        # Sums of degraded releases.
        ("A>B A>B+C>D", 0, 1),
        ("A>B+C>E A>B+C>D", 0, 2),
        ("A>B+C>D A C", 2, 1),
    ],
)
def test_degraded_releases_count_where_the_first_does_not(parts, n_first, n_degraded):
    degraded, made = DegradedGaussianDpEvent(20.0), []
    for part in parts.split():
        digests = [letter.lower() * 64 for letter in part if letter.isalpha()]
        made.append(release(*digests, events=(degraded if ">" in part else EVENT,)))
    for order in itertools.permutations(made):
        events = compose(order[0], compose(*order)).events
        assert (events.count(EVENT), events.count(degraded)) == (n_first, n_degraded)
        assert len(events) == n_first + n_degraded


@pytest.mark.catches(
    "accounting.composition:_can_be_made",
    "plain_multiplier(found[0]) <= event.noise_multiplier",
    "True",
)
@pytest.mark.catches("accounting.composition:_can_be_made", "own == name", "True")
@pytest.mark.catches("accounting.composition:_can_be_made", "releases[:n] != kept", "False")
def test_what_cannot_be_made_of_the_first_release_counts_beside_it():
    more = DegradedGaussianDpEvent(20.0)
    for first, made in (
        ((EVENT,), release(A, B, events=(DegradedGaussianDpEvent(EVENT.noise_multiplier / 2),))),
        ((EVENT,), replace(release(A, B, events=(more,)), releases=("other",))),
        ((EVENT, EVENT), release(A, B, events=(GaussianDpEvent(6.0), more))),
    ):
        for order in ((release(A, events=first), made), (made, release(A, events=first))):
            assert set(made.events) < set(compose(*order).events)


def test_releases_of_one_fit_count_together():
    events = (EVENT, GaussianDpEvent(6.0))
    one, other = release(A, events=events), release(B, events=events)
    both = compose(one, other, one)
    assert both.events == events * 2
    assert both.digests == ((A,), (A,), (B,), (B,))
    assert (one.digest, both.digest) == (A, None)
    assert f"GaussianDpEvent(noise_multiplier=6.0); digests: {B}" in " ".join(str(both).split())


@pytest.mark.catches(
    "accounting.composition:compose",
    "group[1] != other[1]",
    "len(group[1]) != len(other[1])",
    param="other0",
)
@pytest.mark.parametrize(
    "other",
    [
        release(A, events=(GaussianDpEvent(5.0),)),
        release(A, events=(EVENT, EVENT)),
        replace(release(A), releases=("another name",)),
        release(A, B, events=(LaplaceDpEvent(4.0),)),
    ],
)
def test_one_digest_of_different_events_is_refused(other):
    for parts in ((release(A), other), (other, release(A)), (release(C), other, release(A, C))):
        with pytest.raises(ValueError, match="different events for the release with the digest aa"):
            compose(*parts)


def test_one_seeded_release_has_one_seed():
    one, other = release(A, reproducible=True), release(B, reproducible=True)
    assert SEEDS not in compose(one, one, release(C)).assumptions
    assert SEEDS in compose(one, other).assumptions


@pytest.mark.catches(
    "accounting.certificate_form:read_digests",
    'own and "digest" in data',
    "False",
    param="<lambda>0",
)
@pytest.mark.parametrize(
    "edit",
    [
        lambda data: data.update(digest=A),
        lambda data: data["releases"][0].update(digests=[A, A]),
        lambda data: data["releases"][0].update(digests=[A.upper()]),
        lambda data: data["releases"][0].update(digests=A),
        lambda data: data["releases"][0].update(digests=[A[:-1]]),
        lambda data: data["releases"][0].update(digest=[A]),
    ],
)
def test_edited_digests_are_refused(edit):
    data = json.loads(compose(release(A), release(B)).to_json())
    verify(json.dumps(data))
    edit(data)
    with pytest.raises(ValueError, match="Not a certificate"):
        verify(json.dumps(data))
