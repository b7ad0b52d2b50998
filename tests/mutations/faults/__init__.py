"""Faults by kind: one file for each part of the package."""

import importlib
import pkgutil

_ROOMS = [
    importlib.import_module(f".{room.name}", __name__) for room in pkgutil.iter_modules(__path__)
]
LISTS = {
    # Privacy, and the statements of certificates.
    "privacy": [vars(room).get("PRIVACY", {}) for room in _ROOMS],
    # Learning, and the rows and words that users get.
    "function": [vars(room).get("FUNCTION", {}) for room in _ROOMS],
}
KINDS = {
    kind: {name: fault for part in parts for name, fault in part.items()}
    for kind, parts in LISTS.items()
}
