"""The user's own rungs of a ladder: which of them were saved or added, and have to be run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.ladder.questions import LadderAnswer
from bench.ladder.records import RungCase


class OwnKernels:
    """`due`: names of the rungs to be run when nothing else is. `words`: why, as a sentence goes on with the
    time. `touched`: a file was saved, whichever, since the last answer about the files."""

    def __init__(self) -> None:
        self.due: set[str] = set()
        self.words = ""
        self.touched = False
        self._fresh = False  # the next answer may bring rungs that were saved or added
        self._seen: dict[str, str] = {}  # path of a rung → its text when it was last looked at

    def added(self, words: str = "") -> None:
        """A folder has joined, or is about to."""
        self._fresh = True
        self.words = words or self.words

    def saved(self, paths: Sequence[Path]) -> None:
        names = ", ".join(sorted({path.name for path in paths}))
        self.words = f"{names} was saved, and run again"
        self._fresh = self.touched = True

    def look(self, answer: LadderAnswer, last: bool) -> tuple[str, ...] | None:
        """The rungs that an answer brings anew, which are due from now on; None where neither they nor files
        that are no rungs are to be shown. last: no other answer is awaited."""
        own = {info.path: info for info in answer.rungs if info.case.user}
        found = None
        if self._fresh:
            changed = [i.case.rung for path, i in own.items() if self._seen.get(path) != i.source]
            # A header that several rungs include may have changed: then all of the user's run.
            if self.touched and not changed and not answer.problems:
                changed = [info.case.rung for info in own.values()]
            self.due.update(changed)
            if changed or answer.problems:
                found = tuple(changed)
        self._seen.update((path, info.source) for path, info in own.items())
        if last:
            self._fresh = self.touched = False
        return found

    def take(self, cases: Sequence[RungCase]) -> tuple[RungCase, ...]:
        """Those of a ladder's cases that are due, which they are no longer."""
        found = tuple(case for case in cases if case.user and case.rung in self.due)
        self.due.clear()
        return found
