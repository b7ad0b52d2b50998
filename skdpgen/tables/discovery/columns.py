# SPDX-License-Identifier: BSD-3-Clause
"""Private inference of undeclared column types, bounds and categories."""

import math
from dataclasses import replace
from functools import cached_property, partial

import numpy as np
import pandas as pd

from ...data.record_functions import RecordFunction
from ...mechanisms.level_counts import LevelCountsMechanism
from ...mechanisms.sums import CategoryCountsMechanism, WeightSumMechanism
from ...mechanisms.two_way import TablesMechanism
from ...quality import warn_of_columns
from ..columns.decimals import (
    DECIMALS,
    encode_decimals,
    find_decimals,
    list_counted,
    list_rough,
    read_levels,
)
from ..columns.number import N_KNOTS
from ..columns.texts import is_blank, parse_inferred
from ..columns.type_inference import KINDS, encode_types, find_types
from ..encoder import TableEncoder
from ..schema import Schema
from ..strata import may_stratify
from .budget import COUNTS, LOCATIONS, RANGES, split_budget
from .categories import TARGET_WEIGHT, check_type, with_categories
from .densities import Histogram, estimate_density
from .frequencies import FREQUENT, release_frequent
from .grids import (
    FEWEST_FINE,
    MOST_FINE,
    Histograms,
    Ranged,
    find_hidden,
    is_unresolved,
    read_clusters,
    refine_number,
    unit_of,
    widen,
    with_knots,
)
from .identifiers import may_identify
from .location import N_LEVELS, SIZE, encode_locations, place_counters, release_nothing
from .orders import reconcile_orders
from .point_masses import ValueCounts, with_atoms, with_candidates
from .ranges import (
    choose_per_octave,
    count_affordable,
    find_clear,
    find_cuts,
    find_range,
    narrow_range,
    quantile_knots,
)
from .tails import describe_loss
from .windows import weigh_sizes

# Knots that a column has in the end, at least; and what a cell of two columns is to have of the
# records, on average, in units of its noise: twice as much where the records of each level of the
# target have tables of their own (found on Adult and bank_marketing, on training rows).
_FEWEST, _CELL = 5, 10.0


