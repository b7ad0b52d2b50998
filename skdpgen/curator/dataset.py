# SPDX-License-Identifier: BSD-3-Clause
"""Private datasets at the trust boundary: their public facts, and ownership of their rows.

A fit runs Dataset → Format → Plan → Curator → Release. `Dataset.of` adapts whatever users pass;
a format and a plan follow from the public facts; `open_curator` takes the rows.
"""

from dataclasses import replace
from itertools import compress

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_feature_names, _check_n_features

from ..accounting.plan import Plan
from ..data.cells import CellReader, FrameCells
from ..data.containers import Container, adapt, adapt_column, find_record_shape, take_names
from ..data.dtypes import list_text_columns, read_frame
from ..data.labels import Label, check_order, join_label
from ..exceptions import TableError, warn_of_index
from .chunks import TableInParts, adapt_table
from .persons import NO_IDENTIFIER, UNKNOWN_COLUMN, Persons, check_persons

# Assumption of a certificate where a reader chose the dtypes of chunks. Each cell that
# `pandas.read_csv` makes by default has one canonical form; of other readers nothing is known.
_READ_ALIKE = (
    "the function of chunks gives of each record what follows from that record alone, but for what "
    "pandas.read_csv chooses by default: its options for numbers, booleans and dates may read a "
    "cell by those beside it, and so may identifiers from 2^53 on that are no texts"
)

_FOUND_NAMES = "the names of columns of records, which are those that any record has, are public"

_UNTYPED = "whether y, a list without a dtype, holds numbers or classes is public"


