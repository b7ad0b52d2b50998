# SPDX-License-Identifier: BSD-3-Clause
"""A release made once: the slice sketch."""

import math
from functools import partial

import torch

from ..checks import check_size, whole
from ..curator.record_functions import RecordFunction
from ..mechanisms.sums import SliceSketchMechanism
from ..params import parameters
from ..quality import warn_of_absent, warn_of_sketch
from ..transport import SliceBasis, random_directions
from .release import Release
from .tables import TwoWayTables

# The range of harmonics of a sketch, and how many rows a sketch is made of at once.
_FEWEST_HARMONICS, _MOST_HARMONICS = 3, 6
_BLOCK = 256
# Slices for each column, and their range, where noise hides all that more of them would show.
_EACH, _FEWEST, _MOST = 25, 50, 2000
# They grow with the records of a class over the noise multiplier from here on. Records vary by
# themselves: below some multiplier it does not matter.
_DETAIL, _LEAST_MULTIPLIER = 250, 0.25
# They are at most so many times as many, and once for so many columns: directions in few of them
# are close to each other.
_MOST_TIMES, _COLUMNS_A_TIME = 16, 4
# What memory then has to hold: slices of all classes, and numbers of all directions.
_MOST_OF_CLASSES, _MOST_OF_COLUMNS = 2**19, 2**25
# Share of the directions that see small windows of images only, where there are components; found
# on held-out images.
_LOCAL = 0.5
# Half-period of the basis of a sketch, in standard deviations of a projection.
_WIDTH = 3.0


