"""Learners: a network whose rows match a slice sketch, or released slices of rows, step by step.

They see releases only, never rows.
"""

import math

import numpy as np
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, update_bn
from tqdm import tqdm

from ..privacy.mechanisms import clip_rows
from ..transport import wasserstein_1d

__all__ = [
    "ClassShares",
    "Descent",
    "RowNetwork",
    "Shares",
    "Training",
    "descend_to_noise",
    "fit_to_rows",
    "fit_to_sketch",
    "moments_gap",
    "read_sketch",
]

# The running mean of the loss, which decides when to stop, is over so many steps.
_WINDOW = 50
_WARM_UP = 30
# Length of the last phase, in which the learning rate falls to 0, relative to what went before.
_COOL_DOWN = 0.25
# Weight of the second moments, where they are known, beside the slices of single rows.
_MOMENTS_WEIGHT = 3.0
# Before anything is known, a class is as frequent as the others up to this share of it.
_PRIOR_STD = 0.3


class RowNetwork(nn.Module):
    """A generator network with what turns its outputs into rows.

    Parameters
    ----------
    network : torch.nn.Module
        Maps (n, latent_dim + n_classes) codes to (n, n_outputs).
    n_classes, latent_dim : int
        Widths of the one-hot class and of the Gaussian code.
    spread : tensor of shape (n_encoded,)
        Scale of encoded rows, by which outputs are multiplied.
    unit : float, default=None
        For networks whose outputs are features in [0, 1]: their scale in a row.

    Attributes
    ----------
    components : None or PrincipalComponents
        The linear encoder, once it is known, if there is one.
    """

    def __init__(self, network, n_classes, latent_dim, spread, unit=None):
        super().__init__()
        self.network = network
        self.n_classes = n_classes
        self.latent_dim = latent_dim
        self.register_buffer("spread", spread)
        self.components = None
        self.unit = unit

    def set_components(self, components):
        """Give encoded rows in components, unless those are None."""
        if components is not None:
            self.components = components
            self.spread = components.spread

    def forward(self, codes):
        """Map codes to encoded rows, as the sketch sees them."""
        outputs = self.network(codes)
        if self.unit is None:
            return outputs * self.spread
        # Records are clipped, too.
        return self.encode(clip_rows(outputs * self.unit, 1.0))

    def encode(self, rows):
        """Encode rows in the unit ball as those that `forward` makes."""
        return rows if self.components is None else self.components.encode(rows)

    def draw(self, classes, generator):
        """Draw codes for an array of classes; on the CPU, so that every device gets the same."""
        latent = torch.randn(
            len(classes), self.latent_dim, generator=generator, dtype=torch.float32
        )
        one_hot = nn.functional.one_hot(classes, self.n_classes)
        return torch.cat([latent, one_hot.to(latent.dtype)], dim=1).to(self.spread.device)

    @torch.no_grad()
    def sample(self, classes, generator):
        """Return rows in the unit ball's units, an array of shape (n, n_columns).

        What a network puts outside the span of the components is dropped: the sketch has not seen
        it, so nothing was learnt about it.
        """
        rows = self(self.draw(classes, generator))
        if self.components is not None:
            rows = self.components.decode(rows)
        return rows.double().cpu().numpy()


@torch.inference_mode(False)
@torch.enable_grad()
def fit_to_sketch(
    rows, basis, sketch, *, n_steps, rows_per_class, learning_rate, generator, verbose=0
):
    """Train a network until what it makes has the sketch, up to the sketch's noise.

    Parameters
    ----------
    rows : RowNetwork
        To be trained, on the device of `basis`.
    basis : SliceBasis
    sketch : skdpgen.privacy.Sketch
    n_steps, rows_per_class : int
        Largest number of steps; generated rows of each class at a step.
    learning_rate : float
        Of Adam, after a warm-up and before a linear decay.
    generator : torch.Generator
        Where codes come from.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    rows : RowNetwork
        With averaged weights, on the CPU and in evaluation mode.
    losses : list of float
        The estimated distance to the noisy sketch at each step.
    """
    means, weights, noise_energy = read_sketch(basis, sketch)
    classes = torch.arange(len(means)).repeat_interleave(rows_per_class)

    training = Training(rows, learning_rate, memory=0.99)

    def loss():
        made = rows(rows.draw(classes, generator)).unflatten(0, (len(means), rows_per_class))
        return basis.squared_distance(made, means, weights)

    losses = descend_to_noise(training, loss, noise_energy.sum(), n_steps, verbose)
    return training.finish(lambda: rows.draw(classes, generator)), losses


