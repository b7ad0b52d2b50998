# SPDX-License-Identifier: BSD-3-Clause
"""Local differential privacy: noise on each row, added by its client."""

import math
from dataclasses import dataclass, replace

from ..accounting.certificate import Certificate
from ..accounting.plan import Plan, Terms
from ..arrays.ball import BallFormat
from ..checks import budget_share, one_of, positive
from ..exceptions import FitQualityWarning, warn_caller
from ..mechanisms.local import DEVIATIONS, LocalRowsMechanism, local_plan
from ..params import documented
from .release import Release

# The norm of the ball, and of the cost ‖·‖_p^p, for each noise.
_NORMS = {"laplace": 1, "gaussian": 2}
# Least ratio of half the range of a column to the noise on its mean; see `LocalNoise.min_samples`.
_LEAST_SIGNAL = 4.0


@documented
@dataclass(eq=False, repr=False)
class LocalNoise(Release):
    """Noise on each row, added once by its client: local differential privacy.

    Parameters
    ----------
    %(local)s

    See Also
    --------
    LocalPrivatizer : The part of the clients.

    Examples
    --------
    >>> from skdpgen import LDPEntropicGAN
    >>> LDPEntropicGAN(release="gaussian").set_params(release__basis="dct").release
    LocalNoise(basis='dct', mechanism='gaussian')
    """

    mechanism: str = "laplace"
    basis: str | None = None
    keep: float | None = None
    label_share: float = 0.2

    _checks = {
        "mechanism": one_of(*_NORMS),
        "basis": one_of(None, "dct"),
        "keep": positive(optional=True, most=1),
        "label_share": budget_share,
    }

    def _check_params(self):
        super()._check_params()
        if self.keep is not None and self.basis is None:
            raise ValueError("keep is a share of cosine coefficients: set basis='dct' as well.")

    def make_format(
        self, n_features: int, *, bounds=None, radius: float | None = None, **public
    ) -> BallFormat:
        """Return the `BallFormat` of rows, with a warning if their scale is not declared."""
        if bounds is None and radius is None:
            warn_caller(
                "Without bounds and clip_norm each client projects its row onto the unit ball, so "
                "that rows in other units lose their norms. Declare bounds=(lower, upper) or "
                "clip_norm.",
                FitQualityWarning,
            )
        return BallFormat(
            n_features,
            bounds=bounds,
            radius=radius,
            p=_NORMS[self.mechanism],
            basis=self.basis,
            keep=self.keep,
            **public,
        )

    def plan(self, terms: Terms, format) -> Plan:
        """Return the `Plan` of each record, and of its label unless n_classes is None."""
        plan = local_plan(
            format.p,
            terms.n_classes,
            terms.epsilon,
            terms.delta,
            label_share=self.label_share,
            accountant=terms.accountant,
        )
        return replace(plan, sigma=(plan.sigma or 0.0) * format.radius)

    def min_samples(self, plan: Plan, terms: Terms, format) -> int:
        """Return the number of records at which the noise on the mean of a column is small.

        It is then an eighth of the column's range, as on breast cancer and blobs of three columns
        (`run_rows_needed.py`). With c classes this holds for each class, of which a share
        (e^ε - 1) / (e^ε + c - 1) of the noised labels is unchanged by design.
        """
        noise = (plan.sigma or 0.0) / format.radius * format.n_columns ** (1 / format.p)
        unchanged = 1.0
        if terms.n_classes is not None and terms.n_classes > 1:
            # The share is 1 in doubles from ε = 100 on, far below an overflow.
            odds = math.expm1(min(100.0, self.label_share * terms.epsilon))
            unchanged = odds / (odds + terms.n_classes)
        return math.ceil((terms.n_classes or 1) * (_LEAST_SIGNAL * noise / unchanged) ** 2)


def find_local_sigma(certificate: Certificate, format: BallFormat) -> float:
    """Return the standard deviation of the noise on rows of a format, as certified."""
    mechanism = LocalRowsMechanism(format.p)
    scale = certificate.find_sigma(mechanism.name, mechanism.sensitivity) or 0.0
    return scale * DEVIATIONS[format.p] * (format.radius or 0.0)
