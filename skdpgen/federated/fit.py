# SPDX-License-Identifier: BSD-3-Clause
"""Federated fits: a generator is fitted to the sum of several clients' rows (experimental)."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone

from .._version import __version__
from ..accounting.provenance import UNSAID
from ..curator.partitions import PartitionedTable
from ..exceptions import EndOfFit, PlanError
from .sharing import Sharing


@dataclass(frozen=True, eq=False)
class FederatedFit:
    """Public agreement of clients and a server, before anybody reads a row (experimental).

    The server is trusted to follow the protocol: see `Sharing`.

    Parameters
    ----------
    generator : estimator
        Unfitted, with ``release="pairs"`` and a `Schema` that leaves nothing open, knots of
        numbers included. The noise of clients never depends on its `random_state`.
    sharing : Sharing
        Numbers of clients, dropouts and colluding clients.
    n_records : int
        Number of rows of all clients together.
    target : str, default=None
        As of ``generator.fit``.

    Attributes
    ----------
    digest : str
        Equal for equal agreements.

    Raises
    ------
    ValueError
        If there are fewer rows than clients.

    Examples
    --------
    Three clients, of which one drops out:

    >>> import numpy as np
    >>> import pandas as pd
    >>> from skdpgen import Boolean, DPSWFlowSampler, Number, Schema
    >>> from skdpgen.privacy import Aggregator, Client, FederatedFit, Sharing
    >>> rng = np.random.default_rng(0)
    >>> tables = [
    ...     pd.DataFrame({"age": rng.integers(18, 90, 500), "ill": rng.random(500) < 0.1})
    ...     for _ in range(3)
    ... ]
    >>> schema = Schema({"age": Number(18, 90, n_knots=9), "ill": Boolean()})
    >>> sampler = DPSWFlowSampler(2.0, 1e-5, schema=schema, release="pairs", n_steps=20)
    >>> agreed = FederatedFit(sampler, Sharing(3, n_dropouts=1, n_colluding=1), n_records=1500)
    >>> clients = [Client(agreed, position) for position in range(3)]
    >>> keys = {client.position: client.public_key for client in clients}
    >>> def aggregate():
    ...     aggregator = Aggregator(agreed, keys)
    ...     for client in clients[:2]:
    ...         aggregator.add(client.make_update(tables[client.position], keys))
    ...     survivors = aggregator.close()
    ...     return aggregator.unmask({i: clients[i].unmask(survivors) for i in survivors})
    >>> fitted = agreed.fit(tables[0].iloc[:0], aggregate)
    >>> fitted.privacy_.events[0].n_dropouts, fitted.epsilon_ <= 2.0
    (1, True)
    """

    generator: BaseEstimator
    sharing: Sharing
    n_records: int
    target: str | None = None

    def __post_init__(self):
        # A whole number in type, too: True or 5.0 would have another digest.
        if type(self.n_records) is not int or self.n_records < self.sharing.n_clients:
            raise ValueError(
                "n_records must be a whole number, at least one row for each client; got "
                f"{self.n_records!r}."
            )

    @property
    def digest(self) -> str:
        params = self.generator.get_params()
        agreed = [f"{name}={params[name]!r}" for name in sorted(params)]
        # Parameters that may differ between clients, such as devices, are no part of the agreement.
        agreed = [text for text in agreed if text.partition("=")[0] not in UNSAID]
        # The version is part of it: releases of the library may compute other sums.
        words = [type(self.generator).__name__, *agreed, self.sharing, self.n_records, self.target]
        return hashlib.sha256(repr([__version__, *words]).encode()).hexdigest()

    def fit(self, head: pd.DataFrame, aggregate: Callable[[], np.ndarray]) -> BaseEstimator:
        """Return the generator, fitted to the sum: for the server, or whoever gets the sum.

        Parameters
        ----------
        head : DataFrame
            A table with the columns and dtypes of all clients; its rows are not read.
        aggregate : callable
            Collects the clients' sums, and returns the value of `Aggregator.unmask`. It is called
            once, after the release was paid for.

        Returns
        -------
        estimator

        Raises
        ------
        PlanError
            If more than one release is planned, or one without noise; `aggregate` is not called.
        SpentError
            If `aggregate` fails.
        """
        # Without rows: the server knows names and dtypes of columns only.
        table = _AggregatedTable(head.iloc[:0], self, aggregate)
        return clone(self.generator).fit(table, target=self.target)


def make_share(agreed: FederatedFit, X: pd.DataFrame) -> np.ndarray:
    """Return the sum over the rows of one client with its share of the noise, not yet masked."""
    # The fit also checks the plan, budgets and the ledger.
    # No seed: whoever knows it could subtract this client's noise.
    generator = clone(agreed.generator).set_params(random_state=None, verbose=0)
    try:
        generator.fit(_ClientTable(X, agreed), target=agreed.target)
    # By an exception, which ends the fit before it goes on with numbers that nobody has yet.
    except _ShareReady as share:
        return share.numbers
    raise PlanError("The fit made no release: there is no sum to share.")


class _FederatedTable(PartitionedTable):
    """Rows of clients; their number is that of all clients together."""

    engine = None

    def __init__(self, frame, agreed):
        super().__init__(frame)
        self.sharing, self.n_units = agreed.sharing, agreed.n_records

    @property
    def _empty_frame(self):
        return self._frame.iloc[:0]

    def _group_by_person(self, name):
        raise ValueError(
            "A federated fit cannot protect persons, whose rows several clients may hold: it is "
            "for records."
        )

    def _add_up_pairs(self, other, name, function):
        self._group_by_person(name)


class _ClientTable(_FederatedTable):
    """The rows of one client; a release of it would be its share."""

    def __init__(self, frame, agreed):
        # More rows than all clients have together would make n_records, on the certificate, a false
        # number.
        if not 0 < len(frame) <= agreed.n_records:
            raise ValueError("A client has rows, and no more than all clients have together.")
        super().__init__(frame, agreed)

    def _iter_partitions(self):
        yield self._frame

    def _add_up(self, function):
        return function(self._frame)

    def run(self, mechanism, source, event, *, relation, noise):
        n_shares = self.sharing.n_shares
        raise _ShareReady(
            mechanism.make_share(source, event, relation=relation, noise=noise, n_shares=n_shares)
        )


class _ShareReady(EndOfFit):
    """Ends the fit of a client where it would release something, and holds its share."""

    def __init__(self, numbers):
        super().__init__()
        self.numbers = numbers


class _AggregatedTable(_FederatedTable):
    """The rows of all clients, of which only the noisy sum is known."""

    def __init__(self, head, agreed, aggregate):
        super().__init__(head, agreed)
        self._aggregate = aggregate

    def _iter_partitions(self):
        return iter(())

    def _add_up(self, function):
        return [self._total]

    def run(self, mechanism, source, event, *, relation, noise):
        # Asked for only now, when the plan and the budget have accepted the release.
        self._total = self._aggregate()
        return mechanism.take_sum(source, event, relation=relation, total=self._total)
