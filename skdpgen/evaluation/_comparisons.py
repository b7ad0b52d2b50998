# SPDX-License-Identifier: BSD-3-Clause
"""Comparisons of two tables: marginals, associations, classifiers, propensity.

They read rows outside of any ledger.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from math import comb

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype
from scipy.stats import chi2_contingency, ks_2samp
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict

from ._columns import EncodedColumn, as_texts, plain_frames
from ._scores import train_on_synthetic_score

# The mean over so many random marginals has a standard error below 0.01.
_MOST_MARGINALS = 100
# Rows of each table for slow comparisons: a report takes seconds for tables of any size.
_MOST_ROWS = 5_000
# Levels of a text column for gradient boosting, which takes 255 at most.
_MOST_LEVELS = 200
_CLASSIFIERS = ("logistic", "mlp")


def total_variation(first: np.ndarray, second: np.ndarray) -> float:
    """Return the total variation distance of two samples of codes: 0 if equal, at most 1.

    Examples
    --------
    >>> import numpy as np
    >>> total_variation(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]))
    0.25
    """
    codes = np.append(first, second)
    codes = codes - codes.min()
    # Only the levels that occur, where a table of all would be larger than the rows.
    if codes.max() > len(codes):
        codes, _ = pd.factorize(codes)
    shares = [
        np.bincount(part, minlength=codes.max() + 1) / len(part)
        for part in np.split(codes, [len(first)])
    ]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def compare_marginals(columns: Sequence[EncodedColumn]) -> list[dict]:
    """Return each column's total variation and, for numbers, Kolmogorov-Smirnov statistic."""
    return [
        {
            "column": column.name,
            "total_variation": total_variation(*column.exact),
            "kolmogorov_smirnov": _compare_numbers(column),
        }
        for column in columns
    ]


def compare_pairs(columns: Sequence[EncodedColumn]) -> list[dict]:
    """Return each pair's association and, beside a reference, its total variation and its other."""
    pairs = []
    for first, second in combinations(columns, 2):
        pair: dict = {"first": first.name, "second": second.name}
        if first.reference is not None:
            pair["total_variation"] = _compare_joint([first, second])
            pair["reference"] = associate(first, second, "reference")
        pairs.append(pair | {"synthetic": associate(first, second, "synthetic")})
    return pairs


def mean_variation(compared: Sequence[dict]) -> float | None:
    """Return the mean total variation of columns or of pairs; None for none, or no reference."""
    known = [one["total_variation"] for one in compared if "total_variation" in one]
    return float(np.mean(known)) if known else None


def associate(first: EncodedColumn, second: EncodedColumn, which: str) -> float:
    """Return Cramér's V of two columns, with bias correction: 0 if independent, at most 1.

    `which` is ``"synthetic"`` or ``"reference"``.

    References
    ----------
    Bergsma, "A bias-correction for Cramér's V and Tschuprow's T", Journal of the Korean
    Statistical Society, 2013.
    """
    shape = len(first.levels), len(second.levels)
    codes = _join_codes([first, second], which)
    counts = np.bincount(codes, minlength=shape[0] * shape[1]).reshape(shape)
    counts = counts[np.ix_(counts.any(axis=1), counts.any(axis=0))]
    n, (rows, cols) = counts.sum(), counts.shape
    # No Yates correction: the bias is corrected below, for tables of any size (Bergsma 2013).
    square = chi2_contingency(counts, correction=False).statistic / n
    square = max(0.0, square - (rows - 1) * (cols - 1) / (n - 1))
    # The largest value of the statistic for tables of this shape, with the same correction.
    least = min(rows - (rows - 1) ** 2 / (n - 1), cols - (cols - 1) ** 2 / (n - 1)) - 1
    return float(min(1.0, np.sqrt(square / least))) if least > 0 else 0.0


