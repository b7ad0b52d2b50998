"""What generators share that learn from a slice sketch or from sliced rows: the releases."""

import math
from dataclasses import replace

import torch
from dp_accounting import PoissonSampledDpEvent, SampledWithoutReplacementDpEvent

from .._validation import check_choice, check_positive, check_size, warn_of_absent
from ..accounting.calibration import calibrate_gaussian
from ..accounting.events import SlicedGaussianDpEvent
from ..accounting.plan import gaussian_plan, repeated_plan
from ..privacy import SlicedRowsMechanism, SliceSketchMechanism, TablesMechanism
from ..privacy.noise import ASSUMED_OF_DIRECTIONS
from ..transport import SliceBasis, random_directions
from ._encoded_generator import EncodedGenerator

__all__ = ["SlicedGenerator"]

# For rows: the range of expected records a step.
_FEWEST_ROWS, _MOST_ROWS = 10, 500
# The range of harmonics of a sketch.
_FEWEST_HARMONICS, _MOST_HARMONICS = 3, 6
# Half-period of the basis, in standard deviations of a projection.
_WIDTH = 3.0
# How many rows a sketch is made of at once.
_BLOCK = 256


class SlicedGenerator(EncodedGenerator):
    """Plans and makes the releases of sliced methods; subclasses fit to them.

    A release is a slice sketch (``release="sketch"``), noisy two-way tables (a sketch of a table),
    or sliced rows, once or at each of several steps. Parameters are those that
    `DPSlicedWassersteinGenerator` documents.
    """

    # The ways of releasing, of which "sketch" is the one that is not of single rows.
    _releases = ("sketch",)
    # By how much principal components are whitened for a sketch.
    _whiten = 0.5

    def _check_params(self):
        super()._check_params()
        check_choice("release", self.release, self._releases)
        check_choice("sampling", self.sampling, ["poisson", "fixed"])
        if self._has_rows() and self.sampling == "fixed" and self.relation != "replace_one":
            raise ValueError("sampling='fixed' is accounted under relation='replace_one' only.")
        if self._has_rows() and self.infer is not None:
            raise ValueError("infer='private' is for release='sketch'; declare all of the schema.")
        for name in ("n_projections", "n_harmonics", "batch_size", "n_steps"):
            check_positive(name, getattr(self, name), whole=True, optional=True)
        if self.n_harmonics is not None and self.n_harmonics > 1000:
            raise ValueError(f"n_harmonics must be at most 1000; got {self.n_harmonics}.")

    def _has_rows(self):
        return self.release != "sketch"

    def _list_assumptions(self, codec, inferred=False, has_objects=False):
        assumed = super()._list_assumptions(codec, inferred, has_objects)
        return (*assumed, ASSUMED_OF_DIRECTIONS) if self._has_rows() else assumed

    # Plans.

    def _plan(self, n_samples, codec, n_classes):
        shares, thresholds = self._first_shares(codec)
        options = {
            "thresholds": thresholds,
            "relation": self.relation,
            "accountant": self.accountant,
        }
        if self._has_rows():
            return self._plan_rows(shares, n_samples, codec.n_columns, n_classes, options)
        rest = 1 - sum(shares.values())
        if self._is_table():
            if not codec.releases:
                check_size("schema", codec.n_columns, codec.n_columns)
                check_size("batch_size", self.batch_size or 1, codec.n_columns)
            name = TablesMechanism.name
        else:
            n_projections = self._n_projections(codec.n_columns)
            n_values = 2 * (self.n_harmonics or _MOST_HARMONICS) * n_projections
            check_size("n_projections", max(n_classes, _BLOCK), n_values)
            check_size("n_projections", codec.n_columns, n_projections)
            check_size("batch_size", self.batch_size or 1, n_values)
            name = SliceSketchMechanism.name
        plan = gaussian_plan({**shares, name: rest}, self.epsilon, self.delta, **options)
        if self._is_table():
            sensitivity = TablesMechanism.sensitivity_of(self.relation)
        else:
            k = self._n_projections(codec.n_columns)
            n_harmonics = self._n_harmonics(plan, k, n_classes, n_samples)
            sensitivity = SliceSketchMechanism.sensitivity_of(
                k, n_harmonics, n_classes, self.relation
            )
        return replace(plan, sigma=plan.multiplier(name) * sensitivity)

    def _plan_rows(self, shares, n_samples, n_columns, n_classes, options):
        mechanism = SlicedRowsMechanism(self._n_encoded(n_columns), n_classes)
        batch_size = self._batch_size(n_samples)
        n_projections = self._n_projections(n_columns, n_classes)
        check_size("n_projections", n_classes, n_projections, batch_size)
        check_size("n_projections", mechanism.n_features, n_projections)

        def step(multiplier):
            event = SlicedGaussianDpEvent(
                multiplier,
                mechanism.n_features,
                n_projections,
                orthogonal=True,
                n_classes=n_classes,
            )
            if batch_size == n_samples:
                return event
            if self.sampling == "fixed":
                return SampledWithoutReplacementDpEvent(n_samples, batch_size, event)
            return PoissonSampledDpEvent(batch_size / n_samples, event)

        return repeated_plan(
            mechanism.name,
            step,
            self._n_private_steps(n_samples),
            self.epsilon,
            self.delta,
            shares=shares,
            sensitivity=mechanism.sensitivity(self.relation),
            **options,
        )

    # Releases.

    def _scaling(self):
        if self._has_rows():
            return {"whiten": 0.5, "unit_ball": True}
        return {"whiten": self._whiten}

    def _release_sketch(self, curator, components, spread, noise):
        """Draw a basis for (encoded) rows of a spread; return it, and the sketch."""
        k = self._n_projections(len(spread))
        directions = random_directions(len(spread), k, generator=noise.torch_generator())
        basis = SliceBasis(
            directions,
            _WIDTH * torch.linalg.vector_norm(directions * spread[:, None], dim=0),
            self._n_harmonics(curator.plan, k, curator.n_classes, curator.n_records),
        ).to(curator.device)
        encode = None if components is None else components.encode_exactly
        sketch = curator.release(SliceSketchMechanism(basis, curator.n_classes, encode))
        n, std = curator.n_records, sketch.counts_std * math.sqrt(curator.n_classes)
        warn_of_absent(sketch.counts.sum() / n, std / n)
        return basis, sketch

    # Defaults.

    @staticmethod
    def _noise_ratio(curator):
        """Return the noise on a sketch value over the largest that it can be."""
        return curator.plan.sigma * curator.n_classes / curator.n_records

    def _n_harmonics(self, plan, n_projections, n_classes, n_records):
        """Return the number of harmonics.

        More of them lower the noise a little, if records are replaced: so the default is by the
        noise that the fewest would have.
        """
        if self.n_harmonics:
            return self.n_harmonics
        sensitivity = SliceSketchMechanism.sensitivity_of(
            n_projections, _FEWEST_HARMONICS, n_classes, self.relation
        )
        noise_ratio = (
            plan.multiplier(SliceSketchMechanism.name) * sensitivity * n_classes / n_records
        )
        if noise_ratio == 0:
            return _MOST_HARMONICS
        wanted = 0.4 / math.sqrt(noise_ratio)
        return round(min(_MOST_HARMONICS, max(_FEWEST_HARMONICS, wanted)))

    def _default_n_components(self):
        return 30 if self._has_rows() else 64

    def _n_projections(self, n_columns, n_classes=1):
        if self.n_projections:
            return self.n_projections
        n_encoded = self._n_encoded(n_columns)
        if self._has_rows():
            return max(4, round(math.sqrt(SlicedRowsMechanism(n_encoded, n_classes).n_features)))
        return min(2000, max(50, 25 * n_encoded))

    def _n_private_steps(self, n_samples):
        return self.n_steps or min(3000, max(30, n_samples // 20))

    def _batch_size(self, n_samples):
        """Return the expected number of records at a private step.

        All steps together are nearly a Gaussian mechanism with μ = q·√(T·(exp(1/s²) - 1)). The
        noise on an average of all rows seen, s / √(T·q), is then least at q = 0.5·μ / √T; by the
        accountant, at that for large ε and at twice that for small ε.
        """
        size = self.batch_size
        if size is None:
            multiplier = calibrate_gaussian(self.epsilon, self.delta, relation=self.relation)
            rate = 0.75 / max(multiplier, 1e-9) / math.sqrt(self._n_private_steps(n_samples))
            size = round(min(_MOST_ROWS, max(_FEWEST_ROWS, rate * n_samples)))
        return min(size, n_samples)
