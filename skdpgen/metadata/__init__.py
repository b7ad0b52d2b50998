# SPDX-License-Identifier: BSD-3-Clause
"""Readers and writers of table metadata in other formats, one file each.

A format is a module with `NAME`, ``recognizes(document)`` and ``read(document, table)``, which
returns a `Description`, and with ``write(schema)`` if it is written, too. It is added to
`FORMATS`. Formats know fields; which column a field declares, column types say: see `Field.form`.
"""

import warnings
from collections.abc import Mapping
from os import PathLike
from types import ModuleType
from typing import Any

from ..accounting.strict_json import parse_json
from ..checks import check_choice, read_file
from ..messages import Message
from ..tables.declaration import check_keys
from ..tables.rules.feasibility import check_together
from ..tables.rules.rules import Ordered, Unique, parse_rules, split_document
from . import frictionless, json_schema, sdv, sql

# Formats by their names, in the order in which they are tried.
FORMATS: dict[str, ModuleType] = {
    "frictionless": frictionless,
    "sdv": sdv,
    "json_schema": json_schema,
    "sql": sql,
}
# What a file of a fit has beside its schema, and what people add.
_BESIDE = ("schema", "rules", "texts", "na_values", "report", "warnings", "suggested_rules")
WRITABLE = tuple(name for name, module in FORMATS.items() if hasattr(module, "write"))


def load(path_or_document: str | PathLike | Mapping) -> Any:
    """Return a document: a dict, or the text of SQL."""
    if isinstance(path_or_document, Mapping):
        return dict(path_or_document)
    text = path_or_document
    if not (isinstance(text, str) and (text.lstrip().startswith("{") or sql.recognizes(text))):
        text = read_file(text)
    return text if sql.recognizes(text) else parse_json(text.removeprefix("\ufeff"), "The metadata")


def read_metadata(document: object, declared: Mapping, table: str | None) -> tuple[dict, list]:
    """Return the columns and rules that a document declares, and warn of what is lost."""
    found = _find_format(document)
    if found is None:
        own = find_own(document)
        if own is None:
            known = ", ".join(module.NAME for module in FORMATS.values())
            raise ValueError(
                f"The metadata is of no known format; it must be one of: {known}, skdpgen schema."
            )
        columns, rules = own
        return {**columns, **declared}, rules
    try:
        description = found.read(document, table)
    except (AttributeError, KeyError, TypeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(
            f"The {found.NAME} is not as its format demands ({reason}). Correct it."
        ) from None
    names = [field.name for field in description.fields]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if not names or repeated:
        what = f"has {repeated} more than once" if repeated else "describes no columns"
        raise ValueError(f"The {found.NAME} {what}; correct it.")
    unknown = [name for name in declared if name not in names]
    if unknown:
        raise ValueError(f"declared names columns that the metadata does not have: {unknown}.")
    left = [field for field in description.fields if field.name not in declared]
    made = {field.name: _make_column(found.NAME, field) for field in left}
    columns = {**dict.fromkeys(names), **made, **declared}
    rules = _find_rules(description, columns)
    lost = [f"{f.name!r}: {', '.join(dict.fromkeys(f.dropped))}" for f in left if f.dropped]
    lost += [f"the table: {text}" for text in description.dropped]
    if lost:
        warnings.warn(
            f"A schema cannot express all that the {found.NAME} states, and this is dropped: "
            f"{'; '.join(lost)}. Declare what matters by Schema.replace(...) or by rules.",
            stacklevel=3,
        )
    return columns, rules


def recognizes(document: object) -> bool:
    """Return whether a document is of a known format, by its content."""
    return _find_format(document) is not None or find_own(document) is not None


def _find_format(document):
    return next((module for module in FORMATS.values() if module.recognizes(document)), None)


def find_own(document: object) -> tuple[Mapping, list] | None:
    """Return the columns and rules of a schema of this library, or None.

    Rules, and the report of a fit, may stand beside the schema.
    """
    if not isinstance(document, dict) or not document:
        return None
    schema, beside = document.get("schema"), []
    if not isinstance(schema, dict) or isinstance(schema.get("type"), str):
        schema = document
    else:
        check_keys(document, _BESIDE, 'a file with a "schema"')
        beside = document.get("rules", [])
    columns, rules = split_document(schema)
    is_own = isinstance(columns, dict) and all(
        isinstance(column, dict) and isinstance(column.get("type"), str)
        for column in columns.values()
    )
    return (columns, [*rules, *beside]) if is_own else None


def _make_column(format_name, field):
    try:
        return field.make_column()
    except ValueError as error:
        reason = str(error)
    raise ValueError(
        Message(
            "Column {column!r} of the {format} cannot be read: {reason} Correct the document, or "
            "declare the column{unknown}.",
            {"column": field.name, "format": format_name, "reason": reason},
        )
    )


def _find_rules(description, columns):
    """Return the rules of a document that hold of these columns; note the others."""
    single = [(f.name,) for f in description.fields if f.is_unique]
    rules = []
    for names in dict.fromkeys([*single, *description.unique]):
        # Identifiers are different anyway.
        if not any(name in columns and columns[name].is_generated for name in names):
            rules.append((Unique(list(names)), names, "unique"))
    for lower, upper, strict in dict.fromkeys(description.ordered):
        sign = "<" if strict else "<="
        rules.append((Ordered(lower, upper, strict), (lower, upper), f"{lower} {sign} {upper}"))
    known = []
    for rule, names, keyword in rules:
        try:
            # Rules of a document may contradict its columns, or each other.
            check_together(parse_rules([*known, rule], columns), columns)
        except ValueError:
            description.drop_of(names[:1], f"{keyword} ({', '.join(names)})")
        else:
            known.append(rule)
    return known


def write_metadata(schema, format: str) -> dict:
    """Return a schema in another format, and warn of what that cannot express."""
    check_choice("format", format, WRITABLE)
    module = FORMATS[format]
    document = module.write(schema)
    # Reading the document again finds all that is lost on the way; one warning names it.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again, rules = read_metadata(document, {}, None)
    lost = []
    for name, column in schema.items():
        values, known = vars(column), vars(again[name])
        differ = [parameter for parameter in values if values[parameter] != known.get(parameter)]
        if type(again[name]) is not type(column):
            lost.append(f"{name!r}: that it is {column!r}")
        elif differ:
            lost.append(f"{name!r}: {', '.join(differ)}")
    lost += [f"the rule {rule!r}" for rule in schema.rules if rule not in rules]
    if lost:
        warnings.warn(
            f"{module.NAME} cannot express all of this schema, and this is lost: "
            f"{'; '.join(lost)}. Schema.to_json keeps it.",
            stacklevel=3,
        )
    return document
