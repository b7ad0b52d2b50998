# SPDX-License-Identifier: BSD-3-Clause
"""Findings on the quality of fits, judged from public sizes and released values."""

import contextlib
import math
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import pandas as pd

from ._process.muting import is_muted
from .checks import MAX_NAMES, list_names
from .exceptions import FitQualityWarning, warn_caller
from .messages import Message

# Least share of absent records for a warning.
MANY_ABSENT = 0.01
# Counts below this many standard deviations are within noise.
WITHIN_NOISE = 3.0
# Least signal-to-noise ratio of a sketch or of two-way tables. Below it, classifiers trained on
# synthetic rows of small public data sets lost much of their accuracy.
LEAST_SIGNAL = 0.2
# Half of the mean absolute value of standard normal noise: a record that moves is in two counts.
MOVED = 1 / math.sqrt(2 * math.pi)
# Largest share of `other` in a column of declared categories without a warning.
MOSTLY_OTHER = 0.9
# Largest share of missing values without a warning.
MOSTLY_MISSING = 0.95
# Bounds of arrays are inferred within ± this number.
FARTHEST = 2.0**65

# Codes of findings on columns, the worst first, and their texts.
CAUSES = {
    "objects": "Columns {columns} hold objects that no column type holds, such as bytes, lists and "
    "intervals, by released counts: they count as missing. Convert them to numbers or "
    "texts{to_texts}, give a column for each part, or drop the columns.",
    "missing": "Columns {columns} count as missing, by released counts: cells are missing, or not "
    "of the declared type. Drop them, convert them to numbers or texts, or declare how they are "
    "written, as with {decimal}.",
    "looks": "By released counts, columns {columns} are read as texts or decimals, and may be "
    "dates or numbers. Declare how these are written, as {date_format} or {thousands}, and convert "
    "times and quantities to numbers, such as minutes.",
    "dates as numbers": "Columns {columns} hold dates as whole numbers, such as 20240131 or "
    "202401, by released counts: synthetic values may be no dates. {to_dates}.",
    "fractions": "Columns {columns} have times finer than milliseconds, by released counts, and "
    "come back in milliseconds. If these suffice, declare {milliseconds}; if not, give seconds as "
    "numbers.",
    "no category": "Columns {columns} have no category that shows above the noise, or none of the "
    "type of `other`, which stands for all values. Drop columns whose values are distinct, or "
    "declare {identifier}, shorten codes to a prefix{prefix}, or declare the categories, or how "
    "numbers and dates are written, as {thousands} or {date_format}.",
    "beyond": "Columns {columns} have infinities, or values beyond those among which inference "
    "looks for ranges, and these do not come back. Drop identifiers, or declare them as "
    "{identifier}; of others declare the bounds, {bounds}, or give them in larger units.",
    "range unresolved": "The ranges of columns {columns} do not show above the noise, with so few "
    "records for this epsilon and so many open columns: what was found may be mere noise. Declare "
    "their bounds, {bounds}.",
    "other type": "By noisy counts, columns {columns} hold cells that are not of the type of the "
    "others, which count as missing, and in the target as absent records. Write numbers and dates "
    "in one way, name texts of missing values, {absent}, or declare {text_codes} if these are "
    "codes.",
    "other": "Columns {columns} lose their rare categories, whose counts do not show above the "
    "noise. Declare the categories, or numbers beside texts as {numbers}, shorten codes to a "
    "prefix{prefix}, or drop columns whose values are distinct.",
    "identifiers": "By released counts, columns {columns} hold whole numbers that are longer "
    "than floats hold, or evenly spread over about as many values as there are records, or more, "
    "as identifiers are. If they identify records, drop them or declare {identifier}, which costs "
    "nothing.",
    "codes": "Columns {columns} hold objects that are whole numbers, by released counts. If these "
    "are codes with leading zeros, which are lost, {texts}.",
    "values unresolved": "The values of columns {columns} are closer to each other than inference "
    "resolves, or constant. Subtract a public level, or declare bounds that are near to them, "
    "{bounds} or {default_date}.",
    "apart": "Columns {columns} have values apart from the others that are not located: a code "
    "would be spread among numbers. Declare codes, {codes}, or bounds of all, {bounds}.",
    "order": "The differences {columns} are hardly ever above the least one, by released counts: "
    "their order is broken, or the columns are equal. Swap the names of the rule, or drop one.",
    "at bound": "Nearly all values of columns {columns} are at a declared bound, or beyond it and "
    "clipped to it, by released counts. Declare bounds in the units of the columns, or drop those "
    "that are constant.",
    "units": "Nearly all values are at a bound, or beyond it and clipped to it, by released "
    "values, in {columns}. Declare bounds (of a numeric y, y_bounds) in the units of the data, "
    "give an adapter its target in the units of its source, or drop columns that are constant.",
    "spelled": "Columns {columns} have declared categories that do not show above the noise, "
    "beside many cells of others, or absent records: cells may spell them otherwise. Compare the "
    "declared categories with those of the table.",
    "constant": "Columns {columns} are constant up to noise. Drop them, or use a larger epsilon if "
    "they vary.",
    "cut": "Columns {columns} may have values beyond their inferred bounds, at which far more is "
    "than next to them. Declare the bounds, {bounds}.",
    "clipped": "Columns {columns} have far more values at a declared bound than next to it: if "
    "some lie beyond, they count as the bound. Declare wider bounds, or the bound as a point mass, "
    "as Number(atoms=[100]).",
    "hours": "The hours of columns {columns} do not show above the noise, and come back evenly. "
    "Use a larger epsilon, or declare how they are shared, {hours}, or that there are none, as "
    "{days}.",
    "tail": "Columns {columns} have long tails that do not show above the noise, by released "
    "counts. Declare the bounds, {bounds}, or learn a logarithm of the columns.",
}
_RANKS = {code: rank for rank, code in enumerate(CAUSES)}
# Most warnings of a fit about released numbers.
_MAX_LINES = 5


