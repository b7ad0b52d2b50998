"""Estimates with error bars: exact projections, noise, coverage and refusals."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from skdpgen import Category, DPSlicedWassersteinGenerator, DPSWFlowSampler, Number, Schema
from skdpgen.inference import estimate, estimate_quantiles
from skdpgen.inference.estimates import _bound_quantile
from skdpgen.inference.influence import Statistic
from skdpgen.inference.model import Model
from skdpgen.inference.projection import Features
from skdpgen.releases import from_release
from skdpgen.streams import ReleaseStream
from skdpgen.tables import Derived

KNOTS = [0, 10, 30, 60, 100]
SCHEMA = Schema(
    {
        "x": Number(0, 100, knots=KNOTS),
        "group": Category(["a", "b", "c", "d"]),
        "flag": Category(["no", "yes"]),
    }
)


def draw(n_rows, seed, effect=10.0):
    rng = np.random.default_rng(seed)
    group = rng.choice(list("abcd"), n_rows)
    flag = rng.random(n_rows) < np.where(group == "a", 0.3, 0.6)
    x = rng.gamma(2, 10, n_rows) + effect * (group == "b") + 5 * flag
    return pd.DataFrame({"x": x.clip(0, 100), "group": group, "flag": np.where(flag, "yes", "no")})


def fit(frame=None, cls=DPSWFlowSampler, target=None, **params):
    frame = draw(1500, 0) if frame is None else frame
    params = {"epsilon": 2.0, "schema": SCHEMA, "n_steps": 20} | params
    if cls is DPSWFlowSampler:
        params = {"n_particles": 200} | params
    return cls(**params).fit(frame, target=target)


def compute(frame):
    x, flag = frame["x"].to_numpy(float), (frame["flag"] == "yes").to_numpy(float)
    groups = {name: (frame["group"] == name).to_numpy() for name in "abc"}
    return {
        "mean": x.mean(),
        "share": groups["a"].mean(),
        "mean of a group": x[groups["b"]].mean(),
        "difference": flag[groups["c"]].mean() - flag[groups["a"]].mean(),
        "slope": np.cov(x, flag)[0, 1] / flag.var(),
    }


def test_means_follow_from_the_marginals():
    """The estimate has a closed form, whatever the model is."""
    sampler, n = fit(n_steps=1), 1500
    counts, std = sampler.release_.published.main.count_levels()
    # A constant has no noise, as the number of records is public: that with the least is taken out.
    centred = np.array(KNOTS) - np.mean(KNOTS)
    found = estimate(sampler, lambda frame: frame["x"].mean()).iloc[0]
    assert found.estimate == pytest.approx(np.mean(KNOTS) + centred @ counts[:5] / n, abs=0.05)
    assert found.noise == pytest.approx(np.linalg.norm(centred * std[:5]) / n, rel=0.02)
    sampling = np.sqrt(draw(1500, 0)["x"].var() / n)
    assert found.std_error == pytest.approx(np.hypot(found.noise, sampling), rel=0.1)
    assert found.not_released < 0.05 * found.std_error


def test_cells_that_the_model_lacks_count():
    """No synthetic row is near the last knot, whose count is within noise of 0."""
    knots = np.array([*KNOTS, 1000])
    schema = SCHEMA.replace({"x": Number(0, 1000, knots=knots.tolist())})
    sampler = fit(schema=schema, epsilon=0.5)
    counts, std = sampler.release_.published.main.count_levels()
    found = estimate(sampler, lambda frame: frame["x"].mean()).iloc[0]
    centred = knots - knots.mean()
    assert found.estimate == pytest.approx(knots.mean() + centred @ counts[:6] / 1500, abs=1)
    assert found.noise == pytest.approx(np.linalg.norm(centred * std[:6]) / 1500, rel=0.05)
    assert found.std_error > found.noise


@pytest.mark.parametrize(
    ("columns", "target"),
    [
        (["x"], None),
        (["x"], "flag"),
        (["x"], "group"),
        (["flag"], "group"),
        (["x", "flag"], None),
        (["x", "group", "flag"], "flag"),
    ],
)
def test_features_of_records_add_up_to_what_was_released(target, columns):
    frame, scores = draw(1500, 0), []
    for _ in range(3):
        sampler = fit(frame, target=target, n_steps=1)
        model = Model(sampler, 0)
        features = Features(model.tables, model.format, columns)
        exact = features.evaluate(frame).sum(0)
        scores.append((features.sums - exact) / features.std)
    scores = np.array(scores)
    used = features.std < 1e5
    size = scores[:, used].size
    mean_square = np.square(scores[:, used]).mean()
    assert mean_square == pytest.approx(1, abs=5 * np.sqrt(2 / size))


def test_influence_is_the_derivative():
    frame = draw(400, 1)
    statistic = Statistic(compute, frame)
    found = dict(zip(statistic.names, statistic.find_influence(frame, list(frame)).T, strict=True))
    x, is_b = frame["x"].to_numpy(), (frame["group"] == "b").to_numpy()
    np.testing.assert_allclose(found["mean"], x - x.mean(), atol=1e-6)
    centred = x - x[is_b].mean()
    # The share of the group grows by the row that is added.
    np.testing.assert_allclose(
        found["mean of a group"], is_b * centred * 401 / (is_b.sum() + 1), atol=1e-6
    )


def test_columns_are_found():
    frame = draw(500, 2)
    rng = np.random.default_rng(0)
    find = lambda function: Statistic(function, frame).find_columns(list(frame), rng)  # noqa: E731
    assert find(lambda frame: frame["x"].mean()) == ["x"]
    assert find(lambda frame: (frame["group"] == "a").mean()) == ["group"]
    assert find(compute) == ["x", "group", "flag"]
    # A statistic that fails for other values of a column depends on it.
    assert find(lambda frame: [0.0][int(frame["x"].sum() != draw(500, 2)["x"].sum())]) == ["x"]
    # Extremes change with few values only.
    assert find(lambda frame: frame["group"].nunique()) == ["group"]
    with pytest.raises(ValueError, match="depends on no column"):
        find(len)


@pytest.mark.parametrize(
    "cls", [DPSWFlowSampler, pytest.param(DPSlicedWassersteinGenerator, marks=pytest.mark.slow)]
)
def test_estimates_are_near_those_of_the_records(cls):
    """With little noise."""
    frame = draw(1500, 3)
    sampler = fit(frame, cls=cls, epsilon=20.0, n_steps=200)
    found = estimate(sampler, compute)
    errors = (found.estimate - pd.Series(compute(frame))) / found.noise
    assert (errors.abs() < 5).all()
    assert (found.noise < found.std_error).all()
    assert found.lower.notna().all()


def test_containers_and_y():
    frame, y = draw(600, 3), draw(600, 3)["flag"]
    sampler = DPSWFlowSampler(20.0, schema=SCHEMA, n_steps=20).fit(frame.drop(columns="flag"), y)
    found = estimate(sampler, compute)
    assert found.lower.notna().all()
    polars = pytest.importorskip("polars")
    sampler = fit(polars.from_pandas(frame), epsilon=20.0)
    assert estimate(sampler, lambda frame: frame["x"].to_numpy().mean()).lower.notna().all()


def test_estimates_of_streams():
    rows = draw(1500, 5).assign(period=np.arange(1500) % 2)
    stream = ReleaseStream(20.0, [0, 1], SCHEMA).update(rows[rows.period == 0]).update(rows)
    sampler = from_release(stream.release_, DPSWFlowSampler(n_steps=10))
    found = estimate(sampler, compute)
    errors = (found.estimate - pd.Series(compute(rows))) / found.noise
    assert (errors.abs() < 5).all()


def test_the_bound_of_a_bias_grows_with_the_misfit():
    """A threshold between knots; the same seed gives the same rows."""
    sampler = fit(n_steps=1)
    share = lambda frame: (frame["x"] > 20).mean()  # noqa: E731
    found = [estimate(sampler, share, misfit=m, random_state=0).iloc[0] for m in (0, 0.1, 0.2)]
    bias = [row.not_released for row in found]
    assert bias[0] == 0
    assert bias[2] == pytest.approx(2 * bias[1])
    assert bias[1] > 0
    assert len({row.estimate for row in found}) == 1
    other = estimate(sampler, share, misfit=0, level=0.5, random_state=0).iloc[0]
    half = stats.norm.ppf([0.975, 0.75]) * found[0].std_error
    assert [found[0].upper, other.upper] == pytest.approx(found[0].estimate + half)


def test_unreleased_statistics_get_no_interval():
    sampler = fit(epsilon=50.0, n_steps=10)

    def three_way(frame):
        return frame["x"][(frame["group"] == "b") & (frame["flag"] == "yes")].mean()

    found = estimate(sampler, lambda frame: {"three": three_way(frame), "mean": frame["x"].mean()})
    assert found.lower.isna().tolist() == [True, False]
    # A median is not smooth.
    found = estimate(sampler, lambda frame: frame["x"].median()).iloc[0]
    assert np.isnan(found.std_error)
    assert np.isnan(found.lower)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_statistics_that_single_rows_do_not_change_get_no_standard_error():
    """Many rows share each value, so that few rows more change no quantile."""
    schema = Schema({"age": Number(18, 80, decimals=0, knots=[18, 30, 50, 80])})
    frame = pd.DataFrame({"age": np.random.default_rng(0).integers(18, 81, 2000)})
    sampler = fit(frame, schema=schema, n_particles=2000)
    functions = ["median", "nunique", "max", lambda age: age.quantile(0.95)]
    found = estimate(sampler, lambda frame: frame["age"].agg(functions))
    assert found.estimate.notna().all()
    assert found[["std_error", "noise", "lower", "upper"]].isna().all(axis=None)


def test_quantiles_that_few_rows_change_are_not_smooth():
    """One row more moves the quantile between the two values that 95 % and 5 % of rows have."""
    values = np.repeat([10.0, 70.0], [950, 50])
    rows = pd.DataFrame({"x": values}).sample(frac=1, random_state=0)
    statistic = Statistic(lambda rows: rows["x"].quantile(0.95, "lower"), rows)
    probes = pd.DataFrame({"x": np.where(np.arange(300) == 200, 70.0, 10.0)})
    influence = statistic.find_influence(probes, ["x"])
    assert np.count_nonzero(influence) == 1
    assert not statistic.is_smooth(probes, influence).any()


@pytest.mark.parametrize("name", ["sum", "count", "centred", "standard error"])
def test_statistics_of_the_number_of_rows_are_refused(name):
    functions = {
        "sum": lambda x: x.sum(),
        "count": lambda x: (x > 40).sum(),
        "centred": lambda x: (x - 20).sum(),
        "standard error": lambda x: x.sem(),
    }

    def statistic(rows):
        return {"share": (rows["flag"] == "yes").mean(), name: functions[name](rows["x"])}

    with pytest.raises(ValueError, match=rf"Values \['{name}'\] .* public number of records"):
        estimate(fit(n_steps=1), statistic)


def test_corrected_variances_and_values_near_0_are_no_sums():
    rows = draw(3000, 13)
    rows["x"] -= rows["x"].mean()
    statistic = Statistic(lambda rows: rows["x"].agg(["mean", "var", "std", "skew"]), rows)
    statistic.check_repeated(statistic.find_influence(rows[:300], ["x"]))


def test_inferred_numbers_are_known_by_their_histograms():
    """Means of numbers do not follow from codes between inferred breakpoints."""
    frame = draw(4000, 11)
    sampler = DPSWFlowSampler(20.0, n_steps=50, n_particles=200).fit(frame)
    with pytest.warns(match="beyond their inferred bounds"):
        found = estimate(sampler, lambda frame: frame["x"].mean()).iloc[0]
    assert found.not_released < 0.3 * found.std_error
    assert abs(found.estimate - frame["x"].mean()) < 5 * found.noise


def test_interactions_are_measured():
    model = Model(fit(n_steps=1), 0)
    model.rows = draw(500, 12)
    corners, n_triples = model.draw_corners(["x", "group", "flag"])
    assert n_triples == 1
    is_b, is_on = (corners["group"] == "b").to_numpy(), (corners["flag"] == "yes").to_numpy()
    x = corners["x"].to_numpy()
    pairs = x * is_b + x**2 * is_on + is_b * is_on
    for function, is_zero in ((pairs, True), (x * is_b * is_on, False)):
        statistic = Statistic(lambda rows: rows["x"].mean(), model.rows)
        statistic.find_influence = lambda *args, function=function: function[:, None]
        found = statistic.measure_interactions(corners, n_triples, ["x", "group", "flag"])
        assert (found < 1e-8).all() == is_zero
    assert model.draw_corners(["x", "group"])[1] == 0


def test_missing_values():
    frame = draw(1500, 6)
    frame.loc[::5, "x"] = np.nan
    schema = SCHEMA.replace({"x": Number(0, 100, knots=KNOTS, missing=True)})
    sampler = fit(frame, schema=schema, epsilon=20.0)
    found = estimate(
        sampler, lambda frame: {"mean": frame["x"].mean(), "missing": frame["x"].isna().mean()}
    )
    truth = [frame["x"].mean(), 0.2]
    np.testing.assert_array_less(np.abs(found.estimate - truth), 5 * found.noise)


def test_absent_records_do_not_count():
    frame = draw(1500, 7)
    frame.loc[::3, "group"] = "undeclared"
    with pytest.warns(match="absent"):
        sampler = fit(frame, epsilon=20.0)
    with pytest.warns(match="About 33% of the records count as absent"):
        found = estimate(sampler, lambda frame: (frame["group"] == "a").mean()).iloc[0]
    present = frame[frame["group"] != "undeclared"]
    assert abs(found.estimate - (present["group"] == "a").mean()) < 5 * found.noise


def test_bounds_of_distribution_functions_hold_for_each_value():
    sampler = fit(n_steps=1)
    model = Model(sampler, 0)
    block = model.find_number("x")
    features = Features(model.tables, model.format, ["x"])
    for seed in range(20):
        rng = np.random.default_rng(seed)
        values = rng.choice(rng.uniform(0, 100, 4), 500)
        frame = pd.DataFrame({"x": values, "group": "a", "flag": "no"})
        features.sums, features.std = features.evaluate(frame).sum(0), np.zeros(5)
        for quantile in (0.1, 0.5, 0.9):
            lower, upper = _bound_quantile(block, features, (), quantile, 0.95)
            assert lower <= np.quantile(values, quantile, method="inverted_cdf") <= upper


def test_quantiles():
    knots = np.linspace(0, 100, 41).tolist()
    schema = SCHEMA.replace({"x": Number(0, 100, knots=knots)})
    frame, truth = draw(3000, 8), draw(1_000_000, 9)["x"].quantile([0.25, 0.5, 0.75])
    for sampler, widest in ((fit(frame, schema=schema, epsilon=20.0), 7.5), (fit(frame), 60)):
        found = estimate_quantiles(sampler, "x")
        assert found.lower.lt(truth).all()
        assert found.upper.gt(truth).all()
        assert found.estimate.between(found.lower, found.upper).all()
        assert (found.upper - found.lower).max() <= widest


def test_statistics_that_cannot_be_estimated_are_refused():
    frame = draw(300, 0)
    persons = DPSWFlowSampler(8.0, schema=SCHEMA, n_steps=2, max_rows_per_person=2)
    persons.fit(frame, persons=np.arange(300) // 2)
    with pytest.raises(ValueError, match="max_rows_per_person=1"):
        estimate(persons, lambda frame: frame["x"].mean())
    with pytest.raises(ValueError, match="level must be"):
        estimate(fit(), compute, level=95)
    with pytest.raises(ValueError, match="column of numbers"):
        estimate_quantiles(fit(), "group")
    schema = Schema({**SCHEMA, "twice": Number(0, 200)}, [Derived("twice", "x + x")])
    derived = fit(frame.assign(twice=2 * frame["x"]), schema=schema, n_steps=2)
    with pytest.raises(ValueError, match="derived or generated"):
        estimate(derived, lambda frame: frame["twice"].mean())


def test_statistics_are_real_numbers_or_missing():
    found = estimate(fit(), lambda rows: {"mean": rows["x"].mean(), "none": pd.NA})
    assert np.isfinite(found.loc["mean", "estimate"])
    assert np.isnan(found.loc["none", "estimate"])
    for wrong in (1j, "text", [1]):
        with pytest.raises(ValueError, match="must return a real number"):
            estimate(fit(), lambda rows, wrong=wrong: {"a": wrong})


def test_quantiles_are_numbers_between_0_and_1():
    sampler = fit()
    one = estimate_quantiles(sampler, "x", 0.5, random_state=0)
    pd.testing.assert_frame_equal(one, estimate_quantiles(sampler, "x", [0.5], random_state=0))
    for wrong in ([], [1.5], -0.1, np.nan, "half", [[0.5]], None):
        with pytest.raises(ValueError, match=r"quantiles must be numbers in \[0, 1\]"):
            estimate_quantiles(sampler, "x", wrong)
