# SPDX-License-Identifier: BSD-3-Clause
"""Sources of randomness: exact noise and coins from one cryptographic stream."""

import numbers
import os
import secrets
from collections.abc import Sequence

import numpy as np
import torch
from randomgen import ChaCha

from ..accounting.moments import number_of_runs
from ..exceptions import PublicRuntimeError, PublicValueError
from .exact_samplers import rounded_sampler, toss_coins

# Assumptions of every certificate: all draws are exact if the bits of the stream are random.
ASSUMED_OF_NOISE = (
    "the bits of a ChaCha20 stream, of which noise and coins are exact samples, are random",
    "costs are computed in double precision; how long anything takes is not covered",
)
# Assumption of releases whose cost depends on the distribution of random directions.
ASSUMED_OF_DIRECTIONS = (
    "directions are drawn in double precision; the law of their sensitivity is that of exact ones"
)
# Block 1 of ChaCha20 under the key whose last byte is 1: RFC 8439, appendix A.1, test vector 3.
_KNOWN_BLOCK = bytes.fromhex(
    "3aeb5224ecf849929b9d828db1ced4dd832025e8018b8160b82284f3c949aa5a"
    "8eca00bbb4a73bdad192b5c42f73f2fd4e273644c8b36125a64addeb006c13a0"
)


def _check_cipher(cipher: type) -> None:
    """Raise a RuntimeError unless a bit generator draws the published stream of ChaCha20."""
    words = cipher(key=1 << 248, rounds=20).random_raw(16)
    if words[8:].astype("<u8").tobytes() != _KNOWN_BLOCK:
        raise RuntimeError(
            "randomgen.ChaCha does not draw the stream of RFC 8439, so noise could be predictable. "
            "Install another build: pip install --force-reinstall randomgen."
        )


# On import, before any budget is touched.
_check_cipher(ChaCha)


