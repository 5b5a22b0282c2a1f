"""Standard output as rich draws on it: what is printed is text, and no order to rich or to the terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from bench.words import plain

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

PIPE_WIDTH = 120


def console() -> Console:
    """Standard output; a pipe has no width of its own and gets what the tables need."""
    from rich.console import Console
    from rich.segment import Segment

    class Plain(Console):
        def render(self, *renderable: Any, **options: Any) -> Iterable[Segment]:
            for segment in super().render(*renderable, **options):
                yield segment if segment.control else Segment(plain.printable(segment.text), segment.style)

    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return Plain(highlight=False, markup=False, emoji=False, width=width)
