"""Signed certificates, their readings and their form."""

import base64
import hmac
import json
import warnings
from pathlib import Path

import jsonschema
import jwt
import numpy as np
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from dp_accounting import (
    GaussianDpEvent,
    PoissonSampledDpEvent,
)

from skdpgen import DPSWFlowSampler
from skdpgen.__main__ import main
from skdpgen.accounting.verification import read_certificate
from skdpgen.privacy import Certificate, sign, verify

OLD = sorted(Path(__file__).with_name("certificates").glob("*.json"))
PUBLISHED = Path(__file__).parents[2] / "doc" / "_static" / "certificate.schema.json"
CERTIFICATE = Certificate((GaussianDpEvent(4.0),), ("slice sketch",), n_records=1000)


def make_keys(key=None):
    key = Ed25519PrivateKey.generate() if key is None else key
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return private, public


def decode(part):
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


@pytest.mark.catches(
    "accounting.verification:_read_payload",
    '{"verify_signature": public_key is not None}',
    '{"verify_signature": False}',
)
def test_a_signature_covers_the_whole_text():
    private, public = make_keys()
    text = CERTIFICATE.to_json()
    signed = sign(text, private)
    assert verify(signed, public) == verify(signed) == CERTIFICATE.epsilon
    assert verify(f"{signed}\n", public.decode()) == CERTIFICATE.epsilon
    assert read_certificate(signed, public) == CERTIFICATE
    header, payload, signature = signed.split(".")
    assert decode(payload).decode() == text
    for old, new in [("slice", "sliced"), ("1000", "1001"), ("false", "true"), ("  ", " ")]:
        changed = base64.urlsafe_b64encode(text.replace(old, new).encode()).rstrip(b"=").decode()
        with pytest.raises(ValueError, match="changed afterwards"):
            verify(f"{header}.{changed}.{signature}", public)


def test_a_signature_is_that_of_the_standards():
    """RFC 7515, section 5.1, with the algorithm of RFC 8037, section 3.1."""
    key = Ed25519PrivateKey.generate()
    private, public = make_keys(key)
    text = CERTIFICATE.to_json()
    header, payload, signature = sign(text, private).split(".")
    assert json.loads(decode(header)) == {"alg": "EdDSA", "typ": "JOSE", "cty": "json"}
    key.public_key().verify(decode(signature), f"{header}.{payload}".encode())
    # Made without our library.
    assert verify(jwt.api_jws.encode(text.encode(), private, "EdDSA"), public)


@pytest.mark.catches(
    "accounting.verification:read_certificate", "public_key is not None and not is_signed", "False"
)
def test_a_signature_by_others_proves_nothing():
    (private, _), (_, other) = make_keys(), make_keys()
    with pytest.raises(ValueError, match="not signed by that key"):
        verify(sign(CERTIFICATE.to_json(), private), other)
    with pytest.raises(ValueError, match="is not signed"):
        verify(CERTIFICATE.to_json(), other)


@pytest.mark.parametrize("algorithm", ["none", "HS256"])
def test_other_algorithms_are_refused(algorithm):
    """No secret, or the public key as a shared secret."""
    _, public = make_keys()
    signing_input = ".".join(
        base64.urlsafe_b64encode(part.encode()).rstrip(b"=").decode()
        for part in (json.dumps({"alg": algorithm}), CERTIFICATE.to_json())
    )
    tag = hmac.digest(public, signing_input.encode(), "sha256")
    encoded = base64.urlsafe_b64encode(tag).rstrip(b"=").decode()
    token = f"{signing_input}.{'' if algorithm == 'none' else encoded}"
    with pytest.raises(ValueError, match="not a signed certificate"):
        verify(token, public)


@pytest.mark.parametrize("text", ["a.b.c", "e30.e30.e30", "e30.gICA."])
def test_a_text_that_looks_like_a_signature_is_refused(text):
    for key in (None, make_keys()[1]):
        with pytest.raises(ValueError, match=r"[Nn]ot a (signed )?certificate"):
            verify(text, key)


def test_keys_of_other_kinds_are_refused():
    private, public = make_keys(ec.generate_private_key(ec.SECP256R1()))
    text = CERTIFICATE.to_json()
    signed = sign(text, make_keys()[0])
    with pytest.raises(ValueError, match="must be an Ed25519 key"):
        sign(text, private)
    with pytest.raises(ValueError, match="must be an Ed25519 key"):
        verify(signed, public)
    with pytest.raises(ValueError, match="not a readable PEM key"):
        sign(text, b"key")
    with pytest.raises(ValueError, match="not a readable PEM key"):
        verify(signed, b"key")
    with pytest.raises(ValueError, match="Not a certificate"):
        sign(signed, make_keys()[0])


def test_on_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    private, public = make_keys()
    Path("key.pem").write_bytes(private)
    Path("public.pem").write_bytes(public)
    Path("plain.json").write_text(CERTIFICATE.to_json())
    assert main(["sign", "plain.json", "--key", "key.pem", "--output", "signed.jws"]) == 0
    assert main(["verify", "signed.jws", "--public-key", "public.pem"]) == 0
    said = capsys.readouterr().out
    assert "signed by the key of public.pem" in said
    assert "cannot verify that the fit took place" in said
    assert main(["verify", "plain.json", "--public-key", "public.pem"]) == 1
    # A certificate that understates is not signed.
    false = {**json.loads(CERTIFICATE.to_json()), "epsilon": 0.1}
    Path("false.json").write_text(json.dumps(false))
    assert main(["sign", "false.json", "--key", "key.pem", "--output", "other.json"]) == 1
    assert not Path("other.json").exists()


@pytest.mark.catches(
    "accounting.strict_json:_dict_of_distinct", "len(members) < len(pairs)", "False"
)
def test_a_member_that_occurs_twice_is_refused():
    """Readers that take the first and the last of two members would see different texts."""
    private, public = make_keys()
    text = CERTIFICATE.to_json()
    forged = text.replace('"epsilon":', '"epsilon": 0.1, "epsilon":', 1)
    assert json.loads(forged) == json.loads(text)
    signed = jwt.api_jws.encode(forged.encode(), private, "EdDSA")
    for read in (
        lambda: verify(signed, public),
        lambda: verify(signed),
        lambda: verify(forged),
        lambda: sign(forged, private),
        lambda: Certificate.from_json(forged),
    ):
        with pytest.raises(ValueError, match=r"has \['epsilon'\] more than once"):
            read()


def test_a_reading_that_is_not_known_is_refused():
    sampled = Certificate((PoissonSampledDpEvent(0.1, GaussianDpEvent(1.0)),), ("a",))
    with pytest.raises(ValueError, match="states mu ="):
        verify(json.dumps({**json.loads(sampled.to_json()), "mu": 9.0}))


@pytest.mark.parametrize("path", OLD, ids=lambda path: path.stem)
def test_certificates_of_older_versions_are_verified(path):
    text = path.read_text()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert verify(text) == pytest.approx(json.loads(text)["epsilon"])
    _check_form(text)
    _check_form(Certificate.from_json(text).to_json())


def test_written_signatures_are_of_the_published_form():
    X = np.random.RandomState(0).normal(size=(30, 2))
    sampler = DPSWFlowSampler(1.0, 1e-3, n_steps=2, bounds=(-3, 3)).fit(X)
    text = sampler.privacy_.to_json()
    _check_form(text)
    with pytest.raises(jsonschema.ValidationError):
        _check_form(json.dumps({**json.loads(text), "relation": "none"}))


def _check_form(text):
    jsonschema.validate(json.loads(text), json.loads(PUBLISHED.read_text(encoding="utf-8")))
