# SPDX-License-Identifier: BSD-3-Clause
"""Learners: a discriminator and a generator, trained on noisy aggregates of features.

What reads private rows here is `RecordFeatures`, a public function, and only where a mechanism
applies it behind the curator's door. All other numbers are of what was released, or generated.
"""

import math
from functools import partial

import torch
from torch import nn
from tqdm import tqdm

from ..mechanisms.base import clip_rows
from ..quality import warn_of_absent
from .training import Descent, Shares, Training

# Memory of the mean features while layers before the aggregate change; they are then old after
# some tens of releases.
_MEMORY = 0.9
# Mixtures of the class means, by which the classifier is trained at each step.
_N_MIXTURES = 32


class RecordFeatures:
    """Features of rows, and vector-Jacobian products of each row on its own.

    In a dense or convolutional layer the product of a row follows from its inputs, and from the
    gradient at its outputs: one backward pass is for all rows.

    Parameters
    ----------
    network : Discriminator
        Its trained layers are those of the products.
    keep : float, default=1.0
        Share of the numbers of a product, the largest ones, that are kept; others become 0.
    """

    def __init__(self, network, keep=1.0):
        self.network = network
        self.keep = keep

    @property
    def n_products(self):
        """Length of a row's product."""
        return sum(weight.numel() for weight in self.network.trained.parameters())

    def __call__(self, rows, membership):
        network, example = self.network, self.network.labels.weight
        with torch.no_grad():
            seen = network.look(rows.to(example), membership.to(example))
        trace = []
        with torch.enable_grad():
            features = network(seen, trace)

        def pull(cotangents):
            # Rows do not meet before the sum: the gradient at a row's outputs is its own.
            outputs = [outputs for _, _, outputs in trace]
            gradients = torch.autograd.grad(
                features, outputs, cotangents.to(features), retain_graph=True
            )
            parts = [
                part
                for (layer, inputs, _), gradient in zip(trace, gradients, strict=True)
                for part in _row_gradients(layer, inputs.detach(), gradient)
            ]
            return _keep_largest(torch.cat(parts, dim=1), self.keep)

        return features.detach(), pull


def _row_gradients(layer, inputs, gradient):
    """Return each row's gradient in a layer's weight and bias, flat."""
    if isinstance(layer, nn.Linear):
        return (gradient[:, :, None] * inputs[:, None]).flatten(1), gradient
    patches = nn.functional.unfold(
        inputs, layer.kernel_size, padding=layer.padding, stride=layer.stride
    )
    gradient = gradient.flatten(2)
    return (gradient @ patches.mT).flatten(1), gradient.sum(2)


def _keep_largest(products, keep):
    """Set all but the largest numbers of each row to 0."""
    n_dropped = math.floor((1 - keep) * products.shape[1])
    if n_dropped == 0:
        return products
    limit = products.abs().kthvalue(n_dropped, dim=1, keepdim=True).values
    return products * (products.abs() > limit)


class ClassMeans:
    """Shares of the classes, and mean features of each, from noisy sums.

    Parameters
    ----------
    n_classes, n_features : int
    batch_size : float
        Expected records of a release, which sums are divided by, and not by how many joined.
    memory : float
        1: all releases weigh the same. Less: old ones are forgotten.
    device : torch.device
    """

    def __init__(self, n_classes, n_features, batch_size, memory, device):
        self.batch_size, self.memory = batch_size, memory
        self.shares = Shares(n_classes)
        self._sums = torch.zeros(n_classes, n_features, device=device)
        self._weight = self._energy = 0.0
        self._present, self._variance, self._n_releases = 0.0, 0.0, 0

    def update(self, released):
        """Take in a `NoisyAggregate`."""
        self._n_releases += 1
        self._present += released.counts.sum()
        # Of the noise, and of how many records are drawn.
        self._variance += len(released.counts) * released.counts_std**2 + self.batch_size
        std = released.counts_std / self.batch_size
        self.shares.add(released.counts / self.batch_size, std**2 + 0.25 / self.batch_size)
        self._sums = self.memory * self._sums + torch.as_tensor(released.features).to(self._sums)
        self._weight = self.memory * self._weight + 1
        self._energy = self.memory**2 * self._energy + released.features_std**2

    def warn_of_absent(self):
        """Warn if the counts say that many records are in no class."""
        n_expected = self.batch_size * self._n_releases
        warn_of_absent(self._present / n_expected, math.sqrt(self._variance) / n_expected)

    def expected(self):
        """Return how many records of each class a release is expected to have, (n_classes, 1)."""
        return self.batch_size * torch.as_tensor(self.shares.mean).to(self._sums)[:, None]

    def cotangent(self, loss, aggregate):
        """Return `cotangent_at` the means of one release."""
        expected = self.expected()
        return self.cotangent_at(loss, torch.as_tensor(aggregate.features).to(expected) / expected)

    def cotangent_at(self, loss, means):
        """Return the gradient of a loss of means in the features of a record, of each class.

        It is multiplied by the number of records that are expected: the mean over these of their
        products with it is the gradient in the weights.
        """
        means = means.detach().requires_grad_()
        with torch.enable_grad():
            gradient = torch.autograd.grad(loss(means), means)[0]
        return gradient * (self.batch_size / self.expected())

    @property
    def means(self):
        """Mean features of each class, (n_classes, n_features)."""
        return self._sums / (self._weight * self.expected())

    @property
    def std(self):
        """Standard deviation of their noise, (n_classes, 1)."""
        return math.sqrt(self._energy) / (self._weight * self.expected())


