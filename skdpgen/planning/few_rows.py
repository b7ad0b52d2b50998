# SPDX-License-Identifier: BSD-3-Clause
"""Fits to too few rows, and their remedies: a release that needs fewer, or a larger ε."""

import contextlib
import copy
from bisect import bisect_left

from .._lazy import late
from ..accounting.units import describe_n_rows
from ..quality import advice_on_few_rows

# Values of ε that are proposed, of two digits; larger ones hardly protect anybody. Set by hand.
_EPSILONS = [digits / unit for unit in (1000, 100, 10) for digits in range(10, 100)] + [10.0]


def find_few_rows(estimator, fit_plan, n_samples: int, n_classes: int, format) -> str | None:
    """Return that a planned fit has too few rows, and what would do; None if they suffice."""
    # Persons may have that many rows each: compare with the largest possible number.
    if fit_plan.min_samples <= n_samples * (fit_plan.plan.weight or 1):
        return None
    given, remedy = describe_n_rows(n_samples, fit_plan.plan.weight), "a larger epsilon, "
    unit = "persons" if fit_plan.plan.weight == 1 else "rows"
    # The other release may not suit the format, as for too many columns.
    with contextlib.suppress(ValueError):
        remedy = _find_remedy(estimator, fit_plan, n_samples, n_classes, format)
    return (
        f"{type(estimator).__name__} takes about {fit_plan.min_samples:,} {unit} to be of use "
        f"at this ε, with this number of columns and classes; here are {given}. Use {remedy}more "
        f"{unit}, or fewer columns or classes.{advice_on_few_rows.get()}"
    )


def _find_remedy(estimator, fit_plan, n_samples, n_classes, format):
    """Return the release, or the ε, at which so many rows suffice, or nothing."""
    plan, other, name = fit_plan.plan, copy.copy(estimator), ""
    # Local privacy needs no curator of rows, which a sum would.
    if not (fit_plan.release.is_sum or plan.local):
        name = "release='sketch'"
        if "sketch" in estimator._shorthands["release"]:
            other.release = "sketch"
        else:
            params = {p: getattr(estimator, p) for p in ("delta", "relation", "accountant")}
            other = late("skdpgen.generators", "DPSWFlowSampler", **params)()
            name = "DPSWFlowSampler with a sketch"
    epsilon = find_least_epsilon(other, plan, n_samples, n_classes, format)
    if epsilon is not None and epsilon > estimator.epsilon:
        return f"{name} with epsilon={epsilon:g}, " if name else f"epsilon={epsilon:g}, "
    other.epsilon = estimator.epsilon
    needed = other._make_plan(n_samples, format, n_classes, plan.weight).min_samples
    which = f"{name}, which needs about {needed:,} rows, " if name else ""
    return f"{which}a larger epsilon, "


def find_least_epsilon(estimator, plan, n_samples: int, n_classes: int, format) -> float | None:
    """Return the smallest ε of `_EPSILONS` for which so many rows suffice, or None."""
    other, n_rows = copy.copy(estimator), n_samples * (plan.weight or 1)

    def suffices(epsilon):
        other.epsilon = epsilon
        # Some releases refuse a small one.
        with contextlib.suppress(ValueError):
            other_plan = other._make_plan(n_samples, format, n_classes, plan.weight)
            return other_plan.min_samples <= n_rows
        return False

    found = bisect_left(_EPSILONS, True, key=suffices)
    return _EPSILONS[found] if found < len(_EPSILONS) else None
