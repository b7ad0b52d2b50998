import math

import numpy as np
import ot
import pytest
import torch
from scipy import stats
from torch.utils._python_dispatch import TorchDispatchMode

from skdpgen.transport import (
    random_directions,
    sliced_wasserstein_distance,
    slices,
    smoothed_sliced_wasserstein_distance,
    wasserstein_1d,
)

DISTANCES = [
    sliced_wasserstein_distance,
    lambda X, Y, **kw: smoothed_sliced_wasserstein_distance(X, Y, sigma=0.5, **kw),
]
needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def normal(*shape, seed=0, **kw):
    return torch.randn(*shape, generator=seeded(seed), **{"dtype": torch.float64, **kw})


def positive(*shape, seed=0):
    return torch.rand(*shape, generator=seeded(seed), dtype=torch.float64) + 0.1


def emd(x, y, a=None, b=None, p=2):
    """Exact W_p^p between 1-D samples by linear programming."""
    x, y = np.asarray(x), np.asarray(y)
    a = np.full(len(x), 1 / len(x)) if a is None else np.asarray(a) / np.sum(np.asarray(a))
    b = np.full(len(y), 1 / len(y)) if b is None else np.asarray(b) / np.sum(np.asarray(b))
    return ot.emd2(a, b, np.abs(x[:, None] - y[None]) ** p)


# --- random_directions ---------------------------------------------------------------------


@pytest.mark.parametrize(("d", "k"), [(5, 3), (5, 5), (5, 15), (5, 17), (40, 100)])
def test_directions_come_in_orthonormal_blocks(d, k):
    U = random_directions(d, k, generator=seeded(), dtype=torch.float64)
    for block in U.split(d, dim=1):
        eye = torch.eye(block.shape[1], dtype=torch.float64)
        torch.testing.assert_close(block.T @ block, eye)
    iid = random_directions(d, k, orthogonal=False, generator=seeded(), dtype=torch.float64)
    assert (iid.T @ iid - torch.eye(k)).abs().max() > 0.1


@pytest.mark.parametrize("orthogonal", [True, False])
@pytest.mark.parametrize("d", [2, 3, 5])
@pytest.mark.parametrize("extra", [0, 1])
def test_every_column_is_uniform_on_the_sphere(d, orthogonal, extra):
    # A coordinate u has (1 + u) / 2 ~ Beta((d - 1) / 2, (d - 1) / 2), so u² ~ Beta(1/2, (d-1)/2).
    # Many small draws rather than one large one, so that the partial last block is seen too.
    g = seeded(d)
    draws = torch.stack(
        [
            random_directions(d, d + extra, orthogonal=orthogonal, generator=g, dtype=torch.float64)
            for _ in range(1500)
        ]
    ).numpy()
    law = stats.beta((d - 1) / 2, (d - 1) / 2)
    for row, column in [(0, 0), (0, d - 1), (d - 1, 0), (d - 1, d - 1), (0, d + extra - 1)]:
        u = draws[:, row, column]
        assert stats.kstest((1 + u) / 2, law.cdf).pvalue > 1e-3
        assert stats.kstest(u**2, stats.beta(1 / 2, (d - 1) / 2).cdf).pvalue > 1e-3
        assert abs(np.mean(u**2) - 1 / d) < 4 * np.std(u**2) / np.sqrt(len(u))


@pytest.mark.parametrize("orthogonal", [True, False])
def test_directions_follow_their_generator(orthogonal):
    def draw(seed, dtype):
        return random_directions(4, 9, orthogonal=orthogonal, generator=seeded(seed), dtype=dtype)

    double, single = draw(1, torch.float64), draw(1, torch.float32)
    assert (double.dtype, single.dtype) == (torch.float64, torch.float32)
    assert torch.equal(double.float(), single)
    assert not torch.equal(single, draw(2, torch.float32))
    g = seeded(1)
    first = random_directions(4, 9, orthogonal=orthogonal, generator=g)
    assert torch.equal(first, single)
    assert not torch.equal(random_directions(4, 9, orthogonal=orthogonal, generator=g), first)


