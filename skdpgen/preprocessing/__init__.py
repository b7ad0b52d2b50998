"""Maps of rows: public bounds, schemas and encoders, and components from noisy moments."""

from ._codec import RowCodec, TableCodec
from ._components import PrincipalComponents
from ._schema import Boolean, Category, Date, Number, Ordinal, Schema
from ._table_encoder import TableEncoder

__all__ = [
    "Boolean",
    "Category",
    "Date",
    "Number",
    "Ordinal",
    "PrincipalComponents",
    "RowCodec",
    "Schema",
    "TableCodec",
    "TableEncoder",
]
