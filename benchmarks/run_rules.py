"""Rules of a schema: how many synthetic rows obey them, and what obeying costs.

A table of hospital stays is made by a script, and obeys all rules. A generator is fitted to it with
a schema without rules, and with them; both times the same rows are read, but that a derived column
is not learnt. Several fits, each with other noise.

    python benchmarks/run_rules.py [--epsilon 1] [--seeds 3] [--rows 6000]
"""

import argparse
import itertools
import time

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from skdpgen import Boolean, Category, Date, DPSlicedWassersteinGenerator, Number, Schema
from skdpgen.tables import Combinations, Derived, Implies, Ordered, Unique

CITIES = {"Wien": "AT", "Graz": "AT", "Linz": "AT", "Bonn": "DE", "Jena": "DE", "Bern": "CH"}
WARDS = ["heart", "lung", "bones", "children", "nerves", "skin"]


def whole(lower, upper, **params):
    return Number(lower, upper, decimals=0, **params)


SCHEMA = Schema(
    {
        "age": whole(0, 100),
        "insured": Category(["yes", "no"]),
        "insurer": Category(["public", "private", "abroad"], missing=True),
        "premium": Number(0, 900, decimals=2, missing=True),
        "admitted": Date("2020-01-01", "2022-12-31"),
        "discharged": Date("2020-01-01", "2023-03-31"),
        "nights": whole(1, 60),
        "rate": whole(80, 900),
        "total": whole(80, 54_000),
        "ward": Category(WARDS),
        "bed": whole(1, 2_500),
        "city": Category(list(CITIES)),
        "country": Category(["AT", "DE", "CH"]),
        "again": Boolean(),
    }
)
RULES = [
    Implies({"insured": "no"}, {"insurer": None, "premium": None}),
    Implies({"insured": "yes"}, {"insurer": ["public", "private", "abroad"], "premium": (0, 900)}),
    Ordered("admitted", "discharged"),
    Derived("total", "nights * rate"),
    Unique(["ward", "bed"]),
    Combinations(["city", "country"], [list(pair) for pair in CITIES.items()]),
]


def make_table(n_rows, seed):
    rng = np.random.RandomState(seed)
    age = rng.beta(2.5, 1.8, n_rows) * 100
    city = rng.choice(list(CITIES), n_rows, p=[0.4, 0.15, 0.1, 0.15, 0.1, 0.1])
    insured = rng.uniform(size=n_rows) < np.where(np.isin(city, ["Bern", "Jena"]), 0.6, 0.9)
    insurer = np.where(age > 60, "public", rng.choice(["public", "private"], n_rows))
    insurer = np.where((city == "Bern") & (rng.uniform(size=n_rows) < 0.5), "abroad", insurer)
    premium = (rng.gamma(4, 30, n_rows) + 3 * age * (insurer == "private")).clip(0, 900)
    nights = (1 + rng.geometric(1 / (2 + age / 12))).clip(1, 60)
    ward = np.where(age < 15, "children", rng.choice(WARDS, n_rows, p=[0.3, 0.2, 0.2, 0, 0.2, 0.1]))
    rate = np.where(ward == "skin", 120, 250) + 200 * (insurer == "private") * insured
    rate = (rate + 30 * rng.standard_normal(n_rows)).clip(80, 900).round()
    admitted = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.randint(1096, size=n_rows), "D")
    beds = pd.Series(rng.permutation(n_rows)).groupby(ward).rank().to_numpy()
    logit = -2 + age / 40 + 0.06 * nights - 0.8 * insured + 0.8 * (ward == "heart")
    return pd.DataFrame(
        {
            "age": age.astype(int),
            "insured": np.where(insured, "yes", "no"),
            "insurer": np.where(insured, insurer, None),
            "premium": np.where(insured, premium.round(2), np.nan),
            "admitted": admitted,
            "discharged": admitted + pd.to_timedelta(nights, "D"),
            "nights": nights,
            "rate": rate.astype(int),
            "total": (nights * rate).astype(int),
            "ward": ward,
            "bed": beds.astype(int),
            "city": city,
            "country": pd.Series(city).map(CITIES),
            "again": rng.uniform(size=n_rows) < 1 / (1 + np.exp(-logit)),
        }
    )


def bin_table(table, real):
    """Return levels, and deciles of numbers and dates, as integers; missing values are one."""
    binned = {}
    for name, column in table.items():
        if isinstance(SCHEMA[name], Number | Date):
            scale = (
                (lambda c: c.astype("datetime64[s]").astype("int64"))
                if isinstance(SCHEMA[name], Date)
                else (lambda c: c.astype("float64"))
            )
            edges = np.unique(scale(real[name].dropna()).quantile(np.linspace(0, 1, 11)[1:-1]))
            numbers = scale(column.fillna(real[name].dropna().iloc[0]))
            binned[name] = np.where(column.isna(), -1, np.searchsorted(edges, numbers))
        else:
            levels = pd.Index([*SCHEMA[name].levels])
            binned[name] = levels.get_indexer(column.astype(object))
    return pd.DataFrame(binned)


def total_variation(synthetic, real, names):
    both = [table[list(names)].value_counts(normalize=True) for table in (synthetic, real)]
    return both[0].sub(both[1], fill_value=0).abs().sum() / 2


def mean_variation(synthetic, real, n_columns):
    synthetic, real = bin_table(synthetic, real), bin_table(real, real)
    sets = itertools.combinations(real.columns, n_columns)
    return np.mean([total_variation(synthetic, real, names) for names in sets])


def score(train, test):
    texts = ["insured", "insurer", "ward", "city", "country"]
    numbers = ["age", "premium", "nights", "rate", "total"]
    model = make_pipeline(
        make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), texts), (StandardScaler(), numbers)
        ),
        LogisticRegression(max_iter=1000),
    )

    def plain(table):
        table = table.assign(**{name: table[name].astype(object).fillna("none") for name in texts})
        return table.assign(premium=table["premium"].fillna(0.0))

    model.fit(plain(train), train["again"])
    return roc_auc_score(test["again"], model.predict_proba(plain(test))[:, 1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=6_000)
    options = parser.parse_args()
    table, test = make_table(options.rows, seed=0), make_table(options.rows, seed=1)
    ruled = Schema(dict(SCHEMA), RULES)
    assert (ruled.share_obeying(table) == 1).all()
    print(f"real rows: LR {score(table, test):.3f}")
    results = []
    for seed, (name, schema) in itertools.product(
        range(options.seeds), {"without": SCHEMA, "with": ruled}.items()
    ):
        generator = DPSlicedWassersteinGenerator(
            epsilon=options.epsilon, delta=1e-6, schema=schema, random_state=seed
        )
        generator.fit(table)
        start = time.process_time()
        rows = generator.sample(options.rows)
        seconds = time.process_time() - start
        shares = ruled.share_obeying(rows)
        results.append(
            {
                "rules": name,
                **{
                    f"{type(rule).__name__} {i}": share
                    for i, (rule, share) in enumerate(shares.items())
                },
                "1-way": mean_variation(rows, table, 1),
                "2-way": mean_variation(rows, table, 2),
                "LR": score(rows, test),
                "seconds": seconds,
            }
        )
        print(pd.Series(results[-1]).to_frame().T.to_string(index=False), flush=True)
    print(pd.DataFrame(results).groupby("rules").mean().T.round(3).to_string())


if __name__ == "__main__":
    main()
