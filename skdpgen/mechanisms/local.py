# SPDX-License-Identifier: BSD-3-Clause
"""Local differential privacy: each record is noised once, on its own.

The sensitivity is the **diameter** of the public ball of the rows, twice its radius: any row can be
replaced by any other, under ``relation="replace_one"``. The number of records is public, and so is
the record from which a noised row comes.

Exactness. Rows are rounded towards zero to a grid, which keeps them in their ball, L1 or L2. The
noise is rounded to the same grid: for whole numbers S, S + round(G) is round(S + G), a
post-processing of the mechanism with the noise G (see `skdpgen.mechanisms.base`). G is exact,
as are the coins that replace labels: claims hold at any ε.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from dp_accounting import (
    DpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    RandomizedResponseDpEvent,
)
from scipy.special import rel_entr

from ..accounting.accountants import ledger_epsilon
from ..accounting.calibration import (
    calibrate,
    calibrate_gaussian,
    check_delta,
    check_epsilon,
    check_level,
)
from ..accounting.events import gaussian_event, pure_epsilon, step_std
from ..accounting.plan import Plan
from ..data.rows import sum_rows
from ..exceptions import PlanError
from ..registry import savable
from .base import FixedSensitivity, Measurement, Mechanism, to_grid
from .noise import NoiseSource

# Least noise in units of the grid, so that rounding is negligible; and the finest grid in the unit
# ball, for little or no noise.
NOISE_BITS = 14
GRID_BITS = 40
# Last bits by which noised rows are known, and minus the logarithm of the probability that such
# rows are taken for others.
_LAST_BITS, _CERTAINTY = range(1, 9), 40
# Rows that are noised at once.
_BLOCK = 4096
# A pure ε is reduced by this, which covers the rounding of the noise that is computed from it.
MARGIN = 1e-12

# Standard deviations of Laplace and of Gaussian noise of scale 1, by the p of the ball.
DEVIATIONS = {1: math.sqrt(2), 2: 1.0}


@savable
@dataclass(frozen=True)
class NoisedRows:
    """Rows with noise on each."""

    # Shape (n_records, n_columns): noised rows, in units of the ball's radius.
    values: np.ndarray
    # The scale parameter of Laplace noise, or the standard deviation of Gaussian noise.
    scale: float


@savable
@dataclass(frozen=True)
class NoisedLabels:
    """Labels after randomised response."""

    # Shape (n_records,): positions of the labels among the classes.
    codes: np.ndarray
    # The probability with which a label was replaced by one drawn uniformly from all.
    probability: float


class _LocalMechanism(FixedSensitivity, Mechanism):
    def sensitivity(self, relation: str) -> float:
        """Return the sensitivity; a `PlanError` is raised for relations other than replace_one."""
        if relation != "replace_one":
            raise PlanError("Local releases are accounted under relation='replace_one' only.")
        return self.sensitivity_of(relation)


class LocalRowsMechanism(_LocalMechanism):
    """Each row of the unit ball, with Laplace or Gaussian noise on every number.

    Two rows of a ball of radius 1 are at most 2 apart, in the norm of the ball: the L1 norm with
    Laplace noise (``p=1``), the L2 norm with Gaussian noise (``p=2``).

    Parameters
    ----------
    p : {1, 2}
        Norm of the ball, and with it the noise.

    References
    ----------
    Dwork, McSherry, Nissim & Smith, "Calibrating Noise to Sensitivity in Private Data Analysis",
    TCC 2006; Reshetova, Chen & Özgür, "Training generative models from privatized data", 2023,
    whose sensitivity is the radius: half of the true one.
    """

    name = "noised rows"
    sensitivities: ClassVar = {"replace_one": 2.0}

    def __init__(self, p: int) -> None:
        self.p = p

    @property
    def norm_order(self) -> int:
        """The norm in which the sensitivity bounds the change of the release."""
        return self.p

    def check(self, event: DpEvent) -> None:
        """Raise a `PlanError` unless the event has the noise of the ball; see `Mechanism.check`."""
        known = LaplaceDpEvent if self.p == 1 else GaussianDpEvent
        if not isinstance(event, (known, NonPrivateDpEvent)):
            raise PlanError(
                f"{self.name!r} in an L{self.p} ball have a {known.__name__}; they are planned as "
                f"{event}."
            )

    def _find_grid(self, event, relation):
        """Return the level of the noise, and 1 over the grid's step."""
        level = step_std(event, self.sensitivity(relation), relation)
        bits = GRID_BITS
        if level > 0:
            bits = min(bits, NOISE_BITS - math.ceil(math.log2(level)))
        return level, 2.0**bits

    def are_noised(self, rows: np.ndarray, radius: float, event: DpEvent) -> bool:
        """Return whether rows can have the noise of an event: they fill its grid near the ball.

        Rows that have it are found to be so but for a probability below e^-37. Numbers too large
        for their precision to show the grid are compared by their size alone.

        Parameters
        ----------
        rows : ndarray of shape (n_records, n_columns)
            Noised rows, times the radius of their ball.
        radius : float
        event : DpEvent
        """
        level, scale = self._find_grid(event, "replace_one")
        if not level:
            return True
        steps = rows.astype(np.float64) / radius * scale
        # Neither Laplace nor Gaussian noise takes any number out of the ball farther than this.
        farthest = 1 + level * (_CERTAINTY + math.log(max(steps.size, 1)))
        if (np.abs(steps) > farthest * scale).any():
            return False
        error = np.abs(steps) * 2.0 ** (-22 if _are_single(rows) else -51)
        steps, error = steps[error < 0.25], error[error < 0.25]
        if (np.abs(steps - np.rint(steps)) > error).any():
            return False
        # Rows without noise may lie on the grid, as whole numbers do, but few of them fill it.
        if level * scale < 2.0 ** (NOISE_BITS - 1):
            return True
        # The last bits of noise of 2^13 steps or more are uniform, and at most an eighth of all
        # numbers is within an eighth of its scale of zero.
        shares = {2.0**-bits: np.rint(steps) % 2**bits == 0 for bits in _LAST_BITS}
        tests = [*shares.items(), (1 / 8, np.abs(steps) < level * scale / 8)]
        for p, are_so in tests:
            found = are_so.mean() if are_so.size else 0.0
            # Chernoff's bound on the probability of so many.
            divergence = rel_entr(found, p) + rel_entr(1 - found, 1 - p)
            if found > p and are_so.size * divergence > _CERTAINTY:
                return False
        return True

    def query(self, source, event, relation, noise):
        level, scale = self._find_grid(event, relation)
        parts = []
        for rows, membership in source.blocks(self.name):
            rows = rows.double()
            # Norms in an order that depends on the row's length only: a row's place must not change
            # it.
            norms = sum_rows(rows.abs()) if self.p == 1 else sum_rows(rows.square()).sqrt()
            # A null record would be a row of zeros.
            rows = rows / norms.clamp(min=1.0) * membership.sum(1, keepdim=True)
            parts.append(to_grid(rows, scale).long().cpu().numpy())
        return Measurement(
            np.concatenate(parts), scale, level, is_laplace=self.p == 1, block=_BLOCK
        )

    def postprocess(self, noisy, measured):
        return NoisedRows(noisy, measured.std)


