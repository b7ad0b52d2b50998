import warnings
from functools import partial

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal
from PIL import Image
from sklearn.model_selection import GridSearchCV
from torch.utils.data import DataLoader, Dataset, IterableDataset, RandomSampler, TensorDataset

from skdpgen import (
    DPAFGenerator,
    DPSinkhornGenerator,
    DPSlicedWassersteinGenerator,
    DPSWDDomainClassifier,
    DPSWFlowSampler,
    LDPEntropicGAN,
    PrivacyBudget,
    load,
)
from skdpgen.arrays.ball import BallFormat
from skdpgen.arrays.box import BoxFormat
from skdpgen.arrays.image_layout import ImageLayout
from skdpgen.arrays.layout import ArrayLayout
from skdpgen.evaluation import (
    train_on_synthetic_score,
    wasserstein_distance,
)
from skdpgen.exceptions import PrivacyLeakWarning
from skdpgen.preprocessing import DPPCA, LocalPrivatizer
from skdpgen.releases import ForwardAggregates, LocalNoise, SampledGradients, SliceSketch

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdpgen.exceptions.FitQualityWarning"),
    pytest.mark.filterwarnings("ignore::skdpgen.exceptions.PrivacyLeakWarning"),
]

BYTES = np.random.default_rng(0).integers(0, 256, (40, 3, 8, 10), dtype=np.uint8)
LABELS = np.arange(40) % 2
LAST = np.ascontiguousarray(np.moveaxis(BYTES, 1, -1))
UNIT = (BYTES / 255).astype(np.float32)
QUICK = dict(epsilon=5.0, classes=[0, 1], random_state=0)


def make(**params):
    release = SliceSketch(n_projections=20)
    return DPSWFlowSampler(**QUICK | dict(release=release, n_steps=2, n_particles=20) | params)


class Pictures(Dataset):
    """Images of Pillow with labels, of which one may fail."""

    def __init__(self, failing=None):
        self.failing = failing

    def __len__(self):
        return len(LAST)

    def __getitem__(self, i):
        if i == self.failing:
            raise OSError(2, f"pixel {LAST[i, 0, 0]}", "pixel of a person.png")
        return Image.fromarray(LAST[i]), int(LABELS[i])


class Stream(IterableDataset):
    def __iter__(self):
        return zip(UNIT, LABELS, strict=True)


def read_chunks():
    return ((UNIT[i : i + 15], LABELS[i : i + 15]) for i in range(0, 40, 15))


TENSORS = TensorDataset(torch.as_tensor(UNIT), torch.as_tensor(LABELS))
# The data, their bounds, and the type, shape and dtype of a sample.
FORMS = {
    "bytes": (BYTES, None, np.ndarray, (3, 8, 10), np.uint8),
    "channels last": (LAST, None, np.ndarray, (8, 10, 3), np.uint8),
    "from -1 to 1": (LAST / 127.5 - 1, (-1, 1), np.ndarray, (8, 10, 3), np.float64),
    "bounds of channels": (
        LAST.astype(float),
        (0, np.full(3, 255)),
        np.ndarray,
        (8, 10, 3),
        np.float64,
    ),
    "tensors": (torch.as_tensor(UNIT), (0, 1), torch.Tensor, (3, 8, 10), torch.float32),
    "arrays in a list": (list(UNIT), (0, 1), list, (3, 8, 10), np.float32),
    "tensors in a list": (list(torch.as_tensor(LAST)), None, list, (8, 10, 3), torch.uint8),
    "Pillow": ([Image.fromarray(image) for image in LAST], None, list, (8, 10, 3), np.uint8),
    "dataset": (TENSORS, (0, 1), torch.Tensor, (3, 8, 10), torch.float32),
    "dataset of Pillow": (Pictures(), None, list, (8, 10, 3), np.uint8),
    "loader": (DataLoader(TENSORS, 7, shuffle=True), (0, 1), torch.Tensor, (3, 8, 10), None),
    "stream": (DataLoader(Stream(), 9), (0, 1), torch.Tensor, (3, 8, 10), torch.float32),
    "chunks": (read_chunks, (0, 1), np.ndarray, (3, 8, 10), np.float32),
    "chunks of a loader": (
        lambda: DataLoader(TENSORS, 15),
        (0, 1),
        torch.Tensor,
        (3, 8, 10),
        torch.float32,
    ),
}


