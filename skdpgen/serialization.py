# SPDX-License-Identifier: BSD-3-Clause
"""Fitted estimators in files: JSON and arrays, of which nothing is run.

A file is a zip archive of ``estimator.json``, of arrays in NumPy's format and of a digest of all of
these. Objects are written as the name of their class and what they hold. Names are looked up among
the classes that were registered for it, so that a file makes nothing but estimators and what these
consist of, and arrays hold numbers and texts only.
"""

import dataclasses
import hashlib
import json
import math
import zipfile
from os import PathLike

import numpy as np
import pandas as pd
import torch
from dp_accounting import DpEvent
from dp_accounting.dp_event import RepeatAndSelectDpEvent
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted
from torch import nn

from ._files import as_path
from ._version import __version__
from .accounting.calibration import check_delta, check_epsilon
from .accounting.certificate import Certificate
from .accounting.event_json import event_from_dict, event_to_dict
from .accounting.strict_json import parse_json
from .registry import Savable, find_class, is_savable, savable
from .tables.schema import Schema

# Raised by one in front of what older versions cannot read, and behind for what they can.
_FORMAT = (3, 0)
_CONTENTS, _ARRAY, _DIGEST = "estimator.json", "arrays/{}.npy", "digest"
# Bytes that are read at once for a digest.
_BLOCK = 2**20
# ε and noise that processors and versions of libraries agree on.
_TOLERANCE = 1e-6
for _cls in (
    *(nn.BatchNorm1d, nn.BatchNorm2d, nn.Conv2d, nn.ConvTranspose2d, nn.Flatten, nn.LeakyReLU),
    *(nn.Linear, nn.MaxPool2d, nn.ReLU, nn.Sequential, nn.Sigmoid, nn.Unflatten, nn.Upsample),
    FrozenEstimator,
):
    savable(_cls)
_TORCH_DTYPES = {str(dtype): dtype for dtype in (torch.float32, torch.float64)}


class Saves(Savable):
    """Mixin of estimators with a certificate: its numbers, and the method `save`."""

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
        sigma = self._find_sigma() if certificate.events else None
        if not _is_close(certificate.sigma, sigma):
            raise ValueError(f"sigma_ is {certificate.sigma!r}, and the releases have {sigma!r}.")

    def _list_certified(self):
        """Give the names of what the certificate also says, what it is, and what that says."""
        certificate, epsilon = self.privacy_, check_epsilon(self.epsilon)
        yield "delta", check_delta(self.delta), certificate.delta
        yield "relation", self.relation, certificate.relation
        yield "accountant", self.accountant, certificate.accountant
        if certificate.epsilon > epsilon * (1 + _TOLERANCE):
            yield "epsilon", epsilon, certificate.epsilon

    def _find_sigma(self):
        """Return the standard deviation of the noise, from the certificate and the release."""
        raise NotImplementedError

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
        check_is_fitted(self, "privacy_")
        path, writer = path if hasattr(path, "write") else as_path(path), _Writer()
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
                with _Entry(file, _ARRAY.format(i), digest) as entry:
                    np.lib.format.write_array(entry, array, allow_pickle=False)
            file.writestr(_describe(_DIGEST), digest.hexdigest())


def list_certified_sizes(estimator):
    """Give what `Saves.check_certified` compares, of fits to records or to persons."""
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
    *names, last = file.namelist()
    if [*names, last] != [_CONTENTS, *(_ARRAY.format(i) for i in range(len(names) - 1)), _DIGEST]:
        raise ValueError("the file has other entries than were written.")
    digest = _start_digest()
    for name in names:
        digest.update(name.encode())
        with file.open(name) as entry:
            while block := entry.read(_BLOCK):
                digest.update(block)
    if file.read(_DIGEST) != digest.hexdigest().encode():
        raise ValueError("the file was damaged or edited.")


def _check_names(node, *names):
    """Refuse a part of the contents with other members than were written."""
    if node.keys() != set(names):
        raise ValueError(f"a part of the file has the members {sorted(node)}.")


