"""Warnings of few rows come before anything is spent."""

import math
import re
import warnings

import numpy as np
import pandas as pd
import pytest

from skdpgen import (
    Category,
    DPAFGenerator,
    DPSinkhornGenerator,
    DPSlicedWassersteinGenerator,
    DPSWFlowSampler,
    LDPEntropicGAN,
    Number,
    PrivacyBudget,
    Schema,
)
from skdpgen.accounting.calibration import calibrate_gaussian
from skdpgen.encoders import PrivatePCA
from skdpgen.exceptions import FitQualityWarning
from skdpgen.preprocessing import DPPCA
from skdpgen.privacy import BudgetExceededError, preview
from skdpgen.releases import SliceSketch

ALL = [
    DPAFGenerator,
    DPSinkhornGenerator,
    DPSlicedWassersteinGenerator,
    DPSWFlowSampler,
    LDPEntropicGAN,
]


def min_samples(estimator, n_samples, n_features, n_classes=None):
    """Return what a preview says, in rows."""
    (note,) = preview(estimator, n_samples, n_features, n_classes=n_classes).notes
    assert f"here are {n_samples:,}." in note
    return int(note.split(" rows")[0].split()[-1].replace(",", ""))


@pytest.mark.parametrize("method", ALL)
def test_fewer_rows_than_it_takes_are_announced_before_anything_is_read(method):
    X, y = np.random.RandomState(0).uniform(size=(20, 64)), np.arange(20) % 10
    estimator = method(epsilon=1.0, bounds=(0, 1), classes=range(10))
    with warnings.catch_warnings(record=True) as caught, PrivacyBudget(0.1, 1e-5) as budget:
        warnings.simplefilter("always")
        # The budget refuses the fit, and that is after the warning.
        with pytest.raises(BudgetExceededError):
            estimator.fit(X, y)
        assert budget.spent == 0
    (said,) = [str(w.message) for w in caught if w.category is FitQualityWarning]
    # One finding: a preview and a fit say the same.
    assert (said,) == preview(estimator, 20, 64, n_classes=10).notes
    assert said.startswith(f"{method.__name__} takes about ")
    assert min_samples(estimator, 20, 64, 10) > 20


@pytest.mark.parametrize("method", ALL)
def test_it_takes_more_rows_of_more_classes_and_at_a_smaller_epsilon(method):
    def needed(n_classes, epsilon):
        return min_samples(method(epsilon=epsilon, bounds=(0, 1)), 500, 9, n_classes)

    # Steps of networks, which grow with the rows, take more of them than noise does at ε = 0.5.
    assert needed(2, 0.5) > needed(2, 2.0) or method in (DPAFGenerator, DPSinkhornGenerator)
    assert needed(2, 0.1) > needed(2, 2.0)
    assert needed(8, 1.0) > needed(2, 1.0)


@pytest.mark.parametrize("release", ["rows", "resample", "presample"])
def test_sliced_rows_take_more_than_a_sketch_which_is_named(release):
    """On 1,347 digits they are near chance at ε = 3, where a sketch has .9."""
    method = DPSlicedWassersteinGenerator if release == "rows" else DPSWFlowSampler
    sampler = method(epsilon=3.0, bounds=(0, 16), release=release)
    (note,) = preview(sampler, 1347, 64, n_classes=10).notes
    assert "Use release='sketch', which needs about 560 rows, a larger epsilon" in note
    assert 5_000 < min_samples(sampler, 1347, 64, 10)


def test_a_release_or_an_epsilon_that_would_do_is_named_where_one_is():
    sampler = DPSWFlowSampler(epsilon=3.0, bounds=(0, 16), release="resample")
    # From the paper's number of rows on they are of use at ε = 10, and then nothing is advised.
    (note,) = preview(sampler.set_params(epsilon=10.0), 60_000, 64, n_classes=10).notes
    assert note.endswith("here are 60,000.")
    # Where a sketch takes more than there are, its ε is named.
    (note,) = preview(sampler.set_params(epsilon=1.0), 1000, 64, n_classes=10).notes
    assert "Use release='sketch' with epsilon=2, more rows" in note


