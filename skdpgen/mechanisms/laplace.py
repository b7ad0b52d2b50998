# SPDX-License-Identifier: BSD-3-Clause
"""Sums of bounded vectors with Laplace noise, for methods of authors."""

from dataclasses import replace

from dp_accounting import DpEvent, LaplaceDpEvent, NonPrivateDpEvent

from ..data.rows import sum_rows
from ..exceptions import PlanError
from .sums import GaussianSumMechanism


class LaplaceSumMechanism(GaussianSumMechanism):
    """The sum of a vector-valued function of the rows, clipped in L1 norm, with Laplace noise.

    Its event is a ``LaplaceDpEvent``, of pure ε:
    ``terms.plan_steps(name, LaplaceDpEvent, 1, sensitivity=radius)``.

    Parameters are those of `GaussianSumMechanism`, with a radius of the L1 norm.

    Examples
    --------
    >>> from skdpgen.privacy import LaplaceSumMechanism, RecordFunction
    >>> LaplaceSumMechanism(RecordFunction(abs), 0.5).sensitivity("replace_one")
    1.0
    """

    norm_order = 1

    def check(self, event: DpEvent) -> None:
        """Raise a `PlanError` unless the event has Laplace noise; see `Mechanism.check`."""
        if not isinstance(event, LaplaceDpEvent | NonPrivateDpEvent):
            raise PlanError(f"{self.name!r} is a LaplaceDpEvent; it is planned as {event}.")

    def query(self, source, event, relation, noise):
        return replace(super().query(source, event, relation, noise), is_laplace=True)

    def _clip(self, vectors):
        return vectors * (self.radius / sum_rows(vectors.abs()).clamp(min=self.radius))
