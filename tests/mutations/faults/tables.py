"""Faults in tables."""

from ..fault import Fault
from ..ids import (
    atoms,
    by_level,
    cells,
    chunks,
    conditions,
    decimals,
    evening,
    inference,
    options,
    ranges,
    rules,
    schema,
    schema_report,
    table_encoder,
    tables,
    texts,
)

PRIVACY = {
    "dates are rounded to the nearest second": Fault(
        "formats.cells:read_date",
        'np.datetime64(value, "us")',
        'np.datetime64(value, "us") + np.timedelta64(500_000, "us")',
        "tests/formats/test_cells.py::test_a_cell_is_read_alike_beside_any_other",
    ),
    "kinds of cells weigh more than is stated": Fault(
        "formats.decimals:encode_levels",
        "TableEncoder(Schema(dict.fromkeys(table, Category(levels)))).encode(table)",
        """
        TableEncoder(Schema(dict.fromkeys(table, Category(levels)))).encode(
            table
        ) * table.shape[1]
        """,
        inference("a_record_moves_the_counts_of_kinds_by_at_most_what_is_stated"),
    ),
    "infinity has no decimals": Fault(
        "formats.decimals:_count",
        "np.isfinite(numbers)",
        "~np.isnan(numbers)",
        decimals("what_is_no_finite_number_has_no_decimals[inf]"),
    ),
    "what is released follows from what was found": Fault(
        "formats.inference:SchemaInference._count",
        "curator.release(_weights(release))",
        "pass",
        inference("all_is_released_whatever_is_found"),
    ),
    "a record without a target is of a level": Fault(
        "formats.table:TableFormat.__post_init__",
        "replace(kind, missing=False)",
        "kind",
        tables("a_record_without_a_target_counts_as_absent"),
    ),
    "identifiers in rows are read as they look": Fault(
        "formats.table:_style_of",
        """
        if is_stated:
            return None
        """,
        """
        if is_stated or type(kind).__name__ == "Identifier":
            return None
        """,
        chunks("a_cell_of_an_identifier_chooses_no_rows_of_others"),
    ),
    "categories that are alike are let pass": Fault(
        "formats.table:_style_of",
        "alike is not None",
        "False",
        cells("categories_that_readers_may_confuse_are_refused_for_nothing"),
    ),
    "texts that a container states are numbers": Fault(
        "formats.table:_style_of",
        """
        if is_stated:
            return None
        """,
        "pass",
        cells("texts_that_a_container_states_stay_codes"),
    ),
    "dtypes of the first chunk are public": Fault(
        "formats.table:declare",
        "isinstance(X, TableChunks) and not X.states_dtypes",
        "False",
        cells("first_chunks_say_names_only"),
    ),
    "the width of the longest private label is kept": Fault(
        "formats.table:_keep_plain",
        'isinstance(dtype, np.dtype) and dtype.kind not in "US"',
        "isinstance(dtype, np.dtype)",
        tables("the_width_of_private_labels_does_not_get_out"),
    ),
    "a dtype that a cell has made is refused": Fault(
        "formats.table_encoder:check_dtypes",
        "not are_stated",
        "are_stated",
        table_encoder("texts_in_place_of_values_are_refused_where_the_source_states_them"),
    ),
    "a bad cell makes others missing": Fault(
        "formats.texts:parse_found",
        "type(schema[name])",
        'Date if "Smith" in set(table[name]) else type(schema[name])',
        inference("cells_are_read_one_by_one"),
    ),
    "whole numbers of a chunk of whole numbers are exact": Fault(
        "formats.texts:_parse",
        '_parse_numbers(cells.where(present), style).astype("float64")',
        "_parse_numbers(cells.where(present), style)",
        texts("a_number_is_read_as_it_is_alone"),
    ),
    "nanoseconds narrow the years of other dates": Fault(
        "formats.texts:_parse_dates",
        'cells = cells.str.replace(r"(\\.\\d{6})\\d+(?=$|Z|[+-])", r"\\1", regex=True)',
        "pass",
        texts("a_date_is_read_on_its_own"),
    ),
}

