# SPDX-License-Identifier: BSD-3-Clause
"""JSON Schema: of an object, which is a row, or of an array of objects.

The format is described at https://json-schema.org/draft/2020-12/json-schema-validation. Schemas of
OpenAPI and of Pydantic are read, too.
"""

from decimal import Decimal
from typing import Any

from .fields import Description, Field, as_list, choose_table

NAME = "JSON Schema"
_TYPES = ("integer", "number", "boolean", "string")
# Keywords that constrain nothing, or that are read elsewhere.
_NOTES = {"type", "title", "description", "default", "examples", "example", "deprecated", "format"}
_NOTES |= {"readOnly", "writeOnly", "nullable", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"}
_NOTES |= {"properties", "required", "$schema", "$id", "$defs", "definitions", "$comment", "items"}
# Formats of widths of numbers, in OpenAPI.
_WIDTHS = ("int32", "int64", "float", "double")


def recognizes(document) -> bool:
    """Return whether a document is of this format."""
    if not isinstance(document, dict):
        return False
    is_named = "json-schema.org" in str(document.get("$schema", ""))
    is_object = document.get("type") in ("object", "array")
    return (is_named or is_object) and any(
        key in document for key in ("properties", "items", "$ref", "$defs", "definitions")
    )


def read(document: dict, table: str | None) -> Description:
    """Return the description of the properties of an object."""
    row = _resolve(document, document)
    if row.get("type") == "array" or ("items" in row and "properties" not in row):
        row = _resolve(row.get("items", {}), document)
    if not isinstance(row.get("properties"), dict):
        named = document.get("$defs", document.get("definitions", {}))
        tables = {name: spec for name, spec in named.items() if "properties" in spec}
        row = _resolve(tables[choose_table(tables, table)], document)
    required = row.get("required", [])
    fields = [
        _read(name, spec, name in required, document) for name, spec in row["properties"].items()
    ]
    notes = _NOTES | {"additionalProperties", "x-order"}
    dropped = [key for key in row if key not in notes and not key.startswith("x-")]
    return Description(fields, dropped=dropped)


def _resolve(spec, document):
    """Return a schema with its references into the same document resolved."""
    # A limit, as references can form a circle.
    for _ in range(20):
        reference = spec.get("$ref")
        if reference is None:
            return spec
        if not str(reference).startswith("#/"):
            raise ValueError(f"it refers to {reference!r}, another document; copy that into it.")
        target: Any = document
        for part in reference[2:].split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(target, dict) or key not in target:
                raise ValueError(f"it refers to {reference!r}, which is not in the document.")
            target = target[key]
        spec = {**target, **{key: value for key, value in spec.items() if key != "$ref"}}
    raise ValueError("its references lead in a circle.")


def _read(name, spec, is_required, document):
    field = Field(name)
    try:
        spec, may_be_null = _flatten(spec, document)
    except ValueError as error:
        field.problem = str(error)
        return field
    types = [text for text in as_list(spec.get("type")) if text != "null"]
    may_be_null |= "null" in as_list(spec.get("type")) or spec.get("nullable", False)
    field.missing = may_be_null or not is_required
    # Integers are numbers, too.
    if set(types) == {"integer", "number"}:
        types = ["number"]
    if len(types) == 1 and types[0] in _TYPES:
        field.type = types[0]
    elif len(types) == 1:
        field.problem = f"no column type holds values of type {types[0]!r}."
    elif types:
        field.drop("that it is of one of several types", types)
    if "enum" in spec or "const" in spec:
        field.categories = list(spec.get("enum", [spec.get("const")]))
        if field.type is None and set(map(type, field.categories)) <= {bool, type(None)}:
            field.type = "boolean"
        # Both values: then the list says no more than the type.
        if field.type == "boolean" and {True, False} <= set(field.categories):
            field.missing |= None in field.categories
            field.categories = None
    _read_format(field, spec.get("format"))
    _read_numbers(field, spec)
    if "pattern" in spec:
        field.match(spec["pattern"])
    read = _NOTES | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
    for keyword, value in spec.items():
        if keyword not in read | {"pattern"} and not keyword.startswith("x-"):
            field.drop(keyword, value)
    return field


def _flatten(spec, document):
    """Return a schema without alternatives, and whether one of them was null."""
    if spec is True:
        return {}, True
    if not isinstance(spec, dict):
        raise ValueError(f"its schema must be an object; got {spec!r}.")
    spec, may_be_null = _resolve(spec, document), False
    for keyword in ("allOf", "anyOf", "oneOf"):
        if keyword not in spec:
            continue
        parts = [_resolve(part, document) for part in spec[keyword]]
        left = [part for part in parts if part.get("type") != "null"]
        may_be_null |= len(left) < len(parts)
        rest = {key: value for key, value in spec.items() if key != keyword}
        if keyword == "allOf" or len(left) == 1:
            for part in left:
                inner, is_null = _flatten(part, document)
                rest, may_be_null = {**inner, **rest}, may_be_null or is_null
            spec = rest
        elif all("const" in part for part in left):
            spec = {**rest, "enum": [part["const"] for part in left]}
        else:
            types = [text for part in left for text in as_list(part.get("type"))]
            spec = {**rest, "type": list(dict.fromkeys(types)), f"{keyword} of several": len(left)}
    return spec, may_be_null


def _read_format(field, text):
    if text is None or text in _WIDTHS:
        return
    if text == "date" and field.type == "string":
        field.type = "string" if field.categories else "date"
    elif text == "date-time" and field.type == "string":
        # RFC 3339: all times name their offset.
        field.type, field.zone = "datetime", "UTC"
    elif text == "uuid":
        field.is_random = True
    elif text in ("time", "duration") and field.type == "string":
        field.set_type(text)
    else:
        field.drop("format", text)


def _read_numbers(field, spec):
    step = spec.get("multipleOf")
    if step is not None:
        exact = Decimal(str(step)).normalize()
        field.decimals = max(0, -int(exact.as_tuple().exponent))
        if field.type == "number" and field.decimals == 0:
            field.type = "integer"
        if exact != Decimal(1).scaleb(-field.decimals):
            field.drop("multipleOf", step)
    for keyword, name in (("Minimum", "lower"), ("Maximum", "upper")):
        bound, exclusive = spec.get(keyword.lower()), spec.get(f"exclusive{keyword}")
        # In draft 4 it is a flag.
        if isinstance(exclusive, bool):
            field.limit(**{name: bound}, is_exclusive=exclusive)
        else:
            field.limit(**{name: bound})
            field.limit(**{name: exclusive}, is_exclusive=True)
