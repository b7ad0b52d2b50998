"""
Auditing what a certificate claims
==================================

A certificate says that ε is at most so much. An audit runs the same code thousands of times, and
shows that ε is at least so much. Where the two are close, there is little room for a fault. Here
an estimator is audited, and then a faulty one, in which the audit finds a violation.
"""

# sphinx_gallery_thumbnail_path = '_static/pictures/plot_audit.png'

from dataclasses import replace
from unittest.mock import patch

from skdpgen import Boolean, Category, DPSWFlowSampler, Number, Schema, audit
from skdpgen.preprocessing import DPPCA
from skdpgen.privacy import NoiseSource, preview

# %%
# A table
# -------
#
# Public facts of the columns are all that an audit needs: it makes records of its own, extreme
# ones among them, and reads no private row. So what it finds may be published.

schema = Schema(
    {
        "age": Number(0, 100, decimals=0),
        "ward": Category(["heart", "lung", "eye"]),
        "smoker": Boolean(),
    }
)
sampler = DPSWFlowSampler(epsilon=1.0, delta=1e-6, schema=schema)
report = audit(sampler, 200, n_runs=2000, random_state=0)
print(report)

# %%
# Several releases
# ----------------
#
# Each release is audited on its own, and then what is shown of them together is held against ε. A
# bar that stays left of the line is within the claim.

pca = DPPCA(n_components=2, epsilon=2.0, delta=1e-6, bounds=(0, 1))
report = audit(pca, 100, 4, n_runs=2000, random_state=0)
print(report)
ax = report.plot()
ax.figure.set_size_inches(6, 2)
ax.figure.tight_layout()

# %%
# A claim that is too low
# -----------------------
#
# The same fit with a certificate of ε = 1, as if somebody had forgotten that a half of the
# budget was spent. The bound exceeds this claim.

low = preview(DPPCA(n_components=2, epsilon=1.0, delta=1e-6, bounds=(0, 1)), 100, 4)
false = replace(report, certificate=low)
print(f"{false.verdict}: ε > {false.bound:.3f}, but ε = {false.claim:.3f} is claimed")

# %%
# Noise that is too small
# -----------------------
#
# A fault in code does not show in its certificate: here noise is drawn with a deviation that is a
# fifth less than what was planned. All computations of ε are as right as ever, and the audit finds
# it. ``skdpgen audit`` ends with exit code 4 then.

draw = NoiseSource.rounded_gaussian


def draw_less(self, scale):
    return draw(self, 0.8 * scale)


with patch.object(NoiseSource, "rounded_gaussian", draw_less):
    report = audit(pca, 100, 4, n_runs=2000, random_state=0)
print(report)
ax = report.plot()
ax.figure.set_size_inches(6, 2)
ax.figure.tight_layout()
