"""Faults by kind: one file for each part of the package."""

import importlib
import pkgutil

_MODULES = [
    importlib.import_module(f".{info.name}", __name__) for info in pkgutil.iter_modules(__path__)
]
LISTS = {
    # Privacy, and the statements of certificates.
    "privacy": [vars(module).get("PRIVACY", {}) for module in _MODULES],
    # Learning, and the rows and words that users get.
    "function": [vars(module).get("FUNCTION", {}) for module in _MODULES],
}
KINDS = {
    kind: {name: fault for part in parts for name, fault in part.items()}
    for kind, parts in LISTS.items()
}
