# SPDX-License-Identifier: BSD-3-Clause
"""The plan of a fit: data formats, shares of the budget and previews, from public numbers only."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sklearn.base import clone

from ..accounting.calibration import calibrate_gaussian, find_delta
from ..accounting.certificate import Certificate
from ..accounting.plan import Plan, Terms
from ..accounting.spending import restate
from ..accounting.units import ONE_RECORD, describe_n_rows, equivalent_records
from ..checks import check_size, is_one_of, list_names
from ..curator.chunks import adapt_query
from ..curator.dataset import Dataset, list_refusals
from ..data.record_functions import clears_frames
from ..encoders import split_encoder
from ..format import Format
from ..mechanisms.categories import CategoryCountsMechanism, FrequentValuesMechanism
from ..mechanisms.noise import ASSUMED_OF_NOISE
from ..mechanisms.sums import count_rows_by
from ..params import TakesSpecifications
from .few_rows import find_few_rows

if TYPE_CHECKING:
    from ..tables.schema import Schema

# Share of δ for the counts of undeclared categories, and of frequent values.
_THRESHOLDS_DELTA = 0.1
# Parameters that are for arrays only, and their defaults.
_ARRAY_PARAMETERS = dict.fromkeys(("bounds", "y_bounds", "classes")) | dict.fromkeys(
    ("encoder", "clip_norm", "image_shape"), "auto"
)
# Values of `schema` other than a Schema.
_SCHEMAS = ("auto", "private", None)

_CHOSEN = (
    "{what} and all other parameters were chosen without looking at the private rows; column names "
    "and dtypes are public, and whatever read the rows read each on its own"
)
_COVERED = (
    "only what fit released is covered: score(X), un-noised scores of a search, and steps of a "
    "pipeline that were fitted on private rows are not"
)


@dataclass(frozen=True)
class FitPlan:
    """The plan of a fit, and what follows from it before any row is read.

    Attributes
    ----------
    plan : Plan
        Events of all releases, and their noise.
    release : Release
        The release with the numbers chosen for it.
    min_samples : int
        Number of records from which on a fit is useful; 0 if it is unknown.
    """

    plan: Plan
    release: Any
    min_samples: int


class Planning(TakesSpecifications):
    """Base of generators: chooses the format of the data, and plans and prices a fit."""

    # Parameters of all methods, and those of central ones with their values for others.
    epsilon: float
    delta: float | None
    accountant: str
    random_state: Any
    strict: bool
    bounds: Any
    y_bounds: Any
    classes: Any
    clip_norm: Any
    image_shape: Any = "auto"
    relation = "replace_one"
    schema: Any = None
    encoder: Any = None
    max_rows_per_person: int | None = None
    # Whether `_learn` releases principal components first, where there are some.
    _takes_components = False
    # Whether y can hold classes. Numbers in y are one more column.
    _takes_classes = True

    def _check_params(self) -> None:
        """Raise a ValueError if a parameter is invalid; no row is read."""
        super()._check_params()
        for name in self._shorthands:
            if name != "encoder":
                self._resolve_spec(name)
        if not self._takes_components and split_encoder(self.encoder)[1] not in (None, "auto"):
            raise ValueError("encoder must be None or an object that was fitted on public data.")
        if not is_one_of(self.schema, _SCHEMAS) and not hasattr(self.schema, "undeclared"):
            raise ValueError(
                "schema must be 'auto', 'private', a Schema or None; got "
                f"{type(self.schema).__name__}."
            )
        if not is_one_of(self.schema, ("auto", None)):
            self._refuse_array_params()

    # Formats.

    def _read(self, X, y, target, persons) -> tuple[Format, Dataset]:
        """Check what is public of the data; return its format and the private records."""
        max_rows = self._find_max_rows(persons is not None)
        is_alone = y is None and (persons is None or isinstance(persons, str))
        if is_alone and self._takes_tables and self._resolve_spec("release").is_sum:
            X = adapt_query(X)
        dataset = Dataset.of(X, y, target=target, persons=persons, max_rows=max_rows)
        schema = self._choose_schema(dataset)
        if dataset.is_in_parts:
            data = "an array" if schema is None else "a table"
            self._refuse_samples("X as chunks", f"give {data} in memory")
        if schema is not None:
            format = self._make_table_format(schema, dataset)
            return format, dataset.validate_table(self, format)
        failure = None
        try:
            dataset.validate_array(self, self.classes, are_numbers=self.y_bounds is not None)
        except (TypeError, ValueError) as error:
            failure = self._name_array_params(error, dataset)
        if failure is not None:  # raised outside of except: it carries no other error
            raise failure
        from .arrays import read_array

        return read_array(self, dataset), dataset

    def _choose_schema(self, dataset: Dataset) -> "Schema | str | None":
        """Return the schema of a table, or None for an array."""
        if not is_one_of(self.schema, ("auto",)):
            return self.schema
        if dataset.is_in_parts:
            if dataset.may_hold_arrays and self._list_array_params():
                return None
            self._refuse_array_params()
            return "private"
        return "private" if _has_names(dataset) and self._takes_tables else None

    @property
    def _takes_tables(self) -> bool:
        if not is_one_of(self.schema, ("auto",)):
            return self.schema is not None
        return not (self._resolve_spec("release").needs_columns or self._list_array_params())

    def _name_array_params(self, error: Exception, dataset: Dataset) -> Exception:
        """Return an error that says which parameters make an array of a table in memory."""
        names = self._list_array_params() if is_one_of(self.schema, ("auto",)) else []
        are_numbers = all(getattr(dtype, "kind", "O") in "iufb" for dtype in dataset.dtypes)
        if not names or not _has_names(dataset) or (are_numbers and dataset.target is None):
            return error
        return restate(
            error,
            f"{error} X is a table, and taken for an array because {list_names(names)} is set: "
            "leave it at its default, and declare levels and bounds by schema=Schema(...).",
        )

    def _list_array_params(self) -> list[str]:
        """List the parameters that are not at their defaults, and that only arrays have."""
        values = {name: (getattr(self, name), d) for name, d in _ARRAY_PARAMETERS.items()}
        return [
            name
            for name, (value, default) in values.items()
            if value is not default and not (isinstance(value, str) and value == default)
        ]

    def _refuse_array_params(self) -> None:
        """Raise a ValueError if a parameter is set that tables do not have."""
        for name in self._list_array_params():
            raise ValueError(
                f"{name} is for arrays, not for tables with a schema: leave it at its default, or "
                "set schema=None to fit X as an array."
            )

    def _make_table_format(self, schema: Any, dataset: Dataset | None = None) -> Format:
        # Imported here: arrays need nothing of tables.
        from ..tables.format import TableFormat, declare
        from ..tables.layout import TableLayout

        layout = None
        if dataset is not None:
            schema = declare(schema, dataset)
            layout = TableLayout.of(schema, dataset)
        format = TableFormat(schema, layout)
        # The number of inferred knots is not known when a plan needs the number of columns.
        needs_columns = self._find_release(format).needs_columns
        return format.with_even_knots() if needs_columns else format

    def _make_format(self, n_samples, n_features, n_classes, **public) -> Format:
        # Imported here, as `read_array` is: tables need nothing of arrays.
        from .arrays import make_array_format

        return make_array_format(self, n_samples, n_features, n_classes, **public)

    def _find_multiplier(self, n_samples: int) -> float:
        """Return the noise over the sensitivity of one Gaussian release with the whole budget."""
        # The same under both relations: `calibrate_gaussian` states it for zero_out.
        delta = find_delta(self.delta, n_samples)
        return calibrate_gaussian(self.epsilon, delta, accountant=self.accountant)

    # Persons.

    def _find_max_rows(self, has_persons: bool) -> int | None:
        """Return how many rows of a person count, or None for records."""
        if not has_persons:
            return None
        self._refuse_samples(
            "what that costs is known for one row, and several rows of a person may cost more "
            "than so many times as much. persons=...",
            "give one row of each person, and no persons",
        )
        return self.max_rows_per_person

    def _refuse_samples(self, what: str, instead: str) -> None:
        """Raise a ValueError if the release is not a sum over all rows."""
        release = self._resolve_spec("release")
        if not release.is_sum:
            raise ValueError(
                f"{type(release).__name__} reads rows at random, again and again, or one by one: "
                f"{what} is for sums over all rows: use release='sketch' of "
                f"DPSlicedWassersteinGenerator or DPSWFlowSampler; or {instead}."
            )

    # Plans. First comes what `format` infers, then principal components, then the release.

    def _plan(self, terms: Terms, format: Format) -> Plan:
        """Return the `Plan`, from public numbers only; `terms` hold what is released before."""
        return self._find_release(format).plan(terms, format)

    def _make_plan(self, n_samples, format, n_classes, max_rows=None) -> FitPlan:
        if n_classes > 1 and not self._takes_classes:
            raise ValueError(
                f"{type(self).__name__} takes no classes in y: leave y out, or give it as one more "
                "column of X."
            )
        delta = find_delta(self.delta, n_samples)
        noise = self._find_multiplier(n_samples) / equivalent_records(n_samples, max_rows)
        shares = {**count_rows_by(max_rows), **format.split_budget(noise)}
        thresholds = find_thresholds(shares, delta)
        if format.components is not None:
            # Second moments are a square matrix.
            check_size("X", format.n_columns, format.n_columns)
            rest = 1 - sum(shares.values())
            shares[format.components.name] = format.components.share * rest
        terms = Terms(
            self.epsilon,
            delta,
            self.relation,
            self.accountant,
            n_samples,
            n_classes,
            self._count_encoded(format),
            shares,
            thresholds,
            max_rows,
        )
        plan = self._plan(terms, format)
        terms.check(plan)
        release = self._find_release(format)
        min_samples = max(
            self._count_needed(release, plan, terms, format) or 0,
            self._min_samples_for_components(plan, format),
        )
        # Two digits: more would suggest a precision that rules of thumb do not have.
        return FitPlan(plan, release.resolved(plan, terms), int(float(f"{min_samples:.2g}")))

    def _count_needed(self, release, plan: Plan, terms: Terms, format: Format) -> int | None:
        """Return the number of records that the learner of a release needs, or None."""
        return release.min_samples(plan, terms, format)

    def _find_release(self, format: Format) -> Any:
        """Return the release of data in a format."""
        return self._resolve_spec("release").of(format)

    def _count_encoded(self, format: Format) -> int | None:
        """Return the number of columns after the encoder; None if they are not known yet."""
        if format.components is None:
            return format.n_planned
        default = self._resolve_spec("release").n_components
        return min(format.components.n_components or default, format.n_columns)

    def _min_samples_for_components(self, plan: Plan, format: Any) -> float:
        if format.components is None:
            return 0
        multiplier = plan.multiplier(format.components.name) * (plan.max_rows or 1)
        n_encoded = self._count_encoded(format)
        return format.components.min_samples(
            n_encoded, format.n_columns, multiplier, format.row_shape if format.are_images else None
        )

    def _find_components(self, curator, format, **scaling):
        """Release principal components if the encoder is a `PrivatePCA`, else return None."""
        if format.components is None:
            return None
        n_encoded = self._count_encoded(format)
        return format.components.find_components(curator, format, n_encoded, **scaling)

    def _list_assumptions(self, format: Format) -> tuple[str, ...]:
        """List the assumptions of the certificate; subclasses may add some."""
        return (*list_assumptions(format), *self._find_release(format).assumptions)

    # Previews.

    def _preview(self, n_samples, n_features, n_classes, has_persons=False) -> Certificate:
        """Price a fit to data of a size; see `skdpgen.preview`."""
        self._check_params()
        max_rows = self._find_max_rows(has_persons)
        is_array = is_one_of(self.schema, ("auto", None))
        if not is_array and (isinstance(self.schema, str) or not self.schema):
            raise ValueError("preview needs a Schema: without a table, no column is known.")
        n_classes = n_classes or 1
        if is_array:
            n_worth = equivalent_records(n_samples, max_rows)
            format = self._make_format(n_worth, n_features, n_classes)
        else:
            format = self._make_table_format(self.schema)
        fit_plan = self._make_plan(n_samples, format, n_classes, max_rows)
        return self._certify(n_samples, n_classes, format, fit_plan, list_refusals(self.strict))

    @clears_frames()
    def _plan_data(
        self, X, y, target, persons, *, is_timed=False
    ) -> tuple[Format, FitPlan, Certificate]:
        """Plan a fit to data, of which only what is public is read; return its price, too."""
        copied = clone(self)
        copied._check_params()
        format, dataset = copied._read(X, y, target, persons)
        n_samples = dataset.n_records
        fit_plan = copied._make_plan(n_samples, format, dataset.n_classes, dataset.max_rows)
        fit_plan = replace(fit_plan, plan=dataset.cover(fit_plan.plan))
        certificate = copied._certify(
            n_samples,
            dataset.n_classes,
            format,
            fit_plan,
            dataset.list_assumptions(self.strict),
        )
        if is_timed and dataset.reader is None:
            # Imported here: no fit on a CPU needs it.
            from .rehearsal import note_seconds

            notes = certificate.notes + note_seconds(copied, format, fit_plan.plan, dataset)
            certificate = replace(certificate, notes=notes)
        return format, fit_plan, certificate

    def _certify(self, n_samples, n_classes, format, fit_plan, refusals) -> Certificate:
        certificate = Certificate.of_plan(
            fit_plan.plan,
            (*refusals, *self._list_assumptions(format)),
            reproducible=self.random_state is not None,
            n_records=n_samples,
        )
        given, needed = describe_n_rows(n_samples, fit_plan.plan.weight), fit_plan.min_samples
        note = f"it takes about {needed:,} rows to be of use; here are {given}."
        few = find_few_rows(self, fit_plan, n_samples, n_classes, format)
        notes = (few or note,) * bool(needed)
        return replace(certificate.made_by(self), notes=notes)


def list_assumptions(format: Format) -> tuple[str, ...]:
    """List the assumptions of a certificate that hold for all records."""
    what, encoder = "the schema", None
    if "bounds" in format.parameters:
        what = "bounds, clip_norm, classes, encoder"
        encoder, _ = format.parameters.get("encoder", (None, None))
    assumed = (ONE_RECORD, _CHOSEN.format(what=what), _COVERED, *ASSUMED_OF_NOISE)
    if encoder is None:
        return assumed
    fitted = "was fitted on public data"
    if hasattr(encoder, "privacy_"):
        fitted = "is paid for in a certificate of its own, which is to be composed with this one"
    return (f"the encoder {fitted}, maps each row on its own and keeps none", *assumed)


def _has_names(dataset):
    """Whether the data are a table: scikit-learn, too, takes a frame without names for an array."""
    return dataset.columns is not None and any(isinstance(n, str) for n in dataset.columns)


def refuse_given(estimator, *names: str) -> None:
    """Raise a ValueError for parameters that a release of several steps has itself."""
    for name in names:
        if (value := getattr(estimator, name)) is not None:
            cls = type(estimator._resolve_spec("release")).__name__
            raise ValueError(
                f"{name} belongs to the release here: give release={cls}({name}={value!r})."
            )


def find_thresholds(shares, delta) -> dict[str, float]:
    """Return the δ of planned releases by a threshold: equal parts of a share of all."""
    names = (CategoryCountsMechanism.name, FrequentValuesMechanism.name)
    planned = [name for name in names if name in shares]
    return {name: _THRESHOLDS_DELTA * delta / len(planned) for name in planned}
