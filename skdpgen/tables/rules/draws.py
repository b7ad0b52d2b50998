# SPDX-License-Identifier: BSD-3-Clause
"""Sampling of rows that obey the rules of a schema."""

import math
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pandas as pd

from ..blocks import to_probabilities
from .conditions import make_condition
from .feasibility import connect, sort_derived
from .predicates import all_hold
from .rules import Combinations, Implies, Ordered, Unique


@dataclass(frozen=True)
class DrawConstants:
    """Constants of sampling under rules; all are set by hand."""

    # Draws from the weights of a row before they are replaced, and rows of weights per sample.
    n_tries: int = 20
    n_rounds: int = 20
    # The round from which rows that break a rule are repaired, which changes their distribution.
    first_repair: int = 6
    # Size of an array of probabilities of combinations.
    max_cells: int = 2_000_000
    # Largest magnitudes of computed numbers and dates, which their dtypes can hold.
    max_number: float = 2.0**62
    max_date: float = 1e12


CONSTANTS = DrawConstants()


class RuleDraws:
    """Rejection sampler of rows that obey rules.

    Given its weights, the columns of a row are independent. The sampler draws connected columns
    together, and draws again the rows that break a rule. So rows follow the conditional
    distribution of the model under the rules, given the weights. Weights whose rows hardly ever
    obey are replaced.

    Parameters
    ----------
    schema : Schema
    blocks : list of Block
        From `TableEncoder.make_blocks`.
    conditions : dict
        From `TableEncoder.find_conditions`; they hold for all rows.
    used : dict
        For each `Unique`, the keys of earlier rows; `draw` adds those of its rows.
    given : sequence of GivenBlock, default=()
        Numbers and dates that are known.
    """

    def __init__(self, schema, blocks, conditions, used, given=()):
        self.types, self.used, self._has_conditions = dict(schema), used, bool(conditions)
        self.blocks = {block.name: block for block in (*blocks, *given)}
        self.conditions = conditions | {block.name: block for block in given}
        self.differences = {n: r for n, r in schema.differences.items() if n in self.blocks}
        self._rules = schema.rules
        self._groups = [_Group(self, rules) for rules in connect(schema.rules)]
        ruled = {name for rule in schema.rules for name in rule.names} | set(self.differences)
        # Columns without rules are drawn once a round, whatever the groups reject.
        self._free = [name for name in self.blocks if name not in ruled]

    def draw(self, make_rows, n_rows, random_state):
        """Draw rows that all obey the rules.

        Parameters
        ----------
        make_rows : callable
            ``make_rows(positions)`` returns rows of weights with a positive probability of the
            conditions, for the rows of a sample at these positions.
        n_rows : int
        random_state : RandomState or Generator of NumPy

        Returns
        -------
        dict of str to array of shape (n_rows,)
            The columns, without identifiers.

        Raises
        ------
        ValueError
            If not enough rows obey a rule, which the message names.
        """
        check_enough(self._rules, self.types, n_rows, self.used)
        columns, left = {}, np.arange(n_rows)
        for i in range(CONSTANTS.n_rounds):
            weights, obey = make_rows(left), np.ones(len(left), dtype=bool)
            drawn = {name: self.draw_column(name, weights, random_state) for name in self._free}
            for group in self._groups:
                part, are_good = group.draw(weights, random_state, i >= CONSTANTS.first_repair)
                drawn |= part
                obey &= are_good
            # Only keys of rows that all groups accept are used up.
            for group in self._groups:
                group.add_used(obey)
            for name, column in drawn.items():
                columns.setdefault(name, column)[left] = column
            left = left[~obey]
            if not len(left):
                return columns
            # Not one row was found, even with repairs: more rounds would not help.
            if i > CONSTANTS.first_repair and len(left) == n_rows:
                break
        raise self._make_error(columns, left)

    def draw_column(self, name, weights, random_state, condition=None):
        """Draw a column from rows of weights, given its condition if there is one."""
        block = self.blocks[name]
        source = condition or self.conditions.get(name, block)
        return make_settable(source.draw(weights[:, block.where], random_state))

    def _make_error(self, columns, left):
        """Return an error about the rule that most of the left rows break."""
        values = {name: self.types[name].to_values(column) for name, column in columns.items()}
        shares = {rule: rule.bind(self.types)(values)[left].mean() for rule in self._rules}
        # The rule that the fewest of the remaining rows obey is the one to act on.
        worst = min(shares, key=shares.get)
        given = " under the conditions of where= and y=" * self._has_conditions
        return ValueError(
            f"Too few rows obey {worst!r}: they are too rare in the fitted distribution{given}. "
            "Draw fewer rows, relax conditions, or drop the rule from the schema."
        )


