# SPDX-License-Identifier: BSD-3-Clause
"""A report on synthetic rows: what protects the private ones, and what these are good for."""

import json
import math
import warnings
from dataclasses import dataclass
from datetime import date
from html import escape
from os import PathLike
from pathlib import Path

import numpy as np

from .._version import __version__
from ..accounting.certificate import Certificate
from ..accounting.strict_json import parse_json
from ..checks import read_file
from ..exceptions import PrivacyLeakWarning
from ._coding import as_table, check_tables, code_columns
from ._comparisons import (
    associate,
    compare_marginals,
    compare_pairs,
    correlate,
    halve,
    measure_nearest,
    score_classifiers,
    score_k_marginals,
    score_propensity,
)
from ._page import write_page

# What ends the guarantee, whatever was certified.
_VOIDS = (
    "Anything else that was computed from the private rows and is published, such as scores, "
    "plots, or bounds that were read off them: ε does not count it.",
    "Further releases from the same rows: their ε add up. Keep a budget for all of them.",
    "Several rows of one person, where the unit is a record: such a person is protected less.",
    "A seed for the noise that anybody knows or can guess.",
)


@dataclass(frozen=True)
class Report:
    """What `report` found, as numbers, as JSON and as a page.

    Attributes
    ----------
    results : dict
        All numbers; what was not looked at is None.
    """

    results: dict

    def to_json(self, path: str | PathLike | None = None) -> str:
        """Return the numbers as JSON text, and write it to a file if one is given.

        Parameters
        ----------
        path : str or path, default=None

        Returns
        -------
        str
        """
        text = json.dumps(self.results, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
        return _write(text, path)

    def to_html(self, path: str | PathLike | None = None) -> str:
        """Return a page that stands by itself, and write it to a file if one is given.

        It needs neither other files nor scripts, and may be sent and printed.

        Parameters
        ----------
        path : str or path, default=None

        Returns
        -------
        str
        """
        return _write(write_page(self.results), path)

    def _repr_html_(self):
        # In a frame, the styles of the page are its own.
        page = escape(self.to_html())
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 40em; border: 0"></iframe>'


def report(
    synthetic,
    reference=None,
    *,
    private=None,
    reads_private_rows: bool = False,
    certificate=None,
    audit=None,
    schema=None,
    target=None,
    title: str = "Synthetic rows",
    random_state: int = 0,
) -> Report:
    """Describe synthetic rows: their certificate, and how they compare with other rows.

    Whoever reads the report needs to know nothing of differential privacy.

    Parameters
    ----------
    synthetic : DataFrame or array-like of shape (n_rows, n_columns)
        Rows that a generator has sampled.
    reference : DataFrame or array-like of shape (n_reference, n_columns), default=None
        **Public** rows with the same columns. None: the report describes the synthetic rows alone.
    private : DataFrame or array-like of shape (n_private, n_columns), default=None
        Private rows instead. **What is counted of them is not private**, and no ε covers it: such a
        report is for those who may see the rows themselves, and says so on its top.
    reads_private_rows : bool, default=False
        Has to be True if `private` is given.
    certificate : Certificate, str or path, default=None
        That of the fit, ``generator.privacy_``, or the JSON file of one.
    audit : AuditReport, str or path, default=None
        What `skdpgen.audit` found, or the JSON file of it.
    schema : Schema, default=None
        Of which the rules are checked.
    target : str, default=None
        The column that classifiers are to predict.
    title : str
        Of the page.
    random_state : int, default=0
        Of what is drawn at random: halves, marginals and classifiers.

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
    Where there is a reference, most numbers are also given for two halves of it: what two tables of
    the same source differ by. Synthetic rows as near as that cannot be told from the reference by
    that number. Numbers and dates are cut into ten ranges.

    - *Marginals*, *pairs* and *k-marginals* are compared by total variation, the share of rows that
      would have to change; numbers also by the largest gap of their distribution functions
      (Kolmogorov-Smirnov). The *k-marginal score* is 1,000 less a thousand times the mean total
      variation of tables of three columns.
    - *Associations* are Cramér's V, with its bias taken away.
    - *Classifiers* are those of `train_on_synthetic_score`, tested on one half of the reference.
    - The *propensity* is how well gradient boosting tells synthetic rows from the reference.
    - *Nearest records*: distances to one half of the reference, of synthetic rows and of the other
      half. That is no measure of privacy: what protects the private rows is the certificate.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from skdpgen.evaluation import report
    >>> rng = np.random.default_rng(0)
    >>> public, synthetic = (pd.DataFrame(rng.normal(size=(500, 2)), columns=["a", "b"])
    ...                      for _ in range(2))
    >>> found = report(synthetic, public)
    >>> bool(found.results["k_marginals"]["score"] > 700)
    True
    >>> page = found.to_html()  # or to_html("report.html")
    """
    if private is not None:
        if not reads_private_rows:
            raise ValueError(
                "A report on private rows is an exact answer about them, which no ε covers. Give "
                "public rows as reference; or say reads_private_rows=True, and keep the report as "
                "secret as the rows."
            )
        if reference is not None:
            raise ValueError("Give either reference, of public rows, or private.")
        warnings.warn(
            "The report is computed from private rows: it is outside of the certificate, and as "
            "private as they are.",
            PrivacyLeakWarning,
            stacklevel=2,
        )
    compared = reference if private is None else private
    synthetic = as_table(synthetic)
    if compared is not None:
        compared = as_table(compared)
    check_tables(synthetic, compared)
    if compared is not None:
        compared = compared[list(synthetic)]
    if target is not None and target not in synthetic:
        raise ValueError(f"target must be one of the columns {list(synthetic)}; got {target!r}.")
    certificate = _read_certificate(certificate)
    audit = _read_audit(audit, certificate)
    columns = code_columns(synthetic, compared)
    results = {
        "report": "synthetic rows",
        "title": title,
        "version": __version__,
        "date": date.today().isoformat(),
        "reads_private_rows": private is not None,
        "n_rows": len(synthetic),
        "n_reference": None if compared is None else len(compared),
        "certificate": certificate,
        "voids": list(_VOIDS),
        "audit": audit,
        "marginals": _describe_marginals(columns),
        "pairs": _describe_pairs(columns),
        "correlations": _describe_correlations(columns),
        "rules": _check_rules(synthetic, schema),
        **dict.fromkeys(["k_marginals", "classifiers", "propensity", "nearest"]),
    }
    if compared is not None:
        results |= {
            "k_marginals": score_k_marginals(columns, random_state=random_state),
            "propensity": score_propensity(synthetic, compared, random_state),
            "nearest": measure_nearest(synthetic, compared, random_state),
        }
        _add_halves(results, halve(columns, random_state), random_state)
        if target is not None:
            column = next(column for column in columns if column.name == str(target))
            results["classifiers"] = _score_classifiers(
                synthetic, compared, target, column, random_state
            )
    return Report(_plain(results))


def _read_certificate(given):
    """Return a certificate as it is written down, with the ε that its events cost."""
    if given is None:
        return None
    if not isinstance(given, Certificate):
        text = _read_text(given)
        _check_kind("certificate", parse_json(text, "The certificate"), "statement")
        given = Certificate.from_json(text)
    return json.loads(given.to_json())


def _read_audit(given, certificate):
    """Return an audit as it is written down, and whether it is of the certificate, if one can say.

    An audit of other releases, or of the same with other noise, says nothing of these rows.
    """
    if given is None:
        return None
    text = given.to_json() if hasattr(given, "to_json") else _read_text(given)
    found = parse_json(text, "The audit")
    _check_kind("audit", found, "verdict")
    is_of_certificate = None
    if certificate is not None and "certificate" in found:
        audited = found["certificate"]
        said = "releases", "relation", "delta", "unit", "max_rows"
        is_of_certificate = all(audited.get(name) == certificate.get(name) for name in said)
    return found | {"is_of_certificate": is_of_certificate}


def _check_kind(name, found, key):
    """Refuse a file of something else, such as a schema."""
    if not (isinstance(found, dict) and key in found):
        raise ValueError(f"What was given as {name} is none: it has no {key!r}.")


def _read_text(path_or_text):
    is_text = isinstance(path_or_text, str) and path_or_text.lstrip().startswith("{")
    return path_or_text if is_text else read_file(path_or_text)


def _describe_marginals(columns):
    has_reference = columns[0].reference is not None
    compared = compare_marginals(columns) if has_reference else None
    described = []
    for i, column in enumerate(columns):
        entry = {
            "column": column.name,
            "is_number": column.is_number,
            "levels": column.levels,
            "synthetic": column.shares(column.synthetic),
        }
        if has_reference:
            entry["reference"] = column.shares(column.reference)
            entry |= compared.loc[i].drop("column").to_dict()
        described.append(entry)
    mean = compared["total_variation"].mean() if has_reference else None
    return {"mean_total_variation": mean, "columns": described}


def _describe_pairs(columns):
    if columns[0].reference is not None:
        pairs = compare_pairs(columns)
        mean = pairs["total_variation"].mean() if len(pairs) else None
        listed = pairs.to_dict("records")
    else:
        mean = None
        listed = [
            {
                "first": first.name,
                "second": second.name,
                "synthetic": associate(first, second, "synthetic"),
            }
            for i, first in enumerate(columns)
            for second in columns[i + 1 :]
        ]
    return {"mean_total_variation": mean, "pairs": listed}


def _describe_correlations(columns):
    """Describe the correlations of numbers, if there are two columns of them."""
    found = {"synthetic": correlate(columns, 0), "reference": None, "mean_difference": None}
    if len(found["synthetic"]) < 2:
        return None
    if columns[0].reference is not None:
        found["reference"] = correlate(columns, 1)
        above = np.triu_indices(len(found["reference"]), 1)
        gaps = np.abs(found["synthetic"] - found["reference"]).to_numpy()[above]
        known = gaps[np.isfinite(gaps)]
        found["mean_difference"] = known.mean() if len(known) else None
        found["reference"] = found["reference"].to_numpy()
    return found | {
        "columns": list(found["synthetic"]),
        "synthetic": found["synthetic"].to_numpy(),
    }


def _add_halves(results, halves, random_state):
    """Put beside numbers what they are for two halves of the reference."""
    results["marginals"]["halves"] = compare_marginals(halves)["total_variation"].mean()
    if len(halves) > 1:
        results["pairs"]["halves"] = compare_pairs(halves)["total_variation"].mean()
    results["k_marginals"]["halves"] = score_k_marginals(halves, random_state=random_state)["score"]


def _score_classifiers(synthetic, reference, target, column, random_state):
    """Score classifiers, or say why there are none."""
    if column.is_number and len(np.unique(column.numbers[1])) > len(column.levels):
        none = "it is a number, and classifiers need classes"
    elif len(column.levels) < 2:
        none = "it has one class only"
    else:
        return score_classifiers(synthetic, reference, target, random_state)
    return {"target": target, "none": none}


def _check_rules(synthetic, schema):
    if schema is None:
        return None
    shares = schema.share_obeying(synthetic)
    return [{"rule": repr(rule), "share_breaking": 1 - share} for rule, share in shares.items()]


def _plain(value):
    """Return what JSON can hold: numbers that are not finite become None."""
    if isinstance(value, dict):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(part) for part in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _write(text, path):
    if path is not None:
        Path(path).write_text(text, encoding="utf-8")
    return text
