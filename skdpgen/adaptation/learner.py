# SPDX-License-Identifier: BSD-3-Clause
"""Domain adaptation: a representation in which two domains are alike, and a classifier on it.

The rows of the source are public. The target is given by synthetic rows or by releases.
`EncodedRecords` is the public function of private rows. Only a mechanism applies it, within the
trust boundary.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy

from ..data.record_functions import PullingFunction
from ..learners.training import Descent, linear_decay, run_steps
from ..mechanisms.base import clip_rows
from ..mechanisms.sampled import SlicedRowsMechanism
from ..transport import random_directions, wasserstein_1d


@dataclass(frozen=True)
class AdaptationConstants:
    """Constants of domain adaptation. Those without a source are set by hand."""

    # Share of the steps, the last ones, over which the learning rate falls to 0.
    decay: float = 0.5
    # Rate of the rise of the alignment's weight: Ganin et al., JMLR 2016, section 5.2.
    ramp: float = 10.0
    # Steps on the source alone before the first release, relative to the number of releases.
    head_start: float = 0.3
    # Quantile of the norms of encoded source rows that is mapped to the unit ball.
    quantile: float = 0.9
    # Records whose products are computed at once; it bounds memory.
    chunk: int = 64


CONSTANTS = AdaptationConstants()
_late_decay = partial(linear_decay, decay=CONSTANTS.decay)


def fit_adaptation(
    encoder: nn.Module,
    head: nn.Module,
    source: tuple[torch.Tensor, torch.Tensor],
    target: torch.Tensor | None = None,
    *,
    masked: torch.Tensor | None = None,
    align_weight: float = 0.0,
    class_align_weight: float = 0.0,
    n_projections: int = 200,
    n_steps: int,
    batch_size: int,
    learning_rate: float,
    augment: Callable | None = None,
    generator: torch.Generator,
    verbose: int = 0,
) -> list[float]:
    """Train an encoder and a head on labelled source rows, and align them with the target.

    The loss is the head's cross-entropy on source rows, plus `align_weight` times the squared
    sliced Wasserstein distance between encoded batches of both domains (equation 7 of [1]_, in
    sums over coordinates), plus `class_align_weight` times the squared distance between the means
    of the classes in both, where classes of target rows are predicted by the head. The weight of
    the last two terms rises gradually, since early predictions are poor.

    Rows that represent the target may lack some features. Then the source rows in `masked` lack
    them, too: domains are compared by these, and the head learns from both.

    Parameters
    ----------
    encoder, head : torch.nn.Module
        Trained in place.
    source : tuple of tensors of shape (n, n_inputs) and (n,)
        Rows and their classes.
    target : tensor of shape (m, n_inputs), default=None
        Public rows that represent the target. None: no alignment.
    masked : tensor of shape (n, n_inputs), default=None
        The source rows without the features that `target` lacks; None: it lacks none.
    align_weight, class_align_weight : float, default=0.0
    n_projections : int, default=200
        Directions drawn at each step.
    n_steps, batch_size : int
        Steps; rows of each domain in a step.
    learning_rate : float
        For Adam; it falls linearly to 0 over the second half.
    augment : callable, default=None
        ``augment(rows, generator)`` changes the rows of a batch at random.
    generator, verbose
        As in `fit_to_sketch`.

    Returns
    -------
    losses : list of float

    References
    ----------
    .. [1] Rakotomamonjy & Ralaivola, "Differentially Private Sliced Wasserstein Distance", ICML
       2021.
    """
    descent = Descent([*encoder.parameters(), *head.parameters()], learning_rate, warm_up=1)
    sources = [*source] if masked is None else [*source, masked]
    step = 0

    def encode(rows):
        return encoder(rows if augment is None else augment(rows, generator))

    def take_step(rate):
        nonlocal step
        rows, labels, *others = _draw(batch_size, generator, *sources)
        encoded = encode(rows)
        loss = cross_entropy(head(encoded), labels)
        for part in others:
            encoded = encode(part)
            loss = loss + cross_entropy(head(encoded), labels)
        if target is not None:
            encoded_target = encode(*_draw(batch_size, generator, target))
            gap = align_weight * _sliced_gap(encoded, encoded_target, n_projections, generator)
            if class_align_weight:
                predicted = head(encoded_target).softmax(1).detach()
                gap = gap + class_align_weight * _class_gap(
                    encoded, labels, encoded_target, predicted
                )
            loss = loss + _ramp(step / n_steps) * gap
        step += 1
        return descent.step(loss, rate)

    return run_steps(take_step, n_steps, _late_decay, label="adaptation", verbose=verbose)


class EncodedRecords:
    """Encoded rows, and vector-Jacobian products of each row in the encoder's weights.

    The encoder is mapped over single rows: one that combines several rows fails.

    Parameters
    ----------
    encoder : torch.nn.Module
    prepare : callable
        A public map from rows in the unit ball to inputs of the encoder.
    radius : float
        Divisor of encoded rows.
    """

    def __init__(self, encoder: nn.Module, prepare: Callable, radius: float) -> None:
        self.encoder, self.prepare, self.radius = encoder, prepare, radius

    @property
    def weights(self) -> dict[str, torch.Tensor]:
        """The trained weights, by name."""
        return {name: w for name, w in self.encoder.named_parameters() if w.requires_grad}

    def __call__(self, rows):
        """Return encoded rows, and the function from their cotangents to products."""
        weights = {name: weight.detach() for name, weight in self.weights.items()}
        inputs = self.prepare(rows)

        def encode(weights, row):
            return functional_call(self.encoder, weights, (row[None],))[0] / self.radius

        def along(weights, row, cotangent):
            return encode(weights, row) @ cotangent

        def pull(cotangents):
            products = vmap(grad(along), in_dims=(None, 0, 0), chunk_size=CONSTANTS.chunk)(
                weights, inputs, cotangents.to(inputs)
            )
            return torch.cat([products[name].flatten(1) for name in weights], dim=1)

        with torch.no_grad():
            encoded = vmap(encode, in_dims=(None, 0), chunk_size=CONSTANTS.chunk)(weights, inputs)
        return encoded, pull


def fit_to_released_rows(
    encoder: nn.Module,
    head: nn.Module,
    source: tuple[torch.Tensor, torch.Tensor],
    release: Callable,
    prepare: Callable,
    *,
    align_weight: float,
    n_steps: int,
    batch_size: int,
    learning_rate: float,
    beside: float,
    grad_clip: float,
    generator: torch.Generator,
    verbose: int = 0,
) -> list[float]:
    """Train an encoder and a head, and align the source with released rows of the target.

    This is Algorithm 2 of [1]_, as far as it is private. The first steps, three tenths of
    `n_steps`, use the source alone. Then each step releases noisy projections of a batch of encoded
    target rows, and compares them with those of source rows, which are padded and noised alike. The
    gradient of that distance through the source rows is post-processing. The gradient through the
    target rows is released: the product of each record's Jacobian with the gradient at its noisy
    projections, which are public, is clipped, summed and noised.

    Parameters
    ----------
    encoder, head : torch.nn.Module
        Trained in place.
    source : tuple of tensors of shape (n, n_inputs) and (n,)
        Rows and their classes.
    release : callable
        Takes a `SlicedRowsMechanism` and returns its release.
    prepare : callable
        A public map from rows of the curator to inputs of the encoder.
    align_weight : float
        Weight of the squared sliced distance, summed over the columns of the representation, which
        is scaled so that most source rows are in the unit ball.
    n_steps, batch_size : int
        Releases; source rows in a step, as many as target rows are expected.
    learning_rate : float
        For Adam; it falls linearly to 0 over the second half of the releases.
    beside : float
        Squared norm of a product in the joint release; see `SlicedRowsMechanism`. 0: products are
        not released, and only the source is moved towards the target.
    grad_clip : float
        Radius of products.
    generator, verbose
        As in `fit_to_sketch`.

    Returns
    -------
    losses : list of float

    References
    ----------
    .. [1] Rakotomamonjy & Ralaivola, "Differentially Private Sliced Wasserstein Distance", ICML
       2021.
    """
    records = EncodedRecords(encoder, prepare, radius=1.0)
    weights = list(records.weights.values())
    descent = Descent([*weights, *head.parameters()], learning_rate, warm_up=1)
    n_products = sum(weight.numel() for weight in weights) if beside else 0
    step = -math.ceil(CONSTANTS.head_start * n_steps)  # The first release is at step 0.

    def schedule(losses, n_all):
        yield from [1.0] * (n_all - n_steps)
        yield from _late_decay(losses, n_steps)

    def align(encoded):
        """Release rows of the target; return the distance of source rows to them, and both."""
        # The radius depends on public rows only.
        norms = encoded.detach().norm(dim=1)
        records.radius = float(norms.quantile(CONSTANTS.quantile).clamp(min=1e-6))
        unit = clip_rows(encoded / records.radius, 1.0)
        # The noise on source rows is fixed before private rows are read.
        seed = int(torch.randint(2**62, (1,), generator=generator))
        mechanism = SlicedRowsMechanism(
            unit.shape[1],
            encode=PullingFunction(records),
            cotangent=partial(_cotangent, unit.detach(), seed) if beside else None,
            n_products=n_products,
            grad_clip=grad_clip,
            beside=beside,
        )
        released = release(mechanism)
        real = torch.tensor(released.values[0]).to(unit)
        return _gap_to_released(unit, real, released, generator), released

    def take_step(rate):
        nonlocal step
        rows, labels = _draw(batch_size, generator, *source)
        encoded = encoder(rows)
        loss, linear = cross_entropy(head(encoded), labels), 0.0
        if step >= 0:
            weight = align_weight * _ramp(step / n_steps)
            gap, released = align(encoded)
            loss = loss + weight * gap
            if beside:
                flat = nn.utils.parameters_to_vector(weights)
                products = torch.as_tensor(released.products).to(encoded)
                linear = (flat * (products * (weight / released.values.shape[2]))).sum()
        step += 1
        descent.step(loss + linear, rate)
        return loss.detach()

    n_all = n_steps - step
    return run_steps(take_step, n_all, schedule, label="adaptation", verbose=verbose)


def _cotangent(unit, seed, released):
    """Return the gradient of the distance at each slot of a release, in encoded rows.

    It is the gradient of a sum over slots, not of a mean: its size does not depend on their number.
    """
    projected = torch.tensor(released.values[0]).to(unit).requires_grad_()
    generator = torch.Generator().manual_seed(seed)
    gap = _gap_to_released(unit, projected, released, generator)
    slope = torch.autograd.grad(gap, projected)[0]
    return (released.directions.to(unit) @ slope).T * projected.shape[1]


def _gap_to_released(unit, projected, released, generator):
    """Return d·SW₂² to source rows, padded by zeros and noised as released rows are."""
    n_slots = released.values.shape[2]
    rows = nn.functional.pad(
        released.directions.to(unit).T @ unit[:n_slots].T, (0, max(0, n_slots - len(unit)))
    )
    noise = torch.randn(rows.shape, generator=generator, dtype=unit.dtype)
    rows = rows + released.std * noise.to(unit.device)
    return unit.shape[1] * wasserstein_1d(rows, projected).mean()


def _ramp(share):
    """Return the weight of alignment after a share of the steps, relative to the last."""
    return 2 / (1 + math.exp(-CONSTANTS.ramp * share)) - 1


def _draw(size, generator, *tensors):
    """Draw the same random rows of all tensors."""
    drawn = torch.randint(len(tensors[0]), (size,), generator=generator).to(tensors[0].device)
    return [tensor[drawn] for tensor in tensors]


def _sliced_gap(first, second, n_projections, generator):
    """Return d·SW₂², which, unlike SW₂², does not fall with the number of coordinates."""
    d = first.shape[1]
    # Orthonormal directions of a wide representation would take longer than the rest of a step.
    directions = random_directions(d, n_projections, orthogonal=False, generator=generator)
    directions = directions.to(first)
    return d * wasserstein_1d((first @ directions).T, (second @ directions).T).mean()


def _class_gap(first, labels, second, predicted):
    """Return the mean squared distance of the classes' means; a class needs a row in both."""
    n_classes = predicted.shape[1]
    members = nn.functional.one_hot(labels, n_classes).to(first)
    pairs = ((members, first), (predicted, second))
    means = [part.T @ rows / part.sum(0)[:, None].clamp(min=1) for part, rows in pairs]
    shared = (members.sum(0) >= 1) & (predicted.sum(0) >= 1)
    gaps = (means[0] - means[1]).square().sum(1)
    return (gaps * shared).sum() / n_classes
