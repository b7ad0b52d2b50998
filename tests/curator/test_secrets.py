"""Secrets: all of what the operating system gave is in them, and nothing else is."""

import os
import re
import secrets
import time
import uuid
from pathlib import Path

import numpy as np
import pytest
import torch
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms
from randomgen import ChaCha

import skdpgen
from skdpgen.engines import partitioned
from skdpgen.mechanisms import noise
from skdpgen.privacy import NoiseSource

pytestmark = pytest.mark.fresh_entropy


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


def task_name():
    """Return the part of a task's name that is drawn; six bits say that it was drawn at random."""
    return bytes.fromhex(partitioned.draw_name().removeprefix("skdpgen-"))


# How each secret is made, and how many of its bits are drawn.
SECRETS = {
    "key of the noise": (stream_key, 256),
    "key of the hashes of persons": (lambda: NoiseSource().key(), 256),
    "name of a task": (task_name, 122),
}


@pytest.mark.catches(
    "engines.partitioned:draw_name", "uuid4().hex", "4 * uuid4().hex[:8]", param="name of a task"
)
@pytest.mark.catches(
    "mechanisms.noise:NoiseSource.__init__",
    "secrets.randbits(256)",
    'int.from_bytes(__import__("hashlib").sha256(b"%d" % os.getpid()).digest())',
    param="key of the noise",
)
@pytest.mark.catches(
    "mechanisms.noise:NoiseSource.key",
    "self._draw().bytes(32)",
    "self._draw().bytes(4) * 8",
    param="key of the hashes of persons",
)
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
        "_process/isolation.py",  # seeds of torch's own generators
        "accounting/verification.py",  # an example
        "data/cells.py",  # the type of cells that are UUIDs
        "engines/partitioned.py",
        "mechanisms/noise.py",
        "streams.py",  # names, which are public
        "tables/columns/identifier.py",  # how identifiers of synthetic rows are written
    }


ENTROPY = bytes(range(7, 39))


@pytest.mark.catches(
    "mechanisms.noise:NoiseSource.__init__",
    "secrets.randbits(256)",
    'int.from_bytes(__import__("hashlib").sha256(secrets.token_bytes(4)).digest())',
)
def test_keys_are_what_the_operating_system_gave(monkeypatch):
    """As it is: nothing is left out, hashed or stretched."""
    asked = []

    def randbits(n_bits):
        asked.append(n_bits)
        return int.from_bytes(ENTROPY, "little")

    monkeypatch.setattr(secrets, "randbits", randbits)
    assert stream_key() == ENTROPY
    assert asked == [256]


def test_names_of_tasks_are_what_the_operating_system_gave(monkeypatch):
    monkeypatch.setattr(uuid.os, "urandom", lambda n_bytes: ENTROPY[:n_bytes])
    assert partitioned.draw_name() == f"skdpgen-{uuid.UUID(bytes=ENTROPY[:16], version=4).hex}"


def flip(i):
    return (int.from_bytes(ENTROPY, "little") ^ (1 << i)).to_bytes(32, "little")


def draw_of(key, monkeypatch):
    monkeypatch.setattr(secrets, "randbits", lambda n_bits: int.from_bytes(key, "little"))
    source = NoiseSource()
    return source.key() + source._digits(64, 2).tobytes()


def test_each_bit_of_a_key_changes_the_stream(monkeypatch):
    streams = [draw_of(key, monkeypatch) for key in [ENTROPY, *map(flip, range(256))]]
    assert len(set(streams)) == 257
    # Half of the bits, in both directions: 128 of those of 24 bytes, or more, ± 7 deviations.
    words = np.unpackbits(np.array([list(stream) for stream in streams], dtype=np.uint8), axis=1)
    changed = (words[1:] != words[0]).mean(1)
    assert np.abs(changed - 0.5).max() < 3.5 / np.sqrt(words.shape[1])


@pytest.mark.catches(
    "mechanisms.noise:NoiseSource.__init__",
    "ChaCha(key=key, rounds=20)",
    "ChaCha(key=key, rounds=8)",
)
def test_streams_are_those_of_chacha20(monkeypatch):
    """As another library computes them: of 20 rounds, from all of the key."""
    cipher = Cipher(algorithms.ChaCha20(ENTROPY, bytes(16)), None).encryptor()
    stream = cipher.update(bytes(1024))
    monkeypatch.setattr(secrets, "randbits", lambda n_bits: int.from_bytes(ENTROPY, "little"))
    assert NoiseSource()._digits(64, 128).tobytes() == stream
