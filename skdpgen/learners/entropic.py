# SPDX-License-Identifier: BSD-3-Clause
"""Optimal transport from generated rows to rows under local differential privacy.

The generator network is trained so that its rows, were they noised, would have the distribution of
the noised rows. No other rows are read.
"""

from collections.abc import Callable

import numpy as np
import torch

from ..images import cosine_matrices
from ..losses import EntropicWasserstein, Wasserstein
from ..registry import savable
from .interface import Sampler
from .rows import RowNetwork, even_scale
from .training import Training, run_steps

# The default loss, and that without regularisation.
_ENTROPIC, _EXACT = EntropicWasserstein(), Wasserstein()


@savable
class LocalRowNetwork(RowNetwork):
    """A generator network of rows in a ball, in units of its radius; see `RowNetwork`.

    With `unit_output` the network makes features in [0, 1].
    """

    def __init__(self, network, n_classes, latent_dim, format, unit_output=False):
        super().__init__(network, n_classes, latent_dim, even_scale(format.n_columns))
        self._unit_output, self._radius, self._grid = unit_output, format.radius, format.grid
        matrices = [None, None]
        if format.basis is not None and unit_output:
            matrices = [
                torch.tensor(matrix, dtype=torch.float32) for matrix in cosine_matrices(format.grid)
            ]
        self.register_buffer("_across", matrices[0], persistent=False)
        self.register_buffer("_along", matrices[1], persistent=False)

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        """Map codes to rows in units of the ball's radius."""
        outputs = self.network(codes)
        if not self._unit_output:
            return outputs * self.scale
        # Outputs of a sigmoid, in [0, 1], become features in [-1, 1], around the centre of the
        # bounds.
        rows = 2 * outputs - 1
        if self._across is not None:
            images = rows.reshape(len(rows), *self._grid)
            rows = (self._across @ images @ self._along.T).reshape(rows.shape)
        return rows / self._radius


def clean_shares(codes: np.ndarray, n_classes: int, probability: float) -> np.ndarray:
    """Estimate the shares of classes from the codes of labels after randomised response.

    A label was replaced, with this probability, by one drawn uniformly. The unbiased estimates are
    projected on the simplex.
    """
    noised = np.bincount(codes, minlength=n_classes) / len(codes)
    if probability >= 1:
        return np.full(n_classes, 1 / n_classes)
    # Unbiased, but not always in the simplex.
    shares = (noised - probability / n_classes) / (1 - probability)
    # Projection on the simplex: the nearest shares that are not negative and sum to 1.
    falling = -np.sort(-shares)
    shifts = (np.cumsum(falling) - 1) / np.arange(1, n_classes + 1)
    shares = np.maximum(shares - shifts[np.flatnonzero(falling > shifts)[-1]], 0)
    return shares / shares.sum()


def _classes_given_labels(shares, probability):
    """Return P(class | noised label), of shape (n labels, n classes), by Bayes' rule."""
    n_classes = len(shares)
    response = (1 - probability) * np.eye(n_classes) + probability / n_classes
    joint = response.T * shares
    # A label that no class explains has probability 0: no division by it.
    return joint / np.maximum(joint.sum(1, keepdims=True), 1e-300)


def fit_to_noised_rows(
    rows: LocalRowNetwork,
    noised: np.ndarray,
    codes: np.ndarray | None = None,
    *,
    probability: float = 0.0,
    distance: Callable = _ENTROPIC.distance,
    p: int,
    reg: float,
    n_steps: int,
    batch_size: int,
    learning_rate: float,
    generator: torch.Generator,
    verbose: int = 0,
) -> Sampler:
    """Train a network in place by optimal transport from its rows to noised rows.

    This is Algorithm 1 of the paper of `LDPEntropicGAN`. With labels, noised rows are grouped by
    their noised label. A group holds rows of all classes, in proportions that follow from the
    randomised response; generated rows are drawn in the same proportions, so that the network
    learns the rows of the true labels.

    Parameters
    ----------
    noised : ndarray of shape (n_records, n_columns)
        Noised rows, in units of the ball's radius.
    codes, probability
        Noised labels, and the probability of the randomised response; see `clean_shares`.
    distance, p, reg
        The method `distance` of a loss; the cost is ‖·‖_p^p, and λ = 0 is no regularisation.
    n_steps, batch_size : int
        Steps; rows of each noised label, and as many generated ones, in a step.
    learning_rate : float
        For Adam, after a warm-up; it decays linearly to 0.
    """
    device = rows.scale.device
    records = torch.as_tensor(noised, dtype=torch.float32, device=device)
    codes = np.zeros(len(noised), dtype=np.int64) if codes is None else codes
    shares = clean_shares(codes, rows.n_classes, probability)
    counts = np.bincount(codes, minlength=rows.n_classes)
    labels = np.flatnonzero(counts)
    members = [torch.as_tensor(np.flatnonzero(codes == label)) for label in labels]
    given_labels = torch.as_tensor(_classes_given_labels(shares, probability)[labels])
    weights = torch.as_tensor(counts[labels] / len(codes), dtype=torch.float32, device=device)
    # Sinkhorn's iteration needs a regularisation above 0.
    distance = distance if reg > 0 else _EXACT.distance
    training, groups = Training(rows, learning_rate), (len(labels), batch_size)

    def draw():
        # True classes given each noised label, as rows of a label come from several classes.
        drawn = torch.multinomial(given_labels, batch_size, True, generator=generator)
        return rows.draw(drawn.flatten(), generator)

    def take_step(rate):
        batch = torch.cat(
            [m[torch.randint(len(m), (batch_size,), generator=generator)] for m in members]
        )
        generated = rows(draw()).unflatten(0, groups)
        real = records[batch.to(device)].unflatten(0, groups)
        return training.step((weights * distance(generated, real, p=p, reg=reg)).sum(), rate)

    losses = run_steps(take_step, n_steps, verbose=verbose)
    return Sampler(training.finish(draw), losses, shares)
