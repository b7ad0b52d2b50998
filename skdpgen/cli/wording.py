# SPDX-License-Identifier: BSD-3-Clause
"""Messages of the library, whose remedies are code, as those of the command line."""

import re

# Code in messages, as patterns, and what stands for it. Options are those of most commands.
_OPTIONS = {
    r"Unknown\(date_format='%d/%m/%Y'\)": "--date-format %d/%m/%Y",
    r"Unknown\(thousands=' '\)": "--thousands ' '",
    r"Unknown\(decimal=\.\.\.\)": "--decimal",
    r"drop them from a declared schema with schema\.drop\(\.\.\.\)": "remove them from --schema",
    r", as in Schema\.from_metadata\(\.\.\., declared=\{.*?\}\)": " in a file of --schema",
    r"as Number\(lower, upper\)": 'in --schema, as {"type": "number", "lower": 0, "upper": 99}',
    r"as Identifier\(\)": 'in --schema, as {"type": "identifier"}',
    r"declare Identifier\(\)": 'declare {"type": "identifier"} in --schema',
    r" The release is kept: skdpgen\.releases\..*? at no cost\.": "",
    r"\bstrict=True\b": "--strict",
    r"\bmax_rows_per_person=(\d+)": r"--max-rows-per-person \1",
    r"persons=\.\.\. names": "--key names",
    r"leave order out": "leave --order out",
    r"schema_report_\['finding'\]": "the report in schema.json",
}


def translate(message: str) -> str:
    """Return a message with options of the command line in place of code.

    Examples
    --------
    >>> translate("Declare how dates are written, as Unknown(date_format='%d/%m/%Y').")
    'Declare how dates are written, as --date-format %d/%m/%Y.'
    """
    for code, option in _OPTIONS.items():
        message = re.sub(code, option, message)
    return message
