# SPDX-License-Identifier: BSD-3-Clause
"""The template of every generator: validate, curate, learn, sample."""

import warnings
from abc import ABCMeta, abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, replace

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from ._audits import Audits
from ._choices import check_choice
from ._documentation import DocumentedEstimator
from .accounting.calibration import calibrate_gaussian
from .accounting.plan import Terms
from .accounting.rounding import plain_numbers
from .accounting.spending import report_spent_on_error
from .accounting.units import ONE_RECORD, count_worth, show_rows
from .arrays.box import BoxFormat
from .arrays.inference import make_box
from .arrays.kind import ArrayKind
from .curator.curator import open_curator
from .curator.dataset import Dataset
from .curator.record_functions import clears_frames
from .encoders import ENCODERS, choose_components, split_encoder
from .exceptions import PrivacyLeakWarning
from .mechanisms.noise import ASSUMED_OF_NOISE, NoiseSource
from .mechanisms.sums import CategoryCountsMechanism, count_rows_by
from .networks import GENERATORS
from .params import parameters
from .planning import Previews
from .quality import warn_of_few_rows, warn_of_pixels
from .serialization import Saves, list_certified_sizes
from .specification import TakesSpecifications
from .tables.format import TableFormat, TableKind, declare
from .tables.report import describe
from .tables.schema import Schema
from .transport import sliced_wasserstein_distance
from .validation import (
    CENTRAL_CHECKS,
    PRIVACY_CHECKS,
    check_finite,
    check_size,
    choose_device,
    rollback_on_failure,
    warn_of_delta,
)

# A score compares at most so many rows.
_SCORE_ROWS = 5_000
# A sample of unsaid size has at most so many rows.
_MOST_SAMPLES = 1_000_000
# Rows of each class that a fit tries to make.
_TRIED = 8
# Share of δ for counts of the categories that a schema leaves open.
_OPEN_DELTA = 0.1

_CHOSEN = (
    "{what} and all other parameters were chosen without looking at the private rows; column names "
    "and dtypes are public, and whatever read the rows read each on its own"
)
_COVERED = (
    "only what fit released is covered: score(X), un-noised scores of a search, and steps of a "
    "pipeline that were fitted on private rows are not"
)


