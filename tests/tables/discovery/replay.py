"""Record what a schema inference releases, and replay it: no data, no noise, the same schema.

A recording holds the noisy counts of each release, by its name, and the schema that followed. They
are rounded to a small part of their noise before inference sees them. A replay hands them back in
place of the curator's releases. A replay also compares the counts of a few rows in each release.
"""

import contextlib
import copy
import dataclasses
import json
import lzma
import math
import warnings
from pathlib import Path

import numpy as np
import pandas as pd

from skdpgen import DPSWFlowSampler
from skdpgen.accounting.event_types import event_from_dict, event_to_dict
from skdpgen.accounting.plan import gaussian_plan
from skdpgen.arrays.discovery import make_box
from skdpgen.curator.curator import Curator, open_curator
from skdpgen.data.record_functions import RecordFunction
from skdpgen.mechanisms.base import NoisySum
from skdpgen.mechanisms.noise import NoiseSource
from skdpgen.quality import Findings

from .test_messy_columns import make_messy

FOLDER = Path(__file__).parent
# Noisy counts are kept to this part of their noise, and exact ones to the grid of the releases.
_PART, _GRID = 1 / 32, 2.0**-20
_TOLERANCE = 1e-6
# Rows of which it is compared what is counted.
N_ROWS = 20


@dataclasses.dataclass
class Case:
    """Public arguments of a fit, and a few rows like those that it is of."""

    rows: pd.DataFrame | np.ndarray | None
    target: str | None = None
    # Arguments of `make_box` for arrays.
    box: dict | None = None

    def __post_init__(self):
        self.schema = "private"
        if self.rows is None:
            self.rows, self.schema = make_messy()
            self.rows = self.rows.head(N_ROWS)


class Recorder:
    """A curator that notes what it releases."""

    def __init__(self, curator):
        self.curator, self.released = curator, []

    def __getattr__(self, name):
        return getattr(self.curator, name)

    def release(self, mechanism):
        entry = {"name": mechanism.name, **_write(self.curator.release(mechanism))}
        self.released.append(entry)
        return _read(entry)


class Replayer(Recorder):
    """A curator of a few rows that hands recorded releases back."""

    def __init__(self, curator, recorded):
        super().__init__(curator)
        self.recorded, self.n_rows = recorded, recorded["n_rows"]
        self.plan = _read_plan(recorded["plan"])

    def release(self, mechanism):
        entry = self.recorded["released"][len(self.released)]
        assert mechanism.name == entry["name"]
        of_rows = _digest(self.curator.release(mechanism))
        of_rows.append(mechanism.sensitivity("zero_out"))
        np.testing.assert_allclose(of_rows, entry.setdefault("of rows", of_rows), atol=1e-4)
        self.released.append(entry)
        return _read(entry)


def record(case, data, epsilon):
    """Return the recording of the inference from private data."""
    y = None
    if case.box is None:
        planner = DPSWFlowSampler(epsilon, 1e-6, schema=case.schema, random_state=0)
        format, dataset = planner._read(data, None, case.target, None)
        plan = planner._make_plan(len(data), format, dataset.n_classes, None).plan
        opened = open_curator(dataset, format, plan, NoiseSource(0), strict=False)
    else:
        format = make_box(**case.box)
        data, y = (data[:, :-1], data[:, -1]) if format.has_number else (data, None)
        shares = {**format.shares, "rest": 1 - sum(format.shares.values())}
        plan = gaussian_plan(shares, epsilon, 1e-6, accountant="rdp")
        opened = _open_rows(format, data, y, plan)
    with _quietly(), opened as curator:
        recorder = Recorder(curator)
        format.resolve(recorder)
        recorded = {
            "n_rows": curator.n_rows,
            "plan": _write_plan(plan),
            "released": recorder.released,
        }
    recorded["resolved"] = replay(case, recorded)
    return recorded


def replay(case, recorded):
    """Return a description of what inference finds in recorded releases."""
    if case.box is None:
        planner = DPSWFlowSampler(math.inf, schema=case.schema)
        format, dataset = planner._read(case.rows, None, case.target, None)
        names = list(format.split_budget(0.0))
        plan = gaussian_plan(dict.fromkeys(names, 1 / len(names)), math.inf, 1e-6)
        opened = open_curator(dataset, format, plan, NoiseSource(0), strict=False)
    else:
        format, X, y = make_box(**case.box), case.rows, None
        X, y = (X[:, :-1], X[:, -1]) if format.has_number else (X, None)
        shares = dict.fromkeys(format.shares, 1 / len(format.shares))
        opened = _open_rows(format, X, y, gaussian_plan(shares, math.inf, 1e-6))
    with _quietly(), opened as curator, _noting() as findings:
        replayer = Replayer(curator, recorded)
        resolved = format.resolve(replayer)
    assert len(replayer.released) == len(recorded["released"])
    describe = _describe_table if case.box is None else _describe_box
    return json.loads(json.dumps({**describe(resolved), "findings": findings}, default=repr))


