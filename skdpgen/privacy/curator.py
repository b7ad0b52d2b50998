"""The one door to private rows."""

from dataclasses import dataclass, replace

from dp_accounting import DpEvent

from ..accounting.budget import Reservation
from ..accounting.certificate import Certificate
from ..accounting.events import repeat, split_repetition
from ..exceptions import PlanError
from .source import RecordSource

__all__ = ["Curator"]


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
        each ``X`` or ``(X, y)``.
    y : array of shape (n_samples,), default=None
        Labels, or numbers if `classes` is None. Not with chunks, which bring their own.
    plan : Plan
        What may be released.
    noise : NoiseSource
        Where the noise comes from.
    classes : array of shape (n_classes,), default=None
        The public labels that `y` may hold.
    prepare : callable, default=None
        A public map, applied to blocks: ``prepare(X, y)`` gives rows, one for each, and maps each
        on its own. `y` is None unless it holds numbers.
    cells : bool, default=False
        Whether `X` holds cells of any kind, for `prepare` to read, and not numbers.
    clip_norm : float, default=1.0
        Public radius; prepared rows are scaled down to it, each on its own.
    null : array of bool of shape (n_samples,), default=None
        Rows that count as absent.
    refuse : callable, default=None
        ``refuse(X, y)`` raises an error if something is wrong with a block. If it is given, bad
        records are refused, too, rather than taken for absent.
    device : str or torch.device, default="cpu"
        Where mechanisms compute.
    verbose : int, default=0
        1 shows a progress bar over the (public) number of blocks.

    Attributes
    ----------
    n_records : int
        Number of records, which is public.
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
        refuse=None,
        device="cpu",
        verbose=0,
    ):
        self.plan = plan
        self.device = device
        self._noise = noise
        self._ledger = []
        self._source = RecordSource(
            X,
            y,
            classes=classes,
            prepare=prepare,
            cells=cells,
            clip_norm=clip_norm,
            null=null,
            refuse=refuse,
            device=device,
            verbose=verbose,
        )
        self._reservation = Reservation(plan, noise.reproducible)
        # If this fails, the reservation stays.
        self._source.open()
        self.n_records, self.n_classes = self._source.n_records, self._source.n_classes

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
        if position == len(self._ledger):
            self._ledger.append(_Entry(mechanism.name, event))
        self._ledger[position].count += 1
        return mechanism.run(self._source, event, relation=self.plan.relation, noise=self._noise)

    def prepare(self, function):
        """Exchange the public map of the rows, which may follow from what was released before."""
        self._source.prepare(function)

    def close(self):
        """Let go of the rows; budgets keep the charge for what was released only."""
        self._source = None
        self._reservation.settle(entry.total for entry in self._ledger)

    def certificate(self, assumptions=()):
        """Return the certificate of what was released so far."""
        releases = tuple((entry.name, entry.total) for entry in self._ledger)
        done = replace(self.plan, releases=releases)
        return Certificate.of_plan(
            done,
            assumptions,
            reproducible=self._noise.reproducible,
            n_records=self.n_records,
        )

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
