# SPDX-License-Identifier: BSD-3-Clause
"""HTML from the templates of the package, with escaped contents."""

from functools import cache


@cache
def _load_templates():
    # Late, since a fit writes no HTML.
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters |= {
        "thousands": "{:,}".format,
        "percent": lambda share, digits=1: f"{share:.{digits}%}",
    }
    environment.tests["number_text"] = _is_number
    return environment


def render(template, **values):
    """Return a template as text, in which all values are escaped."""
    return _load_templates().get_template(template).render(**values)


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
    return render(
        "notebook.html",
        caption=[caption] if isinstance(caption, str) else caption,
        head=head,
        rows=[list(row) for row in rows],
        notes=list(notes),
        title=title,
    )


def _is_number(cell):
    return str(cell).strip("±%").lstrip("-").replace(".", "").replace(",", "").isdigit()
