# SPDX-License-Identifier: BSD-3-Clause
"""The release of the DP-SWD and DPSWflow papers: projected rows, at each step or once."""

import math

from dp_accounting import PoissonSampledDpEvent, SampledWithoutReplacementDpEvent

from ..accounting.calibration import calibrate_gaussian
from ..accounting.events import SlicedGaussianDpEvent
from ..checks import check_size, one_of, whole
from ..mechanisms.noise import ASSUMED_OF_DIRECTIONS
from ..mechanisms.sampled import SlicedRowsMechanism
from ..params import parameters
from .release import Release

# For sliced rows: the range of expected records a step. For those that are released once: records
# that are projected, at most, and how many times as many directions as at one of many steps.
_FEWEST_ROWS, _MOST_ROWS = 10, 500
_MOST_ROWS_AT_ONCE, DIRECTIONS_AT_ONCE = 2000, 8


@parameters
class SlicedRows(Release):
    """Noisy projections of random batches of rows on random directions, at each step.

    This is what the DP-SWD and DPSWflow papers release. Given the directions, which are fresh at
    each step, a record changes one row of projections, so that ε is an average over the law of the
    norm of that change. It takes far more noise for the same ε than a `SliceSketch`.

    Parameters
    ----------
    n_projections : int, default=None
        Number of directions k. None: the root of the number of columns (after the encoder, with
        the one-hot class beside them), but at least 4; 8 times as many for one step.
    batch_size : int, default=None
        Expected records a step (q is capped at 1). None: 0.75·n_samples·μ / √n_steps within
        [10, 500], where μ is 1 over the noise multiplier of a Gaussian mechanism at (ε, δ), since
        the noise on an average over all steps is about least there; for one step, 2000.
    n_steps : int, default=None
        Private steps. None: n_samples / 20 within [30, 3000]. 1: rows are released once.
    sampling : {"poisson", "fixed"}, default="poisson"
        How batches are sampled: by independent coins, or a fixed number without replacement, which
        is accounted under ``relation="replace_one"`` only.

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

    name = SlicedRowsMechanism.name
    assumptions = (ASSUMED_OF_DIRECTIONS,)
    needs_columns = True
    n_components, scaling = 30, {"whiten": 0.5, "unit_ball": True}

    def plan(self, terms, format):
        """Return the `Plan`, from public numbers only."""
        if terms.n_columns is None:
            raise ValueError(
                "Sliced rows need a schema that leaves nothing open: what they cost follows from "
                "its columns."
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
                multiplier,
                mechanism.n_features,
                k,
                orthogonal=True,
                n_classes=terms.n_classes,
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

    def sensitivity(self, relation, n_classes):
        return SlicedRowsMechanism.sensitivity_of(relation)

    def _count(self, plan, terms):
        n_features = SlicedRowsMechanism(terms.n_columns, terms.n_classes).n_features
        return {
            "n_projections": self.count_projections(n_features),
            "batch_size": self.count_rows(terms, terms.n_samples),
            "n_steps": self.count_steps(terms.n_samples),
        }

    def count_steps(self, n_samples):
        """Return the number of releases."""
        return self.n_steps or min(3000, max(30, n_samples // 20))

    def count_projections(self, n_features):
        """Return the number of directions, for rows with the one-hot class beside them."""
        if self.n_projections:
            return self.n_projections
        k = max(4, round(math.sqrt(n_features)))
        return k * (DIRECTIONS_AT_ONCE if self.n_steps == 1 else 1)

    def count_rows(self, budget, n_samples):
        """Return the expected number of records at a step.

        All steps together are nearly a Gaussian mechanism with μ = q·√(T·(exp(1/s²) - 1)). The
        noise on an average of all rows seen, s / √(T·q), is then least at q = 0.5·μ / √T; by the
        accountant, at that for large ε and at twice that for small ε.
        """
        size = self.batch_size
        if size is None and self.n_steps == 1:
            size = _MOST_ROWS_AT_ONCE
        elif size is None:
            multiplier = calibrate_gaussian(budget.epsilon, budget.delta, relation=budget.relation)
            rate = 0.75 / max(multiplier, 1e-9) / math.sqrt(self.count_steps(n_samples))
            size = round(min(_MOST_ROWS, max(_FEWEST_ROWS, rate * n_samples)))
        return min(size, n_samples)
