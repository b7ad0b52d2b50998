"""Office-Caltech10, all pairs of domains: source only, adapted privately, adapted with raw rows.

Seven tenths of each target domain are adapted to; printed is the accuracy on these, as in the
DP-SWD paper, and on the rest. "raw rows" is the same network, aligned with the target rows
themselves by the same loss: not private. "chosen" is either the private model or the one of the
source only, by reverse validation (Ganin et al., JMLR 2016, section 5.1.2): the one whose guesses
of the classes of synthetic target rows teach a classifier more of the source. That asks for no
target labels, and costs nothing. A row of the table is a mean over seeds::

    SKDPGEN_DATA=folder python benchmarks/run_office_adaptation.py --features surf --epsilons 10
"""

import argparse
import itertools
import json
import warnings

import numpy as np
from dp_accounting import NonPrivateDpEvent
from sklearn.model_selection import train_test_split

from skdpgen.adaptation import DPSWDDomainClassifier, reverse_validation_score
from skdpgen.datasets import load_office_caltech
from skdpgen.privacy import Certificate


class RawRows:
    """The target itself, where a sampler of synthetic rows is expected."""

    privacy_ = Certificate((NonPrivateDpEvent(),), ("raw rows",))

    def fit(self, X):
        self.X = X
        return self

    def sample(self, n_samples):
        return self.X

    def _project(self, X):
        return X


class RawClassifier(DPSWDDomainClassifier):
    def _make_sampler(self, X, bounds, n_target):
        return RawRows()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--features", nargs="+", default=["surf", "googlenet", "decaf6", "effnet_lite0"]
    )
    parser.add_argument("--epsilons", type=float, nargs="+", default=[10.0])
    parser.add_argument("--delta", type=float, default=1e-3)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--params", nargs="*", default=[], help="of the classifier: name=number")
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message="There is no X_target")
    params = {
        name: json.loads(value) for name, value in (text.split("=") for text in options.params)
    }
    methods = {"source only": None, "raw rows": RawClassifier}
    for features in options.features:
        data = load_office_caltech(features)
        print(f"{features:<24}" + "".join(f"{m:>18}" for m in methods), end="")
        print("".join(f"{f'eps = {e:g}':>18}{'chosen':>18}" for e in options.epsilons))
        figures = []
        for source, target in itertools.permutations(data.domains, 2):
            scores = [
                run(data[source], data[target], seed, options, params)
                for seed in range(options.seeds)
            ]
            figures.append(np.mean(scores, axis=0))
            show(f"{source} to {target}", figures[-1])
        show("mean", np.mean(figures, axis=0))


def run(source, target, seed, options, params):
    """Return accuracies on rows adapted to, and held out, of each method."""
    X_target, X_held, y_target, y_held = train_test_split(
        target.X, target.y, train_size=0.7, random_state=0, stratify=target.y
    )
    params = {"delta": options.delta, "random_state": seed, **params}
    alone = DPSWDDomainClassifier(**params).fit(source.X, source.y)
    models = [alone, RawClassifier(**params).fit(source.X, source.y, X_target=X_target)]
    for epsilon in options.epsilons:
        adapted = DPSWDDomainClassifier(epsilon, **params).fit(
            source.X, source.y, X_target=X_target
        )
        synthetic = adapted.target_sampler_.sample(1000)
        chosen = max(
            [alone, adapted],
            key=lambda m: reverse_validation_score(m, source.X, source.y, synthetic),
        )
        models += [adapted, chosen]
    return [[m.score(X_target, y_target), m.score(X_held, y_held)] for m in models]


def show(name, figures):
    cells = "".join(f"{f'{target:.3f} / {held:.3f}':>18}" for target, held in figures)
    print(f"{name:<24}{cells}", flush=True)


if __name__ == "__main__":
    main()
