"""Persons with histories: how rows of a person belong together, at ε = 1.

Two cases: a made population, of which the truth is known, and diabetes130 as patients and stays. In
the made one, a ward follows from the one before, costs depend on the patient, the ward and the
costs before, readmission on the number of earlier visits, gaps on readmission, and admissions on
the season. `DPHistorySampler` is compared with independent rows: those of a `DPSWFlowSampler` of
each table, with half of ε each, and the true rows without noise. Both are dealt out at random among
persons with the true numbers of rows.

    python benchmarks/run_histories.py [--epsilon 1] [--persons 20000] [--mean 5] [--seeds 3]

Printed are mean total variations, numbers in ten quantiles: of the number of rows, of gaps and of
months; of pairs of columns within a row, of a person and a row, of a row and its number, of a row
and the next, and of a column and itself in the next; the area under the curve of a classifier of
the last column of the next row, trained on synthetic histories and tested on other real ones; and
the processor's seconds of a fit.
"""

import argparse
import itertools
import time
from pathlib import Path

import numpy as np
import pandas as pd
from public_tables import require_file
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder

from skdpgen.generators import DPHistorySampler, DPSWFlowSampler

_DAY = np.timedelta64(1, "D")
_WARDS = np.array(["er", "icu", "med", "sur", "geri"])
_STAYS = [
    *("time_in_hospital", "num_lab_procedures", "num_procedures", "num_medications"),
    *("number_inpatient", "number_diagnoses", "A1Cresult", "insulin", "change", "diabetesMed"),
    *("admission_type_id", "readmitted"),
]


def make_population(n, mean, max_rows, rng):
    """Return patients and visits."""
    severity = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    age = rng.normal(40 + 12 * severity, 15).clip(0, 100).round().astype(int)
    counts = rng.poisson(mean - 2.4 + 2 * severity).clip(1, max_rows)
    patients = pd.DataFrame(
        {
            "patient": np.arange(n) * 7 + 13,
            "severity": np.array(["low", "mid", "high"])[severity],
            "age": age,
            "region": np.array(list("abcdef"))[rng.integers(0, 6, n)],
            "sex": np.array(["f", "m"])[rng.integers(0, 2, n)],
        }
    )
    steps = np.full((5, 5), 0.08) + np.eye(5) * 0.6
    # More patients come in winter.
    season = 1 + 0.6 * np.cos(2 * np.pi * np.arange(365) / 365)
    day = rng.choice(365, n, p=season / season.sum()) + 365 * rng.integers(0, 2, n)
    ward, cost, again, rows = (severity + rng.integers(0, 3, n)).clip(0, 4), np.full(n, 0.5), 0, []
    for t in range(max_rows):
        if t:
            ward = (rng.random((n, 1)) > steps[ward].cumsum(1)).sum(1).clip(0, 4)
            mean_gap = 30 * (3 - severity) * np.where(again, 0.3, 1)
            day = day + np.ceil(rng.exponential(mean_gap)).astype(int)
        cost = 0.3 * severity + 0.4 * ward + 0.5 * cost + 0.01 * age + rng.normal(0, 0.4, n)
        again = rng.random(n) < 1 / (1 + np.exp(2.5 - 0.6 * t - 0.3 * severity))
        here = t < counts
        rows.append(
            pd.DataFrame(
                {
                    "patient": patients["patient"][here],
                    "admitted": np.datetime64("2020-01-01") + day[here] * _DAY,
                    "ward": _WARDS[ward[here]],
                    "cost": np.exp(cost[here] + 5).round(2),
                    "readmitted": np.where(again[here], "yes", "no"),
                }
            )
        )
    # In random order: the column "admitted" says which row comes first.
    visits = pd.concat(rows).sample(frac=1, random_state=rng.integers(2**31))
    return patients, visits.reset_index(drop=True)


