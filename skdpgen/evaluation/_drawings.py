# SPDX-License-Identifier: BSD-3-Clause
"""SVG drawings of a report: bar charts of marginals and matrices of associations."""

from collections.abc import Iterable, Sequence
from html import escape

# Colours of synthetic rows, of a reference, and of text.
_BLUE, _GREY, _INK = "#2f6db3", "#a9b4be", "#1c2733"
_DIAGONAL = "#dde3e8"
# Widths of a chart and of its labels, and the height of a bar, in pixels.
_WIDTH, _LABEL, _LINE = 280, 110, 17
# A column has a chart of at most so many bars, so that charts fit side by side.
MOST_BARS = 14
# Cells of larger matrices have no tooltips, which would make the page several megabytes large.
_MOST_NAMED = 60


def draw_bars(
    levels: Sequence[str],
    synthetic: Sequence[float],
    reference: Sequence[float] | None,
    name: str,
) -> str:
    """Return a bar chart of the shares of the first levels, in front of those of a reference.

    Parameters
    ----------
    levels : sequence of str
    synthetic : sequence of float
        The share of each level.
    reference : sequence of float or None
    name : str
        The name of the column, for screen readers.
    """
    n, has_reference = min(len(levels), MOST_BARS), reference is not None
    behind = [0.0] * n if reference is None else reference
    scale = (_WIDTH - _LABEL - 40) / max([*synthetic[:n], *behind[:n], 1e-9])
    inset = 3 if has_reference else 0
    marks = []
    for i in range(n):
        top = i * _LINE
        tooltip = f"{levels[i]}: {synthetic[i]:.1%} of synthetic rows"
        if has_reference:
            tooltip += f", {behind[i]:.1%} of the reference"
            marks.append(_rect(_LABEL, top + 1, behind[i] * scale, _LINE - 4, _GREY))
        height = _LINE - 4 - 2 * inset
        marks.append(_rect(_LABEL, top + 1 + inset, synthetic[i] * scale, height, _BLUE, tooltip))
        marks.append(_text(_LABEL - 5, top + 12, _cut(levels[i], 17), "end"))
        end = _LABEL + 4 + max(synthetic[i], behind[i]) * scale
        marks.append(_text(end, top + 12, f"{synthetic[i]:.0%}"))
    return _svg(_WIDTH, n * _LINE, marks, f"Shares of the values of {name}")


def draw_matrix(names: Sequence[str], pairs: Iterable[dict]) -> str:
    """Return a matrix of associations: synthetic above the diagonal, the reference below it.

    Parameters
    ----------
    names : sequence of str
    pairs : iterable of dict
        ``first`` and ``second`` are names; ``synthetic`` and ``reference``, if there, associations.
    """
    n, left = len(names), 130
    cell = max(6, min(26, 640 // n))
    positions = {name: i for i, name in enumerate(names)}
    marks = []

    def fill(row, column, *style):
        marks.append(_rect(left + column * cell, row * cell, cell - 1, cell - 1, *style))

    for pair in pairs:
        i, j = positions[pair["first"]], positions[pair["second"]]
        for row, column, which in ((i, j, "synthetic"), (j, i, "reference")):
            if pair.get(which) is not None:
                tooltip = f"{pair['first']}, {pair['second']}: {pair[which]:.2f} ({which})"
                fill(row, column, _BLUE, tooltip if n <= _MOST_NAMED else None, pair[which])
    for i, name in enumerate(names):
        fill(i, i, _DIAGONAL)
        if cell >= 10:
            marks.append(_text(left - 6, i * cell + cell / 2 + 4, _cut(name, 20), "end"))
    frame = (
        f'<rect x="{left}" y="0" width="{n * cell - 1}" height="{n * cell - 1}" fill="none" '
        f'stroke="{_GREY}"/>'
    )
    return _svg(left + n * cell, n * cell, [*marks, frame], "Associations of pairs of columns")


def _svg(width: int, height: int, marks: Iterable[str], label: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(label)}" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="system-ui, sans-serif" font-size="11" fill="{_INK}">{"".join(marks)}</svg>'
    )


def _rect(x, y, width, height, color: str, tooltip: str | None = None, opacity=1.0) -> str:
    title = "" if tooltip is None else f"<title>{escape(tooltip)}</title>"
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:.4g}" height="{height:g}" fill="{color}" '
        f'fill-opacity="{opacity:.3g}">{title}</rect>'
    )


def _text(x, y, text: str, anchor: str = "start") -> str:
    return f'<text x="{x:.5g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
