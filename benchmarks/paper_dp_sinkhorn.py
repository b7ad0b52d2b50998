"""DP-Sinkhorn: Cao et al., NeurIPS 2021. Images are in 40 private principal components."""

from paper_items import DELTA, absent, case, fit_images, item, run_example

from skdpgen import DPSinkhornGenerator
from skdpgen.losses import SemiDebiasedSinkhorn
from skdpgen.releases import SampledGradients

PAPER = "dp-sinkhorn"


def make_generator(seed, n_steps, batch_size=50, *, epsilon=10.0, perturb="images", **params):
    """Return a generator of images by noisy Sinkhorn gradients."""
    loss = {key: params.pop(key) for key in ("n_debias", "l1_weight", "reg") if key in params}
    return DPSinkhornGenerator(
        epsilon,
        DELTA,
        clip_norm=9 / 28,
        release=SampledGradients(n_steps, batch_size, perturb=perturb),
        loss=SemiDebiasedSinkhorn(**loss),
        encoder="dp-pca",
        network="conv28",
        random_state=seed,
        **params,
    )


absent(PAPER, "figure 1", "Diagram of a training step", "Nothing is measured")


@item(
    PAPER,
    "table 1, figure 2",
    "Synthetic images, ε = 10, m = 1, accuracy of LR · MLP · CNN",
    [
        case("MNIST, 40,000 steps", "79.5 · 80.2 · 83.2", data="mnist", n_steps=40_000, n_debias=0),
        case(
            "Fashion-MNIST, 60,000 steps",
            "73.0 · 72.8 · 70.9",
            data="fashion",
            n_steps=60_000,
            learning_rate=0.0005,
        ),
    ],
)
def generate(seed, data, **params):
    generator = make_generator(seed, **params)
    return fit_images(
        generator, data, f"dp-sinkhorn-{data}", classifiers=("logistic", "mlp", "cnn")
    )


absent(PAPER, "figure 3, table 3", "CelebA", "No CelebA here")


@item(
    PAPER,
    "figure 4a",
    "MNIST, 1,500 steps of 25: accuracy of LR on held-out images by learning rate",
    [
        case(f"{optimizer}, {rate:g}", "a curve", optimizer=optimizer, learning_rate=rate)
        for optimizer, rates in {
            "adam": (0.0003, 0.001, 0.003, 0.01),
            "sgd": (0.01, 0.03, 0.1, 0.3),
        }.items()
        for rate in rates
    ],
)
def vary_rate(seed, **params):
    generator = make_generator(seed, 1500, 25, **params)
    return fit_images(generator, "held out", "dp-sinkhorn-rates")


@item(
    PAPER,
    "figure 4c",
    "scikit-learn's digits: squared bias · variance of gradients by p = n' / n",
    [case(f"p = {index / 5:g}", "curves", index=index) for index in range(6)],
    form=".2f",
    random=False,
)
def find_bias(seed, index):
    example = run_example("plot_sinkhorn_gradients")
    return example["bias"][index], example["variance"][index]


# L1 alone is a weight of 1,000 beside L2², with as much more regularisation.
L1 = {"l1_weight": 1000.0, "reg": 4900.0}


@item(
    PAPER,
    "table 2",
    "Ablation on MNIST, 2,000 steps, accuracy of MLP · CNN",
    [
        case("L2, no debiasing, noise in weights", "79.9 · 80.7", n_debias=0, perturb="parameters"),
        case("L2, no debiasing", "82.0 · 80.8", n_debias=0),
        case("L1, no debiasing", "68.4 · 65.7", n_debias=0, **L1),
        case("L1 + L2, no debiasing", "76.6 · 76.1", n_debias=0, l1_weight=1.0),
        case("L1 + L2, full debiasing", "63.0 · 60.5", n_debias=50, l1_weight=1.0),
        case("L1 + L2, semi-debiasing", "80.2 · 83.2", n_debias=10, l1_weight=1.0),
    ],
)
def ablate(seed, **params):
    generator = make_generator(seed, 2000, **params)
    return fit_images(generator, "mnist", "dp-sinkhorn-ablation", classifiers=("mlp", "cnn"))


item(
    PAPER,
    "figure 4b",
    "MNIST, 2,000 steps, accuracy of MLP · CNN by ε",
    [
        case(f"ε = {epsilon:g}", "a curve", epsilon=epsilon, n_debias=0)
        for epsilon in (1.0, 2.33, 5.0, 10.0)
    ],
)(ablate)
