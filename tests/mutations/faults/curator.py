"""Faults in curator."""

from ..fault import Fault
from ..ids import (
    aggregates,
    base,
    cells,
    chunks,
    common,
    containers,
    curator,
    edges,
    engines,
    files,
    flow,
    fuzz,
    history_cells,
    history_parts,
    ldp_entropic_gan,
    neighbours,
    of_persons,
    persons,
    record_functions,
    records,
    searches,
    sliced_wasserstein,
    tables,
    texts,
    two_way,
)

PRIVACY = {
    "rows without a person are the first person's": Fault(
        "histories.records:_read_tables",
        "known.get(name, -1)",
        "known.get(name, 0)",
        history_cells("rows_are_those_of_the_person_in_order"),
    ),
    "rows without an identifier are the first person's": Fault(
        "histories.records:_read_tables",
        "np.array([*(known.get(name, -1) for name in members.names), -1])",
        "np.array([*(known.get(name, -1) for name in members.names), 0])",
        history_cells("identifiers_have_one_form_and_the_first_row_of_a_person_counts"),
    ),
    "a table without rows of persons is refused for free": Fault(
        "curator.dataset:Dataset._hold",
        "self.n_records == 0 and not self._may_be_empty",
        "self.n_records == 0",
        history_parts("whether_anybody_has_rows_is_private[memory-none]"),
    ),
    "a table without persons is taken": Fault(
        "curator.dataset:Dataset._hold",
        "self.n_records == 0 and not self._may_be_empty",
        "False",
        history_parts("tables_without_persons_are_refused"),
    ),
    "large orders of histories make NumPy warn": Fault(
        "histories.records:_find_gaps",
        'np.errstate(all="ignore")',
        'np.errstate(invalid="ignore")',
        history_cells("no_order_makes_numpy_warn"),
    ),
    "labels that are too large make NumPy warn": Fault(
        "data.inputs:_to_native",
        "muted(RuntimeWarning)",
        "muted(DeprecationWarning)",
        records("numbers_that_are_too_large_make_numpy_not_warn"),
    ),
    "numbers of masked arrays that are too large make NumPy warn": Fault(
        "data.containers:_to_array",
        "muted(RuntimeWarning)",
        "muted(DeprecationWarning)",
        records("numbers_that_are_too_large_make_numpy_not_warn"),
    ),
    "more rows of a person count": Fault(
        "histories.records:_find_first",
        "is_first = rank < limit",
        "is_first = rank >= 0",
        history_cells("one_row_more_than_count_is_given_and_no_others"),
    ),
    "more rows of a person in several partitions count": Fault(
        "histories.records:_find_first",
        "is_first = rank < limit",
        "is_first = rank >= 0",
        history_parts("no_more_rows_of_a_person_count_however_many_partitions_hold_them"),
    ),
    "rows of one order follow from where they are": Fault(
        "histories.records:_sort_by_content",
        "np.lexsort([content, *keys[::-1]])",
        "np.lexsort(keys[::-1])",
        history_parts("rows_of_one_order_do_not_depend_on_partitions"),
    ),
    "rows of one order follow from the dtypes of their partition": Fault(
        "histories.records:_sort_by_content",
        "hash_rows(reader(cells[is_equal.to_numpy()]))",
        "hash_rows(cells[is_equal.to_numpy()])",
        history_parts("one_cell_changes_nothing_for_others_of_its_partition[?]"),
    ),
    "rows of persons of a later reading are the first person's": Fault(
        "histories.records:_hold_events",
        "codes = owners.find_codes(identifiers, set())",
        "codes = np.maximum(owners.find_codes(identifiers, set()), 0)",
        history_parts("a_later_reading_cannot_add_persons_or_rows"),
    ),
    "a person has a row of each chunk": Fault(
        "histories.records:_hold_persons",
        "codes[first[codes] > 0] = -1",
        "pass",
        history_parts("the_first_row_of_a_person_in_chunks_counts"),
    ),
    "chunks of histories are held whole": Fault(
        "histories.records:_hold_events",
        "max(len(kept[0]), _SLICE)",
        "np.inf",
        history_parts("chunks_are_held_up_to_the_rows_that_count"),
    ),
    "which row is shown follows from the persons before": Fault(
        "histories.records:HistoryCells._joined",
        "hashes % used",
        "np.arange(len(used)).astype(np.uint64) % used",
        history_cells("terms_of_a_person_follow_from_that_person_alone[orphans]"),
    ),
    "a gap reaches back to another person": Fault(
        "histories.records:_find_gaps",
        "(rank > 0) & (form == np.roll(form, 1))",
        "form == np.roll(form, 1)",
        history_cells("rows_are_those_of_the_person_in_order"),
    ),
    "histories are pickled": Fault(
        "histories.records:HistoryCells.__getstate__",
        'raise TypeError("Private records cannot be pickled or copied.")',
        "return vars(self)",
        history_cells("positions_and_slices_are_the_same"),
    ),
    "rows of two persons are summed by weight 1 for M": Fault(
        "accounting.plan:Plan.weight",
        "self.max_rows if self.max_weight is None else self.max_weight",
        "1 if self.max_weight is None else self.max_weight",
        of_persons("the_noise_of_several_rows_is_so_many_times_as_much[declared-zero_out]"),
    ),
    "a text that is not UTF-8 empties its column": Fault(
        "data.dtypes:_drop_unreadable",
        "None if text is None else call_quietly(text.decode)",
        "None",
        neighbours("terms_of_others_do_not_follow_from_one_record[Arrow-declared-quick]"),
    ),
    "texts of pandas that are not UTF-8 end a fit": Fault(
        "data.dtypes:read_column",
        'isinstance(dtype, pd.StringDtype) and dtype.storage == "pyarrow"',
        "False",
        neighbours("no_cell_ends_a_fit_or_is_quoted[texts of Arrow in pandas]"),
    ),
    "the dtype of categories follows from whether all are missing": Fault(
        "data.dtypes:read_arrow",
        "read.astype(dtype)",
        "read.astype(object).astype(dtype)",
        neighbours("a_record_alone_in_its_chunk_or_kind_changes_nothing[Parquet]"),
    ),
    "the dtype of booleans among categories follows from whether a cell is missing": Fault(
        "data.dtypes:_find_plain",
        'pd.BooleanDtype() if held.kind == "b" else None',
        'held if held.kind == "b" else None',
        containers("categories_of_booleans_have_one_dtype_whether_a_cell_is_missing"),
    ),
    "entries of a dictionary that no row has are categories": Fault(
        "data.dtypes:read_arrow",
        "arrow_type.ordered",
        "True",
        neighbours("exact_sums_move_by_at_most_the_sensitivity[Arrow-inferred]"),
    ),
    "NumPy chooses the dtype of an array of Arrow": Fault(
        "data.containers:adapt",
        'hasattr(data, "__arrow_c_array__")',
        "False",
        containers("the_dtype_of_an_array_of_arrow_follows_from_its_type"),
    ),
    "masked labels are question marks": Fault(
        "data.containers:_to_array",
        """
        cells[np.ma.getmaskarray(data)] = np.nan if is_number else None
        return cells
        """,
        "return np.ma.array(cells, mask=data.mask).filled(np.nan if is_number else None)",
        containers("masked_cells_are_missing"),
    ),
    "a panic of a cell ends a fit": Fault(
        "data.record_functions:drops_errors.__exit__",
        "not issubclass(kind, INTERRUPTS)",
        "issubclass(kind, Exception)",
        neighbours("no_cell_ends_a_reading"),
    ),
    "an interrupt is dropped": Fault(
        "data.record_functions:drops_errors.__exit__",
        "kind is not None and not issubclass(kind, INTERRUPTS)",
        "kind is not None",
        record_functions("interrupts_are_not_dropped"),
    ),
    "a panic is free, and quoted": Fault(
        "accounting.spending:read_at_full_price",
        "BaseException",
        "Exception",
        curator("errors_while_rows_are_read_are_withheld_and_charge_all[False-Panic]"),
    ),
    "a panic of a worker is quoted": Fault(
        "curator.partitions:Partitions.add_up",
        "BaseException",
        "Exception",
        engines("a_panic_of_a_worker_is_withheld_and_an_interrupt_is_not"),
    ),
    "a panic of a function of chunks is quoted": Fault(
        "curator.chunks:iter_quietly",
        "BaseException",
        "Exception",
        chunks("errors_of_a_function_of_chunks_are_withheld[None-later]"),
    ),
    "rows of a later reading are summed": Fault(
        "curator.batches:RecordSource.add_up",
        "not total or total.n_units != self.n_units",
        "not total",
        engines("rows_of_a_later_reading_are_counted[None-one]"),
    ),
    "persons of a later reading are summed": Fault(
        "curator.batches:RecordSource.add_up",
        "not total or total.n_units != self.n_units",
        "not total or (self.max_rows is None and total.n_units != self.n_units)",
        engines("rows_of_a_later_reading_are_counted[patient-one]"),
    ),
    "texts are missing where all cells are texts": Fault(
        "data.cells:read_cells",
        "known |= dict.fromkeys(texts & missing)",
        "known |= dict.fromkeys(texts & missing) if types == {str} else {}",
        neighbours("terms_of_others_do_not_follow_from_one_record[objects-declared-quick]"),
    ),
    "objects stay as they are": Fault(
        "data.cells:_convert",
        "return OBJECT",
        "return cell",
        neighbours("terms_of_others_do_not_follow_from_one_record[objects-inferred-quick]"),
    ),
    "a label that cannot be written ends a fit": Fault(
        "curator.persons:_write_each",
        "call_quietly(lambda: list(map(_write_cells, rows)))",
        "list(map(_write_cells, rows))",
        neighbours("no_cell_ends_a_reading[0]"),
    ),
    "categories that look missing are": Fault(
        "data.cells:CellReader.__call__",
        "MISSING_TEXTS.difference(levels)",
        "MISSING_TEXTS",
        cells("categories_may_look_missing"),
    ),
    "texts that stand for missing cells are categories": Fault(
        "data.cells:read_cells",
        "known |= dict.fromkeys(texts & missing)",
        "pass",
        cells("one_cell_changes_nothing_for_other_records[number-chunks of 7]"),
    ),
    "texts that are numbers stay texts": Fault(
        "data.cells:_read_text",
        """
        if not math.isnan(number):
            return number
        """,
        "pass",
        cells("one_cell_changes_nothing_for_other_records[age-chunks of 7]"),
    ),
    "texts that are booleans stay texts": Fault(
        "data.cells:_read_text",
        'stripped.lower() in ("true", "false")',
        'stripped in ("true", "false")',
        cells("one_cell_changes_nothing_for_other_records[flag-chunks of 7]"),
    ),
    "texts that are dates stay texts": Fault(
        "data.cells:_read_text",
        "text if date is None else _in_utc(date)",
        "text",
        cells("one_cell_changes_nothing_for_other_records[day-chunks of 7]"),
    ),
    "dates of far years are numbers": Fault(
        "data.cells:_convert",
        "_as_python(cell).item()",
        "cell.astype('M8[us]').item()",
        cells("dates_are_those_that_python_has[datetime64-datetime0]"),
    ),
    "dates of late years are early": Fault(
        "data.cells:_read_date",
        "_FIRST if cell.year < 1 else _LAST",
        "_FIRST",
        cells("dates_are_those_that_python_has[Timestamp-datetime0]"),
    ),
    "dates with a zone lose it": Fault(
        "data.cells:list_cells",
        "isinstance(read.dtype, pd.DatetimeTZDtype)",
        "False",
        cells("dates_of_any_year_are_the_same_in_all_containers[UTC]"),
    ),
    "a cell that no object holds empties its column": Fault(
        "data.cells:list_cells",
        "call_quietly(column.iloc.__getitem__, i)",
        "None",
        cells("cells_that_no_object_of_python_holds_change_no_others"),
    ),
    "an error while rows are read charges what was released": Fault(
        "curator.curator:Curator._read",
        "self._has_failed = True",
        "pass",
        curator("errors_while_rows_are_read_are_withheld_and_charge_all[False-KeyError]"),
    ),
    "an error of code charges all": Fault(
        "curator.curator:Curator._read",
        "PlanError",
        "()",
        curator("errors_that_no_cell_causes_charge_what_was_released[PlanError]"),
    ),
    "errors of time zones end a fit": Fault(
        "data.cells:_read_other",
        """
        with drops_errors():
            return _expect(_read_value(cell), style)
        return None
        """,
        "return _expect(_read_value(cell), style)",
        neighbours("no_cell_ends_a_reading[3]"),
    ),
    "a point among commas for decimals is one": Fault(
        "data.cells:_read_texts",
        "style.has_python_numbers",
        "True",
        texts("declared_columns_are_read_in_the_style_of_the_file"),
    ),
    "amounts with a currency are no numbers in chunks": Fault(
        "data.cells:_read_texts",
        'is_plain and style.expected in ("number", "integer")',
        "False",
        cells("cells_are_read_as_columns_are_written"),
    ),
    "dates keep their time zones": Fault(
        "data.cells:_in_utc",
        "date.astimezone(datetime.timezone.utc)",
        "date",
        cells("forms_of_one_value_are_one"),
    ),
    "zeros in front of a day are lost": Fault(
        "data.cells:_expect",
        "str(int(value)).zfill(width)",
        "str(int(value))",
        cells("dates_that_readers_take_for_numbers_are_the_same_days"),
    ),
    "levels are found by their text alone": Fault(
        "data.names:encode_levels",
        "named.get(_find_key(cell, levels), -1)",
        "-1",
        cells("levels_are_found_by_value"),
    ),
    "the words of a system error are told": Fault(
        "curator.chunks:_describe_failure",
        "os.strerror(error.errno)",
        "error.strerror",
        chunks("errors_of_a_function_of_chunks_are_withheld[patient-called]"),
    ),
    "errors of a function of chunks are quoted": Fault(
        "curator.chunks:_describe_failure",
        "type(error).__name__",
        "str(error)",
        chunks("errors_of_a_function_of_chunks_are_withheld"),
    ),
    "rows are looked at before the budget": Fault(
        "curator.curator:Curator.__init__",
        "self._reservation = Reservation(plan, noise.reproducible)",
        """
        self._source.open()
        self._reservation = Reservation(plan, noise.reproducible)
        """,
        common("check_refusal_is_reserved"),
    ),
    "a refusal is for nothing": Fault(
        "curator.curator:Curator.__init__",
        "read_at_full_price(self._source.open, plan)",
        """
        try:
            read_at_full_price(self._source.open, plan)
        except ValueError:
            self.close()
            raise
        """,
        curator("strict_curators_refuse_bad_records_after_the_reservation"),
    ),
    "rows are chosen by a public key": Fault(
        "curator.curator:Curator.__init__",
        "noise.key() if has_persons else None",
        "bytes(32)",
        persons("each_fit_chooses_with_a_key_of_its_own"),
    ),
    "a refusal does not say what is charged": Fault(
        "curator.curator:Curator.__init__",
        "read_at_full_price(self._source.open, plan)",
        "self._source.open()",
        edges("rows_that_are_refused_say_what_is_charged[False]"),
    ),
    "noise for another relation": Fault(
        "curator.curator:Curator._release",
        "self.plan.relation",
        '"zero_out"',
        common("check_noise"),
    ),
    "a release is not in the ledger": Fault(
        "curator.curator:Curator._release",
        """
        if position == len(self._ledger):
            self._ledger.append(_Entry(mechanism.name, event))
        self._ledger[position].count += 1
        """,
        "pass",
        curator("the_ledger_is_written_before_rows_are_read"),
    ),
    "repeated releases are counted once": Fault(
        "curator.curator:Curator._release",
        "self._ledger[position].count += 1",
        "self._ledger[position].count = 1",
        common("check_ledger", "rows"),
    ),
    "the digest is that of the last release": Fault(
        "curator.curator:Curator._release",
        "self._digest.add(released)",
        """
        self._digest = Digest()
        self._digest.add(released)
        """,
        curator("the_digest_is_of_all_releases_in_their_order"),
    ),
    "a release is published before its digest is known": Fault(
        "curator.curator:Curator._release",
        """
        self._digest.add(released)
        if self.released is not None:
            self.released.append(released)
            self.on_release()
        """,
        """
        if self.released is not None:
            self.released.append(released)
            self.on_release()
        self._digest.add(released)
        """,
        curator("a_release_has_its_digest_where_it_is_published"),
    ),
    "errors while cells are encoded are quoted": Fault(
        "curator.curator:Curator.encode_cells_by",
        "self._read(partial(self._open_source().encode_cells_by, function))",
        "self._open_source().encode_cells_by(function)",
        curator("errors_while_cells_are_encoded_are_withheld_and_charge_all[Panic]"),
    ),
    "a sum of any release takes persons": Fault(
        "curator.curator:Curator._release",
        "self.plan.max_rows is not None and not mechanism.is_sum",
        "self.plan.max_rows is None and not mechanism",
        persons("releases_that_are_no_sum_are_refused_before_a_row_is_read"),
    ),
    "the number of rows is told without noise": Fault(
        "curator.curator:Curator.count_rows",
        "self.release(mechanism).value.item",
        "self._source.count_rows",
        persons("the_number_of_rows_is_noised_and_kept_within_what_is_possible"),
    ),
    "a budget is not charged": Fault(
        "curator.curator:Curator.close",
        "[entry.total for entry in self._ledger]",
        "()",
        sliced_wasserstein("budget"),
    ),
    "the certificate hides that the seed was fixed": Fault(
        "curator.curator:Curator.certificate",
        "self._noise.reproducible",
        "False",
        curator("the_certificate_says_whether_the_seed_was_fixed"),
    ),
    "an event is missing from the certificate": Fault(
        "curator.curator:Curator.certificate",
        "self._ledger",
        "self._ledger[1:]",
        common("check_ledger"),
    ),
    "a certificate does not say who added up": Fault(
        "curator.curator:Curator.certificate",
        "self._engine",
        "None",
        engines("partitions_give_what_the_table_gives[sketch-DPSWFlowSampler]"),
    ),
    "rows of a person are bounded within chunks": Fault(
        "curator.persons:Persons.__init__",
        "self._encode(chunk, lambda name: len(self._codes))",
        "(self._codes.clear(), self._encode(chunk, lambda name: len(self._codes)))[1]",
        persons("chunks_of_identifiers_are_the_same_as_all_of_them"),
    ),
    "who comes later is the first person": Fault(
        "curator.persons:Persons.find_codes",
        "return -1",
        "return 0",
        persons("persons_who_come_later_are_nobody"),
    ),
    "rows of nobody count": Fault(
        "curator.persons:Persons._encode",
        "np.full(len(names) + 1, -1)",
        "np.zeros(len(names) + 1, dtype=np.int64)",
        persons("so_many_rows_of_each_count_and_none_that_is_nobodys"),
    ),
    "of one row too many the first count": Fault(
        "curator.persons:RowLimit.__init__",
        "sizes > max_rows",
        "sizes > max_rows + 1",
        persons("no_row_counts_because_it_comes_first[1]"),
    ),
    "of equal rows of a person all count or none": Fault(
        "curator.persons:RowLimit._choose",
        'rows.groupby(["person", "hash"]).cumcount()',
        'rows.groupby(["person", "hash"]).cumcount() * 0',
        persons("equal_rows_are_as_likely_to_count_as_others"),
    ),
    "of all persons the same rows count": Fault(
        "curator.persons:RowLimit.hash_rows",
        "map(partial(_hash, self._key), names, written)",
        "(len(row) for row in written)",
        persons("each_row_is_as_likely_to_count"),
    ),
    "which rows count follows from their order": Fault(
        "curator.persons:RowLimit.hash_rows",
        "_write_rows(X[here], None if y is None else y[here])",
        '[b"%d" % i for i in range(len(here))]',
        persons("which_rows_count_follows_from_the_rows_of_that_person_alone"),
    ),
    "rows of persons with few rows are not counted": Fault(
        "curator.persons:Reading.choose",
        "counts[counts] = _take(self._n_left, codes[counts])",
        "pass",
        chunks("later_readings_count_no_more_of_anybody"),
    ),
    "rows that were not chosen count later": Fault(
        "curator.persons:_take",
        "(positions >= 0) & (n_before < n_left[positions])",
        "n_before < n_left[positions]",
        chunks("later_readings_count_no_more_of_anybody"),
    ),
    "rows are counted anew in each block": Fault(
        "curator.persons:_take",
        "np.subtract.at(n_left, positions[is_taken], 1)",
        "pass",
        chunks("later_readings_count_no_more_of_anybody"),
    ),
    "the order of an index is not looked at": Fault(
        "data.inputs:check_order",
        "difference is not None and not len(difference)",
        "False",
        chunks("persons_in_another_order_of_the_index_are_refused"),
    ),
    "the order of labels is not looked at": Fault(
        "curator.dataset:Dataset.__init__",
        'check_order(X, y, "y")',
        "pass",
        chunks("labels_in_another_order_of_the_index_are_refused[True-private-True]"),
    ),
    "equal objects of several types are one person": Fault(
        "data.cells:factorize",
        "are_exact(cells.tolist())",
        "True",
        persons("identifiers_are_the_same_whatever_is_beside_them"),
    ),
    "numbers without a hash are identifiers": Fault(
        "curator.persons:_is_identifier",
        "any(type(name) is known for known in (str, int, float, bool))",
        "isinstance(name, str | numbers.Real)",
        persons("cells_that_have_no_name_are_nobodys[7]"),
    ),
    "decimals take as long as they have digits": Fault(
        "curator.persons:_write_other",
        "isinstance(name, Decimal)",
        "False",
        persons("cells_that_have_no_name_are_nobodys[Decimal('1E+10000000')]"),
    ),
    "equal identifiers are brought to different places": Fault(
        "curator.persons:_write_name",
        "str.strip(name)",
        "name",
        engines("equal_numbers_and_texts_in_other_partitions_make_one_person"),
    ),
    "numbers and their texts are two persons": Fault(
        "curator.persons:_write_name",
        "_WHOLE.fullmatch(plain)",
        "None",
        engines("numbers_and_texts_that_read_alike_are_one_person"),
    ),
    "negative identifiers are those of others": Fault(
        "curator.persons:_write_name",
        'f"-{whole[2]}" if whole[1] == "-" and whole[2] != "0" else whole[2]',
        "whole[2]",
        persons("forms_of_one_identifier_are_one_person"),
    ),
    "all that has a hash is an identifier": Fault(
        "curator.persons:_write_name",
        "name is None or name is pd.NA or name is pd.NaT or not _is_identifier(name)",
        "name is None or name is pd.NA or name is pd.NaT",
        persons("cells_unequal_to_their_copies_are_no_identifiers[objects]"),
    ),
    "floats that were rounded are persons": Fault(
        "curator.persons:_write_float",
        """
        if not _is_exact(number):
            return None
        """,
        "pass",
        persons("floats_that_may_be_rounded_are_nobodys"),
    ),
    "short floats are read as long ones": Fault(
        "curator.persons:_find_end",
        "np.finfo(cls).nmant + 1",
        "53",
        persons("floats_that_may_be_rounded_are_nobodys"),
    ),
    "True and 1 are two persons": Fault(
        "curator.persons:_write_other",
        "int(name)",
        "name",
        persons("forms_of_one_identifier_are_one_person"),
    ),
    "rows are told from each other by 16 bits": Fault(
        "curator.persons:_hash",
        "blake2b(key=key, digest_size=8)",
        "blake2b(key=key, digest_size=2)",
        persons("unlike_rows_have_unlike_hashes"),
    ),
    "errors keep the variables of their frames": Fault(
        "data.record_functions:_clear_frames",
        "traceback.clear_frames(error.__traceback__)",
        "pass",
        fuzz("fits"),
    ),
    "frames of the caller are cleared, too": Fault(
        "data.record_functions:_clear_frames",
        "error is not None and error is not handled",
        "error is not None",
        edges("frames_outside_are_left"),
    ),
    "errors keep the frames of those that they followed": Fault(
        "data.record_functions:_clear_frames",
        "error.__cause__ or error.__context__",
        "error.__cause__",
        record_functions("errors_keep_nothing_of_the_frames_that_they_came_through[False]"),
    ),
    "a product that fails takes those of others with it": Fault(
        "data.record_functions:PullingFunction.with_products",
        "_by_record(result, pull_alone, (cotangents, *blocks), n_products)",
        "cotangents.new_zeros(len(cotangents), n_products) if result is None else result",
        aggregates(
            "a_record_for_which_the_function_fails_adds_no_features_or_products_of_its_own_only"
        ),
    ),
    "one failing record makes all absent": Fault(
        "data.record_functions:_by_record",
        "range(n)",
        "range(0)",
        curator("a_record_for_which_an_encoder_fails_counts_as_absent"),
    ),
    "records are tried in the first place": Fault(
        "data.record_functions:_alone",
        "alone[i] = block[i]",
        "alone[0] = block[i]",
        record_functions("records_keep_their_places_where_the_function_fails_for_others"),
    ),
    "sizes follow from the number of rows": Fault(
        "curator.dataset:Dataset._hold",
        "n_rows if persons is None else persons.n_persons",
        "n_rows",
        of_persons("all_that_is_seen_follows_from_persons_alone[declared-1]"),
    ),
    "records are held after they were handed over": Fault(
        "curator.dataset:Dataset.release_ownership",
        "self._held.pop()",
        "self._held[-1]",
        records("datasets_are_handed_over_once_and_held_by_nobody_then"),
    ),
    "inferred classes are called local": Fault(
        "curator.dataset:Dataset.cover",
        "plan.local and not self._is_inferred",
        "plan.local",
        ldp_entropic_gan("inferred_classes_are_not_local"),
    ),
    "fill values of sparse columns get out": Fault(
        "data.dtypes:hide_values",
        "pd.isna(dtype.fill_value) or dtype.fill_value == 0",
        "True",
        containers("fill_values_of_sparse_columns_do_not_get_out"),
    ),
    "the certificate does not say that cells of a list decide what labels are": Fault(
        "curator.dataset:Dataset.list_assumptions",
        "(_UNTYPED,) * self._is_untyped",
        "()",
        flow("a_list_of_labels_states_that_its_cells_decide_what_it_holds[nan]"),
    ),
    "names of single records are columns beside those of a schema": Fault(
        "curator.dataset:Dataset.take_columns",
        "take_names(X, names)",
        "X",
        containers("records_add_the_same_whatever_one_of_them_is[0-memory]"),
    ),
    "names of single records are columns of chunks": Fault(
        "curator.chunks:TableChunks.take_columns",
        "table._names = list(names)",
        "pass",
        containers("records_add_the_same_whatever_one_of_them_is[6-chunks]"),
    ),
    "the certificate does not say that names of records are public": Fault(
        "curator.dataset:Dataset.take_columns",
        "not are_declared",
        "False",
        containers("names_of_undeclared_records_are_assumed_to_be_public[memory]"),
    ),
    "a dict makes records of labels": Fault(
        "data.containers:adapt_column",
        "isinstance(data, list | tuple)",
        "False",
        containers("a_record_among_labels_or_identifiers_makes_no_table_of_them[dict]"),
    ),
    "matrices are columns of a dict": Fault(
        "data.containers:_adapt_columns",
        'getattr(column.data, "ndim", 0) != 1',
        "False",
        containers("objects_that_are_no_table_are_refused[matrices]"),
    ),
    "texts in a list choose the dtype of their column": Fault(
        "data.containers:_make_series",
        "object if cells.dtype == object else None",
        "None",
        containers("no_cell_chooses_a_dtype"),
    ),
    "a certificate does not say that the order of a dtype is assumed to be public": Fault(
        "curator.dataset:Dataset.list_assumptions",
        "(*inferred, *names, *ordered, *alike, *refusals)",
        "(*inferred, *names, *alike, *refusals)",
        containers("the_order_that_a_dtype_states_is_an_assumption[pandas]"),
    ),
    "strict certificates do not say so": Fault(
        "curator.dataset:list_refusals",
        "strict or has_objects",
        "has_objects",
        common("check_bad_records"),
    ),
    "an error quotes a cell": Fault(
        "data.inputs:_parse_cell",
        "error = PublicValueError",
        "raise",
        common("check_failing_fit", "sliced"),
    ),
    "chunks of a function are taken to be read alike": Fault(
        "curator.dataset:Dataset.list_assumptions",
        "not self.has_public_dtypes",
        "False",
        chunks("the_certificate_assumes_what_cannot_be_seen_of_a_function"),
    ),
    "texts of objects are codes": Fault(
        "data.dtypes:_is_text",
        "is_string_dtype(dtype) and isinstance(dtype, ExtensionDtype)",
        "is_string_dtype(dtype)",
        cells("one_cell_changes_nothing_for_other_records[code-mixed]"),
    ),
    "the number of rows is told beside that of labels": Fault(
        "data.inputs:check_length",
        "len(y) != n_rows",
        'len(y) != n_rows and int(f"{n_rows} rows")',
        records("numbers_of_rows_and_labels_are_not_told"),
    ),
    "persons are told by positions of partitions": Fault(
        "curator.dataset:Dataset._split_persons",
        "is_in_parts and not is_column",
        "False",
        engines("impossible_fits_are_refused_before_a_row_is_read"),
    ),
    "the grid is that of the number of rows": Fault(
        "curator.batches:RecordSource._count_persons",
        "n_persons * self.max_rows",
        "self._n_rows",
        persons("public_facts_follow_from_persons_alone"),
    ),
    "rows that do not count are not left out": Fault(
        "curator.batches:RecordSource._limit_persons",
        "left_out if self._null is None else self._null | left_out",
        "self._null",
        persons("a_person_moves_sums_by_no_more_than_is_claimed[class counts-zero_out-1]"),
    ),
    "radii are taken whose squares underflow": Fault(
        "curator.batches:RecordSource.prepare",
        "1e-100 <= clip_norm < math.inf",
        "0 < clip_norm < math.inf",
        curator("bad_clip_norm[5e-324]"),
    ),
    "one bad cell makes a block unreadable": Fault(
        "curator.batches:RecordSource.encode_cells_by",
        "is_finite[:, None]",
        "is_finite.all()",
        tables("a_record_with_a_bad_cell_counts_as_absent"),
    ),
    "rows that are not finite get the codes of zeros": Fault(
        "curator.batches:RecordSource.encode_cells_by",
        "rows.masked_fill(~is_finite[:, None], torch.nan)",
        "rows",
        two_way("chunks_give_the_sums_of_rows_in_memory"),
    ),
    "each partition chooses by another key": Fault(
        "curator.batches:RecordSource.add_up",
        "self._key",
        "bytes(32)",
        engines("persons_in_partitions_give_what_the_table_gives[stops0-1]"),
    ),
    "rows of the unit ball are taken for codes": Fault(
        "curator.batches:RecordSource.codes",
        "self._clip_norm is not None",
        "False",
        two_way("codes_and_rows_of_the_unit_ball_are_not_taken_for_each_other"),
    ),
    "cells of bad labels are counted": Fault(
        "curator.batches:RecordSource.cells",
        "classes >= 0",
        "classes >= -1",
        curator("a_bad_label_counts_as_absent_where_cells_are_read[7]"),
    ),
    "progress tells the number of rows": Fault(
        "curator.batches:RecordSource._read",
        "self.max_rows is None",
        "True",
        persons("progress_does_not_tell_how_many_rows_there_are[5000]"),
    ),
    "rows of a person are bounded in the first block": Fault(
        "curator.batches:RecordSource._read_records",
        "self._null[start:stop]",
        "self._null[: len(X)]",
        persons("rows_are_bounded_over_all_blocks_and_chunks[None]"),
    ),
    "other persons in a later reading are not told": Fault(
        "curator.batches:RecordSource.warn_of_changes",
        "self._n_persons_read - {self.n_units}",
        "set()",
        chunks("other_persons_in_a_later_reading_are_told_by_their_number"),
    ),
    "rows are not clipped": Fault(
        "curator.batches:RecordSource._finish",
        "clip_rows(rows.to(self._device), self._clip_norm)",
        "rows.to(self._device)",
        common("check_neighbours"),
    ),
    "a bad label is that of the last class": Fault(
        "curator.batches:RecordSource._encode",
        "(classes >= 0) & is_finite",
        "is_finite",
        common("check_bad_records"),
    ),
    "null records are counted": Fault(
        "curator.batches:RecordSource._membership",
        "membership[null] = 0",
        "pass",
        common("check_neighbours", "sliced"),
    ),
    "undeclared labels are refused": Fault(
        "curator.batches:RecordSource._find_classes",
        "return torch.as_tensor(encode_labels(y, self._classes))",
        """
        codes = torch.as_tensor(encode_labels(y, self._classes))
        if (codes < 0).any():
            raise ValueError("y holds other labels.")
        return codes
        """,
        common("check_bad_records"),
    ),
    "infinite numbers are clipped to the bounds": Fault(
        "curator.batches:RecordSource._map_rows",
        "np.isfinite(block)",
        "~np.isnan(block)",
        curator("a_bad_record_counts_as_absent_and_changes_no_other"),
    ),
    "a bad number beside a row is not looked at": Fault(
        "curator.batches:RecordSource._map_rows",
        "enumerate(blocks)",
        "enumerate(blocks[:1])",
        curator("a_bad_number_beside_a_row_makes_it_absent[inf]"),
    ),
    "rows of persons in partitions are not bounded": Fault(
        "curator.batches:_add_up_part",
        "RecordSource(rows, None, persons=persons, **parameters)",
        "RecordSource(rows, None, **parameters)",
        engines("rows_of_a_person_are_bounded_across_partitions[stops0-3]"),
    ),
    "rows are held where the next ones are written": Fault(
        "curator.blocks:cut_blocks",
        "n_held < size",
        "False",
        chunks("a_source_may_write_each_chunk_where_the_last_one_was"),
    ),
    "a table that changes later charges what was released": Fault(
        "curator.curator:Curator._read",
        "PlanError",
        "(PlanError, TableError)",
        curator("a_table_that_does_not_match_its_schema_later_charges_all"),
    ),
    "columns are named by cells that Arrow cannot hold": Fault(
        "data.containers:_adapt_table",
        "table[[n]].head(0).to_arrow",
        "table[[n]].to_arrow",
        containers("an_error_names_no_column_by_its_cells"),
    ),
    "dates of a categorical dtype are kept": Fault(
        "data.dtypes:hide_values",
        "[False, True] if is_boolean else None",
        "[False, True] if is_boolean else dtype.categories",
        containers("categories_of_dates_are_no_part_of_a_dtype"),
    ),
}

