# SPDX-License-Identifier: BSD-3-Clause
"""Discriminators of DPAF: layers before, and layers after, an aggregation over rows.

Layers before the aggregation map each row on its own, without batch statistics, so that they can be
applied to private rows, and their gradients are computed row by row. Rows are images, channels
first, or vectors of numbers.
"""

import copy
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.func import functional_call, grad, vmap

# Channels of convolutions, and of the last one before the aggregation; units of the head.
_WIDTH, _N_MAPS, _N_UNITS = 32, 64, 256
# Units of dense layers before the aggregation, for rows that are no images.
_N_DENSE = 64
# Least side of a feature map that a layer of stride 2 may produce.
_LEAST_SIZE = 4


def default_layers(image_shape: tuple | None) -> tuple[int, int, int]:
    """Return the numbers of layers of conv1, conv2* and conv3* for images of a shape."""
    if image_shape is None or max(image_shape[1:]) <= 32:
        return (2, 1, 0) if image_shape is not None else (1, 1, 0)
    return (2, 2, 1) if max(image_shape[1:]) <= 64 else (3, 1, 0)


class Discriminator(nn.Module):
    """Frozen and trained layers, a normalisation of each row's features, and a head.

    Parameters
    ----------
    n_columns, n_classes : int
        Widths of rows, and of their one-hot classes, which are added to the first layer's inputs.
    layers : tuple of (int, int, int)
        Numbers of layers: frozen, trained, and after the aggregation.
    image_shape : tuple of (channels, height, width), default=None
        None: dense layers, and no layers after the aggregation but those of the head.
    scale, shift : float, default=1.0, 0.0
        Rows are first mapped to ``scale·row + shift``.
    n_outputs : int, default=1
        Number of outputs of the head.
    """

    def __init__(
        self, n_columns, n_classes, layers, image_shape=None, scale=1.0, shift=0.0, n_outputs=1
    ):
        super().__init__()
        self.image_shape, self.scale, self.shift = image_shape, scale, shift
        shape = (n_columns,) if image_shape is None else tuple(image_shape)
        shape, n_after = self._make_layers(shape, layers, n_classes)
        self.labels.requires_grad_(False)
        self.shape, self.n_features, after = shape, math.prod(shape), []
        for _ in range(0 if image_shape is None else n_after):
            layer, shape = _make_layer(shape, _N_MAPS)
            after += [layer, nn.GroupNorm(8, _N_MAPS), nn.LeakyReLU(0.2)]
        self.after = nn.Sequential(*after, nn.Flatten())
        self.head = nn.Sequential(
            nn.Linear(math.prod(shape) + n_classes, _N_UNITS),
            nn.LeakyReLU(0.2),
            nn.Linear(_N_UNITS, n_outputs),
        )

    def _make_layers(self, shape, layers, n_classes):
        """Make the layers before the aggregate; return their shape, and how many come after it."""
        n_frozen, n_trained, n_after = layers
        modules = []
        for i in range(n_frozen + n_trained):
            width = _N_MAPS if i == n_frozen + n_trained - 1 else _WIDTH
            layer, shape = _make_layer(shape, width)
            modules.append(layer)
        self.frozen = nn.ModuleList(modules[:n_frozen]).requires_grad_(False)
        self.trained: Any = nn.ModuleList(modules[n_frozen:])
        self.labels = nn.Linear(n_classes, modules[0].weight.shape[0], bias=False)
        return shape, n_after

    def look(self, rows: torch.Tensor, one_hot: torch.Tensor) -> torch.Tensor:
        """Apply the frozen layers to rows (n, n_columns) with classes (n, n_classes)."""
        hidden = rows * self.scale + self.shift
        if self.image_shape is not None:
            hidden = hidden.unflatten(1, self.image_shape)
        for i, layer in enumerate(self.frozen):
            hidden = layer(hidden)
            # Once, at the first layer: the class is then part of all features behind it.
            if i == 0:
                labels = self.labels(one_hot)
                hidden = hidden + (labels if hidden.ndim == 2 else labels[:, :, None, None])
            hidden = nn.functional.leaky_relu(hidden, 0.2)
        return hidden

    def forward(self, hidden: torch.Tensor, trace: list | None = None) -> torch.Tensor:
        """Apply the trained layers, and normalise each row's features to norm 1 at most.

        Each layer is appended to `trace` with its inputs and outputs.
        """
        for layer in self.trained:
            inputs, hidden = hidden, layer(hidden)
            if trace is not None:
                trace.append((layer, inputs, hidden))
            hidden = nn.functional.leaky_relu(hidden, 0.2)
        return _normalise(hidden)

    def with_products(self, hidden: torch.Tensor) -> tuple[torch.Tensor, Callable]:
        """Return features of rows, and a function from cotangents to each row's product, flat.

        In a dense or convolutional layer the product follows from the layer's input and the
        gradient at its output: one backward pass serves all rows.
        """
        trace: list = []
        with torch.enable_grad():
            features = self(hidden, trace)

        def pull(cotangents):
            # Rows do not interact before the sum: the gradient at a row's outputs is its own.
            with torch.enable_grad():
                product = (features * cotangents).sum()
            outputs = [outputs for _, _, outputs in trace]
            gradients = torch.autograd.grad(product, outputs, retain_graph=True)
            parts = [
                part
                for (layer, inputs, _), gradient in zip(trace, gradients, strict=True)
                for part in _row_gradients(layer, inputs.detach(), gradient)
            ]
            return torch.cat(parts, dim=1)

        return features.detach(), pull

    def judge(self, features: torch.Tensor, one_hot: torch.Tensor) -> torch.Tensor:
        """Apply the head to features of rows, or to means of them; return (n, n_outputs)."""
        # Scaled so that each feature is of order 1.
        features = (features * math.sqrt(self.n_features)).unflatten(1, self.shape)
        return self.head(torch.cat([self.after(features), one_hot.to(features)], dim=1))


