"""Secrets: all of what the operating system gave is in them, and nothing else is."""

import itertools
import os
import re
import secrets
import time
import uuid
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from cryptography.hazmat.primitives.asymmetric import x25519
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from randomgen import ChaCha

import skdpgen
from skdpgen import Boolean, DPSWFlowSampler, Schema
from skdpgen.curator import partitions
from skdpgen.federated import secure_aggregation
from skdpgen.mechanisms import noise
from skdpgen.privacy import Client, FederatedFit, NoiseSource, Sharing

pytestmark = pytest.mark.fresh_entropy

SCHEMA = Schema({"a": Boolean(), "b": Boolean(), "ill": Boolean()})
JOINT = FederatedFit(DPSWFlowSampler(2.0, 1e-5, schema=SCHEMA), Sharing(3), 30, target="ill")


def stream_key():
    """Return the key of a source of noise."""
    with pytest.MonkeyPatch.context() as patch:
        keys = []

        def watched(key, **options):
            keys.append(key)
            return ChaCha(key=key, **options)

        patch.setattr(noise, "ChaCha", watched)
        NoiseSource()
    return keys[0].to_bytes(32, "little")


def start():
    people = [Client(JOINT, position) for position in range(3)]
    return people, {person.position: person.public_key for person in people}


def pair_seed():
    """Return the seed of what one client adds and another one subtracts."""
    people, keys = start()
    return people[0]._agree(keys[1])


def task_name():
    """Return the part of a task's name that is drawn; six bits say that it was drawn at random."""
    return bytes.fromhex(partitions.draw_name().removeprefix("skdpgen-"))


# How each secret is made, and how many of its bits are drawn.
SECRETS = {
    "key of the noise": (stream_key, 256),
    "key of the hashes of persons": (lambda: NoiseSource().key(), 256),
    # X25519 keeps five bits of a key for itself.
    "private key of a client": (lambda: Client(JOINT, 0)._private_key, 251),
    "seed of a client's own mask": (lambda: Client(JOINT, 0)._own_seed, 256),
    "seed of a mask of two clients": (pair_seed, 256),
    "name of a task": (task_name, 122),
}


@pytest.mark.parametrize("name", SECRETS)
def test_each_bit_is_drawn_whatever_the_time_the_process_and_seeds_are(name, monkeypatch):
    make, n_bits = SECRETS[name]
    monkeypatch.setattr(os, "getpid", lambda: 1234)
    for clock in ("time", "time_ns", "monotonic", "monotonic_ns", "perf_counter_ns"):
        monkeypatch.setattr(time, clock, lambda: 1234)
    drawn = []
    for _ in range(64):
        np.random.seed(0)  # noqa: NPY002
        torch.manual_seed(0)
        drawn.append(make())
    assert len({len(secret) for secret in drawn}) == 1
    assert len(set(drawn)) == 64
    bits = np.unpackbits(np.frombuffer(b"".join(drawn), dtype=np.uint8)).reshape(64, -1)
    # A bit that is drawn is the same 64 times with a chance of 2^-63: 3e-17 for 256 of them.
    assert (bits.min(0) != bits.max(0)).sum() == n_bits
    # Two bits are equal, or opposite, 64 times with a chance of 2^-63: 4e-15 for all pairs.
    varying = bits[:, bits.min(0) != bits.max(0)].T
    assert len({tuple(bit ^ bit[0]) for bit in varying}) == n_bits


