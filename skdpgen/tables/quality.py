# SPDX-License-Identifier: BSD-3-Clause
"""Fit-quality warnings of columns and strata, computed from released tables."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..histograms.grids import find_widths
from ..messages import Message
from ..quality import (
    LEAST_SIGNAL,
    MOSTLY_MISSING,
    WITHIN_NOISE,
    warn_of_classes,
    warn_of_columns,
    warn_of_fit,
)

# Largest share of `other` in a column of inferred categories without a warning.
MUCH_OTHER = 0.25
# A level with this share of a column has nearly all of it.
NEARLY_ALL = 0.98
# A bound may cut a column if this share is there, with so many times the density next to it. Smooth
# densities have up to 2.7 times, those of an arcsine distribution.
MUCH_AT_BOUND, DENSER_THAN_BESIDE = 0.05, 3.0
# The rarer one of two values is clear of noise with so many standard deviations.
RARE = 4.0


def warn_of_levels(
    signals: Sequence[float], counts: np.ndarray, label: str, levels: Sequence, other=None
) -> None:
    """Warn if the tables of some strata of the target are mostly noise.

    `signals` are the signal-to-noise ratios of these tables, `counts` the noisy numbers of their
    records, and `other` is the level of all rare categories, which may be empty.
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


def warn_of_table(
    report: pd.DataFrame,
    schema,
    label: str | None,
    counts: dict[str, np.ndarray],
    std: dict[str, float],
    inferred: dict[str, Sequence[str]] | None = None,
    *,
    has_absent: bool = False,
) -> None:
    """Warn of columns that the released counts hardly describe.

    `report` is as from `tables.report.describe`. For each column that is encoded, `counts` are the
    noisy counts of its levels or near its knots, and `std` is the noise; `inferred` are the names
    of parameters that were not declared.
    """
    inferred = inferred or {}
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for name, row in report.iterrows():
        opened, column_type = inferred.get(name, ()), schema[name]
        is_inferred, most_other = "categories" in opened, MUCH_OTHER
        if name == label and is_inferred:
            # All others are one class.
            most_other = WITHIN_NOISE * std[name] / max(counts[name].sum(), 1)
        if row["share_missing"] > MOSTLY_MISSING:
            found["missing"][name] = f"{row['share_missing']:.0%}"
        if name not in counts:
            continue
        lacking = _list_lacking(counts[name], std[name], column_type)
        # Of levels that somebody declared, and that occur, much `other` is likely meant.
        if row["share_other"] > most_other and row["n_levels"] > 1 and (is_inferred or lacking):
            cause = "other" if is_inferred else "spelled"
            found[cause][name] = f"{row['share_other']:.0%} {column_type.other!r}"
        if name not in found["missing"] and _is_constant(counts[name], std[name]):
            at = _find_bound(counts[name], column_type, opened)
            is_left = has_absent and lacking and not is_inferred
            cause = "at bound" if at is not None else "spelled" if is_left else "constant"
            cause = "order" if name in schema.differences and at is not None else cause
            found[cause][name] = "" if at is None else f"{at}"
        elif column_type.has_knots:
            noise = np.full(len(counts[name]), std[name])
            for end in ("lower", "upper"):
                if share := find_clipped(column_type, end, counts[name], noise, opened):
                    details = found["cut" if end in opened else "clipped"]
                    before = f"{details[name]} and " if name in details else ""
                    details[name] = f"{before}{share:.0%} at {row[end]}"
    for cause, details in found.items():
        warn_of_columns(cause, details)
    levels: Sequence = getattr(schema.get(label), "levels", ())
    if len(levels) == 1 and label in inferred:
        warn_of_fit(
            Message(
                "One level of the target {label!r} shows above the noise, {level!r}: rows of "
                "others count as absent. Declare its levels, {levels}.",
                {"label": label, "level": levels[0]},
            )
        )
    if label in counts and (lacking := _list_lacking(counts[label], std[label], schema[label])):
        warn_of_classes(f"{len(lacking)} of the {len(levels)} levels of {label!r}", f"{lacking}")


def _list_lacking(counts, std, column_type):
    """List the levels, besides that of all others, that do not show above the noise."""
    levels = zip(getattr(column_type, "levels", ()), counts, strict=False)
    return [x for x, n in levels if n < WITHIN_NOISE * std and x != column_type.other]


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


def find_clipped(
    column_type, end: str, counts: np.ndarray, std: np.ndarray, inferred: Sequence[str] = ()
) -> float:
    """Return the share at a bound if it is far more than the density next to it predicts, else 0.

    Not at 0, where many columns end, nor at dates that stand for missing ones; nor at a point mass,
    if the bound was inferred or the point mass declared; nor if each value has a knot: counts show
    the next one. But rare amounts that no range shows are all counted at the inferred second value.
    Counts are those near the knots and of the point masses.
    """
    number = column_type.to_number()
    knots, atoms = number.positions, list(number.atoms or ())
    bound, order = getattr(number, end), [0, 1] if end == "lower" else [-1, -2]
    is_atom, near, std = bound in atoms, counts[: len(knots)], std[: len(knots)]
    is_usual = bound == 0 or (column_type.is_date and bound in column_type.candidates)
    if is_usual or (is_atom and (end in inferred or "atoms" not in inferred)):
        return 0.0
    if len(knots) in (2, number.n_values):
        is_amount = end in inferred and len(knots) == number.n_values == 2 and not atoms
        is_rare = is_amount and near.min() < RARE * std.max()
        return near[order[0]] / counts.sum() * is_rare
    if end not in inferred and "atoms" in inferred:
        # A point mass at the bound was looked for.
        excess = first = counts[len(knots) + atoms.index(bound)] if is_atom else 0.0
        noise = std[0]
    else:
        first, second = near[order]
        ratio = np.divide(*find_widths(knots)[order]) * DENSER_THAN_BESIDE
        excess, noise = first - ratio * max(second, 0), std[order] @ [1, ratio]
    share = first / counts.sum()
    return share * (excess > WITHIN_NOISE * noise and share > MUCH_AT_BOUND)
