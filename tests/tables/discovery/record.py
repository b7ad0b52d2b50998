"""Write the recordings: ``cd tests/tables && SKDPGEN_DATA=... python -m discovery.record [NAME]``.

Do so only where what is released, or what follows from it, is meant to change.
"""

import os
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd

from .replay import N_ROWS, Case, record, save
from .test_messy_columns import make_messy

sys.path.append(str(Path(__file__).parents[3] / "benchmarks"))
from public_tables import load_table
from run_ranges import make_columns

EPSILONS = 0.3, 1.0, 3.0
# Most rows of a public table.
_MOST = 20_000


def _record_ranges(n_columns):
    """Record the columns of ``benchmarks/run_ranges.py``, so many to a table."""
    rng = np.random.default_rng(0)
    columns = make_columns(3000, rng)
    keys = list(columns) if n_columns == 1 else [list(columns)[i] for i in rng.permutation(72)]
    for start in range(0, len(keys), n_columns):
        data = pd.DataFrame({str(k): columns[k] for k in keys[start : start + n_columns]})
        yield Case(data.head(N_ROWS)), data, 1.0


def _record_messy():
    data = make_messy()[0]
    yield from ((Case(None), data, epsilon) for epsilon in (1.0, np.inf))


def _record_table(name, target):
    if name == "census_income":
        path = Path(os.environ["SKDPGEN_DATA"], "census_income_kdd_test.csv.gz")
        data = pd.read_csv(path, keep_default_na=False).drop(columns="instance_weight")
    else:
        loaded = load_table(name)
        data = loaded.X_train.assign(**{target: loaded.y_train})
    data = data.sample(min(len(data), _MOST), random_state=0).reset_index(drop=True)
    for epsilon in EPSILONS:
        yield Case(data.head(N_ROWS), target), data, epsilon


def _record_arrays():
    """Record the columns of ``benchmarks/run_ranges.py`` in arrays of 12, and of all."""
    columns = np.column_stack(list(make_columns(3000, np.random.default_rng(1)).values()))
    parts = [columns[:, start : start + 12] for start in range(0, 72, 12)]
    for data, has_number in [*((part, False) for part in parts), (parts[0], True), (columns, True)]:
        box = {
            "n_samples": len(data),
            "n_features": data.shape[1] - has_number,
            "multiplier": 3.7,
            "relation": "zero_out",
            "has_number": has_number,
        }
        yield Case(data[:N_ROWS], box=box), data, 1.0


RECORDED = {
    "ranges": lambda: _record_ranges(15),
    "ranges_alone": lambda: _record_ranges(1),
    "messy": _record_messy,
    "adult": lambda: _record_table("adult", "income"),
    "bank_marketing": lambda: _record_table("bank_marketing", "y"),
    "diabetes130": lambda: _record_table("diabetes130", "readmitted"),
    "census_income": lambda: _record_table("census_income", "income"),
    "california_housing": lambda: _record_table("california_housing", "MedHouseVal"),
    "arrays": _record_arrays,
}

if __name__ == "__main__":
    for name in sys.argv[1:] or RECORDED:
        start = time.perf_counter()
        cases = list(RECORDED[name]())
        save(name, [(case, eps, record(case, data, eps)) for case, data, eps in cases])
        print(f"{name}: {time.perf_counter() - start:.1f} s")
