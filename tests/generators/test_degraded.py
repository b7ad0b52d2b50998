"""Degraded releases: their noise, their claim alone and beside the first one, and refusals."""

import functools
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from dp_accounting import GaussianDpEvent, get_epsilon_gaussian
from scipy import stats

from skdpgen import DPSWFlowSampler, compose
from skdpgen.auditing.statistics import std_upper_bound
from skdpgen.curator.curator import find_digest
from skdpgen.inference import estimate
from skdpgen.mechanisms.two_way import TablesMechanism
from skdpgen.privacy import DegradedGaussianDpEvent, NoiseSource, verify
from skdpgen.releases import degrading, from_release, merge
from skdpgen.streams import ReleaseStream

from ..mechanisms.common import Blocks, assert_variance
from .test_published import SCHEMA, fit_table, make_table

pytestmark = pytest.mark.filterwarnings("ignore")

PERSONS = {"persons": np.arange(400) // 2}
WAYS = {
    "plain": ({}, {}),
    "by level": ({}, {"target": "city"}),
    "replaced": ({"relation": "replace_one", "accountant": "rdp"}, {}),
    "inferred": ({"schema": "auto"}, {"target": "age"}),
    "persons": ({"max_rows_per_person": 2}, PERSONS),
}


@functools.cache
def fit(way="plain", seed=0):
    params, given = WAYS[way]
    sampler = DPSWFlowSampler(8.0, n_steps=2, **({"schema": SCHEMA} | params))
    return sampler.fit(make_table(seed=seed), **given).release_.published


def list_numbers(tables):
    return np.append(tables.cells, tables.columns / math.sqrt(2))


@pytest.mark.catches(
    "releases.degrading:degrade",
    "math.sqrt(max(0.0, ratio**2 * (1 + _MARGIN) - 1))",
    "(ratio - 1)",
    param="plain",
)
@pytest.mark.catches("releases.degrading:degrade", "more.add_noise(NoiseSource())", "noisy / scale")
@pytest.mark.catches(
    "releases.degrading:degrade",
    "((certificate.digest, find_digest(values)),)",
    "((find_digest(values),),)",
    param="plain",
)
@pytest.mark.parametrize("way", WAYS)
def test_each_release_costs_what_it_claims_and_both_what_the_first_does(way, tmp_path):
    first, epsilon = fit(way), 6.0 if way == "inferred" else 2.0
    made = first.degrade(epsilon)
    certificate, n = made.certificate, first.n_inferred
    assert epsilon * 0.999 < verify(certificate) <= epsilon
    assert certificate.events[:-1] == first.certificate.events[:n]
    assert type(certificate.events[-1]) is DegradedGaussianDpEvent
    assert len(made.values) == len(certificate.events) == n + 1
    ratio = certificate.events[-1].noise_multiplier / first.certificate.events[n].noise_multiplier
    assert made.main.pairs_std == pytest.approx(ratio * first.main.pairs_std)
    others = [made, *(first.degrade(epsilon) for _ in range(3 if way == "inferred" else 8))]
    added = [list_numbers(one.main) - list_numbers(first.main) for one in others]
    assert_variance(added, first.main.pairs_std * math.sqrt(ratio**2 - 1))
    # Whoever has both knows what the first tells, in any order.
    for both in ((first, made), (made, first), (made, first, made)):
        composed = compose(*(one.certificate for one in both))
        assert composed.events == first.certificate.events
    # Two with other noise tell more than one.
    assert len(compose(certificate, others[1].certificate).events) == 2 * (n + 1)
    assert compose(certificate, certificate).events == certificate.events
    made.save(tmp_path / "made")
    fitted = from_release(tmp_path / "made", DPSWFlowSampler(n_steps=2))
    assert fitted.privacy_.epsilon == certificate.epsilon
    assert fitted.sigma_ == pytest.approx(ratio * first.plan.sigma)
    fitted.save(tmp_path / "fitted")
    if way == "plain":
        found = estimate(fitted, lambda rows: (rows.smokes == "yes").mean())
        before = estimate(from_release(first, fitted), lambda rows: (rows.smokes == "yes").mean())
        assert found.noise.item() > 2 * before.noise.item()


def test_degraded_parts_are_merged_and_counted():
    parts = [fit(seed=seed) for seed in (0, 1)]
    a, b = (part.degrade(2.0) for part in parts)
    merged = merge(a, b)
    assert merged.certificate.events == a.certificate.events == b.certificate.events
    assert merged.main.pairs_std == pytest.approx(math.sqrt(2) * a.main.pairs_std)
    # The noise of each part is its own, though both sums are made of the same two releases.
    other = merge(a, parts[1].degrade(2.0))
    assert len(compose(merged.certificate, other.certificate).events) == 2
    # Their own multi-way tables count.
    beside = compose(*(one.certificate for one in (merged, *parts)))
    assert len(beside.events) == 1 + sum(len(part.certificate.events) for part in parts)
    for twice in ((a, parts[0]), (a, parts[0].degrade(3.0)), (merged, parts[1])):
        with pytest.raises(ValueError, match="given twice"):
            merge(*twice, overlap=True)


@pytest.mark.catches("releases.degrading:degrade", "certificate.digest is None", "False")
@pytest.mark.catches(
    "mechanisms.two_way:TablesMechanism.restore",
    "all(np.array_equal(getattr(tables, n), getattr(again, n)) for n in names)",
    "True",
)
@pytest.mark.catches("releases.degrading:degrade", "(n, n + 1)", "(n, n + 3)")
@pytest.mark.catches("releases.degrading:degrade", "_LEAST_STEPS * ratio", "0")
@pytest.mark.catches(
    "releases.degrading:degrade",
    "noisy.size * math.log2(std * scale / ratio) < _LEAST_BITS",
    "False",
)
def test_what_cannot_be_degraded(monkeypatch):
    first = fit()
    with pytest.raises(ValueError, match=r"must be below 7\.\d+, the cost .* above 0.*got 8"):
        first.degrade(8.0)
    with monkeypatch.context() as patch:
        patch.setattr(degrading, "_LEAST_BITS", 1e6)
        with pytest.raises(ValueError, match="the digest on the certificate would tell"):
            first.degrade(1.0)
    monkeypatch.setattr(degrading, "_LEAST_STEPS", 2.0**37)
    first.degrade(1.0)
    with pytest.raises(ValueError, match="too little noise for the grid"):
        first.degrade(7.5)
    with pytest.raises(ValueError, match="above 3"):
        fit("inferred").degrade(0.1)
    rows = make_table().assign(period="a")
    stream = ReleaseStream(8.0, ["a", "b"], SCHEMA).update(rows).release_
    for several in (first.degrade(2.0), stream, merge(first, fit(seed=1))):
        with pytest.raises(ValueError, match="tables of a single fit"):
            several.degrade(1.0)
    X = np.random.default_rng(0).uniform(0, 1, (100, 2))
    sketch = DPSWFlowSampler(8.0, bounds=(0, 1), n_steps=2).fit(X).release_.published
    with pytest.raises(ValueError, match="Only two-way tables"):
        sketch.degrade(1.0)
    with pytest.raises(ValueError, match="finite epsilon"):
        fit_table(epsilon=math.inf).release_.published.degrade(1.0)
    # Other numbers than the mechanism releases are not on its grid.
    tables = replace(first.main, cells=first.main.cells + 1e-9)
    values = (tables, *first.values[1:])
    digests = ((find_digest(values),),) * len(first.certificate.events)
    certificate = replace(first.certificate, digests=digests)
    edited = replace(first, values=values, certificate=certificate, digest=None)
    with pytest.raises(ValueError, match="not those of the mechanism"):
        edited.degrade(2.0)


@pytest.mark.catches(
    "mechanisms.two_way:TablesMechanism.query", "max(0, largest - MOST_BITS)", "0", param="30"
)
@pytest.mark.parametrize("bits", [3, 20, 30, 40])
def test_whole_numbers_are_known_from_tables(bits):
    """Also those of sums that doubles do not hold."""
    sizes, codes = (4, 3, 2), torch.tensor([[1.5, 2.0, 1.0]] * 6).double()
    source = Blocks(codes, n_records=2**bits)
    mechanism, event = TablesMechanism(sizes), GaussianDpEvent(3.0)
    measured = mechanism.query(source, event, "zero_out", NoiseSource(0))
    measured.exact[:5] += (2**bits - 1) * np.int64(measured.scale / mechanism.records)
    noisy = measured.add_noise(NoiseSource(1))
    whole = noisy * measured.released_scale
    assert (measured.n_dropped > 0) == (bits > 12)
    assert measured.grid_std.min() / 2**measured.n_dropped > 2**10
    tables = mechanism.postprocess(noisy, measured)
    np.testing.assert_array_equal(mechanism.restore(tables, measured), whole)


def test_rounded_noises_add_up_to_gaussian_noise():
    """The bound of the proof, where it is large enough to be seen, and in use."""
    z, bounds = np.arange(-30, 31) + 0.3, {}

    def second_integral(x):
        return x * stats.norm.cdf(x) + stats.norm.pdf(x)

    for std in (0.5, 0.7, 1.0, 1.5):
        # For an exact sum of 0.3 on the grid, and a sum of both noises of variance 2 std².
        near = np.arange(-60, 61) + 0.3
        law = np.diff(stats.norm.cdf(np.append(near, near[-1] + 1) - 0.5, scale=std))
        other = np.diff(stats.norm.cdf(np.arange(-61, 62) - 0.5, scale=std))
        both = np.convolve(law, other)[len(near) // 2 + 31 : len(near) // 2 + 31 + len(z)]
        scale = math.sqrt(2) * std
        ends = np.stack([z - 1, z, z + 1]) / scale
        ideal = scale * np.diff(second_integral(ends), n=2, axis=0)[0]
        # Far out, doubles are too coarse.
        seen = ideal > 1e-9
        bounds[std] = 2 * math.exp(-2 * math.pi**2 * std**2 / 2)
        error = np.abs(both / ideal - 1)[seen].max()
        assert error < bounds[std] * 1.01 + 1e-6
        assert error > bounds[std] / 20 or bounds[std] < 1e-6
    assert 2.1 * math.exp(-2 * math.pi**2 * degrading._LEAST_STEPS**2) < 1e-136


@pytest.mark.slow
@pytest.mark.parametrize("relation", ["zero_out", "replace_one"])
def test_audit_of_the_claim_alone(relation):
    """A test that knows all records but one finds nearly the ε of the certificate, and no more."""
    sampler = DPSWFlowSampler(8.0, 1e-5, schema=SCHEMA, n_steps=2, relation=relation)
    first, n_runs = sampler.fit(make_table(40)).release_.published, 1500
    sizes = first.format.code_sizes
    mechanism, event = TablesMechanism(sizes), first.plan.releases[0][1]
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(0, size, 40) for size in sizes]).astype(float)
    neighbours = [codes.copy() for _ in range(2)]
    neighbours[0][0], neighbours[1][0] = 0, np.array(sizes) - 1
    if relation == "zero_out":
        neighbours[1] = neighbours[1][1:]
    sources = [Blocks(torch.tensor(rows), n_records=40) for rows in neighbours]
    exact = [
        mechanism.postprocess(measured.exact / measured.scale, measured)
        for measured in (mechanism.query(s, event, relation, NoiseSource(0)) for s in sources)
    ]
    moved = np.subtract(*map(list_numbers, exact))
    distance, residuals = np.linalg.norm(moved), []
    for i in range(n_runs):
        tables = mechanism.run(sources[i % 2], event, relation=relation, noise=NoiseSource())
        digests = ((find_digest((tables,)),),)
        certificate = replace(first.certificate, events=(event,), releases=("a",), digests=digests)
        made = replace(first, values=(tables,), certificate=certificate, digest=None).degrade(2.0)
        left = list_numbers(made.main) - list_numbers(exact[i % 2])
        residuals.append(left @ moved / distance)
    mu = distance / std_upper_bound(np.array(residuals), 0.01)
    found = get_epsilon_gaussian(1 / mu, 1e-5)
    assert 0.85 * 2.0 < found <= 2.0
    assert stats.kstest(np.array(residuals) / np.std(residuals), "norm").pvalue > 1e-3
