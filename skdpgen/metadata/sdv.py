# SPDX-License-Identifier: BSD-3-Clause
"""Metadata of SDV, as JSON: of a single table, or of several of which one is read.

The format is described at https://docs.sdv.dev/sdv/concepts/metadata/metadata-json.
"""

from ..tables.columns import Boolean, Category, Date, Identifier, Number, Ordinal
from .choice import choose_table
from .fields import Description, Field, Type, as_list, set_date_format, write_template

NAME = "SDV metadata"
# Keys of a column that are no constraint, or that are read.
_READ = {"sdtype", "computer_representation", "datetime_format", "regex_format", "pii", "order"}


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
        field.type = Type.INTEGER if "int" in representation.lower() else Type.NUMBER
        if "computer_representation" not in spec:
            field.type = Type.NUMBER
        if representation.startswith("UInt"):
            field.lower = 0
    elif sdtype == "categorical":
        field.type = Type.TEXT
        if isinstance(spec.get("order"), list):
            # The levels may be numbers: their own type says more than "categorical".
            field.categories, field.is_ordered, field.type = spec["order"], True, None
    elif sdtype == "boolean":
        field.type = Type.BOOLEAN
    elif sdtype == "datetime":
        if spec.get("datetime_format") is None:
            field.type = Type.DATETIME
        else:
            set_date_format(field, spec["datetime_format"])
    elif sdtype == "id":
        field.is_identifier = True
    elif sdtype is None:
        field.problem = "it has no 'sdtype'."
    elif sdtype != "unknown":
        # Names, addresses, numbers of cards and the like, unless they are public.
        field.is_identifier = spec.get("pii", True)
        field.type = None if field.is_identifier else Type.TEXT
    if spec.get("regex_format") is not None:
        field.match(spec["regex_format"])
    return field


def write(schema) -> dict:
    """Return a schema in this format, as far as the format can express it."""
    columns = {name: _write(column) for name, column in schema.items()}
    keys = [name for name, column in schema.items() if isinstance(column, Identifier)]
    table = {"columns": columns, "column_relationships": []}
    if keys:
        table = {"primary_key": keys[0], **table}
    return {"METADATA_SPEC_VERSION": "V1", "tables": {"table": table}, "relationships": []}


def _write(column):
    if isinstance(column, Number):
        representation = "Int64" if column.decimals == 0 else "Float"
        return {"sdtype": "numerical", "computer_representation": representation}
    if isinstance(column, Category | Ordinal):
        order = {"order": list(column.levels)} if isinstance(column, Ordinal) else {}
        return {"sdtype": "categorical", **order}
    if isinstance(column, Boolean):
        return {"sdtype": "boolean"}
    if isinstance(column, Date):
        date_format = "%Y-%m-%d" if column.unit == "day" else "%Y-%m-%d %H:%M:%S"
        date_format += ".%f" * (column.unit == "millisecond")
        zone = "" if column.zone is None else "%z"
        return {"sdtype": "datetime", "datetime_format": date_format + zone}
    if isinstance(column, Identifier):
        pattern = write_template(column.template)
        return {"sdtype": "id", **({} if pattern is None else {"regex_format": pattern})}
    if column.date_format is not None:
        return {"sdtype": "datetime", "datetime_format": column.date_format}
    return {"sdtype": "unknown", "pii": False}
