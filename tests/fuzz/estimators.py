"""Estimators of tiny fits, and values of parameters: usual, odd and wrong."""

import decimal
import fractions
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from hypothesis import strategies as st
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from skdpgen import (
    DPAFGenerator,
    DPSinkhornGenerator,
    DPSlicedWassersteinGenerator,
    DPSWDDomainAdapter,
    DPSWFlowSampler,
    LDPEntropicGAN,
    Schema,
)
from skdpgen.encoders import PrivatePCA
from skdpgen.losses import EntropicWasserstein, SemiDebiasedSinkhorn, SinkhornDivergence
from skdpgen.preprocessing import DPPCA, LocalPrivatizer
from skdpgen.releases import (
    ForwardAggregates,
    LocalNoise,
    SampledGradients,
    SlicedRows,
    SliceSketch,
)

# Small networks and few steps.
_SMALL = {
    "sketch": lambda: SliceSketch(6, 2),
    "rows": lambda: SlicedRows(6, batch_size=4, n_steps=2),
    "gradients": lambda: SampledGradients(n_steps=2, batch_size=4, n_generated=4),
    "aggregates": lambda: ForwardAggregates(n_steps=2, batch_size=6, budget_split=(0, 0.5, 0.5)),
}
_TINY = {"latent_dim": 2, "network": torch.nn.Linear}


def _flow(**params):
    return DPSWFlowSampler(
        **{"n_steps": 2, "n_particles": 6, "release": _SMALL["sketch"]()} | params
    )


MAKERS = {
    "sliced": lambda: DPSlicedWassersteinGenerator(
        release=_SMALL["sketch"](), n_steps=2, batch_size=6, **_TINY
    ),
    "sliced rows": lambda: DPSlicedWassersteinGenerator(release=_SMALL["rows"](), **_TINY),
    "flow": _flow,
    "flow rows": lambda: _flow(release=_SMALL["rows"](), n_steps=None),
    "sinkhorn": lambda: DPSinkhornGenerator(release=_SMALL["gradients"](), **_TINY),
    "dpaf": lambda: DPAFGenerator(release=_SMALL["aggregates"](), **_TINY),
    "local": lambda: LDPEntropicGAN(n_steps=2, batch_size=6, **_TINY),
    "pca": DPPCA,
    "privatizer": LocalPrivatizer,
    "adapter": lambda: DPSWDDomainAdapter(
        n_steps=2, batch_size=6, n_projections=6, n_components=2, sampler=_flow()
    ),
}


def _raising(*args):
    raise RuntimeError("A factory of the user's fails.")


# Made anew for each case, by what they are called.
ODD = {
    "None": lambda: None,
    "''": lambda: "",
    "'none'": lambda: "none",
    "lone surrogate": lambda: "\ud800",
    "bytes": lambda: b"auto",
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "-inf": lambda: float("-inf"),
    "-1": lambda: -1,
    "0": lambda: 0,
    "-0.0": lambda: -0.0,
    "1": lambda: 1,
    "2": lambda: 2,
    "0.5": lambda: 0.5,
    "1e-300": lambda: 1e-300,
    "1e308": lambda: 1e308,
    "10**400": lambda: 10**400,
    "True": lambda: True,
    "np.True": lambda: np.bool_(True),
    "np.float32": lambda: np.float32(0.5),
    "np.int64": lambda: np.int64(2),
    "np.uint8": lambda: np.uint8(2),
    "np.longdouble": lambda: np.longdouble(0.5),
    "np.nan": lambda: np.float64("nan"),
    "np.str": lambda: np.str_("auto"),
    "Decimal": lambda: decimal.Decimal("0.5"),
    "Fraction": lambda: fractions.Fraction(1, 2),
    "complex": lambda: 1j,
    "[]": lambda: [],
    "()": lambda: (),
    "{}": lambda: {},
    "[None]": lambda: [None],
    "object": object,
    "0d array": lambda: np.array(1.0),
    "array": lambda: np.array([1.0, 2.0]),
    "texts": lambda: np.array(["a", "b"]),
    "frame": lambda: pd.DataFrame({"a": [1]}),
    "tensor": lambda: torch.tensor([1.0, 2.0]),
    "pd.NA": lambda: pd.NA,
    "NaT": lambda: pd.NaT,
    "lambda": lambda: lambda *args: None,
    "raising": lambda: _raising,
    "type": lambda: dict,
    "specification": lambda: PrivatePCA(),
    "class of one": lambda: SliceSketch,
    "estimator": lambda: DPSWFlowSampler(),
    "generator": lambda: iter([0, 1]),
}


class _Narrow(torch.nn.Module):
    """A network that gives another number of columns than it was asked for."""

    def __init__(self, n_inputs, n_outputs):
        super().__init__()
        self.inner = torch.nn.Linear(n_inputs, n_outputs + 1)

    def forward(self, x):
        return self.inner(x)


class _NaN(torch.nn.Linear):
    def forward(self, x):
        return super().forward(x) * torch.nan


