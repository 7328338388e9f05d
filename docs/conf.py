"""How Sphinx builds this documentation: `make docs`.

Nothing is fetched from elsewhere, so that it builds and reads without a network.
"""

import re
from pathlib import Path

import matplotlib as mpl
from docutils import nodes

import mbkl

DOCS = Path(__file__).parent
STYLE = DOCS / "style.mplstyle"

project = "mbkl"
author = "the mbkl developers"
copyright = f"2026, {author}"
version = release = mbkl.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
    "matplotlib.sphinxext.plot_directive",
]
exclude_patterns = ["_build", "pictures", "auto_examples/**.ipynb"]
default_role = "py:obj"
toc_object_entries_show_parents = "hide"
templates_path = ["_templates"]
# The functions among the settings of the gallery cannot be kept from build to build.
suppress_warnings = ["config.cache"]

html_theme = "pydata_sphinx_theme"
html_title = f"mbkl {release}"
html_static_path = ["_static"]
html_css_files = ["mbkl.css"]
html_theme_options = {
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
    "show_toc_level": 2,
    "pygments_light_style": "tango",
}
html_context = {"default_mode": "auto"}
html_sidebars = {"index": [], "figures": []}
html_show_sourcelink = False

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3

autosummary_generate = True
autosummary_imported_members = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

plot_basedir = str(DOCS)
plot_formats = [("png", 140)]
plot_html_show_formats = False
plot_rcparams = dict(mpl.rc_params_from_file(STYLE, use_default_template=False))
plot_apply_rcparams = True


EXAMPLES = (
    "plot_interactions.py",
    "plot_grown_ferns.py",
    "plot_shape_functions.py",
    "plot_learned_kernel.py",
    "plot_number_of_maps.py",
    "plot_kernel_weights.py",
    "plot_missing_values.py",
    "plot_sparse_text.py",
    "plot_probabilities.py",
    "plot_regression.py",
)


def in_our_order(filename):
    """Return the place of an example in the gallery."""
    return EXAMPLES.index(filename)


def use_our_style(gallery_conf, fname):
    """Draw the pictures of an example in the style of all others."""
    mpl.rcdefaults()
    mpl.style.use(STYLE)


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"demo\.py",
    "within_subsection_order": in_our_order,
    "reset_modules": (use_our_style,),
    "image_srcset": ["2x"],
    "doc_module": ("mbkl",),
    "backreferences_dir": "api/examples",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    # Not every name is used in an example.
    "log_level": {"backreference_missing": "debug"},
}


def escape_attributes(app, what, name, obj, options, lines):
    """Keep shapes such as (n_features_in_,) from being read as links."""
    for number, line in enumerate(lines):
        if "of shape (" in line:
            lines[number] = re.sub(r"_(?=[,)])", r"\\_", line)


def trim_code(app, doctree):
    """Drop the empty line that ends an example for the sake of doctest."""
    for block in doctree.findall(nodes.literal_block):
        block.rawsource = block.astext().rstrip()
        block[:] = [nodes.Text(block.rawsource)]


def setup(app):
    """Connect the functions of this file, after those of the extensions."""
    app.connect("autodoc-process-docstring", escape_attributes, priority=900)
    app.connect("doctree-read", trim_code)