def check_enough(rules, types, n_rows, used=MappingProxyType({}), most_levels=math.inf):
    """Raise an error if a `Unique` has fewer values than rows.

    Parameters
    ----------
    rules : sequence of Rule
    types : dict of str to ColumnType
    n_rows : int
    used : dict, default={}
        For each `Unique`, the keys of earlier rows.
    most_levels : float, default=inf
        Number of levels that an undeclared category can get at most.
    """
    for rule in rules:
        its_types = {name: types[name] for name in rule.names}
        # Rows with a missing value are exempt.
        if not isinstance(rule, Unique) or any(declared.missing for declared in its_types.values()):
            continue
        n_needed = n_rows + len(used.get(rule, ()))
        counts = (
            most_levels if declared.is_open and not declared.has_knots else declared.n_values
            for declared in its_types.values()
        )
        n_values = math.prod(counts)
        if n_needed > n_values:
            opened = [name for name, declared in its_types.items() if declared.is_open]
            advice = f", with rare levels of {opened} as one. Declare these, or a" * bool(opened)
            raise ValueError(
                f"{rule!r} cannot be obeyed by {n_needed} rows: there are {n_values:.0f} "
                f"different values{advice or '. A'}sk for fewer rows."
            )


class GivenBlock:
    """A column of numbers or dates that is known, as a `Block` whose weight is the number of a row.

    Parameters
    ----------
    name : str
    declared : ColumnType
    cells : array of shape (n_rows,)
    position : int
        Column of the numbers of rows among the weights.
    """

    def __init__(self, name, declared, cells, position):
        self.name, self.column_type, self._cells = name, declared, make_settable(cells)
        self.where = slice(position, position + 1)

    def draw(self, weights, random_state):
        """Return the cells of the rows."""
        return self._cells[weights[:, 0].astype(np.int64)]


