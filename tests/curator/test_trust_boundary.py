"""Who touches private rows? Only what is behind the door, and what `RecordFunction`s apply there.

Fits get data that note who reads them: array-likes before they are taken in, arrays and tensors
afterwards, and cells of tables. A touch belongs to the innermost function of skdpgen that is on the
stack. `skdpgen.transport` is arithmetic, and looked through as NumPy is. With ``strict=True`` the
source lets a format look for what is to be refused. Nothing is noted where only what is public is
asked for: the shape, the dtype, the number of rows, and names of columns, which `Dataset`,
`check_columns` and `check_dtypes` look at beforehand.
"""

import contextlib
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer

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
from skdpgen.curator import batches, dataset
from skdpgen.data import inputs
from skdpgen.encoders import PrivatePCA
from skdpgen.generators import DPHistorySampler
from skdpgen.preprocessing import DPPCA, LocalPrivatizer
from skdpgen.privacy import Curator, RecordFunction, SlicedRowsMechanism
from skdpgen.releases import ForwardAggregates, SampledGradients, SlicedRows
from skdpgen.testing.common import differ, fitted_state

pytestmark = pytest.mark.filterwarnings("ignore")

DOOR = "skdpgen.curator", "skdpgen.mechanisms", "skdpgen.histories.records"
DOOR += ("skdpgen.histories.mechanism",)
# Functions of one cell, frame or tensor touch what their callers give them.
FUNCTIONS, GROUND = "skdpgen.data.record_functions", ("skdpgen.data", "skdpgen.transport")
REFUSING = batches.RecordSource._refuse_bad.__code__
# Whether a fit is on, and its curator is closed; who has touched rows from outside; and how often
# rows were touched at all.
STATE = {"on": False, "closed": False, "touched": set(), "count": 0}


def note():
    """Note who touches a private row: the innermost function of skdpgen on the stack."""
    if not STATE["on"]:
        return
    STATE["count"] += 1
    frame, toucher = sys._getframe(1), None
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if toucher is None and name.startswith("skdpgen") and not name.startswith(GROUND):
            toucher = name, frame.f_code.co_name
        if name == FUNCTIONS or frame.f_code is REFUSING:
            break
        frame = frame.f_back
    is_outside = frame is None and not (toucher and toucher[0].startswith(DOOR))
    if STATE["closed"] or is_outside:
        STATE["touched"].add((*(toucher or ("elsewhere",)), "closed" * STATE["closed"]))


class Given:
    """An array-like of which nothing but what is public can be had unnoticed."""

    def __init__(self, values):
        self._values = np.asarray(values)
        self.shape, self.dtype, self.ndim = values.shape, values.dtype, values.ndim

    def __len__(self):
        return len(self._values)

    def __array__(self, dtype=None, copy=None):
        note()
        return self._values.astype(dtype or self.dtype)

    def __getitem__(self, where):
        note()
        return self._values[where]


def _plain(values):
    return np.asarray(values) if isinstance(values, WatchedArray) else values


class WatchedArray(np.ndarray):
    """An array that notes who computes with it."""

    def __array_finalize__(self, origin):
        if isinstance(origin, WatchedArray):
            note()

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        note()
        if "out" in kwargs:
            kwargs["out"] = tuple(map(_plain, kwargs["out"]))
        return _view(getattr(ufunc, method)(*map(_plain, inputs), **kwargs))

    def __array_function__(self, function, types, args, kwargs):
        note()
        return super().__array_function__(function, types, args, kwargs)


class GivenFrame(pd.DataFrame):
    """A DataFrame that notes who reads it; names, dtypes and its length are public."""

    def __array__(self, dtype=None, copy=None):
        note()
        return super().__array__(dtype)

    def to_numpy(self, *args, **kwargs):
        note()
        return super().to_numpy(*args, **kwargs)

    def __getitem__(self, key):
        note()
        return super().__getitem__(key)

    @property
    def iloc(self):
        note()
        return super().iloc

    @property
    def values(self):
        note()
        return super().values