# --- wasserstein_1d ------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 1.5, 2, 3])
@pytest.mark.parametrize(("n", "m"), [(20, 20), (20, 13), (12, 18), (1, 5), (1, 1)])
@pytest.mark.parametrize("weighted", ["", "a", "b", "ab"])
def test_1d_equals_pot(n, m, p, weighted):
    x, y = normal(6, n, seed=1), normal(6, m, seed=2) * 2 + 0.3
    a = positive(n, seed=3) if "a" in weighted else None
    b = positive(m, seed=4) if "b" in weighted else None
    cost = wasserstein_1d(x, y, a=a, b=b, p=p)
    expected = ot.wasserstein_1d(
        x.T, y.T, None if a is None else a / a.sum(), None if b is None else b / b.sum(), p=p
    )
    torch.testing.assert_close(cost, expected)
    assert cost[0].item() == pytest.approx(emd(x[0], y[0], a, b, p))


def test_1d_small_weights_count_in_single_precision():
    x, y = torch.tensor([0.0, 1e4]), torch.tensor([0.0])
    assert wasserstein_1d(x, y, a=[1.0, 1e-8]).item() == pytest.approx(1, rel=1e-5)


def test_1d_batches():
    x, y = normal(2, 3, 6, seed=1), normal(2, 3, 4, seed=2)
    a, b = positive(2, 3, 6, seed=3), positive(2, 3, 4, seed=4)

    def one_by_one(*sides):
        flat = [None if t is None else t.expand(2, 3, -1).reshape(6, -1) for t in sides]
        costs = [emd(*(None if t is None else t[i] for t in flat)) for i in range(6)]
        return torch.tensor(costs, dtype=torch.float64).reshape(2, 3)

    cases = [
        (x, y, a, b),
        (x, y, a, None),
        (x, y, None, b),
        (x, y, None, None),
        (x, y[0, 0], None, None),
        (x[0, 0], y, None, None),
        (x, x[0, 0], None, None),
        (x[:1], y[:, :1], a[0, 0], b),
        (x[0, 0], y[0, 0], a, None),
    ]
    for x_, y_, a_, b_ in cases:
        cost = wasserstein_1d(x_, y_, a=a_, b=b_)
        torch.testing.assert_close(cost, one_by_one(x_, y_, a_, b_))
    assert wasserstein_1d(x[0, 0], y[0, 0]).shape == ()


@pytest.mark.parametrize("p", [1, 1.5, 2, 3])
@pytest.mark.parametrize("threads", [1, 8])
def test_1d_gradients(p, threads):
    # Both sorts: one thread takes numpy's, many threads and CUDA take torch's.
    torch.set_num_threads(threads)
    x, y = normal(2, 5, seed=1).requires_grad_(), normal(2, 4, seed=2).requires_grad_()
    z = normal(2, 5, seed=3).requires_grad_()
    a, b = positive(5, seed=4).requires_grad_(), positive(4, seed=5).requires_grad_()
    check = torch.autograd.gradcheck
    assert check(lambda x, z: wasserstein_1d(x, z, p=p), (x, z))
    assert check(lambda x, y: wasserstein_1d(x, y, p=p), (x, y))
    assert check(lambda *t: wasserstein_1d(*t[:2], a=t[2], b=t[3], p=p), (x, y, a, b))


# --- sliced_wasserstein_distance -----------------------------------------------------------


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize(("n", "m"), [(30, 30), (30, 21)])
@pytest.mark.parametrize("weighted", [False, True])
def test_sliced_equals_pot(n, m, p, weighted):
    X, Y, U = normal(n, 4, seed=1), 2 * normal(m, 4, seed=2) + 1, normal(4, 11, seed=3)
    a, b = (positive(n), positive(m)) if weighted else (None, None)
    mine = sliced_wasserstein_distance(X, Y, a=a, b=b, projections=U, p=p)
    theirs = ot.sliced_wasserstein_distance(
        X, Y, a / a.sum() if weighted else None, b / b.sum() if weighted else None,
        projections=U, p=p,
    )  # fmt: skip
    torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize("p", [1, 1.5, 2, 3])
