"""
64 × 64 colour images at the size of CelebA
===========================================

Rakotomamonjy & Ralaivola (2021) train their largest generator on images of 64 × 64 pixels, with
k = 2000 projections of an encoding with 8192 columns. This script trains that generator
(``conv64``, of the benchmarks) at that size, for a few steps, by releases of single rows. The
images are those of CIFAR-10, each pixel repeated: this is about time, memory and noise, not about
pretty pictures. They come from a folder named by the environment variable ``SKDPGEN_DATA`` (which
holds ``cifar10_12k.npz``), or else from OpenML. The gallery does not run this script; it takes
minutes on a CPU::

    python examples/run_conv64.py
    python examples/run_conv64.py --epsilon inf
    python examples/run_conv64.py --n-projections 90 --n-steps 300
    python examples/run_conv64.py --columns 12288
"""

# sphinx_gallery_thumbnail_path = '_static/pictures/run_conv64.png'
import argparse
import resource
import sys
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

from skdpgen import DPSlicedWassersteinGenerator
from skdpgen.releases import SlicedRows

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from networks import conv64
from public_images import load_cifar10

parser = argparse.ArgumentParser()
parser.add_argument("--columns", type=int, choices=[8192, 12288], default=8192)
parser.add_argument("--network", choices=["conv64", "mlp"], default="conv64")
parser.add_argument("--epsilon", type=float, default=10.0)
parser.add_argument("--n-projections", type=int, default=2000)
parser.add_argument("--n-steps", type=int, default=40)
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--seed", type=int, help="for an experiment; not a private release")
options = parser.parse_args()

# %%
# A public encoder from 12288 to 8192 columns
# -------------------------------------------
#
# Colours are rotated to one of brightness and two of hue, and neighbouring pixels of a line share
# their hues, as in digital video (4:2:2). Nothing is learnt from data. The map has orthonormal
# rows, so it lengthens no vector. Rows are measured from grey, on a scale on which black and white
# have norm 1.

SIDE, N_PIXELS, N_ENCODED = 64, 3 * 64 * 64, 2 * 64 * 64


class SharedHues:
    """Encoder of flat images in [0, 1], channels first."""

    colours = torch.tensor([[1.0, 1.0, 1.0], [1.0, -1.0, 0.0], [1.0, 1.0, -2.0]])
    colours = colours / colours.norm(dim=1, keepdim=True)

    def encode(self, images):
        """Encode a tensor of images."""
        images = (2 * images - 1) / N_PIXELS**0.5
        images = torch.einsum("ij,njp->nip", self.colours.to(images), images.unflatten(1, (3, -1)))
        hues = images[:, 1:].unflatten(2, (-1, 2)).sum(3) / 2**0.5
        return torch.cat([images[:, 0], hues.flatten(1)], dim=1)

    def transform(self, X):
        return self.encode(torch.as_tensor(X)).numpy()

    def inverse_transform(self, rows):
        rows = torch.as_tensor(rows)
        hues = rows[:, SIDE**2 :].unflatten(1, (2, -1)).repeat_interleave(2, dim=2) / 2**0.5
        images = torch.cat([rows[:, None, : SIDE**2], hues], dim=1)
        images = torch.einsum("ij,nip->njp", self.colours.to(images), images).flatten(1)
        return ((images * N_PIXELS**0.5 + 1) / 2).numpy()


# %%
# The radius is a public choice: pixels that are 0.3 away from grey, in the root mean square, have
# norm 0.6.

CLIP_NORM = 0.6
encoder = SharedHues()


# %%
# ``conv64`` makes images. With an encoder a network has to make encoded rows, so the encoder
# becomes its last layer. Rows are in the unit ball there, and outputs are on a scale on which
# columns have a size of about 1.


class EncodedImages(nn.Module):
    def __init__(self, images):
        super().__init__()
        self.images = images

    def forward(self, codes):
        return encoder.encode(self.images(codes)) * (N_ENCODED**0.5 / CLIP_NORM)


def conv64_encoded(n_inputs, n_outputs):
    return EncodedImages(conv64(n_inputs, N_PIXELS))


# %%
# 10,000 images play the private rows, the test images are public.

data = load_cifar10()
X, X_public = (
    rows.reshape(-1, *data.image_shape).repeat(2, axis=2).repeat(2, axis=3).reshape(len(rows), -1)
    for rows in (data.X_train, data.X_test)
)

encoded, makes_images = options.columns == N_ENCODED, options.network == "conv64"
network = (conv64_encoded if encoded else conv64) if makes_images else options.network
generator = DPSlicedWassersteinGenerator(
    epsilon=options.epsilon,
    delta=1e-5,
    bounds=(0, 1),
    clip_norm=CLIP_NORM,
    encoder=encoder if encoded else None,
    network=network,
    latent_dim=32,
    release=SlicedRows(options.n_projections, options.batch_size, options.n_steps),
    random_state=options.seed,
    verbose=1,
)
start = time.perf_counter()
generator.fit(X)
seconds = time.perf_counter() - start
print(f"Fitted in {seconds:.0f} s, {seconds / generator.n_iter_:.1f} s a step.")
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(f"Largest memory: {peak:.2f} GiB, of which {X.nbytes / 2**30:.2f} GiB are the images.")
print(generator.privacy_)

# %%
# The loss is a squared distance between samples that have noise of standard deviation ``sigma_`` on
# each projection. Two such samples of one distribution are apart, too. With k = 2000, ε = 10 and
# few steps on 10,000 rows, that is all there is to see. At ε = inf the loss falls, and with fewer
# projections, each with less noise, it falls a little at ε = 10, too.

loss = np.array(generator.loss_curve_)
tenth = max(1, len(loss) // 10)
print(f"Noise on a projection: {generator.sigma_:.3f}.")
print(f"Loss: {loss[:tenth].mean():.3e} at first, {loss[-tenth:].mean():.3e} at last.")
print(f"Distance to public images: {-generator.score(X_public):.5f}.")

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.5))
left.plot(loss)
left.set(xlabel="step", ylabel="loss")
images = generator.sample(16).reshape(4, 4, 3, SIDE, SIDE).transpose(0, 3, 1, 4, 2)
right.imshow(images.reshape(4 * SIDE, 4 * SIDE, 3))
right.set_axis_off()
fig.tight_layout()
fig.savefig("conv64.png", dpi=150)
