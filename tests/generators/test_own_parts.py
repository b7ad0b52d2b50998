"""Own losses and optimisers: what they see of private rows, and what is refused for nothing."""

import math

import numpy as np
import pytest
import torch
from dp_accounting import NonPrivateDpEvent
from numpy.testing import assert_allclose

from skdpgen import (
    DPSinkhornGenerator,
    DPSlicedWassersteinGenerator,
    DPSWFlowSampler,
    LDPEntropicGAN,
    PrivacyBudget,
)
from skdpgen.learners.gradients import CrossGradient
from skdpgen.losses import EntropicWasserstein, OwnLoss, SemiDebiasedSinkhorn
from skdpgen.privacy import (
    BatchFunction,
    ClippedGradientMechanism,
    Curator,
    NoiseSource,
    Plan,
)
from skdpgen.releases import SampledGradients, SliceSketch


class Keeping:
    """A loss that changes its inputs, and draws rows and numbers into what it keeps."""

    def __init__(self):
        self.kept = []

    def __call__(self, generated, real):
        self.kept.append(real.clone())
        loss = (generated - torch.cat(self.kept).mean(0) * torch.rand(())).square().sum()
        real.zero_()
        return loss


def energy_distance(generated, real):
    within = torch.cdist(generated, generated).mean()
    return 2 * torch.cdist(generated, real).mean() - within


@pytest.mark.catches(
    "learners.gradients:CrossGradient.__call__", "copy.deepcopy(self.loss)", "self.loss"
)
def test_an_own_loss_follows_from_one_batch_alone():
    """Also one that keeps rows: else a record would show in steps whose sample lacks it."""
    keeping = Keeping()
    loss = OwnLoss(keeping, n_classes=2)
    rows, membership = torch.rand(2, 5, 3, dtype=torch.float64), torch.eye(2)[[0, 1, 1, 0, 1]]
    function = CrossGradient(loss, rows[0].clone(), torch.arange(5) % 2, 0.0, lambda rows: rows)
    before = rows.clone()
    first = function(rows[1], membership)
    function(rows[0], membership)
    assert torch.equal(first, function(rows[1], membership))
    assert torch.equal(rows, before)
    assert not keeping.kept
    loss.apart(rows[0], None, 0)
    assert not torch.equal(first, function(rows[1], membership))  # another public seed


def test_any_loss_is_clipped_as_a_whole_and_failures_are_zero():
    def fails(rows):
        raise ValueError("Smith")

    sizes = {}
    for name, factor in {
        "huge": lambda r: 1e30,
        "nan": lambda r: r.sum() * torch.nan,
        "fails": fails,
    }.items():
        loss = OwnLoss(lambda generated, real, factor=factor: (generated * factor(real)).sum())
        function = CrossGradient(loss, torch.ones(4, 3), torch.zeros(4, dtype=int), 0.0, abs)
        mechanism = ClippedGradientMechanism(BatchFunction(function), (4, 3), 0.5)
        plan = Plan((("clipped gradient", NonPrivateDpEvent()),), math.inf, 1e-5)
        with Curator(np.ones((6, 3)), plan=plan, noise=NoiseSource(0)) as curator:
            sizes[name] = np.linalg.norm(curator.release(mechanism).value)
    assert sizes == {"huge": pytest.approx(0.5, rel=1e-4), "nan": 0.0, "fails": 0.0}


KEPT: list = []


def remember_in_a_global(generated, real):
    KEPT.append(real)
    return (generated * torch.cat(KEPT).mean(0)).sum()


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda generated, real: 1.0, "one number"),
        (lambda generated, real: (generated - real[:1]).square(), "one number"),
        (lambda generated, real: generated.sum(), "not depend on the real rows"),
        (lambda generated, real: (generated.sum() - real.sum() - 1e6).sqrt(), "NaN"),
        (lambda generated, real: (generated.sort(0)[0] - real.sort(0)[0]).abs().sum(), "size of"),
        (remember_in_a_global, "keep nothing"),
        (SemiDebiasedSinkhorn, "or a function"),
    ],
)
def test_losses_that_cannot_be_used_are_refused_for_nothing(loss, message):
    with PrivacyBudget(9.0, 1e-4) as budget, pytest.raises((TypeError, ValueError), match=message):
        DPSinkhornGenerator(bounds=(0, 1), loss=loss).fit(np.ones((50, 3)))
    assert budget.spent == 0


