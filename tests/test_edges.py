"""At the edges: what is refused before anything is spent, and what a failure after that says."""

import contextlib
import sys
import traceback
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.preprocessing import FunctionTransformer

import skdpgen
from skdpgen import (
    DPAFGenerator,
    DPSinkhornGenerator,
    DPSlicedWassersteinGenerator,
    DPSWDDomainAdapter,
    DPSWFlowSampler,
    LDPEntropicGAN,
    PrivacyBudget,
    load,
)
from skdpgen.losses import SemiDebiasedSinkhorn
from skdpgen.preprocessing import DPPCA, LocalPrivatizer
from skdpgen.privacy import Curator, SpentError
from skdpgen.releases import (
    ForwardAggregates,
    SampledGradients,
    SlicedRows,
    SliceSketch,
)
from skdpgen.tables import Category, Number, Schema

N_STEPS = {"n_steps": 3, "random_state": 0}
# Where steps are those of the release.
RELEASES = {
    DPSinkhornGenerator: SampledGradients(n_steps=3),
    DPAFGenerator: ForwardAggregates(n_steps=3, budget_split=(0, 0.5, 0.5)),
}


@pytest.fixture
def X():
    return np.random.RandomState(0).normal(size=(60, 3))


@pytest.fixture
def y():
    return np.arange(60) % 2


def make_table(n=300):
    rng = np.random.RandomState(0)
    return pd.DataFrame({"s": np.where(rng.rand(n) < 0.5, "F", "M"), "a": rng.randint(0, 2, n)})


SCHEMA = Schema({"s": Category(["F", "M"]), "a": Number(0, 1)})


@pytest.fixture(scope="module")
def table_generator():
    return DPSlicedWassersteinGenerator(
        20.0, schema=SCHEMA, n_steps=100, batch_size=400, random_state=0
    ).fit(make_table(), target="s")


# Before anything is released.


@pytest.mark.parametrize(
    ("estimator", "params", "message"),
    [
        (DPSlicedWassersteinGenerator, {"learning_rate": 1e300}, "learning_rate must be at most"),
        (DPSWFlowSampler, {"learning_rate": 1e300}, "learning_rate must be at most"),
        (
            DPSWFlowSampler,
            {"release": SlicedRows(n_steps=3), "n_steps": None, "diffusion": 1e300},
            "diffusion must be at most",
        ),
        (DPSinkhornGenerator, {"learning_rate": 1e300}, "learning_rate must be at most"),
        (
            DPSinkhornGenerator,
            {"loss": SemiDebiasedSinkhorn(l1_weight=1e300)},
            "l1_weight must be at most",
        ),
        (
            DPSinkhornGenerator,
            {"loss": SemiDebiasedSinkhorn(label_weight=1e300)},
            "label_weight must be at most",
        ),
        (DPAFGenerator, {"learning_rate": 1e300}, "learning_rate must be at most"),
        (LDPEntropicGAN, {"learning_rate": 1e300}, "learning_rate must be at most"),
        (LDPEntropicGAN, {"batch_size": 1}, "batch_size must be at least 2: batches are"),
        (
            DPSlicedWassersteinGenerator,
            {"release": SliceSketch(10**7)},
            "n_projections is too large",
        ),
        (DPSlicedWassersteinGenerator, {"batch_size": 10**8}, "batch_size is too large"),
        (
            DPSlicedWassersteinGenerator,
            {"release": SlicedRows(10**7, batch_size=60, n_steps=3), "n_steps": None},
            "n_projections is too large",
        ),
        (DPSWFlowSampler, {"n_particles": 10**9}, "n_particles is too large"),
        (
            DPSinkhornGenerator,
            {"release": SampledGradients(n_generated=10**6)},
            "n_generated is too large",
        ),
        (LDPEntropicGAN, {"batch_size": 10**6}, "batch_size is too large"),
        (LDPEntropicGAN, {"image_shape": 1.0}, r"image_shape must be \(height, width\)"),
        (DPSlicedWassersteinGenerator, {"accountant": []}, "accountant must be one of"),
        (DPSlicedWassersteinGenerator, {"relation": {}}, "relation must be one of"),
    ],
)
def test_sizes_and_ranges_are_checked_before_a_release(X, estimator, params, message):
    always = {"release": RELEASES[estimator]} if estimator in RELEASES else N_STEPS
    with mock.patch.object(Curator, "release", side_effect=AssertionError("Released.")):
        with pytest.raises(ValueError, match=message):
            estimator(**{**always, **params}).fit(X)


