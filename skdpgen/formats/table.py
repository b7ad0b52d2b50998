"""The public map between tables with a schema and rows as releases see them."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from .inference import SchemaInference
from .schema import Schema
from .table_encoder import TableEncoder, check_columns, check_dtypes
from .texts import parse_found

__all__ = ["TableCodec"]


@dataclass(frozen=True)
class TableCodec:
    """Maps tables with a public schema to rows in the unit ball and back.

    Parameters
    ----------
    schema : Schema
        The columns. Those that are open have to be found first: see `settle`.
    texts : tuple of str, default=()
        Columns that come as texts, whose kinds were found.
    """

    schema: Schema
    texts: tuple = ()
    encoder = None

    @property
    def releases(self):
        """The names of what `settle` asks a curator for."""
        return SchemaInference(self.schema).releases

    def settle(self, curator):
        """Find what is open, and return a codec that the curator then encodes rows by."""
        if not self.schema.open_names:
            return self
        inference = SchemaInference(self.schema)
        settled = TableCodec(inference.run(curator), inference.unknown)
        curator.prepare(settled.encode)
        return settled

    @property
    def _table_encoder(self):
        return TableEncoder(self.schema)

    def cells(self, table):
        """Check the columns of a table, and return its cells in the order of the schema."""
        check_columns(table, self.schema)
        return table[list(self.schema)].to_numpy(dtype=object)

    def check_dtypes(self, table):
        """Refuse columns of which no cell can be as declared, by their dtypes."""
        check_dtypes(table, self.schema)

    @property
    def blocks(self):
        """The name of each column, and its columns in rows."""
        return self._table_encoder.blocks

    @property
    def n_columns(self):
        """Number of columns of a row."""
        return self._table_encoder.n_columns

    def refuse(self, X, y=None):
        """Raise an error that names the column if cells are not as the schema declares them."""
        if self.schema.open_names:
            SchemaInference(self.schema).refuse(X)
        else:
            table = pd.DataFrame(X, columns=list(self.schema))
            self._table_encoder.transform(parse_found(table, self.schema, self.texts))

    def encode(self, X, y=None):
        """Map cells, an array of objects in the order of the schema, to rows; NaN for bad ones."""
        if self.schema.open_names:
            return SchemaInference(self.schema).encode(X)
        table = pd.DataFrame(X, columns=list(self.schema))
        return self._table_encoder.transform_private(parse_found(table, self.schema, self.texts))

    @property
    def block_sizes(self):
        """Number of columns of each block."""
        return [where.stop - where.start for _, where in self.blocks]

    def levels(self, name):
        """Return the levels of a column, or None for one of numbers or dates."""
        levels = getattr(self.schema.get(name), "levels", None)
        return None if levels is None else np.array(levels)

    def decode(self, rows, random_state):
        """Draw a table from rows of probabilities."""
        return self._table_encoder.draw(rows, random_state)
