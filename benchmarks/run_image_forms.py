"""Images in two forms: flat rows in [0, 1], and arrays with channels last in [-1, 1].

    python benchmarks/run_image_forms.py --data digits usps --method particles --seeds 3

Flat rows are as rows of images have always been given, channels first. The other form is what
torch's transforms make for generators, turned to channels last, and is fitted without a reshape.
Accuracies on test images are those of a logistic regression that saw 10,000 synthetic images, all
in [0, 1]; of the classifier of the adapter, on a target that is darker than its source; and of a
logistic regression on private components. "nhwc flat" are the flat rows of the other form, in
[0, 1] and without `image_shape`.
"""

import argparse
import warnings

import numpy as np
from public_images import load_cifar10, load_mnist, load_usps
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from skdpgen import (
    DPAFGenerator,
    DPSinkhornGenerator,
    DPSlicedWassersteinGenerator,
    DPSWDDomainClassifier,
    DPSWFlowSampler,
    LDPEntropicGAN,
)
from skdpgen.evaluation import train_on_synthetic_score
from skdpgen.preprocessing import DPPCA

METHODS = {
    "particles": DPSWFlowSampler,
    "network": DPSlicedWassersteinGenerator,
    "sinkhorn": DPSinkhornGenerator,
    "dpaf": DPAFGenerator,
    "local": LDPEntropicGAN,
    "adapter": DPSWDDomainClassifier,
    "pca": DPPCA,
}


def load(name):
    """Return training and test images in [0, 1], channels first, and their labels."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        parts = train_test_split(X / 16, y, random_state=0, stratify=y)
        return *(part.reshape(-1, 1, 8, 8) for part in parts[:2]), *parts[2:]
    data = {"usps": load_usps, "mnist": load_mnist, "cifar24": load_cifar10}[name]()
    shape = (1, *data.image_shape)[-3:]
    X_train, X_test = (X.reshape(-1, *shape) for X in (data.X_train, data.X_test))
    if name == "cifar24":
        X_train, X_test = (X[:, :, 4:28, 4:28] for X in (X_train, X_test))
    return X_train, X_test, data.y_train, data.y_test


def flatten(X):
    """Return flat rows in [0, 1]."""
    return X.reshape(len(X), -1)


def turn(X):
    """Return images with channels last, in [-1, 1]."""
    return np.ascontiguousarray(np.moveaxis(2 * X - 1, 1, -1), dtype=np.float32)


def turn_back(X):
    """Return flat rows of what `turn` returns."""
    return flatten(np.moveaxis((X.astype(np.float64) + 1) / 2, -1, 1))


def turn_flat(X):
    """Return flat rows of images with channels last, in [0, 1]."""
    return flatten(np.moveaxis(X, 1, -1))


# The form, its inverse for the judge, and bounds.
FORMS = {
    "flat": (flatten, flatten, (0, 1)),
    "nhwc": (turn, turn_back, (-1, 1)),
    "nhwc flat": (turn_flat, flatten, (0, 1)),
}


def score(method, form, data, options, seed):
    """Return the accuracy of one fit."""
    (make, back, bounds), (X, X_test, y, y_test) = FORMS[form], data
    params = dict(epsilon=options.epsilon, delta=1e-5, bounds=bounds, random_state=seed)
    if method in ("pca", "adapter"):
        estimator = METHODS[method](**params)
        if method == "pca":
            codes = [estimator.fit(make(X)).transform(make(part)) for part in (X, X_test)]
            return LogisticRegression(max_iter=60).fit(codes[0], y).score(codes[1], y_test)
        # The target is darker than the source.
        half = len(X) // 2
        estimator.fit(make(X[:half]), y[:half], X_target=make(0.7 * X[half:]))
        return estimator.score(make(0.7 * X_test), y_test)
    if options.network and method in ("network", "sinkhorn", "local"):
        params["network"] = options.network
    fitted = METHODS[method](classes=np.unique(y), **params).fit(make(X), y)
    made, labels = fitted.sample(10_000, random_state=seed)
    made, judged = back(made), back(make(X_test))
    return train_on_synthetic_score(made, labels, judged, y_test, random_state=seed)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", default=["digits", "usps"])
    parser.add_argument("--method", nargs="+", default=list(METHODS), choices=METHODS)
    parser.add_argument("--form", nargs="+", default=["flat", "nhwc"], choices=FORMS)
    parser.add_argument("--epsilon", type=float, default=10.0)
    parser.add_argument("--network")
    parser.add_argument("--most", type=int, default=60_000, help="training images")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.data:
        X, X_test, y, y_test = load(name)
        data = X[: options.most], X_test, y[: options.most], y_test
        for method in options.method:
            for form in options.form:
                found = [score(method, form, data, options, seed) for seed in range(options.seeds)]
                mean, std = np.mean(found), np.std(found)
                print(f"{name:<9}{method:<11}{form:<11}{mean:.3f} ± {std:.3f}", flush=True)


if __name__ == "__main__":
    main()
