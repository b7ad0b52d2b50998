"""Faults in the command line."""

from ..fault import Fault
from ..ids import command_line, options, outputs

PRIVACY = {
    "a violation has no exit code": Fault(
        "_cli.commands:audit",
        "0 if audited.verdict == NO_VIOLATION else _VIOLATION",
        "0",
        "tests/cli/test_audits.py::test_a_violation",
    )
}

FUNCTION = {
    "each piece of rows has the same seed": Fault(
        "_cli.commands:_sample_in_pieces",
        "None if seed is None else np.random.RandomState(seed)",
        "seed",
        options("a_seed_gives_the_same_rows_and_says_so"),
    ),
    "an empty piece after the last": Fault(
        "_cli.commands:_sample_in_pieces",
        "left <= 0",
        "left < 0",
        command_line("long_tables_are_read_and_written_in_pieces"),
    ),
    "values that differ in all rows do so in a piece": Fault(
        "_cli.commands:_sample_in_pieces",
        "n_rows if is_whole else _PIECE",
        "_PIECE",
        options("what_is_different_in_all_rows_is_written_at_once"),
    ),
    "a hard link to the private table is overwritten": Fault(
        "_cli.outputs:_is_same",
        "os.path.samefile(path, other)",
        "False",
        outputs("what_makes_no_sense_is_refused_before_anything_is_read"),
    ),
    "old rows stay beside a new certificate": Fault(
        "_cli.outputs:_replace_all",
        "reversed(targets)",
        "()",
        outputs("rows_are_never_beside_the_certificate_of_others[old]"),
    ),
    "--relation is ignored": Fault(
        "_cli.parser:_add_relation",
        """
        command.add_argument(
            "--relation",
            choices=["zero_out", "replace_one"],
            default="zero_out",
            help="neighbouring tables differ in a record that is absent or replaced",
        )
        """,
        'command.add_argument("--relation", type=lambda text: "zero_out", default="zero_out")',
        command_line("the_relation_is_the_one_that_is_asked_for[replace_one]"),
    ),
    "what was found is no schema": Fault(
        "tables.metadata.own:unwrap",
        'set(document) == {"schema", "report"} and isinstance(document["report"], list)',
        "False",
        "tests/cli/test_reports.py::test_what_was_found_is_a_schema_for_what_comes_after",
    ),
}
