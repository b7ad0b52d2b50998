"""Scores of classifiers that are trained on synthetic rows."""

import warnings

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from skdpgen.evaluation import train_on_synthetic_score

CLASSIFIERS = ["logistic", "mlp", "cnn"]


@pytest.fixture(scope="module")
def digits():
    """X_train, X_test, y_train, y_test of 8 × 8 images."""
    X, y = load_digits(return_X_y=True)
    return train_test_split(X, y, test_size=0.25, random_state=0, stratify=y)


@pytest.fixture
def blobs():
    """Two classes, four features, the classes far apart."""
    rng = np.random.default_rng(0)
    y = np.arange(200) % 2
    return rng.normal(size=(200, 4)) + 4 * y[:, None], y


def table_of(y, seed):
    """A table whose columns tell the class, each in a part of the rows only."""
    rng = np.random.default_rng(seed)
    number = np.where(rng.random(len(y)) < 0.5, 1000.0 * y, np.nan)
    kind = np.where(rng.random(len(y)) < 0.5, np.array(["a", "b"])[y], "?")
    return pd.DataFrame({"number": number, "kind": kind, "noise": rng.integers(0, 9, len(y))})


# Scores.


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_real_rows_score_high(digits, classifier):
    X_train, X_test, y_train, y_test = digits
    score = train_on_synthetic_score(
        X_train, y_train, X_test, y_test, classifier=classifier, random_state=0
    )
    assert isinstance(score, float)
    assert 0.9 < score < 1


@pytest.mark.parametrize("classifier", CLASSIFIERS)
@pytest.mark.parametrize(("metric", "chance"), [("accuracy", 0.1), ("roc_auc", 0.5)])
def test_shuffled_labels_score_near_chance(digits, classifier, metric, chance):
    X_train, X_test, y_train, y_test = digits
    rng = np.random.default_rng(0)
    score = train_on_synthetic_score(
        X_train, rng.permutation(y_train), X_test, y_test, classifier, metric, random_state=0
    )
    # An accuracy on 450 rows has a standard error of 0.014 by chance.
    assert abs(score - chance) < 0.1


def test_rgb_images():
    # The class is the brightest channel.
    rng = np.random.default_rng(0)
    y = np.arange(600) % 3
    X = rng.random((600, 3, 8, 8))
    X[np.arange(600), y] += 0.5
    X = X.reshape(600, -1)
    score = train_on_synthetic_score(X[:400], y[:400], X[400:], y[400:], "cnn", random_state=0)
    assert score > 0.9


def test_logistic_reads_10_000_rows_at_most(monkeypatch, blobs):
    X, y = blobs
    seen = []
    fit = LogisticRegression.fit

    def spy(self, X, y):
        seen.append(X[:, 0])
        return fit(self, X, y)

    monkeypatch.setattr(LogisticRegression, "fit", spy)
    X_syn = np.tile(X, (52, 1))
    X_syn[:, 0] += 1e-6 * np.arange(len(X_syn))  # no two rows alike
    for seed in (0, 1):
        train_on_synthetic_score(X_syn, np.tile(y, 52), X, y, random_state=seed)
    assert [len(np.unique(rows)) for rows in seen] == [10_000, 10_000]
    assert set(seen[0]) != set(seen[1])
    assert set(seen[0]) <= set(X_syn[:, 0])


# Metrics.


@pytest.mark.parametrize("n_classes", [2, 3])
def test_roc_auc_is_that_of_scikit_learn(monkeypatch, n_classes):
    # The test rows are the predictions themselves, some so small that 1 - p rounds to 1.
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, 60)
    P = (rng.dirichlet(np.ones(n_classes), size=60) + np.eye(n_classes)[y]) / 2
    if n_classes == 2:
        P[:, 1] = (0.3 * y + rng.random(60) * 0.7) ** 40
        P[:, 0] = 1 - P[:, 1]
    monkeypatch.setattr(LogisticRegression, "predict_proba", lambda self, X: X)
    labels = np.array(["a", "b", "c"])[y]
    expected = roc_auc_score(y, P[:, 1] if n_classes == 2 else P, multi_class="ovr")
    score = train_on_synthetic_score(P, labels, P, labels, metric="roc_auc")
    assert score == pytest.approx(expected, abs=1e-12)
    assert train_on_synthetic_score(P, labels, P, labels) == np.mean(P.argmax(axis=1) == y)


# Classes that are missing, and labels of any kind.


@pytest.mark.parametrize("classifier", CLASSIFIERS)
@pytest.mark.parametrize("labels", [np.arange(10), np.array(list("abcdefghij"))])
def test_one_class_only_is_a_constant_prediction(digits, classifier, labels):
    X, X_test, _, y_test = digits
    y_test = labels[y_test]
    y_syn = np.full(20, labels[3])
    score = train_on_synthetic_score(X[:20], y_syn, X_test, y_test, classifier)
    assert score == np.mean(y_test == labels[3])
    assert train_on_synthetic_score(X[:20], y_syn, X_test, y_test, classifier, "roc_auc") == 0.5


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_some_classes_missing(digits, classifier):
    X, X_test, y, y_test = digits
    kept = np.isin(y, [2, 5, 7])
    args = X[kept], y[kept], X_test, y_test, classifier
    found = np.isin(y_test, [2, 5, 7]).mean()
    assert 0.8 * found < train_on_synthetic_score(*args, random_state=0) <= found
    # The seven missing classes count 0.5 each, the others near 1.
    auc = train_on_synthetic_score(*args, metric="roc_auc", random_state=0)
    assert 0.6 < auc <= 0.65


