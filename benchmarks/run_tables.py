"""Synthetic tables: classifiers trained on them, tested on real rows; and how far tables are off.

The categories are those of the published codebooks, and so are the bounds. Several fits, each with
other noise; the real training rows beside them.

    SKDPGEN_DATA=folder python benchmarks/run_tables.py [--epsilon 1] [--seeds 3]
"""

import argparse
import itertools
import time

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from skdpgen import DPSlicedWassersteinGenerator
from skdpgen.datasets import load_adult, load_bank_marketing
from skdpgen.preprocessing import Category, Number, Schema


def whole(lower, upper, **params):
    return Number(lower, upper, decimals=0, **params)


LOADERS = {"adult": load_adult, "bank_marketing": load_bank_marketing}
NUMBERS = {
    "adult": {
        "age": whole(17, 90),
        "fnlwgt": whole(10_000, 1_500_000, scale="log", n_knots=12),
        "education_num": whole(1, 16),
        "capital_gain": whole(0, 99_999, scale="log", n_knots=20),
        "capital_loss": whole(0, 4_400, scale="log", n_knots=20),
        "hours_per_week": whole(1, 99, n_knots=20),
    },
    "bank_marketing": {
        "age": whole(18, 95),
        "balance": whole(-10_000, 110_000, knots=[-10_000, -1_000, 0, 300, 1_000, 3_000, 110_000]),
        "day": whole(1, 31),
        "duration": whole(0, 5_000, scale="log", n_knots=20),
        "campaign": whole(1, 65, scale="log"),
        "pdays": whole(-1, 900, scale="log"),
        "previous": whole(0, 300, scale="log"),
    },
}


def load(name):
    """Return training and test tables with their target as last column, and its name."""
    data = LOADERS[name]()
    train, test = (
        X.assign(target=np.asarray(y))
        for X, y in ((data.X_train, data.y_train), (data.X_test, data.y_test))
    )
    return train, test


def make_schema(name, train, test):
    kinds = dict(NUMBERS[name])
    for column in train.columns:
        if column not in kinds:
            levels = pd.concat([train[column], test[column]]).astype(object).unique()
            kinds[column] = Category(sorted(levels.tolist()))
    return Schema({column: kinds[column] for column in train.columns})


def areas_under_curves(table, test, numbers):
    """Return the ROC AUC on real test rows of two classifiers trained on `table`."""
    categories = [c for c in table.columns if c not in numbers and c != "target"]
    positive = sorted(test["target"].unique())[1]
    linear = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), categories), (StandardScaler(), numbers)
    )
    trees = make_column_transformer(
        (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), categories),
        remainder="passthrough",
    )
    models = [
        make_pipeline(linear, LogisticRegression(max_iter=1000)),
        make_pipeline(trees, HistGradientBoostingClassifier(random_state=0)),
    ]
    X, y = table.drop(columns="target"), table["target"] == positive
    return [
        roc_auc_score(
            test["target"] == positive,
            model.fit(X, y).predict_proba(test.drop(columns="target"))[:, 1],
        )
        for model in models
    ]


def variations(table, train, numbers):
    """Return the mean total variation of the one- and two-way tables; numbers in ten quantiles."""

    def binned(frame):
        edges = {c: np.unique(np.quantile(train[c], np.arange(1, 10) / 10)) for c in numbers}
        return pd.DataFrame(
            {
                c: np.searchsorted(edges[c], frame[c], side="right") if c in edges else frame[c]
                for c in train.columns
            }
        )

    made, real = binned(table), binned(train)
    means = []
    for width in (1, 2):
        distances = [
            0.5
            * made.value_counts(list(names), normalize=True)
            .sub(real.value_counts(list(names), normalize=True), fill_value=0)
            .abs()
            .sum()
            for names in itertools.combinations(train.columns, width)
        ]
        means.append(np.mean(distances))
    return means


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    print(f"{'':<24}{'LR':>8}{'trees':>8}{'1-way':>8}{'2-way':>8}{'seconds':>9}")
    for name in LOADERS:
        train, test = load(name)
        numbers = list(NUMBERS[name])
        areas = areas_under_curves(train, test, numbers)
        print(f"{name + ', real':<24}{areas[0]:>8.4f}{areas[1]:>8.4f}")
        for seed in range(options.seeds):
            start = time.perf_counter()
            generator = DPSlicedWassersteinGenerator(
                options.epsilon,
                options.delta,
                schema=make_schema(name, train, test),
                random_state=seed,
            ).fit(train, target="target")
            table = generator.sample(len(train))
            seconds = time.perf_counter() - start
            figures = areas_under_curves(table, test, numbers) + variations(table, train, numbers)
            printed = "".join(f"{figure:>8.4f}" for figure in figures)
            print(f"{f'{name}, seed {seed}':<24}{printed}{seconds:>9.0f}", flush=True)


if __name__ == "__main__":
    main()
