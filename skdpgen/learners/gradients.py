"""Learner: a network that descends noisy gradients of the semi-debiased Sinkhorn loss.

What reads private rows here is `CrossGradient`, a public function, and only where a mechanism
applies it behind the curator's door.
"""

import warnings

import torch
from sklearn.exceptions import ConvergenceWarning
from torch import nn
from torch.func import functional_call
from tqdm import tqdm

from ..privacy import ClippedGradientMechanism
from ..privacy.mechanisms.gradients import clip_whole
from ..transport import sinkhorn_plan
from .training import Training

__all__ = ["CrossGradient", "SinkhornLoss", "fit_to_gradients"]

# Of the plans; the gradient is clipped and noised far above this.
_TOL = 1e-2
_N_ITER = 100
# Numbers of a difference x - y of all pairs of rows that are held at once.
_CHUNK = 2**21


class SinkhornLoss:
    """The semi-debiased Sinkhorn loss of rows with labels, by its gradients.

    ``2 Ŵ(X[:n], Y) - Ŵ(X[:n], X[n':])`` (Definition 4.3 of [1]_), where Ŵ is the cost of the
    entropic plan, and the cost of two rows is ``L2² + l1_weight L1`` of the rows, each joined with
    `label_weight` times the one-hot of its class. As in [1]_, plans are fixed when gradients are
    taken.

    Parameters
    ----------
    reg, l1_weight, label_weight : float
        In the units of rows that are multiplied by `scale`.
    scale : float, default=1.0
        What rows are multiplied by before they are compared.
    debias : bool, default=True
        False: without the second term.
    balance : bool, default=True
        Give each class of real rows the weight that it has among the generated ones.

    References
    ----------
    .. [1] Cao, Bie, Vahdat, Fidler & Kreis, "Don't Generate Me: Training Differentially Private
       Generative Models with Sinkhorn Divergence", NeurIPS 2021.
    """

    def __init__(self, reg, l1_weight, label_weight, scale=1.0, debias=True, balance=True):
        self.reg = reg
        self.l1_weight = l1_weight
        self.label_weight = label_weight
        self.scale = scale
        self.debias = debias
        self.balance = balance

    def cross(self, made, codes, rows, membership):
        """Return the gradient of 2 Ŵ(made, rows) in `made`, and which of `made` have a part in it.

        Parameters
        ----------
        made : tensor of shape (n, n_columns)
        codes : tensor of shape (n,)
            Classes of generated rows.
        rows : tensor of shape (n_slots, n_columns)
        membership : tensor of shape (n_slots, n_classes)
            One-hot classes; zeros where there is no row.

        Returns
        -------
        gradient : tensor of shape (n, n_columns)
        active : tensor of bool of shape (n, 1)
            With `balance`, rows of a class without real rows are left out.
        """
        joined = membership.any(1)
        rows, real = rows[joined].to(made), membership[joined].argmax(1)
        gradient = torch.zeros_like(made)
        active = torch.ones(len(made), dtype=torch.bool, device=made.device)
        b = None
        if self.balance:
            n_classes = membership.shape[1]
            wanted, found = (torch.bincount(c, minlength=n_classes) for c in (codes, real))
            active = (found > 0)[codes]
            # Classes that are not generated would otherwise be transported to others.
            kept = (wanted > 0)[real]
            if not active.any():
                return gradient, active[:, None]
            rows, real = rows[kept], real[kept]
            b = (wanted / found.clamp(min=1))[real].to(made) / active.sum()
        gradient[active] = 2 * self._pull(made[active], codes[active], rows, real, b)[0]
        return gradient, active[:, None]

    def apart(self, made, codes, n_debias):
        """Return the gradient of ``-Ŵ(made[:n], made[n':])`` in all n + n' rows."""
        gradient = torch.zeros_like(made)
        if self.debias:
            n = len(made) - n_debias
            left, right = self._pull(made[:n], codes[:n], made[n_debias:], codes[n_debias:])
            gradient[:n] -= left
            gradient[n_debias:] -= right
        return gradient

    def _pull(self, X, x_codes, Y, y_codes, b=None):
        """Return the gradients of Ŵ(X, Y) at its plan, in X and in Y."""
        X, Y = X * self.scale, Y * self.scale
        origin = Y.mean(0)
        A, B = X - origin, Y - origin
        cost = (A.square().sum(1)[:, None] + B.square().sum(1) - 2 * (A @ B.T)).clamp_(min=0)
        if self.l1_weight:
            cost += self.l1_weight * torch.cdist(X, Y, p=1)
        if self.label_weight:
            # ‖w e_c - w e_k‖² + l1_weight·‖w e_c - w e_k‖₁
            apart = 2 * self.label_weight**2 + self.l1_weight * 2 * self.label_weight
            if self.balance:
                # No mass has to change its class, and none does where that costs more than rows
                # can gain. Plans of costs that spread less are found sooner.
                apart = min(apart, cost.max().item() + 10 * self.reg)
            cost += apart * (x_codes[:, None] != y_codes)
        with warnings.catch_warnings():
            # A plan that is nearly there will do, and is no news at each of many steps.
            warnings.simplefilter("ignore", ConvergenceWarning)
            plan = sinkhorn_plan(cost, self.reg, b=b, n_iter=_N_ITER, tol=_TOL)
        in_x = 2 * (plan.sum(1, keepdim=True) * X - plan @ Y)
        in_y = 2 * (plan.sum(0)[:, None] * Y - plan.T @ X)
        if self.l1_weight:
            sign_x, sign_y = _sum_signs(plan, X, Y)
            in_x += self.l1_weight * sign_x
            in_y += self.l1_weight * sign_y
        return in_x * self.scale, in_y * self.scale


