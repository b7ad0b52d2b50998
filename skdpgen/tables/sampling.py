# SPDX-License-Identifier: BSD-3-Clause
"""Sampling of tables from generated rows of weights, in pieces of bounded memory."""

import numpy as np
import pandas as pd
import torch

from ..format import SAMPLE_BLOCK, check_count
from ..mechanisms.noise import NoiseSource
from .blocks import to_probabilities
from .columns.identifier import go_on
from .encoder import TableEncoder
from .schema import Schema

# Least number of generated rows from which one is drawn under conditions; set by hand.
_N_CANDIDATES = 4


class TableSampler:
    """Draws tables from generated rows of weights.

    Unique values and identifiers are not repeated by later calls.

    Parameters
    ----------
    encoder : TableEncoder
        With calibrated codes.
    generate : callable
        ``generate(classes, generator)`` returns rows of weights of levels.
    noise : NoiseSource
    coincident : tuple, default=()
        As in `TableFormat`.
    """

    def __init__(self, encoder: TableEncoder, generate, noise, coincident: tuple = ()) -> None:
        blocks = dict(encoder.blocks)
        self._coincident = [[(blocks[n], *found) for n, *found in group] for group in coincident]
        self._encoder, self._schema, self._generate = encoder, encoder.schema, generate
        noise.torch_generator()  # skips the stream of classes, which are drawn with the rows
        self._generator, self._public = noise.torch_generator(), noise.public_generator()
        self._used: dict = {}
        self._n_drawn = 0

    def draw(self, n_samples: int, where: dict | None) -> pd.DataFrame:
        """Return new rows that satisfy conditions; see `BaseGenerator.sample`."""
        rows = self._draw(check_count(n_samples), self._find_conditions(where))
        return self._number(rows)

    def draw_classes(self, positions, classes, label, where) -> pd.DataFrame:
        """Return new rows with given levels of the target, by their positions in `classes`."""
        conditions, parts = self._find_conditions(where), []
        if label in conditions:
            raise ValueError(f"y and where both ask for levels of {label!r}; pass one of them.")
        # One condition a class: all its rows are drawn at once.
        for position in np.unique(positions):
            condition = self._find_conditions({label: classes[position]})
            chosen = np.flatnonzero(positions == position)
            # Rows come back in the order in which the classes were asked for.
            parts.append(self._draw(len(chosen), conditions | condition).set_index(chosen))
        return self._number(pd.concat(parts).sort_index().reset_index(drop=True))

    def complete(self, partial: pd.DataFrame, n_samples: int) -> pd.DataFrame:
        """Return one row for each partial row; see `complete_rows`."""
        from .partial_rows import Pool, complete_rows  # rarely needed

        pool = self._generate = Pool(self._generate)
        blocks = self._encoder.make_blocks()
        return complete_rows(partial, n_samples, self._schema, blocks, pool, self._draw)

    def _find_conditions(self, where):
        return self._encoder.find_conditions(where or {})

    def _number(self, rows):
        """Let the identifiers follow those of earlier rows, and count the rows."""
        self._n_drawn += len(rows)
        return go_on(rows, self._schema, self._n_drawn - len(rows))

    def _draw(self, n_rows, conditions):
        # Weights are far wider than the table.
        sizes = [min(SAMPLE_BLOCK, n_rows - start) for start in range(0, n_rows, SAMPLE_BLOCK)]
        pieces = [self._draw_piece(size, conditions) for size in sizes]
        return pieces[0] if len(pieces) == 1 else pd.concat(pieces, ignore_index=True)

    def _draw_piece(self, n_rows, conditions):
        def make_rows(n_rows):
            return self._generate_where(n_rows, conditions)

        # Without rules, columns are independent given the weights, and are drawn at once.
        if not self._schema.rules:
            return self._encoder.draw(make_rows(n_rows), self._public, conditions)
        from .rules.draws import RuleDraws

        draws = RuleDraws(self._schema, self._encoder.make_blocks(), conditions, self._used)
        columns = draws.draw(lambda left: make_rows(len(left)), n_rows, self._public)
        return self._encoder.assemble(columns, n_rows, self._public)

    def _generate_where(self, n_rows, conditions):
        """Generate rows; under conditions, resample them by the probability of the conditions.

        Given its weights, the columns of a row are independent. So the probability is a product,
        and the conditional distribution of the other columns is unchanged.
        """
        sizes = [min(SAMPLE_BLOCK, n_rows - start) for start in range(0, n_rows, SAMPLE_BLOCK)]
        if not conditions:
            return np.concatenate([self._make(size) for size in sizes])
        parts = []
        for size in sizes:
            n_blocks = -(-_N_CANDIDATES * size // SAMPLE_BLOCK)
            rows = np.concatenate([self._make(SAMPLE_BLOCK) for _ in range(n_blocks)])
            weights = np.prod([c.probability(rows) for c in conditions.values()], axis=0)
            if not weights.sum() > 0:
                raise ValueError("No generated row can satisfy y and where: ask for other levels.")
            # Importance resampling: rows in which the conditions are likelier stand for more of
            # them.
            chosen = self._public.choice(len(rows), size, p=weights / weights.sum())
            parts.append(rows[chosen])
        return np.concatenate(parts)

    def _make(self, n_rows):
        rows = self._generate(torch.zeros(n_rows, dtype=torch.int64), self._generator)
        for group in self._coincident:
            rows = draw_together(rows, group, self._public.uniform(size=n_rows))
        return rows


def draw_together(rows, group, uniform):
    """Return rows of weights in which one number a row decides for levels that coincide.

    Each has the mean probability of all, times its share of the records relative to theirs.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_columns)
    group : sequence of (slice, int, float)
        As in `find_coincident`, with columns of rows in place of names.
    uniform : ndarray of shape (n_rows,)
    """
    rows = np.array(rows)
    weights = [to_probabilities(rows[:, where]) for where, *_ in group]
    likely = np.mean([w[:, level] for w, (_, level, _) in zip(weights, group, strict=True)], axis=0)
    for own, (where, level, share) in zip(weights, group, strict=True):
        # A row that has nothing else keeps it.
        is_drawn = (uniform < likely * share) | (own[:, level] == 1)
        own[is_drawn] = 0
        own[:, level] = is_drawn
        rows[:, where] = own
    return rows


def sample_from_schema(
    schema: Schema, n_samples: int, *, where: dict | None = None, random_state=None
) -> pd.DataFrame:
    """Draw rows that obey a schema and its rules, without any data.

    They are for tests of programs and forms. The levels and knots of a column are equally likely,
    and columns are independent but for the rules. No record is read: ε is 0.

    Parameters
    ----------
    schema : Schema
        All bounds and categories are declared.
    n_samples : int
        Number of rows.
    where : dict, default=None
        Conditions on columns; see `BaseGenerator.sample`.
    random_state : None, int or numpy.random.RandomState, default=None
        Seed of the draws.

    Raises
    ------
    ValueError
        If a column is not declared, or no row can satisfy `where` and the rules.

    Examples
    --------
    >>> from skdpgen import Category, Number, Schema
    >>> schema = Schema({"age": Number(18, 90, decimals=0), "sex": Category(["f", "m"])})
    >>> sample_from_schema(schema, 3).columns.tolist()
    ['age', 'sex']
    """
    if schema.undeclared:
        raise ValueError(
            f"Columns {sorted(schema.undeclared)} are not declared in full: without data, nothing "
            "is inferred. Declare their bounds and categories."
        )
    encoder = TableEncoder(schema.with_even_knots())
    sizes = [where.stop - where.start for _, where in encoder.blocks]
    # All levels and knots are equally likely: nothing is known of the data.
    shares = torch.tensor(np.repeat(1 / np.asarray(sizes), sizes))

    def generate(classes, generator):
        return shares.repeat(len(classes), 1).numpy()

    return TableSampler(encoder, generate, NoiseSource(random_state)).draw(n_samples, where)
