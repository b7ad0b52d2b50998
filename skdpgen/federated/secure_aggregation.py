# SPDX-License-Identifier: BSD-3-Clause
"""Secure aggregation: masked sums of clients, of which only the noisy total is revealed.

Experimental. Each client adds up its own rows on the common grid, as a single machine does; adds a
share of the noise; and masks the numbers, modulo 2^64. To anybody without the masks, what it sends
are random numbers. There are two kinds of masks. A *pair mask* is known to two clients, of which
one adds it and the other subtracts it: it cancels in their sum. A client's *own mask* is added by
that client alone. When the survivors are known, they reveal their own masks, and the pair masks
that they share with dropouts. So the server can remove the masks of the total and of nothing else:
a client that was counted as a dropout, and whose update arrives late, keeps its own mask.

This is the protocol of Bonawitz et al., "Practical Secure Aggregation for Privacy-Preserving
Machine Learning", CCS 2017, without its secret sharing: if a client drops out between its update
and the unmasking, the protocol fails before anything is revealed. It is secure against an
honest-but-curious server that colludes with at most `n_colluding` clients (see `Sharing`). It is
not secure against a server that departs from the protocol: clients do not compare their lists of
survivors, and a client that is in some of these lists only can be unmasked alone.
"""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from randomgen import ChaCha

from ..exceptions import PlanError, PublicRuntimeError
from .fit import FederatedFit, make_share


class Client:
    """One client, for one sum.

    Its keys come from the operating system. Only the client itself may pickle it, to keep it
    between messages: a restored copy could unmask twice, which reveals rows.

    Parameters
    ----------
    agreed : FederatedFit
        The agreement of clients and server.
    position : int
        Its number among the clients, from 0.

    Attributes
    ----------
    public_key : bytes
        For all other clients.

    Raises
    ------
    ImportError
        Without the package cryptography.
    """

    def __init__(self, agreed: FederatedFit, position: int):
        _check_position(agreed, position)
        self.agreed, self.position = agreed, position
        self._private_key = _x25519().X25519PrivateKey.generate().private_bytes_raw()
        # A mask besides those of pairs, which the others reveal if the server declares a dropout.
        self._own_seed = secrets.token_bytes(32)
        self._keys: dict[int, bytes] | None = None
        self._has_unmasked = False

    @property
    def public_key(self) -> bytes:
        key = _x25519().X25519PrivateKey.from_private_bytes(self._private_key)
        return key.public_key().public_bytes_raw()

    def make_update(self, X: pd.DataFrame, public_keys: dict[int, bytes]) -> "MaskedUpdate":
        """Add up the client's rows, with its share of the noise and its masks; once.

        Parameters
        ----------
        X : DataFrame
            The client's rows.
        public_keys : dict of int to bytes
            Those of the participating clients, by position, including its own.

        Returns
        -------
        MaskedUpdate
            For the server.

        Raises
        ------
        PlanError
            If it has made one before, or its own key is missing. No row is read then.
        RuntimeError
            If too few clients gave a key. No row is read then.
        ValueError
            If a key is invalid, or occurs twice. No row is read then.
        """
        # Two updates with the same masks differ by two sums in the clear.
        if self._keys is not None:
            raise PlanError("A client makes one update: another sum takes new clients, and noise.")
        _check_keys(self.agreed, public_keys)
        # A server that replaces the key could agree on masks in the client's name.
        if public_keys.get(self.position) != self.public_key:
            raise PlanError("The client's own public key is not among those that it was given.")
        others = {other: key for other, key in public_keys.items() if other != self.position}
        seeds = {other: self._agree(key) for other, key in others.items()}
        self._keys = dict(public_keys)
        share = make_share(self.agreed, X)
        # Modulo 2^64, in which masks cancel exactly and a masked number is uniform.
        masked = share.view(np.uint64).ravel() + expand(self._own_seed, share.size)
        for other, seed in seeds.items():
            mask = expand(seed, share.size)
            # One of a pair adds what the other subtracts.
            masked += mask if self.position < other else -mask
        return MaskedUpdate(self.position, self.agreed.digest, masked.reshape(share.shape))

    def unmask(self, survivors: Iterable[int]) -> dict[int, bytes]:
        """Reveal the seeds that unmask the sum of the survivors; once.

        Parameters
        ----------
        survivors : sequence of int
            The positions of the clients whose updates are in the sum.

        Returns
        -------
        dict of int to bytes
            By position: the seed of its own mask, and those of its pair masks with dropouts.

        Raises
        ------
        PlanError
            If there are too few survivors, this client is none, or it has done so before.
        """
        needed = self.agreed.sharing.min_clients
        if self._keys is None or self._has_unmasked:
            raise PlanError("A client unmasks once, after its update.")
        survivors = set(survivors)
        # Its own seed unmasks its own sum: it is revealed for sums that hold at least min_clients.
        is_in_sum = self.position in survivors and survivors <= set(self._keys)
        if not is_in_sum or len(survivors) < needed:
            raise PlanError(
                f"A client unmasks a sum that it is in, of at least {needed} clients who gave "
                f"keys; requested is that of {sorted(survivors)}."
            )
        # Set before the seeds leave: two lists of survivors would reveal both kinds of seeds of a
        # client.
        self._has_unmasked = True
        dropouts = set(self._keys) - survivors
        pairs = {other: self._agree(self._keys[other]) for other in dropouts}
        return {self.position: self._own_seed, **pairs}

    def _agree(self, public_key):
        """Return the seed that only this client and the one with a public key know."""
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        x25519, both = _x25519(), sorted([self.public_key, public_key])
        own = x25519.X25519PrivateKey.from_private_bytes(self._private_key)
        try:
            secret = own.exchange(x25519.X25519PublicKey.from_public_bytes(public_key))
        except ValueError:  # a point of small order, with which everybody has the same secret
            raise ValueError(f"{public_key.hex()} is no public key of a client.") from None
        # Bound to both keys and to the agreement, so that no mask serves two sums.
        info = b"".join([b"skdpgen pair mask", *both, self.agreed.digest.encode()])
        return HKDF(SHA256(), 32, salt=None, info=info).derive(secret)


