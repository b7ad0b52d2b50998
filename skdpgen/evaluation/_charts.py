# SPDX-License-Identifier: BSD-3-Clause
"""SVG charts of a report: bars, histograms and matrices."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from markupsafe import Markup

# Colours of synthetic rows, of a reference, of a diagonal, and of text, which is light or dark.
_BLUE, _GREY, _DIAGONAL, _INK = "#2f6db3", "#a9b4be", "#8a99a8", "currentColor"
# Widths of a chart and of its labels, the height of a bar and of a histogram, in pixels.
_WIDTH, _LABEL, _LINE, _HEIGHT = 280, 110, 17, 120
# Space above a histogram for the share of a point mass.
_TOP = 14
# Point masses of a histogram that have labels; set by hand.
_MOST_LABELS = 3
# A column has a chart of at most so many bars, so that charts fit side by side.
MOST_BARS = 14
# Cells of larger matrices have no tooltips, which would make the page several megabytes large.
_MOST_NAMED = 60
# Least size of a cell with a number in it, in pixels; and the most opaque, for contrast with it.
_WITH_NUMBER, _DARKEST = 24, 0.7
# Ticks of an axis, at most, and the distances of ticks between dates.
_MOST_TICKS = 5
_DATE_STEPS = (
    *((freq, 1, "%Y-%m-%d") for freq in ("D", "7D")),
    *((freq, 1, "%Y-%m") for freq in ("MS", "QS")),
    *(("YS", every, "%Y") for every in (1, 2, 5, 10, 20, 50, 100)),
)
_LARGEST_STEP = 100
_FRAME = f' stroke="{_GREY}"'


@dataclass(frozen=True)
class Shares:
    """Shares of the levels or bins of a column.

    Attributes
    ----------
    name : str
        The column.
    levels : sequence of str
    synthetic : sequence of float
        The share of each level among the synthetic rows.
    reference : sequence of float, default=None
        The same of a reference.
    margin : float, default=0.0
        If above 0, the reference are released shares, and this is half the length of error bars.
    """

    name: str
    levels: Sequence[str]
    synthetic: Sequence[float]
    reference: Sequence[float] | None = None
    margin: float = 0.0

    def describe(self, i: int) -> str:
        """Return the shares of a level as text."""
        text = f"{self.levels[i]}: {self.synthetic[i]:.1%} of synthetic rows"
        if self.reference is None:
            return text
        which = "as released" if self.margin else "of the reference"
        return f"{text}, {self.reference[i]:.1%} {which}"

    def __str__(self) -> str:
        listed = "; ".join(map(self.describe, range(len(self.levels))))
        return f"Shares of the values of {self.name}. {listed}."


def draw_bars(shares: Shares) -> Markup:
    """Return a bar chart of the shares of levels, in front of those of a reference."""
    behind = [0.0] * len(shares.levels) if shares.reference is None else shares.reference
    largest = max([*shares.synthetic, *behind, 1e-9])
    scale, height = (_WIDTH - _LABEL - 40) / (shares.margin + largest), _LINE - 4
    inset = 0 if shares.reference is None else 3
    marks = []
    for i, (level, share, other) in enumerate(
        zip(shares.levels, shares.synthetic, behind, strict=True)
    ):
        top, end = i * _LINE + 1, max(share, other)
        if shares.reference is not None:
            marks.append(_rect(_LABEL, top, other * scale, height, _GREY))
        bar = _LABEL, top + inset, share * scale, height - 2 * inset, _BLUE
        marks.append(_rect(*bar, shares.describe(i)))
        marks.append(_text(_LABEL - 5, top + 11, _cut(level, 17), "end"))
        if shares.margin:
            low, high = max(0.0, other - shares.margin), max(0.0, other + shares.margin)
            ends, end = (_LABEL + low * scale, _LABEL + high * scale), max(end, high)
            marks.append(_line(ends[0], top + 6, ends[1], top + 6))
        marks.append(_text(_LABEL + end * scale + 4, top + 11, f"{share:.0%}"))
    return _svg(_WIDTH, len(shares.levels) * _LINE, marks, str(shares))


def draw_histogram(
    shares: Shares, bins: Sequence[tuple[float, float]], is_date: bool = False
) -> Markup:
    """Return a histogram, in front of that of a reference: areas are shares.

    Point masses, which are bins of width 0, are lines with their share at the top. Dates are
    seconds since 1970.
    """
    low, high = bins[0][0], bins[-1][1]
    x = np.interp(np.ravel(bins), [low, max(high, np.nextafter(low, np.inf))], [4, _WIDTH - 4])
    x = x.reshape(-1, 2)
    # Bins that are narrower than a pixel are drawn as point masses, too.
    widths, is_mass = np.maximum(x[:, 1] - x[:, 0], 1), x[:, 1] - x[:, 0] < 1
    series = [np.asarray(part) for part in (shares.reference, shares.synthetic) if part is not None]
    heights = [np.where(is_mass, part, part / widths) for part in series]
    offs = shares.margin / widths
    scale = _scale_bins(series, [heights[0] + offs, heights[-1]], is_mass)
    marks: list[Markup] = []
    labels: list[Markup] = []
    # Labels of more point masses would cover each other.
    named = np.flatnonzero(is_mass)[np.argsort(-series[-1][is_mass])[:_MOST_LABELS]]
    for height, color in zip(heights, (_GREY, _BLUE)[-len(heights) :], strict=True):
        is_synthetic = color == _BLUE
        for i, top in enumerate(_HEIGHT - height * scale):
            start, width, opacity = x[i, 0], widths[i], 0.55 if is_synthetic and heights[1:] else 1
            if is_mass[i]:
                at = x[i, 0] + (1.5 if is_synthetic else -1.5)
                start, width, opacity = at - 1.5, 3, 1
            tooltip = shares.describe(i) if is_synthetic else ""
            marks.append(_rect(start, top, width, _HEIGHT - top, color, tooltip, opacity))
            if is_synthetic and i in named:
                anchor = "start" if at < _WIDTH / 2 else "end"
                labels.append(_text(at, top - 3, f"{series[-1][i]:.0%}", anchor, ' class="halo"'))
            elif is_synthetic and not is_mass[i] and shares.margin:
                middle, ends = x[i].mean(), heights[0][i] + np.array([1, -1]) * offs[i]
                upper, lower = _HEIGHT - ends.clip(0) * scale[i]
                marks.append(_line(middle, upper, middle, lower))
    marks.append(_line(4, _HEIGHT, _WIDTH - 4, _HEIGHT))
    for at, text in _find_ticks(low, high, is_date):
        place = np.interp(at, [low, high], [4, _WIDTH - 4])
        marks.append(_line(place, _HEIGHT, place, _HEIGHT + 4))
        inner = float(np.clip(place, 3.5 * len(text), _WIDTH - 3.5 * len(text)))
        marks.append(_text(inner, _HEIGHT + 15, text, "middle"))
    return _svg(_WIDTH, _HEIGHT + 20, marks + labels, str(shares))


def _scale_bins(series, heights, is_mass) -> np.ndarray:
    """Return the pixels per height of each bin: of point masses, or bins, the larger are tallest.

    `series` holds the shares of the bins, and `heights` include error bars.
    """
    scale = np.zeros(len(is_mass))
    sums = [max(part[of].sum() for part in series) for of in (is_mass, ~is_mass)]
    for of, total in zip((is_mass, ~is_mass), sums, strict=True):
        tallest = max(height[of].max(initial=1e-9) for height in heights)
        scale[of] = (_HEIGHT - _TOP) * total / max(1e-9, *sums) / tallest
    return scale


def draw_matrix(
    names: Sequence[str], cells: Mapping[tuple[int, int], float | None], label: str
) -> Markup:
    """Return a heat map of numbers in [0, 1], by row and column: synthetic ones above the diagonal.

    `label` is for screen readers.
    """
    n, left = len(names), 150
    cell = max(6, min(30, 640 // n))
    has_names = cell >= 10
    top = 96 if has_names else 0
    marks = []
    for (row, column), value in cells.items():
        if value is None:
            continue
        x, y = left + column * cell, top + row * cell
        which = "synthetic" if row < column else "reference"
        tooltip = f"{names[min(row, column)]}, {names[max(row, column)]}: {value:.2f} ({which})"
        shown = tooltip * (n <= _MOST_NAMED)
        marks.append(_rect(x, y, cell - 1, cell - 1, _BLUE, shown, _DARKEST * value))
        if cell >= _WITH_NUMBER:
            text = f"{value:.2f}".replace("0.", ".")
            style = ' font-size="9"'
            marks.append(_text(x + cell / 2 - 0.5, y + cell / 2 + 3, text, "middle", style))
    for i, name in enumerate(names):
        x, y = left + i * cell, top + i * cell
        marks.append(_rect(x, y, cell - 1, cell - 1, _DIAGONAL))
        if has_names:
            marks.append(_text(left - 6, y + cell / 2 + 4, _cut(name, 20), "end"))
            turned = f' transform="translate({x + cell / 2 + 2:g} {top - 5}) rotate(-60)"'
            marks.append(_text(0, 0, _cut(name, 14), style=turned))
    size = n * cell - 1
    marks.append(_rect(left, top, size, size, "none", style=_FRAME))
    return _svg(left + n * cell + top // 2, top + n * cell, marks, label)


def draw_tables(tables: Sequence, rows: Sequence[str], columns: Sequence[str]) -> Markup:
    """Return pictures of two tables of shares of the same levels: released and synthetic."""
    width, marks = (_WIDTH - _TOP) / 2, []
    cell = width / len(columns), min(_LINE, _HEIGHT / len(rows))
    largest = max(np.max(tables), 1e-9)
    for table, title, left in zip(
        tables, ("released", "synthetic"), (0, width + _TOP), strict=True
    ):
        marks.append(_text(left, _TOP - 4, title))
        for i, j in np.ndindex(*np.shape(table)):
            at = left + j * cell[0], _TOP + i * cell[1]
            tooltip = f"{rows[i]}, {columns[j]}: {table[i][j]:.1%} {title}"
            # Roots, or most cells would be too light to be seen.
            opacity = float(np.sqrt(max(0.0, table[i][j]) / largest))
            marks.append(_rect(*at, cell[0] - 0.5, cell[1] - 0.5, _BLUE, tooltip, opacity))
        marks.append(_rect(left, _TOP, width, cell[1] * len(rows), "none", style=_FRAME))
    label = "Released and synthetic shares of two columns"
    return _svg(_WIDTH, _TOP + cell[1] * len(rows) + 1, marks, label)


def _find_ticks(low: float, high: float, is_date: bool) -> list[tuple[float, str]]:
    """Return round numbers, or dates, within a range, and their texts."""
    if not high > low:
        day = f"{pd.Timestamp(int(low), unit='s'):%Y-%m-%d}" if is_date else f"{low:,.10g}"
        return [(low, day)]
    if not is_date:
        step = 10.0 ** np.floor(np.log10((high - low) / _MOST_TICKS))
        steps = [factor * step for factor in (1, 2, 5, 10)]
        step = next(s for s in steps if (high - low) / s <= _MOST_TICKS)
        ticks = step * np.arange(np.ceil(low / step), np.floor(high / step) + 1)
        return [(float(tick), f"{tick:,.10g}") for tick in ticks]
    start, end = (pd.Timestamp(int(at), unit="s") for at in (low, high))
    dates, form = next(
        (dates, form)
        for freq, every, form in _DATE_STEPS
        for dates in [pd.date_range(start.normalize(), end, freq=freq)]
        for dates in [dates[(dates >= start) & (dates.year % every == 0)]]
        if len(dates) <= _MOST_TICKS or every == _LARGEST_STEP
    )
    return [(date.timestamp(), f"{date:{form}}") for date in dates]


def _svg(width: float, height: float, marks: Iterable[Markup], label: str) -> Markup:
    return Markup(
        '<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{}" width="{w}" '
        'height="{h}" viewBox="0 0 {w} {h}" font-family="system-ui, sans-serif" font-size="11" '
        'fill="{}">{}</svg>'
    ).format(label, _INK, Markup().join(marks), w=width, h=height)


def _rect(x, y, width, height, color: str, tooltip="", opacity=1.0, style="") -> Markup:
    title = Markup("<title>{}</title>").format(tooltip) if tooltip else ""
    return Markup(
        '<rect x="{:.4g}" y="{:.4g}" width="{:.4g}" height="{:.4g}" fill="{}" '
        'fill-opacity="{:.3g}"{}>{}</rect>'
    ).format(x, y, width, height, color, opacity, Markup(style), title)


def _line(x1, y1, x2, y2) -> Markup:
    return Markup(
        '<line x1="{:.4g}" y1="{:.4g}" x2="{:.4g}" y2="{:.4g}" stroke="{}" stroke-width="1.2"/>'
    ).format(x1, y1, x2, y2, _INK)


def _text(x, y, text: str, anchor: str = "start", style: str = "") -> Markup:
    return Markup('<text x="{:.5g}" y="{:.5g}" text-anchor="{}"{}>{}</text>').format(
        x, y, anchor, Markup(style), text
    )


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
