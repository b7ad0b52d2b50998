# SPDX-License-Identifier: BSD-3-Clause
"""Numeric columns."""

import contextlib
import math
import numbers
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
import pandas as pd
from pandas.api.types import is_bool_dtype, is_integer_dtype, is_numeric_dtype

from ...checks import is_one_of
from ...histograms.grids import MAX_UNITS, find_farthest, wide_knots
from ..declaration import (
    check_flag,
    check_list,
    check_number,
    check_numbers,
    check_whole,
    find_repeated,
    plain,
)
from .category import Ordinal
from .cells import read_numbers
from .column_type import CONVERT, KnotColumn, mask
from .heaps import (
    DECIMALS_OF,
    MOST_DECIMALS,
    STEPS,
    expect_numbers,
    find_levels,
    snap_numbers,
)
from .values import Values, place_knots

# Default number of knots.
N_KNOTS = 16
# Least share of cells that fit a type, or a number of decimals, up to noise.
FITTING_SHARE = 0.95
# Values that many records may share, or that may stand for unknown ones: ends of shares,
# repeated digits, as surveys code it, and the largest numbers of a field with decimals.
_REPEATED = [digit * (10**k - 1) // 9 for digit in (7, 8, 9) for k in range(2, 8)]
_CANDIDATES = (0, 1, 100, -1, 9, *_REPEATED, -9, *(-number for number in _REPEATED))
_WITH_DECIMALS = (*(round(10**k - 0.1, 1) for k in (2, 3, 4)), 999.99, 9999.99)


# Checks of parameters that are not None.
_CHECKS = {
    **dict.fromkeys(("lower", "upper"), check_number),
    **dict.fromkeys(("knots", "atoms", "cuts"), check_numbers),
    "decimals": partial(check_whole, lowest=0, highest=15),
    "n_knots": partial(check_whole, lowest=2),
}


@dataclass(frozen=True, repr=False)
class Number(KnotColumn):
    """A column of numbers between public bounds.

    Parameters
    ----------
    lower, upper : float, default=None
        Bounds, to which values are clipped. None: a generator infers them, at a cost.
    decimals : int, default=None
        Synthetic values are rounded to so many decimals; 0 for whole numbers, None to leave them.
    n_knots : int, default=None
        Number of knots: the resolution of the density. Knots are values, so there are fewer of them
        if there are fewer values. None: a generator infers knots near quantiles, at most about 16,
        at a cost; without inference there are 16 evenly spaced ones.
    scale : {"linear", "log", "symlog"}, default=None
        Spacing of public knots: even; even in log(1 + value - lower), for a long upper tail; or in
        sign(value) · log(1 + abs(value) / u), for tails on both sides of 0, which is then a knot:
        u is 1, or a thousandth of the larger bound if that is less, but at least a step of
        `decimals`. None: even, unless knots are inferred.
    knots : list of float, default=None
        Increasing public knots from `lower` to `upper`, in place of `n_knots` and `scale`.
    atoms : list of float, default=None
        Point masses: values that many records share, such as 0, or codes, such as -999, also beyond
        the bounds. Each has a weight of its own, for cells that equal it after rounding to
        `decimals`. None: inferred together with knots; otherwise there are none.
    cuts : list of float, default=None
        Increasing breakpoints between knots. Those between two neighbouring knots divide the mass
        there into about equal shares, by which values are encoded and drawn. None: inferred
        together with knots; otherwise there are none. A generator that infers them also calibrates
        the shape between them, which the schema does not store.
    heaps : list of (float, float, float), default=None
        Steps, gaps and shares: such a share of synthetic values that are no point masses is rounded
        to multiples of the step, less the gap. ``[(500, 0, 0.7)]`` rounds 70 % to 500, and
        ``[(1, 0.01, 1)]`` gives prices such as 19.99. None: inferred together with decimals;
        otherwise there are none.
    missing : bool, default=False
        Whether values may be missing.

    Attributes
    ----------
    positions : ndarray of shape (n_positions,)
        The knots. With `decimals`, a point mass is no knot, but the values next to it are.

    Raises
    ------
    ValueError
        If a parameter makes no sense.

    Examples
    --------
    >>> from skdpgen import Number
    >>> Number(0, 100, n_knots=5).positions
    array([  0.,  25.,  50.,  75., 100.])
    >>> Number(-50, 1000, decimals=0, n_knots=5, scale="symlog", atoms=[0]).positions
    array([ -50.,   -1.,    1.,    9.,   99., 1000.])
    """

    lower: float | None = None
    upper: float | None = None
    decimals: int | None = None
    n_knots: int | None = None
    scale: str | None = None
    knots: Sequence | None = None
    atoms: Sequence | None = None
    cuts: Sequence | None = None
    missing: bool = False
    heaps: Sequence | None = None

    is_number = True
    dtype_codes = "iufO"
    expected_text = "number"
    cell_types = ("whole", "number")
    # Limits of measurements, such as <0.5, become missing; whole numbers beside texts may be codes.
    evidence = {
        "number": (
            ("whole", "number", "point", "decimal comma", "grouped", "comma", "limit"),
            ("number", "point", "decimal comma"),
        ),
        "integer": (("whole", "grouped", "comma", "point"), ()),
    }
    forms = ("integer", "number")
    level_decimals = (*DECIMALS_OF, MOST_DECIMALS + 1, 0, 0)

    def __post_init__(self):
        given = {name: getattr(self, name) for name in _CHECKS}
        self._set(**{n: _CHECKS[n](n, value) for n, value in given.items() if value is not None})
        if not is_one_of(self.scale, (None, "linear", "log", "symlog")):
            raise ValueError(f"scale must be 'linear', 'log' or 'symlog'; got {self.scale!r}.")
        check_flag(self.missing)
        self._set(heaps=check_heaps(self.heaps, 2))
        if self.knots is not None:
            if (self.n_knots, self.scale) != (None, None):
                raise ValueError("give either knots, or n_knots and scale.")
            if self.knots[:1] + self.knots[-1:] != (self.lower, self.upper):
                raise ValueError("knots must begin with lower and end with upper.")
        for name in ("knots", "cuts"):
            if not all(a < b for a, b in pairwise(getattr(self, name) or ())):
                raise ValueError(f"{name} must increase.")
        if repeated := find_repeated(self.atoms or ()):
            raise ValueError(f"atoms must be different; got {repeated} again.")
        if self.decimals is not None:
            self._check_decimals((*(self.knots or (self.lower, self.upper)), *(self.atoms or ())))
        if not self.is_open:
            self._check_bounds()
        elif self.cuts:
            raise ValueError("cuts are of a number whose bounds are declared, too.")

    def _check_bounds(self):
        lower, upper = self.lower, self.upper
        if not lower < upper:
            raise ValueError(f"lower must be below upper; got {lower!r} and {upper!r}.")
        # Differences of values, such as gaps between knots, must be finite, too.
        if not math.isfinite(float(upper) - float(lower)):
            raise ValueError(f"bounds are too far apart; got {lower!r} and {upper!r}.")
        if self.scale == "log" and lower < 0 < upper:
            raise ValueError(
                f"scale='log' is for numbers of one sign; got bounds {lower!r} and {upper!r}. Use "
                "scale='symlog' for tails on both sides of 0; a special value such as -1 is one "
                "of atoms=[-1], and may be beyond the bounds."
            )
        if self.atoms and len(self.positions) < 2:
            raise ValueError(
                f"between {lower!r} and {upper!r} there are too few values beside the atoms "
                f"{self.atoms!r}; leave these out, as each of few values has a knot."
            )
        if self.cuts and not (lower < self.cuts[0] and self.cuts[-1] < upper):
            raise ValueError("cuts must be between the bounds.")
        if self.cuts and (common := {*self.cuts} & {*self.positions.tolist()}):
            raise ValueError(f"cuts must not be knots; {sorted(common)} are both.")

    @classmethod
    def of_dtype(cls, dtype, missing):
        if is_bool_dtype(dtype) or not is_numeric_dtype(dtype):
            return None
        return cls(decimals=0 if is_integer_dtype(dtype) else None, missing=missing)

    @classmethod
    def of_public(cls, column, missing, n_knots):
        found = read_numbers(column)[1]
        is_categorical = isinstance(column.dtype, pd.CategoricalDtype)
        if is_categorical or np.isnan(found).any() or not np.isfinite(found).any():
            return None
        found = found[np.isfinite(found)]
        decimals = _count_decimals(found)
        lower, upper = (int(b) if decimals == 0 else float(b) for b in find_extremes(found))
        return cls(lower, upper, decimals, n_knots=n_knots, missing=missing)

    @classmethod
    def of_field(cls, field):
        decimals = 0 if field.type == "integer" else field.decimals
        lower, upper = (field.round_bound(end, decimals) for end in ("lower", "upper"))
        return cls(lower, upper, decimals, missing=field.missing)

    def to_field(self):
        form = "integer" if self.decimals == 0 else "number"
        return {"type": form, "lower": self.lower, "upper": self.upper}

    @classmethod
    def infer(cls, cells, counts, std):
        # Groups of thousands may be followed by decimals, as in 1,234.50, which the next release
        # finds.
        fractions = sum(counts[name] for name in ("number", "point", "decimal comma", "grouped"))
        total = sum(counts[name] for name in cls.evidence["number"][0])
        is_whole = fractions <= (1 - FITTING_SHARE) * total + 2 * std
        return cls(decimals=0 if cells == "integer" or is_whole else None, missing=True)

    def example(self):
        # Frequent values have few digits.
        return Number(0, 100, decimals=1) if self.is_open else self

    @property
    def may_be_class(self):
        return self.is_open and self.decimals == 0

    def as_classes(self, present=None):
        if self.decimals != 0 or self.n_values > N_KNOTS:
            return self
        values = {*range(int(self.lower), int(self.upper) + 1), *(self.atoms or ())}
        values = sorted(int(v) for v in (values if present is None else present & values))
        return Ordinal(values, self.missing) if values else self

    @property
    def takes_knots(self):
        """Whether knots must be inferred: the bounds are known, and no knots are declared."""
        declared = (self.n_knots, self.scale, self.knots, self.cuts)
        is_declared = self.is_open or declared != (None, None, None, None)
        return not is_declared and self.n_values > N_KNOTS

    @property
    def n_values(self):
        """How many values there are between the bounds."""
        if self.decimals is None or self.is_open:
            return math.inf
        return 1 + round((self.upper - self.lower) * 10.0**self.decimals)

    def to_number(self):
        """Return the column itself, which is one of numbers."""
        return self

    def from_number(self, number):
        """Return a column with the knots, point masses and breakpoints of another one."""
        return number

    def wide_knots(self, n_per_octave):
        return wide_knots(self.decimals, n_per_octave)

    @property
    def candidates(self):
        """Values that often encode missing information."""
        decimals = 15 if self.decimals is None else self.decimals
        return (*_CANDIDATES, *(x for x in _WITH_DECIMALS if round(x, decimals) == x))

    def with_even_knots(self):
        """Return the column with evenly spaced knots."""
        return replace(self, scale="linear")

    @property
    def is_rough(self):
        """Whether the decimals are to be inferred, if a bound is."""
        return self.decimals is None

    def with_decimals(self, decimals):
        """Return the column with inferred decimals, unless its bounds are finer or too far out."""
        with contextlib.suppress(ValueError):
            found, farthest = replace(self, decimals=decimals), find_farthest(decimals)
            if (self.lower or 0.0) < farthest and (self.upper or 0.0) > -farthest:
                return found
        return self

    def find_levels(self, values):
        """Return the position of the coarsest step of which each number is a multiple."""
        numbers = values if self.decimals is None else np.round(values, self.decimals)
        levels = find_levels(numbers)
        if self.decimals == 0:
            # Floats hold whole numbers further than they resolve fractions.
            levels[levels == len(DECIMALS_OF)] = STEPS.index(1)
        return levels

    def measure(self, step, gap):
        """Return the length of a step of heaps."""
        return step

    def snap(self, numbers, step, gap):
        """Return the multiples of a step, less a gap, that are next to numbers."""
        return snap_numbers(numbers, step, gap)

    def expect_heaps(self):
        """Return steps, and the shares of levels among the multiples of each; see `find_heaps`."""
        return expect_numbers(self.decimals)

    def _check_decimals(self, values):
        for value in values:
            if value is None:
                continue
            if self.decimals and abs(value) * 10.0**self.decimals > MAX_UNITS:
                raise ValueError(
                    f"{value!r} is too large for decimals={self.decimals}: floats hold about 15 "
                    "digits; use fewer decimals, or None."
                )
            if round(value, self.decimals) != value:
                raise ValueError(
                    f"bounds, knots and atoms must have at most the given number of decimals, "
                    f"{self.decimals}; got {value!r}."
                )

    @property
    def positions(self):
        """Positions of the knots."""
        if self.knots is not None:
            knots = np.array(self.knots, dtype=np.float64)
        else:
            n_knots = self.n_knots or N_KNOTS
            knots = place_knots(self.lower, self.upper, n_knots, self.scale, self.decimals)
        if not self.atoms:
            return knots
        knots = Values(self.decimals, self.atoms).around(knots)
        return knots[(self.lower <= knots) & (knots <= self.upper)]

    def describe_mismatch(self, dtype):
        """Return the fault of cells of another dtype, and the remedy, for an error."""
        return f"are no numbers (dtype {dtype})", CONVERT.format("to_numeric")

    def check_value(self, name, value, *, is_last=False):
        """Return a number that a condition on the column `name` asks for."""
        if isinstance(value, bool | np.bool_) or not isinstance(value, numbers.Real):
            raise ValueError(
                f"A condition asks for numbers of {name!r}, or for ranges (lower, upper) of them; "
                f"got {value!r}."
            )
        return float(value)

    def encode(self, column):
        """Return which cells are present, and the numbers of these, NaN for those that are none."""
        return read_numbers(column)

    def to_values(self, column):
        """Return cells as floats, NaN for missing values."""
        return pd.Series(column).to_numpy(np.float64, na_value=np.nan, copy=True)

    def write(self, number):
        return f"{number:.6g}"

    def decode(self, numbers, missing):
        """Return the cells of synthetic numbers, in the column's dtype."""
        # Only unsigned integers of 64 bits, and larger ones, are beyond int64.
        if self.decimals == 0 and max(-(self.lower or 0), self.upper or 0) < 2**63:
            whole = numbers.astype(np.int64)
            return mask(whole, missing) if self.missing else whole
        return np.where(missing, np.nan, numbers)


def find_extremes(values):
    """Return the smallest and largest of public values."""
    if values.min() == values.max():
        raise ValueError("it has one value only.")
    return values.min(), values.max()


def _count_decimals(values):
    """Return how many decimals suffice, or None for more than 6."""
    for decimals in range(7):
        if np.abs(values).max() * 10.0**decimals > MAX_UNITS:
            return None
        if (np.round(values, decimals) == values).all():
            return decimals
    return None


def check_heaps(heaps, n_numbers, steps=None):
    """Return heaps as tuples: of a known step, or of so many numbers, and of a share."""
    if heaps is None:
        return None
    found = tuple(tuple(plain(part) for part in check_list("heaps", heap)) for heap in heaps)
    for heap in found:
        *step, share = heap or (None,)
        is_step = (
            step[0] in steps if steps and step else len(check_numbers("heaps", step)) == n_numbers
        )
        is_share = isinstance(share, int | float) and 0 < share <= 1
        if not (is_step and is_share and (steps or step[0] > 0)):
            raise ValueError(
                "heaps must be a list of a step"
                + (f" among {list(steps)}" if steps else ", a gap")
                + f" and a share of at most 1; got {list(heap)}."
            )
    if sum(heap[-1] for heap in found) > 1 + 1e-9:
        raise ValueError("the shares of heaps must sum to at most 1.")
    return found
