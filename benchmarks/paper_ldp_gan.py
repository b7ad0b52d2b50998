"""Generative models from privatized data: Reshetova, Chen & Özgür, 2023.

Its ε takes the radius of a ball for its diameter, so that by the library it is about twice as much.
W2 is between 1,000 generated and 1,000 test images, in units of [-1, 1].
"""

import math
from functools import cache, partial

import numpy as np
from dp_accounting import GaussianDpEvent
from paper_items import case, draw_images, item, load
from scipy.optimize import linear_sum_assignment
from scipy.spatial import cKDTree
from torch import nn

from skdpgen import LDPEntropicGAN
from skdpgen.preprocessing import LocalPrivatizer
from skdpgen.privacy import ledger_epsilon
from skdpgen.releases import LocalNoise
from skdpgen.transport import pairwise_cost

PAPER = "ldp-gan"
DELTA = 1e-4

# Public: every curve lies in these balls.
RADIUS = {"laplace": 2**0.5, "gaussian": 1.0}


def make_curve(shape, n_points=4000):
    """Return points along a curve."""
    t = np.linspace(0, 1, n_points)[:, None]
    if shape == "half-circle":
        return np.hstack([np.cos(np.pi * t), np.sin(np.pi * t)])
    if shape == "ellipse":
        return np.hstack([np.cos(2 * np.pi * t), 0.5 * np.sin(2 * np.pi * t)])
    corners = np.array([[1, 1], [-1, 1], [-1, -1], [1, -1], [1, 1]]) * [0.8, 0.6]
    return np.hstack([np.interp(4 * t, np.arange(5), corners[:, i]) for i in range(2)])


@item(
    PAPER,
    "figure 1, figure 6, figure 7",
    "Curves, ε = 5: mean distance of generated points to the curve, entropic · unregularised",
    [
        case(f"{shape}, {mechanism}", "pictures", shape=shape, mechanism=mechanism)
        for shape in ("half-circle", "ellipse", "rectangle")
        for mechanism in RADIUS
    ],
    form=".3f",
)
def learn_curve(seed, shape, mechanism, n_rows=100_000):
    curve, rng = make_curve(shape), np.random.RandomState(seed)
    # Uniformly by length.
    lengths = np.linalg.norm(np.diff(curve, axis=0), axis=1)
    start = rng.choice(len(lengths), n_rows, p=lengths / lengths.sum())
    X = curve[start] + rng.uniform(size=(n_rows, 1)) * (curve[start + 1] - curve[start])
    far = []
    for loss in ("entropic", "wasserstein"):
        gan = LDPEntropicGAN(
            5.0,
            DELTA,
            release=mechanism,
            clip_norm=RADIUS[mechanism],
            loss=loss,
            n_steps=1500,
            latent_dim=2,
            random_state=seed,
        ).fit(X)
        far.append(cKDTree(curve).query(gan.sample(2000))[0].mean())
    return far


def make_small(n_inputs, n_outputs):
    """Return the generator of section 4.5."""
    return nn.Sequential(
        nn.Linear(n_inputs, 500),
        nn.ReLU(),
        nn.Linear(500, 500),
        nn.ReLU(),
        nn.Linear(500, n_outputs),
        nn.Sigmoid(),
    )


make_small.unit_output = True


def find_epsilon(sigma, radius):
    """Return ε of Gaussian noise in a ball, by its diameter."""
    return ledger_epsilon([GaussianDpEvent(sigma / radius)], DELTA, relation="replace_one")


def measure_w2(images):
    """Return W2 between images and test images."""
    cost = pairwise_cost(2 * images, 2 * load("mnist").X_test[:1000].astype(float))
    return math.sqrt(cost[linear_sum_assignment(cost)].mean())


def draw_rows(seed, n_rows):
    """Return random training images."""
    X = load("mnist").X_train
    return X[np.random.RandomState(seed).permutation(len(X))[:n_rows]]


@cache
def learn_images(seed, sigma, loss, n_rows=60_000):
    """Return W2 of what is learnt from images with Gaussian noise."""
    gan = LDPEntropicGAN(
        find_epsilon(sigma, 28),
        DELTA,
        release="gaussian",
        bounds=(0, 1),
        loss=loss,
        batch_size=200,
        n_steps=1000,
        learning_rate=0.001,
        network=make_small,
        latent_dim=2,
        random_state=seed,
    )
    return measure_w2(gan.fit(draw_rows(seed, n_rows)).sample(1000))


@item(
    PAPER,
    "figure 5",
    "MNIST, W2: entropic · unregularised · Sinkhorn divergence",
    [case(f"σ = {sigma}", "a curve", sigma=sigma) for sigma in (1.0, 2.0, 4.0)],
    form=".2f",
)
def vary_noise(seed, sigma):
    losses = ("entropic", "wasserstein", "sinkhorn_divergence")
    return [learn_images(seed, sigma, loss) for loss in losses]


@item(
    PAPER,
    "figure 11",
    "MNIST, σ = 2, W2 by the number of images",
    [case(f"{n:,}", "a curve that falls", n_rows=n) for n in (1000, 4000, 15_000, 60_000)],
    form=".2f",
)
def vary_rows(seed, n_rows):
    return learn_images(seed, 2.0, "entropic", n_rows)


