# SPDX-License-Identifier: BSD-3-Clause
"""Heaping of values on multiples of coarser steps, and cycles of dates: hours and weekdays."""

import math

import numpy as np
from scipy.optimize import nnls

from ...histograms.ranges import find_clear

# Steps of numbers, each a multiple of the next, and their decimals.
STEPS = (10_000, 1000, 500, 100, 50, 10, 5, 1, 0.5, 0.1, 0.05, 0.01, 1e-3, 1e-4, 1e-5, 1e-6)
# Gaps below multiples of steps that prices have, as 19.99.
ENDS = ((0.01, 1), (0.05, 1), (1, 10))
# Halves of other steps, which rates, doses and hours have, as 4.125 or 7.25.
HALVES = (250, 25, 2.5, 0.25, 0.125)
# Decimals of each level: of STEPS, then of ENDS, then of odd multiples of HALVES.
DECIMALS_OF = (*(0,) * 8, 1, 1, 2, 2, 3, 4, 5, 6, 2, 2, 0, 0, 0, 1, 2, 3)
# Most decimals; numbers with more have a level of their own.
MOST_DECIMALS = 6
# The coarsest step of which odd multiples of halves are multiples.
_PARENTS = {half: int((np.round(half / np.array(STEPS), 6) % 1 == 0).argmax()) for half in HALVES}
# Steps of which all values of a level are multiples.
STEP_OF = np.array([*STEPS, *(gap for gap, _ in ENDS), *HALVES])
# Steps of dates, and shares of these levels among the multiples of others.
_MINUTES = {"hour": 60, "half hour": 30, "quarter hour": 15, "10 minutes": 10}
_MINUTES |= {"5 minutes": 5, "minute": 1}
DATE_STEPS = ("year", "month", "month end", "week", "day", *_MINUTES, "second", "millisecond")
_CHANCES = {
    (level, step): share
    for level, share in (("year", 1 / 365), ("month", 11 / 365), ("month end", 12 / 365))
    for step in ("week", "day")
}
_CHANCES |= {("week", "day"): 341 / 365 / 7, ("day", "hour"): 1 / 24}
DAYS = {"year": 365.0, "month": 30.4, "month end": 30.4, "week": 7.0, "day": 1.0}
# The coarsest step of each minute.
_COARSEST = [next(n for n, step in _MINUTES.items() if i % step == 0) for i in range(60)]
for _step, _length in _MINUTES.items():
    _CHANCES |= {(n, _step): _COARSEST[::_length].count(n) * _length / 60 for n in _MINUTES}
    DAYS[_step] = _length / 1440
_CHANCES |= {(n, "second"): _CHANCES[n, "minute"] / 60 for n in _MINUTES}
_CHANCES |= {("second", "millisecond"): 1 / 1000}
DAYS |= {"second": 1 / 86_400, "millisecond": 1 / 86_400_000}
# Cycles of dates: numbers of their cells, days of each, and the day at which one began.
CYCLES = {"hours": (24, 1 / 24, 0), "weekdays": (7, 1.0, 4)}
# How much finer than its unit a float must be, so that its decimals are no accident.
_FINER = 0.1
# So many steps are between the quartiles of a column with heaps, at least: else popular values may
# happen to be multiples. Set by hand.
_MIN_STEPS = 2
# Least share of a step, whatever the noise is; set by hand.
_MIN_SHARE = 0.02
# So many deviations of noise are taken for no values that are not rounded.
_WITHIN = 2.0


def find_levels(numbers):
    """Return the position of the coarsest step of which each number is a multiple.

    After those of `STEPS` follow those of `ENDS` and `HALVES`, of numbers with more digits, of 0,
    and of dates such as 20240131 or 202401. Numbers that are not finite have the position -1.
    """
    # Columns have few distinct values; -0.0 and 0.0 are multiples of the same steps.
    numbers, where = np.unique(numbers, return_inverse=True)
    is_known = np.isfinite(numbers)
    levels = np.where(is_known, len(DECIMALS_OF), -1)
    for position in reversed(range(len(STEPS))):
        fits = _is_multiple(numbers, STEPS[position], DECIMALS_OF[position])
        levels[is_known & fits] = position
    for position, (gap, step) in enumerate(ENDS, start=len(STEPS)):
        decimals = DECIMALS_OF[position]
        is_fine = levels == STEPS.index(gap)
        with np.errstate(all="ignore"):
            above = np.round(np.abs(numbers) + gap, decimals)
        levels[is_fine & _is_multiple(above, step, decimals)] = position
    for position, half in enumerate(HALVES, start=len(STEPS) + len(ENDS)):
        is_odd = levels == _PARENTS[half]
        levels[is_odd & _is_multiple(numbers, half, DECIMALS_OF[position])] = position
    levels[is_known & (numbers == 0)] = len(DECIMALS_OF) + 1
    whole = np.where(is_known, numbers, 0)
    months, days = whole // 100 % 100, whole % 100
    is_date = (whole >= 1900_00_00) & (whole < 2101_00_00) & (whole == np.floor(whole))
    is_date &= (months >= 1) & (months <= 12) & (days >= 1) & (days <= 31)
    # Without days, a year and a month.
    is_month = (whole >= 1900_00) & (whole < 2101_00) & (whole == np.floor(whole))
    is_date |= is_month & (days >= 1) & (days <= 12)
    levels[is_date] = len(DECIMALS_OF) + 2
    return levels[where]


