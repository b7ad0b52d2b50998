"""Rows, labels and persons of all containers and dtypes, with cells that are easy to find again."""

import datetime
import decimal
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from hypothesis import strategies as st
from scipy import sparse

from .markers import DATE, NUMBER, TEXT, WHOLE

_DTYPES = ("f8", "f8", "f8", "f4", "f2", "g", ">f8", "i8", "i1", "u1", "u8", "?", "c16", "O", "O")
_DTYPES += ("U9", "S9", "M8[s]", "m8[s]")
_CONTAINERS = (
    *("array",) * 8,
    *("frame",) * 5,
    *("list", "list", "tuples", "arrays", "ragged"),
    *("fortran", "strided", "readonly", "matrix", "masked", "structured", "subclass"),
    *("sparse", "sparse frame", "torch", "torch with gradients", "bfloat16"),
    *("generator", "function", "none", "text", "number", "1d", "3d", "0d", "series", "set", "dict"),
)
_COLUMNS = ("f8", "f4", "i8", "?", "Int64", "Float64", "boolean", "category", "O", "string")
_COLUMNS += ("datetime", "zone", "period", "timedelta", "interval", "sparse", "complex", "texts")
# Values of cells; the last ones, where a dtype says nothing of cells.
_FLOATS = (np.nan, np.inf, -np.inf, 1e308, -1e308, -0.0, 5e-324, NUMBER, float(WHOLE), 1e16)
OBJECTS = (
    *(TEXT, f"{TEXT}\ud800", f"\0{TEXT}", f"{NUMBER}", "", " ", "nan", "1e999", TEXT.encode()),
    *(None, pd.NA, pd.NaT, np.nan, NUMBER, WHOLE, 10**400, True, np.bool_(False), 1j),
    *(decimal.Decimal("31415.926535897"), decimal.Decimal("sNaN"), DATE, DATE.date()),
    *([TEXT], (TEXT, NUMBER), {"a": TEXT}, {TEXT}, np.array([NUMBER, 1]), pd.Series([NUMBER])),
    *(np.datetime64("1987-06-05"), np.timedelta64(5, "D"), pd.Timestamp(DATE, tz="UTC"), DATE.time),
    *(datetime.timedelta(5), pd.Interval(0, 1), pd.Period("1987-06", "M"), Ellipsis, object),
)


class Hostile:
    """A cell of which each use fails, and quotes it."""

    def _fail(self, *args):
        raise RuntimeError(TEXT)

    __eq__ = __hash__ = __float__ = __str__ = __bool__ = __array__ = __lt__ = _fail

    def __repr__(self):
        return TEXT


class Marked(np.ndarray):
    """An array of a class of its own."""


@dataclass(frozen=True)
class Rows:
    """How rows are made; see `make`."""

    container: str
    dtype: str
    shape: tuple
    columns: tuple = ()
    names: tuple = ()
    cells: tuple = ()

    @property
    def says_numbers(self):
        """Whether a dtype says that all cells are numbers."""
        if self.container == "frame":
            return set(self.columns) <= {"f8", "f4", "i8", "?", "Int64", "Float64", "boolean"}
        given = ("array", "fortran", "strided", "readonly", "subclass", "torch")
        return self.container in given and np.dtype(self.dtype).kind in "fiub"

    def make(self, is_benign=False):
        """Return the rows; benign ones have the same of all that is public."""
        n, d = self.shape
        rng = np.random.RandomState(n * 31 + d)
        if self.container == "frame":
            return self._frame(n, is_benign)
        array = _cast(rng.uniform(size=(n, d)), self.dtype)
        if not is_benign:
            for i, j, cell in self.cells:
                _put(array, i, j, cell)
        return _CONTAIN.get(self.container, lambda array: array)(array)

    def _frame(self, n, is_benign):
        columns = []
        for j, kind in enumerate(self.columns):
            cells = [cell for _, column, cell in self.cells if column % len(self.columns) == j]
            columns.append(make_column(kind, n, [] if is_benign else cells))
        frame = pd.concat(columns, axis=1) if columns else pd.DataFrame(index=range(n))
        return frame.set_axis(list(self.names[: len(columns)]), axis=1)


def _cast(array, dtype):
    kind = np.dtype(dtype).kind
    if kind in "iu":
        array = array * 9
    if kind in "Mm":
        return (array * 1e6).astype("i8").astype(dtype)
    return array.astype(dtype)


def _put(array, i, j, cell):
    """Set a cell, if the array can hold it."""
    if array.size:
        try:
            with np.errstate(all="ignore"):
                array[i % array.shape[0], j % array.shape[1]] = cell
        except Exception:
            pass