@dataclass(frozen=True, eq=False)
class MaskedUpdate:
    """The message of a client to the server: random numbers to anybody without its masks.

    Attributes
    ----------
    position : int
        The client's number.
    digest : str
        That of the agreement.
    numbers : ndarray of uint64
        The client's sum with its share of the noise and its masks, modulo 2^64.
    """

    position: int
    digest: str
    numbers: np.ndarray


class Aggregator:
    """The server's part: it adds up masked updates, and removes the masks of the total.

    Parameters
    ----------
    agreed : FederatedFit
    public_keys : dict of int to bytes
        Those of the participating clients, as sent to them.

    Raises
    ------
    RuntimeError
        If too few clients gave a key.
    """

    def __init__(self, agreed: FederatedFit, public_keys: dict[int, bytes]):
        _check_keys(agreed, public_keys)
        self.agreed = agreed
        self._participants = set(public_keys)
        self._survivors: list[int] = []
        self._dropouts: set[int] | None = None
        self._sum: np.ndarray | None = None

    def add(self, update: MaskedUpdate) -> None:
        """Add an update to the sum.

        Raises
        ------
        ValueError
            If its client does not participate, or sent one before; if it is for another agreement;
            or if the sum is closed.
        """
        # The survivors were told that it is a dropout, and reveal its pair masks.
        if self._dropouts is not None:
            raise ValueError("The sum is closed: a client that comes late counts as a dropout.")
        if update.position not in self._participants or update.position in self._survivors:
            raise ValueError(f"No update is due of client {update.position!r}.")
        numbers = np.asarray(update.numbers)
        if (
            update.digest != self.agreed.digest
            or numbers.dtype != np.uint64
            or (self._sum is not None and numbers.shape != self._sum.shape)
        ):
            raise ValueError(
                f"Client {update.position} has agreed on something else: parameters, versions "
                "and numbers of rows and clients must be the same."
            )
        self._survivors.append(update.position)
        self._sum = numbers.copy() if self._sum is None else self._sum + numbers

    def close(self) -> list[int]:
        """Accept no more updates; return the positions of the survivors, for all of them.

        Raises
        ------
        RuntimeError
            If too many clients dropped out: then nothing is unmasked.
        """
        sharing = self.agreed.sharing
        if len(self._survivors) < sharing.min_clients:
            raise PublicRuntimeError(
                f"{len(self._survivors)} of {sharing.n_clients} clients sent an update, and "
                f"{sharing.min_clients} are needed for the noise. Nothing was unmasked."
            )
        self._dropouts = self._participants - set(self._survivors)
        return sorted(self._survivors)

    def unmask(self, revealed: dict[int, dict[int, bytes]]) -> np.ndarray:
        """Return the sum with its noise.

        Parameters
        ----------
        revealed : dict of int to dict
            The value of `Client.unmask` for each survivor.

        Returns
        -------
        ndarray of int64

        Raises
        ------
        RuntimeError
            If a seed is missing: then the sum stays masked.
        """
        dropouts, total = self._dropouts, self._sum
        due = {i: {i, *(dropouts or ())} for i in self._survivors}
        # One missing seed leaves the total random; numbers that look like a sum must not be
        # returned.
        is_complete = {i: set(seeds) for i, seeds in revealed.items()} == due
        if total is None or dropouts is None or not is_complete:
            raise PublicRuntimeError("The masks of all survivors are needed: the sum stays masked.")
        shape, total = total.shape, total.ravel()
        for position, seeds in revealed.items():
            total = total - expand(seeds[position], total.size)
            for other in dropouts:
                mask = expand(seeds[other], total.size)
                # Masks with dropouts have no counterpart in the sum.
                total = total - mask if position < other else total + mask
        # Two's complement: sums below zero come back with their sign.
        return total.view(np.int64).reshape(shape)


def expand(seed: bytes, n: int) -> np.ndarray:
    """Expand a seed of 32 bytes to n pseudorandom numbers of 64 bits."""
    return ChaCha(key=int.from_bytes(seed, "little"), rounds=20).random_raw(n)


def _check_position(agreed, position):
    if type(position) is not int or not 0 <= position < agreed.sharing.n_clients:
        raise ValueError(
            f"Positions of clients are 0 to {agreed.sharing.n_clients - 1}; got {position!r}."
        )


def _check_keys(agreed, public_keys):
    """Refuse invalid public keys, or those of too few clients."""
    for position, key in public_keys.items():
        _check_position(agreed, position)
        if not isinstance(key, bytes) or len(key) != 32:
            raise ValueError(f"The public key of client {position} must be 32 bytes.")
    # Equal keys make pair masks that others can compute.
    if len(set(public_keys.values())) < len(public_keys):
        raise ValueError("Two clients have the same public key.")
    if len(public_keys) < agreed.sharing.min_clients:
        raise PublicRuntimeError(
            f"{len(public_keys)} of {agreed.sharing.n_clients} clients gave a public key, and "
            f"{agreed.sharing.min_clients} are needed for the noise."
        )


def _x25519():
    try:
        from cryptography.hazmat.primitives.asymmetric import x25519
    except ImportError:
        raise ImportError("Masks need cryptography: pip install 'skdpgen[sign]'.") from None
    return x25519
