# SPDX-License-Identifier: BSD-3-Clause
"""Fit-quality warnings of columns and strata, computed from released tables."""

import numpy as np

from ..messages import Message
from ..quality import (
    LEAST_SIGNAL,
    MOSTLY_MISSING,
    MOSTLY_OTHER,
    WITHIN_NOISE,
    warn_of_classes,
    warn_of_columns,
    warn_of_fit,
)

# Largest share of `other` in a column of inferred categories without a warning.
MUCH_OTHER = 0.25
# A level with this share of a column has nearly all of it.
NEARLY_ALL = 0.98
# A range may be truncated if an outermost knot has this share of a column, and this many times the
# count of the next knot.
MUCH_AT_BOUND, MORE_THAN_BESIDE = 0.1, 4.0


def warn_of_levels(signals, counts, label, levels, other=None):
    """Warn if the tables of some strata of the target are mostly noise.

    Parameters
    ----------
    signals, counts : ndarray of shape (n_levels,)
        Signal-to-noise ratios of their tables, and noisy numbers of their records.
    label : str
        The target column.
    levels : sequence
    other : optional
        The level of all rare categories, which may be empty.
    """
    weak = [
        f"{level!r} (about {max(count, 0):.0f} records)"
        for level, signal, count in zip(levels, signals, counts, strict=True)
        if signal < LEAST_SIGNAL and level != other
    ]
    if weak:
        warn_of_fit(
            f"The tables of the records with {label!r} at {', '.join(weak)} are mostly noise: a "
            "classifier trained on synthetic rows may predict these levels hardly better than "
            "chance. Use a larger epsilon, more rows, or fewer columns."
        )


def warn_of_table(report, schema, label, counts, std, inferred=None, *, has_absent=False):
    """Warn of columns that the released counts hardly describe.

    Parameters
    ----------
    report : DataFrame
        As from `tables.report.describe`.
    schema : Schema
        The columns.
    label : str or None
        The target column.
    counts : dict of str to ndarray
        For each column that is encoded, the noisy counts of its levels or near its knots.
    std : dict of str to float
        Standard deviations of their noise.
    inferred : dict of str to tuple of str, default=None
        The parameters of columns that were inferred rather than declared.
    has_absent : bool, default=False
        Whether many records count as absent.
    """
    inferred = inferred or {}
    causes = ("missing", "other", "order", "at bound", "one left", "constant", "cut")
    found: dict[str, dict[str, str]] = {cause: {} for cause in causes}
    for name, row in report.iterrows():
        is_inferred = "categories" in inferred.get(name, ())
        most_other = MUCH_OTHER if is_inferred else MOSTLY_OTHER
        if name == label and is_inferred:
            # All others are one class.
            most_other = WITHIN_NOISE * std[name] / max(counts[name].sum(), 1)
        # Declared levels were chosen by somebody, so that much `other` is more likely meant.
        if row["share_other"] > most_other and row["n_levels"] > 1:
            found["other"][name] = f"{row['share_other']:.0%} {schema[name].other!r}"
        if row["share_missing"] > MOSTLY_MISSING:
            found["missing"][name] = f"{row['share_missing']:.0%}"
        elif name in counts and _is_constant(counts[name], std[name]):
            at = _find_bound(counts[name], schema[name], inferred.get(name, ()))
            is_left = has_absent and not (is_inferred or schema[name].has_knots)
            cause = "at bound" if at is not None else "one left" if is_left else "constant"
            cause = "order" if name in schema.differences and at is not None else cause
            found[cause][name] = "" if at is None else f"{at}"
        if name not in counts:
            continue
        ends = [
            f"{row[f'share_{end}']:.0%} at {row[end]}"
            for end in ("lower", "upper")
            if end in inferred.get(name, ()) and _is_cut(row, end, schema[name], counts, std)
        ]
        if ends:
            found["cut"][name] = " and ".join(ends)
    for cause, details in found.items():
        warn_of_columns(cause, details)
    levels = getattr(schema.get(label), "levels", ())
    if len(levels) == 1 and label in inferred:
        warn_of_fit(
            Message(
                "One level of the target {label!r} shows above the noise, {level!r}: rows of "
                "others count as absent. Declare its levels, {levels}.",
                {"label": label, "level": levels[0]},
            )
        )
    found = [
        level
        for level, count in zip(levels, counts.get(label, ()), strict=False)
        if count < WITHIN_NOISE * std[label] and level != getattr(schema[label], "other", None)
    ]
    if found:
        warn_of_classes(f"{len(found)} of the {len(levels)} levels of {label!r}", f"{found}")


def _is_constant(counts, std):
    """Return whether one level or knot has nearly all records, and others none above noise."""
    others = np.sort(counts)[:-1]
    return bool(
        counts.max() > NEARLY_ALL * np.clip(counts, 0, None).sum()
        and others.max(initial=0) < WITHIN_NOISE * std
        and len(others)
    )


def _find_bound(counts, column_type, inferred):
    """Return the declared bound at which a constant number or date is; None for others."""
    if not column_type.has_knots:
        return None
    number = column_type.to_number()
    values = [*column_type.positions, *(number.atoms or ())]
    at = int(np.argmax(counts))
    for end in ("lower", "upper"):
        # The last count may be of missing values.
        if end not in inferred and at < len(values) and values[at] == getattr(number, end):
            return getattr(column_type, end)
    return None


def _is_cut(row, end, column_type, counts, std):
    """Return whether an outermost knot has far more than the next one, and than noise.

    A bound of 0 never counts, since many columns end there; nor does one at which there is a point
    mass, nor one of a column of which each value has its knot, as the counts show the next ones;
    but of two values, the rarer must be clear of noise.
    """
    if not row[f"share_{end}"] > MUCH_AT_BOUND or row[end] == 0:
        return False
    number, n_knots = column_type.to_number(), len(column_type.positions)
    is_lower = end == "lower"
    atoms = number.atoms or ()
    has_atom = any(a <= number.lower if is_lower else a >= number.upper for a in atoms)
    knots = counts[row.name][:n_knots]
    if n_knots < 3 and not atoms:
        return n_knots == number.n_values and knots.min() < MORE_THAN_BESIDE * std[row.name]
    if n_knots == number.n_values or has_atom:
        return False
    first, second = knots[:2] if is_lower else knots[:-3:-1]
    beside = max(second, 0) + WITHIN_NOISE * std[row.name]
    return first > MORE_THAN_BESIDE * beside
