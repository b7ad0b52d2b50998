"""Faults in mechanisms."""

from ..fault import Fault
from ..ids import (
    aggregates,
    by_level,
    common,
    counts,
    devices,
    engines,
    fuzz,
    gradients,
    histories,
    independent,
    ldp_entropic_gan,
    level_counts,
    local,
    mechanisms_rounding,
    multi_way,
    noise,
    persons,
    rounding,
    sampled,
    samplers,
    secrets,
    sums,
    two_way,
)

PRIVACY = {
    "rows of a person weigh the root of their share": Fault(
        "histories.mechanism:HistorySizes.list_rows",
        "1 / n_rows[person]",
        "1 / n_rows[person] ** 0.5",
        histories("sensitivity[row tables]"),
    ),
    "rows of a person weigh 1": Fault(
        "mechanisms.two_way:TablesMechanism._add_products",
        "rows if shares is None else to_integers(basis, shares)",
        "rows",
        histories("sensitivity[row tables]"),
    ),
    "rows of a person with their person weigh 1": Fault(
        "histories.mechanism:LinkTablesMechanism._add_products",
        "to_grid(w * s, scale)",
        "to_grid(w, scale)",
        histories("sensitivity[person-row tables]"),
    ),
    "steps of a person weigh the root of their share": Fault(
        "histories.mechanism:HistorySizes.list_steps",
        "1 / n_steps[is_step.nonzero()[:, 0]]",
        "1 / n_steps[is_step.nonzero()[:, 0]] ** 0.5",
        histories("sensitivity[step tables]"),
    ),
    "a row beyond the number counts": Fault(
        "histories.mechanism:HistorySizes.list_rows",
        "numbers < n_rows[:, None]",
        "numbers <= n_rows[:, None]",
        histories("sensitivity[row tables]"),
    ),
    "as many links as columns of one side": Fault(
        "histories.mechanism:LinkTablesMechanism.records",
        "math.sqrt(len(self.left) * len(self.right))",
        "math.sqrt(len(self.left))",
        histories("sensitivity[step tables]"),
    ),
    "absent persons are in links": Fault(
        "histories.mechanism:LinkTablesMechanism._add_products",
        "codes[membership.sum(1) > 0]",
        "codes",
        histories("releases_without_noise[step tables]"),
    ),
    "links are rounded to nearest": Fault(
        "histories.mechanism:LinkTablesMechanism._add_products",
        """
        left = HatBasis(left, self.left).to_dense(lambda w, s=shares: to_grid(w * s, scale))
        right = HatBasis(right, self.right).to_dense(lambda w: to_grid(w, scale))
        """,
        """
        scale = scale * (1 - 1e-5)
        left = HatBasis(left, self.left).to_dense(lambda w, s=shares: (w * s * scale).round())
        right = HatBasis(right, self.right).to_dense(lambda w: (w * scale).round())
        """,
        rounding("step tables-10000-20"),
    ),
    "links have the noise of one": Fault(
        "histories.mechanism:LinkTablesMechanism.postprocess",
        "LinkTables(noisy * self.records, measured.context * self.records)",
        "LinkTables(noisy * self.records, measured.context)",
        histories(
            "cells_of_all_tables_have_the_noise_of_the_budget_split_by_their_number[zero_out]"
        ),
    ),
    "the tail is cut off": Fault(
        "mechanisms.exact_samplers:RoundedSampler._draw_in_tail",
        "_digit(1, digits)",
        "strip < 8 and _digit(1, digits)",
        samplers("there_is_no_last_value"),
    ),
    "digits that were looked at are drawn anew": Fault(
        "mechanisms.exact_samplers:RoundedSampler._decide",
        "longer[i] = x",
        "longer[i] = (x[0] >> 64, x[1] - 64) if x[1] > 64 else x",
        samplers("digits_that_were_looked_at_are_kept"),
    ),
    "a point on the curve is taken for one below it": Fault(
        "mechanisms.exact_samplers:RoundedSampler._decide",
        "y_digits + 1",
        "y_digits",
        samplers("every_string_of_digits[1-1.7-3-14]"),
    ),
    "noise is rounded before its digits are known": Fault(
        "mechanisms.exact_samplers:RoundedSampler._round_one",
        "high <= 2 * unit * (rounded + 1)",
        "True",
        samplers("every_string_of_digits[1-1.7-3-14]"),
    ),
    "coins are rounded": Fault(
        "mechanisms.exact_samplers:toss_coins",
        "rest > 0 and len(undecided)",
        "False",
        samplers("coins_have_just_their_probability"),
    ),
    "layers after the aggregate are trained without noise": Fault(
        "mechanisms.aggregates:ForwardAggregateMechanism.query_batch",
        "self._read(noisy, std)",
        "self._read(sums.cpu().numpy() / scale, std)",
        aggregates("cotangents_are_taken_at_the_noisy_sums"),
    ),
    "cotangents are taken at sums without noise": Fault(
        "mechanisms.aggregates:ForwardAggregateMechanism.query_batch",
        "self.cotangent(aggregate)",
        "self.cotangent(self._read(sums.cpu().numpy() / scale, std))",
        aggregates("cotangents_are_taken_at_the_noisy_sums"),
    ),
    "products cost nothing": Fault(
        "mechanisms.aggregates:ForwardAggregateMechanism.query_batch",
        "math.sqrt(1 - self.share)",
        "1.0",
        aggregates("a_record_adds_one_vector_of_norm_one_to_both_sums"),
    ),
    "features are rounded to nearest": Fault(
        "mechanisms.aggregates:ForwardAggregateMechanism.query_batch",
        "to_grid(self._join(features), scale)",
        "(self._join(features) * ((1 - 1e-5) * scale)).round().double()",
        rounding("features in float32-100003-20"),
    ),
    "products are rounded to nearest": Fault(
        "mechanisms.sampled:sum_products",
        "to_grid(bounded_rows(products, radius, weight), scale)",
        "(bounded_rows(products, radius, weight) * ((1 - 1e-5) * scale)).round().double()",
        rounding("products in float32-100003-20"),
    ),
    "two sums over one sample are booked as two events": Fault(
        "mechanisms.aggregates:ForwardAggregateMechanism._join",
        "math.sqrt(self.share)",
        "1.0",
        aggregates("both_sums_together_move_by_at_most_what_is_stated"),
    ),
    "noise over √2": Fault(
        "mechanisms.base:Measurement.grid_std",
        "self.std * self.scale",
        "self.std * self.scale / math.sqrt(2)",
        common("check_noise"),
    ),
    "persons in partitions move sums as records do": Fault(
        "mechanisms.base:Mechanism._find_std",
        "unit_sensitivity(self.sensitivity, relation, source.max_rows)",
        "unit_sensitivity(self.sensitivity, relation)",
        engines("rows_of_a_person_are_bounded_across_partitions[stops0-3]"),
    ),
    "classes of sliced rows share their noise": Fault(
        "mechanisms.base:Mechanism.run",
        "noisy = measured.add_noise(noise)",
        """
        noisy = measured.add_noise(noise)
        if self.name == "sliced rows":
            exact = measured.exact / measured.scale
            noisy = exact + (noisy - exact)[:1]
        """,
        independent("sliced rows"),
    ),
    "classes of aggregates share their noise": Fault(
        "mechanisms.base:Mechanism.run",
        "noisy = measured.add_noise(noise)",
        """
        noisy = measured.add_noise(noise)
        if self.name == "forward aggregate":
            exact = measured.exact / measured.scale
            noisy = exact + (noisy - exact)[:1]
        """,
        independent("forward aggregate"),
    ),
    "no noise": Fault(
        "mechanisms.base:Measurement.add_noise",
        "noisy += self.exact",
        "noisy = self.exact",
        common("check_noise"),
    ),
    "infinite numbers are large ones on the grid": Fault(
        "mechanisms.base:to_grid",
        "(vectors * (scale * (1 - MARGIN))).trunc_().nan_to_num_(0.0, 0.0, 0.0)",
        "(vectors * (scale * (1 - MARGIN))).trunc_().nan_to_num_(0.0)",
        mechanisms_rounding("missing_numbers_are_0_on_the_grid"),
    ),
    "vectors are rounded to nearest": Fault(
        "mechanisms.base:to_grid",
        "(vectors * (scale * (1 - MARGIN))).trunc_",
        "(vectors * (scale * (1 - MARGIN))).round_",
        rounding("Gaussian sum-1000000-20"),
    ),
    "rows are clipped by the largest of them": Fault(
        "data.rows:clip_rows",
        "sum_rows(rows.square())",
        "sum_rows(rows.square()).max()",
        common("check_neighbours"),
    ),
    "the noise of gradients is Δσ": Fault(
        "mechanisms.gradients:ClippedGradientMechanism.sensitivity_of",
        "2 * grad_clip",
        "grad_clip",
        gradients("noise_is_the_multiplier_times_twice_the_clip"),
    ),
    "a generated batch of the sample's size": Fault(
        "mechanisms.gradients:ClippedGradientMechanism.query_batch",
        "Measurement(exact, scale, std)",
        "Measurement(exact[: int(joined.sum())], scale, std)",
        gradients("shape_and_noise_do_not_tell_how_many_joined"),
    ),
    "gradients are rounded to nearest": Fault(
        "mechanisms.gradients:ClippedGradientMechanism.query_batch",
        "to_grid(clip_whole(gradient, self.grad_clip), scale)",
        "(clip_whole(gradient, self.grad_clip) * ((1 - 1e-5) * scale)).round()",
        rounding("clipped gradient-100003-20"),
    ),
    "gradients are clipped row by row": Fault(
        "mechanisms.gradients:clip_whole",
        "torch.linalg.vector_norm(values / largest)",
        "torch.linalg.vector_norm(values / largest, dim=-1, keepdim=True)",
        gradients("neighbours_are_at_most_twice_the_clip_apart"),
    ),
    "the radius for the diameter": Fault(
        "mechanisms.local:LocalRowsMechanism",
        '{"replace_one": 2.0}',
        '{"replace_one": 1.0}',
        local("noise_is_calibrated_to_the_diameter"),
    ),
    "rows without noise are taken for noised ones": Fault(
        "generators._ldp_entropic_gan:LDPEntropicGAN._fit_privatized",
        "not LocalRowsMechanism(format.p).are_noised(Y, format.radius, plan.events[0])",
        "False",
        ldp_entropic_gan("rows_without_noise_are_refused[params0-laplace-numbers]"),
    ),
    "rows on a part of the grid are taken for noised ones": Fault(
        "mechanisms.local:LocalRowsMechanism.are_noised",
        "found > p and are_so.size * divergence > _CERTAINTY",
        "False",
        ldp_entropic_gan("rows_without_noise_are_refused[params1-laplace-whole]"),
    ),
    "local rows are rounded to nearest": Fault(
        "mechanisms.local:LocalRowsMechanism.query",
        "to_grid(rows, scale)",
        "(rows * ((1 - 1e-5) * scale)).round()",
        rounding("local rows, L1-10000-20"),
    ),
    "local noise is used again for each block": Fault(
        "mechanisms.base:Measurement.add_noise",
        "parts = [draw(std[start : start + size]) for start in range(0, len(std) or 1, size)]",
        """
        part = draw(std[:size])
        parts = [part[: len(std) - start] for start in range(0, len(std) or 1, size)]
        """,
        local("no_row_has_the_noise_of_another[1]"),
    ),
    "randomised response is rounded to the unsafe side": Fault(
        "mechanisms.local:_response_event",
        "1 + MARGIN",
        "1 - MARGIN",
        local("randomised_response_has_the_stated_ratio"),
    ),
    "the shape follows the size of a Poisson sample": Fault(
        "mechanisms.sampled:SampledMechanism.query",
        """
        n_slots = count_slots(n_records, rate)
        positions = noise.poisson_sample(n_records, rate)
        """,
        """
        positions = noise.poisson_sample(n_records, rate)
        n_slots = max(1, len(positions))
        """,
        sampled("shape_and_noise_do_not_tell_how_many_joined"),
    ),
    "fixed samples for Poisson samples": Fault(
        "mechanisms.sampled:SampledMechanism.query",
        "noise.poisson_sample(n_records, rate)",
        "noise.fixed_sample(n_records, round(rate * n_records))",
        sampled("poisson_samples_are_independent_coins"),
    ),
    "samples that are too large are cut": Fault(
        "mechanisms.sampled:SampledMechanism.query",
        "positions[:0]",
        "positions[:n_slots]",
        sampled("more_records_than_slots_leave_noise_only"),
    ),
    "null records take no slot": Fault(
        "mechanisms.sampled:SampledMechanism.query",
        "positions = noise.poisson_sample(n_records, rate)",
        """
        positions = noise.poisson_sample(n_records, rate)
        positions = positions[source.take(positions)[1].any(1).numpy()]
        """,
        sampled("a_null_record_takes_a_slot_and_adds_nothing"),
    ),
    "sensitivity of sampled rows is understated": Fault(
        "mechanisms.sampled:SlicedRowsMechanism",
        '{"zero_out": 1.0, "replace_one": 2.0}',
        '{"zero_out": 1.0, "replace_one": 1.0}',
        sampled("replacing_a_record_in_a_fixed_sample_costs_what_is_certified"),
    ),
    "joined rows are divided by the largest norm of the batch": Fault(
        "mechanisms.sampled:SlicedRowsMechanism.join",
        "clip_rows(rows, 1.0)",
        "rows / torch.linalg.vector_norm(rows, dim=1).max().clamp(min=1.0)",
        sampled("no_row_looks_at_another_when_joined"),
    ),
    "slots without a record have no noise": Fault(
        "mechanisms.sampled:SlicedRowsMechanism.query_batch",
        "Measurement(exact, scale, std, context=directions)",
        "Measurement(exact, scale, std * exact.any((0, 1)), context=directions)",
        sampled("an_empty_sample_releases_noise_and_is_charged"),
    ),
    "public maps see the size of a sample": Fault(
        "mechanisms.sampled:SlicedRowsMechanism.query_batch",
        "self.encode.on(rows, width=self.n_columns)",
        "self.encode._function(rows[membership.any(1)]).new_zeros(rows.shape)",
        sampled("public_maps_see_as_many_rows_however_many_joined"),
    ),
    "directions are used again": Fault(
        "mechanisms.sampled:SlicedRowsMechanism.query_batch",
        "noise.public_generator()",
        "np.random.default_rng(0)",
        sampled("directions_are_fresh_at_each_step"),
    ),
    "slices are rounded to nearest": Fault(
        "mechanisms.sampled:SlicedRowsMechanism.query_batch",
        "to_grid(directions.T.to(joined.device) @ joined.T, scale)",
        "(directions.T @ joined.T * ((1 - 1e-5) * scale)).round()",
        mechanisms_rounding("projections_are_no_longer_than_before[10000-2]"),
    ),
    "products are not clipped": Fault(
        "mechanisms.sampled:bounded_rows",
        "weight / norms.clamp(min=radius)",
        "weight / radius + 0 * norms",
        aggregates("both_sums_together_move_by_at_most_what_is_stated"),
    ),
    "sensitivity of non-negative sums is understated": Fault(
        "mechanisms.sums:WeightSumMechanism",
        '{"zero_out": 1.0, "replace_one": math.sqrt(2)}',
        '{"zero_out": math.sqrt(0.5), "replace_one": math.sqrt(2)}',
        sums("zero_out_sensitivity_is_a_bound_and_is_reached[sum of weights]"),
    ),
    "negative numbers are summed": Fault(
        "mechanisms.sums:WeightSumMechanism._block_sum",
        "rows.double().clamp(min=0)",
        "rows.double()",
        sums("replace_one_sensitivity_is_a_bound_and_is_approached[sum of weights]"),
    ),
    "sums are rounded to nearest": Fault(
        "mechanisms.sums:GaussianSumMechanism._block_sum",
        "to_grid(clip_rows(vectors, self.radius), scale)",
        "(clip_rows(vectors, self.radius) * (1 - MARGIN) * scale).round()",
        rounding("Gaussian sum of radius 3-100003-20"),
    ),
    "weights are rounded to nearest": Fault(
        "mechanisms.sums:WeightSumMechanism._block_sum",
        "to_grid(rows.double().clamp(min=0), scale)",
        "(rows.double().clamp(min=0) * (1 - MARGIN) * scale).round()",
        rounding("sum of weights-100003-20"),
    ),
    "counts of levels are not shared by the columns": Fault(
        "mechanisms.sums:LevelCountsMechanism._add_up",
        "weights / math.sqrt(len(self.sizes))",
        "weights",
        level_counts("sums_are_those_of_encoded_rows"),
    ),
    "columns share counts of levels": Fault(
        "mechanisms.sums:LevelCountsMechanism.__init__",
        "sum(map(len, counted)) > len(set().union(*counted))",
        "False",
        level_counts("columns_share_no_counts"),
    ),
    "levels that are not counted are": Fault(
        "mechanisms.sums:LevelCountsMechanism._add_up",
        "self.places[levels.flatten().cpu()] % len(total)",
        "self.places[levels.flatten().cpu()].clamp(min=0)",
        level_counts("levels_share_counts_within_a_column"),
    ),
    "counts of levels are rounded to nearest": Fault(
        "mechanisms.sums:LevelCountsMechanism._add_up",
        "to_grid(weights / math.sqrt(len(self.sizes)), scale).long()",
        "(weights / math.sqrt(len(self.sizes)) * scale).round().long()",
        level_counts("no_record_adds_more_than_its_bound"),
    ),
    "sensitivity of the moments is understated": Fault(
        "mechanisms.sums:CovarianceMechanism",
        "math.sqrt(2)",
        "1.0",
        common("check_neighbours"),
    ),
    "second moments are rounded to nearest": Fault(
        "mechanisms.sums:CovarianceMechanism._block_sum",
        "to_grid(rows, half)",
        "(rows * (1 - MARGIN) * half).round()",
        rounding("second moments-1000000-20"),
    ),
    "numbers without noise": Fault(
        "mechanisms.sums:CovarianceMechanism.postprocess",
        "np.triu(noisy) + np.triu(noisy, 1).T",
        "noisy",
        common("check_noise"),
    ),
    "sensitivity of the sketch is understated": Fault(
        "mechanisms.sums:SliceSketchMechanism.sensitivity_of",
        "slice_diameter(n_harmonics) * math.sqrt(k)",
        "math.sqrt(k)",
        common("check_neighbours", "sliced"),
    ),
    "sensitivity of label flips is understated": Fault(
        "mechanisms.sums:SliceSketchMechanism.sensitivity_of",
        "max(slice_diameter(n_harmonics) * math.sqrt(k), across)",
        "math.sqrt(k + c2)",
        common("check_neighbours", "sliced"),
    ),
    "sums of floats are too long to be exact": Fault(
        "mechanisms.sums:SliceSketchMechanism._sum_by_table",
        "zip(angles.split(_ROWS), membership.split(_ROWS), strict=True)",
        "[(angles, membership)]",
        sums("a_table_of_all_angles_gives_the_same_sums"),
    ),
    "absent rows are in the sums": Fault(
        "mechanisms.sums:SliceSketchMechanism._sum_rows",
        "order[: int(membership.sum())]",
        "order[: len(order)]",
        sums("a_table_of_all_angles_gives_the_same_sums"),
    ),
    "truncation moves differences of harmonics": Fault(
        "mechanisms.sums:SliceSketchMechanism._values",
        "scale * (1 - MARGIN) * self._shortening(scale)",
        "scale * (1 - MARGIN)",
        sums("truncation_does_not_move_two_rows_further_apart"),
    ),
    "a threshold is a little lower": Fault(
        "mechanisms.categories:CategoryCountsMechanism.query",
        "most * weights + 1 + math.ceil(std * quantile * (1 + 1e-6))",
        "0 * weights + math.ceil(std * quantile * (1 + 1e-6))",
        counts("noise_that_passes_the_threshold_alone_is_as_rare_as_stated"),
    ),
    "the threshold is for one column": Fault(
        "mechanisms.categories:CategoryCountsMechanism.query",
        "event.delta / (most * len(self.columns))",
        "event.delta * 8",
        counts("categories_of_one_record_pass_as_rarely_as_stated"),
    ),
    "the threshold is that of one row": Fault(
        "mechanisms.categories:CategoryCountsMechanism.query",
        "most * weights + 1",
        "weights + 1",
        persons("cells_of_one_person_alone_pass_as_rarely_as_stated[6-columns0-zero_out]"),
    ),
    "a frequent value is named by other cells": Fault(
        "data.names:_count_names",
        "counts[name_cell(cell)] += size",
        "counts[name_cell(cells[0])] += size",
        counts("a_record_adds_one_to_one_count_of_a_column"),
    ),
    "frequent values pass without a threshold": Fault(
        "mechanisms.categories:CategoryCountsMechanism.postprocess",
        "count > threshold",
        "count > threshold or key == '-1'",
        counts("frequent_values_pass_a_threshold_of_their_own"),
    ),
    "weights of counts are free": Fault(
        "mechanisms.categories:CategoryCountsMechanism.sensitivity",
        "sum(weight**2 for weight in self.weights.values())",
        "len(self.weights)",
        counts("weights_share_the_noise"),
    ),
    "a weighted count of one record is below the threshold of others": Fault(
        "mechanisms.categories:CategoryCountsMechanism.query",
        "most * weights + 1",
        "0 * weights + most + 1",
        counts("a_heavy_category_of_one_record_passes_as_rarely_as_stated"),
    ),
    "a person holds one category of a column": Fault(
        "mechanisms.categories:CategoryCountsMechanism.query",
        "most * len(self.columns)",
        "len(self.columns)",
        persons("cells_of_one_person_alone_pass_as_rarely_as_stated[6-columns1-zero_out]"),
    ),
    "categories that one record holds are shown": Fault(
        "mechanisms.categories:CategoryCountsMechanism.postprocess",
        "count > threshold",
        "count > 0",
        counts("categories_of_one_record_pass_as_rarely_as_stated"),
    ),
    "sensitivity of tables is understated": Fault(
        "mechanisms.two_way:TablesMechanism",
        '{"zero_out": 1.0, "replace_one": math.sqrt(2)}',
        '{"zero_out": 1.0, "replace_one": 1.0}',
        two_way("sensitivity"),
    ),
    "one-way tables are free": Fault(
        "mechanisms.two_way:TablesMechanism.records",
        "m * (m - 1 + self.weight**2)",
        "m * (m - 1) or 1",
        two_way("sensitivity"),
    ),
    "a column that is left out is counted": Fault(
        "mechanisms.two_way:TablesMechanism.records",
        "len(self.sizes)",
        "len(self._all_sizes)",
        two_way("noise"),
    ),
    "two-way tables count once": Fault(
        "mechanisms.two_way:TablesMechanism",
        "divisor = math.sqrt(2)",
        "divisor = 2.0",
        two_way("noise"),
    ),
    "absent records are in tables": Fault(
        "mechanisms.two_way:TablesMechanism._add_products",
        "codes[membership.sum(1) > 0]",
        "codes",
        two_way("an_absent_record_adds_nothing"),
    ),
    "tables have the scale of single rows": Fault(
        "mechanisms.two_way:TablesMechanism._add_products",
        "half / math.sqrt(self.records)",
        "half",
        two_way("sensitivity"),
    ),
    "every level has the records of all": Fault(
        "mechanisms.two_way:TablesMechanism._add_products",
        "to_integers(basis, share[has, None])",
        "to_integers(basis)",
        two_way("sensitivity_by_level"),
    ),
    "two-way tables are rounded to nearest": Fault(
        "mechanisms.two_way:TablesMechanism._add_products",
        "to_grid(weights * share, scale)",
        "(weights * share * ((1 - 1e-5) * scale)).round()",
        rounding("two-way tables-1000000-20"),
    ),
    "one-way tables have the weight of two-way tables": Fault(
        "mechanisms.two_way:TablesMechanism._add",
        "2 * self.records",
        "self.records",
        two_way("sensitivity"),
    ),
    "levels share their noise": Fault(
        "mechanisms.two_way:TablesMechanism.postprocess",
        "noisy *= self.records",
        """
        noisy = noisy[:1].repeat(len(noisy), axis=0)
        noisy *= self.records
        """,
        independent("tables by level"),
    ),
    "maps move tables by more than is claimed": Fault(
        "mechanisms.multi_way:MultiWayMechanism.__init__",
        "groups.abs().sum(1) > 1",
        "groups.sum(1) > 2",
        multi_way("maps_that_would_move_sums_further"),
    ),
    "signs are no further apart than counts": Fault(
        "mechanisms.multi_way:MultiWayMechanism.sensitivity_of",
        "2.0 if is_signed else math.sqrt(2)",
        "math.sqrt(2)",
        multi_way("signs_of_one_subset_reach_the_bound"),
    ),
    "maps without signs hide those with signs": Fault(
        "mechanisms.multi_way:MultiWayMechanism.sensitivity",
        "any",
        "all",
        multi_way("sensitivity[signs first-levels]"),
    ),
    "multi-way tables are as many as one": Fault(
        "mechanisms.multi_way:MultiWayMechanism._add_products",
        "divisor = math.sqrt(len(self.products))",
        "divisor = len(self.products) ** 0.25",
        multi_way("sensitivity[levels-levels]"),
    ),
    "absent records are in multi-way tables": Fault(
        "mechanisms.multi_way:MultiWayMechanism._add_products",
        "self.refinement.refine(codes[membership.sum(1) > 0])",
        "self.refinement.refine(codes)",
        multi_way("releases_without_noise[levels]"),
    ),
    "multi-way tables are rounded to nearest": Fault(
        "mechanisms.multi_way:MultiWayMechanism._add_products",
        "to_grid(multiply(first) / divisor, half)",
        "(multiply(first) / divisor * ((1 - 1e-5) * half)).round()",
        rounding("multi-way tables-10000-20"),
    ),
    "a key of 32 bits": Fault(
        "mechanisms.noise:NoiseSource.__init__",
        "secrets.randbits(256)",
        "secrets.randbits(32)",
        noise("keys_have_256_bits"),
    ),
    "noise follows a global seed": Fault(
        "mechanisms.noise:NoiseSource.__init__",
        "secrets.randbits(256)",
        "int(np.random.randint(2**31))",
        common("check_seeds", "sliced"),
    ),
    "a key is stretched": Fault(
        "mechanisms.noise:NoiseSource.__init__",
        "secrets.randbits(256)",
        'int.from_bytes(__import__("hashlib").sha256(secrets.token_bytes(4)).digest())',
        secrets("keys_are_what_the_operating_system_gave"),
    ),
    "a key follows from the process": Fault(
        "mechanisms.noise:NoiseSource.__init__",
        "secrets.randbits(256)",
        'int.from_bytes(__import__("hashlib").sha256(b"%d" % os.getpid()).digest())',
        secrets("each_bit_is_drawn_whatever_the_time_the_process_and_seeds_are[key of the noise]"),
    ),
    "noise has fewer rounds": Fault(
        "mechanisms.noise:NoiseSource.__init__",
        "ChaCha(key=key, rounds=20)",
        "ChaCha(key=key, rounds=8)",
        secrets("streams_are_those_of_chacha20"),
    ),
    "Gaussian noise is drawn in doubles": Fault(
        "mechanisms.noise:NoiseSource._rounded",
        "return rounded_sampler(power).draw(scale, self._digits)",
        """
        if power == 2:
            self._digits(1, scale.size)
            normal = self._draw().standard_normal(scale.shape)
            return np.rint(scale * normal).astype(np.int64)
        return rounded_sampler(power).draw(scale, self._digits)
        """,
        noise("noise_is_what_its_digits_say[rounded_gaussian]"),
    ),
    "rows of persons are hashed with 32 bits": Fault(
        "mechanisms.noise:NoiseSource.key",
        "self._draw().bytes(32)",
        "self._draw().bytes(4) * 8",
        secrets(
            "each_bit_is_drawn_whatever_the_time_the_process_and_seeds_are"
            "[key of the hashes of persons]"
        ),
    ),
    "the global generator is seeded": Fault(
        "mechanisms.noise:NoiseSource.torch_generator", "torch.Generator()", "torch", fuzz("fits")
    ),
    "codes below the first level have weights beyond 1": Fault(
        "mechanisms.codes:HatBasis.__init__",
        """
        codes = codes.clamp(min=0).minimum(last)
        floor = codes.floor()
        """,
        """
        codes = codes.minimum(last)
        floor = codes.clamp(min=0).floor()
        """,
        two_way("sensitivity"),
    ),
    "one product of a subset has no bound": Fault(
        "mechanisms.multi_way:MultiWayMechanism.postprocess",
        "std * records",
        "std",
        multi_way("noise_is_that_of_all_tables_together"),
    ),
    "a code weighs a level beyond its neighbours": Fault(
        "mechanisms.codes:HatBasis.join",
        "floor + 1",
        "floor + 2",
        multi_way("releases_without_noise[levels]"),
    ),
}

