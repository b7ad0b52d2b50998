"""Cases of tables: a schema, cells of any type, and calls of a fit."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from skdpgen import Identifier, Schema, Unknown
from skdpgen.tables import (
    Boolean,
    Category,
    Combinations,
    Date,
    Derived,
    Implies,
    Number,
    Ordered,
    Ordinal,
    Unique,
)

from .estimators import ODD, Estimator, estimators, evaluate, expressions
from .fits import WORDS
from .markers import NUMBER, TEXT
from .oracle import Call, check_fitted, check_stored, fault_if, judge
from .rows import NOBODY, OBJECTS, Labels, labels

KINDS = {
    "number": lambda: Number(0, 10),
    "knots": lambda: Number(0, 10, n_knots=4, missing=True),
    "whole": lambda: Number(0, 10, decimals=0, missing=True),
    "atoms": lambda: Number(0, 10, n_knots=3, atoms=[0, -999]),
    "cuts": lambda: Number(0, 10, n_knots=3, cuts=[1, 2, 9]),
    "symlog": lambda: Number(-5, 1e6, n_knots=4, scale="symlog"),
    "huge": lambda: Number(-1e300, 1e300, n_knots=3),
    "tiny": lambda: Number(0, 1e-300, n_knots=3),
    "open": lambda: Number(),
    "open whole": lambda: Number(decimals=0, missing=True),
    "texts": lambda: Category(["A", "B"]),
    "other": lambda: Category(["A", "B"], other="C", missing=True),
    "codes": lambda: Category([1, 2]),
    "odd levels": lambda: Category(["", " A ", "NA", "\0", "é"]),
    "surrogate": lambda: Category(["A", "\ud800"]),
    "open category": lambda: Category(missing=True),
    "ordinal": lambda: Ordinal(["A", "B"]),
    "boolean": lambda: Boolean(missing=True),
    "date": lambda: Date("1980-01-01", "2020-01-01", n_knots=3, missing=True),
    "time": lambda: Date("1980-01-01", "2020-01-01", unit="second", n_knots=3),
    "zone": lambda: Date("1980-01-01", "2020-01-01", n_knots=3, zone="Europe/Vienna"),
    "open date": lambda: Date(missing=True),
    "identifier": lambda: Identifier(),
    "unknown": lambda: Unknown(),
    "unknown dates": lambda: Unknown(expected="date"),
}
_DATES = ("date", "time", "zone", "open date")
_CELLS = {
    **dict.fromkeys(("texts", "other", "ordinal", "open category", "surrogate"), ("A", "B")),
    "odd levels": ("", " A "),
    "codes": (1, 2),
    "boolean": (True, False),
    **dict.fromkeys(_DATES, tuple(pd.to_datetime(["1990-01-01", "2000-06-01"]))),
    "zone": tuple(pd.to_datetime(["1990-01-01", "2000-06-01"]).tz_localize("Europe/Vienna")),
    "identifier": (TEXT + "1", TEXT + "2"),
    "unknown": ("1", "2.5"),
    "unknown dates": ("1990-01-01", "2000-06-01"),
}
_DTYPES = {
    "texts": ("O", "O", "O", "string", "category"),
    "number": ("O", "f8", "f4", "Float64"),
    "whole": ("O", "f8", "i8", "Int64", "i1"),
    "boolean": ("O", "bool", "boolean"),
    "date": ("O", "infer"),
    "zone": ("O", "infer"),
}
RULES = {
    "ordered": lambda a, b, c: Ordered(a, b),
    "strictly": lambda a, b, c: Ordered(a, b, strict=True),
    "implied": lambda a, b, c: Implies({a: (0, 5)}, {b: (0, 5)}),
    "derived": lambda a, b, c: Derived(c, f"{a} + {b}"),
    "ratio": lambda a, b, c: Derived(c, f"{a} / {b}"),
    "unique": lambda a, b, c: Unique([a, b]),
    "combined": lambda a, b, c: Combinations([a, b], [["A", "A"], ["B", "A"]]),
}
_SHAPES = ("frame",) * 24 + ("chunks", "chunks", "once", "empty chunk", "ragged", "array", "list")
_SHAPES += ("shuffled", "lacking", "extra", "twice", "no rows", "multiindex", "series")


@dataclass(frozen=True)
class Column:
    """A column of a table: its kind, its dtype, and cells that it may not have."""

    kind: str
    dtype: str = "O"
    cells: tuple = ()

    def make(self, n, is_benign):
        usual = _CELLS.get(self.kind)
        if usual is None:
            usual = (1, 2) if "whole" in self.kind else (1.5, 2.5)
        values = np.empty(n, dtype=object)
        for i in range(n):
            values[i] = usual[i % 2]
        if not is_benign and self.dtype == "O":
            for i, cell in self.cells:
                values[i % n : i % n + 1].fill(cell) if n else None
        if self.dtype == "infer":
            return pd.Series(list(values))
        return pd.Series(values, dtype=object if self.dtype == "O" else self.dtype)


@dataclass(frozen=True)
class Table:
    """A fit to a table, and what is asked of it."""

    estimator: Estimator
    columns: tuple
    n: int
    rules: tuple = ()
    is_open: bool = False
    shape: str = "frame"
    target: str = "none"
    persons: Labels = NOBODY
    asked: tuple = ()
    has_budget: bool = False

    @property
    def names(self):
        return tuple("abcdefgh"[: len(self.columns)])

    def make_frame(self, is_benign):
        made = [column.make(self.n, is_benign) for column in self.columns]
        return pd.concat(made, axis=1).set_axis(list(self.names), axis=1)

    def make_schema(self):
        if self.is_open:
            return "private"
        kinds = {n: KINDS[c.kind]() for n, c in zip(self.names, self.columns, strict=True)}
        names = (self.names * 3)[:3]
        return Schema(kinds, [RULES[rule](*names) for rule in self.rules])

    def call(self, is_benign=False):
        frame, estimator = self.make_frame(is_benign), self.estimator.make()
        args, kwargs = (_SHAPE.get(self.shape, lambda frame: frame)(frame),), {}
        if self.target == "y" and self.shape == "frame":
            args = frame[list(self.names[:-1])], frame[self.names[-1]]
        elif self.target not in ("none", "y"):
            kwargs["target"] = {"last": self.names[-1], "wrong": "z"}.get(self.target, 5)
        if self.persons.kind != "none":
            kwargs["persons"] = self.persons.make(self.n)

        def run():
            # A schema may be refused, too.
            return estimator.set_params(schema=self.make_schema()).fit(*args, **kwargs)

        return Call(
            run,
            (frame, *args, *kwargs.values(), estimator),
            frozenset(WORDS | set(estimator.get_params()) | set(self.names) | _WORDS),
            check=self.check,
            state=lambda: sorted(set(vars(estimator)) - {"schema"}),
            has_budget=self.has_budget,
            may_refuse_cells=bool(estimator.strict) or any(c.kind == "z" for c in self.columns),
            benign=None if is_benign else self.call(is_benign=True),
        )

    def check(self, fitted):
        is_noisy = fitted.epsilon < 50
        check_fitted(fitted, epsilon=fitted.epsilon, is_noisy=is_noisy)
        # Drawn from what has learnt next to nothing, rows seldom obey rules, which takes long.
        if not self.rules:
            check_stored(fitted, is_noisy, lambda fitted: fitted.sample(5, random_state=0))
        asked = {name: evaluate(value) for name, value in self.asked}
        if not asked.keys() & {"n_samples", "y"}:
            asked["n_samples"] = 9
        judge(
            Call(
                lambda: fitted.sample(**asked),
                (fitted, *asked.values()),
                frozenset(
                    {"where", "y", "n_samples", "rules", "rule", "obey", *self.names} | _WORDS
                ),
                check=lambda made: self.check_sample(fitted, made, is_noisy),
                state=lambda: sorted(vars(fitted)),
            )
        )

    def check_sample(self, fitted, made, is_noisy):
        is_split = self.target == "y" and self.shape == "frame"
        if is_split:
            made = pd.concat(list(made), axis=1)
        # Where columns are found, one that was not declared is found, too.
        more = {"z"} if self.is_open and self.shape == "extra" else set()
        fault_if(set(made.columns) != {*self.names, *more}, f"Columns are {list(made.columns)}.")
        schema = fitted.schema_
        for name, column in zip(self.names, self.columns, strict=True):
            check_column(name, schema[name], made[name], name in schema.derived_names)
            if column.dtype in ("f8", "f4", "bool") and self.shape == "frame" and not self.rules:
                fault_if(made[name].dtype != column.dtype, f"{name} is {made[name].dtype}.")
        if schema.rules:
            shares = schema.share_obeying(made)
            fault_if((shares < 1).any(), f"Rules are broken: {shares.to_dict()}.")
        told = [text for text in made.to_string().split() if TEXT in text or f"{NUMBER}" in text]
        fault_if(is_noisy and told, f"A sample tells what is private: {told[:3]}.")


def check_column(name, kind, made, is_derived):
    """Raise a `Fault` unless a column of a sample is of its kind."""
    present = made.dropna()
    may_miss = getattr(kind, "missing", False) or is_derived
    fault_if(len(present) < len(made) and not may_miss, f"{name} misses values.")
    if kind.levels:
        fault_if(not set(present) <= set(kind.levels), f"{name} has levels {set(present)}.")
    elif isinstance(kind, Number):
        values = present.astype(float).to_numpy()
        fault_if(not np.isfinite(values).all(), f"{name} has {values}.")
        if not is_derived:
            slack = 1e-6 * max(abs(kind.lower), abs(kind.upper))
            inside = (values >= kind.lower - slack) & (values <= kind.upper + slack)
            fault_if(not (inside | np.isin(values, kind.atoms or [])).all(), f"{name}: {values}.")
        if kind.decimals is not None:
            fault_if(not np.array_equal(values, values.round(kind.decimals)), f"{name}: {values}.")
    elif isinstance(kind, Date) and not is_derived:
        dates = pd.to_datetime(present)
        if dates.dt.tz is not None:
            dates = dates.dt.tz_localize(None)
        inside = dates.between(pd.Timestamp(kind.lower), pd.Timestamp(kind.upper))
        fault_if(not inside.all(), f"{name} has {dates.tolist()}.")


_WORDS = {"table", "column", "columns", "rule", "rules", "Names", "chunks", "chunk", "rows"}
_WORDS |= {"Column", "categories"}

_SHAPE = {
    "chunks": lambda frame: lambda: iter([frame.iloc[:2], frame.iloc[2:]]),
    "once": lambda frame: iter([frame]).__iter__,
    "empty chunk": lambda frame: lambda: iter([frame.iloc[:0], frame, frame.iloc[:0]]),
    "ragged": lambda frame: lambda: iter([frame, frame.iloc[:, :-1]]),
    "array": lambda frame: frame.to_numpy(dtype=object),
    "list": lambda frame: frame.to_numpy(dtype=object).tolist(),
    "shuffled": lambda frame: frame.iloc[:, ::-1].set_index(pd.Index(np.arange(len(frame)) % 2)),
    "lacking": lambda frame: frame.iloc[:, 1:],
    "extra": lambda frame: frame.assign(z=1),
    "twice": lambda frame: pd.concat([frame, frame], axis=1),
    "no rows": lambda frame: frame.iloc[:0],
    "multiindex": lambda frame: frame.set_axis(
        pd.MultiIndex.from_arrays([frame.columns, frame.columns]), axis=1
    ),
    "series": lambda frame: frame.iloc[:, 0],
}


# Conditions: values of the first column, and what `where` may be instead.
_VALUES = ODD + expressions("""
    "A" | ["A", "B", None] | (1, 2) | (2, 1) | (1e9, 2e9) | [(None, 2), (9, None)] | (1, 2, 3)
    | "1990-01-01" | "1990-99-99" | (pd.Timestamp("1990-01-01"), None)
    | pd.Timestamp("1990-01-01", tz="UTC") | None | [[1, 2], {"b": 1}]
