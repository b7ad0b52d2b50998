"""Clipped gradients of a sample: what bounds them, what tells who joined, and what a step costs."""

import math

import numpy as np
import pytest
import torch
from dp_accounting import (
    GaussianDpEvent,
    NonPrivateDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
)

from skdpgen.learners.gradients import CrossGradient
from skdpgen.mechanisms.gradients import clip_whole
from skdpgen.mechanisms.sampled import count_slots
from skdpgen.privacy import (
    BatchFunction,
    ClippedGradientMechanism,
    Curator,
    DiameterGaussianDpEvent,
    NoiseSource,
    Plan,
    PlanError,
    SlicedGaussianDpEvent,
    ledger_delta,
)
from skdpgen.transport.sinkhorn_losses import SinkhornGradient

from .common import Drawn, Rows, assert_variance

P = 1e-4
N_RECORDS, RATE, CLIP = 40, 0.2, 0.5
N_SLOTS = count_slots(N_RECORDS, RATE)


def poisson(multiplier=0.0, rate=RATE):
    return PoissonSampledDpEvent(rate, DiameterGaussianDpEvent(multiplier))


def run(mechanism, source, event, noise, relation="zero_out"):
    return mechanism.run(source, event, relation=relation, noise=noise)


def total(rows, membership):
    return rows.sum(0)


def records(n=N_RECORDS, d=3, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)) / math.sqrt(d)


# --- what bounds it ------------------------------------------------------------------------------


def plain_gradient(made, codes, n_debias, rows, labels, reg, l1_weight, label_weight):
    """The loss's gradient in the first block, written down anew: no clip, no weights, no mask.

    Plans come from plain Sinkhorn iterations in the log domain, and gradients from autograd.
    """

    def join(x, y):
        one_hot = torch.nn.functional.one_hot(y, 2).to(x)
        return torch.cat([x, label_weight * one_hot], dim=1)

    def entropic(A, B):
        difference = A[:, None] - B[None]
        cost = difference.square().sum(2) + l1_weight * difference.abs().sum(2)
        fixed, g = cost.detach(), torch.zeros(len(B), dtype=cost.dtype)
        for _ in range(400):
            f = -reg * torch.logsumexp((g - fixed) / reg - math.log(len(B)), 1)
            g = -reg * torch.logsumexp((f[:, None] - fixed) / reg - math.log(len(A)), 0)
        plan = ((f[:, None] + g - fixed) / reg).exp() / len(A) / len(B)
        return (plan * cost).sum()

    made = made.clone().requires_grad_()
    n = len(made) - n_debias
    X, Y = join(made, codes), join(rows, labels)
    (2 * entropic(X[:n], Y) - entropic(X[:n], X[n_debias:])).backward()
    return made.grad


@pytest.fixture
def problem():
    generator = torch.Generator().manual_seed(0)
    made = torch.randn(10, 4, generator=generator, dtype=torch.float64) / 2
    codes = torch.tensor([0, 1] * 5)
    x = torch.randn(N_RECORDS, 4, generator=generator, dtype=torch.float64) / 2
    return made, codes, x.numpy(), np.arange(N_RECORDS) % 2


SETTINGS = dict(reg=0.3, l1_weight=0.5, label_weight=0.7)


def cross_gradient(problem, n_debias=2, **params):
    made, codes, _, _ = problem
    loss = SinkhornGradient(**SETTINGS, balance=False, **params)
    apart = loss.apart(made, codes, n_debias)
    n = len(made) - n_debias
    function = CrossGradient(loss, made[:n], codes[:n], apart[:n], encode=lambda rows: rows)
    return function, apart


def test_the_gradient_is_that_of_the_loss(problem, monkeypatch):
    monkeypatch.setattr("skdpgen.transport.sinkhorn_losses._TOL", 1e-9)
    monkeypatch.setattr("skdpgen.transport.sinkhorn_losses._N_ITER", 3000)
    made, codes, x, labels = problem
    drawn = np.array([3, 8, 9, 20, 31])
    expected = plain_gradient(
        made, codes, 2, torch.tensor(x[drawn]), torch.tensor(labels[drawn]), **SETTINGS
    )
    function, apart = cross_gradient(problem)
    mechanism = ClippedGradientMechanism(BatchFunction(function), (8, 4), 100.0)
    released = run(mechanism, Rows(x, labels, 2), poisson(), Drawn(drawn)).value
    np.testing.assert_allclose(released, expected[:8], atol=2e-3)
    # The debiasing block has no part of the real rows.
    np.testing.assert_allclose(apart[8:], expected[8:], atol=1e-3)


