"""Certificates are recomputed by dp-accounting, from the events as they are stated."""

import functools
import itertools
import math

import numpy as np
import pandas as pd
import pytest
from dp_accounting import (
    GaussianDpEvent,
    LaplaceDpEvent,
    NeighboringRelation,
    PoissonSampledDpEvent,
    RandomizedResponseDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
)
from dp_accounting.dp_event import RepeatAndSelectDpEvent
from dp_accounting.pld import PLDAccountant
from dp_accounting.pld.pld_pmf import create_pmf_pessimistic_connect_dots_fixed_gap
from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution
from dp_accounting.rdp import RdpAccountant
from scipy import stats
from sklearn.base import clone

from skdpgen import (
    DPAFGenerator,
    DPHistorySampler,
    DPSinkhornGenerator,
    DPSlicedWassersteinGenerator,
    DPSWDDomainAdapter,
    DPSWFlowSampler,
    LDPEntropicGAN,
    preview,
)
from skdpgen.adaptation import DPSWDDomainClassifier, PrivateSearch
from skdpgen.preprocessing import DPPCA, LocalPrivatizer
from skdpgen.privacy import (
    ClassCountsMechanism,
    Curator,
    DiameterGaussianDpEvent,
    GaussianSumMechanism,
    NoiseSource,
    RecordFunction,
    SlicedGaussianDpEvent,
    ThresholdDpEvent,
    gaussian_plan,
    ledger_epsilon,
    repeated_plan,
)
from skdpgen.releases import ForwardAggregates, LocalNoise, SampledGradients, SlicedRows
from skdpgen.streams import ReleaseStream
from skdpgen.tables import Category, Number, Schema

pytestmark = pytest.mark.filterwarnings("ignore")

THEIRS = {
    "zero_out": NeighboringRelation.REPLACE_SPECIAL,
    "replace_one": NeighboringRelation.REPLACE_ONE,
}
STEP = 5e-4
SCHEMA = Schema({"age": Number(0, 90), "kind": Category(["a", "b"]), "paid": Number(0, 1)})
GENERATORS = {
    "sketch": DPSlicedWassersteinGenerator(bounds=(0, 1)),
    "sketch in an inferred box": DPSWFlowSampler(),
    "components": DPSWFlowSampler(bounds=(0, 1), encoder="dp-pca"),
    "tables": DPSWFlowSampler(schema=SCHEMA),
    "rows": DPSlicedWassersteinGenerator(release=SlicedRows(n_steps=8)),
    "rows of fixed samples": DPSWFlowSampler(release=SlicedRows(n_steps=8, sampling="fixed")),
    "rows at once": DPSWFlowSampler(release="presample"),
    "gradients": DPSinkhornGenerator(release=SampledGradients(n_steps=8)),
    "gradients of all rows": DPSinkhornGenerator(
        release=SampledGradients(n_steps=8, batch_size=400)
    ),
    "aggregates": DPAFGenerator(release=ForwardAggregates(n_steps=8)),
    "aggregates of two phases": DPAFGenerator(
        release=ForwardAggregates(n_steps=8, budget_split=(0.1, 0.1, 0.8))
    ),
    "moments": DPPCA(),
    "local": LDPEntropicGAN(),
    "local, Gaussian": LDPEntropicGAN(release=LocalNoise("gaussian")),
    "privatizer": LocalPrivatizer(mechanism="gaussian"),
}


def gaussian_delta(epsilon, mu):
    tail = np.exp(epsilon + stats.norm.logcdf(-mu / 2 - epsilon / mu))
    return stats.norm.cdf(mu / 2 - epsilon / mu) - tail


def amplified(epsilon, mu, rate):
    """The profile of two samples that differ in a record, against one without it."""
    return rate * gaussian_delta(np.log1p(np.expm1(epsilon) / rate), mu)


