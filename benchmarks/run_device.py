"""All measurements on one GPU, each printed at once: a quarter of an hour suffices.

    SKDPGEN_DATA=folder python benchmarks/run_device.py [--tiny] [--parts slices sinkhorn ...]

Without a GPU, --tiny shows that it works. Parts: sliced distances over a product and a sort;
Sinkhorn losses beside flash-sinkhorn and GeomLoss; fits to MNIST; fits with too little memory; the
tests that need a GPU; cells of the full protocol of images.
"""

import argparse
import subprocess
import sys
import time
import warnings
from contextlib import suppress
from functools import partial
from importlib import import_module
from itertools import product

import torch
from public_images import load_mnist
from side_by_side import compare, describe_machine, print_rows

from skdpgen import DPSWFlowSampler
from skdpgen.privacy import SpentError
from skdpgen.transport import entropic_wasserstein, random_directions, sliced_wasserstein_distance

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SLICES = [(1_000, 784, 1_000), (10_000, 784, 1_000), (100_000, 64, 1_000)]  # n, d, k
CELLS = "mnist --epsilon 1", "fashion --epsilon 1 10", "cifar10 --epsilon 10"


def clock():
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def draw(n, d):
    X, Y = torch.randn(2, n, d, generator=torch.Generator().manual_seed(0)).to(DEVICE)
    return X.requires_grad_(), Y


def find_gradient(loss, X, Y, **options):
    return torch.autograd.grad(loss(X, Y, **options), X)


def slices(tiny):
    for n, d, k in [(50, 8, 10)] if tiny else SLICES:
        (X, Y), U = draw(n, d), random_directions(d, k, device=DEVICE)
        ours = partial(find_gradient, sliced_wasserstein_distance, X, Y, projections=U)
        least = {"product, sort": partial(lambda U, *Z: [(U.T @ z.T).sort() for z in Z], U, X, Y)}
        print_rows("slices", compare(f"n={n}, d={d}, k={k}", ours, least, 7, clock))


def sinkhorn(tiny):
    losses = {}
    for name in ("flash_sinkhorn", "geomloss"):
        with suppress(ImportError):
            losses[name] = import_module(name).SamplesLoss(loss="sinkhorn", p=2, blur=1.0)
    for n in [50] if tiny else (1_000, 5_000, 20_000):
        X, Y = draw(n, 64)
        ours = partial(find_gradient, entropic_wasserstein, X, Y, reg=2.0)
        peers = {name: partial(find_gradient, loss, X, Y) for name, loss in losses.items()}
        print_rows("Sinkhorn", compare(f"n={n}", ours, peers or {"itself": ours}, 3, clock))


def make_sampler(epsilon, tiny):
    terms = {"bounds": (0, 1), "classes": range(10)} | ({"n_steps": 5} if tiny else {})
    return DPSWFlowSampler(epsilon, device=DEVICE, **terms)


def flows(tiny):
    data = load_mnist()
    X, y = (part[: 500 if tiny else None] for part in (data.X_train, data.y_train))
    for epsilon, run in product((1.0, 10.0), ("first", "second")):
        start = clock()
        make_sampler(epsilon, tiny).fit(X, y)
        print(f"MNIST flow, ε = {epsilon:g}, {run}: {clock() - start:.2f} s", flush=True)


def memory(tiny):
    data = load_mnist()
    for share in (0.002, 0.005, 0.01, 0.02, 0.05) if DEVICE == "cuda" else ():
        torch.cuda.empty_cache()
        torch.cuda.set_per_process_memory_fraction(share)
        try:
            make_sampler(1.0, tiny).fit(data.X_train, data.y_train)
            found = "fitted"
        except (SpentError, RuntimeError, ValueError) as error:
            found = f"{type(error).__name__}, kept: {getattr(error, 'release', None)!r:.40}"
        print(f"{share:.1%} of the memory: {found}", flush=True)
        torch.cuda.set_per_process_memory_fraction(1.0)


def suite(tiny):
    subprocess.run([sys.executable, *"-m pytest -q tests -k cuda".split(), *["--co"] * tiny])


def images(tiny):
    script = "benchmarks/run_images.py --seeds 1 --protocol " + ("short" if tiny else "benchmark")
    for cell in CELLS[: 1 if tiny else None]:
        subprocess.run([sys.executable, *f"{script} --data {cell}".split()])


PARTS = {p.__name__: p for p in (slices, sinkhorn, flows, memory, suite, images)}
if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(torch.cuda.get_device_name() if DEVICE == "cuda" else "no GPU", describe_machine())
    for part in options.parts:
        PARTS[part](options.tiny)
