"""Coverage of intervals for statistics of populations, with naive intervals of synthetic rows.

    python benchmarks/run_coverage.py [--populations survey claims panel adult] [--fits 200]
        [--epsilon 1.0] [--rows 2000] [--schema declared] [--csv coverage.csv]

Each fit is to new records of a population. For 12 means and shares, 6 differences and 5 regression
coefficients, the table gives how often a 95 % interval covers the value of the population: by
`estimate`, and by the usual formulas from as many synthetic rows as records.
"""

import argparse
import warnings
from functools import lru_cache

import numpy as np
import pandas as pd
from public_tables import load_table

from skdpgen import Category, DPSWFlowSampler, Number, Schema
from skdpgen.inference import estimate

Z = 1.96
# Rows of a simulated population.
N_POPULATION = 1_000_000


def draw_survey(n, rng):
    """Return a survey of smoking, with skew incomes."""
    region = rng.choice(list("abc"), n, p=[0.5, 0.3, 0.2])
    smokes = rng.random(n) < pd.Series(region).map({"a": 0.2, "b": 0.3, "c": 0.5})
    age = rng.normal(45 + 5 * (region == "b") - 3 * smokes, 14).clip(18, 95).round()
    income = np.exp(rng.normal(10 + 0.02 * (age - 45) - 0.2 * smokes, 0.5)).clip(0, 120_000)
    sick = rng.random(n) < 1 / (1 + np.exp(2 - 0.03 * (age - 45) - 0.8 * smokes))
    return _make_frame(group=region, flag=smokes, x=age, z=income, event=sick)


def draw_claims(n, rng):
    """Return claims: a zero-inflated amount, a rare event, and a skew exposure."""
    line = rng.choice(list("abc"), n, p=[0.6, 0.3, 0.1])
    urban = rng.random(n) < 0.4 + 0.2 * (line == "b")
    exposure = rng.gamma(2, 3 + 2 * urban).clip(0, 50)
    claimed = rng.random(n) < 1 - np.exp(-0.02 * exposure * (1 + urban))
    amount = np.where(claimed, rng.gamma(1.5, 400 + 200 * urban), 0).clip(0, 5000)
    return _make_frame(group=line, flag=urban, x=exposure, z=amount, event=claimed)


def draw_panel(n, rng):
    """Return test scores in three schools, with two modes and weak effects."""
    school = rng.choice(list("abc"), n)
    tutored = rng.random(n) < 0.5
    ability = np.where(rng.random(n) < 0.4, rng.normal(-1, 0.5, n), rng.normal(0.8, 0.7, n))
    score = (50 + 15 * ability + 2 * tutored + 3 * (school == "c")).clip(0, 100)
    hours = rng.exponential(5 + 2 * (ability > 0)).clip(0, 40)
    passed = rng.random(n) < 1 / (1 + np.exp(-(score - 45) / 10))
    return _make_frame(group=school, flag=tutored, x=hours, z=score, event=passed)


@lru_cache
def load_adult():
    """Return Adult as the population of which records are drawn."""
    data = load_table("adult")
    rows = pd.concat([data.X_train, data.X_test])
    in_office = rows.workclass.str.contains("gov")
    return _make_frame(
        group=np.select([rows.workclass == "Private", in_office], ["a", "b"], "c"),
        flag=(rows.sex == "Male").to_numpy(),
        x=rows.age.to_numpy(float),
        z=rows.hours_per_week.to_numpy(float),
        event=rows.marital_status.str.startswith("Married").to_numpy(),
    )


def draw_adult(n, rng):
    """Return rows of Adult, drawn with replacement."""
    table = load_adult()
    return table.iloc[rng.integers(len(table), size=n)].reset_index(drop=True)


def _make_frame(group, flag, x, z, event):
    flag, event = (np.where(column, "yes", "no") for column in (flag, event))
    return pd.DataFrame({"group": group, "flag": flag, "x": x, "z": z, "event": event})


POPULATIONS = {
    "survey": (draw_survey, [18, 30, 40, 50, 60, 75, 95], [0, 8e3, 16e3, 24e3, 4e4, 7e4, 12e4]),
    "claims": (draw_claims, [0, 3, 6, 10, 16, 25, 50], [0, 100, 300, 700, 1500, 3000, 5000]),
    "panel": (draw_panel, [0, 3, 6, 10, 16, 25, 40], [0, 20, 35, 50, 65, 80, 100]),
    "adult": (draw_adult, [17, 25, 35, 45, 55, 65, 90], [1, 20, 35, 40, 45, 60, 99]),
}


