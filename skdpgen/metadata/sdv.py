# SPDX-License-Identifier: BSD-3-Clause
"""Metadata of SDV, as JSON: of a single table, or of several of which one is read.

The format is described at https://docs.sdv.dev/sdv/concepts/metadata/metadata-json.
"""

from .fields import Description, Field, as_list, choose_table, list_fields, write_template

NAME = "SDV metadata"
# Keys of a column that are no constraint, or that are read.
_READ = {"sdtype", "computer_representation", "datetime_format", "regex_format", "pii", "order"}

# Bounds of coordinates.
_DEGREES = {"latitude": 90, "longitude": 180}


def recognizes(document) -> bool:
    """Return whether a document is of this format."""
    if not isinstance(document, dict):
        return False
    if "METADATA_SPEC_VERSION" in document:
        return True
    columns = document.get("columns")
    return isinstance(columns, dict) and any(
        isinstance(column, dict) and "sdtype" in column for column in columns.values()
    )


def read(document: dict, table: str | None) -> Description:
    """Return the description of a table in a document."""
    keys = []
    if "tables" in document:
        name = choose_table(document["tables"], table)
        for relation in document.get("relationships", []):
            if relation.get("child_table_name") == name:
                keys += as_list(relation.get("child_foreign_key"))
        document = document["tables"][name]
    found = Description([_read(name, spec) for name, spec in document["columns"].items()])
    if document.get("primary_key") is not None:
        found.set_key(as_list(document["primary_key"]))
    for names in map(as_list, document.get("alternate_keys") or []):
        found.set_unique(names)
    found.drop_of(keys, "foreign key")
    found.drop_of(
        as_list(document.get("sequence_key")), "sequence_key (give the column as persons=...)"
    )
    found.drop_of(as_list(document.get("sequence_index")), "sequence_index")
    for relation in document.get("column_relationships") or []:
        found.drop_of(relation.get("column_names", []), f"column relationship {relation['type']}")
    if document.get("constraints"):
        found.dropped.append("constraints")
    return found


def _read(name, spec):
    field, sdtype = Field(name), spec.get("sdtype")
    field.dropped += [key for key in spec if key not in _READ]
    if sdtype == "numerical":
        representation = str(spec.get("computer_representation", "Float"))
        field.type = "integer" if "int" in representation.lower() else "number"
        if "computer_representation" not in spec:
            field.type = "number"
        if representation.startswith("UInt"):
            field.lower = 0
    elif sdtype == "categorical":
        field.type = "string"
        if isinstance(spec.get("order"), list):
            # The levels may be numbers: their own type says more than "categorical".
            field.categories, field.is_ordered, field.type = spec["order"], True, None
    elif sdtype == "boolean":
        field.type = "boolean"
    elif sdtype == "datetime":
        if spec.get("datetime_format") is None:
            field.type = "datetime"
        else:
            field.set_date_format(spec["datetime_format"])
    elif sdtype == "id":
        field.is_identifier = True
    elif sdtype is None:
        field.problem = "it has no 'sdtype'."
    elif sdtype in _DEGREES and not spec.get("pii", True):
        field.type, field.upper = "number", _DEGREES[sdtype]
        field.lower = -field.upper
    elif sdtype != "unknown":
        # Names, addresses, numbers of cards and the like, unless they are public.
        field.is_identifier = spec.get("pii", True)
        field.type = None if field.is_identifier else "string"
    if spec.get("regex_format") is not None:
        field.match(spec["regex_format"])
    return field


def write(schema) -> dict:
    """Return a schema in this format, as far as the format can express it."""
    fields = list_fields(schema)
    columns = {field.name: _write(field) for field in fields}
    keys = [field.name for field in fields if field.is_identifier]
    table = {"columns": columns, "column_relationships": []}
    if keys:
        table = {"primary_key": keys[0], **table}
    return {"METADATA_SPEC_VERSION": "V1", "tables": {"table": table}, "relationships": []}


def _write(field):
    if field.is_identifier:
        pattern = write_template(field.template)
        return {"sdtype": "id", **({} if pattern is None else {"regex_format": pattern})}
    if field.is_ordered or field.categories is not None or field.type == "string":
        order = {"order": field.categories} if field.is_ordered else {}
        return {"sdtype": "categorical", **order}
    if "date_format" in field.style:
        return {"sdtype": "datetime", "datetime_format": field.style["date_format"]}
    if field.type is None or field.style:
        return {"sdtype": "unknown", "pii": False}
    if field.type in ("integer", "number"):
        representation = "Int64" if field.type == "integer" else "Float"
        return {"sdtype": "numerical", "computer_representation": representation}
    if field.type in ("date", "datetime"):
        date_format = "%Y-%m-%d" if field.type == "date" else "%Y-%m-%d %H:%M:%S"
        date_format += ".%f" * bool(field.digits) + "%z" * (field.zone is not None)
        return {"sdtype": "datetime", "datetime_format": date_format}
    return {"sdtype": field.type if field.type == "boolean" else "unknown", "pii": False}
