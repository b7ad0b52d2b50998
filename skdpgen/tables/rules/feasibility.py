# SPDX-License-Identifier: BSD-3-Clause
"""Feasibility of rules, and the pairs of levels that they exclude."""

import itertools
import math

import numpy as np
import pandas as pd

from .predicates import all_hold
from .rules import Combinations, Derived, Implies, Ordered

# Pairs of rules with more cases are not compared, which would take long. Set by hand.
_MOST_CASES = 1_000_000


def check_together(rules, types):
    """Raise an error if rules contradict each other.

    Bounds are propagated along orders and formulas. Other rules are compared in pairs: the two
    together must allow each level that either allows alone, and the `when` of each `Implies`. All
    rules that are connected by columns must allow a row. Only sampling detects contradictions of
    rules with more than a million cases, of formulas beside other rules, and of rules about
    undeclared columns.
    """
    _check_derived(rules, types)
    _check_orders([rule for rule in rules if isinstance(rule, Ordered)], types)
    compared = [
        rule
        for rule in rules
        if isinstance(rule, Implies | Combinations | Ordered)
        and not any(types[name].is_open for name in rule.names)
    ]
    for first, second in itertools.combinations(compared, 2):
        if set(first.names) & set(second.names):
            _check_pair(first, second, types)
    for group in connect(compared):
        if len(group) > 2:  # others were compared above
            _check_group(group, types)


def connect(rules):
    """Return the connected components of rules, which share columns."""
    groups = []
    for rule in rules:
        names = set(rule.names)
        joined = [group for group in groups if any(names & set(other.names) for other in group)]
        groups = [group for group in groups if group not in joined]
        groups.append([other for group in joined for other in group] + [rule])
    return groups


def sort_derived(rules):
    """Return the rules of derived columns in topological order: operands come first."""
    left = {rule.column: rule for rule in rules if isinstance(rule, Derived)}
    ordered = []
    while left:
        ready = [rule for rule in left.values() if not set(rule.operands) & set(left)]
        if not ready:
            raise ValueError(f"These columns are formulas of each other: {list(left.values())}.")
        ordered += ready
        left = {name: rule for name, rule in left.items() if rule not in ready}
    return ordered


def _check_derived(rules, types):
    derived = {}
    for rule in (rule for rule in rules if isinstance(rule, Derived)):
        other = derived.setdefault(rule.column, rule)
        if other is not rule:
            raise ValueError(f"{other!r} and {rule!r} derive the same column; keep one.")
    ranges = {name: types[name].bounds for rule in derived.values() for name in rule.operands}
    for rule in sort_derived(rules):
        name, (lower, upper) = rule.column, types[rule.column].bounds
        lowest, highest = rule.find_range(ranges, types)
        if lowest > upper or highest < lower:
            raise ValueError(
                f"{rule!r} cannot be obeyed: its values are between {lowest:g} and {highest:g}, "
                f"beyond the bounds of {types[name]!r}."
            )
        ranges[name] = max(lower, lowest), min(upper, highest)


def _check_orders(rules, types):
    """Raise an error for cycles of orders, and for chains that the bounds exclude."""

    def follow(chain):
        last = chain[-1].upper
        first = chain[0].lower
        listed = " and ".join(map(repr, chain))
        if last == first:
            raise ValueError(
                f"{listed} form a cycle. Declare equal columns as "
                f"Derived({last!r}, {chain[0].upper!r})."
            )
        # In the coarser unit of both.
        ends = Ordered(first, last)
        lowest = ends.to_common(first, types[first].bounds[0], types)
        highest = ends.to_common(last, types[last].bounds[1], types)
        if lowest > highest or (lowest == highest and any(rule.strict for rule in chain)):
            raise ValueError(
                f"{listed} cannot be obeyed: the lower bound of {first!r} is {lowest:g}, the upper "
                f"bound of {last!r} is {highest:g}."
            )
        for rule in rules:
            if rule.lower == last and rule not in chain:
                follow([*chain, rule])

    for rule in rules:
        follow([rule])


