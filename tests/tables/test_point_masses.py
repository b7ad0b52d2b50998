"""Atoms: values of their own in blocks of weights, drawn exactly, and found from noisy counts."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from skdpgen.tables import Date, Number, Schema
from skdpgen.tables.discovery.counts import (
    ValueCounts,
    read_frequent,
    with_atoms,
    with_candidates,
)
from skdpgen.tables.encoder import TableEncoder
from skdpgen.tables.format import TableFormat

GAIN = Number(0, 100, 0, knots=[0, 10, 100], atoms=[0, -999, 100], missing=True)


def encode(kind, cells):
    return TableEncoder(Schema({"x": kind})).encode(pd.DataFrame({"x": cells}))


def draw(kind, row, n=40_000, seed=0):
    encoder = TableEncoder(Schema({"x": kind}))
    return encoder.draw(np.tile(row, (n, 1)), np.random.RandomState(seed))["x"]


def test_an_atom_has_all_weight_of_the_cells_that_have_it():
    cells = [0, -999, 100, 10, 1, None, 55, 250, -3, -1e9]
    weights = encode(GAIN, cells)
    # Knots at 1, 10 and 99; the atoms; missing values.
    assert_allclose(
        weights,
        [
            [0, 0, 0, 1, 0, 0, 0],
            [0, 0, 0, 0, 1, 0, 0],
            [0, 0, 0, 0, 0, 1, 0],
            [0, 1, 0, 0, 0, 0, 0],
            [1, 0, 0, 0, 0, 0, 0],
            [0, 0, 0, 0, 0, 0, 1],
            [0, 44 / 89, 45 / 89, 0, 0, 0, 0],
            # Beyond a bound that is an atom.
            [0, 0, 0, 0, 0, 1, 0],
            [0, 0, 0, 1, 0, 0, 0],
            [0, 0, 0, 1, 0, 0, 0],
        ],
        atol=1e-12,
    )


def test_cells_are_compared_with_atoms_as_they_are_rounded():
    kind = Number(0, 10, 1, knots=[0, 10], atoms=[-9.9])
    for cells in (np.array([-9.9], np.float32), [-9.88], pd.array([-9.9], "Float64")):
        assert_array_equal(encode(kind, cells), [[0, 0, 1]])
    # Numbers of any decimals have to be equal to the atom.
    assert_array_equal(encode(Number(0, 10, knots=[0, 10], atoms=[-9.9]), [-9.88]), [[1, 0, 0]])


def test_a_number_that_is_an_atom_beyond_a_bound_that_is_one_is_its_own():
    kind = Number(0, 10, 0, knots=[0, 10], atoms=[0, -1])
    assert_array_equal(encode(kind, [-1, 0, -2]), [[0, 0, 0, 1], [0, 0, 1, 0], [0, 0, 1, 0]])


@pytest.mark.parametrize("decimals", [0, 1, None])
def test_shares_and_means_of_atoms_and_of_others_are_those_of_the_weights(decimals):
    atoms = [0, 3, -50]
    kind = Number(-4, 9, decimals, knots=[-4, 0, 5, 9], atoms=atoms)
    encoder = TableEncoder(Schema({"x": kind}))
    rng = np.random.RandomState(0)
    row = rng.dirichlet(np.ones(encoder.n_columns))
    drawn = draw(kind, row)
    n_knots = len(kind.positions)
    for atom, weight in zip(atoms, row[n_knots:], strict=True):
        assert abs((drawn == atom).mean() - weight) < 4.5 * np.sqrt(weight / len(drawn))
    expected = row[:n_knots] @ kind.positions + row[n_knots:] @ atoms
    assert abs(drawn.mean() - expected) < 4.5 * drawn.std() / np.sqrt(len(drawn))
    # So do all weights, encoded again.
    error = np.sqrt(row * (1 - row) / len(drawn))
    assert (np.abs(encode(kind, drawn).mean(axis=0) - row) < 4.5 * error + 1e-9).all()
    others = drawn[~drawn.isin(atoms)]
    assert others.between(-4, 9).all()
    if decimals is not None:
        assert_array_equal(others, others.round(decimals))


def test_atoms_alone_are_drawn_as_they_are():
    kind = Number(0, 1e6, 2, scale="symlog", atoms=[0.07, -999.99, 1e9])
    for position, atom in enumerate(kind.atoms, start=len(kind.positions)):
        row = np.eye(len(kind.positions) + 3)[position]
        assert set(draw(kind, row, 5)) == {atom}
    whole = draw(GAIN, np.eye(7)[4] + np.eye(7)[6], 50)
    assert whole.dtype == "Int64"
    assert set(whole.dropna()) == {-999}
    assert whole.isna().any()


def test_knots_far_out_may_be_left_empty_but_no_atom_is():
    kind = Number(0, 1000, 0, knots=[0, 3, 4, 5, 1000], atoms=[0, 5000], missing=True)
    format = TableFormat(Schema({"x": kind, "y": Number(0, 9, n_knots=9)}))
    spare = format.find_masks()[0]
    # 1, 3, 4, 5, 1000; the atoms; missing values; even knots.
    assert_array_equal(np.flatnonzero(spare), [4, 7])


# Atoms that are found.


def count(kind, values, std=1.0, n_missing=0):
    counts = encode(kind, values).sum(axis=0)
    return ValueCounts(kind, counts, std, len(values) + n_missing)


def smooth(n=20_000):
    return np.random.RandomState(0).randint(0, 1000, n).astype(float)


WIDE = Number(0, 1000, 0, knots=[0, 1, 2, 10, 50, 90, 110, 500, 1000])
CANDIDATES = with_candidates(WIDE, Number(decimals=0))


def test_candidates_are_within_declared_bounds_or_were_found_before():
    assert {0, 1, 9, 77, 100, 999, -7777, 8888888} < set(CANDIDATES.atoms)
    assert 999.9 not in CANDIDATES.atoms
    assert {999.9, 9999.99} < set(Number().candidates)
    found = set(with_candidates(WIDE, Number(0, 1000, 0)).atoms)
    assert {0, 1, 100, 777, 1000} < found
    assert max(found) == 1000
    assert min(found) == 0
    assert -99 in with_candidates(WIDE, Number(decimals=0), [-99]).atoms
    assert with_candidates(WIDE, Number(0, 1000, 0, atoms=[7, -5])).atoms == (7, -5)
    assert with_candidates(WIDE, Number(0, 1000, 0, atoms=[])).atoms is None


@pytest.mark.parametrize("decimals", [0, 2, None])
@pytest.mark.parametrize("atom", [0, 99, 999])
def test_a_value_with_more_than_its_surroundings_is_an_atom(atom, decimals):
    kind = with_candidates(Number(0, 1000, decimals, knots=WIDE.knots), Number(decimals=decimals))
    values = smooth() + (0.123 if decimals is None else 0)
    assert count(kind, values).find_atoms(Number()) == []
    values[:300] = atom
    assert count(kind, values).find_atoms(Number()) == [atom]
    # Unless that may be noise, or is a small share.
    assert count(kind, values, std=150.0).find_atoms(Number()) == []
    assert ValueCounts(kind, count(kind, values).counts, 1.0, 200_000).find_atoms(Number()) == []


def test_a_value_as_frequent_as_those_beside_it_is_none():
    values = np.random.RandomState(0).geometric(0.5, 20_000) - 1.0
    assert (values == 0).mean() > 0.4
    kind = Number(0, 1000, 0, knots=WIDE.knots, atoms=[0, 99])
    assert count(kind, values).find_atoms(Number()) == []
    values[values == 1] = 0
    assert count(kind, values).find_atoms(Number()) == [0]


def test_a_large_point_mass_is_found_where_values_are_dense():
    """A twentieth of the ages, beside values of which each has half as many."""
    values = np.random.RandomState(0).normal(45, 12, 20_000).round()
    kind = Number(0, 1000, 0, knots=WIDE.knots, atoms=[40, 99])
    assert count(kind, values).find_atoms(Number()) == []
    values[:1000] = 40
    assert count(kind, values).find_atoms(Number()) == [40]


def test_frequent_values_are_read_in_units_of_the_column():
    counts = {"5": 9.0, "-3.25": 7.0, "1e300": 6.0, "x": 5.0, "5.0": 4.0, "101": 3.0}
    assert read_frequent(Number(), counts) == [5, -3.25, 101]
    assert read_frequent(Number(0, 100), counts) == [5]
    assert read_frequent(Number(decimals=0), counts) == [5, -3, 101]
    assert type(read_frequent(Number(decimals=0), counts)[0]) is int
    dates = {"2020-01-31": 9.0, "2020-01-01 00:00:00": 8.0, "7": 2.0}
    assert read_frequent(Date(unit="day"), dates) == [18292, 18262]
    assert read_frequent(Date(unit="hour"), dates) == [24 * 18292, 24 * 18262]
    zoned = {"2020-01-31 00:00:00+00:00": 9.0, "2020-01-31": 8.0}
    assert read_frequent(Date(unit="day", zone="UTC"), zoned) == [18292]
    many = {str(i): float(i) for i in range(40)}
    assert read_frequent(Number(), many) == list(range(39, 23, -1))


def test_declared_atoms_are_taken_for_granted():
    assert count(CANDIDATES, smooth()).find_atoms(Number(atoms=[9])) == [9]
    assert count(CANDIDATES, smooth()).find_atoms(Number(atoms=[])) == []


def test_counts_of_what_is_no_atom_go_to_the_knots_around_it():
    values = smooth()
    counted = count(CANDIDATES, values)
    counts, n_values = counted.without([])
    plain = count(WIDE, values)
    assert_array_equal(counted.knots, WIDE.positions)
    # The knots beside 0 and 1 are the values there, as before.
    assert_allclose(counts, plain.counts)
    assert n_values == len(values)
    counts, n_values = counted.without([0])
    assert n_values == len(values) - (values == 0).sum()
    assert_allclose(counts[0], plain.counts[0] - (values == 0).sum())
    assert_allclose(counts[1:], plain.counts[1:])


def test_few_values_all_have_knots_and_no_atoms():
    assert with_atoms(Number(0, 15, 0), [0, -999]).atoms == (-999,)
    # One of 17 has no knot, and so it matters which.
    assert with_atoms(Number(0, 16, 0), [0, -999]).atoms == (0, -999)
    assert with_atoms(Number(0, 9, 0, n_knots=5), [0]).atoms == (0,)
    assert with_atoms(Number(0, 40, 0), [0, -999]).atoms == (0, -999)
    assert with_atoms(Number(0, 1), [0]).atoms == (0,)


HOURS = Number(1, 99, 0, knots=list(range(1, 100)))


def hours(n_shared, n=20_000):
    values = np.random.RandomState(0).randint(1, 100, n)
    values[:n_shared] = 40
    return values


def test_a_value_that_holds_the_share_of_a_knot_is_an_atom_too():
    assert count(HOURS, hours(0)).find_shared(16) == []
    counted = count(HOURS, hours(4000))
    assert counted.find_shared(16) == [40]
    assert type(counted.find_shared(16)[0]) is int
    # A fifth of all is no more than each of four knots has, or than much noise.
    assert counted.find_shared(4) == []
    assert count(HOURS, hours(4000), std=2000.0).find_shared(16) == []
    counts, n_values = counted.without([40])
    assert counts[39] == 0
    assert n_values == counts.sum() == (hours(4000) != 40).sum()


def test_columns_with_a_point_mass_at_a_bound_are_refined():
    """A bound of -1 is no position, since it has a weight of its own, but a knot of the schema."""
    kind = Number(-1, 100, 0, knots=[-1, 20, 100], cuts=[5], atoms=[-1])
    refined = TableEncoder(Schema({"x": kind, "y": Number(0, 1)})).make_blocks()[0].refine(2)
    assert refined.knots[0] == -1
    assert refined.positions[0] == 0
    assert len(refined.positions) == 2 * len(kind.positions) - 1


def test_counts_of_two_releases_are_averaged_by_precision():
    kind = Number(0, 10, 0, knots=[0, 10], atoms=[0])
    once = ValueCounts(kind, np.array([10.0, 20, 30]), 3.0, 60)
    again = ValueCounts(kind, np.array([20.0, 20, 40]), 1.0, 60)
    both = once.average(again)
    assert_allclose(both.counts, [19, 20, 39])
    assert both.std == pytest.approx(0.9**0.5)
    assert both.at_atoms == pytest.approx({0: 39})
