"""The site's pages: which there are, in which order, and how they are laid out for Sphinx.

Every page is a Markdown file of the repository as it stands, but for two that are made when the site is
built: the list of all commands and options (docs/site/commands.py), and the reference of the Python
package, from its docstrings. The tree that Sphinx reads mirrors the repository, so links between files
lead where they lead there.
"""

from __future__ import annotations

import inspect
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import kernelscope
from docs.site import commands

ROOT = Path(__file__).resolve().parents[2]
FIRST = "README.md"  # index.html
HOME = "What it is, and how to start"

COMMANDS, PYTHON = "reference/commands.md", "reference/python.md"
# In the order of somebody who has just come; the first page leads to installing and the first comparison.
NAVIGATION: dict[str, tuple[str, ...]] = {
    "Start": (FIRST, "docs/tour.md", "docs/gallery.md", "docs/models.md"),
    "A kernel of your own": (
        "docs/writing-a-kernel.md",
        "docs/tasks.md",
        "docs/without-a-gpu.md",
        "docs/export.md",
        "docs/commands.md",
    ),
    "Measuring and trust": (
        "docs/measuring.md",
        "docs/trust.md",
        "docs/results/speed.md",
        "docs/results/README.md",
        "docs/nets.md",
    ),
    "Python": ("docs/python.md", PYTHON),
    "Over time, and in CI": ("docs/comparing-runs.md", "docs/ci.md", "docs/containers.md"),
    "Teaching": ("docs/teaching.md",),
    "Other machines": ("docs/elsewhere.md", "docs/fleet.md"),
    "Backends": ("docs/writing-a-backend.md", "docs/conformance.md"),
    "Reports": ("docs/reports.md", "docs/course-reports.md"),
    "Reference": (COMMANDS, "docs/formats.md", "bench/words/glossary.md", "SECURITY.md"),
    "The project": ("CHANGELOG.md", "CONTRIBUTING.md", "docs/architecture.md"),
}
# Pages that another page leads to, and the navigation does not.
BESIDE = (
    "models/data/digits.md",
    "models/data/imagenet.md",
    "tests/bench/judge/cheats/README.md",
    *(
        f"docs/results/{name}.md"
        for name in (
            "attack-cpu",
            "attack-h100",
            "attack-others-h100",
            "class-graded",
            "course-reports",
            "limit-h100",
            "limit-xeon-16-cores",
            "limit-xeon-2-cores",
            "speed-tried",
            "rehearsal-cpu",
            "rehearsal-h100",
            "rehearsal-h200",
            "simulated",
        )
    ),
)

LINK = re.compile(r"(!?\[[^\]]*\]\()([^)\s]+)(\))")
FENCED = re.compile(r"^(?:```|~~~).*?^(?:```|~~~)", re.MULTILINE | re.DOTALL)


def reference() -> str:
    """What `import kernelscope` gives, in the order in which it names it itself."""
    text = "# The Python package\n\n```{eval-rst}\n.. automodule:: kernelscope\n```\n"
    for name in getattr(kernelscope, "__all__", ()):
        kind = "class" if inspect.isclass(getattr(kernelscope, name)) else "function"
        members = "   :members:\n   :inherited-members: Struct, BaseException\n" if kind == "class" else ""
        text += f"\n## {name}\n\n```{{eval-rst}}\n.. auto{kind}:: kernelscope.{name}\n{members}```\n"
    return text


def left_out() -> list[str]:
    """Pages below docs/ that the site has no place for: whoever writes one says where it stands."""
    placed = {*BESIDE, *(page for pages in NAVIGATION.values() for page in pages)}
    found = (path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))
    return sorted(set(found) - placed)


def lay_out(tree: Path) -> None:
    """Writes what Sphinx reads into an empty folder. ValueError if a page has no place in the navigation."""
    if unknown := left_out():
        raise ValueError(f"no place in the navigation: {', '.join(unknown)}; docs/site/pages.py has the list")
    for page in (*BESIDE, *(page for pages in NAVIGATION.values() for page in pages)):
        if page not in (COMMANDS, PYTHON):
            _copy(page, tree)
    for page, text in ((COMMANDS, commands.markdown()), (PYTHON, reference())):
        _write(tree / page, text)
    index = tree / "index.md"
    _write(index, index.read_text("utf-8") + "".join(_contents()))


def _copy(page: str, tree: Path) -> None:
    """A page, and the pictures and files that it leads to."""
    text = (ROOT / page).read_text("utf-8")
    for target in _files(text, page):
        if target.suffix != ".md" and (ROOT / target).is_file():
            (tree / target).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / target, tree / target)

    def led(link: re.Match[str]) -> str:
        """README.md is the site's index."""
        name, hash_, anchor = link[2].partition("#")
        if name and not re.match(r"[a-z]+:", name) and _target(page, name) == FIRST:
            name = os.path.relpath("index.md", os.path.dirname(page))
        return f"{link[1]}{name}{hash_}{anchor}{link[3]}"

    if not re.search(r"^# ", text, re.MULTILINE):
        text = f"# {Path(page).stem.capitalize()}\n\n{text}"
    _write(tree / ("index.md" if page == FIRST else page), LINK.sub(led, text))


def _files(text: str, page: str) -> Iterator[Path]:
    for link in LINK.finditer(FENCED.sub("", text)):
        name = link[2].partition("#")[0]
        if name and not re.match(r"[a-z]+:", name):
            yield Path(_target(page, name))


def _target(page: str, name: str) -> str:
    return os.path.normpath(os.path.join(os.path.dirname(page), name)).replace(os.sep, "/")


def _contents() -> Iterator[str]:
    """The navigation as Sphinx takes it."""
    for caption, pages in NAVIGATION.items():
        names = [f"{HOME} <self>" if page == FIRST else page.removesuffix(".md") for page in pages]
        yield f"\n\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(names) + "\n```\n"
    beside = "\n".join(page.removesuffix(".md") for page in BESIDE)
    yield f"\n\n```{{toctree}}\n:hidden:\n:caption: Records\n\n{beside}\n```\n"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
