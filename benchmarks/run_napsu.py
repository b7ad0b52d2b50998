"""Intervals from released tables, from several synthetic data sets, and from NAPSU-MQ.

    python benchmarks/run_napsu.py [--methods records estimate naive rubin] [--fits 200]
        [--epsilon 1.0] [--rows 2000] [--sets 20] [--csv rows.csv]
    python benchmarks/run_napsu.py --methods napsu --peers PYTHON --fits 40

Each fit is to new records of Adult: workclass, sex, marriage and age in four intervals, which are
categorical to all methods. The table gives how often 95 % intervals cover the value of the
population; their median width, and the root mean square error of the estimates, in units of the
records without noise; and the seconds of a fit with its intervals.

    records     the usual intervals from the records, without privacy
    estimate    skdpgen.inference.estimate
    naive       the usual intervals from as many synthetic rows as records
    rubin       combining rules for fully synthetic data sets (Raghunathan, Reiter and Rubin, 2003),
                all sampled from one fit; rubin-normal has quantiles of the normal distribution
                rather than of Student's
    napsu       the same rules for data sets of NAPSU-MQ, which is fitted to all tables of pairs;
                see peers_tables.py; napsu-more has five times as many data sets

The privacy is that of replacing one record, for all methods.
"""

import argparse
import subprocess
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from run_coverage import load_adult
from scipy import stats

from skdpgen import Category, DPSWFlowSampler, Schema
from skdpgen.inference import estimate

LEVELS = {
    "group": list("abc"),
    "flag": ["no", "yes"],
    "event": ["no", "yes"],
    "age": ["17-29", "30-39", "40-49", "50-90"],
}
DELTA = 1e-5
KINDS = [("shares", 9), ("cells of two columns", 3), ("differences", 4), ("cells of three", 2)]
METHODS = ["records", "estimate", "naive", "rubin", "napsu"]


def load_population():
    rows = load_adult()
    age = pd.cut(rows.x, [0, 29, 39, 49, 90], labels=LEVELS["age"]).astype(str)
    return rows.assign(age=age)[list(LEVELS)]


def compute(frame):
    """Return each statistic with the usual estimate of its variance."""
    is_in = {level: (frame.group == level).to_numpy() for level in LEVELS["group"]}
    is_in |= {level: (frame.age == level).to_numpy() for level in LEVELS["age"]}
    a, c, young, old = (is_in[name] for name in ("a", "c", "17-29", "50-90"))
    flag, event = ((frame[name] == "yes").to_numpy() for name in ("flag", "event"))
    return {
        **{name: _share(is_level) for name, is_level in is_in.items()},
        "flag": _share(flag),
        "event": _share(event),
        "c, event": _share(c & event),
        "flag, event": _share(flag & event),
        "17-29, event": _share(young & event),
        "event by flag": _subtract(event, flag, ~flag),
        "event, c - a": _subtract(event, c, a),
        "flag, c - a": _subtract(flag, c, a),
        "50-90 by flag": _subtract(old, flag, ~flag),
        "c, flag, event": _share(c & flag & event),
        "17-29, flag, event": _share(young & flag & event),
    }


def _share(is_in):
    share = is_in.mean()
    return share, share * (1 - share) / len(is_in)


def _subtract(is_in, group, other):
    (share, variance), (share_other, variance_other) = _share(is_in[group]), _share(is_in[other])
    return share - share_other, variance + variance_other


def make_intervals(frame):
    """Return the usual intervals from rows."""
    found = pd.DataFrame(compute(frame), index=["estimate", "variance"]).T
    return _add_ends(found.estimate, 1.96 * found.variance**0.5)


def combine(frames, has_df=True):
    """Return intervals by the combining rules for fully synthetic data sets."""
    values, variances = np.transpose([list(compute(frame).values()) for frame in frames])
    m = len(frames)
    between, within = values.T.var(0, ddof=1), variances.T.mean(0)
    between *= 1 + 1 / m
    total = between - within
    # As twinify has it: data sets are as large as the records.
    total = np.where(total > 0, total, within)
    df = (m - 1) * (1 - within / between) ** 2 if has_df else np.inf
    mean = pd.Series(values.T.mean(0), list(compute(frames[0])))
    return _add_ends(mean, stats.t.ppf(0.975, df) * np.sqrt(total))


def _add_ends(found, margin):
    return pd.DataFrame({"estimate": found, "lower": found - margin, "upper": found + margin})


