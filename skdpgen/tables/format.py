# SPDX-License-Identifier: BSD-3-Clause
"""Formats of tables: cells are encoded as weights of levels and knots."""

from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
import torch

from ..arrays.kind import find_integer_range, find_positions
from ..curator.cells import CellReader, find_ambiguous, name_cell, read_cell
from ..curator.containers import PANDAS, Container, cast
from ..curator.dataset import Dataset
from ..curator.record_functions import RecordFunction
from ..curator.texts import PLAIN, TextStyle
from ..format import SAMPLE_BLOCK, Format, check_count
from ..registry import savable
from .columns import Category, Ordinal, Unknown
from .columns.decimals import DECIMALS, DECIMALS_WEIGHT
from .columns.identifier import go_on
from .columns.texts import parse_found
from .encoder import TableEncoder, check_columns, check_dtypes, check_held
from .inference.columns import SchemaInference
from .inference.ranges import find_far
from .marginal_calibration import calibrate_codes
from .rules.draws import RuleDraws
from .rules.feasibility import find_impossible
from .schema import Schema

# A target of so few levels tells records apart: tables that are added up over L levels have √L of
# the noise, and with more of them what is gained is lost (found on Adult).
FEW_LEVELS = 3

# Share of the budget for what a schema leaves open, or for knots alone.
_OPEN_SHARE, _KNOTS_SHARE = 0.2, 0.05
# Under conditions, rows are drawn from at least so many times as many.
_CANDIDATES = 4


@savable
@dataclass(frozen=True)
class TableKind:
    """Columns, dtypes and label of the table that was given to `fit`, in which samples return."""

    names: tuple
    dtypes: dict
    label: object = None
    X: Container = PANDAS
    y: Container | None = None
    # Private, and only until categories are inferred: dtypes that list them.
    listed: dict = field(default_factory=dict)

    @classmethod
    def of(cls, schema, dataset):
        head, y = dataset.head, dataset.label
        names, label = tuple(head.columns), dataset.target
        if y is not None:
            if label is not None:
                raise ValueError("Give y or target, not both.")
            lacking = [name for name in schema if name not in names]
            if len(lacking) != 1:
                raise ValueError(
                    "y must be the one column of the schema that X lacks; X lacks "
                    f"{lacking or 'none'}."
                )
            label = lacking[0]
        elif label is not None and label not in schema:
            raise ValueError(f"target must be a column of the schema; got {label!r}.")
        if label in schema and label not in schema.learnt:
            raise ValueError(
                f"{label!r} is an identifier or derived, and not learnt: it is no target."
            )
        dtypes, listed = {}, {}
        if dataset.has_fixed_dtypes:
            stated = dataset.stated_dtypes | ({} if y is None else {label: y.dtype})
            _refuse_rounding(schema, stated)
            dtypes = _keep_plain(stated)
            read = {**head.dtypes, **({} if y is None else {label: y.read_dtype})}
            listed = {n: dtype for n, dtype in read.items() if _takes_order(schema.get(n), dtype)}
        return cls(names, dtypes, label, dataset.container, y and y.container, listed)

    def without_dtypes(self, names):
        """Return the kind of tables whose columns of these names are handed back as they are."""
        names = set(names)
        return replace(self, dtypes={k: v for k, v in self.dtypes.items() if k not in names})

    @property
    def ordered(self):
        """Names of the columns whose inferred categories have the order that a dtype states."""
        return [name for name, dtype in self.listed.items() if dtype.ordered]

    def put_in_order(self, schema):
        """Return a schema with released categories in the order and type that dtypes state.

        Returns
        -------
        Schema
        TableKind
            Without the categories that are listed, as these are private.
        """
        columns = {name: _put_in_order(schema[name], dtype) for name, dtype in self.listed.items()}
        return schema.replace(columns), replace(self, listed={})

    def give(self, frame):
        """Return a table as one of this kind."""
        for name, dtype in self.dtypes.items():
            if frame[name].dtype != dtype:
                frame[name] = _cast(frame[name], dtype)
        X = self.X.give(frame[list(self.names)])
        return X if self.y is None else (X, self.y.give(frame[self.label]))


