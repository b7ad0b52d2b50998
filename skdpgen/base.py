# SPDX-License-Identifier: BSD-3-Clause
"""The base class of generators: `fit`, `sample` and `score`."""

import contextlib
from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from ._process.isolation import isolate_each, isolated
from .accounting.spending import keep_nothing, say_how_to_go_on
from .accounting.units import unit_assumptions
from .curator.curator import Curator, open_curator
from .data.containers import adapt
from .data.record_functions import clears_frames
from .encoders import ENCODERS, split_encoder
from .exceptions import FitQualityWarning, PrivacyLeakWarning, warn_caller
from .format import Format, RowSource, check_count
from .learners.interface import Sampler
from .mechanisms.noise import NoiseSource, PublicSource
from .mechanisms.sums import RowCountMechanism
from .params import (
    CENTRAL_CHECKS,
    RUNNING_CHECKS,
    check_finite,
    choose_device,
    fitting,
    warn_of_delta,
)
from .planning.few_rows import find_few_rows
from .planning.fits import Planning
from .releases.published import PublishedRelease, ReplayedCurator
from .saving.serialization import Certified, list_certified_sizes

__all__ = ["BaseGenerator", "CentralGenerator"]

# Called with the `PublishedRelease` of each fit in this thread; see `saving_releases`.
_save: ContextVar[Callable[[PublishedRelease], object]] = ContextVar("save", default=lambda p: None)
# Largest number of rows that `score` compares.
_SCORE_ROWS = 5_000
# Largest number of rows that `sample` draws without n_samples.
_MAX_DEFAULT_SAMPLES = 1_000_000
# Device types without memory of their own. Fits on others, and of databases, are rehearsed first.
_HOST_DEVICES = ("cpu",)
# Rows of each class that `fit` generates to check that training has not diverged.
_N_CHECKED = 8
# Fitted attributes that not all fits set.
_OPTIONAL = ("classes_", "class_probabilities_", "schema_", "schema_report_", "y_bounds_")


@contextlib.contextmanager
def saving_releases(save: Callable[[PublishedRelease], object]) -> Iterator[None]:
    """Call `save` with the release of each fit in this thread, before anything is learned.

    If the fit makes more releases later, `save` is called again, with all of them.
    """
    token = _save.set(save)
    try:
        yield
    finally:
        _save.reset(token)