@dataclass(frozen=True)
class Finding:
    """One thing that public sizes or released values say of the quality of a fit.

    Writers show findings as warnings of Python, in a terminal, as JSON and on the page of a report.

    Attributes
    ----------
    code : str
        One of `CAUSES`, or, of a fit as a whole, ``"fit"``.
    column : str or None
        None for a fit as a whole.
    detail : str or Message
        The finding on a fit as a whole, or a note beside the name of a column.
    remedy : str
        The remedy for this column, besides that of the code.
    """

    code: str
    column: str | None = None
    detail: str | Message = ""
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}" if self.detail else self.code

    @property
    def _note(self) -> str:
        # Names of columns of arrays are quoted already.
        name = self.column if self.code == "units" else repr(self.column)
        return f"{name} ({self.detail})" if self.detail else f"{name}"


class Findings:
    """Findings of one fit.

    A column is named for its worst finding only, from which others often follow: a column without
    categories is constant, too.
    """

    def __init__(self):
        self._found: dict[tuple, Finding] = {}
        self._remedies: dict = {}

    def add(self, *found: Finding) -> None:
        """Add findings; a later one replaces one of the same code on the same column."""
        for finding in found:
            self._found[finding.code, finding.column or str(finding.detail)] = finding

    def advise(self, remedies: dict[str, str]) -> None:
        """Add what to do about columns that no schema declares, by name."""
        self._remedies |= remedies

    def find_worst(self) -> dict[str, Finding]:
        """Return the worst finding on each column, the worst first."""
        worst: dict[str, Finding] = {}
        for finding in sorted(self._found.values(), key=lambda f: _RANKS.get(f.code, -1)):
            if finding.column is not None:
                worst.setdefault(finding.column, finding)
        return worst

    def list_messages(self) -> list[str | Message]:
        """Return the messages, the worst first."""
        messages = [found.detail for found in self._found.values() if found.column is None]
        for code, group in groupby(self.find_worst().values(), lambda finding: finding.code):
            found, advised = list(group), self._remedies if code != "order" else {}
            remedies = ((f.column, f.remedy or advised.get(f.column)) for f in found)
            values = {
                "columns": list_names([finding._note for finding in found]),
                "remedies": "".join(f" For {name!r}, {what}." for name, what in remedies if what),
            }
            # No report names the columns of arrays.
            is_cut = len(found) > MAX_NAMES and code != "units"
            names = "{columns} (see {finding})" if is_cut else "{columns}"
            text = CAUSES[code].replace("{columns}", names) + "{remedies}"
            messages.append(Message(text, values))
        if len(messages) > _MAX_LINES:
            left = len(messages) - _MAX_LINES + 1
            more = f"{left} more kinds of findings on columns are in {{finding}}."
            messages[_MAX_LINES - 1 :] = [Message(more)]
        return messages

    def warn(self, outer: "Findings | None" = None) -> None:
        """Warn of what was found, at the line that called the package, or add it to `outer`."""
        if outer is not None:
            outer.add(*self._found.values())
            outer.advise(self._remedies)
            return
        for message in self.list_messages():
            warn_caller(message, FitQualityWarning)


_findings: ContextVar[Findings | None] = ContextVar("findings of a fit", default=None)


@contextlib.contextmanager
def collects_findings(estimator) -> Iterator[None]:
    """Collect findings on a fit in this thread; warn and report once the estimator is complete.

    A fit that is part of another one leaves the warnings to it, unless they are muted.
    """
    outer = None if is_muted(FitQualityWarning) else _findings.get()
    token = _findings.set(found := Findings())
    try:
        try:
            yield
        finally:
            _findings.reset(token)
    except BaseException:
        # Findings may say why a fit failed; as errors they would hide that error.
        with contextlib.suppress(FitQualityWarning):
            found.warn(outer)
        raise
    report = getattr(estimator, "schema_report_", None)
    if report is not None:
        worst = {name: str(finding) for name, finding in found.find_worst().items()}
        report["finding"] = pd.Series(map(worst.get, report.index), report.index, dtype=object)
    # Last: where warnings are errors, the estimator is fitted all the same.
    found.warn(outer)


