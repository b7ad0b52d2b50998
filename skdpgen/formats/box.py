"""The public map between rows of bounded numbers as users have them and as releases see them."""

from dataclasses import dataclass

import numpy as np

__all__ = ["RowCodec"]


@dataclass(frozen=True)
class RowCodec:
    """Maps features, and a numeric target beside them, to rows and back.

    With bounds, features are clipped to them, mapped to [0, 1] and divided by √(number of
    columns), so that rows lie in the unit ball. With an encoder, features are clipped to the
    bounds, if any, and encoded. Otherwise they are used as they are. Nothing here is learnt from
    data.

    Parameters
    ----------
    n_features : int
        Columns of X.
    bounds : None or (lower, upper), default=None
        Public bounds, scalars or arrays of shape (n_features,).
    encoder : object, default=None
        With `transform` and `inverse_transform`, fitted on public data.
    has_number : bool, default=False
        Whether a numeric y rides along as a last column.
    y_bounds : None or (lower, upper), default=None
        Its public bounds.
    radius : float, default=1.0
        The radius of rows, which are decoded from the unit ball.
    """

    n_features: int
    bounds: tuple | None = None
    encoder: object = None
    has_number: bool = False
    y_bounds: tuple | None = None
    radius: float = 1.0

    def __post_init__(self):
        object.__setattr__(self, "bounds", check_bounds(self.bounds, self.n_features, "bounds"))
        object.__setattr__(self, "y_bounds", check_bounds(self.y_bounds, 1, "y_bounds"))
        if self.has_number and self.bounds is not None and self.y_bounds is None:
            raise ValueError(
                "y is a number (float dtype) and bounds were given: give y_bounds=(lower, upper) "
                "too, or classes=[...] if y holds labels."
            )

    @property
    def unit(self):
        """What a feature on a scale from 0 to 1 is multiplied by: one ball for all columns."""
        return (self.n_features + self.has_number) ** -0.5

    @property
    def has_unit_features(self):
        """Whether a row is just its features, mapped to [0, 1] and scaled by `unit`."""
        return self.bounds is not None and self.encoder is None and not self.has_number

    @property
    def n_columns(self):
        """Number of columns of a row, found with a public row of zeros."""
        y = np.zeros(1) if self.has_number else None
        return self.encode(np.zeros((1, self.n_features)), y).shape[1]

    releases = ()

    def settle(self, curator):
        """Return the codec of what is to be learnt: nothing had to be found first."""
        return self

    def refuse(self, X, y=None):
        """Raise nothing: what is wrong with numbers is found without knowing what they are."""

    def encode(self, X, y=None):
        """Map (n, n_features) features, and (n,) numbers if there are any, to rows."""
        # A copy: an encoder may work in place.
        X = np.array(X, dtype=np.float64)
        if self.bounds is not None:
            X = np.clip(X, *self.bounds)
        if self.encoder is not None:
            rows = np.asarray(self.encoder.transform(X), dtype=np.float64)
        elif self.bounds is not None:
            rows = _to_unit(X, self.bounds) * self.unit
        else:
            rows = X
        if not self.has_number:
            return rows
        y = np.asarray(y, dtype=np.float64)[:, None]
        if self.y_bounds is not None:
            y = _to_unit(np.clip(y, *self.y_bounds), self.y_bounds) * self.unit
        return np.hstack([rows, y])

    def decode(self, rows):
        """Map rows in the unit ball back to (features, numbers or None), within the bounds."""
        rows, y = rows * self.radius, None
        if self.has_number:
            rows, y = rows[:, :-1], rows[:, -1:]
            if self.y_bounds is not None:
                y = np.clip(_from_unit(y / self.unit, self.y_bounds), *self.y_bounds)
            y = y[:, 0]
        if self.encoder is not None:
            X = np.asarray(self.encoder.inverse_transform(rows), dtype=np.float64)
        elif self.bounds is not None:
            X = _from_unit(rows / self.unit, self.bounds)
        else:
            X = rows
        return (X if self.bounds is None else np.clip(X, *self.bounds)), y


def check_bounds(bounds, n_features, name):
    """Return bounds as two arrays of shape (n_features,), or None."""
    if bounds is None:
        return None
    try:
        # Copies: what the caller does to his arrays later is nothing to what was fitted.
        lower, upper = (np.full(n_features, b, dtype=np.float64) for b in bounds)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be a pair (lower, upper) of numbers or of arrays of {n_features} numbers."
        ) from None
    if not (np.isfinite(lower).all() and np.isfinite(upper).all() and (lower < upper).all()):
        raise ValueError(f"{name} must be finite, with lower < upper in every column.")
    return lower, upper


def _to_unit(X, bounds):
    lower, upper = bounds
    return (X - lower) / (upper - lower)


def _from_unit(X, bounds):
    lower, upper = bounds
    return lower + X * (upper - lower)
