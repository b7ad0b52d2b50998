# SPDX-License-Identifier: BSD-3-Clause
"""Small tables of HTML, for notebooks; whatever is in them is escaped."""

from html import escape


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
    lines = ["<table>", f'<caption style="text-align: left">{text}</caption>', _row("th", head)]
    lines += [_row("td", row) for row in rows]
    lines.append("</table>")
    if notes:
        listed = "".join(f"<li>{escape(note)}</li>" for note in notes)
        lines.append(f"<details><summary>{escape(title)}</summary><ul>{listed}</ul></details>")
    return f"<div>{''.join(lines)}</div>"


def _row(tag, cells):
    style = ' style="text-align: left"'
    return "<tr>" + "".join(f"<{tag}{style}>{escape(str(c))}</{tag}>" for c in cells) + "</tr>"
