# SPDX-License-Identifier: BSD-3-Clause
"""Particles of persons with histories: two private tables that belong together."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..base import BaseGenerator
from ..checks import positive, whole
from ..learners.interface import Sampler
from ..params import CENTRAL_CHECKS, documented
from ..tables.rules.rules import parse_rules
from ..tables.schema import Schema
from .calendars import make_kernels
from .history_format import HistoryFormat
from .learner import HistoryParticles, find_undated, fit_particles, read_tables
from .release import HistoryTables
from .sampling import HistorySampler
from .shrinkage import list_waves

# Least and largest number of particles by default, probabilities in all of them, steps, and the
# learning rate of Adam.
_FEWEST, _MOST, _MOST_NUMBERS, _STEPS, _RATE = 500, 4000, 2**26, 300, 0.1


def _check_schemas(name, value):
    is_valid = value is None or (
        isinstance(value, Mapping) and all(isinstance(s, Schema) for s in value.values())
    )
    if not is_valid:
        raise ValueError(
            f"{name} must be a dict of a Schema for each table, or None; got {value!r}."
        )


@documented
class DPHistorySampler(BaseGenerator):
    """Particles of persons with histories: patients and visits, or accounts and transactions.

    Two tables belong together: one has a row for each person, the other up to M rows that count for
    each, in order. Privacy is for persons, with all their rows. One sum over persons is released:
    two-way tables of the columns of persons, among them the number of rows, of the columns of rows,
    of persons with rows, of rows with the calendar, and of each row with the next one and of the
    first row with all later ones. A person has one share of each table, however many rows they
    have. Particles are persons with up to M rows, and are trained until they match all tables, up
    to the noise.

    Kept are the pairs of columns within a row, of a person and their rows, of a row and the next,
    and of the first row and later ones; the number of rows; the number of a row in the order; the
    gaps between orders; and what depends on the month, the weekday or the hour, if the inferred
    range, unit and steps of the order have several of them. Other dates of a row are learned
    relative to its order. Not kept are
    other dependence over more than one step but for what follows from these, trends over years,
    further tables, and rows of a person after the first M.

    Parameters
    ----------
    %(privacy)s
    %(random_state)s
    %(device)s
    %(verbose)s
    schemas : dict of str to Schema, default=None
        Public column types, by the name of the table. Whatever is not declared is inferred at a
        cost, from one row of each person. Their rules are obeyed.
    rules : list of Implies, Ordered, Derived, Unique or Combinations, default=()
        Rules across both tables, of columns by the names ``"table.column"``, such as
        ``Ordered("patients.birth", "visits.admitted")``. Persons, the order, and dates are drawn
        before other columns of rows: only these can be derived, or follow from an `Implies`.
    max_rows_per_person : int, default=8
        M: the first M rows of a person, in order, count; others are absent. It costs no privacy.
    n_particles : int, default=None
        Number of particles. None: half of the persons, within [500, 4000], or fewer for so many
        rows and levels that they would fill the memory.
    n_steps : int, default=None
        Largest number of steps; they cost no privacy. None: 300.
    learning_rate : float, default=None
        Learning rate of Adam, for logits. None: 0.1.

    Attributes
    ----------
    %(certified)s
    release_ : object
        The release.
    schemas_ : dict of str to Schema
        Declared and inferred columns of both tables.
    schema_report_ : DataFrame
        For each column, what the releases show of it, as in `DPSWFlowSampler`. Counts of columns of
        rows are of persons, who have one share each.
    sigma_ : float
        Standard deviation of the noise on the tables of rows, of which a person adds a vector of
        norm 1.
    n_samples_ : int
        Number of persons, which is public.
    n_iter_ : int
        Number of steps.
    loss_curve_ : list of float
        At each step, the estimated squared distance to the noisy tables.

    Notes
    -----
    Tables hold each person with a share of 1: of n rows each has a share of 1/n. So persons with
    many rows do not weigh more, in the noise and in the tables. Synthetic persons have numbers as
    keys, and each synthetic row has the key of a synthetic person.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdpgen import DPHistorySampler
    >>> patients = pd.DataFrame({"id": range(200), "smokes": ["yes", "no"] * 100})
    >>> visits = pd.DataFrame(
    ...     {"id": [i // 3 for i in range(600)], "day": range(600), "ward": ["A", "A", "B"] * 200}
    ... )
    >>> sampler = DPHistorySampler(epsilon=9.0, max_rows_per_person=3, n_steps=20)
    >>> sampler = sampler.fit({"patients": patients, "visits": visits}, persons="id", order="day")
    >>> drawn = sampler.sample(50)
    >>> {name: len(table) for name, table in drawn.items()}
    {'patients': 50, 'visits': 150}
    >>> set(drawn["visits"]["id"]) <= set(drawn["patients"]["id"])
    True
    """

    strict = False
    _checks = {
        **{name: check for name, check in CENTRAL_CHECKS.items() if name != "clip_norm"},
        "schemas": _check_schemas,
        "max_rows_per_person": whole(),
        "n_particles": whole(optional=True),
        "n_steps": whole(optional=True),
        "learning_rate": positive(optional=True),
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        relation: str = "zero_out",
        accountant: str = "pld",
        random_state: object = None,
        device: str = "auto",
        verbose: int = 0,
        schemas: Mapping | None = None,
        rules: Sequence = (),
        max_rows_per_person: int = 8,
        n_particles: int | None = None,
        n_steps: int | None = None,
        learning_rate: float | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.accountant = accountant
        self.random_state = random_state
        self.device = device
        self.verbose = verbose
        self.schemas = schemas
        self.rules = rules
        self.max_rows_per_person = max_rows_per_person
        self.n_particles = n_particles
        self.n_steps = n_steps
        self.learning_rate = learning_rate

    def fit(self, X, y=None, *, persons, order=None):
        """Learn persons and their rows under differential privacy.

        Parameters
        ----------
        X : dict of str to DataFrame
            Two private tables, by their names: that of persons, with a row for each, and that of
            their rows. Rows without a person in the first table count as absent. If a person has
            several rows in the first table, the first counts.
        y : Ignored
        persons : str
            Name of the column of both tables that identifies persons.
        order : str, default=None
            Name of the column of the second table, of numbers or dates, that orders the rows of a
            person. None: the order of the table.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            If the public facts of the tables contradict each other; nothing is spent.
        BudgetExceededError
            If an open `PrivacyBudget` cannot pay for the fit; nothing is released.
        """
        return super().fit(X, persons=(persons, order))

    def _read(self, X, y, target, persons):
        key, order = persons if isinstance(persons, tuple) else (persons, None)
        rules = parse_rules(self.rules)
        return HistoryFormat.open(X, self.schemas, key, order, self.max_rows_per_person, rules)

    def _preview(self, n_samples, n_features, n_classes, has_persons=False):
        raise ValueError(
            "The columns of two tables say what they cost: preview(sampler, {'patients': ..., "
            "'visits': ...}, persons='id'), of which no row is read."
        )

    def _find_release(self, format):
        return HistoryTables()

    def _plan(self, terms, format):
        return self._find_release(format).plan(terms, format)

    def _learn_histories(self, release, curator, format, noise):
        released = release.run(curator, format)
        curator.close()  # the rest is post-processing
        n_records, sizes = curator.n_records, format.history_sizes
        format = replace(format, has_undated=find_undated(released, format))
        marginals, report = read_tables(released, format, n_records)
        most = min(_MOST, _MOST_NUMBERS // sizes.width)
        n_particles = self.n_particles or max(1, min(most, max(_FEWEST, n_records // 2)))
        has_gaps, generator = format.gap_block is not None, noise.torch_generator()
        particles = HistoryParticles(
            n_particles,
            generator,
            sizes,
            marginals.starts,
            has_gaps,
            make_kernels(released[3], marginals, format),
            format.has_undated,
        )
        dates = HistorySampler(format, particles, generator, noise.public_generator())
        rows, losses = fit_particles(
            particles.to(curator.device),
            released,
            marginals,
            list_waves(format, marginals),
            dates.draw_times,
            generator=generator,
            n_steps=self.n_steps or _STEPS,
            learning_rate=self.learning_rate or _RATE,
            verbose=self.verbose,
        )
        return Sampler(rows, losses, report=report, format=format)

    def _generate(self, classes, generator):
        return self._rows.sample(classes, generator)

    def _start_sampling(self, random_state):
        rows = super()._start_sampling(random_state)
        return replace(rows, generate=self._rows)
