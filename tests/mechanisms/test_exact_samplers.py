"""Samples by digits: every string of digits in turn, with the probability that it has."""

import math
from collections import Counter
from fractions import Fraction
from functools import partial

import mpmath
import numpy as np
import pytest
from scipy import stats

from skdpgen.mechanisms.exact_samplers import (
    RoundedSampler,
    bound_exponential,
    rounded_sampler,
    toss_coins,
)

AREA = {1: 1.0, 2: math.sqrt(math.pi / 2)}
LAWS = {1: stats.laplace, 2: stats.norm}


class OutOfDigits(Exception):
    """Raised with the number of binary digits that were asked for next."""


class Script:
    """A source of digits that are written down beforehand, and then of those of a generator."""

    def __init__(self, numbers, then=None):
        self.numbers = list(numbers)
        self.then = then

    def __call__(self, bits, n):
        if self.then is not None and len(self.numbers) < n:
            return self.then.integers(2**bits, size=n, dtype=np.uint64)
        if len(self.numbers) < n:
            raise OutOfDigits(bits)
        asked, self.numbers = self.numbers[:n], self.numbers[n:]
        assert all(0 <= number < 2**bits for number in asked)
        return np.array(asked, dtype=np.uint64)


def attempt(sampler, scale, script):
    """Attempt one number; None if it fails."""
    x, negative, (under,), longer = sampler.attempt(1, script)
    if not under:
        return None
    return int(sampler.round(x, negative, longer, np.array([scale]), script)[0])


def enumerate_outcomes(draw, least):
    """Run `draw` on all strings of digits; return the probability of each outcome.

    Strings that are less likely than `least` are not followed further: theirs is that of "open".
    """
    found, pending = Counter(), [((), Fraction(1))]
    while pending:
        numbers, probability = pending.pop()
        try:
            found[draw(Script(numbers))] += probability
        except OutOfDigits as error:
            (bits,) = error.args
            if probability < least:
                found["open"] += probability
            else:
                following = probability / 2**bits
                pending += [((*numbers, number), following) for number in range(2**bits)]
    return found


@pytest.mark.catches(
    "mechanisms.exact_samplers:RoundedSampler._decide",
    "y_digits + 1",
    "y_digits",
    param="1-1.7-3-14",
)
@pytest.mark.catches(
    "mechanisms.exact_samplers:RoundedSampler._round_one",
    "high <= 2 * unit * (rounded + 1)",
    "True",
    param="1-1.7-3-14",
)
@pytest.mark.parametrize(("power", "scale", "bits", "depth"), [(1, 1.7, 3, 14), (2, 0.4, 2, 15)])
def test_every_string_of_digits(power, scale, bits, depth):
    sampler = RoundedSampler(
        power, box_bits=8, cell_bits=2, digit_bits=bits, height_bits=bits, more_bits=bits
    )

    found = enumerate_outcomes(partial(attempt, sampler, scale), Fraction(1, 2**depth))
    assert sum(found.values()) == 1
    open_mass = float(found.pop("open"))
    assert open_mass < 0.07
    # One box has an area of w / N; an attempt succeeds by the area under the curve.
    accepted = AREA[power] * 4 * sampler.n_levels / 2**8
    assert 0 <= 1 - accepted - found.pop(None) <= open_mass
    unaccounted = 0.0
    for k in range(-12, 13):
        edges = (np.array([k, k + 1]) - 0.5) / scale
        expected = accepted * float(np.diff(LAWS[power].cdf(edges))[0])
        lacking = expected - float(found[k])
        assert lacking >= -1e-12
        unaccounted += lacking
    assert unaccounted <= open_mass + 1e-12
    assert found[3] == found[-3]


@pytest.mark.parametrize("power", [1, 2])
def test_boxes_cover_the_curve_once(power):
    sampler = RoundedSampler(power, box_bits=10, cell_bits=3)
    n, width, end = sampler.n_levels, 1 / 8, sampler._end
    with mpmath.workdps(40):
        curve = [mpmath.exp(-((mpmath.mpf(i) * width) ** power) / power) for i in range(end + 1)]
    cells = sampler._cell[: sampler.n_boxes - 1].astype(int)
    inside = np.bincount(cells[: sampler._n_inside], minlength=end)
    crossed = cells[sampler._n_inside :]
    for i in range(end):
        # Whatever is inside is under the lowest point of the curve over the cell; all boxes
        # together reach up to the highest.
        assert inside[i] / n <= curve[i + 1]
        levels = sampler._level[crossed == i]
        assert levels.tolist() == list(range(inside[i], inside[i] + len(levels)))
        assert (inside[i] + len(levels)) / n >= curve[i]
        assert (inside[i] + len(levels) - 1) / n < curve[i]
    assert sampler.n_boxes <= 2**10
    # The tail fits under its strips.
    for strip in range(20):
        highest = math.exp(-((end * width + strip) ** power) / power)
        assert highest <= width / (2 * n) * 2.0**-strip


