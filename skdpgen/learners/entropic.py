# SPDX-License-Identifier: BSD-3-Clause
"""Learner: a network whose rows, once noised, would be distributed like noised rows.

It sees rows after their noise only.
"""

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from tqdm import tqdm

from ..arrays.frequencies import cosine_matrices
from ..registry import savable
from ..transport import entropic_wasserstein, pairwise_cost, sinkhorn_divergence
from .training import RowNetwork, Training

# Plans are computed to this marginal error: the draw of a batch moves them by far more.
_TOL = 1e-3


@savable
class LocalRowNetwork(RowNetwork):
    """A generator network whose outputs are rows in a ball, in units of its radius.

    Parameters
    ----------
    network, n_classes, latent_dim
        As in `RowNetwork`.
    format : BallFormat
        Where rows come from.
    unit_output : bool, default=False
        Whether the network makes features in [0, 1].
    """

    def __init__(self, network, n_classes, latent_dim, format, unit_output=False):
        spread = torch.full((format.n_columns,), format.n_columns**-0.5, dtype=torch.float32)
        super().__init__(network, n_classes, latent_dim, spread)
        self._unit_output, self._radius, self._grid = unit_output, format.radius, format.grid
        turns = cosine_matrices(format.grid) if format.basis is not None else [None, None]
        for name, matrix in zip(("_across", "_along"), turns, strict=True):
            if matrix is not None and unit_output:
                matrix = torch.tensor(matrix, dtype=torch.float32)
            else:
                matrix = None
            self.register_buffer(name, matrix, persistent=False)

    def forward(self, codes):
        """Map codes to rows in units of the ball's radius, as noised rows are."""
        outputs = self.network(codes)
        if not self._unit_output:
            return outputs * self.spread
        rows = 2 * outputs - 1
        if self._across is not None:
            images = rows.reshape(len(rows), *self._grid)
            rows = (self._across @ images @ self._along.T).reshape(rows.shape)
        return rows / self._radius


def _entropic(made, noised, p, reg):
    return entropic_wasserstein(made, noised, reg=reg, p=p, tol=_TOL)


def _debiased(made, noised, p, reg):
    return sinkhorn_divergence(made, noised, reg=reg, p=p, tol=_TOL)


def _unregularised(made, noised, p, reg):
    """Return W_p^p between batches of equal size, by the best assignment of one to the other."""
    costs = pairwise_cost(made, noised, p=p)
    plans = [linear_sum_assignment(cost)[1] for cost in costs.detach().cpu().numpy()]
    chosen = torch.as_tensor(np.stack(plans), device=costs.device)
    return costs.gather(2, chosen.unsqueeze(2)).mean((1, 2))


# By the name of the loss.
DISTANCES = {
    "EntropicWasserstein": _entropic,
    "SinkhornDivergence": _debiased,
    "Wasserstein": _unregularised,
}


def clean_shares(codes, n_classes, probability):
    """Estimate the shares of classes from labels after randomised response.

    The unbiased estimates, given the `probability` with which a label was replaced by one drawn
    uniformly, are projected on the simplex.
    """
    seen = np.bincount(codes, minlength=n_classes) / len(codes)
    if probability >= 1:
        return np.full(n_classes, 1 / n_classes)
    shares = (seen - probability / n_classes) / (1 - probability)
    falling = -np.sort(-shares)
    shifts = (np.cumsum(falling) - 1) / np.arange(1, n_classes + 1)
    shares = np.maximum(shares - shifts[np.flatnonzero(falling > shifts)[-1]], 0)
    return shares / shares.sum()


def _classes_given_labels(shares, probability):
    """Return P(class | noised label), of shape (n labels, n classes), by Bayes' rule."""
    n_classes = len(shares)
    response = (1 - probability) * np.eye(n_classes) + probability / n_classes
    joint = response.T * shares
    return joint / np.maximum(joint.sum(1, keepdims=True), 1e-300)


@torch.inference_mode(False)
@torch.enable_grad()
def fit_to_noised_rows(
    rows,
    noised,
    codes=None,
    *,
    probability=0.0,
    distance=_entropic,
    p,
    reg,
    n_steps,
    batch_size,
    learning_rate,
    generator,
    verbose=0,
):
    """Train a network by optimal transport from its rows to noised rows.

    Algorithm 1 of Reshetova, Chen & Özgür, 2023.

    With labels, noised rows are grouped by their noised label. A group holds rows of all classes,
    in proportions that follow from the randomised response; generated rows are drawn in the same
    ones, so that the network learns the rows of the true labels.

    Parameters
    ----------
    rows : LocalRowNetwork
        To be trained, in place, on its device.
    noised : ndarray of shape (n_records, n_columns)
        Noised rows, in units of the ball's radius.
    codes : ndarray of int of shape (n_records,), default=None
        Noised labels.
    probability : float, default=0.0
        Of the randomised response.
    distance : callable
        One of `DISTANCES`.
    p : {1, 2}
        The cost is ‖·‖_p^p.
    reg : float
        λ; 0 is no regularisation.
    n_steps, batch_size : int
        Steps; rows a step for each noised label, and as many generated ones.
    learning_rate : float
        Of Adam, after a warm-up; it decays linearly to 0.
    generator, verbose
        As in `fit_to_sketch`.

    Returns
    -------
    rows : LocalRowNetwork
        With averaged weights, on the CPU and in evaluation mode.
    shares : ndarray of shape (n_classes,)
        Estimated shares of the classes.
    losses : list of float
        The loss at each step.
    """
    device = rows.spread.device
    noised = torch.as_tensor(noised, dtype=torch.float32, device=device)
    codes = np.zeros(len(noised), dtype=np.int64) if codes is None else codes
    shares = clean_shares(codes, rows.n_classes, probability)
    seen = np.bincount(codes, minlength=rows.n_classes)
    labels = np.flatnonzero(seen)
    members = [torch.as_tensor(np.flatnonzero(codes == label)) for label in labels]
    given_labels = torch.as_tensor(_classes_given_labels(shares, probability)[labels])
    weights = torch.as_tensor(seen[labels] / len(codes), dtype=torch.float32, device=device)
    distance = distance if reg > 0 else _unregularised

    def draw():
        drawn = torch.multinomial(given_labels, batch_size, True, generator=generator)
        return rows.draw(drawn.flatten(), generator)

    training, losses = Training(rows, learning_rate, memory=0.999), []
    for step in tqdm(range(n_steps), desc="generator", disable=not verbose):
        batch = torch.cat([m[_positions(len(m), batch_size, generator)] for m in members])
        groups = len(labels), batch_size
        made = rows(draw()).unflatten(0, groups)
        real = noised[batch.to(device)].unflatten(0, groups)
        value = (weights * distance(made, real, p, reg)).sum()
        losses.append(training.step(value, 1 - step / n_steps))
    return training.finish(draw), shares, torch.stack(losses).tolist()


def _positions(n_rows, batch_size, generator):
    return torch.randint(n_rows, (batch_size,), generator=generator)
