"""Particles from a sketch and along sliced rows: what they learn, release and cost."""

import contextlib
import math
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from dp_accounting import PoissonSampledDpEvent
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial.distance import cdist
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import FunctionTransformer

from skdpgen import DPSWFlowSampler, PrivacyBudget
from skdpgen.accounting.events import split_repetition
from skdpgen.arrays import box
from skdpgen.encoders import PrivatePCA
from skdpgen.generators import _sliced_flow
from skdpgen.images import draw_windows
from skdpgen.learners.particles import Particles, _smooth, flow_along_slices
from skdpgen.mechanisms.sampled import ProjectedRows
from skdpgen.networks.components import PrincipalComponents
from skdpgen.preprocessing import LowFrequencies
from skdpgen.privacy import (
    Curator,
    PlanError,
    PrivacyLeakWarning,
    SlicedGaussianDpEvent,
    SlicedRowsMechanism,
    preview,
)
from skdpgen.releases import SlicedRows, SliceSketch
from skdpgen.tables import Boolean, Schema
from skdpgen.testing.common import make_plain
from skdpgen.transport import sliced_wasserstein_distance

RELEASES = ["sketch", "resample", "presample"]


def make(**params):
    return make_plain(DPSWFlowSampler(**{"epsilon": math.inf, "random_state": 0, **params}))


def steps_of(name, n_steps, **params):
    """Return the parameters for so many steps: of the release, if it is made at each of them."""
    if name == "resample":
        return {"release": SlicedRows(n_steps=n_steps, **params)}
    release = {"sketch": SliceSketch, "presample": partial(SlicedRows, n_steps=1)}[name]
    return {"release": release(**params), "n_steps": n_steps}


@pytest.fixture(scope="module")
def five_gaussians():
    rng = np.random.RandomState(0)
    centres = np.array([[0.5, 0.5], [0.5, -0.5], [-0.5, 0.5], [-0.5, -0.5], [0, 0]])
    return centres[rng.randint(5, size=2000)] + 0.05 * rng.randn(2000, 2)


@pytest.mark.parametrize("release", RELEASES)
def test_five_gaussians_without_noise(five_gaussians, release):
    params = {
        "sketch": {"n_steps": 200, "n_harmonics": 12},
        "resample": {"n_steps": 150},
        "presample": {"n_steps": 150, "n_projections": 40},
    }[release]
    sampler = make(**steps_of(release, **params))
    made = sampler.fit(five_gaussians).sample(2000)
    start = np.random.RandomState(1).randn(2000, 2) * five_gaussians.std(0)
    before, after = (
        sliced_wasserstein_distance(five_gaussians, X, random_state=0) for X in (start, made)
    )
    assert after < 0.5 * before
    assert sampler.epsilon_ == math.inf


# Releases, and what they cost.


def count_releases(sampler, X, y=None):
    seen = []
    original = Curator.release

    def spy(self, mechanism):
        seen.append(mechanism.name)
        return original(self, mechanism)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Curator, "release", spy)
        with contextlib.suppress(PlanError):  # an attempt counts, too
            sampler.fit(X, y)
    return seen


@pytest.mark.catches(
    "generators._sliced_flow:DPSWFlowSampler._learn_rows",
    "itertools.repeat(sliced.make(), n_steps)",
    "iter([curator.release(sliced.mechanism) for _ in range(n_steps)])",
)
def test_presample_releases_once_and_resample_at_each_step(five_gaussians):
    X = five_gaussians[:300]
    assert count_releases(make(epsilon=1.0, release="presample", n_steps=7), X) == ["sliced rows"]
    resampled = count_releases(make(epsilon=1.0, **steps_of("resample", 7)), X)
    assert resampled == ["sliced rows"] * 7
    assert count_releases(make(epsilon=1.0, n_steps=2), X) == ["slice sketch"]


def test_free_steps_cost_nothing(five_gaussians):
    X = five_gaussians[:300]
    few, many = (make(epsilon=1.0, release="presample", n_steps=n).fit(X) for n in (3, 30))
    assert few.privacy_ == many.privacy_
    assert len(many.loss_curve_) == many.n_iter_ == 30


