"""Numbers and dates of columns of any dtype: each cell is read alike, whatever is beside it."""

import datetime
import decimal
import itertools

import numpy as np
import pandas as pd
import pytest

from skdpgen.tables.columns.cells import read_date, read_dates, read_numbers

VIENNA = datetime.timezone(datetime.timedelta(hours=1))
CELLS = [
    7,
    0.5,
    2**70,
    10**400,
    True,
    np.int8(3),
    np.float32(0.1),
    np.timedelta64(5, "s"),
    decimal.Decimal("0.1"),
    decimal.Decimal("sNaN"),
    float("inf"),
    float("nan"),
    None,
    pd.NA,
    pd.NaT,
    "7",
    "2020-01-01",
    [1, 2],
    datetime.date(2020, 1, 2),
    datetime.datetime(2020, 1, 2, 3, 4, 5, 999_999),
    datetime.datetime(1850, 1, 2, 3, 4, 5, 999_999),
    datetime.datetime(9999, 12, 31),
    datetime.datetime(2020, 1, 2, 3, 4, 5, tzinfo=VIENNA),
    pd.Timestamp("2020-01-02T03:04:05.999999999"),
    pd.Timestamp("1960-01-02T03:04:05.9", tz="Europe/Vienna"),
    np.datetime64("1969-12-31T23:59:59.7"),
]


def column_of(*cells):
    column = np.empty(len(cells), dtype=object)
    column[:] = [None] * len(cells)
    for i, cell in enumerate(cells):
        column[i] = cell
    return pd.Series(column, dtype=object)


@pytest.mark.parametrize(
    "read",
    [read_numbers, read_dates, lambda column: read_dates(column, "Europe/Vienna")],
    ids=["numbers", "dates", "dates in a zone"],
)
def test_a_cell_is_read_alike_beside_any_other(read):
    def read_first(*cells):
        present, values = read(column_of(*cells))
        return values[0].tobytes() if present[0] else None

    for cell, other in itertools.product(CELLS, repeat=2):
        assert read_first(cell, other) == read_first(cell), (cell, other)
        # All cells of most columns are of one kind.
        assert read_first(cell, cell, cell) == read_first(cell), cell


@pytest.mark.parametrize("microsecond", [0, 1, 500_700, 999_999])
@pytest.mark.parametrize("year", [1, 1850, 1969, 1970, 2020, 9999])
def test_dates_are_rounded_down(year, microsecond):
    date = datetime.datetime(year, 12, 31, 23, 59, 59, microsecond)
    assert read_date(date) == np.datetime64(date, "us")
    columns = [column_of(*cells) for cells in ([date], [date, "x"], [date, date.date()])]
    columns.append(pd.Series(np.array([date], dtype="M8[us]")))
    for column in columns:
        thousands = np.datetime64(date.replace(microsecond=microsecond // 1000 * 1000), "ms")
        assert read_dates(column)[1][0] == thousands
        assert read_dates(column, unit="s")[1][0] == np.datetime64(date.replace(microsecond=0))
