"""Peers of the adapter, for run_digits_adaptation.py and run_office_adaptation.py.

All are fitted by ``fit(X, y, X_target=...)``, on the adapter's own networks, inputs, augmentation,
optimiser and number of steps, and differ in how they align the domains, and in what of the target
they look at. Only `JLTransport` has another network, on projected rows.
"""

import json
import math
import time
from inspect import signature

import numpy as np
import ot
import torch
from dp_accounting import GaussianDpEvent, NonPrivateDpEvent, PoissonSampledDpEvent
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy, softplus

from skdpgen.accounting.calibration import calibrate_gaussian
from skdpgen.adaptation import DPSWDDomainClassifier, reverse_validation_score
from skdpgen.adaptation._domain_adapter import _Input
from skdpgen.adaptation.learner import _draw, _late_decay, _ramp
from skdpgen.arrays.box import BoxFormat
from skdpgen.arrays.image_layout import ImageLayout
from skdpgen.networks.generators import seeded
from skdpgen.params import warn_of_delta
from skdpgen.planning.fits import list_assumptions
from skdpgen.privacy import (
    Certificate,
    Curator,
    ForwardAggregateMechanism,
    PullingFunction,
    RecordFunction,
    repeated_plan,
)

_NOT_PRIVATE = Certificate((NonPrivateDpEvent(),), ("raw rows",))


def make_discriminator(n_inputs, n_units):
    """Tell domains apart by a hidden layer, or linearly: logits of a row being the target's."""
    if n_units == 0:
        return nn.Linear(n_inputs, 1)
    return nn.Sequential(nn.Linear(n_inputs, n_units), nn.ReLU(), nn.Linear(n_units, 1))


def mean_gradient(losses, network, **options):
    """Return the gradient of the mean of losses in all weights, as one vector."""
    parts = torch.autograd.grad(losses.mean(), network.parameters(), **options)
    # parameters_to_vector wants each part contiguous, which those of channels-last weights are not.
    return torch.cat([part.flatten() for part in parts])


def record_gradients(critic, inputs):
    """Return the gradient of each row's loss in all weights; no row is mapped with another."""
    weights = {name: weight.detach() for name, weight in critic.named_parameters()}

    def loss(weights, row):
        return softplus(-functional_call(critic, weights, (row[None],))).sum()

    # In chunks, which bound the memory.
    gradients = vmap(grad(loss), in_dims=(None, 0), chunk_size=64)(weights, inputs)
    return torch.cat([gradients[name].flatten(1) for name in weights], dim=1)


class SourceClassifier(DPSWDDomainClassifier):
    """Fitted to the source only: it costs nothing."""

    def fit(self, X, y=None, *, X_target=None):
        return super().fit(X, y)


class TwoSources(SourceClassifier):
    """The mean of two fits to the source only: what "both" is to be compared with."""

    def fit(self, X, y=None, *, X_target=None):
        seeds = self.random_state, self.random_state + 1000
        return Both(
            *(SourceClassifier(**self.get_params() | {"random_state": s}).fit(X, y) for s in seeds)
        )


class RawClassifier(DPSWDDomainClassifier):
    """Aligned by the adapter's loss with the target rows themselves: not private."""

    def _make_sampler(self, X, bounds, n_target):
        return _RawRows()


class _RawRows:
    """The target itself, where a sampler of synthetic rows is expected."""

    privacy_ = _NOT_PRIVATE

    def fit(self, X):
        self.X = X
        return self

    def sample(self, n_samples):
        return self.X

    def project(self, X):
        return X