def test_classes_that_the_test_rows_lack(blobs):
    X, y = blobs
    X_syn, y_syn = np.vstack([X, X - 20]), np.concatenate([y, np.full(len(y), 7)])
    for metric in ("accuracy", "roc_auc"):
        score = train_on_synthetic_score(X_syn, y_syn, X, y, metric=metric, random_state=0)
        assert score > 0.95


# Tables.


@pytest.mark.parametrize("classifier", ["logistic", "mlp"])
def test_tables_are_encoded(classifier):
    y, y_test = np.arange(600) % 2, np.arange(400) % 2
    table, test_table = table_of(y, 0), table_of(y_test, 1)
    test_table.loc[:9, "kind"] = "never seen"
    score = train_on_synthetic_score(table, y, test_table, y_test, classifier, random_state=0)
    # Both columns are silent on one row in four: each alone would leave more.
    assert 0.82 < score < 0.95
    shuffled = test_table[["noise", "kind", "number"]]
    again = train_on_synthetic_score(table, y, shuffled, y_test, classifier, random_state=0)
    assert again == score


def test_tables_with_categories_and_an_empty_column():
    y = np.arange(100) % 2
    plain = table_of(y, 0).assign(empty=np.nan)
    typed = plain.astype({"kind": "category", "noise": "Int64"})
    score = train_on_synthetic_score(plain, y, plain, y)
    assert score > 0.7
    assert train_on_synthetic_score(typed, y, plain, y) == score
    assert train_on_synthetic_score(plain, y, typed, y) == score


# Randomness.


@pytest.mark.parametrize("classifier", ["mlp", "cnn"])
def test_random_state_fixes_the_score(digits, classifier):
    X, X_test, y, y_test = digits
    scores = [
        train_on_synthetic_score(X[:200], y[:200], X_test, y_test, classifier, random_state=state)
        for state in (0, 0, np.random.RandomState(0), 1, 2, 3)
    ]
    assert scores[0] == scores[1] == scores[2]
    assert len(set(scores)) > 1


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_global_generators_and_filters_are_left_alone(digits, classifier):
    X, X_test, y, y_test = digits
    numpy_state, torch_state = np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train_on_synthetic_score(X[:100], y[:100], X_test, y_test, classifier)
    for before, after in zip(numpy_state, np.random.get_state(), strict=True):  # noqa: NPY002
        assert np.array_equal(before, after)
    assert torch.equal(torch_state, torch.get_rng_state())


def test_without_random_state_the_global_seeds_have_no_say(digits):
    X, X_test, y, y_test = digits
    scores = set()
    for _ in range(6):
        np.random.seed(0)  # noqa: NPY002
        scores.add(train_on_synthetic_score(X[:100], y[:100], X_test, y_test, "mlp"))
    assert len(scores) > 1


# Errors.

X = np.random.default_rng(0).random((6, 16))
Y = np.array([0, 1, 2, 0, 1, 2])
TABLE, LABELS = pd.DataFrame(X), pd.Series(Y)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((X, Y, X, Y, "svm"), "classifier must be one of .* got 'svm'"),
        ((X, Y, X, Y, "mlp", "f1"), "metric must be one of .* got 'f1'"),
        ((X, Y, X[:, :9], Y), "X_syn and X_test must have equally many columns"),
        ((X[:0], Y[:0], X, Y), "0 sample"),
        ((X, Y, X[:0], Y[:0]), "0 sample"),
        ((TABLE[:0], Y[:0], TABLE, Y), "at least one row"),
        ((TABLE, Y, TABLE[:0], Y[:0]), "at least one row"),
        ((X, Y[:5], X, Y), "inconsistent numbers of samples"),
        ((TABLE, LABELS[::-1], TABLE, Y), r"y_syn has the index .* Give y_syn.loc\[X.index\]"),
        ((TABLE, Y, TABLE, LABELS[::-1]), "y_test has the index of X in another order"),
        ((TABLE, Y, X, Y), "both be DataFrames or both be arrays"),
        ((TABLE, Y, TABLE.rename(columns={0: "a"}), Y), "same columns"),
        ((TABLE, Y, TABLE[[*range(16), 0]], Y), "same columns"),
        ((X, Y, X, Y.astype(str)), "both hold numbers or both hold strings"),
        ((X, np.linspace(0, 1, 6), X, Y), "continuous"),
        ((X, ["a", "b", None, "a", "b", "b"], X, list("aabbab")), "missing values"),
        ((np.where(X > 0.5, np.nan, X), Y, X, Y), "contains NaN"),
        ((X[:, :15], Y, X[:, :15], Y, "cnn"), "square images.*got 15 features"),
        ((X[:, :9], Y, X[:, :9], Y, "cnn"), "square images.*got 9 features"),
        ((TABLE, Y, TABLE, Y, "cnn"), "takes arrays of images"),
        ((X, Y, X, np.zeros(6), "logistic", "roc_auc"), "y_test has one class only"),
    ],
)
def test_errors(args, message):
    with pytest.raises(ValueError, match=message):
        train_on_synthetic_score(*args)
