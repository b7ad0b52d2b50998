# SPDX-License-Identifier: BSD-3-Clause
"""What can be counted of two tables side by side. Each is a function of rows, by no ledger."""

from itertools import combinations
from math import comb

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype
from scipy.stats import ks_2samp
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.neighbors import NearestNeighbors

from ._coding import as_numbers, as_texts
from ._downstream import train_on_synthetic_score

# Of more triples of columns, so many are drawn.
_MOST_MARGINALS = 100
# What takes time looks at so many rows of each table.
_MOST_ROWS = 5_000
_CLASSIFIERS = ("logistic", "mlp")


def total_variation(first, second, n_levels):
    """Return half the sum of differences between shares: 0 if they are equal, at most 1.

    Parameters
    ----------
    first, second : ndarray of int
        Levels of rows of either table.
    n_levels : int

    Examples
    --------
    >>> import numpy as np
    >>> total_variation(np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]), 2)
    0.25
    """
    shares = [np.bincount(codes, minlength=n_levels) / len(codes) for codes in (first, second)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def compare_marginals(columns):
    """Return, for each column, the total variation and, of numbers, the largest gap of CDFs."""
    return pd.DataFrame(
        {
            "column": column.name,
            "total_variation": _marginal((column,)),
            "kolmogorov_smirnov": _largest_gap(column),
        }
        for column in columns
    )


def compare_pairs(columns):
    """Return, for each pair of columns, the total variation, and associations in both tables."""
    return pd.DataFrame(
        {
            "first": first.name,
            "second": second.name,
            "total_variation": _marginal((first, second)),
            "synthetic": associate(first, second, "synthetic"),
            "reference": associate(first, second, "reference"),
        }
        for first, second in combinations(columns, 2)
    )


def associate(first, second, which):
    """Return Cramér's V of two columns of a table: 0 if they are independent, at most 1.

    Its bias is taken away, which is what independent columns of so many rows have.
    """
    codes = [getattr(column, which) for column in (first, second)]
    if codes[0] is None:
        return None
    shape = (len(first.levels), len(second.levels))
    counts = np.bincount(np.ravel_multi_index(codes, shape), minlength=np.prod(shape))
    counts = counts.reshape(shape)
    counts = counts[counts.any(axis=1)][:, counts.any(axis=0)]
    n = counts.sum()
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / n
    square = ((counts - expected) ** 2 / expected).sum() / n
    rows, cols = counts.shape
    square = max(0.0, square - (rows - 1) * (cols - 1) / (n - 1))
    least = min(rows - (rows - 1) ** 2 / (n - 1), cols - (cols - 1) ** 2 / (n - 1)) - 1
    return float(min(1.0, np.sqrt(square / least))) if least > 0 else 0.0


def correlate(columns, which):
    """Return Pearson's correlations of the columns of numbers; NaN where one does not vary."""
    numbers = {c.name: c.numbers[which] for c in columns if c.is_number}
    return pd.DataFrame(numbers).corr()


def score_k_marginals(columns, k=3, random_state=0):
    """Return the mean total variation of tables of k columns as a score from 0 to 1,000.

    1,000 is for equal tables. If there are many, 100 are drawn.
    """
    k = min(k, len(columns))
    chosen = [*combinations(range(len(columns)), k)] if comb(len(columns), k) <= 10_000 else None
    rng = np.random.RandomState(random_state)
    if chosen is None:
        chosen = [rng.choice(len(columns), k, replace=False) for _ in range(_MOST_MARGINALS)]
    elif len(chosen) > _MOST_MARGINALS:
        chosen = [
            chosen[i] for i in sorted(rng.choice(len(chosen), _MOST_MARGINALS, replace=False))
        ]
    gaps = [_marginal([columns[i] for i in marginal]) for marginal in chosen]
    return {"k": k, "n_marginals": len(gaps), "score": 1000 * (1 - float(np.mean(gaps)))}


def halve(columns, random_state=0):
    """Return columns of which one half of the reference stands for synthetic rows."""
    n = len(columns[0].reference)
    order = np.random.RandomState(random_state).permutation(n)
    first, second = order[: n // 2], order[n // 2 :]
    return [c.select(c.reference[first], c.reference[second]) for c in columns]


def score_classifiers(synthetic, reference, target, random_state=0):
    """Return accuracies on half of the reference, trained on synthetic rows and on the other half.

    The ROC AUC is given where `target` has two levels.
    """
    tables = [_drop_missing(table, target) for table in (synthetic, reference)]
    synthetic, reference = (table.sample(frac=1, random_state=random_state) for table in tables)
    n = len(reference) // 2
    train, test = reference[:n], reference[n:]
    labels = [pd.Series(as_texts(part[target])) for part in (synthetic, train, test)]
    metrics = ["accuracy", *["roc_auc"] * (labels[2].nunique() == 2)]
    rows = [_plain_frame(part.drop(columns=target)) for part in (synthetic, train, test)]
    scores = []
    for classifier in _CLASSIFIERS:
        for metric in metrics:
            found = {"classifier": classifier, "metric": metric}
            for who, X, y in zip(("synthetic", "reference"), rows, labels, strict=False):
                found[who] = train_on_synthetic_score(
                    X[:_MOST_ROWS],
                    y[:_MOST_ROWS],
                    rows[2],
                    labels[2],
                    classifier,
                    metric,
                    random_state,
                )
            scores.append(found)
    most = labels[1].mode()[0]
    return {"target": target, "most_frequent": float((labels[2] == most).mean()), "scores": scores}


def score_propensity(synthetic, reference, random_state=0):
    """Return how well a classifier tells synthetic from reference rows that it was not shown.

    Returns
    -------
    dict
        ``roc_auc``: 0.5 if it has to guess, 1 if it is always right. ``pmse``: the mean square of
        its probabilities less the share of synthetic rows, as a share of the largest there is.
    """
    synthetic, reference = _take_as_many(synthetic, reference, random_state)
    rows = pd.concat([_plain_frame(synthetic), _plain_frame(reference)], ignore_index=True)
    rows = rows.dropna(axis="columns", how="all").assign(constant=0.0)
    for name in rows:
        if not is_numeric_dtype(rows[name]):
            rows[name] = _code_frequent(rows[name])
    is_synthetic = np.repeat([1, 0], len(synthetic))
    model = HistGradientBoostingClassifier(
        max_iter=50, categorical_features="from_dtype", random_state=random_state
    )
    n_folds = min(3, len(synthetic))
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=random_state)
    told = cross_val_predict(model, rows, is_synthetic, cv=folds, method="predict_proba")[:, 1]
    return {
        "roc_auc": float(roc_auc_score(is_synthetic, told)),
        "pmse": float(np.mean((told - 0.5) ** 2) / 0.25),
        "n_rows_each": len(synthetic),
    }


def measure_nearest(synthetic, reference, random_state=0):
    """Return how near rows are to the nearest row of one half of the reference.

    Of synthetic rows, and of the other half of the reference, which is what rows of the same kind
    have. Numbers are in units of their standard deviations; categories that differ are at a
    distance of 1.
    """
    rng = np.random.RandomState(random_state)
    n, order = len(reference) // 2, rng.permutation(len(reference))
    first, second = (reference.iloc[part][:_MOST_ROWS] for part in (order[:n], order[n:]))
    made = synthetic.sample(min(len(synthetic), len(second)), random_state=rng)
    points, *others = _to_points(first, made, second)
    search = NearestNeighbors(n_neighbors=1).fit(points)
    found = {"n_rows": len(first)}
    for who, rows in zip(("synthetic", "reference"), others, strict=True):
        distances = search.kneighbors(rows)[0][:, 0]
        found[who] = {
            "median_distance": float(np.median(distances)),
            "share_of_copies": float(np.mean(distances < 1e-6)),
        }
    return found


def _marginal(columns):
    """Return the total variation of the tables of some columns."""
    shape = [len(column.levels) for column in columns]
    first, second = (
        np.ravel_multi_index([getattr(c, which) for c in columns], shape)
        for which in ("synthetic", "reference")
    )
    # Of the levels that occur: of many columns there may be more than memory holds.
    levels, codes = np.unique(np.append(first, second), return_inverse=True)
    return total_variation(codes[: len(first)], codes[len(first) :], len(levels))


def _largest_gap(column):
    if not column.is_number:
        return None
    first, second = (part[np.isfinite(part)] for part in column.numbers)
    if not len(first) or not len(second):
        return None
    return float(ks_2samp(first, second, method="asymp").statistic)


def _drop_missing(table, target):
    return table[table[target].notna()]


def _plain_frame(table):
    """Return a table of floats and texts."""
    plain = {}
    for name in table:
        numbers = as_numbers(table[name])
        plain[name] = as_texts(table[name]) if numbers is None else numbers
    return pd.DataFrame(plain)


def _code_frequent(cells, most=200):
    """Return texts as a categorical; those that are rare are one."""
    known = cells.value_counts().index[:most]
    return pd.Categorical(cells.where(cells.isin(known) | cells.isna(), "\0"))


def _take_as_many(synthetic, reference, random_state):
    n = min(len(synthetic), len(reference), _MOST_ROWS)
    return [table.sample(n, random_state=random_state) for table in (synthetic, reference)]


def _to_points(*tables):
    """Return rows of several tables as points; the first of them says what the units are."""
    frames = [_plain_frame(table) for table in tables]
    parts = []
    for name in frames[0]:
        cells = [frame[name] for frame in frames]
        if not all(is_numeric_dtype(part) for part in cells):
            levels = pd.Index(pd.concat(cells).map(str).unique())
            codes = [levels.get_indexer(part.map(str)) for part in cells]
            parts.append([np.eye(len(levels))[code] / np.sqrt(2) for code in codes])
        else:
            known = cells[0][np.isfinite(cells[0])]
            middle, unit = (known.median(), known.std(ddof=0) or 1.0) if len(known) else (0.0, 1.0)
            parts.append(
                [np.column_stack([np.nan_to_num((c - middle) / unit), c.isna()]) for c in cells]
            )
    return [np.hstack(part) for part in zip(*parts, strict=True)]
