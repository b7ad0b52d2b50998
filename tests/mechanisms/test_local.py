"""Local releases: their sensitivity, their noise, their price, and shuffling."""

import math

import mpmath
import numpy as np
import pytest
import torch
from dp_accounting import (
    GaussianDpEvent,
    LaplaceDpEvent,
    PoissonSampledDpEvent,
    RandomizedResponseDpEvent,
    SelfComposedDpEvent,
    UnsupportedEventError,
)
from scipy.stats import kstest, laplace

from skdpgen.accounting.accountants import ACCOUNTANTS
from skdpgen.accounting.events import pure_epsilon
from skdpgen.privacy import (
    Certificate,
    Curator,
    LocalLabelsMechanism,
    LocalRowsMechanism,
    NoiseSource,
    Plan,
    PlanError,
    compose,
    ledger_delta,
    ledger_epsilon,
    local_plan,
)

DELTA = 1e-5
LAPLACE, RESPONSE = LaplaceDpEvent(1.0), RandomizedResponseDpEvent(0.3, 4)


def release(X, plan, y=None, seed=0):
    """Make the releases of a plan."""
    classes = None if y is None else np.arange(4)
    with Curator(X, y, classes=classes, plan=plan, noise=NoiseSource(seed)) as curator:
        rows = curator.release(
            LocalRowsMechanism(1 if isinstance(plan.events[0], LaplaceDpEvent) else 2)
        )
        return rows, None if y is None else curator.release(LocalLabelsMechanism(4))


# Sensitivity and noise.


@pytest.mark.catches(
    "mechanisms.local:LocalRowsMechanism", '{"replace_one": 2.0}', '{"replace_one": 1.0}'
)
@pytest.mark.parametrize(("p", "name"), [(1, "laplace"), (2, "gaussian")])
def test_noise_is_calibrated_to_the_diameter(p, name):
    """The price stated for a pair of opposite rows is that of their noised values.

    For Laplace noise the log ratio of the densities is ‖x - x'‖₁ / b = 2 / b.
    """
    epsilon = 3.0
    plan = local_plan(p, None, epsilon, DELTA)
    noise = release(np.zeros((20_000, 5)), plan)[0].values
    if p == 1:
        # Scale: mean absolute value, with a standard error of b / √n, six of which are allowed.
        scale = np.abs(noise).mean()
        assert abs(scale / (2 / epsilon) - 1) < 6 / math.sqrt(noise.size)
        # Fails with probability 1e-6.
        assert kstest(noise.ravel(), laplace(scale=2 / epsilon).cdf).pvalue > 1e-6
    else:
        ratio = noise.std() / 2 / plan.multiplier("noised rows")
        assert abs(ratio - 1) < 6 / math.sqrt(2 * noise.size)
        cost = ledger_epsilon([GaussianDpEvent(noise.std())], DELTA, relation="replace_one")
        assert cost == pytest.approx(epsilon, rel=0.03)


@pytest.mark.parametrize("p", [1, 2])
def test_rows_stay_in_the_ball_of_the_norm_and_on_the_grid(p):
    rng = np.random.RandomState(0)
    X = np.vstack([rng.normal(size=(300, 7)), np.eye(7), np.full((1, 7), 1e9), np.zeros((1, 7))])
    for epsilon in (math.inf, 2.0, 1e-4, 1e6):
        plan = local_plan(p, None, epsilon, DELTA)
        mechanism, seen = LocalRowsMechanism(p), []
        measure = mechanism.query
        mechanism.query = lambda *args, m=measure, s=seen: s.append(m(*args)) or s[-1]
        with Curator(X, plan=plan, noise=NoiseSource(0)) as curator:
            values = curator.release(mechanism).values
        measured = seen[0]
        assert measured.exact.dtype == np.int64
        norms = np.linalg.norm(measured.exact / measured.scale, ord=p, axis=1)
        assert norms.max() <= 1
        assert (values * measured.scale == np.rint(values * measured.scale)).all()
        if epsilon == math.inf:
            clipped = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1)
            clipped /= np.maximum(np.linalg.norm(clipped, ord=p, axis=1, keepdims=True), 1)
            np.testing.assert_allclose(values, clipped, atol=2e-5)