def test_tables_and_rows_of_too_many_columns():
    kinds = {name: Category([str(i) for i in range(12_000)]) for name in "ab"}
    message = r"2 columns of 24,000 levels .* 4 GiB of memory.* noise of about ±\d+ records"
    with mock.patch.object(Curator, "__init__", side_effect=AssertionError("Opened.")):
        for make in (DPSlicedWassersteinGenerator, DPSWFlowSampler):
            with pytest.raises(ValueError, match=message):
                make(schema=Schema(kinds), n_steps=2).fit(pd.DataFrame({"a": ["1"], "b": ["2"]}))
    wide = np.zeros((2, 20_000), dtype=np.float32)
    with pytest.raises(ValueError, match="X is too large"):
        DPPCA(delta=1e-6).fit(wide)
    with pytest.raises(ValueError, match="X is too large"):
        DPSlicedWassersteinGenerator(encoder="dp-pca", n_steps=2).fit(wide)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"sampler": DPSWFlowSampler(encoder=5)}, "encoder must be None, one of"),
        ({"align_weight": 1e300}, "align_weight must be at most"),
        ({"class_align_weight": 1e300}, "class_align_weight must be at most"),
    ],
)
def test_parameters_of_the_adapter(X, y, params, message):
    with pytest.raises(ValueError, match=message):
        DPSWDDomainAdapter(n_steps=3, **params).fit(X, y, X_target=X)


# After a release.


@pytest.mark.parametrize(
    "generator",
    [
        DPSlicedWassersteinGenerator(learning_rate=1e15, n_steps=10),
        DPSinkhornGenerator(learning_rate=1e15, release=SampledGradients(n_steps=20)),
        DPAFGenerator(
            learning_rate=1e14,
            release=ForwardAggregates(n_steps=10, budget_split=(0, 0.5, 0.5)),
        ),
    ],
    ids=lambda generator: type(generator).__name__,
)
def test_divergence_is_refused_and_says_what_was_spent(X, generator):
    with pytest.raises(SpentError, match=r"Until then ε = \S+ at δ = 1e-05 was spent, on: "):
        generator.set_params(random_state=0, clip_norm=1.0, bounds=(-9, 9)).fit(X)
    assert not hasattr(generator, "privacy_")


def test_weights_that_are_not_finite_never_make_samples(X):
    generator = DPSlicedWassersteinGenerator(**N_STEPS).fit(X)
    with torch.no_grad():
        next(generator._rows.network.parameters()).fill_(np.nan)
    with pytest.raises(ValueError, match="diverged"):
        generator.sample(3)


# Samples.


def test_fitted_state_is_sampled_whatever_is_set_since(X, table_generator):
    rows = DPSlicedWassersteinGenerator(**N_STEPS).fit(X)
    expected, score = rows.sample(5), rows.score(X)
    rows.set_params(schema=SCHEMA)
    assert_array_equal(rows.sample(5), expected)
    assert rows.score(X) == score
    expected, score = table_generator.sample(5), table_generator.score(make_table())
    table_generator.set_params(schema=None)
    try:
        pd.testing.assert_frame_equal(table_generator.sample(5), expected)
        assert table_generator.score(make_table()) == score
    finally:
        table_generator.set_params(schema=SCHEMA)


def test_bounds_are_copied(X, y):
    lower, upper = np.full(3, -2.0), np.full(3, 2.0)
    generator = DPSlicedWassersteinGenerator(bounds=(lower, upper), **N_STEPS).fit(X)
    privatizer = LocalPrivatizer(bounds=(lower, upper)).fit(X)
    expected, ones = generator.sample(5), np.ones((1, 3))
    inverse = privatizer.inverse_transform(ones)
    lower[:], upper[:] = 50, 60
    assert_array_equal(generator.sample(5), expected)
    assert_array_equal(privatizer.inverse_transform(ones), inverse)


