# SPDX-License-Identifier: BSD-3-Clause
"""Interface of learners: from released values to rows that can be sampled."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch


@dataclass(frozen=True)
class Sampler:
    """Fitted rows of a learner, and the results of their training.

    A generator keeps `rows`, and calls ``rows.sample(classes, generator)`` after `fit`, as often as
    users sample. It returns a row in the unit ball for each of a tensor of classes, and must draw
    from `generator` alone.
    """

    # With the method `sample`; saved with the generator.
    rows: Any
    # The loss at each step.
    losses: list[float]
    # Shape (n_classes,): estimated shares of the classes; None for a single class.
    shares: np.ndarray | None = None
    # The format of generated rows, if releases have refined it.
    format: Any = None
    # Released facts on each column of a table.
    report: Any = None
    # Number of steps; None: one for each loss.
    n_steps: int | None = None


class Learner(ABC):
    """Fits rows to released values.

    The release names its learner; a generator makes it, with all of its configuration, and calls
    `fit` once. A learner sees released values only: it must not keep or be given a private row.
    Where each step has a release of its own, `released` makes the next one when it is asked to, and
    pays for it first.
    """

    @abstractmethod
    def fit(self, released: Any, format: Any, generator: torch.Generator) -> Sampler:
        """Return rows that match released values of data in a format.

        Parameters
        ----------
        released : object
            The return value of the `run` of the release.
        format : Format
            A resolved format.
        generator : torch.Generator
            Generator of all random numbers, on the CPU: so every device gets the same.
        """