def _are_single(rows):
    """Whether numbers are of single precision, or doubles that were read from their texts."""
    single = rows.astype(np.float32)
    if (single == rows).all():
        return True
    # As of CSV files, which hold the shortest text of each; not all readers get the last bits.
    for numbers in (slice(_BLOCK), slice(None)):
        given = rows.ravel()[numbers].astype(np.float64)
        read = single.ravel()[numbers].astype(str).astype(np.float64)
        if (np.abs(read - given) > 2.0**-51 * np.abs(given)).any():
            return False
    return True


class LocalLabelsMechanism(_LocalMechanism):
    """Each label, after k-ary randomised response.

    With the probability p of the event, a label is replaced by one that is drawn uniformly from all
    k. The probabilities of an answer under two labels have a ratio of at most
    (1 - p + p/k) / (p/k) = 1 + k(1 - p)/p = e^ε.

    Parameters
    ----------
    n_classes : int
        The number k of labels.

    References
    ----------
    Warner, "Randomized Response", 1965; Kairouz, Oh & Viswanath, "Extremal Mechanisms for Local
    Differential Privacy", JMLR 2016.
    """

    name = "noised labels"
    sensitivities: ClassVar = {"replace_one": 1.0}
    # The sensitivity bounds the number of changed labels.
    norm_order = 0

    def __init__(self, n_classes: int) -> None:
        self.n_classes = n_classes

    def check(self, event: DpEvent) -> None:
        """Raise a `PlanError` unless the event is a response over the labels."""
        if isinstance(event, NonPrivateDpEvent):
            return
        is_response = isinstance(event, RandomizedResponseDpEvent)
        if not is_response or event.num_buckets != self.n_classes:
            raise PlanError(
                f"{self.name!r} are a randomised response over {self.n_classes} labels; they are "
                f"planned as {event}."
            )

    def query(self, source, event, relation, noise):
        # Null records have no label; argmax gives them the first one, which is then noised like any
        # other.
        self.sensitivity(relation)  # raises an error for other relations
        codes = [membership.argmax(1) for _, membership in source.blocks(self.name)]
        probability = getattr(event, "noise_parameter", 0.0)
        return Measurement(torch.cat(codes).cpu().numpy(), 1.0, 0.0, context=probability)

    def run(self, source, event: DpEvent, *, relation: str, noise: NoiseSource) -> NoisedLabels:
        """Read labels and return them after randomised response; see `Mechanism.run`."""
        measured = self.query(source, event, relation, noise)
        probability = measured.context
        noisy = noise.randomized_response(measured.exact, self.n_classes, probability)
        return self.postprocess(noisy, measured)

    def postprocess(self, noisy, measured):
        return NoisedLabels(noisy, measured.context)