# Scales of the noise on pixels in [-1, 1], by the paper's sensitivities: 28² in L1, 28 in L2.
_CLASSICAL = math.sqrt(2 * math.log(1.25 / DELTA))
NOISE = {
    "laplace": lambda epsilon: 2 * epsilon,
    "gaussian": lambda epsilon: find_epsilon(28 * _CLASSICAL / epsilon, 28),
}


def denoise(noised, clean, side=28, n_searched=100):
    """Return images of the inverse wavelet transform of soft-thresholded coefficients.

    As in the paper, the wavelet, its level and the threshold are those that come nearest to clean
    images, which no client could know.
    """
    import pywt

    def apply(images, wavelet, level, threshold):
        images = images.reshape(-1, side, side)
        first, *details = pywt.wavedec2(images, wavelet, mode="periodization", level=level)
        kept = [tuple(pywt.threshold(d, threshold, "soft") for d in three) for three in details]
        made = pywt.waverec2([first, *kept], wavelet, mode="periodization")[:, :side, :side]
        return made.reshape(len(images), -1).clip(-1, 1)

    few, target = noised[:n_searched], clean[:n_searched]
    scale = few.std()
    settings = [
        (wavelet, level, factor * scale)
        for wavelet in ("haar", "db2", "sym4", "bior2.2")
        for level in (1, 2, 3)
        for factor in (0.5, 1.0, 1.5, 2.0, 3.0, 5.0)
    ]
    best = min(settings, key=lambda s: np.linalg.norm(apply(few, *s) - target, axis=1).mean())
    return apply(noised, *best)


@item(
    PAPER,
    "figure 8, figure 2",
    "MNIST, 15,000 images, W2: WGAN · wavelets and WGAN · entropic WGAN · denoised images",
    [
        case(f"{mechanism}, ε = {epsilon}", "pictures", mechanism=mechanism, epsilon=epsilon)
        for mechanism, epsilon in (
            ("laplace", 1568),
            ("laplace", 196),
            ("gaussian", 1568),
            ("gaussian", 41),
        )
    ],
    form=".2f",
)
def compare_wavelets(seed, mechanism, epsilon):
    # The network and batches of section 4.5, as for Figure 8.
    X = draw_rows(seed, 15_000)
    privatizer = LocalPrivatizer(
        NOISE[mechanism](epsilon), DELTA, mechanism=mechanism, bounds=(0, 1), random_state=seed
    )
    noised = privatizer.fit_transform(X)
    denoised = (denoise(noised, 2 * X - 1) + 1) / 2
    make = partial(
        LDPEntropicGAN,
        math.inf,
        DELTA,
        release=mechanism,
        bounds=(0, 1),
        batch_size=200,
        n_steps=1000,
        learning_rate=0.001,
        network=make_small,
        latent_dim=2,
        random_state=seed,
    )
    fitted = [
        make(loss="wasserstein").fit_privatized(noised, privatizer=privatizer),
        make(loss="wasserstein").fit(denoised),
        make(loss="entropic").fit_privatized(noised, privatizer=privatizer),
    ]
    made = [gan.sample(1000) for gan in fitted] + [denoised[:1000]]
    rows = np.stack([images[:20].reshape(20, 28, 28) for images in made])
    draw_images(rows, f"ldp-gan-{mechanism}-{epsilon}")
    return [measure_w2(images) for images in made]


@item(
    PAPER,
    "figure 3, figure 4, figure 9, figure 10",
    "MNIST in a smaller ball, the paper's ε: W2 · ε by the diameter",
    [
        *(
            case(f"Laplace, ε = {e:g}", "pictures", mechanism="laplace", epsilon=e)
            for e in (65.25, 49, 35, 25)
        ),
        *(
            case(f"Gaussian, ε = {e:g}", "pictures", mechanism="gaussian", epsilon=e)
            for e in (35, 30, 25, 24)
        ),
    ],
    form=".2f",
)
def learn_in_a_ball(seed, mechanism, epsilon):
    # 0.8 of the cosine coefficients become 0; an L1 ball of radius 140, or an L2 ball of radius 20.
    if mechanism == "laplace":
        radius, spent = 140.0, 2 * epsilon
        release = LocalNoise("laplace", basis="dct", keep=0.2)
    else:
        radius, release = 20.0, LocalNoise("gaussian")
        spent = find_epsilon(radius * _CLASSICAL / epsilon, radius)
    gan = LDPEntropicGAN(
        spent,
        DELTA,
        release=release,
        clip_norm=radius,
        bounds=(0, 1),
        image_shape=(28, 28),
        batch_size=400,
        n_steps=300,
        network="conv28",
        latent_dim=100,
        random_state=seed,
    ).fit(load("mnist").X_train)
    made = gan.sample(1000)
    draw_images(made[:40].reshape(2, 20, 28, 28), f"ldp-gan-ball-{mechanism}-{epsilon:g}")
    return measure_w2(made), gan.epsilon_