@pytest.fixture(scope="module")
def expected():
    flat = UNIT.reshape(40, -1)
    return make(bounds=(0, 1), image_shape=(3, 8, 10)).fit(flat, LABELS).sample(6)


@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_images_is_fitted_alike_and_comes_back(name, expected):
    data, bounds, kind, shape, dtype = FORMS[name]
    holds_labels = callable(data) or isinstance(data, Dataset | DataLoader)
    fitted = make(bounds=bounds).fit(data, None if holds_labels else LABELS)
    made, labels = fitted.sample(6)
    assert type(made) is kind
    assert_array_equal(np.asarray(labels), expected[1])
    assert isinstance(labels, torch.Tensor) == (holds_labels and kind is torch.Tensor)
    images = np.stack([np.asarray(image) for image in made])
    assert images.shape[1:] == shape == fitted.record_shape_in_
    assert dtype is None or (made if hasattr(made, "dtype") else np.asarray(made[0])).dtype in (
        dtype,
        images.dtype,
    )
    lower, upper = (0, 255) if bounds is None else (bounds[0], np.max(bounds[1]))
    images = images if shape[0] == 3 else np.moveaxis(images, -1, 1)
    images = (images.reshape(6, -1).astype(float) - lower) / (upper - lower)
    assert_allclose(
        images, expected[0], atol=0.51 / 255 if images.max() and bounds is None else 1e-6
    )


def test_flat_rows_and_saved_fits_know_their_shape(expected, tmp_path):
    rows = (LAST / 255).reshape(40, -1)
    fitted = make(bounds=(0, 1), image_shape=(8, 10, 3)).fit(rows, LABELS)
    fitted.save(tmp_path / "fit")
    for one in (fitted, load(tmp_path / "fit")):
        made = one.sample(6)[0].reshape(6, 8, 10, 3)
        assert_allclose(np.moveaxis(made, -1, 1).reshape(6, -1), expected[0], atol=1e-6)
    other = make(bounds=(0, 1), image_shape=None).fit(rows, LABELS).sample(6)[0]
    assert not np.allclose(other, fitted.sample(6)[0])
    images = make().fit(LAST, LABELS)
    assert images.bounds_[1].shape == (8, 10, 3)
    with pytest.warns(PrivacyLeakWarning, match="not covered by"):
        assert images.score(LAST) == images.score(LAST.reshape(40, -1)) < 0
    with pytest.raises(ValueError, match=r"shape \(3, 8, 10\), and fit was given records"):
        images.score(BYTES)


