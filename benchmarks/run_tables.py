"""Synthetic tables: classifiers trained on them, tested on real rows; and how far tables are off.

The categories are those of the published codebooks, and so are the bounds. Several fits, each with
other noise; the real training rows beside them. A hospital stay of diabetes130 is a record, so that
a patient with several stays is protected less.

    SKDPGEN_DATA=folder python benchmarks/run_tables.py [--epsilon 0.3 1 3] [--seeds 3]

Printed are areas under ROC curves, of several classes their mean (one against the others), and
the R² of a numeric target; the mean total variation of all one- and two-way tables, and of 200
three-way tables, drawn once and for all; the seconds that a fit with its sample took, and those of
processors. The linear model of a numeric target is tested on rows whose features are all in
the central 99 % of all: beyond, its errors are those of a line drawn far out.

Other libraries are run on the same rows by `--peers`, with the Python of an environment of their
own, for instance MST and AIM of smartnoise-synth:

    python -m venv peers
    peers/bin/pip install smartnoise-synth==1.0.8
    SKDPGEN_DATA=folder python benchmarks/run_tables.py --peers peers/bin/python --methods mst aim

They take categories only: a number is given as its nearest knot in the schema, and what they make
of it is drawn evenly from the values around that knot. See peers_tables.py for the others, and for
their settings.
"""

import argparse
import itertools
import os
import subprocess
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from public_tables import load_table
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.utils import Bunch

from skdpgen import DPSlicedWassersteinGenerator, DPSWFlowSampler
from skdpgen.tables import Category, Number, Schema


def whole(lower, upper, **params):
    return Number(lower, upper, decimals=0, **params)


def years(upper):
    return Number(0, upper, decimals=1, scale="log", missing=True)


def load_census_income():
    """Return the test part of Census-Income (KDD), of which a third is for tests here too."""
    path = Path(os.environ["SKDPGEN_DATA"], "census_income_kdd_test.csv.gz")
    table = pd.read_csv(path, keep_default_na=False).drop(columns="instance_weight")
    y = table.pop("income")
    parts = train_test_split(table, y, test_size=1 / 3, random_state=0, stratify=y)
    return Bunch(**dict(zip(("X_train", "X_test", "y_train", "y_test"), parts, strict=True)))


def load_occupations():
    """Return Adult with the occupation, of 14 classes, as target."""
    data = load_table("adult")
    for part in ("train", "test"):
        table = data[f"X_{part}"].assign(income=data[f"y_{part}"])
        table = table[table["occupation"] != "?"]
        data[f"y_{part}"] = table.pop("occupation")
        data[f"X_{part}"] = table
    return data


# A network, with the bounds of numbers; with their knots, too; with neither; with nothing declared;
# and particles, with bounds and with nothing declared.
OURS = ["network", "knots", "open", "undeclared", "particles", "particles-undeclared"]
PEERS = """
mst aim dpmm-mst dpmm-aim dpmm-aim3 dpmm-privbayes opendp-mst opendp-aim margnet copula ctgan
privpgd tabpe
""".split()
LOADERS = {
    "adult": partial(load_table, "adult"),
    "bank_marketing": partial(load_table, "bank_marketing"),
    "diabetes130": partial(load_table, "diabetes130"),
    "census_income": load_census_income,
    "cervical_cancer": partial(load_table, "cervical_cancer"),
    "california_housing": partial(load_table, "california_housing"),
    "occupations": load_occupations,
}
NUMBERS = {
    "california_housing": {
        "MedInc": Number(0, 16, decimals=4),
        "HouseAge": whole(0, 60),
        "AveRooms": Number(0, 200),
        "AveBedrms": Number(0, 50),
        "Population": whole(0, 50_000),
        "AveOccup": Number(0, 2_000),
        "Latitude": Number(32, 42, decimals=2),
        "Longitude": Number(-125, -114, decimals=2),
        "target": Number(0, 5.1, decimals=5),
    },
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
    "census_income": {
        "age": whole(0, 90, n_knots=19),
        "wage_per_hour": whole(0, 9_999, scale="log", n_knots=20),
        "capital_gains": whole(0, 99_999, scale="log", n_knots=20),
        "capital_losses": whole(0, 4_608, scale="log", n_knots=20),
        "dividends_from_stocks": whole(0, 99_999, scale="log", n_knots=20),
        "num_persons_worked_for_employer": whole(0, 6),
        "weeks_worked_in_year": whole(0, 52, n_knots=14),
    },
    "cervical_cancer": {
        "Age": whole(10, 90),
        "Number of sexual partners": whole(1, 30, scale="log", missing=True),
        "First sexual intercourse": whole(10, 40, missing=True),
        "Num of pregnancies": whole(0, 15, missing=True),
        "Smokes (years)": years(40),
        "Smokes (packs/year)": years(40),
        "Hormonal Contraceptives (years)": years(30),
        "IUD (years)": years(20),
        "STDs (number)": whole(0, 12, missing=True),
        "STDs: Number of diagnosis": whole(0, 12),
        "STDs: Time since first diagnosis": whole(1, 30, scale="log", missing=True),
        "STDs: Time since last diagnosis": whole(1, 30, scale="log", missing=True),
    },
}

