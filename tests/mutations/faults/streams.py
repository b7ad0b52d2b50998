"""Faults in streams of releases."""

from ..fault import Fault
from ..ids import stream_sums, streams

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
    "a stream draws noise of one period's grid": Fault(
        "mechanisms.streams:StreamedTablesMechanism._measure",
        "Measurement(total, half**2 * 2**WEIGHT_BITS, std, context=std)",
        "Measurement(total, half**2 * 2**WEIGHT_BITS, std / 2, context=std)",
        stream_sums("noise_is_as_stated[zero_out]"),
    ),
    "sums of a stream overflow": Fault(
        "mechanisms.streams:StreamedTablesMechanism._measure",
        "source.n_records << WEIGHT_BITS",
        "source.n_records",
        stream_sums("sums_of_many_records_do_not_overflow"),
    ),
    "a stream pays for another one of the same terms": Fault(
        "accounting.budget:PrivacyBudget._allow",
        "other.stream == charge.stream is not None",
        "True",
        streams("each_stream_pays_for_itself[True]"),
    ),
    "files forget which stream has paid": Fault(
        "accounting.budget_stores:_read_charges",
        "Charge(_read(events), delta, bool(flag), stream)",
        "Charge(_read(events), delta, bool(flag))",
        streams("each_stream_pays_for_itself[True]"),
    ),
    "an update that failed pays for a stream": Fault(
        "accounting.budget:PrivacyBudget._allow",
        "charge.events in paid",
        "paid",
        streams("an_update_that_failed_has_paid_for_nothing"),
    ),
    "a stream may lower the price of what it has released": Fault(
        "streams:ReleaseStream.update",
        "self._make_plan(n_records) if self.release_ is None else self.release_.plan",
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
}

FUNCTION = {
    "rows of the new period alone pass unnoticed": Fault(
        "streams:_warn_of_missing",
        "count - n_records > _BEYOND_NOISE * std",
        "False",
        streams("rows_of_the_new_period_alone_are_noticed[2]"),
    ),
    "rows of all periods are said to be missing": Fault(
        "streams:_warn_of_missing",
        "_BEYOND_NOISE * std",
        "-_BEYOND_NOISE * std",
        streams("rows_of_all_periods_are_not_missed"),
    ),
    "each update of a stream pays for all": Fault(
        "accounting.budget:PrivacyBudget._allow",
        "return None",
        "return charge",
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
