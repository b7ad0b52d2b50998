# SPDX-License-Identifier: BSD-3-Clause
"""Private inference of the bounds and the clipping norm of arrays."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np

from ..checks import list_names
from ..data.record_functions import RecordFunction
from ..histograms.grids import knot_weights, wide_knots
from ..histograms.ranges import CONSTANTS as RANGE
from ..histograms.ranges import (
    choose_per_octave,
    count_affordable,
    find_clear,
    find_range,
    narrow_range,
    weigh_sizes,
)
from ..mechanisms.sums import WeightSumMechanism
from ..quality import FARTHEST, warn_of_fit
from .box import BoxFormat
from .units import warn_of_norms

# More columns than this share one range: a range for each would cost too much.
_MOST_RANGES = 50
_ENCODED = "the norm after the encoder"
_RANGES, _COUNTS, _NORMS = "value ranges", "value counts", "squared norms"
# Least and largest share of ρ of each release, and the number of standard deviations of noise that
# the count of all records should have: the share is as large as that takes.
_SHARES = {_RANGES: (0.02, 0.15), _COUNTS: (0.02, 0.05), _NORMS: (0.01, 0.1)}
_WANTED = {_RANGES: 12, _COUNTS: 12, _NORMS: 80}
# Knots of the grid within a range.
_FEWEST_FINE, _MOST_FINE = 16, 128
# A small part of a range; those of skewed columns are larger. Set by hand.
_PART = 1 / 64
# The radius over the root mean square norm is 1 + this / (number of columns): norms of more
# columns are closer to each other.
_SPARE = 6.0
# Where squared norms are counted, relative to the greatest that there can be: those of sparse rows
# are small.
_SQUARES = np.r_[0.0, 2.0 ** np.arange(-20, 1)]


@dataclass(frozen=True)
class OpenBoxFormat(BoxFormat):
    """A `BoxFormat` whose bounds or clipping norm are inferred.

    Until its bounds are inferred it behaves like a `BoxFormat` with bounds (0, 1).

    Up to 50 columns have one range each: records are counted near the knots of a wide grid, which
    is coarse far from zero, and then near even knots within the range that these counts show. With
    more columns, a record counts with its least and its greatest number; with an encoder, with its
    norm. For each of m ranges it adds non-negative weights that sum to 1/√m: a vector of norm at
    most 1. The clipping norm follows from the root mean square norm: records are counted near
    squared norms that double, and counts within their noise are left out.
    """

    # Whether ranges of X, or of the norms that an encoder gives, and of a numeric y are open.
    opens_X: bool = False
    opens_y: bool = False
    # The remaining releases, in this order, and their shares of the budget.
    shares: dict = field(default_factory=dict)
    # Shape (n_knots,): the grid on which numbers are counted, after they are mapped to [1, 2] once
    # there are ranges.
    knots: np.ndarray | None = None
    # Knots of the second grid.
    n_fine: int = 2
    # Lower and upper, of shape (m,), that the first counts have shown.
    ranges: tuple | None = None
    # (knots, counts, std) of each range, within it.
    wide: Sequence = ()

    def split_budget(self, noise):
        """Return the shares of the remaining releases, which follow from `noise` in `make_box`."""
        return self.shares

    @property
    def are_images(self):
        """As in `BoxFormat`; by bounds that are found later rows could be images."""
        return super().are_images and (self.images.is_told or not self.opens_X or None)

    @property
    def _has_one_range(self):
        """Whether columns share a range: pixels, and many others."""
        are_pixels = self.images.is_told and self.images.image_shape is not None
        return are_pixels or self.n_features > _MOST_RANGES

    def _name_ranges(self):
        """Return a name for each range that is to be found."""
        columns = self.column_names[: self.n_features]
        if not self.opens_X:
            names = []
        elif self.encoder is not None:
            names = [_ENCODED]
        elif self._has_one_range:
            names = ["the least of a row", "the greatest of a row"]
        else:
            names = columns
        return [*names, *["y"] * self.opens_y]

    def encode(self, X, y=None):
        """Map records to weights of the knots of their numbers, or squared norms."""
        if next(iter(self.shares)) == _NORMS:
            rows = BoxFormat.encode(self, X, y) / self.clip_norm
            return knot_weights((rows**2).sum(axis=1), _SQUARES)
        numbers = self._list_numbers(np.asarray(X, dtype=np.float64), y)
        if self.ranges is not None:
            lower, upper = self.ranges
            numbers = 1 + (numbers - lower) / (upper - lower)
        weights = knot_weights(numbers, self.knots) / math.sqrt(numbers.shape[1])
        return weights.reshape(len(numbers), -1)

    def _list_numbers(self, X, y):
        """Return the numbers whose ranges are to be found, one column for each."""
        parts = []
        if self.opens_X and self.encoder is not None:
            rows = self._encode_features(X.copy())
            parts = [np.linalg.norm(rows, axis=1)]
        elif self.opens_X and self._has_one_range:
            parts = [X.min(axis=1), X.max(axis=1)]
        elif self.opens_X:
            parts = [X]
        if self.opens_y:
            parts.append(np.asarray(y, dtype=np.float64))
        return np.column_stack(parts)

    def resolve(self, curator):
        """Make the releases, and return the `BoxFormat` that the curator then maps rows by."""
        format = self
        for name in self.shares:
            # Counted vectors have norms up to 1, whatever the radius of rows is.
            curator.prepare(RecordFunction(format.encode), 1.0)
            noisy = curator.release(WeightSumMechanism(name))
            find = {
                _RANGES: format._find_ranges,
                _COUNTS: format._narrow_ranges,
                _NORMS: format._find_radius,
            }
            format = find[name](noisy, curator.n_rows)
        curator.prepare(RecordFunction(format.encode), format.clip_norm)
        return format

    def _find_ranges(self, noisy, n_records):
        names = self._name_ranges()
        counts, std = self._read(noisy)
        # Norms are not negative, whatever noise says.
        starts = [np.searchsorted(self.knots, 0) * (name == _ENCODED) for name in names]
        # Absent records are in no count: those with a missing number, for example.
        noise = 2 * std * math.sqrt(len(self.knots))
        # Centred columns are as usual as positive ones.
        weights = weigh_sizes(self.knots) + weigh_sizes(-self.knots)
        found = [
            find_range(
                self.knots[start:],
                row[start:],
                std,
                min(n_records, row.sum() - noise),
                weights=weights[start:],
            )
            for start, row in zip(starts, counts, strict=True)
        ]
        unclear = [
            name for name, (_, _, is_clear) in zip(names, found, strict=True) if not is_clear
        ]
        if unclear:
            warn_of_fit(
                f"{len(unclear)} of {len(names)} ranges cannot be told from noise, with so few "
                f"records at this ε: those of {list_names(unclear)}. Declare bounds=(lower, "
                "upper), by what is public of the columns."
            )
        far = [
            name
            for name, edges in zip(names, found, strict=True)
            if max(np.abs(edges[:2])) >= FARTHEST
        ]
        if far:
            warn_of_fit(
                f"The ranges of {list_names(far)} end at ±{FARTHEST:g}, beyond which none is "
                "looked for: values there are clipped. Declare bounds=(lower, upper), or use "
                "larger units."
            )
        ranges = tuple(np.array([edges[:2] for edges in found], dtype=np.float64).T)
        wide = [
            (self.knots[inside], row[inside], std)
            for row, edges in zip(counts, found, strict=True)
            for inside in [(edges[0] <= self.knots) & (self.knots <= edges[1])]
        ]
        fine = np.linspace(1, 2, self.n_fine)
        return self._close(_RANGES, ranges=ranges, knots=fine, wide=wide)

    def _narrow_ranges(self, noisy, n_records):
        counts, std = self._read(noisy)
        names = self._name_ranges()
        unresolved = [n for n, row in zip(names, counts, strict=True) if _is_in_one_cell(row, std)]
        # Images mostly end alike, at black and white; what is between them is resolved.
        are_apart = "the least of a row" in names and self.ranges[1][0] <= self.ranges[0][1]
        told = [name for name in unresolved if name == "y" or not are_apart]
        if told:
            warn_of_fit(
                f"The values of {list_names(told)} are closer to each other than inference "
                "resolves, or constant. Subtract a public level from these numbers, or declare "
                f"{'y_bounds' if told == ['y'] else 'bounds'}=(lower, upper)."
            )
        stretched = [
            name
            for name, row, wide in zip(names, counts, self.wide, strict=True)
            if name not in unresolved and _is_stretched(row, std, n_records, *wide)
        ]
        if stretched:
            warn_of_fit(
                f"Nearly all values of {list_names(stretched)} are in a small part of the range "
                "that was found, over which synthetic values spread. Replace codes such as -9999, "
                "or declare bounds=(lower, upper) of the others."
            )
        within = [narrow_range(self.knots, row, std, n_records) for row in counts]
        lower, upper = self.ranges
        lower, upper = (lower + (edge - 1) * (upper - lower) for edge in np.array(within).T)
        inferred = {}
        if self.opens_y:
            inferred["y_bounds"] = lower[-1], upper[-1]
        if self.opens_X and self.encoder is not None:
            radius = float(upper[0])
            inferred["clip_norm"] = math.hypot(radius, self.unit) if self.has_number else radius
        elif self.opens_X and self._has_one_range:
            # By noise, the greatest may seem to be below the least.
            inferred["bounds"] = lower[:2].min(), upper[:2].max()
        elif self.opens_X:
            inferred["bounds"] = lower[: self.n_features], upper[: self.n_features]
        return self._close(_COUNTS, opens_X=False, opens_y=False, **inferred)

    def _read(self, noisy):
        """Return noisy counts of records, (m, n_knots), and the deviation of their noise."""
        m = len(self._name_ranges())
        return noisy.value.reshape(m, -1) * math.sqrt(m), noisy.std * math.sqrt(m)

    def _find_radius(self, noisy, n_records):
        counts, std = noisy.value, noisy.std
        warn_of_norms(self, counts, std, n_records)
        lower, upper, is_clear = find_range(_SQUARES, counts, std)
        if not is_clear:
            warn_of_fit(
                "The norms of rows do not exceed the noise, with so few records at this ε: the "
                "largest possible clip_norm is used, with more noise. Declare clip_norm=... by "
                "public facts."
            )
            return self._close(_NORMS)
        within = (lower <= _SQUARES) & (_SQUARES <= upper)
        # By a deviation more: too large a radius does less harm than too small a one.
        total = counts[within] @ _SQUARES[within] + std * np.linalg.norm(_SQUARES[within])
        if total <= 0:
            return self._close(_NORMS)  # rows of zeros
        share = min(1.0, (1 + _SPARE / self.n_columns) * math.sqrt(total / n_records))
        return self._close(_NORMS, clip_norm=share * self.clip_norm)

    def _close(self, name, **inferred):
        """Return the format after a release: open while further releases remain."""
        shares = {other: share for other, share in self.shares.items() if other != name}
        format = replace(self, shares=shares, **inferred)
        if shares:
            return format
        return BoxFormat(**{field.name: getattr(format, field.name) for field in fields(BoxFormat)})


def _is_stretched(counts, std, n_records, knots, wide, wide_std):
    """Whether nearly all values are in a small part of a range, and some of the others far away.

    Values of skewed columns are rather next to that part. One value that most records share is no
    part of a range; the wide grid, which is finer near zero, tells it from several.
    """
    width = 1 + max(1, int(_PART * (len(counts) - 1)))
    n_values = min(n_records, counts.sum() + std * math.sqrt(len(counts)))
    sums = np.convolve(counts, np.ones(width), "valid")
    first = int(sums.argmax())
    if sums[first] < RANGE.nearly_all * n_values + std * math.sqrt(width):
        return False
    steps = np.arange(len(counts)) - first
    distances = np.maximum(-steps, steps - width + 1)
    is_far = distances >= len(counts) // 2
    is_near = ~is_far & (distances > 0)
    far = (counts[1:] + counts[:-1])[is_far[1:] & is_far[:-1]].max(initial=0)
    if far < counts[is_near].sum():
        return False
    lower, upper = np.interp([first, first + width - 1], [0, len(counts) - 1], knots[[0, -1]])
    inside = wide[(lower <= knots) & (knots <= upper)]
    # A value has two knots, and noise on all of them is taken for others.
    return bool((inside > find_clear(wide_std, len(inside))).sum() > 2)


def _is_in_one_cell(counts, std):
    """Whether all values are inside of one cell of many: at two knots, and not at one alone.

    Sparse and binary columns have values at a knot, the end of their range, or others elsewhere.
    """
    pairs = counts[:-1] + counts[1:]
    best = int(pairs.argmax())
    inside, others = counts[best : best + 2], np.delete(counts, [best, best + 1])
    if len(counts) < _FEWEST_FINE or inside.min() <= find_clear(std, len(counts)):
        return False
    most = 1e-9 * counts.sum()  # sums of floats
    is_empty = others.max() <= find_clear(std, len(others)) + most
    return bool(is_empty and others.sum() <= 2 * std * math.sqrt(len(others)) + most)


def make_box(
    n_samples,
    n_features,
    multiplier,
    relation,
    *,
    bounds=None,
    y_bounds=None,
    encoder=None,
    components=None,
    clip_norm="auto",
    **public,
):
    """Return the format of arrays for central methods, open where nothing is known.

    Bounds are those that are given, else those of the dtype, if it has few values. Undeclared
    parameters get a share of the budget that follows from public numbers, as does the grid. The
    multiplier is that of a Gaussian release that spends all of the budget.
    """
    layout = public.get("layout")
    if bounds is None and encoder is None and layout is not None:
        bounds = layout.bounds
    opens_radius = isinstance(clip_norm, str)
    opens_y = public.get("has_number", False) and y_bounds is None
    # An encoder needs no bounds, but its rows a scale.
    opens_X = opens_radius if encoder is not None else bounds is None
    if opens_radius:
        radius = 1.0
    else:
        # In a box no row is longer than 1.
        radius = clip_norm if encoder is not None else min(clip_norm, 1.0)
    format = OpenBoxFormat(
        n_features,
        bounds=(0, 1) if opens_X and encoder is None else bounds,
        y_bounds=(0, 1) if opens_y else y_bounds,
        encoder=encoder,
        components=components,
        clip_norm=radius,
        **public,
        opens_X=opens_X,
        opens_y=opens_y,
    )
    if layout is not None:
        declared = None if opens_X or bounds is None else format.bounds
        layout.check_bounds(declared, None if opens_y else format.y_bounds)
    names = (_RANGES, _COUNTS) * (opens_X or opens_y) + (_NORMS,) * opens_radius
    if not names:
        return format._close(None)
    unit = math.sqrt(len(format._name_ranges()))
    shares, noise = {}, {}
    for name in names:
        least, most = _SHARES[name]
        apart = multiplier * (1.0 if name == _NORMS else unit)
        shares[name] = min(most, max(least, (_WANTED[name] * apart / n_samples) ** 2))
        sensitivity = WeightSumMechanism(name).sensitivity(relation)
        noise[name] = apart / math.sqrt(shares[name]) * sensitivity
    if _RANGES not in names:
        return replace(format, shares=shares)
    knots = wide_knots(n_per_octave=choose_per_octave(n_samples, noise[_RANGES]))
    n_fine = count_affordable(n_samples, noise[_COUNTS], _FEWEST_FINE, _MOST_FINE)
    return replace(format, shares=shares, knots=knots, n_fine=n_fine)
