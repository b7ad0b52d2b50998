# SPDX-License-Identifier: BSD-3-Clause
"""Encoding of tables as rows of weights, and decoding by sampling."""

from collections.abc import Mapping
from functools import cached_property

import numpy as np
import pandas as pd
import torch

from ..data.dtypes import check_dtype
from ..exceptions import TableError
from ..mechanisms.codes import HatBasis
from ..messages import Message
from .blocks import KnotBlock, LevelBlock, make_mismatch_error
from .rules.conditions import make_condition
from .schema import check_resolved


class TableEncoder:
    """Maps tables with a public schema to rows in the unit ball, and back.

    Each column becomes one block of non-negative weights:

    - a category, ordinal or boolean has one weight per level (one-hot encoding);
    - a number or date has one weight per knot (hat basis): only the two knots around a value have
      positive weights. Without breakpoints between them, the weighted mean of the knots is the
      value; breakpoints make the weights a piecewise linear function of it;
    - if values may be missing, the last weight is that of missing values;
    - an identifier has no weights and is generated; a derived column has none and is computed.

    The weights of a block sum to 1 / √(number of columns), so that every row lies in the unit
    ball. The mean of encoded rows holds the frequencies of levels, and histograms of numbers.

    Values beyond the bounds, infinite ones included, are clipped without a warning, which would
    reveal a private fact. The encoder learns nothing from data and needs no `fit`.

    Parameters
    ----------
    schema : Schema
        The columns.
    scales : dict of str to CodeScale, default=None
        Calibrated scales, by column name. Default: those used for encoding.

    Attributes
    ----------
    blocks : list of (str, slice)
        Each column's name, and its slice of encoded rows.
    n_columns : int
        Number of columns of encoded rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdpgen import Category, Number, Schema
    >>> from skdpgen.tables.encoder import TableEncoder
    >>> schema = Schema({"age": Number(0, 100, n_knots=3), "pet": Category(["cat", "dog"])})
    >>> table = pd.DataFrame({"age": [20.0, 50.0], "pet": ["dog", "cat"]})
    >>> (TableEncoder(schema).encode(table) * 2**0.5).round(3)
    array([[0.6, 0.4, 0. , 0. , 1. ],
           [0. , 1. , 0. , 1. , 0. ]])
    """

    def __init__(self, schema, scales=None):
        self.schema = schema
        self.scales = scales or {}

    def encode(self, table):
        """Encode a table with the columns of the schema, in any order.

        Raises
        ------
        TableError
            If the table is no DataFrame, is empty, or has other columns than the schema; or if a
            column has values of another type, undeclared categories, or undeclared missing values.
            No message quotes a value.
        """
        check_columns(table, self.schema)
        if not len(table):
            raise TableError("The table has no rows.")
        return self._to_dense(self._encode(table, strict=True))

    def encode_private(self, table):
        """Encode a private table like `encode`, but raise for no cell: that would reveal it.

        A cell that is not as declared counts as missing if values of its column may be missing;
        otherwise its row is NaN. Each row depends on its own record alone.
        """
        codes = self.encode_cells(table)
        is_bad = np.isnan(codes).any(axis=1)
        rows = self._to_dense(np.where(is_bad[:, None], 0, codes))
        # NaN, which the curator counts as an absent record.
        rows[is_bad] = np.nan
        return rows

    def encode_cells(self, table):
        """Return the codes of the cells of a private table; see `HatBasis`.

        Returns
        -------
        ndarray of shape (n_samples, n_blocks)
            NaN for cells that are not as declared, in columns without missing values.
        """
        return self._encode(table, strict=False)

    def _encode(self, table, *, strict):
        table = self.schema.add_differences(table)
        columns = (
            block.encode_cells(table[block.name], strict=strict) for block in self.make_blocks()
        )
        return np.column_stack(list(columns))

    def _to_dense(self, codes):
        sizes = [block.where.stop - block.where.start for block in self.make_blocks()]
        # By the root of the number of columns, so that each row has norm 1 at most.
        return HatBasis(torch.from_numpy(codes), sizes).to_dense().numpy() / np.sqrt(len(sizes))

    def find_conditions(self, where):
        """Return the conditions of ``sample(where=...)``, a dict by column name.

        Raises
        ------
        ValueError
            For unknown or derived columns, and for conditions that no value satisfies.
        """
        if not isinstance(where, Mapping):
            raise ValueError(
                f"where must be a dict of column names to levels or ranges; got {where!r}."
            )
        blocks = {block.name: block for block in self.make_blocks()}
        # They are computed after all others, so that a condition on one could not be drawn.
        derived = [name for name in where if name in self.schema.derived_names]
        if derived:
            raise ValueError(f"where names {derived}, which are derived; use their operands.")
        unknown = [name for name in where if name not in blocks]
        if unknown:
            raise ValueError(f"where names {unknown}, which are no columns: {list(blocks)}.")
        return {name: make_condition(blocks[name], values) for name, values in where.items()}

    def draw(self, rows, random_state, conditions=None):
        """Decode rows by sampling: the weights of each block are probabilities.

        Weights are clipped at 0 and normalized; a block without positive weights is uniform. For
        valid weights and without calibrated scales, the expected encoding of a draw is the row.
        Numbers and dates are drawn between knots, too: equal weights give a flat density, and
        weights of two neighbouring knots give values between them.

        Parameters
        ----------
        rows : ndarray of shape (n_samples, n_columns)
        random_state : RandomState or Generator of NumPy
        conditions : dict, default=None
            From `find_conditions`. They must have positive probability in each row.

        Returns
        -------
        frame : DataFrame of shape (n_samples, n_features)
            The columns of the schema, in order. Categories and ordinals are categorical, booleans
            bool, integers int64, other numbers float64, and dates datetime64[s]; booleans and
            integers that may be missing have the nullable dtypes boolean and Int64.
        """
        conditions = conditions or {}
        drawn = {
            block.name: conditions.get(block.name, block).draw(rows[:, block.where], random_state)
            for block in self.make_blocks()
        }
        return self.assemble(drawn, len(rows), random_state)

    def assemble(self, columns, n_rows, random_state):
        """Return drawn columns as a table in the order of the schema, with new identifiers."""
        return pd.DataFrame(
            {
                name: columns[name] if name in columns else column.make(n_rows, random_state)
                for name, column in self.schema.items()
            }
        )

    @property
    def blocks(self):
        """Each column's name, and its slice of encoded rows."""
        return [(block.name, block.where) for block in self.make_blocks()]

    @property
    def n_columns(self):
        """Number of columns of encoded rows."""
        return self.make_blocks()[-1].where.stop

    def make_blocks(self):
        """Return the `Block` of each learned column."""
        return self._blocks

    @cached_property
    def _blocks(self):
        check_resolved(self.schema)
        blocks, start = [], 0
        for name, column in self.schema.learned.items():
            if column.has_knots:
                blocks.append(KnotBlock(name, column, start, self.scales.get(name)))
            else:
                blocks.append(LevelBlock(name, column, start))
            start = blocks[-1].where.stop
        if not blocks:
            raise ValueError(
                f"The schema has identifiers only, {list(self.schema)}: there is nothing to learn."
            )
        return blocks


