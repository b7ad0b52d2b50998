# SPDX-License-Identifier: BSD-3-Clause
"""Training of a generator and a discriminator on noisy aggregates of features (DPAF).

`RecordFeatures` is the public function of private rows. Only a mechanism applies it, within the
trust boundary. All other numbers are released or generated.
"""

import copy
import math
from collections.abc import Callable
from functools import partial

import torch
from torch import nn

from ..data.rows import clip_rows
from ..mechanisms.aggregates import NoisyAggregate
from ..networks.discriminators import Discriminator, OwnDiscriminator
from ..networks.generators import rehearsing
from ..quality import warn_of_absent
from .interface import Sampler
from .rows import RowNetwork
from .training import ClassShares, Descent, Training, run_steps

# Memory of the mean features while the layers before the aggregate change; features are then
# outdated after some tens of releases. Both are set by hand.
_MEMORY = 0.9
# Mixtures of the class means on which the classifier is trained at each step.
_N_MIXTURES = 32


class RecordFeatures:
    """Features of rows, and vector-Jacobian products of each row on its own.

    Products are of each row by itself, in the weights of the network's trained layers; features
    are, since layers do not mix rows, or see one. The share `keep` of a product's entries, the
    largest ones, is kept; others become 0.
    """

    def __init__(self, network: Discriminator, keep: float = 1.0) -> None:
        self.network = network
        self.keep = keep

    @property
    def n_products(self) -> int:
        """Length of a row's product."""
        return sum(weight.numel() for weight in self.network.trained.parameters())

    def __call__(self, rows, membership):
        network = self.network
        if isinstance(network, OwnDiscriminator):
            # A copy, which is gone with the rows, if a module should keep anything of them.
            network = copy.deepcopy(network)
        example = network.labels.weight
        # Frozen layers have no gradient to release.
        with torch.no_grad():
            inputs = network.look(rows.to(example), membership.to(example))
        features, pull = network.with_products(inputs)
        return features, lambda cotangents: _keep_largest(pull(cotangents.to(features)), self.keep)


def _keep_largest(products, keep):
    """Set all but the largest entries of each row to 0."""
    n_dropped = math.floor((1 - keep) * products.shape[1])
    if n_dropped == 0:
        return products
    # Per row, before clipping: each row decides on its own entries only.
    limit = products.abs().kthvalue(n_dropped, dim=1, keepdim=True).values
    return products * (products.abs() > limit)


def try_discriminator(factory, n_columns, n_classes, image_shape) -> None:
    """Raise an error if layers of users cannot be made, or not be trained row by row."""
    with rehearsing("discriminator_layers"):
        network = OwnDiscriminator(n_columns, n_classes, factory, image_shape)
        if not len(network.trained):
            raise ValueError("discriminator_layers has no weights to train.")
        rows, one_hot = torch.rand(3, n_columns), torch.eye(3, n_classes)
        features, pull = RecordFeatures(network)(rows, one_hot)
        products = pull(torch.ones_like(features))
        if not all(bool(made.isfinite().all()) for made in (features, products)):
            raise ValueError("discriminator_layers gives NaN or infinity for made-up rows.")
        network.judge(features, one_hot)


