"""Faults in arrays."""

from ..fault import Fault
from ..ids import arrays, arrays_inference, components, few_rows, rehearsal

PRIVACY = {
    "an encoder may mix rows": Fault(
        "planning.arrays:try_encoder",
        "codes.shape != expected.shape or not _are_close(codes, expected)",
        "False",
        rehearsal("an_encoder_that_fails_is_refused_before_a_release[flow-mixes rows]"),
    ),
    "an encoder may be random": Fault(
        "planning.arrays:_are_close",
        "1e-4 * max(1e-300, np.abs(expected).max())",
        "1e4 * max(1e-300, np.abs(expected).max())",
        rehearsal("an_encoder_that_fails_is_refused_before_a_release[sketch-is random]"),
    ),
    "windows are as wide as images": Fault(
        "arrays.images:_draw_block",
        "side * _NARROWEST * (_WIDEST / _NARROWEST) ** sizes",
        "side * 9.0**sizes",
        components("windows_are_small_and_everywhere"),
    ),
    "windows are in the middle": Fault(
        "arrays.images:_draw_block",
        "(side - 1) * places[..., None]",
        "(side - 1) * 0.5 * places[..., None].ceil()",
        components("windows_are_small_and_everywhere"),
    ),
    "any square number of columns is images": Fault(
        "arrays.box:BoxFormat.are_images",
        "find_shape(self.n_features, (1, 3))[1] >= _SIDE_OF_IMAGES",
        "find_shape(self.n_features, (1, 3))[1] > 1",
        few_rows("components_of_images_are_sought_however_few_rows_there_are"),
    ),
    "whatever has as many columns is images": Fault(
        "arrays.box:BoxFormat.are_images",
        "is_square and (lower == 0).all() and (upper == upper[0]).all()",
        "is_square",
        few_rows("components_of_images_are_sought_however_few_rows_there_are"),
    ),
    "a number beside images is no column": Fault(
        "arrays.box:BoxFormat.are_images",
        "self.encoder is not None or self.has_number or self.bounds is None",
        "self.encoder is not None or self.bounds is None",
        few_rows("images_with_a_number_beside_them_are_rows_of_a_table"),
    ),
    "windows are of what an encoder gives": Fault(
        "arrays.box:BoxFormat.draw_windows",
        'getattr(self.encoder, "maps_windows", self.encoder is None)',
        "True",
        components("other_encoders_show_no_windows"),
    ),
    "windows do not go through low frequencies": Fault(
        "arrays.box:BoxFormat.draw_windows",
        "torch.as_tensor(seen)",
        "windows[:, : self.n_columns]",
        components("windows_go_through_low_frequencies"),
    ),
    "rows without bounds are images": Fault(
        "arrays.discovery:OpenBoxFormat.are_images",
        "not self.opens_X and super().are_images",
        "super().are_images",
        few_rows("components_of_images_are_sought_however_few_rows_there_are"),
    ),
    "ranges of columns weigh more than is stated": Fault(
        "arrays.discovery:OpenBoxFormat.encode",
        "knot_weights(numbers, self.knots) / math.sqrt(numbers.shape[1])",
        "knot_weights(numbers, self.knots)",
        arrays_inference("a_record_adds_weights_of_norm_one_at_most[True-4]"),
    ),
}

