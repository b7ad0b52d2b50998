"""The public map between tables of mixed types and rows of simplex blocks."""

import contextlib

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state

from ..privacy.exceptions import TableError
from ..privacy.records import look_up
from ._schema import DATE_CODES, Boolean, Date, Number, Ordinal, Schema, read_dates, read_numbers

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
    >>> from skdpgen.preprocessing import Category, Number, Schema, TableEncoder
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
        return self._encode(X, _Block.refuse)

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
        rows = self._encode(X, _Block.mark)
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
            make = _KnotBlock if isinstance(kind, Number | Date) else _LevelBlock
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
            raise _wrong_cells(name, kind, table[name].dtype)


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


def _wrong_cells(name, kind, dtype):
    """Return an error about cells that are not as declared."""
    convert = "convert them, as with pandas.{}, or declare the column as another kind"
    if isinstance(kind, Number):
        what, advice = f"are no numbers (dtype {dtype})", convert.format("to_numeric")
    elif isinstance(kind, Date):
        what = f"are no dates without time zone (dtype {dtype})"
        advice = convert.format("to_datetime")
    elif isinstance(kind, Boolean):
        what = f"are other than True and False (dtype {dtype})"
        advice = "convert them, or declare the column as a category"
    else:
        types = " and ".join(sorted({type(level).__name__ for level in kind.levels}))
        what = (
            f"are not among its categories (the column has dtype {dtype}, the categories are of "
            f"type {types})"
        )
        advice = "declare all that may occur, or other=... for a category"
    return TableError(f"Column {name!r} holds values that {what}; {advice}.")


class _Block:
    """The place of a column in encoded rows, and what its weights stand for.

    Parameters
    ----------
    name : str
    kind : object
        From the schema.
    start : int
        First column of the block.
    n_levels : int
        Number of weights, without that for missing values.
    """

    def __init__(self, name, kind, start, n_levels):
        self.name = name
        self.kind = kind
        self.n_levels = n_levels
        self.where = slice(start, start + n_levels + kind.missing)

    def refuse(self, column, present, bad, out):
        """Raise an error that says what is wrong with the bad cells of a column."""
        if present[bad].any():
            raise _wrong_cells(self.name, self.kind, column.dtype)
        raise TableError(
            f"Column {self.name!r} has missing values; declare it with missing=True, or drop those "
            "rows."
        )

    def mark(self, column, present, bad, out):
        """Count bad cells as missing where values may be missing, and make them NaN elsewhere."""
        out[bad] = 0 if self.kind.missing else np.nan
        if self.kind.missing:
            out[bad, -1] = 1

    def _name_levels(self, names):
        return [*names, "missing"] if self.kind.missing else names


class _LevelBlock(_Block):
    """One weight per level."""

    def __init__(self, name, kind, start):
        super().__init__(name, kind, start, len(kind.levels))

    @property
    def level_names(self):
        return self._name_levels([repr(level) for level in self.kind.levels])

    def encode(self, column, out):
        # As objects, labels are looked up as Python compares them, whatever the dtype.
        labels = column.to_numpy(dtype=object)
        present = ~pd.isna(labels)
        codes = np.full(len(labels), -1)
        codes[present] = look_up(labels[present], self.kind.levels)
        if getattr(self.kind, "other", None) is not None:
            codes[present & (codes < 0)] = self.kind.levels.index(self.kind.other)
        known = np.flatnonzero(codes >= 0)
        out[known, codes[known]] = 1
        return present, present & (codes < 0)

    def decode(self, weights):
        return self._give(weights.argmax(axis=1))

    def draw(self, weights, random_state):
        return self._give(_draw_levels(_to_probabilities(weights), random_state))

    def _give(self, codes):
        if isinstance(self.kind, Boolean):
            return _mask(codes == 1, codes == self.n_levels) if self.kind.missing else codes == 1
        codes = np.where(codes == self.n_levels, -1, codes)
        is_ordered = isinstance(self.kind, Ordinal)
        return pd.Categorical.from_codes(codes, list(self.kind.levels), ordered=is_ordered)


