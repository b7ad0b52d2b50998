# SPDX-License-Identifier: BSD-3-Clause
"""Tables in databases, which add up the released tables themselves: one statement a release."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from ..curator.batches import OTHER_ROWS
from ..curator.chunks import Partitions, TableInParts
from ..data.dtypes import read_arrow_table
from ..exceptions import PublicValueError, TableError
from ..mechanisms.two_way import TablesMechanism
from .sql_codes import ColumnCode, write_codes
from .sql_sums import ProductSums


def sql(connection, table: str, dialect: str = "duckdb") -> "Warehouse":
    """Return a table of a database, which computes the sums that a fit releases.

    Rows stay there. Noise is added in this process, to exact sums: those of the same table in
    memory, to the bit, where doubles follow IEEE 754. All columns must be declared by a `Schema`.
    A text is a category as it is written there, up to spaces around it.

    Parameters
    ----------
    connection : object
        A connection of DuckDB; or one of ADBC, of another database.
    table : str
        What stands after ``FROM``: the name of a table or view.
    dialect : str, default="duckdb"
        The dialect of the database, as sqlglot names it, which others than DuckDB need.

    Examples
    --------
    >>> import duckdb
    >>> from skdpgen import DPSWFlowSampler, Number, Schema
    >>> from skdpgen.engines import sql
    >>> connection = duckdb.connect()
    >>> _ = connection.execute("CREATE TABLE ages AS SELECT range % 90 AS age FROM range(5000)")
    >>> schema = Schema({"age": Number(0, 90, n_knots=4)})
    >>> sampler = DPSWFlowSampler(1.0, 1e-6, schema=schema, n_steps=2)
    >>> sampler.fit(sql(connection, "ages")).privacy_.engine
    'duckdb'
    """
    return Warehouse(connection, table, dialect)


class Warehouse(TableInParts, Partitions):
    """A table of a database; see `sql`."""

    has_fixed_dtypes = states_dtypes = True
    assumptions = (
        "the database adds whole numbers exactly, and its arithmetic of doubles errs by less than "
        "10^-7 of each result (IEEE 754: 10^-16)",
        "each row of the table or view is one record, which no join repeats, and all readings give "
        "the same rows",
        "the database sees all rows; its query log and temporary files, with the schema and sums "
        "without noise, are protected like these",
    )

    def __init__(self, connection, table: str, dialect: str):
        self.engine, self._connection, self._table = dialect, connection, table
        if dialect != "duckdb":
            import sqlglot

            self._table = f"({sqlglot.transpile(f'SELECT * FROM {table}', dialect, 'duckdb')[0]})"
        self._codes: list[ColumnCode] = []

    @cached_property
    def types(self):
        """The columns' types, a schema of Arrow."""
        return self._read(f"SELECT * FROM {self._table} AS t LIMIT 0").schema

    @cached_property
    def head(self):
        return read_arrow_table(self.types.empty_table())

    @cached_property
    def n_units(self) -> int:
        """Number of rows."""
        return int(self._fetch(f"SELECT COUNT(*) FROM {self._table} AS t")[0, 0])

    def by_person(self, column):
        raise ValueError(
            "A table of a database has no persons. Give a view with one row of each person, which "
            "follows from the rows of that person alone, and leave persons out."
        )

    def check_fit(self, format, estimator):
        open_names = [n for n, c in format.schema.learned.items() if c.is_open or c.takes_knots]
        if open_names:
            raise ValueError(
                f"A database adds up declared columns only: declare {open_names}, numbers and "
                "dates with bounds and n_knots. skdpgen.privacy.infer_schema of a sample finds "
                "them, at a cost."
            )
        if format.schema.differences:
            raise ValueError(
                f"A database does not add up {list(format.schema.differences)}, of Ordered rules: "
                "leave these out, or give a view with the differences as columns."
            )
        if estimator._find_release(format).name != TablesMechanism.name or estimator.strict:
            raise ValueError(
                "A database adds up two-way tables: leave release at 'sketch', and strict at False."
            )
        self._codes = write_codes(format, self)

    def map_parts(self, read):
        return self, self.n_units, None

    def __call__(self) -> Iterator:
        raise TableError("The rows of a table of a database stay there.")

    def _sum_parts(self, function):
        return [function()]

    def add_products(self, mechanism, half: float) -> np.ndarray:
        """Return the sum of a mechanism over all records; see `ProductMechanism`."""
        sums = ProductSums.of(mechanism, half, self._codes)
        statement = sums.write(self._table)
        rows = self.add_up(lambda: self._fetch(statement))
        rows = rows[np.lexsort(rows.T[::-1])]
        # One statement reads one state of the table: its rows are counted beside their sums.
        if rows[0, 1] != self.n_units:
            raise PublicValueError(OTHER_ROWS)
        return sums.read(rows[1:])

    def translate(self, statement: str) -> str:
        """Return a statement in the dialect of the database."""
        if self.engine == "duckdb":
            return statement
        import sqlglot

        if self.engine != "postgres":
            statement = statement.replace("AS NOT MATERIALIZED", "AS")
        return sqlglot.transpile(statement, "duckdb", self.engine)[0]

    def _read(self, statement):
        """Return the result of a statement, a table of Arrow."""
        if self.engine == "duckdb":
            return self._connection.sql(statement).to_arrow_table()
        with self._connection.cursor() as cursor:
            cursor.execute(self.translate(statement))
            return cursor.fetch_arrow_table()

    def _fetch(self, statement):
        """Return whole numbers that a statement selects, of shape (n_rows, n_columns)."""
        return np.column_stack([c.to_numpy() for c in self._read(statement).columns])
