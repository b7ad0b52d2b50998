"""Products that are exact: whatever the order, the company and the place of a row."""

from fractions import Fraction

import numpy as np
import pytest
import torch

from skdpgen.transport import ExactMatrix
from skdpgen.transport.harmonics import N_STEPS, _table_of_sines


@pytest.mark.parametrize("d", [1, 5, 784])
@pytest.mark.parametrize("unit", [1e-30, 1.0, 1e12])
def test_products_are_close(d, unit):
    generator = torch.Generator().manual_seed(d)
    matrix = unit * torch.randn(d, 30, dtype=torch.float64, generator=generator)
    rows = torch.randn(50, d, dtype=torch.float64, generator=generator) * torch.logspace(
        -9, 9, 50, dtype=torch.float64
    ).unsqueeze(1)
    found, exact = ExactMatrix(matrix).times(rows), rows @ matrix
    largest = rows.abs().amax(1, keepdim=True) * matrix.abs().sum(0).max()
    # Rows to 2^-24 of their largest number, columns to 2^-28 of the largest sum.
    assert ((found - exact).abs() <= largest * 1.01 * (2.0**-24 + d * 2.0**-28)).all()
    assert not ExactMatrix(matrix).times(torch.zeros(2, d)).any()


@pytest.mark.catches("transport.products", "24, 28", "28, 30")
@pytest.mark.parametrize("worst", [False, True])
def test_products_are_those_of_whole_numbers(worst):
    """No sum is rounded, even where all terms have the same sign and are as large as can be."""
    generator, d = torch.Generator().manual_seed(0), 333
    matrix = torch.rand(d, 4, dtype=torch.float64, generator=generator)
    rows = torch.rand(6, d, dtype=torch.float64, generator=generator)
    if worst:
        matrix, rows = torch.full_like(matrix, 1.0), torch.full_like(rows, 1 - 2.0**-25)
        matrix[0] = 179.0  # columns add up to 511, just below a power of 2
    exact = ExactMatrix(matrix)
    found, whole = exact.times(rows), exact._whole.long().tolist()
    for i, row in enumerate(rows.tolist()):
        step = Fraction(2) ** (np.frexp(max(row))[1].item() - 24)
        numbers = [round(Fraction(value) / step) for value in row]
        for j in range(4):
            total = sum(a * b[j] for a, b in zip(numbers, whole, strict=True))
            assert abs(total) < 2**53
            assert Fraction(found[i, j].item()) == total * step * Fraction(exact._step)


@pytest.mark.catches(
    "transport.products:ExactMatrix.times",
    "rows.abs().amax(1, keepdim=True)",
    "rows.abs().amax().reshape(1, 1)",
)
def test_a_product_follows_from_its_row_alone():
    exact = ExactMatrix(torch.randn(5, 8, generator=torch.Generator().manual_seed(0)))
    rows = torch.randn(9, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    rows *= 10.0 ** torch.arange(-4, 5)[:, None]
    for i in range(9):
        assert torch.equal(exact.times(rows[i : i + 1])[0], exact.times(rows)[i])


def test_the_table_of_sines_is_the_same_everywhere():
    """No sine is so close to the middle of two table entries that its last digits would matter."""
    steps = torch.arange(N_STEPS // 4 + 1, dtype=torch.float64)
    sines = (steps * (2 * torch.pi / N_STEPS)).sin() * 2.0**30
    assert ((sines - sines.floor() - 0.5).abs() > 2.0**-20).all()
    table = _table_of_sines(torch.device("cpu"))
    assert table.shape == (N_STEPS * 5 // 4,)
    angles = np.arange(N_STEPS * 5 // 4) * (2 * np.pi / N_STEPS)
    assert np.abs(table.numpy() - np.sin(angles)).max() <= 2.0**-31 + 1e-15
    # Cosines are sines of a quarter more: no point is further than 2^-30 from the circle.
    radius = torch.hypot(table[:N_STEPS], table[N_STEPS // 4 :])
    assert (radius - 1).abs().max() < 2.0**-30
