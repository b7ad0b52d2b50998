# SPDX-License-Identifier: BSD-3-Clause
"""What can be released of a random sample: features, added up, and what their use pulls back.

Layers of a network turn each record into features. These are added up, and released with noise.
Layers after the sum see the release only: training them is post-processing. Layers before it are
trained by each record's part of a gradient, a vector-Jacobian product with a cotangent that was
found *at the release* and so is public. The products are clipped one by one, added up, and
released with noise. Both sums are over the same sample, and are one event.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from dp_accounting import GaussianDpEvent, NonPrivateDpEvent
from torch import nn

from ..curator.record_functions import PullingFunction, check_function
from ..exceptions import PlanError
from .base import Measurement, check_radius, grid_scale, to_grid
from .sampled import SampledMechanism, bounded_rows

# The public function is applied to so many slots at a time.
_CHUNK = 64


@dataclass(frozen=True)
class NoisyAggregate:
    """What was released of a sample.

    Attributes
    ----------
    features : ndarray of shape (n_classes, n_features)
        Noisy sums over each class of features of norm at most 1.
    counts : ndarray of shape (n_classes,)
        Noisy numbers of records.
    features_std, counts_std : float
        Standard deviations of their noise.
    products : ndarray of shape (n_products,) or None
        The noisy sum of clipped vector-Jacobian products.
    products_std : float or None
        Standard deviation of its noise.
    """

    features: np.ndarray
    counts: np.ndarray
    features_std: float
    counts_std: float
    products: np.ndarray | None = None
    products_std: float | None = None


class ForwardAggregateMechanism(SampledMechanism):
    """Sums of features of a sample, and of products with a cotangent at the noisy sums.

    A record adds ``(√(1-w²)·h, w)`` to the block of its class, where h are its features, clipped to
    norm 1: a vector of norm at most 1. Its product, clipped to norm C, is added to those of all
    others. Noise of multiplier s is split between the two sums: ``s/√share`` for the first, and
    ``s/√(1-share)`` for the second. They are measured in units in which both have noise of
    standard deviation s, and in which a record adds √share and √(1-share) at most.

    *Why this is one Gaussian event.* Given the first noisy sum, the products are fixed vectors,
    and the cotangent is the same whether a record joined or not. So each record adds a vector of
    norm at most 1 to the two together, of which only the direction follows from the first sum;
    and noise looks the same in all directions. The proposition of the user guide says it in full.

    Parameters
    ----------
    function : PullingFunction
        Of ``function(rows, membership)``, which maps rows (n, n_columns), and their one-hot classes
        (n, n_classes), to ``(features, pull)``: features (n, n_features), and a function that maps
        cotangents (n, n_features) to vector-Jacobian products (n, n_products). A row without a
        class is in an empty slot, or null; it counts for nothing.
    n_features, n_classes : int
        Shape of the sums.
    cotangent : callable, default=None
        Maps the `NoisyAggregate` of the features to cotangents, a tensor of shape (n_classes,
        n_features), one for all records of a class. It sees what is released only. None: no
        products are asked for.
    n_products : int, default=0
        Length of the products.
    grad_clip : float, default=1.0
        Their radius C.
    share : float, default=1.0
        Share of the features in the event's s⁻²; the products have the others.
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
    # What a record adds for its count, of the norm 1 that it adds in all.
    count_weight = 0.1

    def __init__(
        self,
        function,
        n_features,
        n_classes=1,
        *,
        cotangent=None,
        n_products=0,
        grad_clip=1.0,
        share=1.0,
        name=None,
    ):
        check_function(function, PullingFunction, type(self).__name__)
        check_radius("grad_clip", grad_clip)
        if not 0 < share <= 1 or (share < 1) != (cotangent is not None):
            raise ValueError(
                f"share must be in (0, 1), or 1 if no products are asked for; got {share!r}."
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

    @staticmethod
    def sensitivity_of(relation):
        """Return the sensitivity, which depends on nothing else."""
        return {"zero_out": 1.0, "replace_one": 2.0}[relation]

    def sensitivity(self, relation):
        return self.sensitivity_of(relation)

    def _check_base(self, base, sampling):
        if not isinstance(base, (GaussianDpEvent, NonPrivateDpEvent)):
            raise PlanError(f"{self.name!r} has Gaussian noise; it is planned as {base}.")

    def _measure_batch(self, rows, membership, base, relation, noise):
        if membership.shape[1] != self.n_classes:
            raise PlanError(
                f"{self.name!r} is for {self.n_classes} classes; the rows have "
                f"{membership.shape[1]}."
            )
        std = getattr(base, "noise_multiplier", 0.0) * self.sensitivity(relation)
        scale = grid_scale(std)
        parts = list(zip(rows.split(_CHUNK), membership.split(_CHUNK), strict=True))
        called = [self.function.with_products(*part, width=self.n_features) for part in parts]
        sums = 0
        for (_, one_hot), (features, _) in zip(parts, called, strict=True):
            sums = sums + (one_hot.T @ to_grid(self._join(features), scale)).long()

        def pull_back(noisy):
            aggregate = self._read(noisy, std)
            cotangents = torch.as_tensor(self.cotangent(aggregate)).to(membership)
            total = 0
            for (_, one_hot), (_, pulled) in zip(parts, called, strict=True):
                products = pulled(one_hot @ cotangents, self.n_products)
                bounded = bounded_rows(products, self.grad_clip, math.sqrt(1 - self.share))
                total = total + (one_hot.sum(1) @ to_grid(bounded, scale)).long()
            return Measurement(total.cpu().numpy(), scale, std, context=aggregate)

        then = None if self.cotangent is None else pull_back
        return Measurement(sums.cpu().numpy(), scale, std, context=std, then=then)

    def _join(self, features):
        """Join features, clipped to norm 1, with what counts the record: of norm √share in all."""
        weight, w = math.sqrt(self.share), self.count_weight
        features = bounded_rows(features, 1.0, weight * math.sqrt(1 - w**2))
        return nn.functional.pad(features, (0, 1), value=weight * w)

    def _read(self, noisy, std):
        """Return the sums of features and the counts, from the noisy numbers."""
        w, unit = self.count_weight, math.sqrt(self.share)
        row = math.sqrt(1 - w**2)
        return NoisyAggregate(
            features=noisy[:, :-1] / (unit * row),
            counts=noisy[:, -1] / (unit * w),
            features_std=std / (unit * row),
            counts_std=std / (unit * w),
        )

    def _present(self, noisy, measured):
        if self.cotangent is None:
            return self._read(noisy, measured.context)
        unit = math.sqrt(1 - self.share) / self.grad_clip
        return replace(measured.context, products=noisy / unit, products_std=measured.std / unit)
