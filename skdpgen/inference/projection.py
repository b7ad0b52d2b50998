# SPDX-License-Identifier: BSD-3-Clause
"""Projections of influences on the features whose noisy sums were released."""

import itertools
import math

import numpy as np
import pandas as pd
import torch
from scipy import stats

from ..mechanisms.codes import HatBasis
from ..mechanisms.two_way import Tables
from ..tables.encoder import TableEncoder
from .constants import CONSTANTS
from .model import N_PARTS


class Features:
    """The released sums that concern some columns, as noisy means of features of a record.

    Attributes
    ----------
    sums, std : ndarray of shape (n_features,)
        Noisy sums over the records, and standard deviations of their independent noise.
    """

    def __init__(self, tables: Tables, format, columns):
        names = [name for name, _ in format.blocks]
        self._encoder, self._sizes = TableEncoder(format.schema), format.block_sizes
        label = format.layout.label if tables.by is not None else None
        self._by = None if label is None else names.index(label)
        self._strata = label in columns
        kept = [i for i in range(len(names)) if i != self._by]
        # Positions among all columns, and among those of the tables.
        self._used = [(i, c) for c, i in enumerate(kept) if names[i] in columns]
        self._pairs = list(itertools.combinations(range(len(self._used)), 2))
        sizes = [self._sizes[i] for i, _ in self._used]
        n_features = sum(sizes) + sum(sizes[a] * sizes[b] for a, b in self._pairs)
        n_features = (n_features or 1) * (self._sizes[self._by] if self._strata else 1)
        self._fine, fine = _select_histograms(format, columns)
        n_features += len(fine)
        if n_features > CONSTANTS.max_features:
            raise ValueError(
                f"The statistic depends on columns {list(columns)}, whose tables have "
                f"{n_features:,} cells, more than {CONSTANTS.max_features:,}: estimate statistics "
                "of fewer columns at once."
            )
        least, most = CONSTANTS.probes
        self.n_probes = min(most, max(least, CONSTANTS.rows_per_feature * n_features))
        sums, std = self._read(tables)
        if tables.columns.ndim > 1 and not self._strata:
            sums, std = sums.sum(0), std * math.sqrt(len(sums))
        noise = np.full(len(fine), format.histograms.std if len(fine) else 0.0)
        self.sums = np.concatenate([sums.ravel(), fine])
        self.std = np.concatenate([np.broadcast_to(std, sums.shape).ravel(), noise])

    def _read(self, tables):
        """Return the sums of each stratum, if there are strata, and the std of their noise."""
        used = [c for _, c in self._used]
        if not used:
            counts, std = tables.count_records()
            return np.asarray(counts)[..., None], np.array([std])
        sums, std = [], []
        for c in used:
            counts, precision = _count_alone(tables, c, used)
            sums.append(counts)
            std.append(np.full(counts.shape[-1], tables.columns_std / math.sqrt(precision)))
        for a, b in self._pairs:
            cells = tables.pair(used[a], used[b])
            sums.append(cells.reshape(*cells.shape[:-2], -1))
            std.append(np.full(sums[-1].shape[-1], tables.pairs_std))
        return np.concatenate(sums, axis=-1), np.concatenate(std)

    def evaluate(self, rows):
        """Return the features of rows, of shape (n_rows, n_features)."""
        codes = torch.from_numpy(self._encoder.encode_cells(rows[list(self._encoder.schema)]))
        basis = HatBasis(codes, self._sizes)
        starts = np.cumsum([0, *self._sizes])
        dense = basis.to_dense().numpy()
        blocks = [dense[:, starts[i] : starts[i + 1]] for i, _ in self._used]
        parts = [*blocks, *(_multiply(blocks[a], blocks[b]) for a, b in self._pairs)]
        features = np.concatenate(parts, axis=1) if parts else np.ones((len(rows), 1))
        if self._strata:
            by = dense[:, starts[self._by] : starts[self._by + 1]]
            features = _multiply(by, features)
        if self._fine is not None:
            fine = self._fine.encode_private(rows[list(self._fine.schema)])
            features = np.hstack([features, fine * math.sqrt(len(self._fine.schema))])
        return features


