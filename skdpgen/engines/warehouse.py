# SPDX-License-Identifier: BSD-3-Clause
"""Tables in databases, which add up the released tables themselves: one statement a release."""

from functools import cached_property

import numpy as np

from ..curator.batches import OTHER_ROWS
from ..curator.chunks import Partitions, TableInParts
from ..data.dtypes import read_arrow_table
from ..exceptions import PublicValueError, TableError
from ..mechanisms.two_way import TablesMechanism
from .sql_codes import ColumnCode, write_codes
from .sql_sums import write_sum


def sql(connection, table: str, dialect: str = "duckdb") -> "Warehouse":
    """Return a table of a database, which computes the sums that a fit releases.

    Rows stay there. Noise is added in this process, to exact sums: those of the same table in
    memory, to the bit, where doubles follow IEEE 754. A `Schema` must declare all columns. Texts
    are categories as they are written.

    Parameters
    ----------
    connection : object
        A connection of DuckDB or, of another database, one of ADBC.
    table : str
        The name of a table or view, as after ``FROM``.
    dialect : str, default="duckdb"
        The database as sqlglot names it, which others than DuckDB need.

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
            self._table = f"({_translate(f'SELECT * FROM {table}', dialect, 'duckdb')})"
        self._codes: list[ColumnCode] = []

    @cached_property
    def types(self):
        """The types of the columns, a schema of Arrow."""
        statement = f"SELECT * FROM {self._table} AS t LIMIT 0"
        if self.engine == "duckdb":
            return self._connection.sql(statement).to_arrow_table().schema
        return self._execute(statement).fetch_arrow_table().schema

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
        is_two_way = estimator._find_release(format).name == TablesMechanism.name
        if not is_two_way or estimator.strict or format.schema.differences:
            raise ValueError(
                "A database adds up tables of columns: leave release at 'sketch', strict at False, "
                "and Ordered rules out, or give a view with the differences as columns."
            )
        names = [n for n, c in format.schema.learned.items() if c.is_open or c.takes_knots]
        if names:
            raise ValueError(
                f"A database adds up declared columns only: declare {names}, numbers and dates "
                "with bounds and n_knots=16. skdpgen.privacy.infer_schema infers them, at a cost."
            )
        self._codes = write_codes(format, self)

    def map_parts(self, read):
        return self, self.n_units, None

    def __call__(self):
        raise TableError("The rows of a table of a database stay there.")

    def _sum_parts(self, function):
        return [function()]

    def add_products(self, mechanism, half: float) -> np.ndarray:
        """Return the sum of a mechanism over all records; see `ProductMechanism`."""
        statement, read = write_sum(mechanism, half, self._codes, f"{self._table} AS t")
        rows = self.add_up(lambda: self._fetch(statement))
        rows = rows[np.lexsort(rows.T[::-1])]
        # One statement reads one state of the table: its rows are counted beside their sums.
        if rows[0, 1] != self.n_units:
            raise PublicValueError(OTHER_ROWS)
        return read(rows[1:])

    def _execute(self, statement):
        """Return what holds the result of a statement."""
        if self.engine == "duckdb":
            return self._connection.execute(statement)
        cursor = self._connection.cursor()
        if self.engine != "postgres":
            statement = statement.replace(" AS NOT MATERIALIZED", " AS")
        cursor.execute(_translate(statement, "duckdb", self.engine))
        return cursor

    def _fetch(self, statement):
        """Return the whole numbers that a statement selects, of shape (n_rows, n_columns)."""
        return np.array(self._execute(statement).fetchall(), dtype=np.int64)


def _translate(statement, given, wanted):
    import sqlglot

    return sqlglot.transpile(statement, given, wanted)[0]
