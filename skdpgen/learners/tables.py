# SPDX-License-Identifier: BSD-3-Clause
"""Training of networks or particles on released two-way contingency tables."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch

from ..mechanisms.multi_way import MultiWayTables
from ..mechanisms.two_way import Tables, select_cells
from ..quality import WITHIN_NOISE
from .dependence import estimate_with_empty, list_own_tables, shrink_to_independence
from .marginals import Marginals
from .moments import find_clear_moments
from .table_rows import StratifiedRows, TableParticles, TableRows
from .table_targets import SubsetsTarget, TablesTarget
from .training import CONSTANTS as TRAINING
from .training import Descent, Training, descend_to_noise, minimize_exactly, run_steps


@dataclass(frozen=True)
class TableConstants:
    """Constants of training on tables; all are set by hand."""

    # Training on exact tables: its learning rate and the steps over which that rises, most steps,
    # and the gap at which it ends, relative to the energy of the noise.
    exact_rate: float = 0.1
    exact_warm_up: int = 10
    most_exact: int = 60
    near: float = 3.0
    # Least share of a stratum in a batch.
    least_batch: float = 0.25
    # Expected share of noise among the moments that are matched, and iterations of the matching.
    noise_rate: float = 0.01
    n_iterations: int = 20
    # Training on estimated tables: its learning rate and steps.
    clear_rate: float = 0.2
    n_clear: int = 50
    # Rounds of the final matching of marginals, and most batches of a round, one for so many steps
    # of training.
    n_rounds: int = 6
    most_batches: int = 16
    steps_per_batch: int = 16
    # Counts are matched if they exceed this number of standard deviations of their noise.
    clear: float = 4.0


CONSTANTS = TableConstants()


def fit_to_release(
    make_rows: Callable,
    tables: Tables,
    marginals: Marginals,
    *,
    multi_way: MultiWayTables | None = None,
    **training,
) -> tuple[TableRows | StratifiedRows, list[float]]:
    """Train rows to match the released tables, up to the noise.

    Parameters
    ----------
    make_rows, **training
        As in `fit_to_tables`.
    tables : skdpgen.mechanisms.two_way.Tables
        Tables of all records, or stratified tables.
    marginals : Marginals
        From the same tables.
    multi_way : skdpgen.mechanisms.multi_way.MultiWayTables, default=None
        Tables of some subsets of columns; if records are stratified, with their stratum as the last
        factor.

    Returns
    -------
    rows : TableRows or StratifiedRows
    losses : list of float
    """
    if tables.cells.ndim == 1:
        return fit_to_tables(make_rows, [tables], [marginals], multi_way=multi_way, **training)
    counts, std = tables.count_records()
    counts = np.maximum(counts, max(std, 1.0))
    strata = [tables.stratum(i) for i in range(len(counts))]
    strata_marginals = [
        marginals.of_stratum(stratum, tables.by, count)
        for stratum, count in zip(strata, counts, strict=True)
    ]
    start = None if tables.by is None else tables.by.start
    if start is not None and multi_way is not None:
        start = sum(multi_way.refinement.knot_sizes[: multi_way.by])
    rows, losses = fit_to_tables(
        make_rows, strata, strata_marginals, multi_way=multi_way, **training
    )
    if tables.by is not None:
        # Classifiers would learn a class that is mere noise.
        counts[marginals.is_empty[tables.by]] = 0
    return StratifiedRows(rows, counts / counts.sum(), start).eval(), losses


def fit_to_tables(
    make_rows: Callable,
    tables: list[Tables],
    marginals: list[Marginals],
    *,
    n_steps: int,
    batch_size: int,
    learning_rate: float,
    generator: torch.Generator,
    device: torch.device,
    multi_way: MultiWayTables | None = None,
    verbose: int = 0,
) -> tuple[TableRows, list[float]]:
    """Train rows to match the released one-way and two-way tables, up to the noise.

    The loss weights differences by the precision of the noise.

    Parameters
    ----------
    make_rows : callable
        Returns the `TableRows` to train, for the shares of the strata, the sizes of the columns and
        noisy marginals of shape (n_strata, n_levels).
    tables : list of skdpgen.mechanisms.two_way.Tables
        The released tables of each stratum of the records.
    marginals : list of Marginals
        The marginals of each stratum.
    n_steps, batch_size : int
        Largest number of steps, and number of generated rows in a step.
    learning_rate : float
        Learning rate of Adam, between a warm-up and a linear decay.
    device : torch.device
        Where training runs.
    multi_way : skdpgen.mechanisms.multi_way.MultiWayTables, default=None
        As in `fit_to_release`. Rows then have the finer levels of these tables.
    generator, verbose
        As in `fit_to_sketch`.

    Returns
    -------
    rows : TableRows
        With averaged weights, on the CPU and in evaluation mode.
    losses : list of float
        At each step, the estimated squared distance between generated and noisy tables.
    """
    counts = np.array([stratum.n_records for stratum in marginals])
    shares = counts / counts.sum()
    released, (tables, kept) = tables, shrink_to_independence(tables, marginals)
    targets = [
        TablesTarget.of(stratum, n, share, device, noise)
        for stratum, n, share, noise in zip(tables, counts, shares, kept, strict=True)
    ]
    # The tables of a stratum within its noise tell nothing, and are left out.
    is_lost = counts <= WITHIN_NOISE * tables[0].count_records()[1] * (len(tables) > 1)
    is_told = ~is_lost | is_lost.all()
    noise_energies = [
        math.inf if lost else target.noise_energy
        for lost, target in zip(is_lost, targets, strict=True)
    ]
    sizes, coarsen, subsets, fine = tables[0].sizes, None, [], marginals
    if multi_way is not None:
        refinement = multi_way.refinement.without(multi_way.by)
        sizes, coarsen = refinement.fine_sizes, refinement.to_coarse()
        fine = [stratum.refined(coarsen.numpy()) for stratum in marginals]
        coarsen = coarsen.to(device, torch.float32)
        subsets = [
            SubsetsTarget.of(multi_way, i, sizes, *args, device)
            for i, args in enumerate(zip(tables, counts, shares, strict=True))
        ]
        # Training goes on: if it ended at their noise, trees would lose 0.05 (XOR of 4 columns).
        noise_energies += [0.0] * len(subsets)
    frequencies = np.stack([stratum.starts for stratum in fine])
    starts = torch.tensor(frequencies, dtype=torch.float32, device=device)
    rows = make_rows(shares.tolist(), sizes, starts).to(device)
    rows.forbid(fine[0].is_empty)
    energies = torch.tensor(noise_energies, device=device)
    if isinstance(rows, TableParticles):
        approach_noise(rows, targets, subsets, coarsen, energies)
    energies = energies[np.resize(is_told, len(energies))]
    training = Training(rows, learning_rate, memory=0.99)
    # Many strata need no larger batches than few.
    least = np.where(is_lost, 0, min(CONSTANTS.least_batch, 1 / len(tables)))
    half = [max(1, round(size * batch_size) // 2) for size in np.maximum(shares, least)]
    batch = [2 * size for size in half]
    history: list[torch.Tensor] = []

    def loss():
        drawn = rows(rows.draw_pair(half, generator))
        levels = drawn if coarsen is None else drawn @ coarsen
        gaps = []
        for parts, samples in ((targets, levels), (subsets, drawn)):
            pairs = zip(*(sample.split(half) for sample in samples.chunk(2)), strict=True)
            told = zip(parts, pairs, is_told, strict=False)
            gaps += [part.gap(*pair) for part, pair, tells in told if tells]
        return hold_at_noise(torch.stack(gaps), energies, history)

    descend_to_noise(training, loss, energies, n_steps, verbose)
    losses = torch.stack(history).sum(1).tolist()
    rows = training.finish(lambda: rows.draw(batch, generator))
    if multi_way is not None:
        rows.to_knots = refinement.to_knots().float()
    estimated = np.stack(
        [estimate_with_empty(*args) for args in zip(released, marginals, kept, strict=True)]
    )
    rows = rows.to(device)
    match_clear(rows, released, marginals, subsets, coarsen, generator, n_steps, estimated)
    rows.cpu()
    n_batches = min(CONSTANTS.most_batches, 1 + len(losses) // CONSTANTS.steps_per_batch)
    match_marginals(rows, fine, n_batches * [batch], generator)
    return rows, losses


def approach_noise(
    rows: TableParticles,
    targets: list[TablesTarget],
    subsets: list[SubsetsTarget],
    coarsen: torch.Tensor | None,
    noise_energies: torch.Tensor,
) -> None:
    """Train particles on their exact tables, until gaps are a few times the energy of the noise.

    Exact tables have no sampling error, so that large steps are stable. Nearer to the noise, they
    would fit more of it than tables of samples do.

    `coarsen` maps the levels of rows to those of the tables. Strata that are within their noise
    have infinite energies, and stay as they are.
    """
    for i, particles in enumerate(rows.logits.detach().split(rows.n_particles)):
        if noise_energies[i].isinf():
            continue
        limits = CONSTANTS.near * noise_energies[i :: len(targets)]
        logits = particles.clone().requires_grad_()
        descent = Descent([logits], CONSTANTS.exact_rate, warm_up=CONSTANTS.exact_warm_up)
        for _ in range(CONSTANTS.most_exact):
            drawn = rows.to_probabilities(logits)
            levels = drawn if coarsen is None else drawn @ coarsen
            gaps = [targets[i].gap(levels, levels)]
            gaps += [part.gap(drawn, drawn) for part in subsets[i : i + 1]]
            gap = torch.stack(gaps)
            if bool((gap <= limits).all()):
                break
            descent.step(gap, 1.0)
        particles.copy_(logits.detach())


def hold_at_noise(
    gaps: torch.Tensor, noise_energies: torch.Tensor, history: list[torch.Tensor]
) -> torch.Tensor:
    """Return the gaps of all parts, with gradients of those above the noise only.

    A part is at its noise if its mean gap over the last steps is at most its noise energy. With
    gradients it would overfit the noise while other parts still learn. If all parts are at their
    noise, all have gradients.

    `history` has the gaps of earlier steps; the function appends these.
    """
    is_above = torch.ones_like(gaps, dtype=torch.bool)
    if len(history) >= TRAINING.window:
        is_above = torch.stack(history[-TRAINING.window :]).mean(0) > noise_energies
    history.append(gaps.detach())
    return torch.where(is_above | ~is_above.any(), gaps, gaps.detach())


def match_clear(
    rows: TableRows,
    tables: list[Tables],
    marginals: list[Marginals],
    subsets: list[SubsetsTarget],
    coarsen: torch.Tensor | None,
    generator: torch.Generator,
    n_steps: int = CONSTANTS.n_iterations,
    estimated: np.ndarray | float = np.nan,
) -> None:
    """Change rows to match tables and moments that are clear of noise.

    See `estimate_with_empty` and `find_clear_moments`.

    Training stops within the noise of all cells together. All else is held as it is.

    `coarsen` is as in `approach_noise`. `estimated` are the cells of tables that are matched, NaN
    in others, of which clear moments are.
    """
    codes, sizes = rows.draw(rows.n_codes, generator), tables[0].sizes
    counts = np.array([stratum.n_records for stratum in marginals])

    def generate():
        drawn = rows(codes)
        levels = drawn if coarsen is None else drawn @ coarsen
        return levels.split(rows.n_codes), drawn.split(rows.n_codes)

    with torch.no_grad():
        levels, drawn = generate()
        generated = [_expect_tables(*args) for args in zip(tables, levels, counts, strict=True)]
        subsets = [target.moved_to(part) for target, part in zip(subsets, drawn, strict=False)]
    pairs = zip(tables, generated, strict=True)
    residuals = np.stack([stratum.cells - expected.cells for stratum, expected in pairs])
    is_knot = marginals[0].is_knot
    # Errors of less than a record do not matter.
    std = max(tables[0].pairs_std, 1.0)
    clear = find_clear_moments(residuals, sizes, is_knot, std, CONSTANTS.noise_rate)
    estimated = np.broadcast_to(estimated, clear.shape)
    is_estimated = ~np.isnan(estimated)
    before = np.stack([expected.cells for expected in generated])
    clear = np.where(is_estimated, estimated - before, clear)
    if not clear.any():
        return
    targets = [
        TablesTarget.of(replace(stratum, cells=stratum.cells + change), n, share, codes.device)
        for stratum, change, n, share in zip(
            generated, clear, counts, counts / counts.sum(), strict=True
        )
    ]

    for target, cells, marginal in zip(targets, estimated, marginals, strict=True):
        for own, table in list_own_tables(cells, sizes, marginal):
            target.add(own, table)

    def loss():
        gaps = [
            target.gap(part, part)
            for parts in zip((targets, subsets), generate(), strict=True)
            for target, part in zip(*parts, strict=False)
        ]
        return torch.stack(gaps).sum()

    if is_estimated.any() and isinstance(rows, TableParticles):
        descent = Descent(rows.parameters(), CONSTANTS.clear_rate, warm_up=CONSTANTS.exact_warm_up)
        n_clear = min(n_steps, CONSTANTS.n_clear)
        run_steps(lambda rate: descent.step(loss(), rate), n_clear)
    else:
        minimize_exactly(rows, loss, min(n_steps, CONSTANTS.n_iterations))


def _expect_tables(released, levels, n_records):
    """Return the tables that generated rows have in place of the released ones of a stratum."""
    products = (n_records / len(levels) * levels.T @ levels).double().cpu().numpy()
    columns = released.weight * (n_records * levels.mean(0)).cpu().numpy()
    return replace(released, cells=select_cells(products, released.sizes), columns=columns)


@torch.no_grad()
def match_marginals(
    rows: TableRows,
    marginals: list[Marginals],
    batches: list[list[int]],
    generator: torch.Generator,
) -> None:
    """Shift logits until generated rows match the released marginals.

    Training stops within the noise of all tables. Marginals have far less noise, and the mean of a
    numeric column depends on the shares of a few levels.

    `batches` are the numbers of rows of each stratum in each batch of a round.
    """
    # Rare levels are excluded: of their noise, only positive values could be matched.
    targets = [
        np.where(stratum.counts > CONSTANTS.clear * stratum.std, stratum.counts, 0)
        / stratum.n_records
        for stratum in marginals
    ]
    shares = torch.as_tensor(np.stack(targets))
    for n_before in range(CONSTANTS.n_rounds):
        generated = torch.zeros_like(shares)
        for sizes in batches:
            strata = rows(rows.draw(sizes, generator)).double().split(sizes)
            generated = generated + torch.stack([part.mean(0) for part in strata]) / len(batches)
        # Smaller steps in later rounds average over the sampling error of batches.
        change = (shares / generated).log() / (n_before + 1) ** 0.5
        is_matched = (shares > 0) & (generated > 0)
        rows.shift(change.where(is_matched, 0).clamp(-1, 1).to(rows.offset))
