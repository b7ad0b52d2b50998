"""Faults in the root modules."""

from ..fault import Fault
from ..ids import (
    audit,
    base,
    common,
    curator,
    edges,
    engines,
    few_rows,
    flow,
    isolation,
    muting,
    of_persons,
    partial_rows,
    quality,
    saving,
    schema,
    survival,
    tables,
)

PRIVACY = {
    "made records are at the edge": Fault(
        "auditing.made_records:_draw_inside",
        "_INSIDE * generator.uniform(size=(n_rows, 1))",
        "1.0 * generator.uniform(size=(n_rows, 1))",
        audit("records_that_are_not_clipped[auto]"),
    ),
    "arrays are compared with choices": Fault(
        "checks:is_one_of",
        "isinstance(value, str | int | None) and value in choices",
        "value in choices",
        schema("objects_of_another_type_are_named[bad4]"),
    ),
    "threads are muted one by one": Fault(
        "_process.muting:_ActedOn.__subclasscheck__",
        '[("ignore", muted) for muted in tuple(_muted)]',
        "[]",
        muting("threads_that_are_started_inside"),
    ),
    "an encoder's warnings leave the fit": Fault(
        "_process.muting:muted",
        '"ignore"',
        '"default"',
        curator("warnings_of_an_encoder_are_withheld"),
    ),
    "whoever leaves takes the muting of all with it": Fault(
        "_process.muting:muted",
        "_muted.remove(category)",
        "_muted.clear()",
        muting("threads_stay_muted_until_the_last_one_that_mutes_them_has_left"),
    ),
    "filters that others put first win": Fault(
        "_process.muting:_install",
        "warnings.filters[: len(_FILTERS)] != _FILTERS",
        "not set(_FILTERS) <= set(warnings.filters)",
        muting("filters_that_were_put_first_afterwards"),
    ),
    "a file may contradict its certificate": Fault(
        "saving.serialization:Certified.check_certified",
        "own != certified",
        "False",
        saving("terms_are_compared_also_where_the_origin_says_the_same"),
    ),
    "a file may state less noise than there is": Fault(
        "saving.serialization:Certified.check_certified",
        "not _is_close(certificate.sigma, sigma)",
        "False",
        saving("the_noise_is_that_of_the_certificate[sketch]"),
    ),
    "a budget may be smaller than what was spent": Fault(
        "saving.serialization:Certified._list_certified",
        "certificate.epsilon > epsilon * (1 + _TOLERANCE)",
        "False",
        saving("terms_are_compared_also_where_the_origin_says_the_same"),
    ),
    "a file may be edited": Fault(
        "saving.serialization:_check_digest",
        "file.read(_DIGEST) != digest.hexdigest().encode()",
        "False",
        saving("a_file_cannot_contradict_its_certificate"),
    ),
    "parts of a file may have further members": Fault(
        "saving.values:Reader.read",
        'check_members_of(node, "is", "of")',
        "pass",
        saving("parts_of_a_file_have_the_members_that_were_written"),
    ),
    "what a file says is not checked as it is read": Fault(
        "saving.values:Reader._make",
        "made._check_loaded()",
        "pass",
        saving("a_file_cannot_contradict_its_certificate"),
    ),
    "what follows from a certificate is read": Fault(
        "saving.values:Reader._make",
        "isinstance(getattr(cls, name, None), property)",
        "False",
        saving("a_file_cannot_contradict_its_certificate"),
    ),
    "a dict of a file may have a key twice": Fault(
        "saving.values:_read_dict",
        "len(value) < len(content)",
        "False",
        saving("a_dict_has_a_key_once"),
    ),
    "a row is kept": Fault(
        "base:BaseGenerator._fit",
        "vars(self).pop(name, None)",
        """
        vars(self).pop(name, None)
        self._first = dataset._held[0][0][7:8].copy()
        """,
        common("check_no_row_in_pickle", "sliced"),
    ),
    "a sum without noise is kept": Fault(
        "base:BaseGenerator._fit",
        "vars(self).pop(name, None)",
        """
        vars(self).pop(name, None)
        self.mean_ = dataset._held[0][0].mean(0)
        """,
        base("fitted_attributes_are_those_that_are_documented"),
    ),
    "an encoder is fitted on private rows": Fault(
        "base:BaseGenerator._fit",
        "n_samples, max_rows = dataset.n_records, dataset.max_rows",
        """
        n_samples, max_rows = dataset.n_records, dataset.max_rows
        split_encoder(self.encoder)[0].fit(dataset._held[0][0])
        """,
        flow("public_encoders_are_not_fitted"),
    ),
    "engines take tables without a schema": Fault(
        "curator.dataset:Dataset.validate_array",
        "isinstance(X, TableInParts)",
        "False",
        engines("impossible_fits_are_refused_before_a_row_is_read"),
    ),
    "samples of chunks are planned": Fault(
        "planning.fits:Planning._read",
        "dataset.is_in_parts",
        "False",
        edges("samples_of_chunks_are_refused_before_anything_is_read"),
    ),
    "sampled releases take persons": Fault(
        "planning.fits:Planning._refuse_samples",
        "not release.is_sum",
        "release is None",
        of_persons("releases_that_are_no_sum_over_all_rows_are_refused_before_any_read"),
    ),
    "samples come from the stream of the noise": Fault(
        "base:BaseGenerator._start_sampling",
        "NoiseSource(self._find_seed(random_state), stream=1)",
        "NoiseSource(self._find_seed(random_state), stream=0)",
        base("samples_do_not_come_from_the_stream_of_the_noise"),
    ),
    "noise in components is not spoken of": Fault(
        "planning.fits:Planning._make_plan",
        "self._min_samples_for_components(plan, format)",
        "0",
        few_rows("noise_hides_components_of_few_rows"),
    ),
    "components of persons have the noise of records": Fault(
        "planning.fits:Planning._min_samples_for_components",
        "plan.multiplier(format.components.name) * (plan.max_rows or 1)",
        "plan.multiplier(format.components.name)",
        few_rows("noise_hides_components_of_few_rows"),
    ),
    "low frequencies of images take as many rows as pixels": Fault(
        "encoders:PrivatePCA.min_samples",
        "next((space.shape[1] for space in spaces), n_columns)",
        "n_columns",
        few_rows("noise_hides_components_of_few_rows"),
    ),
    "components that are all kept are to stand out": Fault(
        "encoders:PrivatePCA.min_samples",
        "n_components == n_columns",
        "False",
        few_rows("noise_hides_components_of_few_rows"),
    ),
    "components of images wait until they stand out of all pixels": Fault(
        "planning.arrays:choose_components",
        """
        if are_images:
            return components
        """,
        "pass",
        few_rows("components_of_images_are_sought_however_few_rows_there_are"),
    ),
    "a run of a search that fails keeps its release": Fault(
        "params:fitting",
        """paid and getattr(error, "certificate", None) is not None""",
        "paid",
        survival("a_run_of_a_search_that_fails_keeps_no_release"),
    ),
}