@pytest.mark.catches(
    "mechanisms.base:Measurement.add_noise",
    "parts = [draw(std[start : start + size]) for start in range(0, len(std) or 1, size)]",
    """
    part = draw(std[:size])
    parts = [part[: len(std) - start] for start in range(0, len(std) or 1, size)]
    """,
    param="1",
)
@pytest.mark.parametrize("p", [1, 2])
def test_no_row_has_the_noise_of_another(p):
    """Rows are noised in pieces of 4,096."""
    values = release(np.zeros((3 * 4096, 5)), local_plan(p, None, 1.0, DELTA))[0].values
    # Each number has more than 2^14 likely values: fails with probability below 1e-12.
    assert len(np.unique(values, axis=0)) == 3 * 4096


@pytest.mark.catches("mechanisms.local:_response_event", "1 + MARGIN", "1 - MARGIN")
@pytest.mark.parametrize("k", [2, 4, 26])
def test_randomised_response_has_the_stated_ratio(k):
    epsilon = 1.7
    event = dict(local_plan(1, k, epsilon / 0.2, DELTA, label_share=0.2).releases)["noised labels"]
    assert pure_epsilon(event) <= epsilon
    assert pure_epsilon(event) == pytest.approx(epsilon, rel=1e-9)
    p = event.noise_parameter
    assert math.log((1 - p + p / k) / (p / k)) == pytest.approx(epsilon, rel=1e-9)
    # The double that the coins are tossed with costs no more, exactly.
    with mpmath.workdps(40):
        assert mpmath.log1p(k * (1 / mpmath.mpf(p) - 1)) <= epsilon
    codes = np.repeat([0, 1], 50_000)
    noisy = NoiseSource(1).randomized_response(codes, k, p)
    for code in (0, 1):
        shares = np.bincount(noisy[codes == code], minlength=k) / 50_000
        expected = np.full(k, p / k)
        expected[code] += 1 - p
        # Six standard errors of a share.
        assert (abs(shares - expected) < 6 * np.sqrt(expected / 50_000)).all()


def test_a_release_says_what_its_event_says():
    X = np.zeros((3, 2))
    for mechanism, event in [
        (LocalRowsMechanism(1), GaussianDpEvent(1.0)),
        (LocalRowsMechanism(2), LAPLACE),
        (LocalLabelsMechanism(4), LAPLACE),
        (LocalLabelsMechanism(4), RandomizedResponseDpEvent(0.3, 5)),
    ]:
        plan = Plan(((mechanism.name, event),), 1e3, DELTA, "replace_one", local=True)
        with Curator(X, plan=plan, noise=NoiseSource(0)) as curator:
            with pytest.raises(PlanError, match="planned as"):
                curator.release(mechanism)
            assert not curator.certificate().events
    for mechanism in (LocalRowsMechanism(1), LocalLabelsMechanism(2)):
        with pytest.raises(PlanError, match="replace_one"):
            mechanism.sensitivity("zero_out")


# Prices.


@pytest.mark.parametrize("accountant", ACCOUNTANTS)
def test_pure_releases_add_up(accountant):
    options = {"accountant": accountant, "relation": "replace_one"}
    response = math.log((0.7 + 0.075) / 0.075)
    assert ledger_epsilon([LAPLACE], DELTA, **options) == 2
    assert ledger_epsilon([RESPONSE], DELTA, **options) == pytest.approx(response)
    both = ledger_epsilon([LAPLACE, SelfComposedDpEvent(RESPONSE, 3)], DELTA, **options)
    assert both == pytest.approx(2 + 3 * response)
    gaussian = ledger_epsilon([GaussianDpEvent(2.0)], DELTA, **options)
    joint = [GaussianDpEvent(2.0), LAPLACE]
    # Loss distributions compose for less.
    least = 0.8 if accountant == "pld" else 1.0
    spent = ledger_epsilon(joint, DELTA, **options)
    assert least * (2 + gaussian) <= spent <= (2 + gaussian) * (1 + 1e-9)
    assert ledger_delta(joint, spent, **options) == pytest.approx(DELTA, rel=1e-3)
    assert ledger_delta([LAPLACE], 2.0, **options) == 0
    assert ledger_delta([LAPLACE], 1.9, **options) == 1
    for nothing in (LaplaceDpEvent(math.inf), RandomizedResponseDpEvent(1.0, 3)):
        assert ledger_epsilon([nothing], DELTA, **options) == 0
    for everything in (LaplaceDpEvent(0.0), RandomizedResponseDpEvent(0.0, 3)):
        assert ledger_epsilon([everything], DELTA, **options) == math.inf
        assert ledger_delta([everything], 3.0, **options) == 1
    assert ledger_epsilon([RandomizedResponseDpEvent(0.0, 1)], DELTA, **options) == 0


