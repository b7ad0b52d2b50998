# SPDX-License-Identifier: BSD-3-Clause
"""Sums of rows that several owners hold, of which nobody sees more than the sum with its noise.

Each owner adds up its own rows, on the grid of all, by what a single machine does; adds a share of
the noise; and masks the numbers, modulo 2^64. What it sends is as random numbers to whoever lacks a
mask. There are two kinds of them. A *pair mask* is known to two owners, of whom one adds it and the
other subtracts it: in the sum of both it is gone. A *mask of its own* is added by each owner. Once
it is known who stayed, these reveal their own masks, and those that they share with who dropped
out. So the server can take away the masks of the sum, and of nothing else: numbers of an owner who
was taken for lost, and come late, keep the mask of its own, which nobody asks for.

That is the protocol of Bonawitz et al., "Practical Secure Aggregation for Privacy-Preserving
Machine Learning", CCS 2017, without its secret sharing: who drops out between the sum and the masks
makes all of it fail, before anything is seen. It is secure against an honest-but-curious server,
which follows the protocol and looks at everything, with as many colluding owners as `Sharing` says.
It is not secure against a server that departs from the protocol: owners do not compare the lists of
who stayed that they are told, and one who is in some of these lists only can be unmasked alone.
"""

import hashlib
import secrets
from dataclasses import dataclass

import numpy as np
from randomgen import ChaCha
from sklearn.base import clone

from .._version import __version__
from ..accounting.provenance import UNSAID
from ..accounting.sharing import Sharing
from ..engines.partitioned import PartitionedTable
from ..exceptions import PlanError


@dataclass(frozen=True, eq=False)
class JointFit:
    """What owners and a server agree on before anybody reads a row; all of it is public.

    Joint fits are experimental: the server is trusted to follow the protocol (see `Sharing`).

    Parameters
    ----------
    generator : estimator
        Unfitted, with a `Schema` that leaves nothing open, knots of numbers included. The noise of
        owners never follows from its `random_state`.
    sharing : Sharing
        How many owners there are, and how many may drop out or collude.
    n_records : int
        How many rows all owners have together.
    target : str, default=None
        As of ``generator.fit``.

    Attributes
    ----------
    digest : str
        The same for those who agree.

    Examples
    --------
    Three owners, of whom one drops out:

    >>> import numpy as np
    >>> import pandas as pd
    >>> from skdpgen import Boolean, DPSWFlowSampler, Number, Schema
    >>> from skdpgen.privacy import Adder, JointFit, Owner, Sharing
    >>> rng = np.random.default_rng(0)
    >>> tables = [
    ...     pd.DataFrame({"age": rng.integers(18, 90, 500), "ill": rng.random(500) < 0.1})
    ...     for _ in range(3)
    ... ]
    >>> schema = Schema({"age": Number(18, 90, n_knots=9), "ill": Boolean()})
    >>> sampler = DPSWFlowSampler(2.0, 1e-5, schema=schema, n_steps=20)
    >>> joint = JointFit(sampler, Sharing(3, n_dropouts=1, n_colluding=1), n_records=1500)
    >>> owners = [Owner(joint, position) for position in range(3)]
    >>> keys = {owner.position: owner.public_key for owner in owners}
    >>> def add_up():
    ...     adder = Adder(joint, keys)
    ...     for owner in owners[:2]:
    ...         adder.take(owner.contribute(tables[owner.position], keys))
    ...     stayed = adder.close()
    ...     return adder.unmask({position: owners[position].unmask(stayed) for position in stayed})
    >>> fitted = joint.fit(tables[0].iloc[:0], add_up)
    >>> fitted.privacy_.events[0].n_dropouts, fitted.epsilon_ <= 2.0
    (1, True)
    """

    generator: object
    sharing: Sharing
    n_records: int
    target: str | None = None

    def __post_init__(self):
        if type(self.n_records) is not int or self.n_records < self.sharing.n_owners:
            raise ValueError(
                "n_records must be a whole number, of at least one row of each owner; got "
                f"{self.n_records!r}."
            )

    @property
    def digest(self):
        parameters = self.generator.get_params()
        said = [f"{name}={parameters[name]!r}" for name in sorted(parameters)]
        said = [text for text in said if text.partition("=")[0] not in UNSAID]
        words = [type(self.generator).__name__, *said, self.sharing, self.n_records, self.target]
        return hashlib.sha256(repr([__version__, *words]).encode()).hexdigest()

    def fit(self, head, add_up):
        """Return the generator, fitted to the sum: what the server does, or whoever gets it.

        Parameters
        ----------
        head : DataFrame
            Of the columns and dtypes of all owners; its rows are not looked at.
        add_up : callable
            Has owners add up their rows, and returns what `Adder.unmask` gives. It is called once,
            after the release was paid for.

        Raises
        ------
        PlanError
            If more than one release is planned, or one without noise; nothing was asked for then.
        SpentError
            If `add_up` fails.
        """
        table = _SumOfOwners(head.iloc[:0], self, add_up)
        return clone(self.generator).fit(table, target=self.target)


