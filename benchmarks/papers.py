"""Tables and figures of the published papers, a command each.

    SKDPGEN_DATA=folder python benchmarks/papers.py --paper dp-swd --table 2 [--seeds 1]
    python benchmarks/papers.py --list

Printed are, for each case, the paper's figure, ours (mean and range over seeds 0 to SEEDS - 1) and
minutes of CPU time, which depend little on what else runs. --cases takes the one of a name, or else
those whose names hold a text. --output FILE.csv replaces their rows in a table of all papers.
--pictures FOLDER gets pictures of synthetic images.
"""

import argparse
import csv
import resource
import warnings
from importlib import import_module
from pathlib import Path

import numpy as np
import paper_items
from paper_items import ITEMS, PAPERS

for paper in PAPERS:
    import_module(f"paper_{paper.replace('-', '_')}")
COLUMNS = "Command", "Case", "Paper", "Ours", "Seeds", "Minutes"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--paper", choices=PAPERS)
    parser.add_argument("--table", help="its number")
    parser.add_argument("--figure", help="its number")
    parser.add_argument(
        "--cases", default="", help="that of this name, or those whose names hold it"
    )
    parser.add_argument("--seeds", type=int, default=1, help="their number, from 0 on")
    parser.add_argument("--output", help="a CSV file, whose rows of these cases are replaced")
    parser.add_argument("--pictures", help="a folder for pictures of synthetic images")
    parser.add_argument("--list", action="store_true", help="what there is")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.list:
        for item in list_items():
            print(f"{item.command:<32}{item.title}{'. ' * bool(item.reason)}{item.reason}")
        return
    paper_items.pictures = options.pictures
    name = f"table {options.table}" if options.table else f"figure {options.figure}"
    item = ITEMS.get((options.paper, name))
    if item is None:
        parser.error(f"There is no {name} of {options.paper}; --list shows what there is.")
    print(f"{item.title}. {item.reason}")
    exact = [case for case in item.cases if case.name == options.cases]
    for case in exact or [case for case in item.cases if options.cases in case.name]:
        found = run(item, case, options.seeds)
        print(" | ".join([case.name, case.published, *found]), flush=True)
        if options.output:
            write(options.output, read(options.output) | {(item.command, case.name): found})


def list_items():
    """Return tables and figures in the order of the papers."""
    return list(dict.fromkeys(ITEMS.values()))


def run(item, case, n_seeds):
    """Return our figures of a case, the number of seeds and the minutes."""
    start = cpu_minutes()
    seeds = range(n_seeds if item.random else 1)
    figures = np.array([item.measure(seed, **case.params) for seed in seeds])
    figures = figures.reshape(len(seeds), -1).T
    ours = " · ".join(show(values, item.form) for values in figures)
    return [ours, str(n_seeds) if item.random else "", f"{cpu_minutes() - start:.1f}"]


def show(values, form):
    """Return the mean and the range of a figure."""
    mean, low, high = (f"{value:{form}}" for value in (values.mean(), values.min(), values.max()))
    return mean if len(values) == 1 else f"{mean} ({low}–{high})"


def cpu_minutes():
    """Return minutes of CPU time that this process and its children took."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(part.ru_utime + part.ru_stime for part in used) / 60


def read(path):
    """Return our figures, seeds and minutes by command and case."""
    found, command = {}, None
    if Path(path).exists():
        with open(path, encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row["Command"]:
                    command = row["Command"].split("``")[1]
                else:
                    found[command, row["Case"]] = [row[name] for name in COLUMNS[3:]]
    return found


def write(path, found):
    """Write a row for each table and figure, and below it those of its cases."""
    rows = [COLUMNS]
    for item in list_items():
        others = f" ({', '.join(item.names[1:])})" if item.names[1:] else ""
        rows.append((f"``{item.command}``{others}", item.title, "", item.reason, "", ""))
        for case in item.cases:
            if (item.command, case.name) in found:
                rows.append(("", case.name, case.published, *found[item.command, case.name]))
    with open(path, "w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    main()
