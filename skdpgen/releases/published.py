# SPDX-License-Identifier: BSD-3-Clause
"""Published releases: released values, with all that a learner needs of them."""

from dataclasses import dataclass
from typing import Any

from ..accounting.certificate import Certificate
from ..accounting.plan import Plan
from ..curator.curator import find_digest
from ..exceptions import PlanError
from ..saving.serialization import Saves, load
from .release import Release

# Attributes by which scikit-learn knows the columns of X.
_FEATURES = ("n_features_in_", "feature_names_in_")


@dataclass(frozen=True, eq=False, repr=False)
class PublishedRelease(Saves):
    """The released values of a fit, with all that a learner needs of it.

    It holds no private value: the values have their noise, and all else is public. A file of it,
    written by `save` and read by `skdpgen.load`, can be published in place of synthetic rows.

    Attributes
    ----------
    learner : str
        Class of the estimator that made it.
    release : Release
        The release, with the numbers that were chosen for it.
    plan : Plan
        The planned releases, with their events.
    format : Format
        The resolved format of the data, with the schema.
    values : tuple
        The values of all releases, in order.
    n_inferred : int
        How many of the first values served to resolve the format.
    words : tuple of int
        Words that seeded the public draws of the fit, such as directions.
    n_samples, n_classes : int
        Numbers of records, or of persons, and of classes, which are public.
    n_rows : float
        Approximate number of records in sums; it differs for persons with several rows.
    features : dict
        The fitted attributes ``n_features_in_`` and ``feature_names_in_``, if there are names.
    certificate : Certificate
        The certificate of the releases.
    digest : str or None
        Digest of the values; None: that of the certificate or, for sums of releases, of `values`.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdpgen import DPSWFlowSampler
    >>> from skdpgen.releases import from_release
    >>> frame = pd.DataFrame({"age": range(20, 70), "smokes": ["yes", "no"] * 25})
    >>> sampler = DPSWFlowSampler(epsilon=9.0, n_steps=10).fit(frame)
    >>> again = from_release(sampler.release_.published, DPSWFlowSampler(n_steps=20))
    >>> again.privacy_ == sampler.privacy_
    True
    >>> sampler.release_.to_frame("smokes").columns.to_list()
    ['count', 'std', 'lower', 'upper']
    >>> sampler.release_.published.degrade(8.0).certificate.epsilon <= 8.0
    True
    """

    learner: str
    release: Release
    plan: Plan
    format: Any
    values: tuple
    n_inferred: int
    words: tuple
    n_samples: int
    n_classes: int
    n_rows: float
    features: dict
    certificate: Certificate
    digest: str | None = None

    def __post_init__(self) -> None:
        digest = self.digest or self.certificate.digest or find_digest(self.values)
        # A frozen class sets its own fields by this call only.
        object.__setattr__(self, "digest", digest)

    @classmethod
    def of(cls, estimator, release, curator, plan, format, n_inferred, assumed, words=()):
        """Return what the curator of a fit of an estimator has released so far."""
        return cls(
            type(estimator).__name__,
            release,
            plan,
            format,
            tuple(curator.released),
            n_inferred,
            tuple(words),
            curator.n_records,
            curator.n_classes,
            curator.n_rows,
            {name: value for name, value in vars(estimator).items() if name in _FEATURES},
            curator.certificate(assumed),
        )

    @property
    def main(self):
        """The value of the main release."""
        return self.values[self.n_inferred]

    def __repr__(self):
        return f"<PublishedRelease: {self.release!r} by {self.learner}, {self.certificate!r}>"

    def check(self):
        """Raise a ValueError if the values are not those of the certificate."""
        certificate, found = self.certificate, find_digest(self.values)
        if found != self.digest or certificate.digest not in (None, found):
            raise ValueError("The values of the release are not those of its certificate.")
        stated = (certificate.relation, certificate.accountant, certificate.max_rows)
        if stated != (self.plan.relation, self.plan.accountant, self.plan.max_rows):
            raise ValueError("The plan of the release is not that of its certificate.")

    _check_savable = check

    def to_frame(self, *columns: str, level: float = 0.95):
        """Return the released counts of one or two columns of a table, with their noise.

        Margins and totals of all of them agree. Levels of numbers have weights; the codebook of
        ``skdpgen tables`` says which.

        Parameters
        ----------
        *columns : str
        level : float, default=0.95
            Nominal level of intervals, each for one count, and for the noise alone.

        Returns
        -------
        DataFrame
            *count*, *std* of its normal noise, *lower* and *upper*, by the levels of the columns.
        """
        from .tabulation import Tabulation  # of few fits

        return Tabulation(self, level).tabulate(columns)

    def degrade(self, epsilon: float) -> "PublishedRelease":
        """Return the tables with more noise, for readers who are given a smaller ε.

        Both together cost what this release does (:doc:`/theory/degraded`): keep it, and publish
        the other. Each call draws other noise, so publish one release for each ε.

        Parameters
        ----------
        epsilon : float
            ε of the degraded release alone, at the same δ. An inferred schema keeps its cost, and
            tables of interactions are left out.

        Raises
        ------
        ValueError
            If this is no release of tables by a single fit that cost more than `epsilon`.
        """
        from .degrading import degrade  # of few fits

        return degrade(self, epsilon)


class ReplayedCurator:
    """Stands in for the curator of a fit, and hands out its published values in their order.

    It has the attributes of a `Curator` that learners read, and holds no row.
    """

    def __init__(self, published: PublishedRelease, device) -> None:
        self.plan, self.device = published.plan, device
        self.n_records, self.n_classes = published.n_samples, published.n_classes
        self.n_rows = published.n_rows
        names = [name for name, _ in published.plan.releases]
        self._left = list(zip(names, published.values, strict=False))[published.n_inferred :]

    def release(self, mechanism):
        """Return the value of the next release."""
        if not self._left or self._left[0][0] != mechanism.name:
            raise PlanError(f"{mechanism.name!r} is not the next published release.")
        return self._left.pop(0)[1]

    def close(self, *args) -> None:
        """Do nothing: there are no rows."""

    prepare = encode_cells_by = close


def open_release(source) -> PublishedRelease:
    """Return the published release of a file, a release or a fitted estimator."""
    source = getattr(source, "release_", source)
    published = source.get_published() if isinstance(source, Release) else source
    # The digest of a file is checked by `load`.
    published = published if isinstance(published, PublishedRelease) else load(published)
    if not isinstance(published, PublishedRelease):
        raise ValueError(f"{source} is a file of a fitted estimator, and not of a release.")
    published.check()
    return published
