# SPDX-License-Identifier: BSD-3-Clause
"""Frictionless Table Schema, versions 1 and 2: alone, in a resource, or in a data package.

The format is described at https://datapackage.org/standard/table-schema. Pandas writes it, too, by
``DataFrame.to_json(orient="table")``.
"""

from ..tables.columns import Boolean, Category, Date, Identifier, Number, Ordinal
from ..tables.rules.rules import Unique
from .choice import choose_table
from .fields import Description, Field, Type, as_list, set_date_format, write_template

NAME = "Frictionless Table Schema"
_TYPES = {
    "string": Type.TEXT,
    "number": Type.NUMBER,
    "integer": Type.INTEGER,
    "boolean": Type.BOOLEAN,
    "date": Type.DATE,
    "datetime": Type.DATETIME,
    "year": Type.INTEGER,
    "any": None,
}
# Types that are read as categories, and types of cells that are no scalars.
_AS_TEXTS = ("time", "yearmonth", "duration", "geopoint")
_NESTED = ("object", "array", "list", "geojson")
_TRUE, _FALSE = ["true", "True", "TRUE", "1"], ["false", "False", "FALSE", "0"]


def recognizes(document) -> bool:
    """Return whether a document is of this format."""
    if not isinstance(document, dict):
        return False
    return _is_schema(document) or _is_schema(document.get("schema")) or _has_resources(document)


def _is_schema(document):
    return isinstance(document, dict) and isinstance(document.get("fields"), list)


def _has_resources(document):
    return isinstance(document.get("resources"), list)


def read(document: dict, table: str | None) -> Description:
    """Return the description of a table in a document."""
    if _has_resources(document):
        resources = {str(r.get("name", i)): r for i, r in enumerate(document["resources"])}
        document = resources[choose_table(resources, table)]
    if not _is_schema(document):
        if not _is_schema(document.get("schema")):
            raise ValueError(
                f"The resource has {document.get('schema')!r} as its 'schema', and no Table "
                "Schema; give the document that it names."
            )
        document = document["schema"]
    missing = document.get("missingValues", [""])
    found = Description([_read(spec, missing) for spec in document["fields"]])
    if document.get("primaryKey"):
        found.set_key(as_list(document["primaryKey"]))
    found.unique += [tuple(as_list(names)) for names in document.get("uniqueKeys", [])]
    for key in document.get("foreignKeys", []):
        found.drop_of(as_list(key.get("fields")), "foreign key")
    return found


def _read(spec, missing):
    given, rules = spec.get("type"), dict(spec.get("constraints", {}))
    if not isinstance(spec.get("name"), str):
        raise ValueError(f"Each field needs a 'name'; got {spec!r}.")
    field = Field(spec["name"], _TYPES.get(given), missing=not rules.pop("required", False))
    if given in _AS_TEXTS:
        field.type = Type.TEXT
        field.drop(f"that it is of type {given} (it is read as a category)")
    elif given in _NESTED or (given is not None and given not in _TYPES):
        field.problem = f"no column type holds values of type {given!r}."
    _read_categories(field, spec, rules)
    _read_format(field, spec, given)
    _read_style(field, spec)
    field.zone = spec.get("tz", field.zone)
    field.limit_by(rules)
    field.is_unique = rules.pop("unique", False)
    if "pattern" in rules:
        field.match(rules.pop("pattern"))
    for keyword, value in rules.items():
        field.drop(keyword, value)
    # A field overrides what the schema says of all.
    codes = spec.get("missingValues", missing)
    field.mark_missing([code["value"] if isinstance(code, dict) else code for code in codes])
    return field


def _read_categories(field, spec, rules):
    listed = spec.get("categories")
    if listed is not None:
        field.categories = [c["value"] if isinstance(c, dict) else c for c in listed]
    # Pandas writes "ordered".
    field.is_ordered = bool(spec.get("categoriesOrdered", spec.get("ordered", False)))
    if "enum" in rules:
        allowed = rules.pop("enum")
        if field.categories is None:
            field.categories = list(allowed)
        else:
            field.categories = [level for level in field.categories if level in allowed]
    is_text = field.categories and all(isinstance(level, str) for level in field.categories)
    # Dates have no list of levels here: listed ones are categories.
    if field.type in (Type.DATE, Type.DATETIME) and is_text:
        field.type = Type.TEXT


