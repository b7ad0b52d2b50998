# SPDX-License-Identifier: BSD-3-Clause
"""A learner: a network that follows released slices of rows, step by step."""

import torch
from torch import nn
from tqdm import tqdm

from ..transport import wasserstein_1d
from .training import Shares, Training, moments_gap

# Weight of the second moments, where they are known, beside the slices of single rows.
_MOMENTS_WEIGHT = 3.0


@torch.inference_mode(False)
@torch.enable_grad()
def fit_to_rows(
    rows, mechanism, release, *, n_steps, batch_size, learning_rate, generator, verbose=0
):
    """Train a network by the smoothed sliced distance to fresh releases of projected rows.

    Generated rows are joined with their classes, projected, padded and noised as records are. The
    loss is the mean W₂² over the slices of each class, summed over the classes: Algorithm 1 of the
    DP-SWD paper. Noise hides how projections vary much more than how they are on average; where
    components are at hand, so are the second moments of the rows, which are matched as well.

    Parameters
    ----------
    rows : RowNetwork
        To be trained, in place, on its device.
    mechanism : SlicedRowsMechanism
        What is released.
    release : callable
        Returns the next `ProjectedRows`.
    n_steps, batch_size : int
        Releases; generated rows a step, as many as records are expected.
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
        The smoothed distance at each step.
    """
    device = rows.spread.device
    moments = None if rows.components is None else rows.spread.square().diag()
    training = Training(rows, learning_rate, memory=0.999)
    shares, losses = ClassShares(mechanism, batch_size), []
    for step in tqdm(range(n_steps), desc="generator", disable=not verbose):
        released = release()
        classes = _draw_classes(shares.update(released), max(2, batch_size), generator)
        made = rows(rows.draw(classes, generator))
        real = torch.as_tensor(released.values, dtype=made.dtype, device=device)
        loss = (
            wasserstein_1d(_project(made, classes, mechanism, released, generator), real).sum()
            / real.shape[1]
        )
        if moments is not None:
            gap = moments_gap(made, moments)
            loss = loss + _MOMENTS_WEIGHT / len(released.directions) * gap.sum()
        losses.append(training.step(loss, 1 - step / n_steps))
    classes = _draw_classes(shares.mean, max(2, batch_size), generator)
    averaged = training.finish(lambda: rows.draw(classes, generator))
    return averaged, shares.mean, torch.stack(losses).tolist()


class ClassShares(Shares):
    """Shares of the classes among records, estimated from releases of sliced rows.

    Parameters
    ----------
    mechanism : SlicedRowsMechanism
    batch_size : int
        Expected records a release.
    """

    def __init__(self, mechanism, batch_size):
        super().__init__(mechanism.n_classes)
        self._mechanism = mechanism
        self._batch_size = batch_size

    def update(self, released):
        """Take in a release, and return the shares."""
        (d, k), n_slots = released.directions.shape, released.values.shape[2]
        # Of the noise, and of which records are drawn.
        variance = (released.std * n_slots / self._batch_size / self._mechanism.label_weight) ** 2
        variance = variance * d / k / n_slots + 0.25 / self._batch_size
        estimate = self._mechanism.class_shares(released) * n_slots / self._batch_size
        self.add(estimate, variance)
        return self.mean


def _draw_classes(shares, size, generator):
    return torch.multinomial(torch.as_tensor(shares), size, True, generator=generator)


def _project(made, classes, mechanism, released, generator):
    """Project generated rows, pad and noise them as the released ones are."""
    n_classes, _, n_slots = released.values.shape
    classes = classes[:n_slots]
    one_hot = nn.functional.one_hot(classes, n_classes).to(made)
    joined = mechanism.join(made[:n_slots], one_hot)
    projected = one_hot.T.unsqueeze(1) * (released.directions.to(made).T @ joined.T)
    noise = torch.randn(released.values.shape, generator=generator, dtype=made.dtype)
    padded = nn.functional.pad(projected, (0, n_slots - len(classes)))
    return padded + noise.to(made.device) * released.std
