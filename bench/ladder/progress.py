"""A ladder's course on standard error."""

from __future__ import annotations

from typing import Any

from bench.ladder.records import RungMeasurement, RungStarted
from bench.ladder.show.tables import WORDS
from bench.run.status import Status

STAGES = {"prepare": "preparing", "check": "checking", "time": "timing"}


class LadderProgress(Status):
    """Hears events of bench.ladder.client.run."""

    def heard(self, event: Any) -> None:
        match event:
            case RungMeasurement():
                self.settled(event, words=WORDS)
            case RungStarted():
                self.show(f"{STAGES.get(event.stage, event.stage)} {event.case.words}")
