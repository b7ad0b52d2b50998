# SPDX-License-Identifier: BSD-3-Clause
"""Displays of certificates and of synthetic rows, in the style of scikit-learn."""

import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..accounting.certificate import Certificate
from ..accounting.rounding import show
from ..arrays.image_layout import flatten
from ._columns import as_numbers, as_table

Shown = TypeVar("Shown", bound="Display")


class Display:
    """Base class of displays.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes or ndarray of them
    figure_ : matplotlib.figure.Figure
    """

    def plot(self: Shown, ax=None, **kwargs) -> Shown:
        """Plot what was given to the constructor.

        Parameters
        ----------
        ax : Axes or array of Axes, default=None
            None: those of a new figure.
        **kwargs : dict
            Parameters of matplotlib's ``plot``, or, for rows, ``imshow`` or ``scatter``.

        Returns
        -------
        self : object
        """
        self._plot(ax, kwargs)
        return self

    def _plot(self, ax, kwargs):
        raise NotImplementedError

    def _take_axes(self, ax, shape=None, size=(6.4, 4.8)):
        """Set `ax_` and `figure_`, new ones of a size in inches or those of `ax`; return the axes.

        They are flat if there is a shape: rows and columns of axes.
        """
        plt = _import_pyplot()
        if ax is None:
            _, ax = plt.subplots(*(shape or (1, 1)), figsize=size, layout="constrained")
        elif shape is not None and np.size(ax) < math.prod(shape):
            raise ValueError(f"ax must hold {math.prod(shape)} axes; got {np.size(ax)}.")
        self.ax_ = ax
        self.figure_ = np.ravel(ax)[0].figure
        return ax if shape is None else np.ravel(ax)


def _import_pyplot():
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("Displays need matplotlib: pip install 'skdpgen[plots]'.") from None
    return plt


class SyntheticSamplesDisplay(Display):
    """Synthetic rows, as images side by side or as points.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_samples, n_features)
        Synthetic rows.
    y : array-like of shape (n_samples,), default=None
        Their labels.
    image_shape : tuple of int, default=None
        (height, width) of rows that are images, or with channels first or last. None: that of `X`
        if it has three or four dimensions; otherwise rows are drawn as points, by the first two
        numeric columns or, if there is one only, by that.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes or ndarray of them
    figure_ : matplotlib.figure.Figure

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn.datasets import load_digits
    >>> from skdpgen import DPSWFlowSampler
    >>> from skdpgen.evaluation import SyntheticSamplesDisplay
    >>> X, y = load_digits(return_X_y=True)
    >>> sampler = DPSWFlowSampler(5.0, bounds=(0, 16), classes=range(10), n_steps=5).fit(X, y)
    >>> display = SyntheticSamplesDisplay.from_estimator(sampler, image_shape=(8, 8))
    >>> display.ax_.shape
    (4, 10)
    >>> plt.close()
    """

    def __init__(self, X, y=None, *, image_shape: tuple[int, ...] | None = None) -> None:
        self.X = X
        self.y = y
        self.image_shape = image_shape

    @classmethod
    def from_estimator(
        cls,
        estimator,
        n_samples: int = 40,
        *,
        image_shape: tuple[int, ...] | None = None,
        random_state=None,
        ax=None,
        **kwargs,
    ) -> "SyntheticSamplesDisplay":
        """Sample from a fitted generator, which costs no privacy, and plot.

        Parameters
        ----------
        estimator : generator
            A fitted one.
        n_samples : int, default=40
        image_shape : tuple of int, default=None
        random_state : None, int or RandomState, default=None
        ax, **kwargs
            As in `plot`.
        """
        check_is_fitted(estimator, "privacy_")
        sample = estimator.sample(n_samples, random_state=random_state)
        X, y = sample if isinstance(sample, tuple) else (sample, None)
        return cls(X, y, image_shape=image_shape).plot(ax=ax, **kwargs)

    def _plot(self, ax, kwargs):
        rows, layout = flatten(self.X, "auto" if self.image_shape is None else self.image_shape)
        if not layout.is_told:
            self._plot_points(ax, kwargs)
        else:
            self._plot_images(np.asarray(rows).reshape(-1, *layout.image_shape), ax, kwargs)

    def _plot_images(self, images, ax, kwargs):
        n_wide = min(10, len(images))
        shape = (math.ceil(len(images) / n_wide), n_wide)
        axes = self._take_axes(ax, shape, (n_wide * 0.8, shape[0] * 0.9))
        # One scale for all images, or else a dark one would look like a bright one.
        options = {"cmap": "gray", "vmin": images.min(), "vmax": images.max(), **kwargs}
        images = np.moveaxis(images, 1, -1)
        if images.shape[-1] > 1:  # matplotlib takes colours in [0, 1], channels last
            images = (images - images.min()) / max(np.ptp(images), 1e-12)
        for one in axes:
            one.set_axis_off()
        for i, (one, image) in enumerate(zip(axes, images, strict=False)):
            one.imshow(image, **options)
            if self.y is not None:
                one.set_title(str(np.asarray(self.y)[i]), fontsize="small")

    def _plot_points(self, ax, kwargs):
        columns = {str(name): as_numbers(column) for name, column in as_table(self.X).items()}
        numbers = [(name, cells) for name, cells in columns.items() if cells is not None][:2]
        if not numbers:
            raise ValueError("There are no numeric columns to plot; use report(X).")
        if len(numbers) == 1:
            numbers.insert(0, ("row", np.arange(len(numbers[0][1]))))
        (x_name, x), (y_name, y) = numbers
        ax = self._take_axes(ax)
        labels = np.zeros(len(x)) if self.y is None else np.asarray(self.y)
        for label in np.unique(labels):
            chosen = labels == label
            name = None if self.y is None else str(label)
            ax.scatter(x[chosen], y[chosen], label=name, **{"s": 12, **kwargs})
        ax.set(xlabel=x_name, ylabel=y_name)
        if self.y is not None:
            ax.legend()