class _Failing(torch.nn.Linear):
    """A network that works once."""

    def forward(self, x):
        if hasattr(self, "used"):
            raise RuntimeError("A network of the user's fails.")
        self.used = True
        return super().forward(x)


class _Rounding(FunctionTransformer):
    def transform(self, X):
        return np.round(X)[:, :1]


_ENCODERS = {
    "dp-pca": lambda: "dp-pca",
    "PrivatePCA": lambda: PrivatePCA(2),
    "bad PrivatePCA": lambda: PrivatePCA(-1),
    "share of 1": lambda: PrivatePCA(share=1.0),
    "identity": lambda: FunctionTransformer(),
    "both": lambda: [FunctionTransformer(), PrivatePCA(1)],
    "unfitted": lambda: StandardScaler(),
    "frozen, unfitted": lambda: FrozenEstimator(StandardScaler()),
    "frozen": lambda: FrozenEstimator(StandardScaler().fit(np.eye(3))),
    "raising": lambda: FunctionTransformer(_raising, _raising),
    "narrow": lambda: _Rounding(),
}
_NETWORKS = {
    "mlp": lambda: "mlp",
    "conv28": lambda: "conv28",
    "linear": lambda: torch.nn.Linear,
    "narrow": lambda: _Narrow,
    "NaN": lambda: _NaN,
    "failing": lambda: _Failing,
    "no parameters": lambda: lambda n_in, n_out: torch.nn.Flatten(),
    "a module": lambda: torch.nn.Linear(2, 2),
}
_BOUNDS = {
    "(0, 1)": lambda: (0, 1),
    "(-9, 9)": lambda: (-9, 9),
    "arrays": lambda: (np.zeros(3), np.ones(3)),
    "lists": lambda: [[0, 0, 0], [1, 1, 1]],
    "too many": lambda: (np.zeros(4), np.ones(4)),
    "reversed": lambda: (1, 0),
    "equal": lambda: (1, 1),
    "with NaN": lambda: (float("nan"), 1),
    "infinite": lambda: (0, float("inf")),
    "huge": lambda: (-1e308, 1e308),
    "tiny": lambda: (0, 5e-324),
    "of texts": lambda: ("0", "1"),
    "three": lambda: (0, 1, 2),
    "of objects": lambda: (None, 1),
    "nested": lambda: ([[0]], [[1]]),
    "complex": lambda: (0j, 1j),
    "bools": lambda: (False, True),
}
_CLASSES = {
    "[0, 1]": lambda: [0, 1],
    "texts": lambda: ["A", "B"],
    "range": lambda: range(3),
    "one": lambda: [0],
    "repeated": lambda: [0, 0],
    "mixed": lambda: [0, "A"],
    "with None": lambda: [None, 1],
    "with NaN": lambda: [np.nan, 1.0],
    "lists": lambda: [[0], [1]],
    "ragged": lambda: [[0], [1, 2]],
    "a set": lambda: {0, 1},
    "bools": lambda: [True, False],
    "dates": lambda: pd.to_datetime(["2020-01-01", "2020-01-02"]),
    "categorical": lambda: pd.Categorical(["A", "B"]),
    "floats": lambda: [0.0, 1.0],
    "big": lambda: [2**70, 1],
    "surrogates": lambda: ["\ud800", "\ud801"],
    "objects": lambda: [object(), object()],
}
_RELEASES = {
    **_SMALL,
    "laplace": lambda: "laplace",
    "gaussian": lambda: LocalNoise("gaussian"),
    "dct": lambda: LocalNoise(basis="dct", keep=0.5),
    "wrong": lambda: SliceSketch(-1),
    "nested": lambda: SliceSketch([1]),
    "fixed": lambda: SlicedRows(3, batch_size=99, n_steps=1, sampling="fixed"),
    "odd steps": lambda: SampledGradients(n_steps=True),
    "no clip": lambda: SampledGradients(n_steps=2, grad_clip=0),
    "huge clip": lambda: SampledGradients(n_steps=2, batch_size=4, grad_clip=1e15),
    "tiny clip": lambda: SampledGradients(n_steps=2, batch_size=4, grad_clip=1e-300),
    "parameters": lambda: SampledGradients(n_steps=2, batch_size=4, perturb="parameters"),
    "first phase": lambda: ForwardAggregates(2, 6, 2, budget_split=(0.2, 0.3, 0.5)),
    "bad split": lambda: ForwardAggregates(2, 6, budget_split=(np.nan, 0, 1)),
    "much": lambda: SlicedRows(6, batch_size=10**6, n_steps=2),
}
_SEEDS = {
    "RandomState": lambda: np.random.RandomState(0),
    "Generator": lambda: np.random.default_rng(0),
    "module": lambda: np.random,
    "2**70": lambda: 2**70,
    "3": lambda: 3,
}
_LOSSES = {
    "sinkhorn": lambda: "sinkhorn",
    "entropic": lambda: "entropic",
    "divergence": lambda: SinkhornDivergence(0.1),
    "own": lambda: EntropicWasserstein(0.5),
    "tiny reg": lambda: SemiDebiasedSinkhorn(reg=1e-12),
    "huge reg": lambda: SemiDebiasedSinkhorn(reg=1e12),
    "debiased": lambda: SemiDebiasedSinkhorn(n_debias=2),
    "bad debias": lambda: SemiDebiasedSinkhorn(n_debias=99),
}
_SAMPLERS = {
    "of another epsilon": lambda: _flow(epsilon=3.0),
    "of rows": lambda: _flow(release=_SMALL["rows"](), n_steps=None),
    "of a schema": lambda: _flow(schema=Schema({"a": {"type": "boolean"}})),
    "another": lambda: LDPEntropicGAN(),
}
_INITS = {
    "rows": lambda: np.zeros((6, 3)),
    "too wide": lambda: np.zeros((6, 5)),
    "NaN": lambda: np.full((6, 3), np.nan),
    "huge": lambda: np.full((6, 3), 1e308),
    "texts": lambda: np.full((6, 3), "a"),
    "pair": lambda: (np.zeros((6, 3)), np.arange(6) % 2),
    "frame": lambda: pd.DataFrame(np.zeros((6, 3)), columns=list("abc")),
    "empty": lambda: np.zeros((0, 3)),
}
_NUMBERS = {
    "0.1": lambda: 0.1,
    "3": lambda: 3,
    "5": lambda: 5.0,
    "1e-9": lambda: 1e-9,
    "1e14": lambda: 1e14,
    "1e-100": lambda: 1e-100,
}
# Values of a kind that fits, by the names of parameters.
_FITTING = {
    "epsilon": {**_NUMBERS, "1e6": lambda: 1e6, "1e-5": lambda: 1e-5},
    "delta": {"1e-3": lambda: 1e-3, "0.99": lambda: 0.99, "1e-30": lambda: 1e-30},
    "relation": {"replace_one": lambda: "replace_one"},
    "accountant": {"rdp": lambda: "rdp"},
    "bounds": _BOUNDS,
    "y_bounds": _BOUNDS,
    "classes": _CLASSES,
    "encoder": _ENCODERS,
    "network": _NETWORKS,
    "discriminator": _NETWORKS,
    "release": _RELEASES,
    "loss": _LOSSES,
    "random_state": _SEEDS,
    "sampler": _SAMPLERS,
    "init": _INITS,
    "mechanism": {"gaussian": lambda: "gaussian"},
    "basis": {"dct": lambda: "dct"},
    "image_shape": {
        "(1, 3)": lambda: (1, 3),
        "(3, 1, 1)": lambda: (3, 1, 1),
        "(0, 3)": lambda: (0, 3),
        "array": lambda: np.array([1, 3]),
        "(2, 2)": lambda: (2, 2),
        "'13'": lambda: "13",
    },
    "schema": {
        "private": lambda: "private",
        "of other columns": lambda: Schema({"z": {"type": "boolean"}}),
        "dict": lambda: {"a": {"type": "boolean"}},
    },
    "device": {
        "cpu": lambda: "cpu",
        "cuda": lambda: "cuda:7",
        "a device": lambda: torch.device("cpu"),
    },
    "strict": {"True": lambda: True},
    "verbose": {"1": lambda: 1},
    "optimizer": {"sgd": lambda: "sgd", "rmsprop": lambda: "rmsprop"},
}
# Fits of so much would take long, and a machine may have such devices.
_LEFT_OUT = {("device", "0"), ("device", "1"), ("device", "2"), ("device", "True")}


