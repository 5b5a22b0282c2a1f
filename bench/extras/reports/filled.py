"""A report filled in, as HTML or Markdown: what its kind tells, and where ours comes from."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.extras.reports.needs import Taken
from bench.run.kinds.comparison import KIND as COMPARISON
from bench.views.reports.report_form import Picture, ReportForm
from bench.views.sentences import footer
from bench.views.sentences.footer import machine, versions
from bench.views.tables.table import Table
from bench.words import units

TEMPLATE = "filled"
RAN_BESIDE = ("onnxruntime", *footer.RIVALS)  # whose versions cases tell


@dataclass(frozen=True)
class Page:
    """What is told of one kind of report. command: of `report`, with the report's name; source: whose
    figures they are ("": the goals' own); pictured: whether it has figures at all; strip: what comes of it, a
    sentence each, with the class of its colour ("ok", "slower", ""); method: the template of the words about
    how it was measured; told: the reasons why there is no run that a table of the page tells already."""

    command: str
    heading: str
    strip: list[tuple[str, str]]
    notes: tuple[str, ...]
    tables: list[Table[Any]]
    figures: list[Picture]
    method: str
    source: str = ""
    pictured: bool = True
    told: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Source:
    """Where ours comes from: a run or a program, and the command behind it."""

    words: str
    command: str


def write(page: Page, taken: Taken, form: ReportForm, heading: str = "") -> list[Path]:
    """Write it; what was written, the report first. heading: in place of its own."""
    return form.write(TEMPLATE, context(page, taken, heading))


def context(page: Page, taken: Taken, heading: str = "") -> dict[str, Any]:
    """What the template tells."""
    folders = [folder for runs in taken.runs for folder in runs.values()]
    measured = [*(folder.header for folder in folders), *taken.programs.values()]
    told = {
        text
        for folder in folders
        if folder.kind is COMPARISON
        for text in footer.rivals(folder.measurements(), RAN_BESIDE)
    }
    sources = [
        Source(
            f"{folder.path}; {len(folder.measurements()):,} of {len(folder.cases):,} cases measured",
            folder.header.command,
        )
        for folder in folders
    ]
    for name, used in taken.programs.items():
        start = used.start
        words = f"{start.model} on {start.backend}, {start.images:,} images in batches of {start.batch:,}"
        fixed = "".join(f", {node} by {rung}" for node, rung in start.rungs.items())
        sources.append(Source(f"{name}: a whole program", words + fixed))
    return {
        "page": page,
        "heading": heading or page.heading,
        "records": units.count(len(sources), "run"),
        "rivals": sorted(told),
        "machines": list(dict.fromkeys((machine(one), versions(one)) for one in measured)),
        "sources": sources,
        "missing": _missing(taken, page.told),
    }


def _missing(taken: Taken, told: Container[str]) -> list[tuple[str, str]]:
    """What there is no run of, those together that have the same reason; without the reasons told already."""
    by_reason: dict[str, list[str]] = {}
    for name, why in taken.why.items():
        by_reason.setdefault(why, []).append(name)
    return [(", ".join(names), why) for why, names in by_reason.items() if why not in told]
