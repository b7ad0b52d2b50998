"""POT's own tests of the sliced Wasserstein distance, with our function in place of theirs.

    pip download --no-deps --no-binary :all: POT==0.9.7.post1 && tar xf pot-0.9.7.post1.tar.gz
    python benchmarks/run_pot_tests.py pot-0.9.7.post1/test/test_sliced.py

Tests of maxima over slices, and of spheres, are left out: we have neither.
"""

import sys

import ot
import pytest
from ot.sliced import get_random_projections

from skdpgen.transport import sliced_wasserstein_distance, wasserstein_1d


def distance(
    X_s, X_t, a=None, b=None, n_projections=50, p=2, projections=None, seed=None, log=False
):
    """Return our distance, with the parameters and results of POT's."""
    options = {"a": a, "b": b, "p": p}
    if log and projections is None:
        projections = get_random_projections(X_s.shape[1], n_projections, seed)
    found = sliced_wasserstein_distance(
        X_s,
        X_t,
        n_projections=n_projections,
        projections=projections,
        random_state=seed,
        **options,
    )
    if not log:
        return found
    costs = wasserstein_1d((X_s @ projections).T, (X_t @ projections).T, **options)
    return found, {"projections": projections, "projected_emds": costs ** (1 / p)}


if __name__ == "__main__":
    ot.sliced_wasserstein_distance = distance
    chosen = "sliced and not max and not spher and not tf"
    sys.exit(pytest.main([*sys.argv[1:], "-k", chosen, "-q", "-p", "no:cacheprovider"]))
