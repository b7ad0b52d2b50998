# SPDX-License-Identifier: BSD-3-Clause
"""Runs of commands that plan or make releases: their terms, doubts, warnings and output."""

import json
import signal
import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from .. import DPSlicedWassersteinGenerator, DPSWFlowSampler, PrivacyBudget
from ..accounting.rounding import show
from ..exceptions import FitQualityWarning, SpentError
from ..tables.schema import Schema
from .exits import BAD_RESULT, StoppedError
from .outputs import Interrupted, collected_warnings, interruptible, new_folder, print_warning
from .summaries import Summary

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
    """Fit, and write all files of --output or none; say what was spent if either fails.

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
    stop_for(task.list_doubts(), options)
    try:
        with interruptible() as commit, new_folder(options.output, commit) as folder:
            with collected_warnings() as caught:
                task.fit()
            messages = [str(warning) for warning in caught]
            written = task.write(folder, messages)
    except KeyboardInterrupt as interrupt:
        raise interrupted(interrupt, task.describe_spent()) from None
    except (OSError, ValueError) as error:
        # Without a certificate, the error of the fit says itself what was spent.
        if not hasattr(task.generator, "privacy_"):
            raise
        raise SpentError(f"{error} No file was written. {task.describe_spent()}") from None
    is_bad = any(isinstance(warning, FitQualityWarning) for warning in caught)
    return written, messages, BAD_RESULT if options.fail_on_warning and is_bad else 0


def describe_few(options: Namespace, units: str, n_columns: int, needed: int) -> str:
    """Return why a command stops that needs more rows than `units`, such as "300 rows"."""
    return (
        f"{units} are too few: at --epsilon {show(options.epsilon)}, with {n_columns} columns, "
        f"about {needed:,} give more than noise. Use a larger --epsilon, or --drop columns."
    )


def interrupted(interrupt: KeyboardInterrupt, spent: str) -> Interrupted:
    """Return the error of a signal, which says what was spent."""
    number = getattr(interrupt, "number", signal.SIGINT)
    return Interrupted(number, f"interrupted: no file was written. {spent}")


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
