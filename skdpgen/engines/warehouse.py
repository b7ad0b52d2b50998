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
# Joint levels of columns that are read at once: their sums fit in a core's cache.
_MOST_LEVELS = 4_096
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
    _codes: list  # of the format of a fit
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
        return self._read_types()

    def _read_types(self):
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
        return table

    def map_parts(self, read):
        return self, self.n_units, None

    def __call__(self):
        raise TableError("The rows of a table of a database stay there.")

    def _sum_parts(self, function):
        return [function()]

    def add_products(self, mechanism, half: float) -> np.ndarray:
        """Return the sum of a mechanism over all records; see `ProductMechanism`."""
        if self._read_types() != self.types:
            raise PublicValueError("The table's columns changed: give sql(connection, table) anew.")
        # Words that other databases do not know.
        hint = "NOT MATERIALIZED " if self.engine in ("duckdb", "postgres") else ""
        statement, read = _write_sum(mechanism, half, self._codes, f"{self._table} AS t", hint)
        rows = self._fetch(statement)
        rows = rows[np.lexsort(rows.T[::-1])]
        # One statement reads one state of the table: its rows are counted beside their sums.
        if rows[0, 1] != self.n_units:
            raise PublicValueError(OTHER_ROWS)
        return read(rows[1:])

    def without_rows(self) -> "Warehouse":
        """Return the table as a fit reads it, with no rows."""
        table = copy.copy(self)
        table._table, table.n_units = f"(SELECT * FROM {self._table} AS t LIMIT 0)", 0
        return table

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
    is_whole = [column.is_whole or bins.n_bins[i] > 0 for i, column in numbered]
    write = _write_two_way if isinstance(mechanism, TablesMechanism) else _write_multi_way
    own_views, sums, read = write(mechanism, half, is_whole)
    # A select computes few codes, but asks for all whether the record has one.
    present = " AND ".join(column.present for column in columns)
    views = (
        ("cells", table, [f"{column.cell} AS x{i}" for i, column in numbered]),
        ("codes", f"cells WHERE {present}", [f"{column.code} AS c{i}" for i, column in numbered]),
        ("refined", "codes", [f"{_refine(i, bins)} AS r{i}" for i, _ in numbered]),
        ("levels", "refined", [_LEVEL.format(i) for i, _ in numbered]),
        *own_views,
    )
    written = ", ".join(
        # Sums by joint levels are read several times.
        f"{name} AS {hint * (name[:5] != 'joint')}(SELECT {', '.join(selected)} FROM {source})"
        for name, source, selected in views
    )
    sums = [(["-1", "COUNT(*)"], table), *sums]
    width = max(len(selected) for selected, _ in sums)
    union = " UNION ALL ".join(
        f"SELECT {', '.join([*selected, *['0'] * (width - len(selected))])} FROM {source}"
        for selected, source in sums
    )
    return f"WITH {written} {union}", read


def _refine(i, bins):
    """Return a code among bins; see `Refinement.refine`."""
    n_knots, n_bins = bins.n_knots[i], bins.n_bins[i]
    inner = f"LEAST(FLOOR(c{i} * {bins.n_parts[i]}), {n_bins - 1})"
    outer = f"c{i} - {n_knots} + {n_bins}"
    return f"CASE WHEN c{i} <= {n_knots - 1} THEN {inner} ELSE {outer} END" if n_bins else f"c{i}"