class ClassMeans:
    """Shares of the classes, and mean features of each, from noisy sums.

    Sums are divided by `batch_size`, the expected records of a release, and not by the private
    number. At each new release the weights of older ones are multiplied by `memory`.
    """

    def __init__(
        self,
        n_classes: int,
        n_features: int,
        batch_size: float,
        memory: float,
        device: torch.device,
    ) -> None:
        self.batch_size, self.memory = batch_size, memory
        self.shares = ClassShares(n_classes)
        self._sums = torch.zeros(n_classes, n_features, device=device)
        self._weight = self._energy = 0.0
        self._present, self._variance, self._n_releases = 0.0, 0.0, 0

    def update(self, released: NoisyAggregate) -> None:
        """Add a release."""
        self._n_releases += 1
        self._present += released.counts.sum()
        # The variances of the noise, and of sampling.
        self._variance += len(released.counts) * released.counts_std**2 + self.batch_size
        std = released.counts_std / self.batch_size
        self.shares.add(released.counts / self.batch_size, std**2 + 0.25 / self.batch_size)
        self._sums = self.memory * self._sums + torch.as_tensor(released.features).to(self._sums)
        self._weight = self.memory * self._weight + 1
        # Noise of independent releases adds in squares.
        self._energy = self.memory**2 * self._energy + released.features_std**2

    def warn_of_absent(self) -> None:
        """Warn if the noisy counts show that many records are absent."""
        n_expected = self.batch_size * self._n_releases
        warn_of_absent(self._present / n_expected, math.sqrt(self._variance) / n_expected)

    def expected(self) -> torch.Tensor:
        """Return the expected number of records of each class in a release, (n_classes, 1)."""
        return self.batch_size * torch.as_tensor(self.shares.mean).to(self._sums)[:, None]

    def cotangent(self, loss: Callable, aggregate: NoisyAggregate) -> torch.Tensor:
        """Return `cotangent_at` the means of one release."""
        expected = self.expected()
        return self.cotangent_at(loss, torch.as_tensor(aggregate.features).to(expected) / expected)

    def cotangent_at(self, loss: Callable, means: torch.Tensor) -> torch.Tensor:
        """Return the gradient of a loss of means in the features of a record of each class.

        It is multiplied by the expected number of records, so that the gradient in the weights is
        the sum of the records' products with it over that number.
        """
        means = means.detach().requires_grad_()
        with torch.enable_grad():
            gradient = torch.autograd.grad(loss(means), means)[0]
        return gradient * (self.batch_size / self.expected())

    @property
    def means(self) -> torch.Tensor:
        """Mean features of each class, (n_classes, n_features)."""
        return self._sums / (self._weight * self.expected())

    @property
    def std(self) -> torch.Tensor:
        """Standard deviation of their noise, (n_classes, 1)."""
        return math.sqrt(self._energy) / (self._weight * self.expected())


class SlowLayers:
    """Descent of the layers before the aggregate, once for `every` releases of a noisy sum each.

    `batch_size` is the expected number of records of a release.
    """

    def __init__(
        self, network: Discriminator, learning_rate: float, batch_size: float, every: int
    ) -> None:
        self._weights = list(network.trained.parameters())
        self._descent = Descent(self._weights, learning_rate)
        self._batch_size, self._every = batch_size, every
        self._total: torch.Tensor | float = 0.0
        self._n_releases = 0

    def update(self, released: NoisyAggregate, other: Callable = lambda: 0.0) -> None:
        """Add products; at every k-th release, descend them plus `other()`, a public gradient."""
        self._total = total = self._total + torch.as_tensor(released.products)
        self._n_releases += 1
        if self._n_releases < self._every:
            return
        mean = total / (self._batch_size * self._n_releases)
        flat = nn.utils.parameters_to_vector(self._weights)
        # A linear loss has the given gradient, so that the optimiser needs no special step.
        self._descent.step((flat * (mean.to(flat) + other())).sum(), 1.0)
        self._total, self._n_releases = 0.0, 0


def fit_classifier(
    network: Discriminator,
    release: Callable,
    mechanism: Callable,
    *,
    n_steps: int,
    batch_size: float,
    learning_rate: float,
    generator: torch.Generator,
    verbose: int = 0,
) -> None:
    """Train a network to predict the shares of the classes in a mixture from its mean features.

    This is the first phase of the DPAF paper, whose first layers are used later. There a batch is
    such a mixture. Here mixtures are made of the noisy sums of a batch, which is post-processing.

    The network has an output for each class, and is trained in place. Other parameters are those of
    `fit_to_aggregates`.
    """
    n_classes, device = network.labels.in_features, network.labels.weight.device
    known = ClassMeans(n_classes, network.n_features, batch_size, 0.0, device)
    slow = SlowLayers(network, learning_rate, batch_size, 1)
    head = _head_descent(network, learning_rate)
    nothing = torch.zeros(_N_MIXTURES, n_classes, device=device)

    def draw():
        shares = torch.empty(nothing.shape).exponential_(generator=generator).to(device)
        # Normalised exponentials are uniform on the simplex of shares.
        return shares / shares.sum(1, keepdim=True)

    def loss(means, shares):
        return (network.judge(shares @ means, nothing) - shares).square().sum(1).mean()

    def take_step(rate):
        its_loss = partial(loss, shares=draw())
        released = release(mechanism(cotangent=partial(known.cotangent, its_loss)))
        known.update(released)
        value = head.step(its_loss(known.means), rate)
        slow.update(released)
        return value

    run_steps(take_step, n_steps, label="classifier", verbose=verbose)


