# SPDX-License-Identifier: BSD-3-Clause
"""What a fitted estimator can show: a statement of privacy, computed from its ledger."""

import json
import math
import numbers
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from dp_accounting import (
    DpEvent,
    GaussianDpEvent,
    LaplaceDpEvent,
    NonPrivateDpEvent,
    RandomizedResponseDpEvent,
    UnsupportedEventError,
)
from sklearn.base import BaseEstimator

from .._html import make_table
from .accountants import check_relation, ledger_delta, ledger_epsilon
from .calibration import check_delta, check_epsilon
from .certificate_form import INFINITE, STATEMENT, read_form
from .event_json import event_from_dict, event_to_dict
from .events import (
    concentrated_rho,
    flatten,
    gaussian_mu,
    pure_epsilon,
    step_multiplier,
    touches_data,
)
from .plan import Plan
from .provenance import Origin, join_names, join_origins
from .rounding import show
from .shuffling import shuffled_epsilon
from .strict_json import TEXT
from .units import check_unit, describe_unit, unit_assumptions, unit_sensitivity

# Lines of text are this long at most.
_WIDTH = 88
# Numbers that follow from the events. Processors and versions of libraries agree on them to many
# more digits than this.
_COSTS, _TOLERANCE = ("epsilon", "mu", "rho"), 1e-6
# Events that a record's owner can make alone.
_LOCAL = GaussianDpEvent, LaplaceDpEvent, NonPrivateDpEvent, RandomizedResponseDpEvent
# What pricing a malformed certificate can raise.
_MALFORMED = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    UnsupportedEventError,
    ValueError,
)


