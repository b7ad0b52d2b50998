"""Where randomness comes from."""

import numbers
import os
import secrets

import numpy as np
import torch
from randomgen import ChaCha

from .repetitions import number_of_runs

__all__ = ["NoiseSource"]


class NoiseSource:
    """Noise, coins and directions of one fit, from one ChaCha20 stream.

    Parameters
    ----------
    random_state : None, int or numpy.random.RandomState, default=None
        ``None``: a 256-bit key from the operating system, the only choice that gives a private
        release. Otherwise the stream follows from `random_state` (*reproducible mode*): whoever
        holds or guesses it can recompute the noise.

    stream : int, default=0
        Sources with the same seed and different streams are independent of each other.

    Attributes
    ----------
    reproducible : bool
        Whether the stream was seeded by the caller.

    Notes
    -----
    The state of the stream would reveal the noise, so a source cannot be pickled, and it refuses
    to work in a forked child, where it would repeat its parent's noise. NumPy's and torch's
    global generators are neither read nor written.
    """

    def __init__(self, random_state=None, *, stream=0):
        self.reproducible = random_state is not None
        if random_state is None:
            key = secrets.randbits(256)
        else:
            key = _key_from_seed(random_state, stream)
        self._generator = np.random.Generator(ChaCha(key=key, rounds=20))
        self._pid = os.getpid()

    def rounded_gaussian(self, scale):
        """Draw Gaussians of standard deviation `scale` and round them to whole numbers.

        A double has 53 bits: at scales above 2²⁰ the sampler's own lattice would show through the
        rounding, and neighbouring whole numbers would not be equally likely. So a second rounded
        Gaussian is added, 2⁻²⁰ times as wide, which averages the lattice out. It is independent
        further noise, and the release a post-processing of one with `scale` alone.

        Parameters
        ----------
        scale : ndarray
            Standard deviations, in units of the grid; zeros give zeros.

        Returns
        -------
        ndarray of int64, of the shape of `scale`
        """
        scale = np.asarray(scale, dtype=np.float64)
        if not np.all(scale < 2.0**58):
            raise ValueError(
                "The noise does not fit the grid: the budget is too small to mean much."
            )
        draw = self._draw()
        coarse = np.rint(scale * draw.standard_normal(scale.shape)).astype(np.int64)
        if not (scale > 2.0**20).any():
            return coarse
        fine = np.rint(scale * 2.0**-20 * draw.standard_normal(scale.shape)).astype(np.int64)
        return coarse + fine

    def rounded_laplace(self, scale):
        """Draw Laplace noise of scale parameter `scale` and round it to whole numbers.

        It is the difference of two exponentials, whose tails the sampler does not cut off.

        Parameters
        ----------
        scale : ndarray
            Scale parameters, in units of the grid, at most 2²⁰; zeros give zeros.

        Returns
        -------
        ndarray of int64, of the shape of `scale`
        """
        scale = np.asarray(scale, dtype=np.float64)
        if not np.all(scale <= 2.0**20):
            # Beyond it the sampler's own lattice would show: see `rounded_gaussian`.
            raise ValueError("The noise does not fit the grid.")
        draw = self._draw()
        first, second = (draw.standard_exponential(scale.shape) for _ in range(2))
        return np.rint(scale * (first - second)).astype(np.int64)

    def randomized_response(self, codes, n_classes, probability):
        """Replace each code, with a probability, by one drawn uniformly from all classes.

        The coins are exact for a probability that is a multiple of 2⁻⁵³.
        """
        draw = self._draw()
        replaced = draw.random(len(codes)) < probability
        return np.where(replaced, draw.integers(n_classes, size=len(codes)), codes)

    def poisson_sample(self, n_records, rate):
        """Toss a coin for each record; return the positions of those that it chose."""
        return np.flatnonzero(self._draw().random(n_records) < rate)

    def fixed_sample(self, n_records, size):
        """Draw `size` of the records without replacement, in random order."""
        return self._draw().choice(n_records, size, replace=False)

    def number_of_runs(self, mean, shape):
        """Draw how often a mechanism runs of which only the best outcome is told."""
        return number_of_runs(self._draw().random(), mean, shape)

    def public_generator(self):
        """Return a fast generator with a 256-bit seed from the stream, for what will be public."""
        return np.random.Generator(np.random.SFC64(self._draw().integers(2**63, size=5).tolist()))

    def torch_generator(self):
        """Return a CPU ``torch.Generator`` seeded from the stream."""
        return torch.Generator().manual_seed(self.seed())

    def seed(self):
        """Return a fresh seed of 63 bits, for what is not a matter of privacy."""
        return int(self._draw().integers(2**63))

    def _draw(self):
        if os.getpid() != self._pid:
            raise RuntimeError(
                "This noise source was made before a fork and would repeat its parent's noise; "
                "make a new one in the child process."
            )
        return self._generator

    def __getstate__(self):
        raise TypeError("A NoiseSource cannot be pickled: its state would reveal the noise.")


def _key_from_seed(random_state, stream):
    """Expand a caller's seed to a key, without touching global generators."""
    if isinstance(random_state, numbers.Integral):
        entropy = int(random_state)
    elif isinstance(random_state, np.random.RandomState):
        # As everywhere in scikit-learn, an instance moves on, so that fits differ.
        entropy = [int(word) for word in random_state.randint(2**31, size=8)]
    else:
        raise ValueError(
            "random_state must be None, an int or a numpy.random.RandomState; "
            f"got {type(random_state).__name__}."
        )
    if isinstance(entropy, int) and entropy < 0:
        raise ValueError(f"random_state must be non-negative; got {entropy}.")
    words = np.random.SeedSequence(entropy, spawn_key=(stream,)).generate_state(8, np.uint32)
    return int.from_bytes(words.tobytes(), "little")
