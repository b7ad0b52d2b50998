# SPDX-License-Identifier: BSD-3-Clause
"""Halves of the records by a numeric target: their codes, and the cells that they leave out."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import norm

from skdpgen import DPSWFlowSampler, Number, Schema
from skdpgen.learners import interactions
from skdpgen.learners.marginals import Marginals
from skdpgen.learners.table_targets import TablesTarget
from skdpgen.learners.tables import fit_to_release
from skdpgen.mechanisms.codes import HatBasis
from skdpgen.mechanisms.two_way import Tables
from skdpgen.releases import from_release
from skdpgen.tables.encoder import TableEncoder
from skdpgen.tables.format import TableFormat
from skdpgen.tables.layout import TableLayout
from skdpgen.tables.strata import Halves, may_stratify, strata_pay

KNOTS = [0.0, 1.0, 3.0, 7.0, 10.0]
KINDS = {
    "odd": Number(0, 10, knots=KNOTS),
    "even": Number(1, 10, knots=KNOTS[1:], cuts=[2.0]),
    "atoms": Number(0, 10, knots=KNOTS, atoms=[-9.0, 2.0, 3.0, 99.0]),
    "three": Number(0, 10, knots=[0.0, 3.0, 10.0]),
}


def encode(kind, numbers):
    """Return the halves of numbers, and the weights of their levels."""
    block = TableEncoder(Schema({"t": kind})).make_blocks()[0]
    halves = Halves.of(0, block)
    codes = block.encode_cells(pd.Series(numbers), strict=False)
    basis = HatBasis(torch.from_numpy(codes[:, None]), [len(halves.is_upper)])
    return halves, halves.append(codes[:, None]), basis.to_dense().numpy()


@pytest.mark.parametrize("name", KINDS)
def test_halves_are_of_numbers_below_the_middle_knot_and_from_it_on(name):
    kind = KINDS[name]
    numbers = np.r_[np.linspace(0, 10, 101), list(kind.atoms or ())]
    _, codes, _ = encode(kind, numbers)
    middle = kind.positions[len(kind.positions) // 2]
    np.testing.assert_array_equal(codes[:, 1], numbers >= middle)


@pytest.mark.parametrize("name", KINDS)
def test_halves_leave_out_exactly_the_levels_that_none_of_their_records_has(name):
    numbers = np.r_[np.linspace(-1, 11, 1201), list(KINDS[name].atoms or ())]
    halves, codes, weights = encode(KINDS[name], numbers)
    n = len(halves.is_upper)
    extended = halves.extend(np.zeros((n, n), dtype=bool))
    np.testing.assert_array_equal(extended, extended.T)
    assert not extended[:n, :n].any()
    assert not extended[n:, n:].any()
    for half in (0, 1):
        has = weights[codes[:, 1] == half].sum(0) > 0
        np.testing.assert_array_equal(extended[n + half, :n], ~has)


def test_rows_without_a_target_are_in_no_half():
    halves = Halves(1, slice(2, 5), np.array([False, True, True]))
    codes = halves.append(np.array([[0.0, np.nan], [1.0, 0.9], [np.nan, 1.0]]))
    np.testing.assert_array_equal(codes[:, 2], [np.nan, 0, 1])


def test_halves_stand_after_the_impossible_pairs_of_rules():
    impossible = np.arange(25).reshape(5, 5) % 2 == 0
    extended = Halves(1, slice(2, 5), np.array([False, True, True])).extend(impossible)
    np.testing.assert_array_equal(extended[:5, :5], impossible)
    np.testing.assert_array_equal(extended[5], [False, False, False, False, True, False, False])
    np.testing.assert_array_equal(extended[6], [False, False, True, False, False, False, False])


def test_targets_with_halves():
    numbers = {"inferred": KINDS["odd"], "even": Number(0, 10), "two": Number(0, 1, knots=[0, 1])}
    assert [kind.has_halves for kind in numbers.values()] == [True, False, False]
    assert not Number().has_halves
    assert [may_stratify(KINDS, kind) for kind in numbers.values()] == [True, True, False]
    assert not any(kind.may_be_class for kind in numbers.values())
    assert not may_stratify({"t": KINDS["odd"]}, KINDS["odd"])


@pytest.mark.parametrize(
    ("sizes", "sigma", "n_records", "pays"),
    [
        ([9] * 617 + [3], 5.0, 10, True),
        ([8] * 7 + [10], 4.4, 7152, True),
        ([8] * 7 + [10], 4.4, 300, False),
        ([9] * 64 + [10], 4.9, 1347, True),
        ([9] * 617 + [26], 5.0, 1170, False),
        # No noise, but too much memory.
        ([9] * 617 + [26], 0.0, 1170, False),
    ],
)
def test_strata_pay_where_levels_show_above_noise(sizes, sigma, n_records, pays):
    assert strata_pay(sizes, len(sizes) - 1, sigma, n_records) == pays
    assert strata_pay([sizes[-1], *sizes[:-1]], 0, sigma, n_records) == pays


def test_columns_of_codes():
    schema = Schema({"t": KINDS["odd"], "a": Number(0, 1, n_knots=2)})
    for label, sizes, by in (("t", [5, 2, 2], 2), ("a", [5, 2], None)):
        format = TableFormat(schema, TableLayout(("t", "a"), {}, label))
        assert (format.code_sizes, format.by) == (sizes, by)
        codes = format.encode_codes(np.array([[1.0, 0.5], [5.0, 0.0]], dtype=object))
        np.testing.assert_array_equal(
            codes[:, 2:], [[0], [1]][: len(codes)] if by else codes[:, 2:]
        )


def make_product(n=6000):
    """Two numbers, and a target that is their product, and so uncorrelated with either."""
    rng = np.random.default_rng(0)
    a, b = rng.uniform(-1, 1, (2, n))
    return pd.DataFrame({"a": a, "b": b, "t": a * b + 0.05 * rng.normal(size=n)})


@pytest.fixture(scope="module")
def fitted():
    sampler = DPSWFlowSampler(20.0, 1e-5, release="pairs", random_state=0, n_steps=300)
    return sampler.fit(make_product(), target="t")


def test_pairs_of_each_half_are_learnt(fitted):
    made = fitted.sample(6000)
    assert np.corrcoef(made["a"] * made["b"], made["t"])[0, 1] > 0.6


def test_tables_of_both_halves_are_those_of_all_records(monkeypatch):
    seen, table = [], make_product()

    def fit(make_rows, tables, *args, **params):
        seen.append(tables)
        return fit_to_release(make_rows, tables, *args, **params)

    monkeypatch.setattr(interactions, "fit_to_release", fit)
    sampler = DPSWFlowSampler(20.0, 1e-5, release="pairs", random_state=0, n_steps=1)
    fitted, tables = sampler.fit(table, target="t"), seen[0]
    assert tables.by is None
    counts, std = tables.count_records()
    assert np.all(np.abs(counts - 3000) < 300 + 5 * std)
    assert counts.sum() == pytest.approx(len(table), abs=8 * std)
    block = dict(fitted._format.blocks)["t"]
    halves = tables.columns[:, block] != 0
    # Both have weight on the middle knot, and on no other.
    assert halves.sum(0).tolist().count(2) == 1
    assert (halves.sum(0) >= 1).all()


def test_levels_that_a_half_leaves_out_have_neither_noise_nor_records():
    cells = np.array([[5.0, 3.0], [0.0, 0.0], [2.0, 4.0]])
    tables = Tables((3, 2), cells.ravel(), np.array([8.0, 0.0, 6.0, 7.0, 7.0]), 1.0, 2.0, 3.0)
    target = TablesTarget.of(tables, 10.0, 1.0, torch.device("cpu"))
    assert target.noise_energy == pytest.approx((2 * 2**2 * 4 + 3**2 * 4) / 10**2)
    marginals = Marginals.of(tables, 10.0, False, True)
    assert marginals.starts[1] == 0
    assert (marginals.starts[[0, 2]] > 0).all()


def test_numbers_far_out_have_their_share_or_nothing_where_they_are_noise():
    """A level of all records, such as 99,999 for rich ones, may have noise alone in a stratum."""
    columns = np.array([[40.0, 3, 300, 8], [20, 3, 12, 8]])
    tables = Tables((4,), np.empty((2, 0)), columns, 1.0, 4.0, 4.0)
    is_far = np.array([False, False, True, True])
    pooled = Marginals.of(tables, 400.0, False, ~is_far, is_far)
    found = [pooled.of_stratum(tables.stratum(i), None, n) for i, n in enumerate((300, 100))]
    for i, n in enumerate((300, 100)):
        share = columns.sum(0) * n / 400
        chances = norm.pdf(columns[i], share, 4) * 0.75, norm.pdf(columns[i], 0, 4) * 0.25
        expected = share * chances[0] / sum(chances)
        is_noise = is_far & (columns[i] <= 12)
        np.testing.assert_allclose(found[i].counts, np.where(is_noise, expected, columns[i]))
    # Neither half of 78 nor 12, but nothing; and a part of 4.
    assert found[1].counts[2] < 0.1 < 2 < found[1].counts[3] < 4


def test_columns_far_out():
    kinds = {
        "t": Number(0, 999, knots=[0, 1, 2, 3, 999], atoms=[2.5, 4.6, -1, 99]),
        "a": Number(0, 3, knots=[0, 1, 2, 3]),
    }
    far = TableFormat(Schema(kinds)).find_masks()[2]
    np.testing.assert_array_equal(far, [0, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0])


def test_halves_are_published(fitted, tmp_path):
    fitted.release_.to_file(tmp_path / "release")
    again = from_release(tmp_path / "release", DPSWFlowSampler(random_state=0, n_steps=300))
    pd.testing.assert_frame_equal(again.sample(50), fitted.sample(50))
