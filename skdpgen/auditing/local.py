# SPDX-License-Identifier: BSD-3-Clause
"""Lower bounds on the privacy loss of local releases.

Each row has noise of its own, so that a single run of a data set of equal rows gives as many
independent outcomes as there are rows.
"""

import math
from functools import partial
from itertools import permutations

import numpy as np
from dp_accounting import LaplaceDpEvent

from ..mechanisms.noise import NoiseSource
from .mechanism_audit import N_TESTED, MechanismAudit, ReleaseAudit
from .statistics import (
    Autocorrelation,
    equal_scale_p_value,
    normality_p_value,
    rate_lower_bound,
    rate_upper_bound,
    standardize,
    std_upper_bound,
)

# Noisy rows for each run: bounds on likelihood ratios need more outcomes than those on scales.
_ROWS_PER_RUN = 20
# Candidate thresholds of the likelihood ratio, as quantiles of the outcomes.
_QUANTILES = (0.5, 0.8, 0.9, 0.95, 0.98, 1.0)
# Rows of fewer numbers on a grid may be equal by chance.
_LEAST_WIDTH = 4


class _LocalAudit(MechanismAudit):
    def _repeat_row(self, position: int):
        """Return a copy of the source in which every row is the same."""
        everywhere = np.arange(len(self._source._arrays[0]))
        return self._canary.insert(self._source, position, rows=everywhere)


class RowsAudit(_LocalAudit):
    """Audit of noisy rows: μ of Gaussian noise; ε of Laplace noise by a likelihood ratio."""

    def audit(self) -> ReleaseAudit:
        sources = [self._repeat_row(position) for position in self._canary.candidates]
        runs = [self._run(source, self._seed()) for source in sources]
        exact = np.stack([(run.exact.reshape(len(run.result.values), -1))[0] for run in runs])
        pair = self._find_distant(exact)
        n_rows, std = len(runs[0].result.values), runs[pair[0]].measured[0].std
        n_runs, noise = -(-_ROWS_PER_RUN * self._n_runs // n_rows), NoiseSource(self._seed())
        noisy = [
            np.concatenate([self._run(sources[i], noise).result.values for _ in range(n_runs)])
            for i in pair
        ]
        residuals = [(values - exact[i]) / std for values, i in zip(noisy, pair, strict=True)]
        tests = self._test_noise(residuals)
        faults, pooled = [], np.concatenate(residuals)
        if pooled.shape[1] >= _LEAST_WIDTH and len(np.unique(pooled, axis=0)) < len(pooled):
            faults.append("rows share their noise")
        if isinstance(self._base, LaplaceDpEvent):
            bound, n_used = self._bound_epsilon(noisy, *(exact[i] for i in pair))
            return self._report(bound, tests, faults, n_runs=n_used)
        apart = exact[pair[0]] - exact[pair[1]]
        along = pooled @ apart / np.linalg.norm(apart)
        tested = [residual.ravel()[:N_TESTED] for residual in residuals]
        tests["normality"] = normality_p_value(
            standardize(*(residual @ apart for residual in residuals)), standardize(*tested)
        )
        bound = np.linalg.norm(apart) / (std * std_upper_bound(along, self._alpha))
        return self._report(bound, tests, faults, n_runs=len(along))

    def _find_distant(self, exact: np.ndarray) -> tuple[int, int]:
        """Return the most distant pair of rows, in the norm of the mechanism."""
        apart = exact[:, None] - exact[None]
        # Among equal distances, prefer few different numbers: their loss is easier to bound.
        distances = np.linalg.norm(apart, self._mechanism.norm_order, axis=2)
        distances -= 1e-6 * np.count_nonzero(apart, axis=2)
        one, other = np.unravel_index(np.argmax(distances), distances.shape)
        return int(one), int(other)

    def _test_noise(self, residuals: list[np.ndarray]) -> dict[str, float]:
        lags = Autocorrelation(residuals[0].size)
        for residual in residuals:
            lags.add(residual.ravel())
        # Sums of squares of Gaussian noise are χ² variables, as are sums of |x| of Laplace noise.
        power, degrees = (1, 2) if isinstance(self._base, LaplaceDpEvent) else (2, 1)
        sums = [(np.abs(residual) ** power).sum(0) for residual in residuals]
        return {
            "independence": lags.p_value(),
            "equal scale for both neighbours": equal_scale_p_value(
                sums, [degrees * len(residual) for residual in residuals]
            ),
        }

    def _bound_epsilon(
        self, noisy: list[np.ndarray], one: np.ndarray, other: np.ndarray
    ) -> tuple[float, int]:
        """Return a bound on ε of Laplace noise, and the number of outcomes of each row."""
        # Log-likelihood ratios of both rows, in units of 1 / std.
        ratios = [(np.abs(values - other) - np.abs(values - one)).sum(1) for values in noisy]
        # A tenth of the outcomes determines the threshold, the others the bound.
        n_pilot = len(ratios[0]) // 10
        threshold = max(
            np.quantile(ratios[0][:n_pilot], _QUANTILES),
            key=lambda t: _bound_log_ratio([r[:n_pilot] for r in ratios], t, self._alpha),
        )
        bound = _bound_log_ratio([r[n_pilot:] for r in ratios], threshold, self._alpha)
        return bound, len(ratios[0])


class LabelsAudit(_LocalAudit):
    """Audit of randomized response: ε by the rates of a label under itself and another one."""

    def audit(self) -> ReleaseAudit:
        noise = NoiseSource(self._seed())
        sources: dict[int, object] = {}
        for position in self._canary.candidates:
            source = self._repeat_row(position)
            measured = self._mechanism.query(source, self._base, self._relation, noise)
            sources.setdefault(int(measured.exact[0]), source)
        n_runs = -(-_ROWS_PER_RUN * self._n_runs // self._source.n_records)
        run = partial(self._mechanism.run, event=self._base, relation=self._relation, noise=noise)
        answers = {
            label: np.concatenate([run(source).codes for _ in range(n_runs)])
            for label, source in sources.items()
        }
        # Bonferroni over all ordered pairs of labels.
        alpha = self._alpha / max(1, len(answers) * (len(answers) - 1))
        bounds = [
            _bound_log_ratio([1.0 * (answers[label] == one) for label in (one, other)], 1.0, alpha)
            for one, other in permutations(answers, 2)
        ]
        n_answers = n_runs * self._source.n_records
        return self._report(max(bounds, default=0.0), {}, n_runs=n_answers)


def _bound_log_ratio(values: list[np.ndarray], threshold: float, alpha: float) -> float:
    """Return a lower bound on the log ratio of two probabilities to reach a threshold."""
    # Less the rounding of values that are on the threshold.
    threshold = threshold - 1e-9
    (n_one, n_other) = (int(np.sum(part > threshold)) for part in values)
    often = rate_lower_bound(n_one, len(values[0]), alpha)
    seldom = rate_upper_bound(n_other, len(values[1]), alpha)
    return max(0.0, math.log(often / seldom)) if often > 0 else 0.0
