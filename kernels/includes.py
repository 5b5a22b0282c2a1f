"""The headers of ours that a rung's file includes, however deep."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from kernels.registry import Rung

HEADERS = Path(__file__).parent / "cuda"
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


@dataclass(frozen=True)
class Header:
    """A header as a file includes it (name), where it lies, and its text."""

    name: str
    path: Path
    text: str


def headers(rung: Rung) -> tuple[Header, ...]:
    """Each of them once, in a fixed order: looked for beside the file that includes it, then among ours. One
    that is not there is the compiler's to report."""
    found: dict[Path, Header] = {}
    queue = [(rung.source, rung.path.parent)]
    while queue:
        text, folder = queue.pop()
        for name in _INCLUDE.findall(text):
            path = next((p for d in (folder, HEADERS) if (p := d / name).is_file()), None)
            if path is None or path in found:
                continue
            found[path] = Header(name, path, path.read_text(encoding="utf-8"))
            queue.append((found[path].text, path.parent))
    return tuple(found.values())
