"""Faults in the command line."""

from ..fault import Fault
from ..ids import command_line, forecasts, options, outputs, previews, summaries

PRIVACY = {
    "a violation has no exit code": Fault(
        "cli.commands:audit",
        "0 if audited.verdict == NO_VIOLATION else BAD_RESULT",
        "0",
        "tests/cli/test_audits.py::test_a_violation",
    ),
    "too few rows do not stop": Fault(
        "cli.runs:list_doubts",
        "needed > n_expected",
        "False",
        options("few_rows_stop_before_anything_is_spent[1]"),
    ),
    "a table of one column that may be several does not stop": Fault(
        "cli.tables:TableOptions.list_doubts",
        "len(self.names) == 1",
        "False",
        "tests/cli/test_strange_files.py::test_files_that_cannot_be_read_are_refused_for_nothing"
        "[spaces]",
    ),
    "a schema forgets which texts are missing": Fault(
        "cli.tables:list_markers",
        'read_beside(path, "na_values") or []',
        "[]",
        previews("a_schema_knows_which_texts_are_missing"),
    ),
    "missing values of one table are refused in the other": Fault(
        "cli.histories:_split_columns",
        "split_marker(given)[0] in (None, *names[table])",
        "True",
        "tests/cli/test_histories.py::test_columns_of_one_table_are_dropped_or_have_missing_values",
    ),
    "a delta of one record does not stop": Fault(
        "cli.runs:list_doubts",
        "delta >= 1 / read.n_units",
        "False",
        options("a_delta_that_allows_to_publish_a_record_stops"),
    ),
    "delta is rounded up": Fault(
        "cli.runs:choose_delta",
        "float(f\"1e{int(f'{most:.6e}'.partition('e')[2])}\")",
        "10 * float(f\"1e{int(f'{most:.6e}'.partition('e')[2])}\")",
        previews("delta_follows_from_the_public_number_of_rows"),
    ),
    "decimal commas of declared numbers do not stop": Fault(
        "cli.tables:TableOptions.list_doubts",
        'self.file.sep != ";"',
        "True",
        options("semicolons_and_declared_numbers_stop_until_decimals_are_said"),
    ),
    "a look in vain does not stop": Fault(
        "cli.synthesis:look",
        "read.n_units * (options.max_rows_per_person or 1)",
        "needed",
        previews("a_look_in_vain_stops"),
    ),
    "a look is not counted with its synthesis": Fault(
        "cli.synthesis:_add_look",
        "compose(Certificate.from_json(read_file(path)), certificate), []",
        "certificate, []",
        previews("a_look_and_the_synthesis_after_it"),
    ),
    "a second look replaces the certificate of the first": Fault(
        "cli.synthesis:look",
        'Path(outputs["certificate"]).exists()',
        "False",
        previews("a_look_and_the_synthesis_after_it"),
    ),
    "a release is said to be kept before it is written": Fault(
        "cli.runs:Run._write_release",
        "path = Path(self._folder) / _RELEASE",
        "self.release = path = Path(self._folder) / _RELEASE",
        outputs("a_release_that_no_disk_can_hold_is_not_said_to_be_kept"),
    ),
}

FUNCTION = {
    "a sheet is not tried": Fault(
        "cli.forms:Form.check",
        "not self._can_write(cells)",
        "False",
        outputs("forms_that_cannot_hold_the_rows"),
    ),
    "a sheet gets what it cannot hold": Fault(
        "cli.forms:_to_excel",
        "abs(value) > _LARGEST",
        "False",
        outputs("a_sheet_gets_texts_for_what_it_cannot_hold"),
    ),
    "a disk has room for anything": Fault(
        "cli.outputs:check_space",
        "needed > free",
        "False",
        outputs("a_full_disk_stops_a_command_before_anything_is_spent"),
    ),
    "keys are tried after a fit": Fault(
        "cli.synthesis:Synthesis.__init__",
        "check_enough(table.schema.rules, table.schema, self.n_made, most_levels=most_levels)",
        "None",
        outputs("a_key_of_too_few_values_stops_a_command_before_anything_is_spent"),
    ),
    "warnings of the command line give code": Fault(
        "cli.outputs:collected_warnings",
        "write(message, COMMAND_LINE)",
        "str(message)",
        options("warnings_are_in_words_of_the_command_line"),
    ),
    "rows after the first piece are forgotten": Fault(
        "cli.synthesis:Synthesis.write",
        "chain([first], pieces)",
        "[first]",
        command_line("long_tables_are_read_and_written_in_pieces"),
    ),
    "a hard link to the private table is overwritten": Fault(
        "cli.outputs:_is_same",
        "os.path.samefile(path, other)",
        "False",
        outputs("outputs_over_other_files_are_refused"),
    ),
    "a file is there before it is in full": Fault(
        "cli.outputs:filled_folder",
        "yield temporary",
        """
        os.makedirs(target, exist_ok=True)
        yield Path(target)
        """,
        outputs("files_are_there_in_full_or_not_at_all"),
    ),
    "a release is not written before rows are": Fault(
        "cli.runs:Run.fit_and_write",
        "saving_releases(self._keep)",
        "saving_releases(print)",
        outputs("signals_leave_the_release_and_say_what_was_spent[15]"),
    ),
    "an earlier certificate is written over": Fault(
        "cli.outputs:check_folder",
        "os.listdir(target)",
        "[]",
        outputs("senseless_options_are_refused_before_anything_is_read"),
    ),
    "decimals are written with a dot": Fault(
        "cli.forms:Form._as_texts",
        "style.decimal != PLAIN.decimal",
        "False",
        options("forms_of_csv_files[commas for decimals, unsaid]"),
    ),
    "texts of a workbook are formulas": Fault(
        "cli.forms:_write_excel",
        "isinstance(value, str)",
        "False",
        outputs("a_text_is_no_formula_of_a_workbook"),
    ),
    "what was found of texts is forgotten": Fault(
        "cli.tables:TableOptions.style_of",
        "self._styles.get(name, self._style)",
        "self._style",
        previews("a_look_and_the_synthesis_after_it"),
    ),
    "warnings come as they were raised": Fault(
        "cli.outputs:collected_warnings",
        "sorted(found.values(), key=lambda message: isinstance(message, FitQualityWarning))",
        "found.values()",
        summaries("warnings_are_listed_once_and_those_of_privacy_first"),
    ),
    "a summary is longer than a terminal": Fault(
        "cli.summaries:Summary.to_text",
        "left - len(worry)",
        "left",
        summaries("a_summary_fits_a_terminal"),
    ),
    "forecasts forget the strata": Fault(
        "planning.forecasts:measure_tables",
        "1 if by is None else sizes[by]",
        "1",
        forecasts("the_noise_is_that_of_the_fit[zero_out-smoker]"),
    ),
    "forecasts forget the relation": Fault(
        "planning.forecasts:Forecast.of",
        "plan.sigma",
        "plan.multiplier(TwoWayTables.name)",
        forecasts("the_noise_is_that_of_the_fit[replace_one-None]"),
    ),
    "--relation is ignored": Fault(
        "cli.runs:make_generator",
        "options.relation",
        "'zero_out'",
        command_line("the_relation_is_the_one_that_is_asked_for[replace_one]"),
    ),
    "what was found is no schema": Fault(
        "metadata.own:unwrap",
        '"schema" in document and isinstance(document.get("report"), list)',
        "False",
        "tests/cli/test_reports.py::test_found_columns_are_a_schema_for_later_fits",
    ),
}
