"""Learner: a representation in which two domains look alike, and a classifier on it.

It sees public rows only: those of the source, and synthetic ones in place of the target's.
"""

import math

import torch
from torch import nn
from tqdm import tqdm

from ..transport import random_directions, wasserstein_1d

__all__ = ["fit_adaptation"]

# Share of the steps, the last ones, in which the learning rate falls to 0.
_DECAY = 0.5
# How fast alignment sets in (Ganin et al., JMLR 2016, section 5.2).
_RAMP = 10.0


@torch.inference_mode(False)
@torch.enable_grad()
def fit_adaptation(
    encoder,
    head,
    source,
    target,
    *,
    align_weight,
    class_align_weight,
    n_projections,
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

    Parameters
    ----------
    encoder, head : torch.nn.Module
        Trained in place.
    source : tuple of tensors of shape (n, n_inputs) and (n,)
        Rows and codes of their classes.
    target : tensor of shape (m, n_inputs) or None
        Public rows in place of the target's.
    align_weight, class_align_weight : float
    n_projections, n_steps, batch_size : int
        Directions drawn at each step; steps; rows a step from each domain.
    learning_rate : float
        Of Adam; it falls linearly to 0 over the second half.
    augment : callable, default=None
        ``augment(rows, generator)`` changes the rows of a batch at random.
    generator : torch.Generator
        Where batches and directions come from.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    losses : list of float

    References
    ----------
    .. [1] Rakotomamonjy & Ralaivola, "Differentially Private Sliced Wasserstein Distance", ICML
       2021.
    """
    X, codes = source
    parameters = [*encoder.parameters(), *head.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=learning_rate)
    losses = []

    def encode(rows):
        return encoder(rows if augment is None else augment(rows, generator))

    for step in tqdm(range(n_steps), desc="adaptation", disable=not verbose):
        optimizer.param_groups[0]["lr"] = learning_rate * min(1, (1 - step / n_steps) / _DECAY)
        rows, labels = _draw(batch_size, generator, X, codes)
        encoded = encode(rows)
        loss = nn.functional.cross_entropy(head(encoded), labels)
        if target is not None:
            ramp = 2 / (1 + math.exp(-_RAMP * step / n_steps)) - 1
            encoded_target = encode(*_draw(batch_size, generator, target))
            gap = align_weight * _sliced_gap(encoded, encoded_target, n_projections, generator)
            if class_align_weight:
                guesses = head(encoded_target).softmax(1).detach()
                gap = gap + class_align_weight * _class_gap(
                    encoded, labels, encoded_target, guesses
                )
            loss = loss + ramp * gap
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return torch.stack(losses).tolist()


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
