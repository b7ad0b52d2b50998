# SPDX-License-Identifier: BSD-3-Clause
"""JSON and arrays for the values that saved estimators consist of."""

import dataclasses
import re

import numpy as np
import pandas as pd
import torch
from dp_accounting import DpEvent
from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from torch import nn

from ..accounting.certificate import Certificate
from ..accounting.event_types import event_from_dict, event_to_dict
from ..data.dtypes import read_arrow_type, write_arrow_type
from ..registry import ARRAY, find_class, find_name, is_savable, savable
from ..tables.rules.rule import Rule
from ..tables.rules.rules import parse_rules
from ..tables.schema import Schema

for _cls in (
    *(nn.BatchNorm1d, nn.BatchNorm2d, nn.Conv2d, nn.ConvTranspose2d, nn.Flatten, nn.LeakyReLU),
    *(nn.Linear, nn.MaxPool2d, nn.ReLU, nn.Sequential, nn.Sigmoid, nn.Unflatten),
    nn.ZeroPad2d,
    # Linear public encoders, such as the one of a domain adapter for few target rows.
    *(FrozenEstimator, MaxAbsScaler, MinMaxScaler, PCA, Pipeline, RobustScaler, StandardScaler),
    TruncatedSVD,
):
    savable(_cls)
# Advice on values that are code, by the name of the parameter that holds them.
_CURES = {
    "network": "Give the network by its name",
    "augment": "Give the augmentation by its name, or as None",
    "encoder": "Give the encoder as None or 'dp-pca', as an object of skdpgen.preprocessing, or as "
    "scalers and PCA of scikit-learn",
    "random_state": "Give random_state as None or an int",
    "param_distributions": "Save best_estimator_, which is the whole fit",
    "scoring": "Save best_estimator_, which is the whole fit",
}
_TORCH_DTYPES = {str(dtype): dtype for dtype in (torch.float32, torch.float64)}


def check_members_of(node, *names):
    """Raise a ValueError if a part of the file has other members than were written."""
    if node.keys() != set(names):
        raise ValueError(f"a part of the file has the members {sorted(node)}.")


def is_certified(value: object) -> bool:
    """Return whether a value is a fitted estimator with a certificate, which binds it."""
    return hasattr(value, "check_certified") and "privacy_" in vars(value)


class Writer:
    """Writes values as JSON; arrays are put aside."""

    def __init__(self):
        self.arrays = []

    def write(self, value, where):
        """Return a value as JSON; `where` says what it is of, for errors."""
        # By exact type: bool is a subclass of int, and NumPy's float64 of float.
        if value is None or type(value) in (bool, int, float, str):
            return value
        if type(value) is list:
            return [self.write(part, f"{where}[{i}]") for i, part in enumerate(value)]
        for name, (cls, write, _) in _TYPES.items():
            if isinstance(value, cls):
                return {"is": name, "of": write(self, value, where)}
        if not is_savable(type(value)):
            parts = re.split(r"[.\[]", where)
            cures = [f"{_CURES[name]}, or pickle" for name in parts if name in _CURES]
            raise ValueError(
                f"{where} cannot be saved: it is a {type(value).__name__}, and files hold no code. "
                f"{cures[0] if cures else 'Pickle'} the estimator."
            )
        return {"is": find_name(type(value)), "of": self._write_parts(value, where)}

    def _write_parts(self, value, where):
        """Return the attributes of an object, and what else it holds, as JSON."""
        # Before writing, since a file with a contradiction could not be read again.
        if is_certified(value):
            value.check_certified()
        parts = {"attributes": vars(value)}
        if isinstance(value, nn.Module):
            # The constructor makes anew what every module has, such as dictionaries of hooks.
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


class Reader:
    """Reads what a `Writer` has written."""

    def __init__(self, file):
        self._file = file

    def read(self, node):
        """Return a value from its JSON."""
        if isinstance(node, list):
            return [self.read(part) for part in node]
        if not isinstance(node, dict):
            return node
        check_members_of(node, "is", "of")
        name, content = node["is"], node["of"]
        if name in _TYPES:
            return _TYPES[name][2](self, content)
        return self._make(find_class(name), content)

    def _make(self, cls, content):
        attributes = {name: self.read(node) for name, node in content["attributes"].items()}
        # An attribute must not hide a method, nor be a hook of a module.
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
        check_members_of(content, *(_OF_MODULES if issubclass(cls, nn.Module) else ["attributes"]))
        if dataclasses.is_dataclass(cls) and not issubclass(cls, BaseEstimator):
            # Frozen dataclasses are made by their constructor, which checks the values again.
            return cls(**attributes)
        # Without __init__, which may check, draw or compute; attributes are set as they were.
        made = cls.__new__(cls)
        if issubclass(cls, nn.Module):
            nn.Module.__init__(made)
            for name, parameter in content["parameters"].items():
                value = self.read(parameter)
                made.register_parameter(name, value if value is None else nn.Parameter(value))
            for name, buffer in content["buffers"].items():
                made.register_buffer(name, self.read(buffer), name not in content["passing"])
            for name, module in content["modules"].items():
                made.add_module(name, self.read(module))
            made.train(content["training"] is True)
        vars(made).update(attributes)
        # An edited number would claim more privacy than the releases have.
        if is_certified(made):
            made._check_loaded()
        return made

    def take(self, i):
        """Return an array that was put aside."""
        with self._file.open(ARRAY.format(int(i))) as entry:
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
    # np.array would turn nested lists into more dimensions.
    array = np.empty(len(cells), dtype=object)
    array[:] = reader.read(cells)
    return array.reshape(shape)


