"""`doctor`: what this machine can run, and for what it cannot, why and what would help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.commands.checks import Check

MARKS = {"ok": ("✓", "green"), "note": ("–", "yellow"), "missing": ("✗", "red")}


def doctor(display: str | None) -> int:
    """Print every check; 1 where nothing can run here, else 0. display: why no window can open (None: one
    can)."""
    from bench.commands import checks

    return report(checks.checks(display))


def report(found: Sequence[Check]) -> int:
    """Print checks, of this machine or of another; 1 where nothing can run there, else 0."""
    from rich.table import Table
    from rich.text import Text

    from bench.commands import checks
    from bench.words.terminal import console

    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    shown = ""
    for check in found:
        mark, style = MARKS[check.status]
        topic, shown = ("" if check.topic == shown else check.topic), check.topic
        table.add_row(Text(topic, style="bold"), Text(mark, style=style), Text(check.name), Text(check.text))
    console().print(table)
    if checks.runs_anything(found):
        return 0
    console().print("no backend can run here; the lines above say what would help", style="bold red")
    return 1
