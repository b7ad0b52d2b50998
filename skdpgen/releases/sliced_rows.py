# SPDX-License-Identifier: BSD-3-Clause
"""Noisy projections of rows, at each step or once, as in the DP-SWD and DPSWflow papers."""

import bisect
import math
from dataclasses import dataclass
from typing import Any

from dp_accounting import PoissonSampledDpEvent, SampledWithoutReplacementDpEvent

from ..accounting.calibration import calibrate_gaussian
from ..accounting.events import SlicedGaussianDpEvent
from ..accounting.plan import Plan, Terms
from ..arrays.units import SlicedMeans
from ..checks import check_size, one_of, whole
from ..data.record_functions import RecordFunction
from ..mechanisms.noise import ASSUMED_OF_DIRECTIONS
from ..mechanisms.sampled import ProjectedRows, SlicedRowsMechanism
from .release import Release, within


@dataclass(frozen=True)
class SlicedRowsDefaults:
    """Constants of the default numbers of `SlicedRows`. Those without a source are set by hand."""

    # Range of the expected records of a step, and the most records of a single release.
    rows: tuple[int, int] = (10, 500)
    rows_at_once: int = 2000
    # Least number of directions, and factor of the directions of a single release.
    min_directions: int = 4
    directions_at_once: int = 8
    # Records for one step, and the range of steps.
    records_per_step: int = 20
    steps: tuple[int, int] = (30, 3000)
    # q·√T/μ: the noise is least at 0.5 for large ε and at 1 for small ε; see `count_rows`.
    rate: float = 0.75
    # Least signal-to-noise ratios for useful results, and that of a single release, whose slices
    # are used again and again; found on digits, USPS, MNIST and tables (`run_rows_needed.py`).
    least_signal: float = 8.0
    least_at_once: float = 4.5


DEFAULTS = SlicedRowsDefaults()


