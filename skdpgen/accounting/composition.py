# SPDX-License-Identifier: BSD-3-Clause
"""The certificate of several releases: sequential composition, and the join of all statements."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from .certificate import Certificate
from .events import DegradedGaussianDpEvent, gaussian_mu, plain_multiplier
from .provenance import Provenance

_SEEDS = "the seeds of the fits are different: fits that share a seed share noise"
_FIXED = "the number of fits and the terms of each were fixed before the first result was known"


def compose(*certificates: Certificate) -> Certificate:
    """Compose the certificates of several fits on the same rows.

    Parameters
    ----------
    *certificates : Certificate
        At least one; all with the same relation and accountant.

    Returns
    -------
    Certificate
        Certificate of all releases, at the largest δ.

    Raises
    ------
    TypeError
        If an argument is not a certificate.
    ValueError
        If there are none, if their relations, accountants or units differ, or if two state
        different events for one release.

    Notes
    -----
    Releases with the same digest are one release, and count once. A certificate without a digest,
    such as that of `preview`, counts each time.

    The terms of a later fit may depend on the results of earlier ones if all releases are unsampled
    Gaussian. For others, including thresholds, they must be fixed beforehand: the certificate
    assumes it.

    Examples
    --------
    >>> from dp_accounting import GaussianDpEvent
    >>> from skdpgen.privacy import Certificate, compose
    >>> one = Certificate((GaussianDpEvent(8.0),), ("sum",))
    >>> compose(one, one, one, one)
    <Certificate: ε = 0.9264 at δ = 1e-05 (zero_out) for each record; 4 releases>
    """
    if not certificates:
        raise ValueError("compose needs at least one certificate.")
    if not all(isinstance(certificate, Certificate) for certificate in certificates):
        raise TypeError("compose takes certificates one by one: compose(a.privacy_, b.privacy_).")
    groups: list[tuple[tuple, list]] = []
    for group in (group for c in certificates for group in _list_groups(c)):
        for other in groups:
            if (shared := _share(group, other)) and group[1] != other[1]:
                raise ValueError(
                    "Two certificates state different events for the release with the digest "
                    f"{shared[0]}: one was changed."
                )
        # A release that another event covers costs nothing more. Other overlapping sums all count.
        if not any(_covers(other, group) for other in groups):
            groups = [other for other in groups if not _covers(group, other)] + [group]
    releases = [(*one, digests) for digests, many in groups for one in many]
    joined = join(certificates, releases)
    if len(groups) < 2 or gaussian_mu(joined.events) is not None:
        return joined
    return replace(joined, assumptions=tuple(dict.fromkeys((*joined.assumptions, _FIXED))))


def join(certificates: Sequence[Certificate], releases: Sequence, **members: Any) -> Certificate:
    """Return one certificate for several, with all that they assume and the weakest they promise.

    `releases` has the (name, event, digests) of what all cost together, which depends on who is in
    which data; `members` are those that certificates do not determine, such as `n_records`. Raises
    ValueError if relations, accountants or units differ.
    """
    for name in ("relation", "accountant"):
        values = {getattr(certificate, name) for certificate in certificates}
        if len(values) > 1:
            raise ValueError(f"Certificates with different {name} cannot be composed: {values}.")
    # None stands for records.
    max_rows = [c.max_rows for c in certificates if c.max_rows is not None]
    if 0 < len(max_rows) < len(certificates):
        raise ValueError("Certificates for records and for persons cannot be composed.")
    assumptions = [assumption for c in certificates for assumption in c.assumptions]
    # Noise that two fits share cancels in their difference.
    if len({c.digest or i for i, c in enumerate(certificates) if c.reproducible}) > 1:
        assumptions.append(_SEEDS)
    n_records = {certificate.n_records for certificate in certificates}
    joined: dict[str, Any] = {
        "relation": certificates[0].relation,
        "accountant": certificates[0].accountant,
        # At the largest δ: the joint ε is computed from the events, not from the certificates' ε.
        "delta": max(certificate.delta for certificate in certificates),
        "assumptions": tuple(dict.fromkeys(assumptions)),
        "reproducible": any(certificate.reproducible for certificate in certificates),
        # Records of different data sets have no common number.
        "n_records": n_records.pop() if len(n_records) == 1 else None,
        "notes": tuple(dict.fromkeys(note for c in certificates for note in c.notes)),
        "max_rows": max(max_rows, default=None),
        "provenance": _join_provenances([certificate.provenance for certificate in certificates]),
        "engine": _join_names(c.engine for c in certificates if c.engine is not None) or None,
    }
    names, events, digests = zip(*releases, strict=True) if releases else ((), (), ())
    return Certificate(events, names, digests=digests, **(joined | members))


def _share(group: tuple, other: tuple) -> list:
    """Return the digests of releases in both groups, which must have the same events."""
    # Releases with other noise, made of one, share its digest.
    if (_is_degraded(group) or _is_degraded(other)) and group[0] != other[0]:
        return []
    return [digest for digest in group[0] if digest in other[0]]


def _covers(group: tuple, other: tuple) -> bool:
    """Return whether a group holds all releases of another, or those of which they were made."""
    (held, releases), (needed, made) = group, other
    if _is_degraded(group) != _is_degraded(other):
        # What states more than can be made of the first release counts beside it.
        if not _can_be_made(made, releases):
            return False
        needed = needed[:-1]
    return 0 < len(needed) and set(needed) <= set(held)


def _can_be_made(made: list, releases: list) -> bool:
    """Return whether degrading one of the releases may have made the last of others."""
    *kept, (name, event) = made
    n = len(kept)
    if not isinstance(event, DegradedGaussianDpEvent) or releases[:n] != kept:
        return False
    found = [first for own, first in releases[n : n + 1] if own == name]
    return bool(found) and plain_multiplier(found[0]) <= event.noise_multiplier


def _is_degraded(group: tuple) -> bool:
    return any(isinstance(event, DegradedGaussianDpEvent) for _, event in group[1])


def _list_groups(certificate: Certificate) -> list[tuple[tuple, list]]:
    """Return the names and events that have the same digests, with these."""
    groups: dict[tuple, list] = {}
    for name, event, digests in certificate.entries:
        groups.setdefault(digests, []).append((name, event))
    return list(groups.items())


def _join_provenances(provenances: Sequence[Provenance | None]) -> Provenance | None:
    """Return the joint provenance of several fits, or None if one is unknown."""
    known = [provenance for provenance in provenances if provenance is not None]
    if len(known) < len(provenances):
        return None
    return Provenance(
        _join_names(provenance.estimator for provenance in known),
        version=_join_names(provenance.version for provenance in known),
        date=max(provenance.date for provenance in known),
    )


def _join_names(texts: Iterable[str]) -> str:
    """Join distinct names by " and "; texts may be such lists themselves."""
    return " and ".join(dict.fromkeys(name for text in texts for name in text.split(" and ")))