def read_sketch(basis, sketch):
    """Return what a learner needs of a sketch.

    Returns
    -------
    means : tensor of shape (n_classes, B, 2, k)
        Noisy mean values of the basis over each class.
    weights : tensor of shape (n_classes,)
        ‖n_c·E φ - S_c‖² over a common scale is Σ weight_c ‖E φ - mean_c‖²: noise is the same on
        all sums.
    noise_energy : ndarray of shape (n_classes,)
        What the noise adds to weight_c ‖E φ - mean_c‖² / k, on average.
    """
    counts = np.maximum(sketch.counts, max(sketch.counts_std, 1.0))
    weights = (counts / counts.mean()) ** 2
    noise_energy = weights * basis.n_values / basis.n_projections * (sketch.sums_std / counts) ** 2
    as_tensor = {"dtype": basis.dtype, "device": basis.frequencies.device}
    means = torch.tensor(sketch.sums / counts[:, None], **as_tensor)
    means = means.view(len(counts), -1, 2, basis.n_projections)
    return means, torch.tensor(weights, **as_tensor), noise_energy


def descend_to_noise(training, loss, noise_energy, n_steps, verbose=0):
    """Train until the loss is down to the energy of the noise, and no further.

    Parameters
    ----------
    training : Training
    loss : callable
        Returns an unbiased estimate of a squared distance to something noisy.
    noise_energy : float
        The mean squared distance of the noisy thing from the one without noise.
    n_steps : int
        Largest number of steps.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    losses : list of float
    """
    losses = []
    # Full speed until the noise level is reached, or most steps are made; then a cool-down.
    cooling, last = math.ceil(n_steps / (1 + _COOL_DOWN)), n_steps
    with tqdm(total=n_steps, desc="generator", disable=not verbose) as progress:
        while len(losses) < last:
            step = len(losses)
            losses.append(training.step(loss(), min(1.0, (last - step) / max(1, last - cooling))))
            progress.update()
            if (step + 1) % _WINDOW == 0 and step < cooling:
                running = torch.stack(losses[-_WINDOW:]).mean().item()
                progress.set_postfix(loss=f"{running:.3g}", noise=f"{noise_energy:.3g}")
                if running <= noise_energy:
                    cooling, last = step, step + math.ceil(_COOL_DOWN * step)
    return torch.stack(losses).tolist()


@torch.inference_mode(False)
@torch.enable_grad()
def fit_to_rows(
    rows, mechanism, release, *, n_steps, batch_size, learning_rate, generator, verbose=0
):
    """Train a network by the smoothed sliced distance to fresh releases of projected rows.

    Generated rows are joined with their classes, projected, padded and noised as records are. The
    loss is the mean W₂² over the slices of each class, summed over the classes: Algorithm 1 of the
    DP-SWD paper. Noise hides how projections vary much more than how they are on average; where
    components are at hand, so are the second moments of the rows, which are matched as well.

    Parameters
    ----------
    rows : RowNetwork
        To be trained, in place, on its device.
    mechanism : SlicedRows
        What is released.
    release : callable
        Returns the next `ProjectedRows`.
    n_steps, batch_size : int
        Releases; generated rows a step, as many as records are expected.
    learning_rate : float
        Of Adam, after a warm-up; it decays linearly to 0.
    generator : torch.Generator
        Where codes and the generated rows' noise come from.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    rows : RowNetwork
        With averaged weights, on the CPU and in evaluation mode.
    shares : ndarray of shape (n_classes,)
        Estimated shares of the classes.
    losses : list of float
        The smoothed distance at each step.
    """
    device = rows.spread.device
    moments = None if rows.components is None else rows.spread.square().diag()
    training = Training(rows, learning_rate, memory=0.999)
    shares, losses = ClassShares(mechanism, batch_size), []
    for step in tqdm(range(n_steps), desc="generator", disable=not verbose):
        released = release()
        classes = _draw_classes(shares.update(released), max(2, batch_size), generator)
        made = rows(rows.draw(classes, generator))
        real = torch.as_tensor(released.values, dtype=made.dtype, device=device)
        loss = (
            wasserstein_1d(_project(made, classes, mechanism, released, generator), real).sum()
            / real.shape[1]
        )
        if moments is not None:
            gap = moments_gap(made, moments)
            loss = loss + _MOMENTS_WEIGHT / len(released.directions) * gap.sum()
        losses.append(training.step(loss, 1 - step / n_steps))
    classes = _draw_classes(shares.mean, max(2, batch_size), generator)
    averaged = training.finish(lambda: rows.draw(classes, generator))
    return averaged, shares.mean, torch.stack(losses).tolist()