FUNCTION = {
    "a list of images has cells that are no numbers": Fault(
        "data.inputs:check_rows",
        "all(map(_is_nested, X.flat))",
        "False",
        records("rows_of_several_dimensions_are_refused_by_their_shape"),
    ),
    "labels may be lists": Fault(
        "data.inputs:_infer_classes",
        "not all(map(pd.api.types.is_scalar, y))",
        "False",
        records("inferred_labels_that_are_no_scalars_are_refused"),
    ),
    "a seed is not warned of": Fault(
        "curator.curator:open_curator",
        """
        if noise.reproducible:
            warn_of_seed()
        """,
        """
        if False:
            warn_of_seed()
        """,
        base("a_seed_is_warned_of_where_fit_is_called"),
    ),
    "searches spend without a word": Fault(
        "curator.curator:open_curator",
        "not curator.is_charged",
        "False",
        searches("fits_of_a_search_add_up"),
    ),
    "objects without a schema are read before they are refused": Fault(
        "data.inputs:_check_dtypes",
        '"USmMO" if is_frame else "USmM"',
        '"USmM"',
        sliced_wasserstein("bad_data[text, objects]"),
    ),
    "missing durations are texts": Fault(
        "data.cells:_convert",
        "None if np.isnat(cell) else str(cell.astype('m8[us]').item())",
        "str(cell.astype('m8[us]').item())",
        cells("cells_with_a_text_of_their_own_are_read_as_that[3-np.timedelta64('NaT')-None]"),
    ),
    "sparse columns come back dense": Fault(
        "data.dtypes:hide_values",
        "pd.SparseDtype(dtype.subtype, *[dtype.fill_value] * bool(is_plain))",
        "None",
        containers("sparse_columns_come_back_sparse[False-int]"),
    ),
    "a table from a function is read as its names": Fault(
        "curator.chunks:TableChunks._call",
        'hasattr(chunks, "columns") or isinstance(chunks, str | Mapping)',
        "False",
        chunks("functions_that_give_no_chunks_are_refused_for_nothing[auto-table]"),
    ),
    "columns of later chunks are not looked at": Fault(
        "curator.chunks:_check_names",
        "Counter(names) != Counter(first)",
        "False",
        chunks("other_columns_of_a_later_chunk_are_refused_for_nothing[lacking-None]"),
    ),
    "compressed files are read as texts": Fault(
        "engines.files:TableFile._check_encoding",
        "start.startswith(_COMPRESSED)",
        "False",
        files("compressed_files_are_named_as_such[gzip]"),
    ),
    "markers of missing values are for persons, too": Fault(
        "engines.files:TableFile._mark_missing",
        "name != self._person_column",
        "True",
        files("texts_that_are_said_to_be_missing[csv]"),
    ),
    "markers of missing values confuse 1 and True": Fault(
        "engines.files:_name_cells",
        "type(cell) is bool",
        "None",
        files("texts_that_are_said_to_be_missing[xlsx]"),
    ),
    "a text that NumPy has for missing ones is kept": Fault(
        "data.containers:adapt",
        "getattr(dtype, 'kind', 'O') == 'T'",
        "False",
        containers("a_text_that_stands_for_missing_ones_is_not_kept"),
    ),
}
