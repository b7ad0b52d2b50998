# SPDX-License-Identifier: BSD-3-Clause
"""Scores of synthetic rows by the classifiers that are trained on them."""

import numpy as np
import pandas as pd
import torch
from sklearn.compose import make_column_transformer
from sklearn.exceptions import ConvergenceWarning
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, roc_auc_score
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from torch import nn

from .._process.isolation import isolated
from .._process.muting import muted
from ..arrays.image_layout import ImageLayout
from ..checks import check_choice
from ..data.containers import as_array
from ..data.labels import check_order
from ..learners.training import Descent
from ._columns import as_table, read_alike

_CLASSIFIERS = ("logistic", "mlp", "cnn")
_METRICS = ("accuracy", "roc_auc")
# Cap of the logistic regression, so that the protocol takes seconds.
_MAX_LOGISTIC_ROWS = 10_000
# Training of the convolutional classifier, as the docstring of the protocol states it.
_N_EPOCHS, _BATCH_SIZE = 6, 64


@isolated()
def train_on_synthetic_score(
    X_syn,
    y_syn,
    X_test,
    y_test,
    classifier: str = "logistic",
    metric: str = "accuracy",
    random_state=None,
) -> float:
    """Train a classifier on synthetic rows, and return its score on real test rows.

    The protocol is fixed, so that scores are comparable between generators. The synthetic rows are
    shuffled; then

    - ``"logistic"`` fits ``LogisticRegression(max_iter=60)`` to the first 10,000 of them;
    - ``"mlp"`` fits ``MLPClassifier((100,), max_iter=15)`` to all;
    - ``"cnn"`` fits to all, by 6 epochs of Adam (learning rate 1e-3, batches of 64), a network of
      two 3 × 3 convolutions (32 and 64 channels), each with ReLU and 2 × 2 max pooling, then
      dropout 0.25, 128 units with ReLU, dropout 0.5, and the classes.

    The solvers may stop before convergence, as part of the protocol; ``ConvergenceWarning`` is
    muted.

    Parameters
    ----------
    X_syn : array-like or DataFrame of shape (n_synthetic, n_features)
        Synthetic rows. Arrays are not transformed. DataFrames are encoded by the synthetic rows:
        numeric columns are imputed by the median and standardised, others are one-hot encoded;
        values that occur in `X_test` only are encoded as zeros.
    y_syn : array-like of shape (n_synthetic,)
        Their classes: numbers or strings.
    X_test : array-like or DataFrame of shape (n_test, n_features)
        Real rows. They are read outside of any privacy ledger: they must be public, or a held-out
        set whose scores are not released.
    y_test : array-like of shape (n_test,)
        Their classes.
    classifier : {"logistic", "mlp", "cnn"}, default="logistic"
        ``"cnn"`` is for images, or flat rows of square ones: side² features if grey, 3 · side² if
        RGB with channels first; sides are at least 4.
    metric : {"accuracy", "roc_auc"}, default="accuracy"
        ``"roc_auc"`` is that of the second of two classes, else the macro average of one versus
        rest over the classes of `y_test`.
    random_state : int, RandomState instance or None, default=None
        Seed of shuffling and initialisation. The global generators of NumPy and PyTorch are
        neither read nor changed.

    Returns
    -------
    score : float
        In [0, 1]; higher is better. A class without synthetic rows is never predicted; with a
        single class, the prediction is constant.

    Raises
    ------
    ValueError
        If `classifier` or `metric` is unknown; if there are no rows; if the two sets differ in
        columns, or in the type of their classes; if arrays or classes have missing values; if rows
        are no square images for ``"cnn"``; if `y_test` has a single class and the metric is
        ``"roc_auc"``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skdpgen.evaluation import train_on_synthetic_score
    >>> X, y = load_iris(return_X_y=True)
    >>> score = train_on_synthetic_score(X[::2], y[::2], X[1::2], y[1::2], random_state=0)
    >>> score > 0.9
    True
    """
    check_choice("classifier", classifier, _CLASSIFIERS)
    check_choice("metric", metric, _METRICS)
    check_order(X_syn, y_syn, "y_syn")
    check_order(X_test, y_test, "y_test")
    X_syn, X_test = _check_rows(X_syn, X_test, classifier)
    y_syn, y_test = _check_labels(X_syn, y_syn), _check_labels(X_test, y_test)
    # Numbers never equal texts, so that each row would count as wrong.
    if (y_syn.dtype.kind in "US") != (y_test.dtype.kind in "US"):
        raise ValueError("y_syn and y_test must both hold numbers or both hold strings.")
    test_classes = np.unique(y_test)
    if metric == "roc_auc" and len(test_classes) == 1:
        raise ValueError("roc_auc is not defined: y_test has one class only.")

    # check_random_state(None) would return NumPy's global generator.
    rng = np.random.RandomState() if random_state is None else check_random_state(random_state)
    # Shuffled before the cut, since synthetic rows may be sorted by class.
    order = rng.permutation(len(y_syn))
    if classifier == "logistic":
        order = order[:_MAX_LOGISTIC_ROWS]
    seed = int(rng.randint(2**31 - 1))

    classes, codes = np.unique(y_syn[order], return_inverse=True)
    # Classifiers refuse one class; a generator that has collapsed must still get its low score.
    if len(classes) == 1:
        probabilities = np.ones((len(y_test), 1))
    elif isinstance(X_syn, pd.DataFrame):
        X_train, X_test = _encode(X_syn.iloc[order], X_test)
        probabilities = _fit_predict(X_train, codes, X_test, classifier, seed)
    else:
        probabilities = _fit_predict(X_syn[order], codes, X_test, classifier, seed)

    if metric == "accuracy":
        return float(accuracy_score(y_test, classes[probabilities.argmax(axis=1)]))
    return _roc_auc(y_test, test_classes, probabilities, classes)


