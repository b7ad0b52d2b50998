# SPDX-License-Identifier: BSD-3-Clause
"""Messages with remedies in the words of an interface: code in Python, options in a terminal."""

from collections.abc import Mapping
from dataclasses import dataclass, field

# Names in texts of messages, and what stands for them in Python and on the command line.
_WORDS = {
    "absent": ("as with X.replace('k.A.', None)", "as with --na-values k.A."),
    "bounds": (
        "as Number(lower, upper)",
        'in --schema, as {"type": "number", "lower": ..., "upper": ...}',
    ),
    "codes": (
        "as Number(atoms=[7777]) or Date(atoms=['2100-06-30'])",
        'in --schema, as {"type": "number", "atoms": [7777]}',
    ),
    "date_format": ("Unknown(date_format='%d/%m/%Y')", "--date-format %d/%m/%Y"),
    "days": ("Date(unit='day')", '{"type": "date", "unit": "day"}'),
    "decimal": ("Unknown(decimal=...)", "--decimal"),
    "default_date": (
        "Date(lower, upper, atoms=['9999-12-31'])",
        '{"type": "date", "atoms": ["9999-12-31"]}',
    ),
    "finding": ("schema_report_['finding']", "the report in schema.json"),
    "hours": ("as Date(unit='second', hours=shares)", 'in --schema, as {"hours": [0.04, ...]}'),
    "identifier": ("Identifier()", '{"type": "identifier"} in --schema'),
    "key": ("persons=...", "--key"),
    "levels": ("as Boolean() or Category([...])", "with --types or in --schema"),
    "max_rows": ("max_rows_per_person=", "--max-rows-per-person "),
    "milliseconds": (
        "Date(unit='millisecond')",
        '{"type": "date", "unit": "millisecond"} in --schema',
    ),
    "numbers": ("Number(missing=True)", '{"type": "number", "missing": true} in --schema'),
    "order": ("order", "--order"),
    "prefix": (", as with X[name].str[:3]", ""),
    "strict": ("strict=True", "--strict"),
    "text_codes": ("Category()", "--types NAME=category"),
    "texts": ("give them as texts, X[name].astype('string')", "give --types NAME=category"),
    "thousands": ("Unknown(thousands=' ')", "--thousands ' '"),
    "to_dates": (
        "Convert them, as with pandas.to_datetime(X[name], format='%Y%m%d')",
        "Write them as dates, such as 2024-01-31",
    ),
    "to_texts": (", as with X[name].map(str)", ""),
    "unknown": (
        ", as in Schema.from_metadata(..., declared={name: Unknown()})",
        " in a file of --schema",
    ),
    "without_them": (
        "drop them from a declared schema with schema.drop(...)",
        "remove them from --schema",
    ),
    "zone": ("Date(unit=None, zone='CET')", '{"type": "date", "unit": null, "zone": "CET"}'),
}
PYTHON, COMMAND_LINE = ({name: words[i] for name, words in _WORDS.items()} for i in range(2))


@dataclass(frozen=True)
class Message:
    """Text of a warning or of an error; as `str` it has the words of Python.

    Attributes
    ----------
    text : str
        A format, in which names in braces stand for words of the interface or for `values`.
    values : dict of str to str

    Examples
    --------
    >>> message = Message("Declare {column}, {bounds}.", {"column": "age"})
    >>> str(message)
    'Declare age, as Number(lower, upper).'
    >>> message.write(COMMAND_LINE)
    'Declare age, in --schema, as {"type": "number", "lower": ..., "upper": ...}.'
    """

    text: str
    values: Mapping[str, object] = field(default_factory=dict)

    def write(self, words: Mapping[str, str]) -> str:
        """Return the text in the words of an interface."""
        return self.text.format(**{**words, **self.values})

    def __str__(self) -> str:
        return self.write(PYTHON)


def write(said: BaseException, words: Mapping[str, str]) -> str:
    """Return the text of an error or a warning in the words of an interface."""
    message = said.args[0] if said.args else None
    return message.write(words) if isinstance(message, Message) else str(said)
