"""Configuration of the documentation: sphinx, numpydoc and sphinx-gallery."""

import collections
import importlib
import re
import types

from sphinx.util import logging

import skdpgen

project = "skdpgen"
author = "the skdpgen developers"
copyright = author
version = release = skdpgen.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "auto_examples/*.ipynb", "auto_examples/*.py"]
default_role = "literal"
# Our own names have to be found; those of other libraries have no pages here.
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(?!skdpgen\b).*")]
html_theme = "alabaster"
html_theme_options = {
    "description": "Differentially private generative models",
    "page_width": "1060px",
}

autosummary_generate = True
# Docstrings say of what types parameters are.
autodoc_typehints = "none"
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "download_all_examples": False,
    "show_memory": False,
    "within_subsection_order": "FileNameSortKey",
}


def drop_roles(app, what, name, obj, options, lines):
    """Keep the text of references to scikit-learn's own pages in docstrings that it hands down."""
    if (getattr(obj, "__module__", None) or "").startswith("sklearn."):
        text = re.sub(r":(?:ref|term):`([^`<]+?)\s*(?:<[^`]*>)?`", r"\1", "\n".join(lines))
        lines[:] = text.split("\n")


def check_methods(app, env):
    """Warn of public methods that we wrote, inherited ones too, and that no page shows."""
    shown = env.get_domain("py").objects
    kinds = types.FunctionType | classmethod | staticmethod
    for name, entry in list(shown.items()):
        module, _, title = name.rpartition(".")
        if entry.objtype == "class" and not entry.aliased:
            owners = getattr(importlib.import_module(module), title).__mro__
            ours = [vars(owner) for owner in owners if owner.__module__.startswith("skdpgen")]
            for method, value in collections.ChainMap(*ours).items():
                path = f"{name}.{method}"
                if isinstance(value, kinds) and method[0] != "_" and path not in shown:
                    logging.getLogger(__name__).warning("No page shows %s.", path)


def setup(app):
    app.connect("autodoc-process-docstring", drop_roles)
    app.connect("env-check-consistency", check_methods)