class DANN(DPSWDDomainClassifier):
    """Aligned by a discriminator of domains, whose gradient is reversed [1]_: not private.

    The discriminator reads the representation of raw target rows. The budget is not kept to: the
    certificate says ε = ∞.

    Parameters
    ----------
    epsilon, delta, bounds, network, n_components, n_steps, batch_size, learning_rate, augment, \
grad_clip, random_state
        As in `DPSWDDomainClassifier`; the budget and `grad_clip` matter to `DPDANN` only.
    reversal : float, default=1.0
        Factor of the reversed gradient at the end, which sets in as in [1]_.
    n_units : int, default=100
        Units of the discriminator's hidden layer, as the head has by default; 0: it is linear.

    References
    ----------
    .. [1] Ganin et al., "Domain-Adversarial Training of Neural Networks", JMLR 2016.
    """

    def __init__(
        self,
        epsilon=1.0,
        delta=1e-5,
        *,
        bounds=None,
        network="mlp",
        n_components=None,
        n_steps=None,
        batch_size=128,
        learning_rate=0.002,
        augment="auto",
        grad_clip=1.0,
        random_state=None,
        reversal=1.0,
        n_units=100,
    ):
        super().__init__(
            epsilon,
            delta,
            bounds=bounds,
            network=network,
            n_components=n_components,
            n_steps=n_steps,
            batch_size=batch_size,
            learning_rate=learning_rate,
            augment=augment,
            random_state=random_state,
        )
        self.grad_clip = grad_clip
        self.reversal = reversal
        self.n_units = n_units

    def _adapt(self, start, X_target):
        self.target_sampler_ = None
        with seeded(start.noise.seed()):
            discriminator = make_discriminator(self._n_features_out, self.n_units)
        critic = nn.Sequential(start.encoder, discriminator.to(start.source[0].device))
        self.n_iter_ = self._count_steps(len(start.X))
        generator = start.noise.torch_generator()

        def train(target_gradient):
            self._train_against(critic, start.head, start.source, target_gradient, generator)

        certificate = self._follow(train, critic, X_target, start.bounds, start.noise)
        return self._finish(start, certificate)

    def _train_against(self, critic, head, source, target_gradient, generator):
        """Train all networks; `target_gradient` is that of the critic's mean loss on the target."""
        encoder, discriminator = critic
        optimizer = torch.optim.Adam(
            [*critic.parameters(), *head.parameters()], lr=self.learning_rate
        )
        sizes = [weight.numel() for weight in critic.parameters()]
        self.loss_curve_ = []
        for step, rate in enumerate(_late_decay([], self.n_iter_)):
            optimizer.param_groups[0]["lr"] = self.learning_rate * rate
            reversal = self.reversal * _ramp(step / self.n_iter_)
            rows, labels = _draw(self.batch_size, generator, *source)
            encoded = encoder(self._change(rows, generator))
            loss = cross_entropy(head(encoded), labels)
            of_source = mean_gradient(softplus(discriminator(encoded)), critic, retain_graph=True)
            of_domains = self._limit(of_source) + target_gradient()
            optimizer.zero_grad()
            loss.backward()
            for weight, part in zip(critic.parameters(), of_domains.split(sizes), strict=True):
                part = part.view_as(weight)
                # The discriminator learns of the domains only; the encoder works against it.
                weight.grad = part if weight.grad is None else weight.grad - reversal * part
            optimizer.step()
            self.loss_curve_.append(loss.item())

    def _limit(self, of_source):
        """Return the gradient that source rows have, next to that of target rows."""
        return of_source

    def _follow(self, train, critic, X_target, bounds, noise):
        """Train with the target's gradients, and return the certificate."""
        rows = self._input(X_target).to(next(critic.parameters()).device)
        generator = noise.torch_generator()

        def target_gradient():
            (batch,) = _draw(self.batch_size, generator, rows)
            return mean_gradient(softplus(-critic(self._change(batch, generator))), critic)

        train(target_gradient)
        return _NOT_PRIVATE

    def _change(self, rows, generator):
        augment = self._augment
        return rows if augment is None else augment(rows, generator)


