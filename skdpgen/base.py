"""The template of every generator: validate, curate, learn, sample."""

import math
import numbers
from abc import ABCMeta, abstractmethod
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ._validation import (
    check_choice,
    check_finite,
    check_flag,
    check_positive,
    check_share,
    choose_device,
    list_refusals,
    undo_on_failure,
    warn_of_delta,
)
from .accounting.accountants import ACCOUNTANTS, RELATIONS
from .accounting.calibration import check_delta, check_epsilon
from .accounting.certificate import Certificate, naming_what_was_spent
from .accounting.figures import plain_numbers
from .formats.box import RowCodec
from .formats.inference import declare_by_dtypes
from .formats.output import ArrayFormat, TableFormat, check_frame
from .formats.schema import Schema
from .formats.table import TableCodec
from .formats.table_encoder import check_closed
from .networks import GENERATORS
from .privacy import CategoryCountsMechanism, Curator, NoiseSource
from .privacy.noise import ASSUMED_OF_NOISE
from .privacy.records import first_chunk, read_rows, read_table, take_labels, take_rows
from .transport import sliced_wasserstein_distance

__all__ = ["BaseGenerator", "list_assumptions"]

# Rows are generated and decoded in pieces of this size; a score compares at most so many.
_SAMPLE_BLOCK = 10_000
# Rows of each class that a fit tries to make.
_TRIED = 8
_SCORE_ROWS = 5_000

# What a schema says, too.
_NOT_WITH_SCHEMA = ("bounds", "y_bounds", "classes", "encoder")

_ALWAYS_ASSUMED = (
    "one person has one record",
    "bounds, clip_norm, classes, encoder and all other parameters were chosen without looking at "
    "the private rows; column names and dtypes are public",
    "only what fit released is covered: score(X), un-noised scores of a search, and steps of a "
    "pipeline that were fitted on private rows are not",
    *ASSUMED_OF_NOISE,
)


