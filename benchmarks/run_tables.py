"""Synthetic tables: classifiers trained on them, tested on real rows; and how far tables are off.

The categories are those of the published codebooks, and so are the bounds. Several fits, each with
other noise; the real training rows beside them. A hospital stay of diabetes130 is a record, so that
a patient with several stays is protected less.

    SKDPGEN_DATA=folder python benchmarks/run_tables.py [--epsilon 1] [--seeds 3]

MST and AIM of smartnoise-synth are run beside it, on the same rows, by `--peers` with the Python of
an environment of their own:

    python -m venv peers
    peers/bin/pip install smartnoise-synth==1.0.8
    SKDPGEN_DATA=folder python benchmarks/run_tables.py --peers peers/bin/python

They take categories only: a number is given as its nearest knot in the schema, and what they make
of it is drawn evenly from the values around that knot. See peers_tables.py for their settings.
"""

import argparse
import itertools
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

from skdpgen import DPSlicedWassersteinGenerator, DPSWFlowSampler
from skdpgen.datasets import load_adult, load_bank_marketing, load_diabetes130
from skdpgen.formats import Category, Number, Schema


def whole(lower, upper, **params):
    return Number(lower, upper, decimals=0, **params)


# A network; one with the bounds of numbers left open, and paid for; and particles.
OURS = ["network", "open", "particles"]
PEERS = ["mst", "aim"]
LOADERS = {
    "adult": load_adult,
    "bank_marketing": load_bank_marketing,
    "diabetes130": load_diabetes130,
}
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
        "pdays": whole(-1, 900, scale="symlog"),
        "previous": whole(0, 300, scale="log"),
    },
    "diabetes130": {
        "time_in_hospital": whole(1, 14),
        "num_lab_procedures": whole(0, 150),
        "num_procedures": whole(0, 6),
        "num_medications": whole(0, 100, n_knots=21),
        "number_outpatient": whole(0, 100, scale="log"),
        "number_emergency": whole(0, 100, scale="log"),
        "number_inpatient": whole(0, 50, scale="log"),
        "number_diagnoses": whole(1, 16),
    },
}

# Groups of ICD-9 codes: chapters, with the symptoms of the same organs. Both are those of Strack et
# al., who published diabetes130 (BioMed Research International, 2014).
DIAGNOSES = {
    "circulatory": [*range(390, 460), 785],
    "respiratory": [*range(460, 520), 786],
    "digestive": [*range(520, 580), 787],
    "diabetes": [250],
    "injury": range(800, 1000),
    "musculoskeletal": range(710, 740),
    "genitourinary": [*range(580, 630), 788],
    "neoplasms": range(140, 240),
}
SPECIALTIES = (
    "? Cardiology Emergency/Trauma Family/GeneralPractice InternalMedicine Surgery-General"
)
DRUGS = """
    metformin repaglinide nateglinide chlorpropamide glimepiride acetohexamide glipizide glyburide
    tolbutamide pioglitazone rosiglitazone acarbose miglitol troglitazone tolazamide examide
    citoglipton insulin glyburide-metformin glipizide-metformin glimepiride-pioglitazone
    metformin-rosiglitazone metformin-pioglitazone
"""
# Where levels of the codebook may not occur, or those that occur are not all listed.
CATEGORIES = {
    "diabetes130": {
        "admission_type_id": Category(list(range(1, 9))),
        "discharge_disposition_id": Category(list(range(1, 31))),
        "admission_source_id": Category(list(range(1, 27))),
        "medical_specialty": Category(SPECIALTIES.split(), other="other"),
        **{f"diag_{i}": Category(["?", *DIAGNOSES], other="other") for i in (1, 2, 3)},
        **{drug: Category(["No", "Down", "Steady", "Up"]) for drug in DRUGS.split()},
    }
}


def group_diagnosis(code):
    """Return the group of an ICD-9 code; those with a letter are in none."""
    if code[0].isdigit():
        number = int(float(code))
        return next((group for group, codes in DIAGNOSES.items() if number in codes), "other")
    return "?" if code == "?" else "other"


def load(name):
    """Return training and test tables with their target as last column."""
    data = LOADERS[name]()
    train, test = (
        X.assign(target=np.asarray(y))
        for X, y in ((data.X_train, data.y_train), (data.X_test, data.y_test))
    )
    if name == "diabetes130":
        for table in (train, test):
            for column in ("diag_1", "diag_2", "diag_3"):
                table[column] = table[column].map(group_diagnosis)
            is_listed = table["medical_specialty"].isin(SPECIALTIES.split())
            table["medical_specialty"] = table["medical_specialty"].where(is_listed, "other")
            table["target"] = np.where(table["target"] == "<30", "within 30 days", "no")
    return train, test


