"""The documents: every link leads to a file and a heading that exist, every picture is shown somewhere, and
short pages stay short."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from kernels.ops import OPS

ROOT = Path(__file__).resolve().parents[1]
README_BYTES, ARCHITECTURE_LINES = 7 * 1024, 100
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")


def pages() -> list[Path]:
    """Every Markdown file of the repository, and none of what a user keeps beside it."""
    folders = ("bench", "docs", "engine", "gui", "kernels", "models", "tests")
    return sorted([*ROOT.glob("*.md"), *(page for name in folders for page in (ROOT / name).rglob("*.md"))])


def text_of(page: Path) -> str:
    """Without its blocks of code, in which brackets are no links."""
    return re.sub(r"^(```|~~~).*?^\1", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """What `#…` may lead to in a page, by GitHub's rule: small letters, no punctuation, hyphens."""
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} +(.*?) *#*$", text_of(page), flags=re.MULTILINE):
        words = re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower())
        name, number = words.replace(" ", "-"), 1
        while name in found:
            name, number = f"{words.replace(' ', '-')}-{number}", number + 1
        found.add(name)
    return found


def broken(page: Path) -> Iterator[str]:
    """The links of a page that lead nowhere in this repository. Addresses elsewhere are not asked."""
    for link in LINK.findall(text_of(page)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists():
            yield f"{page.name}: {link}: there is no such file"
        elif anchor and (target.suffix != ".md" or anchor not in anchors(target)):
            yield f"{page.name}: {link}: there is no such heading"


def test_every_link_leads_somewhere() -> None:
    assert [wrong for page in pages() for wrong in broken(page)] == []


def test_the_page_on_kernels_names_every_operator() -> None:
    page = (ROOT / "docs" / "writing-a-kernel.md").read_text(encoding="utf-8")
    named = re.findall(r"`(\w+)`", page.partition("\n## 1. ")[2].partition("\n## 2. ")[0])
    assert OPS.keys() - {*named} == set()


OURS = r"(?<![\w./-])((?:bench|engine|kernels|models|gui|tests|docs|locks)"
# Files that a reader is told to write.
WRITTEN = ("engine/backends/mine.py", "engine/backends/_my_session.py")


def missing(text: str, root: Path = ROOT) -> Iterator[str]:
    """Files and modules of this repository that a text names and that are not there. Names with a
    placeholder (`<op>`, NN_name, NAME) are not asked."""
    for path in sorted(set(re.findall(OURS + r"/[\w./<>*{}-]*\w/?)", text))):
        if not re.search(r"[<>*{}]|NN_|NAME", path) and not (root / path).exists() and path not in WRITTEN:
            yield path
    for name in sorted(set(re.findall(OURS + r"(?:\.\w+)+)(?!\(|\w|/)", text))):
        *folders, last = re.split(r"\.(?=[A-Z])", name)[0].split(".")  # without a class and what follows it
        at = root.joinpath(*folders)
        # The last word may be a name in the module before it.
        inside = at / "__init__.py" if at.is_dir() else at.with_suffix(".py")
        there = (at / last).is_dir() or (at / f"{last}.py").is_file()
        if not there and last != "md" and not (inside.is_file() and last in inside.read_text("utf-8")):
            yield name


def test_every_file_and_module_that_the_documents_name_exists() -> None:
    named = {page.name: [*missing(page.read_text(encoding="utf-8"))] for page in pages()}
    assert {page: names for page, names in named.items() if names} == {}


def test_every_picture_of_the_documents_is_shown() -> None:
    shown = {
        (page.parent / link).resolve()
        for page in pages()
        for link in LINK.findall(text_of(page))
        if "png" in link
    }
    assert set((ROOT / "docs").rglob("*.png")) == shown


def test_every_page_is_reached_from_the_readme() -> None:
    known = {page.resolve() for page in pages() if page.is_relative_to(ROOT / "docs")}
    reached, left = set(), [ROOT / "README.md"]
    while left:
        page = left.pop()
        if page not in reached and page.suffix == ".md":
            reached.add(page)
            links = (
                link.partition("#")[0]
                for link in LINK.findall(text_of(page))
                if not re.match(r"[a-z]+:", link)
            )
            left += [(page.parent / link).resolve() for link in links if link]
    assert known - reached == set()


def test_short_pages_stay_short() -> None:
    assert len((ROOT / "README.md").read_bytes()) <= README_BYTES
    assert len((ROOT / "docs/architecture.md").read_text("utf-8").splitlines()) <= ARCHITECTURE_LINES


def test_a_broken_link_and_a_missing_file_are_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# One `two`: three\n\n# One two three\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](other.md) [b](other.md#one-two-three-1) [c](https://example.com) [d](gone.md) [e](other.md#x)\n"
        "```\nx[i](j)\n```\n"
    )
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "a.py").write_text("name = 1\n")
    text = (
        "`bench/a.py` `bench/b.py` bench.a, bench.a.name, bench.a.Kind.x, bench.a.gone, kernels/<op>/NN_x.cu"
    )
    assert list(missing(text, tmp_path)) == ["bench/b.py", "bench.a.gone"]
    assert list(broken(page)) == [
        "page.md: gone.md: there is no such file",
        "page.md: other.md#x: there is no such heading",
    ]
