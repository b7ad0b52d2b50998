# SPDX-License-Identifier: BSD-3-Clause
"""Two tables that belong together as one, for reports and scores of a single table."""

from collections.abc import Mapping

import pandas as pd

from ..curator.persons import hash_persons
from ..data.containers import adapt
from ._columns import as_table


def join_histories(tables: Mapping, *, persons: str, order: str | None = None) -> pd.DataFrame:
    """Return persons with their rows as one table, for `report` and other figures of a table.

    Parameters
    ----------
    tables : dict of str to DataFrame
        Synthetic or public tables: that of persons, and that of their rows.
    persons, order : str
        As in `DPHistorySampler.fit`.

    Returns
    -------
    DataFrame
        For each row, its columns, and those of its person, with the names of their tables;
        ``"number"``, its number in the order of its person; and the columns of the row before, as
        ``"previous ..."``, missing in first rows. Rows of nobody are left out.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdpgen.evaluation import join_histories
    >>> patients = pd.DataFrame({"id": [1, 2], "sex": ["f", "m"]})
    >>> visits = pd.DataFrame({"id": [2, 1, 1], "day": [1, 5, 3], "ward": ["A", "B", "C"]})
    >>> tables = {"patients": patients, "visits": visits}
    >>> join_histories(tables, persons="id", order="day").iloc[:, [1, 2, 3, 5]]
      visits.ward  number patients.sex previous visits.ward
    0           C       1            f                  NaN
    1           B       2            f                    C
    2           A       1            m                  NaN
    """
    if not isinstance(tables, Mapping) or len(tables) != 2:
        raise ValueError("tables must be a dict of two tables, of persons and of their rows.")
    name, own = tables
    about, rows = (pd.DataFrame(adapt(table)[0]) for table in tables.values())
    for table, columns in ((about, [persons]), (rows, [persons, *([order] if order else [])])):
        if lacking := [column for column in columns if column not in table]:
            raise ValueError(f"A table has no column {lacking[0]!r}, but {list(table)}.")
    if order:
        rows = rows.assign(**{order: as_table(rows[[order]])[order].array})
    about = about.drop_duplicates(persons).sort_values(persons, ignore_index=True)
    # Identifiers may be numbers in one table and texts in the other, as for fits.
    positions = {key: i for i, key in enumerate(hash_persons(about[persons])) if key is not None}
    hashed = hash_persons(rows[persons])
    keys = [-1 if key is None else positions.get(key, -1) for key in hashed]
    rows = rows.assign(**{persons: keys})
    if len(rows) and max(keys) < 0:
        raise ValueError(f"No row belongs to a person: the {persons!r} of both tables differ.")
    rows = rows[rows[persons] >= 0]
    rows = rows.sort_values([persons, *([order] if order else [])], kind="stable")
    codes = rows.pop(persons).to_numpy()
    about = about.drop(columns=persons).add_prefix(f"{name}.").iloc[codes]
    by_person = rows.add_prefix(f"{own}.").groupby(codes, sort=False)
    numbers = pd.Series(by_person.cumcount() + 1, name="number")
    before = by_person.shift(1).add_prefix("previous ")
    parts = by_person.obj, numbers, about, before
    return pd.concat([part.reset_index(drop=True) for part in parts], axis=1)
