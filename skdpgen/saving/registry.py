# SPDX-License-Identifier: BSD-3-Clause
"""Registry of the classes that files of fitted estimators may hold, and names in these files."""

from importlib import import_module

# Name of an array's entry in a file.
ARRAY = "arrays/{}.npy"
_classes: dict[str, type] = {}


def savable(cls):
    """Register a class whose instances may be parts of a saved estimator.

    Files hold the attributes, which are set again without a call of the class. Names are unique,
    since files identify classes by them.
    """
    known = _classes.setdefault(cls.__name__, cls)
    if (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        raise TypeError(
            f"{known.__module__} has registered another class {cls.__name__}: rename this one, as "
            "saved files know classes by their names."
        )
    _classes[cls.__name__] = cls
    return cls


class Savable:
    """Base of classes that are registered when they are defined."""

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        savable(cls)


def is_savable(cls):
    """Return whether a class is registered."""
    return _classes.get(cls.__name__) is cls


def find_class(name):
    """Return the registered class of a name; import modules of the package to find it.

    Raises
    ------
    KeyError
        If there is none. Import a class of another package before.
    """
    package = __package__.partition(".")[0]
    library = import_module(package)
    for home in library.HOMES:
        if name in _classes:
            break
        import_module(f"{package}.{home}")
    return _classes[name]