@parameters
class BaseGenerator(
    Saves, Previews, Audits, TakesSpecifications, DocumentedEstimator, metaclass=ABCMeta
):
    """Base of the generators: the public verbs, the certificate, labels, frames and dtypes.

    Subclasses fill in three steps, none of which sees a private row:

    - ``_plan(terms, format)`` fixes what will be released, and its noise;
    - ``_learn(curator, format, noise)`` asks the curator for releases and fits to them;
    - ``_generate(classes, generator)`` makes a row for each of a tensor of classes.
    """

    epsilon: float = 1.0
    delta: float = 1e-5
    _: KW_ONLY
    accountant: str = "pld"
    bounds: Sequence | None = None
    y_bounds: Sequence | None = None
    classes: object = None
    random_state: object = None
    device: str = "auto"
    verbose: int = 0
    strict: bool = False

    _checks = {**PRIVACY_CHECKS, "device": lambda name, value: choose_device(value)}
    # What methods of central privacy let users choose.
    relation = "replace_one"
    schema = None
    encoder = None
    # Whether what is released can be a `PrivatePCA` of the rows.
    _takes_components = True
    # What those let users choose that take persons.
    max_rows_per_person = None

    def fit(self, X, y=None, *, target: str | None = None, persons=None):
        """Learn the distribution of `X`, and of `y` given with it, under differential privacy.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Private rows. With a `schema`, a DataFrame with its columns; or, for tables that are
            larger than memory, a function that returns a fresh iterator over DataFrames, or a
            DataFrame of Dask or Spark, whose workers add up what is released.
        y : array-like of shape (n_samples,), default=None
            Labels (int, bool, string or categorical dtype, or any dtype with `classes`), or
            numbers (float dtype), which are treated as one more column. With a `schema`, the one
            column that `X` lacks.
        target : str, default=None
            With a `schema`, the column of `X` whose levels `sample` can be asked for by `y`.
        persons : str or array-like of shape (n_samples,), default=None
            Of sums over all rows, as a sketch is: whose each row is, by position, or the name of
            the column of a DataFrame that says so and is no data then. Privacy is
            for persons, with all their rows. Equal identifiers, strings or numbers, are of one
            person. A row without one counts as absent. Next to chunks, a function may return an
            iterator over such arrays.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            For bad shapes, dtypes or parameters; nothing is spent then. For rows that are refused
            for what is in them (``strict=True``, or cells of dtype object that are no numbers);
            open budgets are charged with the fit then.
        BudgetExceededError
            If an open `PrivacyBudget` cannot pay for the fit; nothing is released then.
        """
        with rollback_on_failure(self), plain_numbers(self):
            return self._fit(X, y, target, persons)

    def _fit(self, X, y, target, persons):
        self._check_params()
        format, dataset = self._read(X, y, target, persons)
        n_samples, max_rows = dataset.n_records, dataset.max_rows
        n_classes = 1 if dataset.classes is None else len(dataset.classes)
        plan, release, min_samples = self._make_plan(n_samples, format, n_classes, max_rows)
        if not plan.is_pure:
            warn_of_delta(self.delta, n_samples, stacklevel=3)
        if min_samples > n_samples * (max_rows or 1):
            given = show_rows(n_samples, max_rows)
            warn_of_few_rows(type(self).__name__, given, min_samples, stacklevel=3)
        for name in ("classes_", "class_probabilities_", "schema_", "schema_report_", "y_bounds_"):
            vars(self).pop(name, None)
        noise = NoiseSource(self.random_state)
        with open_curator(
            dataset,
            format,
            plan,
            noise,
            strict=self.strict,
            device=choose_device(self.device),
            verbose=self.verbose,
        ) as curator:
            format = format.resolve(curator)
            self._learn(curator, format, noise)
            certificate = curator.certificate(self._list_assumptions(format))
        self.release_ = release
        return self._finish(format, n_samples, certificate)

    def _finish(self, format, n_samples, certificate):
        """Set what every fitted generator has."""
        self._format = format
        vars(self).update(format.found)
        if format.has_blocks and not hasattr(self, "schema_report_"):
            self.schema_report_ = describe(format.schema)
        if format.classes is not None:
            self.classes_ = format.classes
        self.n_samples_ = n_samples
        self.privacy_ = certificate.made_by(self)
        with report_spent_on_error(lambda: self.privacy_):
            self._check_learnt()
            self._format = format.calibrate_marginals(self._generate_finite)
        return self

    def _read(self, X, y, target, persons):
        """Check the public facts of the data; return its `Format`, and the `Dataset`."""
        max_rows = self._find_max_rows(persons is not None)
        dataset = Dataset.of(X, y, target=target, persons=persons, max_rows=max_rows)
        if self.schema is not None:
            if dataset.is_in_parts:
                self._refuse_samples("X as chunks", "give a table in memory")
            schema = declare(self.schema, dataset)
            format = self._make_table_format(schema, TableKind.of(schema, dataset))
            return format, dataset.validate_table(self, format)
        kind = ArrayKind.of(dataset)
        dataset.validate_array(self, self.classes, are_numbers=self.y_bounds is not None)
        if self.y_bounds is not None and dataset.classes is not None:
            raise ValueError("y_bounds are for a numeric y of float dtype; here y holds classes.")
        format = self._make_format(
            count_worth(dataset.n_records, max_rows),
            dataset.n_columns,
            1 if dataset.classes is None else len(dataset.classes),
            has_number=dataset.has_number,
            classes=dataset.classes,
            kind=kind,
        )
        return format, dataset

    def _list_certified(self):
        yield from super()._list_certified()
        yield from list_certified_sizes(self)

    def _find_sigma(self):
        n_classes = len(getattr(self, "classes_", [None]))
        return self.release_.find_sigma(self.privacy_, n_classes)

    def _find_max_rows(self, has_persons):
        """Return how many rows of a person count, or None; refuse persons where none can."""
        if not has_persons:
            return None
        self._refuse_samples(
            "what that costs is known for one row, and several rows of a person may cost more "
            "than so many times as much. persons=...",
            "give one row of each person, and no persons",
        )
        return self.max_rows_per_person

    def _refuse_samples(self, what, instead):
        """Refuse a release of anything else than sums over all rows, which something is for."""
        release = self._resolve_spec("release")
        if not release.is_sum:
            raise ValueError(
                f"{type(release).__name__} reads rows at random, again and again, or one by one: "
                f"{what} is for sums over all rows: use release='sketch' of "
                f"DPSlicedWassersteinGenerator or DPSWFlowSampler; or {instead}."
            )

    def _check_learnt(self):
        """Refuse what has diverged: it makes no rows."""
        classes = torch.arange(len(getattr(self, "class_probabilities_", [1]))).repeat(_TRIED)
        self._generate_finite(classes, torch.Generator().manual_seed(0))

    def _generate_finite(self, classes, generator):
        rows = self._generate(classes, generator)
        check_finite(torch.as_tensor(rows))
        return rows

    def sample(
        self, n_samples: int | None = None, *, y=None, where: dict | None = None, random_state=None
    ):
        """Draw synthetic rows. This costs no privacy, however often it is done.

        All rows obey the rules of a `schema`.

        Parameters
        ----------
        n_samples : int, default=None
            Number of rows; ignored if `y` is given. None: as many as were fitted or, with
            `persons`, as there were persons, a number that is public; of more than a million it has
            to be said.
        y : array-like of shape (n_samples,), default=None
            Classes to draw rows of. By default classes are drawn by their noisy frequencies.
        where : dict, default=None
            With a `schema`, what all rows are in some columns: a level, a number or a date; a tuple
            of the lowest and the highest number or date, of which None is open; None, for missing;
            or a list of these: ``{"sex": "Female", "age": [(18, 30), (60, None)]}``.
        random_state : None, int or numpy.random.RandomState, default=None
            None: the estimator's own, so that with an int there, each call gives the same rows.

        Returns
        -------
        X : ndarray or DataFrame of shape (n_samples, n_features)
            Of the kind and floating dtype that `fit` was given (float64 for integers); with a
            `schema`, of its dtypes.
        y : ndarray or Series of shape (n_samples,)
            Only if `fit` was given one.

        Raises
        ------
        ValueError
            For numbers below 1, and for classes, levels or ranges that no row can have, or none
            that obeys the rules of a `schema`.
        """
        check_is_fitted(self, "privacy_")
        if n_samples is None and y is None:
            n_samples = self.n_samples_
            if n_samples > _MOST_SAMPLES:
                raise ValueError(
                    f"As many as were fitted are {n_samples:,}: say by n_samples how many to draw, "
                    "in pieces where memory would not hold them."
                )
        noise = NoiseSource(self.random_state if random_state is None else random_state, stream=1)
        shares = getattr(self, "class_probabilities_", np.ones(1))
        return self._format.sample(
            self._generate_finite, shares, n_samples, y=y, where=where, noise=noise
        )

    @clears_frames()
    def score(self, X, y=None) -> float:
        """Return how close synthetic rows are to `X`; higher is better.

        The score is the negative sliced Wasserstein distance between `X` and a fixed synthetic
        sample of the same size, at most 5,000 rows, in the units of the release.

        It reads `X` outside the ledger: on private rows the score itself is not private, and
        neither is anything chosen by it. Score on public or held-out rows that may be disclosed.
        Since it cannot know which these are, it always gives a `PrivacyLeakWarning`: filter that
        category where rows are public.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to compare with.
        y : Ignored

        Returns
        -------
        float
        """
        check_is_fitted(self, "privacy_")
        warnings.warn(
            "A score compares with the rows that it is given, without noise: of private rows it is "
            "not covered by ε, and neither is what is chosen by it. Score public rows.",
            PrivacyLeakWarning,
            stacklevel=3,
        )
        format = self._format.without_target()
        X = format.read_public(self, X)
        if len(X) > _SCORE_ROWS:
            X = X[np.random.RandomState(0).choice(len(X), _SCORE_ROWS, replace=False)]
        synthetic = self.sample(len(X), random_state=0)
        if isinstance(synthetic, tuple):
            synthetic = synthetic[0]
        return -sliced_wasserstein_distance(
            format.encode(X), format.encode(synthetic), random_state=0
        )

    @abstractmethod
    def _plan(self, terms, format):
        """Return the `Plan`, from public numbers only; first what `terms` say is paid for."""

    @abstractmethod
    def _learn(self, curator, format, noise):
        """Make the planned releases and fit to them; sets `class_probabilities_`."""

    @abstractmethod
    def _generate(self, classes, generator):
        """Return rows in the unit ball, an array of shape (len(classes), n_columns)."""

    def _list_assumptions(self, format):
        """List what the certificate rests on; subclasses may add to it."""
        return (*list_assumptions(format), *self._find_release(format).assumptions)

    def _find_release(self, format):
        """Return the release of data of a format."""
        return self._resolve_spec("release").of(format)

    def _check_params(self):
        """Raise a ValueError if a parameter is bad; no row is read."""
        super()._check_params()
        for name in self._shorthands:
            if name != "encoder":
                self._resolve_spec(name)
        if self.schema is None:
            return
        if not isinstance(self.schema, Schema) and not (
            isinstance(self.schema, str) and self.schema == "private"
        ):
            raise ValueError(
                f"schema must be a Schema, or 'private'; got {type(self.schema).__name__}."
            )
        for name, default in BoxFormat.parameters.items():
            value = getattr(self, name)
            if value is not default and not (default and value == default):
                raise ValueError(f"{name} is not for tables with a schema, which says it all.")

    def _make_format(self, n_samples, n_features, n_classes, **public):
        public_encoder, components = split_encoder(self.encoder)
        is_auto = isinstance(components, str)
        format = make_box(
            n_samples,
            n_features,
            self._multiplier,
            self.relation,
            bounds=self.bounds,
            y_bounds=self.y_bounds,
            encoder=public_encoder,
            components=None if is_auto else components,
            clip_norm=self.clip_norm,
            **public,
        )
        if not (is_auto and self._takes_components):
            return format
        components = choose_components(
            n_samples, n_features, n_classes, self._multiplier, format.are_images
        )
        if components is None and format.could_be_images:
            warn_of_pixels(n_features, stacklevel=5)
        return replace(format, components=components)

    @property
    def _multiplier(self):
        """The noise multiplier of a Gaussian release that spends all of the budget."""
        return calibrate_gaussian(
            self.epsilon, self.delta, relation=self.relation, accountant=self.accountant
        )

    def _make_table_format(self, schema, kind=None):
        format = TableFormat(schema, kind)
        # Knots that are found are of a number that nobody knows beforehand.
        needs_columns = self._find_release(format).needs_columns
        return format.with_even_knots() if needs_columns else format

    # What is released before anything is learnt: what is open, and components.

    def _make_plan(self, n_samples, format, n_classes, max_rows=None):
        """Return the `Plan`, the release, and how many records it takes, 0 if that is unknown."""
        shares, thresholds = {**count_rows_by(max_rows), **format.shares}, {}
        is_open_table = format.has_blocks and format.shares
        if CategoryCountsMechanism.name in shares:
            thresholds[CategoryCountsMechanism.name] = _OPEN_DELTA * self.delta
        if format.components is not None:
            check_size("X", format.n_columns, format.n_columns)
            # Of what is left.
            shares[format.components.name] = format.components.share * (1 - sum(shares.values()))
        terms = Terms(
            self.epsilon,
            self.delta,
            self.relation,
            self.accountant,
            n_samples,
            n_classes,
            None if is_open_table else self._count_encoded(format),
            shares,
            thresholds,
            max_rows,
        )
        plan = self._plan(terms, format)
        release = self._find_release(format)
        min_samples = max(
            release.min_samples(plan, terms, format) or 0,
            self._min_samples_for_components(plan, format),
        )
        return plan, release.resolved(plan, terms), int(float(f"{min_samples:.2g}"))

    def _count_encoded(self, format):
        """Return the number of columns after the encoder."""
        if format.components is None:
            return format.n_columns
        n_components = self._resolve_spec("release").n_components
        return format.components.count_components(format.n_columns, n_components)

    def _min_samples_for_components(self, plan, format):
        if format.components is None:
            return 0
        multiplier = plan.multiplier(format.components.name) * (plan.max_rows or 1)
        n_encoded = self._count_encoded(format)
        return format.components.min_samples(
            n_encoded, format.n_columns, multiplier, format.are_images
        )

    def _find_components(self, curator, format, **scaling):
        """Release principal components if they are the encoder, else return None."""
        if format.components is None:
            return None
        return format.components.find_components(curator, self._count_encoded(format), **scaling)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.estimator_type = "density_estimator"
        tags.target_tags.required = False
        tags.non_deterministic = True
        tags.input_tags.allow_nan = True
        return tags


