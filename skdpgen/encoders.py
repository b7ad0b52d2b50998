# SPDX-License-Identifier: BSD-3-Clause
"""Dimension reduction before a release: values of the parameter `encoder`."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from ._process.muting import muted
from .arrays.box import BoxFormat
from .checks import budget_share, whole
from .data.record_functions import call_quietly
from .mechanisms.sums import CovarianceMechanism
from .params import Specification

__all__ = ["PrivatePCA"]

# A sketch keeps all of up to this many columns, with this many slices for each.
_FEW_COLUMNS, _SLICES = 64, 25
# Least ratio of components to noise, from USPS with 1,000 to 5,700 rows. Least multiple of
# `min_samples` for rows that are no images, from features of networks and synthetic rows of 100 to
# 784 columns.
_STANDING_OUT, _NO_LOSS = 0.5, 4


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

    def min_samples(self, n_components, n_columns, multiplier, are_images=False):
        """Return the least number of records for which components exceed the noise.

        Noise of standard deviation σ on d² numbers has eigenvalues up to σ√(2d), and each of k
        equal components has n/k. For images, d is the number of low frequencies that suffice. All
        columns may be kept whatever the noise.
        """
        if n_components == n_columns:
            return 0
        if are_images:
            from .networks.components import find_spaces

            spaces = find_spaces(n_columns, n_components)
            n_columns = next((space.shape[1] for space in spaces), n_columns)
        return n_components * _STANDING_OUT * multiplier * math.sqrt(2 * n_columns)

    def find_components(self, curator, format, n_components, **params):
        """Release second moments; return `PrincipalComponents` with the given parameters."""
        from .arrays.units import warn_of_moments
        from .networks.components import PrincipalComponents

        moments = curator.release(CovarianceMechanism())
        warn_of_moments(format, moments, curator.n_rows)
        components = PrincipalComponents.from_noisy_moments(
            moments, curator.n_rows, n_components, **params
        )
        return components.to(curator.device)


# Makers of the specifications that strings name.
ENCODERS: dict[str, Callable] = {"dp-pca": PrivatePCA}


def choose_components(n_samples, n_columns, n_classes, multiplier, are_images):
    """Return the `PrivatePCA` that ``"auto"`` resolves to, or None, from public numbers only.

    Images of many columns always get components, which are restricted to low frequencies: pixels
    have far more noise. Components of other rows lose differences between classes, unless they
    exceed the noise by far. Few columns are all kept; rotating and scaling them first matters if a
    sketch is mostly noise, of multiplier·√k on a sum of n/c values for c classes and k slices. A
    fit then stays close to its start, which components place among the rows.

    Parameters
    ----------
    n_samples, n_columns, n_classes : int
    multiplier : float
        Noise multiplier of one Gaussian release that spends the whole budget.
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


def try_encoder(format):
    """Raise an error if a public encoder of arrays fails on made-up rows, before a release.

    It may fail for some rows, which count as absent, but not for all; and it must map each row on
    its own. That is compared to within 1e-4 of the largest number, since the rounding of networks
    depends on the number of rows.

    Parameters
    ----------
    format : BoxFormat
        The `encoder` is not None.

    Raises
    ------
    ValueError or TypeError
        The message shows the encoder's own error.
    """
    from .networks.generators import rehearsing

    plain, encoder = format.without_target(), format.encoder
    with rehearsing("encoder"), muted():
        _encode(plain, np.zeros((1, plain.n_features)))
        rows = _make_rows(plain)
        alone = [call_quietly(_encode, plain, row[None]) for row in rows]
        are_good = [code is not None and bool(np.isfinite(code).all()) for code in alone]
        if not any(are_good):
            # Its own error, or none if it gives numbers.
            _encode(plain, rows[-1:])
            raise ValueError("encoder gives NaN or infinity for all made-up rows.")
        codes = _encode(plain, rows[are_good])
        expected = np.concatenate(
            [code for code, good in zip(alone, are_good, strict=True) if good]
        )
        if codes.shape != expected.shape or not _are_close(codes, expected):
            raise ValueError(
                "encoder maps rows together otherwise than one by one, or at random: each must be "
                "mapped on its own, for one private row would change others. Use what was fitted "
                "on public data, in evaluation mode."
            )
        for part in (codes[:1], codes):
            decoded = np.asarray(encoder.inverse_transform(part.copy()), dtype=np.float64)
            shape = len(part), plain.n_features
            if decoded.shape != shape or not np.isfinite(decoded).all():
                found = f"numbers of shape {decoded.shape}"
                if decoded.shape == shape:
                    found = "NaN or infinity"
                raise ValueError(
                    f"encoder.inverse_transform gives {found} for encoded rows of shape "
                    f"{part.shape}; finite numbers of shape {shape} are needed."
                )


def _make_rows(format):
    """Return made-up rows within the bounds, or of both signs and positive where there are none."""
    random = np.random.RandomState(0)
    if format.bounds is not None:
        lower, upper = format.bounds
        return lower + random.uniform(size=(4, format.n_features)) * (upper - lower)
    rows = random.normal(size=(3, format.n_features))
    return np.concatenate([rows, np.abs(rows[:1]), np.ones_like(rows[:1])])


def _encode(format, X):
    rows = BoxFormat.encode(format, X)
    if rows.ndim != 2 or len(rows) != len(X):
        raise ValueError(
            f"encoder maps rows of shape {X.shape} to numbers of shape {rows.shape}: a row is "
            "needed for each."
        )
    return rows


def _are_close(codes, expected):
    return np.allclose(codes, expected, rtol=0, atol=1e-4 * max(1e-300, np.abs(expected).max()))


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