def assert_close(found, recorded):
    """Compare descriptions: numbers up to a millionth of the range of their column."""
    assert found.keys() == recorded.keys()
    for key, value in recorded.items():
        if isinstance(value, dict):
            assert_close(found[key], value)
            continue
        ours, theirs = (_as_numbers(part) for part in (found[key], value))
        if ours is None or theirs is None:
            assert found[key] == value, key
            continue
        ends = (_as_numbers([recorded.get(end)]) for end in ("lower", "upper"))
        lower, upper = (0.0 if end is None else end[0] for end in ends)
        np.testing.assert_allclose(
            ours, theirs, rtol=_TOLERANCE, atol=_TOLERANCE * abs(upper - lower), err_msg=key
        )


def load(name):
    """Return the recordings of a file: a list of (case, epsilon, recording)."""
    kept = json.loads(lzma.decompress((FOLDER / f"{name}.json.xz").read_bytes()))
    return [(_read_case(one["case"]), one["epsilon"], one["recording"]) for one in kept]


def save(name, recordings):
    """Write recordings, as `load` returns them, to a file beside this one."""
    kept = [
        {"case": _write_case(case), "epsilon": epsilon, "recording": recording}
        for case, epsilon, recording in recordings
    ]
    (FOLDER / f"{name}.json.xz").write_bytes(lzma.compress(json.dumps(kept).encode(), preset=9))


@contextlib.contextmanager
def _open_rows(format, X, y, plan):
    """Open a curator of arrays."""
    options = {"plan": plan, "noise": NoiseSource(0), "prepare": RecordFunction(format.encode)}
    with Curator(X, y, **options) as curator:
        yield curator


@contextlib.contextmanager
def _quietly():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _noting():
    """Note the details of findings on columns, by code."""
    noted, add = {}, Findings.add

    def note(self, *found):
        for finding in found:
            if finding.column is not None:
                noted.setdefault(finding.code, {})[finding.column] = finding.detail
        add(self, *found)

    Findings.add = note
    try:
        yield noted
    finally:
        Findings.add = add


def _write(released):
    """Return a release as whole numbers, in steps of a small part of its noise."""
    if isinstance(released, dict):
        return {"counts": released}
    step = 2.0 ** math.floor(math.log2(_PART * released.std)) if released.std > 0 else _GRID
    whole = np.rint(released.value / step).astype(np.int64).tolist()
    return {"std": released.std, "step": step, "value": whole}


def _read(entry):
    if "counts" in entry:
        return entry["counts"]
    return NoisySum(np.array(entry["value"]) * entry["step"], entry["std"])


def _digest(released):
    """Return few numbers that follow from a release of a few rows."""
    if isinstance(released, dict):
        counts = {f"{name}/{text}": n for name, of in released.items() for text, n in of.items()}
        value = np.array([counts[key] * (1 + len(key)) for key in sorted(counts)], dtype=float)
    else:
        value = released.value
    return [len(value), value.sum(), value @ np.cos(np.arange(len(value)))]


def _write_plan(plan):
    releases = [(name, event_to_dict(event)) for name, event in plan.releases]
    return {"releases": releases, "sigma": plan.sigma, "epsilon": plan.epsilon}


def _read_plan(kept):
    """Return a plan, which need not be priced again."""
    plan = copy.copy(gaussian_plan({"any": 1.0}, math.inf, 1e-6))
    releases = tuple((name, event_from_dict(dict(event))) for name, event in kept["releases"])
    vars(plan).update(releases=releases, sigma=kept["sigma"], epsilon=kept["epsilon"])
    return plan


def _describe_table(resolved):
    texts = {name: dataclasses.asdict(style) for name, style in resolved.texts.items()}
    counted = {
        name: [number for part in parts for number in _sum_up(part)]
        for name, parts in resolved._histograms.items()
    }
    return {
        "columns": {name: kind.to_dict() for name, kind in resolved.schema.items()},
        "texts": texts,
        "counted": counted,
    }


def _sum_up(part):
    return [len(part.knots), part.knots[0], part.knots[-1], part.counts.sum(), part.std]


def _describe_box(resolved):
    bounds = {"bounds": resolved.bounds, "y_bounds": resolved.y_bounds}
    bounds = {k: None if v is None else np.array(v).tolist() for k, v in bounds.items()}
    return {**bounds, "clip_norm": resolved.clip_norm}


def _as_numbers(value):
    """Return numbers, or dates as milliseconds, as an array; None for what is neither."""
    try:
        if value and isinstance(value, list) and isinstance(value[0], str):
            return np.array(value, dtype="M8[ms]").astype(float)
        found = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return None
    return None if np.isnan(found).any() else found


def _write_case(case):
    kept = {"target": case.target, "box": case.box}
    if case.schema != "private":
        return kept
    if isinstance(case.rows, np.ndarray):
        return {**kept, "rows": case.rows.tolist()}
    dtypes = {str(name): str(dtype) for name, dtype in case.rows.dtypes.items()}
    cells = {name: [None if pd.isna(x) else x for x in case.rows[name].tolist()] for name in dtypes}
    return {**kept, "dtypes": dtypes, "cells": cells}


def _read_case(kept):
    if "rows" in kept:
        return Case(np.array(kept["rows"]), box=kept["box"])
    if "cells" not in kept:
        return Case(None)
    columns = {n: pd.Series(cells, dtype=kept["dtypes"][n]) for n, cells in kept["cells"].items()}
    return Case(pd.DataFrame(columns), kept["target"])