def _structured(array):
    return np.array([tuple(row) for row in array], dtype=[("a", array.dtype), ("b", array.dtype)])


def _torch(dtype=None, **options):
    def make(array):
        try:
            return torch.tensor(array.tolist(), dtype=dtype or torch.float64, **options)
        except Exception:
            return torch.zeros(array.shape, dtype=dtype, **options)

    return make


_CONTAIN = {
    "list": lambda array: array.tolist(),
    "tuples": lambda array: tuple(map(tuple, array.tolist())),
    "arrays": list,
    "ragged": lambda array: [row.tolist()[: 1 + i % 2] for i, row in enumerate(array)],
    "fortran": np.asfortranarray,
    "strided": lambda array: np.repeat(array, 2, axis=0)[::2],
    "readonly": lambda array: (array.setflags(write=False), array)[1],
    "matrix": lambda array: np.asmatrix(array),
    "masked": lambda array: (
        np.ma.masked_array(array, mask=np.arange(array.size) == 1)
        if array.ndim == 1
        else np.ma.masked_array(array, mask=np.zeros(array.shape, dtype=bool))
    ),
    "structured": lambda array: _structured(array[:, [0, 0]]) if array.size else array,
    "subclass": lambda array: array.view(Marked),
    "sparse": lambda array: sparse.csr_matrix(array.astype("f8") if array.dtype != "O" else 2),
    "sparse frame": lambda array: pd.DataFrame.sparse.from_spmatrix(
        sparse.csr_matrix(np.ones(array.shape))
    ),
    "torch": _torch(),
    "torch with gradients": _torch(requires_grad=True),
    "bfloat16": _torch(torch.bfloat16),
    "generator": iter,
    "function": lambda array: lambda: iter([array]),
    "none": lambda array: None,
    "text": lambda array: TEXT,
    "number": lambda array: NUMBER,
    "1d": lambda array: array[:, 0] if array.shape[1] else array[:, :0].ravel(),
    "3d": lambda array: array[None],
    "0d": lambda array: np.array(NUMBER),
    "series": lambda array: pd.Series(array.ravel()),
    "set": lambda array: {TEXT},
    "dict": lambda array: {"a": array},
}


def make_column(kind, n, cells=()):
    """Return a column of n cells of a kind, the first of which are the given ones if it can be."""
    numbers = np.random.RandomState(n).uniform(size=n)
    if kind in ("O", "texts"):
        column = pd.Series(np.where(numbers < 0.5, "A", "B").astype(object))
        if kind == "O":
            column = pd.Series(list(numbers), dtype=object)
        values = column.to_numpy(dtype=object).copy()
        for i, cell in enumerate(cells[:n]):
            values[i] = cell
        return pd.Series(values, dtype=object)
    made = {
        "category": lambda: pd.Series(pd.Categorical(np.where(numbers < 0.5, "A", TEXT))),
        "string": lambda: pd.Series(np.where(numbers < 0.5, "A", TEXT), dtype="string"),
        "datetime": lambda: pd.Series(pd.to_datetime("1987-06-05") + _days(n)),
        "zone": lambda: pd.Series(pd.to_datetime("1987-06-05").tz_localize("UTC") + _days(n)),
        "period": lambda: pd.Series(pd.period_range("1987-06", periods=n, freq="M")),
        "timedelta": lambda: pd.Series(_days(n)),
        "interval": lambda: pd.Series(pd.interval_range(0, max(n, 1))[:n]),
        "sparse": lambda: pd.Series(pd.arrays.SparseArray(numbers)),
        "complex": lambda: pd.Series(numbers + 1j),
    }
    if kind in made:
        return made[kind]()
    column = pd.Series(numbers.round() if kind in ("Int64", "boolean") else numbers)
    column = column.astype({"?": "bool"}.get(kind, kind))
    for i, cell in enumerate(cells[:n]):
        try:
            changed = column.copy()
            changed.iloc[i] = cell
            column = changed if changed.dtype == column.dtype else column
        except Exception:
            pass
    return column


def _days(n):
    return pd.to_timedelta(np.arange(n), "D")


def _cells(values, n=3):
    return st.lists(
        st.tuples(st.integers(0, 30), st.integers(0, 4), st.sampled_from(values)), max_size=n
    ).map(tuple)


_NAMES = ("a", "b", "c", "d", "e")
_ODD_NAMES = (
    ("a", "a", "a", "a", "a"),
    (0, 1, 2, 3, 4),
    ("a", 1, 2, 3, 4),
    ("", " ", "\0", "é", "x"),
)
_ODD_NAMES += ((None, "b", "c", "d", "e"), (("a", 1), ("a", 2), ("b", 1), ("b", 2), ("b", 3)))


