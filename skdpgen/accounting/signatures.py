# SPDX-License-Identifier: BSD-3-Clause
"""Signatures of certificates: who stands by one, and that nobody changed it."""

import json

from .certificate import read_certified
from .certificate_form import read_form


def sign(text, private_key, password=None):
    """Sign a certificate, by Ed25519.

    A signature proves that the holder of a key has seen just this text, not that the text is true.
    It covers everything in it, in a canonical form: how it is indented does not matter.

    Parameters
    ----------
    text : str
        What `Certificate.to_json` wrote. A signature that is there is replaced.
    private_key : str or bytes
        Ed25519, in PEM format, as ``openssl genpkey -algorithm ed25519`` writes it.
    password : bytes, default=None
        Of the key.

    Returns
    -------
    str
        The JSON, with the signature.

    Raises
    ------
    ImportError
        Without the package cryptography.
    ValueError
        For other keys, and for what `verify` would refuse.

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
    serialization, ed25519 = _import_cryptography()
    data = _read(text)
    try:
        key = serialization.load_pem_private_key(_to_bytes(private_key), password)
    except (TypeError, ValueError) as error:
        raise ValueError(f"private_key is no PEM key that can be read: {error}") from error
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise ValueError("private_key must be an Ed25519 key, as openssl genpkey makes it.")
    data["signature"] = {"algorithm": "Ed25519", "value": key.sign(_canonical(data)).hex()}
    return json.dumps(data, indent=2)


def check_signature(text, public_key):
    """Raise a ValueError if a certificate is not signed by the key that belongs to `public_key`."""
    serialization, ed25519 = _import_cryptography()
    from cryptography.exceptions import InvalidSignature

    data = _read(text)
    try:
        key = serialization.load_pem_public_key(_to_bytes(public_key))
    except ValueError as error:
        raise ValueError(f"public_key is no PEM key that can be read: {error}") from error
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise ValueError("public_key must be an Ed25519 key.")
    if "signature" not in data:
        raise ValueError("The certificate is not signed.")
    try:
        key.verify(bytes.fromhex(data["signature"]["value"]), _canonical(data))
    except InvalidSignature:
        raise ValueError(
            "The certificate is not signed by that key, or was changed afterwards."
        ) from None


def _canonical(data):
    """Return the bytes that are signed: all but the signature, in one form."""
    unsigned = {name: value for name, value in data.items() if name != "signature"}
    return json.dumps(unsigned, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


def _read(text):
    """Return the members of a certificate, all of which are checked."""
    read_certified(text)
    return read_form(text)


def _to_bytes(key):
    return key.encode() if isinstance(key, str) else key


def _import_cryptography():
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise ImportError("Signatures need cryptography: pip install 'skdpgen[sign]'.") from None
    return serialization, ed25519
