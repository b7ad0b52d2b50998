# SPDX-License-Identifier: BSD-3-Clause
"""Audits of whole fits: of how many records it can be guessed whether they were there."""

import json
import numbers
from dataclasses import asdict, dataclass

import numpy as np

from .._muting import muted
from ..checks import check_choice
from ..curator.curator import intercept_releases
from .guesses import SCORES, HeardAll, Listener, guess
from .made_records import can_be_audited, fit_records, make_records
from .refuting import find_bound, refute_by_fits, refute_by_guesses
from .releases import _seeds

_ATTACKS = ("releases", *SCORES)


@dataclass(frozen=True)
class FitAudit:
    """What guesses about the records of whole fits have shown.

    Attributes
    ----------
    attack : str
        By what was guessed.
    claim, delta : float
        ε of the certificate, and its δ.
    bound : float
        What ε was shown to be above, at `delta`, if no more is false than how large noise is: with
        the noise of ``bound``, relative to what the certificate says, guesses were too good.
    n_fits : int
        How many fits were made.
    n_canaries : int
        Records of all fits together, each left out by a coin.
    n_right : int
        Of how many of them it was guessed rightly whether they were there.
    n_clear, n_clear_right : int
        Of how many this was clearest, and guessed rightly.
    confidence : float
        With which the bound is right.
    """

    attack: str
    claim: float
    delta: float
    bound: float
    n_fits: int
    n_canaries: int
    n_right: int
    n_clear: int
    n_clear_right: int
    confidence: float

    @property
    def verdict(self):
        """``"convicted"`` if more was shown than is claimed, else ``"consistent"``."""
        return "convicted" if self.bound > self.claim else "consistent"

    def to_json(self):
        """Write it down."""
        written = {"verdict": self.verdict, **asdict(self)}
        return json.dumps({k: "inf" if v == np.inf else v for k, v in written.items()}, indent=2)

    def __str__(self):
        return (
            f"{self.verdict.capitalize()}: ε > {self.bound:.4g} was shown of ε = {self.claim:.4g} "
            f"at δ = {self.delta:g} (confidence {self.confidence:g}): {self.n_right} of "
            f"{self.n_canaries} guesses by {self.attack} were right in {self.n_fits} fits, and "
            f"{self.n_clear_right} of the {self.n_clear} clearest."
        )