@savable
@dataclass(frozen=True)
class TableFormat(Format):
    """Maps tables with a public schema to rows in the unit ball and back.

    Parameters
    ----------
    schema : Schema
        The columns. Those that are open have to be found first: see `settle`.
    kind : TableKind, default=None
        Containers and dtypes of samples.
    texts : dict of str to TextStyle, default=None
        Columns that come as texts, whose kinds were found.
    counted : dict of str to ndarray, default=None
        Of numbers of which cuts were found, how many are between knots, but for noise.
    places : dict of str to ndarray, default=None
        Of those, where knots and cuts are when numbers are drawn; see `even`.
    """

    schema: Schema
    kind: TableKind | None = None
    texts: dict | None = None
    counted: dict | None = None
    places: dict | None = None

    has_blocks = True

    def __post_init__(self):
        # A record without its target counts as absent.
        label = self.kind and self.kind.label
        kind = self.schema.get(label)
        if kind is not None and kind.missing and not kind.is_unknown:
            known = replace(kind, missing=False)
            object.__setattr__(self, "schema", self.schema.replace({label: known}))

    @property
    def found(self):
        return {"schema_": self.schema}

    @property
    def shares(self):
        names = SchemaInference(self.schema).releases
        share = _OPEN_SHARE if self.schema.open_names else _KNOTS_SHARE
        weights = {name: {DECIMALS: DECIMALS_WEIGHT}.get(name, 1.0) for name in names}
        return {name: share * weight / sum(weights.values()) for name, weight in weights.items()}

    def with_even_knots(self):
        """Return the format with even knots where knots would be found."""
        return replace(self, schema=self.schema.with_even_knots())

    @property
    def classes(self):
        levels = None if self.kind is None else self._levels(self.kind.label)
        return None if levels is None else np.array(levels)

    @property
    def n_columns(self):
        """Number of columns of a row."""
        return TableEncoder(self.schema).n_columns

    @property
    def blocks(self):
        """The name of each column, and its columns in rows."""
        return TableEncoder(self.schema).blocks

    @property
    def block_sizes(self):
        """Number of columns of each block."""
        return [where.stop - where.start for _, where in self.blocks]

    @property
    def is_spare(self):
        """Which columns of rows are not generated where their counts are within noise of 0.

        They stand for what is not told apart, missing values and `other`; and for knots far out in
        tails, where noise would outweigh all other values.
        """
        spare = np.zeros(self.n_columns, dtype=bool)
        for name, where in self.blocks:
            kind = self.schema[name]
            if kind.has_knots:
                is_far = find_far(kind.positions)
                spare[where.start : where.start + len(is_far)] = is_far
            spare[where.stop - 1] |= kind.missing
            if kind.other is not None:
                spare[where.start + kind.levels.index(kind.other)] = True
        return spare

    @property
    def is_ordered(self):
        """Whether the levels of each block have an order."""
        kinds = (self.schema[name] for name, _ in self.blocks)
        return [kind.has_knots or kind.is_ordered for kind in kinds]

    @property
    def levels_of_target(self):
        """The levels of the target; none if there is no target, or it is a number or date."""
        return () if self.kind is None else self._levels(self.kind.label) or ()

    @property
    def tells_apart(self):
        """Whether there are tables of the records of each level of the target."""
        return len(self.schema.learnt) > 1 and 1 < len(self.levels_of_target) <= FEW_LEVELS

    def find_impossible(self):
        """Return which pairs of columns of rows the rules leave out, a symmetric matrix of bool.

        Released counts of such a pair are noise: they can be put to 0 by what is public.
        """
        return find_impossible(self.schema.rules, TableEncoder(self.schema).make_blocks())

    def _levels(self, name):
        return getattr(self.schema.get(name), "levels", None)

    # Private tables.

    def check_held(self, table):
        """Refuse columns whose cells no column type holds, by their dtypes."""
        check_held(table, self.schema)

    def check_columns(self, table):
        """Refuse what is no table with just the columns of the schema."""
        check_columns(table, self.schema)

    def check_dtypes(self, table, *, are_stated=False):
        """Refuse columns of which no cell can be as declared, by their dtypes."""
        check_dtypes(table, self.schema, are_stated=are_stated)

    def make_reader(self, stated):
        """Return the `CellReader` of private tables.

        Parameters
        ----------
        stated : sequence of str or None
            Columns that hold texts whatever the cells are: these are categories as they are
            written. None: all cells were read as what is declared.

        Raises
        ------
        ValueError
            If two categories are alike for a reader that may take them for numbers.
        """
        if stated is None:
            styles = (None,) * len(self.schema)
        else:
            styles = tuple(_style_of(n, k, n in stated) for n, k in self.schema.items())
        return CellReader(styles, tuple(self._levels(name) or () for name in self.schema))

    def resolve(self, curator):
        """Find what is open, and return a format that the curator then encodes rows by."""
        if not self.shares:
            return self
        inference = SchemaInference(self.schema, is_told_apart=self.tells_apart)
        schema, kind = self.kind.put_in_order(inference.run(curator))
        kind = kind.without_dtypes(
            name for name in inference.unknown if not isinstance(schema[name], Category)
        )
        settled = TableFormat(schema, kind, inference.unknown, inference.counted)
        curator.prepare(RecordFunction(settled.encode), 1.0)
        return settled

    def refuse(self, X, y=None):
        """Raise an error that names the column if cells are not as the schema declares them."""
        if self.shares:
            SchemaInference(self.schema).refuse(X)
        else:
            TableEncoder(self.schema).encode(self._parse(X))

    def encode(self, X, y=None):
        """Map cells, an array of objects in the order of the schema, to rows; NaN for bad ones."""
        if self.schema.open_names:
            return SchemaInference(self.schema).encode(X)
        return TableEncoder(self.schema).encode_private(self._parse(X))

    def encode_cells(self, X, y=None):
        """Map cells to places in the columns of a schema that leaves nothing open; see `Hats`."""
        return TableEncoder(self.schema).encode_cells(self._parse(X))

    def _parse(self, X):
        table = pd.DataFrame(X, columns=list(self.schema), dtype=object)
        return parse_found(table, self.schema, self.texts or {})

    # Public tables.

    def without_target(self):
        return TableFormat(self.schema.select(list(self.kind.names)), self.kind, self.texts)

    def read_public(self, estimator, X):
        dataset = Dataset(X).validate_table(estimator, self, reset=False)
        return dataset.reader(dataset.release_ownership()[0])

    def calibrate_marginals(self, generate):
        generator = torch.Generator().manual_seed(0)
        places = calibrate_codes(
            TableEncoder(self.schema).make_blocks(),
            self.counted or {},
            lambda n_rows: generate(torch.zeros(n_rows, dtype=torch.int64), generator),
        )
        return replace(self, places=places, counted=None)

    def sample(self, generate, shares, n_samples, *, y, where, noise):
        encoder, label = TableEncoder(self.schema, self.places), self.kind.label
        conditions = encoder.find_conditions({} if where is None else where)
        if y is not None and label in conditions:
            raise ValueError(f"y and where both ask for levels of {label!r}; give one of them.")
        noise.torch_generator()  # the stream of the classes, which here are drawn with the rows
        generator, public = noise.torch_generator(), noise.public_generator()

        used = {}

        def draw(n_rows, conditions):
            def make_rows(n_rows):
                return _generate_where(generate, n_rows, conditions, generator, public)

            if not self.schema.rules:
                return encoder.draw(make_rows(n_rows), public, conditions)
            draws = RuleDraws(self.schema, encoder.make_blocks(), conditions, used)
            return encoder.assemble(draws.draw(make_rows, n_rows, public), n_rows, public)

        if y is None:
            return self.kind.give(draw(check_count(n_samples), conditions))
        positions, parts = find_positions(y, self.classes), []
        for position in np.unique(positions):
            asked = encoder.find_conditions({label: self.classes[position]})
            chosen = np.flatnonzero(positions == position)
            parts.append(draw(len(chosen), conditions | asked).set_index(chosen))
        rows = pd.concat(parts).sort_index().reset_index(drop=True)
        # Each part numbers its own rows.
        return self.kind.give(go_on(rows, self.schema, 0))


