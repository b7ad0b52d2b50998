# SPDX-License-Identifier: BSD-3-Clause
"""Made records to audit generators on, and fits that an audit can look into."""

import math

import numpy as np
import pandas as pd
import torch
from sklearn.base import clone

from .encoders import split_encoder
from .mechanisms.noise import NoiseSource
from .tables.columns import Category, Date, Number, Unknown
from .tables.format import TableFormat, TableKind
from .tables.schema import Schema

# Of what is open, made records hold these.
_CLOSED = {
    Unknown: Category(["a", "1", "2"]),
    Number: Number(0, 100),
    Category: Category(["a", "b", "c"]),
    Date: Date("2020-01-01", "2024-12-31"),
}
# Of texts that are said to be something.
_SAID = {
    "number": Category(["1", "2.5", "3"]),
    "integer": Category(["1", "2", "3"]),
    "date": Category(["2020-02-29", "2021-06-30"]),
    "boolean": Category(["true", "false"]),
}
# Norms of extreme rows, in units of the radius. Beside a small one, a large one turns gradients
# round.
_SIZES = (1.0, 1e6, 0.1)
# Greatest norm of the rows that are not extreme: extreme ones lie far outside of a radius that is
# inferred from them.
_INSIDE = 0.1


class Audits:
    """Makes records for audits, and says what a fit is asked for."""

    def _make_audited(self, n_rows, n_features, n_classes, generator, *, has_extremes=True):
        """Return a clone, and made records: the arguments of `fit` beside persons.

        If there are extreme ones, they are the first, and all others are at random well inside of
        the ball; else all are at random at the edge.
        """
        copied = clone(self)
        copied._check_params()
        if getattr(copied, "schema", None) is not None:
            return copied, _make_table(copied, n_rows, generator)
        made = _make_arrays(copied, n_rows, n_features, n_classes, generator, has_extremes)
        return copied, made

    def _fit_audited(self, data, seed):
        """Fit, or whatever else it is that releases something."""
        self.set_params(random_state=seed)
        if not hasattr(self, "privatize"):
            self.fit(**data)
        else:
            self.fit(data["X"]).privatize(**data)

    def _find_max_rows(self, has_persons):
        """Return how many rows of a person count, or None."""
        if has_persons and not hasattr(self, "max_rows_per_person"):
            raise ValueError(f"{type(self).__name__} releases rows one by one: not of persons.")
        return self.max_rows_per_person if has_persons else None


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


def _make_table(estimator, n_rows, generator):
    schema = estimator.schema
    if not isinstance(schema, Schema):
        raise ValueError("To make records takes a Schema; of schema='private', audit a table.")
    closed = schema.replace(
        {
            name: _SAID.get(getattr(kind, "expected", None), _CLOSED[type(kind)])
            for name, kind in schema.items()
            if name in schema.open_names
        }
    )
    kind = TableKind(tuple(closed), {}, None, False, False)
    format = TableFormat(closed, kind)

    def generate(classes, _):
        # Of one level in most columns, as extreme records are.
        weights = generator.uniform(size=(len(classes), format.n_columns)) ** 8
        return torch.as_tensor(weights / np.linalg.norm(weights, axis=1, keepdims=True))

    noise = NoiseSource(int(generator.integers(2**32)), stream=1)
    table = format.sample(generate, np.ones(1), n_rows, y=None, where=None, noise=noise)
    for name, column in schema.items():
        if column.is_unknown:
            table[name] = table[name].astype(object)
    # At bounds, which are knots, a number weighs as much as a category.
    for name, column in closed.learnt.items():
        if column.has_knots:
            ends = pd.Series([column.lower, column.upper]).astype(table[name].dtype)
            n_ends = n_rows // 2
            table[name] = (
                pd.concat([ends] * (n_ends // 2 + 1)).iloc[:n_ends].tolist()
                + table[name].iloc[n_ends:].tolist()
            )
    return {"X": table}