def _select_histograms(format, columns):
    """Return the encoder of the columns with histograms, or None, and the counts of these."""
    found = format.histograms
    names = () if found is None else [n for n in columns if n in found.schema]
    # Integers of few values may have become classes, whose counts are in the tables.
    names = [name for name in names if format.schema[name].has_knots]
    if not names:
        return None, np.empty(0)
    where = dict(TableEncoder(found.schema).blocks)
    encoder = TableEncoder(found.schema.select(names))
    return encoder, np.concatenate([found.counts[where[name]] for name in names])


def _count_alone(tables, c, used):
    """Return counts of a column's levels without its tables with other columns in use.

    They are precise beyond the row sums of those tables, with independent noise, by a precision
    relative to the one-way table; see `Tables.count_levels`.
    """
    ends = np.cumsum([0, *tables.sizes])
    total = tables.weight * tables.columns[..., ends[c] : ends[c + 1]]
    precision = tables.weight**2
    for d, size in enumerate(tables.sizes):
        if d not in used:
            total = total + 2 / size * tables.pair(c, d).sum(-1)
            precision += 2 / size
    # Without any information, the noise is as good as infinite.
    precision = max(precision, 1e-12)
    return total / precision, precision


def _multiply(first, second):
    return (first[:, :, None] * second[:, None]).reshape(len(first), -1)


class Projection:
    """Projects influences of probes on released features, and corrects estimates by their sums."""

    def __init__(self, model, features, probes, influence, misfit) -> None:
        self._model, self._features, self._misfit = model, features, misfit
        base = features.evaluate(model.rows)
        # Features in units of their noise, so that the norm of weights is that of the noise.
        self._mean = base.mean(0)
        self._base = (base - self._mean) / features.std
        self._probes = (features.evaluate(probes) - self._mean) / features.std
        self._part = np.arange(len(probes)) % N_PARTS
        # Statistics may be undefined for cells that the model lacks, such as missing values.
        is_left_out = (self._part == 2) & ~np.isfinite(influence).all(1)
        self._influence = np.where(is_left_out[:, None], 0, influence)
        self._shares = np.where(self._part < 2, 1.0, CONSTANTS.schema_weight) * ~is_left_out

    def estimate(self, value, interactions, level, names):
        """Return the table of estimates, given the values on synthetic rows.

        `interactions` bounds the biases by interactions that were not released.
        """
        model, features = self._model, self._features
        n, weights = model.n_records, self._solve(self._shares)[1]
        sums = (features.sums / n - self._mean) / features.std
        noise = np.linalg.norm(weights, axis=0) / n
        # The noise of the number of records changes all means alike.
        noise = np.hypot(noise, (self._mean / features.std) @ weights * model.count_std / n)
        left = self._find_residual()
        variance = (self._base @ weights).var(0) + left[self._part == 0].var(0)
        std_error = np.hypot(noise, np.sqrt(variance / n))
        bias = self._misfit * np.abs(left[self._part < 2]).mean(0) + interactions
        estimates = value + sums @ weights
        # The quantile of |N(bias, std_error²)|.
        with np.errstate(divide="ignore", invalid="ignore"):
            half = std_error * np.sqrt(stats.ncx2.ppf(level, 1, (bias / std_error) ** 2))
        # With a larger bias, the interval would be no better than the guess of the misfit.
        half = np.where(bias <= CONSTANTS.most_bias * std_error, half, np.nan)
        found = {
            "estimate": estimates,
            "std_error": std_error,
            "noise": noise,
            "not_released": bias,
            "lower": estimates - half,
            "upper": estimates + half,
        }
        return pd.DataFrame(found, index=pd.Index(names))

    def _find_residual(self):
        """Return the residuals of the features on probes that the weights were not fitted to."""
        left = np.empty_like(self._influence)
        for fold in (0, 1):
            is_out = np.arange(len(left)) // N_PARTS % 2 == fold
            level, weights = self._solve(self._shares * ~is_out)
            left[is_out] = self._influence[is_out] - level - self._probes[is_out] @ weights
        return left - left[self._part == 0].mean(0)

    def _solve(self, shares):
        """Return the levels and weights of the least sum of squared misfit and noise."""
        shares = shares / shares.sum()
        mean, level = shares @ self._probes, shares @ self._influence
        centred = self._probes - mean
        weighted = (centred * shares[:, None]).T
        gram = weighted @ centred
        gram[np.diag_indices_from(gram)] += (CONSTANTS.trade * self._model.n_records) ** -2.0
        weights = np.linalg.solve(gram, weighted @ (self._influence - level))
        return level - mean @ weights, weights
