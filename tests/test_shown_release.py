"""Choices that were made for a release are shown."""

import numpy as np
import pytest

from skdpgen import (
    DPAFGenerator,
    DPSinkhornGenerator,
    DPSlicedWassersteinGenerator,
    DPSWFlowSampler,
    LDPEntropicGAN,
)
from skdpgen.releases import SlicedRows

BOX = {"epsilon": 5.0, "bounds": (0, 1), "classes": [0, 1], "random_state": 0}
METHODS = [
    DPSlicedWassersteinGenerator(n_steps=2, **BOX),
    DPSWFlowSampler(n_steps=2, **BOX),
    DPSWFlowSampler(release=SlicedRows(n_steps=3), **BOX),
    DPSinkhornGenerator(**BOX),
    DPAFGenerator(**BOX),
    LDPEntropicGAN(n_steps=2, **BOX),
]


@pytest.mark.parametrize("estimator", METHODS, ids=lambda e: type(e).__name__)
@pytest.mark.filterwarnings("ignore::skdpgen.exceptions.FitQualityWarning")
def test_a_release_that_is_given_what_was_chosen_is_the_same(estimator):
    rng = np.random.RandomState(0)
    X, y = rng.uniform(size=(60, 4)), rng.randint(2, size=60)
    fitted = estimator.fit(X, y)
    shown = fitted.release_
    assert estimator.release is not shown
    open_numbers = [n for n, value in shown.get_params().items() if value is None]
    assert set(open_numbers) <= {"basis", "keep"}
    made, events = fitted.sample(20), fitted.privacy_.events
    again = estimator.set_params(release=shown).fit(X, y)
    assert again.privacy_.events == events
    np.testing.assert_array_equal(again.sample(20)[0], made[0])
