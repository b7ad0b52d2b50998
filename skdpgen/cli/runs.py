# SPDX-License-Identifier: BSD-3-Clause
"""Runs of commands that plan or make releases: their terms, doubts, warnings and output."""

import json
import os
import signal
import sys
import tempfile
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .. import DPSlicedWassersteinGenerator, DPSWFlowSampler, PrivacyBudget
from ..accounting.rounding import show
from ..base import saving_releases
from ..exceptions import FitQualityWarning, SpentError
from ..releases.published import PublishedRelease, from_release
from ..tables.schema import Schema
from .exits import BAD_RESULT, StoppedError
from .outputs import (
    Interrupted,
    collected_warnings,
    filled_folder,
    interruptible,
    print_warning,
    replaced,
)
from .summaries import Summary

_RELEASE = "release.skdpgen"
_METHODS: dict[str, Any] = {"sliced": DPSlicedWassersteinGenerator, "flow": DPSWFlowSampler}
# Without --delta, δ is at most the default of the library, a tenth of 1 / rows, and a tenth of
# the δ of a budget, so that several fits can infer categories.
MOST_DELTA, _DELTA_SHARE = 1e-5, 0.1


def check_options(options: Namespace) -> None:
    """Raise ValueError for options that neither a table nor a generator checks."""
    n_rows = getattr(options, "n_rows", None)
    if n_rows is not None and n_rows < 1:
        raise ValueError(f"--n-rows must be at least 1; got {n_rows}.")
    if options.seed is not None and not 0 <= options.seed < 2**32:
        raise ValueError(f"--seed must be in [0, 2**32); got {options.seed}.")


def open_total(options: Namespace) -> PrivacyBudget | None:
    """Return the budget of --budget, or None."""
    return None if options.budget is None else PrivacyBudget.from_file(options.budget)


def choose_delta(n_units: int, total: PrivacyBudget | None) -> float:
    """Return δ for a public number of rows or persons: a power of ten, well below 1 / n.

    Examples
    --------
    >>> choose_delta(500, None), choose_delta(60_000, None)
    (1e-05, 1e-06)
    """
    most = min(MOST_DELTA, _DELTA_SHARE / n_units)
    if total is not None:
        most = min(most, _DELTA_SHARE * total.delta)
    # "1.6e-06" is between 1e-06 and 1e-05; its exponent is that of the power below.
    return float(f"1e{int(f'{most:.6e}'.partition('e')[2])}")


def make_generator(options: Namespace, schema: Schema, **params):
    """Return the unfitted generator that options ask for."""
    return _METHODS[options.method](
        epsilon=options.epsilon, relation=options.relation, schema=schema, **params
    )


def find_unit(options: Namespace, has_persons: bool, option: str) -> dict[str, int]:
    """Return the generator's parameters for persons, which `option` declares."""
    if options.max_rows_per_person is None:
        return {}
    if not has_persons:
        raise ValueError(f"--max-rows-per-person goes with {option}, which is not given.")
    return {"max_rows_per_person": options.max_rows_per_person}


def list_doubts(n_units: int, delta: float) -> list[str]:
    """List what is wrong with δ for so many rows or persons."""
    # From 1/n on, a mechanism that publishes one random record satisfies δ.
    if delta < 1 / n_units:
        return []
    return [
        f"--delta {show(delta)} is not below 1 / {n_units:,}: it allows to publish a record "
        "outright. Leave --delta out, or choose a smaller one."
    ]


def stop_for(doubts: Sequence[str], options: Namespace) -> None:
    """Raise StoppedError for doubts, unless --anyway goes on."""
    if doubts and not options.anyway:
        raise StoppedError(f"{' '.join(doubts)} Nothing was spent; --anyway goes on.")


def shows_progress(options: Namespace) -> bool:
    """Return whether progress bars are shown: on a terminal only."""
    # A progress bar would fill a log file.
    return sys.stderr.isatty() and not (options.quiet or options.as_json)