@pytest.mark.parametrize("budget", [slices.CHUNK_ELEMENTS, 20])
@pytest.mark.parametrize("distance", DISTANCES)
def test_gradients(distance, p, budget, monkeypatch):
    monkeypatch.setattr(slices, "CHUNK_ELEMENTS", budget)
    X, Y = normal(5, 3, seed=1).requires_grad_(), normal(4, 3, seed=2).requires_grad_()
    a, U = positive(5).requires_grad_(), normal(3, 4, seed=3).requires_grad_()
    kw = {"p": p, "random_state": 0}
    check = torch.autograd.gradcheck
    assert check(lambda X, Y: distance(X, Y, n_projections=7, **kw), (X, Y))
    assert check(lambda X, a, U: distance(X, Y, a=a, projections=U, **kw), (X, a, U))


@pytest.mark.parametrize("p", [1, 1.5, 2, 3])
def test_gradient_is_zero_at_distance_zero(p):
    X = normal(8, 3).requires_grad_()
    distance = sliced_wasserstein_distance(X, X.detach().clone(), p=p)
    (grad,) = torch.autograd.grad(distance, X)
    assert distance == 0
    assert torch.equal(grad, torch.zeros_like(X))


@pytest.mark.parametrize("weighted", [False, True])
def test_chunks_change_nothing_but_memory(weighted, monkeypatch):
    X, Y = normal(40, 5, seed=1).requires_grad_(), normal(24, 5, seed=2)
    kw = {"random_state": 0, "n_projections": 103, "a": positive(40) if weighted else None}

    class Largest(TorchDispatchMode):
        numel = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            out = func(*args, **(kwargs or {}))
            tensors = [t for t in torch.utils._pytree.tree_leaves(out) if torch.is_tensor(t)]
            self.numel = max([self.numel, *(t.numel() for t in tensors)])
            return out

    def run(budget):
        monkeypatch.setattr(slices, "CHUNK_ELEMENTS", budget)
        saved = []
        hooks = torch.autograd.graph.saved_tensors_hooks(
            lambda t: saved.append(t.numel()) or t, lambda t: t
        )
        with Largest() as largest, hooks:
            distance = sliced_wasserstein_distance(X, Y, **kw)
            kept = sum(saved)
            (grad,) = torch.autograd.grad(distance, X)
        return distance, grad, largest.numel, kept

    distance, grad, numel, kept = run(2**24)
    chunked, chunked_grad, chunked_numel, chunked_kept = run(1000)
    torch.testing.assert_close(chunked, distance)
    torch.testing.assert_close(chunked_grad, grad)
    assert numel >= 103 * 40
    assert chunked_numel <= 1000
    assert kept >= 103 * 40
    assert chunked_kept <= 1000
    # One row may exceed the budget; then a chunk is one slice.
    torch.testing.assert_close(run(1)[0], distance)


def test_float_for_arrays_and_tensor_for_tensors():
    X, Y = normal(9, 3, seed=1), normal(9, 3, seed=2)
    expected = sliced_wasserstein_distance(X, Y, random_state=0)
    assert isinstance(expected, torch.Tensor)
    assert expected.shape == ()
    for convert in (np.asarray, np.ndarray.tolist, np.asfortranarray, lambda A: A[::-1]):
        value = sliced_wasserstein_distance(convert(X.numpy()), convert(Y.numpy()), random_state=0)
        assert type(value) is float
        assert value == pytest.approx(expected.item())
    mixed = sliced_wasserstein_distance(X.numpy(), Y, random_state=0)
    assert torch.equal(mixed, expected)
    read_only = X.numpy().copy()
    read_only.flags.writeable = False
    assert sliced_wasserstein_distance(read_only, Y.numpy(), random_state=0) == pytest.approx(
        expected.item()
    )


