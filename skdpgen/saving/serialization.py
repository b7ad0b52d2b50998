# SPDX-License-Identifier: BSD-3-Clause
"""Files of fitted estimators: JSON and arrays, without code.

A file is a zip archive of ``estimator.json``, of arrays in NumPy's format and of a digest of all of
these. Objects are written as the name of their class and their attributes. Only registered classes
are instantiated, and arrays hold numbers and strings only.
"""

import hashlib
import json
import math
import zipfile
from os import PathLike

import numpy as np
from dp_accounting.dp_event import RepeatAndSelectDpEvent
from sklearn.utils.validation import check_is_fitted

from .._version import __version__
from ..accounting.calibration import check_delta, check_epsilon
from ..accounting.strict_json import parse_json
from ..checks import as_path
from ..registry import ARRAY, Savable

# Major and minor version: older readers refuse a new major one, and read a new minor one.
_FORMAT = (4, 0)
_CONTENTS, _DIGEST = "estimator.json", "digest"
# Bytes that are read at once for a digest.
_BLOCK = 2**20
# ε and noise that processors and versions of libraries agree on.
_TOLERANCE = 1e-6


class Saves(Savable):
    """Mixin of estimators that have the method `save`."""

    def save(self, path: str | PathLike) -> None:
        """Write the fitted estimator to a file, from which `skdpgen.load` reads it.

        The file holds JSON and arrays. Unlike a pickle, it runs no code when it is read, so that
        one from elsewhere can be read, too. It holds what was fitted and the parameters, an int
        `random_state` among them, by which the noise can be recomputed.

        Parameters
        ----------
        path : str, path or binary file
            The file, which is overwritten.

        Raises
        ------
        ValueError
            For parameters that are code: networks given as factories, encoders that are not of this
            library, and a `random_state` that is no number. Pickle those, and tell whoever reads
            the pickle to trust it. For parameters that are not those of the fit.
        """
        # Imported here, since it imports all encoders that can be saved.
        from .values import Writer

        self._check_savable()
        path, writer = path if hasattr(path, "write") else as_path(path), Writer()
        contents = {
            "format": list(_FORMAT),
            "version": __version__,
            "estimator": writer.write(self, type(self).__name__),
        }
        # All that is refused is refused before there is a file.
        digest = _start_digest()
        with zipfile.ZipFile(path, "w") as file:
            with _Entry(file, _CONTENTS, digest) as entry:
                entry.write(json.dumps(contents).encode())
            for i, array in enumerate(writer.arrays):
                with _Entry(file, ARRAY.format(i), digest) as entry:
                    # Without pickle, whose files can run code when they are read.
                    np.lib.format.write_array(entry, array, allow_pickle=False)
            # Last: the digest covers all other entries, with their names and order.
            file.writestr(_describe(_DIGEST), digest.hexdigest())

    def _check_savable(self):
        """Raise an error if there is nothing to save yet."""
        check_is_fitted(self)


class Certified(Saves):
    """Mixin of estimators with a certificate: its numbers, which a file must agree with."""

    def __sklearn_is_fitted__(self):
        return "privacy_" in vars(self)

    @property
    def epsilon_(self):
        return self.privacy_.epsilon

    @property
    def sigma_(self):
        return self.privacy_.sigma

    def _check_loaded(self):
        """Raise an error if what was read from a file is not to be relied on."""
        self.check_certified()

    def check_certified(self):
        """Raise a ValueError if a parameter or an attribute contradicts the certificate."""
        certificate = self.privacy_
        if certificate.provenance is not None:
            certificate.provenance.check(self)
        for name, own, certified in self._list_certified():
            if own != certified:
                raise ValueError(
                    f"{name} of {type(self).__name__} is {own!r}, and its certificate says "
                    f"{certified!r}. Fit again, or set it back."
                )
        # The noise of the best of several fits is that of its own plan, which is on no certificate.
        if any(isinstance(event, RepeatAndSelectDpEvent) for event in certificate.events):
            return
        # Nor have sums of releases, which have no digest, the noise of one of their events.
        if certificate.sigma is certificate.digest is None:
            return
        sigma = self._find_sigma() if certificate.events else None
        if not _is_close(certificate.sigma, sigma):
            raise ValueError(f"sigma_ is {certificate.sigma!r}, and the releases have {sigma!r}.")

    def _list_certified(self):
        """Yield attributes that the certificate states, too: name, own value, certified value."""
        certificate, epsilon = self.privacy_, check_epsilon(self.epsilon)
        if self.delta is not None:
            yield "delta", check_delta(self.delta), certificate.delta
        yield "relation", self.relation, certificate.relation
        yield "accountant", self.accountant, certificate.accountant
        # A smaller ε is no contradiction: plans round to the safe side.
        if certificate.epsilon > epsilon * (1 + _TOLERANCE):
            yield "epsilon", epsilon, certificate.epsilon

    def _find_sigma(self):
        """Return the standard deviation of the noise, from the certificate and the release."""
        raise NotImplementedError


