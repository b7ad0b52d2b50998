# SPDX-License-Identifier: BSD-3-Clause
"""Slice sketches: noisy characteristic functions of random projections."""

import math
from dataclasses import dataclass
from functools import partial

import torch

from ..accounting.plan import Plan, Terms
from ..checks import check_size, whole
from ..data.record_functions import RecordFunction
from ..mechanisms.noise import NoiseSource
from ..mechanisms.sums import Sketch, SliceSketchMechanism
from ..quality import warn_of_absent, warn_of_sketch
from ..transport.directions import random_directions
from ..transport.harmonics import SliceBasis
from .release import Release, within

# Rows of a block of the curator, of which a sketch is computed at once.
_BLOCK = 256


@dataclass(frozen=True)
class SketchDefaults:
    """Constants of `SliceSketch`. Those without a source are set by hand."""

    # Range of the numbers of harmonics.
    harmonics: tuple[int, int] = (3, 6)
    # Slices for each column, and their range, at high noise, where more slices do not help; found
    # on iris, wine, breast cancer and digits.
    slices_per_column: int = 25
    slices: tuple[int, int] = (50, 2000)
    # The number of slices grows with the records of a class over the noise multiplier beyond this.
    detail: float = 250.0
    # The variance of the records themselves dominates below this multiplier.
    least_multiplier: float = 0.25
    # Most times as many slices, and columns for one time: random directions in few columns are
    # close to each other.
    times: float = 16.0
    columns_per_time: float = 4.0
    # Slices of all classes, and entries of all directions, that memory holds.
    class_slices: int = 2**19
    entries: int = 2**25
    # Share of the directions that cover small windows of images in components; found on held-out
    # images.
    local: float = 0.5
    # Half-period of the basis, in standard deviations of a projection.
    width: float = 3.0


DEFAULTS = SketchDefaults()


