# SPDX-License-Identifier: BSD-3-Clause
"""Verification of certificates: their arithmetic, and their signature."""

import warnings

from ..exceptions import PrivacyLeakWarning
from .certificate import read_certified
from .events import is_pure
from .rounding import show
from .signatures import check_signature

# A δ above this, or above 1 over the number of records, says little.
_LARGEST_DELTA = 1e-3


def verify(text: str, public_key: str | bytes | None = None) -> float:
    """Recompute ε of a certificate that was written by `Certificate.to_json`.

    This checks the arithmetic: that the stated events, under the stated relation, cost what is
    stated. Whether they happened, and whether the seed of a reproducible fit is secret, it cannot
    know. It warns of a δ above 0.001, or above 1 over the number of records.

    Parameters
    ----------
    text : str
        The JSON.
    public_key : str or bytes, default=None
        In PEM format. The certificate then has to be signed by the key that belongs to it: see
        `sign`.

    Returns
    -------
    float
        ε at the certificate's δ, from its events alone.

    Raises
    ------
    ValueError
        If the text is no certificate, to the last member; if it contradicts itself, lists no
        release, or states another ε, μ or ρ than its events cost; if it is not signed by that key.
    """
    certificate = read_certified(text)
    largest = min(_LARGEST_DELTA, 1 / (certificate.n_records or 1))
    if certificate.delta > largest and not is_pure(certificate.events):
        warnings.warn(
            f"δ = {show(certificate.delta)} is above {largest:.3g}: it allows to publish some "
            "records outright.",
            UserWarning,
            stacklevel=2,
        )
    if certificate.reproducible:
        warnings.warn(
            "The certificate is of a fit with a fixed seed: it proves nothing towards anybody who "
            "holds or guesses the seed.",
            PrivacyLeakWarning,
            stacklevel=2,
        )
    if public_key is not None:
        check_signature(text, public_key)
    return certificate.epsilon