def test_no_other_module_draws_secrets():
    """One that does so has its secrets tried here."""
    package = Path(skdpgen.__file__).parent
    sources = r"^(import|from) (secrets|uuid|random|randomgen)\b|urandom|Key\.generate\("
    texts = {path: path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    found = {path for path, text in texts.items() if re.search(sources, text, re.MULTILINE)}
    assert {path.relative_to(package).as_posix() for path in found} == {
        "accounting/verification.py",  # an example
        "curator/cells.py",  # the type of cells that are UUIDs
        "curator/partitions.py",
        "federated/secure_aggregation.py",
        "mechanisms/noise.py",
        "streams.py",  # names, which are public
        "tables/columns/identifier.py",  # how identifiers of synthetic rows are written
    }


ENTROPY = bytes(range(7, 39))


def test_keys_are_what_the_operating_system_gave(monkeypatch):
    """As it is: nothing is left out, hashed or stretched."""
    asked = []

    def randbits(n_bits):
        asked.append(n_bits)
        return int.from_bytes(ENTROPY, "little")

    def token_bytes(n_bytes):
        asked.append(8 * n_bytes)
        return ENTROPY

    private = x25519.X25519PrivateKey.from_private_bytes(ENTROPY)
    keys = SimpleNamespace(generate=lambda: private, from_private_bytes=lambda given: private)
    module = SimpleNamespace(X25519PrivateKey=keys)
    monkeypatch.setattr(secrets, "randbits", randbits)
    monkeypatch.setattr(secrets, "token_bytes", token_bytes)
    monkeypatch.setattr(secure_aggregation, "_x25519", lambda: module)
    assert stream_key() == ENTROPY
    client = Client(JOINT, 0)
    assert client._own_seed == client._private_key == ENTROPY
    assert asked == [256, 256]


def test_names_of_tasks_are_what_the_operating_system_gave(monkeypatch):
    monkeypatch.setattr(uuid.os, "urandom", lambda n_bytes: ENTROPY[:n_bytes])
    assert partitions.draw_name() == f"skdpgen-{uuid.UUID(bytes=ENTROPY[:16], version=4).hex}"


def flip(i):
    return (int.from_bytes(ENTROPY, "little") ^ (1 << i)).to_bytes(32, "little")


def draw_of(key, monkeypatch):
    monkeypatch.setattr(secrets, "randbits", lambda n_bits: int.from_bytes(key, "little"))
    source = NoiseSource()
    return source.key() + source._digits(64, 2).tobytes()


@pytest.mark.parametrize(
    "expand",
    [
        pytest.param(lambda key, patch: secure_aggregation.expand(key, 3).tobytes(), id="masks"),
        pytest.param(draw_of, id="noise"),
    ],
)
def test_each_bit_of_a_key_changes_the_stream(expand, monkeypatch):
    streams = [expand(key, monkeypatch) for key in [ENTROPY, *map(flip, range(256))]]
    assert len(set(streams)) == 257
    # Half of the bits, in both directions: 128 of those of 24 bytes, or more, ± 7 deviations.
    words = np.unpackbits(np.array([list(stream) for stream in streams], dtype=np.uint8), axis=1)
    changed = (words[1:] != words[0]).mean(1)
    assert np.abs(changed - 0.5).max() < 3.5 / np.sqrt(words.shape[1])


def test_streams_are_those_of_chacha20(monkeypatch):
    """As another library computes them: of 20 rounds, from all of the key."""
    cipher = Cipher(algorithms.ChaCha20(ENTROPY, bytes(16)), None).encryptor()
    stream = cipher.update(bytes(1024))
    assert secure_aggregation.expand(ENTROPY, 128).tobytes() == stream
    monkeypatch.setattr(secrets, "randbits", lambda n_bits: int.from_bytes(ENTROPY, "little"))
    assert NoiseSource()._digits(64, 128).tobytes() == stream


def test_seeds_of_two_owners_are_known_to_them_alone():
    people, keys = start()
    seeds = {(a, b): people[a]._agree(keys[b]) for a, b in itertools.permutations(range(3), 2)}
    for a, b in seeds:
        assert seeds[a, b] == seeds[b, a]
        assert len(seeds[a, b]) == 32
    assert len({*seeds.values(), *(person._own_seed for person in people)}) == 6
    # Another agreement with the same keys gives other seeds.
    again = Client(FederatedFit(JOINT.generator, Sharing(3), 31, target="ill"), 0)
    again._private_key = people[0]._private_key
    assert again._agree(keys[1]) != seeds[0, 1]