def fit_to_aggregates(
    rows: RowNetwork,
    features_of: RecordFeatures,
    release: Callable,
    mechanism: Callable,
    *,
    n_steps: int,
    batch_size: float,
    grad_clip: float,
    n_generated: int,
    n_updates: int,
    asymmetry: int | None,
    objective: str,
    learning_rate: float,
    generator: torch.Generator,
    verbose: int = 0,
) -> Sampler:
    """Train a generator and a discriminator on noisy aggregates of the discriminator's features.

    Both are trained in place; the discriminator of `features_of` has one output. Losses are, at
    each update of the generator, the estimated squared distance between mean features of generated
    rows and released ones.

    Parameters
    ----------
    release, mechanism : callable
        `release` returns the `NoisyAggregate` of a mechanism, which `mechanism` makes from the
        keyword ``cotangent``: a function that returns cotangents, or None.
    n_steps, batch_size
        Number of releases, and expected records of each.
    grad_clip : float
        Radius of each record's products.
    n_generated : int
        Generated rows in an update, the same number of each class.
    n_updates : int
        Updates of the generator after a release, each after one of the discriminator's head.
    asymmetry : int or None
        Releases for one update of the layers before the aggregate; None: they are not trained.
    objective : {"matching", "rows"}
        The objective of the generator: the distance of its mean features to those released, or the
        discriminator's verdict on single rows.
    learning_rate : float
        For Adam, after a warm-up; it decays linearly to 0.
    """
    network, n_classes, device = features_of.network, rows.n_classes, rows.scale.device
    is_trained, slow = asymmetry is not None, None
    network.trained.requires_grad_(is_trained)
    memory = _MEMORY if is_trained else 1.0
    known = ClassMeans(n_classes, network.n_features, batch_size, memory, device)
    training, head = Training(rows, learning_rate), _head_descent(network, learning_rate)
    if asymmetry is not None:
        slow = SlowLayers(network, learning_rate, batch_size, asymmetry)
    # Even, since halves give two independent estimates of the means.
    per_class = 2 * max(1, n_generated // (2 * n_classes))
    classes = torch.arange(n_classes).repeat_interleave(per_class)
    one_hot = torch.eye(n_classes, device=device)
    labels = one_hot[classes.to(device)]

    def draw():
        return rows.draw(classes, generator)

    def by_class(features):
        return features.unflatten(0, (n_classes, per_class))

    def verdict(means, is_real):
        logits = network.judge(means, one_hot)
        return nn.functional.softplus(-logits if is_real else logits).mean()

    @torch.no_grad()
    def fake_products():
        """Return the mean of generated rows' products, clipped as those of records are."""
        features, pull = features_of(rows(draw()), labels)
        means = by_class(features).mean(1)
        cotangents = known.cotangent_at(partial(verdict, is_real=False), means)
        products = clip_rows(pull(labels @ cotangents), grad_clip)
        return labels @ (known.expected()[:, 0] / batch_size / per_class) @ products

    def distance(features):
        # The product of two independent estimates has no bias from their variance.
        first, second = (part.mean(1) - known.means for part in features.chunk(2, dim=1))
        weights = known.expected() / known.expected().mean()
        return (weights.square() * first * second).sum() / n_classes

    def update(rate):
        features = by_class(network(network.look(rows(draw()), labels)))
        if is_trained or objective == "rows":
            fake = features.detach().mean(1)
            noise = torch.randn(fake.shape, generator=generator).to(device)
            # As noisy as the real means: the head must not learn to tell noise from its absence.
            real, fake = known.means, fake + known.std * noise
            head.step(verdict(real, is_real=True) + verdict(fake, is_real=False), rate)
        gap = loss = distance(features)
        if objective == "rows":
            logits = network.judge(features.flatten(0, 1), labels)
            loss = nn.functional.softplus(-logits).mean()
        training.step(loss, rate)
        return gap.detach()

    def take_step(rate):
        released = release(mechanism(cotangent=cotangent))
        known.update(released)
        if slow is not None:
            slow.update(released, fake_products)
        return torch.stack([update(rate) for _ in range(n_updates)])

    real_verdict = partial(verdict, is_real=True)
    cotangent = partial(known.cotangent, real_verdict) if is_trained else None
    losses = run_steps(take_step, n_steps, verbose=verbose)
    averaged = training.finish(draw)
    known.warn_of_absent()
    return Sampler(averaged, losses, known.shares.mean, n_steps=n_steps)


def _head_descent(network, learning_rate):
    """Return the descent of the layers after the aggregate."""
    return Descent([*network.after.parameters(), *network.head.parameters()], learning_rate)