PLAIN = Rows("array", "f8", (6, 3))


@st.composite
def rows(draw, containers=_CONTAINERS, dtypes=_DTYPES, sizes=(0, 1, 2, 6, 12, 12, 12, 30)):
    """Draw `Rows`, most of them of usual shapes and dtypes."""
    container = draw(st.sampled_from(containers))
    n, d = draw(st.sampled_from(sizes)), draw(st.sampled_from((3, 3, 3, 1, 2, 5, 0)))
    dtype = draw(st.sampled_from(dtypes))
    columns = names = ()
    if container == "frame":
        few = _COLUMNS[:3] if draw(st.booleans()) else _COLUMNS
        columns = tuple(draw(st.lists(st.sampled_from(few), min_size=d, max_size=d)))
        odd = draw(st.integers(0, 5)) == 0
        names = draw(st.sampled_from(_ODD_NAMES)) if odd else _NAMES
    has_objects = dtype == "O" or "O" in columns or "texts" in columns
    cells = draw(_cells((*_FLOATS, *OBJECTS) if has_objects else _FLOATS))
    return Rows(container, dtype, (n, d), columns, names, cells)


@dataclass(frozen=True)
class Labels:
    """How labels or numbers beside rows, or persons, are made."""

    kind: str
    off: int = 0
    cells: tuple = ()

    def make(self, n):
        n = max(0, n + self.off)
        codes = np.arange(n) % 2
        made = _LABELS[self.kind](codes, n)
        if isinstance(made, np.ndarray) and made.ndim == 1 and made.dtype.kind in "fO":
            for i, _, cell in self.cells:
                _put(made[:, None], i, 0, cell)
        return made


_LABELS = {
    "none": lambda codes, n: None,
    "ints": lambda codes, n: codes,
    "bools": lambda codes, n: codes == 1,
    "texts": lambda codes, n: np.array(["A", "B"])[codes],
    "objects": lambda codes, n: np.array(["A", "B"], dtype=object)[codes],
    "numbers": lambda codes, n: np.linspace(0, 1, n),
    "list": lambda codes, n: codes.tolist(),
    "list of texts": lambda codes, n: np.array(["A", "B"])[codes].tolist(),
    "mixed list": lambda codes, n: [TEXT if code else NUMBER for code in codes],
    "series": lambda codes, n: pd.Series(codes, name="label"),
    "categorical": lambda codes, n: pd.Series(pd.Categorical(np.array(["A", "B"])[codes])),
    "nullable": lambda codes, n: pd.Series(codes, dtype="Int64"),
    "strings": lambda codes, n: pd.Series(np.array(["A", "B"])[codes], dtype="string"),
    "frame": lambda codes, n: pd.DataFrame({"y": codes}),
    "column": lambda codes, n: codes[:, None],
    "wide": lambda codes, n: np.column_stack([codes, codes]),
    "dates": lambda codes, n: np.datetime64("1987-06-05") + codes,
    "complex": lambda codes, n: codes + 1j,
    "many": lambda codes, n: np.arange(WHOLE, WHOLE + 200)[:n],
    "secret": lambda codes, n: np.array([TEXT] * n, dtype=object),
    "missing": lambda codes, n: np.full(n, np.nan),
    "lists": lambda codes, n: [[TEXT]] * n,
    "sparse": lambda codes, n: sparse.csr_matrix(codes[:, None]),
    "torch": lambda codes, n: torch.as_tensor(codes),
    "text": lambda codes, n: TEXT,
    "number": lambda codes, n: NUMBER,
    "generator": lambda codes, n: iter(codes),
    "set": lambda codes, n: {TEXT},
    "persons": lambda codes, n: np.array([f"{TEXT}{i // 2}" for i in range(n)], dtype=object),
    "mixed persons": lambda codes, n: [[1, TEXT, None, 2.5, b"x"][i % 5] for i in range(n)],
    "hostile": lambda codes, n: [Hostile() for _ in range(n)],
}
NOBODY = Labels("none")
_USUAL = ("ints", "bools", "texts", "objects", "numbers", "series", "categorical", "list")


@st.composite
def labels(draw, usual=_USUAL, none=3):
    """Draw `Labels`: none, usual ones, or any."""
    which = draw(st.integers(0, 9))
    kinds = ("none",) if which < none else usual if which < 8 else tuple(_LABELS)
    off = draw(st.sampled_from((0,) * 12 + (-1, 1)))
    return Labels(draw(st.sampled_from(kinds)), off, draw(_cells((*_FLOATS, *OBJECTS), 2)))