def opposite(epsilon, mu, rate):
    """The profile of two Poisson samples that differ in a record each, μ apart."""

    def both(function, x):
        known = (1 - rate) * function(x)
        return (known + rate * function(x, mean) for mean in (mu / 2, -mu / 2))

    # The best test is a threshold, since the likelihood ratio increases.
    x = np.linspace(-30, 30, 20_001)
    one, other = both(stats.norm.pdf, x)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.log(one) - np.log(other)
    known = np.isfinite(ratio)
    threshold = np.interp(epsilon, np.maximum.accumulate(ratio[known]), x[known])
    one, other = both(stats.norm.sf, threshold)
    return one - np.exp(epsilon) * other


def pld(profile, symmetric=True):
    """Return a loss distribution from its profile at ε ≥ 0, and that at ε ≤ 0."""
    last = round(8 / STEP)
    epsilon = np.arange(last + 1) * STEP
    upper = profile(epsilon)
    below = upper if symmetric else profile(-epsilon)
    # A pair that is the same in both directions, or one direction of another.
    lower = -np.expm1(-epsilon) + np.exp(-epsilon) * below if symmetric else below
    deltas = np.minimum.accumulate(np.clip(np.r_[lower[:0:-1], upper], 0, 1))
    return create_pmf_pessimistic_connect_dots_fixed_gap(STEP, -last, last, deltas)


def sliced_profile(base, relation, find_profile):
    """Average a profile over H: whole bases, and a Beta distributed part of another one."""
    blocks, rest = divmod(base.n_projections, base.n_features)
    law = stats.beta(rest / 2, (base.n_features - rest) / 2)
    change = {"zero_out": 1.0, "replace_one": 2.0}[relation]
    nodes, weights = np.polynomial.legendre.leggauss(40)

    def average(epsilon, worst, factor):
        # The larger of two dependent H is bounded by the upper half of the law.
        lower = law.median() if worst else 0.0
        h = lower + (1 - lower) * (nodes + 1) / 2
        chances = (1 + worst) * law.pdf(h) * weights * (1 - lower) / 2
        mus = change * np.sqrt(factor * (blocks + h) + base.beside) / base.noise_multiplier
        return sum(c * find_profile(epsilon, mu) for c, mu in zip(chances, mus, strict=True))

    if relation == "zero_out":
        return lambda epsilon: average(epsilon, 0, 1)
    if find_profile.func is opposite:
        return lambda epsilon: average(epsilon, 1, 1)
    if base.n_classes == 1:
        return lambda epsilon: average(epsilon, 0, 1)
    return lambda epsilon: np.maximum(average(epsilon, 0, 1), average(epsilon, 1, 0.5))


def own_pld(event, relation):
    """Return the loss distribution of an event that dp-accounting does not know."""
    base, rate = getattr(event, "event", event), getattr(event, "sampling_probability", None)
    if isinstance(event, SampledWithoutReplacementDpEvent):
        rate = event.sample_size / event.source_dataset_size
    is_poisson = isinstance(event, PoissonSampledDpEvent)
    if isinstance(base, DiameterGaussianDpEvent):
        assert is_poisson
        if relation == "zero_out":
            return None
        return PrivacyLossDistribution(
            pld(functools.partial(amplified, mu=1 / base.noise_multiplier, rate=rate))
        )
    assert isinstance(base, SlicedGaussianDpEvent)
    assert base.orthogonal
    if rate is None:
        return PrivacyLossDistribution(
            pld(sliced_profile(base, relation, functools.partial(gaussian_delta)))
        )
    function = functools.partial(
        opposite if is_poisson and relation == "replace_one" else amplified, rate=rate
    )
    profile = sliced_profile(base, relation, function)
    if relation == "replace_one":
        return PrivacyLossDistribution(pld(profile))
    # A sample with the record against one without it, and the reverse.
    edge = -math.log1p(-rate)

    def remove(epsilon):
        inside = np.maximum(epsilon, -0.999 * edge)
        return np.where(epsilon > -0.999 * edge, profile(inside), -np.expm1(epsilon))

    def add(epsilon):
        return -np.expm1(epsilon) + np.exp(epsilon) * remove(-epsilon)

    return PrivacyLossDistribution(pld(remove, False), pld(add, False))


