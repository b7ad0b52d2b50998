"""Defaults beside an expert's parameters, on small data: accuracy and R² of a model of samples.

    python benchmarks/run_defaults.py --data digits --epsilon 1

Defaults are `epsilon` and the classes alone. The expert declares bounds and a radius, and chooses
an encoder, with the codebook of the data at hand. Scores are of logistic or ridge regression on
standardised columns, trained on as many synthetic rows as there are private ones. Test rows are
clipped to `bounds_`, as synthetic ones are.
"""

import argparse
import time
import warnings

import numpy as np
from public_tables import load_table
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdpgen import DPSlicedWassersteinGenerator, DPSWFlowSampler

METHODS = {"flow": DPSWFlowSampler, "network": DPSlicedWassersteinGenerator}
# Public bounds of the columns, in round numbers.
WINE = (
    [11, 0, 1, 10, 70, 0.5, 0, 0, 0, 1, 0.4, 1, 250],
    [15, 6, 4, 30, 165, 4, 6, 0.7, 4, 13, 2, 4, 1700],
)
CANCER_MEANS = (
    [6, 9, 40, 140, 0.05, 0.01, 0, 0, 0.1, 0.04],
    [30, 40, 190, 2600, 0.2, 0.4, 0.5, 0.25, 0.35, 0.1],
)
CANCER_ERRORS = (
    [0.1, 0.3, 0.7, 6, 0, 0, 0, 0, 0, 0],
    [3, 5, 22, 550, 0.04, 0.15, 0.4, 0.06, 0.08, 0.03],
)
CANCER_WORST = (
    [7, 12, 50, 180, 0.07, 0.02, 0, 0, 0.15, 0.05],
    [37, 50, 260, 4300, 0.25, 1.1, 1.3, 0.3, 0.7, 0.25],
)
CANCER = np.hstack([CANCER_MEANS, CANCER_ERRORS, CANCER_WORST])
CALIFORNIA = ([0, 0, 0, 0, 0, 0, 32, -125], [16, 60, 20, 5, 6000, 10, 42, -114])
# At ε < 2 those of digits and wine have encoder="dp-pca", too.
COMPONENTS = ("digits", "wine")
EXPERT = {
    "digits": {"bounds": (0, 16), "clip_norm": 0.5},
    "wine": {"bounds": WINE, "clip_norm": 0.5},
    "cancer": {"bounds": CANCER, "clip_norm": 0.5},
    "california": {"bounds": CALIFORNIA, "y_bounds": (0, 5.1), "clip_norm": 1.0},
}


def load(name):
    """Return training and test parts, and the classes, if there are any."""
    if name == "california":
        data = load_table("california_housing")
        parts = (part.to_numpy(np.float64) for part in (data.X_train, data.X_test))
        return (*parts, data.y_train.to_numpy(), data.y_test.to_numpy()), None
    loaders = {"digits": load_digits, "wine": load_wine, "cancer": load_breast_cancer}
    X, y = loaders[name](return_X_y=True)
    return train_test_split(X, y, test_size=0.25, random_state=0, stratify=y), np.unique(y)


def score(made, X, y, classes):
    """Return the score of a model of what was made, on real rows."""
    X_made, y_made = made
    if classes is not None and len(np.unique(y_made)) == 1:
        return np.mean(y == y_made[0])
    model = Ridge() if classes is None else LogisticRegression(max_iter=500)
    return make_pipeline(StandardScaler(), model).fit(X_made, y_made).score(X, y)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", nargs="+", choices=list(EXPERT), default=list(EXPERT))
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1, 3, 10])
    parser.add_argument("--method", nargs="+", choices=list(METHODS), default=["flow"])
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.data:
        (X, X_test, y, y_test), classes = load(name)
        public = {} if classes is None else {"classes": classes}
        print(f"{name}: {len(X)} rows, real {100 * score((X, y), X_test, y_test, classes):.1f}")
        for method in options.method:
            for epsilon in options.epsilon:
                expert = EXPERT[name] | {
                    "encoder": "dp-pca" if name in COMPONENTS and epsilon < 2 else None
                }
                for kind, params in (("defaults", {}), ("expert", expert)):
                    scores, start = [], time.perf_counter()
                    for seed in range(options.seeds):
                        generator = METHODS[method](epsilon, random_state=seed, **public, **params)
                        made = generator.fit(X, y).sample(len(X))
                        # Far beyond the bounds, which are public now, a linear model says anything.
                        within = np.clip(X_test, *generator.bounds_)
                        scores.append(100 * score(made, within, y_test, classes))
                    seconds = (time.perf_counter() - start) / options.seeds
                    print(
                        f"{name} {method} ε={epsilon:g} {kind}: mean {np.mean(scores):.1f} "
                        f"({min(scores):.1f} to {max(scores):.1f}), {seconds:.0f} s",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
