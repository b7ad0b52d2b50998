"""The public map between tables and rows of weights."""

import contextlib

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state

from ..exceptions import TableError
from .blocks import Block, KnotBlock, LevelBlock, wrong_cells
from .columns import Date, Number
from .schema import Schema

__all__ = ["TableEncoder", "check_closed", "check_columns", "check_dtypes"]


class TableEncoder(TransformerMixin, BaseEstimator):
    """Maps tables with a public schema to rows in the unit ball, and back.

    Each column becomes one block of non-negative weights with a fixed sum:

    - a category, ordinal or boolean has one weight per level, all of it on that of its value;
    - a number or date has one weight per knot, all of it on the two knots around its value. The
      nearer one has more, so that the weighted mean of the knots is the value;
    - where values may be missing, the last weight stands for that.

    The weights of a block sum to 1 / √(number of columns), so that every row lies in the unit
    ball, whatever its values. The mean of encoded rows is a table of frequencies: of the levels,
    and of the surroundings of the knots.

    Values beyond the bounds are clipped, infinite ones too, without a warning: whether it happened
    is private. Nothing is learnt from data, and `fit` is not needed.

    Parameters
    ----------
    schema : Schema
        The columns.

    Attributes
    ----------
    blocks : list of (str, slice)
        The name of each column, and its columns in encoded rows.
    n_columns : int
        Number of columns of encoded rows.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of the schema.
    n_features_in_ : int
        Their number.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdpgen.formats import Category, Number, Schema, TableEncoder
    >>> schema = Schema({"age": Number(0, 100, n_knots=3), "pet": Category(["cat", "dog"])})
    >>> encoder = TableEncoder(schema)
    >>> table = pd.DataFrame({"age": [20.0, 50.0], "pet": ["dog", "cat"]})
    >>> rows = encoder.transform(table)
    >>> (rows * 2**0.5).round(3)
    array([[0.6, 0.4, 0. , 0. , 1. ],
           [0. , 1. , 0. , 1. , 0. ]])
    >>> encoder.get_feature_names_out()
    array(['age=0', 'age=50', 'age=100', "pet='cat'", "pet='dog'"], dtype=object)
    >>> encoder.inverse_transform(rows)
        age  pet
    0  20.0  dog
    1  50.0  cat
    """

    def __init__(self, schema):
        self.schema = schema

    def fit(self, X, y=None):
        """Check that a table has the columns of the schema; nothing is learnt.

        Parameters
        ----------
        X : DataFrame of shape (n_samples, `n_features_in_`)
            A table.
        y : Ignored

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            As in `transform`, but no value is looked at.
        """
        self._make_blocks()
        check_columns(X, self.schema)
        return self

    def transform(self, X):
        """Encode a table.

        Parameters
        ----------
        X : DataFrame of shape (n_samples, `n_features_in_`)
            A table with the columns of the schema, in any order. None, NaN, NA and NaT are missing
            values.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_columns)

        Raises
        ------
        TableError
            If `X` is no DataFrame, is empty, or has other columns than the schema; if a column has
            values of another type, categories that are not declared, or missing values where there
            may be none. No message quotes a value.
        """
        self._make_blocks()
        check_columns(X, self.schema)
        return self._encode(X, Block.refuse)

    def transform_private(self, X):
        """Encode a private table like `transform`, but refuse no cell: that would tell of it.

        Parameters
        ----------
        X : DataFrame of shape (n_samples, `n_features_in_`)
            A table with the columns of the schema.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_columns)
            A cell that is not as declared counts as missing, in a column where values may be
            missing; otherwise its row is NaN. That is decided for each record on its own.
        """
        rows = self._encode(X, Block.mark)
        rows[np.isnan(rows).any(axis=1)] = np.nan
        return rows

    def _encode(self, X, take_bad):
        blocks = self._make_blocks()
        rows = np.zeros((len(X), blocks[-1].where.stop))
        for block in blocks:
            column, out = X[block.name], rows[:, block.where]
            present, bad = block.encode(column, out)
            if block.kind.missing:
                out[~present, -1] = 1
            else:
                bad |= ~present
            if bad.any():
                take_bad(block, column, present, bad, out)
        rows /= np.sqrt(len(blocks))
        return rows

    def inverse_transform(self, rows):
        """Decode rows, encoded or generated, to the values that they are nearest to.

        A generated row need not have blocks of weights: negative entries count as 0, and a scale
        does not matter. Levels are those with the largest weight. Numbers and dates are weighted
        means of the knots, rounded as declared, or missing if the weight for that is larger than
        that of all knots together. A block without any weight has equal ones.

        Parameters
        ----------
        rows : array-like of shape (n_samples, n_columns)

        Returns
        -------
        frame : DataFrame of shape (n_samples, `n_features_in_`)
            The columns of the schema, in order: categories and ordinals as categorical, booleans
            as bool, whole numbers as int64, other numbers as float64, dates as datetime64[s];
            booleans and whole numbers that may be missing as the nullable boolean and Int64.

        Raises
        ------
        ValueError
            If `rows` have another shape, or are not finite.
        """
        rows = self._check_rows(rows)
        return self._give(rows, lambda block, weights: block.decode(weights))

    def draw(self, rows, random_state=None):
        """Decode rows at random, each block by its weights as probabilities.

        The expected encoding of what is drawn is the row itself, if its blocks are non-negative
        and have their sum; others are treated as by `inverse_transform`. Numbers and dates fall
        between knots too: flat weights give a flat density, and weights on two neighbours give a
        value between these.

        Parameters
        ----------
        rows : array-like of shape (n_samples, n_columns)
        random_state : None, int, RandomState or Generator of NumPy, default=None

        Returns
        -------
        frame : DataFrame of shape (n_samples, `n_features_in_`)
            As by `inverse_transform`.

        Raises
        ------
        ValueError
            If `rows` have another shape, or are not finite.
        """
        rows = self._check_rows(rows)
        if random_state is None:
            # check_random_state would hand out the global generator.
            random_state = np.random.RandomState()
        if not isinstance(random_state, np.random.Generator):
            random_state = check_random_state(random_state)
        return self._give(rows, lambda block, weights: block.draw(weights, random_state))

    def get_feature_names_out(self, input_features=None):
        """Return what each column of encoded rows stands for, such as ``age=20``.

        Parameters
        ----------
        input_features : Ignored

        Returns
        -------
        ndarray of str of shape (n_columns,)
        """
        names = [
            f"{block.name}={level}" for block in self._make_blocks() for level in block.level_names
        ]
        return np.array(names, dtype=object)

    @property
    def blocks(self):
        """The name of each column, and its columns in encoded rows."""
        return [(block.name, block.where) for block in self._make_blocks()]

    @property
    def n_columns(self):
        """Number of columns of encoded rows."""
        return self._make_blocks()[-1].where.stop

    @property
    def feature_names_in_(self):
        """Names of the columns of the schema."""
        return np.array(self.schema.names, dtype=object)

    @property
    def n_features_in_(self):
        """Number of columns of the schema."""
        return len(self.schema)

    def _make_blocks(self):
        if not isinstance(self.schema, Schema):
            raise ValueError(f"schema must be a Schema; got {type(self.schema).__name__}.")
        check_closed(self.schema)
        blocks, start = [], 0
        for name, kind in self.schema.items():
            make = KnotBlock if isinstance(kind, Number | Date) else LevelBlock
            blocks.append(make(name, kind, start))
            start = blocks[-1].where.stop
        return blocks

    def _check_rows(self, rows):
        given, rows = rows, None
        # What NumPy says of what is no number quotes it.
        with contextlib.suppress(TypeError, ValueError):
            rows = np.asarray(given, dtype=np.float64)
        if rows is None:
            raise ValueError("rows must be an array of numbers, such as transform returns.")
        if rows.ndim != 2 or rows.shape[1] != self.n_columns:
            raise ValueError(
                f"rows must have shape (n_samples, {self.n_columns}); got {rows.shape}."
            )
        if not np.isfinite(rows).all():
            raise ValueError("rows must be finite.")
        return rows

    def _give(self, rows, decode):
        return pd.DataFrame(
            {block.name: decode(block, rows[:, block.where]) for block in self._make_blocks()}
        )

    def __sklearn_is_fitted__(self):
        return True

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


