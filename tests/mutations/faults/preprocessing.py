"""Faults in preprocessing."""

from ..fault import Fault
from ..ids import components, privatizer, saving, survival

PRIVACY = {
    "labels are released as they are": Fault(
        "preprocessing._local_privatizer:LocalPrivatizer.privatize",
        "y = classes[curator.release(LocalLabelsMechanism(len(classes))).codes]",
        "curator.release(LocalLabelsMechanism(len(classes)))",
        privatizer("labels_are_replaced_as_often_as_certified[laplace]"),
    ),
    "noise follows a seed that was set after it was certified": Fault(
        "preprocessing._local_privatizer:LocalPrivatizer._noise",
        "random_state, counter = self._seed",
        "random_state, counter = self.random_state, self._seed[1]",
        privatizer("the_seed_is_the_one_that_was_certified"),
    ),
    "the local certificate hides that the seed was fixed": Fault(
        "preprocessing._local_privatizer:LocalPrivatizer._certify",
        "self.random_state is not None",
        "False",
        privatizer("the_certificate_says_whether_the_seed_was_fixed"),
    ),
    "windows are of other shapes than images": Fault(
        "preprocessing._low_frequencies:LowFrequencies.maps_windows",
        "self.image_shape_ == find_shape(self.n_features_in_, (1, 3))",
        "True",
        components("other_encoders_show_no_windows"),
    ),
    "moments of an earlier fit are kept for a later one": Fault(
        "preprocessing._dp_pca:DPPCA._fit",
        """vars(self).pop("release_", None)""",
        "pass",
        survival("earlier_moments_are_not_those_of_a_fit_that_fails"),
    ),
}

FUNCTION = {
    "a privatizer with a seed is saved": Fault(
        "preprocessing._local_privatizer:LocalPrivatizer.save",
        "self.random_state is not None or self._seed[0] is not None",
        "self.random_state is not None and False",
        saving("copies_of_a_privatizer_do_not_repeat_its_noise"),
    )
}