@pytest.mark.catches(
    "mechanisms.gradients:clip_whole",
    "torch.linalg.vector_norm(values / largest)",
    "torch.linalg.vector_norm(values / largest, dim=-1, keepdim=True)",
)
@pytest.mark.parametrize("clip", [1e-3, 0.02, 0.3])
def test_neighbours_are_at_most_twice_the_clip_apart(problem, clip):
    """Whole gradients are clipped; without the clip, or with one per row, they would be beyond."""
    made, codes, x, labels = problem
    function, _ = cross_gradient(problem)
    mechanism = ClippedGradientMechanism(BatchFunction(function), (8, 4), clip)
    sensitivity = mechanism.sensitivity("zero_out")
    assert sensitivity == 2 * clip
    norms, moved, per_row, unclipped = [], [], [], []
    for extreme in ([9, 9, 9, 9], [-9, -9, -9, -9], [0, 0, 0, 0], [1e6, 0, 0, 0]):
        for others in ([], [1, 2], [5, 9, 12, 20]):
            rows = x.copy()
            rows[0] = extreme
            exact = [
                run(mechanism, Rows(rows, labels, 2), poisson(), Drawn(drawn)).value
                for drawn in (others, [0, *others])
            ]
            norms += [np.linalg.norm(value) for value in exact]
            moved.append(np.linalg.norm(exact[1] - exact[0]))
            if len(others) == 2:
                plain = [
                    plain_gradient(
                        made, codes, 2, torch.tensor(rows[d]), torch.tensor(labels[d]), **SETTINGS
                    )[:8]
                    for d in (others, [0, *others])
                ]
                unclipped.append((plain[1] - plain[0]).norm())
                by_row = [g * (clip / g.norm(dim=1, keepdim=True).clamp(min=clip)) for g in plain]
                per_row.append((by_row[1] - by_row[0]).norm())
    assert max(norms) <= clip, f"A gradient has norm {max(norms)}, over {clip}."
    assert max(moved) <= sensitivity, f"It moves by {max(moved)}, over {sensitivity}."
    assert max(unclipped) > sensitivity
    if clip < 0.1:
        assert max(per_row) > sensitivity


def test_opposite_gradients_are_twice_the_clip_apart():
    """The bound is met: it is 2Δ, and not Δ."""

    def sign(rows, membership):
        return rows.sum(0)

    x = np.array([[0.3, 0.0], [-0.9, 0.0], [0.0, 0.0]])
    mechanism = ClippedGradientMechanism(BatchFunction(sign), (2,), 0.25)
    first, both = (
        run(mechanism, Rows(x), poisson(), Drawn(drawn)).value for drawn in ([0], [0, 1])
    )
    assert np.linalg.norm(both - first) == pytest.approx(0.5, rel=1e-3)
    assert np.linalg.norm(both - first) <= mechanism.sensitivity("zero_out")


@pytest.mark.parametrize("size", [1e-300, 1e-30, 1.0, 1e30, 1e200, 1e307])
def test_clip_holds_at_all_sizes(size):
    values = torch.tensor([[3.0, -4.0], [0.0, 12.0]], dtype=torch.float64) * size
    clipped = clip_whole(values, 0.1)
    assert clipped.norm() <= 0.1 * (1 + 1e-12)
    if size >= 1:
        assert clipped.norm() == pytest.approx(0.1)
        torch.testing.assert_close(clipped[0, 0] / clipped[1, 1], torch.tensor(0.25).double())


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_gradients_that_are_not_finite_become_zero(bad):
    mechanism = ClippedGradientMechanism(
        BatchFunction(lambda rows, membership: rows.sum(0) * bad), (3,), CLIP
    )
    released = run(mechanism, Rows(records()), poisson(), Drawn([1, 2]))
    assert not released.value.any()


