# SPDX-License-Identifier: BSD-3-Clause
"""SVG drawings of a report: bar charts, histograms and matrices."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

import numpy as np
import pandas as pd

# Colours of synthetic rows, of a reference, of negative numbers, and of text.
_BLUE, _GREY, _RED, _INK = "#2f6db3", "#a9b4be", "#b3502f", "#1c2733"
_DIAGONAL = "#dde3e8"
# Widths of a chart and of its labels, the height of a bar and of a histogram, in pixels.
_WIDTH, _LABEL, _LINE, _HEIGHT = 280, 110, 17, 120
# Space above a histogram for the share of a point mass.
_TOP = 14
# A column has a chart of at most so many bars, so that charts fit side by side.
MOST_BARS = 14
# Cells of larger matrices have no tooltips, which would make the page several megabytes large.
_MOST_NAMED = 60
# Least size of a cell with a number in it, in pixels.
_WITH_NUMBER = 24
# Ticks of an axis, at most, and the distances of ticks between dates.
_MOST_TICKS = 5
_DATE_STEPS = (
    *((freq, 1, "%Y-%m-%d") for freq in ("D", "7D")),
    *((freq, 1, "%Y-%m") for freq in ("MS", "QS")),
    *(("YS", every, "%Y") for every in (1, 2, 5, 10, 20, 50, 100)),
)
_LARGEST_STEP = 100


def draw_bars(
    levels: Sequence[str],
    synthetic: Sequence[float],
    reference: Sequence[float] | None,
    name: str,
    margin: float | None = None,
) -> str:
    """Return a bar chart of the shares of levels, in front of those of a reference.

    Parameters
    ----------
    levels : sequence of str
    synthetic : sequence of float
        The share of each level.
    reference : sequence of float or None
    name : str
        The name of the column, for screen readers.
    margin : float, default=None
        Half the length of error bars.
    """
    has_reference = reference is not None
    behind = [0.0] * len(levels) if reference is None else reference
    scale = (_WIDTH - _LABEL - 40) / ((margin or 0) + max([*synthetic, *behind, 1e-9]))
    inset = 3 if has_reference else 0
    marks = []
    for i, level in enumerate(levels):
        top = i * _LINE
        tooltip = _describe_share(level, synthetic[i], behind[i] if has_reference else None)
        if has_reference:
            marks.append(_rect(_LABEL, top + 1, behind[i] * scale, _LINE - 4, _GREY))
        height = _LINE - 4 - 2 * inset
        marks.append(_rect(_LABEL, top + 1 + inset, synthetic[i] * scale, height, _BLUE, tooltip))
        marks.append(_text(_LABEL - 5, top + 12, _cut(level, 17), "end"))
        end = _LABEL + max(synthetic[i], behind[i]) * scale
        if margin and synthetic[i] > 0:  # a level that is never drawn was not counted
            low, high = max(0.0, synthetic[i] - margin), synthetic[i] + margin
            ends = _LABEL + low * scale, _LABEL + high * scale
            marks.append(_line(ends[0], top + 7, ends[1], top + 7))
            end = max(end, ends[1])
        marks.append(_text(end + 4, top + 12, f"{synthetic[i]:.0%}"))
    label = _describe_shares(name, levels, synthetic, reference)
    return _svg(_WIDTH, len(levels) * _LINE, marks, label)


def draw_histogram(
    bins: Sequence[tuple[float, float]],
    levels: Sequence[str],
    synthetic: Sequence[float],
    reference: Sequence[float] | None,
    name: str,
    margin: float | None = None,
    is_date: bool = False,
) -> str:
    """Return a histogram, in front of that of a reference: areas are shares.

    Point masses, which are bins of width 0, are lines with their share at the top.

    Parameters
    ----------
    bins : sequence of (float, float)
    levels, synthetic, reference, name
        As in `draw_bars`, for each bin; for screen readers.
    margin : float, default=None
        Half the length of error bars of a share.
    is_date : bool, default=False
        Whether numbers are seconds since 1970.
    """
    low, high = bins[0][0], bins[-1][1]
    x = np.interp(np.ravel(bins), [low, max(high, np.nextafter(low, np.inf))], [4, _WIDTH - 4])
    x = x.reshape(-1, 2)
    # Bins that are narrower than a pixel are drawn as point masses, too.
    widths, is_mass = np.maximum(x[:, 1] - x[:, 0], 1), x[:, 1] - x[:, 0] < 1
    series = [np.asarray(part) for part in (reference, synthetic) if part is not None]
    heights = [np.where(is_mass, part, part / widths) for part in series]
    offs = (margin or 0) / widths
    scale = _scale_bins(series, [heights[0], heights[-1] + offs], is_mass)
    marks: list[str] = []
    labels: list[str] = []
    for height, color in zip(heights[::-1], (_BLUE, _GREY), strict=False):
        is_synthetic = color == _BLUE
        tops, drawn = _HEIGHT - height * scale, []
        for i, top in enumerate(tops):
            tooltip = None
            if is_synthetic:
                behind = None if reference is None else reference[i]
                tooltip = _describe_share(levels[i], synthetic[i], behind)
            if is_mass[i]:
                at = x[i, 0] + (1.5 if is_synthetic else -1.5)
                drawn.append(_rect(at - 1.5, top, 3, _HEIGHT - top, color, tooltip))
                if is_synthetic:
                    anchor = "start" if at < _WIDTH / 2 else "end"
                    labels.append(_text(at, top - 3, f"{synthetic[i]:.0%}", anchor, halo=True))
                continue
            opacity = 0.55 if is_synthetic and len(heights) > 1 else 1
            drawn.append(_rect(x[i, 0], top, widths[i], _HEIGHT - top, color, tooltip, opacity))
            if is_synthetic and margin and synthetic[i] > 0:
                middle, off = x[i].mean(), offs[i] * scale[i]
                drawn.append(_line(middle, top - off, middle, min(top + off, _HEIGHT)))
        marks = drawn + marks
    marks.append(_line(4, _HEIGHT, _WIDTH - 4, _HEIGHT))
    for at, text in _find_ticks(low, high, is_date):
        place = np.interp(at, [low, high], [4, _WIDTH - 4])
        marks.append(_line(place, _HEIGHT, place, _HEIGHT + 4))
        inner = float(np.clip(place, 3.5 * len(text), _WIDTH - 3.5 * len(text)))
        marks.append(_text(inner, _HEIGHT + 15, text, "middle"))
    marks += labels
    return _svg(_WIDTH, _HEIGHT + 20, marks, _describe_shares(name, levels, synthetic, reference))


def _scale_bins(series, heights, is_mass) -> np.ndarray:
    """Return the pixels per height of each bin: of point masses, or bins, the larger are tallest.

    Parameters
    ----------
    series : list of ndarray
        The shares of the bins.
    heights : list of ndarray
        With error bars.
    is_mass : ndarray of bool
    """
    scale = np.zeros(len(is_mass))
    shares = [max(part[of].sum() for part in series) for of in (is_mass, ~is_mass)]
    for of, share in zip((is_mass, ~is_mass), shares, strict=True):
        tallest = max(height[of].max(initial=1e-9) for height in heights)
        scale[of] = (_HEIGHT - _TOP) * share / max(1e-9, *shares) / tallest
    return scale


def draw_matrix(
    names: Sequence[str], cells: Mapping[tuple[int, int], float | None], label: str
) -> str:
    """Return a heat map of numbers between -1 and 1.

    Parameters
    ----------
    names : sequence of str
    cells : dict of (int, int) to float
        Numbers by row and column; those of synthetic rows are above the diagonal.
    label : str
        For screen readers.
    """
    n, left = len(names), 130
    cell = max(6, min(30, 640 // n))
    has_names = cell >= 10
    marks: list[str] = []
    top = 80 if has_names else 0
    for (row, column), value in cells.items():
        if value is None:
            continue
        x, y = left + column * cell, top + row * cell
        which = "synthetic" if row < column else "reference"
        tooltip = f"{names[min(row, column)]}, {names[max(row, column)]}: {value:.2f} ({which})"
        color = _BLUE if value >= 0 else _RED
        shown = tooltip if n <= _MOST_NAMED else None
        marks.append(_rect(x, y, cell - 1, cell - 1, color, shown, min(1.0, abs(value))))
        if cell >= _WITH_NUMBER:
            text = f"{value:.2f}".replace("0.", ".")
            color = "#fff" if abs(value) > 0.6 else _INK
            marks.append(_text(x + cell / 2 - 0.5, y + cell / 2 + 3, text, "middle", color, 9))
    for i, name in enumerate(names):
        x, y = left + i * cell, top + i * cell
        marks.append(_rect(x, y, cell - 1, cell - 1, _DIAGONAL))
        if has_names:
            marks.append(_text(left - 6, y + cell / 2 + 4, _cut(name, 20), "end"))
            turned = _text(0, 0, _cut(name, 14))
            at = f"translate({x + cell / 2 + 2:g} {top - 5}) rotate(-60)"
            marks.append(f'<g transform="{at}">{turned}</g>')
    frame = (
        f'<rect x="{left}" y="{top}" width="{n * cell - 1}" height="{n * cell - 1}" fill="none" '
        f'stroke="{_GREY}"/>'
    )
    return _svg(left + n * cell + top // 2, top + n * cell, [*marks, frame], label)


def _describe_shares(name, levels, synthetic, reference) -> str:
    """Return a chart as text, for screen readers."""
    listed = "; ".join(
        _describe_share(level, synthetic[i], None if reference is None else reference[i])
        for i, level in enumerate(levels)
    )
    return f"Shares of the values of {name}. {listed}."


def _describe_share(level: str, synthetic: float, reference: float | None) -> str:
    text = f"{level}: {synthetic:.1%} of synthetic rows"
    return text if reference is None else f"{text}, {reference:.1%} of the reference"


def _find_ticks(low: float, high: float, is_date: bool) -> list[tuple[float, str]]:
    """Return round numbers, or dates, within a range, and their texts."""
    if not high > low:
        return [(low, _show_tick(low, is_date))]
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


def _show_tick(number: float, is_date: bool) -> str:
    return f"{pd.Timestamp(int(number), unit='s'):%Y-%m-%d}" if is_date else f"{number:,.10g}"


def _svg(width: int, height: int, marks: Iterable[str], label: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(label)}" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="system-ui, sans-serif" font-size="11" fill="{_INK}">{"".join(marks)}</svg>'
    )


def _rect(x, y, width, height, color: str, tooltip: str | None = None, opacity=1.0) -> str:
    title = "" if tooltip is None else f"<title>{escape(tooltip)}</title>"
    return (
        f'<rect x="{x:.4g}" y="{y:.4g}" width="{width:.4g}" height="{height:.4g}" fill="{color}" '
        f'fill-opacity="{opacity:.3g}">{title}</rect>'
    )


def _line(x1, y1, x2, y2) -> str:
    return (
        f'<line x1="{x1:.4g}" y1="{y1:.4g}" x2="{x2:.4g}" y2="{y2:.4g}" stroke="{_INK}" '
        'stroke-width="1.2"/>'
    )


def _text(
    x, y, text: str, anchor: str = "start", color: str = _INK, size: int = 11, halo: bool = False
) -> str:
    style = "" if size == 11 else f' fill="{color}" font-size="{size}"'
    if halo:  # legible in front of bars
        style += ' stroke="#fff" stroke-width="3" paint-order="stroke"'
    return f'<text x="{x:.5g}" y="{y:.5g}" text-anchor="{anchor}"{style}>{escape(text)}</text>'


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
