# SPDX-License-Identifier: BSD-3-Clause
"""Certificates of differential privacy, computed from the ledger of a fit."""

import math
import numbers
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from dp_accounting import DpEvent, NonPrivateDpEvent, UnsupportedEventError
from sklearn.base import BaseEstimator

from .accountants import check_relation, ledger_delta, ledger_epsilon
from .calibration import check_delta, check_epsilon
from .event_types import find_conflict
from .events import (
    concentrated_rho,
    flatten,
    gaussian_mu,
    over_sensitivity,
    pure_epsilon,
    step_std,
)
from .plan import Plan
from .provenance import Provenance
from .rounding import show, show_event
from .units import check_unit, describe_unit, unit_assumptions, unit_sensitivity

# Longest line of printed text: fits a terminal of 90 columns.
_WIDTH = 88
# Numbers that follow from the events, and the relative error allowed when they are recomputed.
# Processors and versions of libraries agree to many more digits.
_COSTS, _TOLERANCE = ("epsilon", "mu", "rho"), 1e-6
# Errors that reading or pricing a malformed certificate can raise.
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
    """Statement of (ε, δ)-differential privacy, computed from the releases of a fit.

    Attributes
    ----------
    events : tuple of dp_accounting.DpEvent
        Events of the releases, in order.
    releases : tuple of str
        Name of each event.
    relation : {"zero_out", "replace_one"}, default="zero_out"
        Neighbouring relation. The number of records, or of persons, is public under both.
    accountant : {"pld", "rdp", "autodp"}, default="pld"
        Accountant that calibrated the noise and computes ε.
    delta : float, default=1e-5
        Target δ at which the noise was calibrated.
    assumptions : tuple of str, default=()
        Assumptions of the statement.
    reproducible : bool, default=False
        Whether the noise follows from a seed that the caller chose.
    sigma : float, default=None
        Standard deviation of the noise, if there is one noise level; the scale of Laplace noise.
    local : bool, default=False
        Whether each record was randomised on its own (local differential privacy).
    n_records : int, default=None
        The (public) number of records, or of persons, if known.
    notes : tuple of str, default=()
        Notes on a planned fit.
    max_rows : int, default=None
        Largest number of rows of a person that are used, if the guarantee is for persons with all
        their rows. None: it is for records.
    provenance : Provenance, default=None
        Estimator of the fit, its public parameters, version and date.
    digest : str or None
        BLAKE2b digest of the released noisy numbers: certificates with the same digest are of the
        same release.
    engine : str, default=None
        Engine that summed the rows where they are stored, such as ``"dask"``. None: this process.

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
    provenance: Provenance | None = field(default=None, compare=False)
    digests: tuple = field(default=(), compare=False)
    engine: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if len(self.events) != len(self.releases):
            raise ValueError("A certificate needs one name per event in releases.")
        digests = tuple(map(tuple, self.digests)) if any(self.digests) else ()
        is_short = bool(digests) and len(digests) != len(self.events)
        if is_short or any(len(set(own)) < len(own) for own in digests):
            raise ValueError("A certificate needs different digests per event, or none.")
        # A frozen class sets its own fields by this call only.
        object.__setattr__(self, "digests", digests)
        object.__setattr__(self, "delta", check_delta(self.delta))
        check_relation(self.relation)
        # Anyone can build a certificate: it must be one that a fit could make.
        terms = self.relation, self.local, self.max_rows, self.engine
        if conflict := find_conflict(self.events, *terms):
            raise ValueError(conflict)

    @classmethod
    def of_plan(
        cls,
        plan: Plan,
        assumptions: Iterable[str] = (),
        *,
        reproducible: bool = False,
        n_records: int | None = None,
    ) -> "Certificate":
        """Return the certificate of a plan.

        Parameters
        ----------
        plan : Plan
        assumptions : iterable of str
        reproducible : bool, default=False
            Whether the noise follows from a seed.
        n_records : int, default=None
            Number of records, or of persons, if known.

        Returns
        -------
        Certificate
        """
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
            Sensitivity of the release as a function of the relation; see `unit_sensitivity`.

        Returns
        -------
        float
        """
        # Names are distinct within a plan.
        event = dict(zip(self.releases, self.events, strict=True))[name]
        bound = unit_sensitivity(sensitivity, self.relation, self.max_rows)
        return step_std(event, bound, self.relation)

    def made_by(self, estimator: BaseEstimator) -> "Certificate":
        """Return the certificate with the provenance of an estimator, and today's date."""
        return replace(self, provenance=Provenance.of(estimator))

    @property
    def _over_sensitivity(self) -> list[DpEvent]:
        """Events with multipliers over the sensitivity; see `over_sensitivity`."""
        return [over_sensitivity(event, self.relation) for event in self.events]

    @property
    def digest(self) -> str | None:
        """The digest of the released numbers of one fit; None for several releases."""
        found = {digest for own in self.digests for digest in own or [None]}
        return found.pop() if len(found) == 1 else None

    @property
    def entries(self) -> list[tuple]:
        """Name, event and digests of each release."""
        digests = self.digests or ((),) * len(self.events)
        return list(zip(self.releases, self.events, digests, strict=True))

    @property
    def mu(self) -> float | None:
        """μ of Gaussian differential privacy, or None if it is unknown."""
        return gaussian_mu(self._over_sensitivity)

    @property
    def rho(self) -> float | None:
        """ρ of zero-concentrated differential privacy, or None if it is unknown."""
        return concentrated_rho(self._over_sensitivity)

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
        # ε = 0 is a point of the curve, though no budget can be 0.
        if not (isinstance(epsilon, numbers.Real) and epsilon == 0):
            epsilon = check_epsilon(epsilon)
        return ledger_delta(
            self.events, epsilon, accountant=self.accountant, relation=self.relation
        )

    def shuffled(self, n_samples: int, delta: float) -> float:
        """Return ε in the shuffle model, where records are seen in random order only.

        A trusted shuffler permutes the noised records of `n_samples` clients before anybody else
        sees them. This is the clones bound of [1]_ (Theorem 3.2, computed numerically) for local
        randomisers of pure ε₀, under ``relation="replace_one"``.

        Parameters
        ----------
        n_samples : int
            Number of records that are shuffled together, each noised once by the same randomiser.
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
        Gaussian noise is not pure: its ε₀ holds with a δ₀ > 0 for each record, which the theorem
        does not cover.

        References
        ----------
        .. [1] Feldman, McMillan & Talwar, "Hiding Among the Clones", FOCS 2021.

        Examples
        --------
        >>> from dp_accounting import LaplaceDpEvent
        >>> from skdpgen.privacy import Certificate
        >>> local = Certificate(
        ...     (LaplaceDpEvent(0.4),), ("noised rows",), relation="replace_one", local=True
        ... )
        >>> round(local.shuffled(400_000, 1e-6), 3)
        0.141
        """
        if not isinstance(n_samples, numbers.Integral) or n_samples < 1:
            raise ValueError(f"n_samples must be a whole number of at least 1; got {n_samples!r}.")
        check_delta(delta)
        if not self.local:
            raise ValueError(
                "Shuffling amplifies local releases of a single fit, which noise records one by "
                "one; these are not local, or were composed of several fits."
            )
        leaves = flatten(self._over_sensitivity)
        losses = {leaf: pure_epsilon(leaf) for leaf in leaves}
        if any(isinstance(leaf, NonPrivateDpEvent) for leaf in leaves):
            return math.inf
        if None in losses.values():
            raise ValueError(
                "The clones bound holds for releases of pure ε, and Gaussian noise exceeds any ε "
                "with some probability. Use mechanism='laplace'."
            )
        # The bound is for one randomiser a record: its releases count as one, of the sum of their
        # ε₀.
        epsilon = sum(count * losses[leaf] for leaf, count in leaves.items())
        from .shuffling import shuffled_epsilon

        return shuffled_epsilon(epsilon, int(n_samples), delta)

    def to_json(self) -> str:
        """Return the certificate as JSON, whose ε `verify` recomputes."""
        from .certificate_form import write_form

        return write_form(self)

    @classmethod
    def from_json(cls, text: str) -> "Certificate":
        """Return the certificate of a text from `to_json`; ε, μ and ρ are recomputed.

        Parameters
        ----------
        text : str

        Returns
        -------
        Certificate

        Raises
        ------
        ValueError
            If a member is missing, unknown or out of its range; if the certificate contradicts
            itself; if it states a larger or smaller ε, μ or ρ than its events cost.
        """
        from .certificate_form import read_digests, read_event, read_form

        try:
            data = read_form(text)
            max_rows = data.get("max_rows")
            certificate = cls(
                events=tuple(map(read_event, data["releases"])),
                releases=tuple(release["name"] for release in data["releases"]),
                relation=data["relation"],
                accountant=data["accountant"],
                delta=data["delta"],
                assumptions=tuple(data["assumptions"]),
                reproducible=data["reproducible"],
                local=data["local"],
                n_records=data["n_records" if max_rows is None else "n_persons"],
                max_rows=max_rows,
                provenance=Provenance.from_dict(data["made_by"]) if "made_by" in data else None,
                digests=read_digests(data),
                engine=data.get("engine"),
            )
            # A text could claim persons, and assume that each has one record.
            check_unit(certificate.assumptions, max_rows)
            costs = {name: getattr(certificate, name) for name in _COSTS}
        except _MALFORMED as error:
            raise ValueError(f"Not a certificate: {error}") from error
        # Recomputed, never believed: a text that states less than its events cost is refused.
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
        """Return the lines of the guarantee."""
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
            lines.append("Local: each record was noised on its own, so ε holds towards everybody.")
        lines += describe_unit(self.relation, self.max_rows, self.n_records)
        readings = {"μ": self.mu, "ρ": self.rho}
        known = [f"{name} = {show(value)}" for name, value in readings.items() if value is not None]
        if known and not math.isinf(epsilon):
            lines.append(f"As Gaussian or zero-concentrated privacy: {', '.join(known)}.")
        if self.engine is not None:
            lines.append(
                f"Rows were summed by {self.engine}: its workers, logs and files had sums without "
                "noise, and must be protected like the rows."
            )
        if self.digest is not None:
            lines.append(f"Digest of the releases: {self.digest}")
        return lines + (self.provenance.describe() if self.provenance else [])

    def __repr__(self) -> str:
        seeded = "REPRODUCIBLE, NOT PRIVATE: " if self.reproducible else ""
        unit = "record" if self.max_rows is None else "person"
        releases = f"{len(self.releases)} release{'s' * (len(self.releases) != 1)}"
        return (
            f"<Certificate: {seeded}ε = {show(self.epsilon)} at δ = {show(self.delta)} "
            f"({self.relation}) for each {unit}; {releases}>"
        )

    def _repr_html_(self) -> str:
        from .._html import make_table

        return make_table(
            self._list_statements(),
            ["Release", f"Event, priced with the others by {self.accountant!r}"],
            zip(self.releases, map(show_event, self.events), strict=True),
            [*self.assumptions, *(f"Note: {note}" for note in self.notes)],
        )

    def __str__(self) -> str:
        lines = self._list_statements()
        lines.append(f"Releases, priced together by the {self.accountant!r} accountant:")
        for name, event, digests in self.entries:
            of = f"; digests: {', '.join(digests)}" * (self.digest is None and bool(digests))
            lines.append(f"  - {name}: {show_event(event)}{of}")
        lines += [f"Assumes: {assumption}" for assumption in self.assumptions]
        lines += [f"Note: {note}" for note in self.notes]
        return "\n".join(_wrap(line) for line in lines)


def summarize(certificate: Certificate, n_lines: int) -> str:
    """Return a certificate in `n_lines` lines or a few more, with as many assumptions as fit in."""
    lines = [line for text in certificate._list_statements() for line in _wrap(text).splitlines()]
    releases = (
        f"Releases priced together by {certificate.accountant!r}, {len(certificate.releases)}: "
        + ", ".join(dict.fromkeys(certificate.releases))
    )
    lines += _wrap(textwrap.shorten(releases, 2 * _WIDTH, placeholder=" …")).splitlines()
    for i, assumption in enumerate(certificate.assumptions):
        wrapped = _wrap(f"Assumes: {assumption}").splitlines()
        n_left = len(certificate.assumptions) - i
        if len(lines) + len(wrapped) + (n_left > 1) > n_lines:
            lines.append(f"Assumptions that are not shown: {n_left}.")
            break
        lines += wrapped
    return "\n".join(lines)


def _wrap(line: str) -> str:
    """Break a line at spaces, and indent its continuation."""
    return textwrap.fill(
        line,
        _WIDTH,
        subsequent_indent="    ",
        # A digest or a name broken in two could not be copied.
        break_long_words=False,
        break_on_hyphens=False,
    )