def _sum_signs(plan, X, Y):
    """Return Σ_j π_ij sign(x_i - y_j) and Σ_i π_ij sign(y_j - x_i), chunk by chunk."""
    in_x, in_y = torch.empty_like(X), torch.zeros_like(Y)
    size = max(1, _CHUNK // max(1, Y.numel()))
    for start in range(0, len(X), size):
        part = slice(start, start + size)
        signs = torch.sign(X[part, None] - Y)
        in_x[part] = torch.bmm(plan[part, None], signs)[:, 0]
        in_y -= torch.einsum("ij,ijd->jd", plan[part], signs)
    return in_x, in_y


class CrossGradient:
    """The gradient of the loss in the first n generated rows, as a function of a real batch.

    Parameters
    ----------
    loss : SinkhornLoss
    made : tensor of shape (n, n_columns)
        Generated rows, fixed.
    codes : tensor of shape (n,)
        Their classes.
    apart : tensor of shape (n, n_columns)
        What the debiasing term adds, which reads no private row.
    encode : callable
        Maps real rows to columns as generated ones have.
    """

    def __init__(self, loss, made, codes, apart, encode):
        self.loss, self.made, self.codes, self.apart = loss, made, codes, apart
        self.encode = encode

    def __call__(self, rows, membership):
        rows = self.encode(rows)
        gradient, active = self.loss.cross(self.made, self.codes, rows, membership)
        return gradient + self.apart * active


class WeightGradient:
    """The gradient in the weights of a network, as a function of a real batch.

    Parameters
    ----------
    function : CrossGradient
        The gradient in the first n rows that the network makes.
    apart : tensor of shape (n', n_columns)
        The gradient in the others.
    network : torch.nn.Module
        Weights and statistics are kept as they are now.
    latent : tensor
        What rows are made of.
    """

    def __init__(self, function, apart, network, latent):
        self.function, self.apart, self.network, self.latent = function, apart, network, latent
        self.weights = {k: v.detach().clone() for k, v in network.named_parameters()}
        self.statistics = {k: v.clone() for k, v in network.named_buffers()}

    def __call__(self, rows, membership):
        gradient = torch.cat([self.function(rows, membership), self.apart])
        weights = {k: v.clone().requires_grad_() for k, v in self.weights.items()}
        statistics = {k: v.clone() for k, v in self.statistics.items()}
        with torch.enable_grad():
            made = functional_call(self.network, weights | statistics, (self.latent,))
        pulled = torch.autograd.grad(made, list(weights.values()), gradient)
        return nn.utils.parameters_to_vector(pulled)


class NoisyDescent(Training):
    """Adam or SGD, with a warm-up and a moving average of the weights.

    Parameters
    ----------
    rows : RowNetwork
    learning_rate, memory
        As in `Training`.
    optimizer : {"adam", "sgd"}
    """

    def __init__(self, rows, learning_rate, memory, optimizer):
        super().__init__(rows, learning_rate, memory)
        if optimizer == "sgd":
            self._optimizer = torch.optim.SGD(rows.parameters())


@torch.inference_mode(False)
@torch.enable_grad()
def fit_to_gradients(
    rows,
    loss,
    release,
    *,
    n_steps,
    n_generated,
    n_debias,
    grad_clip,
    shares,
    perturb,
    optimizer,
    learning_rate,
    decay,
    averaging,
    generator,
    verbose=0,
):
    """Train a network by noisy gradients: Algorithm 1 of the DP-Sinkhorn paper.

    Parameters
    ----------
    rows : RowNetwork
        To be trained, in place, on its device.
    loss : SinkhornLoss
    release : callable
        Returns the `NoisyGradient` of a `ClippedGradientMechanism`.
    n_steps : int
        Number of releases.
    n_generated, n_debias : int
        Sizes n and n' of the generated batch, which never follow that of the real one.
    grad_clip : float
        Radius of the gradients.
    shares : ndarray of shape (n_classes,)
        How often each class is generated.
    perturb : {"images", "parameters"}
        What is released: the gradient in the generated rows, or in the network's weights.
    optimizer, learning_rate, decay, averaging
        Adam or SGD; its learning rate, after a warm-up; the share of the steps, the last ones,
        over which it falls to 0; the memory of the moving average of the weights.
    generator : torch.Generator
        Where codes come from.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    rows : RowNetwork
        With averaged weights, on the CPU and in evaluation mode.
    """
    training = NoisyDescent(rows, learning_rate, averaging, optimizer)
    n, weights = n_generated, list(rows.parameters())

    def draw():
        codes = _stratified(shares, n, generator)
        # A debiasing row has the class of the row that it stands in for.
        codes = torch.cat([codes, codes[:n_debias]])
        return codes.to(rows.spread.device), rows.draw(codes, generator)

    for step in tqdm(range(n_steps), desc="generator", disable=not verbose):
        codes, latent = draw()
        made = rows(latent)
        fixed = made.detach()
        apart = loss.apart(fixed, codes, n_debias)
        function = CrossGradient(loss, fixed[:n], codes[:n], apart[:n], rows.encode)
        if perturb == "images":
            noisy = release(ClippedGradientMechanism(function, (n, made.shape[1]), grad_clip)).value
            # No private row has a part in the debiasing block: it is clipped only.
            noisy = torch.cat([torch.as_tensor(noisy).to(made), clip_whole(apart[n:], grad_clip)])
            # Back-propagation of what was released is post-processing.
            pull = (made * noisy).sum()
        else:
            function = WeightGradient(function, apart[n:], rows, latent)
            size = sum(weight.numel() for weight in weights)
            noisy = torch.as_tensor(
                release(ClippedGradientMechanism(function, (size,), grad_clip)).value
            )
            flat = nn.utils.parameters_to_vector(weights)
            pull = (flat * noisy.to(flat)).sum()
        left = 1 - step / n_steps
        training.step(pull, left / decay if left < decay else 1.0)
    return training.finish(lambda: draw()[1])


def _stratified(shares, size, generator):
    """Draw classes, each as often as its share says, up to less than 1, in random order."""
    edges = torch.as_tensor(shares, dtype=torch.float64).cumsum(0)
    offset = torch.rand(1, generator=generator, dtype=torch.float64)
    places = (torch.arange(size, dtype=torch.float64) + offset) / size * edges[-1]
    codes = torch.searchsorted(edges, places, right=True).clamp(max=len(shares) - 1)
    return codes[torch.randperm(size, generator=generator)]