def find_date_levels(dates):
    """Return the position in `DATE_STEPS` of the coarsest step of each date, -1 of none.

    Finer dates have the position after the last step.
    """
    levels = np.where(np.isnat(dates), -1, len(DATE_STEPS))
    for position in reversed(range(len(DATE_STEPS))):
        levels[(levels >= 0) & (snap_dates(dates, DATE_STEPS[position]) == dates)] = position
    return levels


def find_cells(dates, cycle):
    """Return the hour of the day of each date, or its weekday: 0 is Monday; -1 if it is none."""
    n_cells, days, origin = CYCLES[cycle]
    cells = dates.astype("M8[h]" if days < 1 else "M8[D]").astype(np.int64) - origin
    return np.where(np.isnat(dates), -1, cells % n_cells)


def _is_multiple(numbers, step, decimals):
    """Return which numbers are multiples of a step, as floats of 64 or of 32 bits."""
    unit, fits = 10.0**-decimals, np.zeros(len(numbers), dtype=bool)
    with np.errstate(all="ignore"):
        rounded, single = np.round(numbers, decimals), numbers.astype(np.float32)
        for given, held in ((numbers, rounded), (single, rounded.astype(np.float32))):
            # Where floats are hardly finer than the unit, any number is near a multiple of it.
            is_fine = np.spacing(np.abs(given)) <= _FINER * unit
            fits |= (given == numbers) & (given == held) & is_fine
        return fits & (np.round(rounded / unit) % round(step / unit) == 0)


def snap_dates(dates, step):
    """Return the multiple of a step that is next to each date; before it for a day or less."""
    if step in ("year", "month", "month end"):
        unit = "Y" if step == "year" else "M"
        shift = np.timedelta64(step == "month end", "D")
        below = (dates + shift).astype(f"M8[{unit}]")
        ends = [(below + np.timedelta64(i, unit)).astype("M8[ms]") - shift for i in (0, 1)]
    else:
        # Weeks begin on Mondays: the first one was the fifth day of 1970.
        length = np.timedelta64(round(86_400_000 * DAYS[step]), "ms")
        start = np.datetime64("1970-01-05", "s")
        below = start + (dates - start) // length * length
        ends = [below, below + length if step == "week" else below]
    return np.where(dates - ends[0] <= ends[1] - dates, *ends)


def snap_numbers(numbers, step, gap):
    """Return the multiple of a step, less a gap, that is next to each number."""
    gaps = np.where(numbers < 0, -gap, gap)
    found = np.round((numbers + gaps) / step) * step - gaps
    # 78 times 0.1 is no float that is written 7.8.
    return np.round(found, MOST_DECIMALS) if step % 1 or gap % 1 else found


def find_heaps(column, counts, std, clear):
    """Return the steps of which released counts show more multiples than there are by chance.

    Parameters
    ----------
    column : Number or Date
        With bounds and knots.
    counts : ndarray of shape (n_levels,)
        Noisy numbers of values that are no point masses by their levels.
    std : float
        Standard deviation of their noise.
    clear : float
        Standard deviations that no count of nothing reaches.

    Returns
    -------
    list of tuple
        As the column type has them; none where it may be noise, or few steps are in the range.
    """
    spread = float(np.subtract(*np.quantile(column.positions, [0.75, 0.25])))
    heaps, expected = column.expect_heaps()
    n_levels = len(expected)
    counts = counts[:n_levels]
    total = max(counts.sum(), 1.0)

    def find(among):
        """Return the shares of some steps, and which are clear of noise and sampling."""
        shares, noises = np.zeros((2, len(heaps) + 1))
        # A step shows by the excess of its multiples over finer steps.
        shares[among] = nnls(expected[:, among], counts / total)[0]
        variances = np.linalg.pinv(expected[:, among]) ** 2 @ (std**2 + counts.clip(0))
        noises[among] = np.sqrt(variances) / total
        is_clear = shares > np.maximum(clear * noises, _MIN_SHARE)
        is_clear[-1] = shares[-1] > _WITHIN * noises[-1]
        return shares, is_clear

    is_half = np.array([heap[0] in HALVES for heap in heaps] + [False])
    is_long = [spread >= _MIN_STEPS * column.measure(*heap) for heap in heaps] + [True]
    # Halves are looked for beside all other steps, and others without them: 25 has much of 5.
    is_found = np.where(is_half, find(np.full(len(is_half), True))[1], find(~is_half)[1])
    is_found &= is_long
    if not is_found[:-1].any():
        return []
    # Counts of the others belong to those that are left.
    shares, is_clear = find(is_found)
    shares = shares * is_clear
    if not shares[:-1].any():
        return []
    shares = (shares / shares.sum()).tolist()
    return [(*heap, share) for heap, share in zip(heaps, shares, strict=False) if share > 0]


