# SPDX-License-Identifier: BSD-3-Clause
"""Signing and verification of certificates.

A signed certificate is a compact JSON Web Signature (RFC 7515) by Ed25519, whose algorithm is
called ``EdDSA`` (RFC 8037). Its payload is the certificate's JSON, byte by byte.
"""

import re
import warnings
from types import ModuleType
from typing import Any

from ..exceptions import PrivacyLeakWarning
from .certificate import Certificate
from .events import is_pure
from .rounding import show

# A larger δ, or one above 1 over the number of records, allows to publish whole records.
_LARGEST_DELTA = 1e-3
_ALGORITHM = "EdDSA"
# The types of the whole, and of its payload (RFC 7515, sections 4.1.9 and 4.1.10).
_HEADERS = {"typ": "JOSE", "cty": "json"}
_COMPACT_JWS = re.compile(r"\s*[\w-]+\.[\w-]+\.[\w-]*\s*", re.ASCII)


def sign(text: str, private_key: str | bytes, password: bytes | None = None) -> str:
    """Sign a certificate by Ed25519.

    A signature proves that the holder of the key has signed exactly this text. It does not prove
    that the text is true.

    Parameters
    ----------
    text : str
        JSON from `Certificate.to_json`.
    private_key : str or bytes
        Ed25519 key in PEM format, as ``openssl genpkey -algorithm ed25519`` writes it.
    password : bytes, default=None
        Password of the key.

    Returns
    -------
    str
        A compact JWS (RFC 7515), whose payload is `text`.

    Raises
    ------
    ImportError
        If PyJWT or cryptography is not installed.
    ValueError
        If the key is of another type, or `verify` would refuse the certificate.

    Examples
    --------
    >>> from cryptography.hazmat.primitives import serialization as s
    >>> from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    >>> from dp_accounting import GaussianDpEvent
    >>> from skdpgen.privacy import Certificate, sign, verify
    >>> key = Ed25519PrivateKey.generate()
    >>> private = key.private_bytes(s.Encoding.PEM, s.PrivateFormat.PKCS8, s.NoEncryption())
    >>> public = key.public_key().public_bytes(
    ...     s.Encoding.PEM, s.PublicFormat.SubjectPublicKeyInfo
    ... )
    >>> text = Certificate((GaussianDpEvent(4.0),), ("slice sketch",)).to_json()
    >>> round(verify(sign(text, private), public), 3)
    0.926
    """
    jwt, serialization, ed25519 = _import_jwt()
    # Before it is signed: a signature under a text that is no certificate would lend it weight.
    _parse(text)
    try:
        key = serialization.load_pem_private_key(_to_bytes(private_key), password)
    except (TypeError, ValueError) as error:
        raise ValueError(f"private_key is not a readable PEM key: {error}") from error
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise ValueError(
            "private_key must be an Ed25519 key; create one by openssl genpkey -algorithm ed25519."
        )
    return jwt.api_jws.encode(text.encode(), key, algorithm=_ALGORITHM, headers=_HEADERS)


def verify(text: str | Certificate, public_key: str | bytes | None = None) -> float:
    """Recompute ε of a certificate from its events, and check its signature.

    This checks the arithmetic: the stated events, under the stated relation, cost the stated ε. It
    cannot check that the events took place, or that the seed of a reproducible fit is secret, of
    which it warns. It warns if δ is above 0.001, or above 1 over a stated number of records or
    persons, unless all releases are pure: then ε holds at δ = 0.

    Parameters
    ----------
    text : str or Certificate
        JSON from `Certificate.to_json`, a compact JWS from `sign`, or a fitted `privacy_`.
    public_key : str or bytes, default=None
        Ed25519 key in PEM format. If given, `text` must be signed by its private key. If None, a
        signature is not checked.

    Returns
    -------
    float
        ε at the certificate's δ.

    Raises
    ------
    ImportError
        If `text` is signed or a key is given, and PyJWT or cryptography is not installed.
    ValueError
        If a member of the certificate is missing, unknown or out of its range; if the certificate
        contradicts itself, is one that no fit makes or lists no release; if it states another ε, μ
        or ρ than its events cost; if it is not signed by that key.
    """
    text = text.to_json() if isinstance(text, Certificate) else text
    certificate = read_certificate(text, public_key)
    # At δ = 1/n a mechanism that publishes one random record is (0, δ)-private.
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
    return certificate.epsilon


def read_certificate(text: str, public_key: str | bytes | None = None) -> Certificate:
    """Return the certificate in a JSON text or a compact JWS; see `verify`."""
    is_signed = isinstance(text, str) and _COMPACT_JWS.fullmatch(text) is not None
    # Whoever asks for a signature must not get a number without one.
    if public_key is not None and not is_signed:
        raise ValueError(
            "The certificate is not signed: it must be a compact JWS, as sign writes it."
        )
    return _parse(_read_payload(text.strip(), public_key) if is_signed else text)


def _parse(text: str) -> Certificate:
    """Return the certificate in a JSON text, of at least one release."""
    certificate = Certificate.from_json(text)
    if not certificate.events:
        raise ValueError("The certificate lists no release: there is nothing that it certifies.")
    return certificate


def _read_payload(token: str, public_key: str | bytes | None) -> str:
    """Return the payload of a compact JWS; check its signature if a key is given."""
    jwt, serialization, ed25519 = _import_jwt()
    key: Any = ""
    if public_key is not None:
        try:
            key = serialization.load_pem_public_key(_to_bytes(public_key))
        except ValueError as error:
            raise ValueError(f"public_key is not a readable PEM key: {error}") from error
        if not isinstance(key, ed25519.Ed25519PublicKey):
            raise ValueError("public_key must be an Ed25519 key.")
    # Without a key only the arithmetic is checked, as the docstring of `verify` says.
    options = {"verify_signature": public_key is not None}
    try:
        # One algorithm only: the header of a token must not choose how it is verified.
        payload = jwt.api_jws.decode(token, key, algorithms=[_ALGORITHM], options=options)
        return payload.decode()
    except jwt.exceptions.InvalidSignatureError:
        raise ValueError(
            "The certificate is not signed by that key, or was changed afterwards."
        ) from None
    except (UnicodeDecodeError, jwt.exceptions.PyJWTError) as error:
        raise ValueError(f"The text is not a signed certificate: {error}") from error


def _to_bytes(key: str | bytes) -> bytes:
    return key.encode() if isinstance(key, str) else key


def _import_jwt() -> tuple[ModuleType, ModuleType, ModuleType]:
    try:
        import jwt
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise ImportError(
            "Signatures need PyJWT and cryptography: pip install 'skdpgen[sign]'."
        ) from None
    return jwt, serialization, ed25519