def test_dtypes():
    X, Y = normal(9, 3, seed=1), normal(9, 3, seed=2)
    assert sliced_wasserstein_distance(X, Y).dtype == torch.float64
    assert sliced_wasserstein_distance(X.float(), Y.float()).dtype == torch.float32
    assert sliced_wasserstein_distance(X.float(), Y).dtype == torch.float64
    integers = torch.tensor([[0, 1], [2, 3]])
    whole = sliced_wasserstein_distance(integers, integers + 1, random_state=0)
    assert whole.dtype == torch.float64
    assert whole == sliced_wasserstein_distance(
        integers.double(), integers.double() + 1, random_state=0
    )
    single = sliced_wasserstein_distance(X.float(), Y.float(), random_state=0)
    double = sliced_wasserstein_distance(X, Y, random_state=0)
    torch.testing.assert_close(single.double(), double, rtol=1e-5, atol=0)


@pytest.mark.parametrize("distance", DISTANCES)
def test_random_state(distance):
    X, Y = normal(9, 3, seed=1), normal(9, 3, seed=2)

    def run(random_state):
        return distance(X, Y, n_projections=4, random_state=random_state).item()

    assert run(0) == run(0) == run(np.int64(0))
    assert run(0) != run(1)
    assert run(None) != run(None)
    state = np.random.RandomState(0)
    first, second = run(state), run(state)
    assert first != second
    assert first == run(np.random.RandomState(0))


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("random_state", [None, 0])
def test_global_generators_are_untouched(distance, random_state):
    X = normal(9, 3).requires_grad_()
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    value = distance(X, X.detach() + 1, random_state=random_state)
    torch.autograd.grad(value, X)
    assert torch.equal(torch.get_rng_state(), torch_state)
    assert np.array_equal(np.random.get_state()[1], numpy_state)  # noqa: NPY002
    torch.manual_seed(0)
    first = distance(X, X.detach() + normal(3), random_state=random_state).item()
    torch.manual_seed(0)
    again = distance(X, X.detach() + normal(3), random_state=random_state).item()
    torch.set_rng_state(torch_state)
    assert (first == again) == (random_state is not None)


# --- smoothed_sliced_wasserstein_distance --------------------------------------------------


@pytest.mark.parametrize("sigma", [0.5, 2.0])
def test_smoothed_gaussians(sigma):
    # Slices N(0, s² + σ²) against N(c θ·1, 1 + σ²), with Σ (θ·1)² / k = 1 over full blocks.
    s, c, d, n = 3.0, 1.5, 2, 6000
    X, Y = s * normal(n, d, seed=1), normal(n, d, seed=2) + c
    distance = smoothed_sliced_wasserstein_distance(
        X, Y, sigma=sigma, n_projections=40, random_state=0
    )
    scales = math.sqrt(s**2 + sigma**2) - math.sqrt(1 + sigma**2)
    assert distance.item() == pytest.approx(math.sqrt(c**2 + scales**2), rel=0.03)


def test_noise_is_independent_over_sides_slices_and_samples():
    # With one sample a side, a slice costs (ε - ε')², of mean 2 σ² and variance 8 σ⁴.
    zero, sigma, k = torch.zeros(1, 2, dtype=torch.float64), 0.7, 4000
    squared = smoothed_sliced_wasserstein_distance(
        zero, zero, sigma=sigma, n_projections=k, random_state=0
    ).square()
    assert squared.item() == pytest.approx(2 * sigma**2, rel=4 * math.sqrt(2 / k))
    # Over many samples the two noises have the same law and the distance vanishes, unlike
    # that between noises shared by all samples of a side.
    many = zero.expand(4000, 2)
    shrunk = smoothed_sliced_wasserstein_distance(many, many, sigma=sigma, random_state=0)
    assert 0 < shrunk < 0.1


def test_noise_of_chunks_differs(monkeypatch):
    monkeypatch.setattr(slices, "CHUNK_ELEMENTS", 2)  # one slice a chunk
    zero = torch.zeros(1, 1, dtype=torch.float64)
    squared = smoothed_sliced_wasserstein_distance(
        zero, zero, sigma=1, n_projections=400, random_state=0
    ).square()
    assert squared.item() == pytest.approx(2, rel=4 * math.sqrt(2 / 400))


