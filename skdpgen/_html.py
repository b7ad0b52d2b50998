# SPDX-License-Identifier: BSD-3-Clause
"""HTML tables for notebooks, with escaped contents."""

from html import escape

# Longer strings and further rows are collapsed.
_MOST_SIGNS, _MOST_ROWS = 240, 20


def make_table(caption, head, rows, notes=(), title="Assumptions"):
    """Return a standalone table in HTML.

    Parameters
    ----------
    caption : str or list of str
        One line, or several.
    head : sequence of str
        Names of the columns.
    rows : iterable of sequences
        Cells, converted by `str`.
    notes : sequence of str, default=()
        A collapsed list below the table.
    title : str
        Title of that list.

    Examples
    --------
    >>> make_table("Sizes", ["name", "n"], [["<a>", 3]]).count("&lt;a&gt;")
    1
    """
    captions = [caption] if isinstance(caption, str) else caption
    text = "<br/>".join(map(escape, captions))
    caption = f'<caption style="text-align: left">{text}</caption>'
    lines = fold_rows([_row("td", row) for row in rows], caption + _row("th", head))
    if notes:
        listed = "".join(f"<li>{escape(note)}</li>" for note in notes)
        lines += fold(title, f"<ul>{listed}</ul>")
    return f"<div>{lines}</div>"


def fold(summary, html):
    """Return HTML that is collapsed under a summary."""
    return f"<details><summary>{escape(summary)}</summary>{html}</details>"


def fold_text(text):
    """Return a string as HTML, collapsed after its first words if it is long.

    Examples
    --------
    >>> fold_text("a < b")
    'a &lt; b'
    >>> fold_text("level, " * 100).startswith("<details><summary>level, level, ")
    True
    """
    if len(text) <= _MOST_SIGNS:
        return escape(text)
    return fold(f"{text[: _MOST_SIGNS // 4].rstrip(' ,')} …", escape(text))


def fold_rows(rows, head=""):
    """Return a table of HTML rows; rows after the first 20 are collapsed."""
    shown, more = rows[:_MOST_ROWS], rows[_MOST_ROWS:]
    table = f"<table>{head}{''.join(shown)}</table>"
    return table + (fold(f"{len(more)} more", f"<table>{''.join(more)}</table>") if more else "")


def _row(tag, cells):
    style = ' style="text-align: left"'
    return "<tr>" + "".join(f"<{tag}{style}>{fold_text(str(c))}</{tag}>" for c in cells) + "</tr>"
