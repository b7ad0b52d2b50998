"""Configuration of the documentation: sphinx, numpydoc and sphinx-gallery."""

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
html_theme = "alabaster"
html_theme_options = {
    "description": "Differentially private generative models",
    "page_width": "1060px",
}

autosummary_generate = True
autodoc_default_options = {"members": True, "inherited-members": False}
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "download_all_examples": False,
    "show_memory": False,
    "within_subsection_order": "FileNameSortKey",
}
