# SPDX-License-Identifier: BSD-3-Clause
"""Choice of a table of a document that describes several."""

from collections.abc import Iterable


def choose_table(names: Iterable[str], table: str | None) -> str:
    """Return the table that is asked for, or the only one.

    Raises
    ------
    ValueError
        If there is no such table, or there are several.
    """
    listed = list(names)
    if table is None and len(listed) == 1:
        return listed[0]
    if not listed:
        raise ValueError("The metadata describes no table.")
    if table is None:
        raise ValueError(
            f"The metadata describes several tables, {listed}; choose one by table=..., or leave "
            "one in the document."
        )
    if table not in listed:
        raise ValueError(f"The metadata has no table {table!r}; it describes {listed}.")
    return table
