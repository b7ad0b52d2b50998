"""Configuration of the documentation: sphinx, its theme, numpydoc and sphinx-gallery."""

import collections
import importlib
import importlib.util
import re
import types

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

import skdpgen

project = "skdpgen"
author = "the skdpgen developers"
copyright = author
version = release = skdpgen.__version__
logger = logging.getLogger(__name__)

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "auto_examples/*.ipynb", "auto_examples/*.py"]
default_role = "literal"
# Our own names have to be found; those of other libraries have no pages here.
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(?!skdpgen\b).*")]

html_theme = "pydata_sphinx_theme"
html_title = f"skdpgen {version}"
html_static_path = ["_static"]
html_css_files = ["skdpgen.css"]
html_favicon = "_static/logo.svg"
html_math_renderer = "mathml"
html_show_sourcelink = False
html_theme_options = {
    "logo": {
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
        "text": "skdpgen",
    },
    "navbar_start": ["navbar-logo", "version"],
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 9,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": ["version"],
    "show_prev_next": True,
    "navigation_with_keys": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "gallery": []}
copybutton_exclude = ".linenos, .gp"

autosummary_generate = True
# Pages of classes list their methods by short names, which fit the sidebar.
toc_object_entries_show_parents = "hide"
# Docstrings say of what types parameters are.
autodoc_typehints = "none"
numpydoc_show_class_members = False
# No parameter is described that is not there.
numpydoc_validation_checks = {"PR02"}
# Python's own, whose source it does not find.
numpydoc_validation_exclude = {r"\.Schema\.(get|items|keys|values)$"}

HAS_DASK = all(map(importlib.util.find_spec, ("dask", "pyarrow")))
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    # Where there is no Dask, its example is shown and does not run.
    "filename_pattern": r"/plot_" if HAS_DASK else r"/plot_(?!dask)",
    # Pages of the API show the examples that use a name.
    "doc_module": ("skdpgen",),
    "backreferences_dir": "api/backreferences",
    "inspect_global_variables": False,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    # A page of times would load its scripts from elsewhere.
    "write_computation_times": False,
    "within_subsection_order": "FileNameSortKey",
}


def write_math(writer, node):
    """Write a formula as MathML, which browsers show by themselves, without a network."""
    is_block = isinstance(node, nodes.math_block)
    try:
        formula = tex2mathml(node.astext(), as_block=is_block)
    except MathError as error:
        logger.warning("A formula is not understood: %s", error, location=node)
        formula = node.astext()
    writer.body.append(f'<div class="math">{formula}</div>' if is_block else formula)
    raise nodes.SkipNode


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
                    logger.warning("No page shows %s.", path)


def setup(app):
    app.add_html_math_renderer("mathml", (write_math, None), (write_math, None))
    app.connect("autodoc-process-docstring", drop_roles)
    app.connect("env-check-consistency", check_methods)