class Owner:
    """One of several owners of rows, for one sum.

    Its keys are drawn by the operating system. It can be pickled, to be kept between messages, by
    the owner alone: a copy that is put back could unmask twice, which reveals rows.

    Parameters
    ----------
    joint : JointFit
    position : int
        Which of the owners it is, from 0.

    Attributes
    ----------
    public_key : bytes
        For all other owners.

    Raises
    ------
    ImportError
        Without the package cryptography.
    """

    def __init__(self, joint, position):
        _check_position(joint, position)
        self.joint, self.position = joint, position
        self._private_key = _x25519().X25519PrivateKey.generate().private_bytes_raw()
        self._own_seed = secrets.token_bytes(32)
        self._keys, self._has_unmasked = None, False

    @property
    def public_key(self):
        key = _x25519().X25519PrivateKey.from_private_bytes(self._private_key)
        return key.public_key().public_bytes_raw()

    def contribute(self, X, public_keys):
        """Add up rows, with noise and masks; once.

        Parameters
        ----------
        X : DataFrame
            The owner's rows.
        public_keys : dict of int to bytes
            Those of the owners who take part, by position; this one is among them.

        Returns
        -------
        Contribution
            To be sent to the server.

        Raises
        ------
        PlanError
            If it has contributed before, or its own key is missing; no row is read then.
        RuntimeError
            If too few owners gave a key; nor is a row read then.
        ValueError
            If a key is none, or is there twice; nor is a row read then.
        """
        if self._keys is not None:
            raise PlanError("An owner contributes once: another sum takes new owners, and noise.")
        _check_keys(self.joint, public_keys)
        if public_keys.get(self.position) != self.public_key:
            raise PlanError("The owner's own public key is not among those that it was given.")
        others = {other: key for other, key in public_keys.items() if other != self.position}
        seeds = {other: self._agree(key) for other, key in others.items()}
        self._keys = dict(public_keys)
        share = make_share(self.joint, X)
        masked = share.view(np.uint64).ravel() + expand(self._own_seed, share.size)
        for other, seed in seeds.items():
            mask = expand(seed, share.size)
            masked += mask if self.position < other else -mask
        return Contribution(self.position, self.joint.digest, masked.reshape(share.shape))

    def unmask(self, stayed):
        """Reveal what takes the masks away from the sum of those who stayed; once.

        Parameters
        ----------
        stayed : sequence of int
            The positions of those whose contributions are in the sum.

        Returns
        -------
        dict of int to bytes
            By position: the seed of its own mask, and those of masks with who dropped out.

        Raises
        ------
        PlanError
            If too few stayed, the owner is not among them, or it has done so before.
        """
        needed = self.joint.sharing.min_samples
        if self._keys is None or self._has_unmasked:
            raise PlanError("An owner unmasks once, after it has contributed.")
        stayed = set(stayed)
        if self.position not in stayed or not stayed <= set(self._keys) or len(stayed) < needed:
            raise PlanError(
                f"An owner unmasks a sum that it is in, of at least {needed} owners who gave keys; "
                f"asked for is that of {sorted(stayed)}."
            )
        self._has_unmasked = True
        lost = set(self._keys) - stayed
        agreed = {other: self._agree(self._keys[other]) for other in lost}
        return {self.position: self._own_seed, **agreed}

    def _agree(self, public_key):
        """Return the seed that only this owner and the one with a public key know."""
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF

        x25519, both = _x25519(), sorted([self.public_key, public_key])
        own = x25519.X25519PrivateKey.from_private_bytes(self._private_key)
        try:
            secret = own.exchange(x25519.X25519PublicKey.from_public_bytes(public_key))
        except ValueError:  # a point of small order, with which everybody has the same secret
            raise ValueError(f"{public_key.hex()} is no public key of an owner.") from None
        info = b"".join([b"skdpgen pair mask", *both, self.joint.digest.encode()])
        return HKDF(SHA256(), 32, salt=None, info=info).derive(secret)