def read_diabetes(seed):
    """Return patients and stays, three quarters of the patients, and the others."""
    path = require_file("diabetes130.csv.gz")
    table = pd.read_csv(path, keep_default_na=False).sort_values("encounter_id")
    patients = table.drop_duplicates("patient_nbr")[["patient_nbr", "race", "gender", "age"]]
    stays = table[["patient_nbr", *_STAYS]].reset_index(drop=True)
    is_fitted = np.random.default_rng(seed).random(len(patients)) < 0.75
    parts = []
    for chosen in (patients[is_fitted], patients[~is_fitted]):
        own = stays[stays["patient_nbr"].isin(chosen["patient_nbr"])]
        parts.append((chosen.reset_index(drop=True), own.reset_index(drop=True)))
    return parts


class Histories:
    """Histories as codes of levels: numbers in ten quantiles of the true ones."""

    def __init__(self, persons, rows, key, order, max_rows, true=None):
        rows = rows if order is None else rows.sort_values(order, kind="stable")
        number = rows.groupby(key, sort=False).cumcount()
        rows = rows[number < max_rows].assign(number=number[number < max_rows])
        rows = rows.sort_values([key, "number"])
        columns = [name for name in rows if name not in (key, order, "number")]
        self.persons = persons.drop_duplicates(key).set_index(key)
        self.of_person = rows[key].to_numpy()
        counts = rows[key].value_counts().reindex(self.persons.index, fill_value=0)
        self.cuts = {} if true is None else true.cuts
        encoded = {name: self._encode(name, rows[name]) for name in columns}
        self.rows = pd.DataFrame(encoded | {"number": rows["number"].to_numpy()})
        about = {name: self._encode(name, self.persons[name]) for name in self.persons}
        self.persons = pd.DataFrame(about | {"rows": counts.to_numpy()}, index=self.persons.index)
        self.columns, self.orders = columns, None if order is None else rows[order].to_numpy()

    def _encode(self, name, column):
        if column.dtype.kind not in "iuf":
            return column.astype(str).to_numpy()
        if name not in self.cuts:
            self.cuts[name] = np.unique(np.quantile(column, np.arange(1, 10) / 10))
        return np.searchsorted(self.cuts[name], column).astype(str)

    @property
    def is_step(self):
        return self.of_person[1:] == self.of_person[:-1]

    def tables(self):
        """Return the tables by kind and columns, as pairs of columns of codes."""
        rows, columns = self.rows, self.columns
        owners = self.persons.loc[self.of_person].reset_index(drop=True)
        before, after = rows[:-1][self.is_step], rows[1:][self.is_step]
        found = {"rows": [self.persons[["rows"]].astype(str)]}
        if self.orders is not None:
            gaps = np.diff(self.orders)[self.is_step] / _DAY
            self.cuts.setdefault("gap", np.unique(np.quantile(gaps, np.arange(1, 10) / 10)))
            found["gap"] = [pd.DataFrame(np.searchsorted(self.cuts["gap"], gaps))]
            found["month"] = [pd.DataFrame(pd.Series(self.orders).dt.month.to_numpy())]
        found["within"] = [rows[[*pair]] for pair in itertools.combinations(columns, 2)]
        found["person"] = [
            pd.DataFrame({"person": owners[a].to_numpy(), "row": rows[b].to_numpy()})
            for a in owners
            for b in columns
        ]
        found["number"] = [rows[[name, "number"]] for name in columns]
        pairs = [(a, b) for a in columns for b in columns]
        steps = [
            pd.DataFrame({"row": before[a].to_numpy(), "next": after[b].to_numpy()})
            for a, b in pairs
        ]
        found["next"] = steps
        found["same"] = [step for step, (a, b) in zip(steps, pairs, strict=True) if a == b]
        return found


def vary(true, made):
    """Return the mean total variation of the tables of each kind."""
    figures = {}
    for kind, tables in true.items():
        pairs = zip(tables, made[kind], strict=True)
        figures[kind] = np.mean([_vary_one(*pair) for pair in pairs])
    return figures


def _vary_one(first, second):
    shares = [table.value_counts(normalize=True) for table in (first, second)]
    return shares[0].sub(shares[1], fill_value=0).abs().sum() / 2


