"""Maps of rows: public bounds and encoders, and components from noisy moments."""

from ._codec import RowCodec
from ._components import PrincipalComponents

__all__ = ["PrincipalComponents", "RowCodec"]