class BaseGenerator(Certified, Planning, BaseEstimator, metaclass=ABCMeta):
    """Base of generators: `fit`, `sample`, `score` and the certificate.

    Subclasses implement three steps, none of which reads a private row:

    - ``_plan(terms, format)`` fixes what is released, and its noise;
    - ``_learn(curator, format, noise)`` asks the curator for releases and fits to them;
    - ``_generate(classes, generator)`` returns a row for each of a tensor of classes.
    """

    _checks = {**RUNNING_CHECKS}

    def fit(self, X, y=None, *, target: str | None = None, persons=None):
        """Learn the distribution of `X` and `y` under differential privacy.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features), or images
            Private rows; `schema` says whether a DataFrame is a table. It may be of pandas, Polars
            or any library that Narwhals knows, an Arrow table, a query of DuckDB or Polars, or a
            list of dicts. A table may also be a function that returns a fresh iterator over
            DataFrames, for data larger than memory, or a DataFrame of Dask or Spark, whose workers
            compute sums, or `skdpgen.engines.sql`. Images are an array or tensor of three or four
            dimensions, channels first or last, a list of arrays, tensors or images of Pillow, or a
            torch Dataset or DataLoader, which is read once, in order, with its labels.
        y : array-like of shape (n_samples,), default=None
            Labels (int, bool, string or categorical dtype, or any dtype with `classes`), or
            numbers (float dtype), which are one more column. With a `Schema`, the one column that
            `X` lacks.
        target : str, default=None
            The column of a table whose levels `sample` takes as `y`.
        persons : str or array-like of shape (n_samples,), default=None
            Identifiers of the persons to whom rows belong, or the name of the column of a
            DataFrame that holds them, which is then no data. Privacy is for persons, with all their
            rows; the release must be a sum over all rows, as a sketch is. Equal identifiers,
            strings or numbers, are one person; a row without an identifier counts as absent.
            Chunks, and tables of an engine, take the name of a column.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            For invalid shapes, dtypes or parameters; nothing is spent. For rows that are refused
            because of their content (``strict=True``, or cells of dtype object that are not
            numbers); open budgets are charged with the fit.
        BudgetExceededError
            If an open `PrivacyBudget` cannot pay for the fit; nothing is released.
        """
        with fitting(self):
            return self._fit(X, y, target, persons)

    def _fit(self, X, y, target, persons):
        self._check_params()
        format, dataset = self._read(X, y, target, persons)
        n_samples, max_rows = dataset.n_records, dataset.max_rows
        fit_plan = self._make_plan(n_samples, format, dataset.n_classes, max_rows)
        if not fit_plan.plan.is_pure:
            warn_of_delta(fit_plan.plan.delta, n_samples)
        few = find_few_rows(self, fit_plan, n_samples, dataset.n_classes, format)
        if few is not None:
            warn_caller(few, FitQualityWarning)
        # Not every fit sets these: those of an earlier fit to other data must not survive.
        for name in _OPTIONAL:
            vars(self).pop(name, None)
        noise, device = NoiseSource(self.random_state), choose_device(self.device)
        if device.type not in _HOST_DEVICES or dataset.database is not None:
            from .planning.rehearsal import rehearse_fit

            rehearse_fit(self, format, fit_plan.plan, dataset, device)
        release = fit_plan.release
        with open_curator(
            dataset,
            format,
            fit_plan.plan,
            noise,
            strict=self.strict,
            device=device,
            verbose=self.verbose,
            keep=partial(_keep, self, release),
            row_count=RowCountMechanism(),
        ) as curator:
            resolved = format = format.resolve(curator)
            # Releases and public draws of inference: a published release replays only later ones.
            n_inferred, n_words = len(curator.released or ()), len(noise.public_words)

            def publish(is_complete=False):
                names = [name for name, _ in curator.plan.releases[: len(curator.released)]]
                plan = curator.plan if is_complete else release.find_released(curator.plan, names)
                if plan is None:
                    return
                self.release_ = release
                release.published = PublishedRelease.of(
                    self,
                    clone(release),
                    curator,
                    plan,
                    resolved,
                    n_inferred,
                    self._list_assumptions(resolved),
                    noise.public_words[n_words:],
                )
                _save.get()(release.published)

            # Publish after each release, so that paid releases are kept if learning fails.
            curator.on_release = publish
            format = self._learn(curator, format, noise) or format
            curator.close()
            if curator.n_classes > 1 and not hasattr(self, "class_probabilities_"):
                # `check_generator` finds a learner that forgets them; all classes are sampled.
                self.class_probabilities_ = np.full(curator.n_classes, 1 / curator.n_classes)
            certificate = curator.certificate(self._list_assumptions(format))
            if curator.released is not None:
                publish(is_complete=True)
            self.release_ = release
            self._finish(format, n_samples, certificate)
        # Only sums are kept: they do not depend on the learner, so others can be fitted to them.
        if not release.is_sum:
            release.published = None
        return self

    def _fit_published(self, published, format):
        """Fit to a published release; see `skdpgen.releases.from_release`."""
        with fitting(self):
            self._check_params()
            release = self._find_release(format)
            is_usable = release.is_transferable or type(self).__name__ == published.learner
            if type(release) is not type(published.release) or not is_usable:
                raise ValueError(
                    f"{type(self).__name__} with release={self.release!r} cannot be fitted to the "
                    f"{type(published.release).__name__} of a {published.learner}: use that class, "
                    "or 'sketch' for tables."
                )
            # Repeat the public draws of the original fit, such as the directions of its sums.
            noise = PublicSource(published.words, self.random_state)
            curator = ReplayedCurator(published, choose_device(self.device))
            format = self._learn(curator, format, noise) or format
            self.release_ = clone(published.release)
            self.release_.published = published
            vars(self).update(published.features)
            # This estimator may read public data beside the release, such as `init`.
            own = unit_assumptions(self._list_assumptions(format), published.plan.max_rows)
            known = published.certificate.assumptions
            certificate = replace(
                published.certificate, assumptions=tuple(dict.fromkeys((*known, *own)))
            )
            return self._finish(format, published.n_samples, certificate)

    def _finish(self, format, n_samples, certificate):
        """Set the attributes that every fitted generator has, and calibrate its marginals."""
        self._format = format
        vars(self).update(format.fitted_attributes)
        # Learners of tables report on columns by their released values.
        if not hasattr(self, "schema_report_"):
            vars(self).update(format.describe())
        if format.classes is not None:
            self.classes_ = format.classes
        self.n_samples_ = n_samples
        self.privacy_ = certificate.made_by(self)
        # A few rows of each class show whether training has diverged. Check here, not in `sample`:
        # then `fit` fails, and states what it spent.
        classes = torch.arange(len(getattr(self, "class_probabilities_", [1])))
        generator = torch.Generator().manual_seed(0)
        self._generate_rows(classes.repeat(_N_CHECKED), generator)
        report = getattr(self, "schema_report_", None)
        self._format = format.calibrate_marginals(self._generate_rows, report)
        return self

    def _generate_rows(self, classes: torch.Tensor, generator: torch.Generator) -> np.ndarray:
        """Return what `_generate` returns, as a finite array of the right shape."""
        rows = self._generate(classes, generator)
        if isinstance(rows, torch.Tensor):
            # Callers must get no tensor with a gradient or on another device.
            rows = rows.detach().cpu()
        rows = np.asarray(rows)
        shape = (len(classes), self._format.n_columns)
        if rows.shape != shape or rows.dtype.kind != "f":
            raise ValueError(
                f"{type(self).__name__}._generate returned {rows.dtype} numbers of shape "
                f"{rows.shape}; floats of shape {shape} were expected."
            )
        check_finite(torch.as_tensor(rows))
        return rows

    def sample(
        self,
        n_samples: int | None = None,
        *,
        y=None,
        where: dict | pd.DataFrame | None = None,
        random_state=None,
    ):
        """Draw synthetic rows, at no privacy cost.

        All rows obey the rules of a `Schema`.

        Parameters
        ----------
        n_samples : int, default=None
            Number of rows; ignored if `y` is given. None: the number of fitted rows, or of persons,
            which is public. Required if more than 1,000,000 rows were fitted.
        y : array-like of shape (n_samples,), default=None
            Classes of the rows. By default, classes are drawn by their noisy frequencies.
        where : dict or DataFrame, default=None
            Conditions on columns of a table: a level, a number or a date; a tuple of the lowest and
            the highest number or date, of which None is open; None, for missing; or a list of
            these: ``{"sex": "Female", "age": [(18, 30), (60, None)]}``. A DataFrame holds partial
            rows: each sampled row keeps the index and the cells of one of them, and missing cells
            are drawn.
        random_state : None, int or numpy.random.RandomState, default=None
            None: the estimator's own, so that with an int there, each call gives the same rows.

        Returns
        -------
        X : ndarray or DataFrame of shape (n_samples, n_features), or images
            With the container, shape and dtypes that `fit` was given; integers are rounded, and
            numbers stay within the range of the dtype. A dtype is widened, whatever is drawn, if it
            cannot hold declared categories, point masses, dates or missing cells. A query of Polars
            gives a Polars DataFrame; one of DuckDB, a RecordBatch, and chunks of these, an Arrow
            table.
        y : ndarray or Series of shape (n_samples,)
            Only if `fit` was given one.

        Raises
        ------
        ValueError
            If `n_samples` is below 1, or if no row can satisfy `y`, `where` and the rules.
        """
        check_is_fitted(self, "privacy_")
        where = _read_where(where)
        if isinstance(where, pd.DataFrame):
            n_samples = len(where) if n_samples is None else n_samples
        elif n_samples is None and y is None:
            n_samples = self.n_samples_
            if n_samples > _MAX_DEFAULT_SAMPLES:
                raise ValueError(
                    f"n_samples is required, since {n_samples:,} rows were fitted: give a number "
                    "that memory can hold, or draw them by sample_batches."
                )
        with isolated(self._find_seed(random_state)):
            rows = self._start_sampling(random_state)
            return next(self._format.decode(rows, [n_samples], y=y, where=where))

    def sample_batches(
        self,
        n_samples: int | None = None,
        batch_size: int = 100_000,
        *,
        where: dict | None = None,
        random_state=None,
    ) -> Iterator:
        """Draw synthetic rows batch by batch, in memory that does not grow with their number.

        Identifiers and unique values are not repeated by later batches.

        Parameters
        ----------
        n_samples : int, default=None
            Number of rows in all batches. None: the number of fitted rows, or of persons.
        batch_size : int, default=100_000
            Rows in a batch; the last one may have fewer.
        where : dict, default=None
            Conditions on columns of a table; see `sample`.
        random_state : None, int or numpy.random.RandomState, default=None
            See `sample`.

        Yields
        ------
        sample
            Each batch as `sample` returns it.

        Raises
        ------
        ValueError
            If `n_samples` or `batch_size` is below 1, or if no row can satisfy `where` and the
            rules.

        Examples
        --------
        >>> import pandas as pd
        >>> from skdpgen import DPSWFlowSampler
        >>> from skdpgen.tables import Number, Schema
        >>> frame = pd.DataFrame({"age": range(20, 70)})
        >>> schema = Schema({"age": Number(18, 90, decimals=0)})
        >>> sampler = DPSWFlowSampler(epsilon=5.0, schema=schema, n_steps=5).fit(frame)
        >>> [len(batch) for batch in sampler.sample_batches(25, batch_size=10)]
        [10, 10, 5]
        """
        check_is_fitted(self, "privacy_")
        # Without an upper limit: batches need the memory of one batch.
        n_samples = check_count(self.n_samples_ if n_samples is None else n_samples, most=None)
        batch_size = check_count(batch_size, "batch_size")
        sizes = (min(batch_size, n_samples - i) for i in range(0, n_samples, batch_size))
        with isolated():
            batches = self._format.decode(self._start_sampling(random_state), sizes, where=where)
        return isolate_each(batches, self._find_seed(random_state))

    def _find_seed(self, random_state):
        return self.random_state if random_state is None else random_state

    def _start_sampling(self, random_state):
        """Return the `RowSource` of a sample."""
        # Stream 1: with a fixed seed, samples must not repeat the random numbers of the fit.
        noise = NoiseSource(self._find_seed(random_state), stream=1)
        shares = getattr(self, "class_probabilities_", np.ones(1))
        return RowSource(self._generate_rows, shares, noise)

    @clears_frames()
    @isolated()
    def score(self, X, y=None) -> float:
        """Return how close synthetic rows are to `X`; higher is better.

        The score is the negative sliced Wasserstein distance between `X` and a fixed synthetic
        sample of the same size, at most 5,000 rows, in the units of the release.

        It reads `X` outside the ledger: a score of private rows is not private, and neither is
        anything chosen by it. Score public rows, or held-out rows that may be disclosed. Every
        call gives a `PrivacyLeakWarning`: filter that category if the rows are public.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to compare with.
        y : Ignored

        Returns
        -------
        float
        """
        from .transport.slices import sliced_wasserstein_distance

        check_is_fitted(self, "privacy_")
        warn_caller(
            "score compares X with synthetic rows without noise: a score of private rows, and what "
            "is chosen by it, is not covered by ε. Score public rows.",
            PrivacyLeakWarning,
        )
        format = self._format.without_target()
        X = format.read_public(self, X)
        if len(X) > _SCORE_ROWS:
            # A fixed seed, so that scores of several fits compare on the same rows.
            X = X[np.random.RandomState(0).choice(len(X), _SCORE_ROWS, replace=False)]
        synthetic = self.sample(len(X), random_state=0)
        if isinstance(synthetic, tuple):
            synthetic = synthetic[0]
        synthetic = format.read_public(self, synthetic)
        # Negative, as scikit-learn maximises scores.
        return -sliced_wasserstein_distance(
            format.encode(X), format.encode(synthetic), random_state=0
        )

    def _learn(self, curator: Curator, format: Format, noise: NoiseSource) -> Format | None:
        """Make the planned releases and fit to them; set `class_probabilities_`.

        The release names its learner: by default, a method ``_learn_<name>`` returns its `Sampler`.

        Returns
        -------
        Format or None
            The format of generated rows, if releases have refined it.
        """
        release = self._find_release(format)
        learn = getattr(self, f"_learn_{release.learner}")
        sampler = learn(release, curator, format, noise)
        self._take_sampler(sampler)
        return sampler.format

    def _take_sampler(self, sampler: Sampler) -> None:
        """Set the results of a learner as attributes."""
        self._rows, self.loss_curve_ = sampler.rows, sampler.losses
        self.n_iter_ = sampler.n_steps or len(sampler.losses)
        if sampler.shares is not None:
            self.class_probabilities_ = sampler.shares
        if sampler.report is not None:
            self.schema_report_ = sampler.report

    @abstractmethod
    def _generate(self, classes: torch.Tensor, generator: torch.Generator):
        """Return rows in the unit ball, an array or tensor of shape (len(classes), n_columns)."""

    def _list_certified(self):
        yield from super()._list_certified()
        yield from list_certified_sizes(self)

    def _find_sigma(self):
        n_classes = len(getattr(self, "classes_", [None]))
        return self.release_.find_sigma(self.privacy_, n_classes)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.estimator_type = "density_estimator"
        tags.target_tags.required = False
        tags.non_deterministic = True
        # Invalid rows count as absent rather than stop a fit, which would disclose them.
        tags.input_tags.allow_nan = True
        tags.input_tags.three_d_array = True
        return tags


