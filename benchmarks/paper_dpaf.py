"""DPAF: Lin et al., 2023, whose ablations are of CelebA; here they are of MNIST."""

from paper_items import DELTA, absent, case, fit_images, item

from skdpgen import DPAFGenerator
from skdpgen.releases import ForwardAggregates

PAPER = "dpaf"


def fit(seed, data="mnist", epsilon=10.0, **release):
    """Return the accuracy × 100 of a network that saw synthetic images."""
    generator = DPAFGenerator(
        epsilon,
        DELTA,
        release=ForwardAggregates(**{"n_steps": 40, "batch_size": 500} | release),
        random_state=seed,
    )
    title = f"dpaf-{data}-{epsilon:g}-{release}"
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
absent(
    PAPER,
    "table 8, table 9, table 10, table 12, table 14",
    "CelebA, by layers, asymmetry and compression",
    "No CelebA here. `DPAFGenerator` and `ForwardAggregates` have these parameters",
)
absent(
    PAPER,
    "table 11",
    "Networks pretrained on public data",
    "Networks start from random weights here",
)
absent(PAPER, "table 13", "Tempered sigmoids", "Networks have no such activation here")
