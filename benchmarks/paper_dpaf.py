"""DPAF: Lin et al., 2023, whose ablations are of CelebA; here they are of MNIST."""

from paper_items import DELTA, absent, case, fit_images, item

from skdpgen import DPAFGenerator
from skdpgen.releases import ForwardAggregates

PAPER = "dpaf"


def fit(seed, data="mnist", epsilon=10.0, layers=None, **release):
    """Return the accuracy × 100 of a network that saw synthetic images."""
    generator = DPAFGenerator(
        epsilon,
        DELTA,
        release=ForwardAggregates(**{"n_steps": 40, "batch_size": 500} | release),
        discriminator_layers=layers,
        random_state=seed,
    )
    title = f"dpaf-{data}-{epsilon:g}-{layers}-{release}"
    return fit_images(generator, data, title, n_images=12_000, classifiers=("cnn",))


absent(
    PAPER,
    "figure 1, figure 2, figure 3, figure 4, figure 5",
    "Sketches of the aggregation, the architecture and the training",
    "Nothing is measured",
)


item(
    PAPER,
    "table 1",
    "Synthetic images, accuracy of CNN",
    [
        case(f"{data}, ε = {epsilon:g}", published, data=data, epsilon=epsilon, **steps)
        for epsilon, steps, figures in (
            (10.0, {"n_steps": 300, "batch_size": 1000}, {"mnist": "74.8", "fashion": "64.0"}),
            (1.0, {"n_steps": 100, "batch_size": 2000}, {"mnist": "50.1", "fashion": "54.3"}),
        )
        for data, published in figures.items()
    ],
)(fit)
absent(PAPER, "table 2, figure 6", "CelebA, FID", "No CelebA here")
absent(PAPER, "table 3, figure 7", "FFHQ, 128 × 128", "No FFHQ here")


def split(published, *shares):
    """Return the case of a split of the budget between conv1, conv2* and the aggregates."""
    name = " · ".join(f"{100 * share:g}" for share in shares)
    return case(name, published, budget_split=shares)


item(
    PAPER,
    "table 7, table 4",
    "MNIST for CelebA-Gender, 40 steps of 500, ε = 10: accuracy of CNN by shares of the budget in "
    "% of conv1 (random at 0) · conv2* · aggregates",
    [
        split("82.0", 0.2, 0.2, 0.6),
        split("79.0", 0.2, 0.6, 0.2),
        split("79.3", 0.0, 0.5, 0.5),
        split("– (the default)", 0.0, 0.2, 0.8),
    ],
)(fit)
absent(
    PAPER,
    "table 5, table 6",
    "conv1 updated while the discriminator is trained",
    "Layers before the aggregate have one budget here, and conv1 is frozen",
)


def compare(names, what, cases):
    """Register an ablation, whose published figures are of CelebA-Gender."""
    title = f"MNIST for CelebA-Gender, 40 steps of 500, ε = 10: accuracy of CNN by {what}"
    item(PAPER, names, title, cases)(fit)


def layered(published, *layers):
    """Return the case of numbers of layers of conv1, conv2* and conv3*."""
    name = "-".join(f"C{n}" if n else "×" for n in layers)
    return case(name, published, layers=layers)


compare(
    "table 8, table 14",
    "layers of conv1-conv2*-conv3*",
    [
        layered("72.0", 1, 1, 0),
        layered("73.3", 1, 2, 0),
        layered("76.2 (the default)", 2, 1, 0),
        layered("72.9", 1, 3, 0),
        layered("78.6", 2, 2, 0),
        layered("75.1", 3, 1, 0),
    ],
)
compare(
    "table 9",
    "layers of conv1-conv2*-conv3*, with some after the aggregate",
    [
        layered("82.6", 2, 2, 1),
        layered("72.7", 1, 3, 1),
        layered("80.3", 2, 1, 1),
        layered("51.4", 2, 1, 2),
        layered("82.0", 3, 1, 1),
    ],
)
compare(
    "table 10",
    "the asymmetry μ",
    [
        case(f"μ = {asymmetry}", published, asymmetry=asymmetry)
        for asymmetry, published in (
            (2, "66.5"),
            (4, "81.9"),
            (8, "82.6"),
            (10, "74.5"),
            (20, "73.5"),
        )
    ],
)
compare(
    "table 12",
    "the share of a product's entries that is kept; TopAgg is not here",
    [case("0.9", "82.6", keep=0.9), case("1 (no compression)", "81.8", keep=1.0)],
)
absent(
    PAPER,
    "table 11",
    "Networks pretrained on public data",
    "Networks start from random weights here",
)
absent(PAPER, "table 13", "Tempered sigmoids", "Networks have no such activation here")
