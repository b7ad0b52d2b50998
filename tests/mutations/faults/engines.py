"""Faults in engines."""

from ..fault import Fault
from ..ids import containers, engines, files, outputs, secrets

PRIVACY = {
    "rows of a person are bounded within partitions": Fault(
        "curator.partitions:PartitionedTable.__init__",
        "frame if person_column is None else self._group_by_person(draw_name())",
        "frame",
        engines("rows_of_a_person_are_bounded_across_partitions[stops1-1]"),
    ),
    "what a worker raises is quoted": Fault(
        "curator.partitions:Partitions.add_up",
        "type(error).__name__",
        "str(error)",
        engines("output_of_a_worker_is_dropped"),
    ),
    "what a worker raises is the cause": Fault(
        "curator.partitions:Partitions.add_up",
        "failure = type(error).__name__",
        'raise RuntimeError("workers failed (KeyError)") from error',
        engines("output_of_a_worker_is_dropped"),
    ),
    "names of tasks are short": Fault(
        "curator.partitions:draw_name",
        "uuid4().hex",
        "4 * uuid4().hex[:8]",
        secrets("each_bit_is_drawn_whatever_the_time_the_process_and_seeds_are[name of a task]"),
    ),
    "one partition counts": Fault(
        "curator.partitions:merge_sums",
        "total + part",
        "part or total",
        engines("partitions_give_what_the_table_gives"),
    ),
    "a failed partition counts as empty": Fault(
        "curator.partitions:merge_sums",
        "return None",
        "continue",
        engines("a_failure_after_a_release_says_what_is_charged"),
    ),
    "files of a table have columns of other types": Fault(
        "engines.files:TableFile._read_schema",
        "not read_schema(other).equals(schema)",
        "read_schema(other).names != schema.names",
        "tests/engines/test_files.py::test_files_of_one_table_have_the_same_columns_of_the_same_types",
    ),
    "the first record names the columns": Fault(
        "engines.files:TableFile._read_names_of",
        "not self._has_header",
        "False",
        "tests/cli/test_strange_files.py::test_files_that_cannot_be_read_are_refused_for_nothing"
        "[no names]",
    ),
}

FUNCTION = {
    "types of Parquet files are lost": Fault(
        "engines.files:TableFile.has_fixed_dtypes",
        "self._is_parquet",
        "False",
        outputs("types_of_parquet_files_come_back"),
    ),
    "an index of Parquet is lost": Fault(
        "engines.files:_read_arrow",
        "read_arrow_table(data)",
        "data.to_pandas()",
        files("an_index_of_parquet_is_a_column_if_it_has_a_name[job]"),
    ),
    "an index without a name is a column": Fault(
        "engines.files:_read_arrow",
        "list(filter(_UNNAMED_INDEX.fullmatch, frame))",
        "[]",
        files("an_index_of_parquet_is_a_column_if_it_has_a_name[None]"),
    ),
    "an index with a name is lost in silence": Fault(
        "exceptions:warn_of_index",
        "name not in used",
        "False",
        containers("an_index_with_a_name_is_named_as_no_column[job-None-'job']"),
    ),
}
