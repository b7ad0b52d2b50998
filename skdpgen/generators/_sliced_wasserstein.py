# SPDX-License-Identifier: BSD-3-Clause
"""Generator networks trained by the sliced Wasserstein distance to private rows."""

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .._lazy import late
from ..checks import check_size, positive, whole
from ..networks.generators import TABLE_GENERATORS, build, find_factory
from ..params import documented
from ..planning.fits import refuse_given
from ._network import NetworkGenerator

if TYPE_CHECKING:
    from ..releases import SlicedRows, SliceSketch
    from ..tables.schema import Schema


# Generated rows per step for a sketch, over all classes.
_BATCH_SIZE = 256
# Signal of sliced rows over that which particles need, whose steps are along released slices; found
# by `run_rows_needed.py`.
_TIMES_SIGNAL = 3.0
# The same for tables: the loss is a difference of squares, too noisy for early stopping in smaller
# batches.
_TABLE_BATCH_SIZE = 1000


@documented
class DPSlicedWassersteinGenerator(NetworkGenerator):
    """Generator network trained by the sliced Wasserstein distance to private rows.

    With ``release="sketch"`` the rows are read once: for every class, sums of sines and cosines of
    their projections on public random directions are released with Gaussian noise (the *slice
    sketch*, see `SliceSketch`). A network is then trained until what it generates has the same
    sketch, which costs no further privacy. For a table, the sketch consists of *two-way tables*:
    joint counts of the levels (or of values near the knots of numbers and dates) for each pair of
    columns, and for more columns where pairs do not suffice (see `TwoWayTables`). The network
    then returns probabilities of levels.

    With ``release="rows"`` this is DP-SWD [1]_: at each step a random batch of rows is projected
    on fresh directions and released with noise on every number (see `SlicedRows`), and the network
    minimises the sliced distance between these rows and generated rows with the same noise. It
    needs far more noise for the same ε than the sketch.

    Parameters
    ----------
    %(privacy)s
    %(running)s
    %(arrays)s
    %(schema)s
    %(encoder)s
    release : {"sketch", "pairs", "rows"} or Release, default="sketch"
        A slice sketch, released once; for a table, two-way tables and, unless ``"pairs"``, tables
        of strong interactions; or projected rows, released at each step.
    network : str or callable, default="mlp"
        ``"mlp"`` (two hidden layers of 256 units, of 128 for tables) generates any rows, and
        ``"conv"`` images of any shape. ``"conv28"`` makes 28×28 grey images (Table 3 of [1]_). Both
        of these need `bounds`. A factory takes the numbers of inputs and outputs and
        returns a torch module; by ``unit_output = True`` the module says that it gives features in
        [0, 1] rather than encoded rows.
    latent_dim : int, default=20
        Dimension of the network's random code; the one-hot class is joined to it.
    n_steps : int, default=None
        For a sketch: largest number of training steps. None: 250 / (√ρ·(1 + ρ)) within [20, 3000],
        where ρ is the noise on a sketch value over its largest possible size,
        n_samples / n_classes, or 1500 for tables. For rows the release says it.
    batch_size : int, default=None
        For a sketch: generated rows a step, shared by the classes. None: 256, or 1000 for tables.
        For rows the release says it.
    learning_rate : float, default=None
        Learning rate of Adam, with a warm-up and a linear decay to 0: over the last fifth of the
        steps for a sketch, over all of them for rows. None: 0.01 and 0.001, or 0.006 for tables.
    %(persons)s

    Attributes
    ----------
    %(certified)s
    %(release_)s
    %(found)s
    %(schema_)s
    sigma_ : float
        Standard deviation of the noise on the sums of the sketch, or on each projection of a row,
        for rows in the unit ball; on tables, of which a record adds a vector of norm 1.
    %(labels)s
    %(shape)s
    n_iter_ : int
        Number of training steps.
    loss_curve_ : list of float
        At each step, an estimate from releases alone. For a sketch, the squared distance between
        generated and noisy sketch per slice: once its running mean falls to the known energy of
        the noise, the learning rate decays and training ends, since fitting further would fit
        the noise. For rows, the smoothed squared distance, summed over the classes.

    Notes
    -----
    How far a record moves a sketch or tables is bounded, whatever the numbers of features, levels
    and classes; the user guide has the proofs.

    For ``release="rows"``, a row is joined with the one-hot of its label, in the unit ball, and
    projected for the slices of its class. Given the directions U, which are fresh at each step, a
    record changes one row by zᵀU, so that ε is an average over the law of ‖zᵀU‖². As in [1]_,
    generated rows get the same noise. Unlike there, rows are clipped to a public radius, batches
    are Poisson-sampled and padded to a public size, which hides how many joined, and no
    approximation enters ε. With ``"dp-pca"``, the second moments that were released for it are
    matched as well.

    A scaler or PCA that is fitted on private rows in an earlier step of a pipeline voids ε: use
    `bounds` and `encoder` instead. In a pipeline of public steps, ``pipe[-1].sample(n)`` gives
    rows in the units of the last step, and ``pipe[:-1].inverse_transform`` leads back.

    References
    ----------
    .. [1] Rakotomamonjy & Ralaivola, "Differentially Private Sliced Wasserstein Distance",
       ICML 2021.
    .. [2] Balle & Wang, "Improving the Gaussian Mechanism for Differential Privacy", ICML 2018.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skdpgen import DPSlicedWassersteinGenerator
    >>> X, y = load_iris(return_X_y=True)
    >>> generator = DPSlicedWassersteinGenerator(
    ...     epsilon=5.0, bounds=(0, 8), classes=[0, 1, 2], n_steps=50, random_state=0
    ... ).fit(X, y)
    >>> X_synthetic, y_synthetic = generator.sample(100)
    >>> X_synthetic.shape, bool(generator.epsilon_ <= 5.0)
    ((100, 4), True)
    """

    _shorthands = {
        **NetworkGenerator._shorthands,
        "release": {
            "sketch": late("skdpgen.releases", "SliceSketch"),
            "pairs": late("skdpgen.releases", "TwoWayTables", max_order=2),
            "rows": late("skdpgen.releases", "SlicedRows"),
        },
    }
    _checks = {
        "n_steps": whole(optional=True),
        "batch_size": whole(optional=True),
        "learning_rate": positive(optional=True),
        "max_rows_per_person": whole(),
    }

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float | None = None,
        *,
        relation: str = "zero_out",
        accountant: str = "pld",
        random_state: object = None,
        device: str = "auto",
        verbose: int = 0,
        strict: bool = False,
        bounds: Sequence | None = None,
        y_bounds: Sequence | None = None,
        classes: Sequence | None = None,
        clip_norm: float | str = "auto",
        image_shape: Sequence | str | None = "auto",
        schema: "Schema | str | None" = "auto",
        encoder: object = "auto",
        release: "SliceSketch | SlicedRows | str" = "sketch",
        network: Callable | str = "mlp",
        latent_dim: int = 20,
        n_steps: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        max_rows_per_person: int = 1,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.relation = relation
        self.accountant = accountant
        self.random_state = random_state
        self.device = device
        self.verbose = verbose
        self.strict = strict
        self.bounds = bounds
        self.y_bounds = y_bounds
        self.classes = classes
        self.clip_norm = clip_norm
        self.image_shape = image_shape
        self.schema = schema
        self.encoder = encoder
        self.release = release
        self.network = network
        self.latent_dim = latent_dim
        self.n_steps = n_steps
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.max_rows_per_person = max_rows_per_person

    def _check_params(self):
        super()._check_params()
        if self._resolve_spec("release").learner == "rows":
            # They are numbers of the release, which has parameters for them.
            refuse_given(self, "n_steps", "batch_size")

    def _plan(self, terms, format):
        release, n_classes, batch_size = self._find_release(format), None, self.batch_size or 1
        if release.learner == "sketch":
            check_size("batch_size", batch_size, release.count_values(terms))
        elif terms.n_columns is not None:
            check_size("batch_size", batch_size, terms.n_columns)
        plan = release.plan(terms, format)
        if release.learner == "rows":
            batch_size = max(2, release.count_rows(plan, terms.n_samples))
        elif release.learner == "sketch":
            batch_size = terms.n_classes * self._count_per_class(terms.n_classes)
        else:
            n_classes, batch_size = 0, self.batch_size or _TABLE_BATCH_SIZE
        self._try_network(terms, format, batch_size, n_classes)
        return plan

    def _count_needed(self, release, plan, terms, format):
        if release.learner != "rows":
            return super()._count_needed(release, plan, terms, format)
        return release.min_samples(plan, terms, format, times=_TIMES_SIGNAL)

    def _count_per_class(self, n_classes):
        """Return the generated rows of each class in a step, for a sketch."""
        return max(2, (self.batch_size or _BATCH_SIZE) // n_classes)

    def _learn_tables(self, release, curator, format, noise):
        from ..learners.interactions import fit_to_table
        from ..learners.table_rows import TableNetwork

        factory = find_factory(self.network, TABLE_GENERATORS)

        def make_rows(shares, sizes, marginals):
            n_inputs = TableNetwork.count_inputs(self.latent_dim, len(shares))
            network = build(factory, n_inputs, sum(sizes), noise.seed())
            return TableNetwork(network, self.latent_dim, sizes, marginals)

        return fit_to_table(
            release,
            curator,
            format,
            make_rows,
            noise,
            n_steps=self.n_steps or 1500,
            batch_size=self.batch_size or _TABLE_BATCH_SIZE,
            learning_rate=self.learning_rate or 0.006,
            verbose=self.verbose,
        )

    def _learn_sketch(self, release, curator, format, noise):
        from ..learners.sketch import fit_to_sketch

        rows = self._make_rows(release, curator, format, noise)
        basis, sketch = release.run(curator, format, rows.components, rows.scale.cpu(), noise)
        curator.close()  # the rest is post-processing
        # Public: from the plan and numbers of rows, not from the noise that was drawn.
        noise_ratio = release.noise_ratio(
            curator.plan, len(rows.scale), curator.n_classes, curator.n_records
        )
        # For persons, the number of rows is a noisy estimate.
        noise_ratio *= curator.n_records / curator.n_rows
        return fit_to_sketch(
            rows,
            basis,
            sketch,
            n_steps=self.n_steps or _default_n_steps(noise_ratio),
            rows_per_class=self._count_per_class(curator.n_classes),
            learning_rate=self.learning_rate or 0.01,
            generator=noise.torch_generator(),
            verbose=self.verbose,
        )

    def _learn_rows(self, release, curator, format, noise):
        from ..learners.slices import fit_to_slices

        rows = self._make_rows(release, curator, format, noise)
        return fit_to_slices(
            rows,
            release.run(curator, format, len(rows.scale), rows.components),
            learning_rate=self.learning_rate or 0.001,
            generator=noise.torch_generator(),
            verbose=self.verbose,
        )


def _default_n_steps(noise_ratio):
    # Without noise nothing tells when to stop.
    if noise_ratio == 0:
        return 3000
    return round(min(3000, max(20, 250 / (math.sqrt(noise_ratio) * (1 + noise_ratio)))))