def local_plan(
    p: int,
    n_classes: int | None,
    epsilon: float,
    delta: float,
    *,
    label_share: float = 0.2,
    accountant: str = "pld",
) -> Plan:
    """Return the plan of a local release of rows, and of their labels.

    Parameters
    ----------
    p : {1, 2}
        1: rows in an L1 ball, with Laplace noise, for (ε, 0). 2: rows in an L2 ball, with Gaussian
        noise, for (ε, δ).
    n_classes : int or None
        Number of labels; None: there are none.
    epsilon, delta : float
        The budget of each record.
    label_share : float, default=0.2
        Share of ε for labels. Beside Gaussian noise, ``"pld"`` composes both for less than the
        sum, and rows get what is left.
    accountant : str, default="pld"
        As in `Plan`.

    Returns
    -------
    Plan
        Its `sigma` is the standard deviation of the noise on rows, in units of the radius.

    Examples
    --------
    >>> plan = local_plan(1, None, epsilon=5.0, delta=1e-5)
    >>> round(plan.sigma, 6)
    0.565685
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    releases, left = [], epsilon
    if n_classes is not None:
        response = _response_event(n_classes, label_share * epsilon)
        # The exact cost of the response, rather than the share that it was planned from. With an
        # infinite ε it has no noise, and no cost is known.
        if (spent := pure_epsilon(response)) is not None:
            left = epsilon * (1 - MARGIN) - spent
        releases.append((LocalLabelsMechanism.name, response))
    if math.isinf(epsilon):
        event = NonPrivateDpEvent()
    elif p == 1:
        # Two rows differ by twice the radius.
        multiplier = 2 * (1 + MARGIN) / left
        check_level(multiplier)
        event = LaplaceDpEvent(multiplier)
    else:
        multiplier = calibrate_gaussian(
            left * (1 - MARGIN), delta, relation="replace_one", accountant=accountant
        )
        if releases and accountant == "pld":
            # Composed with the response, noise that fills what is left costs less than all of it.
            def epsilon_of(multiplier: float) -> float:
                events = [response, gaussian_event(multiplier)]
                return ledger_epsilon(events, delta, relation="replace_one", accountant=accountant)

            multiplier = calibrate(epsilon_of, epsilon * (1 - MARGIN), guess=multiplier)
        event = gaussian_event(multiplier)
    releases.insert(0, (LocalRowsMechanism.name, event))
    sensitivity = LocalRowsMechanism.sensitivity_of("replace_one")
    sigma = step_std(event, sensitivity, "replace_one") * DEVIATIONS[p]
    return Plan(tuple(releases), epsilon, delta, "replace_one", accountant, sigma, local=True)


def _response_event(n_classes, epsilon):
    """Return a randomised response of at most this ε: p = k / (e^ε - 1 + k), rounded upwards."""
    if math.isinf(epsilon):
        return NonPrivateDpEvent()
    # e^710 exceeds the largest double.
    probability = n_classes / (math.expm1(min(epsilon, 500.0)) + n_classes) * (1 + MARGIN)
    return RandomizedResponseDpEvent(min(1.0, probability), n_classes)
