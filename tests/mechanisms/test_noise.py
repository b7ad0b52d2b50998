"""The noise source: secret by default, reproducible on request, never shared by accident."""

import copy
import itertools
import os
import pickle

import numpy as np
import pytest
import torch
from randomgen import ChaCha

from skdpgen.mechanisms import noise
from skdpgen.mechanisms.exact_samplers import rounded_sampler
from skdpgen.privacy import NoiseSource


def draw(source, n=50, scale=1e6):
    return source.rounded_gaussian(np.full(n, scale)).tolist()


@pytest.mark.parametrize("seed", [0, 7, np.int64(7), 2**40])
def test_a_seed_repeats_the_noise(seed):
    assert draw(NoiseSource(seed)) == draw(NoiseSource(seed))
    assert NoiseSource(seed).reproducible


def test_seeds_and_streams_differ():
    sources = [NoiseSource(0), NoiseSource(1), NoiseSource(0, stream=1), NoiseSource(1, stream=1)]
    draws = [tuple(draw(source)) for source in sources]
    assert len(set(draws)) == 4


def test_no_seed_never_repeats():
    assert draw(NoiseSource()) != draw(NoiseSource())
    assert not NoiseSource().reproducible


@pytest.mark.catches(
    "mechanisms.noise:NoiseSource.__init__", "secrets.randbits(256)", "secrets.randbits(32)"
)
@pytest.mark.parametrize("seeds", [(None,) * 3, (0, 1, 2)])
def test_keys_have_256_bits(seeds, monkeypatch):
    keys = []

    def watched(key, **options):
        keys.append(key)
        return ChaCha(key=key, **options)

    monkeypatch.setattr("skdpgen.mechanisms.noise.ChaCha", watched)
    for seed in seeds:
        NoiseSource(seed)
    words = [key.to_bytes(32, "little") for key in keys]
    for one, other in itertools.combinations(words, 2):
        # Without a seed 24 words of 32 bits are compared: fails with probability 6e-9.
        assert all(one[i : i + 4] != other[i : i + 4] for i in range(0, 32, 4))


@pytest.mark.catches(
    "mechanisms.noise:_check_cipher",
    'words[8:].astype("<u8").tobytes() != _KNOWN_BLOCK',
    "False",
)
@pytest.mark.parametrize("change", [{"rounds": 8}, {"key": 1}, {"counter": 1}])
def test_a_cipher_that_draws_another_stream_is_refused(change):
    noise._check_cipher(ChaCha)
    with pytest.raises(RuntimeError, match="stream of RFC 8439"):
        noise._check_cipher(lambda **options: ChaCha(**options | change))


def test_global_seeds_have_no_influence():
    draws = []
    for _ in range(2):
        np.random.seed(0)  # noqa: NPY002
        torch.manual_seed(0)
        draws.append(draw(NoiseSource()))
    assert draws[0] != draws[1]


@pytest.mark.catches(
    "mechanisms.noise:NoiseSource.torch_generator", "torch.Generator()", "torch", param="None"
)
@pytest.mark.parametrize("seed", [None, 0])
def test_global_generators_are_untouched(seed):
    before = np.random.get_state()[1].tolist(), np.random.get_state()[2]  # noqa: NPY002
    torch_before = torch.get_rng_state()
    source = NoiseSource(seed)
    draw(source)
    torch.randn(3, generator=source.torch_generator())
    assert before == (np.random.get_state()[1].tolist(), np.random.get_state()[2])  # noqa: NPY002
    assert torch.equal(torch_before, torch.get_rng_state())


def test_a_random_state_moves_on():
    state = np.random.RandomState(0)
    first, second = draw(NoiseSource(state)), draw(NoiseSource(state))
    assert first != second
    assert first == draw(NoiseSource(np.random.RandomState(0)))


@pytest.mark.parametrize("spread", [pickle.dumps, copy.copy, copy.deepcopy])
def test_pickles_and_copies_are_refused(spread):
    with pytest.raises(TypeError, match="its state would reveal the noise"):
        spread(NoiseSource())


def test_a_forked_child_is_refused():
    source, refused = NoiseSource(), 0
    uses = source.seed, source.torch_generator, lambda: source.rounded_gaussian(np.ones(3))
    child = os.fork()
    if not child:
        try:
            for use in uses:
                with pytest.raises(RuntimeError, match="before a fork"):
                    use()
                refused += 1
        finally:
            os._exit(refused)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == len(uses)
    for use in uses:
        use()  # the parent goes on


@pytest.mark.catches(
    "mechanisms.noise:NoiseSource._rounded",
    "return rounded_sampler(power).draw(scale, self._digits)",
    """
    if power == 2:
        self._digits(1, scale.size)
        normal = self._draw().standard_normal(scale.shape)
        return np.rint(scale * normal).astype(np.int64)
    return rounded_sampler(power).draw(scale, self._digits)
    """,
    param="rounded_gaussian",
)
@pytest.mark.parametrize("name", ["rounded_gaussian", "rounded_laplace"])
def test_noise_is_what_its_digits_say(name):
    """A box in the tail, the 40th strip in it, and zeros: further out than any double goes."""
    source, sampler = NoiseSource(0), rounded_sampler(2 if name == "rounded_gaussian" else 1)
    # All of the nine attempts but one are in the first box.
    script = iter([(sampler.n_boxes - 1) << 44, *[0] * 8, *[1] * 40, *[0] * 60])
    source._digits = lambda bits, n: np.array([next(script) for _ in range(n)], dtype=np.uint64)
    (drawn,) = getattr(source, name)(np.array([64.0]))
    assert drawn > 64 * 44.5


def test_digits_are_uniform():
    source = NoiseSource(0)
    for bits in (1, 53, 64):
        digits = source._digits(bits, 100_000)
        assert digits.dtype == np.uint64
        # Each of them is 1 half of the time, to six standard errors.
        ones = [((digits >> np.uint64(i)) & np.uint64(1)).mean() for i in range(bits)]
        assert np.abs(np.array(ones) - 0.5).max() < 3 / np.sqrt(100_000)
        assert not (digits >> np.uint64(bits - 1) > 1).any()


def test_each_entry_has_its_own_scale():
    scales = np.array([[0.0, 10.0], [1e4, 1e8]])
    values = np.stack([NoiseSource(i).rounded_gaussian(scales) for i in range(500)])
    assert values.shape == (500, 2, 2)
    assert values.std(0) == pytest.approx(scales, rel=0.15)


@pytest.mark.parametrize("scale", [2.0**58, np.inf, np.nan, -1.0])
def test_noise_beyond_the_grid_is_refused(scale):
    with pytest.raises(ValueError, match="does not fit the grid"):
        NoiseSource(0).rounded_gaussian(np.array([1.0, scale]))
    with pytest.raises(ValueError, match="does not fit the grid"):
        NoiseSource(0).rounded_laplace(np.array([1.0, scale]))


@pytest.mark.parametrize(
    ("seed", "message"),
    [
        (-1, "must be non-negative; got -1"),
        ("7", "got str"),
        (1.0, "got float"),
        (np.random.default_rng(0), "got Generator"),
    ],
)
def test_bad_seeds(seed, message):
    with pytest.raises(ValueError, match=message):
        NoiseSource(seed)


@pytest.mark.parametrize("seed", [None, 0])
def test_torch_generators_differ_from_each_other(seed):
    source = NoiseSource(seed)
    first, second = (torch.randn(5, generator=source.torch_generator()) for _ in range(2))
    assert not torch.equal(first, second)
