"""
Colour images of 32, 64 and 128 pixels by DPAF
==============================================

Sums of a discriminator's features, with noise, are all that leaves 2,533 colour photographs of ten
kinds of objects (Office-Caltech10, 32 × 32 pixels). ``--size`` repeats their pixels, to see what
larger images cost: this is about time, memory and noise, not about pretty pictures. The photographs
come from a folder named by the environment variable ``SKDPGEN_DATA``, which holds
``office_caltech_images32.npz``. The gallery does not run this script; it takes minutes on a CPU::

    python examples/run_dpaf_images.py
    python examples/run_dpaf_images.py --size 64 --n-steps 20
    python examples/run_dpaf_images.py --size 128 --n-steps 20
    python examples/run_dpaf_images.py --epsilon inf
"""

# sphinx_gallery_thumbnail_path = '_static/pictures/run_dpaf_images.png'
import argparse
import resource
import sys
import time
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skdpgen import DPAFGenerator
from skdpgen.releases import ForwardAggregates

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from public_images import load_office_caltech

parser = argparse.ArgumentParser()
parser.add_argument("--size", type=int, choices=[32, 64, 128], default=32)
parser.add_argument("--epsilon", type=float, default=10.0)
parser.add_argument("--n-steps", type=int, default=200)
parser.add_argument("--batch-size", type=int, default=500)
parser.add_argument("--seed", type=int, help="for an experiment; not a private release")
options = parser.parse_args()

# %%
# The photographs of all four domains. Numbers from 0 to 255 are what files hold.

data, times = load_office_caltech("images32"), options.size // 32
images = np.concatenate([data[domain].X for domain in data.domains]).reshape(-1, 3, 32, 32)
images = np.rint(255 * images).astype(np.uint8).repeat(times, axis=2).repeat(times, axis=3)
X, y = images.reshape(len(images), -1), np.concatenate([data[domain].y for domain in data.domains])

# %%
# Rows of 3 × 32 × 32 numbers with bounds are taken to be square colour images. Layers follow from
# their size.

generator = DPAFGenerator(
    epsilon=options.epsilon,
    delta=1e-5,
    bounds=(0, 255),
    classes=range(10),
    release=ForwardAggregates(options.n_steps, options.batch_size),
    random_state=options.seed,
    verbose=1,
)
start = time.perf_counter()
generator.fit(X, y)
seconds = time.perf_counter() - start
print(f"Fitted in {seconds:.0f} s, {seconds / generator.n_iter_:.2f} s a step.")
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
print(f"Largest memory: {peak:.2f} GiB, of which {X.nbytes / 2**30:.2f} GiB are the images.")
print(generator.privacy_)

# %%
# The mean features of generated images come closer to those that were released.

loss = np.array(generator.loss_curve_)
print(f"Squared distance: {loss[:20].mean():.3f} at first, {loss[-20:].mean():.3f} at last.")

made = generator.sample(y=[label for label in range(10) for _ in range(10)])[0]
made = made.reshape(10, 10, 3, options.size, options.size).transpose(1, 3, 0, 4, 2)
fig, ax = plt.subplots(figsize=(7, 7))
ax.imshow(made.reshape(10 * options.size, 10 * options.size, 3) / 255)
ax.set_axis_off()
fig.tight_layout()
fig.savefig(f"dpaf{options.size}.png", dpi=150)