@pytest.mark.parametrize(("n_samples", "sampled"), [(300, False), (5000, True)])
def test_the_event_of_presample(n_samples, sampled):
    certificate = preview(make(epsilon=2.0, release="presample"), n_samples, 8)
    (event,) = certificate.events
    event, count = split_repetition(event)
    assert count == 1
    assert isinstance(event, PoissonSampledDpEvent) == sampled
    base = event.event if sampled else event
    # √8 is about 3, at least 4, and 8 times as many directions.
    assert base == SlicedGaussianDpEvent(base.noise_multiplier, 8, 32, orthogonal=True)
    assert 1.9 < certificate.epsilon <= 2.0


class Halving:
    """An encoder that is public: whoever fits it on private rows is found out."""

    def fit(self, X, y=None):
        raise AssertionError("An encoder was fitted on private rows.")

    def transform(self, X):
        return X / 2

    def inverse_transform(self, X):
        return 2 * X


@pytest.mark.catches(
    "base:BaseGenerator._fit",
    "n_samples, max_rows = dataset.n_records, dataset.max_rows",
    """
    n_samples, max_rows = dataset.n_records, dataset.max_rows
    split_encoder(self.encoder)[0].fit(dataset._held[0][0])
    """,
)
@pytest.mark.parametrize("encoder", [Halving(), [Halving(), PrivatePCA(2)]])
@pytest.mark.parametrize("release", RELEASES)
def test_public_encoders_are_not_fitted(five_gaussians, release, encoder):
    sampler = make(**steps_of(release, 20), encoder=encoder).fit(five_gaussians)
    assert "fitted on public data" in str(sampler.privacy_)
    assert np.abs(sampler.sample(500)).max() < 2.5


# Particles and samples.


def test_number_of_particles(five_gaussians):
    assert make(n_steps=2, n_particles=77).fit(five_gaussians)._rows.rows.shape == (1, 77, 2)
    X, y = five_gaussians[:90], np.arange(90) % 3
    fitted = make(n_steps=2, n_particles=50, classes=[0, 1, 2]).fit(X, y)
    assert fitted._rows.rows.shape == (3, 16, 2)


@pytest.mark.parametrize("release", RELEASES)
def test_public_rows_to_start_from(five_gaussians, release):
    """After one short step particles of each class are near public rows, not near private ones."""
    init, classes = np.array([[0.9, 0.0], [0.0, 0.9], [-0.9, 0.0]]), np.arange(2000) % 2
    sampler = make(**steps_of(release, 1, n_projections=4), init=init, learning_rate=1e-3)
    with pytest.warns(PrivacyLeakWarning, match="classes"):
        particles = sampler.fit(five_gaussians, classes)._rows.rows
    assert particles.shape == (2, 500, 2)
    away = cdist(particles.flatten(0, 1), init)
    assert away.min(axis=1).max() < 0.4
    assert set(away[:500].argmin(axis=1)) == set(away[500:].argmin(axis=1)) == {0, 1, 2}
    inferred, started = sampler.privacy_.assumptions[:2]
    assert inferred == "the set of classes, inferred from y, is public"
    assert started == "the rows in init are public"


@pytest.mark.parametrize("encoder", ["dp-pca", None])
def test_sketch_outweighs_the_start(five_gaussians, encoder):
    params = {"encoder": encoder, **steps_of("sketch", 200, n_harmonics=12)}
    start = np.random.RandomState(1).uniform(-0.6, 0.6, (400, 2))
    made = make(init=start, **params).fit(five_gaussians).sample(2000)
    before, after = (
        sliced_wasserstein_distance(five_gaussians, X, random_state=0) for X in (start, made)
    )
    assert after < 0.5 * before


@pytest.mark.parametrize("encoder", [None, LowFrequencies(10), PCA(100)])
def test_windows_are_of_pixels(encoder, monkeypatch):
    """Half of the slices see windows of images, also where an encoder is linear and known."""
    X, drawn = np.random.default_rng(0).random((300, 144)), []

    def draw(shape, n_windows, generator):
        drawn.append((shape, n_windows))
        return draw_windows(shape, n_windows, generator)

    monkeypatch.setattr(box, "draw_windows", draw)
    both = PrivatePCA(8) if encoder is None else [FrozenEstimator(encoder.fit(X)), PrivatePCA(8)]
    make(bounds=(0, 1), encoder=both, n_steps=1, release=SliceSketch(40)).fit(X)
    assert drawn == ([] if isinstance(encoder, PCA) else [((1, 12, 12), 20)])


