"""Rows in memory, given coins, and the test of a noise's variance, that mechanisms share."""

import numpy as np
import torch
from scipy import stats

from skdpgen.privacy import NoiseSource

# A noise multiplier is relative to this, in sensitivities: a record that is replaced moves a sum by
# twice its norm.
UNIT = {"zero_out": 1.0, "replace_one": 0.5}


class Drawn(NoiseSource):
    """A source of noise whose coins are given, and the order of slots if asked for."""

    def __init__(self, positions, seed=0, slots=None):
        super().__init__(seed)
        self._positions, self._slots = np.asarray(positions, dtype=int), slots

    def poisson_sample(self, n_records, rate):
        return self._positions

    def fixed_sample(self, n_records, size):
        return super().fixed_sample(n_records, size) if self._slots is None else self._slots[:size]


class Rows:
    """A source of rows in memory; label -1 is a null record."""

    def __init__(self, rows, labels=None, n_classes=1):
        self._rows = torch.tensor(np.asarray(rows, dtype=float))
        labels = np.zeros(len(rows), int) if labels is None else np.asarray(labels)
        self._membership = torch.eye(n_classes + 1, dtype=torch.float64)[labels][:, :n_classes]
        self.n_records, self.n_classes = len(rows), n_classes

    def take(self, positions):
        return self._rows[positions], self._membership[positions]


class Blocks:
    """A source of rows, or codes, that are given in blocks; all or none are present."""

    max_rows, n_classes, database = None, 1, None

    def __init__(self, *blocks, absent=False, n_records=None):
        self._blocks, self._absent = blocks, absent
        self.n_records = sum(map(len, blocks)) if n_records is None else n_records

    def add_up(self, function):
        return function(self)

    def blocks(self, name, size=None):
        for block in self._blocks:
            membership = torch.full((len(block), 1), 1.0 - self._absent, dtype=torch.float64)
            yield torch.as_tensor(block), membership

    codes = blocks


def assert_variance(values, std):
    values = np.ravel(values) / std
    low, high = stats.chi2(values.size).ppf([1e-5, 1 - 1e-5])
    assert low < (values**2).sum() < high
    assert high / low < 2  # else no factor of √2 would show