def test_empty_chunks_are_passed_over():
    table = make_table()
    generator = DPSlicedWassersteinGenerator(schema=SCHEMA, **N_STEPS)
    expected = generator.fit(table).sample(5)
    empty = table.iloc[:0]
    for pieces in ([empty, table], [table.iloc[:7], empty, table.iloc[7:], empty]):
        generator.fit(lambda pieces=pieces: iter(pieces))
        assert_allclose(generator.sample(5)["a"], expected["a"], atol=1)
        assert generator.n_samples_ == len(table)
    with pytest.raises(ValueError, match="no rows"):
        generator.fit(lambda: iter([empty]))


@pytest.mark.parametrize("classes", [None, [0, 1], np.array([0, 1], dtype=">i2")])
@pytest.mark.filterwarnings("ignore::skdpgen.privacy.PrivacyLeakWarning")
def test_labels_in_any_byte_order(X, y, classes):
    generator = DPSlicedWassersteinGenerator(classes=classes, **N_STEPS)
    _, expected = generator.fit(X, y).sample(9)
    _, drawn = generator.fit(X.astype(">f8"), y.astype(">i8")).sample(9)
    assert_array_equal(drawn, expected)
    assert_array_equal(generator.sample(y=np.array([1, 0], dtype=">i4"))[1], [1, 0])
    if classes is not None:
        _, noised = LocalPrivatizer(classes=classes).fit(X).privatize(X, y.astype(">i8"))
        assert set(noised) == {0, 1}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_projections_of_the_largest_floats_are_finite(dtype):
    X = np.full((10, 3), np.finfo(dtype).max, dtype=dtype)
    X[::2] *= -1
    rows = DPPCA(delta=1e-3, random_state=0).fit(X).transform(X)
    assert rows.dtype == dtype
    assert np.isfinite(rows).all()


# Errors: what they keep, and what they say.


def find_kept(error):
    """Return the names of variables of our frames that an error keeps, but for arguments of ours.

    The first frame of ours is called by the test, and has what it was given.
    """
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    # By the package's own folder: a clone may be called like it, with tests and packages inside.
    package = Path(skdpgen.__file__).parent
    ours = [frame for frame in frames if package in Path(frame.f_code.co_filename).parents]
    first = next(i for i, frame in enumerate(ours) if frame.f_code.co_name != "inner")
    return [name for frame in ours[first + 1 :] for name in frame.f_locals]


@pytest.mark.catches(
    "data.record_functions:_clear_frames", "traceback.clear_frames(error.__traceback__)", "pass"
)
def test_errors_keep_no_copy_of_the_rows(X, y):
    text = X.astype(object)
    text[3, 1] = "Smith"
    privatizer = LocalPrivatizer(bounds=(0, 1)).fit(X)
    for call in (
        lambda: DPSWFlowSampler(**N_STEPS).fit(text),
        lambda: DPSWFlowSampler(**N_STEPS).fit(X.tolist(), y[:-1].tolist()),
        lambda: DPSWFlowSampler(strict=True, **N_STEPS).fit(np.where(X > 1, np.nan, X)),
        lambda: privatizer.privatize(text),
        lambda: DPPCA(delta=1e-3).fit(X).transform(text),
    ):
        with pytest.raises((TypeError, ValueError)) as caught:
            call()
        assert find_kept(caught.value) == []


@pytest.mark.catches(
    "data.record_functions:_clear_frames",
    "error is not None and error is not handled",
    "error is not None",
)
def test_frames_outside_are_left(X):
    def fail():
        mine = "kept"
        raise KeyError(mine)

    try:
        fail()
    except KeyError:
        with pytest.raises(ValueError, match="0 feature") as caught:
            DPSWFlowSampler(**N_STEPS).fit(X[:, :0])
    outside = caught.value.__context__
    while not isinstance(outside, KeyError):
        outside = outside.__context__
    assert outside.__traceback__.tb_next.tb_frame.f_locals.get("mine") == "kept"