# --- errors --------------------------------------------------------------------------------

X9 = np.full((4, 3), 987.0)
NAN9, INF9 = X9.copy(), X9.copy()
NAN9[1, 1], INF9[1, 1] = np.nan, np.inf


@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize(
    ("X", "Y", "kw", "message"),
    [
        (X9, X9, {"p": 0.5}, "p must be"),
        (X9, X9, {"p": math.nan}, "p must be"),
        (X9, X9, {"p": math.inf}, "p must be"),
        (X9, X9[:, :2], {}, "same number of features"),
        (X9[0], X9, {}, "2-dimensional"),
        (X9, X9, {"projections": np.eye(4)}, "one row for each of the 3 features"),
        (X9, X9, {"projections": np.ones(3)}, "one row for each of the 3 features"),
        (X9, X9, {"projections": np.ones((3, 0))}, "projections must be a non-empty"),
        (X9, X9, {"projections": np.full((3, 2), np.nan)}, "projections holds NaN or infinite"),
        (X9[:0], X9, {}, "X must be a non-empty"),
        (X9, X9[:0], {}, "Y must be a non-empty"),
        (X9[:, :0], X9[:, :0], {}, "X must be a non-empty"),
        (NAN9, X9, {}, "X holds NaN or infinite"),
        (X9, INF9, {}, "Y holds NaN or infinite"),
        (torch.from_numpy(NAN9), X9, {}, "X holds NaN or infinite"),
        ([["987", "x987"]], X9, {}, "X is not an array of numbers"),
        (X9, [[987.0], [1.0, 2.0]], {}, "Y is not an array of numbers"),
        (X9, X9, {"a": [1, 1, -987, 1]}, "a holds negative weights"),
        (X9, X9, {"b": [1, 1, 1]}, "b has 3 weights for 4 samples"),
        (X9, X9, {"a": np.zeros(4)}, "a sums to 0"),
        (X9, X9, {"b": [1, 1, np.nan, 1]}, "b holds NaN or infinite"),
        (X9, X9, {"a": np.ones((2, 4))}, "a must be 1-dimensional"),
        (X9, X9, {"random_state": "seed"}, "random_state must be"),
    ],
)
def test_errors(distance, X, Y, kw, message):
    with pytest.raises(ValueError, match=message) as error:
        distance(X, Y, **kw)
    assert "987" not in str(error.value)


@pytest.mark.parametrize(
    ("x", "y", "kw", "message"),
    [
        ([1.0], [1.0], {"p": 0.9}, "p must be"),
        ([], [1.0], {}, "x must be a non-empty"),
        (1.0, [1.0], {}, "x must be a non-empty"),
        ([1.0], [math.nan], {}, "y holds NaN or infinite"),
        ([1.0, 2.0], [1.0], {"a": [1.0]}, "a has 1 weights for 2 samples"),
        ([1.0, 2.0], [1.0], {"a": [1.0, -1.0]}, "a holds negative"),
        ([[1.0, 2.0]] * 2, [1.0], {"a": [[1.0, 2.0], [0.0, 0.0]]}, "a sums to 0"),
        (np.ones((2, 3)), np.ones((4, 3)), {}, "do not broadcast"),
    ],
)
def test_1d_errors(x, y, kw, message):
    with pytest.raises(ValueError, match=message):
        wasserstein_1d(x, y, **kw)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("power", [-0.95, -0.6, 0.6, 0.95])
@pytest.mark.parametrize("p", [1, 1.5, 2, 7])
@pytest.mark.parametrize("n", [9, 12])
def test_distances_scale_with_rows(dtype, power, p, n):
    """Powers of gaps leave the range of the dtype, and distances do not."""
    scale = dtype(2.0 ** int(np.log2(float(np.finfo(dtype).max)) * power))
    rng = np.random.default_rng(0)
    X, Y = rng.random((9, 3)).astype(dtype), rng.random((n, 3)).astype(dtype)
    for options in ({"sigma": 0}, {"sigma": 0.5}):
        near = smoothed_sliced_wasserstein_distance(X, Y, p=p, random_state=0, **options)
        options = {"sigma": options["sigma"] * float(scale)}
        far = smoothed_sliced_wasserstein_distance(
            X * scale, Y * scale, p=p, random_state=0, **options
        )
        assert far / float(scale) == pytest.approx(near, rel=1e-5)


