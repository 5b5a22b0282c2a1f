"""On which machine goals were measured, as the runs' environments tell: where it is another than they were
set for, the heading and a note say so."""

from __future__ import annotations

import re
from collections.abc import Mapping

from bench.extras.reports.goals.presets import Goals
from bench.extras.reports.needs import Taken
from bench.results.records import Environment

UNKNOWN = "a machine that is not named"
# Figures of the machine that they were set for; a ratio of two backends is beside them what may come again.
OF_TIME = ("time", "launched")


def fits(goals: Goals, name: str) -> bool:
    """Whether the goals were set for a machine of this name. Whole words count: a GH200 is no H200."""
    return not goals.machine or re.search(rf"(?<!\w){re.escape(goals.machine)}(?!\w)", name) is not None


def measured_on(goals: Goals, taken: Taken) -> dict[str, Environment]:
    """The processors that the goals' device is one of, by name ("" where a run does not tell), each with the
    environment of its first run."""
    found: dict[str, Environment] = {}
    for runs in taken.runs:
        for folder in runs.values():
            environment = folder.header.environment
            name = environment.gpu if goals.device == "cuda" else environment.cpu
            found.setdefault(name, environment)
    return found


def heading(goals: Goals, taken: Taken) -> str:
    """The title, and where it was measured if that is elsewhere."""
    found = measured_on(goals, taken)
    if all(fits(goals, name) for name in found):
        return goals.title
    return f"{goals.title}, measured on {' and '.join(map(_one, found))}"


def notes(goals: Goals, taken: Taken) -> list[str]:
    """What is to be known where the goals are another machine's, or no machine's own."""
    found = measured_on(goals, taken)
    elsewhere = {name: environment for name, environment in found.items() if not fits(goals, name)}
    if not goals.machine and any(found):
        return [f"Measured on {_where(found)}{_when(taken)}."]
    if not elsewhere:
        return []
    where = _where(elsewhere)
    part = "measured here on" if len(found) == len(elsewhere) else "measured here in part on"
    what = "ratios of what memory bounds ask"
    if times := sum(len(goal.wanted) for goal in goals.every if goal.value in OF_TIME):
        of_time = f"{times:,} that {'is a time' if times == 1 else 'are times'} of a pass"
        what = f"{of_time}, and ratios of what memory bounds, ask"
    return [
        f"The goals were set for one {goals.machine}; {part} {where}.",
        f"All are held as they were set, though {what} for what one {goals.machine} can do.",
    ]


def _when(taken: Taken) -> str:
    """The days, as runs tell them."""
    days = sorted({folder.header.created_at[:10] for runs in taken.runs for folder in runs.values()} - {""})
    return f", {' to '.join(dict.fromkeys((days[0], days[-1])))}" if days else ""


def _where(found: Mapping[str, Environment]) -> str:
    return " and ".join(
        f"{_one(name)} (driver {environment.driver})"
        if environment.gpu and environment.driver
        else _one(name)
        for name, environment in found.items()
    )


def _one(name: str) -> str:
    return f"one {name}" if name else UNKNOWN
