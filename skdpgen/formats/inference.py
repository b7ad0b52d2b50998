"""Finding the bounds and categories that a schema leaves open, by releases that are paid for."""

import math
import warnings
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
from scipy.stats import norm

from ..exceptions import FitQualityWarning, TableError
from ..privacy.files import TEXT_KINDS
from ..privacy.mechanisms.sums import CategoryCountsMechanism, GaussianSumMechanism
from ..privacy.record_functions import RecordFunction
from .columns import DATE_CODES, MAX_UNITS, Boolean, Category, Date, Number, Unknown
from .schema import Schema
from .table_encoder import TableEncoder
from .texts import parse_found, read_cell

# Numbers are looked for up to 2^40 on both sides of zero, by eighths of octaves from 2^-10 on.
_MAGNITUDES = 2.0 ** (np.arange(-80, 321) / 8)
# Dates are looked for in these years, by quarters.
_DATES, _N_QUARTERS = ("1900-01-01", "2100-01-01"), 800
# Of the categories of a column, the most frequent are told apart.
_MOST_LEVELS = 1000
# The count of kinds; and which share of the texts in a column is to fit its kind, but for noise.
_KINDS, _FITTING_SHARE = "column kinds", 0.95
# Knots of the second, finer grid.
_N_FINE = 128
# How likely it is that, somewhere on a grid, mere noise is taken for values.
_FALSE_ALARM = 0.02


class SchemaInference:
    """Closes a schema by private releases: histograms of numbers and dates, counts of categories.

    Of columns of which nothing is known it is counted first how many texts are numbers, dates and
    so on; each cell is of one kind. Encoded, a record has the weight 1/√m at one kind for each of
    the m columns: a vector without negative numbers, of norm 1, and two of these are at most √2
    apart. In counts this is a sensitivity of √m, or of √(2m) if a record is replaced. What is
    released after that is in the plan whatever is found.

    Numbers and dates are counted near the knots of a wide grid, and then of a finer one within
    the range that the first showed. Bounds are the outermost knots where there is more than noise,
    and knots are quantiles. Categories are those whose noisy counts pass a threshold.

    Parameters
    ----------
    schema : Schema
    texts : tuple of str, default=()
        Columns that come as texts, whose kinds were found. If there are any, all releases are
        made, whatever the kinds.

    Attributes
    ----------
    releases : tuple of str
        What is to be planned, in this order; empty if nothing is open.
    unknown : tuple of str
        Columns of which nothing is known.
    """

    def __init__(self, schema, texts=()):
        self.schema = schema
        self.texts = texts
        self.unknown = tuple(n for n, kind in schema.items() if isinstance(kind, Unknown))
        opened = [n for n in schema.open_names if n not in self.unknown]
        self._categories = [n for n in opened if isinstance(schema[n], Category)]
        self._scales = [n for n in opened if n not in self._categories]
        is_any = bool(self.unknown or texts)
        self.releases = (_KINDS,) * bool(self.unknown)
        self.releases += ("value ranges", "value counts") * (is_any or bool(self._scales))
        self.releases += (CategoryCountsMechanism.name,) * (is_any or bool(self._categories))
        self._wide = {
            name: _widen(kind) if kind.is_open else kind
            for name, kind in schema.items()
            if name not in self.unknown
        }

    def encode(self, cells, y=None):
        """Encode the kinds of unknown columns, or open numbers and dates on the wide grid.

        Where there are neither, the columns that are declared.
        """
        if self.unknown:
            return _encode_kinds(self._read(cells)[list(self.unknown)])
        if self._scales:
            return self._encode_scales(self._wide, cells)
        return TableEncoder(Schema(self._wide)).encode_private(self._read(cells))

    def refuse(self, cells):
        """Raise an error that names the column if cells are not of the declared types."""
        table = self._read(cells)
        for name in self._categories:
            _check_type(name, table[name], self.schema[name].other)
        if self._wide:
            TableEncoder(Schema(self._wide)).encode(table[list(self._wide)])

    def _read(self, cells):
        table = pd.DataFrame(cells, columns=list(self.schema))
        return parse_found(table, self.schema, self.texts)

    def run(self, curator):
        """Make the releases and return a schema that leaves nothing open."""
        if self.unknown:
            known = SchemaInference(self._find_kinds(curator), self.unknown)
            curator.prepare(RecordFunction(known.encode))
            return known.run(curator)
        kinds = dict(self.schema)
        if self._scales:
            kinds.update(self._find_knots(curator))
        elif self.texts:
            for release in self.releases[:2]:
                curator.release(_weights(release))
        if CategoryCountsMechanism.name in self.releases:
            positions = {name: self.schema.names.index(name) for name in self._categories}
            for name, counts in curator.release(CategoryCountsMechanism(positions)).items():
                if name in self.texts:
                    # As they are encoded: blanks are no category.
                    counts = {c: n for c, n in counts.items() if read_cell(c)[0] != "missing"}
                kinds[name] = _with_categories(name, kinds[name], counts)
        return Schema(kinds)

    def _find_kinds(self, curator):
        """Count what the texts of unknown columns are; return a schema with kinds for them."""
        noisy, unit = curator.release(_weights(_KINDS)), math.sqrt(len(self.unknown))
        counts = (noisy.value * unit).reshape(len(self.unknown), len(TEXT_KINDS))
        found = (_choose_kind(*row[:-1], noisy.std * unit) for row in counts.tolist())
        return Schema({**self.schema, **dict(zip(self.unknown, found, strict=True))})

    def _find_knots(self, curator):
        """Look at the open numbers and dates twice; return their kinds."""
        schema = Schema(self._wide)
        for release, n_knots, margin in zip(self.releases, (_N_FINE, None), (1, 0), strict=False):
            noisy = curator.release(_weights(release))
            unit = math.sqrt(len(self._scales))
            found = {}
            for name, where in TableEncoder(schema.select(self._scales)).blocks:
                kind, knots = self.schema[name], schema[name].positions
                counts = noisy.value[where][: len(knots)] * unit
                knots = _zoom(knots, counts, noisy.std * unit, n_knots or kind.n_knots, margin)
                found[name] = _with_knots(kind, knots)
            schema = Schema({**schema, **found})
            curator.prepare(RecordFunction(partial(self._encode_scales, schema)))
        return found

    def _encode_scales(self, schema, cells, y=None):
        schema = Schema({name: schema[name] for name in self._scales})
        return TableEncoder(schema).encode_private(self._read(cells)[self._scales])


