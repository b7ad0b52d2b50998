# SPDX-License-Identifier: BSD-3-Clause
"""Sampling of rows that obey the rules of a schema."""

import numpy as np
import pandas as pd

from ..blocks import _to_probabilities
from ..columns import Date
from .conditions import make_condition
from .feasibility import sort_derived
from .predicates import all_hold, find_bounds
from .rules import Combinations, Implies, Ordered, Unique

# Draws by the same code, before another takes its place; and how many codes there are for a row.
_TRIES, _ROUNDS = 20, 20
# From this round on, rows are mended where a rule says how.
_MENDED = 6
# Where two columns that are drawn on their own break an order so often, they are drawn together.
_OFTEN = 0.1
# Numbers in a table of the probabilities of combinations.
_MOST_CELLS = 2_000_000
# Largest magnitudes of computed numbers and dates, which their dtypes can hold.
_FARTHEST, _FARTHEST_DATE = 2.0**62, 1e12


class RuleDraws:
    """Draws the rows of a sample.

    Given its code, the columns of a row are independent. Those that rules connect are drawn
    together, and again where they break a rule: so they have the law of the model under the rules,
    given the code, and the law of codes stays. A code by which they hardly ever obey is given up
    for another.

    Parameters
    ----------
    schema : Schema
    blocks : list of Block
        Of `TableEncoder`.
    conditions : dict
        From `TableEncoder.find_conditions`, which hold of all rows.
    used : dict
        Of each `Unique`, the values in rows that were drawn before. Those of these rows are added.
    """

    def __init__(self, schema, blocks, conditions, used):
        self.kinds, self.used, self.conditions = dict(schema), used, conditions
        self.blocks = {block.name: block for block in blocks}
        self._rules = schema.rules
        self._groups = [_Group(self, rules) for rules in _connect(schema.rules)]
        ruled = {name for rule in schema.rules for name in rule.names}
        self._free = [name for name in self.blocks if name not in ruled]

    def draw(self, make_rows, n_rows, random_state):
        """Return columns, a dict of arrays, of which all rows obey the rules.

        Parameters
        ----------
        make_rows : callable
            ``make_rows(n)`` gives n rows of weights, in which the conditions can hold.
        n_rows : int
        random_state : RandomState or Generator of NumPy

        Raises
        ------
        ValueError
            If there are too few rows that obey, or they are too rare; it names a rule.
        """
        self._check_enough(n_rows)
        columns, left = {}, np.arange(n_rows)
        for i in range(_ROUNDS):
            weights, obey = make_rows(len(left)), np.ones(len(left), dtype=bool)
            drawn = {name: self.draw_column(name, weights, random_state) for name in self._free}
            for group in self._groups:
                part, are_good = group.draw(weights, random_state, i >= _MENDED)
                drawn |= part
                obey &= are_good
            for group in self._groups:
                group.use(obey)
            for name, column in drawn.items():
                columns.setdefault(name, column)[left] = column
            left = left[~obey]
            if not len(left):
                return columns
            if i > _MENDED and len(left) == n_rows:
                break
        raise self._say_what_is_broken(columns, left)

    def draw_column(self, name, weights, random_state, condition=None):
        """Draw a column, under its condition if there is one."""
        block = self.blocks[name]
        drawn = (condition or self.conditions.get(name, block)).draw(
            weights[:, block.where], random_state
        )
        return make_settable(drawn)

    def _check_enough(self, n_rows):
        for rule in self._rules:
            kinds = [self.kinds[name] for name in rule.names]
            if not isinstance(rule, Unique) or any(kind.missing for kind in kinds):
                continue
            min_samples = n_rows + len(self.used.get(rule, ()))
            n_values = np.prod([_count_values(kind) for kind in kinds])
            if min_samples > n_values:
                raise ValueError(
                    f"{rule!r} cannot be obeyed by {min_samples} rows: there are {n_values:.0f} "
                    "different values. Ask for fewer rows."
                )

    def _say_what_is_broken(self, columns, left):
        values = {name: self.kinds[name].to_values(column) for name, column in columns.items()}
        shares = {rule: rule.bind(self.kinds)(values)[left].mean() for rule in self._rules}
        worst = min(shares, key=shares.get)
        asked = " and what is asked for" * bool(self.conditions)
        return ValueError(
            f"Too few rows were found that obey {worst!r}: by what was learnt{asked}, they are too "
            "rare. Ask for fewer rows or for others, or leave the rule out."
        )