@dataclass(eq=False, repr=False)
class PrivacyProfileDisplay(Display):
    """Privacy profile: the δ that a certificate proves at each ε.

    Parameters
    ----------
    epsilon : ndarray of shape (n_points,)
    delta : ndarray of shape (n_points,)
        The proven δ at each ε.
    stated : (float, float), default=None
        ε and δ of the certificate, to be marked.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure
    line_ : matplotlib.lines.Line2D

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn.datasets import load_iris
    >>> from skdpgen.preprocessing import DPPCA
    >>> from skdpgen.evaluation import PrivacyProfileDisplay
    >>> pca = DPPCA(epsilon=2.0, bounds=(0, 8)).fit(load_iris().data)
    >>> display = PrivacyProfileDisplay.from_estimator(pca)
    >>> bool((display.delta[1:] <= display.delta[:-1]).all())
    True
    >>> plt.close()
    """

    epsilon: np.ndarray
    delta: np.ndarray
    stated: tuple[float, float] | None = None

    @classmethod
    def from_estimator(
        cls, estimator, *, epsilon=None, name: str | None = None, ax=None, **kwargs
    ) -> "PrivacyProfileDisplay":
        """Plot the profile of a fitted estimator's certificate.

        Parameters
        ----------
        estimator : estimator or Certificate
            A fitted estimator, or a certificate.
        epsilon : array-like, default=None
            Values of ε. None: 25 values up to twice the certificate's.
        name : str, default=None
            The label in the legend. None: the class of the estimator.
        ax, **kwargs
            As in `plot`.
        """
        certificate = getattr(estimator, "privacy_", estimator)
        if not isinstance(certificate, Certificate):
            raise TypeError(
                f"{type(estimator).__name__} has no certificate privacy_: fit it first."
            )
        stated = certificate.epsilon
        if not np.isfinite(stated):
            raise ValueError("The certificate has no privacy profile, since its ε is infinite.")
        if epsilon is None:
            # Up to twice the stated ε, and never an empty range.
            epsilon = np.linspace(0, 2 * stated or 1.0, 25)
        epsilon = np.asarray(epsilon, dtype=float)
        delta = np.array([certificate.delta_at(value) for value in epsilon])
        kwargs = {"label": name or type(estimator).__name__, **kwargs}
        return cls(epsilon, delta, (stated, certificate.delta)).plot(ax=ax, **kwargs)

    def _plot(self, ax, kwargs):
        """Plot δ, on a logarithmic scale, over ε."""
        # A logarithmic scale has no 0.
        drawn = np.where(np.asarray(self.delta) > 0, self.delta, np.nan)
        ax = self._take_axes(ax)
        (self.line_,) = ax.plot(self.epsilon, drawn, **kwargs)
        ax.set(xlabel="ε", ylabel="δ", yscale="log")
        if "label" in kwargs:
            ax.legend()
        if self.stated is not None:
            epsilon, delta = self.stated
            ax.plot(epsilon, delta, "o", color=self.line_.get_color())
            ax.annotate(
                f"ε = {show(epsilon)}, δ = {show(delta)}",
                self.stated,
                xytext=(6, 6),
                textcoords="offset points",
            )
