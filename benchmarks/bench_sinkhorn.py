"""Entropic optimal transport, loss and gradient, side by side with POT and GeomLoss.

All take the same float32 samples on one thread of the CPU and compute ⟨π, C⟩ for squared
distances, with its gradient in X at the fixed plan. Every solver is first set to reach the same
marginal error, on this very problem: for POT by its tolerance, for GeomLoss, which has none, by
its ``scaling``. Runs alternate, and each ratio is between two neighbouring runs, so that a busy
machine slows all. A solver that does not get to the error within its budget is left out (-).

    python benchmarks/bench_sinkhorn.py [--repeats 7] [--tol 1e-4]
"""

import argparse
import statistics
import time
import warnings

import ot
import torch

from skdpgen.transport import entropic_wasserstein, pairwise_cost, sinkhorn_plan

try:
    import geomloss
except ImportError:
    geomloss = None

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


def setting(plan, settings, X, Y, reg, tol, budget=5.0):
    """Loosest setting that reaches ``tol``, and the error it has; None where none does in time."""
    start = time.perf_counter()
    for value in [tol] if settings is None else settings:
        error = marginal_error(plan(X, Y, reg, value)[0])
        if error <= 1.05 * tol:  # of float32's rounding
            return value, error
        if time.perf_counter() - start > budget:
            break
    return None


def milliseconds(loss, X, *args):
    X = X.clone().requires_grad_()
    start = time.perf_counter()
    loss(X, *args).backward()
    return 1e3 * (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--tol", type=float, default=1e-4)
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    generator = torch.Generator().manual_seed(0)

    for kind, ratio in PROBLEMS:
        for n in SIZES:
            X, Y = samples(kind, n, generator)
            reg = ratio * pairwise_cost(X, Y).mean().item()
            print(f"\n{kind}, n={n}, d={D}, reg={ratio} of the mean cost, error {args.tol:g}")
            ready, errors = {}, {}
            for name, plan, loss, settings in solvers():
                found = setting(plan, settings, X, Y, reg, args.tol)
                if found is None:
                    print(f"  {name:<24}-")
                else:
                    ready[name], errors[name] = (loss, found[0]), found[1]
            runs = []
            for _ in range(args.repeats + 1):
                runs.append(
                    [milliseconds(loss, X, Y, reg, value) for loss, value in ready.values()]
                )
            times = list(zip(*runs[1:], strict=True))  # the first run warms up
            for name, own in zip(ready, times, strict=True):
                ratios = [b / a for a, b in zip(times[0], own, strict=True)]
                print(
                    f"  {name:<24}{statistics.median(own):>9.2f} ms, error {errors[name]:.0e}"
                    f"   ÷ skdpgen: {statistics.median(ratios):.1f}"
                    f" ({min(ratios):.1f}-{max(ratios):.1f})"
                )


if __name__ == "__main__":
    main()