def score_k_marginals(columns: Sequence[EncodedColumn], random_state: int) -> dict[str, float]:
    """Return the k-marginal score: 1,000 less a thousand times the mean total variation.

    The mean is over all marginals of three columns, or over 100 random ones if there are more.
    """
    n, k = len(columns), min(3, len(columns))
    rng = np.random.RandomState(random_state)
    chosen: Iterable[tuple] = combinations(range(n), k)
    if comb(n, k) > _MOST_MARGINALS:
        chosen = (tuple(rng.choice(n, k, replace=False)) for _ in range(_MOST_MARGINALS))
    distances = [_compare_joint([columns[i] for i in marginal]) for marginal in chosen]
    score = 1000 * (1 - float(np.mean(distances)))
    return {"k": k, "n_marginals": len(distances), "score": score}


# Infinite numbers, and squares of huge ones, have no correlation.
@np.errstate(invalid="ignore", over="ignore")
def score_quality(columns: Sequence[EncodedColumn]) -> float:
    """Return the mean of SDMetrics' scores of columns and of pairs, without its thresholds.

    A number has 1 less the Kolmogorov-Smirnov statistic; two have 1 less half the difference of
    their correlations. Others have 1 less total variation, beside numbers in ten equal bins.
    """
    shapes = [_compare_numbers(c) if c.numbers else total_variation(*c.exact) for c in columns]
    trends = []
    for pair in combinations(columns, 2):
        if all(column.numbers for column in pair):
            tables = zip(*(column.numbers for column in pair), strict=True)
            gap = np.subtract(*(pd.Series(a).corr(pd.Series(b)) for a, b in tables)) / 2
        else:
            first, second = (_bin(c.numbers) if c.numbers else c.exact for c in pair)
            width = 2 + max(map(np.max, second))
            gap = total_variation(*(a * width + b for a, b in zip(first, second, strict=True)))
        trends.append(abs(gap))
    # Means leave out what has no correlation, such as constant columns.
    means = [pd.Series(part, dtype=float).mean() for part in (shapes, trends)]
    return 1 - float(pd.Series(means).mean())


def halve(
    columns: Sequence[EncodedColumn], first: np.ndarray, second: np.ndarray
) -> list[EncodedColumn]:
    """Return columns with some rows of the reference in place of synthetic rows, beside others."""
    return [
        replace(
            column,
            synthetic=np.asarray(column.reference)[first],
            reference=np.asarray(column.reference)[second],
            exact=(column.exact[1][first], column.exact[1][second]),
            numbers=column.numbers and tuple(column.numbers[1][part] for part in (first, second)),
        )
        for column in columns
    ]


def score_classifiers(
    synthetic: pd.DataFrame, reference: pd.DataFrame, target: str, random_state: int = 0
) -> dict:
    """Return scores on half of the reference, after training on synthetic rows or the other half.

    ``scores``: one dict for each classifier and metric, which are accuracy and, with two classes,
    the ROC AUC. ``most_frequent``: the accuracy of a constant prediction.
    """
    synthetic, reference = (
        # Shuffled, since files are often sorted by their target.
        table[table[target].notna()].sample(frac=1, random_state=random_state)
        for table in (synthetic, reference)
    )
    n = len(reference) // 2
    parts = {"synthetic": synthetic, "reference": reference[:n], "test": reference[n:]}
    labels = {who: pd.Series(as_texts(part[target])) for who, part in parts.items()}
    features = (part.drop(columns=target) for part in parts.values())
    rows = dict(zip(parts, plain_frames(*features), strict=True))
    metrics = ["accuracy", *["roc_auc"] * (labels["test"].nunique() == 2)]
    scores = []
    for classifier in _CLASSIFIERS:
        for metric in metrics:
            score: dict[str, str | float] = {"classifier": classifier, "metric": metric}
            for who in ("synthetic", "reference"):
                score[who] = train_on_synthetic_score(
                    rows[who][:_MOST_ROWS],
                    labels[who][:_MOST_ROWS],
                    rows["test"],
                    labels["test"],
                    classifier,
                    metric,
                    random_state,
                )
            scores.append(score)
    # The accuracy of no model at all, without which scores of rare classes look good.
    constant = labels["reference"].mode()[0]
    most_frequent = float((labels["test"] == constant).mean())
    return {"target": target, "most_frequent": most_frequent, "scores": scores}


