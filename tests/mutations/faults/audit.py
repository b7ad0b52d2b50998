"""Faults in audit."""

from ..fault import Fault
from ..ids import audit, audit_reports, audit_statistics, fit_audit, refuting

PRIVACY = {
    "of pure releases the largest counts": Fault(
        "auditing.releases:AuditReport.bound",
        "pure += audited.bound",
        "pure = max(pure, audited.bound)",
        audit_reports("pure_releases_cost_together_what_they_cost_alone"),
    ),
    "inferred bounds cover candidates": Fault(
        "auditing.releases:audit",
        "np.isin(np.arange(len(first)), canary.candidates)",
        "None",
        audit("records_that_are_not_clipped[auto, few records]"),
    ),
    "an audit reads given rows without a warning": Fault(
        "auditing.releases:audit",
        "PrivacyLeakWarning",
        "DeprecationWarning",
        audit_reports("made_records_are_read_without_a_warning_and_given_ones_with_one"),
    ),
    "an audited person has as many rows as count": Fault(
        "auditing.releases:_generate_data",
        "2 * max_rows",
        "max_rows - 1",
        audit("rows_of_a_person_of_which_all_count"),
    ),
    "a given person is a canary with one row": Fault(
        "auditing.releases:_take_data",
        "rows = np.flatnonzero(np.asarray(persons) == np.asarray(persons)[-1])",
        "pass",
        audit_reports("a_person_of_given_rows_takes_the_seat_with_all_of_them"),
    ),
    "more than is claimed is no violation": Fault(
        "auditing.mechanism_audit:ReleaseAudit.reasons",
        "self.bound > self.claim",
        "self.bound > 2 * self.claim",
        audit("noise_of_half_the_variance[tables]"),
    ),
    "an audit knows no thresholds": Fault(
        "auditing.mechanism_audit:ReleaseAudit.reasons",
        "self.threshold[0]",
        "1",
        audit("a_threshold_of_0[None]"),
    ),
    "an audit does not count who joins": Fault(
        "auditing.mechanism_audit:ReleaseAudit.reasons",
        "self.rate[0]",
        "1",
        audit("records_that_join_too_often"),
    ),
    "an audit sees no noise that is shared": Fault(
        "auditing.gaussian:GaussianAudit.audit",
        "len(shared)",
        "len(shared) and False",
        audit("noise_that_is_not_what_it_is_taken_to_be[_shuffle-numbers share their noise-inf]"),
    ),
    "an audit runs on one neighbour": Fault(
        "auditing.gaussian:GaussianAudit._draw_pairs",
        "zip(sources, runs, strict=True)",
        "[(sources[0], runs[0])]",
        audit("noise_that_depends_on_presence[slice sketch-0.5-present]"),
    ),
    "an audit of samples looks at the noise of one neighbour": Fault(
        "auditing.gaussian:GaussianAudit._draw_pairs",
        "(0, 1)",
        "(0,)",
        audit("noise_that_depends_on_presence[gradients-0.5-present]"),
    ),
    "an audit sees no numbers without noise": Fault(
        "auditing.gaussian:_Neighbours.__init__",
        "self.faults.append(_BARE)",
        "pass",
        audit(
            "noise_that_is_not_what_it_is_taken_to_be"
            "[_leave_out-numbers are released without noise-0]"
        ),
    ),
    "guesses are of the least clear": Fault(
        "auditing.membership:count_right_guesses",
        "np.argsort(scores)",
        "np.argsort(np.abs(scores))",
        fit_audit("a_guess_is_of_the_clearest"),
    ),
    "stakes are added up": Fault(
        "auditing.refutation:refute_by_fits",
        "logsumexp(gains) - math.log(len(_STAKES))",
        "logsumexp(gains)",
        refuting("fits_are_refuted_as_often_as_said"),
    ),
    "a guess is right no oftener than wrong": Fault(
        "auditing.refutation:refute_by_fits",
        "1 + curve.advantage",
        "1 + curve.advantage / 2",
        refuting("many_fits_come_near_the_truth[1]"),
    ),
    "guesses of one fit are wrong one by one": Fault(
        "auditing.refutation:refute_by_guesses",
        "v / (n_guesses - v)",
        "n_guesses / (n_guesses - v)",
        refuting("one_guess_of_randomised_response[0.5]"),
    ),
    "an audit inserts no candidate": Fault(
        "auditing.runs:Canary.insert",
        "taken[rows] if position is None else position",
        "taken[rows]",
        audit("sound_releases_are_shown_to_cost_nearly_what_is_claimed[second moments, replaced]"),
    ),
    "audits take noise for less than it is": Fault(
        "auditing.statistics:std_upper_bound",
        "stats.chi2.ppf(alpha, len(values) - 1)",
        "stats.chi2.isf(alpha, len(values) - 1)",
        audit_statistics("bounds_hold_as_often_as_they_say[0.1]"),
    ),
    "audits test at one lag as at two": Fault(
        "auditing.statistics:Autocorrelation.p_value",
        "np.where(2 * lags == self._n, 2.0, 1.0)",
        "np.where(2 * lags == self._n, 1.0, 1.0)",
        audit_statistics("lags[2]"),
    ),
    "two ways to refute are each as sure as both": Fault(
        "auditing.fits:audit_fit",
        "(1 - confidence) / 2",
        "1 - confidence",
        fit_audit("two_ways_to_refute_share_what_may_be_wrong"),
    ),
}
