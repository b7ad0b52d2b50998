"""DP-MERF, written from its paper, as a peer of `run_images.py`.

Noisy means, per class, of 10,000 random Fourier features of a Gaussian kernel are released at once,
and a small convolutional generator is trained until its images have them [1]_. Where the paper
leaves a choice, it is made for the peer: the sensitivity is that of a record which becomes null
(half of that in the paper), the classes are known to be equally frequent, and the length scale is
the published one.

.. [1] F. Harder, K. Adamczewski, M. Park, "DP-MERF: differentially private mean embeddings with
   random features for practical privacy-preserving data generation", AISTATS 2021.
"""

import math

import torch
from torch import nn

from skdpgen.privacy import calibrate_gaussian

SQUARED_LENGTHS = {"mnist": 105.0, "fashion": 127.0}


def make_generator(n_codes):
    """Return a network from codes and one-hot labels to images of 28 × 28 pixels in [0, 1]."""
    return nn.Sequential(
        nn.Linear(n_codes + 10, 200),
        nn.BatchNorm1d(200),
        nn.ReLU(),
        nn.Linear(200, 784),
        nn.BatchNorm1d(784),
        nn.ReLU(),
        nn.Unflatten(1, (16, 7, 7)),
        nn.Upsample(scale_factor=2, mode="bilinear"),
        nn.Conv2d(16, 8, 5, 1, 2),
        nn.ReLU(),
        nn.Upsample(scale_factor=2, mode="bilinear"),
        nn.Conv2d(8, 1, 5, 1, 2),
        nn.Sigmoid(),
        nn.Flatten(),
    )


class MERF:
    """DP-MERF with the interface of a generator of the package."""

    def __init__(self, epsilon, delta, squared_length, seed, n_features=10_000, n_codes=5):
        self.epsilon, self.delta, self.squared_length = epsilon, delta, squared_length
        self.seed, self.n_features, self.n_codes = seed, n_features, n_codes

    def fit(self, X, y, n_passes=10, batch_size=500):
        """Release the noisy means of each class, and train the generator."""
        torch.manual_seed(self.seed)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        frequencies = torch.randn(784, self.n_features // 2) / math.sqrt(self.squared_length)
        frequencies = frequencies.to(device)

        def embed(images):
            angles = images @ frequencies
            return torch.cat([angles.cos(), angles.sin()], 1) * (2 / self.n_features) ** 0.5

        sums = torch.zeros(10, self.n_features, device=device)
        X, y = torch.tensor(X, dtype=torch.float32), torch.as_tensor(y).long()
        for rows, labels in zip(X.split(1000), y.split(1000), strict=True):
            sums.index_add_(0, labels.to(device), embed(rows.to(device)))
        noise = calibrate_gaussian(self.epsilon, self.delta) * torch.randn(sums.shape)
        means = (sums + noise.to(device)) / len(X)
        self.generator = make_generator(self.n_codes).to(device)
        optimizer = torch.optim.Adam(self.generator.parameters(), 0.01)
        for _ in range(n_passes):
            for _ in range(len(X) // batch_size):
                labels = torch.randint(10, (batch_size,), device=device)
                made = torch.zeros_like(means)
                made = made.index_add(0, labels, embed(self._draw(labels)))
                optimizer.zero_grad()
                (made / batch_size - means).square().sum().backward()
                optimizer.step()
            for group in optimizer.param_groups:
                group["lr"] *= 0.9
        return self

    def _draw(self, labels):
        codes = torch.randn(len(labels), self.n_codes, device=labels.device)
        return self.generator(torch.cat([codes, nn.functional.one_hot(labels, 10)], 1))

    @torch.no_grad()
    def sample(self, n_samples, random_state=0):
        """Return images and labels."""
        torch.manual_seed(random_state)
        labels = torch.arange(n_samples)[torch.randperm(n_samples)] % 10
        device = next(self.generator.parameters()).device
        self.generator.eval()
        parts = [self._draw(part.to(device)).cpu() for part in labels.split(1000)]
        return torch.cat(parts).double().numpy(), labels.numpy()
