# SPDX-License-Identifier: BSD-3-Clause
"""Previews: the certificate of a fit before any row is read."""

import numbers
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .._process.isolation import isolated
from .rounding import plain_numbers

if TYPE_CHECKING:
    from .certificate import Certificate


@isolated()
def preview(
    estimator: Any,
    X: Any,
    y: Any = None,
    *,
    target: str | None = None,
    persons: Any = None,
    n_classes: int | None = None,
) -> "Certificate":
    """Return the certificate that a fit would have, without running it.

    Parameters
    ----------
    estimator : estimator
        An unfitted generator.
    X : array-like, DataFrame, or int
        The argument of `fit`, of which only the shape, dtypes and names are read, unless classes
        must be inferred. Or the number of rows.
    y : array-like or int, default=None
        The argument of `fit`. Or the number of features, including a numeric `y`.
    target : str, default=None
        As in `fit`.
    persons : array-like or bool, default=None
        The argument of `fit`. If `X` is an int, whether it is the number of persons.
    n_classes : int, default=None
        If `X` is an int, the number of classes of `y`; None for no classes.

    Returns
    -------
    Certificate
        `sigma` holds the noise level, if there is one, and `notes` how many rows a fit needs and,
        for an array of rows, about how many seconds it takes.

    Examples
    --------
    >>> from skdpgen import DPSlicedWassersteinGenerator
    >>> from skdpgen.privacy import preview
    >>> planned = preview(DPSlicedWassersteinGenerator(epsilon=2.0), 1000, 10)
    >>> 1.99 < planned.epsilon <= 2.0
    True
    """
    if not hasattr(estimator, "_preview"):
        raise TypeError(f"estimator must be a generator; got {type(estimator).__name__}.")
    if not isinstance(X, numbers.Number | str | None):
        if not hasattr(estimator, "_preview_data"):
            raise TypeError(
                f"preview of a {type(estimator).__name__} takes numbers of rows and features."
            )
        with plain_numbers(estimator):
            return estimator._preview_data(X, y, target, persons)
    sizes: dict[str, Any] = {
        "n_samples": X,
        "n_features": y,
        "n_classes": 1 if n_classes is None else n_classes,
    }
    for name, value in sizes.items():
        if not isinstance(value, numbers.Integral) or value < 1:
            raise ValueError(f"{name} must be a whole number of at least 1; got {value!r}.")
    n_samples, n_features = int(sizes["n_samples"]), int(sizes["n_features"])
    if persons and not hasattr(estimator, "max_rows_per_person"):
        raise ValueError(f"{type(estimator).__name__} releases rows one by one; drop persons.")
    n_classes = None if n_classes is None else int(n_classes)
    unit = {"has_persons": True} if persons else {}
    with plain_numbers(estimator):
        planned = estimator._preview(n_samples, n_features, n_classes, **unit)
    return replace(planned, n_records=n_samples)
