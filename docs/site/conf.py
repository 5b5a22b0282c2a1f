"""How Sphinx builds the site. `make docs` calls it (docs/site/__main__.py).

Sphinx, because it checks links and their headings by itself, also those by GitHub's rule, and makes the
reference from docstrings; with furo, whose fonts and scripts are all its own.
"""

import re
import tomllib

from docs.site.pages import ROOT

_about = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
project, release = "Kernelscope", _about["version"]
html_title = f"{project} {release}"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
root_doc = "index"
language = "en"
myst_heading_anchors = 6
# Blocks without a language are commands, paths and what they print.
highlight_language = "none"
smartquotes = False  # two hyphens are an option, and no dash
copybutton_prompt_text = "$ "
# A single backtick in a docstring is code, as in Markdown.
default_role = "code"
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True

html_theme = "furo"
html_static_path = [str(ROOT / "docs/site/static")]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_theme_options = {"top_of_page_buttons": []}
pygments_style, pygments_dark_style = "friendly", "github-dark"


def _docstring(app, what, name, obj, options, lines):
    """Docstrings are plain text with code in backticks, and blocks of it behind four spaces: what else would
    mean something to Sphinx is text."""
    found, block = [], False
    for line, before in zip(lines, ["", *lines], strict=False):
        if line.strip() and not line.startswith("    "):
            block = False
        elif line.startswith("    ") and not before.strip() and not block:
            found += ["::", ""]
            block = True
        parts = [line] if block else re.split(r"(`[^`]*`)", line)
        found.append(
            "".join(
                part if block or part.startswith("`") else re.sub(r"([*|]|_(?=\W|$))", r"\\\1", part)
                for part in parts
            )
        )
    lines[:] = found


def setup(app):
    app.connect("autodoc-process-docstring", _docstring)
