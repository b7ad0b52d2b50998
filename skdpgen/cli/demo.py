# SPDX-License-Identifier: BSD-3-Clause
"""Command `demo`: all steps of a synthesis, on a public table that the package holds."""

import gzip
import shlex
from argparse import Namespace
from importlib import import_module, resources
from pathlib import Path

from .exits import DONE
from .outputs import check_folder

# 9 columns of the Adult data set (Becker and Kohavi, UCI, 1996, https://doi.org/10.24432/C5XW20),
# licensed under CC BY 4.0. Its first rows are UCI's training part.
_TABLE, _N_TRAINING = "data/adult.csv.gz", 32_561
_STEPS = {
    "preview {private} --epsilon 1 --target income": "what to expect, at no cost",
    "synthesize {private} --epsilon 1 --target income --output {made}": "the only step that spends",
    "report {made}/synthetic.csv --target income --reference {public} --output {page}": "beside "
    "real rows that took no part, if some are public",
    "verify {made}/certificate.json": "what others can recompute",
}


def demo(options: Namespace) -> int:
    """Run all steps on a public table, and print each command as users type it."""
    # Late, since the parser imports nothing of a command.
    from .parser import make_parser

    check_folder("--output", options.output)
    folder = Path(options.output)
    folder.mkdir(exist_ok=True)
    packed = resources.files(__package__).joinpath(_TABLE).read_bytes()
    names, *rows = gzip.decompress(packed).splitlines(keepends=True)
    (folder / "private.csv").write_bytes(b"".join([names, *rows[:_N_TRAINING]]))
    (folder / "public.csv").write_bytes(b"".join([names, *rows[_N_TRAINING:]]))
    print(
        f"Wrote {folder / 'private.csv'}, {_N_TRAINING:,} census records (Adult, UCI, CC BY 4.0) "
        "that stand for\nyour private table, and public.csv, others from the same survey."
    )
    files = {
        "private": "private.csv",
        "public": "public.csv",
        "made": "made",
        "page": "beside.html",
    }
    paths = {name: shlex.quote(str(folder / file)) for name, file in files.items()}
    for step, purpose in _STEPS.items():
        command = step.format(**paths)
        shown = command if len(command) < 100 else command.replace(" --", " \\\n    --")
        print(f"\n# {purpose}\n$ skdpgen {shown}", flush=True)
        asked = make_parser().parse_args(shlex.split(command))
        code = getattr(import_module(f".{asked.module}", __package__), asked.command)(asked)
        if code != DONE:
            return code
    print(f"\nNow open {folder / 'made' / 'report.html'}, and {folder / files['page']}.")
    return DONE
