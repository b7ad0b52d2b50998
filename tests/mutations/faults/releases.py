"""Faults in releases."""

from ..fault import Fault
from ..ids import components, few_rows, interactions, published, sizes

PRIVACY = {
    "a release is merged with itself": Fault(
        "releases.published:merge",
        "len(set(map(_identify, parts))) < len(parts)",
        "False",
        published("a_release_is_merged_once[release-False]"),
    ),
    "releases of a stream are merged with each other": Fault(
        "releases.published:_identify",
        "part.plan.stream is not None",
        "False",
        published("a_release_is_merged_once[stream-False]"),
    ),
    "a replayed fit draws from the stream of the noise": Fault(
        "mechanisms.noise:PublicSource.__init__",
        "super().__init__(random_state, stream=2)",
        "super().__init__(random_state, stream=0)",
        published("a_replayed_fit_draws_nothing_from_the_stream_of_the_noise"),
    ),
    "slices that are not taken are believed to tell": Fault(
        "releases.sketches:SliceSketch.min_samples",
        "ratio *= math.sqrt(enough / self._fewest(terms.n_columns))",
        "pass",
        few_rows("rows_of_more_columns_than_slices_tell_about_take_more_of_them"),
    ),
    "more slices are taken for more noise": Fault(
        "releases.sketches:SliceSketch.noise_ratio",
        "plan.sigma * math.sqrt(self._fewest(n_columns) / k)",
        "plan.sigma",
        sizes("more_slices_are_not_taken_for_more_noise"),
    ),
    "slices are others than were planned": Fault(
        "releases.sketches:SliceSketch.run",
        "k",
        "self._fewest(len(std))",
        sizes("release_is_the_planned_one_whatever_the_rows_are"),
    ),
    "slices do not follow from the classes": Fault(
        "releases.sketches:SliceSketch.count",
        "n_classes * multiplier",
        "multiplier",
        sizes("slices_are_as_many_as_show_above_the_noise"),
    ),
    "slices do not follow from the noise": Fault(
        "releases.sketches:SliceSketch.count",
        "max(DEFAULTS.least_multiplier, multiplier)",
        "DEFAULTS.least_multiplier",
        sizes("slices_are_as_many_as_show_above_the_noise"),
    ),
    "slices fall with the budget": Fault(
        "releases.sketches:SliceSketch.count",
        "n_records / (n_classes * multiplier)",
        "n_records / n_classes * multiplier",
        sizes("more_budget_and_more_records_never_give_fewer_values"),
    ),
    "a number of slices that was given grows": Fault(
        "releases.sketches:SliceSketch.count",
        "self.n_projections is None",
        "True",
        sizes("release_is_the_planned_one_whatever_the_rows_are"),
    ),
    "memory does not hold the slices of many classes": Fault(
        "releases.sketches:SliceSketch.count",
        "DEFAULTS.class_slices // n_classes",
        "DEFAULTS.class_slices",
        sizes("memory_holds_the_slices_that_are_chosen"),
    ),
    "memory does not hold the directions of many columns": Fault(
        "releases.sketches:SliceSketch.count",
        "DEFAULTS.entries // n_columns",
        "DEFAULTS.entries",
        sizes("memory_holds_the_slices_that_are_chosen"),
    ),
    "no slice is local": Fault(
        "releases.sketches:_draw_directions",
        "round(DEFAULTS.local * k)",
        "0",
        components("half_of_the_slices_of_images_are_local"),
    ),
}

FUNCTION = {
    "interactions are sought in noise": Fault(
        "releases.tables:TwoWayTables._count_orders",
        "n_subsets > DEFAULTS.max_subsets or noise > DEFAULTS.detectable * n_records",
        "n_subsets > DEFAULTS.max_subsets",
        interactions("where_triples_are_sought[schema2-None-40-False]"),
    ),
    "levels of a target take no rows of their own": Fault(
        "releases.tables:TwoWayTables.min_samples",
        "DEFAULTS.min_samples * plan.sigma * len(format.schema) * n_strata",
        "DEFAULTS.min_samples * plan.sigma * len(format.schema)",
        few_rows("each_level_of_a_target_takes_as_many_rows[ab-2]"),
    ),
}
