"""Docstrings describe the parameters that there are."""

import importlib
import inspect
import pkgutil
import re

import pytest

import skdpgen


def list_callables():
    """Return the public classes, functions and methods of the package, by their full names."""
    found = {}
    for info in pkgutil.walk_packages(skdpgen.__path__, "skdpgen."):
        if info.name.endswith("__main__"):
            continue
        module = importlib.import_module(info.name)
        for name, value in vars(module).items():
            if name.startswith("_") or getattr(value, "__module__", None) != info.name:
                continue
            if inspect.isfunction(value):
                found[f"{info.name}.{name}"] = value
            if inspect.isclass(value):
                found[f"{info.name}.{name}"] = value
                for method, member in vars(value).items():
                    member = getattr(member, "__func__", member)
                    if inspect.isfunction(member) and not method.startswith("_"):
                        found[f"{info.name}.{name}.{method}"] = member
    return found


def list_described(docstring):
    """Return the names in the section of parameters, or None without such a section."""
    sections = re.split(r"^(\w[\w ]*)\n-+\n", inspect.cleandoc(docstring), flags=re.MULTILINE)
    if "Parameters" not in sections:
        return None
    text = sections[sections.index("Parameters") + 1]
    entries = re.findall(r"^(\S[^:\n]*)", text, re.MULTILINE)
    return [name.strip().lstrip("*") for entry in entries for name in entry.split(",")]


_BOUND = ("self", "cls")
CALLABLES = {name: value for name, value in list_callables().items() if value.__doc__}
PUBLIC = {
    id(getattr(module, name))
    for info in pkgutil.iter_modules(skdpgen.__path__, "skdpgen.")
    if not info.name.endswith("__main__")
    for module in [importlib.import_module(info.name)]
    for name in getattr(module, "__all__", ())
}


def test_docstrings_name_the_parameters_of_the_signature():
    """Public ones name all; estimators in the order of the constructor."""
    wrong = []
    for name, value in CALLABLES.items():
        described = list_described(value.__doc__)
        if described is None:
            continue
        known = [name for name in inspect.signature(value).parameters if name not in _BOUND]
        is_complete = set(described) == set(known) or id(value) not in PUBLIC
        is_ordered = described == known or not hasattr(value, "get_params")
        if not (set(described) <= set(known) and is_complete and is_ordered):
            wrong.append(name)
    assert not wrong, f"They describe other parameters than there are: {wrong}."


@pytest.mark.parametrize("name", [n for n in skdpgen.__all__ if n.startswith(("DP", "LDP"))])
def test_constructors_can_be_read_in_the_file_of_their_estimator(name):
    """Common parameters come first, in one order, and defaults are there."""
    cls = getattr(skdpgen, name)
    own = [name for name in inspect.get_annotations(cls) if name != "_"]
    assert own == list(inspect.signature(cls).parameters)
    kinds = [p.kind for p in inspect.signature(cls).parameters.values()]
    positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert own[:2] == ["epsilon", "delta"]
    assert kinds == [positional] * 2 + [inspect.Parameter.KEYWORD_ONLY] * (len(kinds) - 2)
    common = ["epsilon", "delta", "relation", "accountant", "random_state", "device", "verbose"]
    common += ["strict", "bounds", "y_bounds", "classes", "clip_norm", "schema", "encoder"]
    common += ["release", "loss", "network"]
    assert [name for name in own if name in common] == [name for name in common if name in own]


def test_the_check_reads_sections():
    def wrong(first, *, third):
        """Do nothing.

        Parameters
        ----------
        first, second : int
            Numbers: two.
        **third : dict
        """

    assert list_described(wrong.__doc__) == ["first", "second", "third"]
