"""Releases and samples of small fits are, bit for bit, what they were.

A change of the design alone leaves every digest as it is. One that is meant to change results
writes new ones, by ``python tests/test_golden.py``, and says which and why. Floating point differs
between processors and versions: elsewhere than where the digests were written nothing is compared.
"""

import dataclasses
import hashlib
import json
import platform
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy
import sklearn
import torch
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.frozen import FrozenEstimator
from threadpoolctl import threadpool_limits

from skdpgen import (
    Category,
    DPAFGenerator,
    DPSinkhornGenerator,
    DPSlicedWassersteinGenerator,
    DPSWDDomainAdapter,
    DPSWFlowSampler,
    LDPEntropicGAN,
    Number,
    Schema,
)
from skdpgen.curator.curator import intercept_releases
from skdpgen.encoders import PrivatePCA
from skdpgen.preprocessing import DPPCA, LocalPrivatizer, LowFrequencies
from skdpgen.releases import ForwardAggregates, SampledGradients, SlicedRows

DIGESTS = Path(__file__).with_name("golden.json")
COMMON = {"epsilon": 4.0, "delta": 1e-4, "random_state": 0, "device": "cpu"}
LOCAL = {**COMMON, "bounds": (0, 8), "classes": [0, 1, 2]}
DIGITS = {**COMMON, "bounds": (0, 16), "classes": range(10), "clip_norm": 1.0}
# Rows as they are, whatever defaults are.
PLAIN = {"clip_norm": 1.0, "encoder": None}
IRIS = {**LOCAL, **PLAIN}
SCHEMA = {
    "alcohol": Number(10, 16, n_knots=6),
    "magnesium": Number(70, 170, n_knots=5, decimals=0),
    "kind": Category(["a", "b", "c"]),
}


def _table():
    wine = load_wine(as_frame=True)
    table = wine.data[["alcohol", "magnesium"]].assign(kind=np.array(list("abc"))[wine.target])
    return pd.concat([table] * 3, ignore_index=True)


def _fit_iris(estimator):
    return estimator.fit(*load_iris(return_X_y=True))


def _fit_digits(estimator):
    X, y = load_digits(return_X_y=True)
    return estimator.fit(X[:600], y[:600])


def _fit_table(estimator):
    return estimator.fit(_table(), target="kind")


def _fit_number(estimator):
    X, _ = load_iris(return_X_y=True)
    return estimator.fit(X[:, :3], X[:, 3])


def _sketch_of_iris():
    return _fit_iris(DPSlicedWassersteinGenerator(**IRIS, n_steps=40))


def _sketch_of_components():
    return _fit_digits(DPSlicedWassersteinGenerator(**DIGITS, encoder=PrivatePCA(8), n_steps=30))


def _sketch_of_a_table():
    return _fit_table(DPSlicedWassersteinGenerator(**COMMON, schema=Schema(SCHEMA), n_steps=30))


def _sketch_with_a_number():
    return _fit_number(
        DPSlicedWassersteinGenerator(**COMMON, **PLAIN, bounds=(0, 8), y_bounds=(0, 3), n_steps=20)
    )


def _rows_of_digits():
    return _fit_digits(
        DPSlicedWassersteinGenerator(
            **DIGITS, release=SlicedRows(n_steps=12, batch_size=60), encoder=PrivatePCA(6)
        )
    )


def _particles_from_rows():
    X, _ = load_digits(return_X_y=True)
    encoder = FrozenEstimator(LowFrequencies(4).fit(np.zeros((1, 64))))
    return _fit_digits(
        DPSWFlowSampler(**DIGITS, n_steps=40, init=X[600:700], encoder=[encoder, PrivatePCA(5)])
    )


def _particles_of_a_table():
    return _fit_table(DPSWFlowSampler(**COMMON, schema="private", n_steps=30, n_particles=200))


def _flow_along_fresh_rows():
    release = SlicedRows(n_steps=10, sampling="fixed")
    return _fit_iris(DPSWFlowSampler(**IRIS, relation="replace_one", release=release))


def _flow_along_the_same_rows():
    return _fit_iris(DPSWFlowSampler(**IRIS, release="presample", n_steps=30, n_particles=120))


def _noisy_gradients():
    return _fit_digits(
        DPSinkhornGenerator(**DIGITS, release=SampledGradients(n_steps=15), encoder=PrivatePCA(6))
    )


