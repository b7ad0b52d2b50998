"""Maps of rows: public bounds, schemas and encoders, and components from noisy moments."""

from ._autoencoder import Autoencoder
from ._codec import RowCodec, TableCodec, check_bounds
from ._components import PrincipalComponents
from ._dp_pca import DPPCA
from ._inference import declare_by_dtypes
from ._local_codec import LocalCodec, cosine_matrices
from ._local_privatizer import LOCAL_NORMS, LocalPrivatizer
from ._low_frequencies import LowFrequencies
from ._schema import Boolean, Category, Date, Number, Ordinal, Schema, Unknown
from ._table_encoder import TableEncoder, check_closed
from ._texts import parse_texts

__all__ = [
    "DPPCA",
    "LOCAL_NORMS",
    "Autoencoder",
    "Boolean",
    "Category",
    "Date",
    "LocalCodec",
    "LocalPrivatizer",
    "LowFrequencies",
    "Number",
    "Ordinal",
    "PrincipalComponents",
    "RowCodec",
    "Schema",
    "TableCodec",
    "TableEncoder",
    "Unknown",
    "check_bounds",
    "check_closed",
    "cosine_matrices",
    "declare_by_dtypes",
    "parse_texts",
]
