# SPDX-License-Identifier: BSD-3-Clause
"""Training on two-way tables, then on multi-way tables of columns with strong interactions."""

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from scipy.stats import norm
from tqdm import tqdm

from ..mechanisms.codes import Refinement
from ..mechanisms.multi_way import Factor, MultiWayTables
from ..mechanisms.noise import NoiseSource
from ..mechanisms.two_way import Tables
from .interface import Sampler
from .marginals import Marginals, read_tables
from .tables import fit_to_release


@dataclass(frozen=True)
class InteractionConstants:
    """Constants of the search for interactions; all are set by hand."""

    # Probability that noise alone makes any interaction significant.
    chance: float = 0.01
    # Least size of a relevant interaction, as a share of the records: without its table, rows are
    # wrong by at least half of it in total variation.
    relevant: float = 0.05
    # The same for interactions of two columns with the target: stratified tables show them already,
    # and only finer levels are new.
    strong: float = 0.5
    # Generated rows with which released interactions are compared.
    n_rows: int = 20_000
    # Largest number of subsets of columns that get tables.
    n_subsets: int = 20
    # Least size of an interaction, in standard deviations of the noise on a cell of its tables.
    worth: float = 8.0
    # Rows that match noisy pairs predict weaker interactions than the exact pairs imply. One of up
    # to so many times the prediction gets no table: tables of 2.2 times (marital status,
    # relationship and sex, on Adult) gained nothing.
    blur: float = 3.0


CONSTANTS = InteractionConstants()


def fit_to_table(
    release, curator, format, make_rows: Callable, noise: NoiseSource, **training
) -> Sampler:
    """Make the planned releases of a table, and train rows until they match, up to the noise.

    An interaction of columns is the mean product of their signs: -1 and 1 for the two halves of the
    levels of a column. Rows that match the released pairs predict it. Subsets whose released
    interaction differs get multi-way tables, and rows are trained on all tables. The returned
    format has finer knots in these columns, and no absent classes; the report names the subsets.

    Parameters
    ----------
    release : TwoWayTables
    curator : Curator
        Closed here after the last release.
    format : TableFormat
        A resolved format.
    make_rows, **training
        As in `fit_to_tables`.
    noise : NoiseSource
    """
    tables = release.run(curator, format)
    has_subsets = release.multi_way in dict(curator.plan.releases)
    if not has_subsets:
        curator.close()
    marginals, report = read_tables(tables, format, curator.n_rows)
    std = marginals.std / max(marginals.n_records, 1)
    format = replace(
        format.without_absent(marginals.is_empty),
        share_std={name: float(np.median(std[where])) for name, where in format.blocks},
    )
    if sum(c.missing or bool(getattr(c, "atoms", ())) for c in format.schema.learned.values()) > 1:
        from ..tables.evidence import find_coincident  # not every table has point masses

        format = replace(format, coincident=find_coincident(format, tables, marginals.counts))
    training |= {"device": curator.device, "generator": noise.torch_generator()}
    rows, losses = fit_to_release(make_rows, tables, marginals, **training)
    subsets: list[tuple[int, ...]] = []
    if has_subsets:
        search = InteractionSearch(release, curator, format, tables, marginals)
        subsets, multi_way, format = search.run(
            rows, training["generator"], noise.public_generator()
        )
        curator.close()
    if subsets:
        rows, more = fit_to_release(make_rows, tables, marginals, multi_way=multi_way, **training)
        losses += more
    names = [name for name, _ in format.blocks]
    # After all columns, a numeric target's halves may be one more; it is shown as the target.
    named = [*names, format.layout and format.layout.label]
    kept = [list(dict.fromkeys(named[c] for c in sorted(subset))) for subset in subsets]
    shown = [" × ".join(map(str, columns)) for columns in kept]
    for name in names:
        texts = [text for text, columns in zip(shown, kept, strict=True) if name in columns]
        report.loc[name, "interactions"] = "; ".join(texts) or None
    if training["verbose"]:
        text = ("; ".join(shown) or "none") if has_subsets else "not sought"
        tqdm.write(f"interactions of three or more columns: {text}", file=sys.stderr)
    return Sampler(rows, losses, format=format, report=report)


