"""Results depend on no state of the process, which public methods leave as it was."""

import contextlib
import decimal
import threading

import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from numpy.testing import assert_array_equal
from torch import nn

from skdpgen import (
    DPHistorySampler,
    DPSlicedWassersteinGenerator,
    DPSWDDomainAdapter,
    DPSWFlowSampler,
    LDPEntropicGAN,
    Number,
    Schema,
)
from skdpgen._process.isolation import isolated, seeded
from skdpgen.adaptation import DPSWDDomainClassifier
from skdpgen.preprocessing import DPPCA, LocalPrivatizer
from skdpgen.privacy import preview
from skdpgen.releases import from_release
from skdpgen.streams import ReleaseStream

rng = np.random.default_rng(0)
X, y = rng.random((300, 4)), rng.integers(0, 2, 300)
TABLE = pd.DataFrame({"a": 100 * X[:, 0], "b": rng.choice(["u", "v"], 300), "c": X[:, 1] > 0.5})
HISTORIES = {
    "persons": pd.DataFrame({"id": range(100), "b": ["u", "v"] * 50}),
    "rows": pd.DataFrame({"id": [i // 3 for i in range(300)], "a": X[:, 0]}),
}
ARRAY = {"bounds": (0, 1), "n_steps": 3, "random_state": 0}


pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


class Set:
    """Sets what a function of torch sets, and restores it."""

    def __init__(self, name, value, default):
        self.set = getattr(torch, name)
        self.value, self.default = value, default

    def __enter__(self):
        self.set(self.value)

    def __exit__(self, *exc_info):
        self.set(self.default)


def exact():
    return decimal.localcontext(decimal.Context(prec=2, traps=[decimal.Inexact]))


STATES = {
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
    "config": lambda: sklearn.config_context(transform_output="pandas", assume_finite=True),
    "decimal": exact,
    "default device": lambda: torch.device("meta"),
    "default dtype": lambda: Set("set_default_dtype", torch.float64, torch.float32),
    "error state": lambda: np.errstate(all="raise"),
    "inference mode": torch.inference_mode,
    "no gradients": torch.no_grad,
    "precision": lambda: Set("set_float32_matmul_precision", "medium", "highest"),
}


def sample(estimator, *args, **kwargs):
    drawn = estimator.fit(*args, **kwargs).sample(20, random_state=1)
    return drawn if isinstance(drawn, tuple | dict) else (drawn,)


def draw_batches():
    sampler = DPSWFlowSampler(5.0, n_steps=3, random_state=0).fit(TABLE)
    return tuple(sampler.sample_batches(20, 10, random_state=1))


def update():
    schema = Schema({"a": Number(0, 100, n_knots=5)})
    stream = ReleaseStream(np.inf, ["old", "new"], schema, period="when")
    stream.update(TABLE[["a"]].assign(when="old"))
    return (stream.release_.main.cells,)


def go_on():
    sampler = DPSWFlowSampler(5.0, n_steps=3, random_state=0).fit(TABLE)
    return (from_release(sampler.release_, sampler).sample(20, random_state=1),)


def score():
    sampler = DPSWFlowSampler(5.0, **ARRAY).fit(X)
    return sampler.score(X), sampler.project(X)


def predict():
    classifier = DPSWDDomainClassifier(5.0, n_steps=3, random_state=0).fit(X, y, X_target=X)
    return np.asarray(classifier.transform(X)), classifier.predict_proba(X)


def transform(estimator):
    rows = np.asarray(estimator.fit(X).transform(X))
    return rows, np.asarray(estimator.inverse_transform(rows))


VERBS = {
    "sketch": lambda: sample(DPSlicedWassersteinGenerator(5.0, **ARRAY), X, y),
    "rows": lambda: sample(DPSWFlowSampler(5.0, release="presample", **ARRAY), X, y),
    "inferred": lambda: sample(DPSWFlowSampler(5.0, n_steps=3, random_state=0), X),
    "table": lambda: sample(DPSWFlowSampler(5.0, n_steps=3, random_state=0), TABLE),
    "batches": draw_batches,
    "histories": lambda: tuple(
        sample(
            DPHistorySampler(9.0, max_rows_per_person=3, n_steps=3, random_state=0),
            HISTORIES,
            persons="id",
            order="a",
        ).values()
    ),
    "local": lambda: sample(LDPEntropicGAN(5.0, **ARRAY), X),
    "classifier": predict,
    "score": score,
    "update": update,
    "from_release": go_on,
    "components": lambda: transform(DPPCA(5.0, bounds=(0, 1), random_state=0)),
    "privatizer": lambda: transform(LocalPrivatizer(5.0, bounds=(0, 1), random_state=0)),
    "preview": lambda: (preview(DPSWFlowSampler(5.0), TABLE).epsilon,),
}


def check(made, expected):
    for one, other in zip(made, expected, strict=True):
        assert type(one) is type(other)
        if isinstance(one, pd.DataFrame):
            pd.testing.assert_frame_equal(one, other)
        else:
            assert_array_equal(one, other)


@pytest.mark.parametrize("verb", VERBS)
def test_results_are_those_of_the_defaults_in_any_state(verb):
    expected, before = VERBS[verb](), torch.get_rng_state()
    with contextlib.ExitStack() as stack:
        for enter in STATES.values():
            stack.enter_context(enter())
        made = VERBS[verb]()
        assert not torch.is_grad_enabled()
        assert torch.is_inference_mode_enabled()
        assert torch.is_autocast_enabled("cpu")
        assert torch.get_default_device().type == "meta"
        assert torch.get_default_dtype() is torch.float64
        assert torch.get_float32_matmul_precision() == "medium"
    assert torch.equal(torch.get_rng_state(), before)
    check(made, expected)


@pytest.fixture(scope="module")
def expected():
    return VERBS["classifier"](), VERBS["table"]()


def make_noisy(n_inputs, n_outputs):
    return nn.Sequential(
        nn.Linear(n_inputs, 16), nn.Dropout(0.5), nn.ReLU(), nn.Linear(16, n_outputs)
    )


@pytest.mark.parametrize(
    "verb",
    [
        lambda seed: sample(
            DPSlicedWassersteinGenerator(
                5.0, bounds=(0, 1), n_steps=5, network=make_noisy, random_state=seed
            ),
            X,
        ),
        lambda seed: sample(
            LDPEntropicGAN(5.0, bounds=(0, 1), n_steps=5, network=make_noisy, random_state=seed), X
        ),
        lambda seed: (
            DPSWDDomainAdapter(
                5.0, n_steps=5, n_components=4, network=make_noisy, random_state=seed
            )
            .fit(X, y, X_target=X)
            .transform(X),
        ),
    ],
    ids=["generator", "local", "adapter"],
)
def test_dropout_follows_from_the_seed_and_moves_no_global_generator(verb):
    seeds = 0, np.random.RandomState(0), np.random.RandomState(0), 1
    first, second, third, other = (verb(seed) for seed in seeds)
    check(second, third)
    assert not np.array_equal(first[0], other[0])
    with torch.random.fork_rng(devices=[]):
        torch.rand(3)
        before = torch.get_rng_state()
        check(verb(0), first)
        assert torch.equal(torch.get_rng_state(), before)


def test_with_a_seed_rows_do_not_depend_on_the_number_of_threads():
    before = torch.get_num_threads()
    try:
        made = {}
        for n_threads in (1, 3):
            torch.set_num_threads(n_threads)
            made[n_threads] = sample(
                LDPEntropicGAN(5.0, bounds=(0, 1), n_steps=30, random_state=0), X
            )
            assert torch.get_num_threads() == n_threads
        check(made[1], made[3])
        # Without a seed results differ anyway, and all threads are used.
        with isolated():
            assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_callers_have_their_own_state_between_batches():
    sampler = DPSWFlowSampler(5.0, n_steps=3, random_state=0).fit(TABLE)
    with STATES["default dtype"](), torch.no_grad(), STATES["decimal"]():
        for _ in sampler.sample_batches(20, 10):
            assert torch.get_default_dtype() is torch.float64
            assert not torch.is_grad_enabled()
            assert decimal.getcontext().prec == 2


def test_threads_that_overlap_leave_the_process_as_it_was():
    entered, left = threading.Event(), threading.Event()
    before, n_threads = torch.get_rng_state(), torch.get_num_threads()
    # The number of threads that new ones compute on.
    started = []
    new = threading.Thread(target=lambda: started.append(torch.get_num_threads()))

    def stay():
        with isolated(1):
            entered.set()
            left.wait(60)

    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(3)
    try:
        other = threading.Thread(target=stay)
        with isolated(2):
            other.start()
            assert entered.wait(60)
        # The other thread still relies on it.
        assert torch.get_default_dtype() is torch.float32
        left.set()
        other.join()
        assert torch.get_default_dtype() is torch.float64
        assert torch.equal(torch.get_rng_state(), before)
        new.start()
        new.join()
        assert started == [3]
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_num_threads(n_threads)


@pytest.mark.catches(
    "_process.isolation:_seeded_anew",
    "with _generator_lock:\n    state.enter_context(_forked_generators(seed, gpus))",
    "state.enter_context(_forked_generators(seed, gpus))",
)
def test_no_thread_seeds_while_another_draws_weights():
    entered, left = threading.Event(), threading.Event()

    def stay():
        with isolated(1):
            entered.set()
            left.wait(60)

    def draw(generator=None):
        return [torch.rand(3, generator=generator).tolist() for _ in range(2)]

    other = threading.Thread(target=stay)
    with seeded(7):
        other.start()
        # It waits, however long; without the lock it enters at once.
        entered.wait(0.2)
        drawn = draw()
    left.set()
    other.join()
    assert entered.is_set()
    assert drawn == draw(torch.Generator().manual_seed(7))
