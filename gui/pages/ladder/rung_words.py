"""A rung in words: its title, how it stands, what it is compared with at first, which lines are faulty."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bench.ladder.questions import RungInfo
from bench.ladder.records import RungCase
from bench.ladder.show import story
from bench.ladder.show.tables import WORDS
from bench.results import doubt
from bench.results.stats import SAME_BOUND
from bench.words import orders, units
from gui.pages.ladder.ladder_table import LadderRow


def heading(case: RungCase) -> str:
    """A case as a title."""
    if case.is_reference:
        return "The reference" + (f", {case.precision}" if case.precision != "fp32" else "")
    marks = [
        words
        for words, on in (
            ("your own", case.user),
            (f"in {case.language}", case.language),
            ("beside the ladder", case.side),
            (case.precision, case.precision != "fp32"),
        )
        if on
    ]
    return case.label + (f" ({', '.join(marks)})" if marks else "")


def standing(shown: LadderRow) -> tuple[str, str]:
    """How a rung stands in words, and the role they are written in."""
    m = shown.row.measurement
    if shown.going is not None:
        return (f"{shown.going.words.capitalize()} …" if shown.going.words else "Waits its turn."), "muted"
    if shown.waits:
        return (f"Refused here: it {shown.refused}." if shown.refused else "Not measured yet."), "muted"
    if m.disposition == "unsupported":
        return f"Refused here: it {m.reason}.", "muted"
    if m.disposition != "ok":
        word = "wrong" if m.finding is not None else WORDS.get(m.disposition, m.disposition)
        return f"{word[:1].upper()}{word[1:]}: {_without_folder(m.reason)}", "failed"
    parts = [doubt.marked(units.duration(shown.row.time.value), shown.row.doubts)] if shown.row.time else []
    row = shown.row
    if row.gain is not None and row.lower is not None:
        told = orders.order(row.gain_verdict, row.gain, "it", row.lower.case.label, SAME_BOUND, ends=False)
        parts.append(doubt.marked(told, row.gain_doubts))
    if row.speedup is not None:
        told = orders.order(row.verdict, row.speedup, "it", "the reference", SAME_BOUND, ends=False)
        parts.append(doubt.marked(told, row.speedup_doubts))
    if whole := story.whole(row, shown.model, "the reference's"):
        parts.append(whole)
    doubts = shown.row.all_doubts
    notes = list(dict.fromkeys([*m.notes, *doubts]))
    words = ", ".join(parts) + "." if parts else ""
    return " ".join([words, *(f"{note[:1].upper()}{note[1:]}." for note in notes)]), "muted"


def _without_folder(reason: str) -> str:
    """A reason that begins with a file's path, with the file's name alone."""
    found = re.match(r"(.*?[\\/])?([^\\/]+\.(?:cu|cuh|py):\d+: .*)", reason, re.DOTALL)
    return found[2] if found else reason


def neighbour(info: RungInfo, rungs: Sequence[RungInfo]) -> RungInfo | None:
    """The rung below on the ladder itself: of the same precision where there is one, else of fp32; above the
    first rung the one after it."""
    case = info.case
    own = [r for r in rungs if not (r.case.side or r.case.user or r.case.yardstick) and r.path != info.path]
    lower = [r for r in own if r.case.number < case.number]
    same = [r for r in lower if r.case.precision == case.precision]
    plain = [r for r in lower if r.case.precision == "fp32"]
    found = same or plain or lower
    return found[-1] if found else None


def error_lines(path: str, reason: str) -> dict[int, str]:
    """The line of the rung's own file that a reason names ("…/90_mine.cu:12: …"), with what it says of it."""
    found = re.match(re.escape(path) + r":(\d+): (.*)", reason, re.DOTALL)
    if found:
        return {int(found[1]): found[2]}
    # TOML says where in the header: "… (at line 3, column 8)"; the header begins in the file's first line.
    header = re.search(r"\(at line (\d+), column \d+\)", reason)
    return {int(header[1]): reason.partition(": ")[2] or reason} if header else {}
