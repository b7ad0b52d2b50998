# SPDX-License-Identifier: BSD-3-Clause
"""Target rows: kept whole by cross-validation, or told from source rows by their domain."""

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples

from ..exceptions import FitQualityWarning, find_callers, list_callers, warn_caller


class Whole(tuple):
    """Target rows that cross-validation passes on as a whole.

    Cross-validation slices every array in its ``params`` that has as many rows as X, which a target
    has only by coincidence. A wrapped target is passed to each fit unchanged. A pipeline with
    ``transform_input=["X_target"]`` transforms what is wrapped.

    Parameters
    ----------
    X_target : array-like or DataFrame of shape (n_target, n_features)
        Private rows.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.model_selection import cross_val_score
    >>> from skdpgen import DPSWFlowSampler
    >>> from skdpgen.adaptation import DPSWDDomainClassifier, Whole
    >>> rng = np.random.default_rng(0)
    >>> X, X_target = rng.normal(size=(60, 3)), rng.normal(size=(60, 3)) + 0.5
    >>> y = (X[:, 0] > 0).astype(int)
    >>> classifier = DPSWDDomainClassifier(
    ...     epsilon=1.0, delta=1e-3, sampler=DPSWFlowSampler(n_steps=20), n_steps=20
    ... )
    >>> whole = Whole(X_target)
    >>> scores = cross_val_score(classifier, X, y, cv=2, params={"X_target": whole})
    >>> scores.shape
    (2,)
    """

    # A tuple, of one element: scikit-learn's pipelines transform the elements of tuples.
    __slots__ = ()

    def __new__(cls, X_target):
        return super().__new__(cls, (X_target,))

    def __getnewargs__(self):
        return tuple(self)

    def __repr__(self):
        return "Whole(...)"


def warn_of_steps_before(cls: type) -> None:
    """Warn of steps of a pipeline, before an estimator, that map the source and not the target."""
    for pipe in find_callers(Pipeline):
        parts = [[step, *getattr(step, "get_params", dict)().values()] for _, step in pipe.steps]
        first = next((i for i, p in enumerate(parts) if any(isinstance(x, cls) for x in p)), 0)
        steps = [name for name, s in pipe.steps[:first] if s not in (None, "passthrough")]
        if steps and "X_target" not in (pipe.transform_input or ()):
            warn_caller(
                f"X_target is not mapped by the steps {steps} of the pipeline, which map the "
                "source. Set transform_input=['X_target'] of the Pipeline, with "
                "sklearn.set_config(enable_metadata_routing=True), unless X_target is mapped.",
                FitQualityWarning,
            )


def split_domains(X, y, X_target, sample_domain):
    """Return source rows, their labels and target rows; labels of target rows are not read."""
    if sample_domain is None:
        # A pipeline has transformed a `Whole` to another tuple.
        is_whole = isinstance(X_target, tuple) and len(X_target) == 1
        return X, y, X_target[0] if is_whole else X_target
    if X_target is not None:
        raise ValueError("Give X_target or sample_domain, not both.")
    inner = ("sklearn.base", "sklearn.utils")
    if any(name.startswith("sklearn.") and not name.startswith(inner) for name in list_callers()):
        raise ValueError(
            "sample_domain is not taken from a pipeline or search of scikit-learn, whose other "
            "steps and scores would read the target rows in X, which no ε covers. Give the source "
            "as X, and X_target=Whole(X_target)."
        )
    domains = np.asarray(sample_domain)
    is_valid = domains.shape == (_num_samples(X),) and domains.dtype.kind in "iu"
    if not is_valid or not domains.all() or not domains.min() < 0 < domains.max():
        raise ValueError(
            "sample_domain must hold a whole number for each row of X, positive for rows of the "
            "source and negative for rows of the target, with some of both."
        )
    source, target = np.flatnonzero(domains > 0), np.flatnonzero(domains < 0)
    y = None if y is None else _safe_indexing(y, source)
    return _safe_indexing(X, source), y, _safe_indexing(X, target)
