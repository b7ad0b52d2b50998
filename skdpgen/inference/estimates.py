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

from .._process.isolation import isolated
from ..checks import budget_share, in_range
from ..data.record_functions import call_quietly
from .constants import CONSTANTS
from .influence import Statistic
from .limits import Limits
from .model import N_PARTS, Model
from .projection import Features, Projection


@isolated()
def estimate(
    generator, statistic: Callable, *, level: float = 0.95, misfit: float = 0.25, random_state=None
) -> pd.DataFrame:
    """Estimate a statistic of the population, with a confidence interval.

    Parameters
    ----------
    generator : estimator
        A `DPSWFlowSampler` or `DPSlicedWassersteinGenerator` that was fitted to a table with a row
        for each record, or comes from such a release (`skdpgen.releases.from_release`).
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
        *upper*. The ends of the interval are NaN if *not_released* exceeds half of the standard
        error: the release does not determine the statistic. The standard error is NaN as well if
        the statistic is not smooth, or concerns too few rows. An end is infinite where values
        beyond inferred bounds move the statistic to that side; see Notes.

    Raises
    ------
    ValueError
        If the generator is not fitted, its release is not of tables, or it is for persons with
        several rows; or if the statistic uses no column, or one that is not learned, or changes if
        each row is repeated.

    Warns
    -----
    FitQualityWarning
        By the names of the columns: if intervals are open as bounds were inferred; if inferred
        categories leave records to `other`, or many values are at a declared bound, by released
        counts; if many records are absent; and of what else the fit found on these columns.

    Notes
    -----
    The records are an independent sample of the population, and absent ones are not part of it.
    Intervals rest on first-order approximations, which need counts well above the noise in each
    group that a statistic uses.

    Values are those of the schema: numbers are rounded to its decimals and clipped to its bounds,
    and categories that are not in it are `other`. For declared bounds and categories, this defines
    what is estimated. If a bound was *inferred*, some values may lie beyond it, too few to show
    above the noise. How far they reach is unknown, and no confidence interval of a mean is valid
    without bounds [1]_. So each end of an interval is infinite to which the statistic moves if
    cells at an inferred bound move beyond it, and *estimate* ± 1.96 *std_error* is a 95 % interval
    for values that are clipped to the bounds. Shares below or above a threshold within the bounds
    do not move, nor do functions of values that are clipped within them. Inferred categories that
    are numbers, and a target of inferred classes, have such ends as well. A statistic that names a
    category, or a number, that `schema_` does not hold misses its records.

    References
    ----------
    .. [1] R. R. Bahadur and L. J. Savage, "The nonexistence of certain statistical procedures in
       nonparametric problems", Annals of Mathematical Statistics 27, 1956.

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
    limits = Limits(model, columns)
    limits.warn()
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
    is_smooth = measured.is_smooth(probes[::N_PARTS], influence[::N_PARTS])
    found.loc[~is_smooth, ["std_error", "noise", "lower", "upper"]] = np.nan
    falls, rises, opened = limits.find_open(measured, probes[: CONSTANTS.n_moved])
    found.loc[falls, "lower"], found.loc[rises, "upper"] = -np.inf, np.inf
    if opened:
        limits.warn_of_open([*found.index[falls | rises]], opened)
    return found


@isolated()
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
    any shape there, and are wide for distant knots. They cover quantiles of values that are rounded
    and clipped as the schema declares about as often as `level` says, or more often. Beyond a bound
    that was inferred they are open: an end there is infinite.

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

    Raises
    ------
    ValueError
        As in `estimate`, or if the column is not one of numbers.

    Warns
    -----
    FitQualityWarning
        As in `estimate`.

    Notes
    -----
    A value has weights at the knots next to it only. So the weights of all knots that values up to
    c can have add up to at least the distribution function at c, and those of all knots that no
    value above c can have to at most that. Both sums are released, with noise; their errors are
    taken as normal. Values beyond a bound have the weight of the bound, however far they are. So
    the released weight at an inferred bound bounds the share of values beyond it, and the interval
    ends at the bound only if the quantile is clear of that share.
    """
    budget_share("level", level)
    asked = call_quietly(np.asarray, quantiles, float)
    asked = np.empty(0) if asked is None else np.atleast_1d(asked)
    if asked.ndim != 1 or not len(asked) or not (abs(asked - 0.5) <= 0.5).all():
        raise ValueError(f"quantiles must be numbers in [0, 1], at least one; got {quantiles!r}.")
    model = Model(generator, random_state)
    block = model.find_number(column)
    limits, inferred = Limits(model, [column]), model.find_inferred_ends(block)
    limits.warn()
    features = Features(model.tables, model.format, [column])
    made = model.rows[column].dropna().quantile(asked).to_numpy(float)
    ends = [_bound_quantile(block, features, inferred, quantile, level) for quantile in asked]
    lower, upper = np.transpose(ends)
    is_open = np.isinf([lower, upper]).any(axis=0)
    if is_open.any():
        limits.warn_of_open(asked[is_open].tolist(), [column])
    found = {"estimate": np.clip(made, lower, upper), "lower": lower, "upper": upper}
    return pd.DataFrame(found, index=pd.Index(asked, name=column))


def _bound_quantile(block, features, inferred, quantile, level):
    """Return the knots or point masses between which a quantile is; see `estimate_quantiles`."""
    knots, atoms = block.knots, np.asarray(block.atoms, float)
    values = np.concatenate([knots, atoms])
    # Least and largest values with a weight on each level.
    least = np.concatenate([knots[:1], knots[:-1], atoms])
    largest = np.concatenate([knots[1:], knots[-1:], atoms])
    # Values beyond an inferred bound count as the bound, which may be a point mass.
    if "lower" in inferred:
        least[np.isin(values, [knots[0], block.number.lower])] = -np.inf
    if "upper" in inferred:
        largest[np.isin(values, [knots[-1], block.number.upper])] = np.inf
    sums, std = features.sums[: len(values)], features.std[: len(values)]
    ends = np.unique([*values, *least, *largest])

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
