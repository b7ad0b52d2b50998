"""DPSWflow: Sebag et al., 2023."""

from functools import cache, partial

import numpy as np
import ot
from autoencoder import fit_autoencoder
from networks import dpswgen
from paper_items import DELTA, case, item, load, run_example, score_images
from sklearn.neural_network import MLPClassifier

from skdpgen import DPSlicedWassersteinGenerator, DPSWFlowSampler
from skdpgen.transport import sliced_wasserstein_distance

PAPER = "dpswflow"


@item(
    PAPER,
    "figure 1",
    "Five Gaussians in the plane: sliced distance to the rows, ε = ∞ · 3",
    [case(name, "pictures", name=name) for name in ("resample", "presample", "sketch")],
    form=".3f",
)
def flow(seed, name):
    example = run_example("plot_flow")
    release, distances = example["METHODS"][name], []
    for epsilon in example["EPSILONS"]:
        sampler = DPSWFlowSampler(
            epsilon,
            DELTA,
            release=release,
            n_particles=1500,
            n_steps=200 if name == "sketch" else None,
            random_state=seed,
        ).fit(example["X"])
        distances.append(
            sliced_wasserstein_distance(example["X"], sampler.sample(2000), random_state=0)
        )
    return distances


@cache
def fit_public(name):
    """Fit an autoencoder and a classifier to the public half; return it, and the private codes."""
    data = load(name)
    half = len(data.X_train) // 2
    X, y = data.X_train[:half], data.y_train[:half]
    autoencoder = fit_autoencoder(X, n_components=8, seed=0)
    classifier = MLPClassifier((64,), max_iter=10, random_state=0).fit(X, y)
    return autoencoder, classifier, autoencoder.apply_to(data.X_train[half:], autoencoder.encode)


_flow = partial(DPSWFlowSampler, n_particles=3000)
METHODS = {
    "DPSWgen": partial(DPSlicedWassersteinGenerator, release="rows", network=dpswgen),
    "DPSWflow-r": partial(_flow, release="resample"),
    "DPSWflow": partial(_flow, release="presample"),
    "sketch": _flow,
}
# FID at ε = ∞, 10 and 5.
PUBLISHED = {
    ("mnist", "DPSWgen"): "114 124 198",
    ("mnist", "DPSWflow-r"): "21 70 114",
    ("mnist", "DPSWflow"): "73 118 171",
    ("mnist", "sketch"): "– – –",
    ("fashion", "DPSWgen"): "138 170 199",
    ("fashion", "DPSWflow-r"): "42 88 98",
    ("fashion", "DPSWflow"): "96 98 129",
    ("fashion", "sketch"): "– – –",
}


@item(
    PAPER,
    "table 1, figure 2, figure 3, figure 4",
    "Fréchet distance · accuracy of LR; the paper's FID is of Inception",
    [
        case(f"{data}, ε = {epsilon:g}, {name}", fid, data=data, name=name, epsilon=epsilon)
        for (data, name), fids in PUBLISHED.items()
        for epsilon, fid in zip((float("inf"), 10.0, 5.0), fids.split(), strict=True)
    ],
)
def learn_codes(seed, data, name, epsilon):
    """Return the Fréchet distance to test images in a public classifier's hidden layer, and LR."""
    autoencoder, classifier, codes = fit_public(data)
    images = load(data)
    model = METHODS[name](epsilon, DELTA, classes=range(10), random_state=seed)
    Z, y = model.fit(codes, images.y_train[-len(codes) :]).sample(10_000)
    X = autoencoder.apply_to(Z, autoencoder.decode)

    def features(X):
        return np.maximum(X @ classifier.coefs_[0] + classifier.intercepts_[0], 0)

    made, real = features(X), features(images.X_test)
    moments = made.mean(0), real.mean(0), np.cov(made.T), np.cov(real.T)
    distance = ot.gaussian.bures_wasserstein_distance(*moments) ** 2
    return distance, *score_images((X, y), images, f"{data}-{epsilon:g}-{name}")
