"""Faults in releases."""

from ..fault import Fault
from ..ids import components, few_rows, interactions, published, sizes

PRIVACY = {
    "a release is merged with itself": Fault(
        "releases.merging:merge",
        "len(set.union(*digests)) < sum(map(len, digests))",
        "False",
        published("a_release_is_merged_once[release-False]"),
    ),
    "parts of sums are merged again": Fault(
        "releases.merging:merge",
        "{digest for own in c.digests for digest in own}",
        "{own[0] for own in c.digests}",
        published("parts_of_sums_are_merged_once"),
    ),
    "a sum assumes what its first part does": Fault(
        "releases.merging:merge",
        "join(certificates, releases, n_records=n_samples)",
        "join(certificates[:1], releases, n_records=n_samples)",
        published("a_sum_says_what_any_of_its_parts_does[False-reproducible]"),
    ),
    "a sum does not assume that its parts are disjoint": Fault(
        "releases.merging:merge",
        "(*certificate.assumptions, _DISJOINT)",
        "certificate.assumptions",
        published("parts_of_sums_are_merged_once"),
    ),
    "a sum of releases that overlap has the budget of one": Fault(
        "releases.merging:merge",
        "max(first.plan.epsilon, certificate.epsilon)",
        "first.plan.epsilon",
        published("merged_data_that_overlap_are_composed"),
    ),
    "units of merged releases are not compared": Fault(
        "releases.merging:_describe_sums",
        "part.plan.max_rows",
        "None",
        published("sums_of_persons_need_the_same_number_of_rows"),
    ),
    "values of a sum are not compared": Fault(
        "releases.published:PublishedRelease.check",
        "found != self.digest",
        "False",
        published("whoever_takes_a_release_compares_its_values[replaced-sum]"),
    ),
    "a release may have the certificate of another release": Fault(
        "releases.published:PublishedRelease.check",
        "certificate.digest not in (None, found)",
        "False",
        published("a_release_has_no_certificate_of_another_one"),
    ),
    "values that are taken are not compared": Fault(
        "releases.published:open_release",
        "published.check()",
        "pass",
        published("whoever_takes_a_release_compares_its_values[in place-release]"),
    ),
    "values that are estimated from are not compared": Fault(
        "inference.model:Model.__init__",
        "published.check()",
        "pass",
        published("whoever_takes_a_release_compares_its_values[in place-release]"),
    ),
    "a release may have the certificate of another relation": Fault(
        "releases.published:PublishedRelease.check",
        "stated != (self.plan.relation, self.plan.accountant, self.plan.max_rows)",
        "False",
        published("whoever_takes_a_release_compares_its_values[certificate-release]"),
    ),
    "what a learner reads beside a release is not assumed": Fault(
        "base:BaseGenerator._fit_published",
        "(*known, *own)",
        "known",
        published("an_estimator_assumes_that_its_start_is_public"),
    ),
    "a replayed fit draws from the stream of the noise": Fault(
        "mechanisms.noise:PublicSource.__init__",
        "super().__init__(random_state, stream=2)",
        "super().__init__(random_state, stream=0)",
        published("a_replayed_fit_draws_nothing_from_the_stream_of_the_noise"),
    ),
    "slices that are not taken are believed to tell": Fault(
        "releases.sketches:SliceSketch.min_samples",
        "ratio *= math.sqrt(enough / self._fewest(n_columns))",
        "pass",
        few_rows("rows_of_more_columns_than_slices_tell_about_take_more_of_them"),
    ),
    "more slices are taken for more noise": Fault(
        "releases.sketches:SliceSketch.noise_ratio",
        "(plan.sigma or 0.0) * math.sqrt(self._fewest(n_columns) / k)",
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
    "a release overrules a schema": Fault(
        "tables.schema:Schema.resolves",
        "all(self[n].resolves(k) for n, k in declared.columns)",
        "True",
        published("parameters_that_the_release_determines_must_be_the_same[schema]"),
    ),
    "a release overrules parameters of arrays": Fault(
        "releases.published:_check_declared",
        "name in differs and differs[name](getattr(estimator, name))",
        "False",
        published("parameters_that_the_release_determines_must_be_the_same[bounds]"),
    ),
    "a release overrules its own parameters": Fault(
        "releases.published:_check_declared",
        "text != released",
        "False",
        published("parameters_that_the_release_determines_must_be_the_same[release0]"),
    ),
    "interactions are sought in noise": Fault(
        "releases.two_way_tables:TwoWayTables._count_orders",
        "n_subsets > DEFAULTS.max_subsets or noise > DEFAULTS.detectable * n_records",
        "n_subsets > DEFAULTS.max_subsets",
        interactions("where_triples_are_sought[schema2-None-40-False]"),
    ),
    "levels of a target take no rows of their own": Fault(
        "releases.two_way_tables:TwoWayTables.min_samples",
        "DEFAULTS.min_samples * (plan.sigma or 0.0) * len(format.schema) * n_strata",
        "DEFAULTS.min_samples * plan.sigma * len(format.schema)",
        few_rows("each_level_of_a_target_takes_as_many_rows[ab-2]"),
    ),
}