@dataclass(frozen=True)
class InteractionSearch:
    """Search for interactions that pairs do not explain, and release of their tables.

    Attributes
    ----------
    release, curator, format
        As in `fit_to_table`.
    tables : Tables
        The released pairs.
    marginals : Marginals
        From the same tables.
    """

    release: Any
    curator: Any
    format: Any
    tables: Tables
    marginals: Marginals

    def run(
        self, rows, generator: torch.Generator, public: np.random.Generator
    ) -> tuple[list[tuple[int, ...]], MultiWayTables, Any]:
        """Release interactions of all candidates, and multi-way tables of the chosen ones.

        `rows` match the released pairs. Return the chosen subsets of columns, their tables, or
        those of the first candidate if none is chosen, and the format with the levels of these
        tables.
        """
        release, curator, sizes = self.release, self.curator, tuple(self.format.code_sizes)
        by = release.find_strata(curator.plan, curator.n_records, self.format)
        n_columns = len(self.format.blocks)
        candidates = release.list_subsets(curator.plan, curator.n_records, len(sizes), by)
        halve = partial(halve_levels, is_ordered=self.format.is_ordered, public=public)
        signs = halve(self.marginals.counts, sizes[:n_columns])
        if by is not None:
            signs[by : by + 1] = [torch.eye(sizes[by]).double()]
        products = [[(c, signs[c]) for c in subset] for subset in candidates]
        released = release.run_interactions(curator, Refinement.none(sizes), products)
        others = [[c for c in subset if c != by] for subset in candidates]
        predicted = predict_interactions(rows, sizes, by, signs, others, generator)
        found = find_subsets(
            np.stack([table.ravel() for table in released.cells]),
            predicted,
            np.atleast_1d(self.tables.count_records()[0]).clip(min=1),
            released.std,
            candidates,
            release.noise_on(curator.plan, release.multi_way),
            is_stratified=by is not None,
        )
        # The spent budget must not depend on the records: the planned tables are always released.
        chosen = found or candidates[:1]
        format, refinement = self.format.refine({c for subset in found for c in subset})
        learned = refinement.without(n_columns)
        counts = self.marginals.refined(learned.to_coarse().numpy()).counts
        signs = halve(counts, learned.fine_sizes)
        products = list_products(chosen, by, refinement.fine_sizes, signs)
        multi_way = release.run_multi_way(curator, self.format, refinement, products)
        return found, replace(multi_way, by=by), format


def list_products(
    subsets: Sequence[tuple[int, ...]],
    by: int | None,
    sizes: Sequence[int],
    signs: Sequence[torch.Tensor],
) -> list[list[Factor]]:
    """List the factors of tables: for each column of a subset, its levels by the others' signs.

    They show where along a column an interaction changes, with fewer cells than all levels have.

    The levels of `by`, by which records are stratified, are in each table, at the end.
    """
    products = []
    for subset in subsets:
        others = [c for c in subset if c != by]
        last = [] if by is None else [(by, torch.eye(sizes[by]).double())]
        # The sign of a column of two levels determines the level.
        for column in [c for c in others if sizes[c] > 2] or others[:1]:
            rest = [(c, signs[c]) for c in others if c != column]
            products.append([(column, torch.eye(sizes[column]).double()), *rest, *last])
    return products


def halve_levels(
    counts: np.ndarray,
    sizes: Sequence[int],
    is_ordered: Sequence[bool],
    public: np.random.Generator,
) -> list[torch.Tensor]:
    """Return the sign of each level of each column: -1 or 1 for halves of about equal counts.

    Ordered levels are divided in their order, others in random order.
    """
    signs, starts = [], np.cumsum(sizes)[:-1]
    for own_counts, has_order in zip(np.split(counts, starts), is_ordered, strict=True):
        size = len(own_counts)
        is_upper = order = np.arange(size)
        if size > 2:
            order = order if has_order else public.permutation(size)
            shares = np.maximum(own_counts[order], 1e-9)
            # By the middle of each level; the first and last level are in different halves.
            is_upper = (shares.cumsum() - shares / 2) / shares.sum() * 2 >= 1
            is_upper[0], is_upper[-1] = False, True
        sign = torch.empty(size, 1).double()
        sign[order, 0] = torch.tensor(2.0 * is_upper - 1)
        signs.append(sign)
    return signs


