"""What is kept of a case beside its times: one recorder for each thing, switched on by the job."""

from __future__ import annotations

from typing import Any

from bench.measure.contender import Contender
from bench.measure.reporter import Reporter
from bench.measure.timing import Timing


class Recorder:
    """job: what the user asked for; folder: of the run, where files go ("" = nowhere)."""

    def __init__(self, job: Any, folder: str, reporter: Reporter) -> None:
        self._job, self._folder, self._reporter = job, folder, reporter

    def before(self, ready: dict[str, Contender]) -> dict[str, Exception]:
        """What is recorded of a group before its passes are timed; who failed at it, by key."""
        return {}

    def record(self, contender: Contender, timing: Timing) -> None:
        """Fill fields of the record (`contender.recorded`), of a case that was timed and found right. Raises
        what was wrong."""