@pytest.mark.parametrize("method", ALL)
def test_a_preview_of_an_array_says_how_long_a_fit_takes(method):
    X, y = np.random.RandomState(0).uniform(size=(300, 3)), np.arange(300) % 2
    estimator = method(epsilon=10.0, bounds=(0, 1), classes=[0, 1])
    with PrivacyBudget(1e-3, 1e-9) as budget:
        *_, note = preview(estimator, X, y).notes
    assert budget.spent == 0
    assert re.fullmatch(r"a fit takes about [\d.]+ s on this machine\.", note)


@pytest.mark.parametrize(("levels", "n_parts"), [("ab", 2), ("abc", 3), ("abcd", 1)])
def test_each_level_of_a_target_takes_as_many_rows(levels, n_parts):
    """Strata of four levels do not pay for 50 records."""
    frame = pd.DataFrame(
        {"x": np.arange(50.0), "y": [*levels] * 10 + ["a"] * (50 - 10 * len(levels))}
    )
    estimator = DPSWFlowSampler(
        1.0, schema=Schema({"x": Number(0, 60, n_knots=5), "y": Category(list(levels))})
    )
    (pooled,), (of_levels,) = (
        [int(n.replace(",", "")) for n in re.findall(r"about ([\d,]+) rows", note)]
        for note in (preview(estimator, frame, target=target).notes[0] for target in (None, "y"))
    )
    assert of_levels == pytest.approx(n_parts * pooled, rel=0.05)


def test_without_noise_few_rows_will_do():
    for method in ALL[1:]:
        assert preview(method(epsilon=math.inf, bounds=(0, 1)), 10, 3).notes == ()


@pytest.mark.parametrize("method", ALL)
def test_a_preview_takes_what_fit_takes(method):
    rng = np.random.RandomState(0)
    X, y = rng.uniform(size=(300, 3)), rng.randint(2, size=300)
    estimator = method(epsilon=3.0, bounds=(0, 1), classes=[0, 1])
    planned = preview(estimator, X, y)
    assert planned.events == preview(estimator, 300, 3, n_classes=2).events
    assert planned.n_records == 300
    # A numeric y is one column more, and has a range.
    if method is not LDPEntropicGAN:
        with pytest.warns(FitQualityWarning, match="taken for numbers"):
            numeric = preview(method(epsilon=3.0, bounds=(0, 1)), X, y.astype(float))
        assert numeric.releases[0] == "value ranges"
    assert not hasattr(estimator, "n_features_in_")


def test_a_preview_looks_at_no_cell():
    """Cells that are no numbers are refused by a fit, and not by a preview."""
    X = np.array([["a", object()], [None, 3]], dtype=object)
    assert preview(DPSWFlowSampler(), X).n_records == 2


