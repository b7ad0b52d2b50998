"""Autoencoder of public images, with codes on the unit sphere: Sebag et al., 2023, appendix C.2."""

import math

import numpy as np
import torch
from torch import nn

from skdpgen.learners.training import Descent, run_steps
from skdpgen.mechanisms.noise import NoiseSource
from skdpgen.networks.generators import seeded

# Training steps, in whole epochs, and the rows of each.
_N_STEPS, _BATCH_SIZE = 2400, 50
# Rows that are encoded or decoded at once.
_BLOCK = 500


class Autoencoder(nn.Module):
    """Autoencoder of flat grey images of 28×28 pixels in [0, 1].

    The paper prints its second convolution with a kernel of 4, stride 2 and no padding, which takes
    32×32 to 15×15, but the decoder starts at 16×16. A kernel of 2 gives that, as in the decoder's
    own layer of stride 2.
    """

    def __init__(self, n_components):
        super().__init__()
        self.encoder = nn.Sequential(
            *(nn.Unflatten(1, (1, 28, 28)), nn.ZeroPad2d(2)),
            *(nn.Conv2d(1, 3, 3, 1, 1), nn.ReLU()),
            *(nn.Conv2d(3, 32, 2, 2, 0), nn.ReLU()),
            *(nn.Conv2d(32, 32, 3, 1, 1), nn.ReLU()),
            *(nn.Conv2d(32, 32, 3, 1, 1), nn.ReLU()),
            *(nn.Flatten(), nn.Linear(32 * 16 * 16, n_components)),
        )
        self.decoder = nn.Sequential(
            *(nn.Linear(n_components, 32 * 16 * 16), nn.ReLU(), nn.Unflatten(1, (32, 16, 16))),
            *(nn.Conv2d(32, 32, 3, 1, 1), nn.ReLU()),
            *(nn.Conv2d(32, 32, 3, 1, 1), nn.ReLU()),
            *(nn.ConvTranspose2d(32, 32, 2, 2, 0), nn.ReLU()),
            *(nn.Conv2d(32, 1, 3, 1, 1), nn.Sigmoid()),
            *(nn.ZeroPad2d(-2), nn.Flatten()),
        )
        # Convolutions on CPUs are much faster in this memory format.
        self.to(memory_format=torch.channels_last)

    def encode(self, images):
        return nn.functional.normalize(self.encoder(images), dim=1)

    def decode(self, codes):
        return self.decoder(nn.functional.normalize(codes, dim=1))

    @torch.no_grad()
    def apply_to(self, rows, method):
        """Return what `encode` or `decode` gives for an array of rows."""
        blocks = torch.as_tensor(np.asarray(rows), dtype=torch.float32).split(_BLOCK)
        return torch.cat([method(block) for block in blocks]).numpy()


def fit_autoencoder(X, n_components, seed):
    """Minimise the cross-entropy of the reconstruction of public images; return the network."""
    seeds, images = NoiseSource(seed), torch.as_tensor(np.asarray(X), dtype=torch.float32)
    with seeded(seeds.seed()):
        network = Autoencoder(n_components)
    n_batches = math.ceil(len(images) / _BATCH_SIZE)
    n_epochs = max(1, round(_N_STEPS / n_batches))
    n_steps, generator = n_epochs * n_batches, seeds.torch_generator()
    descent = Descent(network.parameters(), 0.003, "adam", 0.1 * n_steps)

    def draw():
        for _ in range(n_epochs):
            yield from torch.randperm(len(images), generator=generator).split(_BATCH_SIZE)

    batches = draw()

    def take_step(rate):
        rows = images[next(batches)]
        loss = nn.functional.binary_cross_entropy(network.decode(network.encode(rows)), rows)
        descent.step(loss, rate)
        return loss.detach()

    run_steps(take_step, n_steps, label="autoencoder", verbose=0)
    return network.eval()
