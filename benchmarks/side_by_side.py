"""Runs of ours and of others in turn, and the table of ratios that benchmarks print.

Each ratio is between two neighbouring runs, so that a busy machine slows both.
"""

import argparse
import os
import platform
import statistics
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

# JAX, which POT imports, would take most of a GPU's memory.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
PACKAGES = "torch", "numpy", "POT", "geomloss", "dp-accounting"


@dataclass(frozen=True)
class Row:
    """Medians in seconds, and ratios of ours over the other's: below 1 where ours is faster."""

    case: str
    ours: float
    peer: str
    theirs: float
    ratios: tuple


def compare(case, ours, peers, repeats, clock=time.perf_counter):
    """Run functions in turn, and return a `Row` for each of the peers, a dict by name."""

    def seconds(run):
        start = clock()
        run()
        return clock() - start

    functions = [ours, *peers.values()]
    runs = [[seconds(run) for run in functions] for _ in range(repeats + 1)]
    own, *others = zip(*runs[1:], strict=True)  # the first run warms up
    return [
        Row(
            case,
            statistics.median(own),
            name,
            statistics.median(theirs),
            tuple(a / b for a, b in zip(own, theirs, strict=True)),
        )
        for name, theirs in zip(peers, others, strict=True)
    ]


def print_rows(title, rows):
    """Print a table as rows come."""
    print(f"\n{title}")
    print(f"  {'':<42}{'skdpgen':>12}{'other':>12}  {'ratio (min-max)':<21}other")
    for row in rows:
        low, high = min(row.ratios), max(row.ratios)
        ratio = f"{statistics.median(row.ratios):.2f} ({low:.2f}-{high:.2f})"
        times = "".join(f"{1e3 * seconds:>9,.1f} ms" for seconds in (row.ours, row.theirs))
        print(f"  {row.case:<42}{times}  {ratio:<21}{row.peer}", flush=True)


def describe_machine():
    """Return what speeds depend on."""
    cpu = platform.processor() or platform.machine()
    if (info := Path("/proc/cpuinfo")).exists():
        names = [
            line.split(":")[1] for line in info.read_text().split("\n") if "model name" in line
        ]
        cpu = names[0].strip() if names else cpu
    packages = []
    for name in PACKAGES:
        try:
            packages.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            packages.append(f"no {name}")
    python = f"Python {platform.python_version()}"
    return f"{cpu}, {os.cpu_count()} cores, {python}, {', '.join(packages)}"


def run(doc, title, find_rows):
    """Print the table of one benchmark, alone."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    torch.set_num_threads(1)
    print_rows(title, find_rows(repeats))
