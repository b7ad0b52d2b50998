"""Accuracy of classifiers by synthetic rows beside the rows that `preview` says each release needs.

    SKDPGEN_DATA=folder python benchmarks/run_rows_needed.py --seeds 3 --csv runs.csv

Logistic regressions are trained on 2,000 synthetic rows, and tested on real ones; estimators have
defaults, bounds and classes. A fit is of use if its accuracy is at least half-way between chance,
the share of the largest class, and that of a regression on the fitted rows, and at chance in the
lowest quarter. The table counts cells of the grid, by the means over seeds and by whether `preview`
says that they have too few rows. Runs are added to a file of earlier ones; --judge fits nothing.
"""

import argparse
import time
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from public_images import load_mnist, load_usps
from sklearn.datasets import load_breast_cancer, load_digits, make_blobs
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import minmax_scale

from skdpgen import (
    DPAFGenerator,
    DPSinkhornGenerator,
    DPSlicedWassersteinGenerator,
    DPSWFlowSampler,
    LDPEntropicGAN,
)
from skdpgen.evaluation import train_on_synthetic_score

# Method and its release, and the most rows that it is fitted to.
RELEASES = {
    "sketch": (DPSlicedWassersteinGenerator, "sketch", 10_000),
    "flow's sketch": (DPSWFlowSampler, "sketch", 10_000),
    "rows": (DPSlicedWassersteinGenerator, "rows", 10_000),
    "resample": (DPSWFlowSampler, "resample", 10_000),
    "presample": (DPSWFlowSampler, "presample", 10_000),
    "gradients": (DPSinkhornGenerator, "gradients", 10_000),
    "aggregates": (DPAFGenerator, "aggregates", 10_000),
    "laplace": (LDPEntropicGAN, "laplace", 10_000),
    "gaussian": (LDPEntropicGAN, "gaussian", 10_000),
}
# Numbers of fitted rows.
SIZES = {
    "cancer": (426,),
    "blobs": (500, 3000),
    "digits": (400, 1347),
    "usps": (500, 1700, 6000),
    "mnist": (2000, 10_000),
}


@cache
def load(name):
    """Return all rows in [0, 1], and their classes, for training and for tests."""
    if name in ("usps", "mnist"):
        data = load_usps() if name == "usps" else load_mnist()
        return data.X_train, data.X_test, data.y_train, data.y_test
    if name == "blobs":
        # Three columns and three classes: the few that a local method can learn.
        X, y = make_blobs(4000, 3, centers=3, cluster_std=2.0, random_state=0)
    else:
        loader = load_digits if name == "digits" else load_breast_cancer
        X, y = loader(return_X_y=True)
    n = {"blobs": 1000, "digits": 450, "cancer": 143}[name]
    return train_test_split(minmax_scale(X), y, test_size=n, random_state=0, stratify=y)


def draw(name, n, seed):
    """Return so many rows for training, and the tests."""
    X, X_test, y, y_test = load(name)
    chosen = np.random.default_rng(seed).permutation(len(X))[:n]
    return X[chosen], y[chosen], X_test, y_test


def make(release, epsilon, classes, seed=0):
    method, name, _ = RELEASES[release]
    return method(epsilon, 1e-5, bounds=(0, 1), classes=classes, release=name, random_state=seed)


def run(name, n, release, epsilon, seed):
    """Return what a fit is of use for."""
    X, y, X_test, y_test = draw(name, n, seed)
    start = time.perf_counter()
    fitted = make(release, epsilon, np.unique(y), seed).fit(X, y)
    seconds = time.perf_counter() - start
    made = fitted.sample(2000, random_state=0)
    accuracy = train_on_synthetic_score(*made, X_test, y_test, random_state=0)
    real = train_on_synthetic_score(X, y, X_test, y_test, random_state=0)
    chance = np.bincount(y_test).max() / len(y_test)
    row = {"accuracy": accuracy, "chance": chance, "half": (real + chance) / 2, "seconds": seconds}
    return {name: round(value, 3) for name, value in row.items()}


def find_needed(name, n, release, epsilon):
    """Return the number of rows that a preview says."""
    X, y, *_ = draw(name, n, 0)
    estimator = make(release, epsilon, np.unique(y))
    *_, fit_plan, _ = estimator._plan_data(X, y, None, None)
    return fit_plan.min_samples


def judge(runs):
    """Return the cells of the grid, and the numbers of cells of each release by both judgements."""
    keys = ["data", "rows", "release", "epsilon"]
    cells = runs.groupby(keys, sort=False)[["accuracy", "chance", "half"]].mean().round(3)
    cells["seeds"] = runs.groupby(keys, sort=False).size()
    cells["needed"] = [find_needed(*key) for key in cells.index]
    cells["warned"] = cells["needed"] > cells.index.get_level_values("rows")
    lowest = (cells["accuracy"] - cells["chance"]) < (cells["half"] - cells["chance"]) / 2
    use = np.where(lowest, "at chance", "between")
    cells["found"] = np.where(cells["accuracy"] >= cells["half"], "of use", use)
    return cells, cells.groupby(["release", "found", "warned"]).size().unstack(["found", "warned"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=list(SIZES), default=list(SIZES))
    parser.add_argument("--releases", nargs="+", choices=list(RELEASES), default=list(RELEASES))
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1, 3, 10, 30])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--csv", default="runs.csv", help="file of runs, read and added to")
    parser.add_argument("--judge", action="store_true", help="judge the runs of the file alone")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    path = Path(options.csv)
    rows = pd.read_csv(path).to_dict("records") if path.exists() else []
    done = {(r["data"], r["rows"], r["release"], r["epsilon"], r["seed"]) for r in rows}
    grid = [
        (name, n, release, epsilon, seed)
        for seed in range(options.seeds)
        for name in options.data
        for n in SIZES[name]
        for release in options.releases
        for epsilon in options.epsilon
        if n <= RELEASES[release][2]
    ]
    for key in grid if not options.judge else []:
        if key not in done:
            row = dict(zip(("data", "rows", "release", "epsilon", "seed"), key, strict=True))
            rows.append(row | run(*key))
            print(*rows[-1].values(), flush=True)
            pd.DataFrame(rows).to_csv(path, index=False)
    cells, table = judge(pd.DataFrame(rows))
    print(cells.to_csv(), table.fillna(0).astype(int).to_string(), sep="\n")


if __name__ == "__main__":
    main()
