# SPDX-License-Identifier: BSD-3-Clause
"""Curves over ε: what a certificate proves at other δ, and what ε buys."""

from collections.abc import Mapping, Sequence

import numpy as np
from sklearn.base import clone

from .._muting import muted
from ..accounting.certificate import Certificate
from ..accounting.composition import compose
from ..accounting.rounding import show
from ..accounting.spending import report_finished_fits_on_error
from ..exceptions import PrivacyLeakWarning
from ._displays import Display


class PrivacyProfileDisplay(Display):
    """ε against δ: a certificate proves not one pair, but a curve of them.

    Parameters
    ----------
    epsilon : ndarray of shape (n_points,)
    delta : ndarray of shape (n_points,)
        The δ that is proved at each ε.
    stated : (float, float), default=None
        The ε and δ of the certificate, which get a mark.

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

    def __init__(self, epsilon, delta, stated: tuple[float, float] | None = None) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.stated = stated

    @classmethod
    def from_estimator(
        cls, estimator, *, epsilon=None, name: str | None = None, ax=None, **kwargs
    ) -> "PrivacyProfileDisplay":
        """Plot the profile of a fitted estimator's certificate.

        Parameters
        ----------
        estimator : estimator or Certificate
            With a certificate ``privacy_``, or that itself.
        epsilon : array-like, default=None
            Where to look. None: 25 values up to twice the ε that is stated.
        name : str, default=None
            In the legend. None: that of the class.
        ax : Axes, default=None
        **kwargs : dict
            Of matplotlib's ``plot``.

        Returns
        -------
        PrivacyProfileDisplay

        Raises
        ------
        ValueError
            If the certificate's ε is infinite.
        """
        certificate = getattr(estimator, "privacy_", estimator)
        if not isinstance(certificate, Certificate):
            raise TypeError(
                f"{type(estimator).__name__} has no certificate privacy_: fit it before."
            )
        stated = certificate.epsilon
        if not np.isfinite(stated):
            raise ValueError("ε is infinite: there is nothing to show.")
        if epsilon is None:
            epsilon = np.linspace(0, 2 * stated or 1.0, 25)
        epsilon = np.asarray(epsilon, dtype=float)
        delta = np.array([certificate.delta_at(value) for value in epsilon])
        kwargs = {"label": name or type(estimator).__name__, **kwargs}
        return cls(epsilon, delta, (stated, certificate.delta)).plot(ax=ax, **kwargs)

    def plot(self, ax=None, **kwargs) -> "PrivacyProfileDisplay":
        """Plot δ, on a logarithmic scale, over ε.

        Parameters
        ----------
        ax : Axes, default=None
            None: of a new figure.
        **kwargs : dict
            Of matplotlib's ``plot``.

        Returns
        -------
        self : object
        """
        place = self._take_axes(ax)
        # A δ of 0 is on no logarithmic scale.
        drawn = np.where(np.asarray(self.delta) > 0, self.delta, np.nan)
        (self.line_,) = place.plot(self.epsilon, drawn, **kwargs)
        if self.stated is not None:
            epsilon, delta = self.stated
            place.plot(epsilon, delta, "o", color=self.line_.get_color())
            place.annotate(
                f"ε = {show(epsilon)}, δ = {show(delta)}",
                self.stated,
                xytext=(6, 6),
                textcoords="offset points",
            )
        place.set(xlabel="ε", ylabel="δ", yscale="log")
        if "label" in kwargs:
            place.legend()
        return self


class UtilityCurveDisplay(Display):
    """A score of synthetic rows against ε.

    Parameters
    ----------
    epsilon : ndarray of shape (n_points,)
    scores : ndarray of shape (n_points, n_repeats)
    privacy : Certificate, default=None
        Of all fits together.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
    figure_ : matplotlib.figure.Figure
    line_ : matplotlib.lines.Line2D

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> from sklearn.datasets import load_iris
    >>> from skdpgen import DPSWFlowSampler
    >>> from skdpgen.evaluation import UtilityCurveDisplay, frechet_distance
    >>> X = load_iris().data  # public
    >>> display = UtilityCurveDisplay.from_estimator(
    ...     DPSWFlowSampler(bounds=(0, 8), n_steps=20), X,
    ...     scoring=lambda sampler: -frechet_distance(sampler.sample(100), X),
    ...     epsilon=[1.0, 10.0], n_repeats=2)
    >>> display.scores.shape
    (2, 2)
    >>> plt.close()
    """

    def __init__(self, epsilon, scores, privacy=None):
        self.epsilon = epsilon
        self.scores = scores
        self.privacy = privacy

    @classmethod
    def from_estimator(
        cls,
        estimator,
        X,
        y=None,
        *,
        scoring,
        epsilon: Sequence[float] = (0.5, 1.0, 2.0, 4.0, 8.0),
        n_repeats: int = 1,
        fit_params: Mapping | None = None,
        name: str | None = None,
        ax=None,
        **kwargs,
    ) -> "UtilityCurveDisplay":
        """Fit copies of a generator at several ε, score each, and plot.

        Parameters
        ----------
        estimator : generator
            Which is not fitted itself.
        X, y : array-like or DataFrame
            What it is fitted to. **Use public rows.** All fits to private rows add up: what they
            cost together is in `privacy`, and a `PrivacyBudget` that is open is charged for each.
        scoring : callable
            ``scoring(fitted)`` returns a number. **It must not read private rows**, of which the
            curve would tell.
        epsilon : sequence of float, default=(0.5, 1.0, 2.0, 4.0, 8.0)
        n_repeats : int, default=1
            How many fits there are at each ε; of several, the range of their scores is shown.
        fit_params : dict, default=None
            What `fit` takes beside `X` and `y`.
        name : str, default=None
            In the legend. None: that of the class.
        ax : Axes, default=None
        **kwargs : dict
            Of matplotlib's ``plot``.

        Returns
        -------
        UtilityCurveDisplay
        """
        scores, certificates = [], []
        for value in epsilon:
            for _ in range(n_repeats):
                fitted = clone(estimator).set_params(epsilon=value)
                with report_finished_fits_on_error(certificates):
                    fitted.fit(X, y, **(fit_params or {}))
                    certificates.append(fitted.privacy_)
                    # What this says is said above.
                    with muted(PrivacyLeakWarning):
                        scores.append(float(scoring(fitted)))
        scores = np.reshape(scores, (len(epsilon), n_repeats))
        kwargs = {"label": name or type(estimator).__name__, **kwargs}
        display = cls(np.asarray(epsilon, dtype=float), scores, compose(*certificates))
        return display.plot(ax=ax, **kwargs)

    def plot(self, ax=None, **kwargs) -> "UtilityCurveDisplay":
        """Plot the mean of the scores at each ε, on a logarithmic scale, and their range.

        Parameters
        ----------
        ax : Axes, default=None
            None: of a new figure.
        **kwargs : dict
            Of matplotlib's ``plot``.

        Returns
        -------
        self : object
        """
        place = self._take_axes(ax)
        scores = np.asarray(self.scores)
        options = {"marker": "o", **kwargs}
        (self.line_,) = place.plot(self.epsilon, scores.mean(axis=1), **options)
        if scores.shape[1] > 1:
            place.fill_between(
                self.epsilon,
                scores.min(axis=1),
                scores.max(axis=1),
                color=self.line_.get_color(),
                alpha=0.2,
            )
        place.set(xlabel="ε", ylabel="score", xscale="log")
        if "label" in kwargs:
            place.legend()
        return self