def _write_tensor(writer, tensor, where):
    # The memory format is kept, as convolutions are much faster in it.
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
    # A repeated key shows that the file was edited: one of the values would get lost.
    if len(value) < len(content):
        raise ValueError("a dict has a key more than once.")
    return value


def _write_dtype(writer, dtype, where):
    if isinstance(dtype, pd.CategoricalDtype):
        return [writer.write(dtype.categories, where), dtype.ordered]
    if isinstance(dtype, pd.ArrowDtype):
        # The texts of some types cannot be read.
        return {"arrow": write_arrow_type(dtype)}
    if isinstance(dtype, pd.SparseDtype):
        fill = np.asarray(dtype.fill_value).item()  # zero, False or missing
        return {"sparse": str(dtype.subtype), "fill_value": None if pd.isna(fill) else fill}
    if isinstance(dtype, pd.StringDtype):
        return str(dtype) if dtype.na_value is not pd.NA else f"string[{dtype.storage}]"
    return "T" if dtype.kind == "T" else str(dtype)


def _read_dtype(reader, content):
    if isinstance(content, list):
        return pd.CategoricalDtype(reader.read(content[0]), content[1])
    if isinstance(content, dict):
        if "sparse" in content:
            fill = content["fill_value"]
            return pd.SparseDtype(content["sparse"], np.nan if fill is None else fill)
        return read_arrow_type(content["arrow"])
    return pd.api.types.pandas_dtype(content)


def _write_index(writer, index, where):
    values = index.to_numpy()
    return [writer.write(values, where), writer.write(index.name, where), str(index.dtype)]


def _read_index(reader, content):
    values, name, dtype = map(reader.read, content)
    # Tuples are names, and no levels of a MultiIndex.
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


def _write_distribution(writer, value, where):
    return [value.dist.name, *(writer.write(part, where) for part in (value.args, value.kwds))]


def _read_distribution(reader, content):
    distribution = getattr(stats, content[0])
    # The name comes from the file: scipy.stats has functions, too, which must not be called.
    if not isinstance(distribution, stats.rv_continuous | stats.rv_discrete):
        raise ValueError(f"{content[0]} is no distribution.")
    return distribution(*reader.read(content[1]), **reader.read(content[2]))


def _read_schema(reader, content):
    cls = find_class(content[0])
    if not issubclass(cls, Schema):
        raise ValueError(f"{content[0]} is no schema.")
    return cls(content[1])


# Members of a module in a file.
_OF_MODULES = ("attributes", "parameters", "buffers", "passing", "modules", "training")
# Types of other libraries: their class, how values are written, and how they are read.
_TYPES = {
    "tuple": (
        tuple,
        lambda writer, value, where: writer.write(list(value), where),
        lambda reader, content: tuple(reader.read(content)),
    ),
    "dict": (dict, _write_dict, _read_dict),
    "range": (
        range,
        lambda writer, value, where: [value.start, value.stop, value.step],
        lambda reader, content: range(*content),
    ),
    "slice": (
        slice,
        lambda writer, value, where: [value.start, value.stop],
        lambda reader, content: slice(*content),
    ),
    "array": (np.ndarray, _write_array, _read_array),
    "scalar": (
        np.generic,
        lambda writer, value, where: writer.put(np.asarray(value)),
        lambda reader, content: reader.take(content)[()],
    ),
    "tensor": (torch.Tensor, _write_tensor, _read_tensor),
    "dtype": (np.dtype | pd.api.extensions.ExtensionDtype, _write_dtype, _read_dtype),
    "torch dtype": (
        torch.dtype,
        lambda writer, value, where: str(value),
        lambda reader, content: _TORCH_DTYPES[content],
    ),
    "index": (pd.Index, _write_index, _read_index),
    "frame": (pd.DataFrame, _write_frame, _read_frame),
    "distribution": (
        type(stats.norm()) | type(stats.poisson(1)),
        _write_distribution,
        _read_distribution,
    ),
    "event": (
        DpEvent,
        lambda writer, value, where: event_to_dict(value),
        lambda reader, content: event_from_dict(content),
    ),
    "rule": (
        Rule,
        lambda writer, value, where: value.to_dict(),
        lambda reader, content: parse_rules([content])[0],
    ),
    "schema": (
        Schema,
        lambda writer, value, where: [type(value).__name__, value.to_dict()],
        _read_schema,
    ),
    "certificate": (
        Certificate,
        lambda writer, value, where: [value.to_json(), value.sigma],
        lambda reader, of: dataclasses.replace(Certificate.from_json(of[0]), sigma=of[1]),
    ),
}
