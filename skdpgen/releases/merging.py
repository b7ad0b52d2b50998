# SPDX-License-Identifier: BSD-3-Clause
"""Sums of the published tables of several data sets."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ..accounting.composition import compose, join
from ..mechanisms.two_way import Tables
from .published import PublishedRelease, open_release
from .two_way_tables import TwoWayTables

_DISJOINT = "each record, or person, is in the data of one of the merged releases only"


def merge(*sources, overlap: bool = False) -> PublishedRelease:
    """Add up the published tables of several data sets with the same schema.

    The counts of all records add up, and so do the variances of the noise.

    Parameters
    ----------
    *sources : str, path, PublishedRelease or Release
        Two-way tables with declared schemas, which are the same; see `from_release`.
    overlap : bool, default=False
        Whether a record, or a person, may be in several of the data sets. The certificate then
        composes those of the releases; otherwise all of them cost what one does, and must have the
        same events.

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
    parts = [open_release(source) for source in sources]
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
                "Releases with different schemas, targets, strata or units cannot be merged. "
                "Declare the same bounds, categories and knots for all, and for a target of many "
                'levels release=TwoWayTables(strata="always"); inferred ones differ.'
            )
    certificates = [_certify(part) for part in parts]
    digests = [{digest for own in c.digests for digest in own} for c in certificates]
    if len(set.union(*digests)) < sum(map(len, digests)):
        raise ValueError(
            "The same release is given twice, or two of the same stream, alone or in a sum: its "
            "records and its noise would count twice. Give each release once, and the last one of "
            "a stream."
        )
    n_samples = sum(part.n_samples for part in parts)
    # Records that are in several data sets are in several releases: these compose.
    if overlap:
        certificate = replace(compose(*certificates), n_records=n_samples)
    # Parallel composition: each record is in one release, and all of them have the same price.
    elif len({(certificate.releases, certificate.events) for certificate in certificates}) > 1:
        raise ValueError(
            "Releases with different events can be merged with overlap=True only, by composition."
        )
    else:
        # One event of each in turn, which all of them have.
        alike = zip(*(certificate.entries for certificate in certificates), strict=True)
        releases = [(*group[0][:2], sum((own for *_, own in group), ())) for group in alike]
        certificate = join(certificates, releases, n_records=n_samples)
        certificate = replace(certificate, assumptions=(*certificate.assumptions, _DISJOINT))
    tables = [part.main for part in parts]
    return replace(
        first,
        plan=replace(
            first.plan,
            releases=first.plan.releases[: first.n_inferred + 1],
            epsilon=max(first.plan.epsilon, certificate.epsilon),
            delta=certificate.delta,
        ),
        values=(*first.values[: first.n_inferred], _add_tables(tables)),
        n_samples=n_samples,
        n_rows=sum(part.n_rows for part in parts),
        certificate=certificate,
        digest=None,
    )


def _describe_sums(part):
    # Sums of other columns, strata or units would add up numbers of different meaning.
    label = part.format.layout.label if part.format.layout else None
    strata = part.main.by, part.main.columns.shape
    return part.format.schema, label, strata, part.plan.relation, part.plan.max_rows


def _certify(part):
    """Return the certificate of a part, which is known by its values if by nothing else."""
    certificate = part.certificate
    digests = certificate.digests or ((part.digest,),) * len(certificate.events)
    return replace(certificate, digests=digests)


def _add_tables(tables: Sequence[Tables]) -> Tables:
    return replace(
        tables[0],
        cells=np.sum([one.cells for one in tables], axis=0),
        columns=np.sum([one.columns for one in tables], axis=0),
        pairs_std=math.hypot(*(one.pairs_std for one in tables)),
        columns_std=math.hypot(*(one.columns_std for one in tables)),
    )
