# SPDX-License-Identifier: BSD-3-Clause
"""Registry of the classes that files of fitted estimators may hold, and names in these files."""

from importlib import import_module
from pkgutil import walk_packages

# Name of an array's entry in a file.
ARRAY = "arrays/{}.npy"
# Packages with parts of estimators, next to the modules of public names.
_ROOMS: tuple[str, ...] = (
    "generators",
    "learners",
    "preprocessing",
    "networks",
    "mechanisms",
    "tables",
    "arrays",
)
_ROOMS += ("curator", "data", "histories")
_classes: dict[str, type] = {}


def savable(cls):
    """Register a class whose instances may be parts of a saved estimator.

    Files hold the attributes, which are set again without a call of the class. Names are unique,
    since files identify classes by them.
    """
    known = _classes.setdefault(find_name(cls), cls)
    if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        raise TypeError(
            f"{known.__module__} has registered another class {cls.__name__}: rename this one, as "
            "saved files know classes by their names."
        )
    _classes[find_name(cls)] = cls
    return cls


def find_name(cls):
    """Return the name of a class in files: parts of other packages have that of their module."""
    is_other = issubclass(cls, Savable) and cls.__module__.partition(".")[0] != __package__
    return f"{cls.__module__}.{cls.__name__}" if is_other else cls.__name__


class Savable:
    """Base of classes that are registered when they are defined."""

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        savable(cls)


def is_savable(cls):
    """Return whether a class is registered."""
    return _classes.get(find_name(cls)) is cls


def find_class(name):
    """Return the registered class of a name; import modules of the package to find it.

    Raises
    ------
    KeyError
        If there is none. Import a class of another package before.
    """
    if name not in _classes:
        _import_definition(name)
    return _classes[name]


def _import_definition(name):
    """Import modules of the package until one of them defines a class."""
    for home in import_module(__package__).HOMES:
        # A public class is found by its name, without the others.
        module = import_module(f"{__package__}.{home}")
        if name in module.__all__:
            getattr(module, name)
        if name in _classes:
            return
    for room in _ROOMS:
        path = import_module(f"{__package__}.{room}").__path__
        for module in walk_packages(path, f"{__package__}.{room}."):
            import_module(module.name)
            if name in _classes:
                return
