# SPDX-License-Identifier: BSD-3-Clause
"""Small tables of HTML, for notebooks; whatever is in them is escaped."""

from html import escape

# Longer texts are folded, and so are further rows.
_MOST_SIGNS, _MOST_ROWS = 240, 20


def make_table(caption, head, rows, notes=(), title="Assumptions"):
    """Return a table as HTML that stands by itself.

    Parameters
    ----------
    caption : str or list of str
        A text, or lines.
    head : sequence of str
        Names of the columns.
    rows : iterable of sequences
        Cells; what is no string is written by `str`.
    notes : sequence of str, default=()
        A list below, which is folded.
    title : str
        What stands above that.

    Examples
    --------
    >>> make_table("Sizes", ["name", "n"], [["<a>", 3]]).count("&lt;a&gt;")
    1
    """
    said = [caption] if isinstance(caption, str) else caption
    text = "<br/>".join(map(escape, said))
    caption = f'<caption style="text-align: left">{text}</caption>'
    lines = fold_rows([_row("td", row) for row in rows], caption + _row("th", head))
    if notes:
        listed = "".join(f"<li>{escape(note)}</li>" for note in notes)
        lines += fold(title, f"<ul>{listed}</ul>")
    return f"<div>{lines}</div>"


def fold(summary, html):
    """Return HTML that is shown once its summary, a text, is clicked."""
    return f"<details><summary>{escape(summary)}</summary>{html}</details>"


def fold_text(text):
    """Return a text as HTML, folded behind its first words if it is long, as lists of levels are.

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
    """Return a table of rows of HTML, of which those beyond the first 20 are folded."""
    shown, more = rows[:_MOST_ROWS], rows[_MOST_ROWS:]
    table = f"<table>{head}{''.join(shown)}</table>"
    return table + (fold(f"{len(more)} more", f"<table>{''.join(more)}</table>") if more else "")


def _row(tag, cells):
    style = ' style="text-align: left"'
    return "<tr>" + "".join(f"<{tag}{style}>{fold_text(str(c))}</{tag}>" for c in cells) + "</tr>"
