# SPDX-License-Identifier: BSD-3-Clause
"""Fitted estimators in files: JSON and arrays, of which nothing is run.

A file is a zip archive of ``estimator.json`` and of arrays in NumPy's format. Objects are written
as the name of their class and what they hold. Names are looked up in a closed list, so that a file
makes nothing but our estimators and what these consist of, and arrays hold numbers and texts only.
"""

import dataclasses
import functools
import json
import zipfile
from os import PathLike

import numpy as np
import pandas as pd
import torch
from dp_accounting import DpEvent
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted
from torch import nn

from ._files import as_path
from ._version import __version__
from .accounting.certificate import Certificate
from .accounting.events import event_from_dict, event_to_dict
from .formats.schema import Schema

# Raised by one in front of what older versions cannot read, and behind for what they can.
_FORMAT = (2, 0)
_CONTENTS, _ARRAY = "estimator.json", "arrays/{}.npy"
_TORCH_DTYPES = {str(dtype): dtype for dtype in (torch.float32, torch.float64)}


class Saves:
    """The method `save`, of estimators with a certificate."""

    def check_loaded(self):
        """Raise an error if what was read from a file is not to be relied on."""

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
            the pickle to trust it.
        """
        check_is_fitted(self, "privacy_")
        path, writer = path if hasattr(path, "write") else as_path(path), _Writer()
        contents = {
            "format": list(_FORMAT),
            "version": __version__,
            "estimator": writer.write(self, type(self).__name__),
        }
        # All that is refused is refused before there is a file.
        with zipfile.ZipFile(path, "w") as file:
            file.writestr(_describe(_CONTENTS), json.dumps(contents))
            for i, array in enumerate(writer.arrays):
                with file.open(_describe(_ARRAY.format(i)), "w", force_zip64=True) as entry:
                    np.lib.format.write_array(entry, array, allow_pickle=False)


def _describe(name):
    """Return an entry of an archive without the time, so that equal fits make equal files."""
    entry = zipfile.ZipInfo(name)
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry


def load(path: str | PathLike):
    """Read a fitted estimator that its method `save` has written.

    No code of the file is run. Whether what it makes is private is another matter: its certificate
    is what the file says.

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
        If the file is none of those, is damaged, or was written by a version with another format.

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
                contents = json.loads(file.read(_CONTENTS))
                major = contents["format"][0]
                if major == _FORMAT[0]:
                    estimator = _Reader(file).read(contents["estimator"])
                    check_is_fitted(estimator, "privacy_")
                    estimator.check_loaded()
        # Whatever a file that is damaged, or made to be so, can raise.
        except Exception as error:
            raise ValueError(
                f"{path} is no file of a fitted skdpgen estimator, or it is damaged."
            ) from error
    if major != _FORMAT[0]:
        raise ValueError(
            f"{path} was written in format {major}, by skdpgen {contents.get('version')}; this "
            f"version, {__version__}, reads format {_FORMAT[0]}."
        )
    return estimator


@functools.cache
def _list_classes():
    """Return the classes of what estimators consist of, by name."""
    from . import adaptation, encoders, generators, losses, preprocessing, releases
    from .accounting.plan import Plan
    from .adaptation._base import _Input
    from .formats.arrays import ArrayKind
    from .formats.ball import BallFormat
    from .formats.box import BoxFormat
    from .formats.columns import Unknown
    from .formats.table import TableFormat, TableKind
    from .learners.entropic import LocalRowNetwork
    from .learners.particles import Particles
    from .learners.table_rows import RowsByLevel, SoftmaxBlocks, TableNetwork, TableParticles
    from .learners.training import RowNetwork
    from .networks.autoencoders import SphericalAutoencoder
    from .networks.components import PrincipalComponents
    from .networks.generators import ResidualUp, UpsampledConv2d

    listed = [
        *(getattr(adaptation, name) for name in ("DPSWDDomainAdapter", "DPSWDRowAdapter")),
        *(getattr(room, name) for room in (generators, preprocessing) for name in room.__all__),
        *(vars(releases)[name] for name in releases.__all__),
        *(cls for room in (encoders, losses) for cls in vars(room).values() if _is_ours(cls, room)),
        *(FrozenEstimator, Plan, ArrayKind, TableKind, BallFormat, BoxFormat, TableFormat),
        Unknown,
        *(Particles, _Input, RowNetwork, LocalRowNetwork, SoftmaxBlocks, TableNetwork),
        *(TableParticles, RowsByLevel),
        *(PrincipalComponents, ResidualUp, UpsampledConv2d, SphericalAutoencoder),
        *(nn.BatchNorm1d, nn.BatchNorm2d, nn.Conv2d, nn.ConvTranspose2d, nn.Flatten, nn.LeakyReLU),
        *(nn.Linear, nn.MaxPool2d, nn.ReLU, nn.Sequential, nn.Sigmoid, nn.Unflatten, nn.Upsample),
    ]
    return {cls.__name__: cls for cls in listed}


def _is_ours(value, room):
    return isinstance(value, type) and value.__module__ == room.__name__


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
        known = _list_classes()
        if known.get(type(value).__name__) is not type(value):
            raise ValueError(
                f"{where} cannot be saved: it is a {type(value).__name__}, and files hold no code. "
                "Give a network by its name, an encoder as None or 'dp-pca', and random_state as "
                "None or an int; or pickle the estimator."
            )
        return {"is": type(value).__name__, "of": self._write_parts(value, where)}

    def _write_parts(self, value, where):
        """Return the attributes of an object, and what else it holds, as JSON."""
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
        kind, content = node["is"], node["of"]
        if kind in _KINDS:
            return _KINDS[kind][2](self, content)
        return self._make(_list_classes()[kind], content)

    def _make(self, cls, content):
        attributes = {name: self.read(node) for name, node in content["attributes"].items()}
        # What would hide a method, or be a hook of a module, is no attribute.
        for name in attributes:
            is_hook = issubclass(cls, nn.Module) and hasattr(nn.Module(), name)
            if name.startswith("__") or is_hook or callable(getattr(cls, name, None)):
                raise ValueError(f"{name} is no attribute.")
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
        lambda reader, content: {reader.read(k): reader.read(v) for k, v in content},
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