def _style_of(name, kind, is_stated):
    """Return how the texts of a column are read; None if they stay as they are."""
    if kind.expected_text is not None:
        return TextStyle(expected=kind.expected_text)
    if is_stated:
        return None
    pair = find_ambiguous(getattr(kind, "levels", None) or ())
    if pair is not None:
        raise ValueError(
            f"Column {name!r} has categories {pair[0]!r} and {pair[1]!r}, which readers of files "
            "may turn into the same value. Give the table in memory with a string dtype, or "
            "declare one of them."
        )
    return kind if kind.is_unknown else PLAIN


def declare(schema, dataset):
    """Return the schema of a table: as it was given, or, for ``"private"``, of open columns."""
    if isinstance(schema, Schema):
        return schema
    if not dataset.has_public_dtypes:
        # Readers choose the dtypes of a chunk by its cells, which are private.
        return Schema(dict.fromkeys(dataset.head, Unknown()))
    dtypes, label = dict(dataset.head.dtypes), dataset.label
    if label is not None:
        dtype = np.dtype(object) if label.dtype is None else label.read_dtype
        dtypes[label.name or "target"] = dtype
    return Schema.from_dtypes(dtypes)


def _refuse_rounding(schema, dtypes):
    """Refuse rules about numbers that would be rounded when they are handed back."""
    for rule in schema.rules:
        for name in rule.names:
            kind, dtype = schema[name], dtypes.get(name)
            if getattr(kind, "decimals", 0) is None and getattr(dtype, "kind", "O") in "iu":
                raise ValueError(
                    f"Column {name!r} holds integers: declare it with decimals=0, as {rule!r} is "
                    "about it."
                )


