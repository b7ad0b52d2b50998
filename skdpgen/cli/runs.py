# SPDX-License-Identifier: BSD-3-Clause
"""Runs of commands that learn from private rows: checks, budgets, kept releases and output."""

import contextlib
import json
import os
import signal
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ..accounting.budget import PrivacyBudget
from ..accounting.calibration import find_delta
from ..accounting.certificate import Certificate
from ..accounting.events import threshold_delta
from ..accounting.rounding import show
from ..base import saving_releases
from ..curator.curator import Curator
from ..evaluation import report as make_report
from ..exceptions import EndOfFit, FitQualityWarning, SpentError
from ..generators import DPSlicedWassersteinGenerator, DPSWFlowSampler
from ..releases.published import PublishedRelease
from ..releases.refitting import from_release
from ..tables.discovery.stages import SchemaInference, reviewing_types
from ..tables.schema import Schema
from .exits import BAD_RESULT, StoppedError, describe_error
from .outputs import (
    Interrupted,
    collected_warnings,
    filled_folder,
    interruptible,
    print_message,
    replaced,
)
from .summaries import Summary
from .tables import Read, TableOptions

_RELEASE = "release.skdpgen"
_METHODS: dict[str, Any] = {"sliced": DPSlicedWassersteinGenerator, "flow": DPSWFlowSampler}


def check_seed(options: Namespace) -> None:
    """Raise ValueError for a seed that no generator of random numbers takes."""
    if options.seed is not None and not 0 <= options.seed < 2**32:
        raise ValueError(f"--seed must be in [0, 2**32); got {options.seed}.")


def open_total(options: Namespace) -> PrivacyBudget | None:
    """Return the budget of --budget, or None."""
    return None if options.budget is None else PrivacyBudget.from_file(options.budget)


def choose_delta(delta: float | None, n_units: int, total: PrivacyBudget | None) -> float:
    """Return δ, by default at most a tenth of a budget's: several fits can infer categories."""
    return find_delta(delta, n_units, 1e-5 if total is None else min(1e-5, 0.1 * total.delta))


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


def list_doubts(
    options: Namespace,
    tables: Sequence[TableOptions],
    read: Read,
    delta: float,
    needed: int,
    n_expected: int,
    find_least: Callable[[], float | None] = lambda: None,
) -> list[str]:
    """List the reasons to stop before anything is spent.

    So many rows, or persons, are `needed` for more than noise, and `n_expected` may count;
    `find_least` returns the smallest ε that would do, or None.
    """
    doubts = [doubt for table in tables for doubt in table.list_doubts()]
    # From 1/n on, a mechanism that publishes one random record satisfies δ.
    if delta >= 1 / read.n_units:
        doubts.append(
            f"--delta {show(delta)} is not below 1 / {read.n_units:,}: it allows to publish a "
            "record outright. Leave --delta out, or choose a smaller one."
        )
    if needed > n_expected:
        least = find_least()
        larger = "a larger --epsilon" if least is None else f"--epsilon {least:g} or more"
        doubts.insert(
            0,
            f"{read.units} are too few: at --epsilon {show(options.epsilon)}, with "
            f"{read.n_columns} columns, about {needed:,} give more than noise. Use {larger}, or "
            "--drop columns.",
        )
    return doubts


def stop_for(doubts: Sequence[str], options: Namespace) -> None:
    """Raise StoppedError for doubts, unless --anyway goes on."""
    if doubts and not options.anyway:
        raise StoppedError(f"{' '.join(doubts)} Nothing was spent; --anyway goes on.")


class TypesUnreadError(EndOfFit):
    """A fit ends after its first release, since cells look like what it cannot read."""


