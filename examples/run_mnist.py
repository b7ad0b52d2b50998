"""
MNIST and Fashion-MNIST
=======================

28 × 28 images by a convolutional generator or as particles of a flow, at δ = 1e-5, without public
data. They come from a
folder named by the environment variable ``SKDPGEN_DATA`` (which holds ``mnist.npz`` and
``fashion_mnist.npz``), or else from OpenML. The gallery does not run this script; it takes minutes
on a CPU::

    python examples/run_mnist.py
    python examples/run_mnist.py --data fashion --release rows --n-steps 5000
    python examples/run_mnist.py --method flow --epsilon 1
    python examples/run_mnist.py --method sinkhorn
    python examples/run_mnist.py --method dpaf
"""

# sphinx_gallery_thumbnail_path = '_static/pictures/digits.png'
import argparse
import sys
import time
from pathlib import Path

import matplotlib.pyplot as plt

from skdpgen import (
    DPAFGenerator,
    DPSinkhornGenerator,
    DPSlicedWassersteinGenerator,
    DPSWFlowSampler,
)
from skdpgen.evaluation import train_on_synthetic_score
from skdpgen.losses import SemiDebiasedSinkhorn
from skdpgen.releases import SampledGradients

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from public_images import load_fashion_mnist, load_mnist

parser = argparse.ArgumentParser()
parser.add_argument("--data", choices=["mnist", "fashion"], default="mnist")
parser.add_argument(
    "--method", choices=["generator", "flow", "sinkhorn", "dpaf"], default="generator"
)
parser.add_argument("--release", default="sketch")
parser.add_argument("--epsilon", type=float, default=10.0)
parser.add_argument("--n-steps", type=int)
parser.add_argument("--batch-size", type=int)
parser.add_argument("--seed", type=int, help="for an experiment; not a private release")
options = parser.parse_args()

# %%
# The 60,000 training images play the private rows, the test images are public.

data = load_mnist() if options.data == "mnist" else load_fashion_mnist()

# %%
# ``bounds`` and ``classes`` follow from the format. The radius 9/28 is a public choice, too. Left
# out, as for the flow, it is found, and paid for. With bounds, a row's norm is the root mean square
# of its pixels, and 9/28 allows for 81 of the 784 pixels at full strength. ``"dp-pca"`` takes a
# fifth of the budget for the principal components and leaves the rest to that of the components:
# their sketch, or projections of single rows as in the DP-SWD paper, or gradients of the Sinkhorn
# divergence to single batches (``--method sinkhorn``, DP-Sinkhorn). Each of its steps costs
# privacy, and takes some 15 milliseconds on one core; many of them do best.
#
# ``--method dpaf`` is DPAF, repaired: noisy sums of a discriminator's features over 2,000 images, a
# second or two a step.

in_components = {"clip_norm": 9 / 28, "encoder": "dp-pca"}
methods = {
    "generator": DPSlicedWassersteinGenerator(
        release=options.release, network="conv28", **in_components
    ),
    # The same, by itself: its defaults find a radius, and choose an encoder, by the numbers of rows
    # and columns and by ε.
    "flow": DPSWFlowSampler(release=options.release),
    "sinkhorn": DPSinkhornGenerator(
        release=SampledGradients(n_steps=40_000, batch_size=50),
        # 0 is better on held-out training images, which play public ones; not on Fashion-MNIST.
        loss=SemiDebiasedSinkhorn(n_debias=0 if options.data == "mnist" else None),
        network="conv28",
        **in_components,
    ),
    "dpaf": DPAFGenerator(),
}
generator = methods[options.method].set_params(
    epsilon=options.epsilon,
    delta=1e-5,
    bounds=(0, 1),
    classes=range(10),
    random_state=options.seed,
    verbose=1,
)
# Where a release is made at each step, it says how many there are, and of how many rows.
at_each_step = options.method in ("sinkhorn", "dpaf") or options.release in ("rows", "resample")
for name in ("n_steps", "batch_size"):
    if (value := getattr(options, name)) is not None:
        generator.set_params(**{f"release__{name}" if at_each_step else name: value})
start = time.perf_counter()
generator.fit(data.X_train, data.y_train)
print(f"Fitted in {time.perf_counter() - start:.0f} s, {generator.n_iter_} steps.")
print(generator.privacy_)

# %%
# Classifiers that saw synthetic rows only.

# Further images of these methods are more of the same, which the networks would learn by heart.
is_alike = options.method in ("flow", "sinkhorn")
X_synthetic, y_synthetic = generator.sample(10_000 if is_alike else 60_000)
for classifier in ("logistic", "mlp", "cnn"):
    accuracy = train_on_synthetic_score(
        X_synthetic, y_synthetic, data.X_test, data.y_test, classifier, random_state=0
    )
    print(f"Test accuracy of {classifier!r} trained on synthetic rows: {accuracy:.3f}")

# %%
# Ten synthetic images of each class.

images = generator.sample(y=[label for label in range(10) for _ in range(10)])[0]
fig, axes = plt.subplots(10, 10, figsize=(7, 7))
for ax, image in zip(axes.T.flat, images, strict=True):
    ax.imshow(image.reshape(28, 28), cmap="gray_r", vmin=0, vmax=1)
    ax.set_axis_off()
fig.tight_layout()
fig.savefig(f"{options.data}.png", dpi=150)