def predict(made, real):
    """Return the area under the curve for the last column of the next row of real histories."""

    def make_xy(histories):
        before = histories.rows[:-1][histories.is_step].add_suffix(" before")
        persons = histories.persons.drop(columns="rows")
        about = persons.loc[histories.of_person[1:][histories.is_step]]
        X = pd.concat([before.reset_index(drop=True), about.reset_index(drop=True)], axis=1)
        y = histories.rows[histories.columns[-1]][1:][histories.is_step]
        return X.astype(str), (y != "NO") & (y != "no")

    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1)
    columns = make_column_transformer((encoder, slice(None)))
    model = make_pipeline(columns, HistGradientBoostingClassifier(random_state=0))
    X, y = make_xy(real)
    return roc_auc_score(y, model.fit(*make_xy(made)).predict_proba(X)[:, 1])


def deal(rows, keys, rng):
    """Return rows with keys that are dealt out at random."""
    return rows.assign(**{keys.name: rng.permutation(keys)})


def fit_apart(tables, key, max_rows, seed, options):
    """Return persons and independent rows of fits of each table alone."""
    persons, rows = tables
    made = []
    for table, n_rows, by in (
        (persons.drop(columns=key), len(persons), {}),
        (rows, len(rows), {"persons": key}),
    ):
        sampler = DPSWFlowSampler(
            options.epsilon / 2, 0.5e-6, random_state=seed, max_rows_per_person=max_rows
        )
        made.append(sampler.fit(table, **by).sample(n_rows))
    made[0][key] = persons[key].to_numpy()
    keys = rows[key].reset_index(drop=True)
    return made[0], deal(made[1], keys, np.random.default_rng(seed))


def run(case, seed, options):
    """Return the figures of the sampler, of independent rows, and of the truth."""
    rng = np.random.default_rng(seed)
    if case == "made":
        max_rows, key, order = 8, "patient", "admitted"
        fitted, other = (
            make_population(options.persons, options.mean, max_rows, rng) for _ in range(2)
        )
    else:
        max_rows, key, order = 5, "patient_nbr", None
        fitted, other = read_diabetes(seed)
    sampler = DPHistorySampler(
        options.epsilon, 1e-6, max_rows_per_person=max_rows, random_state=seed
    )
    start = time.process_time()
    sampler.fit(dict(zip(("persons", "rows"), fitted, strict=True)), persons=key, order=order)
    spent = time.process_time() - start
    made = sampler.sample()
    true = Histories(*fitted, key, order, max_rows)
    tables = true.tables()
    others = Histories(*other, key, order, max_rows, true)
    folder = options.peer and Path(options.peer)
    if folder and not (folder / "persons.csv").exists():
        folder.mkdir(exist_ok=True)
        for name, table in zip(("persons", "rows"), fitted, strict=True):
            table.to_csv(folder / f"{name}.csv", index=False)
    cases = {
        "histories": Histories(made["persons"], made["rows"], key, order, max_rows, true),
        "independent rows": Histories(
            *fit_apart(fitted, key, max_rows, seed, options), key, order, max_rows, true
        ),
        "independent rows, no noise": Histories(
            fitted[0], deal(fitted[1], fitted[1][key], rng), key, order, max_rows, true
        ),
        "other real persons": others,
    }
    if folder and (folder / "made_rows.csv").exists():
        dates = [order] if order else []
        rows = pd.read_csv(folder / "made_rows.csv", parse_dates=dates)
        persons = pd.read_csv(folder / "made_persons.csv")
        cases["peer, not private"] = Histories(persons, rows, key, order, max_rows, true)
    for name, histories in cases.items():
        figures = vary(tables, histories.tables())
        figures["auc"] = predict(true if histories is others else histories, others)
        figures["cpu"] = spent if name == "histories" else np.nan
        yield name, figures


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--persons", type=int, default=20_000)
    parser.add_argument("--mean", type=float, default=5.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--cases", nargs="+", default=["made", "diabetes130"])
    parser.add_argument("--peer", help="folder for the tables of run_par.py, which see")
    options = parser.parse_args()
    for case in options.cases:
        for seed in range(options.seeds):
            for name, figures in run(case, seed, options):
                shown = "".join(f"  {kind} {figure:.3f}" for kind, figure in figures.items())
                print(f"{case}, seed {seed}, {name}:{shown}", flush=True)


if __name__ == "__main__":
    main()