class OwnSinkhorn(SemiDebiasedSinkhorn):
    """A subclass."""


def test_own_parts_train_and_optimisers_see_released_gradients_alone(monkeypatch):
    released, steps = [], []
    release = ClippedGradientMechanism.postprocess
    monkeypatch.setattr(
        ClippedGradientMechanism,
        "postprocess",
        lambda self, *args: released.append(release(self, *args)) or released[-1],
    )

    class Seen:
        """As those of torch, whose import takes seconds."""

        def __init__(self, parameters, lr):
            self.param_groups = [{"params": parameters, "lr": lr}]

        def step(self):
            steps.append([parameter.grad.clone() for parameter in self.param_groups[0]["params"]])

        def zero_grad(self):
            pass

    X, y = np.random.default_rng(0).random((80, 3)), np.arange(80) % 2
    params = dict(bounds=(0, 1), classes=[0, 1], random_state=0, optimizer=Seen)
    weights = SampledGradients(n_steps=2, perturb="parameters")
    for loss in (energy_distance, OwnSinkhorn(reg=0.1)):
        steps.clear(), released.clear()
        generator = DPSinkhornGenerator(5.0, loss=loss, release=weights, **params).fit(X, y)
        assert generator.sample(4)[0].shape == (4, 3)
        # The first step is that of the trial.
        for seen, noisy in zip(steps[1:], released, strict=True):
            flat = torch.cat([gradient.flatten() for gradient in seen]).double()
            assert_allclose(flat, noisy.value, rtol=1e-5, atol=1e-6)
    with pytest.raises(ValueError, match="optimizer fails on made-up rows"):
        DPSinkhornGenerator(bounds=(0, 1), optimizer=lambda parameters, lr: None).fit(X)
    with pytest.raises(TypeError, match=r"called as optimizer\(parameters, lr=0.001\)"):
        DPSinkhornGenerator(bounds=(0, 1), optimizer=lambda parameters: None).fit(X)


class OwnEntropic(EntropicWasserstein):
    """A subclass."""


class OwnSketch(SliceSketch):
    """A subclass that states less than its mechanism."""

    def sensitivity(self, relation, n_classes):
        return 1e-3


def test_subclasses_are_taken_and_lower_no_cost():
    X, params = np.random.default_rng(0).random((60, 2)), dict(bounds=(0, 1), random_state=0)
    local = dict(n_steps=2, batch_size=8, **params)
    same = [LDPEntropicGAN(2.0, loss=loss, **local).fit(X) for loss in ("entropic", OwnEntropic())]
    assert_allclose(same[0].loss_curve_, same[1].loss_curve_)
    own = LDPEntropicGAN(2.0, loss=energy_distance, **local).fit(X)
    assert own.reg_ is None
    assert own.sample(3).shape == (3, 2)
    # The noise is that of the mechanism, whatever a release says of it.
    fits = [
        DPSWFlowSampler(2.0, clip_norm=1.0, n_steps=1, release=r(9, 3), **params).fit(X)
        for r in (SliceSketch, OwnSketch)
    ]
    assert fits[0].privacy_.events == fits[1].privacy_.events
    values = [fit.release_.published.values[-1].sums for fit in fits]
    assert_allclose(*values)


class Images(torch.nn.Module):
    """Makes images (n, 1, 4, 4)."""

    unit_output = True

    def __init__(self, n_inputs, n_outputs):
        super().__init__()
        self.layer = torch.nn.Linear(n_inputs, n_outputs)

    def forward(self, codes):
        return torch.sigmoid(self.layer(codes)).view(-1, 1, 4, 4)


def test_networks_may_return_images():
    X = np.random.default_rng(0).random((60, 16))
    params = dict(bounds=(0, 1), network=Images, n_steps=2)
    for generator in (DPSlicedWassersteinGenerator(**params), LDPEntropicGAN(**params)):
        assert generator.fit(X).sample(3).shape == (3, 16)
