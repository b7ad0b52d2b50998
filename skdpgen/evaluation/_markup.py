# SPDX-License-Identifier: BSD-3-Clause
"""HTML elements of a report's page, and its styles."""

from collections.abc import Iterable, Sequence
from html import escape

from .._html import fold_rows, fold_text
from ..quality import GOOD, NOISE, ROUGH

# Text has a contrast of at least 4.5 to its background (WCAG 2.2, AA).
STYLE = """
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; color: #1c2733; background: #fff; margin: 0 auto;
  max-width: 76em; padding: 1.2em; }
h1 { margin: 0; font-size: 1.6em; overflow-wrap: anywhere; }
h2 { margin: 2em 0 .4em; border-bottom: 2px solid #d5dce3; }
p { max-width: 46em; margin: .5em 0; } .faint { color: #52606d; } a { color: #1f5a9c; }
.alarm { border: 3px solid #b3261e; background: #fdecea; color: #8c1d18; padding: .6em 1em;
  font-weight: 600; margin: 0 0 1em; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 28em), 1fr));
  gap: .9em; margin: .8em 0; font-size: .95em; line-height: 1.4; }
.card { border: 1px solid #8a99a8; border-radius: 6px; padding: .6em 1em; break-inside: avoid; }
.card h2 { margin: 0 0 .3em; border: 0; font-size: 1.15em; } .card ul { margin: .3em 0; }
.card ul, .card dl { padding-left: 1.1em; } .card dl { padding: 0; margin: .3em 0; }
.tiles { display: flex; flex-wrap: wrap; gap: .2em 1.6em; } .tiles div { display: flex;
  flex-direction: column-reverse; } .tiles dd { margin: 0; font-size: 1.35em; font-weight: 600; }
.light { font-weight: 600; white-space: nowrap; }
.good { color: #14663a; } .rough { color: #7d5200; } .noise { color: #a3231b; }
.sign { display: grid; grid-template-columns: max-content 1fr; gap: .9em .8em; margin-top: .8em; }
.sign span:nth-child(even) { border-bottom: 1px solid #1c2733; }
table { border-collapse: collapse; margin: .8em 0; }
th, td { text-align: left; padding: .2em 1em .2em 0; border-bottom: 1px solid #d5dce3;
  vertical-align: top; } .plain td { overflow-wrap: anywhere; } h3 { margin: 1.4em 0 .2em; }
td.number { text-align: right; font-variant-numeric: tabular-nums; }
.grid { display: flex; flex-wrap: wrap; gap: 1.2em; } figure { margin: 0; break-inside: avoid; }
figcaption { font-weight: 600; max-width: 280px; overflow-wrap: anywhere; }
figcaption span { font-weight: 400; color: #52606d; }
.wide { overflow-x: auto; }
svg { max-width: 100%; height: auto; } summary { cursor: pointer; color: #1f5a9c; }
:focus-visible { outline: 3px solid #1f5a9c; outline-offset: 2px; }
@page { size: A4; margin: 14mm; }
@media print {
  body { max-width: none; padding: 0; font-size: 10.5pt; print-color-adjust: exact; }
  .cards { grid-template-columns: 1fr 1fr; font-size: 9pt; }
  h2, h3 { break-after: avoid; } tr { break-inside: avoid; } .wide { overflow: visible; }
  table { font-size: 8pt; } th, td { padding-right: .7em; }
  .plain summary { display: none; }
  .plain ::details-content { content-visibility: visible; block-size: auto; }
}
"""
# Verdicts have signs, since not everybody sees colours.
_SIGNS = {GOOD: "●", ROUGH: "◐", NOISE: "○"}


class Verdict(str):
    """A verdict as a cell of a table."""


def show_verdict(verdict: str) -> str:
    """Return a verdict as HTML, with a sign of its own."""
    return f'<span class="light {verdict}">{_SIGNS[verdict]} {verdict}</span>'


def make_section(title: str, text: str, content: str = "") -> str:
    """Return a section of a page; the text is HTML."""
    return f"<section><h2>{title}</h2><p>{text}</p>{content}</section>"


def make_table(head: Sequence[str], rows: Iterable[Sequence]) -> str:
    """Return a table whose first column has row headers."""
    top = ""
    if head:
        cells = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
        top = f"<thead><tr>{cells}</tr></thead>"
    lines = []
    for first, *others in rows:
        cells = "".join(f"<td{_align(cell)}>{_show_cell(cell)}</td>" for cell in others)
        lines.append(f'<tr><th scope="row">{fold_text(str(first))}</th>{cells}</tr>')
    # A table wider than the screen scrolls by keys once it has the focus.
    label = escape(f"Table: {', '.join(head)}")
    plain = 'class="plain"'
    scrolls = f'class="wide" tabindex="0" role="region" aria-label="{label}"'
    return f"<div {scrolls if head else plain}>{fold_rows(lines, top)}</div>"


def _show_cell(cell) -> str:
    return show_verdict(cell) if isinstance(cell, Verdict) else fold_text(str(cell))


def _align(cell) -> str:
    is_number = str(cell).strip("±%").lstrip("-").replace(".", "").replace(",", "").isdigit()
    return ' class="number"' if is_number else ""


def make_list(texts: Iterable[str]) -> str:
    """Return a list of texts."""
    return f"<ul>{''.join(f'<li>{escape(text)}</li>' for text in texts)}</ul>"
