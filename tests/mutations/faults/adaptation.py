"""Faults in adaptation."""

from ..fault import Fault
from ..ids import adaptation, rehearsal, saving, search

PRIVACY = {
    "alignment with raw target rows": Fault(
        "adaptation._domain_adapter:DPSWDDomainAdapter._adapt",
        "return self._train_on_samples(start, sampler)",
        """
        sampler.sample = lambda n: X_target
        return self._train_on_samples(start, sampler)
        """,
        adaptation("all_but_the_sketch_is_post_processing"),
    ),
    "target rows scaled by the largest among them": Fault(
        "adaptation._domain_adapter:DPSWDDomainAdapter._adapt",
        "sampler.fit(X_target)",
        "sampler.set_params(bounds=(X_target.min(), X_target.max())).fit(X_target)",
        adaptation("units_follow_from_the_source"),
    ),
    "synthetic rows start from the target": Fault(
        "adaptation._domain_adapter:DPSWDDomainAdapter._adapt",
        "sampler.fit(X_target)",
        "sampler.set_params(init=X_target).fit(X_target)",
        adaptation("no_target_row_is_kept"),
    ),
    "a search is booked as one fit": Fault(
        "adaptation._private_search:PrivateSearch._search_releases",
        "Certificate.of_plan(plan, assumptions, reproducible=noise.reproducible)",
        "best.privacy_",
        search("the_certificate_is_that_of_the_search"),
    ),
    "values of the best of a search have the price of one fit": Fault(
        "adaptation._private_search:_certify",
        "published is not None",
        "False",
        search("published_values_of_the_best_fit_have_the_price_of_the_search"),
    ),
    "a saved search states another certificate": Fault(
        "adaptation._private_search:PrivateSearch._list_certified",
        'yield "privacy_ of best_estimator_", best.privacy_, self.privacy_',
        'yield "privacy_ of best_estimator_", self.privacy_, self.privacy_',
        saving("a_search_with_another_certificate_is_refused"),
    ),
    "candidates of a search share noise": Fault(
        "adaptation._private_search:PrivateSearch._search_releases",
        "noise.seed() if noise.reproducible else None",
        "estimator.random_state",
        search("candidates_have_noise_of_their_own"),
    ),
    "a scoring function is tried by the private rows": Fault(
        "adaptation._private_search:PrivateSearch._fit",
        "self._try_scoring(X, y)",
        "None",
        search("scoring_that_fails_is_refused_before_a_release"),
    ),
    "a rehearsal of a score is charged": Fault(
        "adaptation._private_search:PrivateSearch._try_scoring",
        "PublicRun()",
        "muted()",
        search("scoring_is_tried_with_any_sampler_and_costs_nothing"),
    ),
    "an augmentation may give a few numbers that are not finite": Fault(
        "adaptation._domain_adapter:DPSWDDomainAdapter._try_augment",
        "not changed.isfinite().all()",
        "changed.isnan().all()",
        rehearsal("an_augmentation_that_fails_is_refused_before_a_release"),
    ),
}
