# SPDX-License-Identifier: BSD-3-Clause
"""Gradient descent: Adam, schedules, weight averaging, and stopping at the energy of the noise."""

import contextlib
import copy
import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from torch.optim.swa_utils import update_bn
from tqdm import tqdm


@dataclass(frozen=True)
class TrainingConstants:
    """Constants of the training loop. Those without a source are set by hand, and not tuned."""

    # Decay rates of both moments, and what is added to the root: Kingma & Ba, "Adam", ICLR 2015.
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    # Steps over which the learning rate rises to its full value.
    warm_up: int = 30
    # Steps of the running mean of the loss that is compared with the energy of the noise.
    window: int = 50
    # Length of the last phase, in which the learning rate falls to 0, relative to the steps before.
    cool_down: float = 0.25
    # Prior standard deviation of the share of a class, relative to equal shares.
    prior_std: float = 0.3
    # Batches from which the averaged network takes its statistics of batch normalisation.
    n_batches: int = 20
    # Expected share of the steps until a loss is down to the energy of the noise: .4 to 1 on
    # digits, breast cancer, blobs and USPS.
    share_to_noise: float = 0.5


CONSTANTS = TrainingConstants()


@dataclass
class ShortLoops:
    """Most steps of each training loop of a rehearsal, and what the other steps would take."""

    n_steps: int
    seconds: float = 0.0

    def cut(self, rates: Iterable[float], n_expected: float) -> Iterator[float]:
        """Yield the first rates of a loop that is expected to take so many steps."""
        taken = []
        for rate in itertools.islice(rates, self.n_steps):
            start = time.perf_counter()
            yield rate
            taken.append(time.perf_counter() - start)
        # The first step is slower.
        self.seconds += max(0.0, n_expected - len(taken)) * float(np.median(taken[1:] or [0]))


# Set for the training loops of this thread or task in a rehearsal.
_short: ContextVar[ShortLoops | None] = ContextVar("short loops", default=None)


@contextlib.contextmanager
def shortens_loops(n_steps: int = 1) -> Iterator[ShortLoops]:
    """Let each training loop inside take a few steps, as a rehearsal does."""
    token = _short.set(short := ShortLoops(n_steps))
    try:
        yield short
    finally:
        _short.reset(token)


class Adam:
    """The optimiser Adam, equal to the fused `torch.optim.Adam` with its defaults in every bit.

    The first optimiser of torch in a process imports the compiler of torch, which takes a second
    and 70 MB; this one does not. Parameters are changed in place.
    """

    def __init__(self, parameters: list[torch.Tensor]) -> None:
        self._parameters = parameters
        self._means, self._squares = (list(map(torch.zeros_like, parameters)) for _ in range(2))
        # CUDA's kernel reads single precision, whatever the default is.
        self._n_steps = [torch.zeros((), device=p.device, dtype=torch.float) for p in parameters]

    @torch.no_grad()
    def step(self, gradients: Iterable[torch.Tensor], learning_rate: float) -> None:
        """Take one step along the gradients of all parameters."""
        torch._foreach_add_(self._n_steps, 1)
        torch._fused_adam_(
            self._parameters,
            [_lay_out(g, p) for g, p in zip(gradients, self._parameters, strict=True)],
            self._means,
            self._squares,
            [],
            self._n_steps,
            lr=learning_rate,
            beta1=CONSTANTS.beta1,
            beta2=CONSTANTS.beta2,
            weight_decay=0.0,
            eps=CONSTANTS.epsilon,
            amsgrad=False,
            maximize=False,
        )


def _lay_out(gradient: torch.Tensor, parameter: torch.Tensor) -> torch.Tensor:
    """Return a gradient with the strides of its parameter: the kernel reads memory in order."""
    if gradient.stride() == parameter.stride():
        return gradient
    return torch.empty_like(parameter).copy_(gradient)


