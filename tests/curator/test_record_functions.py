"""Functions of private rows: who may be one, what leaves of it, and which record it fails for."""

import traceback
import warnings

import numpy as np
import pytest
import torch

from skdpgen.data.record_functions import call_quietly, clears_frames
from skdpgen.privacy import (
    BatchFunction,
    ClippedGradientMechanism,
    Curator,
    ForwardAggregateMechanism,
    GaussianSumMechanism,
    NoiseSource,
    PullingFunction,
    RecordFunction,
    SlicedRowsMechanism,
    SliceSketchMechanism,
    gaussian_plan,
)
from skdpgen.transport import SliceBasis


def identity(rows, *others):
    return rows


PLAN = gaussian_plan({"a": 1.0}, 1.0, 1e-5)
TAKERS = {
    "Curator": lambda f: Curator(np.ones((3, 2)), plan=PLAN, noise=NoiseSource(0), prepare=f),
    "GaussianSumMechanism": lambda f: GaussianSumMechanism(f, 1.0),
    "SliceSketchMechanism": lambda f: SliceSketchMechanism(SliceBasis(torch.eye(2), 1.0, 1), 1, f),
    "SlicedRowsMechanism": lambda f: SlicedRowsMechanism(2, 1, f),
    "ForwardAggregateMechanism": lambda f: ForwardAggregateMechanism(f, 2),
    "ClippedGradientMechanism": lambda f: ClippedGradientMechanism(f, (2,), 1.0),
}


@pytest.mark.parametrize("taker", TAKERS)
def test_bare_functions_are_refused(taker):
    with pytest.raises(TypeError, match=rf"{taker} takes a \w+Function.*got function\. Write"):
        TAKERS[taker](identity)


@pytest.mark.parametrize("kind", [RecordFunction, PullingFunction, BatchFunction])
def test_attributes_that_cannot_be_called_are_none(kind):
    with pytest.raises(TypeError, match="takes a function"):
        kind(np.ones(3))


def test_it_fails_for_a_record_and_for_no_other_and_says_nothing():
    def function(rows, y):
        assert y is None
        if (rows > 5).any():
            warnings.warn(f"{rows}", stacklevel=2)
            raise ValueError(f"{rows}")
        return rows, lambda cotangents: 1 / 0 if (rows < -5).any() else rows * cotangents

    rows = torch.tensor([[1.0, 2.0], [9.0, 0.0], [-9.0, 0.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, products = PullingFunction(function).with_products(rows, None)
        pulled = products(2 * torch.ones(3, 2), 2)
    assert found.isnan().any(1).tolist() == [False, True, False]
    assert pulled.isnan().any(1).tolist() == [False, True, True]
    assert pulled[0].tolist() == [2.0, 4.0]


def test_a_function_of_a_batch_fails_quietly_and_as_a_whole():
    for bad in (lambda rows: 1 / 0, lambda rows: rows.sum(), lambda rows: "Smith"):
        assert not BatchFunction(bad).on(torch.ones(4, 3), shape=(3,)).any()
    total = BatchFunction(lambda rows: rows.sum(0)).on(torch.ones(4, 3), shape=(3,))
    assert total.tolist() == [4.0, 4.0, 4.0]


def test_the_width_is_that_of_a_public_row_of_zeros():
    seen = []

    def function(rows):
        seen.append(rows.copy())
        return np.hstack([rows, rows])

    doubled, rows = RecordFunction(function), np.ones((4, 3))
    assert doubled.width_on(rows) == doubled.on(rows, width=6).shape[1] == 6
    # Once; then no more.
    assert [len(block) for block in seen] == [1, 4]
    assert not seen[0].any()
    # Rows of another width are other rows.
    assert doubled.on(np.ones((4, 1))).tolist() == [[1.0, 1.0]] * 4
    with pytest.raises(ValueError, match="must give 5 numbers for each"):
        doubled.on(rows, width=5)
    with pytest.raises(ValueError, match="must give a row for each") as caught:
        RecordFunction(lambda rows: 1 / 0).width_on(rows)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.catches("data.record_functions:_alone", "alone[i] = block[i]", "alone[0] = block[i]")
def test_records_keep_their_places_where_the_function_fails_for_others():
    """A row may follow from how many there are, and from which of them it is."""
    places = np.arange(5.0)[:, None]

    def function(rows):
        if (rows < 0).any():
            raise ValueError
        return rows + places[: len(rows)]

    rows = np.array([[1.0], [2.0], [-1.0], [4.0], [5.0]])
    found = RecordFunction(function).on(rows)[:, 0].tolist()
    assert found[:2] + found[3:] == [1.0, 3.0, 7.0, 9.0]
    assert np.isnan(found[2])


@pytest.mark.catches(
    "data.record_functions:_clear_frames",
    "error.__cause__ or error.__context__",
    "error.__cause__",
    param="False",
)
@pytest.mark.parametrize("is_caused", [False, True])
def test_errors_keep_nothing_of_the_frames_that_they_came_through(is_caused):
    """Nor do errors that they were raised from, or while handling."""

    def fail(row):
        raise KeyError("no such row")

    def handle(row):
        try:
            fail([*row])
        except KeyError as error:
            if is_caused:
                raise ValueError("it failed") from error
            raise ValueError("it failed")  # noqa: B904

    with pytest.raises(ValueError, match="it failed") as raised, clears_frames():
        handle(["Smith"])
    errors = [raised.value, raised.value.__context__]
    names, held = [], []
    for error in errors:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if frame.f_code.co_name in ("fail", "handle"):
                names.append(frame.f_code.co_name)
                held += frame.f_locals
    assert names == ["handle", "handle", "fail"]
    assert not held


def test_whole_numbers_become_nan_where_the_function_fails():
    def signs(rows):
        if (rows > 5).any():
            raise ValueError("More than five.")
        return torch.as_tensor(np.sign(rows)).long()

    rows = RecordFunction(signs).on(np.array([[1.0, 2.0], [9.0, 9.0]]))
    assert rows[0].tolist() == [1, 1]
    assert rows[1].isnan().all()


@pytest.mark.catches(
    "data.record_functions:drops_errors.__exit__",
    "cls is not None and not issubclass(cls, INTERRUPTS)",
    "cls is not None",
)
@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_interrupts_are_not_dropped(kind):
    def end():
        raise kind

    with pytest.raises(kind):
        call_quietly(end)
