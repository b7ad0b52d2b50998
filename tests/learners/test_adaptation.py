"""The learner of adapters: what is aligned."""

import torch

from skdpgen.adaptation import learner as _adaptation_learner
from skdpgen.adaptation.learner import fit_adaptation


def two_linear_maps(n_inputs):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return torch.nn.Linear(n_inputs, 2), torch.nn.Linear(2, 2)


def adapt(maps, source, target, **params):
    options = {"align_weight": 0.0, "class_align_weight": 0.0, "n_projections": 5, "n_steps": 150}
    options |= {"batch_size": 100, "learning_rate": 0.02, **params}
    generator = torch.Generator().manual_seed(0)
    return fit_adaptation(*maps, source, target, **options, generator=generator)


def test_the_weight_of_classes_brings_their_means_together():
    """Both classes lie elsewhere along a column that tells nothing of them in the source."""
    generator = torch.Generator().manual_seed(0)
    codes = torch.arange(400) % 2
    X = 0.3 * torch.randn(400, 3, generator=generator)
    X[:, 0] += 4.0 * codes - 2
    target = X + torch.where(codes[:, None] == 1, 1.0, -1.0) * torch.tensor([0.0, 3.0, 0.0])
    gaps = []
    for weight in (0.0, 1.0):
        maps = two_linear_maps(3)
        adapt(maps, (X, codes), target, class_align_weight=weight)
        with torch.no_grad():
            one, other = maps[0](X), maps[0](target)
        scale = one.std()
        moved = [(one[codes == c].mean(0) - other[codes == c].mean(0)).norm() for c in (0, 1)]
        gaps.append(float(max(moved) / scale))
    assert gaps[1] < 0.2 * gaps[0]


def test_rows_like_the_target_are_learnt_from_and_compared(monkeypatch):
    """Rows that lack a column, as the target does, tell classes by another column alone."""
    codes = torch.arange(400) % 2
    sides, nothing = 2.0 * codes[:, None] - 1, torch.zeros(400, 1)
    X, seen = torch.cat([4 * sides, nothing], 1), torch.cat([nothing, sides], 1)
    compared = []

    def watched(first, second, *args):
        compared.append((first.detach(), second.detach()))
        return sliced_gap(first, second, *args)

    sliced_gap = _adaptation_learner._sliced_gap
    monkeypatch.setattr(_adaptation_learner, "_sliced_gap", watched)
    maps = two_linear_maps(2)
    adapt(maps, (X, codes), seen, masked=seen, align_weight=1.0)
    with torch.no_grad():
        loss = torch.nn.functional.cross_entropy(maps[1](maps[0](seen)), codes)
    assert loss < 0.1
    # There are two rows of each kind, and those that are compared are of one kind.
    for first, second in compared:
        apart = (first[:, None] - second).abs().sum(2)
        assert apart.min(1).values.max() < 1e-4
