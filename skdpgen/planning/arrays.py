# SPDX-License-Identifier: BSD-3-Clause
"""Formats of arrays: bounds, and encoders that are chosen, and tried, before any row is read."""

import math
from dataclasses import replace

import numpy as np

from .._process.muting import muted
from ..accounting.units import equivalent_records
from ..arrays.box import BoxFormat
from ..arrays.discovery import make_box
from ..arrays.layout import ArrayLayout
from ..curator.dataset import Dataset
from ..data.record_functions import call_quietly
from ..encoders import PrivatePCA, split_encoder
from ..exceptions import FitQualityWarning, warn_caller
from ..format import Format
from ..networks.generators import rehearsing

# A sketch keeps all of up to this many columns, with this many slices for each.
_FEW_COLUMNS, _SLICES = 64, 25
# Least multiple of `PrivatePCA.min_samples` for rows that are no images, from features of networks
# and synthetic rows of 100 to 784 columns.
_NO_LOSS = 4


def read_array(estimator, dataset: Dataset) -> Format:
    """Return the format of an array whose public facts an estimator has validated."""
    if estimator.y_bounds is not None and dataset.classes is not None:
        raise ValueError("y_bounds are for a numeric y of float dtype; here y holds classes.")
    return estimator._make_format(
        equivalent_records(dataset.n_records or 0, dataset.max_rows),
        dataset.n_columns,
        dataset.n_classes,
        has_number=dataset.has_number,
        classes=dataset.classes,
        layout=ArrayLayout.of(dataset, has_classes=estimator.classes is not None),
    )


def make_array_format(estimator, n_samples, n_features, n_classes, **public) -> Format:
    """Return the format of rows with the bounds, the radius and the encoder of an estimator."""
    public_encoder, components = split_encoder(estimator.encoder)
    is_auto, multiplier = isinstance(components, str), estimator._find_multiplier(n_samples)
    format = make_box(
        n_samples,
        n_features,
        multiplier,
        estimator.relation,
        bounds=estimator.bounds,
        y_bounds=estimator.y_bounds,
        encoder=public_encoder,
        components=None if is_auto else components,
        clip_norm=estimator.clip_norm,
        image_shape=estimator.image_shape,
        **public,
    )
    if public_encoder is not None:
        try_encoder(format)
    if format.are_images and not format.images.is_told and format.row_shape[0] > 1:
        _warn_of_pixels(format.row_shape, "taken for images with channels first")
    if not (is_auto and estimator._takes_components):
        return format
    components = choose_components(n_samples, n_features, n_classes, multiplier, format.are_images)
    if components is None and format.are_images is None:
        guess = "not taken for images, which principal components encode better at this ε"
        _warn_of_pixels(format.row_shape, guess)
    return replace(format, components=components)


def _warn_of_pixels(shape, guess):
    """Warn, before anything is spent, of columns that may be pixels: it is not public if they are.

    Features of networks are as many. `shape` is that of images, (channels, height, width).
    """
    n_channels, *sides = shape
    shapes = [shape, (*sides, n_channels)] if n_channels > 1 else [tuple(sides)]
    warn_caller(
        f"Flat rows of {math.prod(shape):,} columns are {guess}. Declare "
        f"image_shape={' or '.join(map(str, shapes))} if they are images, None if not.",
        FitQualityWarning,
    )


def choose_components(n_samples, n_columns, n_classes, multiplier, are_images):
    """Return the `PrivatePCA` that ``"auto"`` resolves to, or None, from public numbers only.

    Images of many columns always get components, which are restricted to low frequencies: pixels
    have far more noise. Components of other rows lose differences between classes, unless they
    exceed the noise by far. Few columns are all kept; rotating and scaling them first matters if a
    sketch is mostly noise, of multiplier·√k on a sum of n/c values for c classes and k slices. A
    fit then stays close to its start, which components place among the rows. The multiplier is
    that of one Gaussian release that spends the whole budget.
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


def try_encoder(format):
    """Raise an error if a public encoder of arrays fails on made-up rows, before a release.

    It may fail for some rows, which count as absent, but not for all; and it must map each row on
    its own. That is compared to within 1e-4 of the largest number, since the rounding of networks
    depends on the number of rows. The message shows the encoder's own error.
    """
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
