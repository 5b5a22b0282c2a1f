"""Whether the built pages hold together by themselves: every link and heading is there, and nothing that a
browser loads lies elsewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser fetches by itself; a link that a reader clicks may lead elsewhere.
LOADS = {
    "script": ("src",),
    "img": ("src", "srcset"),
    "source": ("src", "srcset"),
    "iframe": ("src",),
    "video": ("src", "poster"),
    "audio": ("src",),
    "embed": ("src",),
    "object": ("data",),
    "link": ("href",),
    "use": ("href", "xlink:href"),
    "input": ("src",),
}
# Of these links a browser fetches nothing.
TOLD = ("canonical", "author", "license", "next", "prev", "search", "index", "alternate")
FOREIGN = re.compile(r"(?:https?:)?//", re.IGNORECASE)
# Within style sheets and scripts: what is fetched, and not the addresses in comments.
FETCHED = re.compile(
    r"""(?:url\(\s*|@import\s+|fetch\(\s*|import\(\s*|importScripts\(\s*|\.src\s*=\s*)["']?((?:https?:)?//[^"')\s]+)""",
    re.IGNORECASE,
)


class Page(HTMLParser):
    """links: what a reader may click; loads: what the browser fetches; names: what `#…` leads to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.names: set[str] = set()
        self.inside: list[str] = re.findall(r"<(?:style|script)\b[^>]*>(.*?)</(?:style|script)>", text, re.S)
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.names.update(given[name] for name in ("id", "name") if name in given)
        if tag == "a" and given.get("href"):
            self.links.append(given["href"])
        if tag == "link" and given.get("rel", "").lower() in TOLD:
            return
        for name in LOADS.get(tag, ()):
            values = given.get(name, "").split(",") if name == "srcset" else [given.get(name, "")]
            self.loads += [value.split()[0] for value in values if value.strip()]
        if "style" in given:
            self.inside.append(given["style"])


def faults(site: Path) -> Iterator[str]:
    """What is wrong with a site, a sentence each; none where all is well."""
    pages = {path: Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        where = path.relative_to(site).as_posix()
        for load in page.loads:
            if FOREIGN.match(load):
                yield f"{where}: loads {load} from elsewhere"
            elif not load.startswith(("data:", "#")) and not _at(path, load).is_file():
                yield f"{where}: loads {load}, which is not there"
        for link in page.links:
            if re.match(r"[a-z]+:|//", link):
                continue
            target = _at(path, link)
            anchor = unquote(urlsplit(link).fragment)
            if not target.is_file():
                yield f"{where}: links to {link}, which is not there"
            elif anchor and target in pages and anchor not in pages[target].names:
                yield f"{where}: links to {link}, and there is no such heading"
        for text in page.inside:
            yield from (f"{where}: fetches {found} from elsewhere" for found in FETCHED.findall(text))
    for path in sorted(site.rglob("*")):
        if path.suffix in (".css", ".js"):
            for found in FETCHED.findall(path.read_text("utf-8")):
                yield f"{path.relative_to(site).as_posix()}: fetches {found} from elsewhere"


def _at(page: Path, link: str) -> Path:
    name = unquote(urlsplit(link).path)
    return Path((page.parent / name).resolve()) if name else page