class Dataset:
    """Private rows on their way from a user to a curator, and the public facts about them.

    Attributes
    ----------
    n_records : int or None
        Number of records or, if persons were given, of these: what is public. None until validated.
    n_columns : int or None
        Columns of an array, once validated.
    record_shape : tuple of int or None
        Shape of a record of an array of three or four dimensions.
    columns : Index or None
        Column names of a table in memory.
    dtypes : list
        Dtypes of its columns, or that of an array, as the container states them; None for one that
        has none.
    label : Label or None
        Public facts about `y`; None if there is none.
    target : str or None
        The column whose levels samples can be drawn for.
    classes : ndarray or None
        The possible labels; None where there are none.
    has_number : bool
        Whether `y` holds numbers.
    reader : CellReader or None
        Brings cells of a table into canonical form; None for arrays of numbers.
    max_rows : int or None
        How many rows of a person count; None for records.
    is_in_parts : bool
        Whether the table comes in chunks or partitions.
    has_fixed_dtypes : bool
        Whether all rows have the dtypes of `head`.
    has_public_dtypes : bool
        Whether the dtypes of `head` are public, rather than chosen by the cells of a chunk.

    Examples
    --------
    >>> import pandas as pd
    >>> dataset = Dataset.of(pd.DataFrame({"age": [31, 62]}), target="age")
    >>> dataset.head.dtypes.to_dict(), dataset.is_in_parts
    ({'age': dtype('int64')}, False)
    """

    def __init__(
        self,
        X,
        y=None,
        persons=None,
        *,
        target=None,
        max_rows: int | None = None,
        may_be_empty: bool = False,
    ):
        check_order(X, y, "y")
        if isinstance(X, torch.utils.data.Dataset | torch.utils.data.DataLoader):
            from ..data.array_parts import read_dataset

            adapted, y = read_dataset(X, y)
        else:
            adapted = adapt(X)
        X, self._container, self.dtypes = adapted
        self._person_column = persons if isinstance(persons, str) else None
        if persons is not None:
            X, persons = self._split_persons(X, persons)
        # In a list, so that whoever takes the rows can also remove them here.
        self._held = [(X, y, persons)]
        self.target, self.max_rows = target, max_rows
        self._may_be_empty = may_be_empty
        self.label = None if y is None else Label.of(y)
        is_frame = isinstance(X, pd.DataFrame)
        self.columns = X.columns if is_frame else None
        self.record_shape = find_record_shape(X)
        self.is_in_parts = isinstance(X, TableInParts)
        self.has_fixed_dtypes = getattr(X, "has_fixed_dtypes", True)
        self.has_public_dtypes = self.has_fixed_dtypes or X.states_dtypes
        self.may_hold_arrays = getattr(X, "may_hold_arrays", False)
        self._assumed = getattr(X, "assumptions", ())
        self.n_records: int | None = None
        self.n_columns: int | None = None
        self.classes: np.ndarray | None = None
        self.has_number = self._is_inferred = False
        self._ordered: list = []
        self._has_found_names = self._is_untyped = False
        # An array of objects may hold any cells; `list_refusals` states what this means.
        self._has_objects = not is_frame and self.dtypes == [np.dtype(object)]
        self.reader: CellReader | None = None

    @classmethod
    def of(
        cls,
        X,
        y=None,
        *,
        target=None,
        persons=None,
        max_rows: int | None = None,
        may_be_empty: bool = False,
    ) -> "Dataset":
        """Adapt an array, a DataFrame, a function of chunks, a file, or the table of an engine.

        Parameters
        ----------
        X, y, target, persons
            As passed to ``fit``.
        max_rows : int, default=None
            Rows of a person that count. None: records are protected, not persons.
        may_be_empty : bool, default=False
            Whether there may be no row of a person, whose number is then private.

        Raises
        ------
        ValueError
            If the identifiers of persons cannot belong to the rows.
        """
        options = {"target": target, "max_rows": max_rows, "may_be_empty": may_be_empty}
        return cls(adapt_table(X), y, persons, **options)

    # A pickle or a copy would be a second place with private rows, outside of the curator's
    # control.
    def __getstate__(self):
        raise TypeError("Private records cannot be pickled or copied.")

    def _split_persons(self, X, persons):
        """Return the data without identifiers of persons, and these."""
        is_in_parts, is_column = isinstance(X, TableInParts), isinstance(persons, str)
        if is_in_parts and not is_column:
            raise ValueError(
                "Rows of chunks, and of a Dask or Spark table, have no positions: persons must be "
                "the name of the column that identifies the person of each row."
            )
        if is_in_parts:
            return X.by_person(persons), None
        if not is_column:
            persons = adapt_column(persons).data
            check_persons(X, persons)
            return X, persons
        if persons not in getattr(X, "columns", ()):
            raise ValueError(UNKNOWN_COLUMN)
        is_other = X.columns != persons
        # Dtypes are public and listed by column, so that of identifiers is dropped with it.
        self.dtypes = list(compress(self.dtypes, is_other))
        return X.loc[:, is_other], X[persons]

    @property
    def n_classes(self) -> int:
        """Number of classes; 1 where there are none."""
        return 1 if self.classes is None else len(self.classes)

    @property
    def container(self) -> Container:
        """The container of `X`, or of its parts."""
        return getattr(self._held[0][0], "container", self._container)

    @property
    def head(self) -> pd.DataFrame:
        """The table without rows: column names are public, and see `has_public_dtypes`."""
        return read_frame(self._stated_head)

    @property
    def stated_dtypes(self) -> dict:
        """Dtypes of the columns of a table and of `y`, by name, as their containers state them."""
        head = self._stated_head
        dtypes = list(head.dtypes) if self.is_in_parts else self.dtypes
        return getattr(self._held[0][0], "stated_dtypes", dict(zip(head, dtypes, strict=True)))

    @property
    def _stated_head(self):
        X = self._held[0][0]
        head = X.head if self.is_in_parts else X
        # The type's name only: a repr would print cells.
        if not isinstance(head, pd.DataFrame):
            raise ValueError(f"With a schema, X must be a DataFrame; got {type(head).__name__}.")
        return head.iloc[:0]

    def take_columns(self, names, *, are_declared: bool) -> None:
        """Take the columns of records by their names; other containers state theirs.

        Parameters
        ----------
        names : iterable of str
        are_declared : bool
            Whether they are those of a declared schema, rather than of the records.
        """
        # Chunks state their container in their first reading.
        if self.is_in_parts and not self.has_fixed_dtypes:
            self._held[0][0].head  # noqa: B018
        if self.container.library != "records":
            return
        X, y, persons = self._held[0]
        names = [name for name in names if self.label is None or name != self.label.name]
        self._has_found_names = not are_declared
        if self.is_in_parts:
            X = X.take_columns(names)
        else:
            X = take_names(X, names)
            self.columns, self.dtypes = X.columns, [np.dtype(object)] * len(names)
        self._held[0] = X, y, persons

    def list_text_columns(self, names) -> list[str]:
        """Return those of some columns that hold texts whatever the cells are."""
        found = list_text_columns(self._held[0][0], self.head)
        if found is None:
            return list(names)
        if self.label is not None and isinstance(self.label.read_dtype, pd.StringDtype):
            found = [*found, *(name for name in names if name not in self.head)]
        return [name for name in names if name in found]

    def validate_array(
        self,
        estimator: BaseEstimator,
        classes=None,
        *,
        are_numbers: bool = False,
        reset: bool = True,
    ) -> "Dataset":
        """Check the public facts of an array of numbers, and of its labels.

        Parameters
        ----------
        estimator : estimator
            Gets ``n_features_in_`` and ``feature_names_in_``.
        classes : array-like, default=None
            The declared labels.
        are_numbers : bool, default=False
            Whether `y`, if it is a list, holds numbers.
        reset : bool, default=True
            Whether to set the estimator's attributes rather than compare with them.

        Returns
        -------
        self : Dataset
        """
        from ..data.inputs import check_labels, check_rows

        # Popped, not read: after an error in a check no rows are left here.
        X, y, persons = self._held.pop()
        chunks = None
        if self.may_hold_arrays and persons is None and y is None:
            from ..data.array_parts import describe_chunks

            described = describe_chunks(X.call, classes)
            X, y, self._container, self.dtypes, self.label, chunks = described
            self.record_shape = find_record_shape(X)
            self.has_public_dtypes = True
        if isinstance(X, TableInParts):
            raise ValueError(
                "X comes in chunks or from an engine, and only a generator with a schema reads "
                "such tables: give it schema='private', which infers columns and pays for that, "
                "or schema=Schema(...) with the public facts."
            )
        if self.target is not None:
            raise ValueError(
                "target=... names a column of a table, and X is taken for an array: give y."
            )
        X = check_rows(estimator, X, reset=reset)
        # By shapes and dtypes, but for inferred classes, which are stated as an assumption.
        checked = check_labels(y, len(X), classes, are_numbers=are_numbers)
        y, self.classes, self._is_inferred = checked
        self._is_untyped = self.label is not None and self.label.dtype is None
        self._is_untyped &= classes is None and not are_numbers
        self.n_columns = X.shape[1]
        self.has_number = y is not None and self.classes is None
        self._has_objects = X.dtype == object
        rows, labels = (X, y) if chunks is None else (chunks, None)
        self._hold(rows, labels, persons, len(X))
        return self

    def validate_table(self, estimator: BaseEstimator, format, *, reset: bool = True) -> "Dataset":
        """Check the public facts of a table, and take its cells in the order of the schema.

        Whether cells are as declared is decided when they are encoded.

        Parameters
        ----------
        estimator : estimator
            Gets ``n_features_in_`` and ``feature_names_in_``.
        format : TableFormat
        reset : bool, default=True
            Whether to set these attributes rather than compare with them.

        Returns
        -------
        self : Dataset
        """

        def read(table):
            format.check_columns(table)
            # In the order of the schema: cells are then known by position.
            return FrameCells(read_frame(table)[list(format.schema)])

        X, y, persons = self._held.pop()
        if self._person_column in format.schema:
            raise TableError(
                f"The schema declares {self._person_column!r}, which identifies persons and is not "
                f"synthesized. Give schema.drop({self._person_column!r})."
            )
        if not reset:
            _check_feature_names(estimator, X.head if self.is_in_parts else X, reset=False)
        if isinstance(X, TableInParts):
            if y is not None:
                raise ValueError("Chunks of a table hold all of its columns; give target, not y.")
            head = table = read_frame(X.head)
            format.check_columns(head)
            # Readers choose none of these by cells: they are the code's.
            format.check_held(head)
            if X.has_fixed_dtypes:
                format.check_dtypes(head, are_stated=X.states_dtypes)
            X = X.check_fit(format, estimator)
            cells, n_rows, persons = X.map_parts(read)
        else:
            if reset:
                warn_of_index(X, persons)
            head, table = X, X if y is None else join_label(X, y, format.layout.label)
            cells, n_rows = read(table), len(table)
            format.check_held(table)
            format.check_dtypes(table)
        if reset:
            _check_feature_names(estimator, head, reset=True)
        _check_n_features(estimator, head, reset=reset)
        self._ordered = [] if format.layout is None else format.layout.ordered
        self.reader = format.make_reader(list_text_columns(X, table))
        self._hold(cells, None, persons, n_rows)
        return self

    def validate_persons(self) -> "Dataset":
        """Check the identifiers of a table that has no other columns.

        Returns
        -------
        self : Dataset
        """
        X, y, persons = self._held.pop()
        self.reader = CellReader((), ())
        if isinstance(X, TableInParts):
            cells, n_rows, persons = X.map_parts(FrameCells)
            self._hold(cells, y, persons, n_rows)
        else:
            self._hold(FrameCells(X), y, persons, len(X))
        return self

    def _hold(self, X, y, persons, n_rows):
        if persons is not None and not isinstance(persons, Persons):
            # Identifiers of chunks come as `Persons` already, since the first reading finds all of
            # them.
            persons = Persons(persons, may_be_none=True)
            persons.check_length(n_rows)
        self.database = X if hasattr(X, "add_products") else None
        # The number of units, which is public, and that of rows for persons is not.
        self.n_records = n_rows if persons is None else persons.n_persons
        # A spent iterator, or what reads one, would be found out after the plan is paid for.
        is_spent = self.may_hold_arrays and next(iter(X()), None) is None
        if is_spent and (self.n_records or not self._may_be_empty):
            raise TableError(
                "X has no rows when the function that gives its chunks is called again: it must "
                "return a fresh iterator each time, as lambda: iter(chunks) does of a list."
            )
        if self.n_records == 0 and not self._may_be_empty:
            has_persons = persons is not None or getattr(X, "person_column", None) is not None
            if n_rows == 0 and not has_persons:
                raise TableError("The table has no rows.")
            raise ValueError(NO_IDENTIFIER)
        self._held.append((X, y, persons))

    def release_ownership(self) -> tuple:
        """Return the rows, once; from then on they are not held here.

        Returns
        -------
        X, y : object
            Rows and labels for a `RecordSource`.
        persons : Persons or None
        """
        return self._held.pop()

    def cover(self, plan: Plan) -> Plan:
        """Return the plan as these records allow it.

        With inferred classes, it is not local.

        Parameters
        ----------
        plan : Plan
        """
        # Inferred classes: somebody saw all labels before any client could noise one.
        return replace(plan, local=plan.local and not self._is_inferred)

    def list_assumptions(self, strict: bool) -> tuple[str, ...]:
        """List what a certificate assumes because of how the records were given.

        Parameters
        ----------
        strict : bool
            Whether bad records are refused.

        Returns
        -------
        tuple of str
        """
        inferred = ("the set of classes, inferred from y, is public",) * self._is_inferred
        alike = (_READ_ALIKE,) * (not self.has_public_dtypes)
        names = (_FOUND_NAMES,) * self._has_found_names + (_UNTYPED,) * self._is_untyped
        refusals = list_refusals(strict, self._has_objects)
        order = f"the order of categories that dtypes state is public, in {self._ordered}"
        ordered = (order,) * bool(self._ordered)
        return (*inferred, *names, *ordered, *alike, *refusals, *self._assumed)


def list_refusals(strict: bool, has_objects: bool = False) -> tuple[str, ...]:
    """List what a certificate assumes where a fit may refuse rows because of their cells.

    Parameters
    ----------
    strict : bool
        Whether bad records are refused.
    has_objects : bool, default=False
        Whether the dtype of an array does not say that its cells are numbers.

    Returns
    -------
    tuple of str

    Examples
    --------
    >>> list_refusals(strict=False)
    ()
    """
    if not (strict or has_objects):
        return ()
    valid = "every record is valid: with strict=True others"
    if not strict:
        valid = "all cells of X, which is of dtype object, are numbers: others"
    return (f"{valid} are refused, and whether a fit was refused is outside of ε",)
