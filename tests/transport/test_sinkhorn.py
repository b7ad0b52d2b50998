import functools
import math
import warnings

import numpy as np
import ot
import pytest
import torch
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

from skdpgen.transport import (
    entropic_wasserstein,
    pairwise_cost,
    sinkhorn_divergence,
    sinkhorn_plan,
    sliced_wasserstein_distance,
)

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
DTYPES = [torch.float32, torch.float64]


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(autouse=True)
def _no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def weights(n, seed=0, zeros=0, dtype=torch.float64):
    w = torch.rand(n, generator=torch.Generator().manual_seed(seed), dtype=dtype) + 0.1
    w[:zeros] = 0
    return w / w.sum()


def uniform(n):
    return torch.full((n,), 1 / n, dtype=torch.float64)


def marginal_error(plan, a=None, b=None):
    """L1 errors of rows and columns, the larger of the two."""
    n, m = plan.shape[-2:]
    a, b = uniform(n) if a is None else a, uniform(m) if b is None else b
    plan = plan.double()
    rows, columns = (plan.sum(-1) - a).abs().sum(-1), (plan.sum(-2) - b).abs().sum(-1)
    return torch.maximum(rows.max(), columns.max()).item()


def entropy(plan, a, b):
    """KL(plan | a ⊗ b)."""
    return torch.special.xlogy(plan, plan / (a[:, None] * b)).nansum()


# --- plans ---------------------------------------------------------------------------------


