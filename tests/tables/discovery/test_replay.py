"""Recorded releases give the recorded schemas, whatever the rows are; see `replay`."""

import dataclasses

import pytest

from skdpgen.exceptions import SpentError
from skdpgen.histograms import ranges

from .replay import assert_close, load, replay

# Files of recordings, and how many of each the default run replays.
FILES = {
    "ranges": 2,
    "ranges_alone": 6,
    "messy": 1,
    "adult": 1,
    "bank_marketing": 1,
    "diabetes130": 1,
    "census_income": 1,
    "california_housing": 3,
    "arrays": 8,
}


def check(recordings):
    for case, _, recorded in recordings:
        assert_close(replay(case, recorded), recorded["resolved"])


@pytest.mark.parametrize("name", FILES)
def test_recorded_counts_give_the_recorded_schema(name):
    check(load(name)[: FILES[name]])


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_further_recorded_counts_give_the_recorded_schema(name):
    check(load(name)[FILES[name] :])


def test_a_changed_constant_is_noticed(monkeypatch):
    constants = dataclasses.replace(ranges.CONSTANTS, false_alarm=0.05)
    monkeypatch.setattr(ranges, "CONSTANTS", constants)
    with pytest.raises((AssertionError, SpentError)):
        check(load("ranges"))
