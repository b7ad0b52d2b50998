"""
CIFAR-10 by noisy Sinkhorn gradients
====================================

32 × 32 colour images by a residual generator (``resnet32``, of the benchmarks), which learns from
noisy gradients of a Sinkhorn divergence, in noisy principal components of the images, at δ = 1e-5
and without public data. Images come from a folder named by the environment variable
``SKDPGEN_DATA`` (which holds ``cifar10_12k.npz``, a subset), or else from OpenML. The gallery does
not run this script, which takes long on a CPU::

    python examples/run_cifar10.py
    python examples/run_cifar10.py --epsilon inf --n-steps 500
"""

# sphinx_gallery_thumbnail_path = '_static/pictures/run_cifar10.png'
import argparse
import sys
import time
from pathlib import Path

import matplotlib.pyplot as plt

from skdpgen import DPSinkhornGenerator
from skdpgen.encoders import PrivatePCA
from skdpgen.evaluation import train_on_synthetic_score
from skdpgen.releases import SampledGradients

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from networks import resnet32
from public_images import load_cifar10

parser = argparse.ArgumentParser()
parser.add_argument("--epsilon", type=float, default=10.0)
parser.add_argument("--n-steps", type=int, default=2000)
parser.add_argument("--batch-size", type=int, default=50)
parser.add_argument("--n-components", type=int, default=40)
parser.add_argument("--seed", type=int, help="for an experiment; not a private release")
options = parser.parse_args()

# %%
# ``bounds`` and ``classes`` follow from the format: rows are 3 × 32 × 32 numbers in [0, 1].

data = load_cifar10()
generator = DPSinkhornGenerator(
    options.epsilon,
    delta=1e-5,
    bounds=(0, 1),
    classes=range(10),
    release=SampledGradients(options.n_steps, options.batch_size),
    encoder=PrivatePCA(options.n_components),
    network=resnet32,
    random_state=options.seed,
    verbose=1,
)
start = time.perf_counter()
generator.fit(data.X_train, data.y_train)
print(f"Fitted in {time.perf_counter() - start:.0f} s, {generator.n_iter_} steps.")
print(generator.privacy_)

# %%
# Classifiers that saw synthetic rows only. By chance 10 of 100 guesses are right.

X_synthetic, y_synthetic = generator.sample(10_000)
for classifier in ("logistic", "mlp", "cnn"):
    accuracy = train_on_synthetic_score(
        X_synthetic, y_synthetic, data.X_test, data.y_test, classifier, random_state=0
    )
    print(f"Test accuracy of {classifier!r} trained on synthetic rows: {accuracy:.3f}")

# %%
# Ten synthetic images of each class, in a column.

images = generator.sample(y=[label for label in range(10) for _ in range(10)])[0]
images = images.reshape(10, 10, 3, 32, 32).transpose(1, 3, 0, 4, 2).reshape(320, 320, 3)
fig, ax = plt.subplots(figsize=(7, 7))
ax.imshow(images.clip(0, 1))
ax.set_axis_off()
fig.tight_layout()
fig.savefig("cifar10.png", dpi=150)