@dataclass(frozen=True, eq=False)
class Contribution:
    """What an owner sends: as random numbers to whoever lacks its masks.

    Attributes
    ----------
    position : int
        Whose it is.
    digest : str
        What it was agreed on.
    numbers : ndarray of uint64
        Its sum with its share of the noise and its masks, modulo 2^64.
    """

    position: int
    digest: str
    numbers: np.ndarray


class Adder:
    """The server's part: it adds up what owners send, and takes the masks away from the sum.

    Parameters
    ----------
    joint : JointFit
    public_keys : dict of int to bytes
        Of the owners who take part, as these were given them.

    Raises
    ------
    RuntimeError
        If too few owners gave a key.
    """

    def __init__(self, joint, public_keys):
        _check_keys(joint, public_keys)
        self.joint = joint
        self._taking, self._stayed = set(public_keys), []
        self._lost, self._sum = None, None

    def take(self, contribution):
        """Add a contribution to the sum.

        Raises
        ------
        ValueError
            If it is of nobody, or a second one; for another agreement; or too late.
        """
        if self._lost is not None:
            raise ValueError("The sum is closed: who comes late counts as dropped out.")
        if contribution.position not in self._taking or contribution.position in self._stayed:
            raise ValueError(f"No contribution is due of owner {contribution.position!r}.")
        numbers = np.asarray(contribution.numbers)
        is_first = self._sum is None
        if (
            contribution.digest != self.joint.digest
            or numbers.dtype != np.uint64
            or not (is_first or numbers.shape == self._sum.shape)
        ):
            raise ValueError(
                f"Owner {contribution.position} has agreed on something else: parameters, versions "
                "and numbers of rows and owners must be the same."
            )
        self._stayed.append(contribution.position)
        self._sum = numbers.copy() if is_first else self._sum + numbers

    def close(self):
        """Take no more contributions; return the positions of those who stayed, to tell them.

        Raises
        ------
        RuntimeError
            If more dropped out than may: then nothing is unmasked.
        """
        sharing = self.joint.sharing
        if len(self._stayed) < sharing.min_samples:
            raise RuntimeError(
                f"{len(self._stayed)} of {sharing.n_owners} owners have contributed, and "
                f"{sharing.min_samples} are needed for the noise. Nothing was unmasked."
            )
        self._lost = self._taking - set(self._stayed)
        return sorted(self._stayed)

    def unmask(self, revealed):
        """Return the sum with its noise.

        Parameters
        ----------
        revealed : dict of int to dict
            What `Owner.unmask` gave, of each who stayed.

        Returns
        -------
        ndarray of int64

        Raises
        ------
        RuntimeError
            If a seed of somebody is missing: then the sum stays masked.
        """
        due = {position: {position, *(self._lost or ())} for position in self._stayed}
        if self._lost is None or {name: set(seeds) for name, seeds in revealed.items()} != due:
            raise RuntimeError(
                "The masks of all who stayed are needed. The sum stays as it is: masked."
            )
        total = self._sum.ravel()
        for position, seeds in revealed.items():
            total = total - expand(seeds[position], total.size)
            for other in self._lost:
                mask = expand(seeds[other], total.size)
                total = total - mask if position < other else total + mask
        return total.view(np.int64).reshape(self._sum.shape)