FUNCTION = {
    "one of several conditions is enough": Fault(
        "formats.asked:all_hold", "np.all", "np.any", rules("what_holds_is_told_row_by_row")
    ),
    "a second of a date is a day": Fault(
        "formats.asked:units_a_day",
        '_SECONDS if getattr(kind, "unit", None) == "second" else 1',
        "1",
        rules("dates_count_in_days_whatever_their_unit"),
    ),
    "special values beyond a range are forgotten": Fault(
        "formats.atoms:with_candidates",
        "[*found, *inside, *bounds]",
        "[*inside, *bounds]",
        inference("special_values_are_atoms_beyond_the_range_of_all_others"),
    ),
    "few values have neither knots nor atoms": Fault(
        "formats.atoms:with_atoms",
        "is_few and len(kind.positions) == kind.n_values",
        "is_few",
        atoms("few_values_all_have_knots_and_no_atoms"),
    ),
    "a frequent value is an atom whatever is beside it": Fault(
        "formats.atoms:Counted.find_atoms",
        "self._at_atoms - _MORE_THAN_BESIDE * beside",
        "self._at_atoms",
        atoms("a_value_as_frequent_as_those_beside_it_is_none"),
    ),
    "what was found beyond a range is lost": Fault(
        "formats.atoms:Counted.find_atoms",
        "unit * np.maximum(density[before], density[after + 1]) * ~is_beyond",
        "unit * np.maximum(density[before], density[after + 1])",
        atoms("what_was_found_beyond_the_range_of_all_others_stays"),
    ),
    "the first value is half as wide as others": Fault(
        "formats.atoms:Counted.find_atoms",
        "unit / 2",
        "0",
        atoms("the_first_value_is_as_wide_as_others[3500-atoms0]"),
    ),
    "noise is taken for atoms": Fault(
        "formats.atoms:Counted.find_atoms",
        "find_clear(self.std, len(beside))",
        "find_clear(0, len(beside))",
        atoms("a_value_with_more_than_its_surroundings_is_an_atom[0-0]"),
    ),
    "what is beside a value that many share is one, too": Fault(
        "formats.atoms:Counted.find_shared",
        "np.isclose(np.diff(self.knots), 10.0**-self.kind.decimals)",
        "np.diff(self.knots) > 0",
        atoms("values_beside_it_are_not_taken_for_it"),
    ),
    "values about an atom are lost": Fault(
        "formats.atoms:Counted.without",
        'is_free |= getattr(self.kind, "decimals", 0) is None',
        "pass",
        atoms("values_about_an_atom_that_is_a_knot_are_not_lost"),
    ),
    "what is no atom is lost": Fault(
        "formats.atoms:Counted.without",
        "self._at_atoms[is_left]",
        "0 * self._at_atoms[is_left]",
        atoms("counts_of_what_is_no_atom_go_to_the_knots_around_it"),
    ),
    "values that many share stay among the others": Fault(
        "formats.atoms:Counted.without",
        "self._near * is_free",
        "self._near",
        atoms("a_value_that_holds_the_share_of_a_knot_is_an_atom_too"),
    ),
    "numbers are drawn where they are encoded": Fault(
        "formats.blocks:KnotBlock.__init__",
        "PlaceScale(self.knots, cuts, places)",
        "PlaceScale(self.knots, cuts)",
        evening("cuts_part_what_is_drawn_in_equal_shares"),
    ),
    "an atom is taken for the one before": Fault(
        "formats.blocks:KnotBlock._find",
        "position",
        "position - 1",
        atoms("an_atom_has_all_weight_of_the_cells_that_have_it"),
    ),
    "an atom beyond a bound that is one is clipped": Fault(
        "formats.blocks:KnotBlock._to_values",
        "np.where(np.isin(numbers, self.atoms), numbers, clipped)",
        "clipped",
        atoms("a_number_that_is_an_atom_beyond_a_bound_that_is_one_is_its_own"),
    ),
    "atoms are clipped to the bounds": Fault(
        "formats.blocks:KnotBlock._give",
        "numbers[others == position] = atom",
        "numbers[others == position] = np.clip(atom, *self.knots[[0, -1]])",
        atoms("atoms_alone_are_drawn_as_they_are"),
    ),
    "codes have two digits": Fault(
        "formats.cell_kinds", '"0[0-9]+"', '"0[0-9]"', inference("digits_after_a_zero_are_codes")
    ),
    "what a column is said to be is not checked": Fault(
        "formats.cell_kinds:_choose_kind",
        "not fits",
        "False",
        options("it_stops_where_a_column_is_not_what_it_was_said_to_be"),
    ),
    "fractions are whole numbers of a column of integers": Fault(
        "formats.cell_kinds:_choose_kind",
        'number * (expected != "integer")',
        "number",
        inference("numbers_with_fractions_are_no_integers"),
    ),
    "noise is taken for cells that are lost": Fault(
        "formats.cell_kinds:_share_lost",
        "least * math.sqrt(sum(is_lost))",
        "0",
        inference("cells_that_are_lost_are_warned_of[0-False]"),
    ),
    "others are rounded to atoms": Fault(
        "formats.columns:Number.positions",
        "Values(self.decimals, self.atoms)",
        "Values(self.decimals)",
        atoms("shares_and_means_of_atoms_and_of_others_are_those_of_the_weights[0]"),
    ),
    "a range leaves the atoms in it out": Fault(
        "formats.conditions:_RangeCondition._read",
        "self._atoms |= atoms",
        "self._atoms |= set()",
        conditions("probabilities_and_draws_are_those_of_rows_that_are_drawn[atom]"),
    ),
    "a range of a column lacks its lower bound": Fault(
        "formats.conditions:_RangeCondition._parts",
        "law.below(lower)",
        "law.at_most(lower)",
        conditions("probabilities_and_draws_are_those_of_rows_that_are_drawn[whole]"),
    ),
    "what is asked for goes by distance where values go by cuts": Fault(
        "formats.conditions:_Law.__init__",
        "block.values, block.drawn",
        "block.values, type(block.drawn)(block.knots)",
        conditions("probabilities_and_draws_are_those_of_rows_that_are_drawn[parts]"),
    ),
    "what is asked for goes by where numbers are encoded": Fault(
        "formats.conditions:_Law.__init__",
        "block.values, block.drawn",
        "block.values, block.scale",
        conditions("probabilities_and_draws_are_those_of_rows_that_are_drawn[moved parts]"),
    ),
    "conditions round as if there were no atoms": Fault(
        "formats.conditions:_Law.at_most",
        "self._values.after(values)",
        "values + (0.0 if self._values.unit is None else 1 / self._values.unit)",
        conditions("probabilities_and_draws_are_those_of_rows_that_are_drawn[beside]"),
    ),
    "cells of numbers follow each other": Fault(
        "formats.decimals:_count",
        "is_known & fits",
        "is_known & fits.all()",
        decimals("each_cell_is_counted_on_its_own"),
    ),
    "bounds may be further off than numbers are looked for": Fault(
        "formats.decimals:_refine",
        "refined if _is_within_reach(refined) else kind",
        "refined",
        decimals("bounds_may_be_too_far_from_zero_for_the_decimals"),
    ),
    "noise of counts fills tails": Fault(
        "formats.evening",
        "_MOST = 1.5",
        "_MOST = 15",
        evening("noise_in_tails_moves_next_to_nothing"),
    ),
    "single values are moved": Fault(
        "formats.evening:_Made.find_places",
        "_find_runs(is_clear & (masses > 0))",
        "[(0, len(masses))]",
        evening("a_value_beside_what_is_not_clear_stays_where_it_is"),
    ),
    "orders are not followed from column to column": Fault(
        "formats.feasibility:_check_orders",
        "rule.lower == last and rule not in chain",
        "False",
        rules("rules_that_cannot_be_obeyed_are_refused[circle]"),
    ),
    "a level that is lost is no contradiction": Fault(
        "formats.feasibility:_check_pair",
        "lost or not len(both)",
        "not len(both)",
        rules("small_schemas_are_refused_just_where_brute_force_finds_a_contradiction"),
    ),
    "what only one rule excludes is a contradiction": Fault(
        "formats.feasibility:_codes_in_all",
        "set.intersection",
        "set.union",
        rules("small_schemas_are_refused_just_where_brute_force_finds_a_contradiction"),
    ),
    "impossible pairs are those of one order only": Fault(
        "formats.feasibility:find_impossible",
        "impossible[columns, rows] |= cells.T",
        "pass",
        rules("impossible_pairs_are_those_that_no_row_has_which_obeys"),
    ),
    "a knot at the end of a range is outside of it": Fault(
        "formats.feasibility:_find_sure",
        "(above <= lower) & (block.knots < lower)",
        "block.knots <= lower",
        rules("impossible_pairs_are_those_that_no_row_has_which_obeys"),
    ),
    "formulas take powers": Fault(
        "formats.formulas",
        '{ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}',
        '{ast.Pow: "*", ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}',
        rules("what_is_no_formula_is_refused[a ** 2]"),
    ),
    "formulas take true and false": Fault(
        "formats.formulas:Formula._read",
        "type(node.value) in (int, float)",
        "isinstance(node.value, int | float)",
        rules("what_is_no_formula_is_refused[a + True]"),
    ),
    "a quotient has the range of a product": Fault(
        "formats.formulas:Formula.find_range",
        'sign == "/" and right[0] <= 0 <= right[1]',
        "False",
        rules("the_range_of_a_formula_holds_all_its_values"),
    ),
    "decimals are counted by no event where kinds are found": Fault(
        "formats.inference:SchemaInference.__init__",
        "bool(self._rough) or (is_any and not has_decimals)",
        "bool(self._rough)",
        inference("all_is_released_whatever_is_found"),
    ),
    "blanks are a category of texts that were found": Fault(
        "formats.inference:SchemaInference.run",
        '{c: n for c, n in counts.items() if read_cell(c)[0] != "missing"}',
        "{c: n for c, n in counts.items()}",
        inference("blanks_are_no_category_of_a_column_that_was_found"),
    ),
    "ranges that do not show are not told": Fault(
        "formats.inference:SchemaInference._find_ranges",
        "not is_resolved",
        "False",
        inference("ranges_that_do_not_show_are_told"),
    ),
    "a value is an atom only with the share of few knots": Fault(
        "formats.inference:SchemaInference._find_knots",
        "max(n_knots, N_KNOTS)",
        "n_knots",
        inference("a_value_with_an_eighth_of_all_is_an_atom_with_few_knots"),
    ),
    "as many knots, whatever the noise of tables": Fault(
        "formats.inference:SchemaInference._count_knots",
        "most = min(most, round(math.sqrt(curator.n_rows / (_CELL * noise))))",
        "pass",
        inference("as_many_knots_as_the_noise_of_tables_lets_one_see[2-11]"),
    ),
    "an atom is taken for a tail": Fault(
        "formats.inference:_Ranged.without",
        "np.where(is_near, 0.0, self.counts)",
        "self.counts",
        inference("an_atom_that_only_the_finer_grid_shows_is_no_tail[250]"),
    ),
    "a range is as wide as the windows that show it": Fault(
        "formats.ranges:find_range",
        "sorted((ends.min(), starts.max()))",
        "(starts.min(), ends.max())",
        ranges("a_window_is_no_wider_than_what_it_holds"),
    ),
    "nothing tells values that many share on the finer grid": Fault(
        "formats.ranges:quantile_knots",
        "(whole + masses * (whole.sum() / max(masses.sum(), 1e-300))) / 2",
        "whole",
        inference("a_finer_grid_tells_a_value_that_many_share[250-0.1-100.0]"),
    ),
    "values that many share coarsen the finer grid": Fault(
        "formats.ranges:quantile_knots",
        "masses = (whole + masses * (whole.sum() / max(masses.sum(), 1e-300))) / 2",
        "pass",
        ranges("a_finer_grid_is_fine_where_few_values_share_nearly_all"),
    ),
    "tails have no knots": Fault(
        "formats.ranges:quantile_knots",
        "np.r_[lower, found, upper]",
        "found",
        ranges("long_tails_get_knots_that_grow_apart"),
    ),
    "values of a knot are drawn by cuts beside it": Fault(
        "formats.ranges:find_cuts",
        "at_ends > _FAR_MORE * shares[-1]",
        "at_ends < 0",
        ranges("cuts_do_not_part_the_values_of_a_knot_that_has_far_more[900-0]"),
    ),
    "noise far out makes a tail": Fault(
        "formats.ranges:_denoise", "_WITHIN * std", "0", ranges("noise_is_not_taken_for_a_tail")
    ),
    "a tail that the wide grid shows is cut": Fault(
        "formats.ranges:_count_empty",
        "_WITHIN * std",
        "9 * _WITHIN * std",
        ranges("a_range_is_not_narrowed_past_what_the_wide_grid_shows[30-expected0]"),
    ),
    "noise is taken for a range": Fault(
        "formats.ranges:_find_windows",
        "find_clear(std, n_windows)",
        "std",
        ranges("mere_noise_is_seldom_taken_for_values"),
    ),
    "the last atom is taken for the last knot": Fault(
        "formats.report:describe",
        'knots, atoms = np.split(shares[: row["n_levels"]], [len(kind.positions)])',
        'knots = atoms = shares[: row["n_levels"]]',
        schema_report("atoms_have_shares_of_their_own"),
    ),
    "what is rare is never mended": Fault(
        "formats.rule_draws:RuleDraws.draw",
        "i >= _MENDED",
        "False",
        rules("rules_that_codes_nearly_exclude_are_met_all_the_same"),
    ),
    "conditions are forgotten where a row is drawn again": Fault(
        "formats.rule_draws:RuleDraws.draw_column",
        "self.conditions.get(name, block)",
        "block",
        rules("conditions_and_rules_hold_together"),
    ),
    "each draw of a broken row has another code": Fault(
        "formats.rule_draws:_Group.draw",
        "self._draw_once(weights[left], random_state)",
        "self._draw_once(weights[: len(left)], random_state)",
        rules("rows_are_drawn_again_by_their_own_code"),
    ),
    "rows of earlier pieces are forgotten": Fault(
        "formats.rule_draws:_Group._are_new",
        "pd.concat([self._draws.used.get(rule), keys[obey & ~is_new]])",
        "keys[obey & ~is_new]",
        rules("values_stay_different_from_piece_to_piece_until_there_are_no_more"),
    ),
    "ordered columns are drawn on their own": Fault(
        "formats.rule_draws:_Group._draw_ordered",
        "_break_order(*pair, weights) > _OFTEN",
        "_break_order(*pair, weights) > 2",
        rules("an_order_leaves_the_laws_of_its_columns"),
    ),
    "combinations are equally likely": Fault(
        "formats.rule_draws:_choose",
        "np.prod([p[:, c] for p, c in zip(parts, codes, strict=True)], axis=0)",
        "np.ones((len(weights), len(codes[0])))",
        rules("the_law_under_rules_is_that_of_the_model_given_the_code"),
    ),
    "an implication holds both ways": Fault(
        "formats.rules:Implies.bind",
        "~all_hold(when, values) | all_hold(then, values)",
        "all_hold(when, values) == all_hold(then, values)",
        rules("what_holds_is_told_row_by_row"),
    ),
    "a strict order lets equal values pass": Fault(
        "formats.rules:Ordered.bind",
        "lower >= upper",
        "lower > upper",
        rules("what_holds_is_told_row_by_row"),
    ),
    "missing values break an order": Fault(
        "formats.rules:Ordered.bind",
        "~(lower >= upper if self.strict else lower > upper)",
        "lower < upper if self.strict else lower <= upper",
        rules("missing_values_obey_orders_and_are_no_repetition"),
    ),
    "a drop leaves a formula without an operand": Fault(
        "formats.rules:Derived.restrict",
        "lacking and self.column in names",
        "False",
        rules("columns_that_are_left_keep_what_rules_say_of_them"),
    ),
    "a derived column is not rounded": Fault(
        "formats.rules:Derived.compute",
        "found if decimals is None else np.round(found, decimals) + 0.0",
        "found",
        rules("a_number_may_be_derived_from_dates_and_a_date_from_a_number"),
    ),
    "a derived column leaves its bounds": Fault(
        "formats.rules:Derived.bind",
        "is_same & is_within",
        "is_same",
        rules("derived_columns_stay_within_their_bounds_and_divisions_by_zero_are_missing"),
    ),
    "other kinds lose the rules": Fault(
        "formats.schema:Schema.replace",
        "Schema({**self, **kinds}, self.rules)",
        "Schema({**self, **kinds})",
        rules("columns_that_are_left_keep_what_rules_say_of_them"),
    ),
    "a derived column is learnt": Fault(
        "formats.schema:Schema.learnt",
        "name not in made and not isinstance(kind, Identifier)",
        "not isinstance(kind, Identifier)",
        rules("derived_columns_are_not_learnt"),
    ),
    "levels of the target are not told apart": Fault(
        "formats.table",
        "FEW_LEVELS = 3",
        "FEW_LEVELS = 1",
        by_level("three_way_tables_with_the_target_are_learnt[DPSWFlowSampler]"),
    ),
    "a label apart comes back as an object": Fault(
        "formats.table:TableKind.of",
        '{label: getattr(y, "dtype", None), **head.dtypes}',
        "{**head.dtypes}",
        tables("a_label_apart_keeps_its_dtype"),
    ),
    "knots far out are drawn from noise": Fault(
        "formats.table:TableFormat.is_spare",
        "spare[where.start : where.start + len(is_far)] = is_far",
        "spare[where.start : where.start + len(is_far)] = False",
        atoms("knots_far_out_may_be_left_empty_but_no_atom_is"),
    ),
    "each part of a sample has the same identifiers": Fault(
        "formats.table:TableFormat.sample",
        "go_on(rows, self.schema, 0)",
        "rows",
        "tests/generators/test_rules.py::test_rows_that_are_asked_for_obey_too",
    ),
    "where= looks at the first condition only": Fault(
        "formats.table:_generate_where",
        "conditions.values()",
        "list(conditions.values())[:1]",
        tables("where_looks_at_all_conditions"),
    ),
    "True in a column of objects is a number": Fault(
        "formats.texts:read_cell",
        '"boolean", bool(cell)',
        '"whole", float(cell)',
        tables("stock_objects_come_back_as_what_they_are[bool, None]"),
    ),
    "a declared level NA is missing": Fault(
        "formats.texts:_parse",
        "levels.get(c, None if c in MISSING_TEXTS else c)",
        "None if c in MISSING_TEXTS else levels.get(c, c)",
        texts("declared_levels_are_no_missing_values"),
    ),
    "a point among commas for decimals is one": Fault(
        "formats.texts:_parse_numbers",
        "not style.has_python_numbers",
        "False",
        texts("declared_columns_are_read_in_the_style_of_the_file"),
    ),
    "whole numbers are rounded to the nearest": Fault(
        "formats.values:Values.round_at_random",
        "random_state.uniform(size=len(numbers)) * (last - first) < places - first",
        "2 * (places - first) >= last - first",
        table_encoder("numbers_are_rounded_at_random_so_that_weights_stay"),
    ),
    "between values beside an atom others are rounded to one side": Fault(
        "formats.values:Values.round_at_random",
        "last - first",
        "scale.find_places((whole + 1) / self.unit) - first",
        atoms("shares_and_means_of_atoms_and_of_others_are_those_of_the_weights[1]"),
    ),
    "symlog knots are those of log": Fault(
        "formats.values:place_knots",
        'scale == "symlog"',
        'scale == "symlog" and lower < -upper',
        schema("symlog_knots_are_even_on_either_side_of_zero"),
    ),
}