def _keep(estimator, release):
    """Return what a failed fit keeps, and advice to go on; see `report_spent_on_error`."""
    if release.published is None:
        return keep_nothing()
    params = {"release": estimator.release} if hasattr(estimator, "release") else {}
    return release.published, say_how_to_go_on(type(estimator)(**params))


def _read_where(where):
    """Convert a table of any library to a DataFrame; return a dict or None as it is."""
    if where is None or isinstance(where, Mapping):
        return where
    rows = adapt(where).data
    if isinstance(rows, pd.Series):
        raise ValueError(
            f"where must be a dict of conditions or a table of partial rows; got a column, "
            f"{type(where).__name__}. Give dict(row), or column.to_frame()."
        )
    return rows if isinstance(rows, pd.DataFrame) else where


@dataclass(eq=False, repr=False)
class CentralGenerator(BaseGenerator):
    """Base of generators for a trusted curator, which also take tables and encoders.

    Subclasses inherit the fields below, and add their own by `skdpgen.params.parameters`.
    """

    epsilon: float = 1.0
    delta: float | None = None
    _: KW_ONLY
    relation: str = "zero_out"
    accountant: str = "pld"
    random_state: Any = None
    device: str = "auto"
    verbose: int = 0
    strict: bool = False
    bounds: Any = None
    y_bounds: Any = None
    classes: Any = None
    clip_norm: Any = "auto"
    schema: Any = "auto"
    encoder: Any = "auto"

    _checks = {**CENTRAL_CHECKS, "encoder": lambda name, value: split_encoder(value)}
    _shorthands = {"encoder": ENCODERS}