@parameters
class CentralGenerator(BaseGenerator):
    """Base of the generators that are trusted with the rows: they also take tables and encoders."""

    relation: str = "zero_out"
    clip_norm: float | str = "auto"
    schema: object = None
    encoder: object = "auto"

    _checks = {**CENTRAL_CHECKS, "encoder": lambda name, value: split_encoder(value)}
    _shorthands = {"encoder": ENCODERS}


def list_assumptions(format):
    """List what a certificate rests on, whatever the records are."""
    what = "the schema" if format.has_blocks else "bounds, clip_norm, classes, encoder"
    assumed = (ONE_RECORD, _CHOSEN.format(what=what), _COVERED, *ASSUMED_OF_NOISE)
    if format.encoder is None:
        return assumed
    fitted = "was fitted on public data"
    if hasattr(format.encoder, "privacy_"):
        fitted = "is paid for in a certificate of its own, which is to be composed with this one"
    return (f"the encoder {fitted}, maps each row on its own and keeps none", *assumed)


def refuse_given(estimator, *names):
    """Refuse parameters that belong to the release where it is made at every step."""
    for name in names:
        if (value := getattr(estimator, name)) is not None:
            kind = type(estimator._resolve_spec("release")).__name__
            raise ValueError(
                f"{name} belongs to the release here: give release={kind}({name}={value!r})."
            )


def check_network(name, value):
    """Refuse what is neither the name of a generator network nor a factory."""
    if isinstance(value, str):
        check_choice(name, value, GENERATORS)
    elif not callable(value):
        raise ValueError(f"{name} must be one of {list(GENERATORS)} or a factory; got {value!r}.")