def _warn_of(*found: Finding) -> None:
    """Warn of findings, at the end of the fit if there is one."""
    outer = _findings.get()
    findings = outer or Findings()
    findings.add(*found)
    if outer is None:
        findings.warn()


def warn_of_fit(detail: str | Message) -> None:
    """Warn of a fit as a whole, at its end if there is one."""
    _warn_of(Finding("fit", None, detail))


def warn_of_columns(code: str, details: dict[str, str] | list[str]) -> None:
    """Warn of columns, at the end of the fit if there is one.

    `code` is one of `CAUSES`; `details` are names of the columns, and notes beside them.
    """
    details = details if isinstance(details, dict) else dict.fromkeys(details, "")
    _warn_of(*(Finding(code, name, detail) for name, detail in details.items()))


def advise_on_columns(advice: dict[str, str]) -> None:
    """Add to warnings of a fit what to do about columns that no schema declares, by name."""
    (_findings.get() or Findings()).advise(advice)


def withdraw(column: str, codes: tuple[str, ...]) -> None:
    """Remove findings of a fit on a column, which later releases disprove."""
    for code in codes:
        (_findings.get() or Findings())._found.pop((code, column), None)


def warn_of_other_persons(n_first: int, n_later: int) -> None:
    """Warn if chunks have another number of persons than at first; it is public."""
    if n_later != n_first:
        warn_of_fit(
            f"The function of chunks gave {n_first:,} persons at first and {n_later:,} in a later "
            "reading; rows of new persons count as absent. Let it give the same rows at each call."
        )


# Advice for few rows, given by the estimator that makes the fit in this thread.
advice_on_few_rows: ContextVar[str] = ContextVar("advice on few rows", default="")


@contextlib.contextmanager
def advising_on_few_rows(advice):
    """Add a sentence to warnings of too few rows in this thread."""
    token = advice_on_few_rows.set(f" {advice}" if advice else "")
    try:
        yield
    finally:
        advice_on_few_rows.reset(token)


def warn_of_absent(share, std):
    """Warn if many records count as absent, from the noisy share of the others.

    Returns
    -------
    {"all", "many"} or None
        How many are absent, if it warned. If no others show above the noise, all other warnings
        of released numbers follow from that.
    """
    absent = min(1.0, 1 - share)
    # Noise goes beyond four standard deviations in 3 of 100,000 fits.
    clear = max(MANY_ABSENT, 4 * std)
    if not absent > clear:
        return None
    are_all = bool(share < clear)
    what = (
        "Nothing else can be told from these counts, not even which column it is: compare the "
        "declared types and categories with how cells are written."
        if are_all
        else "{strict} refuses such records, but a refusal discloses something of them."
    )
    warn_of_fit(
        Message(
            "About {absent:.0%} of the records count as absent, by the noisy counts that were "
            "released: their labels were not declared; cells are missing, not finite, or not as "
            f"declared; or the encoder fails for them. {what}",
            {"absent": absent},
        )
    )
    return "all" if are_all else "many"


def warn_of_sketch(
    sums: np.ndarray, sums_std: float, counts: np.ndarray, counts_std: float
) -> None:
    """Warn if a sketch, or the noisy numbers of records of classes, are mostly noise."""
    warn_of_noise(find_signal(sums, sums_std), "a slice sketch")
    if len(counts) > 1:
        few = np.flatnonzero(counts < WITHIN_NOISE * counts_std)
        if len(few):
            warn_of_classes(
                f"{len(few)} of {len(counts)} classes", f"at {few.tolist()} in classes_"
            )


def find_signal(numbers, std):
    """Return the signal-to-noise ratio of the energies of noisy numbers, at least 0.

    Numbers that are exactly 0 are structural zeros without noise, and left out.
    """
    noisy = numbers[numbers != 0]
    return max(0.0, np.mean(np.square(noisy)) / std**2 - 1) if std > 0 and noisy.size else np.inf


def warn_of_noise(signal, what):
    """Warn if noisy numbers are mostly noise.

    Returns
    -------
    bool
        Whether it warned.
    """
    is_noise = bool(signal < LEAST_SIGNAL)
    if is_noise:
        warn_of_fit(
            f"The release, {what}, is mostly noise: its signal-to-noise ratio is about "
            f"{signal:.2g}, and below {LEAST_SIGNAL:g} little can be learnt. Use a larger epsilon, "
            "more rows, fewer columns, or fewer classes."
        )
    return is_noise


def warn_of_classes(what, which):
    """Warn of classes whose noisy counts are within noise of 0."""
    warn_of_fit(
        f"The noisy counts of {what} are within noise of 0 ({which}): their synthetic rows are "
        "mostly noise. Use a larger epsilon or more rows, or merge them with others."
    )