class _Group:
    """Rules that are about the same columns, as far as columns connect them."""

    def __init__(self, draws, rules):
        self._draws, self._kinds = draws, draws.kinds
        self._derived = sort_derived(rules)
        made = [rule.column for rule in self._derived]
        self._names = [
            name
            for name in dict.fromkeys(name for rule in rules for name in rule.names)
            if name not in made
        ]
        self._unique = [rule for rule in rules if isinstance(rule, Unique)]
        self._mendable = [rule for rule in rules if isinstance(rule, Implies | Ordered)]
        self._holds = {rule: rule.bind(self._kinds) for rule in rules if rule not in self._unique}
        # One list of combinations is drawn from as a whole, so that others decide what is left.
        self._listed = next((rule for rule in rules if isinstance(rule, Combinations)), None)
        self._ordered = [
            rule
            for rule in rules
            if isinstance(rule, Ordered)
            and all(n in draws.blocks and n not in draws.conditions for n in rule.names)
        ]

    def draw(self, weights, random_state, is_mending):
        """Return columns, and which of their rows obey the rules of the group."""
        columns, self._values = {}, {}
        obey, left = np.zeros(len(weights), dtype=bool), np.arange(len(weights))
        for _ in range(_TRIES):
            drawn, values = self._draw_once(weights[left], random_state)
            if is_mending:
                self._mend(drawn, values, weights[left], random_state)
            for name, column in drawn.items():
                columns.setdefault(name, column)[left] = column
                self._values.setdefault(name, values[name])[left] = values[name]
            obey[left] = True
            for holds in self._holds.values():
                obey[left] &= holds(values)
            for rule in self._unique:
                obey[left] &= self._are_new(rule, left, obey)
            left = np.flatnonzero(~obey)
            if not len(left):
                break
        return columns, obey

    def use(self, are_kept):
        """Take the values in the rows that are kept as used."""
        for rule in self._unique:
            used = self._draws.used
            used[rule] = pd.concat([used.get(rule), self._list_keys(rule)[are_kept]])

    def _are_new(self, rule, rows, obey):
        """Return which rows have no values that earlier rows have, of those that obey."""
        keys, is_new = self._list_keys(rule), np.zeros(len(obey), dtype=bool)
        is_new[rows] = obey[rows]
        earlier = pd.concat([self._draws.used.get(rule), keys[obey & ~is_new]])
        found = keys[is_new]
        is_repeated = pd.concat([earlier, found]).duplicated()[len(earlier) :]
        is_new[is_new] = ~is_repeated | found.isna().any(axis=1)
        return is_new[rows]

    def _list_keys(self, rule):
        return pd.DataFrame({name: self._values[name] for name in rule.columns})

    def _draw_once(self, weights, random_state):
        """Return columns, and what is in them as floats."""
        columns = self._draw_ordered(weights, random_state)
        if self._listed is not None:
            columns |= self._draw_combinations(weights, random_state)
        for name in self._names:
            if name not in columns:
                columns[name] = self._draws.draw_column(name, weights, random_state)
        values = {name: self._kinds[name].to_values(column) for name, column in columns.items()}
        self._compute(columns, values)
        return columns, values

    def _compute(self, columns, values):
        """Compute the derived columns."""
        for rule in self._derived:
            kind, found = self._kinds[rule.column], rule.compute(values, self._kinds)
            farthest = _FARTHEST_DATE if isinstance(kind, Date) else _FARTHEST
            is_missing = np.isnan(found)
            # Values beyond these limits break the rule, and are drawn again.
            found = np.clip(np.where(is_missing, 0, found), -farthest, farthest)
            columns[rule.column] = make_settable(kind.make_cells(found, is_missing))
            values[rule.column] = kind.to_values(columns[rule.column])

    def _draw_ordered(self, weights, random_state):
        """Draw columns of which one is at most the other.

        Each has its law by the code. Where that would often break the order, both are drawn at the
        same quantile, which changes neither law: so other columns go with them as before.
        """
        columns, quantiles = {}, {}
        for rule in self._ordered:
            pair = [self._draws.blocks[name] for name in rule.names]
            is_often = _break_order(*pair, weights) > _OFTEN
            for block, other in (pair, pair[::-1]):
                if block.name in columns:
                    continue
                if block.atoms:
                    drawn = self._draws.draw_column(block.name, weights, random_state)
                    columns[block.name] = make_settable(drawn)
                    continue
                part = weights[:, block.where]
                is_missing = random_state.uniform(size=len(part)) < _share_missing(block, part)
                uniform = random_state.uniform(size=len(part))
                if other.name in quantiles:
                    uniform = np.where(is_often, quantiles[other.name], uniform)
                ends = (np.full(len(part), end) for end in block.knots[[0, -1]])
                drawn = make_condition(block, (None, None)).draw_within(
                    part, *ends, is_missing, uniform
                )
                columns[block.name], quantiles[block.name] = make_settable(drawn), uniform
        return columns

    def _draw_combinations(self, weights, random_state):
        """Draw one of the listed combinations for each row, by their probabilities."""
        names = self._listed.columns
        listed = self._listed.find_positions(self._kinds)
        asked = {name: c for name, c in self._draws.conditions.items() if name in names}
        if asked:
            listed = listed[all_hold(asked, dict(zip(names, listed.T, strict=True)))]
            if not len(listed):
                raise ValueError(f"No row is what is asked for and obeys {self._listed!r}.")
        blocks = [self._draws.blocks[name] for name in names]
        codes = [
            np.where(np.isnan(column), block.n_levels, column).astype(int)
            for block, column in zip(blocks, listed.T, strict=True)
        ]
        parts = np.array_split(weights, -(-len(weights) * len(listed) // _MOST_CELLS))
        drawn = np.concatenate([_choose(blocks, codes, p, random_state) for p in parts])
        columns = {}
        for block, column in zip(blocks, codes, strict=True):
            # By a code that gives no combination, what it gives instead breaks the rule.
            columns[block.name] = self._draws.draw_column(block.name, weights, random_state)
            columns[block.name][drawn >= 0] = block.make_cells(column[drawn[drawn >= 0]])
        return columns

    def _mend(self, columns, values, weights, random_state):
        """Draw the second columns of rules that are broken under what the first ones ask."""
        for rule in self._mendable:
            broken = np.flatnonzero(~self._holds[rule](values))
            mend = _mend_order if isinstance(rule, Ordered) else _mend_implied
            for name, are_mended, column in mend(
                rule, self._draws, values, weights, broken, random_state
            ):
                columns[name][are_mended] = column
                values[name][are_mended] = self._kinds[name].to_values(column)
        self._compute(columns, values)


def _choose(blocks, codes, weights, random_state):
    """Return which combination each row has, or -1 where all have a probability of 0."""
    parts = [_to_probabilities(weights[:, block.where]) for block in blocks]
    likely = np.prod([p[:, c] for p, c in zip(parts, codes, strict=True)], axis=0).cumsum(axis=1)
    drawn = (likely[:, :-1] <= random_state.uniform(size=(len(weights), 1)) * likely[:, -1:]).sum(1)
    return np.where(likely[:, -1] > 0, drawn, -1)


def _share_missing(block, weights):
    return block.find_shares(weights)[2].sum(axis=1)


def _break_order(lower, upper, weights):
    """Return how likely it is that two columns break their order, up to what is between knots."""
    masses = []
    for block in (lower, upper):
        from_left, from_right, _ = block.find_shares(weights[:, block.where])
        masses.append(from_left + from_right)
    first, last = lower.ends, upper.ends
    # Either the first interval lies behind the second one, or they overlap.
    breaks = (first[:-1, None] >= last[1:]) / 2 + (first[1:, None] > last[:-1]) / 2
    return np.einsum("ni,ij,nj->n", masses[0], breaks, masses[1])


def _mend_implied(rule, draws, values, weights, broken, random_state):
    for name, asked in rule.then:
        if name in draws.blocks and name not in draws.conditions:
            condition = make_condition(draws.blocks[name], list(asked))
            rows = broken[condition.probability(weights[broken]) > 0]
            yield name, rows, draws.draw_column(name, weights[rows], random_state, condition)


def _mend_order(rule, draws, values, weights, broken, random_state):
    # The second column; the first one in rows where that cannot help.
    for name in (rule.upper, rule.lower):
        if name in draws.blocks and name not in draws.conditions:
            block = draws.blocks[name]
            condition, ends = make_condition(block, (None, None)), block.knots[[0, -1]]
            step = rule.strict * (0 if block.decimals is None else 10.0**-block.decimals)
            lower = values[rule.lower] + step if name == rule.upper else ends[0]
            upper = ends[1] if name == rule.upper else values[rule.upper] - step
            lower, upper = (np.broadcast_to(b, len(weights))[broken] for b in (lower, upper))
            part = weights[broken][:, block.where]
            can = (lower <= upper) & (condition.probability_within(part, lower, upper) > 0)
            part, uniform = part[can], random_state.uniform(size=can.sum())
            column = condition.draw_within(part, lower[can], upper[can], ~can[can], uniform)
            yield name, broken[can], make_settable(column)
            broken = broken[~can]


def _connect(rules):
    """Return the rules in groups that no column is in two of."""
    groups = []
    for rule in rules:
        names = set(rule.names)
        joined = [group for group in groups if any(names & set(other.names) for other in group)]
        groups = [group for group in groups if group not in joined]
        groups.append([other for group in joined for other in group] + [rule])
    return groups


def _count_values(kind):
    """Return how many values a column has that are not missing."""
    if hasattr(kind, "levels"):
        return len(kind.levels)
    decimals = getattr(kind, "decimals", 0)
    lower, upper = find_bounds(kind)
    return np.inf if decimals is None else 1 + np.round((upper - lower) * 10.0**decimals)


def make_settable(column):
    """Return a column as an array of a dtype that pandas keeps, in which rows can be set."""
    return pd.Series(column).array.copy()
