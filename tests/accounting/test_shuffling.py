"""Shuffled local releases: the clones bound against its definition, simulation and Theorem 3.1."""

import math
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting import (
    LaplaceDpEvent,
    NonPrivateDpEvent,
    RandomizedResponseDpEvent,
    SelfComposedDpEvent,
)
from scipy import stats

from skdpgen.accounting.shuffling import _clones, _divergence, shuffled_epsilon
from skdpgen.privacy import Certificate


def shuffled_delta(epsilon, local_epsilon, n_records, left_out=1e-12):
    """Return δ at `epsilon` ≥ 0, as `shuffled_epsilon` finds it."""
    epsilon_0 = local_epsilon * (1 + 1e-12)
    return _divergence(epsilon, epsilon_0, *_clones(epsilon_0, n_records, left_out))


def theorem_3_2(epsilon, epsilon_0, n):
    """The divergence of the two pairs of counts, by a sum over all of them in fractions."""
    e, e0 = Fraction(math.exp(epsilon)), Fraction(math.exp(epsilon_0))
    p, w = 1 / e0, e0 / (e0 + 1)
    total = Fraction(0)
    for c in range(n):
        b = [Fraction(math.comb(c, m), 2**c) for m in range(c + 1)]
        one = [w * x + (1 - w) * y for x, y in zip([0, *b], [*b, 0], strict=True)]
        other = [(1 - w) * x + w * y for x, y in zip([0, *b], [*b, 0], strict=True)]
        chance = math.comb(n - 1, c) * p**c * (1 - p) ** (n - 1 - c)
        total += chance * sum(max(0, x - e * y) for x, y in zip(one, other, strict=True))
    return float(total)


@pytest.mark.catches("accounting.shuffling:_clones", "1 - 1e-12", "1 + 1e-3")
@pytest.mark.parametrize("n", [1, 2, 25])
@pytest.mark.parametrize("epsilon_0", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.4, 0.95])
def test_delta_is_that_of_the_theorem(n, epsilon_0, share):
    exact = theorem_3_2(share * epsilon_0, epsilon_0, n)
    delta = shuffled_delta(share * epsilon_0, epsilon_0, n)
    # Never below it.
    assert exact <= delta <= exact * (1 + 1e-6) + 2e-12


@pytest.mark.parametrize("k", [2, 4])
def test_it_bounds_randomised_response(k):
    """Two data sets of n labels that differ in one; of a shuffled answer only counts are seen."""
    n, epsilon_0, epsilon, others = 3, 1.0, 0.2, 1
    keep = math.exp(epsilon_0) / (math.exp(epsilon_0) + k - 1)
    chances = (1 - keep) / (k - 1) + np.eye(k) * (keep - (1 - keep) / (k - 1))

    def law(labels):
        found = {}
        for answers in np.ndindex(*[k] * n):
            chance = math.prod(chances[a, b] for a, b in zip(labels, answers, strict=True))
            key = tuple(np.bincount(answers, minlength=k))
            found[key] = found.get(key, 0) + chance
        return found

    one, other = law([0] + [others] * (n - 1)), law([1] + [others] * (n - 1))
    exact = sum(max(0, one[key] - math.exp(epsilon) * other[key]) for key in one)
    assert 0.3 * exact < exact <= shuffled_delta(epsilon, epsilon_0, n)


@pytest.mark.parametrize(
    ("epsilon_0", "n", "epsilon"),
    [(5, 400_000, 0.1415), (1, 10_000, 0.0531), (2, 100_000, 0.0451), (3, 60_000, 0.1221)],
)
def test_epsilon_is_far_below_theorem_3_1(epsilon_0, n, epsilon):
    found = shuffled_epsilon(epsilon_0, n, 1e-6)
    assert 0.998 * epsilon < found <= epsilon
    assert shuffled_delta(found, epsilon_0, n) == pytest.approx(1e-6, rel=1e-3)
    blanket = math.exp(epsilon_0) / n
    factor = 8 * math.sqrt(blanket * math.log(4 / 1e-6)) + 8 * blanket
    assert found < 0.4 * math.log1p(math.tanh(epsilon_0 / 2) * factor)