def audit_fit(
    estimator,
    n_samples=50,
    n_features=None,
    *,
    n_classes=None,
    attack="releases",
    n_fits=200,
    n_canaries=None,
    n_clear=None,
    confidence=1 - 1e-6,
    random_state=None,
):
    """Show by guesses how much can be told from whole fits about who was in them.

    Clones are fitted to made records. Some are canaries, each of which is absent by a fair coin of
    its own; all others are absent. By what is released, or by synthetic rows, it is guessed of each
    canary whether it is there. If ε were small, few of the guesses would be right. That holds for
    all releases together, of samples too, and for all that is made of them. No private row is read.

    Parameters
    ----------
    estimator : estimator
        An unfitted generator, under ``relation="zero_out"``, for `attack` ``"releases"`` also
        `DPPCA`.
    n_samples : int, default=50
        How many records are made for each fit.
    n_features, n_classes : int, default=None
        As in `audit`.
    attack : {"releases", "distance", "density"}, default="releases"
        By what is guessed. ``"releases"``: by how much likelier noisy numbers are with a canary
        than without; of gradients that are clipped as a whole only with a lone canary.
        ``"distance"``: by the nearest synthetic row, relative to the nearest of other made rows.
        ``"density"``: by the density of synthetic rows over that of others (DOMIAS).
    n_fits : int, default=200
        How many fits are made, each with records and coins of its own. The bound comes near the
        truth with many fits; with one it stays below, however many canaries there are.
    n_canaries : int, default=None
        Canaries of a fit. The fewer, the less they hide each other. Of sliced rows it is known
        only of a lone one where to look for it. None: 5 by releases, all records by synthetic rows.
    n_clear : int, default=None
        Of how many of all canaries guesses count that are right in one fit: those that are
        clearest. None: a fifth.
    confidence : float, default=1 - 1e-6
        With which the bound is right.
    random_state : None, int or RandomState, default=None

    Returns
    -------
    FitAudit

    Examples
    --------
    >>> from skdpgen import DPSWFlowSampler
    >>> from skdpgen.privacy import audit_fit
    >>> sampler = DPSWFlowSampler(epsilon=3.0, bounds=(0, 1), n_steps=5)
    >>> found = audit_fit(sampler, 50, 8, n_fits=50, confidence=0.95, random_state=0)
    >>> found.verdict, found.n_canaries
    ('consistent', 250)
    """
    check_choice("attack", attack, _ATTACKS)
    if not can_be_audited(estimator) or hasattr(estimator, "privatize"):
        raise TypeError(f"{type(estimator).__name__} cannot be audited by guesses.")
    if getattr(estimator, "relation", None) != "zero_out":
        raise ValueError("Guesses are of whether records are there: under relation='zero_out'.")
    if n_canaries is None:
        n_canaries = n_samples if attack != "releases" else 5
    sizes = {"n_samples": n_samples, "n_fits": n_fits, "n_canaries": n_canaries}
    for name, value in sizes.items():
        if not (isinstance(value, numbers.Integral) and value >= 1):
            raise ValueError(f"{name} must be a whole number of at least 1; got {value!r}.")
    n_canaries = min(n_canaries, n_samples)
    if not 0.5 <= confidence < 1:
        raise ValueError(f"confidence must be in [0.5, 1); got {confidence!r}.")
    n_all = n_canaries * n_fits
    n_clear = -(-n_all // 5) if n_clear is None else n_clear
    if not (isinstance(n_clear, numbers.Integral) and 1 <= n_clear <= n_all):
        raise ValueError(f"n_clear must be in [1, {n_all}]; got {n_clear!r}.")
    seeds = _seeds(random_state)
    coins = seeds.integers(2, size=(n_fits, n_canaries)).astype(bool)
    scores = np.zeros(coins.shape)
    for i, is_there in enumerate(coins):
        null = np.ones(n_samples, bool)
        null[:n_canaries] = ~is_there
        sizes = n_samples, n_features, n_classes
        scores[i], certificate = _attack(estimator, sizes, attack, null, n_canaries, seeds)
    is_right = (scores > 0) == coins
    n_clear_right = guess(scores.ravel(), coins.ravel(), n_clear)
    alpha = (1 - confidence) / 2

    def refute(curve):
        return refute_by_fits(curve, is_right.mean(1), alpha) or refute_by_guesses(
            curve, n_all, n_clear, n_clear_right, alpha
        )

    return FitAudit(
        attack,
        certificate.epsilon,
        certificate.delta,
        find_bound(certificate, refute),
        n_fits,
        n_all,
        int(is_right.sum()),
        n_clear,
        n_clear_right,
        confidence,
    )


def _attack(estimator, sizes, attack, null, n_canaries, seeds):
    """Fit without records that are null; return a score for each canary, and the certificate."""

    def make():
        return make_records(estimator, *sizes, seeds, has_extremes=False)

    copied, data = make()
    listener = Listener(n_canaries, seeds)
    watch = listener.listen if attack == "releases" else _release
    with intercept_releases(watch, null), muted():
        try:
            fit_records(copied, data, int(seeds.integers(2**32)))
        except HeardAll as heard:
            return listener.score(), heard.args[0]
    _, others = make()
    synthetic = copied.sample(len(null), random_state=int(seeds.integers(2**32)))
    rows, reference, synthetic = (
        _encode(copied, made["X"]) for made in (data, others, _as_data(synthetic))
    )
    scores = SCORES[attack](rows[:n_canaries], synthetic, reference)
    # Half of them is guessed to be there.
    return scores - np.median(scores), copied.privacy_


def _release(curator, mechanism, release):
    return release(mechanism)


def _as_data(sample):
    return {"X": sample[0] if isinstance(sample, tuple) else sample}


def _encode(fitted, X):
    """Return rows in the units of the release."""
    format = fitted._format.without_target()
    return np.asarray(format.encode(format.read_public(fitted, X)))
