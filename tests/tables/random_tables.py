"""Random schemas, tables that they describe, and what has to be decoded of these."""

import numpy as np
import pandas as pd
from hypothesis import assume
from hypothesis import strategies as st

from skdpgen.tables import Boolean, Category, Date, Number, Ordinal, Schema
from skdpgen.tables.encoder import TableEncoder


@st.composite
def number_columns(draw, n_rows):
    decimals = draw(st.none() | st.integers(0, 4))
    missing = draw(st.booleans())
    if decimals is None:
        # Cells below the smallest normal float are read as 0.
        values = st.floats(-1e6, 1e6, allow_subnormal=False)
    else:
        # Numbers with so many decimals; what is between them is tested elsewhere.
        values = st.integers(-(10**8), 10**8).map(lambda units: units / 10**decimals)
    knots = sorted(draw(st.lists(values, min_size=2, max_size=5, unique=True)))
    is_signed = knots[0] < 0 < knots[-1]
    spacing = {
        "n_knots": draw(st.none() | st.integers(2, 20)),
        "scale": draw(st.sampled_from([None, "linear", "symlog" if is_signed else "log"])),
    }
    if draw(st.booleans()):
        spacing = {"knots": knots}
    atoms = draw(st.none() | st.lists(values | st.sampled_from(knots), max_size=3, unique=True))
    assume(decimals is None or knots[-1] - knots[0] > 5 * 10.0**-decimals)  # beside the atoms
    kind = Number(knots[0], knots[-1], decimals, atoms=atoms, missing=missing, **spacing)
    beyond = st.sampled_from([-np.inf, -1e300, 1e300, np.inf])
    shared = st.sampled_from(kind.atoms) if atoms else values
    cells = draw_cells(draw, st.one_of(values, values, shared, beyond), n_rows, missing)
    column = pd.Series(cells, dtype=draw(st.sampled_from([float, object, "Float64"])))
    clipped = pd.Series(cells, dtype=float)
    clipped = clipped.where(clipped.isin(atoms or []), clipped.clip(kind.lower, kind.upper))
    if decimals == 0:
        return kind, column, clipped.astype("Int64" if missing else "int64")
    return kind, column, clipped


@st.composite
def level_columns(draw, n_rows):
    missing = draw(st.booleans())
    if draw(st.booleans()):
        cells = draw_cells(draw, st.booleans(), n_rows, missing)
        dtype = "boolean" if missing else "bool"
        column = pd.Series(cells, dtype=draw(st.sampled_from([object, "boolean"])))
        return Boolean(missing), column, pd.Series(cells, dtype=dtype)
    labels = draw(st.sampled_from([texts(), st.integers(-9, 9), st.floats(-9, 9)]))
    found = draw(st.lists(labels, min_size=1, max_size=5, unique=True))
    other = draw(st.none() | labels)
    ordered = draw(st.booleans()) and other is None
    kind = Ordinal(found, missing) if ordered else Category(found, other, missing)
    cells = draw_cells(draw, st.sampled_from(found) if other is None else labels, n_rows, missing)
    levels = list(kind.levels)
    known = [cell if cell is None or cell in levels else other for cell in cells]
    expected = pd.Series(pd.Categorical(known, levels, ordered=ordered))
    return kind, pd.Series(cells, dtype=draw(st.sampled_from([object, "category"]))), expected


@st.composite
def date_columns(draw, n_rows):
    unit, missing = draw(st.sampled_from(["day", "second"])), draw(st.booleans())
    moments = st.datetimes().map(lambda time: time.replace(microsecond=0))
    bounds = moments if unit == "second" else st.dates()
    lower, upper = sorted(draw(st.lists(bounds, min_size=2, max_size=2, unique=True)))
    kind = Date(lower, upper, unit, draw(st.integers(2, 20)), missing=missing)
    cells = draw_cells(draw, st.datetimes(), n_rows, missing)
    exact = pd.Series(np.array(cells, dtype="M8[us]"))
    rounded = exact.to_numpy().astype("M8[D]" if unit == "day" else "M8[s]").astype("M8[s]")
    rounded = np.where(
        np.isnat(rounded), rounded, np.clip(rounded, *np.array([lower, upper], dtype="M8[s]"))
    )
    return kind, draw(st.sampled_from([exact, pd.Series(cells, dtype=object)])), pd.Series(rounded)


def texts():
    return st.text(st.characters(exclude_categories=["Cs"]), max_size=3)


def draw_cells(draw, values, n_rows, missing):
    values = st.none() | values if missing else values
    return draw(st.lists(values, min_size=n_rows, max_size=n_rows))


@st.composite
def tables(draw):
    """An encoder, a table in its schema, and what decoding has to give back."""
    n_rows = draw(st.integers(1, 5))
    columns = st.one_of(number_columns(n_rows), level_columns(n_rows), date_columns(n_rows))
    names = draw(st.lists(texts().filter(bool), min_size=1, max_size=4, unique=True))
    drawn = {name: draw(columns) for name in names}
    schema = Schema({name: kind for name, (kind, _, _) in drawn.items()})
    table = pd.DataFrame({name: column for name, (_, column, _) in drawn.items()})
    expected = pd.DataFrame({name: column for name, (_, _, column) in drawn.items()})
    return TableEncoder(schema), table[draw(st.permutations(names))], expected
