# SPDX-License-Identifier: BSD-3-Clause
"""Lower bounds on what local releases cost: each row is noised by itself, and all show the same."""

import math
from itertools import permutations

import numpy as np
from dp_accounting import LaplaceDpEvent

from ..mechanisms.noise import NoiseSource
from .findings import WhiteBox
from .statistics import (
    Lags,
    deviation_above,
    equal_scale,
    normality,
    share_above,
    share_below,
    standardize,
)

# Rows that are noised for each run that is asked for: likelihood ratios take many.
_N_ROWS = 20
# Where likelihood ratios are looked at.
_QUANTILES = (0.5, 0.8, 0.9, 0.95, 0.98, 1.0)
# How many numbers are tested to be normal.
_N_TESTED = 50_000
# Of so many numbers, rows on a grid are never equal by accident.
_N_APART = 4


class _LocalAudit(WhiteBox):
    def _fill_all(self, position):
        everywhere = np.arange(len(self._source._arrays[0]))
        return self._seat.fill(self._source, position, rows=everywhere)


class RowsAudit(_LocalAudit):
    """Of noised rows: μ of Gaussian noise, and by a likelihood ratio ε of Laplace noise."""

    def audit(self):
        taken = [self._fill_all(position) for position in self._seat.candidates]
        rows = [self._run(source, self._seed()) for source in taken]
        exact = np.stack([(run.exact.reshape(len(run.result.values), -1))[0] for run in rows])
        order = self._mechanism.norm_order
        apart = exact[:, None] - exact[None]
        # Of those that are as far apart, those that differ in fewer numbers, which shows more.
        distances = np.linalg.norm(apart, order, axis=2) - 1e-6 * np.count_nonzero(apart, axis=2)
        one, other = np.unravel_index(np.argmax(distances), distances.shape)
        n_rows = len(rows[0].result.values)
        n_runs, std = -(-_N_ROWS * self._n_runs // n_rows), rows[one].measured[0].std
        noise = NoiseSource(self._seed())
        noised = [
            np.concatenate([self._run(taken[i], noise).result.values for _ in range(n_runs)])
            for i in (one, other)
        ]
        residuals = [
            (values - exact[i]) / std for values, i in zip(noised, (one, other), strict=True)
        ]
        lags = Lags(residuals[0].size)
        for residual in residuals:
            lags.add(residual.ravel())
        # Sums of squares of Gaussian noise are χ² variables, and those of sizes of Laplace noise.
        is_laplace = isinstance(self._base, LaplaceDpEvent)
        power, degrees = (1, 2) if is_laplace else (2, 1)
        sums = [(np.abs(residual) ** power).sum(0) for residual in residuals]
        tests = {
            "independence": lags.p_value(),
            "equal scale for both neighbours": equal_scale(sums, [degrees * len(noised[0])] * 2),
        }
        together, faults = np.concatenate(residuals), []
        is_long = together.shape[1] >= _N_APART
        if is_long and len(np.unique(together, axis=0)) < len(together):
            faults.append("rows share their noise")
        apart = exact[one] - exact[other]
        if not is_laplace:
            along = together @ apart / np.linalg.norm(apart)
            tested = [residual.ravel()[:_N_TESTED] for residual in residuals]
            tests["normality"] = normality(
                standardize(*(residual @ apart for residual in residuals)), standardize(*tested)
            )
            bound = np.linalg.norm(apart) / (std * deviation_above(along, self._alpha))
            return self._report(bound, tests, faults, n_runs=len(along))
        # How much likelier a row is under one than under the other, in units of 1 / std.
        gains = [
            (np.abs(values - exact[other]) - np.abs(values - exact[one])).sum(1)
            for values in noised
        ]
        # The threshold is chosen by a tenth of the rows, and bounds are by the others.
        n_tried = len(gains[0]) // 10
        tried, left = zip(*((gain[:n_tried], gain[n_tried:]) for gain in gains), strict=True)
        threshold = max(
            np.quantile(tried[0], _QUANTILES), key=lambda t: _bound_ratio(*tried, t, self._alpha)
        )
        bound = _bound_ratio(*left, threshold, self._alpha)
        return self._report(bound, tests, faults, n_runs=len(gains[0]))


class LabelsAudit(_LocalAudit):
    """Of noised labels: ε, by how often one label comes from itself, and from another."""

    def audit(self):
        noise, sources = NoiseSource(self._seed()), {}
        for position in self._seat.candidates:
            source = self._fill_all(position)
            measured = self._mechanism._measure(source, self._base, self._relation, noise)
            sources.setdefault(int(measured.exact[0]), source)
        n_runs = -(-_N_ROWS * self._n_runs // self._source.n_records)
        answers = {
            label: np.concatenate([self._answer(source, noise) for _ in range(n_runs)])
            for label, source in sources.items()
        }
        n_answers = n_runs * self._source.n_records
        # Each label against each other, of which the most that is shown counts.
        alpha = self._alpha / max(1, len(answers) * (len(answers) - 1))
        shown = [
            _bound_ratio(1.0 * (answers[one] == one), 1.0 * (answers[other] == one), 1.0, alpha)
            for one, other in permutations(answers, 2)
        ]
        return self._report(max(shown, default=0.0), {}, [], n_runs=n_answers)

    def _answer(self, source, noise):
        return self._mechanism.run(source, self._base, relation=self._relation, noise=noise).codes


def _bound_ratio(one, other, threshold, alpha):
    """Return what the log of the ratio of two probabilities is above: to be beyond a threshold."""
    often = share_below(np.sum(one > threshold - 1e-9), len(one), alpha)
    seldom = share_above(np.sum(other > threshold - 1e-9), len(other), alpha)
    return max(0.0, math.log(often / seldom)) if often > 0 else 0.0
