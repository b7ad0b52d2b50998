# SPDX-License-Identifier: BSD-3-Clause
"""Report on synthetic rows: their certificate, and their utility beside other rows."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from html import escape
from os import PathLike
from pathlib import Path

import numpy as np
import pandas as pd

from .._process.isolation import isolated
from .._version import __version__
from ..accounting.certificate import Certificate
from ..accounting.strict_json import parse_json
from ..checks import read_file
from ..exceptions import PrivacyLeakWarning, warn_caller
from ..histories.history_format import HistoryFormat
from ..releases.published import open_release
from ..tables.report import DTYPES
from ._columns import EncodedColumn, as_table, check_tables, encode_columns
from ._comparisons import (
    compare_marginals,
    compare_pairs,
    halve,
    mean_variation,
    score_classifiers,
    score_k_marginals,
    score_propensity,
    score_quality,
)
from ._page import list_figures, write_page
from ._released import compare_released
from ._released_histories import ReleasedHistories
from ._verdicts import judge_counts, judge_protection, list_limits, summarize_use

# Limits of the guarantee, which no certificate can state in numbers.
_VOIDS = (
    "Other published results from the private rows, such as scores, plots or bounds: ε does not "
    "cover them.",
    "Further releases from the same rows: their ε add up. Keep one budget for all of them.",
    "Several rows of one person, if the unit is a record: such a person is protected less.",
    "A noise seed that somebody knows or can guess.",
)


@dataclass(frozen=True)
class Report:
    """Results of `report`, as numbers, JSON and a page.

    Attributes
    ----------
    results : dict
        All numbers; None if not computed.
    """

    results: dict

    def to_json(self, path: str | PathLike | None = None) -> str:
        """Return the numbers as JSON, and write them to a file if one is given."""
        text = json.dumps(self.results, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
        return _write(text, path)

    def to_html(self, path: str | PathLike | None = None) -> str:
        """Return a self-contained page, and write it to a file if one is given.

        It needs no other files, and can be sent and printed; with scripts, its tables sort.
        """
        return _write(write_page(self.results), path)

    def to_frame(self) -> pd.DataFrame:
        """Return the figures of the field, beside the sampling error of real rows.

        Returns
        -------
        DataFrame
            For each figure: ``synthetic``; ``reference``, that of one half of the reference beside
            the other; ``equal``, that of equal tables. Empty without a reference.
        """
        names = ["figure", "digits", "synthetic", "reference", "equal"]
        frame = pd.DataFrame(list_figures(self.results), columns=names)
        return frame.set_index("figure").drop(columns="digits")

    def _repr_html_(self):
        # A frame keeps the styles of the page and of the notebook apart.
        page = escape(self.to_html())
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 40em; border: 0"></iframe>'


@isolated()
def report(
    synthetic,
    reference=None,
    *,
    private=None,
    reads_private_rows: bool = False,
    certificate=None,
    audit=None,
    budget=None,
    schema=None,
    schema_report=None,
    release=None,
    target=None,
    title: str = "Synthetic rows",
    random_state: int = 0,
) -> Report:
    """Describe synthetic rows by their certificate, and compare them with other rows.

    Its first screen says in three sentences and a score what the synthetic rows are good for. A
    part for data protection says who could learn what, and a part for analysts lists columns and
    pairs. It explains differential privacy to its readers.

    Parameters
    ----------
    synthetic : DataFrame, array-like of shape (n_rows, n_columns) or dict of str to DataFrame
        Rows sampled from a generator; of a `DPHistorySampler`, with its `release`, both tables.
    reference : DataFrame or array-like of shape (n_reference, n_columns), default=None
        **Public** rows, or tables, with the same columns. None: the synthetic ones alone.
    private : DataFrame or array-like of shape (n_private, n_columns), default=None
        Private rows in place of a reference. **The report then reveals them**, and no ε covers
        it: it is for those who may see the rows themselves, as its first line says.
    reads_private_rows : bool, default=False
        Must be True if `private` is given.
    certificate : Certificate, str or path, default=None
        The certificate of the fit, ``generator.privacy_``, or its JSON or JSON file.
    audit : AuditReport, str or path, default=None
        The result of `skdpgen.privacy.audit`, or its JSON or JSON file.
    budget : PrivacyBudget, default=None
        The budget of all fits to the same rows. The page says how many there were.
    schema : Schema, default=None
        A schema whose rules are checked, and which knows the order of categories.
    schema_report : DataFrame or list of dict, default=None
        ``generator.schema_report_``, or the ``"report"`` in the JSON of a fitted schema. With it
        and the certificate, the page says how far each column and each pair can be trusted.
    release : Release, PublishedRelease, str or path, default=None
        ``generator.release_``, or the file of a published release. With it, the page shows the
        released counts behind the synthetic ones, and means and totals with their noise. That of
        histories has the certificate, the schema and its report, too.
    target : str, default=None
        The column that classifiers predict.
    title : str, default="Synthetic rows"
        Title of the page.
    random_state : int, default=0
        Seed of halves, marginals and classifiers.

    Returns
    -------
    Report

    Raises
    ------
    ValueError
        If tables have different columns or too few rows, or if private rows are given without
        `reads_private_rows`.

    Notes
    -----
    With a reference, most numbers are also computed between two halves of it, which shows the
    sampling error. If synthetic rows reach that value, they match the reference in that respect.
    Numbers and dates with more than 16 values are binned by quantiles of both tables, in which
    point masses are bins of their own. Categories are those with the larger share in either table.

    - *Verdicts* follow from the noise of the releases, at no cost: a table of counts is good if the
      standard deviation of the noise is at most 10 % of its average count, noise above 224 %, else
      rough.
    - *Marginals*, *pairs* and *k-marginals* are compared by total variation, the share of rows that
      would have to change; numbers also by the Kolmogorov-Smirnov statistic. The *k-marginal
      score* is 1,000 less a thousand times the mean total variation of three-way marginals.
    - *Associations* are Cramér's V, with bias correction.
    - *Classifiers* are those of `train_on_synthetic_score`, tested on one half of the reference.
    - *Quality* is the mean of the scores of columns and pairs of SDMetrics.
    - The *propensity* is how well gradient boosting tells synthetic from reference rows.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skdpgen.evaluation import report
    >>> rng = np.random.default_rng(0)
    >>> public, synthetic = (pd.DataFrame(rng.normal(size=(500, 2)), columns=["a", "b"])
    ...                      for _ in range(2))
    >>> result = report(synthetic, public)
    >>> bool(result.results["k_marginals"]["score"] > 700)
    True
    >>> result.to_frame().index[0]
    'Total variation of columns, mean'
    >>> page = result.to_html()  # or to_html("report.html")
    """
    if private is not None:
        if not reads_private_rows:
            raise ValueError(
                "A report on private rows reveals exact numbers about them, which no ε covers. Use "
                "reference= with public rows, or set reads_private_rows=True and keep the report "
                "as secret as the rows."
            )
        if reference is not None:
            raise ValueError("Give either reference, with public rows, or private, not both.")
        warn_caller(
            "The report is computed from private rows. The certificate does not cover it: keep it "
            "as secret as the rows.",
            PrivacyLeakWarning,
        )
    # From here on, private rows are treated as a reference; the results say which it was.
    compared = reference if private is None else private
    histories = None
    published = None if release is None else open_release(release)
    if published is not None and isinstance(published.format, HistoryFormat):
        histories, tables = ReleasedHistories(published), synthetic
        synthetic = histories.join(tables)
        compared = None if compared is None else histories.join(compared)
        schema = histories.schema if schema is None else schema
        schema_report = histories.schema_report if schema_report is None else schema_report
        certificate = published.certificate if certificate is None else certificate
    synthetic = as_table(synthetic)
    if compared is not None:
        compared = as_table(compared)
    check_tables(synthetic, compared)
    if compared is not None:
        compared = compared[list(synthetic)]
    if target is not None and target not in synthetic:
        raise ValueError(f"target must be one of the columns {list(synthetic)}; got {target!r}.")
    # Only certificates whose ε follows from their events: `from_json` recomputes it.
    given = _read_certificate(certificate)
    certificate = None if given is None else json.loads(given.to_json())
    audit = _read_audit(audit, certificate)
    types = {} if schema is None else dict(schema.items())
    orders = {name: column.levels for name, column in types.items() if column.is_ordered}
    columns = encode_columns(synthetic, compared, orders)
    pairs = compare_pairs(columns)
    released = None if published is None else compare_released(published, synthetic)
    if histories is not None:
        released = histories.compare(tables)
    results = {
        "report": "synthetic rows",
        "title": title,
        "version": __version__,
        "date": date.today().isoformat(),
        "reads_private_rows": private is not None,
        "n_rows": len(synthetic),
        "n_reference": None if compared is None else len(compared),
        "certificate": certificate,
        **_judge(
            given,
            None if schema_report is None else _read_report(schema_report),
            _find_rarest(columns, types),
            len(synthetic),
            released,
        ),
        "released": released,
        "budget": None if budget is None else _describe_budget(budget),
        "voids": list(_VOIDS),
        "audit": audit,
        "marginals": _describe_marginals(columns),
        "pairs": {"mean_total_variation": mean_variation(pairs), "pairs": pairs},
        "rules": _check_rules(synthetic, schema),
        **dict.fromkeys(["k_marginals", "classifiers", "propensity", "quality"]),
    }
    if compared is not None:
        # Two halves of the reference show what sampling alone does to each number.
        order = np.random.RandomState(random_state).permutation(len(compared))
        first, second = order[: len(order) // 2], order[len(order) // 2 :]
        halves = halve(columns, first, second)
        results |= {
            "k_marginals": score_k_marginals(columns, random_state),
            "propensity": score_propensity(synthetic, compared, random_state),
            "quality": {"score": score_quality(columns), "halves": score_quality(halves)},
        }
        results["marginals"]["halves"] = mean_variation(compare_marginals(halves))
        if len(halves) > 1:
            results["pairs"]["halves"] = mean_variation(compare_pairs(halves))
        results["k_marginals"]["halves"] = score_k_marginals(halves, random_state)["score"]
        rows = compared.iloc[first], compared.iloc[second]
        results["propensity"]["halves"] = score_propensity(*rows, random_state)
        if target is not None:
            column = next(column for column in columns if column.name == str(target))
            results["classifiers"] = _score_classifiers(
                synthetic, compared, target, column, random_state
            )
    return Report(_plain(results))


def _read_certificate(given) -> Certificate | None:
    """Return a certificate, with ε recomputed from its events."""
    if given is None or isinstance(given, Certificate):
        return given
    text = _read_text(given)
    _check_content("certificate", parse_json(text, "The certificate"), "statement")
    return Certificate.from_json(text)


def _read_report(given) -> pd.DataFrame:
    """Return the report on columns, from a DataFrame or from the records of its JSON."""
    if not isinstance(given, pd.DataFrame):
        given = pd.DataFrame(given)
        given = given.set_index("column") if "column" in given else given
    if missing := {"kind", "n_levels", "noise"} - {*given}:
        raise ValueError(
            f"schema_report has no {', '.join(sorted(missing))}. Give generator.schema_report_, or "
            'the "report" of the JSON that skdpgen synthesize writes.'
        )
    return given.reindex(columns=list(DTYPES)).astype(DTYPES)


def _find_rarest(columns: Sequence[EncodedColumn], types: dict) -> dict[str, tuple[str, float]]:
    """Return the rarest level of each column with levels, and its share of the synthetic rows.

    The level of all rare values may be there because of the noise alone, and does not count.
    """
    others = {str(name): str(getattr(column, "other", None)) for name, column in types.items()}
    found = {}
    for column in columns:
        shares = column.shares(column.synthetic)
        levels = zip(column.levels, shares.tolist(), strict=True)
        # Merged levels are no level whose count somebody would read.
        counted = [(n, s) for n, s in levels if s > 0 and n != others.get(column.name)]
        if counted and column.bins is None:
            found[column.name] = min(counted, key=lambda level: level[1])
    return found


def _judge(certificate: Certificate | None, report, rarest: dict, n_rows: int, released) -> dict:
    """Return how strong the protection is, and what the released counts are good for."""
    counts, n_records = None, 1
    if report is not None and certificate is not None and certificate.n_records is not None:
        # Persons have a number of rows that counts alone know.
        n_counted = released["n_records"] if released and certificate.max_rows else None
        n_records = n_counted or certificate.n_records
        counts = judge_counts(report, n_records, rarest)
    return {
        "summary": summarize_use(counts, report, n_records, n_rows),
        "protection": None if certificate is None else judge_protection(certificate),
        "counts": counts,
        "columns": None if report is None else to_records(report.rename_axis("column")),
        "limits": list_limits(report, counts, certificate),
    }


def to_records(frame: pd.DataFrame) -> list[dict]:
    """Return the rows of a frame and its index as JSON holds them, dates as texts."""
    return json.loads(frame.reset_index().to_json(orient="records", date_format="iso"))


def _describe_budget(budget) -> dict:
    return {
        "epsilon": budget.epsilon,
        "delta": budget.delta,
        "spent": budget.spent,
        "n_fits": len(budget._store.read()),
        "is_closed": budget.is_closed,
    }


def _read_audit(given, certificate: dict | None) -> dict | None:
    """Return an audit as a dict, with ``is_of_certificate``; None if that is unknown.

    An audit of other releases, or of the same with other noise, is no evidence for these rows.
    """
    if given is None:
        return None
    text = given.to_json() if hasattr(given, "to_json") else _read_text(given)
    written = parse_json(text, "The audit")
    _check_content("audit", written, "verdict")
    is_of_certificate = None
    if certificate is not None and "certificate" in written:
        audited = written["certificate"]
        # By these the noise is the same; parameters and dates may differ.
        names = "releases", "relation", "delta", "unit", "max_rows"
        is_of_certificate = all(audited.get(name) == certificate.get(name) for name in names)
    return written | {"is_of_certificate": is_of_certificate}


def _check_content(name: str, written, key: str) -> None:
    """Raise ValueError for JSON of something else, such as a schema."""
    if not (isinstance(written, dict) and key in written):
        raise ValueError(f"{name} is not the JSON of a {name}: it has no key {key!r}.")


def _read_text(path_or_text: str | PathLike) -> str:
    if isinstance(path_or_text, str) and path_or_text.lstrip().startswith("{"):
        return path_or_text
    return read_file(path_or_text)


def _describe_marginals(columns: Sequence[EncodedColumn]) -> dict:
    has_reference = columns[0].reference is not None
    compared = compare_marginals(columns) if has_reference else [{}] * len(columns)
    described: list[dict] = []
    for column, gaps in zip(columns, compared, strict=True):
        shares = {"synthetic": column.shares(column.synthetic)}
        if column.reference is not None:
            shares["reference"] = column.shares(column.reference)
        described.append(
            {
                "column": column.name,
                "is_number": column.numbers is not None,
                "levels": column.levels,
                "bins": column.bins,
                "is_date": column.is_date,
                **shares,
                **gaps,
            }
        )
    return {"mean_total_variation": mean_variation(compared), "columns": described}


def _score_classifiers(synthetic, reference, target, column, random_state) -> dict:
    """Return scores of classifiers, or the reason why there are none."""
    # More values than levels: the chart bins them, and classes would be bins.
    if column.numbers is not None and len(np.unique(column.numbers[1])) > len(column.levels):
        none = "it is numeric, and classifiers need classes"
    elif len(column.levels) < 2:
        none = "it has one class only"
    else:
        return score_classifiers(synthetic, reference, target, random_state)
    return {"target": target, "none": none}


def _check_rules(synthetic, schema) -> list[dict] | None:
    if schema is None:
        return None
    shares = schema.share_obeying(synthetic)
    return [{"rule": repr(rule), "share_breaking": 1 - share} for rule, share in shares.items()]


def _plain(value):
    """Return a value that JSON can hold: numbers that are not finite become None."""
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(part) for part in value]
    # Python's numbers: json refuses most of NumPy's.
    if isinstance(value, np.generic):
        value = value.item()
    # JSON has no NaN and no infinity.
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _write(text: str, path: str | PathLike | None) -> str:
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text
