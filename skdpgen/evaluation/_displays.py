# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of synthetic rows, as displays of scikit-learn's kind."""

import math

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ._coding import as_table, code_columns
from ._comparisons import associate

_MOST_COLUMNS = 16


class Display:
    """What displays share: axes, and the figure that they are in.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes or ndarray of them
    figure_ : matplotlib.figure.Figure
    """

    def _take_axes(self, ax, shape=None, size=(6.4, 4.8)):
        """Set `ax_` and `figure_`, of a new figure if there is none, and return the axes."""
        plt = import_pyplot()
        if ax is None:
            _, ax = plt.subplots(*(shape or (1, 1)), figsize=size, layout="constrained")
        elif shape is not None and np.size(ax) < math.prod(shape):
            raise ValueError(f"ax must hold {math.prod(shape)} axes; got {np.size(ax)}.")
        self.ax_ = ax
        self.figure_ = np.ravel(ax)[0].figure
        return ax if shape is None else np.ravel(ax)


def import_pyplot():
    """Return matplotlib's pyplot, or say how to get it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("Displays need matplotlib: pip install 'skdpgen[plots]'.") from None
    return plt


def draw_samples(estimator, n_samples, random_state):
    """Return synthetic rows, and labels or None."""
    check_is_fitted(estimator, "privacy_")
    made = estimator.sample(n_samples, random_state=random_state)
    return made if isinstance(made, tuple) else (made, None)


class SyntheticSamplesDisplay(Display):
    """Synthetic rows: images side by side, or points.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_samples, n_features)
        Synthetic rows.
    y : array-like of shape (n_samples,), default=None
        Their labels.
    image_shape : tuple of int, default=None
        (height, width) or (channels, height, width), of rows that are images. None: rows are
        points, of which the first two columns of numbers are shown, or all rows if there is one.

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
            Fitted.
        n_samples : int, default=40
        image_shape : tuple of int, default=None
        random_state : None, int or RandomState, default=None
        ax : Axes or array of Axes, default=None
        **kwargs : dict
            Of matplotlib's ``imshow`` or ``scatter``.

        Returns
        -------
        SyntheticSamplesDisplay
        """
        X, y = draw_samples(estimator, n_samples, random_state)
        return cls(X, y, image_shape=image_shape).plot(ax=ax, **kwargs)

    def plot(self, ax=None, **kwargs) -> "SyntheticSamplesDisplay":
        """Plot.

        Parameters
        ----------
        ax : Axes or array of Axes, default=None
            None: of a new figure.
        **kwargs : dict
            Of matplotlib's ``imshow`` or ``scatter``.

        Returns
        -------
        self : object
        """
        if self.image_shape is None:
            return self._plot_points(ax, kwargs)
        images = np.asarray(self.X).reshape(-1, *self.image_shape)
        if images.ndim == 4:
            images = np.moveaxis(images, 1, -1)
        n_wide = min(10, len(images))
        shape = (math.ceil(len(images) / n_wide), n_wide)
        axes = self._take_axes(ax, shape, (n_wide * 0.8, shape[0] * 0.9))
        options = {"cmap": "gray", "vmin": images.min(), "vmax": images.max(), **kwargs}
        if images.ndim == 4:  # colours are in [0, 1]
            images = (images - images.min()) / max(np.ptp(images), 1e-12)
        for i, place in enumerate(axes):
            place.set_axis_off()
            if i < len(images):
                place.imshow(images[i], **options)
                if self.y is not None:
                    place.set_title(str(np.asarray(self.y)[i]), fontsize="small")
        return self

    def _plot_points(self, ax, kwargs):
        columns = code_columns(as_table(self.X))
        numbers = [(c.name, c.numbers[0]) for c in columns if c.is_number][:2]
        if not numbers:
            raise ValueError("There are no columns of numbers to show; see MarginalsDisplay.")
        if len(numbers) == 1:
            numbers.insert(0, ("row", np.arange(len(numbers[0][1]))))
        place = self._take_axes(ax)
        labels = np.zeros(len(numbers[0][1])) if self.y is None else np.asarray(self.y)
        options = {"s": 12, **kwargs}
        for label in np.unique(labels):
            chosen = labels == label
            said = None if self.y is None else str(label)
            place.scatter(numbers[0][1][chosen], numbers[1][1][chosen], label=said, **options)
        place.set(xlabel=numbers[0][0], ylabel=numbers[1][0])
        if self.y is not None:
            place.legend()
        return self


class MarginalsDisplay(Display):
    """Shares of the values of each column, of synthetic rows and of a reference.

    Parameters
    ----------
    columns : list of CodedColumn
        As `from_samples` makes them.

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

    def __init__(self, columns):
        self.columns = columns

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
    ) -> "MarginalsDisplay":
        """Sample from a fitted generator and plot.

        Parameters
        ----------
        estimator : generator
            Fitted.
        reference : DataFrame or array-like, default=None
            **Public** rows with the same columns, labels among them.
        n_samples : int, default=None
            None: as many as were fitted.
        random_state : None, int or RandomState, default=None
        ax : array of Axes, default=None
            One for each column.
        **kwargs : dict
            Of matplotlib's ``barh``.

        Returns
        -------
        MarginalsDisplay
        """
        synthetic = as_table(*draw_samples(estimator, n_samples, random_state))
        return cls.from_samples(synthetic, reference, ax=ax, **kwargs)

    @classmethod
    def from_samples(cls, synthetic, reference=None, *, ax=None, **kwargs) -> "MarginalsDisplay":
        """Plot the columns of synthetic rows, and of a reference.

        Parameters
        ----------
        synthetic : DataFrame or array-like
        reference : DataFrame or array-like, default=None
            **Public** rows with the same columns.
        ax : array of Axes, default=None
        **kwargs : dict
            Of matplotlib's ``barh``.

        Returns
        -------
        MarginalsDisplay
        """
        return cls(_code(synthetic, reference)).plot(ax=ax, **kwargs)

    def plot(self, ax=None, **kwargs) -> "MarginalsDisplay":
        """Plot the first 16 columns, or as many as there are axes.

        Parameters
        ----------
        ax : array of Axes, default=None
            None: of a new figure.
        **kwargs : dict
            Of matplotlib's ``barh``.

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
        for place, column in zip(axes, self.columns, strict=False):
            at = np.arange(len(column.levels))
            if column.reference is not None:
                shares = column.shares(column.reference)
                place.barh(at, shares, 0.9, color="0.7", label="reference")
            shares = column.shares(column.synthetic)
            place.barh(at, shares, 0.5, **{"color": "tab:blue", "label": "synthetic", **kwargs})
            place.set_yticks(at, column.levels, fontsize="x-small")
            place.invert_yaxis()
            place.set_title(column.name, fontsize="medium")
        axes[0].legend(fontsize="x-small")
        return self


class PairwiseDisplay(Display):
    """How strongly pairs of columns go together, by Cramér's V; numbers are cut into ranges.

    Parameters
    ----------
    names : list of str
    synthetic : ndarray of shape (n_columns, n_columns)
    reference : ndarray of shape (n_columns, n_columns) or None

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

    def __init__(self, names, synthetic, reference=None):
        self.names = names
        self.synthetic = synthetic
        self.reference = reference

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
    ) -> "PairwiseDisplay":
        """Sample from a fitted generator and plot.

        Parameters
        ----------
        estimator : generator
            Fitted.
        reference : DataFrame or array-like, default=None
            **Public** rows with the same columns, labels among them.
        n_samples : int, default=None
            None: as many as were fitted.
        random_state : None, int or RandomState, default=None
        ax : Axes, default=None
        **kwargs : dict
            Of matplotlib's ``imshow``.

        Returns
        -------
        PairwiseDisplay
        """
        synthetic = as_table(*draw_samples(estimator, n_samples, random_state))
        return cls.from_samples(synthetic, reference, ax=ax, **kwargs)

    @classmethod
    def from_samples(cls, synthetic, reference=None, *, ax=None, **kwargs) -> "PairwiseDisplay":
        """Plot associations of the columns of synthetic rows, and of a reference.

        Parameters
        ----------
        synthetic : DataFrame or array-like
        reference : DataFrame or array-like, default=None
            **Public** rows with the same columns.
        ax : Axes, default=None
        **kwargs : dict
            Of matplotlib's ``imshow``.

        Returns
        -------
        PairwiseDisplay
        """
        columns = _code(synthetic, reference)
        tables = ["synthetic"] if reference is None else ["synthetic", "reference"]
        matrices = [
            np.array([[associate(a, b, which) for b in columns] for a in columns])
            for which in tables
        ]
        return cls([column.name for column in columns], *matrices).plot(ax=ax, **kwargs)

    def plot(self, ax=None, **kwargs) -> "PairwiseDisplay":
        """Plot: synthetic rows above the diagonal, and below it the reference, if there is one.

        Parameters
        ----------
        ax : Axes, default=None
            None: of a new figure.
        **kwargs : dict
            Of matplotlib's ``imshow``.

        Returns
        -------
        self : object
        """
        n = len(self.names)
        place = self._take_axes(ax, size=(max(5, 0.4 * n + 2),) * 2)
        shown = np.triu(self.synthetic, 1)
        shown += np.tril(self.synthetic if self.reference is None else self.reference, -1)
        shown[np.diag_indices(n)] = np.nan
        self.im_ = place.imshow(shown, **{"cmap": "Blues", "vmin": 0, "vmax": 1, **kwargs})
        place.set_xticks(range(n), self.names, rotation=90, fontsize="small")
        place.set_yticks(range(n), self.names, fontsize="small")
        if self.reference is not None:
            place.set_title("above: synthetic; below: reference", fontsize="medium")
        self.figure_.colorbar(self.im_, ax=place, label="Cramér's V", shrink=0.7)
        return self


def _code(synthetic, reference):
    return code_columns(as_table(synthetic), None if reference is None else as_table(reference))