class NoiseSource:
    """Noise, coins and directions of one fit, from one ChaCha20 stream.

    Parameters
    ----------
    random_state : None, int or numpy.random.RandomState, default=None
        None: a 256-bit key from the operating system, the only choice that gives a private release.
        Otherwise the stream follows from `random_state` (*reproducible mode*): whoever holds or
        guesses it can recompute the noise.
    stream : int, default=0
        Sources with the same seed and different streams are independent of each other.

    Attributes
    ----------
    reproducible : bool
        Whether the stream was seeded by the caller.
    public_words : list of int
        Words of the stream that seeded public draws so far; they tell nothing about the others.

    Notes
    -----
    The state of the stream would reveal the noise, so a source cannot be pickled. In a forked
    child, where it would repeat its parent's noise, it raises an error. The global generators of
    NumPy and torch are neither read nor written.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpgen.mechanisms.noise import NoiseSource
    >>> NoiseSource().rounded_gaussian(np.full((2, 3), 1e6)).shape
    (2, 3)
    """

    def __init__(
        self, random_state: int | np.random.RandomState | None = None, *, stream: int = 0
    ) -> None:
        self.reproducible = random_state is not None
        if random_state is None:
            key = secrets.randbits(256)
        else:
            key = _key_from_seed(random_state, stream)
        # Twenty rounds, the full cipher; NumPy's own generators can be predicted from their output.
        self._generator = np.random.Generator(ChaCha(key=key, rounds=20))
        self._pid = os.getpid()
        self.public_words: list[int] = []

    def rounded_gaussian(self, scale: np.ndarray) -> np.ndarray:
        """Draw exact Gaussians of standard deviation `scale`, rounded to whole numbers.

        Parameters
        ----------
        scale : ndarray
            Standard deviations, in units of the grid; zeros give zeros.

        Returns
        -------
        ndarray of int64, of the shape of `scale`
        """
        return self._rounded(2, scale)

    def rounded_laplace(self, scale: np.ndarray) -> np.ndarray:
        """Draw exact Laplace noise of scale parameter `scale`, rounded to whole numbers.

        Parameters
        ----------
        scale : ndarray
            Scale parameters, in units of the grid; zeros give zeros.

        Returns
        -------
        ndarray of int64, of the shape of `scale`
        """
        return self._rounded(1, scale)

    def _rounded(self, power, scale):
        scale = np.asarray(scale, dtype=np.float64)
        # Negated so that NaN is refused as well.
        if not np.all((scale >= 0) & (scale < 2.0**58)):
            raise PublicValueError(
                "The noise does not fit the grid, since the budget is too small. Use a larger "
                "epsilon."
            )
        # Without noise no words are drawn: the stream goes on as if nothing had happened.
        if not scale.any():
            return np.zeros(scale.shape, dtype=np.int64)
        return rounded_sampler(power).draw(scale, self._digits)

    def randomized_response(
        self, codes: np.ndarray, n_classes: int, probability: float
    ) -> np.ndarray:
        """Replace each code, with exactly this probability, by a uniform one of all classes.

        NumPy draws whole numbers below a bound by rejection, and so exactly.
        """
        replaced = toss_coins(probability, len(codes), self._digits)
        return np.where(replaced, self._draw().integers(n_classes, size=len(codes)), codes)

    def poisson_sample(self, n_records: int, rate: float) -> np.ndarray:
        """Return the positions of a Poisson sample: an exact coin is tossed for each record."""
        return np.flatnonzero(toss_coins(rate, n_records, self._digits))

    def fixed_sample(self, n_records: int, size: int) -> np.ndarray:
        """Return the positions of `size` records, without replacement and in random order.

        NumPy draws them by whole numbers below bounds, and so exactly.
        """
        return self._draw().choice(n_records, size, replace=False)

    def number_of_runs(self, mean: float, shape: float) -> int:
        """Draw the number of runs of a mechanism of which only the best outcome is released."""
        return number_of_runs(self._draw().random(), mean, shape)

    def key(self) -> bytes:
        """Return a secret key of 256 bits, for repeatable hashes."""
        return self._draw().bytes(32)

    def public_generator(self) -> np.random.Generator:
        """Return a fast generator, seeded from the stream, for public draws."""
        # Five words of 63 bits fill the 128 bits to which NumPy hashes them.
        return np.random.Generator(np.random.SFC64(self._draw_words(5)))

    def torch_generator(self) -> torch.Generator:
        """Return a CPU ``torch.Generator`` seeded from the stream, for public draws.

        torch keeps 32 bits of its seed.
        """
        return torch.Generator().manual_seed(self.seed())

    def seed(self) -> int:
        """Return a fresh seed of 63 bits, for public draws."""
        return self._draw_words()[0]

    def _draw_words(self, n=None):
        """Draw words of 63 bits that need not be secret."""
        # A single word is drawn as a scalar, which takes other bits of the stream than an array.
        words = np.atleast_1d(self._draw().integers(2**63, size=n)).tolist()
        self.public_words += words
        return words

    def _digits(self, bits, n):
        """Draw n uniform whole numbers below 2^bits, at most 2^64."""
        words = self._draw().bit_generator.random_raw(n)
        return words >> np.uint64(64 - bits)

    def _draw(self):
        if os.getpid() != self._pid:
            raise PublicRuntimeError(
                "This noise source was made before a fork and would repeat its parent's noise; "
                "make a new one in the child process."
            )
        return self._generator

    def __getstate__(self):
        raise TypeError("A NoiseSource cannot be pickled: its state would reveal the noise.")


class PublicSource(NoiseSource):
    """Source of public draws that repeats the `public_words` of a fit; later ones are fresh."""

    def __init__(
        self, words: Sequence[int], random_state: int | np.random.RandomState | None = None
    ) -> None:
        super().__init__(random_state, stream=2)
        self._words = list(words)

    def _draw_words(self, n=None):
        if not self._words:
            return super()._draw_words(n)
        n = n or 1
        words, self._words = self._words[:n], self._words[n:]
        self.public_words += words
        return words + (super()._draw_words(n - len(words)) if len(words) < n else [])


def check_seed(name: str, random_state: object) -> None:
    """Raise a ValueError if a parameter is no seed."""
    if not isinstance(random_state, numbers.Integral | np.random.RandomState | None):
        raise ValueError(
            f"{name} must be None, an int or a numpy.random.RandomState; "
            f"got {type(random_state).__name__}."
        )
    if isinstance(random_state, numbers.Integral) and random_state < 0:
        raise ValueError(f"{name} must be non-negative; got {random_state}.")


def _key_from_seed(random_state, stream):
    """Expand a caller's seed to a key, without touching global generators."""
    check_seed("random_state", random_state)
    if isinstance(random_state, numbers.Integral):
        entropy = int(random_state)
    else:
        # As everywhere in scikit-learn, the state of an instance advances, so that fits differ.
        entropy = [int(word) for word in random_state.randint(2**31, size=8)]
    words = np.random.SeedSequence(entropy, spawn_key=(stream,)).generate_state(8, np.uint32)
    return int.from_bytes(words.tobytes(), "little")
