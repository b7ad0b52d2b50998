"""
Noisy sums of features (DPAF)
=============================

A discriminator's features of many rows are added up, and noise is added to the sum. The layers
after it are trained for nothing. Sums of many rows drown the noise: with 1,797 digits, of which
each step samples two hundred, there is not much to see, and this example shows just that. For
60,000 images see the benchmarks of forward aggregates.
"""

# sphinx_gallery_thumbnail_path = '_static/pictures/plot_dpaf.png'

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from skdpgen import DPAFGenerator
from skdpgen.releases import ForwardAggregates

X, y = load_digits(return_X_y=True)

# %%
# With and without noise
# ----------------------

samples = {}
for epsilon in (float("inf"), 10.0):
    generator = DPAFGenerator(
        epsilon=epsilon,
        delta=1e-5,
        bounds=(0, 16),
        classes=range(10),
        release=ForwardAggregates(n_steps=30, batch_size=200),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # both fits warn: of no privacy, of too few rows
        generator.fit(X, y)
    samples[f"ε = {epsilon:g}"] = generator.sample(y=list(range(10)))[0]

fig, axes = plt.subplots(2, 10, figsize=(8, 2))
for row, (title, images) in zip(axes, samples.items(), strict=True):
    for ax, image in zip(row, images, strict=True):
        ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        ax.set(xticks=[], yticks=[])
    row[0].set_ylabel(title)
fig.tight_layout()

# %%
# Releases
# --------
#
# One event for each step: the sum and the products of single rows share their coins.

print(generator.privacy_)
