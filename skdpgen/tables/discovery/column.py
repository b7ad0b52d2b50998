# SPDX-License-Identifier: BSD-3-Clause
"""Private inference of one numeric column: range, knots, point masses and breakpoints."""

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...histograms.grids import MAX_UNITS
from ...histograms.ranges import CONSTANTS as RANGE
from ...histograms.ranges import find_clear, find_range, narrow_range, weigh_sizes
from ..columns.column_type import KnotColumn
from ..columns.number import N_KNOTS
from .counts import WideHistogram, read_frequent, with_atoms, with_candidates
from .densities import Histogram, estimate_density, find_cuts, quantile_knots, trim_density
from .locations import read_locations, read_value
from .tails import describe_loss


@dataclass(frozen=True)
class ColumnConstants:
    """Constants of what is said of columns, and of ranges that noise hides; set by hand."""

    # Values beside a point mass are more than noise if they are so many deviations, fewer beside
    # zero, and so large a share of all that it is no error of floats. That of zero is the best of
    # 0.3, 1 and 2 on held-out rows of Adult (1,000 rows to fit).
    signal: float = 2.0
    signal_of_zero: float = 1.0
    floats: float = 1e-4
    # Identifiers are spread evenly over their range: the middle half of uniform values is 0.556 of
    # the distance between the quantiles 0.05 and 0.95, that of normal ones 0.41, of exponential
    # ones 0.37. Noise moves it by less than the tolerance in fits to a few thousand rows.
    quantiles: tuple = (0.05, 0.25, 0.5, 0.75, 0.95)
    middle: float = 0.5556
    tolerance: float = 0.06
    # Least number of values of identifiers for each row: noise and outer knots widen ranges.
    min_values: float = 0.8
    # Floats hold fifteen digits of any number.
    largest_exact: float = 1e15


CONSTANTS = ColumnConstants()