class SlowLayers:
    """Descent of the layers before the aggregate, once for several releases.

    Parameters
    ----------
    network : Discriminator
    learning_rate : float
    batch_size : float
        Expected records of a release.
    every : int
        Releases, of one noisy sum of products each, for one update.
    """

    def __init__(self, network, learning_rate, batch_size, every):
        self._weights = list(network.trained.parameters())
        self._descent = Descent(self._weights, learning_rate)
        self._batch_size, self._every = batch_size, every
        self._total, self._n_releases = 0.0, 0

    def update(self, released, other=lambda: 0.0):
        """Take in products; if it is time, descend them, with what reads no private row."""
        self._total = self._total + torch.as_tensor(released.products)
        self._n_releases += 1
        if self._n_releases < self._every:
            return
        mean = self._total / (self._batch_size * self._n_releases)
        flat = nn.utils.parameters_to_vector(self._weights)
        self._descent.step((flat * (mean.to(flat) + other())).sum(), 1.0)
        self._total, self._n_releases = 0.0, 0


@torch.inference_mode(False)
@torch.enable_grad()
def fit_classifier(
    network, release, mechanism, *, n_steps, batch_size, learning_rate, generator, verbose=0
):
    """Train a network to tell the shares of the classes in a mixture by its mean features.

    This is the first phase of the DPAF paper, from which its first layers are taken. There a batch
    is such a mixture. Here mixtures are made of the noisy sums of a batch, which costs nothing.

    Parameters
    ----------
    network : Discriminator
        With an output for each class; to be trained, in place.
    release : callable
        Returns the `NoisyAggregate` of a mechanism.
    mechanism : callable
        Makes the mechanism, from ``cotangent=``, a function that gives these.
    n_steps : int
        Number of releases.
    batch_size : float
        Expected records of a release.
    learning_rate : float
    generator, verbose
        As in `fit_to_sketch`.
    """
    n_classes = network.labels.in_features
    device = network.labels.weight.device
    known = ClassMeans(n_classes, network.n_features, batch_size, 0.0, device)
    slow = SlowLayers(network, learning_rate, batch_size, 1)
    head = Descent([*network.after.parameters(), *network.head.parameters()], learning_rate)
    nothing = torch.zeros(_N_MIXTURES, n_classes, device=device)

    def draw():
        shares = torch.empty(_N_MIXTURES, n_classes).exponential_(generator=generator).to(device)
        return shares / shares.sum(1, keepdim=True)

    def loss(means, shares):
        return (network.judge(shares @ means, nothing) - shares).square().sum(1).mean()

    for step in tqdm(range(n_steps), desc="classifier", disable=not verbose):
        verdict = partial(loss, shares=draw())
        released = release(mechanism(cotangent=partial(known.cotangent, verdict)))
        known.update(released)
        head.step(verdict(known.means), 1 - step / n_steps)
        slow.update(released)


