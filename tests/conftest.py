"""For all tests: what they draw is the same, whatever ran before, and in each run."""

import random
import secrets

import pytest
import torch


def pytest_addoption(parser):
    parser.addoption(
        "--fresh-entropy",
        action="store_true",
        help="keys come from the operating system, as for users: other noise in each run",
    )


@pytest.fixture(autouse=True)
def seed_torch():
    """Seed torch's global generator, from which tests make rows and networks.

    The library draws nothing from it, which tests/privacy/test_noise.py and tests/fuzz check.
    """
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def name_entropy(request, monkeypatch):
    """Let keys follow from the test's name, so that its noise is the same in each run.

    A test of keys themselves is marked ``fresh_entropy``.
    """
    is_fresh = request.config.getoption("--fresh-entropy")
    if not (is_fresh or request.node.get_closest_marker("fresh_entropy")):
        of_test = random.Random(request.node.nodeid)
        monkeypatch.setattr(secrets, "randbits", of_test.getrandbits)
        monkeypatch.setattr(secrets, "token_bytes", of_test.randbytes)
