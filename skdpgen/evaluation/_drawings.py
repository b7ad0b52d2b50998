# SPDX-License-Identifier: BSD-3-Clause
"""Drawings of a report, as SVG in the text of a page."""

from html import escape

_BLUE, _GREY, _INK = "#2f6db3", "#a9b4be", "#1c2733"
_WIDTH, _LABEL, _LINE = 280, 110, 17
# Bars that are drawn of a column.
MOST_BARS = 14
_MOST_NAMED = 60


def draw_bars(levels, synthetic, reference, name):
    """Draw the shares of the first levels as bars, those of a reference behind them.

    Parameters
    ----------
    levels : list of str
    synthetic : list of float
    reference : list of float or None
    name : str
        What it is of, for those who cannot see it.
    """
    n = min(len(levels), MOST_BARS)
    largest = max([*synthetic[:n], *(reference or [0.0])[:n], 1e-9])
    scale = (_WIDTH - _LABEL - 40) / largest
    marks = []
    for i in range(n):
        top = i * _LINE
        said = f"{levels[i]}: {synthetic[i]:.1%} of synthetic rows"
        if reference is not None:
            said += f", {reference[i]:.1%} of the reference"
            marks.append(_rect(_LABEL, top + 1, reference[i] * scale, _LINE - 4, _GREY))
        thin = reference is not None
        marks.append(
            _rect(
                _LABEL,
                top + (4 if thin else 1),
                synthetic[i] * scale,
                _LINE - (10 if thin else 4),
                _BLUE,
                said,
            )
        )
        marks.append(_text(_LABEL - 5, top + 12, _cut(levels[i], 17), "end"))
        end = _LABEL + 4 + max(synthetic[i], (reference or synthetic)[i]) * scale
        marks.append(_text(end, top + 12, f"{synthetic[i]:.0%}"))
    return _svg(_WIDTH, n * _LINE, marks, f"Shares of the values of {name}")


def draw_matrix(names, pairs):
    """Draw associations: those of synthetic rows above the diagonal, of a reference below it."""
    n = len(names)
    cell = max(6, min(26, 640 // n))
    left = 130
    places = {name: i for i, name in enumerate(names)}
    marks = []
    for pair in pairs:
        i, j = places[pair["first"]], places[pair["second"]]
        for row, column, which in ((i, j, "synthetic"), (j, i, "reference")):
            if pair.get(which) is not None:
                said = None
                if n <= _MOST_NAMED:
                    said = f"{pair['first']}, {pair['second']}: {pair[which]:.2f} ({which})"
                marks.append(
                    _rect(
                        left + column * cell,
                        row * cell,
                        cell - 1,
                        cell - 1,
                        _BLUE,
                        said,
                        pair[which],
                    )
                )
    for i, name in enumerate(names):
        marks.append(_rect(left + i * cell, i * cell, cell - 1, cell - 1, "#dde3e8"))
        if cell >= 10:
            marks.append(_text(left - 6, i * cell + cell / 2 + 4, _cut(name, 20), "end"))
    frame = (
        f'<rect x="{left}" y="0" width="{n * cell - 1}" height="{n * cell - 1}" fill="none" '
        f'stroke="{_GREY}"/>'
    )
    return _svg(left + n * cell, n * cell, [*marks, frame], "Associations of pairs of columns")


def _svg(width, height, marks, said):
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(said)}" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="system-ui, sans-serif" font-size="11" fill="{_INK}">{"".join(marks)}</svg>'
    )


def _rect(x, y, width, height, color, said=None, opacity=1.0):
    title = "" if said is None else f"<title>{escape(said)}</title>"
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:.4g}" height="{height:g}" fill="{color}" '
        f'fill-opacity="{opacity:.3g}">{title}</rect>'
    )


def _text(x, y, text, anchor="start"):
    return f'<text x="{x:.5g}" y="{y:g}" text-anchor="{anchor}">{escape(text)}</text>'


def _cut(text, most):
    return text if len(text) <= most else f"{text[: most - 1]}…"