class OwnOptimizer:
    """An optimiser of torch, ``factory(parameters, lr=learning_rate)``; see `Adam`."""

    def __init__(self, factory: Callable, parameters: list, learning_rate: float) -> None:
        self._parameters, self._optimizer = parameters, factory(parameters, lr=learning_rate)

    def step(self, gradients: Iterable[torch.Tensor], learning_rate: float) -> None:
        """Take one step along the gradients of all parameters."""
        for parameter, gradient in zip(self._parameters, gradients, strict=True):
            parameter.grad = gradient
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate
        self._optimizer.step()
        self._optimizer.zero_grad()


def list_trained(parameters: Iterable[torch.Tensor]) -> list[torch.Tensor]:
    """Return the parameters that are not frozen, as those of a public decoder can be."""
    return [parameter for parameter in parameters if parameter.requires_grad]


class Descent:
    """Gradient descent, in place, with a warm-up of the learning rate over some steps.

    The optimizer is ``"adam"``, ``"sgd"`` or a factory; see `OwnOptimizer`.
    """

    def __init__(
        self,
        parameters: Iterable[torch.Tensor],
        learning_rate: float,
        optimizer: str | Callable = "adam",
        warm_up: float = CONSTANTS.warm_up,
    ) -> None:
        self._parameters = list_trained(parameters)
        self._learning_rate, self._warm_up = learning_rate, warm_up
        self._optimizer: Adam | OwnOptimizer = Adam(self._parameters)
        if optimizer != "adam":
            factory = torch.optim.SGD if isinstance(optimizer, str) else optimizer
            self._optimizer = OwnOptimizer(factory, self._parameters, learning_rate)
        self._n_steps = 0

    def step(self, loss: torch.Tensor, rate: float) -> torch.Tensor:
        """Descend at a share `rate` of the learning rate; return the loss without its graph."""
        self._n_steps += 1
        rate = min(rate, self._n_steps / self._warm_up)
        gradients = torch.autograd.grad(loss.sum(), self._parameters, materialize_grads=True)
        self._optimizer.step(gradients, self._learning_rate * rate)
        return loss.detach()


class Training(Descent):
    """Gradient descent of a module, in place, with a moving average of its weights.

    `memory` is the weight of the average at each step; it is less during the first steps. Averaging
    is post-processing: it needs no privacy budget.
    """

    def __init__(
        self,
        module: nn.Module,
        learning_rate: float,
        memory: float = 0.999,
        optimizer: str | Callable = "adam",
    ) -> None:
        super().__init__(module.parameters(), learning_rate, optimizer)
        self._memory, self._average = memory, copy.deepcopy(module.train())

    def step(self, loss: torch.Tensor, rate: float) -> torch.Tensor:
        """Descend and update the average; see `Descent.step`."""
        n_before, loss = self._n_steps, super().step(loss, rate)
        # The first weights replace those before training.
        memory = min(self._memory, (1 + n_before) / (10 + n_before)) if n_before else 0.0
        with torch.no_grad():
            averaged = list_trained(self._average.parameters())
            torch._foreach_lerp_(averaged, self._parameters, 1 - memory)
        return loss

    @torch.no_grad()
    def finish(self, draw: Callable[[], torch.Tensor]) -> Any:
        """Return the averaged module on the CPU, with batch statistics of inputs from `draw`."""
        batches = (draw() for _ in range(CONSTANTS.n_batches))
        update_bn(batches, self._average)
        return self._average.eval().cpu()


def linear_decay(losses: list, n_steps: int, decay: float = 1.0) -> Iterator[float]:
    """Yield a share of the learning rate for each step, which falls to 0 over a last share of them.

    The losses of the steps before are not used here.
    """
    for step in range(n_steps):
        yield min(1.0, (1 - step / n_steps) / decay)


def decay_at_noise(losses: list, n_steps: int, noise_energy: Any) -> Iterator[float]:
    """Yield shares of the learning rate until the loss is down to the energy of the noise.

    The rate is full until the running mean of each part of the losses reaches its energy, or most
    of the `n_steps` are done; then it falls to 0 over a last phase.
    """
    full, last = math.ceil(n_steps / (1 + CONSTANTS.cool_down)), n_steps
    while (step := len(losses)) < last:
        yield min(1.0, (last - step) / max(1, last - full))
        if (step + 1) % CONSTANTS.window == 0 and step < full:
            running = torch.stack(losses[-CONSTANTS.window :]).mean(0)
            if bool((running <= noise_energy).all()):
                full, last = step, step + math.ceil(CONSTANTS.cool_down * step)


