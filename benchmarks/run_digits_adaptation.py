"""Digits of USPS and of MNIST, one public and labelled, the other private: the adapter and others.

USPS images are scaled up to 28×28 pixels. The target is MNIST's 10,000 test images, or USPS's 7,291
training images. Printed is the accuracy on these, which were adapted to, as in the DP-SWD paper,
and on held-out rows of their domain. "source" is fitted to the source only; "swd" and "dann" look
at raw target rows, without privacy. "both" is the mean of the probabilities of "source" and the
adapter; "chosen" is one of them, by reverse validation::

    SKDPGEN_DATA=folder python benchmarks/run_digits_adaptation.py --source usps --epsilons 1 10
"""

import argparse
import warnings

import torch
from adaptation_peers import add_options, fit_models, list_models
from public_images import load_mnist, load_usps


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--source", choices=["usps", "mnist"], default="usps")
    add_options(parser, epsilons=[10.0], delta=1e-5)
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message="X_target is None")
    models = list_models(options, network="conv28", bounds=(0, 1))
    source, target, held_out = load_domains(options.source)
    print(f"{'':<28}{'target':>9}{'held out':>9}{'seconds':>8}")
    for seed in range(options.seeds):
        for name, model, seconds in fit_models(models, seed, *source, target[0]):
            scores = "".join(f"{model.score(*rows):>9.4f}" for rows in (target, held_out))
            print(f"{f'{name}, seed {seed}':<28}{scores}{seconds:>8.0f}", flush=True)


def load_domains(source):
    """Return images and labels of the source, of the target, and held out of the target."""
    mnist, usps = load_mnist(), load_usps()
    usps_train = scale_up(usps.X_train), usps.y_train
    if source == "usps":
        held_out = mnist.X_train[:10_000], mnist.y_train[:10_000]
        return usps_train, (mnist.X_test, mnist.y_test), held_out
    return (mnist.X_train, mnist.y_train), usps_train, (scale_up(usps.X_test), usps.y_test)


def scale_up(X):
    """Scale flat 16×16 images to 28×28, linearly."""
    images = torch.as_tensor(X).view(-1, 1, 16, 16)
    return torch.nn.functional.interpolate(images, (28, 28), mode="bilinear").flatten(1).numpy()


if __name__ == "__main__":
    main()
