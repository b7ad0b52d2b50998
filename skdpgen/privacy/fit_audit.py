# SPDX-License-Identifier: BSD-3-Clause
"""Audits of whole fits: of how many records it can be guessed whether they were there."""

import json
import numbers
import warnings
from dataclasses import asdict, dataclass

import numpy as np

from .._choices import check_choice
from .audit import _seeds
from .auditing.guesses import SCORES, HeardAll, Listener, bound_of_guesses, guess
from .curator import watching

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
        What ε was shown to be above, at `delta`.
    n_canaries : int
        Records, each left out by a coin.
    n_guesses, n_right : int
        Of how many it was guessed, and rightly.
    confidence : float
        With which the bound is right.
    """

    attack: str
    claim: float
    delta: float
    bound: float
    n_canaries: int
    n_guesses: int
    n_right: int
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
            f"{self.n_guesses} guesses by {self.attack} were right, of {self.n_canaries} records."
        )


def audit_fit(
    estimator,
    n_samples=100,
    n_features=None,
    *,
    n_classes=None,
    attack="releases",
    n_fits=10,
    n_guesses=None,
    confidence=0.95,
    random_state=None,
):
    """Show by guesses how much can be told from whole fits about who was in them.

    Clones are fitted to made records, each of which is absent by a fair coin of its own. By what is
    released, or by synthetic rows, it is guessed of those where that is clearest. If ε were small,
    few of the guesses would be right. That holds for all releases together, of samples too,
    and for all that is made of them; but the bound is far looser than those of `audit`, and a
    bound of 0 shows nothing. No private row is read.

    Parameters
    ----------
    estimator : estimator
        An unfitted generator, under ``relation="zero_out"``, for `attack` ``"releases"`` also
        `DPPCA`.
    n_samples : int, default=100
        How many records are made for each fit.
    n_features, n_classes : int, default=None
        As in `audit`.
    attack : {"releases", "distance", "density"}, default="releases"
        By what is guessed. ``"releases"``: by how well noisy numbers agree with what a record
        adds. Gradients that are clipped as a whole say nothing. ``"distance"``: by the nearest
        synthetic row, relative to the nearest of other made rows. ``"density"``: by the density of
        synthetic rows over that of others (DOMIAS).
    n_fits : int, default=10
        How many fits are made, each with records and coins of its own: they count as one fit to
        all of them.
    n_guesses : int, default=None
        Of how many records it is guessed. None: of a tenth.
    confidence : float, default=0.95
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
    >>> found = audit_fit(sampler, 50, 3, n_fits=4, random_state=0)
    >>> found.verdict, found.n_guesses
    ('consistent', 20)
    """
    check_choice("attack", attack, _ATTACKS)
    if not hasattr(estimator, "_make_audited") or hasattr(estimator, "privatize"):
        raise TypeError(f"{type(estimator).__name__} cannot be audited by guesses.")
    if getattr(estimator, "relation", None) != "zero_out":
        raise ValueError("Guesses are of whether records are there: under relation='zero_out'.")
    for name, value in {"n_samples": n_samples, "n_fits": n_fits}.items():
        if not (isinstance(value, numbers.Integral) and value >= 1):
            raise ValueError(f"{name} must be a whole number of at least 1; got {value!r}.")
    if not 0.5 <= confidence < 1:
        raise ValueError(f"confidence must be in [0.5, 1); got {confidence!r}.")
    n_canaries = n_samples * n_fits
    n_guesses = max(2, n_canaries // 10) if n_guesses is None else n_guesses
    if not (isinstance(n_guesses, numbers.Integral) and 1 <= n_guesses <= n_canaries):
        raise ValueError(f"n_guesses must be in [1, {n_canaries}]; got {n_guesses!r}.")
    seeds, scores, coins = _seeds(random_state), [], []
    for _ in range(n_fits):
        coins.append(seeds.integers(2, size=n_samples).astype(bool))
        found, certificate = _attack(
            estimator, n_samples, n_features, n_classes, attack, ~coins[-1], seeds
        )
        scores.append(found)
    is_there = np.concatenate(coins)
    n_right = guess(np.concatenate(scores), is_there, n_guesses)
    delta = 0.0 if np.isinf(certificate.epsilon) else certificate.delta
    return FitAudit(
        attack,
        certificate.epsilon,
        certificate.delta,
        bound_of_guesses(n_canaries, n_guesses, n_right, delta, 1 - confidence),
        n_canaries,
        n_guesses,
        n_right,
        confidence,
    )


def _attack(estimator, n_samples, n_features, n_classes, attack, null, seeds):
    """Fit without records that are null; return a score for each, and the certificate."""

    def make():
        sizes = n_samples, n_features, n_classes
        return estimator._make_audited(*sizes, seeds, has_extremes=False)

    copied, data = make()
    listener = Listener(n_samples, seeds)
    watch = listener.listen if attack == "releases" else _release
    with watching(watch, null), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            copied._fit_audited(data, int(seeds.integers(2**32)))
        except HeardAll as heard:
            return listener.score(), heard.args[0]
    _, others = make()
    synthetic = copied.sample(n_samples, random_state=int(seeds.integers(2**32)))
    rows, reference, synthetic = (
        _encode(copied, made["X"]) for made in (data, others, _as_data(synthetic))
    )
    return SCORES[attack](rows, synthetic, reference), copied.privacy_


def _release(curator, mechanism, release):
    return release(mechanism)


def _as_data(sample):
    return {"X": sample[0] if isinstance(sample, tuple) else sample}


def _encode(fitted, X):
    """Return rows in the units of the release."""
    format = fitted._format.without_target()
    return np.asarray(format.encode(format.read_public(fitted, X)))