def _describe(name):
    """Return an entry of an archive without the time, so that equal fits make equal files."""
    entry = zipfile.ZipInfo(name)
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def load(path: str | PathLike):
    """Read a fitted estimator that its method `save` has written.

    No code of the file is run. Whether what it makes is private is another matter: its certificate
    is what the file says. Numbers that follow from the certificate are computed, and parameters
    and sizes must agree with it. A digest of the content shows damage and careless edits. It does
    not stop a forger, who can compute it anew, and change what is learnt: a file from elsewhere is
    as good as whoever signs it, and `skdpgen.privacy.sign` signs its certificate only.

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
    with as_path(path).open("rb") as opened:
        try:
            with zipfile.ZipFile(opened) as file:
                contents = parse_json(file.read(_CONTENTS), _CONTENTS)
                major = contents["format"][0]
                if major == _FORMAT[0]:
                    _check_digest(file)
                    _check_names(contents, "format", "version", "estimator")
                    estimator = _Reader(file).read(contents["estimator"])
                    if not _is_certified(estimator):
                        raise ValueError("it holds no fitted estimator.")
        # Whatever a file that is damaged, or made to be so, can raise.
        except Exception as error:
            raise ValueError(
                f"{path} is no file of a fitted skdpgen estimator, or it is damaged: {error}"
            ) from error
    if major != _FORMAT[0]:
        raise ValueError(
            f"{path} was written in format {major}, by skdpgen {contents.get('version')}; this "
            f"version, {__version__}, reads format {_FORMAT[0]}."
        )
    return estimator


def _is_certified(value):
    return isinstance(value, Saves) and "privacy_" in vars(value)


class _Writer:
    """Writes values as JSON; arrays are put aside."""

    def __init__(self):
        self.arrays = []

    def write(self, value, where):
        """Return a value as JSON; `where` says what it is of, for errors."""
        if value is None or type(value) in (bool, int, float, str):
            return value
        if type(value) is list:
            return [self.write(part, f"{where}[{i}]") for i, part in enumerate(value)]
        for kind, (cls, write, _) in _KINDS.items():
            if isinstance(value, cls):
                return {"is": kind, "of": write(self, value, where)}
        if not is_savable(type(value)):
            raise ValueError(
                f"{where} cannot be saved: it is a {type(value).__name__}, and files hold no code. "
                "Give a network by its name, an encoder as None or 'dp-pca', and random_state as "
                "None or an int; or pickle the estimator."
            )
        return {"is": type(value).__name__, "of": self._write_parts(value, where)}

    def _write_parts(self, value, where):
        """Return the attributes of an object, and what else it holds, as JSON."""
        if _is_certified(value):
            value.check_certified()
        parts = {"attributes": vars(value)}
        if isinstance(value, nn.Module):
            inner = vars(nn.Module())
            parts = {
                "attributes": {k: v for k, v in vars(value).items() if k not in inner},
                "parameters": value._parameters,
                "buffers": value._buffers,
                "passing": sorted(value._non_persistent_buffers_set),
                "modules": value._modules,
                "training": value.training,
            }
        elif dataclasses.is_dataclass(value) and not isinstance(value, BaseEstimator):
            names = [field.name for field in dataclasses.fields(value)]
            parts = {"attributes": {name: getattr(value, name) for name in names}}
        return {
            name: {key: self.write(v, f"{where}.{key}") for key, v in part.items()}
            if isinstance(part, dict)
            else part
            for name, part in parts.items()
        }

    def put(self, array):
        """Put an array of numbers or texts aside; return its number."""
        self.arrays.append(array)
        return len(self.arrays) - 1


class _Reader:
    """Reads what a `_Writer` has written."""

    def __init__(self, file):
        self._file = file

    def read(self, node):
        """Return a value from its JSON."""
        if isinstance(node, list):
            return [self.read(part) for part in node]
        if not isinstance(node, dict):
            return node
        _check_names(node, "is", "of")
        kind, content = node["is"], node["of"]
        if kind in _KINDS:
            return _KINDS[kind][2](self, content)
        return self._make(find_class(kind), content)

    def _make(self, cls, content):
        attributes = {name: self.read(node) for name, node in content["attributes"].items()}
        # What would hide a method, or be a hook of a module, is no attribute.
        for name in attributes:
            is_hook = issubclass(cls, nn.Module) and hasattr(nn.Module(), name)
            is_computed = isinstance(getattr(cls, name, None), property)
            if (
                name.startswith("__")
                or is_hook
                or is_computed
                or callable(getattr(cls, name, None))
            ):
                raise ValueError(f"{name} is no attribute.")
        _check_names(content, *(_OF_MODULES if issubclass(cls, nn.Module) else ["attributes"]))
        if dataclasses.is_dataclass(cls) and not issubclass(cls, BaseEstimator):
            return cls(**attributes)
        made = cls.__new__(cls)
        if issubclass(cls, nn.Module):
            nn.Module.__init__(made)
            for name, parameter in content["parameters"].items():
                made.register_parameter(name, self._as_parameter(parameter))
            for name, buffer in content["buffers"].items():
                made.register_buffer(name, self.read(buffer), name not in content["passing"])
            for name, module in content["modules"].items():
                made.add_module(name, self.read(module))
            made.train(content["training"] is True)
        vars(made).update(attributes)
        if _is_certified(made):
            made._check_loaded()
        return made

    def _as_parameter(self, node):
        value = self.read(node)
        return value if value is None else nn.Parameter(value)

    def take(self, i):
        """Return an array that was put aside."""
        with self._file.open(_ARRAY.format(int(i))) as entry:
            array = np.lib.format.read_array(entry, allow_pickle=False)
            # The checksum is compared at the end.
            entry.read()
        return array


def _write_array(writer, array, where):
    if array.dtype == object:
        return [list(array.shape), writer.write(array.ravel().tolist(), where)]
    return writer.put(array)


def _read_array(reader, content):
    if not isinstance(content, list):
        return reader.take(content)
    shape, cells = content
    array = np.empty(len(cells), dtype=object)
    array[:] = reader.read(cells)
    return array.reshape(shape)


def _write_tensor(writer, tensor, where):
    is_turned = tensor.ndim == 4 and not tensor.is_contiguous()
    return [writer.put(tensor.detach().cpu().contiguous().numpy()), is_turned]


def _read_tensor(reader, content):
    tensor = torch.tensor(reader.take(content[0]))
    return tensor.contiguous(memory_format=torch.channels_last) if content[1] else tensor


def _write_dict(writer, value, where):
    return [
        [writer.write(key, where), writer.write(v, f"{where}[{key!r}]")] for key, v in value.items()
    ]


def _read_dict(reader, content):
    value = {reader.read(key): reader.read(v) for key, v in content}
    if len(value) < len(content):
        raise ValueError("a dict has a key more than once.")
    return value


def _read_dtype(reader, content):
    return pd.api.types.pandas_dtype(content)


def _write_index(writer, index, where):
    values = index.to_numpy()
    return [writer.write(values, where), writer.write(index.name, where), str(index.dtype)]


def _read_index(reader, content):
    values, name, dtype = map(reader.read, content)
    return pd.Index(values, dtype=dtype, name=name, tupleize_cols=False)


def _write_frame(writer, frame, where):
    columns = [
        [name, str(column.dtype), writer.write(column.to_numpy(object, na_value=None), where)]
        for name, column in frame.items()
    ]
    return [writer.write(frame.index, where), columns]


def _read_frame(reader, content):
    index = reader.read(content[0])
    columns = {
        name: pd.Series(reader.read(cells), index, dtype=dtype) for name, dtype, cells in content[1]
    }
    return pd.DataFrame(columns)


def _write_certificate(writer, certificate, where):
    return [certificate.to_json(), certificate.sigma]


def _read_certificate(reader, content):
    return dataclasses.replace(Certificate.from_json(content[0]), sigma=content[1])


# What is written of a module.
_OF_MODULES = ("attributes", "parameters", "buffers", "passing", "modules", "training")
# What is no object of ours: how it is told, written and read.
_KINDS = {
    "tuple": (
        tuple,
        lambda writer, value, where: writer.write(list(value), where),
        lambda reader, content: tuple(reader.read(content)),
    ),
    "dict": (
        dict,
        _write_dict,
        _read_dict,
    ),
    "range": (
        range,
        lambda writer, value, where: [value.start, value.stop, value.step],
        lambda reader, content: range(*content),
    ),
    "array": (np.ndarray, _write_array, _read_array),
    "scalar": (
        np.generic,
        lambda writer, value, where: writer.put(np.asarray(value)),
        lambda reader, content: reader.take(content)[()],
    ),
    "tensor": (torch.Tensor, _write_tensor, _read_tensor),
    "dtype": (
        np.dtype | pd.api.extensions.ExtensionDtype,
        lambda writer, value, where: str(value),
        _read_dtype,
    ),
    "torch dtype": (
        torch.dtype,
        lambda writer, value, where: str(value),
        lambda reader, content: _TORCH_DTYPES[content],
    ),
    "index": (pd.Index, _write_index, _read_index),
    "frame": (pd.DataFrame, _write_frame, _read_frame),
    "event": (
        DpEvent,
        lambda writer, value, where: event_to_dict(value),
        lambda reader, content: event_from_dict(content),
    ),
    "schema": (
        Schema,
        lambda writer, value, where: value.to_dict(),
        lambda reader, content: Schema(content),
    ),
    "certificate": (Certificate, _write_certificate, _read_certificate),
}
