# SPDX-License-Identifier: BSD-3-Clause
"""Published releases: released values, from which learners are fitted again at no cost."""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
from sklearn.base import clone

from ..accounting.certificate import Certificate
from ..accounting.plan import Plan
from ..accounting.provenance import list_parameters, show_value
from ..curator.curator import find_digest
from ..encoders import split_encoder
from ..exceptions import PlanError
from ..saving.serialization import Saves, load
from .release import Release

# Attributes by which scikit-learn knows the columns of X.
_FEATURES = ("n_features_in_", "feature_names_in_")


@dataclass(frozen=True, eq=False, repr=False)
class PublishedRelease(Saves):
    """The released values of a fit, with all that a learner needs of it.

    It holds no private value: the values have their noise, and all else is public. A file of it,
    written by `save` and read by `skdpgen.load`, can be published in place of synthetic rows.

    Attributes
    ----------
    learner : str
        Class of the estimator that made it.
    release : Release
        The release, with the numbers that were chosen for it.
    plan : Plan
        The planned releases, with their events.
    format : Format
        The resolved format of the data, with the schema.
    values : tuple
        The values of all releases, in order.
    n_inferred : int
        How many of the first values served to resolve the format.
    words : tuple of int
        Words that seeded the public draws of the fit, such as directions.
    n_samples, n_classes : int
        Numbers of records, or of persons, and of classes, which are public.
    n_rows : float
        Approximate number of records in sums; it differs for persons with several rows.
    features : dict
        The fitted attributes ``n_features_in_`` and ``feature_names_in_``, if there are names.
    certificate : Certificate
        The certificate of the releases.
    digest : str or None
        Digest of the values; None: that of the certificate or, for sums of releases, of `values`.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdpgen import DPSWFlowSampler
    >>> from skdpgen.releases import from_release
    >>> frame = pd.DataFrame({"age": range(20, 70), "smokes": ["yes", "no"] * 25})
    >>> sampler = DPSWFlowSampler(epsilon=9.0, n_steps=10).fit(frame)
    >>> again = from_release(sampler.release_.published, DPSWFlowSampler(n_steps=20))
    >>> again.privacy_ == sampler.privacy_
    True
    """

    learner: str
    release: Release
    plan: Plan
    format: Any
    values: tuple
    n_inferred: int
    words: tuple
    n_samples: int
    n_classes: int
    n_rows: float
    features: dict
    certificate: Certificate
    digest: str | None = None

    def __post_init__(self) -> None:
        digest = self.digest or self.certificate.digest or find_digest(self.values)
        # A frozen class sets its own fields by this call only.
        object.__setattr__(self, "digest", digest)

    @classmethod
    def of(cls, estimator, release, curator, plan, format, n_inferred, assumed, words=()):
        """Return what the curator of a fit of an estimator has released so far."""
        return cls(
            type(estimator).__name__,
            release,
            plan,
            format,
            tuple(curator.released),
            n_inferred,
            tuple(words),
            curator.n_records,
            curator.n_classes,
            curator.n_rows,
            {name: value for name, value in vars(estimator).items() if name in _FEATURES},
            curator.certificate(assumed),
        )

    @property
    def main(self):
        """The value of the main release."""
        return self.values[self.n_inferred]

    def __repr__(self):
        return f"<PublishedRelease: {self.release!r} by {self.learner}, {self.certificate!r}>"

    def check(self):
        """Raise a ValueError if the values are not those of the certificate."""
        certificate, found = self.certificate, find_digest(self.values)
        if found != self.digest or certificate.digest not in (None, found):
            raise ValueError("The values of the release are not those of its certificate.")
        stated = (certificate.relation, certificate.accountant, certificate.max_rows)
        if stated != (self.plan.relation, self.plan.accountant, self.plan.max_rows):
            raise ValueError("The plan of the release is not that of its certificate.")

    _check_savable = check


class ReplayedCurator:
    """Stands in for the curator of a fit, and hands out its published values in their order.

    It has the attributes of a `Curator` that learners read, and holds no row.
    """

    def __init__(self, published: PublishedRelease, device) -> None:
        self.plan, self.device = published.plan, device
        self.n_records, self.n_classes = published.n_samples, published.n_classes
        self.n_rows = published.n_rows
        names = [name for name, _ in published.plan.releases]
        self._left = list(zip(names, published.values, strict=False))[published.n_inferred :]

    def release(self, mechanism):
        """Return the value of the next release."""
        if not self._left or self._left[0][0] != mechanism.name:
            raise PlanError(f"{mechanism.name!r} is not the next published release.")
        return self._left.pop(0)[1]

    def close(self, *args) -> None:
        """Do nothing: there are no rows."""

    prepare = encode_cells_by = close