def check_closed(schema):
    """Refuse a schema that does not declare all bounds and categories."""
    if schema.open_names:
        raise ValueError(
            f"The schema does not declare the bounds or categories of {list(schema.open_names)}. "
            "Declare them, as Number(lower, upper) or Category([...]), from public knowledge; or "
            'let a generator pay for finding them, with infer="private".'
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
            "drop them from the table, or let a generator pay for bounds and categories, with "
            'infer="private".'
        )
    if not len(table):
        raise TableError("The table has no rows.")


def check_dtypes(table, schema):
    """Refuse columns whose dtype says that no cell can be as declared; no cell is looked at."""
    for name, kind in schema.items():
        if not _may_hold(table[name].dtype, kind):
            raise wrong_cells(name, kind, table[name].dtype)


def _may_hold(dtype, kind):
    """Whether a column of a dtype may hold values of a kind."""
    is_text = isinstance(dtype, pd.StringDtype)
    has_zone = isinstance(dtype, pd.DatetimeTZDtype)
    code = "S" if is_text else getattr(dtype, "kind", "O")
    if isinstance(kind, Number):
        return code in "iufO"
    if isinstance(kind, Date):
        return code in "MO" and not has_zone
    has_texts = isinstance(kind.levels[0], str)
    return code in ("SO" if has_texts else "iufbO")
