# SPDX-License-Identifier: BSD-3-Clause
"""Metadata of CSV on the Web, as JSON.

The format is described at https://www.w3.org/TR/tabular-metadata/.
"""

from typing import Any
from urllib.parse import unquote

from .date_formats import convert_date_format
from .fields import Description, Field, Type, as_list, set_date_format
from .tables import choose_table

NAME = "CSVW metadata"
_CONTEXT = "http://www.w3.org/ns/csvw"
_TYPES = {
    **dict.fromkeys(
        ["string", "normalizedString", "token", "language", "Name", "NMTOKEN"], Type.TEXT
    ),
    **dict.fromkeys(["anyURI", "QName"], Type.TEXT),
    **dict.fromkeys(["integer", "long", "int", "short", "byte", "gYear"], Type.INTEGER),
    **dict.fromkeys(["decimal", "double", "float", "number"], Type.NUMBER),
    "boolean": Type.BOOLEAN,
    "date": Type.DATE,
    **dict.fromkeys(["dateTime", "datetime", "dateTimeStamp"], Type.DATETIME),
    **dict.fromkeys(["any", "anyAtomicType"]),
}
_LOWER = {"nonNegativeInteger": 0, "positiveInteger": 1, "unsignedLong": 0, "unsignedInt": 0}
_LOWER |= {"unsignedShort": 0, "unsignedByte": 0}
_UPPER = {"nonPositiveInteger": 0, "negativeInteger": -1}
# Types that are read as categories.
_AS_TEXTS = {"time", "duration", "dayTimeDuration", "yearMonthDuration", "gDay", "gMonth"}
_AS_TEXTS |= {"gMonthDay", "gYearMonth"}
# Properties that a column takes from its schema, table or group of tables.
_INHERITED = ("datatype", "null", "required", "separator", "default")


def recognizes(document) -> bool:
    """Return whether a document is of this format."""
    if not isinstance(document, dict):
        return False
    return _CONTEXT in as_list(document.get("@context")) or (
        "tableSchema" in document and "url" in document
    )


def read(document: dict, table: str | None) -> Description:
    """Return the description of a table in a document."""
    # Properties are inherited from the group of tables to the table, its schema and its columns.
    above: dict[str, Any] = _pick(document)
    if "tables" in document:
        tables = {str(t.get("url", i)): t for i, t in enumerate(document["tables"])}
        document = tables[choose_table(tables, table)]
        above |= _pick(document)
    schema = document.get("tableSchema", document)
    if not isinstance(schema, dict) or not isinstance(schema.get("columns"), list):
        raise ValueError(
            "The CSVW metadata has no tableSchema with columns; give the document that it names."
        )
    above |= _pick(schema)
    columns = [column for column in schema["columns"] if not column.get("virtual", False)]
    # Keys refer to names, and the file has titles.
    names = {}
    fields = []
    for number, column in enumerate(columns, 1):
        fields.append(_read({**above, **column}, number))
        names[column.get("name", fields[-1].name)] = fields[-1].name
    found = Description(fields)
    if "primaryKey" in schema:
        found.set_key([names.get(name, name) for name in as_list(schema["primaryKey"])])
    for key in schema.get("foreignKeys", []):
        listed = as_list(key.get("columnReference"))
        found.drop_of([names.get(name, name) for name in listed], "foreign key")
    return found


def _pick(document):
    return {key: document[key] for key in _INHERITED if key in document}


def _read(spec, number):
    given = spec.get("datatype", "string")
    rules: dict[str, Any] = dict(given) if isinstance(given, dict) else {"base": given}
    base = rules.pop("base", "string")
    field = Field(_find_name(spec, number), _TYPES.get(base), missing=not spec.get("required"))
    if base in _LOWER or base in _UPPER:
        field.type, field.lower, field.upper = Type.INTEGER, _LOWER.get(base), _UPPER.get(base)
    elif base in _AS_TEXTS:
        field.type = Type.TEXT
        field.drop(f"that it is of type {base} (it is read as a category)")
    elif base not in _TYPES:
        field.problem = f"no column type holds values of type {base!r}."
    if spec.get("separator") is not None:
        field.problem = "its cells are lists, which no column type holds."
    if base == "dateTimeStamp":
        field.zone = "UTC"
    _read_format(field, rules.pop("format", None))
    field.limit_by(rules)
    for keyword, value in rules.items():
        if not keyword.startswith("@") and keyword not in ("title", "description"):
            field.drop(keyword, value)
    if spec.get("default"):
        field.drop("default", spec["default"])
    field.mark_missing(as_list(spec.get("null")))
    return field


def _find_name(spec, number):
    """Return the first title, which is what the first line of the file holds; else the name."""
    titles = spec.get("titles", spec.get("title"))
    if isinstance(titles, dict):
        titles = next(iter(titles.values()), None)
    listed = as_list(titles)
    if listed:
        return str(listed[0])
    return unquote(spec["name"]) if "name" in spec else f"_col.{number}"


def _read_format(field, given):
    if given is None:
        return
    if field.type in (Type.DATE, Type.DATETIME):
        set_date_format(field, convert_date_format(given))
    elif field.type == Type.BOOLEAN:
        true, _, false = given.partition("|")
        field.name_booleans([true], [false])
    elif field.type in (Type.INTEGER, Type.NUMBER):
        style = given if isinstance(given, dict) else {"pattern": given}
        if style.get("decimalChar", ".") != ".":
            field.style["decimal"] = style["decimalChar"]
        pattern = str(style.get("pattern", ""))
        group = style.get("groupChar", "," if "," in pattern else None)
        if group is not None:
            field.style["thousands"] = group
        _, point, fraction = pattern.partition(".")
        if field.type == Type.NUMBER and point:
            field.decimals = fraction.count("0") + fraction.count("#")
        if pattern.strip("#0,.") or (field.type == Type.NUMBER and pattern and not point):
            field.drop("format", pattern)
    else:
        field.match(given, "format")
