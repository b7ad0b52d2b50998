"""Faults in estimates with error bars."""

from ..fault import Fault
from ..ids import estimates, limits

MEANS = estimates("means_follow_from_the_marginals")
FEATURES = "features_of_records_add_up_to_what_was_released"

FUNCTION = {
    "estimates are those of synthetic rows": Fault(
        "inference.projection:Projection.estimate",
        "value + sums @ weights",
        "value",
        MEANS,
    ),
    "standard errors do not count the noise": Fault(
        "inference.projection:Projection.estimate",
        "np.hypot(noise, np.sqrt(variance / n))",
        "np.sqrt(variance / n)",
        estimates("cells_that_the_model_lacks_count"),
    ),
    "standard errors do not count sampling": Fault(
        "inference.projection:Projection.estimate",
        "np.hypot(noise, np.sqrt(variance / n))",
        "1.0 * noise",
        MEANS,
    ),
    "intervals of what was not released": Fault(
        "inference.projection:Projection.estimate",
        "np.where(bias <= CONSTANTS.most_bias * std_error, half, np.nan)",
        "1.0 * half",
        estimates("unreleased_statistics_get_no_interval"),
    ),
    "cells that the model lacks have no influence": Fault(
        "inference.model:Model.draw_probes",
        "kind == 2",
        "kind == 3",
        estimates("cells_that_the_model_lacks_count"),
    ),
    "medians are believed to be smooth": Fault(
        "inference.influence:Statistic._is_same",
        "np.linalg.norm(near, axis=0) * CONSTANTS.smooth",
        "np.linalg.norm(near, axis=0) * 1e9",
        estimates("unreleased_statistics_get_no_interval"),
    ),
    "statistics without any influence are believed to be smooth": Fault(
        "inference.influence:Statistic.is_smooth",
        "influence.any(axis=0)",
        "True",
        estimates("statistics_that_single_rows_do_not_change_get_no_standard_error"),
    ),
    "quantiles that few rows change are believed to be smooth": Fault(
        "inference.influence:Statistic.is_smooth",
        "np.unique(largest)",
        "few",
        estimates("quantiles_that_few_rows_change_are_not_smooth"),
    ),
    "sums have intervals": Fault(
        "inference.influence:Statistic.check_repeated",
        "is_changed.any()",
        "False",
        estimates("statistics_of_the_number_of_rows_are_refused[sum]"),
    ),
    "sums of centred numbers have intervals": Fault(
        "inference.influence:Statistic.check_repeated",
        "CONSTANTS.repeated * size",
        "size",
        estimates("statistics_of_the_number_of_rows_are_refused[centred]"),
    ),
    "strata in sum are believed to have the noise of one": Fault(
        "inference.projection:Features.__init__",
        "std * math.sqrt(len(sums))",
        "1.0 * std",
        estimates(f"{FEATURES}[columns0-flag]"),
    ),
    "row sums are believed to be as precise as one-way tables": Fault(
        "inference.projection:_count_alone",
        "precision += 2 / size",
        "precision += 1",
        estimates(f"{FEATURES}[columns0-None]"),
    ),
    "interactions do not count": Fault(
        "inference.influence:Statistic.measure_interactions",
        "(-1) ** i.bit_count()",
        "(-1) ** i",
        estimates("interactions_are_measured"),
    ),
    "histograms are not used": Fault(
        "inference.projection:_select_histograms",
        "not names",
        "True",
        estimates("inferred_numbers_are_known_by_their_histograms"),
    ),
    "absent records count in estimates": Fault(
        "inference.model:Model.__init__",
        "self.n_records - np.sum(counts) > WITHIN_NOISE * std",
        "False",
        estimates("absent_records_do_not_count"),
    ),
    "quantiles do not leave a knot on either side": Fault(
        "inference.estimates:_bound_quantile",
        "largest = np.concatenate([knots[1:], knots[-1:], atoms])",
        "largest = np.concatenate([knots, atoms])",
        estimates("bounds_of_distribution_functions_hold_for_each_value"),
    ),
    "inferred bounds limit means": Fault(
        "inference.limits:Limits.find_open",
        "statistic.find_moves(*pair, self._names)",
        "statistic.find_moves(pair[0], pair[:1], self._names)",
        limits("intervals_are_open_where_values_beyond_inferred_bounds_move_the_statistic"),
    ),
    "only the last column opens intervals": Fault(
        "inference.limits:Limits.find_open",
        "np.any([moves, *found], axis=0)",
        "np.any(found or [moves], axis=0)",
        limits("intervals_of_statistics_of_several_columns_are_open"),
    ),
    "intervals are open at declared bounds": Fault(
        "inference.model:Model.find_inferred_ends",
        "{*inferred}",
        "{'lower', 'upper'}",
        limits("declared_bounds_close_intervals[number2-ends2]"),
    ),
    "levels that were not found limit no mean": Fault(
        "inference.model:Model.find_inferred_ends",
        "inferred and are_numbers",
        "False",
        limits("means_of_inferred_classes_are_open"),
    ),
    "both ends are open where values beyond a bound move a statistic to one side": Fault(
        "inference.influence:Statistic.find_moves",
        "~(moves <= rounding).all(axis=0)",
        "~(moves >= -rounding).all(axis=0)",
        limits("declared_bounds_close_intervals[number0-ends0]"),
    ),
    "undefined values beyond the bounds move no statistic": Fault(
        "inference.influence:Statistic.find_moves",
        "np.full((1, len(self.values)), np.nan)",
        "np.full((1, len(self.values)), 0.0)",
        limits("functions_that_fail_or_are_undefined_beyond_the_bounds_have_open_intervals"),
    ),
    "columns matter by values within their bounds alone": Fault(
        "inference.influence:Statistic.find_columns",
        "any(self._differ(*tables) for tables in list_moved(name))",
        "False",
        limits("columns_are_found_by_values_beyond_their_bounds"),
    ),
    "quantiles end at inferred bounds": Fault(
        "inference.estimates:_bound_quantile",
        '"upper" in inferred',
        "False",
        limits("quantiles_are_open_at_inferred_bounds"),
    ),
    "values beyond a bound that is a point mass are that value": Fault(
        "inference.estimates:_bound_quantile",
        "np.isin(values, [knots[-1], block.number.upper])",
        "len(knots) - 1",
        limits("quantiles_hold_whatever_is_beyond_inferred_bounds[atoms2]"),
    ),
    "open intervals of quantiles are not said": Fault(
        "inference.estimates:estimate_quantiles",
        "is_open.any()",
        "is_open.all()",
        limits("quantiles_are_open_at_inferred_bounds"),
    ),
    "merged categories are not said": Fault(
        "inference.limits:Limits.warn",
        '"categories" in inferred',
        "False",
        limits("categories_that_were_merged_are_named"),
    ),
    "point masses that were found at a declared bound hide that it clips": Fault(
        "inference.limits:is_clipped",
        'is_atom and "atoms" not in inferred',
        "is_atom",
        limits("declared_bounds_that_clip_are_named[number1-True]"),
    ),
    "densities that rise to a bound look clipped": Fault(
        "inference.limits:is_clipped",
        "DENSER_THAN_BESIDE",
        "1.0",
        limits("usual_densities_do_not_look_clipped"),
    ),
    "absent records are not said": Fault(
        "inference.limits:Limits.warn",
        "model.count_std",
        "model.count_std < 0",
        limits("absent_records_and_findings_of_the_fit_are_named"),
    ),
    "nothing is beyond the bounds of a single class": Fault(
        "inference.model:Model.move",
        "np.multiply(CONSTANTS.beyond, np.ptp(ends)).clip(least)",
        "np.multiply(CONSTANTS.beyond, np.ptp(ends))",
        limits("the_mean_of_a_single_inferred_class_is_open"),
    ),
}
