"""Entropic optimal transport, loss and gradient, side by side with POT and GeomLoss.

All take the same float32 samples on one thread of the CPU and compute ⟨π, C⟩ for squared
distances, with its gradient in X at the fixed plan. Every solver is first set to reach the same
marginal error, on this very problem: for POT by its tolerance, for GeomLoss, which has none, by
its ``scaling``. A solver that does not get to the error of 1e-4 within its budget is left out.

    python benchmarks/bench_sinkhorn.py [--repeats 7]
"""

import time
import warnings
from functools import partial

import ot
import torch
from side_by_side import compare, run

from skdpgen.transport import entropic_wasserstein, pairwise_cost, sinkhorn_plan

try:
    import geomloss
except ImportError:
    geomloss = None

TITLE = "entropic transport and gradient, d=784"
SIZES, D = [50, 250, 1000], 784
# Regularisation over mean cost, and the samples: noise, and clusters that differ in their shares.
PROBLEMS = [("noise", 0.1), ("noise", 0.01), ("clusters", 0.1), ("clusters", 0.03)]


def samples(kind, n, generator):
    X, Y = (torch.randn(n, D, generator=generator) for _ in range(2))
    if kind == "clusters":
        centres = 2 * torch.randn(10, D, generator=generator)
        X, Y = (0.5 * Z + centres[torch.randint(10, (n,), generator=generator)] for Z in (X, Y))
    return X, Y


def marginal_error(plan):
    plan = plan.double()
    return max((plan.sum(i) - 1 / plan.shape[1 - i]).abs().sum().item() for i in (0, 1))


def pot(method, numpy):
    def plan(X, Y, reg, stop):
        cost = pairwise_cost(X, Y)
        M = cost.detach()
        M = M.numpy() if numpy else M
        kw = {"numItermax": 20_000, "stopThr": stop}
        return torch.as_tensor(ot.sinkhorn([], [], M, reg, method, **kw)), cost

    return plan


def pot_loss(plan):
    def loss(X, Y, reg, stop):
        pi, cost = plan(X, Y, reg, stop)
        return (pi * cost).sum()

    return loss


def geomloss_kernel(reg, scaling, **kw):
    # Its cost is half the squared distance, at a regularisation of blur².
    kw = {"scaling": scaling, "debias": False, "backend": "tensorized", **kw}
    return geomloss.SamplesLoss("sinkhorn", p=2, blur=(reg / 2) ** 0.5, **kw)


def geomloss_plan(X, Y, reg, scaling):
    cost = pairwise_cost(X, Y)
    f, g = geomloss_kernel(reg, scaling, potentials=True)(X, Y)
    return ((f.view(-1, 1) + g.view(1, -1) - cost / 2) / (reg / 2)).exp() / len(X) / len(Y), cost


def solvers():
    """By name: the plan, the loss, and the settings from loose to tight, the loosest good wins."""
    yield (
        "skdpgen",
        lambda X, Y, reg, tol: (sinkhorn_plan(pairwise_cost(X, Y), reg, tol=tol), None),
        lambda X, Y, reg, tol: entropic_wasserstein(X, Y, reg=reg, tol=tol),
        None,
    )
    stops = [10 ** (-i / 2) for i in range(4, 17)]
    for method, numpy in [
        ("sinkhorn_log", False),
        ("sinkhorn_log", True),
        ("sinkhorn_stabilized", False),
        ("sinkhorn_stabilized", True),
    ]:
        plan = pot(method, numpy)
        name = f"POT {method[9:]}, {'numpy' if numpy else 'torch'}"
        yield name, plan, pot_loss(plan), stops
    if geomloss is not None:
        scalings = [0.5, 0.7, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 0.998]
        yield (
            "GeomLoss",
            geomloss_plan,
            lambda X, Y, reg, scaling: geomloss_kernel(reg, scaling)(X, Y),
            scalings,
        )


def find_setting(plan, settings, X, Y, reg, tol, budget=5.0):
    """Return the loosest setting that reaches ``tol``; None where none does in time."""
    start = time.perf_counter()
    for value in [tol] if settings is None else settings:
        error = marginal_error(plan(X, Y, reg, value)[0])
        if error <= 1.05 * tol:  # of float32's rounding
            return value
        if time.perf_counter() - start > budget:
            break
    return None


def find_rows(repeats, tol=1e-4):
    generator = torch.Generator().manual_seed(0)
    for kind, ratio in PROBLEMS:
        for n in SIZES:
            X, Y = samples(kind, n, generator)
            reg = ratio * pairwise_cost(X, Y).mean().item()
            X.requires_grad_()
            ready = {}
            for name, plan, loss, settings in solvers():
                value = find_setting(plan, settings, X.detach(), Y, reg, tol)
                if value is not None:
                    ready[name] = partial(_gradient, loss, X, Y, reg, value)
            ours = ready.pop("skdpgen")
            yield from compare(f"{kind}, n={n}, reg={ratio} of the mean cost", ours, ready, repeats)


def _gradient(loss, X, *args):
    torch.autograd.grad(loss(X, *args), X)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    run(__doc__, TITLE, find_rows)
