# SPDX-License-Identifier: BSD-3-Clause
"""Domain adaptation by releases of encoded target rows at each step."""

import copy

from dp_accounting import PoissonSampledDpEvent
from torch.nn.modules.batchnorm import _BatchNorm

from ..accounting.events import SlicedGaussianDpEvent, repeat
from ..accounting.plan import repeated_plan
from ..arrays.box import BoxFormat
from ..checks import one_of, positive
from ..curator.curator import open_curator
from ..curator.dataset import Dataset
from ..mechanisms.noise import ASSUMED_OF_DIRECTIONS
from ..mechanisms.sampled import SlicedRowsMechanism
from ..networks import build_encoder
from ..networks.generators import rehearsing
from ..params import parameters, warn_of_delta
from ..planning.fits import list_assumptions
from ._base import ASSUMED, BaseAdapter
from .learner import EncodedRecords, fit_to_released_rows


@parameters
class DPSWDRowAdapter(BaseAdapter):
    """Domain adaptation by noisy projections of encoded target rows at each step.

    This is the sound part of Algorithm 2 of [1]_. The source is public and labelled; the target is
    private, and its labels are not used. A network and a classifier on top of it are trained on the
    source. Each step also encodes a fresh batch of target rows, releases noisy projections of the
    codes, and penalises their squared sliced Wasserstein distance to those of source rows. This
    takes many target rows: `DPSWDDomainAdapter`, which makes a single release, needs fewer, and its
    training is free.

    Parameters
    ----------
    %(privacy)s
    %(running)s
    bounds : None or (lower, upper), default=None
        Bounds of the features, numbers or arrays of shape (n_features,), to which rows of both
        domains are clipped. None: the least and the greatest value in the source.
    network : {"mlp", "conv28"} or callable, default="mlp"
        The representation, as in `DPSWDDomainAdapter`. It must map each row on its own: batch
        normalisation raises ValueError.
    n_components : int, default=None
        Columns of the representation. None: 50, or 1280 for ``"conv28"``.
    n_projections : int, default=200
        Directions per step on which encoded rows are released.
    align_weight : float, default=0.1
        Weight of the squared sliced distance, summed over the columns of the representation, which
        is scaled so that most source rows are in the unit ball.
    n_steps : int, default=None
        Private steps, after three tenths as many on the source alone. None: n_target / 20, within
        30 to 1000. Without a target, steps on the source; None: 20 epochs, within 200 to 6000.
    batch_size : int, default=128
        Rows per step; for the target, their expected number.
    learning_rate : float, default=0.002
        Learning rate of Adam.
    target_gradient : {"dp-sgd", "none"}, default="dp-sgd"
        Whether to release also the gradient that passes through target rows, clipped for each
        record and noised, for half of the budget.
    grad_clip : float, default=1.0
        Clipping norm of a record's contribution to that gradient.

    Attributes
    ----------
    %(adapted)s
    sigma_ : float or None
        Standard deviation of the noise on each projection of an encoded row in the unit ball; None
        without a target.
    %(n_features_in_)s
    %(feature_names_in_)s
    n_iter_ : int
        Number of releases; without a target, of steps.
    loss_curve_ : list of float
        Loss of each step, on source rows and released projections.

    Notes
    -----
    Algorithm 2 of [1]_ publishes a gradient that passes through raw target features, and scales
    rows by the largest norm in a private batch. Neither is a post-processing of noisy projections.
    Here rows are scaled by a quantile of the norms of encoded source rows, and that gradient is
    released, or not used.

    References
    ----------
    .. [1] Rakotomamonjy & Ralaivola, "Differentially Private Sliced Wasserstein Distance", ICML
       2021.

    Examples
    --------
    >>> import numpy as np
    >>> from skdpgen.adaptation import DPSWDRowAdapter
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(2, size=400)
    >>> X = rng.normal(size=(400, 2)) + np.c_[4 * y, 0 * y]
    >>> adapter = DPSWDRowAdapter(
    ...     epsilon=5.0, delta=1e-4, n_components=8, n_projections=20, random_state=0
    ... ).fit(X, y, X_target=X[:, ::-1] + 1.0)
    >>> adapter.transform(X).shape, adapter.privacy_.releases
    ((400, 8), ('sliced rows',))
    """

    target_gradient: str = "dp-sgd"
    grad_clip: float = 1.0

    _checks = {"target_gradient": one_of("dp-sgd", "none"), "grad_clip": positive()}

    priced_parameters = frozenset(
        ("network", "n_components", "n_projections", "n_steps", "batch_size", "target_gradient")
    )

    def _adapt(self, start, X_target):
        # Warnings and errors come before the curator opens the rows.
        warn_of_delta(self.delta, self.n_target_)
        n_columns, n_target = self._n_features_out, self.n_target_
        self.n_iter_ = self._n_private_steps(n_target)
        plan = repeated_plan(
            SlicedRowsMechanism.name,
            lambda multiplier: self._step_event(multiplier, n_columns, n_target),
            self.n_iter_,
            self.epsilon,
            self.delta,
            relation=self.relation,
            accountant=self.accountant,
            sensitivity=SlicedRowsMechanism.sensitivity_of(self.relation),
        )
        format = BoxFormat(start.X.shape[1], bounds=start.bounds)
        with open_curator(
            Dataset(X_target),
            format,
            plan,
            start.noise,
            strict=self.strict,
            device=start.source[0].device,
            verbose=self.verbose,
        ) as curator:
            self.loss_curve_ = fit_to_released_rows(
                start.encoder,
                start.head,
                start.source,
                curator.release,
                lambda rows: self._input.of_unit(rows / format.unit),
                align_weight=self.align_weight,
                n_steps=self.n_iter_,
                batch_size=round(self._rate(n_target) * n_target),
                learning_rate=self.learning_rate,
                beside=self._beside(n_columns),
                grad_clip=self.grad_clip,
                generator=start.noise.torch_generator(),
                verbose=self.verbose,
            )
            assumed = list_assumptions(format)
            certificate = curator.certificate((*ASSUMED, *assumed, ASSUMED_OF_DIRECTIONS))
            return self._finish(start, certificate)

    def _rehearse(self, encoder, rows):
        # One row would change the codes of all others: the sensitivity of their sum is then not
        # bounded.
        if any(isinstance(module, _BatchNorm) for module in encoder.modules()):
            raise ValueError(
                "network has batch normalisation, which mixes private rows; use GroupNorm or none, "
                "or DPSWDDomainAdapter."
            )
        super()._rehearse(encoder, rows)
        # Private rows are mapped one by one, in training mode.
        records = EncodedRecords(copy.deepcopy(encoder).train(), lambda rows: rows, radius=1.0)
        with rehearsing("network"):
            encoded, pull = records(rows[:2])
            if self.target_gradient == "none":
                return
            if not records.weights:
                raise ValueError("network has no weights to train: set target_gradient='none'.")
            if not pull(encoded).isfinite().all():
                raise ValueError("network has a gradient of NaN or infinity at single rows.")

    def _find_sigma(self):
        return self.privacy_.find_sigma(
            SlicedRowsMechanism.name, SlicedRowsMechanism.sensitivity_of
        )

    def event_function(self, n_features, n_classes, n_target):
        # A network is built with seed 0 to learn its width, which is public.
        factory, n_steps = self._factory, self._n_private_steps(n_target)
        n_columns = build_encoder(factory, n_features, self.n_components, n_classes, 0)[2]
        return lambda multiplier: repeat(self._step_event(multiplier, n_columns, n_target), n_steps)

    def _step_event(self, multiplier, n_columns, n_target):
        """Return the event of one release of rows."""
        rate, beside = self._rate(n_target), self._beside(n_columns)
        event = SlicedGaussianDpEvent(
            multiplier, n_columns, self.n_projections, orthogonal=True, beside=beside
        )
        return event if rate == 1 else PoissonSampledDpEvent(rate, event)

    def _beside(self, n_columns):
        # The squared norm of projections is k/d of the row's on average: products get as much.
        return self.n_projections / n_columns if self.target_gradient == "dp-sgd" else 0.0

    def _rate(self, n_target):
        # A rate of more than 1 does not exist: small targets are read as a whole at each step.
        return min(1.0, self.batch_size / n_target)

    def _n_private_steps(self, n_target):
        return self.n_steps or min(1000, max(30, n_target // 20))