@dataclass
class ColumnInference:
    """A number or date, and what releases have shown of it.

    Dates are counted as numbers of units since 1970. If a bound is open, values are counted on a
    wide grid, which shows their range, and then on a finer one within this; both show the density,
    which gives knots and breakpoints. Clusters of values in few cells of the wide grid are counted
    on much finer ones. If noise hides the range, values are counted on the wide grid again. If only
    knots are to be inferred, they are counted on the finer grid alone.

    Parameters
    ----------
    declared : KnotColumn
        The column type, with the decimals or unit that were inferred.
    levels : LevelCounts, default=None
        Counts of decimals, if these were released.
    is_text : bool, default=False
        Whether cells may be texts, which have more digits than floats.
    is_target : bool, default=False
    has_classes : bool, default=False
        Whether the column is a target whose integers become classes if there are few.

    Attributes
    ----------
    number : Number
        The column type, of numbers of units.
    grid : Number
        The column type by which values are counted next.
    wide : WideHistogram or None
        The counts on the wide grid.
    histograms : list of Histogram
        The counts that show the density, if breakpoints were inferred.
    findings : dict of str to str
        Details of what users should know, by cause.
    loss : float
        About the most, as a share, by which the mean is low if a tail is cut; NaN if not known.
    """

    declared: KnotColumn
    levels: Any = None
    is_text: bool = False
    is_target: bool = False
    has_classes: bool = False
    frequent: list = field(default_factory=list)
    histograms: list = field(default_factory=list)
    findings: dict = field(default_factory=dict)
    loss: float = math.nan

    def __post_init__(self):
        self.number = self.declared.to_number()
        decimals = self.number.decimals
        self.unit = None if decimals is None else 10.0**-decimals
        self.wide: WideHistogram | None = None
        self.is_hidden, self._found = False, self.number
        self._masses: dict | None = None
        self.grid = self.number
        if self.declared.is_open:
            self.widen(1)  # raises where nothing can be found, before anything is spent

    @cached_property
    def known(self):
        """The declared type with the unit in which values are counted."""
        return self.declared.from_number(self.number)

    def find_frequent(self, counts):
        """Take candidates for point masses from noisy counts of frequent values."""
        self.frequent = read_frequent(self.known, counts)

    # The wide grid.

    def widen(self, n_per_octave):
        """Count next on a wide grid of so many knots an octave."""
        number, knots = self.number, self.declared.wide_knots(n_per_octave)
        lower = -np.inf if number.lower is None else number.lower
        upper = np.inf if number.upper is None else number.upper
        if lower >= knots[-1] or upper <= knots[0]:
            raise ValueError(
                f"Open bounds are looked for within ±{knots[-1]:g}, and {self.declared} starts "
                "beyond that; declare both bounds, or give the column in larger units."
            )
        wide = with_knots(replace(number, n_knots=None, scale=None), knots)
        self.grid = with_candidates(wide, self.declared, self.frequent)

    def read_range(self, counted):
        """Read counts on the wide grid."""
        wide = WideHistogram.of(counted, self.number)
        self.wide = wide.drop_ends(self.declared)
        if self.wide is not wide:
            self.findings["beyond"] = ""

    def read_clusters(self, counted, std):
        """Turn clusters that are one value into point masses, and refine the grid of all others.

        Parameters
        ----------
        counted : dict of (float, float) to ndarray
            The located counts of each cluster.
        std : float
            Standard deviation of their noise.
        """
        wide, unit, apart = self.wide, self.unit, list(counted)
        # The smallest first: the last values stay, as a range is theirs.
        for cells, counts in reversed(counted.items()):
            value = read_value(counts, std, wide.count_within(*cells), *cells, unit)
            if value is not None:
                rest = wide.take_atom(int(value) if unit == 1 else value, *cells)
                if self._find_range(rest)[1]:
                    wide, apart = rest, [other for other in apart if other != cells]
        cells = wide.find_cells()
        apart = tuple(o for o in apart if o != cells and self._is_apart(wide, o))
        wide = replace(wide, apart=apart)
        if cells in counted:
            knots, counts = read_locations(counted[cells], std, wide.n_values, *cells, unit)
            if knots is not None:
                wide = wide.refine(cells, knots, counts, std)
        self.wide = wide

    def _is_apart(self, wide, cells):
        """Whether cells have few values, further from the range of others than it is wide."""
        if wide.count_within(*cells) > wide.n_values / 2:
            return False
        (lower, upper), is_resolved = self._find_range(wide.take_atom(0.0, *cells))
        return is_resolved and max(cells[0] - upper, lower - cells[1]) > upper - lower

    def _find_range(self, wide):
        """Return the range that a grid shows, and whether it is resolved."""
        # Dates have no zero, at which a range would end.
        origin = wide.knots[0] - 1 if self.declared.is_date else 0.0
        knots = wide.knots - origin
        weights = weigh_sizes(wide.knots) if origin == 0 else None
        counts, std, n_values = wide.counts, wide.std, wide.n_values
        *bounds, is_resolved = find_range(knots, counts, std, n_values, self.unit, weights)
        lower, upper = wide.knots[np.searchsorted(knots, bounds)]
        if wide.located is not None:
            # All of these cells: noise on finer ones hides the tails.
            first, last = wide.located
            lower, upper, is_resolved = min(lower, first), max(upper, last), True
        return (lower, upper), is_resolved

    # The finer grid.

    def refine(self, n_knots, n_per_octave):
        """Count next on a grid of so many knots, near quantiles if a range was resolved.

        With declared bounds, the grid has even knots and those of the wide grid.
        """
        if self.wide is None:
            number = self.number
            even = np.linspace(number.lower, number.upper, n_knots)
            knots = np.union1d(even, self.declared.wide_knots(n_per_octave))
            grid = with_knots(number, knots)
            self.grid = with_candidates(grid, self.declared, self.frequent)
            return
        (lower, upper), is_resolved = self._find_range(self.wide)
        self.is_hidden = not is_resolved
        if self.is_hidden:
            return  # counted on the same grid again
        self.wide = within = self.wide.within(lower, upper)
        histogram = within.knots, within.counts, within.std
        density = estimate_density([Histogram(*histogram)], lower, upper, self.unit)[:2]
        knots = quantile_knots(*histogram, n_knots, self.unit, is_fine=True, density=density)
        # Nothing is seen beyond a cap if values before it have another knot.
        knots = np.r_[knots[:1], within.atoms, knots[1:]]
        grid = with_knots(self.number, knots, is_fine=True)
        self.grid = with_candidates(grid, self.declared, [*within.atoms, *self.frequent])

    def read_counts(self, counted, n_affordable):
        """Infer knots, point masses and breakpoints from the last counts.

        Parameters
        ----------
        counted : ValueCounts
        n_affordable : int
            The most knots, unless their number is declared.
        """
        number, unit = self.number, self.unit
        if self.is_hidden:
            counted = counted.average(self.wide.counted)
        knots, std, n_knots = counted.knots, counted.std, number.n_knots or n_affordable
        atoms = counted.find_atoms(number, self.wide.counted if self._is_resolved else None)
        if number.atoms is None:
            atoms += counted.find_shared(max(n_knots, N_KNOTS))
        counts, n_values = counted.without(atoms)
        if self.is_hidden:
            near = dict(zip(knots, counts, strict=True))
            knots = self._find_hidden(WideHistogram.of(counted, number).drop_ends(self.declared))
            counts = np.array([near.get(knot, 0.0) for knot in knots])
        parts, density = self._find_density(Histogram(knots, counts, std), n_values, atoms)
        knots, counts = parts[-1].clip(*density[0][[0, -1]])
        if is_unresolved(knots, counts, std, n_values, unit):
            self.findings["values unresolved"] = ""
        chosen = knots
        if len(knots) > n_knots:
            chosen = quantile_knots(
                knots, counts, std, n_knots, unit, is_rest=bool(atoms), density=density
            )
        self._found = with_atoms(with_knots(number, chosen), atoms)
        if self.is_target and self.has_classes and self.declared.is_open:
            shared = {*atoms, *knots[counts > find_clear(std, len(knots))]}
            self._found = self._found.as_classes(shared)
            if not self._found.has_knots:
                return
        self._masses = counted.count_at(atoms)
        cuts = find_cuts(knots, counts, std, self._found.positions, unit, density)
        if cuts:
            self._found, self.histograms = replace(self._found, cuts=cuts), parts

    @property
    def _is_resolved(self):
        """Whether the wide grid shows the range."""
        return self.wide is not None and not self.is_hidden

    def _find_density(self, fine, n_values, atoms):
        """Return the histograms of a range that has nearly all values, and their density.

        `fine` are counts near the knots of the finer grid, without point masses, of `n_values`
        values.
        """
        knots, counts, std = fine.knots, fine.counts, fine.std
        if not self._is_resolved:
            return [fine], estimate_density([fine], *knots[[0, -1]], self.unit)[:2]
        wide = self.wide
        lower, upper = narrow_range(knots, counts, std, n_values, self.unit)
        within = (lower <= knots) & (knots <= upper)
        parts = [Histogram(knots[within], counts[within], std)]
        # Around new point masses, the wide grid counts these as well.
        if {atom for atom in atoms if lower <= atom <= upper} <= set(wide.atoms):
            parts = wide.around(lower, upper) + parts
        density = trim_density(parts, lower, upper, self.unit)
        lower, upper = density[0][[0, -1]]
        self._note_outside(lower, upper, atoms)
        if self.declared.is_number:
            outside = Histogram(*wide.without(atoms))
            self._note_shape(fine, outside, density, lower, upper, n_values, atoms)
        return parts, density

    def _find_hidden(self, others):
        """Return the knots of the wide grid in a range that only the sum of its counts shows.

        Parameters
        ----------
        others : WideHistogram
            The grid, without point masses.
        """
        (lower, upper), is_resolved = self._find_range(others)
        n_atoms, counted = len(others.atoms), others.counted
        noise = counted.std * math.sqrt(n_atoms + counted.grid.missing)
        # Beside zero, there mostly are amounts; beside another value, or several, seldom. The few
        # values of a target may be classes.
        is_zero = others.atoms == [0] and not self.is_target
        signal = CONSTANTS.signal_of_zero if is_zero else CONSTANTS.signal
        least = signal * noise if n_atoms == 1 else find_clear(noise, 1)
        if not is_resolved and others.n_values <= least + CONSTANTS.floats * counted.n_values:
            # Nothing shows beside point masses: the range is that of these.
            if n_atoms > 1:
                ends = np.sort(others.atoms)[[0, -1]]
                return quantile_knots(ends, np.zeros(2), 0.0, N_KNOTS, self.unit, is_rest=True)
            counts, n_values = counted.without([], is_wide=True)
            others = replace(others, counts=counts, n_values=n_values)
            (lower, upper), is_resolved = self._find_range(others)
        if not is_resolved:
            self.findings["range unresolved"] = ""
        return others.within(lower, upper).knots

    def _note_outside(self, lower, upper, atoms):
        """Note values that lie apart from the range or beyond it."""
        left = set(self.wide.atoms).difference(atoms)
        for atom in left:
            if not lower <= atom <= upper:
                self.findings["cut"] = f"near {self.known.write(atom)}"
        for ends in self.wide.apart:
            self.findings["apart"] = f"near {self.known.write(sum(ends) / 2)}"

    def _note_shape(self, fine, wide, density, lower, upper, n_values, atoms):
        """Note a long tail, and values that may be identifiers."""
        number = self.number
        self.loss, text = describe_loss(number, fine, wide, density, lower, upper)
        if text:
            self.findings["tail"] = text
        is_key = may_identify(number, density, n_values, atoms, self.is_text)
        if is_key and not (self.levels and self.levels.are_round):
            self.findings["identifiers"] = ""

    def resolve(self):
        """Return the column type that was inferred."""
        found = self._found
        if found.has_knots:
            found = self.declared.from_number(found)
        if self.levels and self._masses is not None:
            found = self.levels.with_heaps(found, self._masses)
            has_times = found.is_date and found.unit != "day"
            if has_times and not found.hours and self.levels.hides_hours:
                self.findings["hours"] = ""
        return found