class Shares:
    """Shares of the classes among records, estimated from noisy ones.

    Parameters
    ----------
    n_classes : int
    """

    def __init__(self, n_classes):
        self._total = np.full(n_classes, n_classes / _PRIOR_STD**2)

    def add(self, estimate, variance):
        """Take in an unbiased estimate of the shares, with its variance."""
        self._total += estimate / variance

    @property
    def mean(self):
        """The shares, an array of shape (n_classes,) with sum 1."""
        shares = np.maximum(self._total, 0) + 1e-3
        return shares / shares.sum()


class ClassShares(Shares):
    """Shares of the classes among records, estimated from releases of sliced rows.

    Parameters
    ----------
    mechanism : SlicedRows
    batch_size : int
        Expected records a release.
    """

    def __init__(self, mechanism, batch_size):
        super().__init__(mechanism.n_classes)
        self._mechanism = mechanism
        self._batch_size = batch_size

    def update(self, released):
        """Take in a release, and return the shares."""
        (d, k), n_slots = released.directions.shape, released.values.shape[2]
        # Of the noise, and of which records are drawn.
        variance = (released.std * n_slots / self._batch_size / self._mechanism.label_weight) ** 2
        variance = variance * d / k / n_slots + 0.25 / self._batch_size
        estimate = self._mechanism.class_shares(released) * n_slots / self._batch_size
        self.add(estimate, variance)
        return self.mean


def moments_gap(rows, moments):
    """Estimate the squared differences between the second moments of rows and given ones.

    The product of two independent estimates has no bias from their variance.
    """
    half = len(rows) // 2
    first, second = (
        part.T @ part / half - moments for part in (rows[:half], rows[half : 2 * half])
    )
    return first * second


def _draw_classes(shares, size, generator):
    return torch.multinomial(torch.as_tensor(shares), size, True, generator=generator)


def _project(made, classes, mechanism, released, generator):
    """Project generated rows, pad and noise them as the released ones are."""
    n_classes, _, n_slots = released.values.shape
    classes = classes[:n_slots]
    one_hot = nn.functional.one_hot(classes, n_classes).to(made)
    joined = mechanism.join(made[:n_slots], one_hot)
    projected = one_hot.T.unsqueeze(1) * (released.directions.to(made).T @ joined.T)
    noise = torch.randn(released.values.shape, generator=generator, dtype=made.dtype)
    padded = nn.functional.pad(projected, (0, n_slots - len(classes)))
    return padded + noise.to(made.device) * released.std


class Descent:
    """Adam with a warm-up."""

    def __init__(self, parameters, learning_rate):
        self._learning_rate = learning_rate
        self._optimizer = torch.optim.Adam(parameters)
        self._n_steps = 0

    def step(self, loss, rate):
        """Descend at a share `rate` of the learning rate; return the loss."""
        self._n_steps += 1
        rate = min(rate, self._n_steps / _WARM_UP)
        self._optimizer.param_groups[0]["lr"] = self._learning_rate * rate
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()
        return loss.detach()


class Training(Descent):
    """Also keeps a moving average of a module's weights, which needs no privacy budget."""

    def __init__(self, rows, learning_rate, memory):
        super().__init__(rows.parameters(), learning_rate)
        self._rows = rows.train()

        def moving_average(averaged, current, n_averaged):
            # Shorter at the start.
            return torch.lerp(current, averaged, min(memory, (1 + n_averaged) / (10 + n_averaged)))

        self._average = AveragedModel(rows, avg_fn=moving_average)

    def step(self, loss, rate):
        loss = super().step(loss, rate)
        self._average.update_parameters(self._rows)
        return loss

    @torch.no_grad()
    def finish(self, draw):
        """Return the averaged network, with batch statistics of its own, on what `draw` gives."""
        update_bn((draw() for _ in range(20)), self._average)
        return self._average.module.eval().cpu()