def from_release(
    source: str | PathLike | PublishedRelease | Release, estimator, *, rules: Sequence = ()
):
    """Fit an estimator to a published release, at no privacy cost.

    With the class and the parameters of the fit that made the release, the result is the same to
    the bit.

    Parameters
    ----------
    source : str, path, PublishedRelease or Release
        The file of a published release, the release itself, or a fitted attribute `release_`.
    estimator : estimator
        An unfitted generator. Its ε, δ, relation and accountant are set to those of the release;
        other parameters that the release determines must be the same, or at their defaults.
        A slice sketch takes the class that released it, and its parameters of arrays; tables take
        `DPSWFlowSampler` and `DPSlicedWassersteinGenerator`.
    rules : sequence of rule, default=()
        Public rules of a table, beside those of its schema.

    Returns
    -------
    estimator
        The fitted clone.

    Raises
    ------
    ValueError
        If the estimator cannot learn from the release, or declares something else.
    """
    published = open_release(source)
    plan, format = published.plan, published.format
    if rules:
        if format.parameters.get("schema") is None:
            raise ValueError("rules are for tables; the release is of an array.")
        schema = format.schema
        format = replace(format, schema=type(schema)(schema, (*schema.rules, *rules)))
    known = estimator.get_params(deep=False)
    terms = {name: getattr(plan, name) for name in ("epsilon", "delta", "relation", "accountant")}
    # Local methods have no relation.
    fitted = clone(estimator).set_params(**{n: v for n, v in terms.items() if n in known})
    _check_declared(fitted, published)
    # The released sums are of so many rows per person, whatever the new estimator would take.
    if plan.max_rows is not None:
        fitted.set_params(max_rows_per_person=plan.max_rows)
    return fitted._fit_published(published, format)


def _check_declared(estimator, published):
    """Raise a ValueError for a parameter that is set, and that a release contradicts."""
    estimator._check_params()
    format, parameters = published.format, dict(published.format.parameters)
    if parameters.get("schema") is not None:
        estimator._refuse_array_params()
    if published.plan.max_rows is not None:
        parameters["max_rows_per_person"] = published.plan.max_rows
    for name, _ in list_parameters(estimator):
        agrees = _AGREES.get(name, _are_equal)
        if name in parameters and not agrees(getattr(estimator, name), parameters[name]):
            raise ValueError(
                f"{name} of {type(estimator).__name__} is not that of the release, which "
                "determines it: leave it at its default."
            )
    release = estimator._find_release(format)
    for name, text in list_parameters(release) if type(release) is type(published.release) else ():
        released = show_value(getattr(published.release, name))
        if text != released:
            raise ValueError(
                f"{name} of {type(release).__name__} is {text}, and the release has {released}: "
                "leave it at its default."
            )


def _are_resolved(schemas, released):
    """Return whether the tables of histories have all declared columns; some are never missing."""
    return all(
        name in released.get(table, ())
        and (own := released[table][name]).resolves(
            replace(column, missing=own.missing) if hasattr(own, "missing") else column
        )
        for table, schema in schemas.items()
        for name, column in schema.columns
    )


def _is_resolved(schema, released):
    """Return whether a table has all declared columns, or an array no schema."""
    if schema is None or released is None:
        return schema is released
    return isinstance(schema, str) or released.resolves(schema)


def _are_equal(given, released):
    """Return whether arrays, or numbers for all columns, are equal."""
    if released is None:
        return False
    pairs = [(np.asarray(g), np.asarray(r)) for g, r in zip(given, released, strict=False)]
    return len(given) == len(released) and all((g == r).all() for g, r in pairs)


# By the name of a parameter: whether a given value agrees with that of a release.
_AGREES: dict[str, Callable] = {
    "schema": _is_resolved,
    "schemas": _are_resolved,
    "clip_norm": lambda given, released: released in (given, min(given, 1.0)),
    "encoder": lambda given, released: show_value(split_encoder(given)) == show_value(released),
    "max_rows_per_person": operator.eq,
}


def open_release(source) -> PublishedRelease:
    """Return the published release of a file, a release or a fitted estimator."""
    source = getattr(source, "release_", source)
    published = source.get_published() if isinstance(source, Release) else source
    # The digest of a file is checked by `load`.
    published = published if isinstance(published, PublishedRelease) else load(published)
    if not isinstance(published, PublishedRelease):
        raise ValueError(f"{source} is a file of a fitted estimator, and not of a release.")
    published.check()
    return published
