# SPDX-License-Identifier: BSD-3-Clause
"""Command `tables`: released counts, and what they mean."""

import json
from argparse import Namespace
from itertools import combinations

from ..releases.published import open_release
from ..releases.tabulation import Tabulation
from .forms import escape_formulas
from .outputs import check_folder, check_input, filled_folder

_LABELS = ("column_{}", "level_{}", "level_{}_from", "level_{}_to")
_COLUMNS = [label.format(i) for i in (1, 2) for label in _LABELS]
_COLUMNS += ["count", "std", "lower", "upper"]


def tables(options: Namespace) -> int:
    """Write all released tables of one and of two columns, and their codebook."""
    check_input(options.release)
    check_folder("--output", options.output)
    published = open_release(options.release)
    if options.epsilon is not None:
        published = published.degrade(options.epsilon)
    found = Tabulation(published, options.interval)
    listed = [*combinations(found.levels, 1), *combinations(found.levels, 2)]
    with filled_folder(options.output) as folder:
        with open(folder / "tables.csv", "w", encoding="utf-8", newline="") as file:
            for i, names in enumerate(listed):
                rows = found.tabulate(names, ("level_1", "level_2")[: len(names)]).reset_index()
                rows.columns = rows.columns.str.replace(" ", "_")
                rows = rows.assign(**{f"column_{j}": name for j, name in enumerate(names, 1)})
                rows = escape_formulas(rows) if options.escape_formulas else rows
                rows = rows.reindex(columns=_COLUMNS)
                rows.to_csv(file, index=False, header=i == 0, lineterminator="\n")
        text = json.dumps(found.describe(), indent=2, ensure_ascii=False)
        (folder / "codebook.json").write_text(text + "\n", encoding="utf-8")
        if options.epsilon is not None:
            published.save(folder / "release.skdpgen")
    print(f"Wrote {len(listed):,} tables to {options.output}; {published.certificate!r}.")
    return 0
