"""
Quickstart: synthetic digits
============================

Fit a generator to the 8 × 8 digits that come with scikit-learn, read its certificate, draw
synthetic digits, and compare classifiers that were trained on synthetic and on real rows.

The data set is small: 1,347 rows are treated as private. The noise of a release does not depend on
the number of rows, so few rows mean a poor ratio of signal to noise at the same ε.
"""

# sphinx_gallery_thumbnail_path = '_static/pictures/plot_quickstart.png'

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skdpgen import DPSlicedWassersteinGenerator
from skdpgen.evaluation import train_on_synthetic_score

# %%
# Private and public rows
# -----------------------
#
# Three quarters of the rows play the private data. The rest plays a public test set: scores are
# computed from it outside the privacy ledger, which is allowed for public rows only.

X, y = load_digits(return_X_y=True)
X_private, X_public, y_private, y_public = train_test_split(
    X, y, test_size=0.25, random_state=0, stratify=y
)

# %%
# Public parameters
# -----------------
#
# All parameters are treated as public. They must come from knowledge about the format of the data,
# never from the private rows:
#
# - ``bounds``: pixels are numbers from 0 to 16, by the format.
# - ``classes``: the ten digits.
#
# Other facts are found by noisy counts and sums, which a small share of the budget pays for.
# Here that is the radius of the rows; bounds would be found, too.
#
# ``random_state`` stays None. The noise then comes from the operating system's entropy, so each
# run gives other rows. An int would make the run reproducible, and no private release.

generator = DPSlicedWassersteinGenerator(
    epsilon=5.0,
    delta=1e-5,
    bounds=(0, 16),
    classes=range(10),
)
generator.fit(X_private, y_private)

# %%
# The certificate
# ---------------
#
# It is computed from the releases that were made. The generator can be published with it.

print(generator.privacy_)

# %%
# Synthetic rows
# --------------
#
# Sampling costs no privacy, however many rows are drawn.

X_synthetic, y_synthetic = generator.sample(2000)

for name, rows, labels in [
    ("real rows", X_private, y_private),
    ("synthetic rows", X_synthetic, y_synthetic),
]:
    accuracy = train_on_synthetic_score(rows, labels, X_public, y_public, random_state=0)
    print(f"Accuracy of logistic regression trained on {name}: {accuracy:.3f}")

# %%
# A picture
# ---------
#
# One column per class: three real digits above, three synthetic ones below. The real ones are from
# the public rows.

fig, axes = plt.subplots(6, 10, figsize=(8, 5.2))
for digit in range(10):
    images = [*X_public[y_public == digit][:3], *generator.sample(y=[digit] * 3)[0]]
    for ax, image in zip(axes[:, digit], images, strict=True):
        ax.imshow(image.reshape(8, 8), cmap="gray_r", vmin=0, vmax=16)
        ax.set(xticks=[], yticks=[])
axes[1, 0].set_ylabel("real")
axes[4, 0].set_ylabel("synthetic")
fig.suptitle(f"Real digits, and synthetic ones at ε = {generator.epsilon_:.3g}")
fig.tight_layout()
fig.savefig("quickstart.png", dpi=150)