def check_columns(table, schema):
    """Raise an error if a table lacks columns of a schema or has others; read no cell."""
    if not isinstance(table, pd.DataFrame):
        raise TableError(f"A table must be a pandas DataFrame; got {type(table).__name__}.")
    check_names(table)
    lacking = [name for name in schema if name not in table.columns]
    if lacking:
        raise TableError(
            Message(
                "The table, or a chunk of it, lacks columns {lacking}: give them in all chunks, or "
                "{without_them}.",
                {"lacking": lacking},
            )
        )
    # Left out without a word, they would be missing from the synthetic rows.
    extra = [name for name in table.columns if name not in schema]
    if extra:
        raise TableError(
            f"The table has columns {extra} that the schema does not declare; declare them, "
            "drop them from the table, or have a generator infer them, at a cost, by "
            "Schema.from_dtypes(table.dtypes, declared=schema)."
        )


def check_names(table):
    """Raise an error for a table in which several columns have the same name."""
    if not table.columns.is_unique:
        repeated = table.columns[table.columns.duplicated()].unique().tolist()
        raise TableError(f"The table has several columns of the same name: {repeated}.")


def check_held(table, schema):
    """Refuse columns whose dtype says that no column type holds their cells; see `check_dtype`."""
    for name, column in schema.items():
        if not column.is_generated:
            check_dtype(table[name].dtype, f"Column {name!r}", f"X[{name!r}]")


def check_dtypes(table, schema, *, are_stated=False):
    """Raise an error for columns whose dtype cannot hold declared values; read no cell.

    Parameters
    ----------
    table : DataFrame
    schema : Schema
    are_stated : bool, default=False
        Whether the source states dtypes. Otherwise readers infer them from private cells: a single
        cell turns a column of numbers into texts, and an error would reveal it.
    """
    for name, column in schema.items():
        dtype = table[name].dtype
        is_inferred = not are_stated and column.is_dtype_inferred
        if not (column.accepts(dtype) or (is_inferred and isinstance(dtype, pd.StringDtype))):
            raise make_mismatch_error(name, column, dtype)
