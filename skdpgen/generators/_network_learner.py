"""A learner: a network whose rows match a slice sketch. It sees releases only, never rows."""

import math

import numpy as np
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, update_bn
from tqdm import tqdm

__all__ = ["RowNetwork", "fit_to_sketch"]

# The running mean of the loss, which decides when to stop, is over so many steps.
_WINDOW = 50
_WARM_UP = 30
# Length of the last phase, in which the learning rate falls to 0, relative to what went before.
_COOL_DOWN = 0.25


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
    components : PrincipalComponents, default=None
        The linear encoder, if there is one.
    unit : float, default=None
        For networks whose outputs are features in [0, 1]: their scale in a row.
    """

    def __init__(self, network, n_classes, latent_dim, spread, components=None, unit=None):
        super().__init__()
        self.network = network
        self.n_classes = n_classes
        self.latent_dim = latent_dim
        self.register_buffer("spread", spread)
        self.components = components
        self.unit = unit

    def forward(self, codes):
        """Map codes to encoded rows, as the sketch sees them."""
        outputs = self.network(codes)
        if self.unit is None:
            return outputs * self.spread
        rows = outputs * self.unit
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
    device = basis.frequencies.device
    counts = np.maximum(sketch.counts, max(sketch.counts_std, 1.0))
    # ‖n_c·E φ - S_c‖², over a common scale: noise is the same on all sums.
    weights = (counts / counts.mean()) ** 2
    noise_energy = np.sum(weights * basis.n_values / basis.n_projections / counts**2)
    noise_energy *= sketch.sums_std**2
    means = torch.tensor(sketch.sums / counts[:, None], dtype=basis.dtype, device=device)
    means = means.view(len(counts), -1, 2, basis.n_projections)
    weights = torch.tensor(weights, dtype=basis.dtype, device=device)
    classes = torch.arange(len(counts)).repeat_interleave(rows_per_class)

    average = AveragedModel(rows, avg_fn=_moving_average)
    optimizer = torch.optim.Adam(rows.parameters())
    losses = []
    rows.train()
    # Full speed until the noise level is reached, or most steps are made; then a cool-down.
    cooling, last = math.ceil(n_steps / (1 + _COOL_DOWN)), n_steps
    with tqdm(total=n_steps, desc="generator", disable=not verbose) as progress:
        while len(losses) < last:
            step = len(losses)
            rate = min(1.0, (step + 1) / _WARM_UP, (last - step) / max(1, last - cooling))
            optimizer.param_groups[0]["lr"] = learning_rate * rate
            made = rows(rows.draw(classes, generator)).unflatten(0, (len(counts), rows_per_class))
            loss = basis.squared_distance(made, means, weights)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            average.update_parameters(rows)
            losses.append(loss.detach())
            progress.update()
            if (step + 1) % _WINDOW == 0 and step < cooling:
                running = torch.stack(losses[-_WINDOW:]).mean().item()
                progress.set_postfix(loss=f"{running:.3g}", noise=f"{noise_energy:.3g}")
                if running <= noise_energy:
                    cooling, last = step, step + math.ceil(_COOL_DOWN * step)
    with torch.no_grad():
        # Batch statistics are those of the averaged weights.
        update_bn((rows.draw(classes, generator) for _ in range(20)), average)
    return average.module.eval().cpu(), torch.stack(losses).tolist()


def _moving_average(averaged, current, n_averaged):
    """Exponential moving average, shorter at the start."""
    return torch.lerp(current, averaged, min(0.99, (1 + n_averaged) / (10 + n_averaged)))
