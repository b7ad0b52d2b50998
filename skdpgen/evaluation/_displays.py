# SPDX-License-Identifier: BSD-3-Clause
"""Displays of synthetic rows and of their columns, in the style of scikit-learn."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ._columns import EncodedColumn, as_table, encode_columns
from ._comparisons import associate

# More columns are not legible in one figure.
_MOST_COLUMNS = 16


class Display:
    """Base class of displays.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes or ndarray of them
    figure_ : matplotlib.figure.Figure
    """

    def _take_axes(self, ax, shape=None, size=(6.4, 4.8)):
        """Set `ax_` and `figure_`, and return the axes, flat if there is a shape.

        Parameters
        ----------
        ax : Axes, array of Axes or None
            None: those of a new figure.
        shape : tuple of int, default=None
            Rows and columns of axes. None: one Axes.
        size : tuple of float
            Width and height of a new figure, in inches.
        """
        plt = _import_pyplot()
        if ax is None:
            _, ax = plt.subplots(*(shape or (1, 1)), figsize=size, layout="constrained")
        elif shape is not None and np.size(ax) < math.prod(shape):
            raise ValueError(f"ax must hold {math.prod(shape)} axes; got {np.size(ax)}.")
        self.ax_ = ax
        self.figure_ = np.ravel(ax)[0].figure
        return ax if shape is None else np.ravel(ax)

    def _draw_line(self, ax, x, y, kwargs: dict[str, Any], **labels):
        """Draw a line with a legend, if it has a label; set `line_` and return the axes."""
        ax = self._take_axes(ax)
        (self.line_,) = ax.plot(x, y, **kwargs)
        ax.set(**labels)
        if "label" in kwargs:
            ax.legend()
        return ax


def _import_pyplot():
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("Displays need matplotlib: pip install 'skdpgen[plots]'.") from None
    return plt


def _draw_samples(estimator, n_samples, random_state):
    """Return synthetic rows, and labels or None."""
    check_is_fitted(estimator, "privacy_")
    sample = estimator.sample(n_samples, random_state=random_state)
    return sample if isinstance(sample, tuple) else (sample, None)


class SyntheticSamplesDisplay(Display):
    """Synthetic rows, as images side by side or as points.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_samples, n_features)
        Synthetic rows.
    y : array-like of shape (n_samples,), default=None
        Their labels.
    image_shape : tuple of int, default=None
        (height, width) or (channels, height, width) of rows that are images. None: rows are drawn
        as points, by the first two numeric columns or, if there is one only, by that.

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
        ax : Axes or array of Axes, default=None
        **kwargs : dict
            Parameters of matplotlib's ``imshow`` or ``scatter``.

        Returns
        -------
        SyntheticSamplesDisplay
        """
        X, y = _draw_samples(estimator, n_samples, random_state)
        return cls(X, y, image_shape=image_shape).plot(ax=ax, **kwargs)

    def plot(self, ax=None, **kwargs) -> "SyntheticSamplesDisplay":
        """Plot the rows.

        Parameters
        ----------
        ax : Axes or array of Axes, default=None
            None: those of a new figure.
        **kwargs : dict
            Parameters of matplotlib's ``imshow`` or ``scatter``.

        Returns
        -------
        self : object
        """
        if self.image_shape is None:
            return self._plot_points(ax, kwargs)
        return self._plot_images(ax, kwargs)

    def _plot_images(self, ax, kwargs):
        images = np.asarray(self.X).reshape(-1, *self.image_shape)
        n_wide = min(10, len(images))
        shape = (math.ceil(len(images) / n_wide), n_wide)
        axes = self._take_axes(ax, shape, (n_wide * 0.8, shape[0] * 0.9))
        # One scale for all images, or else a dark one would look like a bright one.
        options = {"cmap": "gray", "vmin": images.min(), "vmax": images.max(), **kwargs}
        if images.ndim == 4:  # matplotlib takes colours in [0, 1], channels last
            images = np.moveaxis(images, 1, -1)
            images = (images - images.min()) / max(np.ptp(images), 1e-12)
        for one in axes:
            one.set_axis_off()
        for i, (one, image) in enumerate(zip(axes, images, strict=False)):
            one.imshow(image, **options)
            if self.y is not None:
                one.set_title(str(np.asarray(self.y)[i]), fontsize="small")
        return self

    def _plot_points(self, ax, kwargs):
        columns = encode_columns(as_table(self.X))
        numbers = [(c.name, c.numbers[0]) for c in columns if c.numbers is not None][:2]
        if not numbers:
            raise ValueError("There are no numeric columns to plot; use MarginalsDisplay.")
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
        return self


class _ColumnsDisplay(Display):
    """Base class of displays of the columns of synthetic rows and of a reference."""

    @classmethod
    def from_estimator(
        cls,
        estimator,
        reference=None,
        *,
        n_samples: int | None = None,
        random_state=None,
        ax=None,
        **kwargs,
    ):
        """Sample from a fitted generator, and plot the columns.

        Parameters
        ----------
        estimator : generator
            A fitted one.
        reference : DataFrame or array-like, default=None
            **Public** rows with the same columns, including labels.
        n_samples : int, default=None
            None: as many as were fitted.
        random_state : None, int or RandomState, default=None
        ax : Axes or array of Axes, default=None
            As in `plot`.
        **kwargs : dict
            As in `plot`.

        Returns
        -------
        display : object of this class
        """
        synthetic = as_table(*_draw_samples(estimator, n_samples, random_state))
        return cls.from_samples(synthetic, reference, ax=ax, **kwargs)

    @classmethod
    def from_samples(cls, synthetic, reference=None, *, ax=None, **kwargs):
        """Plot the columns of synthetic rows and of a reference.

        Parameters
        ----------
        synthetic : DataFrame or array-like
        reference : DataFrame or array-like, default=None
            **Public** rows with the same columns.
        ax : Axes or array of Axes, default=None
            As in `plot`.
        **kwargs : dict
            As in `plot`.

        Returns
        -------
        display : object of this class
        """
        reference = None if reference is None else as_table(reference)
        return cls._from_columns(encode_columns(as_table(synthetic), reference)).plot(ax, **kwargs)

    @classmethod
    def _from_columns(cls, columns: Sequence[EncodedColumn]):
        """Return the display of encoded columns, before it is plotted."""
        raise NotImplementedError


class MarginalsDisplay(_ColumnsDisplay):
    """Bar charts of the values of each column, for synthetic rows and a reference.

    Parameters
    ----------
    columns : list of EncodedColumn
        Columns that `from_samples` has encoded.

    Attributes
    ----------
    ax_ : ndarray of matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn.datasets import load_iris
    >>> from skdpgen import DPSWFlowSampler
    >>> from skdpgen.evaluation import MarginalsDisplay
    >>> X = load_iris(as_frame=True).data
    >>> sampler = DPSWFlowSampler(5.0, bounds=(0, 8), n_steps=20).fit(X)
    >>> display = MarginalsDisplay.from_estimator(sampler, reference=X)
    >>> len(display.ax_)
    4
    >>> plt.close()
    """

    def __init__(self, columns: Sequence[EncodedColumn]) -> None:
        self.columns = columns

    @classmethod
    def _from_columns(cls, columns):
        return cls(columns)

    def plot(self, ax=None, **kwargs) -> "MarginalsDisplay":
        """Plot the first 16 columns, or as many as there are axes.

        Parameters
        ----------
        ax : array of Axes, default=None
            One for each column. None: those of a new figure.
        **kwargs : dict
            Parameters of matplotlib's ``barh``.

        Returns
        -------
        self : object
        """
        n = min(len(self.columns), _MOST_COLUMNS if ax is None else np.size(ax))
        n_wide = min(n, 4)
        shape = (math.ceil(n / n_wide), n_wide)
        axes = self._take_axes(ax, shape if ax is None else (n,), (n_wide * 3, shape[0] * 2.6))
        self.ax_ = axes[:n]
        for unused in axes[n:]:
            unused.set_axis_off()
        for one, column in zip(self.ax_, self.columns, strict=False):
            positions = np.arange(len(column.levels))
            if column.reference is not None:
                shares = column.shares(column.reference)
                one.barh(positions, shares, 0.9, color="0.7", label="reference")
            shares = column.shares(column.synthetic)
            options = {"color": "tab:blue", "label": "synthetic", **kwargs}
            # Narrower than those of the reference, which stay visible behind them.
            one.barh(positions, shares, 0.5, **options)
            one.set_yticks(positions, column.levels, fontsize="x-small")
            # Bars are drawn from below: the first level belongs on top.
            one.invert_yaxis()
            one.set_title(column.name, fontsize="medium")
        axes[0].legend(fontsize="x-small")
        return self


class PairwiseDisplay(_ColumnsDisplay):
    """Associations of pairs of columns, by Cramér's V; numbers are binned.

    Parameters
    ----------
    names : list of str
    synthetic : ndarray of shape (n_columns, n_columns)
    reference : ndarray of shape (n_columns, n_columns), default=None

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure
    im_ : matplotlib.image.AxesImage

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn.datasets import load_iris
    >>> from skdpgen.evaluation import PairwiseDisplay
    >>> X = load_iris(as_frame=True).frame
    >>> display = PairwiseDisplay.from_samples(X)
    >>> bool(display.synthetic[2, 3] > display.synthetic[0, 1])
    True
    >>> plt.close()
    """

    def __init__(self, names: Sequence[str], synthetic, reference=None) -> None:
        self.names = names
        self.synthetic = synthetic
        self.reference = reference

    @classmethod
    def _from_columns(cls, columns):
        tables = ["synthetic", *["reference"] * (columns[0].reference is not None)]
        matrices = [
            np.array([[associate(a, b, which) for b in columns] for a in columns])
            for which in tables
        ]
        return cls([column.name for column in columns], *matrices)

    def plot(self, ax=None, **kwargs) -> "PairwiseDisplay":
        """Plot synthetic rows above the diagonal, and the reference, if there is one, below it.

        Parameters
        ----------
        ax : Axes, default=None
            None: those of a new figure.
        **kwargs : dict
            Parameters of matplotlib's ``imshow``.

        Returns
        -------
        self : object
        """
        n = len(self.names)
        ax = self._take_axes(ax, size=(max(5, 0.4 * n + 2),) * 2)
        # Associations are symmetric: half of the matrix shows them all.
        shown = np.triu(self.synthetic, 1)
        shown += np.tril(self.synthetic if self.reference is None else self.reference, -1)
        # A column's association with itself is 1, and would dominate the picture.
        shown[np.diag_indices(n)] = np.nan
        self.im_ = ax.imshow(shown, **{"cmap": "Blues", "vmin": 0, "vmax": 1, **kwargs})
        ax.set_xticks(range(n), self.names, rotation=90, fontsize="small")
        ax.set_yticks(range(n), self.names, fontsize="small")
        if self.reference is not None:
            ax.set_title("above: synthetic; below: reference", fontsize="medium")
        self.figure_.colorbar(self.im_, ax=ax, label="Cramér's V", shrink=0.7)
        return self
