# SPDX-License-Identifier: BSD-3-Clause
"""The release of local privacy: each row, noised by its owner."""

import math
import numbers
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..arrays.ball import BallFormat
from ..checks import budget_share, one_of, positive
from ..exceptions import FitQualityWarning
from ..mechanisms.local import DEVIATIONS, LocalRowsMechanism, local_plan
from ..params import parameters
from .release import Release

# Which norm, and which cost ‖·‖_p^p, goes with which local noise.
_NORMS = {"laplace": 1, "gaussian": 2}


@parameters
class LocalNoise(Release):
    """Noise on each row, once, which its owner adds: local privacy.

    Parameters
    ----------
    %(local)s

    See Also
    --------
    LocalPrivatizer : The owners' half.

    Examples
    --------
    >>> from skdpgen import LDPEntropicGAN
    >>> LDPEntropicGAN(release="gaussian").set_params(release__basis="dct").release
    LocalNoise(basis='dct', mechanism='gaussian')
    """

    mechanism: str = "laplace"
    basis: str | None = None
    keep: float | None = None
    image_shape: Sequence | None = None
    label_share: float = 0.2

    _checks = {
        "mechanism": one_of(*_NORMS),
        "basis": one_of(None, "dct"),
        "keep": positive(optional=True, most=1),
        "image_shape": lambda name, value: _check_image_shape(name, value),
        "label_share": budget_share,
    }

    def _check_params(self):
        super()._check_params()
        if self.keep is not None and self.basis is None:
            raise ValueError("keep is a share of cosine coefficients, for basis='dct'.")

    def make_format(self, n_features, *, bounds=None, radius=None, **public):
        """Return the `BallFormat` of rows; it warns of what is known of them by nobody."""
        if bounds is None and radius is None:
            warnings.warn(
                "Without bounds and clip_norm each row is projected on the unit ball as it is: "
                "rows in other units lose their norms. Declare bounds=(lower, upper) or clip_norm.",
                FitQualityWarning,
                stacklevel=2,
            )
        return BallFormat(
            n_features,
            bounds=bounds,
            radius=radius,
            p=_NORMS[self.mechanism],
            basis=self.basis,
            keep=self.keep,
            image_shape=None if self.image_shape is None else tuple(self.image_shape),
            **public,
        )

    def plan(self, terms, format):
        """Return the `Plan` of each record, and of its label unless n_classes is None."""
        plan = local_plan(
            format.p,
            terms.n_classes,
            terms.epsilon,
            terms.delta,
            label_share=self.label_share,
            accountant=terms.accountant,
        )
        return replace(plan, sigma=plan.sigma * format.radius)

    def min_samples(self, plan, terms, format):
        """Return how many records it takes for the mean of a column to be known to its range.

        With several classes, in each of them: of the noised labels a share p, which is
        (e^ε - 1) / (e^ε + c - 1), say what they are.
        """
        noise = plan.sigma / format.radius * format.n_columns ** (1 / format.p)
        told = 1.0
        if terms.n_classes is not None and terms.n_classes > 1:
            epsilon = self.label_share * terms.epsilon
            told = (
                1
                if epsilon > 100
                else math.expm1(epsilon) / (math.expm1(epsilon) + terms.n_classes)
            )
        return math.ceil(terms.n_classes * (noise / told) ** 2)


def find_local_sigma(certificate, format):
    """Return the standard deviation of the noise on rows of a format, as certified."""
    mechanism = LocalRowsMechanism(format.p)
    scale = certificate.find_sigma(mechanism.name, mechanism.sensitivity)
    return scale * DEVIATIONS[format.p] * format.radius


def _check_image_shape(name, value):
    if value is None:
        return
    sides = list(value) if isinstance(value, Iterable) else []
    whole = all(isinstance(side, numbers.Integral) and side > 0 for side in sides)
    if len(sides) not in (2, 3) or not whole:
        raise ValueError(
            f"{name} must be (height, width) or (channels, height, width); got {value!r}."
        )
