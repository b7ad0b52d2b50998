# SPDX-License-Identifier: BSD-3-Clause
"""The one door to private rows."""

import contextlib
from contextvars import ContextVar
from dataclasses import dataclass, replace

from dp_accounting import DpEvent

from ..accounting.budget import Reservation
from ..accounting.certificate import Certificate
from ..accounting.events import repeat, split_repetition
from ..accounting.spending import report_reserved_on_error, report_spent_on_error
from ..engines.partitioned import PartitionedTable
from ..exceptions import PlanError, warn_of_seed
from ..mechanisms.sums import RowCountMechanism
from .digests import Digest
from .persons import Persons
from .record_functions import RecordFunction
from .source import RecordSource

# What is called in place of a release, and which records count as absent: see `watching`.
_watched = ContextVar(
    "watched", default=(lambda curator, mechanism, release: release(mechanism), None)
)


@contextlib.contextmanager
def open_curator(records, codec, plan, noise, *, strict, clip_norm=1.0, device="cpu", verbose=0):
    """Open the door: how estimators have private records curated.

    The records are handed over, so that nobody else holds them. What fails inside after a release
    says what was spent. Certificates say what `records` and `strict` make them rest on.

    Parameters
    ----------
    records : Records
    codec : object
        Of public methods ``encode(X, y)``, which maps records to rows, each on its own, and
        ``refuse(X, y)``, which raises an error if something is wrong with them.
    plan, noise, clip_norm, device, verbose
        As in `Curator`.
    strict : bool
        Whether bad records are refused, rather than taken for absent.

    Yields
    ------
    Curator
    """
    if noise.reproducible:
        warn_of_seed()
    X, y, persons = records.release_ownership()
    curator = Curator(
        X,
        y,
        persons=persons,
        classes=records.classes,
        plan=records.cover(plan),
        noise=noise,
        prepare=RecordFunction(codec.encode),
        cells=records.reader or False,
        clip_norm=clip_norm,
        null=_watched.get()[1],
        refuse=codec.refuse if strict else None,
        assumptions=records.list_assumptions(strict),
        device=device,
        verbose=verbose,
    )
    with curator, report_spent_on_error(curator.certificate):
        curator.count_rows()
        yield curator


@contextlib.contextmanager
def watching(watch, null=None):
    """Let a test see, in this thread, what estimators release; nothing else has a use for it.

    Plans, noise and ledgers are what they are without it: whatever is released is on the
    certificate.

    Parameters
    ----------
    watch : callable
        ``watch(curator, mechanism, release)`` is called in place of a release, which
        ``release(mechanism)`` makes.
    null : array of bool of shape (n_samples,), default=None
        Records that count as absent.
    """
    token = _watched.set((watch, null))
    try:
        yield
    finally:
        _watched.reset(token)


