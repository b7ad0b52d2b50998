"""Faults in evaluation."""

from ..fault import Fault
from ..ids import report

FUNCTION = {
    "the total variation is twice as large": Fault(
        "evaluation._comparisons:total_variation",
        "np.abs(shares[0] - shares[1]).sum() / 2",
        "np.abs(shares[0] - shares[1]).sum()",
        report("total_variation_in_closed_form"),
    ),
    "classifiers are trained on the reference": Fault(
        "evaluation._comparisons:score_classifiers",
        'zip(("synthetic", "reference"), rows, labels, strict=False)',
        'zip(("synthetic", "reference"), rows[1:], labels[1:], strict=False)',
        report("classifiers_learn_from_the_one_table_and_are_tested_on_the_other"),
    ),
    "a page does not escape levels": Fault(
        "evaluation._drawings:_text",
        "escape(text)",
        "text",
        report("the_page_stands_by_itself_and_escapes_what_is_in_it"),
    ),
    "a report on private rows does not say so": Fault(
        "evaluation._page:_list_alarms",
        'results["reads_private_rows"]',
        "False",
        report("private_rows_are_refused_unless_it_is_said_and_then_it_is_on_top"),
    ),
    "ε in words is that of a smaller one": Fault(
        "evaluation._page:_explain_epsilon",
        "math.exp(-epsilon)",
        "math.exp(-epsilon / 2)",
        report("the_certificate_is_on_the_page"),
    ),
    "values without a bar are left out of a report": Fault(
        "evaluation._page:_write_marginals",
        """
        (
            f"<figure><figcaption>{escape(column['column'])}<span>{note}</span></figcaption>"
            f"{drawing}{_list_other_levels(column)}</figure>"
        )
        """,
        """
        (
            f"<figure><figcaption>{escape(column['column'])}<span>{note}</span></figcaption>"
            f"{drawing}</figure>"
        )
        """,
        report("long_lists_are_folded"),
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
        report("an_audit_of_the_same_releases_is_no_alarm"),
    ),
}
