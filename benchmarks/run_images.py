"""Images by default parameters: accuracy of classifiers that saw 10,000 synthetic ones only.

    python benchmarks/run_images.py --data fashion --epsilon 1 --seeds 1

`epsilon`, δ = 1e-5, the bounds and the classes are given, and nothing else. Classifiers are those
of `train_on_synthetic_score`. To choose anything, use --held-out: the last training images are not
fitted then, and play test images. --slices gives another number of them than the default.
"""

import argparse
import time
import warnings

import matplotlib.pyplot as plt
import numpy as np

from skdpgen import DPSWFlowSampler, SliceSketch
from skdpgen.datasets import load_fashion_mnist, load_mnist, load_usps
from skdpgen.evaluation import train_on_synthetic_score

LOADERS = {"mnist": load_mnist, "fashion": load_fashion_mnist, "usps": load_usps}
CLASSIFIERS = ("logistic", "mlp", "cnn")


def save_picture(sampler, name):
    """Save ten images of each class, a row each."""
    images, _ = sampler.sample(y=np.repeat(range(10), 10), random_state=0)
    side = round(images.shape[1] ** 0.5)
    grid = images.reshape(10, 10, side, side).swapaxes(1, 2).reshape(10 * side, 10 * side)
    plt.imsave(name, grid, cmap="gray_r", vmin=0, vmax=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=list(LOADERS), default=["mnist", "fashion"])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 10.0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--slices", type=int, help="None: the default")
    parser.add_argument("--held-out", type=int, default=0)
    parser.add_argument("--pictures", help="folder for a picture of each fit")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for seed in options.seeds:
        for name in options.data:
            data, n = LOADERS[name](), options.held_out
            train, test = (data.X_train, data.y_train), (data.X_test, data.y_test)
            if n:
                train, test = zip(*((part[:-n], part[-n:]) for part in train), strict=True)
            for epsilon in options.epsilon:
                sampler = DPSWFlowSampler(
                    epsilon,
                    1e-5,
                    bounds=(0, 1),
                    classes=range(10),
                    release=SliceSketch(options.slices),
                    random_state=seed,
                )
                start, used = time.perf_counter(), time.process_time()
                sampler.fit(*train)
                wall, used = time.perf_counter() - start, time.process_time() - used
                made = sampler.sample(10_000, random_state=0)
                scores = [
                    100 * train_on_synthetic_score(*made, *test, classifier, random_state=0)
                    for classifier in CLASSIFIERS
                ]
                if options.pictures:
                    save_picture(sampler, f"{options.pictures}/{name}-{epsilon:g}-{seed}.png")
                print(
                    f"{name} ε={epsilon:g} seed {seed}:",
                    " · ".join(f"{score:.1f}" for score in scores),
                    f"({sampler.release_}, {sampler.n_iter_} steps, {used:.0f} s of a core, "
                    f"{wall:.0f} s)",
                    flush=True,
                )


if __name__ == "__main__":
    main()