def fit_and_write(task: Any, options: Namespace) -> tuple[Any, list[str], int]:
    """Fit, and write the files of --output; say what was spent, and what is kept, if either fails.

    The release and its certificate are written before anything is learned from them, and all other
    files together, at the end.

    Parameters
    ----------
    task : Task or HistoryTask
    options : argparse.Namespace

    Returns
    -------
    written : object
        The value of ``task.write``.
    messages : list of str
        Warnings, to which ``task.write`` may add some.
    code : int
        The exit code.
    """
    if options.release is None:
        stop_for(task.list_doubts(), options)
    kept = KeptRelease(options, task)
    try:
        with interruptible() as commit, filled_folder(options.output, commit) as folder:
            with collected_warnings() as caught, saving_releases(kept.write):
                if options.release is None:
                    task.fit()
                else:
                    task.generator = from_release(options.release, task.generator)
            messages = [str(warning) for warning in caught]
            written = task.write(folder, messages)
    except KeyboardInterrupt as interrupt:
        raise interrupted(interrupt, kept.describe()) from None
    except Exception as error:
        # Before the release, the error of the fit says itself what was spent.
        if kept.path is None:
            raise
        why, how = str(error).removesuffix("."), kept.describe(isinstance(error, SpentError))
        raise SpentError(f"{why}. No synthetic rows were written. {how}") from None
    is_bad = any(isinstance(warning, FitQualityWarning) for warning in caught)
    return written, messages, BAD_RESULT if options.fail_on_warning and is_bad else 0


def list_written(options: Namespace, names: dict[str, str]) -> dict[str, str]:
    """Return the paths of the files of --output, the release among them, by what they hold."""
    files = {name: str(Path(options.output, file)) for name, file in names.items()}
    release = Path(options.output, _RELEASE)
    return files | ({"release": str(release)} if release.exists() else {})


class KeptRelease:
    """The release of a run, in a file from which a later run goes on at no cost.

    Parameters
    ----------
    options : argparse.Namespace
    task : Task or HistoryTask

    Attributes
    ----------
    path : Path, str or None
        The file, if there is one.
    """

    def __init__(self, options: Namespace, task: Any) -> None:
        self._options, self._task, self.path = options, task, options.release
        self._folder = options.output

    def write(self, published: PublishedRelease) -> None:
        """Write the release, and its certificate beside it."""
        certificate = published.certificate.made_by(self._task.generator).to_json() + "\n"
        try:
            self._write(published, certificate)
        except OSError as error:
            # Better than to lose it, as where the disk is full.
            self._folder = tempfile.mkdtemp(prefix="skdpgen-")
            self._write(published, certificate)
            print_warning(f"{error}; the release is in {self.path}.")

    def _write(self, published, certificate):
        # Links are followed, also to where there is nothing yet.
        os.makedirs(os.path.realpath(self._folder), exist_ok=True)
        path = Path(self._folder) / _RELEASE
        with replaced([str(path), str(path.with_name("certificate.json"))]) as (release, other):
            published.save(release)
            Path(other).write_text(certificate, encoding="utf-8")
        self.path = path

    def describe(self, has_price: bool = False) -> str:
        """Return what was spent, unless it was said, and how to go on."""
        if self.path is None:
            return self._task.describe_spent()
        has_price |= self._options.release is not None
        spent = "" if has_price else f"{self._task.describe_spent()} "
        return (
            f"{spent}The release is kept: the same command with --release {self.path} and another "
            "--output goes on from it, at no cost."
        )


def describe_few(options: Namespace, units: str, n_columns: int, needed: int) -> str:
    """Return why a command stops that needs more rows than `units`, such as "300 rows"."""
    return (
        f"{units} are too few: at --epsilon {show(options.epsilon)}, with {n_columns} columns, "
        f"about {needed:,} give more than noise. Use a larger --epsilon, or --drop columns."
    )


def interrupted(interrupt: KeyboardInterrupt, spent: str) -> Interrupted:
    """Return the error of a signal, which says what was spent."""
    number = getattr(interrupt, "number", signal.SIGINT)
    return Interrupted(number, f"interrupted. {spent}")


def end(summary: Summary, options: Namespace, code: int) -> int:
    """Print a summary as the options say, and return the exit code."""
    if options.as_json:
        print(json.dumps({"exit_code": code, **summary.data}, ensure_ascii=False))
    elif not options.quiet:
        print(summary.to_text())
        return code
    for message in summary.warnings:
        print_warning(message)
    return code
