# SPDX-License-Identifier: BSD-3-Clause
"""Synthetic records on which estimators are audited, and fits to them."""

import math

import numpy as np
import pandas as pd
import torch
from sklearn.base import MetaEstimatorMixin, clone

from ..checks import is_one_of
from ..encoders import split_encoder
from ..format import RowSource
from ..mechanisms.noise import NoiseSource
from ..saving.serialization import Certified
from ..tables.format import TableFormat
from ..tables.layout import TableLayout
from ..tables.schema import Schema

# Norms of extreme rows, in units of the radius. A large row next to a small one reverses gradients.
_SIZES = (1.0, 1e6, 0.1)
# Greatest norm of the rows that are not extreme: extreme ones lie far outside of a radius that is
# inferred from them.
_INSIDE = 0.1


def can_be_audited(estimator: object) -> bool:
    """Return whether an estimator releases something by itself, as searches do not."""
    return isinstance(estimator, Certified) and not isinstance(estimator, MetaEstimatorMixin)


def make_records(
    estimator, n_rows, n_features, n_classes, generator, *, has_extremes: bool = True
) -> tuple:
    """Return a clone of an estimator, and synthetic records as the arguments of its `fit`.

    With `has_extremes` the first records are extreme, and all others random and well inside the
    ball; else all are random and at its edge.
    """
    copied = clone(estimator)
    copied._check_params()
    if hasattr(copied, "schemas"):
        return copied, _make_histories(copied, n_rows, generator)
    if is_one_of(getattr(copied, "schema", None), ("auto", None)):
        data = _make_arrays(copied, n_rows, n_features, n_classes, generator, has_extremes)
        return copied, data
    return copied, {"X": _make_table("schema", copied.schema, n_rows, generator)}


def fit_records(estimator, data: dict, seed: int) -> None:
    """Fit to records, or call the method that releases something."""
    if hasattr(estimator, "_fit_audited"):
        estimator._fit_audited(data, seed)
        return
    estimator.set_params(random_state=seed)
    if hasattr(estimator, "privatize"):
        estimator.fit(data["X"]).privatize(**data)
    else:
        estimator.fit(**data)


def count_rows_per_person(estimator) -> int:
    """Return how many rows of a person count; raise a ValueError if rows cannot be persons'."""
    if hasattr(estimator, "_find_max_rows"):
        return estimator._find_max_rows(True)
    if not hasattr(estimator, "max_rows_per_person"):
        raise ValueError(f"{type(estimator).__name__} releases rows one by one: not of persons.")
    return estimator.max_rows_per_person