class _KnotBlock(_Block):
    """One weight per knot: the hat functions on the knots."""

    def __init__(self, name, kind, start):
        self.knots = kind.positions
        self.is_number = isinstance(kind, Number)
        self.decimals = kind.decimals if self.is_number else 0
        super().__init__(name, kind, start, len(self.knots))

    @property
    def level_names(self):
        if self.is_number:
            names = [np.format_float_positional(knot, trim="-") for knot in self.knots]
        else:
            names = self._to_dates(self.knots).astype(str).tolist()
        return self._name_levels(names)

    def encode(self, column, out):
        present, numbers = self._read(column)
        is_number = ~np.isnan(numbers)
        where, bad = np.flatnonzero(present)[is_number], present.copy()
        bad[where] = False
        numbers = np.clip(numbers[is_number], self.knots[0], self.knots[-1])
        left = np.searchsorted(self.knots[1:-1], numbers, side="right")
        start = self.knots[left]
        share = (numbers - start) / (self.knots[left + 1] - start)
        out[where, left] = 1 - share
        out[where, left + 1] = share
        return present, bad

    def decode(self, weights):
        weights, missing = self._split(_to_probabilities(weights))
        total = weights.sum(axis=1)
        # From the first knot on, as far-off knots that are close together need all digits.
        offset = weights @ (self.knots - self.knots[0])
        numbers = self.knots[0] + offset / np.where(total > 0, total, 1)
        return self._give(numbers, missing > total)

    def draw(self, weights, random_state):
        weights, missing = self._split(_to_probabilities(weights))
        from_left, from_right = _share_between_knots(weights)
        masses = np.column_stack([from_left + from_right, missing])
        drawn = _draw_levels(masses, random_state)
        is_missing = drawn == self.n_levels - 1
        left = np.where(is_missing, 0, drawn)
        chosen = np.arange(len(left)), left
        share = _draw_between(from_left[chosen], from_right[chosen], random_state)
        numbers = self.knots[left] + share * (self.knots[left + 1] - self.knots[left])
        return self._give(self._round_at_random(numbers, random_state), is_missing)

    def _read(self, column):
        """Return which cells are present, and the numbers of these, NaN for those that are none."""
        if self.is_number:
            return read_numbers(column)
        present, dates = read_dates(column)
        return present, np.where(np.isnat(dates), np.nan, self._to_units(dates))

    def _split(self, weights):
        """Return the weights of the knots, and that for missing values."""
        missing = weights[:, -1] if self.kind.missing else np.zeros(len(weights))
        return weights[:, : self.n_levels], missing

    def _round_at_random(self, numbers, random_state):
        """Round up or down, so that the mean stays; knots are values, so that weights stay too."""
        if self.decimals is None:
            return numbers
        units = numbers * 10.0**self.decimals
        below = np.floor(units)
        is_up = random_state.uniform(size=len(units)) < units - below
        return (below + is_up) / 10.0**self.decimals

    def _give(self, numbers, missing):
        if self.decimals is not None:
            numbers = np.round(numbers, self.decimals) + 0.0  # no negative zero
        numbers = np.clip(numbers, self.knots[0], self.knots[-1])
        if not self.is_number:
            dates = self._to_dates(numbers).astype("M8[s]")
            dates[missing] = np.datetime64("NaT")
            return dates
        if self.decimals == 0:
            whole = numbers.astype(np.int64)
            return _mask(whole, missing) if self.kind.missing else whole
        return np.where(missing, np.nan, numbers)

    def _to_units(self, dates):
        return dates.astype(f"M8[{DATE_CODES[self.kind.unit]}]").astype(np.float64)

    def _to_dates(self, units):
        return units.astype(np.int64).astype(f"M8[{DATE_CODES[self.kind.unit]}]")


def _mask(values, missing):
    """Return values of a nullable dtype."""
    values = pd.array(values)
    values[missing] = pd.NA
    return values


def _to_probabilities(weights):
    """Scale non-negative parts to sum 1; equal ones where there is no positive weight."""
    weights = np.maximum(weights, 0)
    top = weights.max(axis=1, keepdims=True)
    # By the largest first, as sums of the largest floats overflow.
    weights = np.where(top > 0, weights, 1) / np.where(top > 0, top, 1)
    return weights / weights.sum(axis=1, keepdims=True)


def _draw_levels(probabilities, random_state):
    """Draw one level per row; one of probability 0 is never drawn."""
    steps = probabilities.cumsum(axis=1)
    uniform = random_state.uniform(size=(len(steps), 1))
    return (steps / steps[:, -1:] <= uniform).sum(axis=1)


def _share_between_knots(weights):
    """Share the weight of each knot among the intervals beside it.

    What is drawn in an interval has the right expected weights if the interval has the total of
    both shares, and the mean in it is their centre of gravity: any division does. By the square
    roots of the neighbours' weights, a flat density stays flat, also where knots grow apart
    geometrically, and a row between two knots stays between them.

    Returns
    -------
    from_left, from_right : ndarray of shape (n, n_knots - 1)
        For each interval, what it has of its left and of its right knot.
    """
    roots = np.pad(np.sqrt(weights), ((0, 0), (1, 1)))
    left, right = roots[:, :-2], roots[:, 2:]
    # A knot without neighbours is drawn itself, and any interval that it is in will do.
    to_right = np.ones_like(weights)
    to_right[:, -1] = 0
    np.divide(right, left + right, out=to_right, where=left + right > 0)
    to_right *= weights
    return to_right[:, :-1], (weights - to_right)[:, 1:]


def _draw_between(from_left, from_right, random_state):
    """Draw numbers in [0, 1] of mean from_right / (from_left + from_right).

    The density is a power: flat if both are equal, a triangle if one is twice the other, and an
    atom at 0 or 1 if one is 0.
    """
    largest = np.maximum(from_left, from_right)
    power = np.minimum(from_left, from_right) / np.where(largest > 0, largest, 1)
    share = random_state.uniform(size=len(power)) ** power
    return np.where(from_right > from_left, share, 1 - share)