def _noisy_gradients_of_a_table():
    return _fit_table(
        DPSinkhornGenerator(
            **COMMON,
            schema=Schema(SCHEMA),
            release=SampledGradients(n_steps=10, perturb="parameters"),
        )
    )


def _noisy_aggregates():
    return _fit_digits(
        DPAFGenerator(
            **DIGITS, release=ForwardAggregates(8, n_pretrain=4, budget_split=(0.2, 0.2, 0.6))
        )
    )


def _noised_rows():
    return _fit_iris(LDPEntropicGAN(**LOCAL, n_steps=20))


def _noised_rows_with_a_number():
    return _fit_number(
        LDPEntropicGAN(**COMMON, release="gaussian", bounds=(0, 8), y_bounds=(0, 3), n_steps=20)
    )


def _domains():
    X, y = load_digits(return_X_y=True)
    return X[:400], y[:400], X[400:800, ::-1].copy()


def _adapter():
    X, y, X_target = _domains()
    return DPSWDDomainAdapter(**COMMON, n_steps=30).fit(X, y, X_target=X_target)


def _principal_components():
    X, _ = load_digits(return_X_y=True)
    return DPPCA(n_components=4, bounds=(0, 16), clip_norm=1.0, **COMMON).fit(X)


def _privatizer():
    X, _ = load_iris(return_X_y=True)
    return LocalPrivatizer(mechanism="laplace", epsilon=4.0, bounds=(0, 8), random_state=0).fit(X)


FITS = {
    fit.__name__.strip("_"): fit
    for fit in (
        _sketch_of_iris,
        _sketch_of_components,
        _sketch_of_a_table,
        _sketch_with_a_number,
        _rows_of_digits,
        _particles_from_rows,
        _particles_of_a_table,
        _flow_along_fresh_rows,
        _flow_along_the_same_rows,
        _noisy_gradients,
        _noisy_gradients_of_a_table,
        _noisy_aggregates,
        _noised_rows,
        _noised_rows_with_a_number,
        _adapter,
        _principal_components,
        _privatizer,
    )
}


def _made_by(estimator):
    """Return what a fitted estimator makes: samples, or rows that it maps."""
    if hasattr(estimator, "sample"):
        return estimator.sample(25, random_state=1)
    X = load_iris().data if estimator.n_features_in_ == 4 else load_digits().data
    return estimator.transform(X[:25])


def _update(digest, value):
    """Add the numbers of anything to a digest."""
    if isinstance(value, dict):
        value = [part for item in value.items() for part in item]
    if dataclasses.is_dataclass(value):
        value = [getattr(value, field.name) for field in dataclasses.fields(value)]
    if isinstance(value, pd.DataFrame | pd.Series):
        value = value.to_csv()
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, list | tuple):
        for part in value:
            _update(digest, part)
    elif isinstance(value, np.ndarray) and value.dtype != object:
        digest.update(f"{value.dtype} {value.shape}".encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    else:
        digest.update(repr(value).encode())


def _digest(*values):
    digest = hashlib.sha256()
    _update(digest, values)
    return digest.hexdigest()[:16]


def _run(name):
    """Return the digests of what a fit releases, of what it makes, and of what it costs."""
    released = []

    def record(curator, mechanism, release):
        released.append(release(mechanism))
        return released[-1]

    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with intercept_releases(record), threadpool_limits(1):
            estimator = FITS[name]()
            made = _made_by(estimator)
    finally:
        torch.set_num_threads(n_threads)
    return {
        "releases": _digest(*released),
        "samples": _digest(made),
        "cost": _digest(estimator.epsilon_, estimator.sigma_),
    }


def _machine():
    """Return what floating point depends on."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    # One name covers processors, and virtual machines, with different instructions.
    names = ("model name", "stepping", "flags", "Features")
    facts = [next((line for line in lines if line.startswith(name)), "") for name in names]
    facts += [platform.processor(), torch.backends.cpu.get_cpu_capability()]
    versions = {module.__name__: module.__version__ for module in (np, scipy, sklearn, torch)}
    return {"processor": hashlib.sha256(repr(facts).encode()).hexdigest(), **versions}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FITS)
def test_a_fit_gives_what_it_gave(name):
    golden = json.loads(DIGESTS.read_text())
    if golden["machine"] != _machine():
        pytest.skip("The digests were written on another machine.")
    assert _run(name) == golden[name]


if __name__ == "__main__":
    digests = {"machine": _machine(), **{name: _run(name) for name in FITS}}
    DIGESTS.write_text(json.dumps(digests, indent=1) + "\n")
