# SPDX-License-Identifier: BSD-3-Clause
"""Dimension reduction before a release: what users pass as `encoder`."""

import math

from sklearn.base import BaseEstimator, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from .checks import budget_share, whole
from .mechanisms.sums import CovarianceMechanism
from .networks.components import PrincipalComponents, find_spaces
from .params import Specification, parameters

__all__ = ["PrivatePCA"]

# Of so few columns a sketch keeps all. It has so many slices for each.
_FEW_COLUMNS, _SLICES = 64, 25
# By how much components are to stand out of the noise; found on USPS, 1,000 to 5,700 rows. And from
# how many times as many rows on they are no great loss to rows that are no images; found on
# features of networks, and on made-up rows of 100 to 784 columns.
_STANDING_OUT, _NO_LOSS = 0.5, 4


@parameters
class PrivatePCA(Specification):
    """Principal components of the private rows, from noisy second moments, which are paid for.

    Sensible from a few thousand rows on. Fewer columns have less noise in their components: those
    of square images, and of lines whose neighbours are alike, are sought among low frequencies
    where the noisy moments say that these hold more of the rows.

    Parameters
    ----------
    n_components : int, default=None
        Components to keep. None: 64 for a sketch, 40 for sampled gradients, 30 for sliced rows, or
        all if they are less.
    share : float, default=0.2
        Share of the budget that is paid for them, of Σ s⁻² over the noise multipliers s of
        Gaussian releases.

    See Also
    --------
    DPPCA : A transformer with a budget of its own.

    Examples
    --------
    >>> from skdpgen import DPSWFlowSampler
    >>> DPSWFlowSampler(encoder="dp-pca").set_params(encoder__share=0.3).encoder
    PrivatePCA(share=0.3)
    """

    n_components: int | None = None
    share: float = 0.2

    _checks = {"n_components": whole(optional=True), "share": budget_share}

    name = CovarianceMechanism.name

    def count_components(self, n_columns, default):
        """Return how many components are kept."""
        return min(self.n_components or default, n_columns)

    def min_samples(self, n_components, n_columns, multiplier, are_images=False):
        """Return how many records it takes for components to stand out of the noise.

        Noise of a deviation σ on d² numbers has eigenvalues up to σ√(2d), and each of k components
        has n/k, were they alike. Of images, d are as few low frequencies as can hold them. All
        columns may be kept, whatever the noise.
        """
        if n_components == n_columns:
            return 0
        if are_images:
            spaces = find_spaces(n_columns, n_components)
            n_columns = next((space.shape[1] for space in spaces), n_columns)
        return n_components * _STANDING_OUT * multiplier * math.sqrt(2 * n_columns)

    def find_components(self, curator, n_components, **params):
        """Release second moments; return the rows' `PrincipalComponents`, of such parameters."""
        moments = curator.release(CovarianceMechanism())
        components = PrincipalComponents.from_noisy_moments(
            moments, curator.n_rows, n_components, **params
        )
        return components.to(curator.device)


# What strings stand for.
ENCODERS = {"dp-pca": PrivatePCA()}


def choose_components(n_samples, n_columns, n_classes, multiplier, are_images):
    """Return the `PrivatePCA` that ``"auto"`` stands for, or None, from public numbers only.

    Of many columns, leading components of images are always worth their price: they are sought
    among low frequencies, and pixels have far more noise. Those of other rows lose what tells
    classes apart, unless they stand out by far. Few columns are all kept. Whether they are turned
    and scaled first matters where a sketch of them is mostly noise,
    of multiplier·√k on a sum of n/c values, for c classes and k slices: a fit then stays close to
    where it starts from, and components say where the rows are.

    Parameters
    ----------
    n_samples, n_columns, n_classes : int
    multiplier : float
        The noise multiplier of a Gaussian release that spends all of the budget.
    are_images : bool
        See `Format.are_images`.
    """
    components = PrivatePCA()
    if n_columns <= _FEW_COLUMNS:
        noise = multiplier * math.sqrt(_SLICES * n_columns) * n_classes
        return components if noise > n_samples else None
    if are_images:
        return components
    multiplier /= math.sqrt(components.share)
    min_samples = components.min_samples(_FEW_COLUMNS, n_columns, multiplier)
    return components if n_samples > _NO_LOSS * min_samples else None


def split_encoder(encoder):
    """Return the public transformer and the `PrivatePCA` of a parameter `encoder`, or None.

    ``"auto"`` stays what it is: what it stands for depends on sizes.

    Raises
    ------
    ValueError
        If it is something else, if the transformer lacks a method, is not fitted, or would be
        fitted anew by those who clone it.
    """
    if isinstance(encoder, str) and encoder == "auto":
        return None, encoder
    parts = encoder if isinstance(encoder, list | tuple) else [encoder]
    *public, last = parts or [None]
    private = clone(ENCODERS[last]) if isinstance(last, str) and last in ENCODERS else last
    if not isinstance(private, PrivatePCA):
        public, private = [*public, last], None
    else:
        private = private.checked()
    if len(public) > 1 or (len(parts) > 1 and private is None):
        raise ValueError("encoder as a list is [public transformer, PrivatePCA(...)].")
    public = public[0] if public else None
    if public is not None:
        _check_public(public)
    return public, private


def _check_public(encoder):
    """Refuse what is no fitted public transformer."""
    if not all(hasattr(encoder, method) for method in ("transform", "inverse_transform")):
        raise ValueError(
            f"encoder must be None, one of {['auto', *ENCODERS]}, a PrivatePCA, or an object with "
            "transform and inverse_transform, fitted on public data."
        )
    if not isinstance(encoder, BaseEstimator) or not get_tags(encoder).requires_fit:
        return  # it has nothing to lose
    if not isinstance(encoder, FrozenEstimator):
        raise ValueError(
            "encoder would lose what it has learnt when the estimator is cloned, as searches do: "
            "wrap it in sklearn.frozen.FrozenEstimator."
        )
    check_is_fitted(
        encoder.estimator,
        msg="encoder is a frozen %(name)s that is not fitted: fit it on public data.",
    )
