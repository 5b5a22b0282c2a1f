"""What is expected, in one compressed file."""

from __future__ import annotations

import difflib
import functools
import lzma
from pathlib import Path

import msgspec

FILE = Path(__file__).parent / "expected.json.xz"


@functools.cache
def _all() -> dict[str, str]:
    return (
        msgspec.json.decode(lzma.decompress(FILE.read_bytes()), type=dict[str, str]) if FILE.exists() else {}
    )


def names() -> set[str]:
    return set(_all())


def expected(name: str) -> str:
    """KeyError where there is none."""
    return _all()[name]


def keep(name: str, text: str | None) -> None:
    """None: forget it."""
    found = _all() | {name: text or ""}
    if text is None:
        del found[name]
    _all.cache_clear()
    FILE.write_bytes(lzma.compress(msgspec.json.encode(dict(sorted(found.items()))), preset=9))


def changes(before: str, now: str) -> str:
    """Lines that differ, as a patch."""
    lines = difflib.unified_diff(before.splitlines(), now.splitlines(), "before", "now", n=1, lineterm="")
    return "\n".join(lines)