def test_a_preview_is_as_local_as_its_fit():
    X, y = np.random.RandomState(0).uniform(size=(40, 2)), [0, 1] * 20
    for classes in (None, [0, 1]):
        gan = LDPEntropicGAN(epsilon=5.0, bounds=(0, 1), classes=classes, n_steps=2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            planned, fitted = preview(gan, X, y), gan.fit(X, y).privacy_
        assert planned.local == fitted.local == (classes is not None)


def test_a_preview_of_a_transformer_takes_numbers():
    with pytest.raises(TypeError, match="numbers of rows and features"):
        preview(DPPCA(), np.zeros((5, 2)))
    assert preview(DPPCA(), 50, 2).releases[-1] == "second moments"


@pytest.mark.parametrize("n_projections", [None, 50, 2000])
def test_rows_of_more_columns_than_slices_tell_about_take_more_of_them(n_projections):
    sampler = DPSWFlowSampler(
        epsilon=1.0, bounds=(0, 1), encoder=None, release=SliceSketch(n_projections)
    )
    narrow, wide = (min_samples(sampler, 1000, d) for d in (80, 80 * 36))
    assert narrow == 180
    assert math.isclose(wide, 6 * narrow, rel_tol=0.05)


@pytest.mark.parametrize("n_columns", [256, 784, 3 * 256])
def test_components_of_images_are_sought_however_few_rows_there_are(n_columns):
    def find_encoder(n_rows, n_columns, bounds):
        sampler = DPSWFlowSampler(bounds=bounds, clip_norm=0.5)
        return sampler._make_format(n_rows, n_columns, 10).components

    for bounds in ((0, 1), (0, 255)):
        assert isinstance(find_encoder(50, n_columns, bounds), PrivatePCA)
    # As many columns of something else have to stand out by far; and so do small squares.
    mixed = np.zeros(n_columns), np.linspace(1, 2, n_columns)
    others = [(n_columns, b) for b in (None, (-1, 1), mixed)]
    for what in (*others, (n_columns - 1, (0, 1)), (225, (0, 1))):
        assert find_encoder(10_000, *what) is None
        assert isinstance(find_encoder(50_000, *what), PrivatePCA)


def test_pixels_without_bounds_are_told_of():
    """Nobody can tell them from features that a network made of something."""
    says = r"256 columns are not taken for images.*image_shape=\(16, 16\)"
    for bounds in (None, (-1, 1)):
        with pytest.warns(FitQualityWarning, match=says):
            preview(DPSWFlowSampler(bounds=bounds), 3000, 256)
    with pytest.warns(FitQualityWarning, match=r"channels first. Declare .*or \(16, 16, 3\)"):
        preview(DPSWFlowSampler(bounds=(0, 1)), 3000, 768)
    for sampler, n_columns in (
        (DPSWFlowSampler(bounds=(0, 1)), 256),
        (DPSWFlowSampler(bounds=(0, 1), image_shape=(16, 16, 3)), 768),
        (DPSWFlowSampler(image_shape=None), 256),
        (DPSWFlowSampler(image_shape=(16, 16)), 256),
        (DPSWFlowSampler(encoder=None), 256),
        (DPSWFlowSampler(), 255),
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            preview(sampler, 3000, n_columns)
        assert not [w for w in caught if "columns are" in str(w.message)]


@pytest.mark.parametrize("y", [None, np.linspace(0, 1, 30)])
def test_images_with_a_number_beside_them_are_rows_of_a_table(y):
    X = np.random.default_rng(0).uniform(size=(30, 256))
    planned = preview(DPSWFlowSampler(bounds=(0, 1)), X, y)
    assert ("second moments" in planned.releases) == (y is None)


def test_noise_hides_components_of_few_rows():
    multiplier = calibrate_gaussian(1.0, 1e-5)

    def needed(n_features=401, max_rows=1, **params):
        sampler = DPSWFlowSampler(epsilon=1.0, bounds=(0, 1), encoder=PrivatePCA(**params))
        sampler.set_params(delta=1e-5, clip_norm=1.0, max_rows_per_person=max_rows)
        (note,) = preview(sampler, 500, n_features, persons=max_rows > 1).notes
        return int(note.split(" rows")[0].split()[-1].replace(",", ""))

    # The eigenvalue of noise is half of what 500 rows have in each of so many directions.
    assert needed(n_components=30, share=0.5) == float(f"{30 * multiplier * 20:.2g}")
    # Images have components that six frequencies along each axis can hold.
    assert needed(400, n_components=30, share=0.5) == float(f"{30 * multiplier * 6:.2g}")
    assert needed() > needed(n_components=50) > needed(n_components=40)
    assert math.isclose(needed(max_rows=3), 3 * needed(), rel_tol=0.1)
    # Components that are all kept hide nothing.
    assert needed(64) < needed(65) / 2
