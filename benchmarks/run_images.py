"""Images by default parameters: accuracy of classifiers that saw 10,000 synthetic ones only.

    python benchmarks/run_images.py --data fashion --epsilon 1 --seeds 1

`epsilon`, δ, the bounds and the classes are given, and nothing else. Classifiers are those of
`train_on_synthetic_score`. To choose anything, use --held-out: the last training images are not
fitted then, and play test images. --slices gives another number of them than the default.

--protocol short and benchmark are as others judge images: δ = 1 / (n log n), and residual networks.
"benchmark" takes the best of three, by held-out synthetic images, after 50 passes over 60,000
images; on a CPU give less by --passes and --images. "short" is one network of seven layers that
sees 10,000 images ten times, in a minute.

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
from peers_images import MERF, SQUARED_LENGTHS
from public_images import (
    load_cifar10,
    load_fashion_mnist,
    load_mnist,
    load_office_caltech,
    load_usps,
)
from sklearn.model_selection import train_test_split
from sklearn.utils import Bunch
from torch import nn

from skdpgen import DPSWFlowSampler
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
    """Two convolutions beside a shortcut, the second one in groups."""

    def __init__(self, n_in, n_out, stride, groups=1):
        super().__init__()
        self.path = nn.Sequential(
            nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False),
            nn.BatchNorm2d(n_out),
            nn.ReLU(),
            nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False, groups=groups),
            nn.BatchNorm2d(n_out),
        )
        same = n_in == n_out and stride == 1
        self.shortcut = nn.Identity() if same else nn.Conv2d(n_in, n_out, 1, stride)

    def forward(self, images):
        return torch.relu(self.path(images) + self.shortcut(images))


def make_residual(n_channels, widths, n_blocks, groups=1, stride=1):
    """Return a residual network: `n_blocks` blocks of each width, each on half the side before."""
    layers = [nn.Conv2d(n_channels, widths[0], 3, stride, 1, bias=False)]
    layers += [nn.BatchNorm2d(widths[0]), nn.ReLU()]
    before = widths[0]
    for i, width in enumerate(widths):
        for j in range(n_blocks):
            layers.append(Residual(before, width, 2 if i and not j else 1, groups))
            before = width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(before, 10))


SMALL_RESIDUAL = {"widths": (32, 64), "n_blocks": 1, "stride": 2}
# Networks of 20, 8 and 14 layers: deep, wide, and with grouped convolutions.
RESIDUALS = {
    "ResNet": {"widths": (32, 64, 128), "n_blocks": 3},
    "WideResNet": {"widths": (96, 192, 384), "n_blocks": 1},
    "ResNeXt": {"widths": (64, 128, 256), "n_blocks": 2, "groups": 8},
}


def record(step):
    """Return a step as a CUDA graph, since launches of its kernels take longer than they do.

    Three steps are made before it is recorded, which find the fastest kernels.
    """
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.backends.cudnn.flags(enabled=True, benchmark=True):
        with torch.cuda.stream(stream):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(stream)
        with torch.cuda.graph(graph):
            step()
    return graph.replay


def score_residual(X, y, tests, network=SMALL_RESIDUAL, n_passes=10, batch_size=128):
    """Return accuracies × 100 on several test sets of a residual network, trained by Adam."""
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    n_channels = 3 if X.shape[1] == 3 * 32**2 else 1
    side = round((X.shape[1] / n_channels) ** 0.5)

    def to_images(rows):
        images = torch.tensor(rows, dtype=torch.float32).view(-1, n_channels, side, side)
        return images.to(device, memory_format=torch.channels_last)

    network = make_residual(n_channels, **network)
    network = network.to(device, memory_format=torch.channels_last)
    X, y = to_images(X), torch.as_tensor(y).long().to(device)
    is_cuda = device == "cuda"
    optimizer = torch.optim.Adam(network.parameters(), 1e-3, fused=True, capturable=is_cuda)
    # Half precision where it is many times as fast.
    half = torch.autocast(device, torch.bfloat16, enabled=is_cuda, cache_enabled=not is_cuda)
    batch = torch.arange(batch_size, device=device)

    def step():
        with half:
            loss = nn.functional.cross_entropy(network(X[batch]), y[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    make_step = record(step) if is_cuda else step
    for _ in range(n_passes):
        # All batches have one size: other images are left out in each pass.
        order = torch.randperm(len(X))[: len(X) // batch_size * batch_size].to(device)
        for part in order.split(batch_size):
            batch.copy_(part)
            make_step()
    network.eval()
    accuracies = []
    for X_test, y_test in tests:
        with torch.no_grad(), half:
            parts = [network(part).argmax(1).cpu() for part in to_images(X_test).split(1000)]
        hits = torch.cat(parts) == torch.as_tensor(y_test).long()
        accuracies.append(100 * float(hits.double().mean()))
    return accuracies


def score_best_residual(X, y, X_test, y_test, n_passes):
    """Return the accuracy × 100 of the best of three networks, chosen by a tenth of the images."""
    n = len(X) // 10
    tests = (X[:n], y[:n]), (X_test, y_test)
    scores = {
        name: score_residual(X[n:], y[n:], tests, network, n_passes, batch_size=512)
        for name, network in RESIDUALS.items()
    }
    return scores[max(scores, key=lambda name: scores[name][0])][1]


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
    parser.add_argument("--seeds", type=int, default=3, help="their number, from 0 on")
    parser.add_argument("--slices", type=int, help="None: the default")
    parser.add_argument("--held-out", type=int, default=0)
    parser.add_argument("--protocol", choices=["small", "short", "benchmark"], default="small")
    parser.add_argument("--passes", type=int, default=50, help="of --protocol benchmark")
    parser.add_argument("--images", type=int, default=60_000, help="of --protocol benchmark")
    parser.add_argument("--real", action="store_true", help="what as many real images have, first")
    parser.add_argument("--peer", action="store_true", help="DP-MERF, on mnist and fashion")
    parser.add_argument("--pictures", help="folder for a picture of each fit")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for seed in range(options.seeds):
        for name in options.data:
            data, n = LOADERS[name](), options.held_out
            train, test = (data.X_train, data.y_train), (data.X_test, data.y_test)
            if n:
                train, test = zip(*((part[:-n], part[-n:]) for part in train), strict=True)
            n_train = len(train[0])
            if options.real and seed == 0:
                print(f"{name}, real:", join(score_all(*train, *test)), flush=True)
            is_small = options.protocol == "small"
            delta = 1e-5 if is_small else 1 / (n_train * math.log(n_train))
            for epsilon in options.epsilon:
                if options.peer:
                    sampler = MERF(epsilon, delta, SQUARED_LENGTHS[name], seed)
                else:
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
                if options.protocol == "short":
                    scores += score_residual(*made, [test])
                elif options.protocol == "benchmark":
                    many = sampler.sample(options.images, random_state=0)
                    scores.append(score_best_residual(*many, *test, options.passes))
                if options.pictures and not options.peer:
                    save_picture(sampler, f"{options.pictures}/{name}-{epsilon:g}-{seed}.png")
                how = "DP-MERF" if options.peer else f"{sampler.release_}, {sampler.n_iter_} steps"
                print(
                    f"{name} ε={epsilon:g} seed {seed}:",
                    join(scores),
                    f"({how}, {used:.0f} s of a core, {wall:.0f} s)",
                    flush=True,
                )


if __name__ == "__main__":
    main()