def _check_rows(X_syn, X_test, classifier: str):
    """Return two checked arrays of floats, or two DataFrames with the same columns."""
    X_syn, X_test = as_array(X_syn), as_array(X_test)
    is_table = isinstance(X_syn, pd.DataFrame)
    if is_table != isinstance(X_test, pd.DataFrame):
        raise ValueError("X_syn and X_test must both be DataFrames or both be arrays.")
    if is_table and classifier == "cnn":
        raise ValueError("classifier='cnn' takes arrays of images, not DataFrames.")
    if is_table:
        if len(X_syn) == 0 or len(X_test) == 0:
            raise ValueError("X_syn and X_test need at least one row each.")
        if len(X_syn.columns) != len(X_test.columns) or set(X_syn) != set(X_test):
            raise ValueError("X_syn and X_test must have the same columns.")
        return as_table(X_syn), as_table(X_test)
    names, floats = ("X_syn", "X_test"), [np.float64, np.float32]
    X_syn, X_test, record_shape = read_alike(X_syn, X_test, names, dtype=floats)
    if classifier != "cnn":
        return X_syn, X_test
    layout = ImageLayout.of(X_syn.shape[1], record_shape=record_shape)
    shape = layout.image_shape
    if shape is None or min(shape[1:]) < 4:
        raise ValueError(
            "classifier='cnn' takes images of sides of 4 or more, or rows that are square images, "
            f"grey or RGB; got {X_syn.shape[1]} features."
        )
    return tuple(layout.arrange(rows).reshape(-1, *shape) for rows in (X_syn, X_test))


def _check_labels(X, y) -> np.ndarray:
    y = column_or_1d(y)
    check_consistent_length(X, y)
    if pd.isna(y).any():
        raise ValueError("y_syn and y_test must not have missing values.")
    # Through a list, object arrays get the dtype of their values.
    y = np.array(y.tolist())
    check_classification_targets(y)
    return y


def _encode(table: pd.DataFrame, test_table: pd.DataFrame):
    """Return one-hot encoded and standardised columns, fitted to the first table."""
    is_numeric = {name: pd.api.types.is_numeric_dtype(table[name]) for name in table}
    numeric = [name for name in table if is_numeric[name]]
    others = [name for name in table if not is_numeric[name]]
    encoder = make_column_transformer(
        # Empty columns are kept, so that the width depends on the shape of the table only.
        (
            make_pipeline(
                SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler()
            ),
            numeric,
        ),
        (OneHotEncoder(handle_unknown="ignore"), others),
    )
    # As strings, a category and a plain column with the same values are equal.
    dtypes = {name: np.float64 if is_numeric[name] else str for name in table}
    return encoder.fit_transform(table.astype(dtypes)), encoder.transform(test_table.astype(dtypes))


def _fit_predict(X, codes, X_test, classifier: str, seed: int) -> np.ndarray:
    """Return probabilities of the classes 0, ..., n_classes - 1 for each test row."""
    if classifier == "cnn":
        return _cnn(X, codes, X_test, seed)
    if classifier == "mlp":
        model = MLPClassifier((100,), max_iter=15, random_state=seed)
    else:
        model = LogisticRegression(max_iter=60)
    with muted(ConvergenceWarning):
        return model.fit(X, codes).predict_proba(X_test)


def _cnn(X, codes, X_test, seed: int) -> np.ndarray:
    images, test_images = (torch.as_tensor(rows, dtype=torch.float32) for rows in (X, X_test))
    channels, height, width = images.shape[1:]
    n_pooled = (height // 4) * (width // 4)
    labels = torch.as_tensor(codes)
    with isolated(seed):
        # A plain network, so that differences of scores come from the rows.
        model = nn.Sequential(
            *(nn.Conv2d(channels, 32, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(32, 64, 3, padding="same"), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Flatten(), nn.Dropout(0.25), nn.Linear(64 * n_pooled, 128), nn.ReLU()),
            *(nn.Dropout(0.5), nn.Linear(128, int(codes.max()) + 1)),
        )
        descent = Descent(model.parameters(), 1e-3, warm_up=1)
        for _ in range(_N_EPOCHS):
            for batch in torch.randperm(len(labels)).split(_BATCH_SIZE):
                loss = nn.functional.cross_entropy(model(images[batch]), labels[batch])
                descent.step(loss, 1.0)
    model.eval()
    with torch.no_grad():
        # In blocks, so that memory does not grow with the test set.
        logits = torch.cat([model(batch) for batch in test_images.split(1000)])
    return logits.double().softmax(dim=1).numpy()


def _roc_auc(y_test, test_classes, probabilities, classes) -> float:
    """Return the area under the curve, given the probabilities of the learned classes."""
    n_classes = len(np.union1d(test_classes, classes))
    zeros = np.zeros(len(y_test))
    columns = dict(zip(classes.tolist(), probabilities.T, strict=True))
    # With two classes one suffices; 1 - p of the other would round small p to ties.
    scored = test_classes[1:] if n_classes == 2 else test_classes
    return float(
        np.mean([roc_auc_score(y_test == c, columns.get(c, zeros)) for c in scored.tolist()])
    )