class Curator:
    """Holds private rows and hands out the releases of a plan.

    The plan, which was priced against its budget, is reserved in every open `PrivacyBudget`; only
    then are the rows read. Each release enters the ledger before a row is read for it. After
    `close` no row is held.

    Whether a record is as it should be is private, and found out for each on its own: a *bad* one
    counts as absent. It has a label that is not among `classes`, a number that is not finite, or a
    row for which `prepare` fails. To take bad records for absent ones changes no sensitivity, under
    either relation: what a record adds to a release is a vector in a ball, of which an absent one
    adds the centre. What makes the curator refuse rows all the same, cells that are no numbers or
    whatever `refuse` refuses, is an exact answer about them, which no noise covers: budgets then
    stay charged with the whole plan.

    Parameters
    ----------
    X : array of shape (n_samples, n_features), or callable
        Rows in memory or memory-mapped; or a function that returns a fresh iterator over chunks,
        each ``X``, ``(X, y)`` or ``(X, y, persons)``; or a `PartitionedTable`.
    y : array of shape (n_samples,), default=None
        Labels, or numbers if `classes` is None. Not with chunks, which bring their own.
    plan : Plan
        What may be released.
    noise : NoiseSource
        Where the noise comes from.
    classes : array of shape (n_classes,), default=None
        The public labels that `y` may hold.
    prepare : RecordFunction, default=None
        Of ``prepare(X, y)``, a map that is applied to blocks. `y` is None unless it holds numbers.
    cells : bool or CellReader, default=False
        Whether `X` holds cells of any kind, for `prepare` to read, and not numbers. A `CellReader`
        brings them into canonical form first.
    clip_norm : float, default=1.0
        Public radius; prepared rows are scaled down to it, each on its own.
    null : array of bool of shape (n_samples,), default=None
        Rows that count as absent.
    persons : array-like of shape (n_samples,) or Persons, default=None
        For a plan for persons: whose each row is, which a `PartitionedTable` knows itself. With
        chunks, `Persons` of the identifiers that these bring. At most ``plan.max_rows`` rows of
        a person count.
    refuse : callable, default=None
        ``refuse(X, y)`` raises an error if something is wrong with a block. If it is given, bad
        records are refused, too, rather than taken for absent.
    assumptions : sequence of str, default=()
        What certificates rest on, before what they are asked to say.
    device : str or torch.device, default="cpu"
        Where mechanisms compute.
    verbose : int, default=0
        1 shows a progress bar over the number of blocks, if that is public.

    Attributes
    ----------
    n_records : int
        Number of records, or of persons, which is public.
    n_rows : float
        About how many records there are in sums: the number of records or, if a person can have
        several, what was released of it.
    n_classes : int
        Number of classes, 1 where there are none.
    """

    def __init__(
        self,
        X,
        y=None,
        *,
        plan,
        noise,
        classes=None,
        prepare=None,
        cells=False,
        clip_norm=1.0,
        null=None,
        persons=None,
        refuse=None,
        assumptions=(),
        device="cpu",
        verbose=0,
    ):
        self.plan = plan
        self._engine = X.engine if isinstance(X, PartitionedTable) else None
        # Workers of an engine are not asked for GPUs.
        self.device = device = device if self._engine is None else "cpu"
        self._noise = noise
        self._assumptions = assumptions
        self._ledger, self._digest = [], Digest()
        has_persons = persons is not None or getattr(X, "person_column", None) is not None
        if has_persons != (plan.max_rows is not None):
            raise PlanError("A plan for persons needs persons, and they need such a plan.")
        if persons is not None and not isinstance(persons, Persons):
            persons = Persons(persons)
        self._source = RecordSource(
            X,
            y,
            classes=classes,
            prepare=prepare,
            cells=cells,
            clip_norm=clip_norm,
            null=null,
            persons=persons,
            max_rows=plan.max_rows,
            key=noise.key() if has_persons else None,
            refuse=refuse,
            device=device,
            verbose=verbose,
        )
        self._reservation = Reservation(plan, noise.reproducible)
        with report_reserved_on_error(plan):
            self._source.open()
        self.n_records, self.n_classes = self._source.n_units, self._source.n_classes
        self.n_rows = self.n_records

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
            release that is planned to be repeated is asked for as many times, one by one.

        Raises
        ------
        PlanError
            If it is not, or does something else than its planned event says; no row is read then.
        """
        return _watched.get()[0](self, mechanism, self._release)

    def _release(self, mechanism):
        if self._source is None:
            raise PlanError("The curator is closed and holds no rows.")
        position = len(self._ledger) - 1
        if position < 0 or self._ledger[position].count == self._count(position):
            position += 1
        if position == len(self.plan.releases) or self.plan.releases[position][0] != mechanism.name:
            planned = [name for name, _ in self.plan.releases[position:]]
            raise PlanError(f"{mechanism.name!r} is not the next planned release; left: {planned}.")
        event, _ = split_repetition(self.plan.releases[position][1])
        mechanism.check(event)
        if self.plan.max_rows is not None and not mechanism.is_sum:
            raise PlanError(f"{mechanism.name!r} is no sum over records: it is not for persons.")
        if position == len(self._ledger):
            self._ledger.append(_Entry(mechanism.name, event))
        self._ledger[position].count += 1
        released = self._source.run(
            mechanism, event, relation=self.plan.relation, noise=self._noise
        )
        self._digest.add(released)
        return released

    def count_rows(self):
        """Release about how many rows of persons there are in sums, if that is planned."""
        if RowCountMechanism.name in dict(self.plan.releases):
            noisy = self.release(RowCountMechanism()).value.item()
            # Each person has a row, and so many at most.
            most = self.n_records * self.plan.max_rows
            self.n_rows = min(max(noisy, self.n_records), most)

    def prepare(self, function, clip_norm):
        """Exchange the map of the rows and their radius, which may follow from what is released."""
        self._source.prepare(function, clip_norm)

    def encode_cells_by(self, function):
        """Have records be their places in the columns of a table from now on; see `Hats`.

        Mechanisms for tables read places, and all others rows in the unit ball.

        Parameters
        ----------
        function : RecordFunction
            Maps cells to places, (n, n_columns).
        """
        self._source.encode_cells_by(function)

    def close(self):
        """Let go of the rows; budgets keep the charge for what was released only."""
        if self._source is not None:
            self._source.warn_of_changes()
        self._source = None
        self._reservation.settle(entry.total for entry in self._ledger)

    def certificate(self, assumptions=()):
        """Return the certificate of what was released so far."""
        releases = tuple((entry.name, entry.total) for entry in self._ledger)
        done = replace(self.plan, releases=releases)
        certificate = Certificate.of_plan(
            done,
            (*self._assumptions, *assumptions),
            reproducible=self._noise.reproducible,
            n_records=self.n_records,
        )
        digest = str(self._digest) if releases else None
        return replace(certificate, digest=digest, engine=self._engine)

    def _count(self, position):
        """Return how often the release at a position of the plan may happen."""
        return split_repetition(self.plan.releases[position][1])[1]


@dataclass
class _Entry:
    """A line of the ledger: a release, and how often it has happened."""

    name: str
    event: DpEvent
    count: int = 0

    @property
    def total(self):
        return repeat(self.event, self.count)
