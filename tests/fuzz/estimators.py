"""Estimators of tiny fits, and values of parameters: usual, odd and wrong."""

# ruff: noqa: F401 (expressions use the names)

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

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


def evaluate(expression):
    """Return a value of a case, made anew; cases hold expressions, which a failure prints."""
    return eval(expression, globals())


def expressions(text):
    """Return the expressions of a text, with bars between them."""
    return tuple(" ".join(text.split()).split(" | "))


ODD = expressions("""
    None | "" | "none" | "\\ud800" | b"auto" | np.nan | np.inf | -np.inf | -1 | 0 | -0.0 | 1 | 2
    | 0.5 | 1e-300 | 1e308 | 10**400 | True | np.bool_(True) | np.float32(0.5) | np.int64(2)
    | np.uint8(2) | np.longdouble(0.5) | np.float64("nan") | np.str_("auto") | Decimal("0.5")
    | Fraction(1, 2) | 1j | [] | () | {} | [None] | object() | np.array(1.0) | np.array([1.0, 2.0])
    | np.array(["a", "b"]) | pd.DataFrame({"a": [1]}) | torch.tensor([1.0, 2.0]) | pd.NA | pd.NaT
    | lambda *args: None | _raising | dict | PrivatePCA() | SliceSketch | DPSWFlowSampler()
    | iter([0, 1])
""")


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


_NETWORKS = expressions("""
    "mlp" | "conv28" | torch.nn.Linear | _Narrow | _NaN | _Failing
    | lambda n_in, n_out: torch.nn.Flatten() | torch.nn.Linear(2, 2)
""")
_BOUNDS = expressions("""
    (0, 1) | (-9, 9) | (np.zeros(3), np.ones(3)) | [[0, 0, 0], [1, 1, 1]]
    | (np.zeros(4), np.ones(4)) | (1, 0) | (1, 1) | (np.nan, 1) | (0, np.inf) | (-1e308, 1e308)
    | (0, 5e-324) | ("0", "1") | (0, 1, 2) | (None, 1) | ([[0]], [[1]]) | (0j, 1j) | (False, True)
""")
_NUMBERS = expressions("0.1 | 3 | 5.0 | 1e-9 | 1e14 | 1e-100")
# Values of a kind that fits, by the names of parameters.
_FITTING = {
    "epsilon": (*_NUMBERS, "1e6", "1e-5"),
    "delta": ("1e-3", "0.99", "1e-30"),
    "relation": ('"replace_one"',),
    "accountant": ('"rdp"',),
    "bounds": _BOUNDS,
    "y_bounds": _BOUNDS,
    "classes": expressions("""
        [0, 1] | ["A", "B"] | range(3) | [0] | [0, 0] | [0, "A"] | [None, 1] | [np.nan, 1.0]
        | [[0], [1]] | [[0], [1, 2]] | {0, 1} | [True, False] | [0.0, 1.0] | [2**70, 1]
        | pd.to_datetime(["2020-01-01", "2020-01-02"]) | pd.Categorical(["A", "B"])
        | ["\\ud800", "\\ud801"] | [object(), object()]
    """),
    "encoder": expressions("""
        "dp-pca" | PrivatePCA(2) | PrivatePCA(-1) | PrivatePCA(share=1.0) | FunctionTransformer()
        | [FunctionTransformer(), PrivatePCA(1)] | StandardScaler()
        | FrozenEstimator(StandardScaler()) | FrozenEstimator(StandardScaler().fit(np.eye(3)))
        | FunctionTransformer(_raising, _raising) | _Rounding()
    """),
    "network": _NETWORKS,
    "discriminator_layers": _NETWORKS,
    "release": expressions("""
        _SMALL["sketch"]() | _SMALL["rows"]() | _SMALL["gradients"]() | _SMALL["aggregates"]()
        | "laplace" | LocalNoise("gaussian") | LocalNoise(basis="dct", keep=0.5) | SliceSketch(-1)
        | SliceSketch([1]) | SlicedRows(3, batch_size=99, n_steps=1, sampling="fixed")
        | SampledGradients(n_steps=True) | SampledGradients(n_steps=2, grad_clip=0)
        | SampledGradients(n_steps=2, batch_size=4, grad_clip=1e15)
        | SampledGradients(n_steps=2, batch_size=4, grad_clip=1e-300)
        | SampledGradients(n_steps=2, batch_size=4, perturb="parameters")
        | ForwardAggregates(2, 6, 2, budget_split=(0.2, 0.3, 0.5))
        | ForwardAggregates(2, 6, budget_split=(np.nan, 0, 1))
        | SlicedRows(6, batch_size=10**6, n_steps=2)
    """),
    "loss": expressions("""
        "sinkhorn" | "entropic" | SinkhornDivergence(0.1) | EntropicWasserstein(0.5)
        | SemiDebiasedSinkhorn(reg=1e-12) | SemiDebiasedSinkhorn(reg=1e12)
        | SemiDebiasedSinkhorn(n_debias=2) | SemiDebiasedSinkhorn(n_debias=99)
    """),
    "random_state": expressions("""
        np.random.RandomState(0) | np.random.default_rng(0) | np.random | 2**70 | 3
    """),
    "sampler": expressions("""
        _flow(epsilon=3.0) | _flow(release=_SMALL["rows"](), n_steps=None)
        | _flow(schema=Schema({"a": {"type": "boolean"}})) | LDPEntropicGAN()
    """),
    "init": expressions("""
        np.zeros((6, 3)) | np.zeros((6, 5)) | np.full((6, 3), np.nan) | np.full((6, 3), 1e308)
        | np.full((6, 3), "a") | (np.zeros((6, 3)), np.arange(6) % 2)
        | pd.DataFrame(np.zeros((6, 3)), columns=list("abc")) | np.zeros((0, 3))
    """),
    "mechanism": ('"gaussian"',),
    "basis": ('"dct"',),
    "image_shape": expressions('(1, 3) | (3, 1, 1) | (0, 3) | np.array([1, 3]) | (2, 2) | "13"'),
    "schema": expressions("""
        "private" | Schema({"z": {"type": "boolean"}}) | {"a": {"type": "boolean"}}
    """),
    "device": ('"cpu"', '"cuda:7"', 'torch.device("cpu")'),
    "strict": ("True",),
    "verbose": ("1",),
    "optimizer": ('"sgd"', '"rmsprop"'),
}
# Fits of so much would take long, and a machine may have such devices.
_LEFT_OUT = {("device", "0"), ("device", "1"), ("device", "2"), ("device", "True")}


@dataclass(frozen=True)
class Estimator:
    """How an estimator is made: which, and expressions of parameters."""

    maker: str
    changed: tuple = ()

    def make(self):
        return MAKERS[self.maker]().set_params(
            **{name: evaluate(value) for name, value in self.changed}
        )


NESTED = frozenset(
    name
    for kind in (
        *(SliceSketch, SlicedRows, SampledGradients, ForwardAggregates, LocalNoise, PrivatePCA),
        *(SemiDebiasedSinkhorn, SinkhornDivergence, EntropicWasserstein),
    )
    for name in kind().get_params()
)


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
        value = draw(st.sampled_from([v for v in pool if (name, v) not in _LEFT_OUT]))
        changed.append((name, value))
    return Estimator(maker, tuple(changed))
