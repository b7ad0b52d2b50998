# SPDX-License-Identifier: BSD-3-Clause
"""What sizes and released numbers say of a fit: warnings that cost nothing."""

import warnings

import numpy as np

from .exceptions import FitQualityWarning

# Fewer bad records than this are not worth a warning.
MANY_ABSENT = 0.01
# A count is within noise below so many standard deviations.
WITHIN_NOISE = 3.0
# Energy of the numbers of a sketch, or of two-way tables, over that of their noise. With less,
# classifiers that were trained on synthetic rows of small public sets had lost much.
LEAST_SIGNAL = 0.2
# Of less of the rows, components are mostly directions of noise.
LEAST_HELD = 0.1
# A column is hardly more than `other` if that is the share of it.
MOSTLY_OTHER = 0.9
# A column is hardly more than missing values if that is the share of them.
MOSTLY_MISSING = 0.95
# A range may be cut where an outermost knot has this share of a column, and so many times what
# the knot beside it has.
MUCH_AT_BOUND, MORE_THAN_BESIDE = 0.1, 4.0
# Beyond this on both sides of zero, open bounds are not looked for.
FARTHEST = 2.0**40


def warn_of_few_rows(name, given, min_samples, stacklevel):
    """Warn, before anything is spent, of so few rows that little can be learnt of them."""
    warnings.warn(
        f"{name} takes about {min_samples:,} rows to be of use at this ε, of so many "
        f"columns and classes; here are {given}. Use a larger epsilon, more rows, fewer "
        "columns or classes, or a method that needs less: of a slice sketch, DPSWFlowSampler.",
        FitQualityWarning,
        stacklevel=stacklevel + 1,
    )


def warn_of_pixels(n_columns, stacklevel):
    """Warn, before anything is spent, of columns that may be pixels but are not declared as such.

    What they are is not public without bounds: networks make features of as many columns.
    """
    warnings.warn(
        f"If the {n_columns:,} columns are pixels, declare their bounds, as bounds=(0, 1) or "
        "bounds=(0, 255), or give bytes: images are told by them, and then have principal "
        "components by default, which hold more at this ε. If they are something else, say "
        "encoder=None.",
        FitQualityWarning,
        stacklevel=stacklevel + 1,
    )


def warn_of_components(held, total):
    """Warn if noisy components are mostly directions of noise.

    Parameters
    ----------
    held : float
        How much of the rows they hold, as far as noise shows, of Σ‖x‖².
    total : float
        Noisy Σ‖x‖².
    """
    if held <= LEAST_HELD * max(total, 0.0):
        share = held / total if held > 0 else 0.0
        _warn(
            f"The principal components that were released show about {share:.0%} of the rows above "
            "the noise; the rest of them are directions of noise. Use encoder=None, a larger "
            "epsilon, or more rows."
        )


def warn_of_absent(share, std):
    """Warn if many records count as absent, from a noisy share of those that do not.

    Returns
    -------
    bool
        Whether it warned.
    """
    absent = min(1.0, 1 - share)
    is_much = bool(absent > max(MANY_ABSENT, 4 * std))
    if is_much:
        _warn(
            f"About {absent:.0%} of the records count as absent, by the noisy counts that were "
            "released: their labels were not declared, or cells are missing, not finite, or not as "
            "declared. strict=True refuses such records, but a refusal tells of the rows."
        )
    return is_much


def warn_of_sketch(sums, sums_std, counts, counts_std):
    """Warn if a sketch is mostly noise, or classes are.

    Parameters
    ----------
    sums : ndarray of shape (n_classes, n_values)
        Noisy sums.
    counts : ndarray of shape (n_classes,)
        Noisy numbers of records.
    sums_std, counts_std : float
        Standard deviations of their noise.
    """
    warn_of_noise(find_signal(sums, sums_std), "a slice sketch")
    if len(counts) > 1:
        few = np.flatnonzero(counts < WITHIN_NOISE * counts_std)
        if len(few):
            _warn_of_classes(
                f"{len(few)} of {len(counts)} classes", f"at {few.tolist()} in classes_"
            )


def find_signal(numbers, std):
    """Return the signal-to-noise ratio of noisy numbers: of energies, and not below 0.

    Numbers that are 0 have no noise: it is public that nothing is there.
    """
    noisy = numbers[numbers != 0]
    return max(0.0, np.mean(np.square(noisy)) / std**2 - 1) if std > 0 and noisy.size else np.inf