NUMBERS["occupations"] = NUMBERS["adult"]

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
    },
    "census_income": {
        "detailed_industry_recode": Category(list(range(52))),
        "detailed_occupation_recode": Category(list(range(47))),
    },
}
# Answers to questions of yes and no, which a record may leave open.
FLAGS = {0: "no", 1: "yes", np.nan: "?"}


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
    if name == "cervical_cancer":
        flags = train.columns.difference(list(NUMBERS[name]))
        for table in (train, test):
            table[flags] = table[flags].apply(lambda column: column.map(FLAGS))
    return train, test


def make_schema(name, train, test):
    kinds = NUMBERS[name] | CATEGORIES.get(name, {})
    for column in train.columns:
        if column not in kinds:
            levels = pd.concat([train[column], test[column]]).astype(object).unique()
            kinds[column] = Category(sorted(levels.tolist()))
    return Schema({column: kinds[column] for column in train.columns})


def synthesize(method, train, schema, epsilon, seed, options):
    if method != "knots":
        kinds = {
            name: Number(
                *((None, None) if method == "open" else (kind.lower, kind.upper)),
                decimals=kind.decimals,
                missing=kind.missing,
            )
            for name, kind in schema.items()
            if isinstance(kind, Number)
        }
        schema = Schema({**schema, **kinds})
    if method.endswith("undeclared"):
        schema = "auto"
    is_flow = method.startswith("particles")
    sampler = DPSWFlowSampler if is_flow else DPSlicedWassersteinGenerator
    generator = sampler(
        epsilon,
        options.delta,
        schema=schema,
        random_state=seed,
    )
    made = generator.fit(train, target="target").sample(options.times * len(train))
    return made, generator.schema_


def synthesize_by_peer(method, train, schema, epsilon, seed, options):
    """Write the rows as codes, have them synthesized by another Python, and read the codes."""
    sizes = [n_codes(kind) for kind in schema.values()]
    # Missing ones have no place in the order of the others.
    numbers = [
        i for i, kind in enumerate(schema.values()) if isinstance(kind, Number) and not kind.missing
    ]
    with tempfile.TemporaryDirectory() as folder:
        rows, synthetic = Path(folder, "rows.csv"), Path(folder, "synthetic.csv")
        codes = {name: encode(train[name], kind) for name, kind in schema.items()}
        pd.DataFrame(codes).to_csv(rows, index=False)
        script = Path(__file__).with_name("peers_tables.py")
        command = [options.peers, "-W", "ignore", script, method, rows, synthetic]
        command += ["--epsilon", epsilon, "--delta", options.delta]
        command += ["--seed", seed, "--sizes", *sizes, "--numbers", *numbers]
        if options.peer_path:
            command += ["--peer-path", options.peer_path]
        subprocess.run(
            [str(part) for part in command],
            check=True,
            stdout=subprocess.DEVNULL,
            timeout=options.limit,
        )
        codes = pd.read_csv(synthetic)
    rng = np.random.default_rng(seed)
    made = pd.DataFrame({name: decode(codes[name], kind, rng) for name, kind in schema.items()})
    return made, schema


