# SPDX-License-Identifier: BSD-3-Clause
"""Names of a package that are imported on first use, so that a fit loads what it needs alone."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def import_late(package: str, names: Mapping[str, str]) -> tuple[Callable, Callable, list[str]]:
    """Return the functions `__getattr__` and `__dir__` of a package, and its `__all__`.

    Parameters
    ----------
    package : str
        The ``__name__`` of the package; or of a module, from which others begin with two dots.
    names : dict of str to str
        Public names, separated by blanks, of each module, which is relative to the package.
    """
    homes = {name: module for module, given in names.items() for name in given.split()}

    def find(name):
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(homes[name], package), name)
        setattr(sys.modules[package], name, value)
        return value

    return find, lambda: sorted(homes), sorted(homes)


def late(package: str, name: str, **params: object) -> Callable:
    """Return a function that imports a class, and makes an object of it with these parameters."""
    return lambda: getattr(import_module(package), name)(**params)