class _JointTable(PartitionedTable):
    """Rows of several owners, or those of one of them: how many there are is told of all."""

    engine = None

    def __init__(self, frame, joint):
        super().__init__(frame)
        self.sharing, self.n_units = joint.sharing, joint.n_records

    @property
    def _meta(self):
        return self._frame.iloc[:0]

    def _gather(self, name):
        raise ValueError("Rows of a person may be with several owners: joint fits are for records.")


class _OwnRows(_JointTable):
    """The rows of one owner: what would be released is its share."""

    def __init__(self, frame, joint):
        if not 0 < len(frame) <= joint.n_records:
            raise ValueError("An owner has rows, and no more than all owners have together.")
        super().__init__(frame, joint)

    def _iter_partitions(self):
        yield self._frame

    def _add_up(self, function):
        return function(self._frame)

    def run(self, mechanism, source, event, *, relation, noise):
        n_shares = self.sharing.n_shares
        raise _Share(
            mechanism.make_share(source, event, relation=relation, noise=noise, n_shares=n_shares)
        )


class _Share(Exception):
    """Ends a fit where it would release something: with a share, which goes to its owner."""

    def __init__(self, numbers):
        super().__init__()
        self.numbers = numbers


class _SumOfOwners(_JointTable):
    """The rows of all owners, of which there is the sum with its noise, and nothing else."""

    def __init__(self, head, joint, ask):
        super().__init__(head, joint)
        self._ask = ask

    def _iter_partitions(self):
        return iter(())

    def _add_up(self, function):
        return [self._total]

    def run(self, mechanism, source, event, *, relation, noise):
        self._total = self._ask()
        return mechanism.take_sum(source, event, relation=relation, total=self._total)


def make_share(joint, X):
    """Return the sum over the rows of one owner with its share of the noise, not yet masked."""
    # All that a fit does goes before: the plan, budgets, the ledger.
    generator = clone(joint.generator).set_params(random_state=None, verbose=0)
    try:
        generator.fit(_OwnRows(X, joint), target=joint.target)
    except _Share as made:
        return made.numbers
    raise PlanError("The fit made no release: there is no sum to share.")


def expand(seed, n):
    """Return n numbers of 64 bits that look random to whoever lacks a seed of 32 bytes."""
    return ChaCha(key=int.from_bytes(seed, "little"), rounds=20).random_raw(n)


def _check_position(joint, position):
    if type(position) is not int or not 0 <= position < joint.sharing.n_owners:
        raise ValueError(
            f"Positions of owners are 0 to {joint.sharing.n_owners - 1}; got {position!r}."
        )


def _check_keys(joint, public_keys):
    """Refuse public keys of too few owners, or of the wrong ones."""
    for position, key in public_keys.items():
        _check_position(joint, position)
        if not isinstance(key, bytes) or len(key) != 32:
            raise ValueError(f"The public key of owner {position} must be 32 bytes.")
    if len(set(public_keys.values())) < len(public_keys):
        raise ValueError("Two owners have the same public key.")
    if len(public_keys) < joint.sharing.min_samples:
        raise RuntimeError(
            f"{len(public_keys)} of {joint.sharing.n_owners} owners gave a public key, and "
            f"{joint.sharing.min_samples} are needed for the noise."
        )


def _x25519():
    try:
        from cryptography.hazmat.primitives.asymmetric import x25519
    except ImportError:
        raise ImportError("Masks need cryptography: pip install 'skdpgen[sign]'.") from None
    return x25519
