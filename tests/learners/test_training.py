"""The training loop: Adam, schedules, and what a fit imports."""

import itertools
from functools import partial

import pytest
import torch

from skdpgen.learners.training import (
    Adam,
    Descent,
    OwnOptimizer,
    Training,
    descend_to_noise,
    linear_decay,
    run_steps,
)

SHAPES = [(20, 7), (7,), (3, 2, 2), (1,)]


@pytest.mark.parametrize(
    ("optimizer", "reference", "options"),
    [
        (Adam, torch.optim.Adam, {"fused": True}),
        (partial(OwnOptimizer, torch.optim.SGD, learning_rate=1.0), torch.optim.SGD, {}),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_optimizers_equal_those_of_torch_in_every_bit(optimizer, reference, options, dtype):
    generator = torch.Generator().manual_seed(0)

    def draw():
        return [torch.randn(shape, generator=generator, dtype=dtype) for shape in SHAPES]

    ours = draw()
    theirs = [parameter.clone().requires_grad_() for parameter in ours]
    one = optimizer(ours)
    other = reference(theirs, lr=1.0, **options)
    for step in range(1000):
        gradients = [10.0 ** (step % 7 - 3) * gradient for gradient in draw()]
        rate = 0.01 * (1 - step / 1000)
        one.step(gradients, rate)
        other.param_groups[0]["lr"] = rate
        for parameter, gradient in zip(theirs, gradients, strict=True):
            parameter.grad = gradient.clone()
        other.step()
    assert all(map(torch.equal, ours, theirs))


def test_rates_rise_and_decay():
    point = torch.zeros(1, requires_grad=True)
    descent = Descent([point], 1.0, "sgd", warm_up=4)
    sizes = []

    def take_step(rate):
        before = point.item()
        loss = descent.step(point.sum(), rate)
        sizes.append(before - point.item())
        return loss

    losses = run_steps(take_step, 10)
    assert sizes == pytest.approx([0.25, 0.5, 0.75, *(1 - step / 10 for step in range(3, 10))])
    assert losses[1] == pytest.approx(-sizes[0])
    assert list(linear_decay([], 4, decay=0.5)) == [1, 1, 1, 0.5]


@pytest.mark.parametrize(("noise_energy", "n_steps"), [(-1.0, 1000), (0.7, 187)])
def test_descents_end_soon_after_the_loss_is_at_the_noise(noise_energy, n_steps):
    """The mean of 50 losses is below .7 at the check after step 150; a fourth more is the end."""
    count, point = itertools.count(), torch.zeros(1, requires_grad=True)
    values = [1.0 if i < 110 else 0.5 for i in range(1000)]
    losses = descend_to_noise(
        Descent([point], 0.1), lambda: point.sum() * 0 + values[next(count)], noise_energy, 1000
    )
    assert losses == pytest.approx(values[:n_steps])


def test_each_part_of_a_loss_is_down_to_its_noise():
    """One far below its energy does not make up for another above it."""
    parts = torch.tensor([0.1, 1.1], requires_grad=True)
    energies = torch.ones(2)
    for gap, n_steps in ((0.1, 300), (0.0, 62)):
        values = torch.tensor([0.1, 1.0 + gap])
        descent = Descent([parts], 0.1)
        descend_to_noise(descent, lambda v=values: 0 * parts + v, energies, 300)
        assert descent._n_steps == n_steps


def test_weights_are_averaged():
    linear = torch.nn.Linear(1, 1)
    training = Training(linear, 0.1, memory=0.5, optimizer="sgd")
    weights = []
    for _ in range(40):
        training.step(linear.weight.sum(), 1.0)
        weights.append(linear.weight.item())
    averaged = training.finish(lambda: torch.zeros(2, 1)).weight.item()
    recent = sum(weight * 0.5 ** (i + 1) for i, weight in enumerate(weights[::-1]))
    assert averaged == pytest.approx(recent, rel=1e-4)
    assert averaged > weights[-1]