ONE_STEP = ForwardAggregates(n_steps=1, budget_split=(0, 0, 1))
ESTIMATORS = {
    "network": DPSlicedWassersteinGenerator(**QUICK, network="conv", n_steps=2),
    "sinkhorn": DPSinkhornGenerator(**QUICK, network="conv", release=SampledGradients(n_steps=2)),
    "dpaf": DPAFGenerator(**QUICK, release=ONE_STEP),
    "local": LDPEntropicGAN(
        **QUICK, network="conv", n_steps=2, release=LocalNoise("gaussian", basis="dct")
    ),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_take_images(name):
    estimator = ESTIMATORS[name]
    images = estimator.set_params(bounds=(-1, 1)).fit(LAST / 127.5 - 1, LABELS).sample(4)[0]
    estimator.set_params(bounds=(0, 1), image_shape=(3, 8, 10))
    rows = estimator.fit((BYTES / 255).reshape(40, -1), LABELS).sample(4)[0]
    made = np.moveaxis((images + 1) / 2, -1, 1).reshape(4, -1)
    assert_allclose(made, rows, atol=1e-5)


@pytest.mark.parametrize("network", ["conv", pytest.param("mlp", marks=pytest.mark.slow)])
def test_adapters_take_images(network):
    params = dict(epsilon=5.0, network=network, n_steps=2, random_state=0)
    forms = (LAST, (0, 255)), (LAST / 127.5 - 1, (-1, 1))
    first, second = (
        DPSWDDomainClassifier(bounds=bounds, **params)
        .fit(X, LABELS, X_target=X[:30])
        .predict_proba(X)
        for X, bounds in forms
    )
    assert_allclose(first, second, atol=1e-4)


def test_transformers_give_images_back():
    for transformer in (
        DPPCA(5.0, bounds=(0, 255), n_components=4, random_state=0),
        LocalPrivatizer(5.0, bounds=(0, 255), basis="dct"),
    ):
        codes = transformer.fit(LAST).transform(LAST)
        assert codes.ndim == 2
        assert transformer.inverse_transform(codes).shape == LAST.shape
    # In the order of X: a component is an image.
    pca = DPPCA(np.inf, bounds=(0, 255), n_components=2).fit(LAST)
    other = DPPCA(np.inf, bounds=(0, 255), n_components=2).fit(BYTES)
    shown = np.moveaxis(pca.components_.reshape(2, 8, 10, 3), -1, 1).reshape(2, -1)
    assert_allclose(abs(np.sum(shown * other.components_, axis=1)), 1, atol=1e-6)


def test_scores_take_what_fits_take():
    for X in (LAST.reshape(40, -1), LAST, list(LAST), Pictures()):
        assert train_on_synthetic_score(LAST, LABELS, X, LABELS, random_state=0) > 0.5
        assert wasserstein_distance(LAST, X).distance == 0
    fitted = make(bounds=(0, 1)).fit(TENSORS)
    score = fitted.score(UNIT)
    assert fitted.score(TENSORS) == fitted.score(DataLoader(TENSORS, 7, shuffle=True)) == score
    with pytest.raises(ValueError, match=r"must be images of one shape; got \[\(8, 10, 3\)"):
        wasserstein_distance(LAST, BYTES)


def test_searches_cut_images_by_the_first_axis():
    search = GridSearchCV(make(), {"n_steps": [1]}, cv=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert search.fit(LAST, LABELS).best_estimator_.sample(2)[0].shape == (2, 8, 10, 3)


def test_rows_hold_channels_first():
    layout = ArrayLayout(None, (np.dtype(float),), None, None, record_shape=(8, 10, 3))
    rows = LAST[:5].reshape(5, -1) / 255
    upper = np.tile([1.0, 2.0, 4.0], 80)
    for make_format in (BoxFormat, BallFormat):
        format = make_format(240, bounds=(0, upper), layout=layout)
        planes = make_format(240, bounds=(0, np.repeat([1.0, 2.0, 4.0], 80)))
        encoded = format.encode(rows)
        assert_allclose(encoded, planes.encode(BYTES[:5].reshape(5, -1) / 255))
        assert_allclose(format.decode_rows(encoded)[0], rows, atol=1e-12)
        assert format.column_names[1] == "column 3"
        assert_array_equal(format.column_bounds[1], planes.column_bounds[1])


@pytest.mark.parametrize(
    ("record_shape", "image_shape", "expected"),
    [
        ((8, 9), "auto", ((1, 8, 9), False)),
        ((8, 9, 1), "auto", ((1, 8, 9), True)),
        ((4, 9, 8), "auto", ((4, 9, 8), False)),
        ((8, 9, 4), None, (None, False)),
        (None, (2, 2, 2), ((2, 2, 2), False)),
    ],
)
def test_layouts(record_shape, image_shape, expected):
    n_features = np.prod(record_shape or image_shape)
    layout = ImageLayout.of(n_features, image_shape, record_shape)
    assert (layout.image_shape, layout.channels_last) == expected
    rows = np.arange(2.0 * n_features).reshape(2, -1)
    assert_array_equal(layout.restore(layout.arrange(torch.as_tensor(rows))), rows)


REFUSED = {
    "shapes": ([*LAST[:30], LAST[0, :7]], {}, "images of 2 shapes"),
    "types": ([*LAST[:30], torch.as_tensor(LAST[0])], {}, "must all be arrays"),
    "modes": ([Image.fromarray(image).convert("P") for image in LAST], {}, "of one mode"),
    "objects": ([image.astype(object) for image in LAST], {}, "arrays of numbers"),
    "volumes": (LAST[:, None], {}, r"np.reshape\(X, \(len\(X\), -1\)\)"),
    "channels of neither": (np.zeros((40, 5, 6, 7)), {}, "do not tell which axis"),
    "channels of both": (np.zeros((40, 3, 9, 3)), {}, "do not tell which axis"),
    "another shape": (LAST, {"image_shape": (10, 8, 3)}, "does not fit records of X"),
    "starts of another shape": (LAST, {"init": BYTES[:20]}, "init and X hold images of two"),
    "starts of other units": (LAST, {"init": LAST / 255}, "give both in the same units"),
    "an image": (LAST[0], {}, r"may be a single image, which X\[None\] is"),
    "a tensor of an image": (torch.as_tensor(BYTES[0]), {}, "may be a single image"),
    "an image of Pillow": (Image.fromarray(LAST[0]), {}, "may be a single image"),
    "a spent iterator": (partial(iter, iter([UNIT])), {"classes": None}, "fresh iterator"),
    "what reads one": (partial(map, abs, iter([UNIT])), {"classes": None}, "fresh iterator"),
    "no shape": (LAST, {"image_shape": (10,)}, "image_shape must be"),
    "labels twice": (TENSORS, {}, "only if y is None"),
    "last batch": (DataLoader(TENSORS, 7, drop_last=True), {}, "read each record once"),
    "with replacement": (
        DataLoader(TENSORS, 7, sampler=RandomSampler(TENSORS, replacement=True)),
        {},
        "read each record once",
    ),
    "some": (
        DataLoader(TENSORS, 7, sampler=RandomSampler(TENSORS, num_samples=3)),
        {},
        "read each record once",
    ),
    "no batches": (DataLoader(TENSORS, None), {}, "read each record once"),
    "items": (TensorDataset(*[torch.zeros(40, 2)] * 3), {}, "a record, or a record and its label"),
    "failing item": (Pictures(5), {}, r"\(FileNotFoundError: No such file or directory\). Its"),
    "chunks with replacement": (
        lambda: DataLoader(TENSORS, 7, sampler=RandomSampler(TENSORS, replacement=True)),
        {},
        "read each record once",
    ),
    "chunks of workers": (
        lambda: DataLoader(Stream(), 7, num_workers=2),
        {},
        "batch_size or num_workers",
    ),
    "chunks without classes": (read_chunks, {"classes": None}, "declare classes"),
    "chunks of other shapes": (lambda: iter([UNIT, LAST]), {"classes": None}, "one shape"),
    "chunks of tables": (
        lambda: iter([__import__("pandas").DataFrame()]),
        {},
        "hold no rows|For tables|no chunks",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.catches(
    "data.record_functions:describe_failure", "names_file", "True", param="failing item"
)
@pytest.mark.catches("curator.dataset:Dataset._hold", "next(iter(X()), None) is None", "False")
@pytest.mark.catches("data.array_parts:_check_loader", "loader.drop_last", "False")
@pytest.mark.catches(
    "data.array_parts:_check_loader", 'getattr(sampler, "replacement", False)', "False"
)
@pytest.mark.catches(
    "data.array_parts:_check_loader", "len(sampler) == len(loader.dataset)", "True"
)
def test_what_is_no_array_of_images_is_refused_for_nothing(name):
    data, params, message = REFUSED[name]
    has_labels = callable(data) or isinstance(data, Dataset | DataLoader)
    y = LABELS if not has_labels or name == "labels twice" else None
    budget = PrivacyBudget(10.0, 1e-4)
    with budget, pytest.raises((ValueError, TypeError), match=message) as caught:
        make(bounds=(0, 255), random_state=None, **params).fit(
            data, y if y is None else LABELS[: getattr(data, "__len__", lambda: 40)()]
        )
    assert budget.spent == 0
    assert "pixel" not in str(caught.value)
    assert caught.value.__cause__ is caught.value.__context__ is None or name != "failing item"


def test_bytes_have_their_bounds_for_clients_too():
    """Without them each image was projected to the unit ball, and samples were black."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="Without bounds")
        fitted = LDPEntropicGAN(30.0, classes=[0, 1], n_steps=2, random_state=0).fit(BYTES, LABELS)
        assert fitted.sample(5)[0].max() > 50
        # Their radius is in units of rows that are not mapped.
        fitted = LDPEntropicGAN(clip_norm=2000.0, n_steps=2).fit(BYTES)
        assert fitted.sample(1).shape == (1, 3, 8, 10)


def test_labels_of_tensors_can_be_written():
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="The given NumPy array is not writable")
        labels = make(bounds=(0, 1)).fit(TENSORS).sample(5)[1]
    assert labels.numpy().flags.writeable


@pytest.mark.parametrize("X", [torch.rand(40, 6), torch.rand(40, 4, 5), torch.rand(40, 3, 8, 10)])
def test_loaders_of_records_without_labels_hold_records(X):
    """Each batch was taken for a list of one image."""
    loader = DataLoader(TensorDataset(X), 10)
    for data in (loader, lambda: loader, TensorDataset(X)):
        fitted = make(bounds=(0, 1), classes=None).fit(data)
        assert fitted.sample(2).shape == (2, *X.shape[1:])
        assert fitted.privacy_.n_records == 40