def run_steps(
    take_step: Callable[[float], torch.Tensor],
    n_steps: int,
    schedule: Callable[[list, int], Iterable[float]] = linear_decay,
    *,
    label: str = "generator",
    verbose: int = 0,
    n_expected: float | None = None,
) -> list[float]:
    """Run a training loop of at most `n_steps`, and return all losses.

    Parameters
    ----------
    take_step : callable
        Takes the share of the learning rate, makes one step, and returns one or more losses.
    schedule : callable, default=linear_decay
        ``schedule(losses, n_steps)`` yields the share of the learning rate for each step; it can
        read the losses of the steps before.
    label, verbose
        Label of the progress bar, which 1 shows.
    n_expected : float, default=None
        Number of steps that the schedule is expected to yield. None: all.
    """
    losses: list[torch.Tensor] = []
    rates = schedule(losses, n_steps)
    if (short := _short.get()) is not None:
        rates = short.cut(rates, n_expected or n_steps)
    progress = tqdm(rates, desc=f"learning: {label}", total=n_steps, disable=not verbose)
    for rate in progress:
        losses.append(take_step(rate))
        if verbose and len(losses) % CONSTANTS.window == 0:
            progress.set_postfix(loss=f"{losses[-1].mean():.3g}")
    return torch.stack(losses).flatten().tolist()


def descend_to_noise(
    descent: Descent,
    loss: Callable[[], torch.Tensor],
    noise_energy: float | torch.Tensor,
    n_steps: int,
    verbose: int = 0,
    n_expected: float | None = None,
) -> list[float]:
    """Minimise a loss until it is down to the energy of the noise; return the losses.

    The loss is an unbiased estimate of a squared distance to noisy statistics, and the energy their
    mean squared distance from those without noise: a smaller loss would fit the noise. A loss with
    several parts is their sum, and each of them must be down to its energy.
    """
    schedule = partial(decay_at_noise, noise_energy=noise_energy)
    options: dict[str, Any] = {"verbose": verbose}
    options["n_expected"] = n_expected or CONSTANTS.share_to_noise * n_steps
    return run_steps(lambda rate: descent.step(loss(), rate), n_steps, schedule, **options)


def minimize_exactly(module: nn.Module, loss: Callable[[], torch.Tensor], n_steps: int) -> None:
    """Minimise a positive loss that has no sampling error, in place, by L-BFGS of SciPy."""
    parameters = list(module.parameters())
    # SciPy compares gradients with a fixed number.
    unit = 1 / loss().item()

    def evaluate(vector):
        vector_to_parameters(torch.from_numpy(vector).to(parameters[0]), parameters)
        value = unit * loss()
        gradients = torch.autograd.grad(value, parameters, materialize_grads=True)
        return value.item(), parameters_to_vector(gradients).double().cpu().numpy()

    start = parameters_to_vector(parameters).detach().double().cpu().numpy()
    options = {"maxiter": n_steps if (short := _short.get()) is None else short.n_steps}
    found = minimize(evaluate, start, jac=True, method="L-BFGS-B", options=options)
    vector_to_parameters(torch.from_numpy(found.x).to(parameters[0]), parameters)
    for parameter in parameters:
        # Parameters are parts of one vector, all of which would be pickled with each of them.
        parameter.data = parameter.data.clone()


class ClassShares:
    """Shares of the classes among records, estimated from noisy shares by a weighted mean."""

    def __init__(self, n_classes: int) -> None:
        # Equal shares are the prior mean.
        self._total = np.full(n_classes, n_classes / CONSTANTS.prior_std**2)

    def add(self, estimate: np.ndarray, variance: float) -> None:
        """Add an unbiased estimate of the shares, of shape (n_classes,), with its variance."""
        self._total += estimate / variance

    @property
    def mean(self) -> np.ndarray:
        """The shares, an array of shape (n_classes,) with sum 1."""
        shares = np.maximum(self._total, 0) + 1e-3
        return shares / shares.sum()