def find_cycle(column, cycle, counts, masses, std):
    """Return the shares of the cells of a cycle of dates, None if they may be equal or finer.

    Parameters
    ----------
    column : Date
        With bounds, knots and heaps, whose dates have no shares.
    cycle : str
        One of `CYCLES`.
    counts : ndarray of shape (n_cells,)
        Noisy numbers of dates by their cells. Their sum has the noise of one.
    masses : dict of float to float
        Noisy counts of the point masses.
    std : float
        Standard deviation of their noise.
    """
    n_cells, days, _ = CYCLES[cycle]
    spread = float(np.subtract(*np.quantile(column.positions, [0.75, 0.25])))
    first, evenly = np.eye(n_cells)[0], np.full(n_cells, 1 / n_cells)
    counts, atoms = counts.copy(), column.to_dates(np.array(list(masses), dtype=np.float64))
    np.subtract.at(counts, find_cells(atoms, cycle), np.array(list(masses.values())))
    # Days have no time, and weeks begin on Mondays; other long steps are on any weekday.
    rest = counts - counts.sum() * sum(
        share * (first if days < 1 or step == "week" else evenly)
        for step, share in column.heaps or ()
        if DAYS[step] > days
    )
    total = rest.sum()
    width = days * column.units_per_day
    if width < 1 or total <= _MIN_SHARE * counts.sum() or spread < _MIN_STEPS * n_cells * width:
        return None
    found = _find_runs(rest, std, n_cells + 1)
    is_clear = np.abs(np.cumsum(found - total / n_cells)).max() > _MIN_SHARE * total
    return np.round(found / found.sum(), 5) if is_clear and found.any() else None


def _find_runs(counts, std, n_cells):
    """Return the means of runs of neighbouring cells that clearly differ; 0 for what is noise."""
    n_counts, mean = len(counts), counts.mean()
    # A run that is taken out has its own means, and what is left of the cycle as well.
    starts, ends = np.triu_indices(n_counts + 1, 1)
    lengths, above = ends - starts, np.cumsum(np.r_[0, counts - mean])
    noise = np.sqrt((std**2 + max(mean, 0)) * lengths * (1 - lengths / n_counts)).clip(1)
    excess = np.abs(above[ends] - above[starts]) / noise
    best = excess.argmax()
    if n_counts == 1 or excess[best] <= find_clear(1.0, len(starts)):
        # The sum of all cells, and of none, is known.
        noise = std * math.sqrt(1 / n_counts - 1 / n_cells)
        return np.full(n_counts, mean if mean > _WITHIN * noise else 0.0)
    is_in = np.isin(np.arange(n_counts), np.arange(starts[best], ends[best]))
    found = np.empty(n_counts)
    for part in (is_in, ~is_in):
        found[part] = _find_runs(counts[part], std, n_cells)
    return found


def expect_numbers(decimals):
    """Return heaps, and the shares of levels among the multiples of each, and among all values."""
    last = len(STEPS) if decimals is None else STEPS.index(10.0**-decimals)
    n_levels = len(DECIMALS_OF) + 1
    # Values that are multiples of a coarser step only in other ways, and how many steps they have.
    others = [(i, STEPS.index(gap), whole) for i, (gap, whole) in enumerate(ENDS, len(STEPS))]
    first_half = len(STEPS) + len(ENDS)
    others += [(i, _PARENTS[half], 2 * half) for i, half in enumerate(HALVES, first_half)]
    found = {}
    for position, step in enumerate(STEPS[: last + 1]):
        column = np.zeros(n_levels)
        column[: position + 1] = np.diff(step / np.array(STEPS[: position + 1]), prepend=0)
        for i, parent, whole in others:
            if position >= parent:
                column[[i, parent]] += np.array([1, -1]) * step / whole
        found[step, 0] = column
    # All values, of which those of the finest step are not heaps.
    rest = np.eye(n_levels)[-1] if decimals is None else found.popitem()[1]
    for i, (gap, whole) in enumerate(ENDS, len(STEPS)):
        if decimals is None or DECIMALS_OF[i] <= decimals:
            found[whole, gap] = np.eye(n_levels)[i]
    for i, half in enumerate(HALVES, first_half):
        if decimals is None or DECIMALS_OF[i] <= decimals:
            found[half, 0] = (np.eye(n_levels)[i] + found[2 * half, 0]) / 2
    return list(found), np.column_stack([*found.values(), rest])


def expect_dates(unit):
    """Return heaps of dates in a unit, and shares of levels as of `expect_numbers`."""
    names = DATE_STEPS[: DATE_STEPS.index(unit) + 1]
    columns = np.eye(len(names))
    columns[:2, names.index("month")] = 1 / 12, 11 / 12
    for finer in ("week", *names[names.index("day") :]):
        position = names.index(finer)
        columns[:, position] = [_CHANCES.get((name, finer), 0.0) for name in names]
        columns[position, position] = 1 - columns[:position, position].sum()
    return [(name,) for name in names[:-1]], columns
