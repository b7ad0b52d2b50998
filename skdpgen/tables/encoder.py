# SPDX-License-Identifier: BSD-3-Clause
"""Encoding of tables as rows of weights."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
import torch

from ..curator.containers import check_dtype
from ..exceptions import TableError
from ..mechanisms.codes import HatBasis
from .blocks import KnotBlock, LevelBlock, wrong_cells
from .rules.conditions import make_condition


class TableEncoder:
    """Maps tables with a public schema to rows in the unit ball, and back.

    Each column becomes one block of non-negative weights with a fixed sum:

    - a category, ordinal or boolean has one weight per level, all of it on that of its value;
    - a number or date has one weight per knot, all of it on the two knots around its value. The
      nearer one has more: the weighted mean of the knots is the value, unless cuts between knots
      say by what else nearness goes;
    - where values may be missing, the last weight stands for that;
    - an identifier has none, and is made up; a derived column has none, and is computed.

    The weights of a block sum to 1 / √(number of columns), so that every row lies in the unit
    ball, whatever its values. The mean of encoded rows is a table of frequencies: of the levels,
    and of the surroundings of the knots.

    Values beyond the bounds are clipped, infinite ones too, without a warning: whether it happened
    is private. Nothing is learnt from data, and `fit` is not needed.

    Parameters
    ----------
    schema : Schema
        The columns.
    places : dict of str to ndarray, default=None
        Of numbers that are not drawn where they are encoded, where their knots and cuts are then.

    Attributes
    ----------
    blocks : list of (str, slice)
        The name of each column, and its columns in encoded rows.
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

    def __init__(self, schema, places=None):
        self.schema = schema
        self.places = places or {}

    def encode(self, table):
        """Encode a table with the columns of the schema, in any order.

        Raises
        ------
        TableError
            If it is no DataFrame, is empty, or has other columns than the schema; if a column has
            values of another type, categories that are not declared, or missing values where there
            may be none. No message quotes a value.
        """
        check_columns(table, self.schema)
        if not len(table):
            raise TableError("The table has no rows.")
        return self._spread(self._find_places(table, strict=True))

    def encode_private(self, table):
        """Encode a private table like `encode`, but refuse no cell: that would tell of it.

        A cell that is not as declared counts as missing, in a column where values may be missing;
        otherwise its row is NaN. That is decided for each record on its own.
        """
        places = self.encode_cells(table)
        is_bad = np.isnan(places).any(axis=1)
        rows = self._spread(np.where(is_bad[:, None], 0, places))
        rows[is_bad] = np.nan
        return rows

    def encode_cells(self, table):
        """Return the places of the cells of a private table, of which encoded rows are `Hats`.

        Returns
        -------
        ndarray of shape (n_samples, n_blocks)
            NaN for a cell that is not as declared, where values may not be missing.
        """
        return self._find_places(table, strict=False)

    def _find_places(self, table, *, strict):
        columns = (
            block.encode_cells(table[block.name], strict=strict) for block in self.make_blocks()
        )
        return np.column_stack(list(columns))

    def _spread(self, places):
        sizes = [block.where.stop - block.where.start for block in self.make_blocks()]
        return HatBasis(torch.from_numpy(places), sizes).to_dense().numpy() / np.sqrt(len(sizes))

    def find_conditions(self, where):
        """Return the conditions that columns are what a dict asks of them, by their names.

        Raises
        ------
        ValueError
            For names that are no columns, and for what no value of a column is.
        """
        if not isinstance(where, Mapping):
            raise ValueError(
                "where must be a dict of columns, and of the levels or ranges of each; got "
                f"{where!r}."
            )
        blocks = {block.name: block for block in self.make_blocks()}
        derived = [name for name in where if name in self.schema.derived_names]
        if derived:
            raise ValueError(f"where names {derived}, which are derived: ask for what they are of.")
        unknown = [name for name in where if name not in blocks]
        if unknown:
            raise ValueError(f"where names {unknown}, which are no columns: {list(blocks)}.")
        return {name: make_condition(blocks[name], asked) for name, asked in where.items()}

    def draw(self, rows, random_state, conditions=None):
        """Decode rows at random, each block by its weights as probabilities.

        The expected encoding of what is drawn is the row itself, if its blocks are non-negative
        and have their sum, and numbers are drawn where they are encoded. Otherwise negative
        entries count as 0, and a scale does not matter; a block without any weight has equal ones.
        Numbers and dates fall between knots too: flat weights give a flat density, and weights on
        two neighbours give a value between these.

        Parameters
        ----------
        rows : array of shape (n_samples, n_columns)
        random_state : RandomState or Generator of NumPy
        conditions : dict, default=None
            From `find_conditions`; of rows in which their probabilities are not 0.

        Returns
        -------
        frame : DataFrame of shape (n_samples, n_features)
            The columns of the schema, in order: categories and ordinals as categorical, booleans
            as bool, whole numbers as int64, other numbers as float64, dates as datetime64[s];
            booleans and whole numbers that may be missing as the nullable boolean and Int64.
        """
        drawn = {
            block.name: (conditions or {})
            .get(block.name, block)
            .draw(rows[:, block.where], random_state)
            for block in self.make_blocks()
        }
        return self.assemble(drawn, len(rows), random_state)

    def assemble(self, columns, n_rows, random_state):
        """Return columns that were drawn as a table, in order; identifiers are made up."""
        return pd.DataFrame(
            {
                name: columns[name] if name in columns else kind.make(n_rows, random_state)
                for name, kind in self.schema.items()
            }
        )

    @property
    def blocks(self):
        """The name of each column, and its columns in encoded rows."""
        return [(block.name, block.where) for block in self.make_blocks()]

    @property
    def n_columns(self):
        """Number of columns of encoded rows."""
        return self.make_blocks()[-1].where.stop

    def make_blocks(self):
        """Return the `Block` of each column that is learnt."""
        check_closed(self.schema)
        blocks, start = [], 0
        for name, kind in self.schema.learnt.items():
            if kind.has_knots:
                blocks.append(KnotBlock(name, kind, start, self.places.get(name)))
            else:
                blocks.append(LevelBlock(name, kind, start))
            start = blocks[-1].where.stop
        if not blocks:
            raise ValueError(
                f"The schema has identifiers only, {list(self.schema)}: there is nothing to learn."
            )
        return blocks


