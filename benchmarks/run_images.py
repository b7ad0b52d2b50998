"""Images by default parameters: accuracy of classifiers that saw 10,000 synthetic ones only.

    python benchmarks/run_images.py --data fashion --epsilon 1 --seeds 1

`epsilon`, δ, the bounds and the classes are given, and nothing else. Classifiers are those of
`train_on_synthetic_score`. To choose anything, use --held-out: the last training images are not
fitted then, and play test images. --slices gives another number of them than the default.

--residual is nearer to how others judge images: δ = 1 / (n log n), and one residual network, which
is small and sees 10,000 images ten times, where they take the best of three large ones.

--data letters kuzushiji are two sets of 10,000 images that no default was chosen on, 2,500 of them
for tests: the test parts of notMNIST, printed letters in MNIST's format, and of Kuzushiji-MNIST,
written ones. Their files, as they were published, are looked for in the folder SKDPGEN_DATA.
"""

import argparse
import gzip
import math
import os
import time
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.model_selection import train_test_split
from sklearn.utils import Bunch
from torch import nn

from skdpgen import DPSWFlowSampler
from skdpgen.datasets import (
    load_cifar10,
    load_fashion_mnist,
    load_mnist,
    load_office_caltech,
    load_usps,
)
from skdpgen.evaluation import train_on_synthetic_score
from skdpgen.releases import SliceSketch


def load_office():
    """Return the 2,533 pictures of all four domains of Office-Caltech10, a quarter for tests."""
    data = load_office_caltech("images32")
    return split(*(np.concatenate([data[name][part] for name in data.domains]) for part in "Xy"))


def load_letters():
    """Return the letters A to J of notMNIST's test part, t10k-*-ubyte.gz in a folder notmnist."""
    folder = Path(os.environ["SKDPGEN_DATA"], "notmnist")
    X, y = (
        np.frombuffer(gzip.decompress((folder / name).read_bytes()), np.uint8, offset=head)
        for name, head in (("t10k-images-idx3-ubyte.gz", 16), ("t10k-labels-idx1-ubyte.gz", 8))
    )
    return split(X.reshape(len(y), -1) / 255, y)


def load_kuzushiji():
    """Return ten hiragana of Kuzushiji-MNIST's test part, kmnist-test-{imgs,labels}.npz."""
    folder = Path(os.environ["SKDPGEN_DATA"])
    X, y = (np.load(folder / f"kmnist-test-{name}.npz")["arr_0"] for name in ("imgs", "labels"))
    return split(X.reshape(len(y), -1) / 255, y)


def split(X, y):
    """Return images, a quarter of them for tests."""
    parts = train_test_split(X, y, random_state=0, stratify=y)
    return Bunch(**dict(zip(("X_train", "X_test", "y_train", "y_test"), parts, strict=True)))


LOADERS = {
    "mnist": load_mnist,
    "fashion": load_fashion_mnist,
    "usps": load_usps,
    "cifar10": load_cifar10,
    "office": load_office,
    "letters": load_letters,
    "kuzushiji": load_kuzushiji,
}
CLASSIFIERS = ("logistic", "mlp", "cnn")


def save_picture(sampler, name):
    """Save ten images of each class, a row each."""
    images, _ = sampler.sample(y=np.repeat(range(10), 10), random_state=0)
    n_channels = 3 if images.shape[1] == 3 * 32**2 else 1
    side = round((images.shape[1] / n_channels) ** 0.5)
    grid = images.reshape(10, 10, n_channels, side, side).transpose(0, 3, 1, 4, 2)
    grid = grid.reshape(10 * side, 10 * side, n_channels).clip(0, 1)
    plt.imsave(name, grid if n_channels == 3 else grid[..., 0], cmap="gray_r", vmin=0, vmax=1)


class Residual(nn.Module):
    """Two convolutions beside a shortcut."""

    def __init__(self, n_in, n_out, stride):
        super().__init__()
        self.path = nn.Sequential(
            nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False),
            nn.BatchNorm2d(n_out),
            nn.ReLU(),
            nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False),
            nn.BatchNorm2d(n_out),
        )
        self.shortcut = nn.Conv2d(n_in, n_out, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, images):
        return torch.relu(self.path(images) + self.shortcut(images))


def score_residual(X, y, X_test, y_test, n_epochs=10, batch_size=128):
    """Return the accuracy of a residual network of seven layers, trained by Adam."""
    torch.manual_seed(0)
    n_channels = 3 if X.shape[1] == 3 * 32**2 else 1
    side = round((X.shape[1] / n_channels) ** 0.5)
    network = nn.Sequential(
        *(nn.Conv2d(n_channels, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU()),
        *(Residual(32, 32, 1), Residual(32, 64, 2)),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)),
    )
    X, X_test = (
        torch.tensor(rows, dtype=torch.float32).view(-1, n_channels, side, side)
        for rows in (X, X_test)
    )
    y, y_test = torch.as_tensor(y).long(), torch.as_tensor(y_test).long()
    optimizer = torch.optim.Adam(network.parameters(), 1e-3)
    for _ in range(n_epochs):
        for batch in torch.randperm(len(X)).split(batch_size):
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(X[batch]), y[batch]).backward()
            optimizer.step()
    network.eval()
    with torch.no_grad():
        guesses = torch.cat([network(part).argmax(1) for part in X_test.split(1000)])
    return float((guesses == y_test).double().mean())


def score_all(X, y, X_test, y_test, n_rows=10_000):
    """Return accuracies × 100 of classifiers that saw the first rows."""
    return [
        100 * train_on_synthetic_score(X[:n_rows], y[:n_rows], X_test, y_test, c, random_state=0)
        for c in CLASSIFIERS
    ]


def join(scores):
    return " · ".join(f"{score:.1f}" for score in scores)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=list(LOADERS), default=["mnist", "fashion"])
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0, 10.0])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--slices", type=int, help="None: the default")
    parser.add_argument("--held-out", type=int, default=0)
    parser.add_argument("--residual", action="store_true")
    parser.add_argument("--real", action="store_true", help="what as many real images have, first")
    parser.add_argument("--pictures", help="folder for a picture of each fit")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for seed in options.seeds:
        for name in options.data:
            data, n = LOADERS[name](), options.held_out
            train, test = (data.X_train, data.y_train), (data.X_test, data.y_test)
            if n:
                train, test = zip(*((part[:-n], part[-n:]) for part in train), strict=True)
            n_train = len(train[0])
            if options.real and seed == options.seeds[0]:
                print(f"{name}, real:", join(score_all(*train, *test)), flush=True)
            delta = 1 / (n_train * math.log(n_train)) if options.residual else 1e-5
            for epsilon in options.epsilon:
                sampler = DPSWFlowSampler(
                    epsilon,
                    delta,
                    bounds=(0, 1),
                    classes=range(10),
                    release=SliceSketch(options.slices),
                    random_state=seed,
                )
                start, used = time.perf_counter(), time.process_time()
                sampler.fit(*train)
                wall, used = time.perf_counter() - start, time.process_time() - used
                made = sampler.sample(10_000, random_state=0)
                scores = score_all(*made, *test)
                if options.residual:
                    scores.append(100 * score_residual(*made, *test))
                if options.pictures:
                    save_picture(sampler, f"{options.pictures}/{name}-{epsilon:g}-{seed}.png")
                print(
                    f"{name} ε={epsilon:g} seed {seed}:",
                    join(scores),
                    f"({sampler.release_}, {sampler.n_iter_} steps, {used:.0f} s of a core, "
                    f"{wall:.0f} s)",
                    flush=True,
                )


if __name__ == "__main__":
    main()