FUNCTION = {
    "encoders are tried by the private rows": Fault(
        "planning.fits:Planning._make_format",
        "public_encoder is not None",
        "False",
        rehearsal(
            "an_encoder_that_fails_is_refused_before_a_release[gradients-fails for all rows]"
        ),
    ),
    "an inverse is not tried": Fault(
        "planning.arrays:try_encoder",
        "(codes[:1], codes)",
        "()",
        rehearsal("an_encoder_that_fails_is_refused_before_a_release[flow-an inverse of NaN]"),
    ),
    "an encoder must map all that is made up": Fault(
        "planning.arrays:try_encoder",
        "not any(are_good)",
        "not all(are_good)",
        rehearsal("an_encoder_may_fail_for_some_rows"),
    ),
    "users' draws are those of the process": Fault(
        "networks.generators:rehearsing",
        "np.random.set_state(state)",
        "None",
        rehearsal("draws_of_a_rehearsal_are_not_those_of_the_process"),
    ),
    "one value that most records have is a small part of a range": Fault(
        "arrays.discovery:_is_stretched",
        "(inside > find_clear(wide_std, len(inside))).sum() > 2",
        "True",
        arrays_inference("codes_that_stretch_a_range_are_named"),
    ),
    "codes that stretch a range are not named": Fault(
        "arrays.discovery:OpenBoxFormat._narrow_ranges",
        "_is_stretched(row, std, n_records, *wide)",
        "False",
        arrays_inference("codes_among_few_rows_are_named"),
    ),
    "long tails are named as codes that stretch a range": Fault(
        "arrays.discovery:_is_stretched",
        "far < counts[is_near].sum()",
        "False",
        arrays_inference("codes_among_few_rows_are_named"),
    ),
    "components are sought among high frequencies": Fault(
        "arrays.images:lowest_frequencies",
        "matrix[:n_frequencies]",
        "matrix[-n_frequencies:]",
        components("spaces_of_low_frequencies[64-16-sizes0]"),
    ),
    "a numeric y is decoded without the local radius": Fault(
        "arrays.ball:BallFormat.decode",
        "self.invert(rows * self.radius)",
        "self.invert(rows * self.radius)[0], self.invert(rows)[1]",
        arrays("local_rows_are_decoded_from_the_unit_ball"),
    ),
    "a numeric y is decoded without the radius": Fault(
        "arrays.box:BoxFormat.decode",
        "rows[:, -1:]",
        "rows[:, -1:] / self.clip_norm",
        arrays("rows_are_decoded_from_the_unit_ball"),
    ),
    "squared norms weigh more than is stated": Fault(
        "arrays.discovery:OpenBoxFormat.encode",
        "knot_weights((rows**2).sum(axis=1), _SQUARES)",
        "2 * knot_weights((rows**2).sum(axis=1), _SQUARES)",
        arrays_inference("a_record_adds_weights_of_its_squared_norm"),
    ),
    "ranges are counted in units of the radius": Fault(
        "arrays.discovery:OpenBoxFormat.resolve",
        "1.0",
        "self.clip_norm",
        arrays_inference("records_are_counted_whole_whatever_the_radius[0.5]"),
    ),
    "rows are not in units of the radius that is found": Fault(
        "arrays.discovery:OpenBoxFormat.resolve",
        "format.clip_norm",
        "1.0",
        arrays_inference("rows_are_in_units_of_the_radius"),
    ),
}

# Warnings of columns at their bounds, and values in the dtype of a container.
FUNCTION = {
    "noise may hide distances from a bound": Fault(
        "arrays.units:are_near",
        "sizes + quantile * std <= _NEAR",
        "sizes <= _NEAR",
        "tests/arrays/test_units.py::test_small_distances_are_those_that_noise_cannot_hide",
    ),
    "distances beyond noise are none": Fault(
        "arrays.units:are_near",
        "is_none & (sizes + quantile * std <= _NEAR)",
        "sizes + quantile * std <= _NEAR",
        "tests/arrays/test_units.py::test_small_distances_are_those_that_noise_cannot_hide",
    ),
    "columns of zeros are at a bound": Fault(
        "arrays.units:warn_of_means",
        "are_near(means / least, std / least) & is_elsewhere",
        "are_near(means / least, std / least)",
        "tests/arrays/test_units.py::test_columns_of_zeros_among_others_are_no_fault",
    ),
    "rows that are scaled down are near their lower bounds": Fault(
        "arrays.units:warn_of_moments",
        "_NEAR * format.clip_norm**2",
        "_NEAR",
        "tests/arrays/test_units.py::test_moments_tell_bounds_by_squares",
    ),
    "phases wrap around": Fault(
        "arrays.units",
        "_N_STEPS = 10",
        "_N_STEPS = 1",
        "tests/arrays/test_units.py::test_means_of_equal_rows_are_exact_whatever_phases_wrap[40]",
    ),
    "noise of means is counted as less": Fault(
        "arrays.units:_find_means",
        "(np.abs(sums) / max(std, 1e-12 * np.abs(sums).max())) ** 2",
        "(2 * np.abs(sums) / max(std, 1e-12 * np.abs(sums).max())) ** 2",
        "tests/arrays/test_units.py::test_means_have_the_stated_covariance",
    ),
    "numbers beyond a dtype become infinite": Fault(
        "data.dtypes:find_held_range",
        "(float(end) for end in (np.finfo(numbers).min, np.finfo(numbers).max))",
        "(first, last)",
        "tests/arrays/test_arrays.py::test_samples_stay_within_the_range_of_the_dtype[float16]",
    ),
    "classes beyond a dtype become others": Fault(
        "data.dtypes:_to_pandas",
        "(made != column).any()",
        "False",
        "tests/arrays/test_arrays.py::test_classes_that_the_dtype_of_labels_lacks_widen_it_for_every_draw[int8-300-asarray]",
    ),
    "bounds beyond a dtype pass": Fault(
        "arrays.kind:ArrayKind.check_bounds",
        "np.all(np.less_equal(*find_held_range(dtype, *ends)))",
        "True",
        "tests/arrays/test_arrays.py::test_bounds_beyond_the_dtype_are_refused_for_nothing",
    ),
}