def make_schema(name, train, test):
    kinds = NUMBERS[name] | CATEGORIES.get(name, {})
    for column in train.columns:
        if column not in kinds:
            levels = pd.concat([train[column], test[column]]).astype(object).unique()
            kinds[column] = Category(sorted(levels.tolist()))
    return Schema({column: kinds[column] for column in train.columns})


def synthesize(method, train, schema, options, seed):
    if method == "open":
        kinds = {name: Number(decimals=0) for name in train.columns if is_number(schema[name])}
        schema = Schema({**schema, **kinds})
    sampler = DPSWFlowSampler if method == "particles" else DPSlicedWassersteinGenerator
    generator = sampler(
        options.epsilon,
        options.delta,
        schema=schema,
        random_state=seed,
    )
    return generator.fit(train, target="target").sample(len(train))


def is_number(kind):
    return isinstance(kind, Number)


def synthesize_by_peer(method, train, schema, options, seed):
    """Write the rows as codes, have them synthesized by another Python, and read the codes."""
    sizes = [
        len(kind.positions if isinstance(kind, Number) else kind.levels) for kind in schema.values()
    ]
    with tempfile.TemporaryDirectory() as folder:
        rows, synthetic = Path(folder, "rows.csv"), Path(folder, "synthetic.csv")
        codes = {name: encode(train[name], kind) for name, kind in schema.items()}
        pd.DataFrame(codes).to_csv(rows, index=False)
        script = Path(__file__).with_name("peers_tables.py")
        command = [options.peers, "-W", "ignore", script, method, rows, synthetic]
        command += ["--epsilon", options.epsilon, "--delta", options.delta]
        command += ["--seed", seed, "--sizes", *sizes]
        subprocess.run([str(part) for part in command], check=True, stdout=subprocess.DEVNULL)
        codes = pd.read_csv(synthetic)
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: decode(codes[name], kind, rng) for name, kind in schema.items()})


def encode(column, kind):
    """Return the codes of levels, or of the knots that numbers are nearest to."""
    if isinstance(kind, Number):
        return np.searchsorted(edges_around_knots(kind)[1:-1], column)
    return pd.Index(kind.levels).get_indexer(column)


def decode(codes, kind, rng):
    """Return levels, or numbers drawn evenly from those that are nearest to the knots."""
    if isinstance(kind, Number):
        edges = edges_around_knots(kind)
        return rng.uniform(edges[codes], edges[codes + 1]).round(kind.decimals)
    return np.array(kind.levels)[codes]


def edges_around_knots(kind):
    knots = kind.positions
    return np.r_[knots[0], (knots[1:] + knots[:-1]) / 2, knots[-1]]


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
    parser.add_argument("--data", nargs="+", choices=list(LOADERS), default=list(LOADERS))
    parser.add_argument("--peers", metavar="PYTHON", help="of an environment for peers_tables.py")
    parser.add_argument("--methods", nargs="+", choices=OURS + PEERS)
    options = parser.parse_args()
    methods = options.methods or (OURS + PEERS if options.peers else OURS)
    if options.peers is None and set(methods) & set(PEERS):
        parser.error("mst and aim need --peers.")
    print(f"{'':<32}{'LR':>8}{'trees':>8}{'1-way':>8}{'2-way':>8}{'seconds':>9}")
    for name in options.data:
        train, test = load(name)
        schema = make_schema(name, train, test)
        numbers = list(NUMBERS[name])
        areas = areas_under_curves(train, test, numbers)
        print(f"{name + ', real':<32}{areas[0]:>8.4f}{areas[1]:>8.4f}", flush=True)
        for method, seed in itertools.product(methods, range(options.seeds)):
            start = time.perf_counter()
            if method in OURS:
                table = synthesize(method, train, schema, options, seed)
            else:
                table = synthesize_by_peer(method, train, schema, options, seed)
            seconds = time.perf_counter() - start
            figures = areas_under_curves(table, test, numbers) + variations(table, train, numbers)
            printed = "".join(f"{figure:>8.4f}" for figure in figures)
            print(f"{f'{name}, {method}, seed {seed}':<32}{printed}{seconds:>9.0f}", flush=True)


if __name__ == "__main__":
    main()