def test_gradients_of_large_and_small_rows():
    X = torch.rand(5, 2, generator=torch.Generator().manual_seed(0))

    def gradient(scale):
        rows = (X * scale).requires_grad_()
        sliced_wasserstein_distance(rows, torch.zeros(1, 2), random_state=0).backward()
        return rows.grad

    for scale in (2.0**-100, 2.0**100):
        assert torch.allclose(gradient(scale), gradient(1.0), rtol=1e-5)


def test_gaps_far_below_the_values():
    near = sliced_wasserstein_distance([[1.0], [1e-200]], [[1.0], [2e-200]], random_state=0)
    assert near == pytest.approx(1e-200 / math.sqrt(2))


def test_costs_beyond_the_range_are_refused():
    x = np.float32([1e25, 2e25])
    with pytest.raises(ValueError, match=r"x and y are too far apart.*p = 2.*float32"):
        wasserstein_1d(x, -x)
    assert wasserstein_1d(x, -x, p=1).isfinite()


@pytest.mark.parametrize("value", [None, "2", 1.5, math.nan, math.inf, 0, True, [2], 50.0])
@pytest.mark.parametrize("name", ["n_projections", "n_features"])
def test_counts_are_refused_by_name(name, value):
    with pytest.raises(ValueError, match=rf"^{name} must be a positive whole number"):
        random_directions(**{"n_features": 2, "n_projections": 2, name: value})
    with pytest.raises(ValueError, match=r"^n_projections must be a positive whole number"):
        sliced_wasserstein_distance(X9, X9, n_projections=value)


# --- CUDA ----------------------------------------------------------------------------------


@needs_cuda
def test_cuda_directions_equal_cpu_ones():
    cpu = random_directions(5, 13, generator=seeded())
    cuda = random_directions(5, 13, generator=seeded(), device="cuda")
    assert cuda.is_cuda
    assert torch.equal(cuda.cpu(), cpu)


@needs_cuda
@pytest.mark.parametrize("distance", DISTANCES)
@pytest.mark.parametrize("m", [30, 21])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("budget", [slices.CHUNK_ELEMENTS, 300])
def test_cuda_equals_cpu(distance, m, weighted, budget, monkeypatch):
    monkeypatch.setattr(slices, "CHUNK_ELEMENTS", budget)
    X, Y, a = normal(30, 4, seed=1), normal(m, 4, seed=2), positive(30)

    def run(device):
        Z = X.to(device).requires_grad_()
        value = distance(Z, Y.to(device), a=a if weighted else None, random_state=0)
        assert value.device.type == device
        return value.cpu(), torch.autograd.grad(value, Z)[0].cpu()

    for cpu, cuda in zip(run("cpu"), run("cuda"), strict=True):
        torch.testing.assert_close(cuda, cpu)
    assert distance(X.cuda(), Y.numpy()).is_cuda
    assert distance(X.detach().numpy(), Y.cuda()).is_cuda


class Waits(TorchDispatchMode):
    """Counts the numbers that are read from tensors, for each of which a GPU is waited for."""

    n_read = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.n_read += func is torch.ops.aten._local_scalar_dense.default
        return func(*args, **(kwargs or {}))


def test_a_distance_waits_once_for_its_device():
    X = torch.randn(30, 3, requires_grad=True)
    Y, directions = X.detach() + 1, torch.eye(3)
    for distance in (
        lambda: sliced_wasserstein_distance(X, Y, random_state=0),
        lambda: sliced_wasserstein_distance(X, Y[:20], projections=directions),
        lambda: wasserstein_1d(X.T, Y.T).sum(),
    ):
        with Waits() as counted:
            distance().backward()
        assert counted.n_read == 1
