"""Histories and the calendar: what depends on the month, the weekday or the hour of a row.

The populations are made, so that the truth is known. A reading is the curve of its calendar, which
swings by .8 or by .15, plus a level of the person (standard deviation .3), an autoregressive part
(lag one: .7) and noise; a state follows the one before. Rows of a person are

    monthly    on one day of each of 12 months, that start on any day of two years
    first      on the first of each of 12 months
    weekdays   12 visits on working days, some days apart; the curve is that of the weekday
    hourly     12 readings, an hour apart, that start at any hour; the curve is that of the hour
    missing    as monthly; 30 % of the dates are missing, and a date of discharge never is

    python benchmarks/run_histories_calendar.py [--epsilon 5] [--persons 3000] [--seeds 3]

Printed are, for `DPHistorySampler`, for its rows flattened to one wide row of a `DPSWFlowSampler`,
and for other persons of the same population: the largest error of the curve (`curve`), relative to
the readings' scale; the total variation of the calendar's cells (`cells`); of dates on the first of
a month, or missing, the share; and, after PATH (arXiv:2602.02766), the mean total variation of the
probabilities of transitions (`moves`), in five quantiles, and the energy distance of whole
trajectories of readings (`paths`), times 100; the correlations of a reading, less its curve, with
the next one (`next`), and with the second to the fifth after it (`later`); at last the processor's
seconds.
"""

import argparse
import time
import warnings

import numpy as np
import pandas as pd
from scipy.spatial.distance import cdist

from skdpgen import DPHistorySampler, DPSWFlowSampler

CASES = ("monthly", "first", "weekdays", "hourly", "missing")
N_ROWS, STATES = 12, np.array(["calm", "busy", "ill"])
_DAY, _HOUR = np.timedelta64(1, "D"), np.timedelta64(1, "h")


def find_cells(at, case):
    """Return the cell of the calendar of each date, and the number of cells."""
    at = pd.DatetimeIndex(at)
    if case == "hourly":
        return at.hour.to_numpy(), 24
    return (at.weekday.to_numpy(), 7) if case == "weekdays" else (at.month.to_numpy() - 1, 12)


def make_dates(case, n, rng):
    """Return dates of shape (n, N_ROWS)."""
    steps = np.arange(N_ROWS)
    if case == "hourly":
        start = np.datetime64("2023-01-01T00") + rng.integers(0, 24 * 200, (n, 1)) * _HOUR
        return start + steps * _HOUR
    start = rng.integers(0, 730, (n, 1))
    if case == "weekdays":
        days = np.datetime64("2022-01-01") + (start + rng.integers(1, 20, (n, N_ROWS)).cumsum(1))
        return np.busday_offset(days, 0, roll="forward")
    start = np.datetime64("2022-01-01") + start * _DAY
    months = start.astype("M8[M]") + steps
    return months.astype("M8[D]") + (0 if case == "first" else rng.integers(0, 28, (n, 1)))


def make_population(case, swing, n, rng):
    """Return persons and rows."""
    at = make_dates(case, n, rng)
    cells, n_cells = find_cells(at.ravel(), case)
    curve = swing / 2 * np.cos(2 * np.pi * cells / n_cells).reshape(n, N_ROWS)
    group = rng.integers(0, 2, n)
    state, part, rows = rng.integers(0, 3, n), rng.normal(0, 0.2, n), []
    level = rng.normal(0, 0.3, n)
    for t in range(N_ROWS):
        moved = (state + (rng.random(n) < 0.3) * rng.integers(1, 3, n)) % 3
        state = np.where(rng.random(n) < 0.1, group, moved)
        part = 0.7 * part + rng.normal(0, 0.15, n)
        reading = curve[:, t] + level + part + 0.2 * state + rng.normal(0, 0.1, n)
        rows.append(
            pd.DataFrame(
                {"id": range(n), "at": at[:, t], "state": STATES[state], "reading": reading}
            )
        )
    rows = pd.concat(rows).round({"reading": 3})
    rows["at"] = rows["at"].astype("M8[s]")
    if case == "missing":
        rows["out"] = rows["at"] + rng.poisson(4, len(rows)) * _DAY
        rows.loc[rng.random(len(rows)) < 0.3, "at"] = pd.NaT
    persons = pd.DataFrame({"id": range(n), "group": np.array(["a", "b"])[group]})
    return persons, rows.sample(frac=1, random_state=0).reset_index(drop=True)


def flatten(persons, rows):
    """Return one wide row a person, and the columns of each row's number."""
    rows = rows.sort_values(["id", "at"])
    number = rows.groupby("id").cumcount().to_numpy()
    columns = [name for name in rows if name not in ("id",)]
    wide = rows.assign(number=number).pivot(index="id", columns="number", values=columns)
    wide.columns = [f"{name}_{i}" for name, i in wide.columns]
    return persons.set_index("id").join(wide).reset_index(drop=True).infer_objects()


