# SPDX-License-Identifier: BSD-3-Clause
"""Readers and writers of table metadata in other formats, one file each.

A new format is a module with `NAME`, ``recognizes(document)`` and ``read(document, table)``, and
with ``write(schema)`` if it is written, too. It is added to `FORMATS`.
"""

import warnings
from collections.abc import Mapping
from dataclasses import fields as list_parameters
from os import PathLike
from types import ModuleType
from typing import Any

from ..accounting.strict_json import parse_json
from ..checks import check_choice, read_file
from ..messages import Message
from ..tables.columns import TYPES
from ..tables.rules.rules import Ordered, Unique
from . import frictionless, json_schema, own, sdv, sql
from .fields import Description, make_column

# Formats by their names, in the order in which they are tried.
FORMATS: dict[str, ModuleType] = {
    "frictionless": frictionless,
    "sdv": sdv,
    "json_schema": json_schema,
    "sql": sql,
}
WRITABLE = tuple(name for name, module in FORMATS.items() if hasattr(module, "write"))


def load(path_or_document: str | PathLike | Mapping) -> Any:
    """Return a document: a dict, or the text of SQL.

    Parameters
    ----------
    path_or_document : str, path or dict
        The document, its text, or the name of its file.
    """
    if isinstance(path_or_document, Mapping):
        return dict(path_or_document)
    text = path_or_document
    if not (isinstance(text, str) and (text.lstrip().startswith("{") or sql.recognizes(text))):
        text = read_file(text)
    return text if sql.recognizes(text) else parse_json(text.removeprefix("\ufeff"), "The metadata")


def find_format(document: object) -> ModuleType | None:
    """Return the format of a document, by its content; None if it is unknown."""
    return next((f for f in (*FORMATS.values(), own) if f.recognizes(document)), None)


def read_metadata(make_schema, document: object, declared: Mapping, rules, table: str | None):
    """Return the schema that a document declares, and warn of what is lost.

    Parameters
    ----------
    make_schema : callable
        `Schema`.
    document : object
        As `load` returns it.
    declared : dict of str to column
        Columns to describe in this way instead.
    rules : sequence of Rule
        Rules of all rows besides those of the document.
    table : str or None
        The table to read, of several.
    """
    found = find_format(document)
    if found is None:
        names = ", ".join(module.NAME for module in (*FORMATS.values(), own))
        raise ValueError(f"The metadata is of no known format; it must be one of: {names}.")
    if found is own and isinstance(document, dict):
        schema = make_schema(own.unwrap(document))
        return make_schema({**schema, **declared}, [*schema.rules, *rules])
    try:
        description = found.read(document, table)
    except (AttributeError, KeyError, TypeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(
            f"The {found.NAME} is not as its format demands ({reason}). Correct it."
        ) from None
    schema = _make_schema(make_schema, found.NAME, description, dict(declared), list(rules))
    _warn_of_lost(found.NAME, description, declared)
    return schema


def _make_schema(make_schema, format_name, description, declared, rules):
    names = [field.name for field in description.fields]
    repeated = sorted({name for name in names if names.count(name) > 1})
    if not names or repeated:
        what = f"has {repeated} more than once" if repeated else "describes no columns"
        raise ValueError(f"The {format_name} {what}; correct it.")
    unknown = [name for name in declared if name not in names]
    if unknown:
        raise ValueError(f"declared names columns that the metadata does not have: {unknown}.")
    columns = {}
    for field in description.fields:
        if field.name not in declared:
            columns[field.name] = _make_column(make_schema, format_name, field)
        else:
            columns[field.name] = declared[field.name]
    rules += _find_rules(make_schema, description, make_schema(columns))
    return make_schema(columns, rules)


def _make_column(make_schema, format_name, field):
    try:
        column = make_column(field)
        # Alone, so that an error is of this column.
        make_schema({field.name: column})
        return column
    except ValueError as error:
        reason = str(error)
    raise ValueError(
        Message(
            "Column {column!r} of the {format} cannot be read: {reason} Correct the document, or "
            "declare the column{unknown}.",
            {"column": field.name, "format": format_name, "reason": reason},
        )
    )


def _find_rules(make_schema, description, schema):
    """Return the rules of a document that hold of these columns; note the others."""
    single = [(f.name,) for f in description.fields if f.is_unique]
    rules = []
    for names in dict.fromkeys([*single, *description.unique]):
        # Identifiers are different anyway.
        if not any(name in schema and schema[name].is_generated for name in names):
            rules.append((Unique(list(names)), names, "unique"))
    for lower, upper, strict in dict.fromkeys(description.ordered):
        sign = "<" if strict else "<="
        rules.append((Ordered(lower, upper, strict), (lower, upper), f"{lower} {sign} {upper}"))
    known = []
    for rule, names, keyword in rules:
        try:
            # Rules of a document may contradict its columns, or each other.
            make_schema(dict(schema), [*known, rule])
        except ValueError:
            description.drop_of(names[:1], f"{keyword} ({', '.join(names)})")
        else:
            known.append(rule)
    return known


def _warn_of_lost(format_name: str, description: Description, declared: Mapping) -> None:
    lost = [
        f"{field.name!r}: {', '.join(dict.fromkeys(field.dropped))}"
        for field in description.fields
        if field.dropped and field.name not in declared
    ]
    lost += [f"the table: {text}" for text in description.dropped]
    if lost:
        warnings.warn(
            f"A schema cannot express all that the {format_name} states, and this is dropped: "
            f"{'; '.join(lost)}. Declare what matters by Schema.replace(...) or by rules.",
            stacklevel=4,
        )


def write_metadata(make_schema, schema, format: str) -> dict:
    """Return a schema in another format, and warn of what that cannot express.

    Parameters
    ----------
    make_schema : callable
        `Schema`.
    schema : Schema
    format : str
        One of `WRITABLE`.
    """
    check_choice("format", format, WRITABLE)
    module = FORMATS[format]
    document = module.write(schema)
    # Reading the document again finds all that is lost on the way; one warning names it.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        again = read_metadata(make_schema, document, {}, (), None)
    lost = _find_lost(schema, again)
    if lost:
        warnings.warn(
            f"{module.NAME} cannot express all of this schema, and this is lost: "
            f"{'; '.join(lost)}. Schema.to_json keeps it.",
            stacklevel=3,
        )
    return document


def _find_lost(schema, again) -> list[str]:
    """Return what a schema that was written and read lacks."""
    lost = []
    for name, column in schema.items():
        if again[name] == column:
            continue
        if type(again[name]) is not type(column):
            lost.append(f"{name!r}: that it is {column!r}")
            continue
        differ = [
            parameter.name
            for parameter in list_parameters(TYPES[type(column).__name__.lower()])
            if getattr(column, parameter.name) != getattr(again[name], parameter.name)
        ]
        lost.append(f"{name!r}: {', '.join(differ)}")
    return lost + [f"the rule {rule!r}" for rule in schema.rules if rule not in again.rules]