def _write_two_way(mechanism, half, is_whole):
    """Return views of weights and of sums by joint levels, sums for all tables, and the reader.

    A row of the result has a level of each of two columns, that of the strata, and the sum.
    """
    kept, sizes, n = mechanism.kept, mechanism.all_sizes, sum(mechanism.sizes)
    starts = dict(zip(kept, np.cumsum([0, *mechanism.sizes]).tolist(), strict=False))
    scale = write_double(half / math.sqrt(mechanism.records) * (1 - MARGIN))
    strata = [c for c in range(len(sizes)) if c not in kept]
    levels = [f"l{c}" for c in range(len(sizes))]
    # Of a level and the next one. A whole code has one weight, the same in all records.
    weights = {
        c: {"a": "1"} if is_whole[c] else {f"a{c}": f"(1 - f{c})", f"b{c}": f"f{c}"} for c in kept
    }
    shares = {name: share for own in weights.values() for name, share in own.items()}
    factors = [f"CAST(FLOOR({s} * {scale}) AS BIGINT) AS {name}" for name, s in shares.items()]
    tables = [(c,) for c in kept] + list(itertools.combinations(kept, 2))
    views, selects = [("factors", "levels", levels + factors)], []
    for joint, own in _join_tables(tables, strata, sizes):
        name, sums = f"joint{len(views)}", {}
        for table in own:
            by = f"{name} GROUP BY {', '.join(levels[c] for c in (*table, *strata))}"
            for terms in itertools.product(*(enumerate(weights[c]) for c in table)):
                total = sums.setdefault(" * ".join(w for _, w in terms), f"s{len(sums)}")
                at = [f"l{c} + {starts[c] + i}" for c, (i, _) in zip(table, terms, strict=True)]
                # The last column is that of one-way tables.
                keys = [*at, str(n)][:2] + [*(levels[c] for c in strata), "0"][:1]
                selects.append(([*keys, f"CAST(SUM({total}) AS BIGINT)"], by))
        by = [levels[c] for c in joint]
        totals = [f"CAST(SUM({product}) AS BIGINT) AS {total}" for product, total in sums.items()]
        views.append((name, f"factors GROUP BY {', '.join(by)}", by + totals))

    def read(rows):
        # Sums beyond a last level are 0.
        total = np.zeros((math.prod(sizes[c] for c in strata), n + 1, n + 1), dtype=np.int64)
        first, second, stratum, sums = rows.T
        np.add.at(total, (stratum, first, second), sums)
        one_way = total[:, :n, n] * mechanism.find_one_way(half)
        cells = np.hstack([select_cells(total[:, :n, :n], mechanism.sizes), one_way])
        return cells if strata else cells[0]

    return views, selects, read


def _join_tables(tables, strata, sizes):
    """Yield sets of columns of few joint levels, and the tables that no other set has.

    Rows are read once for each set, as their codes cost more than sums.
    """
    left = {frozenset(table): table for table in tables}
    while left:
        joint = {*next(reversed(left)), *strata}
        while True:
            n_levels = math.prod(sizes[c] for c in joint)
            gains = {
                c: sum(frozenset({c, d}) in left for d in {*joint, c})
                for c, n in enumerate(sizes)
                if c not in joint and n_levels * n <= _MOST_LEVELS
            }
            if not any(gains.values()):
                break
            joint.add(max(gains, key=gains.__getitem__))
        own = [key for key in left if key <= joint]
        yield joint, [left.pop(key) for key in own]


def _write_multi_way(mechanism, half, is_whole):
    """Return views of the weights of groups and of parts, the sum of each cell, and the reader."""
    names: dict = {}
    factors, parts, sums, scale = [], {}, [], write_double(half * (1 - MARGIN))
    divisor = write_double(math.sqrt(len(mechanism.products)))
    for c, groups in itertools.chain(*mechanism.products):
        if (c, id(groups)) not in names:
            names[c, id(groups)] = [f"m{len(factors) + g}" for g in range(groups.shape[1])]
            for signs in groups.int().T.tolist():
                # As `HatBasis.join`, whose weights of a level and the next one sum to 1 exactly.
                weights = [
                    f"{s} * (1 - f{c}) + {t} * f{c}" if s != t and not is_whole[c] else str(s)
                    for s, t in zip(signs, [*signs[1:], signs[-1]], strict=True)
                ]
                runs = zip(itertools.count(), weights, [*weights[1:], None])
                cases = " ".join(f"WHEN l{c} <= {i} THEN {w}" for i, w, after in runs if w != after)
                factors.append(f"CASE {cases} END AS m{len(factors)}")
    for product in mechanism.products:
        middle = (len(product) + 1) // 2
        for cell in itertools.product(*(names[c, id(groups)] for c, groups in product)):
            left, right = (" * ".join(part) for part in (cell[:middle], cell[middle:]))
            both = f"{left} / {divisor} * {scale}", f"{right} * {scale}"
            whole = " * ".join(parts.setdefault(part, f"p{len(parts)}") for part in both)
            sums.append(f"COALESCE(CAST(SUM({whole}) AS BIGINT), 0)")
    rounded = [f"CAST(TRUNC({part}) AS BIGINT) AS {name}" for part, name in parts.items()]
    starts = range(0, len(sums), _MOST_SUMS)
    selects = [([str(start), *sums[start : start + _MOST_SUMS]], "parts") for start in starts]
    views = [("factors", "levels", factors), ("parts", "factors", rounded)]
    return views, selects, lambda rows: rows[:, 1:].ravel()[: len(sums)]
