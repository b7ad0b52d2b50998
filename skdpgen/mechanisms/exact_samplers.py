# SPDX-License-Identifier: BSD-3-Clause
"""Exact samplers of rounded Gaussian and Laplace numbers, and of coins.

A sampler that computes in doubles has another distribution than its formula, with a bounded support
and gaps, and so a larger ε than the formula has. Here no distribution is approximated. A number is
represented by its leading binary digits, which are uniform; each comparison is decided once the
known digits allow only one answer, and more digits are drawn until then. Floating-point numbers
save time only: they decide where a bound on their error allows it, and whole numbers decide the
rest.
"""

import math
from collections.abc import Callable
from functools import cache

import numpy as np

# Numbers that are drawn at once, so that they stay in the cache.
_PIECE = 2**14
# Terms of the exponential series in doubles; the error bound accounts for the rest.
_DEGREE = 6


class RoundedSampler:
    """Exact samples of round(s·X), where X = ±Z, and Z has a density ∝ f(z) = exp(-z^p / p), z ≥ 0.

    For p = 2 these are rounded Gaussians of standard deviation s; for p = 1, rounded Laplace
    numbers of scale parameter s. The double s is an exact rational number.

    *Rejection.* A uniform point under the curve y = f(x) has an abscissa with the distribution of
    Z. At most 2^B boxes of one area cover the curve. [0, R) is cut into cells of width w = 2^-c;
    boxes of width w and height 1/N are stacked on a cell that starts at a until they reach f(a),
    since f decreases. Strips [R + j, R + j + 1) of height (w / 2N)·2^-j cover the tail beyond R:
    f(R) is at most the height of the first, and f falls faster than they do. All strips together
    have the area of one box; coins choose a strip. So B uniform digits choose a box; if no box has
    this number, the attempt fails. A sign, and digits of a point in the box, are drawn next. If the
    box is under the curve, so is the point. If not, digits of its height are drawn, and both get
    more digits until the rectangle of possible points is under the curve, or above it, where the
    attempt fails. An accepted point keeps its digits.

    *Rounding.* The known digits locate Z in an interval [z, z + 2^-j). More digits are drawn until
    s·[z, z + 2^-j) rounds to one whole number. A tie has probability 0.

    *Doubles.* The first digits, at most 53 of the cell and the position in it, are a whole number
    below 2^53. Doubles decide about f(x) and s·x only where the result is further from the boundary
    than the total error: unknown digits, omitted terms of the series, and rounding, which is at
    most 2^-53 of the result of one operation (IEEE 754). All else is decided in whole numbers of
    arbitrary precision.

    Parameters
    ----------
    power : {1, 2}
        p.
    box_bits, cell_bits : int
        B and c.
    digit_bits, height_bits, more_bits : int
        Numbers of digits of the position in a cell, of the height, and then of both that are drawn
        at once.
    """

    def __init__(
        self,
        power: int,
        *,
        box_bits: int = 16,
        cell_bits: int = 6,
        digit_bits: int = 43,
        height_bits: int = 53,
        more_bits: int = 64,
    ) -> None:
        self.power = power
        self._digit_bits, self._height_bits = digit_bits, height_bits
        self._more_bits = more_bits
        # Binary places of abscissas; a cell is 2^digit_bits of their units.
        self._bits = cell_bits + digit_bits
        self._cell_bits = cell_bits

        # f(R) ≤ 2^-(B+1) is at most half of the area of a box, w / N: that under the curve is at
        # least 1, and 2^B boxes cover it.
        depth = (box_bits + 1) * math.log(2)
        end = math.ceil((math.sqrt(2 * depth) if power == 2 else depth) * 2**cell_bits) + 1
        bounds = [self._curve(i, cell_bits, 128) for i in range(end + 1)]
        total = sum(high for _, high in bounds[:end])
        # Each cell has less than one box more than its area, and the tail has one: all fit.
        self.n_levels = n = ((2**box_bits - end - 1) << 128) // total
        assert 2 * n * bounds[end][1] <= 1 << (128 - cell_bits)
        covering = [-(-n * high >> 128) for _, high in bounds[:end]]
        inside = [n * low >> 128 for low, _ in bounds[1:]]
        crossed = [covering[i] - inside[i] for i in range(end)]
        cells = np.arange(end, dtype=np.uint64)
        self._n_inside, self._n_crossed = sum(inside), sum(crossed)
        self.n_boxes = self._n_inside + self._n_crossed + 1
        assert self.n_boxes <= 2**box_bits
        # The order of boxes: inside, crossed by the curve, that of the tail, and none.
        self._cell = np.zeros(2**box_bits, dtype=np.uint64)
        self._cell[: self.n_boxes - 1] = np.r_[np.repeat(cells, inside), np.repeat(cells, crossed)]
        self._level = np.concatenate(
            [np.arange(low, high) for low, high in zip(inside, covering, strict=True)]
        )
        self._word_bits = box_bits + 1 + digit_bits
        self._end = end

        self._heights = np.array([n * high / (1 << 128) for _, high in bounds[:end]])
        # The largest change of the exponent within a cell, and the error bound of doubles, in units
        # of 1/N: unknown digits (f has a slope of at most 1), the rest of the series, rounding in
        # less than 50 operations on numbers below 2^7·N; and unknown digits of the height.
        widest = 2.0**-cell_bits * (end * 2.0**-cell_bits if power == 2 else 1.0)
        rest = widest ** (_DEGREE + 1) / math.factorial(_DEGREE + 1)
        self._unsure = n * (2.0**-self._bits + rest + 2.0**-40) + 2.0**-height_bits

    def draw(self, scale: np.ndarray, digits: Callable[[int, int], np.ndarray]) -> np.ndarray:
        """Draw round(s·X) for each s of an array of numbers from 0 to below 2^58.

        ``digits(bits, n)`` returns n fresh uniform whole numbers below 2^bits, as uint64. Results
        are modulo 2^64, as are all sums on the grid.
        """
        scale = np.asarray(scale, dtype=np.float64)
        drawn = np.empty(scale.shape, dtype=np.int64)
        out = drawn.reshape(-1)
        for start in range(0, scale.size, _PIECE):
            piece = scale.flat[start : start + _PIECE]
            x, negative, longer = self._points(len(piece), digits)
            out[start : start + _PIECE] = self.round(x, negative, longer, piece, digits)
        return drawn

    def _points(self, n, digits):
        """Return n accepted points, in the form of `attempt`."""
        # A few more attempts than needed: most boxes lie under the curve, so one round suffices.
        x, negative, under, longer = self.attempt(n + n // 32 + 8, digits)
        failed, spare = np.flatnonzero(~under[:n]), np.flatnonzero(under[n:]) + n
        if len(spare) < len(failed):
            x[failed], negative[failed], others = self._points(len(failed), digits)
        else:
            spare = spare[: len(failed)]
            x[failed], negative[failed] = x[spare], negative[spare]
            others = {i: longer[j] for i, j in enumerate(spare.tolist()) if j in longer}
        longer = {i: point for i, point in longer.items() if i < n and under[i]}
        longer.update((int(failed[i]), point) for i, point in others.items())
        # Points keep the digits that were drawn for them: other digits would be another point.
        return x[:n], negative[:n], longer

    def attempt(self, n, digits):
        """Draw n points in boxes, and decide which are under the curve.

        Returns
        -------
        x : ndarray of uint64
            The first digits of their abscissas.
        negative : ndarray of int64
            1 for points left of 0.
        under : ndarray of bool
            Whether a point is under the curve, and so accepted.
        longer : dict
            For positions of points with more known digits: (digits, number of binary places).
        """
        word = digits(self._word_bits, n)
        box = (word >> np.uint64(self._digit_bits + 1)).view(np.int64)
        place = word & np.uint64((1 << self._digit_bits) - 1)
        x = (self._cell[box] << np.uint64(self._digit_bits)) | place
        negative = ((word >> np.uint64(self._digit_bits)) & np.uint64(1)).view(np.int64)

        under, longer = box < self._n_inside, {}
        others = np.flatnonzero(~under)
        part = box[others] - self._n_inside
        crossed = others[part < self._n_crossed]
        level = self._level[part[part < self._n_crossed]]
        self._compare(crossed, x, place, level, under, longer, digits)
        for i in others[part == self._n_crossed].tolist():
            self._decide(i, *self._draw_in_tail(digits), under, longer, digits)
        return x, negative, under, longer

    def round(self, x, negative, longer, scale, digits):
        """Round s·X for accepted points."""
        step = scale * 2.0**-self._bits
        product = x.view(np.int64) * step
        # To the nearest whole number in doubles; those near a tie are decided in whole numbers
        # below.
        values = np.rint(product)
        # Twice the error of the product and the unknown digits.
        known = np.abs(product - values) < 0.5 - (product * 2.0**-51 + 2 * step)
        values = values.astype(np.int64)
        for i in np.flatnonzero(~known).tolist():
            longer.setdefault(i, (int(x[i]), self._bits))
        for i, point in longer.items():
            values[i] = self._round_one(point, float(scale[i]), digits)
        # In two's complement: all bits flipped, and 1 added.
        return (values ^ -negative) + negative

    def _compare(self, crossed, x, place, level, under, longer, digits):
        """Decide which points of crossed boxes are under the curve."""
        height = digits(self._height_bits, len(crossed))
        gap = self._curve_in_doubles(x[crossed], place[crossed]) - level
        gap -= height * 2.0**-self._height_bits
        under[crossed] = gap > 0
        for i in np.flatnonzero(np.abs(gap) <= self._unsure).tolist():
            y = (int(level[i]) << self._height_bits) + int(height[i])
            point = (int(x[crossed[i]]), self._bits)
            self._decide(crossed[i], point, (y, self._height_bits), under, longer, digits)

    def _curve_in_doubles(self, x, place):
        """Return N·f(x) to less than 2^-40·N: f at the start of the cell, times a series."""
        beyond = place * 2.0**-self._bits
        cell = (x >> np.uint64(self._digit_bits)).astype(np.intp)
        exponent = beyond
        if self.power == 2:
            exponent = beyond * (cell * 2.0**-self._cell_bits + beyond / 2)
        series = np.ones(len(x))
        for j in range(_DEGREE, 0, -1):
            series = 1 - exponent * series / j
        return self._heights[cell] * series

    def _draw_in_tail(self, digits):
        """Draw a strip beyond R, and return the known digits of a point in it."""
        strip = 0
        while _digit(1, digits):
            strip += 1
        x = self._end + (strip << self._cell_bits) + _digit(self._cell_bits, digits)
        return (x, self._cell_bits), (0, self._cell_bits + 1 + strip)

    def _decide(self, i, x, y, under, longer, digits):
        """Decide whether a point (x, y / N) is under the curve; each is (digits, their number)."""
        while True:
            (x_digits, x_bits), (y_digits, y_bits) = x, y
            precision = x_bits + y_bits + 16
            low = self.n_levels * self._curve(x_digits + 1, x_bits, precision)[0] << y_bits
            high = self.n_levels * self._curve(x_digits, x_bits, precision)[1] << y_bits
            under[i] = (y_digits + 1) << precision <= low
            if under[i] or y_digits << precision >= high:
                break
            x, y = self._lengthen(x, digits), self._lengthen(y, digits)
        longer[i] = x

    def _round_one(self, x, scale, digits):
        """Round s·X to a whole number, modulo 2^64."""
        numerator, denominator = scale.as_integer_ratio()
        while True:
            unit = denominator << x[1]
            low, high = (2 * numerator * (x[0] + i) + unit for i in (0, 1))
            rounded = low // (2 * unit)
            if high <= 2 * unit * (rounded + 1):
                return (rounded + 2**63) % 2**64 - 2**63
            x = self._lengthen(x, digits)

    def _lengthen(self, number, digits):
        known, bits = number
        return (known << self._more_bits) + _digit(self._more_bits, digits), bits + self._more_bits

    def _curve(self, x, bits, precision):
        """Bound 2^precision·f(x / 2^bits) from below and above by whole numbers."""
        if self.power == 1:
            return bound_exponential(x, bits, precision)
        return bound_exponential(x * x, 2 * bits + 1, precision)


@cache
def rounded_sampler(power: int) -> RoundedSampler:
    """Return the sampler of rounded Laplace (1) or Gaussian (2) numbers."""
    return RoundedSampler(power)


def bound_exponential(numerator: int, bits: int, precision: int) -> tuple[int, int]:
    """Bound 2^precision·exp(-numerator / 2^bits) from below and above by whole numbers."""
    # exp(z / 2^halvings), with an argument below 1/2, is inverted and squared so many times. Each
    # squaring doubles the relative error, which the additional digits cover.
    halvings = max(0, numerator.bit_length() - bits + 1)
    shift, precise = bits + halvings, precision + 2 * halvings + 16
    # Each term is rounded down, by less than 4: less than 2 from its own two divisions, and half of
    # the error of the term before. Once it is 0, the omitted terms are less than 8 together.
    total, term, j = 0, 1 << precise, 0
    while term:
        total += term
        j += 1
        term = (term * numerator >> shift) // j
    low = (1 << 2 * precise) // (total + 4 * j + 8)
    high = -(-(1 << 2 * precise) // total)
    for _ in range(halvings):
        low, high = low * low >> precise, -(-high * high >> precise)
    extra = precise - precision
    return low >> extra, -(-high >> extra)


def toss_coins(probability: float, n: int, digits: Callable[[int, int], np.ndarray]) -> np.ndarray:
    """Toss n coins that show heads with exactly this probability, a double in [0, 1].

    Heads means that a uniform number is below `probability`. Its first 53 digits decide unless they
    equal those of `probability`; then further digits are drawn.
    """
    leading = math.floor(probability * 2.0**53)
    rest = probability * 2.0**53 - leading
    drawn = digits(53, n)
    heads = drawn < np.uint64(leading)
    undecided = np.flatnonzero(drawn == np.uint64(leading))
    # A probability that ends within 53 digits is decided: equal digits are not below it.
    if rest > 0 and len(undecided):
        heads[undecided] = toss_coins(rest, len(undecided), digits)
    return heads


def _digit(bits, digits):
    return int(digits(bits, 1)[0])