def _describe_looks(looks: Mapping[str, str], given: str | None = None) -> str:
    """Return what columns look like, and the options that read them, beside a format of dates."""
    remedies, formats = [], {given or "", *(x.partition("dates as ")[2] for x in looks.values())}
    for look in dict.fromkeys(looks.values()):
        names = ", ".join(name for name, other in looks.items() if other == look)
        kind, _, form = look.removeprefix("look like ").partition(" as ")
        cures = {
            "dates": f"--date-format {form or 'in their form, as %d/%m/%Y, %m/%d/%y or %d-%b-%Y'}",
            "numbers": f'--thousands "{form[1:2] or " "}"',
        }
        cure, read = f"give {cures[kind]}" if kind in cures else "convert them to numbers", "texts"
        if kind == "dates" and not all(other.startswith(form) for other in formats - {""}):
            cure = f'declare each in --schema, as {{"type": "unknown", "date_format": "{form}"}}'
        if form == "2.157":
            cure = "give --decimal , --thousands . or, if they are decimals, --thousands ,"
            read = "decimals"
        remedies.append(f"{names} {look}, and would be {read}: {cure}.")
    return f"By released counts, {' '.join(remedies)}"


def shows_progress(options: Namespace) -> bool:
    """Return whether progress bars are shown: on a terminal only."""
    # A progress bar would fill a log file.
    return sys.stderr.isatty() and not (options.quiet or options.as_json)


def interrupted(interrupt: KeyboardInterrupt, spent: str) -> Interrupted:
    """Return the error of a signal, which says what was spent."""
    number = getattr(interrupt, "number", signal.SIGINT)
    return Interrupted(number, f"interrupted. {spent}")


