# SPDX-License-Identifier: BSD-3-Clause
"""Displays of curves over ε: privacy profiles and utility."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.base import clone

from .._process.muting import muted
from ..accounting.certificate import Certificate
from ..accounting.composition import compose
from ..accounting.rounding import show
from ..accounting.spending import report_finished_fits_on_error
from ..exceptions import PrivacyLeakWarning
from ._displays import Display


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
        ax = self._draw_line(ax, self.epsilon, drawn, kwargs, xlabel="ε", ylabel="δ", yscale="log")
        if self.stated is not None:
            epsilon, delta = self.stated
            ax.plot(epsilon, delta, "o", color=self.line_.get_color())
            ax.annotate(
                f"ε = {show(epsilon)}, δ = {show(delta)}",
                self.stated,
                xytext=(6, 6),
                textcoords="offset points",
            )


@dataclass(eq=False, repr=False)
class UtilityCurveDisplay(Display):
    """Utility of a generator over ε, by a score of its synthetic rows.

    Parameters
    ----------
    epsilon : ndarray of shape (n_points,)
    scores : ndarray of shape (n_points, n_repeats)
    privacy : Certificate, default=None
        The certificate of all fits together.

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

    epsilon: np.ndarray
    scores: np.ndarray
    privacy: Certificate | None = None

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
            An unfitted one, which is cloned.
        X, y : array-like or DataFrame
            Rows and labels to fit. **Use public rows.** Fits to private rows compose: `privacy` is
            the certificate of all of them, and each is charged to an open `PrivacyBudget`.
        scoring : callable
            ``scoring(fitted)`` returns a number. **It must not read private rows**, since the
            curve would reveal them.
        epsilon : sequence of float, default=(0.5, 1.0, 2.0, 4.0, 8.0)
        n_repeats : int, default=1
            Number of fits at each ε. With several, the range of their scores is drawn.
        fit_params : dict, default=None
            Parameters of `fit` beside `X` and `y`.
        name : str, default=None
            The label in the legend. None: the class of the estimator.
        ax, **kwargs
            As in `plot`.
        """
        scores: list[float] = []
        certificates: list[Certificate] = []
        for value in epsilon:
            for _ in range(n_repeats):
                fitted = clone(estimator).set_params(epsilon=value)
                with report_finished_fits_on_error(certificates):
                    fitted.fit(X, y, **(fit_params or {}))
                    certificates.append(fitted.privacy_)
                    # `score` warns that it reads rows; the docstring above says so.
                    with muted(PrivacyLeakWarning):
                        scores.append(float(scoring(fitted)))
        table = np.reshape(scores, (len(epsilon), n_repeats))
        kwargs = {"label": name or type(estimator).__name__, **kwargs}
        display = cls(np.asarray(epsilon, dtype=float), table, compose(*certificates))
        return display.plot(ax=ax, **kwargs)

    def _plot(self, ax, kwargs):
        """Plot the mean of the scores at each ε, on a logarithmic scale, and their range."""
        scores = np.asarray(self.scores)
        labels = {"xlabel": "ε", "ylabel": "score", "xscale": "log"}
        options = {"marker": "o", **kwargs}
        ax = self._draw_line(ax, self.epsilon, scores.mean(axis=1), options, **labels)
        if scores.shape[1] > 1:
            low, high = scores.min(axis=1), scores.max(axis=1)
            color = self.line_.get_color()
            ax.fill_between(self.epsilon, low, high, color=color, alpha=0.2)
