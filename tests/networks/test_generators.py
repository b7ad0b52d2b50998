import pytest
import torch
from torch import nn

from skdpgen.arrays.box import BoxFormat
from skdpgen.networks import GENERATORS
from skdpgen.networks.generators import build, find_factory, find_shaped

FIXED = [name for name in GENERATORS if name != "conv"]
SIZES = {"mlp": 7, "conv28": 784}


@pytest.mark.parametrize("name", FIXED)
def test_shapes(name):
    network = build(GENERATORS[name], 13, SIZES[name], seed=0)
    made = network(torch.randn(3, 13))
    assert made.shape == (3, SIZES[name])
    assert torch.isfinite(made).all()
    unit = SIZES[name] > 100
    assert getattr(GENERATORS[name], "unit_output", False) == unit
    if unit:
        assert 0 <= made.min() < made.max() <= 1


def test_conv28_has_the_size_of_its_table():
    # "about 180,000 parameters" for a code of 100 numbers or so
    network = build(GENERATORS["conv28"], 110, 784, seed=0)
    assert 170_000 < sum(p.numel() for p in network.parameters()) < 190_000


@pytest.mark.parametrize("name", [name for name in FIXED if SIZES[name] > 100])
def test_images_have_one_size(name):
    with pytest.raises(ValueError, match="X has 100"):
        build(GENERATORS[name], 13, 100, seed=0)


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 24, 24), (1, 16, 16), (3, 9, 64)])
def test_networks_for_images_of_any_shape(shape):
    n_pixels = shape[0] * shape[1] * shape[2]
    format = BoxFormat(n_pixels, image_shape=shape, bounds=(0, 1))
    network = build(find_shaped("conv", format.images), 5, n_pixels, seed=0)
    assert network(torch.randn(3, 5)).shape == (3, n_pixels)

    with pytest.raises(ValueError, match="give image_shape="):
        find_shaped("conv", BoxFormat(n_pixels, image_shape=None).images)


def test_build_follows_its_seed_and_no_other():
    state = torch.get_rng_state()
    first, second, other = (build(GENERATORS["mlp"], 5, 3, seed) for seed in (1, 1, 2))
    assert torch.equal(state, torch.get_rng_state())
    assert torch.equal(first[0].weight, second[0].weight)
    assert not torch.equal(first[0].weight, other[0].weight)


def test_build_restores_the_global_generator_when_a_factory_fails():
    state = torch.get_rng_state()

    def failing(n_inputs, n_outputs):
        torch.randn(3)
        raise RuntimeError("no network")

    with pytest.raises(RuntimeError, match="no network"):
        build(failing, 5, 3, seed=0)
    assert torch.equal(state, torch.get_rng_state())


def test_factories():
    assert find_factory("mlp") is GENERATORS["mlp"]
    assert find_factory(nn.Linear) is nn.Linear
    assert build(nn.Linear, 5, 3, seed=0).weight.shape == (3, 5)
    with pytest.raises(TypeError, match="must return a torch module"):
        build(lambda n_inputs, n_outputs: "network", 5, 3, seed=0)


def test_modules_in_place_of_factories_and_outputs_that_are_no_tensor_are_named():
    with pytest.raises(TypeError, match="network must be a factory"):
        build(nn.Linear(20, 3), 20, 3, seed=0)

    class Two(nn.Linear):
        def forward(self, codes):
            return super().forward(codes), 1

    with pytest.raises(TypeError, match="must return one tensor; got tuple"):
        build(Two, 20, 3, seed=0)
