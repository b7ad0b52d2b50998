"""
Pipelines, tables and units
===========================

In a scikit-learn pipeline it is common to put a scaler before an estimator. With private rows that
is a leak: ``StandardScaler`` and ``MinMaxScaler`` keep means and extremes of the rows they were
fitted on, without noise. The certificate covers what the generator's ``fit`` released, and nothing
that earlier steps have learnt.

Use steps that learn nothing, and state public bounds instead of a scaler.
"""

# sphinx_gallery_thumbnail_path = '_static/pictures/plot_pipeline.png'

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skdpgen import DPSlicedWassersteinGenerator

# %%
# A table
# -------
#
# Simulated hospital stays: age in years, length of the stay in days, cost. The last two are skewed.
# One row is one stay; each patient has exactly one here. If patients had several, the certificate
# would protect stays, and not patients.

rng = np.random.RandomState(0)
n = 1500
readmitted = rng.binomial(1, 0.3, n)
age = np.clip(rng.normal(55 + 8 * readmitted, 15), 18, 100)
days = rng.lognormal(1.0 + 0.5 * readmitted, 0.6)
cost = 900 * days * rng.lognormal(0.0, 0.3, n)
X = pd.DataFrame({"age": age, "days": days, "cost": cost})
y = pd.Series(readmitted, name="readmitted")

# %%
# A pipeline of public steps
# --------------------------
#
# ``FunctionTransformer`` is fitted to nothing, so the logarithm is public. The bounds hold *after*
# that step; they come from what is known of such tables: age from 18 to 100, stays of up to a year,
# costs of up to a million. Values beyond them are clipped.

lower = np.log1p([18, 0, 0])
upper = np.log1p([100, 365, 1e6])
pipe = make_pipeline(
    FunctionTransformer(np.log1p, inverse_func=np.expm1),
    DPSlicedWassersteinGenerator(epsilon=2.0, delta=1e-5, bounds=(lower, upper), classes=[0, 1]),
)
pipe.fit(X, y)
print(pipe[-1].privacy_)

# %%
# And back
# --------
#
# The last step draws rows in its own units, here logarithms. The steps before it lead back. A frame
# went in, so a frame comes out, and the labels come with it.

X_log, y_synthetic = pipe[-1].sample(1500)
X_synthetic = pipe[:-1].inverse_transform(X_log)
print(X_synthetic.head().round(1))

# %%
# Medians by class, beside those of the simulated rows. Printing the second table would be a leak if
# the rows were private.

print(X_synthetic.groupby(y_synthetic).median().round(1))
print(X.groupby(y).median().round(1))

# %%
# Rows of one class only:

X_log, _ = pipe[-1].sample(y=[1] * 5)
print(pipe[:-1].inverse_transform(X_log).round(1))

# %%
# All columns, in their own units; the real ones are simulated, or they could not be shown.

fig, axes = plt.subplots(1, 3, figsize=(9, 3))
for ax, name in zip(axes, X, strict=True):
    top = X[name].quantile(0.99)
    columns = [np.clip(rows[name], 0, top) for rows in (X, X_synthetic)]
    ax.hist(columns, bins=20, density=True, label=["real", "synthetic"])
    ax.set(title=name, yticks=[])
axes[0].legend()
fig.tight_layout()
