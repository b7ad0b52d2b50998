# SPDX-License-Identifier: BSD-3-Clause
"""Forward aggregates of a random sample: sums of features, and of vector-Jacobian products.

The first layers of a network map each record to features, whose sum is released with noise. Later
layers read the release only: training them is post-processing. The first layers are trained by a
vector-Jacobian product of each record, with a cotangent that is computed *at the release* and so is
public. The products are clipped one by one, summed, and released with noise. Both sums are over the
same sample, and are one event.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from dp_accounting import GaussianDpEvent, NonPrivateDpEvent
from torch import nn

from ..accounting.events import step_std
from ..data.record_functions import PullingFunction, check_function
from ..exceptions import PlanError
from .base import FixedSensitivity, Measurement, check_radius, grid_scale, to_grid
from .sampled import SampledMechanism, bounded_rows, sum_products

# Slots to which the public function is applied at once; it bounds memory.
_CHUNK = 64


@dataclass(frozen=True)
class NoisyAggregate:
    """A release of a sample."""

    # Shape (n_classes, n_features): noisy sums over each class of features of norm at most 1.
    features: np.ndarray
    # Shape (n_classes,): noisy numbers of records.
    counts: np.ndarray
    # Standard deviations of their noise.
    features_std: float
    counts_std: float
    # Shape (n_products,): the noisy sum of clipped vector-Jacobian products.
    products: np.ndarray | None = None
    # Standard deviation of its noise.
    products_std: float | None = None


class ForwardAggregateMechanism(FixedSensitivity, SampledMechanism):
    """Sums of features of a sample, and of products with a cotangent at the noisy sums.

    A record adds ``(√(1-w²)·h, w)`` to the block of its class, where h are its features, clipped to
    norm 1: a vector of norm at most 1. Its product, clipped to norm C, is added to those of all
    others. The noise multiplier s is split between the two sums: ``s/√share`` for the first, and
    ``s/√(1-share)`` for the second. They are measured in units in which both have noise of
    standard deviation s, and in which a record adds at most √share and √(1-share).

    *Why this is one Gaussian event.* Given the first noisy sum, the products are fixed vectors,
    and the cotangent is the same whether a record joined or not. So each record adds a vector of
    norm at most 1 to the two together, of which only the direction depends on the first sum;
    and the noise is isotropic. The user guide has the proposition and its proof.

    Parameters
    ----------
    function : PullingFunction
        ``function(rows, membership)`` maps rows (n, n_columns), and their one-hot classes
        (n, n_classes), to ``(features, pull)``: features (n, n_features), and a function that maps
        cotangents (n, n_features) to vector-Jacobian products (n, n_products). A row without a
        class fills an empty slot, or is null; it contributes nothing.
    n_features, n_classes : int
        Shape of the sums.
    cotangent : callable, default=None
        Maps the `NoisyAggregate` of the features to cotangents, a tensor of shape (n_classes,
        n_features), one for all records of a class. None: products are not released.
    n_products : int, default=0
        Length of the products.
    grad_clip : float, default=1.0
        Their radius C.
    share : float, default=1.0
        Share of the features in the event's s⁻²; the products have the remainder.
    name : str, default="forward aggregate"
        Name of the release.

    References
    ----------
    Lin, Hsu, Yu, Cao & Huang, "DPAF: Image Synthesis via Differentially Private Aggregation in
    Forward Phase", 2023, with other layers and other cotangents.

    Examples
    --------
    >>> from skdpgen.privacy import ForwardAggregateMechanism, PullingFunction
    >>> def scaled(rows, membership):
    ...     return 2 * rows, lambda cotangents: rows * cotangents
    >>> ForwardAggregateMechanism(PullingFunction(scaled), 3).sensitivity("zero_out")
    1.0
    """

    name = "forward aggregate"
    sensitivities: ClassVar = {"zero_out": 1.0, "replace_one": 2.0}
    # w, the weight of the count in the vector of norm 1 of a record; set by hand.
    count_weight = 0.1

    def __init__(
        self,
        function: PullingFunction,
        n_features: int,
        n_classes: int = 1,
        *,
        cotangent: Callable[[NoisyAggregate], torch.Tensor] | None = None,
        n_products: int = 0,
        grad_clip: float = 1.0,
        share: float = 1.0,
        name: str | None = None,
    ) -> None:
        check_function(function, PullingFunction, type(self).__name__)
        check_radius("grad_clip", grad_clip)
        if not 0 < share <= 1 or (share < 1) != (cotangent is not None):
            raise ValueError(
                f"share must be in (0, 1), or 1 if products are not released; got {share!r}."
            )
        self.function = function
        self.n_features = n_features
        self.n_classes = n_classes
        self.cotangent = cotangent
        self.n_products = n_products
        self.grad_clip = grad_clip
        self.share = share
        if name is not None:
            self.name = name

    def _check_base(self, base, sampling):
        if not isinstance(base, (GaussianDpEvent, NonPrivateDpEvent)):
            raise PlanError(f"{self.name!r} has Gaussian noise; it is planned as {base}.")

    def query_batch(self, rows, membership, base, relation, noise):
        if membership.shape[1] != self.n_classes:
            raise PlanError(
                f"{self.name!r} is for {self.n_classes} classes; the rows have "
                f"{membership.shape[1]}."
            )
        std = step_std(base, self.sensitivity(relation), relation)
        scale = grid_scale(std)
        parts = list(zip(rows.split(_CHUNK), membership.split(_CHUNK), strict=True))
        # All slots are mapped, so that a map's time and rounding do not follow from the sample.
        called = [self.function.with_products(*part, width=self.n_features) for part in parts]
        sums = 0
        for (_, one_hot), (features, _) in zip(parts, called, strict=True):
            sums = sums + (one_hot.T @ to_grid(self._join(features), scale)).long()

        def pull_back(noisy):
            aggregate = self._read(noisy, std)
            # The cotangent is a function of the noisy sums only, and therefore public.
            cotangents = torch.as_tensor(self.cotangent(aggregate)).to(membership)
            total, weight = 0, math.sqrt(1 - self.share)
            for (_, one_hot), (_, pulled) in zip(parts, called, strict=True):
                products = pulled(one_hot @ cotangents, self.n_products)
                total = total + sum_products(products, one_hot, self.grad_clip, weight, scale)
            return Measurement(total, scale, std, context=aggregate)

        then = None if self.cotangent is None else pull_back
        return Measurement(sums.cpu().numpy(), scale, std, context=std, then=then)

    def _join(self, features):
        """Join features, clipped to norm 1, with the count of the record: of norm √share in all."""
        weight, w = math.sqrt(self.share), self.count_weight
        features = bounded_rows(features, 1.0, weight * math.sqrt(1 - w**2))
        return nn.functional.pad(features, (0, 1), value=weight * w)

    def _read(self, noisy, std):
        """Return the sums of features and the counts, from the noisy numbers."""
        # Undone after the noise: dividing by public factors is post-processing.
        w, unit = self.count_weight, math.sqrt(self.share)
        row = math.sqrt(1 - w**2)
        return NoisyAggregate(
            features=noisy[:, :-1] / (unit * row),
            counts=noisy[:, -1] / (unit * w),
            features_std=std / (unit * row),
            counts_std=std / (unit * w),
        )

    def postprocess(self, noisy, measured):
        if self.cotangent is None:
            return self._read(noisy, measured.context)
        unit = math.sqrt(1 - self.share) / self.grad_clip
        return replace(measured.context, products=noisy / unit, products_std=measured.std / unit)
