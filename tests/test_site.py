"""The site of the documents, as far as it is made without Sphinx: its pages are laid out, the list of
commands is whole, and what checks its links finds what is wrong. `make docs` builds it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.run.options import TABLE
from docs.site import commands, links, pages


def test_every_page_has_a_place_and_leads_to_what_is_there(tmp_path: Path) -> None:
    pages.lay_out(tmp_path)
    for page in tmp_path.rglob("*.md"):
        for link in pages.LINK.finditer(pages.FENCED.sub("", page.read_text("utf-8"))):
            name = link[2].partition("#")[0]
            if name and not re.match(r"[a-z]+:", name):
                assert (page.parent / name).exists(), f"{page.relative_to(tmp_path)}: {name}"
    assert (tmp_path / "index.md").read_text("utf-8").startswith("# Kernelscope")
    assert "](../index.md#start)" in (tmp_path / "docs/writing-a-kernel.md").read_text("utf-8")


def test_a_page_without_a_place_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some = {**pages.NAVIGATION, "Reports": ()}
    monkeypatch.setattr(pages, "NAVIGATION", some)
    with pytest.raises(
        ValueError, match=r"no place in the navigation: docs/course-reports\.md, docs/reports\.md"
    ):
        pages.lay_out(tmp_path)


def test_the_list_of_commands_has_every_command_and_option() -> None:
    text = commands.markdown()
    parts = {part.split("\n")[0]: part for part in re.split(r"^#{2,3} ", text, flags=re.MULTILINE)[1:]}
    assert {"compare", "ladder", "profile", "doctor", "runs diff", "runs baseline set", "models show"} <= set(
        parts
    )
    for group, options in TABLE.items():
        for option in options:
            for command in option.on:
                assert f"**{group or 'Options'}**" in parts[command]
                assert (f"`--{option.name}" in parts[command]) or option.argument, (command, option.name)
    assert "| `--budget S` |" in parts["compare"]
    assert "Default: `" in parts["compare"]


PAGE = '<html><head><link rel="stylesheet" href="a.css">{}</head><body><h1 id="top">A</h1>{}</body></html>'


@pytest.mark.parametrize(
    ("head", "body", "style", "fault"),
    [
        ("", '<a href="#top">a</a><a href="https://example.com">b</a><img src="data:image/png,x">', "", ""),
        ("", '<a href="gone.html">a</a>', "", "a.html: links to gone.html, which is not there"),
        ("", '<a href="#gone">a</a>', "", "a.html: links to #gone, and there is no such heading"),
        ("", '<a href="b/c.html#x">a</a>', "", "a.html: links to b/c.html#x, and there is no such heading"),
        ("", '<img src="gone.png">', "", "a.html: loads gone.png, which is not there"),
        (
            '<script src="//example.com/x.js"></script>',
            "",
            "",
            "a.html: loads //example.com/x.js from elsewhere",
        ),
        (
            '<link rel="icon" href="https://example.com/i">',
            "",
            "",
            "a.html: loads https://example.com/i from elsewhere",
        ),
        (
            "<script>fetch('https://example.com')</script>",
            "",
            "",
            "a.html: fetches https://example.com from elsewhere",
        ),
        ("", "", "@import 'https://example.com/f'", "a.css: fetches https://example.com/f from elsewhere"),
        ("", "", "b{src:url(//example.com/f)}", "a.css: fetches //example.com/f from elsewhere"),
        ("", "", "/* https://example.com tells of it */", ""),
    ],
)
def test_what_is_wrong_with_a_page_is_found(
    tmp_path: Path, head: str, body: str, style: str, fault: str
) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b/c.html").write_text(PAGE.format("", "").replace("a.css", "../a.css"))
    (tmp_path / "a.html").write_text(PAGE.format(head, body))
    (tmp_path / "a.css").write_text(style)
    assert list(links.faults(tmp_path)) == ([fault] if fault else [])