def recompute(certificate):
    """Return ε of a certificate by dp-accounting's accountant of losses."""
    relation, delta = certificate.relation, certificate.delta
    accountant = PLDAccountant(THEIRS[relation], STEP)
    others, beside = None, 0.0
    for event in certificate.events:
        step, count = event, 1
        if isinstance(event, SelfComposedDpEvent):
            step, count = event.event, event.count
        if isinstance(step, ThresholdDpEvent):
            delta, beside = delta - step.delta, beside - math.log1p(-step.delta)
            event = GaussianDpEvent(step.noise_multiplier)
        if isinstance(step, LaplaceDpEvent):
            # Pure noise on one vector per record: two of them are twice its norm apart.
            beside += {"replace_one": 2.0}[relation] / step.noise_multiplier
            continue
        if isinstance(getattr(step, "event", None), DiameterGaussianDpEvent):
            if relation == "zero_out":
                multiplier = step.event.noise_multiplier
                sampled = PoissonSampledDpEvent(
                    step.sampling_probability, GaussianDpEvent(multiplier)
                )
                event = SelfComposedDpEvent(sampled, count)
        if accountant.supports(event):
            accountant.compose(event)
        else:
            part = own_pld(step, relation).self_compose(count)
            others = part if others is None else others.compose(part)
    if isinstance(certificate.events[0], LaplaceDpEvent):
        # Pure releases are added, as no δ is used.
        return beside + sum(
            math.log1p(e.num_buckets * (1 - e.noise_parameter) / e.noise_parameter)
            for e in certificate.events
            if isinstance(e, RandomizedResponseDpEvent)
        )
    if others is None:
        return accountant.get_epsilon(delta) + beside
    return accountant._pld.compose(others).get_epsilon_for_delta(delta) + beside


def _list_certificates():
    for (name, generator), relation, n_classes in itertools.product(
        GENERATORS.items(), THEIRS, (None, 3)
    ):
        is_local = "relation" not in generator.get_params()
        if (is_local or "fixed" in name) and relation == "zero_out":
            continue
        if n_classes is not None and name in ("tables", "moments"):
            continue
        if n_classes is None and name == "aggregates of two phases":
            continue
        # Each profile once: without noise of classes beside it, and with.
        is_again = name.startswith("rows ") and n_classes is None
        is_again |= name == "rows" and (relation == "zero_out") != (n_classes is None)
        case = f"{name}-{relation}-{n_classes}"
        marks = [pytest.mark.slow] * is_again
        yield pytest.param(name, relation, n_classes, id=case, marks=marks)


@pytest.mark.catches(
    "accounting.accountants:_Ledger.__init__",
    "over_sensitivity(leaf, relation)",
    "leaf",
    param="aggregates-replace_one-None",
)
@pytest.mark.catches(
    "accounting.events:noise_unit",
    'relation == "zero_out" or isinstance(base, DiameterGaussianDpEvent)',
    'relation == "zero_out"',
    param="gradients-replace_one-None",
)
@pytest.mark.parametrize(("name", "relation", "n_classes"), [*_list_certificates()])
def test_dp_accounting_recomputes_the_certificate_of(name, relation, n_classes):
    generator = clone(GENERATORS[name]).set_params(epsilon=2.0, delta=1e-5)
    if "relation" in generator.get_params():
        generator.set_params(relation=relation)
    planned = preview(generator, 400, 3 if "tables" in name else 6, n_classes=n_classes)
    assert planned.epsilon == pytest.approx(recompute(planned), rel=2e-3)
    assert planned.epsilon > 1.99


def make_rows(n=120):
    rng = np.random.default_rng(0)
    return rng.uniform(size=(n, 3)), rng.integers(2, size=n)


def make_table(n=120):
    X, y = make_rows(n)
    return pd.DataFrame({"size": X[:, 0], "kind": y.astype(str), "count": (9 * X[:, 1]).round()})