FUNCTION = {
    "partial rows of other libraries are taken for conditions": Fault(
        "base:_read_where",
        "isinstance(rows, pd.Series)",
        "False",
        partial_rows("partial_rows_of_any_library"),
    ),
    "moments are clock times of another zone": Fault(
        "tables.columns.date:Date.check_value",
        "pd.Timestamp(value).tz_convert(self.zone).tz_localize(None)",
        "pd.Timestamp(value).tz_localize(None)",
        partial_rows("conditions_are_dates_as_synthetic_cells_are"),
    ),
    "parameters that make an array of a table are not named": Fault(
        "planning.fits:Planning._name_array_params",
        "are_numbers and dataset.target is None",
        "True",
        tables("parameters_that_make_an_array_of_a_table_are_named[params0-text]"),
    ),
    "noise of absent records is told of columns": Fault(
        "quality:warn_of_absent",
        "share < clear",
        "False",
        quality("consequences_of_absent_persons_are_not_said"),
    ),
    "clipped values are said to be constant": Fault(
        "tables.quality:_find_bound",
        "values[at] == getattr(number, end)",
        "False",
        quality("findings_of_tables[kind17-counts17-options17-messages17]"),
    ),
    "columns of absent records are said to be constant": Fault(
        "tables.quality:warn_of_table",
        "has_absent and not (is_inferred or schema[name].has_knots)",
        "False",
        quality("consequences_of_absent_records_are_not_said[None-schema0]"),
    ),
    "what rules leave out is taken for noise": Fault(
        "quality:find_signal",
        "numbers[numbers != 0]",
        "numbers",
        quality("mostly_noise[0.9-True]"),
    ),
    "a column is named for its least cause": Fault(
        "quality:Findings.find_worst",
        "_RANKS.get(f.code, -1)",
        "-_RANKS.get(f.code, -1)",
        quality("a_column_is_named_for_its_worst_cause_alone"),
    ),
    "findings are forgotten where a fit fails": Fault(
        "quality:collects_findings",
        """
        with contextlib.suppress(FitQualityWarning):
            found.warn(outer)
        """,
        "pass",
        quality("findings_wait_for_the_end_of_a_fit"),
    ),
    "a fit that is part of another one warns before that is complete": Fault(
        "quality:collects_findings",
        "None if is_muted(FitQualityWarning) else _findings.get()",
        "None",
        survival("where_warnings_are_errors_the_estimator_is_fitted_all_the_same[target]"),
    ),
    "muted findings of a part are shown": Fault(
        "quality:collects_findings",
        "None if is_muted(FitQualityWarning) else _findings.get()",
        "_findings.get()",
        quality("muted_findings_of_a_part_of_a_fit_are_not_shown"),
    ),
    "a release is published once its fit is complete": Fault(
        "base:BaseGenerator._fit",
        "curator.on_release = publish",
        "pass",
        survival("a_release_is_kept_whatever_learning_meets[table-KeyboardInterrupt]"),
    ),
    "pairs are lost with the interactions after them": Fault(
        "releases.two_way_tables:TwoWayTables.find_released",
        "self.name not in names",
        "True",
        survival("pairs_are_kept_where_training_between_releases_fails"),
    ),
    "what is kept forgets the public draws since the last release": Fault(
        "curator.curator:open_curator",
        "curator.on_release()",
        "pass",
        survival("a_fit_that_goes_on_from_an_interrupted_one_is_that_fit[table]"),
    ),
    "a fit that has failed keeps more than its release": Fault(
        "params:fitting",
        "{name: before[name] for name in estimator.get_params(deep=False)} | paid",
        "before | paid",
        base("a_refit_that_is_interrupted_leaves_its_release_alone"),
    ),
    "a fit that has failed keeps a release without its values": Fault(
        "params:fitting",
        """getattr(value, "published", value) is not None""",
        "True",
        survival("a_release_without_its_values_is_not_kept_where_no_row_can_be_drawn"),
    ),
    "a fit that has failed keeps nothing": Fault(
        "params:fitting",
        """paid and getattr(error, "certificate", None) is not None""",
        "False",
        survival("a_release_is_kept_whatever_learning_meets[components-KeyError]"),
    ),
    "the default dtype of the process is inherited": Fault(
        "_process.isolation:_shared_defaults",
        "torch.set_default_dtype(torch.float32)",
        "pass",
        isolation("threads_that_overlap_leave_the_process_as_it_was"),
    ),
    "the first thread that leaves restores the process": Fault(
        "_process.isolation:_shared_defaults",
        """
        _n_open -= 1
        if not _n_open:
            _restore.close()
        """,
        """
        _n_open -= 1
        _restore.close()
        """,
        isolation("threads_that_overlap_leave_the_process_as_it_was"),
    ),
    "callers are isolated between batches": Fault(
        "_process.isolation:isolate_each",
        """
        with isolated(random_state):
            batch = next(batches, end)
        if batch is end:
            return
        yield batch
        """,
        """
        with isolated(random_state):
            batch = next(batches, end)
            if batch is end:
                return
            yield batch
        """,
        isolation("callers_have_their_own_state_between_batches"),
    ),
    "rows depend on the number of threads": Fault(
        "_process.isolation:isolated",
        "torch.set_num_threads(1)",
        "pass",
        isolation("with_a_seed_rows_do_not_depend_on_the_number_of_threads"),
    ),
    "Dropout follows from no seed": Fault(
        "_process.isolation:isolated",
        "torch.default_generator.manual_seed(seed)",
        "pass",
        isolation("dropout_follows_from_the_seed_and_moves_no_global_generator[generator]"),
    ),
    "rare amounts come back as ones in silence": Fault(
        "tables.quality:_is_cut",
        "knots.min() < MORE_THAN_BESIDE * std[row.name]",
        "knots.min() < -std[row.name]",
        quality("findings_of_tables[kind11-counts11-options11-messages11]"),
    ),
    "there must be others": Fault(
        "tables.quality:warn_of_levels",
        "signal < LEAST_SIGNAL and level != other",
        "signal < LEAST_SIGNAL",
        quality("levels_of_which_there_are_few"),
    ),
    "pickles in a saved file are run": Fault(
        "saving.values:Reader.take",
        "False",
        "True",
        saving("a_pickle_among_the_arrays_is_not_run"),
    ),
    "a score by one projection": Fault(
        "base:BaseGenerator.score",
        "sliced_wasserstein_distance(format.encode(X), format.encode(synthetic), random_state=0)",
        """
        sliced_wasserstein_distance(
            format.encode(X), format.encode(synthetic), n_projections=1, random_state=0
        )
        """,
        base("a_score_looks_along_many_directions"),
    ),
}
