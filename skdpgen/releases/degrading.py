# SPDX-License-Identifier: BSD-3-Clause
"""Degraded releases: published tables with more noise; doc/theory/degraded.rst has the proof."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
from dp_accounting import ComposedDpEvent

from ..accounting.accountants import ledger_epsilon
from ..accounting.calibration import calibrate_noise, check_epsilon
from ..accounting.events import DegradedGaussianDpEvent, plain_multiplier
from ..accounting.rounding import show
from ..curator.curator import find_digest
from ..mechanisms.base import Measurement
from ..mechanisms.noise import NoiseSource
from ..mechanisms.two_way import Tables, TablesMechanism, own_and_later
from .two_way_tables import TwoWayTables

# Least noise, in steps of the grid, by which the proof's bound is below 1e-136; a margin of its
# variance for rounding; and bits of the first tables that the degraded ones do not tell.
_LEAST_STEPS, _MARGIN, _LEAST_BITS = 4.0, 2.0**-48, 128
_HELD = (
    "whoever also holds the release that a degraded one was made of, whose digest is listed first, "
    "has the ε of that release, for both together; its BLAKE2b digest cannot be inverted"
)


def degrade(published, epsilon: float):
    """Return published tables with more noise; see `PublishedRelease.degrade`."""
    published.check()
    tables, certificate, plan = published.main, published.certificate, published.plan
    if not (isinstance(tables, Tables) and isinstance(published.release, TwoWayTables)):
        raise ValueError("Only two-way tables can be degraded: fit with release='sketch' to them.")
    if certificate.digest is None:
        raise ValueError(
            "Only the tables of a single fit can be degraded. Degrade each part of a sum before "
            "merge, and a degraded release again from the release of the fit."
        )
    n = published.n_inferred
    before, (name, event) = plan.releases[:n], plan.releases[n]
    if (multiplier := plain_multiplier(event)) == 0:
        raise ValueError("Tables without noise cannot be degraded: fit with a finite epsilon.")
    terms = {"accountant": plan.accountant, "relation": plan.relation}
    # Of the values that inferred the schema, which stay, and of these and the tables.
    costs = [
        ledger_epsilon([one for _, one in plan.releases[:stop]], plan.delta, **terms) if stop else 0
        for stop in (n, n + 1)
    ]
    epsilon = check_epsilon(epsilon)
    if not costs[0] < epsilon < costs[1]:
        raise ValueError(
            f"epsilon must be below {show(costs[1])}, the cost of the tables, and above "
            f"{show(costs[0])}, that of a schema that was not declared; got {epsilon!r}."
        )

    def plan_at(level):
        return *before, (name, DegradedGaussianDpEvent(level))

    level = calibrate_noise(
        lambda level: ComposedDpEvent([one for _, one in plan_at(level)]),
        epsilon,
        plan.delta,
        guess=multiplier,
        **terms,
    )
    mechanism, measured = _find_grid(published, event)
    ratio, scale = level / multiplier, measured.released_scale
    std = measured.context * math.sqrt(max(0.0, ratio**2 * (1 + _MARGIN) - 1))
    if not std * scale >= _LEAST_STEPS * ratio:
        raise ValueError(
            f"epsilon = {epsilon!r} needs too little noise for the grid of the release, whose "
            f"tables cost {show(costs[1])}. Choose a smaller one."
        )
    noisy = mechanism.restore(tables, measured)
    # Of the two noises, this much is left of the first, in steps, beside a degraded cell.
    if noisy.size * math.log2(std * scale / ratio) < _LEAST_BITS:
        raise ValueError(
            "Tables of so few cells cannot be degraded: the digest on the certificate would tell "
            "them. Fit to more columns, or fit again with the smaller epsilon."
        )
    more = Measurement(noisy, scale, std, context=measured.context * ratio)
    values = *published.values[:n], mechanism.postprocess(more.add_noise(NoiseSource()), more)
    sigma = None if plan.sigma is None else plan.sigma * ratio
    plan = replace(plan, releases=plan_at(level), epsilon=epsilon, sigma=sigma)
    certificate = replace(
        certificate,
        releases=tuple(name for name, _ in plan.releases),
        events=plan.events,
        digests=((certificate.digest, find_digest(values)),) * (n + 1),
        sigma=sigma,
        assumptions=(*certificate.assumptions, _HELD),
    )
    return replace(published, plan=plan, values=values, certificate=certificate, digest=None)


def _find_grid(published, event):
    """Return the mechanism of tables, and the grid of its sums: that of sums over no record."""
    tables, weight = published.main, published.plan.weight
    shape = (*tables.cells.shape[:-1], tables.cells.shape[-1] + tables.columns.shape[-1])
    n_records = published.n_samples * (weight or 1)
    source = SimpleNamespace(
        n_records=n_records, max_rows=weight, add_up=lambda add: np.zeros(shape, np.int64)
    )
    sizes = published.format.code_sizes
    blocks = [own for own, _ in own_and_later(sizes)]
    mechanism = TablesMechanism(sizes, None if tables.by is None else blocks.index(tables.by))
    return mechanism, mechanism.query(source, event, published.plan.relation, NoiseSource())
