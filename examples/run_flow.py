"""
Flow with fresh slices, flow with slices drawn once, generator
===============================================================

The comparison of the DPSWflow paper. Half of the training images are taken for public: an
autoencoder with codes of 8 numbers on the unit sphere is fitted to them, and a small classifier,
whose hidden layer is the feature space of the Fréchet distance. The other half is private. With no
privacy, and at ε = 10 and 5 (δ = 1e-5), this fits

- DPSWflow-r: particles, fresh directions and rows at each step (``release="resample"``),
- DPSWflow: particles, directions and rows drawn once (``release="presample"``),
- DPSWgen: a generator network (256, 512, 256), fresh directions and rows at each step,
- and, beyond the paper, particles from a slice sketch.

Printed are the Fréchet distance between 10,000 synthetic images and the test images, and the test
accuracy of a logistic regression on synthetic images. Images come from the folder that
``SKDPGEN_DATA`` names, or else from OpenML. The gallery does not run this script; it takes an hour
on a CPU::

    python examples/run_flow.py --data fashion --seeds 3
"""

# sphinx_gallery_thumbnail_path = '_static/pictures/run_flow.png'
import argparse
import math
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from skdpgen import DPSlicedWassersteinGenerator, DPSWFlowSampler
from skdpgen.evaluation import frechet_distance, train_on_synthetic_score
from skdpgen.preprocessing import Autoencoder

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from public_images import load_fashion_mnist, load_mnist

warnings.simplefilter("ignore", ConvergenceWarning)
parser = argparse.ArgumentParser()
parser.add_argument("--data", choices=["mnist", "fashion"], default="mnist")
parser.add_argument("--seeds", type=int, default=3)
parser.add_argument("--epsilons", type=float, nargs="+", default=[math.inf, 10.0, 5.0])
options = parser.parse_args()

# %%
# Public halves and private ones.

data = load_mnist() if options.data == "mnist" else load_fashion_mnist()
half = len(data.X_train) // 2
X_public, y_public = data.X_train[:half], data.y_train[:half]
X_private, y_private = data.X_train[half:], data.y_train[half:]
autoencoder = Autoencoder(n_components=8, random_state=0).fit(X_public)
classifier = MLPClassifier((64,), max_iter=10, random_state=0).fit(X_public, y_public)


def features(X):
    """Return the hidden layer of the public classifier."""
    return np.maximum(X @ classifier.coefs_[0] + classifier.intercepts_[0], 0)


def report(name, X, y, seconds):
    distance = frechet_distance(features(X), features(data.X_test))
    accuracy = train_on_synthetic_score(X, y, data.X_test, data.y_test, random_state=0)
    print(f"{name:<28}{distance:>9.2f}{accuracy:>9.3f}{seconds:>8.0f}", flush=True)


print(f"{'':<28}{'Fréchet':>9}{'LR':>9}{'seconds':>8}")
# Each row is encoded on its own, by a public map: once, rather than at each step.
Z_private = autoencoder.transform(X_private)
decoded = autoencoder.inverse_transform(Z_private[:10_000])
report("private rows", X_private[:10_000], y_private[:10_000], 0)
report("private rows, decoded", decoded, y_private[:10_000], 0)

# %%
# The three methods of the paper, and the sketch.

flow = partial(DPSWFlowSampler, n_particles=3000)
METHODS = {
    "flow-r": partial(flow, release="resample"),
    "flow": partial(flow, release="presample"),
    "generator": partial(DPSlicedWassersteinGenerator, release="rows", network="dpswgen"),
    "sketch": flow,
}
for epsilon in options.epsilons:
    for name, method in METHODS.items():
        for seed in range(options.seeds):
            model = method(epsilon, 1e-5, classes=range(10), random_state=seed)
            start = time.perf_counter()
            Z, y = model.fit(Z_private, y_private).sample(10_000)
            seconds = time.perf_counter() - start
            X = autoencoder.inverse_transform(Z)
            report(f"{name}, eps = {epsilon:g}, seed {seed}", X, y, seconds)
