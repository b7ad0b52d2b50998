"""Validation of private rows and labels: clear errors that quote nothing."""

import decimal
import enum
import re
import warnings
import weakref

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import sparse
from sklearn.base import BaseEstimator

from skdpgen.curator.dataset import Dataset
from skdpgen.data.containers import adapt
from skdpgen.data.inputs import check_labels, check_rows, encode_labels, parse_rows, read_rows
from skdpgen.exceptions import FitQualityWarning
from skdpgen.privacy import PrivacyLeakWarning

NAME, NUMBER = "Smith", 271828.125
BAD = [NAME, "271828", "1999"]


def messages(error):
    """Everything that a traceback would print of an error."""
    texts, queue = [], [error]
    while queue:
        error = queue.pop()
        if error is not None:
            texts += [str(error), repr(error), *getattr(error, "__notes__", [])]
            queue += [error.__cause__, error.__context__]
    return "\n".join(texts)


def column(*values):
    return pd.Series(values, dtype=object)


class Raises:
    def __float__(self):
        raise KeyError(NAME)


BAD_ROWS = {
    "strings": (np.array([[NAME, "1"], ["2", "3"]]), "not numbers"),
    "bytes": (np.array([[b"Smith", b"1"]]), "not numbers"),
    "object cells": (np.array([[1, NAME]], dtype=object), "not numbers"),
    "list": ([[NAME, NUMBER], [3, 4]], "not numbers"),
    "frame": (pd.DataFrame({"age": [1, 2], "name": [NAME, "x"]}), r"columns: \['name'\]"),
    "category": (pd.DataFrame({"name": pd.Series([NAME], dtype="category")}), "not numbers"),
    "string dtype": (pd.DataFrame({"name": pd.Series([NAME], dtype="string")}), "not numbers"),
    "missing object": (pd.DataFrame({"a": column(1, pd.NA), "b": [NAME, "5"]}), "."),
    "missing object after": (pd.DataFrame({"b": column(NAME, "5"), "a": column(1, pd.NA)}), "."),
    "dict": (np.array([[{NAME: NUMBER}]], dtype=object), "not numbers"),
    "raises": (np.array([[Raises()]], dtype=object), "not numbers"),
    "complex": (np.array([[NUMBER + 1j]]), "Complex data not supported"),
    "complex frame": (pd.DataFrame({"a": [NUMBER + 1j]}), "Complex data not supported"),
    "complex object": (np.array([[NUMBER + 1j]], dtype=object), "not numbers"),
    "sparse frame": (
        pd.DataFrame({"a": pd.arrays.SparseArray([NUMBER, np.nan])}),
        "Sparse columns are no array",
    ),
    "1-D": (np.full(3, NUMBER), r"Reshape your data: X.reshape\(-1, 1\)"),
    "series": (pd.Series([NUMBER, 1]), "Expected 2D array, got an array with 1 dimensions"),
    "5-D": (np.full((2, 2, 2, 2, 2), NUMBER), "5 dimensions"),
    "scalar": (NUMBER, "got [a-z]+. Give a DataFrame"),
    "text": (NAME, "got str. Give a DataFrame"),
    "ragged": ([[NUMBER, 2], [3]], "1 dimensions"),
    "sparse": (sparse.csr_array([[NUMBER]]), "Sparse data was passed"),
    "NaN": (np.array([[NUMBER, np.nan]]), "contains NaN"),
    "missing": (pd.DataFrame({"a": pd.Series([1, pd.NA], dtype="Int64")}), "contains NaN"),
    "infinite": (np.array([[NUMBER, np.inf]]), "or infinity"),
    "huge": (np.array([[10**400 * 271828, 1]], dtype=object), "too large"),
    "interval": (pd.DataFrame({"a": pd.interval_range(1999, 2001)}), "not numbers"),
    "no rows": (np.empty((0, 3)), "0 sample"),
    "no columns": (np.empty((3, 0)), "0 feature"),
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_bad_rows_are_refused_without_quoting_them(name):
    X, message = BAD_ROWS[name]
    with pytest.raises((ValueError, TypeError, OverflowError), match=message) as caught:
        read_rows(BaseEstimator(), X)
    assert not [bad for bad in BAD if bad in messages(caught.value)]


@pytest.mark.parametrize(
    ("X", "dtype"),
    [
        (np.ones((2, 2), np.float32), np.float32),
        (np.ones((2, 2)), np.float64),
        (np.ones((2, 2), np.int8), np.float64),
        (np.ones((2, 2), bool), np.float64),
        ([[1, 2]], np.float64),
        (np.array([[1, 2.5]], dtype=object), np.float64),
        (pd.DataFrame({"a": [1], "b": [2.5]}), np.float64),
        (pd.DataFrame({"a": pd.Series([1, 2], dtype="Int64")}), np.float64),
    ],
)
def test_numbers_are_read(X, dtype):
    read = read_rows(BaseEstimator(), X)
    assert read.dtype == dtype
    assert (read == np.asarray(X, dtype=float)).all()


def test_floats_are_not_copied():
    X = np.ones((3, 2), np.float32)
    assert np.shares_memory(read_rows(BaseEstimator(), X), X)


def test_the_number_of_features_is_kept():
    estimator = BaseEstimator()
    read_rows(estimator, np.ones((2, 3)))
    with pytest.raises(ValueError, match=r"has 2 features, but .* is expecting 3"):
        read_rows(estimator, np.ones((2, 2)), reset=False)


# --- labels --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "found"),
    [
        (np.array([3, 1, 3]), [1, 3]),
        (np.array([3, 1, 3], np.uint8), [1, 3]),
        ([True, False, True], [False, True]),
        (["b", "a", "b"], ["a", "b"]),
        (np.array(["b", "a", "b"], dtype=object), ["a", "b"]),
        (pd.Series(["b", "a", "b"], dtype="string"), ["a", "b"]),
        (pd.Series(["b", "a", "b"], dtype="category"), ["a", "b"]),
        (pd.Series([2, 1, 2], dtype="category"), [1, 2]),
        (pd.Series([2.5, 1.5, 2.5], dtype="category"), [1.5, 2.5]),
        (pd.Series([2, 1, 2], dtype="Int64"), [1, 2]),
    ],
    ids=lambda value: str(getattr(value, "dtype", "")),
)
def test_classes_are_found_with_a_warning(y, found):
    with pytest.warns(PrivacyLeakWarning, match="inferred from y") as caught:
        read, classes, inferred = check_labels(y, 3)
    assert (classes.tolist(), inferred) == (found, True)
    assert list(read) == list(y)
    assert len(caught) == 1