def _encode_kinds(table):
    """Encode cells by their kinds."""
    kinds = table.map(lambda cell: read_cell(cell)[0])
    return TableEncoder(Schema(dict.fromkeys(table, Category(TEXT_KINDS)))).encode(kinds)


def _choose_kind(whole, number, boolean, date, text, std):
    """Choose what is most of a column, if nearly all of it fits; else texts, which all fit.

    Counts have noise of deviation `std`: what two deviations could explain is let pass.
    """
    total = whole + number + boolean + date + text
    fitting = {Category: text, Number: whole + number, Boolean: boolean, Date: date}
    kind = max(fitting, key=fitting.get)

    def is_small(part, of, n_counts):
        return part <= (1 - _FITTING_SHARE) * of + 2 * math.sqrt(n_counts) * std

    if fitting[kind] <= 2 * std or not is_small(total - fitting[kind], total, 4):
        kind = Category
    if kind is Number and is_small(number, whole + number, 1):
        return Number(decimals=0, missing=True)
    return kind(missing=True)


def _weights(name):
    """Return the sum of encoded rows, whose weights are not negative."""
    return GaussianSumMechanism(RecordFunction(lambda rows: rows), 1.0, name, nonnegative=True)


def _widen(kind):
    """Return a kind for the first look at an open column; declared bounds are kept."""
    if isinstance(kind, Category):
        return replace(kind, categories=[kind.other])
    if isinstance(kind, Date):
        lower, upper = kind.lower or _DATES[0], kind.upper or _DATES[1]
        return replace(kind, lower=lower, upper=upper, n_knots=_N_QUARTERS)
    sizes = _MAGNITUDES[_MAGNITUDES * 10.0 ** (kind.decimals or 0) <= MAX_UNITS]
    lower = -np.inf if kind.lower is None else kind.lower
    upper = np.inf if kind.upper is None else kind.upper
    if lower >= sizes[-1] or upper <= -sizes[-1]:
        raise ValueError(
            f"Open bounds are looked for within ±{sizes[-1]:g}, and {kind} starts beyond that; "
            "declare both bounds, or give the column in larger units."
        )
    return _with_knots(kind, np.r_[-sizes[::-1], 0, sizes])