class SchemaInference:
    """Closes a schema by private releases: histograms of numbers and dates, counts of categories.

    For undeclared columns, the first release counts how many cells parse as numbers, dates, and so
    on; each cell has one type. A record is encoded by the weight 1/√m at one type for each of the m
    columns: a non-negative vector of norm 1, and two of these are at most √2 apart. In counts this
    is a sensitivity of √m, or of √(2m) if a record is replaced. Later releases are in the plan
    whatever types are inferred.

    For undeclared numbers and dates, the decimals of their cells are counted in the same way; see
    `encode_decimals`.

    Open numbers and dates are counted near the knots of a wide grid, which shows their ranges, and
    then of a finer one within these; both show quantiles, and cuts between them: see `densities`.
    Numbers of which only knots are to be found are counted on the finer one alone. The more noise,
    the coarser are the grids: see `ranges`. Categories have noisy counts above a threshold.

    Parameters
    ----------
    schema : Schema
    texts : dict of str to TextStyle, default=None
        Columns that come as texts, whose kinds were found. If there are any, all releases are
        made, whatever the kinds.
    levels : dict of str to LevelCounts, default=None
        Counts of decimals, once these are released.
    label : str, default=None
        The target, by which tables may be stratified.
    has_classes : bool, default=True
        Whether integers with few values become classes if they are the target.

    Attributes
    ----------
    releases : tuple of str
        Names of the releases to plan, in order; empty if the schema declares everything.
    unknown : dict of str to Unknown
        Columns of which nothing is known.
    texts : dict of str to TextStyle
        After `run`, how the texts of these are written.
    counted : dict of str to list of Histogram
        After `run`, of numbers of which cuts were found: their noisy histograms.
    histograms : Histograms or None
        After `run`, the counts in which knots were found.
    """

    def __init__(self, schema, texts=None, levels=None, label=None, has_classes=True):
        self.schema = schema
        self.label, self.has_classes = label, has_classes
        self.texts = texts or {}
        self.unknown = {n: kind for n, kind in schema.learned.items() if kind.is_unknown}
        self.counted, self._frequent = {}, {}
        self.histograms: Histograms | None = None
        opened = [n for n in schema.undeclared if n not in self.unknown]
        self._categories = [n for n in opened if not schema[n].has_knots]
        self._open = [n for n in opened if n not in self._categories]
        # Those that are counted on the finer grid.
        self._scales = [n for n, k in schema.learned.items() if n in self._open or k.takes_knots]
        is_any = bool(self.unknown or texts)
        is_rough = levels is None and (is_any or bool(list_rough(schema)))
        self._graded, self._levels = list_counted(schema) if is_rough else (), levels or {}
        self.releases = (KINDS,) * bool(self.unknown)
        self.releases += (DECIMALS,) * is_rough
        self.releases += (FREQUENT, RANGES, LOCATIONS) * (is_any or bool(self._open))
        self.releases += (CategoryCountsMechanism.name,) * (is_any or bool(self._categories))
        self.releases += (COUNTS,) * (is_any or bool(self._scales))
        # Dates are counted as numbers of units since 1970.
        self._numbers = {name: schema[name].to_number() for name in self._scales}
        self._wide = {**schema.learned, **self._wrap(self._widen_all())}
        self._wide = {name: kind for name, kind in self._wide.items() if name not in self.unknown}

    @cached_property
    def _encoder(self):
        return TableEncoder(Schema(self._wide))

    def split_budget(self, share, noise=0.0):
        """Return the share of the budget of each release; see `split_budget`."""
        n_categories = len(self.unknown) + len(self._categories)
        return split_budget(self.releases, len(self.schema.undeclared), n_categories, share, noise)

    def encode(self, cells, y=None):
        """Encode the kinds of unknown columns or, if there are none, the others."""
        if self.unknown:
            return encode_types(self._read(cells)[list(self.unknown)], self.unknown)
        if self._graded:
            return encode_decimals(self._read(cells), self.schema)
        return self._encoder.encode_private(self._read(cells))

    def validate(self, cells):
        """Raise an error that names the column if cells are not of the declared types."""
        table = self._read(cells)
        for name in self._categories:
            check_type(name, table[name], self.schema[name].other)
        if self._wide:
            self._encoder.encode(table[list(self._wide)])

    def _read(self, cells):
        table = pd.DataFrame(cells, columns=list(self.schema), dtype=object)
        return self.schema.add_differences(parse_inferred(table, self.schema, self.texts))

    def run(self, curator):
        """Make the releases and return a schema that leaves nothing open."""
        if self.unknown:
            noisy = curator.release(WeightSumMechanism(KINDS))
            found, styles = find_types(self.unknown, noisy, curator.n_rows)
            return self._hand_over(curator, self.schema.replace(found), styles)
        if DECIMALS in self.releases:
            noisy = curator.release(WeightSumMechanism(DECIMALS))
            levels = read_levels(self.schema, noisy) if self._graded else {}
            dates = [name for name, counted in levels.items() if counted.are_dates]
            warn_of_columns("dates as numbers", dates)
            return self._hand_over(curator, find_decimals(self.schema, levels), self.texts, levels)
        if FREQUENT in self.releases:
            numbers = self._wrap(self._numbers)
            self._frequent = release_frequent(curator, self.schema, numbers, self.texts)
        ranged, kinds = self._find_ranges(curator), dict(self.schema)
        if CategoryCountsMechanism.name in self.releases:
            positions = {name: self.schema.names.index(name) for name in self._categories}
            mechanism = CategoryCountsMechanism(positions, {self.label: TARGET_WEIGHT})
            for name, counts in curator.release(mechanism).items():
                if name in self.texts:  # as they are encoded: blanks are no category
                    counts = {c: n for c, n in counts.items() if not is_blank(c)}
                kinds[name] = with_categories(kinds[name], counts)
            lost = [name for name in self._categories if kinds[name].levels == (kinds[name].other,)]
            warn_of_columns("no category", lost)
        target = kinds.get(self.label)
        if self.label in ranged:
            target = ranged[self.label].kind
            target = target.as_classes() if self.has_classes else target
        is_stratified = may_stratify(self.schema.learned, target)
        kinds |= self._find_knots(curator, ranged, is_stratified)
        return self.schema.replace(reconcile_orders(self.schema, kinds))

    def _hand_over(self, curator, schema, texts, levels=None):
        """Let another one go on, which knows more."""
        known = SchemaInference(schema, texts, levels, self.label, self.has_classes)
        curator.prepare(RecordFunction(known.encode), 1.0)
        schema = known.run(curator)
        self.counted, self.texts, self.histograms = known.counted, known.texts, known.histograms
        return schema

    def _find_ranges(self, curator):
        """Count open numbers and dates on a wide grid; return a `Ranged` for each."""
        if RANGES not in self.releases:
            return {}
        std = self.noise_of(curator.plan, RANGES, self._open)
        wide = self._widen_all(choose_per_octave(curator.n_rows, std))
        seen, beyond = {}, []
        for name, counted in self._count(curator, RANGES, self._open, wide, std):
            ranged = Ranged.of(counted, self._numbers[name])
            seen[name] = ranged.drop_ends(self.schema[name])
            beyond += [name] * (seen[name] is not ranged)
        warn_of_columns("beyond", beyond)
        n_fine, found = self._count_fine(curator), {}
        for name, ranged in self._locate(curator, seen).items():
            (lower, upper), is_resolved = self._find_range(name, ranged)
            if not is_resolved:
                found[name] = ranged  # counted on the same grid again
                continue
            within, number = ranged.within(lower, upper), self._numbers[name]
            histogram = within.knots, within.counts, within.std
            unit = unit_of(number)
            density = estimate_density([Histogram(*histogram)], lower, upper, unit)
            knots = quantile_knots(*histogram, n_fine, unit, is_fine=True, density=density)
            # Nothing is seen beyond a cap if values before it have another knot.
            fine = with_knots(number, np.r_[knots[:1], within.atoms, knots[1:]], is_fine=True)
            sought = [*within.atoms, *self._frequent.get(name, ())]
            fine = with_candidates(fine, self.schema[name], sought)
            found[name] = replace(within, kind=fine)
        return found

    def _find_range(self, name, ranged):
        """Return the range of a column that a grid shows, and whether it is resolved."""
        # Dates have no zero, at which a range would end.
        origin = ranged.knots[0] - 1 if self.schema[name].is_date else 0.0
        unit = unit_of(self._numbers[name])
        knots = ranged.knots - origin
        weights = weigh_sizes(ranged.knots) if origin == 0 else None
        counts, std, n_values = ranged.counts, ranged.std, ranged.n_values
        *bounds, is_resolved = find_range(knots, counts, std, n_values, unit, weights)
        lower, upper = ranged.knots[np.searchsorted(knots, bounds)]
        if ranged.located is not None:
            # All of these cells: noise on finer ones hides the tails.
            first, last = ranged.located
            lower, upper, is_resolved = min(lower, first), max(upper, last), True
        return (lower, upper), is_resolved

    def _locate(self, curator, seen):
        """Count clusters of values in few cells of the wide grid on much finer ones.

        Parameters
        ----------
        curator : Curator
        seen : dict of str to Ranged
            On the wide grid.

        Returns
        -------
        dict of str to Ranged
            Columns in few cells on the finest grid that resolves them. Clusters that are one value,
            beside a range of others, are point masses.
        """
        clusters = {name: ranged.find_clusters() for name, ranged in seen.items()}
        clusters = {name: found for name, found in clusters.items() if found}
        if not clusters:
            release_nothing(curator, LOCATIONS)
            return seen
        atoms = {name: seen[name].atoms for name in clusters}
        encode = partial(self._encode_locations, clusters, atoms)
        curator.prepare(RecordFunction(encode), None)
        counters = place_counters([len(found) for found in clusters.values()])
        released = curator.release(LevelCountsMechanism(LOCATIONS, *counters)).value
        n_parts = len(clusters) * N_LEVELS
        std = self.noise_of(curator.plan, LOCATIONS, range(n_parts))
        located = iter(released.reshape(-1, SIZE) * math.sqrt(n_parts))
        for name, found in clusters.items():
            counted = {cells: next(located) for cells in found}
            find_range, unit = partial(self._find_range, name), unit_of(self._numbers[name])
            seen = {**seen, name: read_clusters(seen[name], counted, std, unit, find_range)}
        return seen

    def _encode_locations(self, clusters, atoms, cells, y=None):
        table, codes = self._read(cells), []
        for name, found in clusters.items():
            present, values = self._known(name).encode(table[name])
            numbers = np.full(len(present), np.nan)
            numbers[present] = np.where(np.isin(values, atoms[name]), np.nan, values)
            codes.append(encode_locations(numbers, found))
        return np.hstack(codes)

    def _find_knots(self, curator, ranged, is_stratified):
        """Look at numbers and dates on a finer grid; return their kinds."""
        if COUNTS not in self.releases:
            return {}
        n_fine = self._count_fine(curator)
        std = self.noise_of(curator.plan, COUNTS, self._scales)
        n_octave = choose_per_octave(curator.n_rows, std)
        fine = {
            name: ranged[name].kind
            if name in ranged
            else refine_number(self.schema[name], n_fine, n_octave, self._frequent.get(name, ()))
            for name in self._scales
        }
        affordable = self.count_knots(curator.plan, curator.n_rows, std, is_stratified)
        unclear = {name: ranged.pop(name) for name in list(ranged) if ranged[name].is_wide}
        found, unresolved, lost, apart, tails, masses = {}, [], {}, {}, {}, {}
        hidden, keys = [], []
        for name, counted in self._count(curator, COUNTS, self._scales, fine, std):
            kind, knots = self._numbers[name], counted.knots
            n_knots = kind.n_knots or affordable
            if name in unclear:
                counted = counted.average(unclear[name].counted)
            atoms = counted.find_atoms(kind, ranged[name].counted if name in ranged else None)
            if kind.atoms is None:
                atoms += counted.find_shared(max(n_knots, N_KNOTS))
            counts, n_values = counted.without(atoms)
            if name in unclear:
                near = dict(zip(knots, counts, strict=True))
                others = Ranged.of(counted, kind).drop_ends(self.schema[name])
                find, is_target = partial(self._find_range, name), name == self.label
                knots, is_resolved = find_hidden(others, unit_of(kind), find, is_target)
                counts = np.array([near.get(knot, 0.0) for knot in knots])
                hidden += [name] * (not is_resolved)
            noise = counted.std
            finest = Histogram(knots, counts, noise)
            if name in ranged:
                wide = ranged[name].without(atoms)
                lower, upper = narrow_range(knots, counts, noise, n_values, unit_of(kind), wide)
                within = (lower <= knots) & (knots <= upper)
                knots, counts = knots[within], counts[within]
                known, left = self._known(name), set(ranged[name].atoms).difference(atoms)
                beyond = [a for a in left if not lower <= a <= upper]
                lost.update((name, f"near {known.write(a)}") for a in beyond)
                apart.update((name, f"near {known.write(sum(a) / 2)}") for a in ranged[name].apart)
            chosen, unit, parts = knots, unit_of(kind), [Histogram(knots, counts, noise)]
            # Around new point masses, the wide grid counts these as well.
            new = {a for a in atoms if knots[0] <= a <= knots[-1]}
            if name in ranged and new <= set(ranged[name].atoms):
                parts = ranged[name].around(*knots[[0, -1]]) + parts
            density = estimate_density(parts, *knots[[0, -1]], unit)
            if name in ranged and self.schema[name].is_number:
                tails[name] = describe_loss(kind, finest, Histogram(*wide), density, lower, upper)
                is_text, levels = name in self.texts, self._levels.get(name)
                is_key = may_identify(kind, density, n_values, atoms, is_text)
                keys += [name] * (is_key and not (levels and levels.are_round))
            if is_unresolved(knots, counts, noise, n_values, unit):
                unresolved.append(name)
            if len(knots) > n_knots:
                chosen = quantile_knots(
                    knots, counts, noise, n_knots, unit, is_rest=bool(atoms), density=density
                )
            found[name] = with_atoms(with_knots(kind, chosen), atoms)
            if name == self.label and name in self._open and self.has_classes:
                shared = {*atoms, *knots[counts > find_clear(noise, len(knots))]}
                found[name] = found[name].as_classes(shared)
                if not found[name].has_knots:
                    continue
            masses[name] = counted.count_at(atoms)
            cuts = find_cuts(knots, counts, noise, found[name].positions, unit, density)
            if cuts:
                found[name] = replace(found[name], cuts=cuts)
                self.counted[name] = parts
        warn_of_columns("range unresolved", hidden)
        warn_of_columns("identifiers", keys)
        warn_of_columns("values unresolved", unresolved)
        warn_of_columns("cut", lost)
        warn_of_columns("apart", apart)
        warn_of_columns("tail", {name: text for name, text in tails.items() if text})
        found = self._wrap(found)
        for name in self._levels.keys() & masses.keys():
            found[name] = self._levels[name].with_heaps(found[name], masses[name])
        # Breakpoints of dates that are knots after rounding are none.
        self.counted = {n: parts for n, parts in self.counted.items() if found[n].cuts}
        return found

    @staticmethod
    def noise_of(plan, release, names):
        """Return the standard deviation of the noise on the counts of some columns."""
        unit = plan.bound(WeightSumMechanism(release).sensitivity) * math.sqrt(len(names) or 1)
        return plan.multiplier(release) * unit

    def _count_fine(self, curator):
        std = self.noise_of(curator.plan, COUNTS, self._scales)
        return count_affordable(curator.n_rows, std, FEWEST_FINE, MOST_FINE)

    def count_knots(self, plan, n_rows, std, is_stratified):
        """Return the largest number of inferred knots of a column.

        Parameters
        ----------
        plan : Plan
        n_rows : float
        std : float
            Standard deviation of the noise on counts of its values.
        is_stratified : bool
            Whether tables are stratified by the target, or its halves.
        """
        most = N_KNOTS
        has_tables = TablesMechanism.name in dict(plan.releases)
        if has_tables and plan.sigma > 0:
            noise = TablesMechanism.noise_on_cells(plan.sigma, len(self.schema.learned))
            most = min(most, round(math.sqrt(n_rows / ((1 + is_stratified) * _CELL * noise))))
        return count_affordable(n_rows, std, _FEWEST, max(_FEWEST, most))

    def _count(self, curator, release, names, kinds, std):
        """Release noisy counts of the values of some columns: a list of (name, ValueCounts)."""
        if not names:
            release_nothing(curator, release)
            return []
        encoder = TableEncoder(Schema(self._wrap({name: kinds[name] for name in names})))
        curator.prepare(RecordFunction(partial(self._encode_some, encoder)), None)
        sizes = [where.stop - where.start for _, where in encoder.blocks]
        value = curator.release(LevelCountsMechanism(release, sizes)).value * math.sqrt(len(names))
        # The last ones are the finest.
        self.histograms = Histograms(encoder.schema, value, std)
        return [
            (name, ValueCounts(kinds[name], value[where], std, curator.n_rows))
            for name, where in encoder.blocks
        ]

    def _encode_some(self, encoder, cells, y=None):
        return encoder.encode_cells(self._read(cells)[list(encoder.schema)])

    def _widen_all(self, n_per_octave=1):
        """Return types for the first look at open columns, dates as numbers."""
        return {
            name: widen(self.schema[name], n_per_octave, self._frequent.get(name, ()))
            for name in (*self._open, *self._categories)
        }

    def _wrap(self, kinds):
        """Return types whose numbers are dates again where the schema has dates."""
        return {
            name: self.schema[name].from_number(kind) if kind.has_knots else kind
            for name, kind in kinds.items()
        }

    def _known(self, name):
        """Return an open column with the unit in which it is counted."""
        return self._wrap({name: self._numbers[name]})[name]
