"""Torch modules: generator networks."""

from .generators import GENERATORS, build, find_factory

__all__ = ["GENERATORS", "build", "find_factory"]