class OwnDiscriminator(Discriminator):
    """A discriminator whose layers before the aggregate are a module of users.

    The module never sees a batch: `torch.func.vmap` applies it to each row by itself. So a row
    enters neither the features nor the products of another, and the sensitivity is that of single
    rows, whatever the layers are. Random draws and changes of a state in place raise an error.

    Parameters
    ----------
    layers : callable
        ``layers(shape)`` makes a module for rows (n, *shape), (channels, height, width) or
        (n_columns,). It is used in evaluation mode, and gives (n, k) numbers, or maps.
    """

    def _make_layers(self, shape, layers, n_classes):
        module = copy.deepcopy(layers(shape)).float().eval()
        # First, as parameters have the first of their names.
        self.trained = nn.ParameterList(p for p in module.parameters() if p.requires_grad)
        self.frozen, self.labels = nn.ModuleList(), nn.Linear(n_classes, 1, bias=False)
        self.module = module
        with torch.no_grad():
            return tuple(self._map(torch.zeros(2, *shape)).shape[1:]), 0

    def _map(self, hidden):
        return vmap(lambda row: self.module(row[None])[0])(hidden)

    def forward(self, hidden: torch.Tensor, trace: list | None = None) -> torch.Tensor:
        """Apply the module to each row, and normalise its features."""
        return _normalise(self._map(hidden))

    def with_products(self, hidden: torch.Tensor) -> tuple[torch.Tensor, Callable]:
        """Return features of rows, and products, as those of `Discriminator`."""
        named = self.named_parameters()
        weights = {name: w.detach() for name, w in named if name.startswith("trained.")}

        def product(weights, row, cotangent):
            return (functional_call(self, weights, (row[None],))[0] * cotangent).sum()

        def pull(cotangents):
            found = vmap(grad(product), in_dims=(None, 0, 0))(weights, hidden, cotangents)
            return torch.cat([gradient.flatten(1) for gradient in found.values()], dim=1)

        return self(hidden).detach(), pull


def _row_gradients(layer, inputs, gradient):
    """Return each row's gradient in a layer's weight and bias, flat."""
    if isinstance(layer, nn.Linear):
        return (gradient[:, :, None] * inputs[:, None]).flatten(1), gradient
    # A convolution is a product with patches: gradients of single rows are one batched product.
    patches = nn.functional.unfold(
        inputs, layer.kernel_size, padding=layer.padding, stride=layer.stride
    )
    gradient = gradient.flatten(2)
    return (gradient @ patches.mT).flatten(1), gradient.sum(2)


def _make_layer(shape: tuple, width: int) -> tuple[nn.Module, tuple]:
    """Return a layer for inputs of a shape, and the shape of its outputs."""
    layer: nn.Module
    if len(shape) == 1:
        layer, shape = nn.Linear(shape[0], _N_DENSE), (_N_DENSE,)
    elif min(shape[1:]) // 2 >= _LEAST_SIZE:
        layer = nn.Conv2d(shape[0], width, 4, 2, 1)
        shape = (width, shape[1] // 2, shape[2] // 2)
    else:
        layer = nn.Conv2d(shape[0], width, 3, 1, 1)
        shape = (width, *shape[1:])
    return layer, shape


def _normalise(maps: torch.Tensor) -> torch.Tensor:
    """Normalise each map to mean 0 and a common norm (instance normalisation without weights).

    A row that is no image is one map.
    """
    maps = maps.flatten(2) if maps.ndim == 4 else maps[:, None]
    # Statistics of each row alone: those of a batch would mix rows, and void the sensitivity.
    maps = maps - maps.mean(2, keepdim=True)
    norms = torch.linalg.vector_norm(maps, dim=2, keepdim=True)
    # Divided by the root of the number of maps, all maps of a row have norm 1 at most together. The
    # constant keeps the bound where a map is 0.
    return (maps / (norms + 1e-4) / math.sqrt(maps.shape[1])).flatten(1)
