"""Specifications: small objects of parameters, and the strings that stand for them."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import FunctionTransformer, Normalizer, StandardScaler

from skdpgen import (
    DPAFGenerator,
    DPSinkhornGenerator,
    DPSlicedWassersteinGenerator,
    DPSWFlowSampler,
    LDPEntropicGAN,
)
from skdpgen.encoders import PrivatePCA, split_encoder
from skdpgen.losses import (
    EntropicWasserstein,
    SemiDebiasedSinkhorn,
    SinkhornDivergence,
    Wasserstein,
)
from skdpgen.params import Specification
from skdpgen.releases import (
    ForwardAggregates,
    LocalNoise,
    SampledGradients,
    SlicedRows,
    SliceSketch,
)

# Nothing is left open.
BOX = {"bounds": (-5, 5), "clip_norm": 1.0}

# One specification of each kind, with parameters of its own.
SPECIFICATIONS = [
    SliceSketch(n_projections=9, n_harmonics=4),
    SlicedRows(n_projections=4, batch_size=20, n_steps=3, sampling="fixed"),
    SampledGradients(n_steps=3, grad_clip=0.2, perturb="parameters"),
    ForwardAggregates(n_steps=3, budget_split=(0.0, 0.5, 0.5), asymmetry=2),
    LocalNoise("gaussian", basis="dct", keep=0.5),
    SemiDebiasedSinkhorn(reg=0.1, n_debias=2, balance_classes=False),
    EntropicWasserstein(reg=0.3),
    SinkhornDivergence(reg=0.3),
    Wasserstein(),
    PrivatePCA(n_components=2, share=0.3),
]
# Estimators, and for each of their strings what it stands for.
STRINGS = [
    (DPSlicedWassersteinGenerator(n_steps=3), "release", "sketch", SliceSketch()),
    (DPSlicedWassersteinGenerator(), "release", "rows", SlicedRows()),
    (DPSlicedWassersteinGenerator(n_steps=3), "encoder", "dp-pca", PrivatePCA()),
    (DPSWFlowSampler(n_steps=3), "release", "sketch", SliceSketch()),
    (DPSWFlowSampler(), "release", "resample", SlicedRows()),
    (DPSWFlowSampler(n_steps=3), "release", "presample", SlicedRows(n_steps=1)),
    (DPSinkhornGenerator(), "release", "gradients", SampledGradients()),
    (DPSinkhornGenerator(), "loss", "semi_debiased", SemiDebiasedSinkhorn()),
    (DPAFGenerator(), "release", "aggregates", ForwardAggregates()),
    (LDPEntropicGAN(n_steps=3), "release", "laplace", LocalNoise()),
    (LDPEntropicGAN(n_steps=3), "release", "gaussian", LocalNoise("gaussian")),
    (LDPEntropicGAN(n_steps=3), "loss", "entropic", EntropicWasserstein()),
    (LDPEntropicGAN(n_steps=3), "loss", "wasserstein", Wasserstein()),
    (LDPEntropicGAN(n_steps=3), "loss", "sinkhorn_divergence", SinkhornDivergence()),
]
each_kind = pytest.mark.parametrize(
    "specification", SPECIFICATIONS, ids=lambda specification: type(specification).__name__
)
each_string = pytest.mark.parametrize(
    ("estimator", "name", "string", "meant"),
    STRINGS,
    ids=[f"{type(estimator).__name__}-{string}" for estimator, _, string, _ in STRINGS],
)


@pytest.fixture
def X():
    return np.random.RandomState(0).normal(scale=0.4, size=(60, 3))


def describe(specification):
    return type(specification), specification.get_params()


# As objects.


def test_all_kinds_are_here():
    kinds, left = set(), [Specification]
    while left:
        left += (found := left.pop().__subclasses__())
        found = [kind for kind in found if kind.__module__.startswith("skdpgen.")]
        others = "Release", "TwoWayTables", "HistoryTables", "SecondMoments"
        kinds |= {k for k in found if k.__name__ not in others}
    assert kinds == {type(specification) for specification in SPECIFICATIONS}


@each_kind
def test_clones_and_pickles_have_the_same_parameters(specification):
    for copy in (clone(specification), pickle.loads(pickle.dumps(specification))):
        assert copy is not specification
        assert describe(copy) == describe(specification)
    assert vars(specification).keys() == specification.get_params().keys(), "It has a state."


@each_kind
def test_all_parameters_are_checked(specification):
    specification._check_params()
    for name in specification.get_params():
        bad = clone(specification).set_params(**{name: object()})
        with pytest.raises(ValueError, match=name):
            bad._check_params()


@each_kind
def test_reprs(specification):
    assert describe(eval(repr(specification))) == describe(specification)
    assert repr(type(specification)()) == f"{type(specification).__name__}()"
    page = specification._repr_html_()
    for text in (type(specification).__name__, *specification.get_params()):
        assert text in page
    holder = DPSlicedWassersteinGenerator(release=specification)
    assert repr(specification) in " ".join(repr(holder).split())
    assert type(specification).__name__ in holder._repr_html_()


def test_parameters_are_those_of_the_estimator_too():
    release = SliceSketch(9)
    params = DPSlicedWassersteinGenerator(release=release).get_params()
    assert params["release"] is release
    assert params["release__n_projections"] == 9
    assert params["release__n_harmonics"] is None
    assert "release__n_projections" not in DPSlicedWassersteinGenerator().get_params()
    assert DPSlicedWassersteinGenerator().get_params()["release"] == "sketch"


# Strings that stand for them.


@each_string
def test_strings_stand_for_objects(X, estimator, name, string, meant):
    """They are fitted alike, and `fit` changes neither."""
    if name != "encoder":
        found = clone(estimator).set_params(**{name: string})._resolve_spec(name)
        assert describe(found) == describe(meant)
    fits = []
    for value in (string, meant):
        params = {name: value, "random_state": 0, "epsilon": 9.0, "accountant": "rdp"}
        fits.append(clone(estimator).set_params(**params).fit(X))
        assert fits[-1].get_params(deep=False)[name] is value
    assert_array_equal(*(fitted.sample(5) for fitted in fits))
    assert fits[0].privacy_ == fits[1].privacy_


@each_string
def test_a_nested_parameter_exchanges_a_string_for_its_object(estimator, name, string, meant):
    for nested, value in meant.get_params().items():
        changed = clone(estimator).set_params(**{name: string, f"{name}__{nested}": value})
        assert describe(getattr(changed, name)) == describe(meant)
        assert getattr(estimator, name) == type(estimator)().get_params()[name]


def test_specifications_behind_strings_are_not_changed():
    changed = DPSlicedWassersteinGenerator().set_params(release__n_projections=7)
    assert repr(changed) == "DPSlicedWassersteinGenerator(release=SliceSketch(n_projections=7))"
    assert describe(DPSlicedWassersteinGenerator()._resolve_spec("release")) == (
        describe(SliceSketch())
    )
    DPSlicedWassersteinGenerator()._resolve_spec("release").set_params(n_projections=8)
    fresh = DPSlicedWassersteinGenerator().set_params(release__n_harmonics=3).release
    assert describe(fresh) == describe(SliceSketch(n_harmonics=3))


@pytest.mark.parametrize("order", [1, -1])
def test_a_parameter_and_one_of_its_own_in_any_order(order):
    params = {"release": "rows", "release__n_steps": 3, "release__batch_size": 9}
    estimator = DPSlicedWassersteinGenerator().set_params(**dict(list(params.items())[::order]))
    assert describe(estimator.release) == describe(SlicedRows(n_steps=3, batch_size=9))
    estimator.set_params(release__n_steps=4)
    assert describe(estimator.release) == describe(SlicedRows(n_steps=4, batch_size=9))
    estimator.set_params(release=SliceSketch(), release__n_projections=5)
    assert describe(estimator.release) == describe(SliceSketch(5))
    assert estimator.set_params() is estimator


def test_unknown_nested_parameters():
    with pytest.raises(ValueError, match="Invalid parameter 'n_steps' for estimator SliceSketch"):
        DPSlicedWassersteinGenerator().set_params(release__n_steps=3)


# In estimators.


def test_clones_share_nothing(X):
    first = DPSWFlowSampler(
        release=SliceSketch(9),
        encoder=[FrozenEstimator(PCA(2).fit(X)), PrivatePCA(2)],
        n_steps=3,
        random_state=0,
    )
    second = clone(first)
    assert describe(second.release) == describe(first.release)
    second.set_params(release__n_projections=5)
    second.encoder[1].set_params(share=0.5)
    assert first.release.n_projections == 9
    assert first.encoder[1].share == 0.2
    # Fits of a clone and of the original give the same rows.
    assert_array_equal(clone(first).fit(X).sample(5), first.fit(X).sample(5))


# Refusals, before anything is released.


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (
            DPSlicedWassersteinGenerator(release="gradients"),
            r"release must be one of \['sketch', 'pairs', 'rows'\] or a SliceSketch or SlicedRows "
            "or TwoWayTables; got 'gradients'",
        ),
        (DPSlicedWassersteinGenerator(release=SampledGradients()), r"got SampledGradients\(\)"),
        (DPSlicedWassersteinGenerator(release=np.zeros(2)), "release must be one of"),
        (DPSinkhornGenerator(release=SliceSketch()), r"\['gradients'\] or a SampledGradients"),
        (DPSinkhornGenerator(loss="entropic"), r"loss must be one of \['semi_debiased'\]"),
        (LDPEntropicGAN(loss=SemiDebiasedSinkhorn()), "loss must be one of"),
        # Their own parameters.
        (DPSlicedWassersteinGenerator(release=SliceSketch(0)), "n_projections must be a positive"),
        (DPSWFlowSampler(release=SlicedRows(n_steps=-1)), "n_steps must be a positive"),
        (DPSinkhornGenerator(release=SampledGradients(n_generated=1)), "n_generated must be at"),
        (DPSinkhornGenerator(loss=SemiDebiasedSinkhorn(n_debias=-1)), "n_debias must be a whole"),
        (DPAFGenerator(release=ForwardAggregates(budget_split=(1, 0, 0))), "budget_split must be"),
        (LDPEntropicGAN(release=LocalNoise("uniform")), "mechanism must be one of"),
        (LDPEntropicGAN(loss=EntropicWasserstein(0)), "reg must be a positive number or None"),
        (DPSWFlowSampler(encoder=[None, PrivatePCA(0)]), "n_components must be a positive"),
    ],
)
def test_bad_specifications(X, estimator, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(X)
    assert not hasattr(estimator, "privacy_")


def test_one_step_leaves_those_of_the_estimator_free(X):
    sampler = DPSWFlowSampler(release=SlicedRows(n_steps=1), n_steps=7, **BOX).fit(X)
    assert sampler.n_iter_ == 7
    assert len(sampler.privacy_.events) == 1


# Encoders: what of them is public, and what is paid for.


class Halved:
    """Has nothing to lose, and is no estimator of scikit-learn."""

    def transform(self, X):
        return X / 2

    def inverse_transform(self, X):
        return X * 2


def test_parts_of_an_encoder(X):
    public, private = FrozenEstimator(PCA(2).fit(X)), PrivatePCA(2)
    stateless = FunctionTransformer(np.cbrt, inverse_func=lambda rows: rows**3)
    assert split_encoder(None) == (None, None)
    for encoder in (public, stateless, Halved()):
        assert split_encoder(encoder) == split_encoder([encoder]) == (encoder, None)
        for both in ([encoder, private], (encoder, "dp-pca")):
            found, paid = split_encoder(both)
            assert found is encoder
            assert isinstance(paid, PrivatePCA)
    for encoder in ("dp-pca", ["dp-pca"], PrivatePCA()):
        found, paid = split_encoder(encoder)
        assert found is None
        assert describe(paid) == describe(PrivatePCA())


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (5, "encoder must be None, one of"),
        ("pca", "encoder must be None, one of"),
        (Normalizer(), "with transform and inverse_transform, fitted on public data"),
        (SliceSketch(), "encoder must be None, one of"),
        (PCA(2), "FrozenEstimator"),
        (StandardScaler().fit(np.eye(3)), r"wrap it in sklearn\.frozen\.FrozenEstimator"),
        (FrozenEstimator(PCA(2)), "is not fitted"),
        ([Halved(), Halved()], "encoder as a list is"),
        (["dp-pca", Halved()], "encoder as a list is"),
        ([Halved(), None], "encoder as a list is"),
        ([Halved(), Halved(), "dp-pca"], "encoder as a list is"),
        ([PCA(2).fit(np.eye(3)), "dp-pca"], "FrozenEstimator"),
    ],
)
def test_encoders_that_are_refused(X, encoder, message):
    estimator = DPSlicedWassersteinGenerator(encoder=encoder, n_steps=3)
    with pytest.raises(ValueError, match=message):
        estimator.fit(X)
    assert not hasattr(estimator, "privacy_")
