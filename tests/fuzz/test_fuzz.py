"""Whatever is asked: a sound result, a clear refusal that costs nothing, or a word of what it cost.
"""

import warnings

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from .fits import askings, fits
from .oracle import judge

_SLOW = pytest.param(True, marks=pytest.mark.slow, id="many")


def _few(n, slow):
    return settings(max_examples=n)


def test_x():
    pass
