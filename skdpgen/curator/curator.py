# SPDX-License-Identifier: BSD-3-Clause
"""The curator: private rows, the ledger of releases, and their reservation in budgets."""

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from dp_accounting import DpEvent

from ..accounting.budget import Reservation
from ..accounting.certificate import Certificate
from ..accounting.events import repeat, split_repetition
from ..accounting.plan import Plan
from ..accounting.spending import (
    keep_nothing,
    note_price,
    read_at_full_price,
    report_spent_on_error,
)
from ..data.record_functions import RecordFunction
from ..exceptions import PlanError, TableError, warn_of_search, warn_of_seed
from .batches import RecordSource
from .chunks import Partitions
from .dataset import Dataset
from .persons import Persons

# The function called in place of a release, and the null records: see `intercept_releases`.
_intercepted: ContextVar[tuple[Callable, np.ndarray | None]] = ContextVar(
    "intercepted", default=(lambda curator, mechanism, release: release(mechanism), None)
)


@contextlib.contextmanager
def open_curator(
    dataset: Dataset,
    format,
    plan: Plan,
    noise,
    *,
    strict: bool,
    device="cpu",
    verbose: int = 0,
    keep: Callable[[], tuple[Any, str]] = keep_nothing,
    row_count=None,
) -> Iterator["Curator"]:
    """Hand a dataset over to a curator, which nobody else then holds.

    Errors that are raised inside after a release report what was spent.

    Parameters
    ----------
    dataset : Dataset
        A validated one.
    format : object
        Its public method ``encode(X, y)`` maps each record to a row on its own, and its `clip_norm`
        is the radius that rows are scaled down to; ``validate(X, y)`` raises an error for invalid
        records.
    plan, noise, device, verbose
        As in `Curator`.
    strict : bool
        Whether to refuse bad records, rather than to count them as absent.
    keep : callable
        As in `report_spent_on_error`.
    row_count : RowCountMechanism, default=None
        Counts the rows of persons first, if that is planned.

    Yields
    ------
    Curator
    """
    if noise.reproducible:
        warn_of_seed()
    X, y, persons = dataset.release_ownership()
    curator = Curator(
        X,
        y,
        persons=persons,
        classes=dataset.classes,
        plan=dataset.cover(plan),
        noise=noise,
        prepare=RecordFunction(format.encode),
        cells=dataset.reader or False,
        clip_norm=format.clip_norm,
        null=_intercepted.get()[1],
        refuse=format.validate if strict else None,
        assumptions=dataset.list_assumptions(strict),
        device=device,
        verbose=verbose,
    )

    def keep_all():
        # Once more, with the public draws since the last release. It is kept in memory where it
        # cannot be written: that error must not replace the first one.
        if curator.released:
            with contextlib.suppress(Exception):
                curator.on_release()
        return keep()

    with curator, report_spent_on_error(curator.certificate, keep_all):
        if not curator.is_charged:
            warn_of_search()
        if row_count is not None:
            curator.count_rows(row_count)
        yield curator


@contextlib.contextmanager
def intercept_releases(intercept: Callable, null: np.ndarray | None = None) -> Iterator[None]:
    """Call a function in place of each release in this thread, for tests and audits.

    Plans, noise and ledgers are the same without it: the certificate lists each release.

    Parameters
    ----------
    intercept : callable
        ``intercept(curator, mechanism, release)`` is called in place of a release, which
        ``release(mechanism)`` makes.
    null : array of bool of shape (n_samples,), default=None
        Records that count as absent.
    """
    token = _intercepted.set((intercept, null))
    try:
        yield
    finally:
        _intercepted.reset(token)