class DPDANN(DANN):
    """DANN, with all that it learns of the target by DP-SGD: private at (`epsilon`, `delta`).

    Target rows matter by the gradients of the discriminator's loss alone. Each step draws a
    Poisson sample of them. A record's gradient, in the weights of the encoder and the
    discriminator, is clipped to `grad_clip` as a whole; their sum is released with Gaussian noise,
    and divided by the expected size of the sample. The reversal comes after the release. Source
    rows and their labels are public, and their gradients without noise. The noise is the least that
    the privacy loss distribution of all steps allows, and 0.5 % more:
    `ForwardAggregateMechanism` also releases the size of the sample, which is not used.

    Nothing is chosen on target rows but by these releases; `score` is not covered, as it is not in
    the adapter.
    """

    def _limit(self, of_source):
        # Longer than what target rows can add up to, it would have all rows called the source's.
        return of_source * (self.grad_clip / of_source.norm().clamp(min=self.grad_clip))

    def _follow(self, train, critic, X_target, bounds, noise):
        n_target, format = len(X_target), BoxFormat(X_target.shape[1], bounds=bounds)
        warn_of_delta(self.delta, n_target)
        rate = min(1.0, self.batch_size / n_target)

        def step(multiplier):
            event = GaussianDpEvent(multiplier)
            return event if rate == 1 else PoissonSampledDpEvent(rate, event)

        plan = repeated_plan(
            ForwardAggregateMechanism.name, step, self.n_iter_, self.epsilon, self.delta
        )
        generator = noise.torch_generator()

        def gradients(rows, membership):
            inputs = self._change(self._input.of_unit(rows / format.unit), generator)
            # Released gradients have norm 1.
            return record_gradients(critic, inputs) / self.grad_clip, None

        mechanism = ForwardAggregateMechanism(
            PullingFunction(gradients), sum(weight.numel() for weight in critic.parameters())
        )
        weight = next(critic.parameters())
        with Curator(
            X_target,
            plan=plan,
            noise=noise,
            prepare=RecordFunction(format.encode),
            device=weight.device,
        ) as curator:

            def target_gradient():
                total = torch.as_tensor(curator.release(mechanism).features[0])
                return total.to(weight) * (self.grad_clip / (rate * n_target))

            train(target_gradient)
            return curator.certificate(
                ("the rows and labels of the source are public", *list_assumptions(format))
            )


