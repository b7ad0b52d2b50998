"""Fits keep to the device that is asked for, as a stand-in for an accelerator shows without one."""

import collections
import contextlib

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_digits
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

from skdpgen import (
    DPAFGenerator,
    DPSinkhornGenerator,
    DPSlicedWassersteinGenerator,
    DPSWDDomainAdapter,
    DPSWFlowSampler,
    LDPEntropicGAN,
    PrivacyBudget,
    base,
)
from skdpgen.planning import rehearsal
from skdpgen.privacy import Curator, SpentError
from skdpgen.releases import ForwardAggregates, SampledGradients, SlicedRows
from skdpgen.transport import sinkhorn_plan

# A name that torch has without any such device; its own tensors have no numbers.
DEVICE = torch.device("meta")
PRODUCTS = ("mm", "addmm", "bmm", "baddbmm", "convolution", "convolution_backward")


class Remote(torch.Tensor):
    """A tensor that says that it is on `DEVICE`; its numbers are in `inner`, on the CPU."""

    @staticmethod
    def __new__(cls, inner):
        given = {"strides": inner.stride(), "dtype": inner.dtype, "device": DEVICE}
        remote = torch.Tensor._make_wrapper_subclass(cls, inner.shape, **given)
        remote.inner = inner
        return remote

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise AssertionError(f"A tensor of the device is left after the fit, for {function}.")


class Accelerator(TorchDispatchMode):
    """Runs operations as an accelerator does, which takes no tensors of two devices.

    Attributes
    ----------
    transfers : collections.Counter
        Copies "up" and "down", and numbers for which the CPU has to "wait".
    on_cpu : collections.Counter
        Elements of the tensors in products and convolutions on the CPU.
    """

    def __init__(self):
        super().__init__()
        self.transfers, self.on_cpu = collections.Counter(), collections.Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name, kwargs = function._schema.name.split("::")[1], dict(kwargs or {})
        tensors = [t for t in tree_flatten((args, kwargs))[0] if isinstance(t, torch.Tensor)]
        places = {isinstance(t, Remote) for t in tensors}
        is_remote = True in places
        if name == "copy_" and len(places) == 2:
            self.transfers["up" if isinstance(args[0], Remote) else "down"] += 1
        # Numbers without axes may come from the CPU.
        elif is_remote and not all(isinstance(t, Remote) or t.ndim == 0 for t in tensors):
            raise RuntimeError(f"{name} got tensors of two devices.")
        if name == "_local_scalar_dense" and is_remote:
            self.transfers["wait"] += 1
        if (target := kwargs.get("device")) is not None:
            kwargs["device"] = "cpu"
            goes_up = torch.device(target) == DEVICE
            if name == "_to_copy" and is_remote != goes_up:
                self.transfers["up" if goes_up else "down"] += 1
            is_remote = goes_up
        if name in PRODUCTS and not is_remote:
            self.on_cpu[name] += sum(t.numel() for t in tensors)
        inner = tree_map(lambda t: t.inner if isinstance(t, Remote) else t, (args, kwargs))
        result = function(*inner[0], **inner[1])
        if name.endswith("_"):
            return None if result is None else args[0]
        if "out" in kwargs:
            return kwargs["out"]
        return tree_map(_to_remote, result) if is_remote else result


def _to_remote(value):
    return Remote(value) if isinstance(value, torch.Tensor) else value


