# SPDX-License-Identifier: BSD-3-Clause
"""What every format offers: the public map between data as users have them and rows."""

import numbers
from abc import ABC, abstractmethod
from types import MappingProxyType

import numpy as np

# Rows are generated and decoded in pieces of this size.
SAMPLE_BLOCK = 10_000
# So many rows can be asked for at once, at most.
_MOST_SAMPLES = 10**9


class Format(ABC):
    """What is public of the data, and the maps between them and rows, as releases see them.

    Attributes
    ----------
    n_columns : int
        Columns of a row.
    classes : ndarray or None
        The classes that samples can be asked for.
    are_images : bool
        Whether, by what is public, rows can well be the pixels of square images.
    could_be_images : bool
        Whether that would be so if bounds from 0 to one number were declared.
    encoder : object or None
        A public transformer that rows go through.
    components : PrivatePCA or None
        What they go through after that, which is paid for.
    shares : dict of str to float
        What `settle` releases, in this order, and what it gets of the budget, of Σ s⁻² over the
        noise multipliers s of Gaussian releases.
    has_blocks : bool
        Whether rows are blocks of weights of the levels of columns. Then `block_sizes` says how
        many there are of each.
    clip_norm : float
        Radius that encoded rows are scaled down to.
    found : dict
        What fitted estimators show of it, by the names of attributes.
    feature_scale : float or None
        What features in [0, 1] are multiplied by in a row of the unit ball; None if rows are made
        of something else.
    """

    classes = None
    are_images = could_be_images = False
    encoder = None
    components = None
    shares = MappingProxyType({})
    has_blocks = False
    clip_norm = 1.0
    feature_scale = None
    found = MappingProxyType({})

    @abstractmethod
    def encode(self, X, y=None):
        """Map data, and numbers beside them, to rows; each on its own."""

    @abstractmethod
    def sample(self, generate, shares, n_samples, *, y, where, noise):
        """Return samples as what `fit` was given, asked for as in `BaseGenerator.sample`.

        ``generate(classes, generator)`` makes a row for each of a tensor of classes, of which
        `shares` says how often each is drawn.
        """

    @abstractmethod
    def read_public(self, estimator, X):
        """Check rows that are no secret, as scikit-learn does; return them for `encode`."""

    def without_target(self):
        """Return the format of X alone."""
        return self

    def draw_windows(self, n_windows, generator):
        """Draw small windows of images, as public directions of rows.

        Parameters
        ----------
        n_windows : int
        generator : torch.Generator
            On the CPU, where directions are made, so that every device gets the same.

        Yields
        ------
        tensor of shape (n, n_columns)
            Together `n_windows`, in blocks; none if rows are not known to be images.
        """
        yield from ()

    def resolve(self, curator):
        """Release what is open, and return the format of what is to be learnt."""
        return self

    def calibrate_marginals(self, generate):
        """Return the format by which samples have the shapes that `settle` found.

        ``generate(classes, generator)`` makes rows as they were learnt.
        """
        return self

    def refuse(self, X, y=None):
        """Raise an error if a block of private rows holds what cannot be encoded."""
        return  # what is wrong with numbers is found without knowing what they are


def check_count(n_samples):
    """Refuse what is no number of samples."""
    if isinstance(n_samples, bool) or not isinstance(n_samples, numbers.Integral | np.integer):
        raise ValueError(f"n_samples must be a whole number; got {n_samples!r}.")
    if n_samples < 1:
        raise ValueError(
            f"Invalid value for 'n_samples': {n_samples}. The sampling requires at least one "
            "sample."
        )
    if n_samples > _MOST_SAMPLES:
        raise ValueError(f"n_samples must be at most {_MOST_SAMPLES:,}; draw rows in pieces.")
    return int(n_samples)