def check_closed(schema):
    """Refuse a schema that does not declare all bounds and categories."""
    if schema.open_names:
        raise ValueError(
            f"The schema does not declare the bounds or categories of {list(schema.open_names)}. "
            "Declare them, as Number(lower, upper) or Category([...]), from public knowledge; or "
            "hand the schema to a generator, which pays for finding them."
        )


def check_columns(table, schema):
    """Refuse what is no table with just the columns of a schema; no cell is looked at."""
    if not isinstance(table, pd.DataFrame):
        raise TableError(f"A table must be a pandas DataFrame; got {type(table).__name__}.")
    if not table.columns.is_unique:
        repeated = table.columns[table.columns.duplicated()].unique().tolist()
        raise TableError(f"The table has several columns of the same name: {repeated}.")
    lacking = [name for name in schema if name not in table.columns]
    if lacking:
        raise TableError(
            f"The table lacks columns {lacking}; drop them from the schema with "
            "schema.drop(...) if there are none."
        )
    extra = [name for name in table.columns if name not in schema]
    if extra:
        raise TableError(
            f"The table has columns {extra} that the schema does not declare; declare them, "
            "drop them from the table, or leave them open by Schema.from_dtypes(table.dtypes, "
            "declared=schema), for which a generator pays."
        )


def check_held(table, schema):
    """Refuse columns whose dtype says that no column type holds their cells; see `check_dtype`."""
    for name, kind in schema.items():
        if not kind.is_generated:
            check_dtype(table[name].dtype, f"Column {name!r}", f"X[{name!r}]")


def check_dtypes(table, schema, *, are_stated=False):
    """Refuse columns whose dtype says that no cell can be as declared; no cell is looked at.

    Parameters
    ----------
    table : DataFrame
    schema : Schema
    are_stated : bool
        Whether dtypes follow from the source alone. Those that readers choose follow from cells: a
        single one makes texts of a column of numbers, and a refusal would tell of it.
    """
    for name, kind in schema.items():
        dtype = table[name].dtype
        is_chosen = not are_stated and kind.is_dtype_inferred
        if not (kind.accepts(dtype) or (is_chosen and isinstance(dtype, pd.StringDtype))):
            raise wrong_cells(name, kind, table[name].dtype)
