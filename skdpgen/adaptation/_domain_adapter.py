# SPDX-License-Identifier: BSD-3-Clause
"""Adapt a representation to a private target domain, by synthetic rows of it."""

import numbers
from dataclasses import fields, replace
from inspect import signature

import numpy as np
import torch
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import resample

from .._choices import check_choice
from ..accounting.certificate import Certificate
from ..accounting.events import gaussian_event
from ..accounting.previews import preview
from ..accounting.rounding import plain_numbers
from ..accounting.spending import report_spent_on_error
from ..arrays.box import BoxFormat
from ..base import BaseGenerator, CentralGenerator
from ..encoders import PrivatePCA, split_encoder
from ..generators import DPSWFlowSampler
from ..params import parameters
from ..preprocessing import LowFrequencies
from ..validation import in_range, rollback_on_failure
from ._augmentation import AUGMENTATIONS
from ._base import ASSUMED, SAID_OF_ALL, BaseAdapter

# Of these a sampler says nothing, or what the adapter says.
_SAID_ONCE = ("epsilon", "delta", "relation", "random_state")
# What an adapter's certificate says beside that of its sampler.
_OWN = ("assumptions", "notes", "origin")
# From so many target rows on, their own principal components are worth their price.
_MANY_ROWS = 1000
# Columns that a sketch can do with as they are; components of the source, of few target rows.
_FEW_COLUMNS, _SOURCE_COMPONENTS = 64, 32
# Frequencies of 28×28 images.
_FREQUENCIES = 14
# Synthetic target rows.
_FEWEST, _MOST = 500, 5000


def _check_sampler(name, value):
    if value is not None and not isinstance(value, BaseGenerator):
        raise ValueError(f"{name} must be None or a generator of skdpgen; got {value!r}.")


def _check_augment(name, value):
    if isinstance(value, str):
        check_choice(name, value, ["auto", *AUGMENTATIONS])
    elif value is not None and not callable(value):
        raise ValueError(f"{name} must be a function; got {value!r}.")