class Curator:
    """Holds private rows and makes the releases of a plan.

    The plan, which was priced against its budget, is reserved in every open `PrivacyBudget`; only
    then are the rows read. Each release enters the ledger before a row is read for it. After
    `close` no row is held.

    Whether a record is valid is private, and decided for each on its own: a *bad* one counts as
    absent. A record is bad if its label is not among `classes`, if a number in it is not finite, or
    if `prepare` fails for it. Counting bad records as absent changes no sensitivity, under either
    relation: a record adds a vector in a ball to a release, and an absent one adds the centre. If
    the curator refuses rows all the same, because cells are no numbers or `refuse` raises, that is
    an exact answer about them, which no noise covers: budgets then stay charged with the whole
    plan.

    Parameters
    ----------
    X : array of shape (n_samples, n_features), or callable
        Rows in memory or memory-mapped; or a function that returns a fresh iterator over chunks,
        each ``X``, ``(X, y)`` or ``(X, y, persons)``; or `Partitions`.
    y : array of shape (n_samples,), default=None
        Labels, or numbers if `classes` is None. Not with chunks, which contain their own.
    plan : Plan
        The releases that may be made.
    noise : NoiseSource
        Where the noise comes from.
    classes : array of shape (n_classes,), default=None
        The public labels that `y` may hold.
    prepare : RecordFunction, default=None
        The map ``prepare(X, y)`` of blocks. `y` is None unless it holds numbers.
    cells : bool or CellReader, default=False
        Whether `X` holds cells of any type, for `prepare` to read, and not numbers. A `CellReader`
        brings them into canonical form first.
    clip_norm : float, default=1.0
        Public radius; prepared rows are scaled down to it, each on its own.
    null : array of bool of shape (n_samples,), default=None
        Rows that count as absent.
    persons : array-like of shape (n_samples,) or Persons, default=None
        For a plan for persons: the identifier of each row's person, which `Partitions`
        hold themselves. With chunks, `Persons` of the identifiers that these contain. At most
        ``plan.max_rows`` rows of a person count.
    refuse : callable, default=None
        ``refuse(X, y)`` raises an error if a block is invalid. If it is given, bad records are
        refused, too, rather than counted as absent.
    assumptions : sequence of str, default=()
        Assumptions of certificates, before those that `certificate` is given.
    device : str or torch.device, default="cpu"
        Where mechanisms compute.
    verbose : int, default=0
        1 shows a progress bar over the number of blocks, if that is public.

    Attributes
    ----------
    n_records : int
        Number of records, or of persons, which is public.
    n_rows : float
        Approximate number of records in sums: the number of records or, if a person can have
        several, its noisy release.
    n_classes : int
        Number of classes, 1 where there are none.
    released : list or None
        The values of all releases so far, in order; None if the plan repeats one.
    on_release : callable
        Called after each of these releases.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpgen.privacy import (
    ...     Curator, GaussianSumMechanism, NoiseSource, RecordFunction, gaussian_plan
    ... )
    >>> mechanism = GaussianSumMechanism(RecordFunction(lambda rows: rows), 1.0)
    >>> plan = gaussian_plan({mechanism.name: 1.0}, epsilon=1.0, delta=1e-5)
    >>> with Curator(np.ones((50, 2)), plan=plan, noise=NoiseSource(None)) as curator:
    ...     noisy = curator.release(mechanism)
    >>> noisy.value.shape, curator.certificate().epsilon <= 1.0
    ((2,), True)
    """

    def __init__(
        self,
        X,
        y=None,
        *,
        plan: Plan,
        noise,
        classes=None,
        prepare: RecordFunction | None = None,
        cells=False,
        clip_norm: float | None = 1.0,
        null=None,
        persons=None,
        refuse: Callable | None = None,
        assumptions: Sequence[str] = (),
        device="cpu",
        verbose: int = 0,
    ):
        self.plan = plan
        self._engine = X.engine if isinstance(X, Partitions) else None
        plan.check_place(self._engine)
        # Workers of an engine need no GPUs.
        self.device = device = device if self._engine is None else "cpu"
        self._noise = noise
        self._assumptions = assumptions
        self._ledger: list[_Entry] = []
        self._digest = Digest()
        # Values that are released once each; those of many steps would fill the memory.
        is_kept = all(split_repetition(event)[1] == 1 for event in plan.events)
        self.released: list | None = [] if is_kept else None
        self.on_release: Callable[[], None] = lambda: None
        has_persons = persons is not None or getattr(X, "person_column", None) is not None
        has_persons |= getattr(X, "has_persons", False)
        # A plan for records would bound one row of a person, and the noise would be too small.
        if has_persons != (plan.max_rows is not None):
            raise PlanError("A plan for persons needs persons, and they need such a plan.")
        if persons is not None and not isinstance(persons, Persons):
            persons = Persons(persons)
        self._source: RecordSource | None = RecordSource(
            X,
            y,
            classes=classes,
            prepare=prepare,
            cells=cells,
            clip_norm=clip_norm,
            null=null,
            persons=persons,
            max_rows=plan.weight,
            key=noise.key() if has_persons else None,
            refuse=refuse,
            device=device,
            verbose=verbose,
        )
        # Before the first read: whatever happens from here on is paid for.
        self._reservation = Reservation(plan, noise.reproducible)
        self._has_failed = False
        try:
            read_at_full_price(self._source.open, plan)
        except KeyboardInterrupt as error:
            # It may come from the code of a cell: given back, the charge would tell.
            note_price(error, "Rows were being read, and all of the fit is charged", plan)
            raise
        self.n_records, self.n_classes = self._source.n_units, self._source.n_classes
        # Unless `count_rows` releases another number, which may be a fraction.
        self.n_rows: float = self.n_records

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.close()

    def __getstate__(self):
        raise TypeError("A Curator holds private rows and cannot be pickled or copied.")

    def release(self, mechanism):
        """Run a planned mechanism on the rows and return its noisy result.

        Parameters
        ----------
        mechanism : SumMechanism or SampledMechanism
            Its name must be the next in the plan, which fixes its noise and its sampling. A
            release that is planned to be repeated is requested as many times, one by one.

        Returns
        -------
        object
            The mechanism's dataclass of released values.

        Raises
        ------
        PlanError
            If it is not the next, or does something else than its planned event says; no row is
            read then.
        """
        return _intercepted.get()[0](self, mechanism, self._release)

    def _release(self, mechanism):
        source, planned = self._open_source(), self.plan.releases
        position = len(self._ledger) - 1
        if position < 0 or self._ledger[-1].count == split_repetition(planned[position][1])[1]:
            position += 1
        if position == len(planned) or planned[position][0] != mechanism.name:
            left = [name for name, _ in planned[position:]]
            raise PlanError(f"{mechanism.name!r} is not the next planned release; left: {left}.")
        event, _ = split_repetition(planned[position][1])
        mechanism.check(event)
        if self.plan.max_rows is not None and not mechanism.is_sum:
            raise PlanError(f"{mechanism.name!r} is no sum over records: it is not for persons.")
        if position == len(self._ledger):
            # In the ledger before a row is read: an error in the release must not make it free.
            self._ledger.append(_Entry(mechanism.name, event))
        self._ledger[position].count += 1
        options = {"relation": self.plan.relation, "noise": self._noise}
        released = self._read(partial(mechanism.run, source, event, **options))
        self._digest.add(released)
        if self.released is not None:
            self.released.append(released)
            self.on_release()
        return released

    def _read(self, read):
        """Call a function that reads rows, whose errors may follow from these."""
        try:
            return read_at_full_price(read, self.plan, (TableError,))
        except PlanError:
            raise
        except Exception:
            self._has_failed = True
            raise

    def _open_source(self):
        if self._source is None:
            raise PlanError("The curator is closed and holds no rows.")
        return self._source

    def count_rows(self, mechanism) -> None:
        """Release the noisy number of rows of persons in sums, if that is planned.

        It is clamped to the public bounds, and sets `n_rows`.

        Parameters
        ----------
        mechanism : RowCountMechanism
        """
        if self.plan.max_rows and mechanism.name in dict(self.plan.releases):
            noisy = self.release(mechanism).value.item()
            # Each person has at least one row, and at most `max_rows` count.
            self.n_rows = min(max(noisy, self.n_records), self.n_records * self.plan.max_rows)

    def prepare(self, function: RecordFunction | None, clip_norm: float | None) -> None:
        """Replace the map of the rows and their radius, by what follows from releases.

        Parameters
        ----------
        function : RecordFunction or None
            Maps X to rows; None if X holds rows already.
        clip_norm : float
            The radius that rows are scaled down to.
        """
        self._open_source().prepare(function, clip_norm)

    def parse_cells(self, function: Callable) -> None:
        """Replace cells by what a public function makes of them; see `RecordSource.parse_cells`."""
        self._read(partial(self._open_source().parse_cells, function))

    def encode_cells_by(self, function: RecordFunction) -> None:
        """Replace records by their codes in the columns of a table.

        Mechanisms for tables read codes, and all others rows in the unit ball.

        Parameters
        ----------
        function : RecordFunction
            Maps cells to codes, (n, n_columns).
        """
        self._read(partial(self._open_source().encode_cells_by, function))

    @property
    def is_charged(self) -> bool:
        """Whether a budget, or the search that runs the fit, pays for it."""
        return self._reservation.is_charged

    def close(self) -> None:
        """Release the rows from memory; budgets keep the charge of what was released only.

        If a row could not be read, they keep that of the whole plan.
        """
        if self._source is not None:
            self._source.warn_of_changes()
        self._source = None
        # The charge for planned releases that were not made is given back.
        spent = self.plan.events if self._has_failed else [entry.total for entry in self._ledger]
        self._reservation.settle(spent, self._find_digest())

    def certificate(self, assumptions: Sequence[str] = ()) -> Certificate:
        """Return the certificate of the releases so far.

        Parameters
        ----------
        assumptions : sequence of str, default=()
            Assumptions beside those that the curator knows.
        """
        releases = tuple((entry.name, entry.total) for entry in self._ledger)
        certificate = Certificate.of_plan(
            replace(self.plan, releases=releases),
            (*self._assumptions, *assumptions),
            reproducible=self._noise.reproducible,
            n_records=self.n_records,
        )
        digest = self._find_digest()
        digests = () if digest is None else ((digest,),) * len(releases)
        return replace(certificate, digests=digests, engine=self._engine)

    def _find_digest(self):
        """Return the digest of all releases, or None if there is none or one was interrupted."""
        n_released = sum(entry.count for entry in self._ledger)
        return str(self._digest) if self._digest.n_added == n_released > 0 else None


