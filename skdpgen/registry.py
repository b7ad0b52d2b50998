# SPDX-License-Identifier: BSD-3-Clause
"""Classes that files of fitted estimators may hold, each registered where it is defined."""

from importlib import import_module

_classes = {}


def savable(cls):
    """Register a class whose instances may be parts of a saved estimator.

    Its attributes are written, and set again when a file is read, without a call of its own. Names
    are unique, since files hold nothing else of a class.
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
    """A base whose subclasses are all registered."""

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        savable(cls)


def is_savable(cls):
    """Whether a class is registered."""
    return _classes.get(cls.__name__) is cls


def find_class(name):
    """Return the registered class of a name, and import packages of the library to find it.

    Raises
    ------
    KeyError
        If there is none. A class of another package must have been imported before.
    """
    library = import_module(__package__)
    for home in library.HOMES:
        if name in _classes:
            break
        import_module(f"{__package__}.{home}")
    return _classes[name]