FUNCTION = {
    "an accelerator waits for norms": Fault(
        "data.rows:clip_rows",
        "rows.device.type == 'cpu' and (norms == radius).all()",
        "(norms == radius).all()",
        devices("steps_after_a_release_wait_for_nothing[flow]"),
    ),
    "records are counted by all tables alike": Fault(
        "mechanisms.two_way:Tables.count_records",
        "precisions = 1 / np.asarray(self.sizes)",
        "precisions = np.ones(len(self.sizes))",
        two_way("records_are_counted_with_the_least_noise_of_all_tables[sizes3]"),
    ),
    "one-way tables do not count records": Fault(
        "mechanisms.two_way:Tables.count_records",
        "total = n_pairs + self.weight**2 * precisions.sum() / 2",
        "total = n_pairs",
        two_way("records_are_counted_with_the_least_noise_of_all_tables[sizes3]"),
    ),
    "records that break a rule are not counted": Fault(
        "mechanisms.two_way:Tables.without_impossible",
        "replace(self, cells=np.where(cells, 0.0, self.cells), "
        "columns=np.where(alone, 0.0, self.columns), counted=self.count_records())",
        "replace(self, cells=np.where(cells, 0.0, self.cells), "
        "columns=np.where(alone, 0.0, self.columns))",
        two_way("the_count_of_records_does_not_lack_those_that_break_a_rule"),
    ),
    "what is impossible for a level keeps its noise": Fault(
        "mechanisms.two_way:Tables.without_impossible",
        "alone = impossible[self.by][:, kept]",
        "pass",
        by_level("impossible_cells_are_put_to_zero[1]"),
    ),
    "multi-way tables of other columns": Fault(
        "mechanisms.multi_way:MultiWayMechanism._match_parts",
        "_key(last)",
        "last[0][0]",
        multi_way("releases_without_noise[signs]"),
    ),
}
