"""
A classifier for private rows without labels
============================================

Public rows with labels, and private rows without, which look different: here three classes in the
plane, all of them shifted. The adapter learns synthetic target rows from one noisy sketch, and then
one representation in which both domains look alike.
"""

# sphinx_gallery_thumbnail_path = '_static/pictures/plot_adaptation.png'

import warnings

import matplotlib.pyplot as plt
import numpy as np

from skdpgen.adaptation import DPSWDDomainClassifier

# %%
# Two domains
# -----------
#
# The target's labels are used at the end only, to see how good the classifier is.

rng = np.random.default_rng(0)
centres = np.array([[-2.0, 0.0], [0.0, 2.0], [2.0, 0.0]])


def draw(n, shift):
    """Return n points around the centres, shifted, and which centre is theirs."""
    y = rng.integers(3, size=n)
    return centres[y] + 0.45 * rng.normal(size=(n, 2)) + shift, y


X_source, y_source = draw(1500, [0.0, 0.0])
X_target, y_target = draw(2000, [1.2, -0.6])

# %%
# Adapt
# -----
#
# Bounds that hold for both domains are public. The source needs no privacy. A fit without a target
# costs nothing, and shows what adaptation brings.

bounds = ((-5, -4), (6, 6))
classifier = DPSWDDomainClassifier(epsilon=1.0, delta=1e-5, bounds=bounds, n_steps=300)
classifier.fit(X_source, y_source, X_target=X_target)
print(f"Adapted, ε = {classifier.epsilon_:.3g}: {classifier.score(X_target, y_target):.3f}")

plain = DPSWDDomainClassifier(bounds=bounds, n_steps=300)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it warns that nothing is adapted
    plain.fit(X_source, y_source)
print(f"From the source alone: {plain.score(X_target, y_target):.3f}")

# %%
# Cross-validation cuts every fit parameter that has as many rows as ``X``. A target that is meant
# whole is given as ``X_target=Whole(X_target)``, of ``skdpgen.adaptation``.

# %%
# The synthetic target
# --------------------
#
# Synthetic target rows, on the right, stand in for the private ones. They have no classes.

synthetic = classifier.target_sampler_.sample(1000)
fig, axes = plt.subplots(1, 3, figsize=(9, 3), sharex=True, sharey=True)
axes[0].scatter(*X_source[:1000].T, s=3, c=y_source[:1000], cmap="viridis")
axes[0].set_title("public source")
axes[1].scatter(*X_target[:1000].T, s=3, color="grey")
axes[1].set_title("private target")
axes[2].scatter(*synthetic.T, s=3, c=classifier.predict(synthetic), cmap="viridis")
axes[2].set_title("synthetic target, predicted")
fig.tight_layout()

# %%
# Alignment can also do harm, and without labels of the target nobody sees it. The guide on the
# adapter says what protects.

print(classifier.privacy_)
