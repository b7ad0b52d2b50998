"""
A curve from locally noised points
==================================

Owners noise their points before they send them. At ε = 5 Gaussian noise is wider than the figure,
and yet the curve comes back: the entropic Wasserstein distance, with a regularisation that matches
the noise, is least at the distribution *without* noise. This is Figures 1, 6 and 7 of Reshetova,
Chen & Özgür (2023), with the diameter of the ball as sensitivity, where the paper has the radius.
"""

# sphinx_gallery_thumbnail_path = '_static/pictures/plot_local_shapes.png'

import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy.spatial import cKDTree

from skdpgen import LDPEntropicGAN
from skdpgen.preprocessing import LocalPrivatizer
from skdpgen.privacy import PrivacyLeakWarning

# The paper's δ, which for 100,000 owners is large: δ·n = 10, as a warning says.
warnings.filterwarnings("ignore", message="delta = ")
# Seeds, so that the pictures stay the same: such noise protects nobody.
warnings.simplefilter("ignore", PrivacyLeakWarning)
N_ROWS, EPSILON, DELTA = 100_000, 5.0, 1e-4

# %%
# Two curves
# ----------
#
# Both lie in the unit disc, and their points have an L1 norm of at most √2. These radii are public.

RADIUS = {"laplace": 2**0.5, "gaussian": 1.0}


def curve(shape, n_points=2000):
    """Return points along a curve."""
    t = np.linspace(0, 1, n_points)[:, None]
    if shape == "half-circle":
        return np.hstack([np.cos(np.pi * t), np.sin(np.pi * t)])
    corners = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1], [1, 1]]) * [0.8, 0.6]
    return np.hstack([np.interp(4 * t, np.arange(5), corners[:, i]) for i in range(2)])


def draw(points, n_rows, rng):
    """Draw points uniformly from a curve, by its length."""
    lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
    start = rng.choice(len(lengths), n_rows, p=lengths / lengths.sum())
    return points[start] + rng.uniform(size=(n_rows, 1)) * (points[start + 1] - points[start])


# %%
# At the owners, and after
# ------------------------
#
# Each point is noised once, by Laplace noise in an L1 ball or by Gaussian noise in a disc. Then
# two networks are trained on the same noised points: with the entropic loss, and without
# regularisation.

SHAPES = ["half-circle", "rectangle"]
fig, axes = plt.subplots(2, 6, figsize=(11, 4), sharex=True, sharey=True)
for i, shape in enumerate(SHAPES):
    points = curve(shape)
    X = draw(points, N_ROWS, np.random.RandomState(i))
    for j, mechanism in enumerate(RADIUS):
        privatizer = LocalPrivatizer(
            mechanism=mechanism,
            epsilon=EPSILON,
            delta=DELTA,
            clip_norm=RADIUS[mechanism],
            random_state=i,
        )
        noised = privatizer.fit_transform(X)
        distances = {}
        panels = [("noised", noised[:2000])]
        for loss, n_steps in [("entropic", 300), ("wasserstein", 100)]:
            gan = LDPEntropicGAN(loss=loss, n_steps=n_steps, latent_dim=2, random_state=i)
            gan.fit_privatized(noised, privatizer=privatizer)
            made = gan.sample(2000)
            distances[loss] = cKDTree(points).query(made)[0].mean()
            panels.append((loss, made))
        for ax, (name, rows) in zip(axes[i, 3 * j : 3 * j + 3], panels, strict=True):
            ax.scatter(*rows.T, s=1, alpha=0.5)
            ax.plot(*points.T, "k", lw=0.8)
            ax.set(xlim=(-2.5, 2.5), ylim=(-2.5, 2.5), aspect="equal")
            if i == 0:
                ax.set_title(f"{mechanism}, {name}", fontsize=8)
        print(
            f"{shape}, {mechanism}: noise {privatizer.sigma_:.2f}, distance to the curve "
            f"{distances['entropic']:.3f} entropic, {distances['wasserstein']:.3f} unregularised"
        )
fig.tight_layout()

# %%
# Without regularisation the network learns the *noised* points.
#
# The cost
# --------
#
# The certificate is about each single record, towards everybody, the server included. If a trusted
# party shuffles the noised points, those who see only the shuffled ones learn far less; this is
# proved for Laplace noise.

privatizer = LocalPrivatizer(mechanism="laplace", epsilon=EPSILON, clip_norm=RADIUS["laplace"]).fit(
    X
)
print(privatizer.privacy_)
print(f"Shuffled among 400,000: ε = {privatizer.privacy_.shuffled(400_000, 1e-6):.3f}")
