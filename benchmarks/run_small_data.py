"""Every estimator on few rows: 1,347 digits, with defaults, bounds and classes.

Logistic regression is trained on 2,000 synthetic rows and tested on 450 real ones. Chance is 0.1::

    python benchmarks/run_small_data.py --seeds 3
"""

import argparse
import time
import warnings

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skdpgen import (
    DPAFGenerator,
    DPSinkhornGenerator,
    DPSlicedWassersteinGenerator,
    DPSWFlowSampler,
    LDPEntropicGAN,
)
from skdpgen.evaluation import train_on_synthetic_score

parser = argparse.ArgumentParser()
parser.add_argument("--seeds", type=int, default=1)
parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0, 3.0, 10.0])
args = parser.parse_args()

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=0.25, random_state=0, stratify=y
)
print(f"real rows: {train_on_synthetic_score(X_train, y_train, X_test, y_test):.3f}")
warnings.simplefilter("ignore")
for kind in (
    DPSWFlowSampler,
    DPSlicedWassersteinGenerator,
    DPSinkhornGenerator,
    DPAFGenerator,
    LDPEntropicGAN,
):
    for epsilon in args.epsilons:
        for seed in range(args.seeds):
            generator = kind(epsilon=epsilon, bounds=(0, 16), classes=range(10), random_state=seed)
            start = time.perf_counter()
            generator.fit(X_train, y_train)
            seconds = time.perf_counter() - start
            rows, labels = generator.sample(2000)
            score = train_on_synthetic_score(rows, labels, X_test, y_test)
            print(
                f"{kind.__name__:30s} ε = {epsilon:<4g} seed {seed}: {score:.3f}, {seconds:.0f} s"
            )