@dataclass(eq=False, repr=False)
class SlicedRows(Release):
    """Noisy projections of random batches of rows on random directions, at each step.

    This is the release of the DP-SWD and DPSWflow papers. Given the directions, which are fresh at
    each step, a record changes one row of projections, so that ε is an average over the
    distribution of the norm of that change. It needs far more noise for the same ε than a
    `SliceSketch`.

    Parameters
    ----------
    n_projections : int, default=None
        Number of directions k. None: the square root of the number of columns (after the encoder,
        with the one-hot class), but at least 4; 8 times as many for one step.
    batch_size : int, default=None
        Expected records a step (q is capped at 1). None: 0.75·n_samples·μ / √n_steps within
        [10, 500], where μ is 1 over the noise multiplier of a Gaussian mechanism at (ε, δ), which
        nearly minimises the noise on an average over all steps; for one step, 2000.
    n_steps : int, default=None
        Private steps. None: n_samples / 20 within [30, 3000]. 1: rows are released once.
    sampling : {"poisson", "fixed"}, default="poisson"
        Sampling of batches: by independent coins, or a fixed number without replacement, which is
        accounted under ``relation="replace_one"`` only.

    Examples
    --------
    >>> from skdpgen import DPSWFlowSampler
    >>> DPSWFlowSampler(release="resample").set_params(release__n_steps=500).release
    SlicedRows(n_steps=500)
    """

    n_projections: int | None = None
    batch_size: int | None = None
    n_steps: int | None = None
    sampling: str = "poisson"

    _checks = {
        "n_projections": whole(optional=True),
        "batch_size": whole(optional=True),
        "n_steps": whole(optional=True),
        "sampling": one_of("poisson", "fixed"),
    }

    name, learner = SlicedRowsMechanism.name, "rows"
    assumptions = (ASSUMED_OF_DIRECTIONS,)
    needs_columns = True
    n_components, scaling = 30, {"whiten": 0.5, "unit_ball": True}

    def plan(self, terms: Terms, format) -> Plan:
        """Return the `Plan`; see `Release.plan`."""
        if terms.n_columns is None:
            raise ValueError(
                "Sliced rows need a schema without undeclared bounds or levels, since their cost "
                "depends on its columns. Declare them, or use release='sketch'."
            )
        if self.sampling == "fixed" and terms.relation != "replace_one":
            raise ValueError("sampling='fixed' is accounted under relation='replace_one' only.")
        mechanism = SlicedRowsMechanism(terms.n_columns, terms.n_classes)
        batch_size = self.count_rows(terms, terms.n_samples)
        k = self.count_projections(mechanism.n_features)
        check_size("n_projections", terms.n_classes, k, batch_size)
        check_size("n_projections", mechanism.n_features, k)

        def step(multiplier):
            event = SlicedGaussianDpEvent(
                multiplier, mechanism.n_features, k, orthogonal=True, n_classes=terms.n_classes
            )
            if batch_size == terms.n_samples:
                return event
            if self.sampling == "fixed":
                return SampledWithoutReplacementDpEvent(terms.n_samples, batch_size, event)
            return PoissonSampledDpEvent(batch_size / terms.n_samples, event)

        return terms.plan_steps(
            self.name,
            step,
            self.count_steps(terms.n_samples),
            sensitivity=self.sensitivity(terms.relation, terms.n_classes),
        )

    def sensitivity(self, relation: str, n_classes: int) -> float:
        """Return the bound on the change of a row; see `Release.sensitivity`."""
        return SlicedRowsMechanism.sensitivity_of(relation)

    def _count(self, plan, terms):
        n_features = SlicedRowsMechanism(terms.n_columns, terms.n_classes).n_features
        return {
            "n_projections": self.count_projections(n_features),
            "batch_size": self.count_rows(terms, terms.n_samples),
            "n_steps": self.count_steps(terms.n_samples),
        }

    def min_samples(self, plan: Plan, terms: Terms, format, times: float = 1.0) -> int | None:
        """Return the number of records at which the rows of an average class exceed the noise.

        T releases of k projections of B records with noise σ in d columns and c classes have a
        signal-to-noise ratio of √(T·B·k/c) / (σ·d), and σ is nearly in proportion to
        1/√log(1 + μ² / (q²·T)); see `count_rows`. A learner may need `times` the least ratio.
        """
        if not plan.sigma or terms.n_columns is None:
            return None
        d = SlicedRowsMechanism(terms.n_columns, terms.n_classes).n_features
        mu = 1 / calibrate_gaussian(plan.epsilon, plan.delta)

        def precision(n):
            n_steps, n_rows = self.count_steps(n), self.count_rows(plan, n)
            return n_steps * n_rows * math.log1p((mu * n / n_rows) ** 2 / n_steps)

        n = terms.n_samples
        numbers = self.count_steps(n) * self.count_rows(plan, n) * self.count_projections(d)
        signal = math.sqrt(numbers / terms.n_classes) / (plan.sigma * d)
        least = DEFAULTS.least_at_once if self.n_steps == 1 else DEFAULTS.least_signal * times
        enough = precision(n) * (least / signal) ** 2
        return 1 + bisect.bisect_left(range(1, 10**9), enough, key=precision)

    def run(self, curator, format, n_columns: int, components=None) -> "SlicedReleases":
        """Return the releases of rows of so many columns, after an encoder by `components`."""
        encode = None if components is None else RecordFunction(components.encode)
        mechanism = SlicedRowsMechanism(n_columns, curator.n_classes, encode)
        batch_size = self.count_rows(curator.plan, curator.n_records)
        means = SlicedMeans(format, mechanism, components, batch_size, curator.n_records)
        n_steps = self.count_steps(curator.n_records)
        return SlicedReleases(curator, mechanism, means, batch_size, n_steps)

    def count_steps(self, n_samples: int) -> int:
        """Return the number of releases."""
        return self.n_steps or within(n_samples // DEFAULTS.records_per_step, DEFAULTS.steps)

    def count_projections(self, n_features: int) -> int:
        """Return the number of directions, for rows joined with the one-hot class."""
        if self.n_projections:
            return self.n_projections
        k = max(DEFAULTS.min_directions, round(math.sqrt(n_features)))
        # A single release has the whole budget, and so less noise for each direction.
        return k * (DEFAULTS.directions_at_once if self.n_steps == 1 else 1)

    def count_rows(self, budget: Terms | Plan, n_samples: int) -> int:
        """Return the expected number of records at a step.

        All steps together are nearly a Gaussian mechanism with μ = q·√(T·(exp(1/s²) - 1)). The
        noise on an average of all rows seen, s / √(T·q), is then least at q = 0.5·μ / √T; by the
        accountant, at that for large ε and at twice that for small ε.
        """
        size = self.batch_size
        if size is None and self.n_steps == 1:
            size = DEFAULTS.rows_at_once
        elif size is None:
            # Over the sensitivity, under either relation.
            multiplier = calibrate_gaussian(budget.epsilon, budget.delta)
            # The clamp is for ε = inf, whose multiplier is 0.
            rate = DEFAULTS.rate / max(multiplier, 1e-9) / math.sqrt(self.count_steps(n_samples))
            size = round(within(rate * n_samples, DEFAULTS.rows))
        return min(size, n_samples)


@dataclass(frozen=True)
class SlicedReleases:
    """Releases of sliced rows, each of which is made, and paid for, when it is asked for.

    `means` are those of columns, for warnings; `batch_size` is the expected records of a release.
    """

    curator: Any
    mechanism: SlicedRowsMechanism
    means: SlicedMeans
    batch_size: int
    n_steps: int

    @property
    def n_features(self) -> int:
        """Columns of a row, joined with the one-hot class."""
        return self.mechanism.n_features

    def make(self) -> ProjectedRows:
        """Make the next release."""
        return self.means.add(self.curator.release(self.mechanism))