@pytest.mark.parametrize("dtype", [np.float64, np.float32, "Float64"])
def test_floats_are_numbers(dtype):
    y = pd.Series([0.5, 1, 2], dtype=dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read, classes, inferred = check_labels(y, 3, are_numbers=True)
    assert read.dtype == np.float64
    assert read.tolist() == [0.5, 1, 2]
    assert (classes, inferred) == (None, False)


@pytest.mark.parametrize("labels", [[0.0, 1.0, 1.0], [0.5, np.nan, 2.0]])
def test_floats_are_said_to_be_taken_for_numbers_by_their_dtype_alone(labels):
    with pytest.warns(
        FitQualityWarning, match=r"y holds floats and is taken for numbers.*classes=\["
    ):
        check_labels(np.array(labels), 3)


@pytest.mark.parametrize(
    ("y", "declared"),
    [
        ([1.0, 0.0], [0.0, 1.0, 2.0]),
        ([1, 0], [0, 1]),
        (["b", "b"], ["c", "b", "a"]),
        (np.array(["b", "b"], dtype=object), ["b"]),
    ],
)
def test_declared_classes_are_kept_in_their_order_and_silently(y, declared):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read, classes, inferred = check_labels(y, 2, declared)
    assert list(read) == list(y)
    assert (classes.tolist(), inferred) == (declared, False)


def test_no_labels():
    assert check_labels(None, 5) == (None, None, False)


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        (None, {"classes": [1, 2]}, "y is None; pass the labels"),
        (np.array([NAME, "a"]), {"classes": [1, 2]}, "y holds texts, and classes are numbers"),
        (np.array([271828, 1]), {"classes": ["a"]}, "y holds numbers, and classes are texts"),
        ([1, 2], {"classes": [1, 2, 2]}, "distinct labels"),
        ([1, 2], {"classes": []}, "distinct labels"),
        ([1, 2], {"classes": [[1, 2]]}, "1-dimensional list"),
        (np.array([None, None], dtype=object), {}, "missing values only"),
        (np.array([NAME, 271828], dtype=object), {}, "mixes labels of different types"),
        (np.array([NUMBER + 1j, 1]), {}, "has dtype complex128"),
        (np.array(["1999-01-01", "2001-01-01"], "M8[D]"), {}, "got dtype datetime64"),
        ([[NUMBER, 1], [2, 3]], {}, r"got an array of shape \(2, 2\)"),
        ([271828], {}, "inconsistent numbers of samples"),
    ],
)
@pytest.mark.filterwarnings("ignore::skdpgen.privacy.PrivacyLeakWarning")
def test_bad_labels_are_refused_without_quoting_them(y, options, message):
    with pytest.raises((ValueError, TypeError), match=message) as caught:
        check_labels(y, 2, **options)
    assert not [bad for bad in BAD if bad in messages(caught.value)]


