# SPDX-License-Identifier: BSD-3-Clause
"""Metadata of Croissant, as JSON-LD: one record set.

The format is described at https://docs.mlcommons.org/croissant/docs/croissant-spec.html.
"""

from .date_formats import convert_date_format
from .fields import Description, Field, Type, as_list, set_date_format
from .tables import choose_table

NAME = "Croissant metadata"
# Names of types without their prefix, in lower case.
_TYPES = {
    **dict.fromkeys(["text", "string", "url", "anyuri"], Type.TEXT),
    "boolean": Type.BOOLEAN,
    **dict.fromkeys(["float", "number", "double", "decimal"], Type.NUMBER),
    **dict.fromkeys(["float16", "float32", "float64"], Type.NUMBER),
    **dict.fromkeys(["integer", "int", "long", "int8", "int16", "int32", "int64"], Type.INTEGER),
    **dict.fromkeys(["uint8", "uint16", "uint32", "uint64"], Type.INTEGER),
    "date": Type.DATE,
    "datetime": Type.DATETIME,
}
_NESTED = ("imageobject", "audioobject", "videoobject", "boundingbox", "segmentationmask")
_LISTS = ("enumeration", "split")


def recognizes(document) -> bool:
    """Return whether a document is of this format."""
    return isinstance(document, dict) and bool(
        {"recordSet", "cr:recordSet", "ml:recordSet"} & document.keys()
    )


def read(document: dict, table: str | None) -> Description:
    """Return the description of a table in a document."""
    sets = {_find_id(found): found for found in as_list(_get(document, "recordSet"))}
    tables = {
        name: found for name, found in sets.items() if not set(_list_types(found)) & {*_LISTS}
    }
    if table is not None and table not in tables:
        tables |= {found.get("name"): found for found in tables.values()}
    chosen = tables[choose_table(tables, table)]
    fields, names, skipped = [], {}, []
    for spec in as_list(_get(chosen, "field")):
        extract = _get(_get(spec, "source") or {}, "extract") or {}
        if "fileProperty" in extract:
            # Part of the name of a file, such as a split.
            skipped.append(f"field {spec.get('name')!r}, which is no column of the table")
            continue
        fields.append(_read(spec, extract, sets))
        names[_find_id(spec)] = names[spec.get("name")] = fields[-1].name
    found = Description(fields, dropped=skipped)
    keys = [_find_id(key) if isinstance(key, dict) else key for key in as_list(_get(chosen, "key"))]
    if keys:
        found.set_key([names.get(key, key) for key in keys])
    return found


def _get(spec, key):
    """Return a member, with or without the prefix of the vocabulary."""
    return next((spec[k] for k in (key, f"cr:{key}", f"ml:{key}") if k in spec), None)


def _find_id(spec):
    return str(spec.get("@id", spec.get("name")))


def _list_types(spec):
    given = as_list(_get(spec, "dataType"))
    texts = [text.get("@id", "") if isinstance(text, dict) else str(text) for text in given]
    return [text.replace("#", "/").replace(":", "/").rpartition("/")[2].lower() for text in texts]


def _read(spec, extract, sets):
    name = extract.get("column") or str(spec.get("name") or _find_id(spec)).rpartition("/")[2]
    field, types = Field(name), _list_types(spec)
    atomic = [_TYPES[text] for text in types if text in _TYPES]
    nested = [text for text in types if text in _NESTED]
    is_list = _get(spec, "repeated") or _get(spec, "isArray") or _get(spec, "subField")
    if nested or is_list:
        what = f"values of type {nested[0]!r}" if nested else "lists or objects"
        field.problem = f"no column type holds {what}."
    elif atomic:
        field.type = atomic[0]
        if any(text.startswith("uint") for text in types):
            field.lower = 0
    elif "time" in types:
        field.type = Type.TEXT
        field.drop("that it is of type time (it is read as a category)")
    _read_references(field, spec, sets)
    text = _get(_get(spec, "source") or {}, "format")
    if text is not None and field.type in (Type.DATE, Type.DATETIME):
        set_date_format(field, convert_date_format(text))
    elif text is not None:
        field.drop("format", text)
    return field


def _read_references(field, spec, sets):
    """Read the categories that another record set lists."""
    reference = _get(spec, "references")
    if reference is None:
        return
    for listed in as_list(reference):
        target = _get(listed, "field") or listed
        identifier = _find_id(target) if isinstance(target, dict) else str(target)
        owner = sets.get(identifier.rpartition("/")[0]) or {}
        rows = as_list(_get(owner, "data"))
        short = identifier.rpartition("/")[2]
        values = [row.get(identifier, row.get(short)) for row in rows]
        if values and None not in values:
            field.categories = list(dict.fromkeys(values))
        else:
            field.drop("reference to", identifier)