@pytest.mark.parametrize("clip", [0, -1, math.nan, math.inf, 1e-200])
def test_clips_that_are_refused(clip):
    with pytest.raises(ValueError, match="grad_clip must be in"):
        ClippedGradientMechanism(BatchFunction(total), (3,), clip)


# --- noise, and what tells how many joined -------------------------------------------------------


@pytest.mark.catches(
    "mechanisms.gradients:ClippedGradientMechanism.query_batch",
    "Measurement(exact, scale, std)",
    "Measurement(exact[: int(joined.sum())], scale, std)",
)
@pytest.mark.parametrize("n_drawn", [0, 1, 5, N_SLOTS, N_SLOTS + 1, N_RECORDS])
@pytest.mark.parametrize("n_classes", [1, 3])
def test_shape_and_noise_do_not_tell_how_many_joined(n_drawn, n_classes):
    source = Rows(records(), np.arange(N_RECORDS) % n_classes, n_classes)
    mechanism = ClippedGradientMechanism(
        BatchFunction(lambda rows, _: rows.sum(0).expand(20, 3)), (20, 3), CLIP
    )
    residuals = []
    for seed in range(40):
        exact, noisy = (
            run(mechanism, source, poisson(multiplier), Drawn(range(n_drawn), seed))
            for multiplier in (0.0, 3.0)
        )
        assert exact.value.shape == noisy.value.shape == (20, 3)
        assert (exact.std, noisy.std) == (0.0, 3.0 * 2 * CLIP)
        assert exact.value.any() == (0 < n_drawn <= N_SLOTS)
        residuals.append(noisy.value - exact.value)
    assert_variance(residuals, 3.0 * 2 * CLIP)


@pytest.mark.catches(
    "mechanisms.gradients:ClippedGradientMechanism.sensitivity_of", "2 * grad_clip", "grad_clip"
)
@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_noise_is_the_multiplier_times_twice_the_clip(relation):
    mechanism = ClippedGradientMechanism(
        BatchFunction(lambda rows, _: torch.zeros(4000)), (4000,), CLIP
    )
    noisy = run(mechanism, Rows(records()), poisson(1.3), Drawn([1]), relation)
    assert noisy.std == 2 * CLIP * 1.3
    assert_variance(noisy.value, 2 * CLIP * 1.3)


def test_an_empty_sample_releases_noise_only_and_is_charged():
    def fail(rows, membership):
        raise AssertionError("It is not called.")

    plan = Plan((("clipped gradient", SelfComposedDpEvent(poisson(20.0), 2)),), 5.0, 1e-5)
    curator = Curator(records(), plan=plan, noise=Drawn([]))
    released = curator.release(ClippedGradientMechanism(BatchFunction(fail), (1000,), CLIP))
    assert_variance(released.value, 20.0 * 2 * CLIP)
    assert curator.certificate().events == (poisson(20.0),)


def test_the_function_sees_who_joined_and_nobody_else():
    x, seen = records(), []

    def watched(rows, membership):
        seen.append((rows.numpy().copy(), membership.numpy().copy()))
        return rows.sum(0)

    labels = np.arange(N_RECORDS) % 2
    labels[7] = -1  # null
    source = Rows(x, labels, 2)
    run(
        ClippedGradientMechanism(BatchFunction(watched), (3,), CLIP),
        source,
        poisson(),
        Drawn([4, 5, 7]),
    )
    ((rows, membership),) = seen
    assert rows.shape == (N_SLOTS, 3)
    assert membership.shape == (N_SLOTS, 2)
    (filled,) = np.nonzero(rows.any(1))
    assert sorted(rows[filled].tolist()) == sorted(x[[4, 5]].tolist())
    np.testing.assert_array_equal(membership.any(1), rows.any(1))
    assert membership.sum(0).tolist() == [1, 1]


# --- what a function may tell --------------------------------------------------------------------


