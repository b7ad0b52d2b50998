# SPDX-License-Identifier: BSD-3-Clause
"""Autoencoder of public rows, for dimension reduction before a release."""

import math
from collections.abc import Sequence
from copy import deepcopy

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import nn

from .._process.isolation import isolated
from ..arrays.image_layout import ImageLayout
from ..arrays.layout import cast_numbers, check_bounds
from ..arrays.numbers import read_numbers
from ..checks import in_range, positive, whole
from ..data.inputs import flatten_images
from ..learners.training import Descent, run_steps
from ..mechanisms.noise import NoiseSource
from ..networks.autoencoders import make_autoencoder
from ..networks.generators import seeded
from ..params import Checked, choose_device, documented, fitting
from ..saving.serialization import Saves

# Shapes of images that flat rows are guessed to be, by the number of features.
_SHAPES = {784: (1, 28, 28), 1024: (1, 32, 32), 12288: (3, 64, 64)}
# Rows that are encoded or decoded at once.
_BLOCK = 500
# Default number of training steps, and the most epochs for it: errors of digits hardly fall beyond.
_N_STEPS, _MOST_EPOCHS = 2400, 50
# Share of the steps of linear warm-up.
_WARM_UP = 0.1


@documented
class Autoencoder(Saves, ClassNamePrefixFeaturesOutMixin, TransformerMixin, Checked, BaseEstimator):
    """Autoencoder with codes on the unit sphere, **for public data only**.

    .. warning::

       `fit` is not private. An autoencoder that is fitted on private rows **voids every guarantee**
       of an estimator that uses it. Fit it on public rows of the
       same origin as the private ones, and give it to a generator as its encoder, wrapped in
       scikit-learn's `FrozenEstimator`.

    Codes have norm 1, so that no row is clipped at a radius of 1. Networks are those of [1]_:
    convolutions for images of 8 to 64 pixels a side, and one hidden layer of 256 units otherwise.

    Parameters
    ----------
    n_components : int, default=8
        Dimension of the codes.
    image_shape : "auto", None or tuple of (channels, height, width), default="auto"
        Shape of images, with channels first or last, or (height, width). None: rows are not images.
        ``"auto"``: that of `X`, if it has three or four dimensions; else (1, 28, 28), (1, 32, 32)
        or (3, 64, 64) for as many features; otherwise None.
    n_epochs : int, default=None
        Passes over the rows. None: about 2400 training steps, within 1 to 50 epochs. For 30,000
        grey images these are 4 epochs, a few minutes on one core; more improve the result.
    batch_size : int, default=50
        Rows per step. For the same time, small batches give smaller errors.
    learning_rate : float, default=None
        Learning rate of Adam; it rises over the first tenth of the steps and then decays linearly
        to 0. None: 0.003, or 0.0005 for 64×64 images.
    bounds : (lower, upper), default=(0, 1)
        Public bounds of the features, numbers or arrays of shape (n_features,). Features are
        clipped to them.
    random_state : None, int or RandomState, default=None
        Seed of the weights and of the order of the rows. Results repeat on the same device.
    device : str, default="auto"
        Where to compute: "cpu", "cuda", or "auto" for CUDA where there is one.
    verbose : int, default=0
        1 shows a progress bar.

    Attributes
    ----------
    image_shape_ : tuple of int or None
        Shape of the images; None for rows that are not images.
    loss_curve_ : list of float
        Mean squared error of features on a scale from 0 to 1 during each epoch. Training minimises
        the cross-entropy.
    n_iter_ : int
        Number of epochs.
    %(n_features_in_)s
    %(feature_names_in_)s

    See Also
    --------
    skdpgen.preprocessing.DPPCA : Private principal components.

    Notes
    -----
    Each row is mapped on its own: other rows change only, for images, the rounding of
    single-precision numbers.

    In a generator that will be cloned, as searches do, wrap the fitted autoencoder in
    scikit-learn's `FrozenEstimator`.

    References
    ----------
    .. [1] Sebag, Pydi, Franceschi, Rakotomamonjy, Gartrell, Atif & Allauzen, "Differentially
       Private Gradient Flow based on the Sliced Wasserstein Distance", 2023, appendix C.2.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.frozen import FrozenEstimator
    >>> from skdpgen import DPSlicedWassersteinGenerator
    >>> from skdpgen.preprocessing import Autoencoder
    >>> X = load_digits().data
    >>> public, private = X[:900], X[900:]
    >>> encoder = Autoencoder(n_components=4, bounds=(0, 16), n_epochs=5, random_state=0)
    >>> codes = encoder.fit(public).transform(private)
    >>> codes.shape, bool(np.allclose(np.linalg.norm(codes, axis=1), 1))
    ((897, 4), True)
    >>> generator = DPSlicedWassersteinGenerator(encoder=FrozenEstimator(encoder), n_steps=10)
    >>> generator.fit(private).sample(10).shape
    (10, 64)
    """

    _checks = {
        "n_components": whole(),
        "n_epochs": whole(optional=True),
        "batch_size": whole(),
        "learning_rate": positive(optional=True),
        "verbose": in_range(),
    }

    def __init__(
        self,
        n_components: int = 8,
        *,
        image_shape: object = "auto",
        n_epochs: int | None = None,
        batch_size: int = 50,
        learning_rate: float | None = None,
        bounds: Sequence = (0, 1),
        random_state: object = None,
        device: str = "auto",
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.image_shape = image_shape
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.bounds = bounds
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def fit(self, X, y=None) -> "Autoencoder":
        """Train the networks to reconstruct **public** rows.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Public rows.
        y : Ignored

        Returns
        -------
        self : object
        """
        with fitting(self):
            return self._fit(X)

    def _fit(self, X):
        self._check_params()
        device = choose_device(self.device)
        X = flatten_images(self, X, reset=True)
        X = validate_data(self, X, dtype=[np.float64, np.float32])
        n_samples, n_features = X.shape
        record_shape = getattr(self, "record_shape_in_", None)
        bounds = check_bounds(self.bounds, n_features, "bounds", record_shape)
        # None is the default of other estimators, which infer bounds by a release; here rows are
        # public.
        if bounds is None:
            raise ValueError("bounds must be a pair (lower, upper) of numbers or arrays; got None.")
        self._layout = ImageLayout.of(n_features, self.image_shape, record_shape, _SHAPES.get)
        shape = self._layout.image_shape
        seeds = NoiseSource(self.random_state)
        with seeded(seeds.seed()):
            network = make_autoencoder(n_features, self.n_components, shape)
        is_large = shape is not None and max(shape) > 32
        self._bounds = bounds
        self.loss_curve_ = _train(
            network.to(device),
            lambda rows: self._read_features(X[rows], torch.float32).to(device),
            n_samples,
            n_epochs=self.n_epochs or self._default_n_epochs(n_samples),
            batch_size=self.batch_size,
            learning_rate=self.learning_rate or (0.0005 if is_large else 0.003),
            generator=seeds.torch_generator(),
            verbose=self.verbose,
        )
        # Double precision where it costs little, so that codes do not depend on other rows.
        self._dtype = torch.float64 if shape is None else torch.float32
        self._network = network.to("cpu", self._dtype)
        self._n_features_out = self.n_components
        self.image_shape_ = shape
        self.n_iter_ = len(self.loss_curve_)
        return self

    @isolated()
    def transform(self, X) -> np.ndarray:
        """Encode rows, each on its own. Codes of private rows are as sensitive as the rows.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        codes : ndarray of shape (n_samples, n_components)
            Codes of norm 1, in the floating dtype of `X`.
        """
        check_is_fitted(self)
        X = flatten_images(self, X, reset=False)
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        return self._apply("encode", lambda block: self._read_features(X[block], self._dtype), X)

    @isolated()
    def inverse_transform(self, X) -> np.ndarray:
        """Decode codes, after scaling them to norm 1.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Codes, encoded or generated.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_features), or of images
            Features within `bounds`, in the floating dtype of `X`.
        """
        check_is_fitted(self)
        X = read_numbers(X)
        if X.shape[1] != self._n_features_out:
            raise ValueError(
                f"Codes have {self._n_features_out} columns; got an array of shape {X.shape}."
            )
        # Clipped, since rounding of the affine map may leave the bounds by an ulp.
        unit = self._apply("decode", lambda block: torch.tensor(X[block], dtype=self._dtype), X)
        lower, upper = self._bounds
        unit = self._layout.restore(unit)
        rows = cast_numbers(lower + unit * (upper - lower), X.dtype, lower, upper)
        return self._layout.reshape(rows)

    def _read_features(self, rows, dtype):
        """Map features to [0, 1]."""
        lower, upper = self._bounds
        unit = (np.clip(rows, lower, upper) - lower) / (upper - lower)
        return torch.tensor(self._layout.arrange(unit), dtype=dtype)

    @torch.no_grad()
    def _apply(self, method, read, X):
        """Apply the encoder or the decoder to blocks of rows."""
        device, network = choose_device(self.device), self._network
        # A copy: the fitted network stays on the CPU, where it is saved and pickled.
        if device.type != "cpu":
            network = deepcopy(network).to(device)
        blocks = [slice(i, i + _BLOCK) for i in range(0, len(X), _BLOCK)]
        parts = [getattr(network, method)(read(block).to(device)).cpu() for block in blocks]
        return torch.cat(parts).numpy().astype(X.dtype, copy=False)

    def _default_n_epochs(self, n_samples: int) -> int:
        # Whole epochs, so that all rows weigh alike.
        n_epochs = round(_N_STEPS / math.ceil(n_samples / self.batch_size))
        return min(_MOST_EPOCHS, max(1, n_epochs))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _train(network, read, n_samples, *, n_epochs, batch_size, learning_rate, generator, verbose):
    """Minimise the cross-entropy of reconstruction; return the mean squared error of each epoch.

    `read` maps an array of positions of rows to features in [0, 1], a tensor.
    """
    n_batches = math.ceil(n_samples / batch_size)
    n_steps = n_epochs * n_batches
    warm_up = _WARM_UP * n_steps
    descent = Descent(network.train().parameters(), learning_rate, "adam", warm_up)

    def draw():
        for _ in range(n_epochs):
            yield from torch.randperm(n_samples, generator=generator).split(batch_size)

    batches = draw()

    def take_step(rate):
        rows = read(next(batches).numpy())
        output = network(rows)
        # Behind a sigmoid, its gradient does not vanish where the squared error's does.
        descent.step(nn.functional.binary_cross_entropy(output, rows), rate)
        # A sum over rows, since the last batch of an epoch may be smaller.
        return (output.detach() - rows).square().mean().double() * len(rows)

    errors = run_steps(take_step, n_steps, label="autoencoder", verbose=verbose)
    network.eval()
    epochs = (errors[start : start + n_batches] for start in range(0, n_steps, n_batches))
    return [sum(epoch) / n_samples for epoch in epochs]