class _Group:
    """A connected component of rules, and the draws of its columns.

    Parameters
    ----------
    draws : RuleDraws
    rules : list of Rule
        Rules that share no column with other groups.
    """

    def __init__(self, draws, rules):
        self._draws, self._types = draws, draws.types
        self._derived = sort_derived(rules)
        computed = [rule.column for rule in self._derived]
        self._names = [
            name
            for name in dict.fromkeys(name for rule in rules for name in rule.names)
            if name not in computed
        ]
        self._unique = [rule for rule in rules if isinstance(rule, Unique)]
        self._repairable = [rule for rule in rules if isinstance(rule, Implies | Ordered)]
        self._holds = {rule: rule.bind(self._types) for rule in rules if rule not in self._unique}
        # Draws come from the rows of one list of combinations; rejection enforces other lists.
        self._listed = next((rule for rule in rules if isinstance(rule, Combinations)), None)
        self._differences = {n: rule for n, rule in draws.differences.items() if rule in rules}

    def draw(self, weights, random_state, is_repairing):
        """Draw the columns of the group; return them, and which rows obey its rules."""
        columns, self._values = {}, {}
        obey, left = np.zeros(len(weights), dtype=bool), np.arange(len(weights))
        for _ in range(CONSTANTS.n_tries):
            drawn, values, are_within = self._draw_once(weights[left], random_state)
            if is_repairing:
                self._repair(drawn, values, weights[left], random_state)
                # Repaired values replace those that were out of bounds; rules are checked again
                # below.
                are_within[:] = True
            for name, column in drawn.items():
                columns.setdefault(name, column)[left] = column
                self._values.setdefault(name, values[name])[left] = values[name]
            obey[left] = are_within
            for holds in self._holds.values():
                obey[left] &= holds(values)
            for rule in self._unique:
                obey[left] &= self._are_new(rule, left, obey)
            left = np.flatnonzero(~obey)
            if not len(left):
                break
        return columns, obey

    def add_used(self, are_kept):
        """Add the keys of accepted rows to those that are used."""
        for rule in self._unique:
            used = self._draws.used
            used[rule] = pd.concat([used.get(rule), self._list_keys(rule)[are_kept]])

    def _are_new(self, rule, rows, obey):
        """Return which rows obey so far and repeat no key of an earlier row."""
        keys, is_new = self._list_keys(rule), np.zeros(len(obey), dtype=bool)
        is_new[rows] = obey[rows]
        earlier = pd.concat([self._draws.used.get(rule), keys[obey & ~is_new]])
        found = keys[is_new]
        is_repeated = pd.concat([earlier, found]).duplicated()[len(earlier) :]
        # A key with a missing part repeats none, as in SQL.
        is_new[is_new] = ~is_repeated | found.isna().any(axis=1)
        return is_new[rows]

    def _list_keys(self, rule):
        return pd.DataFrame({name: self._values[name] for name in rule.columns})

    def _draw_once(self, weights, random_state):
        """Draw the columns of the group.

        Returns
        -------
        columns, values : dict
            The columns, and their values as floats.
        are_within : ndarray of bool of shape (n,)
            Rows whose ordered columns did not have to be clipped to their bounds.
        """
        columns, are_within = self._draw_ordered(weights, random_state)
        if self._listed is not None:
            columns |= self._draw_combinations(weights, random_state)
        for name in self._names:
            if name not in columns:
                columns[name] = self._draws.draw_column(name, weights, random_state)
        values = {name: self._types[name].to_values(column) for name, column in columns.items()}
        self._compute(columns, values)
        return columns, values, are_within

    def _compute(self, columns, values):
        """Compute the derived columns."""
        for rule in self._derived:
            declared, found = self._types[rule.column], rule.compute(values, self._types)
            limit = CONSTANTS.max_date if declared.is_date else CONSTANTS.max_number
            is_missing = np.isnan(found)
            # Clipped values break the rule, and their rows are drawn again.
            found = np.clip(np.where(is_missing, 0, found), -limit, limit)
            columns[rule.column] = make_settable(declared.decode(found, is_missing))
            values[rule.column] = declared.to_values(columns[rule.column])

    def _draw_ordered(self, weights, random_state):
        """Draw ordered columns: one on its own, and the others at differences from it.

        The first one has the narrowest range: beside it, differences leave the fewest rows beyond
        the bounds of others. Columns under conditions are all drawn on their own.
        """
        draws, left = self._draws, dict(self._differences)
        names = dict.fromkeys(name for rule in left.values() for name in rule.names)
        first = [name for name in names if name in draws.conditions]
        columns = {name: draws.draw_column(name, weights, random_state) for name in first}
        are_within = np.ones(len(weights), dtype=bool)
        while left:
            joined = [key for key, rule in left.items() if columns.keys() & set(rule.names)]
            if not joined:
                # The narrowest column first: at a difference from a wide one it would often leave
                # its bounds.
                name = min((n for n in names if n not in columns), key=self._find_width)
                columns[name] = draws.draw_column(name, weights, random_state)
                continue
            rule = left.pop(joined[0])
            for name in set(rule.names) - columns.keys():
                args = joined[0], rule, name, columns[rule.other(name)], weights, random_state
                columns[name], fits = self._draw_beside(*args)
                are_within &= fits
        return columns, are_within

    def _find_width(self, name):
        number = self._types[name].to_number()
        return (number.upper - number.lower) / self._types[name].units_per_day

    def _draw_beside(self, key, rule, name, given, weights, random_state):
        """Draw a column at a difference from the other one, or on its own if one is missing.

        Returns
        -------
        column : array of shape (n,)
            Within its bounds.
        are_within : ndarray of bool of shape (n,)
            Where it was not clipped to these.
        """
        draws, declared, other = self._draws, self._types[name], self._types[rule.other(name)]
        column = draws.draw_column(name, weights, random_state)
        block = draws.blocks[key]
        is_present = make_condition(block, (None, None)) if block.column_type.missing else None
        difference = draws.draw_column(key, weights, random_state, is_present)
        own, given = declared.to_values(column), other.to_values(given)
        found = rule.add(name, given, block.column_type.to_values(difference), own, self._types)
        if getattr(declared, "hours", None):
            # Of dates that are a day or more apart, each has a time of its own.
            day = declared.units_per_day
            is_far = np.abs(found - given * day / other.units_per_day) >= day
            found = np.where(is_far, found - found % day + own % day, found)
        # Missing values, and sentinels beyond the bounds, have no difference.
        is_apart = _is_beyond(own, declared) | _is_beyond(given, other)
        are_within = is_apart | ~_is_beyond(found, declared)
        number = declared.to_number()
        cells = found[~is_apart].clip(number.lower, number.upper)
        column[~is_apart] = declared.decode(cells, np.zeros(len(cells), dtype=bool))
        return column, are_within

    def _draw_combinations(self, weights, random_state):
        """Draw one of the listed combinations for each row, by their probabilities."""
        names = self._listed.columns
        listed = self._listed.find_codes(self._types)
        given = {name: c for name, c in self._draws.conditions.items() if name in names}
        if given:
            listed = listed[all_hold(given, dict(zip(names, listed.T, strict=True)))]
            if not len(listed):
                raise ValueError(
                    f"No row obeys {self._listed!r} under the conditions of where= and y=."
                )
        blocks = [self._draws.blocks[name] for name in names]
        codes = [
            np.where(np.isnan(column), block.n_levels, column).astype(int)
            for block, column in zip(blocks, listed.T, strict=True)
        ]
        # In parts, as rows times combinations may not fit into memory.
        parts = np.array_split(weights, -(-len(weights) * len(listed) // CONSTANTS.max_cells))
        drawn = np.concatenate([_choose(blocks, codes, p, random_state) for p in parts])
        columns = {}
        for block, column in zip(blocks, codes, strict=True):
            # Rows of weights without any of the combinations break the rule.
            columns[block.name] = self._draws.draw_column(block.name, weights, random_state)
            columns[block.name][drawn >= 0] = block.make_cells(column[drawn[drawn >= 0]])
        return columns

    def _repair(self, columns, values, weights, random_state):
        """Draw columns of broken rules again, given the values of the other columns."""
        for rule in self._repairable:
            broken = np.flatnonzero(~self._holds[rule](values))
            repair = _repair_order if isinstance(rule, Ordered) else _repair_implication
            redrawn = repair(rule, self._draws, values, weights, broken, random_state)
            for name, rows, column in redrawn:
                columns[name][rows] = column
                values[name][rows] = self._types[name].to_values(column)
        self._compute(columns, values)


def _choose(blocks, codes, weights, random_state):
    """Draw the index of a combination for each row; -1 if all have probability 0."""
    parts = [to_probabilities(weights[:, block.where]) for block in blocks]
    likely = np.prod([p[:, c] for p, c in zip(parts, codes, strict=True)], axis=0).cumsum(axis=1)
    # Inverse transform sampling of all rows at once; unnormalised, hence times the total.
    drawn = (likely[:, :-1] <= random_state.uniform(size=(len(weights), 1)) * likely[:, -1:]).sum(1)
    return np.where(likely[:, -1] > 0, drawn, -1)


def _is_beyond(values, declared):
    """Return which values of a column are missing or beyond its bounds."""
    number = declared.to_number()
    return ~((number.lower <= values) & (values <= number.upper))


def _repair_implication(rule, draws, values, weights, broken, random_state):
    """Yield each column of `then`, with the rows and cells that are drawn again under it."""
    for name, alternatives in rule.then:
        if name in draws.blocks and name not in draws.conditions:
            condition = make_condition(draws.blocks[name], list(alternatives))
            # Rows that cannot satisfy the condition stay broken, and get other weights in the next
            # round.
            rows = broken[condition.probability(weights[broken]) > 0]
            yield name, rows, draws.draw_column(name, weights[rows], random_state, condition)


def _repair_order(rule, draws, values, weights, broken, random_state):
    """Yield the upper column, and the lower one for rows without a feasible upper value."""
    for name in (rule.upper, rule.lower):
        if name in draws.blocks and name not in draws.conditions:
            block = draws.blocks[name]
            condition, (lower, upper) = make_condition(block, (None, None)), block.knots[[0, -1]]
            limit = rule.find_limit(name, values[rule.other(name)], draws.types)[broken]
            lower, upper = (limit, upper) if name == rule.upper else (lower, limit)
            lower, upper = np.broadcast_arrays(lower, upper)
            part = weights[broken][:, block.where]
            can = (lower <= upper) & (condition.probability_within(part, lower, upper) > 0)
            part, uniform = part[can], random_state.uniform(size=can.sum())
            column = condition.draw_within(part, lower[can], upper[can], ~can[can], uniform)
            yield name, broken[can], make_settable(column)
            broken = broken[~can]


def make_settable(column):
    """Return a copy of a column as a pandas array, whose dtype is kept when rows are set."""
    return pd.Series(column).array.copy()
