# SPDX-License-Identifier: BSD-3-Clause
"""Dimension reduction before a release: values of the parameter `encoder`."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from .checks import budget_share, whole
from .mechanisms.sums import CovarianceMechanism
from .params import Specification

__all__ = ["PrivatePCA"]

# Least ratio of components to noise, from USPS with 1,000 to 5,700 rows.
_STANDING_OUT = 0.5


@dataclass(eq=False, repr=False)
class PrivatePCA(Specification):
    """Private principal components, from noisy second moments.

    They are useful from a few thousand rows on. Components of square images and of smooth rows are
    restricted to low frequencies if the noisy moments show more of the rows there, since fewer
    columns have less noise.

    Parameters
    ----------
    n_components : int, default=None
        Number of components. None: 64 for a sketch, 40 for sampled gradients, 30 for sliced rows,
        or all if there are fewer.
    share : float, default=0.2
        Their share of ρ (zero-concentrated budget).

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

    def min_samples(self, n_components, n_columns, multiplier, shape=None):
        """Return the least number of records for which components exceed the noise.

        Noise of standard deviation σ on d² numbers has eigenvalues up to σ√(2d), and each of k
        equal components has n/k. For images of a `shape`, d is the number of low frequencies that
        suffice. All columns may be kept whatever the noise.
        """
        if n_components == n_columns:
            return 0
        if shape is not None:
            from .networks.components import find_spaces

            spaces = find_spaces(n_columns, n_components, shape)
            n_columns = next((space.shape[1] for space in spaces), n_columns)
        return n_components * _STANDING_OUT * multiplier * math.sqrt(2 * n_columns)

    def find_components(self, curator, format, n_components, **params):
        """Release second moments; return `PrincipalComponents` with the given parameters."""
        from .arrays.units import warn_of_moments
        from .networks.components import PrincipalComponents

        moments = curator.release(CovarianceMechanism())
        warn_of_moments(format, moments, curator.n_rows)
        components = PrincipalComponents.from_noisy_moments(
            moments, curator.n_rows, n_components, format.row_shape, **params
        )
        return components.to(curator.device)


# Makers of the specifications that strings name.
ENCODERS: dict[str, Callable] = {"dp-pca": PrivatePCA}


def split_encoder(encoder):
    """Return the public transformer and the `PrivatePCA` of a parameter `encoder`, or None.

    ``"auto"`` is returned as the second: it is resolved by sizes.

    Raises
    ------
    ValueError
        If it is something else, or if the transformer lacks a method, is not fitted, or loses its
        fit when it is cloned.
    """
    if isinstance(encoder, str) and encoder == "auto":
        return None, encoder
    parts = encoder if isinstance(encoder, list | tuple) else [encoder]
    *public, last = parts or [None]
    private = ENCODERS[last]() if isinstance(last, str) and last in ENCODERS else last
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
    """Raise a ValueError if an encoder is no fitted public transformer."""
    if not all(hasattr(encoder, method) for method in ("transform", "inverse_transform")):
        raise ValueError(
            f"encoder must be None, one of {['auto', *ENCODERS]}, a PrivatePCA, or an object with "
            "transform and inverse_transform, fitted on public data."
        )
    if not isinstance(encoder, BaseEstimator) or not get_tags(encoder).requires_fit:
        return  # a clone works, too
    if not isinstance(encoder, FrozenEstimator):
        raise ValueError(
            "encoder loses its fit when the estimator is cloned, as searches do: wrap it in "
            "sklearn.frozen.FrozenEstimator."
        )
    check_is_fitted(
        encoder.estimator,
        msg="encoder is a frozen %(name)s that is not fitted: fit it on public data.",
    )
