"""
Images from locally noised images
=================================

Pixels of MNIST are mapped to [-1, 1]; every image is noised by its owner with Gaussian noise of
standard deviation σ. A small generator (two hidden layers of 500 units, a code of 2 numbers,
batches of 200) is trained with each of three losses: the entropic one with λ = 2σ², the
unregularised one, and the Sinkhorn divergence. Printed is W₂ between 1,000 generated images and
1,000 test images, against σ: Figure 5 of Reshetova, Chen & Özgür (2023). ε is that of the whole box
[-1, 1]⁷⁸⁴ at δ = 1e-4, whose diameter is 56: far too large to protect anybody.

``--sizes`` prints W₂ against the number of images, at the first σ (Figure 11).
``--pictures FILE`` draws images at the paper's settings of its higher-privacy experiments, with the
ε that the radius for a sensitivity would give (as in the paper) and the one that holds.

Images come from the folder that ``SKDPGEN_DATA`` names, or else from OpenML. The gallery does not
run this script::

    python examples/run_local_mnist.py --seeds 3
"""

# sphinx_gallery_thumbnail_path = '_static/pictures/run_local_mnist.png'
import argparse
import math
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from dp_accounting import GaussianDpEvent
from scipy.optimize import linear_sum_assignment
from torch import nn

from skdpgen import LDPEntropicGAN
from skdpgen.privacy import ledger_epsilon
from skdpgen.releases import LocalNoise
from skdpgen.transport import pairwise_cost

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from public_images import load_mnist

parser = argparse.ArgumentParser()
parser.add_argument("--seeds", type=int, default=3)
parser.add_argument("--rows", type=int, default=60_000)
parser.add_argument("--steps", type=int, default=3000)
parser.add_argument("--sigmas", type=float, nargs="+", default=[0.5, 1.0, 2.0, 4.0])
parser.add_argument("--sizes", type=int, nargs="+")
parser.add_argument("--pictures")
options = parser.parse_args()

DELTA, BOUNDS = 1e-4, (0, 1)
LOSSES = ["entropic", "wasserstein", "sinkhorn_divergence"]
# δ is the paper's, and above 1 / 60,000; the library says so at each fit.
warnings.filterwarnings("ignore", message="delta = ")
data = load_mnist()


def small_network(n_inputs, n_outputs):
    """The generator of section 4.5."""
    return nn.Sequential(
        nn.Linear(n_inputs, 500),
        nn.ReLU(),
        nn.Linear(500, 500),
        nn.ReLU(),
        nn.Linear(500, n_outputs),
        nn.Sigmoid(),
    )


small_network.unit_output = True


def epsilon_of(sigma):
    """Return ε for noise σ on the box, whose half-diameter is √784 = 28."""
    event = GaussianDpEvent(sigma / math.sqrt(784))
    return ledger_epsilon([event], DELTA, relation="replace_one")


def distance_to_clean(gan):
    """W₂ between generated and clean images, in units of [-1, 1]."""
    cost = pairwise_cost(2 * gan.sample(1000), 2 * data.X_test[:1000].astype(float))
    return math.sqrt(cost[linear_sum_assignment(cost)].mean())


def measure(sigma, loss, n_rows, seed):
    rows = np.random.RandomState(seed).permutation(len(data.X_train))[:n_rows]
    gan = LDPEntropicGAN(
        epsilon_of(sigma),
        DELTA,
        release="gaussian",
        bounds=BOUNDS,
        loss=loss,
        batch_size=200,
        n_steps=options.steps,
        learning_rate=0.001,
        network=small_network,
        latent_dim=2,
        random_state=seed,
    )
    start = time.perf_counter()
    gan.fit(data.X_train[rows])
    print(
        f"{sigma:>6g}{loss:>22}{len(rows):>8}{seed:>6}{gan.epsilon_:>9.0f}"
        f"{distance_to_clean(gan):>8.2f}{time.perf_counter() - start:>9.0f}",
        flush=True,
    )


def draw_pictures(path):
    """Draw images at the paper's settings."""
    import matplotlib.pyplot as plt

    settings = {
        # 0.8 of the cosine coefficients become 0; L1 ball of radius 140, scale 140 / 35.
        140.0: LocalNoise("laplace", basis="dct", keep=0.2),
        20.0: LocalNoise("gaussian"),
    }
    fig, axes = plt.subplots(2, 1, figsize=(8, 2.6))
    for ax, (radius, release) in zip(axes, settings.items(), strict=True):
        stated = 35.0 if release.mechanism == "laplace" else 30.0
        if release.mechanism == "laplace":
            epsilon = 2 * stated
        else:
            # The classical formula at the radius, as in the paper.
            sigma = radius * math.sqrt(2 * math.log(1.25 / DELTA)) / stated
            event = GaussianDpEvent(sigma / radius)
            epsilon = ledger_epsilon([event], DELTA, relation="replace_one")
        gan = LDPEntropicGAN(
            epsilon,
            DELTA,
            release=release,
            clip_norm=radius,
            bounds=BOUNDS,
            image_shape=(28, 28),
            batch_size=400,
            n_steps=options.steps,
            network="conv28",
            latent_dim=100,
            random_state=0,
        ).fit(data.X_train[: options.rows])
        images = gan.sample(40).reshape(2, 20, 28, 28).transpose(0, 2, 1, 3).reshape(56, 560)
        ax.imshow(images, cmap="gray")
        title = (
            f"{release.mechanism}: ε = {stated:g} by the radius, {gan.epsilon_:.0f} by the diameter"
        )
        ax.set(title=title, xticks=[], yticks=[])
        print(title, f"W2 {distance_to_clean(gan):.2f}", flush=True)
    fig.tight_layout()
    fig.savefig(path)


if options.pictures:
    draw_pictures(options.pictures)
else:
    print(f"{'σ':>6}{'loss':>22}{'rows':>8}{'seed':>6}{'ε':>9}{'W2':>8}{'seconds':>9}")
    for n_rows in options.sizes or [options.rows]:
        for sigma in options.sigmas[:1] if options.sizes else options.sigmas:
            for loss in LOSSES[:1] if options.sizes else LOSSES:
                for seed in range(options.seeds):
                    measure(sigma, loss, n_rows, seed)
