"""scikit-learn's checks and ours, over every estimator."""

import numpy as np
import pytest
import torch
from sklearn.utils.estimator_checks import parametrize_with_checks

from skdpgen import (
    DPAFGenerator,
    DPSinkhornGenerator,
    DPSlicedWassersteinGenerator,
    DPSWDDomainAdapter,
    DPSWFlowSampler,
    LDPEntropicGAN,
)
from skdpgen.adaptation import DPSWDDomainClassifier
from skdpgen.preprocessing import LocalPrivatizer, LowFrequencies
from skdpgen.releases import ForwardAggregates, LocalNoise, SampledGradients, SliceSketch
from skdpgen.testing import interface_checks, yield_checks
from skdpgen.testing.common import differ, make_quick
from skdpgen.testing.privacy_checks import check_noise

# Not every test declares its classes.
pytestmark = [
    pytest.mark.filterwarnings("ignore::skdpgen.privacy.PrivacyLeakWarning"),
    pytest.mark.filterwarnings("ignore:X_target is None"),
]

# As users get them, and as they differ in what they release.
GENERATORS = {
    "sliced": DPSlicedWassersteinGenerator(),
    "sliced-pca": DPSlicedWassersteinGenerator(encoder="dp-pca"),
    "sliced-bounds": DPSlicedWassersteinGenerator(
        bounds=(-1, 1),
        clip_norm=0.8,
        accountant="rdp",
        release=SliceSketch(9),
    ),
    "rows": DPSlicedWassersteinGenerator(release="rows"),
    "flow": DPSWFlowSampler(),
    "flow-pca": DPSWFlowSampler(encoder="dp-pca"),
    "flow-r": DPSWFlowSampler(release="resample"),
    "flow-once": DPSWFlowSampler(release="presample"),
    "local": LDPEntropicGAN(),
    "local-gaussian": LDPEntropicGAN(
        release=LocalNoise("gaussian", basis="dct", keep=0.9), clip_norm=0.8, accountant="rdp"
    ),
    "rows-pca": DPSlicedWassersteinGenerator(release="rows", encoder="dp-pca"),
    "sinkhorn": DPSinkhornGenerator(),
    "sinkhorn-pca": DPSinkhornGenerator(encoder="dp-pca"),
    "sinkhorn-weights": DPSinkhornGenerator(
        release=SampledGradients(perturb="parameters", grad_clip=0.7),
        bounds=(-1, 1),
        accountant="rdp",
        optimizer="sgd",
    ),
    "dpaf": DPAFGenerator(),
    "dpaf-random": DPAFGenerator(
        release=ForwardAggregates(budget_split=(0, 0, 1)), bounds=(-1, 1), accountant="rdp"
    ),
}

# Estimators that differ from another one in parameters only, or in a release that another class
# has, too.
VARIANTS = [
    "sliced-bounds",
    "sliced-pca",
    "flow-once",
    "local-gaussian",
    "flow-pca",
    "rows-pca",
    "sinkhorn-pca",
    "sinkhorn-weights",
    "dpaf-random",
]


# Others of the same code in what all of them share.
OTHERS = ["rows", "flow-r", "sinkhorn", "dpaf"]
OF_ANY_RELEASE = [
    "check_class_probabilities",
    "check_class_warning",
    "check_clone",
    "check_dtypes",
    "check_frames",
    "check_labels",
    "check_n_samples",
    "check_number",
    "check_sample_shapes",
    "check_score",
    "check_unknown_labels",
]

# Checks that take long, and are made of an estimator like it.
SLOW = {
    *(
        (which, check)
        for which in ("rows", "flow-r")
        for check in ("check_global_generators", "check_seeds")
    ),
    *((which, check) for which in OTHERS for check in OF_ANY_RELEASE),
    ("flow", "check_neighbours"),
    ("flow-r", "check_bad_records"),
    ("flow-r", "check_epsilon"),
    ("flow-r", "check_neighbours"),
    ("flow-r", "check_noise"),
    ("flow-r", "check_rows_in_ball"),
    ("rows", "check_epsilon"),
    ("rows", "check_neighbours"),
    ("sinkhorn", "check_neighbours"),
    ("dpaf", "check_neighbours"),
}


def list_quick(*which):
    return [make_quick(GENERATORS[name]) for name in which]


