"""For all tests: what they draw is the same, whatever ran before."""

import pytest
import torch


@pytest.fixture(autouse=True)
def seed_torch():
    """Seed torch's global generator, from which tests make rows and networks.

    The library draws nothing from it, which tests/privacy/test_noise.py and tests/fuzz check.
    """
    torch.manual_seed(0)