@pytest.mark.parametrize("power", [1, 2])
def test_doubles_decide_as_whole_numbers_do(power):
    """On crossed boxes, with heights as close to the curve as doubles are trusted, and closer."""
    sampler, rng = rounded_sampler(power), np.random.RandomState(0)
    boxes = sampler._n_inside + rng.randint(sampler._n_crossed, size=400)
    places = rng.randint(2**43, size=400)
    cells = sampler._cell[boxes].astype(int)
    x = (cells << 43) | places
    levels = sampler._level[boxes - sampler._n_inside]
    with mpmath.workdps(60):
        curve = [
            sampler.n_levels * mpmath.exp(-((mpmath.mpf(int(i)) / 2**49) ** power) / power)
            for i in x
        ]
        nearest = [int((c - int(level)) * 2**53) for c, level in zip(curve, levels, strict=True)]
        found = sampler._curve_in_doubles(x.astype(np.uint64), places.astype(np.uint64))
        largest = max(abs(f - c) for f, c in zip(found.tolist(), curve, strict=True))
    assert largest < sampler._unsure / 100
    # Digits to come move the curve by less than 2^14 units of 2^-53.
    for offset in (-(2**40), -(2**20), -(2**15), 2**15, 2**20, 2**40):
        within = [0 <= height + offset < 2**53 for height in nearest]
        for i in np.flatnonzero(within)[:50].tolist():
            word = (int(boxes[i]) << 44) | int(places[i])
            script = Script([word, nearest[i] + offset], np.random.default_rng(i))
            _, _, (under,), _ = sampler.attempt(1, script)
            assert under == (offset < 0)


@pytest.mark.catches(
    "mechanisms.exact_samplers:RoundedSampler._draw_in_tail",
    "_digit(1, digits)",
    "strip < 8 and _digit(1, digits)",
)
@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("strip", [0, 7, 40])
def test_there_is_no_last_value(power, strip):
    """Beyond what doubles make of a uniform number of 53 bits: 44.43 and about 8 or 12."""
    sampler, scale = rounded_sampler(power), 1024.0
    tail = (sampler.n_boxes - 1) << 44
    # So many coins, the place in the strip, and zeros: the least height.
    script = Script([tail | (1 << 43), *[1] * strip, 0, 32, *[0] * 60])
    assert attempt(sampler, scale, script) == -(scale * (sampler._end / 64 + strip + 0.5))


@pytest.mark.parametrize("power", [1, 2])
def test_the_tail_has_its_law(power):
    """Given that a number is beyond the cells: its excess, of which each strip has its part."""
    sampler = rounded_sampler(power)
    rng = np.random.default_rng(0)
    word, scale, start = (sampler.n_boxes - 1) << 44, 1e6, sampler._end / 64
    excesses, n_attempts = [], 2000
    for _ in range(n_attempts):
        value = attempt(sampler, scale, Script([word], rng))
        if value is not None:
            excesses.append(value / scale - start)
    law = LAWS[power]
    tail = law.sf(start)
    # Both fail with a probability of at most 1e-7.
    assert stats.kstest(excesses, lambda z: 1 - law.sf(start + z) / tail).pvalue > 1e-7
    accepted = AREA[power] * 2 * tail * 64 * sampler.n_levels
    error = math.sqrt(n_attempts * accepted * (1 - accepted))
    assert abs(len(excesses) - n_attempts * accepted) < 5.5 * error


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("scale", [0.3, 1.0, 20.0])
def test_frequencies(power, scale):
    rng, n = np.random.default_rng(1), 1_000_000
    values = rounded_sampler(power).draw(np.full(n, scale), Script([], rng))
    last = math.ceil(30 * scale)
    probability = np.diff(LAWS[power].cdf((np.arange(-last, last + 2) - 0.5) / scale))
    counts = np.bincount(np.clip(values + last, 0, 2 * last), minlength=2 * last + 1)
    frequent = probability * n > 10
    observed = np.r_[counts[frequent], n - counts[frequent].sum()]
    expected = np.r_[n * probability[frequent], n * (1 - probability[frequent].sum())]
    assert stats.chisquare(observed, expected * n / expected.sum()).pvalue > 1e-7


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("scale", [0.0, 5e-324, 1e-300, 1e-17])
def test_next_to_no_noise(power, scale):
    drawn = rounded_sampler(power).draw(np.full(1000, scale), Script([], np.random.default_rng(0)))
    assert not drawn.any()


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("scale", [2.0**44 + 1, 2.0**58 - 2**6, 12345.678])
def test_rounding_is_decided_by_whole_numbers(power, scale):
    """The same word, with all following digits 0: the number in it is known exactly."""
    sampler, rng = rounded_sampler(power), np.random.RandomState(0)
    for _ in range(30):
        box, place = int(rng.randint(sampler._n_inside)), int(rng.randint(2**43))
        script = Script([(box << 44) | place, *[0] * 10])
        x = Fraction((int(sampler._cell[box]) << 43) + place, 2**49)
        assert attempt(sampler, scale, script) == math.floor(Fraction(scale) * x + Fraction(1, 2))


