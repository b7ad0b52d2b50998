"""
Bias and variance of Sinkhorn gradients
=======================================

Cao et al. (2021) train generators by noisy gradients of a semi-debiased Sinkhorn loss. This is what
semi-debiasing trades, their Figure 4c on a small scale: scikit-learn's digits.
"""

# sphinx_gallery_thumbnail_path = '_static/pictures/plot_sinkhorn_gradients.png'

import matplotlib.pyplot as plt
import numpy as np
import torch
from sklearn.datasets import load_digits

from skdpgen.transport import entropic_wasserstein

# %%
# A generator draws n + n' rows. The loss compares n of them with n real rows, and with n generated
# rows of which n' are new. At n' = n both samples are independent, and the gradient is unbiased. At
# n' = 0 a sample is compared with itself: that has less variance, but expects another gradient.
#
# Here the generator is a linear map of a normal code, fitted to the moments of the digits, and the
# gradient is that in the map. 400 of them are taken for each n'.

N, N_REPEATS = 50, 400
rng = torch.Generator().manual_seed(0)
real = torch.as_tensor(load_digits().data / 16)
_, singular, axes = torch.linalg.svd(real - real.mean(0), full_matrices=False)
weights = (singular[:8, None] / len(real) ** 0.5 * axes[:8]).requires_grad_()


def draw_gradient(n_debias):
    codes = torch.randn(N + n_debias, 8, generator=rng, dtype=torch.float64)
    Y = real[torch.randint(len(real), (N,), generator=rng)]
    made = real.mean(0) + codes @ weights
    cross, debiasing = (
        entropic_wasserstein(made[:N], other, reg=0.5, tol=1e-2) for other in (Y, made[n_debias:])
    )
    loss = 2 * cross - debiasing
    return torch.autograd.grad(loss, weights)[0].flatten()


sizes = np.arange(0, N + 1, 10)
gradients = [torch.stack([draw_gradient(n) for _ in range(N_REPEATS)]) for n in sizes]
means = torch.stack([g.mean(0) for g in gradients])
variance = np.array([g.var(0).sum() for g in gradients])
# Squared difference of means of finitely many gradients, on average, without any bias.
chance = (variance + variance[-1]) / N_REPEATS
bias = ((means - means[-1]).square().sum(1).numpy() - chance).clip(0)

fig, ax = plt.subplots(figsize=(5, 3.5), layout="constrained")
ax.plot(sizes / N, bias, marker="o", label="squared bias")
ax.plot(sizes / N, variance, marker="s", label="variance")
ax.set(xlabel="n' / n", ylabel="of the gradient", ylim=(0, None))
ax.legend()
print("squared bias", bias.round(2), "variance", variance.round(2))
plt.show()

# %%
# The first new rows take most of the bias away. The variance hardly grows here, unlike in the
# paper: the real sample has the most of it.