def test_events_that_say_something_else_are_refused():
    mechanism = ClippedGradientMechanism(BatchFunction(total), (3,), CLIP)
    known = PoissonSampledDpEvent(0.1, NonPrivateDpEvent())
    for event in (GaussianDpEvent(1.0), poisson(1.0), NonPrivateDpEvent(), known):
        mechanism.check(event)
    for event in (
        SlicedGaussianDpEvent(1.0, 3, 3),
        PoissonSampledDpEvent(0.1, SlicedGaussianDpEvent(1.0, 3, 3)),
        # Under replace_one that would be two records of a sum.
        PoissonSampledDpEvent(0.1, GaussianDpEvent(1.0)),
    ):
        with pytest.raises(PlanError, match=r"is a (Diameter|)GaussianDpEvent; it is planned as"):
            mechanism.check(event)


# --- what it costs -------------------------------------------------------------------------------


def test_a_step_costs_what_is_certified():
    """The worst pair, simulated: gradients are opposite with and without a record."""
    n_runs, sigma, rate = 40_000, 0.8, 0.3
    x = np.array([[-1.0], [1.0]])

    def opposite(rows, membership):
        # The first record, which is always there, has been joined by the second.
        return torch.where((rows > 0.5).any(), 1.0, -1.0)[None]

    present, absent = Rows(x), Rows(x, [0, -1])
    mechanism, noise = ClippedGradientMechanism(BatchFunction(opposite), (1,), CLIP), NoiseSource(0)
    coins = np.random.default_rng(0).random(n_runs) < rate

    def draws(source):
        # The first record's coin is told.
        values = [
            mechanism.run(
                source,
                poisson(0.0, rate),
                relation="zero_out",
                noise=Drawn([0, 1] if joins else [0]),
            ).value[0]
            for joins in (False, True)
        ]
        exact = np.where(coins, values[1], values[0])
        return exact + noise.rounded_gaussian(np.full(n_runs, 2**18 * 2 * CLIP * sigma)) / 2**18

    with_record = draws(present)
    # Without it the first record's gradient stays.
    without = -CLIP + np.random.default_rng(1).normal(size=n_runs) * 2 * CLIP * sigma
    assert not run(mechanism, absent, poisson(0.0, rate), Drawn([1])).value.any()
    for epsilon in (0.1, 0.3, 0.6):
        certified = ledger_delta([poisson(sigma, rate)], epsilon)
        grid = np.linspace(-2, 3, 200)
        found = max(
            (with_record > t).mean() - math.exp(epsilon) * (without > t).mean() for t in grid
        )
        assert found == pytest.approx(certified, abs=0.012)
    # A noise of Δσ, half of what it is, would cost more than is certified.
    assert ledger_delta([poisson(sigma / 2, rate)], 0.3) > 2 * ledger_delta(
        [poisson(sigma, rate)], 0.3
    )


def test_replacing_a_record_costs_what_is_certified():
    """Gradients with x and with x' are opposite to each other, and one of them to that without."""
    n_runs, sigma, rate = 40_000, 0.8, 0.3

    def sign(rows, membership):
        return torch.where((rows > 0.5).any(), 1.0, -1.0)[None]

    mechanism, noise = ClippedGradientMechanism(BatchFunction(sign), (1,), CLIP), NoiseSource(0)
    rng, draws = np.random.default_rng(0), []
    for x in (1.0, -1.0):
        source = Rows([[-1.0], [x]])
        values = [
            run(mechanism, source, poisson(0.0, rate), Drawn(drawn), "replace_one").value[0]
            for drawn in ([0], [0, 1])
        ]
        exact = np.where(rng.random(n_runs) < rate, values[1], values[0])
        std = mechanism.sensitivity("replace_one") * sigma
        draws.append(exact + noise.rounded_gaussian(np.full(n_runs, 2**18 * std)) / 2**18)
    for epsilon in (0.0, 0.3):
        certified = ledger_delta([poisson(sigma, rate)], epsilon, relation="replace_one")
        grid = np.linspace(-2, 3, 200)
        found = max((draws[0] > t).mean() - math.exp(epsilon) * (draws[1] > t).mean() for t in grid)
        assert found == pytest.approx(certified, abs=0.012)


# --- classes -------------------------------------------------------------------------------------