class BaseGenerator(BaseEstimator, metaclass=ABCMeta):
    """Base of the generators: the public verbs, the certificate, labels, frames and dtypes.

    Subclasses fill in three steps, none of which sees a private row:

    - ``_plan(n_samples, codec, n_classes)`` fixes what will be released, and its noise;
    - ``_learn(curator, codec, noise)`` asks the curator for releases and fits to them;
    - ``_generate(codes, generator)`` makes rows for the classes in `codes`.
    """

    def fit(self, X, y=None, *, target=None):
        """Learn the distribution of `X`, and of `y` given with it, under differential privacy.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Private rows. With a `schema`, a DataFrame with its columns; or, for tables that are
            larger than memory, a function that returns a fresh iterator over DataFrames.
        y : array-like of shape (n_samples,), default=None
            Labels (int, bool, string or categorical dtype, or any dtype with `classes`), or
            numbers (float dtype), which are treated as one more column. With a `schema`, the one
            column that `X` lacks.
        target : str, default=None
            With a `schema`, the column of `X` whose levels `sample` can be asked for by `y`.

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
        with undo_on_failure(self), plain_numbers(self):
            return self._fit(X, y, target)

    def _fit(self, X, y, target):
        self._check_params()
        if self._is_table():
            codec = TableCodec(self._declare(X, y))
            output = TableFormat.of(codec.schema, X, y, target)
            X, n_samples = read_table(self, X, y, output.label, codec)
            y, classes, inferred = None, None, False
        else:
            if target is not None:
                raise ValueError("target=... names a column of a schema; without one, give y.")
            output = ArrayFormat.of(X, y)
            X = take_rows(self, X)
            y, classes, inferred = take_labels(
                y, len(X), self.classes, are_numbers=self.y_bounds is not None
            )
            if self.y_bounds is not None and classes is not None:
                raise ValueError(
                    "y_bounds are for a numeric y of float dtype; here y holds classes."
                )
            codec = self._make_codec(X.shape[1], has_number=y is not None and classes is None)
            n_samples = len(X)
        plan = self._plan(n_samples, codec, 1 if classes is None else len(classes))
        if not plan.is_pure:
            warn_of_delta(self.delta, n_samples, stacklevel=3)
        noise = NoiseSource(self.random_state)
        has_objects = not self._is_table() and X.dtype == object
        for name in ("classes_", "class_probabilities_", "schema_"):
            vars(self).pop(name, None)
        with Curator(
            X,
            y,
            classes=classes,
            plan=plan,
            noise=noise,
            prepare=codec.encode,
            cells=self._is_table(),
            clip_norm=self.clip_norm,
            refuse=codec.refuse if self.strict else None,
            device=choose_device(self.device),
            verbose=self.verbose,
        ) as curator:
            del X, y  # from here on only the curator holds the rows
            with naming_what_was_spent(curator.certificate):
                codec = codec.settle(curator)
                self._learn(curator, codec, noise)
            assumed = self._list_assumptions(codec, inferred, has_objects)
            certificate = curator.certificate(assumed)
        if inferred:
            # Somebody saw all labels before any owner could noise one.
            certificate = replace(certificate, local=False)
        self._codec = codec
        if self._is_table():
            self.schema_ = codec.schema
            classes = codec.levels(output.label)
        if classes is not None:
            self.classes_ = classes
        self._output = replace(output, classes=classes)
        self.n_samples_ = n_samples
        self.sigma_ = plan.sigma
        self.privacy_ = certificate
        self.epsilon_ = certificate.epsilon
        self._check_learnt()
        return self

    def _check_learnt(self):
        """Refuse what has diverged: it makes no rows."""
        codes = torch.arange(len(getattr(self, "class_probabilities_", [1]))).repeat(_TRIED)
        with naming_what_was_spent(lambda: self.privacy_):
            self._generate_finite(codes, torch.Generator().manual_seed(0))

    def _generate_finite(self, codes, generator):
        rows = self._generate(codes, generator)
        check_finite(torch.as_tensor(rows))
        return rows

    def _is_table(self):
        return self.schema is not None or self.infer is not None

    def _has_table(self):
        """Whether a table was fitted, whatever parameters say since."""
        return isinstance(self._output, TableFormat)

    def _declare(self, X, y):
        """Return the schema; if it may be inferred, with the columns that it lacks left open."""
        if self.infer is None:
            return self.schema
        dtypes = dict(check_frame(first_chunk(X)).dtypes)
        if y is not None and set(self.schema or ()) <= set(X.columns):
            dtypes[getattr(y, "name", None) or "target"] = getattr(y, "dtype", np.dtype(object))
        return declare_by_dtypes(dtypes, self.schema)

    def _inference_shares(self, codec):
        """Return the shares of the releases that close a schema, and the δ' of thresholds."""
        shares = {name: self.infer_share / len(codec.releases) for name in codec.releases}
        thresholds = {
            name: 0.1 * self.delta for name in shares if name == CategoryCountsMechanism.name
        }
        return shares, thresholds

    def sample(self, n_samples=1, *, y=None, where=None, random_state=None):
        """Draw synthetic rows. This costs no privacy, however often it is done.

        Parameters
        ----------
        n_samples : int, default=1
            Number of rows; ignored if `y` is given.
        y : array-like of shape (n_samples,), default=None
            Classes to draw rows of. By default classes are drawn by their noisy frequencies.
        where : dict, default=None
            With a `schema`, levels that all rows have: ``{"sex": "Female"}``.
        random_state : None, int or numpy.random.RandomState, default=None
            None: the estimator's own, so that with an int there, each call gives the same rows.

        Returns
        -------
        X : ndarray or DataFrame of shape (n_samples, n_features)
            Of the kind and floating dtype that `fit` was given (float64 for integers); with a
            `schema`, of its dtypes.
        y : ndarray or Series of shape (n_samples,)
            Only if `fit` was given one.
        """
        check_is_fitted(self, "privacy_")
        noise = NoiseSource(self.random_state if random_state is None else random_state, stream=1)
        generator = noise.torch_generator()
        if where is not None and not isinstance(where, Mapping):
            raise ValueError(f"where must be a dict of columns and levels; got {where!r}.")
        if self._has_table():
            return self._sample_table(n_samples, y, where, noise)
        if where is not None:
            raise ValueError("where=... needs a schema; ask for classes by y=[...].")
        codes = self._draw_codes(n_samples, generator) if y is None else self._find_codes(y)
        parts = [
            self._codec.decode(self._generate_finite(part, generator))
            for part in codes.split(_SAMPLE_BLOCK)
        ]
        X, numbers = zip(*parts, strict=True)
        return self._output.give(np.concatenate(X), numbers, codes.numpy())

    def _sample_table(self, n_samples, y, where, noise):
        label, blocks = self._output.label, dict(self._codec.blocks)
        if y is not None and label in (where or {}):
            raise ValueError(f"y and where both ask for levels of {label!r}; give one of them.")
        conditions = {}
        for name, level in (where or {}).items():
            conditions.update(self._find_level(name, level, blocks))
        generator, public = noise.torch_generator(), noise.public_generator()
        if y is None:
            rows = self._generate_where(_check_count(n_samples), conditions, generator, public)
        else:
            codes = self._find_codes(y).numpy()
            rows = np.empty((len(codes), self._codec.n_columns))
            for code in np.unique(codes):
                asked = self._find_level(label, self.classes_[code], blocks)
                chosen = codes == code
                rows[chosen] = self._generate_where(
                    chosen.sum(), conditions | asked, generator, public
                )
        return self._output.give(self._codec.decode(rows, public))

    def _find_level(self, name, level, blocks):
        """Return the columns of a block of levels, and the position of one among them."""
        kind = self.schema_.get(name)
        levels = getattr(kind, "levels", None)
        if levels is None:
            raise ValueError(f"where names {name!r}, which is no column of categories.")
        if level not in levels:
            raise ValueError(f"{level!r} is not among the levels of {name!r}: {list(levels)}.")
        return {name: (blocks[name], levels.index(level))}

    def _generate_where(self, n_rows, conditions, generator, public):
        """Generate rows; under conditions, drawn from many in proportion to how likely they are.

        Given its code, a row's columns are independent: the probability of the conditions is a
        product, and the other columns do not change.
        """
        if not conditions:
            parts = torch.zeros(n_rows, dtype=torch.int64).split(_SAMPLE_BLOCK)
            return np.concatenate([self._generate_finite(part, generator) for part in parts])
        n_candidates = max(_SAMPLE_BLOCK, 4 * n_rows)
        rows = self._generate_where(n_candidates, {}, generator, public)
        likely = np.prod([rows[:, where][:, i].clip(0) for where, i in conditions.values()], axis=0)
        if not likely.sum() > 0:
            raise ValueError("No rows were generated for which where=... could hold.")
        rows = rows[public.choice(n_candidates, n_rows, p=likely / likely.sum())]
        for where, i in conditions.values():
            total = rows[:, where].sum(axis=1)
            rows[:, where] = 0
            rows[:, where.start + i] = total
        return rows

    def _draw_codes(self, n_samples, generator):
        n_samples = _check_count(n_samples)
        probabilities = torch.as_tensor(self.class_probabilities_)
        return torch.multinomial(probabilities, n_samples, True, generator=generator)

    def _find_codes(self, y):
        if not hasattr(self, "classes_"):
            raise ValueError("y=... asks for classes, but fit was given none.")
        labels = np.atleast_1d(np.asarray(y))
        labels = labels.astype(labels.dtype.newbyteorder("="), copy=False)
        codes = pd.Index(self.classes_).get_indexer(labels)
        if labels.ndim != 1 or len(labels) == 0 or (codes < 0).any():
            raise ValueError(
                f"y must be a list of at least one label, all among {self.classes_.tolist()}."
            )
        return torch.as_tensor(codes)

    def score(self, X, y=None):
        """Return how close synthetic rows are to `X`; higher is better.

        The score is the negative sliced Wasserstein distance between `X` and a fixed synthetic
        sample of the same size, at most 5,000 rows, in the units of the release.

        It reads `X` outside the ledger: on private rows the score itself is not private, and
        neither is anything chosen by it. Score on public or held-out rows that may be disclosed.

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
        if self._has_table():
            names = list(self._output.names)
            codec = replace(self._codec, schema=self.schema_.select(names))
            (X, _), encode = read_table(self, X, None, None, codec, reset=False), codec.encode
        else:
            X = read_rows(self, X, reset=False)
            encode = replace(self._codec, has_number=False).encode
        if len(X) > _SCORE_ROWS:
            X = X[np.random.RandomState(0).choice(len(X), _SCORE_ROWS, replace=False)]
        synthetic = self.sample(len(X), random_state=0)
        if isinstance(synthetic, tuple):
            synthetic = synthetic[0]
        if self._has_table():
            synthetic = synthetic[names]
        return -sliced_wasserstein_distance(encode(X), encode(synthetic), random_state=0)

    @abstractmethod
    def _plan(self, n_samples, codec, n_classes):
        """Return the `Plan`, from public numbers only; first what the codec has to release."""

    @abstractmethod
    def _learn(self, curator, codec, noise):
        """Make the planned releases and fit to them; sets `class_probabilities_`."""

    @abstractmethod
    def _generate(self, codes, generator):
        """Return rows in the unit ball, an array of shape (len(codes), n_columns)."""

    def _list_assumptions(self, codec, inferred=False, has_objects=False):
        """List what the certificate rests on; subclasses may add to it."""
        refusals = list_refusals(self.strict, has_objects)
        return list_assumptions(codec, inferred, refusals)

    def _check_params(self):
        """Refuse bad parameters before any row is read."""
        check_epsilon(self.epsilon)
        check_delta(self.delta)
        check_flag("strict", self.strict)
        check_choice("relation", self.relation, RELATIONS)
        check_choice("accountant", self.accountant, ACCOUNTANTS)
        check_positive("clip_norm", self.clip_norm, most=math.inf)
        if self.infer not in (None, "private"):
            raise ValueError(f"infer must be None or 'private'; got {self.infer!r}.")
        check_share("infer_share", self.infer_share)
        if self.schema is not None and not isinstance(self.schema, Schema):
            raise ValueError(f"schema must be a Schema; got {type(self.schema).__name__}.")
        if self._is_table():
            given = [name for name in _NOT_WITH_SCHEMA if getattr(self, name) is not None]
            given += ["clip_norm"] if self.clip_norm != 1 else []
            if given:
                raise ValueError(f"{given[0]} is not for tables with a schema, which says it all.")
            if self.infer is None:
                check_closed(self.schema)
        choose_device(self.device)
        if isinstance(self.encoder, str):
            check_choice("encoder", self.encoder, ["dp-pca"])
        elif isinstance(self.encoder, tuple) and self.encoder[1:] != ("dp-pca",):
            raise ValueError("encoder as a pair is (object, 'dp-pca').")
        fitted = self._fitted_encoder()
        for method in ("transform", "inverse_transform"):
            if fitted is not None and not hasattr(fitted, method):
                raise ValueError(
                    f"encoder must be None, 'dp-pca' or an object with {method}, fitted on "
                    "public data."
                )

    def _fitted_encoder(self):
        """Return the encoder that was fitted beforehand, if there is one."""
        if isinstance(self.encoder, tuple):
            return self.encoder[0]
        return None if isinstance(self.encoder, str) else self.encoder

    def _make_codec(self, n_features, has_number=False):
        return RowCodec(
            n_features,
            bounds=self.bounds,
            encoder=self._fitted_encoder(),
            has_number=has_number,
            y_bounds=self.y_bounds,
            radius=self.clip_norm,
        )

    def _preview(self, n_samples, n_features, n_classes):
        """Price a fit without data; see `skdpgen.privacy.preview`."""
        self._check_params()
        if self.infer is not None and self.schema is None:
            raise ValueError("preview needs a schema: without a table, no column is known.")
        codec = TableCodec(self.schema) if self._is_table() else self._make_codec(n_features)
        plan = self._plan(n_samples, codec, n_classes or 1)
        return Certificate.of_plan(
            plan, self._list_assumptions(codec), reproducible=self.random_state is not None
        )

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.estimator_type = "density_estimator"
        tags.target_tags.required = False
        tags.non_deterministic = True
        tags.input_tags.allow_nan = True
        return tags


def list_assumptions(codec, inferred=False, refusals=()):
    """List what a certificate rests on."""
    assumed = (*refusals, *_ALWAYS_ASSUMED)
    if codec.encoder is not None:
        fitted = "was fitted on public data"
        if hasattr(codec.encoder, "privacy_"):
            fitted = (
                "is paid for in a certificate of its own, which is to be composed with this one"
            )
        assumed = (f"the encoder {fitted}, maps each row on its own and keeps none", *assumed)
    if inferred:
        assumed = ("the set of classes, inferred from y, is public", *assumed)
    return assumed


def _check_count(n_samples):
    if isinstance(n_samples, bool) or not isinstance(n_samples, numbers.Integral | np.integer):
        raise ValueError(f"n_samples must be a whole number; got {n_samples!r}.")
    if n_samples < 1:
        raise ValueError(
            f"Invalid value for 'n_samples': {n_samples}. The sampling requires at least one "
            "sample."
        )
    return int(n_samples)


def check_generator(generator):
    """Refuse what is neither the name of a network nor a factory."""
    if isinstance(generator, str):
        check_choice("generator", generator, GENERATORS)
    elif not callable(generator):
        raise ValueError(
            f"generator must be one of {list(GENERATORS)} or a factory; got {generator!r}."
        )
