import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from torch import nn

from skdpgen.networks.autoencoders import infer_image_shape, make_autoencoder
from skdpgen.networks.generators import build

SHAPES = [None, (1, 28, 28), (3, 32, 32), (3, 64, 64), (1, 8, 9), (3, 24, 24), (1, 40, 33)]


def make(shape, n_components=5):
    n_features = 7 if shape is None else int(np.prod(shape))
    return build(
        lambda n_inputs, _: make_autoencoder(n_inputs, n_components, shape),
        n_features,
        n_features,
        seed=0,
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_codes_are_on_the_sphere_and_rows_in_the_cube(shape):
    network = make(shape)
    rows = torch.rand(3, 7 if shape is None else int(np.prod(shape)))
    codes, decoded = network.encode(rows), network(rows)
    assert codes.shape == (3, 5)
    assert_allclose(codes.detach().norm(dim=1), 1, rtol=1e-6)
    assert decoded.shape == rows.shape
    assert 0 <= decoded.min() < decoded.max() <= 1
    # The decoder sees directions only.
    assert_allclose(network.decode(7 * codes).detach(), decoded.detach(), atol=1e-6)


@pytest.mark.parametrize("shape", [(1, 28, 28), (3, 64, 64)])
def test_rows_are_mapped_on_their_own(shape):
    network = make(shape)
    rows = torch.rand(6, int(np.prod(shape)))
    other = rows.clone()
    other[1:] = 0
    assert_allclose(network.encode(rows)[0].detach(), network.encode(other)[0].detach(), atol=1e-6)
    assert_allclose(network(rows)[0].detach(), network(other)[0].detach(), atol=1e-6)


def test_sizes_are_those_of_the_paper():
    network = make((1, 28, 28), 8)
    outputs = {}
    for name, module in network.named_modules():
        module.register_forward_hook(lambda m, _, out, name=name: outputs.update({name: out}))
    network(torch.rand(2, 784))
    convolutions = [
        tuple(outputs[name].shape[1:])
        for name, module in network.named_modules()
        if isinstance(module, nn.Conv2d | nn.ConvTranspose2d)
    ]
    assert convolutions == [
        *[(3, 32, 32), (32, 16, 16), (32, 16, 16), (32, 16, 16)],
        *[(32, 16, 16), (32, 16, 16), (32, 32, 32), (1, 32, 32)],
    ]
    linear = [m for m in network.modules() if isinstance(m, nn.Linear)]
    assert [(m.in_features, m.out_features) for m in linear] == [(8192, 8), (8, 8192)]


@pytest.mark.parametrize("shape", [(1, 7, 28), (3, 65, 28)])
def test_other_images_are_refused(shape):
    with pytest.raises(ValueError, match="sides of 8 to 64 pixels"):
        make_autoencoder(int(np.prod(shape)), 5, shape)


def test_shapes_are_inferred():
    inferred = [infer_image_shape(n_features) for n_features in (784, 1024, 12288, 783)]
    assert inferred == [(1, 28, 28), (1, 32, 32), (3, 64, 64), None]
