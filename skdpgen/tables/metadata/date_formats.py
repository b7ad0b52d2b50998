# SPDX-License-Identifier: BSD-3-Clause
"""Date formats of Unicode (UAX 35), as those of `strptime`."""

import re

# Letters that CSVW and Croissant use.
_LETTERS = {"yyyy": "%Y", "yy": "%y", "MMMM": "%B", "MMM": "%b", "MM": "%m", "M": "%m"}
_LETTERS |= {"dd": "%d", "d": "%d", "HH": "%H", "H": "%H", "hh": "%I", "h": "%I", "a": "%p"}
_LETTERS |= {"mm": "%M", "m": "%M", "ss": "%S", "s": "%S", "S": "%f", **dict.fromkeys("XxZ", "%z")}


def convert_date_format(pattern: str) -> str:
    """Return a date format of Unicode as one of `strptime`.

    Examples
    --------
    >>> convert_date_format("dd.MM.yyyy HH:mm"), convert_date_format("%d/%m/%Y")
    ('%d.%m.%Y %H:%M', '%d/%m/%Y')
    """
    if "%" in pattern:
        return pattern

    def convert(match):
        if match[0].startswith("'"):
            return match[0].strip("'") or "'"
        letters = match[0][0] if match[0][0] in "SXxZ" else match[0]
        return _LETTERS.get(letters, match[0])

    return re.sub(r"'[^']*'|([A-Za-z])\1*", convert, pattern.replace("T", "'T'").replace("''", ""))
