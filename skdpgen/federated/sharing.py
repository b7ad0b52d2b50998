# SPDX-License-Identifier: BSD-3-Clause
"""Distributed Gaussian noise: each of several clients adds a share of it (experimental)."""

import math
from dataclasses import dataclass, replace

from dp_accounting import GaussianDpEvent

from ..accounting.events import SharedGaussianDpEvent, check_clients
from ..accounting.plan import Plan
from ..exceptions import PlanError


@dataclass(frozen=True)
class Sharing:
    """Number of clients of a federated fit, of dropouts, and of colluding clients.

    The server is honest but curious: it follows the protocol, and may look at everything. Clients
    do not check that it sends all of them the same list of survivors.

    Parameters
    ----------
    n_clients : int
        K, the number of clients.
    n_dropouts : int, default=0
        D, the largest number of clients that may drop out. If more do, nothing is released.
    n_colluding : int, default=1
        A, the largest number of clients that may disclose their noise and their masks. A client
        that gets the release knows its own noise, and is one of them.

    Raises
    ------
    ValueError
        If these are no whole numbers, or no client is left whose noise is secret.

    Examples
    --------
    >>> Sharing(20, n_dropouts=2, n_colluding=1).n_shares
    17
    """

    n_clients: int
    n_dropouts: int = 0
    n_colluding: int = 1

    def __post_init__(self):
        check_clients(self.n_clients, self.n_dropouts, self.n_colluding)

    @property
    def n_shares(self) -> int:
        """Number of shares that make up the full noise: K - D - A."""
        # Colluding clients can subtract their own shares, and dropouts add none.
        return self.n_clients - self.n_dropouts - self.n_colluding

    @property
    def min_clients(self) -> int:
        """Smallest number of clients in a sum: K - D."""
        return self.n_clients - self.n_dropouts

    def cover(self, plan: Plan) -> Plan:
        """Return the plan with the noise of its one release in shares, at the same price.

        Raises
        ------
        PlanError
            If it plans anything but one Gaussian release of records.
        """
        (name, event), *others = plan.releases
        # A sum of Gaussian shares is Gaussian; several releases would take several rounds of masks.
        if others or not isinstance(event, GaussianDpEvent) or plan.max_rows is not None:
            raise PlanError(
                "A federated fit makes one Gaussian release of records, with noise, and without "
                "persons=...; planned are: "
                f"{', '.join(planned for planned, _ in plan.releases)}. Declare types, bounds, "
                "knots and levels of all columns, and give release='pairs', which measures no "
                "interactions."
            )
        shared = SharedGaussianDpEvent(
            event.noise_multiplier, self.n_clients, self.n_dropouts, self.n_colluding
        )
        return replace(plan, releases=((name, shared),))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions of a certificate, beside those on the noise."""
        return (
            f"of {self.n_clients} clients, at most {self.n_colluding} disclose their noise or "
            "masks",
            "the server is trusted to follow the protocol: it distributes the clients' own public "
            "keys and sends all clients the same list of survivors; one that does not can read the "
            "sum of a single client",
            "clients run this library unchanged; dropouts do not depend on rows",
            "masks hide the sums of single clients (X25519, HKDF and ChaCha20)",
        )


def sum_divergence(std: float, n_shares: int) -> float:
    """Bound the max-divergence of a sum of rounded Gaussians from a rounded sum.

    Let N be the sum of m numbers round(G_i), G_i ~ N(0, s²) independent; and let N* be
    round(G_1 + … + G_m + U_1 + … + U_{m-1}), with U_i uniform on [-1/2, 1/2]. Then
    e^-τ ≤ P(N = n) / P(N* = n) ≤ e^τ for each n, where τ is the returned bound. See
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
        # The bound does not hold for such little noise.
        if theta >= 1:
            return math.inf
        tau -= math.log1p(-theta)
    return tau
