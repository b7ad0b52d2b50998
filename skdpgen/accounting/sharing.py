# SPDX-License-Identifier: BSD-3-Clause
"""Noise in shares: several owners add up their rows, and each adds a part of the noise."""

import math
from dataclasses import dataclass, replace

from dp_accounting import GaussianDpEvent

from ..exceptions import PlanError
from .events import SharedGaussianDpEvent, check_owners


@dataclass(frozen=True)
class Sharing:
    """How many owners add up their rows together, and whose noise does not count.

    The server is honest but curious: it follows the protocol, and may look at everything. Owners
    do not check that it tells all of them the same list of who stayed.

    Parameters
    ----------
    n_owners : int
        K.
    n_dropouts : int, default=0
        D: so many may drop out. If more do, nothing is released.
    n_colluding : int, default=1
        A: so many may tell others their noise and their masks. An owner who sees the release knows
        its own noise, and is one of them.

    Raises
    ------
    ValueError
        If these are no whole numbers, or no owner is left whose noise counts.

    Examples
    --------
    >>> Sharing(20, n_dropouts=2, n_colluding=1).n_shares
    17
    """

    n_owners: int
    n_dropouts: int = 0
    n_colluding: int = 1

    def __post_init__(self):
        check_owners(self.n_owners, self.n_dropouts, self.n_colluding)

    @property
    def n_shares(self):
        """How many shares of the noise are enough: K - D - A."""
        return self.n_owners - self.n_dropouts - self.n_colluding

    @property
    def min_samples(self):
        """How many owners have to stay: K - D."""
        return self.n_owners - self.n_dropouts

    def cover(self, plan):
        """Return a plan whose one release gets its noise in shares, at the same price.

        Raises
        ------
        PlanError
            If it plans something else than one Gaussian release of records.
        """
        (name, event), *others = plan.releases
        if others or not isinstance(event, GaussianDpEvent) or plan.max_rows is not None:
            raise PlanError(
                "Several owners add up one Gaussian release of records, with noise, and without "
                "persons=...: declare kinds, bounds, knots and levels of all columns, and a target "
                "of two or three levels, by which no three-way tables are sought. Planned are: "
                f"{', '.join(planned for planned, _ in plan.releases)}."
            )
        shared = SharedGaussianDpEvent(
            event.noise_multiplier, self.n_owners, self.n_dropouts, self.n_colluding
        )
        return replace(plan, releases=((name, shared),))

    @property
    def assumptions(self):
        """What a certificate rests on, beside the noise."""
        return (
            f"of {self.n_owners} owners, {self.n_colluding} at most tell anybody their noise or "
            "masks",
            "the server is trusted to follow the protocol: it hands out the owners' own public "
            "keys and tells all owners the same list of who stayed; one that does not can read the "
            "sum of a single owner",
            "owners run this library unchanged; who drops out follows from no row",
            "masks hide what they are added to (X25519, HKDF and ChaCha20)",
        )


def sum_divergence(std, n_shares):
    """Bound how far a sum of rounded Gaussians is from a rounded sum, in max-divergence.

    Let N be the sum of m numbers round(G_i), G_i ~ N(0, s²) independent; and let N* be
    round(G_1 + … + G_m + U_1 + … + U_{m-1}), with U_i uniform on [-1/2, 1/2]. Then
    e^-τ ≤ P(N = n) / P(N* = n) ≤ e^τ for each n, where τ is what is returned. See
    `SharedGaussianDpEvent` for the proof.

    Parameters
    ----------
    std : float
        s, in units of the grid.
    n_shares : int
        m.

    Returns
    -------
    float
        τ = -Σ_k log(1 - θ_k) over k = 1 … m-1, where θ_k bounds 2 Σ_j exp(-2π²s²j² k/(k+1)), j ≥ 1;
        ``inf`` where that is not below 1.

    Examples
    --------
    >>> sum_divergence(1.0, 2) < 1.1e-4
    True
    """
    tau = 0.0
    for k in range(1, n_shares):
        exponent = 2 * math.pi**2 * std**2 * k / (k + 1)
        # j² ≥ 1 + 3(j - 1): a geometric series.
        theta = 2 * math.exp(-exponent) / -math.expm1(-3 * exponent) if exponent > 0 else math.inf
        if theta >= 1:
            return math.inf
        tau -= math.log1p(-theta)
    return tau