def n_codes(kind):
    return len(kind.positions) + kind.missing if isinstance(kind, Number) else len(kind.levels)


def encode(column, kind):
    """Return the codes of levels, or of the nearest knots; that of missing numbers comes last."""
    if isinstance(kind, Number):
        return count_below(edges_around_knots(kind)[1:-1], column)
    return pd.Index(kind.levels).get_indexer(column)


def count_below(edges, column):
    """Return how many edges each number is above, and one more than there can be where missing."""
    return np.where(column.isna(), len(edges) + 1, np.searchsorted(edges, column))


def decode(codes, kind, rng):
    """Return levels, or numbers drawn evenly from those that are nearest to the knots."""
    if isinstance(kind, Number):
        edges = np.append(edges_around_knots(kind), np.nan)
        lower, upper = edges[codes], edges[codes + 1]
        return (lower + (upper - lower) * rng.random(len(codes))).round(kind.decimals)
    return np.array(kind.levels)[codes]


def edges_around_knots(kind):
    knots = kind.positions
    return np.r_[knots[0], (knots[1:] + knots[:-1]) / 2, knots[-1]]


def measure_utility(table, test, numbers):
    """Return the ROC AUC, or R², on real test rows of two models trained on `table`."""
    is_number = "target" in numbers
    numbers = [c for c in numbers if c != "target"]
    categories = [c for c in table.columns if c not in numbers and c != "target"]
    linear = make_column_transformer(
        (OneHotEncoder(handle_unknown="ignore"), categories),
        (make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler()), numbers),
    )
    trees = make_column_transformer(
        (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), categories),
        remainder="passthrough",
    )
    X, X_test = (part.drop(columns="target") for part in (table, test))
    y, y_test = table["target"], test["target"]
    if is_number:
        low, high = (test[numbers].quantile(q) for q in (0.005, 0.995))
        is_central = ((low <= test[numbers]) & (test[numbers] <= high)).all(axis=1)
        lines = make_pipeline(linear, LinearRegression()).fit(X, y)
        forest = make_pipeline(trees, HistGradientBoostingRegressor(random_state=0)).fit(X, y)
        return [lines.score(X_test[is_central], y_test[is_central]), forest.score(X_test, y_test)]
    models = [
        make_pipeline(linear, LogisticRegression(max_iter=1000)),
        make_pipeline(trees, HistGradientBoostingClassifier(random_state=0)),
    ]
    classes = sorted(y_test.unique())
    if y.nunique() == 1:  # nothing to tell apart
        return [0.5, 0.5]
    areas = []
    for model in models:
        found = pd.DataFrame(model.fit(X, y).predict_proba(X_test), columns=model.classes_)
        found = found.reindex(columns=classes, fill_value=0.0)
        # The areas of two classes are the same.
        each = [roc_auc_score(y_test == c, found[c]) for c in classes[len(classes) == 2 :]]
        areas.append(np.mean(each))
    return areas


