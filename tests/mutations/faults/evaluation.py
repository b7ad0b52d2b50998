"""Faults in evaluation."""

from ..fault import Fault
from ..ids import report, report_page, schema_report, verdicts

FUNCTION = {
    "the total variation is twice as large": Fault(
        "evaluation._comparisons:total_variation",
        "np.abs(shares[0] - shares[1]).sum() / 2",
        "np.abs(shares[0] - shares[1]).sum()",
        report("total_variation_in_closed_form"),
    ),
    "classifiers are trained on the reference": Fault(
        "evaluation._comparisons:score_classifiers",
        '{"synthetic": synthetic, "reference": reference[:n], "test": reference[n:]}',
        '{"synthetic": reference[:n], "reference": reference[:n], "test": reference[n:]}',
        report("classifiers_learn_from_the_one_table_and_are_tested_on_the_other"),
    ),
    "a page does not escape levels": Fault(
        "evaluation._charts:_text",
        "text",
        "Markup(text)",
        report("the_page_stands_by_itself_and_escapes_what_is_in_it"),
    ),
    "a report on private rows does not say so": Fault(
        "evaluation._page:write_page",
        "results | shown",
        'results | shown | {"reads_private_rows": False}',
        report("private_rows_are_refused_unless_it_is_said_and_then_it_is_on_top"),
    ),
    "the best attack is that on half of the noise": Fault(
        "evaluation._verdicts:judge_protection",
        "certificate.delta_at(point)",
        "certificate.delta_at(point) / 2",
        verdicts("the_best_attack_on_gaussian_noise_in_closed_form"),
    ),
    "values without a bar are left out of a report": Fault(
        "evaluation._page:_draw_columns",
        "sorted(ranked[n_shown:])",
        "[]",
        report("long_lists_are_folded"),
    ),
    "levels are those of the last table alone": Fault(
        "evaluation._columns:_encode_texts",
        "pd.concat(shares, axis=1).max(axis=1)",
        "pd.concat(shares, axis=1).iloc[:, -1].fillna(0)",
        report("levels_are_those_with_the_larger_share_of_either_table"),
    ),
    "merged levels count as equal": Fault(
        "evaluation._columns:_encode",
        "tuple(exact)",
        "tuple(codes)",
        report("merged_levels_are_told_apart_in_marginals"),
    ),
    "a point mass takes the bins of other values": Fault(
        "evaluation._columns:_encode_numbers",
        "points[~np.isin(points, masses)]",
        "points",
        report("point_masses_are_levels_and_leave_bins_for_other_values"),
    ),
    "ordered levels are in the order of their shares": Fault(
        "evaluation._columns:_encode_texts",
        "ranks.get(level, len(ranks))",
        "0",
        report("ordered_categories_are_in_their_order"),
    ),
    "merged rare values leave a verdict good": Fault(
        "evaluation._verdicts:judge_column",
        "row['share_other'] > CONSTANTS.merged",
        "False",
        verdicts("losses_lower_a_verdict"),
    ),
    "a cut tail leaves a verdict good": Fault(
        "evaluation._verdicts:judge_column",
        "not are_few and row[f'share_{end}'] > 1 / n_levels and row[end] != 0",
        "False",
        verdicts("losses_lower_a_verdict"),
    ),
    "a rare level leaves a verdict good": Fault(
        "evaluation._verdicts:judge_column",
        "CONSTANTS.confident * counts.noise > CONSTANTS.rare * n_rows",
        "False",
        verdicts("a_rare_level_lowers_a_verdict"),
    ),
    "a pair is better than its columns": Fault(
        "evaluation._verdicts:judge_counts",
        "[part['verdict'] for part in parts.values()]",
        "[]",
        verdicts("a_pair_has_the_noise_of_the_target_and_the_worse_verdict_of_its_columns"),
    ),
    "a pair with the target has the noise of others": Fault(
        "evaluation._verdicts:judge_counts",
        "noise[second] if noise[first] == common else noise[first]",
        "common",
        verdicts("a_pair_has_the_noise_of_the_target_and_the_worse_verdict_of_its_columns"),
    ),
    "noise is said with one standard deviation": Fault(
        "evaluation._verdicts:_describe_table",
        "CONSTANTS.confident * counts.noise",
        "counts.noise",
        verdicts("the_error_is_the_share_of_rows_that_noise_moves"),
    ),
    "a table of much noise is good": Fault(
        "planning.forecasts:CountTable.verdict",
        "self.noise <= GOOD_NOISE * average",
        "self.noise >= GOOD_NOISE * average",
        verdicts("verdicts_have_their_bounds"),
    ),
    "strata add no noise to pairs": Fault(
        "learners.marginals:_find_pair_std",
        "tables.pairs_std * n_strata**0.5",
        "tables.pairs_std",
        schema_report("pairs_with_the_target_have_the_noise_of_columns_of_its_strata"),
    ),
    "error bars are half as long": Fault(
        "evaluation._charts:draw_bars",
        "_LABEL + (share + shares.margin) * scale",
        "_LABEL + share * scale",
        report_page("error_bars_are_twice_the_margin_long"),
    ),
    "histograms show shares as heights": Fault(
        "evaluation._charts:draw_histogram",
        "np.where(is_mass, part, part / widths)",
        "part",
        report_page("areas_of_a_histogram_are_shares"),
    ),
    "private rows are reported on unasked": Fault(
        "evaluation._report:report",
        "not reads_private_rows",
        "False",
        report("private_rows_are_refused_unless_it_is_said_and_then_it_is_on_top"),
    ),
    "an audit of other noise is taken for one of the certificate": Fault(
        "evaluation._report:_read_audit",
        "audited.get(name) == certificate.get(name)",
        "name in audited",
        report("an_audit_is_shown_and_of_the_same_releases_no_alarm"),
    ),
}