def score_propensity(
    synthetic: pd.DataFrame, reference: pd.DataFrame, random_state: int = 0
) -> dict[str, float]:
    """Return how well a classifier distinguishes synthetic from reference rows.

    ``roc_auc``: 0.5 for a random guess, 1 if always right. ``pmse``: the mean square of the
    predicted probabilities less 0.5, as a share of its maximum. ``n_rows_each``: the rows of each
    table.
    """
    n = min(len(synthetic), len(reference), _MOST_ROWS)
    tables = (table.sample(n, random_state=random_state) for table in (synthetic, reference))
    rows = pd.concat(plain_frames(*tables), ignore_index=True)
    # A constant column, in case all others are empty.
    rows = rows.dropna(axis="columns", how="all").assign(constant=0.0)
    for name in rows:
        if not is_numeric_dtype(rows[name]):
            rows[name] = _merge_rare(rows[name])
    # Balanced classes, so that 0.5 is the probability of a random guess.
    is_synthetic = np.repeat([1, 0], n)
    model = HistGradientBoostingClassifier(
        max_iter=50, categorical_features="from_dtype", random_state=random_state
    )
    # Scores on rows that a model was trained on would find a difference between equal tables.
    folds = StratifiedKFold(min(3, n), shuffle=True, random_state=random_state)
    predicted = cross_val_predict(model, rows, is_synthetic, cv=folds, method="predict_proba")
    return {
        "roc_auc": float(roc_auc_score(is_synthetic, predicted[:, 1])),
        # In units of its largest value, 1/4.
        "pmse": float(np.mean((predicted[:, 1] - 0.5) ** 2) / 0.25),
        "n_rows_each": n,
    }


def _compare_joint(columns: Sequence[EncodedColumn]) -> float:
    """Return the total variation of the joint distributions of some columns."""
    return total_variation(*(_join_codes(columns, name) for name in ("synthetic", "reference")))


def _join_codes(columns: Sequence[EncodedColumn], which: str) -> np.ndarray:
    """Return one code for the cells of each row."""
    shape = [len(column.levels) for column in columns]
    return np.ravel_multi_index([getattr(column, which) for column in columns], shape)


def _compare_numbers(column: EncodedColumn) -> float | None:
    if column.numbers is None:
        return None
    first, second = (part[np.isfinite(part)] for part in column.numbers)
    if not len(first) or not len(second):
        return None
    return float(ks_2samp(first, second, method="asymp").statistic)


def _bin(numbers: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return codes of numbers: ten bins of equal width of a reference, the rest, and missing."""
    edges = np.histogram_bin_edges(numbers[1][np.isfinite(numbers[1])])
    return [np.searchsorted(edges, part, side="right") + np.isnan(part) for part in numbers]


def _merge_rare(cells: pd.Series) -> pd.Categorical:
    """Return texts as a categorical in which rare levels are one."""
    known = cells.value_counts().index[:_MOST_LEVELS]
    return pd.Categorical(cells.where(cells.isin(known) | cells.isna(), "\0"))


def to_points(*tables: pd.DataFrame) -> list[np.ndarray]:
    """Return the rows of tables as points, in units of the first table."""
    frames = plain_frames(*tables)
    parts = []
    for name in frames[0]:
        cells = [frame[name] for frame in frames]
        if all(is_numeric_dtype(part) for part in cells):
            # Missing numbers are at the median, with an indicator of their own.
            known = cells[0][np.isfinite(cells[0])]
            middle, unit = (known.median(), known.std(ddof=0) or 1.0) if len(known) else (0.0, 1.0)
            parts.append(
                [np.column_stack([np.nan_to_num((c - middle) / unit), c.isna()]) for c in cells]
            )
        else:
            levels = pd.Index(pd.concat(cells).map(str).unique())
            codes = [levels.get_indexer(part.map(str)) for part in cells]
            # Different one-hot rows have a distance of √2.
            parts.append([np.eye(len(levels))[code] / np.sqrt(2) for code in codes])
    return [np.hstack(part) for part in zip(*parts, strict=True)]
