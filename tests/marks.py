"""Which files a run has nothing to do with, by their text: to collect them, in each of the processes that
share the tests, is most of what some runs cost.

A run with `-m "gpu …"` loads those alone that have a test for a GPU; one with `-m "not gpu …"` none of those
where every test is for one. `forgotten` tells of a test for a GPU that the text of its file does not show.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

# A mark of its own, or that of the backends which it goes through.
SOME = re.compile(r"mark\.gpu\b|\bbackends\.shared\b")
EVERY = re.compile(r"^pytestmark = \[?pytest\.mark\.gpu\b", re.MULTILINE)


def without_a_part(path: Path, expression: str) -> bool:
    """Whether none of a file's tests is among those of `-m expression`."""
    if not path.name.startswith("test_") or path.suffix != ".py":
        return False
    if re.match(r"gpu\b", expression):
        return SOME.search(_text(path)) is None
    return re.match(r"not gpu\b", expression) is not None and EVERY.search(_text(path)) is not None


def forgotten(items: Iterable[pytest.Item]) -> set[Path]:
    return {
        item.path for item in items if item.get_closest_marker("gpu") and not SOME.search(_text(item.path))
    }


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