@torch.no_grad()
def predict_interactions(
    rows,
    sizes: Sequence[int],
    by: int | None,
    signs: Sequence[torch.Tensor],
    subsets: Sequence[Sequence[int]],
    generator: torch.Generator,
) -> np.ndarray:
    """Return the interactions of generated rows: their mean products of signs.

    `by` is the column by which rows are stratified, which `subsets` lack. Of shape (n_subsets,
    n_strata).
    """
    strata = rows if by is None else rows.rows
    counts = [CONSTANTS.n_rows] * (1 if by is None else sizes[by])
    columns = [c for c in range(len(sizes)) if c != by]
    means = []
    for part in strata(strata.draw(counts, generator)).double().cpu().split(counts):
        blocks = part.split([sizes[c] for c in columns], dim=1)
        signed = {c: (block @ signs[c])[:, 0] for c, block in zip(columns, blocks, strict=True)}
        means.append([math.prod(signed[c] for c in subset).mean().item() for subset in subsets])
    return np.array(means).T


def find_subsets(
    released: np.ndarray,
    predicted: np.ndarray,
    counts: np.ndarray,
    std: float,
    subsets: Sequence[tuple[int, ...]],
    table_std: float,
    *,
    is_stratified: bool,
) -> list[tuple[int, ...]]:
    """Return the subsets of columns whose tables are worth their noise.

    An interaction is significant if its excess over the prediction exceeds noise and sampling error
    (normal quantiles with a Bonferroni correction), and worth tables if it exceeds their noise.
    All tables share a budget: each of K tables has √K times the noise. Supersets of a chosen subset
    are skipped, as they show the same interaction.

    `released` are noisy sums of products of signs, with noise `std`, and `predicted` mean products
    that the pairs imply, both of shape (n_subsets, n_strata); `table_std` is the noise on the cells
    of a single table.
    """
    n_columns = np.array([len(subset) for subset in subsets])
    # The pairs of each stratum include these: their size is how far strata differ from the mean.
    is_known = np.full(len(subsets), is_stratified) & (n_columns == 3)
    pooled = released.sum(1, keepdims=True) / counts.sum()
    implied = np.where(is_known[:, None], pooled, predicted)
    blurred = implied * np.where(is_known, 1.0, CONSTANTS.blur)[:, None]
    ends = np.sort(counts * np.stack([implied, blurred.clip(-1, 1)]), axis=0)
    # No sum of signs exceeds the number of records.
    sums = released.clip(-counts, counts)
    gaps = np.abs(sums - sums.clip(*ends))
    error_std = np.sqrt(std**2 + counts + counts**2 / CONSTANTS.n_rows)  # noise, records, rows
    clear = norm.isf(CONSTANTS.chance / (2 * gaps.size)) * error_std
    sizes = gaps.sum(1)
    least = np.where(is_known, CONSTANTS.strong, CONSTANTS.relevant) * counts.sum()
    candidates = np.flatnonzero((gaps > clear).any(1) & (sizes > least)).tolist()
    found: list[tuple[int, ...]] = []
    n_tables = 0
    for i in sorted(candidates, key=lambda i: (n_columns[i], -sizes[i])):
        if any(set(smaller) <= set(subsets[i]) for smaller in found):
            continue
        n_more = len(subsets[i]) - is_stratified
        if sizes[i] > CONSTANTS.worth * table_std * math.sqrt(n_tables + n_more):
            found.append(subsets[i])
            n_tables += n_more
    return found[: CONSTANTS.n_subsets]
