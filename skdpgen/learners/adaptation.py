# SPDX-License-Identifier: BSD-3-Clause
"""Learners: a representation in which two domains look alike, and a classifier on it.

They see the rows of the source, which are public, and of the target synthetic rows or releases.
What reads private rows here is `EncodedRecords`, a public function, and only where a mechanism
applies it behind the curator's door.
"""

import math
from functools import partial

import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy
from tqdm import tqdm

from ..curator.record_functions import PullingFunction
from ..mechanisms.base import clip_rows
from ..mechanisms.sampled import SlicedRowsMechanism
from ..transport import random_directions, wasserstein_1d

# Share of the steps, the last ones, in which the learning rate falls to 0.
_DECAY = 0.5
# How fast alignment sets in (Ganin et al., JMLR 2016, section 5.2).
_RAMP = 10.0
# Steps on the source alone before the first release of rows, relative to the number of releases.
_HEAD_START = 0.3
# Records whose products are found at a time.
_CHUNK = 64


@torch.inference_mode(False)
@torch.enable_grad()
def fit_adaptation(
    encoder,
    head,
    source,
    target=None,
    *,
    seen=None,
    align_weight=0.0,
    class_align_weight=0.0,
    n_projections=200,
    n_steps,
    batch_size,
    learning_rate,
    augment=None,
    generator,
    verbose=0,
):
    """Train an encoder and a head on labelled source rows, and align them with the target.

    The loss is the head's cross-entropy on source rows, plus `align_weight` times the squared
    sliced Wasserstein distance between encoded batches of both domains (equation 7 of [1]_, in
    sums over coordinates), plus `class_align_weight` times the squared distance between the means
    of the classes in both, where classes of target rows are the head's own guesses. The two last
    set in gradually, as guesses are no good at first.

    What stands in for the target may lack some of what rows have. Then domains are compared by
    source rows that lack it, too, and the head learns from both kinds.

    Parameters
    ----------
    encoder, head : torch.nn.Module
        Trained in place.
    source : tuple of tensors of shape (n, n_inputs) and (n,)
        Rows and their classes.
    target : tensor of shape (m, n_inputs), default=None
        Public rows in place of the target's. None: nothing is aligned.
    seen : tensor of shape (n, n_inputs), default=None
        What is like the target of the source's rows; None: all of them.
    align_weight, class_align_weight : float, default=0.0
    n_projections : int, default=200
        Directions drawn at each step.
    n_steps, batch_size : int
        Steps; rows a step from each domain.
    learning_rate : float
        Of Adam; it falls linearly to 0 over the second half.
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
    X, classes = source
    kinds = [] if seen is None else [seen]
    parameters = [*encoder.parameters(), *head.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=learning_rate)
    losses = []

    def encode(rows):
        return encoder(rows if augment is None else augment(rows, generator))

    for step in tqdm(range(n_steps), desc="adaptation", disable=not verbose):
        optimizer.param_groups[0]["lr"] = learning_rate * _decay(step / n_steps)
        rows, labels, *rows_seen = _draw(batch_size, generator, X, classes, *kinds)
        encoded = encode(rows)
        loss = cross_entropy(head(encoded), labels)
        for part in rows_seen:
            encoded = encode(part)
            loss = loss + cross_entropy(head(encoded), labels)
        if target is not None:
            encoded_target = encode(*_draw(batch_size, generator, target))
            gap = align_weight * _sliced_gap(encoded, encoded_target, n_projections, generator)
            if class_align_weight:
                guesses = head(encoded_target).softmax(1).detach()
                gap = gap + class_align_weight * _class_gap(
                    encoded, labels, encoded_target, guesses
                )
            loss = loss + _ramp(step / n_steps) * gap
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).tolist()


class EncodedRecords:
    """Encodes rows, each on its own, and pulls cotangents back to the encoder's weights.

    The encoder is mapped over the rows one by one: one that looks at several rows fails.

    Parameters
    ----------
    encoder : torch.nn.Module
    prepare : callable
        A public map from rows in the unit ball to what the encoder reads.
    radius : float
        What encoded rows are divided by.
    """

    def __init__(self, encoder, prepare, radius):
        self.encoder, self.prepare, self.radius = encoder, prepare, radius

    @property
    def weights(self):
        """The trained weights, by name."""
        return {name: w for name, w in self.encoder.named_parameters() if w.requires_grad}

    def __call__(self, rows):
        """Return encoded rows, and the map from cotangents at them to products, one for each."""
        weights = {name: weight.detach() for name, weight in self.weights.items()}
        inputs = self.prepare(rows)

        def encode(weights, row):
            return functional_call(self.encoder, weights, (row[None],))[0] / self.radius

        def along(weights, row, cotangent):
            return encode(weights, row) @ cotangent

        def pull(cotangents):
            products = vmap(grad(along), in_dims=(None, 0, 0), chunk_size=_CHUNK)(
                weights, inputs, cotangents.to(inputs)
            )
            return torch.cat([products[name].flatten(1) for name in weights], dim=1)

        with torch.no_grad():
            encoded = vmap(encode, in_dims=(None, 0), chunk_size=_CHUNK)(weights, inputs)
        return encoded, pull


@torch.inference_mode(False)
@torch.enable_grad()
def fit_to_released_rows(
    encoder,
    head,
    source,
    release,
    prepare,
    *,
    align_weight,
    n_steps,
    batch_size,
    learning_rate,
    beside,
    grad_clip,
    generator,
    verbose=0,
):
    """Train an encoder and a head, and align the source with released rows of the target.

    Algorithm 2 of [1]_, as far as it is sound. First come steps on the source alone, three tenths
    of `n_steps`. Then each step releases noisy projections of a batch of encoded target rows, and
    compares them with those of source rows, which are padded and noised alike. The gradient of that
    distance reaches the encoder through the source rows for free. Through the target rows it is
    released: for each record the product of its own features' derivative with the gradient at its
    noisy projections, which are public, clipped and noised.

    Parameters
    ----------
    encoder, head : torch.nn.Module
        Trained in place.
    source : tuple of tensors of shape (n, n_inputs) and (n,)
        Rows and their classes.
    release : callable
        Takes a `SlicedRowsMechanism` and returns what it releases.
    prepare : callable
        A public map from rows as the curator holds them to what the encoder reads.
    align_weight : float
        Weight of the squared sliced distance, summed over the columns of the representation, which
        is scaled so that most source rows are in the unit ball.
    n_steps, batch_size : int
        Releases; source rows a step, as many as target rows are expected.
    learning_rate : float
        Of Adam; it falls linearly to 0 over the second half.
    beside : float
        What products count for, beside projections; see `SlicedRowsMechanism`. 0: none are
        released, and the encoder learns of the target only how to move the source.
    grad_clip : float
        Radius of products.
    generator, verbose
        As in `fit_to_sketch`.

    Returns
    -------
    losses : list of float
    """
    X, classes = source
    records = EncodedRecords(encoder, prepare, radius=1.0)
    encode = PullingFunction(records)
    weights = list(records.weights.values())
    optimizer = torch.optim.Adam([*weights, *head.parameters()], lr=learning_rate)
    n_products = sum(weight.numel() for weight in weights)
    losses, start = [], math.ceil(_HEAD_START * n_steps)
    for step in tqdm(range(start + n_steps), desc="adaptation", disable=not verbose):
        share = max(0, step - start) / n_steps
        optimizer.param_groups[0]["lr"] = learning_rate * _decay(share)
        rows, labels = _draw(batch_size, generator, X, classes)
        encoded = encoder(rows)
        loss = cross_entropy(head(encoded), labels)
        products = None
        if step >= start:
            weight = align_weight * _ramp(share)
            # Of public rows.
            records.radius = float(encoded.detach().norm(dim=1).quantile(0.9).clamp(min=1e-6))
            unit = clip_rows(encoded / records.radius, 1.0)
            # What is public, noise on source rows included, is fixed before rows are read.
            seed = int(torch.randint(2**62, (1,), generator=generator))
            released = release(
                SlicedRowsMechanism(
                    unit.shape[1],
                    encode=encode,
                    cotangent=partial(_cotangent, unit.detach(), seed) if beside else None,
                    n_products=n_products if beside else 0,
                    grad_clip=grad_clip,
                    beside=beside,
                )
            )
            real = torch.tensor(released.values[0]).to(unit)
            loss = loss + weight * _gap_to_released(unit, real, released, generator)
            if beside:
                products = torch.as_tensor(released.products).to(unit) * (weight / real.shape[1])
        optimizer.zero_grad()
        loss.backward()
        if products is not None:
            for parameter, part in zip(
                weights, products.split([w.numel() for w in weights]), strict=True
            ):
                if parameter.grad is not None:
                    parameter.grad += part.view_as(parameter)
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).tolist()


def _cotangent(unit, seed, released):
    """Return the gradient of the distance at each slot of a release, in encoded rows.

    It is that of a sum over slots rather than a mean, so that its size does not depend on how many
    there are.
    """
    projected = torch.tensor(released.values[0]).to(unit).requires_grad_()
    generator = torch.Generator().manual_seed(seed)
    with torch.enable_grad():
        gap = _gap_to_released(unit, projected, released, generator)
        slope = torch.autograd.grad(gap, projected)[0]
    return (released.directions.to(unit) @ slope).T * projected.shape[1]


def _gap_to_released(unit, projected, released, generator):
    """Return d·SW₂² of source rows, with zeros for empty slots and noise as releases have them."""
    n_slots = released.values.shape[2]
    made = nn.functional.pad(
        released.directions.to(unit).T @ unit[:n_slots].T, (0, max(0, n_slots - len(unit)))
    )
    noise = torch.randn(made.shape, generator=generator, dtype=unit.dtype)
    made = made + released.std * noise.to(unit.device)
    return unit.shape[1] * wasserstein_1d(made, projected).mean()


def _decay(share):
    """Return the learning rate after a share of the steps, relative to the first."""
    return min(1.0, (1 - share) / _DECAY)


def _ramp(share):
    """Return the weight of alignment after a share of the steps, relative to the last."""
    return 2 / (1 + math.exp(-_RAMP * share)) - 1


def _draw(size, generator, *tensors):
    """Draw rows at random, the same of all tensors."""
    drawn = torch.randint(len(tensors[0]), (size,), generator=generator).to(tensors[0].device)
    return [tensor[drawn] for tensor in tensors]


def _sliced_gap(first, second, n_projections, generator):
    """Return d·SW₂², which, unlike SW₂², does not fall with the number of coordinates."""
    d = first.shape[1]
    # Independent directions: orthonormal ones of a wide representation take longer than the rest.
    directions = random_directions(d, n_projections, orthogonal=False, generator=generator)
    directions = directions.to(first)
    return d * wasserstein_1d((first @ directions).T, (second @ directions).T).mean()


def _class_gap(first, labels, second, guesses):
    """Return the mean squared distance of the classes' means; a class needs a row in both."""
    n_classes = guesses.shape[1]
    members = nn.functional.one_hot(labels, n_classes).to(first)
    means, sizes = zip(*map(_class_means, (members, guesses), (first, second)), strict=True)
    shared = (sizes[0] >= 1) & (sizes[1] >= 1)
    gaps = (means[0] - means[1]).square().sum(1)
    return (gaps * shared).sum() / n_classes


def _class_means(members, rows):
    sizes = members.sum(0)
    return members.T @ rows / sizes[:, None].clamp(min=1), sizes
