# SPDX-License-Identifier: BSD-3-Clause
"""Statistics of a table, and the influence of single rows on them."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from .._process.muting import muted
from ..data.record_functions import call_quietly
from .constants import CONSTANTS


class Statistic:
    """A function of a table, with its values on synthetic rows.

    Parameters
    ----------
    function : callable
        Returns a number, or a dict or Series of numbers, of a DataFrame.
    rows : DataFrame

    Attributes
    ----------
    names : list
        Names of the values.
    values : ndarray of shape (n_values,)
    """

    def __init__(self, function: Callable, rows: pd.DataFrame) -> None:
        self._function, self._rows = function, rows
        self.names = list(self._call(rows).index)
        self.values = self._compute(rows)

    def _call(self, rows):
        found = self._function(rows)
        found = found if isinstance(found, pd.Series) else pd.Series(found, dtype=object)
        numbers = call_quietly(found.to_numpy, complex, False, np.nan)
        if numbers is None or numbers.imag.any():
            raise ValueError(
                "The statistic must return a real number, or a dict or Series of real numbers."
            )
        return pd.Series(numbers.real, found.index)

    def _compute(self, rows):
        """Return the values by their names: groups of few rows come and go."""
        # Rows here are made: warnings of the function, such as of empty groups, concern no record.
        with muted(RuntimeWarning):
            return self._call(rows).reindex(self.names).to_numpy()

    def find_columns(
        self, learned, random_state: np.random.Generator, list_moved: Callable = lambda name: ()
    ) -> list:
        """Return the columns on which the values depend; raise ValueError unless they were learned.

        `list_moved` returns, for a column, lists of tables in which it differs further.
        """
        found = [
            name
            for name in self._rows
            if self._depends_on(name, random_state)
            or any(self._differ(*tables) for tables in list_moved(name))
        ]
        if others := [name for name in found if name not in learned]:
            raise ValueError(
                f"The statistic depends on columns {others}, which are derived or generated, and "
                "not in the release: use the columns that they follow from."
            )
        if not found:
            raise ValueError(
                "The statistic depends on no column: with other cells of each it is the same, or "
                "undefined. Categories that are not in schema_, and values beyond its bounds, do "
                "not occur. The number of records is public, as release_.published.n_samples."
            )
        return found

    def _depends_on(self, name, random_state):
        rows = self._rows
        for n_values in CONSTANTS.n_values:
            # Drawn from few rows, so that the marginal distribution changes as well.
            few = random_state.choice(len(rows), n_values)
            cells = rows[name].iloc[random_state.choice(few, len(rows))]
            if self._differ(rows, rows.assign(**{name: cells.array})):
                return True
        return False

    def _differ(self, first, *others):
        """Return whether the values of tables differ."""
        try:
            values = self.values if first is self._rows else self._compute(first)
            found = [self._compute(rows) for rows in others]
        except Exception:
            # A statistic that fails for other values depends on them.
            return True
        return not all(np.array_equal(values, other, equal_nan=True) for other in found)

    def find_influence(self, probes: pd.DataFrame, columns) -> np.ndarray:
        """Return the derivatives of the values along each probe, of shape (n_probes, n_values)."""
        # Probes with equal cells in the columns that matter have the same influence.
        groups = probes.groupby(list(columns), dropna=False, observed=True, sort=False)
        group = groups.ngroup().to_numpy()
        firsts = np.unique(group, return_index=True)[1]
        return self._add(probes.iloc[firsts], 1)[group]

    def find_moves(self, at: pd.DataFrame, beyond: Sequence, columns) -> tuple:
        """Return whether values fall, and rise, if cells move as by `Model.move`, beyond a bound.

        Both, if a value is undefined, or the function fails.
        """
        try:
            influence = self.find_influence(at, columns)
            moves = np.vstack([self.find_influence(rows, columns) - influence for rows in beyond])
        except Exception:
            # Functions may be undefined beyond the bounds, as tables of values are.
            moves = np.full((1, len(self.values)), np.nan)
        rounding = CONSTANTS.rounding * np.abs(self.values)
        # Comparisons with NaN are false.
        return ~(moves >= -rounding).all(axis=0), ~(moves <= rounding).all(axis=0)

    def measure_interactions(self, corners: pd.DataFrame, n_triples: int, columns) -> np.ndarray:
        """Return bounds on the means of interactions of three columns, by `Model.draw_corners`.

        The mean of an alternating sum over the other row is the interaction of the three columns at
        the row, if cells are independent. So the mean absolute sum is at least that of it.
        """
        if not n_triples:
            return np.zeros(len(self.values))
        influence = self.find_influence(corners, columns).reshape(-1, 8, len(self.values))
        signs = np.array([(-1) ** i.bit_count() for i in range(8)])
        return n_triples * np.abs(np.einsum("c,ncv->nv", signs, influence)).mean(0)

    def check_repeated(self, influence: np.ndarray) -> None:
        """Raise ValueError for values that change if each row is repeated, such as sums and counts.

        The influence (n_probes, n_values) tells rounding errors of values near 0 from changes.
        """
        twice = self._compute(pd.concat([self._rows, self._rows], ignore_index=True))
        with np.errstate(invalid="ignore"):
            size = np.maximum(np.abs(twice), np.abs(self.values))
            # Changes of an influence over n are those of corrected degrees of freedom.
            least = np.nan_to_num(influence).std(axis=0) / len(self._rows)
            is_changed = np.abs(twice - self.values) > np.maximum(CONSTANTS.repeated * size, least)
        if is_changed.any():
            changed = [n for n, found in zip(self.names, is_changed, strict=True) if found]
            raise ValueError(
                f"Values {changed} of the statistic change if each row is repeated, as sums and "
                "counts do, and the number of synthetic rows is not that of records. Return means "
                "or shares, and multiply estimates and intervals by the public number of records."
            )

    def is_smooth(self, probes: pd.DataFrame, influence: np.ndarray) -> np.ndarray:
        """Return whether the influences of probes are the same for larger steps, (n_values,).

        Those of quantiles follow from single values, and those of few rows change at once. Without
        any influence of one row, that of many is not known.
        """
        few = np.arange(len(probes))[: CONSTANTS.n_smooth]
        # Quantiles of values that many rows share change by a few rows only.
        largest = np.argsort(-np.abs(influence), axis=0)[: CONSTANTS.n_largest]
        tried = [(few, n) for n in CONSTANTS.copies]
        tried.append((np.unique(largest), CONSTANTS.copies[0]))
        is_same = [self._is_same(probes, influence, which, n) for which, n in tried]
        return influence.any(axis=0) & np.all(is_same, axis=0)

    def _is_same(self, probes, influence, which, n_copies):
        near, far = influence[which], self._add(probes.iloc[which], n_copies)
        scale = np.linalg.norm(near, axis=0) * CONSTANTS.smooth
        return np.linalg.norm(far - near, axis=0) <= scale

    def _add(self, probes, n_copies):
        """Return the slopes to the values after so many copies of each probe are added."""
        n, found = len(self._rows), []
        together = pd.concat([self._rows, probes], ignore_index=True)
        for i in range(n, len(together)):
            values = self._compute(together.iloc[np.r_[:n, [i] * n_copies]])
            found.append((n + n_copies) / n_copies * (values - self.values))
        return np.array(found)
