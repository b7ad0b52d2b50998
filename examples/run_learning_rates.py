"""
Learning rates and optimisers of noisy Sinkhorn gradients
=========================================================

How much the accuracy depends on the learning rate and on the optimiser, on MNIST at ε = 10 and
δ = 1e-5: Figure 4a of Cao et al. (2021) on a small scale, with few steps. Images come from a folder
named by the environment variable ``SKDPGEN_DATA`` (which holds ``mnist.npz``), or else from OpenML.
The gallery does not run this script; each of its runs takes about a minute on a CPU::

    python examples/run_learning_rates.py
"""

# sphinx_gallery_thumbnail_path = '_static/pictures/run_learning_rates.png'
import argparse
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skdpgen import DPSinkhornGenerator
from skdpgen.encoders import PrivatePCA
from skdpgen.evaluation import train_on_synthetic_score
from skdpgen.releases import SampledGradients

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from public_images import load_mnist

parser = argparse.ArgumentParser()
parser.add_argument("--n-steps", type=int, default=3000)
parser.add_argument("--batch-size", type=int, default=25)
parser.add_argument("--seeds", type=int, default=1, help="for an experiment; not private releases")
options = parser.parse_args()

# %%
# Accuracies are those of logistic regression, trained on synthetic images only. The last 10,000
# training images are held out for it, and play public images.

data = load_mnist()
X, y = data.X_train[:-10_000], data.y_train[:-10_000]
X_held, y_held = data.X_train[-10_000:], data.y_train[-10_000:]


def score(optimizer, learning_rate, seed):
    generator = DPSinkhornGenerator(
        10.0,
        delta=1e-5,
        bounds=(0, 1),
        classes=range(10),
        clip_norm=9 / 28,
        release=SampledGradients(options.n_steps, options.batch_size),
        encoder=PrivatePCA(40),
        network="conv28",
        optimizer=optimizer,
        learning_rate=learning_rate,
        random_state=seed,
    ).fit(X, y)
    made = generator.sample(10_000)
    return train_on_synthetic_score(*made, X_held, y_held, random_state=0)


# %%
# A row for each run.

rates = {"adam": [0.0003, 0.001, 0.003, 0.01], "sgd": [0.01, 0.03, 0.1, 0.3]}
fig, ax = plt.subplots(figsize=(5, 3.5), layout="constrained")
for optimizer, values in rates.items():
    scores = np.empty((len(values), options.seeds))
    for i, rate in enumerate(values):
        for seed in range(options.seeds):
            scores[i, seed] = score(optimizer, rate, seed)
            print(f"{optimizer:>6}{rate:>8g}{seed:>4}{scores[i, seed]:>8.3f}", flush=True)
    ax.plot(values, scores.mean(1), marker="o", label=optimizer)
ax.set(xlabel="learning rate", ylabel="accuracy", xscale="log", ylim=(0, 1))
ax.legend()
fig.savefig("learning_rates.png", dpi=150)
