# SPDX-License-Identifier: BSD-3-Clause
"""Distributed Gaussian noise: each of several clients adds a share of it (experimental)."""

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
