"""Office-Caltech10, all pairs of domains: the adapter beside others.

Seven tenths of each target domain are adapted to; printed is the accuracy on these, as in the
DP-SWD paper, and on the rest. "source" is fitted to the source only; "swd" and "dann" look at raw
target rows, without privacy. "both" is the mean of the probabilities of "source" and the adapter;
"chosen" is one of them, by reverse validation. A row of the table is a mean over seeds::

    SKDPGEN_DATA=folder python benchmarks/run_office_adaptation.py --features surf --epsilons 10
"""

import argparse
import itertools
import warnings

import numpy as np
from adaptation_peers import add_options, fit_models, list_models
from public_images import load_office_caltech
from sklearn.model_selection import train_test_split


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument(
        "--features", nargs="+", default=["surf", "googlenet", "decaf6", "effnet_lite0"]
    )
    add_options(parser, epsilons=[10.0], delta=1e-3)
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message="X_target is None")
    models, seeds = list_models(options), range(options.seeds)
    for features in options.features:
        data = load_office_caltech(features)
        figures = []
        for source, target in itertools.permutations(data.domains, 2):
            scores = [run(data[source], data[target], seed, models) for seed in seeds]
            if not figures:
                print(f"{features:<24}" + "".join(f"{name:>18}" for name in scores[0]))
            figures.append(np.mean([list(score.values()) for score in scores], axis=0))
            show(f"{source} to {target}", figures[-1])
        show("mean", np.mean(figures, axis=0))


def run(source, target, seed, models):
    """Return, by the names of models, accuracies on rows adapted to, and on held-out ones."""
    X_target, X_held, y_target, y_held = train_test_split(
        target.X, target.y, train_size=0.7, random_state=0, stratify=target.y
    )
    return {
        name: [model.score(X_target, y_target), model.score(X_held, y_held)]
        for name, model, _ in fit_models(models, seed, source.X, source.y, X_target)
    }


def show(name, figures):
    cells = "".join(f"{f'{target:.3f} / {held:.3f}':>18}" for target, held in figures)
    print(f"{name:<24}{cells}", flush=True)


if __name__ == "__main__":
    main()
