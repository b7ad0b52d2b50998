# SPDX-License-Identifier: BSD-3-Clause
"""Audits of whole fits by membership inference."""

import json
import numbers
from dataclasses import asdict, dataclass

import numpy as np

from .._process.muting import muted
from ..accounting.certificate import Certificate
from ..checks import check_choice
from ..curator.curator import intercept_releases
from .made_records import can_be_audited, fit_records, make_records
from .mechanism_audit import DEFAULT_CONFIDENCE, NO_VIOLATION, VIOLATION
from .membership import SCORES, AllReleased, ReleaseScorer, count_right_guesses
from .refutation import find_bound, refute_by_fits, refute_by_guesses
from .releases import check_confidence, make_rng

_ATTACKS = ("releases", *SCORES)


@dataclass(frozen=True)
class FitAudit:
    """Lower bound on the privacy loss of whole fits, by membership inference.

    Attributes
    ----------
    attack : str
        The attack that scored the canaries.
    claim, delta : float
        ε of the certificate, and its δ.
    bound : float
        Lower bound on ε at `delta`, if the certificate errs at most in the scale of the noise:
        with less noise than that of ``bound``, guesses would be right as often.
    n_fits : int
        Number of fits.
    n_canaries : int
        Canaries over all fits, each included by a fair coin.
    n_right : int
        Canaries whose coin was guessed right.
    n_clear, n_clear_right : int
        Canaries with the clearest scores, and how many of these were guessed right.
    confidence : float
        Confidence of the bound.
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
    def verdict(self) -> str:
        """``"violation found"`` if the bound exceeds the claim, else ``"no violation found"``."""
        return VIOLATION if self.bound > self.claim else NO_VIOLATION

    def to_json(self) -> str:
        """Return the result as JSON."""
        written = {"verdict": self.verdict, **asdict(self)}
        return json.dumps({k: "inf" if v == np.inf else v for k, v in written.items()}, indent=2)

    def __str__(self) -> str:
        return (
            f"{self.verdict.capitalize()}: the audit shows ε > {self.bound:.4g} at "
            f"δ = {self.delta:g}; the certificate claims ε = {self.claim:.4g} (confidence "
            f"{self.confidence:g}). In {self.n_fits} fits, {self.n_right} of {self.n_canaries} "
            f"guesses by {self.attack} were right, and {self.n_clear_right} of the {self.n_clear} "
            "clearest."
        )


def audit_fit(
    estimator,
    n_samples: int = 50,
    n_features: int | None = None,
    *,
    n_classes: int | None = None,
    attack: str = "releases",
    n_fits: int = 200,
    n_canaries: int | None = None,
    n_clear: int | None = None,
    confidence: float = DEFAULT_CONFIDENCE,
    random_state=None,
) -> FitAudit:
    """Bound the privacy loss of whole fits from below, by membership inference.

    Clones are fitted to generated records. Some records are canaries, each of which is included by
    an independent fair coin; all others are absent. An attack guesses from the releases, or from
    synthetic rows, which canaries were included. A small ε would allow few right guesses. The bound
    covers all releases together, those of samples too, and all post-processing. No private row is
    read.

    Parameters
    ----------
    estimator : estimator
        An unfitted generator with ``relation="zero_out"``; for the attack ``"releases"`` also
        `DPPCA`.
    n_samples : int, default=50
        Number of generated records of each fit.
    n_features, n_classes : int, default=None
        As in `audit`.
    attack : {"releases", "distance", "density"}, default="releases"
        ``"releases"``: the likelihood ratio of noisy values with and without a canary; gradients
        that are clipped as a whole count only with a lone canary. ``"distance"``: the distance to
        the nearest synthetic row, relative to that of other generated records. ``"density"``: the
        density of synthetic rows over that of other generated records (DOMIAS).
    n_fits : int, default=200
        Number of fits, each with records and coins of its own. The bound approaches the true ε
        with many fits; with one it stays below, however many canaries there are.
    n_canaries : int, default=None
        Canaries in a fit. Fewer canaries mask each other less. The slot of a sliced row is known
        to the attacker only with a lone canary. None: 5 for ``"releases"``, else all records.
    n_clear : int, default=None
        Number of canaries, those with the clearest scores, whose guesses count for the bound of
        one fit. None: a fifth of all.
    confidence : float, default=1 - 1e-6
        Confidence of the bound.
    random_state : None, int or RandomState, default=None
        Seed of records, coins and noise.

    Returns
    -------
    FitAudit

    Raises
    ------
    TypeError
        If the estimator fits nothing that can be attacked.
    ValueError
        If a parameter is out of range, the relation is another one, or a `PrivacyBudget` is open.

    Examples
    --------
    >>> from skdpgen import DPSWFlowSampler
    >>> from skdpgen.privacy import audit_fit
    >>> sampler = DPSWFlowSampler(epsilon=3.0, bounds=(0, 1), n_steps=5)
    >>> audited = audit_fit(sampler, 50, 8, n_fits=20, confidence=0.95, random_state=0)
    >>> audited.verdict, audited.n_canaries
    ('no violation found', 100)
    """
    check_choice("attack", attack, _ATTACKS)
    if not can_be_audited(estimator) or hasattr(estimator, "privatize"):
        raise TypeError(f"{type(estimator).__name__} cannot be audited by membership inference.")
    # The coins of canaries leave records out: other relations have no such pair.
    if getattr(estimator, "relation", None) != "zero_out":
        raise ValueError("Membership inference needs an estimator with relation='zero_out'.")
    if n_canaries is None:
        # Canaries mask each other in a release; scores by synthetic rows take each on its own.
        n_canaries = n_samples if attack != "releases" else 5
    counts = {"n_samples": n_samples, "n_fits": n_fits, "n_canaries": n_canaries}
    for name, value in counts.items():
        if not (isinstance(value, numbers.Integral) and value >= 1):
            raise ValueError(f"{name} must be an integer of at least 1; got {value!r}.")
    check_confidence(confidence)
    n_canaries = min(n_canaries, n_samples)
    n_all = n_canaries * n_fits
    n_clear = -(-n_all // 5) if n_clear is None else n_clear
    if not (isinstance(n_clear, numbers.Integral) and 1 <= n_clear <= n_all):
        raise ValueError(f"n_clear must be in [1, {n_all}]; got {n_clear!r}.")
    rng = make_rng(random_state)
    # Fair coins, on which the bound on right guesses rests.
    coins = rng.integers(2, size=(n_fits, n_canaries)).astype(bool)
    scores = np.zeros(coins.shape)
    for i, is_included in enumerate(coins):
        null = np.ones(n_samples, bool)
        # Excluded canaries stay in place as null records, so that sizes do not tell them.
        null[:n_canaries] = ~is_included
        sizes = n_samples, n_features, n_classes
        scores[i], certificate = _attack(estimator, sizes, attack, null, n_canaries, rng)
    is_right = (scores > 0) == coins
    n_clear_right = count_right_guesses(scores.ravel(), coins.ravel(), n_clear)
    # Bonferroni: either of two tests may refute.
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


def _attack(
    estimator, sizes, attack: str, null: np.ndarray, n_canaries: int, rng: np.random.Generator
) -> tuple[np.ndarray, Certificate]:
    """Fit without the null records; return a score for each canary, and the certificate."""

    def generate():
        return make_records(estimator, *sizes, rng, has_extremes=False)

    copied, data = generate()
    scorer = ReleaseScorer(n_canaries, rng)
    watch = scorer.watch if attack == "releases" else _release
    with intercept_releases(watch, null), muted():
        try:
            fit_records(copied, data, int(rng.integers(2**32)))
        except AllReleased as stop:
            return scorer.score(), stop.args[0]
    # Similar rows that no fit has seen: the attack compares with usual values.
    _, others = generate()
    sample = copied.sample(len(null), random_state=int(rng.integers(2**32)))
    synthetic = sample[0] if isinstance(sample, tuple) else sample
    rows, reference, synthetic = (_encode(copied, X) for X in (data["X"], others["X"], synthetic))
    scores = SCORES[attack](rows[:n_canaries], synthetic, reference)
    # Half of the canaries are guessed to be included.
    return scores - np.median(scores), copied.privacy_


def _release(curator, mechanism, release):
    return release(mechanism)


def _encode(fitted, X) -> np.ndarray:
    """Return rows in the units of the release."""
    format = fitted._format.without_target()
    return np.asarray(format.encode(format.read_public(fitted, X)))
