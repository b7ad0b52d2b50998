"""Signed certificates, their readings and their form."""

import json
import math
import warnings
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from dp_accounting import (
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
)

from skdpgen import DPSWFlowSampler
from skdpgen.__main__ import main
from skdpgen.accounting.signatures import check_signature
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


def test_a_signature_is_of_all_that_is_said():
    private, public = make_keys()
    signed = sign(CERTIFICATE.to_json(), private)
    assert verify(signed, public) == verify(signed) == CERTIFICATE.epsilon
    # How it is written does not matter, and what is said does.
    assert verify(json.dumps(json.loads(signed)), public.decode()) == CERTIFICATE.epsilon
    for name, value in [("assumptions", ["none"]), ("n_records", 1001), ("reproducible", True)]:
        changed = json.dumps({**json.loads(signed), name: value})
        with pytest.raises(ValueError, match="changed afterwards"):
            verify(changed, public)


def test_a_signature_of_others_proves_nothing():
    (private, _), (_, other) = make_keys(), make_keys()
    with pytest.raises(ValueError, match="not signed by that key"):
        verify(sign(CERTIFICATE.to_json(), private), other)
    with pytest.raises(ValueError, match="is not signed"):
        verify(CERTIFICATE.to_json(), other)


def test_keys_of_other_kinds_are_refused():
    private, public = make_keys(ec.generate_private_key(ec.SECP256R1()))
    text = CERTIFICATE.to_json()
    with pytest.raises(ValueError, match="must be an Ed25519 key"):
        sign(text, private)
    with pytest.raises(ValueError, match="must be an Ed25519 key"):
        verify(text, public)
    for function in (sign, verify):
        with pytest.raises(ValueError, match="no PEM key"):
            function(text, b"key")


def test_on_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    private, public = make_keys()
    Path("key.pem").write_bytes(private)
    Path("public.pem").write_bytes(public)
    Path("plain.json").write_text(CERTIFICATE.to_json())
    assert main(["sign", "plain.json", "--key", "key.pem", "--output", "signed.json"]) == 0
    assert main(["verify", "signed.json", "--public-key", "public.pem"]) == 0
    said = capsys.readouterr().out
    assert "signed by the key of public.pem" in said
    assert "cannot prove that the fit took place" in said
    assert main(["verify", "plain.json", "--public-key", "public.pem"]) == 1
    # A certificate that understates is not signed.
    false = {**json.loads(CERTIFICATE.to_json()), "epsilon": 0.1}
    Path("false.json").write_text(json.dumps(false))
    assert main(["sign", "false.json", "--key", "key.pem", "--output", "other.json"]) == 1
    assert not Path("other.json").exists()


@pytest.mark.parametrize(
    ("events", "mu", "rho"),
    [
        ([GaussianDpEvent(2.0), SelfComposedDpEvent(GaussianDpEvent(4.0), 4)], 0.5**0.5, 0.25),
        ([LaplaceDpEvent(2.0)], None, 0.125),
        ([LaplaceDpEvent(2.0), GaussianDpEvent(2.0)], None, 0.25),
        ([PoissonSampledDpEvent(0.1, GaussianDpEvent(1.0))], None, None),
        ([NonPrivateDpEvent()], math.inf, math.inf),
        ([GaussianDpEvent(0.0)], math.inf, math.inf),
    ],
)
def test_readings(events, mu, rho):
    relation = "replace_one" if any(isinstance(e, LaplaceDpEvent) for e in events) else "zero_out"
    certificate = Certificate(tuple(events), ("a",) * len(events), relation)
    for found, value in ((certificate.mu, mu), (certificate.rho, rho)):
        assert found == value if value is None else found == pytest.approx(value)


@pytest.mark.parametrize("name", ["epsilon", "mu", "rho"])
def test_a_reading_that_is_too_small_is_refused(name):
    data = json.loads(CERTIFICATE.to_json())
    with pytest.raises(ValueError, match=f"states {name} ="):
        verify(json.dumps({**data, name: data[name] * 0.99}))


def test_what_is_signed_says_everything_once(tmp_path):
    """Whoever reads the first of two members would see another text than who signs the last."""
    private, public = make_keys()
    signed = sign(CERTIFICATE.to_json(), private)
    forged = signed.replace('"epsilon":', '"epsilon": 0.1, "epsilon":', 1)
    assert json.loads(forged) == json.loads(signed)
    for read in (
        lambda: verify(forged, public),
        lambda: verify(forged),
        lambda: sign(forged, private),
        lambda: check_signature(forged, public),
        lambda: Certificate.from_json(forged),
    ):
        with pytest.raises(ValueError, match=r"has \['epsilon'\] more than once"):
            read()
    nested = signed.replace('"algorithm":', '"algorithm": "none", "algorithm":', 1)
    with pytest.raises(ValueError, match=r"has \['algorithm'\] more than once"):
        verify(nested, public)


@pytest.mark.parametrize(
    "change",
    [
        {"algorithm": "none"},
        {"value": "00"},
        {"value": "FF" * 64},
        {"value": " ".join(["ff"] * 64)},
        {"key": "mine"},
    ],
    ids=str,
)
def test_signatures_have_one_form(change):
    private, public = make_keys()
    data = json.loads(sign(CERTIFICATE.to_json(), private))
    data["signature"] |= change
    with pytest.raises(ValueError, match="Not a certificate: signature "):
        verify(json.dumps(data), public)


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


def test_what_is_written_is_of_the_published_form():
    X = np.random.RandomState(0).normal(size=(30, 2))
    sampler = DPSWFlowSampler(1.0, 1e-3, n_steps=2, bounds=(-3, 3)).fit(X)
    text = sampler.privacy_.to_json()
    _check_form(text)
    _check_form(sign(text, make_keys()[0]))
    with pytest.raises(jsonschema.ValidationError):
        _check_form(json.dumps({**json.loads(text), "relation": "none"}))


def _check_form(text):
    jsonschema.validate(json.loads(text), json.loads(PUBLISHED.read_text(encoding="utf-8")))


def test_a_digest_tells_releases_apart():
    X = np.random.RandomState(0).normal(size=(30, 2))

    def find_digest(random_state, rows):
        sampler = DPSWFlowSampler(
            1.0, 1e-3, n_steps=2, bounds=(-3, 3), random_state=random_state
        ).fit(rows)
        return Certificate.from_json(sampler.privacy_.to_json()).digest

    assert find_digest(0, X) == find_digest(0, X)
    digests = {find_digest(0, X), find_digest(1, X), find_digest(0, -X), find_digest(None, X)}
    assert len(digests) == 4
