"""Loaders of the public tables of the benchmarks, from files or from OpenML."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from public_images import fetch, find_file, require_file, split
from sklearn.utils import Bunch


@dataclass(frozen=True, kw_only=True)
class _Table:
    """Table: its file, its target, and its source on OpenML, if there is one."""

    file: str
    target: str
    drop: tuple[str, ...] = ()
    openml: tuple[str, int] | None = None  # name, version
    columns: str = ""  # feature names by position, where OpenML has others
    classes: dict[str, str] | None = None  # class names, where OpenML has others


_SPECS = {
    # 48,842 rows, 14 features; the official split of the file, a random one from OpenML.
    "adult": _Table(
        file="adult.csv.gz",
        openml=("adult", 2),
        target="income",
        columns=(
            "age workclass fnlwgt education education_num marital_status occupation relationship "
            "race sex capital_gain capital_loss hours_per_week native_country"
        ),
    ),
    # 45,211 rows, 16 features: does a client subscribe a term deposit?
    "bank_marketing": _Table(
        file="bank_marketing.csv.gz",
        openml=("bank-marketing", 1),
        target="y",
        columns=(
            "age job marital education default balance housing loan contact day month duration "
            "campaign pdays previous poutcome"
        ),
        classes={"1": "no", "2": "yes"},
    ),
    # 101,766 hospital stays, 47 features without identifiers; a patient may have several stays.
    "diabetes130": _Table(
        file="diabetes130.csv.gz",
        openml=("Diabetes130US", 1),
        target="readmitted",
        drop=("encounter_id", "patient_nbr"),
    ),
    # 858 rows, 32 features without the results of the three other examinations.
    "cervical_cancer": _Table(
        file="cervical_cancer.csv.gz",
        target="Biopsy",
        drop=("Hinselmann", "Schiller", "Citology"),
    ),
    # 20,640 rows, 8 features: the median house value of a district, a regression target.
    "california_housing": _Table(file="california_housing.csv.gz", target="MedHouseVal"),
}


def load_table(name, data_home=None):
    """Return the training and test parts of a table.

    Parameters
    ----------
    name : {"adult", "bank_marketing", "california_housing", "cervical_cancer", "diabetes130"}
    data_home : path-like, default=None
        Folder of the files. None: the folder that the environment variable ``SKDPGEN_DATA`` names;
        without it, OpenML.

    Returns
    -------
    data : Bunch
        ``X_train``, ``X_test`` : DataFrames, with NaN for missing numbers and "?" for missing
        categories. ``y_train``, ``y_test`` : Series. ``feature_names``, ``target_names``.
    """
    spec = _SPECS[name]
    path = find_file(spec.file, data_home)
    if path is None and spec.openml is None:
        require_file(spec.file)
    if path is None:
        table = _fetch_table(spec)
    else:
        table = pd.read_csv(path, keep_default_na=False, low_memory=False)
    table = table.drop(columns=list(spec.drop), errors="ignore")
    y = table.pop(spec.target)
    part = table.pop("split") if "split" in table else None
    X = table.apply(_parse_numbers)
    if part is None:
        X_train, X_test, y_train, y_test = split(X, y)
    else:
        is_train = part == "train"
        X_train, X_test, y_train, y_test = X[is_train], X[~is_train], y[is_train], y[~is_train]
    data = Bunch(X_train=X_train, y_train=y_train, X_test=X_test, y_test=y_test)
    data.feature_names = list(X.columns)
    if y.dtype.kind != "f":
        data.target_names = np.unique(y)
    return data


def _fetch_table(spec):
    fetched = fetch(spec.openml, spec.file, as_frame=True)
    table = fetched.data.copy()
    if spec.columns:
        table.columns = spec.columns.split()
    table[spec.target] = fetched.target
    for name in table:
        if not pd.api.types.is_numeric_dtype(table[name]):
            # As in the files: plain strings, "?" where missing.
            column = table[name].astype(object)
            table[name] = column.where(column.notna(), "?").astype(str)
    if spec.classes is not None:
        table[spec.target] = table[spec.target].replace(spec.classes)
    return table


def _parse_numbers(column):
    """Return a column of texts that are numbers or "?" as numbers and NaN; others unchanged."""
    if pd.api.types.is_numeric_dtype(column):
        return column
    known = column.mask(column == "?")
    if known.isna().all():
        return column
    try:
        return pd.to_numeric(known)
    except ValueError:
        return column