class JLTransport:
    """Optimal transport of the source to noisy random projections of target rows [1]_: private.

    Rows of both domains are standardised by the source, and projected by one public Gaussian
    matrix. Projected target rows are clipped to the 0.9-quantile of the source's norms and released
    with Gaussian noise: a record changes one of them. The noise is calibrated by its privacy loss
    distribution, which takes less of it than the bound of Kenthapadi et al., "Privacy via the
    Johnson-Lindenstrauss Transform", 2013. The plan is entropic. Transported source rows, which are
    means of released ones, train the adapter's classifier; new rows are projected without noise.
    Raw target rows are not read after the release, so that the classifier may be handed out.
    `n_dims` and `regularization` were chosen on labels of the target, which favours this method.

    Parameters
    ----------
    epsilon, delta, bounds, n_steps, batch_size, learning_rate, random_state
        As in `DPSWDDomainClassifier`.
    n_dims : int, default=200
        Columns of the projection.
    regularization : float, default=0.05
        Weight of the plan's entropy, relative to the median cost.

    References
    ----------
    .. [1] LeTien, Habrard & Sebban, "Differentially Private Optimal Transport: Application to
       Domain Adaptation", IJCAI 2019.
    """

    target_sampler_ = None
    # Source rows in the plan; others move as their nearest neighbour among these does.
    _n_transported = 2000

    def __init__(
        self,
        epsilon=1.0,
        delta=1e-5,
        *,
        bounds=None,
        n_steps=None,
        batch_size=128,
        learning_rate=0.002,
        random_state=None,
        n_dims=200,
        regularization=0.05,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.n_dims = n_dims
        self.regularization = regularization
        self.rng = np.random.default_rng(random_state)
        self.bounds = bounds
        self.classifier = SourceClassifier(
            n_steps=n_steps,
            batch_size=batch_size,
            learning_rate=learning_rate,
            random_state=random_state,
        )

    def fit(self, X, y, X_target):
        lower, upper = (X.min(axis=0), X.max(axis=0)) if self.bounds is None else self.bounds
        bounds = lower, np.where(upper > lower, upper, lower + 1.0)
        self._input = _Input(X, bounds, True, ImageLayout())
        self._matrix = self.rng.normal(size=(X.shape[1], self.n_dims)) / self.n_dims**0.5
        source = self._project(X)
        target = self._release(self._project(X_target), np.linalg.norm(source, axis=1))
        chosen = self.rng.permutation(len(X))[: self._n_transported]
        plan = ot.da.SinkhornTransport(reg_e=self.regularization, norm="median", max_iter=100)
        plan.fit(Xs=source[chosen], Xt=target)
        self.classifier.fit(plan.transform(Xs=source), y)
        return self

    def _project(self, X):
        return self._input(X).numpy() @ self._matrix

    def _release(self, rows, norms):
        """Return clipped rows with noise, and keep the certificate."""
        if self.epsilon == np.inf:
            self.privacy_ = _NOT_PRIVATE
            return rows
        multiplier, radius = calibrate_gaussian(self.epsilon, self.delta), np.quantile(norms, 0.9)
        event = GaussianDpEvent(multiplier)
        self.privacy_ = Certificate((event,), ("noised projections",), delta=self.delta)
        longest = np.linalg.norm(rows, axis=1, keepdims=True).clip(min=radius)
        return rows * (radius / longest) + self.rng.normal(0, multiplier * radius, rows.shape)

    def predict_proba(self, X):
        return self.classifier.predict_proba(self._project(X))

    def score(self, X, y):
        return self.classifier.score(self._project(X), y)


METHODS = {
    "source": SourceClassifier,
    "two sources": TwoSources,
    "adapter": DPSWDDomainClassifier,
    "swd": RawClassifier,
    "dann": DANN,
    "dp-dann": DPDANN,
    "jl-ot": JLTransport,
}
_PRIVATE = {"adapter", "dp-dann", "jl-ot"}


def add_options(parser, epsilons, delta):
    """Add what both scripts ask for."""
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--epsilons", type=float, nargs="+", default=epsilons)
    parser.add_argument("--delta", type=float, default=delta)
    parser.add_argument("--seeds", type=int, default=3, help="their number, from 0 on")
    parser.add_argument(
        "--params",
        nargs="*",
        default=[],
        metavar="NAME=JSON",
        help="of those of the methods that have them",
    )


def list_models(options, **params):
    """Return, for each method and budget, by name, a function from a seed to an unfitted model."""
    given = {name: json.loads(text) for name, text in (p.split("=", 1) for p in options.params)}
    known = {method: set(signature(METHODS[method]).parameters) for method in options.methods}
    if unknown := set(given) - set().union(*known.values()):
        raise SystemExit(f"No method has the parameters {sorted(unknown)}.")
    params |= given
    models = {}
    for method in filter(options.methods.__contains__, METHODS):
        own = {name: value for name, value in params.items() if name in known[method]}
        for epsilon in options.epsilons if method in _PRIVATE else [math.inf]:
            name = f"{method}, ε = {epsilon:g}" if method in _PRIVATE else method

            def make(seed, method=method, epsilon=epsilon, own=own):
                return METHODS[method](epsilon, options.delta, random_state=seed, **own)

            models[name] = make
    return models


def fit_models(models, seed, X, y, X_target):
    """Fit models one by one; yield the name of each, the model, and the seconds it took.

    After an adapter comes, if there is a model of the source only, what protects from a bad one.
    None of it asks for labels of the target, or costs privacy. "both" is the mean of their
    probabilities; as the mean of any two fits is better than one, compare it with "two sources".
    "chosen" is one of them, by reverse validation (Ganin et al., JMLR 2016, section
    5.1.2): that whose guesses of the classes of synthetic target rows teach a classifier more of
    the source, and the source's if it is a tie.
    """
    source = None
    for name, make in models.items():
        start = time.perf_counter()
        model = make(seed).fit(X, y, X_target=X_target)
        yield name, model, time.perf_counter() - start
        if name == "source":
            source = model
        if name.startswith("adapter") and source and model.target_sampler_:
            yield name.replace("adapter", "both"), Both(source, model), 0.0
            start, synthetic = time.perf_counter(), model.target_sampler_.sample(1000)
            scores = [
                reverse_validation_score(either, X, y, synthetic) for either in (source, model)
            ]
            chosen = model if scores[1] > scores[0] else source
            yield name.replace("adapter", "chosen"), chosen, time.perf_counter() - start


class Both:
    """Two fitted classifiers, by the mean of their probabilities."""

    def __init__(self, *models):
        self.models = models

    def score(self, X, y):
        votes = sum(model.predict_proba(X) for model in self.models)
        return float((self.models[0].classes_[votes.argmax(axis=1)] == y).mean())
