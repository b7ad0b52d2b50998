# SPDX-License-Identifier: BSD-3-Clause
"""Schemas of this library, as `Schema.to_json` and ``skdpgen synthesize`` write them.

They are read as they are: see `Schema`.
"""

from ..tables.rules.rules import split_document

NAME = "skdpgen schema"


def recognizes(document) -> bool:
    """Return whether a document is of this format."""
    if not isinstance(document, dict) or not document:
        return False
    columns, _ = split_document(unwrap(document))
    return isinstance(columns, dict) and all(
        isinstance(column, dict) and isinstance(column.get("type"), str)
        for column in columns.values()
    )


def unwrap(document: dict) -> dict:
    """Return the schema of a fitted one, which has a report and more beside it."""
    is_fitted = "schema" in document and isinstance(document.get("report"), list)
    return document["schema"] if is_fitted and isinstance(document["schema"], dict) else document
