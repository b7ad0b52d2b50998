"""Constructors of estimators: parameters in one order."""

import inspect

import pytest

import skdpgen


@pytest.mark.parametrize("name", [n for n in skdpgen.__all__ if n.startswith(("DP", "LDP"))])
def test_constructors_can_be_read_in_the_file_of_their_estimator(name):
    """Common parameters come first, in one order, and defaults are there."""
    cls = getattr(skdpgen, name)
    assert "__init__" in vars(cls)
    own = list(inspect.signature(cls).parameters)
    kinds = [p.kind for p in inspect.signature(cls).parameters.values()]
    positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert own[:2] == ["epsilon", "delta"]
    assert kinds == [positional] * 2 + [inspect.Parameter.KEYWORD_ONLY] * (len(kinds) - 2)
    common = ["epsilon", "delta", "relation", "accountant", "random_state", "device", "verbose"]
    common += ["strict", "bounds", "y_bounds", "classes", "clip_norm", "schema", "encoder"]
    common += ["release", "loss", "network"]
    assert [name for name in own if name in common] == [name for name in common if name in own]
