"""
Accounting: laws, noise levels and certificates
===============================================

How much noise does a projection on random directions need? This example goes from the law of the
sensitivity to noise levels, and then shows what can be done with certificates.
"""

# sphinx_gallery_thumbnail_path = '_static/pictures/plot_accounting.png'

from functools import partial

import matplotlib.pyplot as plt
import numpy as np
from dp_accounting import (
    GaussianDpEvent,
    NeighboringRelation,
    PoissonSampledDpEvent,
    SampledWithoutReplacementDpEvent,
    SelfComposedDpEvent,
)
from dp_accounting.pld import PLDAccountant

from skdpgen import DPSinkhornGenerator, DPSlicedWassersteinGenerator, PrivacyBudget
from skdpgen.privacy import (
    BudgetExceededError,
    SlicedGaussianDpEvent,
    calibrate_noise,
    compose,
    preview,
    sensitivity_law,
    verify,
)

# %%
# The law of H
# ------------
#
# A record changes its row by z. After a projection on a d × k matrix U of random unit directions
# the change is zᵀU, with squared norm H. U is public and independent of the rows, so the privacy
# loss is an average over the law of H, which is known exactly: for unit z and independent
# directions, H is a sum of k independent Beta(1/2, (d-1)/2) variables. If U stacks orthonormal
# blocks, the mean is the same and the spread is smaller.
#
# `sensitivity_law` gives that law, with values rounded upwards so that the result is safe.

d, k = 784, 1000
delta = 1e-5

fig, ax = plt.subplots(figsize=(7, 3.2))
for orthogonal, label in [(False, "independent directions"), (True, "orthonormal blocks")]:
    law = sensitivity_law(d, k, orthogonal)
    mean = law.values @ law.weights
    std = np.sqrt(np.maximum((law.values - mean) ** 2 @ law.weights, 0))
    print(f"{label}: mean of H {mean:.4f} (k/d = {k / d:.4f}), standard deviation {std:.4f}")
    ax.step(law.values, np.cumsum(law.weights), where="post", label=label)
ax.set(xlabel="H / ‖z‖²", ylabel="probability", xlim=(1.0, 1.6))
ax.legend()
fig.tight_layout()

# %%
# Bernstein's inequality, used with a failure probability of δ/2 by Rakotomamonjy & Ralaivola
# (2021), gives a single number above H instead of its law:

log = np.log(2 / delta)
bernstein = k / d + 2 / 3 * log + 2 / d * np.sqrt(k * (d - 1) / (d + 2) * log)
print(f"Bernstein bound on H: {bernstein:.2f}")

# %%
# Noise levels
# ------------
#
# The setting of that paper for MNIST: d = 784, k = 1000, 60,000 rows, 100 epochs of batches of 100,
# that is 60,000 steps with sampling rate 1/600; the budget is ε = 10 at δ = 1e-5. σ is given over
# the radius C of the rows. A row changes by at most C under ``zero_out``, and by 2C under
# ``replace_one``: compare numbers under one relation.


def take_steps(sigma, relation):
    step = SlicedGaussianDpEvent(sigma, d, k)
    if relation == "replace_one":
        return SelfComposedDpEvent(SampledWithoutReplacementDpEvent(60_000, 100, step), 60_000)
    return SelfComposedDpEvent(PoissonSampledDpEvent(1 / 600, step), 60_000)


print("accountant   relation      σ / C")
for accountant, relation in [("pld", "replace_one"), ("rdp", "zero_out"), ("pld", "zero_out")]:
    terms = {"accountant": accountant, "relation": relation}
    sigma = calibrate_noise(partial(take_steps, relation=relation), 10, delta, **terms)
    print(f"{accountant:<12} {relation:<12}  {sigma:.3f}")

# %%
# Look before you spend
# ---------------------
#
# `preview` prices a fit from the public shape of the data. No row is needed.

generator = DPSlicedWassersteinGenerator(epsilon=1.0, delta=delta, bounds=(0, 1))
planned = preview(generator, 500, 5)
print(f"ε = {planned.epsilon:.4f}, noise on the sums: σ = {planned.sigma:.2f}")

# %%
# Fit under a budget
# ------------------
#
# Inside ``with budget:`` every fit is charged, and one that would overrun the budget is refused
# before it releases anything.

X = np.random.RandomState(0).uniform(size=(500, 5))
budget = PrivacyBudget(epsilon=1.5, delta=delta)
with budget:
    first = DPSlicedWassersteinGenerator(epsilon=1.0, delta=delta, bounds=(0, 1)).fit(X)
    second = DPSlicedWassersteinGenerator(epsilon=0.8, delta=delta, bounds=(0, 1)).fit(X)
    try:
        DPSlicedWassersteinGenerator(epsilon=1.0, delta=delta, bounds=(0, 1)).fit(X)
    except BudgetExceededError as error:
        print(error)
print(f"Spent: {budget.spent:.4f}")

# %%
# Certificates
# ------------
#
# A certificate holds the events of a fit. It gives ε for any δ, and δ for any ε.

certificate = first.privacy_
print(f"ε at δ = 1e-5: {certificate.epsilon_at(1e-5):.3f}")
print(f"ε at δ = 1e-7: {certificate.epsilon_at(1e-7):.3f}")
print(f"δ at ε = 0.5:  {certificate.delta_at(0.5):.1e}")

# %%
# Two fits on the same rows are priced together by `compose`. The sum of the two ε would be 1.8.

together = compose(first.privacy_, second.privacy_)
print(f"ε of both fits: {together.epsilon:.4f}")

# %%
# A certificate travels as JSON. `verify` computes ε again from the events, and refuses a file that
# states less than they cost. It shows that the arithmetic is right, not that the fit took place.

text = together.to_json()
print(f"verified: {verify(text):.4f}")
try:
    verify(text.replace(f'"epsilon": {together.epsilon}', '"epsilon": 0.1'))
except ValueError as error:
    print(error)

# %%
# Recomputed by others
# --------------------
#
# dp-accounting knows most events. The gradients of `DPSinkhornGenerator` are a function whose
# range has a known diameter; under ``zero_out`` that is a `GaussianDpEvent`.

generator = DPSinkhornGenerator(epsilon=3.0, delta=delta, bounds=(0, 1), clip_norm=1.0)
planned = preview(generator, 5000, 64)
(steps,) = planned.events
rate, multiplier = steps.event.sampling_probability, steps.event.event.noise_multiplier
step = PoissonSampledDpEvent(rate, GaussianDpEvent(multiplier))
accountant = PLDAccountant(NeighboringRelation.REPLACE_SPECIAL).compose(step, steps.count)
print(f"certificate {planned.epsilon:.4f}, dp-accounting {accountant.get_epsilon(delta):.4f}")

# %%
# Opacus computes the same by privacy random variables, if it is installed:

try:
    from opacus.accountants import PRVAccountant
except ImportError:
    print("pip install opacus")
else:
    prv = PRVAccountant()
    prv.history = [(multiplier, rate, steps.count)]
    print(f"Opacus {prv.get_epsilon(delta, eps_error=1e-3):.4f}")

# %%
# The noise of any other event at a target ε:


def make_event(noise_multiplier):
    step = PoissonSampledDpEvent(rate, GaussianDpEvent(noise_multiplier))
    return SelfComposedDpEvent(step, steps.count)


print(f"{calibrate_noise(make_event, 3.0, delta):.4f}, planned {multiplier:.4f}")