def _read_format(field, spec, given):
    text = spec.get("format", "default")
    if given in ("date", "datetime"):
        if text == "any":
            field.drop("that its dates are written in any format (ISO 8601 is read)")
        elif text != "default":
            set_date_format(field, text)
    elif text == "uuid":
        field.is_random = True
    elif text != "default":
        field.drop("format", text)


def _read_style(field, spec):
    if spec.get("decimalChar", ".") != ".":
        field.style["decimal"] = spec["decimalChar"]
    if spec.get("groupChar"):
        field.style["thousands"] = spec["groupChar"]
    if spec.get("bareNumber") is False:
        field.drop("that texts other than currencies and percent signs stand beside its numbers")
    if field.type == Type.BOOLEAN and ("trueValues" in spec or "falseValues" in spec):
        field.name_booleans(spec.get("trueValues", _TRUE), spec.get("falseValues", _FALSE))


def write(schema) -> dict:
    """Return a schema in this format, as far as the format can express it."""
    document: dict = {"$schema": "https://datapackage.org/profiles/2.0/tableschema.json"}
    document["fields"] = [_write(name, column) for name, column in schema.items()]
    keys = [name for name, column in schema.items() if isinstance(column, Identifier)]
    # A schema does not say which of several identifiers is the key.
    if len(keys) == 1:
        document["primaryKey"] = keys
    unique = [list(rule.columns) for rule in schema.rules if isinstance(rule, Unique)]
    if unique:
        document["uniqueKeys"] = unique
    return document


def write_package(schemas, files: dict[str, str], key: str) -> dict:
    """Return a data package of two tables, of which the second has foreign keys of the first.

    Parameters
    ----------
    schemas : dict of str to Schema
        By the names of tables, without keys; a table of keys alone has none.
    files : dict of str to str
        The files of both tables, that of persons first.
    key : str
        The column that identifies persons, of whole numbers.
    """
    resources: list[dict] = []
    for name, path in files.items():
        schema = write(schemas[name]) if name in schemas else {"fields": []}
        identifier = {"name": key, "type": "integer", "constraints": {"required": True}}
        schema["fields"] = [identifier, *schema["fields"]]
        if not resources:
            schema["primaryKey"] = [key]
        else:
            reference = {"resource": resources[0]["name"], "fields": [key]}
            schema["foreignKeys"] = [{"fields": [key], "reference": reference}]
        resources.append({"name": name, "path": path, "schema": schema})
    profile = "https://datapackage.org/profiles/2.0/datapackage.json"
    return {"$schema": profile, "resources": resources}


def _write(name, column):
    field: dict = {"name": name}
    rules = {} if column.missing else {"required": True}
    if isinstance(column, Number):
        field["type"] = "integer" if column.decimals == 0 else "number"
        rules |= _write_bounds(column)
    elif isinstance(column, Category | Ordinal):
        levels = None if column.is_open else list(column.levels)
        field["type"] = _write_type(levels or [column.other])
        if levels is not None:
            field["categories"] = levels
            if isinstance(column, Ordinal):
                field["categoriesOrdered"] = True
    elif isinstance(column, Boolean):
        field["type"] = "boolean"
    elif isinstance(column, Date):
        field["type"] = "date" if column.unit == "day" else "datetime"
        if column.unit == "millisecond":
            field["format"] = "%Y-%m-%dT%H:%M:%S.%f"
        rules |= _write_bounds(column)
        if column.zone is not None:
            field["tz"] = column.zone
    elif isinstance(column, Identifier):
        field |= _write_identifier(column, rules)
    else:
        field |= _write_unknown(column)
    return field | ({"constraints": rules} if rules else {})


def _write_bounds(column):
    bounds = {"minimum": column.lower, "maximum": column.upper}
    return {keyword: bound for keyword, bound in bounds.items() if bound is not None}


def _write_type(levels):
    if all(isinstance(level, str) for level in levels):
        return "string"
    return "integer" if all(isinstance(level, int) for level in levels) else "number"


def _write_identifier(column, rules):
    rules["unique"] = True
    if column.random:
        return {"type": "string", "format": "uuid"}
    pattern = write_template(column.template)
    if pattern is not None:
        rules["pattern"] = pattern
        return {"type": "string"}
    if column.start != 1:
        rules["minimum"] = column.start
    return {"type": "string" if column.template else "integer"}


def _write_unknown(column):
    field = {"type": column.expected or "any"}
    if column.decimal != ".":
        field["decimalChar"] = column.decimal
    if column.thousands is not None:
        field["groupChar"] = column.thousands
    if column.date_format is not None:
        field |= {"type": "datetime", "format": column.date_format}
    return field