@parameters
class DPSWDDomainAdapter(BaseAdapter):
    """A representation in which a public source and a private target look alike.

    The source is public and labelled; the target is private, and its labels are never asked for.
    A sampler learns synthetic target rows, which stand in for the private ones. By default it is a
    `DPSWFlowSampler`: a slice sketch of the target is released once, with Gaussian noise, and
    particles that started from source rows are moved until they have the same sketch. A network and
    a classifier on top of it are then trained on the labelled source rows, while the squared sliced
    Wasserstein distance between both domains, and that between the means of their classes, as the
    classifier sees them, are kept small in the representation [1]_. All of that is post-processing:
    it costs no privacy, however long it takes.

    `transform` is one map of rows, for both domains::

        make_pipeline(DPSWDDomainAdapter(), LogisticRegression()).fit(
            X_source, y_source, dpswddomainadapter__X_target=X_target
        )

    Parameters
    ----------
    %(privacy)s
    bounds : None or (lower, upper), default=None
        Bounds of the features, numbers or arrays of shape (n_features,), to which rows of both
        domains are clipped. None: the least and the greatest value in the source.
    sampler : generator, default=None
        What learns synthetic target rows: a generator of this library, by ``fit(X)`` and
        ``sample(n)``. It is cloned, and gets the adapter's budget (`epsilon`, `delta`, `relation`
        and `accountant`), `random_state`, `device`, `verbose` and `strict`; another `epsilon`,
        `delta`, `relation` or `random_state` of its own is refused. What it has of `bounds`,
        `clip_norm`, `init` and `encoder` and leaves at their defaults follows from the source: the
        adapter's bounds; the 0.9-quantile of the norms of source rows, after `bounds` and the
        encoder; source rows; and an encoder by sizes. Of up to 64 columns there is none. Of more,
        it is 64 principal components of the target, which are paid for, if there are 1000 target
        rows; else 32 of the source, which cost nothing. For ``network="conv28"``, those of the
        target are in the 14×14 lowest frequencies. None: a `DPSWFlowSampler`.
    network : {"mlp", "conv28"} or callable, default="mlp"
        The representation: ``"mlp"``, two layers, of rows that are standardised by the source;
        ``"conv28"``, two convolutions, of 28×28 grey images in [0, 1]. A factory takes the number
        of features and `n_components`, and returns a torch module; by ``unit_input = True`` it says
        that it wants features in [0, 1]. It maps each row on its own.
    n_components : int, default=None
        Columns of the representation. None: 50, or 1280 for ``"conv28"``.
    n_projections : int, default=200
        Directions on which the domains are compared at each step.
    align_weight : float, default=0.1
        Weight of the squared sliced distance, summed over the columns of the representation.
    class_align_weight : float, default=0.1
        Weight of the squared distance between the means of the classes.
    n_steps : int, default=None
        Steps. None: 20 times through the source, or 50 times if its images are changed at random,
        within [200, 6000].
    batch_size : int, default=128
        Rows a step from each domain.
    learning_rate : float, default=0.002
        Of Adam.
    augment : "auto", None, "affine" or callable, default="auto"
        How rows of both domains, which are public or synthetic, are changed at random at each step.
        ``"affine"``: square grey images are turned, scaled, sheared and shifted a little. A
        function takes a tensor of rows, as the network gets them, and a torch generator.
        ``"auto"``: ``"affine"`` for ``network="conv28"``, else None.
    %(running)s

    Attributes
    ----------
    %(adapted)s
    sigma_ : float or None
        Standard deviation of the noise on what the sampler releases; None without a target.
    target_sampler_ : generator or None
        What makes synthetic target rows, by ``target_sampler_.sample(n)``; None without a target.
    %(n_features_in_)s
    %(feature_names_in_)s
    n_iter_ : int
        Steps that were made.
    loss_curve_ : list of float
        Loss of each step, on source rows and synthetic ones.

    Notes
    -----
    Nothing of a target row is used but what the certificate lists. Where the sampler has a method
    ``project``, as a `DPSWFlowSampler` has, domains are compared by rows without what its release
    has not seen of the target's, and the classifier learns from source rows of both kinds.
    Algorithm 2 of [1]_, as far as it is sound, is `DPSWDRowAdapter`.

    **Pipelines.** Earlier steps are fitted on the source, and see the source only: `X_target` is
    handed to this step as it was given. Put the adapter first, or ask for the same public maps of
    the target by ``Pipeline(..., transform_input=["X_target"])``, with metadata routing on. Such
    maps must treat each row on its own.

    **Searches.** `PrivateSearch` has one price for all candidates. Else every fit pays anew: a
    grid search over c candidates and f folds costs as much as c·f + 1 fits, which an open
    `PrivacyBudget` adds up. A target of as many rows as X would be sliced by fold; wrap it in
    `Whole`. Scores on folds of the source are public.

    References
    ----------
    .. [1] Rakotomamonjy & Ralaivola, "Differentially Private Sliced Wasserstein Distance", ICML
       2021.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from skdpgen import DPSWDDomainAdapter
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=400)
    >>> X = rng.normal(size=(400, 2)) + np.c_[4 * y, 0 * y]
    >>> X_target = X[:, ::-1] + 1.0
    >>> adapter = DPSWDDomainAdapter(epsilon=5.0, delta=1e-4, random_state=0)
    >>> model = make_pipeline(adapter, LogisticRegression())
    >>> model = model.fit(X, y, dpswddomainadapter__X_target=X_target)
    >>> model.predict(X_target).shape, bool(adapter.epsilon_ <= 5.0)
    ((400,), True)
    """

    sampler: object = None
    class_align_weight: float = 0.1
    augment: object = "auto"

    _checks = {
        "sampler": _check_sampler,
        "class_align_weight": in_range(),
        "augment": _check_augment,
    }

    def _check_params(self):
        super()._check_params()
        if self.sampler is None:
            return
        self.sampler._check_params()
        said_of_sampler = self.sampler.get_params(deep=False)
        for name in said_of_sampler.keys() & set(_SAID_ONCE) - _left_open(self.sampler):
            said, own = said_of_sampler[name], getattr(self, name)
            if not _is_same(said, own):
                raise ValueError(
                    f"sampler has {name}={said!r}, and the adapter {own!r}: say it of the adapter, "
                    "which hands it on."
                )

    @property
    def free_parameters(self):
        """Names of the parameters that act on synthetic rows; others can be tried for nothing."""
        return set(self.get_params(deep=False)) - {"sampler", "bounds", *SAID_OF_ALL}

    def _list_certified(self):
        sampler = self.target_sampler_
        if sampler is None:
            yield from super()._list_certified()
            return
        # It is the sampler, with its parameters, that has spent something.
        yield "n_target_", self.n_target_, sampler.n_samples_
        for name in (field.name for field in fields(Certificate)):
            if name not in _OWN:
                own, certified = getattr(self.privacy_, name), getattr(sampler.privacy_, name)
                yield f"{name} of target_sampler_", own, certified

    def _find_sigma(self):
        return self.target_sampler_.sigma_

    def event_function(self, n_features, n_classes, n_target):
        # Shares of a sketch and of components add up to one Gaussian release.
        return gaussian_event

    def fit_to_sampler(self, X, y, sampler):
        """Learn a representation of the source and of what a sampler has learnt of a target.

        This costs nothing but what the sampler has cost, whose certificate is taken over.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Public rows of the source.
        y : array-like of shape (n_samples,)
            Their labels.
        sampler : generator
            Fitted to rows of the target, as another adapter's `target_sampler_` is.

        Returns
        -------
        self : object

        Raises
        ------
        ValueError
            For bad parameters or data.
        """
        with rollback_on_failure(self), plain_numbers(self):
            start = self._start(X, y)
            self.n_target_ = sampler.n_samples_
            return self._train_on_samples(start, sampler)

    def _stay(self, start):
        self.target_sampler_ = None
        return super()._stay(start)

    def _adapt(self, start, X_target):
        sampler = self._make_sampler(start.X, start.bounds, self.n_target_)
        return self._train_on_samples(start, sampler.fit(X_target))

    def _make_sampler(self, X, bounds, n_target):
        """Return the sampler of synthetic target rows, in units that follow from the source."""
        sampler = DPSWFlowSampler() if self.sampler is None else clone(self.sampler)
        left_open = _left_open(sampler)
        said = sampler.get_params(deep=False).keys() & set(SAID_OF_ALL)
        sampler.set_params(**{name: getattr(self, name) for name in said})
        if "bounds" in left_open:
            sampler.set_params(bounds=bounds)
        is_central = isinstance(sampler, CentralGenerator)
        if is_central and "encoder" in left_open:
            sampler.set_params(encoder=self._choose_encoder(sampler, X, bounds, n_target))
        # Bad parameters are found before they are used, and cost nothing.
        preview(sampler, n_target, X.shape[1])
        if is_central and "clip_norm" in left_open:
            public, _ = split_encoder(sampler.encoder)
            format = BoxFormat(X.shape[1], bounds=sampler.bounds, encoder=public)
            norms = np.linalg.norm(format.encode(X), axis=1)
            sampler.set_params(clip_norm=float(np.quantile(norms, 0.9)) or 1.0)
        if "init" in left_open:
            # What the release leaves open stays as it is in the source.
            n_starts = min(len(X), sampler.n_particles or max(_FEWEST, n_target // 2))
            starts = resample(X, replace=False, n_samples=n_starts, random_state=0)
            sampler.set_params(init=starts.astype(np.float32))
        return sampler

    def _choose_encoder(self, sampler, X, bounds, n_target):
        """Return what ``"auto"`` stands for where there is a source."""
        if X.shape[1] <= _FEW_COLUMNS or not sampler._takes_components:
            return None
        if n_target >= _MANY_ROWS:
            if self.network == "conv28":
                return [FrozenEstimator(LowFrequencies(_FREQUENCIES).fit(X)), PrivatePCA()]
            return PrivatePCA()
        components = PCA(min(_SOURCE_COMPONENTS, *X.shape), random_state=0)
        public = make_pipeline(StandardScaler(), components).fit(np.clip(X, *bounds))
        return FrozenEstimator(public)

    def _train_on_samples(self, start, sampler):
        """Train on the source and on synthetic target rows, and take over the certificate."""
        self.target_sampler_, rows = sampler, start.source[0]
        certificate = replace(
            sampler.privacy_, assumptions=(*ASSUMED, *sampler.privacy_.assumptions)
        )
        with report_spent_on_error(lambda: certificate):
            made = sampler.sample(min(_MOST, max(_FEWEST, self.n_target_)))
            target, seen = (self._as_seen(part).to(rows) for part in (made, start.X))
            return self._train(
                start,
                certificate,
                target,
                masked=None if torch.allclose(seen, rows, atol=1e-5) else seen,
                align_weight=self.align_weight,
                class_align_weight=self.class_align_weight,
                n_projections=self.n_projections,
            )

    def _as_seen(self, X):
        """Return what the network reads of rows without what the sampler has not seen."""
        project = getattr(self.target_sampler_, "project", None)
        return self._input(X if project is None else project(X))

    @property
    def _augment(self):
        augment = self.augment
        if isinstance(augment, str) and augment == "auto":
            augment = "affine" if self.network == "conv28" else None
        return AUGMENTATIONS[augment] if isinstance(augment, str) else augment


def _left_open(sampler):
    """Return the names of the parameters that a sampler leaves at their defaults."""
    declared = signature(type(sampler)).parameters
    return {
        name
        for name, value in sampler.get_params(deep=False).items()
        if _is_same(value, declared[name].default)
    }


def _is_same(value, other):
    """Whether values of a parameter are the same; arrays, if they are one."""
    return value is other or (isinstance(value, numbers.Real | str) and value == other)