def sample_by_napsu(records, seed, options):
    """Return data sets of NAPSU-MQ, in another Python."""
    with tempfile.TemporaryDirectory() as folder:
        rows, synthetic = Path(folder, "rows.csv"), Path(folder, "synthetic.csv")
        codes = {name: pd.Categorical(records[name], at).codes for name, at in LEVELS.items()}
        pd.DataFrame(codes).to_csv(rows, index=False)
        script = Path(__file__).with_name("peers_tables.py")
        command = [options.peers, "-W", "ignore", script, "napsu", rows, synthetic]
        command += ["--epsilon", options.epsilon, "--delta", DELTA, "--seed", seed]
        command += ["--sets", 5 * options.sets, "--sizes", *map(len, LEVELS.values())]
        command = [str(part) for part in command]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"The fit of records {seed} failed: {done.stderr[-1000:]}")
        codes = pd.read_csv(synthetic)
    made = pd.DataFrame({name: np.array(at)[codes[name]] for name, at in LEVELS.items()})
    return [made[at : at + len(records)] for at in range(0, len(made), len(records))]


def run(records, seed, options):
    """Return the intervals and seconds of each method."""
    found, start = {"records": (make_intervals(records), 0.0)}, time.perf_counter()
    if {"estimate", "naive", "rubin"} & set(options.methods):
        sampler = DPSWFlowSampler(
            options.epsilon,
            DELTA,
            relation="replace_one",
            schema=Schema({name: Category(levels) for name, levels in LEVELS.items()}),
        ).fit(records)
        fitted = time.perf_counter() - start
        makers = {
            "estimate": lambda: estimate(
                sampler, lambda rows: {name: value for name, (value, _) in compute(rows).items()}
            ),
            "naive": lambda: make_intervals(sampler.sample(len(records))),
            "rubin": lambda: combine(sets),
            "rubin-normal": lambda: combine(sets, has_df=False),
        }
        sets = [sampler.sample(len(records)) for _ in range(options.sets)]
        for method, make in makers.items():
            start = time.perf_counter()
            found[method] = make(), fitted + time.perf_counter() - start
    if "napsu" in options.methods:
        start = time.perf_counter()
        sets = sample_by_napsu(records, seed, options)
        seconds = time.perf_counter() - start
        found["napsu"] = combine(sets[: options.sets]), seconds
        found["napsu-more"] = combine(sets), seconds
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS[:-1])
    parser.add_argument("--fits", type=int, default=200)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--sets", type=int, default=20)
    parser.add_argument("--peers", metavar="PYTHON", help="of an environment for peers_tables.py")
    parser.add_argument("--csv")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    population = load_population()
    truth = pd.DataFrame(compute(population)).loc[0]
    unit = pd.DataFrame(compute(population)).loc[1].mul(len(population) / options.rows) ** 0.5
    parts = []
    for seed in range(options.fits):
        # The same records for each choice of methods.
        rng = np.random.default_rng(seed)
        drawn = rng.integers(len(population), size=options.rows)
        records = population.iloc[drawn].reset_index(drop=True)
        for method, (found, seconds) in run(records, seed, options).items():
            covers = found.lower.le(truth) & found.upper.ge(truth)
            rows = found[["estimate", "lower", "upper"]].assign(
                kind=np.repeat(*zip(*KINDS, strict=True)),
                covers=covers.where(found.lower.notna()),
                width=(found.upper - found.lower) / (2 * 1.96 * unit),
                error=(found.estimate - truth) / unit,
                seconds=seconds,
                method=method,
                seed=seed,
            )
            parts.append(rows.rename_axis("statistic").reset_index())
        if options.csv:
            pd.concat(parts).to_csv(options.csv, index=False)
    print(summarize(pd.concat(parts), ["method", "kind"]).to_string())
    print(summarize(pd.concat(parts), ["method", "kind", "statistic"]).to_string())


def summarize(rows, by):
    rows = rows.assign(square=rows.error**2, covers=rows.covers.astype(float))
    found = rows.groupby(by, sort=False).agg(
        fits=("seed", "nunique"),
        given=("covers", lambda covers: covers.notna().mean()),
        covers=("covers", "mean"),
        width=("width", "median"),
        bias=("error", "mean"),
        error=("square", lambda square: square.mean() ** 0.5),
        seconds=("seconds", "median"),
    )
    return found.round(3)


if __name__ == "__main__":
    main()