def test_pure_price_is_not_below_that_of_dp_accounting():
    """Its loss distributions of single numbers are tight."""
    from dp_accounting.pld.privacy_loss_distribution import (
        from_laplace_mechanism,
        from_randomized_response,
    )

    for pld, event in [
        (from_laplace_mechanism(1.0), LAPLACE),
        (from_randomized_response(0.3, 4), RESPONSE),
    ]:
        tight = pld.get_epsilon_for_delta(1e-9)
        assert pure_epsilon(event) >= tight - 2e-4
        assert pure_epsilon(event) == pytest.approx(tight, abs=1e-3)


@pytest.mark.parametrize(
    "event",
    [
        RandomizedResponseDpEvent(1.5, 3),
        RandomizedResponseDpEvent(-0.1, 3),
        RandomizedResponseDpEvent(math.nan, 3),
        RandomizedResponseDpEvent(0.5, 0),
        RandomizedResponseDpEvent(0.5, 2.5),
        LaplaceDpEvent(-1.0),
        LaplaceDpEvent(math.nan),
        PoissonSampledDpEvent(0.1, LAPLACE),
        PoissonSampledDpEvent(0.1, RESPONSE),
    ],
)
@pytest.mark.parametrize("accountant", ACCOUNTANTS)
def test_bad_events_are_refused(event, accountant):
    with pytest.raises(UnsupportedEventError):
        ledger_epsilon([event], DELTA, accountant=accountant, relation="replace_one")


def test_randomised_response_is_for_records_that_are_replaced():
    with pytest.raises(UnsupportedEventError, match="replace_one"):
        ledger_epsilon([RESPONSE], DELTA, relation="zero_out")


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("n_classes", [None, 1, 2, 30])
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 40.0, 2000.0])
def test_plans_keep_to_their_budget(p, n_classes, epsilon):
    plan = local_plan(p, n_classes, epsilon, DELTA, label_share=0.3)
    spent = ledger_epsilon(plan.events, DELTA, relation="replace_one")
    assert 0.999 * epsilon < spent <= epsilon
    assert plan.local


# Certificates.


def certify(*events, **params):
    options = {"relation": "replace_one", "local": True, **params}
    return Certificate(events, tuple(f"release {i}" for i in range(len(events))), **options)


def test_shuffling_is_refused_where_nothing_is_proved():
    with pytest.raises(ValueError, match="Gaussian noise exceeds any"):
        certify(GaussianDpEvent(1.0)).shuffled(10**6, 1e-6)
    with pytest.raises(ValueError, match="Gaussian noise exceeds any"):
        certify(GaussianDpEvent(1.0), RESPONSE).shuffled(10**6, 1e-6)
    with pytest.raises(ValueError, match="one by one"):
        certify(LAPLACE, local=False).shuffled(10**6, 1e-6)
    with pytest.raises(ValueError, match="one by one"):
        compose(certify(LAPLACE), certify(LAPLACE)).shuffled(10**6, 1e-6)
    for n_samples in (0, -1, 1.5, "many"):
        with pytest.raises(ValueError, match="n_samples"):
            certify(LAPLACE).shuffled(n_samples, 1e-6)
    for delta in (0, 1, -1):
        with pytest.raises(ValueError, match="delta"):
            certify(LAPLACE).shuffled(10**6, delta)


def test_rows_of_float32_are_noised_in_doubles():
    X = np.full((4, 3), 0.1, dtype=np.float32)
    values = release(X, local_plan(2, None, math.inf, DELTA))[0].values
    assert values.dtype == np.float64
    assert torch.as_tensor(values).isfinite().all()


def test_labels_ride_along():
    y = np.arange(400) % 4
    rows, labels = release(np.zeros((400, 2)), local_plan(1, 4, 50.0, DELTA), y)
    assert rows.values.shape == (400, 2)
    # A label is replaced with a probability of 4 / (e^10 + 3): by another one in 0.05 of 400.
    assert (labels.codes != y).sum() <= 5
    assert labels.probability < 2e-4
