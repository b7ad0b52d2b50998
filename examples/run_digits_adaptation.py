"""
Digits of one kind, private digits of another
=============================================

The digits of USPS and of MNIST, one of them public and labelled, the other private. USPS images are
scaled up to 28×28 pixels. Printed is the accuracy on the private rows that were adapted to, as in
the DP-SWD paper, and on held-out rows of their domain: of a network fitted to the source only, and
of the adapter, which gets a slice sketch of the target.

Images come from the folder that ``SKDPGEN_DATA`` names, or else from OpenML. The gallery does not
run this script; a run takes some minutes on a CPU::

    python examples/run_digits_adaptation.py --source usps --epsilons 10 --seeds 3
"""

import argparse
import json
import time
import warnings

import torch

from skdpgen.adaptation import DPSWDDomainClassifier
from skdpgen.datasets import load_mnist, load_usps

parser = argparse.ArgumentParser()
parser.add_argument("--source", choices=["usps", "mnist"], default="usps")
parser.add_argument("--epsilons", type=float, nargs="*", default=[10.0])
parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
parser.add_argument("--n-steps", type=int)
parser.add_argument("--skip-baselines", action="store_true")
parser.add_argument("--params", nargs="*", default=[], help="of the classifier: name=number")
options = parser.parse_args()
warnings.filterwarnings("ignore", message="There is no X_target")

# %%
# Images of one size.


def scale_up(X):
    """Scale flat 16×16 images to 28×28, linearly."""
    images = torch.as_tensor(X).view(-1, 1, 16, 16)
    return torch.nn.functional.interpolate(images, (28, 28), mode="bilinear").flatten(1).numpy()


mnist, usps = load_mnist(), load_usps()
usps_train, usps_test = scale_up(usps.X_train), scale_up(usps.X_test)
if options.source == "usps":
    X, y = usps_train, usps.y_train
    X_target, y_target = mnist.X_test, mnist.y_test
    X_held, y_held = mnist.X_train[:10_000], mnist.y_train[:10_000]
else:
    X, y = mnist.X_train, mnist.y_train
    X_target, y_target = usps_train, usps.y_train
    X_held, y_held = usps_test, usps.y_test

# %%
# The fits.


def report(name, model, start):
    target, held = model.score(X_target, y_target), model.score(X_held, y_held)
    seconds = time.perf_counter() - start
    print(f"{name:<28}{target:>9.4f}{held:>9.4f}{seconds:>8.0f}", flush=True)


print(f"{'':<28}{'target':>9}{'held out':>9}{'seconds':>8}")
pairs = (text.split("=") for text in options.params)
params = {name: json.loads(value) for name, value in pairs}
params |= {"network": "conv28", "bounds": (0, 1), "n_steps": options.n_steps}
for seed in options.seeds:
    if not options.skip_baselines:
        start = time.perf_counter()
        model = DPSWDDomainClassifier(random_state=seed, **params).fit(X, y)
        report(f"source only, seed {seed}", model, start)
    for epsilon in options.epsilons:
        start = time.perf_counter()
        model = DPSWDDomainClassifier(epsilon, 1e-5, random_state=seed, **params)
        model.fit(X, y, X_target=X_target)
        report(f"adapter, eps = {epsilon:g}, seed {seed}", model, start)