@dataclass(frozen=True, repr=False)
class Certificate:
    """A statement of (ε, δ)-differential privacy, computed from the releases that were made.

    Attributes
    ----------
    events : tuple of dp_accounting.DpEvent
        What was done to private rows, in order.
    releases : tuple of str
        The name of each event.
    relation : {"zero_out", "replace_one"}
        Which data sets are neighbours. The number of records, or of persons, is public under both.
    accountant : {"pld", "rdp", "autodp"}
        Which accountant computes ε, the one that also found the noise.
    delta : float
        The δ at which the noise was calibrated.
    assumptions : tuple of str
        What the statement rests on.
    reproducible : bool
        Whether the noise follows from a seed that the caller chose.
    sigma : float or None
        Standard deviation of the noise, where there is one level; of Laplace noise its scale.
    local : bool
        Whether each record was noised on its own, as its owner can (local privacy).
    n_records : int or None
        The (public) number of records, or of persons, where it is known.
    notes : tuple of str
        What else is to be known of a planned fit.
    max_rows : int or None
        If the guarantee is for persons, with all their rows: how many of these are used at most.
    origin : Origin or None
        Which estimator made it, with which public parameters; version and date.
    digest : str or None
        BLAKE2b of the noisy numbers that were released: certificates with the same one are of the
        same release.
    engine : str or None
        What added up the rows where they were held, such as ``"dask"``. None: this process alone.

    Examples
    --------
    >>> from dp_accounting import GaussianDpEvent
    >>> from skdpgen.privacy import Certificate
    >>> certificate = Certificate((GaussianDpEvent(4.0),), ("slice sketch",), delta=1e-5)
    >>> round(certificate.epsilon, 3)
    0.926
    >>> certificate.delta_at(2.0) < 1e-9
    True
    >>> certificate
    <Certificate: ε = 0.9264 at δ = 1e-05 (zero_out) for each record; 1 release>
    """

    events: tuple
    releases: tuple
    relation: str = "zero_out"
    accountant: str = "pld"
    delta: float = 1e-5
    assumptions: tuple = ()
    reproducible: bool = False
    sigma: float | None = field(default=None, compare=False)
    local: bool = False
    n_records: int | None = None
    notes: tuple = field(default=(), compare=False)
    max_rows: int | None = None
    origin: Origin | None = field(default=None, compare=False)
    digest: str | None = field(default=None, compare=False)
    engine: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if len(self.events) != len(self.releases):
            raise ValueError("A certificate needs one name per event.")
        object.__setattr__(self, "delta", check_delta(self.delta))
        check_relation(self.relation)
        if self.local and self.relation != "replace_one":
            raise ValueError("Local releases are stated under relation='replace_one'.")
        if self.local and self.max_rows is not None:
            raise ValueError("Local releases are of records: max_rows is for sums of several.")
        if self.local and not all(isinstance(leaf, _LOCAL) for leaf in flatten(self.events)):
            raise ValueError("Local releases noise each record: samples and thresholds are not.")

    @classmethod
    def of_plan(
        cls,
        plan: Plan,
        assumptions: Iterable[str] = (),
        *,
        reproducible: bool = False,
        n_records: int | None = None,
    ) -> "Certificate":
        """Certify what a plan would cost."""
        return cls(
            events=plan.events,
            releases=tuple(name for name, _ in plan.releases),
            relation=plan.relation,
            accountant=plan.accountant,
            delta=plan.delta,
            assumptions=unit_assumptions(assumptions, plan.max_rows),
            reproducible=reproducible,
            sigma=plan.sigma,
            local=plan.local,
            n_records=n_records,
            max_rows=plan.max_rows,
        )

    def find_sigma(self, name: str, sensitivity: Callable[[str], float]) -> float:
        """Return the standard deviation of the noise on a release, from its event.

        Parameters
        ----------
        name : str
            Name of the release.
        sensitivity : callable
            Sensitivity under a relation, as `unit_sensitivity` takes it.
        """
        event = dict(zip(self.releases, self.events, strict=True))[name]
        return step_multiplier(event) * unit_sensitivity(sensitivity, self.relation, self.max_rows)

    def made_by(self, estimator: BaseEstimator) -> "Certificate":
        """Return the certificate with the origin that an estimator is, today."""
        return replace(self, origin=Origin.of(estimator))

    @property
    def mu(self) -> float | None:
        """The same as μ of Gaussian differential privacy; None where it is not known."""
        return gaussian_mu(self.events)

    @property
    def rho(self) -> float | None:
        """The same as ρ of zero-concentrated differential privacy; None where it is not known."""
        return concentrated_rho(self.events)

    @property
    def epsilon(self) -> float:
        """ε at `delta`."""
        return self.epsilon_at(self.delta)

    def epsilon_at(self, delta: float) -> float:
        """Return the smallest ε that is proved at `delta`."""
        return ledger_epsilon(
            self.events, check_delta(delta), accountant=self.accountant, relation=self.relation
        )

    def delta_at(self, epsilon: float) -> float:
        """Return the smallest δ that is proved at `epsilon` ≥ 0."""
        if not (isinstance(epsilon, numbers.Real) and epsilon == 0):
            epsilon = check_epsilon(epsilon)
        return ledger_delta(
            self.events, epsilon, accountant=self.accountant, relation=self.relation
        )

    def shuffled(self, n_samples: int, delta: float) -> float:
        """Return ε towards whoever sees noised records in random order only (shuffle model).

        Where a trusted party shuffles the noised records of `n_samples` owners before anybody else
        sees them, each is hidden among the others. This is the clones bound of [1]_ (Theorem 3.2,
        computed) for local randomisers of pure ε₀, under ``relation="replace_one"``.

        Parameters
        ----------
        n_samples : int
            Number of records that are shuffled together, each noised once, alike and on its own.
        delta : float
            Target δ.

        Returns
        -------
        float
            ε at `delta`, at most the local one.

        Raises
        ------
        ValueError
            If the releases are not local or not pure.

        Notes
        -----
        Gaussian noise is not pure: its ε₀ holds up to a δ₀ for each record, which the theorem does
        not cover.

        References
        ----------
        .. [1] Feldman, McMillan & Talwar, "Hiding Among the Clones", FOCS 2021.

        Examples
        --------
        >>> from dp_accounting import LaplaceDpEvent
        >>> from skdpgen.privacy import Certificate
        >>> local = Certificate(
        ...     (LaplaceDpEvent(0.2),), ("noised rows",), relation="replace_one", local=True
        ... )
        >>> round(local.shuffled(400_000, 1e-6), 3)
        0.141
        """
        if not isinstance(n_samples, numbers.Integral) or n_samples < 1:
            raise ValueError(f"n_samples must be a whole number of at least 1; got {n_samples!r}.")
        check_delta(delta)
        if not self.local:
            raise ValueError(
                "Shuffling amplifies local releases, of records that are noised one by one; these "
                "are not, or were composed of several fits."
            )
        leaves = flatten(self.events)
        losses = {leaf: pure_epsilon(leaf) for leaf in leaves}
        if any(isinstance(leaf, NonPrivateDpEvent) for leaf in leaves):
            return math.inf
        if None in losses.values():
            raise ValueError(
                "The clones bound is for releases of pure ε, such as Laplace noise; Gaussian noise "
                "exceeds any ε with some probability, for each record. Use mechanism='laplace'."
            )
        epsilon = sum(count * losses[leaf] for leaf, count in leaves.items())
        return shuffled_epsilon(epsilon, int(n_samples), delta)

    def to_json(self) -> str:
        """Write the certificate down; `verify` recomputes its ε."""
        epsilon = self.epsilon
        unit = {"n_records": self.n_records}
        if self.max_rows is not None:
            unit = {"unit": "person", "max_rows": self.max_rows, "n_persons": self.n_records}
        others = {
            "mu": self.mu,
            "rho": self.rho,
            "digest": self.digest,
            "engine": self.engine,
        }
        others = {name: _to_json(value) for name, value in others.items() if value is not None}
        if self.origin is not None:
            others["made_by"] = self.origin.to_dict()
        return json.dumps(
            {
                "statement": STATEMENT,
                "epsilon": _to_json(epsilon),
                "delta": self.delta,
                "relation": self.relation,
                "accountant": self.accountant,
                "reproducible": self.reproducible,
                "local": self.local,
                **unit,
                **others,
                "releases": [
                    {"name": name, **event_to_dict(event)}
                    for name, event in zip(self.releases, self.events, strict=True)
                ],
                "assumptions": list(self.assumptions),
            },
            indent=2,
        )

    @classmethod
    def from_json(cls, text: str) -> "Certificate":
        """Read what `to_json` wrote; numbers that follow from the events are computed again.

        Parameters
        ----------
        text : str

        Returns
        -------
        Certificate

        Raises
        ------
        ValueError
            If the text is no certificate, to the last member; if it contradicts itself; if it
            states another ε, μ or ρ than its events cost, be it larger or smaller.
        """
        try:
            data = read_form(text)
            max_rows = data.get("max_rows")
            certificate = cls(
                events=tuple(map(_read_event, data["releases"])),
                releases=tuple(release["name"] for release in data["releases"]),
                relation=data["relation"],
                accountant=data["accountant"],
                delta=data["delta"],
                assumptions=tuple(data["assumptions"]),
                reproducible=data["reproducible"],
                local=data["local"],
                n_records=data["n_records" if max_rows is None else "n_persons"],
                max_rows=max_rows,
                origin=Origin.from_dict(data["made_by"]) if "made_by" in data else None,
                digest=data.get("digest"),
                engine=data.get("engine"),
            )
            check_unit(certificate.assumptions, max_rows)
            costs = {name: getattr(certificate, name) for name in _COSTS}
        except _MALFORMED as error:
            raise ValueError(f"Not a certificate: {error}") from error
        for name, cost in costs.items():
            stated = data.get(name, cost)
            is_same = stated == cost or (
                cost is not None and math.isclose(float(stated), cost, rel_tol=_TOLERANCE)
            )
            if not is_same:
                raise ValueError(
                    f"The certificate states {name} = {stated!r}, but its events cost {cost!r}."
                )
        return certificate

    def _list_statements(self) -> list[str]:
        """Say what is guaranteed, line by line."""
        lines = []
        if self.reproducible:
            lines.append(
                "REPRODUCIBLE MODE, NOT A PRIVATE RELEASE: whoever holds or guesses the seed can "
                "recompute the noise."
            )
        epsilon = self.epsilon
        if math.isinf(epsilon):
            lines.append("No differential privacy: ε = inf.")
        else:
            lines.append(
                f"Differential privacy with ε = {show(epsilon)} at δ = {show(self.delta)}."
            )
        if self.local:
            lines.append("Local: each record was noised on its own; ε holds towards everybody.")
        lines += describe_unit(self.relation, self.max_rows, self.n_records)
        readings = {"μ": self.mu, "ρ": self.rho}
        known = [f"{name} = {show(value)}" for name, value in readings.items() if value is not None]
        if known and not math.isinf(epsilon):
            lines.append(f"As Gaussian or zero-concentrated privacy: {', '.join(known)}.")
        if self.engine is not None:
            lines.append(
                f"Rows were added up by {self.engine}: its workers, logs and files had sums "
                "without noise, and are as private as the rows."
            )
        if self.digest is not None:
            lines.append(f"Digest of the releases: {self.digest}")
        return lines + (self.origin.describe() if self.origin else [])

    def __repr__(self) -> str:
        seeded = "REPRODUCIBLE, NOT PRIVATE: " if self.reproducible else ""
        unit = "record" if self.max_rows is None else "person"
        releases = f"{len(self.releases)} release{'s' * (len(self.releases) != 1)}"
        return (
            f"<Certificate: {seeded}ε = {show(self.epsilon)} at δ = {show(self.delta)} "
            f"({self.relation}) for each {unit}; {releases}>"
        )

    def _repr_html_(self) -> str:
        return make_table(
            self._list_statements(),
            ["Release", f"Event, priced with the others by {self.accountant!r}"],
            zip(self.releases, self.events, strict=True),
            [*self.assumptions, *(f"Note: {note}" for note in self.notes)],
        )

    def __str__(self) -> str:
        lines = self._list_statements()
        lines.append(f"Releases, priced together by the {self.accountant!r} accountant:")
        for name, event in zip(self.releases, self.events, strict=True):
            lines.append(f"  - {name}: {event}")
        lines += [f"Assumes: {assumption}" for assumption in self.assumptions]
        lines += [f"Note: {note}" for note in self.notes]
        return "\n".join(_wrap(line) for line in lines)


