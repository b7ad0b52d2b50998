"""Displays: scikit-learn's conventions, and what is drawn."""

import sys

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from dp_accounting import NonPrivateDpEvent
from numpy.testing import assert_allclose
from sklearn.exceptions import NotFittedError

from skdpgen import DPSWFlowSampler
from skdpgen.evaluation import PrivacyProfileDisplay, SyntheticSamplesDisplay, report
from skdpgen.privacy import Certificate

DISPLAYS = [PrivacyProfileDisplay, SyntheticSamplesDisplay]


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def rows():
    return pd.DataFrame(np.random.default_rng(0).random((200, 4)), columns=list("abcd"))


@pytest.fixture(scope="module")
def sampler(rows):
    labels = np.random.default_rng(1).integers(0, 2, len(rows))
    return DPSWFlowSampler(
        5.0, bounds=(0, 1), clip_norm=1.0, encoder=None, classes=[0, 1], n_steps=3
    ).fit(rows, labels)


@pytest.mark.parametrize("cls", DISPLAYS, ids=lambda cls: cls.__name__)
def test_conventions(cls, sampler):
    display = cls.from_estimator(sampler)
    assert isinstance(display, cls)
    assert display.ax_.figure is display.figure_
    assert display.plot() is display
    _, ax = plt.subplots()
    assert cls.from_estimator(sampler, ax=ax).ax_ is ax
    with pytest.raises((NotFittedError, TypeError), match="fit"):
        cls.from_estimator(DPSWFlowSampler())


def test_images_are_as_they_were():
    X = np.arange(24.0).reshape(2, 12)
    display = SyntheticSamplesDisplay(X, ["p", "q"], image_shape=(3, 4)).plot()
    assert display.ax_.shape == (1, 2) or len(np.ravel(display.ax_)) == 2
    first, second = np.ravel(display.ax_)
    assert_allclose(second.images[0].get_array(), X[1].reshape(3, 4))
    assert (first.get_title(), second.get_title()) == ("p", "q")
    colours = SyntheticSamplesDisplay(X, image_shape=(3, 2, 2)).plot()
    shown = np.ravel(colours.ax_)[0].images[0].get_array()
    assert_allclose(shown[0, 0], np.array([0, 4, 8]) / 23)
    last = np.arange(150.0).reshape(2, 5, 5, 3)
    shown = np.ravel(SyntheticSamplesDisplay(last).plot().ax_)[0].images[0].get_array()
    assert_allclose(shown, last[0] / 149)


def test_points_need_numbers():
    with pytest.raises(ValueError, match="no numeric columns"):
        SyntheticSamplesDisplay(pd.DataFrame({"a": list("xy")})).plot()
    with pytest.raises(ValueError, match="ax must hold 2 axes; got 1"):
        SyntheticSamplesDisplay(np.zeros((2, 4)), image_shape=(2, 2)).plot(ax=plt.subplots()[1])


def test_a_profile_is_that_of_the_certificate(sampler):
    display = PrivacyProfileDisplay.from_estimator(sampler, epsilon=[1.0, 3.0])
    assert_allclose(display.delta, [sampler.privacy_.delta_at(e) for e in (1.0, 3.0)])
    assert_allclose(display.line_.get_ydata(), display.delta)
    assert display.stated == (sampler.epsilon_, sampler.privacy_.delta)
    assert display.ax_.get_yscale() == "log"
    of_certificate = PrivacyProfileDisplay.from_estimator(sampler.privacy_, epsilon=[1.0])
    assert_allclose(of_certificate.delta, display.delta[:1])
    nothing = Certificate((NonPrivateDpEvent(),), ("nothing",))
    with pytest.raises(ValueError, match="infinite"):
        PrivacyProfileDisplay.from_estimator(nothing)


def test_without_matplotlib_it_is_said_how_to_get_it(monkeypatch):
    for name in ("matplotlib", "matplotlib.pyplot"):
        monkeypatch.setitem(sys.modules, name, None)
    report(np.eye(3)).to_html()
    with pytest.raises(ImportError, match=r"pip install 'skdpgen\[plots\]'"):
        PrivacyProfileDisplay([1], [0.1]).plot()