@parameters
class SliceSketch(Release):
    """The slice sketch: harmonics of projections on public random directions, summed, once.

    For every class, sums of sines and cosines of the rows' projections are released with Gaussian
    noise. They are the empirical characteristic functions of the slices that a sliced Wasserstein
    distance compares. Whatever is fitted to them, however long, costs no further privacy.

    Of images in principal components, half of the directions see small windows of the images, at
    random places: projections on these are further from normal, and say more.

    Parameters
    ----------
    n_projections : int, default=None
        Number of directions k. None: 25 for each column of the rows (after the encoder), within
        [50, 2000], and up to 16 times as many where there are many columns and little noise.
    n_harmonics : int, default=None
        Harmonics on each slice, at most 1000. None: 3 to 6, more where there is less noise.

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
    name = SliceSketchMechanism.name
    # Components that a `PrivatePCA` keeps by default, and how they are scaled.
    n_components, scaling = 64, {"whiten": 0.5}

    def of(self, format):
        return TwoWayTables() if format.has_blocks else self

    def plan(self, terms, format):
        """Return the `Plan`, from public numbers only."""
        n_values = self.count_values(terms)
        check_size("n_projections", max(terms.n_classes, _BLOCK), n_values)
        check_size("n_projections", terms.n_columns, self._fewest(terms.n_columns))

        def sensitivity(plan, relation):
            return self.resolved(plan, terms).sensitivity(relation, terms.n_classes)

        return terms.plan_once({self.name: 1.0}, sensitivity)

    def sensitivity(self, relation, n_classes):
        return SliceSketchMechanism.sensitivity_of(
            self.n_projections, self.n_harmonics, n_classes, relation
        )

    def _count(self, plan, terms):
        k, n_harmonics = self.count(plan, terms.n_columns, terms.n_classes, terms.n_samples)
        return {"n_projections": k, "n_harmonics": n_harmonics}

    def count_values(self, terms):
        """Return the number of values of a row on the fewest slices of a sketch."""
        return 2 * (self.n_harmonics or _MOST_HARMONICS) * self._fewest(terms.n_columns)

    def min_samples(self, plan, terms, format):
        """Return at how many records the energy of the sketch is a fourth of that of its noise.

        That is of as many slices as tell about all columns, whether there are so many or not: fewer
        have less noise each, and tell less. Found on iris, wine, breast cancer and digits, where
        classifiers then lose little, and on images of up to 3,072 columns.
        """
        ratio = self.noise_ratio(plan, terms.n_columns, terms.n_classes, terms.n_samples)
        enough = max(_FEWEST, _EACH * terms.n_columns)
        ratio *= math.sqrt(enough / self._fewest(terms.n_columns))
        return math.ceil(ratio * terms.n_samples)

    def noise_ratio(self, plan, n_columns, n_classes, n_records):
        """Return the noise on a value of the fewest slices, over the largest that it can be.

        More of them have more noise each, and tell as much.
        """
        k, _ = self.count(plan, n_columns, n_classes, n_records)
        sigma = plan.sigma * math.sqrt(self._fewest(n_columns) / k)
        return sigma * n_classes / n_records

    def run(self, curator, format, components, spread, noise):
        """Draw a basis for (encoded) rows of a spread, and release the sketch in it.

        Parameters
        ----------
        curator : Curator
        format : Format
            Of the rows.
        components : PrincipalComponents or None
            What they are encoded by.
        spread : tensor of shape (n_encoded,)
            Standard deviations of encoded rows, about.
        noise : NoiseSource
            Where directions come from.

        Returns
        -------
        basis : SliceBasis
        sketch : skdpgen.mechanisms.sums.Sketch
        """
        k, n_harmonics = self.count(curator.plan, len(spread), curator.n_classes, curator.n_records)
        generator = noise.torch_generator()
        directions = _draw_directions(format, components, len(spread), k, generator)
        basis = SliceBasis(
            directions,
            _WIDTH * torch.linalg.vector_norm(directions * spread[:, None], dim=0),
            n_harmonics,
        ).to(curator.device)
        encode = None if components is None else RecordFunction(components.encode_exactly)
        sketch = curator.release(SliceSketchMechanism(basis, curator.n_classes, encode))
        n, std = curator.n_rows, sketch.counts_std * math.sqrt(curator.n_classes)
        warn_of_absent(sketch.counts.sum() / n, std / n)
        warn_of_sketch(sketch.sums, sketch.sums_std, sketch.counts, sketch.counts_std)
        return basis, sketch

    def count(self, plan, n_columns, n_classes, n_records):
        """Return the numbers of slices and of harmonics, from public numbers only.

        By default there are as many slices as show what is above the noise: in proportion to the
        records of an average class over the noise multiplier, within a range.
        """
        k = self._fewest(n_columns)
        if self.n_projections is None:
            held = min(_MOST_OF_CLASSES // n_classes, _MOST_OF_COLUMNS // n_columns)
            times = min(_MOST_TIMES, n_columns / _COLUMNS_A_TIME)
            most = max(k, min(round(times * k), held))
            multiplier = plan.multiplier(self.name) * (plan.max_rows or 1)
            multiplier = max(_LEAST_MULTIPLIER, multiplier)
            detail = n_records / (n_classes * multiplier)
            k = min(most, max(k, round(k * detail / _DETAIL)))
        return k, self._count_harmonics(plan, k, n_classes, n_records)

    def _fewest(self, n_columns):
        return self.n_projections or min(_MOST, max(_FEWEST, _EACH * n_columns))

    def _count_harmonics(self, plan, k, n_classes, n_records):
        """Return the number of harmonics.

        More of them lower the noise a little, if records are replaced: so the default is by the
        noise that the fewest would have.
        """
        if self.n_harmonics:
            return self.n_harmonics
        sensitivity = plan.bound(
            partial(SliceSketchMechanism.sensitivity_of, k, _FEWEST_HARMONICS, n_classes)
        )
        noise_ratio = plan.multiplier(self.name) * sensitivity * n_classes / n_records
        if noise_ratio == 0:
            return _MOST_HARMONICS
        wanted = 0.4 / math.sqrt(noise_ratio)
        return round(min(_MOST_HARMONICS, max(_FEWEST_HARMONICS, wanted)))


def _draw_directions(format, components, n_columns, k, generator):
    """Draw k public unit directions; of images in components, some are local."""
    local = torch.zeros(n_columns, 0)
    if components is not None:
        windows = format.draw_windows(round(_LOCAL * k), generator)
        local = components.find_directions(windows).float()
    others = random_directions(n_columns, k - local.shape[1], generator=generator)
    return torch.cat([local, others], dim=1)