@dataclass(eq=False, repr=False)
class SliceSketch(Release):
    """The slice sketch: harmonics of projections on public random directions, summed, once.

    For every class, sums of sines and cosines of the rows' projections are released with Gaussian
    noise. They are the empirical characteristic functions of the slices that a sliced Wasserstein
    distance compares. Learners that are fitted to them cost no further privacy.

    For images in principal components, half of the directions cover small windows of the images at
    random positions: projections on these are further from normal, and more informative.

    Parameters
    ----------
    n_projections : int, default=None
        Number of directions k. None: 25 for each column of the rows (after the encoder), within
        [50, 2000], and up to 16 times as many for many columns and little noise.
    n_harmonics : int, default=None
        Harmonics on each slice, at most 1000. None: 3 to 6, more for less noise.

    Examples
    --------
    >>> from skdpgen import DPSWFlowSampler
    >>> DPSWFlowSampler(release="sketch").set_params(release__n_projections=200).release
    SliceSketch(n_projections=200)
    """

    n_projections: int | None = None
    n_harmonics: int | None = None

    _checks = {
        "n_projections": whole(optional=True),
        "n_harmonics": whole(optional=True, most=1000),
    }

    is_sum = True
    name, learner = SliceSketchMechanism.name, "sketch"
    n_components, scaling = 64, {"whiten": 0.5}

    def of(self, format) -> Release:
        """Return two-way tables for data of a table; see `Release.of`."""
        if format.parameters.get("schema") is None:
            return self
        # Imported here: arrays need nothing of tables.
        from .two_way_tables import TwoWayTables

        return TwoWayTables()

    def plan(self, terms: Terms, format) -> Plan:
        """Return the `Plan`; see `Release.plan`."""
        check_size("n_projections", max(terms.n_classes, _BLOCK), self.count_values(terms))
        n_columns = terms.n_columns or 0
        check_size("n_projections", n_columns, self._fewest(n_columns))

        def sensitivity(plan, relation):
            return self.resolved(plan, terms).sensitivity(relation, terms.n_classes)

        return terms.plan_once({self.name: 1.0}, sensitivity)

    def sensitivity(self, relation: str, n_classes: int) -> float:
        """Return the sensitivity of the sketch; see `Release.sensitivity`."""
        # A resolved release has both.
        k, n_harmonics = self.n_projections or 0, self.n_harmonics or 0
        return SliceSketchMechanism.sensitivity_of(k, n_harmonics, n_classes, relation)

    def _count(self, plan, terms):
        k, n_harmonics = self.count(plan, terms.n_columns, terms.n_classes, terms.n_samples)
        return {"n_projections": k, "n_harmonics": n_harmonics}

    def count_values(self, terms: Terms) -> int:
        """Return the number of values of a row on the fewest slices of a sketch."""
        return 2 * (self.n_harmonics or DEFAULTS.harmonics[1]) * self._fewest(terms.n_columns)

    def min_samples(self, plan: Plan, terms: Terms, format) -> int:
        """Return the number of records at which the signal-to-noise ratio of the sketch is 1/4.

        The ratio is that of energies, on enough slices for all columns: fewer slices have less
        noise each, and less information. On iris, wine, breast cancer and digits, and on images of
        up to 3,072 columns, classifiers lose little at this number.
        """
        n_columns = terms.n_columns or 0
        ratio = self.noise_ratio(plan, n_columns, terms.n_classes, terms.n_samples)
        enough = max(DEFAULTS.slices[0], DEFAULTS.slices_per_column * n_columns)
        ratio *= math.sqrt(enough / self._fewest(n_columns))
        return math.ceil(ratio * terms.n_samples)

    def noise_ratio(self, plan: Plan, n_columns: int, n_classes: int, n_records: float) -> float:
        """Return the noise on a value of the fewest slices, over its largest possible value.

        More slices have more noise each, and the same information in total.
        """
        k, _ = self.count(plan, n_columns, n_classes, n_records)
        sigma = (plan.sigma or 0.0) * math.sqrt(self._fewest(n_columns) / k)
        return sigma * n_classes / n_records

    def run(
        self, curator, format, components, std: torch.Tensor, noise: NoiseSource
    ) -> tuple[SliceBasis, Sketch]:
        """Draw a basis for rows that are encoded by `components`, or None, and release the sketch.

        `std` are approximate standard deviations of encoded rows, and `noise` draws directions.
        """
        k, n_harmonics = self.count(curator.plan, len(std), curator.n_classes, curator.n_records)
        directions = _draw_directions(format, components, len(std), k, noise.torch_generator())
        widths = DEFAULTS.width * torch.linalg.vector_norm(directions * std[:, None], dim=0)
        basis = SliceBasis(directions, widths, n_harmonics).to(curator.device)
        encode = None if components is None else RecordFunction(components.encode_exactly)
        sketch = curator.release(SliceSketchMechanism(basis, curator.n_classes, encode))
        n, counts_std = curator.n_rows, sketch.counts_std * math.sqrt(curator.n_classes)
        if warn_of_absent(sketch.counts.sum() / n, counts_std / n) != "all":
            # Imported here: tables have no units.
            from ..arrays.units import warn_of_sketch_units

            warn_of_sketch(sketch.sums, sketch.sums_std, sketch.counts, sketch.counts_std)
            warn_of_sketch_units(format, components, basis, sketch, n)
        return basis, sketch

    def count(
        self, plan: Plan, n_columns: int, n_classes: int, n_records: float
    ) -> tuple[int, int]:
        """Return the numbers of slices and of harmonics, from public numbers only.

        The default number of slices is in proportion to the records of an average class over the
        noise multiplier, within a range.
        """
        k = self._fewest(n_columns)
        if self.n_projections is None:
            held = min(DEFAULTS.class_slices // n_classes, DEFAULTS.entries // n_columns)
            times = min(DEFAULTS.times, n_columns / DEFAULTS.columns_per_time)
            most = max(k, min(round(times * k), held))
            multiplier = plan.multiplier(self.name) * (plan.max_rows or 1)
            multiplier = max(DEFAULTS.least_multiplier, multiplier)
            detail = n_records / (n_classes * multiplier)
            k = within(round(k * detail / DEFAULTS.detail), (k, most))
        return k, self._count_harmonics(plan, k, n_classes, n_records)

    def _fewest(self, n_columns):
        slices = within(DEFAULTS.slices_per_column * n_columns, DEFAULTS.slices)
        return self.n_projections or slices

    def _count_harmonics(self, plan, k, n_classes, n_records):
        """Return the number of harmonics.

        More harmonics lower the noise slightly if records are replaced, so that the default depends
        on the noise at the fewest.
        """
        if self.n_harmonics:
            return self.n_harmonics
        fewest, most = DEFAULTS.harmonics
        sensitivity = plan.bound(partial(SliceSketchMechanism.sensitivity_of, k, fewest, n_classes))
        noise_ratio = plan.multiplier(self.name) * sensitivity * n_classes / n_records
        if noise_ratio == 0:
            return most
        return round(within(0.4 / math.sqrt(noise_ratio), DEFAULTS.harmonics))


def _draw_directions(format, components, n_columns, k, generator):
    """Draw k public unit directions; for images in components, some cover small windows."""
    local = torch.zeros(n_columns, 0)
    if components is not None:
        windows = format.draw_windows(round(DEFAULTS.local * k), generator)
        local = components.find_directions(windows).float()
    others = random_directions(n_columns, k - local.shape[1], generator=generator)
    return torch.cat([local, others], dim=1)
