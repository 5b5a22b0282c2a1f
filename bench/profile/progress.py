"""A profile's course on standard error."""

from __future__ import annotations

from typing import Any

from bench.profile.records import CaseProfile, ProfileStarted
from bench.run.status import Status
from bench.words import units

STAGES = {
    "prepare": "starting cold",
    "time": "timing, unprofiled",
    "profile": "profiling",
    "count": "counting",
}


class ProfileProgress(Status):
    """Hears events of bench.profile.client.run."""

    def heard(self, event: Any) -> None:
        match event:
            case CaseProfile():
                self.settled(event, _pass(event))
            case ProfileStarted():
                self.show(f"{STAGES.get(event.stage, event.stage)}: {event.case.words}")


def _pass(made: CaseProfile) -> str:
    """How long a profiled pass takes, and how much of it is unexplained."""
    if (found := made.breakdown()) is None:
        return ""
    rest = units.percent(found.part("rest") / found.wall, 1)
    return f", a pass takes {units.duration(found.wall)} profiled, {rest} unexplained"