@pytest.mark.catches(
    "data.labels:check_length", "len(y) != n_rows", 'len(y) != n_rows and int(f"{n_rows} rows")'
)
def test_numbers_of_rows_and_labels_are_not_told():
    """That of rows is private where they are of persons."""
    with pytest.raises(ValueError, match="one entry for each row") as caught:
        check_labels([0] * 28, 31, [0, 1])
    assert not re.search("28|31", str(caught.value))


@pytest.mark.catches(
    "curator.dataset:Dataset.release_ownership", "self._held.pop()", "self._held[-1]"
)
@pytest.mark.parametrize(
    "make",
    [
        lambda X: Dataset.of(X),
        lambda X: Dataset.of(X).validate_array(BaseEstimator()),
        lambda X: Dataset.of(X, persons=np.arange(5), max_rows=2).validate_array(BaseEstimator()),
    ],
)
def test_datasets_are_handed_over_once_and_held_by_nobody_then(make):
    X = np.ones((5, 2))
    held = weakref.ref(X)
    dataset = make(X)
    del X
    handed = dataset.release_ownership()
    assert held() is handed[0]
    with pytest.raises(IndexError):
        dataset.release_ownership()
    del handed
    assert held() is None


@pytest.mark.parametrize(
    ("classes", "match"),
    [(3, "list of labels"), ([0, 1, np.nan], "missing"), (["a", 1], "different types")],
)
def test_bad_classes(classes, match):
    with pytest.raises(ValueError, match=match):
        check_labels(np.array([0, 1]), 2, classes)


@pytest.mark.parametrize(
    "y",
    [
        [NAME, "a"],
        [1, "a"],
        [["a"], "a"],
        [np.nan, None],
        np.array([NAME, None], dtype=object),
        pd.Series([NAME, pd.NA], dtype="string"),
    ],
)
def test_labels_that_were_not_declared_say_nothing(y):
    read, classes, inferred = check_labels(y, 2, ["a", "b"])
    assert len(read) == 2
    assert classes.tolist() == ["a", "b"]
    assert not inferred


def test_missing_labels_are_no_class():
    with pytest.warns(PrivacyLeakWarning):
        _, classes, _ = check_labels(pd.Series([3, pd.NA], dtype="Int64"), 2)
    assert classes.tolist() == [3]
    read, classes, _ = check_labels([0.5, np.nan], 2)
    assert classes is None
    assert np.isnan(read[1])


@pytest.mark.parametrize(
    ("labels", "levels", "found"),
    [
        ([1, 2, [3], "a", None, np.nan, True], [1, 2, "a"], [0, 1, -1, 2, -1, -1, 0]),
        ([decimal.Decimal(1), np.str_("a"), ("a",), {1: 1}], [1, "a"], [0, 1, -1, -1]),
        ([decimal.Decimal("sNaN"), 10**400, Raises(), "a"], [1, "a"], [-1, -1, -1, 1]),
    ],
)
def test_labels_are_looked_up_one_by_one(labels, levels, found):
    array = np.empty(len(labels), dtype=object)
    array[:] = labels
    assert encode_labels(array, levels).tolist() == found
    assert [encode_labels(array[i : i + 1], levels).item() for i in range(len(labels))] == found


@pytest.mark.parametrize("dtype", [np.float16, np.longdouble, ">f8"])
def test_labels_of_rare_dtypes_are_looked_up(dtype):
    read, classes, _ = check_labels(np.array([2, 3], dtype), 2, [2, 1])
    assert encode_labels(read, classes).tolist() == [0, -1]


def test_numbers_in_a_list_are_read_one_by_one():
    y, classes, _ = check_labels([0.5, "Smith", None, [1], 2], 5, are_numbers=True)
    assert classes is None
    np.testing.assert_array_equal(y, [0.5, np.nan, np.nan, np.nan, 2])


@pytest.mark.parametrize("cell", [None, "Smith", [1, 2], ["a", "b"]])
def test_cells_of_a_list_do_not_change_its_shape(cell):
    assert check_rows(BaseEstimator(), [[cell, 1.0], [cell, 2.0]]).shape == (2, 2)
    read, _, _ = check_labels([cell, cell], 2, ["a", "b"])
    assert read.shape == (2,)


IMAGES = np.arange(24.0).reshape(3, 2, 4)