def test_a_number_between_two_whole_ones_gets_more_digits():
    """At scale 1 the first 49 binary places of 2.4999... leave it open, the next 64 do not."""
    sampler = rounded_sampler(2)
    box = int(np.flatnonzero(sampler._cell[: sampler._n_inside] == 159)[0])
    word = (box << 44) | (2**43 - 1)
    last = {}
    for digit in (0, 2**64 - 1):
        # 2.5 is the end of this cell: 1.5 times 5/3 is below it, and 5/3 no double.
        script = Script([word, digit, 0])
        last[digit] = attempt(sampler, 1.0 + 2.0**-51, script)
        used = 2 - len(script.numbers)
        assert used == 1
    assert last == {0: 2, 2**64 - 1: 3}


@pytest.mark.catches(
    "mechanisms.exact_samplers:RoundedSampler._decide",
    "longer[i] = x",
    "longer[i] = (x[0] >> 64, x[1] - 64) if x[1] > 64 else x",
)
@pytest.mark.parametrize("power", [1, 2])
def test_digits_that_were_looked_at_are_kept(power):
    """The point is so close to the curve that its place gets more digits before it is accepted."""
    sampler, rng = rounded_sampler(power), np.random.RandomState(0)
    for _ in range(20):
        box = sampler._n_inside + int(rng.randint(sampler._n_crossed))
        place, more = int(rng.randint(2**43)), int(rng.randint(2**62))
        cell, level = int(sampler._cell[box]), int(sampler._level[box - sampler._n_inside])
        x = Fraction((cell << 43) + place, 2**49) + Fraction(more, 2 ** (49 + 64))
        with mpmath.workdps(60):
            exact = mpmath.mpf(x.numerator) / x.denominator
            height = int((sampler.n_levels * mpmath.exp(-(exact**power) / power) - level) * 2**53)
        if not 0 <= height < 2**53:
            continue
        # The height's next digits are 0: it is below the curve, but only just.
        script = Script([(box << 44) | place, height, more, 0], np.random.default_rng(0))
        assert attempt(sampler, 2.0**57, script) == math.floor(2**57 * x + Fraction(1, 2))


@pytest.mark.parametrize("precision", [20, 128])
def test_bounds_of_the_exponential(precision):
    for numerator, bits in [(0, 3), (1, 90), (1, 0), (5, 1), (2**70 + 1, 71), (12345, 6), (88, 1)]:
        low, high = bound_exponential(numerator, bits, precision)
        with mpmath.workdps(80):
            exact = mpmath.exp(-mpmath.mpf(numerator) / 2**bits) * 2**precision
        assert low <= exact <= high
        assert high - low <= 2


@pytest.mark.catches("mechanisms.exact_samplers:toss_coins", "rest > 0 and len(undecided)", "False")
@pytest.mark.parametrize(
    "probability", [0.0, 1.0, 0.5, 1 / 3, 0.1, 2.0**-53, 2.0**-60 + 2.0**-100, 1e-300]
)
def test_coins_have_just_their_probability(probability):
    """53 digits of a uniform number decide, unless they are those of the probability."""
    known, heads, place = [], Fraction(0), Fraction(1)
    while heads < probability:
        following = math.floor((Fraction(probability) - heads) / place * 2**53)
        for number in {0, following - 1, following + 1, 2**53 - 1} - {-1, following, 2**53 + 1}:
            if 0 <= number < 2**53:
                (shown,) = toss_coins(probability, 1, Script([*known, number]))
                assert shown == (number < following)
        known.append(following)
        place /= 2**53
        heads += following * place
    assert heads == Fraction(probability)
    if known and known[-1] < 2**53:
        assert not toss_coins(probability, 1, Script(known))


def test_coins_are_tossed_one_by_one():
    shown = toss_coins(0.3, 1_000_000, Script([], np.random.default_rng(0)))
    # Six standard errors.
    assert abs(shown.mean() - 0.3) < 6 * math.sqrt(0.21 / len(shown))
    assert abs(np.corrcoef(shown[:-1], shown[1:])[0, 1]) < 6e-3
