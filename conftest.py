"""For all tests and examples in docstrings: what they draw is the same in each run."""

import contextlib
import functools
import os
import random
import secrets
from importlib.util import find_spec

import pytest
import torch
from hypothesis import settings

from skdpgen.accounting import accountants
from skdpgen.adaptation.learner import fit_adaptation
from skdpgen.learners.training import descend_to_noise

# JAX, which POT imports, would take most of a GPU's memory.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

# Its module subclasses what smartnoise-synth defines.
collect_ignore = [] if find_spec("snsynth") else ["skdpgen/integrations/smartnoise.py"]

# The same cases in each run; ``-m slow`` looks for others in tests/fuzz.
settings.register_profile("fixed", derandomize=True)
settings.load_profile("fixed")


def pytest_addoption(parser):
    parser.addoption(
        "--fresh-entropy",
        action="store_true",
        help="keys come from the operating system, as for users: other noise in each run",
    )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Run the tests of a file in one process: they share fixtures and prices."""
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log) if config.getoption("dist") == "load" else None


@contextlib.contextmanager
def _keys_of(name):
    """Let keys follow from a name."""
    keys = random.Random(name)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secrets, "randbits", keys.getrandbits)
        patch.setattr(secrets, "token_bytes", keys.randbytes)
        yield


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request):
    """Let what several tests share follow from its own name, not from the test that asks first."""
    if fixturedef.scope == "function":
        return (yield)
    is_fresh = request.config.getoption("--fresh-entropy")
    name = f"{fixturedef.baseid}::{fixturedef.argname}[{getattr(request, 'param_index', 0)}]"
    keys = contextlib.nullcontext() if is_fresh else _keys_of(name)
    with torch.random.fork_rng(devices=[]), keys:
        torch.manual_seed(0)
        return (yield)


@pytest.fixture(autouse=True)
def seed_torch():
    """Seed torch's global generator, from which tests make rows and networks.

    The library draws nothing from it, which tests/mechanisms/test_noise.py and tests/fuzz check.
    """
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def name_entropy(request):
    """Let keys follow from the test's name, so that its noise is the same in each run.

    A test of keys themselves is marked ``fresh_entropy``.
    """
    is_fresh = request.config.getoption("--fresh-entropy")
    if is_fresh or request.node.get_closest_marker("fresh_entropy"):
        yield
    else:
        with _keys_of(request.node.nodeid):
            yield


@pytest.fixture(scope="module")
def few_steps():
    """Let fits of a module take a few steps, where no test of it tells how well they learn."""

    def descend(training, loss, noise_energy, n_steps, *args, **options):
        return descend_to_noise(training, loss, noise_energy, min(n_steps, 3), *args, **options)

    def adapt(*args, n_steps, **options):
        return fit_adaptation(*args, n_steps=min(n_steps, 3), **options)

    with pytest.MonkeyPatch.context() as patch:
        learners = (f"learners.{name}" for name in ("normals", "particles", "sketch", "tables"))
        for learner in ("histories.learner", *learners):
            patch.setattr(f"skdpgen.{learner}.descend_to_noise", descend)
        patch.setattr("skdpgen.adaptation._domain_adapter.fit_adaptation", adapt)
        yield


@pytest.fixture(scope="session", autouse=True)
def keep_prices():
    """Keep all prices that accountants found: many tests plan the same releases.

    A price is a function of its arguments. The package keeps some of them, too.
    """
    with pytest.MonkeyPatch.context() as patch:
        find = accountants._epsilon_of.__wrapped__
        patch.setattr(accountants, "_epsilon_of", functools.cache(find))
        yield