@parametrize_with_checks(
    [
        *list_quick("sliced", "flow", "local"),
        *(LocalPrivatizer(), LowFrequencies()),
        *(DPSWDDomainAdapter(n_steps=5), DPSWDDomainClassifier(n_steps=5)),
    ]
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(list_quick("sinkhorn", "dpaf"))
def test_scikit_learn_where_other_values_are_released(estimator, check):
    check(estimator)


@pytest.mark.catches(
    "base:BaseGenerator._fit",
    "vars(self).pop(name, None)",
    """
    vars(self).pop(name, None)
    self._first = dataset._held[0][0][7:8].copy()
    """,
    param="sliced-check_no_row_in_pickle",
)
@pytest.mark.catches(
    "curator.curator:Curator.__init__",
    "self._reservation = Reservation(plan, noise.reproducible)",
    """
    self._source.open()
    self._reservation = Reservation(plan, noise.reproducible)
    """,
    param="sliced-pca-check_refusal_is_reserved",
)
@pytest.mark.catches(
    "curator.curator:Curator._release",
    "self.plan.relation",
    '"zero_out"',
    param="sliced-pca-check_noise",
)
@pytest.mark.catches(
    "curator.curator:Curator._release",
    "self._ledger[position].count += 1",
    "self._ledger[position].count = 1",
    param="rows-check_ledger",
)
@pytest.mark.catches(
    "curator.curator:Curator.certificate",
    "self._ledger",
    "self._ledger[1:]",
    param="sliced-pca-check_ledger",
)
@pytest.mark.catches(
    "curator.dataset:list_refusals",
    "strict or has_objects",
    "has_objects",
    param="sliced-pca-check_bad_records",
)
@pytest.mark.catches(
    "data.inputs:_parse_cell", "error = PublicValueError", "raise", param="sliced-check_failing_fit"
)
@pytest.mark.catches(
    "curator.batches:RecordSource._finish",
    "clip_rows(rows.to(self._device), self._clip_norm)",
    "rows.to(self._device)",
    param="sliced-pca-check_neighbours",
)
@pytest.mark.catches(
    "curator.batches:RecordSource._encode",
    "(classes >= 0) & is_finite",
    "is_finite",
    param="sliced-pca-check_bad_records",
)
@pytest.mark.catches(
    "curator.batches:RecordSource._membership",
    "membership[null] = 0",
    "pass",
    param="sliced-check_neighbours",
)
@pytest.mark.catches(
    "curator.batches:RecordSource._find_classes",
    "return torch.as_tensor(encode_labels(y, self._classes))",
    """
    codes = torch.as_tensor(encode_labels(y, self._classes))
    if (codes < 0).any():
        raise ValueError("y holds other labels.")
    return codes
    """,
    param="sliced-pca-check_bad_records",
)
@pytest.mark.catches(
    "mechanisms.base:Measurement.grid_std",
    "self.std * self.scale",
    "self.std * self.scale / math.sqrt(2)",
    param="sliced-pca-check_noise",
)
@pytest.mark.catches(
    "mechanisms.base:Measurement.add_noise",
    "noisy += self.exact",
    "noisy = self.exact",
    param="sliced-pca-check_noise",
)
@pytest.mark.catches(
    "data.rows:clip_rows",
    "sum_rows(rows.square())",
    "sum_rows(rows.square()).max()",
    param="sliced-pca-check_neighbours",
)
@pytest.mark.catches(
    "mechanisms.sums:CovarianceMechanism",
    "math.sqrt(2)",
    "1.0",
    param="sliced-pca-check_neighbours",
)
@pytest.mark.catches(
    "mechanisms.sums:CovarianceMechanism.postprocess",
    "np.triu(noisy) + np.triu(noisy, 1).T",
    "noisy",
    param="sliced-pca-check_noise",
)
@pytest.mark.catches(
    "mechanisms.sums:SliceSketchMechanism.sensitivity_of",
    "slice_diameter(n_harmonics) * math.sqrt(k)",
    "math.sqrt(k)",
    param="sliced-check_neighbours",
)
@pytest.mark.catches(
    "mechanisms.sums:SliceSketchMechanism.sensitivity_of",
    "max(slice_diameter(n_harmonics) * math.sqrt(k), across)",
    "math.sqrt(k + c2)",
    param="sliced-check_neighbours",
)
@pytest.mark.catches(
    "mechanisms.noise:NoiseSource.__init__",
    "secrets.randbits(256)",
    "int(np.random.randint(2**31))",
    param="sliced-check_seeds",
)
@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        pytest.param(
            estimator,
            check,
            id=f"{which}-{name}",
            marks=pytest.mark.slow if which in VARIANTS or (which, name) in SLOW else (),
        )
        for which, estimator in GENERATORS.items()
        for name, check in yield_checks(estimator)
    ],
)
def test_generator(estimator, check):
    check(estimator)


class WithTensors(DPSWFlowSampler):
    """Keeps released tensors and a network as fitted attributes."""

    def fit(self, X, y=None, **fit_params):
        super().fit(X, y, **fit_params)
        weights = torch.as_tensor(self.sample(2, random_state=0)[0]).requires_grad_()
        self.weights_ = weights * 2
        self.parts_ = [torch.ones(2), {"network": torch.nn.Identity()}]
        return self


@pytest.mark.parametrize(
    "name", ["check_pickle", "check_seeds", "check_failing_refit", "check_post_processing"]
)
def test_fitted_tensors_are_compared(name):
    estimator = WithTensors(n_steps=1)
    dict(yield_checks(estimator))[name](estimator)


def test_different_tensors_differ():
    ones = torch.ones(2)
    assert not differ([ones], [ones.clone()])
    for other in (torch.zeros(2), torch.ones(3), ones.double(), [1.0, 1.0], None):
        assert differ([ones], [other])
    assert differ(torch.nn.Linear(1, 1), torch.nn.Linear(1, 1))


def test_a_warning_in_a_check_does_not_end_the_checks(monkeypatch):
    """Python notes warnings in the dictionary of the module that gives them."""
    checks = yield_checks(DPSlicedWassersteinGenerator())
    next(checks)
    monkeypatch.setattr(interface_checks, "__warningregistry__", {}, raising=False)
    assert len(list(checks)) > 5


def test_a_check_of_noise_is_not_blind(monkeypatch):
    """The checks hold over many seeds, but not with a little less noise."""
    from skdpgen.privacy import NoiseSource

    for _ in range(3):
        check_noise(GENERATORS["sliced-pca"])
    quiet = NoiseSource.rounded_gaussian
    monkeypatch.setattr(
        NoiseSource, "rounded_gaussian", lambda self, scale: quiet(self, np.asarray(scale) * 0.8)
    )
    with pytest.raises(AssertionError, match="times its stated deviation"):
        check_noise(GENERATORS["sliced-pca"])