@pytest.mark.catches("accounting.shuffling:_clones", "edges[:-1]", "edges[1:] - 1")
def test_groups_of_clones_are_counted_as_the_smallest_of_each():
    """At so many clones that not every number is looked at by itself."""
    epsilon_0, n, epsilon = 1.0, 2_000_000, 0.0035
    law = stats.binom(n - 1, math.exp(-epsilon_0))
    clones = np.arange(law.ppf(1e-15), law.isf(1e-15))
    assert clones.size > 5000
    w, e = 1 / (1 + math.exp(-epsilon_0)), math.exp(epsilon)
    # The best of events A ≥ m, for each number of clones by trying those about the middle.
    best = np.zeros(clones.size)
    share = (w * e - (1 - w)) / ((2 * w - 1) * (1 + e))
    for shift in (-1, 0, 1, 2):
        m = np.floor((clones + 1) * share) + shift
        one = w * stats.binom.sf(m - 2, clones, 0.5) + (1 - w) * stats.binom.sf(m - 1, clones, 0.5)
        two = (1 - w) * stats.binom.sf(m - 2, clones, 0.5) + w * stats.binom.sf(m - 1, clones, 0.5)
        best = np.maximum(best, one - e * two)
    exact = law.pmf(clones) @ best
    assert exact <= shuffled_delta(epsilon, epsilon_0, n) <= 1.01 * exact


def test_limits():
    # Nobody to hide among, or no clones among them.
    assert shuffled_epsilon(1.0, 1, 1e-6) == pytest.approx(1.0, abs=1e-5)
    assert shuffled_epsilon(30.0, 1000, 1e-6) == pytest.approx(30.0, abs=1e-3)
    # Never above what each record costs alone, and less with more records or more noise.
    for epsilon_0 in (1e-6, 0.1, 2.0, 9.0, 700.0):
        costs = [shuffled_epsilon(epsilon_0, n, 1e-6) for n in (1, 10, 10_000, 10**9)]
        assert epsilon_0 >= costs[0] >= costs[1] >= costs[2] >= costs[3] >= 0
    assert shuffled_epsilon(1.0, 1000, 1e-6) < shuffled_epsilon(2.0, 1000, 1e-6)
    assert shuffled_epsilon(0.0, 1000, 1e-6) == 0.0
    assert shuffled_delta(1.0, 1.0 - 1e-9, 50) == 0.0
    plain = Certificate((NonPrivateDpEvent(),), ("rows",), "replace_one", local=True)
    assert plain.shuffled(10**6, 1e-6) == math.inf


# With ε₀: two rows of a ball are twice its radius apart, and e^ε₀ is 1 + k(1 - p)/p for labels.
RANDOMISERS = {
    "Laplace": (LaplaceDpEvent(2 / 1.5), 1.5),
    "twice": (SelfComposedDpEvent(LaplaceDpEvent(2 / 1.25), 2), 2.5),
    "responses": (RandomizedResponseDpEvent(3 / (3 + math.expm1(2.0)), 3), 2.0),
}


@pytest.mark.catches(
    "accounting.certificate:Certificate.shuffled",
    "sum(count * losses[leaf] for leaf, count in leaves.items())",
    "max(count * losses[leaf] for leaf, count in leaves.items())",
    param="Laplace-responses",
)
@pytest.mark.catches(
    "accounting.certificate:Certificate.shuffled",
    "count * losses[leaf]",
    "losses[leaf]",
    param="twice-Laplace",
)
@pytest.mark.parametrize(
    ("first", "second"),
    [("Laplace", "responses"), ("responses", "Laplace"), ("twice", "Laplace"), ("twice", "twice")],
)
def test_all_releases_of_a_record_are_one_randomiser(first, second):
    """It has the sum of their ε₀, and costs more than either of them."""
    n, delta = 10_000, 1e-6
    (one, its_epsilon), (other, other_epsilon) = RANDOMISERS[first], RANDOMISERS[second]
    terms = {"relation": "replace_one", "local": True}
    both = Certificate((one, other), ("rows", "labels"), **terms).shuffled(n, delta)
    assert both == pytest.approx(shuffled_epsilon(its_epsilon + other_epsilon, n, delta), rel=1e-9)
    for event in (one, other):
        assert both > 1.2 * Certificate((event,), ("rows",), **terms).shuffled(n, delta)