@torch.inference_mode(False)
@torch.enable_grad()
def fit_to_aggregates(
    rows,
    features_of,
    release,
    mechanism,
    *,
    n_steps,
    batch_size,
    grad_clip,
    n_generated,
    n_updates,
    asymmetry,
    objective,
    learning_rate,
    generator,
    verbose=0,
):
    """Train a generator and a discriminator on noisy aggregates of the latter's features.

    Parameters
    ----------
    rows : RowNetwork
        The generator; to be trained, in place, on its device.
    features_of : RecordFeatures
        Of a discriminator with one output; to be trained, in place.
    release : callable
        Returns the `NoisyAggregate` of a mechanism.
    mechanism : callable
        Makes the mechanism, from ``cotangent=``, a function that gives these, or None.
    n_steps : int
        Number of releases.
    batch_size : float
        Expected records of a release.
    grad_clip : float
        Radius of each record's products.
    n_generated : int
        Generated rows at an update, the same number of each class.
    n_updates : int
        Updates of the generator after a release, each after one of the discriminator's head.
    asymmetry : int or None
        Releases for one update of the layers before the aggregate; None: they stay as they are.
    objective : {"matching", "rows"}
        What the generator is trained by: the distance of its mean features to those released, or
        the discriminator's verdict on single rows.
    learning_rate : float
        Of Adam, after a warm-up; it decays linearly to 0.
    generator, verbose
        As in `fit_to_sketch`.

    Returns
    -------
    rows : RowNetwork
        With averaged weights, on the CPU and in evaluation mode.
    shares : ndarray of shape (n_classes,)
        Estimated shares of the classes.
    losses : list of float
        At each update of the generator, the estimated squared distance between mean features of
        generated rows, and those that were released.
    """
    network, n_classes, device = features_of.network, rows.n_classes, rows.spread.device
    is_trained = asymmetry is not None
    network.trained.requires_grad_(is_trained)
    known = ClassMeans(
        n_classes, network.n_features, batch_size, _MEMORY if is_trained else 1.0, device
    )
    training = Training(rows, learning_rate, memory=0.999)
    head = Descent([*network.after.parameters(), *network.head.parameters()], learning_rate)
    slow = SlowLayers(network, learning_rate, batch_size, asymmetry) if is_trained else None
    per_class = 2 * max(1, n_generated // (2 * n_classes))
    classes = torch.arange(n_classes).repeat_interleave(per_class)
    one_hot = torch.eye(n_classes, device=device)
    labels = one_hot[classes.to(device)]

    def look():
        """Return what the frozen layers make of generated rows."""
        return network.look(rows(rows.draw(classes, generator)), labels)

    def by_class(features):
        return features.unflatten(0, (n_classes, per_class))

    def verdict(means, is_real):
        logits = network.judge(means, one_hot)
        return nn.functional.softplus(-logits if is_real else logits).mean()

    @torch.no_grad()
    def fake_products():
        """Return the mean of generated rows' products, clipped as those of records are."""
        made, pull = features_of(rows(rows.draw(classes, generator)), labels)
        means = by_class(made).mean(1)
        cotangents = known.cotangent_at(partial(verdict, is_real=False), means)
        products = clip_rows(pull(labels @ cotangents), grad_clip)
        return labels @ (known.expected()[:, 0] / batch_size / per_class) @ products

    def distance(features):
        # The product of two independent estimates has no bias from their variance.
        first, second = (part.mean(1) - known.means for part in features.chunk(2, dim=1))
        weights = known.expected() / known.expected().mean()
        return (weights.square() * first * second).sum() / n_classes

    cotangent, losses = None, []
    if is_trained:
        cotangent = partial(known.cotangent, partial(verdict, is_real=True))
    for step in tqdm(range(n_steps), desc="generator", disable=not verbose):
        released = release(mechanism(cotangent=cotangent))
        known.update(released)
        if slow is not None:
            slow.update(released, fake_products)
        rate = 1 - step / n_steps
        for _ in range(n_updates):
            features = by_class(network(look()))
            if is_trained or objective == "rows":
                fake = features.detach().mean(1)
                noise = torch.randn(fake.shape, generator=generator).to(device)
                head.step(
                    verdict(known.means, is_real=True)
                    + verdict(fake + known.std * noise, is_real=False),
                    rate,
                )
            gap = distance(features)
            if objective == "rows":
                logits = network.judge(features.flatten(0, 1), labels)
                training.step(nn.functional.softplus(-logits).mean(), rate)
            else:
                training.step(gap, rate)
            losses.append(gap.detach())
    averaged = training.finish(lambda: rows.draw(classes, generator))
    known.warn_of_absent()
    return averaged, known.shares.mean, torch.stack(losses).tolist()
