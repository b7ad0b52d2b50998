# SPDX-License-Identifier: BSD-3-Clause
"""A synthesizer of smartnoise-synth: an import of this module registers it as ``"skdpgen"``."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from snsynth.base import Synthesizer, synth_map
from snsynth.transform.table import NoTransformer

from .. import Category, DPSWFlowSampler, Number, Schema


class FlowSynthesizer(Synthesizer):
    """`DPSWFlowSampler` as a synthesizer of smartnoise-synth.

    Parameters
    ----------
    epsilon : float, default=1.0
        The budget of all that a fit releases, inferred bounds and categories included.
    **params
        Other parameters of `DPSWFlowSampler`, such as `delta` and `schema`.

    Attributes
    ----------
    generator : DPSWFlowSampler
        After a fit, ``generator.privacy_`` is the certificate.

    Examples
    --------
    >>> import pandas as pd
    >>> import skdpgen.integrations.smartnoise
    >>> from snsynth import Synthesizer
    >>> synth = Synthesizer.create("skdpgen", epsilon=3.0, delta=1e-6, n_steps=5)
    >>> synth.fit(pd.DataFrame({"age": [31, 52, 47] * 100}))
    >>> synth.sample(10).shape
    (10, 1)
    """

    def __init__(self, epsilon: float = 1.0, **params: Any) -> None:
        self.generator = DPSWFlowSampler(epsilon, **params)
        self._schema = self.generator.schema

    def fit(
        self,
        data: pd.DataFrame | np.ndarray | list,
        *,
        transformer: object = None,
        categorical_columns: Sequence = (),
        ordinal_columns: Sequence = (),
        continuous_columns: Sequence = (),
        preprocessor_eps: float = 0.0,
        nullable: bool = False,
        **fit_params: Any,
    ) -> None:
        """Fit the generator to a table.

        Parameters
        ----------
        data : DataFrame, ndarray or list of tuples
            Columns without names are called ``"0"``, ``"1"`` and so on.
        transformer : NoTransformer, default=None
            Others are refused: they read rows outside of the certificate.
        categorical_columns, continuous_columns : sequence, default=()
            Names or positions of columns that are a `Category` or a `Number`, in place of the types
            that are inferred. Refused beside a `schema`.
        ordinal_columns, preprocessor_eps, nullable
            Not used: types and bounds are inferred within `epsilon`, and values may be missing.
        **fit_params
            Others of ``DPSWFlowSampler.fit``, such as `target` and `persons`.
        """
        if not isinstance(transformer, NoTransformer | None):
            raise ValueError(
                "transformer must be None, as column types are inferred within epsilon. Declare "
                "public ones: Synthesizer.create('skdpgen', schema=skdpgen.Schema({...}))."
            )
        self._container = type(data)
        if isinstance(data, np.ndarray | list):
            # All private cells of a list would decide its dtypes.
            data = pd.DataFrame(data, dtype=object if isinstance(data, list) else None)
            data.columns = data.columns.map(str)
            categorical_columns = [*map(str, categorical_columns)]
            continuous_columns = [*map(str, continuous_columns)]
        hints = {name: Category() for name in categorical_columns}
        hints |= {name: Number() for name in continuous_columns}
        if hints and self._schema != "auto":
            raise ValueError(
                f"The schema and the hints both describe {list(hints)}. Drop categorical_columns "
                "and continuous_columns, and declare these columns in the schema."
            )
        self.generator.schema = (
            Schema.from_dtypes(data.dtypes, declared=hints) if hints else self._schema
        )
        self.generator.fit(data, **fit_params)

    def sample(self, n_rows: int | None = None) -> pd.DataFrame | np.ndarray | list:
        """Draw synthetic rows, in the container that `fit` was given.

        Parameters
        ----------
        n_rows : int, default=None
            None: as many as were fitted.
        """
        rows = self.generator.sample(n_rows)
        if issubclass(self._container, np.ndarray):
            return rows.to_numpy()
        if issubclass(self._container, list):
            return list(rows.itertuples(index=False, name=None))
        return rows


synth_map["skdpgen"] = {"class": f"{__name__}.{FlowSynthesizer.__name__}"}