def fit_stream(relation):
    schema = Schema({"size": Number(0, 1), "kind": Category(["0", "1"]), "count": Number(0, 9)})
    stream = ReleaseStream(2.0, ["1", "2"], schema, relation=relation)
    return stream.update(make_table().assign(period="1")).release_.certificate


def fit_histories(relation):
    patients = pd.DataFrame({"id": range(60), "sex": ["a", "b"] * 30})
    visits = pd.DataFrame({"id": [*range(60)] * 2, "day": [1.0, 2.0] * 60})
    sampler = DPHistorySampler(2.0, 1e-5, relation=relation, max_rows_per_person=3, n_steps=1)
    return sampler.fit({"patients": patients, "visits": visits}, persons="id", order="day")


def adapt(adapter, relation, **params):
    X, y = make_rows()
    adapter = adapter(2.0, 1e-5, relation=relation, **params)
    return adapter.fit(X, y, X_target=X[:, ::-1])


FITS = {
    "inferred columns": lambda r: DPSWFlowSampler(2.0, 1e-5, relation=r, n_steps=1).fit(
        make_table()
    ),
    "persons": lambda r: DPSWFlowSampler(2.0, 1e-5, relation=r, n_steps=1).fit(
        make_table(), persons=np.arange(120) // 2
    ),
    "stream": fit_stream,
    "histories": fit_histories,
    "adapter": lambda r: adapt(DPSWDDomainAdapter, r, n_steps=4),
}


# These fits take seconds, and differ from the others in what they read, not in their relation.
SLOW = {("histories", "replace_one"), ("adapter", "replace_one"), ("persons", "replace_one")}


@pytest.mark.parametrize(
    ("name", "relation"),
    [
        pytest.param(*case, marks=[pytest.mark.slow] * (case in SLOW))
        for case in itertools.product(FITS, THEIRS)
    ],
)
def test_dp_accounting_recomputes_the_certificate_of_a_fit(name, relation):
    fitted = FITS[name](relation)
    certificate = getattr(fitted, "privacy_", fitted)
    assert certificate.epsilon == pytest.approx(recompute(certificate), rel=2e-3)
    assert certificate.epsilon > 1.99


@pytest.mark.parametrize("relation", THEIRS)
def test_dp_accounting_recomputes_the_certificate_of_a_search(relation):
    X, y = make_rows()
    model = DPSWDDomainClassifier(2.0, 1e-5, relation=relation, n_steps=4)
    search = PrivateSearch(model, {"bounds": [(0, 1), (0, 2)]}, n_candidates=2)
    certificate = search.fit(X, y, X_target=X[:, ::-1]).privacy_
    (event,) = certificate.events
    assert isinstance(event, RepeatAndSelectDpEvent)
    # Their moments are of multipliers over the sensitivity, under any relation.
    half = {"zero_out": 1, "replace_one": 2}[relation]
    run = GaussianDpEvent(event.event.noise_multiplier / half)
    theirs = RdpAccountant(neighboring_relation=THEIRS["zero_out"])
    theirs.compose(RepeatAndSelectDpEvent(run, event.mean, event.shape))
    # At coarser orders.
    assert certificate.epsilon <= theirs.get_epsilon(1e-5) <= 1.02 * certificate.epsilon


@pytest.mark.parametrize("relation", THEIRS)
@pytest.mark.parametrize("rate", [1.0, 0.02])
def test_opacus_recomputes_steps_of_records_that_are_left_out(rate, relation):
    prv = pytest.importorskip("opacus.accountants").PRVAccountant()
    event = GaussianDpEvent(1.5) if rate == 1 else PoissonSampledDpEvent(rate, GaussianDpEvent(1.5))
    for _ in range(20):
        prv.step(noise_multiplier=1.5, sample_rate=rate)
    ours = ledger_epsilon([SelfComposedDpEvent(event, 20)], 1e-5, relation=relation)
    theirs = prv.get_epsilon(1e-5, eps_error=1e-3)
    if relation == "zero_out":
        assert ours == pytest.approx(theirs, rel=2e-3, abs=1e-3)
    else:
        assert ours > 1.01 * theirs