def _make_arrays(estimator, n_rows, n_features, n_classes, generator, has_extremes):
    params = estimator.get_params(deep=False)
    classes = params.get("classes")
    if classes is None and n_classes is not None:
        classes = list(range(n_classes))
        if "classes" in params:
            estimator.set_params(classes=classes)
    n_features = n_features or _find_width(params)
    has_bounds = params.get("bounds") is not None
    if has_extremes:
        rows = _draw_inside(n_rows, n_features, has_bounds, generator)
        extremes = _list_extremes(n_features, has_bounds)[: max(1, n_rows // 2)]
        rows[: len(extremes)] = extremes
    else:
        rows = generator.normal(size=(n_rows, n_features))
        rows = np.sign(rows) if has_bounds else rows / np.linalg.norm(rows, axis=1, keepdims=True)
    if has_bounds:
        lower, upper = (np.asarray(bound, dtype=float) for bound in params["bounds"])
        rows = lower + (rows + 1) / 2 * (upper - lower)
    elif isinstance(params.get("clip_norm"), float | int):
        rows *= params["clip_norm"]
    if classes is None:
        return {"X": rows}
    labels = np.asarray(list(classes))[np.arange(n_rows) // 2 % len(classes)]
    return {"X": rows, "y": labels}


def _find_width(params):
    """Return the number of features that parameters say, or a small one."""
    for bound in params.get("bounds") or ():
        if np.ndim(bound):
            return len(bound)
    encoder = params.get("encoder")
    public, _ = (None, None) if encoder is None else split_encoder(encoder)
    return getattr(public, "n_features_in_", 4)


def _draw_inside(n_rows, n_features, in_box, generator):
    """Return rows near the centre of the ball, which is the lower corner of a box."""
    sizes = _INSIDE * generator.uniform(size=(n_rows, 1))
    rows = sizes * generator.uniform(size=(n_rows, n_features))
    return 2 * rows - 1 if in_box else rows / math.sqrt(n_features)


def _list_extremes(n_features, in_box):
    """Return rows at the ends of the unit ball or box: opposite ones, some far beyond, and 0."""
    signs = np.ones((2, n_features))
    signs[1, 1::2] = -1
    axes = np.eye(n_features)[[0, -1]]
    directions = [axes[0], *signs / (1.0 if in_box else math.sqrt(n_features)), axes[1]]
    rows = [size * sign * row for size in _SIZES for row in directions for sign in (1, -1)]
    return np.array([*rows, np.zeros(n_features)])


def _make_histories(estimator, n_persons, generator):
    """Return two tables: persons with M equal rows, M different ones, more, one, and none."""
    given, M = estimator.schemas or {}, estimator.max_rows_per_person
    if len(given) != 2:
        raise ValueError(
            f"schemas={given!r} must declare both tables to make records of, that of persons first."
        )
    (name, own), (rows_name, of_rows) = given.items()
    # Bounds on persons show at M rows, alike or not; more rows must not count.
    counts = np.resize([M, M, 3 * M, 1, 0], n_persons)
    persons = _make_table("schemas", own, n_persons, generator)
    rows = _make_table("schemas", of_rows, counts.sum(), generator)
    owner = np.repeat(np.arange(n_persons), counts)
    # Persons whose rows are all equal to the first of them.
    first = np.r_[0, np.cumsum(counts)[:-1]][owner]
    rows = rows.iloc[np.where(owner % 5 == 0, first, np.arange(len(rows)))].reset_index(drop=True)
    key = "person"
    while key in {*own, *of_rows}:
        key += "_"
    ordered = [n for n, column in of_rows.items() if column.has_knots]
    tables = {
        name: persons.assign(**{key: np.arange(n_persons)}),
        rows_name: rows.assign(**{key: owner}),
    }
    return {"X": tables, "persons": key, "order": ordered[0] if ordered else None}


def _make_table(parameter, schema, n_rows, generator):
    if not isinstance(schema, Schema) or not schema:
        raise ValueError(
            f"{parameter}={schema!r} declares no columns to make records of: give audit a table."
        )
    closed = schema.replace(
        {name: column.example() for name, column in schema.items() if name in schema.undeclared}
    )
    layout = TableLayout(tuple(closed), {})
    format = TableFormat(closed, layout)

    def generate(classes, _):
        # Extreme records have the same level in most columns.
        weights = generator.uniform(size=(len(classes), format.n_columns)) ** 8
        return torch.as_tensor(weights / np.linalg.norm(weights, axis=1, keepdims=True))

    noise = NoiseSource(int(generator.integers(2**32)), stream=1)
    table = next(format.decode(RowSource(generate, np.ones(1), noise), [n_rows]))
    for name, column in schema.items():
        if column.is_unknown:
            table[name] = table[name].astype(object)
    # At bounds, which are knots, a number weighs as much as a category.
    for name, column in closed.items():
        if column.has_knots and name in closed.learned:
            ends = pd.Series([column.lower, column.upper]).astype(table[name].dtype)
            n_ends = n_rows // 2
            table[name] = (
                pd.concat([ends] * (n_ends // 2 + 1)).iloc[:n_ends].tolist()
                + table[name].iloc[n_ends:].tolist()
            )
    return table
