# SPDX-License-Identifier: BSD-3-Clause
"""Particles of a private sliced Wasserstein flow."""

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted

from .._lazy import late
from .._process.isolation import isolated
from ..base import CentralGenerator
from ..checks import check_size, in_range, positive, whole
from ..data.rows import clip_rows
from ..params import documented
from ..planning.fits import refuse_given

if TYPE_CHECKING:
    from ..releases import SlicedRows, SliceSketch
    from ..tables.schema import Schema


# Least and largest number of particles, over all classes.
_FEWEST, _MOST = 500, 10_000
# Particles of tables, and those of a step; more take longer, and are not closer to the release.
_MOST_OF_TABLE, _TABLE_BATCH_SIZE = 4000, 2000
# Steps for rows that are released once.
_FREE_STEPS = 1500
# Most steps of fitting the normal distributions from which particles of a sketch start.
_NORMAL_STEPS = 500
# Final share of the steps along projected rows in which the step size decays to 0.
_ANNEALED = 0.5


@documented
class DPSWFlowSampler(CentralGenerator):
    """Particles moved, by a sliced Wasserstein flow, towards the private distribution.

    With ``release="sketch"`` the rows are read once: for every class, sums of sines and cosines of
    their projections on public random directions are released with Gaussian noise (the *slice
    sketch*). Particles start from the normal distribution of their class whose sketch is nearest to
    the noisy one, or from public rows (`init`). They then descend the squared distance between the
    two sketches, until it is down to the known energy of the noise.

    The other releases are those of the DPSWflow paper [1]_. With ``"resample"`` (DPSWflow-r,
    Algorithm 1) each step projects a fresh random batch of rows on fresh directions, with noise on
    every number; particles follow the quantile maps between their own smoothed projections and
    these. With ``"presample"`` (DPSWflow, Algorithm 2) this is released once, on many directions,
    of which each step looks at a few, as often as one likes.

    Parameters
    ----------
    %(privacy)s
    %(running)s
    %(arrays)s
    %(schema)s
    %(encoder)s
    release : {"sketch", "pairs", "resample", "presample"} or Release, default="sketch"
        A slice sketch, released once, or two-way tables of a table and, unless ``"pairs"``, tables
        of strong interactions; projected rows, released at each step; or projected rows,
        released once (``SlicedRows(n_steps=1)``).
    n_particles : int, default=None
        Number of particles, divided equally among the classes. None: n_samples / 2 within
        [500, 10000], or [500, 4000] for tables.
    init : array-like of shape (n_rows, n_features), default=None
        **Public** rows, somewhat like the private ones, that the particles of each class start
        from, in random order, again and again, each with a jitter of a tenth of their standard
        deviations. They determine whatever the sketch does not. None: particles start from normal
        distributions fitted to the sketch, and from noise without a sketch. Not for tables, nor
        with a numeric `y`.
    diffusion : float, default=0.0
        λ: particles get √(2λh) of Gaussian noise at each step of a flow along projected rows.
        It regularises, and no privacy is claimed from it.
    n_steps : int, default=None
        Largest number of steps; they cost no privacy. None: 2000 for a sketch, 1000 for tables,
        1500 for rows that were released once. For rows at each step the release says it.
    learning_rate : float, default=None
        For a sketch: of Adam, in units of the particles' mean spread; None: 0.05. For a table's
        sketch, of their logits; None: 0.03. For projected rows: h, the step of Euler and Maruyama;
        None: the number of columns over 10, since the drift is an average over directions, and so
        the smaller the more columns there are. It falls to 0 over the second half of the steps.
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
        Number of steps.
    loss_curve_ : list of float
        At each step, an estimate from releases alone: for a sketch the squared distance to the
        noisy sketch per slice, of the class that took most steps; else the mean square of the
        drift.

    Notes
    -----
    `sample` draws particles in random order, again and again if more rows are asked for than there
    are particles, each time with a Gaussian jitter of a tenth of the standard deviations of their
    class (the smoothed bootstrap). Particles start from releases, noise or public rows, and
    whatever moves them is a release: none is a record.

    Releases and their costs are those of `DPSlicedWassersteinGenerator`. Rows that were released
    once can be used as often as one likes, and cost what a single step does. The paper composes the
    directions of ``"presample"`` by a bound on the sensitivity that holds with probability 1 - δ/2;
    here the law of the sensitivity is used as it is, which needs much less noise.

    References
    ----------
    .. [1] Sebag, Pydi, Franceschi, Rakotomamonjy, Gartrell, Atif & Allauzen, "Differentially
       Private Gradient Flow based on the Sliced Wasserstein Distance", 2023.
    .. [2] Liutkus, Şimşekli, Majewski, Durmus & Stöter, "Sliced-Wasserstein Flows", ICML 2019.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skdpgen import DPSWFlowSampler
    >>> X, y = load_iris(return_X_y=True)
    >>> sampler = DPSWFlowSampler(
    ...     epsilon=5.0, bounds=(0, 8), classes=[0, 1, 2], n_steps=50, random_state=0
    ... ).fit(X, y)
    >>> X_synthetic, y_synthetic = sampler.sample(100)
    >>> X_synthetic.shape, bool(sampler.epsilon_ <= 5.0)
    ((100, 4), True)

    Rows of which each person has three, of which two count:

    >>> persons = [i // 3 for i in range(len(X))]
    >>> sampler = DPSWFlowSampler(5.0, max_rows_per_person=2, n_steps=50, random_state=0)
    >>> certificate = sampler.fit(X, persons=persons).privacy_
    >>> certificate.n_records, certificate.max_rows
    (50, 2)
    """

    _takes_components = True
    _shorthands = {
        **CentralGenerator._shorthands,
        "release": {
            "sketch": late("skdpgen.releases", "SliceSketch"),
            "pairs": late("skdpgen.releases", "TwoWayTables", max_order=2),
            "resample": late("skdpgen.releases", "SlicedRows"),
            "presample": late("skdpgen.releases", "SlicedRows", n_steps=1),
        },
    }
    _checks = {
        "n_particles": whole(optional=True),
        "n_steps": whole(optional=True),
        "learning_rate": positive(optional=True),
        "diffusion": in_range(),
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
        n_particles: int | None = None,
        init: object = None,
        diffusion: float = 0.0,
        n_steps: int | None = None,
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
        self.n_particles = n_particles
        self.init = init
        self.diffusion = diffusion
        self.n_steps = n_steps
        self.learning_rate = learning_rate
        self.max_rows_per_person = max_rows_per_person

    def _check_params(self):
        super()._check_params()
        release = self._resolve_spec("release")
        # A single release leaves the number of steps open: they are post-processing.
        if release.learner == "rows" and release.n_steps != 1:
            refuse_given(self, "n_steps")

    def _list_array_params(self):
        return super()._list_array_params() + ["init"] * (self.init is not None)

    def _plan(self, terms, format):
        if self.init is not None and format.has_number:
            raise ValueError("init cannot be combined with a numeric y, which it lacks.")
        if terms.n_columns is not None:
            n_particles = self._count_particles(terms.n_samples, 1)
            check_size("n_particles", n_particles, format.n_columns)
        return self._find_release(format).plan(terms, format)

    def _min_samples_for_components(self, plan, format):
        # Particles that start from public rows keep there what noisy components lose.
        return 0 if self.init is not None else super()._min_samples_for_components(plan, format)

    def _list_assumptions(self, format):
        assumed = super()._list_assumptions(format)
        return assumed if self.init is None else ("the rows in init are public", *assumed)

    def _learn_tables(self, release, curator, format, noise):
        from ..learners.interactions import fit_to_table
        from ..learners.table_rows import TableParticles

        n_particles = self._count_particles(curator.n_records, 1, _MOST_OF_TABLE)
        generator = noise.torch_generator()

        def make_rows(shares, sizes, marginals):
            counts = [
                # Rare strata get enough particles to hold a table, frequent ones no more than all.
                min(n_particles, max(_FEWEST, round(share * n_particles)))
                for share in shares
            ]
            return TableParticles(counts, generator, sizes, marginals)

        return fit_to_table(
            release,
            curator,
            format,
            make_rows,
            noise,
            n_steps=self.n_steps or 1000,
            batch_size=min(_TABLE_BATCH_SIZE, n_particles),
            learning_rate=self.learning_rate or 0.03,
            verbose=self.verbose,
        )

    def _learn_sketch(self, release, curator, format, noise):
        from ..learners.interface import Sampler
        from ..learners.normals import draw_normals, fit_normals_to_sketch
        from ..learners.particles import Particles, fit_particles_to_sketch

        # Particles go wherever a sketch lets them: small components need less weight than in a
        # network.
        components, spread, init = self._encode(curator, format, whiten=0.4)
        basis, sketch = release.run(curator, format, components, spread.cpu(), noise)
        curator.close()  # the rest is post-processing
        generator, n_steps = noise.torch_generator(), self.n_steps or 2000
        options = {
            "learning_rate": self.learning_rate or 0.05,
            "generator": generator,
            "verbose": self.verbose,
        }
        if init is not None:
            starts = self._draw_starts(curator, spread, init, generator)
        else:
            normals = fit_normals_to_sketch(
                basis, sketch, spread, n_steps=min(_NORMAL_STEPS, n_steps), **options
            )
            n_particles = self._count_particles(curator.n_records, curator.n_classes)
            starts = draw_normals(normals, n_particles, spread, generator)
        scale = 1.0 if components is None else components.scale
        sizes = len(spread), curator.n_classes, curator.n_records
        # Particles are down to the noise sooner where it is large; see `preview`.
        expected = 100 + 5 / max(1e-9, release.noise_ratio(curator.plan, *sizes))
        options |= {"n_steps": n_steps, "n_expected": min(n_steps, expected)}
        moved, losses = fit_particles_to_sketch(basis, sketch, starts, spread, scale, **options)
        shares = sketch.class_shares
        rows = Particles(moved, components, shares, format.feature_scale)
        return Sampler(rows, losses, shares)

    def _learn_rows(self, release, curator, format, noise):
        """Move particles by a flow along projected rows."""
        from ..learners.interface import Sampler
        from ..learners.particles import Particles, flow_along_slices
        from ..releases.sliced_rows import DEFAULTS

        components, spread, init = self._encode(curator, format, **release.scaling)
        sliced = release.run(curator, format, len(spread), components)
        generator, n_directions, n_features = noise.torch_generator(), None, sliced.n_features
        starts = self._draw_starts(curator, spread, init, generator)
        if release.n_steps == 1:
            n_steps = self.n_steps or _FREE_STEPS
            # The same release at each step: it has been paid for once.
            steps = itertools.repeat(sliced.make(), n_steps)
            n_directions = -(-release.count_projections(n_features) // DEFAULTS.directions_at_once)
            curator.close()  # the rest is post-processing
        else:
            n_steps = sliced.n_steps
            steps = (sliced.make() for _ in range(n_steps))
        # The mean over directions of a drift is 1/d of the distance: the step makes up for it.
        step_size = self.learning_rate or n_features / 10
        falling = max(_ANNEALED * n_steps, 1.0)
        moved, shares, losses = flow_along_slices(
            starts,
            sliced.mechanism,
            steps,
            step_sizes=[step_size * min(1.0, (n_steps - i) / falling) for i in range(n_steps)],
            diffusion=self.diffusion,
            batch_size=sliced.batch_size,
            n_directions=n_directions,
            generator=generator,
            verbose=self.verbose,
        )
        sliced.means.warn()
        rows = Particles(moved, components, shares, format.feature_scale)
        return Sampler(rows, losses, shares)

    def _encode(self, curator, format, **scaling):
        """Return the components of rows, the scale of encoded rows, and encoded `init`."""
        from ..learners.rows import even_scale

        init = None
        if self.init is not None:
            from ..arrays.numbers import read_numbers

            # Public rows, mapped as private ones are.
            init = _to_unit_ball(read_numbers(self.init, "init").astype(np.float64), format)
        components = self._find_components(curator, format, **scaling)
        if components is None:
            return None, even_scale(format.n_columns).to(curator.device), init
        if init is not None:
            init = components.encode(init.to(curator.device))
        return components, components.spread.to(curator.device), init

    def _draw_starts(self, curator, spread, init, generator):
        """Return the initial particles of each class."""
        from ..learners.particles import draw_starts

        n_particles = self._count_particles(curator.n_records, curator.n_classes)
        return draw_starts(curator.n_classes, n_particles, spread, init, generator)

    def _read(self, X, y, target, persons):
        format, records = super()._read(X, y, target, persons)
        if self.init is not None and not format.has_number:
            # Late, as few fits have them.
            from ..arrays.starts import check_starts

            check_starts(self, self.init, format)
        return format, records

    def _generate(self, classes, generator):
        return self._rows.sample(classes, generator)

    @isolated()
    def project(self, X) -> np.ndarray:
        """Project rows on the space that the release depends on: a public map.

        It removes what a `PrivatePCA` does not represent, and clips rows to the radius. Not for
        tables, nor with a numeric `y`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features), or of images
        """
        from ..data.inputs import read_rows

        check_is_fitted(self, "privacy_")
        if self._format.block_sizes or self._format.has_number:
            raise ValueError("project is for rows of X alone, not for tables, nor for a numeric y.")
        X = read_rows(self, X, reset=False)
        rows, components = _to_unit_ball(X, self._format), self._rows.components
        if components is not None:
            rows = components.decode(components.encode(rows))
        return self._format.images.reshape(self._format.decode_rows(rows.double().numpy())[0])

    def _count_particles(self, n_samples, n_classes, most=_MOST):
        """Return the number of particles of a class."""
        total = self.n_particles or min(most, max(_FEWEST, n_samples // 2))
        return max(2, total // n_classes)


def _to_unit_ball(X, format):
    """Map public rows as the curator maps private ones."""
    # The release sees rows divided by the radius and clipped to 1.
    return clip_rows(torch.as_tensor(format.encode(X) / format.clip_norm), 1.0)
