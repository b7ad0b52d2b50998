# SPDX-License-Identifier: BSD-3-Clause
"""Frictionless Table Schema, versions 1 and 2: alone, in a resource, or in a data package.

The format is described at https://datapackage.org/standard/table-schema. Pandas writes it, too, by
``DataFrame.to_json(orient="table")``.
"""

from ..tables.rules.rules import Unique
from .fields import Description, Field, as_list, choose_table, list_fields, write_template

NAME = "Frictionless Table Schema"
_TYPES = ("string", "number", "integer", "boolean", "date", "datetime")
# Types whose cells are texts, and those that say nothing, or of years.
_TEXTS = ("time", "yearmonth", "duration", "geopoint")
_OTHERS = {"any": None, None: None, "year": "integer"}
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
    field = Field(spec["name"], given, missing=not rules.pop("required", False))
    if given in _OTHERS:
        field.type = _OTHERS[given]
    elif given in _TEXTS:
        field.set_type(given)
    elif given not in _TYPES:
        field.problem = f"no column type holds values of type {given!r}."
    _read_categories(field, spec, rules)
    _read_format(field, spec, given)
    _read_style(field, spec)
    field.zone = spec.get("tz", field.zone)
    for end, name in (("min", "lower"), ("max", "upper")):
        field.limit(**{name: rules.pop(f"{end}imum", None)})
        field.limit(**{name: rules.pop(f"exclusive{end.title()}imum", None)}, is_exclusive=True)
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
    if field.type in ("date", "datetime") and is_text:
        field.type = "string"


def _read_format(field, spec, given):
    text = spec.get("format", "default")
    if given in ("date", "datetime"):
        if text == "any":
            field.drop("that its dates are written in any format (ISO 8601 is read)")
        elif text != "default":
            field.set_date_format(text)
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
    if field.type == "boolean" and ("trueValues" in spec or "falseValues" in spec):
        field.name_booleans(spec.get("trueValues", _TRUE), spec.get("falseValues", _FALSE))


def write(schema) -> dict:
    """Return a schema in this format, as far as the format can express it."""
    fields = list_fields(schema)
    document: dict = {"$schema": "https://datapackage.org/profiles/2.0/tableschema.json"}
    document["fields"] = [_write(field) for field in fields]
    keys = [field.name for field in fields if field.is_identifier]
    # A schema does not say which of several identifiers is the key.
    if len(keys) == 1:
        document["primaryKey"] = keys
    unique = [list(rule.columns) for rule in schema.rules if isinstance(rule, Unique)]
    if unique:
        document["uniqueKeys"] = unique
    return document


def _write(field):
    spec: dict = {"name": field.name, "type": field.type or "any"}
    if field.categories is not None:
        spec["categories"] = field.categories
        if field.is_ordered:
            spec["categoriesOrdered"] = True
    if field.is_random:
        spec["format"] = "uuid"
    elif field.digits:
        spec["format"] = "%Y-%m-%dT%H:%M:%S.%f"
    if field.words:
        spec |= {"falseValues": [field.words[0]], "trueValues": [field.words[1]]}
    names = {"decimal": "decimalChar", "thousands": "groupChar", "date_format": "format"}
    spec |= {names[name]: value for name, value in field.style.items()}
    rules = {
        "required": not field.missing or None,
        "unique": field.is_identifier or None,
        "pattern": write_template(field.template),
        "minimum": field.lower,
        "maximum": field.upper,
    }
    spec |= {"tz": field.zone, "constraints": {k: v for k, v in rules.items() if v is not None}}
    return {key: value for key, value in spec.items() if value not in (None, {})}


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
