# SPDX-License-Identifier: BSD-3-Clause
"""Private inference of a schema alone: types, ranges and categories for a part of the budget."""

import math
from dataclasses import dataclass, field, fields, replace
from typing import Any

from .._process.isolation import isolated
from ..accounting.calibration import find_delta
from ..accounting.certificate import Certificate
from ..accounting.plan import Plan, gaussian_plan
from ..accounting.provenance import Provenance
from ..accounting.rounding import plain_numbers
from ..accounting.spending import report_spent_on_error
from ..curator.curator import open_curator
from ..data.record_functions import clears_frames
from ..data.texts import TextStyle
from ..mechanisms.noise import NoiseSource
from ..mechanisms.sums import RowCountMechanism, count_rows_by
from ..params import warn_of_delta
from ..planning.fits import find_thresholds
from ..quality import collects_findings
from ..tables.discovery.stages import SchemaInference, noise_on_counts
from ..tables.discovery.type_inference import FEW, KINDS
from ..tables.schema import Schema
from ._sliced_flow import DPSWFlowSampler

# Parameters of the shape of a numeric column, which a fit infers within its bounds.
_SHAPE = {"n_knots", "scale", "knots", "atoms", "cuts"}


@dataclass(frozen=True)
class InferredSchema:
    """A schema that was inferred under differential privacy.

    Attributes
    ----------
    schema : Schema
        Types, bounds and categories of all columns.
    privacy_ : Certificate
        Certificate of its releases. A later fit to the same rows adds to their cost; see `compose`.
    styles : dict of str to TextStyle
        How the columns whose types were inferred are written.
    """

    schema: Schema
    privacy_: Certificate
    styles: dict[str, TextStyle] = field(default_factory=dict)


@clears_frames()
@isolated()
def infer_schema(X, *, target: str | None = None, persons=None, **params) -> InferredSchema:
    """Infer the schema of a private table, and nothing else, under differential privacy.

    It spends all of ε on types, ranges and categories, which can then be corrected from public
    knowledge and declared to a generator. Knots are left to that generator's fit.

    Parameters
    ----------
    X : DataFrame, file or chunks
        As in the ``fit`` of a generator.
    target, persons
        As in the ``fit`` of a generator.
    **params
        ``epsilon``, ``delta``, ``relation``, ``schema``, ``max_rows_per_person``,
        ``random_state``, ``strict`` and ``verbose``, as in `DPSWFlowSampler`.

    Returns
    -------
    InferredSchema

    Raises
    ------
    ValueError
        If nothing is left to infer, or for invalid arguments; nothing is spent.

    Examples
    --------
    >>> import pandas as pd
    >>> from skdpgen.privacy import infer_schema
    >>> table = pd.DataFrame({"ward": ["A", "B"] * 1000, "age": [30, 60] * 1000})
    >>> found = infer_schema(table, epsilon=2.0, delta=1e-6)
    >>> found.schema["ward"].categories, found.privacy_.epsilon <= 2.0
    (('A', 'B'), True)
    """
    planner, format, dataset, plan = _prepare(X, target, persons, params)
    warn_of_delta(plan.delta, dataset.n_records)
    found = None
    with (
        plain_numbers(planner),
        report_spent_on_error(
            lambda: found and found.privacy_, lambda: (found, "It is kept, as error.release.")
        ),
        collects_findings(None),
    ):
        with open_curator(
            dataset,
            format,
            plan,
            NoiseSource(planner.random_state),
            strict=planner.strict,
            verbose=planner.verbose,
            row_count=RowCountMechanism(),
        ) as curator:
            resolved = format.resolve(curator)
            certificate = curator.certificate(planner._list_assumptions(format))
        made = replace(Provenance.of(planner), estimator=infer_schema.__name__)
        # Declared columns stay as they were; inferred ones keep bounds and categories only.
        columns = {
            name: _without_knots(column)
            if name in format.schema.undeclared
            else format.schema[name]
            for name, column in resolved.schema.items()
        }
        schema = Schema(columns, resolved.schema.rules)
        found = InferredSchema(schema, replace(certificate, provenance=made), resolved.texts)
    return found


@clears_frames()
@isolated()
def count_needed_rows(X, *, target: str | None = None, persons=None, **params) -> int:
    """Return from how many rows on `infer_schema` finds more than noise; nothing is spent.

    With fewer, the counts of all rows are not clear of the noise on each count.
    """
    _, format, _, plan = _prepare(X, target, persons, params)
    inference = SchemaInference(format.schema)
    first = inference.releases[0]
    names = inference.unknown if first == KINDS else inference.schema.undeclared
    return math.ceil(FEW * noise_on_counts(plan, first, len(names)))


def _prepare(X, target, persons, params):
    """Return the parameters, format, private rows and plan of a look, from public facts only."""
    # Any generator of tables would do: inference does not depend on the method.
    planner: Any = DPSWFlowSampler(**{"schema": "private", **params})
    planner._check_params()
    with plain_numbers(planner):
        format, dataset = planner._read(X, None, target, persons)
        if not getattr(format.parameters["schema"], "undeclared", ()):
            raise ValueError("The schema declares all columns: nothing is left to infer.")
        planner.delta = find_delta(planner.delta, dataset.n_records)
        return planner, format, dataset, _plan(planner, format, dataset.max_rows)


def _plan(planner, format, max_rows: int | None) -> Plan:
    """Plan the releases of inference, with all of the budget."""
    counted = count_rows_by(max_rows)
    left = 1 - sum(counted.values())
    # Shares of inference within a fit of many rows, scaled up to the whole budget.
    planned = format.split_budget(0.0)
    unit = left / sum(planned.values())
    shares = counted | {name: unit * share for name, share in planned.items()}
    plan = gaussian_plan(
        shares,
        planner.epsilon,
        planner.delta,
        thresholds=find_thresholds(shares, planner.delta),
        relation=planner.relation,
        accountant=planner.accountant,
    )
    return replace(plan, max_rows=max_rows)


def _without_knots(column):
    """Return a column with its bounds, but without what describes its shape."""
    names = {field.name for field in fields(column)}
    return replace(column, **dict.fromkeys(_SHAPE & names))