@pytest.mark.parametrize("reg", [0.05, 0.3, 2.0, 50.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_plan_equals_pot(reg, weighted):
    cost = pairwise_cost(normal(12, 3, seed=1), normal(9, 3, seed=2))
    a, b = (weights(12), weights(9, seed=1)) if weighted else (uniform(12), uniform(9))
    plan = sinkhorn_plan(cost, reg, tol=1e-9, **({"a": a, "b": b} if weighted else {}))
    expected = ot.sinkhorn(a, b, cost, reg, "sinkhorn_log", numItermax=200_000, stopThr=1e-10)
    torch.testing.assert_close(plan, expected, rtol=1e-6, atol=1e-8)
    assert marginal_error(plan, a, b) <= 1e-9


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ratio", [1e-2, 1e-3, 1e-4])
def test_small_regularisation_converges(ratio, dtype):
    # Plain Sinkhorn needs tens of thousands of iterations for these.
    cost = pairwise_cost(normal(50, 2, seed=1, dtype=dtype), normal(50, 2, seed=2, dtype=dtype) + 1)
    plan = sinkhorn_plan(cost, ratio * cost.mean().item())
    assert plan.dtype == dtype
    assert marginal_error(plan) <= 2e-6


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ratio", [1e-300, 1e-12, 1e-6, 1e-3, 1, 1e3, 1e12, 1e300])
@pytest.mark.parametrize(
    "kind", ["random", "constant", "zero", "duplicated", "zero_weights", "far", "one", "negative"]
)
def test_any_regularisation_is_finite(ratio, kind, dtype):
    X, Y = normal(9, 2, seed=1, dtype=dtype), normal(7, 2, seed=2, dtype=dtype)
    cost = pairwise_cost(X, Y)
    kw, (a, b) = {}, (uniform(9), uniform(7))
    if kind == "constant":
        cost = torch.full_like(cost, 7.0)
    elif kind == "zero":
        cost = torch.zeros_like(cost)
    elif kind == "duplicated":
        cost = pairwise_cost(X[[0, 0, 0, 1, 1, 2, 2, 2, 2]], X[[0, 0, 1, 1, 1, 1, 2]])
    elif kind == "zero_weights":
        a, b = weights(9, zeros=3), weights(7, zeros=2)
        kw = {"a": a, "b": b}
    elif kind == "far":
        cost[2] += 1e8
        cost[:, 3] += 1e6
    elif kind == "one":
        cost, a = cost[:1], uniform(1)
    elif kind == "negative":
        cost = -cost
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        plan = sinkhorn_plan(cost, ratio, **kw)
    assert {w.category for w in caught} <= {ConvergenceWarning}
    assert plan.isfinite().all()
    assert (plan >= 0).all()
    assert marginal_error(plan, a, b) <= (0.05 if caught else 2e-6)


@pytest.mark.parametrize("dtype", DTYPES)
def test_zero_weights_have_no_mass_and_change_nothing(dtype):
    cost = pairwise_cost(normal(9, 2, seed=1, dtype=dtype), normal(7, 2, seed=2, dtype=dtype))
    a, b = weights(9, zeros=3, dtype=dtype), weights(7, zeros=2, dtype=dtype)
    plan = sinkhorn_plan(cost, 0.1, a=a, b=b)
    assert (plan[:3] == 0).all()
    assert (plan[:, :2] == 0).all()
    without = sinkhorn_plan(cost[3:, 2:], 0.1, a=a[3:], b=b[2:])
    torch.testing.assert_close(plan[3:, 2:], without, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("reg", [0.03, 0.3])
def test_batches_equal_loops(reg):
    cost = pairwise_cost(normal(3, 2, 9, 2, seed=1), normal(3, 2, 7, 2, seed=2))
    cost[1] *= 10  # so that the problems differ in difficulty
    a = torch.stack([weights(9, seed=i) for i in range(6)]).view(3, 2, 9)
    plan = sinkhorn_plan(cost, reg, a=a, tol=1e-9)
    assert plan.shape == (3, 2, 9, 7)
    for i in np.ndindex(3, 2):
        single = sinkhorn_plan(cost[i], reg, a=a[i], tol=1e-9)
        torch.testing.assert_close(plan[i], single, rtol=1e-5, atol=1e-8)
    shared = sinkhorn_plan(cost, reg, a=weights(9))
    torch.testing.assert_close(shared[1, 1], sinkhorn_plan(cost[1, 1], reg, a=weights(9)))


def test_arrays_and_tensors():
    cost = pairwise_cost(normal(9, 2), normal(7, 2)).requires_grad_()
    plan = sinkhorn_plan(cost, 0.5)
    assert isinstance(plan, torch.Tensor)
    assert not plan.requires_grad
    array = cost.detach().numpy()
    for convert in (np.asarray, np.ndarray.tolist, np.asfortranarray):
        assert np.allclose(sinkhorn_plan(convert(array), 0.5), plan, atol=1e-12)
    single = sinkhorn_plan(array.astype(np.float32), 0.5)
    assert isinstance(single, np.ndarray)
    assert single.dtype == np.float32
    assert np.allclose(single, plan, rtol=1e-4)


def test_inputs_are_left_alone():
    cost, a, b = pairwise_cost(normal(9, 2), normal(7, 2)), weights(9, zeros=1), weights(7)
    copies = cost.clone(), a.clone(), b.clone()
    first = sinkhorn_plan(cost, 1e-3, a=a, b=b)
    assert all(torch.equal(x, y) for x, y in zip((cost, a, b), copies, strict=True))
    assert torch.equal(sinkhorn_plan(cost, 1e-3, a=a, b=b), first)


def test_warning():
    cost = pairwise_cost(normal(40, 2, seed=1), normal(40, 2, seed=2))
    reg = 1e-3 * cost.mean().item()
    with pytest.warns(ConvergenceWarning, match="tol=1e-06 in n_iter=3 iterations"):
        plan = sinkhorn_plan(cost, reg, n_iter=3)
    assert plan.isfinite().all()
    torch.testing.assert_close(plan.sum(-1), uniform(40))


# --- costs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_costs(dtype):
    X, Y = normal(9, 4, seed=1, dtype=dtype), normal(7, 4, seed=2, dtype=dtype)
    l1, l2 = (torch.from_numpy(cdist(X, Y, metric)) for metric in ("cityblock", "sqeuclidean"))
    for kw, expected in [
        ({}, l2),
        ({"p": 1}, l1),
        ({"l1_weight": 0.7}, l2 + 0.7 * l1),
    ]:
        cost = pairwise_cost(X, Y, **kw)
        assert cost.dtype == dtype
        torch.testing.assert_close(cost.double(), expected, rtol=1e-5, atol=1e-5)
        array = pairwise_cost(X.numpy(), Y.numpy(), **kw)
        assert isinstance(array, np.ndarray)
        assert np.array_equal(array, cost)
        batch = pairwise_cost(torch.stack([X, 2 * X]), Y, **kw)
        torch.testing.assert_close(batch[0], cost)


# --- losses --------------------------------------------------------------------------------


@pytest.mark.parametrize("kw", [{}, {"p": 1}, {"l1_weight": 0.7}])
def test_values_are_those_of_the_plan(kw):
    X, Y, a, b = normal(9, 3, seed=1), normal(7, 3, seed=2), weights(9), weights(7)
    cost = pairwise_cost(X, Y, **kw)
    plan = sinkhorn_plan(cost, 0.5, a=a, b=b, tol=1e-9)
    kw = {"reg": 0.5, "a": a, "b": b, "tol": 1e-9, **kw}
    transport = (plan * cost).sum()
    torch.testing.assert_close(entropic_wasserstein(X, Y, **kw), transport)
    objective = transport + 0.5 * entropy(plan, a, b)
    torch.testing.assert_close(entropic_wasserstein(X, Y, entropy=True, **kw), objective)
    doubled = entropic_wasserstein(X, Y, entropy=True, **{**kw, "a": 2 * a, "b": 2 * b})
    torch.testing.assert_close(doubled, 2 * objective)


@pytest.mark.parametrize("kw", [{}, {"p": 1}, {"l1_weight": 0.7}])
def test_gradients_are_exact_for_the_objectives(kw):
    X, Y = normal(6, 3, seed=1).requires_grad_(), normal(5, 3, seed=2).requires_grad_()
    kw = {"reg": 1.0, "tol": 1e-11, "a": weights(6), **kw}
    check = torch.autograd.gradcheck
    assert check(lambda X, Y: entropic_wasserstein(X, Y, entropy=True, **kw), (X, Y), eps=1e-5)
    assert check(lambda X, Y: sinkhorn_divergence(X, Y, **kw), (X, Y), eps=1e-5)


def test_gradient_of_the_transport_cost_is_that_at_the_fixed_plan():
    X, Y = normal(6, 3, seed=1).requires_grad_(), normal(5, 3, seed=2)
    plan = sinkhorn_plan(pairwise_cost(X, Y), 0.5)
    expected = 2 * (plan.sum(-1, keepdim=True) * X - plan @ Y)
    for flag in (False, True):
        (grad,) = torch.autograd.grad(entropic_wasserstein(X, Y, reg=0.5, entropy=flag), X)
        torch.testing.assert_close(grad, expected)


def test_conventions_of_divergences():
    X, Y = normal(12, 2, seed=1).numpy(), normal(9, 2, seed=2).numpy() + 0.5
    theirs = ot.bregman.empirical_sinkhorn_divergence(X, Y, 3.0, stopThr=1e-10)

    def differences(function):
        options = {"reg": 3.0, "tol": 1e-9}
        return function(X, Y, **options) - sum(function(Z, Z, **options) for Z in (X, Y)) / 2

    assert differences(entropic_wasserstein) == pytest.approx(theirs, rel=1e-5)
    ours = sinkhorn_divergence(X, Y, reg=3.0, tol=1e-9)
    objective = functools.partial(entropic_wasserstein, entropy=True)
    assert ours == pytest.approx(differences(objective), rel=1e-6)
    assert not 0.9 < ours / theirs < 1.1


# --- errors --------------------------------------------------------------------------------

C9 = np.full((4, 3), 987.0)
NAN9 = C9.copy()
NAN9[1, 1] = np.nan


@pytest.mark.parametrize(
    ("cost", "reg", "kw", "message"),
    [
        (NAN9, 1, {}, "cost holds NaN or infinite"),
        (-np.inf * C9, 1, {}, "cost holds NaN or infinite"),
        (C9[0], 1, {}, "cost must have at least 2 dimensions"),
        (C9[:0], 1, {}, "cost must be a non-empty"),
        ([["x987"]], 1, {}, "cost is not an array of numbers"),
        (C9, 1, {"a": [1, 1, -987, 1]}, "a holds negative weights"),
        (C9, 1, {"a": [1, 1, np.nan, 1]}, "a holds NaN"),
        (C9, 1, {"a": [1, 1, 1]}, "a has 3 weights for 4 samples"),
        (C9, 1, {"b": np.zeros(3)}, "b sums to 0"),
        (C9, 1, {"a": [1, 1, 1, 1], "b": [1, 1, 987]}, "a and b have different totals"),
        (C9, 1, {"a": np.ones((2, 4))}, "a has leading axes that do not fit"),
    ],
)
def test_errors(cost, reg, kw, message):
    with pytest.raises(ValueError, match=message) as error:
        sinkhorn_plan(cost, reg, **kw)
    assert "987" not in str(error.value)


@pytest.mark.parametrize(
    ("X", "Y", "kw", "message"),
    [
        (C9, C9, {"p": 1, "l1_weight": 1.0}, "leave it at 0 with p=1"),
        (C9, C9[:, :2], {}, "same number of features"),
        (C9[0], C9, {}, "rows of the same number"),
        (NAN9, C9, {}, "X holds NaN"),
        (C9, NAN9, {}, "Y holds NaN"),
        (C9[:0], C9, {}, "X must be a non-empty"),
    ],
)
def test_pair_errors(X, Y, kw, message):
    for function in (
        pairwise_cost,
        lambda *args, **kw: entropic_wasserstein(*args, reg=1, **kw),
        lambda *args, **kw: sinkhorn_divergence(*args, reg=1, **kw),
    ):
        with pytest.raises(ValueError, match=message) as error:
            function(X, Y, **kw)
        assert "987" not in str(error.value)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("exponent", "word"), [(0.55, "large"), (-0.55, "small")])
def test_squares_beyond_the_range_are_refused(dtype, exponent, word):
    """They were infinite, with the advice to raise reg, or 0 where rows differ."""
    X = np.random.default_rng(0).random((5, 2)).astype(dtype)
    far = X * dtype(float(np.finfo(dtype).max) ** exponent)
    match = f"X and Y are too {word} for {np.dtype(dtype)}"
    for function in (entropic_wasserstein, sinkhorn_divergence):
        with pytest.raises(ValueError, match=match):
            function(far, far[::-1] * 2, reg=0.1)
        assert 0 <= function(far, far[::-1] * 2, reg=0.1, p=1) < math.inf
    # Equal rows have no distances, of whatever size they are.
    same = np.repeat(far[:1], 4, axis=0)
    if word == "small":
        assert pairwise_cost(same, same).max() == 0


@pytest.mark.parametrize("value", [None, "2", 1.5, math.nan, math.inf, -1, True, [2]])
@pytest.mark.parametrize("name", ["n_iter", "p", "l1_weight", "reg", "tol", "entropy"])
def test_parameters_are_refused_by_name(name, value):
    valid = {"l1_weight": [1.5, math.inf], "reg": [1.5], "tol": [1.5], "entropy": [True]}
    if value in valid.get(name, []):
        return
    with pytest.raises(ValueError, match=rf"^{name} must be"):
        entropic_wasserstein(C9, C9, **{"reg": 1.0, name: value})


# --- CUDA ----------------------------------------------------------------------------------


@needs_cuda
@pytest.mark.parametrize("ratio", [1e-3, 1e-2, 1.0])
def test_cuda_equals_cpu(ratio):
    X, Y, a = normal(2, 30, 4, seed=1), normal(2, 21, 4, seed=2), weights(30)
    reg = ratio * pairwise_cost(X, Y).mean().item()

    def run(device):
        Z = X.to(device).requires_grad_()
        value = entropic_wasserstein(Z, Y.to(device), reg=reg, a=a, tol=1e-9, entropy=True)
        assert value.device.type == device
        return value.cpu(), torch.autograd.grad(value.sum(), Z)[0].cpu()

    for cpu, cuda in zip(run("cpu"), run("cuda"), strict=True):
        torch.testing.assert_close(cuda, cpu, rtol=1e-6, atol=1e-8)
    plan = sinkhorn_plan(pairwise_cost(X.cuda(), Y.numpy()), reg)
    assert plan.is_cuda
    assert marginal_error(plan.cpu()) <= 2e-6


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("name", ["entropic", "value", "divergence"])
def test_gradients_in_weights_are_those_of_the_entropic_objective(name, both):
    generator = torch.Generator().manual_seed(0)
    X, Y = (torch.randn(n, 2, generator=generator, dtype=torch.float64) for n in (5, 4))
    a, b = (torch.rand(n, generator=generator, dtype=torch.float64) for n in (5, 4))
    options = {"reg": 0.5, "tol": 1e-13, "n_iter": 10_000}

    def loss(a, b, entropy=True):
        weights = {"a": a, "b": b} if both else {"a": a}
        if name == "divergence":
            return sinkhorn_divergence(X, Y, **weights, **options)
        return entropic_wasserstein(X, Y, **weights, entropy=entropy, **options)

    a, b = (2 * a / a.sum()).requires_grad_(), (2 * b / b.sum()).requires_grad_()
    found = torch.autograd.grad(loss(a, b, entropy=name != "value"), [a, b][: 1 + both])
    for i, gradient in enumerate(found):
        steps = 1e-6 * torch.eye(len(gradient), dtype=torch.float64)
        for step, slope in zip(steps, gradient, strict=True):
            moved = [[a.detach(), b.detach()] for _ in range(2)]
            moved[0][i], moved[1][i] = moved[0][i] + step, moved[1][i] - step
            difference = loss(*moved[0]) - loss(*moved[1])
            assert float(difference / 2e-6) == pytest.approx(float(slope), abs=1e-6)


def test_plans_of_weights_with_a_gradient_are_those_without():
    a, cost = torch.tensor([0.2, 0.3, 0.5], requires_grad=True), torch.rand(3, 3)
    with_gradient, without = (sinkhorn_plan(cost, 0.1, a=w) for w in (a, a.detach()))
    assert not with_gradient.requires_grad
    assert torch.equal(with_gradient, without)
    # A loss of arrays has the gradient of its weights, too.
    loss = sinkhorn_divergence(np.eye(3), np.ones((2, 3)), reg=0.5, a=a)
    assert torch.autograd.grad(loss, a)[0].abs().sum() > 0


@pytest.mark.parametrize(
    "function",
    [
        lambda X, Y: sinkhorn_divergence(X, Y, reg=0.5),
        lambda X, Y: sinkhorn_plan(pairwise_cost(X, Y), 0.5).sum(0),
        lambda X, Y: sliced_wasserstein_distance(X, Y, random_state=0),
    ],
)
def test_autocast_changes_nothing(function):
    X, Y = torch.rand(9, 2, generator=torch.Generator().manual_seed(0)).split([4, 5])
    expected = function(X, Y)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(function(X, Y), expected)


def test_weights_whose_sum_is_no_float_are_refused_by_name():
    with pytest.raises(ValueError, match="b sums to more than float64 holds"):
        sliced_wasserstein_distance(np.eye(2), np.eye(2), b=[1e308, 1e308])
    with pytest.raises(ValueError, match="a sums to more than float64 holds"):
        sinkhorn_plan(np.eye(2), 0.5, a=[1e308, 1e308])
