"""Judges of others: NIST's report, SDMetrics' reports, and Anonymeter's risks.

Each judge has an environment of its own, by whose Python `judges.py` is run:

    python -m venv nist && nist/bin/pip install sdnist==2.4
    python -m venv sdmetrics && sdmetrics/bin/pip install sdmetrics
    python -m venv anonymeter && anonymeter/bin/pip install anonymeter
    SKDPGEN_DATA=folder python benchmarks/run_judges.py nist nist/bin/python [--epsilon 1 10]

For ``nist`` the folder has the national table of 2019 of NIST's Diverse Communities Data Excerpts,
nist_national2019.csv.gz, and its dictionary, nist_data_dictionary.json. δ is 2.2e-7. The schema
declares what the dictionary lists. "knots" declares 20 evenly spaced knots of ages as well, "rules"
the dictionary's implications, and "all" has 22 columns. The others judge Adult, with nothing
declared, whose training rows have as many synthetic ones. Anonymeter attacks 5,000 of them, and as
many test rows as the control: it extrapolates controls of other sizes.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from public_tables import load_table

from skdpgen import Category, DPSWFlowSampler, Implies, Number, Schema

FEATURES = "AGEP SEX MSP RAC1P HOUSING_TYPE OWN_RENT EDU PINCP_DECILE DVET DEYE".split()
ADULT = {"AGEP": (15, None)}
CHILD = {"AGEP": (None, 14)}
RULES = [
    Implies(CHILD, {"MSP": "N"}),
    Implies(CHILD, {"PINCP_DECILE": "N"}),
    Implies(CHILD, {"DVET": "N"}),
    Implies(CHILD, {"EDU": ["N", *map(str, range(1, 12))]}),
    Implies({"AGEP": (None, 4)}, {"EDU": ["N", "1", "2", "3", "4"]}),
    Implies({"AGEP": (None, 2)}, {"EDU": "N"}),
    Implies({"AGEP": (3, None)}, {"EDU": [str(i) for i in range(1, 13)]}),
    Implies(ADULT, {"MSP": [str(i) for i in range(1, 7)]}),
    Implies(ADULT, {"PINCP_DECILE": [str(i) for i in range(10)]}),
    Implies({"HOUSING_TYPE": ["2", "3"]}, {"OWN_RENT": "0"}),
    Implies({"HOUSING_TYPE": "1"}, {"OWN_RENT": ["1", "2"]}),
]


def load_nist():
    """Return the table as texts, and the values that its dictionary lists for each column."""
    folder = Path(os.environ["SKDPGEN_DATA"])
    table = pd.read_csv(folder / "nist_national2019.csv.gz", dtype=str, keep_default_na=False)
    words = json.loads((folder / "nist_data_dictionary.json").read_text())
    # Of industries it names the public list of codes.
    words["INDP"]["values"] = dict.fromkeys(table["INDP"])
    return table, {name: words[name]["values"] for name in table}


def declare(name, values, n_knots):
    """Return the column type that the dictionary declares."""
    if "min" not in values:
        return Category(sorted(values))
    if name in ("NOC", "NPF"):
        return Category(["N", *map(str, range(values["max"] + 1))])
    return Number(
        values["min"], values["max"], decimals=1 if name == "DENSITY" else 0,
        n_knots=n_knots if name == "AGEP" else None, missing="N" in values,
        atoms=[501] if "501" in values else None,
    )  # fmt: skip


def fit_nist(way, epsilon, seed):
    """Return the table, synthetic rows, and the seconds of a fit and its sample."""
    table, values = load_nist()
    names = [c for c in table if c not in ("PWGTP", "WGTP")] if way == "all" else FEATURES
    table = table[names]
    rules = RULES if way == "rules" else []
    n_knots = 20 if way != "bounds" else None
    schema = Schema({name: declare(name, values[name], n_knots) for name in names}, rules)
    rows = table.copy()
    for name, column in schema.items():
        if isinstance(column, Number):
            rows[name] = pd.to_numeric(rows[name].replace("N", np.nan))
    start = time.process_time()
    sampler = DPSWFlowSampler(epsilon, 2.2e-7, schema=schema, random_state=seed)
    made = sampler.fit(rows).sample(len(rows))
    seconds = time.process_time() - start
    for frame in (made, rows):
        for name, column in schema.items():
            if isinstance(column, Number):
                texts = frame[name].map(lambda x, d=column.decimals: f"{x:.{d}f}", "ignore")
                frame[name] = texts.astype(object).where(frame[name].notna(), "N")
    return rows, made, seconds


def judge(python, name, real, made, **files):
    """Return the scores of a judge, by its Python."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, f"{part}.csv") for part in ("real", "synthetic")]
        for path, table in zip(paths, (real, made), strict=True):
            table.to_csv(path, index=False)
        command = [python, "-W", "ignore", Path(__file__).with_name("judges.py"), name, *paths]
        for option, content in files.items():
            path = Path(folder, option)
            path.write_text(content)
            command += [f"--{option}", path]
        text = subprocess.run([*map(str, command)], check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(text.stdout[text.stdout.index("{") :])


def run_nist(options):
    for way in options.ways:
        for epsilon in options.epsilon:
            for seed in range(options.seeds):
                real, made, seconds = fit_nist(way, epsilon, seed)
                scores = judge(options.python, "nist", real, made)
                yield {"way": way, "epsilon": epsilon, "seed": seed, **scores, "seconds": seconds}


def run_adult(options):
    data = load_table("adult")
    train, test = (data[f"X_{p}"].assign(income=data[f"y_{p}"]) for p in ("train", "test"))
    for epsilon in options.epsilon:
        for seed in range(options.seeds):
            sampler = DPSWFlowSampler(epsilon, 1e-6, random_state=seed)
            made = sampler.fit(train, target="income").sample(len(train))
            if options.judge == "sdmetrics":
                real = train
                files = {"metadata": json.dumps(sampler.schema_.to_metadata(format="sdv"))}
            else:
                real, control = (part.sample(5000, random_state=seed) for part in (train, test))
                files = {"test": control.to_csv(index=False)}
            scores = judge(options.python, options.judge, real, made, **files)
            yield {"epsilon": epsilon, "seed": seed, **scores}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("judge", choices=["nist", "sdmetrics", "anonymeter"])
    parser.add_argument("python", help="of the environment of the judge")
    parser.add_argument("--ways", nargs="+", default=["bounds", "knots", "rules", "all"])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--output", type=Path, help="CSV of all rows")
    options = parser.parse_args()
    rows = []
    for row in run_nist(options) if options.judge == "nist" else run_adult(options):
        print({name: round(x, 4) if isinstance(x, float) else x for name, x in row.items()})
        rows.append(row)
        if options.output:
            pd.DataFrame(rows).to_csv(options.output, index=False)