def _generate_where(generate, n_rows, conditions, generator, public):
    """Generate rows; under conditions, drawn from many in proportion to how likely they are.

    Given its code, a row's columns are independent: the probability of the conditions is a
    product, and the other columns do not change.
    """

    def make(n_rows):
        return generate(torch.zeros(n_rows, dtype=torch.int64), generator)

    sizes = [min(SAMPLE_BLOCK, n_rows - start) for start in range(0, n_rows, SAMPLE_BLOCK)]
    if not conditions:
        return np.concatenate([make(size) for size in sizes])
    parts = []
    for size in sizes:
        n_blocks = -(-_CANDIDATES * size // SAMPLE_BLOCK)
        rows = np.concatenate([make(SAMPLE_BLOCK) for _ in range(n_blocks)])
        likely = np.prod([c.probability(rows) for c in conditions.values()], axis=0)
        if not likely.sum() > 0:
            raise ValueError("No rows were generated for which where=... could hold.")
        parts.append(rows[public.choice(len(rows), size, p=likely / likely.sum())])
    return np.concatenate(parts)


def _keep_plain(dtypes):
    """Leave out dtypes that say more than a type.

    A categorical one holds private categories, a sparse one a cell, and NumPy's of texts the length
    of the longest.
    """
    return {
        name: dtype
        for name, dtype in dtypes.items()
        if dtype is not None
        and not isinstance(dtype, pd.CategoricalDtype | pd.SparseDtype)
        and not (isinstance(dtype, np.dtype) and dtype.kind in "US")
    }


# Columns of categories of which nothing is declared.
_INFERRED = Category(), Category(missing=True)


def _takes_order(kind, dtype):
    """Whether categories of a column are inferred whose order or type a dtype states."""
    if not isinstance(dtype, pd.CategoricalDtype) or kind not in _INFERRED:
        return False
    return dtype.ordered or dtype.categories.dtype.kind in "iuf"


def _put_in_order(kind, dtype):
    """Return a column of released categories in the order, and of the type, of a dtype.

    The dtype lists all categories, released or not. The result depends on the released ones alone,
    given the order of each two of them; the certificate states that this is public.
    """
    if kind.categories == (kind.other,):
        return kind
    listed, positions = dtype.categories.tolist(), {}
    for i, category in enumerate(listed):
        for name in (name_cell(category), name_cell(read_cell(category, PLAIN))):
            positions.setdefault(name, i)
    found = sorted(kind.categories, key=lambda name: positions.get(name, len(listed)))
    if dtype.categories.dtype.kind in "iuf":
        found = [listed[positions[name]] for name in found]
    # Neither an order nor a type of numbers has a place for "other".
    return (Ordinal if dtype.ordered else Category)(found, missing=kind.missing)


def _cast(column, dtype):
    """Give a column the dtype that it had in the private table, where that can hold it."""
    if getattr(dtype, "kind", "O") in "iu" and column.dtype.kind in "if":
        least, most = find_integer_range(dtype)
        if column.dtype.kind == "f":
            column = column.round().clip(least, most)
        elif not column.dropna().between(least, most).all():
            # Identifiers that are clipped would no longer be different.
            return column
    return cast(column, dtype)
