# SPDX-License-Identifier: BSD-3-Clause
"""Fits of estimators to published releases, and what estimators may declare beside these."""

import operator
from collections.abc import Callable, Sequence
from dataclasses import replace
from os import PathLike

import numpy as np
from sklearn.base import clone

from ..accounting.provenance import list_parameters, show_value
from ..encoders import split_encoder
from .published import PublishedRelease, open_release
from .release import Release


def from_release(
    source: str | PathLike | PublishedRelease | Release, estimator, *, rules: Sequence = ()
):
    """Fit an estimator to a published release, at no privacy cost.

    With the class and the parameters of the fit that made the release, the result is the same to
    the bit.

    Parameters
    ----------
    source : str, path, PublishedRelease or Release
        The file of a published release, the release itself, or a fitted attribute `release_`.
    estimator : estimator
        An unfitted generator. Its ε, δ, relation and accountant are set to those of the release;
        other parameters that the release determines must be the same, or at their defaults.
        A slice sketch takes the class that released it, and its parameters of arrays; tables take
        `DPSWFlowSampler` and `DPSlicedWassersteinGenerator`.
    rules : sequence of rule, default=()
        Public rules of a table, beside those of its schema.

    Returns
    -------
    estimator
        The fitted clone.

    Raises
    ------
    ValueError
        If the estimator cannot learn from the release, or declares something else.
    """
    published = open_release(source)
    plan, format = published.plan, published.format
    if rules:
        if format.parameters.get("schema") is None:
            raise ValueError("rules are for tables; the release is of an array.")
        schema = format.schema
        format = replace(format, schema=type(schema)(schema, (*schema.rules, *rules)))
    known = estimator.get_params(deep=False)
    terms = {name: getattr(plan, name) for name in ("epsilon", "delta", "relation", "accountant")}
    # Local methods have no relation.
    fitted = clone(estimator).set_params(**{n: v for n, v in terms.items() if n in known})
    _check_declared(fitted, published)
    # The released sums are of so many rows per person, whatever the new estimator would take.
    if plan.max_rows is not None:
        fitted.set_params(max_rows_per_person=plan.max_rows)
    return fitted._fit_published(published, format)


def _check_declared(estimator, published):
    """Raise a ValueError for a parameter that is set, and that a release contradicts."""
    estimator._check_params()
    format, parameters = published.format, dict(published.format.parameters)
    if parameters.get("schema") is not None:
        estimator._refuse_array_params()
    if published.plan.max_rows is not None:
        parameters["max_rows_per_person"] = published.plan.max_rows
    for name, _ in list_parameters(estimator):
        agrees = _AGREES.get(name, _are_equal)
        if name in parameters and not agrees(getattr(estimator, name), parameters[name]):
            raise ValueError(
                f"{name} of {type(estimator).__name__} is not that of the release, which "
                "determines it: leave it at its default."
            )
    release = estimator._find_release(format)
    for name, text in list_parameters(release) if type(release) is type(published.release) else ():
        released = show_value(getattr(published.release, name))
        if text != released:
            raise ValueError(
                f"{name} of {type(release).__name__} is {text}, and the release has {released}: "
                "leave it at its default."
            )


def _are_resolved(schemas, released):
    """Return whether the tables of histories have all declared columns; some are never missing."""
    return all(
        name in released.get(table, ())
        and (own := released[table][name]).resolves(
            replace(column, missing=own.missing) if hasattr(own, "missing") else column
        )
        for table, schema in schemas.items()
        for name, column in schema.columns
    )


def _is_resolved(schema, released):
    """Return whether a table has all declared columns, or an array no schema."""
    if schema is None or released is None:
        return schema is released
    return isinstance(schema, str) or released.resolves(schema)


def _are_equal(given, released):
    """Return whether arrays, or numbers for all columns, are equal."""
    if released is None:
        return False
    pairs = [(np.asarray(g), np.asarray(r)) for g, r in zip(given, released, strict=False)]
    return len(given) == len(released) and all((g == r).all() for g, r in pairs)


# By the name of a parameter: whether a given value agrees with that of a release.
_AGREES: dict[str, Callable] = {
    "schema": _is_resolved,
    "schemas": _are_resolved,
    "clip_norm": lambda given, released: released in (given, min(given, 1.0)),
    "encoder": lambda given, released: show_value(split_encoder(given)) == show_value(released),
    "max_rows_per_person": operator.eq,
}
