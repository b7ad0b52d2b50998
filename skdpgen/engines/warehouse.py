# SPDX-License-Identifier: BSD-3-Clause
"""Tables in databases, which add up the released tables themselves: one statement a release."""

import copy
import itertools
import math
import threading
from functools import cached_property

import numpy as np

from .._process.forking import in_forked_children
from ..curator.batches import OTHER_ROWS
from ..curator.chunks import Partitions, TableInParts
from ..data.dtypes import read_arrow_table
from ..exceptions import PublicValueError, TableError
from ..mechanisms.base import MARGIN
from ..mechanisms.codes import Refinement
from ..mechanisms.two_way import TablesMechanism, select_cells
from .sql_codes import write_codes, write_double

# The level and the fraction of a code, as of `HatBasis`.
_LEVEL = "CAST(FLOOR(r{0}) AS INTEGER) AS l{0}, r{0} - FLOOR(r{0}) AS f{0}"
# Sums in a row of a result: databases limit its columns.
_MOST_SUMS = 1_000
# A connection serves one thread at a time, and threads may share it.
_LOCK = threading.Lock()
in_forked_children(lambda: globals().update(_LOCK=threading.Lock()))


class Warehouse(TableInParts, Partitions):
    """A table of a database, which computes the sums that a fit releases; `sql` is short for it.

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

    has_fixed_dtypes = states_dtypes = True
    assumptions = (
        "the database adds whole numbers exactly, and errs on doubles by at most 10^-7 of a result",
        "each row of the table is one record, which no join repeats, in all readings",
        "the database sees all rows; its query log and temporary files, with the schema and sums "
        "without noise, are protected like these",
    )

    def __init__(self, connection, table: str, dialect: str = "duckdb"):
        self.engine, self._connection, self._table = dialect, connection, table
        if dialect != "duckdb":
            self._table = f"({_translate(f'SELECT * FROM {table}', dialect, 'duckdb')})"

    @cached_property
    def types(self):
        """The columns' types, a schema of Arrow."""
        read = "to_arrow_table" if self.engine == "duckdb" else "fetch_arrow_table"
        statement = f"SELECT * FROM {self._table} AS t LIMIT 0"
        return self._fetch(statement, lambda result: getattr(result, read)().schema)

    @cached_property
    def head(self):
        return read_arrow_table(self.types.empty_table())

    @cached_property
    def n_units(self) -> int:
        return int(self._fetch(f"SELECT COUNT(*) FROM {self._table} AS t")[0, 0])

    def by_person(self, column):
        raise ValueError("A database adds up rows: for persons give a view of one row of each.")

    def check_fit(self, format, estimator):
        is_two_way = estimator._find_release(format).name == TablesMechanism.name
        if not is_two_way or estimator.strict or format.schema.differences:
            raise ValueError("A database adds up tables: leave out release, strict, Ordered rules.")
        names = [n for n, c in format.schema.learned.items() if c.is_open or c.takes_knots]
        if names:
            raise ValueError(
                f"A database infers nothing: declare {names}, numbers and dates with n_knots=16."
            )
        # Fits share no state: rows may come between them.
        table = copy.copy(self)
        vars(table).pop("n_units", None)
        table._codes = write_codes(format, self)
        # What the database cannot do fails here, on no rows, before it is paid for.
        table._add_up(TablesMechanism((1,) * len(table._codes[:2])), 1.0, " LIMIT 0")
        return table

    def map_parts(self, read):
        return self, self.n_units, None

    def __call__(self):
        raise TableError("The rows of a table of a database stay there.")

    def _sum_parts(self, function):
        return [function()]

    def add_products(self, mechanism, half: float) -> np.ndarray:
        """Return the sum of a mechanism over all records; see `ProductMechanism`."""
        n_rows, total = self._add_up(mechanism, half)
        # One statement reads one state of the table: its rows are counted beside their sums.
        if n_rows != self.n_units:
            raise PublicValueError(OTHER_ROWS)
        return total

    def _add_up(self, mechanism, half, limit=""):
        table = f"(SELECT * FROM {self._table} AS t{limit}) AS t"
        # Words that other databases do not know.
        hint = "NOT MATERIALIZED " if self.engine in ("duckdb", "postgres") else ""
        statement, read = _write_sum(mechanism, half, self._codes, table, hint)
        rows = self._fetch(statement)
        rows = rows[np.lexsort(rows.T[::-1])]
        return rows[0, 1], read(rows[1:])

    def _fetch(self, statement, read=None):
        """Return the whole numbers that a statement selects, or what is read of its result.

        Messages of the database's errors are withheld.
        """

        def fetch():
            with _LOCK:
                if self.engine == "duckdb":
                    # `execute` would keep the result in the connection, where others replace it.
                    result = self._connection.sql(statement)
                else:
                    result = self._connection.cursor()
                    result.execute(_translate(statement, "duckdb", self.engine))
                return read(result) if read else np.array(result.fetchall(), dtype=np.int64)

        return self.add_up(fetch)


sql = Warehouse


def _translate(statement, given, wanted):
    import sqlglot

    return sqlglot.transpile(statement, given, wanted)[0]


# Statements, in the dialect of DuckDB. Operations on doubles are those of the mechanisms, in order.