@pytest.mark.catches(
    "curator.curator:Curator.__init__",
    "read_at_full_price(self._source.open, plan)",
    "self._source.open()",
    param="False",
)
@pytest.mark.parametrize("has_budget", [False, True])
def test_rows_that_are_refused_say_what_is_charged(X, has_budget):
    X[3, 1] = np.nan
    budget = PrivacyBudget(5.0, 1e-5)
    with budget if has_budget else contextlib.nullcontext():
        with pytest.raises(ValueError, match="all of the fit is charged: ε = 2 at δ = 1e-05"):
            DPSWFlowSampler(2.0, strict=True, n_steps=3).fit(X)
    assert (budget.spent > 1.9) == has_budget


@pytest.mark.catches("planning.fits:Planning._read", "dataset.is_in_parts", "False")
def test_samples_of_chunks_are_refused_before_anything_is_read():
    def read():
        raise AssertionError("Read.")

    for release in (SampledGradients(n_steps=2), "gradients"):
        with pytest.raises(ValueError, match="X as chunks is for sums over all rows"):
            DPSinkhornGenerator(schema=SCHEMA, release=release).fit(read)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_tensors_are_arrays_and_come_back(X, y, dtype):
    tensor = torch.tensor(X, dtype=dtype, requires_grad=True)
    kept = np.float64 if dtype == torch.float64 else np.float32
    expected = DPSWFlowSampler(classes=[0, 1], **N_STEPS).fit(
        tensor.detach().float().numpy().astype(kept), y
    )
    made = DPSWFlowSampler(classes=[0, 1], **N_STEPS).fit(tensor, torch.as_tensor(y))
    for a, b in zip(made.sample(5), expected.sample(5), strict=True):
        assert a.dtype == (dtype if a.ndim == 2 else torch.int64)
        assert_array_equal(a.float(), torch.as_tensor(b).to(a.dtype).float())
    with pytest.raises(TypeError, match="Sparse tensors"):
        DPSWFlowSampler(**N_STEPS).fit(tensor.to_sparse())


def test_numbers_are_no_names_of_files(X):
    fitted = DPSWFlowSampler(**N_STEPS).fit(X)
    for call in (fitted.save, load):
        for path in (1, True, None):
            with pytest.raises(TypeError, match="path must be the name of a file"):
                call(path)
        with pytest.raises(ValueError, match="path must be a name"):
            call("a\0b")
    assert not sys.__stdout__.closed


def test_more_rows_than_memory_holds_are_refused(X):
    with pytest.raises(ValueError, match="n_samples must be at most"):
        DPSWFlowSampler(**N_STEPS).fit(X).sample(10**15)


@pytest.mark.parametrize("y", [[[1], 2], np.array(["a", {}], dtype=object), [["A"]], 5])
def test_values_that_are_no_label_are_refused_before_a_fit_is_sampled(X, y):
    fitted = DPSWFlowSampler(classes=["A", "B"], **N_STEPS).fit(X, ["A", "B"] * 30)
    with pytest.raises(ValueError, match="y must be a list of at least one label"):
        fitted.sample(y=y)


def test_labels_that_fail_are_not_quoted(X):
    class Label:
        def __array__(self, *args, **kwargs):
            raise RuntimeError("Smith")

    with pytest.raises(ValueError, match="y must be labels or numbers") as caught:
        DPSWFlowSampler(**N_STEPS).fit(X, [Label()] * 60)
    assert caught.value.__context__ is None


def test_an_encoder_that_fails_on_zeros_is_named(X):
    def fail(rows):
        raise RuntimeError("No.")

    for function, match in (
        (fail, "^encoder fails .* No"),
        (np.sum, "^encoder .* a row is needed"),
    ):
        encoder = FunctionTransformer(function, function)
        with pytest.raises(ValueError, match=match):
            DPSWFlowSampler(encoder=encoder, **N_STEPS).fit(X)
