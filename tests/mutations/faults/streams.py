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
    "the first update of a stream is free": Fault(
        "streams:ReleaseStream.update",
        "if t > 1:\n"
        "    _check_charged(plan)\n"
        "    stack.enter_context(PaidRun(plan.events[0], self.relation))",
        "stack.enter_context(PaidRun(plan.events[0], self.relation))",
        streams("first_update_charges_the_whole_stream"),
    ),
    "budgets that a stream has not charged are passed by": Fault(
        "streams:ReleaseStream.update",
        "_check_charged(plan)",
        "pass",
        streams("first_update_charges_the_whole_stream"),
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
