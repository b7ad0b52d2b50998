# SPDX-License-Identifier: BSD-3-Clause
"""Estimates and confidence intervals from released tables, by a one-step correction.

A statistic T of a distribution is evaluated on synthetic rows P̂, with the influence ψ(x) of a
record x on it. ψ is projected on the features φ(x) of which the release Y is the noisy sum,
ψ(x) ≈ bᵀφ(x) + r(x). The estimate T(P̂) + bᵀ(Y/n - E_P̂ φ) has the error, to first order,

    bᵀ(noise)/n  +  [mean of bᵀφ over the records - E bᵀφ]  +  E_P̂ r - E r,

for the release's noise, sampling and the unreleased part. The law of the first is known, the
variance of the second is that of ψ over n, and the third is bounded by a misfit times E_P̂ |r|.
"""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from scipy import stats

from ..checks import budget_share, in_range
from ..curator.record_functions import call_quietly
from .influence import Statistic
from .model import N_KINDS, Model
from .projection import Features, Projection


def estimate(
    generator, statistic: Callable, *, level: float = 0.95, misfit: float = 0.25, random_state=None
) -> pd.DataFrame:
    """Estimate a statistic of the population, with a confidence interval.

    Parameters
    ----------
    generator : estimator
        A generator that was fitted to two-way tables of records.
    statistic : callable
        ``statistic(frame)`` returns a number, or a dict or Series of numbers, of a DataFrame with
        the columns of the schema. It must be a smooth function of the distribution, the same if
        each row is repeated: means, shares, differences, ratios, coefficients. Multiply shares by
        the public number of records for counts.
    level : float, default=0.95
        Probability that an interval covers its parameter.
    misfit : float, default=0.25
        Largest relative error of the model's density that intervals allow for, where the release
        does not determine the statistic.
    random_state : None, int or numpy.random.RandomState, default=None
        Seed of the synthetic rows.

    Returns
    -------
    DataFrame
        For each statistic: *estimate*; *std_error*, of sampling and the release's noise; *noise*,
        the part of the noise; *not_released*, the bound on the bias by the misfit; *lower* and
        *upper*. The interval is NaN if *not_released* exceeds half of the standard error: the
        release does not determine the statistic. The standard error is NaN as well if the statistic
        is not smooth, or concerns too few rows.

    Raises
    ------
    ValueError
        If the generator's release is not of tables, or is for persons with several rows; or if the
        statistic uses a column that is not learned, or changes if each row is repeated.

    Notes
    -----
    Records are an independent sample of the population. Values count as clipped to the bounds of
    the schema, and inferred bounds cut tails. The intervals rest on first-order approximations,
    which need counts well above the noise in each group that a statistic uses.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdpgen import Category, DPSWFlowSampler, Number, Schema
    >>> from skdpgen.inference import estimate
    >>> schema = Schema({"age": Number(0, 100, decimals=0), "smokes": Category(["no", "yes"])})
    >>> frame = pd.DataFrame({"age": [*range(20, 80)] * 9, "smokes": ["no", "no", "yes"] * 180})
    >>> sampler = DPSWFlowSampler(5.0, schema=schema, n_steps=50).fit(frame)
    >>> found = estimate(sampler, lambda rows: {"mean age": rows["age"].mean()})
    >>> bool(found.lower.iloc[0] < 49.5 < found.upper.iloc[0])
    True
    """
    budget_share("level", level)
    in_range()("misfit", misfit)
    model = Model(generator, random_state)
    columns = model.find_columns(Statistic(statistic, model.rows))
    model.warn_of_clipped(columns)
    features = Features(model.tables, model.format, columns)
    model.calibrate(features)
    measured = Statistic(statistic, model.rows)
    probes = model.draw_probes(features.n_probes, columns)
    influence = measured.find_influence(probes, columns)
    measured.check_repeated(influence)
    corners, n_triples = model.draw_corners(columns)
    interactions = measured.measure_interactions(corners, n_triples, columns)
    projection = Projection(model, features, probes, influence, misfit)
    found = projection.estimate(measured.values, interactions, level, measured.names)
    is_smooth = measured.is_smooth(probes[::N_KINDS], influence[::N_KINDS])
    found.loc[~is_smooth, ["std_error", "noise", "lower", "upper"]] = np.nan
    return found


def estimate_quantiles(
    generator,
    column: str,
    quantiles: float | Sequence[float] = (0.25, 0.5, 0.75),
    *,
    level: float = 0.95,
    random_state=None,
) -> pd.DataFrame:
    """Estimate quantiles of a numeric column, with confidence intervals that end at knots.

    The release does not determine the distribution function between knots, so intervals hold for
    any shape there, and are wide for distant knots. They cover at least as often as `level` says.

    Parameters
    ----------
    generator, level, random_state
        As in `estimate`.
    column : str
        A column of numbers.
    quantiles : float or sequence of float, default=(0.25, 0.5, 0.75)
        Levels of the quantiles, in [0, 1].

    Returns
    -------
    DataFrame
        Indexed by the levels: *estimate*, that of the synthetic rows; *lower* and *upper*.

    Notes
    -----
    A value has weights at the knots next to it only. So the weights of all knots that values up to
    c can have add up to at least the distribution function at c, and those of all knots that no
    value above c can have to at most that. Both sums are released.
    """
    budget_share("level", level)
    asked = call_quietly(np.asarray, quantiles, float)
    asked = np.empty(0) if asked is None else np.atleast_1d(asked)
    if asked.ndim != 1 or not len(asked) or not (abs(asked - 0.5) <= 0.5).all():
        raise ValueError(f"quantiles must be numbers in [0, 1], at least one; got {quantiles!r}.")
    model = Model(generator, random_state)
    block = model.find_number(column)
    model.warn_of_clipped([column])
    features = Features(model.tables, model.format, [column])
    made = model.rows[column].dropna().quantile(asked).to_numpy(float)
    ends = [_bound_quantile(block, features, quantile, level) for quantile in asked]
    lower, upper = np.transpose(ends)
    found = {"estimate": np.clip(made, lower, upper), "lower": lower, "upper": upper}
    return pd.DataFrame(found, index=pd.Index(asked, name=column))


def _bound_quantile(block, features, quantile, level):
    """Return the knots or point masses between which a quantile is; see `estimate_quantiles`."""
    knots, atoms = block.knots, np.asarray(block.atoms, float)
    # Least and largest values with a weight on each level.
    least = np.concatenate([knots[:1], knots[:-1], atoms])
    largest = np.concatenate([knots[1:], knots[-1:], atoms])
    sums, std = features.sums[: len(least)], features.std[: len(least)]
    ends = np.unique([*knots, *atoms])

    def compare(is_counted):
        """Return sums minus those that the quantile asks for, and the margin of their error."""
        signs = is_counted - quantile
        # A weight is at least its square, so that this is at least the variance of sampling.
        variance = signs**2 @ (std**2 + sums.clip(0))
        return signs @ sums, stats.norm.ppf((1 + level) / 2) * np.sqrt(variance)

    most, margin = compare(least <= ends[:, None])
    lower = ends[(most + margin >= 0).argmax()]
    fewest, margin = compare(largest <= ends[:, None])
    is_above = fewest - margin >= 0
    return lower, ends[is_above.argmax()] if is_above.any() else ends[-1]