def variations(table, train, schema, n_wide=200):
    """Return the mean total variation of the one- and two-way tables, and of some three-way ones.

    Numbers are in ten quantiles of the training rows.
    """
    sizes, made, real = {}, {}, {}
    for name, kind in schema.items():
        if isinstance(kind, Number):
            edges = np.unique(train[name].quantile(np.arange(1, 10) / 10))
            # A value that is a quantile belongs above it.
            edges = np.nextafter(edges, -np.inf)
            sizes[name] = len(edges) + 2
            made[name], real[name] = (count_below(edges, frame[name]) for frame in (table, train))
        else:
            # The last one is for all other values.
            sizes[name] = len(kind.levels) + 1
            codes = (encode(frame[name], kind) for frame in (table, train))
            made[name], real[name] = (np.where(code < 0, len(kind.levels), code) for code in codes)

    def shares(codes, names):
        shape = [sizes[name] for name in names]
        cells = np.ravel_multi_index([codes[name] for name in names], shape)
        return np.bincount(cells, minlength=np.prod(shape)) / len(cells)

    means = []
    for width in (1, 2, 3):
        subsets = list(itertools.combinations(schema, width))
        if width == 3 and len(subsets) > n_wide:
            chosen = np.random.default_rng(0).choice(len(subsets), n_wide, replace=False)
            subsets = [subsets[i] for i in chosen]
        distances = [0.5 * abs(shares(made, n) - shares(real, n)).sum() for n in subsets]
        means.append(np.mean(distances))
    return means


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--data", nargs="+", choices=list(LOADERS), default=list(LOADERS))
    parser.add_argument(
        "--rows", type=int, help="to fit, at most, drawn by the seed; all are compared with"
    )
    parser.add_argument(
        "--times", type=int, default=1, help="so many times as many rows as were fitted; ours"
    )
    parser.add_argument(
        "--conform", action="store_true", help="put test rows within the schema of the synthetic"
    )
    parser.add_argument("--peers", metavar="PYTHON", help="of an environment for peers_tables.py")
    parser.add_argument("--peer-path", metavar="FOLDER", help="of peers that are not installed")
    parser.add_argument("--limit", metavar="SECONDS", type=float, help="for each run of a peer")
    parser.add_argument("--methods", nargs="+", choices=OURS + PEERS)
    parser.add_argument("--save", metavar="FOLDER", type=Path, help="for synthetic tables, parquet")
    options = parser.parse_args()
    methods = options.methods or OURS
    if options.peers is None and set(methods) & set(PEERS):
        parser.error(f"{', '.join(PEERS)} need --peers.")
    if options.times != 1 and set(methods) & set(PEERS):
        parser.error("--times is for our methods.")
    heads = ("LR", "trees", "1-way", "2-way", "3-way", "seconds", "cpu")
    print(f"{'':<44}" + "".join(f"{head:>8}" for head in heads), flush=True)
    for name in options.data:
        train, test = load(name)
        schema = make_schema(name, train, test)
        numbers = list(NUMBERS[name])
        report(f"{name}, real", measure_utility(train, test, numbers))
        runs = itertools.product(options.epsilon, methods, range(options.seeds))
        for epsilon, method, seed in runs:
            what = f"{name}, {method}, {epsilon:g}, seed {seed}"
            make = synthesize if method in OURS else synthesize_by_peer
            n_rows = min(options.rows or len(train), len(train))
            rows = train.sample(n_rows, random_state=seed) if n_rows < len(train) else train
            start = time.perf_counter(), cpu_seconds()
            try:
                table, found = make(method, rows, schema, epsilon, seed, options)
            except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
                print(f"{what:<44} {type(error).__name__}", flush=True)
                continue
            spent = time.perf_counter() - start[0], cpu_seconds() - start[1]
            if options.save:
                file = f"{method}-{name}-{epsilon:g}-{seed}-{len(table)}.parquet"
                table.to_parquet(options.save / file)
            seen = found.conform(test) if options.conform else test
            areas = measure_utility(table, seen, numbers)
            report(what, areas + variations(table, train, schema), spent)


def cpu_seconds():
    """Return the seconds that processors worked for this process and for those that it ran."""
    return sum(os.times()[:4])


def report(what, figures, seconds=()):
    print(
        f"{what:<44}"
        + "".join(f"{figure:>8.4f}" for figure in figures)
        + "".join(f"{second:>8.0f}" for second in seconds),
        flush=True,
    )


if __name__ == "__main__":
    main()