def list_certified_sizes(estimator):
    """Yield the sizes that a certificate states, too, as `Certified._list_certified` does."""
    certificate = estimator.privacy_
    yield "n_samples_", estimator.n_samples_, certificate.n_records
    if certificate.max_rows is not None:
        yield "max_rows_per_person", estimator.max_rows_per_person, certificate.max_rows


def _is_close(stated, found):
    if stated is None or found is None:
        return stated is found
    return math.isclose(stated, found, rel_tol=_TOLERANCE)


def _start_digest():
    return hashlib.blake2b(digest_size=32)


class _Entry:
    """An entry of an archive that is being written, and added to a digest."""

    def __init__(self, file, name, digest):
        self._entry, self._digest = file.open(_describe(name), "w", force_zip64=True), digest
        # The name as well, or entries could be exchanged.
        digest.update(name.encode())

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self._entry.close()

    def write(self, data):
        self._digest.update(data)
        return self._entry.write(data)


def _check_digest(file):
    """Refuse an archive with other entries than were written, or with other bytes in them."""
    # Exactly the written entries: an archive may hold one name twice, and readers differ on which.
    *names, last = file.namelist()
    if [*names, last] != [_CONTENTS, *(ARRAY.format(i) for i in range(len(names) - 1)), _DIGEST]:
        raise ValueError("the file has other entries than were written.")
    digest = _start_digest()
    for name in names:
        digest.update(name.encode())
        with file.open(name) as entry:
            while block := entry.read(_BLOCK):
                digest.update(block)
    if file.read(_DIGEST) != digest.hexdigest().encode():
        raise ValueError("the file was damaged or edited.")


def _describe(name):
    """Return an entry of an archive without the time, so that equal fits make equal files."""
    entry = zipfile.ZipInfo(name)
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def load(path: str | PathLike):
    """Read a fitted estimator that its method `save` has written.

    No code of the file is run. Numbers that follow from the certificate are computed, and
    parameters and sizes must agree with it. A digest of the content shows damage and careless
    edits, but a forger can compute it anew: trust a file from elsewhere as you trust its sender.
    `skdpgen.privacy.sign` signs its certificate only.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    estimator
        Which samples, or maps rows, as the one that was saved, to the bit.

    Raises
    ------
    ValueError
        If the file is none of those, is damaged or edited, contradicts its certificate, or was
        written by a version with another format.

    Examples
    --------
    >>> import os, tempfile
    >>> import skdpgen
    >>> from sklearn.datasets import load_iris
    >>> X = load_iris().data
    >>> sampler = skdpgen.DPSWFlowSampler(epsilon=5.0, bounds=(0, 8), n_steps=20).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "iris.skdpgen")
    ...     sampler.save(path)
    ...     loaded = skdpgen.load(path)
    >>> bool((loaded.sample(5, random_state=0) == sampler.sample(5, random_state=0)).all())
    True
    """
    from .values import Reader, check_members_of

    with as_path(path).open("rb") as opened:
        try:
            with zipfile.ZipFile(opened) as file:
                contents = parse_json(file.read(_CONTENTS), _CONTENTS)
                major = contents["format"][0]
                if major == _FORMAT[0]:
                    _check_digest(file)
                    check_members_of(contents, "format", "version", "estimator")
                    estimator = Reader(file).read(contents["estimator"])
                    if not isinstance(estimator, Saves):
                        raise ValueError("it holds no fitted estimator.")
                    estimator._check_savable()
        # Whatever a file that is damaged, or made to be so, can raise.
        except Exception as error:
            raise ValueError(
                f"{path} is no file of a fitted skdpgen estimator, or it is damaged: {error}"
            ) from error
    # Outside the handler, whose message says that the file is damaged.
    if major != _FORMAT[0]:
        raise ValueError(
            f"{path} was written in format {major}, by skdpgen {contents.get('version')}; this "
            f"version, {__version__}, reads format {_FORMAT[0]}."
        )
    return estimator