@dataclass(frozen=True)
class Estimator:
    """How an estimator is made: which, and values of parameters by what they are called."""

    maker: str
    changed: tuple = ()

    def make(self):
        return MAKERS[self.maker]().set_params(
            **{name: _choices(name)[called]() for name, called in self.changed}
        )


NESTED = frozenset(
    name
    for kind in (
        *(SliceSketch, SlicedRows, SampledGradients, ForwardAggregates, LocalNoise, PrivatePCA),
        *(SemiDebiasedSinkhorn, SinkhornDivergence, EntropicWasserstein),
    )
    for name in kind().get_params()
)


def _choices(name):
    return {**ODD, **_FITTING.get(name, _NUMBERS)}


@st.composite
def estimators(draw, makers=tuple(MAKERS), most=3, kept=()):
    """Draw an `Estimator` of which up to so many parameters are not at their defaults."""
    maker = draw(st.sampled_from(makers))
    names = sorted(set(MAKERS[maker]().get_params(deep=False)) - set(kept))
    most = draw(st.sampled_from((0, 0, 1, most)))
    chosen = draw(st.lists(st.sampled_from(names), unique=True, max_size=most))
    changed = []
    for name in chosen:
        # Wrong values hide each other; a refusal is one by the first.
        known = _FITTING.get(name, _NUMBERS)
        pool = ODD if draw(st.integers(0, 2)) == 0 else known
        called = draw(st.sampled_from([c for c in pool if (name, c) not in _LEFT_OUT]))
        changed.append((name, called))
    return Estimator(maker, tuple(changed))