def is_unresolved(knots, counts, std, n_values, unit):
    """Return whether nearly all values are between two of three or more knots, and can be apart."""
    if n_values < find_clear(std, len(counts)):
        return False
    pairs = counts[:-1] + counts[1:]
    best = int(pairs.argmax())
    least = RANGE.nearly_all * n_values + find_clear(math.sqrt(2) * std, len(pairs))
    is_one = pairs[best] >= least > 0 and len(knots) > 2
    return is_one and (unit is None or knots[best + 1] - knots[best] > N_KNOTS * unit)


def may_identify(number, density, n_values, atoms, is_text):
    """Return whether nearly all values of a column are different, and evenly spread or too long.

    `n_values` are those that are neither missing nor at point masses. Texts may have more digits
    than floats.
    """
    points, masses = density
    if not masses.sum() > 0:
        return False
    cumulative = np.r_[0, np.cumsum(masses)] / masses.sum()
    first, low, median, high, last = np.interp(CONSTANTS.quantiles, cumulative, points)
    is_whole = number.decimals == 0
    if (is_text and abs(median) >= CONSTANTS.largest_exact) or (
        is_whole and abs(median) >= MAX_UNITS
    ):
        return True
    width = (last - first) / (CONSTANTS.quantiles[-1] - CONSTANTS.quantiles[0])
    if not is_whole or len(atoms) or width < CONSTANTS.min_values * n_values:
        return False
    shape = np.array([(high - low) / (last - first), (median - first) / (last - first)])
    return bool((np.abs(shape - [CONSTANTS.middle, 0.5]) < CONSTANTS.tolerance).all())


def with_knots(number, knots, *, is_fine=False):
    """Return a number with these knots, within the bounds that are declared; no point masses.

    A declared scale is kept, unless it `is_fine`: a grid to count by.
    """
    number = replace(number, atoms=None)
    # Integers beyond int64 would stay objects.
    knots = np.asarray(knots, dtype=np.float64)
    knots = knots if number.decimals is None else np.round(knots, number.decimals) + 0.0
    cast = int if number.decimals == 0 else float
    lower, upper = (
        cast(found) if declared is None else declared
        for declared, found in zip((number.lower, number.upper), knots[[0, -1]], strict=True)
    )
    inner = map(cast, np.unique(knots[(lower < knots) & (knots < upper)]))
    knots = [lower, *inner, upper]
    if number.scale is not None and not is_fine:
        is_signed = number.scale == "log" and lower < 0 < upper
        scale = "symlog" if is_signed else number.scale
        return replace(number, lower=lower, upper=upper, scale=scale)
    return replace(number, lower=lower, upper=upper, n_knots=None, scale=None, knots=knots)