def make_schema(x, z):
    both = Category(["no", "yes"])
    return Schema(
        {
            "group": Category(list("abc")),
            "flag": both,
            "x": Number(x[0], x[-1], knots=x),
            "z": Number(z[0], z[-1], knots=z),
            "event": both,
        }
    )


def compute(frame):
    """Return 12 means and shares, 6 differences and 5 coefficients, keyed by kind and name."""
    x, z = frame.x.to_numpy(float), frame.z.to_numpy(float)
    flag, event = ((frame[name] == "yes").to_numpy(float) for name in ("flag", "event"))
    a, b, c = ((frame.group == name).to_numpy() for name in "abc")
    on, off, yes, no = flag == 1, flag == 0, event == 1, event == 0
    found = {
        "mean x": x.mean(),
        "mean z": z.mean(),
        "share a": a.mean(),
        "share c": c.mean(),
        "share flag": flag.mean(),
        "share event": event.mean(),
        "x of c": x[c].mean(),
        "z of flag": z[on].mean(),
        "z of a": z[a].mean(),
        "event of flag": event[on].mean(),
        "flag of c": flag[c].mean(),
        "event of b": event[b].mean(),
        "event, flag": event[on].mean() - event[off].mean(),
        "x, flag": x[on].mean() - x[off].mean(),
        "z, flag": z[on].mean() - z[off].mean(),
        "x, event": x[yes].mean() - x[no].mean(),
        "flag, c - a": flag[c].mean() - flag[a].mean(),
        "event, c - a": event[c].mean() - event[a].mean(),
        **_regress(event, "event ~", flag=flag, c=c),
        **_regress(z, "z ~", flag=flag, x=x),
        **_regress(event, "event ~ x +", flag=flag, x=x),
    }
    del found["event ~ x + x"]
    return found


def _regress(y, name, **columns):
    design = np.column_stack([np.ones(len(y)), *columns.values()]).astype(float)
    slopes = np.linalg.solve(design.T @ design, design.T @ y)[1:]
    return {f"{name} {key}": slope for key, slope in zip(columns, slopes, strict=True)}


KINDS = [("means and shares", 12), ("differences", 6), ("coefficients", 5)]


def run(name, options):
    """Return a row for each fit and statistic."""
    draw, *knots = POPULATIONS[name]
    schema = make_schema(*knots) if options.schema == "declared" else "auto"
    rng = np.random.default_rng(0)
    truth = pd.Series(compute(draw(N_POPULATION, np.random.default_rng(1))))
    parts = []
    for seed in range(options.fits):
        records = draw(options.rows, rng)
        sampler = DPSWFlowSampler(
            options.epsilon, schema=schema, n_steps=options.steps, n_particles=500
        ).fit(records)
        found = estimate(sampler, compute)
        synthetic = pd.Series(compute(sampler.sample(options.rows)))
        # The usual standard error counts sampling alone.
        naive = np.sqrt(found.std_error**2 - found.noise**2)
        covers = found.lower.le(truth) & found.upper.ge(truth)
        parts.append(
            found.assign(
                kind=np.repeat(*zip(*KINDS, strict=True)),
                seed=seed,
                truth=truth,
                covers=covers.where(found.lower.notna()),
                naive=(synthetic - truth).abs() <= Z * naive,
                error=(found.estimate - truth) / found.std_error,
                width=found.std_error / naive,
            )
        )
    return pd.concat(parts).rename_axis("statistic").reset_index().assign(population=name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--populations", nargs="+", default=list(POPULATIONS))
    parser.add_argument("--fits", type=int, default=200)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--schema", choices=["declared", "auto"], default="declared")
    parser.add_argument("--csv")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    found = []
    for name in options.populations:
        rows = run(name, options)
        found.append(rows)
        each = rows.groupby(["kind", "statistic"], sort=False).agg(
            given=("covers", "count"),
            covers=("covers", "mean"),
            naive=("naive", "mean"),
            bias=("error", "mean"),
            std=("error", "std"),
            width=("width", "mean"),
        )
        print(f"\n{name}: {options.rows:,} rows, epsilon {options.epsilon}, {options.fits} fits")
        print(each.astype(float).round(3).to_string())
    rows = pd.concat(found)
    shares = rows.groupby(["population", "kind", "statistic"])[["covers", "naive", "width"]]
    by_kind = shares.mean().astype(float).groupby(["population", "kind"], sort=False)
    print(by_kind.agg(["min", "mean", "max"]).round(3).to_string())
    if options.csv:
        rows.to_csv(options.csv, index=False)


if __name__ == "__main__":
    main()