@pytest.mark.parametrize(("s", "rate", "n_steps"), [(0.8, 0.02, 500), (2.0, 0.05, 2000)])
def test_moments_at_fractional_orders_are_those_of_others(s, rate, n_steps):
    event = SelfComposedDpEvent(PoissonSampledDpEvent(rate, GaussianDpEvent(s)), n_steps)
    ours = ledger_epsilon([event], 1e-5, accountant="rdp")
    theirs = RdpAccountant(neighboring_relation=THEIRS["zero_out"]).compose(event)
    # Their fractional moments are bounds, at coarser orders.
    assert ours == pytest.approx(theirs.get_epsilon(1e-5), rel=5e-4)
    accountant = pytest.importorskip("opacus.accountants").RDPAccountant()
    accountant.history = [(s, rate, n_steps)]
    assert ours == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-4)


@pytest.mark.catches(
    "accounting.events:step_std", "over_sensitivity(event, relation)", "event", param="replace_one"
)
@pytest.mark.catches(
    "accounting.certificate:Certificate._over_sensitivity",
    "over_sensitivity(event, self.relation)",
    "event",
    param="replace_one",
)
@pytest.mark.catches(
    "accounting.plan:Plan.multiplier",
    "over_sensitivity(dict(self.releases)[name], self.relation)",
    "dict(self.releases)[name]",
    param="replace_one",
)
@pytest.mark.parametrize("relation", THEIRS)
def test_events_have_the_noise_over_the_norm_of_one_record(relation):
    """A sum of vectors of norm 0.3 has 0.3 times the multiplier; counts less, if √2 apart."""
    X, y = make_rows()
    total = GaussianSumMechanism(RecordFunction(lambda rows: rows), 0.3)
    counts = ClassCountsMechanism()
    shares = {total.name: 0.5, counts.name: 0.5}
    plan = gaussian_plan(shares, 2.0, 1e-5, relation=relation)
    with Curator(X, y, classes=[0, 1], plan=plan, noise=NoiseSource(0)) as curator:
        released = curator.release(total).std, curator.release(counts).std
        certificate = curator.certificate()
    multipliers = [event.noise_multiplier for event in plan.events]
    apart = {"zero_out": 1.0, "replace_one": math.sqrt(2) / 2}[relation]
    assert released == pytest.approx((0.3 * multipliers[0], apart * multipliers[1]))
    change = {"zero_out": 1.0, "replace_one": 2.0}[relation]
    assert certificate.mu == pytest.approx(change * math.hypot(*(1 / m for m in multipliers)))
    assert certificate.rho == pytest.approx(certificate.mu**2 / 2)
    assert certificate.find_sigma(total.name, total.sensitivity) == pytest.approx(released[0])
    assert plan.multiplier(total.name) == pytest.approx(multipliers[0] / change)


@pytest.mark.parametrize("relation", THEIRS)
@pytest.mark.parametrize("accountant", ["pld", "rdp"])
@pytest.mark.parametrize(
    ("base", "n_steps", "rate"),
    [(GaussianDpEvent, 8, 0.1), (DiameterGaussianDpEvent, 8, 0.1), (GaussianDpEvent, 3, 1.0)],
)
def test_sigma_of_a_plan_is_that_of_its_event(base, n_steps, rate, accountant, relation):
    def step(multiplier):
        event = base(multiplier)
        return event if rate == 1 else PoissonSampledDpEvent(rate, event)

    options = {"relation": relation, "accountant": accountant, "sensitivity": 0.4}
    plan = repeated_plan("step", step, n_steps, 2.0, 1e-5, **options)
    over_norm = base is GaussianDpEvent and relation == "replace_one"
    multiplier = plan.sigma / (0.2 if over_norm else 0.4)
    assert plan.events == (SelfComposedDpEvent(step(pytest.approx(multiplier)), n_steps),)
    assert 1.98 < ledger_epsilon(plan.events, 1e-5, relation=relation, accountant=accountant) <= 2
