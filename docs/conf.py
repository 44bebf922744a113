"""How Sphinx builds this folder: `make docs`."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from gemmsim.support.version import __version__

gc.set_threshold(200_000, 20, 100)  # with the usual one, garbage collection takes a quarter of the time of a build

project = "gemmsim"
version = release = __version__
html_title = f"gemmsim {__version__}"

extensions = [
    "myst_nb",  # Markdown, and notebooks as text that are executed
    "sphinx.ext.autodoc",
    "sphinx.ext.viewcode",
    "docstrings",
    "generated",
    "navigation",
]
exclude_patterns = ["_ext", "_build", "ladder.md"]
smartquotes = False

html_theme = "furo"
html_copy_source = False
html_show_copyright = False
pygments_style = "default"
pygments_dark_style = "monokai"

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "auto"  # what has no stored output
nb_execution_in_temp = True
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True

add_module_names = False
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 80
