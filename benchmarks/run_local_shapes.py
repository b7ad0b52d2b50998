"""Curves in the plane from locally noised points: the entropic loss beside the others.

Points of a half-circle, an ellipse and the outline of a rectangle are noised by their owners, at
ε = 5 (δ = 1e-4). Printed are the mean distance of generated points to the curve, and that of points
of the curve to the nearest of 2,000 generated ones, which tells how much of it is covered::

    python benchmarks/run_local_shapes.py --seeds 3
"""

import argparse
import time

import numpy as np
from scipy.spatial import cKDTree

from skdpgen import LDPEntropicGAN

parser = argparse.ArgumentParser()
parser.add_argument("--seeds", type=int, default=3)
parser.add_argument("--rows", type=int, default=100_000)
parser.add_argument("--steps", type=int, default=1500)
parser.add_argument("--batch-size", type=int, default=256)
parser.add_argument("--learning-rate", type=float, default=0.003)
parser.add_argument("--network", default="mlp")
parser.add_argument("--shapes", nargs="+", default=["half-circle", "ellipse", "rectangle"])
parser.add_argument("--mechanisms", nargs="+", default=["laplace", "gaussian"])
parser.add_argument("--losses", nargs="+", default=["entropic", "wasserstein"])
options = parser.parse_args()

# Public: every curve lies in these balls.
RADIUS = {"laplace": 2**0.5, "gaussian": 1.0}


def curve(shape, n_points=4000):
    """Return points along a curve."""
    t = np.linspace(0, 1, n_points)[:, None]
    if shape == "half-circle":
        return np.hstack([np.cos(np.pi * t), np.sin(np.pi * t)])
    if shape == "ellipse":
        return np.hstack([np.cos(2 * np.pi * t), 0.5 * np.sin(2 * np.pi * t)])
    corners = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1], [1, 1]]) * [0.8, 0.6]
    return np.hstack([np.interp(4 * t, np.arange(5), corners[:, i]) for i in range(2)])


def draw(points, n_rows, rng):
    """Draw points uniformly from a curve, by its length."""
    lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
    start = rng.choice(len(lengths), n_rows, p=lengths / lengths.sum())
    return points[start] + rng.uniform(size=(n_rows, 1)) * (points[start + 1] - points[start])


print(f"{'':<38}{'to the curve':>14}{'covered to':>12}{'noise':>7}{'seconds':>9}")
for shape in options.shapes:
    points = curve(shape)
    for mechanism in options.mechanisms:
        for loss in options.losses:
            for seed in range(options.seeds):
                X = draw(points, options.rows, np.random.RandomState(seed))
                gan = LDPEntropicGAN(
                    5.0,
                    1e-4,
                    release=mechanism,
                    clip_norm=RADIUS[mechanism],
                    loss=loss,
                    n_steps=options.steps,
                    batch_size=options.batch_size,
                    learning_rate=options.learning_rate,
                    network=options.network,
                    latent_dim=2,
                    random_state=seed,
                )
                start = time.perf_counter()
                gan.fit(X)
                seconds = time.perf_counter() - start
                made = gan.sample(2000)
                far = cKDTree(points).query(made)[0].mean()
                covered = cKDTree(made).query(points)[0].mean()
                print(
                    f"{shape}, {mechanism}, {loss}, {seed}".ljust(38)
                    + f"{far:>14.3f}{covered:>12.3f}{gan.sigma_:>7.3f}{seconds:>9.0f}",
                    flush=True,
                )