class Factories(TorchFunctionMode):
    """Lets numbers reach the device, from which torch would drop them on the way."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if function in (torch.tensor, torch.as_tensor) and kwargs.get("device") is not None:
            device = kwargs.pop("device")
            return function(*args, **kwargs).to(device)
        if function is torch.Tensor.tolist and isinstance(args[0], Remote):
            return args[0].cpu().tolist()
        return function(*args, **kwargs)


@contextlib.contextmanager
def accelerator():
    with Factories(), Accelerator() as device:
        yield device


COMMON = {"epsilon": 10.0, "random_state": 0, "device": str(DEVICE)}
IMAGES = {**COMMON, "delta": 1e-4, "bounds": (0, 16), "classes": range(10)}
CLIPPED = {**IMAGES, "clip_norm": 1.0}
METHODS = {
    "flow": lambda n: DPSWFlowSampler(n_steps=n, **CLIPPED),
    "flow, components": lambda n: DPSWFlowSampler(n_steps=n, encoder="dp-pca", **CLIPPED),
    "flow, rows": lambda n: DPSWFlowSampler(release=SlicedRows(n_steps=n), **CLIPPED),
    "network": lambda n: DPSlicedWassersteinGenerator(n_steps=n, **CLIPPED),
    "network, rows": lambda n: DPSlicedWassersteinGenerator(
        release=SlicedRows(n_steps=n), **CLIPPED
    ),
    "gradients": lambda n: DPSinkhornGenerator(
        release=SampledGradients(n_steps=n), encoder="dp-pca", **CLIPPED
    ),
    "gradients in weights": lambda n: DPSinkhornGenerator(
        release=SampledGradients(n_steps=n, perturb="parameters"), **CLIPPED
    ),
    "aggregates": lambda n: DPAFGenerator(release=ForwardAggregates(n_steps=n), **IMAGES),
    "local": lambda n: LDPEntropicGAN(
        n_steps=n, **{k: v for k, v in IMAGES.items() if k != "delta"}
    ),
}


def run(name, n_steps):
    """Fit on the stand-in; return it and the estimator."""
    X, y = load_digits(return_X_y=True)
    estimator = METHODS[name](n_steps)
    with accelerator() as device:
        estimator.fit(X[:100], y[:100])
    return device, estimator


@pytest.mark.filterwarnings("ignore::skdpgen.exceptions.PrivacyLeakWarning")
@pytest.mark.filterwarnings("ignore::skdpgen.exceptions.FitQualityWarning")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            case,
            marks=()
            if case in ("flow, components", "gradients in weights", "aggregates")
            else pytest.mark.slow,
        )
        for case in METHODS
    ],
)
def test_steps_compute_on_the_device(name, monkeypatch):
    # Small plans are solved on the CPU, by design.
    monkeypatch.setattr("skdpgen.transport.sinkhorn.SMALL", 0)
    few, _ = run(name, 2)
    more, estimator = run(name, 4)
    # A trial of a network on two rows, before the steps, is the same.
    assert more.on_cpu == few.on_cpu
    X, _ = estimator.sample(20)
    assert X.shape == (20, 64)
    assert np.isfinite(X).all()


@pytest.mark.filterwarnings("ignore::skdpgen.exceptions.PrivacyLeakWarning")
@pytest.mark.parametrize(
    "name", ["flow", pytest.param("flow, components", marks=pytest.mark.slow), "network"]
)
def test_steps_after_a_release_wait_for_nothing(name):
    few, more = (run(name, n_steps)[0].transfers for n_steps in (5, 10))
    assert more["wait"] == few["wait"]
    assert more["down"] == few["down"]
    if name != "network":  # Its codes are drawn on the CPU, so that every device gets the same.
        assert more["up"] == few["up"]
        # Nor do the steps that find where particles start.
        assert more["up"] < 100


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skdpgen.exceptions.PrivacyLeakWarning")
def test_an_adapter_computes_on_the_device(monkeypatch):
    monkeypatch.setattr("skdpgen.transport.sinkhorn.SMALL", 0)
    X, y = load_digits(return_X_y=True)
    products = []
    for n_steps in (2, 4):
        with accelerator() as device:
            adapter = DPSWDDomainAdapter(delta=1e-4, n_steps=n_steps, **COMMON)
            adapter.fit(X[:200] / 16, y[:200], X_target=X[400:600] / 16)
        products.append(device.on_cpu)
    assert products[0] == products[1]


@pytest.mark.parametrize("m", [20, 400])
def test_small_plans_are_solved_on_the_cpu(m):
    cost = torch.rand(m, m, generator=torch.Generator().manual_seed(0))
    expected = sinkhorn_plan(cost, 0.1)
    with accelerator() as device:
        found = sinkhorn_plan(cost.to(DEVICE), 0.1)
        assert found.device == DEVICE
        found = found.cpu()
    torch.testing.assert_close(found, expected)
    # The cost and both weights go down, and what is found comes up.
    assert device.transfers["down"] - 1 == (3 if m == 20 else 0)
    assert device.transfers["up"] - 1 == (3 if m == 20 else 0)
    assert (device.transfers["wait"] < 5) == (m == 20)


def test_the_stand_in_tells_devices_apart():
    with accelerator() as device:
        rows = torch.tensor([[1.0, 2.0]]).to(DEVICE)
        assert rows.device == DEVICE
        with pytest.raises(RuntimeError, match="two devices"):
            rows + torch.ones(2)
        with pytest.raises((RuntimeError, TypeError)):
            rows.numpy()
        assert (rows * 2).tolist() == [[2.0, 4.0]]
        assert float(rows.sum() + torch.tensor(1.0)) == 4
        assert not device.on_cpu
        torch.ones(2, 2) @ torch.ones(2, 2)
    assert device.on_cpu["mm"] == 8
    assert device.transfers == {"up": 1, "down": 1, "wait": 1}


# Rehearsals. The CPU stands for an accelerator.


def _shrink(monkeypatch):
    monkeypatch.setattr(base, "_HOST_DEVICES", ())


_X, _Y = np.random.RandomState(0).uniform(size=(80, 3)), np.arange(80) % 2
_TABLE = pd.DataFrame({"age": _X[:, 0], "ward": np.where(_Y, "A", "B")})
_TERMS = {"epsilon": 5.0, "random_state": 0}
REHEARSED = {
    "sketch": lambda: DPSlicedWassersteinGenerator(**_TERMS, n_steps=2, classes=[0, 1]).fit(_X, _Y),
    "rows": lambda: DPSWFlowSampler(**_TERMS, release="resample").fit(_X),
    "components": lambda: DPSWFlowSampler(**_TERMS, encoder="dp-pca", n_steps=2).fit(_X),
    "gradients": lambda: DPSinkhornGenerator(**_TERMS).fit(_X, _X[:, 0]),
    "aggregates": lambda: DPAFGenerator(**_TERMS).fit(_X),
    "local": lambda: LDPEntropicGAN(**_TERMS, bounds=(0, 1), n_steps=2).fit(_X),
    "table": lambda: DPSWFlowSampler(**_TERMS, n_steps=2).fit(_TABLE),
    "persons": lambda: DPSWFlowSampler(**_TERMS, n_steps=2).fit(_X, persons=np.arange(80) // 2),
}


@pytest.mark.parametrize("name", REHEARSED)
@pytest.mark.filterwarnings("ignore")
def test_a_rehearsal_makes_all_releases_and_changes_nothing(monkeypatch, name):
    expected, fitted = REHEARSED[name](), []
    _shrink(monkeypatch)
    rehearse = rehearsal._rehearse

    def rehearse_and_note(estimator, *args):
        rehearse(estimator, *args)  # raises no error
        fitted.append(estimator)

    monkeypatch.setattr(rehearsal, "_rehearse", rehearse_and_note)
    made = REHEARSED[name]()
    assert [type(estimator) for estimator in fitted] == [type(made)]
    assert fitted[0] is not made
    # Updates of one step, where one release is followed by several.
    assert len(fitted[0].loss_curve_) <= 12
    assert made.privacy_ == expected.privacy_
    pd.testing.assert_frame_equal(_as_frame(made.sample(9)), _as_frame(expected.sample(9)))


def _as_frame(sample):
    X, y = sample if isinstance(sample, tuple) else (sample, None)
    return pd.DataFrame(X).assign(y=y)


@pytest.mark.catches(
    "planning.rehearsal:rehearse_fit",
    "error is not None and is_out_of_memory(error)",
    "False",
    param="sketch",
)
@pytest.mark.parametrize("name", ["sketch", "rows", "components", "aggregates", "table"])
@pytest.mark.filterwarnings("ignore")
def test_a_device_without_memory_is_refused_before_a_release(monkeypatch, name):
    """For rows, and for a step of training."""
    _shrink(monkeypatch)
    releases, release = [], Curator.release
    monkeypatch.setattr(Curator, "release", lambda *args: releases.append(1) or release(*args))

    def fail(*args, **kwargs):
        raise torch.OutOfMemoryError("own words")

    for target in (
        "skdpgen.curator.batches.RecordSource._membership",
        "skdpgen.learners.training.Descent.step",
    ):
        if (name, target[-4:]) == ("rows", "step"):
            continue  # particles are moved without gradients
        with monkeypatch.context() as patch:
            patch.setattr(target, fail)
            with pytest.raises((ValueError, SpentError)) as caught:
                REHEARSED[name]()
            assert str(caught.value).startswith("device 'cpu' has too little memory")
            assert "own words" in str(caught.value.__cause__)
    assert releases == []


@pytest.mark.catches("planning.rehearsal:rehearse_fit", "PublicRun()", "muted()")
@pytest.mark.filterwarnings("ignore")
def test_a_rehearsal_is_charged_to_no_budget(monkeypatch):
    _shrink(monkeypatch)
    spent, rehearse = [], rehearsal._rehearse

    def rehearse_and_note(*args):
        rehearse(*args)
        spent.append(budget.spent)

    monkeypatch.setattr(rehearsal, "_rehearse", rehearse_and_note)
    with PrivacyBudget(20.0, 1e-5) as budget:
        fitted = DPSWFlowSampler(4.0, bounds=(0, 1), n_steps=2).fit(_X)
    assert spent == [0.0]
    assert budget.spent == fitted.epsilon_


@pytest.mark.filterwarnings("ignore")
def test_a_rehearsal_costs_nothing_and_says_nothing_of_other_errors(monkeypatch):
    _shrink(monkeypatch)

    def fail(*args):
        raise ZeroDivisionError

    monkeypatch.setattr(rehearsal, "_rehearse", fail)
    with PrivacyBudget(5.0, 1e-5) as budget:
        fitted = DPSWFlowSampler(4.0, bounds=(0, 1), n_steps=2).fit(_X)
    assert budget.spent == fitted.epsilon_