def unflatten(wide, columns):
    """Return persons and rows of wide rows."""
    parts = [
        wide[[f"{name}_{i}" for name in columns]].set_axis(columns, axis=1).assign(id=wide.index)
        for i in range(N_ROWS)
    ]
    return wide[["group"]].assign(id=wide.index), pd.concat(parts).dropna(subset="reading")


def measure(case, true, made):
    """Return the figures of made rows."""
    curves, shares, rest = [], [], []
    rows = [part.sort_values(["id", "at"], kind="stable") for _, part in (true, made)]
    for part in rows:
        dated = part.dropna(subset="at")
        cells, n_cells = find_cells(dated["at"], case)
        curves.append(dated["reading"].groupby(cells).mean().reindex(range(n_cells)))
        rest.append(dated.assign(reading=dated["reading"] - curves[-1].to_numpy()[cells]))
        shares.append(np.bincount(cells, minlength=n_cells) / len(cells))
    found = {
        "curve": (curves[1] - curves[0])[shares[0] > 0].abs().max(),
        "cells": np.abs(shares[0] - shares[1]).sum() / 2,
        "firsts": (rows[1]["at"].dt.day == 1).mean(),
        "missing": rows[1]["at"].isna().mean(),
        "no out": rows[1]["out"].isna().mean() if "out" in rows[1] else np.nan,
    }
    cuts = np.quantile(rows[0]["reading"], [0.2, 0.4, 0.6, 0.8])
    moves = [_find_moves(part, cuts) for part in rows]
    found["moves"] = np.mean([np.abs(a - b).sum() / 2 for a, b in zip(*moves, strict=True)])
    lasting = np.corrcoef(_list_paths(rest[1]).T)
    of_lags = [np.diag(lasting, lag).mean() for lag in range(1, 6)]
    found |= {"next": of_lags[0], "later": np.mean(of_lags[1:])}
    paths = [_list_paths(part)[:1500] for part in rows]
    between, *within = (cdist(paths[i], paths[j]) for i, j in ((0, 1), (0, 0), (1, 1)))
    within = [d.sum() / (len(d) * (len(d) - 1)) for d in within]
    return found | {"paths": 100 * (2 * between.mean() - sum(within))}


def _find_moves(rows, cuts):
    """Return the tables of readings, and of states, with those of the next row, as shares."""
    is_step = (rows["id"].to_numpy()[1:] == rows["id"].to_numpy()[:-1]).astype(bool)
    tables = []
    for codes, n in (
        (np.searchsorted(cuts, rows["reading"]), 5),
        (np.searchsorted(np.sort(STATES), rows["state"].astype(str)), 3),
    ):
        pairs = (codes[:-1] * n + codes[1:])[is_step]
        tables.append(np.bincount(pairs, minlength=n * n) / len(pairs))
    return tables


def _list_paths(rows):
    """Return the readings of persons in order, of shape (n_persons, N_ROWS)."""
    number = rows.groupby("id").cumcount().to_numpy()
    paths = rows.assign(number=number).pivot(index="id", columns="number", values="reading")
    paths = paths.reindex(columns=range(N_ROWS)).ffill(axis=1).to_numpy()
    return paths[np.random.default_rng(0).permutation(len(paths))]


def run(case, swing, seed, options):
    """Yield the name and the figures of each way."""
    rng = np.random.default_rng(seed)
    true, other = (make_population(case, swing, options.persons, rng) for _ in range(2))
    for way in options.ways:
        start = time.process_time()
        if way == "histories":
            sampler = DPHistorySampler(
                options.epsilon, 1e-6, max_rows_per_person=N_ROWS, random_state=seed
            )
            tables = dict(zip(("persons", "rows"), true, strict=True))
            made = tuple(sampler.fit(tables, persons="id", order="at").sample().values())
        elif way == "wide":
            sampler = DPSWFlowSampler(options.epsilon, 1e-6, random_state=seed)
            wide = sampler.fit(flatten(*true)).sample(options.persons)
            made = unflatten(wide, [name for name in true[1] if name != "id"])
        else:
            made = other
        spent = time.process_time() - start
        yield way, measure(case, true, made) | {"cpu": spent}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--epsilon", type=float, default=5.0)
    parser.add_argument("--persons", type=int, default=3000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=CASES)
    parser.add_argument("--swings", nargs="+", type=float, default=[0.8, 0.15])
    parser.add_argument("--ways", nargs="+", default=["histories", "wide", "other"])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for case in options.cases:
        for swing in options.swings:
            for seed in range(options.seeds):
                for way, figures in run(case, swing, seed, options):
                    shown = "".join(f"  {name} {x:.3f}" for name, x in figures.items())
                    print(f"{case}, {swing}, seed {seed}, {way}:{shown}", flush=True)


if __name__ == "__main__":
    main()
