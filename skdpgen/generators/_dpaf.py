# SPDX-License-Identifier: BSD-3-Clause
"""Generator networks trained by noisy aggregates of a discriminator's features."""

import math
import numbers
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from torch import nn

from ..checks import one_of, positive
from ..data.record_functions import PullingFunction
from ..learners.aggregates import (
    RecordFeatures,
    fit_classifier,
    fit_to_aggregates,
    try_discriminator,
)
from ..learners.rows import input_scale, make_rows
from ..mechanisms.aggregates import ForwardAggregateMechanism
from ..networks.discriminators import Discriminator, OwnDiscriminator, default_layers
from ..networks.generators import seeded
from ..params import documented
from ..releases.forward_aggregates import ForwardAggregates
from ._network import NetworkGenerator, check_network

if TYPE_CHECKING:
    from ..tables.schema import Schema


# Least sides of images that are guessed, and of those that are said to be some.
_LEAST_SIDES = (8, 4)


@documented
class DPAFGenerator(NetworkGenerator):
    """Generator network trained by noisy aggregates of a discriminator's features.

    A discriminator has layers that see single rows, and layers that see mean features of many. At
    each step the features of a random sample of the private rows are added up for each class, and
    released with noise. The layers after the aggregate and the generator are trained on that
    release: post-processing. Layers before it get clipped and noised vector-Jacobian products of
    single rows, with a cotangent at the noisy aggregate. This is DPAF [1]_, repaired: as published
    it is not private, see the notes.

    Parameters
    ----------
    %(privacy)s
    %(running)s
    %(arrays)s
    %(schema)s
    encoder : "auto", None or object, default="auto"
        An object with `transform` and `inverse_transform` that was fitted on public data, wrapped
        in scikit-learn's `FrozenEstimator`. ``"auto"``: none.
    release : "aggregates" or ForwardAggregates, default="aggregates"
        The release, the number of steps, and the split of the budget.
    loss : {"matching", "rows"}, default="matching"
        The generator's loss: the distance of the mean features of generated rows from the released
        ones; or, as in [1]_, the discriminator's output for single rows.
    network : str or callable, default=None
        The generator's network. None: the mirror of the discriminator for images with `bounds`, and
        else ``"mlp"``. Names and factories are those of `DPSlicedWassersteinGenerator`.
    discriminator_layers : tuple of (int, int, int) or callable, default=None
        Numbers c1, c2, c3 of layers: conv1, which are frozen; conv2*, the others before the
        aggregate; and conv3*, those after it, which only images have. They are convolutions if rows
        are images of at least 4×4 pixels by `image_shape` or `X`, or, as a guess, square ones of
        8×8 pixels or more. None: (2, 1, 0) for images of up to 32 pixels, (2, 2, 1) of up to 64,
        (3, 1, 0) of more; (1, 1, 0) for dense layers. A factory of your own layers before the
        aggregate takes the shape of a row, (channels, height, width) or (n_columns,), and returns a
        module, which is applied to each row by itself (`torch.func.vmap`), in evaluation mode.
    latent_dim : int, default=16
        Dimension of the network's random code; the one-hot class is joined to it.
    learning_rate : float, default=0.001
        Learning rate of Adam after a warm-up; it decays linearly to 0.

    Attributes
    ----------
    %(certified)s
    %(release_)s
    %(found)s
    %(schema_)s
    sigma_ : float
        Standard deviation of the noise of a step of the last phase, on sums to which a record adds
        a vector of norm 1.
    %(labels)s
    %(shape)s
    n_iter_ : int
        Number of private steps in the last phase.
    loss_curve_ : list of float
        At each update, the estimated squared distance between the mean features of generated
        rows and those that were released.

    Notes
    -----
    In [1]_ the layers after the classifier's aggregate are trained without noise, and thrown away;
    but they shape the gradients that train conv1. The gradient of conv2* goes through an aggregate
    without noise. Both leak, and the stated guarantee does not hold. Here every aggregate is
    released with noise, and cotangents are taken there. The user guide proves what that costs.

    Differences to [1]_ that are no repairs: an aggregate for each class; large batches; averaged
    weights; by default a random conv1, and a generator that matches mean features.

    References
    ----------
    .. [1] Lin, Hsu, Yu, Cao & Huang, "DPAF: Image Synthesis via Differentially Private Aggregation
       in Forward Phase", 2023.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skdpgen import DPAFGenerator
    >>> X, y = load_iris(return_X_y=True)
    >>> generator = DPAFGenerator(
    ...     epsilon=5.0, bounds=(0, 8), classes=[0, 1, 2], random_state=0
    ... ).fit(X, y)
    >>> X_synthetic, y_synthetic = generator.sample(100)
    >>> X_synthetic.shape, bool(generator.epsilon_ <= 5.0)
    ((100, 4), True)
    """

    _shorthands = {**NetworkGenerator._shorthands, "release": {"aggregates": ForwardAggregates}}
    _checks = {
        "loss": one_of("matching", "rows"),
        "discriminator_layers": lambda name, value: _check_layers(name, value),
        "network": lambda name, value: value is None or check_network(name, value),
        "learning_rate": positive(),
    }

    _takes_components = False

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        relation: str = "zero_out",
        accountant: str = "pld",
        random_state: object = None,
        device: str = "auto",
        verbose: int = 0,
        strict: bool = False,
        bounds: Sequence | None = None,
        y_bounds: Sequence | None = None,
        classes: Sequence | None = None,
        clip_norm: float | str = "auto",
        image_shape: Sequence | str | None = "auto",
        schema: "Schema | str | None" = "auto",
        encoder: object = "auto",
        release: ForwardAggregates | str = "aggregates",
        loss: str = "matching",
        network: Callable | str | None = None,
        discriminator_layers: Sequence | Callable | None = None,
        latent_dim: int = 16,
        learning_rate: float = 0.001,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.accountant = accountant
        self.random_state = random_state
        self.device = device
        self.verbose = verbose
        self.strict = strict
        self.bounds = bounds
        self.y_bounds = y_bounds
        self.classes = classes
        self.clip_norm = clip_norm
        self.image_shape = image_shape
        self.schema = schema
        self.encoder = encoder
        self.release = release
        self.loss = loss
        self.network = network
        self.discriminator_layers = discriminator_layers
        self.latent_dim = latent_dim
        self.learning_rate = learning_rate

    def _plan(self, terms, format):
        # These raise an error for layers or networks of another size.
        image_shape, layers = self._find_layers(format)
        if callable(layers):
            if self._find_release(format).budget_split[0] > 0:
                raise ValueError(
                    "Layers of your own have no conv1: give budget_split=(0, 0.2, 0.8) to the "
                    "release, and layers without a gradient stay as they are."
                )
            n_columns = terms.n_columns or len(format.schema)
            try_discriminator(layers, n_columns, terms.n_classes, image_shape)
        if self.network is not None:
            self._try_network(terms, format, _count_generated(terms.n_samples))
        return self._find_release(format).plan(terms, format)

    def _list_assumptions(self, format):
        own = ("the layers in discriminator_layers map each row on its own and store none",)
        return (*super()._list_assumptions(format), *own * callable(self.discriminator_layers))

    def _find_layers(self, format):
        """Return the shape of the images that rows are, or None, and the numbers of layers."""
        # Only features in bounds, with nothing beside them, are pixels.
        images = None if format.feature_scale is None else format.images
        image_shape = None if images is None else images.image_shape
        if image_shape is not None and min(image_shape[1:]) < _LEAST_SIDES[images.is_told]:
            image_shape = None
        layers = self.discriminator_layers or default_layers(image_shape)
        if image_shape is None and not callable(layers) and layers[2]:
            raise ValueError(
                "Only images have layers after the aggregate: discriminator_layers=(c1, c2, 0)."
            )
        return image_shape, layers

    def _learn_aggregates(self, release, curator, format, noise):
        image_shape, layers = self._find_layers(format)
        n_classes, batch_size = curator.n_classes, release.count_rows(curator.n_records)
        factory = self.network or ("mlp" if image_shape is None else "conv")
        rows = make_rows(factory, format, self.latent_dim, n_classes, noise.seed())
        rows = rows.to(curator.device)

        def make_network(layers, n_outputs):
            make = OwnDiscriminator if callable(layers) else Discriminator
            with seeded(noise.seed()):
                network = make(
                    format.n_columns, n_classes, layers, image_shape, *_input_map(format), n_outputs
                )
            return network.to(curator.device)

        def mechanism_of(features, name, share):
            return partial(
                ForwardAggregateMechanism,
                PullingFunction(features),
                features.network.n_features,
                n_classes,
                n_products=features.n_products,
                grad_clip=release.grad_clip,
                share=share,
                name=name,
            )

        conv1, conv2, aggregates = release.budget_split
        network, generator = make_network(layers, 1), noise.torch_generator()
        features = RecordFeatures(network, release.keep)
        if conv1 > 0:
            n_frozen, n_trained, n_after = layers
            classifier = make_network((0, n_frozen + n_trained, n_after), n_classes)
            fit_classifier(
                classifier,
                curator.release,
                mechanism_of(RecordFeatures(classifier, release.keep), release.first, 0.5),
                n_steps=release.count_first(curator.n_records),
                batch_size=batch_size,
                learning_rate=self.learning_rate,
                generator=generator,
                verbose=self.verbose,
            )
            # The classifier has learnt the first layers with a share of the budget; they stay as
            # they are.
            network.frozen.load_state_dict(classifier.trained[:n_frozen].state_dict())
        return fit_to_aggregates(
            rows,
            features,
            curator.release,
            mechanism_of(features, release.second, aggregates / (conv2 + aggregates)),
            n_steps=release.count_steps(curator.n_records),
            batch_size=batch_size,
            grad_clip=release.grad_clip,
            n_generated=_count_generated(curator.n_records),
            n_updates=min(12, max(2, curator.n_records // 5000)),
            asymmetry=release.asymmetry if conv2 > 0 else None,
            objective=self.loss,
            learning_rate=self.learning_rate,
            generator=generator,
            verbose=self.verbose,
        )


def _count_generated(n_samples):
    """Return the number of generated rows in an update, over all classes."""
    return min(200, max(20, n_samples // 100))


def _input_map(format):
    """Return the scale and shift by which the entries of rows have a size of about 1."""
    # Weights of a block are at most 1 over the root of the number of blocks.
    if format.block_sizes:
        return math.sqrt(len(format.block_sizes)), 0.0
    # Features in [0, 1] become numbers in [-1, 1].
    if format.feature_scale is not None:
        return 2 * input_scale(format), -1.0
    return math.sqrt(format.n_columns), 0.0


def _check_layers(name, value):
    """Raise a ValueError unless a value is None, a factory or three large enough whole numbers."""
    if callable(value) and not isinstance(value, nn.Module):
        return
    layers = value if isinstance(value, tuple | list) else ()
    are_whole = len(layers) == 3 and all(isinstance(n, numbers.Integral) for n in layers)
    if value is not None and not (are_whole and min(layers[:2]) >= 1 and layers[2] >= 0):
        raise ValueError(
            f"{name} must be three whole numbers, of at least (1, 1, 0), a factory that makes a "
            f"module for the shape of a row, or None; got {value!r}."
        )