def _read_event(release: Any) -> DpEvent:
    """Return the event of a named release, which reads records."""
    if not isinstance(release, dict) or not TEXT.allows(release.get("name")):
        raise ValueError(f"a release must have a name, which is {TEXT.what}.")
    event = event_from_dict({key: value for key, value in release.items() if key != "name"})
    if not touches_data(event):
        raise ValueError(f"{release['name']!r} releases nothing: {event}.")
    return event


def _to_json(value: Any) -> Any:
    """Return a number that JSON has: it has no infinity."""
    return INFINITE if value == math.inf else value


def _wrap(line: str) -> str:
    """Break a line at spaces; what goes on is indented."""
    return textwrap.fill(
        line,
        _WIDTH,
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )


def compose(*certificates: Certificate) -> Certificate:
    """Price several fits on the same rows together.

    Parameters
    ----------
    *certificates : Certificate
        At least one; all with the same relation and accountant.

    Returns
    -------
    Certificate
        Of all releases, at the largest of their δ.

    Notes
    -----
    Choosing a later fit's budget after seeing an earlier one's result is covered for unsampled
    Gaussian releases; for others, those with thresholds among them, fix the budgets beforehand.
    """
    if not certificates:
        raise ValueError("compose needs at least one certificate.")
    if not all(isinstance(certificate, Certificate) for certificate in certificates):
        raise TypeError("compose takes certificates, one by one: compose(a.privacy_, b.privacy_).")
    for name in ("relation", "accountant"):
        values = {getattr(certificate, name) for certificate in certificates}
        if len(values) > 1:
            raise ValueError(f"Certificates with different {name} cannot be composed: {values}.")
    max_rows = [certificate.max_rows for certificate in certificates]
    if None in max_rows and any(max_rows):
        raise ValueError("Certificates for records and for persons cannot be composed.")
    assumptions = dict.fromkeys(a for c in certificates for a in c.assumptions)
    if sum(certificate.reproducible for certificate in certificates) > 1:
        seeds = "the seeds of the fits are different: fits that share a seed share noise"
        assumptions[seeds] = None
    n_records = {certificate.n_records for certificate in certificates}
    return Certificate(
        events=tuple(event for c in certificates for event in c.events),
        releases=tuple(name for c in certificates for name in c.releases),
        relation=certificates[0].relation,
        accountant=certificates[0].accountant,
        delta=max(certificate.delta for certificate in certificates),
        assumptions=tuple(assumptions),
        reproducible=any(certificate.reproducible for certificate in certificates),
        n_records=n_records.pop() if len(n_records) == 1 else None,
        max_rows=None if None in max_rows else max(max_rows),
        origin=join_origins([certificate.origin for certificate in certificates]),
        engine=join_names(c.engine for c in certificates if c.engine is not None) or None,
    )
