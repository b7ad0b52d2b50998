"""Cases without private rows: column types, schemas, budgets and prices, of odd arguments."""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from hypothesis import strategies as st

import skdpgen
from skdpgen import Identifier, Schema, Unknown
from skdpgen.privacy import PrivacyBudget, compose, preview, verify
from skdpgen.tables import (
    Boolean,
    Category,
    Combinations,
    Date,
    Derived,
    Implies,
    Number,
    Ordered,
    Ordinal,
    Unique,
)

from .estimators import MAKERS, NESTED, ODD, evaluate
from .fits import WORDS, fit_once
from .oracle import Call, fault_if
from .rows import NOBODY


def _of_name(name):
    return Schema({name if isinstance(name, Hashable) else None: Boolean()})


# Callables and their usual arguments, of which some are exchanged.
_CALLS = {
    "Number": (Number, {"lower": 0, "upper": 9, "decimals": 0, "n_knots": 4, "atoms": [0]}),
    "knots": (Number, {"lower": 0, "upper": 9, "knots": [0, 3, 9], "missing": True}),
    "scale": (Number, {"lower": 0, "upper": 9, "scale": "log", "n_knots": 3}),
    "Category": (Category, {"categories": ["A", "B"], "other": "C", "missing": True}),
    "Ordinal": (Ordinal, {"categories": ["A", "B"], "missing": True}),
    "Boolean": (Boolean, {"missing": True}),
    "Date": (
        Date,
        {"lower": "2000-01-01", "upper": "2001-01-01", "unit": "day", "n_knots": 3, "zone": None},
    ),
    "Identifier": (Identifier, {"start": 1, "template": "{}", "random": False}),
    "Unknown": (Unknown, {"decimal": ".", "thousands": ",", "date_format": None, "expected": None}),
    "Ordered": (Ordered, {"lower": "a", "upper": "b", "strict": True}),
    "Implies": (Implies, {"when": {"a": 1}, "then": {"b": (0, 5)}}),
    "Derived": (Derived, {"column": "a", "formula": "b + 1"}),
    "Unique": (Unique, {"columns": ["a", "b"]}),
    "Combinations": (Combinations, {"columns": ["a", "b"], "rows": [[1, 2]]}),
    "Schema": (Schema, {"columns": {"a": Number(0, 1)}, "rules": ()}),
    "of a column": (lambda a: Schema({"a": a}), {"a": {"type": "number", "lower": 0, "upper": 1}}),
    "of a name": (_of_name, {"name": "a"}),
    "of a rule": (lambda rule: Schema({"a": Number(0, 1)}, [rule]), {"rule": Unique(["a"])}),
    "from JSON": (Schema.from_json, {"path_or_text": '{"a": {"type": "boolean"}}'}),
    "from public": (
        Schema.from_public,
        {"frame": pd.DataFrame({"a": [1, 2]}), "declared": None, "n_knots": 2},
    ),
    "from dtypes": (Schema.from_dtypes, {"dtypes": {"a": np.dtype(float)}, "declared": None}),
    "select": (Schema({"a": Boolean(), "b": Boolean()}).select, {"names": ["a"]}),
    "PrivacyBudget": (
        PrivacyBudget,
        {"epsilon": 1, "delta": 1e-5, "relation": "zero_out", "threshold_delta": 0.0},
    ),
    "preview": (preview, {"estimator": None, "X": 100, "y": 3, "n_classes": 2, "persons": None}),
    "verify": (verify, {"text": ""}),
    "compose": (compose, {}),
    "epsilon_at": (None, {"delta": 1e-6}),
    "delta_at": (None, {"epsilon": 0.5}),
    "load": (skdpgen.load, {"path": "no file"}),
}
_WORDS = WORDS | NESTED | {"Schema", "schema", "Names", "Rule", "rule", "certificate", "file"}
_WORDS |= {"certificates", "Combinations", "column", "Ordered"}


@dataclass(frozen=True)
class Declaration:
    """A call with some of its usual arguments exchanged for odd ones, by what they are called."""

    called: str
    changed: tuple
    maker: str = "flow"

    def call(self):
        function, arguments = _CALLS[self.called]
        arguments = {**arguments, **{name: evaluate(odd) for name, odd in self.changed}}
        if self.called == "preview" and "estimator" not in dict(self.changed):
            arguments["estimator"] = MAKERS[self.maker]()
        if function is None:
            function = getattr(fit_once("flow", NOBODY).privacy_, self.called)
        if self.called == "compose":
            return self._of(lambda: compose(*arguments.values()), arguments)
        return self._of(lambda: function(**arguments), arguments)

    def _of(self, run, arguments):
        words = _WORDS | set(arguments) | set(MAKERS[self.maker]().get_params())
        refusals = Call.refusals
        refusals += (KeyError,) if self.called == "select" else ()
        refusals += (OSError,) if self.called in ("load", "from JSON") else ()
        return Call(run, tuple(arguments.values()), frozenset(words), refusals, check=self._check)

    def _check(self, made):
        """Raise a `Fault` unless what was declared is the same in JSON, and shows itself."""
        if isinstance(made, Schema):
            fault_if(Schema.from_json(made.to_json()) != made, "JSON changes a schema.")
            fault_if(not repr(made) or not made._repr_html_(), "A schema does not show itself.")
        elif self.called in ("Number", "knots", "scale", "Category", "Ordinal", "Boolean", "Date"):
            schema = Schema({"a": made})
            fault_if(Schema.from_json(schema.to_json()) != schema, "JSON changes a kind.")


@st.composite
def declarations(draw):
    called = draw(st.sampled_from(tuple(_CALLS)))
    names = list(_CALLS[called][1]) or ["certificate"]
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
    return Declaration(
        called,
        tuple((name, draw(st.sampled_from(ODD))) for name in chosen),
        draw(st.sampled_from(tuple(MAKERS))),
    )