def _write_sum(mechanism, half, columns, table, hint):
    """Return the statement of the sum of a mechanism, and what reads its rows of the result.

    The sorted result begins with a row of -1 and the number of rows of the table.
    """
    numbered = list(enumerate(columns))
    bins = getattr(mechanism, "refinement", Refinement.none([1] * len(columns)))
    write = _write_two_way if isinstance(mechanism, TablesMechanism) else _write_multi_way
    factors, selects, read = write(mechanism, half, len(columns))
    # A select computes few codes, but asks for all whether the record has one.
    present = " AND ".join(column.present for column in columns)
    views = (
        ("cells", table, [f"{column.cell} AS x{i}" for i, column in numbered]),
        ("codes", f"cells WHERE {present}", [f"{column.code} AS c{i}" for i, column in numbered]),
        ("refined", "codes", [f"{_refine(i, bins)} AS r{i}" for i, _ in numbered]),
        ("levels", "refined", [_LEVEL.format(i) for i, _ in numbered]),
        ("factors", "levels", factors),
    )
    written = ", ".join(
        f"{name} AS {hint}(SELECT {', '.join(selected)} FROM {source})"
        for name, source, selected in views
    )
    selects = [(["-1", "COUNT(*)"], table), *((sums, f"factors{by}") for sums, by in selects)]
    width = max(len(sums) for sums, _ in selects)
    union = " UNION ALL ".join(
        f"SELECT {', '.join([*sums, *['0'] * (width - len(sums))])} FROM {source}"
        for sums, source in selects
    )
    return f"WITH {written} {union}", read


def _refine(i, bins):
    """Return a code among bins; see `Refinement.refine`."""
    n_knots, n_bins = bins.n_knots[i], bins.n_bins[i]
    inner = f"LEAST(FLOOR(c{i} * {bins.n_parts[i]}), {n_bins - 1})"
    outer = f"c{i} - {n_knots} + {n_bins}"
    return f"CASE WHEN c{i} <= {n_knots - 1} THEN {inner} ELSE {outer} END" if n_bins else f"c{i}"


def _write_two_way(mechanism, half, n_columns):
    """Return the weights of levels, a ``GROUP BY`` for each table, and the reader.

    A row of the result has the number of a table, two levels, that of the strata, and the sums of
    products of the weights of these levels and of the next ones.
    """
    kept, sizes, n = mechanism.kept, mechanism.sizes, sum(mechanism.sizes)
    scale = write_double(half / math.sqrt(mechanism.records) * (1 - MARGIN))
    factors = [
        f"l{i}, CAST(FLOOR((1 - f{i}) * {scale}) AS BIGINT) AS a{i}, "
        f"CAST(FLOOR(f{i} * {scale}) AS BIGINT) AS b{i}"
        for i in range(n_columns)
    ]
    tables, selects = [(c,) for c in kept] + list(itertools.combinations(kept, 2)), []
    strata = [f"l{c}" for c in range(n_columns) if c not in kept]
    for number, table in enumerate(tables):
        levels = [f"l{c}" for c in table]
        products = map(" * ".join, itertools.product(*((f"a{c}", f"b{c}") for c in table)))
        keys = [str(number), *levels, *["0"] * (2 - len(levels)), *(strata or ["0"])]
        sums = [f"CAST(SUM({product}) AS BIGINT)" for product in products]
        selects.append((keys + sums, f" GROUP BY {', '.join(levels + strata)}"))

    def read(rows):
        starts = dict(zip(kept, np.cumsum([0, *sizes]).tolist(), strict=False))
        n_strata = 1 if mechanism.by is None else mechanism.by.stop - mechanism.by.start
        # The last column is that of one-way tables. Sums beyond a last level are 0.
        total = np.zeros((n_strata, n + 1, n + 1), dtype=np.int64)
        for number, (column, *others) in enumerate(tables):
            _, first, second, stratum, *sums = rows[rows[:, 0] == number].T
            at = starts[others[0]] if others else n
            following = itertools.product((0, 1), repeat=1 + len(others))
            for (i, *j), found in zip(following, sums, strict=False):
                np.add.at(total, (stratum, starts[column] + first + i, at + second + sum(j)), found)
        one_way = total[:, :n, n] * mechanism.find_one_way(half)
        cells = np.hstack([select_cells(total[:, :n, :n], sizes), one_way])
        return cells[0] if mechanism.by is None else cells

    return factors, selects, read


def _write_multi_way(mechanism, half, n_columns):
    """Return the weights of groups of levels, the sum of each cell, and the reader."""
    names: dict = {}
    factors, sums, scale = [], [], write_double(half * (1 - MARGIN))
    divisor = write_double(math.sqrt(len(mechanism.products)))
    for c, groups in itertools.chain(*mechanism.products):
        if (c, id(groups)) not in names:
            names[c, id(groups)] = [f"m{len(factors) + g}" for g in range(groups.shape[1])]
            for signs in groups.int().T.tolist():
                # As `HatBasis.join`; the last level has no next one.
                weights = enumerate(itertools.pairwise([*signs, 0]))
                cases = " ".join(
                    f"WHEN {i} THEN {s} * (1 - f{c}) + {t} * f{c}" for i, (s, t) in weights
                )
                factors.append(f"CASE l{c} {cases} END AS m{len(factors)}")
    for product in mechanism.products:
        middle = (len(product) + 1) // 2
        for cell in itertools.product(*(names[c, id(groups)] for c, groups in product)):
            left, right = (" * ".join(part) for part in (cell[:middle], cell[middle:]))
            parts = f"{left} / {divisor} * {scale}", f"{right} * {scale}"
            whole = " * ".join(f"CAST(TRUNC({part}) AS BIGINT)" for part in parts)
            sums.append(f"COALESCE(CAST(SUM({whole}) AS BIGINT), 0)")
    starts = range(0, len(sums), _MOST_SUMS)
    selects = [([str(start), *sums[start : start + _MOST_SUMS]], "") for start in starts]
    return factors, selects, lambda rows: rows[:, 1:].ravel()[: len(sums)]