class Run:
    """A run that learns from private rows and writes synthetic ones, before anything is spent.

    Subclasses read what is public of the rows, plan the fit, and write its results.

    Attributes
    ----------
    total : PrivacyBudget or None
        The budget of --budget.
    release : Path, str or None
        File of a release from which a later run goes on at no cost, if there is one.
    generator : estimator
        Unfitted.
    fit_arguments : dict
        The arguments of its `fit`.
    planned : Certificate
    read : Read
        The rows, of which numbers are public.
    opened : list of TableOptions
        The private tables.
    needed : tuple
        The last arguments of `list_doubts`.
    suggested : list of Rule
        After `write`, the rules that released counts suggest.
    """

    generator: Any
    fit_arguments: Mapping[str, Any]
    planned: Certificate
    read: Read
    opened: Sequence[TableOptions]
    needed: tuple
    suggested: Sequence = ()

    def __init__(self, options: Namespace) -> None:
        check_seed(options)
        self.options, self.total = options, open_total(options)
        self.release: Path | str | None = None
        self._folder = options.output

    def list_doubts(self) -> list[str]:
        """List the reasons to stop before anything is spent."""
        delta = self.generator.delta
        return list_doubts(self.options, self.opened, self.read, delta, *self.needed)

    def write(self, folder: Path, messages: list[str]) -> Any:
        """Write rows and what belongs to them, and return their names; it may add messages."""
        raise NotImplementedError

    def certify(self, certificate: Certificate) -> Certificate:
        """Return the certificate of all releases from which synthetic rows follow."""
        return certificate

    def review_types(self, inference: SchemaInference, curator: Curator) -> None:
        """Stop a fit once column types are known, if cells look like what cannot be read."""
        if inference.looks and not self.options.anyway:
            raise TypesUnreadError(_describe_looks(inference.looks, self.options.date_format))

    def fit_and_write(self) -> tuple[Any, list[str], int]:
        """Fit, and write the files of --output; if either fails, say what was spent and is kept.

        The release and its certificate are written before anything is learned from them, and all
        other files together, at the end. The results are the value of `write`, warnings, to which
        it may add some, and the exit code.
        """
        options = self.options
        if options.release is None:
            stop_for(self.list_doubts(), options)
        try:
            with interruptible() as commit, filled_folder(options.output, commit) as folder:
                with collected_warnings() as caught, saving_releases(self._keep):
                    if options.release is None:
                        with reviewing_types(self.review_types):
                            self._fit()
                    else:
                        self.generator = from_release(options.release, self.generator)
                        self.release = options.release
                messages = [str(warning) for warning in caught]
                if shows_progress(options):
                    print("drawing rows, and writing them and the report", file=sys.stderr)
                written = self.write(folder, messages)
        except KeyboardInterrupt as interrupt:
            raise interrupted(interrupt, self._describe_kept()) from None
        except TypesUnreadError as stop:
            raise StoppedError(f"{stop} {self._describe_kept()} --anyway goes on.") from None
        except Exception as error:
            # Before the release, the error of the fit says itself what was spent.
            if self.release is None:
                raise
            why, how = describe_error(error), self._describe_kept(isinstance(error, SpentError))
            why = why.removesuffix(".")
            raise SpentError(f"{why}. No synthetic rows were written. {how}") from None
        is_bad = any(isinstance(warning, FitQualityWarning) for warning in caught)
        return written, messages, BAD_RESULT if options.fail_on_warning and is_bad else 0

    def describe(self, rows: Any, messages: list[str], **known) -> tuple[dict, dict | None]:
        """Return the page on rows, by its file, and its results; one that fails is a message."""
        known |= {"certificate": self.certify(self.generator.privacy_), "budget": self.total}
        try:
            page = make_report(rows, release=self.generator.release_, **known)
            return {"report.html": page.to_html()}, page.results
        # The rows were paid for: they are written even if they cannot be described.
        except Exception as error:
            messages.append(f"There is no report: {describe_error(error)}")
            return {}, None

    def list_written(self, names: dict[str, str]) -> dict[str, str]:
        """Return the paths of the files of --output, the release among them, by what they hold."""
        folder = Path(self.options.output)
        names = names | ({"release": _RELEASE} if (folder / _RELEASE).exists() else {})
        return {name: str(folder / file) for name, file in names.items()}

    def _fit(self) -> None:
        """Fit the generator, and charge the budget of --budget."""
        none = contextlib.nullcontext()
        with self._own_budget or none, self.total or none:
            self.generator.fit(**self.fit_arguments)

    @cached_property
    def _own_budget(self) -> PrivacyBudget | None:
        """A budget that tells what a fit that fails has spent; None with a seed."""
        if self.options.seed is not None:
            # A budget refuses fits whose noise follows from a seed.
            return None
        return PrivacyBudget(
            self.options.epsilon,
            self.planned.delta,
            relation=self.planned.relation,
            threshold_delta=threshold_delta(self.planned.events),
        )

    def _keep(self, published: PublishedRelease) -> None:
        """Write the release, and its certificate beside it."""
        published = replace(published, certificate=self.certify(published.certificate))
        try:
            self._write_release(published)
        except OSError as error:
            # Better than to lose it, as where the disk is full.
            self._folder = tempfile.mkdtemp(prefix="skdpgen-")
            self._write_release(published)
            print_message(f"{error}; the release is in {self.release}.")

    def _write_release(self, published):
        # Links are followed, also to where there is nothing yet.
        os.makedirs(os.path.realpath(self._folder), exist_ok=True)
        path = Path(self._folder) / _RELEASE
        certificate = published.certificate.made_by(self.generator).to_json() + "\n"
        with replaced([str(path), str(path.with_name("certificate.json"))]) as (release, other):
            published.save(release)
            Path(other).write_text(certificate, encoding="utf-8")
        self.release = path

    def _describe_kept(self, has_price: bool = False) -> str:
        """Return what was spent, unless it was said, and how to go on."""
        spent = "With --seed, nothing is private."
        if self._own_budget is not None:
            spent = f"Until then ε = {show(self._own_budget.spent)} was spent."
        if self.release is None:
            return spent
        has_price |= self.options.release is not None
        return ("" if has_price else f"{spent} ") + (
            f"The release is kept: the same command with --release {self.release} and another "
            "--output goes on from it, at no cost."
        )


def end(summary: Summary, options: Namespace, code: int) -> int:
    """Print a summary as the options say, and return the exit code."""
    if options.as_json:
        print(json.dumps({"exit_code": code, **summary.data}, ensure_ascii=False))
    elif not options.quiet:
        print(summary.to_text())
        return code
    for message in summary.warnings:
        print_message(message)
    return code
