"""Faults in streams of releases."""

from ..fault import Fault
from ..ids import curator, stream_sums, streams

PRIVACY = {
    "releases of a stream are each priced alone": Fault(
        "mechanisms.streams:StreamedTablesMechanism.sensitivity",
        "super().sensitivity(relation) * self._norm",
        "super().sensitivity(relation)",
        stream_sums("sensitivity_of_all_releases_together"),
    ),
    "a stream counts one period in its sensitivity": Fault(
        "mechanisms.streams:StreamedTablesMechanism.__init__",
        "(weights**2).sum()",
        "(weights[:t]**2).sum()",
        stream_sums("sensitivity_of_all_releases_together"),
    ),
    "early periods of a stream keep their weight": Fault(
        "mechanisms.streams:StreamedTablesMechanism.__init__",
        "weights[:t][::-1]",
        "weights[0]",
        stream_sums("sensitivity_of_all_releases_together"),
    ),
    "periods are added up on a grid of their own": Fault(
        "mechanisms.streams:StreamedTablesMechanism._add_up",
        "scale / 2**WEIGHT_BITS",
        "scale",
        stream_sums("estimates_are_the_tables_of_all_rows_so_far"),
    ),
    "sums of a stream overflow": Fault(
        "mechanisms.streams:StreamedTablesMechanism._find_scale",
        "n_records << WEIGHT_BITS",
        "n_records",
        stream_sums("sums_of_many_records_do_not_overflow"),
    ),
    "a stream pays for another one of the same terms": Fault(
        "accounting.budget:PrivacyBudget._reserve",
        "plan.follows is not None and paid == replace(charge, digest=plan.follows)",
        "plan.follows is not None and paid.events == charge.events",
        streams("each_stream_pays_for_itself[True]"),
    ),
    "files forget what was released": Fault(
        "accounting.budget_stores:_read_charges",
        "Charge(_read(events), delta, bool(flag), digest)",
        "Charge(_read(events), delta, bool(flag))",
        streams("only_one_copy_of_a_stream_is_paid_for[file-True]"),
    ),
    "an interrupted release is known by nothing": Fault(
        "curator.curator:Curator._find_digest",
        "self._digest.n_added == n_released > 0",
        "n_released > 0",
        curator("an_interrupted_release_has_no_digest"),
    ),
    "an update that failed pays for a stream": Fault(
        "accounting.budget:PrivacyBudget._reserve",
        "replace(charge, events=())",
        "charge",
        streams("an_update_that_failed_has_paid_for_nothing"),
    ),
    "an update that failed loses what was paid": Fault(
        "accounting.budget:PrivacyBudget._reserve",
        "return ticket, charge, paid",
        "return ticket, charge, charge",
        streams("an_update_that_failed_has_paid_for_nothing"),
    ),
    "an update that was refused is paid for": Fault(
        "accounting.budget:Reservation.settle",
        "replace(left, events=events, digest=digest) if events else left",
        "replace(left, events=events, digest=digest)",
        streams("an_update_that_was_refused_by_one_budget_can_be_made_in_another"),
    ),
    "updates of a stream are each a release of their own": Fault(
        "streams:ReleaseStream.update",
        "(*digests, own.digest)",
        "(own.digest,)",
        streams("certificates_of_one_stream_cost_one_event"),
    ),
    "copies of a stream are one release": Fault(
        "streams:ReleaseStream.update",
        "(*digests, own.digest)",
        "digests",
        streams("only_one_copy_of_a_stream_is_paid_for[copy-False]"),
    ),
    "a stream assumes what its last update does": Fault(
        "streams:ReleaseStream.update",
        "[own] if last is None else [last, own]",
        "[own]",
        streams("a_stream_assumes_what_any_of_its_updates_does"),
    ),
    "a stream assumes nothing of periods": Fault(
        "streams:ReleaseStream.update",
        "(*list_assumptions(format), *assumed)",
        "list_assumptions(format)",
        streams("a_stream_assumes_what_any_of_its_updates_does"),
    ),
    "a stream may lower the price of what it has released": Fault(
        "streams:ReleaseStream.update",
        "plan or self._make_plan(n_records)",
        "self._make_plan(n_records)",
        streams("all_updates_share_the_first_plan"),
    ),
    "all releases of a stream have the same noise": Fault(
        "streams:ReleaseStream.update",
        "NoiseSource()",
        "NoiseSource(0)",
        streams("noise_is_fresh"),
    ),
    "a stream goes on after its horizon": Fault(
        "streams:ReleaseStream.update",
        "t > len(self.horizon)",
        "False",
        streams("each_update_adds_the_rows_of_a_period"),
    ),
    "a stream says nothing of a delta that is too large": Fault(
        "streams:ReleaseStream.update",
        "warn_of_delta(self.delta, n_records)",
        "pass",
        streams("a_delta_that_allows_to_publish_a_record_is_warned_of"),
    ),
}

FUNCTION = {
    "rows of the new period alone pass unnoticed": Fault(
        "streams:ReleaseStream._warn",
        "count - n_records > _BEYOND_NOISE * std",
        "False",
        streams("rows_of_the_new_period_alone_are_noticed[2]"),
    ),
    "rows of all periods are said to be missing": Fault(
        "streams:ReleaseStream._warn",
        "count - n_records > _BEYOND_NOISE * std",
        "count - n_records > -_BEYOND_NOISE * std",
        streams("rows_of_all_periods_are_not_missed"),
    ),
    "a period without rows passes unnoticed": Fault(
        "streams:ReleaseStream._warn",
        "count < _BEYOND_NOISE * std < n_new / 2",
        "False",
        streams("a_period_of_which_no_row_is_is_named[Feb]"),
    ),
    "a period without rows is looked for in all periods": Fault(
        "streams:ReleaseStream._warn",
        "before",
        "()",
        streams("a_period_of_which_no_row_is_is_named[Feb]"),
    ),
    "each update of a stream pays for all": Fault(
        "accounting.budget:PrivacyBudget._reserve",
        "return ticket, charge, paid",
        "return None, charge, paid",
        streams("first_update_charges_the_whole_stream"),
    ),
    "a stream counts periods to come": Fault(
        "mechanisms.streams:StreamedTablesMechanism.__init__",
        "self._weights[:t] = weights[:t][::-1]",
        "self._weights[:] = weights[0]",
        stream_sums("estimates_are_the_tables_of_all_rows_so_far"),
    ),
    "estimates of a stream are believed to have the noise of one release": Fault(
        "mechanisms.streams:estimate_tables",
        "released[0].pairs_std * std",
        "released[0].pairs_std",
        stream_sums("noise_is_as_stated[zero_out]"),
    ),
}