@pytest.mark.parametrize("n", [10, 5000])
def test_the_smoothed_bootstrap_keeps_means_and_variances(five_gaussians, n):
    sampler = make(n_steps=200, n_particles=200).fit(five_gaussians)
    particles = sampler._rows.rows[0].numpy()
    made = sampler.sample(n)
    assert made.shape == (n, 2)
    if n > 200:
        assert_allclose(made.mean(0), particles.mean(0), atol=0.01)
        assert_allclose(made.std(0), particles.std(0), rtol=0.03)
        assert len(np.unique(made, axis=0)) == n


@pytest.mark.parametrize("diffusion", [0.0, 0.05])
def test_diffusion_spreads_particles(diffusion, monkeypatch):
    monkeypatch.setattr(_sliced_flow, "_ANNEALED", 0.0)
    X = np.full((400, 2), 0.3)
    sampler = make(**steps_of("resample", 150), diffusion=diffusion).fit(X)
    spread = sampler.sample(1000).std()
    assert spread < 0.05 if diffusion == 0 else spread > 0.1


def test_the_bootstrap_is_shrunk_by_what_the_jitter_adds():
    """Without it variances would be 1 % too large."""
    rows = torch.randn(1, 50, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    made = Particles(rows).sample(torch.zeros(10**6, dtype=int), torch.Generator().manual_seed(1))
    # All particles are drawn as often; the jitter moves the ratio by 2e-4 (standard error).
    assert_allclose(made.var(0) / rows[0].numpy().var(0), 1, atol=0.002)


def test_rows_get_the_energy_that_components_leave_out():
    generator = torch.Generator().manual_seed(0)
    axes = torch.linalg.qr(torch.rand(200, 2, generator=generator) + 0.5).Q
    axes *= axes.sum(0).sign()
    rows = torch.tensor([2.0, 0.0]) + 0.2 * torch.rand(2, 50, 2, generator=generator)
    shares, top = np.array([0.25, 0.75]), 0.3
    decoded = rows @ axes.T
    assert 0 < decoded.min() < decoded.max() < top
    held = (decoded.square().sum(2).mean(1) * torch.tensor(shares)).sum().item()
    components = PrincipalComponents(axes, torch.ones(2), energy=1.05 * held)
    classes = torch.tensor([0, 1, 1, 1]).repeat(5_000)
    particles = Particles(rows, components, shares, top)
    made = particles.sample(classes, torch.Generator().manual_seed(1))
    assert_allclose(np.square(made).sum(1).mean(), 1.05 * held, rtol=0.004)
    # Components of the rows are as they are without noise.
    particles._residual = 0.0
    plain = particles.sample(classes, torch.Generator().manual_seed(1))
    assert_allclose((made - plain) @ axes.numpy(), 0, atol=1e-5)


@pytest.mark.parametrize("value", [0.0, 0.3])
def test_residual_noise_vanishes_at_bounds(value):
    """Here all features are at one of their bounds."""
    axes = torch.full((9, 1), 1 / 3)
    components = PrincipalComponents(axes, torch.ones(1), energy=9.0)
    particles = Particles(torch.full((1, 5, 1), 3 * value), components, np.ones(1), 0.3)
    made = particles.sample(torch.zeros(40, dtype=int), torch.Generator().manual_seed(0))
    assert_allclose(made, value, atol=1e-4)


def test_energy_that_is_held_adds_no_noise():
    rows = torch.rand(1, 50, 2, generator=torch.Generator().manual_seed(0))
    made = [
        Particles(rows, PrincipalComponents(torch.eye(2), torch.ones(2), energy=energy), *given)
        for energy, given in ((0.1, (np.ones(1), 1.0)), (9.0, ()))
    ]
    classes = torch.zeros(99, dtype=int)
    assert_array_equal(*(part.sample(classes, torch.Generator().manual_seed(1)) for part in made))


@pytest.mark.parametrize(("step_size", "diffusion"), [(0.1, 0.02), (1e-3, 0.5)])
def test_a_step_of_the_flow_diffuses_by_its_length(step_size, diffusion):
    """By √(2λh) z, of equation 18, where particles are as records are: at 0."""
    released = ProjectedRows(np.zeros((1, 2, 10)), torch.eye(2, dtype=torch.float64), 0.0)
    rows, _, _ = flow_along_slices(
        torch.zeros(1, 20_000, 2),
        SlicedRowsMechanism(2),
        iter([released]),
        step_sizes=[step_size],
        diffusion=diffusion,
        batch_size=10,
        generator=torch.Generator().manual_seed(0),
    )
    # 40,000 numbers: six standard errors are 2.2 %.
    assert rows.std() == pytest.approx(math.sqrt(2 * diffusion * step_size), rel=0.022)


@pytest.mark.parametrize("share", [0.1, 0.25, 0.5, 1.0])
def test_particles_of_a_class_have_as_many_zeros_as_records_have(share):
    projected, real = torch.ones(3, 40), torch.ones(3, 70)
    made, kept = _smooth(projected, real, share, 1e-9, torch.Generator())
    assert made.round().sum(1).tolist() == [40] * 3
    assert made.shape[1] == round(40 / share)
    assert kept is real


def test_annealing_is_the_share_of_steps_in_which_they_shorten(monkeypatch):
    taken = []

    def watched(*args, step_sizes, **kwargs):
        taken.append(step_sizes)
        return flow_along_slices(*args, step_sizes=step_sizes, **kwargs)

    monkeypatch.setattr("skdpgen.learners.particles.flow_along_slices", watched)
    X = np.zeros((20, 2))
    assert _sliced_flow._ANNEALED == 0.5
    for annealing in (0.0, 0.5, 1.0):
        monkeypatch.setattr(_sliced_flow, "_ANNEALED", annealing)
        make(release="presample", n_steps=8, learning_rate=0.4).fit(X)
    falling = 0.1 * np.arange(4, 0, -1)
    assert_allclose(taken[0], np.full(8, 0.4))
    assert_allclose(taken[1], np.r_[np.full(4, 0.4), falling])
    assert_allclose(taken[2], 0.05 * np.arange(8, 0, -1))


# Bad parameters.


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"n_particles": 0}, "n_particles must be a positive whole number"),
        ({"diffusion": -1.0}, "diffusion must be"),
        ({"release": SlicedRows(n_steps=1, sampling="fixed")}, "replace_one"),
        (
            {"release": "resample", "n_steps": 5},
            r"n_steps belongs to the release here: give release=SlicedRows\(n_steps=5\)",
        ),
        ({"init": np.zeros((5, 3))}, "init has 3 features, but X has 2"),
        ({"init": np.full((5, 2), np.nan)}, "init contains NaN"),
        ({"init": np.zeros((5, 2)), "schema": Schema({"a": Boolean()})}, "init is for arrays"),
    ],
)
def test_bad_parameters(five_gaussians, params, match):
    with pytest.raises(ValueError, match=match):
        make(**params).fit(five_gaussians)


