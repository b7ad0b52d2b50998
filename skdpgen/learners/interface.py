# SPDX-License-Identifier: BSD-3-Clause
"""Interface of learners: from released values to rows that can be sampled.

A learner is a function that a generator calls once, with released values, all of its configuration
and a ``torch.Generator`` on the CPU, so that every device gets the same; it returns a `Sampler`.
The release names it. It sees released values only: it must not keep or be given a private row.
Where each step has a release of its own, the learner is given what makes the next one when it is
asked to, and pays for it first.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np


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
