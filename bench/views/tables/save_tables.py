"""The log of saves as a table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from bench.results.saves import Save
from bench.views.tables.table import Column, Output, Table, pick, row_type
from bench.words import orders, units
from bench.words.version import version

_seconds = partial(units.si, unit="s")
_word = partial(Column[Save], left=True)
COLUMNS: tuple[Column[Save], ...] = (
    _word("at", text=lambda at: str(at).replace("T", " ")[:19], title="saved"),
    _word("rung"),
    _word("what", title="on"),
    _word("device"),
    _word("disposition", title="result"),
    _word("verdict", title="came to"),
    Column("time_s", text=_seconds, title="time"),
    Column("low_s", text=_seconds, title="from"),
    Column("high_s", text=_seconds, title="to"),
    Column(
        "gain",
        text=orders.speed,
        title="gain over the last",
        tip="The last right version's time over this one's",
    ),
    Column("gain_low", text=orders.speed, title="at least"),
    Column("gain_high", text=orders.speed, title="at most"),
    _word("reason", lambda save: save.reason or None, title="why"),
)


def _count(name: str, title: str, tip: str) -> Column[Save]:
    return Column(name, lambda save: save.counts.get(name), lambda count: f"{count:g}", title=title, tip=tip)


# What the window shows of one rung.
HISTORY: tuple[Column[Save], ...] = (
    *pick(COLUMNS, "at", "verdict", "time_s", "gain"),
    _count("registers", "registers", "Of a thread, as the compiler says"),
    _count("spill_nbytes", "spilled", "Bytes of registers that a thread keeps in memory"),
    *pick(COLUMNS, "reason"),
)
_READABLE = pick(COLUMNS, "at", "rung", "verdict", "time_s", "gain", "gain_low", "gain_high", "reason")


def readable(found: Sequence[Save]) -> list[Table[Save]]:
    """For people: a table for what the saves were timed on."""
    return [
        Table(
            _READABLE,
            [save for save in found if (save.what, save.device) == (what, device)],
            f"{what}, {device}",
        )
        for what, device in dict.fromkeys((save.what, save.device) for save in found)
    ]


SAVE = row_type("LadderSave", COLUMNS, "A save, as a line of CSV has it.")


class SavesOutput(Output, frozen=True, kw_only=True):
    """`ladder --saves DIR --format json`."""

    folder: str
    saves: tuple[SAVE, ...]  # type: ignore[valid-type]


def saves_output(folder: Path, found: Sequence[dict[str, Any]]) -> SavesOutput:
    return SavesOutput(kernelscope=version(), folder=str(folder), saves=tuple(found))


def table(found: Sequence[Save]) -> Table[Save]:
    return Table(COLUMNS, found, "Saves", key="saves")