class Logarithm(FunctionTransformer):
    def __init__(self):
        super().__init__(np.log, np.exp)


def test_bad_public_rows_cost_nothing(five_gaussians):
    own = {"epsilon": 1.0, "random_state": None}
    X, frame = five_gaussians + 2, pd.DataFrame(five_gaussians, columns=["a", "b"])
    with PrivacyBudget(5.0, 1e-5) as budget:
        with pytest.raises(ValueError, match="init cannot be combined with a numeric y"):
            make(**own, init=X).fit(X, X[:, 0])
        with (
            np.errstate(all="ignore"),
            pytest.raises(ValueError, match="init holds NaN or infinite numbers after the encoder"),
        ):
            make(**own, init=-X, encoder=Logarithm()).fit(X)
        with pytest.raises(ValueError, match="feature names"):
            make(**own, init=frame[["b", "a"]], encoder="dp-pca").fit(frame)
        assert budget.spent == 0
        make(**own, init=frame, n_steps=1).fit(frame)
        assert budget.spent > 0


@pytest.mark.catches(
    "curator.dataset:Dataset.list_assumptions", "(_UNTYPED,) * self._is_untyped", "()", param="nan"
)
@pytest.mark.parametrize("last", [1, None, np.nan, 0.5])
def test_a_list_of_labels_states_that_its_cells_decide_what_it_holds(last):
    """One cell turns classes into numbers; declared, both are as they are declared."""
    X, y = np.random.default_rng(0).normal(size=(40, 2)), [0, 1] * 19 + [0, last]
    sampler = DPSWFlowSampler(1.0, 1e-5, bounds=(-3, 3), n_steps=1, n_particles=20)
    text = "whether y, a list without a dtype, holds numbers or classes is public"
    with pytest.warns(PrivacyLeakWarning, match="public"):
        assert text in sampler.fit(X, y).privacy_.assumptions
    for given, params in (
        (y, {"classes": [0, 1]}),
        (y, {"y_bounds": (0, 1)}),
        (np.linspace(0, 1, 40), {}),
    ):
        fitted = DPSWFlowSampler(**sampler.get_params() | params).fit(X, given)
        assert text not in fitted.privacy_.assumptions
