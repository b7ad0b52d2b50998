# SPDX-License-Identifier: BSD-3-Clause
"""Published releases: released values, from which learners are fitted again at no cost."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
from sklearn.base import clone

from ..accounting.certificate import Certificate
from ..accounting.composition import compose
from ..accounting.plan import Plan
from ..curator.curator import Digest
from ..exceptions import PlanError
from ..mechanisms.tables import Tables
from ..serialization import Saves, load
from .release import Release
from .tables import TwoWayTables

_DISJOINT = "each record, or person, is in the data of one of the merged releases only"


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

    @property
    def main(self):
        """The value of the main release."""
        return self.values[self.n_inferred]

    def __repr__(self):
        return f"<PublishedRelease: {self.release!r} by {self.learner}, {self.certificate!r}>"

    def _check_savable(self):
        """Raise a ValueError if the values are not those of the certificate."""
        digest = Digest()
        for value in self.values:
            digest.add(value)
        if self.certificate.digest not in (None, str(digest)):
            raise ValueError("The values of the release are not those of its certificate.")


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
        An unfitted generator. Its ε, δ, relation and accountant are set to those of the release.
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
        If the estimator cannot learn from the release.
    """
    published = _open(source)
    plan, format = published.plan, published.format
    if rules:
        if not format.has_blocks:
            raise ValueError("rules are for tables; the release is of an array.")
        schema = format.schema
        format = replace(format, schema=type(schema)(schema, (*schema.rules, *rules)))
    fitted = clone(estimator).set_params(
        epsilon=plan.epsilon, delta=plan.delta, relation=plan.relation, accountant=plan.accountant
    )
    # The released sums are of so many rows per person, whatever the new estimator would take.
    if plan.max_rows is not None:
        fitted.set_params(max_rows_per_person=plan.max_rows)
    return fitted._fit_published(published, format)


def merge(*sources, overlap: bool = False) -> PublishedRelease:
    """Add up the published tables of several data sets with the same schema.

    The counts of all records add up, and so do the variances of the noise.

    Parameters
    ----------
    *sources : str, path, PublishedRelease or Release
        Two-way tables with declared schemas, which are the same; see `from_release`.
    overlap : bool, default=False
        Whether a record, or a person, may be in several of the data sets. The certificate then
        composes those of the releases; otherwise it is that of any of them, which have the same
        events.

    Returns
    -------
    PublishedRelease

    Raises
    ------
    ValueError
        If the releases are not tables, one is given twice, two are of the same stream, or their
        schemas, targets, units or, without `overlap`, events differ.

    Notes
    -----
    If each record is in one of the data sets, neighbouring data sets differ in one of them, and the
    other releases are independent of it: parallel composition.
    """
    parts = [_open(source) for source in sources]
    if len(parts) < 2:
        raise ValueError("merge needs at least two releases.")
    first = parts[0]
    for part in parts:
        if not isinstance(part.release, TwoWayTables):
            raise ValueError(
                "Only tables can be merged: sketches of different fits have different directions."
            )
        if _describe_sums(part) != _describe_sums(first):
            raise ValueError(
                "Releases with different schemas, targets or units cannot be merged. Declare the "
                "same bounds, categories and knots for all; inferred ones differ."
            )
    if len(set(map(_identify, parts))) < len(parts):
        raise ValueError(
            "The same release is given twice, or two of the same stream: its records and its noise "
            "would count twice. Give each release once, and the last one of a stream."
        )
    certificates = [part.certificate for part in parts]
    n_samples = sum(part.n_samples for part in parts)
    # Records that are in several data sets are in several releases: these compose.
    if overlap:
        certificate = replace(compose(*certificates), n_records=n_samples)
    # Parallel composition: each record is in one release, and all of them have the same price.
    elif len({certificate.events for certificate in certificates}) > 1:
        raise ValueError(
            "Releases with different events can be merged with overlap=True only, by composition."
        )
    else:
        assumptions = (*certificates[0].assumptions, _DISJOINT)
        certificate = replace(certificates[0], assumptions=assumptions, n_records=n_samples)
    tables = [part.main for part in parts]
    return replace(
        first,
        plan=replace(
            first.plan,
            releases=first.plan.releases[: first.n_inferred + 1],
            epsilon=max(first.plan.epsilon, certificate.epsilon),
        ),
        values=(*first.values[: first.n_inferred], _add_tables(tables)),
        n_samples=n_samples,
        n_rows=sum(part.n_rows for part in parts),
        # The sum is in no ledger: it has neither the digest nor the noise of one of the releases.
        certificate=replace(certificate, digest=None, sigma=None),
    )


def _describe_sums(part):
    # Sums of other columns, strata or units would add up numbers of different meaning.
    label = part.format.kind.label if part.format.kind else None
    return part.format.schema, label, part.plan.relation, part.plan.max_rows


def _identify(part):
    """Return what is equal for releases with the same noise only."""
    # Those of a stream differ, but their noise is correlated.
    if part.plan.stream is not None:
        return part.plan.stream
    # The values', since certificates of sums have no digest.
    digest = Digest()
    digest.add(part.main)
    return str(digest)


def _add_tables(tables: Sequence[Tables]) -> Tables:
    return replace(
        tables[0],
        cells=np.sum([one.cells for one in tables], axis=0),
        columns=np.sum([one.columns for one in tables], axis=0),
        pairs_std=math.hypot(*(one.pairs_std for one in tables)),
        columns_std=math.hypot(*(one.columns_std for one in tables)),
    )


def _open(source) -> PublishedRelease:
    source = getattr(source, "release_", source)
    if isinstance(source, Release):
        return source.get_published()
    published = source if isinstance(source, PublishedRelease) else load(source)
    if not isinstance(published, PublishedRelease):
        raise ValueError(f"{source} is a file of a fitted estimator, and not of a release.")
    return published
