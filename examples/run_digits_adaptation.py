"""
Digits of one kind, private digits of another
=============================================

The digits of USPS and of MNIST, one of them public and labelled, the other private. USPS images are
scaled up to 28×28 pixels. Printed is the accuracy on the private rows that were adapted to, as in
the DP-SWD paper, and on held-out rows of their domain: of a network fitted to the source only, of
the adapter, which gets a slice sketch of the target, and of the mean of both.

Images come from the folder that ``SKDPGEN_DATA`` names, or else from OpenML. The gallery does not
run this script; a run takes some minutes on a CPU::

    python examples/run_digits_adaptation.py --source usps --epsilon 10
"""

# sphinx_gallery_thumbnail_path = '_static/pictures/run_digits_adaptation.png'
import argparse
import sys
from pathlib import Path

import numpy as np
import torch
from sklearn.base import clone

from skdpgen.adaptation import DPSWDDomainClassifier

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
from public_images import load_mnist, load_usps

parser = argparse.ArgumentParser()
parser.add_argument("--source", choices=["usps", "mnist"], default="usps")
parser.add_argument("--epsilon", type=float, default=10.0)
parser.add_argument("--n-steps", type=int)
options = parser.parse_args()

# %%
# Images of one size.


def scale_up(X):
    """Scale flat 16×16 images to 28×28, linearly."""
    images = torch.as_tensor(X).view(-1, 1, 16, 16)
    return torch.nn.functional.interpolate(images, (28, 28), mode="bilinear").flatten(1).numpy()


mnist, usps = load_mnist(), load_usps()
usps_train = scale_up(usps.X_train), usps.y_train
if options.source == "usps":
    X, y = usps_train
    X_target, y_target = mnist.X_test, mnist.y_test
    held_out = mnist.X_train[:10_000], mnist.y_train[:10_000]
else:
    X, y = mnist.X_train, mnist.y_train
    X_target, y_target = usps_train
    held_out = scale_up(usps.X_test), usps.y_test

# %%
# A network of the source only: there is no `X_target`, of which a warning reminds. Then the
# adapter.

model = DPSWDDomainClassifier(
    options.epsilon, 1e-5, network="conv28", bounds=(0, 1), n_steps=options.n_steps, random_state=0
)
plain = clone(model).fit(X, y)
adapted = clone(model).fit(X, y, X_target=X_target)
print(adapted.privacy_)

# %%
# The mean of both, which costs no more, is safer than either.


def score(models, X, y):
    probabilities = np.mean([model.predict_proba(X) for model in models], axis=0)
    return np.mean(plain.classes_[probabilities.argmax(axis=1)] == y)


for name, models in {"source": [plain], "adapter": [adapted], "both": [plain, adapted]}.items():
    accuracies = score(models, X_target, y_target), score(models, *held_out)
    print(f"{name:<8} {accuracies[0]:.4f}, {accuracies[1]:.4f} held out")
