# SPDX-License-Identifier: BSD-3-Clause
"""Base of release specifications."""

from collections.abc import Sequence
from os import PathLike
from typing import Any, ClassVar, TypeVar

from sklearn.base import clone

from ..accounting.certificate import Certificate
from ..accounting.plan import Plan, Terms
from ..params import Specification

Number = TypeVar("Number", int, float)


def within(value: Number, bounds: tuple[Number, Number]) -> Number:
    """Return the nearest number to `value` within bounds."""
    return min(bounds[1], max(bounds[0], value))


class Release(Specification):
    """A release: the parameters of its mechanisms, and their plan.

    Estimators call `plan` with public numbers before any row is read, and `run`, where there is
    one, with the curator that makes the planned releases. Neither reads a row. Subclasses define
    `plan` and `sensitivity`, and are registered for saved files where they are defined.

    Attributes
    ----------
    name : str
        Name of the main mechanism in the plan.
    learner : str
        Name of the learner: the estimator fits it by its method ``_learn_<learner>``.
    assumptions : tuple of str
        Assumptions that the release adds to a certificate.
    is_sum : bool
        Whether it consists of sums over all rows: then persons may have several rows, and rows may
        come in chunks.
    needs_columns : bool
        Whether its cost depends on the number of columns.
    is_transferable : bool
        Whether other estimators than that which made it can be fitted to its values.
    n_components : int
        Number of components that a `PrivatePCA` before the release keeps by default.
    scaling : dict
        Keyword arguments of `PrivatePCA` for the scale of the components.
    published : PublishedRelease or None
        The released values, in the attribute `release_` of a fit of which each is released once.
    """

    name: str
    learner: str
    assumptions: tuple[str, ...] = ()
    is_sum = False
    needs_columns = is_transferable = False
    n_components = 30
    scaling: ClassVar[dict[str, Any]] = {}
    published: Any = None

    def to_file(self, path: str | PathLike) -> None:
        """Write the released values to a file, from which `from_release` fits any learner.

        Parameters
        ----------
        path : str or path

        Raises
        ------
        ValueError
            Before `fit`, and for releases of many steps, whose values are not kept.
        """
        self.get_published().save(path)

    def to_frame(self, *columns: str, level: float = 0.95):
        """Return released counts of one or two columns; see `PublishedRelease.to_frame`."""
        return self.get_published().to_frame(*columns, level=level)

    def get_published(self):
        """Return the released values, or raise a ValueError if there are none; see `to_file`."""
        if self.published is None:
            raise ValueError(
                f"This {type(self).__name__} has no released values: use the release_ of a fitted "
                "estimator, and release='sketch'. Values of many steps are not kept."
            )
        return self.published

    def find_released(self, plan: Plan, names: Sequence[str]) -> Plan | None:
        """Return the plan of the first releases if a learner can be fitted to them, else None."""
        return plan if len(names) == len(plan.releases) else None

    def of(self, format) -> "Release":
        """Return the release for data of a format."""
        return self

    def plan(self, terms: Terms, format) -> Plan:
        """Return the `Plan`, from public numbers only.

        Raises
        ------
        ValueError
            If the release does not suit the format.
        """
        raise NotImplementedError

    def sensitivity(self, relation: str, n_classes: int) -> float:
        """Return the sensitivity of the main mechanism of a resolved release."""
        raise NotImplementedError

    def resolved(self, plan: Plan, terms: Terms) -> "Release":
        """Return a copy with the chosen numbers in place of None."""
        # Only numbers that the user left open are filled in.
        chosen = self._count(plan, terms)
        missing = {name: n for name, n in chosen.items() if getattr(self, name) is None}
        return clone(self).set_params(**missing)

    def find_sigma(self, certificate: Certificate, n_classes: int) -> float:
        """Return the standard deviation of the noise of the resolved release, as certified."""
        return certificate.find_sigma(
            self.name, lambda relation: self.sensitivity(relation, n_classes)
        )

    def _count(self, plan: Plan, terms: Terms) -> dict[str, Any]:
        """Return the numbers that follow from a plan and its terms, by parameter name."""
        return {}

    def min_samples(self, plan: Plan, terms: Terms, format) -> int | None:
        """Return the approximate number of records needed for useful results, or None.

        It depends on public numbers only; its constants were found on small public data.
        """
        return None