class WatchedTensor(torch.Tensor):
    """A tensor that notes who computes with it, as do all that are computed from it."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        note()
        return super().__torch_function__(function, types, args, kwargs or {})


def _noting(method):
    def noted(*args):
        note()
        return method(*args)

    return noted


def cell_of(kind):
    """Return a class of cells that note who compares them, or computes with them."""
    names = ("__eq__", "__hash__", "__lt__", "__gt__", "__add__", "__radd__", "__sub__", "__mul__")
    names += ("__float__", "__int__", "__str__", "__getitem__")
    return type("Cell", (kind,), {n: _noting(getattr(kind, n)) for n in names if hasattr(kind, n)})


def _view(values):
    is_plain = isinstance(values, np.ndarray) and not isinstance(values, WatchedArray)
    return values.view(WatchedArray) if is_plain else values


@contextlib.contextmanager
def watched():
    """Have arrays and tensors of private rows noted, until the block is left."""
    hold, validate, encode = (
        dataset.Dataset._hold,
        inputs.validate_data,
        batches.RecordSource._encode,
    )
    open_, close = Curator.__init__, Curator.close

    def reading(self, name):
        # NumPy makes plain arrays of others without a word: to get hold of one is to touch it.
        if name in ("_held", "_arrays", "_chunks"):
            note()
        return object.__getattribute__(self, name)

    def validated(estimator, X, **kwargs):
        # Rows of a source, which are public, come as plain arrays.
        valid = validate(estimator, X, **kwargs)
        return _view(valid) if isinstance(X, Given | GivenFrame) else valid

    def held(self, X, y, *args):
        hold(self, _view(X), _view(y), *args)

    def encoded(self, *args):
        return tuple(part.as_subclass(WatchedTensor) for part in encode(self, *args))

    def opened(self, *args, **kwargs):
        open_(self, *args, **kwargs)
        STATE["closed"] = False

    def closed(self):
        close(self)
        STATE["closed"] = True

    STATE.update(on=True, closed=False, touched=set(), count=0)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(dataset.Dataset, "_hold", held)
            for holder in (dataset.Dataset, batches.RecordSource):
                patch.setattr(holder, "__getattribute__", reading)
            patch.setattr(inputs, "validate_data", validated)
            patch.setattr(batches.RecordSource, "_encode", encoded)
            patch.setattr(Curator, "__init__", opened)
            patch.setattr(Curator, "close", closed)
            yield
    finally:
        STATE["on"] = False


COMMON = {"epsilon": 4.0, "delta": 1e-3, "random_state": 0, "device": "cpu"}
NETWORK = COMMON | {"n_steps": 3}
BOX = {"bounds": (-1, 1), "classes": [0, 1]}
CLASSES = NETWORK | BOX
STEPS = COMMON | BOX
PCA = {"encoder": PrivatePCA(3)}
ROWS, GRADIENTS = SlicedRows(n_steps=3), SampledGradients(n_steps=3)
AGGREGATES = ForwardAggregates(n_steps=3, n_pretrain=2, budget_split=(0.2, 0.4, 0.4))
SCHEMA = Schema({"age": Number(0, 100, n_knots=4), "city": Category(["Graz", "Lyon"])})

# Fits to rows and labels.
LABELLED = {
    "sketch": DPSlicedWassersteinGenerator(**CLASSES),
    "sketch of components": DPSlicedWassersteinGenerator(**CLASSES, **PCA),
    "classes inferred": DPSlicedWassersteinGenerator(**NETWORK),
    "defaults": DPSWFlowSampler(**NETWORK, classes=[0, 1]),
    "radius open": DPSlicedWassersteinGenerator(**NETWORK, bounds=(-1, 1), classes=[0, 1]),
    "radius open after an encoder": DPSlicedWassersteinGenerator(
        **NETWORK, encoder=FunctionTransformer(), classes=[0, 1]
    ),
    "strict": DPSlicedWassersteinGenerator(**CLASSES, strict=True),
    "rows": DPSlicedWassersteinGenerator(**STEPS, release=ROWS),
    "rows of components": DPSlicedWassersteinGenerator(**STEPS, release=ROWS, **PCA),
    "particles": DPSWFlowSampler(**CLASSES),
    "resampled": DPSWFlowSampler(**STEPS, release=ROWS, **PCA),
    "presampled": DPSWFlowSampler(**CLASSES, release="presample"),
    "gradients": DPSinkhornGenerator(**STEPS, release=GRADIENTS, **PCA),
    "gradients in weights": DPSinkhornGenerator(
        **STEPS, release=SampledGradients(n_steps=3, perturb="parameters")
    ),
    "aggregates": DPAFGenerator(**STEPS, release=AGGREGATES),
    "noised rows": LDPEntropicGAN(**CLASSES),
    "noised by Gaussians": LDPEntropicGAN(**CLASSES, release="gaussian"),
}
# Fits to rows, with a number beside them or without.
NUMBERS = {
    "sketch": DPSlicedWassersteinGenerator(**NETWORK),
    "aggregates": DPAFGenerator(**COMMON, release=ForwardAggregates(n_steps=3)),
    "noised rows": LDPEntropicGAN(**NETWORK),
}
TABLES = {
    "tables": DPSlicedWassersteinGenerator(**NETWORK, schema=SCHEMA),
    "rows": DPSlicedWassersteinGenerator(**COMMON, schema=SCHEMA, release=ROWS),
    "inferred": DPSWFlowSampler(**NETWORK, schema="private"),
    "strict": DPSlicedWassersteinGenerator(**NETWORK, schema=SCHEMA, strict=True),
    "gradients": DPSinkhornGenerator(**COMMON, schema=SCHEMA, release=GRADIENTS),
}
# Samples are drawn from rows in memory.
IN_CHUNKS = ["tables", "inferred", "strict"]


def make_rows():
    rng = np.random.RandomState(0)
    return rng.normal(scale=0.4, size=(60, 4)), np.arange(60) % 2


def make_table(number=float, text=str):
    rng = np.random.RandomState(0)
    ages, cities = rng.uniform(20, 80, 300).tolist(), rng.choice(["Graz", "Lyon"], 300).tolist()
    columns = {"age": map(number, ages), "city": map(text, cities)}
    return pd.DataFrame({name: pd.Series(list(c), dtype=object) for name, c in columns.items()})


def check(estimator, fit, given, plain):
    """Fail if anybody outside touches rows, or if watching them changes what comes out."""
    expected = fit(clone(estimator), *plain)
    with watched():
        found = fit(clone(estimator), *given)
    assert STATE["count"] > 0, "The check has seen nothing."
    assert not STATE["touched"]
    states = [fitted_state(fitted) for fitted in (expected, found)]
    for state in states:
        if state.get("target_sampler_"):
            state.update(fitted_state(state.pop("target_sampler_")))
    assert not differ(*states)
    if hasattr(expected, "sample"):
        made = [fitted.sample(9, random_state=0) for fitted in (expected, found)]
        assert not differ(*made)


def fit(estimator, *data):
    return estimator.fit(*data)


def given(*data):
    return [None if values is None else Given(values) for values in data]


@pytest.mark.parametrize("name", LABELLED)
def test_rows_and_labels_are_touched_behind_the_door_only(name):
    X, y = make_rows()
    check(LABELLED[name], fit, given(X, y), (X, y))


@pytest.mark.parametrize("name", ["sketch", "particles"])
def test_identifiers_are_touched_behind_the_door_only(name):
    X, y = make_rows()

    def fit_persons(estimator, X, y, persons):
        return estimator.fit(X, y, persons=persons)

    data = X, y, np.arange(60) // 2
    check(LABELLED[name], fit_persons, given(*data), data)


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("has_number", [False, True])
def test_rows_and_numbers_are_touched_behind_the_door_only(name, has_number):
    X, y = make_rows()
    y = y.astype(float) if has_number else None
    check(NUMBERS[name], fit, given(X, y), (X, y))


@pytest.mark.parametrize("name", ["defaults", "radius open", "rows"])
def test_frames_are_touched_behind_the_door_only(name):
    X, y = make_rows()
    plain = pd.DataFrame(X, columns=list("abcd"))
    check(LABELLED[name], fit, [GivenFrame(plain), Given(y)], (plain, y))


@pytest.mark.parametrize(
    ("name", "as_chunks"), [*((n, False) for n in TABLES), *((n, True) for n in IN_CHUNKS)]
)
def test_cells_of_tables_are_touched_behind_the_door_only(name, as_chunks):
    plain, table = make_table(), make_table(cell_of(float), cell_of(str))

    def chunks():
        note()
        return iter([table[:200], table[200:]])

    parts = lambda: iter([plain[:200], plain[200:]])  # noqa: E731
    check(TABLES[name], fit, *(([chunks], [parts]) if as_chunks else ([table], [plain])))


@pytest.mark.parametrize("order", ["age", None])
def test_histories_are_touched_behind_the_door_only(order):
    """Cells of both tables, and their identifiers."""

    def fit_histories(sampler, persons, rows):
        return sampler.fit({"a": persons, "b": rows}, persons="id", order=order)

    def make_both(*cells):
        table = make_table(*cells)
        n = len(table)
        return [table.assign(id=np.arange(n)), table.assign(id=np.arange(n) // 3)]

    sampler = DPHistorySampler(n_steps=2, n_particles=20, max_rows_per_person=2, random_state=0)
    check(sampler, fit_histories, make_both(cell_of(float), cell_of(str)), make_both())


def test_target_rows_are_touched_behind_the_door_only():
    X, y = make_rows()

    def adapt(adapter, X_target):
        return adapter.fit(X, y, X_target=X_target)

    check(DPSWDDomainAdapter(**NETWORK), adapt, given(X[::-1].copy()), [X[::-1].copy()])


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("bounds", [(-1, 1), None])
def test_rows_of_components_are_touched_behind_the_door_only(strict, bounds):
    X, _ = make_rows()
    check(DPPCA(n_components=2, **COMMON, bounds=bounds, strict=strict), fit, given(X), [X])


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_rows_that_are_noised_are_touched_behind_the_door_only(mechanism):
    X, y = make_rows()

    def privatize(privatizer, X, y):
        privatizer.fit(X)
        privatizer.noised_ = privatizer.privatize(X, y)
        return privatizer

    privatizer = LocalPrivatizer(
        mechanism=mechanism, classes=[0, 1], bounds=(-1, 1), random_state=0
    )
    check(privatizer, privatize, given(X, y), (X, y))


# Estimators that look, each in its own way: the check must find them all.


class LooksAtWhatItIsGiven(DPSlicedWassersteinGenerator):
    def _fit(self, X, y, target, persons):
        X[0]
        return super()._fit(X, y, target, persons)


class MeasuresBeforehand(DPSlicedWassersteinGenerator):
    def _plan(self, terms, format):
        given = sys._getframe(2).f_locals["dataset"]
        given._held[0][0].mean(axis=0)
        return super()._plan(terms, format)


class ReadsTheSource(DPSlicedWassersteinGenerator):
    def _learn(self, curator, format, noise):
        np.clip(curator._source._arrays[0], -1, 1)
        super()._learn(curator, format, noise)


class ReadsBlocks(DPSlicedWassersteinGenerator):
    def _learn(self, curator, format, noise):
        for rows, _ in curator._source.blocks("mine"):
            rows.sum()
        super()._learn(curator, format, noise)


class AppliesFunctionsItself(DPSlicedWassersteinGenerator):
    def _learn(self, curator, format, noise):
        format.encode(curator._source._arrays[0])
        super()._learn(curator, format, noise)


class KeepsWhatAFunctionSees(DPSWFlowSampler):
    def _learn_rows(self, release, curator, format, noise):
        kept = []
        encode = RecordFunction(lambda rows: kept.append(rows) or rows)
        curator.release(SlicedRowsMechanism(format.n_columns, curator.n_classes, encode))
        kept[-1].mean()
        return super()._learn_rows(release, curator, format, noise)


class LooksWhenAllIsReleased(DPSlicedWassersteinGenerator):
    def _learn(self, curator, format, noise):
        held = curator._source
        super()._learn(curator, format, noise)
        curator.close()
        held.take([0, 1])


@pytest.mark.parametrize(
    "flawed",
    [
        LooksAtWhatItIsGiven(**CLASSES),
        MeasuresBeforehand(**CLASSES),
        ReadsTheSource(**CLASSES),
        ReadsBlocks(**CLASSES),
        AppliesFunctionsItself(**CLASSES),
        KeepsWhatAFunctionSees(**STEPS, release=ROWS),
        LooksWhenAllIsReleased(**CLASSES),
    ],
    ids=lambda flawed: type(flawed).__name__,
)
def test_who_looks_is_found(flawed):
    X, y = make_rows()
    with watched(), contextlib.suppress(Exception):
        flawed.fit(*given(X, y))
    assert STATE["touched"]


def test_who_looks_at_a_frame_is_found():
    X, y = make_rows()
    with watched(), contextlib.suppress(Exception):
        LooksAtWhatItIsGiven(**CLASSES).fit(GivenFrame(X, columns=[0, 1, 2, 3]), Given(y))
    assert STATE["touched"]