def _check_pair(first, second, types):
    """Raise an error if two rules together exclude a level, or the `when` of one of them."""
    pair = {name: types[name] for rule in (first, second) for name in rule.names}
    cases = {rule: _list_cases(rule, (first, second), pair) for rule in (first, second)}
    if any(case is None for case in cases.values()):
        return
    shared = [name for name in first.names if name in second.names]
    # A merge could have as many rows.
    if math.prod(map(len, cases.values())) > _MOST_CASES:
        return
    both = cases[first].merge(cases[second], on=shared)
    lost = {
        name: levels.levels[int(code)] if code >= 0 else None
        for name, levels in pair.items()
        if levels.levels
        for code in _codes_in_all(name, cases.values()) - _codes_in_all(name, [both])
    }
    for rule in (first, second):
        if isinstance(rule, Implies) and not lost:
            when, _ = rule.find_conditions(types)
            holds = all_hold(when, {n: _to_nan(both[n], types[n]) for n in when})
            lost = {} if holds.any() else rule.to_dict()["when"]
    if lost or not len(both):
        what = " and ".join(f"{name!r} is {level!r}" for name, level in lost.items())
        raise ValueError(
            f"{first!r} and {second!r} contradict each other: no row obeys both"
            f"{' in which ' + what if what else ''}."
        )


def _check_group(rules, types):
    """Raise an error if no row obeys connected rules, by a join of the cases of each."""
    types = {name: types[name] for rule in rules for name in rule.names}
    ordered = {name for rule in rules if isinstance(rule, Ordered) for name in rule.names}
    # Cases beside those of another step could be missed: then orders are left out.
    if len({(types[n].units_per_day, types[n].decimals) for n in ordered}) > 1:
        rules = [rule for rule in rules if not isinstance(rule, Ordered)]
    cases = [_list_cases(rule, rules, types) for rule in rules]
    left = sorted((case for case in cases if case is not None), key=len)
    joined = left.pop(0) if left else None
    while left:
        # The one that shares most columns, so that few rows are added.
        case = max(left, key=lambda case: len(set(case) & set(joined)))
        left = [other for other in left if other is not case]
        shared = [name for name in joined if name in case]
        if not shared or _count_joined(joined, case, shared) > _MOST_CASES:
            return
        joined = joined.merge(case, on=shared)
        if not len(joined):
            raise ValueError(
                f"{' and '.join(map(repr, rules))} contradict each other: no row obeys all of them."
            )
        # Columns of no other rule are satisfied.
        needed = [name for name in joined if any(name in other for other in left)]
        joined = joined[needed].drop_duplicates() if needed else joined


def _count_joined(first, second, shared):
    sizes = [table.groupby(shared).size() for table in (first, second)]
    return (sizes[0] * sizes[1]).sum()


def _codes_in_all(name, tables):
    return set.intersection(*(set(table[name]) for table in tables if name in table))


def _list_cases(rule, rules, types):
    """Return the values of columns that obey a rule, a frame of floats; None for too many rows.

    One level stands for all those that `rules` do not distinguish.
    """
    if isinstance(rule, Combinations):
        cases = pd.DataFrame(rule.find_codes(types), columns=list(rule.columns))
    else:
        values = [_list_values(name, rules, types) for name in rule.names]
        if math.prod(map(len, values)) > _MOST_CASES:
            return None
        grid = [part.ravel() for part in np.meshgrid(*values, indexing="ij")]
        cases = pd.DataFrame(dict(zip(rule.names, grid, strict=True)))
        cases = cases[rule.bind(types)({name: cases[name].to_numpy() for name in cases})]
    return cases.fillna({name: _GAPS[types[name].has_knots] for name in cases})


# Stand-ins for missing values, which cannot be keys of a merge: for levels, and for numbers.
_GAPS = {False: -1.0, True: -math.inf}


def _to_nan(column, declared):
    return column.replace(_GAPS[declared.has_knots], np.nan).to_numpy()


def _list_values(name, rules, types):
    """Return representative values of a column: rules treat others like one of these."""
    declared = types[name]
    missing = [np.nan] * declared.missing
    conditions = [c for rule in rules for c in _list_conditions(rule, name, types)]
    if declared.levels:
        codes = np.arange(float(len(declared.levels)))
        # One level for each pattern of the conditions that hold: rules treat the others like it.
        if not any(isinstance(rule, Combinations) and name in rule.names for rule in rules):
            patterns = np.array([codes * 0, *(c.holds(codes) for c in conditions)])
            codes = codes[np.unique(patterns, axis=1, return_index=True)[1]]
        return [*codes, *missing]
    # The ends of all ranges, of ordered columns too, and values next to them.
    compared = {n for rule in rules if isinstance(rule, Ordered) for n in rule.names} | {name}
    ends = [
        end * declared.units_per_day / types[n].units_per_day
        for n in compared
        for ranges in (
            types[n].bounds,
            *(c.ranges for rule in rules for c in _list_conditions(rule, n, types)),
        )
        for end in np.ravel(ranges)
    ]
    lower, upper = declared.bounds
    decimals = declared.decimals
    step = 1e-9 * (upper - lower) if decimals is None else 10.0**-decimals
    # As many as rows of a chain of orders need.
    reach = max(2, sum(isinstance(rule, Ordered) for rule in rules))
    values = np.add.outer(np.unique(ends), step * np.arange(-reach, reach + 1)).ravel()
    if decimals is not None:
        values = np.round(values, decimals) + 0.0
    return [*np.unique(values[(lower <= values) & (values <= upper)]), *missing]


