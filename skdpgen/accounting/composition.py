# SPDX-License-Identifier: BSD-3-Clause
"""Composition of certificates of several fits on the same rows."""

from collections.abc import Iterable, Sequence

from .certificate import Certificate
from .provenance import Provenance


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
        If there are none, or their relations, accountants or units differ.

    Notes
    -----
    The budget of a later fit may depend on the results of earlier ones if all releases are
    unsampled Gaussian. For others, including thresholds, budgets must be fixed beforehand.

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
    for name in ("relation", "accountant"):
        values = {getattr(certificate, name) for certificate in certificates}
        if len(values) > 1:
            raise ValueError(f"Certificates with different {name} cannot be composed: {values}.")
    # None stands for records.
    max_rows = [c.max_rows for c in certificates if c.max_rows is not None]
    if 0 < len(max_rows) < len(certificates):
        raise ValueError("Certificates for records and for persons cannot be composed.")
    assumptions = dict.fromkeys(a for c in certificates for a in c.assumptions)
    # Noise that two fits share cancels in their difference.
    if sum(certificate.reproducible for certificate in certificates) > 1:
        seeds = "the seeds of the fits are different: fits that share a seed share noise"
        assumptions[seeds] = None
    n_records = {certificate.n_records for certificate in certificates}
    return Certificate(
        events=tuple(event for c in certificates for event in c.events),
        releases=tuple(name for c in certificates for name in c.releases),
        relation=certificates[0].relation,
        accountant=certificates[0].accountant,
        # At the largest δ: the joint ε is computed from the events, not from the certificates' ε.
        delta=max(certificate.delta for certificate in certificates),
        assumptions=tuple(assumptions),
        reproducible=any(certificate.reproducible for certificate in certificates),
        # Records of different data sets have no common number.
        n_records=n_records.pop() if len(n_records) == 1 else None,
        max_rows=max(max_rows, default=None),
        provenance=_join_provenances([certificate.provenance for certificate in certificates]),
        engine=_join_names(c.engine for c in certificates if c.engine is not None) or None,
    )


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
