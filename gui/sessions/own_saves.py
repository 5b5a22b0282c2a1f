"""The versions of the user's rungs, as the window keeps them: the same log that `ladder --watch` writes into
the folder of the kernels, and in a ladder's folder the versions that were measured there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from bench.questions.ladder_questions import RungInfo
from bench.results import saves
from bench.results.ladder_records import Ladder, RungCase, RungMeasurement
from bench.results.saves import Save, SaveLog
from gui.base.background import Background


class OwnSaves(QObject):
    """Notes and reads the versions, in threads. `all` has those of the folders of kernels, oldest first, and
    `shown` those of the ladder that is shown from its folder. `changed` is emitted when either is new."""

    changed = Signal()

    def __init__(self, background: Background, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.all: tuple[Save, ...] = ()
        self.shown: tuple[Save, ...] = ()
        self._background = background
        self._logs: dict[Path, SaveLog] = {}
        self._folders: tuple[Path, ...] = ()
        self._own: dict[str, RungInfo] = {}  # the user's rungs as they are measured, by name

    def look(self, folders: Sequence[str]) -> None:
        """Read what these folders of kernels have."""
        self._folders = tuple(Path(folder) for folder in folders)
        self._read()

    def begin(self, rungs: Iterable[RungInfo], known: Mapping[str, RungMeasurement]) -> None:
        """These rungs are measured from now on, as their files are now. known: what was measured before, by
        the case's key."""
        self._own = {info.case.rung: info for info in rungs if info.case.user}
        for info in self._own.values():
            self._log(info).begin({key: m for key, m in known.items() if m.case.rung == info.case.rung})

    def note(
        self,
        ladder: Ladder,
        cases: Sequence[RungCase],
        measured: Mapping[str, RungMeasurement],
        run: Path | None,
    ) -> None:
        """Keep what these rungs came to. run: the folder of the whole ladder that they were measured in, None
        if they ran alone."""
        own, sources = self._own, {name: info.source for name, info in self._own.items()}
        cases = [case for case in cases if case.rung in own and case.scope == "rung"]
        found = {case.key: measured[case.key] for case in cases if case.key in measured}
        last = {(save.rung, save.what, save.device): save.source for save in self.all}
        logs: dict[SaveLog, list[RungCase]] = {}
        for case in cases:
            # A whole ladder is no save: its version may be known.
            known = last.get((case.rung, ladder.job.title, ladder.job.device))
            if run is None or known != sources[case.rung][: saves.MOST_SOURCE]:
                logs.setdefault(self._log(own[case.rung]), []).append(case)
        if not found:
            return

        def work() -> None:
            for log, noted in logs.items():
                log.note(ladder, noted, found, sources)
            if run is not None:
                saves.keep(run, ladder, found.values(), sources)

        self._background.start("note saves", work, lambda _: self._read())

    def show(self, run: Path | None) -> None:
        """Read what lies in a ladder's folder; None: no ladder from before is shown."""
        if run is None:
            if self.shown:
                self.shown = ()
                self.changed.emit()
            return

        def then(found: tuple[Save, ...]) -> None:
            self.shown = found
            self.changed.emit()

        self._background.start("saves of a run", lambda: tuple(saves.read(run)), then)

    def of(self, rung: str, what: str, device: str) -> tuple[Save, ...]:
        """The versions of a rung on this work, oldest first."""
        versions = self.shown or self.all
        return tuple(save for save in versions if (save.rung, save.what, save.device) == (rung, what, device))

    # ------------------------------------------------------------------------------------------ the inside

    def _log(self, info: RungInfo) -> SaveLog:
        within = [folder for folder in self._folders if Path(info.path).is_relative_to(folder.absolute())]
        folder = within[0] if within else Path(info.path).parent
        return self._logs.setdefault(folder, SaveLog(folder))

    def _read(self) -> None:
        folders = [folder for folder in self._folders if folder.is_dir()]

        def then(found: tuple[Save, ...]) -> None:
            self.all = found
            self.changed.emit()

        self._background.start("saves", lambda: tuple(s for each in folders for s in saves.read(each)), then)
