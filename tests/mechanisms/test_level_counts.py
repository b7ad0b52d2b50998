# SPDX-License-Identifier: BSD-3-Clause
"""Counts of levels from codes are the sums of encoded rows, and keep their bound."""

import math

import numpy as np
import pytest
import torch
from dp_accounting import GaussianDpEvent

from skdpgen.mechanisms.base import GRID_BITS
from skdpgen.mechanisms.codes import HatBasis
from skdpgen.mechanisms.sums import LevelCountsMechanism, WeightSumMechanism

from .common import Blocks

SIZES = (7, 2, 30)


def measure(mechanism, rows):
    """Return the sum without noise, in units of the grid."""
    return mechanism.query(Blocks(*rows.split(100)), GaussianDpEvent(1.0), "zero_out", None).exact


def draw_codes(n_rows=350):
    generator = torch.Generator().manual_seed(0)
    draws = torch.rand(n_rows, len(SIZES), dtype=torch.float64, generator=generator)
    codes = draws * (torch.tensor(SIZES) - 1)
    # Also codes of levels, and beyond the last one.
    codes[:50] = codes[:50].round()
    codes[50:60] += 40
    return codes


@pytest.mark.catches(
    "mechanisms.sums:LevelCountsMechanism._add_up",
    "weights / math.sqrt(len(self.sizes))",
    "weights",
)
def test_sums_are_those_of_encoded_rows():
    codes = draw_codes()
    rows = HatBasis(codes, SIZES).to_dense() / math.sqrt(len(SIZES))
    expected = measure(WeightSumMechanism("weights"), rows)
    np.testing.assert_array_equal(measure(LevelCountsMechanism("weights", SIZES), codes), expected)


@pytest.mark.catches(
    "mechanisms.sums:LevelCountsMechanism._add_up",
    "to_grid(weights / math.sqrt(len(self.sizes)), scale).long()",
    "(weights / math.sqrt(len(self.sizes)) * scale).round().long()",
)
def test_no_record_adds_more_than_its_bound():
    mechanism, most = LevelCountsMechanism("weights", SIZES), 0.0
    for record in draw_codes():
        total = measure(mechanism, record[None])
        assert (total >= 0).all()
        most = max(most, np.linalg.norm(total))
    assert 0.999 * 2.0**GRID_BITS < most <= 2.0**GRID_BITS


@pytest.mark.catches(
    "mechanisms.sums:LevelCountsMechanism._add_up",
    "self.places[levels.flatten().cpu()] % len(total)",
    "self.places[levels.flatten().cpu()].clamp(min=0)",
)
def test_levels_share_counts_within_a_column():
    """Two levels of the last column are one, and one of the first column is not counted."""
    codes, (first, second, _) = draw_codes(), SIZES
    places = [*range(first - 1), -1, *range(first - 1, sum(SIZES) - 2), first - 1 + second]
    rows = HatBasis(codes, SIZES).to_dense().split(SIZES, dim=1)
    rows[2][:, 0] += rows[2][:, -1]
    merged = torch.cat([rows[0][:, :-1], rows[1], rows[2][:, :-1]], 1) / math.sqrt(len(SIZES))
    expected = measure(WeightSumMechanism("weights"), merged)
    found = measure(LevelCountsMechanism("weights", SIZES, places), codes)
    # A weight at each of two levels is rounded twice.
    np.testing.assert_allclose(found, expected, atol=len(codes))


@pytest.mark.catches(
    "mechanisms.sums:LevelCountsMechanism.__init__",
    "sum(map(len, counted)) > len(set().union(*counted))",
    "False",
)
def test_columns_share_no_counts():
    """A record could add more than 1 to a count of two columns."""
    with pytest.raises(ValueError, match="different columns"):
        LevelCountsMechanism("weights", [2, 2], [0, 1, 1, -1])


def test_columns_of_one_level_count_records():
    codes = torch.zeros(12, 1, dtype=torch.float64)
    counted = measure(LevelCountsMechanism("records", [1]), codes) / 2.0**GRID_BITS
    np.testing.assert_allclose(counted, [12], rtol=1e-4)
