"""Tables and figures of the published papers, as functions of a seed."""

import runpy
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from public_images import load_fashion_mnist, load_mnist
from sklearn.utils import Bunch

from skdpgen.evaluation import train_on_synthetic_score

EXAMPLES = Path(__file__).parents[1] / "examples"
PAPERS = ("dp-swd", "dpswflow", "ldp-gan", "dp-sinkhorn", "dpaf")
DELTA = 1e-5
# A folder, if pictures of synthetic images are wanted.
pictures = None


@dataclass(frozen=True)
class Case:
    """A row of a table: what the paper prints, and the parameters of the function that measures."""

    name: str
    published: str
    params: dict


def case(name, published, /, **params):
    """Return a `Case`."""
    return Case(name, published, params)


@dataclass(frozen=True, eq=False)
class Item:
    """A table or figure: its cases, or the reason why it cannot be had."""

    paper: str
    names: tuple[str, ...]
    title: str
    measure: Callable | None = None
    cases: list[Case] = field(default_factory=list)
    # Format of a figure; and whether figures depend on a seed.
    form: str = ".1f"
    random: bool = True
    reason: str = ""

    @property
    def command(self):
        """The arguments of papers.py."""
        kind, number = self.names[0].split()
        return f"--paper {self.paper} --{kind} {number}"


ITEMS: dict[tuple[str, str], Item] = {}


def add(item):
    """Register an item under all of its names."""
    ITEMS.update({(item.paper, name): item for name in item.names})


def item(paper, names, title, cases, **options):
    """Decorate a function from a seed and a case's parameters to a figure, or to several."""

    def register(measure):
        add(Item(paper, tuple(names.split(", ")), title, measure, cases, **options))
        return measure

    return register


def absent(paper, names, title, reason):
    """Register a table or figure that cannot be had."""
    add(Item(paper, tuple(names.split(", ")), title, reason=reason))


@cache
def load(name):
    """Load MNIST or Fashion-MNIST once; or MNIST with its last training images as tests."""
    if name == "held out":
        X, y, n = load("mnist").X_train, load("mnist").y_train, 50_000
        return Bunch(X_train=X[:n], y_train=y[:n], X_test=X[n:], y_test=y[n:])
    return {"mnist": load_mnist, "fashion": load_fashion_mnist}[name]()


def fit_images(model, name, title, *, n_images=10_000, classifiers=("logistic",)):
    """Fit a generator to images; return test accuracies × 100 of classifiers of synthetic ones."""
    data = load(name)
    model.set_params(bounds=(0, 1), classes=range(10)).fit(data.X_train, data.y_train)
    return score_images(model.sample(n_images), data, title, classifiers)


def score_images(made, data, title, classifiers=("logistic",)):
    """Return test accuracies × 100 of classifiers of synthetic images, which are drawn if asked."""
    X, y = made
    if pictures:
        chosen = np.concatenate([X[y == label][:10] for label in range(10)])
        draw_images(chosen.reshape(10, 10, 28, 28), title)
    score = partial(train_on_synthetic_score, X, y, data.X_test, data.y_test, random_state=0)
    return [100 * score(classifier) for classifier in classifiers]


def draw_images(images, title):
    """Save a picture of rows of images, if pictures are wanted."""
    if pictures:
        n_rows, n_columns, height, width = images.shape
        grid = images.swapaxes(1, 2).reshape(n_rows * height, n_columns * width)
        plt.imsave(Path(pictures, f"{title}.png"), grid, cmap="gray_r", vmin=0, vmax=1)


@cache
def run_example(name):
    """Run an example of the gallery; return its names."""
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))