def _with_knots(kind, knots):
    """Return a number or date with these knots, within the bounds that are declared."""
    if isinstance(kind, Date):
        unit = DATE_CODES[kind.unit]
        first, last = (str(np.datetime64(int(knot), unit)) for knot in knots[[0, -1]])
        return replace(kind, lower=kind.lower or first, upper=kind.upper or last)
    knots = knots if kind.decimals is None else np.round(knots, kind.decimals) + 0.0
    knots = knots.astype(np.int64) if kind.decimals == 0 else knots
    lower, upper = (
        found if declared is None else declared
        for declared, found in zip((kind.lower, kind.upper), knots[[0, -1]], strict=True)
    )
    knots = np.unique(np.r_[lower, knots[(lower < knots) & (knots < upper)], upper]).tolist()
    if kind.scale == "log":
        return replace(kind, lower=lower, upper=upper)
    return replace(kind, lower=lower, upper=upper, n_knots=16, knots=knots)


def _zoom(knots, counts, std, n_knots, margin):
    """Return quantiles of noisy counts, and the knots at which much is, as new knots.

    What is beyond the outermost knots with more than noise, and `margin` knots further, is left
    out.
    """
    is_more = counts > std * norm.isf(_FALSE_ALARM / len(knots))
    if not is_more.any():
        is_more = counts == counts.max()
    first, last = np.flatnonzero(is_more)[[0, -1]]
    margin = max(margin, int(first == last))
    within = slice(max(0, first - margin), last + margin + 1)
    knots, counts = knots[within], counts[within]
    # Sums of noise grow slowly; sums of its positive part would not.
    cumulative = np.r_[0, np.cumsum((counts[1:] + counts[:-1]) / 2)]
    cumulative = np.maximum.accumulate(cumulative.clip(0, max(cumulative[-1], 0)))
    cumulative += 1e-3 * max(cumulative[-1], 1) * np.linspace(0, 1, len(knots))
    quantiles = np.interp(np.linspace(0, cumulative[-1], n_knots), cumulative, knots)
    much = is_more[within] & (counts > counts.sum() / n_knots)
    return np.union1d(quantiles, knots[much])


def _with_categories(name, kind, counts):
    """Return a category with the most frequent of those found, of the type of `other`."""
    found = [level for level in counts if isinstance(level, _type_of(kind.other))]
    found = sorted(sorted(found, key=counts.get)[-_MOST_LEVELS:])
    if not found:
        warnings.warn(
            f"No category of column {name!r} was found often enough to be told from noise, or none "
            f"is of the type of other={kind.other!r}: all of its values become that.",
            FitQualityWarning,
            stacklevel=2,
        )
    return replace(kind, categories=found or [kind.other])


def _type_of(other):
    return str if isinstance(other, str) else (int, float)


def _check_type(name, column, other):
    """Refuse categories of another type than `other`, of which all will be."""
    wanted = _type_of(other)
    if not all(isinstance(value, wanted) for value in column[~column.isna()]):
        what = "strings; convert them" if wanted is str else "numbers"
        raise TableError(
            f"Column {name!r} holds categories that are not {what}. Declare it, with other=... of "
            "the type of its categories if these are to be found."
        )
