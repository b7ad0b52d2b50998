# SPDX-License-Identifier: BSD-3-Clause
"""Training: networks of rows, descents with averaged weights, and when to stop."""

import math

import numpy as np
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, update_bn
from tqdm import tqdm

from ..mechanisms.base import clip_rows
from ..registry import savable

# The running mean of the loss, which decides when it is down to the noise, is over so many steps.
WINDOW = 50
_WARM_UP = 30
# Length of the last phase, in which the learning rate falls to 0, relative to what went before.
_COOL_DOWN = 0.25
# Before anything is known, a class is as frequent as the others up to this share of it.
_PRIOR_STD = 0.3


@savable
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
            if (step + 1) % WINDOW == 0 and step < cooling:
                running = torch.stack(losses[-WINDOW:]).mean().item()
                progress.set_postfix(loss=f"{running:.3g}", noise=f"{noise_energy:.3g}")
                if running <= noise_energy:
                    cooling, last = step, step + math.ceil(_COOL_DOWN * step)
    return torch.stack(losses).tolist()


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


def moments_gap(rows, moments):
    """Estimate the squared differences between the second moments of rows and given ones.

    The product of two independent estimates has no bias from their variance.
    """
    half = len(rows) // 2
    first, second = (
        part.T @ part / half - moments for part in (rows[:half], rows[half : 2 * half])
    )
    return first * second


_OPTIMIZERS = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}


class Descent:
    """Adam, or another optimiser, with a warm-up."""

    def __init__(self, parameters, learning_rate, optimizer="adam"):
        self._learning_rate = learning_rate
        self._optimizer = _OPTIMIZERS[optimizer](parameters)
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


class _AllSeen(Exception):
    """All batch norms have seen a batch."""


class _UpToStatistics(nn.Module):
    """Runs a module until its batch norms have seen a batch: of wide tables, half of the work."""

    def __init__(self, module):
        super().__init__()
        self._module = module

    def forward(self, batch):
        unseen = {
            part
            for part in self._module.modules()
            if isinstance(part, nn.modules.batchnorm._BatchNorm)
        }

        def cross_out(norm, *_):
            unseen.discard(norm)
            if not unseen:
                raise _AllSeen

        hooks = [norm.register_forward_hook(cross_out) for norm in unseen]
        try:
            self._module(batch)
        except _AllSeen:
            pass
        finally:
            for hook in hooks:
                hook.remove()


class Training(Descent):
    """Also keeps a moving average of a module's weights, which needs no privacy budget."""

    def __init__(self, rows, learning_rate, memory, optimizer="adam"):
        super().__init__(rows.parameters(), learning_rate, optimizer)
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
        update_bn((draw() for _ in range(20)), _UpToStatistics(self._average))
        return self._average.module.eval().cpu()
