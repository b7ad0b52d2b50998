"""
MNIST at ε = 10
===============

28 × 28 digits by a convolutional generator, at ε = 10 and δ = 1e-5, without public data. The images
come from a folder named by the environment variable ``SKDPGEN_DATA`` (which holds ``mnist.npz``),
or else from OpenML. The gallery does not run this script; it takes minutes on a CPU.
"""

import time

import matplotlib.pyplot as plt

from skdpgen import DPSlicedWassersteinGenerator
from skdpgen.datasets import load_mnist
from skdpgen.evaluation import train_on_synthetic_score

# %%
# The 60,000 training images play the private rows, the test images are public.

data = load_mnist()

# %%
# ``bounds`` and ``classes`` follow from the format. The radius 9/28 is a public choice: with
# bounds, a row's norm is the root mean square of its pixels, and 9/28 allows for 81 of the 784
# pixels at full strength. ``"dp-pca"`` takes a fifth of the budget for the principal components
# and leaves the rest to the sketch of the components.

generator = DPSlicedWassersteinGenerator(
    epsilon=10.0,
    delta=1e-5,
    bounds=(0, 1),
    clip_norm=9 / 28,
    classes=range(10),
    encoder="dp-pca",
    generator="conv28",
    verbose=1,
)
start = time.perf_counter()
generator.fit(data.X_train, data.y_train)
print(f"Fitted in {time.perf_counter() - start:.0f} s, {generator.n_iter_} steps.")
print(generator.privacy_)

# %%
# Classifiers that saw synthetic rows only.

X_synthetic, y_synthetic = generator.sample(60_000)
for classifier in ("logistic", "mlp"):
    accuracy = train_on_synthetic_score(
        X_synthetic, y_synthetic, data.X_test, data.y_test, classifier, random_state=0
    )
    print(f"Test accuracy of {classifier!r} trained on synthetic rows: {accuracy:.3f}")

# %%
# Ten synthetic images of each class.

images = generator.sample(y=[digit for digit in range(10) for _ in range(10)])[0]
fig, axes = plt.subplots(10, 10, figsize=(7, 7))
for ax, image in zip(axes.T.flat, images, strict=True):
    ax.imshow(image.reshape(28, 28), cmap="gray_r", vmin=0, vmax=1)
    ax.set_axis_off()
fig.tight_layout()
fig.savefig("mnist.png", dpi=150)