@pytest.mark.parametrize(
    "X",
    [IMAGES.tolist(), [list(image) for image in IMAGES], [(row,) for row in IMAGES[0]]],
)
def test_rows_of_several_dimensions_are_refused_by_their_shape(X):
    with pytest.raises(ValueError, match=r"np\.reshape\(X, \(len\(X\), -1\)\)"):
        check_rows(BaseEstimator(), X)


def test_rows_that_are_arrays_are_rows():
    rows = np.empty(2, dtype=object)
    rows[:] = list(IMAGES[0])
    for X in (
        rows,
        list(IMAGES[0]),
        list(torch.as_tensor(IMAGES[0])),
        [*map(pd.Series, IMAGES[0])],
    ):
        np.testing.assert_array_equal(parse_rows(check_rows(BaseEstimator(), X)), IMAGES[0])


class _Ward(enum.Enum):
    A = 1


@pytest.mark.parametrize("label", [("a", 1), [1], {1}, {"a": 1}, np.ones(2), _Ward.A])
def test_inferred_labels_that_are_no_scalars_are_refused(label):
    y = np.empty(2, dtype=object)
    y[:] = [label, label]
    with pytest.raises(ValueError, match="labels that are no scalars"):
        check_labels(y, 2)


def test_numbers_that_do_not_fit_the_dtype_are_infinite_without_a_word():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        taken = check_rows(BaseEstimator(), np.array([[np.longdouble("1e400"), 1]]))
    assert np.isinf(taken[0, 0])


def test_complex_cells_are_no_numbers():
    with pytest.raises(TypeError, match="not numbers"):
        parse_rows(np.array([[np.complex128(1 + 2j)]], dtype=object))


@pytest.mark.catches("data.inputs:_to_native", "muted(RuntimeWarning)", "muted(DeprecationWarning)")
@pytest.mark.catches(
    "data.containers:_to_array", "muted(RuntimeWarning)", "muted(DeprecationWarning)"
)
@pytest.mark.skipif(np.finfo(np.longdouble).max == np.finfo(float).max, reason="no long double")
def test_numbers_that_are_too_large_make_numpy_not_warn():
    """A warning would tell that such a cell is there."""
    large = np.array([1, 2, np.longdouble("1e4000")])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y, *_ = check_labels(large, 3, are_numbers=True)
        X = adapt(np.ma.MaskedArray(large)).data
    assert y.tolist() == X.tolist() == [1, 2, np.inf]
    assert not caught


def test_labels_of_other_dtypes_are_compared_as_python_does():
    assert encode_labels(np.array([0.0, 1.0, 0.5, np.nan]), [0, 1]).tolist() == [0, 1, -1, -1]
    assert encode_labels(np.array([True, False]), [0, 1]).tolist() == [1, 0]
    assert encode_labels(np.array(["b", "c"]), ["a", "b"]).tolist() == [1, -1]


@pytest.mark.parametrize(
    ("X", "is_open"),
    [
        (np.array([[1.0, np.nan]]), False),
        (np.array([[np.inf, 1.0]], np.float32), False),
        (np.array([[1, NAME]], dtype=object), True),
        ([[1, NAME]], True),
        (pd.DataFrame({"a": pd.Series([1, pd.NA], dtype="Int64")}), False),
    ],
)
def test_rows_are_taken_without_a_look_at_their_cells(X, is_open):
    taken = check_rows(BaseEstimator(), X)
    assert (taken.dtype == object) == is_open
    if is_open:
        with pytest.raises(ValueError, match="not numbers") as caught:
            parse_rows(taken)
        assert NAME not in messages(caught.value)


def test_numbers_that_are_too_large_are_not_finite():
    X = np.array([[1, 10**400], [None, pd.NA], ["2.5", np.float32(3)]], dtype=object)
    expected = [[1, np.nan], [np.nan, np.nan], [2.5, 3]]
    np.testing.assert_array_equal(parse_rows(X), expected)
    # Each cell by itself.
    alone = [[parse_rows(np.array([[cell]], dtype=object)).item() for cell in row] for row in X]
    np.testing.assert_array_equal(alone, expected)


def test_many_integers_are_not_taken_for_classes():
    with pytest.raises(ValueError, match="more than 100 different labels"):
        check_labels(np.arange(101), 101)


def test_declared_classes_come_back_in_the_dtype_of_y():
    _, classes, _ = check_labels(np.array([0, 1], dtype=np.int32), 2, [0, 1])
    assert classes.dtype == np.int32


def test_duplicate_columns():
    frame = pd.DataFrame([[1.0, 2.0]], columns=["a", "a"])
    with pytest.raises(ValueError, match="same name"):
        read_rows(BaseEstimator(), frame)