def warn_of_noise(signal, what):
    """Warn if noisy numbers have little more than the noise on them.

    Returns
    -------
    bool
        Whether it warned.
    """
    is_noise = bool(signal < LEAST_SIGNAL)
    if is_noise:
        _warn(
            f"What was released, {what}, is mostly noise: its signal-to-noise ratio is about "
            f"{signal:.2g}, and below {LEAST_SIGNAL:g} little can be learnt. Use a "
            "larger epsilon, more rows, fewer columns, or fewer classes."
        )
    return is_noise


def warn_of_levels(signals, counts, label, levels, other=None):
    """Warn if little was released of the records of some levels of the target.

    Parameters
    ----------
    signals, counts : ndarray of shape (n_levels,)
        Signal-to-noise ratios of their tables, and noisy numbers of their records.
    label : str
        The column that is to be predicted.
    levels : sequence
    other : optional
        The level of all that are not told apart, which there may well be none of.
    """
    weak = [
        f"{level!r} (about {max(count, 0):.0f} records)"
        for level, signal, count in zip(levels, signals, counts, strict=True)
        if signal < LEAST_SIGNAL and level != other
    ]
    if weak:
        _warn(
            f"The tables of the records with {label!r} at {', '.join(weak)} are mostly noise: how "
            "they differ from others can hardly be learnt, and what is trained on synthetic rows "
            "to tell them apart may be hardly better than chance. Use a larger epsilon, more "
            "rows, or fewer columns."
        )


def warn_of_table(report, schema, label, counts, std):
    """Warn of columns of which little came out.

    Parameters
    ----------
    report : DataFrame
        From `formats.report.describe`.
    schema : Schema
        What it is of.
    label : str or None
        The column that is to be predicted.
    counts : dict of str to ndarray
        For each column that is encoded, the noisy counts of its levels or near its knots.
    std : dict of str to float
        Standard deviations of their noise.
    """
    for name, row in report.iterrows():
        if row["share_other"] > MOSTLY_OTHER and row["n_levels"] > 1:
            _warn(
                f"Column {name!r} is nearly all {schema[name].other!r}, by released counts: its "
                "categories are not among those that are declared or were found. Declare them in "
                "the type that they have in the table, or the column as Identifier() if each row "
                "has another."
            )
        if row["share_missing"] > MOSTLY_MISSING:
            _warn(
                f"About {row['share_missing']:.0%} of column {name!r} count as missing, by "
                "released counts: cells are missing, or are no values of the declared type. "
                "Declare it as another type, or say how it is written, as by Unknown(decimal=...)."
            )
        # From the lowest to the highest knot: without atoms, and missing values.
        has_knots = name in counts and hasattr(schema[name], "positions")
        knots = counts[name][: len(schema[name].positions)] if has_knots else ()
        for end in ("lower", "upper"):
            if _is_cut(row, end, knots, std.get(name)):
                _warn_of_bound(name, end, row[end], row[f"share_{end}"])
    levels = getattr(schema.get(label), "levels", ())
    found = [
        level
        for level, count in zip(levels, counts.get(label, ()), strict=False)
        if count < WITHIN_NOISE * std[label] and level != getattr(schema[label], "other", None)
    ]
    if found:
        _warn_of_classes(f"{len(found)} of the {len(levels)} levels of {label!r}", f"{found}")


def _is_cut(row, end, knots, std):
    """Whether an outermost knot has far more than the one beside it, and than noise.

    Not at 0, where many columns end by themselves, nor where there are just two knots, unless
    nothing was looked for beyond.
    """
    if not row[f"share_{end}"] > MUCH_AT_BOUND or row[end] == 0:
        return False
    if len(knots) < 3 and not _is_farthest(row[end]):
        return False
    first, second = knots[:2] if end == "lower" else knots[:-3:-1]
    beside = max(second, 0) + WITHIN_NOISE * std
    return first > MORE_THAN_BESIDE * beside


def _is_farthest(bound):
    return isinstance(bound, int | float) and abs(bound) >= FARTHEST


def _warn_of_bound(name, end, bound, share):
    cure = f"Declare {end}=..., beyond which there are no values, if this is not how the column is"
    if _is_farthest(bound):
        cure = f"Open bounds are looked for within ±{FARTHEST:g} only; declare both"
    _warn(
        f"About {share:.0%} of column {name!r} are at its {end} bound, {bound}, far more than "
        f"beside it: values beyond are clipped to it, and the range may be cut. {cure}."
    )


def _warn_of_classes(what, which):
    _warn(
        f"The noisy counts of {what} are within noise of 0 ({which}): their shares, and what was "
        "learnt of them, are mostly noise. Use a larger epsilon or more rows, or join them with "
        "others."
    )


def _warn(message):
    warnings.warn(message, FitQualityWarning, stacklevel=3)