@dataclass
class _Entry:
    """A line of the ledger: a release, and how often it was made."""

    name: str
    event: DpEvent
    count: int = 0

    @property
    def total(self):
        return repeat(self.event, self.count)


class Digest:
    """BLAKE2b of released dataclasses in their order, which identifies a fit's releases."""

    def __init__(self):
        self._hash = hashlib.blake2b(digest_size=32)
        self.n_added = 0

    def add(self, released) -> None:
        """Add a release."""
        for part in _iter_bytes(released):
            # With its length, so that the border between two parts is hashed, too.
            self._hash.update(len(part).to_bytes(8, "big") + part)
        self.n_added += 1

    def __str__(self):
        return self._hash.hexdigest()


def find_digest(values) -> str:
    """Return the digest of released values in their order."""
    digest = Digest()
    for value in values:
        digest.add(value)
    return str(digest)


def _iter_bytes(value):
    """Yield the bytes of all numbers in a released value, in a fixed order."""
    if is_dataclass(value):
        for field in fields(value):
            yield field.name.encode()
            yield from _iter_bytes(getattr(value, field.name))
    elif isinstance(value, np.ndarray | torch.Tensor):
        array = np.asarray(value.cpu() if isinstance(value, torch.Tensor) else value)
        yield f"{array.dtype.str} {array.shape}".encode()
        yield np.ascontiguousarray(array).tobytes()
    elif isinstance(value, dict):
        for key in sorted(value, key=repr):
            yield from _iter_bytes((key, value[key]))
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _iter_bytes(item)
    else:
        yield repr(value).encode()
