# SPDX-License-Identifier: BSD-3-Clause
"""Column types that a stopped run has released, from which a later run goes on."""

import json
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..accounting.budget import PrivacyBudget
from ..accounting.certificate import Certificate
from ..accounting.strict_json import parse_json
from ..checks import read_file
from ..data.texts import TextStyle
from ..engines.files import list_files
from ..tables.columns import Date, Number
from ..tables.schema import Schema
from .outputs import replaced


@dataclass(frozen=True)
class KeptTypes:
    """Released column types of one table, in a file beside the budget or the output.

    All that follows from them adds `certificate` to its own. `types` have no bounds or categories,
    and `looks` are the forms of numbers or dates that most cells of other columns have.
    """

    certificate: Certificate
    types: Mapping
    styles: Mapping
    looks: Mapping

    @classmethod
    def read(cls, options: Namespace, names: list[str]) -> "KeptTypes | None":
        """Return the types of the same table, if their release is in the budget; or None."""
        path = _find_path(options)
        if not path.exists():
            return None
        kept = parse_json(read_file(path), str(path))
        certificate = Certificate.from_json(json.dumps(kept["certificate"]))
        if kept["table"] != _describe_table(options, names):
            return None
        if options.budget is not None:
            charges = PrivacyBudget.from_file(options.budget)._store.read()
            charged = [event for charge in charges for event in charge.events]
            if any(event not in charged for event in certificate.events):
                return None
        styles = {name: TextStyle(**style) for name, style in kept["styles"].items()}
        return cls(certificate, Schema(kept["types"]), styles, kept["looks"])

    def write(self, options: Namespace, names: list[str]) -> Path:
        """Write the types where a later run finds them, and return the file."""
        path = _find_path(options)
        kept = {
            "table": _describe_table(options, names),
            "certificate": json.loads(self.certificate.to_json()),
            "types": Schema(self.types).to_dict(),
            "styles": {name: asdict(style) for name, style in self.styles.items()},
            "looks": dict(self.looks),
        }
        with replaced([str(path)]) as (temporary,):
            Path(temporary).write_text(json.dumps(kept, indent=1), encoding="utf-8")
        return path

    def find_type(self, name: str, style: TextStyle) -> tuple[Any, TextStyle] | None:
        """Return the type and style of a column, or None if these, and options, do not say it."""
        if name in self.types:
            return self.types[name], self.styles[name]
        look = self.looks.get(name, "")
        if "dates" in look and style.date_format is not None:
            return Date(unit=None, missing=True), style
        if "numbers" in look and style.thousands is not None:
            return Number(missing=True), replace(style, written=self.styles[name].written)
        return None


def _find_path(options):
    # A preview may have neither: it finds no file.
    return Path(f"{str(options.budget or options.output or '').rstrip('/')}-types.json")


def _describe_table(options, names):
    """Return what must be the same: files, columns, persons and missing cells.

    How the cells of the types are written is known, whatever options say of the others.
    """
    files = [str(Path(file).resolve()) for file in list_files(options.table)]
    given = (options.person_column, options.sheet, options.na_values)
    return [files, list(names), *map(repr, given)]