def _list_conditions(rule, name, types):
    if not isinstance(rule, Implies):
        return []
    return [side[name] for side in rule.find_conditions(types) if name in side]


def find_impossible(rules, blocks):
    """Return which pairs of weights, of levels or knots, are never both positive under rules.

    Rules of more than two columns are restricted to each pair of their columns.

    Parameters
    ----------
    rules : tuple of Rule
    blocks : list of Block
        From `TableEncoder.make_blocks`.

    Returns
    -------
    ndarray of bool of shape (n_columns, n_columns)
        Symmetric, in the order of encoded rows; False within a block.
    """
    n_columns = max(block.where.stop for block in blocks)
    impossible = np.zeros((n_columns, n_columns), dtype=bool)
    for rule in rules:
        for first, second, cells in list_excluded(rule, blocks):
            impossible[first.where, second.where] |= cells
            impossible[second.where, first.where] |= cells.T
    return impossible


def list_excluded(rule, blocks):
    """Yield each pair of blocks of a rule, and which pairs of their weights it excludes."""
    blocks = {block.name: block for block in blocks}
    for pair in itertools.combinations([blocks[n] for n in rule.names if n in blocks], 2):
        yield *pair, _find_cells(rule, *pair)


def _find_cells(rule, first, second):
    """Return which pairs of weights of two blocks a rule excludes."""
    types = {block.name: block.column_type for block in (first, second)}
    cells = np.zeros((first.where.stop - first.where.start, second.where.stop - second.where.start))
    cells = cells.astype(bool)
    if isinstance(rule, Ordered):
        # A knot has weight for values between its neighbours; outer knots, for all beyond.
        least = _list_neighbours(first)[0] / first.column_type.units_per_day
        most = _list_neighbours(second)[1] / second.column_type.units_per_day
        cells[: len(least), : len(most)] = least[:, None] >= most
    elif isinstance(rule, Combinations):
        pair = rule.restrict(types).find_codes(types)
        codes = [np.where(np.isnan(c), -1, c).astype(int) for c in pair.T]
        cells[:] = True
        cells[codes[0], codes[1]] = False
    elif isinstance(rule, Implies) and len(rule.when) == 1 and first.name == rule.when[0][0]:
        when, then = rule.restrict(types).find_conditions(types)
        inside = _find_certain(when[first.name], first)[0]
        outside = _find_certain(then[second.name], second)[1]
        cells |= inside[:, None] & outside
    return cells


def _list_neighbours(block):
    knots = block.knots
    return np.r_[-np.inf, knots[:-1]], np.r_[knots[1:], np.inf]


def _find_certain(condition, block):
    """Return which weights imply a condition, and which exclude it, if they are positive."""
    n_weights = block.where.stop - block.where.start
    if not hasattr(block, "knots"):
        codes = np.where(np.arange(n_weights) == block.n_levels, np.nan, np.arange(n_weights))
        holds = condition.holds(codes)
        return holds, ~holds
    below, above = _list_neighbours(block)
    below[0], above[-1] = block.knots[[0, -1]]
    inside, outside = np.zeros(n_weights, dtype=bool), np.ones(n_weights, dtype=bool)
    n_knots = len(block.knots)
    for lower, upper in condition.ranges:
        inside[:n_knots] |= (lower <= below) & (above <= upper)
        # A value at a neighbouring knot has no weight on this knot, but one at this knot has.
        is_apart = (above <= lower) & (block.knots < lower)
        is_apart |= (below >= upper) & (block.knots > upper)
        outside[:n_knots] &= is_apart
    inside[n_knots:] = condition.holds(
        np.array([*block.atoms, *[np.nan] * block.column_type.missing])
    )
    outside[n_knots:] = ~inside[n_knots:]
    return inside, outside