""")
_ASKED = (
    *ODD,
    *(f'{{"a": {value}}}' for value in _VALUES),
    *expressions('{"z": 1} | {5: 1, None: 2} | dict.fromkeys("abcd") | ["A"]'),
)


@st.composite
def columns(draw, kinds=tuple(KINDS)):
    kind = draw(st.sampled_from(kinds))
    dtype = draw(st.sampled_from(_DTYPES.get(kind, ("O",))))
    cells = st.tuples(st.integers(0, 30), st.sampled_from(OBJECTS))
    return Column(kind, dtype, tuple(draw(st.lists(cells, max_size=3))))


@st.composite
def tables(draw):
    makers = ("sliced", "flow", "flow", "sinkhorn", "dpaf", "flow rows", "sliced rows")
    names = "schema network bounds classes encoder clip_norm y_bounds release".split()
    estimator = draw(estimators(makers, most=2, kept=names))
    is_strict = draw(st.integers(0, 9)) == 0
    if is_strict and "strict" not in dict(estimator.changed):
        estimator = Estimator(estimator.maker, (*estimator.changed, ("strict", "True")))
    rules = draw(st.sampled_from(((),) * 20 + tuple((rule,) for rule in RULES)))
    kinds = tuple(KINDS)
    if rules:
        kinds = ("texts", "other") if rules == ("combined",) else ("knots", "whole", "atoms")
    made = tuple(draw(st.lists(columns(kinds), min_size=3 if rules else 1, max_size=4)))
    persons = NOBODY
    if draw(st.integers(0, 7)) == 0:
        persons = draw(labels(usual=("persons", "ints", "mixed persons"), none=0))
    asked = ()
    if draw(st.booleans()):
        name = draw(st.sampled_from(("where", "where", "where", "y", "n_samples")))
        asked = ((name, draw(st.sampled_from(_ASKED))),)
    return Table(
        estimator,
        made,
        draw(st.sampled_from((12, 12, 30, 1, 2))),
        rules,
        draw(st.integers(0, 5)) == 0,
        draw(st.sampled_from(_SHAPES)),
        draw(
            st.sampled_from(
                ("none",) * 9 + ("last", "last", "last", "y", "y", "y", "wrong", "number")
            )
        ),
        persons,
        asked,
        draw(st.integers(0, 7)) == 0,
    )
